// SPDX-License-Identifier: Apache-2.0
#include <baton/ir/diagnostic.h>
#include <baton/ir/structural.h>
#include <baton/relay/device.h>
#include <baton/relay/evaluator.h>
#include <baton/relay/functor.h>
#include <baton/relay/op.h>
#include <baton/runtime/registry.h>
#include <relay/op/host_params.h>

#include "driver/debug_source.h"
#include "driver/lower_graph.h"
#include "driver/size_words.h"
#include "driver/vm/function_builder.h"

namespace baton::driver {

using relay::CallNode;
using relay::Expr;
using relay::Function;
using relay::FunctionNode;
using relay::LetNode;
using relay::Var;
using vm::Opcode;

namespace {

/// Description of an argument or result for callers.
runtime::TensorInfo InfoOf(const std::string& name, const Type& type) {
  runtime::TensorInfo info{name, {}, DataType::Handle()};
  if (const auto* t = type.as<TensorTypeNode>()) {
    info.dtype = t->dtype;
    for (const PrimExpr& d : t->shape) info.shape.push_back(relay::DimOf(d));
  }
  return info;
}

/// Each function in a function is walked by those around it, so a chain of them takes the square of its length.
constexpr int64_t kMaxNesting = 10'000;

/// Notes how many functions lie within each other at an expression whose children are noted.
void CheckNesting(const GlobalVar& name, const relay::ExprNode* n, PointerMap<int64_t>* nesting) {
  int64_t levels = 0;
  relay::ForEachChild(n, [&](const relay::ExprNode* child) {
    if (const int64_t* inner = nesting->Find(child)) levels = std::max(levels, *inner);
  });
  if (n->IsInstance<FunctionNode>()) ++levels;
  if (levels) (*nesting)[n] = levels;
  if (levels <= kMaxNesting) return;
  throw CompileError("functions within @" + name->name_hint.str() + " are nested more than " +
                     std::to_string(kMaxNesting) +
                     " deep, for which no code is made; the pass LambdaLift takes them apart");
}

Type TypeOf(const Var& p) { return p->checked_type_.defined() ? Downcast<Type>(p->checked_type_) : p->type_annotation; }

}  // namespace

Type ResultType(const Function& f) {
  return f->body->checked_type_.defined() ? Downcast<Type>(f->body->checked_type_) : f->ret_type;
}

ProgramBuilder::ProgramBuilder(IRModule mod, const std::vector<DeviceTarget>& devices, int64_t fallback,
                               std::vector<RegionNote>* notes)
    : mod_(std::move(mod)), targets_(devices), notes_(notes) {
  if (devices.empty()) return;
  // The CPU decides where control goes, and comes first.
  std::vector<int64_t> types{kDLCPU};
  for (const DeviceTarget& t : devices) {
    if (t.type != kDLCPU) types.push_back(t.type);
  }
  for (int64_t type : types) {
    vm::ProgramDevice d;
    d.type = type;
    out_.program.devices.push_back(d);
  }
  placed_ = relay::transform::PlaceModule(mod_, fallback);
  mod_ = placed_.mod;
}

int32_t ProgramBuilder::DeviceIndex(int64_t type) const {
  const auto& devices = out_.program.devices;
  for (size_t i = 0; i < devices.size(); ++i) {
    if (devices[i].type == type) return static_cast<int32_t>(i);
  }
  if (type < 0) return 0;  // a function
  throw runtime::ValueError("the program runs on " + relay::DeviceTypeName(type) + ", for which no target is given");
}

Target ProgramBuilder::TargetOf(int32_t device) const {
  for (const DeviceTarget& t : targets_) {
    if (t.type == out_.program.devices[static_cast<size_t>(device)].type) return t.target;
  }
  return Target::Current();
}

vm::Entry ProgramBuilder::EntryOf(const std::string& name, int32_t index, const Function& f) const {
  vm::Entry e{name, index, {}, {}, {}};
  if (several()) {
    const auto where = f->GetAttr<Array<runtime::Any>>(relay::transform::kParamDevices, Array<runtime::Any>());
    for (size_t i = 0; i < f->params.size(); ++i) {
      const bool known =
          i < where.size() && where[static_cast<int64_t>(i)].Is<int64_t>() && !TypeOf(f->params[i]).as<FuncTypeNode>();
      e.devices.push_back(known ? DeviceIndex(where[static_cast<int64_t>(i)].As<int64_t>()) : -1);
    }
  }
  for (const Var& p : f->params) e.inputs.push_back(InfoOf(p->name_hint().str(), TypeOf(p)));
  // Results, tuples flattened as an executor does it.
  auto names = f->GetAttr<Array<String>>("output_names", Array<String>());
  std::vector<Type> work{ResultType(f)};
  while (!work.empty()) {
    const Type t = work.back();
    work.pop_back();
    if (const auto* tuple = t.as<TupleTypeNode>()) {
      for (size_t i = tuple->fields.size(); i-- > 0;) work.push_back(tuple->fields[static_cast<int64_t>(i)]);
      continue;
    }
    const size_t i = e.outputs.size();
    e.outputs.push_back(
        InfoOf(i < names.size() ? names[static_cast<int64_t>(i)].str() : "output" + std::to_string(i), t));
  }
  return e;
}

int32_t ProgramBuilder::Reserve(const std::string& name) {
  out_.program.functions.push_back({name, 0, 0, {}});
  return static_cast<int32_t>(out_.program.functions.size()) - 1;
}

VmProgram ProgramBuilder::Build() {
  for (const auto& [var, func] : mod_->functions) {
    const auto* f = func.as<FunctionNode>();
    if (!f || f->HasNonzeroAttr(attr::kPrimitive)) continue;
    auto alias = std::make_shared<PointerMap<Expr>>();
    PointerMap<int64_t> nesting;
    for (const relay::ExprNode* n : relay::PostOrderNodes(GetRef<Expr>(f))) {
      CheckNesting(var, n, &nesting);
      if (n->IsInstance<LetNode>()) {
        const auto* l = static_cast<const LetNode*>(n);
        (*alias)[l->var.get()] = l->value;
      }
    }
    const int32_t index = Reserve(var->name_hint.str());
    globals_[var->name_hint.str()] = index;
    queue_.push_back({var->name_hint.str(), GetRef<Function>(f), {}, index, nullptr, alias});
    if (f->type_params.empty()) {
      out_.program.entries.push_back(EntryOf(var->name_hint.str(), index, GetRef<Function>(f)));
    }
  }
  // Translating a function finds the closures in it, which wait behind it.
  for (size_t i = 0; i < queue_.size(); ++i) {
    const VmLambda lambda = queue_[i];
    vm::Function f = FunctionBuilder(this, lambda).Build();
    out_.program.functions[static_cast<size_t>(lambda.index)] = std::move(f);
  }
  return std::move(out_);
}

/// The kernel of a stretch, optimised for its device.
int32_t ProgramBuilder::OpenKernel(const Function& region, int32_t device) {
  With<Target> scope(several() ? TargetOf(device) : Target::Current());
  return Kernel(OptimizeRegion(region), device);
}

/// Names by position for the variables of a region, which other regions share: equal ones are one kernel. Dimensions
/// that a program names keep theirs.
PointerMap<tir::Var> ProgramBuilder::SharedVars(const Function& f) {
  PointerMap<tir::Var> out;
  int64_t next = 0;
  auto put = [&](const tir::Var& v, const std::string& name, const std::string& kind = "") {
    tir::Var& shared = size_vars_[name + kind];
    if (!shared.defined()) {
      const bool size = v.as<tir::SizeVarNode>();
      shared = size ? tir::Var(tir::SizeVar(String(name))) : tir::Var(String(name), v->type_annotation);
    }
    out[v.get()] = shared;
  };
  for (const Any& value : f->GetAttr<Array<Any>>(kValueDims, Array<Any>())) {
    const auto fields = value.As<Array<Any>>();
    const std::string input = std::to_string(fields[1].As<int64_t>()), at = std::to_string(fields[2].As<int64_t>());
    const bool negative = fields[3].As<int64_t>() != 0;
    // An input of the program is called as the user calls it.
    const auto v = fields[0].As<tir::Var>();
    const std::string own = v->name_hint.str().substr(0, v->name_hint.str().find_last_of("[("));
    put(v, (own.starts_with("region.") ? "input " + input + " " : own) + "[" + at + "]", negative ? " (negative)" : "");
  }
  for (const tir::Var& v : SizeVarsOf(f)) {
    if (!out.Has(v.get()) && v->name_hint.view().starts_with("dim.")) put(v, "dim." + std::to_string(next++));
  }
  return out;
}

int32_t ProgramBuilder::FunctionOf(const GlobalVar& var) {
  auto it = globals_.find(var->name_hint.str());
  if (it == globals_.end()) {
    throw CompileError("@" + var->name_hint.str() + " is no Relay function of this module, it cannot be called here");
  }
  return it->second;
}

int32_t ProgramBuilder::AddLambda(const VmLambda& lambda) {
  VmLambda added = lambda;
  added.index = Reserve(lambda.name);
  queue_.push_back(added);
  return added.index;
}

int32_t ProgramBuilder::ConstructorFunction(const Constructor& ctor) {
  bool fresh = false;
  int32_t& index = wrappers_.Insert(ctor.get(), &fresh);
  if (!fresh) return index;
  const auto n = static_cast<int32_t>(ctor->inputs.size());
  vm::Function f{
      ctor->name_hint.str(), n, 0, {static_cast<int32_t>(Opcode::kData), n, static_cast<int32_t>(ctor->tag), n}};
  for (int32_t i = 0; i < n; ++i) f.code.push_back(i);
  f.code.insert(f.code.end(), {static_cast<int32_t>(Opcode::kReturn), n});
  f.registers = AssignRegisters(&f.code, n);
  out_.program.functions.push_back(std::move(f));
  return index = static_cast<int32_t>(out_.program.functions.size()) - 1;
}

int32_t ProgramBuilder::Constant(const NDArray& value, int32_t device) {
  auto& all = out_.program.constants;
  auto& devices = out_.program.constant_devices;
  for (size_t i = all.size() > 64 ? all.size() - 64 : 0; i < all.size(); ++i) {
    if (all[i].same_as(value) && (!several() || devices[i] == device)) return static_cast<int32_t>(i);
  }
  value.Keep();
  all.push_back(value);
  if (several()) devices.push_back(device);
  return static_cast<int32_t>(all.size()) - 1;
}

int32_t ProgramBuilder::Message(const std::string& text) {
  auto [it, fresh] = messages_.insert({text, static_cast<int32_t>(out_.program.messages.size())});
  if (fresh) out_.program.messages.push_back(text);
  return it->second;
}

int32_t ProgramBuilder::View(const TensorType& type) {
  out_.program.views.push_back({"", ShapeOf(type), type->dtype});
  return static_cast<int32_t>(out_.program.views.size()) - 1;
}

void ProgramBuilder::NoteCopy(vm::CopyNote note, const Type& type) {
  if (note.from == note.to) return;
  note.bytes = relay::BytesOfValue(type);
  note.formula = relay::BytesFormula(type);
  out_.program.copies.push_back(std::move(note));
}

int32_t ProgramBuilder::HostSlot(const std::string& name, const relay::HostCall& call, int32_t device) {
  const auto next = static_cast<int32_t>(out_.program.packed.size());
  const auto [it, fresh] = host_.insert({{call.name, call.params, device}, next});
  if (fresh) {
    const auto function = (*Registry::Get(call.name))(call.params).As<PackedFunc>();
    out_.program.packed.push_back({name, function, device, call.name, call.params});
  }
  return it->second;
}

/// An operator whose function no library has: that of its definition, in this process.
int32_t ProgramBuilder::ProcessSlot(const Op& op, const Attrs& attrs, int32_t device) {
  auto function = [op, attrs](runtime::Args packed, runtime::RetValue* rv) {
    Array<ObjectRef> args;
    for (int i = 0; i < packed.size(); ++i) args.push_back(packed[i].As<ObjectRef>());
    *rv = relay::Evaluator::Get().EvalOp(op, attrs, args);
  };
  out_.program.packed.push_back({op->name.str(), PackedFunc(function), device, "", ""});
  return static_cast<int32_t>(out_.program.packed.size()) - 1;
}

int32_t ProgramBuilder::Packed(const CallNode* call) {
  const auto* op = call->op.as<OpNode>();
  if (op) {
    const Op called = GetRef<Op>(op);
    const relay::HostCall host = relay::HostCallOf(called, call->attrs);
    if (!host.name.empty()) return HostSlot(op->name.str(), host, DeviceOf(call));
    // Those that no pass has put into a group, too: a pipeline without FuseOps runs here all the same.
    if (relay::DefOf(called)) return ProcessSlot(called, call->attrs, DeviceOf(call));
  }
  const std::string name = op ? op->name.str() : OperatorsOf(Downcast<Function>(call->op), kNameChars);
  DiagnosticList errors;
  errors.Error(call->span, "`" + name + "` has no code for shapes that are open" + (why_.empty() ? "" : ": " + why_),
               "give the inputs it depends on fixed shapes, or compute it by a function of the host");
  errors.ThrowIfAny();
  return -1;
}

int32_t ProgramBuilder::Kernel(const Function& graph, int32_t device) {
  // Equal stretches, of which unrolled programs and modules of many functions have most, are compiled once.
  std::vector<int32_t>& same_hash = kernels_[StructuralHash(graph)];
  for (int32_t known : same_hash) {
    const auto k = static_cast<size_t>(known);
    if (out_.program.kernels[k].device == device && StructuralEqual(out_.graphs[k].second, graph)) return known;
  }
  const auto index = static_cast<int32_t>(out_.graphs.size());
  const std::string symbol = "baton_region_" + std::to_string(index);
  vm::Kernel k{symbol, {}, {}, 0, device, {}};
  for (const Var& p : graph->params) k.inputs.push_back(InfoOf(p->name_hint().str(), TypeOf(p)));
  std::vector<TensorType> outputs;
  FlattenType(graph->body->checked_type(), &outputs);
  for (const TensorType& t : outputs) k.outputs.push_back(InfoOf("", t));
  out_.program.kernels.push_back(std::move(k));
  out_.graphs.push_back({symbol, graph});
  same_hash.push_back(index);
  return index;
}

VmProgram TranslateToVm(const IRModule& mod, const std::vector<DeviceTarget>& devices, int64_t fallback,
                        std::vector<RegionNote>* notes) {
  return ProgramBuilder(PlacePrimitives(mod), devices, fallback, notes).Build();
}

}  // namespace baton::driver

// SPDX-License-Identifier: Apache-2.0
#include "driver/lower_graph.h"

#include <baton/ir/structural.h>
#include <baton/relay/functor.h>
#include <baton/relay/lower.h>
#include <baton/relay/op.h>
#include <baton/relay/op/annotation.h>
#include <baton/relay/transform.h>
#include <baton/runtime/plan_memory.h>
#include <baton/support/json.h>
#include <baton/support/pointer_map.h>
#include <baton/tir/functor.h>
#include <baton/tir/intrin.h>
#include <baton/tir/lower.h>

#include <algorithm>
#include <memory>
#include <unordered_map>

#include "driver/compiled_graph.h"
#include "driver/debug_source.h"
#include "driver/donations.h"
#include "driver/graph_values.h"
#include "driver/kernel_table.h"
#include "driver/size_words.h"
#include "driver/step_functions.h"
#include "relay/transform/whole_states.h"
#include "runtime/dynamic_json.h"

namespace baton::driver {

using runtime::PlanMemory;
using runtime::PlannedBuffer;

using relay::CallNode;
using relay::ConstantNode;
using relay::Expr;
using relay::Function;
using relay::FunctionNode;
using relay::LetNode;
using relay::TupleGetItemNode;
using relay::TupleNode;
using relay::VarNode;

/// Tensor types of a value, tuples flattened; false for other types or shapes that are not static.
bool FlattenType(const Type& type, std::vector<TensorType>* out) {
  std::vector<Type> work{type};
  while (!work.empty()) {
    Type t = work.back();
    work.pop_back();
    if (const auto* tensor = t.as<TensorTypeNode>()) {
      std::vector<int64_t> shape;
      if (!relay::StaticShape(tensor->shape, &shape)) return false;
      out->push_back(GetRef<TensorType>(tensor));
    } else if (const auto* tuple = t.as<TupleTypeNode>()) {
      for (size_t i = tuple->fields.size(); i-- > 0;) work.push_back(tuple->fields[static_cast<int64_t>(i)]);
    } else {
      return false;
    }
  }
  return true;
}

std::vector<int64_t> ResultTree(const Type& type) {
  std::vector<int64_t> tree;
  std::vector<Type> work{type};
  while (!work.empty()) {
    const Type t = work.back();
    work.pop_back();
    const auto* tuple = t.as<TupleTypeNode>();
    tree.push_back(tuple ? static_cast<int64_t>(tuple->fields.size()) : -1);
    for (size_t i = tuple ? tuple->fields.size() : 0; i-- > 0;) work.push_back(tuple->fields[static_cast<int64_t>(i)]);
  }
  return tree;
}

std::vector<int64_t> ShapeOf(const TensorType& t) {
  std::vector<int64_t> shape;
  relay::StaticShape(t->shape, &shape);
  return shape;
}

size_t ConstantTable::Add(const NDArray& value) {
  const auto [it, fresh] = index.try_emplace(equal.FirstOf(value).get(), list.size());
  if (fresh) {
    list.push_back({bytes, value});
    // A line of slack, so that a vector load at the end stays inside.
    bytes += (value.nbytes() + 127) / 64 * 64;
  }
  return it->second;
}

namespace {

PrimExpr Handle(const PrimExpr& base, const PrimExpr& offset) { return tir::ptr_offset(base, offset); }

PrimExpr IoHandle(const tir::Var& io, int index) { return tir::load_handle(io, PrimExpr(static_cast<int64_t>(index))); }

/// Bytes of a tensor: a literal, else the word that holds them.
struct Bytes {
  uint64_t literal = 0;
  int32_t word = -1;
};
struct Step {
  GlobalVar kernel;  // null: copy `in` to `out`
  std::vector<TensorPlace> in, out;
  Bytes bytes;  // of a copy
  Span span;
  size_t workspace = 0;  // its buffer in `sizes_`, of a dynamic graph
};
/// A buffer in the arena: steps that write it and read it last.
struct Lifetime {
  Bytes bytes;
  int first = 0, last = 0;
  uint64_t offset = 0;  // of a static graph
  size_t planned = 0;   // of a dynamic one, in `sizes_`
};
/// An input that is appended to: the word with its rows after it, and whether new ones are copied there.
struct AppendedTo {
  int32_t rows = -1;
  bool copied = false;
};

/// The inputs and outputs that steps read and write; `final` gives the last place of a tensor.
template <class Final>
std::vector<StepUse> UsesOf(const std::vector<Step>& steps, const KernelTable& kernels, const Final& final) {
  std::vector<StepUse> uses;
  for (const Step& s : steps) {
    StepUse use;
    if (s.kernel.defined()) use.function = kernels.FunctionOf(s.kernel);
    auto number = [&](const TensorPlace& p) {
      const TensorPlace at = final(p);
      return at.kind == TensorPlace::kIo ? at.index : -1;
    };
    for (const TensorPlace& p : s.in) use.in.push_back(number(p));
    for (const TensorPlace& p : s.out) use.out.push_back(number(p));
    uses.push_back(std::move(use));
  }
  return uses;
}

class GraphLowerer {
 public:
  /// `constants` is shared with other graphs: their data comes before.
  GraphLowerer(KernelTable* kernels, ConstantTable* constants) : kernels_(kernels), constants_(constants) {}

  void Run(const Function& main, const std::string& entry) {
    desc_.entry = entry;
    dynamic_ = IsDynamicGraph(main);
    if (dynamic_) sizes_.AddDims(main);
    // Loads and stores assume an element's alignment alone: NumPy's arrays are taken as they are.
    desc_.io_alignment = 16;
    for (const relay::Var& p : main->params) {
      std::vector<TensorType> types;
      FlattenSymbolic(p->checked_type(), &types);
      Leaves leaves;
      for (size_t i = 0; i < types.size(); ++i) {
        std::string name = p->name_hint().str() + (types.size() > 1 ? "." + std::to_string(i) : "");
        leaves.push_back({{TensorPlace::kIo, static_cast<int>(desc_.inputs.size())}, types[i]});
        desc_.inputs.push_back(InfoOf(name, types[i]));
      }
      values_.Set(p.get(), std::move(leaves));
    }
    for (const Expr& e : DataflowOrder(main->body)) {
      if (const auto* let = e.as<LetNode>()) let_value_[let->var.get()] = let->value;
    }
    for (const Expr& e : DataflowOrder(main->body)) Visit(e);
    Outputs(main);
    Plan();
  }

  /// The entry function, with those that it calls, and its description, once the kernels are lowered.
  void Entry(Map<GlobalVar, BaseFunc>* functions, runtime::ExecutableDesc* desc, DebugSource* debug) {
    PlaceWorkspace();
    if (dynamic_) {
      sizes_.Finish(desc_.entry + ".sizes");
      desc_.dynamic = sizes_.shapes();
      functions->Set(GlobalVar(String(desc_.dynamic.sizes)), sizes_.Function());
    }
    functions->Set(GlobalVar(String(desc_.entry)), MakeEntry(debug));
    for (const auto& [var, segment] : segments_) functions->Set(var, segment);
    *desc = desc_;
  }
  /// The steps of a device with its own code in place of the entry function.
  std::vector<vm::KernelStep> Row(Map<GlobalVar, BaseFunc>* sizes, runtime::ExecutableDesc* desc) {
    if (dynamic_) {
      sizes_.Finish(desc_.entry + ".sizes");
      desc_.dynamic = sizes_.shapes();
      sizes->Set(GlobalVar(String(desc_.dynamic.sizes)), sizes_.Function());
    }
    using vm::StepPlace;
    auto place = [&](TensorPlace p) -> StepPlace {
      p = Final(p);
      if (p.kind == TensorPlace::kIo) return {StepPlace::kIo, p.index};
      const auto i = static_cast<size_t>(p.index);
      if (p.kind == TensorPlace::kConstant)
        return {StepPlace::kConstant, static_cast<int64_t>(constants_->list[i].first)};
      if (dynamic_) return {StepPlace::kArenaWord, sizes_.buffer(buffers_[i].planned).offset};
      return {StepPlace::kArena, static_cast<int64_t>(buffers_[i].offset)};
    };
    std::vector<vm::KernelStep> row;
    for (const Step& s : steps_) {
      vm::KernelStep step;
      for (const std::vector<TensorPlace>* list : {&s.in, &s.out}) {
        for (const TensorPlace& p : *list) step.args.push_back(place(p));
      }
      if (s.kernel.defined()) {
        step.symbol = s.kernel->name_hint.str();
        for (const tir::Var& v : kernels_->SizeVars(s.kernel)) {
          step.args.push_back({StepPlace::kWord, sizes_.WordOfVar(v)});
        }
      } else {
        step.bytes = s.bytes.literal;
        step.word = s.bytes.word;
      }
      row.push_back(std::move(step));
    }
    *desc = desc_;
    return row;
  }
  void NoteOrigins() const {
    for (const Step& s : steps_) {
      std::string from = s.kernel.defined() ? SpanText(s.span) : "";
      if (!from.empty()) kernels_->NoteOrigin(s.kernel, from);
    }
  }
  /// Describes its steps for people. After Entry, or Row, which has no functions.
  GraphSteps Steps() const {
    GraphSteps out{desc_.entry, parts_, {}};
    for (const Step& s : steps_) {
      ModelStep step{"copy", "copy", SpanText(s.span), "0", std::to_string(2 * s.bytes.literal)};
      if (s.bytes.word >= 0) step.bytes = "s" + std::to_string(s.bytes.word) + " 2 *";
      if (s.kernel.defined()) {
        const Function& f = kernels_->FunctionOf(s.kernel);
        step.kernel = s.kernel->name_hint.str();
        step.operators = OperatorsOf(f);
        const FlopsAndBytes work = FlopsAndBytesOf(f);
        const auto word_of = [this](const tir::Var& v) { return sizes_.WordOfVar(v); };
        step.flops = Postfix(work.flops, word_of), step.bytes = Postfix(work.bytes, word_of);
      }
      out.steps.push_back(step);
    }
    return out;
  }

 private:
  Bytes BytesOfTensor(const TensorType& t) {
    if (dynamic_) return {0, sizes_.BytesOf(t)};
    return {BytesOf(t), -1};
  }
  runtime::TensorInfo InfoOf(const std::string& name, const TensorType& t) {
    if (dynamic_) return sizes_.AddTensor(name, t);
    return {name, ShapeOf(t), t->dtype};
  }

  void Visit(const Expr& e) {
    if (values_.Has(e)) return;
    if (const auto* c = e.as<ConstantNode>()) {
      values_.Set(e.get(), {{{TensorPlace::kConstant, static_cast<int>(constants_->Add(c->data))}, c->tensor_type()}});
    } else if (const auto* let = e.as<LetNode>()) {
      values_.SetSame(e, let->body);
    } else if (auto it = let_value_.find(e.get()); it != let_value_.end()) {
      values_.SetSame(e, it->second);
    } else if (const auto* t = e.as<TupleNode>()) {
      values_.SetTuple(t);
    } else if (const auto* g = e.as<TupleGetItemNode>()) {
      values_.SetField(g);
    } else if (const auto* call = e.as<CallNode>()) {
      std::vector<TensorType> types;
      FlattenSymbolic(e->checked_type(), &types);
      if (relay::IsView(call->op)) {
        values_.Set(e.get(), {{values_.At(call->args[0]).place, types[0]}});
        return;
      }
      if (relay::IsAppend(call->op)) return Append(call, types[0]);
      Step s;
      s.kernel = kernels_->Of(Downcast<Function>(call->op));
      s.span = SpanOfKernel(call);
      for (const Expr& a : call->args) {
        for (const Leaf& l : values_.LeavesOf(a)) s.in.push_back(l.place);
      }
      Leaves leaves;
      for (const TensorType& t : types) {
        TensorPlace p{TensorPlace::kArena, static_cast<int>(buffers_.size())};
        const auto step = static_cast<int>(steps_.size());
        buffers_.push_back({BytesOfTensor(t), step, step, 0, 0});
        s.out.push_back(p);
        leaves.push_back({p, t});
      }
      steps_.push_back(s);
      values_.Set(e.get(), std::move(leaves));
    }
  }

  /// The rows of a state are written behind it by what makes them, or else copied there.
  void Append(const CallNode* call, const TensorType& type) {
    const Leaf &state = values_.At(call->args[0]), &rows = values_.At(call->args[1]);
    if (state.place.kind != TensorPlace::kIo || !dynamic_) throw CompileError("what is appended to is no open input");
    TensorPlace behind = state.place;
    behind.word = BytesOfTensor(state.type).word;
    const bool in_place = rows.place.kind == TensorPlace::kArena && !redirect_.count(rows.place.index);
    if (in_place) {
      redirect_[rows.place.index] = behind;
    } else {
      steps_.push_back({GlobalVar(), {rows.place}, {behind}, BytesOfTensor(rows.type), call->span});
    }
    states_[state.place.index] = {sizes_.WordOf(type->shape[0]), !in_place};
    values_.Set(call, {{state.place, type}});
  }

  /// The states for sessions, for the manifest; their results are not outputs.
  void States(const Function& main, Leaves* results) {
    const auto inputs = main->GetAttr<Array<int64_t>>(relay::transform::kStateInputs, Array<int64_t>());
    const auto whole = main->GetAttr<Array<int64_t>>(relay::transform::kWholeStates, Array<int64_t>());
    if (inputs.empty() && whole.empty()) return;
    for (int64_t i : inputs) {
      const int input = values_.At(main->params[i]).place.index;
      if (!states_.count(input)) throw CompileError("a state is not appended to in place");
      kept_.push_back({int64_t{input}, int64_t{states_.at(input).rows}, int64_t{states_.at(input).copied}});
    }
    results->resize(results->size() - inputs.size());
    const auto n = static_cast<int64_t>(results->size());
    for (size_t k = 0; k < whole.size(); ++k) {
      const int input = values_.At(main->params[whole[static_cast<int64_t>(k)]]).place.index;
      kept_.push_back({int64_t{input}, n - static_cast<int64_t>(whole.size() - k), 0, 0});
    }
    desc_.result_tree = n == 1 ? std::vector<int64_t>{} : std::vector<int64_t>{n};
    desc_.result_tree.resize(desc_.result_tree.size() + results->size(), -1);
  }

  void Outputs(const Function& main) {
    Leaves results = values_.LeavesOf(main->body);
    desc_.result_tree = ResultTree(Downcast<Type>(main->body->checked_type_));
    States(main, &results);
    std::vector<bool> taken(buffers_.size());
    for (const auto& [buffer, place] : redirect_) taken[static_cast<size_t>(buffer)] = true;
    int base = static_cast<int>(desc_.inputs.size());
    auto names = main->GetAttr<Array<String>>("output_names", Array<String>());
    for (size_t i = 0; i < results.size(); ++i) {
      TensorPlace& p = results[i].place;
      TensorPlace slot{TensorPlace::kIo, base + static_cast<int>(i)};
      std::string name = i < names.size() ? names[static_cast<int64_t>(i)].str() : "output" + std::to_string(i);
      desc_.outputs.push_back(InfoOf(name, results[i].type));
      result_types_.push_back(results[i].type);
      if (p.kind == TensorPlace::kArena && !taken[p.index]) {
        // Written in place; all readers read the output.
        taken[p.index] = true;
        redirect_[p.index] = slot;
      } else {
        Step copy;
        copy.in.push_back(p);
        copy.out.push_back(slot);
        copy.bytes = BytesOfTensor(results[i].type);
        copies_.push_back(copy);
      }
    }
    for (Step& c : copies_) steps_.push_back(c);
    Donations(main);
    if (kept_.empty()) return;
    support::JsonWriter w(&desc_.state);
    w.BeginArray();
    for (const std::vector<int64_t>& facts : kept_) runtime::WriteInts(&w, facts);
    w.EndArray();
  }

  /// Which outputs may lie in the memory of donated inputs, for the manifest: beside states, in pairs.
  void Donations(const Function& main) {
    const auto names = main->GetAttr<Array<String>>(kDonated, Array<String>());
    const bool all = main->HasNonzeroAttr(kOverwrites);
    if (names.empty() && !all) return;
    PointerSet states;
    for (int64_t i : main->GetAttr<Array<int64_t>>(relay::transform::kStateInputs, Array<int64_t>())) {
      states.Add(main->params[i].get());
    }
    const auto whole = main->GetAttr<Array<int64_t>>(relay::transform::kWholeStates, Array<int64_t>());
    for (int64_t i : whole) states.Add(main->params[i].get());
    std::vector<DonationSide> io;
    for (const relay::Var& p : main->params) {
      for (const Leaf& l : values_.LeavesOf(p))
        io.push_back({desc_.inputs[io.size()].name, l.type, states.Has(p.get())});
    }
    for (const runtime::TensorInfo& out : desc_.outputs)
      io.push_back({out.name, result_types_[io.size() - desc_.inputs.size()],
                    io.size() - desc_.inputs.size() + whole.size() >= desc_.outputs.size()});
    const std::vector<StepUse> uses = UsesOf(steps_, *kernels_, [this](const TensorPlace& p) { return Final(p); });
    const size_t inputs = desc_.inputs.size();
    for (const auto& [input, output] :
         all ? PairOverwrites(io, inputs, uses) : PairDonations(names, io, inputs, uses)) {
      kept_.push_back({input, output});
    }
  }

  TensorPlace Final(TensorPlace p) const {
    if (p.kind != TensorPlace::kArena) return p;
    auto it = redirect_.find(p.index);
    return it == redirect_.end() ? p : it->second;
  }

  void Plan() {
    for (size_t i = 0; i < steps_.size(); ++i) {
      for (const TensorPlace& p : steps_[i].in) {
        if (p.kind == TensorPlace::kArena) buffers_[p.index].last = static_cast<int>(i);
      }
    }
    std::vector<PlannedBuffer> planned;
    std::vector<int> index(buffers_.size(), -1);
    for (size_t i = 0; i < buffers_.size(); ++i) {
      if (redirect_.count(static_cast<int>(i))) continue;
      Lifetime& b = buffers_[i];
      if (dynamic_) {
        b.planned = sizes_.AddBuffer(b.first, b.last, b.bytes.word);
        continue;
      }
      index[i] = static_cast<int>(planned.size());
      planned.push_back({b.bytes.literal, b.first, b.last, 0});
    }
    desc_.arena_bytes = PlanMemory(&planned);
    for (size_t i = 0; i < buffers_.size(); ++i) {
      if (index[i] >= 0) buffers_[i].offset = planned[index[i]].offset;
    }
    desc_.constants_bytes = constants_->bytes;
  }

  /// Calls of functions of kPart steps each, where there are many: what LLVM does to one function grows faster than it.
  Array<tir::Stmt> InSegments(const Array<tir::Stmt>& steps) {
    // A copy is loads and stores, each of which LLVM compares with all others.
    constexpr size_t kWhole = 512, kPart = 64, kCopy = 8;
    auto weight = [&](size_t i) { return steps_[i].kernel.defined() ? 1 : kCopy; };
    size_t all = 0;
    for (size_t i = 0; i < steps.size(); ++i) all += weight(i);
    parts_ = {{desc_.entry, steps.size()}};
    if (all <= kWhole) return steps;
    parts_.clear();
    Array<tir::Stmt> calls;
    for (size_t begin = 0, end; begin < steps.size(); begin = end) {
      Array<tir::Stmt> segment;
      size_t part = 0;
      for (end = begin; end < steps.size() && part < kPart; ++end) {
        segment.push_back(steps[static_cast<int64_t>(end)]);
        part += weight(end);
      }
      const std::string symbol = desc_.entry + ".part" + std::to_string(segments_.size());
      parts_.push_back({symbol, end - begin});
      tir::PrimFunc f = OfSteps(tir::SeqStmt::Flatten(segment), entry_params_, symbol);
      f.CopyOnWrite()->span = segment[0]->span;
      const GlobalVar var{String(symbol)};
      segments_.push_back({var, f});
      tir::Stmt call = tir::Evaluate(
          PrimExpr(tir::Call(DataType::Int(32), var, Array<PrimExpr>(entry_params_.begin(), entry_params_.end()))));
      call->span = segment[0]->span;
      calls.push_back(call);
    }
    return calls;
  }

  /// Workspace of kernels. In a static graph one place behind the planned buffers serves all, since kernels run one
  /// after the other; in a dynamic one each is a buffer that lives for its step.
  void PlaceWorkspace() {
    uint64_t most = 0;
    for (size_t i = 0; i < steps_.size(); ++i) {
      Step& s = steps_[i];
      const PrimExpr bytes = s.kernel.defined() ? kernels_->Workspace(s.kernel) : PrimExpr();
      if (!bytes.defined()) continue;
      if (dynamic_) {
        const auto step = static_cast<int32_t>(i);
        s.workspace = sizes_.AddBuffer(step, step, sizes_.Bytes(bytes));
      } else {
        most = std::max(most, static_cast<uint64_t>(*tir::as_const_int(bytes)));
      }
    }
    if (!most) return;
    workspace_ = (desc_.arena_bytes + 63) / 64 * 64;
    desc_.arena_bytes = workspace_ + most;
  }

  tir::PrimFunc MakeEntry(DebugSource* debug) {
    tir::Var io("io", DataType::Handle()), constants("constants", DataType::Handle()),
        arena("arena", DataType::Handle()), sizes("s", DataType::Handle());
    auto in_arena = [&](uint64_t literal, size_t planned) {
      return dynamic_ ? Handle(arena, sizes_.LoadOffset(sizes, planned))
                      : Handle(arena, PrimExpr(static_cast<int64_t>(literal)));
    };
    auto pointer = [&](TensorPlace p) {
      p = Final(p);
      switch (p.kind) {
        case TensorPlace::kIo:
          return p.word < 0 ? IoHandle(io, p.index) : Handle(IoHandle(io, p.index), sizes_.Load(sizes, p.word));
        case TensorPlace::kConstant:
          return Handle(constants,
                        PrimExpr(static_cast<int64_t>(constants_->list[static_cast<size_t>(p.index)].first)));
        default:
          return in_arena(buffers_[p.index].offset, buffers_[p.index].planned);
      }
    };
    Array<tir::Stmt> seq;
    for (const Step& s : steps_) {
      Array<PrimExpr> args;
      tir::Stmt stmt;
      if (s.kernel.defined()) {
        for (const TensorPlace& p : s.in) args.push_back(pointer(p));
        for (const TensorPlace& p : s.out) args.push_back(pointer(p));
        for (const tir::Var& v : kernels_->SizeVars(s.kernel)) args.push_back(sizes_.LoadVar(sizes, v));
        if (kernels_->Workspace(s.kernel).defined()) args.push_back(in_arena(workspace_, s.workspace));
        stmt = tir::Evaluate(PrimExpr(tir::Call(DataType::Int(32), s.kernel, args)));
      } else {
        const PrimExpr bytes =
            dynamic_ ? sizes_.Load(sizes, s.bytes.word) : PrimExpr(static_cast<int64_t>(s.bytes.literal));
        stmt = tir::Evaluate(
            PrimExpr(tir::Call(DataType::Int(32), tir::intrin::memcpy, {pointer(s.out[0]), pointer(s.in[0]), bytes})));
      }
      stmt->span = debug ? debug->Step(s.kernel.defined() ? "%" + s.kernel->name_hint.str() : "copy", s.span) : s.span;
      seq.push_back(stmt);
    }
    entry_params_ = {io, constants, arena, sizes};
    tir::PrimFunc entry(entry_params_, tir::SeqStmt::Flatten(InSegments(seq)));
    entry = WithAttr(entry, attr::kGlobalSymbol, Any(desc_.entry));
    if (!seq.empty()) entry.CopyOnWrite()->span = seq[0]->span;
    return WithAttr(entry, "model_entry", Any(1));
  }

  KernelTable* kernels_;
  ConstantTable* constants_;
  runtime::ExecutableDesc desc_;
  GraphValues values_;
  std::unordered_map<const Object*, Expr> let_value_;  // by the variable
  std::vector<Lifetime> buffers_;
  bool dynamic_ = false;
  SizeWords sizes_;
  uint64_t workspace_ = 0;  // of all kernels of a static graph: its offset
  std::vector<Step> steps_, copies_;
  std::unordered_map<int, TensorPlace> redirect_;  // buffers that lie elsewhere
  std::unordered_map<int, AppendedTo> states_;
  std::vector<TensorType> result_types_;    // of the outputs
  std::vector<std::vector<int64_t>> kept_;  // facts of each state, then input and output of each donation
  Array<tir::Var> entry_params_;
  std::vector<std::pair<std::string, size_t>> parts_;  // of the entry: a function each, and how many steps it has
  std::vector<std::pair<GlobalVar, tir::PrimFunc>> segments_;
};

}  // namespace

relay::Function MainOf(const IRModule& mod) {
  BaseFunc f = mod->Lookup("main");
  if (!f.as<relay::FunctionNode>()) throw CompileError("@main is no Relay function");
  return Downcast<relay::Function>(f);
}

bool IsDynamicGraph(const Function& main) {
  if (!main->GetAttr<Array<Any>>(kValueDims, Array<Any>()).empty()) return true;
  for (const relay::Var& p : main->params) {
    std::vector<TensorType> types;
    if (!FlattenType(p->checked_type(), &types)) return true;
  }
  return false;
}

namespace {

/// Why the loops of a group need extents that are open; null where they do not.
const char* NeedsExtents(const Function& group) {
  for (const relay::ExprNode* n : relay::PostOrderNodes(group->body)) {
    const auto* call = n->IsInstance<CallNode>() ? static_cast<const CallNode*>(n) : nullptr;
    const relay::OpDef* def = call ? relay::DefOf(call->op) : nullptr;
    if (!def || !def->traits.needs_extents) continue;
    if (const char* why = def->traits.needs_extents(call)) return why;
  }
  return nullptr;
}

}  // namespace

bool CanLowerGraph(const Function& main, std::string* why) {
  std::vector<TensorType> types;
  auto no = [&](std::string text) {
    if (why->empty()) *why = std::move(text);
    return false;
  };
  for (const relay::Var& p : main->params) {
    types.clear();
    if (!p->checked_type_.defined() || !FlattenSymbolic(p->checked_type(), &types)) {
      return no("input `" + p->name_hint().str() + "` has a shape without names for its extents");
    }
  }
  std::vector<tir::Var> dims;
  if (!BoundDims(main, &dims, why)) return false;
  const bool open = IsDynamicGraph(main);
  PointerSet bound;
  for (const tir::Var& v : dims) bound.Add(v.get());
  auto knows = [&](const TensorType& t) {
    bool all = true;
    for (const PrimExpr& d : t->shape) {
      tir::PostOrderVisitExpr(d,
                              [&](const PrimExpr& x) { all = all && (!x.as<tir::VarNode>() || bound.Has(x.get())); });
    }
    return all;
  };
  for (const Expr& e : DataflowOrder(main->body)) {
    // Tuples, their fields and bindings are made of values that are asked: a type nested n deep is not walked n times.
    const bool of_values = e.as<TupleNode>() || e.as<TupleGetItemNode>() || e.as<LetNode>();
    types.clear();
    const bool known =
        e->checked_type_.defined() &&
        (of_values || (FlattenSymbolic(e->checked_type(), &types) && std::all_of(types.begin(), types.end(), knows)));
    if (!known) {
      return no(
          "a value of the program has a shape that its inputs' shapes do not decide, or is no tensor" +
          (e->span.defined() && e->span->source_name.defined() ? " (" + e->span->source_name->name.str() + ")" : ""));
    } else if (const auto* call = e.as<CallNode>()) {
      const auto* f = call->op.as<FunctionNode>();
      if (!relay::IsView(call->op) && !relay::IsAppend(call->op) && !(f && f->HasNonzeroAttr(attr::kPrimitive))) {
        const auto* op = call->op.as<OpNode>();
        return no(op ? "operator `" + op->name.str() + "` runs on the host" : "a function is called");
      }
      if (const char* needs = open && f ? NeedsExtents(GetRef<Function>(f)) : nullptr) return no(needs);
    } else if (!of_values && !e.as<ConstantNode>() && !e.as<VarNode>()) {
      return no("the program has control flow or closures (" + e.get()->GetTypeKey() + ")");
    }
  }
  return true;
}

LoweredGraphs LowerGraphs(const std::vector<std::pair<std::string, Function>>& graphs, const Target& target,
                          const LowerOptions& options) {
  DebugSource source(options.debug_file);
  DebugSource* debug = options.debug == codegen::DebugLevel::kLines ? &source : nullptr;
  LoweredGraphs out;
  KernelTable kernels;
  std::vector<std::unique_ptr<GraphLowerer>> lowerers;
  for (const auto& [entry, func] : graphs) {
    lowerers.push_back(std::make_unique<GraphLowerer>(&kernels, &out.constants));
    lowerers.back()->Run(func, entry);
    if (debug) lowerers.back()->NoteOrigins();
  }
  Map<GlobalVar, BaseFunc> functions = kernels.Lower(target, debug);
  for (size_t i = 0; i < graphs.size(); ++i) {
    runtime::ExecutableDesc desc;
    lowerers[i]->Entry(&functions, &desc, debug);
    if (options.debug != codegen::DebugLevel::kNone) out.steps.push_back(lowerers[i]->Steps());
    out.graphs.push_back(desc);
  }
  out.mod = IRModule(functions);
  out.debug_source = source.text();
  return out;
}

LoweredRows LowerRows(const std::vector<std::pair<std::string, Function>>& graphs, const Target& target) {
  With<Target> scope(target);
  LoweredRows out;
  KernelTable kernels;
  std::vector<std::unique_ptr<GraphLowerer>> lowerers;
  for (const auto& [entry, func] : graphs) {
    lowerers.push_back(std::make_unique<GraphLowerer>(&kernels, &out.constants));
    lowerers.back()->Run(func, entry);
  }
  out.kernels = LowerTir(IRModule(kernels.Loops(target, nullptr)), target);
  Map<GlobalVar, BaseFunc> sizes;
  for (const auto& lowerer : lowerers) {
    out.graphs.emplace_back();
    out.rows.push_back(lowerer->Row(&sizes, &out.graphs.back()));
    out.steps.push_back(lowerer->Steps());
  }
  out.sizes = IRModule(sizes);
  return out;
}

LoweredModel LowerGraph(const Function& main, const Target& target, const LowerOptions& options) {
  LoweredGraphs one = LowerGraphs({{runtime::ExecutableDesc().entry, main}}, target, options);
  return {one.mod, one.graphs[0], std::move(one.constants), std::move(one.debug_source)};
}

}  // namespace baton::driver

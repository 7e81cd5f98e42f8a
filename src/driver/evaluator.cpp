// SPDX-License-Identifier: Apache-2.0
// Runs single operators and fusion groups on concrete arrays: by the loop interpreter when they are small, else by
// code that is compiled once a shape.
#include "driver/evaluator.h"

#include <baton/ir/structural.h>
#include <baton/relay/device.h>
#include <baton/relay/evaluator.h>
#include <baton/relay/functor.h>
#include <baton/relay/lower.h>
#include <baton/relay/op.h>
#include <baton/relay/op/annotation.h>
#include <baton/relay/transform.h>
#include <baton/runtime/c_backend_api.h>
#include <baton/tir/interpreter.h>
#include <relay/op/host_params.h>
#include <relay/transform/lift_arrays.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "driver/compiled_graph.h"

namespace baton::driver {

using relay::Call;
using relay::Constant;
using relay::Expr;
using relay::Function;
using relay::OpDef;
using relay::Tuple;
using relay::Var;

namespace {

// Work up to which interpreting beats compiling (which takes some ten milliseconds). The work alone decides, not how
// often it comes back: compiled code may round otherwise, and what a fold gives must not depend on what was folded
// before.
constexpr int64_t kInterpretElements = 16 << 10;
constexpr int64_t kInterpretSteps = 200 << 10;
/// The growth of both for a function of so many arguments: code of thousands takes the square of them to make.
int64_t MoreWork(size_t args) {
  const auto n = static_cast<int64_t>(args);
  return n > 255 ? n * n : 0;
}

struct Kernel {
  std::mutex mutex;
  Function func;
  tir::PrimFunc loops;
  CompiledGraph code;
  std::vector<TensorType> outputs;
  bool tuple = false;
  bool large = false;  ///< takes too many steps to be interpreted, or has what the interpreter does not know
};

void FlattenValue(const ObjectRef& value, std::vector<NDArray>* out) {
  std::vector<ObjectRef> work{value};
  while (!work.empty()) {
    ObjectRef v = work.back();
    work.pop_back();
    if (v.as<runtime::NDArrayObj>()) {
      out->push_back(Downcast<NDArray>(v));
    } else if (v.as<runtime::ArrayObj>()) {
      Array<ObjectRef> fields = Downcast<Array<ObjectRef>>(v);
      for (size_t i = fields.size(); i-- > 0;) work.push_back(fields[static_cast<int64_t>(i)]);
    } else {
      throw RuntimeError("an operator was given a value of type " +
                         (v.defined() ? v.get()->GetTypeKey() : std::string("null")));
    }
  }
}

TensorType TypeOfArray(const NDArray& a) {
  Array<PrimExpr> shape;
  for (int64_t d : a.shape()) shape.push_back(PrimExpr(d));
  return TensorType(shape, a.dtype());
}

/// The value as an expression of typed parameters, which are appended to `params`.
Expr ParamsOf(const ObjectRef& value, Array<Var>* params) {
  if (value.as<runtime::NDArrayObj>()) {
    Type t = TypeOfArray(Downcast<NDArray>(value));
    Var v("p" + std::to_string(params->size()), t);
    v->checked_type_ = t;
    params->push_back(v);
    return v;
  }
  Array<Expr> fields;
  Array<Type> types;
  for (const ObjectRef& f : Downcast<Array<ObjectRef>>(value)) {
    if (!f.as<runtime::NDArrayObj>()) throw UnsupportedError("an operator was given nested tuples");
    fields.push_back(ParamsOf(f, params));
    types.push_back(Downcast<Type>(fields.back()->checked_type_));
  }
  Tuple t(fields);
  t->checked_type_ = TupleType(types);
  return t;
}

class DriverEvaluator : public relay::Evaluator {
 public:
  ObjectRef EvalOp(const Op& op, const Attrs& attrs, const Array<ObjectRef>& args) override {
    if (const auto* on = relay::AsOnDevice(op, attrs)) {
      if (on->is_fixed) RequireDevice(args[0], on->device_type, op->name.c_str());
      return args[0];
    }
    if (const auto* copy = relay::AsDeviceCopy(op, attrs)) {
      if (copy->src_dev_type > 0) RequireDevice(args[0], copy->src_dev_type, op->name.c_str());
      return copy->dst_dev_type > 0 ? relay::MoveValue(args[0], copy->dst_dev_type) : args[0];
    }
    auto run = [&](const Array<ObjectRef>& in) { return EvalOnHost(op, attrs, in); };
    if (op.same_as(relay::op::vm_reshape_tensor) && args.size() == 2) {  // the shape is the host's
      const Device device = relay::DeviceOfValue(args[0]);
      return OnDevice({args[0], relay::MoveValue(args[1], device.device_type)}, op->name.view(), run);
    }
    return OnDevice(args, op->name.view(), run);
  }

  int64_t WantedDevice(const Op& op, const Attrs& attrs) override {
    if (const auto* on = relay::AsOnDevice(op, attrs)) return on->is_fixed ? on->device_type : -1;
    const auto* copy = relay::AsDeviceCopy(op, attrs);
    return copy ? copy->src_dev_type : -1;
  }

  bool OnlyPlaces(const Op& op) override {
    return op.same_as(relay::op::on_device) || op.same_as(relay::op::device_copy);
  }

  ObjectRef EvalPrimitive(const Function& func, const Array<ObjectRef>& args) override {
    return OnDevice(args, "a fusion group", [&](const Array<ObjectRef>& in) {
      const relay::transform::LiftedArrays lifted = relay::transform::LiftArrays(func);
      Array<ObjectRef> all = in;
      for (const Constant& c : lifted.arrays) all.push_back(c->data);
      return PrimitiveOnHost(lifted.func, all);
    });
  }

 private:
  static void RequireDevice(const ObjectRef& value, int64_t device, const char* what) {
    // A value without arrays, such as an empty list, is on every device.
    const Device have = relay::DeviceOfValue(value, {static_cast<DLDeviceType>(device), 0});
    if (have.device_type == device) return;
    throw RuntimeError(std::string(what) + " wants its argument on " + relay::DeviceTypeName(device) + ", it lies on " +
                       relay::DeviceTypeName(have.device_type) +
                       "; a program for several devices is planned by PlanDevices");
  }

  /// Runs where the arguments are. Code is made for the host; a second device in host memory runs the same code.
  template <class F>
  static ObjectRef OnDevice(const Array<ObjectRef>& args, std::string_view what, F run) {
    bool host = true;
    for (const ObjectRef& a : args) {
      const auto* array = a.as<runtime::NDArrayObj>();
      if (array ? array->dl_tensor.device.device_type != kDLCPU : a.as<runtime::ArrayObj>() != nullptr) host = false;
    }
    if (host) return run(args);
    const Device device = relay::DeviceOfValue(Array<ObjectRef>(args));
    if (device.device_type == kDLCPU) return run(args);
    if (device.device_type != kDLExtDev) {
      throw UnsupportedError("no code is made for " + runtime::Device2String(device) + ", where `" + std::string(what) +
                             "` is to run; code is made for cpu and ext_dev");
    }
    Array<ObjectRef> in;
    for (const ObjectRef& a : args) in.push_back(relay::MoveValue(a, kDLCPU));
    return relay::MoveValue(run(in), device.device_type);
  }

  ObjectRef EvalOnHost(const Op& op, const Attrs& attrs, const Array<ObjectRef>& args) {
    const OpDef* def = relay::DefOf(op);
    if (!def) throw UnsupportedError("operator `" + op->name.str() + "` has no definition");
    if (def->host) {
      std::vector<NDArray> flat;
      for (const ObjectRef& a : args) FlattenValue(a, &flat);
      Array<NDArray> in;
      for (NDArray& a : flat) in.push_back(a.Contiguous());
      Array<NDArray> out = def->host(relay::HostParams(op, attrs), in);
      if (out.size() == 1) return out[0];
      return Array<ObjectRef>(out.begin(), out.end());
    }
    if (const relay::HostCall call = relay::HostCallOf(op, attrs); !call.name.empty()) {
      std::vector<BatonValue> values(args.size());
      for (size_t i = 0; i < args.size(); ++i)
        runtime::ValueTraits<ObjectRef>::To(args[static_cast<int64_t>(i)], &values[i]);
      const auto function = (*Registry::Get(call.name))(call.params).As<PackedFunc>();
      return function.CallPacked(values.data(), static_cast<int>(values.size())).As<ObjectRef>();
    }
    if (def->static_form) {
      Array<NDArray> values;
      Array<Expr> constants;
      for (const ObjectRef& a : args) {
        values.push_back(a.as<runtime::NDArrayObj>() ? Downcast<NDArray>(a) : NDArray());
        constants.push_back(relay::ValueToExpr(a));
        relay::transform::InferTypeOf(constants.back());
      }
      Call call(op, constants, attrs, Array<Type>());
      Expr e = def->static_form(call, values);
      if (e.defined()) return relay::Interpret(e, IRModule(Map<GlobalVar, BaseFunc>()));
      if (!def->lower)
        throw UnsupportedError("operator `" + op->name.str() + "` cannot be evaluated on these arguments");
    }
    // The result's type, from the values: operands that decide a shape are seen as constants.
    Array<Expr> constants;
    for (const ObjectRef& a : args) constants.push_back(relay::ValueToExpr(a));
    Call typed(op, constants, attrs, Array<Type>());
    Type out = relay::transform::InferTypeOf(typed);
    if (relay::IsView(op)) {
      const auto* t = out.as<TensorTypeNode>();
      std::vector<int64_t> shape;
      if (t && relay::StaticShape(t->shape, &shape)) {
        NDArray a = Downcast<NDArray>(args[0]).Contiguous();
        return a.View(shape, a.dtype());
      }
    }
    if (!def->lower) {
      if (!def->decompose) throw UnsupportedError("operator `" + op->name.str() + "` cannot be run");
      Expr e = def->decompose(typed, typed->args);
      return relay::Interpret(e, IRModule(Map<GlobalVar, BaseFunc>()));
    }
    Array<Var> params;
    Array<Expr> call_args;
    for (const ObjectRef& a : args) call_args.push_back(ParamsOf(a, &params));
    Call body(op, call_args, attrs, Array<Type>());
    body->checked_type_ = out;
    Function f(params, body, out);
    f = WithAttr(f, attr::kPrimitive, runtime::Any(1));
    return Run(Find(f).get(), args);
  }

  ObjectRef PrimitiveOnHost(const Function& func, const Array<ObjectRef>& args) {
    if (IsStatic(func)) return Run(Find(func).get(), args);
    // Lengths are known now, but not in the group's types: its operators run one by one.
    return relay::InterpretCall(Function(func->params, func->body), args, IRModule(Map<GlobalVar, BaseFunc>()));
  }

 public:
  /// The kernel of a static function, for callers that come back.
  std::shared_ptr<Kernel> Find(const Function& func) {
    uint64_t h = StructuralHash(func);
    std::lock_guard lock(mutex_);
    for (auto& k : kernels_[h]) {
      if (StructuralEqual(k->func, func)) return k;
    }
    auto k = std::make_shared<Kernel>();
    k->func = func;
    Type ret = func->ret_type.defined() ? func->ret_type : func->body->checked_type();
    if (const auto* t = ret.as<TupleTypeNode>()) {
      k->tuple = true;
      for (const Type& f : t->fields) k->outputs.push_back(Downcast<TensorType>(f));
    } else {
      k->outputs.push_back(Downcast<TensorType>(ret));
    }
    kernels_[h].push_back(k);
    return k;
  }

  static ObjectRef Run(Kernel* k, const Array<ObjectRef>& args, bool compiled = false) {
    std::vector<NDArray> buffers;
    for (const ObjectRef& a : args) FlattenValue(a, &buffers);
    int64_t elements = 0;
    for (NDArray& a : buffers) {
      a = a.Contiguous();
      if (reinterpret_cast<uintptr_t>(a.data()) % 16) a = a.Copy();
    }
    Array<ObjectRef> results;
    for (const TensorType& t : k->outputs) {
      std::vector<int64_t> shape;
      if (!relay::StaticShape(t->shape, &shape)) throw UnsupportedError("a kernel with a dynamic result shape");
      NDArray out = NDArray::Empty(shape, t->dtype);
      buffers.push_back(out);
      results.push_back(out);
    }
    for (const NDArray& a : buffers) elements += a.numel();
    Execute(k, buffers, elements, compiled);
    return k->tuple ? ObjectRef(results) : results[0];
  }

 private:
  static bool IsStatic(const Type& type) {
    std::vector<int64_t> shape;
    if (const auto* t = type.as<TensorTypeNode>()) return relay::StaticShape(t->shape, &shape);
    const auto* tuple = type.as<TupleTypeNode>();
    if (!tuple) return false;
    for (const Type& f : tuple->fields) {
      if (!IsStatic(f)) return false;
    }
    return true;
  }
  static bool IsStatic(const Function& func) {
    for (const Var& p : func->params) {
      if (!IsStatic(p->checked_type_.defined() ? Downcast<Type>(p->checked_type_) : p->type_annotation)) return false;
    }
    return IsStatic(func->ret_type.defined() ? func->ret_type : Downcast<Type>(func->body->checked_type_));
  }

  static void Execute(Kernel* k, const std::vector<NDArray>& buffers, int64_t elements, bool compiled) {
    runtime::EntryFunction entry = nullptr;
    bool large = false;
    {
      std::lock_guard lock(k->mutex);
      compiled = compiled || elements > kInterpretElements + MoreWork(buffers.size()) || k->large;
      if (!compiled) {
        if (!k->loops.defined()) {
          k->loops = relay::LowerPrimitive(k->func, "kernel", Target::Host());
          k->large = !tir::CanInterpret(k->loops);
        }
      } else if (!k->code.entry) {
        Array<Expr> args(k->func->params.begin(), k->func->params.end());
        Array<Var> params;
        Array<Expr> call_args;
        for (const Var& p : k->func->params) {
          Var v(p->name_hint(), p->type_annotation);
          v->checked_type_ = p->checked_type_.defined() ? Downcast<Type>(p->checked_type_) : p->type_annotation;
          params.push_back(v);
          call_args.push_back(v);
        }
        Call body(k->func, call_args, Attrs(), Array<Type>());
        body->checked_type_ = k->func->body->checked_type_;
        k->code = CompileGraph(Function(params, body), Target::Host(), 1);
      }
      if (compiled) entry = k->code.entry;
      large = k->large;
    }
    if (!entry) {
      const int64_t steps = kInterpretSteps + 16 * MoreWork(buffers.size());
      if (!large && tir::InterpretWithin(k->loops, buffers, steps)) return;
      {
        std::lock_guard lock(k->mutex);
        k->large = true;
      }
      Execute(k, buffers, elements, true);
      return;
    }
    std::vector<void*> io;
    for (const NDArray& a : buffers) io.push_back(a.data());
    NDArray arena = NDArray::Empty({static_cast<int64_t>(k->code.desc.arena_bytes)}, DataType::UInt(8));
    if (entry(io.data(), k->code.desc.constants, arena.ptr<uint8_t>(), nullptr) != 0) runtime::ThrowFromSlot();
  }

  std::mutex mutex_;
  std::unordered_map<uint64_t, std::vector<std::shared_ptr<Kernel>>> kernels_;
};

DriverEvaluator* const evaluator = [] {
  auto* e = new DriverEvaluator;
  relay::Evaluator::Set(e);
  return e;
}();

}  // namespace

StaticKernel FindKernel(const Function& func) {
  // A program that runs it, other than a fold, may compile what comes back.
  constexpr int kCompileAfter = 8;
  return [kernel = evaluator->Find(func), runs = std::make_shared<std::atomic<int>>(0)](const Array<ObjectRef>& args) {
    return DriverEvaluator::Run(kernel.get(), args, runs->load() >= kCompileAfter || ++*runs > kCompileAfter);
  };
}

}  // namespace baton::driver

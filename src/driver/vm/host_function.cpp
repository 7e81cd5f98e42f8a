// SPDX-License-Identifier: Apache-2.0
// What a program calls back for: kernels of shapes that are known only when it runs, compiled once a shape, and
// operators that are functions of the host.
#include <baton/ir/structural.h>
#include <baton/relay/evaluator.h>
#include <baton/relay/functor.h>
#include <baton/relay/lower.h>
#include <baton/relay/op.h>
#include <baton/relay/transform.h>
#include <baton/runtime/registry.h>
#include <baton/vm/value.h>
#include <relay/transform/plan_devices.h>

#include <map>
#include <mutex>

#include "driver/evaluator.h"
#include "driver/lower_graph.h"
#include "driver/vm/compile.h"

namespace baton::driver {

using relay::CallNode;
using relay::Expr;
using relay::Function;
using relay::Var;

namespace {

/// Type of a value: tensors and tuples; null for others.
Type TypeOfValue(const ObjectRef& value) {
  if (value.as<runtime::NDArrayObj>()) {
    const NDArray a = Downcast<NDArray>(value);
    Array<PrimExpr> shape;
    for (int64_t d : a.shape()) shape.push_back(PrimExpr(d));
    return TensorType(shape, a.dtype());
  }
  if (!value.as<runtime::ArrayObj>()) return Type();
  Array<Type> fields;
  for (const ObjectRef& f : Downcast<Array<ObjectRef>>(value)) {
    fields.push_back(TypeOfValue(f));
    if (!fields.back().defined()) return Type();
  }
  return TupleType(fields);
}

void ShapeKey(const ObjectRef& value, std::vector<int64_t>* key) {
  if (value.as<runtime::NDArrayObj>()) {
    const DLTensor* t = static_cast<const NDArray&>(value).tensor();
    key->push_back(t->ndim);
    key->insert(key->end(), t->shape, t->shape + t->ndim);
  } else if (value.as<runtime::ArrayObj>()) {
    const auto fields = Downcast<Array<ObjectRef>>(value);
    key->push_back(-1 - static_cast<int64_t>(fields.size()));
    for (const ObjectRef& f : fields) ShapeKey(f, key);
  }
}

/// The device of the first array in a value; the CPU if it has none.
Device DeviceOfFirst(const ObjectRef& value) {
  std::vector<ObjectRef> work{value};
  while (!work.empty()) {
    const ObjectRef v = work.back();
    work.pop_back();
    if (v.as<runtime::NDArrayObj>()) return Downcast<NDArray>(v).device();
    if (!v.as<runtime::ArrayObj>()) continue;
    const auto fields = Downcast<Array<ObjectRef>>(v);
    for (size_t i = fields.size(); i-- > 0;) work.push_back(fields[static_cast<int64_t>(i)]);
  }
  return Cpu();
}

/// A static function as code of a device: a program of it alone. Null where it takes tuples within tuples.
StaticKernel DeviceKernel(const Function& f, const Target& target, Device device) {
  // Kernels take tensors: a tuple is put together within.
  Array<Var> inner, params;
  Array<Expr> args;
  Array<runtime::Any> places;
  Map<Var, Expr> binds;
  auto tensor = [&](const String& name, const Type& type) {
    inner.push_back(Var(name, type));
    params.push_back(Var(name, type));
    args.push_back(params.back());
    places.push_back(runtime::Any(static_cast<int64_t>(device.device_type)));
    return inner.back();
  };
  for (const Var& p : f->params) {
    const auto* tuple = p->type_annotation.as<TupleTypeNode>();
    if (!tuple) {
      binds.Set(p, tensor(p->name_hint(), p->type_annotation));
      continue;
    }
    Array<Expr> fields;
    for (const Type& t : tuple->fields) {
      if (!t.as<TensorTypeNode>()) return StaticKernel();
      fields.push_back(tensor(p->name_hint(), t));
    }
    binds.Set(p, relay::Tuple(fields));
  }
  Function group(inner, relay::Bind(f->body, binds), f->ret_type, {}, f->attrs);
  group = WithAttr(group, attr::kPrimitive, runtime::Any(1));
  Function main(params, relay::Call(group, args, Attrs(), Array<Type>()), Type());
  main = WithAttr(main, relay::transform::kParamDevices, runtime::Any(places));
  main = WithAttr(main, relay::transform::kResultDevice, runtime::Any(static_cast<int64_t>(device.device_type)));
  const IRModule mod = relay::transform::InferType()(IRModule(Map<GlobalVar, BaseFunc>{{GlobalVar("main"), main}}));
  const runtime::Module code =
      CompileVmForDevices(mod, {{device.device_type, target}}, device.device_type, "its shapes come when it runs");
  const runtime::Module executor = code.GetFunction("default")(device).As<runtime::Module>();
  struct Kernel {
    std::mutex mutex;  // an executor serves one call at a time
    PackedFunc invoke;
  };
  auto kernel = std::make_shared<Kernel>();
  kernel->invoke = executor.GetFunction("invoke");
  return [kernel](const Array<ObjectRef>& args) {
    std::vector<runtime::Any> held{runtime::Any(String("main"))};
    for (const ObjectRef& a : args) {
      if (!a.as<runtime::ArrayObj>()) {
        held.push_back(runtime::Any(a));
      } else {
        for (const ObjectRef& field : Downcast<Array<ObjectRef>>(a)) held.push_back(runtime::Any(field));
      }
    }
    std::vector<BatonValue> values;
    for (const runtime::Any& a : held) values.push_back(a.raw());
    std::lock_guard lock(kernel->mutex);
    return kernel->invoke.CallPacked(values.data(), static_cast<int>(values.size())).As<ObjectRef>();
  };
}

/// A primitive function for arguments of these types; null if its result's shape depends on more than that.
Function Specialize(const Function& f, const Array<Type>& types) {
  Map<Var, Expr> binds;
  Array<Var> params;
  for (size_t i = 0; i < f->params.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    Var v(f->params[at]->name_hint(), types[at]);
    v->checked_type_ = types[at];
    params.push_back(v);
    binds.Set(f->params[at], v);
  }
  Expr body = relay::Bind(f->body, binds);
  if (body.same_as(f->body)) return Function();
  Type result;
  try {
    result = relay::transform::InferTypeOf(body);
  } catch (const Error& e) {
    if (e.ends_work()) throw;
    return Function();
  }
  std::vector<TensorType> flat;
  if (!FlattenType(result, &flat)) return Function();
  return Function(params, body, result, {}, f->attrs);
}

/// One call site. Shapes seen before find their kernel by a look-up.
class HostFunction {
 public:
  explicit HostFunction(Function f) : f_(std::move(f)), call_(f_->body.as<CallNode>()) {
    primitive_ = f_->HasNonzeroAttr(attr::kPrimitive);
    if (const String code = f_->GetAttr<String>(kCodeFor, String()); !code.empty()) target_ = Target(code.str());
    if (!primitive_ && (!call_ || !call_->op.as<OpNode>())) {
      throw RuntimeError("a host function of a program is a primitive function or a call of an operator");
    }
  }

  ObjectRef Call(runtime::Args packed) {
    Array<ObjectRef> args;
    for (int i = 0; i < packed.size(); ++i) args.push_back(packed[i].As<ObjectRef>());
    if (args.size() != f_->params.size()) throw RuntimeError("a host function was given another number of arguments");
    if (target_.defined()) return OnDevice(args);
    if (!primitive_) return relay::Evaluator::Get().EvalOp(Downcast<Op>(call_->op), call_->attrs, args);
    const StaticKernel kernel = For(args);
    return kernel ? kernel(args) : relay::Evaluator::Get().EvalPrimitive(f_, args);
  }

 private:
  /// Where the arguments are.
  ObjectRef OnDevice(const Array<ObjectRef>& args) {
    const Device device = DeviceOfFirst(Array<ObjectRef>(args));
    if (device.device_type == target_->device_type()) {
      if (!primitive_ && relay::IsView(call_->op)) {
        const Function f = Specialize(f_, {TypeOfValue(args[0])});
        const NDArray a = Downcast<NDArray>(args[0]);
        if (f.defined() && a.IsContiguous()) return a.View(ShapeOf(Downcast<TensorType>(f->ret_type)), a.dtype());
      } else if (const StaticKernel kernel = For(args, device)) {
        return kernel(args);
      }
    }
    // The result's shape depends on values.
    Array<ObjectRef> here;
    for (const ObjectRef& a : args) here.push_back(vm::MoveTo(a, Cpu()));
    const ObjectRef value = primitive_ ? relay::Evaluator::Get().EvalPrimitive(f_, here)
                                       : relay::Evaluator::Get().EvalOp(Downcast<Op>(call_->op), call_->attrs, here);
    return vm::MoveTo(value, device);
  }

  /// The kernel for arguments of these shapes; null if the result's shape depends on more.
  StaticKernel For(const Array<ObjectRef>& args, Device device = Cpu()) {
    std::vector<int64_t> key{device.device_type, device.device_id};
    for (const ObjectRef& a : args) ShapeKey(a, &key);
    std::lock_guard lock(mutex_);
    if (auto it = by_shape_.find(key); it != by_shape_.end()) return it->second;
    Array<Type> types;
    bool known = true;
    for (const ObjectRef& a : args) {
      types.push_back(TypeOfValue(a));
      known = known && types.back().defined();
    }
    const Function f = known ? Specialize(f_, types) : Function();
    StaticKernel& made = by_shape_[key];
    if (f.defined()) made = target_.defined() ? DeviceKernel(f, target_, device) : FindKernel(f);
    return made;
  }

  Function f_;
  const CallNode* call_;
  bool primitive_ = false;
  Target target_;  // null: the host's
  std::mutex mutex_;
  std::map<std::vector<int64_t>, StaticKernel> by_shape_;
};

}  // namespace

bool MakesDeviceCode(const Function& f) {
  if (f->HasNonzeroAttr(attr::kPrimitive)) return true;
  const auto* call = f->body.as<CallNode>();
  if (!call || !call->op.as<OpNode>()) return false;
  if (relay::IsView(call->op)) return call->args.size() == 1;
  const relay::OpDef* def = relay::DefOf(call->op);
  return def && def->lower && !def->host && !def->static_form;
}

PackedFunc MakeHostFunction(const Function& f) {
  auto host = std::make_shared<HostFunction>(f);
  return PackedFunc([host](runtime::Args args, runtime::RetValue* rv) { *rv = host->Call(args); });
}

std::string SaveHostFunction(const Function& f) { return SaveJSON(f); }

BATON_REGISTER_GLOBAL("vm.LoadPacked").set_body_typed([](String text) {
  return MakeHostFunction(Downcast<Function>(LoadJSON(text.str())));
});

}  // namespace baton::driver

// SPDX-License-Identifier: Apache-2.0
// What a program calls back for: kernels of shapes that are known only when it runs, compiled once a shape, and
// operators that are functions of the host.
#include <baton/ir/structural.h>
#include <baton/relay/evaluator.h>
#include <baton/relay/functor.h>
#include <baton/relay/op.h>
#include <baton/relay/transform.h>
#include <baton/runtime/registry.h>

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
    if (!primitive_ && (!call_ || !call_->op.as<OpNode>())) {
      throw RuntimeError("a host function of a program is a primitive function or a call of an operator");
    }
  }

  ObjectRef Call(runtime::Args packed) {
    Array<ObjectRef> args;
    for (int i = 0; i < packed.size(); ++i) args.push_back(packed[i].As<ObjectRef>());
    if (args.size() != f_->params.size()) throw RuntimeError("a host function was given another number of arguments");
    if (!primitive_) return relay::Evaluator::Get().EvalOp(Downcast<Op>(call_->op), call_->attrs, args);
    const StaticKernel kernel = For(args);
    return kernel ? kernel(args) : relay::Evaluator::Get().EvalPrimitive(f_, args);
  }

 private:
  /// The kernel for arguments of these shapes; null if the result's shape depends on more.
  StaticKernel For(const Array<ObjectRef>& args) {
    std::vector<int64_t> key;
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
    if (f.defined()) made = FindKernel(f);
    return made;
  }

  Function f_;
  const CallNode* call_;
  bool primitive_ = false;
  std::mutex mutex_;
  std::map<std::vector<int64_t>, StaticKernel> by_shape_;
};

}  // namespace

PackedFunc MakeHostFunction(const Function& f) {
  auto host = std::make_shared<HostFunction>(f);
  return PackedFunc([host](runtime::Args args, runtime::RetValue* rv) { *rv = host->Call(args); });
}

std::string SaveHostFunction(const Function& f) { return SaveJSON(f); }

BATON_REGISTER_GLOBAL("vm.LoadPacked").set_body_typed([](String text) {
  return MakeHostFunction(Downcast<Function>(LoadJSON(text.str())));
});

}  // namespace baton::driver

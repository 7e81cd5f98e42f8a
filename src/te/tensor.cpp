// SPDX-License-Identifier: Apache-2.0
#include <baton/te/tensor.h>
#include <baton/tir/functor.h>
#include <baton/tir/op.h>
#include <baton/tir/stmt.h>
#include <fmt/format.h>

namespace baton::te {
namespace {
const RegisterNodes<OperationNode, TensorNode, PlaceholderOpNode, ComputeOpNode, ExternOpNode> registered_tensor;

[[noreturn]] void Fail(const std::string& message) { throw runtime::TypeError(message); }

void CheckShape(const Array<PrimExpr>& shape, std::string_view name) {
  for (const PrimExpr& d : shape) {
    if (!d.defined() || !d.dtype().is_integral() || d.dtype().is_bool() || !d.dtype().is_scalar()) {
      Fail(fmt::format("a dimension of `{}` is {}; dimensions are integers", name,
                       d.defined() ? DataType2String(d.dtype()) : "null"));
    }
    if (const int64_t* c = tir::as_const_int(d); c && *c < 0) Fail(fmt::format("a dimension of `{}` is {}", name, *c));
  }
}
Tensor MakeTensor(const Array<PrimExpr>& shape, DataType dtype, const Operation& op, int64_t index) {
  TensorNode t;
  t.shape = shape, t.dtype = dtype, t.op = op, t.value_index = index;
  return Tensor(std::move(t));
}
}  // namespace

PrimExpr Tensor::operator()(const Array<PrimExpr>& indices) const {
  if (indices.size() != shape().size()) {
    Fail(fmt::format("tensor `{}` has {} dimensions, read with {} indices", (*this)->op->name.str(), shape().size(),
                     indices.size()));
  }
  Array<PrimExpr> index = indices;
  for (size_t i = 0; i < index.size(); ++i) {
    if (!index[i].defined() || !index[i].dtype().is_integral())
      Fail(fmt::format("an index of tensor `{}` is no integer", (*this)->op->name.str()));
    if (!(index[i].dtype() == DataType::Int(64))) index.Set(i, cast(DataType::Int(64), index[i]));
  }
  tir::ProducerLoadNode n;
  n.dtype = dtype();
  n.producer = *this;
  n.indices = index;
  return tir::ProducerLoad(std::move(n));
}

Tensor placeholder(Array<PrimExpr> shape, DataType dtype, String name) {
  CheckShape(shape, name.view());
  PlaceholderOpNode op;
  op.name = name;
  op.shape = shape, op.dtype = dtype;
  return MakeTensor(shape, dtype, PlaceholderOp(std::move(op)), 0);
}

Array<Var> MakeIndexVars(size_t n) {
  static const char* names[] = {"i0", "i1", "i2", "i3", "i4", "i5", "i6", "i7"};
  Array<Var> vars;
  for (size_t i = 0; i < n; ++i) vars.push_back(Var(i < 8 ? String(names[i]) : String("i" + std::to_string(i))));
  return vars;
}

Array<Tensor> ComputeMany(const Array<PrimExpr>& shape, const Array<Var>& vars, const Array<PrimExpr>& bodies,
                          String name, String tag) {
  CheckShape(shape, name.view());
  if (vars.size() != shape.size())
    Fail(fmt::format("compute `{}` has {} variables for {} dimensions", name.str(), vars.size(), shape.size()));
  if (bodies.empty()) Fail(fmt::format("compute `{}` has no body", name.str()));
  ComputeOpNode op;
  op.name = name;
  op.tag = tag;
  for (size_t i = 0; i < vars.size(); ++i) {
    RangeNode r;
    r.min = PrimExpr(0), r.extent = cast(DataType::Int(64), shape[i]);
    tir::IterVarNode v;
    v.dom = Range(std::move(r)), v.var = vars[i];
    op.axis.push_back(IterVar(std::move(v)));
  }
  auto check = [&](const PrimExpr& e) {
    tir::PostOrderVisitExpr(e, [&](const PrimExpr& x) {
      if (x.as<tir::ReduceNode>())
        Fail(fmt::format("a reduction in compute `{}` is not at the root of the body", name.str()));
    });
  };
  for (const PrimExpr& b : bodies) {
    if (!b.defined()) Fail(fmt::format("a body of compute `{}` is null", name.str()));
    if (!b.dtype().is_scalar())
      Fail(fmt::format("a body of compute `{}` has dtype {}, not a scalar", name.str(), DataType2String(b.dtype())));
    if (const auto* reduce = b.as<tir::ReduceNode>()) {
      for (const PrimExpr& s : reduce->source) check(s);
    } else {
      check(b);
    }
  }
  op.body = bodies;
  ComputeOp ref(std::move(op));
  Array<Tensor> out;
  for (size_t i = 0; i < bodies.size(); ++i)
    out.push_back(MakeTensor(shape, bodies[i].dtype(), ref, static_cast<int64_t>(i)));
  return out;
}
Tensor ComputeImpl(const Array<PrimExpr>& shape, const Array<Var>& vars, PrimExpr body, String name, String tag) {
  return ComputeMany(shape, vars, {std::move(body)}, std::move(name), std::move(tag))[0];
}

IterVar ReduceAxis(PrimExpr min, PrimExpr extent, String name) {
  RangeNode r;
  r.min = cast(DataType::Int(64), min), r.extent = cast(DataType::Int(64), extent);
  tir::IterVarNode v;
  v.dom = Range(std::move(r)), v.var = Var(name), v.iter_type = tir::IterVarType::kCommReduce;
  return IterVar(std::move(v));
}

namespace {
template <class F>
PrimExpr MakeReduce(PrimExpr source, const Array<IterVar>& axis, PrimExpr identity, F combine) {
  if (!source.defined()) Fail("the source of a reduction is null");
  Var x("x", source.dtype()), y("y", source.dtype());
  tir::CommReducerNode c;
  c.lhs = {x}, c.rhs = {y}, c.result = {combine(x, y)}, c.identity_element = {identity};
  tir::ReduceNode r;
  r.dtype = source.dtype();
  r.combiner = tir::CommReducer(std::move(c));
  r.axis = axis;
  r.source = {source};
  r.condition = IntImm(DataType::Bool(), 1);
  return tir::Reduce(std::move(r));
}
}  // namespace
PrimExpr Sum(PrimExpr s, const Array<IterVar>& axis) {
  PrimExpr id = tir::make_const(s.dtype(), 0);
  return MakeReduce(s, axis, id, [](PrimExpr a, PrimExpr b) { return a + b; });
}
PrimExpr Prod(PrimExpr s, const Array<IterVar>& axis) {
  PrimExpr id = tir::make_const(s.dtype(), 1);
  return MakeReduce(s, axis, id, [](PrimExpr a, PrimExpr b) { return a * b; });
}
PrimExpr MaxOf(PrimExpr s, const Array<IterVar>& axis) {
  PrimExpr id = lowest(s.dtype());
  return MakeReduce(s, axis, id, [](PrimExpr a, PrimExpr b) { return max(a, b); });
}
PrimExpr MinOf(PrimExpr s, const Array<IterVar>& axis) {
  PrimExpr id = highest(s.dtype());
  return MakeReduce(s, axis, id, [](PrimExpr a, PrimExpr b) { return min(a, b); });
}
PrimExpr AnyOf(PrimExpr s, const Array<IterVar>& axis) {
  return MakeReduce(s, axis, IntImm(DataType::Bool(), 0), [](PrimExpr a, PrimExpr b) { return a || b; });
}
PrimExpr AllOf(PrimExpr s, const Array<IterVar>& axis) {
  return MakeReduce(s, axis, IntImm(DataType::Bool(), 1), [](PrimExpr a, PrimExpr b) { return a && b; });
}
PrimExpr Const(double value, DataType dtype) { return tir::make_const(dtype, value); }
PrimExpr ConstInt(int64_t value, DataType dtype) { return tir::make_int(dtype, value); }

}  // namespace baton::te

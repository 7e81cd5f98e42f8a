// SPDX-License-Identifier: Apache-2.0
#include "gradient.h"

#include <baton/relay/op/nn.h>

#include <algorithm>

namespace baton::relay {

namespace gradient {

const TensorTypeNode* At::Tensor(const Type& t, const char* what) const {
  const auto* n = t.as<TensorTypeNode>();
  if (!n) Fail(std::string(what) + " is no tensor");
  return n;
}
void At::Fail(const std::string& text) const { throw CompileError(std::string("[gradient of ") + op() + "] " + text); }
Ints At::Known(const Shape& shape) const {
  Ints dims;
  if (!StaticShape(shape, &dims)) Fail("it needs known extents, the shape is " + ShowShape(shape));
  return dims;
}

Expr Collapse(const Expr& g, const TensorTypeNode* from, const Expr& like) {
  const auto* to = AsTensor(like->checked_type());
  Ints a, b;
  if (from->shape.same_as(to->shape)) return g;
  if (!StaticShape(from->shape, &a) || !StaticShape(to->shape, &b)) return MakeCall(op::collapse_sum_like, {g, like});
  if (a == b) return g;
  Ints axes;
  size_t lead = a.size() - b.size();
  for (size_t d = 0; d < a.size(); ++d) {
    if (d < lead || (b[d - lead] == 1 && a[d] != 1)) axes.push_back(static_cast<int64_t>(d));
  }
  Expr sum = axes.empty() ? g : Sum(g, axes, true);
  return lead ? ShapeLike(sum, like) : sum;
}
Expr ShapeLike(const Expr& g, const Expr& like) {
  Ints dims;
  if (!StaticShape(AsTensor(like->checked_type())->shape, &dims)) {
    return MakeCall(op::reshape_like, {g, like}, MakeAttrs<ReshapeLikeAttrs>());
  }
  return MakeCall<ReshapeAttrs>(op::reshape, {g}, [&](ReshapeAttrs* a) {
    a->newshape = ToArray(dims);
    a->allowzero = std::count(dims.begin(), dims.end(), 0) > 0;
  });
}
namespace {
Expr Filled(const Expr& like, const Op& fixed, const Op& same) {
  const auto* t = AsTensor(like->checked_type());
  Ints dims;
  if (!StaticShape(t->shape, &dims)) return MakeCall(same, {like});
  return MakeCall<InitOpAttrs>(fixed, {}, [&](InitOpAttrs* a) { a->shape = ToArray(dims), a->dtype = t->dtype; });
}
}  // namespace
Expr ZerosLike(const Expr& like) { return Filled(like, op::zeros, op::zeros_like); }
Expr OnesLike(const Expr& like) { return Filled(like, op::ones, op::ones_like); }
Expr Sum(const Expr& data, const Ints& axes, bool keepdims) {
  return ReduceCall(op::sum, data, ToArray(axes), keepdims);
}
Expr Mean(const Expr& data, const Ints& axes, bool keepdims) {
  return ReduceCall(op::mean, data, ToArray(axes), keepdims);
}
Expr Slice(const Expr& data, const Ints& begin, const Ints& end) {
  return MakeCall<StridedSliceAttrs>(op::strided_slice, {data},
                                     [&](StridedSliceAttrs* a) { a->begin = ToArray(begin), a->end = ToArray(end); });
}
Expr Split(const Expr& data, const Ints& at, int64_t axis) {
  return MakeCall<SplitAttrs>(op::split, {data},
                              [&](SplitAttrs* a) { a->indices_or_sections = IntOrInts(ToArray(at)), a->axis = axis; });
}
Expr Concat(const Expr& tuple, int64_t axis) {
  return MakeCall<ConcatenateAttrs>(op::concatenate, {tuple}, [&](ConcatenateAttrs* a) { a->axis = axis; });
}
Expr Squeeze(const Expr& data, const Ints& axes) {
  return MakeCall<SqueezeAttrs>(op::squeeze, {data}, [&](SqueezeAttrs* a) { a->axis = ToArray(axes); });
}
Expr Pad(const Expr& data, const Ints& before, const Ints& after, DataType dtype) {
  bool any = false;
  for (size_t d = 0; d < before.size(); ++d) any = any || before[d] || after[d];
  if (!any) return data;
  return MakeCall<PadAttrs>(op::pad, {data, MakeScalar(0, dtype)}, [&](PadAttrs* a) {
    Array<Array<int64_t>> width;
    for (size_t d = 0; d < before.size(); ++d) width.push_back(Array<int64_t>{before[d], after[d]});
    a->pad_width = width;
  });
}
Expr Permute(const Expr& data, const Ints& axes) {
  bool same = true;
  for (size_t d = 0; d < axes.size(); ++d) same = same && axes[d] == static_cast<int64_t>(d);
  return same ? data : Transpose(data, ToArray(axes));
}
Expr MatMul(const Expr& a, const Expr& b, bool transpose_a, bool transpose_b) {
  return MakeCall<MatmulAttrs>(op::matmul, {a, b},
                               [&](MatmulAttrs* m) { m->transpose_a = transpose_a, m->transpose_b = transpose_b; });
}
Expr Iota(int64_t n) {
  DataType t = DataType::Int(64);
  auto number = [&](int64_t v) {
    runtime::NDArray a = runtime::NDArray::FromBytes(&v, {}, DataType::Int(64));
    return Constant(ConstantNode{{}, a});
  };
  return MakeCall<ArangeAttrs>(op::arange, {number(0), number(n), number(1)}, [&](ArangeAttrs* a) { a->dtype = t; });
}
Expr Identity(int64_t n, DataType t) {
  return MakeCall<EyeAttrs>(op::eye, {}, [&](EyeAttrs* a) { a->rows = n, a->cols = n, a->dtype = t; });
}
Expr ZerosOf(int64_t n, DataType t) {
  return MakeCall<InitOpAttrs>(op::zeros, {}, [&](InitOpAttrs* a) { a->shape = {n}, a->dtype = t; });
}
Expr Scatter(const Expr& zeros, const Expr& index, const Expr& updates) {
  return MakeCall<ScatterElementsAttrs>(op::scatter_elements, {zeros, index, updates},
                                        [](ScatterElementsAttrs* a) { a->axis = 0, a->reduction = "add"; });
}
Ints ReducedAxes(const Array<int64_t>& axis, bool exclude, int64_t ndim, const char* op) {
  Ints named = axis.defined() ? NormalizeAxes(axis, ndim, op) : AxesFrom(0, ndim), rest;
  if (!exclude) return named;
  for (int64_t d = 0; d < ndim; ++d) {
    if (!std::count(named.begin(), named.end(), d)) rest.push_back(d);
  }
  return rest;
}

Grads ReshapeBack(const Call& call, const Expr& grad) {
  Grads out(call->args.size(), Expr());
  out.Set(0, ShapeLike(grad, call->args[0]));
  return out;
}
Grads CollapseBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  Grads out(call->args.size(), Expr());
  out.Set(0, Collapse(grad, at.out(), at.arg(0)));
  return out;
}
Grads SelectBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  Grads out(call->args.size(), Expr());
  out.Set(0, ByNumbers(at, grad, [&](const Expr& numbers) {
            Array<Expr> args = call->args;
            args.Set(0, numbers);
            return MakeCall(Downcast<Op>(call->op), args, call->attrs);
          }));
  return out;
}

}  // namespace gradient
}  // namespace baton::relay

// SPDX-License-Identifier: Apache-2.0
// Softmax and its kin: along one axis.
#include "../common.h"

#include <baton/relay/op/nn.h>
#include <baton/topi/elemwise.h>
#include <baton/topi/reduce.h>

namespace baton::relay {
namespace {

Type SoftmaxType(const SoftmaxAttrs& a, const TypeArgs& in) {
  in.Floating(0, "R1");
  in.Axis(a.axis, in.ndim(0));
  return GetRef<TensorType>(in[0]);
}

struct Parts {
  Tensor top, sum, e;
  Ints axes;
};
/// Largest value, exp(x - largest) and its sum along the axis, in float32 or wider.
Parts SoftmaxParts(const SoftmaxAttrs& a, const Tensor& x) {
  Parts p;
  p.axes = {NormalizeAxis(a.axis, x.ndim(), "nn.softmax")};
  p.top = topi::ReduceWith(x, p.axes, true, te::MaxOf, [](PrimExpr v, const Shape&, const Shape&) { return Widen(v); }, "softmax_max");
  p.e = te::Compute(x.shape(), [&](Indices i) { return exp(Widen(x(i)) - topi::BroadcastAt(p.top, i)); }, "softmax_exp");
  p.sum = topi::ReduceWith(p.e, p.axes, true, te::Sum, [](PrimExpr v, const Shape&, const Shape&) { return v; }, "softmax_sum");
  return p;
}

Tensor LowerSoftmax(const SoftmaxAttrs& a, const Tensors& in) {
  Parts p = SoftmaxParts(a, in[0]);
  return te::Compute(in[0].shape(), [&](Indices i) { return cast(in[0].dtype(), p.e(i) / topi::BroadcastAt(p.sum, i)); }, "softmax");
}
Tensor LowerLogSoftmax(const SoftmaxAttrs& a, const Tensors& in) {
  Parts p = SoftmaxParts(a, in[0]);
  const Tensor& x = in[0];
  Tensor log_sum = topi::Map(p.sum, [](PrimExpr v) { return log(v); }, "log_sum");
  return te::Compute(x.shape(), [&](Indices i) {
    return cast(x.dtype(), Widen(x(i)) - topi::BroadcastAt(p.top, i) - topi::BroadcastAt(log_sum, i));
  }, "log_softmax");
}
/// 1 at the first largest element of the axis, 0 elsewhere.
Tensor LowerHardmax(const SoftmaxAttrs& a, const Tensors& in) {
  const Tensor& x = in[0];
  int64_t axis = NormalizeAxis(a.axis, x.ndim(), "nn.hardmax");
  DataType index = DataType::Int(64);
  Tensor top = topi::ReduceWith(x, {axis}, true, te::MaxOf, [](PrimExpr v, const Shape&, const Shape&) { return v; }, "hardmax_max");
  Tensor first = topi::ReduceWith(x, {axis}, true, te::MinOf, [&](PrimExpr v, const Shape& at, const Shape& k) {
    return te::Select(equal(v, topi::BroadcastAt(top, at)), k[0], max_value(index));
  }, "hardmax_first");
  return te::Compute(x.shape(), [&](Indices i) {
    return te::Select(equal(i[axis], topi::BroadcastAt(first, i)), te::Const(1, x.dtype()), te::Const(0, x.dtype()));
  }, "hardmax");
}

template <OpName kName>
Op Define(const char* doc, LowerFn lower, const char* source) {
  return DefineOp({.name = kName.text,
                   .doc = doc,
                   .inputs = {{"data", "R1: floating dtype."}},
                   .output = "Shape and dtype of `data`.",
                   .attrs = TypeOf<SoftmaxAttrs>,
                   .type_rel = Rel<kName, SoftmaxType>,
                   .lower = lower,
                   .pattern = OpPattern::kOpaque,
                   .source = source});
}

}  // namespace

const Op op::softmax = Define<"nn.softmax">("exp(data) / sum(exp(data)) along `axis`, safe for large values.", LowerSoftmax, "ONNX Softmax-13");
const Op op::log_softmax = Define<"nn.log_softmax">("Logarithm of softmax, safe for large values.", LowerLogSoftmax, "ONNX LogSoftmax-13");
const Op op::hardmax = Define<"nn.hardmax">("1 at the first largest element along `axis`, 0 elsewhere.", LowerHardmax, "ONNX Hardmax-13");

}  // namespace baton::relay

// SPDX-License-Identifier: Apache-2.0
// Tensors in another dtype, by value or by bits.
#include <baton/relay/op/make.h>
#include <baton/relay/op/tensor.h>
#include <baton/topi/elemwise.h>

#include "../common.h"
#include "../elements.h"
#include "../gradient.h"
#include "../qnn/integers.h"
#include "../reference/reference.h"

namespace baton::relay {
namespace {

Type CastType(const CastAttrs& a, const TypeArgs& in) {
  if (a.dtype.is_void() || a.dtype.is_handle() || !a.dtype.is_scalar()) {
    in.Fail("R1", "dtype is " + DataType2String(a.dtype) + ", which no tensor has");
  }
  return TensorType(in.shape(0), a.dtype);
}
Tensor LowerCast(const CastAttrs& a, const Tensors& in) {
  return topi::Map(in[0], [&](PrimExpr v) { return topi::Convert(a.dtype, v); }, "cast");
}
Type CastLikeType(const TypeArgs& in) { return TensorType(in.shape(0), in.dtype(1)); }
Tensor LowerCastLike(const Tensors& in) {
  return topi::Map(in[0], [&](PrimExpr v) { return topi::Convert(in[1].dtype(), v); }, "cast_like");
}
Type ReinterpretType(const CastAttrs& a, const TypeArgs& in) {
  if (a.dtype.bits() != in.dtype(0).bits() || !a.dtype.is_scalar()) {
    in.Fail("R1", "`data` has dtype " + DataType2String(in.dtype(0)) + " and the result " + DataType2String(a.dtype) +
                      ", where both need the same number of bits");
  }
  return TensorType(in.shape(0), a.dtype);
}
Tensor LowerReinterpret(const CastAttrs& a, const Tensors& in) {
  return topi::Map(
      in[0], [&](PrimExpr v) { return v.dtype() == a.dtype ? v : baton::reinterpret(a.dtype, v); }, "reinterpret");
}

}  // namespace

namespace gradient {
namespace {

Grads CastBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  Grads out(call->args.size(), Expr());
  if (at.floating(0)) out.Set(0, at.dtype(0) == at.out()->dtype ? grad : Cast(grad, at.dtype(0)));
  return out;
}

}  // namespace
}  // namespace gradient

namespace {
std::optional<Elements> CastElements(const ElementsSite& site) {
  std::optional<Elements> out = site.in[0];
  if (!out || !site.dtype.is_bool()) return out;
  for (PrimExpr& e : *out) e = e.defined() ? OfCondition(ConditionOf(e)) : e;
  return out;
}
}  // namespace

const Op op::cast = DefineOp({
    .name = "cast",
    .doc = "data in another dtype: floats lose their fraction on the way to integers, bool is `!= 0`.",
    .inputs = {{"data", "Any shape and dtype."}},
    .output = "Shape of `data`, dtype `dtype`. R1: a dtype of tensors.",
    .attrs = TypeOf<CastAttrs>,
    .type_rel = Rel<"cast", CastType>,
    .lower = LowerCast,
    .gradient = gradient::CastBack,
    .pattern = OpPattern::kElemWise,
    .source = "NumPy astype; ONNX Cast-21",
    .traits = {.precision = Precision::kNever, .values = Values::kExact, .elements = CastElements},
});
const Op op::cast_like = DefineOp({
    .name = "cast_like",
    .doc = "data in the dtype of another tensor.",
    .inputs = {{"data", "Any shape and dtype."}, {"dtype_like", "Its dtype counts alone."}},
    .output = "Shape of `data`, dtype of `dtype_like`.",
    .type_rel = Rel<"cast_like", CastLikeType>,
    .lower = LowerCastLike,
    .gradient = gradient::CastBack,
    .pattern = OpPattern::kElemWise,
    .source = "ONNX CastLike-15",
});
const Op op::reinterpret = DefineOp({
    .name = "reinterpret",
    .doc = "The same bits read as another dtype.",
    .inputs = {{"data", "Any shape and dtype."}},
    .output = "Shape of `data`, dtype `dtype`. R1: as many bits as data's.",
    .attrs = TypeOf<CastAttrs>,
    .type_rel = Rel<"reinterpret", ReinterpretType>,
    .lower = LowerReinterpret,
    .gradient = NoGradient("it reads bits as another type"),
    .pattern = OpPattern::kElemWise,
    .source = "ONNX BitCast-26",
});

}  // namespace baton::relay

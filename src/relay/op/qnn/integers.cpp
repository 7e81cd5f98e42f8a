// SPDX-License-Identifier: Apache-2.0
#include "integers.h"

#include <baton/ir/structural.h>
#include <baton/relay/op/make.h>
#include <baton/relay/op/nn.h>
#include <baton/relay/op/qnn.h>
#include <baton/relay/op/tensor.h>
#include <baton/relay/op/transform.h>

#include <algorithm>
#include <cmath>

namespace baton::relay::integers {

using runtime::NDArray;

namespace {

constexpr DataType kI32 = DataType::Int(32), kF32 = DataType::Float(32);

const NDArray* ConstantData(const Expr& e) {
  const auto* c = e.as<ConstantNode>();
  return c ? &c->data : nullptr;
}
int64_t CountOf(const NDArray& a) {
  int64_t n = 1;
  for (int64_t d : a.Shape()) n *= d;
  return n;
}
}  // namespace

/// Whether a scale or zero point is one number; one that is not constant counts by its type.
bool IsScalar(const Expr& e) {
  if (const NDArray* a = ConstantData(e)) return CountOf(*a) == 1;
  const auto* t = e->checked_type_.as<TensorTypeNode>();
  return t && t->shape.empty();
}

namespace {
bool ScalarAffine(const TensorAffineTypeNode* t) { return t && IsScalar(t->scale) && IsScalar(t->zero_point); }
bool IsZero(const Expr& e) {
  const NDArray* a = ConstantData(e);
  if (!a) return false;
  for (int64_t i = 0; i < CountOf(*a); ++i) {
    if (a->GetDouble(i) != 0) return false;
  }
  return true;
}
bool Same(const Expr& a, const Expr& b) { return a.same_as(b) || StructuralEqual(a, b); }
bool SameAffine(const TensorAffineTypeNode* a, const TensorAffineTypeNode* b) {
  return a->dtype == b->dtype && Same(a->scale, b->scale) && Same(a->zero_point, b->zero_point);
}
/// The product of two scales, evaluated where it can be.
Expr ScaleProduct(const Expr& a, const Expr& b) {
  const NDArray *x = ConstantData(a), *y = ConstantData(b);
  if (!x || !y || (CountOf(*x) != 1 && CountOf(*y) != 1)) return Multiply(a, b);
  const NDArray& big = CountOf(*x) >= CountOf(*y) && !x->Shape().empty() ? *x : *y;
  NDArray out = NDArray::Empty(big.Shape(), kF32);
  for (int64_t i = 0, n = CountOf(big); i < n; ++i) {
    const float p = static_cast<float>(x->GetDouble(CountOf(*x) == 1 ? 0 : i)),
                q = static_cast<float>(y->GetDouble(CountOf(*y) == 1 ? 0 : i));
    out.SetDouble(i, p * q);
  }
  return Constant(ConstantNode{{}, out});
}
int64_t TensorRank(const Expr& typed) {
  const auto* t = typed->checked_type_.as<TensorTypeNode>();
  return t ? static_cast<int64_t>(t->shape.size()) : -1;
}
Expr CastTo(const Expr& e, DataType from, DataType to) { return from == to ? e : Cast(e, to); }
}  // namespace

/// Integers of one affine type as ones of another, whose scale and zero point are scalars.
Expr Requantized(const Expr& e, const TensorAffineTypeNode* from, const TensorAffineTypeNode* to) {
  if (SameAffine(from, to)) return e;
  return MakeCall<RequantizeAttrs>(op::qnn::requantize, {e, from->scale, from->zero_point, to->scale, to->zero_point},
                                   [&](RequantizeAttrs* a) { a->axis = from->axis, a->out_dtype = to->dtype; });
}

IntegerValue Failed() { return {IntegerValue::kFailed, {}, {}}; }
IntegerValue Affine(Expr e, const Expr& scale, const Expr& zero, DataType dtype, int64_t axis) {
  return {IntegerValue::kAffine, std::move(e), TensorAffineType(scale, zero, dtype, axis)};
}
IntegerValue Affine(Expr e, const AffineType& type) { return {IntegerValue::kAffine, std::move(e), type}; }

namespace {
Expr NoZero() { return MakeScalar(0, kI32); }
}  // namespace

/// For operators that select values without computing: the affine type stays.
IntegerValue Selection(const IntegerSite& s) {
  if (!ScalarAffine(s.at(0)) || s.args.size() != 1) return Failed();
  return Affine(MakeCall(Downcast<Op>(s.pre->op), {s.args[0].expr}, s.pre->attrs), s.args[0].type);
}
/// Means: of integers less their zero point, so that padding stands for 0, in 32 bits.
IntegerValue Averages(const IntegerSite& s) {
  const auto* t = s.at(0);
  if (!ScalarAffine(t)) return Failed();
  Expr wide = CastTo(s.args[0].expr, t->dtype, kI32);
  if (!IsZero(t->zero_point)) wide = Subtract(wide, t->zero_point);
  return Affine(MakeCall(Downcast<Op>(s.pre->op), {wide}, s.pre->attrs), t->scale, NoZero(), kI32);
}
IntegerValue Interpolation(const IntegerSite& s, const Attrs& attrs) {
  constexpr int64_t kParts = 256;  // data of 16 bits fills 24
  const auto* t = s.at(0);
  if (!ScalarAffine(t) || s.args.size() != 1 || t->dtype.bits() > 16) return Failed();
  Expr wide = CastTo(s.args[0].expr, t->dtype, kI32);
  if (!IsZero(t->zero_point)) wide = Subtract(wide, t->zero_point);
  wide = Multiply(wide, MakeScalar(kParts, kI32));
  return Affine(MakeCall(Downcast<Op>(s.pre->op), {wide}, attrs),
                ScaleProduct(t->scale, MakeScalar(1.0 / kParts, kF32)), NoZero(), kI32);
}
IntegerValue Relu(const IntegerSite& s) {
  const auto* t = s.at(0);
  if (!ScalarAffine(t) && !(t && IsZero(t->zero_point))) return Failed();
  if (IsZero(t->zero_point)) return Affine(MakeCall(op::relu, {s.args[0].expr}), s.args[0].type);
  return Affine(Maximum(s.args[0].expr, CastTo(t->zero_point, kI32, t->dtype)), s.args[0].type);
}
IntegerValue Clip(const IntegerSite& s) {
  const auto* t = s.at(0);
  const NDArray *scale = t ? ConstantData(t->scale) : nullptr, *zero = t ? ConstantData(t->zero_point) : nullptr;
  if (!scale || !zero || !ScalarAffine(t)) return Failed();
  const auto& a = AttrsAs<ClipAttrs>(s.pre->attrs);
  auto end = [&](double v) { return std::nearbyint(v / scale->GetDouble(0)) + zero->GetDouble(0); };
  return Affine(MakeCall<ClipAttrs>(op::clip, {s.args[0].expr},
                                    [&](ClipAttrs* c) { c->a_min = end(a.a_min), c->a_max = end(a.a_max); }),
                s.args[0].type);
}
IntegerValue Pad(const IntegerSite& s) {
  const auto* t = s.at(0);
  if (!ScalarAffine(t) || s.args.size() != 2 || s.args[1].kind != IntegerValue::kPlain) return Failed();
  Expr fill = MakeCall<QuantizeAttrs>(op::qnn::quantize, {s.args[1].expr, t->scale, t->zero_point},
                                      [&](QuantizeAttrs* a) { a->out_dtype = t->dtype; });
  if (IsZero(s.args[1].expr)) fill = CastTo(t->zero_point, kI32, t->dtype);
  return Affine(MakeCall(op::pad, {s.args[0].expr, fill}, s.pre->attrs), s.args[0].type);
}

IntegerValue MatrixProduct(const IntegerSite& s, const Op& quantized, const Attrs& attrs, int64_t weight_axis,
                           int64_t out_axis) {
  const auto *x = s.at(0), *w = s.at(1);
  if (!ScalarAffine(x) || !w) return Failed();
  if (!ScalarAffine(w) &&
      (weight_axis < 0 || (w->axis != weight_axis && w->axis + TensorRank(s.pre->args[1]) != weight_axis)))
    return Failed();
  Expr call =
      MakeCall(quantized, {s.args[0].expr, s.args[1].expr, x->zero_point, w->zero_point, x->scale, w->scale}, attrs);
  return Affine(call, ScaleProduct(x->scale, w->scale), NoZero(), kI32, out_axis);
}
IntegerValue Dense(const IntegerSite& s) {
  return MatrixProduct(s, op::qnn::dense, WithInt32<DenseAttrs>(s.pre->attrs), 0, TensorRank(GetRef<Expr>(s.pre)) - 1);
}
IntegerValue BatchMatmul(const IntegerSite& s) {
  return MatrixProduct(s, op::qnn::batch_matmul, WithInt32<BatchMatmulAttrs>(s.pre->attrs), -1, -1);
}
/// The bias at the scale of the data, both in 32 bits.
IntegerValue BiasAdd(const IntegerSite& s) {
  const auto* x = s.at(0);
  if (!x) return Failed();
  const int64_t rank = TensorRank(s.pre->args[0]), axis = AttrsAs<BiasAddAttrs>(s.pre->attrs).axis;
  auto normal = [&](int64_t a) { return a < 0 ? a + rank : a; };
  if (!ScalarAffine(x) && normal(x->axis) != normal(axis)) return Failed();
  Expr bias;
  if (s.args[1].kind == IntegerValue::kPlain) {
    bias = MakeCall<QuantizeAttrs>(op::qnn::quantize, {s.args[1].expr, x->scale, NoZero()},
                                   [](QuantizeAttrs* a) { a->axis = 0, a->out_dtype = kI32; });
  } else {
    const auto* b = s.at(1);
    if (!b) return Failed();
    const bool same = Same(b->scale, x->scale) && IsZero(b->zero_point);
    if (!same && !IsScalar(x->scale)) return Failed();
    bias = CastTo(s.args[1].expr, b->dtype, kI32);
    if (!same) bias = Requantized(s.args[1].expr, b, TensorAffineType(x->scale, NoZero(), kI32, -1).get());
  }
  Expr sum = MakeCall(op::bias_add, {CastTo(s.args[0].expr, x->dtype, kI32), bias}, s.pre->attrs);
  return Affine(sum, x->scale, x->zero_point, kI32, x->axis);
}

namespace {

/// A constant in integers of 8 bits or as wide as `dtype`, of the least step that holds all its elements.
IntegerValue QuantizedConstant(const Expr& e, DataType dtype) {
  const NDArray* a = ConstantData(e);
  if (!a || !a->dtype().is_floating() || dtype.bits() > 16) return Failed();
  double low = 0, high = 0;
  for (int64_t i = 0; i < CountOf(*a); ++i) {
    const double v = a->GetDouble(i);
    if (!std::isfinite(v)) return Failed();
    low = std::min(low, v), high = std::max(high, v);
  }
  const double first = dtype.is_uint() ? 0 : -std::ldexp(1.0, dtype.bits() - 1),
               steps = std::ldexp(1.0, dtype.bits()) - 1;
  const float scale = high > low ? static_cast<float>((high - low) / steps) : 1.0F;
  const double zero =
      std::min(first + steps, std::max(first, std::nearbyint(first - low / static_cast<double>(scale))));
  NDArray out = NDArray::Empty(a->Shape(), dtype);
  for (int64_t i = 0; i < CountOf(*a); ++i) {
    const double q = std::nearbyint(a->GetDouble(i) / static_cast<double>(scale)) + zero;
    out.SetDouble(i, std::min(first + steps, std::max(first, q)));
  }
  return Affine(Constant(ConstantNode{{}, out}), MakeScalar(static_cast<double>(scale), kF32), MakeScalar(zero, kI32),
                dtype);
}
/// Both operands as integers of the dtype that the region ends in; a constant gets its own scale.
bool Operands(const IntegerSite& s, IntegerValue* lhs, IntegerValue* rhs) {
  IntegerValue both[2] = {s.args[0], s.args[1]};
  for (IntegerValue& v : both) {
    if (v.kind == IntegerValue::kPlain) v = QuantizedConstant(v.expr, s.OutDtype());
    if (v.kind != IntegerValue::kAffine || !ScalarAffine(v.tensor())) return false;
    if (v.tensor()->dtype != s.OutDtype()) {
      TensorAffineType to(s.out->scale, s.out->zero_point, s.OutDtype(), -1);
      v = Affine(Requantized(v.expr, v.tensor(), to.get()), to);
    }
  }
  *lhs = both[0], *rhs = both[1];
  return true;
}
/// Of factors of two dtypes, in 32 bits: nothing is rounded.
IntegerValue Multiplied(const IntegerSite& s) {
  Expr factors[2];
  for (size_t i = 0; i < 2; ++i) {
    const auto* t = s.at(i);
    if (!ScalarAffine(t) || t->dtype.bits() > 16) return Failed();
    factors[i] = CastTo(s.args[i].expr, t->dtype, kI32);
    if (!IsZero(t->zero_point)) factors[i] = Subtract(factors[i], t->zero_point);
  }
  return Affine(Multiply(factors[0], factors[1]), ScaleProduct(s.at(0)->scale, s.at(1)->scale), NoZero(), kI32);
}
IntegerValue Arithmetic(const Op& quantized, const IntegerSite& s) {
  IntegerValue lhs, rhs;
  if (!Operands(s, &lhs, &rhs)) return Failed();
  const auto *x = lhs.tensor(), *y = rhs.tensor();
  Expr e =
      MakeCall(quantized,
               {lhs.expr, rhs.expr, x->scale, x->zero_point, y->scale, y->zero_point, s.out->scale, s.out->zero_point},
               MakeAttrs<BroadcastAttrs>());
  return Affine(e, s.out->scale, s.out->zero_point, s.OutDtype());
}
}  // namespace

IntegerValue Sum(const IntegerSite& s) { return Arithmetic(op::qnn::add, s); }
IntegerValue Difference(const IntegerSite& s) { return Arithmetic(op::qnn::subtract, s); }
IntegerValue Product(const IntegerSite& s) {
  if (s.at(0) && s.at(1) && s.at(0)->dtype != s.at(1)->dtype) return Multiplied(s);
  return Arithmetic(op::qnn::mul, s);
}
/// Compares at one scale.
IntegerValue Extreme(const IntegerSite& s) {
  IntegerValue lhs, rhs;
  if (!Operands(s, &lhs, &rhs)) return Failed();
  TensorAffineType to(s.out->scale, s.out->zero_point, s.OutDtype(), -1);
  return Affine(MakeCall(Downcast<Op>(s.pre->op), {Requantized(lhs.expr, lhs.tensor(), to.get()),
                                                   Requantized(rhs.expr, rhs.tensor(), to.get())}),
                to);
}
IntegerValue By(const Op& quantized, const IntegerSite& s) {
  const auto* t = s.at(0);
  if (!ScalarAffine(t)) return Failed();
  Expr data = s.args[0].expr, scale = t->scale, zero = t->zero_point;
  if (t->dtype != s.OutDtype()) return Failed();  // the result has the dtype of the argument
  return Affine(MakeCall(quantized, {data, scale, zero, s.out->scale, s.out->zero_point}), s.out->scale,
                s.out->zero_point, t->dtype);
}
IntegerValue Joined(const IntegerSite& s) {
  const auto* tuple = s.args[0].kind == IntegerValue::kAffine ? s.args[0].type.as<TupleAffineTypeNode>() : nullptr;
  if (!tuple) return Failed();
  TensorAffineType to(s.out->scale, s.out->zero_point, s.OutDtype(), -1);
  const auto* fields = s.args[0].expr.as<TupleNode>();
  Array<Expr> data, scales, zeros;
  for (size_t i = 0; i < tuple->types.size(); ++i) {
    const auto* t = tuple->types[static_cast<int64_t>(i)].get();
    if (!ScalarAffine(t)) return Failed();
    Expr e = fields ? Expr(fields->fields[i]) : Expr(TupleGetItem(s.args[0].expr, static_cast<int64_t>(i)));
    if (t->dtype != s.OutDtype()) e = Requantized(e, t, to.get()), t = to.get();
    data.push_back(e), scales.push_back(t->scale), zeros.push_back(t->zero_point);
  }
  return Affine(MakeCall(op::qnn::concatenate,
                         {Tuple(data), Tuple(scales), Tuple(zeros), s.out->scale, s.out->zero_point}, s.pre->attrs),
                to);
}
/// A tuple whose fields have one affine type.
IntegerValue Split(const IntegerSite& s) {
  const auto* t = s.at(0);
  const auto* type = s.pre->checked_type_.as<TupleTypeNode>();
  if (!ScalarAffine(t) || !type) return Failed();
  Array<TensorAffineType> types;
  for (size_t i = 0; i < type->fields.size(); ++i) types.push_back(Downcast<TensorAffineType>(s.args[0].type));
  return Affine(MakeCall(op::split, {s.args[0].expr}, s.pre->attrs), TupleAffineType(types));
}

}  // namespace baton::relay::integers

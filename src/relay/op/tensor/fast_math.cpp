// SPDX-License-Identifier: Apache-2.0
// Approximations by short polynomials, without tables or branches. float32 inside, whatever the dtype.
#include "fast_math.h"

#include <baton/relay/op/tensor.h>
#include <baton/topi/elemwise.h>

#include <initializer_list>

#include "../common.h"

namespace baton::relay {
namespace {

PrimExpr Lit(double v) { return tir::make_const(DataType::Float(32), v); }
/// Highest coefficient first.
PrimExpr Polynomial(const PrimExpr& x, std::initializer_list<double> coefficients) {
  PrimExpr y;
  for (double c : coefficients) y = y.defined() ? y * x + Lit(c) : Lit(c);
  return y;
}
PrimExpr Clamp(const PrimExpr& x, double bound) { return min(max(x, Lit(-bound)), Lit(bound)); }

}  // namespace

/// exp(x) = 2**n * exp(r) with |r| <= ln(2) / 2; ln(2) in two parts, so that r is exact. Cephes' polynomial of
/// degree 7.
PrimExpr FastExp(const PrimExpr& x0) {
  const DataType i32 = DataType::Int(32);
  PrimExpr x = min(max(x0, Lit(-87.3)), Lit(88.3));
  PrimExpr n = floor(x * Lit(1.44269504088896341) + Lit(0.5));
  PrimExpr r = x - n * Lit(0.693359375) + n * Lit(2.12194440e-4);
  PrimExpr p = Polynomial(
      r, {1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1});
  PrimExpr y = p * r * r + r + Lit(1);
  PrimExpr scale =
      reinterpret(DataType::Float(32), shift_left(cast(i32, n) + tir::make_int(i32, 127), tir::make_int(i32, 23)));
  return te::Select(isnan(x0), x0, y * scale);
}

namespace {

/// A quotient of polynomials in x * x, as Eigen has it.
PrimExpr FastTanh(const PrimExpr& x0) {
  PrimExpr x = Clamp(x0, 9), s = x * x;
  PrimExpr p =
      x * Polynomial(s, {-2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-08,
                         1.48572235717979e-05, 6.37261928875436e-04, 4.89352455891786e-03});
  PrimExpr q = Polynomial(s, {1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03});
  return te::Select(isnan(x0), x0, p / q);
}
PrimExpr FastErf(const PrimExpr& x0) {
  PrimExpr x = Clamp(x0, 4), s = x * x;
  PrimExpr p =
      x * Polynomial(s, {-2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05,
                         -7.34990630326855e-04, -2.95459980854025e-03, -1.60960333262415e-02});
  PrimExpr q = Polynomial(s, {-1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03,
                              -7.37332916720468e-03, -1.42647390514189e-02});
  return te::Select(isnan(x0), x0, p / q);
}

}  // namespace

void AtMost32Bits(const TypeArgs& in) {
  in.Floating(0, "R1");
  if (in.dtype(0).bits() > 32) in.Fail("R1", in.Show(0) + " has more than 32 bits, which the approximation does not");
}

namespace {

Type SameType(const TypeArgs& in) {
  AtMost32Bits(in);
  return in.type(0);
}
template <PrimExpr (*kFn)(const PrimExpr&)>
Tensor LowerMap(const Tensors& in) {
  return topi::Map(in[0], [&](PrimExpr v) { return cast(in[0].dtype(), kFn(cast(DataType::Float(32), v))); }, "fast");
}
template <OpName kName, PrimExpr (*kFn)(const PrimExpr&)>
Op DefineMap(const char* doc, const OpTraits& traits = {}) {
  return DefineOp({.name = kName.text,
                   .doc = doc,
                   .inputs = {{"data", "Any shape. R1: floating dtype of up to 32 bits."}},
                   .output = "Shape and dtype of `data`.",
                   .type_rel = Rel<kName, SameType>,
                   .lower = LowerMap<kFn>,
                   .pattern = OpPattern::kElemWise,
                   .source = "Cephes, Eigen",
                   .traits = traits});
}

}  // namespace

const Op op::fast_exp = DefineMap<"fast_exp", FastExp>(
    "exp(data), within 3e-7 of it relatively for data in [-87.3, 88.3]; the value at the bounds beyond them.");
const Op op::fast_tanh =
    DefineMap<"fast_tanh", FastTanh>("tanh(data), within 5e-7 of it relatively where |data| < 9, and within 1e-6.");
const Op op::fast_erf = DefineMap<"fast_erf", FastErf>("erf(data), within 1e-6 of it.");

}  // namespace baton::relay

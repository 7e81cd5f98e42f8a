// SPDX-License-Identifier: Apache-2.0
// Special functions of two variables whose number of steps depends on the values; on the host.
#include <baton/relay/op/algorithm.h>
#include <host/functions.h>

#include "../common.h"
#include "../gradient.h"

namespace baton::relay {
namespace {

struct IncompleteGammaAttrs : AttrsNode<IncompleteGammaAttrs> {
  static constexpr auto _type_key = "relay.attrs.IncompleteGammaAttrs";
  bool upper = false;
  static constexpr void Describe(auto& d) {
    d(F<&IncompleteGammaAttrs::upper>, "Whether the integral goes from `x` to infinity; else from 0 to `x`.");
  }
};

struct OrthogonalPolynomialAttrs : AttrsNode<OrthogonalPolynomialAttrs> {
  static constexpr auto _type_key = "relay.attrs.OrthogonalPolynomialAttrs";
  String family = "legendre";
  static constexpr void Describe(auto& d) {
    d(F<&OrthogonalPolynomialAttrs::family>, "R3: \"legendre\", \"laguerre\", \"hermite\" (H) or \"hermite_e\" (He).");
  }
};

Type AlikeType(const TypeArgs& in) {
  in.Floating(0, "R1");
  in.SameDtype(0, 1, "R2");
  bool same = in.ndim(0) == in.ndim(1);
  for (int64_t d = 0; same && d < in.ndim(0); ++d) same = in.Same(in.shape(0)[d], in.shape(1)[d]);
  if (!same) in.Fail("R2", in.Show(0) + " and " + in.Show(1) + " are of different shapes");
  return in.type(0);
}

Type IncompleteGammaType(const IncompleteGammaAttrs&, const TypeArgs& in) { return AlikeType(in); }
Type OrthogonalPolynomialType(const OrthogonalPolynomialAttrs& a, const TypeArgs& in) {
  for (const char* name : {"legendre", "laguerre", "hermite", "hermite_e"}) {
    if (a.family == name) return AlikeType(in);
  }
  in.Fail("R3", "family is \"" + a.family.str() + "\"; it is \"legendre\", \"laguerre\", \"hermite\" or \"hermite_e\"");
}

}  // namespace

const Op op::incomplete_gamma = DefineOp({
    .name = "incomplete_gamma",
    .doc = "Integrals of t^(a - 1) exp(-t) over gamma(a), computed in float64. NaN below 0; of a = 0 the lower one is "
           "1, and "
           "NaN at x = 0.",
    .inputs = {{"a", "Any shape. R1: floating dtype."}, {"x", "R2: shape and dtype of `a`."}},
    .output = "Shape and dtype of `a`.",
    .attrs = TypeOf<IncompleteGammaAttrs>,
    .type_rel = Rel<"incomplete_gamma", IncompleteGammaType>,
    .host = host::IncompleteGamma,
    .gradient = NoGradient(gradient::kNoRuleYet),
    .source = "Abramowitz and Stegun 6.5",
});
const Op op::orthogonal_polynomial = DefineOp({
    .name = "orthogonal_polynomial",
    .doc = "Polynomials of a degree for each element, by their recurrences in the dtype of the elements (float32 for "
           "narrower "
           "ones). Degrees are cut to integers; the value is 0 below 0, and NaN beyond 2^24; Hermite's beyond 128 "
           "(float64: "
           "512).",
    .inputs = {{"x", "Any shape. R1: floating dtype."}, {"n", "The degrees. R2: shape and dtype of `x`."}},
    .output = "Shape and dtype of `x`.",
    .attrs = TypeOf<OrthogonalPolynomialAttrs>,
    .type_rel = Rel<"orthogonal_polynomial", OrthogonalPolynomialType>,
    .host = host::OrthogonalPolynomial,
    .gradient = NoGradient(gradient::kNoRuleYet),
    .source = "Abramowitz and Stegun 22.7",
});

}  // namespace baton::relay

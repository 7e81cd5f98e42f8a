// SPDX-License-Identifier: Apache-2.0
// The C++ functions of intrinsics that have one (op.h): each makes a call by its row.
#include <baton/tir/intrin.h>

namespace baton {

#define BATON_TIR_FUNCTION(name) \
  PrimExpr name(PrimExpr x) { return tir::Apply(tir::intrin::name, {std::move(x)}); }
BATON_TIR_UNARY_LIST(BATON_TIR_FUNCTION)
#undef BATON_TIR_FUNCTION
#define BATON_TIR_FUNCTION(name) \
  PrimExpr name(PrimExpr x, PrimExpr y) { return tir::Apply(tir::intrin::name, {std::move(x), std::move(y)}); }
BATON_TIR_FUNCTION(pow)
BATON_TIR_FUNCTION(fmod)
BATON_TIR_FUNCTION(atan2)
BATON_TIR_FUNCTION(bitwise_and)
BATON_TIR_FUNCTION(bitwise_or)
BATON_TIR_FUNCTION(bitwise_xor)
BATON_TIR_FUNCTION(shift_left)
BATON_TIR_FUNCTION(shift_right)
#undef BATON_TIR_FUNCTION
PrimExpr fma(PrimExpr a, PrimExpr b, PrimExpr c) {
  return tir::Apply(tir::intrin::fma, {std::move(a), std::move(b), std::move(c)});
}

}  // namespace baton

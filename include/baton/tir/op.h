// SPDX-License-Identifier: Apache-2.0
// Building expressions: operators that fold constants, casts, and intrinsics.
#pragma once

#include <baton/tir/expr.h>

namespace baton {

// Operators match dtypes (int64 with narrower ints, a literal with anything, a scalar with a vector) and fold literals.
BATON_DLL PrimExpr operator+(PrimExpr a, PrimExpr b);
BATON_DLL PrimExpr operator-(PrimExpr a, PrimExpr b);
BATON_DLL PrimExpr operator-(PrimExpr a);
BATON_DLL PrimExpr operator*(PrimExpr a, PrimExpr b);
/// Floats only; for integers say which: truncdiv, floordiv.
BATON_DLL PrimExpr operator/(PrimExpr a, PrimExpr b);
BATON_DLL PrimExpr operator<(PrimExpr a, PrimExpr b);
BATON_DLL PrimExpr operator<=(PrimExpr a, PrimExpr b);
BATON_DLL PrimExpr operator>(PrimExpr a, PrimExpr b);
BATON_DLL PrimExpr operator>=(PrimExpr a, PrimExpr b);
BATON_DLL PrimExpr equal(PrimExpr a, PrimExpr b);
BATON_DLL PrimExpr not_equal(PrimExpr a, PrimExpr b);
BATON_DLL PrimExpr operator&&(PrimExpr a, PrimExpr b);
BATON_DLL PrimExpr operator||(PrimExpr a, PrimExpr b);
BATON_DLL PrimExpr operator!(PrimExpr a);
BATON_DLL PrimExpr truncdiv(PrimExpr a, PrimExpr b);
BATON_DLL PrimExpr truncmod(PrimExpr a, PrimExpr b);
BATON_DLL PrimExpr floordiv(PrimExpr a, PrimExpr b);
BATON_DLL PrimExpr floormod(PrimExpr a, PrimExpr b);
BATON_DLL PrimExpr ceildiv(PrimExpr a, PrimExpr b);
BATON_DLL PrimExpr min(PrimExpr a, PrimExpr b);
BATON_DLL PrimExpr max(PrimExpr a, PrimExpr b);
BATON_DLL PrimExpr cast(DataType t, PrimExpr value);
BATON_DLL PrimExpr reinterpret(DataType t, PrimExpr value);
/// Evaluates only the chosen side: for guarded loads. In vector code the guard may become a mask.
BATON_DLL PrimExpr if_then_else(PrimExpr cond, PrimExpr t, PrimExpr f);

// Intrinsics by name ("tir.exp", ...). Unary math on floats of any lanes.
// clang-format off: it never settles on this list
#define BATON_TIR_UNARY_LIST(X)                                                                                  \
  X(exp)                                                                                                         \
  X(exp2) X(log) X(log2) X(log10) X(log1p) X(sqrt) X(rsqrt) X(sin) X(cos) X(tan) X(sinh) X(cosh) X(tanh) X(asin) \
      X(acos) X(atan) X(asinh) X(acosh) X(atanh) X(erf) X(floor) X(ceil) X(trunc) X(round) X(nearbyint) X(fabs)  \
          X(isnan) X(isinf) X(isfinite) X(popcount) X(bitwise_not) X(sigmoid) X(abs)
// clang-format on
#define BATON_TIR_DECLARE_UNARY(name) BATON_DLL PrimExpr name(PrimExpr x);
BATON_TIR_UNARY_LIST(BATON_TIR_DECLARE_UNARY)
#undef BATON_TIR_DECLARE_UNARY
BATON_DLL PrimExpr pow(PrimExpr x, PrimExpr y);
BATON_DLL PrimExpr fmod(PrimExpr x, PrimExpr y);
BATON_DLL PrimExpr atan2(PrimExpr y, PrimExpr x);
/// a * b + c in one rounding; vectors too.
BATON_DLL PrimExpr fma(PrimExpr a, PrimExpr b, PrimExpr c);
/// sum[l] + a[4l] * b[4l] + ... + a[4l + 3] * b[4l + 3], exact: `a` is uint8, `b` int8, `sum` int32, and `a` and `b`
/// have four lanes for each of `sum`. Throws CompileError for others.
BATON_DLL PrimExpr dot4(PrimExpr a, PrimExpr b, PrimExpr sum);
/// sum[l] + a[2l + 1] * b[2l + 1] + a[2l] * b[2l], in this order: bfloat16 times bfloat16, added in float32.
BATON_DLL PrimExpr dot2(PrimExpr a, PrimExpr b, PrimExpr sum);
BATON_DLL PrimExpr bitwise_and(PrimExpr a, PrimExpr b);
BATON_DLL PrimExpr bitwise_or(PrimExpr a, PrimExpr b);
BATON_DLL PrimExpr bitwise_xor(PrimExpr a, PrimExpr b);
BATON_DLL PrimExpr shift_left(PrimExpr a, PrimExpr b);
BATON_DLL PrimExpr shift_right(PrimExpr a, PrimExpr b);
BATON_DLL PrimExpr min_value(DataType t);
BATON_DLL PrimExpr max_value(DataType t);
/// -infinity for floats, the smallest value for integers; the same for infinity.
BATON_DLL PrimExpr lowest(DataType t);
BATON_DLL PrimExpr highest(DataType t);

namespace tir {
BATON_DLL PrimExpr make_const(DataType t, double value);
BATON_DLL PrimExpr make_int(DataType t, int64_t value);
/// The literal's value, or null.
BATON_DLL const int64_t* as_const_int(const PrimExpr& e);
BATON_DLL bool is_const_int(const PrimExpr& e, int64_t value);
BATON_DLL bool is_zero(const PrimExpr& e);
BATON_DLL bool is_one(const PrimExpr& e);
}  // namespace tir
}  // namespace baton

// Further intrinsics, for generators of code.
namespace baton::tir {
/// `load` (a BufferLoad) in the lanes where `mask` is true, zero in the others; nothing is read there.
/// The vector of uint8 that an index widens, which is therefore below 256; null for other indices.
BATON_DLL PrimExpr BytesOfIndex(const PrimExpr& index);
BATON_DLL PrimExpr masked_load(PrimExpr load, PrimExpr mask);
/// Stores `value` at the place that `address` (a BufferLoad) names, in the lanes where `mask` is true. For Evaluate.
BATON_DLL PrimExpr masked_store(PrimExpr address, PrimExpr value, PrimExpr mask);
/// Sum, product, minimum, maximum of the lanes, in a fixed order: halves are combined until one is left.
BATON_DLL PrimExpr vector_sum(PrimExpr v);
BATON_DLL PrimExpr vector_prod(PrimExpr v);
BATON_DLL PrimExpr vector_min(PrimExpr v);
BATON_DLL PrimExpr vector_max(PrimExpr v);
/// Asks for the cache line of a BufferLoad's place; locality 0 (none) to 3 (all levels). For Evaluate.
BATON_DLL PrimExpr prefetch(PrimExpr address, int64_t locality = 3);
/// The lanes of `v` from `begin` on, `count` of them.
BATON_DLL PrimExpr vector_slice(PrimExpr v, int64_t begin, int64_t count);
/// Address of a BufferLoad's place, as a handle.
BATON_DLL PrimExpr address_of(PrimExpr load);
/// A C function of the process or the runtime, by name: for Evaluate, or as a value.
BATON_DLL PrimExpr call_extern(DataType ret, String name, Array<PrimExpr> args);
/// A call of an intrinsic by name; the Op is made when it is not there.
BATON_DLL PrimExpr call_intrin(DataType ret, const char* name, Array<PrimExpr> args);
/// The scalar in each of `lanes` lanes; a vector of that many stays itself.
BATON_DLL PrimExpr broadcast_to(PrimExpr e, int lanes);
/// Name of the called intrinsic ("tir.exp"), or "" if it calls something else.
BATON_DLL std::string_view IntrinName(const CallNode* call);
}  // namespace baton::tir

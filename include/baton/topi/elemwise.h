// SPDX-License-Identifier: Apache-2.0
// Elementwise and broadcasting tensor expressions.
#pragma once

#include <baton/te/tensor.h>
#include <baton/tir/op.h>

namespace baton::topi {

/// out[i] = f(x[i])
template <class Fn>
te::Tensor Map(const te::Tensor& x, Fn f, String name = "elemwise") {
  return te::Compute(x.shape(), [&](te::Indices i) { return f(x(i)); }, name);
}

/// NumPy's broadcasting of two shapes; an extent other than a literal is taken for the other's if that is a literal
/// above 1.
BATON_DLL Array<PrimExpr> BroadcastShape(const Array<PrimExpr>& a, const Array<PrimExpr>& b);
/// Element of `x` at `i` of a shape which x's broadcasts to: leading indices drop, those of extent 1 become
/// 0.
BATON_DLL PrimExpr BroadcastAt(const te::Tensor& x, const Array<PrimExpr>& i);
/// Index of an element within an extent that broadcasts to that of the result, where its index is `i`: 0 where the
/// extent is 1, which an open one may be, unless it is the result's.
BATON_DLL PrimExpr BroadcastIndex(const PrimExpr& extent, const PrimExpr& i, const PrimExpr& result);
/// The same where `shape` is what x broadcasts to: an open extent of x, and not the same there, may be 1.
BATON_DLL PrimExpr BroadcastAt(const te::Tensor& x, const Array<PrimExpr>& i, const Array<PrimExpr>& shape);

/// out[i] = f(a[i], b[i]) with broadcasting
template <class Fn>
te::Tensor Zip(const te::Tensor& a, const te::Tensor& b, Fn f, String name = "broadcast") {
  const Array<PrimExpr> shape = BroadcastShape(a.shape(), b.shape());
  return te::Compute(shape, [&](te::Indices i) { return f(BroadcastAt(a, i, shape), BroadcastAt(b, i, shape)); }, name);
}

BATON_DLL te::Tensor Cast(const te::Tensor& x, DataType dtype);
BATON_DLL te::Tensor Full(const Array<PrimExpr>& shape, PrimExpr value);
/// The tensor at other indices: out[i] = x[f(i)].
template <class Fn>
te::Tensor Pick(const Array<PrimExpr>& shape, const te::Tensor& x, Fn f, String name = "injective") {
  return te::Compute(shape, [&](te::Indices i) { return x(Array<PrimExpr>(f(i))); }, name);
}

/// Integer division that truncates; 0 for a divisor of 0, and no trap for the smallest number by -1.
BATON_DLL PrimExpr SafeTruncDiv(PrimExpr a, PrimExpr b);
BATON_DLL PrimExpr SafeTruncMod(PrimExpr a, PrimExpr b);
BATON_DLL PrimExpr SafeFloorDiv(PrimExpr a, PrimExpr b);
BATON_DLL PrimExpr SafeFloorMod(PrimExpr a, PrimExpr b);
/// a ** b for integers with broadcasting, in the dtype of a, wrapping; a negative exponent gives the truncated
/// quotient.
BATON_DLL te::Tensor IntPower(const te::Tensor& a, const te::Tensor& b);
/// A number in another dtype as NumPy's astype has it: bool is `!= 0`; a narrow float goes through float32 once.
BATON_DLL PrimExpr Convert(DataType dtype, PrimExpr x);
/// x with its value clamped to what `dtype` can hold, then converted (rounding is the caller's).
BATON_DLL PrimExpr SaturatingCast(DataType dtype, PrimExpr x);

}  // namespace baton::topi

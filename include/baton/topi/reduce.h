// SPDX-License-Identifier: Apache-2.0
// Reductions over some axes of a tensor, and statements over whole buffers.
#pragma once

#include <baton/te/tensor.h>
#include <baton/tir/op.h>
#include <baton/tir/stmt.h>

#include <vector>

namespace baton::topi {

using Combine = PrimExpr (*)(PrimExpr source, const Array<te::IterVar>& axis);  ///< te::Sum, te::MaxOf, ...

/// The shape without `axes` (sorted, not negative), or with extent 1 there.
BATON_DLL Array<PrimExpr> ReducedShape(const Array<PrimExpr>& shape, const std::vector<int64_t>& axes, bool keepdims);
/// Index of the element of x at `i` of the reduced shape, the reduced axes at `k`.
BATON_DLL Array<PrimExpr> ReducedAt(size_t ndim, const std::vector<int64_t>& axes, bool keepdims,
                                    const Array<PrimExpr>& i, const Array<PrimExpr>& k);
/// Iteration variables over `axes` of a shape.
BATON_DLL Array<te::IterVar> ReduceAxes(const Array<PrimExpr>& shape, const std::vector<int64_t>& axes);
inline Array<PrimExpr> VarsOf(const Array<te::IterVar>& axes) {
  Array<PrimExpr> out;
  for (const te::IterVar& a : axes) out.push_back(a->var);
  return out;
}
/// combine over `axes` of f(x[at], at, k): f sees the value, its index, and its index on the reduced axes.
template <class Fn>
te::Tensor ReduceWith(const te::Tensor& x, const std::vector<int64_t>& axes, bool keepdims, Combine combine, Fn f,
                      String name) {
  Array<te::IterVar> k = ReduceAxes(x.shape(), axes);
  return te::Compute(
      ReducedShape(x.shape(), axes, keepdims),
      [&](te::Indices i) {
        Array<PrimExpr> at = ReducedAt(x.shape().size(), axes, keepdims, i, VarsOf(k));
        PrimExpr v = f(x(at), at, VarsOf(k));
        return k.empty() ? v : combine(v, k);
      },
      name);
}
/// Number of elements reduced to one result.
BATON_DLL PrimExpr ReducedCount(const Array<PrimExpr>& shape, const std::vector<int64_t>& axes);

/// A tensor that a statement fills: body(input buffers, output buffer) -> Stmt.
BATON_DLL te::Tensor MakeExtern(const Array<te::Tensor>& in, const Array<tir::Buffer>& in_buffers, tir::Buffer out,
                                tir::Stmt body, String name);
BATON_DLL Array<tir::Buffer> BuffersOf(const Array<te::Tensor>& in);
template <class Fn>
te::Tensor Extern(const Array<PrimExpr>& shape, DataType dtype, const Array<te::Tensor>& in, Fn body, String name) {
  Array<tir::Buffer> buffers = BuffersOf(in);
  tir::Buffer out = tir::Buffer::Make(shape, dtype, name);
  return MakeExtern(in, buffers, out, body(buffers, out), name);
}
/// Loops over a shape: body(indices) -> Stmt.
BATON_DLL tir::Stmt WrapLoops(const Array<PrimExpr>& shape, const Array<tir::Var>& vars, tir::Stmt body);
template <class Fn>
tir::Stmt Loops(const Array<PrimExpr>& shape, Fn body) {
  Array<tir::Var> vars = te::MakeIndexVars(shape.size());
  return WrapLoops(shape, vars, body(Array<PrimExpr>(vars.begin(), vars.end())));
}
BATON_DLL tir::Stmt Store(const tir::Buffer& buffer, const Array<PrimExpr>& at, PrimExpr value);

/// Row-major position of an index.
BATON_DLL PrimExpr Ravel(const Array<PrimExpr>& at, const Array<PrimExpr>& shape);
/// The index at a row-major position.
BATON_DLL Array<PrimExpr> Unravel(PrimExpr position, const Array<PrimExpr>& shape);
BATON_DLL PrimExpr Product(const Array<PrimExpr>& shape);
/// The same elements, row-major, in another shape.
BATON_DLL te::Tensor Reshape(const te::Tensor& x, const Array<PrimExpr>& shape);

}  // namespace baton::topi

// SPDX-License-Identifier: Apache-2.0
// Building calls of operators in C++.
#pragma once

#include <baton/ir/attrs.h>
#include <baton/relay/expr.h>

namespace baton::relay {

/// op(args) without attributes.
inline Expr MakeCall(const Op& op, Array<Expr> args, Attrs attrs = Attrs()) {
  CallNode n;
  n.op = op, n.args = std::move(args), n.attrs = std::move(attrs);
  return Call(std::move(n));
}
/// Attributes of class A with what `set` stores in them: MakeAttrs<ClipAttrs>([](ClipAttrs* a) { a->a_min = 0; })
template <class A, class Fn>
Attrs MakeAttrs(Fn set) {
  auto n = runtime::make_object<A>();
  set(n.get());
  return Attrs(runtime::ObjectPtr<runtime::Object>(n));
}
template <class A>
Attrs MakeAttrs() {
  return Attrs(runtime::ObjectPtr<runtime::Object>(runtime::make_object<A>()));
}
template <class A, class Fn>
Expr MakeCall(const Op& op, Array<Expr> args, Fn set) {
  return MakeCall(op, std::move(args), MakeAttrs<A>(set));
}

// Short forms for decompositions; operands broadcast.
BATON_DLL Expr Add(Expr a, Expr b);
BATON_DLL Expr Subtract(Expr a, Expr b);
BATON_DLL Expr Multiply(Expr a, Expr b);
BATON_DLL Expr Divide(Expr a, Expr b);
BATON_DLL Expr Maximum(Expr a, Expr b);
BATON_DLL Expr Minimum(Expr a, Expr b);
BATON_DLL Expr Where(Expr condition, Expr a, Expr b);
BATON_DLL Expr Cast(Expr data, DataType dtype);
BATON_DLL Expr Reshape(Expr data, Array<int64_t> newshape);
BATON_DLL Expr Transpose(Expr data, Array<int64_t> axes);
BATON_DLL Expr ExpandDims(Expr data, int64_t axis, int64_t num_newaxis = 1);
BATON_DLL Expr Squeeze(Expr data, Array<int64_t> axis);
BATON_DLL Expr ReduceCall(const Op& op, Expr data, Array<int64_t> axis, bool keepdims);
/// A rank-0 constant.
BATON_DLL Expr MakeScalar(double value, DataType dtype);
/// A rank-1 int64 constant.
BATON_DLL Expr MakeInts(const std::vector<int64_t>& values);

}  // namespace baton::relay

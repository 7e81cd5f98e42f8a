// SPDX-License-Identifier: Apache-2.0
// A node of the same kind with other parts. It is not copied and changed, since to count the old parts up and down
// again is to fetch them, which takes longer than the rest.
#pragma once

#include <baton/relay/expr.h>

#include <utility>

namespace baton::relay {

/// The list of `part(first)` and the `n - 1` behind it; `part` gives an Expr.
template <class P>
Array<Expr> ListOf(size_t n, size_t first, P part) {
  auto list = make_object<runtime::ArrayObj>();
  list->items.reserve(n);
  for (size_t i = 0; i < n; ++i) list->items.emplace_back(part(first + i));
  return Array<Expr>(std::move(list));
}

/// What `op` says beside its parts, with the parts `part(0)`, `part(1)`, ... in the order of ForEachPart. Like a copy
/// it has no type yet.
template <class P>
Expr WithParts(const CallNode* op, Array<Type> type_args, P part) {
  static_assert(sizeof(CallNode) == sizeof(ExprNode) + 4 * sizeof(ObjectRef), "each of its fields is named here");
  auto n = make_object<CallNode>(CallNode{
      .op = part(0), .args = ListOf(op->args.size(), 1, part), .attrs = op->attrs, .type_args = std::move(type_args)});
  n->span = op->span;
  return Call(n);
}
template <class P>
Expr WithParts(const TupleNode* op, P part) {
  static_assert(sizeof(TupleNode) == sizeof(ExprNode) + sizeof(ObjectRef), "each of its fields is named here");
  auto n = make_object<TupleNode>(TupleNode{.fields = ListOf(op->fields.size(), 0, part)});
  n->span = op->span;
  return Tuple(n);
}
template <class P>
Expr WithParts(const TupleGetItemNode* op, P part) {
  auto n = make_object<TupleGetItemNode>(*op);
  n->tuple = part(0);
  return TupleGetItem(n);
}

}  // namespace baton::relay

// SPDX-License-Identifier: Apache-2.0
#include "known_values.h"

#include <baton/runtime/registry.h>
#include <baton/support/stack.h>

#include <algorithm>

#include "elements.h"

namespace baton::relay {
namespace {

bool AllKnown(const Elements& x) {
  return std::all_of(x.begin(), x.end(), [](const PrimExpr& e) { return e.defined(); });
}

/// The number of elements of a type that this looks at; -1 for others.
int64_t CountOf(const Type& type) {
  int64_t count = -1;
  if (!HasElements(type, &count)) return -1;
  return count <= static_cast<int64_t>(KnownValues::kMax) ? count : -1;
}

}  // namespace

std::optional<Elements> KnownValues::Of(const Expr& e) {
  std::optional<Elements> out = InPart(e);
  return out && AllKnown(*out) ? out : std::nullopt;
}

std::optional<Elements> KnownValues::InPart(const Expr& e) {
  if (const uint32_t* at = index_.Find(e.get())) return found_[*at].second;
  const int64_t count = e->checked_type_.defined() ? CountOf(e->checked_type()) : -1;
  std::optional<Elements> out;
  if (count >= 0) out = support::WithStack([&] { return Find(e, static_cast<size_t>(count)); });
  index_.Insert(e.get()) = static_cast<uint32_t>(found_.size());
  found_.emplace_back(e, out);
  return out;
}

Elements KnownValues::Find(const Expr& e, size_t count) {
  std::optional<Elements> out;
  if (const auto* c = e.as<ConstantNode>()) {
    out.emplace();
    for (int64_t i : c->data.Contiguous().ToInts()) out->push_back(PrimExpr(i));
  } else if (const auto* call = e.as<CallNode>()) {
    out = OfCall(call);
  }
  if (leaf_ && (!out || !AllKnown(*out))) {
    if (std::optional<Elements> named = leaf_(e)) out = std::move(named);
  }
  return out && out->size() == count ? *out : Elements(count);
}

std::optional<Elements> KnownValues::OfTuple(const Expr& tuple) {
  const auto* t = tuple.as<TupleNode>();
  if (!t) return std::nullopt;
  Elements out;
  for (const Expr& f : t->fields) {
    const std::optional<Elements> part = InPart(f);
    if (!part) return std::nullopt;
    out.insert(out.end(), part->begin(), part->end());
  }
  return out;
}

std::optional<Elements> KnownValues::OfCall(const CallNode* call) {
  const auto* op = call->op.as<OpNode>();
  if (!op || !ElementsRuleOf(GetRef<Op>(op))) return std::nullopt;
  std::vector<std::optional<Elements>> in;
  Array<Type> types;
  for (const Expr& a : call->args) {
    if (!a->checked_type_.defined()) return std::nullopt;
    types.push_back(a->checked_type());
    in.push_back(a->checked_type_.as<TupleTypeNode>() ? OfTuple(a) : InPart(a));
  }
  const DataType dtype = call->checked_type_.as<TensorTypeNode>()->dtype;
  return ElementsOfCall(GetRef<Op>(op), {call->attrs, types, in, dtype}, call->checked_type());
}

// The elements of an expression with types, null for one that is not known; null for an expression that has none.
BATON_REGISTER_GLOBAL("relay.analysis.known_elements").set_body_typed([](Expr e) {
  KnownValues known;
  const std::optional<Elements> found = known.InPart(e);
  return found ? Array<PrimExpr>(*found) : Array<PrimExpr>(runtime::ObjectPtr<Object>());
});
// Whether the operator has a rule for elements.
BATON_REGISTER_GLOBAL("relay.op.has_elements").set_body_typed([](Op op) { return ElementsRuleOf(op) != nullptr; });

}  // namespace baton::relay

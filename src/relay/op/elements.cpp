// SPDX-License-Identifier: Apache-2.0
#include "elements.h"

#include <baton/arith/extent.h>
#include <baton/tir/op.h>

#include <algorithm>
#include <utility>

namespace baton::relay {
namespace {

/// Whether a literal is a number of the dtype.
bool Within(DataType t, int64_t v) {
  if (t.is_bool()) return v == 0 || v == 1;
  return t.bits() >= 64 || (v >= -(int64_t{1} << (t.bits() - 1)) && v < (int64_t{1} << (t.bits() - 1)));
}

/// Returns the canonical form; null where it is neither an extent nor a literal of the dtype.
PrimExpr Canonical(PrimExpr e, DataType t) {
  if (!e.defined() || e.as<tir::AnyNode>() || !arith::ToCanonicalExtent(&e)) return PrimExpr();
  const int64_t* v = tir::as_const_int(e);
  return v && !Within(t, *v) ? PrimExpr() : e;
}

}  // namespace

bool HasElements(const Type& type, int64_t* count) {
  const auto* t = type.as<TensorTypeNode>();
  if (!t || t->shape.size() > 1 || !(t->dtype.is_int() || t->dtype.is_bool())) return false;
  *count = t->shape.empty() ? 1 : DimOf(t->shape[0]);
  return true;
}

std::optional<Elements> ElementsOfCall(const Op& op, const ElementsSite& site, const Type& result) {
  int64_t count = -1;
  const ElementsFn rule = HasElements(result, &count) ? ElementsRuleOf(op) : nullptr;
  if (!rule) return std::nullopt;
  std::optional<Elements> out = rule(site);
  if (!out || (count >= 0 && static_cast<int64_t>(out->size()) != count)) return std::nullopt;
  bool any = out->empty();
  for (PrimExpr& e : *out) {
    e = Canonical(std::move(e), site.dtype);
    any = any || e.defined();
  }
  return any ? out : std::nullopt;
}

PrimExpr OfCondition(const PrimExpr& condition) {
  if (const int64_t* v = tir::as_const_int(condition)) return PrimExpr(int64_t{*v != 0});
  const arith::Fact f = arith::ExtentCondition(condition);
  if (f != arith::Fact::kOpen) return PrimExpr(int64_t{f == arith::Fact::kYes});
  return tir::Select(condition, PrimExpr(int64_t{1}), PrimExpr(int64_t{0}));
}

PrimExpr ConditionOf(const PrimExpr& element) {
  if (const int64_t* v = tir::as_const_int(element)) return tir::make_const(DataType::Bool(), *v != 0);
  const auto* open = element.as<tir::SelectNode>();
  const bool plain = open && tir::is_const_int(open->true_value, 1) && tir::is_const_int(open->false_value, 0);
  return plain ? open->condition : PrimExpr(tir::NE(element, PrimExpr(int64_t{0})));
}

std::optional<Elements> SameElements(const ElementsSite& site) { return site.in[0]; }

int64_t CountOfBroadcast(const ElementsSite& site) {
  size_t n = 1;
  for (const auto& x : site.in) {
    if (!x) return -1;
    n = x->size() == 1 ? n : x->size();
  }
  const bool fits =
      std::all_of(site.in.begin(), site.in.end(), [&](auto& x) { return x->size() == n || x->size() == 1; });
  return fits ? static_cast<int64_t>(n) : -1;
}

std::optional<Elements> ElementsOfPairs(const ElementsSite& site, PrimExpr (*f)(PrimExpr, PrimExpr), bool conditions) {
  const int64_t n = CountOfBroadcast(site);
  if (n < 0) return std::nullopt;
  Elements out(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    const PrimExpr &a = BroadcastElement(*site.in[0], i), &b = BroadcastElement(*site.in[1], i);
    if (!a.defined() || !b.defined()) continue;
    const PrimExpr y = conditions ? f(ConditionOf(a), ConditionOf(b)) : f(a, b);
    out[static_cast<size_t>(i)] = y.defined() && y.dtype().is_bool() ? OfCondition(y) : y;
  }
  return out;
}

Elements ElementsAt(const Elements& x, const Elements& places, bool from_end) {
  const int64_t n = static_cast<int64_t>(x.size());
  Elements out;
  for (const PrimExpr& i : places) {
    const int64_t* at = i.defined() ? tir::as_const_int(i) : nullptr;
    const int64_t k = !at ? -1 : *at < 0 && from_end ? *at + n : *at;
    out.push_back(k >= 0 && k < n ? x[static_cast<size_t>(k)] : PrimExpr());
  }
  return out;
}

std::optional<Elements> ElementsOfReduction(const ElementsSite& site, PrimExpr (*f)(PrimExpr, PrimExpr),
                                            PrimExpr none) {
  if (!site.in[0]) return std::nullopt;
  PrimExpr all = std::move(none);
  for (size_t i = 0; i < site.in[0]->size(); ++i) {
    const PrimExpr& e = (*site.in[0])[i];
    if (!e.defined()) return std::nullopt;
    all = i == 0 ? e : f(all, e);
  }
  return Elements{all};
}

}  // namespace baton::relay

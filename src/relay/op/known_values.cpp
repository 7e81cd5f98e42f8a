// SPDX-License-Identifier: Apache-2.0
#include "known_values.h"

#include <baton/arith/extent.h>
#include <baton/relay/op/transform.h>
#include <baton/support/stack.h>

#include <algorithm>

#include "common.h"

namespace baton::relay {
namespace {

using Elements = KnownValues::Elements;
using MaybeElements = std::optional<Elements>;

/// Rank 0 or 1 with so few integers or truth values as this looks at; the count is -1 where it is no literal.
bool IsShort(const Expr& e, int64_t* count) {
  const auto* t = e->checked_type_.as<TensorTypeNode>();
  if (!t || t->shape.size() > 1 || !(t->dtype.is_int() || t->dtype.is_bool())) return false;
  *count = t->shape.empty() ? 1 : DimOf(t->shape[0]);
  return *count >= 0 && *count <= static_cast<int64_t>(KnownValues::kMax);
}

MaybeElements OfConstant(const runtime::NDArray& value) {
  Elements out;
  for (int64_t i : value.Contiguous().ToInts()) out.push_back(PrimExpr(i));
  return out;
}

PrimExpr Decided(const PrimExpr& condition) {
  const arith::Fact f = arith::ExtentCondition(condition);
  return f == arith::Fact::kOpen ? tir::Select(condition, PrimExpr(1), PrimExpr(0))
                                 : PrimExpr(int64_t{f == arith::Fact::kYes});
}

/// One of two, by a truth value.
PrimExpr Chosen(const PrimExpr& c, const PrimExpr& a, const PrimExpr& b) {
  const int64_t known = DimOf(c);
  if (known >= 0) return known != 0 ? a : b;
  const auto* open = c.as<tir::SelectNode>();
  const bool plain = open && DimOf(open->true_value) == 1 && DimOf(open->false_value) == 0;
  return tir::Select(plain ? open->condition : tir::NE(c, PrimExpr(0)), a, b);
}

/// One element of a call of two operands; null where it is not known.
PrimExpr Two(const Expr& op, const PrimExpr& a, const PrimExpr& b) {
  auto is = [&](const Op& o) { return op.same_as(o); };
  const bool positive = DimOf(b) > 0, never_negative = arith::ExtentAtLeast(a, 0) == arith::Fact::kYes;
  if (is(op::add)) return a + b;
  if (is(op::subtract)) return a - b;
  if (is(op::multiply)) return a * b;
  if (is(op::maximum)) return max(a, b);
  if (is(op::minimum)) return min(a, b);
  if (positive && (is(op::floor_divide) || (is(op::divide) && never_negative))) return floordiv(a, b);
  if (positive && (is(op::floor_mod) || (is(op::mod) && never_negative))) return floormod(a, b);
  if (is(op::equal)) return Decided(tir::EQ(a, b));
  if (is(op::not_equal)) return Decided(tir::NE(a, b));
  if (is(op::less)) return Decided(tir::LT(a, b));
  if (is(op::less_equal)) return Decided(tir::LE(a, b));
  if (is(op::greater)) return Decided(tir::GT(a, b));
  if (is(op::greater_equal)) return Decided(tir::GE(a, b));
  return PrimExpr();
}

MaybeElements Elementwise(const Expr& op, const std::vector<Elements>& in) {
  size_t n = 1;
  for (const Elements& x : in) n = x.size() == 1 ? n : x.size();
  Elements out;
  for (size_t i = 0; i < n; ++i) {
    auto at = [&](size_t k) { return in[k][in[k].size() == 1 ? 0 : i]; };
    PrimExpr e;
    if (op.same_as(op::where)) {
      e = Chosen(at(0), at(1), at(2));
    } else {
      e = Two(op, at(0), at(1));
    }
    if (!e.defined()) return std::nullopt;
    out.push_back(e);
  }
  return out;
}

MaybeElements Slice(const StridedSliceAttrs& a, const Elements& x) {
  if (a.begin.size() != 1 || a.end.size() != 1 || !a.begin.is_literal() || !a.end.is_literal()) return std::nullopt;
  const int64_t n = static_cast<int64_t>(x.size()), step = a.strides.empty() ? 1 : a.strides[0];
  if (step < 1 || a.slice_mode != "end") return std::nullopt;
  auto place = [&](int64_t v) { return std::clamp<int64_t>(v < 0 ? v + n : v, 0, n); };
  Elements out;
  for (int64_t i = place(a.begin[0].literal()); i < place(a.end[0].literal()); i += step) out.push_back(x[i]);
  return out;
}

MaybeElements Take(const Elements& x, const Elements& indices) {
  Elements out;
  for (const PrimExpr& i : indices) {
    const auto* at = i.as<IntImmNode>();
    const int64_t n = static_cast<int64_t>(x.size());
    const int64_t k = !at ? -1 : at->value < 0 ? at->value + n : at->value;
    if (k < 0 || k >= n) return std::nullopt;
    out.push_back(x[static_cast<size_t>(k)]);
  }
  return out;
}

MaybeElements Reduced(const Expr& op, const Elements& x) {
  if (x.empty()) return std::nullopt;
  PrimExpr all = x[0];
  for (size_t i = 1; i < x.size(); ++i) {
    all = op.same_as(op::prod)  ? all * x[i]
          : op.same_as(op::sum) ? all + x[i]
          : op.same_as(op::max) ? max(all, x[i])
                                : min(all, x[i]);
  }
  return Elements{all};
}

}  // namespace

MaybeElements KnownValues::Of(const Expr& e) {
  if (const uint32_t* at = index_.Find(e.get())) return found_[*at].second;
  MaybeElements out = support::WithStack([&] { return Find(e); });
  index_.Insert(e.get()) = static_cast<uint32_t>(found_.size());
  found_.emplace_back(e, out);
  return out;
}

MaybeElements KnownValues::Find(const Expr& e) {
  int64_t count = -1;
  if (!e->checked_type_.defined() || !IsShort(e, &count)) return std::nullopt;
  MaybeElements out;
  if (const auto* c = e.as<ConstantNode>()) {
    out = OfConstant(c->data);
  } else if (const auto* call = e.as<CallNode>()) {
    out = OfCall(call);
  }
  if (!out && leaf_) out = leaf_(e);
  if (!out || static_cast<int64_t>(out->size()) != count) return std::nullopt;
  for (PrimExpr& x : *out) {
    if (!arith::ToCanonicalExtent(&x)) return std::nullopt;
  }
  return out;
}

MaybeElements KnownValues::OfTuple(const Expr& tuple) {
  const auto* t = tuple.as<TupleNode>();
  if (!t) return std::nullopt;
  Elements out;
  for (const Expr& f : t->fields) {
    const MaybeElements part = Of(f);
    if (!part) return std::nullopt;
    out.insert(out.end(), part->begin(), part->end());
  }
  return out;
}

MaybeElements KnownValues::OfCall(const CallNode* call) {
  const Expr& op = call->op;
  auto is = [&](const Op& o) { return op.same_as(o); };
  if (is(op::shape_of) || is(op::ndarray_size)) {
    const auto* t = call->args[0]->checked_type_.as<TensorTypeNode>();
    if (!t) return std::nullopt;
    Elements out(t->shape.begin(), t->shape.end());
    if (is(op::shape_of)) return out;
    PrimExpr all = 1;
    for (const PrimExpr& d : out) all = all * d;
    return Elements{all};
  }
  if (is(op::concatenate) || is(op::stack)) return OfTuple(call->args[0]);
  std::vector<Elements> in;
  for (const Expr& a : call->args) {
    MaybeElements x = Of(a);
    if (!x) return std::nullopt;
    in.push_back(std::move(*x));
  }
  if (in.empty()) return std::nullopt;
  if (is(op::cast)) {
    if (!AttrsAs<CastAttrs>(call->attrs).dtype.is_bool()) return in[0];
    return Elementwise(op::not_equal, {in[0], {PrimExpr(0)}});
  }
  if (is(op::reshape) || is(op::squeeze) || is(op::expand_dims) || is(op::copy)) return in[0];
  if (is(op::take) && call->args[0]->checked_type_.as<TensorTypeNode>()->shape.size() == 1) return Take(in[0], in[1]);
  if (is(op::strided_slice)) return Slice(AttrsAs<StridedSliceAttrs>(call->attrs), in[0]);
  if (is(op::prod) || is(op::sum) || is(op::max) || is(op::min)) return Reduced(op, in[0]);
  if (in.size() == 2 || is(op::where)) return Elementwise(op, in);
  return std::nullopt;
}

}  // namespace baton::relay

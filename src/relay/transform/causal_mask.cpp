// SPDX-License-Identifier: Apache-2.0
#include "causal_mask.h"

#include <baton/arith/extent.h>
#include <baton/relay/lower.h>
#include <baton/relay/op.h>
#include <baton/relay/op/transform.h>
#include <baton/runtime/scalar.h>
#include <baton/tir/op.h>

#include <algorithm>
#include <limits>

namespace baton::relay::transform {
namespace {

/// Steps from a comparison down to a row of numbers.
constexpr int kMostSteps = 12;

const TensorTypeNode* TypeAt(const Expr& e) {
  return e->checked_type_.defined() ? e->checked_type_.as<TensorTypeNode>() : nullptr;
}
bool Equal(const PrimExpr& a, const PrimExpr& b) { return arith::ExtentsEqual(a, b) == arith::Fact::kYes; }

}  // namespace

std::optional<double> NumberOf(const Expr& e) {
  const auto* c = e.as<ConstantNode>();
  if (!c || c->data.numel() != 1 || !c->data.dtype().is_floating()) return std::nullopt;
  return c->data.GetDouble(0);
}

bool CausalMasks::Adds(const Expr& mask, double factor) {
  if (const auto* c = mask.as<ConstantNode>()) return ShowsByConstant(c->data, factor, false, false);
  const auto* call = mask.as<CallNode>();
  if (!call) return false;
  if (IsView(call->op)) return Adds(call->args[0], factor);
  if (!call->op.same_as(op::where)) return false;
  const std::optional<double> a = NumberOf(call->args[1]), b = NumberOf(call->args[2]);
  if (!a || !b) return false;
  hides_ = (*a == 0 ? *b : *a) * factor;
  if (*a == 0 && *b * factor <= kHides) return Shows(call->args[0]);
  return *b == 0 && *a * factor <= kHides && Shows(call->args[0], true);
}

bool CausalMasks::Shows(const Expr& condition, bool inverse) {
  if (const auto* c = condition.as<ConstantNode>()) return ShowsByConstant(c->data, 1, true, inverse);
  const auto* call = condition.as<CallNode>();
  if (!call) return false;
  if (IsView(call->op)) return Shows(call->args[0], inverse);
  if (call->op.same_as(op::logical_not)) return Shows(call->args[0], !inverse);
  if (call->args.size() != 2) return false;
  const Expr &a = call->args[0], &b = call->args[1];
  auto is = [&](const Op& plain, const Op& negated) { return call->op.same_as(inverse ? negated : plain); };
  if (is(op::less_equal, op::greater)) return Compares(a, b, 0);
  if (is(op::greater_equal, op::less)) return Compares(b, a, 0);
  if (is(op::less, op::greater_equal)) return Compares(a, b, -1);
  return is(op::greater, op::less_equal) && Compares(b, a, -1);
}

bool CausalMasks::ShowsByConstant(const runtime::NDArray& values, double factor, bool condition, bool inverse) {
  const int64_t rows = DimOf(rows_), keys = DimOf(keys_), rank = values.ndim();
  if (rows < 1 || keys < rows || rank < 2 || values.numel() != rows * keys || values.dim(rank - 1) != keys)
    return false;
  if (!runtime::IsLoadable(values.dtype()) || (condition && !values.dtype().is_bool())) return false;
  const runtime::NDArray dense = values.Contiguous();
  hides_ = -std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < keys; ++j) {
      const double x = runtime::LoadDouble(dense.data(), dense.dtype(), i * keys + j) * factor;
      const bool shown = condition ? (x != 0) != inverse : x == 0, hidden = condition ? !shown : x <= kHides;
      if (j <= i + keys - rows ? !shown : !hidden) return false;
      if (j > i + keys - rows && !condition) hides_ = std::max(hides_, x);
    }
  }
  return true;
}

bool CausalMasks::Compares(const Expr& key, const Expr& place, int64_t more) {
  const std::optional<Places> a = PlacesOf(key), b = PlacesOf(place);
  if (!a || !b) return false;
  // Along a dimension of extent 1 nothing varies.
  auto only = [](const Places& p, size_t from_end, const PrimExpr& extent) {
    const auto count = std::count(p.along.begin(), p.along.end(), true);
    if (DimOf(extent) == 1) return count == 0;
    return count == 1 && p.along.size() >= from_end && p.along[p.along.size() - from_end];
  };
  return only(*a, 1, keys_) && only(*b, 2, rows_) && Equal(b->offset + PrimExpr(more) + rows_, a->offset + keys_);
}

std::optional<CausalMasks::Places> CausalMasks::PlacesOf(const Expr& e, int steps) {  // NOLINT(misc-no-recursion)
  const auto* type = TypeAt(e);
  if (!type || !type->dtype.is_integral() || steps > kMostSteps) return std::nullopt;
  const size_t rank = type->shape.size();
  const bool one = std::all_of(type->shape.begin(), type->shape.end(), [](const PrimExpr& d) { return DimOf(d) == 1; });
  if (one && rank < 2) {
    const std::optional<KnownValues::Elements> value = known_.Of(e);
    if (!value || value->size() != 1) return std::nullopt;
    return Places{std::vector<bool>(rank), (*value)[0]};
  }
  const auto* call = e.as<CallNode>();
  if (!call) return std::nullopt;
  if (const auto* arange = call->attrs.as<ArangeAttrs>()) {
    const std::optional<KnownValues::Elements> start = known_.Of(call->args[0]), step = known_.Of(call->args[2]);
    if (!start || !step || start->size() != 1 || step->size() != 1 || !arange->length.defined()) return std::nullopt;
    if (DimOf((*step)[0]) != 1) return std::nullopt;
    return Places{{true}, (*start)[0]};
  }
  if (const auto* slice = call->attrs.as<StridedSliceAttrs>()) {
    const bool plain = rank == 1 && call->args.size() == 1 && slice->begin.size() == 1 && slice->strides.size() == 1 &&
                       slice->strides[0] == 1 && slice->slice_mode == "end";
    std::optional<Places> in = plain ? PlacesOf(call->args[0], steps + 1) : std::nullopt;
    const PrimExpr begin = plain ? slice->begin[0].expr() : PrimExpr(int64_t{-1});
    if (!in || !in->along[0] || (slice->begin[0].is_literal() && slice->begin[0].literal() < 0)) return std::nullopt;
    in->offset = in->offset + begin;
    return in;
  }
  if (call->op.same_as(op::cast)) return PlacesOf(call->args[0], steps + 1);
  if (IsView(call->op)) {
    // Dimensions of extent 1 come and go.
    std::optional<Places> in = PlacesOf(call->args[0], steps + 1);
    if (!in) return std::nullopt;
    Places out{{}, in->offset};
    const Array<PrimExpr>& from = TypeAt(call->args[0])->shape;
    size_t next = 0;
    auto skip = [&] {
      while (next < from.size() && DimOf(from[static_cast<int64_t>(next)]) == 1) ++next;
    };
    for (const PrimExpr& extent : type->shape) {
      if (DimOf(extent) == 1) {
        out.along.push_back(false);
        continue;
      }
      skip();
      if (next == from.size() || !Equal(from[static_cast<int64_t>(next)], extent)) return std::nullopt;
      out.along.push_back(in->along[next++]);
    }
    skip();
    return next == from.size() ? std::optional(out) : std::nullopt;
  }
  if (!call->op.same_as(op::add) && !call->op.same_as(op::subtract)) return std::nullopt;
  std::optional<Places> a = PlacesOf(call->args[0], steps + 1), b = PlacesOf(call->args[1], steps + 1);
  if (!a || !b) return std::nullopt;
  const bool minus = call->op.same_as(op::subtract);
  Places out{std::vector<bool>(rank), minus ? a->offset - b->offset : a->offset + b->offset};
  for (const Places* p : {&*a, &*b}) {
    for (size_t d = 0; d < p->along.size(); ++d) {
      if (!p->along[d]) continue;
      const size_t at = d + rank - p->along.size();
      if (out.along[at] || (minus && p == &*b)) return std::nullopt;
      out.along[at] = true;
    }
  }
  return out;
}

}  // namespace baton::relay::transform

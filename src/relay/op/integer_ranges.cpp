// SPDX-License-Identifier: Apache-2.0
#include "relay/op/integer_ranges.h"

#include <baton/relay/op.h>
#include <baton/relay/op/make.h>
#include <baton/relay/op/nn.h>
#include <baton/relay/op/tensor.h>
#include <baton/relay/op/transform.h>
#include <baton/runtime/scalar.h>

#include "relay/op/later.h"

namespace baton::relay {
namespace {

IntegerRange Hull(std::initializer_list<double> values) { return {std::min(values), std::max(values)}; }

const TensorTypeNode* TensorOf(const Expr& e) { return e->checked_type_.as<TensorTypeNode>(); }

std::optional<IntegerRange> OfDtype(DataType t) {
  if (t.bits() > 16 || t.lanes() != 1) return std::nullopt;
  const double size = std::ldexp(1.0, t.bits());
  if (t.is_bool()) return IntegerRange{0, 1};
  return t.is_uint() ? IntegerRange{0, size - 1} : IntegerRange{-size / 2, size / 2 - 1};
}

std::optional<IntegerRange> RangeOfConstant(const NDArray& data) {
  const NDArray x = data.Contiguous();
  if (x.numel() == 0 || !runtime::IsLoadable(x.dtype())) return std::nullopt;
  IntegerRange r{HUGE_VAL, -HUGE_VAL};
  for (int64_t i = 0; i < x.numel(); ++i) {
    const double v = runtime::LoadDouble(x.data(), x.dtype(), i);
    r = {std::min(r.low, v), std::max(r.high, v)};
  }
  return r;
}

}  // namespace

std::optional<IntegerRange> IntegerRanges::Of(const Expr& e, int depth) {
  const auto* t = TensorOf(e);
  if (!t || !t->dtype.is_integral() || depth > 24) return std::nullopt;
  bool fresh = false;
  std::optional<IntegerRange>& known = known_.Insert(e.get(), &fresh);
  if (!fresh) return known;
  std::optional<IntegerRange> r = Find(e, depth);
  const std::optional<IntegerRange> all = OfDtype(t->dtype);
  // Values beyond the dtype wrap round.
  if (all && (!r || r->low < all->low || r->high > all->high)) r = all;
  if (r && r->Magnitude() > kExactInFloat32) r.reset();
  *known_.Find(e.get()) = r;
  return r;
}

std::optional<IntegerRange> IntegerRanges::Find(const Expr& e, int depth) {
  if (const auto* c = e.as<ConstantNode>()) return Reading(c->data, RangeOfConstant);
  const auto* call = e.as<CallNode>();
  const OpDef* def = call ? DefOf(call->op) : nullptr;
  if (!def || call->args.empty()) return std::nullopt;
  auto arg = [&](int64_t i) { return Of(call->args[i], depth + 1); };
  if (call->op.same_as(op::cast) || def->traits.values == Values::kSelects || def->traits.values == Values::kView)
    return arg(0);
  if (call->args.size() != 2) return std::nullopt;
  const std::optional<IntegerRange> a = arg(0), b = a ? arg(1) : std::nullopt;
  if (!a || !b) return std::nullopt;
  if (call->op.same_as(op::subtract)) return IntegerRange{a->low - b->high, a->high - b->low};
  if (call->op.same_as(op::add)) return IntegerRange{a->low + b->low, a->high + b->high};
  if (call->op.same_as(op::multiply))
    return Hull({a->low * b->low, a->low * b->high, a->high * b->low, a->high * b->high});
  if (call->op.same_as(op::pad)) return Hull({a->low, b->low, a->high, b->high});
  return std::nullopt;
}

std::optional<SummedAxes> SummedAxesOf(const CallNode* call) {
  const auto *x = TensorOf(call->args[0]), *w = TensorOf(call->args[1]);
  if (!x || !w || x->shape.size() < 2 || w->shape.size() < 2) return std::nullopt;
  const auto rows = static_cast<int64_t>(x->shape.size()), columns = static_cast<int64_t>(w->shape.size());
  auto flag = [&](const char* name, bool otherwise) {
    return call->attrs.defined() ? runtime::GetField(call->attrs.get(), name).As<bool>() : otherwise;
  };
  if (ConvDims(call->op) > 0) {
    const auto layout = runtime::GetField(call->attrs.get(), "data_layout").As<String>();
    const auto weights = runtime::GetField(call->attrs.get(), "kernel_layout").As<String>();
    if (!layout.view().starts_with("NC") || !weights.view().starts_with("OI")) return std::nullopt;
    if (columns != rows || columns != ConvDims(call->op) + 2) return std::nullopt;
    return SummedAxes{1, 1, true};
  }
  if (call->op.same_as(op::dense)) {
    if (columns != 2) return std::nullopt;
    return SummedAxes{rows - 1, 1, true};
  }
  if (call->op.same_as(op::matmul) || call->op.same_as(op::batch_matmul)) {
    const bool batch = call->op.same_as(op::batch_matmul);
    return SummedAxes{rows - (flag("transpose_a", false) ? 2 : 1), columns - (flag("transpose_b", batch) ? 1 : 2),
                      false};
  }
  return std::nullopt;
}

Expr SliceAlong(const Expr& e, int64_t axis, int64_t begin, int64_t end) {
  return MakeCall<StridedSliceAttrs>(op::strided_slice, {e}, [&](StridedSliceAttrs* a) {
    a->begin = Array<int64_t>{begin}, a->end = Array<int64_t>{end}, a->axes = Array<int64_t>{axis};
  });
}

}  // namespace baton::relay

// SPDX-License-Identifier: Apache-2.0
// Sums, products and extremes over the lanes of a vector.
#include <baton/tir/functor.h>
#include <baton/tir/intrin.h>
#include <fmt/format.h>

#include <cmath>

#include "tir/literals.h"

namespace baton::tir {
namespace {

using Combine = HostNumber (*)(HostNumber a, HostNumber b, DataType t);

/// A sum or product rounded to a dtype; integers are wrapped by the interpreter.
double Rounded(double v, DataType t) { return t.bits() == 64 ? v : static_cast<double>(static_cast<float>(v)); }
HostNumber Sum(HostNumber a, HostNumber b, DataType t) {
  if (t.is_floating()) return {0, Rounded(a.f + b.f, t)};
  return {static_cast<int64_t>(static_cast<uint64_t>(a.i) + static_cast<uint64_t>(b.i)), 0};
}
HostNumber Product(HostNumber a, HostNumber b, DataType t) {
  if (t.is_floating()) return {0, Rounded(a.f * b.f, t)};
  return {static_cast<int64_t>(static_cast<uint64_t>(a.i) * static_cast<uint64_t>(b.i)), 0};
}
/// NaN in either gives NaN.
template <bool kMost>
HostNumber Extreme(HostNumber a, HostNumber b, DataType t) {
  if (t.is_floating()) return std::isnan(a.f) || (!std::isnan(b.f) && (kMost ? a.f > b.f : a.f < b.f)) ? a : b;
  const bool less = t.is_uint() ? static_cast<uint64_t>(a.i) < static_cast<uint64_t>(b.i) : a.i < b.i;
  return less == kMost ? b : a;
}
HostNumber Least(HostNumber a, HostNumber b, DataType t) { return Extreme<false>(a, b, t); }
HostNumber Greatest(HostNumber a, HostNumber b, DataType t) { return Extreme<true>(a, b, t); }

template <Combine kCombine>
HostNumber InterpretLanes(Machine& machine, const CallNode* call, int /*lane*/) {
  const PrimExpr& v = call->args[0];
  std::vector<HostNumber> x;
  for (int i = 0; i < v.dtype().lanes(); ++i) x.push_back(machine.Eval(v, i));
  while (x.size() > 1) {
    const size_t half = x.size() / 2;
    std::vector<HostNumber> y;
    for (size_t i = 0; i < half; ++i) y.push_back(kCombine(x[i], x[i + half], call->dtype));
    if (x.size() % 2) y.push_back(x.back());
    x = y;
  }
  return x[0];
}

std::string CheckDot4(const CallNode* call) {
  const DataType t = call->dtype, a = call->args[0].dtype(), b = call->args[1].dtype();
  if (t.element_of() == DataType::Int(32) && a == DataType::UInt(8, 4 * t.lanes()) &&
      b == DataType::Int(8, 4 * t.lanes())) {
    return "";
  }
  return fmt::format("`tir.dot4` of {} and {} into {}: it takes uint8 and int8, four lanes for each of int32",
                     DataType2String(a), DataType2String(b), DataType2String(t));
}
std::string CheckDot2(const CallNode* call) {
  const DataType t = call->dtype, pairs = DataType::BFloat16(2 * t.lanes());
  if (t.element_of() == DataType::Float(32) && call->args[0].dtype() == pairs && call->args[1].dtype() == pairs) {
    return "";
  }
  return fmt::format("`tir.dot2` of {} and {} into {}: it takes bfloat16, two lanes for each of float32",
                     DataType2String(call->args[0].dtype()), DataType2String(call->args[1].dtype()),
                     DataType2String(t));
}
HostNumber InterpretDot2(Machine& machine, const CallNode* call, int lane) {
  double sum = machine.Eval(call->args[2], lane).f;
  for (int i = 2 * lane + 1; i >= 2 * lane; --i) {
    sum = Rounded(sum + machine.Eval(call->args[0], i).f * machine.Eval(call->args[1], i).f, call->dtype);
  }
  return {0, sum};
}
HostNumber InterpretDot4(Machine& machine, const CallNode* call, int lane) {
  int64_t sum = machine.Eval(call->args[2], lane).i;
  for (int i = 4 * lane; i < 4 * lane + 4; ++i) {
    sum += machine.Eval(call->args[0], i).i * machine.Eval(call->args[1], i).i;
  }
  return {sum, 0};
}

}  // namespace

const Op intrin::vector_sum = DefineIntrin({
    .name = "vector_sum",
    .doc = "Sum of the lanes of a vector; halves are combined until one lane is left.",
    .takes = "n",
    .interpret = InterpretLanes<Sum>,
    .derivative = IntrinDerivative::None("vectors are made after differentiation"),
    .effect = Effect::kPure,
    .lanes = LaneForm::kNone,
    .cost = 16,
});
const Op intrin::vector_prod = DefineIntrin({
    .name = "vector_prod",
    .doc = "Product of the lanes of a vector; halves are combined until one lane is left.",
    .takes = "n",
    .interpret = InterpretLanes<Product>,
    .derivative = IntrinDerivative::None("vectors are made after differentiation"),
    .effect = Effect::kPure,
    .lanes = LaneForm::kNone,
    .cost = 16,
});
const Op intrin::vector_min = DefineIntrin({
    .name = "vector_min",
    .doc = "Minimum of the lanes of a vector; halves are combined until one lane is left.",
    .takes = "n",
    .interpret = InterpretLanes<Least>,
    .derivative = IntrinDerivative::None("vectors are made after differentiation"),
    .effect = Effect::kPure,
    .lanes = LaneForm::kNone,
    .cost = 16,
});
const Op intrin::vector_max = DefineIntrin({
    .name = "vector_max",
    .doc = "Maximum of the lanes of a vector; halves are combined until one lane is left.",
    .takes = "n",
    .interpret = InterpretLanes<Greatest>,
    .derivative = IntrinDerivative::None("vectors are made after differentiation"),
    .effect = Effect::kPure,
    .lanes = LaneForm::kNone,
    .cost = 16,
});
const Op intrin::dot4 = DefineIntrin({
    .name = "dot4",
    .doc = "sum[l] + a[4l] * b[4l] + ... + a[4l + 3] * b[4l + 3] of uint8, int8 and int32: (a, b, sum).",
    .takes = "iir",
    .check = CheckDot4,
    .interpret = InterpretDot4,
    .derivative = IntrinDerivative::Zero(),
    .effect = Effect::kPure,
    .lanes = LaneForm::kNone,
    .cost = 16,
});

const Op intrin::dot2 = DefineIntrin({
    .name = "dot2",
    .doc = "sum[l] + a[2l + 1] * b[2l + 1] + a[2l] * b[2l], in this order, of bfloat16, bfloat16 and float32: (a, b, "
           "sum).",
    .takes = "nnr",
    .check = CheckDot2,
    .interpret = InterpretDot2,
    .derivative = IntrinDerivative::None("products in narrow types are made after differentiation"),
    .effect = Effect::kPure,
    .lanes = LaneForm::kNone,
    .cost = 4,
    .halves = Halves::kTaken,
});

namespace {
PrimExpr OfLanes(const Op& intrin, PrimExpr v) {
  const DataType t = v.dtype();
  return t.is_scalar() ? v : Call(t.element_of(), intrin, {std::move(v)});
}
}  // namespace
PrimExpr vector_sum(PrimExpr v) { return OfLanes(intrin::vector_sum, std::move(v)); }
PrimExpr vector_prod(PrimExpr v) { return OfLanes(intrin::vector_prod, std::move(v)); }
PrimExpr vector_min(PrimExpr v) { return OfLanes(intrin::vector_min, std::move(v)); }
PrimExpr vector_max(PrimExpr v) { return OfLanes(intrin::vector_max, std::move(v)); }
PrimExpr vector_slice(PrimExpr v, int64_t begin, int64_t count) {
  Array<int64_t> idx;
  for (int64_t i = 0; i < count; ++i) idx.push_back(begin + i);
  return Shuffle({std::move(v)}, idx);
}

}  // namespace baton::tir

namespace baton {

PrimExpr dot4(PrimExpr a, PrimExpr b, PrimExpr sum) {
  const int lanes = sum.dtype().lanes();
  if (sum.dtype().element_of() != DataType::Int(32) || a.dtype() != DataType::UInt(8, 4 * lanes) ||
      b.dtype() != DataType::Int(8, 4 * lanes)) {
    using literals::TypeName;
    literals::Fail(
        fmt::format("`dot4` takes uint8 and int8 with four lanes for each of the int32 sum, got {}, {} and {}",
                    TypeName(a), TypeName(b), TypeName(sum)));
  }
  const DataType t = sum.dtype();
  return tir::Call(t, tir::intrin::dot4, {std::move(a), std::move(b), std::move(sum)});
}

PrimExpr dot2(PrimExpr a, PrimExpr b, PrimExpr sum) {
  const DataType t = sum.dtype(), pairs = DataType::BFloat16(2 * t.lanes());
  if (t.element_of() != DataType::Float(32) || a.dtype() != pairs || b.dtype() != pairs) {
    using literals::TypeName;
    literals::Fail(fmt::format("`dot2` takes bfloat16 with two lanes for each of the float32 sum, got {}, {} and {}",
                               TypeName(a), TypeName(b), TypeName(sum)));
  }
  return tir::Call(t, tir::intrin::dot2, {std::move(a), std::move(b), std::move(sum)});
}

}  // namespace baton

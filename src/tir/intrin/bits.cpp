// SPDX-License-Identifier: Apache-2.0
// Bits of integers, and of values taken as another dtype.
#include <baton/runtime/ndarray.h>
#include <baton/tir/intrin.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tir/literals.h"

namespace baton::tir {
namespace {

int64_t PopCount(int64_t x, DataType t) {
  return __builtin_popcountll(static_cast<uint64_t>(x) & (~uint64_t{0} >> (64 - (t.is_bool() ? 1 : t.bits()))));
}
int64_t NotBits(int64_t x, DataType t) { return t.is_bool() ? !x : ~x; }
/// Whether a shift moves all bits out.
bool ShiftsAll(int64_t count, DataType t) { return count < 0 || count >= t.bits(); }
int64_t ShiftLeft(int64_t x, int64_t count, DataType t) {
  return ShiftsAll(count, t) ? 0 : static_cast<int64_t>(static_cast<uint64_t>(x) << count);
}
int64_t ShiftRight(int64_t x, int64_t count, DataType t) {
  if (t.is_int()) return x >> (ShiftsAll(count, t) ? t.bits() - 1 : count);
  return ShiftsAll(count, t) ? 0 : static_cast<int64_t>(static_cast<uint64_t>(x) >> count);
}

PrimExpr NotOfBool(const Array<PrimExpr>& args) { return args[0].dtype().is_bool() ? !args[0] : PrimExpr(); }

IntRange RangeOfAnd(IntRange x, int64_t mask, IntRange of_dtype) {
  if (mask < 0) return of_dtype;
  return {0, x.min >= 0 ? std::min(x.max, mask) : mask};
}
IntRange RangeOfShift(IntRange x, int64_t count, IntRange of_dtype) {
  if (count < 0 || count > 62) return of_dtype;
  const auto shifted = [count](int64_t v) { return v == IntRange::kPosInf || v == IntRange::kNegInf ? v : v >> count; };
  return {shifted(x.min), shifted(x.max)};
}

/// The bits of a number as another dtype.
HostNumber Reinterpreted(HostNumber x, DataType from, DataType to) {
  runtime::NDArray cell = runtime::NDArray::Empty({8}, DataType::UInt(8));
  std::memset(cell.data(), 0, 8);
  if (from.is_floating()) {
    cell.View({8 / from.bytes()}, from).SetDouble(0, x.f);
  } else {
    std::memcpy(cell.data(), &x.i, 8);
  }
  const runtime::NDArray as = cell.View({8 / to.bytes()}, to);
  return to.is_floating() ? HostNumber{0, as.GetDouble(0)} : HostNumber{as.GetInt(0), 0};
}
HostNumber InterpretReinterpret(Machine& machine, const CallNode* call, int lane) {
  const PrimExpr& x = call->args[0];
  return Reinterpreted(machine.Eval(x, lane), x.dtype().element_of(), call->dtype.element_of());
}
/// A literal of 32 bits as another number; null where a literal does not keep all bits, as those of a NaN.
PrimExpr FoldedReinterpret(DataType t, const PrimExpr& value) {
  using namespace literals;  // NOLINT
  const PrimExpr l = Literal(value);
  if (!l.defined() || t.lanes() != value.dtype().lanes()) return {};
  const DataType from = l.dtype(), to = t.element_of();
  if (from.bits() != 32 || from.is_float() == to.is_float() || !(to.is_float() || to.is_integral())) return {};
  const HostNumber v =
      Reinterpreted(AsInt(l) ? HostNumber{AsInt(l)->value, 0} : HostNumber{0, AsFloat(l)->value}, from, to);
  if (to.is_float()) return std::isnan(v.f) ? PrimExpr() : broadcast_to(FloatLit(to, v.f), t.lanes());
  const std::optional<int64_t> held = Wrap(to, v.i);
  return held ? broadcast_to(IntLit(to, *held), t.lanes()) : PrimExpr();
}
std::string CheckReinterpret(const CallNode* call) {
  const DataType from = call->args[0].dtype(), to = call->dtype;
  if (from.bits() * from.lanes() == to.bits() * to.lanes()) return "";
  return fmt::format("`tir.reinterpret` of {} as {}: they differ in bits", DataType2String(from), DataType2String(to));
}

}  // namespace

const Op intrin::popcount = DefineIntrin({
    .name = "popcount",
    .doc = "How many bits of x are set.",
    .takes = "R",
    .params = "x",
    .domain = Domain::kBits,
    .host = PopCount,
    .derivative = IntrinDerivative::Zero(),
    .effect = Effect::kPure,
    .lanes = LaneForm::kEach,
    .cost = 16,
});
const Op intrin::bitwise_not = DefineIntrin({
    .name = "bitwise_not",
    .doc = "x with each bit changed.",
    .takes = "R",
    .params = "x",
    .domain = Domain::kBits,
    .instead = NotOfBool,
    .host = NotBits,
    .derivative = IntrinDerivative::Zero(),
    .effect = Effect::kPure,
    .lanes = LaneForm::kEach,
    .cost = 16,
});
const Op intrin::bitwise_and = DefineIntrin({
    .name = "bitwise_and",
    .doc = "The bits that x and y both have.",
    .takes = "RR",
    .params = "x y",
    .domain = Domain::kBits,
    .host = +[](int64_t x, int64_t y, DataType) { return x & y; },
    .derivative = IntrinDerivative::Zero(),
    .effect = Effect::kPure,
    .lanes = LaneForm::kEach,
    .cost = 16,
    .range = RangeOfAnd,
});
const Op intrin::bitwise_or = DefineIntrin({
    .name = "bitwise_or",
    .doc = "The bits that x or y has.",
    .takes = "RR",
    .params = "x y",
    .domain = Domain::kBits,
    .host = +[](int64_t x, int64_t y, DataType) { return x | y; },
    .derivative = IntrinDerivative::Zero(),
    .effect = Effect::kPure,
    .lanes = LaneForm::kEach,
    .cost = 16,
});
const Op intrin::bitwise_xor = DefineIntrin({
    .name = "bitwise_xor",
    .doc = "The bits that one of x and y has.",
    .takes = "RR",
    .params = "x y",
    .domain = Domain::kBits,
    .host = +[](int64_t x, int64_t y, DataType) { return x ^ y; },
    .derivative = IntrinDerivative::Zero(),
    .effect = Effect::kPure,
    .lanes = LaneForm::kEach,
    .cost = 16,
});
const Op intrin::shift_left = DefineIntrin({
    .name = "shift_left",
    .doc = "x times 2 to the power of y; 0 where y is negative or not below the width.",
    .takes = "RR",
    .params = "x y",
    .domain = Domain::kInts,
    .host = ShiftLeft,
    .derivative = IntrinDerivative::Zero(),
    .effect = Effect::kPure,
    .lanes = LaneForm::kEach,
    .cost = 16,
});
const Op intrin::shift_right = DefineIntrin({
    .name = "shift_right",
    .doc = "x by 2 to the power of y, rounded down; where y is negative or not below the width, its sign.",
    .takes = "RR",
    .params = "x y",
    .domain = Domain::kInts,
    .host = ShiftRight,
    .derivative = IntrinDerivative::Zero(),
    .effect = Effect::kPure,
    .lanes = LaneForm::kEach,
    .cost = 16,
    .range = RangeOfShift,
});
const Op intrin::reinterpret = DefineIntrin({
    .name = "reinterpret",
    .doc = "The bits of x as the result's dtype.",
    .takes = "x",
    .check = CheckReinterpret,
    .interpret = InterpretReinterpret,
    .derivative = IntrinDerivative::None("it takes bits as another number"),
    .effect = Effect::kPure,
    .lanes = LaneForm::kEach,
    .cost = 0,
    .halves = Halves::kBits,
    .shows_dtype = true,
});
}  // namespace baton::tir

namespace baton {

PrimExpr reinterpret(DataType t, PrimExpr value) {
  if (!value.defined()) literals::Fail("the operand of `reinterpret` is null");
  if (value.dtype() == t) return value;
  if (t.bits() * t.lanes() != value.dtype().bits() * value.dtype().lanes()) {
    literals::Fail(
        fmt::format("reinterpret from {} to {}: sizes differ", literals::TypeName(value), DataType2String(t)));
  }
  if (PrimExpr folded = tir::FoldedReinterpret(t, value); folded.defined()) return folded;
  return tir::Call(t, tir::intrin::reinterpret, {std::move(value)});
}

}  // namespace baton

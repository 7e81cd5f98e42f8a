// SPDX-License-Identifier: Apache-2.0
// Whole numbers near a number, magnitudes, and tests.
#include <baton/tir/intrin.h>

#include <cmath>

namespace baton::tir {
namespace {

PrimExpr IntAsItIs(const Array<PrimExpr>& args) { return args[0].dtype().is_integral() ? args[0] : PrimExpr(); }
template <bool kValue>
PrimExpr TestOfInt(const Array<PrimExpr>& args) {
  const DataType t = args[0].dtype();
  return t.is_integral() ? make_int(DataType::Bool(t.lanes()), kValue) : PrimExpr();
}
PrimExpr AbsInOtherWords(const Array<PrimExpr>& args) {
  const PrimExpr& x = args[0];
  if (x.dtype().is_floating()) return fabs(x);
  if (x.dtype().is_uint()) return x;
  return x.dtype().is_int() ? max(x, -x) : PrimExpr();
}
HostNumber InterpretAbs(Machine& machine, const CallNode* call, int lane) {
  const HostNumber x = machine.Eval(call->args[0], lane);
  if (call->dtype.is_floating()) return {0, std::fabs(x.f)};
  return {call->dtype.is_uint() || x.i >= 0 ? x.i : static_cast<int64_t>(-static_cast<uint64_t>(x.i)), 0};
}
PrimExpr SignOf(const PrimExpr& x, const PrimExpr& /*y*/) {
  return Select(x >= make_const(x.dtype(), 0), make_const(x.dtype(), 1), make_const(x.dtype(), -1));
}

}  // namespace

const Op intrin::floor = DefineIntrin({
    .name = "floor",
    .doc = "The largest whole number that is not above x.",
    .takes = "r",
    .params = "x",
    .instead = IntAsItIs,
    .host = std::floor,
    .derivative = IntrinDerivative::Zero(),
    .effect = Effect::kPure,
    .lanes = LaneForm::kEach,
    .cost = 4,
});
const Op intrin::ceil = DefineIntrin({
    .name = "ceil",
    .doc = "The smallest whole number that is not below x.",
    .takes = "r",
    .params = "x",
    .instead = IntAsItIs,
    .host = std::ceil,
    .derivative = IntrinDerivative::Zero(),
    .effect = Effect::kPure,
    .lanes = LaneForm::kEach,
    .cost = 4,
});
const Op intrin::trunc = DefineIntrin({
    .name = "trunc",
    .doc = "x without its fraction.",
    .takes = "r",
    .params = "x",
    .instead = IntAsItIs,
    .host = std::trunc,
    .derivative = IntrinDerivative::Zero(),
    .effect = Effect::kPure,
    .lanes = LaneForm::kEach,
    .cost = 16,
});
const Op intrin::round = DefineIntrin({
    .name = "round",
    .doc = "The whole number next to x; halves go away from 0.",
    .takes = "r",
    .params = "x",
    .instead = IntAsItIs,
    .host = std::round,
    .derivative = IntrinDerivative::Zero(),
    .effect = Effect::kPure,
    .lanes = LaneForm::kEach,
    .cost = 16,
});
const Op intrin::nearbyint = DefineIntrin({
    .name = "nearbyint",
    .doc = "The whole number next to x; halves go to the even one.",
    .takes = "r",
    .params = "x",
    .instead = IntAsItIs,
    .host = std::nearbyint,
    .derivative = IntrinDerivative::Zero(),
    .effect = Effect::kPure,
    .lanes = LaneForm::kEach,
    .cost = 16,
});
const Op intrin::fabs = DefineIntrin({
    .name = "fabs",
    .doc = "The magnitude of a floating x.",
    .takes = "r",
    .params = "x",
    .host = std::fabs,
    .derivative = SignOf,
    .effect = Effect::kPure,
    .lanes = LaneForm::kEach,
    .cost = 4,
});
const Op intrin::abs = DefineIntrin({
    .name = "abs",
    .doc = "The magnitude of x.",
    .takes = "r",
    .params = "x",
    .domain = Domain::kNumbers,
    .instead = AbsInOtherWords,
    .interpret = InterpretAbs,
    .derivative = SignOf,
    .effect = Effect::kPure,
    .lanes = LaneForm::kEach,
    .cost = 16,
});
const Op intrin::isnan = DefineIntrin({
    .name = "isnan",
    .doc = "Whether x is no number.",
    .takes = "n",
    .params = "x",
    .instead = TestOfInt<false>,
    .host = +[](double x) { return std::isnan(x); },
    .gives_bool = true,
    .derivative = IntrinDerivative::Zero(),
    .effect = Effect::kPure,
    .lanes = LaneForm::kEach,
    .cost = 16,
});
const Op intrin::isinf = DefineIntrin({
    .name = "isinf",
    .doc = "Whether x is infinite.",
    .takes = "n",
    .params = "x",
    .instead = TestOfInt<false>,
    .host = +[](double x) { return std::isinf(x); },
    .gives_bool = true,
    .derivative = IntrinDerivative::Zero(),
    .effect = Effect::kPure,
    .lanes = LaneForm::kEach,
    .cost = 16,
});
const Op intrin::isfinite = DefineIntrin({
    .name = "isfinite",
    .doc = "Whether x is neither infinite nor NaN.",
    .takes = "n",
    .params = "x",
    .instead = TestOfInt<true>,
    .host = +[](double x) { return std::isfinite(x); },
    .gives_bool = true,
    .derivative = IntrinDerivative::Zero(),
    .effect = Effect::kPure,
    .lanes = LaneForm::kEach,
    .cost = 16,
});
}  // namespace baton::tir

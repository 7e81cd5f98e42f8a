// SPDX-License-Identifier: Apache-2.0
#include <baton/tir/functor.h>
#include <baton/tir/intrin.h>
#include <baton/tir/printer.h>
#include <doctest/doctest.h>

using namespace baton;
using namespace baton::tir;

TEST_CASE("tir: an intrinsic is found by its operator") {
  const Var x("x", DataType::Float(32));
  const PrimExpr e = exp(x);
  const auto* call = e.as<CallNode>();
  REQUIRE(call);
  CHECK(call->op == intrin::exp);
  CHECK(IntrinOf(call)->name == std::string("exp"));
  CHECK(IntrinOf(Op::Get("tir.exp").get()) == IntrinOf(call));
  CHECK(IntrinOf(Op::GetOrCreate("tir.intrin_test_without_row").get()) == nullptr);
  CHECK_THROWS_AS(DefineIntrin(*IntrinOf(call)), runtime::InternalError);
}

TEST_CASE("tir: rows answer what passes ask") {
  const Buffer b = Buffer::Make({8}, DataType::Float(32), "b");
  const Var x("x", DataType::Float(32)), on("on", DataType::Bool());
  const PrimExpr place = BufferLoad(b, {PrimExpr(0)});
  const auto of = [](const PrimExpr& e) { return e.as<CallNode>(); };
  const PrimExpr stored = masked_store(place, x, on), loaded = masked_load(place, on), address = address_of(place),
                 hint = prefetch(place), called = call_extern(DataType::Float(32), "f", {x}), root = sqrt(x),
                 power = exp(x), choice = if_then_else(on, x, root);
  CHECK(CallHasSideEffect(of(stored)));
  CHECK(CallHasSideEffect(of(called)));
  CHECK(CallHasSideEffect(of(hint)));
  CHECK(!CallHasSideEffect(of(loaded)));
  CHECK(!CallHasSideEffect(of(choice)));
  CHECK(PlaceOf(of(stored)) == PlaceUse::kWrites);
  CHECK(PlaceOf(of(loaded)) == PlaceUse::kReads);
  CHECK(PlaceOf(of(address)) == PlaceUse::kAddress);
  CHECK(PlaceOf(of(root)) == PlaceUse::kNone);
  CHECK(IsLaneByLane(of(root)));
  CHECK(!IsLaneByLane(of(called)));
  CHECK(CostOfCall(of(choice)) == 0);
  CHECK(CostOfCall(of(root)) < CostOfCall(of(power)));
  CHECK(AsChoice(choice) == of(choice));
  CHECK(AsChoice(root) == nullptr);
  // An operator that a program made is pure, and works lane by lane.
  const Call own(DataType::Float(32), Op::GetOrCreate("tir.intrin_test_without_row"), {x});
  CHECK(!CallHasSideEffect(own.get()));
  CHECK(IsLaneByLane(own.get()));
  const Op told = Op::GetOrCreate("tir.intrin_test_with_attributes");
  told.SetAttrValue("TCallEffectKind", Any(3));
  told.SetAttrValue("TVectorizable", Any(false));
  const Call telling(DataType::Float(32), told, {x});
  CHECK(CallHasSideEffect(telling.get()));
  CHECK(!IsLaneByLane(telling.get()));
}

TEST_CASE("tir: functions of intrinsics fold what a literal can hold") {
  const DataType u64 = DataType::UInt(64);
  CHECK(AsText(shift_left(PrimExpr(1), PrimExpr(4))) == "16");
  CHECK(AsText(shift_left(PrimExpr(1), PrimExpr(64))) == "0");
  CHECK(AsText(popcount(make_int(DataType::Int(8), -1))) == "int8(8)");
  CHECK(bitwise_not(make_int(u64, 0)).as<CallNode>() != nullptr);
  CHECK(AsText(fma(make_const(DataType::Float(32), 2), make_const(DataType::Float(32), 3),
                   make_const(DataType::Float(32), 1))) == "7f");
  CHECK_THROWS_AS(exp(PrimExpr(1)), runtime::TypeError);
  CHECK_THROWS_AS(exp(PrimExpr()), runtime::TypeError);
}

TEST_CASE("tir: the derivative of a choice is guarded as its values are") {
  const Var on("on", DataType::Bool()), x("x", DataType::Float(32)), dx("dx", DataType::Float(32));
  const PrimExpr choice = if_then_else(on, x, make_const(DataType::Float(32), 1));
  CHECK(AsText(DerivativeOf(choice.as<CallNode>(), {PrimExpr(), dx, PrimExpr()})) == "if_then_else(on, dx, 0f)");
  CHECK(!DerivativeOf(choice.as<CallNode>(), {PrimExpr(), PrimExpr(), PrimExpr()}).defined());
}

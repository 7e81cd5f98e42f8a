// SPDX-License-Identifier: Apache-2.0
// Operators that work element by element.
#include <cstdint>

#include "common.h"

namespace baton::onnx {
namespace {

#define BATON_UNARY(onnx, relay)      \
  Values onnx(Ctx& c) {               \
    c.Ignore("consumed_inputs");      \
    return {c.Call(relay, {c.T(0)})}; \
  }
BATON_UNARY(Abs, "abs")
BATON_UNARY(Acos, "acos")
BATON_UNARY(Acosh, "acosh")
BATON_UNARY(Asin, "asin")
BATON_UNARY(Asinh, "asinh")
BATON_UNARY(Atan, "atan")
BATON_UNARY(Atanh, "atanh")
BATON_UNARY(Ceil, "ceil")
BATON_UNARY(Cos, "cos")
BATON_UNARY(Cosh, "cosh")
BATON_UNARY(Erf, "erf")
BATON_UNARY(Exp, "exp")
BATON_UNARY(Floor, "floor")
BATON_UNARY(IsNaN, "isnan")
BATON_UNARY(Log, "log")
BATON_UNARY(Neg, "negative")
BATON_UNARY(Not, "logical_not")
BATON_UNARY(Reciprocal, "reciprocal")
BATON_UNARY(Relu, "nn.relu")
BATON_UNARY(Softplus, "nn.softplus")
BATON_UNARY(Softsign, "nn.softsign")
BATON_UNARY(Mish, "nn.mish")
BATON_UNARY(HardSwish, "nn.hard_swish")
BATON_UNARY(SigmoidOp, "sigmoid")
BATON_UNARY(Sign, "sign")
BATON_UNARY(Sin, "sin")
BATON_UNARY(Sinh, "sinh")
BATON_UNARY(Sqrt, "sqrt")
BATON_UNARY(Tan, "tan")
BATON_UNARY(Tanh, "tanh")
BATON_UNARY(BitwiseNot, "bitwise_not")
#undef BATON_UNARY

Values Identity(Ctx& c) { return {c.In(0)}; }

Values Round(Ctx& c) { return {RoundEven(c, c.T(0))}; }

// ---- two operands

/// Operands before opset 7 broadcast only on demand: `b` lines up with `a` at `axis`, or at the end.
void LegacyBroadcast(Ctx& c, const Value& a, Value* b) {
  c.Ignore("consumed_inputs");
  bool broadcast = c.Int("broadcast", 0) != 0;
  int64_t axis = c.Int("axis", INT64_MIN);
  if (!broadcast || axis == INT64_MIN) return;
  int rank = c.Rank(a);
  int at = c.Axis(axis, rank);
  int tail = rank - at - c.Rank(*b);
  if (tail < 0) c.Fail("`axis` " + std::to_string(axis) + " leaves no room for the second operand");
  *b = c.Unsqueeze(*b, Iota(tail, b->rank()));
}

Values Binary(Ctx& c, const char* op) {
  Value a = c.T(0), b = c.T(1);
  if (c.since() < 7) LegacyBroadcast(c, a, &b);
  return {c.Call(op, {a, b})};
}

Values Add(Ctx& c) { return Binary(c, "add"); }
Values Sub(Ctx& c) { return Binary(c, "subtract"); }
Values Mul(Ctx& c) { return Binary(c, "multiply"); }
Values Div(Ctx& c) { return Binary(c, "divide"); }
Values And(Ctx& c) { return Binary(c, "logical_and"); }
Values Or(Ctx& c) { return Binary(c, "logical_or"); }
Values Xor(Ctx& c) { return Binary(c, "logical_xor"); }
Values Equal(Ctx& c) { return AnyText(c) ? Values{EqualTexts(c)} : Binary(c, "equal"); }
Values Greater(Ctx& c) { return Binary(c, "greater"); }
Values Less(Ctx& c) { return Binary(c, "less"); }
Values GreaterOrEqual(Ctx& c) { return Binary(c, "greater_equal"); }
Values LessOrEqual(Ctx& c) { return Binary(c, "less_equal"); }
Values BitwiseAnd(Ctx& c) { return Binary(c, "bitwise_and"); }
Values BitwiseOr(Ctx& c) { return Binary(c, "bitwise_or"); }
Values BitwiseXor(Ctx& c) { return Binary(c, "bitwise_xor"); }

Values Pow(Ctx& c) {
  Value a = c.T(0), b = c.T(1);
  if (c.since() < 7) LegacyBroadcast(c, a, &b);
  DataType result = a.dtype;
  // Mixed operands are computed in the floating kind; the result has the type of the base.
  if (IsInt(a.dtype) && IsFloat(b.dtype)) a = c.Cast(a, b.dtype);
  return {c.Cast(c.Call("power", {a, b}), result)};
}

Values Mod(Ctx& c) {
  Value a = c.T(0), b = c.T(1);
  bool fmod = c.Int("fmod", 0) != 0;
  if (IsFloat(a.dtype) && !fmod) {
    if (c.since() < 28) c.Fail("`fmod` must be 1 for floating operands");
    // The remainder takes the sign of the divisor.
    Value zero = c.Scalar(a.dtype, 0), rest = c.Call("mod", {a, b});
    Value differs = c.Call("not_equal", {c.Call("less", {rest, zero}), c.Call("less", {b, zero})});
    Value move = c.Call("logical_and", {c.Call("not_equal", {rest, zero}), differs});
    return {c.Where(move, c.Add(rest, b), rest)};
  }
  return {c.Call(fmod ? "mod" : "floor_mod", {a, b})};
}

Values BitShift(Ctx& c) {
  std::string direction = c.Str("direction", "");
  if (direction != "LEFT" && direction != "RIGHT") c.Fail("`direction` is `" + direction + "`, not LEFT or RIGHT");
  return {c.Call(direction == "LEFT" ? "left_shift" : "right_shift", {c.T(0), c.T(1)})};
}

Values Variadic(Ctx& c, const char* op) {
  c.Ignore("consumed_inputs");
  Value all = c.T(0);
  for (size_t i = 1; i < c.num_inputs(); ++i) all = c.Call(op, {all, c.T(i)});
  return {all};
}
Values Max(Ctx& c) { return Variadic(c, "maximum"); }
Values Min(Ctx& c) { return Variadic(c, "minimum"); }
Values Sum(Ctx& c) { return Variadic(c, "add"); }
Values Mean(Ctx& c) {
  Value sum = Variadic(c, "add")[0];
  return {c.Div(sum, static_cast<double>(c.num_inputs()))};
}

Values WhereOp(Ctx& c) { return {c.Where(c.T(0), c.T(1), c.T(2))}; }

// ---- activations

/// An operator of one operand with attributes that bear the same names in Relay.
Values AttributeActivation(Ctx& c, const char* op, std::initializer_list<std::pair<const char*, double>> attributes) {
  c.Ignore("consumed_inputs");
  std::vector<std::pair<const char*, Any>> attrs;
  for (const auto& [name, default_value] : attributes) attrs.emplace_back(name, c.Float(name, default_value));
  return {c.CallWith(op, {c.T(0)}, attrs)};
}
Values Elu(Ctx& c) { return AttributeActivation(c, "nn.elu", {{"alpha", 1.0}}); }
Values Celu(Ctx& c) { return AttributeActivation(c, "nn.celu", {{"alpha", 1.0}}); }
Values Selu(Ctx& c) {
  bool old = c.since() < 6;
  return AttributeActivation(
      c, "nn.selu",
      {{"alpha", old ? 1.6732 : 1.67326319217681884765625}, {"gamma", old ? 1.0507 : 1.05070102214813232421875}});
}
Values HardSigmoid(Ctx& c) { return AttributeActivation(c, "nn.hard_sigmoid", {{"alpha", 0.2}, {"beta", 0.5}}); }
Values ThresholdedRelu(Ctx& c) { return AttributeActivation(c, "nn.thresholded_relu", {{"alpha", 1.0}}); }
Values Shrink(Ctx& c) { return AttributeActivation(c, "nn.shrink", {{"lambd", 0.5}, {"bias", 0.0}}); }
Values Swish(Ctx& c) { return AttributeActivation(c, "nn.swish", {{"alpha", 1.0}}); }

Values Gelu(Ctx& c) {
  std::string approximate = c.Str("approximate", "none");
  if (approximate != "none" && approximate != "tanh")
    c.Fail("`approximate` is `" + approximate + "`, not none or tanh");
  return {c.Call("nn.gelu", {c.T(0)}, {{"approximate", approximate}})};
}
Values LeakyRelu(Ctx& c) {
  c.Ignore("consumed_inputs");
  return {LeakyReluOf(c, c.T(0), c.Float("alpha", 0.01))};
}
Values PRelu(Ctx& c) {
  c.Ignore("consumed_inputs");
  Value x = c.T(0), slope = c.T(1);
  // Before opset 7 a slope of one axis is per channel.
  if (c.since() < 7 && slope.rank() == 1 && c.Rank(x) > 2) slope = c.Unsqueeze(slope, Iota(x.rank() - 2, 1));
  Value negative = c.Call("less", {x, c.Scalar(x.dtype, 0)});
  return {c.Where(negative, c.Mul(slope, x), x)};
}

Values ClipOp(Ctx& c) {
  c.Ignore("consumed_inputs");
  Value x = c.T(0);
  if (c.since() < 11) {
    constexpr double kMaxFloat = 3.4028234663852886e+38;
    bool low = c.HasAttr("min"), high = c.HasAttr("max");
    double lo = c.Float("min", -kMaxFloat), hi = c.Float("max", kMaxFloat);
    if (low) x = c.Call("maximum", {x, c.Scalar(x.dtype, lo)});
    if (high) x = c.Call("minimum", {x, c.Scalar(x.dtype, hi)});
    return {x};
  }
  if (c.Has(1) && c.Has(2) && c.Known(c.T(1)) && c.Known(c.T(2)) && x.dtype.is_float()) {
    double lo = c.KnownScalar(c.T(1)), hi = c.KnownScalar(c.T(2));
    if (lo <= hi) return {Clip(c, x, lo, hi)};
  }
  if (c.Has(1)) x = c.Call("maximum", {x, c.T(1)});
  if (c.Has(2)) x = c.Call("minimum", {x, c.T(2)});
  return {x};
}

Values IsInf(Ctx& c) {
  int64_t negative = c.Int("detect_negative", 1), positive = c.Int("detect_positive", 1);
  return {c.Call("isinf", {c.T(0)}, {{"detect_negative", negative != 0}, {"detect_positive", positive != 0}})};
}

// ---- types

DataType TypeByName(Ctx& c, const std::string& name) {
  for (int32_t t = 1; t <= 28; ++t) {
    if (name == DataTypeName(t)) return FromOnnxType(t);
  }
  c.Fail("`to` is `" + name + "`, which is no type");
}

Values Cast(Ctx& c) {
  bool saturate = c.Int("saturate", 1) != 0;
  std::string round = c.Str("round_mode", "up");
  DataType to;
  if (c.since() < 6) {
    to = TypeByName(c, c.Str("to", ""));
  } else {
    int64_t code = c.Int("to");
    if (const Value& v = c.In(0); code == kString && (v.form || (v.host && v.host->is_string))) return {c.Texts(0)};
    to = FromOnnxType(static_cast<int32_t>(code));
    if (to.is_void()) c.Unsupported(std::string("cast to ") + DataTypeName(static_cast<int32_t>(code)));
    if (round != "up" && round != "down" && round != "nearest") c.Fail("`round_mode` is `" + round + "`");
  }
  return {CastTo(c, c.T(0), to, saturate, round)};
}

Values CastLike(Ctx& c) {
  bool saturate = c.Int("saturate", 1) != 0;
  std::string round = c.Str("round_mode", "up");
  return {CastTo(c, c.T(0), c.T(1).dtype, saturate, round)};
}

Values BitCast(Ctx& c) {
  DataType to = FromOnnxType(static_cast<int32_t>(c.Int("to")));
  Value x = c.T(0);
  if (to.is_void()) c.Unsupported("the target type");
  if (to.bits() != x.dtype.bits()) c.Unsupported("types of different width");
  if (to == x.dtype) return {x};
  // A bool is a byte of 0 or 1.
  if (x.dtype.is_bool()) x = c.Cast(x, DataType::UInt(8));
  if (to.is_bool()) return {c.Cast(x, to)};
  if (to == x.dtype) return {x};
  return {c.Call("reinterpret", {x}, {{"dtype", to}})};
}

Values Dropout(Ctx& c) {
  c.Ignore("consumed_inputs");
  c.Ignore("seed");
  c.Ignore("is_test");
  Value x = c.T(0);
  if (c.since() < 12) {
    c.Float("ratio", 0.5);
  } else if (c.Has(2)) {
    bool training = c.KnownScalar(c.T(2)) != 0;
    bool never = c.Has(1) && c.Known(c.T(1)) && c.KnownScalar(c.T(1)) == 0;
    if (training && !never) throw NeedsValue{"random numbers"};  // drawn on the host, when it runs
  }
  if (!c.Wants(1)) return {x};
  DataType mask = c.since() < 10 ? x.dtype : DataType::Bool();
  return {x, c.Full(mask, 1, c.Lengths(x))};
}

}  // namespace

Value Sigmoid(Ctx& c, const Value& v) { return c.Call("sigmoid", {v}); }

Value LeakyReluOf(Ctx& c, const Value& v, double alpha) { return c.Call("nn.leaky_relu", {v}, {{"alpha", alpha}}); }

Value Clip(Ctx& c, const Value& v, double lo, double hi) { return c.Call("clip", {v}, {{"a_min", lo}, {"a_max", hi}}); }

Value RoundEven(Ctx& c, const Value& x) { return IsFloat(x.dtype) ? c.Call("round", {x}) : x; }

void AddElementwise(OpTable* table) {
  for (const OpRow& row : {
           OpRow{"", "Abs", Abs},
           {"", "Acos", Acos},
           {"", "Acosh", Acosh},
           {"", "Asin", Asin},
           {"", "Asinh", Asinh},
           {"", "Atan", Atan},
           {"", "Atanh", Atanh},
           {"", "Ceil", Ceil},
           {"", "Cos", Cos},
           {"", "Cosh", Cosh},
           {"", "Erf", Erf},
           {"", "Exp", Exp},
           {"", "Floor", Floor},
           {"", "IsNaN", IsNaN},
           {"", "Log", Log},
           {"", "Neg", Neg},
           {"", "Not", Not},
           {"", "Relu", Relu},
           {"", "Sigmoid", SigmoidOp},
           {"", "Sign", Sign},
           {"", "Sin", Sin},
           {"", "Sinh", Sinh},
           {"", "Sqrt", Sqrt},
           {"", "Tan", Tan},
           {"", "Tanh", Tanh},
           {"", "BitwiseNot", BitwiseNot},
           {"", "Identity", Identity},
           {"", "Reciprocal", Reciprocal},
           {"", "Round", Round},
           {"", "Add", Add},
           {"", "Sub", Sub},
           {"", "Mul", Mul},
           {"", "Div", Div},
           {"", "And", And},
           {"", "Or", Or},
           {"", "Xor", Xor},
           {"", "Equal", Equal},
           {"", "Greater", Greater},
           {"", "Less", Less},
           {"", "GreaterOrEqual", GreaterOrEqual},
           {"", "LessOrEqual", LessOrEqual},
           {"", "BitwiseAnd", BitwiseAnd},
           {"", "BitwiseOr", BitwiseOr},
           {"", "BitwiseXor", BitwiseXor},
           {"", "Pow", Pow},
           {"", "Mod", Mod},
           {"", "BitShift", BitShift},
           {"", "Max", Max},
           {"", "Min", Min},
           {"", "Sum", Sum},
           {"", "Mean", Mean},
           {"", "Where", WhereOp},
           {"", "Elu", Elu},
           {"", "Selu", Selu},
           {"", "Celu", Celu},
           {"", "Gelu", Gelu},
           {"", "HardSigmoid", HardSigmoid},
           {"", "HardSwish", HardSwish},
           {"", "Softplus", Softplus},
           {"", "Mish", Mish},
           {"", "Softsign", Softsign},
           {"", "Swish", Swish},
           {"", "ThresholdedRelu", ThresholdedRelu},
           {"", "Shrink", Shrink},
           {"", "LeakyRelu", LeakyRelu},
           {"", "PRelu", PRelu},
           {"", "Clip", ClipOp},
           {"", "IsInf", IsInf},
           {"", "Cast", Cast},
           {"", "CastLike", CastLike},
           {"", "BitCast", BitCast},
           {"", "Dropout", Dropout, TypeOfFirst},
       }) {
    table->push_back(row);
  }
}

}  // namespace baton::onnx

// SPDX-License-Identifier: Apache-2.0
// Elementwise operators with two inputs and NumPy's broadcasting: a row each. `f` sees float32 for narrower floats.
#include <baton/arith/extent.h>
#include <baton/relay/op/make.h>
#include <baton/relay/op/tensor.h>
#include <baton/topi/elemwise.h>

#include "../common.h"
#include "../elements.h"
#include "../gradient.h"
#include "../qnn/integers.h"
#include "../reference/reference.h"

namespace baton::relay {
namespace {

enum class Domain { kFloat, kNumber, kAny, kBool, kBits, kInt };

constexpr const char* DomainDoc(Domain domain) {
  switch (domain) {
    case Domain::kFloat:
      return "Any shape. R1: floating dtype.";
    case Domain::kNumber:
      return "Any shape. R1: floating or integer dtype.";
    case Domain::kBool:
      return "Any shape. R1: bool.";
    case Domain::kBits:
      return "Any shape. R1: integer or bool.";
    case Domain::kInt:
      return "Any shape. R1: integer dtype.";
    case Domain::kAny:
      return "Any shape and dtype.";
  }
  return "";
}

using BinaryFn = PrimExpr (*)(PrimExpr, PrimExpr);
struct BinaryRow {
  const char* name;
  const char* doc;
  Domain domain;
  BinaryFn f;
  OpGradient gradient = {};
  const char* source = "NumPy";
  bool to_bool = false;
  bool mixed = false;  ///< the right operand may have another dtype
};

Type BinaryType(const BinaryRow& row, const TypeArgs& in) {
  for (int i = 0; i < 2; ++i) {
    switch (row.domain) {
      case Domain::kFloat:
        in.Floating(i, "R1");
        break;
      case Domain::kNumber:
        in.Number(i, "R1");
        break;
      case Domain::kBool:
        in.Bool(i, "R1");
        break;
      case Domain::kInt:
        in.Integral(i, "R1");
        break;
      case Domain::kBits:
        if (!in.dtype(i).is_bool()) in.Integral(i, "R1");
        break;
      case Domain::kAny:
        in[i];
        break;
    }
  }
  if (!row.mixed) in.SameDtype(0, 1, "R2");
  return TensorType(BroadcastShapes(in, in.shape(0), in.shape(1), "R3"), row.to_bool ? DataType::Bool() : in.dtype(0));
}
Tensor LowerBinary(const BinaryRow& row, const Tensors& in) {
  if (row.mixed && in[0].dtype().is_integral() && in[1].dtype().is_integral()) return topi::IntPower(in[0], in[1]);
  return topi::Zip(
      in[0], in[1],
      [&](PrimExpr a, PrimExpr b) {
        PrimExpr y = row.f(Widen(a), Widen(b));
        return row.to_bool ? y : cast(in[0].dtype(), y);
      },
      row.name);
}
template <const BinaryRow& kRow>
bool BinaryRel(const Array<Type>& given, int num_inputs, const Attrs&, TypeReporter& reporter) {
  Array<Type> types = given;
  if (!kRow.mixed) GuessBroadcast(&types, kRow.to_bool, reporter);
  if (!AllKnown(types, num_inputs)) return false;
  reporter.Assign(types[2], BinaryType(kRow, TypeArgs(kRow.name, types, num_inputs, reporter)));
  return true;
}
template <const BinaryRow& kRow>
Tensor LowerRow(const Tensors& in) {
  return LowerBinary(kRow, in);
}
Op DefineRow(const BinaryRow& row, TypeRelationFn rel, LowerFn lower, const OpTraits& traits) {
  return DefineOp(
      {.name = row.name,
       .doc = row.doc,
       .inputs = {{"lhs", DomainDoc(row.domain)},
                  {"rhs", row.mixed || row.domain == Domain::kBool ? "R1 as lhs. R3: broadcasts with lhs."
                                                                   : "R2: dtype of lhs. R3: broadcasts with lhs."}},
       .output = row.to_bool ? "Broadcast shape, bool." : "Broadcast shape, dtype of `lhs`.",
       .type_rel = rel,
       .lower = lower,
       .gradient = row.gradient,
       .pattern = OpPattern::kBroadcast,
       .source = row.source,
       .traits = traits});
}
template <const BinaryRow& kRow>
Op Row(const OpTraits& traits = {}) {
  return DefineRow(kRow, BinaryRel<kRow>, LowerRow<kRow>, traits);
}
/// Elements of shapes by the function that the loops compute.
template <const BinaryRow& kRow>
std::optional<Elements> Each(const ElementsSite& site) {
  return ElementsOfPairs(site, kRow.f, kRow.domain == Domain::kBool);
}

bool IsFloat(const PrimExpr& x) { return x.dtype().is_floating(); }

/// fmod with the sign of the divisor.
PrimExpr FloorModF(PrimExpr a, PrimExpr b) {
  PrimExpr r = fmod(a, b), zero = Lit(0, a);
  PrimExpr turn = (r < zero && b > zero) || (r > zero && b < zero);
  return te::Select(turn, r + b, r);
}
PrimExpr FloorDivF(PrimExpr a, PrimExpr b) {
  // floor(a / b) is one too large where a / b rounds up to a whole number (1.0 by 0.1); a - a mod b divides nearly
  // evenly.
  PrimExpr q = (a - FloorModF(a, b)) / b;
  PrimExpr f = floor(q);
  f = te::Select(q - f > Lit(0.5, a), f + Lit(1, a), f);
  return te::Select(equal(b, Lit(0, b)), a / b, f);
}
PrimExpr Power(PrimExpr a, PrimExpr b) {
  DataType t = a.dtype();
  if (t.is_floating()) return pow(a, cast(t, b));
  if (b.dtype().is_floating()) return cast(t, pow(cast(DataType::Float(64), a), cast(DataType::Float(64), b)));
  throw InternalError("a power of integers has loops of its own");
}
PrimExpr ShiftLeft(PrimExpr a, PrimExpr b) {
  PrimExpr bits = Lit(a.dtype().bits(), a);
  PrimExpr fits = b < bits;
  if (a.dtype().is_int()) fits = fits && b >= Lit(0, b);
  return te::Select(fits, shift_left(a, te::Select(fits, b, Lit(0, b))), Lit(0, a));
}
PrimExpr ShiftRight(PrimExpr a, PrimExpr b) {
  PrimExpr last = Lit(a.dtype().bits() - 1, a);
  if (a.dtype().is_int()) {
    PrimExpr fits = b <= last && b >= Lit(0, b);  // otherwise only the sign is left
    return shift_right(a, te::Select(fits, b, last));
  }
  PrimExpr fits = b <= last;
  return te::Select(fits, shift_right(a, te::Select(fits, b, Lit(0, b))), Lit(0, a));
}
PrimExpr Xor(PrimExpr a, PrimExpr b) { return not_equal(a, b); }

}  // namespace

namespace gradient {
namespace {

/// The adjoints of both operands before broadcasting is undone; one that is not set is zero.
using PairOf = void (*)(const At& at, const Val& a, const Val& b, const Val& g, Val* da, Val* db);
template <PairOf kPair>
Grads Both(const Call& call, const Expr& grad) {
  At at(call, grad);
  Val da, db;
  kPair(at, at.x(0), at.x(1), at.g(), &da, &db);
  return {da.e.defined() ? Collapse(da, at.out(), at.arg(0)) : Expr(),
          db.e.defined() ? Collapse(db, at.out(), at.arg(1)) : Expr()};
}

void DAdd(const At&, const Val&, const Val&, const Val& g, Val* da, Val* db) {
  *da = g;
  *db = g;
}
void DSubtract(const At&, const Val&, const Val&, const Val& g, Val* da, Val* db) {
  *da = g;
  *db = -g;
}
void DMultiply(const At&, const Val& a, const Val& b, const Val& g, Val* da, Val* db) {
  *da = g * b;
  *db = g * a;
}
void DDivide(const At& at, const Val&, const Val& b, const Val& g, Val* da, Val* db) {
  *da = g / b;
  *db = -(*da * at.y());
}
void DMaximum(const At&, const Val& a, const Val& b, const Val& g, Val* da, Val* db) {
  Val first = Test(op::greater_equal, a, b);
  *da = Pick(first, g, 0);
  *db = Pick(first, 0, g);
}
void DMinimum(const At&, const Val& a, const Val& b, const Val& g, Val* da, Val* db) {
  Val first = Test(op::less_equal, a, b);
  *da = Pick(first, g, 0);
  *db = Pick(first, 0, g);
}
void DMod(const At&, const Val& a, const Val& b, const Val& g, Val* da, Val* db) {
  *da = g;
  *db = -(g * Do(op::trunc, a / b));
}
void DFloorMod(const At&, const Val& a, const Val& b, const Val& g, Val* da, Val* db) {
  *da = g;
  *db = -(g * Do(op::floor, a / b));
}
void DAtan2(const At&, const Val& a, const Val& b, const Val& g, Val* da, Val* db) {
  Val s = g / (a * a + b * b);
  *da = s * b;
  *db = -(s * a);
}
void DPower(const At& at, const Val& a, const Val& b, const Val& g, Val* da, Val* db) {
  Val e{at.dtype(1) == a.t ? b.e : Cast(b.e, a.t), a.t};
  // 0 ** 0 is constant in its base.
  Val lower{MakeCall(op::power, {a.e, (e - 1).e}), a.t};
  *da = g * Pick(Test(op::equal, e, 0), 0, e * lower);
  if (!at.floating(1)) return;
  Val y = at.y();
  *db = g * Pick(Test(op::greater, a, 0), y * Do(op::log, Pick(Test(op::greater, a, 0), a, 1)), 0);
  if (!(b.t == a.t)) *db = {Cast(*db, b.t), b.t};
}
Grads WhereBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  Val c{at.arg(0), at.out()->dtype};
  return {Expr(), Collapse(Pick(c, at.g(), 0), at.out(), at.arg(1)), Collapse(Pick(c, 0, at.g()), at.out(), at.arg(2))};
}
Grads BiasAddBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  Ints axes;
  for (int64_t d = 0; d < at.ndim(0); ++d) {
    if (d != at.Axis(at.attrs<BiasAddAttrs>().axis)) axes.push_back(d);
  }
  return {grad, axes.empty() ? grad : Sum(grad, axes)};
}

}  // namespace
}  // namespace gradient

namespace {

constexpr auto kN = Domain::kNumber;
constexpr BinaryRow kAdd{"add", "lhs + rhs.", kN, [](PrimExpr a, PrimExpr b) { return a + b; },
                         gradient::Both<gradient::DAdd>};
constexpr BinaryRow kSubtract{"subtract", "lhs - rhs.", kN, [](PrimExpr a, PrimExpr b) { return a - b; },
                              gradient::Both<gradient::DSubtract>};
constexpr BinaryRow kMultiply{"multiply", "lhs * rhs.", kN, [](PrimExpr a, PrimExpr b) { return a * b; },
                              gradient::Both<gradient::DMultiply>};
constexpr BinaryRow kDivide{"divide",
                            "lhs / rhs; integers truncate towards 0, and give 0 for a divisor of 0.",
                            kN,
                            [](PrimExpr a, PrimExpr b) { return IsFloat(a) ? a / b : topi::SafeTruncDiv(a, b); },
                            gradient::Both<gradient::DDivide>,
                            "ONNX Div-14"};
constexpr BinaryRow kFloorDivide{
    "floor_divide", "floor(lhs / rhs).", kN,
    [](PrimExpr a, PrimExpr b) { return IsFloat(a) ? FloorDivF(a, b) : topi::SafeFloorDiv(a, b); }, gradient::Flat};
constexpr BinaryRow kMod{"mod",
                         "Remainder with the sign of lhs; integers give 0 for a divisor of 0.",
                         kN,
                         [](PrimExpr a, PrimExpr b) { return IsFloat(a) ? fmod(a, b) : topi::SafeTruncMod(a, b); },
                         gradient::Both<gradient::DMod>,
                         "C fmod"};
constexpr BinaryRow kFloorMod{
    "floor_mod", "Remainder with the sign of rhs; integers give 0 for a divisor of 0.", kN,
    [](PrimExpr a, PrimExpr b) { return IsFloat(a) ? FloorModF(a, b) : topi::SafeFloorMod(a, b); },
    gradient::Both<gradient::DFloorMod>};
constexpr BinaryRow kPower{
    "power", "lhs ** rhs, in the dtype of lhs.", kN, Power, gradient::Both<gradient::DPower>, "ONNX Pow-15", false,
    true};
constexpr BinaryRow kMaximum{"maximum", "The larger; NaN if either is.", kN,
                             [](PrimExpr a, PrimExpr b) { return max(a, b); }, gradient::Both<gradient::DMaximum>};
constexpr BinaryRow kMinimum{"minimum", "The smaller; NaN if either is.", kN,
                             [](PrimExpr a, PrimExpr b) { return min(a, b); }, gradient::Both<gradient::DMinimum>};
constexpr BinaryRow kAtan2{"atan2", "Angle of the point (rhs, lhs), in radians.", Domain::kFloat,
                           [](PrimExpr a, PrimExpr b) { return baton::atan2(a, b); }, gradient::Both<gradient::DAtan2>};
constexpr BinaryRow kEqual{
    "equal", "lhs == rhs.", Domain::kAny, [](PrimExpr a, PrimExpr b) { return baton::equal(a, b); }, {}, "NumPy", true};
constexpr BinaryRow kNotEqual{
    "not_equal", "lhs != rhs.", Domain::kAny, [](PrimExpr a, PrimExpr b) { return baton::not_equal(a, b); },
    {},          "NumPy",       true};
constexpr BinaryRow kLess{"less", "lhs < rhs.", kN, [](PrimExpr a, PrimExpr b) { return a < b; }, {}, "NumPy", true};
constexpr BinaryRow kLessEqual{"less_equal", "lhs <= rhs.", kN,  [](PrimExpr a, PrimExpr b) { return a <= b; },
                               {},           "NumPy",       true};
constexpr BinaryRow kGreater{"greater", "lhs > rhs.", kN,  [](PrimExpr a, PrimExpr b) { return a > b; },
                             {},        "NumPy",      true};
constexpr BinaryRow kGreaterEqual{"greater_equal", "lhs >= rhs.", kN, [](PrimExpr a, PrimExpr b) { return a >= b; }, {},
                                  "NumPy",         true};
constexpr BinaryRow kAnd{"logical_and", "lhs and rhs.", Domain::kBool, [](PrimExpr a, PrimExpr b) { return a && b; }};
constexpr BinaryRow kOr{"logical_or", "lhs or rhs.", Domain::kBool, [](PrimExpr a, PrimExpr b) { return a || b; }};
constexpr BinaryRow kXor{"logical_xor", "Whether just one is true.", Domain::kBool, Xor};
constexpr BinaryRow kBitAnd{"bitwise_and", "Bits that both have.", Domain::kBits, [](PrimExpr a, PrimExpr b) {
                              return a.dtype().is_bool() ? a && b : baton::bitwise_and(a, b);
                            }};
constexpr BinaryRow kBitOr{"bitwise_or", "Bits that either has.", Domain::kBits, [](PrimExpr a, PrimExpr b) {
                             return a.dtype().is_bool() ? a || b : baton::bitwise_or(a, b);
                           }};
constexpr BinaryRow kBitXor{"bitwise_xor", "Bits that just one has.", Domain::kBits, [](PrimExpr a, PrimExpr b) {
                              return a.dtype().is_bool() ? Xor(a, b) : baton::bitwise_xor(a, b);
                            }};
constexpr BinaryRow kLeftShift{"left_shift", "lhs * 2 ** rhs; 0 where rhs is no number of a bit.",
                               Domain::kInt, ShiftLeft,
                               {},           "ONNX BitShift-11"};
constexpr BinaryRow kRightShift{"right_shift",
                                "floor(lhs / 2 ** rhs); what the sign leaves where rhs is no number of a bit.",
                                Domain::kInt,
                                ShiftRight,
                                {},
                                "ONNX BitShift-11"};

/// A quotient or a remainder: of literals, by a positive literal, and of extents that are not negative. Where a
/// quotient truncates, only those are floors. An extent as divisor is taken not to be 0, as reshape takes it for -1.
template <bool kFloor, bool kRemainder>
PrimExpr DividedExtent(PrimExpr a, PrimExpr b) {
  const int64_t *x = tir::as_const_int(a), *y = tir::as_const_int(b);
  if (y && *y == 0) return PrimExpr(int64_t{0});
  if (x && y) {
    if (*y == -1) return kRemainder ? PrimExpr(int64_t{0}) : *x == INT64_MIN ? PrimExpr() : PrimExpr(-*x);
    const bool lower = kFloor && *x % *y != 0 && (*x < 0) != (*y < 0);
    return kRemainder ? PrimExpr(*x % *y + (lower ? *y : 0)) : PrimExpr(*x / *y - (lower ? 1 : 0));
  }
  const bool natural = arith::ExtentAtLeast(a, 0) == arith::Fact::kYes;
  if (!natural && !(kFloor && y)) return PrimExpr();
  if (y ? *y < 0 : kRemainder || arith::ExtentAtLeast(b, 0) != arith::Fact::kYes) return PrimExpr();
  return kRemainder ? floormod(a, b) : floordiv(a, b);
}
template <bool kFloor, bool kRemainder>
std::optional<Elements> Divided(const ElementsSite& site) {
  return ElementsOfPairs(site, DividedExtent<kFloor, kRemainder>, false);
}

/// One of both, by an extent that is 0 or another. Two that are equal need no condition.
PrimExpr ChosenExtent(const PrimExpr& c, const PrimExpr& x, const PrimExpr& y) {
  if (const int64_t* known = c.defined() ? tir::as_const_int(c) : nullptr) return *known != 0 ? x : y;
  if (!x.defined() || !y.defined()) return PrimExpr();
  if (arith::ExtentsEqual(x, y) == arith::Fact::kYes) return x;
  return c.defined() ? tir::Select(ConditionOf(c), x, y) : PrimExpr();
}
std::optional<Elements> WhereElements(const ElementsSite& site) {
  const int64_t n = CountOfBroadcast(site);
  if (n < 0) return std::nullopt;
  Elements out;
  for (int64_t i = 0; i < n; ++i) {
    out.push_back(ChosenExtent(BroadcastElement(*site.in[0], i), BroadcastElement(*site.in[1], i),
                               BroadcastElement(*site.in[2], i)));
  }
  return out;
}

Type WhereType(const TypeArgs& in) {
  in.SameDtype(1, 2, "R2");
  return TensorType(BroadcastShapes(in, in.shape(0), BroadcastShapes(in, in.shape(1), in.shape(2), "R3"), "R3"),
                    in.dtype(1));
}
Tensor LowerWhere(const Tensors& in) {
  Shape shape = topi::BroadcastShape(in[0].shape(), topi::BroadcastShape(in[1].shape(), in[2].shape()));
  return te::Compute(
      shape,
      [&](Indices i) {
        PrimExpr c = topi::BroadcastAt(in[0], i, shape);
        if (!c.dtype().is_bool()) c = not_equal(c, tir::make_const(c.dtype(), 0));
        return te::Select(c, topi::BroadcastAt(in[1], i, shape), topi::BroadcastAt(in[2], i, shape));
      },
      "where");
}

Type BiasAddType(const BiasAddAttrs& a, const TypeArgs& in) {
  in.Number(0, "R1");
  in.SameDtype(0, 1, "R2");
  in.MinRank(0, 1, "R3");
  in.Rank(1, 1, "R3");
  int64_t axis = in.Axis(a.axis, in.ndim(0));
  if (!in.Same(in.shape(0)[axis], in.shape(1)[0])) {
    in.Fail("R4", "`bias` has " + Str(in.dim(1, 0)) + " elements, where `data` has extent " + Str(in.dim(0, axis)) +
                      " on axis " + Str(axis));
  }
  return in.type(0);
}
void GuessBias(const BiasAddAttrs& a, Array<Type>* types) {
  const auto* x = AsTensor((*types)[0]);
  if (!x) return;
  int64_t n = x->shape.size(), axis = a.axis < 0 ? a.axis + n : a.axis;
  if (axis >= 0 && axis < n) Guess(types, 1, {x->shape[axis]}, x->dtype);
}
Tensor LowerBiasAdd(const BiasAddAttrs& a, const Tensors& in) {
  int64_t axis = NormalizeAxis(a.axis, in[0].ndim(), "nn.bias_add");
  return te::Compute(
      in[0].shape(), [&](Indices i) { return cast(in[0].dtype(), Widen(in[0](i)) + Widen(in[1](i[axis]))); },
      "bias_add");
}

}  // namespace

const Op op::add = Row<kAdd>({.scaling = Scaling::kAny,
                              .integers = integers::Sum,
                              .reference = reference::Zip<[](float x, float y) { return x + y; }>,
                              .elements = Each<kAdd>}),
         op::subtract = Row<kSubtract>({.scaling = Scaling::kAny,
                                        .integers = integers::Difference,
                                        .reference = reference::Zip<[](float x, float y) { return x - y; }>,
                                        .elements = Each<kSubtract>}),
         op::multiply = Row<kMultiply>({.integers = integers::Product,
                                        .reference = reference::Zip<[](float x, float y) { return x * y; }>,
                                        .elements = Each<kMultiply>}),
         op::divide = Row<kDivide>(
             {.reference = reference::Zip<[](float x, float y) { return x / y; }>, .elements = Divided<false, false>}),
         op::floor_divide = Row<kFloorDivide>({.precision = Precision::kNever, .elements = Divided<true, false>}),
         op::mod = Row<kMod>({.precision = Precision::kNever, .elements = Divided<false, true>}),
         op::floor_mod = Row<kFloorMod>({.precision = Precision::kNever, .elements = Divided<true, true>}),
         op::power = Row<kPower>(kNeverNarrow),
         op::maximum =
             Row<kMaximum>({.values = Values::kExact, .integers = integers::Extreme, .elements = Each<kMaximum>}),
         op::minimum =
             Row<kMinimum>({.values = Values::kExact, .integers = integers::Extreme, .elements = Each<kMinimum>}),
         op::atan2 = Row<kAtan2>(kNeverNarrow), op::equal = Row<kEqual>({.elements = Each<kEqual>}),
         op::not_equal = Row<kNotEqual>({.elements = Each<kNotEqual>}),
         op::less = Row<kLess>({.elements = Each<kLess>}),
         op::less_equal = Row<kLessEqual>({.elements = Each<kLessEqual>}),
         op::greater = Row<kGreater>({.elements = Each<kGreater>}),
         op::greater_equal = Row<kGreaterEqual>({.elements = Each<kGreaterEqual>}),
         op::logical_and = Row<kAnd>({.elements = Each<kAnd>}), op::logical_or = Row<kOr>({.elements = Each<kOr>}),
         op::logical_xor = Row<kXor>(), op::bitwise_and = Row<kBitAnd>(), op::bitwise_or = Row<kBitOr>(),
         op::bitwise_xor = Row<kBitXor>(), op::left_shift = Row<kLeftShift>(), op::right_shift = Row<kRightShift>();

const Op op::where = DefineOp({
    .name = "where",
    .doc = "condition ? x : y, element by element.",
    .inputs = {{"condition", "bool; or numbers, where what is not 0 is true."},
               {"x", "Any dtype. R3: all three broadcast."},
               {"y", "R2: dtype of x."}},
    .output = "Broadcast shape, dtype of `x`.",
    .type_rel = Rel<"where", WhereType>,
    .lower = LowerWhere,
    .gradient = gradient::WhereBack,
    .pattern = OpPattern::kBroadcast,
    .source = "NumPy",
    .traits = {.values = Values::kExact, .elements = WhereElements},
});
const Op op::bias_add = DefineOp({
    .name = "nn.bias_add",
    .doc = "data + bias along one axis.",
    .inputs = {{"data", "R1: floating or integer dtype. R3: rank 1 or more."},
               {"bias", "R2: dtype of data. R3: rank 1. R4: data's extent on `axis`."}},
    .output = "Shape and dtype of `data`.",
    .attrs = TypeOf<BiasAddAttrs>,
    .type_rel = RelGuess<"nn.bias_add", GuessBias, BiasAddType>,
    .lower = LowerBiasAdd,
    .gradient = gradient::BiasAddBack,
    .pattern = OpPattern::kBroadcast,
    .source = "Relay",
    .traits = {.layout = LayoutRule::kAxis, .integers = integers::BiasAdd},
});

}  // namespace baton::relay

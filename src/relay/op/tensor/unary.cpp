// SPDX-License-Identifier: Apache-2.0
// Elementwise operators with one input: a row each. `f` sees float32 for narrower floats; its result is rounded once.
#include <baton/relay/op/make.h>
#include <baton/relay/op/qnn.h>
#include <baton/relay/op/tensor.h>
#include <baton/tir/functor.h>
#include <baton/topi/elemwise.h>

#include <cmath>

#include "../common.h"
#include "../elements.h"
#include "../gradient.h"
#include "../qnn/integers.h"
#include "../reference/reference.h"

namespace baton::relay {
namespace {

struct IsInfAttrs : AttrsNode<IsInfAttrs> {
  static constexpr auto _type_key = "relay.attrs.IsInfAttrs";
  bool detect_negative = true;
  bool detect_positive = true;
  static constexpr void Describe(auto& d) {
    d(F<&IsInfAttrs::detect_negative>, "Whether -infinity counts.");
    d(F<&IsInfAttrs::detect_positive>, "Whether +infinity counts.");
  }
};

struct GeluAttrs : AttrsNode<GeluAttrs> {
  static constexpr auto _type_key = "relay.attrs.GeluAttrs";
  String approximate = "none";
  static constexpr void Describe(auto& d) { d(F<&GeluAttrs::approximate>, "\"none\" (by erf) or \"tanh\"."); }
};

struct LeakyReluAttrs : AttrsNode<LeakyReluAttrs> {
  static constexpr auto _type_key = "relay.attrs.LeakyReluAttrs";
  double alpha = 0.01;
  static constexpr void Describe(auto& d) {
    d(F<&LeakyReluAttrs::alpha>, "Slope where data <= 0. Unitless, any sign.");
  }
};

struct AlphaAttrs : AttrsNode<AlphaAttrs> {
  static constexpr auto _type_key = "relay.attrs.AlphaAttrs";
  double alpha = 1.0;
  static constexpr void Describe(auto& d) { d(F<&AlphaAttrs::alpha>, "The function's one parameter."); }
};

struct SeluAttrs : AttrsNode<SeluAttrs> {
  static constexpr auto _type_key = "relay.attrs.SeluAttrs";
  double alpha = 1.67326319217681884765625;
  double gamma = 1.05070102214813232421875;
  static constexpr void Describe(auto& d) {
    d(F<&SeluAttrs::alpha>, "Factor of exp(data) - 1.");
    d(F<&SeluAttrs::gamma>, "Factor of the whole.");
  }
};

struct HardSigmoidAttrs : AttrsNode<HardSigmoidAttrs> {
  static constexpr auto _type_key = "relay.attrs.HardSigmoidAttrs";
  double alpha = 0.2;
  double beta = 0.5;
  static constexpr void Describe(auto& d) {
    d(F<&HardSigmoidAttrs::alpha>, "Slope.");
    d(F<&HardSigmoidAttrs::beta>, "Value at 0.");
  }
};

struct ShrinkAttrs : AttrsNode<ShrinkAttrs> {
  static constexpr auto _type_key = "relay.attrs.ShrinkAttrs";
  double lambd = 0.5;
  double bias = 0;
  static constexpr void Describe(auto& d) {
    d(F<&ShrinkAttrs::lambd>, "Values of magnitude up to this become 0.");
    d(F<&ShrinkAttrs::bias>, "How far the others move towards 0.");
  }
};

struct PReluAttrs : AttrsNode<PReluAttrs> {
  static constexpr auto _type_key = "relay.attrs.PReluAttrs";
  int64_t axis = 1;
  static constexpr void Describe(auto& d) {
    d(F<&PReluAttrs::axis>, "Axis of data that an alpha of rank 1 runs along.");
  }
};

enum class Domain { kFloat, kNumber, kAny, kBool, kBits };

void CheckDomain(Domain domain, const TypeArgs& in) {
  switch (domain) {
    case Domain::kFloat:
      return in.Floating(0, "R1");
    case Domain::kNumber:
      return in.Number(0, "R1");
    case Domain::kBool:
      return in.Bool(0, "R1");
    case Domain::kBits:
      if (!in.dtype(0).is_bool()) in.Integral(0, "R1");
      return;
    case Domain::kAny:
      in[0];
      return;
  }
}
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
    case Domain::kAny:
      return "Any shape and dtype.";
  }
  return "";
}

bool IsFloat(const PrimExpr& x) { return x.dtype().is_floating(); }

using UnaryFn = PrimExpr (*)(PrimExpr);
struct UnaryRow {
  const char* name;
  const char* doc;
  Domain domain;
  UnaryFn f;
  OpGradient gradient = {};
  const char* source = "NumPy";
  bool to_bool = false;
};

Type UnaryType(const UnaryRow& row, const TypeArgs& in) {
  CheckDomain(row.domain, in);
  return row.to_bool ? Type(TensorType(in.shape(0), DataType::Bool())) : in.type(0);
}
Tensor LowerUnary(const UnaryRow& row, const Tensor& x) {
  return topi::Map(
      x,
      [&](PrimExpr v) {
        PrimExpr y = row.f(Widen(v));
        return row.to_bool ? y : cast(x.dtype(), y);
      },
      row.name);
}
template <const UnaryRow& kRow>
bool UnaryRel(const Array<Type>& given, int num_inputs, const Attrs&, TypeReporter& reporter) {
  Array<Type> types = given;
  if (!kRow.to_bool) TakeFromResult(&types, 0, reporter);
  if (!AllKnown(types, num_inputs)) return false;
  reporter.Assign(types[1], UnaryType(kRow, TypeArgs(kRow.name, types, num_inputs, reporter)));
  return true;
}
template <const UnaryRow& kRow>
Tensor LowerRow(const Tensors& in) {
  return LowerUnary(kRow, in[0]);
}
Op DefineRow(const UnaryRow& row, TypeRelationFn rel, LowerFn lower, const OpTraits& traits) {
  return DefineOp({.name = row.name,
                   .doc = row.doc,
                   .inputs = {{"data", DomainDoc(row.domain)}},
                   .output = row.to_bool ? "Shape of `data`, bool." : "Shape and dtype of `data`.",
                   .type_rel = rel,
                   .lower = lower,
                   .gradient = row.gradient,
                   .pattern = OpPattern::kElemWise,
                   .source = row.source,
                   .traits = traits});
}
template <const UnaryRow& kRow>
Op Row(const OpTraits& traits = {}) {
  return DefineRow(kRow, UnaryRel<kRow>, LowerRow<kRow>, traits);
}

PrimExpr Expm1(PrimExpr x) {
  // exp(x) - 1 loses the digits of a small x; tanh(x / 2) * (exp(x) + 1) is the same number and keeps them.
  PrimExpr small = tanh(x * Lit(0.5, x)) * (exp(x) + Lit(1, x));
  return te::Select(fabs(x) < Lit(1, x), small, exp(x) - Lit(1, x));
}
PrimExpr Softplus(PrimExpr x) { return log1p(exp(-fabs(x))) + max(x, Lit(0, x)); }
PrimExpr Sign(PrimExpr x) {
  PrimExpr zero = Lit(0, x), one = Lit(1, x);
  if (x.dtype().is_uint()) return te::Select(x > zero, one, zero);
  PrimExpr rest = IsFloat(x) ? te::Select(equal(x, zero), zero, x) : zero;  // NaN stays
  return te::Select(x > zero, one, te::Select(x < zero, Lit(-1, x), rest));
}
PrimExpr False() { return tir::make_int(DataType::Bool(), 0); }
PrimExpr True() { return tir::make_int(DataType::Bool(), 1); }

template <UnaryFn kF>
PrimExpr OfFloat(PrimExpr x) {  // integers are as they are
  return IsFloat(x) ? kF(x) : x;
}

}  // namespace

namespace gradient {
namespace {

/// The derivative by the input `x`, given the result `y` too. At a kink it is that of one side, as other frameworks
/// have it; steps have derivative 0 everywhere.
using Derivative = Val (*)(const At& at, const Val& x, const Val& y);
/// The rule that multiplies the adjoint by a derivative.
template <Derivative kDerivative>
Grads Chain(const Call& call, const Expr& grad) {
  At at(call, grad);
  return {at.g() * kDerivative(at, at.x(), at.y())};
}

Val SwishSlope(const Val& x, double alpha) {
  Val s = Do(op::sigmoid, x * alpha);
  return s + alpha * x * s * (1 - s);
}
const double kLn2 = std::log(2.0), kLn10 = std::log(10.0);

Val DAbs(const At&, const Val& x, const Val&) { return Do(op::sign, x); }
Val DExp(const At&, const Val&, const Val& y) { return y; }
Val DExp2(const At&, const Val&, const Val& y) { return y * kLn2; }
Val DExpm1(const At&, const Val&, const Val& y) { return y + 1; }
Val DLog(const At&, const Val& x, const Val&) { return 1 / x; }
Val DLog2(const At&, const Val& x, const Val&) { return 1 / (x * kLn2); }
Val DLog10(const At&, const Val& x, const Val&) { return 1 / (x * kLn10); }
Val DLog1p(const At&, const Val& x, const Val&) { return 1 / (1 + x); }
Val DSqrt(const At&, const Val&, const Val& y) { return 0.5 / y; }
Val DRsqrt(const At&, const Val&, const Val& y) { return -0.5 * y * y * y; }
Val DSigmoid(const At&, const Val&, const Val& y) { return y * (1 - y); }
Val DTanh(const At&, const Val&, const Val& y) { return 1 - y * y; }
Val DErf(const At&, const Val& x, const Val&) { return 1.1283791670955126 * Do(op::exp, -(x * x)); }
Val DSin(const At&, const Val& x, const Val&) { return Do(op::cos, x); }
Val DCos(const At&, const Val& x, const Val&) { return -Do(op::sin, x); }
Val DTan(const At&, const Val&, const Val& y) { return 1 + y * y; }
Val DSinh(const At&, const Val& x, const Val&) { return Do(op::cosh, x); }
Val DCosh(const At&, const Val& x, const Val&) { return Do(op::sinh, x); }
Val DAsin(const At&, const Val& x, const Val&) { return Do(op::rsqrt, 1 - x * x); }
Val DAcos(const At&, const Val& x, const Val&) { return -Do(op::rsqrt, 1 - x * x); }
Val DAtan(const At&, const Val& x, const Val&) { return 1 / (1 + x * x); }
Val DAsinh(const At&, const Val& x, const Val&) { return Do(op::rsqrt, 1 + x * x); }
Val DAcosh(const At&, const Val& x, const Val&) { return Do(op::rsqrt, x * x - 1); }
Val DAtanh(const At&, const Val& x, const Val&) { return 1 / (1 - x * x); }
Val DReciprocal(const At&, const Val&, const Val& y) { return -(y * y); }
Val DSoftplus(const At&, const Val& x, const Val&) { return Do(op::sigmoid, x); }
Val DSoftsign(const At&, const Val&, const Val& y) { return (1 - Do(op::abs, y)) * (1 - Do(op::abs, y)); }
Val DSilu(const At&, const Val& x, const Val&) { return SwishSlope(x, 1); }
Val DSwish(const At& at, const Val& x, const Val&) { return SwishSlope(x, at.attrs<AlphaAttrs>().alpha); }
Val DHardSwish(const At&, const Val& x, const Val&) {
  return Pick(Test(op::less_equal, x, -3), 0, Pick(Test(op::greater_equal, x, 3), 1, x / 3.0 + 0.5));
}
Val DLeakyRelu(const At& at, const Val& x, const Val&) {
  return Pick(Test(op::greater, x, 0), 1, at.attrs<LeakyReluAttrs>().alpha);
}
Val DElu(const At& at, const Val& x, const Val& y) {
  return Pick(Test(op::greater, x, 0), 1, y + at.attrs<AlphaAttrs>().alpha);
}
Val DCelu(const At& at, const Val& x, const Val& y) {
  return Pick(Test(op::greater, x, 0), 1, y / at.attrs<AlphaAttrs>().alpha + 1);
}
Val DSelu(const At& at, const Val& x, const Val& y) {
  return Pick(Test(op::greater, x, 0), at.attrs<SeluAttrs>().gamma,
              y + at.attrs<SeluAttrs>().gamma * at.attrs<SeluAttrs>().alpha);
}
Val DHardSigmoid(const At& at, const Val&, const Val& y) {
  return Pick(Test(op::greater, y, 0), Pick(Test(op::less, y, 1), Num(at.attrs<HardSigmoidAttrs>().alpha, y.t), 0), 0);
}
Val DThresholdedRelu(const At& at, const Val& x, const Val&) {
  return Pick(Test(op::greater, x, at.attrs<AlphaAttrs>().alpha), 1, 0);
}
Val DShrink(const At& at, const Val& x, const Val&) {
  return Pick(Test(op::greater, Do(op::abs, x), at.attrs<ShrinkAttrs>().lambd), 1, 0);
}
Val DClip(const At& at, const Val& x, const Val&) {
  return Pick(Test(op::greater_equal, x, at.attrs<ClipAttrs>().a_min),
              Pick(Test(op::less_equal, x, at.attrs<ClipAttrs>().a_max), Num(1, x.t), 0), 0);
}

Grads NegativeBack(const Call&, const Expr& grad) { return {MakeCall(op::negative, {grad})}; }
Grads ReluBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  return {Pick(Test(op::greater, at.x(), 0), at.g(), 0)};
}
/// alpha with data's rank.
Expr AlphaFor(const At& at) {
  int64_t n = at.ndim(0);
  if (at.ndim(1) != 1) return at.arg(1);
  int64_t after = n - 1 - at.Axis(at.attrs<PReluAttrs>().axis);
  return after ? ExpandDims(at.arg(1), 1, after) : at.arg(1);
}
Grads PReluBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  Val alpha{AlphaFor(at), at.dtype(1)}, positive = Test(op::greater, at.x(), 0);
  Val da = Pick(positive, 0, at.g() * at.x());
  if (at.ndim(1) != 1) return {Pick(positive, at.g(), at.g() * alpha), Collapse(da, at.out(), at.arg(1))};
  Ints axes;
  bool one = DimOf(at.type(1)->shape[0]) == 1;
  for (int64_t d = 0; d < at.ndim(0); ++d) {
    if (one || d != at.Axis(at.attrs<PReluAttrs>().axis)) axes.push_back(d);
  }
  Expr sum = axes.empty() ? Expr(da) : Sum(da, axes);
  return {Pick(positive, at.g(), at.g() * alpha), one ? ShapeLike(sum, at.arg(1)) : sum};
}

Expr DecomposeMish(const Call& call, const Array<Expr>& args) {
  Val x{args[0], At(call, call).dtype(0)};
  return x * Do(op::tanh, Do(op::softplus, x));
}
Expr DecomposeGelu(const Call& call, const Array<Expr>& args) {
  At at(call, call);
  Val x{args[0], at.dtype(0)};
  if (at.attrs<GeluAttrs>().approximate == "tanh") {
    return 0.5 * x * (1 + Do(op::tanh, 0.7978845608028654 * (x + 0.044715 * x * x * x)));
  }
  return 0.5 * x * (1 + Do(op::erf, x * 0.7071067811865476));
}

}  // namespace
}  // namespace gradient

namespace {

constexpr auto kF = Domain::kFloat;
constexpr auto kN = Domain::kNumber;

constexpr UnaryRow kAbs{"abs", "|data|. The smallest integer stays itself.", kN,
                        [](PrimExpr x) {
                          return x.dtype().is_uint() ? x : IsFloat(x) ? baton::fabs(x) : baton::abs(x);
                        },
                        gradient::Chain<gradient::DAbs>};
constexpr UnaryRow kNegative{"negative", "-data; unsigned integers wrap around.", kN,
                             [](PrimExpr x) { return IsFloat(x) ? -x : Lit(0, x) - x; }, gradient::NegativeBack};
constexpr UnaryRow kSign{"sign", "-1, 0 or 1; NaN for NaN.", kN, Sign, gradient::Flat};
constexpr UnaryRow kExp{"exp", "e ** data.", kF, baton::exp, gradient::Chain<gradient::DExp>};
constexpr UnaryRow kExp2{"exp2", "2 ** data.", kF, baton::exp2, gradient::Chain<gradient::DExp2>};
constexpr UnaryRow kExpm1{"expm1", "e ** data - 1, exact near 0.", kF, Expm1, gradient::Chain<gradient::DExpm1>};
constexpr UnaryRow kLog{"log", "Natural logarithm; -inf for 0, NaN below.", kF, baton::log,
                        gradient::Chain<gradient::DLog>};
constexpr UnaryRow kLog2{"log2", "Logarithm to base 2.", kF, baton::log2, gradient::Chain<gradient::DLog2>};
constexpr UnaryRow kLog10{"log10", "Logarithm to base 10.", kF, baton::log10, gradient::Chain<gradient::DLog10>};
constexpr UnaryRow kLog1p{"log1p", "log(1 + data), exact near 0.", kF, baton::log1p, gradient::Chain<gradient::DLog1p>};
constexpr UnaryRow kSqrt{"sqrt", "Square root; NaN below 0.", kF, baton::sqrt, gradient::Chain<gradient::DSqrt>};
constexpr UnaryRow kRsqrt{"rsqrt", "1 / sqrt(data).", kF, [](PrimExpr x) { return Lit(1, x) / baton::sqrt(x); },
                          gradient::Chain<gradient::DRsqrt>};
constexpr UnaryRow kSigmoid{
    "sigmoid", "1 / (1 + exp(-data)).", kF, baton::sigmoid, gradient::Chain<gradient::DSigmoid>, "ONNX Sigmoid-13"};
constexpr UnaryRow kTanh{"tanh", "Hyperbolic tangent.", kF, baton::tanh, gradient::Chain<gradient::DTanh>};
constexpr UnaryRow kErf{"erf", "Error function.", kF, baton::erf, gradient::Chain<gradient::DErf>, "ONNX Erf-13"};
constexpr UnaryRow kSin{"sin", "Sine of an angle in radians.", kF, baton::sin, gradient::Chain<gradient::DSin>};
constexpr UnaryRow kCos{"cos", "Cosine of an angle in radians.", kF, baton::cos, gradient::Chain<gradient::DCos>};
constexpr UnaryRow kTan{"tan", "Tangent of an angle in radians.", kF, baton::tan, gradient::Chain<gradient::DTan>};
constexpr UnaryRow kSinh{"sinh", "Hyperbolic sine.", kF, baton::sinh, gradient::Chain<gradient::DSinh>};
constexpr UnaryRow kCosh{"cosh", "Hyperbolic cosine.", kF, baton::cosh, gradient::Chain<gradient::DCosh>};
constexpr UnaryRow kAsin{"asin", "Arc sine, in radians.", kF, baton::asin, gradient::Chain<gradient::DAsin>};
constexpr UnaryRow kAcos{"acos", "Arc cosine, in radians.", kF, baton::acos, gradient::Chain<gradient::DAcos>};
constexpr UnaryRow kAtan{"atan", "Arc tangent, in radians.", kF, baton::atan, gradient::Chain<gradient::DAtan>};
constexpr UnaryRow kAsinh{"asinh", "Inverse hyperbolic sine.", kF, baton::asinh, gradient::Chain<gradient::DAsinh>};
constexpr UnaryRow kAcosh{"acosh", "Inverse hyperbolic cosine.", kF, baton::acosh, gradient::Chain<gradient::DAcosh>};
constexpr UnaryRow kAtanh{"atanh", "Inverse hyperbolic tangent.", kF, baton::atanh, gradient::Chain<gradient::DAtanh>};
constexpr UnaryRow kFloor{"floor", "Largest whole number <= data.", kN, OfFloat<baton::floor>, gradient::Flat};
constexpr UnaryRow kCeil{"ceil", "Smallest whole number >= data.", kN, OfFloat<baton::ceil>, gradient::Flat};
constexpr UnaryRow kTrunc{"trunc", "data without its fraction.", kN, OfFloat<baton::trunc>, gradient::Flat};
constexpr UnaryRow kRound{
    "round",        "Nearest whole number, halves to the even one.", kN, OfFloat<baton::nearbyint>, gradient::Flat,
    "ONNX Round-11"};
constexpr UnaryRow kIsNan{
    "isnan", "Whether data is NaN.", kN, [](PrimExpr x) { return IsFloat(x) ? baton::isnan(x) : False(); }, {}, "NumPy",
    true};
constexpr UnaryRow kIsFinite{"isfinite", "Whether data is neither infinite nor NaN.",
                             kN,         [](PrimExpr x) { return IsFloat(x) ? baton::isfinite(x) : True(); },
                             {},         "NumPy",
                             true};
constexpr UnaryRow kLogicalNot{"logical_not", "not data.", Domain::kBool, [](PrimExpr x) { return !x; }};
constexpr UnaryRow kBitwiseNot{"bitwise_not", "All bits turned round.", Domain::kBits,
                               [](PrimExpr x) { return x.dtype().is_bool() ? !x : baton::bitwise_not(x); }};
constexpr UnaryRow kPopcount{"popcount", "Number of bits that are 1.", Domain::kBits,
                             [](PrimExpr x) { return x.dtype().is_bool() ? x : baton::popcount(x); }};
constexpr UnaryRow kReciprocal{"reciprocal",
                               "1 / data.",
                               kF,
                               [](PrimExpr x) { return Lit(1, x) / x; },
                               gradient::Chain<gradient::DReciprocal>,
                               "ONNX Reciprocal-13"};
constexpr UnaryRow kRelu{"nn.relu",          "max(data, 0).", kN, [](PrimExpr x) { return max(x, Lit(0, x)); },
                         gradient::ReluBack, "ONNX Relu-14"};
constexpr UnaryRow kSoftplus{
    "nn.softplus", "log(exp(data) + 1).", kF, Softplus, gradient::Chain<gradient::DSoftplus>, "ONNX Softplus-1"};
constexpr UnaryRow kSoftsign{"nn.softsign",
                             "data / (1 + |data|).",
                             kF,
                             [](PrimExpr x) { return x / (Lit(1, x) + fabs(x)); },
                             gradient::Chain<gradient::DSoftsign>,
                             "ONNX Softsign-1"};
constexpr UnaryRow kSilu{"nn.silu",
                         "data * sigmoid(data).",
                         kF,
                         [](PrimExpr x) { return x * baton::sigmoid(x); },
                         gradient::Chain<gradient::DSilu>,
                         "ONNX Swish-24"};
constexpr UnaryRow kMish{"nn.mish",
                         "data * tanh(softplus(data)).",
                         kF,
                         [](PrimExpr x) { return x * baton::tanh(Softplus(x)); },
                         gradient::DecomposeMish,
                         "ONNX Mish-18"};
constexpr UnaryRow kHardSwish{
    "nn.hard_swish",
    "data * max(0, min(1, data / 6 + 1 / 2)).",
    kF,
    [](PrimExpr x) { return x * max(Lit(0, x), min(Lit(1, x), x * Lit(1.0 / 6, x) + Lit(0.5, x))); },
    gradient::Chain<gradient::DHardSwish>,
    "ONNX HardSwish-14"};

Tensor LowerCopy(const Tensors& in) {
  return topi::Map(in[0], [](PrimExpr v) { return v; }, "copy");
}
Op DefineCopy(const char* name) {
  return DefineOp({.name = name,
                   .doc = "data itself.",
                   .inputs = {{"data", "Any shape and dtype."}},
                   .output = "Shape and dtype of `data`.",
                   .type_rel = IdentityRel,
                   .lower = LowerCopy,
                   .gradient = gradient::Through,
                   .pattern = OpPattern::kElemWise,
                   .source = "ONNX Identity-14",
                   .traits = {.values = Values::kSelects, .elements = SameElements}});
}

// ---- With attributes.
template <class A>
using AttrFn = PrimExpr (*)(const A&, PrimExpr);
template <OpName kName, class A, Domain kDomain, AttrFn<A> kFn, gradient::Derivative kDerivative = nullptr>
struct WithAttrs {
  static Type TypeOfCall(const TypeArgs& in) {
    CheckDomain(kDomain, in);
    return in.type(0);
  }
  static Tensor Lower(const A& attrs, const Tensors& in) {
    return topi::Map(in[0], [&](PrimExpr v) { return cast(in[0].dtype(), kFn(attrs, Widen(v))); }, kName.text);
  }
  static Op Define(const char* doc, const char* source, const OpTraits& traits = {}) {
    return DefineOp({.name = kName.text,
                     .doc = doc,
                     .inputs = {{"data", DomainDoc(kDomain)}},
                     .output = "Shape and dtype of `data`.",
                     .attrs = TypeOf<A>,
                     .type_rel = RelSame<kName, &TypeOfCall>,
                     .lower = Lower,
                     .gradient = gradient::Chain<kDerivative>,
                     .pattern = OpPattern::kElemWise,
                     .source = source,
                     .traits = traits});
  }
};

PrimExpr LeakyRelu(const LeakyReluAttrs& a, PrimExpr x) { return te::Select(x > Lit(0, x), x, x * Lit(a.alpha, x)); }
PrimExpr Elu(const AlphaAttrs& a, PrimExpr x) { return te::Select(x > Lit(0, x), x, Lit(a.alpha, x) * Expm1(x)); }
PrimExpr Celu(const AlphaAttrs& a, PrimExpr x) {
  return te::Select(x > Lit(0, x), x, Lit(a.alpha, x) * Expm1(x / Lit(a.alpha, x)));
}
PrimExpr Selu(const SeluAttrs& a, PrimExpr x) {
  return Lit(a.gamma, x) * te::Select(x > Lit(0, x), x, Lit(a.alpha, x) * Expm1(x));
}
PrimExpr HardSigmoid(const HardSigmoidAttrs& a, PrimExpr x) {
  return max(Lit(0, x), min(Lit(1, x), Lit(a.alpha, x) * x + Lit(a.beta, x)));
}
PrimExpr ThresholdedRelu(const AlphaAttrs& a, PrimExpr x) {
  return te::Select(x <= Lit(a.alpha, x), Lit(0, x), x);  // NaN stays
}
PrimExpr Swish(const AlphaAttrs& a, PrimExpr x) { return x * sigmoid(Lit(a.alpha, x) * x); }
PrimExpr Shrink(const ShrinkAttrs& a, PrimExpr x) {
  PrimExpr v = IsFloat(x) ? x : cast(DataType::Float(x.dtype().bits() > 16 ? 64 : 32), x);
  PrimExpr y = te::Select(v < Lit(-a.lambd, v), v + Lit(a.bias, v),
                          te::Select(v > Lit(a.lambd, v), v - Lit(a.bias, v), Lit(0, v)));
  return cast(x.dtype(), y);
}
PrimExpr Gelu(const GeluAttrs& a, PrimExpr x) {
  PrimExpr half = Lit(0.5, x) * x;
  if (a.approximate == "tanh") {
    return half * (Lit(1, x) + tanh(Lit(0.7978845608028654, x) * (x + Lit(0.044715, x) * x * x * x)));
  }
  return half * (Lit(1, x) + erf(x * Lit(0.7071067811865476, x)));
}
Type GeluType(const GeluAttrs& a, const TypeArgs& in) {
  in.Floating(0, "R1");
  if (a.approximate != "none" && a.approximate != "tanh") {
    in.Fail("R2", "approximate is \"" + a.approximate.str() + "\"; it is \"none\" or \"tanh\"");
  }
  return in.type(0);
}
/// A bound as the dtype has it: for integers the nearest one inside.
PrimExpr Bound(double v, DataType t, bool low) {
  if (t.is_floating()) return tir::make_const(t, v);
  v = low ? std::ceil(v) : std::floor(v);
  int bits = t.is_int() ? t.bits() - 1 : t.bits();
  double top = std::ldexp(1.0, bits), bottom = t.is_int() ? -top : 0;
  if (v >= top) return max_value(t);
  if (!(v > bottom)) return min_value(t);
  return tir::make_int(t, v < 9e18 ? static_cast<int64_t>(v) : INT64_MAX);
}
Type ClipType(const ClipAttrs& a, const TypeArgs& in) {
  CheckDomain(kN, in);
  if (a.a_min != a.a_min || a.a_max != a.a_max) in.Fail("R2", "a bound is NaN");
  return in.type(0);
}
PrimExpr Clip(const ClipAttrs& a, PrimExpr x) {
  return min(max(x, Bound(a.a_min, x.dtype(), true)), Bound(a.a_max, x.dtype(), false));
}

Type IsInfType(const TypeArgs& in) {
  in.Number(0, "R1");
  return TensorType(in.shape(0), DataType::Bool());
}
Tensor LowerIsInf(const IsInfAttrs& a, const Tensors& in) {
  return topi::Map(
      in[0],
      [&](PrimExpr v) {
        PrimExpr x = Widen(v);
        if (!IsFloat(x) || (!a.detect_negative && !a.detect_positive)) return False();
        PrimExpr inf = isinf(x);
        if (a.detect_negative && a.detect_positive) return inf;
        return inf && (a.detect_positive ? x > Lit(0, x) : x < Lit(0, x));
      },
      "isinf");
}

void GuessSlopes(const PReluAttrs& a, Array<Type>* types) {
  const auto* x = AsTensor((*types)[0]);
  if (!x || x->shape.empty()) return;
  Guess(types, 1, {x->shape[NormalizeAxis(a.axis, static_cast<int64_t>(x->shape.size()), "nn.prelu")]}, x->dtype);
}
Type PReluType(const PReluAttrs& a, const TypeArgs& in) {
  in.Number(0, "R1");
  in.SameDtype(0, 1, "R2");
  if (in.ndim(1) != 1) {
    Shape s = BroadcastShapes(in, in.shape(0), in.shape(1), "R3");
    if (s.size() != in.shape(0).size()) in.Fail("R3", in.Show(1) + " has more dimensions than " + in.Show(0));
    return in.type(0);
  }
  if (in.ndim(0) == 0) in.Fail("R3", "`data` is a scalar and " + in.Show(1) + " is not");
  int64_t axis = in.Axis(a.axis, in.ndim(0)), n = in.dim(0, axis), m = in.dim(1, 0);
  const PrimExpr &slopes = in.shape(1)[0], &channels = in.shape(0)[axis];
  const bool one_or_all = m < 0 && !tir::ExprDeepEqual(slopes, channels);
  if (m != 1 &&
      !in.Same(slopes, one_or_all ? tir::Select(equal(slopes, PrimExpr(1)), PrimExpr(1), channels) : channels)) {
    in.Fail("R3", "`alpha` has " + Str(m) + " elements and `data` has extent " + Str(n) + " on axis " + Str(axis));
  }
  return in.type(0);
}
Tensor LowerPRelu(const PReluAttrs& a, const Tensors& in) {
  const Tensor& x = in[0];
  return te::Compute(
      x.shape(),
      [&](Indices i) {
        PrimExpr slope;
        if (in[1].ndim() == 1) {
          int64_t axis = NormalizeAxis(a.axis, x.ndim(), "nn.prelu");
          const PrimExpr &n = in[1].shape()[0], all = i[axis];
          const bool either = DimOf(n) < 0 && !tir::ExprDeepEqual(n, x.shape()[axis]);
          slope = in[1](tir::is_one(n) ? PrimExpr(0)
                        : either       ? te::Select(equal(n, PrimExpr(1)), PrimExpr(0), all)
                                       : all);
        } else {
          slope = topi::BroadcastAt(in[1], i, x.shape());
        }
        PrimExpr v = Widen(x(i));
        return cast(x.dtype(), te::Select(v < Lit(0, v), v * Widen(slope), v));
      },
      "prelu");
}

}  // namespace

const Op op::abs = Row<kAbs>(kExactValues),
         op::negative =
             Row<kNegative>({.values = Values::kExact, .reference = reference::Map<[](float x) { return -x; }>}),
         op::sign = Row<kSign>(kExactValues),
         op::exp = Row<kExp>({.precision = Precision::kNever,
                              .approximation = &op::fast_exp,
                              .integers = integers::Function1<&op::qnn::exp>,
                              .reference = reference::Map<[](float x) { return std::exp(x); }>}),
         op::exp2 = Row<kExp2>(kNeverNarrow), op::expm1 = Row<kExpm1>(kNeverNarrow), op::log = Row<kLog>(kNeverNarrow),
         op::log2 = Row<kLog2>(kNeverNarrow), op::log10 = Row<kLog10>(kNeverNarrow),
         op::log1p = Row<kLog1p>(kNeverNarrow),
         op::sqrt = Row<kSqrt>({.integers = integers::Function1<&op::qnn::sqrt>,
                                .reference = reference::Map<[](float x) { return std::sqrt(x); }>}),
         op::rsqrt = Row<kRsqrt>({.precision = Precision::kNever, .integers = integers::Function1<&op::qnn::rsqrt>}),
         op::sigmoid = Row<kSigmoid>({.integers = integers::Function1<&op::qnn::sigmoid>}),
         op::tanh = Row<kTanh>({.approximation = &op::fast_tanh,
                                .integers = integers::Function1<&op::qnn::tanh>,
                                .reference = reference::Map<[](float x) { return std::tanh(x); }>}),
         op::erf = Row<kErf>({.precision = Precision::kNever,
                              .approximation = &op::fast_erf,
                              .integers = integers::Function1<&op::qnn::erf>,
                              .reference = reference::Map<[](float x) { return std::erf(x); }>}),
         op::sin = Row<kSin>(), op::cos = Row<kCos>(), op::tan = Row<kTan>(kNeverNarrow),
         op::sinh = Row<kSinh>(kNeverNarrow), op::cosh = Row<kCosh>(kNeverNarrow), op::asin = Row<kAsin>(kNeverNarrow),
         op::acos = Row<kAcos>(kNeverNarrow), op::atan = Row<kAtan>(kNeverNarrow),
         op::asinh = Row<kAsinh>(kNeverNarrow), op::acosh = Row<kAcosh>(kNeverNarrow),
         op::atanh = Row<kAtanh>(kNeverNarrow), op::floor = Row<kFloor>(kExactValues),
         op::ceil = Row<kCeil>(kExactValues), op::trunc = Row<kTrunc>(kExactValues),
         op::round = Row<kRound>(kExactValues), op::isnan = Row<kIsNan>(), op::isfinite = Row<kIsFinite>(),
         op::logical_not = Row<kLogicalNot>(), op::bitwise_not = Row<kBitwiseNot>(), op::popcount = Row<kPopcount>(),
         op::reciprocal = Row<kReciprocal>(kNeverNarrow),
         op::relu = Row<kRelu>({.values = Values::kExact, .scaling = Scaling::kPositive, .integers = integers::Relu}),
         op::softplus = Row<kSoftplus>(kNeverNarrow), op::softsign = Row<kSoftsign>(), op::silu = Row<kSilu>(),
         op::mish = Row<kMish>(), op::hard_swish = Row<kHardSwish>();
const Op op::copy = DefineCopy("copy"), op::identity = DefineCopy("identity");

[[maybe_unused]] const Op leaky_relu =
    WithAttrs<"nn.leaky_relu", LeakyReluAttrs, kF, LeakyRelu, gradient::DLeakyRelu>::Define(
        "data > 0 ? data : alpha * data", "ONNX LeakyRelu-16", {.scaling = Scaling::kPositive});
const Op op::elu = WithAttrs<"nn.elu", AlphaAttrs, kF, Elu, gradient::DElu>::Define(
    "data > 0 ? data : alpha * (exp(data) - 1)", "ONNX Elu-6");
const Op op::celu = WithAttrs<"nn.celu", AlphaAttrs, kF, Celu, gradient::DCelu>::Define(
    "max(0, data) + min(0, alpha * (exp(data / alpha) - 1))", "ONNX Celu-12");
const Op op::selu = WithAttrs<"nn.selu", SeluAttrs, kF, Selu, gradient::DSelu>::Define(
    "gamma * (data > 0 ? data : alpha * (exp(data) - 1))", "ONNX Selu-6");
const Op op::hard_sigmoid =
    WithAttrs<"nn.hard_sigmoid", HardSigmoidAttrs, kF, HardSigmoid, gradient::DHardSigmoid>::Define(
        "max(0, min(1, alpha * data + beta))", "ONNX HardSigmoid-6");
const Op op::thresholded_relu =
    WithAttrs<"nn.thresholded_relu", AlphaAttrs, kF, ThresholdedRelu, gradient::DThresholdedRelu>::Define(
        "data > alpha ? data : 0", "ONNX ThresholdedRelu-10");
const Op op::swish = WithAttrs<"nn.swish", AlphaAttrs, kF, Swish, gradient::DSwish>::Define(
    "data * sigmoid(alpha * data)", "ONNX Swish-24");
const Op op::shrink = WithAttrs<"nn.shrink", ShrinkAttrs, kN, Shrink, gradient::DShrink>::Define(
    "data < -lambd ? data + bias : data > lambd ? data - bias : 0", "ONNX Shrink-9");
const Op op::clip = DefineOp({
    .name = "clip",
    .doc = "min(max(data, a_min), a_max); NaN stays",
    .inputs = {{"data", DomainDoc(kN)}},
    .output = "Shape and dtype of `data`. R2: the bounds are numbers, not NaN.",
    .attrs = TypeOf<ClipAttrs>,
    .type_rel = RelSame<"clip", ClipType>,
    .lower = WithAttrs<"clip", ClipAttrs, kN, Clip>::Lower,
    .gradient = gradient::Chain<gradient::DClip>,
    .pattern = OpPattern::kElemWise,
    .source = "NumPy",
    .traits = {.values = Values::kExact, .integers = integers::Clip},
});

const Op op::gelu = DefineOp({
    .name = "nn.gelu",
    .doc = "data * (1 + erf(data / sqrt(2))) / 2, or its approximation by tanh.",
    .inputs = {{"data", "Any shape. R1: floating dtype."}},
    .output = "Shape and dtype of `data`. R2: approximate is \"none\" or \"tanh\".",
    .attrs = TypeOf<GeluAttrs>,
    .type_rel = RelSame<"nn.gelu", GeluType>,
    .lower = WithAttrs<"nn.gelu", GeluAttrs, kF, Gelu>::Lower,
    .gradient = gradient::DecomposeGelu,
    .pattern = OpPattern::kElemWise,
    .source = "ONNX Gelu-20",
    .traits = {.precision = Precision::kNever},
});
const Op op::isinf = DefineOp({
    .name = "isinf",
    .doc = "Whether data is infinite.",
    .inputs = {{"data", "Any shape. R1: floating or integer dtype."}},
    .output = "Shape of `data`, bool.",
    .attrs = TypeOf<IsInfAttrs>,
    .type_rel = Rel<"isinf", IsInfType>,
    .lower = LowerIsInf,
    .pattern = OpPattern::kElemWise,
    .source = "ONNX IsInf-20",
});
const Op op::prelu = DefineOp({
    .name = "nn.prelu",
    .doc = "data < 0 ? alpha * data : data, with a slope for each channel.",
    .inputs = {{"data", "Any shape. R1: floating or integer dtype."},
               {"alpha",
                "R2: dtype of data. R3: rank 1 with data's extent on `axis`, or 1; or of another rank and broadcasting "
                "to data."}},
    .output = "Shape and dtype of `data`.",
    .attrs = TypeOf<PReluAttrs>,
    .type_rel = RelGuess<"nn.prelu", GuessSlopes, PReluType>,
    .lower = LowerPRelu,
    .gradient = gradient::PReluBack,
    .pattern = OpPattern::kBroadcast,
    .source = "ONNX PRelu-16",
    .traits = {.layout = LayoutRule::kAxis},
});

}  // namespace baton::relay

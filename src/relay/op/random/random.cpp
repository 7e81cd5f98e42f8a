// SPDX-License-Identifier: Apache-2.0
// Random numbers, on the host. A seed makes a call repeatable; without one all calls share a generator that starts anew
// in each process with the same numbers, so that runs can be repeated.
#include <baton/relay/op/algorithm.h>
#include <host/functions.h>

#include "../common.h"

namespace baton::relay {
namespace {

struct RandomAttrs : AttrsNode<RandomAttrs> {
  static constexpr auto _type_key = "relay.attrs.RandomAttrs";
  Array<int64_t> shape;
  DataType dtype = DataType::Float(32);
  double low = 0;
  double high = 1;
  double mean = 0;
  double scale = 1;
  PrimExpr seed;
  static constexpr void Describe(auto& d) {
    d(F<&RandomAttrs::shape>, "Extents of the result.", kRequired, AtLeast(0));
    d(F<&RandomAttrs::dtype>, "Dtype of the result, a floating one.");
    d(F<&RandomAttrs::low>, "Of uniform: smallest value.");
    d(F<&RandomAttrs::high>, "Of uniform: bound that is not reached.");
    d(F<&RandomAttrs::mean>, "Of normal: mean.");
    d(F<&RandomAttrs::scale>, "Of normal: standard deviation.");
    d(F<&RandomAttrs::seed>, "Makes every call give the same; None: each call goes on where the last ended.");
  }
};

/// The same of a result whose shape is that of an operand.
struct RandomLikeAttrs : AttrsNode<RandomLikeAttrs> {
  static constexpr auto _type_key = "relay.attrs.RandomLikeAttrs";
  DataType dtype;
  double low = 0;
  double high = 1;
  double mean = 0;
  double scale = 1;
  PrimExpr seed;
  static constexpr void Describe(auto& d) {
    d(F<&RandomLikeAttrs::dtype>, "Dtype of the result, a floating one; not given: that of data.");
    d(F<&RandomLikeAttrs::low>, "Of uniform: smallest value.");
    d(F<&RandomLikeAttrs::high>, "Of uniform: bound that is not reached.");
    d(F<&RandomLikeAttrs::mean>, "Of normal: mean.");
    d(F<&RandomLikeAttrs::scale>, "Of normal: standard deviation.");
    d(F<&RandomLikeAttrs::seed>, "Makes every call give the same; None: each call goes on where the last ended.");
  }
};

struct BernoulliAttrs : AttrsNode<BernoulliAttrs> {
  static constexpr auto _type_key = "relay.attrs.BernoulliAttrs";
  DataType dtype;
  PrimExpr seed;
  static constexpr void Describe(auto& d) {
    d(F<&BernoulliAttrs::dtype>, "Dtype of the result; not given: that of data.");
    d(F<&BernoulliAttrs::seed>, "Makes every call give the same; None: each call goes on where the last ended.");
  }
};

struct MultinomialAttrs : AttrsNode<MultinomialAttrs> {
  static constexpr auto _type_key = "relay.attrs.MultinomialAttrs";
  int64_t sample_size = 1;
  DataType dtype = DataType::Int(32);
  PrimExpr seed;
  static constexpr void Describe(auto& d) {
    d(F<&MultinomialAttrs::sample_size>, "Number of samples of each row.", AtLeast(1));
    d(F<&MultinomialAttrs::dtype>, "Dtype of the result, an integer one.");
    d(F<&MultinomialAttrs::seed>, "Makes every call give the same; None: each call goes on where the last ended.");
  }
};

Type RandomType(const RandomAttrs& a, const TypeArgs& in) {
  if (!a.dtype.is_floating())
    in.Fail("R1", "dtype is " + DataType2String(a.dtype) + ", where a floating one is wanted");
  return TensorType(MakeShape(ToInts(a.shape)), a.dtype);
}
Type RandomLikeType(const RandomLikeAttrs& a, const TypeArgs& in) {
  const DataType t = a.dtype.is_void() ? in.dtype(0) : a.dtype;
  if (!t.is_floating()) in.Fail("R1", "dtype is " + DataType2String(t) + ", where a floating one is wanted");
  return TensorType(in.shape(0), t);
}
Type BernoulliType(const BernoulliAttrs& a, const TypeArgs& in) {
  in.Floating(0, "R1");
  return TensorType(in.shape(0), a.dtype.is_void() ? in.dtype(0) : a.dtype);
}
Type MultinomialType(const MultinomialAttrs& a, const TypeArgs& in) {
  in.Floating(0, "R1");
  in.Rank(0, 2, "R2");
  if (!a.dtype.is_integral())
    in.Fail("R3", "dtype is " + DataType2String(a.dtype) + ", where an integer one is wanted");
  if (in.dim(0, 1) == 0) in.Fail("R2", in.Show(0) + " has no class to choose");
  return TensorType(Shape{in.shape(0)[0], PrimExpr(a.sample_size)}, a.dtype);
}

/// The common part of all of them.
Op DefineDrawn(OpDef def) {
  def.gradient = NoGradient("it draws random numbers");
  def.fold = Fold::kNever;
  def.stateful = true;
  return DefineOp(std::move(def));
}

}  // namespace

const Op op::random_uniform = DefineDrawn({
    .name = "random.uniform",
    .doc = "Numbers spread evenly over [low, high).",
    .inputs = {},
    .output = "Shape `shape`. R1: a floating dtype.",
    .attrs = TypeOf<RandomAttrs>,
    .type_rel = Rel<"random.uniform", RandomType>,
    .host = host::RandomUniform,
    .source = "ONNX RandomUniform-22",
});
const Op op::random_normal = DefineDrawn({
    .name = "random.normal",
    .doc = "Numbers of a normal distribution.",
    .inputs = {},
    .output = "Shape `shape`. R1: a floating dtype.",
    .attrs = TypeOf<RandomAttrs>,
    .type_rel = Rel<"random.normal", RandomType>,
    .host = host::RandomNormal,
    .source = "ONNX RandomNormal-22",
});
const Op op::random_uniform_like = DefineDrawn({
    .name = "random.uniform_like",
    .doc = "Numbers spread evenly over [low, high), as many as data has.",
    .inputs = {{"data", "Any; its values do not count."}},
    .output = "Shape of `data`. R1: a floating dtype.",
    .attrs = TypeOf<RandomLikeAttrs>,
    .type_rel = Rel<"random.uniform_like", RandomLikeType>,
    .host = host::RandomUniform,
    .source = "ONNX RandomUniformLike-22",
});
const Op op::random_normal_like = DefineDrawn({
    .name = "random.normal_like",
    .doc = "Numbers of a normal distribution, as many as data has.",
    .inputs = {{"data", "Any; its values do not count."}},
    .output = "Shape of `data`. R1: a floating dtype.",
    .attrs = TypeOf<RandomLikeAttrs>,
    .type_rel = Rel<"random.normal_like", RandomLikeType>,
    .host = host::RandomNormal,
    .source = "ONNX RandomNormalLike-22",
});
const Op op::random_bernoulli = DefineDrawn({
    .name = "random.bernoulli",
    .doc = "1 with the probability that data gives, else 0.",
    .inputs = {{"data", "R1: floating dtype; probabilities."}},
    .output = "Shape of `data`.",
    .attrs = TypeOf<BernoulliAttrs>,
    .type_rel = Rel<"random.bernoulli", BernoulliType>,
    .host = host::Bernoulli,
    .source = "ONNX Bernoulli-22",
});
const Op op::random_multinomial = DefineDrawn({
    .name = "random.multinomial",
    .doc = "Classes drawn from rows of unnormalised logarithms of probabilities.",
    .inputs = {{"data", "(rows, classes). R1: floating dtype. R2: rank 2, a class or more."}},
    .output = "(rows, sample_size). R3: an integer dtype.",
    .attrs = TypeOf<MultinomialAttrs>,
    .type_rel = Rel<"random.multinomial", MultinomialType>,
    .host = host::Multinomial,
    .source = "ONNX Multinomial-22",
});

}  // namespace baton::relay

// SPDX-License-Identifier: Apache-2.0
// Random numbers, on the host. A seed makes a call repeatable; without one all calls share a generator that starts anew
// in each process with the same numbers, so that runs can be repeated.
#include <baton/relay/op/algorithm.h>

#include <cmath>
#include <mutex>

#include "../host.h"

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

/// SplitMix64: small, and good enough for samples.
struct Generator {
  uint64_t state;
  uint64_t Next() {
    uint64_t z = (state += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  /// In [0, 1).
  double Unit() { return static_cast<double>(Next() >> 11) * 0x1p-53; }
  /// Standard normal, by Box and Muller.
  double Normal() {
    double u = 1 - Unit(), v = Unit();
    return std::sqrt(-2 * std::log(u)) * std::cos(6.283185307179586 * v);
  }
};
template <class Fn>
void With(const PrimExpr& seed, Fn fn) {
  if (HasValue(seed)) {
    const auto* s = seed.as<FloatImmNode>();  // ONNX gives seeds as floats
    double real = s ? s->value : 0;
    uint64_t bits;
    __builtin_memcpy(&bits, &real, 8);
    Generator g{s ? bits : static_cast<uint64_t>(ValueOf(seed))};
    fn(&g);
    return;
  }
  static std::mutex mutex;
  static Generator shared{0};
  std::lock_guard lock(mutex);
  fn(&shared);
}

Type RandomType(const RandomAttrs& a, const TypeArgs& in) {
  if (!a.dtype.is_floating())
    in.Fail("R1", "dtype is " + DataType2String(a.dtype) + ", where a floating one is wanted");
  return TensorType(MakeShape(ToInts(a.shape)), a.dtype);
}
template <bool kNormal>
NDArrays HostRandom(const Attrs& attrs, const NDArrays&) {
  const auto& a = AttrsAs<RandomAttrs>(attrs);
  NDArray out = NDArray::Empty(ToInts(a.shape), a.dtype);
  With(a.seed, [&](Generator* g) {
    for (int64_t i = 0, n = out.numel(); i < n; ++i) {
      out.SetDouble(i, kNormal ? a.mean + a.scale * g->Normal() : a.low + (a.high - a.low) * g->Unit());
    }
  });
  return {out};
}
Type BernoulliType(const BernoulliAttrs& a, const TypeArgs& in) {
  in.Floating(0, "R1");
  return TensorType(in.shape(0), a.dtype.is_void() ? in.dtype(0) : a.dtype);
}
NDArrays HostBernoulli(const Attrs& attrs, const NDArrays& in) {
  const auto& a = AttrsAs<BernoulliAttrs>(attrs);
  NDArray x = in[0].Contiguous(), out = NDArray::Empty(x.shape(), a.dtype.is_void() ? x.dtype() : a.dtype);
  With(a.seed, [&](Generator* g) {
    for (int64_t i = 0, n = out.numel(); i < n; ++i) out.SetDouble(i, g->Unit() < x.GetDouble(i) ? 1 : 0);
  });
  return {out};
}
Type MultinomialType(const MultinomialAttrs& a, const TypeArgs& in) {
  in.Floating(0, "R1");
  in.Rank(0, 2, "R2");
  if (!a.dtype.is_integral())
    in.Fail("R3", "dtype is " + DataType2String(a.dtype) + ", where an integer one is wanted");
  if (in.dim(0, 1) == 0) in.Fail("R2", in.Show(0) + " has no class to choose");
  return TensorType(Shape{in.shape(0)[0], PrimExpr(a.sample_size)}, a.dtype);
}
NDArrays HostMultinomial(const Attrs& attrs, const NDArrays& in) {
  const auto& a = AttrsAs<MultinomialAttrs>(attrs);
  NDArray x = in[0].Contiguous();
  int64_t rows = x.shape()[0], classes = x.shape()[1];
  NDArray out = NDArray::Empty({rows, a.sample_size}, a.dtype);
  std::vector<double> logits = ToDoubles(x), sums(classes);
  With(a.seed, [&](Generator* g) {
    for (int64_t r = 0; r < rows; ++r) {
      double top = -INFINITY, sum = 0;  // unnormalised logarithms of probabilities
      for (int64_t c = 0; c < classes; ++c) top = std::fmax(top, logits[r * classes + c]);
      for (int64_t c = 0; c < classes; ++c) sums[c] = sum += std::exp(logits[r * classes + c] - top);
      for (int64_t s = 0; s < a.sample_size; ++s) {
        double u = g->Unit() * sum;
        int64_t c = 0;
        while (c + 1 < classes && !(u < sums[c])) ++c;
        out.SetDouble(r * a.sample_size + s, static_cast<double>(c));
      }
    }
  });
  return {out};
}

constexpr OpGradient kDrawn = NoGradient("it draws random numbers");

}  // namespace

const Op op::random_uniform = DefineOp({
    .name = "random.uniform",
    .doc = "Numbers spread evenly over [low, high).",
    .inputs = {},
    .output = "Shape `shape`. R1: a floating dtype.",
    .attrs = TypeOf<RandomAttrs>,
    .type_rel = Rel<"random.uniform", RandomType>,
    .host = HostRandom<false>,
    .gradient = kDrawn,
    .fold = Fold::kNever,
    .stateful = true,
    .source = "ONNX RandomUniform-22",
});
const Op op::random_normal = DefineOp({
    .name = "random.normal",
    .doc = "Numbers of a normal distribution.",
    .inputs = {},
    .output = "Shape `shape`. R1: a floating dtype.",
    .attrs = TypeOf<RandomAttrs>,
    .type_rel = Rel<"random.normal", RandomType>,
    .host = HostRandom<true>,
    .gradient = kDrawn,
    .fold = Fold::kNever,
    .stateful = true,
    .source = "ONNX RandomNormal-22",
});
const Op op::random_bernoulli = DefineOp({
    .name = "random.bernoulli",
    .doc = "1 with the probability that data gives, else 0.",
    .inputs = {{"data", "R1: floating dtype; probabilities."}},
    .output = "Shape of `data`.",
    .attrs = TypeOf<BernoulliAttrs>,
    .type_rel = Rel<"random.bernoulli", BernoulliType>,
    .host = HostBernoulli,
    .gradient = kDrawn,
    .fold = Fold::kNever,
    .stateful = true,
    .source = "ONNX Bernoulli-22",
});
const Op op::random_multinomial = DefineOp({
    .name = "random.multinomial",
    .doc = "Classes drawn from rows of unnormalised logarithms of probabilities.",
    .inputs = {{"data", "(rows, classes). R1: floating dtype. R2: rank 2, a class or more."}},
    .output = "(rows, sample_size). R3: an integer dtype.",
    .attrs = TypeOf<MultinomialAttrs>,
    .type_rel = Rel<"random.multinomial", MultinomialType>,
    .host = HostMultinomial,
    .gradient = kDrawn,
    .fold = Fold::kNever,
    .stateful = true,
    .source = "ONNX Multinomial-22",
});

}  // namespace baton::relay

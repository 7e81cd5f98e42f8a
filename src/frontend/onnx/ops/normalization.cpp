// SPDX-License-Identifier: Apache-2.0
// Normalizations.
#include <algorithm>

#include "common.h"

namespace baton::onnx {
namespace {

/// `v` of one axis, shaped to broadcast along axis 1 of data of that rank.
Value Channel(Ctx& c, const Value& v, int rank) { return c.Unsqueeze(v, Iota(rank - 2, 1)); }

Value InverseRoot(Ctx& c, const Value& variance, double epsilon) {
  return c.Div(c.Scalar(variance.dtype, 1), c.Call("sqrt", {c.Add(variance, epsilon)}));
}

/// (v - mean) / sqrt(variance + epsilon) over `axes`.
struct Standard {
  Value value, mean, inverse;
};
Standard Standardize(Ctx& c, const Value& v, const Dims& axes, double epsilon) {
  Standard s;
  s.mean = Reduce(c, "mean", v, axes, true);
  Value centered = c.Sub(v, s.mean);
  s.inverse = InverseRoot(c, Reduce(c, "mean", c.Mul(centered, centered), axes, true), epsilon);
  s.value = c.Mul(centered, s.inverse);
  return s;
}

Values BatchNormalization(Ctx& c) {
  c.Ignore("consumed_inputs");
  Value x = c.T(0), scale = c.T(1), bias = c.T(2), mean = c.T(3), variance = c.T(4);
  double epsilon = c.Float("epsilon", 1e-5), momentum = c.Float("momentum", 0.9);
  int rank = c.Rank(x);
  if (c.Int("spatial", 1) == 0) c.Unsupported("`spatial` 0");
  bool training = c.since() >= 14 && c.Int("training_mode", 0) != 0;
  if (c.since() < 7) c.Ignore("is_test");
  if (!training) {
    for (size_t i = 1; i < 5; ++i) {
      if (c.Wants(i)) c.Unsupported("outputs for training");
    }
    if (x.dtype == scale.dtype && x.dtype == mean.dtype && rank >= 2) {
      Value all = c.Call("nn.batch_norm", {x, scale, bias, mean, variance}, {{"axis", 1}, {"epsilon", epsilon}});
      return {c.Item(all, 0)};
    }
    Value xs = c.Cast(x, mean.dtype);
    Value inverse = c.Mul(InverseRoot(c, variance, epsilon), c.Cast(scale, mean.dtype));
    Value y = c.Mul(c.Sub(xs, Channel(c, mean, rank)), Channel(c, inverse, rank));
    return {c.Cast(c.Add(y, c.Cast(Channel(c, bias, rank), y.dtype)), x.dtype)};
  }
  Dims axes = Iota(rank - 2, 2);
  axes.insert(axes.begin(), 0);
  Value xs = c.Cast(x, ComputeType(x.dtype));
  Value now = Reduce(c, "mean", xs, axes, true);
  Value centered = c.Sub(xs, now);
  Value spread = Reduce(c, "mean", c.Mul(centered, centered), axes, true);
  Value y = c.Mul(centered, InverseRoot(c, spread, epsilon));
  y = c.Add(c.Mul(y, c.Cast(Channel(c, scale, rank), y.dtype)), c.Cast(Channel(c, bias, rank), y.dtype));
  auto blend = [&](const Value& old, const Value& fresh) {
    Value f = c.Cast(c.Squeeze(fresh, axes), old.dtype);
    return c.Add(c.Mul(old, momentum), c.Mul(f, 1 - momentum));
  };
  return {c.Cast(y, x.dtype), blend(mean, now), blend(variance, spread)};
}

Values InstanceNormalization(Ctx& c) {
  c.Ignore("consumed_inputs");
  Value x = c.T(0);
  int rank = c.Rank(x);
  if (rank < 3) c.Fail("the data must have spatial axes");
  Value v = c.Cast(x, ComputeType(x.dtype));
  Standard s = Standardize(c, v, Iota(rank - 2, 2), c.Float("epsilon", 1e-5));
  Value y = c.Mul(s.value, c.Cast(Channel(c, c.T(1), rank), v.dtype));
  return {c.Cast(c.Add(y, c.Cast(Channel(c, c.T(2), rank), v.dtype)), x.dtype)};
}

DataType StashType(Ctx& c, DataType t) {
  int64_t code = c.Int("stash_type", 1);
  DataType stash = FromOnnxType(static_cast<int32_t>(code));
  if (stash.is_void() || !IsFloat(stash)) c.Unsupported("`stash_type` " + std::to_string(code));
  // The stated type is the least precision; a wider input keeps its own.
  return t.is_float() && t.bits() > stash.bits() ? t : ComputeType(stash);
}

Values LayerNormalization(Ctx& c) {
  Value x = c.T(0), scale = c.T(1);
  int rank = c.Rank(x);
  int axis = c.Axis(c.Int("axis", -1), rank);
  double epsilon = c.Float("epsilon", 1e-5);
  DataType stash = StashType(c, x.dtype);
  bool statistics = c.Wants(1) || c.Wants(2);
  if (!statistics && c.Has(2) && ComputeType(x.dtype) == stash && scale.rank() == rank - axis &&
      scale.dtype == x.dtype) {
    return {
        c.Call("nn.layer_norm", {x, scale, c.T(2)}, {{"axis", axis}, {"num_axes", rank - axis}, {"epsilon", epsilon}})};
  }
  Standard s = Standardize(c, c.Cast(x, stash), Iota(rank - axis, axis), epsilon);
  Value y = c.Mul(c.Cast(s.value, x.dtype), scale);
  if (c.Has(2)) y = c.Add(y, c.T(2));
  return {y, s.mean, s.inverse};
}

Values RMSNormalization(Ctx& c) {
  Value x = c.T(0);
  int rank = c.Rank(x);
  int axis = c.Axis(c.Int("axis", -1), rank);
  double epsilon = c.Float("epsilon", 1e-5);
  Value v = c.Cast(x, StashType(c, x.dtype));
  Value square = Reduce(c, "mean", c.Mul(v, v), Iota(rank - axis, axis), true);
  Value y = c.Cast(c.Mul(v, InverseRoot(c, square, epsilon)), x.dtype);
  return {c.Mul(y, c.Cast(c.T(1), x.dtype))};
}

Values GroupNormalization(Ctx& c) {
  Value x = c.T(0), scale = c.T(1), bias = c.T(2);
  const Dims shape = c.Lengths(x);
  int64_t groups = c.Int("num_groups");
  double epsilon = c.Float("epsilon", 1e-5);
  if (shape.size() < 3 || groups < 1 || c.Dim(x, 1) % groups != 0) c.Fail("the channels do not fit `num_groups`");
  DataType stash = c.since() >= 21 ? StashType(c, x.dtype) : ComputeType(x.dtype);
  Dims cut = {shape[0], groups, shape[1] / groups};
  cut.insert(cut.end(), shape.begin() + 2, shape.end());
  int rank = static_cast<int>(cut.size());
  Standard s = Standardize(c, c.Reshape(c.Cast(x, stash), cut), Iota(rank - 2, 2), epsilon);
  int plain = static_cast<int>(shape.size());
  if (c.since() < 21) {
    // Scale and bias are for groups here, for channels later.
    Value y = c.Cast(s.value, x.dtype);
    y = c.Add(c.Mul(y, c.Unsqueeze(scale, Iota(rank - 2, 1))), c.Unsqueeze(bias, Iota(rank - 2, 1)));
    return {c.Reshape(y, shape)};
  }
  Value y = c.Cast(c.Reshape(s.value, shape), x.dtype);
  return {c.Add(c.Mul(y, Channel(c, scale, plain)), Channel(c, bias, plain))};
}

Values MeanVarianceNormalization(Ctx& c) {
  Value x = c.T(0);
  Dims axes = c.HasAttr("axes") ? c.Ints("axes") : Dims{0, 2, 3};
  for (int64_t& a : axes) a = c.Axis(a, c.Rank(x));
  Value mean = Reduce(c, "mean", x, axes, true);
  Value centered = c.Sub(x, mean);
  Value deviation = c.Call("sqrt", {Reduce(c, "mean", c.Mul(centered, centered), axes, true)});
  return {c.Div(centered, c.Add(deviation, 1e-9))};
}

Values LpNormalization(Ctx& c) {
  Value x = c.T(0);
  Dims axis = {c.Axis(c.Int("axis", -1), c.Rank(x))};
  int64_t p = c.Int("p", 2);
  Value norm;
  if (p == 1) {
    norm = Reduce(c, "sum", c.Call("abs", {x}), axis, true);
  } else if (p == 2) {
    norm = c.Call("sqrt", {Reduce(c, "sum", c.Mul(x, x), axis, true)});
  } else {
    c.Fail("`p` is " + std::to_string(p) + ", not 1 or 2");
  }
  // A vector of zeros stays zero.
  Value zero = c.Scalar(x.dtype, 0);
  return {c.Where(c.Call("equal", {norm, zero}), zero, c.Div(x, norm))};
}

Values LRN(Ctx& c) {
  Value x = c.T(0);
  int64_t size = c.Int("size");
  double alpha = c.Float("alpha", 1e-4), beta = c.Float("beta", 0.75), bias = c.Float("bias", 1.0);
  if (size < 1) c.Fail("`size` is " + std::to_string(size));
  if (size % 2 == 1) {
    return {c.Call("nn.lrn", {x}, {{"size", size}, {"axis", 1}, {"bias", bias}, {"alpha", alpha}, {"beta", beta}})};
  }
  const Dims shape = c.Lengths(x);
  if (shape.size() < 2) c.Fail("the data must have channels");
  c.Dim(x, 1);
  if (size > 4096) c.Unsupported("`size` " + std::to_string(size) + ", even and above 4096");
  std::vector<Array<int64_t>> width(shape.size(), Array<int64_t>({0, 0}));
  width[1] = Array<int64_t>({(size - 1) / 2, size / 2});
  Value square = c.Call("nn.pad", {c.Mul(x, x), c.Scalar(x.dtype, 0)},
                        {{"pad_width", Array<Array<int64_t>>(width)}, {"pad_mode", "constant"}});
  Value sum = c.Slice(square, 1, 0, shape[1]);
  for (int64_t i = 1; i < size; ++i) sum = c.Add(sum, c.Slice(square, 1, i, i + shape[1]));
  Value base = c.Add(c.Mul(sum, alpha / static_cast<double>(size)), bias);
  return {c.Div(x, c.Call("power", {base, c.Scalar(x.dtype, beta)}))};
}

}  // namespace

void AddNormalization(OpTable* table) {
  for (const OpRow& row : {
           OpRow{"", "BatchNormalization", BatchNormalization},
           {"", "InstanceNormalization", InstanceNormalization, TypeOfFirst},
           {"", "LayerNormalization", LayerNormalization},
           {"", "RMSNormalization", RMSNormalization},
           {"", "GroupNormalization", GroupNormalization, TypeOfFirst},
           {"", "MeanVarianceNormalization", MeanVarianceNormalization},
           {"", "LpNormalization", LpNormalization},
           {"", "LRN", LRN},
       }) {
    table->push_back(row);
  }
}

}  // namespace baton::onnx

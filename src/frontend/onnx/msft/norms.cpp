// SPDX-License-Identifier: Apache-2.0
// Normalisations of ONNX Runtime: of sums, of embeddings, without a mean, of groups of channels.
#include "frontend/onnx/import/importer_impl.h"
#include "msft.h"

namespace baton::onnx {
namespace {

Dims LastAxis(Ctx& c, const Value& v) { return {c.Rank(v) - 1}; }

/// Over the last axis, with a gain and maybe a shift, in float32 where the data are narrower.
Values ScaledNormal(Ctx& c, const Value& v, const Value& gain, const Value& shift, double epsilon, bool simple) {
  if (!simple && shift && ComputeType(v.dtype) == v.dtype && gain.dtype == v.dtype && !c.Wants(1) && !c.Wants(2)) {
    const int64_t last = c.Rank(v) - 1;
    return {c.Call("nn.layer_norm", {v, gain, shift}, {{"axis", last}, {"num_axes", 1}, {"epsilon", epsilon}})};
  }
  const DataType t = ComputeType(v.dtype);
  Normal n = Normalise(c, c.Cast(v, t), LastAxis(c, v), epsilon, simple);
  Value y = c.Mul(n.value, c.Cast(gain, t));
  if (shift) y = c.Add(y, c.Cast(shift, t));
  return {c.Cast(y, v.dtype), n.mean, n.inverse};
}

/// input + skip (+ bias), normalised; the sum is the fourth result.
Values SkipNormal(Ctx& c, bool simple) {
  Value x = c.Add(c.T(0), c.T(1));
  const size_t bias = simple ? 3 : 4;
  if (c.Has(bias)) x = c.Add(x, c.T(bias));
  Values out = ScaledNormal(c, x, c.T(2), simple ? Value() : c.Opt(3), c.Float("epsilon", 1e-12F), simple);
  out.resize(3);
  out.push_back(x);
  return out;
}
Values SkipLayerNormalization(Ctx& c) { return SkipNormal(c, false); }
Values SkipSimplifiedLayerNormalization(Ctx& c) { return SkipNormal(c, true); }

/// RMSNormalization, whose scale may have another type than the data: that of the result.
Values SimplifiedLayerNormalization(Ctx& c) {
  Value x = c.T(0), scale = c.T(1);
  const int rank = c.Rank(x), axis = c.Axis(c.Int("axis", -1), rank);
  c.Ignore("stash_type");
  Normal n = Normalise(c, c.Cast(x, ComputeType(x.dtype)), Iota(rank - axis, axis), c.Float("epsilon", 1e-5F), true);
  return {c.Mul(c.Cast(n.value, scale.dtype), scale), n.inverse};
}

Values GatedRMSNorm(Ctx& c) {
  Value x = c.T(0), scale = c.T(1), gate = c.T(2);
  const std::string activation = c.Str("activation", "silu");
  const double epsilon = c.Float("epsilon", 1e-5F);
  const DataType t = ComputeType(x.dtype);
  const Dims shape = c.Lengths(x);
  const int64_t part = c.Dim(scale, 0), last = c.Dim(x, -1);
  if (part < 1 || last % part != 0) c.Fail("the last axis is no multiple of the length of `scale`");
  Dims cut(shape.begin(), shape.end() - 1);
  cut.push_back(last / part);
  cut.push_back(part);
  Normal n = Normalise(c, c.Reshape(c.Cast(x, t), cut), {static_cast<int64_t>(cut.size()) - 1}, epsilon, true);
  Value y = c.Reshape(c.Mul(n.value, c.Cast(scale, t)), shape), g = c.Cast(gate, t);
  if (activation == "silu" || activation == "swish") {
    g = Silu(c, g);
  } else if (activation == "sigmoid") {
    g = Sigmoid(c, g);
  } else {
    c.Fail("`activation` is `" + activation + "`, not silu, swish or sigmoid");
  }
  return {c.Cast(c.Mul(y, g), x.dtype)};
}

/// The sum of the word's, the position's and maybe the segment's row.
struct Embedding {
  Value words, positions, segments;
};

/// Rows of the three tables by the ids of the node, added and normalised; then the length of each mask, and the sum.
Values Embed(Ctx& c, const Embedding& table, const Value& gamma, const Value& beta, const Value& mask,
             const Value& position_ids) {
  Value ids = c.T(0);
  if (c.Rank(ids) != 2) c.Fail("`input_ids` has " + std::to_string(c.Rank(ids)) + " axes, not two");
  const double epsilon = c.Float("epsilon", 1e-12F);
  c.Ignore("mask_index_type");
  Value sum = Take(c, table.words, ids, 0);
  Value rows =
      position_ids ? Take(c, table.positions, position_ids, 0) : c.Slice(table.positions, 0, 0, c.Length(ids, 1));
  sum = c.Add(sum, rows);
  if (table.segments) sum = c.Add(sum, Take(c, table.segments, c.T(1), 0));
  const DataType t = ComputeType(sum.dtype), i32 = DataType::Int(32);
  Normal n = Normalise(c, c.Cast(sum, t), {2}, epsilon, false);
  Value y = c.Cast(c.Add(c.Mul(n.value, c.Cast(gamma, t)), c.Cast(beta, t)), sum.dtype);
  Value count;
  if (c.Wants(1)) count = mask ? Reduce(c, "sum", c.Cast(mask, i32), {1}, false) : c.Full(i32, 0, {c.Length(ids, 0)});
  return {y, count, sum};
}

Values EmbedLayerNormalization(Ctx& c) {
  return Embed(c, {c.T(2), c.T(3), c.Has(1) ? c.T(4) : Value()}, c.T(5), c.T(6), c.Opt(7), c.Opt(8));
}

Values QEmbedLayerNormalization(Ctx& c) {
  auto wide = [&](size_t value, size_t scale, size_t zero) {
    const DataType i32 = DataType::Int(32), f = c.T(scale).dtype;
    Value centered = c.Sub(c.Cast(c.T(value), i32), c.Cast(c.Reshape(c.T(zero), {}), i32));
    return c.Mul(c.Cast(centered, f), c.Reshape(c.T(scale), {}));
  };
  return Embed(c, {wide(2, 8, 13), wide(3, 9, 14), c.Has(1) ? wide(4, 10, 15) : Value()}, wide(5, 11, 16),
               wide(6, 12, 17), c.Opt(7), Value());
}

/// Over groups of channels, of (N, H, W, C) unless `channels_last` is 0; SiLU after it where `activation` is 1.
Value GroupsOf(Ctx& c, const Value& x, const Value& gamma, const Value& beta) {
  const bool last = c.Int("channels_last", 1) != 0;
  const int64_t groups = c.Int("groups"), activation = c.Int("activation");
  const double epsilon = c.Float("epsilon", 1e-5F);
  if (c.Rank(x) != 4) c.Fail("the data have " + std::to_string(c.Rank(x)) + " axes, not four");
  const DataType t = ComputeType(x.dtype);
  Value v = last ? c.Transpose(x, {0, 3, 1, 2}) : x;
  const Dims s = c.Lengths(v);
  if (groups < 1 || c.Dim(v, 1) % groups != 0) c.Fail("the channels cannot be cut into `groups`");
  Normal n =
      Normalise(c, c.Reshape(c.Cast(v, t), {s[0], groups, s[1] / groups, s[2], s[3]}), {2, 3, 4}, epsilon, false);
  Value y = c.Reshape(n.value, s);
  y = c.Add(c.Mul(y, c.Unsqueeze(c.Cast(gamma, t), {1, 2})), c.Unsqueeze(c.Cast(beta, t), {1, 2}));
  if (activation != 0 && activation != 1) c.Fail("`activation` is " + std::to_string(activation) + ", not 0 or 1");
  if (activation == 1) y = Silu(c, y);
  return c.Cast(last ? c.Transpose(y, {0, 2, 3, 1}) : y, x.dtype);
}

Values GroupNorm(Ctx& c) { return {GroupsOf(c, c.T(0), c.T(1), c.T(2))}; }

Values SkipGroupNorm(Ctx& c) {
  Value x = c.T(0), skip = c.T(3), bias = c.Opt(4);
  const bool last = c.Int("channels_last", 1) != 0;
  if (c.Rank(skip) == 2) skip = c.Unsqueeze(skip, last ? Dims{1, 2} : Dims{2, 3});
  Value sum = c.Add(x, skip);
  if (bias) sum = c.Add(sum, last ? bias : c.Unsqueeze(bias, {1, 2}));
  return {GroupsOf(c, sum, c.T(1), c.T(2)), sum};
}

}  // namespace

Normal Normalise(Ctx& c, const Value& v, const Dims& axes, double epsilon, bool simple) {
  Normal n;
  Value x = v;
  if (!simple) {
    n.mean = Reduce(c, "mean", v, axes, true);
    x = c.Sub(v, n.mean);
  }
  Value spread = Reduce(c, "mean", c.Mul(x, x), axes, true);
  n.inverse = c.Div(c.Scalar(v.dtype, 1), c.Call("sqrt", {c.Add(spread, epsilon)}));
  n.value = c.Mul(x, n.inverse);
  return n;
}

void AddMsftNorms(OpTable* table) {
  for (const OpRow& row : {
           OpRow{kMsft, "SkipLayerNormalization", SkipLayerNormalization},
           {kMsft, "SkipSimplifiedLayerNormalization", SkipSimplifiedLayerNormalization},
           {"", "SimplifiedLayerNormalization", SimplifiedLayerNormalization},
           {kMsft, "SimplifiedLayerNormalization", SimplifiedLayerNormalization},
           {kMsft, "GatedRMSNorm", GatedRMSNorm},
           {kMsft, "EmbedLayerNormalization", EmbedLayerNormalization},
           {kMsft, "QEmbedLayerNormalization", QEmbedLayerNormalization},
           {kMsft, "GroupNorm", GroupNorm},
           {kMsft, "SkipGroupNorm", SkipGroupNorm},
       }) {
    table->push_back(row);
  }
}

}  // namespace baton::onnx

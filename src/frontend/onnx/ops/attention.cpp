// SPDX-License-Identifier: Apache-2.0
// Attention, rotary embeddings and related operators.
#include <cmath>
#include <limits>

#include "common.h"

namespace baton::onnx {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

/// [batch, sequence, heads * size] to [batch, heads, sequence, size].
Value SplitHeads(Ctx& c, const Value& v, int64_t heads) {
  const Dims s = c.Lengths(v);
  if (s.size() != 3) c.Fail("an operand has " + std::to_string(s.size()) + " axes, not three");
  c.Dim(v, 2);
  if (heads < 1 || s[2] % heads != 0) c.Fail("the last axis cannot be cut into " + std::to_string(heads) + " heads");
  return c.Transpose(c.Reshape(v, {s[0], s[1], heads, s[2] / heads}), {0, 2, 1, 3});
}

/// Repeats each head `times` times, side by side.
Value RepeatHeads(Ctx& c, const Value& v, int64_t times) {
  if (times == 1) return v;
  const Dims s = c.Lengths(v);
  return c.Reshape(c.BroadcastTo(c.Unsqueeze(v, {2}), {s[0], s[1], times, s[2], s[3]}),
                   {s[0], s[1] * times, s[2], s[3]});
}

/// Which of the keys at positions `key` the queries at positions `at` see; a window below 0 has no end.
Value Allowed(Ctx& c, const Value& key, const Value& at, bool causal, int64_t left, int64_t right) {
  const DataType i64 = DataType::Int(64);
  Value allowed;
  auto require = [&](const Value& condition) {
    allowed = allowed ? c.Call("logical_and", {allowed, condition}) : condition;
  };
  if (causal) require(c.Call("less_equal", {key, at}));
  Value behind = c.Sub(at, key);
  if (left >= 0) require(c.Call("less_equal", {behind, c.Scalar(i64, static_cast<double>(left))}));
  if (right >= 0) require(c.Call("greater_equal", {behind, c.Scalar(i64, -static_cast<double>(right))}));
  return allowed;
}

Values Attention(Ctx& c) {
  Value q = c.T(0), k = c.T(1), v = c.T(2), mask = c.Opt(3), past_k = c.Opt(4), past_v = c.Opt(5), lengths = c.Opt(6);
  bool causal = c.Int("is_causal", 0) != 0;
  int64_t q_heads = c.Int("q_num_heads", 0), kv_heads = c.Int("kv_num_heads", 0),
          mode = c.Int("qk_matmul_output_mode", 0);
  double softcap = c.Float("softcap", 0);
  int64_t precision = c.Int("softmax_precision", 0);
  int64_t left = c.Int("left_window_size", -1), right = c.Int("right_window_size", -1);
  bool flat = c.Rank(q) == 3;
  if (!flat && c.Rank(q) != 4) c.Fail("`Q` must have three or four axes");
  if (c.Rank(k) != c.Rank(q) || c.Rank(v) != c.Rank(q)) c.Fail("`Q`, `K` and `V` differ in rank");
  if (flat) {
    q = SplitHeads(c, q, q_heads);
    k = SplitHeads(c, k, kv_heads);
    v = SplitHeads(c, v, kv_heads);
  }
  const Dims qs = c.Lengths(q);
  for (int axis : {1, 3}) c.Dim(q, axis), c.Dim(k, axis);
  double scale = c.HasAttr("scale") ? c.Float("scale", 0) : 1.0 / std::sqrt(static_cast<double>(qs[3]));
  if (past_k) k = c.Concat({past_k, k}, 2);
  if (past_v) v = c.Concat({past_v, v}, 2);
  Value present_k = k, present_v = v;
  const Dims ks = c.Lengths(k);
  int64_t rows = qs[2], columns = ks[2];
  if (qs[1] != ks[1]) {
    if (ks[1] < 1 || qs[1] % ks[1] != 0) c.Fail("the heads of `Q` are no multiple of those of `K`");
    k = RepeatHeads(c, k, qs[1] / ks[1]);
    v = RepeatHeads(c, v, qs[1] / ks[1]);
  }
  // Narrow floats are computed with in float32 from here to the end: rounding each step would lose two places.
  DataType given = q.dtype, t = ComputeType(given), i64 = DataType::Int(64);
  // The scale is split over both factors, as the definition has it: products of float16 stay in range. It has their
  // type.
  double root = HostFromFloats(given, {}, {std::sqrt(scale)})->FloatAt(0);
  q = c.Cast(q, t);
  k = c.Cast(k, t);
  v = c.Cast(v, t);
  if (mask && !mask.dtype.is_bool()) mask = c.Cast(mask, t);
  Value scores = c.MatMul(c.Mul(q, root), c.Transpose(c.Mul(k, root), {0, 1, 3, 2}));
  if (softcap > 0) scores = c.Mul(c.Call("tanh", {c.Div(scores, softcap)}), softcap);
  Value capped = scores;

  Value bias;
  auto add = [&](const Value& more) { bias = bias ? c.Add(bias, more) : more; };
  Value zero = c.Scalar(t, 0), never = c.Scalar(t, -kInf);
  if (mask) {
    if (mask.dtype.is_bool()) mask = c.Where(mask, zero, never);
    int64_t have = c.Length(mask, -1);
    if (!Ctx::IsSymbol(have) && !Ctx::IsSymbol(columns) && have < columns) {
      Dims rest = c.Fixed(mask);
      rest.back() = columns - have;
      mask = c.Concat({mask, c.Full(t, -kInf, rest)}, c.Rank(mask) - 1);
    }
    add(mask);
  }
  if (causal || left >= 0 || right >= 0) {
    // Query i is at position i + offset among the keys.
    const int64_t past = past_k ? c.Length(past_k, 2) : 0, last = c.Plus(past, rows);
    Value at = c.Reshape(c.Slice(Arange(c, last, i64), 0, past, last), {rows, 1});
    Value key = c.Reshape(Arange(c, columns, i64), {1, columns});
    if (!past_k && lengths) {
      Value offset = c.Sub(c.Cast(lengths, i64), static_cast<double>(c.Dim(q, 2)));
      at = c.Add(at, c.Reshape(offset, {qs[0], 1, 1, 1}));
    }
    const Value allowed = Allowed(c, key, at, causal, left, right);
    add(c.Where(allowed, zero, never));
  }
  if (lengths) {
    Value key = c.Reshape(Arange(c, columns, i64), {1, 1, 1, columns});
    Value inside = c.Call("less", {key, c.Reshape(c.Cast(lengths, i64), {qs[0], 1, 1, 1})});
    add(c.Where(inside, zero, never));
  }
  if (bias) scores = c.Add(scores, bias);
  Value biased = scores;
  DataType in = precision == 0 ? t : FromOnnxType(static_cast<int32_t>(precision));
  if (in.is_void() || !IsFloat(in)) c.Unsupported("`softmax_precision` " + std::to_string(precision));
  in = ComputeType(in);
  Value p = c.Cast(scores, in);
  if (mask || lengths || left >= 0 || right >= 0) {
    // A row in which every key is masked has no softmax; it counts for nothing. A causal one sees its own place.
    Value open = c.Call("greater", {Reduce(c, "max", bias, {c.Rank(bias) - 1}, true), never});
    p = Softmax(c, c.Where(open, p, c.Scalar(in, 0)), 3);
    p = c.Where(open, p, c.Scalar(in, 0));
  } else {
    p = Softmax(c, p, 3);
  }
  p = c.Cast(p, t);
  Value y = c.Cast(c.MatMul(p, v), given);
  if (flat) {
    int64_t size = c.Dim(v, 3);
    y = c.Reshape(c.Transpose(y, {0, 2, 1, 3}), {qs[0], rows, qs[1] * size});
  }
  if (mode < 0 || mode > 3) c.Fail("`qk_matmul_output_mode` is " + std::to_string(mode));
  return {y, present_k, present_v, c.Cast(mode == 0 || mode == 1 ? capped : mode == 2 ? biased : p, given)};
}

Values RotaryEmbedding(Ctx& c) {
  Value x = c.T(0), cosine = c.T(1), sine = c.T(2);
  bool interleaved = c.Int("interleaved", 0) != 0;
  int64_t part = c.Int("rotary_embedding_dim", 0), heads = c.Int("num_heads", 0);
  const Dims given = c.Lengths(x);
  bool flat = given.size() == 3;
  if (!flat && given.size() != 4) c.Fail("the input must have three or four axes");
  if (flat) {
    c.Dim(x, 2);
    if (heads < 1 || given[2] % heads != 0) c.Fail("`num_heads` does not fit the last axis");
    x = c.Reshape(x, {given[0], given[1], heads, given[2] / heads});
  } else {
    x = c.Transpose(x, {0, 2, 1, 3});
  }
  const Dims s = c.Lengths(x);
  c.Dim(x, 3);
  if (part == 0) part = s[3];
  if (part < 0 || part > s[3] || part % 2 != 0) c.Fail("`rotary_embedding_dim` does not fit the size of a head");
  if (c.Has(3)) {
    cosine = Take(c, cosine, c.T(3), 0);
    sine = Take(c, sine, c.T(3), 0);
  }
  int64_t half = part / 2;
  cosine = c.Unsqueeze(cosine, {2});
  sine = c.Unsqueeze(sine, {2});
  Value turned = c.Slice(x, 3, 0, part), a, b;
  if (interleaved) {
    Value pairs = c.Reshape(turned, {s[0], s[1], s[2], half, 2});
    a = c.Reshape(c.Slice(pairs, 4, 0, 1), {s[0], s[1], s[2], half});
    b = c.Reshape(c.Slice(pairs, 4, 1, 2), {s[0], s[1], s[2], half});
  } else {
    a = c.Slice(turned, 3, 0, half);
    b = c.Slice(turned, 3, half, part);
  }
  Value real = c.Sub(c.Mul(cosine, a), c.Mul(sine, b)), imaginary = c.Add(c.Mul(sine, a), c.Mul(cosine, b));
  if (interleaved) {
    turned = c.Reshape(c.Concat({c.Unsqueeze(real, {4}), c.Unsqueeze(imaginary, {4})}, 4), {s[0], s[1], s[2], part});
  } else {
    turned = c.Concat({real, imaginary}, 3);
  }
  if (part < s[3]) turned = c.Concat({turned, c.Slice(x, 3, part, s[3])}, 3);
  return {flat ? c.Reshape(turned, given) : c.Transpose(turned, {0, 2, 1, 3})};
}

/// Step by step: a state of (d_k, d_v) for each head is decayed, corrected, updated and read.
Values LinearAttention(Ctx& c) {
  Value q = c.T(0), k = c.T(1), v = c.T(2), past = c.Opt(3), decay = c.Opt(4), beta = c.Opt(5);
  c.Ignore("chunk_size");
  int64_t q_heads = c.Int("q_num_heads"), heads = c.Int("kv_num_heads");
  double scale = c.Float("scale", 0);
  std::string rule = c.Str("update_rule", "gated_delta");
  bool gated = rule == "gated" || rule == "gated_delta", delta = rule == "delta" || rule == "gated_delta";
  if (!gated && !delta && rule != "linear") c.Fail("`update_rule` is `" + rule + "`");
  if (gated != static_cast<bool>(decay) || delta != static_cast<bool>(beta))
    c.Fail("`decay` and `beta` do not fit `update_rule`");
  if (heads < 1 || q_heads < 1 || q_heads % heads != 0) c.Fail("`q_num_heads` is no multiple of `kv_num_heads`");
  DataType t = DataType::Float(32), out_type = q.dtype;
  Value q4 = c.Cast(SplitHeads(c, q, q_heads), t), k4 = c.Cast(SplitHeads(c, k, heads), t),
        v4 = c.Cast(SplitHeads(c, v, heads), t);
  const Dims qs = c.Lengths(q4), vs = c.Lengths(v4);
  int64_t batch = qs[0], steps = c.Dim(q4, 2), dk = qs[3], dv = vs[3];
  if (steps > 1024) c.Unsupported("a sequence of more than 1024 steps");
  if (scale == 0) scale = 1.0 / std::sqrt(static_cast<double>(dk));
  if (decay) decay = c.Cast(SplitHeads(c, decay, heads), t);
  if (beta) beta = c.Cast(SplitHeads(c, beta, c.Dim(beta, -1)), t);
  Value state = past ? c.Cast(past, t) : c.Full(t, 0, {batch, heads, dk, dv});
  Values outputs;
  for (int64_t i = 0; i < steps; ++i) {
    Value qi = c.Slice(q4, 2, i, i + 1), ki = c.Slice(k4, 2, i, i + 1), vi = c.Slice(v4, 2, i, i + 1);
    Value column = c.Transpose(ki, {0, 1, 3, 2});
    if (gated) state = c.Mul(state, c.Call("exp", {c.Transpose(c.Slice(decay, 2, i, i + 1), {0, 1, 3, 2})}));
    if (delta) vi = c.Mul(c.Slice(beta, 2, i, i + 1), c.Sub(vi, c.MatMul(ki, state)));
    state = c.Add(state, c.Mul(column, vi));
    outputs.push_back(c.Mul(c.MatMul(qi, RepeatHeads(c, state, q_heads / heads)), scale));
  }
  if (outputs.empty()) c.Unsupported("an empty sequence");
  Value y = c.Concat(outputs, 2);
  y = c.Reshape(c.Transpose(y, {0, 2, 1, 3}), {batch, steps, q_heads * dv});
  return {c.Cast(y, out_type), c.Cast(state, past ? past.dtype : out_type)};
}

/// A causal convolution of each channel with its own kernel, the oldest element first.
Values CausalConvWithState(Ctx& c) {
  Value x = c.T(0), w = c.T(1), bias = c.Opt(2), past = c.Opt(3);
  std::string activation = c.Str("activation", "none");
  const Dims s = c.Fixed(x), k = c.Fixed(w);
  if (s.size() != 3 || k.size() != 3 || k[0] != s[1] || k[1] != 1) c.Fail("`weight` does not fit the channels");
  Value history = past ? past : c.Full(x.dtype, 0, {s[0], s[1], k[2] - 1});
  Value all = k[2] > 1 ? c.Concat({history, x}, 2) : x;
  Value y = c.Call("nn.conv1d", {all, w},
                   {{"strides", IntsAny({1})},
                    {"padding", IntsAny({0, 0})},
                    {"dilation", IntsAny({1})},
                    {"groups", s[1]},
                    {"channels", s[1]},
                    {"kernel_size", IntsAny({k[2]})},
                    {"data_layout", "NCW"},
                    {"kernel_layout", "OIW"}});
  if (bias) y = c.Call("nn.bias_add", {y, bias}, {{"axis", 1}});
  if (activation == "silu" || activation == "swish") {
    y = c.Mul(y, Sigmoid(c, y));
  } else if (activation != "none") {
    c.Fail("`activation` is `" + activation + "`");
  }
  int64_t length = s[2] + k[2] - 1;
  return {y, c.Slice(all, 2, length - (k[2] - 1), length)};
}

Values SwiGLU(Ctx& c) {
  Value a = c.T(0);
  double alpha = c.Float("alpha", 1.0);
  return {c.Mul(c.Call("nn.swish", {a}, {{"alpha", alpha}}), c.T(1))};
}

}  // namespace

void AddAttention(OpTable* table) {
  for (const OpRow& row : {OpRow{"", "Attention", Attention},
                           {"", "RotaryEmbedding", RotaryEmbedding},
                           {"", "LinearAttention", LinearAttention},
                           {"", "CausalConvWithState", CausalConvWithState},
                           {"", "SwiGLU", SwiGLU}}) {
    table->push_back(row);
  }
}

}  // namespace baton::onnx

// SPDX-License-Identifier: Apache-2.0
// Attention of ONNX Runtime, whose masks are lengths, zeros and ones or added numbers, and rotary embeddings.
#include <cmath>
#include <limits>

#include "msft.h"

namespace baton::onnx {
namespace {

/// Positions 0..n-1 as (1, 1, 1, n).
Value Across(Ctx& c, int64_t n) { return c.Reshape(Arange(c, n, kI64), {1, 1, 1, n}); }

/// The addend of a mask of ONNX Runtime to scores (batch, heads, rows, columns): `filter` where a key is masked.
Value MaskBias(Ctx& c, const Value& mask, int64_t batch, int64_t rows, int64_t columns, DataType t, double filter) {
  const Value none = c.Scalar(t, 0), masked = c.Scalar(t, filter);
  const int rank = c.Rank(mask);
  if (rank == 1) {
    Value m = c.Cast(mask, kI64);
    auto per_batch = [&](const Value& v) { return c.Reshape(v, {batch, 1, 1, 1}); };
    const int64_t n = c.Length(m, 0);
    Value key = Across(c, columns);
    if (n == batch) return c.Where(c.Call("less", {key, per_batch(m)}), none, masked);
    if (n == c.Times(batch, 2)) {  // ends, then starts
      Value inside = c.Call("logical_and", {c.Call("less", {key, per_batch(c.Slice(m, 0, 0, batch))}),
                                            c.Call("greater_equal", {key, per_batch(c.Slice(m, 0, batch, n))})});
      return c.Where(inside, none, masked);
    }
    c.Unsupported("a mask of " + std::to_string(n) +
                  " numbers for packed sequences; export the model with a mask of (batch, keys)");
  }
  Value seen = c.Cast(mask, DataType::Bool());
  if (rank == 2) {
    seen = c.Unsqueeze(seen, {1, 2});
  } else if (rank == 3) {
    seen = c.Unsqueeze(seen, {1});
  } else if (rank == 4) {  // of the longest sequence
    seen = c.Slice(c.Slice(seen, 3, 0, columns), 2, c.Minus(columns, rows), columns);
  } else {
    c.Fail("the mask has " + std::to_string(rank) + " axes");
  }
  return c.Where(seen, none, masked);
}

/// The addend that hides later keys: -inf, or all but.
Value CausalBias(Ctx& c, int64_t rows, int64_t columns, DataType t) {
  const int64_t past = c.Minus(columns, rows);
  Value at = c.Reshape(c.Slice(Arange(c, columns, kI64), 0, past, columns), {1, 1, rows, 1});
  return c.Where(c.Call("less_equal", {Across(c, columns), at}), c.Scalar(t, 0),
                 c.Scalar(t, t.bits() < 32 ? -65504.0 : std::numeric_limits<float>::lowest()));
}

Value Sum(Ctx& c, const Value& a, const Value& b) { return !a ? b : !b ? a : c.Add(a, b); }

/// Attributes of all forms: the scale of scores, the number for masked keys, whether later keys are hidden.
struct Settings {
  double scale, filter;
  bool causal;
  Settings(Ctx& c, int64_t size)
      : scale(c.Float("scale", 0)),
        filter(c.Float("mask_filter_value", -10000.0)),
        causal(c.Int("unidirectional", 0) != 0) {
    if (scale == 0) scale = 1.0 / std::sqrt(static_cast<double>(size));
  }
};

/// Attention of these heads with the node's mask and bias.
Attended Masked(Ctx& c, const Heads& h, const Settings& form, const Value& mask, const Value& bias) {
  const Dims q = c.Lengths(h.q);
  const int64_t rows = q[2], columns = c.Length(h.k, 2);
  const DataType t = ComputeType(h.q.dtype);
  Value all;
  if (mask) all = MaskBias(c, mask, q[0], rows, columns, t, form.filter);
  if (form.causal) all = Sum(c, all, CausalBias(c, rows, columns, t));
  if (bias) all = Sum(c, all, c.Cast(bias, t));
  return Attend(c, h, {.scale = form.scale, .bias = all});
}

Values Attention(Ctx& c) {
  Value projected = c.MatMul(c.T(0), c.T(1));
  if (c.Has(2)) projected = c.Add(projected, c.T(2));
  if (c.Int("past_present_share_buffer", 0) != 0 || c.Has(6))
    c.Unsupported("`past_present_share_buffer`; export the model with a past that grows");
  return AttentionOf(c, projected, c.Opt(3), c.Opt(4), c.Opt(5));
}

/// Keys or values: (batch, length, hidden) in heads, with their part of the bias; (batch, heads, length, size) as it
/// is.
Value KeysOf(Ctx& c, const Value& v, int64_t heads, const Value& bias) {
  if (c.Rank(v) == 4) return v;
  return ToHeads(c, bias ? c.Add(v, bias) : v, heads);
}

/// One of the tensors that axis 3 of (batch, length, heads, n, size) holds, as heads.
Value Unpacked(Ctx& c, const Value& v, int64_t i) {
  return c.Transpose(c.Squeeze(c.Slice(v, 3, i, i + 1), {3}), {0, 2, 1, 3});
}

struct MultiHead {
  Value query, key, value, bias, mask, add, past_key, past_value;
};

Values MultiHeadOf(Ctx& c, const MultiHead& in) {
  const int64_t heads = c.Int("num_heads");
  Heads h;
  Value key = in.key, value = in.value;
  if (c.Rank(in.query) == 5) {
    if (in.bias) c.Unsupported("`bias` with packed queries, keys and values");
    h = {Unpacked(c, in.query, 0), Unpacked(c, in.query, 1), Unpacked(c, in.query, 2)};
  } else {
    const int64_t hidden = c.Dim(in.query, 2);
    Value qb, kb, vb;
    if (in.bias) {
      qb = c.Slice(in.bias, 0, 0, hidden);
      kb = c.Slice(in.bias, 0, hidden, 2 * hidden);
      vb = c.Slice(in.bias, 0, 2 * hidden, c.Dim(in.bias, 0));
    }
    h.q = ToHeads(c, qb ? c.Add(in.query, qb) : in.query, heads);
    if (!key) c.Unsupported("a query without keys that is not packed");
    if (c.Rank(key) == 5) {
      h.k = Unpacked(c, key, 0), h.v = Unpacked(c, key, 1);
    } else {
      if (!value) c.Fail("it has `key` without `value`");
      h.k = KeysOf(c, key, heads, kb), h.v = KeysOf(c, value, heads, vb);
    }
  }
  if (in.past_key) h.k = c.Concat({in.past_key, h.k}, 2);
  if (in.past_value) h.v = c.Concat({in.past_value, h.v}, 2);
  Attended a = Masked(c, h, Settings(c, c.Dim(h.q, 3)), in.mask, in.add);
  return {a.output, h.k, h.v, a.scores};
}

Values MultiHeadAttention(Ctx& c) {
  if (c.Has(8) || c.Has(9)) c.Unsupported("shared buffers of a beam search; export the model with a past that grows");
  return MultiHeadOf(c, {c.T(0), c.Opt(1), c.Opt(2), c.Opt(3), c.Opt(4), c.Opt(5), c.Opt(6), c.Opt(7)});
}

Values DecoderMaskedMultiHeadAttention(Ctx& c) {
  if (c.Int("past_present_share_buffer", 0) != 0 || c.Has(8) || c.Has(9))
    c.Unsupported("shared buffers of a beam search; export the model with a past that grows");
  c.Ignore("output_qk");
  MultiHead in = {c.T(0), c.Opt(1), c.Opt(2), c.Opt(10), c.Opt(3), c.Opt(4), c.Opt(5), c.Opt(6)};
  if (in.key && c.Rank(in.key) == 4) in.past_key = in.past_value = Value();  // of another sequence
  return MultiHeadOf(c, in);
}

Values RotaryEmbedding(Ctx& c) {
  Value x = c.T(0), ids = c.T(1), cosine = c.T(2), sine = c.T(3);
  const bool interleaved = c.Int("interleaved", 0) != 0;
  int64_t heads = c.Int("num_heads", 0);
  const int64_t part = c.Int("rotary_embedding_dim", 0);
  c.Ignore("is_packed_batching");
  if (c.Float("scale", 1.0) != 1.0) c.Unsupported("`scale`, which ONNX Runtime's kernels leave out");
  const Dims given = c.Lengths(x);
  const bool flat = given.size() == 3;
  if (!flat && given.size() != 4) c.Fail("the input has " + std::to_string(given.size()) + " axes, not three or four");
  if (part > 0 && heads < 1 && flat) c.Fail("`rotary_embedding_dim` needs `num_heads`");
  if (flat) {
    if (part == 0) heads = c.Dim(x, 2) / (2 * c.Dim(cosine, 1));
    x = ToHeads(c, x, heads);
  }
  if (c.Rank(ids) == 1) {  // the first position
    ids = c.Add(c.Cast(ids, kI64), Arange(c, c.Length(x, 2), kI64));
  }
  Value y = Rotate(c, x, TurnAt(c, cosine, sine, ids), interleaved);
  return {flat ? c.Reshape(c.Transpose(y, {0, 2, 1, 3}), given) : y};
}

/// The embedding is turned into sines here, as Gemma's code does.
Values GemmaRotaryEmbedding(Ctx& c) {
  Value angle = c.Unsqueeze(c.T(0), {1}), q = c.T(1), k = c.T(3);
  Value cosine = c.Cast(c.Call("cos", {angle}), q.dtype), sine = c.Cast(c.Call("sin", {angle}), q.dtype);
  return {c.Add(c.Mul(q, cosine), c.Mul(c.T(2), sine)), c.Add(c.Mul(k, cosine), c.Mul(c.T(4), sine))};
}

}  // namespace

Value ToHeads(Ctx& c, const Value& v, int64_t heads) {
  const Dims s = c.Lengths(v);
  if (s.size() != 3) c.Fail("an operand has " + std::to_string(s.size()) + " axes, not three");
  const int64_t hidden = c.Dim(v, 2);
  if (heads < 1 || hidden % heads != 0)
    c.Fail("an axis of " + std::to_string(hidden) + " elements cannot be cut into " + std::to_string(heads) + " heads");
  return c.Transpose(c.Reshape(v, {s[0], s[1], heads, hidden / heads}), {0, 2, 1, 3});
}

Turn TurnAt(Ctx& c, const Value& cosine, const Value& sine, const Value& positions) {
  const Dims line = c.Rank(positions) == 1 ? Dims{0, 1} : Dims{1};
  auto rows = [&](const Value& cache) { return c.Unsqueeze(Take(c, cache, positions, 0), line); };
  return {rows(cosine), rows(sine)};
}

Value Rotate(Ctx& c, const Value& x, const Turn& turn, bool interleaved) {
  const Dims s = c.Lengths(x);
  const int64_t size = c.Dim(x, 3), half = c.Dim(turn.cosine, 3), part = 2 * half;
  if (part > size) c.Fail("the caches turn " + std::to_string(part) + " elements of a head of " + std::to_string(size));
  Value turned = c.Slice(x, 3, 0, part), a, b;
  if (interleaved) {
    Value pairs = c.Reshape(turned, {s[0], s[1], s[2], half, 2});
    a = c.Squeeze(c.Slice(pairs, 4, 0, 1), {4}), b = c.Squeeze(c.Slice(pairs, 4, 1, 2), {4});
  } else {
    a = c.Slice(turned, 3, 0, half), b = c.Slice(turned, 3, half, part);
  }
  Value real = c.Sub(c.Mul(a, turn.cosine), c.Mul(b, turn.sine));
  Value imaginary = c.Add(c.Mul(a, turn.sine), c.Mul(b, turn.cosine));
  if (interleaved) {
    turned = c.Reshape(c.Concat({c.Unsqueeze(real, {4}), c.Unsqueeze(imaginary, {4})}, 4), {s[0], s[1], s[2], part});
  } else {
    turned = c.Concat({real, imaginary}, 3);
  }
  return part == size ? turned : c.Concat({turned, c.Slice(x, 3, part, size)}, 3);
}

Attended Attend(Ctx& c, const Heads& given, const Weighing& how) {
  // Narrow floats are computed with in float32: rounding each step would lose two places.
  const DataType out = given.q.dtype, t = ComputeType(out);
  Heads h = {c.Cast(given.q, t), c.Cast(given.k, t), c.Cast(given.v, t)};
  const Dims q = c.Lengths(h.q), k = c.Lengths(h.k);
  const int64_t heads = c.Dim(h.q, 1), groups = c.Dim(h.k, 1), rows = q[2], columns = k[2];
  if (groups < 1 || heads % groups != 0)
    c.Fail(std::to_string(heads) + " heads of queries are no multiple of " + std::to_string(groups) + " of keys");
  // Heads that share keys are rows of one product.
  const int64_t each = heads / groups;
  Value left = c.Reshape(c.Mul(h.q, how.scale), {q[0], groups, c.Times(each, rows), q[3]});
  Value scores = c.Reshape(c.MatMul(left, c.Transpose(h.k, {0, 1, 3, 2})), {q[0], heads, rows, columns});
  if (how.softcap > 0) scores = c.Mul(c.Call("tanh", {c.Div(scores, how.softcap)}), how.softcap);
  if (how.bias) scores = c.Add(scores, how.bias);
  Value weights;
  if (how.sink) {
    Value sink = c.Reshape(c.Cast(how.sink, t), {1, heads, 1, 1});
    Value most = c.Call("maximum", {Reduce(c, "max", scores, {3}, true), sink});
    Value e = c.Call("exp", {c.Sub(scores, most)});
    weights = c.Div(e, c.Add(Reduce(c, "sum", e, {3}, true), c.Call("exp", {c.Sub(sink, most)})));
  } else {
    weights = Softmax(c, scores, 3);
  }
  const int64_t size = c.Dim(h.v, 3);
  Value y = c.MatMul(c.Reshape(weights, {q[0], groups, c.Times(each, rows), columns}), h.v);
  y = c.Transpose(c.Reshape(y, {q[0], heads, rows, size}), {0, 2, 1, 3});
  return {c.Cast(c.Reshape(y, {q[0], rows, heads * size}), out), c.Cast(scores, out), c.Cast(weights, out)};
}

Values AttentionOf(Ctx& c, const Value& projected, const Value& mask, const Value& past, const Value& bias) {
  const int64_t heads = c.Int("num_heads"), all = c.Dim(projected, 2);
  if (c.Int("do_rotary", 0) != 0) c.Unsupported("`do_rotary`, which ONNX Runtime's CPU kernel does not have either");
  c.Ignore("rotary_embedding_dim");
  Dims sizes = c.Ints("qkv_hidden_sizes");
  if (sizes.empty()) sizes = Dims(3, all / 3);
  if (sizes.size() != 3 || sizes[0] != sizes[1] || sizes[0] + sizes[1] + sizes[2] != all)
    c.Fail("`qkv_hidden_sizes` does not fit the " + std::to_string(all) + " columns of the weights");
  Heads h = {ToHeads(c, c.Slice(projected, 2, 0, sizes[0]), heads),
             ToHeads(c, c.Slice(projected, 2, sizes[0], 2 * sizes[0]), heads),
             ToHeads(c, c.Slice(projected, 2, 2 * sizes[0], all), heads)};
  if (past) {
    h.k = c.Concat({c.Squeeze(c.Slice(past, 0, 0, 1), {0}), h.k}, 2);
    h.v = c.Concat({c.Squeeze(c.Slice(past, 0, 1, 2), {0}), h.v}, 2);
  }
  Attended a = Masked(c, h, Settings(c, c.Dim(h.q, 3)), mask, bias);
  if (!c.Wants(1)) return {a.output};
  return {a.output, c.Concat({c.Unsqueeze(h.k, {0}), c.Unsqueeze(h.v, {0})}, 0)};
}

void AddMsftAttention(OpTable* table) {
  for (const OpRow& row : {
           OpRow{kMsft, "Attention", Attention},
           {kMsft, "MultiHeadAttention", MultiHeadAttention},
           {kMsft, "DecoderMaskedMultiHeadAttention", DecoderMaskedMultiHeadAttention},
           {kMsft, "RotaryEmbedding", RotaryEmbedding},
           {kMsft, "GemmaRotaryEmbedding", GemmaRotaryEmbedding},
       }) {
    table->push_back(row);
  }
}

}  // namespace baton::onnx

// SPDX-License-Identifier: Apache-2.0
// GroupQueryAttention: fewer heads of keys than of queries, a cache of past keys, and sequences of different length.
#include <cmath>
#include <limits>

#include "msft.h"

namespace baton::onnx {
namespace {

/// Lengths and positions of one call. A sequence of the batch has `before` keys of the past that count, then the new
/// ones; its cache may have more room than that.
struct Cache {
  int64_t batch, rows, room;  ///< sequences, new keys, keys of the past tensors
  int64_t keys;               ///< of the present tensors: the room, or all keys of the longest sequence
  Value before;               ///< (batch or 1, 1): keys of the past that count
  bool whole;                 ///< the past counts in full, and the new keys follow it
};

Cache CacheOf(Ctx& c, const Value& query, const Value& past) {
  Cache k;
  k.batch = c.Length(query, 0), k.rows = c.Length(query, 2);
  k.room = past ? c.Length(past, 2) : 0;
  const Dims total = c.KnownLengths(c.T(6));
  if (total.size() != 1) c.Fail("`total_sequence_length` is not one number");
  const int64_t both = c.Plus(k.room, k.rows);
  // The total of one sequence is its own: if it is that of the past and the new keys, nothing is left out.
  k.whole = (k.batch == 1 || k.room == 0) && c.Minus(total[0], both) == 0;
  k.keys = k.whole ? both : c.Most(k.room, total[0]);
  if (k.whole) {
    // All of the past counts, which shapes say: one sequence, or none has a past.
    k.before = past ? c.Reshape(c.Slice(c.ShapeOf(past), 0, 2, 3), {1, 1}) : c.Full(kI64, 0, {1, 1});
    return k;
  }
  // The first prompt has no past, whatever the room and however short a sequence is.
  Value all = c.Reshape(c.Cast(c.T(5), kI64), {k.batch, 1}), rows = c.ShapeOf(query);
  rows = c.Reshape(c.Slice(rows, 0, 2, 3), {1, 1});
  Value first = c.Call("equal", {c.Reshape(c.Cast(c.T(6), kI64), {1, 1}), rows});
  k.before = c.Where(first, c.Scalar(kI64, 0), c.Sub(c.Add(all, 1), rows));
  return k;
}

/// The past with the new keys behind what counts of it: (batch, heads, keys, size).
Value Append(Ctx& c, const Cache& k, const Value& past, const Value& fresh) {
  if (k.whole) return past ? c.Concat({past, fresh}, 2) : fresh;
  const int64_t heads = c.Dim(fresh, 1), size = c.Dim(fresh, 3), both = c.Plus(k.room, k.rows);
  Value joined = past ? c.Concat({past, fresh}, 2) : fresh;
  Value rows = c.Reshape(c.Transpose(joined, {0, 2, 1, 3}), {c.Times(k.batch, both), heads * size});
  // Key i of a sequence is a past one before `before`, a new one behind it, and what is left there in the room.
  Value i = c.Reshape(Arange(c, k.keys, kI64), {1, k.keys});
  Value room = c.Reshape(c.Slice(c.ShapeOf(joined), 0, 2, 3), {1, 1});
  Value fresh_rows = c.Reshape(c.Slice(c.ShapeOf(fresh), 0, 2, 3), {1, 1});
  Value moved = c.Sub(c.Add(i, c.Sub(room, fresh_rows)), k.before);
  Value is_new =
      c.Call("logical_and", {c.Call("greater_equal", {i, k.before}), c.Call("less", {i, c.Add(k.before, fresh_rows)})});
  Value at = c.Call("minimum", {c.Where(is_new, moved, i), c.Sub(room, 1)});
  Value first = c.Mul(c.Reshape(Arange(c, k.batch, kI64), {k.batch, 1}), room);
  Value taken = Take(c, rows, c.Reshape(c.Add(at, first), {c.Times(k.batch, k.keys)}), 0);
  return c.Transpose(c.Reshape(taken, {k.batch, k.keys, heads, size}), {0, 2, 1, 3});
}

/// The addend of scores: -inf for the keys that a query does not see.
Value Unseen(Ctx& c, const Cache& k, const Value& at, DataType t) {
  const bool causal = c.Int("causal", 1) != 0;
  const int64_t window = c.Int("local_window_size", -1);
  Value key = c.Reshape(Arange(c, k.keys, kI64), {1, 1, 1, k.keys});
  Value place = c.Unsqueeze(at, {1, 3}), seen;
  if (causal) {
    seen = c.Call("less_equal", {key, place});
  } else {
    seen = c.Call("less_equal", {key, c.Reshape(c.Cast(c.T(5), kI64), {k.batch, 1, 1, 1})});
  }
  if (window > 0) {
    Value near = c.Call("less", {c.Sub(place, key), c.Scalar(kI64, static_cast<double>(window))});
    seen = c.Call("logical_and", {seen, near});
  }
  return c.Where(seen, c.Scalar(t, 0), c.Scalar(t, -std::numeric_limits<double>::infinity()));
}

Heads GivenHeads(Ctx& c, int64_t heads, int64_t groups) {
  Value q = c.T(0);
  if (c.Has(1)) return {ToHeads(c, q, heads), ToHeads(c, c.T(1), groups), ToHeads(c, c.T(2), groups)};
  const int64_t all = c.Dim(q, 2), parts = heads + 2 * groups;
  if (all % parts != 0)
    c.Fail("`query` has " + std::to_string(all) + " columns for " + std::to_string(parts) + " heads");
  const int64_t size = all / parts, k = heads * size, v = k + groups * size;
  return {ToHeads(c, c.Slice(q, 2, 0, k), heads), ToHeads(c, c.Slice(q, 2, k, v), groups),
          ToHeads(c, c.Slice(q, 2, v, all), groups)};
}

void RefuseRare(Ctx& c) {
  if (c.Int("sliding_window_cache", 0) != 0) c.Unsupported("`sliding_window_cache`; export a cache of all keys");
  for (const char* name : {"k_quant_type", "v_quant_type"}) {
    if (c.Str(name, "NONE") != "NONE") c.Unsupported(std::string("`") + name + "`; export a cache of floats");
  }
  c.Ignore("kv_cache_bit_width");
  if (c.Has(12) || c.Has(13)) c.Unsupported("a quantised cache; export a cache of floats");
}

Values GroupQueryAttention(Ctx& c) {
  const int64_t heads = c.Int("num_heads"), groups = c.Int("kv_num_heads");
  if (heads < 1 || groups < 1) c.Fail("`num_heads` and `kv_num_heads` must be at least 1");
  RefuseRare(c);
  Value past_k = c.Opt(3), past_v = c.Opt(4), bias = c.Opt(10);
  Heads h = GivenHeads(c, heads, groups);
  const double epsilon = c.Float("qk_norm_epsilon", 1e-6F);
  auto normal = [&](const Value& v, const Value& gain) {
    const DataType t = ComputeType(v.dtype);
    return c.Cast(c.Mul(Normalise(c, c.Cast(v, t), {3}, epsilon, true).value, c.Cast(gain, t)), v.dtype);
  };
  if (c.Has(14)) h.q = normal(h.q, c.T(14));
  if (c.Has(15)) h.k = normal(h.k, c.T(15));
  const Cache k = CacheOf(c, h.q, past_k);
  const Value at = c.Add(k.before, c.Reshape(Arange(c, k.rows, kI64), {1, k.rows}));
  const bool interleaved = c.Int("rotary_interleaved", 0) != 0;
  if (c.Int("do_rotary", 0) != 0) {
    const Turn turn = TurnAt(c, c.T(7), c.T(8), c.Has(9) ? c.T(9) : at);
    h.q = Rotate(c, h.q, turn, interleaved);
    h.k = Rotate(c, h.k, turn, interleaved);
  }
  h.k = Append(c, k, past_k, h.k);
  h.v = Append(c, k, past_v, h.v);
  const DataType t = ComputeType(h.q.dtype);
  Weighing how;
  how.scale = c.Float("scale", 0);
  if (how.scale == 0) how.scale = 1.0 / std::sqrt(static_cast<double>(c.Dim(h.q, 3)));
  how.softcap = c.Float("softcap", 0);
  how.bias = Unseen(c, k, at, t);
  if (bias) {
    if (!c.AssumeEqual(c.Length(bias, 3), k.keys)) c.Unsupported("`attention_bias` shorter than the cache");
    how.bias = c.Add(how.bias, c.Cast(bias, t));
  }
  const bool smooth = c.Int("smooth_softmax", 0) > 0;
  if (c.Has(11)) {
    how.sink = c.T(11);
  } else if (smooth) {
    how.sink = c.Full(t, 0, {heads});
  }
  const int64_t shown = c.Int("qk_output", 0);
  Attended a = Attend(c, h, how);
  return {a.output, h.k, h.v, shown == 2 ? a.weights : a.scores};
}

}  // namespace

void AddMsftGroupQuery(OpTable* table) { table->push_back({kMsft, "GroupQueryAttention", GroupQueryAttention}); }

}  // namespace baton::onnx

// SPDX-License-Identifier: Apache-2.0
// Operators that pick elements by index, or find them.
#include <algorithm>

#include "common.h"
#include "frontend/onnx/reader/check.h"

namespace baton::onnx {
namespace {

/// Lengths of `count` axes of x as a list; open ones are known when it runs.
Value LengthsAlong(Ctx& c, const Value& x, int64_t first, int64_t count) {
  const Dims& all = c.Lengths(x);
  const Dims part(all.begin() + first, all.begin() + first + count);
  if (std::none_of(part.begin(), part.end(), Ctx::IsSymbol)) return c.Int64s(part);
  return c.Slice(c.ShapeOf(x), 0, first, first + count);
}

/// Makes negative indices along an axis of x, which count from the end, non-negative.
Value FromStart(Ctx& c, const Value& index, const Value& x, int axis) {
  if (index.dtype.is_uint()) return index;
  if (index.host) {
    bool negative = false;
    for (int64_t i = 0; i < index.host->size(); ++i) negative = negative || index.host->IntAt(i) < 0;
    if (!negative) return index;
  }
  Value zero = c.Scalar(index.dtype, 0), length = c.Cast(c.Reshape(LengthsAlong(c, x, axis, 1), {}), index.dtype);
  return c.Where(c.Call("less", {index, zero}), c.Add(index, length), index);
}

/// Indices into `count` axes of x from `axis` on, which are checked when the model runs: one axis, or those of index
/// tuples.
Value CheckedLater(Ctx& c, const Value& index, const Value& x, int64_t axis, int64_t count = 1) {
  Dims extents(x.dims.begin() + axis, x.dims.begin() + axis + count);
  const bool open = std::any_of(extents.begin(), extents.end(), [](int64_t n) { return n < 0; });
  if ((index.host && !open) || extents.empty()) return index;
  Values operands{index};
  if (open) operands.push_back(c.Slice(c.ShapeOf(x), 0, axis, axis + count));
  for (int64_t& n : extents) n = std::max<int64_t>(n, -1);
  const String place(NodeLabel(c.node()));
  return c.Add(index, c.Call("contrib_check_index", operands,
                             {{"extents", IntsAny(extents)}, {"axis", axis}, {"place", place}}));
}

/// Refuses indices that are known and lie outside an axis of n elements; n < 0: it is not known. Of index tuples every
/// `stride`-th number from `first` on is one.
void CheckKnown(Ctx& c, const Value& index, int64_t n, int64_t axis, int64_t first = 0, int64_t stride = 1) {
  if (!index.host || n < 0) return;
  for (int64_t i = first; i < index.host->size(); i += stride) {
    const int64_t at = index.host->IntAt(i);
    if (at < -n || at >= n) {
      c.Fail("index " + std::to_string(at) + " lies outside axis " + std::to_string(axis) + " of " + std::to_string(n) +
             " elements");
    }
  }
}

Values Gather(Ctx& c) {
  Value x = c.T(0), at = c.T(1);
  int axis = c.Axis(c.Int("axis", 0), c.Rank(x));
  CheckKnown(c, at, x.dims[static_cast<size_t>(axis)], axis);
  return {Take(c, x, CheckedLater(c, at, x, axis), axis)};
}

Values GatherElements(Ctx& c) {
  Value x = c.T(0);
  int axis = c.Axis(c.Int("axis", 0), c.Rank(x));
  CheckKnown(c, c.T(1), x.dims[static_cast<size_t>(axis)], axis);
  const Value at = CheckedLater(c, c.T(1), x, axis);
  return {c.Call("gather", {x, at}, {{"axis", axis}})};
}

/// Index tuples with non-negative indices.
Value IndexTuples(Ctx& c, const Value& given, const Value& x, size_t first_axis) {
  Value indices = given;
  const Dims& data = c.Lengths(x);
  if (c.Rank(indices) == 0) c.Fail("`indices` must have an axis");
  int64_t length = c.Dim(indices, -1);
  if (static_cast<size_t>(length) + first_axis > data.size()) {
    c.Fail("the tuples in `indices` have " + std::to_string(length) + " numbers, more than the data has axes");
  }
  Dims sizes(data.begin() + static_cast<std::ptrdiff_t>(first_axis),
             data.begin() + static_cast<std::ptrdiff_t>(first_axis) + length);
  for (int64_t k = 0; k < length; ++k) {
    CheckKnown(c, indices, sizes[static_cast<size_t>(k)], static_cast<int64_t>(first_axis) + k, k, length);
  }
  indices = CheckedLater(c, indices, x, static_cast<int64_t>(first_axis), length);
  Value n = c.Cast(LengthsAlong(c, x, static_cast<int64_t>(first_axis), length), indices.dtype);
  return c.Where(c.Call("less", {indices, c.Scalar(indices.dtype, 0)}), c.Add(indices, n), indices);
}

Values GatherND(Ctx& c) {
  Value x = c.T(0), indices = c.T(1);
  int64_t batch = c.Int("batch_dims", 0);
  if (batch < 0 || batch >= c.Rank(x) || batch >= c.Rank(indices)) c.Fail("`batch_dims` is out of range");
  Value at = IndexTuples(c, indices, x, static_cast<size_t>(batch));
  return {c.Call("gather_nd", {x, at}, {{"batch_dims", batch}, {"index_last", true}})};
}

std::string ReductionOf(Ctx& c) {
  std::string reduction = c.Str("reduction", "none");
  for (const char* known : {"none", "add", "mul", "min", "max"}) {
    if (reduction == known) return reduction == "none" ? "update" : reduction;
  }
  c.Fail("`reduction` is `" + reduction + "`");
}

Values ScatterElements(Ctx& c) {
  Value x = c.T(0);
  int axis = c.Axis(c.Int("axis", 0), c.Rank(x));
  std::string reduction = ReductionOf(c);
  CheckKnown(c, c.T(1), c.Length(x, axis), axis);
  Value indices = FromStart(c, CheckedLater(c, c.T(1), x, axis), x, axis);
  return {c.Call("scatter_elements", {x, indices, c.T(2)}, {{"axis", axis}, {"reduction", reduction}})};
}

Values ScatterND(Ctx& c) {
  Value x = c.T(0);
  std::string reduction = ReductionOf(c);
  return {c.Call("scatter_nd", {x, IndexTuples(c, c.T(1), x, 0), c.T(2)}, {{"mode", reduction}, {"index_last", true}})};
}

Values TensorScatter(Ctx& c) {
  Value cache = c.T(0), update = c.T(1);
  int rank = c.Rank(cache);
  int axis = c.Axis(c.Int("axis", -2), rank);
  std::string mode = c.Str("mode", "linear");
  if (mode != "linear" && mode != "circular") c.Fail("`mode` is `" + mode + "`");
  const Dims shape = c.Fixed(update);
  if (static_cast<int>(shape.size()) != rank) c.Fail("`update` has another rank than the cache");
  int64_t n = c.Dim(cache, axis);
  DataType index = DataType::Int(64);
  Dims line(static_cast<size_t>(rank), 1);
  line[static_cast<size_t>(axis)] = shape[static_cast<size_t>(axis)];
  Value at = c.Reshape(Arange(c, shape[static_cast<size_t>(axis)], index), line);
  if (c.Has(2)) {
    Dims batch(static_cast<size_t>(rank), 1);
    batch[0] = shape[0];
    at = c.Add(at, c.Reshape(c.Cast(c.T(2), index), batch));
  }
  if (mode == "circular") {
    at = c.Call("floor_mod", {at, c.Scalar(index, static_cast<double>(n))});
  } else {
    at = CheckedLater(c, at, cache, axis);
  }
  at = c.BroadcastTo(at, shape);
  return {c.Call("scatter_elements", {cache, at, update}, {{"axis", axis}, {"reduction", "update"}})};
}

Values OneHot(Ctx& c) {
  Value indices = c.T(0), values = c.T(2);
  Dims given = c.KnownInts(c.Cast(c.T(1), DataType::Int(64)));
  if (given.size() != 1) c.Fail("`depth` must be one number");
  int64_t depth = given[0];
  if (depth < 1) c.Fail("`depth` is " + std::to_string(depth));
  int rank = c.Rank(indices);
  int axis = c.Axis(c.Int("axis", -1), rank + 1);
  DataType index = DataType::Int(64);
  Value at = c.Cast(indices, index);
  Value limit = c.Scalar(index, static_cast<double>(depth));
  at = c.Where(c.Call("less", {at, c.Scalar(index, 0)}), c.Add(at, limit), at);
  Dims line(static_cast<size_t>(rank) + 1, 1);
  line[static_cast<size_t>(axis)] = depth;
  Value hit = c.Call("equal", {c.Unsqueeze(at, {axis}), c.Reshape(Arange(c, depth, index), line)});
  return {c.Where(hit, c.Reshape(c.Slice(values, 0, 1, 2), {}), c.Reshape(c.Slice(values, 0, 0, 1), {}))};
}

Values OneHotTypes(Ctx& c) {
  Value value = c.Unknown(c.T(2).dtype, {});
  return {c.Call("dyn.one_hot", {c.Cast(RankedOperand(c, 0), DataType::Int(64)), value, value, SomeInts(c, 1)})};
}

Values NonZero(Ctx& c) {
  Value x = c.T(0);
  if (c.Rank(x) == 0) c.Unsupported("a scalar input");
  return {c.Call("nonzero", {x})};
}

Values Compress(Ctx& c) {
  Value x = c.T(0);
  if (!c.HasAttr("axis")) return {c.Call("compress", {x, c.T(1)})};
  int axis = c.Axis(c.Int("axis"), c.Rank(x));
  return {c.Call("compress", {x, c.T(1)}, {{"axis", axis}})};
}

Values ReverseSequence(Ctx& c) {
  Value x = c.T(0);
  int rank = c.Rank(x);
  int batch = c.Axis(c.Int("batch_axis", 1), rank), time = c.Axis(c.Int("time_axis", 0), rank);
  return {c.Call("reverse_sequence", {x, c.T(1)}, {{"seq_axis", time}, {"batch_axis", batch}})};
}

Values Unique(Ctx& c) {
  Value x = c.T(0);
  bool sorted = c.Int("sorted", 1) != 0;
  Value all;
  if (c.HasAttr("axis")) {
    int axis = c.Axis(c.Int("axis"), c.Rank(x));
    all = c.Call("unique", {x}, {{"is_sorted", sorted}, {"axis", axis}});
  } else {
    all = c.Call("unique", {x}, {{"is_sorted", sorted}});
  }
  return {c.Item(all, 0), c.Item(all, 1), c.Item(all, 2), c.Item(all, 3)};
}

}  // namespace

Value Repeated(Ctx& c, const Value& v, const Dims& times) {
  Dims apart, wide, whole;
  for (size_t i = 0; i < times.size(); ++i) {
    const int64_t n = c.Length(v, static_cast<int>(i));
    apart.insert(apart.end(), {1, n});
    wide.insert(wide.end(), {times[i], n});
    whole.push_back(c.Times(times[i], n));
  }
  return c.Reshape(c.BroadcastTo(c.Reshape(v, apart), wide), whole);
}

Value Take(Ctx& c, const Value& v, const Value& indices, int axis) {
  return c.Call("take", {v, indices}, {{"axis", axis}, {"mode", "negative"}});
}

void AddIndexing(OpTable* table) {
  for (const OpRow& row : {
           OpRow{"", "Gather", Gather},
           {"", "GatherElements", GatherElements},
           {"", "GatherND", GatherND},
           {"", "Scatter", ScatterElements, TypeOfFirst},
           {"", "ScatterElements", ScatterElements, TypeOfFirst},
           {"", "ScatterND", ScatterND, TypeOfFirst},
           {"", "TensorScatter", TensorScatter, TypeOfFirst},
           {"", "OneHot", OneHot, OneHotTypes},
           {"", "NonZero", NonZero},
           {"", "Compress", Compress},
           {"", "ReverseSequence", ReverseSequence},
           {"", "Unique", Unique},
       }) {
    table->push_back(row);
  }
}

}  // namespace baton::onnx

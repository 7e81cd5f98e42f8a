// SPDX-License-Identifier: Apache-2.0
// Operators that move, cut, join and make tensors.
#include <algorithm>
#include <cmath>

#include "common.h"

namespace baton::onnx {
namespace {

Dims AxesOf(Ctx& c, int input_since, size_t operand, bool* given) {
  if (c.since() < input_since) {
    *given = c.HasAttr("axes");
    return c.Ints("axes");
  }
  *given = c.Has(operand);
  return *given ? c.KnownInts(c.T(operand)) : Dims();
}

using MaybeLengths = std::vector<std::optional<int64_t>>;

/// The shape with -1 for a length that is not known: it can be inferred, if it is the only one and no other is -1.
Dims WithOneInferred(Ctx& c, const Value& x, const MaybeLengths& given, bool allowzero) {
  auto count = [&](std::optional<int64_t> n) { return std::count(given.begin(), given.end(), n); };
  if (count(std::nullopt) > 1 || count(-1) > 0 || (count(0) > 0 && allowzero)) throw NeedsValue{"the shape"};
  Dims out;
  for (const std::optional<int64_t>& n : given) {
    if (n && Ctx::IsSymbol(*n)) throw NeedsValue{"the shape"};
    out.push_back(!n ? -1 : *n == 0 ? c.Dim(x, static_cast<int>(out.size())) : *n);
    if (out.back() == 0) throw NeedsValue{"the shape"};
  }
  return out;
}

/// Reshape to lengths of which some are symbols.
Values ReshapeToSymbols(Ctx& c, const Value& x, Dims want, bool allowzero) {
  int64_t infer = -1, rest = 1;
  for (size_t i = 0; i < want.size(); ++i) {
    if (want[i] == 0 && !allowzero) {
      if (static_cast<int>(i) >= c.Rank(x))
        c.Fail("`shape` copies axis " + std::to_string(i) + ", which the data does not have");
      want[i] = c.Length(x, static_cast<int>(i));
    }
    if (want[i] == -1) {
      if (infer >= 0) c.Fail("`shape` has two lengths of -1");
      infer = static_cast<int64_t>(i);
    } else if (want[i] < 0 && !Ctx::IsSymbol(want[i])) {
      c.Fail("`shape` has the length " + std::to_string(want[i]));
    } else {
      rest = c.Times(rest, want[i]);
    }
  }
  if (infer >= 0 && rest != 0 && Ctx::Sized(x)) {
    const int64_t all = c.Volume(x.dims), length = c.Over(all, rest);
    if (!c.AssumeEqual(c.Times(length, rest), all)) c.Fail("`shape` cannot hold the elements of the data");
    want[static_cast<size_t>(infer)] = length;
  }
  return {c.Reshape(x, want)};
}

Values Reshape(Ctx& c) {
  c.Ignore("consumed_inputs");
  Value x = c.T(0);
  Dims want;
  bool allowzero = c.Int("allowzero", 0) != 0;
  if (c.since() < 5) {
    want = c.Ints("shape");
  } else {
    const MaybeLengths given = c.PartlyKnownLengths(c.T(1));
    if (std::count(given.begin(), given.end(), std::nullopt) > 0) {
      want = WithOneInferred(c, x, given, allowzero);
      if (!x.fixed()) return {c.Reshape(x, want)};
    } else {
      for (const std::optional<int64_t>& n : given) want.push_back(*n);
    }
  }
  if (static_cast<int64_t>(want.size()) > kMaxRank) c.Fail("`shape` has " + std::to_string(want.size()) + " lengths");
  if (std::any_of(want.begin(), want.end(), Ctx::IsSymbol)) return ReshapeToSymbols(c, x, want, allowzero);
  int64_t infer = -1;
  for (size_t i = 0; i < want.size(); ++i) {
    if (want[i] == 0 && !allowzero) {
      if (static_cast<int>(i) >= c.Rank(x))
        c.Fail("`shape` copies axis " + std::to_string(i) + ", which the data does not have");
      if (x.dims[i] < 0) {
        // In Relay, 0 copies too, if all lengths before it are copied as well or it is at the same axis.
        Dims codes = want;
        for (size_t k = 0; k < codes.size(); ++k) {
          if (codes[k] == 0 && x.dims[k] > 0) codes[k] = x.dims[k];
        }
        if (std::count(codes.begin(), codes.end(), -1) > 1) c.Fail("`shape` has two lengths of -1");
        return {c.Reshape(x, codes)};
      }
      want[i] = x.dims[i];
    }
    if (want[i] < -1) c.Fail("`shape` has the length " + std::to_string(want[i]));
    if (want[i] == -1) {
      if (infer >= 0) c.Fail("`shape` has two lengths of -1");
      infer = static_cast<int64_t>(i);
    }
  }
  if (infer >= 0) {
    if (!x.fixed() && std::count(want.begin(), want.end(), 0) == 0) return {c.Reshape(x, want)};
    int64_t all = Product(c.Fixed(x));
    Checked rest = 1;
    for (int64_t d : want) {
      if (d >= 0) rest *= d;
    }
    if (rest == 0 ? all != 0 : all % rest != 0) {
      c.Fail("`shape` cannot hold " + std::to_string(all) + " elements");
    }
    want[static_cast<size_t>(infer)] = rest == 0 ? 0 : static_cast<int64_t>(all / rest);
  }
  if (x.fixed() && Product(x.dims) != Product(want)) {
    c.Fail("`shape` holds " + std::to_string(Product(want)) + " elements, the data " + std::to_string(Product(x.dims)));
  }
  return {c.Reshape(x, want)};
}

Values Flatten(Ctx& c) {
  Value x = c.T(0);
  int rank = c.Rank(x);
  int64_t axis = c.Int("axis", 1);
  size_t at = static_cast<size_t>(axis == rank ? rank : c.Axis(axis, rank));
  auto known = [&](size_t begin, size_t end) {
    return std::all_of(x.dims.begin() + static_cast<std::ptrdiff_t>(begin),
                       x.dims.begin() + static_cast<std::ptrdiff_t>(end), [](int64_t d) { return d > 0; });
  };
  if (!x.fixed() && known(at, x.dims.size())) return {c.Reshape(x, {-1, Product(x.dims, at, x.dims.size())})};
  if (!x.fixed() && known(0, at)) return {c.Reshape(x, {Product(x.dims, 0, at), -1})};
  const Dims& shape = c.Lengths(x);
  return {c.Reshape(x, {c.Volume(shape, 0, at), c.Volume(shape, at, shape.size())})};
}

Values Transpose(Ctx& c) {
  Value x = c.T(0);
  int rank = c.Rank(x);
  Dims perm = c.Ints("perm");
  if (perm.empty()) {
    perm = Iota(rank);
    std::reverse(perm.begin(), perm.end());
  }
  if (static_cast<int>(perm.size()) != rank)
    c.Fail("`perm` has " + std::to_string(perm.size()) + " axes, the data " + std::to_string(rank));
  std::vector<bool> seen(perm.size());
  for (int64_t& p : perm) {
    p = c.Axis(p, rank);
    if (seen[static_cast<size_t>(p)]) c.Fail("`perm` names axis " + std::to_string(p) + " twice");
    seen[static_cast<size_t>(p)] = true;
  }
  return {c.Transpose(x, perm)};
}

Values Squeeze(Ctx& c) {
  Value x = c.T(0);
  bool given = false;
  Dims axes = AxesOf(c, 13, 1, &given);
  int rank = c.Rank(x);
  if (!given) axes = OnesOf(c, &x);
  for (int64_t& a : axes) {
    a = c.Axis(a, rank);
    int64_t n = x.dims[static_cast<size_t>(a)];
    if (n > 1 || n == 0) c.Fail("axis " + std::to_string(a) + " to squeeze has length " + std::to_string(n));
  }
  return {c.Squeeze(x, axes)};
}

Values Unsqueeze(Ctx& c) {
  Value x = c.T(0);
  bool given = false;
  Dims axes = AxesOf(c, 13, 1, &given);
  if (static_cast<int64_t>(axes.size()) > kMaxRank) c.Fail("`axes` names " + std::to_string(axes.size()) + " axes");
  int rank = c.Rank(x) + static_cast<int>(axes.size());
  for (int64_t& a : axes) a = c.Axis(a, rank);
  std::sort(axes.begin(), axes.end());
  if (std::adjacent_find(axes.begin(), axes.end()) != axes.end()) c.Fail("`axes` names an axis twice");
  return {c.Unsqueeze(x, axes)};
}

Values ConcatOp(Ctx& c) {
  Values parts;
  for (size_t i = 0; i < c.num_inputs(); ++i) parts.push_back(c.T(i));
  if (parts.empty()) c.Fail("there is nothing to join");
  int64_t axis = c.since() < 4 ? c.Int("axis", 1) : c.Int("axis");
  return {c.Concat(parts, c.Axis(axis, c.Rank(parts[0])))};
}

Values SplitOp(Ctx& c) {
  Value x = c.T(0);
  int axis = c.Axis(c.Int("axis", 0), c.Rank(x));
  Dims sizes;
  int64_t count = static_cast<int64_t>(c.num_outputs());
  if (c.since() < 13) {
    sizes = c.Ints("split");
    if (sizes.empty() && c.since() < 2 && c.Has(1)) sizes = c.KnownInts(c.T(1));
  } else if (c.Has(1)) {
    sizes = c.KnownInts(c.T(1));
  }
  int64_t parts = c.Int("num_outputs", count);
  int64_t n = c.Length(x, axis);
  if (sizes.empty()) {
    if (parts < 1 || parts != count) {
      c.Fail("it has " + std::to_string(count) + " outputs and `num_outputs` " + std::to_string(parts));
    }
    if (Ctx::IsSymbol(n)) throw NeedsValue{"the length of an axis"};
    // The last part is smaller where the parts cannot be equal.
    int64_t each = (n + parts - 1) / parts;
    for (int64_t i = 0; i < parts; ++i) sizes.push_back(std::clamp<int64_t>(n - i * each, 0, each));
  }
  if (static_cast<int64_t>(sizes.size()) != count) {
    c.Fail("it has " + std::to_string(count) + " outputs for " + std::to_string(sizes.size()) + " parts");
  }
  int64_t begin = 0;
  Values out;
  for (int64_t size : sizes) {
    if (size < 0 || (n >= 0 && size > n - begin))
      c.Fail("`split` does not add up to the axis' length " + std::to_string(n));
    out.push_back(c.Slice(x, axis, begin, begin + size));
    begin += size;
  }
  if (!c.AssumeEqual(begin, n))
    c.Fail("`split` adds up to " + std::to_string(begin) + ", the axis has length " + std::to_string(n));
  return out;
}

Values SliceOp(Ctx& c) {
  Value x = c.T(0);
  int rank = c.Rank(x);
  Dims starts, ends, axes, steps;
  if (c.since() < 10) {
    starts = c.Ints("starts");
    ends = c.Ints("ends");
    axes = c.Ints("axes");
  } else {
    starts = c.KnownLengths(c.T(1));
    ends = c.KnownLengths(c.T(2));
    if (c.Has(3)) axes = c.KnownInts(c.T(3));
    if (c.Has(4)) steps = c.KnownInts(c.T(4));
  }
  if (axes.empty()) axes = Iota(static_cast<int64_t>(starts.size()));
  if (steps.empty()) steps.assign(starts.size(), 1);
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size()) {
    c.Fail("`starts`, `ends`, `axes` and `steps` differ in length");
  }
  Dims begin(static_cast<size_t>(rank), 0), end, step(static_cast<size_t>(rank), 1);
  // A length that is unknown and not cut stays as it is.
  for (int i = 0; i < rank; ++i)
    end.push_back(x.dims[static_cast<size_t>(i)] < 0 ? INT64_MAX : x.dims[static_cast<size_t>(i)]);
  bool cut = false;
  for (size_t k = 0; k < axes.size(); ++k) {
    size_t a = static_cast<size_t>(c.Axis(axes[k], rank));
    if (steps[k] == 0) c.Fail("`steps` holds 0");
    // Steps are clamped beyond any axis, so that they can be negated and added to.
    steps[k] = std::clamp<int64_t>(steps[k], -(int64_t{1} << 56), int64_t{1} << 56);
    bool whole = steps[k] == 1 && starts[k] == 0 && (ends[k] >= INT32_MAX || (ends[k] == x.dims[a] && ends[k] != -1));
    if (whole) continue;
    if (Ctx::IsSymbol(starts[k]) || Ctx::IsSymbol(ends[k]) || Ctx::IsSymbol(x.dims[a])) {
      // The relation knows what these leave of the axis.
      begin[a] = starts[k];
      end[a] = ends[k] >= INT32_MAX                               ? INT64_MAX
               : ends[k] <= -INT32_MAX && !Ctx::IsSymbol(ends[k]) ? INT64_MIN
                                                                  : ends[k];
      step[a] = steps[k];
      cut = true;
      continue;
    }
    if (x.dims[a] < 0 && steps[k] > 0 && starts[k] >= 0 && ends[k] > starts[k]) {
      begin[a] = starts[k];
      end[a] = ends[k];
      step[a] = steps[k];
      cut = true;
      continue;
    }
    int64_t n = c.Dim(x, static_cast<int>(a));
    int64_t b = starts[k] < 0 ? starts[k] + n : starts[k];
    int64_t e = ends[k] < 0 ? (ends[k] < -n ? -n - 1 : ends[k]) + n : ends[k];
    if (steps[k] > 0) {
      b = std::clamp<int64_t>(b, 0, n);
      e = std::clamp<int64_t>(e, b, n);
    } else {
      b = std::clamp<int64_t>(b, -1, n - 1);
      e = std::clamp<int64_t>(e, -1, b);
    }
    begin[a] = b;
    end[a] = e;
    step[a] = steps[k];
    cut = cut || b != 0 || e != n || steps[k] != 1;
  }
  if (!cut) return {x};
  // An axis cut to nothing, or walked down to its first element, cannot be expressed by a non-negative begin and end.
  bool empty = false;
  for (size_t a = 0; a < begin.size(); ++a) empty = empty || begin[a] == end[a];
  if (empty) {
    Dims shape = c.Lengths(x);
    for (size_t a = 0; a < begin.size(); ++a) {
      if (Ctx::IsSymbol(shape[a])) continue;
      int64_t span = step[a] > 0 ? end[a] - begin[a] : begin[a] - end[a];
      int64_t by = step[a] > 0 ? step[a] : -step[a];
      shape[a] = (span + by - 1) / by;
    }
    return {c.Full(x.dtype, 0, shape)};
  }
  for (size_t a = 0; a < begin.size(); ++a) {
    if (step[a] < 0 && end[a] == -1 && x.dims[a] >= 0) end[a] = -x.dims[a] - 1;
  }
  return {
      c.Call("strided_slice", {x},
             {{"begin", IntsAny(begin)}, {"end", IntsAny(end)}, {"strides", IntsAny(step)}, {"slice_mode", "end"}})};
}

Values ExpandOp(Ctx& c) {
  Value x = c.T(0);
  Dims want = c.KnownLengths(c.T(1)), shape;
  for (int64_t d : want) {
    if (d < 0 && !Ctx::IsSymbol(d)) c.Fail("`shape` has the length " + std::to_string(d));
  }
  if (!c.Broadcast(c.Lengths(x), want, &shape)) c.Fail("the data cannot be broadcast to `shape`");
  return {c.BroadcastTo(x, shape)};
}

Values Tile(Ctx& c) {
  Value x = c.T(0);
  Dims reps;
  if (c.since() < 6) {
    Dims tiles = c.KnownInts(c.T(1)), axis = c.KnownInts(c.T(2));
    if (tiles.size() != 1 || axis.size() != 1) c.Fail("`tiles` and `axis` must be one number each");
    reps.assign(static_cast<size_t>(c.Rank(x)), 1);
    reps[static_cast<size_t>(c.Axis(axis[0], c.Rank(x)))] = tiles[0];
  } else {
    reps = c.KnownLengths(c.T(1));
  }
  if (static_cast<int>(reps.size()) != c.Rank(x)) c.Fail("`repeats` needs a number for each axis");
  Dims shape = c.Lengths(x);
  bool none = false, one = true;
  for (size_t i = 0; i < reps.size(); ++i) {
    if (Ctx::IsSymbol(reps[i]) ? !c.AssumeEqual(c.Most(reps[i], 0), reps[i]) : reps[i] < 0)
      c.Fail("`repeats` holds a negative number");
    shape[i] = c.Times(shape[i], reps[i]);
    none = none || shape[i] == 0;
    one = one && reps[i] == 1;
  }
  if (one) return {x};
  if (none) return {c.Full(x.dtype, 0, shape)};
  if (std::any_of(reps.begin(), reps.end(), Ctx::IsSymbol)) return {Repeated(c, x, reps)};
  return {c.Call("tile", {x}, {{"reps", IntsAny(reps)}})};
}

Values Pad(Ctx& c) {
  Value x = c.T(0);
  int rank = c.Rank(x);
  std::string mode = c.Str("mode", "constant");
  Dims pads;
  Value fill = c.Scalar(x.dtype, 0);
  Dims axes = Iota(rank);
  if (c.since() < 11) {
    pads = c.Ints(c.since() < 2 ? "paddings" : "pads");
    fill = c.Scalar(x.dtype, c.Float("value", 0));
  } else {
    pads = c.KnownInts(c.T(1));
    if (c.Has(2)) fill = c.T(2);
    if (c.Has(3)) axes = c.KnownInts(c.T(3));
  }
  if (pads.size() != 2 * axes.size()) c.Fail("`pads` needs two numbers for each axis");
  Dims before(static_cast<size_t>(rank), 0), after(static_cast<size_t>(rank), 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    size_t a = static_cast<size_t>(c.Axis(axes[i], rank));
    before[a] = pads[i];
    after[a] = pads[i + axes.size()];
  }
  // Negative pads crop.
  for (int i = 0; i < rank; ++i) {
    size_t a = static_cast<size_t>(i);
    if (before[a] >= 0 && after[a] >= 0) continue;
    int64_t n = c.Dim(x, i);
    int64_t begin = std::max<int64_t>(0, -Checked(before[a])), end = n + std::min<int64_t>(0, after[a]);
    if (begin > end) c.Fail("`pads` cuts more than there is");
    x = c.Slice(x, i, begin, end);
    before[a] = std::max<int64_t>(0, before[a]);
    after[a] = std::max<int64_t>(0, after[a]);
  }
  if (mode == "constant") {
    bool any = false;
    Array<Array<int64_t>> width;
    std::vector<Array<int64_t>> rows;
    for (size_t a = 0; a < before.size(); ++a) {
      any = any || before[a] != 0 || after[a] != 0;
      rows.push_back(Array<int64_t>({before[a], after[a]}));
    }
    if (!any) return {x};
    Value value = c.Cast(fill.rank() == 0 ? fill : c.Reshape(fill, {}), x.dtype);
    return {c.Call("nn.pad", {x, value}, {{"pad_width", Array<Array<int64_t>>(rows)}, {"pad_mode", "constant"}})};
  }
  if (mode != "edge" && mode != "reflect" && mode != "wrap") c.Fail("`mode` is `" + mode + "`");
  // Each new element is a copy of an old one: gather by an index for each axis, or compute it where lengths are open.
  for (int i = 0; i < rank; ++i) {
    size_t a = static_cast<size_t>(i);
    if (before[a] == 0 && after[a] == 0) continue;
    if (const int64_t open = c.Length(x, i); Ctx::IsSymbol(open)) {
      if (!c.AssumeEqual(c.Most(open, 1), open)) c.Fail("an empty axis cannot be padded by its elements");
      std::vector<Array<int64_t>> rows(before.size(), Array<int64_t>({0, 0}));
      rows[a] = Array<int64_t>({before[a], after[a]});
      x = c.Call("nn.pad", {x, c.Scalar(x.dtype, 0)},
                 {{"pad_width", Array<Array<int64_t>>(rows)}, {"pad_mode", String(mode)}});
      continue;
    }
    int64_t n = c.Dim(x, i);
    if (n == 0) c.Fail("an empty axis cannot be padded by its elements");
    // The program holds an index for each element.
    constexpr int64_t kMaxElements = int64_t{1} << 24;
    if (n > kMaxElements || before[a] > kMaxElements || after[a] > kMaxElements || before[a] < -n || after[a] < -n) {
      c.Unsupported("an axis of " + std::to_string(n) + " elements padded by " + std::to_string(before[a]) + " and " +
                    std::to_string(after[a]));
    }
    c.Reserve(n + before[a] + after[a], 16);
    Dims index;
    for (int64_t k = -before[a]; k < n + after[a]; ++k) {
      int64_t at = k;
      if (mode == "edge") at = std::clamp<int64_t>(k, 0, n - 1);
      if (mode == "wrap") at = ((k % n) + n) % n;
      if (mode == "reflect") {
        int64_t period = n == 1 ? 1 : 2 * (n - 1);
        at = ((k % period) + period) % period;
        if (at >= n) at = period - at;
      }
      index.push_back(at);
    }
    x = Take(c, x, c.Int64s(index), i);
  }
  return {x};
}

Values ShapeOp(Ctx& c) {
  Value x = c.T(0);
  int64_t rank = c.Rank(x);
  int64_t start = c.Int("start", 0), end = c.Int("end", rank);
  auto clamp = [&](int64_t v) { return std::clamp<int64_t>(v < 0 ? v + rank : v, 0, rank); };
  start = clamp(start);
  end = std::max(start, clamp(end));
  Value shape = c.ShapeOf(x);
  if (start == 0 && end == rank) return {shape};
  // A part of the shape may be known where the whole is not.
  Dims part(x.dims.begin() + start, x.dims.begin() + end);
  if (std::all_of(part.begin(), part.end(), [](int64_t d) { return d >= 0; })) return {c.Int64s(part)};
  return {c.Slice(shape, 0, start, end)};
}

Values Size(Ctx& c) {
  Value x = c.T(0);
  if (x.fixed()) return {c.Int64(Product(x.dims))};
  c.Rank(x);
  return {Reduce(c, "prod", c.ShapeOf(x), {0}, false)};
}

Values ConstantOp(Ctx& c) {
  for (const char* name : {"value", "sparse_value", "value_float", "value_floats", "value_int", "value_ints",
                           "value_string", "value_strings"}) {
    if (!c.HasAttr(name)) continue;
    std::string which = name;
    if (which == "value") return {c.FromTensor(*c.TensorAttr(name))};
    if (which == "value_float") return {c.Scalar(DataType::Float(32), c.Float(name, 0))};
    if (which == "value_int") return {c.Int64(c.Int(name))};
    if (which == "value_ints") return {c.Int64s(c.Ints(name))};
    if (which == "value_floats") {
      std::vector<float> v = c.Floats(name);
      return {c.Constant(HostFromFloats(DataType::Float(32), {static_cast<int64_t>(v.size())}, {v.begin(), v.end()}))};
    }
    if (which == "value_string" || which == "value_strings") {
      auto host = std::make_shared<Host>();
      host->is_string = true;
      if (which == "value_string") {
        host->strings = {c.Str(name, "")};
      } else {
        host->strings = c.Strs(name);
        host->dims = {static_cast<int64_t>(host->strings.size())};
      }
      return {c.Constant(host)};
    }
    return {c.Constant(DenseOf(c, *c.SparseAttr(name)))};
  }
  c.Fail("it has no value");
}

Values ConstantOfShape(Ctx& c) {
  Dims shape = c.KnownLengths(c.T(0));
  for (int64_t d : shape) {
    if (d < 0 && !Ctx::IsSymbol(d)) c.Fail("the shape has a negative length");
  }
  Value fill = c.Scalar(DataType::Float(32), 0);
  if (const Tensor* t = c.TensorAttr("value")) {
    fill = c.FromTensor(*t);
    if (!fill.host || fill.host->size() != 1) c.Fail("`value` must have one element");
    fill = c.Reshape(fill, {});
  }
  return {c.BroadcastTo(fill, shape)};
}

/// A range of integers whose length is not a literal.
Values OpenRange(Ctx& c, const Value& start, const Value& limit, const Value& delta) {
  const Dims b = c.KnownLengths(start), e = c.KnownLengths(limit), d = c.KnownLengths(delta);
  if (b.size() != 1 || e.size() != 1 || d.size() != 1) c.Fail("an operand that should be one number is not");
  if (Ctx::IsSymbol(d[0])) throw NeedsValue{"the step of a range"};
  if (d[0] == 0) c.Fail("`delta` is 0");
  const int64_t span = d[0] > 0 ? c.Minus(e[0], b[0]) : c.Minus(b[0], e[0]), by = d[0] > 0 ? d[0] : -d[0];
  const int64_t n = c.Most(c.Over(c.Plus(span, by - 1), by), 0);
  const DataType t = start.dtype;
  Value out = c.Call("arange", {c.Scalar(t, 0), c.Scalar(t, 0), c.Scalar(t, static_cast<double>(d[0]))},
                     {{"dtype", t}, {"length", n}});
  return {b[0] == 0 ? out : c.Add(out, c.Reshape(start, {}))};
}

Values Range(Ctx& c) {
  Value start = c.T(0), limit = c.T(1), delta = c.T(2);
  if (!(start.host && limit.host && delta.host) && IsInt(start.dtype)) return OpenRange(c, start, limit, delta);
  double b = c.KnownScalar(start), e = c.KnownScalar(limit), d = c.KnownScalar(delta);
  if (d == 0) c.Fail("`delta` is 0");
  double count = std::max(0.0, std::ceil((e - b) / d));
  if (!(count < 1e9)) c.Fail("the range has " + std::to_string(count) + " elements");
  int64_t n = static_cast<int64_t>(count);
  DataType t = start.dtype;
  if (n <= kMaxFoldedElements) {
    if (IsFloat(t)) {
      std::vector<double> v;
      for (int64_t i = 0; i < n; ++i) v.push_back(b + static_cast<double>(i) * d);
      return {c.Constant(HostFromFloats(t, {n}, v))};
    }
    Dims v, first = c.KnownInts(start), by = c.KnownInts(delta);
    // The elements are in range; intermediate products need not be.
    auto at = [&](int64_t i) {
      return static_cast<uint64_t>(first[0]) + static_cast<uint64_t>(i) * static_cast<uint64_t>(by[0]);
    };
    for (int64_t i = 0; i < n; ++i) v.push_back(static_cast<int64_t>(at(i)));
    return {c.Constant(HostFromInts(t, {n}, v))};
  }
  return {c.Add(c.Mul(Arange(c, n, t), c.Reshape(delta, {})), c.Reshape(start, {}))};
}

Values EyeLike(Ctx& c) {
  Value x = c.T(0);
  const Dims& shape = c.Lengths(x);
  if (shape.size() != 2) c.Fail("the input must have two axes");
  DataType t = c.HasAttr("dtype") ? FromOnnxType(static_cast<int32_t>(c.Int("dtype"))) : x.dtype;
  if (t.is_void()) c.Unsupported("`dtype` " + std::to_string(c.Int("dtype")));
  int64_t k = c.Int("k", 0);
  Value row = c.Add(c.Reshape(Arange(c, shape[0], DataType::Int(64)), {shape[0], 1}), static_cast<double>(k));
  Value column = c.Reshape(Arange(c, shape[1], DataType::Int(64)), {1, shape[1]});
  return {c.Cast(c.Call("equal", {row, column}), t)};
}

Values Trilu(Ctx& c) {
  Value x = c.T(0);
  bool upper = c.Int("upper", 1) != 0;
  int64_t k = 0;
  if (c.Has(1)) {
    Dims given = c.KnownInts(c.T(1));
    if (given.size() != 1) c.Fail("`k` must be one number");
    k = given[0];
  }
  int rank = c.Rank(x);
  if (rank < 2) c.Fail("the input must have two axes at least");
  int64_t rows = c.Length(x, -2), columns = c.Length(x, -1);
  if (rows == 0 || columns == 0) return {x};
  // Diagonals beyond the matrix are all equivalent.
  if (rows >= 0) k = std::max<int64_t>(k, -rows - 1);
  if (columns >= 0) k = std::min<int64_t>(k, columns + 1);
  return {c.Call("trilu", {x}, {{"upper", upper}, {"k", k}})};
}

Values CenterCropPad(Ctx& c) {
  Value x = c.T(0);
  int rank = c.Rank(x);
  Dims want = c.KnownInts(c.T(1));
  Dims axes = c.HasAttr("axes") ? c.Ints("axes") : Iota(rank);
  if (axes.size() != want.size()) c.Fail("`shape` needs a number for each axis");
  for (size_t k = 0; k < axes.size(); ++k) {
    int a = c.Axis(axes[k], rank);
    int64_t n = c.Dim(x, a), w = want[k];
    if (w < 0) c.Fail("`shape` has a negative length");
    if (w < n) {
      int64_t begin = (n - w) / 2;
      x = c.Slice(x, a, begin, begin + w);
    } else if (w > n) {
      Dims left = c.Fixed(x), right = left;
      left[static_cast<size_t>(a)] = (w - n) / 2;
      right[static_cast<size_t>(a)] = w - n - (w - n) / 2;
      x = c.Concat({c.Full(x.dtype, 0, left), x, c.Full(x.dtype, 0, right)}, a);
    }
  }
  return {x};
}

// ---- Types of results while values and lengths are not known
/// `v` with the lengths that are known.
Value WithLengths(Ctx& c, const Value& v, const Dims& lengths) { return c.Unknown(v.dtype, lengths); }

Values ReshapeTypes(Ctx& c) {
  Dims lengths = LengthsIn(c, 1);
  Value y = c.Call("dyn.reshape", {RankedOperand(c, 0), SomeInts(c, static_cast<int64_t>(lengths.size()))});
  return {WithLengths(c, y, lengths)};
}
Values FlattenTypes(Ctx& c) { return {c.Call("dyn.reshape", {RankedOperand(c, 0), SomeInts(c, 2)})}; }
Values SqueezeTypes(Ctx& c) { return {c.Call("dyn.squeeze", {RankedOperand(c, 0), SomeInts(c, CountOf(c, 1))})}; }
Values UnsqueezeTypes(Ctx& c) { return {c.Call("dyn.expand_dims", {RankedOperand(c, 0), SomeInts(c, CountOf(c, 1))})}; }
Values SplitTypes(Ctx& c) { return Values(c.num_outputs(), RankOfFirst(c)[0]); }
Values TileTypes(Ctx& c) {
  Value x = RankedOperand(c, 0);
  return {c.Call("dyn.tile", {x, SomeInts(c, x.rank())})};
}
Values PadTypes(Ctx& c) {
  Value x = RankedOperand(c, 0);
  return {c.Call("dyn.nn.pad", {x, c.Unknown(DataType::Int(64), {x.rank(), 2}), c.Unknown(x.dtype, {})})};
}
Values ExpandTypes(Ctx& c) {
  Value x = TypedOperand(c, 0);
  Dims want = LengthsIn(c, 1);
  if (static_cast<int>(want.size()) < x.rank()) want.insert(want.begin(), x.dims.size() - want.size(), 1);
  Value y = c.Call("dyn.broadcast_to", {x, SomeInts(c, static_cast<int64_t>(want.size()))});
  Dims dims = y.dims;
  for (size_t i = 0, lead = want.size() - x.dims.size(); i < want.size(); ++i) {
    // A length above 1 is the result's; where both are 1, so is the result's.
    int64_t d = i < lead ? 1 : x.dims[i - lead];
    if (want[i] > 1 || (want[i] == 1 && d == 1)) dims[i] = want[i];
  }
  return {WithLengths(c, y, dims)};
}
Values ConstantOfShapeTypes(Ctx& c) {
  const Tensor* value = c.TensorAttr("value");
  DataType t = value == nullptr ? DataType::Float(32) : FromOnnxType(value->data_type);
  if (t.is_void()) throw NeedsValue{"the dtype of its result"};
  Dims lengths = LengthsIn(c, 0);
  Value y = c.Call("dyn.full", {c.Unknown(t, {}), SomeInts(c, static_cast<int64_t>(lengths.size()))});
  return {WithLengths(c, y, lengths)};
}
Values RangeTypes(Ctx& c) {
  Value x = c.Unknown(c.T(0).dtype, {});
  return {c.Call("arange", {x, x, x}, {{"dtype", x.dtype}})};
}
Values EyeLikeTypes(Ctx& c) {
  Value y = RankOfFirst(c)[0];
  return {c.HasAttr("dtype") ? c.Cast(y, FromOnnxType(static_cast<int32_t>(c.Int("dtype")))) : y};
}
Values TriluTypes(Ctx& c) { return {c.Call("trilu", {TypedOperand(c, 0)})}; }

}  // namespace

bool BroadcastDims(const Dims& a, const Dims& b, Dims* out) {
  size_t n = std::max(a.size(), b.size());
  out->assign(n, 1);
  for (size_t i = 0; i < n; ++i) {
    int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1, y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) return false;
    (*out)[n - 1 - i] = x == 1 ? y : x;
  }
  return true;
}

Value Arange(Ctx& c, int64_t n, DataType dtype) {
  if (Ctx::IsSymbol(n)) {
    const Value zero = c.Scalar(dtype, 0);
    return c.Call("arange", {zero, zero, c.Scalar(dtype, 1)}, {{"dtype", dtype}, {"length", n}});
  }
  if (n <= kMaxFoldedElements) {
    Dims v = Iota(n);
    if (IsFloat(dtype)) return c.Constant(HostFromFloats(dtype, {n}, {v.begin(), v.end()}));
    return c.Constant(HostFromInts(dtype, {n}, v));
  }
  return c.Call("arange", {c.Scalar(dtype, 0), c.Scalar(dtype, static_cast<double>(n)), c.Scalar(dtype, 1)},
                {{"dtype", dtype}});
}

void AddShapes(OpTable* table) {
  for (const OpRow& row : {
           OpRow{"", "Reshape", Reshape, ReshapeTypes},
           {"", "Flatten", Flatten, FlattenTypes},
           {"", "Transpose", Transpose},
           {"", "Squeeze", Squeeze, SqueezeTypes},
           {"", "Unsqueeze", Unsqueeze, UnsqueezeTypes},
           {"", "Concat", ConcatOp},
           {"", "Split", SplitOp, SplitTypes},
           {"", "Slice", SliceOp, RankOfFirst},
           {"", "Expand", ExpandOp, ExpandTypes},
           {"", "Tile", Tile, TileTypes},
           {"", "Pad", Pad, PadTypes},
           {"", "Shape", ShapeOp},
           {"", "Size", Size},
           {"", "Constant", ConstantOp},
           {"", "ConstantOfShape", ConstantOfShape, ConstantOfShapeTypes},
           {"", "Range", Range, RangeTypes},
           {"", "EyeLike", EyeLike, EyeLikeTypes},
           {"", "Trilu", Trilu, TriluTypes},
           {"", "CenterCropPad", CenterCropPad, RankOfFirst},
       }) {
    table->push_back(row);
  }
}

}  // namespace baton::onnx

// SPDX-License-Identifier: Apache-2.0
// ONNX's nodes that move elements, to places that come as values.
#include <algorithm>
#include <cmath>

#include "host/functions.h"
#include "host/onnx_node.h"
#include "host/pick.h"

namespace baton::host {
namespace {

/// A number for each dimension, where `axes` names those that `values` are for.
Ints PerAxis(const OnnxNode& node, Ints axes, const Ints& values, int64_t rank, int64_t otherwise) {
  if (axes.empty()) {
    for (size_t i = 0; i < values.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  }
  if (axes.size() != values.size()) node.Fail(Cat(values.size(), " numbers for ", axes.size(), " axes"));
  Ints out(static_cast<size_t>(rank), otherwise);
  for (size_t i = 0; i < axes.size(); ++i) out[static_cast<size_t>(node.Axis(axes[i], rank))] = values[i];
  return out;
}

int64_t Sum(const OnnxNode& node, std::initializer_list<int64_t> terms) {
  int64_t out = 0;
  for (int64_t t : terms) {
    if (__builtin_add_overflow(out, t, &out)) node.Fail("an extent overflows");
  }
  return out;
}

/// The same elements in another shape of as many.
NDArray Reshaped(const OnnxNode& node, const NDArray& x, const Ints& shape) {
  int64_t n = 1;
  for (int64_t d : shape) {
    if (d < 0 || __builtin_mul_overflow(n, d, &n)) node.Fail(Cat("the shape is ", ShowInts(shape)));
  }
  if (n != x.numel()) node.Fail(Cat(Show(x), " cannot have the shape ", ShowInts(shape)));
  return x.Copy().View(shape, x.dtype());
}

int64_t Modulo(int64_t a, int64_t n) { return a % n < 0 ? a % n + n : a % n; }

}  // namespace

Arrays OnnxSlice(const Params& p, const Arrays& in) {
  const OnnxNode node(p, in);
  const NDArray& x = node.Get(0);
  const Ints n = x.shape(), given = node.IntsOf(1, "starts"), axes = node.IntsOf(3, "axes");
  const auto rank = static_cast<int64_t>(n.size());
  Ints steps = node.IntsOf(4);
  if (steps.empty()) steps.assign(given.size(), 1);
  const Ints last = node.IntsOf(2, "ends");
  if (last.size() != given.size() || steps.size() != given.size() || (!axes.empty() && axes.size() != given.size()))
    node.Fail("`starts`, `ends`, `axes` and `steps` differ in length");
  const Ints starts = PerAxis(node, axes, given, rank, 0), ends = PerAxis(node, axes, last, rank, INT64_MAX);
  const Ints by = PerAxis(node, axes, steps, rank, 1);
  Ints first(n.size()), shape(n.size());
  for (size_t d = 0; d < n.size(); ++d) {
    const int64_t step = std::clamp<int64_t>(by[d], -(int64_t{1} << 56), int64_t{1} << 56);
    if (step == 0) node.Fail("`steps` holds 0");
    const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? n[d] : n[d] - 1;
    const int64_t begin =
        std::clamp<int64_t>(starts[d] < 0 ? starts[d] + n[d] : starts[d], step > 0 ? 0 : std::min<int64_t>(0, high),
                            std::max<int64_t>(high, step > 0 ? 0 : -1));
    const int64_t end =
        std::clamp<int64_t>(ends[d] < 0 ? ends[d] + n[d] : ends[d], low, std::max(low, high + (step < 0)));
    const int64_t span = step > 0 ? end - begin : begin - end, width = step > 0 ? step : -step;
    first[d] = begin;
    shape[d] = n[d] == 0 || span <= 0 ? 0 : (span - 1) / width + 1;
  }
  return {Pick(x, shape, kZeros, [&](size_t d, int64_t i) { return first[d] + i * by[d]; })};
}

Arrays OnnxPad(const Params& p, const Arrays& in) {
  const OnnxNode node(p, in);
  const NDArray& x = node.Get(0);
  const std::string mode = node.Text("mode", "constant");
  const Ints n = x.shape(), pads = node.IntsOf(1, "pads"), axes = node.IntsOf(3);
  const auto rank = static_cast<int64_t>(n.size());
  const size_t half = pads.size() / 2;
  if (pads.size() % 2 || (axes.empty() && static_cast<int64_t>(half) != rank))
    node.Fail("`pads` needs two numbers for each axis");
  const Ints before = PerAxis(node, axes, {pads.begin(), pads.begin() + static_cast<int64_t>(half)}, rank, 0);
  const Ints after = PerAxis(node, axes, {pads.begin() + static_cast<int64_t>(half), pads.end()}, rank, 0);
  const bool constant = mode == "constant", reflect = mode == "reflect", wrap = mode == "wrap";
  if (!constant && !reflect && !wrap && mode != "edge") node.Fail(Cat("`mode` is `", mode, "`"));
  Ints shape(n.size()), low(n.size()), kept(n.size());
  for (size_t d = 0; d < n.size(); ++d) {  // negative pads crop, first
    low[d] = before[d] < 0 ? Sum(node, {0, -std::max(before[d], -INT64_MAX)}) : 0;
    kept[d] = Sum(node, {n[d], -low[d], std::min<int64_t>(0, after[d])});
    shape[d] = Sum(node, {n[d], before[d], after[d]});
    if (kept[d] < 0 || shape[d] < 0) node.Fail("`pads` cuts more than there is");
    if (kept[d] == 0 && shape[d] > 0 && !constant) node.Fail("an empty axis cannot be padded by its elements");
  }
  NDArray fill = NDArray::Zeros({1}, x.dtype());
  if (p.Find("value")) fill.SetDouble(0, p.Double("value"));
  if (node.Has(2)) {
    fill = node.Get(2);
    if (fill.numel() != 1 || !(fill.dtype() == x.dtype())) node.Fail(Cat("the value is ", Show(fill)));
  }
  return {Pick(x, shape, fill.data(), [&](size_t d, int64_t i) {
    const int64_t m = kept[d];
    int64_t at = i - std::max<int64_t>(0, before[d]);
    if (at < 0 || at >= m) {
      if (constant) return int64_t{-1};
      if (wrap) {
        at = Modulo(at, m);
      } else if (reflect) {
        const int64_t period = std::max<int64_t>(1, 2 * (m - 1));
        at = Modulo(at, period);
        if (at >= m) at = period - at;
      } else {
        at = at < 0 ? 0 : m - 1;
      }
    }
    return low[d] + at;
  })};
}

namespace {

Arrays OnnxCenterCropPad(const Params& p, const Arrays& in) {
  const OnnxNode node(p, in);
  const NDArray& x = node.Get(0);
  const Ints n = x.shape(), axes = p.Find("axes") ? p.Ints("axes") : Ints();
  const Ints want = PerAxis(node, axes, node.IntsOf(1), static_cast<int64_t>(n.size()), -1);
  Ints shape(n.size()), first(n.size());
  for (size_t d = 0; d < n.size(); ++d) {
    shape[d] = want[d] < 0 ? n[d] : want[d];
    first[d] = shape[d] < n[d] ? (n[d] - shape[d]) / 2 : -((shape[d] - n[d]) / 2);
  }
  return {Pick(x, shape, kZeros, [&](size_t d, int64_t i) {
    const int64_t at = first[d] + i;
    return at < n[d] ? at : int64_t{-1};
  })};
}

Arrays OnnxTile(const Params& p, const Arrays& in) {
  const OnnxNode node(p, in);
  const NDArray& x = node.Get(0);
  if (node.Has(2)) node.Fail("the operator of version 1 is not supported");
  const Ints n = x.shape(), repeats = node.IntsOf(1);
  if (repeats.size() != n.size()) node.Fail(Cat("`repeats` is ", ShowInts(repeats), " for ", Show(x)));
  Ints shape(n.size());
  for (size_t d = 0; d < n.size(); ++d) {
    if (repeats[d] < 0 || __builtin_mul_overflow(n[d], repeats[d], &shape[d]))
      node.Fail(Cat("`repeats` is ", ShowInts(repeats)));
  }
  return {Pick(x, shape, kZeros, [&](size_t d, int64_t i) { return i % n[d]; })};
}

Arrays OnnxExpand(const Params& p, const Arrays& in) {
  const OnnxNode node(p, in);
  NDArray x = node.Get(0);
  Ints n = x.shape(), shape = node.IntsOf(1);
  const size_t rank = std::max(n.size(), shape.size());
  n.insert(n.begin(), rank - n.size(), 1);
  shape.insert(shape.begin(), rank - shape.size(), 1);
  for (size_t d = 0; d < rank; ++d) {
    if (shape[d] == 1) shape[d] = n[d];
    if (shape[d] < 0 || (n[d] != 1 && n[d] != shape[d]))
      node.Fail(Cat(Show(x), " does not broadcast to ", ShowInts(shape)));
  }
  return {Pick(x.View(n, x.dtype()), shape, kZeros, [&](size_t d, int64_t i) { return n[d] == 1 ? 0 : i; })};
}

Arrays OnnxReshape(const Params& p, const Arrays& in) {
  const OnnxNode node(p, in);
  const NDArray& x = node.Get(0);
  const Ints n = x.shape();
  Ints shape = node.IntsOf(1, "shape");
  const bool zero = node.Int("allowzero", 0) != 0;
  int64_t open = -1, known = 1;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 0 && !zero) {
      if (d >= n.size()) node.Fail(Cat("the shape ", ShowInts(shape), " copies an extent that ", Show(x), " lacks"));
      shape[d] = n[d];
    }
    if (shape[d] == -1) {
      if (open >= 0) node.Fail(Cat("the shape ", ShowInts(shape), " leaves two extents open"));
      open = static_cast<int64_t>(d);
    } else if (shape[d] < 0 || __builtin_mul_overflow(known, shape[d], &known)) {
      node.Fail(Cat("the shape is ", ShowInts(shape)));
    }
  }
  if (open >= 0) shape[static_cast<size_t>(open)] = known == 0 ? 0 : x.numel() / known;
  return {Reshaped(node, x, shape)};
}

}  // namespace

Arrays OnnxSqueeze(const Params& p, const Arrays& in) {
  const OnnxNode node(p, in);
  const NDArray& x = node.Get(0);
  const Ints n = x.shape(), axes = node.IntsOf(1, "axes");
  std::vector<bool> gone(n.size());
  for (int64_t a : axes) {
    const auto d = static_cast<size_t>(node.Axis(a, x->ndim));
    if (n[d] != 1) node.Fail(Cat("axis ", a, " of ", Show(x), " is not 1"));
    gone[d] = true;
  }
  Ints shape;
  for (size_t d = 0; d < n.size(); ++d) {
    if (!(node.Has(1) || p.Find("axes") ? gone[d] : n[d] == 1)) shape.push_back(n[d]);
  }
  return {Reshaped(node, x, shape)};
}

Arrays OnnxUnsqueeze(const Params& p, const Arrays& in) {
  const OnnxNode node(p, in);
  const NDArray& x = node.Get(0);
  const Ints n = x.shape(), axes = node.IntsOf(1, "axes");
  const size_t rank = n.size() + axes.size();
  std::vector<bool> made(rank);
  for (int64_t a : axes) {
    const auto d = static_cast<size_t>(node.Axis(a, static_cast<int64_t>(rank)));
    if (made[d]) node.Fail("`axes` names an axis twice");
    made[d] = true;
  }
  Ints shape;
  size_t next = 0;
  for (size_t d = 0; d < rank; ++d) shape.push_back(made[d] ? 1 : n[next++]);
  return {Reshaped(node, x, shape)};
}

namespace {

Arrays OnnxSplit(const Params& p, const Arrays& in) {
  const OnnxNode node(p, in);
  const NDArray& x = node.Get(0);
  const auto axis = static_cast<size_t>(node.Axis(node.Int("axis", 0), x->ndim));
  const auto parts = static_cast<int64_t>(node.NumResults());
  const int64_t n = x.shape()[axis];
  Ints sizes = node.IntsOf(1, "split");
  if (sizes.empty()) {
    const int64_t each = parts == 0 ? 0 : (n + parts - 1) / parts;
    for (int64_t i = 0; i < parts; ++i) sizes.push_back(std::clamp<int64_t>(n - i * each, 0, each));
  }
  int64_t begin = 0;
  for (int64_t s : sizes) {
    if (s < 0 || s > n) node.Fail(Cat("`split` is ", ShowInts(sizes), " for ", Show(x)));
    begin += s;
  }
  if (static_cast<int64_t>(sizes.size()) != parts || begin != n)
    node.Fail(Cat("`split` is ", ShowInts(sizes), " for ", Show(x)));
  Arrays out;
  begin = 0;
  for (int64_t s : sizes) {
    Ints shape = x.shape();
    shape[axis] = s;
    out.push_back(Pick(x, shape, kZeros, [&](size_t d, int64_t i) { return d == axis ? begin + i : i; }));
    begin += s;
  }
  return out;
}

Arrays OnnxTrilu(const Params& p, const Arrays& in) {
  const OnnxNode node(p, in);
  NDArray out = node.Get(0).Copy();
  if (out->ndim < 2) node.Fail(Cat(Show(out), " holds no matrices"));
  const bool upper = node.Int("upper", 1) != 0;
  const Ints n = out.shape();
  const int64_t columns = n.back(), rows = n[n.size() - 2], bytes = out.dtype().bytes();
  const int64_t k = std::clamp<int64_t>(node.Has(1) ? node.IntOf(1) : 0, -rows - 1, columns + 1);
  auto* data = static_cast<char*>(out.data());
  for (int64_t r = 0, all = columns == 0 ? 0 : out.numel() / columns; r < all; ++r) {
    const int64_t cut = std::clamp<int64_t>(r % rows + k + (upper ? 0 : 1), 0, columns);
    char* row = data + r * columns * bytes;
    const int64_t from = upper ? 0 : cut, to = upper ? cut : columns;
    std::fill(row + from * bytes, row + to * bytes, 0);
  }
  return {out};
}

Arrays OnnxRange(const Params& p, const Arrays& in) {
  const OnnxNode node(p, in);
  const DataType t = node.Get(0).dtype();
  if (t.is_floating()) {
    const double start = node.NumberOf(0), delta = node.NumberOf(2), n = std::ceil((node.NumberOf(1) - start) / delta);
    if (delta == 0 || n != n || n > 1e15) node.Fail("`delta` is 0, or there is no end");
    NDArray out = NDArray::Empty({static_cast<int64_t>(std::max(n, 0.0))}, t);
    for (int64_t i = 0; i < out.numel(); ++i) out.SetDouble(i, start + static_cast<double>(i) * delta);
    return {out};
  }
  const __int128 start = node.IntOf(0), limit = node.IntOf(1), delta = node.IntOf(2);
  if (delta == 0) node.Fail("`delta` is 0");
  const __int128 span = delta > 0 ? limit - start : start - limit, width = delta > 0 ? delta : -delta;
  const __int128 n = span <= 0 ? 0 : (span - 1) / width + 1;
  if (n > INT64_MAX) node.Fail("there are too many numbers");
  NDArray out = NDArray::Empty({static_cast<int64_t>(n)}, t);
  for (int64_t i = 0; i < out.numel(); ++i) out.SetInt(i, static_cast<int64_t>(start + i * delta));
  return {out};
}

Arrays OnnxOneHot(const Params& p, const Arrays& in) {
  const OnnxNode node(p, in);
  const NDArray &indices = node.Get(0), &values = node.Get(2);
  const double wanted = node.NumberOf(1);
  if (!(wanted >= 1 && wanted < 1e15)) node.Fail(Cat("`depth` is ", std::to_string(wanted)));
  if (values.numel() != 2) node.Fail(Cat("`values` is ", Show(values)));
  const auto depth = static_cast<int64_t>(wanted);
  Ints shape = indices.shape();
  const int64_t axis = node.Axis(node.Int("axis", -1), indices->ndim + 1);
  shape.insert(shape.begin() + axis, depth);
  NDArray out = NDArray::Empty(shape, values.dtype());
  const Rows rows(shape, axis);
  for (int64_t o = 0; out.numel() && o < rows.outer; ++o) {
    for (int64_t i = 0; i < rows.inner; ++i) {
      int64_t at = indices.GetInt(o * rows.inner + i);
      if (at < 0 && at >= -depth) at += depth;
      for (int64_t k = 0; k < depth; ++k) CopyElement(values, k == at, out, rows.At(o, k, i));
    }
  }
  return {out};
}

Arrays OnnxTopK(const Params& p, const Arrays& in) {
  const OnnxNode node(p, in);
  const NDArray& x = node.Get(0);
  const int64_t axis = node.Axis(node.Int("axis", -1), x->ndim), k = node.Has(1) ? node.IntOf(1) : p.Int("k"),
                n = x.shape()[static_cast<size_t>(axis)];
  if (k < 0 || k > n) node.Fail(Cat("`K` is ", k, ", but the axis has ", n, " elements"));
  if (k == 0) {  // to topk, all
    Ints none = x.shape();
    none[static_cast<size_t>(axis)] = 0;
    return {NDArray::Empty(none, x.dtype()), NDArray::Empty(none, DataType::Int(64))};
  }
  support::Json params = support::Json::Object();
  params.Set("k", k);
  params.Set("axis", axis);
  params.Set("ret_type", "both");
  params.Set("is_ascend", node.Int("largest", 1) == 0);
  params.Set("dtype", "int64");
  return TopK(Params(p.function(), std::move(params)), {x});
}

/// HannWindow, HammingWindow, BlackmanWindow.
Arrays OnnxWindow(const Params& p, const Arrays& in) {
  const OnnxNode node(p, in);
  const int64_t size = node.IntOf(0);
  const double n = static_cast<double>(node.Int("periodic", 1) != 0 ? size : size - 1);
  const bool hann = p.function() == "onnx.HannWindow", hamming = p.function() == "onnx.HammingWindow";
  const double a0 = hann ? 0.5 : hamming ? 25.0 / 46 : 0.42, a1 = hann ? 0.5 : hamming ? 21.0 / 46 : 0.5;
  NDArray out = NDArray::Empty({size}, node.ResultType(0));
  for (int64_t i = 0; i < size; ++i) {
    const double at = 2 * 3.141592653589793 * static_cast<double>(i) / n;
    out.SetDouble(i, size == 1 ? 1 : a0 - a1 * std::cos(at) + (hann || hamming ? 0 : 0.08 * std::cos(2 * at)));
  }
  return {out};
}

const Register kShapeNodes[] = {{"onnx.Slice", -1, OnnxSlice},
                                {"onnx.Pad", -1, OnnxPad},
                                {"onnx.CenterCropPad", -1, OnnxCenterCropPad},
                                {"onnx.Tile", -1, OnnxTile},
                                {"onnx.Expand", -1, OnnxExpand},
                                {"onnx.Reshape", -1, OnnxReshape},
                                {"onnx.Squeeze", -1, OnnxSqueeze},
                                {"onnx.Unsqueeze", -1, OnnxUnsqueeze},
                                {"onnx.Split", -1, OnnxSplit},
                                {"onnx.Trilu", -1, OnnxTrilu},
                                {"onnx.Range", -1, OnnxRange},
                                {"onnx.OneHot", -1, OnnxOneHot},
                                {"onnx.TopK", -1, OnnxTopK},
                                {"onnx.HannWindow", -1, OnnxWindow},
                                {"onnx.HammingWindow", -1, OnnxWindow},
                                {"onnx.BlackmanWindow", -1, OnnxWindow}};

}  // namespace
}  // namespace baton::host

// SPDX-License-Identifier: Apache-2.0
// Convolutions and pools.
#include <algorithm>
#include <cmath>

#include "common.h"
#include "windows.h"

namespace baton::onnx {
namespace {

const char* const kConv[] = {"", "nn.conv1d", "nn.conv2d", "nn.conv3d"};
const char* const kMaxPool[] = {"", "nn.max_pool1d", "nn.max_pool2d", "nn.max_pool3d"};
const char* const kAvgPool[] = {"", "nn.avg_pool1d", "nn.avg_pool2d", "nn.avg_pool3d"};
const char* const kLpPool[] = {"", "nn.lp_pool1d", "nn.lp_pool2d", "nn.lp_pool3d"};
const char* const kTransposed[] = {"", "nn.conv1d_transpose", "nn.conv2d_transpose", "nn.conv3d_transpose"};
const char* const kInOut[] = {"", "IOW", "IOHW", "IODHW"};
const char* const kLayouts[] = {"", "NCW", "NCHW", "NCDHW"};
const char* const kKernels[] = {"", "OIW", "OIHW", "OIDHW"};

Dims Join(const Dims& a, const Dims& b) {
  Dims d = a;
  d.insert(d.end(), b.begin(), b.end());
  return d;
}

Values Conv(Ctx& c) {
  Value x = c.T(0), w = c.T(1);
  Value y = ConvOf(c, x, w, DataType::Void());
  if (c.Has(2)) y = AddBias(c, y, c.T(2));
  return {y};
}

Values ConvTranspose(Ctx& c) {
  Value x = c.T(0), w = c.T(1);
  const Dims in = c.Lengths(x), kernel_shape = c.Fixed(w);
  if (in.size() < 3 || in.size() > 5) c.Unsupported("data of rank " + std::to_string(in.size()));
  if (kernel_shape.size() != in.size()) c.Fail("`W` has another rank than the data");
  size_t n = in.size() - 2;
  int64_t groups = c.Int("group", 1);
  Dims kernel(kernel_shape.begin() + 2, kernel_shape.end());
  Dims given = c.Ints("kernel_shape");
  if (!given.empty() && given != kernel) c.Fail("`kernel_shape` differs from the shape of `W`");
  Dims strides = Or(c.Ints("strides"), n, 1), dilations = Or(c.Ints("dilations"), n, 1);
  Dims extra = Or(c.Ints("output_padding"), n, 0), want = c.Ints("output_shape");
  std::string auto_pad = c.Str("auto_pad", "NOTSET");
  Dims pads = Or(c.Ints("pads"), 2 * n, 0);
  const int64_t channels = c.Dim(x, 1);
  if (groups < 1 || channels % groups != 0 || kernel_shape[0] != channels) c.Fail("the channels do not fit the groups");
  if (want.size() > n) want.erase(want.begin(), want.end() - static_cast<std::ptrdiff_t>(n));
  if (strides.size() != n || dilations.size() != n || extra.size() != n || pads.size() != 2 * n ||
      (!want.empty() && want.size() != n)) {
    c.Fail("an attribute does not fit the number of spatial axes");
  }
  for (size_t i = 0; i < n; ++i) {
    if (strides[i] < 1 || dilations[i] < 1) c.Fail("`strides` and `dilations` must be at least 1");
    Checked reach = Checked(kernel[i] - 1) * dilations[i] + 1;
    int64_t total = -1;
    if (!want.empty()) {
      total = Checked(strides[i]) * (c.Dim(x, static_cast<int>(i) + 2) - 1) + extra[i] + reach - want[i];
    } else if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
      total = reach + extra[i] - strides[i];  // of (n - 1) * stride + what follows, where n * stride is wanted
    } else if (auto_pad == "VALID") {
      total = 0;
    }
    if (total < 0 && want.empty() && auto_pad == "NOTSET") continue;
    total = std::max<int64_t>(total, want.empty() ? 0 : total);
    int64_t half = total / 2;
    bool upper = auto_pad == "SAME_UPPER";
    pads[i] = upper ? half : total - half;
    pads[i + n] = upper ? total - half : half;
    if (total < 0) {
      pads[i] = 0;
      pads[i + n] = total;
    }
  }
  int64_t out_channels = Checked(kernel_shape[1]) * groups;
  if (std::all_of(pads.begin(), pads.end(), [](int64_t p) { return p >= 0; })) {
    Value y = c.Call(kTransposed[n], {x, w},
                     {{"strides", IntsAny(strides)},
                      {"padding", IntsAny(pads)},
                      {"dilation", IntsAny(dilations)},
                      {"output_padding", IntsAny(extra)},
                      {"groups", groups},
                      {"channels", out_channels},
                      {"kernel_size", IntsAny(kernel)},
                      {"data_layout", kLayouts[n]},
                      {"kernel_layout", kInOut[n]}});
    return {c.Has(2) ? AddBias(c, y, c.T(2)) : y};
  }
  c.Fixed(x);
  // Pads that add elements: dilate the input explicitly. [C, M/g, k...] becomes [M, C/g, k...] with k reversed.
  Dims cut = Join({groups, channels / groups, kernel_shape[1]}, kernel);
  Value k = c.Reshape(w, cut);
  k = c.Transpose(k, Join({0, 2, 1}, Iota(static_cast<int64_t>(n), 3)));
  k = c.Reshape(k, Join({out_channels, channels / groups}, kernel));
  for (size_t i = 0; i < n; ++i) {
    if (kernel[i] > 1) k = c.Call("reverse", {k}, {{"axis", static_cast<int64_t>(i) + 2}});
  }
  Value spread = x;
  if (std::any_of(strides.begin(), strides.end(), [](int64_t s) { return s != 1; })) {
    spread = c.Call("nn.dilate", {x}, {{"strides", IntsAny(Join({1, 1}, strides))}});
  }
  std::vector<Array<int64_t>> width(2, Array<int64_t>({0, 0}));
  bool cut_any = false;
  Dims cut_before(n, 0), cut_after(n, 0);
  for (size_t i = 0; i < n; ++i) {
    Checked reach = Checked(kernel[i] - 1) * dilations[i];
    Checked before = reach - pads[i], after = reach - pads[i + n] + extra[i];
    cut_before[i] = std::max<int64_t>(0, -before);
    cut_after[i] = std::max<int64_t>(0, -after);
    cut_any = cut_any || cut_before[i] != 0 || cut_after[i] != 0;
    width.push_back(Array<int64_t>({std::max<int64_t>(0, before), std::max<int64_t>(0, after)}));
  }
  Value padded = c.Call("nn.pad", {spread, c.Scalar(x.dtype, 0)},
                        {{"pad_width", Array<Array<int64_t>>(width)}, {"pad_mode", "constant"}});
  Value y = c.Call(kConv[n], {padded, k},
                   {{"strides", IntsAny(Dims(n, 1))},
                    {"padding", IntsAny(Dims(2 * n, 0))},
                    {"dilation", IntsAny(dilations)},
                    {"groups", groups},
                    {"channels", out_channels},
                    {"kernel_size", IntsAny(kernel)},
                    {"data_layout", kLayouts[n]},
                    {"kernel_layout", kKernels[n]}});
  if (cut_any) {
    for (size_t i = 0; i < n; ++i) {
      y = c.Slice(y, static_cast<int>(i) + 2, cut_before[i], c.Dim(y, static_cast<int>(i) + 2) - cut_after[i]);
    }
  }
  if (c.Has(2)) y = AddBias(c, y, c.T(2));
  return {y};
}

/// The geometry of a pool: its windows with the pads that ceil_mode adds.
struct Pool {
  Dims in, kernel, strides, dilations, pads, out;
  bool ceil = false;
  size_t n = 0;
};

/// `of_max`: what is padded does not count, so that pads may be larger than those asked for. `padded`: `x` has its
/// pads.
Pool PoolOf(Ctx& c, const Value& x, bool of_max = false, bool padded = false) {
  Pool p;
  c.Rank(x);
  p.in = x.dims;
  if (p.in.size() < 3 || p.in.size() > 5) c.Unsupported("data of rank " + std::to_string(p.in.size()));
  p.n = p.in.size() - 2;
  p.kernel = c.Ints("kernel_shape");
  if (p.kernel.size() != p.n) c.Fail("`kernel_shape` needs a number for each spatial axis");
  p.strides = Or(c.Ints("strides"), p.n, 1);
  p.dilations = Or(c.Ints("dilations"), p.n, 1);
  p.ceil = c.Int("ceil_mode", 0) != 0;
  p.pads = padded ? Dims(2 * p.n, 0) : Pads(c, p.in, p.kernel, p.strides, p.dilations);
  for (size_t i = 0; i < p.n; ++i) {
    Checked reach = Checked(p.kernel[i] - 1) * p.dilations[i] + 1;
    // No window begins in the padding behind the data where pads and step are not larger than the window.
    const bool begins_inside = p.pads[i + p.n] + Checked(p.strides[i]) <= reach;
    if (p.in[i + 2] < 0 && (!p.ceil || (of_max && begins_inside))) {
      p.out.push_back(-1);
      continue;
    }
    c.Dim(x, static_cast<int>(i) + 2);
    Checked room = Checked(p.in[i + 2]) + p.pads[i] + p.pads[i + p.n] - reach;
    if (room < 0 || p.kernel[i] < 1) c.Fail("the window is larger than the padded data");
    Checked out = room / p.strides[i] + 1;
    if (p.ceil) {
      out = (room + p.strides[i] - 1) / p.strides[i] + 1;
      // A window that begins in the padding behind the data does not count.
      if ((out - 1) * p.strides[i] >= Checked(p.in[i + 2]) + p.pads[i]) out -= 1;
    }
    p.out.push_back(out);
  }
  return p;
}

/// Pads behind the data such that the plain formula gives the outputs that ceil_mode asks for.
Dims PadsForCeil(const Pool& p) {
  Dims pads = p.pads;
  for (size_t i = 0; i < p.n && p.ceil; ++i) {
    Checked reach = Checked(p.kernel[i] - 1) * p.dilations[i] + 1;
    if (p.out[i] < 0) {  // of an open length: the plain formula rounds up
      pads[i + p.n] += p.strides[i] - 1;
      continue;
    }
    Checked needed = Checked(p.out[i] - 1) * p.strides[i] + reach - p.in[i + 2] - p.pads[i];
    pads[i + p.n] = std::max<int64_t>(p.pads[i + p.n], needed);
  }
  return pads;
}

/// [N, C, o1, k1, o2, k2, ...]: every window beside the others.
Value Windows(Ctx& c, const Value& x, const Pool& p, double fill) {
  for (size_t i = 0; i < p.n; ++i) c.Dim(x, static_cast<int>(i) + 2);
  Value v = x;
  Dims pads = PadsForCeil(p);
  std::vector<Array<int64_t>> width(2, Array<int64_t>({0, 0}));
  for (size_t i = 0; i < p.n; ++i) width.push_back(Array<int64_t>({pads[i], pads[i + p.n]}));
  v = c.Call("nn.pad", {v, c.Scalar(x.dtype, fill)},
             {{"pad_width", Array<Array<int64_t>>(width)}, {"pad_mode", "constant"}});
  for (size_t i = 0; i < p.n; ++i) {
    c.Reserve(Checked(p.out[i]) * p.kernel[i], 16);
    Dims index;
    for (int64_t o = 0; o < p.out[i]; ++o) {
      for (int64_t k = 0; k < p.kernel[i]; ++k) index.push_back(o * p.strides[i] + k * p.dilations[i]);
    }
    v = Take(c, v, c.Reshape(c.Int64s(index), {p.out[i], p.kernel[i]}), static_cast<int>(2 + 2 * i));
  }
  return v;
}
Dims WindowAxes(const Pool& p) {
  Dims axes;
  for (size_t i = 0; i < p.n; ++i) axes.push_back(static_cast<int64_t>(3 + 2 * i));
  return axes;
}

Values MaxPool(Ctx& c) {
  Value x = c.T(0);
  const Dims kernel = c.Ints("kernel_shape");
  const size_t n = kernel.size();
  const bool padded = !c.Wants(1) && x.dtype.is_float() &&
                      PadSame(c, &x, kernel, Or(c.Ints("strides"), n, 1), Or(c.Ints("dilations"), n, 1), -INFINITY);
  Pool p = PoolOf(c, x, true, padded);
  int64_t order = c.Int("storage_order", 0);
  Value y = c.Call(kMaxPool[p.n], {x},
                   {{"pool_size", IntsAny(p.kernel)},
                    {"strides", IntsAny(p.strides)},
                    {"dilation", IntsAny(p.dilations)},
                    {"padding", IntsAny(PadsForCeil(p))},
                    {"layout", kLayouts[p.n]},
                    {"ceil_mode", false}});
  if (!c.Wants(1)) return {y};
  Value both = c.Call("nn.max_pool_with_indices", {x},
                      {{"pool_size", IntsAny(p.kernel)},
                       {"strides", IntsAny(p.strides)},
                       {"dilation", IntsAny(p.dilations)},
                       {"padding", IntsAny(PadsForCeil(p))},
                       {"storage_order", order}});
  return {c.Item(both, 0), c.Item(both, 1)};
}

/// Attributes of a mean or a norm, whose operators count windows and their elements as ONNX does. Lengths may be
/// symbols; where the pads of auto_pad depend on them, `*data` gets these pads, and the pool has none (true).
bool PoolAttrs(Ctx& c, Value* data, NamedAttrs* attrs) {
  const int rank = c.Rank(*data);
  if (rank < 3 || rank > 5) c.Unsupported("data of rank " + std::to_string(rank));
  const auto n = static_cast<size_t>(rank) - 2;
  const Dims kernel = c.Ints("kernel_shape");
  if (kernel.size() != n) c.Fail("`kernel_shape` needs a number for each spatial axis");
  const Dims strides = Or(c.Ints("strides"), n, 1), dilations = Or(c.Ints("dilations"), n, 1);
  const bool padded = PadSame(c, data, kernel, strides, dilations, 0);
  const Dims pads = padded ? Dims(2 * n, 0) : Pads(c, data->dims, kernel, strides, dilations);
  *attrs = {{"pool_size", IntsAny(kernel)},   {"strides", IntsAny(strides)},
            {"dilation", IntsAny(dilations)}, {"padding", IntsAny(pads)},
            {"layout", kLayouts[n]},          {"ceil_mode", !padded && c.Int("ceil_mode", 0) != 0}};
  return padded;
}

Values AveragePool(Ctx& c) {
  const Value x = c.T(0);
  Value data = x;
  NamedAttrs attrs;
  const bool padded = PoolAttrs(c, &data, &attrs), include = c.Int("count_include_pad", 0) != 0;
  attrs.emplace_back("count_include_pad", include || padded);
  const char* pool = kAvgPool[x.dims.size() - 2];
  const Value mean = c.CallWith(pool, {data}, attrs);
  if (include || !padded) return {mean};
  // Pads do not count: divided by the share of each window that is data.
  Dims lengths = c.Lengths(x);
  lengths[0] = lengths[1] = 1;
  Value share = c.Full(x.dtype, 1, lengths);
  NamedAttrs same;
  PoolAttrs(c, &share, &same);
  return {c.Div(mean, c.CallWith(pool, {share}, attrs))};
}

Values LpPool(Ctx& c) {
  Value x = c.T(0);
  double order = c.since() < 2 ? c.Float("p", 2.0) : static_cast<double>(c.Int("p", 2));
  if (order >= 1 && order == std::floor(order) && order < 1 << 20) {
    NamedAttrs attrs;
    PoolAttrs(c, &x, &attrs);
    attrs.emplace_back("p", static_cast<int64_t>(order));
    return {c.CallWith(kLpPool[x.dims.size() - 2], {x}, attrs)};
  }
  Pool p = PoolOf(c, x);
  Value power = c.Scalar(x.dtype, order);
  Value w = c.Call("power", {c.Call("abs", {Windows(c, x, p, 0)}), power});
  Value sum = Reduce(c, "sum", w, WindowAxes(p), false);
  return {c.Call("power", {sum, c.Scalar(x.dtype, 1.0 / order)})};
}

Values Global(Ctx& c, const char* reduce, const char* pool) {
  Value x = c.T(0);
  int rank = c.Rank(x);
  if (rank < 3) c.Fail("the data must have spatial axes");
  if (rank == 4) return {c.Call(pool, {x}, {{"layout", "NCHW"}})};
  return {Reduce(c, reduce, x, Iota(rank - 2, 2), true)};
}
Values GlobalAveragePool(Ctx& c) { return Global(c, "mean", "nn.global_avg_pool2d"); }
Values GlobalMaxPool(Ctx& c) { return Global(c, "max", "nn.global_max_pool2d"); }
Values GlobalLpPool(Ctx& c) {
  Value x = c.T(0);
  double order = c.since() < 2 ? c.Float("p", 2.0) : static_cast<double>(c.Int("p", 2));
  Value sum =
      Reduce(c, "sum", c.Call("power", {c.Call("abs", {x}), c.Scalar(x.dtype, order)}), Iota(c.Rank(x) - 2, 2), true);
  return {c.Call("power", {sum, c.Scalar(x.dtype, 1.0 / order)})};
}

Values MaxUnpool(Ctx& c) {
  Value x = c.T(0), at = c.T(1);
  const Dims in = c.Fixed(x);
  if (in.size() < 3) c.Fail("the data must have spatial axes");
  size_t n = in.size() - 2;
  Dims kernel = c.Ints("kernel_shape"), strides = Or(c.Ints("strides"), n, 1), pads = Or(c.Ints("pads"), 2 * n, 0);
  if (kernel.size() != n || strides.size() != n || pads.size() != 2 * n) {
    c.Fail("`kernel_shape`, `strides` or `pads` does not fit the number of spatial axes");
  }
  Dims inferred = {in[0], in[1]};
  for (size_t i = 0; i < n; ++i) {
    inferred.push_back(Checked(in[i + 2] - 1) * strides[i] - pads[i] - pads[i + n] + kernel[i]);
    if (inferred.back() < 0) c.Fail("`pads` are larger than the data");
  }
  Dims out = inferred;
  if (c.Has(2)) out = c.KnownInts(c.T(2));
  if (out.size() != in.size() || Product(out) < Product(inferred)) c.Fail("`output_shape` is too small");
  Value index = c.Cast(at, DataType::Int(64));
  if (out != inferred) {
    // Indices refer to the pool's own input shape; in a larger output each element keeps its coordinates.
    Value rest = index, moved;
    int64_t weight = 1;
    for (size_t i = out.size(); i-- > 0;) {
      Value size = c.Scalar(index.dtype, static_cast<double>(inferred[i]));
      Value part = c.Mul(c.Call("floor_mod", {rest, size}), static_cast<double>(weight));
      moved = moved ? c.Add(moved, part) : part;
      rest = c.Call("floor_divide", {rest, size});
      weight = Checked(weight) * out[i];
    }
    index = moved;
  }
  return {c.Call("nn.max_unpool", {x, index}, {{"output_shape", IntsAny(out)}})};
}

Values Col2Im(Ctx& c) {
  Dims image = c.KnownInts(c.T(1)), block = c.KnownInts(c.T(2));
  size_t n = image.size();
  if (n == 0 || block.size() != n) c.Fail("`image_shape` and `block_shape` differ in length");
  Dims strides = Or(c.Ints("strides"), n, 1), dilations = Or(c.Ints("dilations"), n, 1),
       pads = Or(c.Ints("pads"), 2 * n, 0);
  return {c.Call("col2im", {c.T(0)},
                 {{"image_shape", IntsAny(image)},
                  {"block_shape", IntsAny(block)},
                  {"strides", IntsAny(strides)},
                  {"dilations", IntsAny(dilations)},
                  {"pads", IntsAny(pads)}})};
}

// ---- Types of results while values and lengths are not known
Values TypesBy(Ctx& c, const char* const* op, const char* const* kernel_layout) {
  Value x = RankedOperand(c, 0);
  if (x.rank() < 3 || x.rank() > 5) c.Unsupported("data of rank " + std::to_string(x.rank()));
  const int n = x.rank() - 2;
  return {c.Call(op[n], {x, RankedOperand(c, 1)}, {{"data_layout", kLayouts[n]}, {"kernel_layout", kernel_layout[n]}})};
}
Values ConvTypes(Ctx& c) { return TypesBy(c, kConv, kKernels); }
Values ConvTransposeTypes(Ctx& c) { return TypesBy(c, kTransposed, kInOut); }
Values Col2ImTypes(Ctx& c) { return {c.Unknown(c.T(0).dtype, Dims(static_cast<size_t>(CountOf(c, 1)) + 2, -1))}; }

}  // namespace

Dims Or(Dims given, size_t n, int64_t default_value) {
  if (given.empty()) given.assign(n, default_value);
  return given;
}

bool PadSame(Ctx& c, Value* data, const Dims& kernel, const Dims& strides, const Dims& dilations, double fill) {
  const size_t n = kernel.size();
  const Value x = *data;
  const std::string auto_pad = c.Str("auto_pad", "NOTSET");
  const bool upper = auto_pad == "SAME_UPPER";
  if ((!upper && auto_pad != "SAME_LOWER") || c.Rank(x) != static_cast<int>(n) + 2 || strides.size() != n ||
      dilations.size() != n) {
    return false;
  }
  bool by_length = false;
  for (size_t i = 0; i < n; ++i) by_length = by_length || (Ctx::IsSymbol(x.dims[i + 2]) && strides[i] != 1);
  if (!by_length) return false;
  std::vector<Array<int64_t>> width(2, Array<int64_t>({0, 0}));
  Dims begin, end;
  for (size_t i = 0; i < n; ++i) {
    if (strides[i] < 1 || dilations[i] < 1 || kernel[i] < 1) return false;
    const int64_t reach = Checked(kernel[i] - 1) * dilations[i] + 1, length = c.Length(x, static_cast<int>(i) + 2);
    const int64_t out = c.Over(c.Plus(length, strides[i] - 1), strides[i]);
    const int64_t used = c.Plus(c.Times(c.Minus(out, 1), strides[i]), reach);
    // Half of what is missing, the odd one behind or before; at most as the window reaches over one element.
    auto before = [&](int64_t total) { return c.Over(upper ? total : c.Plus(total, 1), 2); };
    const int64_t most = before(reach - 1);
    width.push_back(Array<int64_t>({most, reach - 1 - most}));
    begin.push_back(c.Minus(most, before(c.Most(c.Minus(used, length), 0))));
    end.push_back(c.Plus(begin.back(), used));
  }
  Value padded = c.Call("nn.pad", {x, c.Scalar(x.dtype, fill)},
                        {{"pad_width", Array<Array<int64_t>>(width)}, {"pad_mode", "constant"}});
  for (size_t i = 0; i < n; ++i) padded = c.Slice(padded, static_cast<int>(i) + 2, begin[i], end[i]);
  *data = padded;
  return true;
}

Dims Pads(Ctx& c, const Dims& in, const Dims& kernel, const Dims& strides, const Dims& dilations) {
  size_t n = kernel.size();
  std::string auto_pad = c.Str("auto_pad", "NOTSET");
  Dims given = c.Ints("pads");
  Dims pads = Or(given, 2 * n, 0);
  if (pads.size() != 2 * n || strides.size() != n || dilations.size() != n) {
    c.Fail("`pads`, `strides` or `dilations` does not fit the number of spatial axes");
  }
  for (size_t i = 0; i < n; ++i) {
    if (strides[i] < 1 || dilations[i] < 1) c.Fail("`strides` and `dilations` must be at least 1");
    if (kernel[i] < 1) c.Fail("the kernel must have elements");
  }
  if (auto_pad == "NOTSET") return pads;
  if (auto_pad == "VALID") return Dims(2 * n, 0);
  if (auto_pad != "SAME_UPPER" && auto_pad != "SAME_LOWER") c.Fail("`auto_pad` is `" + auto_pad + "`");
  for (size_t i = 0; i < n; ++i) {
    int64_t total = Checked(kernel[i] - 1) * dilations[i];  // of any length, where windows begin at each element
    if (strides[i] != 1) {
      if (in[i + 2] < 0) c.Dim(c.T(0), static_cast<int>(i) + 2);
      Checked out = (Checked(in[i + 2]) + strides[i] - 1) / strides[i];
      total = std::max<int64_t>(0, (out - 1) * strides[i] + total + 1 - in[i + 2]);
    }
    pads[i] = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
    pads[i + n] = total - pads[i];
  }
  return pads;
}

Value ConvOf(Ctx& c, const Value& data, const Value& w, DataType out) {
  Value x = data;
  int rank = c.Rank(x);
  if (rank < 3 || rank > 5) c.Unsupported("data of rank " + std::to_string(rank));
  const Dims weight = c.Fixed(w);
  if (static_cast<int>(weight.size()) != rank) c.Fail("`W` has another rank than the data");
  size_t n = static_cast<size_t>(rank) - 2;
  Dims kernel(weight.begin() + 2, weight.end()), given = c.Ints("kernel_shape");
  if (!given.empty() && given != kernel) c.Fail("`kernel_shape` differs from the shape of `W`");
  Dims strides = Or(c.Ints("strides"), n, 1), dilations = Or(c.Ints("dilations"), n, 1);
  const bool padded = PadSame(c, &x, kernel, strides, dilations, 0);
  Dims pads = padded ? Dims(2 * n, 0) : Pads(c, x.dims, kernel, strides, dilations);
  int64_t groups = c.Int("group", 1);
  std::vector<std::pair<const char*, Any>> attrs = {{"strides", IntsAny(strides)},    {"padding", IntsAny(pads)},
                                                    {"dilation", IntsAny(dilations)}, {"groups", groups},
                                                    {"channels", weight[0]},          {"kernel_size", IntsAny(kernel)},
                                                    {"data_layout", kLayouts[n]},     {"kernel_layout", kKernels[n]}};
  if (!out.is_void()) attrs.emplace_back("out_dtype", out);
  return c.CallWith(kConv[n], {x, w}, attrs);
}

Value AddBias(Ctx& c, const Value& y, const Value& bias) { return c.Call("nn.bias_add", {y, bias}, {{"axis", 1}}); }

void AddConvolutions(OpTable* table) {
  for (const OpRow& row : {
           OpRow{"", "Conv", Conv, ConvTypes},
           {"", "ConvTranspose", ConvTranspose, ConvTransposeTypes},
           {"", "MaxPool", MaxPool, RankOfFirst},
           {"", "AveragePool", AveragePool, RankOfFirst},
           {"", "LpPool", LpPool, RankOfFirst},
           {"", "GlobalAveragePool", GlobalAveragePool},
           {"", "GlobalMaxPool", GlobalMaxPool},
           {"", "GlobalLpPool", GlobalLpPool},
           {"", "MaxUnpool", MaxUnpool, RankOfFirst},
           {"", "Col2Im", Col2Im, Col2ImTypes},
       }) {
    table->push_back(row);
  }
}

}  // namespace baton::onnx

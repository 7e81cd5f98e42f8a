// SPDX-License-Identifier: Apache-2.0
// Relay's operators whose operands decide shapes or axes, where these values are not those of a region's sizes. Most
// are said by nodes of ONNX.
#include <algorithm>
#include <cmath>

#include "host/functions.h"
#include "host/onnx_node.h"

namespace baton::host {
namespace {

using support::Json;

/// The parameters of a node of ONNX with these operands.
Json NodeOf(std::initializer_list<bool> present, DataType dtype) {
  Json node = Json::Object(), there = Json::Array(), dtypes = Json::Array();
  for (bool b : present) there.Push(b);
  dtypes.Push(DataType2String(dtype));
  node.Set("present", std::move(there));
  node.Set("dtypes", std::move(dtypes));
  node.Set("opset", int64_t{19});
  return node;
}
Arrays Run(Code code, const Params& p, Json node, const Arrays& in) {
  return code(Params(p.function(), std::move(node)), in);
}

NDArray IntsArray(const Ints& v) {
  NDArray out = NDArray::Empty({static_cast<int64_t>(v.size())}, DataType::Int(64));
  std::copy(v.begin(), v.end(), out.ptr<int64_t>());
  return out;
}
/// Array i as integers; one of rank 0 is a list of one.
Ints IntsAt(const Params& p, const Arrays& in, int i) {
  Want(p, in, i, in[i].dtype().is_integral(), "integers");
  return in[i].ToInts();
}
void WantCount(const Params& p, const Arrays& in, size_t least, size_t most) {
  if (in.size() < least || in.size() > most) p.Fail(Cat("it takes ", least, " to ", most, " tensors, got ", in.size()));
}
/// The dimension that a layout calls so.
int64_t AxisIn(const Params& p, char letter) {
  const size_t at = p.Text("layout").find(letter);
  if (at == std::string::npos) p.Fail(Cat("layout is \"", p.Text("layout"), "\""));
  return static_cast<int64_t>(at);
}

Arrays DynTopK(const Params& p, const Arrays& in) {
  Json params = Json::Object();
  params.Set("axis", p.Int("axis"));
  params.Set("ret_type", p.Text("ret_type"));
  params.Set("is_ascend", p.Bool("is_ascend"));
  params.Set("dtype", p.Text("dtype"));
  Want(p, in, 1, in[1].dtype().is_integral() && in[1].numel() == 1, "one integer");
  params.Set("k", in[1].GetInt(0));
  return TopK(Params(p.function(), std::move(params)), {in[0]});
}

Arrays DynSparseToDense(const Params& p, const Arrays& in) {
  const NDArray &at = in[0], &values = in[1], &otherwise = in[2];
  const Ints shape = IntsAt(p, in, 3);
  for (int64_t n : shape) {
    if (n < 0) p.Fail(Cat("`output_shape` is ", ShowInts(shape)));
  }
  const auto rank = static_cast<int64_t>(shape.size());
  const int64_t width = at->ndim == 2 ? at.shape()[1] : 1, count = at->ndim == 0 ? 1 : at.shape()[0];
  Want(p, in, 0, at.dtype().is_integral() && at->ndim <= 2 && width == rank, "an index for each dimension");
  Want(p, in, 1, values->ndim == 0 || (values->ndim == 1 && values.numel() == count), "a value for each index");
  Want(p, in, 2, otherwise.numel() == 1 && otherwise.dtype() == values.dtype(), "one value");
  NDArray out = NDArray::Empty(shape, values.dtype());
  for (int64_t i = 0; i < out.numel(); ++i) CopyElement(otherwise, 0, out, i);
  for (int64_t i = 0; i < count; ++i) {
    int64_t to = 0;
    bool inside = true;
    for (int64_t d = 0; inside && d < rank; ++d) {
      const int64_t place = at.GetInt(i * width + d), n = shape[static_cast<size_t>(d)];
      inside = place >= 0 && place < n;
      to = to * n + place;
    }
    if (inside) CopyElement(values, values->ndim == 0 ? 0 : i, out, to);
  }
  return {out};
}

Arrays DynExpandDims(const Params& p, const Arrays& in) {
  Ints axes = IntsAt(p, in, 1);
  if (in[1]->ndim == 0) {
    const int64_t count = p.Int("num_newaxis");
    int64_t first = axes[0];
    if (first < 0) first += in[0]->ndim + 1;
    axes.clear();
    for (int64_t i = 0; i < count; ++i) axes.push_back(first + i);
  }
  return Run(OnnxUnsqueeze, p, NodeOf({true, true}, in[0].dtype()), {in[0], IntsArray(axes)});
}
Arrays DynSqueeze(const Params& p, const Arrays& in) {
  for (int64_t a : IntsAt(p, in, 1)) {
    const int64_t rank = in[0]->ndim, d = a < 0 ? a + rank : a;
    if (d >= 0 && d < rank && in[0].shape()[static_cast<size_t>(d)] != 1)
      p.Fail(Cat("[squeeze R1] dimension ", a, " of ", Show(in[0]), " is not 1"));
  }
  return Run(OnnxSqueeze, p, NodeOf({true, true}, in[0].dtype()), {in[0], IntsArray(IntsAt(p, in, 1))});
}

Arrays DynStridedSlice(const Params& p, const Arrays& in) {
  WantCount(p, in, 3, 5);
  const Ints begin = IntsAt(p, in, 1);
  Ints end = IntsAt(p, in, 2), steps = in.size() > 3 ? IntsAt(p, in, 3) : Ints(begin.size(), 1);
  if (end.size() != begin.size()) p.Fail("`begin` and `end` differ in length");
  if (p.Text("slice_mode") == "size") {
    for (size_t i = 0; i < end.size(); ++i) {
      if (end[i] < -1) p.Fail(Cat("a size is ", end[i]));
      int64_t sum = 0;
      const bool far = __builtin_add_overflow(begin[i], end[i], &sum) || (begin[i] < 0 && sum >= 0);
      end[i] = end[i] == -1 || far ? INT64_MAX : sum;
    }
    steps.assign(begin.size(), 1);
  }
  if (std::find(steps.begin(), steps.end(), 0) != steps.end()) p.Fail("[strided_slice R4] a stride is 0");
  const bool axes = in.size() > 4;
  Arrays operands{in[0], IntsArray(begin), IntsArray(end)};
  if (axes) operands.push_back(in[4]);
  operands.push_back(IntsArray(steps));
  return Run(OnnxSlice, p, NodeOf({true, true, true, axes, true}, in[0].dtype()), operands);
}

Arrays DynPad(const Params& p, const Arrays& in) {
  WantCount(p, in, 2, 3);
  const Ints pairs = IntsAt(p, in, 1);
  const Ints have = in[0].shape();
  for (size_t i = 0; i + 1 < pairs.size() && i / 2 < have.size(); i += 2) {
    int64_t n = have[i / 2];
    if (__builtin_add_overflow(n, pairs[i], &n) || __builtin_add_overflow(n, pairs[i + 1], &n) || n < 0)
      p.Fail(
          Cat("[nn.pad R3] dimension ", i / 2, " of ", Show(in[0]), " is padded by ", pairs[i], " and ", pairs[i + 1]));
  }
  Ints pads;
  for (size_t side : {0, 1}) {
    for (size_t i = side; i < pairs.size(); i += 2) pads.push_back(pairs[i]);
  }
  Json node = NodeOf({true, true, in.size() > 2}, in[0].dtype());
  node.Set("mode", p.Text("pad_mode"));
  Arrays operands{in[0], IntsArray(pads)};
  if (in.size() > 2) operands.push_back(in[2]);
  return Run(OnnxPad, p, std::move(node), operands);
}

Arrays DynResize2D(const Params& p, const Arrays& in) {
  WantCount(p, in, 2, 3);
  Ints size = IntsAt(p, in, 1);
  if (size.size() == 1) size.push_back(size[0]);
  if (size.size() != 2) p.Fail(Cat("`size` is ", ShowInts(size)));
  if (size[0] < 0 || size[1] < 0) p.Fail(Cat("[dyn.image.resize2d R3] `size` is ", ShowInts(size)));
  const std::string &method = p.Text("method"), &rounding = p.Text("rounding_method");
  const bool roi = p.Text("coordinate_transformation_mode") == "tf_crop_and_resize";
  Json node = NodeOf({true, roi, false, true}, in[0].dtype()), axes = Json::Array();
  axes.Push(AxisIn(p, 'H'));
  axes.Push(AxisIn(p, 'W'));
  node.Set("axes", std::move(axes));
  node.Set("mode", method == "nearest_neighbor" ? "nearest" : method);
  node.Set("coordinate_transformation_mode", p.Text("coordinate_transformation_mode"));
  node.Set("nearest_mode", rounding.empty()      ? "round_prefer_floor"
                           : rounding == "round" ? "round_prefer_ceil"
                                                 : rounding);
  node.Set("cubic_coeff_a", p.Double("cubic_alpha"));
  node.Set("exclude_outside", p.Int("cubic_exclude"));
  node.Set("extrapolation_value", p.Double("extrapolation_value"));
  // Floats of the result are computed as such; integers are cut in the end.
  const DataType t = p.Has("out_dtype") ? NumberType(p, "out_dtype") : in[0].dtype();
  NDArray x = in[0];
  if (t.is_floating() && !(x.dtype() == t)) {
    x = NDArray::Empty(x.shape(), t);
    for (int64_t i = 0; i < x.numel(); ++i) x.SetDouble(i, in[0].GetDouble(i));
  }
  Arrays operands{x};
  if (roi && in.size() < 3) p.Fail("`roi` is missing");
  if (roi) operands.push_back(in[2]);
  operands.push_back(IntsArray(size));
  Arrays out = Run(OnnxResize, p, std::move(node), operands);
  if (out[0].dtype() == t) return out;
  const double high = std::ldexp(1.0, t.bits() - (t.is_uint() ? 0 : 1)), low = t.is_uint() ? 0 : -high;
  NDArray cut = NDArray::Empty(out[0].shape(), t);
  for (int64_t i = 0; i < cut.numel(); ++i)
    cut.SetDouble(i, std::clamp(std::trunc(out[0].GetDouble(i)), low, std::nextafter(high, 0.0)));
  return {cut};
}

Arrays DynUpsampling(const Params& p, const Arrays& in) {
  const std::string& method = p.Text("method");
  const bool nearest = method == "nearest_neighbor", corners = p.Bool("align_corners");
  Json node = NodeOf({true, false, false, true}, in[0].dtype()), axes = Json::Array();
  Ints size;
  for (int k : {0, 1}) {
    const int64_t axis = AxisIn(p, k == 0 ? 'H' : 'W');
    const double scale = OneNumber(p, in, k + 1);
    const double to = std::floor(static_cast<double>(in[0].shape().at(static_cast<size_t>(axis))) * scale + 0.5);
    if (!(scale > 0 && to < 1e12)) p.Fail(Cat("a factor is ", std::to_string(scale)));
    axes.Push(axis);
    size.push_back(static_cast<int64_t>(to));
  }
  node.Set("axes", std::move(axes));
  node.Set("mode", nearest ? "nearest" : method == "bilinear" ? "linear" : "cubic");
  node.Set("coordinate_transformation_mode", corners ? "align_corners" : "asymmetric");
  node.Set("nearest_mode", nearest && !corners ? "floor" : "round_prefer_floor");
  node.Set("cubic_coeff_a", -0.5);
  return Run(OnnxResize, p, std::move(node), {in[0], IntsArray(size)});
}

/// start, start + step, ... before stop.
Arrays Arange(const Params& p, const Arrays& in) {
  for (int i = 0; i < 3; ++i) Want(p, in, i, in[i].numel() == 1, "one number");
  const DataType t = p.Has("dtype") ? NumberType(p, "dtype") : in[0].dtype();
  auto whole = [&](int i) { return in[i].dtype().is_integral(); };
  if (whole(0) && whole(1) && whole(2)) {
    const __int128 start = in[0].GetInt(0), stop = in[1].GetInt(0), step = in[2].GetInt(0);
    if (step == 0) p.Fail("`step` is 0");
    const __int128 span = step > 0 ? stop - start : start - stop, width = step > 0 ? step : -step;
    const __int128 n = span <= 0 ? 0 : (span - 1) / width + 1;
    if (n > (int64_t{1} << 40)) p.Fail("the range has more elements than memory holds");
    NDArray out = NDArray::Empty({static_cast<int64_t>(n)}, t);
    for (int64_t i = 0; i < out.numel(); ++i) {
      const auto v = static_cast<int64_t>(start + i * step);
      t.is_floating() ? out.SetDouble(i, static_cast<double>(v)) : out.SetInt(i, v);
    }
    return {out};
  }
  const double start = in[0].GetDouble(0), step = in[2].GetDouble(0);
  const double n = std::ceil((in[1].GetDouble(0) - start) / step);
  if (step == 0 || n != n || n > 1e12) p.Fail("`step` is 0, or there is no end");
  NDArray out = NDArray::Empty({static_cast<int64_t>(std::max(n, 0.0))}, t);
  for (int64_t i = 0; i < out.numel(); ++i) out.SetDouble(i, start + static_cast<double>(i) * step);
  return {out};
}

const Register kDynamic[] = {{"dyn.topk", 2, DynTopK},
                             {"dyn.sparse_to_dense", 4, DynSparseToDense},
                             {"dyn.expand_dims", 2, DynExpandDims},
                             {"dyn.squeeze", 2, DynSqueeze},
                             {"dyn.strided_slice", -1, DynStridedSlice},
                             {"dyn.nn.pad", -1, DynPad},
                             {"dyn.image.resize2d", -1, DynResize2D},
                             {"dyn.nn.upsampling", 3, DynUpsampling},
                             {"arange", 3, Arange}};

}  // namespace
}  // namespace baton::host

// SPDX-License-Identifier: Apache-2.0
#include "reference.h"

#include <baton/relay/op.h>
#include <relay/op/narrow_values.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "matrix_product.h"

namespace baton::relay::reference {

/// Elements from one index of a dimension to the next, 0 where the dimension is repeated; for a result of this rank.
Shape BroadcastStrides(const NDArray& a, const Shape& out) {
  Shape strides(out.size(), 0);
  int64_t step = 1;
  for (int i = a.ndim(); i-- > 0;) {
    const size_t at = out.size() - static_cast<size_t>(a.ndim() - i);
    strides[at] = a.dim(i) == 1 ? 0 : step;
    step *= a.dim(i);
  }
  return strides;
}

bool Broadcast(const NDArray& a, const NDArray& b, Shape* out) {
  out->assign(static_cast<size_t>(std::max(a.ndim(), b.ndim())), 1);
  for (const NDArray* x : {&a, &b}) {
    for (int i = 0; i < x->ndim(); ++i) {
      int64_t& d = (*out)[out->size() - static_cast<size_t>(x->ndim() - i)];
      if (x->dim(i) != 1 && d != 1 && d != x->dim(i)) return false;
      if (x->dim(i) != 1) d = x->dim(i);
    }
  }
  return true;
}

bool Floats(const std::vector<NDArray>& in) {
  for (const NDArray& a : in) {
    if (!(a.dtype() == DataType::Float(32))) return false;
  }
  return true;
}

namespace {

/// By reflection: of whatever class the attributes are.
Any Field(const Attrs& attrs, const char* name) {
  const auto* info = attrs.defined() ? runtime::TypeInfo::Get(attrs.get()->type_index()) : nullptr;
  const auto* field = info ? info->Find(name) : nullptr;
  if (!field) throw InternalError(std::string("the attributes have no field `") + name + "`");
  return field->Get(attrs.get());
}

NDArray TransposeOf(const Attrs& attrs, const NDArray& a) {
  const int n = a.ndim();
  std::vector<int> axes;
  if (Any given = Field(attrs, "axes"); !given.is_null()) {
    for (int64_t x : given.As<Array<int64_t>>()) axes.push_back(static_cast<int>(x < 0 ? x + n : x));
  } else {
    for (int i = n; i-- > 0;) axes.push_back(i);
  }
  if (static_cast<int>(axes.size()) != n || n == 0) return NDArray();
  Shape step(static_cast<size_t>(n), 1), shape, strides;
  for (int i = n - 1; i-- > 0;) step[static_cast<size_t>(i)] = step[static_cast<size_t>(i) + 1] * a.dim(i + 1);
  std::vector<bool> named(static_cast<size_t>(n), false);
  for (int x : axes) {
    if (x < 0 || x >= n || named[static_cast<size_t>(x)]) return NDArray();
    named[static_cast<size_t>(x)] = true;
    shape.push_back(a.dim(x));
    strides.push_back(step[static_cast<size_t>(x)]);
  }
  if (n == 1) return a.Copy();
  NDArray out = NDArray::Empty(shape, a.dtype());
  const float* pa = a.ptr<float>();
  float* po = out.ptr<float>();
  // Tiles of the last two dimensions, so that neither side is read with long steps alone.
  constexpr int64_t kTile = 16;
  const int64_t last = shape.back(), by = strides.back();
  const Shape outer(shape.begin(), shape.end() - 1), steps(strides.begin(), strides.end() - 1);
  const int64_t rows = outer.back(), down = steps.back();
  ForRows(outer, steps, steps, [&](int64_t o, int64_t x, int64_t) {
    for (int64_t r0 = 0; r0 < rows; r0 += kTile) {
      for (int64_t c0 = 0; c0 < last; c0 += kTile) {
        for (int64_t r = r0; r < std::min(rows, r0 + kTile); ++r) {
          for (int64_t c = c0; c < std::min(last, c0 + kTile); ++c) po[(o + r) * last + c] = pa[x + r * down + c * by];
        }
      }
    }
  });
  return out;
}

bool LastAxis(const Attrs& attrs, const NDArray& a) {
  const int64_t axis = Field(attrs, "axis").As<int64_t>();
  return a.ndim() > 0 && (axis == -1 || axis == a.ndim() - 1);
}

NDArray SoftmaxOf(const Attrs& attrs, const NDArray& a) {
  if (!LastAxis(attrs, a)) return NDArray();
  const int64_t n = a.dim(a.ndim() - 1);
  NDArray out = NDArray::Empty(a.shape(), a.dtype());
  for (int64_t row = 0; row < a.numel(); row += n) {
    const float* x = a.ptr<float>() + row;
    float* y = out.ptr<float>() + row;
    float most = x[0];
    for (int64_t i = 1; i < n; ++i) most = x[i] > most ? x[i] : most;
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += y[i] = std::exp(x[i] - most);
    for (int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(y[i] / sum);
  }
  return out;
}

NDArray LayerNormOf(const Attrs& attrs, const NDArray& a, const NDArray& gamma, const NDArray& beta) {
  if (!LastAxis(attrs, a) || Field(attrs, "num_axes").As<int64_t>() != 1) return NDArray();
  const double epsilon = Field(attrs, "epsilon").As<double>();
  const bool scale = Field(attrs, "scale").As<bool>(), center = Field(attrs, "center").As<bool>();
  const int64_t n = a.dim(a.ndim() - 1);
  if (gamma.numel() != n || beta.numel() != n) return NDArray();
  NDArray out = NDArray::Empty(a.shape(), a.dtype());
  const float *g = gamma.ptr<float>(), *b = beta.ptr<float>();
  for (int64_t row = 0; row < a.numel(); row += n) {
    const float* x = a.ptr<float>() + row;
    float* y = out.ptr<float>() + row;
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < n; ++i) mean += x[i];
    mean /= static_cast<double>(n);
    for (int64_t i = 0; i < n; ++i) variance += (x[i] - mean) * (x[i] - mean);
    const double by = 1 / std::sqrt(variance / static_cast<double>(n) + epsilon);
    for (int64_t i = 0; i < n; ++i) {
      y[i] = static_cast<float>((x[i] - mean) * by * (scale ? g[i] : 1.0) + (center ? b[i] : 0.0));
    }
  }
  return out;
}

// ---- Products of matrices

bool GivesFloat32(const Attrs& attrs) {
  const DataType t = Field(attrs, "out_dtype").As<DataType>();
  return t.bits() == 0 || t == DataType::Float(32);
}

Lines RowsOf(const NDArray& a, int64_t depth) {
  Lines out;
  for (const float* p = a.ptr<float>(); p < a.ptr<float>() + a.numel(); p += depth) out.begin.push_back(p);
  return out;
}

/// (..., K) times the lines of (units, K).
NDArray DenseOf(const Attrs& attrs, const NDArray& a, const NDArray& weight) {
  if (!GivesFloat32(attrs) || a.ndim() < 1 || weight.ndim() != 2 || a.dim(a.ndim() - 1) != weight.dim(1)) {
    return NDArray();
  }
  const int64_t depth = weight.dim(1);
  Shape shape = a.shape();
  shape.back() = weight.dim(0);
  NDArray out = NDArray::Empty(shape, a.dtype());
  ReferenceProduct(RowsOf(a, depth), RowsOf(weight, depth), depth, out.ptr<float>());
  return out;
}

/// (..., K) times (panels, K, columns): weight[u / columns, k, u % columns].
NDArray DensePackOf(const Attrs& attrs, const NDArray& a, const NDArray& weight) {
  if (!GivesFloat32(attrs) || a.ndim() < 1 || weight.ndim() != 3 || a.dim(a.ndim() - 1) != weight.dim(1)) {
    return NDArray();
  }
  const int64_t depth = weight.dim(1), columns = weight.dim(2);
  int64_t units = weight.dim(0) * columns;
  if (const Any given = Field(attrs, "units"); !given.is_null()) {
    const PrimExpr e = given.As<PrimExpr>();
    const auto* n = e.as<IntImmNode>();
    if (!n || n->value > units || n->value <= units - columns) return NDArray();
    units = n->value;
  }
  Lines lines;
  lines.step = columns;
  for (int64_t u = 0; u < units; ++u) {
    lines.begin.push_back(weight.ptr<float>() + u / columns * depth * columns + u % columns);
  }
  Shape shape = a.shape();
  shape.back() = units;
  NDArray out = NDArray::Empty(shape, a.dtype());
  ReferenceProduct(RowsOf(a, depth), lines, depth, out.ptr<float>());
  return out;
}

/// The rows or columns of one matrix of a batch. `along`: they lie in lines.
Lines LinesOf(const float* begin, int64_t count, int64_t depth, bool along) {
  Lines out;
  out.step = along ? 1 : count;
  for (int64_t i = 0; i < count; ++i) out.begin.push_back(begin + (along ? i * depth : i));
  return out;
}

NDArray BatchMatmulOf(const Attrs& attrs, const NDArray& a, const NDArray& b) {
  if (!GivesFloat32(attrs) || a.ndim() != 3 || b.ndim() != 3) return NDArray();
  const bool ta = Field(attrs, "transpose_a").As<bool>(), tb = Field(attrs, "transpose_b").As<bool>();
  const int64_t m = a.dim(ta ? 2 : 1), k = a.dim(ta ? 1 : 2), n = b.dim(tb ? 1 : 2);
  const int64_t batch = a.dim(0);
  if (b.dim(tb ? 2 : 1) != k || b.dim(0) != batch) return NDArray();
  NDArray out = NDArray::Empty({batch, m, n}, a.dtype());
  for (int64_t i = 0; i < batch; ++i) {
    ReferenceProduct(LinesOf(a.ptr<float>() + i * m * k, m, k, !ta), LinesOf(b.ptr<float>() + i * n * k, n, k, tb), k,
                     out.ptr<float>() + i * m * n);
  }
  return out;
}

// ---- Sums over dimensions

NDArray SumOf(const Attrs& attrs, const NDArray& a) {
  const Any axis = Field(attrs, "axis");
  const bool all = axis.is_null(), keep = Field(attrs, "keepdims").As<bool>();
  const bool exclude = Field(attrs, "exclude").As<bool>();
  std::vector<bool> named(static_cast<size_t>(a.ndim()), all);
  if (!all) {
    for (int64_t x : axis.As<Array<int64_t>>()) {
      x += x < 0 ? a.ndim() : 0;
      if (x < 0 || x >= a.ndim() || named[static_cast<size_t>(x)]) return NDArray();
      named[static_cast<size_t>(x)] = true;
    }
  }
  if (a.ndim() == 0) return NDArray();
  Shape shape, strides(named.size(), 0);
  int64_t step = 1;
  for (size_t d = named.size(); d-- > 0;) {
    const bool gone = named[d] != (exclude && !all);
    const int64_t extent = a.dim(static_cast<int>(d));
    if (!gone) strides[d] = step, step *= extent;
    if (!gone || keep) shape.push_back(gone ? 1 : extent);
  }
  std::reverse(shape.begin(), shape.end());
  std::vector<double> sums(static_cast<size_t>(step), 0);
  const float* pa = a.ptr<float>();
  const int64_t n = a.dim(a.ndim() - 1), by = strides.back();
  ForRows(a.shape(), strides, strides, [&](int64_t at, int64_t to, int64_t) {
    for (int64_t i = 0; i < n; ++i) sums[static_cast<size_t>(to + i * by)] += pa[at + i];
  });
  NDArray out = NDArray::Empty(shape, a.dtype());
  std::copy(sums.begin(), sums.end(), out.ptr<float>());
  return out;
}

// ---- Parts of a tensor

NDArray TakeOf(const Attrs& attrs, const NDArray& a, const NDArray& indices) {
  const Any given = Field(attrs, "axis");
  const String mode = Field(attrs, "mode").As<String>();
  if (given.is_null() || Field(attrs, "batch_dims").As<int64_t>() != 0 ||
      (mode != "clip" && mode != "fast" && mode != "negative")) {
    return NDArray();
  }
  const PrimExpr axis_given = given.As<PrimExpr>();
  const auto* number = axis_given.as<IntImmNode>();
  const int64_t axis = !number ? -1 : number->value < 0 ? number->value + a.ndim() : number->value;
  if (axis < 0 || axis >= a.ndim()) return NDArray();
  const bool wide = indices.dtype() == DataType::Int(64);
  if (!wide && !(indices.dtype() == DataType::Int(32))) return NDArray();
  const int64_t from = a.dim(static_cast<int>(axis)), chosen = indices.numel();
  int64_t outer = 1, inner = 1;
  Shape shape;
  for (int d = 0; d < axis; ++d) outer *= a.dim(d), shape.push_back(a.dim(d));
  for (int64_t d : indices.shape()) shape.push_back(d);
  for (int d = static_cast<int>(axis) + 1; d < a.ndim(); ++d) inner *= a.dim(d), shape.push_back(a.dim(d));
  NDArray out = NDArray::Empty(shape, a.dtype());
  float* po = out.ptr<float>();
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < chosen; ++i, po += inner) {
      int64_t at = wide ? indices.ptr<int64_t>()[i] : indices.ptr<int32_t>()[i];
      if (at < 0 && mode == "negative") at += from;
      at = std::clamp<int64_t>(at, 0, from - 1);
      std::memcpy(po, a.ptr<float>() + (o * from + at) * inner, static_cast<size_t>(inner) * sizeof(float));
    }
  }
  return out;
}

NDArray StridedSliceOf(const Attrs& attrs, const NDArray& a) {
  if (Field(attrs, "slice_mode").As<String>() != "end" || a.ndim() == 0) return NDArray();
  const auto begin = Field(attrs, "begin").As<Array<int64_t>>(), end = Field(attrs, "end").As<Array<int64_t>>(),
             strides = Field(attrs, "strides").As<Array<int64_t>>();
  const Any axes = Field(attrs, "axes");
  if (end.size() != begin.size() || (strides.size() > 1 && strides.size() != begin.size()) ||
      (!axes.is_null() && axes.As<Array<int64_t>>().size() != begin.size())) {
    return NDArray();
  }
  std::vector<bool> named(static_cast<size_t>(a.ndim()), false);
  Shape shape = a.shape(), by(shape.size(), 1);
  int64_t step = 1, first = 0;
  for (size_t d = shape.size(); d-- > 0;) by[d] = step, step *= shape[d];
  for (int64_t k = 0; k < static_cast<int64_t>(begin.size()); ++k) {
    int64_t d = axes.is_null() ? k : axes.As<Array<int64_t>>()[k];
    d += d < 0 ? a.ndim() : 0;
    const int64_t stride = strides.empty() ? 1 : strides.size() == 1 ? strides[0] : strides[k];
    if (d < 0 || d >= a.ndim() || stride < 1) return NDArray();
    const size_t at = static_cast<size_t>(d);
    if (named[at]) return NDArray();
    named[at] = true;
    const int64_t n = a.dim(static_cast<int>(d));
    const int64_t from = std::clamp<int64_t>(begin[k] < 0 ? begin[k] + n : begin[k], 0, n);
    const int64_t to = std::clamp<int64_t>(end[k] < 0 ? end[k] + n : end[k], 0, n);
    if (to <= from) return NDArray();
    first += from * by[at];
    shape[at] = (to - from - 1) / stride + 1;
    if (shape[at] > 1) by[at] *= stride;
  }
  NDArray out = NDArray::Empty(shape, a.dtype());
  const float* pa = a.ptr<float>() + first;
  float* po = out.ptr<float>();
  const int64_t last = shape.back(), inner = by.back();
  ForRows(shape, by, by, [&](int64_t o, int64_t x, int64_t) {
    for (int64_t i = 0; i < last; ++i) po[o + i] = pa[x + i * inner];
  });
  return out;
}

}  // namespace

NDArray Transpose(const Attrs& attrs, const std::vector<NDArray>& in) {
  return Floats(in) ? TransposeOf(attrs, in[0]) : NDArray();
}
NDArray Softmax(const Attrs& attrs, const std::vector<NDArray>& in) {
  return Floats(in) ? SoftmaxOf(attrs, in[0]) : NDArray();
}
NDArray LayerNorm(const Attrs& attrs, const std::vector<NDArray>& in) {
  return Floats(in) ? LayerNormOf(attrs, in[0], in[1], in[2]) : NDArray();
}
NDArray Dense(const Attrs& attrs, const std::vector<NDArray>& in) {
  return Floats(in) ? DenseOf(attrs, in[0], in[1]) : NDArray();
}
NDArray DensePack(const Attrs& attrs, const std::vector<NDArray>& in) {
  const DataType w = in[1].dtype();
  const bool narrow = w == DataType::Int(8) || w == DataType::Float(16) || w == DataType::BFloat16();
  const std::vector<NDArray> wide{in[0], narrow ? Widened(in[1]) : in[1]};
  return Floats(wide) ? DensePackOf(attrs, wide[0], wide[1]) : NDArray();
}
NDArray BatchMatmul(const Attrs& attrs, const std::vector<NDArray>& in) {
  return Floats(in) ? BatchMatmulOf(attrs, in[0], in[1]) : NDArray();
}
NDArray Sum(const Attrs& attrs, const std::vector<NDArray>& in) { return Floats(in) ? SumOf(attrs, in[0]) : NDArray(); }
NDArray StridedSlice(const Attrs& attrs, const std::vector<NDArray>& in) {
  return Floats(in) ? StridedSliceOf(attrs, in[0]) : NDArray();
}
NDArray Take(const Attrs& attrs, const std::vector<NDArray>& in) {
  return Floats({in[0]}) ? TakeOf(attrs, in[0], in[1]) : NDArray();
}

}  // namespace baton::relay::reference

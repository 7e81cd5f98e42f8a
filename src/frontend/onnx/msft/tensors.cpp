// SPDX-License-Identifier: Apache-2.0
// Operators of ONNX Runtime on shapes, indices and elements, many of them from before ONNX had them.
#include <algorithm>
#include <cmath>

#include "frontend/onnx/import/importer_impl.h"
#include "msft.h"

namespace baton::onnx {
namespace {

Values All(Ctx& c) {
  Values in;
  for (size_t i = 0; i < c.num_inputs(); ++i) in.push_back(c.Opt(i));
  return in;
}

Values Trilu(Ctx& c) { return AsOnnx(c, "Trilu", 14, All(c)); }
Values Pad(Ctx& c) { return AsOnnx(c, "Pad", 13, All(c)); }
Values GatherND(Ctx& c) { return AsOnnx(c, "GatherND", 11, All(c)); }

Values Range(Ctx& c) {
  Values in = {c.Reshape(c.T(0), {}), c.Reshape(c.T(1), {})};
  in.push_back(c.Has(2) ? c.Reshape(c.T(2), {}) : c.Scalar(in[0].dtype, 1));
  return AsOnnx(c, "Range", 11, in);
}

Values ExpandDims(Ctx& c) {
  Value x = c.T(0);
  const Dims axis = c.KnownInts(c.T(1));
  if (axis.size() != 1) c.Fail("`axis` is not one number");
  return {c.Unsqueeze(x, {c.Axis(axis[0], c.Rank(x) + 1)})};
}

/// The older form of ONNX's, whose mode "bilinear" ONNX calls "linear" by now; `AsOnnx` reads the attribute.
Values GridSample(Ctx& c) { return AsOnnx(c, "GridSample", 16, All(c)); }

/// All windows of `size` along an axis, as a last axis.
Values UnfoldTensor(Ctx& c) {
  Value x = c.T(0);
  const int rank = c.Rank(x), axis = c.Axis(c.Int("dim", -1), rank);
  const int64_t size = c.Int("size"), step = c.Int("step", 1), length = c.Dim(x, axis);
  if (size < 1 || step < 1 || size > length) c.Fail("`size` or `step` does not fit the axis");
  const int64_t count = (length - size) / step + 1;
  c.Reserve(Checked(count) * size, 16);
  Dims at;
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t k = 0; k < size; ++k) at.push_back(i * step + k);
  }
  Value y = Take(c, x, c.Reshape(c.Int64s(at), {count, size}), axis);
  Dims perm = Iota(rank + 1);
  perm.erase(perm.begin() + axis + 1);
  perm.push_back(axis + 1);
  return {c.Transpose(y, perm)};
}

/// By cofactors, which LU differs from by roundings.
Values Inverse(Ctx& c) {
  Value x = c.T(0);
  const int64_t rank = c.Rank(x);
  Dims perm = Iota(rank);
  if (rank < 2) c.Fail("the data must be matrices");
  std::swap(perm[static_cast<size_t>(rank) - 1], perm[static_cast<size_t>(rank) - 2]);
  const DataType t = ComputeType(x.dtype);
  Value wide = c.Cast(x, t);
  Value det = c.Unsqueeze(c.Call("linalg.det", {wide}), {rank - 2, rank - 1});
  return {c.Cast(c.Div(c.Transpose(c.Call("linalg.cofactor", {wide}), perm), det), x.dtype)};
}

/// Distances of all rows of A to all rows of B.
Values CDist(Ctx& c) {
  Value a = c.T(0), b = c.T(1);
  const std::string metric = c.Str("metric", "sqeuclidean");
  if (metric != "sqeuclidean" && metric != "euclidean") c.Unsupported("`metric` \"" + metric + "\"");
  Value d = c.Sub(c.Unsqueeze(a, {1}), c.Unsqueeze(b, {0}));
  Value y = Reduce(c, "sum", c.Mul(d, d), {2}, false);
  return {metric == "euclidean" ? c.Call("sqrt", {y}) : y};
}

/// Pairs of real and imaginary parts in the last axis.
Values ComplexProduct(Ctx& c, double sign) {
  Value a = c.T(0), b = c.T(1);
  const int ra = c.Rank(a) - 1, rb = c.Rank(b) - 1;
  Value ar = c.Slice(a, ra, 0, 1), ai = c.Slice(a, ra, 1, 2), br = c.Slice(b, rb, 0, 1),
        bi = c.Mul(c.Slice(b, rb, 1, 2), sign);
  return {c.Concat({c.Sub(c.Mul(ar, br), c.Mul(ai, bi)), c.Add(c.Mul(ar, bi), c.Mul(ai, br))}, std::max(ra, rb))};
}
Values ComplexMul(Ctx& c) { return ComplexProduct(c, 1); }
Values ComplexMulConj(Ctx& c) { return ComplexProduct(c, -1); }

Values IsAllFinite(Ctx& c) {
  const bool only_inf = c.Int("isinf_only", 0) != 0, only_nan = c.Int("isnan_only", 0) != 0;
  Value all;
  for (size_t i = 0; i < c.num_inputs(); ++i) {
    Value x = c.T(i), bad;
    if (!only_nan) bad = c.Call("isinf", {x});
    if (!only_inf) {
      Value nan = c.Call("isnan", {x});
      bad = bad ? c.Call("logical_or", {bad, nan}) : nan;
    }
    Value ok = c.Call("logical_not", {Reduce(c, "any", bad, Iota(c.Rank(x)), false)});
    all = all ? c.Call("logical_and", {all, ok}) : ok;
  }
  return {all};
}

/// Buckets of distances, exact ones below half of them and logarithmic ones above, as T5 has them.
Values RelativePositionBias(Ctx& c) {
  Value table = c.T(0);
  const Dims rows = c.KnownInts(c.T(1)), columns = c.KnownInts(c.T(2));
  const bool both = c.Int("is_bidirectional", 0) != 0;
  const int64_t most = c.Int("max_distance"), all = c.Dim(table, 0);
  if (rows.size() != 1 || columns.size() != 1 || rows[0] < 0 || columns[0] < 0) c.Fail("a length is not one number");
  const int64_t buckets = both ? all / 2 : all, exact = buckets / 2;
  if (exact < 1 || most <= exact) c.Fail("`max_distance` does not fit the buckets");
  c.Reserve(Checked(rows[0]) * columns[0], 16);
  Dims at;
  for (int64_t i = 0; i < rows[0]; ++i) {
    for (int64_t k = 0; k < columns[0]; ++k) {
      int64_t distance = both ? std::abs(k - i) : std::max<int64_t>(i - k, 0);
      int64_t bucket = both && k > i ? buckets : 0;
      if (distance >= exact) {
        const float scale = std::log(static_cast<float>(distance) / static_cast<float>(exact)) /
                            std::log(static_cast<float>(most) / static_cast<float>(exact));
        distance = std::min(exact + static_cast<int64_t>(scale * static_cast<float>(buckets - exact)), buckets - 1);
      }
      at.push_back(bucket + distance);
    }
  }
  Value y = Take(c, table, c.Reshape(c.Int64s(at), {rows[0], columns[0]}), 0);
  return {c.Unsqueeze(c.Transpose(y, {2, 0, 1}), {0})};
}

// ---- in ONNX's own domain, from before its first version

Values Affine(Ctx& c) { return {c.Add(c.Mul(c.T(0), c.Float("alpha", 1.0)), c.Float("beta", 0.0))}; }
Values ScaledTanh(Ctx& c) {
  return {c.Mul(c.Call("tanh", {c.Mul(c.T(0), c.Float("beta", 1.0))}), c.Float("alpha", 1.0))};
}
Values ParametricSoftplus(Ctx& c) {
  const double alpha = c.Float("alpha", 1.0), beta = c.Float("beta", 1.0);
  return {c.Mul(AsOnnx(c, "Softplus", 1, {c.Mul(c.T(0), beta)})[0], alpha)};
}

}  // namespace

void AddMsftTensors(OpTable* table) {
  for (const OpRow& row : {
           OpRow{kMsft, "Trilu", Trilu},
           {kMsft, "Pad", Pad, RankOfFirst},
           {kMsft, "GatherND", GatherND},
           {kMsft, "Range", Range},
           {kMsft, "ExpandDims", ExpandDims},
           {kMsft, "GridSample", GridSample},
           {kMsft, "UnfoldTensor", UnfoldTensor},
           {kMsft, "Inverse", Inverse},
           {kMsft, "CDist", CDist},
           {kMsft, "ComplexMul", ComplexMul},
           {kMsft, "ComplexMulConj", ComplexMulConj},
           {kMsft, "IsAllFinite", IsAllFinite},
           {kMsft, "RelativePositionBias", RelativePositionBias},
           {"", "Affine", Affine},
           {"", "ScaledTanh", ScaledTanh},
           {"", "ParametricSoftplus", ParametricSoftplus},
       }) {
    table->push_back(row);
  }
}

}  // namespace baton::onnx

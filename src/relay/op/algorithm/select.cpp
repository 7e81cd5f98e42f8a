// SPDX-License-Identifier: Apache-2.0
// Operators whose result's length depends on values, and determinants; on the host.
#include <baton/relay/op/algorithm.h>
#include <baton/runtime/threading.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "../gradient.h"
#include "../host.h"

namespace baton::relay {
namespace {

struct UniqueAttrs : AttrsNode<UniqueAttrs> {
  static constexpr auto _type_key = "relay.attrs.UniqueAttrs";
  bool is_sorted = true;
  PrimExpr axis;
  static constexpr void Describe(auto& d) {
    d(F<&UniqueAttrs::is_sorted>, "Whether values rise; else they come as they first occur.");
    d(F<&UniqueAttrs::axis>, "Dimension whose slices are compared; None: the elements.");
  }
};

struct CompressAttrs : AttrsNode<CompressAttrs> {
  static constexpr auto _type_key = "relay.attrs.CompressAttrs";
  PrimExpr axis;
  static constexpr void Describe(auto& d) {
    d(F<&CompressAttrs::axis>, "Dimension to select along; None: of the flattened data.");
  }
};

bool IsTrue(const NDArray& a, int64_t i) { return a.dtype().is_floating() ? !(a.GetDouble(i) == 0) : a.GetInt(i) != 0; }

// ---- unique
Type UniqueType(const UniqueAttrs& a, const TypeArgs& in) {
  Shape values{UnknownDim()};
  if (HasValue(a.axis)) {
    in.MinRank(0, 1, "R1");
    values = in.shape(0);
    values.Set(in.Axis(ValueOf(a.axis), in.ndim(0)), UnknownDim());
  }
  Type index = TensorType(Shape{UnknownDim()}, DataType::Int(64)), inverse = index;
  if (HasValue(a.axis))
    inverse = TensorType(Shape{in.shape(0)[in.Axis(ValueOf(a.axis), in.ndim(0))]}, DataType::Int(64));
  if (!HasValue(a.axis)) inverse = TensorType(Shape{MakeDim(ProductOf(Dims(in.shape(0))))}, DataType::Int(64));
  return TupleType(Array<Type>{TensorType(values, in.dtype(0)), index, inverse, index});
}
NDArrays HostUnique(const Attrs& attrs, const NDArrays& in) {
  const auto& a = AttrsAs<UniqueAttrs>(attrs);
  NDArray x = in[0].Contiguous();
  Ints shape = x.shape();
  int64_t axis = 0;
  if (HasValue(a.axis)) {
    axis = NormalizeAxis(ValueOf(a.axis), x->ndim, "unique");
  } else {
    shape = {x.numel()};
  }
  Rows rows(shape, axis);
  Elements e(x);
  auto compare = [&](int64_t p, int64_t q) {  // of two slices, row-major
    for (int64_t o = 0; o < rows.outer; ++o) {
      for (int64_t i = 0; i < rows.inner; ++i) {
        if (int c = e.Compare(rows.At(o, p, i), rows.At(o, q, i))) return c;
      }
    }
    return 0;
  };
  std::vector<int64_t> order(rows.n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t p, int64_t q) { return compare(p, q) < 0; });
  // Groups of equal slices; each is identified by its first place.
  std::vector<int64_t> first, count, group(rows.n);
  for (int64_t k = 0; k < rows.n; ++k) {
    if (k == 0 || compare(order[k - 1], order[k]) != 0) first.push_back(order[k]), count.push_back(0);
    group[order[k]] = static_cast<int64_t>(first.size()) - 1;
    ++count.back();
  }
  int64_t m = first.size();
  std::vector<int64_t> rank(m), place(m);  // rank: groups in the order of the result
  std::iota(rank.begin(), rank.end(), 0);
  if (!a.is_sorted) std::sort(rank.begin(), rank.end(), [&](int64_t p, int64_t q) { return first[p] < first[q]; });
  for (int64_t k = 0; k < m; ++k) place[rank[k]] = k;
  Ints out_shape = shape;
  out_shape[axis] = m;
  NDArray values = NDArray::Empty(out_shape, x.dtype()), indices = NDArray::Empty({m}, DataType::Int(64));
  NDArray inverse = NDArray::Empty({rows.n}, DataType::Int(64)), counts = NDArray::Empty({m}, DataType::Int(64));
  for (int64_t k = 0; k < m; ++k) {
    I64(indices)[k] = first[rank[k]];
    I64(counts)[k] = count[rank[k]];
    for (int64_t o = 0; o < rows.outer; ++o) {
      for (int64_t i = 0; i < rows.inner; ++i)
        CopyElement(x, rows.At(o, first[rank[k]], i), values, (o * m + k) * rows.inner + i);
    }
  }
  for (int64_t k = 0; k < rows.n; ++k) I64(inverse)[k] = place[group[k]];
  return {values, indices, inverse, counts};
}

// ---- argwhere, compress
Type ArgwhereType(const TypeArgs& in) {
  return TensorType(Shape{UnknownDim(), PrimExpr(in.ndim(0))}, DataType::Int(64));
}
Type NonzeroType(const TypeArgs& in) {
  return TensorType(Shape{PrimExpr(in.ndim(0)), UnknownDim()}, DataType::Int(64));
}

/// Elements of a row that are looked at together.
constexpr int64_t kRun = 4096;
/// Runs in a unit of parallel work.
constexpr int64_t kRunGrain = 8;

/// Finds the elements that are not 0: counts those of each run, which then knows where its own go.
/// `is_true(i)`: of a flat index. `put(to, row, columns, n)`: n of them, from the to-th on, in a row.
template <class IsTrueAt, class Put, class Make>
void FindTrue(const Ints& shape, IsTrueAt is_true, Make make, Put put) {
  const int64_t last = shape.empty() ? 1 : shape.back();
  int64_t rows = 1;
  for (size_t d = 0; d + 1 < shape.size(); ++d) rows *= shape[d];
  const int64_t per_row = std::max<int64_t>(1, (last + kRun - 1) / kRun), runs = rows * per_row;
  const int64_t grain = std::max<int64_t>(1, kRunGrain * kRun / std::max<int64_t>(1, std::min(last, kRun)));
  std::vector<int64_t> begin(runs + 1);
  auto range = [&](int64_t run, int64_t* row, int64_t* from, int64_t* to) {
    *row = run / per_row, *from = run % per_row * kRun, *to = std::min(last, *from + kRun);
  };
  runtime::threading::ParallelFor(runs, grain, [&](int64_t first, int64_t end) {
    for (int64_t run = first; run < end; ++run) {
      int64_t row, from, to, n = 0;
      range(run, &row, &from, &to);
      for (int64_t c = from; c < to; ++c) n += is_true(row * last + c);
      begin[run + 1] = n;
    }
  });
  for (int64_t run = 0; run < runs; ++run) begin[run + 1] += begin[run];
  make(begin[runs]);
  runtime::threading::ParallelFor(runs, grain, [&](int64_t first, int64_t end) {
    std::vector<int64_t> columns(kRun + 1);
    for (int64_t run = first; run < end; ++run) {
      if (begin[run + 1] == begin[run]) continue;
      int64_t row, from, to, n = 0;
      range(run, &row, &from, &to);
      for (int64_t c = from; c < to; ++c) {  // without a branch, which would be guessed
        columns[n] = c;
        n += is_true(row * last + c);
      }
      put(begin[run], row, columns.data(), n);
    }
  });
}
/// Calls run(is_true) with a look-up for the dtype.
template <class Run>
void WithTruth(const NDArray& x, Run run) {
  const DataType t = x.dtype();
  auto bits = [&]<class U>(const U* p) {
    // What is left of -0 without its sign is 0.
    const U mask = t.is_floating() ? static_cast<U>(static_cast<U>(~U{0}) >> 1) : static_cast<U>(~U{0});
    run([p, mask](int64_t i) -> int64_t { return (p[i] & mask) != 0; });
  };
  const bool plain = t.is_integral() || t.is_bool() || t.is_float() || t.is_bfloat16();
  switch (plain && t.bits() % 8 == 0 ? t.bits() : 0) {
    case 8:
      return bits(static_cast<const uint8_t*>(x.data()));
    case 16:
      return bits(static_cast<const uint16_t*>(x.data()));
    case 32:
      return bits(static_cast<const uint32_t*>(x.data()));
    case 64:
      return bits(static_cast<const uint64_t*>(x.data()));
    default:
      run([&x](int64_t i) -> int64_t { return IsTrue(x, i); });
  }
}
/// Index tuples of the elements that are not 0, as rows, or as columns.
NDArray TrueIndices(const NDArray& data, bool as_columns) {
  const NDArray x = data.Contiguous();
  const Ints shape = x.shape();
  const int64_t rank = x->ndim;
  NDArray out;
  int64_t found = 0;
  WithTruth(x, [&](auto is_true) {
    FindTrue(
        shape, is_true,
        [&](int64_t n) {
          found = n;
          out = NDArray::Empty(as_columns ? Ints{rank, n} : Ints{n, rank}, DataType::Int(64));
        },
        [&](int64_t to, int64_t row, const int64_t* columns, int64_t n) {
          for (int64_t d = rank - 1; d >= 0; --d) {
            int64_t* p = I64(out) + (as_columns ? d * found + to : to * rank + d);
            const int64_t step = as_columns ? 1 : rank, at = d == rank - 1 ? 0 : row % shape[d];
            for (int64_t k = 0; k < n; ++k) p[k * step] = d == rank - 1 ? columns[k] : at;
            if (d < rank - 1) row /= shape[d];
          }
        });
  });
  return out;
}
NDArrays HostArgwhere(const Attrs&, const NDArrays& in) { return {TrueIndices(in[0], false)}; }
NDArrays HostNonzero(const Attrs&, const NDArrays& in) { return {TrueIndices(in[0], true)}; }
Type CompressType(const CompressAttrs& a, const TypeArgs& in) {
  in.Bool(1, "R1");
  in.Rank(1, 1, "R1");
  Shape out{UnknownDim()};
  if (HasValue(a.axis)) {
    in.MinRank(0, 1, "R2");
    out = in.shape(0);
    out.Set(in.Axis(ValueOf(a.axis), in.ndim(0)), UnknownDim());
  }
  return TensorType(out, in.dtype(0));
}
NDArrays HostCompress(const Attrs& attrs, const NDArrays& in) {
  const auto& a = AttrsAs<CompressAttrs>(attrs);
  NDArray x = in[0].Contiguous(), c = in[1].Contiguous();
  Ints shape = x.shape();
  int64_t axis = 0;
  if (HasValue(a.axis)) {
    axis = NormalizeAxis(ValueOf(a.axis), x->ndim, "compress");
  } else {
    shape = {x.numel()};
  }
  Rows rows(shape, axis);
  std::vector<int64_t> keep;
  for (int64_t k = 0; k < rows.n && k < c.numel(); ++k) {
    if (IsTrue(c, k)) keep.push_back(k);
  }
  int64_t m = keep.size();
  shape[axis] = m;
  NDArray out = NDArray::Empty(shape, x.dtype());
  const size_t bytes = static_cast<size_t>(rows.inner * x.dtype().bytes());
  for (int64_t o = 0; o < rows.outer; ++o) {
    for (int64_t k = 0; k < m; ++k)
      std::copy_n(static_cast<const char*>(x.data()) + (o * rows.n + keep[k]) * bytes, bytes,
                  static_cast<char*>(out.data()) + (o * m + k) * bytes);
  }
  return {out};
}

// ---- det
Type DetType(const TypeArgs& in) {
  in.Floating(0, "R1");
  in.MinRank(0, 2, "R2");
  int64_t n = in.ndim(0);
  if (!in.Same(in.shape(0)[n - 1], in.shape(0)[n - 2])) in.Fail("R2", in.Show(0) + " holds no square matrices");
  return TensorType(Shape(in.shape(0).begin(), in.shape(0).begin() + (n - 2)), in.dtype(0));
}
NDArrays HostDet(const Attrs&, const NDArrays& in) {
  NDArray x = in[0].Contiguous();
  Ints shape = x.shape();
  int64_t n = shape.back();
  if (shape[shape.size() - 2] != n) throw RuntimeError("linalg.det: the matrices are not square");
  NDArray out = NDArray::Empty(Ints(shape.begin(), shape.end() - 2), x.dtype());
  std::vector<double> all = ToDoubles(x), m(n * n);
  for (int64_t b = 0, batch = out.numel(); b < batch; ++b) {
    std::copy_n(all.begin() + b * n * n, n * n, m.begin());
    double det = 1;
    for (int64_t c = 0; c < n; ++c) {  // Gaussian elimination with the largest pivot
      int64_t pivot = c;
      for (int64_t r = c + 1; r < n; ++r) {
        if (std::fabs(m[r * n + c]) > std::fabs(m[pivot * n + c])) pivot = r;
      }
      if (pivot != c) {
        std::swap_ranges(m.begin() + c * n, m.begin() + (c + 1) * n, m.begin() + pivot * n);
        det = -det;
      }
      det *= m[c * n + c];
      if (m[c * n + c] == 0) break;
      for (int64_t r = c + 1; r < n; ++r) {
        double f = m[r * n + c] / m[c * n + c];
        for (int64_t k = c; k < n; ++k) m[r * n + k] -= f * m[c * n + k];
      }
    }
    out.SetDouble(b, det);
  }
  return {out};
}

// ---- cofactor
Type CofactorType(const TypeArgs& in) {
  DetType(in);
  return in.type(0);
}
/// Rows and columns are exchanged so that P A Q = L U, each pivot the largest remaining element. Cofactors go
/// through products: cof A = +-P^T (adj(U) L^-1)^T Q^T, and adj(U) needs no division by the last pivot. So a matrix
/// that is singular by that one has its cofactors; if an earlier pivot is 0, they all are.
void Cofactors(std::vector<double>* matrix, int64_t n) {
  std::vector<double>& m = *matrix;
  std::vector<int64_t> rows(n), columns(n);
  std::iota(rows.begin(), rows.end(), 0);
  std::iota(columns.begin(), columns.end(), 0);
  double sign = 1, minor = 1;  // minor: the product of all pivots but the last
  for (int64_t c = 0; c + 1 < n; ++c) {
    int64_t row = c, column = c;
    for (int64_t r = c; r < n; ++r) {
      for (int64_t k = c; k < n; ++k) {
        if (std::fabs(m[r * n + k]) > std::fabs(m[row * n + column])) row = r, column = k;
      }
    }
    if (row != c) {
      std::swap_ranges(m.begin() + c * n, m.begin() + (c + 1) * n, m.begin() + row * n);
      std::swap(rows[c], rows[row]);
      sign = -sign;
    }
    if (column != c) {
      for (int64_t r = 0; r < n; ++r) std::swap(m[r * n + c], m[r * n + column]);
      std::swap(columns[c], columns[column]);
      sign = -sign;
    }
    double pivot = m[c * n + c];
    minor *= pivot;
    if (pivot == 0) {
      std::fill(m.begin(), m.end(), 0);
      return;
    }
    for (int64_t r = c + 1; r < n; ++r) {  // L stays below the diagonal
      double f = m[r * n + c] /= pivot;
      for (int64_t k = c + 1; k < n; ++k) m[r * n + k] -= f * m[c * n + k];
    }
  }
  std::vector<double> out(n * n), z(n);
  for (int64_t j = 0; j < n; ++j) {  // column j of adj(U) L^-1
    for (int64_t r = 0; r < n; ++r) {
      z[r] = r == j;
      for (int64_t k = j; k < r; ++k) z[r] -= m[r * n + k] * z[k];
    }
    double last = z[n - 1];
    for (int64_t r = 0; r + 1 < n; ++r) z[r] = m[n * n - 1] * z[r] - m[r * n + n - 1] * last;
    for (int64_t r = n - 2; r >= 0; --r) {
      for (int64_t k = r + 1; k + 1 < n; ++k) z[r] -= m[r * n + k] * z[k];
      z[r] /= m[r * n + r];
    }
    for (int64_t r = 0; r < n; ++r) out[rows[j] * n + columns[r]] = sign * minor * z[r];
  }
  m = std::move(out);
}
NDArrays HostCofactor(const Attrs&, const NDArrays& in) {
  NDArray x = in[0].Contiguous();
  Ints shape = x.shape();
  int64_t n = shape.back();
  if (shape[shape.size() - 2] != n) throw RuntimeError("linalg.cofactor: the matrices are not square");
  NDArray out = NDArray::Empty(shape, x.dtype());
  std::vector<double> all = ToDoubles(x), m(n * n);
  for (int64_t at = 0, end = out.numel(); at < end; at += n * n) {
    std::copy_n(all.begin() + at, n * n, m.begin());
    Cofactors(&m, n);
    for (int64_t k = 0; k < n * n; ++k) out.SetDouble(at + k, m[k]);
  }
  return {out};
}

constexpr OpGradient kNoWayBack = NoGradient("it selects or orders on the host, where adjoints have no way back");

}  // namespace

namespace gradient {
namespace {

Grads DetBack(const Call& call, const Expr& grad) {
  int64_t stack = At(call, grad).ndim(0) - 2;
  return {Multiply(ExpandDims(grad, stack, 2), MakeCall(op::cofactor, {call->args[0]}))};
}

}  // namespace
}  // namespace gradient

const Op op::unique = DefineOp({
    .name = "unique",
    .doc =
        "Values without repetition, the first place of each, which of them each element is, and how often each occurs.",
    .inputs = {{"data", "R1: rank 1 or more, unless axis=None."}},
    .output = "A tuple (values, indices, inverse, counts); the last three int64.",
    .attrs = TypeOf<UniqueAttrs>,
    .type_rel = Rel<"unique", UniqueType>,
    .host = HostUnique,
    .gradient = kNoWayBack,
    .source = "ONNX Unique-11",
});
const Op op::argwhere = DefineOp({
    .name = "argwhere",
    .doc = "Indices of the elements that are not 0, row-major.",
    .inputs = {{"condition", "Any tensor."}},
    .output = "(number found, rank), int64.",
    .type_rel = Rel<"argwhere", ArgwhereType>,
    .host = HostArgwhere,
    .source = "NumPy",
});
const Op op::nonzero = DefineOp({
    .name = "nonzero",
    .doc = "Indices of the elements that are not 0, row-major: a row for each dimension.",
    .inputs = {{"data", "Any tensor."}},
    .output = "(rank, number found), int64: argwhere's, transposed.",
    .type_rel = Rel<"nonzero", NonzeroType>,
    .host = HostNonzero,
    .source = "ONNX NonZero-13",
});
const Op op::compress = DefineOp({
    .name = "compress",
    .doc = "Slices along an axis where the condition is true.",
    .inputs = {{"data", "R2: rank 1 or more, unless axis=None."},
               {"condition", "R1: bool, rank 1; slices behind its end are left out."}},
    .output = "`data` with a shorter axis.",
    .attrs = TypeOf<CompressAttrs>,
    .type_rel = Rel<"compress", CompressType>,
    .host = HostCompress,
    .gradient = kNoWayBack,
    .source = "ONNX Compress-11",
});
const Op op::det = DefineOp({
    .name = "linalg.det",
    .doc = "Determinants, computed in float64.",
    .inputs = {{"data", "(..., n, n). R1: floating dtype. R2: square matrices."}},
    .output = "The leading dimensions.",
    .type_rel = Rel<"linalg.det", DetType>,
    .host = HostDet,
    .gradient = gradient::DetBack,
    .source = "ONNX Det-22",
});
const Op op::cofactor = DefineOp({
    .name = "linalg.cofactor",
    .doc = "Matrices of cofactors, which are the gradients of determinants, computed in float64; of singular ones too.",
    .inputs = {{"data", "(..., n, n). R1: floating dtype. R2: square matrices."}},
    .output = "Shape and dtype of `data`.",
    .type_rel = Rel<"linalg.cofactor", CofactorType>,
    .host = HostCofactor,
    .gradient = NoGradient(gradient::kNoRuleYet),
    .source = "linear algebra",
});

}  // namespace baton::relay

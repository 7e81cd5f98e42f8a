// SPDX-License-Identifier: Apache-2.0
// ONNX's reductions and scans along axes that come as values.
#include <algorithm>
#include <cmath>
#include <limits>

#include "host/functions.h"
#include "host/onnx_node.h"

namespace baton::host {
namespace {

enum class Kind { kSum, kProd, kMax, kMin, kMean, kL1, kL2, kSumSquare, kLogSum, kLogSumExp };

Kind KindOf(const OnnxNode& node) {
  static constexpr const char* kNames[] = {"Sum", "Prod", "Max",       "Min",    "Mean",
                                           "L1",  "L2",   "SumSquare", "LogSum", "LogSumExp"};
  for (int k = 0; k < 10; ++k) {
    if (node.params().function() == std::string("onnx.Reduce") + kNames[k]) return static_cast<Kind>(k);
  }
  node.Fail("no reduction");
}

/// Steps in elements through a tensor, of some of its dimensions.
struct Walk {
  Ints extents, strides;
  int64_t Count() const {
    int64_t n = 1;
    for (int64_t e : extents) n *= e;
    return n;
  }
  /// f(offset) for each place.
  template <class F>
  void ForEach(F f) const {
    const int64_t n = Count();
    Ints at(extents.size());
    int64_t offset = 0;
    for (int64_t k = 0; k < n; ++k) {
      f(offset);
      for (size_t d = extents.size(); d-- > 0;) {
        offset += strides[d];
        if (++at[d] < extents[d]) break;
        offset -= strides[d] * extents[d];
        at[d] = 0;
      }
    }
  }
};

/// The largest or smallest value of a type, where nothing is reduced.
double EmptyReal(bool lowest) { return lowest ? -INFINITY : INFINITY; }
int64_t EmptyWhole(DataType t, bool lowest) {
  if (t.is_bool()) return !lowest;
  const int bits = t.bits();
  if (t.is_uint()) return lowest ? 0 : static_cast<int64_t>(bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1);
  const int64_t top = bits == 64 ? INT64_MAX : (int64_t{1} << (bits - 1)) - 1;
  return lowest ? -top - 1 : top;
}

double ReduceReal(Kind kind, const std::vector<double>& x, int64_t base, const Walk& inner) {
  const int64_t n = inner.Count();
  double v = kind == Kind::kProd ? 1 : 0;
  if (kind == Kind::kMax || kind == Kind::kMin || kind == Kind::kLogSumExp) {
    v = EmptyReal(kind != Kind::kMin);
    inner.ForEach([&](int64_t i) {
      const double e = x[static_cast<size_t>(base + i)];
      if (e != e || (kind == Kind::kMin ? e < v : e > v)) v = v != v ? v : e;
    });
    if (kind != Kind::kLogSumExp || !std::isfinite(v)) return v;
    double sum = 0;
    inner.ForEach([&](int64_t i) { sum += std::exp(x[static_cast<size_t>(base + i)] - v); });
    return v + std::log(sum);
  }
  inner.ForEach([&](int64_t i) {
    const double e = x[static_cast<size_t>(base + i)];
    switch (kind) {
      case Kind::kProd:
        v *= e;
        break;
      case Kind::kL1:
        v += std::fabs(e);
        break;
      case Kind::kL2:
      case Kind::kSumSquare:
        v += e * e;
        break;
      default:
        v += e;
    }
  });
  if (kind == Kind::kMean) return v / static_cast<double>(n);
  if (kind == Kind::kL2) return std::sqrt(v);
  return kind == Kind::kLogSum ? std::log(v) : v;
}

/// Integers wrap around, as in kernels; what has a root or a logarithm is computed in float64.
int64_t ReduceWhole(Kind kind, const NDArray& x, int64_t base, const Walk& inner) {
  const DataType t = x.dtype();
  if (kind == Kind::kMax || kind == Kind::kMin) {
    const bool largest = kind == Kind::kMax;
    int64_t v = EmptyWhole(t, largest);
    inner.ForEach([&](int64_t i) {
      const int64_t e = x.GetInt(base + i);
      const bool less = t.is_uint() ? static_cast<uint64_t>(v) < static_cast<uint64_t>(e) : v < e;
      if (e != v && less == largest) v = e;
    });
    return v;
  }
  uint64_t v = kind == Kind::kProd ? 1 : 0;
  inner.ForEach([&](int64_t i) {
    const auto e = static_cast<uint64_t>(x.GetInt(base + i));
    if (kind == Kind::kProd) {
      v *= e;
    } else if (kind == Kind::kL1) {
      v += !t.is_uint() && static_cast<int64_t>(e) < 0 ? -e : e;
    } else {
      v += kind == Kind::kL2 || kind == Kind::kSumSquare ? e * e : e;
    }
  });
  auto whole = static_cast<int64_t>(v);
  switch (kind) {
    case Kind::kMean: {
      const int64_t n = inner.Count();
      if (n == 0) return 0;
      return t.is_uint() ? static_cast<int64_t>(v / static_cast<uint64_t>(n)) : whole / n;
    }
    case Kind::kL2:
      return static_cast<int64_t>(std::sqrt(static_cast<double>(whole)));
    case Kind::kLogSum:
      return static_cast<int64_t>(std::max(std::log(static_cast<double>(whole)), -9e18));
    default:
      return whole;
  }
}

Arrays OnnxReduce(const Params& p, const Arrays& in) {
  const OnnxNode node(p, in);
  const Kind kind = KindOf(node);
  const NDArray& x = node.Get(0);
  const Ints shape = x.shape();
  const auto rank = static_cast<int64_t>(shape.size());
  const bool keep = node.Int("keepdims", 1) != 0, whole = !x.dtype().is_floating();
  Ints axes = node.IntsOf(1, "axes");
  const bool nothing = axes.empty() && node.Int("noop_with_empty_axes", 0) != 0;
  std::vector<bool> gone(shape.size(), axes.empty() && !nothing);
  for (int64_t a : axes) {
    a = node.Axis(a, rank);
    if (gone[static_cast<size_t>(a)]) node.Fail("`axes` names an axis twice");
    gone[static_cast<size_t>(a)] = true;
  }
  Walk outer, inner;
  Ints out_shape;
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0; stride *= shape[d]) {
    Walk& w = gone[d] ? inner : outer;
    w.extents.insert(w.extents.begin(), shape[d]);
    w.strides.insert(w.strides.begin(), stride);
  }
  for (size_t d = 0; d < shape.size(); ++d) {
    if (!gone[d] || keep) out_shape.push_back(gone[d] ? 1 : shape[d]);
  }
  const bool plain =
      kind == Kind::kSum || kind == Kind::kProd || kind == Kind::kMax || kind == Kind::kMin || kind == Kind::kMean;
  if (nothing && plain) return {x.Copy()};
  if (whole && kind == Kind::kLogSumExp) node.Fail("the data is of integers");
  NDArray out = NDArray::Empty(out_shape, x.dtype());
  const std::vector<double> real = whole ? std::vector<double>() : ToDoubles(x);
  int64_t to = 0;
  outer.ForEach([&](int64_t base) {
    if (whole) {
      out.SetInt(to++, ReduceWhole(kind, x, base, inner));
    } else {
      out.SetDouble(to++, ReduceReal(kind, real, base, inner));
    }
  });
  return {out};
}

Arrays OnnxCumulate(const Params& p, const Arrays& in) {
  const OnnxNode node(p, in);
  const NDArray& x = node.Get(0);
  const bool exclusive = node.Int("exclusive", 0) != 0, reverse = node.Int("reverse", 0) != 0;
  const bool product = p.function() == "onnx.CumProd", whole = !x.dtype().is_floating();
  const Rows rows(x.shape(), node.Axis(node.IntOf(1), x->ndim));
  NDArray out = NDArray::Empty(x.shape(), x.dtype());
  for (int64_t o = 0; o < rows.outer; ++o) {
    for (int64_t i = 0; i < rows.inner; ++i) {
      double real = product ? 1 : 0;
      uint64_t count = product ? 1 : 0;
      for (int64_t k = 0; k < rows.n; ++k) {
        const int64_t at = rows.At(o, reverse ? rows.n - 1 - k : k, i);
        auto put = [&] { whole ? out.SetInt(at, static_cast<int64_t>(count)) : out.SetDouble(at, real); };
        if (exclusive) put();
        if (whole) {
          const auto e = static_cast<uint64_t>(x.GetInt(at));
          count = product ? count * e : count + e;
        } else {
          const double e = x.GetDouble(at);
          real = product ? real * e : real + e;
        }
        if (!exclusive) put();
      }
    }
  }
  return {out};
}

const Register kReductions[] = {{"onnx.ReduceSum", -1, OnnxReduce},    {"onnx.ReduceProd", -1, OnnxReduce},
                                {"onnx.ReduceMax", -1, OnnxReduce},    {"onnx.ReduceMin", -1, OnnxReduce},
                                {"onnx.ReduceMean", -1, OnnxReduce},   {"onnx.ReduceL1", -1, OnnxReduce},
                                {"onnx.ReduceL2", -1, OnnxReduce},     {"onnx.ReduceSumSquare", -1, OnnxReduce},
                                {"onnx.ReduceLogSum", -1, OnnxReduce}, {"onnx.ReduceLogSumExp", -1, OnnxReduce},
                                {"onnx.CumSum", -1, OnnxCumulate},     {"onnx.CumProd", -1, OnnxCumulate}};

}  // namespace
}  // namespace baton::host

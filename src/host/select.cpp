// SPDX-License-Identifier: Apache-2.0
// Results whose length depends on values.
#include <baton/runtime/threading.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "host/arrays.h"
#include "host/functions.h"

namespace baton::host {
namespace {

/// Elements of a row that are looked at together.
constexpr int64_t kRun = 4096;
/// Runs in a unit of parallel work.
constexpr int64_t kRunGrain = 8;
/// Bytes that are worth a second thread to copy.
constexpr size_t kCopyGrain = 512 << 10;

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
    // Without its sign, -0 is 0.
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
  const NDArray& x = data;
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

}  // namespace

Arrays Unique(const Params& p, const Arrays& in) {
  const NDArray& x = in[0];
  const bool sorted = p.Bool("is_sorted");
  Ints shape = x.shape();
  int64_t axis = 0;
  if (p.Has("axis")) {
    axis = Axis(p, "axis", shape);
  } else {
    shape = {x.numel()};
  }
  Rows rows(shape, axis);
  Elements e(x);
  auto compare = [&](int64_t k, int64_t m) {  // of two slices, row-major
    for (int64_t o = 0; o < rows.outer; ++o) {
      for (int64_t i = 0; i < rows.inner; ++i) {
        if (int c = e.Compare(rows.At(o, k, i), rows.At(o, m, i))) return c;
      }
    }
    return 0;
  };
  std::vector<int64_t> order(rows.n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) { return compare(i, j) < 0; });
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
  if (!sorted) std::sort(rank.begin(), rank.end(), [&](int64_t i, int64_t j) { return first[i] < first[j]; });
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
Arrays Argwhere(const Params&, const Arrays& in) { return {TrueIndices(in[0], false)}; }
Arrays Nonzero(const Params&, const Arrays& in) { return {TrueIndices(in[0], true)}; }
Arrays Compress(const Params& p, const Arrays& in) {
  const NDArray &x = in[0], &c = in[1];
  Ints shape = x.shape();
  int64_t axis = 0;
  if (p.Has("axis")) {
    axis = Axis(p, "axis", shape);
  } else {
    shape = {x.numel()};
  }
  Rows rows(shape, axis);
  const int64_t flags = std::min(rows.n, c.numel());
  std::vector<int64_t> keep(static_cast<size_t>(flags) + 1);
  int64_t m = 0;
  WithTruth(c, [&](auto is_true) {
    for (int64_t k = 0; k < flags; ++k) {  // without a branch, which would be guessed
      keep[static_cast<size_t>(m)] = k;
      m += is_true(k);
    }
  });
  shape[axis] = m;
  NDArray out = NDArray::Empty(shape, x.dtype());
  const size_t bytes = static_cast<size_t>(rows.inner * x.dtype().bytes());
  const auto* from = static_cast<const char*>(x.data());
  auto* to = static_cast<char*>(out.data());
  const auto grain = static_cast<int64_t>(kCopyGrain / std::max<size_t>(bytes, 1)) + 1;
  runtime::threading::ParallelFor(rows.outer * m, grain, [&](int64_t begin, int64_t end) {
    int64_t o = begin / m, k = begin % m;
    for (int64_t at = begin; at < end; ++at) {
      std::memcpy(to + static_cast<size_t>(at) * bytes,
                  from + static_cast<size_t>(o * rows.n + keep[static_cast<size_t>(k)]) * bytes, bytes);
      if (++k == m) k = 0, ++o;
    }
  });
  return {out};
}

namespace {
const Register kSelecting[] = {
    {"unique", 1, Unique}, {"argwhere", 1, Argwhere}, {"nonzero", 1, Nonzero}, {"compress", 2, Compress}};
}
}  // namespace baton::host

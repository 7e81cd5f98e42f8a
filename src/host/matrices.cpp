// SPDX-License-Identifier: Apache-2.0
// Determinants and cofactors, computed in float64.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "host/arrays.h"
#include "host/functions.h"

namespace baton::host {
namespace {

/// The shape of a stack of square matrices.
Ints Square(const Params& p, const Arrays& in) {
  Ints shape = in[0].shape();
  const size_t n = shape.size();
  if (n < 2 || shape[n - 1] != shape[n - 2]) p.Fail("the matrices are not square");
  return shape;
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

}  // namespace

Arrays Det(const Params& p, const Arrays& in) {
  const NDArray& x = in[0];
  Ints shape = Square(p, in);
  int64_t n = shape.back();
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
Arrays Cofactor(const Params& p, const Arrays& in) {
  const NDArray& x = in[0];
  Ints shape = Square(p, in);
  int64_t n = shape.back();
  NDArray out = NDArray::Empty(shape, x.dtype());
  std::vector<double> all = ToDoubles(x), m(n * n);
  for (int64_t at = 0, end = out.numel(); at < end; at += n * n) {
    std::copy_n(all.begin() + at, n * n, m.begin());
    Cofactors(&m, n);
    for (int64_t k = 0; k < n * n; ++k) out.SetDouble(at + k, m[k]);
  }
  return {out};
}

namespace {
const Register kMatrices[] = {{"linalg.det", 1, Det}, {"linalg.cofactor", 1, Cofactor}};
}
}  // namespace baton::host

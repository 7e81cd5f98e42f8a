// SPDX-License-Identifier: Apache-2.0
#include <baton/te/tensor.h>
#include <baton/topi/window.h>

#include <algorithm>

namespace baton::topi {

/// Longer than any dimension, and formulas with it stay far from the end of 64 bits.
constexpr int64_t kFarStride = int64_t{1} << 40;

Window MakeWindow(const PrimExpr& n, int64_t begin, int64_t end, int64_t stride) {
  if (stride == INT64_MIN) stride = -INT64_MAX;  // so that it can be negated; no dimension is that long
  if (const int64_t* known = tir::as_const_int(n)) {
    int64_t m = *known, lo = stride > 0 ? 0 : -1, hi = stride > 0 ? m : m - 1;
    auto clip = [&](int64_t v) {
      if (v < 0) v = v < -m ? lo : v + m;
      return v < lo ? lo : v > hi ? hi : v;
    };
    int64_t b = clip(begin), e = clip(end);
    int64_t count = stride > 0 ? (e <= b ? 0 : (e - b - 1) / stride + 1) : (e >= b ? 0 : (b - e - 1) / -stride + 1);
    return {PrimExpr(count == 0 ? 0 : b), PrimExpr(count), count <= 1 ? 1 : stride};
  }
  stride = std::clamp(stride, -kFarStride, kFarStride);
  if (begin == 0 && end == INT64_MAX && stride == 1) return {PrimExpr(0), n, 1};
  PrimExpr lo = stride > 0 ? 0 : -1, hi = stride > 0 ? n : n - PrimExpr(1);
  auto clip = [&](int64_t v) {
    if (v >= (int64_t{1} << 40)) return hi;
    if (v >= 0) return min(PrimExpr(v), hi);
    if (v < -(int64_t{1} << 40)) return lo;
    return max(n + PrimExpr(v), lo);
  };
  PrimExpr b = clip(begin), e = clip(end), one = 1;
  // The last ones.
  if (stride == 1 && begin < 0 && e.same_as(n) && begin >= -(int64_t{1} << 40)) return {b, min(n, PrimExpr(-begin)), 1};
  PrimExpr span = stride > 0 ? e - b : b - e;
  int64_t step = stride > 0 ? stride : -stride;
  return {b, max(floordiv(span - one, PrimExpr(step)) + one, PrimExpr(0)), stride};
}

Window OpenWindow(const PrimExpr& n, const PrimExpr& begin, const PrimExpr& end, bool size, int64_t stride) {
  auto place = [&](const PrimExpr& e) {
    const int64_t* known = tir::as_const_int(e);
    return known && *known > (int64_t{1} << 40) ? n : known && *known < 0 ? n + e : e;
  };
  const int64_t* count = tir::as_const_int(end);
  const PrimExpr b = place(begin), e = !size ? place(end) : count && *count < 0 ? n : b + end;
  const PrimExpr span = e - b;
  stride = std::min(stride, kFarStride);
  return {b, stride == 1 ? span : floordiv(span + PrimExpr(stride - 1), PrimExpr(stride)), stride};
}

PrimExpr MirrorIndex(PrimExpr i, const PrimExpr& n, Border border) {
  PrimExpr zero = 0, one = 1, two = 2;
  switch (border) {
    case Border::kEdge:
      return max(min(i, n - one), zero);
    case Border::kWrap:
      return floormod(i, max(n, one));
    case Border::kSymmetric: {
      PrimExpr p = floormod(i, max(n * two, one));
      return te::Select(p < n, p, n * two - one - p);
    }
    case Border::kReflect: {
      PrimExpr period = max(n * two - two, one);
      PrimExpr p = floormod(i, period);
      return te::Select(p < n, p, period - p);
    }
  }
  return i;
}

}  // namespace baton::topi

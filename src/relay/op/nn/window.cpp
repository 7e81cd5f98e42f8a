// SPDX-License-Identifier: Apache-2.0
#include "window.h"

namespace baton::relay {

ImageLayout ReadImageLayout(const String& layout, const char* letters, const char* op, const char* what) {
  std::vector<topi::LayoutDim> dims = topi::ParseLayout(layout.view(), op);
  ImageLayout out;
  out.rank = static_cast<int64_t>(dims.size());
  auto fail = [&] {
    throw CompileError(std::string("[") + op + " R1] " + what + " is \"" + layout.str() + "\", where N, C and " +
                       letters + " are wanted, C possibly split as in NC" + letters + "16c");
  };
  for (const char* l = letters; *l; ++l) {
    out.space.push_back(topi::FindAxis(dims, *l));
    if (out.space.back() < 0) fail();
  }
  out.n = topi::FindAxis(dims, 'N');
  out.c = topi::FindAxis(dims, 'C');
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d].factor == 0) continue;
    if (dims[d].axis != 'C' || out.c_in >= 0) fail();
    out.c_in = static_cast<int64_t>(d);
    out.block = dims[d].factor;
  }
  if (out.n < 0 || out.c < 0 || out.rank != static_cast<int64_t>(out.space.size()) + 2 + (out.c_in >= 0)) fail();
  return out;
}

Margins ReadPadding(const Array<int64_t>& padding, size_t n, const char* op) {
  Margins m;
  size_t k = padding.size();
  if (k != 1 && k != n && k != 2 * n) {
    throw CompileError(std::string("[") + op + " R1] padding has " + Str(k) + " numbers, where 1, " + Str(n) + " or " +
                       Str(2 * n) + " are wanted");
  }
  for (size_t d = 0; d < n; ++d) {
    m.begin.push_back(padding[k == 1 ? 0 : d]);
    m.end.push_back(padding[k == 1 ? 0 : k == n ? d : n + d]);
    for (int64_t p : {m.begin.back(), m.end.back()}) {
      if (p > (int64_t{1} << 40) || p < -(int64_t{1} << 40))
        throw CompileError(std::string("[") + op + " R1] padding is " + Str(p));
    }
  }
  return m;
}

Ints ReadPerDim(const Array<int64_t>& v, size_t n, int64_t default_value, const char* op, const char* what) {
  if (!v.defined()) return Ints(n, default_value);
  if (v.size() != 1 && v.size() != n) {
    throw CompileError(std::string("[") + op + " R1] " + what + " has " + Str(v.size()) + " numbers, where 1 or " +
                       Str(n) + " are wanted");
  }
  Ints out;
  for (size_t d = 0; d < n; ++d) {
    out.push_back(v[v.size() == 1 ? 0 : d]);
    if (out.back() < 1 || out.back() > (int64_t{1} << 40))
      throw CompileError(std::string("[") + op + " R1] " + what + " has the number " + Str(out.back()));
  }
  return out;
}

int64_t WindowCount(int64_t extent, int64_t size, int64_t stride, int64_t dilation, int64_t begin, int64_t end,
                    bool ceil_mode) {
  if (extent < 0) return -1;
  Checked room = Checked(extent) + begin + end - WindowSpan(size, dilation);
  if (room < 0) return ceil_mode && room > -stride && Checked(extent) + begin > 0 ? 1 : 0;
  if (!ceil_mode) return room / stride + 1;
  Checked count = (room + stride - 1) / stride + 1;
  // The last window has to begin inside data or the padding before it.
  return (count - 1) * stride >= Checked(extent) + begin ? count - 1 : count;
}

PrimExpr WindowCount(const PrimExpr& extent, int64_t size, int64_t stride, int64_t dilation, int64_t begin, int64_t end,
                     bool ceil_mode) {
  if (DimOf(extent) >= 0) return PrimExpr(WindowCount(DimOf(extent), size, stride, dilation, begin, end, ceil_mode));
  PrimExpr room = extent + PrimExpr(int64_t{Checked(begin) + end - WindowSpan(size, dilation)});
  if (!ceil_mode) return max(floordiv(room, PrimExpr(stride)) + PrimExpr(1), PrimExpr(0));
  PrimExpr count = floordiv(room + PrimExpr(stride - 1), PrimExpr(stride)) + PrimExpr(1);
  // The last window begins inside data or the padding before it: always, where less than it follows.
  if (Checked(end) + stride > WindowSpan(size, dilation)) {
    const PrimExpr behind = (count - PrimExpr(1)) * PrimExpr(stride) >= extent + PrimExpr(begin);
    count = count - tir::Select(behind, PrimExpr(1), PrimExpr(0));
  }
  return max(count, PrimExpr(0));
}

PrimExpr WindowSpan(const PrimExpr& size, int64_t dilation) {
  if (DimOf(size) >= 0) return PrimExpr(int64_t{WindowSpan(DimOf(size), dilation)});
  return Times(size, dilation) + PrimExpr(1 - dilation);
}

PrimExpr WindowCount(const PrimExpr& extent, const PrimExpr& size, int64_t stride, int64_t dilation, int64_t begin,
                     int64_t end) {
  if (DimOf(size) >= 0) return WindowCount(extent, DimOf(size), stride, dilation, begin, end, false);
  const PrimExpr room = extent + PrimExpr(int64_t{Checked(begin) + end}) - WindowSpan(size, dilation);
  return max(floordiv(room, PrimExpr(stride)) + PrimExpr(1), PrimExpr(0));
}

PrimExpr InRange(const PrimExpr& i, const PrimExpr& n, bool may_be_before, bool may_be_behind) {
  PrimExpr before, behind;
  if (may_be_before) before = i >= PrimExpr(0);
  if (may_be_behind) behind = i < n;
  return AndAlso(before, behind);
}

}  // namespace baton::relay

// SPDX-License-Identifier: Apache-2.0
#include <baton/tir/op.h>
#include <baton/topi/layout.h>

#include <string>

namespace baton::topi {

std::vector<LayoutDim> ParseLayout(std::string_view layout, const char* op) {
  auto fail = [&](const std::string& text) {
    throw CompileError(std::string("[") + op + "] layout \"" + std::string(layout) + "\" " + text);
  };
  std::vector<LayoutDim> out;
  bool seen[26] = {};
  int64_t factor = 0;
  for (char c : layout) {
    if (c >= '0' && c <= '9') {
      factor = factor * 10 + (c - '0');
      if (factor > (1 << 20)) fail("has a part that is too long");
    } else if (c >= 'A' && c <= 'Z') {
      if (factor) fail("has a number before a capital letter; numbers stand before small ones, as in NCHW16c");
      if (seen[c - 'A']) fail(std::string("has ") + c + " twice");
      seen[c - 'A'] = true;
      out.push_back({c, 0});
    } else if (c >= 'a' && c <= 'z') {
      if (factor < 1) fail(std::string("has no number before ") + c);
      out.push_back({static_cast<char>(c - 'a' + 'A'), factor});
      factor = 0;
    } else {
      fail("has the character `" + std::string(1, c) + "`; it is made of letters and numbers, as NCHW16c");
    }
  }
  if (factor) fail("ends with a number");
  for (const LayoutDim& d : out) {
    if (!seen[d.axis - 'A']) fail(std::string("has a part of ") + d.axis + " and not " + d.axis + " itself");
  }
  return out;
}

int64_t FindAxis(const std::vector<LayoutDim>& layout, char axis) {
  for (size_t d = 0; d < layout.size(); ++d) {
    if (layout[d].axis == axis && layout[d].factor == 0) return static_cast<int64_t>(d);
  }
  return -1;
}

namespace {
int64_t FactorOf(const std::vector<LayoutDim>& layout, char axis) {
  int64_t f = 1;
  for (const LayoutDim& d : layout) {
    if (d.axis == axis && d.factor) f *= d.factor;
  }
  return f;
}
/// Extent of a letter's whole dimension.
PrimExpr Whole(const Array<PrimExpr>& shape, const std::vector<LayoutDim>& layout, char axis) {
  int64_t f = FactorOf(layout, axis);
  PrimExpr outer = shape[FindAxis(layout, axis)];
  return f == 1 ? outer : outer * PrimExpr(f);
}
}  // namespace

Array<PrimExpr> LayoutShape(const Array<PrimExpr>& shape, const std::vector<LayoutDim>& from,
                            const std::vector<LayoutDim>& to) {
  Array<PrimExpr> out;
  for (const LayoutDim& d : to) {
    int64_t f = FactorOf(to, d.axis);
    PrimExpr whole = Whole(shape, from, d.axis);
    out.push_back(d.factor                      ? PrimExpr(d.factor)
                  : f == 1                      ? whole
                  : f == FactorOf(from, d.axis) ? shape[FindAxis(from, d.axis)]
                                                : ceildiv(whole, PrimExpr(f)));
  }
  return out;
}

te::Tensor ChangeLayout(const te::Tensor& x, const std::vector<LayoutDim>& from, const std::vector<LayoutDim>& to) {
  return te::Compute(
      LayoutShape(x.shape(), from, to),
      [&](te::Indices i) {
        // The index on a letter's whole dimension: its parts from the outermost to the innermost.
        PrimExpr whole[26];
        for (size_t d = 0; d < to.size(); ++d) {
          PrimExpr& w = whole[to[d].axis - 'A'];
          if (to[d].factor == 0) w = w.defined() ? w : PrimExpr(i[d]);
        }
        for (size_t d = 0; d < to.size(); ++d) {
          PrimExpr& w = whole[to[d].axis - 'A'];
          if (to[d].factor) w = w * PrimExpr(to[d].factor) + i[d];
        }
        Array<PrimExpr> at;
        PrimExpr inside;
        for (size_t d = 0; d < from.size(); ++d) {
          // The product of the parts after this one.
          int64_t below = 1;
          for (size_t e = 0; e < from.size(); ++e) {
            bool inner = from[e].axis == from[d].axis && from[e].factor && (from[d].factor == 0 || e > d);
            if (inner) below *= from[e].factor;
          }
          PrimExpr w = whole[from[d].axis - 'A'];
          PrimExpr j = below == 1 ? w : floordiv(w, PrimExpr(below));
          at.push_back(from[d].factor ? floormod(j, PrimExpr(from[d].factor)) : j);
          if (from[d].factor == 0) {
            PrimExpr have = Whole(x.shape(), from, from[d].axis);
            int64_t f = FactorOf(to, from[d].axis);
            const int64_t* n = tir::as_const_int(have);
            bool even = f == 1 || f == FactorOf(from, from[d].axis) || (n && *n % f == 0);
            if (!even) inside = inside.defined() ? inside && w < have : w < have;
          }
        }
        return inside.defined() ? if_then_else(inside, x(at), tir::make_const(x.dtype(), 0)) : x(at);
      },
      "layout_transform");
}

}  // namespace baton::topi

// SPDX-License-Identifier: Apache-2.0
// Cropping and padding: windows of a tensor, and their complement.
#include <baton/relay/op/transform.h>
#include <baton/runtime/checked.h>
#include <baton/topi/elemwise.h>
#include <baton/topi/reduce.h>
#include <baton/topi/window.h>

#include <algorithm>

#include "../common.h"
#include "../elements.h"
#include "../gradient.h"
#include "../qnn/integers.h"
#include "../reference/reference.h"
#include "slice_windows.h"

namespace baton::relay {
namespace {

struct SliceLikeAttrs : AttrsNode<SliceLikeAttrs> {
  static constexpr auto _type_key = "relay.attrs.SliceLikeAttrs";
  Array<int64_t> axes = NoInts();
  static constexpr void Describe(auto& d) { d(F<&SliceLikeAttrs::axes>, "Dimensions to cut; None or empty: all."); }
};

struct TriluAttrs : AttrsNode<TriluAttrs> {
  static constexpr auto _type_key = "relay.attrs.TriluAttrs";
  bool upper = true;
  int64_t k = 0;
  static constexpr void Describe(auto& d) {
    d(F<&TriluAttrs::upper>, "Whether the upper triangle stays, not the lower.");
    d(F<&TriluAttrs::k>, "Diagonal that bounds it: 0 the main one, above it if positive.");
  }
};

struct MatrixSetDiagAttrs : AttrsNode<MatrixSetDiagAttrs> {
  static constexpr auto _type_key = "relay.attrs.MatrixSetDiagAttrs";
  int64_t k1 = 0;
  int64_t k2 = 0;
  bool super_diag_right_align = true;
  bool sub_diag_right_align = false;
  static constexpr void Describe(auto& d) {
    d(F<&MatrixSetDiagAttrs::k1>, "Lowest diagonal that is set.");
    d(F<&MatrixSetDiagAttrs::k2>, "Highest one.");
    d(F<&MatrixSetDiagAttrs::super_diag_right_align>,
      "Whether diagonals above the main one end with their row in `diagonal`.");
    d(F<&MatrixSetDiagAttrs::sub_diag_right_align>, "The same below it.");
  }
};

struct MirrorPadAttrs : AttrsNode<MirrorPadAttrs> {
  static constexpr auto _type_key = "relay.attrs.MirrorPadAttrs";
  Array<Array<int64_t>> pad_width;
  String mode = "SYMMETRIC";
  static constexpr void Describe(auto& d) {
    d(F<&MirrorPadAttrs::pad_width>, "(before, after) of each dimension, in elements.", kRequired);
    d(F<&MirrorPadAttrs::mode>, "\"SYMMETRIC\" repeats the edge, \"REFLECT\" does not.");
  }
};

struct SequenceMaskAttrs : AttrsNode<SequenceMaskAttrs> {
  static constexpr auto _type_key = "relay.attrs.SequenceMaskAttrs";
  double mask_value = 0;
  int64_t axis = 0;
  static constexpr void Describe(auto& d) {
    d(F<&SequenceMaskAttrs::mask_value>, "What stands behind a sequence's end.");
    d(F<&SequenceMaskAttrs::axis>, "Dimension of time: 0 or 1; the other is the batch.");
  }
};

struct CenterCropPadAttrs : AttrsNode<CenterCropPadAttrs> {
  static constexpr auto _type_key = "relay.attrs.CenterCropPadAttrs";
  Array<int64_t> shape;
  Array<int64_t> axes = NoInts();
  static constexpr void Describe(auto& d) {
    d(F<&CenterCropPadAttrs::shape>, "Extents of the result on `axes`.", kRequired, AtLeast(0));
    d(F<&CenterCropPadAttrs::axes>, "Dimensions; None: all.");
  }
};

using runtime::Checked;

// ---- strided_slice
Type StridedSliceType(const StridedSliceAttrs& a, const TypeArgs& in) {
  Shape out;
  std::vector<Window> w =
      Windows(a, in.shape(0), [&](const char* rule, const std::string& text) { in.Fail(rule, text); });
  for (int64_t d = 0; d < in.ndim(0); ++d) {
    out.push_back(w[d].extent.same_as(in.shape(0)[d]) ? w[d].extent : TypeDim(w[d].extent));
  }
  AssumeInside(a, in);
  return TensorType(out, in.dtype(0));
}
Tensor Cut(const Tensor& x, const std::vector<Window>& w, String name) {
  Shape out;
  for (const Window& v : w) out.push_back(v.extent);
  return topi::Pick(
      out, x,
      [&](Indices i) {
        Shape at;
        for (size_t d = 0; d < w.size(); ++d) at.push_back(w[d].begin + i[d] * PrimExpr(w[d].stride));
        return at;
      },
      name);
}
Tensor LowerStridedSlice(const StridedSliceAttrs& a, const Tensors& in) {
  return Cut(in[0], Windows(a, in[0].shape(), [](const char*, const std::string& text) { throw InternalError(text); }),
             "strided_slice");
}

// ---- strided_set
Type StridedSetType(const TypeArgs& in) {
  in.SameDtype(0, 1, "R1");
  for (int k = 2; k < 5; ++k) {
    in.Rank(k, 1, "R2");
    in.Integral(k, "R2");
  }
  if (in.ndim(1) != in.ndim(0)) in.Fail("R3", in.Show(1) + " and " + in.Show(0) + " differ in rank");
  int64_t n = in.dim(2, 0);
  if (!in.Same(in.shape(2)[0], in.shape(3)[0]) || !in.Same(in.shape(2)[0], in.shape(4)[0]) || n > in.ndim(0)) {
    in.Fail("R4", in.Show(2) + ", " + in.Show(3) + " and " + in.Show(4) +
                      ", where one length is wanted, and no more numbers than " + in.Show(0) + " has dimensions");
  }
  for (int64_t d = n; n >= 0 && d < in.ndim(0); ++d) {
    if (!in.Same(in.shape(0)[d], in.shape(1)[d]))
      in.Fail("R5", in.Show(1) + " and " + in.Show(0) + " differ on axis " + Str(d) + ", which is not cut");
  }
  return in.type(0);
}
/// Whether an axis is cut is decided when it is compiled.
const char* NeedsCount(const CallNode* call) {
  const auto* begin = call->args[2]->checked_type().as<TensorTypeNode>();
  const bool known = begin != nullptr && begin->shape.size() == 1 && tir::as_const_int(begin->shape[0]) != nullptr;
  return known ? nullptr : "strided_set: how many numbers `begin` has is not known";
}
/// begin, end and strides are tensors here, so the place of an element is computed at run time.
Tensor LowerStridedSet(const Tensors& in) {
  const Tensor &x = in[0], &v = in[1];
  if (DimOf(in[2].shape()[0]) < 0) throw CompileError("strided_set: how many numbers `begin` has is not known");
  auto i64 = [](PrimExpr e) { return cast(DataType::Int(64), e); };
  return te::Compute(
      x.shape(),
      [&](Indices i) {
        PrimExpr inside = tir::make_int(DataType::Bool(), 1);
        Shape at;
        for (int64_t d = 0; d < x.ndim(); ++d) {
          const PrimExpr& n = x.shape()[d];
          const bool given = d < DimOf(in[2].shape()[0]);
          if (!given) {
            at.push_back(i[d]);
            continue;
          }
          PrimExpr b = i64(in[2](PrimExpr(d))), s = i64(in[4](PrimExpr(d)));
          PrimExpr back = s < PrimExpr(0);
          b = te::Select(b < PrimExpr(0), b + n, b);
          b = te::Select(back, min(b, n - PrimExpr(1)), max(min(b, n), PrimExpr(0)));
          PrimExpr off = te::Select(back, b - i[d], i[d] - b), step = max(abs(s), PrimExpr(1));
          PrimExpr k = floordiv(off, step);
          const PrimExpr& m = v.shape()[d];
          inside = inside && off >= PrimExpr(0) && equal(floormod(off, step), PrimExpr(0)) && k < m;
          at.push_back(k);
        }
        return if_then_else(inside, v(at), x(i));
      },
      "strided_set");
}

// ---- slice_like
Ints LikeAxes(const SliceLikeAttrs& a, int64_t ndim, int64_t like) {
  if (a.axes.defined() && !a.axes.empty()) return NormalizeAxes(a.axes, ndim, "slice_like");
  Ints out;
  for (int64_t d = 0; d < ndim && d < like; ++d) out.push_back(d);
  return out;
}
Type SliceLikeType(const SliceLikeAttrs& a, const TypeArgs& in) {
  Shape out = in.shape(0);
  for (int64_t d : LikeAxes(a, in.ndim(0), in.ndim(1))) {
    if (d >= in.ndim(1)) in.Fail("R1", in.Show(1) + " has no dimension " + Str(d));
    int64_t n = in.dim(0, d), m = in.dim(1, d);
    if (n >= 0 && m > n) in.Fail("R2", in.Show(1) + " is longer than " + in.Show(0) + " on axis " + Str(d));
    out.Set(d, in.shape(1)[d]);
  }
  return TensorType(out, in.dtype(0));
}
Tensor LowerSliceLike(const SliceLikeAttrs& a, const Tensors& in) {
  Shape out = in[0].shape();
  for (int64_t d : LikeAxes(a, in[0].ndim(), in[1].ndim())) out.Set(d, in[1].shape()[d]);
  return topi::Pick(out, in[0], [](Indices i) { return Shape(i); }, "slice_like");
}

// ---- pad
void CheckWidths(const Array<Array<int64_t>>& widths, const TypeArgs& in, bool mirror) {
  bool fits = static_cast<int64_t>(widths.size()) == in.ndim(0);
  for (const Array<int64_t>& w : widths) fits = fits && w.size() == 2;
  if (!fits)
    in.Fail("R2", "pad_width has " + Str(widths.size()) +
                      " entries, where a pair (before, after) for each dimension of " + in.Show(0) + " is wanted");
  for (int64_t d = 0; d < in.ndim(0); ++d) {
    int64_t n = in.dim(0, d), b = widths[d][0], e = widths[d][1];
    constexpr int64_t kMax = int64_t{1} << 40;
    if (b > kMax || e > kMax || b < -kMax || e < -kMax || (mirror && (b < 0 || e < 0)))
      in.Fail("R2", "pad_width has the entry " + ShowInts({b, e}));
    if (n >= 0 && Checked(n) + b + e < 0)
      in.Fail("R3", "pad_width " + ShowInts({b, e}) + " cuts more than the extent " + Str(n) + " of axis " + Str(d));
  }
}
Shape Padded(const Array<Array<int64_t>>& widths, const Shape& in, bool symbolic) {
  Shape out;
  for (size_t d = 0; d < in.size(); ++d) {
    int64_t by = widths[d][0] + widths[d][1];
    out.push_back(by == 0 ? in[d] : symbolic ? in[d] + PrimExpr(by) : TypeDim(in[d] + PrimExpr(by)));
  }
  return out;
}
Type PadType(const PadAttrs& a, const TypeArgs& in) {
  if (a.pad_mode != "constant" && a.pad_mode != "edge" && a.pad_mode != "reflect" && a.pad_mode != "wrap") {
    in.Fail("R1", "pad_mode is \"" + a.pad_mode.str() + "\"; it is \"constant\", \"edge\", \"reflect\" or \"wrap\"");
  }
  CheckWidths(a.pad_width, in, false);
  if (in.size() > 1) {
    in.SameDtype(0, 1, "R4");
    bool one = true;
    for (int64_t d : Dims(in.shape(1))) one = one && (d == 1 || d < 0);
    if (!one) in.Fail("R4", in.Show(1) + ", where one element is wanted");
  } else if (a.pad_mode == "constant") {
    in.Fail("R4", "`pad_value` is missing");
  }
  if (a.pad_mode != "constant") {
    for (int64_t d = 0; d < in.ndim(0); ++d) {
      if (in.dim(0, d) == 0 && (a.pad_width[d][0] > 0 || a.pad_width[d][1] > 0)) {
        in.Fail("R5", "axis " + Str(d) + " of " + in.Show(0) + " has no element to pad with");
      }
    }
  }
  return TensorType(Padded(a.pad_width, in.shape(0), false), in.dtype(0));
}
Tensor LowerPad(const PadAttrs& a, const Tensors& in) {
  const Tensor& x = in[0];
  auto value = [&]() {
    std::vector<PrimExpr> zeros(in[1].ndim(), PrimExpr(0));
    return in[1](Shape(zeros));
  };
  return te::Compute(
      Padded(a.pad_width, x.shape(), true),
      [&](Indices i) {
        PrimExpr inside;
        Shape at;
        for (int64_t d = 0; d < x.ndim(); ++d) {
          int64_t before = a.pad_width[d][0], after = a.pad_width[d][1];
          const PrimExpr& n = x.shape()[d];
          PrimExpr j = i[d] - PrimExpr(before);
          if (a.pad_mode == "constant") {
            auto both = [&](PrimExpr c) { inside = inside.defined() ? inside && c : c; };
            if (before > 0) both(j >= PrimExpr(0));
            if (after > 0) both(j < n);
          } else if (before > 0 || after > 0) {
            j = topi::MirrorIndex(j, n,
                                  a.pad_mode == "edge"   ? topi::Border::kEdge
                                  : a.pad_mode == "wrap" ? topi::Border::kWrap
                                                         : topi::Border::kReflect);
          }
          at.push_back(j);
        }
        if (tir::is_zero(topi::Product(x.shape()))) return inside.defined() ? value() : tir::make_const(x.dtype(), 0);
        return inside.defined() ? if_then_else(inside, x(at), value()) : x(at);
      },
      "pad");
}
Type MirrorPadType(const MirrorPadAttrs& a, const TypeArgs& in) {
  if (a.mode != "SYMMETRIC" && a.mode != "REFLECT")
    in.Fail("R1", "mode is \"" + a.mode.str() + "\"; it is \"SYMMETRIC\" or \"REFLECT\"");
  CheckWidths(a.pad_width, in, true);
  for (int64_t d = 0; d < in.ndim(0); ++d) {
    int64_t n = in.dim(0, d), most = a.mode == "SYMMETRIC" ? n : n - 1;
    if (n >= 0 && std::max(a.pad_width[d][0], a.pad_width[d][1]) > std::max<int64_t>(most, 0)) {
      in.Fail("R3", "pad_width " + ShowInts(ToInts(a.pad_width[d])) + " mirrors more than axis " + Str(d) + " of " +
                        in.Show(0) + " has");
    }
  }
  return TensorType(Padded(a.pad_width, in.shape(0), false), in.dtype(0));
}
Tensor LowerMirrorPad(const MirrorPadAttrs& a, const Tensors& in) {
  const Tensor& x = in[0];
  return topi::Pick(
      Padded(a.pad_width, x.shape(), true), x,
      [&](Indices i) {
        Shape at;
        for (int64_t d = 0; d < x.ndim(); ++d) {
          at.push_back(topi::MirrorIndex(i[d] - PrimExpr(a.pad_width[d][0]), x.shape()[d],
                                         a.mode == "SYMMETRIC" ? topi::Border::kSymmetric : topi::Border::kReflect));
        }
        return at;
      },
      "mirror_pad");
}

// ---- center_crop_pad
Type CenterCropPadType(const CenterCropPadAttrs& a, const TypeArgs& in) {
  Shape out = in.shape(0);
  if (a.axes.defined() ? a.axes.size() != a.shape.size() : static_cast<int64_t>(a.shape.size()) != in.ndim(0)) {
    in.Fail("R1",
            "shape has " + Str(a.shape.size()) + " extents, where " +
                (a.axes.defined() ? "axes has " + Str(a.axes.size()) : in.Show(0) + " has rank " + Str(in.ndim(0))));
  }
  std::vector<bool> seen(in.ndim(0));
  for (size_t k = 0; k < a.shape.size(); ++k) {
    int64_t d = a.axes.defined() ? in.Axis(a.axes[k], in.ndim(0), "axes") : k;
    if (seen[d]) in.Fail("R1", "axes " + ShowInts(ToInts(a.axes)) + " names dimension " + Str(d) + " twice");
    seen[d] = true;
    if (in.dim(0, d) < 0)
      in.Fail("R2", "axis " + Str(d) + " of " + in.Show(0) + " is not known; use dyn.center_crop_pad");
    out.Set(d, PrimExpr(a.shape[k]));
  }
  return TensorType(out, in.dtype(0));
}
Tensor LowerCenterCropPad(const Tensors& in, const Type& out_type) {
  const Tensor& x = in[0];
  const Shape& out = AsTensor(out_type)->shape;
  return te::Compute(
      out,
      [&](Indices i) {
        PrimExpr inside;
        Shape at;
        for (int64_t d = 0; d < x.ndim(); ++d) {
          int64_t n = DimOf(x.shape()[d]), m = DimOf(out[d]);
          // A crop begins at floor((n - m) / 2), a padding has floor((m - n) / 2) before.
          int64_t shift = n < 0 || n == m ? 0 : n > m ? (n - m) / 2 : -((m - n) / 2);
          PrimExpr j = i[d] + PrimExpr(shift);
          if (n >= 0 && m > n) {
            PrimExpr c = j >= PrimExpr(0) && j < PrimExpr(n);
            inside = inside.defined() ? inside && c : c;
          }
          at.push_back(j);
        }
        PrimExpr zero = tir::make_const(x.dtype(), 0);
        if (tir::is_zero(topi::Product(x.shape()))) return zero;
        return inside.defined() ? if_then_else(inside, x(at), zero) : x(at);
      },
      "center_crop_pad");
}

// ---- triangles and diagonals
Type TriluType(const TypeArgs& in) {
  in.MinRank(0, 2, "R1");
  return in.type(0);
}
Tensor LowerTrilu(const TriluAttrs& a, const Tensors& in) {
  int64_t r = in[0].ndim() - 2;
  return te::Compute(
      in[0].shape(),
      [&](Indices i) {
        PrimExpr diagonal = i[r + 1] - i[r];
        return te::Select(a.upper ? diagonal >= PrimExpr(a.k) : diagonal <= PrimExpr(a.k), in[0](i),
                          tir::make_const(in[0].dtype(), 0));
      },
      "trilu");
}
Type MatrixSetDiagType(const MatrixSetDiagAttrs& a, const TypeArgs& in) {
  in.MinRank(0, 2, "R1");
  in.SameDtype(0, 1, "R2");
  if (a.k1 > a.k2) in.Fail("R3", "k1 is " + Str(a.k1) + " and k2 " + Str(a.k2) + ", where k1 <= k2 is wanted");
  int64_t want = in.ndim(0) - (a.k1 == a.k2 ? 1 : 0);
  if (in.ndim(1) != want) in.Fail("R4", in.Show(1) + ", where rank " + Str(want) + " is wanted");
  for (int64_t d = 0; d + 2 < in.ndim(0); ++d) {
    if (!in.Same(in.shape(0)[d], in.shape(1)[d]))
      in.Fail("R4", in.Show(1) + " and " + in.Show(0) + " differ in batch dimension " + Str(d));
  }
  if (a.k1 != a.k2 && !in.Same(in.shape(1)[want - 2], PrimExpr(a.k2 - a.k1 + 1)))
    in.Fail("R4", in.Show(1) + ", where " + Str(a.k2 - a.k1 + 1) + " diagonals are wanted");
  int64_t r = in.dim(0, in.ndim(0) - 2), c = in.dim(0, in.ndim(0) - 1);
  if (r >= 0 && c >= 0) {
    int64_t longest = 0;
    for (int64_t k : {a.k1, a.k2, int64_t{0}}) {
      if (k < a.k1 || k > a.k2) continue;
      int64_t n = k >= 0 ? std::min(r, c - k) : std::min(r + k, c);
      longest = std::max(longest, n);
    }
    if (a.k1 <= -r || a.k2 >= c)
      in.Fail("R3", "diagonals " + Str(a.k1) + " to " + Str(a.k2) + " do not all cross " + in.Show(0));
    int64_t have = in.dim(1, in.ndim(1) - 1);
    if (have >= 0 && have != longest)
      in.Fail("R4", in.Show(1) + ", where its last extent is that of the longest diagonal, " + Str(longest));
  }
  const PrimExpr &rows = in.shape(0)[in.ndim(0) - 2], &columns = in.shape(0)[in.ndim(0) - 1];
  PrimExpr longest(0);
  for (int64_t k : {a.k1, a.k2, int64_t{0}}) {
    if (k < a.k1 || k > a.k2) continue;
    longest = max(longest, k >= 0 ? min(rows, columns - PrimExpr(k)) : min(rows + PrimExpr(k), columns));
  }
  if (!in.AtLeast(rows + PrimExpr(a.k1), 1) || !in.AtLeast(columns - PrimExpr(a.k2), 1) ||
      !in.Same(in.shape(1)[in.ndim(1) - 1], longest))
    in.Fail("R4", in.Show(1) + " and " + in.Show(0) + " do not fit");
  return in.type(0);
}
Tensor LowerMatrixSetDiag(const MatrixSetDiagAttrs& a, const Tensors& in) {
  const Tensor &x = in[0], &v = in[1];
  int64_t r = x.ndim() - 2;
  PrimExpr rows = x.shape()[r], cols = x.shape()[r + 1];
  return te::Compute(
      x.shape(),
      [&](Indices i) {
        PrimExpr k = i[r + 1] - i[r];
        Shape at;
        for (int64_t d = 0; d < r; ++d) at.push_back(i[d]);
        PrimExpr along = min(PrimExpr(i[r]), PrimExpr(i[r + 1]));  // position on its diagonal
        if (a.k1 != a.k2) {
          PrimExpr length = te::Select(k >= PrimExpr(0), min(rows, cols - k), min(rows + k, cols));
          PrimExpr shift = v.shape()[r + 1] - length;
          PrimExpr right = te::Select(k >= PrimExpr(0), tir::make_int(DataType::Bool(), a.super_diag_right_align),
                                      tir::make_int(DataType::Bool(), a.sub_diag_right_align));
          along = along + te::Select(right, shift, PrimExpr(0));
          at.push_back(PrimExpr(a.k2) - k);
        }
        at.push_back(along);
        return if_then_else(k >= PrimExpr(a.k1) && k <= PrimExpr(a.k2), v(at), x(i));
      },
      "matrix_set_diag");
}

// ---- sequence_mask
Type SequenceMaskType(const SequenceMaskAttrs& a, const TypeArgs& in) {
  in.MinRank(0, 2, "R1");
  in.Rank(1, 1, "R2");
  in.Number(1, "R2");
  if (a.axis != 0 && a.axis != 1) in.Fail("R3", "axis is " + Str(a.axis) + ", where 0 or 1 is wanted");
  if (!in.Same(in.shape(0)[1 - a.axis], in.shape(1)[0]))
    in.Fail("R4", in.Show(1) + " and " + in.Show(0) + " differ in the batch");
  return in.type(0);
}
Tensor LowerSequenceMask(const SequenceMaskAttrs& a, const Tensors& in) {
  return te::Compute(
      in[0].shape(),
      [&](Indices i) {
        PrimExpr n = cast(DataType::Int(64), Widen(in[1](i[1 - a.axis])));
        return te::Select(PrimExpr(i[a.axis]) < n, in[0](i), tir::make_const(in[0].dtype(), a.mask_value));
      },
      "sequence_mask");
}

}  // namespace

namespace gradient {
namespace {

Grads StridedSliceBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  const auto& a = at.attrs<StridedSliceAttrs>();
  bool plain = a.slice_mode == "end";
  for (int64_t s : a.strides) plain = plain && s == 1;
  if (!plain) return SelectBack(call, grad);
  Ints dims = at.dims(0), out = at.out_dims(), before(dims.size(), 0), after(dims.size(), 0);
  for (size_t i = 0; i < a.begin.size(); ++i) {
    int64_t d = a.axes.defined() ? at.Axis(a.axes[i]) : static_cast<int64_t>(i), b = a.begin[i].literal();
    if (b < 0) b += dims[d];
    before[d] = std::min(std::max<int64_t>(b, 0), dims[d]);
  }
  for (size_t d = 0; d < dims.size(); ++d) after[d] = dims[d] - before[d] - out[d];
  return {Pad(grad, before, after, at.dtype(0))};
}
Grads StridedSetBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  // The places that are set, by setting a mask.
  Array<Expr> mask{OnesLike(at.arg(0)), ZerosLike(at.arg(1))};
  // The place of each element of `v`: numbers from 1, 0 for data's own.
  int64_t n = ProductOf(at.dims(1)), m = ProductOf(at.dims(0));
  if (n == 0 || m == 0) return {grad, ZerosLike(at.arg(1))};
  Ints vdims = at.dims(1), ddims = at.dims(0);
  Expr zeros = MakeCall<InitOpAttrs>(op::zeros, {},
                                     [&](InitOpAttrs* a) { a->shape = ToArray(ddims), a->dtype = DataType::Int(64); });
  Array<Expr> where{Subtract(zeros, MakeInts({-n})), Reshape(Iota(n), ToArray(vdims))};
  for (size_t i = 2; i < call->args.size(); ++i) mask.push_back(call->args[i]), where.push_back(call->args[i]);
  Expr kept = MakeCall(op::strided_set, mask, call->attrs), numbers = MakeCall(op::strided_set, where, call->attrs);
  Grads out(call->args.size(), Expr());
  out.Set(0, Multiply(grad, kept));
  out.Set(1, ShapeLike(Scatter(ZerosOf(n, at.dtype(1)), Flatten(numbers), Flatten(grad)), at.arg(1)));
  return out;
}
Grads SliceLikeBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  Ints dims = at.dims(0), out = at.out_dims(), before(dims.size(), 0), after;
  for (size_t d = 0; d < dims.size(); ++d) after.push_back(dims[d] - out[d]);
  return {Pad(grad, before, after, at.dtype(0)), Expr()};
}
Grads PadBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  const auto& a = at.attrs<PadAttrs>();
  if (a.pad_mode != "constant") {
    Grads out(call->args.size(), Expr());
    out.Set(0, ByNumbers(at, grad, [&](const Expr& numbers) {
              Array<Expr> args{numbers};
              if (call->args.size() > 1) args.push_back(MakeScalar(0, DataType::Int(64)));
              return MakeCall(op::pad, args, call->attrs);
            }));
    return out;
  }
  Ints before, after;
  for (const Array<int64_t>& w : a.pad_width) before.push_back(-w[0]), after.push_back(-w[1]);
  Expr dx = Pad(grad, before, after, at.dtype(0));
  if (call->args.size() < 2) return {dx};
  // The padding is where a mask of data's places is zero.
  Expr inside = MakeCall(op::pad, {OnesLike(at.arg(0)), MakeScalar(0, at.dtype(0))}, call->attrs);
  Ints all = AxesFrom(0, at.ndim(0));
  Expr fill = all.empty() ? Expr() : Sum(at.g() * (1 - Val{inside, at.dtype(0)}), all);
  if (fill.defined() && !at.floating(1)) fill = Expr();
  return {dx, fill.defined() && at.ndim(1) ? ShapeLike(fill, at.arg(1)) : fill};
}
/// The adjoint: cropped elements come back as zeros, padding is cropped. Both use the same offsets.
Grads CenterCropPadBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  const auto& a = at.attrs<CenterCropPadAttrs>();
  Ints size;
  for (size_t k = 0; k < a.shape.size(); ++k) {
    int64_t n = DimOf(at.type(0)->shape[a.axes.defined() ? at.Axis(a.axes[k]) : static_cast<int64_t>(k)]);
    if (n < 0) at.Fail("it needs known extents of its axes");
    size.push_back(n);
  }
  return {MakeCall<CenterCropPadAttrs>(op::center_crop_pad, {grad},
                                       [&](CenterCropPadAttrs* b) { b->shape = ToArray(size), b->axes = a.axes; })};
}
Grads TriluBack(const Call& call, const Expr& grad) { return {MakeCall(op::trilu, {grad}, call->attrs)}; }
Grads MatrixSetDiagBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  int64_t n = ProductOf(at.dims(1)), m = ProductOf(at.dims(0));
  if (n == 0 || m == 0) return {grad, ZerosLike(at.arg(1))};
  Expr kept = MakeCall(op::matrix_set_diag, {OnesLike(at.arg(0)), ZerosLike(at.arg(1))}, call->attrs);
  Expr none = MakeCall<InitOpAttrs>(
      op::zeros, {}, [&](InitOpAttrs* a) { a->shape = ToArray(at.dims(0)), a->dtype = DataType::Int(64); });
  Expr numbers = MakeCall(
      op::matrix_set_diag,
      {Subtract(none, MakeScalar(static_cast<double>(-n), DataType::Int(64))), Reshape(Iota(n), ToArray(at.dims(1)))},
      call->attrs);
  return {Multiply(grad, kept),
          ShapeLike(Scatter(ZerosOf(n, at.dtype(1)), Flatten(numbers), Flatten(grad)), at.arg(1))};
}
Grads SequenceMaskBack(const Call& call, const Expr& grad) {
  const auto& a = AttrsAs<SequenceMaskAttrs>(call->attrs);
  Grads out(call->args.size(), Expr());
  Array<Expr> args = call->args;
  args.Set(0, grad);
  out.Set(0, MakeCall<SequenceMaskAttrs>(op::sequence_mask, args,
                                         [&](SequenceMaskAttrs* b) { b->mask_value = 0, b->axis = a.axis; }));
  return out;
}

}  // namespace
}  // namespace gradient

namespace {
/// A window of a vector between literals, with a step forwards.
std::optional<Elements> SliceElements(const ElementsSite& site) {
  const auto& a = AttrsAs<StridedSliceAttrs>(site.attrs);
  if (!site.in[0] || a.begin.size() != 1 || a.end.size() != 1 || !a.begin.is_literal() || !a.end.is_literal())
    return std::nullopt;
  const int64_t n = static_cast<int64_t>(site.in[0]->size()), step = a.strides.empty() ? 1 : a.strides[0];
  if (step < 1 || a.slice_mode != "end") return std::nullopt;
  auto place = [&](int64_t v) { return std::clamp<int64_t>(v < 0 ? v + n : v, 0, n); };
  const int64_t end = place(a.end[0].literal());
  Elements out;
  for (int64_t i = place(a.begin[0].literal()); i < end; i += std::min(step, n))
    out.push_back((*site.in[0])[static_cast<size_t>(i)]);
  return out;
}
}  // namespace

const Op op::strided_slice = DefineOp({
    .name = "strided_slice",
    .doc = "A window of the tensor with steps.",
    .inputs = {{"data", "Any tensor."}},
    .output = "R1: begin, end and strides agree in length. R2: a known slice_mode. R3: at most data's dimensions, none "
              "twice. R4: no "
              "stride of 0. R5: sizes are extents or -1; what expressions cut out lies within the dimension.",
    .attrs = TypeOf<StridedSliceAttrs>,
    .type_rel = Rel<"strided_slice", StridedSliceType>,
    .lower = LowerStridedSlice,
    .gradient = gradient::StridedSliceBack,
    .pattern = OpPattern::kInjective,
    .source = "NumPy; ONNX Slice-13",
    .traits = {.values = Values::kSelects,
               .layout = LayoutRule::kPads,
               .reference = reference::StridedSlice,
               .elements = SliceElements},
});
const Op op::strided_set = DefineOp({
    .name = "strided_set",
    .doc = "data with a window of it replaced by v.",
    .inputs = {{"data", "Any tensor."},
               {"v", "R1: dtype of data. R3: its rank. R5: its extents where nothing is cut."},
               {"begin", "R2: integers, rank 1. R4: at most a number for each dimension."},
               {"end", "R2: integers, rank 1; the shape of v decides. R4: as many as begin."},
               {"strides", "R2: integers, rank 1. R4: as many as begin."}},
    .output = "Shape and dtype of `data`.",
    .type_rel = Rel<"strided_set", StridedSetType>,
    .lower = LowerStridedSet,
    .gradient = gradient::StridedSetBack,
    .pattern = OpPattern::kInjective,
    .source = "Relay",
    .traits = {.needs_extents = NeedsCount},
});
const Op op::slice_like = DefineOp({
    .name = "slice_like",
    .doc = "The first elements of data, as many as another tensor has.",
    .inputs = {{"data", "Any tensor."},
               {"shape_like", "R1: has the dimensions of `axes`. R2: not longer than data there."}},
    .output = "Extents of `shape_like` on `axes`.",
    .attrs = TypeOf<SliceLikeAttrs>,
    .type_rel = Rel<"slice_like", SliceLikeType>,
    .lower = LowerSliceLike,
    .gradient = gradient::SliceLikeBack,
    .pattern = OpPattern::kInjective,
    .source = "Relay",
    .traits = {.layout = LayoutRule::kPads},
});
const Op op::pad = DefineOp({
    .name = "nn.pad",
    .doc = "Elements added around a tensor, or cut off.",
    .inputs = {{"data", "Any tensor."}, {"pad_value", "What constant padding holds. R4: one element of data's dtype."}},
    .output = "R1: a known pad_mode. R2: a pair for each dimension. R3: no more is cut than there is. R5: nothing to "
              "copy needs an element.",
    .attrs = TypeOf<PadAttrs>,
    .num_inputs = -1,
    .type_rel = Rel<"nn.pad", PadType>,
    .lower = LowerPad,
    .gradient = gradient::PadBack,
    .pattern = OpPattern::kInjective,
    .source = "Relay; ONNX Pad-21",
    .traits = {.values = Values::kExact, .layout = LayoutRule::kPads, .integers = integers::Pad},
});
const Op op::mirror_pad = DefineOp({
    .name = "nn.mirror_pad",
    .doc = "The tensor mirrored at its borders.",
    .inputs = {{"data", "Any tensor."}},
    .output = "R1: a known mode. R2: a pair for each dimension. R3: no more is mirrored than there is.",
    .attrs = TypeOf<MirrorPadAttrs>,
    .type_rel = Rel<"nn.mirror_pad", MirrorPadType>,
    .lower = LowerMirrorPad,
    .gradient = gradient::SelectBack,
    .pattern = OpPattern::kInjective,
    .source = "Relay",
});
const Op op::center_crop_pad = DefineOp({
    .name = "center_crop_pad",
    .doc = "The middle of a tensor, or the tensor in the middle of zeros.",
    .inputs = {{"data", "R2: known extents on `axes`."}},
    .output = "R1: an extent for each axis, none named twice.",
    .attrs = TypeOf<CenterCropPadAttrs>,
    .type_rel = Rel<"center_crop_pad", CenterCropPadType>,
    .lower = LowerCenterCropPad,
    .gradient = gradient::CenterCropPadBack,
    .pattern = OpPattern::kInjective,
    .source = "ONNX CenterCropPad-18",
});
const Op op::trilu = DefineOp({
    .name = "trilu",
    .doc = "The upper or lower triangle of matrices, zeros elsewhere.",
    .inputs = {{"data", "R1: rank 2 or more; the last two dimensions are matrices."}},
    .output = "Shape and dtype of `data`.",
    .attrs = TypeOf<TriluAttrs>,
    .type_rel = Rel<"trilu", TriluType>,
    .lower = LowerTrilu,
    .gradient = gradient::TriluBack,
    .pattern = OpPattern::kInjective,
    .source = "ONNX Trilu-14",
});
const Op op::matrix_set_diag = DefineOp({
    .name = "matrix_set_diag",
    .doc = "Matrices with some diagonals replaced.",
    .inputs = {{"data", "R1: rank 2 or more."},
               {"diagonal", "R2: dtype of data. R4: (..., [number of diagonals,] longest one)."}},
    .output = "Shape and dtype of `data`. R3: k1 <= k2, all crossing the matrix.",
    .attrs = TypeOf<MatrixSetDiagAttrs>,
    .type_rel = Rel<"matrix_set_diag", MatrixSetDiagType>,
    .lower = LowerMatrixSetDiag,
    .gradient = gradient::MatrixSetDiagBack,
    .pattern = OpPattern::kInjective,
    .source = "Relay",
});
const Op op::sequence_mask = DefineOp({
    .name = "sequence_mask",
    .doc = "Sequences with what lies behind their end replaced.",
    .inputs = {{"data", "R1: rank 2 or more: time and batch first."},
               {"valid_length", "R2: numbers, rank 1. R4: the batch's extent."}},
    .output = "Shape and dtype of `data`. R3: axis is 0 or 1.",
    .attrs = TypeOf<SequenceMaskAttrs>,
    .type_rel = Rel<"sequence_mask", SequenceMaskType>,
    .lower = LowerSequenceMask,
    .gradient = gradient::SequenceMaskBack,
    .pattern = OpPattern::kInjective,
    .source = "Relay",
});

}  // namespace baton::relay

// SPDX-License-Identifier: Apache-2.0
// Operators whose operands are bounds, counts, depths and widths.
#include "dyn.h"

namespace baton::relay {
namespace {

struct DynStridedSliceAttrs : AttrsNode<DynStridedSliceAttrs> {
  static constexpr auto _type_key = "relay.attrs.DynStridedSliceAttrs";
  String slice_mode = "end";
  static constexpr void Describe(auto& d) {
    d(F<&DynStridedSliceAttrs::slice_mode>, "\"end\" or \"size\" (strides then count as 1).");
  }
};

struct DynOneHotAttrs : AttrsNode<DynOneHotAttrs> {
  static constexpr auto _type_key = "relay.attrs.DynOneHotAttrs";
  int64_t axis = -1;
  DataType dtype;
  static constexpr void Describe(auto& d) {
    d(F<&DynOneHotAttrs::axis>, "Place of the new dimension in the result.");
    d(F<&DynOneHotAttrs::dtype>, "Dtype of the result; not given: that of on_value.");
  }
};

struct DynPadAttrs : AttrsNode<DynPadAttrs> {
  static constexpr auto _type_key = "relay.attrs.DynPadAttrs";
  String pad_mode = "constant";
  static constexpr void Describe(auto& d) {
    d(F<&DynPadAttrs::pad_mode>, "\"constant\", \"edge\", \"reflect\" (without the edge itself), \"wrap\".");
  }
};

struct DynStridedSlice {
  static constexpr const char* kName = "dyn.strided_slice";
  using Attributes = DynStridedSliceAttrs;
  static const Op& Static() { return op::strided_slice; }
  static bool ShapeLike(int i) { return i > 0; }
  static void Check(const Attributes&, const TypeArgs& in) {
    in[0];
    if (in.size() < 3 || in.size() > 5)
      in.Fail("R3", "there are " + Str(in.size()) + " operands, where 3 to 5 are wanted");
    for (int i = 1; i < in.size(); ++i) {
      CheckIntegers(in, i);
      if (!in.Same(in.shape(1)[0], in.shape(i)[0]))
        in.Fail("R2", in.Show(i) + " and " + in.Show(1) + " differ in length");
    }
    if (in.dim(1, 0) > in.ndim(0)) in.Fail("R2", in.Show(1) + " has more numbers than " + in.Show(0) + " dimensions");
  }
  static Attrs StaticAttrs(const Attributes& a, const HostValues& v) {
    return MakeAttrs<StridedSliceAttrs>([&](StridedSliceAttrs* s) {
      s->begin = ToArray(v[0].ToInts()), s->end = ToArray(v[1].ToInts());
      if (v.size() > 2) s->strides = ToArray(v[2].ToInts());
      if (v.size() > 3) s->axes = ToArray(v[3].ToInts());
      s->slice_mode = a.slice_mode;
    });
  }
  static Expr Symbolic(const Call& call, const Array<ExtentList>& v) {
    if (AttrsAs<DynStridedSliceAttrs>(call->attrs).slice_mode != "end") return Expr();
    for (size_t i = 1; i < v.size(); ++i) {
      if (v[static_cast<int64_t>(i)].get() == nullptr) return Expr();
    }
    const ExtentList none;
    const ExtentList strides = v.size() > 3 ? v[3] : none, axes = v.size() > 4 ? v[4] : none;
    return SymbolicSlice(call->args[0], v[1], v[2], v.size() > 4 ? &axes : nullptr, v.size() > 3 ? &strides : nullptr);
  }
  static Type Unknown(const Attributes&, const TypeArgs& in) {
    Shape out = in.shape(0);
    int64_t n = in.dim(1, 0);
    if (in.size() == 5) {
      const runtime::NDArray* axes = in.Constant(4);
      for (int64_t d = 0; !axes && d < in.ndim(0); ++d) out.Set(d, UnknownDim());
      if (axes) {
        for (int64_t x : axes->ToInts()) out.Set(in.Axis(x, in.ndim(0), "axes"), UnknownDim());
      }
    } else {
      for (int64_t d = 0; d < in.ndim(0) && (n < 0 || d < n); ++d) out.Set(d, UnknownDim());
    }
    return TensorType(out, in.dtype(0));
  }
};

struct DynOneHot {
  static constexpr const char* kName = "dyn.one_hot";
  using Attributes = DynOneHotAttrs;
  static const Op& Static() { return op::one_hot; }
  static bool ShapeLike(int i) { return i == 3; }
  static void Check(const Attributes&, const TypeArgs& in) {
    in.Integral(0, "R2");
    in.SameDtype(1, 2, "R2");
    CheckCount(in, 3);
  }
  static Attrs StaticAttrs(const Attributes& a, const HostValues& v) {
    Array<int64_t> depth = Extents(kName, "R3", "depth", v[0]);
    if (depth.size() != 1) throw CompileError("[dyn.one_hot R1] `depth` has " + Str(depth.size()) + " numbers");
    return MakeAttrs<OneHotAttrs>([&](OneHotAttrs* s) { s->depth = depth[0], s->axis = a.axis, s->dtype = a.dtype; });
  }
  static Expr Symbolic(const Call& call, const Array<ExtentList>& v) {
    if (v[3].get() == nullptr || v[3].size() != 1 || MayBeNegative(v[3])) return Expr();
    const auto& a = AttrsAs<DynOneHotAttrs>(call->attrs);
    return SymbolicOneHot(call->args[0], call->args[1], call->args[2], v[3][0], a.axis, a.dtype);
  }
  static Type Unknown(const Attributes& a, const TypeArgs& in) {
    Shape out = in.shape(0);
    out.insert(in.Axis(a.axis, in.ndim(0) + 1), UnknownDim());
    return TensorType(out, a.dtype.is_void() ? in.dtype(1) : a.dtype);
  }
};

struct DynSparseToDense {
  static constexpr const char* kName = "dyn.sparse_to_dense";
  using Attributes = NoAttrs;
  static const Op& Static() { return op::sparse_to_dense; }
  static bool ShapeLike(int i) { return i == 3; }
  static void Check(const Attributes&, const TypeArgs& in) {
    in.Integral(0, "R4");
    in.SameDtype(1, 2, "R4");
    CheckIntegers(in, 3);
  }
  static Attrs StaticAttrs(const Attributes&, const HostValues& v) {
    return MakeAttrs<SparseToDenseAttrs>(
        [&](SparseToDenseAttrs* s) { s->output_shape = Extents(kName, "R3", "output_shape", v[0]); });
  }
  static Type Unknown(const Attributes&, const TypeArgs& in) { return UnknownTensor(Length(in, 3), in.dtype(1)); }
};

struct DynPad {
  static constexpr const char* kName = "dyn.nn.pad";
  using Attributes = DynPadAttrs;
  static const Op& Static() { return op::pad; }
  static bool ShapeLike(int i) { return i == 1; }
  static void Check(const Attributes&, const TypeArgs& in) {
    in[0];
    in.Integral(1, "R1");
    in.Rank(1, 2, "R1");
    if ((in.dim(1, 0) >= 0 && in.dim(1, 0) != in.ndim(0)) || (in.dim(1, 1) >= 0 && in.dim(1, 1) != 2))
      in.Fail("R2", in.Show(1) + ", where (" + Str(in.ndim(0)) + ", 2) is wanted for " + in.Show(0));
    if (in.size() > 2) in.SameDtype(0, 2, "R3");
  }
  static Attrs StaticAttrs(const Attributes& a, const HostValues& v) {
    Ints w = v[0].ToInts();
    std::vector<Array<int64_t>> pairs;
    for (size_t d = 0; d + 1 < w.size(); d += 2) pairs.push_back(Array<int64_t>{w[d], w[d + 1]});
    return MakeAttrs<PadAttrs>(
        [&](PadAttrs* s) { s->pad_width = Array<Array<int64_t>>(pairs), s->pad_mode = a.pad_mode; });
  }
  static Expr Symbolic(const Call& call, const Array<ExtentList>& v) {
    if (v[1].get() == nullptr) return Expr();
    return SymbolicPad(call->args[0], v[1], call->args.size() > 2 ? call->args[2] : Expr(),
                       AttrsAs<DynPadAttrs>(call->attrs).pad_mode);
  }
  static Type Unknown(const Attributes&, const TypeArgs& in) { return UnknownTensor(in.ndim(0), in.dtype(0)); }
};

}  // namespace

const Op op::dyn_strided_slice = DefineDyn<DynStridedSlice>(
    "strided_slice between bounds known at run time.",
    {{"data", "Any tensor."},
     {"begin", "As strided_slice's, as the others are. R1: integers, rank 1. R2: no more than data has dimensions."},
     {"end", "R1: integers, rank 1. R2: as many as begin."},
     {"strides", "R1: integers, rank 1. R2: as many as begin."},
     {"axes", "R1: integers, rank 1. R2: as many as begin."}},
    "Extents not known where data is cut. R3: strides and axes may be left out, the others not.", -1);
const Op op::dyn_one_hot =
    DefineDyn<DynOneHot>("one_hot of a depth known at run time.",
                         {{"indices", "R2: integers."},
                          {"on_value", "One element."},
                          {"off_value", "One element. R2: dtype of on_value."},
                          {"depth", "Extent of the new dimension. R1: one integer, rank 0 or 1. R3: not negative."}},
                         "Shape of `indices` with a dimension inserted at `axis`.");
const Op op::dyn_sparse_to_dense =
    DefineDyn<DynSparseToDense>("sparse_to_dense of a shape known at run time.",
                                {{"sparse_indices", "R4: integers."},
                                 {"sparse_values", "Any tensor of rank 0 or 1."},
                                 {"default_value", "A scalar. R4: dtype of sparse_values."},
                                 {"output_shape", "Extents. R1: integers, rank 1. R3: none is negative."}},
                                "A dimension for each number of output_shape. R2: whose length is known, 64 at most.");
const Op op::dyn_pad = DefineDyn<DynPad>(
    "nn.pad by widths known at run time.",
    {{"data", "Any tensor."},
     {"pad_width", "(before, after) of each dimension. R1: integers, rank 2. R2: a pair for each dimension."},
     {"pad_value", "What constant padding holds; one element. R3: dtype of data."}},
    "data's rank, extents not known.", -1);

}  // namespace baton::relay

// SPDX-License-Identifier: Apache-2.0
// Operators whose operands are shapes, axes or repetitions.
#include <algorithm>

#include "dyn.h"

namespace baton::relay {
namespace {

struct DynReshapeAttrs : AttrsNode<DynReshapeAttrs> {
  static constexpr auto _type_key = "relay.attrs.DynReshapeAttrs";
  bool allowzero = false;
  static constexpr void Describe(auto& d) { d(F<&DynReshapeAttrs::allowzero>, "Whether 0 means an extent of 0."); }
};

/// Attributes of dyn.full, dyn.zeros, dyn.ones.
struct DynInitAttrs : AttrsNode<DynInitAttrs> {
  static constexpr auto _type_key = "relay.attrs.DynInitOpAttrs";
  DataType dtype;
  static constexpr void Describe(auto& d) {
    d(F<&DynInitAttrs::dtype>, "Dtype of the result; not given: that of the operand, or float32.");
  }
};

struct DynExpandDimsAttrs : AttrsNode<DynExpandDimsAttrs> {
  static constexpr auto _type_key = "relay.attrs.DynExpandDimsAttrs";
  int64_t num_newaxis = 1;
  static constexpr void Describe(auto& d) {
    d(F<&DynExpandDimsAttrs::num_newaxis>, "How many dimensions a scalar axis begins.", AtLeast(0));
  }
};

struct DynReshape {
  static constexpr const char* kName = "dyn.reshape";
  using Attributes = DynReshapeAttrs;
  static const Op& Static() { return op::reshape; }
  static bool ShapeLike(int i) { return i == 1; }
  static void Check(const Attributes&, const TypeArgs& in) {
    in[0];
    CheckIntegers(in, 1);
  }
  static Attrs StaticAttrs(const Attributes& a, const HostValues& v) {
    return MakeAttrs<ReshapeAttrs>(
        [&](ReshapeAttrs* s) { s->newshape = ToArray(v[0].ToInts()), s->allowzero = a.allowzero; });
  }
  static Expr Symbolic(const Call& call, const Array<ExtentList>& v) {
    if (v[1].get() == nullptr) return Expr();
    return SymbolicReshape(call->args[0], v[1], AttrsAs<DynReshapeAttrs>(call->attrs).allowzero);
  }
  static Type Unknown(const Attributes&, const TypeArgs& in) { return UnknownTensor(Length(in, 1), in.dtype(0)); }
};

struct DynBroadcastTo {
  static constexpr const char* kName = "dyn.broadcast_to";
  using Attributes = NoAttrs;
  static const Op& Static() { return op::broadcast_to; }
  static bool ShapeLike(int i) { return i == 1; }
  static void Check(const Attributes&, const TypeArgs& in) {
    CheckIntegers(in, 1);
    if (int64_t n = in.dim(1, 0); n >= 0 && n < in.ndim(0))
      in.Fail("R4", in.Show(0) + " has more dimensions than " + in.Show(1) + " gives");
  }
  static Attrs StaticAttrs(const Attributes&, const HostValues& v) {
    return MakeAttrs<InitOpAttrs>([&](InitOpAttrs* s) { s->shape = Extents(kName, "R3", "shape", v[0]); });
  }
  static Attrs SymbolicAttrs(const Attributes&, const ExtentValues& v) {
    return MakeAttrs<InitOpAttrs>([&](InitOpAttrs* s) { s->shape = v[0]; });
  }
  static Type Unknown(const Attributes&, const TypeArgs& in) {
    int64_t rank = Length(in, 1), lead = rank - in.ndim(0);
    Shape out = MakeShape(Ints(rank, -1));
    for (int64_t d = 0; d < in.ndim(0); ++d) {
      if (in.dim(0, d) > 1) out.Set(lead + d, in.shape(0)[d]);  // it cannot become anything else
    }
    return TensorType(out, in.dtype(0));
  }
};

struct DynTile {
  static constexpr const char* kName = "dyn.tile";
  using Attributes = NoAttrs;
  static const Op& Static() { return op::tile; }
  static bool ShapeLike(int i) { return i == 1; }
  static void Check(const Attributes&, const TypeArgs& in) {
    in[0];
    CheckIntegers(in, 1);
  }
  static Attrs StaticAttrs(const Attributes&, const HostValues& v) {
    return MakeAttrs<TileAttrs>([&](TileAttrs* s) { s->reps = Extents(kName, "R3", "reps", v[0]); });
  }
  static Expr Symbolic(const Call& call, const Array<ExtentList>& v) {
    return v[1].get() == nullptr || MayBeNegative(v[1]) ? Expr() : SymbolicTile(call->args[0], v[1]);
  }
  static Type Unknown(const Attributes&, const TypeArgs& in) {
    int64_t reps = Length(in, 1), rank = std::max(reps, in.ndim(0));
    Shape out = MakeShape(Ints(rank, -1));
    for (int64_t d = 0; d < rank - reps; ++d) out.Set(d, in.shape(0)[d]);  // these are not repeated
    return TensorType(out, in.dtype(0));
  }
};

struct DynExpandDims {
  static constexpr const char* kName = "dyn.expand_dims";
  using Attributes = DynExpandDimsAttrs;
  static const Op& Static() { return op::expand_dims; }
  static bool ShapeLike(int i) { return i == 1; }
  static void Check(const Attributes& a, const TypeArgs& in) {
    in.Integral(1, "R1");
    if (in.ndim(1) > 1) in.Fail("R1", in.Show(1) + ", where a scalar or a list of axes is wanted");
    if (in.ndim(0) + (in.ndim(1) == 0 ? a.num_newaxis : in.dim(1, 0)) > 64)
      in.Fail("R2", "the result would have more than 64 dimensions");
  }
  static Attrs StaticAttrs(const Attributes& a, const HostValues& v) {
    return MakeAttrs<ExpandDimsAttrs>([&](ExpandDimsAttrs* s) {
      if (v[0]->ndim == 0) {
        s->axis = v[0].GetInt(0), s->num_newaxis = a.num_newaxis;
      } else {
        s->axes = ToArray(v[0].ToInts());
      }
    });
  }
  static Type Unknown(const Attributes& a, const TypeArgs& in) {
    return UnknownTensor(in.ndim(0) + (in.ndim(1) == 0 ? a.num_newaxis : Length(in, 1)), in.dtype(0));
  }
};

struct DynSqueeze {
  static constexpr const char* kName = "dyn.squeeze";
  using Attributes = NoAttrs;
  static const Op& Static() { return op::squeeze; }
  static bool ShapeLike(int i) { return i == 1; }
  static void Check(const Attributes&, const TypeArgs& in) {
    in.Integral(1, "R1");
    if (in.ndim(1) > 1) in.Fail("R1", in.Show(1) + ", where a scalar or a list of axes is wanted");
    if (int64_t n = in.ndim(1) == 0 ? 1 : in.dim(1, 0); n > in.ndim(0))
      in.Fail("R3", in.Show(1) + " has more axes than " + in.Show(0) + " has dimensions");
  }
  static Attrs StaticAttrs(const Attributes&, const HostValues& v) {
    return MakeAttrs<SqueezeAttrs>([&](SqueezeAttrs* s) { s->axis = ToArray(v[0].ToInts()); });
  }
  static Type Unknown(const Attributes&, const TypeArgs& in) {
    return UnknownTensor(in.ndim(0) - (in.ndim(1) == 0 ? 1 : Length(in, 1)), in.dtype(0));
  }
};

Attrs InitAttrs(const char* op, const DynInitAttrs& a, const runtime::NDArray& shape) {
  return MakeAttrs<InitOpAttrs>(
      [&](InitOpAttrs* s) { s->shape = Extents(op, "R3", "shape", shape), s->dtype = a.dtype; });
}
struct DynFull {
  static constexpr const char* kName = "dyn.full";
  using Attributes = DynInitAttrs;
  static const Op& Static() { return op::full; }
  static bool ShapeLike(int i) { return i == 1; }
  static void Check(const Attributes&, const TypeArgs& in) {
    in[0];
    CheckIntegers(in, 1);
    for (int64_t d = 0; d < in.ndim(0); ++d) {
      if (in.dim(0, d) >= 0 && in.dim(0, d) != 1) in.Fail("R4", in.Show(0) + ", where one element is wanted");
    }
  }
  static Attrs StaticAttrs(const Attributes& a, const HostValues& v) { return InitAttrs(kName, a, v[0]); }
  static Attrs SymbolicAttrs(const Attributes& a, const ExtentValues& v) {
    return MakeAttrs<InitOpAttrs>([&](InitOpAttrs* s) { s->shape = v[0], s->dtype = a.dtype; });
  }
  static Type Unknown(const Attributes& a, const TypeArgs& in) {
    return UnknownTensor(Length(in, 1), a.dtype.is_void() ? in.dtype(0) : a.dtype);
  }
};
template <OpName kOp, const Op& kStatic>
struct DynConstant {
  static constexpr const char* kName = kOp.text;
  using Attributes = DynInitAttrs;
  static const Op& Static() { return kStatic; }
  static bool ShapeLike(int i) { return i == 0; }
  static void Check(const Attributes&, const TypeArgs& in) { CheckIntegers(in, 0); }
  static Attrs StaticAttrs(const Attributes& a, const HostValues& v) { return InitAttrs(kName, a, v[0]); }
  static Attrs SymbolicAttrs(const Attributes& a, const ExtentValues& v) {
    return MakeAttrs<InitOpAttrs>([&](InitOpAttrs* s) { s->shape = v[0], s->dtype = a.dtype; });
  }
  static Type Unknown(const Attributes& a, const TypeArgs& in) {
    return UnknownTensor(Length(in, 0), a.dtype.is_void() ? DataType::Float(32) : a.dtype);
  }
};

}  // namespace

const Op op::dyn_reshape = DefineDyn<DynReshape>(
    "reshape to a shape known at run time.",
    {{"data", "Any tensor."}, {"newshape", "As reshape's. R1: integers, rank 1."}},
    "A dimension for each number of newshape. R2: whose length is known, 64 at most.", -2, gradient::ReshapeBack);
const Op op::dyn_broadcast_to = DefineDyn<DynBroadcastTo>(
    "broadcast_to a shape known at run time.",
    {{"data", "R4: no more dimensions than shape has numbers."},
     {"shape", "Extents. R1: integers, rank 1. R3: none is negative."}},
    "A dimension for each number of shape. R2: whose length is known, 64 at most.", -2, gradient::CollapseBack);
const Op op::dyn_tile =
    DefineDyn<DynTile>("tile by repetitions known at run time.",
                       {{"data", "Any tensor."}, {"reps", "Repetitions. R1: integers, rank 1. R3: none is negative."}},
                       "The longer of data's rank and the length of reps. R2: which is known, 64 at most.");
const Op op::dyn_expand_dims = DefineDyn<DynExpandDims>(
    "expand_dims at places known at run time.",
    {{"data", "Any tensor."},
     {"axis",
      "A scalar: the first of num_newaxis new dimensions; or a list: the new dimensions. R1: "
      "integers, rank 0 or 1."}},
    "New dimensions of extent 1. R2: a known number of them, 64 dimensions at most.", -2, gradient::ReshapeBack);
const Op op::dyn_squeeze =
    DefineDyn<DynSqueeze>("squeeze of axes known at run time.",
                          {{"data", "Extent 1 on these axes."},
                           {"axis", "An axis, or a list. R1: integers, rank 0 or 1. R3: no more than data has."}},
                          "The other dimensions. R2: the number of axes is known.", -2, gradient::ReshapeBack);
const Op op::dyn_full = DefineDyn<DynFull>(
    "full of a shape known at run time.",
    {{"fill_value", "R4: one element."}, {"shape", "Extents. R1: integers, rank 1. R3: none is negative."}},
    "A dimension for each number of shape. R2: whose length is known, 64 at most.");
const Op op::dyn_zeros = DefineDyn<DynConstant<"dyn.zeros", op::zeros>>(
    "Zeros of a shape known at run time.", {{"shape", "Extents. R1: integers, rank 1. R3: none is negative."}},
    "A dimension for each number of shape. R2: whose length is known, 64 at most.");
const Op op::dyn_ones = DefineDyn<DynConstant<"dyn.ones", op::ones>>(
    "Ones of a shape known at run time.", {{"shape", "Extents. R1: integers, rank 1. R3: none is negative."}},
    "A dimension for each number of shape. R2: whose length is known, 64 at most.");

}  // namespace baton::relay

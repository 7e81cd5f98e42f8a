// SPDX-License-Identifier: Apache-2.0
// Tensors from scalars and shapes, and shapes as tensors.
#include <baton/relay/op/make.h>
#include <baton/relay/op/transform.h>
#include <baton/topi/elemwise.h>
#include <baton/topi/reduce.h>

#include <cmath>

#include "../common.h"
#include "../elements.h"
#include "../gradient.h"
#include "../host_params.h"

namespace baton::relay {
namespace {

struct NdarraySizeAttrs : AttrsNode<NdarraySizeAttrs> {
  static constexpr auto _type_key = "relay.attrs.NdarraySizeAttrs";
  DataType dtype = DataType::Int(32);
  static constexpr void Describe(auto& d) { d(F<&NdarraySizeAttrs::dtype>, "Dtype of the result, an integer one."); }
};

DataType OrElse(DataType t, DataType default_value) { return t.is_void() ? default_value : t; }
PrimExpr One(const Tensor& x) {  // the element of a tensor that has one
  std::vector<PrimExpr> zeros(x.ndim(), PrimExpr(0));
  return x(Shape(zeros));
}
void OneElement(const TypeArgs& in, int i, const char* rule) {
  for (int64_t d = 0; d < in.ndim(i); ++d) {
    if (!in.Same(in.shape(i)[d], PrimExpr(1))) in.Fail(rule, in.Show(i) + ", where one element is wanted");
  }
}

Shape FullShape(const InitOpAttrs& a) { return a.shape.defined() ? MakeShape(a.shape) : Shape(); }
Type FullType(const InitOpAttrs& a, const TypeArgs& in) {
  OneElement(in, 0, "R1");
  return TensorType(FullShape(a), OrElse(a.dtype, in.dtype(0)));
}
Tensor LowerFull(const InitOpAttrs& a, const Tensors& in) {
  return topi::Full(FullShape(a), topi::Convert(OrElse(a.dtype, in[0].dtype()), One(in[0])));
}
template <OpName kName>
Type ConstantType(const InitOpAttrs& a, const TypeArgs& in) {
  if (!a.shape.defined()) in.Fail("R1", "needs the attribute `shape`");
  return TensorType(MakeShape(a.shape), OrElse(a.dtype, DataType::Float(32)));
}
template <int kValue>
Tensor LowerConstant(const InitOpAttrs& a, const Tensors&) {
  return topi::Full(MakeShape(a.shape), tir::make_const(OrElse(a.dtype, DataType::Float(32)), kValue));
}
template <OpName kName, int kValue>
Op DefineConstant(const char* doc) {
  return DefineOp({.name = kName.text,
                   .doc = doc,
                   .inputs = {},
                   .output = "Shape `shape`, dtype `dtype` (float32 if not given). R1: shape is given.",
                   .attrs = TypeOf<InitOpAttrs>,
                   .type_rel = Rel<kName, ConstantType<kName>>,
                   .lower = LowerConstant<kValue>,
                   .pattern = OpPattern::kElemWise,
                   .fold = Fold::kAlways,
                   .source = "NumPy",
                   .traits = {.values = Values::kExact, .fill = kValue}});
}
template <int kValue>
Tensor LowerLike(const Tensors& in) {
  return topi::Full(in[0].shape(), tir::make_const(in[0].dtype(), kValue));
}
Type LikeType(const TypeArgs& in) { return TensorType(in.shape(0), in.dtype(0)); }
template <OpName kName, int kValue>
Op DefineLike(const char* doc) {
  return DefineOp({.name = kName.text,
                   .doc = doc,
                   .inputs = {{"data", "Its shape and dtype count alone."}},
                   .output = "Shape and dtype of `data`.",
                   .type_rel = Rel<kName, LikeType>,
                   .lower = LowerLike<kValue>,
                   .gradient = gradient::Flat,
                   .pattern = OpPattern::kElemWise,
                   .fold = Fold::kNever,
                   .source = "NumPy",
                   .traits = {.values = Values::kExact, .fill = kValue}});
}
Type FullLikeType(const TypeArgs& in) {
  OneElement(in, 1, "R1");
  return in.type(0);
}
Tensor LowerFullLike(const Tensors& in) { return topi::Full(in[0].shape(), topi::Convert(in[0].dtype(), One(in[1]))); }

// ---- arange
/// Number of elements of [start, stop) in steps; -1 where an operand is not known.
int64_t ArangeCount(const TypeArgs& in) {
  const runtime::NDArray* v[3] = {in.Constant(0), in.Constant(1), in.Constant(2)};
  if (!v[0] || !v[1] || !v[2]) return -1;
  constexpr double kMax = 1e12;
  double n;
  if (in.dtype(0).is_integral() && in.dtype(1).is_integral() && in.dtype(2).is_integral()) {
    int64_t a = v[0]->GetInt(0), b = v[1]->GetInt(0), s = v[2]->GetInt(0);
    if (s == 0) in.Fail("R3", "`step` is 0");
    __int128 span = s > 0 ? static_cast<__int128>(b) - a : static_cast<__int128>(a) - b;
    __int128 step = s > 0 ? static_cast<__int128>(s) : -static_cast<__int128>(s);
    n = span <= 0 ? 0 : static_cast<double>((span - 1) / step + 1);
  } else {
    double a = v[0]->GetDouble(0), b = v[1]->GetDouble(0), s = v[2]->GetDouble(0);
    if (s == 0 || std::isnan(a) || std::isnan(b) || std::isnan(s)) in.Fail("R3", "`step` is 0, or an operand is NaN");
    n = std::ceil((b - a) / s);
    if (!(n > 0)) n = 0;
  }
  if (!(n < kMax)) in.Fail("R3", "the range has " + std::to_string(n) + " elements; that is more than memory holds");
  return static_cast<int64_t>(n);
}
Type ArangeType(const ArangeAttrs& a, const TypeArgs& in) {
  const PrimExpr count = a.length.defined() ? TypeDim(a.length) : MakeDim(ArangeCount(in));
  for (int i = 0; i < 3; ++i) {
    in.Number(i, "R1");
    OneElement(in, i, "R2");
  }
  return TensorType(Shape{count}, OrElse(a.dtype, in.dtype(0)));
}
Tensor LowerArange(const ArangeAttrs& a, const Tensors& in, const Type& out) {
  DataType t = OrElse(a.dtype, in[0].dtype()), w = Wide(t);
  PrimExpr n = AsTensor(out)->shape[0];
  if (n.as<tir::AnyNode>()) throw InternalError("arange is lowered without knowing its length");
  return te::Compute(
      Shape{n},
      [&](Indices i) {
        return cast(t, topi::Convert(w, One(in[0])) + cast(w, PrimExpr(i[0])) * topi::Convert(w, One(in[2])));
      },
      "arange");
}
/// The call with its operands as constants: then its length is known.
Expr ArangeStatic(const Call& call, const Array<runtime::NDArray>& values) {
  if (AttrsAs<ArangeAttrs>(call->attrs).length.defined()) return Expr();
  Array<Expr> args;
  bool all_constant = true;
  for (size_t i = 0; i < 3; ++i) {
    if (!values[i].defined()) return Expr();
    all_constant = all_constant && call->args[i].as<ConstantNode>();
    ConstantNode c;
    c.data = values[i];
    args.push_back(Constant(std::move(c)));
  }
  return all_constant ? Expr() : MakeCall(op::arange, args, call->attrs);
}

/// Where its length is that of no extent.
HostCall ArangeOnHost(const Attrs& attrs) {
  if (AttrsAs<ArangeAttrs>(attrs).length.defined()) return {};
  return {"host.arange", HostParams(op::arange, attrs).Dump()};
}

/// The call with its length as an extent.
Expr ArangeSymbolic(const Call& call, const Array<Array<PrimExpr>>& values) {
  if (AttrsAs<ArangeAttrs>(call->attrs).length.defined()) return Expr();
  for (const Array<PrimExpr>& v : values) {
    if (v.get() == nullptr || v.size() != 1) return Expr();
  }
  const int64_t step = DimOf(values[2][0]);
  if (step < 1) return Expr();
  const PrimExpr span = values[1][0] - values[0][0];
  const PrimExpr n = max(floordiv(span + PrimExpr(step - 1), PrimExpr(step)), PrimExpr(0));
  return MakeCall(op::arange, call->args, MakeAttrs<ArangeAttrs>([&](ArangeAttrs* a) {
                    a->dtype = AttrsAs<ArangeAttrs>(call->attrs).dtype;
                    a->length = TypeDim(n);
                  }));
}

Type EyeType(const EyeAttrs& a, const TypeArgs&) {
  return TensorType(Shape{PrimExpr(a.rows), PrimExpr(a.cols)}, a.dtype);
}
Tensor LowerEye(const EyeAttrs& a, const Tensors&) {
  return te::Compute(
      Shape{PrimExpr(a.rows), PrimExpr(a.cols)},
      [&](Indices i) {
        return te::Select(equal(i[1] - i[0], PrimExpr(a.k)), tir::make_const(a.dtype, 1), tir::make_const(a.dtype, 0));
      },
      "eye");
}

// ---- shapes as tensors
void IntegerDtype(const TypeArgs& in, DataType t) {
  if (!t.is_integral()) in.Fail("R1", "dtype is " + DataType2String(t) + ", where an integer one is wanted");
}
Type ShapeOfType(const ShapeOfAttrs& a, const TypeArgs& in) {
  IntegerDtype(in, a.dtype);
  return TensorType(Shape{PrimExpr(in.ndim(0))}, a.dtype);
}
Tensor LowerShapeOf(const ShapeOfAttrs& a, const Tensors& in) {
  const Shape& s = in[0].shape();
  return te::Compute(
      Shape{PrimExpr(static_cast<int64_t>(s.size()))},
      [&](Indices i) {
        PrimExpr v = tir::make_int(a.dtype, 0);
        for (size_t d = s.size(); d-- > 0;) {
          v = te::Select(equal(PrimExpr(i[0]), PrimExpr(static_cast<int64_t>(d))), cast(a.dtype, s[d]), v);
        }
        return v;
      },
      "shape_of");
}
/// The extents of the only operand.
std::optional<Elements> ExtentElements(const ElementsSite& site) {
  const auto* t = AsTensor(site.types[0]);
  if (!t) return std::nullopt;
  return Elements(t->shape.begin(), t->shape.end());
}
std::optional<Elements> SizeElements(const ElementsSite& site) {
  const std::optional<Elements> shape = ExtentElements(site);
  if (!shape) return std::nullopt;
  PrimExpr all = PrimExpr(int64_t{1});
  for (const PrimExpr& d : *shape) all = all * d;
  return Elements{all};
}
Type SizeType(const NdarraySizeAttrs& a, const TypeArgs& in) {
  IntegerDtype(in, a.dtype);
  in[0];
  return TensorType::Scalar(a.dtype);
}
Tensor LowerSize(const NdarraySizeAttrs& a, const Tensors& in) {
  return topi::Full(Shape(), cast(a.dtype, topi::Product(in[0].shape())));
}

}  // namespace

namespace gradient {
namespace {

/// Element k is start + k * step; where it ends is no matter of degree.
Grads ArangeBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  const DataType t = at.out()->dtype;
  Grads out(3, Expr());
  if (!t.is_floating()) return out;
  auto put = [&](int i, const Expr& each) {
    if (!at.floating(i)) return;
    const Expr sum = Sum(each, {0});
    out.Set(i, ShapeLike(at.dtype(i) == t ? sum : Cast(sum, at.dtype(i)), at.arg(i)));
  };
  auto as = [&](int i) { return Val{at.dtype(i) == t ? at.arg(i) : Cast(at.arg(i), t), t}; };
  put(0, grad);
  put(2, at.g() * ((at.y() - as(0)) / as(2)));
  return out;
}

Grads FullBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  Ints all = AxesFrom(0, at.out()->shape.size());
  Grads out(call->args.size(), Expr());
  int value = static_cast<int>(call->args.size()) - 1;
  if (at.floating(value)) {
    Expr g = all.empty() ? grad : Sum(grad, all);
    out.Set(value, at.dtype(value) == at.out()->dtype ? g : Cast(g, at.dtype(value)));
  }
  return out;
}

}  // namespace
}  // namespace gradient

runtime::NDArray ShapeOfTypes(const Attrs& attrs, const Array<Type>& types) {
  const auto* t = AsTensor(types[0]);
  Ints shape;
  if (!t || !StaticShape(t->shape, &shape)) return runtime::NDArray();
  runtime::NDArray out =
      runtime::NDArray::Empty({static_cast<int64_t>(shape.size())}, AttrsAs<ShapeOfAttrs>(attrs).dtype);
  for (size_t i = 0; i < shape.size(); ++i) out.SetDouble(i, static_cast<double>(shape[i]));
  return out;
}

runtime::NDArray SizeOfTypes(const Attrs& attrs, const Array<Type>& types) {
  const auto* t = AsTensor(types[0]);
  Ints shape;
  if (!t || !StaticShape(t->shape, &shape)) return runtime::NDArray();
  double size = 1;
  for (const int64_t d : shape) size *= static_cast<double>(d);
  runtime::NDArray out = runtime::NDArray::Empty({}, AttrsAs<NdarraySizeAttrs>(attrs).dtype);
  out.SetDouble(0, size);
  return out;
}

const Op op::full = DefineOp({
    .name = "full",
    .doc = "A tensor that holds one value everywhere.",
    .inputs = {{"fill_value", "R1: one element."}},
    .output = "Shape `shape` (a scalar if not given), dtype `dtype`.",
    .attrs = TypeOf<InitOpAttrs>,
    .type_rel = Rel<"full", FullType>,
    .lower = LowerFull,
    .gradient = gradient::FullBack,
    .pattern = OpPattern::kElemWise,
    .fold = Fold::kNever,
    .source = "NumPy; ONNX ConstantOfShape-9",
    .traits = {.values = Values::kExact},
});
const Op op::zeros = DefineConstant<"zeros", 0>("A tensor of zeros.");
const Op op::ones = DefineConstant<"ones", 1>("A tensor of ones.");
const Op op::zeros_like = DefineLike<"zeros_like", 0>("Zeros, as many as data has elements.");
const Op op::ones_like = DefineLike<"ones_like", 1>("Ones, as many as data has elements.");
const Op op::full_like = DefineOp({
    .name = "full_like",
    .doc = "One value, as often as data has elements.",
    .inputs = {{"data", "Its shape and dtype count alone."}, {"fill_value", "R1: one element."}},
    .output = "Shape and dtype of `data`.",
    .type_rel = Rel<"full_like", FullLikeType>,
    .lower = LowerFullLike,
    .gradient = gradient::FullBack,
    .pattern = OpPattern::kElemWise,
    .fold = Fold::kNever,
    .source = "NumPy",
    .traits = {.values = Values::kExact},
});
const Op op::arange = DefineOp({
    .name = "arange",
    .doc = "start, start + step, ... before stop.",
    .inputs = {{"start", "R1: a number. R2: one element."}, {"stop", "As start."}, {"step", "As start. R3: not 0."}},
    .output =
        "max(0, ceil((stop - start) / step)) elements of dtype `dtype`; not known unless the operands are constants. "
        "With `length` so many, whatever stop is.",
    .attrs = TypeOf<ArangeAttrs>,
    .type_rel = Rel<"arange", ArangeType>,
    .lower = LowerArange,
    .host_call = ArangeOnHost,
    .static_form = ArangeStatic,
    .gradient = gradient::ArangeBack,
    .pattern = OpPattern::kOpaque,  // fused, its operands would not be constants, and its length unknown
    .source = "NumPy; ONNX Range-11",
    .traits = {.precision = Precision::kNever, .symbolic_form = ArangeSymbolic, .negative_values = true},
});
const Op op::eye = DefineOp({
    .name = "eye",
    .doc = "Ones on a diagonal, zeros elsewhere.",
    .inputs = {},
    .output = "Shape (rows, cols), dtype `dtype`.",
    .attrs = TypeOf<EyeAttrs>,
    .type_rel = Rel<"eye", EyeType>,
    .lower = LowerEye,
    .pattern = OpPattern::kElemWise,
    .source = "NumPy; ONNX EyeLike-22",
});
const Op op::shape_of = DefineOp({
    .name = "shape_of",
    .doc = "The extents of a tensor.",
    .inputs = {{"data", "Its shape counts alone."}},
    .output = "Rank 1. R1: an integer dtype.",
    .attrs = TypeOf<ShapeOfAttrs>,
    .type_rel = Rel<"shape_of", ShapeOfType>,
    .lower = LowerShapeOf,
    .pattern = OpPattern::kOpaque,
    .source = "Relay; ONNX Shape-21",
    .traits = {.value_of_types = ShapeOfTypes, .elements = ExtentElements, .shape_only = true},
});
const Op op::ndarray_size = DefineOp({
    .name = "ndarray_size",
    .doc = "The number of elements.",
    .inputs = {{"data", "Its shape counts alone."}},
    .output = "A scalar. R1: an integer dtype.",
    .attrs = TypeOf<NdarraySizeAttrs>,
    .type_rel = Rel<"ndarray_size", SizeType>,
    .lower = LowerSize,
    .pattern = OpPattern::kOpaque,
    .source = "Relay; ONNX Size-21",
    .traits = {.value_of_types = SizeOfTypes, .elements = SizeElements, .shape_only = true},
});

}  // namespace baton::relay

// SPDX-License-Identifier: Apache-2.0
// Reductions over axes, and running sums and products along one.
#include <baton/relay/op/tensor.h>
#include <baton/topi/elemwise.h>
#include <baton/topi/reduce.h>

#include "../common.h"
#include "../elements.h"
#include "../gradient.h"
#include "../qnn/integers.h"
#include "../reference/reference.h"

namespace baton::relay {
namespace {

struct VarianceAttrs : AttrsNode<VarianceAttrs> {
  static constexpr auto _type_key = "relay.attrs.VarianceAttrs";
  Array<int64_t> axis = NoInts();
  bool keepdims = false;
  bool exclude = false;
  bool unbiased = false;
  static constexpr void Describe(auto& d) {
    d(F<&VarianceAttrs::axis>, "Axes to reduce, each in [-rank, rank); None: all.");
    d(F<&VarianceAttrs::keepdims>, "Whether reduced axes stay, with extent 1.");
    d(F<&VarianceAttrs::exclude>, "Whether `axis` names the axes that stay.");
    d(F<&VarianceAttrs::unbiased>, "Whether to divide by the count less 1.");
  }
};

struct ArgReduceAttrs : AttrsNode<ArgReduceAttrs> {
  static constexpr auto _type_key = "relay.attrs.ArgReduceAttrs";
  Array<int64_t> axis = NoInts();
  bool keepdims = false;
  bool exclude = false;
  bool select_last_index = false;
  DataType dtype = DataType::Int(32);
  static constexpr void Describe(auto& d) {
    d(F<&ArgReduceAttrs::axis>, "Axes to reduce; the index counts within them, row-major. None: all.");
    d(F<&ArgReduceAttrs::keepdims>, "Whether reduced axes stay, with extent 1.");
    d(F<&ArgReduceAttrs::exclude>, "Whether `axis` names the axes that stay.");
    d(F<&ArgReduceAttrs::select_last_index>, "Of equal values the last index, not the first.");
    d(F<&ArgReduceAttrs::dtype>, "Dtype of the indices.");
  }
};

/// The axes that `axis` and `exclude` name, sorted.
template <class A>
Ints AxesOf(const A& a, int64_t ndim, const char* op) {
  Ints named;
  if (a.axis.defined()) {
    named = NormalizeAxes(a.axis, ndim, op);
  } else {
    for (int64_t d = 0; d < ndim; ++d) named.push_back(d);
  }
  if (!a.exclude) return named;
  Ints rest;
  size_t next = 0;
  for (int64_t d = 0; d < ndim; ++d) {
    if (next < named.size() && named[next] == d) {
      ++next;
    } else {
      rest.push_back(d);
    }
  }
  return rest;
}

enum class Kind { kSum, kProd, kMax, kMin, kMean, kAll, kAny, kLogSumExp, kSumSquares, kNormL1, kNormL2, kLogSum };
enum class Domain { kNumber, kFloat, kBool, kOrdered };
struct ReduceRow {
  const char* name;
  const char* doc;
  Kind kind;
  Domain domain;
  const char* source;
  OpGradient gradient = {};
};

Type ReduceType(const ReduceRow& row, const ReduceAttrs& a, const TypeArgs& in) {
  switch (row.domain) {
    case Domain::kOrdered:
      if (in.dtype(0).is_bool()) break;
      [[fallthrough]];
    case Domain::kNumber:
      in.Number(0, "R1");
      break;
    case Domain::kFloat:
      in.Floating(0, "R1");
      break;
    case Domain::kBool:
      in.Bool(0, "R1");
      break;
  }
  return TensorType(topi::ReducedShape(in.shape(0), AxesOf(a, in.ndim(0), in.op()), a.keepdims), in.dtype(0));
}

Tensor SumOf(const Tensor& x, const Ints& axes, bool keepdims, DataType acc) {
  return topi::ReduceWith(
      x, axes, keepdims, te::Sum, [&](PrimExpr v, const Shape&, const Shape&) { return cast(acc, v); }, "sum");
}

Tensor LogSumExp(const Tensor& x, const Ints& axes, bool keepdims) {
  DataType t = Wide(x.dtype());
  Tensor top = topi::ReduceWith(
      x, axes, true, te::MaxOf, [&](PrimExpr v, const Shape&, const Shape&) { return cast(t, v); }, "max");
  // Infinite maxima are left out of the difference: inf - inf is NaN.
  auto base = [&](const Shape& at) {
    PrimExpr m = topi::BroadcastAt(top, at);
    return te::Select(isfinite(m), m, Lit(0, t));
  };
  Tensor sum = topi::ReduceWith(
      x, axes, keepdims, te::Sum, [&](PrimExpr v, const Shape& at, const Shape&) { return exp(cast(t, v) - base(at)); },
      "sum_exp");
  return te::Compute(
      sum.shape(),
      [&](Indices i) {
        Shape zeros;
        for (size_t k = 0; k < axes.size(); ++k) zeros.push_back(0);
        Shape at = topi::ReducedAt(x.shape().size(), axes, keepdims, i, zeros);
        return cast(x.dtype(), log(sum(i)) + base(at));
      },
      "logsumexp");
}

Tensor LowerReduce(const ReduceRow& row, const ReduceAttrs& a, const Tensor& x) {
  Ints axes = AxesOf(a, x.ndim(), row.name);
  DataType t = x.dtype(), acc = Wide(t);
  if (row.kind == Kind::kLogSumExp) return LogSumExp(x, axes, a.keepdims);
  if (row.kind == Kind::kMean && t.is_integral()) acc = DataType::Int(64);
  if (row.kind == Kind::kNormL2 && t.is_integral()) acc = DataType::Float(64);
  topi::Combine combine = te::Sum;
  if (row.kind == Kind::kProd) combine = te::Prod;
  if (row.kind == Kind::kMax) combine = t.is_bool() ? te::AnyOf : te::MaxOf, acc = t;
  if (row.kind == Kind::kMin) combine = t.is_bool() ? te::AllOf : te::MinOf, acc = t;
  if (row.kind == Kind::kAll) combine = te::AllOf;
  if (row.kind == Kind::kAny) combine = te::AnyOf;
  Tensor r = topi::ReduceWith(
      x, axes, a.keepdims, combine,
      [&](PrimExpr v, const Shape&, const Shape&) {
        v = cast(acc, v);
        if (row.kind == Kind::kSumSquares || row.kind == Kind::kNormL2) return v * v;
        if (row.kind == Kind::kNormL1) return acc.is_uint() ? v : acc.is_floating() ? fabs(v) : abs(v);
        return v;
      },
      row.name);
  PrimExpr n = topi::ReducedCount(x.shape(), axes);
  auto last = [&](PrimExpr v) {
    switch (row.kind) {
      case Kind::kMean:
        return acc.is_integral() ? topi::SafeTruncDiv(v, cast(acc, n)) : v / cast(acc, n);
      case Kind::kNormL2:
        return sqrt(v);
      case Kind::kLogSum:
        return log(v);
      default:
        return v;
    }
  };
  bool same = acc == t && row.kind != Kind::kMean && row.kind != Kind::kNormL2 && row.kind != Kind::kLogSum;
  return same ? r : topi::Map(r, [&](PrimExpr v) { return cast(t, last(v)); }, row.name);
}

template <const ReduceRow& kRow>
bool ReduceRel(const Array<Type>& types, int num_inputs, const Attrs& attrs, TypeReporter& reporter) {
  if (!AllKnown(types, num_inputs)) return false;
  TypeArgs in(kRow.name, types, num_inputs, reporter);
  reporter.Assign(types[1], ReduceType(kRow, AttrsAs<ReduceAttrs>(attrs), in));
  return true;
}
template <const ReduceRow& kRow>
Tensor LowerRow(const ReduceAttrs& a, const Tensors& in) {
  return LowerReduce(kRow, a, in[0]);
}
Op DefineRow(const ReduceRow& row, TypeRelationFn rel, LowerFn lower, OpTraits traits) {
  traits.layout = LayoutRule::kReduces;
  constexpr const char* kDocs[] = {"R1: floating or integer dtype.", "R1: floating dtype.", "R1: bool.",
                                   "floating or integer dtype, or bool."};
  return DefineOp({.name = row.name,
                   .doc = row.doc,
                   .inputs = {{"data", kDocs[static_cast<int>(row.domain)]}},
                   .output = "`data` without the reduced axes, its dtype.",
                   .attrs = TypeOf<ReduceAttrs>,
                   .type_rel = rel,
                   .lower = lower,
                   .gradient = row.gradient,
                   .pattern = OpPattern::kCommReduce,
                   .source = row.source,
                   .traits = traits});
}
template <const ReduceRow& kRow>
Op Row(const OpTraits& traits = {}) {
  return DefineRow(kRow, ReduceRel<kRow>, LowerRow<kRow>, traits);
}

constexpr auto kN = Domain::kNumber;
}  // namespace

namespace op {
extern const Op cumsum;
}
namespace gradient {
namespace {

/// A reduction's axes; its result and the result's adjoint with the reduced axes kept, to broadcast against data.
struct Reduced {
  At at;
  Ints axes;
  bool keepdims;
  Val x, y, g;

  template <class A>
  Reduced(const Call& call, const Expr& grad, const A& a)
      : at(call, grad), axes(ReducedAxes(a.axis, a.exclude, at.ndim(0), at.op())), keepdims(a.keepdims), x(at.x()) {
    y = Kept(at.y()), g = Kept(at.g());
  }
  Reduced(const Call& call, const Expr& grad) : Reduced(call, grad, AttrsAs<ReduceAttrs>(call->attrs)) {}
  Val Kept(const Val& v) const {
    // A scalar broadcasts as it is.
    if (keepdims || axes.empty() || static_cast<int64_t>(axes.size()) == at.ndim(0)) return v;
    return {MakeCall<ExpandDimsAttrs>(op::expand_dims, {v.e}, [&](ExpandDimsAttrs* a) { a->axes = ToArray(axes); }),
            v.t};
  }
  /// `v`, which has the kept axes, with data's shape.
  Expr Spread(const Val& v) const {
    if (!at.Static(at.type(0)->shape)) return MakeCall(op::broadcast_to_like, {v.e, at.arg(0)});
    return MakeCall<InitOpAttrs>(op::broadcast_to, {v.e}, [&](InitOpAttrs* a) { a->shape = ToArray(at.dims(0)); });
  }
  double Count() const {
    Ints dims;
    for (int64_t d : axes) {
      int64_t n = DimOf(at.type(0)->shape[d]);
      if (n < 0) at.Fail("it needs known extents of the axes that it reduces");
      dims.push_back(n);
    }
    return static_cast<double>(ProductOf(dims));
  }
};

Grads SumBack(const Call& call, const Expr& grad) {
  Reduced r(call, grad);
  return {r.Spread(r.g)};
}
Grads MeanBack(const Call& call, const Expr& grad) {
  Reduced r(call, grad);
  return {r.Spread(r.g / r.Count())};
}
/// The largest elements share the adjoint equally.
Grads ExtremeBack(const Call& call, const Expr& grad) {
  Reduced r(call, grad);
  Val hit = Pick(Test(op::equal, r.x, r.y), 1, 0);
  return {hit * (r.g / Val{Sum(hit, r.axes, true), r.x.t})};
}
Grads LogSumExpBack(const Call& call, const Expr& grad) {
  Reduced r(call, grad);
  return {r.g * Do(op::exp, r.x - r.y)};
}
Grads SumSquaresBack(const Call& call, const Expr& grad) {
  Reduced r(call, grad);
  return {r.g * (2 * r.x)};
}
Grads NormL1Back(const Call& call, const Expr& grad) {
  Reduced r(call, grad);
  return {r.g * Do(op::sign, r.x)};
}
Grads NormL2Back(const Call& call, const Expr& grad) {
  Reduced r(call, grad);
  return {r.g * (r.x / r.y)};
}
Grads LogSumBack(const Call& call, const Expr& grad) {
  Reduced r(call, grad);
  return {r.Spread(r.g / Do(op::exp, r.y))};
}
Val Centred(const Reduced& r) { return r.x - Val{Mean(r.x, r.axes), r.x.t}; }
Grads VarianceBack(const Call& call, const Expr& grad) {
  const auto& a = AttrsAs<VarianceAttrs>(call->attrs);
  Reduced r(call, grad, a);
  return {r.g * (2 / (r.Count() - (a.unbiased ? 1 : 0))) * Centred(r)};
}
Grads StdBack(const Call& call, const Expr& grad) {
  const auto& a = AttrsAs<VarianceAttrs>(call->attrs);
  Reduced r(call, grad, a);
  return {r.g / r.y * (1 / (r.Count() - (a.unbiased ? 1 : 0))) * Centred(r)};
}

Expr ScanCall(const Op& op, const Expr& data, const PrimExpr& axis, bool exclusive, bool reverse) {
  return MakeCall<ScanopAttrs>(op, {data},
                               [&](ScanopAttrs* a) { a->axis = axis, a->exclusive = exclusive, a->reverse = reverse; });
}
/// The product of the other elements, right with zeros too: of those before times those behind.
Grads ProdBack(const Call& call, const Expr& grad) {
  Reduced r(call, grad);
  const Ints dims = r.at.dims(0);
  Ints order, moved, back(dims.size());
  int64_t merged = 1;
  for (int64_t d = 0, next = 0; d < static_cast<int64_t>(dims.size()); ++d) {
    if (next < static_cast<int64_t>(r.axes.size()) && r.axes[next] == d) {
      ++next;
    } else {
      order.push_back(d);
      moved.push_back(dims[d]);
    }
  }
  for (int64_t d : r.axes) order.push_back(d), merged *= dims[d];
  moved.push_back(merged);
  for (size_t i = 0; i < order.size(); ++i) back[order[i]] = static_cast<int64_t>(i);
  if (ProductOf(dims) == 0) return {ZerosLike(r.at.arg(0))};
  Ints spread;
  for (int64_t d : order) spread.push_back(dims[d]);
  Expr flat = Reshape(Permute(r.x, order), ToArray(moved));
  PrimExpr axis(static_cast<int64_t>(moved.size()) - 1);
  Expr others = Multiply(ScanCall(op::cumprod, flat, axis, true, false), ScanCall(op::cumprod, flat, axis, true, true));
  return {Multiply(r.g, Permute(Reshape(others, ToArray(spread)), back))};
}

Expr Typed(const At& at, const Expr& g) { return at.dtype(0) == at.out()->dtype ? g : Cast(g, at.dtype(0)); }
Grads CumSumBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  const auto& a = at.attrs<ScanopAttrs>();
  if (!at.floating(0)) return {Expr()};
  Expr g = ScanCall(op::cumsum, grad, a.axis, a.exclusive, !a.reverse);
  return {Typed(at, HasValue(a.axis) ? g : ShapeLike(g, at.arg(0)))};
}
/// Not defined at 0, where it gives NaN.
Grads CumProdBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  const auto& a = at.attrs<ScanopAttrs>();
  if (!at.floating(0)) return {Expr()};
  Expr g = ScanCall(op::cumsum, at.g() * at.y(), a.axis, a.exclusive, !a.reverse);
  if (!HasValue(a.axis)) g = ShapeLike(g, at.arg(0));
  return {Val{Typed(at, g), at.dtype(0)} / at.x()};
}

}  // namespace
}  // namespace gradient

namespace {

constexpr ReduceRow kSum{"sum",
                         "Sum; 0 of nothing. Integers keep their dtype and wrap around.",
                         Kind::kSum,
                         kN,
                         "ONNX ReduceSum-13",
                         gradient::SumBack};
constexpr ReduceRow kProd{"prod", "Product; 1 of nothing.", Kind::kProd, kN, "ONNX ReduceProd-18", gradient::ProdBack};
constexpr ReduceRow kMax{"max",
                         "Largest; NaN if any is. The lowest value of the dtype (-inf) of nothing.",
                         Kind::kMax,
                         Domain::kOrdered,
                         "ONNX ReduceMax-20",
                         gradient::ExtremeBack};
constexpr ReduceRow kMin{"min",
                         "Smallest; NaN if any is. The highest value of the dtype (inf) of nothing.",
                         Kind::kMin,
                         Domain::kOrdered,
                         "ONNX ReduceMin-20",
                         gradient::ExtremeBack};
constexpr ReduceRow kMean{"mean",
                          "Mean; NaN of nothing. Integers truncate towards 0.",
                          Kind::kMean,
                          kN,
                          "ONNX ReduceMean-18",
                          gradient::MeanBack};
constexpr ReduceRow kAll{"all", "Whether all are true.", Kind::kAll, Domain::kBool, "NumPy"};
constexpr ReduceRow kAny{"any", "Whether any is true.", Kind::kAny, Domain::kBool, "NumPy"};
constexpr ReduceRow kLogSumExp{"logsumexp",
                               "log(sum(exp(data))), safe for large values.",
                               Kind::kLogSumExp,
                               Domain::kFloat,
                               "ONNX ReduceLogSumExp-18",
                               gradient::LogSumExpBack};
constexpr ReduceRow kSumSquares{
    "sum_squares", "Sum of squares.", Kind::kSumSquares, kN, "ONNX ReduceSumSquare-18", gradient::SumSquaresBack};
constexpr ReduceRow kNormL1{"norm_l1", "Sum of magnitudes.", Kind::kNormL1,
                            kN,        "ONNX ReduceL1-18",   gradient::NormL1Back};
constexpr ReduceRow kNormL2{
    "norm_l2", "Square root of the sum of squares.", Kind::kNormL2, kN, "ONNX ReduceL2-18", gradient::NormL2Back};
constexpr ReduceRow kLogSum{"log_sum",      "Logarithm of the sum.", Kind::kLogSum,
                            Domain::kFloat, "ONNX ReduceLogSum-18",  gradient::LogSumBack};

// ---- argmax, argmin
template <OpName kName>
Type ArgType(const ArgReduceAttrs& a, const TypeArgs& in) {
  in.Number(0, "R1");
  if (!a.dtype.is_integral())
    in.Fail("R2", "dtype is " + DataType2String(a.dtype) + ", where an integer one is wanted");
  Ints axes = AxesOf(a, in.ndim(0), kName.text);
  for (int64_t d : axes) {
    if (in.dim(0, d) == 0)
      in.Fail("R3", "`data` has shape " + ShowShape(in.shape(0)) + ": axis " + Str(d) + " has no element to choose");
  }
  return TensorType(topi::ReducedShape(in.shape(0), axes, a.keepdims), a.dtype);
}
template <OpName kName, bool kMaximum>
Tensor LowerArg(const ArgReduceAttrs& a, const Tensors& in) {
  // The extreme value first, then its place: two plain reductions vectorise, one of pairs does not.
  const Tensor& x = in[0];
  Ints axes = AxesOf(a, x.ndim(), kName.text);
  DataType t = Wide(x.dtype());
  Tensor top = topi::ReduceWith(
      x, axes, true, kMaximum ? te::MaxOf : te::MinOf,
      [&](PrimExpr v, const Shape&, const Shape&) { return cast(t, v); }, "extreme");
  Shape reduced;
  for (int64_t d : axes) reduced.push_back(x.shape()[d]);
  PrimExpr none = a.select_last_index ? tir::make_int(a.dtype, 0) : max_value(a.dtype);
  return topi::ReduceWith(
      x, axes, a.keepdims, a.select_last_index ? te::MaxOf : te::MinOf,
      [&](PrimExpr v, const Shape& at, const Shape& k) {
        PrimExpr m = topi::BroadcastAt(top, at), w = cast(t, v), hit = equal(w, m);
        if (t.is_floating()) hit = hit || (isnan(w) && isnan(m));
        return te::Select(hit, cast(a.dtype, topi::Ravel(k, reduced)), none);
      },
      kName.text);
}
template <OpName kName, bool kMaximum>
Op DefineArg(const char* doc, const char* source) {
  return DefineOp({.name = kName.text,
                   .doc = doc,
                   .inputs = {{"data", "R1: floating or integer dtype. R3: no reduced axis is empty."}},
                   .output = "`data` without the reduced axes. R2: `dtype` is an integer one.",
                   .attrs = TypeOf<ArgReduceAttrs>,
                   .type_rel = Rel<kName, ArgType<kName>>,
                   .lower = LowerArg<kName, kMaximum>,
                   .pattern = OpPattern::kCommReduce,
                   .source = source,
                   .traits = {.precision = Precision::kFollow}});
}

// ---- variance, std
Type VarianceType(const VarianceAttrs& a, const TypeArgs& in) {
  in.Floating(0, "R1");
  return TensorType(topi::ReducedShape(in.shape(0), AxesOf(a, in.ndim(0), in.op()), a.keepdims), in.dtype(0));
}
Tensor Variance(const VarianceAttrs& a, const Tensor& x, bool root) {
  Ints axes = AxesOf(a, x.ndim(), "variance");
  DataType t = Wide(x.dtype());
  PrimExpr n = cast(t, topi::ReducedCount(x.shape(), axes));
  Tensor sum = SumOf(x, axes, true, t);
  Tensor mean = topi::Map(sum, [&](PrimExpr v) { return v / n; }, "mean");
  Tensor squares = topi::ReduceWith(
      x, axes, a.keepdims, te::Sum,
      [&](PrimExpr v, const Shape& at, const Shape&) {
        PrimExpr d = cast(t, v) - topi::BroadcastAt(mean, at);
        return d * d;
      },
      "squares");
  return topi::Map(
      squares,
      [&](PrimExpr v) {
        PrimExpr y = v / (a.unbiased ? n - Lit(1, t) : n);
        return cast(x.dtype(), root ? sqrt(y) : y);
      },
      root ? "std" : "variance");
}
Tensor LowerVariance(const VarianceAttrs& a, const Tensors& in) { return Variance(a, in[0], false); }
Tensor LowerStd(const VarianceAttrs& a, const Tensors& in) { return Variance(a, in[0], true); }

// ---- cumsum, cumprod
Type ScanType(const ScanopAttrs& a, const TypeArgs& in) {
  if (!in.dtype(0).is_bool() || a.dtype.is_void() || a.dtype.is_bool()) in.Number(0, "R1");
  DataType t = a.dtype.is_void() ? in.dtype(0) : a.dtype;
  if (HasValue(a.axis)) {
    in.Axis(ValueOf(a.axis), in.ndim(0));
    return TensorType(in.shape(0), t);
  }
  return TensorType(Shape{MakeDim(ProductOf(Dims(in.shape(0))))}, t);
}
/// Elements of the last dimension that a running sum along another one takes side by side; 0: it takes one.
int64_t ScanLanes(const Tensor& x, int64_t axis) {
  const int64_t last = axis + 1 == x.ndim() ? -1 : DimOf(x.shape()[x.ndim() - 1]);
  return last <= 0 ? 0 : last % 64 == 0 ? 64 : last % 16 == 0 ? 16 : 0;
}
/// Sums below this are not worth a second thread.
constexpr int64_t kParallelScan = 1 << 16;
/// Rounds over a shape, in parallel where they are many: `each` elements in each of them.
template <class Body>
tir::Stmt ScanRounds(const Shape& shape, int64_t each, Body body) {
  const int64_t rounds = ProductOf(Dims(shape));
  if (each <= 0 || rounds < 2 || rounds < kParallelScan / each) return topi::Loops(shape, body);
  tir::Var round("round");
  tir::ForNode n;
  n.loop_var = round, n.min = 0, n.extent = PrimExpr(rounds), n.kind = tir::ForKind::kParallel;
  n.body = body(topi::Unravel(round, shape));
  return tir::For(std::move(n));
}
template <bool kProduct>
Tensor LowerScan(const ScanopAttrs& a, const Tensors& in) {
  Tensor x = in[0];
  int64_t axis = 0;
  if (HasValue(a.axis)) {
    axis = NormalizeAxis(ValueOf(a.axis), x.ndim(), "cumsum");
  } else {
    x = topi::Reshape(x, {topi::Product(x.shape())});
  }
  DataType t = a.dtype.is_void() ? x.dtype() : a.dtype, acc_t = Wide(t);
  PrimExpr n = x.shape()[axis];
  const int64_t wide = ScanLanes(x, axis), lanes = std::max<int64_t>(wide, 1);
  return topi::Extern(
      x.shape(), t, {x},
      [&](const Array<tir::Buffer>& from, const tir::Buffer& out) {
        Shape others;
        for (int64_t d = 0; d < x.ndim(); ++d) {
          if (d != axis) others.push_back(x.shape()[d]);
        }
        if (wide) others.Set(x.ndim() - 2, PrimExpr(DimOf(x.shape()[x.ndim() - 1]) / lanes));
        return ScanRounds(others, DimOf(n) * lanes, [&](const Shape& i) {
          tir::Buffer acc = tir::Buffer::Make({PrimExpr(lanes)}, acc_t, "acc", "local");
          auto side_by_side = [&](auto body) {
            if (!wide) return body(PrimExpr(0));
            tir::Var lane("lane");
            tir::ForNode f;
            f.loop_var = lane, f.min = 0, f.extent = PrimExpr(lanes), f.kind = tir::ForKind::kVectorized;
            f.body = body(PrimExpr(lane));
            return tir::Stmt(tir::For(std::move(f)));
          };
          tir::Stmt run = topi::Loops({n}, [&](const Shape& k) {
            PrimExpr pos = a.reverse ? n - PrimExpr(1) - k[0] : k[0];
            return side_by_side([&](const PrimExpr& lane) -> tir::Stmt {
              Shape at;
              for (int64_t d = 0, o = 0; d < x.ndim(); ++d) at.push_back(d == axis ? pos : i[o++]);
              if (wide) at.Set(x.ndim() - 1, at.back() * PrimExpr(lanes) + lane);
              PrimExpr have = tir::BufferLoad(acc, {lane}), v = topi::Convert(acc_t, tir::BufferLoad(from[0], at));
              tir::Stmt step = topi::Store(acc, {lane}, kProduct ? have * v : have + v);
              tir::Stmt put = topi::Store(out, at, cast(t, have));
              return tir::SeqStmt::Flatten(a.exclusive ? Array<tir::Stmt>{put, step} : Array<tir::Stmt>{step, put});
            });
          });
          tir::Stmt begin = side_by_side(
              [&](const PrimExpr& lane) { return topi::Store(acc, {lane}, Lit(kProduct ? 1 : 0, acc_t)); });
          tir::AllocateNode alloc;
          alloc.buffer = acc;
          alloc.body = tir::SeqStmt::Flatten({begin, run});
          return tir::Stmt(tir::Allocate(std::move(alloc)));
        });
      },
      kProduct ? "cumprod" : "cumsum");
}
template <OpName kName, bool kProduct>
Op DefineScan(const char* doc) {
  return DefineOp({.name = kName.text,
                   .doc = doc,
                   .inputs = {{"data", "R1: floating or integer dtype, or bool where `dtype` is given."}},
                   .output = "Shape of `data`, or its number of elements with axis=None.",
                   .attrs = TypeOf<ScanopAttrs>,
                   .type_rel = Rel<kName, ScanType>,
                   .lower = LowerScan<kProduct>,
                   .gradient = kProduct ? gradient::CumProdBack : gradient::CumSumBack,
                   .pattern = OpPattern::kOpaque,
                   .source = "NumPy; ONNX CumSum-14",
                   .traits = {.precision = Precision::kNever}});
}

}  // namespace

namespace {
/// A whole vector as one number.
template <Kind kKind>
std::optional<Elements> ReducedElements(const ElementsSite& site) {
  if (AttrsAs<ReduceAttrs>(site.attrs).exclude) return std::nullopt;
  if constexpr (kKind == Kind::kSum) {
    return ElementsOfReduction(site, [](PrimExpr a, PrimExpr b) { return a + b; }, PrimExpr(int64_t{0}));
  } else if constexpr (kKind == Kind::kProd) {
    return ElementsOfReduction(site, [](PrimExpr a, PrimExpr b) { return a * b; }, PrimExpr(int64_t{1}));
  } else if constexpr (kKind == Kind::kMax) {
    return ElementsOfReduction(site, [](PrimExpr a, PrimExpr b) { return max(a, b); }, PrimExpr());
  } else {
    static_assert(kKind == Kind::kMin);
    return ElementsOfReduction(site, [](PrimExpr a, PrimExpr b) { return min(a, b); }, PrimExpr());
  }
}
}  // namespace

const Op op::sum = Row<kSum>({.reference = reference::Sum, .elements = ReducedElements<Kind::kSum>}),
         op::prod = Row<kProd>({.elements = ReducedElements<Kind::kProd>}),
         op::max = Row<kMax>(
             {.precision = Precision::kFollow, .values = Values::kSelects, .elements = ReducedElements<Kind::kMax>}),
         op::min = Row<kMin>(
             {.precision = Precision::kFollow, .values = Values::kSelects, .elements = ReducedElements<Kind::kMin>}),
         op::mean = Row<kMean>({.integers = integers::Averages}), op::all = Row<kAll>(), op::any = Row<kAny>(),
         op::logsumexp = Row<kLogSumExp>(), op::sum_squares = Row<kSumSquares>(), op::norm_l1 = Row<kNormL1>(),
         op::norm_l2 = Row<kNormL2>(), op::log_sum = Row<kLogSum>();
const Op op::argmax =
    DefineArg<"argmax", true>("Index of the largest, the first of equal ones; NaN is largest.", "ONNX ArgMax-13");
const Op op::argmin =
    DefineArg<"argmin", false>("Index of the smallest, the first of equal ones; NaN is smallest.", "ONNX ArgMin-13");
const Op op::variance = DefineOp({
    .name = "variance",
    .doc = "Mean of the squared distance from the mean.",
    .inputs = {{"data", "R1: floating dtype."}},
    .output = "`data` without the reduced axes, its dtype.",
    .attrs = TypeOf<VarianceAttrs>,
    .type_rel = Rel<"variance", VarianceType>,
    .lower = LowerVariance,
    .gradient = gradient::VarianceBack,
    .pattern = OpPattern::kCommReduce,
    .source = "NumPy var",
    .traits = {.layout = LayoutRule::kReduces},
});
const Op op::std = DefineOp({
    .name = "std",
    .doc = "Square root of the variance.",
    .inputs = {{"data", "R1: floating dtype."}},
    .output = "`data` without the reduced axes, its dtype.",
    .attrs = TypeOf<VarianceAttrs>,
    .type_rel = Rel<"std", VarianceType>,
    .lower = LowerStd,
    .gradient = gradient::StdBack,
    .pattern = OpPattern::kCommReduce,
    .source = "NumPy std",
    .traits = {.layout = LayoutRule::kReduces},
});
const Op op::cumsum = DefineScan<"cumsum", false>("Running sums along an axis.");
const Op op::cumprod = DefineScan<"cumprod", true>("Running products along an axis.");

}  // namespace baton::relay

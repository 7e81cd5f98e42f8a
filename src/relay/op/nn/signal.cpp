// SPDX-License-Identifier: Apache-2.0
// Fourier transforms, spreading elements apart, and losses.
#include <baton/relay/op/make.h>
#include <baton/relay/op/nn.h>
#include <baton/topi/elemwise.h>
#include <baton/topi/reduce.h>

#include "../common.h"
#include "../gradient.h"

namespace baton::relay {
namespace {

struct NLLLossAttrs : AttrsNode<NLLLossAttrs> {
  static constexpr auto _type_key = "relay.attrs.NLLLossAttrs";
  String reduction = "mean";
  int64_t ignore_index = -100;
  static constexpr void Describe(auto& d) {
    d(F<&NLLLossAttrs::reduction>, "\"mean\" (by weight), \"sum\" or \"none\".");
    d(F<&NLLLossAttrs::ignore_index>, "Target that does not count.");
  }
};

struct DilateAttrs : AttrsNode<DilateAttrs> {
  static constexpr auto _type_key = "relay.attrs.DilateAttrs";
  Array<int64_t> strides;
  double dilation_value = 0;
  static constexpr void Describe(auto& d) {
    d(F<&DilateAttrs::strides>, "Distance of neighbours in the result, one a dimension.", kRequired, AtLeast(1));
    d(F<&DilateAttrs::dilation_value>, "What stands between them.");
  }
};

struct DFTAttrs : AttrsNode<DFTAttrs> {
  static constexpr auto _type_key = "relay.attrs.DFTAttrs";
  int64_t axis = 1;
  bool inverse = false;
  bool onesided = false;
  PrimExpr length;
  static constexpr void Describe(auto& d) {
    d(F<&DFTAttrs::axis>, "Dimension of the signal.");
    d(F<&DFTAttrs::inverse>, "Whether to go back, divided by the length.");
    d(F<&DFTAttrs::onesided>, "Whether only frequencies up to half the rate are given (a real signal's).");
    d(F<&DFTAttrs::length>, "Elements of the signal to use, zeros added or the end cut; None: all.");
  }
};

// ---- dft
struct Signal {
  int64_t axis, have, length, out;  ///< elements of data, of the transform, of the result
  bool half_in;                     ///< data holds the first half of a spectrum that is symmetric
};
Signal SignalOf(const DFTAttrs& a, const Shape& in, const char* op) {
  Signal s;
  s.axis = NormalizeAxis(a.axis, static_cast<int64_t>(in.size()), op);
  s.have = DimOf(in[s.axis]);
  s.half_in = a.inverse && a.onesided;
  s.length = HasValue(a.length) ? ValueOf(a.length) : s.half_in ? 2 * (s.have - 1) : s.have;
  s.out = a.onesided && !a.inverse ? s.length / 2 + 1 : s.length;
  return s;
}
Type DFTType(const DFTAttrs& a, const TypeArgs& in) {
  in.Floating(0, "R1");
  in.MinRank(0, 2, "R2");
  Signal s = SignalOf(a, in.shape(0), in.op());
  int64_t last = in.ndim(0) - 1, parts = in.dim(0, last);
  if (s.axis == last) in.Fail("R2", "axis " + Str(s.axis) + " is that of the real and imaginary parts");
  if (parts != 1 && parts != 2) in.Fail("R3", in.Show(0) + ", where the last dimension holds 1 or 2 parts");
  if (s.have < 0) in.Fail("R4", in.Show(0) + ": the extent of axis " + Str(s.axis) + " is not known");
  if (s.length < 1 || s.length > (1 << 24))
    in.Fail("R4", "the signal has " + Str(s.length) + " elements, where 1 to 2 ** 24 are wanted");
  if (a.onesided && !a.inverse && parts != 1) in.Fail("R3", "onesided is for real signals, with one part");
  Shape out = in.shape(0);
  out.Set(s.axis, PrimExpr(s.out));
  out.Set(last, PrimExpr(s.half_in ? 1 : 2));
  return TensorType(out, in.dtype(0));
}
Tensor LowerDFT(const DFTAttrs& a, const Tensors& in) {
  const Tensor& x = in[0];
  Signal s = SignalOf(a, x.shape(), "dft");
  int64_t last = x.ndim() - 1, terms = s.half_in ? s.length / 2 + 1 : s.length;
  if (terms > s.have) terms = s.have;  // elements beyond are 0
  DataType t = Wide(x.dtype()), f64 = DataType::Float(64);
  bool complex = DimOf(x.shape()[last]) == 2;
  PrimExpr n = s.length;
  // cos and sin of all multiples of 2 pi / length, in float64.
  auto wave = [&](PrimExpr (*f)(PrimExpr), const char* name) {
    return te::Compute(
        Shape{n},
        [&](Indices i) {
          return cast(t,
                      f(cast(f64, PrimExpr(i[0])) * Lit(6.283185307179586476925 / static_cast<double>(s.length), f64)));
        },
        name);
  };
  Tensor c = wave(baton::cos, "cosines"), sn = wave(baton::sin, "sines");
  Shape out = x.shape();
  out.Set(s.axis, PrimExpr(s.out));
  out.Set(last, PrimExpr(s.half_in ? 1 : 2));
  Array<te::IterVar> k{te::ReduceAxis(0, PrimExpr(terms), "k")};
  Tensor sum = te::Compute(
      out,
      [&](Indices i) {
        Shape at = i;
        at.Set(s.axis, k[0]->var);
        at.Set(last, PrimExpr(0));
        PrimExpr re = cast(t, x(at)), im = Lit(0, t);
        if (complex) {
          at.Set(last, PrimExpr(1));
          im = cast(t, x(at));
        }
        PrimExpr angle = floormod(i[s.axis] * k[0]->var, n), cv = c(angle), sv = sn(angle);
        if (!a.inverse) sv = -sv;
        PrimExpr real = re * cv - im * sv, v = real;
        if (!s.half_in) v = te::Select(equal(PrimExpr(i[last]), PrimExpr(0)), real, im * cv + re * sv);
        if (s.half_in) {  // the other half of the spectrum adds the same again
          PrimExpr once = equal(PrimExpr(k[0]->var), PrimExpr(0)) || equal(k[0]->var * PrimExpr(2), n);
          v = te::Select(once, v, v * Lit(2, t));
        }
        return te::Sum(v, k);
      },
      "dft");
  return topi::Map(
      sum, [&](PrimExpr v) { return cast(x.dtype(), a.inverse ? v / Lit(static_cast<double>(s.length), t) : v); },
      "dft");
}

// ---- dilate
Type DilateType(const DilateAttrs& a, const TypeArgs& in) {
  if (static_cast<int64_t>(a.strides.size()) != in.ndim(0))
    in.Fail("R1", "strides has " + Str(a.strides.size()) + " numbers, " + in.Show(0) + " has rank " + Str(in.ndim(0)));
  Shape out = in.shape(0);
  for (int64_t d = 0; d < in.ndim(0); ++d) {
    int64_t n = in.dim(0, d), to;
    if (a.strides[d] == 1) continue;
    if (n >= 0 && (__builtin_mul_overflow(n - 1, a.strides[d], &to) || to > (int64_t{1} << 48)))
      in.Fail("R1", "the result has too many elements");
    out.Set(d, n < 0 ? UnknownDim() : PrimExpr(n == 0 ? 0 : to + 1));
  }
  return TensorType(out, in.dtype(0));
}
Tensor LowerDilate(const DilateAttrs& a, const Tensors& in) {
  const Tensor& x = in[0];
  Shape out;
  for (int64_t d = 0; d < x.ndim(); ++d) {
    const PrimExpr& n = x.shape()[d];
    out.push_back(a.strides[d] == 1 || tir::is_zero(n) ? n : (n - PrimExpr(1)) * PrimExpr(a.strides[d]) + PrimExpr(1));
  }
  return te::Compute(
      out,
      [&](Indices i) {
        Shape at;
        PrimExpr hit;
        for (int64_t d = 0; d < x.ndim(); ++d) {
          if (a.strides[d] == 1) {
            at.push_back(i[d]);
            continue;
          }
          PrimExpr c = equal(floormod(i[d], PrimExpr(a.strides[d])), PrimExpr(0));
          hit = hit.defined() ? hit && c : c;
          at.push_back(floordiv(i[d], PrimExpr(a.strides[d])));
        }
        return hit.defined() ? if_then_else(hit, x(at), Lit(a.dilation_value, x.dtype())) : x(at);
      },
      "dilate");
}

// ---- losses
Type NLLLossType(const NLLLossAttrs& a, const TypeArgs& in) {
  in.Floating(0, "R1");
  in.SameDtype(0, 2, "R1");
  in.Integral(1, "R2");
  in.Rank(2, 1, "R3");
  in.MinRank(0, in.ndim(1) == 0 ? 1 : 2, "R3");
  if (a.reduction != "mean" && a.reduction != "sum" && a.reduction != "none")
    in.Fail("R4", "reduction is \"" + a.reduction.str() + "\"; it is \"mean\", \"sum\" or \"none\"");
  bool fits = in.ndim(0) == in.ndim(1) + 1;
  for (int64_t d = 0; fits && d < in.ndim(1); ++d) fits = in.Same(in.shape(1)[d], in.shape(0)[d == 0 ? 0 : d + 1]);
  if (!fits)
    in.Fail("R3", in.Show(1) + " and " + in.Show(0) + ": targets have the shape of predictions without the classes");
  if (!in.Same(in.shape(2)[0], in.shape(0)[in.ndim(1) == 0 ? 0 : 1]))
    in.Fail("R3", in.Show(2) + ", where a weight for each class of " + in.Show(0) + " is wanted");
  return TensorType(a.reduction == "none" ? in.shape(1) : Shape(), in.dtype(0));
}
Tensor LowerNLLLoss(const NLLLossAttrs& a, const Tensors& in) {
  const Tensor &p = in[0], &y = in[1], &w = in[2];
  DataType t = Wide(p.dtype());
  int64_t class_dim = y.ndim() == 0 ? 0 : 1;
  PrimExpr classes = p.shape()[class_dim];
  auto weight = [&](const Shape& i, PrimExpr* index) {
    PrimExpr target = cast(DataType::Int(64), y(i));
    *index = max(min(target, classes - PrimExpr(1)), PrimExpr(0));
    return te::Select(equal(target, PrimExpr(a.ignore_index)), Lit(0, t), cast(t, w(*index)));
  };
  auto loss = [&](const Shape& i) {
    PrimExpr index, v = weight(i, &index);
    Shape at = i;
    at.insert(class_dim, index);
    return -cast(t, p(at)) * v;
  };
  if (a.reduction == "none")
    return te::Compute(y.shape(), [&](Indices i) { return cast(p.dtype(), loss(i)); }, "nll_loss");
  Ints all;
  for (int64_t d = 0; d < y.ndim(); ++d) all.push_back(d);
  Tensor sum = topi::ReduceWith(
      y, all, false, te::Sum, [&](PrimExpr, const Shape& at, const Shape&) { return loss(at); }, "loss_sum");
  if (a.reduction == "sum") return topi::Cast(sum, p.dtype());
  Tensor total = topi::ReduceWith(
      y, all, false, te::Sum,
      [&](PrimExpr, const Shape& at, const Shape&) {
        PrimExpr index;
        return weight(at, &index);
      },
      "weight_sum");
  return te::Compute(Shape(), [&](Indices i) { return cast(p.dtype(), sum(i) / total(i)); }, "nll_loss");
}
Type CrossEntropyType(const TypeArgs& in) {
  in.Floating(0, "R1");
  in.SameDtype(0, 1, "R1");
  in.Rank(0, 2, "R2");
  in.Rank(1, 2, "R2");
  for (int64_t d = 0; d < 2; ++d) {
    if (!in.Same(in.shape(0)[d], in.shape(1)[d])) in.Fail("R2", in.Show(0) + " and " + in.Show(1) + " differ in shape");
  }
  return TensorType(Shape(), in.dtype(0));
}
template <bool kLogits>
Tensor LowerCrossEntropy(const Tensors& in) {
  DataType t = Wide(in[0].dtype());
  Tensor sum = topi::ReduceWith(
      in[0], {0, 1}, false, te::Sum,
      [&](PrimExpr v, const Shape& at, const Shape&) {
        v = cast(t, v);
        return (kLogits ? v : log(v)) * cast(t, in[1](at));
      },
      "cross_entropy");
  return topi::Map(
      sum, [&](PrimExpr v) { return cast(in[0].dtype(), -v / cast(t, in[0].shape()[0])); }, "cross_entropy");
}

}  // namespace

namespace gradient {
namespace {

/// The other direction, which differs from the adjoint by the length that the inverse divides by.
Grads DFTBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  const auto& a = at.attrs<DFTAttrs>();
  Ints dims = at.dims(0), out = at.out_dims();
  int64_t axis = at.Axis(a.axis), last = at.ndim(0) - 1, have = dims[axis];
  int64_t length = HasValue(a.length) ? ValueOf(a.length) : a.inverse ? out[axis] : have;
  if (ProductOf(dims) == 0) return {ZerosLike(at.arg(0))};
  bool half = a.inverse && a.onesided;
  Val back{MakeCall<DFTAttrs>(op::dft, {grad},
                              [&](DFTAttrs* b) {
                                b->axis = axis, b->inverse = !a.inverse, b->onesided = half;
                                b->length = PrimExpr(length);
                              }),
           at.dtype(0)};
  double n = static_cast<double>(length);
  back = back * (a.inverse ? 1 / n : n);
  if (half) {  // elements that stand for two of a symmetric spectrum count twice
    int64_t terms = length / 2 + 1;
    runtime::NDArray often = runtime::NDArray::Empty({terms}, at.dtype(0));
    for (int64_t k = 0; k < terms; ++k) often.SetDouble(k, k == 0 || 2 * k == length ? 1 : 2);
    back = back * Val{ExpandDims(Constant(ConstantNode{{}, often}), 1, last - axis), back.t};
  }
  Ints before(dims.size(), 0), after(dims.size(), 0);
  after[axis] = have - (half ? length / 2 + 1 : length);
  after[last] = dims[last] - 2;
  return {Pad(back, before, after, at.dtype(0))};
}
Grads DilateBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  const auto& a = at.attrs<DilateAttrs>();
  Ints dims = at.out_dims();
  return {MakeCall<StridedSliceAttrs>(op::strided_slice, {grad}, [&](StridedSliceAttrs* s) {
    s->begin = ToArray(Ints(dims.size(), 0)), s->end = ToArray(dims), s->strides = a.strides;
  })};
}

template <bool kLogits>
Expr DecomposeCrossEntropy(const Call& call, const Array<Expr>& args) {
  At at(call, call);
  Val p{args[0], at.dtype(0)}, q{args[1], at.dtype(1)};
  int64_t n = DimOf(at.type(0)->shape[0]);
  if (n < 0) at.Fail("it needs a known batch");
  return Val{Sum((kLogits ? p : Do(op::log, p)) * q, {0, 1}), p.t} * (-1.0 / static_cast<double>(n));
}
Expr DecomposeNLLLoss(const Call& call, const Array<Expr>& args) {
  At at(call, call);
  const auto& a = at.attrs<NLLLossAttrs>();
  DataType t = at.dtype(0), i64 = DataType::Int(64);
  int64_t rank = at.ndim(1), c = at.ndim(0) == 1 ? 0 : 1;
  Val target{Cast(args[1], i64), i64};
  Val counts = Test(op::not_equal, target, static_cast<double>(a.ignore_index));
  // An ignored target need not be a class.
  Val safe = Pick(counts, target, 0);
  Val w{MakeCall<TakeAttrs>(op::take, {args[2], safe.e}, [](TakeAttrs* k) { k->axis = PrimExpr(0); }), t};
  w = Pick(Val{counts.e, t}, w, 0);
  Val picked{
      Squeeze(MakeCall<GatherAttrs>(op::gather, {args[0], ExpandDims(safe.e, c)}, [&](GatherAttrs* g) { g->axis = c; }),
              {c}),
      t};
  Val loss = -(picked * w);
  if (a.reduction == "none") return loss;
  Ints all = AxesFrom(0, rank);
  Expr sum = all.empty() ? loss.e : Sum(loss, all), total = all.empty() ? w.e : Sum(w, all);
  return a.reduction == "sum" ? sum : Divide(sum, total);
}

}  // namespace
}  // namespace gradient

const Op op::dft = DefineOp({
    .name = "dft",
    .doc = "Discrete Fourier transform; its cost is the square of the length.",
    .inputs = {{"data",
                "R1: floating dtype. R2: rank 2 or more. R3: the last dimension holds the real part, or both. R4: a "
                "known length."}},
    .output =
        "The length on `axis` (half of it and 1 with onesided), 2 parts; with inverse and onesided a real signal.",
    .attrs = TypeOf<DFTAttrs>,
    .type_rel = Rel<"dft", DFTType>,
    .lower = LowerDFT,
    .gradient = gradient::DFTBack,
    .pattern = OpPattern::kOpaque,
    .source = "ONNX DFT-20",
});
const Op op::dilate = DefineOp({
    .name = "nn.dilate",
    .doc = "Elements spread apart with a value between them.",
    .inputs = {{"data", "Any tensor."}},
    .output = "Extents (n - 1) * stride + 1. R1: a stride for each dimension.",
    .attrs = TypeOf<DilateAttrs>,
    .type_rel = Rel<"nn.dilate", DilateType>,
    .lower = LowerDilate,
    .gradient = gradient::DilateBack,
    .pattern = OpPattern::kInjective,
    .source = "Relay",
});
const Op op::nll_loss = DefineOp({
    .name = "nn.nll_loss",
    .doc = "-predictions[n, targets[n, ...], ...] * weights[targets[n, ...]], reduced.",
    .inputs = {{"predictions", "(N, C, ...) or (C,). R1: floating dtype."},
               {"targets", "(N, ...) or a scalar. R2: integers. R3: fits predictions."},
               {"weights", "(C,). R1: dtype of predictions. R3: a number a class."}},
    .output = "A scalar, or the shape of `targets`. R4: a known reduction.",
    .attrs = TypeOf<NLLLossAttrs>,
    .type_rel = Rel<"nn.nll_loss", NLLLossType>,
    .lower = LowerNLLLoss,
    .gradient = gradient::DecomposeNLLLoss,
    .pattern = OpPattern::kOpaque,
    .source = "Relay; ONNX NegativeLogLikelihoodLoss-22",
    .traits = {.precision = Precision::kNever},
});
const Op op::cross_entropy = DefineOp({
    .name = "nn.cross_entropy",
    .doc = "-sum(log(predictions) * targets) / N.",
    .inputs = {{"predictions", "(N, C). R1: floating dtype. R2: rank 2."}, {"targets", "As predictions."}},
    .output = "A scalar.",
    .type_rel = Rel<"nn.cross_entropy", CrossEntropyType>,
    .lower = LowerCrossEntropy<false>,
    .gradient = gradient::DecomposeCrossEntropy<false>,
    .pattern = OpPattern::kOpaque,
    .source = "Relay",
    .traits = {.precision = Precision::kNever},
});
const Op op::cross_entropy_with_logits = DefineOp({
    .name = "nn.cross_entropy_with_logits",
    .doc = "-sum(predictions * targets) / N, of logarithms of probabilities.",
    .inputs = {{"predictions", "(N, C). R1: floating dtype. R2: rank 2."}, {"targets", "As predictions."}},
    .output = "A scalar.",
    .type_rel = Rel<"nn.cross_entropy_with_logits", CrossEntropyType>,
    .lower = LowerCrossEntropy<true>,
    .gradient = gradient::DecomposeCrossEntropy<true>,
    .pattern = OpPattern::kOpaque,
    .source = "Relay",
    .traits = {.precision = Precision::kNever},
});

}  // namespace baton::relay

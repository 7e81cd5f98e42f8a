// SPDX-License-Identifier: Apache-2.0
// Pools: the largest element, mean or norm of each window.
#include <baton/relay/op/nn.h>
#include <baton/topi/elemwise.h>
#include <baton/topi/reduce.h>
#include <relay/kernel/generators.h>

#include "../qnn/integers.h"
#include "window_gradient.h"

namespace baton::relay {
namespace {

/// Attributes of nn.lp_pool1d, nn.lp_pool2d, nn.lp_pool3d.
template <int N>
struct LpPoolAttrs : PoolFields<LpPoolAttrs<N>, N> {
  static constexpr auto _type_key =
      ForSpace<N>("relay.attrs.LpPool1DAttrs", "relay.attrs.LpPool2DAttrs", "relay.attrs.LpPool3DAttrs");
  int64_t p = 2;
  static constexpr void Describe(auto& d) {
    PoolFields<LpPoolAttrs, N>::Describe(d);
    d(F<&LpPoolAttrs::p>, "Exponent of the norm.", AtLeast(1));
  }
};

struct MaxUnpoolAttrs : AttrsNode<MaxUnpoolAttrs> {
  static constexpr auto _type_key = "relay.attrs.MaxUnpoolAttrs";
  Array<int64_t> output_shape;
  static constexpr void Describe(auto& d) {
    d(F<&MaxUnpoolAttrs::output_shape>, "Extents of the whole result.", kRequired, AtLeast(0));
  }
};

/// Attributes of pools over equal parts of space.
template <int N>
struct AdaptivePoolAttrs : PoolLayout<AdaptivePoolAttrs<N>, N> {
  static constexpr auto _type_key = ForSpace<N>("relay.attrs.AdaptivePool1DAttrs", "relay.attrs.AdaptivePool2DAttrs",
                                                "relay.attrs.AdaptivePool3DAttrs");
  Array<int64_t> output_size = NoInts();
  static constexpr void Describe(auto& d) {
    d(F<&AdaptivePoolAttrs::output_size>, "Spatial extents of the result, one number serves all; None: those of data.",
      AtLeast(1));
    PoolLayout<AdaptivePoolAttrs, N>::Describe(d);
  }
};

/// Windows over the spatial dimensions of a layout.
struct Pool {
  ImageLayout layout;
  Ints size, strides, dilation;
  Margins pad;
  bool ceil_mode;

  template <class A>
  Pool(const A& a, int n, const char* op)
      : layout(ReadImageLayout(a.layout, SpaceLetters(n), op, "layout")),
        size(ReadPerDim(a.pool_size, n, 1, op, "pool_size")),
        strides(ReadPerDim(a.strides, n, 1, op, "strides")),
        dilation(ReadPerDim(a.dilation, n, 1, op, "dilation")),
        pad(ReadPadding(a.padding, n, op)),
        ceil_mode(a.ceil_mode) {
    if (!a.out_layout.empty() && !(a.out_layout == a.layout)) {
      throw CompileError(std::string("[") + op + " R1] out_layout is \"" + a.out_layout.str() + "\" and layout \"" +
                         a.layout.str() + "\", which have to agree");
    }
  }
  Shape OutShape(const Shape& x, bool symbolic) const {
    Shape out = x;
    for (size_t d = 0; d < size.size(); ++d) {
      const PrimExpr& e = x[layout.space[d]];
      PrimExpr n = WindowCount(e, size[d], strides[d], dilation[d], pad.begin[d], pad.end[d], ceil_mode);
      out.Set(layout.space[d], symbolic ? n : TypeDim(n));
    }
    return out;
  }
  Array<te::IterVar> Axes() const {
    Array<te::IterVar> k;
    for (size_t d = 0; d < size.size(); ++d) k.push_back(te::ReduceAxis(0, PrimExpr(size[d]), "k" + Str(d)));
    return k;
  }
  /// The element of x that window `i` has at `k`; `inside`: whether there is one (null: always).
  Shape At(const Shape& x, const Indices& i, const Array<te::IterVar>& k, PrimExpr* inside) const {
    Shape at = i;
    *inside = PrimExpr();
    for (size_t d = 0; d < size.size(); ++d) {
      int64_t s = layout.space[d];
      PrimExpr p = Times(i[s], strides[d]) + Times(k[d]->var, dilation[d]) - PrimExpr(pad.begin[d]);
      *inside = AndAlso(*inside, InRange(p, x[s], pad.begin[d] > 0, pad.end[d] > 0 || ceil_mode));
      at.Set(s, p);
    }
    return at;
  }
};
void CheckPool(const Pool& p, const TypeArgs& in) {
  in.Rank(0, p.layout.rank, "R1");
  for (size_t d = 0; d < p.size.size(); ++d) {
    int64_t n = in.dim(0, p.layout.space[d]);
    if (n >= 0 && !p.ceil_mode && Checked(n) + p.pad.begin[d] + p.pad.end[d] < WindowSpan(p.size[d], p.dilation[d])) {
      in.Fail("R3", "the window spans " + Str(WindowSpan(p.size[d], p.dilation[d])) +
                        " elements, `data` with its padding has " + Str(n + p.pad.begin[d] + p.pad.end[d]) +
                        " in dimension " + Str(p.layout.space[d]));
    }
  }
}

template <int N>
Type MaxPoolType(const MaxPoolAttrs<N>& a, const TypeArgs& in) {
  Pool p(a, N, in.op());
  in.Number(0, "R2");
  CheckPool(p, in);
  return TensorType(in.Fitting(p.OutShape(in.shape(0), false)), in.dtype(0));
}
template <int N>
Tensor LowerMaxPool(const MaxPoolAttrs<N>& a, const Tensors& in) {
  Pool p(a, N, "nn.max_pool");
  const Tensor& x = in[0];
  Array<te::IterVar> k = p.Axes();
  return te::Compute(
      p.OutShape(x.shape(), true),
      [&](Indices i) {
        PrimExpr inside;
        Shape at = p.At(x.shape(), i, k, &inside);
        return te::MaxOf(inside.defined() ? if_then_else(inside, x(at), lowest(x.dtype())) : x(at), k);
      },
      "max_pool", "pool");
}

template <int N>
Type AvgPoolType(const AvgPoolAttrs<N>& a, const TypeArgs& in) {
  Pool p(a, N, in.op());
  in.Number(0, "R2");
  CheckPool(p, in);
  return TensorType(in.Fitting(p.OutShape(in.shape(0), false)), in.dtype(0));
}
/// How many elements window `i` has: those in data, or with `padded` those in data and padding.
PrimExpr CountOf(const Pool& p, const Shape& x, const Indices& i, bool padded) {
  PrimExpr count = 1;
  for (size_t d = 0; d < p.size.size(); ++d) {
    int64_t s = p.layout.space[d], dil = p.dilation[d];
    PrimExpr first = Times(i[s], p.strides[d]) - PrimExpr(p.pad.begin[d]);
    PrimExpr low = padded ? -p.pad.begin[d] : 0, high = padded ? x[s] + PrimExpr(p.pad.end[d]) : x[s];
    bool whole = p.pad.begin[d] == 0 && p.pad.end[d] == 0;
    if ((whole || padded) && !p.ceil_mode) {
      count = count * PrimExpr(p.size[d]);
      continue;
    }
    // Taps first + dil * k with low <= . < high.
    PrimExpr from = max(ceildiv(low - first, PrimExpr(dil)), PrimExpr(0));
    PrimExpr to = min(ceildiv(high - first, PrimExpr(dil)), PrimExpr(p.size[d]));
    count = count * max(to - from, PrimExpr(0));
  }
  return count;
}
template <int N>
Tensor LowerAvgPool(const AvgPoolAttrs<N>& a, const Tensors& in) {
  Pool p(a, N, "nn.avg_pool");
  const Tensor& x = in[0];
  DataType t = x.dtype(), acc = t.is_integral() ? DataType::Int(64) : Wide(t);
  Array<te::IterVar> k = p.Axes();
  Tensor sum = te::Compute(
      p.OutShape(x.shape(), true),
      [&](Indices i) {
        PrimExpr inside;
        Shape at = p.At(x.shape(), i, k, &inside);
        PrimExpr v = cast(acc, x(at));
        return te::Sum(inside.defined() ? if_then_else(inside, v, Lit(0, acc)) : v, k);
      },
      "pool_sum", "pool");
  return te::Compute(
      sum.shape(),
      [&](Indices i) {
        PrimExpr n = cast(acc, CountOf(p, x.shape(), i, a.count_include_pad));
        return cast(t, acc.is_integral() ? topi::SafeTruncDiv(sum(i), n) : sum(i) / n);
      },
      "avg_pool");
}

template <int N>
Type LpPoolType(const LpPoolAttrs<N>& a, const TypeArgs& in) {
  Pool p(a, N, in.op());
  in.Floating(0, "R2");
  CheckPool(p, in);
  return TensorType(in.Fitting(p.OutShape(in.shape(0), false)), in.dtype(0));
}
template <int N>
Tensor LowerLpPool(const LpPoolAttrs<N>& a, const Tensors& in) {
  Pool p(a, N, "nn.lp_pool");
  const Tensor& x = in[0];
  DataType acc = Wide(x.dtype());
  Array<te::IterVar> k = p.Axes();
  Tensor sum = te::Compute(
      p.OutShape(x.shape(), true),
      [&](Indices i) {
        PrimExpr inside;
        Shape at = p.At(x.shape(), i, k, &inside);
        PrimExpr v = fabs(cast(acc, x(at)));
        v = a.p == 1 ? v : a.p == 2 ? v * v : pow(v, Lit(static_cast<double>(a.p), acc));
        return te::Sum(inside.defined() ? if_then_else(inside, v, Lit(0, acc)) : v, k);
      },
      "pool_sum", "pool");
  return topi::Map(
      sum,
      [&](PrimExpr v) {
        return cast(x.dtype(), a.p == 1 ? v : a.p == 2 ? sqrt(v) : pow(v, Lit(1.0 / static_cast<double>(a.p), acc)));
      },
      "lp_pool");
}

}  // namespace

namespace gradient {
namespace {

template <int N>
const Op& MaxGradOp() {
  return N == 1 ? op::max_pool1d_grad : N == 2 ? op::max_pool2d_grad : op::max_pool3d_grad;
}
template <int N>
const Op& AvgGradOp() {
  return N == 1 ? op::avg_pool1d_grad : N == 2 ? op::avg_pool2d_grad : op::avg_pool3d_grad;
}
template <int N>
const Op& AvgOp() {
  return N == 1 ? op::avg_pool1d : N == 2 ? op::avg_pool2d : op::avg_pool3d;
}

template <int N>
Grads MaxPoolBack(const Call& call, const Expr& grad) {
  return {MakeCall(MaxGradOp<N>(), {grad, call->args[0]}, call->attrs)};
}
template <int N>
Grads AvgPoolBack(const Call& call, const Expr& grad) {
  return {MakeCall(AvgGradOp<N>(), {grad, call->args[0]}, call->attrs)};
}

// ---- pools as reductions
template <int N, bool kMax>
Expr DecomposeGlobalPool(const Call& call, const Array<Expr>& args) {
  At at(call, call);
  const auto& a = at.attrs<GlobalPoolAttrs<N>>();
  return ReduceCall(kMax ? op::max : op::mean, args[0],
                    ToArray(ReadImageLayout(a.layout, SpaceLetters(N), at.op(), "layout").space), true);
}
/// Parts of one extent: each spatial dimension as (parts, elements).
template <int N, bool kMax>
Expr DecomposeAdaptivePool(const Call& call, const Array<Expr>& args) {
  At at(call, call);
  const auto& a = at.attrs<AdaptivePoolAttrs<N>>();
  ImageLayout l = ReadImageLayout(a.layout, SpaceLetters(N), at.op(), "layout");
  Ints in = at.dims(0), out = at.out_dims(), split, axes;
  for (size_t d = 0; d < in.size(); ++d) {
    bool space = false;
    for (int64_t s : l.space) space = space || s == static_cast<int64_t>(d);
    if (!space) {
      split.push_back(in[d]);
      continue;
    }
    if (out[d] == 0 || in[d] % out[d]) at.Fail("it has a rule where output_size divides the extents, as equal parts");
    split.push_back(out[d]);
    axes.push_back(static_cast<int64_t>(split.size()));
    split.push_back(in[d] / out[d]);
  }
  return ReduceCall(kMax ? op::max : op::mean, Reshape(args[0], ToArray(split)), ToArray(axes), false);
}
/// (size * mean of |x| ** p) ** (1 / p)
template <int N>
Expr DecomposeLpPool(const Call& call, const Array<Expr>& args) {
  At at(call, call);
  const auto& a = at.attrs<LpPoolAttrs<N>>();
  if (a.ceil_mode) at.Fail("it has no rule with ceil_mode");
  Ints size = ReadPerDim(a.pool_size, N, 1, at.op(), "pool_size");
  Val x{args[0], at.dtype(0)}, p = Num(static_cast<double>(a.p), x.t);
  Expr powered = a.p == 1 ? Do(op::abs, x).e : a.p == 2 ? (x * x).e : MakeCall(op::power, {Do(op::abs, x).e, p.e});
  Val mean{MakeCall<AvgPoolAttrs<N>>(AvgOp<N>(), {powered},
                                     [&](AvgPoolAttrs<N>* v) {
                                       v->pool_size = a.pool_size, v->strides = a.strides, v->dilation = a.dilation;
                                       v->padding = a.padding, v->layout = a.layout, v->count_include_pad = true;
                                     }),
           x.t};
  Val sum = mean * static_cast<double>(ProductOf(size));
  if (a.p == 1) return sum;
  return a.p == 2 ? Do(op::sqrt, sum).e : MakeCall(op::power, {sum.e, Num(1.0 / static_cast<double>(a.p), x.t).e});
}

}  // namespace
}  // namespace gradient

namespace {

template <OpName kName, class A>
Op DefinePool(const char* doc, TypeRelationFn rel, LowerFn lower, OpGradient gradient, const char* source,
              const OpTraits& traits) {
  return DefineOp({.name = kName.text,
                   .doc = doc,
                   .inputs = {{"data",
                               "In `layout`. R1: its rank. R2: numbers (lp_pool: floating). R3: with its padding at "
                               "least as long as the window."}},
                   .output = "In `layout`; extents floor((data + padding - dilation * (window - 1) - 1) / stride) + 1, "
                             "or ceil with ceil_mode.",
                   .attrs = TypeOf<A>,
                   .type_rel = rel,
                   .lower = lower,
                   .gradient = gradient,
                   .pattern = OpPattern::kOutEWiseFusable,
                   .source = source,
                   .traits = traits});
}
template <OpName kName, int N>
Op MaxPool() {
  return DefinePool<kName, MaxPoolAttrs<N>>("Largest element of each window; padding does not count.",
                                            Rel<kName, &MaxPoolType<N>>, &LowerMaxPool<N>, gradient::MaxPoolBack<N>,
                                            "ONNX MaxPool-22",
                                            {.precision = Precision::kFollow,
                                             .values = Values::kSelects,
                                             .layout = LayoutRule::kBlocks,
                                             .kernel = N == 2 ? kernel::GenerateMaxPool2D : nullptr});
}
template <OpName kName, int N>
Op AvgPool() {
  return DefinePool<kName, AvgPoolAttrs<N>>("Mean of each window.", Rel<kName, &AvgPoolType<N>>, &LowerAvgPool<N>,
                                            gradient::AvgPoolBack<N>, "ONNX AveragePool-22",
                                            {.precision = Precision::kFollow,
                                             .layout = LayoutRule::kBlocks,
                                             .kernel = N == 2 ? kernel::GenerateAvgPool2D : nullptr,
                                             .integers = integers::Averages});
}
template <OpName kName, int N>
Op LpPool() {
  return DefinePool<kName, LpPoolAttrs<N>>("(sum of |data| ** p) ** (1 / p) of each window.",
                                           Rel<kName, &LpPoolType<N>>, &LowerLpPool<N>, gradient::DecomposeLpPool<N>,
                                           "ONNX LpPool-22", {.layout = LayoutRule::kNamed});
}

// ---- global and adaptive pools
template <int N>
Type GlobalPoolType(const GlobalPoolAttrs<N>& a, const TypeArgs& in) {
  ImageLayout l = ReadImageLayout(a.layout, SpaceLetters(N), in.op(), "layout");
  in.Number(0, "R2");
  in.Rank(0, l.rank, "R1");
  Shape out = in.shape(0);
  for (int64_t d : l.space) out.Set(d, PrimExpr(1));
  return TensorType(out, in.dtype(0));
}
Tensor PoolAll(const Tensor& x, const ImageLayout& l, bool mean) {
  DataType t = x.dtype(), acc = !mean ? t : t.is_integral() ? DataType::Int(64) : Wide(t);
  std::vector<bool> on(x.ndim());
  for (int64_t d : l.space) on[d] = true;
  Ints axes;
  for (int64_t d = 0; d < x.ndim(); ++d) {
    if (on[d]) axes.push_back(d);
  }
  Tensor r = topi::ReduceWith(
      x, axes, true, mean ? te::Sum : te::MaxOf, [&](PrimExpr v, const Shape&, const Shape&) { return cast(acc, v); },
      "global_pool");
  if (!mean) return r;
  PrimExpr n = cast(acc, topi::ReducedCount(x.shape(), axes));
  return topi::Map(
      r, [&](PrimExpr v) { return cast(t, acc.is_integral() ? topi::SafeTruncDiv(v, n) : v / n); }, "global_avg_pool");
}
template <int N, bool kMean>
Tensor LowerGlobalPool(const GlobalPoolAttrs<N>& a, const Tensors& in) {
  return PoolAll(in[0], ReadImageLayout(a.layout, SpaceLetters(N), "nn.global_pool", "layout"), kMean);
}
template <OpName kName, int N, bool kMean>
Op GlobalPool(const char* doc) {
  return DefineOp({.name = kName.text,
                   .doc = doc,
                   .inputs = {{"data", "In `layout`. R1: its rank. R2: numbers."}},
                   .output = "`data` with spatial extents of 1.",
                   .attrs = TypeOf<GlobalPoolAttrs<N>>,
                   .type_rel = Rel<kName, &GlobalPoolType<N>>,
                   .lower = LowerGlobalPool<N, kMean>,
                   .gradient = gradient::DecomposeGlobalPool<N, !kMean>,
                   .pattern = OpPattern::kOutEWiseFusable,
                   .source = "ONNX GlobalAveragePool-22, GlobalMaxPool-22",
                   .traits = {.precision = kMean ? Precision::kNever : Precision::kFollow,
                              .values = kMean ? Values::kComputes : Values::kSelects,
                              .layout = LayoutRule::kBlocks,
                              .integers = kMean ? integers::Averages : nullptr}});
}

template <int N>
Type AdaptivePoolType(const AdaptivePoolAttrs<N>& a, const TypeArgs& in) {
  ImageLayout l = ReadImageLayout(a.layout, SpaceLetters(N), in.op(), "layout");
  in.Number(0, "R2");
  in.Rank(0, l.rank, "R1");
  Shape out = in.shape(0);
  if (a.output_size.defined() && !a.output_size.empty()) {
    Ints size = ReadPerDim(a.output_size, N, 1, in.op(), "output_size");
    for (int d = 0; d < N; ++d) {
      if (in.dim(0, l.space[d]) == 0) in.Fail("R3", in.Show(0) + " has no element to pool");
      out.Set(l.space[d], PrimExpr(size[d]));
    }
  }
  return TensorType(out, in.dtype(0));
}
/// Output o of m pools elements floor(o * n / m) to ceil((o + 1) * n / m).
template <int N, bool kMean>
Tensor LowerAdaptivePool(const AdaptivePoolAttrs<N>& a, const Tensors& in) {
  ImageLayout l = ReadImageLayout(a.layout, SpaceLetters(N), "nn.adaptive_pool", "layout");
  const Tensor& x = in[0];
  if (!a.output_size.defined() || a.output_size.empty()) return topi::Map(x, [](PrimExpr v) { return v; }, "copy");
  Ints size = ReadPerDim(a.output_size, N, 1, "nn.adaptive_pool", "output_size");
  DataType t = x.dtype(), acc = !kMean ? t : t.is_integral() ? DataType::Int(64) : Wide(t);
  Shape out = x.shape();
  Array<te::IterVar> k;
  for (int d = 0; d < N; ++d) {
    PrimExpr n = x.shape()[l.space[d]], m = size[d];
    out.Set(l.space[d], m);
    // The longest window: one element more than n / m rounded up, unless m divides n.
    PrimExpr longest =
        DimOf(n) >= 0 && DimOf(n) % size[d] == 0 ? PrimExpr(DimOf(n) / size[d]) : ceildiv(n, m) + PrimExpr(1);
    k.push_back(te::ReduceAxis(0, longest, "k" + Str(d)));
  }
  auto bounds = [&](const Indices& i, int d, PrimExpr* begin, PrimExpr* end) {
    PrimExpr n = x.shape()[l.space[d]], m = size[d], o = i[l.space[d]];
    *begin = floordiv(o * n, m);
    *end = ceildiv((o + PrimExpr(1)) * n, m);
  };
  Tensor r = te::Compute(
      out,
      [&](Indices i) {
        Shape at = i;
        PrimExpr inside;
        for (int d = 0; d < N; ++d) {
          PrimExpr begin, end;
          bounds(i, d, &begin, &end);
          PrimExpr n = x.shape()[l.space[d]];
          if (!(DimOf(n) >= 0 && DimOf(n) % size[d] == 0)) inside = AndAlso(inside, begin + k[d]->var < end);
          at.Set(l.space[d], begin + k[d]->var);
        }
        PrimExpr v = cast(acc, x(at));
        if (inside.defined()) v = if_then_else(inside, v, kMean ? Lit(0, acc) : lowest(acc));
        return kMean ? te::Sum(v, k) : te::MaxOf(v, k);
      },
      "adaptive_pool");
  if (!kMean) return r;
  return te::Compute(
      out,
      [&](Indices i) {
        PrimExpr n = 1;
        for (int d = 0; d < N; ++d) {
          PrimExpr begin, end;
          bounds(i, d, &begin, &end);
          n = n * (end - begin);
        }
        n = cast(acc, n);
        return cast(t, acc.is_integral() ? topi::SafeTruncDiv(r(i), n) : r(i) / n);
      },
      "adaptive_avg_pool");
}
template <OpName kName, int N, bool kMean>
Op AdaptivePool(const char* doc) {
  return DefineOp({.name = kName.text,
                   .doc = doc,
                   .inputs = {{"data", "In `layout`. R1: its rank. R2: numbers. R3: not empty."}},
                   .output = "`data` with spatial extents output_size.",
                   .attrs = TypeOf<AdaptivePoolAttrs<N>>,
                   .type_rel = Rel<kName, &AdaptivePoolType<N>>,
                   .lower = LowerAdaptivePool<N, kMean>,
                   .gradient = gradient::DecomposeAdaptivePool<N, !kMean>,
                   .pattern = OpPattern::kOutEWiseFusable,
                   .source = "Relay",
                   .traits = {.precision = kMean ? Precision::kNever : Precision::kFollow,
                              .values = kMean ? Values::kComputes : Values::kSelects,
                              .layout = LayoutRule::kNamed,
                              .integers = kMean ? integers::Averages : nullptr}});
}

// ---- max_pool_with_indices, max_unpool
struct IndexedPool {
  Ints size, strides, dilation;
  Margins pad;
  IndexedPool(const MaxPoolWithIndicesAttrs& a, int64_t space, const char* op) {
    if (static_cast<int64_t>(a.pool_size.size()) != space) {
      throw CompileError(std::string("[") + op + " R1] pool_size has " + Str(a.pool_size.size()) + " numbers for " +
                         Str(space) + " spatial dimensions");
    }
    size = ToInts(a.pool_size);
    strides = ReadPerDim(a.strides, space, 1, op, "strides"),
    dilation = ReadPerDim(a.dilation, space, 1, op, "dilation");
    pad = a.padding.defined() ? ReadPadding(a.padding, space, op) : Margins{Ints(space, 0), Ints(space, 0)};
  }
};
Type MaxPoolIndexedType(const MaxPoolWithIndicesAttrs& a, const TypeArgs& in) {
  in.Number(0, "R2");
  in.MinRank(0, 3, "R1");
  IndexedPool p(a, in.ndim(0) - 2, in.op());
  Shape out = in.shape(0);
  for (int64_t d = 2; d < in.ndim(0); ++d) {
    out.Set(d, MakeDim(WindowCount(in.dim(0, d), p.size[d - 2], p.strides[d - 2], p.dilation[d - 2], p.pad.begin[d - 2],
                                   p.pad.end[d - 2], a.ceil_mode)));
  }
  return TupleType(Array<Type>{TensorType(out, in.dtype(0)), TensorType(out, DataType::Int(64))});
}
Tensors LowerMaxPoolIndexed(const MaxPoolWithIndicesAttrs& a, const Tensors& in) {
  const Tensor& x = in[0];
  int64_t space = x.ndim() - 2;
  IndexedPool p(a, space, "nn.max_pool_with_indices");
  DataType i64 = DataType::Int(64);
  Shape out = x.shape();
  for (int64_t d = 0; d < space; ++d) {
    out.Set(d + 2, WindowCount(x.shape()[d + 2], p.size[d], p.strides[d], p.dilation[d], p.pad.begin[d], p.pad.end[d],
                               a.ceil_mode));
  }
  auto window = [&](const Indices& i, const Array<te::IterVar>& k, PrimExpr* inside) {
    Shape at = i;
    *inside = tir::make_int(DataType::Bool(), 1);
    for (int64_t d = 0; d < space; ++d) {
      PrimExpr q = i[d + 2] * PrimExpr(p.strides[d]) + k[d]->var * PrimExpr(p.dilation[d]) - PrimExpr(p.pad.begin[d]);
      *inside = *inside && q >= PrimExpr(0) && q < x.shape()[d + 2];
      at.Set(d + 2, q);
    }
    return at;
  };
  auto axes = [&] {
    Array<te::IterVar> k;
    for (int64_t d = 0; d < space; ++d) k.push_back(te::ReduceAxis(0, PrimExpr(p.size[d]), "k" + Str(d)));
    return k;
  };
  Array<te::IterVar> k = axes();
  Tensor top = te::Compute(
      out,
      [&](Indices i) {
        PrimExpr inside;
        Shape at = window(i, k, &inside);
        return te::MaxOf(if_then_else(inside, x(at), lowest(x.dtype())), k);
      },
      "max_pool");
  Array<te::IterVar> m = axes();
  // The first place of the largest, in row-major order; its number then counts as storage_order says.
  Tensor place = te::Compute(
      out,
      [&](Indices i) {
        PrimExpr inside;
        Shape at = window(i, m, &inside);
        PrimExpr v = Widen(x(at)), t = Widen(top(i)), hit = equal(v, t);
        if (v.dtype().is_floating()) hit = hit || isnan(v);
        return te::MinOf(
            if_then_else(inside, te::Select(hit, topi::Ravel(at, x.shape()), max_value(i64)), max_value(i64)), m);
      },
      "place");
  if (a.storage_order == 0) return {top, place};
  Tensor column = te::Compute(
      out,
      [&](Indices i) {
        Shape at = topi::Unravel(place(i), x.shape());
        PrimExpr n = at[0] * x.shape()[1] + at[1], plane = 1, in_plane = 0;
        for (int64_t d = 0; d < space; ++d) {
          in_plane = in_plane + at[d + 2] * plane;
          plane = plane * x.shape()[d + 2];
        }
        return n * plane + in_plane;
      },
      "place_by_column");
  return {top, column};
}
Type MaxUnpoolType(const MaxUnpoolAttrs& a, const TypeArgs& in) {
  in.Integral(1, "R2");
  bool same = in.ndim(0) == in.ndim(1);
  for (int64_t d = 0; same && d < in.ndim(0); ++d) same = in.Same(in.shape(0)[d], in.shape(1)[d]);
  if (!same) in.Fail("R2", in.Show(1) + " and " + in.Show(0) + " differ in shape");
  if (static_cast<int64_t>(a.output_shape.size()) != in.ndim(0))
    in.Fail("R1", "output_shape has " + Str(a.output_shape.size()) + " extents, `data` has rank " + Str(in.ndim(0)));
  return TensorType(MakeShape(ToInts(a.output_shape)), in.dtype(0));
}
Tensor LowerMaxUnpool(const MaxUnpoolAttrs& a, const Tensors& in) {
  Shape out = MakeShape(ToInts(a.output_shape));
  const Tensor& x = in[0];
  return topi::Extern(
      out, x.dtype(), in,
      [&](const Array<tir::Buffer>& buf, const tir::Buffer& to) {
        tir::Stmt fill = topi::Loops(out, [&](const Shape& i) { return topi::Store(to, i, Lit(0, x.dtype())); });
        tir::Stmt write = topi::Loops(x.shape(), [&](const Shape& i) {
          PrimExpr p = cast(DataType::Int(64), tir::BufferLoad(buf[1], i));
          tir::IfThenElseNode n;
          n.condition = p >= PrimExpr(0) && p < topi::Product(out);
          n.then_case = topi::Store(to, topi::Unravel(p, out), tir::BufferLoad(buf[0], i));
          return tir::Stmt(tir::IfThenElse(std::move(n)));
        });
        return tir::SeqStmt::Flatten({fill, write});
      },
      "max_unpool");
}

}  // namespace

namespace gradient {
namespace {

Grads MaxPoolWithIndicesBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  if (at.attrs<MaxPoolWithIndicesAttrs>().storage_order) at.Fail("it has a rule for storage_order=0");
  int64_t n = ProductOf(at.dims(0));
  if (n == 0) return {ZerosLike(at.arg(0))};
  Expr zeros = MakeCall<InitOpAttrs>(op::zeros, {}, [&](InitOpAttrs* z) { z->shape = {n}, z->dtype = at.dtype(0); });
  return {ShapeLike(
      MakeCall<ScatterElementsAttrs>(op::scatter_elements, {zeros, Flatten(Item(call, 1)), Flatten(Item(grad, 0))},
                                     [](ScatterElementsAttrs* s) { s->axis = 0, s->reduction = "add"; }),
      at.arg(0))};
}
Grads MaxUnpoolBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  Ints dims = at.dims(0);
  int64_t n = ProductOf(dims);
  if (n == 0 || ProductOf(at.out_dims()) == 0) return {ZerosLike(at.arg(0)), Expr()};
  auto read = [&](const Expr& data) {
    return MakeCall<TakeAttrs>(op::take, {Flatten(data), at.arg(1)}, [](TakeAttrs* t) { t->axis = PrimExpr(0); });
  };
  // The last of several elements with the same destination wins. Indices start at 1; 0 means no element.
  Expr numbers = Reshape(Add(Iota(n), MakeScalar(1, DataType::Int(64))), ToArray(dims));
  Expr placed = read(MakeCall(op::max_unpool, {numbers, at.arg(1)}, call->attrs));
  return {Where(MakeCall(op::equal, {placed, numbers}), read(grad), MakeScalar(0, at.dtype(0))), Expr()};
}

}  // namespace
}  // namespace gradient

const Op op::max_pool1d = MaxPool<"nn.max_pool1d", 1>(), op::max_pool2d = MaxPool<"nn.max_pool2d", 2>(),
         op::max_pool3d = MaxPool<"nn.max_pool3d", 3>();
const Op op::avg_pool1d = AvgPool<"nn.avg_pool1d", 1>(), op::avg_pool2d = AvgPool<"nn.avg_pool2d", 2>(),
         op::avg_pool3d = AvgPool<"nn.avg_pool3d", 3>();
const Op op::lp_pool1d = LpPool<"nn.lp_pool1d", 1>(), op::lp_pool2d = LpPool<"nn.lp_pool2d", 2>(),
         op::lp_pool3d = LpPool<"nn.lp_pool3d", 3>();
const Op op::global_max_pool1d = GlobalPool<"nn.global_max_pool1d", 1, false>("Largest element of each channel.");
const Op op::global_max_pool2d = GlobalPool<"nn.global_max_pool2d", 2, false>("Largest element of each channel.");
const Op op::global_max_pool3d = GlobalPool<"nn.global_max_pool3d", 3, false>("Largest element of each channel.");
const Op op::global_avg_pool1d = GlobalPool<"nn.global_avg_pool1d", 1, true>("Mean of each channel.");
const Op op::global_avg_pool2d = GlobalPool<"nn.global_avg_pool2d", 2, true>("Mean of each channel.");
const Op op::global_avg_pool3d = GlobalPool<"nn.global_avg_pool3d", 3, true>("Mean of each channel.");
const Op op::adaptive_max_pool1d =
    AdaptivePool<"nn.adaptive_max_pool1d", 1, false>("Largest elements of equal parts of space.");
const Op op::adaptive_max_pool2d =
    AdaptivePool<"nn.adaptive_max_pool2d", 2, false>("Largest elements of equal parts of space.");
const Op op::adaptive_max_pool3d =
    AdaptivePool<"nn.adaptive_max_pool3d", 3, false>("Largest elements of equal parts of space.");
const Op op::adaptive_avg_pool1d = AdaptivePool<"nn.adaptive_avg_pool1d", 1, true>("Means of equal parts of space.");
const Op op::adaptive_avg_pool2d = AdaptivePool<"nn.adaptive_avg_pool2d", 2, true>("Means of equal parts of space.");
const Op op::adaptive_avg_pool3d = AdaptivePool<"nn.adaptive_avg_pool3d", 3, true>("Means of equal parts of space.");
const Op op::max_pool_with_indices = DefineOp({
    .name = "nn.max_pool_with_indices",
    .doc = "Largest element of each window, and its place in data: a number over all of data.",
    .inputs = {{"data",
                "(N, C, ...). R1: rank 3 or more, a number of pool_size for each spatial dimension. R2: numbers."}},
    .output = "A tuple of the values and their int64 places.",
    .attrs = TypeOf<MaxPoolWithIndicesAttrs>,
    .type_rel = Rel<"nn.max_pool_with_indices", MaxPoolIndexedType>,
    .lower = LowerMaxPoolIndexed,
    .gradient = gradient::MaxPoolWithIndicesBack,
    .pattern = OpPattern::kOpaque,
    .source = "ONNX MaxPool-22",
});
const Op op::max_unpool = DefineOp({
    .name = "nn.max_unpool",
    .doc = "Zeros with the elements of data put back at their places.",
    .inputs = {{"data", "What max_pool_with_indices gave."},
               {"indices", "R2: integers, the shape of data; places in the result, others are left out."}},
    .output = "Shape output_shape. R1: data's rank.",
    .attrs = TypeOf<MaxUnpoolAttrs>,
    .type_rel = Rel<"nn.max_unpool", MaxUnpoolType>,
    .lower = LowerMaxUnpool,
    .gradient = gradient::MaxUnpoolBack,
    .pattern = OpPattern::kOpaque,
    .source = "ONNX MaxUnpool-22",
});

}  // namespace baton::relay

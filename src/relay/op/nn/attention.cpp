// SPDX-License-Identifier: Apache-2.0
// Attention: softmax(scale * query key^T + mask) value, as one operator.
#include <baton/relay/op/make.h>
#include <baton/relay/op/nn.h>
#include <baton/tir/functor.h>
#include <baton/topi/elemwise.h>
#include <baton/topi/reduce.h>
#include <relay/kernel/generators.h>

#include <limits>

#include "../common.h"
#include "../gradient.h"
#include "weights.h"

namespace baton::relay {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr std::string_view kLetters = "BHSD";

/// Where B, H, S and D are in a layout, or nothing.
Ints PlacesOf(const String& layout) {
  Ints at;
  for (char c : kLetters) {
    const size_t found = layout.view().find(c);
    if (found == std::string_view::npos || layout.size() != kLetters.size()) return {};
    at.push_back(static_cast<int64_t>(found));
  }
  return at;
}
/// The dimensions of (B, H, S, D) among these in a layout.
Shape InOrder(const Shape& shape, const String& layout) {
  Shape out;
  for (int64_t at : PlacesOf(layout)) out.push_back(shape[at]);
  return out;
}
/// The index in a layout of what is at (b, h, s, d).
Shape At(const String& layout, const PrimExpr& b, const PrimExpr& h, const PrimExpr& s, const PrimExpr& d) {
  const Ints at = PlacesOf(layout);
  Shape out{b, h, s, d};
  const Shape given = out;
  for (size_t i = 0; i < at.size(); ++i) out.Set(at[i], given[static_cast<int64_t>(i)]);
  return out;
}

Type AttentionType(const AttentionAttrs& a, const TypeArgs& in) {
  in.Floating(0, "R1");
  for (int i = 1; i < in.size(); ++i) in.SameDtype(0, i, "R1");
  for (int i = 0; i < in.size(); ++i) in.Rank(i, 4, "R2");
  for (const String& layout : {a.query_layout, a.key_layout, a.value_layout, a.out_layout}) {
    if (PlacesOf(layout).empty())
      in.Fail("R3", "a layout is \"" + layout.str() + "\", where \"BHSD\" in some order is wanted");
  }
  const Shape q = InOrder(in.shape(0), a.query_layout), k = InOrder(in.shape(1), a.key_layout),
              v = InOrder(in.shape(2), a.value_layout);
  if (!in.Same(q[0], k[0]) || !in.Same(q[3], k[3]))
    in.Fail("R4", in.Show(0) + " and " + in.Show(1) + " have other batches, or heads of another size");
  for (int64_t d = 0; d < 3; ++d) {
    if (!in.Same(k[d], v[d])) in.Fail("R4", in.Show(1) + " and " + in.Show(2) + " have other batches, heads or keys");
  }
  const int64_t heads = DimOf(q[1]), groups = DimOf(k[1]);
  // Where numbers are open, that they divide is asked when the program runs.
  const bool known = heads >= 0 && groups >= 0;
  if (known && groups == 0 ? heads != 0 : !in.Same(q[1], k[1] * floordiv(q[1], k[1])))
    in.Fail("R5", in.Show(0) + " has heads that are no multiple of those of " + in.Show(1));
  if (in.size() > 3) {
    const Shape& m = in.shape(3);
    const Shape scores{q[0], q[1], q[2], k[2]};
    for (int64_t d = 0; d < 4; ++d) {
      const bool open = DimOf(m[d]) < 0 && !tir::ExprDeepEqual(m[d], scores[d]);
      const PrimExpr spread = open ? tir::Select(equal(m[d], PrimExpr(1)), scores[d], m[d]) : m[d];
      if (DimOf(m[d]) != 1 && !in.Same(spread, scores[d]))
        in.Fail("R6", in.Show(3) + " does not broadcast to scores of " + ShowShape(scores));
    }
  }
  if (a.guard > 2) in.Fail("R8", "guard is " + Str(a.guard) + "; it is 0, 1 or 2");
  if (a.window > 0 && !a.causal) in.Fail("R7", "window is " + Str(a.window) + ", and causal is not set");
  return TensorType(At(a.out_layout, q[0], q[1], q[2], v[3]), in.dtype(0));
}

Tensor LowerAttention(const AttentionAttrs& a, const Tensors& in, const Type& out_type) {
  const Tensor &q = in[0], &k = in[1], &v = in[2];
  const DataType given = q.dtype(), t = Wide(given);
  const Shape of_q = InOrder(q.shape(), a.query_layout), of_k = InOrder(k.shape(), a.key_layout);
  const PrimExpr keys = of_k[2], rows = of_q[2];
  const PrimExpr each = tir::ExprDeepEqual(of_q[1], of_k[1]) ? PrimExpr(1) : floordiv(of_q[1], of_k[1]);
  auto group = [&](const PrimExpr& head) { return tir::is_one(each) ? head : floordiv(head, each); };
  const Array<te::IterVar> d{te::ReduceAxis(0, of_q[3], "d")};
  const Shape full{of_q[0], of_q[1], rows, keys};
  const Tensor products = te::Compute(
      full,
      [&](Indices i) {
        return te::Sum(cast(t, q(At(a.query_layout, i[0], i[1], i[2], d[0]->var))) *
                           cast(t, k(At(a.key_layout, i[0], group(i[1]), i[3], d[0]->var))),
                       d);
      },
      "products");
  const Tensor scores = te::Compute(
      full,
      [&](Indices i) {
        PrimExpr s = products(i) * Lit(a.scale, t);
        if (in.size() > 3) {
          Shape at;
          for (int64_t n = 0; n < 4; ++n) at.push_back(topi::BroadcastIndex(in[3].shape()[n], i[n], full[n]));
          s = s + cast(t, in[3](at));
        }
        if (!a.causal) return s;
        const PrimExpr place = i[2] + (keys - rows);
        PrimExpr seen = PrimExpr(i[3]) <= place;
        if (a.window > 0) seen = seen && place - PrimExpr(a.window) < i[3];
        return te::Select(seen, s, Lit(-kInf, t));
      },
      "scores");
  auto plain = [&](PrimExpr x, const Shape&, const Shape&) { return x; };
  const Tensor top = topi::ReduceWith(scores, {3}, false, te::MaxOf, plain, "max");
  const Tensor e = te::Compute(full, [&](Indices i) { return exp(scores(i) - top(Shape{i[0], i[1], i[2]})); }, "exp");
  const Tensor sum = topi::ReduceWith(e, {3}, false, te::Sum, plain, "sum");
  const Array<te::IterVar> j{te::ReduceAxis(0, keys, "key")};
  const Ints of_out = PlacesOf(a.out_layout);
  auto in_order = [&](Indices i) {
    Shape at;
    for (int64_t n : of_out) at.push_back(i[static_cast<size_t>(n)]);
    return at;
  };
  const Tensor mixed = te::Compute(
      AsTensor(out_type)->shape,
      [&](Indices i) {
        const Shape at = in_order(i);
        return te::Sum(e(Shape{at[0], at[1], at[2], j[0]->var}) *
                           cast(t, v(At(a.value_layout, at[0], group(at[1]), j[0]->var, at[3]))),
                       j);
      },
      "mixed");
  return te::Compute(
      AsTensor(out_type)->shape,
      [&](Indices i) {
        const Shape at = in_order(i);
        const Shape row{at[0], at[1], at[2]};
        PrimExpr share = mixed(i) / sum(row);
        if (a.guard == 1) share = te::Select(equal(top(row), Lit(-kInf, t)), Lit(0, t), share);
        if (a.guard == 2) share = te::Select(sum(row) > Lit(0, t), share, Lit(0, t));
        return cast(given, te::Select(keys > PrimExpr(0), share, Lit(0, t)));
      },
      "attention");
}

PrimExpr AttentionFlops(const CallNode* call) {
  const auto& a = AttrsAs<AttentionAttrs>(call->attrs);
  const auto *q = AsTensor(call->args[0]->checked_type()), *v = AsTensor(call->args[2]->checked_type());
  const DataType f64 = DataType::Float(64);
  const Shape of_q = InOrder(q->shape, a.query_layout), of_v = InOrder(v->shape, a.value_layout);
  PrimExpr pairs = Lit(2, f64);
  for (const PrimExpr& n : {of_q[0], of_q[1], of_q[2], of_v[2]}) pairs = pairs * cast(f64, n);
  return pairs * (cast(f64, of_q[3]) + cast(f64, of_v[3]));
}

/// softmax(scale * query key^T + mask) value, spelled out for lengths that are numbers.
Expr SpelledOut(const Call& call, const Array<Expr>& args) {
  using gradient::At;
  const At at(call, call);
  const auto& a = at.attrs<AttentionAttrs>();
  auto ordered = [&](int i, const String& layout) { return gradient::Permute(args[i], PlacesOf(layout)); };
  const Ints q = Dims(InOrder(at.type(0)->shape, a.query_layout)), k = Dims(InOrder(at.type(1)->shape, a.key_layout)),
             v = Dims(InOrder(at.type(2)->shape, a.value_layout));
  for (const Ints* shape : {&q, &k, &v}) {
    for (int64_t n : *shape) {
      if (n < 0) at.Fail("the gradient needs lengths that are numbers");
    }
  }
  if (a.guard > 0) at.Fail("it has a rule where no query is guarded");
  const DataType t = at.dtype(0);
  const int64_t each = k[1] > 0 ? q[1] / k[1] : 1, rows = each * q[2];
  // Heads that share keys are rows of one product.
  const Expr grouped = Reshape(ordered(0, a.query_layout), {q[0], k[1], rows, q[3]});
  Expr scores = gradient::MatMul(grouped, ordered(1, a.key_layout), false, true);
  scores = Multiply(Reshape(scores, {q[0], q[1], q[2], k[2]}), MakeScalar(a.scale, t));
  if (args.size() > 3) scores = Add(scores, args[3]);
  if (a.causal) {
    const Expr place =
        Add(Reshape(gradient::Iota(q[2]), {q[2], 1}), MakeScalar(static_cast<double>(k[2] - q[2]), DataType::Int(64)));
    const Expr key = gradient::Iota(k[2]);
    Expr seen = MakeCall(op::less_equal, {key, place});
    if (a.window > 0) {
      const Expr behind = Subtract(place, MakeScalar(static_cast<double>(a.window), DataType::Int(64)));
      seen = MakeCall(op::logical_and, {seen, MakeCall(op::less, {behind, key})});
    }
    scores = Where(seen, scores, MakeScalar(-kInf, t));
  }
  const Expr weights = MakeWeights(scores);
  Expr mixed = gradient::MatMul(Reshape(weights, {q[0], k[1], rows, k[2]}), ordered(2, a.value_layout), false, false);
  mixed = Reshape(mixed, {q[0], q[1], q[2], v[3]});
  Ints back(4);
  const Ints places = PlacesOf(a.out_layout);
  for (size_t i = 0; i < places.size(); ++i) back[static_cast<size_t>(places[i])] = static_cast<int64_t>(i);
  return gradient::Permute(mixed, back);
}

}  // namespace

const Op op::attention = DefineOp({
    .name = "nn.attention",
    .doc =
        "softmax(scale * query key^T + mask) value for each head; heads of queries share those of keys and values in "
        "groups of equal size, side by side. 0 where there are no keys.",
    .inputs =
        {{"query",
          "(B, H, S, D) in the order of query_layout. R1: floating. R2: rank 4. R3: layouts have each letter once."},
         {"key",
          "(B, groups, keys, D). R1: dtype of query. R2: rank 4. R4: B and D of query. R5: groups divide the "
          "heads of query."},
         {"value", "(B, groups, keys, any). R1: dtype of query. R2: rank 4. R4: batch, groups and keys of key."},
         {"mask",
          "Optional: added to scores. R1: dtype of query. R2: rank 4. R6: (B, H, S, keys), or 1 in place of any."}},
    .output = "(B, H, S, D of value) in the order of out_layout, the dtype of query.",
    .attrs = TypeOf<AttentionAttrs>,
    .num_inputs = -1,
    .type_rel = Rel<"nn.attention", AttentionType>,
    .lower = LowerAttention,
    .gradient = SpelledOut,
    .pattern = OpPattern::kOpaque,
    .source = "ONNX Attention-24",
    .traits = {.precision = Precision::kNever, .flops = AttentionFlops, .kernel = kernel::GenerateAttention},
});

}  // namespace baton::relay

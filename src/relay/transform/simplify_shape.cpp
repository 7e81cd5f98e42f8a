// SPDX-License-Identifier: Apache-2.0
// Rows of moves that keep all elements: reshape, transpose, layouts, broadcasts, and tensors made from little.
#include <baton/relay/op/make.h>
#include <baton/relay/op/nn.h>
#include <baton/relay/op/transform.h>
#include <baton/topi/layout.h>

#include <algorithm>
#include <cctype>
#include <string>

#include "simplify_rows.h"

namespace baton::relay::transform {
namespace {

// ---- Elements in the same order.
DFPattern Reshapes() {
  return AnyOpWith([](const OpDef& def) { return def.traits.values == Values::kView && def.num_inputs == 1; });
}
const DFPattern& ReshapeOfX() {
  static const DFPattern p = Reshapes()({X()});
  return p;
}
Expr ReshapeTo(const Expr& x, const Expr& like) {
  if (ShapeOf(x) == ShapeOf(like)) return x;
  return ReshapeToShape(x, ShapeOf(like));
}
/// A reshape that does not look at the shape of what it takes.
bool Independent(const CallNode* call) {
  if (!call->op.same_as(op::reshape)) return false;
  const auto& a = AttrsAs<ReshapeAttrs>(call->attrs);
  for (const Extent& e : a.newshape) {
    if (e.is_literal() && (e.literal() < -1 || e.literal() == 0)) return false;
  }
  return true;
}

/// zeros or ones of the type of what was found.
template <const Op& kOp>
Expr Made(const Found& f) {
  const Expr like = GetRef<Expr>(f.root());
  return MakeCall<InitOpAttrs>(kOp, {}, [&](InitOpAttrs* a) {
    a->shape = Array<int64_t>(ShapeOf(like));
    a->dtype = DtypeOf(like);
  });
}

// ---- Elements in another order: permutations of dimensions.
/// The dimension of the argument for each of the result; empty where the call is not a permutation.
std::vector<int64_t> AxesOf(const CallNode* call) {
  const auto* in = call->args[0]->checked_type_.as<TensorTypeNode>();
  if (!in) return {};
  const int64_t n = static_cast<int64_t>(in->shape.size());
  std::vector<int64_t> axes;
  if (call->op.same_as(op::transpose)) {
    const auto& a = AttrsAs<TransposeAttrs>(call->attrs);
    for (int64_t d = 0; d < n; ++d) {
      axes.push_back(a.axes.defined() && !a.axes.empty() ? NormalizeAxis(a.axes[d], n, "transpose") : n - 1 - d);
    }
  } else if (call->op.same_as(op::swapaxes)) {
    const auto& a = AttrsAs<SwapAxesAttrs>(call->attrs);
    for (int64_t d = 0; d < n; ++d) axes.push_back(d);
    std::swap(axes[NormalizeAxis(a.axis1, n, "swapaxes")], axes[NormalizeAxis(a.axis2, n, "swapaxes")]);
  } else if (call->op.same_as(op::layout_transform)) {
    const auto& a = AttrsAs<LayoutTransformAttrs>(call->attrs);
    auto from = topi::ParseLayout(a.src_layout.view(), "layout_transform");
    auto to = topi::ParseLayout(a.dst_layout.view(), "layout_transform");
    if (from.size() != to.size() || static_cast<int64_t>(from.size()) != n) return {};
    for (const auto& d : from) {
      if (d.factor) return {};
    }
    for (const auto& d : to) {
      if (d.factor) return {};
      axes.push_back(topi::FindAxis(from, d.axis));
    }
  }
  return axes;
}
bool IsIdentity(const std::vector<int64_t>& axes) {
  for (size_t d = 0; d < axes.size(); ++d) {
    if (axes[d] != static_cast<int64_t>(d)) return false;
  }
  return !axes.empty();
}
DFPattern Transposes() { return IsOp("transpose") || IsOp("swapaxes") || IsOp("layout_transform"); }
const DFPattern& TransposeOfX() {
  static const DFPattern p = Transposes()({X()});
  return p;
}
/// The letters of a layout without blocks, each at axes[its place] (`inverse`) or taken from there; empty where it has
/// blocks, or another number of dimensions.
std::string Permuted(const std::string& layout, const std::vector<int64_t>& axes, bool inverse) {
  const bool plain = std::all_of(layout.begin(), layout.end(), [](unsigned char c) { return std::isupper(c) != 0; });
  if (!plain || axes.empty() || layout.size() != axes.size()) return "";
  std::string out = layout;
  for (size_t d = 0; d < axes.size(); ++d) {
    const auto a = static_cast<size_t>(axes[d]);
    if (inverse) {
      out[a] = layout[d];
    } else {
      out[d] = layout[a];
    }
  }
  return out;
}
Expr LayoutOf(const Expr& x, const std::string& from, const std::string& to) {
  if (from.empty() || to.empty()) return Expr();
  return MakeCall<LayoutTransformAttrs>(op::layout_transform, {x},
                                        [&](LayoutTransformAttrs* a) { a->src_layout = from, a->dst_layout = to; });
}
/// A permutation before a change into blocks: the layout that the value has before both.
Expr IntoSource(const Found& f, const std::vector<int64_t>& axes) {
  const auto& a = f.RootAttrs<LayoutTransformAttrs>();
  return LayoutOf(f[X()], Permuted(a.src_layout.str(), axes, true), a.dst_layout.str());
}
/// A permutation after a change out of blocks: the layout that the value has after both.
Expr IntoTarget(const Found& f, const std::vector<int64_t>& axes) {
  const auto& a = f.Attrs<LayoutTransformAttrs>(TransposeOfX());
  return LayoutOf(f[X()], a.src_layout.str(), Permuted(a.dst_layout.str(), axes, false));
}
Expr MergeTransposes(const Found& f) {
  const CallNode* inner = f.Call(TransposeOfX());
  if (inner->op.same_as(op::layout_transform) && f.root()->op.same_as(op::layout_transform)) return Expr();
  std::vector<int64_t> first = AxesOf(inner), then = AxesOf(f.root());
  if (f.root()->op.same_as(op::layout_transform) && then.empty()) return IntoSource(f, first);
  if (inner->op.same_as(op::layout_transform) && first.empty()) return IntoTarget(f, then);
  if (first.empty() || then.size() != first.size()) return Expr();
  std::vector<int64_t> axes;
  for (int64_t a : then) axes.push_back(first[a]);
  return IsIdentity(axes) ? f[X()] : Transpose(f[X()], Array<int64_t>(axes));
}
const DFPattern& LayoutOfX() {
  static const DFPattern p = Of("layout_transform", X());
  return p;
}
/// A -> B -> C is A -> C; padding that B has must not show, which the shapes say.
Expr MergeLayouts(const Found& f) {
  const auto& first = f.Attrs<LayoutTransformAttrs>(LayoutOfX());
  const auto& then = f.RootAttrs<LayoutTransformAttrs>();
  if (!(first.dst_layout == then.src_layout) || !HasStaticShape(f[X()]) || !HasStaticShape(f[LayoutOfX()]))
    return Expr();
  int64_t before = 1, between = 1;
  for (int64_t d : ShapeOf(f[X()])) before *= d;
  for (int64_t d : ShapeOf(f[LayoutOfX()])) between *= d;
  if (before != between) return Expr();
  if (first.src_layout == then.dst_layout) return f[X()];
  return MakeCall<LayoutTransformAttrs>(op::layout_transform, {f[X()]}, [&](LayoutTransformAttrs* a) {
    a->src_layout = first.src_layout, a->dst_layout = then.dst_layout;
  });
}
/// Whether a call swaps the last two dimensions and keeps the others.
bool SwapsLast(const CallNode* call) {
  std::vector<int64_t> axes = call ? AxesOf(call) : std::vector<int64_t>();
  const size_t n = axes.size();
  if (n < 2) return false;
  std::swap(axes[n - 1], axes[n - 2]);
  return IsIdentity(axes);
}
const DFPattern& TransposeOfY() {
  static const DFPattern p = Transposes()({Y()});
  return p;
}
template <class A, bool kSecond>
Expr IntoFlag(const Found& f) {
  const CallNode* t = f.Call(kSecond ? TransposeOfY() : TransposeOfX());
  if (!SwapsLast(t)) return Expr();
  auto attrs = make_object<A>(f.RootAttrs<A>());
  (kSecond ? attrs->transpose_b : attrs->transpose_a) ^= true;
  return MakeCall(Downcast<Op>(f.root()->op), {f[X()], f[Y()]}, Attrs(ObjectPtr<Object>(attrs)));
}

// ---- Broadcasts.
/// Operators of two operands that broadcast to each other, and compute.
DFPattern Binary() {
  return AnyOpWith([](const OpDef& def) {
    return def.pattern == OpPattern::kBroadcast && def.num_inputs == 2 && !def.attrs &&
           def.traits.values < Values::kSelects;
  });
}
/// The number of `full` and its like, as a constant of rank 0; null where it is not known.
Expr ScalarOf(const Expr& filled) {
  double v = 0;
  if (!Splat(filled, &v)) return Expr();
  const CallNode* call = filled.as<CallNode>();
  if (call->op.same_as(op::full)) {
    const auto* c = call->args[0].as<ConstantNode>();
    return c && c->data.ndim() == 0 && c->data.dtype() == DtypeOf(filled) ? call->args[0] : Expr();
  }
  return MakeScalar(v, DtypeOf(filled));
}

Expr Strided(const Expr& x, const std::vector<int64_t>& end) {
  return MakeCall<StridedSliceAttrs>(op::strided_slice, {x}, [&](StridedSliceAttrs* a) {
    a->begin = Array<int64_t>(std::vector<int64_t>(end.size(), 0));
    a->end = Array<int64_t>(end);
  });
}

/// A transposition that moves nothing but extents of 1 is a reshape.
Expr MoveOnes(const Found& f) {
  std::vector<int64_t> axes = AxesOf(f.root());
  if (axes.empty() || !HasStaticShape(f[X()])) return Expr();
  const std::vector<int64_t> shape = ShapeOf(f[X()]);
  int64_t last = -1;
  for (int64_t a : axes) {
    if (shape[a] == 1) continue;
    if (a < last) return Expr();
    last = a;
  }
  return ReshapeToShape(f[X()], ShapeOf(GetRef<Expr>(f.root())));
}

/// Sums to a shape: of y the shape alone counts.
template <const Op& kZeros>
Expr CollapseToShape(const Found& f) {
  const auto* made = f[Y()].as<CallNode>();
  if (!HasStaticShape(f[X()]) || !HasStaticShape(f[Y()]) || f[Y()].as<ConstantNode>() ||
      (made && made->op.same_as(kZeros)))
    return Expr();
  Expr shape = MakeCall<InitOpAttrs>(kZeros, {}, [&](InitOpAttrs* a) {
    a->shape = Array<int64_t>(ShapeOf(f[Y()]));
    a->dtype = DataType::Bool();
  });
  return MakeCall(Downcast<Op>(f.root()->op), {f[X()], shape}, f.root()->attrs);
}

/// Reversed along the same axis twice.
Expr ReverseTwice(const Found& f) {
  const auto* t = TensorOf(f[X()]);
  const int64_t n = static_cast<int64_t>(t->shape.size());
  const auto* inner = f.root()->args[0].as<CallNode>();
  const int64_t a = NormalizeAxis(f.RootAttrs<ReverseAttrs>().axis, n, "reverse"),
                b = NormalizeAxis(AttrsAs<ReverseAttrs>(inner->attrs).axis, n, "reverse");
  return a == b ? f[X()] : Expr();
}

}  // namespace

std::vector<SimplifyRow> ShapeRows() {
  const DFPattern x = X(), y = Y();
  static const DFPattern broadcast_x = Of("broadcast_to", x), broadcast_y = Of("broadcast_to", y);
  std::vector<SimplifyRow> rows = {
      {"reshape(reshape(x)) -> reshape(x)", E::kExact, kAll, false, Reshapes()({ReshapeOfX()}),
       [](const Found& f) { return HasStaticShape(f[X()]) ? ReshapeTo(f[X()], GetRef<Expr>(f.root())) : Expr(); }},
      {"reshape(reshape(x)) -> reshape(x) (any shape)", E::kExact, kAll, true, Of("reshape", ReshapeOfX()),
       [](const Found& f) {
         if (HasStaticShape(GetRef<Expr>(f.root())) || !Independent(f.root())) return Expr();
         return MakeCall(op::reshape, {f[X()]}, f.root()->attrs);
       },
       false, true},
      {"reshape(x) -> x", E::kExact, kAll, false, ReshapeOfX(),
       [](const Found& f) {
         return HasStaticShape(f[X()]) && ShapeOf(f[X()]) == ShapeOf(GetRef<Expr>(f.root())) ? f[X()] : Expr();
       }},
      {"transpose(transpose(x)) -> transpose(x)", E::kExact, kAll, true, Transposes()({TransposeOfX()}),
       MergeTransposes},
      {"transpose(x) -> x", E::kExact, kAll, true, TransposeOfX(),
       [](const Found& f) { return IsIdentity(AxesOf(f.root())) ? f[X()] : Expr(); }},
      {"transpose(x) -> reshape(x) where only extents of 1 move", E::kExact, kAll, false, TransposeOfX(), MoveOnes},
      {"layout_transform(layout_transform(x)) -> layout_transform(x)", E::kExact, kAll, false,
       Of("layout_transform", LayoutOfX()), MergeLayouts},
      {"layout_transform(x) -> x", E::kExact, kAll, true, LayoutOfX(),
       [](const Found& f) {
         const auto& a = f.RootAttrs<LayoutTransformAttrs>();
         return a.src_layout == a.dst_layout ? f[X()] : Expr();
       }},
      {"reverse(reverse(x)) -> x", E::kExact, kAll, true, Of("reverse", Of("reverse", x)), ReverseTwice},
      // Products that can read an operand transposed.
      {"batch_matmul(transpose(x), y) -> batch_matmul(x, y)", E::kExact, kNumbers, true,
       Of("nn.batch_matmul", TransposeOfX(), y), IntoFlag<BatchMatmulAttrs, false>},
      {"batch_matmul(x, transpose(y)) -> batch_matmul(x, y)", E::kExact, kNumbers, true,
       Of("nn.batch_matmul", x, TransposeOfY()), IntoFlag<BatchMatmulAttrs, true>},
      {"matmul(transpose(x), y) -> matmul(x, y)", E::kExact, kNumbers, true, Of("nn.matmul", TransposeOfX(), y),
       IntoFlag<MatmulAttrs, false>},
      {"matmul(x, transpose(y)) -> matmul(x, y)", E::kExact, kNumbers, true, Of("nn.matmul", x, TransposeOfY()),
       IntoFlag<MatmulAttrs, true>},
      // Broadcasts and copies.
      {"broadcast_to(x) -> x", E::kExact, kAll, false, broadcast_x, JustX},
      {"broadcast_to(broadcast_to(x)) -> broadcast_to(x)", E::kExact, kAll, false, Of("broadcast_to", broadcast_x),
       [](const Found& f) { return MakeCall(op::broadcast_to, {f[X()]}, f.root()->attrs); }},
      {"broadcast_to(x) op y -> x op y", E::kExact, kAll, false, Binary()({broadcast_x, y}),
       [](const Found& f) { return MakeCall(Downcast<Op>(f.root()->op), {f[X()], f[Y()]}); }},
      {"x op broadcast_to(y) -> x op y", E::kExact, kAll, false, Binary()({x, broadcast_y}),
       [](const Found& f) { return MakeCall(Downcast<Op>(f.root()->op), {f[X()], f[Y()]}); }},
      {"full(c) op y -> c op y", E::kExact, kAll, false, Binary()({Filled(), y}),
       [](const Found& f) {
         Expr c = ScalarOf(f[Filled()]);
         return c.defined() ? MakeCall(Downcast<Op>(f.root()->op), {c, f[Y()]}) : Expr();
       }},
      {"x op full(c) -> x op c", E::kExact, kAll, false, Binary()({x, Filled()}),
       [](const Found& f) {
         Expr c = ScalarOf(f[Filled()]);
         return c.defined() ? MakeCall(Downcast<Op>(f.root()->op), {f[X()], c}) : Expr();
       }},
      {"tile(x, 1) -> x", E::kExact, kAll, true, Of("tile", x),
       [](const Found& f) {
         const auto& a = f.RootAttrs<TileAttrs>();
         for (int64_t r : a.reps) {
           if (r != 1) return Expr();
         }
         return f[X()];
       }},
      {"repeat(x, 1) -> x", E::kExact, kAll, true, Of("repeat", x),
       [](const Found& f) { return f.RootAttrs<RepeatAttrs>().repeats == 1 ? f[X()] : Expr(); }},
      // Tensors made like another, whose shape is known.
      {"zeros_like(x) -> zeros", E::kExact, kAll, false, Of("zeros_like", x),
       [](const Found& f) { return Made<op::zeros>(f); }},
      {"ones_like(x) -> ones", E::kExact, kAll, false, Of("ones_like", x),
       [](const Found& f) { return Made<op::ones>(f); }},
      {"full_like(x, c) -> full(c)", E::kExact, kAll, false, Of("full_like", x, y),
       [](const Found& f) {
         const auto* c = TensorOf(f[Y()]);
         if (!c || !c->shape.empty() || c->dtype != DtypeOf(f[X()])) return Expr();
         return MakeCall<InitOpAttrs>(op::full, {f[Y()]}, [&](InitOpAttrs* a) {
           a->shape = Array<int64_t>(ShapeOf(f[X()]));
           a->dtype = c->dtype;
         });
       }},
      {"reshape_like(x, y) -> reshape(x)", E::kExact, kAll, false, Of("reshape_like", x, y),
       [](const Found& f) { return ReshapeToShape(f[X()], ShapeOf(GetRef<Expr>(f.root()))); }},
      {"broadcast_to_like(x, y) -> broadcast_to(x)", E::kExact, kAll, false, Of("broadcast_to_like", x, y),
       [](const Found& f) {
         return MakeCall<InitOpAttrs>(op::broadcast_to, {f[X()]}, [&](InitOpAttrs* a) {
           a->shape = Array<int64_t>(ShapeOf(GetRef<Expr>(f.root())));
         });
       }},
      {"collapse_sum_like(x, y) -> x", E::kExact, kAll, false, Of("collapse_sum_like", x, y),
       [](const Found& f) { return HasStaticShape(f[X()]) ? f[X()] : Expr(); }},
      {"collapse_sum_like(x, y) -> collapse_sum_to(x)", E::kExact, kAll, false, Of("collapse_sum_like", x, y),
       CollapseToShape<op::zeros>},
      {"slice_like(x, y) -> strided_slice(x)", E::kExact, kAll, false, Of("slice_like", x, y),
       [](const Found& f) { return Strided(f[X()], ShapeOf(GetRef<Expr>(f.root()))); }},
  };
  return rows;
}

}  // namespace baton::relay::transform

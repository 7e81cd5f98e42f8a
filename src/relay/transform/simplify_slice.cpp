// SPDX-License-Identifier: Apache-2.0
// Rows of cutting, padding and joining.
#include <baton/ir/structural.h>
#include <baton/relay/op/make.h>
#include <baton/relay/op/transform.h>

#include <algorithm>

#include "simplify_rows.h"

namespace baton::relay::transform {
namespace {

const DFPattern& SliceOfX() {
  static const DFPattern p = Of("strided_slice", X());
  return p;
}
const DFPattern& PadOfX() {
  static const DFPattern p = IsOp("nn.pad")({X(), Y()});
  return p;
}
const DFPattern& SplitOfX() {
  static const DFPattern p = Of("split", X());
  return p;
}
const DFPattern& Parts() {
  static const DFPattern p = IsTuple(Array<DFPattern>{ObjectPtr<Object>()});
  return p;
}

/// A slice as first place, step and number of places of each dimension; false where a step is negative or unclear.
bool WindowsOf(const CallNode* call, std::vector<int64_t>* begin, std::vector<int64_t>* step) {
  const auto& a = AttrsAs<StridedSliceAttrs>(call->attrs);
  const std::vector<int64_t> shape = ShapeOf(call->args[0]);
  const int64_t n = static_cast<int64_t>(shape.size());
  begin->assign(n, 0);
  step->assign(n, 1);
  for (int64_t k = 0; k < static_cast<int64_t>(a.begin.size()); ++k) {
    const int64_t d = a.axes.defined() ? NormalizeAxis(a.axes[k], n, "strided_slice", "axes") : k;
    const bool size = a.slice_mode == "size";
    const int64_t s = size || a.strides.empty() ? 1 : a.strides.size() == 1 ? a.strides[0] : a.strides[k];
    if (s < 1 || !a.begin[k].is_literal()) return false;
    int64_t b = a.begin[k].literal();
    if (b < 0) b = b < -shape[d] ? 0 : b + shape[d];
    (*begin)[d] = std::min(b, shape[d]);
    (*step)[d] = s;
  }
  return true;
}

Expr MergeSlices(const Found& f) {
  const CallNode* inner = f.Call(SliceOfX());
  if (!HasStaticShape(f[X()]) || !HasStaticShape(f[SliceOfX()])) return Expr();
  std::vector<int64_t> b1, s1, b2, s2;
  if (!WindowsOf(inner, &b1, &s1) || !WindowsOf(f.root(), &b2, &s2)) return Expr();
  const std::vector<int64_t> out = ShapeOf(GetRef<Expr>(f.root()));
  std::vector<int64_t> begin, end, step;
  for (size_t d = 0; d < out.size(); ++d) {
    int64_t b = 0, s = 0, last = 0;
    if (__builtin_mul_overflow(s1[d], b2[d], &b) || __builtin_add_overflow(b, b1[d], &b) ||
        __builtin_mul_overflow(s1[d], s2[d], &s)) {
      return Expr();
    }
    if (out[d] > 1 && (__builtin_mul_overflow(s, out[d] - 1, &last) || __builtin_add_overflow(last, b, &last))) {
      return Expr();
    }
    begin.push_back(out[d] ? b : 0);
    end.push_back(out[d] == 0 ? 0 : out[d] == 1 ? b + 1 : last + 1);
    step.push_back(out[d] > 1 ? s : 1);
  }
  return MakeCall<StridedSliceAttrs>(op::strided_slice, {f[X()]}, [&](StridedSliceAttrs* a) {
    a->begin = Array<int64_t>(begin), a->end = Array<int64_t>(end), a->strides = Array<int64_t>(step);
  });
}

/// The widths of a pad with a constant, all of them 0 or more; false for another.
bool WidthsOf(const CallNode* call, std::vector<std::pair<int64_t, int64_t>>* out) {
  const auto& a = AttrsAs<PadAttrs>(call->attrs);
  if (!(a.pad_mode == "constant")) return false;
  for (const Array<int64_t>& w : a.pad_width) {
    if (w.size() != 2 || w[0] < 0 || w[1] < 0) return false;
    out->emplace_back(w[0], w[1]);
  }
  return true;
}

/// The tuple that a call takes.
const TupleNode* TupleOf(const Found& f) { return f[Parts()].as<TupleNode>(); }

}  // namespace

std::vector<SimplifyRow> SliceRows() {
  const DFPattern x = X(), y = Y();
  std::vector<SimplifyRow> rows = {
      {"strided_slice(x) -> x", E::kExact, kAll, false, SliceOfX(),
       [](const Found& f) {
         std::vector<int64_t> begin, step;
         if (!HasStaticShape(f[X()]) || !WindowsOf(f.root(), &begin, &step)) return Expr();
         return ShapeOf(f[X()]) == ShapeOf(GetRef<Expr>(f.root())) ? f[X()] : Expr();
       }},
      {"strided_slice(strided_slice(x)) -> strided_slice(x)", E::kExact, kAll, false, Of("strided_slice", SliceOfX()),
       MergeSlices},
      {"pad(x, 0) -> x", E::kExact, kAll, true, PadOfX(),
       [](const Found& f) {
         for (const Array<int64_t>& w : f.RootAttrs<PadAttrs>().pad_width) {
           if (w.size() != 2 || w[0] || w[1]) return Expr();
         }
         return f[X()];
       }},
      {"pad(pad(x)) -> pad(x)", E::kExact, kAll, true, IsOp("nn.pad")({PadOfX(), IsConstant()}),
       [](const Found& f) {
         std::vector<std::pair<int64_t, int64_t>> first, then;
         if (!StructuralEqual(f[Y()], f.root()->args[1])) return Expr();
         if (!WidthsOf(f.Call(PadOfX()), &first) || !WidthsOf(f.root(), &then) || first.size() != then.size()) {
           return Expr();
         }
         Array<Array<int64_t>> widths;
         for (size_t d = 0; d < first.size(); ++d) {
           widths.push_back({first[d].first + then[d].first, first[d].second + then[d].second});
         }
         return MakeCall<PadAttrs>(op::pad, {f[X()], f[Y()]}, [&](PadAttrs* a) { a->pad_width = widths; });
       }},
      {"concatenate((x)) -> x", E::kExact, kAll, true, Of("concatenate", Parts()),
       [](const Found& f) { return TupleOf(f)->fields.size() == 1 ? TupleOf(f)->fields[0] : Expr(); }},
      {"stack((x)) -> expand_dims(x)", E::kExact, kAll, false, Of("stack", Parts()),
       [](const Found& f) {
         const TupleNode* t = TupleOf(f);
         return t->fields.size() == 1 ? ReshapeToShape(t->fields[0], ShapeOf(GetRef<Expr>(f.root()))) : Expr();
       }},
      {"concatenate(split(x)) -> x", E::kExact, kAll, false, Of("concatenate", SplitOfX()),
       [](const Found& f) {
         const auto* t = TensorOf(f[X()]);
         const int64_t n = static_cast<int64_t>(t->shape.size());
         const int64_t a = NormalizeAxis(f.RootAttrs<ConcatenateAttrs>().axis, n, "concatenate");
         return a == NormalizeAxis(f.Attrs<SplitAttrs>(SplitOfX()).axis, n, "split") ? f[X()] : Expr();
       }},
      {"concatenate((split(x).0, split(x).1, ...)) -> x", E::kExact, kAll, false, Of("concatenate", Parts()),
       [](const Found& f) {
         const TupleNode* t = TupleOf(f);
         const TupleGetItemNode* first = t->fields.empty() ? nullptr : t->fields[0].as<TupleGetItemNode>();
         const CallNode* split = first ? first->tuple.as<CallNode>() : nullptr;
         if (!split || !split->op.same_as(op::split)) return Expr();
         const auto* type = split->checked_type_.as<TupleTypeNode>();
         if (!type || type->fields.size() != t->fields.size()) return Expr();
         for (size_t i = 0; i < t->fields.size(); ++i) {
           const auto* g = t->fields[i].as<TupleGetItemNode>();
           if (!g || g->tuple.get() != split || g->index != static_cast<int64_t>(i)) return Expr();
         }
         const auto* in = TensorOf(split->args[0]);
         const int64_t n = in ? static_cast<int64_t>(in->shape.size()) : 0;
         if (!n) return Expr();
         const int64_t a = NormalizeAxis(f.RootAttrs<ConcatenateAttrs>().axis, n, "concatenate");
         return a == NormalizeAxis(AttrsAs<SplitAttrs>(split->attrs).axis, n, "split") ? split->args[0] : Expr();
       }},
  };
  return rows;
}

}  // namespace baton::relay::transform

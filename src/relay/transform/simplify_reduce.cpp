// SPDX-License-Identifier: Apache-2.0
// Rows of reductions: one after the other, and over nothing.
#include <baton/relay/op/make.h>
#include <baton/relay/op/tensor.h>
#include <baton/relay/op/transform.h>

#include <algorithm>

#include "simplify_rows.h"

namespace baton::relay::transform {
namespace {

/// Which dimensions a reduction runs over.
std::vector<bool> Reduced(const CallNode* call, size_t rank) {
  const auto& a = AttrsAs<ReduceAttrs>(call->attrs);
  const bool all = !a.axis.defined() || a.axis.empty();
  std::vector<bool> out(rank, all && !(a.axis.defined() && a.exclude));
  if (all) return out;
  for (int64_t d : a.axis) out[NormalizeAxis(d, static_cast<int64_t>(rank), "reduce")] = true;
  if (a.exclude) out.flip();
  return out;
}

const CallNode* Inner(const Found& f) { return f.root()->args[0].as<CallNode>(); }

/// Two reductions of one kind as one.
Expr Merge(const Found& f) {
  const CallNode* inner = Inner(f);
  const auto* x = TensorOf(f[X()]);
  const auto* between = TensorOf(GetRef<Expr>(inner));
  if (!x || !between) return Expr();
  // An empty list of axes means different things to different users: it is left alone.
  for (const CallNode* c : {inner, f.root()}) {
    const auto& a = AttrsAs<ReduceAttrs>(c->attrs);
    if (a.axis.defined() && a.axis.empty()) return Expr();
  }
  const size_t rank = x->shape.size();
  std::vector<bool> first = Reduced(inner, rank), then = Reduced(f.root(), between->shape.size());
  const bool keep1 = AttrsAs<ReduceAttrs>(inner->attrs).keepdims, keep2 = f.RootAttrs<ReduceAttrs>().keepdims;
  std::vector<int64_t> axes;
  size_t at = 0;
  bool fits = keep1 == keep2 || keep1;
  for (size_t d = 0; d < rank; ++d) {
    const bool gone = first[d] && !keep1;
    const bool second = !gone && then[at++];
    // Dimensions that the first one keeps and the second does not touch would have to stay, at extent 1.
    if (first[d] && keep1 && !keep2 && !second) fits = false;
    if (first[d] || second) axes.push_back(static_cast<int64_t>(d));
  }
  if (!fits || axes.empty()) return Expr();
  return ReduceCall(Downcast<Op>(f.root()->op), f[X()], Array<int64_t>(axes), keep2);
}

/// A reduction over dimensions of extent 1 alone.
Expr OverNothing(const Found& f) {
  if (!HasStaticShape(f[X()])) return Expr();
  const std::vector<int64_t> shape = ShapeOf(f[X()]), out = ShapeOf(GetRef<Expr>(f.root()));
  int64_t n = 1, m = 1;
  for (int64_t d : shape) n *= d;
  for (int64_t d : out) m *= d;
  if (n != m || n == 0) return Expr();
  return ReshapeToShape(f[X()], out);
}

/// Steps of one positive size keep the order of integers that a float32 holds.
Expr OnIntegers(const Found& f) {
  const DataType t = DtypeOf(f[X()]);
  const Expr scale = f[Y()];
  double step = 0;
  const bool narrow = (t.is_int() || t.is_uint()) && t.bits() <= 16;
  if (!narrow || !Splat(scale, &step) || !(step > 0 && step < 1e30)) return Expr();
  return MakeCall(Downcast<Op>(f.root()->op), {f[X()]}, f.root()->attrs);
}

DFPattern Twice(const char* op) { return IsOp(op)({IsOp(op)({X()})}); }

}  // namespace

std::vector<SimplifyRow> ReduceRows() {
  const DFPattern x = X();
  auto over = [&](const char* op) { return IsOp(op)({x}); };
  std::vector<SimplifyRow> rows = {
      {"max(x) over one element -> x", E::kExact, kAll, false, over("max"), OverNothing},
      {"min(x) over one element -> x", E::kExact, kAll, false, over("min"), OverNothing},
      {"sum(x) over one element -> x", E::kButNanOrZero, kNumbers, false, over("sum"), OverNothing},
      {"mean(x) over one element -> x", E::kButNanOrZero, kFloats, false, over("mean"), OverNothing},
      {"prod(x) over one element -> x", E::kExact, kNumbers, false, over("prod"), OverNothing},
      {"argmax(dequantize(x)) -> argmax(x)", E::kExact, kFloats, true,
       IsOp("argmax")({IsOp("qnn.dequantize")({x, Y(), IsConstant()})}), OnIntegers},
      {"argmin(dequantize(x)) -> argmin(x)", E::kExact, kFloats, true,
       IsOp("argmin")({IsOp("qnn.dequantize")({x, Y(), IsConstant()})}), OnIntegers},
      {"argsort(dequantize(x)) -> argsort(x)", E::kExact, kFloats, true,
       IsOp("argsort")({IsOp("qnn.dequantize")({x, Y(), IsConstant()})}), OnIntegers},
      {"max(max(x)) -> max(x)", E::kExact, kAll, false, Twice("max"), Merge},
      {"min(min(x)) -> min(x)", E::kExact, kAll, false, Twice("min"), Merge},
      {"all(all(x)) -> all(x)", E::kExact, kBools, false, Twice("all"), Merge},
      {"any(any(x)) -> any(x)", E::kExact, kBools, false, Twice("any"), Merge},
      {"sum(sum(x)) -> sum(x)", E::kReassociates, kNumbers, false, Twice("sum"), Merge},
      {"prod(prod(x)) -> prod(x)", E::kReassociates, kNumbers, false, Twice("prod"), Merge},
      {"mean(mean(x)) -> mean(x)", E::kReassociates, kFloats, false, Twice("mean"), Merge},
  };
  return rows;
}

}  // namespace baton::relay::transform

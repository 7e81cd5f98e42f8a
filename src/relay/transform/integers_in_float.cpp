// SPDX-License-Identifier: Apache-2.0
#include <baton/ir/target.h>
#include <baton/relay/functor.h>
#include <baton/relay/op.h>
#include <baton/relay/op/make.h>
#include <baton/relay/transform.h>
#include <baton/runtime/scalar.h>
#include <relay/expr/children.h>
#include <relay/op/integer_ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <vector>

#include "relay/kernel/dots.h"

namespace baton::relay::transform {
namespace {

/// A sum is taken in so many parts at most.
constexpr int64_t kMostParts = 64;
constexpr DataType kFloat = DataType::Float(32);

const TensorTypeNode* TensorOf(const Expr& e) { return e->checked_type_.as<TensorTypeNode>(); }

class Floater : public MixedModeMutator {
 public:
  explicit Floater(Target target) : target_(std::move(target)) {}

 private:
  Expr Rewrite_(const CallNode* pre, const Expr& post) final {
    const auto* call = post.as<CallNode>();
    const auto* out = pre->checked_type_.as<TensorTypeNode>();
    if (!call || call->args.size() != 2 || !out || !out->dtype.is_int() || out->dtype.bits() < 32) return post;
    const std::optional<SummedAxes> axes = SummedAxesOf(pre);
    if (!axes || kernel::HasDotKernel(pre, target_)) return post;
    const SummedAxes& at = *axes;
    const auto *x = TensorOf(pre->args[0]), *w = TensorOf(pre->args[1]);
    const int64_t terms = DimOf(w->shape[at.weight]);
    const std::optional<IntegerRange> a = ranges_.Of(pre->args[0]), b = a ? ranges_.Of(pre->args[1]) : std::nullopt;
    if (!a || !b || terms <= 0) return post;
    int64_t window = 1;  // terms of the sum for one of `terms`
    if (at.weight_rows) {
      for (size_t d = 2; d < w->shape.size(); ++d) window *= DimOf(w->shape[static_cast<int64_t>(d)]);
    }
    if (window <= 0) return post;
    const int64_t parts = Parts(*a, *b, terms, window, at, pre->args[1]);
    if (parts > kMostParts || (parts > 1 && !CanSplit(*call, x, at, terms))) return post;
    const Attrs attrs = InFloat(call->attrs);
    const Expr data = Cast(call->args[0], kFloat), weight = Cast(call->args[1], kFloat);
    Expr sum;
    for (int64_t i = 0; i < parts; ++i) {
      const int64_t begin = terms * i / parts, end = terms * (i + 1) / parts;
      Expr part = Call({.op = call->op,
                        .args = {parts == 1 ? data : SliceAlong(data, at.data, begin, end),
                                 parts == 1 ? weight : SliceAlong(weight, at.weight, begin, end)},
                        .attrs = attrs});
      part->span = pre->span;
      part = Cast(part, out->dtype);
      sum = sum.defined() ? Add(sum, part) : part;
      sum->span = pre->span;
    }
    return sum;
  }

  static bool CanSplit(const CallNode& call, const TensorTypeNode* x, const SummedAxes& at, int64_t terms) {
    return DimOf(x->shape[at.data]) == terms && HasKnownExtents(x->shape) && !IsGrouped(call.attrs);
  }
  static bool IsGrouped(const Attrs& attrs) {
    const auto* info = attrs.defined() ? runtime::TypeInfo::Get(attrs->type_index()) : nullptr;
    const auto* f = info ? info->Find("groups") : nullptr;
    return f && f->Get(attrs.get()).As<int64_t>() != 1;
  }

  /// Into how many parts the sum has to be cut for each to be exact.
  int64_t Parts(const IntegerRange& a, const IntegerRange& b, int64_t terms, int64_t window, const SummedAxes& at,
                const Expr& weight) {
    const double one = a.Magnitude() * b.Magnitude() * static_cast<double>(window);
    if (one > kExactInFloat32) return kMostParts + 1;
    const auto all = static_cast<int64_t>(one > 0 ? std::floor(kExactInFloat32 / one) : terms);
    const int64_t parts = (terms + all - 1) / std::max<int64_t>(all, 1);
    const auto* c = weight.as<ConstantNode>();
    if (parts <= 1 || !c || !at.weight_rows) return std::max<int64_t>(parts, 1);
    // Known weights are smaller in the mean than the largest of them.
    const std::vector<double> largest = LargestSums(c->data, parts);
    for (int64_t fewer = 1; fewer < parts; ++fewer) {
      if (largest[static_cast<size_t>(fewer)] * a.Magnitude() <= kExactInFloat32) return fewer;
    }
    return parts;
  }

  /// For each number of parts below `most`, into which the second dimension is cut: the largest sum of magnitudes in
  /// one of them, for one row of the first dimension.
  static std::vector<double> LargestSums(const NDArray& weight, int64_t most) {
    const NDArray w = weight.Contiguous();
    const int64_t rows = w.dim(0), terms = w.dim(1), window = w.numel() / std::max<int64_t>(rows * terms, 1);
    std::vector<double> largest(static_cast<size_t>(most)), before(static_cast<size_t>(terms) + 1);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t k = 0; k < terms; ++k) {
        double sum = before[static_cast<size_t>(k)];
        for (int64_t i = 0; i < window; ++i)
          sum += std::abs(runtime::LoadDouble(w.data(), w.dtype(), (r * terms + k) * window + i));
        before[static_cast<size_t>(k) + 1] = sum;
      }
      for (int64_t parts = 1; parts < most; ++parts) {
        for (int64_t i = 0; i < parts; ++i) {
          const double part =
              before[static_cast<size_t>(terms * (i + 1) / parts)] - before[static_cast<size_t>(terms * i / parts)];
          largest[static_cast<size_t>(parts)] = std::max(largest[static_cast<size_t>(parts)], part);
        }
      }
    }
    return largest;
  }

  static Attrs InFloat(const Attrs& attrs) {
    const auto* info = attrs.defined() ? runtime::TypeInfo::Get(attrs->type_index()) : nullptr;
    const auto* f = info ? info->Find("out_dtype") : nullptr;
    if (!f) return attrs;
    Attrs own(info->copy(attrs.get()));
    f->Set(runtime::ObjectAccess::Get(own), Any(kFloat).raw());
    return own;
  }
  Target target_;
  IntegerRanges ranges_;
};

bool IsProduct(const ExprNode* n) {
  if (!n->IsInstance<CallNode>()) return false;
  const auto* call = static_cast<const CallNode*>(n);
  const OpDef* def = DefOf(call->op);
  const auto* t = n->checked_type_.as<TensorTypeNode>();
  return def && def->traits.precision == Precision::kAlways && t && t->dtype.is_int();
}

}  // namespace

Pass IntegersInFloat() {
  return MakePass<IntegersInFloat>({
      .doc =
          "Computes products and convolutions of small integers in float32, through its kernels, where their sums are "
          "exact there: whole numbers below 2^24. Longer sums are cut into parts, which are added as integers.",
      .opt_level = 1,
      .required = {"InferType"},
      .run = [](Function f, IRModule, PassContext) -> Function {
        const Target target = Target::Current();
        if (!target->traits().vector_kernels) return f;
        return AnyNode(f, IsProduct) ? Downcast<Function>(Floater(target).Mutate(f)) : f;
      },
  });
}

namespace {
const RegisterPass<IntegersInFloat> registered_integers_in_float;
}  // namespace

}  // namespace baton::relay::transform

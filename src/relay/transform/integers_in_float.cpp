// SPDX-License-Identifier: Apache-2.0
#include <baton/ir/target.h>
#include <baton/relay/functor.h>
#include <baton/relay/op.h>
#include <baton/relay/op/make.h>
#include <baton/relay/op/nn.h>
#include <baton/relay/op/tensor.h>
#include <baton/relay/op/transform.h>
#include <baton/relay/transform.h>
#include <baton/runtime/scalar.h>
#include <relay/expr/children.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <vector>

namespace baton::relay::transform {
namespace {

/// Whole numbers up to this, and sums of such that stay below, are exact in float32.
constexpr double kExact = 1 << 24;
/// A sum is taken in so many parts at most.
constexpr int64_t kMostParts = 64;
constexpr DataType kFloat = DataType::Float(32);

/// All values of an integer tensor lie in [low, high].
struct Range {
  double low = 0, high = 0;
  double Magnitude() const { return std::max(std::abs(low), std::abs(high)); }
};
Range Hull(std::initializer_list<double> values) { return {std::min(values), std::max(values)}; }

const TensorTypeNode* TensorOf(const Expr& e) { return e->checked_type_.as<TensorTypeNode>(); }

/// What integer values can be, from dtypes, constants and the arithmetic around them.
class Ranges {
 public:
  std::optional<Range> Of(const Expr& e, int depth = 0) {
    const auto* t = TensorOf(e);
    if (!t || !t->dtype.is_integral() || depth > 24) return std::nullopt;
    bool fresh = false;
    std::optional<Range>& known = known_.Insert(e.get(), &fresh);
    if (!fresh) return known;
    std::optional<Range> r = Find(e, depth);
    const std::optional<Range> all = OfDtype(t->dtype);
    // What leaves the dtype wraps round.
    if (all && (!r || r->low < all->low || r->high > all->high)) r = all;
    if (r && r->Magnitude() > kExact) r.reset();
    *known_.Find(e.get()) = r;
    return r;
  }

 private:
  static std::optional<Range> OfDtype(DataType t) {
    if (t.bits() > 16 || t.lanes() != 1) return std::nullopt;
    const double size = std::ldexp(1.0, t.bits());
    if (t.is_bool()) return Range{0, 1};
    return t.is_uint() ? Range{0, size - 1} : Range{-size / 2, size / 2 - 1};
  }

  std::optional<Range> Find(const Expr& e, int depth) {
    if (const auto* c = e.as<ConstantNode>()) return OfConstant(c->data);
    const auto* call = e.as<CallNode>();
    const OpDef* def = call ? DefOf(call->op) : nullptr;
    if (!def || call->args.empty()) return std::nullopt;
    auto arg = [&](int64_t i) { return Of(call->args[i], depth + 1); };
    if (call->op.same_as(op::cast) || def->traits.values == Values::kSelects || def->traits.values == Values::kView)
      return arg(0);
    if (call->args.size() != 2) return std::nullopt;
    const std::optional<Range> a = arg(0), b = a ? arg(1) : std::nullopt;
    if (!a || !b) return std::nullopt;
    if (call->op.same_as(op::subtract)) return Range{a->low - b->high, a->high - b->low};
    if (call->op.same_as(op::add)) return Range{a->low + b->low, a->high + b->high};
    if (call->op.same_as(op::multiply))
      return Hull({a->low * b->low, a->low * b->high, a->high * b->low, a->high * b->high});
    if (call->op.same_as(op::pad)) return Hull({a->low, b->low, a->high, b->high});
    return std::nullopt;
  }

  static std::optional<Range> OfConstant(const NDArray& data) {
    const NDArray x = data.Contiguous();
    if (x.numel() == 0 || !runtime::IsLoadable(x.dtype())) return std::nullopt;
    Range r{HUGE_VAL, -HUGE_VAL};
    for (int64_t i = 0; i < x.numel(); ++i) {
      const double v = runtime::LoadDouble(x.data(), x.dtype(), i);
      r = {std::min(r.low, v), std::max(r.high, v)};
    }
    return r;
  }

  PointerMap<std::optional<Range>> known_;
};

/// Where a product's operands have the dimension that is summed, -1: the last but one.
struct Summed {
  int64_t data = -1, weight = -1;
  bool weight_rows = false;  ///< the weight's first dimension is that of the results' channels
};

class Floater : public MixedModeMutator {
 private:
  Expr Rewrite_(const CallNode* pre, const Expr& post) final {
    const auto* call = post.as<CallNode>();
    const auto* out = pre->checked_type_.as<TensorTypeNode>();
    Summed at;
    if (!call || call->args.size() != 2 || !out || !out->dtype.is_int() || out->dtype.bits() < 32 || !Take(pre, &at))
      return post;
    const auto *x = TensorOf(pre->args[0]), *w = TensorOf(pre->args[1]);
    const int64_t terms = DimOf(w->shape[at.weight]);
    const std::optional<Range> a = ranges_.Of(pre->args[0]), b = a ? ranges_.Of(pre->args[1]) : std::nullopt;
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
                        .args = {parts == 1 ? data : Slice(data, at.data, begin, end),
                                 parts == 1 ? weight : Slice(weight, at.weight, begin, end)},
                        .attrs = attrs});
      part->span = pre->span;
      part = Cast(part, out->dtype);
      sum = sum.defined() ? Add(sum, part) : part;
      sum->span = pre->span;
    }
    return sum;
  }

  /// Whether the call is a product that is summed along one dimension; which one.
  static bool Take(const CallNode* call, Summed* at) {
    const auto *x = TensorOf(call->args[0]), *w = TensorOf(call->args[1]);
    if (!x || !w || x->shape.size() < 2 || w->shape.size() < 2) return false;
    const auto rows = static_cast<int64_t>(x->shape.size()), columns = static_cast<int64_t>(w->shape.size());
    auto flag = [&](const char* name, bool otherwise) {
      return call->attrs.defined() ? runtime::GetField(call->attrs.get(), name).As<bool>() : otherwise;
    };
    if (ConvDims(call->op) > 0) {
      const auto layout = runtime::GetField(call->attrs.get(), "data_layout").As<String>();
      const auto weights = runtime::GetField(call->attrs.get(), "kernel_layout").As<String>();
      if (!layout.view().starts_with("NC") || !weights.view().starts_with("OI")) return false;
      *at = {1, 1, true};
      return columns == rows && columns == ConvDims(call->op) + 2;
    }
    if (call->op.same_as(op::dense)) {
      *at = {rows - 1, 1, columns == 2};
      return columns == 2;
    }
    if (call->op.same_as(op::matmul) || call->op.same_as(op::batch_matmul)) {
      const bool batch = call->op.same_as(op::batch_matmul);
      *at = {rows - (flag("transpose_a", false) ? 2 : 1), columns - (flag("transpose_b", batch) ? 1 : 2), false};
      return true;
    }
    return false;
  }

  static bool CanSplit(const CallNode& call, const TensorTypeNode* x, const Summed& at, int64_t terms) {
    return DimOf(x->shape[at.data]) == terms && HasKnownExtents(x->shape) && !IsGrouped(call.attrs);
  }
  static bool IsGrouped(const Attrs& attrs) {
    const auto* info = attrs.defined() ? runtime::TypeInfo::Get(attrs->type_index()) : nullptr;
    const auto* f = info ? info->Find("groups") : nullptr;
    return f && f->Get(attrs.get()).As<int64_t>() != 1;
  }

  /// Into how many parts the sum has to be cut for each to be exact.
  int64_t Parts(const Range& a, const Range& b, int64_t terms, int64_t window, const Summed& at, const Expr& weight) {
    const double one = a.Magnitude() * b.Magnitude() * static_cast<double>(window);
    if (one > kExact) return kMostParts + 1;
    const auto all = static_cast<int64_t>(one > 0 ? std::floor(kExact / one) : terms);
    const int64_t parts = (terms + all - 1) / std::max<int64_t>(all, 1);
    const auto* c = weight.as<ConstantNode>();
    if (parts <= 1 || !c || !at.weight_rows) return std::max<int64_t>(parts, 1);
    // Known weights are smaller in the mean than the largest of them.
    const std::vector<double> largest = LargestSums(c->data, parts);
    for (int64_t fewer = 1; fewer < parts; ++fewer) {
      if (largest[static_cast<size_t>(fewer)] * a.Magnitude() <= kExact) return fewer;
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
  static Expr Slice(const Expr& e, int64_t axis, int64_t begin, int64_t end) {
    return MakeCall<StridedSliceAttrs>(op::strided_slice, {e}, [&](StridedSliceAttrs* a) {
      a->begin = Array<int64_t>{begin}, a->end = Array<int64_t>{end}, a->axes = Array<int64_t>{axis};
    });
  }

  Ranges ranges_;
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
        if (target->kind == "opencl") return f;
        return AnyNode(f, IsProduct) ? Downcast<Function>(Floater().Mutate(f)) : f;
      },
  });
}

namespace {
const RegisterPass<IntegersInFloat> registered_integers_in_float;
}  // namespace

}  // namespace baton::relay::transform

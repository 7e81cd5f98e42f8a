// SPDX-License-Identifier: Apache-2.0
#include <baton/ir/progress.h>
#include <baton/ir/structural.h>
#include <baton/relay/evaluator.h>
#include <baton/relay/functor.h>
#include <baton/relay/lower.h>
#include <baton/relay/op.h>
#include <baton/relay/transform.h>
#include <baton/runtime/interrupt.h>
#include <relay/op/later.h>
#include <relay/transform/tuple_fields.h>

#include <algorithm>
#include <optional>
#include <unordered_map>

namespace baton::relay::transform {
namespace {

// A result larger than this many times its inputs, plus the slack, is not folded: artifacts must not grow by folding.
constexpr size_t kFoldGrowth = 16;
constexpr size_t kFoldSlack = 1 << 20;
// Bounds of a value that is only computed on the way to a smaller one, and of all such values of a function together.
constexpr size_t kMaxTransientBytes = size_t{256} << 20;
// Operations that one run over a function may take, a second or two, and bytes that it may make; more where there are
// new constants to compute with. Values beyond stay in the program.
constexpr double kMaxFlops = 1e10, kFlopsAByte = 4;
constexpr double kMaxBytes = 384 << 20, kBytesAByte = 6;
// Smaller weights stay in memory.
constexpr size_t kLater = 64 << 10;
// Elements of quantized weights count as what they are computed with.
constexpr double kWideBytes = 4;

/// Whether an expression is a constant: a Constant, or a Tuple of constants. Answers are kept for tuples alone.
class ConstantChecker : private ExprVisitor {
 public:
  bool Check(const Expr& expr) {
    if (expr.as<ConstantNode>()) return true;
    auto it = memo_.find(expr.get());
    if (it != memo_.end()) return it->second;
    VisitExpr(expr);
    it = memo_.find(expr.get());
    return it != memo_.end() && it->second;
  }

 private:
  using ExprVisitor::VisitExpr_;
  void VisitExpr(const Expr& e) final {
    if (e.as<TupleNode>()) ExprFunctor::VisitExpr(e);
  }
  void VisitExpr_(const TupleNode* t) final {
    bool all = true;
    for (const Expr& f : t->fields) {
      if (!Check(f)) {
        all = false;
        break;
      }
    }
    memo_[t] = all;
  }
  std::unordered_map<const Object*, bool> memo_;
};

size_t BytesOf(const Type& type) {
  const auto* t = type.as<TensorTypeNode>();
  if (!t) return 0;
  size_t n = t->dtype.bytes();
  for (const PrimExpr& d : t->shape) n *= static_cast<size_t>(std::max<int64_t>(DimOf(d), 1));
  return n;
}

class ConstantFolder : public MixedModeMutator {
 public:
  /// `growth`: bytes that results may have beyond what the rule allows, all together.
  explicit ConstantFolder(IRModule mod, size_t growth = 0, bool fold_qnn = false)
      : mod_(std::move(mod)), growth_(growth), fold_qnn_(fold_qnn) {}

  Expr Fold(const Expr& root) {
    fields_.emplace(root);
    const FoldingBudget budget(root);
    return Mutate(root);
  }

 private:
  using MixedModeMutator::VisitExpr_;
  // The variable of a binding that became a Constant stands for it in the body.
  Expr PostVisitLet_(const LetNode* op, const Expr& value, const Expr& body) final {
    return value.as<ConstantNode>() ? body : MixedModeMutator::PostVisitLet_(op, value, body);
  }
  void PreVisitLet_(const LetNode* op) final {
    MixedModeMutator::PreVisitLet_(op);
    Expr value = VisitExpr(op->value);
    if (value.as<ConstantNode>()) Put(op->var, value);
    if (auto it = transient_.find(value.get()); it != transient_.end()) {
      TransientValue same = it->second;
      transient_[op->var.get()] = same;
    }
  }

  Expr Rewrite_(const TupleGetItemNode* pre, const Expr& post) final { return fields_->Take(pre, post, graph()); }

  // Fusion groups are evaluated as a whole or not at all: their bodies stay.
  Expr VisitExpr_(const FunctionNode* f) final {
    return f->HasNonzeroAttr(attr::kPrimitive) ? GetRef<Expr>(f) : MixedModeMutator::VisitExpr_(f);
  }

  Expr Rewrite_(const CallNode* pre, const Expr& post) final {
    const auto* call = post.as<CallNode>();
    if (!call || call->args.empty()) return post;
    const auto* op = call->op.as<OpNode>();
    if (!op) return post;
    const OpDef* def = DefOf(call->op);
    if (!def || def->stateful) return post;
    if (def->traits.value_of_types) {
      Expr value = ValueOfTypes(pre, def->traits.value_of_types);
      if (value.defined()) return value;
    }
    if (def->fold == Fold::kNever) return post;
    if (!fold_qnn_ && op->name.view().starts_with("qnn.")) return post;
    size_t in_bytes = 0;
    for (const Expr& a : call->args) {
      auto transient = transient_.find(a.get());
      if (transient == transient_.end() && !checker_.Check(a)) return post;
      in_bytes += transient == transient_.end() ? ConstantBytes(a) : transient->second.from;
    }
    if (pre->checked_type_.defined()) {
      size_t bytes = BytesOf(Downcast<Type>(pre->checked_type_));
      if (bytes > kFoldGrowth * in_bytes + kFoldSlack) {
        if (bytes > growth_) {
          // Too large to keep; values computed from it may be small.
          if (transient_bytes_ + bytes <= kMaxTransientBytes && Affordable(pre)) {
            transient_[post.get()] = {post, ObjectRef(), in_bytes};
            transient_bytes_ += bytes;
          }
          return post;
        }
        growth_ -= bytes;
      }
    }
    Expr* known = Known(call);
    if (known && known->defined()) return *known;
    if (!Affordable(pre)) return post;
    Expr folded = FoldLater(pre, call);
    folded = WithTypeOf(pre, folded.defined() ? folded : ConstEvaluate(call, post));
    if (known && folded.as<ConstantNode>()) *known = folded;
    return folded;
  }

  /// A call of weights that are read when they are needed, by a kernel that the evaluator makes, becomes such a weight
  /// itself; null for other calls.
  static Expr FoldLater(const CallNode* pre, const CallNode* call) {
    const OpDef* def = DefOf(call->op);
    const auto* type = pre->checked_type_.as<TensorTypeNode>();
    std::vector<int64_t> shape;
    if (!type || !def->lower || def->host || def->pattern > OpPattern::kInjective ||
        !StaticShape(type->shape, &shape) || runtime::TensorBytes(shape, type->dtype) < kLater)
      return Expr();
    bool any = false;
    Array<ObjectRef> args;
    for (const Expr& a : call->args) {
      const auto* c = a.as<ConstantNode>();
      if (!c || (c->data.nbytes() >= kLater && !c->data.HasSource())) return Expr();
      any = any || c->data.HasSource();
      args.push_back(c->data);
    }
    if (!any) return Expr();
    for (const ObjectRef& a : args) Downcast<NDArray>(a).GiveBack();
    const auto op = Downcast<Op>(call->op);
    Constant later(NDArray::Later(
        shape, type->dtype,
        PackedFunc([op, attrs = call->attrs, args, shape, view = IsView(op)](runtime::Args, runtime::RetValue* rv) {
          *rv = view ? CopyAs(Downcast<NDArray>(args[0]), shape) : EvalAgain(op, attrs, args);
        })));
    later->span = call->span;
    return later;
  }
  static NDArray CopyAs(const NDArray& from, const std::vector<int64_t>& shape) {
    return Reading(from, [&](const NDArray& x) { return NDArray::FromBytes(x.data(), shape, x.dtype()); });
  }
  static NDArray EvalAgain(const Op& op, const Attrs& attrs, const Array<ObjectRef>& args) {
    With<PassContext> scope(PassContext::Create());
    NDArray out = Downcast<NDArray>(Evaluator::Get().EvalOp(op, attrs, args));
    for (const ObjectRef& a : args) Downcast<NDArray>(a).GiveBack();
    return out;
  }

  /// Counts the operations of a call, and of the values that it needs first.
  bool Affordable(const CallNode* pre) {
    if (!pre->checked_type_.defined()) return true;
    const auto bytes = static_cast<double>(BytesOf(Downcast<Type>(pre->checked_type_)));
    const double flops = std::max(FlopsOf(pre), kFlopsAByte * bytes);
    return FoldingBudget::Current().Take(flops, bytes);
  }

  /// A call of constants that has been folded: steps of an unrolled loop share what they make of one weight.
  struct FoldedCall {
    RelayExpr op;
    Array<Expr> args;
    Attrs attrs;
    Expr folded;
  };
  /// The result of folding such a call, or where to keep it; null for calls that are not looked up.
  Expr* Known(const CallNode* call) {
    uint64_t h = reinterpret_cast<uintptr_t>(call->op.get());
    for (const Expr& a : call->args) {
      if (!a.as<ConstantNode>()) return nullptr;
      h = h * 0x9e3779b97f4a7c15ULL + reinterpret_cast<uintptr_t>(a.get());
    }
    std::vector<FoldedCall>& calls = folded_[h];
    for (FoldedCall& f : calls) {
      if (f.op.same_as(call->op) && f.args.size() == call->args.size() &&
          std::equal(f.args.begin(), f.args.end(), call->args.begin(), SameObject) &&
          (f.attrs.same_as(call->attrs) || StructuralEqual(f.attrs, call->attrs)))
        return &f.folded;
    }
    calls.push_back({call->op, call->args, call->attrs, Expr()});
    return &calls.back().folded;
  }
  static bool SameObject(const Expr& a, const Expr& b) { return a.same_as(b); }

  /// A constant has the very type that what it replaces had, where that was as precise.
  static Expr WithTypeOf(const CallNode* pre, Expr folded) {
    const auto* c = folded.as<ConstantNode>();
    if (c && pre->checked_type_.defined() && StructuralEqual(c->checked_type_, pre->checked_type_)) {
      c->checked_type_ = pre->checked_type_;
    }
    return folded;
  }

  /// A value that is known but too large for the program: computed when something needs it.
  struct TransientValue {
    Expr expr;
    ObjectRef value;
    size_t from = 0;  ///< bytes of the constants that it is computed from
  };

  ObjectRef ValueOf(const Expr& root) {
    std::vector<Expr> work{root};
    while (!work.empty()) {
      const Expr e = work.back();
      auto it = transient_.find(e.get());
      if (it == transient_.end() || it->second.value.defined()) {
        work.pop_back();
        continue;
      }
      const Expr expr = it->second.expr;  // of a variable: what it is bound to
      const auto* call = expr.as<CallNode>();
      bool ready = true;
      for (const Expr& a : call->args) {
        auto arg = transient_.find(a.get());
        if (arg != transient_.end() && !arg->second.value.defined()) work.push_back(a), ready = false;
      }
      if (!ready) continue;
      Array<ObjectRef> args;
      for (const Expr& a : call->args) args.push_back(Ready(a));
      transient_[e.get()].value = Evaluator::Get().EvalOp(Downcast<Op>(call->op), call->attrs, args);
      work.pop_back();
    }
    return Ready(root);
  }
  ObjectRef Ready(const Expr& e) {
    auto it = transient_.find(e.get());
    return it != transient_.end() ? it->second.value : Interpret(e, mod_);
  }

  static size_t ConstantBytes(const Expr& e) {
    size_t n = 0;
    std::vector<Expr> work{e};
    while (!work.empty()) {
      baton::runtime::PollInterrupt();
      Expr x = work.back();
      work.pop_back();
      if (const auto* c = x.as<ConstantNode>()) n += c->data.nbytes();
      if (const auto* t = x.as<TupleNode>()) work.insert(work.end(), t->fields.begin(), t->fields.end());
    }
    return n;
  }

  /// The value, where the types of the original arguments say it.
  static Expr ValueOfTypes(const CallNode* pre, ValueOfTypesFn value_of) {
    Array<Type> types;
    for (const Expr& a : pre->args) types.push_back(runtime::RefCast<Type>(a->checked_type_));
    const NDArray value = value_of(pre->attrs, types);
    return value.defined() ? ValueToExpr(value) : Expr();
  }

  Expr ConstEvaluate(const CallNode* call, const Expr& post) {
    // Under a fresh context: the user's instruments neither see nor block it.
    With<PassContext> scope(PassContext::Create());
    ObjectRef value;
    try {
      baton::transform::progress::WorkAt at(post);
      Array<ObjectRef> args;
      for (const Expr& a : call->args) args.push_back(ValueOf(a));
      value = Evaluator::Get().EvalOp(Downcast<Op>(call->op), call->attrs, args);
    } catch (const UnsupportedError&) {
      return post;
    }
    Expr folded = ValueToExpr(value);
    if (!folded.defined()) return post;
    folded->span = post->span;
    return folded;
  }

  IRModule mod_;
  size_t growth_;
  bool fold_qnn_;
  std::unordered_map<const Object*, TransientValue> transient_;
  size_t transient_bytes_ = 0;
  std::unordered_map<uint64_t, std::vector<FoldedCall>> folded_;
  ConstantChecker checker_;
  std::optional<TupleFields> fields_;
};

double ConstantBytesOf(const Expr& root) {
  double own = 0;
  for (const ExprNode* n : PostOrderNodes(root)) {
    if (!n->IsInstance<ConstantNode>()) continue;
    const NDArray& data = static_cast<const ConstantNode*>(n)->data;
    own += std::max(static_cast<double>(data.nbytes()), kWideBytes * static_cast<double>(data.numel()));
  }
  return own;
}

thread_local FoldingBudget* current_budget = nullptr;

}  // namespace

FoldingBudget::FoldingBudget(const IRModule& mod) {
  double own = 0;
  for (const auto& [var, func] : mod->functions) {
    if (!current_budget && func.as<FunctionNode>()) own += ConstantBytesOf(Downcast<Function>(func));
  }
  Begin(own);
}
FoldingBudget::FoldingBudget(const Expr& root) { Begin(current_budget ? 0 : ConstantBytesOf(root)); }
void FoldingBudget::Begin(double constant_bytes) {
  if (current_budget) return;
  flops_ = kMaxFlops + 4 * kFlopsAByte * constant_bytes;
  bytes_ = kMaxBytes + kBytesAByte * constant_bytes;
  current_budget = this;
  outermost_ = true;
}
FoldingBudget::~FoldingBudget() {
  if (outermost_) current_budget = nullptr;
}
FoldingBudget& FoldingBudget::Current() { return *current_budget; }
bool FoldingBudget::Take(double flops, double bytes) {
  if (flops > flops_ || bytes > bytes_) return false;
  flops_ -= flops, bytes_ -= bytes;
  return true;
}

/// Folds an expression; globals are resolved in `mod`.
Expr FoldConstant(const Expr& expr, const IRModule& mod) { return ConstantFolder(mod).Fold(expr); }
/// The early form: without a module.
Expr FoldConstant(const Expr& expr) { return FoldConstant(expr, IRModule(Map<GlobalVar, BaseFunc>())); }

Pass FoldConstant(const FoldConstantOptions& options) {
  // The expression forms have the same name, so the function is chosen by its type.
  constexpr Pass (*kSelf)(const FoldConstantOptions&) = &FoldConstant;
  return MakePass<kSelf>(options, {
                                      .doc = "Evaluates what is constant, once, unless it has effects, is large, or "
                                             "stands on a device. Sound because operators give equal results for "
                                             "equal inputs.",
                                      .opt_level = 2,
                                      .needs = {"Typed"},
                                      .run =
                                          [fold_qnn = options.fold_qnn](Function f, IRModule m, PassContext) {
                                            return Downcast<Function>(ConstantFolder(m, 0, fold_qnn).Fold(f));
                                          },
                                  });
}

/// Weights that a model computes instead of carrying them (a filled tensor, say) must be constants before kernels can
/// pack them. They grow the program, so there is a budget.
Pass FoldWeights(const FoldWeightsOptions& options) {
  return MakePass<FoldWeights>(
      options,
      {
          .doc = "FoldConstant that may make the program larger, up to the bytes of `relay.FoldWeights.max_bytes`.",
          .opt_level = 2,
          .required = {"InferType"},
          .reassociates = true,
          .run = [budget = static_cast<size_t>(std::max<int64_t>(options.max_bytes, 0))](
                     Function f, IRModule m,
                     PassContext) { return Downcast<Function>(ConstantFolder(m, budget).Fold(f)); },
      });
}
namespace {
const RegisterPass<static_cast<Pass (*)(const FoldConstantOptions&)>(&FoldConstant)> registered_fold;
const RegisterPass<FoldWeights> registered_weights;
}  // namespace

BATON_REGISTER_GLOBAL("relay._transform.FoldConstantExpr").set_body_typed([](Expr e, IRModule m) {
  return FoldConstant(e, m);
});
BATON_REGISTER_GLOBAL("relay._ir_pass.FoldConstant").set_body_typed([](Expr e) { return FoldConstant(e); });

}  // namespace baton::relay::transform

// SPDX-License-Identifier: Apache-2.0
#include <baton/relay/functor.h>
#include <baton/relay/op.h>
#include <baton/relay/op/nn.h>
#include <baton/relay/transform.h>
#include <relay/expr/children.h>
#include <relay/transform/tuple_fields.h>

#include <algorithm>
#include <optional>
#include <unordered_set>

namespace baton::relay::transform {
namespace {

/// Replaces calls of operators that say themselves in terms of others. `only`: just these, by name; empty: all.
class Decomposer : public MixedModeMutator {
 public:
  explicit Decomposer(std::unordered_set<std::string_view> only, bool without_lowering_only,
                      std::string_view family = "", bool norms = false)
      : only_(std::move(only)), without_lowering_only_(without_lowering_only), norms_(norms), family_(family) {}

  Function Apply(const Function& f) {
    const bool any = AnyNode(f, [&](const ExprNode* n) {
      if (n->IsInstance<TupleGetItemNode>())
        return static_cast<const TupleGetItemNode*>(n)->tuple.as<TupleNode>() != nullptr;
      return n->IsInstance<CallNode>() && Replaced(DefOf(static_cast<const CallNode*>(n)->op));
    });
    if (!any) return f;
    fields_.emplace(f);
    return Downcast<Function>(Mutate(f));
  }

 private:
  using MixedModeMutator::VisitExpr_;
  bool Replaced(const OpDef* def) const {
    return def && def->decompose && (only_.empty() || only_.count(def->name) || (norms_ && IsNormOfMoments(def))) &&
           !(without_lowering_only_ && def->lower) && std::string_view(def->name).starts_with(family_);
  }
  /// Whether an extent of an argument is not a literal.
  static bool IsOpen(const Array<Expr>& args) {
    return std::any_of(args.begin(), args.end(), [](const Expr& a) {
      const auto* t = a->checked_type_.as<TensorTypeNode>();
      return t && std::any_of(t->shape.begin(), t->shape.end(), [](const PrimExpr& d) { return DimOf(d) < 0; });
    });
  }
  Expr Rewrite_(const CallNode* pre, const Expr& post) final {
    const auto* call = post.as<CallNode>();
    const OpDef* def = call ? DefOf(call->op) : nullptr;
    if (!Replaced(def) || !pre->checked_type_.defined()) return post;
    // The definition reads types off the original call, and uses the rewritten arguments.
    Expr out;
    try {
      out = def->decompose(GetRef<Call>(pre), call->args);
    } catch (const CompileError&) {
      // A definition may need lengths; where they are open the call stays as it is, and they come with it.
      if (!IsOpen(call->args)) throw;
    }
    if (!out.defined()) return post;
    if (!out->span.defined()) out->span = post->span;
    return out;
  }
  Expr Rewrite_(const TupleGetItemNode* pre, const Expr& post) final { return fields_->Take(pre, post, graph()); }
  Expr VisitExpr_(const FunctionNode* f) final {
    return f->HasNonzeroAttr(attr::kPrimitive) ? GetRef<Expr>(f) : MixedModeMutator::VisitExpr_(f);
  }
  std::unordered_set<std::string_view> only_;
  bool without_lowering_only_;
  bool norms_;               ///< besides `only`: norms by the data's own moments
  std::string_view family_;  ///< what names begin with
  std::optional<TupleFields> fields_;
};

}  // namespace

Pass SimplifyInference(const SimplifyInferenceOptions& options) {
  return MakePass<SimplifyInference>(
      options, {
                   .doc = "Rewrites training-time operators to what they are in inference: batch_norm to scale and "
                          "shift, dropout to its input; norms by the data's own moments to arithmetic.",
                   .opt_level = 0,
                   .required = {"InferType"},
                   .reassociates = true,
                   .run =
                       [norms = options.norms](Function f, IRModule, PassContext) {
                         static const std::unordered_set<std::string_view> ops = {"nn.batch_norm", "nn.dropout"};
                         return Decomposer(ops, false, "", norms).Apply(f);
                       },
               });
}

Pass DecomposeOps() {
  return MakePass<DecomposeOps>({
      .doc = "Replaces operators that have no lowering of their own by what they are defined to be.",
      .opt_level = 0,
      .required = {"InferType"},
      .reassociates = true,
      .run = [](Function f, IRModule, PassContext) { return Decomposer({}, true).Apply(f); },
  });
}

Pass QnnCanonicalize() {
  return MakePass<QnnCanonicalize>({
      .doc = "Operators on quantized tensors (qnn.*) become the plain operators that they are defined by.",
      .opt_level = 0,
      .required = {"InferType"},
      .run = [](Function f, IRModule, PassContext) { return Decomposer({}, false, "qnn.").Apply(f); },
  });
}

namespace {
const RegisterPass<SimplifyInference> registered_simplify;
const RegisterPass<QnnCanonicalize> registered_qnn;
const RegisterPass<DecomposeOps> registered_decompose;
}  // namespace

}  // namespace baton::relay::transform

// SPDX-License-Identifier: Apache-2.0
#include <baton/relay/functor.h>
#include <baton/relay/transform.h>
#include <relay/expr/children.h>

namespace baton::relay::transform {
namespace {

class Legalizer : public MixedModeMutator {
 public:
  explicit Legalizer(std::string key) : key_(std::move(key)) {}

 private:
  using MixedModeMutator::VisitExpr_;
  Expr VisitExpr_(const FunctionNode* f) final {
    return f->HasNonzeroAttr(attr::kPrimitive) ? GetRef<Expr>(f) : MixedModeMutator::VisitExpr_(f);
  }
  Expr Rewrite_(const CallNode* pre, const Expr& post) final {
    const auto* call = post.as<CallNode>();
    const auto* op = call ? call->op.as<OpNode>() : nullptr;
    if (!op) return post;
    Any f = GetRef<Op>(op).GetAttrValue(key_.c_str());
    if (f.is_null()) return post;
    Array<Type> types;
    for (const Expr& a : pre->args) types.push_back(Downcast<Type>(a->checked_type()));
    types.push_back(Downcast<Type>(pre->checked_type()));
    Any made = f.As<PackedFunc>()(call->attrs, call->args, types);
    if (made.is_null()) return post;
    Expr out = made.As<Expr>();
    if (out.same_as(post)) return post;
    if (!out->span.defined()) out->span = pre->span;
    return out;
  }
  std::string key_;
};

}  // namespace

Pass Legalize(const LegalizeOptions& options) {
  return MakePass<Legalize>(
      options, {
                   .doc = "Replaces calls by what the attribute FTVMLegalize (or another, by name) of their operator "
                          "makes of them: "
                          "f(attrs, arguments, types of arguments and result), which gives an expression or nothing.",
                   .opt_level = 1,
                   .required = {"InferType"},
                   .reassociates = true,
                   .run =
                       [key = options.legalize_map_attr_name.str()](Function f, IRModule, PassContext) {
                         const bool any = AnyCallWhere(
                             f, [&](const OpNode* op) { return !GetRef<Op>(op).GetAttrValue(key.c_str()).is_null(); });
                         return any ? Legalizer(key).Mutate(f) : f;
                       },
               });
}

namespace {
const RegisterPass<Legalize> registered_legalize;
}  // namespace

}  // namespace baton::relay::transform

// SPDX-License-Identifier: Apache-2.0
#include <baton/relay/functor.h>
#include <baton/relay/transform.h>
#include <baton/runtime/named.h>
#include <relay/expr/children.h>

namespace baton::relay::transform {
namespace {

class Expander : public MixedModeMutator {
 public:
  Expander(const IRModule& mod, bool constructors, bool globals)
      : mod_(mod), constructors_(constructors), globals_(globals) {}

 private:
  using MixedModeMutator::VisitExpr_;
  /// fn (%x...) { f(%x...) }; `types` may have fewer entries than there are parameters.
  static Expr Wrap(const Expr& f, size_t params, const std::vector<Type>& types, const Type& result,
                   const Array<TypeVar>& type_params) {
    Array<Var> vars;
    Array<Expr> args;
    for (size_t i = 0; i < params; ++i) {
      Var v("eta" + std::to_string(i), i < types.size() ? types[i] : Type());
      vars.push_back(v);
      args.push_back(v);
    }
    CallNode call;
    call.op = f, call.args = args;
    return Function(vars, Call(std::move(call)), result, type_params);
  }
  Expr VisitExpr_(const ConstructorNode* c) final {
    Expr self = GetRef<Expr>(c);
    if (!constructors_) return self;
    Array<TypeVar> params;
    std::vector<Type> types;
    if (const auto* e = runtime::FindNamed(mod_->type_definitions.get(), c->belong_to->name_hint.view())) {
      const auto data = runtime::SlotAs<TypeData>(e->value);
      params = data->type_vars;
      for (const Constructor& k : data->constructors) {
        if (k->name_hint == c->name_hint) types.assign(k->inputs.begin(), k->inputs.end());
      }
    }
    Array<Type> args;
    for (const TypeVar& v : params) args.push_back(v);
    return Wrap(self, c->inputs.size(), types, TypeCall(c->belong_to, args), params);
  }
  Expr VisitExpr_(const GlobalVarNode* g) final {
    Expr self = GetRef<Expr>(g);
    if (!globals_ || !mod_->ContainGlobalVar(g->name_hint.view())) return self;
    BaseFunc func = mod_->Lookup(g->name_hint.view());
    const auto* f = func.as<FunctionNode>();
    if (!f) return self;
    std::vector<Type> types;
    for (const Var& p : f->params) types.push_back(p->type_annotation);
    return Wrap(self, f->params.size(), types, f->ret_type, f->type_params);
  }
  Expr Rewrite_(const CallNode* pre, const Expr& post) final {
    // A callee stays as it is.
    const auto* call = post.as<CallNode>();
    if (call->op.same_as(pre->op) || !(pre->op.as<ConstructorNode>() || pre->op.as<GlobalVarNode>())) return post;
    if (call->args.same_as(pre->args)) return GetRef<Expr>(pre);
    auto n = make_object<CallNode>(*call);
    n->op = pre->op;
    return Call(n);
  }
  Pattern VisitPattern(const Pattern& p) final { return p; }  // a pattern names no values
  IRModule mod_;
  bool constructors_, globals_;
};

}  // namespace

Pass EtaExpand(const EtaExpandOptions& options) {
  return MakePass<EtaExpand>(
      options,
      {
          .doc =
              "Constructors (and, if asked for, global functions) that are not called become functions that call them.",
          .opt_level = 1,
          .run =
              [expand_constructor = options.expand_constructor, expand_global_var = options.expand_global_var](
                  Function f, IRModule mod, PassContext) {
                const bool any = AnyNode(f, [](const ExprNode* n) {
                  return n->IsInstance<ConstructorNode>() || n->IsInstance<GlobalVarNode>();
                });
                return any ? Expander(mod, expand_constructor, expand_global_var).Mutate(f) : f;
              },
      });
}

namespace {
const RegisterPass<EtaExpand> registered_eta_expand;
}  // namespace

}  // namespace baton::relay::transform

// SPDX-License-Identifier: Apache-2.0
#include <baton/relay/analysis.h>
#include <baton/relay/functor.h>
#include <baton/relay/transform.h>
#include <baton/support/name_map.h>
#include <baton/support/pointer_map.h>
#include <relay/expr/captured_vars.h>
#include <relay/expr/children.h>
#include <relay/expr/with_body.h>

#include <string>
#include <unordered_map>

namespace baton::relay::transform {
namespace {

/// Functions within functions become global, innermost first. One that captures variables becomes a function of these
/// that gives the closure (attribute Closure); its uses call that.
class Lifter : public MixedModeMutator {
 public:
  Lifter(IRModule* out, support::NameMap<bool>* names, std::string base) : out_(out), names_(names), base_(base) {}

  Function Lift(const Function& f) {
    polymorphic_ = !f->type_params.empty();
    return WithBody(f, VisitExpr(f->body));
  }

 private:
  using MixedModeMutator::VisitExpr_;

  void PreVisitLet_(const LetNode* op) final {
    const auto* f = op->value.as<FunctionNode>();
    if (!f || f->HasNonzeroAttr(attr::kPrimitive)) return MixedModeMutator::PreVisitLet_(op);
    // The variable stands for the lifted function, in its own body too.
    Expr made = LiftFunction(f, op->var);
    Put(op->value, made);
    Put(op->var, made);
  }
  Expr PostVisitLet_(const LetNode* op, const Expr& value, const Expr& body) final {
    const auto* f = op->value.as<FunctionNode>();
    if (f && !f->HasNonzeroAttr(attr::kPrimitive)) return body;
    return MixedModeMutator::PostVisitLet_(op, value, body);
  }
  Expr VisitExpr_(const FunctionNode* f) final {
    return f->HasNonzeroAttr(attr::kPrimitive) ? GetRef<Expr>(f) : LiftFunction(f, Var());
  }

  Expr LiftFunction(const FunctionNode* f, const Var& self) {
    const std::string wanted = self.defined() ? base_ + "_" + self->name_hint().str() : "lifted_" + base_;
    std::string name = wanted;
    if (names_->Find(name)) {
      for (int& i = next_[wanted]; names_->Find(name); ++i) name = wanted + "_" + std::to_string(i);
    }
    GlobalVar global(name.c_str());
    names_->Insert(global->name_hint.view());  // `out_` keeps it
    // What it captures: also what functions capture that it names by a variable.
    Array<Var> captured;
    PointerSet seen;
    auto capture = [&](const Var& v) {
      if (seen.Add(v.get())) captured.push_back(v);
    };
    for (const Var& v : captured_.Of(f)) {
      if (self.defined() && v.same_as(self)) continue;
      const Expr became = Known(v);
      if (!became.defined() || became.as<VarNode>()) {
        capture(v);
      } else {
        for (const Var& inner : FreeVars(became)) capture(inner);
      }
    }
    Expr made = global;
    if (!captured.empty()) {
      CallNode call;
      call.op = global;
      for (const Var& v : captured) call.args.push_back(v);
      made = Call(std::move(call));
    }
    if (self.defined()) Put(self, made);
    polymorphic_ = polymorphic_ || !f->type_params.empty();
    auto n = make_object<FunctionNode>(*f);
    n->body = VisitExpr(f->body);
    if (const auto* t = f->checked_type_.as<FuncTypeNode>()) n->ret_type = t->ret_type;
    Function lifted(n);
    if (!captured.empty()) {
      // The captured variables are the parameters, as they are if they say their types.
      Map<Var, Expr> stated;
      for (size_t i = 0; i < captured.size(); ++i) {
        const Var old = captured[i];
        if (old->type_annotation.defined() || !old->checked_type_.defined()) continue;
        Var v(old->name_hint(), runtime::RefCast<Type>(old->checked_type_));
        v->checked_type_ = old->checked_type_;
        stated.Set(old, v);
        captured.Set(i, v);
      }
      // Within a tuple: what is bound in a function would become its parameters.
      if (!stated.empty())
        lifted = Downcast<Function>(Downcast<Tuple>(Bind(Tuple(Array<Expr>({lifted})), stated))->fields[0]);
      lifted = WithAttr(Function(captured, lifted, runtime::RefCast<Type>(f->checked_type_)), attr::kClosure, Any(1));
    }
    if (polymorphic_) lifted = WithTypeParams(lifted);
    out_->CopyOnWrite()->functions.Set(global, lifted);  // the name is new
    return made;
  }

  /// A global function says itself for which types it is: those of the functions around it too.
  static Function WithTypeParams(const Function& f) {
    const Array<TypeVar> around = FreeTypeVars(f);
    if (around.empty()) return f;
    auto n = make_object<FunctionNode>(*f.as<FunctionNode>());
    for (const TypeVar& v : around) n->type_params.push_back(v);
    n->checked_type_ = ObjectRef();
    return Function(n);
  }

  IRModule* out_;
  support::NameMap<bool>* names_;  ///< in the module
  std::string base_;
  CapturedVars captured_;
  bool polymorphic_ = false;                   ///< some function so far has type parameters
  std::unordered_map<std::string, int> next_;  ///< the number that a name that is taken may be free with
};

}  // namespace

Pass LambdaLift() {
  return MakePass<LambdaLift>({
      .doc =
          "Functions within functions become global functions; a closure is made by calling one with what it captures.",
      .opt_level = 1,
      .required = {"InferType"},
      .run =
          [](IRModule mod, PassContext) {
            IRModule out = mod;
            support::NameMap<bool> names;
            for (const auto& [var, func] : mod->functions) names.Insert(var->name_hint.view());
            for (const auto& [var, func] : mod->functions) {
              if (!func.as<FunctionNode>()) continue;
              Function f = Downcast<Function>(func);
              if (f->HasNonzeroAttr(attr::kPrimitive)) continue;
              if (f->HasNonzeroAttr(attr::kClosure) && f->body.as<FunctionNode>()) continue;
              const auto nested = [&](const ExprNode* n) { return n->IsInstance<FunctionNode>() && n != f.get(); };
              if (!AnyNode(f, nested)) continue;
              Function lifted = Lifter(&out, &names, var->name_hint.str()).Lift(f);
              if (!lifted.same_as(f)) out.CopyOnWrite()->Update(var, lifted);
            }
            return out;
          },
  });
}

namespace {
const RegisterPass<LambdaLift> registered_lambda_lift;
}  // namespace

}  // namespace baton::relay::transform

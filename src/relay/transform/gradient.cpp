// SPDX-License-Identifier: Apache-2.0
// First-order reverse-mode differentiation: one walk back over a graph of tensors and tuples. Each node has one
// adjoint, the sum of what its users say, so the result is as long as the program and the rules of its operators
// together.
#include "gradient.h"

#include <baton/ir/diagnostic.h>
#include <baton/relay/functor.h>
#include <baton/relay/op/make.h>
#include <baton/relay/op/transform.h>
#include <baton/relay/transform.h>
#include <baton/runtime/interrupt.h>
#include <baton/runtime/registry.h>
#include <baton/support/pointer_map.h>
#include <baton/support/stack.h>
#include <fmt/format.h>
#include <relay/text/type_text.h>

namespace baton::relay {

void GradientError(const BaseExprNode* at, std::string message, std::string help) {
  DiagnosticList errors;
  errors.Error(at ? at->span : Span(), std::move(message), "", std::move(help));
  errors.ThrowIfAny(baton::transform::PassContext::Current()->diag_ctx);
  throw InternalError("an error did not end the pass");
}

bool HasFloating(const Type& type) {
  std::vector<Type> stack{type};
  while (!stack.empty()) {
    Type t = stack.back();
    stack.pop_back();
    if (const auto* tensor = t.as<TensorTypeNode>()) {
      if (tensor->dtype.is_floating()) return true;
    } else if (const auto* tuple = t.as<TupleTypeNode>()) {
      stack.insert(stack.end(), tuple->fields.begin(), tuple->fields.end());
    }
  }
  return false;
}

bool FloatingTypes::Has(const Type& type) {
  std::vector<const TypeNode*> stack{type.get()};
  while (!stack.empty()) {
    baton::runtime::PollInterrupt();
    const TypeNode* t = stack.back();
    if (known_.Has(t)) {
      stack.pop_back();
      continue;
    }
    bool has = false, waits = false;
    if (t->IsInstance<TensorTypeNode>()) {
      has = static_cast<const TensorTypeNode*>(t)->dtype.is_floating();
    } else if (t->IsInstance<TupleTypeNode>()) {
      for (const Type& f : static_cast<const TupleTypeNode*>(t)->fields) {
        const bool* known = known_.Find(f.get());
        has = has || (known && *known);
        if (!known) stack.push_back(f.get()), waits = true;
      }
    }
    if (waits && !has) continue;
    // Nodes put above it are not needed where one part says it.
    while (stack.back() != t) stack.pop_back();
    stack.pop_back();
    known_[t] = has;
  }
  return *known_.Find(type.get());
}

Expr FilledTensor(const TensorTypeNode* type, const Expr& like, bool ones) {
  std::vector<int64_t> dims;
  if (!StaticShape(type->shape, &dims)) return MakeCall(ones ? op::ones_like : op::zeros_like, {like});
  return MakeCall<InitOpAttrs>(ones ? op::ones : op::zeros, {}, [&](InitOpAttrs* a) {
    a->shape = Array<int64_t>(dims.begin(), dims.end()), a->dtype = type->dtype;
  });
}

Array<Expr> AdjointsOf(const Call& call, const Expr& grad) {
  Op op = Downcast<Op>(call->op);
  PackedFunc rule = GradientOf(op);
  const std::string_view name = op->name.view();
  if (!rule.defined()) {
    const std::string_view reason = NoGradientReason(op);
    GradientError(
        call.get(),
        reason.empty() ? fmt::format("operator `{}` has no gradient", name)
                       : fmt::format("operator `{}` has no gradient: {}", name, reason),
        fmt::format("register one: relay.op.register_gradient(\"{}\", lambda call, grad: [an adjoint for each "
                    "of its {} arguments])",
                    name, call->args.size()));
  }
  Array<Expr> out;
  try {
    out = TypedPackedFunc<Array<Expr>(Call, Expr)>(rule)(call, grad);
  } catch (const CompileError& e) {
    GradientError(call.get(), e.what());
  }
  if (out.size() != call->args.size()) {
    GradientError(call.get(), fmt::format("the gradient of `{}` gives {} adjoints, the call has {} arguments", name,
                                          out.size(), call->args.size()));
  }
  return out;
}

namespace {

class GradientDecomposer : public MixedModeMutator {
 public:
  bool any = false;

 private:
  using MixedModeMutator::VisitExpr_;
  Expr Rewrite_(const CallNode* pre, const Expr& post) final {
    const auto* call = post.as<CallNode>();
    const auto* op = call ? call->op.as<OpNode>() : nullptr;
    if (!op || !pre->checked_type_.defined() || !HasFloating(runtime::RefCast<Type>(pre->checked_type_))) return post;
    DecomposeFn form = GradientDecompositionOf(GetRef<Op>(op));
    if (!form || GradientOf(GetRef<Op>(op)).defined()) return post;
    Expr out;
    try {
      out = form(GetRef<Call>(pre), call->args);
    } catch (const CompileError& e) {
      GradientError(pre, e.what());
    }
    if (!out.defined()) return post;
    any = true;
    if (!out->span.defined()) out->span = post->span;
    return out;
  }
};

}  // namespace

Expr DecomposeForGradient(const Expr& expr, const IRModule& mod) {
  Expr now = expr;
  for (int round = 0; round < 16; ++round) {
    GradientDecomposer decompose;
    Expr next = decompose.Mutate(now);
    if (!decompose.any) return now;
    now = next;
    transform::InferTypeOf(now, mod);
  }
  throw InternalError("the decomposition of an operator leads back to it");
}

Function PrepareForGradient(const Function& func, const IRModule& mod) {
  if (!func.defined()) throw CompileError("gradient takes a function, not null");
  Array<Var> free = FreeVars(func);
  if (!free.empty()) {
    GradientError(func.get(), fmt::format("the function has the free variable `%{}`", free[0]->name_hint().view()),
                  "make it a parameter");
  }
  if (!func->type_params.empty())
    GradientError(func.get(), "the function has type parameters", "differentiate it for given types");
  transform::InferTypeOf(func, mod);
  return func;
}

namespace {

Type TypeOf(const Expr& e) { return e->checked_type(); }

/// Values take the place of their variables; parameters get fresh ones, as the function they are of lives on.
class Flattener : public MixedModeMutator {
 public:
  Array<Var> Own(const Array<Var>& params) {
    Array<Var> out;
    for (const Var& p : params) {
      Var own(p->name_hint(), TypeOf(p));
      own->checked_type_ = TypeOf(p);
      own->span = p->span;
      Put(p, own);
      out.push_back(own);
    }
    return out;
  }

 private:
  using MixedModeMutator::VisitExpr_;
  void PreVisitLet_(const LetNode* op) final { Put(op->var, VisitExpr(op->value)); }
  Expr PostVisitLet_(const LetNode*, const Expr&, const Expr& body) final { return body; }
};

/// An adjoint of a value: an expression of its type, or the fields' of a tuple, or nothing for zero.
struct Adjoint {
  Expr whole;
  std::vector<Adjoint> fields;
  bool zero() const { return !whole.defined() && fields.empty(); }

  Adjoint() = default;
  Adjoint(Adjoint&&) = default;
  Adjoint& operator=(Adjoint&&) = default;
  /// As deep as tuples are: fields end one after the other, not one within the other.
  ~Adjoint() {
    std::vector<Adjoint> work = std::move(fields);
    while (!work.empty()) {
      Adjoint last = std::move(work.back());
      work.pop_back();
      for (Adjoint& f : last.fields) work.push_back(std::move(f));
      last.fields.clear();
    }
  }
};

void Include(Adjoint* a, const Expr& e, const Type& type) {
  const auto* tuple = type.as<TupleTypeNode>();
  if (!tuple) {
    if (type.as<TensorTypeNode>()->dtype.is_floating()) a->whole = a->whole.defined() ? Add(a->whole, e) : e;
    return;
  }
  a->fields.resize(tuple->fields.size());
  const auto* literal = e.as<TupleNode>();
  for (size_t i = 0; i < tuple->fields.size(); ++i) {
    Expr field = literal ? literal->fields[i] : Expr(TupleGetItem(TupleGetItemNode{.tuple = e, .index = (int64_t)i}));
    if (field.defined()) support::WithStack([&] { Include(&a->fields[i], field, tuple->fields[i]); });
  }
}
/// Adds what `from` says.
void Merge(Adjoint* to, Adjoint&& from, const Type& type) {
  if (to->zero()) {
    *to = std::move(from);
    return;
  }
  if (from.whole.defined()) Include(to, from.whole, type);
  if (from.fields.empty()) return;
  const auto* tuple = type.as<TupleTypeNode>();
  to->fields.resize(tuple->fields.size());
  for (size_t i = 0; i < from.fields.size(); ++i) {
    support::WithStack([&] { Merge(&to->fields[i], std::move(from.fields[i]), tuple->fields[i]); });
  }
}
/// The adjoint as an expression, with zeros where nothing was said; `value` has the type. What says nothing of a tuple
/// says nothing of its fields.
Expr Whole(const Adjoint& a, const Expr& value, const Type& type) {
  const auto* tuple = type.as<TupleTypeNode>();
  if (!tuple) return a.whole.defined() ? a.whole : FilledTensor(type.as<TensorTypeNode>(), value, false);
  Array<Expr> fields;
  for (size_t i = 0; i < tuple->fields.size(); ++i) {
    Expr field = TupleGetItem(TupleGetItemNode{.tuple = value, .index = static_cast<int64_t>(i)});
    field->checked_type_ = tuple->fields[i];
    fields.push_back(
        support::WithStack([&] { return Whole(a.fields.empty() ? a : a.fields[i], field, tuple->fields[i]); }));
  }
  return Tuple(fields);
}
Adjoint Ones(const Expr& value, const Type& type) {
  Adjoint a;
  if (const auto* tensor = type.as<TensorTypeNode>()) {
    if (tensor->dtype.is_floating()) a.whole = FilledTensor(tensor, value, true);
    return a;
  }
  const auto* tuple = type.as<TupleTypeNode>();
  for (size_t i = 0; i < tuple->fields.size(); ++i) {
    Expr field = TupleGetItem(TupleGetItemNode{.tuple = value, .index = static_cast<int64_t>(i)});
    field->checked_type_ = tuple->fields[i];
    a.fields.push_back(support::WithStack([&] { return Ones(field, tuple->fields[i]); }));
  }
  return a;
}

void CheckTensors(const Expr& e, const char* what) {
  std::vector<Type> stack{TypeOf(e)};
  while (!stack.empty()) {
    baton::runtime::PollInterrupt();
    Type t = stack.back();
    stack.pop_back();
    if (const auto* tuple = t.as<TupleTypeNode>()) {
      stack.insert(stack.end(), tuple->fields.begin(), tuple->fields.end());
    } else if (!t.as<TensorTypeNode>()) {
      GradientError(e.get(),
                    fmt::format("{} has type {}; gradients are of tensors and tuples of them", what, TypeText(t)));
    }
  }
}

void CheckDataflow(const ExprNode* n) {
  if (n->IsInstance<VarNode>() || n->IsInstance<ConstantNode>() || n->IsInstance<OpNode>() ||
      n->IsInstance<TupleNode>() || n->IsInstance<TupleGetItemNode>())
    return;
  if (const auto* call = GetRef<Expr>(n).as<CallNode>(); call && call->op.as<OpNode>()) return;
  std::string what = n->GetTypeKey();
  if (n->IsInstance<CallNode>()) what = "a call of what is no operator";
  GradientError(n, fmt::format("the first-order gradient takes dataflow, this is {}", what),
                "use mode=\"higher_order\", or run Inline and ToGraphNormalForm before");
}

}  // namespace

Function FirstOrderGradient(const Function& func, const IRModule& mod) {
  Function own = PrepareForGradient(func, mod);
  for (const Var& p : own->params) CheckTensors(p, "a parameter");
  CheckTensors(own->body, "the result");
  PostOrder(own->body, [&](const Expr& e) {
    if (!e.as<LetNode>()) CheckDataflow(e.get());
  });
  Flattener flatten;
  Array<Var> params = flatten.Own(own->params);
  Expr body = flatten.Mutate(own->body);
  transform::InferTypeOf(body, mod);
  body = DecomposeForGradient(body, mod);

  std::vector<const ExprNode*> nodes = PostOrderNodes(body);
  // Expressions that depend on a parameter with an adjoint.
  PointerSet active;
  FloatingTypes floating;
  for (const Var& p : params) {
    if (HasFloating(TypeOf(p))) active.Add(p.get());
  }
  for (const ExprNode* n : nodes) {
    bool on = false;
    if (n->IsInstance<CallNode>()) {
      for (const Expr& a : static_cast<const CallNode*>(n)->args) on = on || active.Has(a.get());
    } else if (n->IsInstance<TupleNode>()) {
      for (const Expr& a : static_cast<const TupleNode*>(n)->fields) on = on || active.Has(a.get());
    } else if (n->IsInstance<TupleGetItemNode>()) {
      on = active.Has(static_cast<const TupleGetItemNode*>(n)->tuple.get());
    }
    if (on && floating.Has(runtime::RefCast<Type>(n->checked_type_))) active.Add(n);
  }
  PointerMap<Adjoint> adjoints;
  adjoints[body.get()] = Ones(body, TypeOf(body));
  for (size_t i = nodes.size(); i-- > 0;) {
    const ExprNode* n = nodes[i];
    if (!active.Has(n) || n->IsInstance<VarNode>()) continue;
    Adjoint* found = adjoints.Find(n);
    if (!found || found->zero()) continue;
    Adjoint mine = std::move(*found);
    if (n->IsInstance<TupleNode>()) {
      const auto* t = static_cast<const TupleNode*>(n);
      for (size_t k = 0; k < t->fields.size(); ++k) {
        if (active.Has(t->fields[k].get()))
          Merge(&adjoints[t->fields[k].get()], std::move(mine.fields[k]), TypeOf(t->fields[k]));
      }
    } else if (n->IsInstance<TupleGetItemNode>()) {
      const auto* g = static_cast<const TupleGetItemNode*>(n);
      Adjoint& whole = adjoints[g->tuple.get()];
      whole.fields.resize(TypeOf(g->tuple).as<TupleTypeNode>()->fields.size());
      Merge(&whole.fields[g->index], std::move(mine), runtime::RefCast<Type>(g->checked_type_));
    } else {
      Call call = GetRef<Call>(static_cast<const CallNode*>(n));
      Array<Expr> grads = AdjointsOf(call, Whole(mine, call, TypeOf(call)));
      for (size_t k = 0; k < grads.size(); ++k) {
        const Expr& arg = call->args[k];
        if (!grads[k].defined() || !active.Has(arg.get())) continue;
        if (!grads[k]->span.defined()) grads[k]->span = call->span;
        Include(&adjoints[arg.get()], grads[k], TypeOf(arg));
      }
    }
  }
  Array<Expr> grads;
  const Adjoint nothing;
  for (const Var& p : params) {
    const Adjoint* a = adjoints.Find(p.get());
    grads.push_back(Whole(a ? *a : nothing, p, TypeOf(p)));
  }
  Function out(params, Tuple(Array<Expr>{body, Tuple(grads)}), Type(), {}, func->attrs);
  transform::InferTypeOf(out, mod);
  return out;
}

namespace transform {
namespace {

enum class GradientMode { kFirst, kHigher };
/// The entry function, or all of a module without one, becomes its gradient.
IRModule GradientOfModule(const IRModule& mod, GradientMode mode) {
  IRModule out = mod.Copy();
  std::vector<std::pair<GlobalVar, Function>> funcs;
  for (const auto& [var, func] : mod->functions) {
    const auto* f = func.as<FunctionNode>();
    if (f && (var->name_hint == "main" || !mod->ContainGlobalVar("main"))) funcs.push_back({var, GetRef<Function>(f)});
  }
  for (const auto& [var, func] : funcs) {
    Function g = mode == GradientMode::kFirst ? FirstOrderGradient(func, mod) : HigherOrderGradient(func, &out);
    out.CopyOnWrite()->Update(var, g);
  }
  return out;
}

}  // namespace

Pass FirstOrderGradient() {
  return MakePass<FirstOrderGradient>({
      .doc = "@main gives (its result, (the gradient by each parameter)). Dataflow alone; the result is linear in the "
             "size of the program.",
      .opt_level = 0,
      .required = {"InferType"},
      .changes_results = true,
      .run = [](IRModule mod, PassContext) { return GradientOfModule(mod, GradientMode::kFirst); },
  });
}
Pass Gradient() {
  return MakePass<Gradient>({
      .doc = "@main gives (its result, (the gradient by each parameter)). All of Relay: closures, references, data "
             "types, recursion; what it makes can be differentiated again.",
      .opt_level = 0,
      .required = {"InferType"},
      .changes_results = true,
      .run = [](IRModule mod, PassContext) { return GradientOfModule(mod, GradientMode::kHigher); },
  });
}

namespace {
const RegisterPass<FirstOrderGradient> registered_first;
const RegisterPass<Gradient> registered_higher;

Function FunctionOf(const Expr& expr, const IRModule& mod) {
  if (const auto* g = expr.as<GlobalVarNode>()) return Downcast<Function>(mod->Lookup(g->name_hint.view()));
  const auto* f = expr.as<FunctionNode>();
  if (!f) throw CompileError("gradient takes a function or the name of one, this is " + expr.get()->GetTypeKey());
  return GetRef<Function>(f);
}
BATON_REGISTER_GLOBAL("relay._transform.first_order_gradient").set_body_typed([](Expr expr, IRModule mod) {
  return relay::FirstOrderGradient(FunctionOf(expr, mod), mod);
});
/// (the gradient, the module with what it calls)
BATON_REGISTER_GLOBAL("relay._transform.higher_order_gradient").set_body_typed([](Expr expr, IRModule mod) {
  Function f = FunctionOf(expr, mod);
  Function g = HigherOrderGradient(f, &mod);
  return Array<runtime::ObjectRef>{g, mod};
});
}  // namespace
}  // namespace transform
}  // namespace baton::relay

// SPDX-License-Identifier: Apache-2.0
// Writes inferred types into the program.
#include <baton/runtime/interrupt.h>
#include <fmt/format.h>
#include <relay/types/inferencer.h>

namespace baton::relay::inference {
namespace {

/// Checks the types that a function states: an attribute may have asked for a dimension that there cannot be.
/// Tuples that are in `checked` were.
void CheckDimensions(const Type& type, PointerSet* checked) {
  std::vector<Type> todo{type};
  while (!todo.empty()) {
    const Type t = todo.back();
    todo.pop_back();
    if (const auto* tuple = t.as<TupleTypeNode>()) {
      if (!checked->Add(tuple)) continue;
      for (const Type& f : tuple->fields) todo.push_back(f);
    } else if (const auto* tensor = t.as<TensorTypeNode>()) {
      for (const PrimExpr& d : tensor->shape) {
        const auto* n = d.as<IntImmNode>();
        if (n && n->value < 0) {
          throw CompileError(
              fmt::format("the result of a function has type {}: a dimension is {}", TypeText(t), n->value));
        }
      }
    }
  }
}

/// A call of an operator that has type arguments, as rewrites in Python copy them; the operator has no type parameters.
bool StatesTypesToOperator(const ExprNode* n) {
  if (!n->IsInstance<CallNode>()) return false;
  const auto* call = static_cast<const CallNode*>(n);
  return !call->type_args.empty() && call->op.as<OpNode>();
}

/// Rebuilds nodes whose type has changed, and the nodes that contain them.
class Retyper : public ExprMutator {
 public:
  void One(const ExprNode* n, const Type& type, const Array<Type>* type_args) {
    Expr old = GetRef<Expr>(n);
    Expr made = ExprFunctor::VisitExpr(old);
    if (type_args && !type_args->empty()) {
      auto call = make_object<CallNode>(*made.as<CallNode>());
      call->type_args = *type_args;
      made = Call(call);
    }
    if (StatesTypesToOperator(n)) {
      auto call = make_object<CallNode>(*made.as<CallNode>());
      call->type_args = Array<Type>();
      made = Call(call);
    }
    if (made.same_as(old)) {
      if (!n->checked_type_.defined()) {
        n->checked_type_ = type;
      } else if (!n->checked_type_.same_as(type)) {
        made = Expr(runtime::TypeInfo::Get(n->type_index())->copy(n));
        made->checked_type_ = type;
      }
    } else {
      made->checked_type_ = type;
    }
    if (LacksReturnType(made.get())) made = WithReturnType(made, type, &checked_);
    memo_[old] = made;
  }
  /// The variable with its type written down.
  void Annotate(const VarNode* v, const Type& type) {
    auto n = make_object<VarNode>(*v);
    n->type_annotation = type;
    n->checked_type_ = type;
    memo_[GetRef<Expr>(v)] = Var(n);
  }
  Expr Get(const Expr& e) {
    auto it = memo_.find(e);
    return it == memo_.end() ? e : it->second;
  }
  /// Parts that were taken as they are stay so.
  Expr VisitExpr(const Expr& e) override { return Get(e); }

 private:
  PointerSet checked_;
};

}  // namespace

Expr WithReturnType(const Expr& fn, const Type& type, PointerSet* checked) {
  const auto* t = type.as<FuncTypeNode>();
  if (!t) return fn;
  CheckDimensions(t->ret_type, checked);
  auto n = make_object<FunctionNode>(*fn.as<FunctionNode>());
  n->ret_type = t->ret_type;
  n->checked_type_ = type;
  return Function(n);
}

namespace {
/// Whether something can have both types: they differ at most in extents that one of them leaves open. Functions differ
/// in what they take and give, which their parameters and bodies say. `agreed`: what was found before; types are parts
/// of one another, and each is looked at once.
bool MayBeBoth(const Type& a, const Type& b, PointerMap<const Object*>* agreed, TypePool* pool) {
  std::vector<std::pair<Type, Type>> work{{a, b}};
  while (!work.empty()) {
    const auto [x, y] = work.back();
    work.pop_back();
    if (x.same_as(y)) continue;
    const auto *s = x.as<TensorTypeNode>(), *t = y.as<TensorTypeNode>();
    const auto *u = x.as<TupleTypeNode>(), *v = y.as<TupleTypeNode>();
    const auto *p = x.as<RelayRefTypeNode>(), *q = y.as<RelayRefTypeNode>();
    if (s && t) {
      if (s->dtype != t->dtype || s->shape.size() != t->shape.size()) return false;
      for (size_t i = 0; i < s->shape.size(); ++i) {
        const auto *m = s->shape[i].as<IntImmNode>(), *n = t->shape[i].as<IntImmNode>();
        if (m && n && m->value != n->value) return false;
      }
    } else if (u && v) {
      if (u->fields.size() != v->fields.size()) return false;
      const Object*& other = agreed->Insert(u);
      if (other == v) continue;
      other = v;  // or this ends with false
      for (size_t i = 0; i < u->fields.size(); ++i) work.push_back({u->fields[i], v->fields[i]});
    } else if (p && q) {
      const Object*& other = agreed->Insert(p);
      if (other != q) work.push_back({p->value, q->value});
      other = q;
    } else if (!(x.as<FuncTypeNode>() && y.as<FuncTypeNode>()) && !pool->Equal(x, y)) {
      return false;
    }
  }
  return true;
}
}  // namespace

std::string Inferencer::Contradiction() {
  PointerMap<const Object*> agreed;
  std::vector<Type> kept;  // whose addresses are in there
  for (uint32_t at : order_) {
    runtime::PollInterrupt();
    const ExprNode* n = info_.At(at).node;
    if (!n->checked_type_.defined() || n->IsInstance<GlobalVarNode>() || n->IsInstance<ConstructorNode>() ||
        n->IsInstance<OpNode>()) {
      continue;
    }
    const Type has = Existing(n), found = solver_.Resolve(info_.At(at).info.type);
    if (has.same_as(found)) continue;
    if (MayBeBoth(has, found, &agreed, pool_)) {
      kept.push_back(found);
      continue;
    }
    std::string text = Name(n);
    if (text.empty()) text = n->GetTypeKey();
    if (n->IsInstance<CallNode>()) text = "call of " + Name(static_cast<const CallNode*>(n)->op.get());
    return text + " has the type " + TypeText(has) + ", but its parts make it " + TypeText(found);
  }
  return "";
}

bool Inferencer::ParamsToAnnotate(PointerSet* out) {
  bool any = false;
  for (uint32_t at : order_) {
    const ExprNode* n = info_.At(at).node;
    if (!n->IsInstance<FunctionNode>()) continue;
    for (const Var& p : static_cast<const FunctionNode*>(n)->params) {
      if (p->type_annotation.defined()) continue;
      if (!IsOpen(p.get())) out->Add(p.get()), any = true;
    }
  }
  return any;
}

Expr Inferencer::Write(const Expr& root, bool may_copy) {
  bool copies = false;
  PointerSet params;
  if (may_copy && ParamsToAnnotate(&params)) {
    if (mode_ == Mode::kNew && trusted_) throw Again();  // they may occur in what was not looked at
    copies = true;
  }
  for (uint32_t at : order_) {
    runtime::PollInterrupt();
    const ExprNode* n = info_.At(at).node;
    Info& i = info_.At(at).info;
    if (n != root.get() && LacksReturnType(n)) copies = true;
    if (StatesTypesToOperator(n)) copies = true;
    if (Array<Type>* given = type_args_.Find(n)) {
      bool known = true;
      for (size_t k = 0; k < given->size(); ++k) {
        known = known && !solver_.FirstUnbound((*given)[k]);
        given->Set(k, solver_.Resolve((*given)[k]));
      }
      if (!known) *given = Array<Type>();  // of a parameter that nothing has the type of
      copies = copies || known;
    }
    if (!i.changed) continue;
    if (Type known = solver_.Resolve(i.type); !known.same_as(i.type)) i.type = pool_->Share(std::move(known));
    if (!n->checked_type_.defined()) continue;
    if (pool_->Equal(Existing(n), i.type))
      i.changed = false, i.type = Existing(n);
    else
      copies = true;
  }
  if (!copies || !may_copy) {
    for (uint32_t at : order_) {
      const ExprNode* n = info_.At(at).node;
      const Info& i = info_.At(at).info;
      if (i.changed && !n->checked_type_.defined()) n->checked_type_ = i.type;
    }
    return root;
  }
  Retyper retyper;
  for (uint32_t at : order_) {
    runtime::PollInterrupt();
    const ExprNode* n = info_.At(at).node;
    if (n->IsInstance<ConstructorNode>() || n->IsInstance<ConstantNode>()) {
      if (!n->checked_type_.defined() && n->IsInstance<ConstantNode>()) n->checked_type_ = info_.At(at).info.type;
      continue;
    }
    if (params.Has(n)) {
      retyper.Annotate(static_cast<const VarNode*>(n), info_.At(at).info.type);
    } else {
      retyper.One(n, info_.At(at).info.type, type_args_.Find(n));
    }
  }
  return retyper.Get(root);
}

}  // namespace baton::relay::inference

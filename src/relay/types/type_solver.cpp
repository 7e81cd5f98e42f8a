// SPDX-License-Identifier: Apache-2.0
#include <baton/arith/extent.h>
#include <baton/ir/structural.h>
#include <baton/support/stack.h>
#include <baton/tir/expr.h>
#include <relay/types/type_solver.h>

#include <algorithm>

namespace baton::relay {
namespace {

/// Maps the types within a type by `leaf`, which is called for types without children; unchanged types are kept. Types
/// share few children, so there is no memo unless the caller provides one: `known` returns a known result for a child,
/// or null; `made` receives every other type that has children.
template <class Leaf, class Known, class Made>
Type MapType(const Type& t, Leaf leaf, Known known, Made made) {
  if (const Type* k = known(t)) return *k;
  Type out = support::WithStack([&]() -> Type {
    auto array = [&](const auto& in) {
      auto out = in;
      for (size_t i = 0; i < in.size(); ++i) {
        Type x = MapType(in[i], leaf, known, made);
        if (!x.same_as(in[i])) out.Set(i, Downcast<std::decay_t<decltype(in[i])>>(x));
      }
      return out;
    };
    if (const auto* n = t.as<TupleTypeNode>()) {
      Array<Type> fields = array(n->fields);
      return fields.same_as(n->fields) ? t : TupleType(fields);
    }
    if (const auto* n = t.as<FuncTypeNode>()) {
      Array<Type> args = array(n->arg_types);
      Type ret = n->ret_type.defined() ? MapType(n->ret_type, leaf, known, made) : n->ret_type;
      if (args.same_as(n->arg_types) && ret.same_as(n->ret_type)) return t;
      return FuncType(n->type_params, args, ret, n->type_constraints);
    }
    if (const auto* n = t.as<RelayRefTypeNode>()) {
      Type value = MapType(n->value, leaf, known, made);
      return value.same_as(n->value) ? t : RelayRefType(value);
    }
    if (const auto* n = t.as<TypeCallNode>()) {
      Type func = MapType(n->func, leaf, known, made);
      Array<Type> args = array(n->args);
      return func.same_as(n->func) && args.same_as(n->args) ? t : TypeCall(func, args);
    }
    return leaf(t);
  });
  made(t, out);
  return out;
}
template <class Leaf>
Type MapType(const Type& t, Leaf leaf) {
  return MapType(t, leaf, [](const Type&) -> const Type* { return nullptr; }, [](const Type&, const Type&) {});
}

}  // namespace

Type TypeSolver::NewVariable() {
  IncompleteType variable{IncompleteTypeNode()};
  keep_.push_back(variable);
  return variable;
}

Type TypeSolver::Find(const Type& t) {
  Type cur = t;
  for (Type* last = nullptr; cur.defined() && cur->IsInstance<IncompleteTypeNode>();) {
    Type* to = bound_.Find(cur.get());
    if (!to) break;
    cur = *to;
    if (last) *last = cur;  // chains of type variables that are asked for get shorter
    last = to;
  }
  return cur;
}

const Object* TypeSolver::FirstUnbound(const Type& root) {
  if (!root.defined() || root->IsInstance<TensorTypeNode>() || Closed(root)) return nullptr;
  const Type top = Find(root);
  if (top->IsInstance<IncompleteTypeNode>()) return top.get();
  if (!HasTypeChildren(top.get()) || Closed(top)) return nullptr;
  std::vector<Type> stack{top}, found;
  PointerSet seen;
  while (!stack.empty()) {
    pool_->CountStep();
    const Type t = Find(stack.back());
    stack.pop_back();
    if (!t.defined()) continue;
    if (t->IsInstance<IncompleteTypeNode>()) return t.get();
    if (!HasTypeChildren(t.get()) || Closed(t) || !seen.Add(t.get())) continue;
    found.push_back(t);
    ForEachTypeChild(t.get(), [&](const Type& p) { stack.push_back(p); });
  }
  // A type without type variables stays without them: types of nested functions are looked through once, not once a
  // level.
  for (Type& t : found) {
    closed_.Add(t.get());
    keep_.push_back(std::move(t));
  }
  return nullptr;
}

bool TypeSolver::Bind(const Type& variable, const Type& to) {
  // A type that contains itself has no end. One without unbound type variables does not contain this one.
  if (HasTypeChildren(to.get()) && FirstUnbound(to)) {
    std::vector<Type> stack{to};
    PointerSet seen;
    while (!stack.empty()) {
      pool_->CountStep();
      const Type t = Find(stack.back());
      stack.pop_back();
      if (t.same_as(variable)) return false;
      if (!t.defined() || !HasTypeChildren(t.get()) || Closed(t) || !seen.Add(t.get())) continue;
      ForEachTypeChild(t.get(), [&](const Type& p) { stack.push_back(p); });
    }
  }
  keep_.push_back(variable);
  bound_[variable.get()] = to;
  bound_now_.push_back(variable.get());
  return true;
}

bool TypeSolver::SameDim(const PrimExpr& a, const PrimExpr& b) {
  if (a.same_as(b)) return true;
  const auto *x = a.as<IntImmNode>(), *y = b.as<IntImmNode>();
  if (x && y) return x->value == y->value;
  if (a.as<tir::AnyNode>() || b.as<tir::AnyNode>()) return true;
  auto plain = [](const PrimExpr& e) { return e.as<IntImmNode>() || e.as<tir::VarNode>(); };
  if (!assumed_ && plain(a) && plain(b)) return StructuralEqual(a, b);
  // Arithmetic fits unless it never does: n + n and 2 * n are the same extent, n and n + 1 are not.
  const arith::Fact same = arith::ExtentsEqual(a, b);
  if (same == arith::Fact::kOpen && assumed_) assumed_->emplace_back(a, b);
  return same != arith::Fact::kNo;
}

bool TypeSolver::UnifyAssuming(const Type& a, const Type& b, Assumed* assumed) {
  assumed_ = assumed;
  const bool same = Unify(a, b);
  assumed_ = nullptr;
  return same;
}

bool TypeSolver::Unify(const Type& x, const Type& y) {
  std::vector<const Object*> noted;
  if (UnifyChildren(x, y, &noted)) return true;
  for (const Object* t : noted) agreed_.Erase(t);
  return false;
}

bool TypeSolver::UnifyChildren(const Type& x, const Type& y, std::vector<const Object*>* noted) {
  std::vector<std::pair<Type, Type>> stack{{x, y}};
  // Two types without unbound type variables bind nothing: that they agree is found once, not once for each
  // type that they are parts of.
  if (const Type a = Find(x), b = Find(y);
      a.defined() && b.defined() && !a.same_as(b) && HasTypeChildren(a.get()) && HasTypeChildren(b.get())) {
    FirstUnbound(a), FirstUnbound(b);
  }
  while (!stack.empty()) {
    pool_->CountStep();
    Type a = Find(stack.back().first), b = Find(stack.back().second);
    stack.pop_back();
    if (a.same_as(b)) continue;
    if (!a.defined() || !b.defined()) return false;
    if (HasTypeChildren(a.get()) && HasTypeChildren(b.get()) && Closed(a) && Closed(b)) {
      if (pool_->Plain(a) && pool_->Plain(b) && pool_->Equal(a, b)) continue;
      const auto known = [&](const Type& p, const Type& q) {
        const Object*& with = agreed_.Insert(p.get());
        if (with == q.get()) return true;
        with = q.get();
        noted->push_back(p.get());
        return false;
      };
      if (known(a, b) || known(b, a)) continue;
    }
    if (a->IsInstance<IncompleteTypeNode>()) {
      if (!Bind(a, b)) return false;
      continue;
    }
    if (b->IsInstance<IncompleteTypeNode>()) {
      if (!Bind(b, a)) return false;
      continue;
    }
    if (a.type_index() != b.type_index()) return false;
    auto all = [&](const Array<Type>& p, const Array<Type>& q) {
      if (p.size() != q.size()) return false;
      for (size_t i = p.size(); i-- > 0;) {
        if (!p[i].same_as(q[i])) stack.push_back({p[i], q[i]});
      }
      return true;
    };
    if (const auto* p = a.as<TensorTypeNode>()) {
      const auto* q = b.as<TensorTypeNode>();
      if (!(p->dtype == q->dtype) || p->shape.size() != q->shape.size()) return false;
      for (size_t i = 0; i < p->shape.size(); ++i) {
        if (!SameDim(p->shape[i], q->shape[i])) return false;
      }
    } else if (const auto* p = a.as<TupleTypeNode>()) {
      if (!all(p->fields, b.as<TupleTypeNode>()->fields)) return false;
    } else if (const auto* p = a.as<FuncTypeNode>()) {
      const auto* q = b.as<FuncTypeNode>();
      Type other, fewer;
      const size_t np = p->type_params.size(), nq = q->type_params.size();
      if (np || nq) {
        // Type parameters also occur within bound type variables. Parameters that only one of both has are open:
        // `fn[A](A) -> A` serves where `fn(int32) -> int32` is wanted.
        std::vector<std::pair<const Object*, Type>> with_p, with_q;
        for (size_t i = nq; i < np; ++i) with_p.push_back({p->type_params[i].get(), NewVariable()});
        const Array<TypeVar> order = np == nq && np > 1 ? InOrderOf(p, q) : q->type_params;
        for (size_t i = 0; i < nq; ++i)
          with_q.push_back({order[i].get(), i < np ? Type(p->type_params[i]) : NewVariable()});
        other = Substitute(Resolve(FuncType(Array<TypeVar>(), q->arg_types, q->ret_type, q->type_constraints)), with_q);
        q = other.as<FuncTypeNode>();
        if (!with_p.empty()) {
          fewer =
              Substitute(Resolve(FuncType(Array<TypeVar>(), p->arg_types, p->ret_type, p->type_constraints)), with_p);
          p = fewer.as<FuncTypeNode>();
        }
      }
      stack.push_back({p->ret_type, q->ret_type});
      if (!all(p->arg_types, q->arg_types)) return false;
    } else if (const auto* p = a.as<RelayRefTypeNode>()) {
      stack.push_back({p->value, b.as<RelayRefTypeNode>()->value});
    } else if (const auto* p = a.as<TypeCallNode>()) {
      stack.push_back({p->func, b.as<TypeCallNode>()->func});
      if (!all(p->args, b.as<TypeCallNode>()->args)) return false;
    } else if (const auto* p = a.as<GlobalTypeVarNode>()) {
      if (!(p->name_hint == b.as<GlobalTypeVarNode>()->name_hint)) return false;
    } else if (!StructuralEqual(a, b)) {
      return false;
    }
  }
  return true;
}

Array<TypeVar> TypeSolver::InOrderOf(const FuncTypeNode* p, const FuncTypeNode* q) {
  std::vector<const Object*> partner(p->type_params.size(), nullptr);
  PointerSet taken, seen;
  auto place = [](const FuncTypeNode* f, const Object* v) {
    for (size_t i = 0; i < f->type_params.size(); ++i) {
      if (f->type_params[i].get() == v) return i;
    }
    return f->type_params.size();
  };
  std::vector<std::pair<Type, Type>> stack;
  auto push = [&](const auto& x, const auto& y) {
    for (size_t i = std::min(x.size(), y.size()); i-- > 0;) stack.push_back({x[i], y[i]});
  };
  stack.push_back({p->ret_type, q->ret_type});
  push(p->arg_types, q->arg_types);
  while (!stack.empty()) {
    pool_->CountStep();
    const Type a = Find(stack.back().first), b = Find(stack.back().second);
    stack.pop_back();
    if (!a.defined() || !b.defined() || a.type_index() != b.type_index()) continue;
    if (a->IsInstance<TypeVarNode>()) {
      const size_t i = place(p, a.get());
      if (i == partner.size() || place(q, b.get()) == partner.size() || partner[i] == b.get()) continue;
      if (partner[i] || !taken.Add(b.get())) return q->type_params;  // not one to one
      partner[i] = b.get();
    } else if (HasTypeChildren(a.get()) && seen.Add(a.get())) {
      std::vector<Type> x, y;
      ForEachTypeChild(a.get(), [&](const Type& t) { x.push_back(t); });
      ForEachTypeChild(b.get(), [&](const Type& t) { y.push_back(t); });
      push(x, y);
    }
  }
  // Parameters that occur nowhere correspond in the order in which they are left.
  Array<TypeVar> out;
  size_t rest = 0;
  for (const Object* v : partner) {
    while (!v) {
      const Object* next = q->type_params[rest++].get();
      if (taken.Add(next)) v = next;
    }
    out.push_back(GetRef<TypeVar>(v));
  }
  return out;
}

Type TypeSolver::Resolve(const Type& t) {
  if (!t.defined() || t->IsInstance<TensorTypeNode>() || pool_->Plain(t)) return t;
  if (const Type* known = resolved_.Find(t.get())) return *known;
  // Each part without unbound type variables is mapped once, not once for each type that it is a part of.
  const bool whole = HasTypeChildren(t.get()) && !FirstUnbound(t);
  return MapType(
      t,
      [this](const Type& leaf) -> Type {
        if (!leaf->IsInstance<IncompleteTypeNode>()) return leaf;
        Type to = Find(leaf);
        // Unbound, or bound to something that may have type variables.
        return to->IsInstance<IncompleteTypeNode>() ? to : Resolve(to);
      },
      [this](const Type& child) -> const Type* {
        pool_->CountStep();
        const Type* known = resolved_.Find(child.get());
        return known || !pool_->Plain(child) ? known : &child;
      },
      [&](const Type& child, const Type& out) {
        if (!whole || !HasTypeChildren(child.get())) return;
        keep_.push_back(child);
        resolved_[child.get()] = out;
      });
}

Type TypeSolver::Substitute(const Type& t, const std::vector<std::pair<const Object*, Type>>& with) {
  Type inner;  // the last function type with own parameters that are in `with`
  return MapType(
      t,
      [&](const Type& leaf) -> Type {
        if (leaf->IsInstance<TypeVarNode>()) {
          for (const auto& [var, to] : with) {
            if (var == leaf.get()) return to;
          }
        }
        return leaf;
      },
      [&](const Type& child) -> const Type* {
        const auto* f = child.as<FuncTypeNode>();
        if (!f || f->type_params.empty() || child.same_as(t)) return nullptr;  // own parameters of `t` are replaced
        std::vector<std::pair<const Object*, Type>> left;
        for (const auto& pair : with) {
          const auto own = [&](const TypeVar& v) { return v.get() == pair.first; };
          if (std::none_of(f->type_params.begin(), f->type_params.end(), own)) left.push_back(pair);
        }
        if (left.size() == with.size()) return nullptr;
        inner = left.empty() ? child : support::WithStack([&] { return Substitute(child, left); });
        return &inner;
      },
      [](const Type&, const Type&) {});
}

Type TypeSolver::Join(const Type& x, const Type& y) {
  return support::WithStack([&]() -> Type {
    pool_->CountStep();
    Type a = Find(x), b = Find(y);
    if (a.same_as(b) || (pool_->Plain(a) && pool_->Plain(b) && pool_->Equal(a, b))) return a;
    if (const auto* p = a.as<TensorTypeNode>()) {
      const auto* q = b.as<TensorTypeNode>();
      if (!q || p->shape.size() != q->shape.size()) return a;
      Array<PrimExpr> shape = p->shape;
      for (size_t i = 0; i < shape.size(); ++i) {
        if (!p->shape[i].as<tir::AnyNode>() && q->shape[i].as<tir::AnyNode>()) shape.Set(i, q->shape[i]);
      }
      return shape.same_as(p->shape) ? a : TensorType(shape, p->dtype);
    }
    if (const auto* p = a.as<TupleTypeNode>()) {
      const auto* q = b.as<TupleTypeNode>();
      if (!q || p->fields.size() != q->fields.size()) return a;
      Array<Type> fields = p->fields;
      for (size_t i = 0; i < fields.size(); ++i) {
        Type f = Join(p->fields[i], q->fields[i]);
        if (!f.same_as(p->fields[i])) fields.Set(i, f);
      }
      return fields.same_as(p->fields) ? a : TupleType(fields);
    }
    const auto *f = a.as<FuncTypeNode>(), *g = b.as<FuncTypeNode>();
    return f && g && g->type_params.size() < f->type_params.size() ? b : a;
  });
}

}  // namespace baton::relay

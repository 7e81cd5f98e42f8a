// SPDX-License-Identifier: Apache-2.0
#include <baton/ir/expr.h>
#include <baton/ir/structural.h>
#include <baton/runtime/interrupt.h>
#include <baton/runtime/registry.h>
#include <baton/support/hash.h>
#include <baton/tir/expr.h>
#include <relay/types/type_pool.h>

namespace baton::relay {
namespace {

using support::HashCombine;

uint64_t Word(DataType t) {
  return static_cast<uint64_t>(t.code()) << 32 | static_cast<uint64_t>(t.bits()) << 16 |
         static_cast<uint16_t>(t.lanes());
}
uint64_t Address(const Object* o) { return reinterpret_cast<uintptr_t>(o); }
bool Monomorphic(const FuncTypeNode* f) { return f->type_params.empty() && f->type_constraints.empty(); }

bool SameDim(const PrimExpr& a, const PrimExpr& b) {
  if (a.same_as(b)) return true;
  const auto *x = a.as<IntImmNode>(), *y = b.as<IntImmNode>();
  return x && y && x->value == y->value && x->dtype == y->dtype;
}
template <class T>
bool SameChildren(const Array<T>& a, const Array<T>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!a[i].same_as(b[i])) return false;
  }
  return true;
}

}  // namespace

InferenceWork& InferenceWork::OfThread() {
  static thread_local InferenceWork work;
  return work;
}

TypePool::~TypePool() { InferenceWork::OfThread().types += steps_; }

BATON_REGISTER_GLOBAL("relay.analysis.type_work").set_body_typed([] { return InferenceWork::OfThread().types; });

bool TypePool::Hash(const Type& t, uint64_t* hash) {
  // Addresses go into it, so it lasts as long as the pool: the order of slots decides nothing.
  if (const auto* tensor = t.as<TensorTypeNode>()) {
    uint64_t h = HashCombine(1, Word(tensor->dtype));
    for (const PrimExpr& d : tensor->shape) {
      const auto* n = d.as<IntImmNode>();
      h = HashCombine(h, n ? static_cast<uint64_t>(n->value) : Address(d.get()));
    }
    *hash = h;
  } else if (const auto* tuple = t.as<TupleTypeNode>()) {
    uint64_t h = 2;
    for (const Type& f : tuple->fields) h = HashCombine(h, Address(f.get()));
    *hash = h;
  } else if (const auto* f = t.as<FuncTypeNode>(); f && Monomorphic(f)) {
    uint64_t h = HashCombine(3, Address(f->ret_type.get()));
    for (const Type& a : f->arg_types) h = HashCombine(h, Address(a.get()));
    *hash = h;
  } else {
    return false;
  }
  return true;
}

/// Whether two types of one hash are the same.
bool TypePool::Same(const Type& a, const Type& b) {
  if (a.same_as(b)) return true;
  if (a.type_index() != b.type_index()) return false;
  if (const auto* x = a.as<TensorTypeNode>()) {
    const auto* y = b.as<TensorTypeNode>();
    if (!(x->dtype == y->dtype) || x->shape.size() != y->shape.size()) return false;
    for (size_t i = 0; i < x->shape.size(); ++i) {
      if (!SameDim(x->shape[i], y->shape[i])) return false;
    }
    return true;
  }
  if (const auto* x = a.as<TupleTypeNode>()) return SameChildren(x->fields, b.as<TupleTypeNode>()->fields);
  const auto *x = a.as<FuncTypeNode>(), *y = b.as<FuncTypeNode>();
  return x->ret_type.same_as(y->ret_type) && SameChildren(x->arg_types, y->arg_types);
}

template <class Match>
const Type& TypePool::Table::Find(uint64_t hash, const Type& t, Match match) {
  if (size * 2 >= slots.size()) Grow();
  const size_t mask = slots.size() - 1;
  size_t i = hash & mask;
  for (; slots[i].type.defined(); i = (i + 1) & mask) {
    if (slots[i].hash == hash && match(slots[i].type)) return slots[i].type;
  }
  slots[i] = {hash, t};
  ++size;
  return slots[i].type;
}

void TypePool::Table::Grow() {
  std::vector<Slot> old(slots.empty() ? 16 : slots.size() * 2);
  old.swap(slots);
  const size_t mask = slots.size() - 1;
  for (Slot& s : old) {
    if (!s.type.defined()) continue;
    size_t i = s.hash & mask;
    while (slots[i].type.defined()) i = (i + 1) & mask;
    slots[i] = std::move(s);
  }
}

const Type& TypePool::Find(const Type& t) {
  uint64_t hash = 0;
  if (!t.defined() || !Hash(t, &hash)) return t;
  return shared_.Find(hash, t, [&](const Type& other) { return Same(other, t); });
}

// ---- Equal types of any depth

Type TypePool::One(const Type& t) {
  if (!t.defined() || t->IsInstance<TypeVarNode>()) return t;
  if (HasTypeChildren(t.get())) {
    if (const Known* k = known_.Find(t.get())) return k->one;
    uint64_t hash = t.type_index();
    ForEachTypeChild(t.get(), [&](const Type& p) { hash = HashCombine(hash, Address(One(p).get())); });
    const auto* f = t.as<FuncTypeNode>();
    if (f && !Monomorphic(f)) {
      for (const TypeVar& v : f->type_params) hash = HashCombine(hash, Address(v.get()));
    }
    return ones_.Find(hash, t, [&](const Type& other) {
      if (other.type_index() != t.type_index()) return false;
      if (const auto* g = other.as<FuncTypeNode>()) {
        if (g->arg_types.size() != f->arg_types.size() || !SameChildren(g->type_params, f->type_params) ||
            !SameChildren(g->type_constraints, f->type_constraints)) {
          return false;
        }
      }
      std::vector<const Object*> children;
      ForEachTypeChild(t.get(), [&](const Type& p) { children.push_back(One(p).get()); });
      size_t i = 0;
      bool same = true;
      ForEachTypeChild(other.get(), [&](const Type& p) {
        same = same && i < children.size() && children[i] == One(p).get();
        ++i;
      });
      return same && i == children.size();
    });
  }
  const auto* tensor = t.as<TensorTypeNode>();
  bool literal = tensor != nullptr;
  for (size_t i = 0; literal && i < tensor->shape.size(); ++i) literal = tensor->shape[i].as<IntImmNode>() != nullptr;
  if (literal) return Share(t);
  if (!tensor) return ones_.Find(StructuralHash(t), t, [&](const Type& other) { return StructuralEqual(other, t); });
  uint64_t hash = Word(tensor->dtype);
  for (const PrimExpr& d : tensor->shape) {
    // A variable equals itself alone, and many have the same name.
    hash = HashCombine(hash, d->IsInstance<tir::VarNode>() ? Address(d.get()) : StructuralHash(d));
  }
  return ones_.Find(hash, t, [&](const Type& other) { return StructuralEqual(other, t); });
}

const TypePool::Known& TypePool::Look(const Type& root) {
  if (const Known* k = known_.Find(root.get())) return *k;
  std::vector<Type> stack{root};
  while (!stack.empty()) {
    runtime::PollInterrupt();
    ++steps_;
    const Type t = stack.back();
    const size_t own = stack.size();
    Known made{t, {}, false};
    bool variable = false, has = known_.Has(t.get());
    if (!has) {
      const auto* f = t.as<FuncTypeNode>();
      made.binds = f && !Monomorphic(f);
      ForEachTypeChild(t.get(), [&](const Type& p) {
        if (!p.defined()) return;
        if (p->IsInstance<IncompleteTypeNode>()) variable = true;
        if (!HasTypeChildren(p.get())) return;
        if (const Known* k = known_.Find(p.get())) {
          variable = variable || !k->one.defined();
          made.binds = made.binds || k->binds;
        } else {
          stack.push_back(p);
        }
      });
      if (stack.size() != own) continue;
      if (!variable) made.one = One(t);
      known_[t.get()] = made;
    }
    stack.pop_back();
  }
  return *known_.Find(root.get());
}

bool TypePool::Equal(const Type& a, const Type& b) {
  if (a.same_as(b)) return true;
  if (!a.defined() || !b.defined() || a.type_index() != b.type_index()) return false;
  if (!HasTypeChildren(a.get())) return StructuralEqual(a, b);
  const Known x = Look(a), y = Look(b);
  if (x.one.defined() && x.one.same_as(y.one)) return true;
  return ((x.binds && y.binds) || !x.one.defined() || !y.one.defined()) && StructuralEqual(a, b);
}

}  // namespace baton::relay

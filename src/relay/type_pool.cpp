// SPDX-License-Identifier: Apache-2.0
#include <baton/ir/expr.h>
#include <baton/support/hash.h>
#include <relay/type_pool.h>

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
bool SameParts(const Array<Type>& a, const Array<Type>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!a[i].same_as(b[i])) return false;
  }
  return true;
}

}  // namespace

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

/// Of two of one hash.
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
  if (const auto* x = a.as<TupleTypeNode>()) return SameParts(x->fields, b.as<TupleTypeNode>()->fields);
  const auto *x = a.as<FuncTypeNode>(), *y = b.as<FuncTypeNode>();
  return x->ret_type.same_as(y->ret_type) && SameParts(x->arg_types, y->arg_types);
}

void TypePool::Grow() {
  std::vector<Slot> old(slots_.empty() ? 16 : slots_.size() * 2);
  old.swap(slots_);
  const size_t mask = slots_.size() - 1;
  for (Slot& s : old) {
    if (!s.type.defined()) continue;
    size_t i = s.hash & mask;
    while (slots_[i].type.defined()) i = (i + 1) & mask;
    slots_[i] = std::move(s);
  }
}

const Type& TypePool::Find(const Type& t) {
  uint64_t hash = 0;
  if (!t.defined() || !Hash(t, &hash)) return t;
  if (size_ * 2 >= slots_.size()) Grow();
  const size_t mask = slots_.size() - 1;
  size_t i = hash & mask;
  for (; slots_[i].type.defined(); i = (i + 1) & mask) {
    if (slots_[i].hash == hash && Same(slots_[i].type, t)) return slots_[i].type;
  }
  slots_[i] = {hash, t};
  ++size_;
  return slots_[i].type;
}

}  // namespace baton::relay

// SPDX-License-Identifier: Apache-2.0
// Traversal of types: TypeFunctor, TypeVisitor, TypeMutator, as those of expressions.
#pragma once

#include <baton/relay/expr.h>
#include <baton/support/stack.h>

#include <utility>
#include <vector>

namespace baton::relay {

/// Kinds of types, in the order of the dispatch table.
#define BATON_RELAY_TYPE_KINDS(X) \
  X(TensorTypeNode)               \
  X(TypeVarNode)                  \
  X(GlobalTypeVarNode)            \
  X(FuncTypeNode) X(TupleTypeNode) X(IncompleteTypeNode) X(RelayRefTypeNode) X(TypeCallNode) X(TypeDataNode)

template <class FType>
class TypeFunctor;

/// Dispatch on the kind of type by a separate table, indexed by runtime type. Survives types of any depth.
template <class R, class... Args>
class TypeFunctor<R(const Type& n, Args...)> {
 public:
  using result_type = R;
  virtual ~TypeFunctor() = default;
  R operator()(const Type& n, Args... args) { return VisitType(n, std::forward<Args>(args)...); }
  virtual R VisitType(const Type& n, Args... args) {
    if (!n.defined()) throw CompileError("a null type cannot be visited");
    return support::WithStack([&]() -> R { return Table()(n, this, std::forward<Args>(args)...); });
  }
#define BATON_DECLARE(N) \
  virtual R VisitType_(const N* op, Args... args) { return VisitTypeDefault_(op, std::forward<Args>(args)...); }
  BATON_RELAY_TYPE_KINDS(BATON_DECLARE)
#undef BATON_DECLARE
  virtual R VisitTypeDefault_(const Object* op, Args...) {
    throw InternalError("no handler for a type of kind `" + op->GetTypeKey() + "`");
  }

 private:
  using Self = TypeFunctor<R(const Type& n, Args...)>;
  struct VTable {
    using Fn = R (*)(const Object* n, Self* self, Args... args);
    std::vector<Fn> fns;
    VTable() {
#define BATON_ENTRY(N)                                                              \
  Set(N::RuntimeTypeIndex(), [](const Object* n, Self* self, Args... args) -> R {   \
    return self->VisitType_(static_cast<const N*>(n), std::forward<Args>(args)...); \
  });
      BATON_RELAY_TYPE_KINDS(BATON_ENTRY)
#undef BATON_ENTRY
    }
    void Set(uint32_t i, Fn f) {
      if (fns.size() <= i) fns.resize(i + 1);
      fns[i] = f;
    }
    R operator()(const ObjectRef& n, Self* self, Args... args) const {
      uint32_t i = n.get()->type_index();
      if (i < fns.size() && fns[i]) return fns[i](n.get(), self, std::forward<Args>(args)...);
      return self->VisitTypeDefault_(n.get(), std::forward<Args>(args)...);
    }
  };
  static const VTable& Table() {
    static const VTable table;
    return table;
  }
};

/// Read-only traversal: the defaults visit every child that is a type.
class BATON_DLL TypeVisitor : public TypeFunctor<void(const Type&)> {
 public:
  void VisitType_(const TensorTypeNode*) override {}
  void VisitType_(const TypeVarNode*) override {}
  void VisitType_(const GlobalTypeVarNode*) override {}
  void VisitType_(const IncompleteTypeNode*) override {}
  void VisitType_(const FuncTypeNode* op) override;
  void VisitType_(const TupleTypeNode* op) override;
  void VisitType_(const RelayRefTypeNode* op) override;
  void VisitType_(const TypeCallNode* op) override;
  void VisitType_(const TypeDataNode* op) override;
};

/// Rewriting traversal: a type without changed children is returned unchanged.
class BATON_DLL TypeMutator : public TypeFunctor<Type(const Type&)> {
 public:
  Type Mutate(const Type& type) { return VisitType(type); }
  Type VisitType_(const TensorTypeNode* op) override;
  Type VisitType_(const TypeVarNode* op) override;
  Type VisitType_(const GlobalTypeVarNode* op) override;
  Type VisitType_(const IncompleteTypeNode* op) override;
  Type VisitType_(const FuncTypeNode* op) override;
  Type VisitType_(const TupleTypeNode* op) override;
  Type VisitType_(const RelayRefTypeNode* op) override;
  Type VisitType_(const TypeCallNode* op) override;
  Type VisitType_(const TypeDataNode* op) override;
};

}  // namespace baton::relay

// SPDX-License-Identifier: Apache-2.0
#include <baton/relay/type_functor.h>
#include <ir/node/children.h>

namespace baton::relay {
namespace {

template <class N>
void VisitChildren(TypeVisitor* v, const N* op) {
  ForEachChildOf<Family<Type, Constructor>>(op, [v]<class T>(const T& child) {
    if constexpr (std::is_same_v<T, Constructor>) {
      for (const Type& t : child->inputs) v->VisitType(t);
    } else if constexpr (!std::is_same_v<T, TypeConstraint>) {  // relations are not visited
      v->VisitType(child);
    }
  });
}

Constructor RebuildInputs(TypeMutator* m, const Constructor& c) {
  const auto visit = [m](const Type& t) { return m->VisitType(t); };
  Array<Type> inputs = detail::MapArray(c->inputs, visit);
  if (inputs.same_as(c->inputs)) return c;
  auto n = make_object<ConstructorNode>(*c.get());
  n->inputs = inputs;
  return Constructor(n);
}

template <class N>
Type RebuildChildren(TypeMutator* m, const N* op) {
  auto copy = MapChildren<Family<Type, Constructor>>(op, [m]<class T>(const T& child) {
    if constexpr (std::is_same_v<T, Constructor>) {
      return RebuildInputs(m, child);
    } else if constexpr (std::is_same_v<T, TypeConstraint> || std::is_same_v<T, GlobalTypeVar>) {
      return child;  // neither a relation nor the name under which a data type is defined
    } else {
      return m->VisitType(child);
    }
  });
  return copy.get() ? Type(copy) : GetRef<Type>(op);
}

}  // namespace

void TypeVisitor::VisitType_(const FuncTypeNode* op) { VisitChildren(this, op); }
void TypeVisitor::VisitType_(const TupleTypeNode* op) { VisitChildren(this, op); }
void TypeVisitor::VisitType_(const RelayRefTypeNode* op) { VisitChildren(this, op); }
void TypeVisitor::VisitType_(const TypeCallNode* op) { VisitChildren(this, op); }
void TypeVisitor::VisitType_(const TypeDataNode* op) { VisitChildren(this, op); }

#define BATON_REBUILD(N) \
  Type TypeMutator::VisitType_(const N* op) { return RebuildChildren(this, op); }
BATON_RELAY_TYPE_KINDS(BATON_REBUILD)
#undef BATON_REBUILD

}  // namespace baton::relay

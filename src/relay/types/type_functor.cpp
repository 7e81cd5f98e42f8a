// SPDX-License-Identifier: Apache-2.0
#include <baton/relay/type_functor.h>

namespace baton::relay {

void TypeVisitor::VisitType_(const FuncTypeNode* op) {
  for (const TypeVar& v : op->type_params) VisitType(v);
  for (const Type& t : op->arg_types) VisitType(t);
  VisitType(op->ret_type);
}
void TypeVisitor::VisitType_(const TupleTypeNode* op) {
  for (const Type& t : op->fields) VisitType(t);
}
void TypeVisitor::VisitType_(const RelayRefTypeNode* op) { VisitType(op->value); }
void TypeVisitor::VisitType_(const TypeCallNode* op) {
  VisitType(op->func);
  for (const Type& t : op->args) VisitType(t);
}
void TypeVisitor::VisitType_(const TypeDataNode* op) {
  VisitType(op->header);
  for (const TypeVar& v : op->type_vars) VisitType(v);
  for (const Constructor& c : op->constructors) {
    for (const Type& t : c->inputs) VisitType(t);
  }
}

namespace {
template <class T>
Array<T> MapTypes(TypeMutator* m, const Array<T>& in) {
  Array<T> out = in;
  for (size_t i = 0; i < in.size(); ++i) {
    Type t = m->VisitType(in[i]);
    if (!t.same_as(in[i])) out.Set(i, Downcast<T>(t));
  }
  return out;
}
}  // namespace

Type TypeMutator::VisitType_(const TensorTypeNode* op) { return GetRef<Type>(op); }
Type TypeMutator::VisitType_(const TypeVarNode* op) { return GetRef<Type>(op); }
Type TypeMutator::VisitType_(const GlobalTypeVarNode* op) { return GetRef<Type>(op); }
Type TypeMutator::VisitType_(const IncompleteTypeNode* op) { return GetRef<Type>(op); }

Type TypeMutator::VisitType_(const FuncTypeNode* op) {
  Array<TypeVar> params = MapTypes(this, op->type_params);
  Array<Type> args = MapTypes(this, op->arg_types);
  Type ret = VisitType(op->ret_type);
  if (params.same_as(op->type_params) && args.same_as(op->arg_types) && ret.same_as(op->ret_type))
    return GetRef<Type>(op);
  auto n = make_object<FuncTypeNode>(*op);
  n->type_params = params, n->arg_types = args, n->ret_type = ret;
  return FuncType(n);
}
Type TypeMutator::VisitType_(const TupleTypeNode* op) {
  Array<Type> fields = MapTypes(this, op->fields);
  return fields.same_as(op->fields) ? GetRef<Type>(op) : TupleType(fields);
}
Type TypeMutator::VisitType_(const RelayRefTypeNode* op) {
  Type value = VisitType(op->value);
  return value.same_as(op->value) ? GetRef<Type>(op) : RelayRefType(value);
}
Type TypeMutator::VisitType_(const TypeCallNode* op) {
  Type func = VisitType(op->func);
  Array<Type> args = MapTypes(this, op->args);
  return func.same_as(op->func) && args.same_as(op->args) ? GetRef<Type>(op) : TypeCall(func, args);
}
Type TypeMutator::VisitType_(const TypeDataNode* op) {
  Array<Constructor> constructors = op->constructors;
  for (size_t i = 0; i < op->constructors.size(); ++i) {
    Array<Type> inputs = MapTypes(this, op->constructors[i]->inputs);
    if (inputs.same_as(op->constructors[i]->inputs)) continue;
    auto n = make_object<ConstructorNode>(*op->constructors[i].get());
    n->inputs = inputs;
    constructors.Set(i, Constructor(n));
  }
  Array<TypeVar> vars = MapTypes(this, op->type_vars);
  if (constructors.same_as(op->constructors) && vars.same_as(op->type_vars)) return GetRef<Type>(op);
  return TypeData(TypeDataNode{{}, op->header, vars, constructors});
}

}  // namespace baton::relay

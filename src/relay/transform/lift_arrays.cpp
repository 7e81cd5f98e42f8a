// SPDX-License-Identifier: Apache-2.0
#include <relay/transform/lift_arrays.h>
#include <relay/transform/type_keeper.h>

namespace baton::relay::transform {

LiftedArrays LiftArrays(const Function& primitive) {
  struct Lifter : TypeKeeper {
    using TypeKeeper::VisitExpr_;
    Array<Var> params;
    Array<Constant> arrays;
    Expr VisitExpr_(const ConstantNode* c) final {
      if (c->is_scalar()) return GetRef<Expr>(c);
      Var v("c" + std::to_string(params.size()), GetRef<Constant>(c)->tensor_type());
      v->checked_type_ = v->type_annotation;
      params.push_back(v);
      arrays.push_back(GetRef<Constant>(c));
      return v;
    }
  } lifter;
  const Expr body = lifter.VisitExpr(primitive->body);
  if (lifter.params.empty()) return {primitive, {}};
  auto n = make_object<FunctionNode>(*primitive.get());
  n->body = body;
  for (const Var& v : lifter.params) n->params.push_back(v);
  if (const auto* type = n->checked_type_.as<FuncTypeNode>()) {
    Array<Type> types = type->arg_types;
    for (const Var& v : lifter.params) types.push_back(v->type_annotation);
    n->checked_type_ = FuncType(type->type_params, types, type->ret_type, type->type_constraints);
  }
  return {Function(ObjectPtr<Object>(n)), lifter.arrays};
}

}  // namespace baton::relay::transform

// SPDX-License-Identifier: Apache-2.0
#include <baton/relay/functor.h>
#include <baton/relay/transform.h>
#include <baton/relay/type_functor.h>
#include <baton/tir/expr.h>

#include <string>

namespace baton::relay::transform {
namespace {

/// A type with names for its unknown extents: `<name>_<axis>`, of fields of a tuple `<name>_<field>_<axis>`.
Type Named(const Type& type, const std::string& name) {
  if (const auto* t = type.as<TensorTypeNode>()) {
    Array<PrimExpr> shape = t->shape;
    for (size_t i = 0; i < shape.size(); ++i) {
      if (t->shape[static_cast<int64_t>(i)].as<tir::AnyNode>())
        shape.Set(static_cast<int64_t>(i), tir::SizeVar(String(name + "_" + std::to_string(i))));
    }
    return shape.same_as(t->shape) ? type : TensorType(shape, t->dtype);
  }
  if (const auto* t = type.as<TupleTypeNode>()) {
    Array<Type> fields = t->fields;
    for (size_t i = 0; i < fields.size(); ++i) {
      const Type before = t->fields[static_cast<int64_t>(i)];
      const Type after = Named(before, name + "_" + std::to_string(i));
      if (!after.same_as(before)) fields.Set(static_cast<int64_t>(i), after);
    }
    return fields.same_as(t->fields) ? type : TupleType(fields);
  }
  return type;
}

/// A result type that says less than the body is left to inference.
bool HasUnknown(const Type& type) {
  if (!type.defined()) return false;
  if (const auto* t = type.as<TensorTypeNode>()) {
    for (const PrimExpr& d : t->shape) {
      if (d.as<tir::AnyNode>()) return true;
    }
  }
  if (const auto* t = type.as<TupleTypeNode>()) {
    for (const Type& f : t->fields) {
      if (HasUnknown(f)) return true;
    }
  }
  return false;
}

}  // namespace

Pass NameDims() {
  return MakePass<NameDims>({
      .doc =
          "Gives each unknown extent (`?`) of the parameters of main a name, from the parameter and the dimension, so "
          "that types can say what follows from it.",
      .opt_level = 0,
      .run =
          [](IRModule mod, PassContext) {
            if (!mod->ContainGlobalVar("main") || !mod->Lookup("main").as<FunctionNode>()) return mod;
            const Function f = Downcast<Function>(mod->Lookup("main"));
            Array<Var> params;
            Map<Var, Expr> binds;
            for (const Var& p : f->params) {
              const Type type = p->type_annotation.defined() ? Named(p->type_annotation, p->name_hint().str()) : Type();
              if (!type.defined() || type.same_as(p->type_annotation)) {
                params.push_back(p);
                continue;
              }
              Var named(p->name_hint(), type);
              named->span = p->span;
              params.push_back(named);
              binds.Set(p, named);
            }
            if (binds.empty()) return mod;
            Function g(params, Bind(f->body, binds), HasUnknown(f->ret_type) ? Type() : f->ret_type, f->type_params,
                       f->attrs);
            g->span = f->span;
            IRModule out = mod.Copy();
            out.CopyOnWrite()->Update(mod->GetGlobalVar("main"), g);
            return out;
          },
  });
}

namespace {
const RegisterPass<NameDims> registered_name_dims;
}

}  // namespace baton::relay::transform

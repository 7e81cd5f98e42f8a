// SPDX-License-Identifier: Apache-2.0
#include <baton/arith/extent.h>
#include <baton/ir/structural.h>
#include <baton/support/stack.h>
#include <baton/tir/functor.h>
#include <relay/text/type_text.h>

namespace baton::relay {

bool IsExtentText(const PrimExpr& e) {
  if (const auto* v = e.as<tir::VarNode>()) return e.as<tir::SizeVarNode>() && v->dtype == DataType::Int(64);
  if (e.as<tir::AnyNode>() || e.as<IntImmNode>() || !tir::ExprDeepEqual(arith::CanonicalExtent(e), e)) return false;
  bool sizes = arith::IsSymbolicExtent(e);
  tir::PostOrderVisitExpr(e, [&](const PrimExpr& part) {
    const auto* v = part.as<tir::VarNode>();
    sizes = sizes && (!v || (part.as<tir::SizeVarNode>() && v->dtype == DataType::Int(64)));
  });
  return sizes;
}

void TypePrinter::List(const Array<Type>& types, const char* open, const char* close) {
  *out_ += open;
  bool first = true;
  for (const Type& t : types) {
    if (!first) *out_ += ", ";
    first = false;
    Print(t);
  }
  *out_ += close;
}

void TypePrinter::PrintDim(const PrimExpr& dim) {
  if (const auto* i = dim.as<IntImmNode>(); i && i->dtype == DataType::Int(64)) {
    *out_ += std::to_string(i->value);
  } else if (dim.as<tir::AnyNode>()) {
    *out_ += '?';
  } else if (const auto* v = dim.as<tir::SizeVarNode>(); v && v->dtype == DataType::Int(64)) {
    *out_ += DimName(v, v->name_hint.str());
  } else if (IsExtentText(dim)) {
    *out_ += arith::ExtentText(
        dim,
        [](void* self, const tir::VarNode* v) {
          return static_cast<TypePrinter*>(self)->DimName(v, v->name_hint.str());
        },
        this);
  } else {
    Other(dim);
  }
}

void TypePrinter::Print(const Type& type) {
  support::WithStack([&] {
    if (!type.defined()) {
      *out_ += '?';
    } else if (const auto* t = type.as<TensorTypeNode>()) {
      if (t->shape.empty()) {
        *out_ += DataType2String(t->dtype);
        return;
      }
      *out_ += "Tensor[(";
      bool first = true;
      for (const PrimExpr& d : t->shape) {
        if (!first) *out_ += ", ";
        first = false;
        PrintDim(d);
      }
      *out_ += "), ";
      *out_ += DataType2String(t->dtype);
      *out_ += ']';
    } else if (Apart(type)) {
      Other(type);
    } else if (const auto* t = type.as<TupleTypeNode>()) {
      List(t->fields, "(", t->fields.size() == 1 ? ",)" : ")");
    } else if (const auto* t = type.as<FuncTypeNode>(); t && t->type_constraints.empty()) {
      *out_ += "fn ";
      if (!t->type_params.empty()) {
        *out_ += '[';
        for (size_t i = 0; i < t->type_params.size(); ++i) *out_ += (i ? ", " : "") + NameOf(t->type_params[i].get());
        *out_ += ']';
      }
      List(t->arg_types, "(", ") -> ");
      Print(t->ret_type);
    } else if (const auto* t = type.as<RelayRefTypeNode>()) {
      *out_ += "ref(";
      Print(t->value);
      *out_ += ')';
    } else if (const auto* t = type.as<TypeCallNode>();
               t && (t->func.as<GlobalTypeVarNode>() || t->func.as<TypeVarNode>())) {
      const auto* g = t->func.as<GlobalTypeVarNode>();
      *out_ += g ? g->name_hint.str() : NameOf(t->func.as<TypeVarNode>());
      if (!t->args.empty() || !g) List(t->args, "[", "]");
    } else if (const auto* t = type.as<TypeVarNode>()) {
      *out_ += NameOf(t);
    } else if (type.as<IncompleteTypeNode>()) {
      *out_ += '_';
    } else {
      Other(type);
    }
  });
}

void TypePrinter::Other(const ObjectRef& obj) {
  if (const auto* i = obj.as<IntImmNode>()) {
    *out_ += std::to_string(i->value);
  } else if (const auto* v = obj.as<tir::VarNode>()) {
    *out_ += v->name_hint.view();
  } else if (const auto* g = obj.as<GlobalTypeVarNode>()) {
    *out_ += g->name_hint.view();
  } else {
    *out_ += obj->GetTypeKey();
  }
}

std::string TypeText(const Type& type) {
  std::string out;
  TypePrinter(&out).Print(type);
  return out;
}

}  // namespace baton::relay

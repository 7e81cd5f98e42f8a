// SPDX-License-Identifier: Apache-2.0
// Pattern objects: registration, short forms, text.
#include <baton/ir/structural.h>
#include <baton/relay/dataflow_pattern.h>
#include <baton/runtime/registry.h>
#include <baton/support/stack.h>

namespace baton::relay {
namespace {

const RegisterNodes<DFPatternNode, ExprPatternNode, VarPatternNode, ConstantPatternNode, CallPatternNode,
                    FunctionPatternNode, LetPatternNode, IfPatternNode, TuplePatternNode, TupleGetItemPatternNode,
                    AltPatternNode, WildcardPatternNode, TypePatternNode, ShapePatternNode, DataTypePatternNode,
                    AttrPatternNode, DominatorPatternNode, DFPatternCallbackNode>
    registered_pattern;

}  // namespace

DFPattern IsVar(const String& name) { return VarPattern(VarPatternNode{.name = name}); }
DFPattern IsConstant() { return ConstantPattern(ConstantPatternNode{}); }
DFPattern IsWildcard() { return WildcardPattern(WildcardPatternNode{}); }
DFPattern IsExpr(const Expr& expr) { return ExprPattern(ExprPatternNode{.expr = expr}); }
DFPattern IsOp(const String& op_name) { return IsExpr(Op::Get(op_name.view())); }
DFPattern IsTuple(const Array<DFPattern>& fields) { return TuplePattern(TuplePatternNode{.fields = fields}); }
DFPattern IsTupleGetItem(const DFPattern& tuple, int64_t index) {
  return TupleGetItemPattern(TupleGetItemPatternNode{.tuple = tuple, .index = index});
}

DFPattern DFPattern::operator()(const Array<DFPattern>& args) const {
  return CallPattern(CallPatternNode{.op = *this, .args = args});
}
DFPattern DFPattern::operator+(const DFPattern& other) const { return IsOp("add")({*this, other}); }
DFPattern DFPattern::operator-(const DFPattern& other) const { return IsOp("subtract")({*this, other}); }
DFPattern DFPattern::operator*(const DFPattern& other) const { return IsOp("multiply")({*this, other}); }
DFPattern DFPattern::operator/(const DFPattern& other) const { return IsOp("divide")({*this, other}); }
DFPattern DFPattern::operator||(const DFPattern& other) const {
  return AltPattern(AltPatternNode{.left = *this, .right = other});
}
DFPattern DFPattern::HasAttr(const Map<String, Any>& attrs) const {
  return AttrPattern(AttrPatternNode{.pattern = *this, .attrs = DictAttrs(attrs)});
}
DFPattern DFPattern::HasType(const Type& type) const {
  return TypePattern(TypePatternNode{.pattern = *this, .type = type});
}
DFPattern DFPattern::HasDtype(DataType dtype) const {
  return DataTypePattern(DataTypePatternNode{.pattern = *this, .dtype = dtype});
}
DFPattern DFPattern::HasDtype(const std::string& dtype) const { return HasDtype(String2DataType(dtype)); }
DFPattern DFPattern::HasShape(const Array<PrimExpr>& shape) const {
  return ShapePattern(ShapePatternNode{.pattern = *this, .shape = shape});
}

namespace {

/// The text of a pattern, as it would be written: `is_op("add")(*, is_constant())`.
class Writer {
 public:
  std::string out;
  void Write(const DFPattern& p) {
    support::WithStack([&] { WriteHere(p); });
  }

 private:
  void List(const Array<DFPattern>& list) {
    out += '(';
    if (!list.get()) out += "...";
    for (size_t i = 0; i < list.size(); ++i) {
      if (i) out += ", ";
      Write(list[i]);
    }
    out += ')';
  }
  void Wrapped(const DFPattern& p, const char* what, const std::string& arg) {
    Write(p);
    out += what;
    out += '(' + arg + ')';
  }
  void WriteHere(const DFPattern& p) {
    if (!p.defined()) {
      out += "null";
    } else if (const auto* e = p.as<ExprPatternNode>()) {
      const auto* op = e->expr.as<OpNode>();
      out += op ? "is_op(\"" + op->name.str() + "\")" : "is_expr(" + AsText(e->expr, false) + ")";
    } else if (const auto* v = p.as<VarPatternNode>()) {
      out += v->name.size() ? "is_var(\"" + v->name.str() + "\")" : "is_var()";
    } else if (p.as<ConstantPatternNode>()) {
      out += "is_constant()";
    } else if (p.as<WildcardPatternNode>()) {
      out += '*';
    } else if (const auto* c = p.as<CallPatternNode>()) {
      Write(c->op);
      List(c->args);
    } else if (const auto* f = p.as<FunctionPatternNode>()) {
      out += "fn ";
      List(f->params);
      out += " { ";
      Write(f->body);
      out += " }";
    } else if (const auto* l = p.as<LetPatternNode>()) {
      out += "is_let";
      List({l->var, l->value, l->body});
    } else if (const auto* i = p.as<IfPatternNode>()) {
      out += "is_if";
      List({i->cond, i->true_branch, i->false_branch});
    } else if (const auto* t = p.as<TuplePatternNode>()) {
      out += "is_tuple";
      List(t->fields);
    } else if (const auto* g = p.as<TupleGetItemPatternNode>()) {
      out += "is_tuple_get_item(";
      Write(g->tuple);
      out += g->index < 0 ? ")" : ", " + std::to_string(g->index) + ")";
    } else if (const auto* a = p.as<AltPatternNode>()) {
      out += '(';
      Write(a->left);
      out += " | ";
      Write(a->right);
      out += ')';
    } else if (const auto* t = p.as<TypePatternNode>()) {
      Wrapped(t->pattern, ".has_type", AsText(t->type, false));
    } else if (const auto* s = p.as<ShapePatternNode>()) {
      Wrapped(s->pattern, ".has_shape", AsText(s->shape, false));
    } else if (const auto* d = p.as<DataTypePatternNode>()) {
      Wrapped(d->pattern, ".has_dtype", "\"" + DataType2String(d->dtype) + "\"");
    } else if (const auto* a = p.as<AttrPatternNode>()) {
      Wrapped(a->pattern, ".has_attr", AsText(a->attrs->dict, false));
    } else if (const auto* d = p.as<DominatorPatternNode>()) {
      out += "dominates";
      List({d->parent, d->path, d->child});
    } else {
      out += p->GetTypeKey();
    }
  }
};

const struct Printer {
  Printer() {
    RegisterTextPrinter({[](const runtime::Object* obj) { return obj->IsInstance<DFPatternNode>(); },
                         [](const ObjectRef& obj, bool) {
                           Writer w;
                           w.Write(Downcast<DFPattern>(obj));
                           return w.out;
                         }});
  }
} printer;

}  // namespace

BATON_REGISTER_GLOBAL("relay.dataflow_pattern.match").set_body_typed([](DFPattern p, Expr e) {
  return MatchPattern(p, e);
});
BATON_REGISTER_GLOBAL("relay.dataflow_pattern.rewrite")
    .set_body_typed([](Array<DFPatternCallback> c, Expr e, IRModule m) { return RewritePatterns(c, e, m); });
BATON_REGISTER_GLOBAL("relay.dataflow_pattern.partition")
    .set_body_typed([](DFPattern p, Expr e, Map<String, Any> attrs, PackedFunc check) {
      return PartitionPattern(p, e, attrs, check);
    });

}  // namespace baton::relay

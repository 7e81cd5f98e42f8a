// SPDX-License-Identifier: Apache-2.0
#include <baton/ir/structural.h>
#include <baton/ir/target.h>
#include <baton/runtime/registry.h>
#include <baton/tir/functor.h>
#include <baton/tir/intrin.h>
#include <baton/tir/printer.h>
#include <fmt/format.h>

#include <cmath>
#include <unordered_map>
#include <unordered_set>

namespace baton::tir {
namespace {

/// Precedences, loosest first, for parentheses only where needed.
enum Prec { kTop = 0, kOrPrec, kAndPrec, kNotPrec, kCmp, kAddPrec, kMulPrec, kUnary, kAtom };

/// A hint with `_` for what names do not have.
std::string Word(std::string_view hint) {
  std::string word(hint.empty() ? "v" : hint);
  for (char& c : word) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '.') c = '_';
  }
  return word;
}

class Printer : public ExprFunctor<void(const PrimExpr&, int)>, public StmtFunctor<void(const Stmt&)> {
 public:
  std::string out;
  using ExprFunctor::VisitExpr;
  using ExprFunctor::VisitExpr_;
  using StmtFunctor::VisitStmt;
  using StmtFunctor::VisitStmt_;

  void Expr(const PrimExpr& e, int prec = kTop) {
    if (!e.defined()) {
      out += "null";
      return;
    }
    VisitExpr(e, prec);
  }
  std::string NameOf(const Object* key, std::string_view hint) {
    auto it = names_.find(key);
    if (it != names_.end()) return it->second;
    const std::string base = Word(hint);
    std::string name = base;
    for (int& n = counts_[base]; !used_.insert(name).second;) name = base + "_" + std::to_string(++n);
    names_.emplace(key, name);
    return name;
  }
  void Join(const Array<PrimExpr>& a) {
    for (size_t i = 0; i < a.size(); ++i) {
      if (i) out += ", ";
      Expr(a[i]);
    }
  }
  /// Its data variable, where that is of this buffer alone, is called after it.
  std::string NameOf(const Buffer& b) {
    std::string name = NameOf(b.get(), b->name);
    names_.emplace(b->data.get(), name + ".data");
    return name;
  }
  void BufferType(const Buffer& b) {
    out += "Buffer[(";
    Join(b->shape);
    out += "), " + DataType2String(b->dtype);
    std::string scope = b->scope();
    if (!scope.empty() && scope != "global") out += ", " + scope;
    out += "]";
  }
  void Function(const PrimFuncNode* f) {
    out += "def ";
    String name = f->GetAttr<String>(baton::attr::kGlobalSymbol, String(""));
    out += "@" + (name.empty() ? std::string("prim_func") : name.str()) + "(";
    for (size_t i = 0; i < f->params.size(); ++i) {
      Var p = f->params[i];
      if (i) out += ", ";
      if (f->buffer_map.count(p)) {
        Buffer b = f->buffer_map.at(p);
        out += NameOf(b) + ": ";
        names_[p.get()] = NameOf(b);
        BufferType(b);
      } else {
        out += NameOf(p.get(), p->name_hint) + ": " + DataType2String(p->dtype);
      }
    }
    out += ")";
    if (f->attrs.defined()) {
      std::string attrs;
      for (auto [k, v] : f->attrs->dict) {
        if (k == baton::attr::kGlobalSymbol) continue;
        attrs += (attrs.empty() ? "" : ", ") + k.str() + "=" + AttrText(v);
      }
      if (!attrs.empty()) out += " attrs(" + attrs + ")";
    }
    out += " {\n";
    indent_ = 1;
    if (f->body.defined()) Statement(f->body);
    out += "}\n";
  }
  void Statement(const Stmt& s) {
    if (!s.defined()) {
      Line("null");
      return;
    }
    VisitStmt(s);
  }
  /// The name of a te Tensor, IterVar, CommReducer and the like.
  void Other(const ObjectRef& n) {
    if (const auto* b = n.as<BufferNode>()) {
      out += NameOf(b, b->name) + ": ";
      BufferType(GetRef<Buffer>(b));
    } else if (const auto* v = n.as<IterVarNode>()) {
      out += NameOf(v->var.get(), v->var->name_hint);
      if (v->dom.defined()) {
        out += " in [";
        Expr(v->dom->min);
        out += ", ";
        Expr(FoldBinary(NodeKind::kAdd, v->dom->min, v->dom->extent));
        out += ")";
      }
    } else if (n.defined()) {
      out += "<" + n.get()->GetTypeKey() + ">";
    } else {
      out += "null";
    }
  }

 private:
  static std::string AttrText(const Any& v) {
    if (v.type_code() == kBatonInt || v.type_code() == kBatonBool) return std::to_string(v.As<int64_t>());
    if (v.type_code() == kBatonFloat) return fmt::format("{}", v.As<double>());
    if (v.Is<String>() && !v.is_null()) return '"' + v.As<String>().str() + '"';
    if (v.Is<Target>() && !v.is_null()) return '"' + v.As<Target>().str() + '"';
    if (v.Is<PrimExpr>() && !v.is_null()) return AsText(v.As<ObjectRef>());
    if (v.object()) return "<" + v.object()->GetTypeKey() + ">";
    return "null";
  }
  void Pad() { out.append(2 * static_cast<size_t>(indent_ < 40 ? indent_ : 40), ' '); }
  void Line(std::string_view s) {
    Pad();
    out += s;
    out += '\n';
  }
  void Block(const Stmt& s) {
    out += " {\n";
    ++indent_;
    Statement(s);
    --indent_;
    Line("}");
  }
  void Infix(const PrimExpr& a, const char* op, const PrimExpr& b, int prec, int outer) {
    bool paren = prec < outer;
    if (paren) out += '(';
    Expr(a, prec == kCmp ? prec + 1 : prec);
    out += op;
    Expr(b, prec + 1);
    if (paren) out += ')';
  }
  void CallLike(const char* name, const PrimExpr& a, const PrimExpr& b) {
    out += name;
    out += '(';
    Expr(a);
    out += ", ";
    Expr(b);
    out += ')';
  }
#define BATON_TIR_INFIX(Name, sym, prec) \
  void VisitExpr_(const Name##Node* op, int outer) final { Infix(op->a, sym, op->b, prec, outer); }
  BATON_TIR_INFIX(Add, " + ", kAddPrec)
  BATON_TIR_INFIX(Sub, " - ", kAddPrec)
  BATON_TIR_INFIX(Mul, "*", kMulPrec)
  BATON_TIR_INFIX(FloorDiv, "//", kMulPrec)
  BATON_TIR_INFIX(FloorMod, "%", kMulPrec)
  BATON_TIR_INFIX(EQ, " == ", kCmp)
  BATON_TIR_INFIX(NE, " != ", kCmp)
  BATON_TIR_INFIX(LT, " < ", kCmp)
  BATON_TIR_INFIX(LE, " <= ", kCmp)
  BATON_TIR_INFIX(GT, " > ", kCmp)
  BATON_TIR_INFIX(GE, " >= ", kCmp)
  BATON_TIR_INFIX(And, " and ", kAndPrec)
  BATON_TIR_INFIX(Or, " or ", kOrPrec)
  void VisitExpr_(const DivNode* op, int outer) final {
    if (op->dtype.is_floating())
      Infix(op->a, "/", op->b, kMulPrec, outer);
    else
      CallLike("truncdiv", op->a, op->b);
  }
  void VisitExpr_(const ModNode* op, int) final { CallLike("truncmod", op->a, op->b); }
  void VisitExpr_(const MinNode* op, int) final { CallLike("min", op->a, op->b); }
  void VisitExpr_(const MaxNode* op, int) final { CallLike("max", op->a, op->b); }
  void VisitExpr_(const NotNode* op, int) final {
    out += "not ";
    Expr(op->a, kAtom);
  }
  void VisitExpr_(const VarNode* op, int) final { out += NameOf(op, op->name_hint); }
  void VisitExpr_(const IntImmNode* op, int) final {
    if (op->dtype.is_bool()) {
      out += op->value ? "True" : "False";
    } else if (op->dtype == DataType::Int(64)) {
      out += std::to_string(op->value);
    } else {
      out += DataType2String(op->dtype) + "(" + std::to_string(op->value) + ")";
    }
  }
  void VisitExpr_(const FloatImmNode* op, int) final {
    double v = op->value;
    std::string s = std::isnan(v) ? "nan" : std::isinf(v) ? (v > 0 ? "inf" : "-inf") : "";
    if (op->dtype == DataType::Float(32)) {
      if (s.empty()) s = fmt::format("{}", static_cast<float>(v));
      out += s + "f";
    } else {
      if (s.empty()) s = fmt::format("{}", v);
      out += DataType2String(op->dtype) + "(" + s + ")";
    }
  }
  void VisitExpr_(const StringImmNode* op, int) final {
    out += '"';
    for (char c : op->value.view()) {
      if (c == '"' || c == '\\') out += '\\';
      if (c == '\n')
        out += "\\n";
      else
        out += c;
    }
    out += '"';
  }
  void VisitExpr_(const AnyNode*, int) final { out += "?"; }
  void VisitExpr_(const CastNode* op, int) final {
    out += DataType2String(op->dtype) + "(";
    Expr(op->value);
    out += ')';
  }
  void VisitExpr_(const SelectNode* op, int) final {
    out += "select(";
    Join({op->condition, op->true_value, op->false_value});
    out += ')';
  }
  void VisitExpr_(const BufferLoadNode* op, int) final {
    out += NameOf(op->buffer) + "[";
    Join(op->indices);
    out += ']';
  }
  void VisitExpr_(const RampNode* op, int) final {
    if (is_const_int(op->stride, 1)) {
      Expr(op->base, kMulPrec);
      out += ":" + std::to_string(op->lanes);
    } else {
      out += "ramp(";
      Expr(op->base);
      out += ", ";
      Expr(op->stride);
      out += ", " + std::to_string(op->lanes) + ")";
    }
  }
  void VisitExpr_(const BroadcastNode* op, int) final {
    out += "x" + std::to_string(op->lanes) + "(";
    Expr(op->value);
    out += ')';
  }
  void VisitExpr_(const ShuffleNode* op, int) final {
    out += "shuffle(";
    Join(op->vectors);
    out += ", [";
    for (size_t i = 0; i < op->indices.size(); ++i) out += (i ? ", " : "") + std::to_string(op->indices[i]);
    out += "])";
  }
  void VisitExpr_(const LetNode* op, int outer) final {
    if (outer > kTop) out += '(';
    out += "let ";
    std::string name = NameOf(op->var.get(), op->var->name_hint);
    out += name + " = ";
    Expr(op->value, kOrPrec);
    out += " in ";
    Expr(op->body);
    if (outer > kTop) out += ')';
  }
  void VisitExpr_(const CallNode* op, int) final {
    if (const auto* o = op->op.as<OpNode>()) {
      std::string_view n = o->name.view();
      out += n.substr(0, 4) == "tir." ? n.substr(4) : n;
      if (const IntrinDef* row = IntrinOf(o); row && row->shows_dtype) out += "<" + DataType2String(op->dtype) + ">";
    } else if (const auto* g = op->op.as<GlobalVarNode>()) {
      out += "@" + g->name_hint.str();
    } else {
      out += "<" + (op->op.defined() ? op->op.get()->GetTypeKey() : std::string("null")) + ">";
    }
    out += '(';
    Join(op->args);
    out += ')';
  }
  void VisitExpr_(const ReduceNode* op, int) final {
    out += "reduce(";
    const CommReducer& c = op->combiner;
    for (size_t i = 0; i < c->lhs.size(); ++i) {
      out += (i ? ", " : "") + NameOf(c->lhs[i].get(), c->lhs[i]->name_hint) + ", " +
             NameOf(c->rhs[i].get(), c->rhs[i]->name_hint);
    }
    out += " -> ";
    Join(c->result);
    out += "; init ";
    Join(c->identity_element);
    out += "; ";
    for (size_t i = 0; i < op->axis.size(); ++i) {
      if (i) out += ", ";
      Other(op->axis[i]);
    }
    out += "; ";
    Join(op->source);
    if (op->condition.defined() && !is_const_int(op->condition, 1)) {
      out += " if ";
      Expr(op->condition);
    }
    if (op->value_index) out += "; value " + std::to_string(op->value_index);
    out += ')';
  }
  void VisitExpr_(const ProducerLoadNode* op, int) final {
    std::string name = "tensor";
    try {
      ObjectRef o = runtime::GetField(op->producer.get(), "op").As<ObjectRef>();
      name = runtime::GetField(o.get(), "name").As<String>().str();
    } catch (const Error&) {  // not a te.Tensor: its address has no meaning to the reader
    }
    out += NameOf(op->producer.get(), name) + "(";
    Join(op->indices);
    out += ')';
  }

  void VisitStmt_(const BufferStoreNode* op) final {
    Pad();
    out += NameOf(op->buffer) + "[";
    Join(op->indices);
    out += "] = ";
    Expr(op->value);
    out += '\n';
  }
  void VisitStmt_(const AllocateNode* op) final {
    Pad();
    out += "allocate " + NameOf(op->buffer) + ": ";
    BufferType(op->buffer);
    out += '\n';
    Statement(op->body);
  }
  void VisitStmt_(const ForNode* op) final {
    static const char* kinds[] = {"", "parallel ", "vectorized ", "unrolled "};
    Pad();
    out += "for " + NameOf(op->loop_var.get(), op->loop_var->name_hint) + " in " +
           kinds[static_cast<int>(op->kind) & 3] + "[";
    Expr(op->min);
    out += ", ";
    Expr(FoldBinary(NodeKind::kAdd, op->min, op->extent));
    out += ")";
    for (auto [k, v] : op->annotations) out += " " + k.str() + "=" + AttrText(v);
    Block(op->body);
  }
  void VisitStmt_(const WhileNode* op) final {
    Pad();
    out += "while (";
    Expr(op->condition);
    out += ')';
    Block(op->body);
  }
  void VisitStmt_(const IfThenElseNode* op) final {
    Pad();
    out += "if (";
    Expr(op->condition);
    out += ") {\n";
    ++indent_;
    Statement(op->then_case);
    --indent_;
    if (op->else_case.defined()) {
      Pad();
      out += "} else";
      Block(op->else_case);
    } else {
      Line("}");
    }
  }
  void VisitStmt_(const SeqStmtNode* op) final {
    for (const Stmt& s : op->seq) Statement(s);
    if (op->seq.empty()) Line("pass");
  }
  void VisitStmt_(const EvaluateNode* op) final {
    Pad();
    Expr(op->value);
    out += '\n';
  }
  void VisitStmt_(const LetStmtNode* op) final {
    Pad();
    out += "let " + NameOf(op->var.get(), op->var->name_hint) + ": " + DataType2String(op->var->dtype) + " = ";
    Expr(op->value);
    out += '\n';
    Statement(op->body);
  }
  /// The object that an attribute is about.
  std::string About(const ObjectRef& node) {
    if (const auto* axis = node.as<IterVarNode>()) return NameOf(axis->var.get(), axis->var->name_hint);
    if (const auto* var = node.as<VarNode>()) return NameOf(var, var->name_hint);
    if (const auto* buffer = node.as<BufferNode>()) return NameOf(buffer, buffer->name);
    const auto* text = node.as<StringImmNode>();
    return text ? "\"" + text->value.str() + "\"" : node->GetTypeKey();
  }
  void VisitStmt_(const AttrStmtNode* op) final {
    Pad();
    out += "attr \"" + op->attr_key.str() + "\"";
    if (op->node.defined()) out += " of " + About(op->node);
    out += " = ";
    Expr(op->value);
    Block(op->body);
  }
  void VisitStmt_(const AssertStmtNode* op) final {
    Pad();
    out += "assert ";
    Expr(op->condition);
    out += ", ";
    Expr(op->message);
    out += '\n';
    if (op->body.defined()) Statement(op->body);
  }

  int indent_ = 0;
  std::unordered_map<const Object*, std::string> names_;
  std::unordered_set<std::string> used_;
  std::unordered_map<std::string, int> counts_;
};

}  // namespace

std::string AsText(const ObjectRef& node) {
  Printer p;
  if (const auto* f = node.as<PrimFuncNode>()) {
    p.Function(f);
  } else if (node.as<StmtNode>()) {
    p.Statement(Downcast<Stmt>(node));
  } else if (node.as<PrimExprNode>()) {
    p.Expr(Downcast<PrimExpr>(node));
  } else {
    p.Other(node);
  }
  return std::move(p.out);
}

[[maybe_unused]] const bool registered_printer = [] {
  RegisterTextPrinter(
      {[](const runtime::Object* o) { return o->IsInstance<tir::StmtNode>() || o->IsInstance<tir::PrimFuncNode>(); },
       [](const ObjectRef& node, bool) { return tir::AsText(node); }});
  return true;
}();
BATON_REGISTER_GLOBAL("tir.AsText").set_body_typed([](ObjectRef node) { return AsText(node); });

}  // namespace baton::tir

// SPDX-License-Identifier: Apache-2.0
#include <baton/ir/attrs.h>
#include <baton/ir/structural.h>
#include <baton/ir/text_stream.h>
#include <baton/relay/functor.h>
#include <baton/runtime/interrupt.h>
#include <baton/runtime/registry.h>
#include <relay/text/printer.h>

#include <algorithm>
#include <charconv>
#include <span>

namespace baton::relay {
namespace {

/// Free variables of the nodes, in order of first use.
std::vector<Var> FreeOf(const NodeList& order) {
  PointerSet bound;
  for (const ExprNode* n : order) {
    ForEachBoundVar(n, [&](const Var& v) { bound.Add(v.get()); });
  }
  std::vector<Var> out;
  for (const ExprNode* n : order) {
    if (n->IsInstance<VarNode>() && !bound.Has(n)) out.push_back(GetRef<Var>(static_cast<const VarNode*>(n)));
  }
  return out;
}

/// The call of a constructor without fields.
bool IsNullary(const ExprNode* n) {
  if (!n->IsInstance<CallNode>()) return false;
  const auto* c = static_cast<const CallNode*>(n);
  const auto* k = c->op.as<ConstructorNode>();
  return k && k->inputs.empty() && c->args.empty() && c->type_args.empty() && !c->attrs.defined();
}

}  // namespace

void Printer::Prepare(const Expr& root) {
  index_ = std::make_unique<ExprIndex>(root);
  next_line_ = 0;
  line_of_ = {};
  line_of_.Fill(index_->size(), -1);
  support::PageStack<uint32_t> lines;
  first_line_.assign(index_->num_scopes() + 2, 0);
  for (uint32_t i = 0; i < index_->size(); ++i) {
    if (index_->atom(i)) continue;
    // `Nil` is written where it is used, unless several uses share it.
    const ExprIndex::Placement& info = index_->placement(i);
    if (info.in_place || (info.uses <= 1 && index_->Operands(i).size() == 1 && IsNullary((*index_)[i]))) continue;
    lines.push_back(i);
    ++first_line_[info.scope + 2];
  }
  for (size_t b = 2; b < first_line_.size(); ++b) first_line_[b] += first_line_[b - 1];
  lines_.resize(lines.size());
  for (size_t at = 0; at < lines.size(); ++at)
    lines_[first_line_[index_->placement(lines[at]).scope + 1]++] = lines[at];
}

/// A child of a node. Most have their own line, so the node need not be read.
void Printer::Operand(uint32_t id) {
  const int32_t line = id == ExprIndex::kNone ? -1 : line_of_[id];
  if (line >= 0) {
    char text[16];
    char* const end = std::to_chars(text, text + sizeof(text), line).ptr;
    text_ += '%';
    text_.append(text, static_cast<size_t>(end - text));
  } else {
    Atom(id == ExprIndex::kNone ? nullptr : (*index_)[id]);
  }
}

void Printer::Atom(const ExprNode* n) {
  if (!n) {
    text_ += "(nullptr)";
  } else if (n->IsInstance<VarNode>()) {
    VarName(static_cast<const VarNode*>(n));
  } else if (n->IsInstance<ConstantNode>()) {
    if (!ScalarText(static_cast<const ConstantNode*>(n)->data, &text_)) Meta(GetRef<ObjectRef>(n));
    TypeComment(n);
  } else if (n->IsInstance<OpNode>()) {
    text_ += static_cast<const OpNode*>(n)->name.view();
  } else if (n->IsInstance<GlobalVarNode>()) {
    Sigil('@', static_cast<const GlobalVarNode*>(n)->name_hint.view());
  } else if (n->IsInstance<ConstructorNode>()) {
    // Uncalled. The name of one without fields stands for the call of it.
    const auto* c = static_cast<const ConstructorNode*>(n);
    if (c->inputs.empty())
      Meta(GetRef<ObjectRef>(n));
    else
      text_ += c->name_hint.view();
  } else if (n->IsInstance<TupleNode>() && static_cast<const TupleNode*>(n)->fields.empty()) {
    text_ += "()";
  } else if (IsNullary(n)) {
    text_ += static_cast<const CallNode*>(n)->op.as<ConstructorNode>()->name_hint.view();
  } else {
    Meta(GetRef<ObjectRef>(n));
  }
}

void Printer::Node(uint32_t id) {
  const ExprNode* n = index_->Visit(id);
  const std::span<const uint32_t> operands = index_->Operands(id);
  if (n->IsInstance<CallNode>()) {
    const auto* c = static_cast<const CallNode*>(n);
    if (const auto* k = c->op.as<ConstructorNode>()) {
      text_ += k->name_hint.view();
      if (IsNullary(n)) {
        TypeComment(n);
        Annotation(c);
        return;
      }
    } else {
      Operand(operands[0]);
    }
    if (!c->type_args.empty()) {
      text_ += '[';
      for (size_t i = 0; i < c->type_args.size(); ++i) {
        if (i) text_ += ", ";
        Print(c->type_args[i]);
      }
      text_ += ']';
    }
    text_ += '(';
    bool first = true;
    for (uint32_t a : operands.subspan(1)) {
      if (!first) text_ += ", ";
      first = false;
      Operand(a);
    }
    CallAttrs(c, first);
    text_ += ')';
    TypeComment(n);
    Annotation(c);
  } else if (n->IsInstance<TupleNode>()) {
    text_ += '(';
    bool first = true;
    for (uint32_t a : operands) {
      if (!first) text_ += ", ";
      first = false;
      Operand(a);
    }
    text_ += operands.size() == 1 ? ",)" : ")";
  } else if (n->IsInstance<TupleGetItemNode>()) {
    Operand(operands[0]);
    text_ += '.';
    text_ += std::to_string(static_cast<const TupleGetItemNode*>(n)->index);
  } else if (n->IsInstance<RefCreateNode>()) {
    text_ += "ref(";
    Operand(operands[0]);
    text_ += ')';
  } else if (n->IsInstance<RefReadNode>()) {
    text_ += "ref_read(";
    Operand(operands[0]);
    text_ += ')';
  } else if (n->IsInstance<RefWriteNode>()) {
    text_ += "ref_write(";
    Operand(operands[0]);
    text_ += ", ";
    Operand(operands[1]);
    text_ += ')';
  } else if (n->IsInstance<IfNode>()) {
    text_ += "if (";
    Operand(operands[0]);
    text_ += ") {\n";
    ++indent_;
    const int32_t b = index_->placement(id).own_scope;
    Push(kClose);
    Push(kBlock, operands[2], b + 1);
    Push(kElse);
    Push(kBlock, operands[1], b);
  } else if (n->IsInstance<FunctionNode>()) {
    text_ += "fn ";
    Signature(static_cast<const FunctionNode*>(n));
    ++indent_;
    Push(kClose);
    Push(kBlock, operands.back(), index_->placement(id).own_scope);
  } else if (n->IsInstance<LetNode>()) {
    text_ += "{\n";
    ++indent_;
    Push(kClose);
    Push(kLet, id);
  } else if (n->IsInstance<MatchNode>()) {
    text_ += static_cast<const MatchNode*>(n)->complete ? "match (" : "match? (";
    Operand(operands[0]);
    text_ += ") {\n";
    ++indent_;
    Push(kClose);
    Push(kClause, id);
  } else {
    Atom(n);
  }
}

/// Passes the printed text on, except for the last line, which the next output may still inspect.
void Printer::Pass() {
  const size_t line = text_.rfind('\n');
  if (line == std::string::npos || line == 0) return;
  if (sink_)
    sink_->write(std::string_view(text_).substr(0, line), sink_->context);
  else
    before_.append(text_.data(), line);
  text_.erase(0, line);
}
/// The text that was not passed to a sink.
std::string Printer::Rest() {
  if (before_.empty()) return std::move(text_);
  std::string out;
  out.reserve(before_.size() + text_.size());
  out.append(before_.begin(), before_.size());
  out += text_;
  return out;
}

void Printer::Loop() {
  while (!tasks_.empty()) {
    runtime::PollInterrupt();
    if (text_.size() > kEnd) Pass();
    Task t = tasks_.back();
    tasks_.pop_back();
    switch (t.kind) {
      case kText:
        text_ += t.text;
        break;
      case kNode:
        Node(t.node);
        break;
      case kRef: {
        if (t.node != ExprIndex::kNone && index_->placement(t.node).in_place && !index_->atom(t.node))
          Node(t.node);
        else
          Operand(t.node);
        break;
      }
      case kClose:
        --indent_;
        Indent();
        text_ += '}';
        break;
      case kElse:
        --indent_;
        Indent();
        text_ += "} else {\n";
        ++indent_;
        break;
      case kBlock: {
        const std::span nodes(lines_.data() + first_line_[t.block], lines_.data() + first_line_[t.block + 1]);
        if (t.at < nodes.size()) {
          const uint32_t n = nodes[t.at];
          Indent();
          line_of_[n] = next_line_++;
          Operand(n);
          text_ += " = ";
          ++t.at;
          tasks_.push_back(t);
          PushText(";\n");
          Push(kNode, n);
        } else if (t.node != ExprIndex::kNone && index_->kind(t.node) == ExprIndex::kLet &&
                   index_->placement(t.node).in_place) {
          Push(kLet, t.node);
        } else {
          Indent();
          PushText("\n");
          Push(kRef, t.node);
        }
        break;
      }
      case kLet: {
        const auto* l = static_cast<const LetNode*>((*index_)[t.node]);
        Indent();
        text_ += "let ";
        Atom(l->var.get());
        if (l->var.defined() && l->var->type_annotation.defined()) {
          text_ += ": ";
          Print(l->var->type_annotation);
        }
        text_ += " = ";
        Push(kBlock, index_->Operands(t.node)[2], index_->placement(t.node).own_scope);
        PushText(";\n");
        Push(kRef, index_->Operands(t.node)[0]);
        break;
      }
      case kClause: {
        const auto* m = static_cast<const MatchNode*>((*index_)[t.node]);
        if (t.at == m->clauses.size()) break;
        Indent();
        PrintPattern(m->clauses[t.at]->lhs);
        text_ += " => {\n";
        ++indent_;
        const int32_t b = index_->placement(t.node).own_scope + static_cast<int32_t>(t.at);
        const uint32_t rhs = index_->IdOf(m->clauses[t.at]->rhs.get());
        ++t.at;
        tasks_.push_back(t);
        PushText(",\n");
        Push(kClose);
        Push(kBlock, rhs, b);
        break;
      }
    }
  }
}

void Printer::Root(const Expr& e) {
  taken_.Clear();
  names_.Clear();
  taken_types_.Clear();
  Prepare(e);
  for (const Var& v : FreeOf(index_->nodes())) {
    text_ += "free_var ";
    Atom(v.get());
    if (v->type_annotation.defined()) {
      text_ += ": ";
      Print(v->type_annotation);
    }
    text_ += ";\n";
  }
  Push(kBlock, static_cast<uint32_t>(index_->size() - 1), 0);
  Loop();
}

void Printer::Module(const IRModule& mod) {
  bool gap = false;
  if (mod->attrs.defined() && !mod->attrs->dict.empty()) {
    text_ += "#[attrs = ";
    Meta(mod->attrs);
    text_ += "]\n";
  }
  for (const auto& [var, data] : mod->type_definitions) {
    if (gap) text_ += '\n';
    gap = true;
    names_.Clear();
    taken_types_.Clear();
    text_ += "type ";
    text_ += var->name_hint.view();
    if (!data->type_vars.empty()) {
      text_ += '[';
      for (size_t i = 0; i < data->type_vars.size(); ++i) text_ += (i ? ", " : "") + NameOf(data->type_vars[i].get());
      text_ += ']';
    }
    text_ += " {\n";
    for (const Constructor& c : data->constructors) {
      text_ += "  ";
      text_ += c->name_hint.view();
      for (size_t i = 0; i < c->inputs.size(); ++i) {
        text_ += i ? ", " : "(";
        Print(c->inputs[i]);
      }
      text_ += c->inputs.empty() ? ",\n" : "),\n";
    }
    text_ += "}\n";
  }
  for (const auto& [var, func] : mod->functions) {
    if (gap) text_ += '\n';
    gap = true;
    names_.Clear();
    taken_.Clear();
    taken_types_.Clear();
    if (const auto* f = func.as<FunctionNode>()) {
      text_ += "def ";
      Atom(var.get());
      Prepare(func);
      Signature(f);
      ++indent_;
      PushText("\n");
      Push(kClose);
      Push(kBlock, index_->Operands(index_->size() - 1).back(), index_->placement(index_->size() - 1).own_scope);
      Loop();
    } else if (!options_.meta_data && !options_.objects) {
      text_ += AsText(func, false);  // to read, not to parse
    } else {
      // Of another IR: readable as a comment, and whole in the metadata.
      std::string other = AsText(func, false);
      size_t at = 0;
      while (at < other.size()) {
        size_t end = std::min(other.find('\n', at), other.size());
        text_ += "// " + other.substr(at, end - at) + "\n";
        at = end + 1;
      }
      text_ += "def ";
      Atom(var.get());
      text_ += " = ";
      Meta(func);
      text_ += ";\n";
    }
  }
}

std::string Printer::Run(const ObjectRef& obj) {
  if (options_.meta_data) text_ += "#[version = \"0.0.5\"]\n";
  if (const auto* m = obj.as<IRModuleNode>()) {
    Module(GetRef<IRModule>(m));
  } else if (obj.as<TypeNode>()) {
    text_.clear();
    Print(Downcast<Type>(obj));
    return std::move(text_);
  } else if (obj.as<PatternNode>()) {
    text_.clear();
    PrintPattern(Downcast<Pattern>(obj));
    return std::move(text_);
  } else if (const auto* g = obj.as<GlobalVarNode>()) {
    text_.clear();
    Sigil('@', g->name_hint.view());
    return std::move(text_);
  } else if (const auto* op = obj.as<OpNode>()) {
    return op->name.str();
  } else if (const auto* c = obj.as<ClauseNode>()) {
    PrintPattern(c->lhs);
    text_ += " => ";
    Root(c->rhs);
  } else {
    Root(Downcast<Expr>(obj));
  }
  MetaSection();
  return Rest();
}

namespace {

bool Accepts(const Object* o) {
  return o->IsInstance<IRModuleNode>() || o->IsInstance<PatternNode>() || o->IsInstance<ClauseNode>() ||
         (o->IsInstance<TypeNode>() && !o->IsInstance<PrimTypeNode>() && !o->IsInstance<PointerTypeNode>() &&
          !o->IsInstance<TypeDataNode>()) ||
         (o->IsInstance<ExprNode>() && (!o->IsInstance<BaseFuncNode>() || o->IsInstance<FunctionNode>()));
}

[[maybe_unused]] const bool registered_printer = [] {
  RegisterTextPrinter({Accepts, [](const ObjectRef& obj, bool meta) { return PrintText(obj, {.meta_data = meta}); }});
  RegisterTextWriter({Accepts, [](const ObjectRef& obj, bool meta, const TextSink& sink) {
                        sink.write(Printer({.meta_data = meta}, &sink).Run(obj), sink.context);
                      }});
  return true;
}();

}  // namespace

std::string PrintText(const ObjectRef& obj, const TextOptions& options) {
  if (!obj.defined()) return "None";
  if (!Accepts(obj.get())) return AsText(obj, options.meta_data);
  return Printer(options).Run(obj);
}

}  // namespace baton::relay

namespace {
using namespace baton;  // NOLINT
BATON_REGISTER_GLOBAL("relay.ir.AsText").set_body_typed([](ObjectRef obj, bool show_meta_data, bool show_types) {
  return relay::PrintText(obj, {.meta_data = show_meta_data, .types = show_types});
});
BATON_REGISTER_GLOBAL("relay.ir.AnnotatedText").set_body_typed([](ObjectRef obj, bool show_meta_data, PackedFunc say) {
  auto ask = [](const relay::CallNode* call, void* context) {
    return (*static_cast<PackedFunc*>(context))(GetRef<relay::Call>(call)).As<runtime::String>().str();
  };
  return relay::PrintText(obj, {.meta_data = show_meta_data, .annotate = ask, .annotate_context = &say});
});
}  // namespace

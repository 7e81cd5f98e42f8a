// SPDX-License-Identifier: Apache-2.0
// Relay text.
//
// Each node that computes something gets a line `%0 = ...;` in the innermost block that holds all its uses; a node with
// one use, as the value of a let or of a block, stands there itself. The blocks are found before anything is printed:
// users first, each node's block is the nearest common one of its uses. Printing is then one pass with a stack of
// tasks.
#include <baton/ir/attrs.h>
#include <baton/ir/structural.h>
#include <baton/ir/text_stream.h>
#include <baton/relay/functor.h>
#include <baton/relay/text.h>
#include <baton/runtime/interrupt.h>
#include <baton/runtime/registry.h>
#include <baton/support/name_map.h>
#include <baton/support/pages.h>
#include <baton/support/stack.h>
#include <relay/expr/expr_index.h>
#include <relay/text/literal.h>
#include <relay/text/type_text.h>

#include <algorithm>
#include <charconv>
#include <deque>
#include <memory>
#include <span>
#include <unordered_set>

namespace baton::relay {
namespace {

using runtime::ArrayObj;
using runtime::FieldInfo;
using runtime::StringObj;
using runtime::TypeInfo;

/// Variables that nothing among the nodes binds, in order of first use.
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

class Printer final : private TypePrinter {
 public:
  /// What `Run` gives is the rest of the text, where there is a sink for what comes before.
  explicit Printer(const TextOptions& options, const TextSink* sink = nullptr)
      : TypePrinter(&text_), options_(options), sink_(sink) {}
  std::string Run(const ObjectRef& obj);

 private:
  enum Kind : uint8_t { kText, kNode, kRef, kBlock, kLet, kClose, kElse, kClause };
  struct Task {
    Kind kind;
    int32_t block = 0;
    uint32_t at = 0;
    uint32_t node = ExprIndex::kNone;
    const char* text = nullptr;
  };

  void Module(const IRModule& mod);
  void Root(const Expr& e);
  void Prepare(const Expr& root);
  void Loop();
  void Pass();
  std::string Rest();
  void Node(uint32_t number);
  void Part(uint32_t number);
  void Atom(const ExprNode* n);
  void Signature(const FunctionNode* f);
  void CallAttrs(const CallNode* call, bool first);
  void Value(const Any& v, bool plain_ints);
  void FieldValue(const FieldInfo& f, const Any& v);
  void PrintPattern(const Pattern& p);
  void Meta(const ObjectRef& obj);
  void MetaSection();
  void TypeComment(const ExprNode* n) {
    if (!options_.types || !n->checked_type_.defined()) return;
    text_ += " /* ty=";
    Print(runtime::RefCast<Type>(n->checked_type_));
    text_ += " */";
  }
  void Annotation(const CallNode* call) {
    if (!options_.annotate) return;
    std::string said = options_.annotate(call, options_.annotate_context);
    if (said.empty()) return;
    for (size_t at = 0; (at = said.find("*/", at)) != std::string::npos;) said.insert(at + 1, " ");
    for (char& c : said) {
      if (c == '\n') c = ' ';
    }
    text_ += " /* " + said + " */";
  }
  void Indent() { text_.append(2 * static_cast<size_t>(indent_ < 40 ? indent_ : 40), ' '); }
  void Push(Kind k, uint32_t node = ExprIndex::kNone, int32_t block = 0) {
    tasks_.push_back({k, block, 0, node, nullptr});
  }
  void PushText(const char* s) { tasks_.push_back({kText, 0, 0, ExprIndex::kNone, s}); }
  void Sigil(char c, std::string_view name) {
    text_ += c;
    if (IsName(name))
      text_ += name;
    else
      QuoteText(name, &text_);
  }
  /// A name of its own, the hint where it is free; `hint` must outlive the text.
  std::string_view Unique(support::NameMap<uint32_t>* taken, std::string_view hint);
  void VarName(const VarNode* v);

  std::string NameOf(const TypeVarNode* var) override;
  std::string DimName(const Object* var, const std::string& hint) override;
  void Other(const ObjectRef& obj) override { Meta(obj); }
  bool Apart(const Type& type) override { return options_.objects && Height(type) > kHeight; }
  /// Levels of parts in a type; -1 if it has variables, whose names are those of the text.
  int32_t Height(const Type& type);
  static constexpr int32_t kHeight = 8;

  /// Lines beyond this are passed on: the end stays in the cache, and what is before it grows without copies.
  static constexpr size_t kEnd = 256 << 10;
  std::string text_;                 ///< the end of it
  support::PageStack<char> before_;  ///< where there is no sink
  TextOptions options_;
  const TextSink* sink_;
  int indent_ = 0;
  int32_t next_line_ = 0;
  support::PageStack<Task> tasks_;
  std::unique_ptr<ExprIndex> index_;
  std::vector<uint32_t> lines_;          ///< by block: the numbers of nodes
  std::vector<uint32_t> first_line_;     ///< of each block, and the end of the last
  support::PageStack<int32_t> line_of_;  ///< by number: the line of a node that has one
  PointerMap<std::string_view> names_;
  std::deque<std::string> name_store_;
  support::NameMap<uint32_t> taken_, taken_types_;
  PointerMap<int32_t> heights_;  ///< of types that have parts
  PointerMap<int64_t> meta_index_;
  std::vector<std::pair<std::string, Array<Any>>> meta_;
};

// ---- Names

std::string_view Printer::Unique(support::NameMap<uint32_t>* taken, std::string_view hint) {
  if (hint.empty()) hint = "v";
  bool fresh = false;
  uint32_t& count = taken->Insert(hint, &fresh);
  if (fresh) return hint;
  // The counter belongs to the hint, so that a million of one name cost no more than a million names.
  std::string name;
  do {
    name = hint;
    name += std::to_string(++count);
  } while (taken->Find(name));
  name_store_.push_back(std::move(name));
  taken->Insert(name_store_.back());
  return name_store_.back();
}

void Printer::VarName(const VarNode* v) {
  bool fresh = false;
  std::string_view& name = names_.Insert(v, &fresh);
  if (fresh) name = Unique(&taken_, v->vid.defined() ? v->name_hint().view() : "");
  Sigil('%', name);
}

std::string Printer::NameOf(const TypeVarNode* var) {
  bool fresh = false;
  std::string_view& name = names_.Insert(var, &fresh);
  if (fresh) name = Unique(&taken_types_, IsName(var->name_hint.view()) ? var->name_hint.view() : "T");
  return std::string(name);
}

std::string Printer::DimName(const Object* var, const std::string& hint) {
  bool fresh = false;
  std::string_view& name = names_.Insert(var, &fresh);
  if (fresh) name = Unique(&taken_types_, IsName(hint) ? std::string_view(name_store_.emplace_back(hint)) : "n");
  return std::string(name);
}

int32_t Printer::Height(const Type& root) {
  auto known = [this](const Type& t) -> const int32_t* {
    static constexpr int32_t kFlat = 0, kOpen = -1;
    if (const auto* tensor = t.as<TensorTypeNode>()) {
      for (const PrimExpr& d : tensor->shape) {
        if (!d.as<IntImmNode>()) return &kOpen;
      }
      return &kFlat;
    }
    const bool has_parts = t.as<TupleTypeNode>() || t.as<FuncTypeNode>() || t.as<RelayRefTypeNode>();
    return has_parts ? heights_.Find(t.get()) : &kOpen;
  };
  // Parts first; each type once, of however many it is a part.
  std::vector<Type> work{root};
  while (!work.empty()) {
    const Type t = work.back();
    if (known(t)) {
      work.pop_back();
      continue;
    }
    int32_t height = 0;
    bool ready = true;
    auto part = [&](const Type& p) {
      if (!p.defined()) {
        height = -1;
      } else if (const int32_t* h = known(p)) {
        height = *h < 0 || height < 0 ? -1 : std::max(height, *h + 1);
      } else {
        ready = false;
        work.push_back(p);
      }
    };
    if (const auto* tuple = t.as<TupleTypeNode>()) {
      for (const Type& f : tuple->fields) part(f);
    } else if (const auto* f = t.as<FuncTypeNode>()) {
      if (!f->type_params.empty() || !f->type_constraints.empty()) height = -1;
      for (const Type& a : f->arg_types) part(a);
      part(f->ret_type);
    } else {
      part(t.as<RelayRefTypeNode>()->value);
    }
    if (!ready) continue;
    heights_[t.get()] = height;
    work.pop_back();
  }
  return *known(root);
}

void Printer::Meta(const ObjectRef& obj) {
  const std::string key = obj.defined() ? obj->GetTypeKey() : "None";
  bool fresh = false;
  int64_t& index = meta_index_.Insert(obj.get(), &fresh);
  if (fresh) {
    size_t i = 0;
    while (i < meta_.size() && meta_[i].first != key) ++i;
    if (i == meta_.size()) meta_.push_back({key, Array<Any>()});
    index = static_cast<int64_t>(meta_[i].second.size());
    meta_[i].second.push_back(Any(obj));
  }
  text_ += "meta[" + key + "][" + std::to_string(index) + "]";
}

void Printer::MetaSection() {
  if (meta_.empty() || (!options_.meta_data && !options_.objects)) return;
  Map<String, Any> map;
  for (auto& [key, list] : meta_) map.Set(String(key), Any(list));
  if (options_.objects) {
    *options_.objects = map;
    return;
  }
  if (text_.back() != '\n') text_ += '\n';
  text_ += "\n#[metadata]\n" + SaveJSON(map, false);
}

// ---- Blocks

/// The call of a constructor without fields.
bool IsNullary(const ExprNode* n) {
  if (!n->IsInstance<CallNode>()) return false;
  const auto* c = static_cast<const CallNode*>(n);
  const auto* k = c->op.as<ConstructorNode>();
  return k && k->inputs.empty() && c->args.empty() && c->type_args.empty() && !c->attrs.defined();
}

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
  for (size_t at = 0; at < lines.size(); ++at) lines_[first_line_[index_->placement(lines[at]).scope + 1]++] = lines[at];
}

// ---- Expressions

/// A part of a node. Most have a line, and need not be read themselves.
void Printer::Part(uint32_t number) {
  const int32_t line = number == ExprIndex::kNone ? -1 : line_of_[number];
  if (line >= 0) {
    char text[16];
    char* const end = std::to_chars(text, text + sizeof(text), line).ptr;
    text_ += '%';
    text_.append(text, static_cast<size_t>(end - text));
  } else {
    Atom(number == ExprIndex::kNone ? nullptr : (*index_)[number]);
  }
}

void Printer::Atom(const ExprNode* n) {
  if (!n) {
    text_ += "(nullptr)";
  } else if (n->IsInstance<VarNode>()) {
    VarName(static_cast<const VarNode*>(n));
  } else if (n->IsInstance<ConstantNode>()) {
    if (!ScalarText(static_cast<const ConstantNode*>(n)->data, &text_)) Meta(GetRef<ObjectRef>(n));
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

void Printer::Signature(const FunctionNode* f) {
  if (!f->type_params.empty()) {
    text_ += '[';
    for (size_t i = 0; i < f->type_params.size(); ++i) {
      if (i) text_ += ", ";
      text_ += NameOf(f->type_params[i].get());
    }
    text_ += ']';
  }
  text_ += '(';
  bool first = true;
  for (const Var& p : f->params) {
    if (!first) text_ += ", ";
    first = false;
    Atom(p.get());
    if (p.defined() && p->type_annotation.defined()) {
      text_ += ": ";
      Print(p->type_annotation);
    }
  }
  if (f->attrs.defined() && f->attrs->dict.get()) {
    for (const auto& e : f->attrs->dict.get()->entries) {
      if (!first) text_ += ", ";
      first = false;
      const auto* key = static_cast<const StringObj*>(e.key.object());
      std::string_view name(key->data, key->size);
      if (IsName(name))
        text_ += name;
      else
        QuoteText(name, &text_);
      text_ += '=';
      Value(e.value, false);
    }
  }
  text_ += ") ";
  if (f->ret_type.defined()) {
    text_ += "-> ";
    Print(f->ret_type);
    text_ += ' ';
  }
  text_ += "{\n";
}

void Printer::Value(const Any& v, bool plain_ints) {
  support::WithStack([&] {
    switch (v.type_code()) {
      case kBatonNull:
        text_ += "None";
        return;
      case kBatonInt:
        text_ += std::to_string(v.raw().v_int64);
        return;
      case kBatonBool:
        text_ += v.raw().v_int64 ? "True" : "False";
        return;
      case kBatonFloat: {
        std::string s = DoubleText(v.raw().v_float64);
        text_ += s;
        if (s.back() >= '0' && s.back() <= '9') text_ += 'f';
        return;
      }
      case kBatonDType:
        text_ += DataType2String(v.raw().v_dtype);
        return;
      case kBatonObject:
        break;
      default:
        text_ += "None /* " + runtime::ValueKindName(v.raw()) + " */";
        return;
    }
    const Object* o = v.object();
    if (o->IsInstance<StringObj>()) {
      const auto* s = static_cast<const StringObj*>(o);
      QuoteText({s->data, s->size}, &text_);
    } else if (o->IsInstance<ArrayObj>()) {
      text_ += '[';
      bool first = true;
      for (const Any& a : static_cast<const ArrayObj*>(o)->items) {
        if (!first) text_ += ", ";
        first = false;
        Value(a, plain_ints);
      }
      text_ += ']';
    } else if (o->IsInstance<IntImmNode>() && !static_cast<const IntImmNode*>(o)->dtype.is_bool()) {
      const auto* i = static_cast<const IntImmNode*>(o);
      text_ += std::to_string(i->value);
      if (plain_ints && i->dtype == DataType::Int(64)) return;
      text_ += (i->dtype.is_int() ? "i" : "u") + std::to_string(i->dtype.bits());
    } else if (o->GetTypeKey() == "tir.Any") {
      text_ += '?';
    } else {
      Meta(GetRef<ObjectRef>(o));
    }
  });
}

void Printer::FieldValue(const FieldInfo& f, const Any& v) {
  if (f.kind == runtime::FieldKind::kDataType) {
    QuoteText(DataType2String(v.As<DataType>()), &text_);
    return;
  }
  bool plain = false;
  if (const Object* o = v.object()) {
    // Where plain numbers become literals, as in shapes, they are written plain.
    Any probe, out;
    if (o->IsInstance<IntImmNode>())
      probe = Any(int64_t{1});
    else if (o->IsInstance<ArrayObj>())
      probe = Any(Array<Any>{Any(int64_t{1})});
    try {
      if (!probe.is_null() && f.convert && f.convert(probe.raw(), &out)) {
        const Object* c = out.object();
        if (c && c->IsInstance<ArrayObj>()) c = static_cast<const ArrayObj*>(c)->items[0].object();
        plain = c && c->IsInstance<IntImmNode>();
      }
    } catch (const runtime::Error&) {
      plain = false;
    }
  }
  Value(v, plain);
}

void Printer::CallAttrs(const CallNode* call, bool first) {
  const auto* op = call->op.as<OpNode>();
  const std::string_view want = op ? op->attrs_type_key.view() : "";
  if (!call->attrs.defined()) {
    if (!want.empty()) text_ += first ? "attrs=None" : ", attrs=None";
    return;
  }
  const TypeInfo* info = TypeInfo::Get(call->attrs->type_index());
  if (!info || info->key != want) {
    if (!first) text_ += ", ";
    text_ += "attrs=";
    Meta(call->attrs);
    return;
  }
  call->attrs->VisitFields(
      [&](const char* name, const Any& v) {
        if (!first) text_ += ", ";
        first = false;
        text_ += name;
        text_ += '=';
        FieldValue(*info->Find(name), v);
      },
      true);
}

void Printer::PrintPattern(const Pattern& p) {
  support::WithStack([&] {
    auto list = [&](const Array<Pattern>& parts, bool tuple) {
      text_ += '(';
      bool first = true;
      for (const Pattern& x : parts) {
        if (!first) text_ += ", ";
        first = false;
        PrintPattern(x);
      }
      text_ += tuple && parts.size() == 1 ? ",)" : ")";
    };
    if (const auto* v = p.as<PatternVarNode>()) {
      Atom(v->var.get());
      if (v->var.defined() && v->var->type_annotation.defined()) {
        text_ += ": ";
        Print(v->var->type_annotation);
      }
    } else if (const auto* c = p.as<PatternConstructorNode>()) {
      text_ += c->constructor.defined() ? c->constructor->name_hint.view() : "(nullptr)";
      if (!c->patterns.empty()) list(c->patterns, false);
    } else if (const auto* t = p.as<PatternTupleNode>()) {
      list(t->patterns, true);
    } else {
      text_ += '_';
    }
  });
}

void Printer::Node(uint32_t number) {
  const ExprNode* n = (*index_)[number];
  const std::span<const uint32_t> parts = index_->Operands(number);
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
      Part(parts[0]);
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
    for (uint32_t a : parts.subspan(1)) {
      if (!first) text_ += ", ";
      first = false;
      Part(a);
    }
    CallAttrs(c, first);
    text_ += ')';
    TypeComment(n);
    Annotation(c);
  } else if (n->IsInstance<TupleNode>()) {
    text_ += '(';
    bool first = true;
    for (uint32_t a : parts) {
      if (!first) text_ += ", ";
      first = false;
      Part(a);
    }
    text_ += parts.size() == 1 ? ",)" : ")";
  } else if (n->IsInstance<TupleGetItemNode>()) {
    Part(parts[0]);
    text_ += '.';
    text_ += std::to_string(static_cast<const TupleGetItemNode*>(n)->index);
  } else if (n->IsInstance<RefCreateNode>()) {
    text_ += "ref(";
    Part(parts[0]);
    text_ += ')';
  } else if (n->IsInstance<RefReadNode>()) {
    text_ += "ref_read(";
    Part(parts[0]);
    text_ += ')';
  } else if (n->IsInstance<RefWriteNode>()) {
    text_ += "ref_write(";
    Part(parts[0]);
    text_ += ", ";
    Part(parts[1]);
    text_ += ')';
  } else if (n->IsInstance<IfNode>()) {
    text_ += "if (";
    Part(parts[0]);
    text_ += ") {\n";
    ++indent_;
    const int32_t b = index_->placement(number).own_scope;
    Push(kClose);
    Push(kBlock, parts[2], b + 1);
    Push(kElse);
    Push(kBlock, parts[1], b);
  } else if (n->IsInstance<FunctionNode>()) {
    text_ += "fn ";
    Signature(static_cast<const FunctionNode*>(n));
    ++indent_;
    Push(kClose);
    Push(kBlock, parts.back(), index_->placement(number).own_scope);
  } else if (n->IsInstance<LetNode>()) {
    text_ += "{\n";
    ++indent_;
    Push(kClose);
    Push(kLet, number);
  } else if (n->IsInstance<MatchNode>()) {
    text_ += static_cast<const MatchNode*>(n)->complete ? "match (" : "match? (";
    Part(parts[0]);
    text_ += ") {\n";
    ++indent_;
    Push(kClose);
    Push(kClause, number);
  } else {
    Atom(n);
  }
}

/// Passes on what is printed, but for the end of the last line: who comes next may look at it.
void Printer::Pass() {
  const size_t line = text_.rfind('\n');
  if (line == std::string::npos || line == 0) return;
  if (sink_)
    sink_->write(std::string_view(text_).substr(0, line), sink_->context);
  else
    before_.append(text_.data(), line);
  text_.erase(0, line);
}
/// What was not passed to a sink.
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
          Part(t.node);
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
          Part(n);
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

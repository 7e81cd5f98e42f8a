// SPDX-License-Identifier: Apache-2.0
// Relay text.
//
// Each node that computes something gets a line `%0 = ...;` in the innermost block that holds all its uses; a node with
// one use, as the value of a let or of a block, is there itself. The blocks are found before anything is printed:
// users first, each node's block is the nearest common one of its uses. Printing is then one pass with a stack of
// tasks.
#pragma once

#include <baton/ir/module.h>
#include <baton/relay/text.h>
#include <baton/runtime/reflection.h>
#include <baton/support/name_map.h>
#include <baton/support/pages.h>
#include <relay/expr/expr_index.h>
#include <relay/text/literal.h>
#include <relay/text/type_text.h>

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace baton::relay {

// ---- Blocks

/// Prints one object. Names, attributes and types are in printer_values.cpp, blocks and nodes in printer.cpp.
class Printer final : private TypePrinter {
 public:
  /// `Run` returns the rest of the text, where there is a sink for what comes before.
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
  void Node(uint32_t id);
  void Operand(uint32_t id);
  void Atom(const ExprNode* n);
  void Signature(const FunctionNode* f);
  void CallAttrs(const CallNode* call, bool first);
  void Entries(const DictAttrsNode* attrs, bool first);
  void Value(const Any& v, bool plain_ints);
  void FieldValue(const runtime::FieldInfo& f, const Any& v);
  void PrintPattern(const Pattern& p);
  void Meta(const ObjectRef& obj);
  void MetaSection();
  void TypeComment(const ExprNode* n) {
    if (!options_.types) return;
    // The name of a node of an imported model, or of a program's own span; lines of a text have a place instead.
    if (n->span.defined() && n->span->source_name.defined() && n->span->source_name->text.empty()) {
      Comment(n->span->source_name->name.str());
    }
    if (!n->checked_type_.defined()) return;
    // Functions within functions have types that grow with them, which no reader takes in.
    if (Height(runtime::RefCast<Type>(n->checked_type_)) > kHeight) return;
    text_ += " /* ty=";
    Print(runtime::RefCast<Type>(n->checked_type_));
    text_ += " */";
  }
  void Comment(std::string said) {
    if (said.empty()) return;
    for (size_t at = 0; (at = said.find("*/", at)) != std::string::npos;) said.insert(at + 1, " ");
    for (char& c : said) {
      if (c == '\n') c = ' ';
    }
    text_ += " /* " + said + " */";
  }
  void Annotation(const CallNode* call) {
    if (options_.annotate) Comment(options_.annotate(call, options_.annotate_context));
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
  /// A unique name, the hint where it is free; `hint` must outlive the text.
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

}  // namespace baton::relay

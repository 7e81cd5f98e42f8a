// SPDX-License-Identifier: Apache-2.0
// Recursive descent over Relay text. Statements iterate; nesting recurses, bounded and on fresh stacks.
// parser.cpp has expressions, parser_module.cpp types, attributes, metadata and definitions.
#pragma once

#include <baton/ir/diagnostic.h>
#include <baton/relay/op.h>
#include <baton/support/name_map.h>
#include <baton/support/pointer_map.h>
#include <relay/text/lexer.h>

#include <string>
#include <unordered_map>
#include <vector>

namespace baton::relay {

/// The values of `%0`, `%1`, ... now. Numbers mostly count up; those far beyond the others go to a table.
class Temps {
 public:
  const Expr* Find(int64_t number) const {
    const auto i = static_cast<size_t>(number);
    return i < near_.size() ? &near_[i] : far_.Find(Key(number));
  }
  /// Made if there is none.
  Expr& At(int64_t number) {
    const auto i = static_cast<size_t>(number);
    if (i >= near_.size()) {
      if (i > near_.size() + kGap || far_.size()) return far_[Key(number)];
      near_.resize(i + 1);
    }
    return near_[i];
  }

 private:
  static const void* Key(int64_t number) { return reinterpret_cast<const void*>(static_cast<uintptr_t>(number) + 1); }
  static constexpr size_t kGap = 1024;
  std::vector<Expr> near_;
  PointerMap<Expr> far_;  ///< none of them is within near_: it stops to grow when this begins
};

class Parser {
 public:
  static constexpr int kMaxNesting = 50'000;
  Parser(std::string_view text, const std::string& source_name, const IRModule& base);
  IRModule Module();
  Expr Single();
  void CheckTypeCalls();
  /// The text refers to these by number, instead of to its own section.
  void UseObjects(const Map<String, Any>& objects) { meta_ = objects, meta_read_ = true; }

 private:
  /// Thrown after an error was noted, to the nearest place that can go on.
  struct Bail {};
  struct OpEntry {
    const Op* op = nullptr;
    const runtime::TypeInfo* attrs = nullptr;
    Attrs defaults;         ///< shared by calls that say nothing
    bool required = false;  ///< some attribute must be said
  };
  struct GlobalEntry {
    GlobalVar var;
    Token first;
    bool defined = false;
  };
  struct Mark {
    size_t locals, temps, types;
  };
  struct Nest {
    explicit Nest(Parser* p);
    ~Nest() { --parser->depth_; }
    Parser* parser;
  };

  // Tokens
  void Advance() {
    last_ = tok_;
    if (has_next_) {
      tok_ = next_;
      has_next_ = false;
    } else {
      tok_ = lex_.Next();
    }
  }
  const Token& Peek() {
    if (!has_next_) {
      next_ = lex_.Next();
      has_next_ = true;
    }
    return next_;
  }
  bool Is(Tok kind) const { return tok_.kind == kind; }
  bool IsName(std::string_view word) const { return tok_.kind == Tok::kName && tok_.text == word; }
  bool Accept(Tok kind) {
    if (tok_.kind != kind) return false;
    Advance();
    return true;
  }
  Token Expect(Tok kind, const char* what, const char* where);
  Span From(const Token& first) { return lex_.SpanOf(first, last_); }
  void Note(const Token& at, std::string message, std::string label = "", std::string help = "");
  [[noreturn]] void Fail(const Token& at, std::string message, std::string help = "");
  [[noreturn]] void Unexpected(const char* wanted);
  void Recover();

  // Names
  Mark Open() const { return {local_log_.size(), temp_log_.size(), type_log_.size()}; }
  void Close(const Mark& m);
  void Declare(std::string_view name, const Var& var);
  Expr Local(const Token& t);
  Expr Temp(const Token& t);
  Expr Global(const Token& t);
  OpEntry* FindOp(std::string_view name);
  Expr Word(const Token& t);

  // Expressions
  Expr Sequence();
  bool Statement(std::vector<struct Binding>* lets, Expr* result);
  Expr Block();
  Expr Expression(int min_precedence = 0);
  Expr Prefix();
  Expr Atom();
  Expr Postfix(Expr e, const Token& first);
  Expr CallOf(const Expr& callee, const Token& first, const Array<Type>& type_args);
  Expr Infix(const Token& op, const char* name, const Expr& a, const Expr& b, const Token& first);
  Expr NumberLiteral(bool negative);
  Expr TupleOrParen();
  Expr IfExpr();
  Expr MatchExpr();
  Function FunctionRest(const Token& first);
  Pattern ParsePattern();
  Var Parameter();

  // Types, attributes, metadata
  Type ParseType();
  PrimExpr Dim();
  // Arithmetic on dimensions; `first` was read already.
  bool BeginsExtent();
  PrimExpr ExtentExpr(PrimExpr first = PrimExpr());
  PrimExpr ExtentSum(PrimExpr first = PrimExpr());
  PrimExpr ExtentProduct(PrimExpr first = PrimExpr());
  PrimExpr ExtentAtom();
  PrimExpr ExtentCondition();
  DataType DType();
  Array<Type> TypeList(Tok end, const char* what);
  Array<TypeVar> TypeParams();
  Any AttrValue();
  int64_t Integer(const Token& t, bool negative);
  void Attribute(const OpEntry* op, Attrs* attrs, bool* owned, std::vector<std::string_view>* given);
  void FunctionAttribute(Attrs* attrs, Map<String, Any>* own, std::vector<std::string_view>* given);
  Any MetaRef();
  template <class R>
  R MetaAs(const char* what);

  // Definitions
  void Header();
  void Def();
  void TypeDef(bool external);
  void FindMetaData(std::string_view text, const std::string& source_name);

  DiagnosticList errors_;
  std::string_view code_, meta_text_;
  int32_t meta_line_ = 0;
  SourceName source_;
  Lexer lex_;
  Token tok_, last_, next_;
  bool has_next_ = false;
  int depth_ = 0;

  support::NameMap<Var> locals_;  ///< null: not defined here
  std::vector<std::pair<std::string_view, Var>> local_log_;
  Temps temps_;
  std::vector<std::pair<int64_t, Expr>> temp_log_;
  std::unordered_map<std::string_view, Type> types_;
  std::vector<std::pair<std::string_view, Type>> type_log_;
  std::unordered_map<std::string_view, PrimExpr> dims_;
  std::unordered_map<std::string_view, OpEntry> ops_;
  std::unordered_map<std::string_view, GlobalEntry> globals_;
  std::vector<std::string_view> global_order_;
  std::unordered_map<std::string_view, Constructor> constructors_;
  std::unordered_map<std::string_view, GlobalTypeVar> data_types_;
  std::unordered_map<std::string_view, Token> data_type_uses_;
  std::vector<std::pair<Token, size_t>> type_calls_;  ///< uses of data types, with how many type arguments
  Map<String, Any> meta_;
  bool meta_read_ = false;
  IRModule base_, mod_;
};

}  // namespace baton::relay

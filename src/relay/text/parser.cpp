// SPDX-License-Identifier: Apache-2.0
#include <baton/relay/text.h>
#include <baton/support/nearest.h>
#include <baton/support/stack.h>
#include <fmt/format.h>
#include <relay/expr/children.h>
#include <relay/text/literal.h>
#include <relay/text/parser.h>

#include <algorithm>
#include <unordered_set>

namespace baton::relay {

/// One `let`, kept until the block's value is known.
struct Binding {
  Var var;
  Expr value;
  Span span;
};

namespace {

struct InfixOp {
  int precedence;
  const char* op;
};
InfixOp InfixOf(Tok kind) {
  switch (kind) {
    case Tok::kEqual:
      return {1, "equal"};
    case Tok::kNotEqual:
      return {1, "not_equal"};
    case Tok::kLess:
      return {2, "less"};
    case Tok::kGreater:
      return {2, "greater"};
    case Tok::kLessEqual:
      return {2, "less_equal"};
    case Tok::kGreaterEqual:
      return {2, "greater_equal"};
    case Tok::kPlus:
      return {3, "add"};
    case Tok::kMinus:
      return {3, "subtract"};
    case Tok::kStar:
      return {4, "multiply"};
    case Tok::kSlash:
      return {4, "divide"};
    default:
      return {-1, nullptr};
  }
}

template <class N>
auto WithSpan(N node, Span span) {
  node.span = std::move(span);
  return node;
}

}  // namespace

// ---- Tokens and errors

Parser::Nest::Nest(Parser* p) : parser(p) {
  if (++p->depth_ > kMaxNesting) {
    --p->depth_;
    p->Fail(p->tok_, fmt::format("more than {} levels of braces, brackets and parentheses", kMaxNesting),
            "bind inner parts by `let %x = ...;` or `%0 = ...;`");
  }
}

void Parser::Note(const Token& at, std::string message, std::string label, std::string help) {
  errors_.Error(lex_.SpanOf(at, at), std::move(message), std::move(label), std::move(help));
  if (errors_.full()) errors_.ThrowIfAny();
}

void Parser::Fail(const Token& at, std::string message, std::string help) {
  if (at.kind != Tok::kBad) Note(at, std::move(message), "", std::move(help));  // a bad token was reported
  throw Bail();
}

void Parser::Unexpected(const char* wanted) {
  Fail(tok_, fmt::format("expected {}, got {}", wanted, Describe(tok_, code_)));
}

Token Parser::Expect(Tok kind, const char* what, const char* where) {
  if (tok_.kind != kind) Fail(tok_, fmt::format("expected {} {}, got {}", what, where, Describe(tok_, code_)));
  Token t = tok_;
  Advance();
  return t;
}

/// Skips to the end of the statement: behind the next `;`, or before the `}` that closes the block.
void Parser::Recover() {
  int open = 0;
  for (;;) {
    switch (tok_.kind) {
      case Tok::kEnd:
        return;
      case Tok::kLBrace:
      case Tok::kLParen:
      case Tok::kLBracket:
      case Tok::kHash:
        ++open;
        break;
      case Tok::kRBrace:
        if (open <= 0) return;
        --open;
        break;
      case Tok::kRParen:
      case Tok::kRBracket:
        if (open > 0) --open;
        break;
      case Tok::kSemicolon:
        if (open <= 0) {
          Advance();
          return;
        }
        break;
      case Tok::kName:
        // A definition begins at the start of a line: what was open was not closed.
        if (tok_.column == 1 && (tok_.text == "def" || tok_.text == "type")) return;
        break;
      default:
        break;
    }
    Advance();
  }
}

// ---- Names

void Parser::Close(const Mark& m) {
  while (local_log_.size() > m.locals) {
    auto& [name, old] = local_log_.back();
    locals_[name] = std::move(old);
    local_log_.pop_back();
  }
  while (temp_log_.size() > m.temps) {
    temps_.At(temp_log_.back().first) = std::move(temp_log_.back().second);
    temp_log_.pop_back();
  }
  while (type_log_.size() > m.types) {
    auto& [name, old] = type_log_.back();
    if (old.defined())
      types_[name] = old;
    else
      types_.erase(name);
    type_log_.pop_back();
  }
}

void Parser::Declare(std::string_view name, const Var& var) {
  Var& slot = locals_[name];
  local_log_.emplace_back(name, slot);
  slot = var;
}

Expr Parser::Local(const Token& t) {
  if (const Var* v = locals_.Find(t.text); v && v->defined()) return *v;
  std::vector<std::string> known;
  for (const auto& [name, old] : local_log_) known.push_back("%" + std::string(name));
  std::string near = support::DidYouMean("%" + std::string(t.text), known);
  Note(t, fmt::format("`%{}` is not defined here{}", t.text, near));
  Var v{std::string(t.text)};
  Declare(t.text, v);  // so that it is reported once
  return v;
}

Expr Parser::Temp(const Token& t) {
  const Expr* e = temps_.Find(t.number);
  if (e && e->defined()) return *e;
  Note(t, fmt::format("`%{}` is not defined here", t.number), "",
       fmt::format("`%{} = ...;` must stand before, in this block or one around it", t.number));
  return Var("undefined");
}

Expr Parser::Global(const Token& t) {
  auto [it, fresh] = globals_.try_emplace(t.text);
  if (fresh) {
    it->second.var =
        base_.defined() && base_->ContainGlobalVar(t.text) ? base_->GetGlobalVar(t.text) : GlobalVar(String(t.text));
    it->second.first = t;
    it->second.defined = base_.defined() && base_->ContainGlobalVar(t.text);
    global_order_.push_back(t.text);
  }
  return it->second.var;
}

Parser::OpEntry* Parser::FindOp(std::string_view name) {
  auto [it, fresh] = ops_.try_emplace(name);
  OpEntry& e = it->second;
  if (fresh) {
    e.op = Op::Find(name);
    if (e.op && !(*e.op)->attrs_type_key.empty()) {
      e.attrs = runtime::TypeInfo::FindKey((*e.op)->attrs_type_key.view());
      if (e.attrs && e.attrs->create) {
        e.defaults = Attrs(e.attrs->create());
        for (const auto& f : e.attrs->fields) e.required = e.required || (f.flags & kRequired);
      }
    }
  }
  return e.op ? &e : nullptr;
}

/// A word that names a constructor or an operator.
Expr Parser::Word(const Token& t) {
  if (auto it = constructors_.find(t.text); it != constructors_.end()) {
    // A constructor without fields is a value by itself: `Nil` is a call.
    if (!it->second->inputs.empty() || Is(Tok::kLParen) || Is(Tok::kLBracket)) return it->second;
    CallNode n;
    n.span = lex_.SpanOf(t, t);
    n.op = it->second;
    return Call(std::move(n));
  }
  if (OpEntry* e = FindOp(t.text)) return *e->op;
  std::vector<std::string> known = Op::ListNames();
  for (const auto& [name, c] : constructors_) known.push_back(std::string(name));
  std::sort(known.begin(), known.end());
  // Constructors are spelt with a capital letter.
  const bool capital = t.text[0] >= 'A' && t.text[0] <= 'Z';
  Note(t,
       fmt::format("there is no {} `{}`{}", capital ? "constructor" : "operator", t.text,
                   support::DidYouMean(t.text, known)),
       "", capital ? "a data type stands before what uses it: type Option[A] { None, Some(A) }" : "");
  return Var("undefined");
}

// ---- Blocks

Expr Parser::Block() {
  Expect(Tok::kLBrace, "`{`", "before a block");
  Mark m = Open();
  Expr e = Sequence();
  Close(m);
  Expect(Tok::kRBrace, "`}`", "at the end of the block");
  return e;
}

/// One statement; true if it was the block's value.
bool Parser::Statement(std::vector<Binding>* lets, Expr* result) {
  const Token first = tok_;
  if (IsName("let")) {
    Advance();
    Token name = tok_;
    if (!Is(Tok::kLocal)) Unexpected("a variable `%name` after `let`");
    Advance();
    Type type;
    if (Accept(Tok::kColon)) type = ParseType();
    Expect(Tok::kAssign, "`=`", "after the variable");
    Var var{String(name.text), type};
    var->span = lex_.SpanOf(name, name);
    // Only a function may call itself by the name that it gets.
    const bool recursive = IsName("fn");
    if (recursive) Declare(name.text, var);
    Expr value = Expression();
    if (!recursive) Declare(name.text, var);
    Span span = From(first);
    Expect(Tok::kSemicolon, "`;`", "after the value");
    lets->push_back({var, value, span});
    return false;
  }
  if (Is(Tok::kTemp) && Peek().kind == Tok::kAssign) {
    Advance();
    Advance();
    Expr value = Expression();
    Expect(Tok::kSemicolon, "`;`", "after the value");
    Expr& slot = temps_.At(first.number);
    temp_log_.emplace_back(first.number, slot);
    slot = value;
    return false;
  }
  if (IsName("free_var")) {
    Advance();
    Token name = Expect(Tok::kLocal, "a variable `%name`", "after `free_var`");
    Type type;
    if (Accept(Tok::kColon)) type = ParseType();
    Expect(Tok::kSemicolon, "`;`", "after the variable");
    Var var{String(name.text), type};
    var->span = lex_.SpanOf(name, name);
    Declare(name.text, var);
    return false;
  }
  Expr e = Expression();
  if (!Is(Tok::kSemicolon)) {
    *result = e;
    return true;
  }
  const Token semicolon = tok_;
  Advance();
  if (Is(Tok::kRBrace) || Is(Tok::kEnd)) {
    Note(semicolon, "a block ends with its value", "", "leave out the last `;`");
    *result = e;
    return true;
  }
  lets->push_back({Var("_"), e, From(first)});
  return false;
}

Expr Parser::Sequence() {
  std::vector<Binding> lets;
  Expr result;
  for (;;) {
    try {
      if (Statement(&lets, &result)) break;
    } catch (const Bail&) {
      Recover();
      if (Is(Tok::kEnd) || Is(Tok::kRBrace) ||
          (Is(Tok::kName) && tok_.column == 1 && (tok_.text == "def" || tok_.text == "type"))) {
        result = Var("undefined");
        break;
      }
    }
  }
  while (!lets.empty()) {
    Binding& b = lets.back();
    LetNode n;
    n.span = b.span;
    n.var = b.var;
    n.value = b.value;
    n.body = result;
    result = Let(std::move(n));
    lets.pop_back();
  }
  return result;
}

// ---- Expressions

Expr Parser::Infix(const Token& at, const char* name, const Expr& a, const Expr& b, const Token& first) {
  OpEntry* e = FindOp(name);
  if (!e) {
    Note(at, fmt::format("{} stands for the operator `{}`, which is not there", Describe(at, code_), name));
    return a;
  }
  CallNode n;
  n.span = From(first);
  n.op = *e->op;
  n.args = b.defined() ? Array<Expr>{a, b} : Array<Expr>{a};
  n.attrs = e->defaults;
  return Call(std::move(n));
}

Expr Parser::Expression(int min_precedence) {
  return support::WithStack([&]() -> Expr {
    Nest nest(this);
    const Token first = tok_;
    Expr left = Prefix();
    for (;;) {
      const Token op = tok_;
      InfixOp infix = InfixOf(op.kind);
      if (infix.precedence < 0 || infix.precedence < min_precedence) return left;
      Advance();
      Expr right = Expression(infix.precedence + 1);
      left = Infix(op, infix.op, left, right, first);
    }
  });
}

Expr Parser::Prefix() {
  const Token first = tok_;
  if (!Is(Tok::kMinus)) return Postfix(Atom(), first);
  // A sequence of signs is read by a loop, not by recursion.
  size_t signs = 0;
  while (Accept(Tok::kMinus)) ++signs;
  // Those of a number are part of it: `--10` is 10.
  if (Is(Tok::kNumber)) return Postfix(NumberLiteral(signs % 2 == 1), first);
  Expr e = Postfix(Atom(), tok_);
  while (signs--) e = Infix(first, "negative", e, Expr(), first);
  return e;
}

Expr Parser::NumberLiteral(bool negative) {
  const Token t = tok_;
  Advance();
  std::string digits = (negative ? "-" : "") + std::string(t.text);
  NDArray a = ScalarFrom(digits, t.suffix);
  if (!a.defined()) {
    Note(t, fmt::format("`{}{}` is no number of a known dtype, or does not fit it", digits, t.suffix), "",
         "suffixes are f, f16, f64, bf16, i8, i16, i32, i64, u8, u16, u32, u64; none is int32 (int64 where that is too "
         "narrow), or float32 with a point");
    a = NDArray::Scalar(int32_t{0}, DataType::Int(32));
  }
  ConstantNode n;
  n.span = lex_.SpanOf(t, t);
  n.data = a;
  return Constant(std::move(n));
}

Expr Parser::Atom() {
  const Token t = tok_;
  switch (t.kind) {
    case Tok::kLocal:
      Advance();
      return Local(t);
    case Tok::kTemp:
      Advance();
      return Temp(t);
    case Tok::kGlobal:
      Advance();
      return Global(t);
    case Tok::kNumber:
      return NumberLiteral(false);
    case Tok::kLParen:
      return TupleOrParen();
    case Tok::kLBrace:
      return Block();
    case Tok::kName:
      break;
    default:
      Unexpected("an expression");
  }
  if (t.text == "True" || t.text == "False") {
    Advance();
    ConstantNode n;
    n.span = lex_.SpanOf(t, t);
    n.data = NDArray::Scalar(static_cast<uint8_t>(t.text == "True"), DataType::Bool());
    return Constant(std::move(n));
  }
  if (t.text == "if") return IfExpr();
  if (t.text == "fn") {
    Advance();
    return FunctionRest(t);
  }
  if (t.text == "let") {
    Mark m = Open();
    Expr e = Sequence();
    Close(m);
    return e;
  }
  if (t.text == "match") return MatchExpr();
  if (t.text == "meta" && Peek().kind == Tok::kLBracket) return MetaAs<Expr>("an expression");
  if ((t.text == "ref" || t.text == "ref_read" || t.text == "ref_write") && Peek().kind == Tok::kLParen) {
    Advance();
    Advance();
    Expr a = Expression(), b;
    if (t.text == "ref_write") {
      Expect(Tok::kComma, "`,`", "after the reference");
      b = Expression();
    }
    Expect(Tok::kRParen, "`)`", "after the arguments");
    if (t.text == "ref") return RefCreate(WithSpan(RefCreateNode{{}, a}, From(t)));
    if (t.text == "ref_read") return RefRead(WithSpan(RefReadNode{{}, a}, From(t)));
    return RefWrite(WithSpan(RefWriteNode{{}, a, b}, From(t)));
  }
  Advance();
  return Word(t);
}

Expr Parser::TupleOrParen() {
  const Token first = tok_;
  Advance();
  Array<Expr> fields;
  bool tuple = Is(Tok::kRParen);
  while (!Is(Tok::kRParen)) {
    fields.push_back(Expression());
    if (!Accept(Tok::kComma)) break;
    tuple = true;
  }
  Expect(Tok::kRParen, "`)` or `,`", "after the value");
  if (!tuple) return fields[0];
  return Tuple(WithSpan(TupleNode{{}, fields}, From(first)));
}

Expr Parser::Postfix(Expr e, const Token& first) {
  for (;;) {
    if (Is(Tok::kLParen)) {
      e = CallOf(e, first, {});
    } else if (Is(Tok::kField)) {
      int64_t index = tok_.number;
      Advance();
      e = TupleGetItem(WithSpan(TupleGetItemNode{{}, e, index}, From(first)));
    } else if (Is(Tok::kLBracket)) {
      Advance();
      Array<Type> type_args = TypeList(Tok::kRBracket, "type arguments");
      if (!Is(Tok::kLParen)) Unexpected("`(` after type arguments");
      e = CallOf(e, first, type_args);
    } else {
      return e;
    }
  }
}

Expr Parser::CallOf(const Expr& callee, const Token& first, const Array<Type>& type_args) {
  Advance();  // (
  const auto* op = callee.as<OpNode>();
  OpEntry* entry = op ? FindOp(op->name.view()) : nullptr;
  CallNode n;
  n.op = callee;
  n.type_args = type_args;
  if (entry) n.attrs = entry->defaults;
  auto args = make_object<runtime::ArrayObj>();
  bool owned = false, said = false;
  std::vector<std::string_view> given;
  Map<String, Any> function_attrs;
  while (!Is(Tok::kRParen)) {
    if ((Is(Tok::kName) || Is(Tok::kString)) && Peek().kind == Tok::kAssign) {
      said = true;
      if (op)
        Attribute(entry, &n.attrs, &owned, &given);
      else
        FunctionAttribute(&n.attrs, &function_attrs, &given);
    } else {
      if (said) Note(tok_, "an argument stands behind an attribute", "", "arguments come first, then name=value");
      args->items.push_back(Any(Expression()));
    }
    if (!Accept(Tok::kComma)) break;
  }
  Expect(Tok::kRParen, "`)` or `,`", "after the argument");
  n.args = Array<Expr>(ObjectPtr<Object>(args));
  n.span = From(first);
  if (!function_attrs.empty()) n.attrs = DictAttrs(function_attrs);
  if (entry && entry->required && n.attrs.defined()) {
    for (const auto& f : entry->attrs->fields) {
      if ((f.flags & kRequired) && std::find(given.begin(), given.end(), f.name) == given.end() &&
          std::find(given.begin(), given.end(), "attrs") == given.end()) {
        Note(first, fmt::format("[{}] needs the attribute `{}`", op->name.view(), f.name), "",
             fmt::format("{}: {}", f.name, f.doc));
      }
    }
  }
  return Call(std::move(n));
}

Expr Parser::IfExpr() {
  const Token first = tok_;
  Advance();
  Expect(Tok::kLParen, "`(`", "after `if`");
  IfNode n;
  n.cond = Expression();
  Expect(Tok::kRParen, "`)`", "after the condition");
  n.true_branch = Block();
  if (!IsName("else")) Unexpected("`else`: an `if` has a value in both cases");
  Advance();
  n.false_branch = IsName("if") ? Expression() : Block();
  n.span = From(first);
  return If(std::move(n));
}

Var Parser::Parameter() {
  Token name = Expect(Tok::kLocal, "a parameter `%name`", "here");
  Type type;
  if (Accept(Tok::kColon)) type = ParseType();
  Var var{String(name.text), type};
  var->span = lex_.SpanOf(name, name);
  return var;
}

/// The part behind `fn` or `def @name`: [T](%x: T, key=value) -> T { body }
Function Parser::FunctionRest(const Token& first) {
  Mark m = Open();
  FunctionNode n;
  n.type_params = TypeParams();
  Expect(Tok::kLParen, "`(`", "before the parameters");
  Map<String, Any> attrs;
  std::vector<Var> params;
  while (!Is(Tok::kRParen)) {
    if ((Is(Tok::kName) || Is(Tok::kString)) && Peek().kind == Tok::kAssign) {
      Token key = tok_;
      Advance();
      Advance();
      Any value = AttrValue();
      if (attrs.count(String(key.text))) Note(key, fmt::format("the attribute `{}` is given twice", key.text));
      attrs.Set(String(key.text), value);
    } else {
      const Token at = tok_;
      Var v = Parameter();
      for (const Var& p : params) {
        if (params.size() < 1000 && p->name_hint() == v->name_hint())
          Note(at, fmt::format("two parameters have the name `%{}`", at.text));
      }
      params.push_back(v);
    }
    if (!Accept(Tok::kComma)) break;
  }
  Expect(Tok::kRParen, "`)` or `,`", "after the parameter");
  if (Accept(Tok::kArrow)) n.ret_type = ParseType();
  for (const Var& v : params) {
    // The text of the name lives in the variable.
    Declare(v->name_hint().view(), v);
  }
  n.params = Array<Var>(params);
  if (!attrs.empty()) n.attrs = DictAttrs(attrs);
  n.body = Block();
  Close(m);
  n.span = From(first);
  return Function(std::move(n));
}

Expr Parser::MatchExpr() {
  const Token first = tok_;
  Advance();
  MatchNode n;
  n.complete = !Accept(Tok::kQuestion);
  Expect(Tok::kLParen, "`(`", "after `match`");
  n.data = Expression();
  Expect(Tok::kRParen, "`)`", "after the value");
  Expect(Tok::kLBrace, "`{`", "before the clauses");
  while (!Is(Tok::kRBrace)) {
    Mark m = Open();
    Pattern p = ParsePattern();
    std::unordered_set<std::string_view> names;
    ForEachPatternChild(
        p.get(),
        [&](const Var& v) {
          if (!names.insert(v->name_hint().view()).second)
            errors_.Error(v->span, fmt::format("the pattern binds `%{}` twice", v->name_hint().view()));
        },
        [](const Constructor&) {});
    Expect(Tok::kFatArrow, "`=>`", "after the pattern");
    Expr value = Expression();
    Close(m);
    n.clauses.push_back(Clause(p, value));
    if (!Accept(Tok::kComma)) break;
  }
  Expect(Tok::kRBrace, "`}` or `,`", "after the clause");
  n.span = From(first);
  return Match(std::move(n));
}

Pattern Parser::ParsePattern() {
  return support::WithStack([&]() -> Pattern {
    Nest nest(this);
    const Token first = tok_;
    auto list = [&] {
      Array<Pattern> patterns;
      while (!Is(Tok::kRParen)) {
        patterns.push_back(ParsePattern());
        if (!Accept(Tok::kComma)) break;
      }
      Expect(Tok::kRParen, "`)` or `,`", "after the pattern");
      return patterns;
    };
    if (Accept(Tok::kUnderscore)) return PatternWildcard(WithSpan(PatternWildcardNode(), From(first)));
    if (Is(Tok::kLocal)) {
      Var v = Parameter();
      Declare(first.text, v);
      return PatternVar(WithSpan(PatternVarNode{{}, v}, From(first)));
    }
    if (Accept(Tok::kLParen)) {
      Array<Pattern> patterns = list();
      return PatternTuple(WithSpan(PatternTupleNode{{}, patterns}, From(first)));
    }
    if (!Is(Tok::kName)) Unexpected("a pattern: `_`, `%x`, a constructor or a tuple");
    Advance();
    auto it = constructors_.find(first.text);
    if (it == constructors_.end()) {
      std::vector<std::string> known;
      for (const auto& [name, c] : constructors_) known.push_back(std::string(name));
      std::sort(known.begin(), known.end());
      Fail(first, fmt::format("there is no constructor `{}`{}", first.text, support::DidYouMean(first.text, known)));
    }
    Constructor c = it->second;
    Array<Pattern> patterns;
    if (Accept(Tok::kLParen)) patterns = list();
    return PatternConstructor(WithSpan(PatternConstructorNode{{}, c, patterns}, From(first)));
  });
}

}  // namespace baton::relay

// SPDX-License-Identifier: Apache-2.0
#include <baton/ir/structural.h>
#include <baton/relay/text.h>
#include <baton/runtime/named.h>
#include <baton/runtime/registry.h>
#include <baton/support/nearest.h>
#include <baton/support/stack.h>
#include <baton/tir/expr.h>
#include <fmt/format.h>
#include <relay/text/literal.h>
#include <relay/text/parser.h>
#include <relay/types/builtin_types.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace baton::relay {

Parser::Parser(std::string_view text, const std::string& source_name, const IRModule& base)
    : lex_("", SourceName(), nullptr), base_(base) {
  FindMetaData(text, source_name);
  source_ = SourceName(String(source_name), String(code_));
  // Tokens point into the source's own text, which spans keep alive.
  code_ = source_->text.view();
  lex_ = Lexer(code_, source_, &errors_);
  mod_ = base_.defined() ? base_.Copy() : IRModule(Map<GlobalVar, BaseFunc>());
  if (base_.defined()) {
    for (const auto& [var, data] : base_->type_definitions) {
      data_types_[var->name_hint.view()] = var;
      for (const Constructor& c : data->constructors) constructors_[c->name_hint.view()] = c;
    }
  }
  Advance();
}

/// Splits the text at the line `#[metadata]`.
void Parser::FindMetaData(std::string_view text, const std::string&) {
  static constexpr std::string_view kMark = "#[metadata]";
  code_ = text;
  size_t at = text.rfind(kMark);
  while (at != std::string_view::npos && at > 0 && text[at - 1] != '\n')
    at = at ? text.rfind(kMark, at - 1) : std::string_view::npos;
  if (at == std::string_view::npos) return;
  code_ = text.substr(0, at);
  meta_text_ = text.substr(at + kMark.size());
  meta_line_ = static_cast<int32_t>(std::count(code_.begin(), code_.end(), '\n')) + 1;
}

// ---- Types

Array<TypeVar> Parser::TypeParams() {
  Array<TypeVar> out;
  if (!Is(Tok::kLBracket) && !Is(Tok::kLess)) return out;
  const Tok end = Is(Tok::kLBracket) ? Tok::kRBracket : Tok::kGreater;
  Advance();
  while (!Is(end)) {
    Token name = Expect(Tok::kName, "the name of a type parameter", "here");
    TypeVarNode n;
    n.name_hint = String(name.text);
    n.span = lex_.SpanOf(name, name);
    for (const TypeVar& v : out) {
      if (v->name_hint == name.text) Note(name, fmt::format("two type parameters have the name `{}`", name.text));
    }
    TypeVar var(std::move(n));
    Type& slot = types_[name.text];
    type_log_.emplace_back(name.text, slot);
    slot = var;
    out.push_back(var);
    if (!Accept(Tok::kComma)) break;
  }
  Expect(end, "`]`", "after the type parameters");
  return out;
}

Array<Type> Parser::TypeList(Tok end, const char* what) {
  Array<Type> out;
  while (!Is(end)) {
    out.push_back(ParseType());
    if (!Accept(Tok::kComma)) break;
  }
  if (!Is(end)) Fail(tok_, fmt::format("expected `,` or the end of the {}, got {}", what, Describe(tok_, code_)));
  Advance();
  return out;
}

namespace {
/// The dtype of a name, if it is a machine number type.
bool DTypeOf(std::string_view name, DataType* d) {
  if (!runtime::TryString2DataType(name, d)) return false;
  return !d->is_float() || d->bits() == 16 || d->bits() == 32 || d->bits() == 64;
}
}  // namespace

DataType Parser::DType() {
  Token t = tok_;
  DataType d;
  if (!(Is(Tok::kName) || Is(Tok::kString)) || !DTypeOf(t.text, &d)) {
    Fail(t, fmt::format("expected a dtype, got {}", Describe(t, code_)), "float32, int64, bool, bfloat16, uint8, ...");
  }
  Advance();
  return d;
}

int64_t Parser::Integer(const Token& t, bool negative) {
  std::string digits = (negative ? "-" : "") + std::string(t.text);
  int64_t v = 0;
  auto r = std::from_chars(digits.data(), digits.data() + digits.size(), v);
  if (r.ec != std::errc() || r.ptr != digits.data() + digits.size())
    Fail(t, fmt::format("`{}` is no whole number of 64 bits", digits));
  return v;
}

PrimExpr Parser::Dim() {
  const Token t = tok_;
  if (Accept(Tok::kQuestion)) return tir::AnyDim();
  if (Is(Tok::kMinus)) Fail(t, "a dimension must not be negative");
  if (Is(Tok::kNumber)) {
    int64_t v = Integer(t, false);
    if (!t.suffix.empty()) Fail(t, "a dimension is a plain number");
    Advance();
    return ExtentExpr(PrimExpr(v));
  }
  if (IsName("meta") && Peek().kind == Tok::kLBracket) return MetaAs<PrimExpr>("a dimension");
  if (Is(Tok::kName) || Is(Tok::kLParen)) return ExtentExpr();
  Unexpected("a dimension: a number, `?` or a name");
}

Type Parser::ParseType() {
  return support::WithStack([&]() -> Type {
    Nest nest(this);
    const Token t = tok_;
    if (Accept(Tok::kUnderscore)) return IncompleteType(IncompleteTypeNode());
    if (Accept(Tok::kLParen)) {
      Array<Type> types;
      bool tuple = Is(Tok::kRParen);
      while (!Is(Tok::kRParen)) {
        types.push_back(ParseType());
        if (!Accept(Tok::kComma)) break;
        tuple = true;
      }
      Expect(Tok::kRParen, "`)` or `,`", "after the type");
      if (!tuple) return types[0];
      return TupleType(types);
    }
    if (!Is(Tok::kName)) Unexpected("a type");
    if (t.text == "Tensor") {
      Advance();
      Expect(Tok::kLBracket, "`[`", "after `Tensor`");
      Array<PrimExpr> shape;
      Expect(Tok::kLParen, "`(`", "before the dimensions");
      while (!Is(Tok::kRParen)) {
        shape.push_back(Dim());
        if (!Accept(Tok::kComma)) break;
      }
      Expect(Tok::kRParen, "`)` or `,`", "after the dimension");
      Expect(Tok::kComma, "`,`", "before the dtype");
      DataType dtype = DType();
      Expect(Tok::kRBracket, "`]`", "after the dtype");
      return TensorType(shape, dtype);
    }
    if (t.text == "fn") {
      Advance();
      Mark m = Open();
      Array<TypeVar> params = TypeParams();
      Expect(Tok::kLParen, "`(`", "before the types of the arguments");
      Array<Type> args = TypeList(Tok::kRParen, "types of the arguments");
      Expect(Tok::kArrow, "`->`", "before the type of the result");
      Type ret = ParseType();
      Close(m);
      return FuncType(params, args, ret, Array<TypeConstraint>());
    }
    if (t.text == "ref" && Peek().kind == Tok::kLParen) {
      Advance();
      Advance();
      Type value = ParseType();
      Expect(Tok::kRParen, "`)`", "after the type");
      return RelayRefType(value);
    }
    if (t.text == "meta" && Peek().kind == Tok::kLBracket) return MetaAs<Type>("a type");
    if (auto it = types_.find(t.text); it != types_.end()) {
      Advance();
      if (!Accept(Tok::kLBracket)) return it->second;
      Type head = it->second;
      return TypeCall(head, TypeList(Tok::kRBracket, "type arguments"));
    }
    DataType d;
    if (DTypeOf(t.text, &d)) {
      Advance();
      return TensorType::Scalar(d);
    }
    // A data type, which may be defined further down.
    Advance();
    GlobalTypeVar& var = data_types_[t.text];
    if (!var.defined()) {
      GlobalTypeVarNode n;
      n.name_hint = String(t.text);
      var = GlobalTypeVar(std::move(n));
    }
    data_type_uses_.try_emplace(t.text, t);
    GlobalTypeVar head = var;
    Array<Type> args = Accept(Tok::kLBracket) ? TypeList(Tok::kRBracket, "type arguments") : Array<Type>();
    type_calls_.emplace_back(t, args.size());
    return TypeCall(head, args);
  });
}

// ---- Attributes and metadata

Any Parser::AttrValue() {
  return support::WithStack([&]() -> Any {
    Nest nest(this);
    const Token t = tok_;
    if (Is(Tok::kString)) {
      Advance();
      return Any(String(t.text));
    }
    if (Is(Tok::kLBracket) || Is(Tok::kLParen)) {
      const Tok end = Is(Tok::kLBracket) ? Tok::kRBracket : Tok::kRParen;
      Advance();
      auto list = make_object<runtime::ArrayObj>();
      while (!Is(end)) {
        list->items.push_back(AttrValue());
        if (!Accept(Tok::kComma)) break;
      }
      Expect(end, end == Tok::kRBracket ? "`]` or `,`" : "`)` or `,`", "after the value");
      return Any(Array<Any>(ObjectPtr<Object>(list)));
    }
    if (Accept(Tok::kQuestion)) return Any(tir::AnyDim());
    const bool negative = Accept(Tok::kMinus);
    if (Is(Tok::kNumber)) {
      const Token n = tok_;
      const bool fraction = n.text.find_first_of(".eE") != std::string_view::npos;
      Any out;
      if (n.suffix.empty() && !fraction) {
        const int64_t v = Integer(n, negative);
        const Tok behind = Peek().kind;
        if (behind == Tok::kPlus || behind == Tok::kMinus || behind == Tok::kStar) {
          Advance();
          return Any(ExtentExpr(PrimExpr(v)));
        }
        out = Any(v);
      } else if (!n.suffix.empty() && (n.suffix[0] == 'i' || n.suffix[0] == 'u') && !fraction) {
        DataType d;
        std::string name = (n.suffix[0] == 'i' ? "int" : "uint") + std::string(n.suffix.substr(1));
        if (!runtime::TryString2DataType(name, &d) || !d.is_integral() || !d.is_scalar())
          Fail(n, fmt::format("`{}` is no dtype of integers", n.suffix));
        try {
          out = Any(IntImm(d, Integer(n, negative)));
        } catch (const runtime::Error& e) {
          Fail(n, e.message());
        }
      } else if (n.suffix.empty() || n.suffix == "f" || n.suffix == "f32" || n.suffix == "f64") {
        double v = 0;
        auto r = std::from_chars(n.text.data(), n.text.data() + n.text.size(), v);
        if (r.ec != std::errc()) Fail(n, fmt::format("`{}` does not fit a float of 64 bits", n.text));
        out = Any(negative ? -v : v);
      } else {
        Fail(n, fmt::format("`{}` is no suffix of an attribute's value", n.suffix));
      }
      Advance();
      return out;
    }
    if (Is(Tok::kName)) {
      if (tok_.text == "inf" || tok_.text == "nan") {
        const double v = tok_.text == "inf" ? INFINITY : NAN;
        Advance();
        return Any(negative ? -v : v);
      }
      if (!negative) {
        if (tok_.text == "True" || tok_.text == "False") {
          Advance();
          return Any(t.text == "True");
        }
        if (tok_.text == "None") {
          Advance();
          return Any();
        }
        if (tok_.text == "meta") return MetaRef();
        if (BeginsExtent()) return Any(ExtentExpr());
        DataType d;
        if (runtime::TryString2DataType(tok_.text, &d)) {
          Advance();
          return Any(d);
        }
      }
    }
    Unexpected("the value of an attribute: a number, text, True, False, None, a dtype or a list [...]");
  });
}

namespace {

/// Whether a field is an int, or lists of them.
bool HoldsInts(std::string_view type_name) {
  while (type_name.substr(0, 6) == "Array<") type_name = type_name.substr(6, type_name.size() - 7);
  return type_name == "int";
}
/// Reads numbers with a width suffix, such as `3i64`, as ints.
Any PlainInts(const Any& value) {
  if (!value.object()) return value;
  if (value.object()->IsInstance<IntImmNode>()) return Any(static_cast<const IntImmNode*>(value.object())->value);
  if (!value.object()->IsInstance<runtime::ArrayObj>()) return value;
  auto list = make_object<runtime::ArrayObj>();
  for (const Any& x : static_cast<const runtime::ArrayObj*>(value.object())->items) list->items.push_back(PlainInts(x));
  return Any(Array<Any>(ObjectPtr<Object>(list)));
}

}  // namespace

/// `name=value` within the call of a function, which takes any; `attrs=` has them all, `"attrs"=` is one of that name.
void Parser::FunctionAttribute(Attrs* attrs, Map<String, Any>* own, std::vector<std::string_view>* given) {
  const Token name = tok_;
  if (Is(Tok::kName) && name.text == "attrs") {
    bool owned = false;
    Attribute(nullptr, attrs, &owned, given);
    return;
  }
  Advance();
  Advance();
  Any value = AttrValue();
  if (own->count(String(name.text))) Note(name, fmt::format("the attribute `{}` is given twice", name.text));
  own->Set(String(name.text), value);
}

/// `name=value` within a call.
void Parser::Attribute(const OpEntry* op, Attrs* attrs, bool* owned, std::vector<std::string_view>* given) {
  const Token name = tok_;
  Advance();
  Advance();
  const Token at = tok_;
  Any value = AttrValue();
  if (std::find(given->begin(), given->end(), name.text) != given->end()) {
    Note(name, fmt::format("the attribute `{}` is given twice", name.text));
    return;
  }
  given->push_back(name.text);
  const runtime::FieldInfo* f = op && op->attrs ? op->attrs->Find(name.text) : nullptr;
  if (!f && name.text == "attrs") {
    if (value.is_null()) {
      *attrs = Attrs(ObjectPtr<Object>());
    } else if (value.object() && value.object()->IsInstance<BaseAttrsNode>()) {
      *attrs = value.As<Attrs>();
    } else {
      Note(at, "`attrs` wants attributes from the metadata, or None");
    }
    return;
  }
  if (!f) {
    std::vector<std::string> known;
    if (op && op->attrs) {
      for (const auto& k : op->attrs->fields) known.push_back(k.name);
    }
    std::string list;
    for (const std::string& k : known) list += (list.empty() ? "" : ", ") + k;
    Note(name,
         fmt::format("{} has no attribute `{}`{}", op ? "`" + (*op->op)->name.str() + "`" : "what is called here",
                     name.text, support::DidYouMean(name.text, known)),
         "", list.empty() ? "it has none" : "it has " + list);
    return;
  }
  if (!*owned) {
    *attrs = Attrs(op->attrs->create());
    *owned = true;
  }
  auto set = [&](const Any& v) { f->Set(runtime::ObjectAccess::Get(*attrs), v.raw()); };
  try {
    set(HoldsInts(f->type_name) ? PlainInts(value) : value);
  } catch (const runtime::Error& e) {
    // The user wrote a text or a list, not an object of the runtime.
    std::string said = e.message();
    for (auto [from, to] :
         {std::pair{"runtime.String", "text"}, {"runtime.Array", "a list"}, {"expected Array", "expected a list"}}) {
      if (size_t i = said.find(from); i != std::string::npos) said.replace(i, std::string_view(from).size(), to);
    }
    Note(at, fmt::format("[{}] {}", (*op->op)->name.view(), said), "", fmt::format("{}: {}", f->name, f->doc));
  }
}

Any Parser::MetaRef() {
  const Token first = tok_;
  Advance();
  Expect(Tok::kLBracket, "`[`", "after `meta`");
  Token key = Expect(Tok::kName, "a type key", "here");
  Expect(Tok::kRBracket, "`]`", "after the type key");
  Expect(Tok::kLBracket, "`[`", "before the number");
  Token number = Expect(Tok::kNumber, "a number", "here");
  const int64_t index = Integer(number, false);
  Expect(Tok::kRBracket, "`]`", "after the number");
  if (meta_text_.empty() && !meta_read_) {
    Fail(first, "the text has no metadata, which this refers to",
         "print with metadata: it ends with a section #[metadata]");
  }
  if (!meta_read_) {
    meta_read_ = true;
    try {
      ObjectRef all = LoadJSON(std::string(meta_text_));
      if (!all.as<runtime::MapObj>()) throw runtime::ValueError("it is no map");
      meta_ = Map<String, Any>(ObjectPtr<Object>(runtime::ObjectAccess::Get(all)));
    } catch (const runtime::Error& e) {
      Fail(first, fmt::format("the metadata (from line {} on) cannot be read: {}", meta_line_, e.message()));
    }
  }
  const auto* list = meta_.get() ? meta_.get()->Find(Any(String(key.text))) : nullptr;
  const auto* items = list && list->value.object() && list->value.object()->IsInstance<runtime::ArrayObj>()
                          ? static_cast<const runtime::ArrayObj*>(list->value.object())
                          : nullptr;
  if (!items || index >= static_cast<int64_t>(items->items.size())) {
    Fail(first, fmt::format("the metadata has no {} of type `{}`", items ? "number " + std::to_string(index) : "object",
                            key.text));
  }
  return items->items[index];
}

template <class R>
R Parser::MetaAs(const char* what) {
  const Token first = tok_;
  Any v = MetaRef();
  if (!v.object() || !v.object()->IsInstance<typename R::ContainerType>())
    Fail(first, fmt::format("this is not {}", what));
  return v.As<R>();
}
template RelayExpr Parser::MetaAs<RelayExpr>(const char*);

// ---- Definitions

void Parser::Header() {
  while (Is(Tok::kHash)) {
    Advance();
    Token name = Expect(Tok::kName, "`version` or `attrs`", "after `#[`");
    Expect(Tok::kAssign, "`=`", "here");
    if (name.text == "version") {
      Token version = Expect(Tok::kString, "the version in quotes", "here");
      if (version.text != "0.0.5")
        Note(version, fmt::format("the text has version \"{}\"; this parser reads \"0.0.5\"", version.text));
    } else if (name.text == "attrs") {
      mod_.CopyOnWrite()->attrs = MetaAs<DictAttrs>("a set of attributes");
    } else {
      Fail(name, fmt::format("`{}` has no meaning here", name.text));
    }
    Expect(Tok::kRBracket, "`]`", "here");
  }
}

void Parser::Def() {
  const Token first = tok_;
  Advance();
  Token name = Expect(Tok::kGlobal, "`@name`", "after `def`");
  Global(name);
  GlobalEntry& entry = globals_[name.text];
  GlobalVar var = entry.var;
  const bool twice = mod_->ContainGlobalVar(name.text);
  if (twice) Note(name, fmt::format("@{} is defined twice", name.text));
  entry.defined = true;
  dims_.clear();
  BaseFunc func;
  if (Accept(Tok::kAssign)) {
    func = MetaAs<BaseFunc>("a function");
    Expect(Tok::kSemicolon, "`;`", "after the definition");
  } else {
    func = FunctionRest(first);
  }
  if (!twice) mod_.CopyOnWrite()->Add(var, func);
}

void Parser::TypeDef(bool external) {
  Advance();
  Token name = Expect(Tok::kName, "the name of a data type", "after `type`");
  GlobalTypeVar& slot = data_types_[name.text];
  if (!slot.defined()) {
    GlobalTypeVarNode n;
    n.name_hint = String(name.text);
    slot = GlobalTypeVar(std::move(n));
  }
  GlobalTypeVar header = slot;
  if (runtime::FindNamed(mod_->type_definitions.get(), name.text))
    Fail(name, fmt::format("the data type `{}` is defined twice", name.text));
  Mark m = Open();
  TypeDataNode data;
  data.header = header;
  data.type_vars = TypeParams();
  if (external) {
    Accept(Tok::kSemicolon);
  } else {
    Expect(Tok::kLBrace, "`{`", "before the constructors");
    while (!Is(Tok::kRBrace)) {
      Token c = Expect(Tok::kName, "the name of a constructor", "here");
      ConstructorNode n;
      n.name_hint = String(c.text);
      n.belong_to = header;
      n.span = lex_.SpanOf(c, c);
      if (Accept(Tok::kLParen)) n.inputs = TypeList(Tok::kRParen, "fields");
      Constructor made(std::move(n));
      if (constructors_.count(c.text)) Note(c, fmt::format("the constructor `{}` is defined twice", c.text));
      constructors_[c.text] = made;
      data.constructors.push_back(made);
      if (!Accept(Tok::kComma)) break;
    }
    Expect(Tok::kRBrace, "`}` or `,`", "after the constructor");
  }
  Close(m);
  mod_.CopyOnWrite()->AddTypeDef(header, TypeData(std::move(data)));
}

IRModule Parser::Module() {
  auto definition = [&] { return IsName("def") || IsName("type") || (IsName("extern") && Peek().kind == Tok::kName); };
  try {
    Header();
  } catch (const Bail&) {
    errors_.ThrowIfAny();
  }
  if (!Is(Tok::kEnd) && !definition()) {
    IRModule out;
    Expr e = Sequence();
    if (!Is(Tok::kEnd) && errors_.empty())
      Note(tok_, fmt::format("expected the end of the text, got {}", Describe(tok_, code_)));
    errors_.ThrowIfAny();
    out = IRModule::FromExpr(e);
    if (base_.defined()) {
      GlobalVar main = out->GetGlobalVar("main");
      mod_.CopyOnWrite()->Add(main, out->Lookup(main));
      return mod_;
    }
    return out;
  }
  while (!Is(Tok::kEnd)) {
    try {
      if (IsName("def")) {
        Def();
      } else if (IsName("extern")) {
        Advance();
        if (!IsName("type")) Unexpected("`type` after `extern`");
        TypeDef(true);
      } else if (IsName("type")) {
        TypeDef(false);
      } else {
        Unexpected("`def` or `type`");
      }
    } catch (const Bail&) {
      Close({0, 0, 0});
      // On to the next definition.
      while (!Is(Tok::kEnd) && !(Is(Tok::kName) && tok_.column == 1 &&
                                 (tok_.text == "def" || tok_.text == "type" || tok_.text == "extern"))) {
        Advance();
      }
    }
  }
  for (std::string_view name : global_order_) {
    const GlobalEntry& g = globals_[name];
    if (g.defined) continue;
    std::vector<std::string> known;
    for (const auto& [var, func] : mod_->functions) known.push_back("@" + var->name_hint.str());
    Note(g.first, fmt::format("there is no function @{}{}", name, support::DidYouMean("@" + std::string(name), known)));
  }
  std::vector<std::pair<size_t, std::string_view>> uses;
  for (const auto& [name, at] : data_type_uses_) uses.push_back({at.begin, name});
  std::sort(uses.begin(), uses.end());
  for (const auto& [begin, name] : uses) {
    if (IsBuiltinType(name) || runtime::FindNamed(mod_->type_definitions.get(), name)) continue;
    std::vector<std::string> known = {"Tensor", "float32", "float64", "float16", "bfloat16",
                                      "int64",  "int32",   "int8",    "uint8",   "bool"};
    for (const auto& [var, data] : mod_->type_definitions) known.push_back(var->name_hint.str());
    Note(data_type_uses_[name], fmt::format("there is no type `{}`{}", name, support::DidYouMean(name, known)));
  }
  CheckTypeCalls();
  errors_.ThrowIfAny();
  return mod_;
}

/// Each use of a data type has as many arguments as the type has parameters.
void Parser::CheckTypeCalls() {
  std::unordered_map<std::string_view, const TypeDataNode*> known;
  for (const auto& [var, data] : mod_->type_definitions) known[var->name_hint.view()] = data.get();
  for (const auto& [at, count] : type_calls_) {
    auto it = known.find(at.text);
    if (it == known.end() || it->second->type_vars.size() == count) continue;
    const size_t wanted = it->second->type_vars.size();
    std::string form = std::string(at.text);
    for (size_t i = 0; i < wanted; ++i) form += (i ? ", " : "[") + it->second->type_vars[i]->name_hint.str();
    Note(at,
         fmt::format("the data type `{}` has {} parameter{}, got {} type argument{}", at.text, wanted,
                     wanted == 1 ? "" : "s", count, count == 1 ? "" : "s"),
         "", fmt::format("write it as {}{}", form, wanted ? "]" : ""));
  }
}

Expr Parser::Single() {
  try {
    Header();
  } catch (const Bail&) {
    errors_.ThrowIfAny();
  }
  Expr e = Sequence();
  if (!Is(Tok::kEnd) && errors_.empty())
    Note(tok_, fmt::format("expected the end of the text, got {}", Describe(tok_, code_)));
  errors_.ThrowIfAny();
  return e;
}

IRModule ParseModule(std::string_view text, const std::string& source_name, const IRModule& mod,
                     const Map<String, Any>& objects) {
  Parser parser(text, source_name, mod);
  if (objects.size() > 0) parser.UseObjects(objects);
  return parser.Module();
}

RelayExpr ParseExpr(std::string_view text, const std::string& source_name, const IRModule& mod) {
  return Parser(text, source_name, mod).Single();
}

}  // namespace baton::relay

namespace {
using namespace baton;  // NOLINT
using runtime::Args;
using runtime::RetValue;

std::string TextArg(Args args, int i, const char* default_value) {
  return args.size() > i && !args[i].is_null() ? args[i].As<std::string>() : default_value;
}

BATON_REGISTER_GLOBAL("relay.parser.ParseModule").set_body([](Args args, RetValue* rv) {
  *rv = relay::ParseModule(args[0].As<std::string>(), TextArg(args, 1, "<text>"));
});
BATON_REGISTER_GLOBAL("relay.parser.ParseExpr").set_body([](Args args, RetValue* rv) {
  *rv = relay::ParseExpr(args[0].As<std::string>(), TextArg(args, 1, "<text>"),
                         args.size() > 2 ? args[2].As<IRModule>() : IRModule());
});
// The names that Relay users know take the source's name first.
BATON_REGISTER_GLOBAL("parser.ParseModule").set_body([](Args args, RetValue* rv) {
  *rv = relay::ParseModule(args[1].As<std::string>(), args[0].As<std::string>(),
                           args.size() > 2 ? args[2].As<IRModule>() : IRModule());
});
BATON_REGISTER_GLOBAL("parser.ParseExpr").set_body([](Args args, RetValue* rv) {
  *rv = relay::ParseExpr(args[1].As<std::string>(), args[0].As<std::string>());
});
}  // namespace

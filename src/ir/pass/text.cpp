// SPDX-License-Identifier: Apache-2.0
// Pipelines as text: parsed to passes and printed from them.
#include <baton/ir/pipeline.h>
#include <baton/runtime/registry.h>
#include <baton/support/nearest.h>

#include <charconv>
#include <cmath>
#include <optional>

#include "ir/pass/pass_internals.h"

namespace baton::transform {
namespace {

using runtime::Registry;

constexpr int kMaxTextDepth = 100;  ///< levels that sequences, and values, nest in a text

[[noreturn]] void Fail(std::string_view text, size_t begin, size_t end, const std::string& what) {
  size_t line = 1, line_begin = 0;
  for (size_t i = 0; i < begin && i < text.size(); ++i) {
    if (text[i] == '\n') ++line, line_begin = i + 1;
  }
  size_t line_end = std::min(text.find('\n', line_begin), text.size());
  std::string out = "pipeline:" + std::to_string(line) + ":" + std::to_string(begin - line_begin + 1) + ": " + what;
  out += "\n  " + std::string(text.substr(line_begin, line_end - line_begin)) + "\n  ";
  out.append(begin - line_begin, ' ');
  out += '^';
  if (end > begin + 1) out.append(std::min(end, line_end + 1) - begin - 1, '~');
  throw runtime::ValueError(out);
}

struct Token {
  enum Kind { kName, kNumber, kString, kPunct, kEnd } kind = kEnd;
  std::string_view text;
  size_t begin = 0, end = 0;
};

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) { Next(); }

  Pass Run() {
    Array<Pass> passes;
    if (token_.kind != Token::kEnd) {
      do {
        passes.push_back(OnePass(0));
      } while (Accept(","));
      if (token_.kind != Token::kEnd) Fail(token_, "expected `,` or the end, got `" + std::string(token_.text) + "`");
    }
    return Sequential(passes, "pipeline");
  }

 private:
  [[noreturn]] void Fail(const Token& at, const std::string& what) { transform::Fail(text_, at.begin, at.end, what); }

  void Next() {
    size_t i = token_.end;
    while (i < text_.size() && (text_[i] == ' ' || text_[i] == '\t' || text_[i] == '\n' || text_[i] == '\r')) ++i;
    token_ = Token{Token::kEnd, {}, i, i};
    if (i == text_.size()) return;
    size_t j = i;
    auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
    auto digit = [](char c) { return c >= '0' && c <= '9'; };
    char c = text_[i];
    if (letter(c)) {
      while (j < text_.size() && (letter(text_[j]) || digit(text_[j]) || text_[j] == '.')) ++j;
      token_.kind = Token::kName;
    } else if (digit(c) || c == '-' || c == '+' || c == '.') {
      ++j;
      while (j < text_.size() &&
             (letter(text_[j]) || digit(text_[j]) || text_[j] == '.' ||
              ((text_[j] == '-' || text_[j] == '+') && (text_[j - 1] == 'e' || text_[j - 1] == 'E'))))
        ++j;
      token_.kind = Token::kNumber;
    } else if (c == '"' || c == '\'') {
      ++j;
      while (j < text_.size() && text_[j] != c) j += text_[j] == '\\' ? 2 : 1;
      if (j >= text_.size()) transform::Fail(text_, i, text_.size(), "the text has no closing quote");
      ++j;
      token_.kind = Token::kString;
    } else {
      ++j;
      while (j < text_.size() && (static_cast<unsigned char>(text_[j]) & 0xC0) == 0x80) ++j;  // one UTF-8 character
      token_.kind = Token::kPunct;
    }
    token_.text = text_.substr(i, j - i);
    token_.end = j;
  }
  bool Accept(std::string_view punct) {
    if (token_.kind != Token::kPunct || token_.text != punct) return false;
    Next();
    return true;
  }
  std::string Shown() const { return token_.kind == Token::kEnd ? "the end" : "`" + std::string(token_.text) + "`"; }
  void Expect(std::string_view punct) {
    if (!Accept(punct)) Fail(token_, "expected `" + std::string(punct) + "`, got " + Shown());
  }

  struct Option {
    Token at;
    std::string name;
    Any value;
  };

  Pass OnePass(int depth) {
    if (depth > kMaxTextDepth) Fail(token_, "sequences nest deeper than 100");
    Token name = token_;
    if (name.kind != Token::kName) Fail(token_, "expected the name of a pass, got " + Shown());
    Next();
    if (name.text == "Sequential" || name.text == "Scheduled") return Nested(name, depth);
    std::string key;
    const PackedFunc* maker = FindPassMaker(name.text, &key);
    if (!maker || name.text == "python.") {
      std::vector<std::string> known = PassNames();
      std::string near = support::DidYouMean(name.text, known);
      Fail(name, "there is no pass `" + std::string(name.text) + "`" +
                     (near.empty() ? "; `baton opt --list` prints all" : near));
    }
    std::vector<Option> options;
    if (Accept("(")) {
      if (!Accept(")")) {
        do {
          options.push_back(OneOption(depth));
        } while (Accept(","));
        Expect(")");
      }
    }
    return Make(name, maker, key, options);
  }

  Option OneOption(int depth) {
    Option o{token_, std::string(token_.text), Any()};
    if (token_.kind != Token::kName) Fail(token_, "options are given by name, as in `max_depth=64`; got " + Shown());
    Next();
    if (!Accept("=")) Fail(token_, "options are given by name: expected `=` after `" + o.name + "`, got " + Shown());
    o.value = Value(depth);
    return o;
  }

  Pass Make(const Token& name, const PackedFunc* maker, const std::string& key, const std::vector<Option>& options) {
    const bool imported = key.starts_with("python.");  // by its path
    const RegisteredPass* known = FindRegistered(key);
    const auto* type = known && known->options_key ? runtime::TypeInfo::FindKey(known->options_key) : nullptr;
    Map<String, Any> given;
    for (const Option& o : options) {
      if (given.count(String(o.name))) Fail(o.at, "the option `" + o.name + "` is given twice");
      given.Set(String(o.name), o.value);
      if (type && type->Find(o.name)) continue;
      std::vector<std::string> names;
      if (type) {
        for (const auto& f : type->fields) names.push_back(f.name);
      }
      std::string near = support::DidYouMean(o.name, names), all;
      for (const std::string& n : names) all += (all.empty() ? "" : ", ") + n;
      Fail(o.at, "`" + std::string(name.text) + "` has no option `" + o.name + "`" +
                     (!near.empty() ? near
                      : all.empty() ? "; it takes none"
                                    : "; it takes " + all));
    }
    try {
      // The pass knows the valid values: it is made now, so that errors appear before it runs.
      if (!given.empty()) return MakeRegistered(key, given);
      Any made = imported ? (*maker)(String(key)) : (*maker)();
      if (!made.Is<Pass>() || made.is_null()) Fail(name, "`" + std::string(name.text) + "` makes no pass");
      return made.As<Pass>();
    } catch (const Error& e) {
      if (e.message().starts_with("pipeline:")) throw;
      transform::Fail(text_, options.empty() ? name.begin : options[0].at.begin,
                      options.empty() ? name.end : options.back().at.end, e.message());
    }
  }

  Pass Nested(const Token& kind, int depth) {
    Array<Pass> passes;
    String name(kind.text == "Sequential" ? "sequential" : "scheduled");
    int opt_level = 0;
    Array<String> required, ends_with;
    Expect("(");
    if (!Accept(")")) {
      do {
        // `name=` after the passes: an option.
        size_t peek = token_.end;
        while (peek < text_.size() && text_[peek] == ' ') ++peek;
        if (token_.kind == Token::kName && peek < text_.size() && text_[peek] == '=') {
          Option o = OneOption(depth + 1);
          try {
            if (o.name == "name") {
              name = o.value.As<String>();
            } else if (o.name == "opt_level") {
              opt_level = o.value.As<int>();
            } else if (o.name == "required") {
              required = o.value.As<Array<String>>();
            } else if (o.name == "ends_with" && kind.text == "Scheduled") {
              ends_with = o.value.As<Array<String>>();
              for (const String& p : ends_with) GetProperty(p);
            } else {
              Fail(o.at, "`" + std::string(kind.text) + "` has no option `" + o.name + "`; it takes name, opt_level, " +
                             "required" + (kind.text == "Scheduled" ? ", ends_with" : ""));
            }
          } catch (const Error& e) {
            if (e.message().starts_with("pipeline:")) throw;
            Fail(o.at, e.message());
          }
        } else {
          passes.push_back(OnePass(depth + 1));
        }
      } while (Accept(","));
      Expect(")");
    }
    PassInfo info(opt_level, name, required);
    if (kind.text == "Sequential") return Sequential(passes, info);
    Scheduled s(passes, name, ends_with);
    const_cast<ScheduledNode*>(s.as<ScheduledNode>())->pass_info = WithTraitsOf(passes, info);  // just made
    return s;
  }

  Any Value(int depth) {
    if (depth > kMaxTextDepth) Fail(token_, "values nest deeper than 100");
    Token t = token_;
    switch (t.kind) {
      case Token::kNumber:
        return Number(t);
      case Token::kString:
        Next();
        return Any(String(Unquote(t)));
      case Token::kName: {
        std::string_view s = t.text;
        Next();
        if (s == "true" || s == "True") return Any(true);
        if (s == "false" || s == "False") return Any(false);
        if (s == "none" || s == "None") return Any();
        Fail(t, "`" + std::string(s) + "` is no value: texts stand in quotes, and there are true, false and none");
      }
      default:
        break;
    }
    if (Accept("[")) {
      Array<Any> out;
      if (Accept("]")) return Any(out);
      do {
        out.push_back(Value(depth + 1));
      } while (Accept(","));
      Expect("]");
      return Any(out);
    }
    if (Accept("{")) {
      Map<String, Any> out;
      if (Accept("}")) return Any(out);
      do {
        Token key = token_;
        if (key.kind != Token::kString) Fail(key, "keys stand in quotes; got " + Shown());
        Next();
        Expect(":");
        out.Set(String(Unquote(key)), Value(depth + 1));
      } while (Accept(","));
      Expect("}");
      return Any(out);
    }
    Fail(t, "expected a value, got " + Shown());
  }

  Any Number(const Token& t) {
    const char *b = t.text.data(), *e = b + t.text.size();
    if (*b == '+') ++b;
    int64_t i = 0;
    if (auto r = std::from_chars(b, e, i); r.ec == std::errc() && r.ptr == e) {
      Next();
      return Any(i);
    }
    bool whole = t.text.find_first_not_of("+-0123456789") == std::string_view::npos;
    double d = 0;
    if (auto r = std::from_chars(b, e, d); r.ec == std::errc() && r.ptr == e && std::isfinite(d) && !whole) {
      Next();
      return Any(d);
    }
    Fail(t, "`" + std::string(t.text) + "` is no number that 64 bits hold");
  }

  std::string Unquote(const Token& t) {
    std::string out;
    for (size_t i = 1; i + 1 < t.text.size(); ++i) {
      char c = t.text[i];
      if (c != '\\') {
        out += c;
        continue;
      }
      c = t.text[++i];
      if (c != 'n' && c != 't' && c != '\\' && c != '"' && c != '\'') {
        transform::Fail(text_, t.begin + i - 1, t.begin + i + 1,
                        "there is no such escape; there are \\n \\t \\\\ \\\" \\'");
      }
      out += c == 'n' ? '\n' : c == 't' ? '\t' : c;
    }
    return out;
  }

  std::string_view text_;
  Token token_;
};

void PrintValue(const Any& v, std::string* out) {
  auto quoted = [&](std::string_view s) {
    *out += '"';
    for (char c : s) {
      if (c == '\n') {
        *out += "\\n";
      } else if (c == '\t') {
        *out += "\\t";
      } else {
        if (c == '"' || c == '\\') *out += '\\';
        *out += c;
      }
    }
    *out += '"';
  };
  if (v.is_null()) {
    *out += "none";
  } else if (v.type_code() == kBatonBool) {
    *out += v.As<bool>() ? "true" : "false";
  } else if (v.type_code() == kBatonInt) {
    *out += std::to_string(v.As<int64_t>());
  } else if (v.type_code() == kBatonFloat) {
    char buf[32];
    auto r = std::to_chars(buf, buf + sizeof buf, v.As<double>());
    std::string s(buf, r.ptr);
    *out += s.find_first_of(".e") == std::string::npos ? s + ".0" : s;
  } else if (v.type_code() == kBatonDType) {
    quoted(v.As<std::string>());
  } else if (v.Is<String>()) {
    quoted(v.As<String>().view());
  } else if (v.Is<Array<Any>>()) {
    *out += '[';
    bool first = true;
    for (const Any& a : v.As<Array<Any>>()) {
      if (!first) *out += ", ";
      first = false;
      PrintValue(a, out);
    }
    *out += ']';
  } else if (v.Is<Map<String, Any>>()) {
    *out += '{';
    bool first = true;
    for (const auto& [k, a] : v.As<Map<String, Any>>()) {
      if (!first) *out += ", ";
      first = false;
      quoted(k.view());
      *out += ": ";
      PrintValue(a, out);
    }
    *out += '}';
  } else {
    throw runtime::ValueError("an option of type " + runtime::ValueKindName(v.raw()) + " has no text");
  }
}

/// The options that a pass was made with, in the order in which it has them.
void PrintOptions(const PassInfo& info, const std::string& key, std::string* out) {
  const RegisteredPass* known = FindRegistered(key);
  const auto fail = [&](const std::string& what) {
    throw runtime::ValueError("the pass `" + info->name.str() + "` has no text that could be read back: " + what);
  };
  if (!known || !known->options_key) {
    if (!info->options.empty()) fail("its argument 0 has no name in texts");
    return;
  }
  std::string all;
  for (const auto& field : runtime::TypeInfo::FindKey(known->options_key)->fields) {
    if (!info->options.count(String(field.name))) continue;
    all += (all.empty() ? "" : ", ") + std::string(field.name) + "=";
    try {
      PrintValue(info->options.at(String(field.name)), &all);
    } catch (const Error& e) {
      fail("its option `" + std::string(field.name) + "`: " + e.message());
    }
  }
  if (!all.empty()) *out += "(" + all + ")";
}

void PrintPass(const Pass& pass, int depth, std::string* out);

void PrintNested(const char* kind, const Array<Pass>& passes, const PassInfo& info, const char* default_name,
                 const Array<String>& ends_with, int depth, std::string* out) {
  if (depth > kMaxTextDepth) {
    throw runtime::ValueError("sequences nest deeper than 100 in `" + info->name.str() +
                              "`; put their passes into one list");
  }
  *out += kind;
  *out += '(';
  bool first = true;
  auto comma = [&] {
    if (!first) *out += ',';
    first = false;
  };
  for (const Pass& p : passes) comma(), PrintPass(p, depth + 1, out);
  auto option = [&](const char* name, const Any& value) {
    comma();
    *out += name;
    *out += '=';
    PrintValue(value, out);
  };
  if (info->name.view() != default_name) option("name", Any(info->name));
  if (info->opt_level != 0) option("opt_level", Any(info->opt_level));
  if (!info->required.empty()) option("required", Any(info->required));
  if (!ends_with.empty()) option("ends_with", Any(ends_with));
  *out += ')';
}

void PrintPass(const Pass& pass, int depth, std::string* out) {
  const bool top = depth == 0;
  if (!pass.defined()) throw runtime::ValueError("Found undefined pass for optimization.");
  PassInfo info = pass->Info();
  std::string key;
  bool known = FindPassMaker(info->name.view(), &key) != nullptr;
  if (const auto* s = pass.as<SequentialNode>(); s && (top || !known)) {
    if (!top) return PrintNested("Sequential", s->passes, info, "sequential", {}, depth, out);
    bool first = true;
    for (const Pass& p : s->passes) {
      if (!first) *out += ',';
      first = false;
      PrintPass(p, 1, out);
    }
    return;
  }
  if (const auto* s = pass.as<ScheduledNode>(); s && (top || !known)) {
    return PrintNested("Scheduled", s->passes, info, "scheduled", s->ends_with, depth, out);
  }
  if (!info->origin.empty()) {
    *out += info->origin.str();
    return;
  }
  if (!known) {
    throw runtime::ValueError("the pass `" + info->name.str() +
                              "` has no text that could be read back: no name makes " +
                              "it; a pass of Python has one if it stands at the top of a module, others if you "
                              "register a function without arguments that does as `relay._transform." +
                              info->name.str() + "`");
  }
  *out += (key.starts_with("tir.") ? "tir." : "") + info->name.str();
  PrintOptions(info, key, out);
}

}  // namespace

Pass ParsePipeline(const String& text) { return Parser(text.view()).Run(); }

String PipelineText(const Pass& pass) {
  std::string out;
  PrintPass(pass, 0, &out);
  return String(out);
}

BATON_REGISTER_GLOBAL("transform.ParsePipeline").set_body_typed([](String text) { return ParsePipeline(text); });
BATON_REGISTER_GLOBAL("transform.PipelineText").set_body_typed([](Pass pass) { return PipelineText(pass); });

}  // namespace baton::transform

// SPDX-License-Identifier: Apache-2.0
#include <baton/runtime/interrupt.h>
#include <fmt/format.h>
#include <relay/text/lexer.h>

namespace baton::relay {
namespace {

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsWord(char c) { return IsLetter(c) || IsDigit(c); }
int Hex(char c) {
  if (IsDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

Span Lexer::SpanOf(const Token& first, const Token& last) const {
  SpanNode n;
  n.source_name = source_;
  n.line = first.line;
  n.column = first.column;
  n.end_line = last.line;
  n.end_column = last.column + static_cast<int64_t>(last.end - last.begin);
  return Span(std::move(n));
}

void Lexer::Fail(const Token& t, size_t end, const std::string& message, const std::string& help) {
  Token x = t;
  x.end = end;
  errors_->Error(SpanOf(x, x), message, "", help);
}

std::string_view Lexer::Keep(std::string s) {
  kept_.push_back(String(s));
  return kept_.back().view();
}

void Lexer::SkipSpace() {
  runtime::PollInterrupt();
  for (;;) {
    while (at_ < text_.size()) {
      char c = text_[at_];
      if (c == '\n') {
        ++at_;
        ++line_;
        line_begin_ = at_;
      } else if (c == ' ' || c == '\t' || c == '\r') {
        ++at_;
      } else {
        break;
      }
    }
    if (at_ + 1 >= text_.size() || text_[at_] != '/') return;
    if (text_[at_ + 1] == '/') {
      while (at_ < text_.size() && text_[at_] != '\n') ++at_;
    } else if (text_[at_ + 1] == '*') {
      Token start;
      start.begin = at_, start.line = line_, start.column = static_cast<int32_t>(at_ - line_begin_) + 1;
      size_t depth = 0;
      do {
        if (text_.substr(at_, 2) == "/*") {
          ++depth;
          at_ += 2;
        } else if (text_.substr(at_, 2) == "*/") {
          --depth;
          at_ += 2;
        } else if (at_ < text_.size()) {
          if (text_[at_] == '\n') ++line_, line_begin_ = at_ + 1;
          ++at_;
        } else {
          Fail(start, start.begin + 2, "this comment has no end", "close it with */");
          return;
        }
      } while (depth);
    } else {
      return;
    }
  }
}

/// A double-quoted text at *at; without escapes in *out.
bool Lexer::Quoted(size_t* at, std::string* out) {
  size_t i = *at + 1;
  for (; i < text_.size() && text_[i] != '"' && text_[i] != '\n'; ++i) {
    if (text_[i] != '\\') {
      out->push_back(text_[i]);
      continue;
    }
    if (++i >= text_.size()) break;
    switch (text_[i]) {
      case 'n':
        out->push_back('\n');
        break;
      case 't':
        out->push_back('\t');
        break;
      case 'r':
        out->push_back('\r');
        break;
      case '0':
        out->push_back('\0');
        break;
      case 'x': {
        int h = i + 2 < text_.size() ? Hex(text_[i + 1]) : -1, l = i + 2 < text_.size() ? Hex(text_[i + 2]) : -1;
        if (h < 0 || l < 0) {
          *at = i;
          return false;
        }
        out->push_back(static_cast<char>(h * 16 + l));
        i += 2;
        break;
      }
      case '"':
      case '\\':
      case '\'':
        out->push_back(text_[i]);
        break;
      default:
        *at = i;
        return false;
    }
  }
  if (i >= text_.size() || text_[i] != '"') {
    *at = i;
    return false;
  }
  *at = i + 1;
  return true;
}

Token Lexer::Done(Token t, Tok kind, size_t end) {
  t.kind = kind;
  t.end = at_ = end;
  return t;
}

Token Lexer::Word(Token t) {
  size_t i = at_ + 1;
  while (i < text_.size() && (IsWord(text_[i]) || (text_[i] == '.' && i + 1 < text_.size() && IsLetter(text_[i + 1]))))
    ++i;
  t.text = text_.substr(at_, i - at_);
  return Done(t, t.text == "_" ? Tok::kUnderscore : Tok::kName, i);
}

Token Lexer::Variable(Token t) {
  const char c = text_[at_];
  size_t i = at_ + 1;
  if (i < text_.size() && text_[i] == '"') {
    std::string name;
    if (!Quoted(&i, &name)) {
      Fail(t, i, "this quoted name has no end, or a wrong escape");
      return Done(t, Tok::kBad, i);
    }
    t.text = name.size() + 3 == i - at_ ? text_.substr(at_ + 2, name.size()) : Keep(std::move(name));
    return Done(t, c == '%' ? Tok::kLocal : Tok::kGlobal, i);
  }
  while (i < text_.size() && IsWord(text_[i])) ++i;
  // "%layer1.0.weight": points are part of a name up to its last word; "%x.0" is a field of %x.
  if (i > at_ + 1 && IsLetter(text_[at_ + 1])) {
    for (size_t j = i; j + 1 < text_.size() && text_[j] == '.' && IsWord(text_[j + 1]);) {
      const bool word = IsLetter(text_[j + 1]);
      do ++j;
      while (j < text_.size() && IsWord(text_[j]));
      if (word) i = j;
    }
  }
  t.text = text_.substr(at_ + 1, i - at_ - 1);
  if (t.text.empty()) {
    Fail(t, i, fmt::format("a name must follow `{}`", c));
    return Done(t, Tok::kBad, i);
  }
  if (c == '%' && IsDigit(t.text[0])) {
    for (char x : t.text) {
      if (!IsDigit(x) || t.number > 100'000'000'000) {
        Fail(t, i, fmt::format("`%{}` is neither a number nor a name", t.text), fmt::format("write %\"{}\"", t.text));
        return Done(t, Tok::kBad, i);
      }
      t.number = t.number * 10 + (x - '0');
    }
    return Done(t, Tok::kTemp, i);
  }
  return Done(t, c == '%' ? Tok::kLocal : Tok::kGlobal, i);
}

Token Lexer::Number(Token t) {
  size_t i = at_;
  while (i < text_.size() && IsDigit(text_[i])) ++i;
  if (i + 1 < text_.size() && text_[i] == '.' && IsDigit(text_[i + 1])) {
    ++i;
    while (i < text_.size() && IsDigit(text_[i])) ++i;
  } else if (i < text_.size() && text_[i] == '.' && (i + 1 >= text_.size() || !IsLetter(text_[i + 1]))) {
    ++i;  // "1."
  }
  if (i < text_.size() && (text_[i] == 'e' || text_[i] == 'E')) {
    size_t j = i + 1;
    if (j < text_.size() && (text_[j] == '+' || text_[j] == '-')) ++j;
    if (j < text_.size() && IsDigit(text_[j])) {
      while (j < text_.size() && IsDigit(text_[j])) ++j;
      i = j;
    }
  }
  t.text = text_.substr(at_, i - at_);
  size_t s = i;
  while (i < text_.size() && IsWord(text_[i])) ++i;
  t.suffix = text_.substr(s, i - s);
  return Done(t, Tok::kNumber, i);
}

Token Lexer::Text(Token t) {
  size_t i = at_;
  std::string s;
  if (!Quoted(&i, &s)) {
    Fail(t, i, "this text has no end, or a wrong escape", "escapes are \\n \\t \\r \\\" \\\\ \\xNN");
    return Done(t, Tok::kBad, i);
  }
  t.text = s.size() + 2 == i - at_ ? text_.substr(at_ + 1, s.size()) : Keep(std::move(s));
  return Done(t, Tok::kString, i);
}

Token Lexer::Next() {
  SkipSpace();
  Token t;
  t.begin = at_;
  t.line = line_;
  t.column = static_cast<int32_t>(at_ - line_begin_) + 1;
  if (at_ >= text_.size()) return Done(t, Tok::kEnd, at_);
  const char c = text_[at_];
  const char d = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
  if (IsLetter(c)) return Word(t);
  if (c == '%' || c == '@') return Variable(t);
  if (IsDigit(c)) return Number(t);
  if (c == '"') return Text(t);
  if (c == '.' && IsDigit(d)) {
    size_t i = at_ + 1;
    while (i < text_.size() && IsDigit(text_[i]) && t.number < 100'000'000'000)
      t.number = t.number * 10 + (text_[i++] - '0');
    return Done(t, Tok::kField, i);
  }
  switch (c) {
    case '(':
      return Done(t, Tok::kLParen, at_ + 1);
    case ')':
      return Done(t, Tok::kRParen, at_ + 1);
    case '{':
      return Done(t, Tok::kLBrace, at_ + 1);
    case '}':
      return Done(t, Tok::kRBrace, at_ + 1);
    case '[':
      return Done(t, Tok::kLBracket, at_ + 1);
    case ']':
      return Done(t, Tok::kRBracket, at_ + 1);
    case ',':
      return Done(t, Tok::kComma, at_ + 1);
    case ';':
      return Done(t, Tok::kSemicolon, at_ + 1);
    case ':':
      return Done(t, Tok::kColon, at_ + 1);
    case '?':
      return Done(t, Tok::kQuestion, at_ + 1);
    case '+':
      return Done(t, Tok::kPlus, at_ + 1);
    case '*':
      return Done(t, Tok::kStar, at_ + 1);
    case '/':
      return Done(t, Tok::kSlash, at_ + 1);
    case '-':
      return d == '>' ? Done(t, Tok::kArrow, at_ + 2) : Done(t, Tok::kMinus, at_ + 1);
    case '=':
      return d == '>'   ? Done(t, Tok::kFatArrow, at_ + 2)
             : d == '=' ? Done(t, Tok::kEqual, at_ + 2)
                        : Done(t, Tok::kAssign, at_ + 1);
    case '<':
      return d == '=' ? Done(t, Tok::kLessEqual, at_ + 2) : Done(t, Tok::kLess, at_ + 1);
    case '>':
      return d == '=' ? Done(t, Tok::kGreaterEqual, at_ + 2) : Done(t, Tok::kGreater, at_ + 1);
    case '!':
      if (d == '=') return Done(t, Tok::kNotEqual, at_ + 2);
      break;
    case '#':
      if (d == '[') return Done(t, Tok::kHash, at_ + 2);
      break;
    default:
      break;
  }
  size_t i = at_ + 1;
  while (i < text_.size() && (static_cast<uint8_t>(text_[i]) & 0xc0) == 0x80) ++i;
  const auto u = static_cast<uint8_t>(c);
  Fail(t, i,
       u < 32 || u == 127 ? fmt::format("the byte 0x{:02x} has no meaning here", u)
                          : fmt::format("`{}` has no meaning here", text_.substr(at_, i - at_)));
  return Done(t, Tok::kBad, i);
}

std::string Describe(const Token& t, std::string_view text) {
  if (t.kind == Tok::kEnd) return "the end of the text";
  return fmt::format("`{}`", text.substr(t.begin, std::min<size_t>(t.end - t.begin, 40)));
}

}  // namespace baton::relay

// SPDX-License-Identifier: Apache-2.0
// Tokens of Relay text.
#pragma once

#include <baton/ir/diagnostic.h>

#include <string>
#include <string_view>

namespace baton::relay {

enum class Tok : uint8_t {
  kEnd,
  kName,    ///< nn.conv2d, let, Tensor
  kLocal,   ///< %x, %"any name"
  kTemp,    ///< %12
  kGlobal,  ///< @main
  kNumber,  ///< 12, 0.5, 1e-5, with suffix: 2f, 3i64
  kString,
  kField,  ///< .0 behind an expression
  kLParen,
  kRParen,
  kLBrace,
  kRBrace,
  kLBracket,
  kRBracket,
  kComma,
  kSemicolon,
  kColon,
  kAssign,
  kArrow,
  kFatArrow,
  kPlus,
  kMinus,
  kStar,
  kSlash,
  kLess,
  kGreater,
  kLessEqual,
  kGreaterEqual,
  kEqual,
  kNotEqual,
  kQuestion,
  kHash,  ///< #[
  kUnderscore,
  kBad,
};

struct Token {
  Tok kind = Tok::kEnd;
  size_t begin = 0, end = 0;  ///< bytes of the source
  int32_t line = 1, column = 1;
  int64_t number = 0;       ///< of kTemp and kPart
  std::string_view text;    ///< name without its sign; digits of a number with no suffix; a string without escapes
  std::string_view suffix;  ///< of a number
};

/// Reads token after token. Copies are cheap and serve for lookahead.
class Lexer {
 public:
  Lexer(std::string_view text, const SourceName& source, DiagnosticList* errors)
      : text_(text), source_(source), errors_(errors) {}
  Token Next();
  Span SpanOf(const Token& first, const Token& last) const;
  std::string_view text() const { return text_; }

 private:
  void SkipSpace();
  /// The token of this kind, which ends at `end`; the next begins there.
  Token Done(Token t, Tok kind, size_t end);
  Token Word(Token t);
  Token Variable(Token t);
  Token Number(Token t);
  Token Text(Token t);
  bool Quoted(size_t* at, std::string* out);
  void Fail(const Token& t, size_t end, const std::string& message, const std::string& help = "");
  std::string_view Keep(std::string s);

  std::string_view text_;
  SourceName source_;
  DiagnosticList* errors_;
  size_t at_ = 0;
  int32_t line_ = 1;
  size_t line_begin_ = 0;
  // Strings with escapes live as long as the lexer and its copies.
  Array<String> kept_;
};

/// How an error names a token: "`let`", "the end of the text".
std::string Describe(const Token& t, std::string_view text);

}  // namespace baton::relay

// SPDX-License-Identifier: Apache-2.0
// JSON: a small value, a bounded reader and a streaming writer. 64-bit integers are exact, doubles round trip.
#pragma once

#include <baton/support/export.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace baton::support {

/// Limits of a reader. The defaults suit files of a user; the size is bounded by the text that is at hand anyway.
struct JsonLimits {
  /// Arrays and objects within each other.
  size_t depth = 1000;
  /// Accept NaN, Infinity and -Infinity, which are not JSON but which Python writes and our own writer can.
  bool allow_nonfinite = false;
};

/// Reads JSON piece by piece, without recursion and without building anything. Errors are std::runtime_error
/// "<what>:<line>:<column>: <message>". The text must outlive the reader.
class BATON_DLL JsonReader {
 public:
  enum Event { kBeginObject, kEndObject, kBeginArray, kEndArray, kKey, kString, kInt, kDouble, kBool, kNull, kEnd };

  JsonReader(std::string_view text, const char* what, JsonLimits limits = {});
  /// The next piece; after the last one kEnd, and anything but white space before it is an error.
  Event Next();
  /// Text of the last kKey or kString, valid until the next call.
  std::string_view text() const { return string_; }
  int64_t int_value() const { return int_; }
  double double_value() const { return double_; }
  bool bool_value() const { return int_ != 0; }
  /// Passes over the value whose first event was the last one returned.
  void SkipValue();
  /// How many arrays and objects are open.
  size_t depth() const { return stack_.size(); }
  /// Throws with the place of the last event.
  [[noreturn]] void Fail(const std::string& message) const;

 private:
  Event Value();
  Event Number();
  void String();
  unsigned Hex4();
  void SkipSpace();
  void Literal(const char* word);
  [[noreturn]] void FailAt(size_t at, const std::string& message) const;

  std::string_view text_;
  const char* what_;
  JsonLimits limits_;
  size_t at_ = 0, last_ = 0;
  enum State : uint8_t { kValue, kFirstElement, kAfterElement, kFirstKey, kAfterMember, kDone };
  State state_ = kValue;
  Event event_ = kNull;
  std::vector<char> stack_;  // '[' or '{'
  std::string buffer_;
  std::string_view string_;
  int64_t int_ = 0;
  double double_ = 0;
};

/// A JSON value of 16 bytes. Moves, does not copy (Clone does). Members of an object keep their order; a repeated name
/// is refused by the parser. Access of the wrong kind throws std::runtime_error; depth never recurses.
class BATON_DLL Json {
 public:
  enum Kind : uint8_t { kNull, kBool, kInt, kDouble, kString, kArray, kObject };
  using Member = std::pair<std::string, Json>;

  Json() noexcept : kind_(kNull), int_(0) {}
  Json(std::nullptr_t) noexcept : Json() {}                                  // NOLINT
  Json(bool v) noexcept : kind_(kBool), int_(v) {}                           // NOLINT
  Json(int v) noexcept : kind_(kInt), int_(v) {}                             // NOLINT
  Json(int64_t v) noexcept : kind_(kInt), int_(v) {}                         // NOLINT
  Json(double v) noexcept : kind_(kDouble), double_(v) {}                    // NOLINT
  Json(std::string_view v) : kind_(kString), string_(new std::string(v)) {}  // NOLINT
  Json(const char* v) : Json(std::string_view(v)) {}                         // NOLINT
  Json(const std::string& v) : Json(std::string_view(v)) {}                  // NOLINT
  Json(Json&& o) noexcept : kind_(o.kind_), int_(o.int_) { o.kind_ = kNull; }
  Json& operator=(Json&& o) noexcept;
  Json(const Json&) = delete;
  Json& operator=(const Json&) = delete;
  ~Json() {
    if (kind_ >= kString) Destroy();
  }
  static Json Array();
  static Json Object();
  Json Clone() const;

  /// The whole text as one value. `what` names the source in errors.
  static Json Parse(std::string_view text, const char* what = "JSON", JsonLimits limits = {});
  /// Indented by two spaces a level unless `compact`.
  std::string Dump(bool compact = true, bool allow_nonfinite = false) const;

  Kind kind() const { return kind_; }
  bool is_null() const { return kind_ == kNull; }
  bool is_int() const { return kind_ == kInt; }
  bool is_number() const { return kind_ == kInt || kind_ == kDouble; }
  bool is_string() const { return kind_ == kString; }
  bool is_array() const { return kind_ == kArray; }
  bool is_object() const { return kind_ == kObject; }

  bool AsBool() const;
  int64_t AsInt() const;
  /// An integer counts as a number, too.
  double AsDouble() const;
  const std::string& AsString() const;
  const std::vector<Json>& AsArray() const;
  std::vector<Json>& AsArray();
  const std::vector<Member>& AsObject() const;
  std::vector<Member>& AsObject();

  /// Elements or members; 0 for anything else.
  size_t size() const;
  const Json& operator[](size_t i) const;
  /// The member of that name, or null. Linear in the number of members.
  const Json* Find(std::string_view name) const;
  /// The member of that name; its absence is an error that names it.
  const Json& At(std::string_view name) const;
  void Push(Json v) { AsArray().push_back(std::move(v)); }
  /// Adds or replaces a member.
  void Set(std::string_view name, Json v);
  /// Adds a member that is known to be new, in constant time.
  void Add(std::string_view name, Json v) { AsObject().emplace_back(std::string(name), std::move(v)); }

 private:
  struct ArrayBox;
  struct ObjectBox;
  void Destroy() noexcept;
  void Require(Kind kind) const;

  Kind kind_;
  union {
    int64_t int_;
    double double_;
    std::string* string_;
    ArrayBox* array_;
    ObjectBox* object_;
  };
};

/// Writes JSON into a string as it comes; the caller keeps the order right.
class BATON_DLL JsonWriter {
 public:
  /// `indent` spaces a level; 0 writes everything on one line.
  explicit JsonWriter(std::string* out, int indent = 0, bool allow_nonfinite = false)
      : out_(out), indent_(indent), allow_nonfinite_(allow_nonfinite) {}

  void BeginObject() { Open('{'); }
  void EndObject() { Close('}'); }
  void BeginArray() { Open('['); }
  void EndArray() { Close(']'); }
  void Key(std::string_view key);
  /// Must be UTF-8.
  void String(std::string_view s);
  void Int(int64_t v);
  /// The shortest digits that read back to the same bits; always with a point or exponent, so it stays a double.
  void Double(double v);
  void Bool(bool v);
  void Null();
  void Value(const Json& v);

 private:
  void Open(char c);
  void Close(char c);
  void Before();
  void NewLine();
  void Quoted(std::string_view s);

  std::string* out_;
  int indent_;
  bool allow_nonfinite_;
  bool first_ = true, after_key_ = false;
  int depth_ = 0;
};

/// The length of the valid UTF-8 sequence that `s` begins with, 0 if there is none.
BATON_DLL size_t Utf8Sequence(std::string_view s);

}  // namespace baton::support

// SPDX-License-Identifier: Apache-2.0
#include <baton/support/json.h>
#include <baton/support/text.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

namespace baton::support {

size_t Utf8Sequence(std::string_view s) {
  if (s.empty()) return 0;
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(s[i]); };
  const uint8_t c = byte(0);
  if (c < 0x80) return 1;
  const size_t n = c >= 0xc2 && c <= 0xdf ? 2 : (c & 0xf0) == 0xe0 ? 3 : c >= 0xf0 && c <= 0xf4 ? 4 : 0;
  if (n == 0 || s.size() < n) return 0;
  for (size_t i = 1; i < n; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // Overlong forms, surrogates, and beyond U+10FFFF.
  if ((c == 0xe0 && byte(1) < 0xa0) || (c == 0xed && byte(1) > 0x9f) || (c == 0xf0 && byte(1) < 0x90) ||
      (c == 0xf4 && byte(1) > 0x8f)) {
    return 0;
  }
  return n;
}

// --- reader ---------------------------------------------------------------------------------------------------------

JsonReader::JsonReader(std::string_view text, const char* what, JsonLimits limits)
    : text_(text), what_(what), limits_(limits) {
  if (text_.substr(0, 3) == "\xef\xbb\xbf") at_ = 3;  // the byte order mark that some editors write
}

void JsonReader::FailAt(size_t at, const std::string& message) const {
  size_t line = 1, begin = 0;
  for (size_t i = 0; i < at && i < text_.size(); ++i) {
    if (text_[i] == '\n') ++line, begin = i + 1;
  }
  throw std::runtime_error(Cat(what_, ":", line, ":", at - begin + 1, ": ", message));
}

void JsonReader::Fail(const std::string& message) const { FailAt(last_, message); }

void JsonReader::Literal(const char* word) {
  const size_t n = std::strlen(word);
  if (text_.substr(at_, n) != word) FailAt(at_, "expected a value");
  at_ += n;
}

// The library is built for size; these run at each byte.
#pragma GCC push_options
#pragma GCC optimize("O2")
void JsonReader::SkipSpace() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c != ' ' && c != '\n' && c != '\t' && c != '\r') break;
    ++at_;
  }
}

JsonReader::Event JsonReader::Next() {
  SkipSpace();
  last_ = at_;
  const char c = at_ < text_.size() ? text_[at_] : '\0';
  const bool end = at_ >= text_.size();
  switch (state_) {
    case kDone:
      if (!end) FailAt(at_, "text follows the end of the value");
      return event_ = kEnd;
    case kAfterElement:
    case kAfterMember: {
      const bool array = state_ == kAfterElement;
      if (!end && c == (array ? ']' : '}')) break;
      if (end || c != ',') {
        FailAt(at_, end     ? "the text ends within an array or object"
                    : array ? "expected `,` or `]`"
                            : "expected `,` or `}`");
      }
      ++at_;
      SkipSpace();
      last_ = at_;
      if (array) return Value();
      [[fallthrough]];
    }
    case kFirstKey:
      if (state_ == kFirstKey && !end && c == '}') break;
      if (at_ >= text_.size() || text_[at_] != '"') {
        FailAt(at_, at_ >= text_.size() ? "the text ends within an object" : "expected a name in double quotes");
      }
      String();
      SkipSpace();
      if (at_ >= text_.size() || text_[at_] != ':') FailAt(at_, "expected `:`");
      ++at_;
      state_ = kValue;
      return event_ = kKey;
    case kFirstElement:
      if (!end && c == ']') break;
      return Value();
    case kValue:
      return Value();
  }
  // A closing bracket.
  ++at_;
  event_ = stack_.back() == '[' ? kEndArray : kEndObject;
  stack_.pop_back();
  state_ = stack_.empty() ? kDone : stack_.back() == '[' ? kAfterElement : kAfterMember;
  return event_;
}

JsonReader::Event JsonReader::Value() {
  if (at_ >= text_.size()) FailAt(at_, text_.empty() ? "the text is empty" : "the text ends where a value is expected");
  const char c = text_[at_];
  if (c == '[' || c == '{') {
    if (stack_.size() >= limits_.depth) {
      FailAt(at_, Cat("nested deeper than the limit of ", limits_.depth));
    }
    ++at_;
    stack_.push_back(c);
    state_ = c == '[' ? kFirstElement : kFirstKey;
    return event_ = c == '[' ? kBeginArray : kBeginObject;
  }
  state_ = stack_.empty() ? kDone : stack_.back() == '[' ? kAfterElement : kAfterMember;
  switch (c) {
    case '"':
      String();
      return event_ = kString;
    case 't':
      Literal("true");
      int_ = 1;
      return event_ = kBool;
    case 'f':
      Literal("false");
      int_ = 0;
      return event_ = kBool;
    case 'n':
      Literal("null");
      return event_ = kNull;
    default:
      return event_ = Number();
  }
}

JsonReader::Event JsonReader::Number() {
  const size_t begin = at_;
  const auto peek = [&] { return at_ < text_.size() ? text_[at_] : '\0'; };
  const auto digits = [&] {
    const size_t from = at_;
    while (peek() >= '0' && peek() <= '9') ++at_;
    return at_ - from;
  };
  const bool negative = peek() == '-';
  if (negative) ++at_;
  if (peek() == 'N' || peek() == 'I') {
    const bool nan = peek() == 'N';
    if (!limits_.allow_nonfinite || (nan && negative)) FailAt(begin, "expected a value");
    Literal(nan ? "NaN" : "Infinity");
    double_ = nan ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
    if (negative) double_ = -double_;
    return kDouble;
  }
  const size_t first = at_;
  if (digits() == 0) FailAt(begin, "expected a value");
  if (text_[first] == '0' && at_ - first > 1) FailAt(begin, "a number begins with a needless 0");
  bool integer = true;
  if (peek() == '.') {
    ++at_;
    integer = false;
    if (digits() == 0) FailAt(at_, "expected digits after the point");
  }
  if (peek() == 'e' || peek() == 'E') {
    ++at_;
    integer = false;
    if (peek() == '+' || peek() == '-') ++at_;
    if (digits() == 0) FailAt(at_, "expected digits in the exponent");
  }
  const char *from = text_.data() + begin, *to = text_.data() + at_;
  if (integer && std::from_chars(from, to, int_).ec == std::errc()) {
    // "-0" is the double: the integer would lose its sign.
    if (int_ != 0 || !negative) return kInt;
  }
  const auto result = std::from_chars(from, to, double_);
  if (result.ec != std::errc()) {
    // Out of range: too small is zero, too large cannot be kept.
    const bool tiny = [&] {
      for (const char* p = from; p != to; ++p) {
        if (*p == 'e' || *p == 'E') return p[1] == '-';
      }
      return text_[first] == '0';
    }();
    if (!tiny) FailAt(begin, "the number does not fit into a double");
    double_ = negative ? -0.0 : 0.0;
  }
  return kDouble;
}

#pragma GCC pop_options

unsigned JsonReader::Hex4() {
  unsigned v = 0;
  if (text_.size() - at_ < 4) FailAt(at_, "the text ends within an escape");
  for (int i = 0; i < 4; ++i) {
    const char c = text_[at_];
    const int d = c >= '0' && c <= '9'   ? c - '0'
                  : c >= 'a' && c <= 'f' ? c - 'a' + 10
                  : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                         : -1;
    if (d < 0) FailAt(at_, "expected four hexadecimal digits");
    v = v * 16 + unsigned(d);
    ++at_;
  }
  return v;
}

void JsonReader::String() {
  const size_t open = at_++;
  size_t begin = at_;
  bool escaped = false;
  for (;;) {
    size_t at = at_;
    while (at < text_.size() && text_[at] >= 0x20 && text_[at] != '"' && text_[at] != '\\') ++at;  // char is signed
    at_ = at;
    if (at_ >= text_.size()) FailAt(open, "the string has no end");
    const uint8_t c = static_cast<uint8_t>(text_[at_]);
    if (c == '"') break;
    if (c < 0x20) FailAt(at_, "control character in a string; write it as \\u00xx");
    if (c >= 0x80) {
      const size_t n = Utf8Sequence(text_.substr(at_, 4));
      if (n == 0) FailAt(at_, "the string is not UTF-8");
      at_ += n;
      continue;
    }
    if (c != '\\') {
      ++at_;
      continue;
    }
    if (!escaped) buffer_.clear();
    escaped = true;
    buffer_.append(text_.data() + begin, at_ - begin);
    ++at_;
    const char e = at_ < text_.size() ? text_[at_] : '\0';
    static constexpr char kFrom[] = "\"\\/bfnrt", kTo[] = "\"\\/\b\f\n\r\t";
    const char* known = e ? std::strchr(kFrom, e) : nullptr;
    if (known) {
      buffer_.push_back(kTo[known - kFrom]);
      ++at_;
    } else if (e == 'u') {
      const size_t escape = at_ - 1;
      ++at_;
      unsigned v = Hex4();
      if (v >= 0xdc00 && v <= 0xdfff) FailAt(escape, "the second half of a surrogate pair stands alone");
      if (v >= 0xd800 && v <= 0xdbff) {
        if (text_.substr(at_, 2) != "\\u") FailAt(escape, "the first half of a surrogate pair stands alone");
        at_ += 2;
        const unsigned low = Hex4();
        if (low < 0xdc00 || low > 0xdfff) FailAt(escape, "the first half of a surrogate pair stands alone");
        v = 0x10000 + ((v - 0xd800) << 10) + (low - 0xdc00);
      }
      if (v < 0x80) {
        buffer_.push_back(char(v));
      } else if (v < 0x800) {
        buffer_.push_back(char(0xc0 | v >> 6));
        buffer_.push_back(char(0x80 | (v & 0x3f)));
      } else if (v < 0x10000) {
        buffer_.push_back(char(0xe0 | v >> 12));
        buffer_.push_back(char(0x80 | (v >> 6 & 0x3f)));
        buffer_.push_back(char(0x80 | (v & 0x3f)));
      } else {
        buffer_.push_back(char(0xf0 | v >> 18));
        buffer_.push_back(char(0x80 | (v >> 12 & 0x3f)));
        buffer_.push_back(char(0x80 | (v >> 6 & 0x3f)));
        buffer_.push_back(char(0x80 | (v & 0x3f)));
      }
    } else {
      FailAt(at_ - 1, "unknown escape");
    }
    begin = at_;
  }
  if (escaped) {
    buffer_.append(text_.data() + begin, at_ - begin);
    string_ = buffer_;
  } else {
    string_ = text_.substr(begin, at_ - begin);
  }
  ++at_;
}

void JsonReader::SkipValue() {
  if (event_ == kKey) Next();
  if (event_ != kBeginArray && event_ != kBeginObject) return;
  const size_t outside = depth() - 1;
  while (depth() > outside) Next();
}

// --- value ----------------------------------------------------------------------------------------------------------

// The links string the boxes together while they are destroyed, so that depth costs no stack and no memory.
struct Json::ArrayBox {
  std::vector<Json> items;
  Json next;
};
struct Json::ObjectBox {
  std::vector<Member> items;
  Json next;
};

Json Json::Array() {
  Json j;
  j.array_ = new ArrayBox();
  j.kind_ = kArray;
  return j;
}

Json Json::Object() {
  Json j;
  j.object_ = new ObjectBox();
  j.kind_ = kObject;
  return j;
}

Json& Json::operator=(Json&& o) noexcept {
  if (this != &o) {
    Json old(std::move(*this));
    kind_ = o.kind_;
    int_ = o.int_;
    o.kind_ = kNull;
  }
  return *this;
}

void Json::Destroy() noexcept {
  if (kind_ == kString) {
    delete string_;
    kind_ = kNull;
    return;
  }
  Json pending(std::move(*this));
  // Moves a container into the list; what is left behind is null and needs no work.
  const auto take = [&pending](Json& child) {
    if (child.kind_ < kArray) return;
    Json taken(std::move(child));
    Json& next = taken.kind_ == kArray ? taken.array_->next : taken.object_->next;
    next.kind_ = pending.kind_, next.int_ = pending.int_;
    pending.kind_ = taken.kind_, pending.int_ = taken.int_;
    taken.kind_ = kNull;
  };
  while (pending.kind_ != kNull) {
    const Kind kind = pending.kind_;
    ArrayBox* array = pending.array_;
    ObjectBox* object = pending.object_;
    Json& next = kind == kArray ? array->next : object->next;
    pending.kind_ = next.kind_, pending.int_ = next.int_;
    next.kind_ = kNull;
    if (kind == kArray) {
      for (Json& v : array->items) take(v);
      delete array;
    } else {
      for (Member& m : object->items) take(m.second);
      delete object;
    }
  }
}

Json Json::Clone() const {
  Json root;
  std::vector<std::pair<const Json*, Json*>> work{{this, &root}};
  while (!work.empty()) {
    const auto [from, to] = work.back();
    work.pop_back();
    switch (from->kind_) {
      case kString:
        *to = Json(*from->string_);
        break;
      case kArray:
        *to = Array();
        to->array_->items.resize(from->array_->items.size());
        for (size_t i = 0; i < from->array_->items.size(); ++i) {
          work.emplace_back(&from->array_->items[i], &to->array_->items[i]);
        }
        break;
      case kObject:
        *to = Object();
        to->object_->items.resize(from->object_->items.size());
        for (size_t i = 0; i < from->object_->items.size(); ++i) {
          to->object_->items[i].first = from->object_->items[i].first;
          work.emplace_back(&from->object_->items[i].second, &to->object_->items[i].second);
        }
        break;
      default:
        to->kind_ = from->kind_;
        to->int_ = from->int_;
    }
  }
  return root;
}

void Json::Require(Kind kind) const {
  static constexpr const char* kNames[] = {"null",     "a boolean", "an integer", "a number",
                                           "a string", "an array",  "an object"};
  if (kind_ != kind) {
    throw std::runtime_error(Cat("JSON: expected ", kNames[kind], ", got ", kNames[kind_]));
  }
}

bool Json::AsBool() const { return Require(kBool), int_ != 0; }
int64_t Json::AsInt() const { return Require(kInt), int_; }
double Json::AsDouble() const {
  if (kind_ == kInt) return static_cast<double>(int_);
  return Require(kDouble), double_;
}
const std::string& Json::AsString() const { return Require(kString), *string_; }
const std::vector<Json>& Json::AsArray() const { return Require(kArray), array_->items; }
std::vector<Json>& Json::AsArray() { return Require(kArray), array_->items; }
const std::vector<Json::Member>& Json::AsObject() const { return Require(kObject), object_->items; }
std::vector<Json::Member>& Json::AsObject() { return Require(kObject), object_->items; }

size_t Json::size() const {
  return kind_ == kArray ? array_->items.size() : kind_ == kObject ? object_->items.size() : 0;
}

const Json& Json::operator[](size_t i) const {
  const std::vector<Json>& a = AsArray();
  if (i >= a.size()) {
    throw std::runtime_error(Cat("JSON: element ", i, " of an array of ", a.size()));
  }
  return a[i];
}

const Json* Json::Find(std::string_view name) const {
  for (const Member& m : AsObject()) {
    if (m.first == name) return &m.second;
  }
  return nullptr;
}

const Json& Json::At(std::string_view name) const {
  const Json* v = Find(name);
  if (!v) throw std::runtime_error(Cat("JSON: the object has no member `", name, "`"));
  return *v;
}

void Json::Set(std::string_view name, Json v) {
  for (Member& m : AsObject()) {
    if (m.first == name) {
      m.second = std::move(v);
      return;
    }
  }
  Add(name, std::move(v));
}

namespace {

/// Refuses a name that an object has twice; sorted when there are many, so that time stays n log n.
void CheckRepeated(const JsonReader& reader, const std::vector<Json::Member>& members) {
  const auto fail = [&](std::string_view name) {
    reader.Fail(Cat("the object that ends here has `", name, "` twice"));
  };
  if (members.size() <= 8) {
    for (size_t i = 1; i < members.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (members[i].first == members[j].first) fail(members[i].first);
      }
    }
    return;
  }
  std::vector<std::string_view> names;
  names.reserve(members.size());
  for (const Json::Member& m : members) names.push_back(m.first);
  std::sort(names.begin(), names.end());
  for (size_t i = 1; i < names.size(); ++i) {
    if (names[i] == names[i - 1]) fail(names[i]);
  }
}

}  // namespace

Json Json::Parse(std::string_view text, const char* what, JsonLimits limits) {
  JsonReader reader(text, what, limits);
  Json root;
  // Finished on the way out: a child moves into its parent when it closes, so no pointer goes stale.
  std::vector<Json> open;
  std::vector<std::string> names;  // one for each open object: the member that is being read
  const auto put = [&](Json v) {
    if (open.empty()) {
      root = std::move(v);
    } else if (open.back().is_array()) {
      open.back().array_->items.push_back(std::move(v));
    } else {
      open.back().object_->items.emplace_back(std::move(names.back()), std::move(v));
    }
  };
  for (;;) {
    switch (reader.Next()) {
      case JsonReader::kBeginObject:
        open.push_back(Object());
        names.emplace_back();
        break;
      case JsonReader::kBeginArray:
        open.push_back(Array());
        break;
      case JsonReader::kEndObject:
        CheckRepeated(reader, open.back().object_->items);
        names.pop_back();
        [[fallthrough]];
      case JsonReader::kEndArray: {
        Json v = std::move(open.back());
        open.pop_back();
        put(std::move(v));
        break;
      }
      case JsonReader::kKey:
        names.back() = std::string(reader.text());
        break;
      case JsonReader::kString:
        put(Json(reader.text()));
        break;
      case JsonReader::kInt:
        put(Json(reader.int_value()));
        break;
      case JsonReader::kDouble:
        put(Json(reader.double_value()));
        break;
      case JsonReader::kBool:
        put(Json(reader.bool_value()));
        break;
      case JsonReader::kNull:
        put(Json());
        break;
      case JsonReader::kEnd:
        return root;
    }
  }
}

}  // namespace baton::support

// SPDX-License-Identifier: Apache-2.0
// Writing JSON. The runtime only reads it: this file belongs to the libraries that write.
#include <baton/support/json.h>

#include <charconv>
#include <cmath>
#include <cstring>
#include <stdexcept>

namespace baton::support {

std::string Json::Dump(bool compact, bool allow_nonfinite) const {
  std::string out;
  JsonWriter w(&out, compact ? 0 : 2, allow_nonfinite);
  w.Value(*this);
  return out;
}

// --- writer ---------------------------------------------------------------------------------------------------------

void JsonWriter::NewLine() {
  if (indent_ == 0) return;
  out_->push_back('\n');
  out_->append(size_t(indent_) * size_t(depth_), ' ');
}

void JsonWriter::Before() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (depth_ == 0) return;
  if (!first_) out_->push_back(',');
  first_ = false;
  NewLine();
}

void JsonWriter::Open(char c) {
  Before();
  out_->push_back(c);
  ++depth_;
  first_ = true;
}

void JsonWriter::Close(char c) {
  --depth_;
  if (!first_) NewLine();
  out_->push_back(c);
  first_ = false;
}

void JsonWriter::Key(std::string_view key) {
  Before();
  Quoted(key);
  out_->push_back(':');
  if (indent_) out_->push_back(' ');
  after_key_ = true;
}

void JsonWriter::String(std::string_view s) {
  Before();
  Quoted(s);
}

void JsonWriter::Quoted(std::string_view s) {
  out_->push_back('"');
  size_t begin = 0;
  for (size_t i = 0; i < s.size();) {
    const uint8_t c = static_cast<uint8_t>(s[i]);
    if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\') {
      ++i;
      continue;
    }
    if (c >= 0x80) {
      const size_t n = Utf8Sequence(s.substr(i, 4));
      if (n == 0) throw std::runtime_error("JSON: a string that is not UTF-8 cannot be written");
      i += n;
      continue;
    }
    out_->append(s.data() + begin, i - begin);
    static constexpr char kFrom[] = "\"\\\b\f\n\r\t", kTo[] = "\"\\bfnrt";
    const char* known = c ? std::strchr(kFrom, c) : nullptr;
    out_->push_back('\\');
    if (known) {
      out_->push_back(kTo[known - kFrom]);
    } else {
      static constexpr char kHex[] = "0123456789abcdef";
      out_->append("u00");
      out_->push_back(kHex[c >> 4]);
      out_->push_back(kHex[c & 15]);
    }
    begin = ++i;
  }
  out_->append(s.data() + begin, s.size() - begin);
  out_->push_back('"');
}

void JsonWriter::Int(int64_t v) {
  Before();
  char buffer[24];
  out_->append(buffer, std::to_chars(buffer, buffer + sizeof(buffer), v).ptr);
}

void JsonWriter::Double(double v) {
  if (!std::isfinite(v) && !allow_nonfinite_) throw std::runtime_error("JSON: NaN and infinity cannot be written");
  Before();
  if (std::isnan(v)) {
    out_->append("NaN");
  } else if (std::isinf(v)) {
    out_->append(v < 0 ? "-Infinity" : "Infinity");
  } else {
    char buffer[40];
    char* end = std::to_chars(buffer, buffer + sizeof(buffer), v).ptr;
    const size_t n = size_t(end - buffer);
    out_->append(buffer, n);
    if (!std::memchr(buffer, '.', n) && !std::memchr(buffer, 'e', n)) out_->append(".0");
  }
}

void JsonWriter::Bool(bool v) {
  Before();
  out_->append(v ? "true" : "false");
}

void JsonWriter::Null() {
  Before();
  out_->append("null");
}

void JsonWriter::Value(const Json& value) {
  // Open containers and how far each is written.
  std::vector<std::pair<const Json*, size_t>> open;
  const auto write = [&](const Json& v) {
    switch (v.kind()) {
      case Json::kNull:
        return Null();
      case Json::kBool:
        return Bool(v.AsBool());
      case Json::kInt:
        return Int(v.AsInt());
      case Json::kDouble:
        return Double(v.AsDouble());
      case Json::kString:
        return String(v.AsString());
      case Json::kArray:
        BeginArray();
        break;
      case Json::kObject:
        BeginObject();
        break;
    }
    open.emplace_back(&v, 0);
  };
  write(value);
  while (!open.empty()) {
    const Json& v = *open.back().first;
    if (open.back().second == v.size()) {
      v.is_array() ? EndArray() : EndObject();
      open.pop_back();
      continue;
    }
    const size_t i = open.back().second++;
    if (v.is_array()) {
      write(v.AsArray()[i]);
    } else {
      Key(v.AsObject()[i].first);
      write(v.AsObject()[i].second);
    }
  }
}

}  // namespace baton::support

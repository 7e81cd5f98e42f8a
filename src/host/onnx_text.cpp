// SPDX-License-Identifier: Apache-2.0
// ONNX's operators on strings. A tensor of strings is a list of three arrays: the bytes of all in a row (uint8), where
// each ends (int64), and its shape (int64).
#include <algorithm>
#include <numeric>

#include "host/onnx_values.h"
#include "host/regex.h"

namespace baton::host {
namespace {

struct Text {
  std::vector<std::string> strings;
  Ints shape;
};

Text ReadText(const Params& p, const Values& in, size_t i) {
  const List parts = ListAt(p, in, i);
  if (parts.size() != 3) p.Fail(Cat("operand ", i, " holds no strings"));
  Values fields(parts.begin(), parts.end());
  const NDArray bytes = TensorAt(p, fields, 0), ends = TensorAt(p, fields, 1), shape = TensorAt(p, fields, 2);
  if (!(bytes.dtype() == DataType::UInt(8)) || !(ends.dtype() == DataType::Int(64)) || !shape.dtype().is_integral())
    p.Fail(Cat("operand ", i, " holds no strings"));
  Text out;
  out.shape = shape.ToInts();
  int64_t count = 1, begin = 0;
  for (int64_t n : out.shape) {
    if (n < 0 || __builtin_mul_overflow(count, n, &count)) p.Fail(Cat("strings of shape ", ShowInts(out.shape)));
  }
  if (count != ends.numel()) p.Fail(Cat(ends.numel(), " strings of shape ", ShowInts(out.shape)));
  const char* data = bytes.ptr<char>();
  for (int64_t k = 0; k < count; ++k) {
    const int64_t end = ends.GetInt(k);
    if (end < begin || end > bytes.numel()) p.Fail("the ends of strings are not in order");
    out.strings.emplace_back(data + begin, static_cast<size_t>(end - begin));
    begin = end;
  }
  return out;
}

ObjectRef WriteText(const Text& text) {
  size_t size = 0;
  for (const std::string& s : text.strings) size += s.size();
  const auto count = static_cast<int64_t>(text.strings.size());
  NDArray bytes = NDArray::Empty({static_cast<int64_t>(size)}, DataType::UInt(8)),
          ends = NDArray::Empty({count}, DataType::Int(64)),
          shape = NDArray::Empty({static_cast<int64_t>(text.shape.size())}, DataType::Int(64));
  char* to = bytes.ptr<char>();
  for (int64_t k = 0; k < count; ++k) {
    const std::string& s = text.strings[static_cast<size_t>(k)];
    to = std::copy(s.begin(), s.end(), to);
    I64(ends)[k] = to - bytes.ptr<char>();
  }
  std::copy(text.shape.begin(), text.shape.end(), I64(shape));
  const Values parts{bytes, ends, shape};
  return List(parts.begin(), parts.end());
}

/// Calls `use(i, j)` with the places in a and b of each element of the shape that both broadcast to.
template <class Use>
Ints Broadcast(const Params& p, const Text& a, const Text& b, Use use) {
  const size_t rank = std::max(a.shape.size(), b.shape.size());
  auto padded = [&](Ints s) {
    s.insert(s.begin(), rank - s.size(), 1);
    return s;
  };
  const Ints x = padded(a.shape), y = padded(b.shape);
  Ints out(rank);
  int64_t count = 1;
  for (size_t d = 0; d < rank; ++d) {
    if (x[d] != y[d] && x[d] != 1 && y[d] != 1)
      p.Fail(Cat("strings of shape ", ShowInts(a.shape), " and ", ShowInts(b.shape), " do not broadcast"));
    out[d] = x[d] == 1 ? y[d] : x[d];
    count *= out[d];
  }
  for (int64_t k = 0; k < count; ++k) {
    int64_t rest = k, i = 0, j = 0, in_x = 1, in_y = 1;
    for (size_t d = rank; d-- > 0; rest /= out[d]) {
      i += (x[d] == 1 ? 0 : rest % out[d]) * in_x;
      j += (y[d] == 1 ? 0 : rest % out[d]) * in_y;
      in_x *= x[d], in_y *= y[d];
    }
    use(static_cast<size_t>(i), static_cast<size_t>(j));
  }
  return out;
}

ObjectRef ConcatTexts(const Params& p, const Values& in) {
  const Text a = ReadText(p, in, 0), b = ReadText(p, in, 1);
  Text out;
  out.shape = Broadcast(p, a, b, [&](size_t i, size_t j) { out.strings.push_back(a.strings[i] + b.strings[j]); });
  return WriteText(out);
}

ObjectRef EqualTexts(const Params& p, const Values& in) {
  const Text a = ReadText(p, in, 0), b = ReadText(p, in, 1);
  std::vector<uint8_t> same;
  const Ints shape = Broadcast(p, a, b, [&](size_t i, size_t j) { same.push_back(a.strings[i] == b.strings[j]); });
  NDArray out = NDArray::Empty(shape, DataType::Bool());
  std::copy(same.begin(), same.end(), out.ptr<uint8_t>());
  return out;
}

/// FNV-1a, as the importer and Python compute it.
ObjectRef HashTexts(const Params& p, const Values& in) {
  const Text text = ReadText(p, in, 0);
  NDArray out = NDArray::Empty(text.shape, DataType::Int(64));
  for (size_t k = 0; k < text.strings.size(); ++k) {
    uint64_t h = 0xcbf29ce484222325;
    for (char c : text.strings[k]) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    I64(out)[k] = static_cast<int64_t>(h);
  }
  return out;
}

/// A code point in the other case: Latin, Greek and Cyrillic letters.
uint32_t WithCase(uint32_t c, bool upper) {
  static constexpr struct {
    uint32_t first, last, lower;  // capitals, and the first small letter
  } kLetters[] = {{0x41, 0x5a, 0x61},    {0xc0, 0xd6, 0xe0},    {0xd8, 0xde, 0xf8},
                  {0x391, 0x3a9, 0x3b1}, {0x410, 0x42f, 0x430}, {0x400, 0x40f, 0x450}};
  for (const auto& l : kLetters) {
    if (!upper && c >= l.first && c <= l.last) return c - l.first + l.lower;
    if (upper && c >= l.lower && c <= l.lower + (l.last - l.first)) return c - l.lower + l.first;
  }
  // Pairs of a capital and its small letter.
  if ((c >= 0x100 && c <= 0x137) || (c >= 0x14a && c <= 0x177)) return upper ? c & ~1u : c | 1u;
  return c;
}
std::string InCase(const std::string& s, bool upper) {
  std::string out;
  for (size_t i = 0; i < s.size(); ++i) {
    const auto a = static_cast<unsigned char>(s[i]);
    const auto b = static_cast<unsigned char>(i + 1 < s.size() ? s[i + 1] : 0);
    if (a >= 0xc3 && a < 0xe0 && (b & 0xc0) == 0x80) {  // of two bytes
      const uint32_t c = WithCase((a & 0x1fu) << 6 | (b & 0x3fu), upper);
      out += static_cast<char>(0xc0 | c >> 6);
      out += static_cast<char>(0x80 | (c & 0x3f));
      ++i;
    } else {
      out += a < 0x80 ? static_cast<char>(WithCase(a, upper)) : s[i];
    }
  }
  return out;
}

std::string TextOr(const Params& p, const char* name, const char* otherwise) {
  return p.Find(name) ? p.Text(name) : otherwise;
}

ObjectRef Normalize(const Params& p, const Values& in) {
  const Text text = ReadText(p, in, 0);
  const size_t rank = text.shape.size();
  if (rank != 1 && !(rank == 2 && text.shape[0] == 1))
    p.Fail(Cat("strings of shape ", ShowInts(text.shape), ", where [n] or [1, n] is wanted"));
  const std::string action = TextOr(p, "case_change_action", "NONE");
  if (action != "NONE" && action != "LOWER" && action != "UPPER") p.Fail(Cat("`case_change_action` is `", action, "`"));
  const bool sensitive = p.Find("is_case_sensitive") && p.Int("is_case_sensitive") != 0;
  std::vector<std::string> stop;
  if (p.Find("stopwords")) {
    for (const support::Json& word : p.At("stopwords").AsArray()) {
      stop.push_back(sensitive ? word.AsString() : InCase(word.AsString(), false));
    }
  }
  Text out;
  for (const std::string& s : text.strings) {
    if (std::find(stop.begin(), stop.end(), sensitive ? s : InCase(s, false)) != stop.end()) continue;
    out.strings.push_back(action == "NONE" ? s : InCase(s, action == "UPPER"));
  }
  if (out.strings.empty()) out.strings.emplace_back();
  out.shape = text.shape;
  out.shape.back() = static_cast<int64_t>(out.strings.size());
  return WriteText(out);
}

/// The parts of a string; an empty delimiter stands for runs of white space.
std::vector<std::string> PartsOf(const std::string& s, const std::string& delimiter, int64_t most) {
  std::vector<std::string> out;
  auto space = [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); };
  size_t at = 0;
  if (delimiter.empty()) {
    while (true) {
      while (at < s.size() && space(s[at])) ++at;
      if (at == s.size()) return out;
      if (static_cast<int64_t>(out.size()) == most) {
        size_t end = s.size();
        while (end > at && space(s[end - 1])) --end;
        out.push_back(s.substr(at, end - at));
        return out;
      }
      size_t end = at;
      while (end < s.size() && !space(s[end])) ++end;
      out.push_back(s.substr(at, end - at));
      at = end;
    }
  }
  while (static_cast<int64_t>(out.size()) != most) {
    const size_t end = s.find(delimiter, at);
    if (end == std::string::npos) break;
    out.push_back(s.substr(at, end - at));
    at = end + delimiter.size();
  }
  out.push_back(s.substr(at));
  return out;
}

ObjectRef SplitTexts(const Params& p, const Values& in) {
  const Text text = ReadText(p, in, 0);
  const std::string delimiter = TextOr(p, "delimiter", "");
  const int64_t most = p.Find("maxsplit") ? p.Int("maxsplit") : -1;
  std::vector<std::vector<std::string>> parts;
  size_t width = 0;
  NDArray counts = NDArray::Empty(text.shape, DataType::Int(64));
  for (const std::string& s : text.strings) {
    parts.push_back(PartsOf(s, delimiter, most));
    width = std::max(width, parts.back().size());
    I64(counts)[parts.size() - 1] = static_cast<int64_t>(parts.back().size());
  }
  Text out;
  out.shape = text.shape;
  out.shape.push_back(static_cast<int64_t>(width));
  for (std::vector<std::string>& row : parts) {
    row.resize(width);
    out.strings.insert(out.strings.end(), row.begin(), row.end());
  }
  const Values both{WriteText(out), counts};
  return List(both.begin(), both.end());
}

/// The bytes of the code point at a place.
size_t WidthAt(std::string_view s, size_t at) {
  size_t end = at + 1;
  while (end < s.size() && (static_cast<unsigned char>(s[end]) & 0xc0) == 0x80) ++end;
  return end - at;
}
size_t CharactersOf(std::string_view s) {
  return static_cast<size_t>(std::count_if(s.begin(), s.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

/// Calls `match(begin, end)` for the matches of a string that are not empty, from its begin on.
template <class F>
void EachMatch(const Regex& regex, std::string_view s, F match) {
  for (size_t at = 0; at < s.size();) {
    const size_t end = regex.EndOfMatch(s, at);
    if (end == std::string_view::npos || end == at) {
      at += WidthAt(s, at);
    } else {
      match(at, end);
      at = end;
    }
  }
}

Regex RegexOf(const Params& p, const char* attribute, const std::string& pattern) {
  std::string fault;
  Regex regex(pattern, &fault);
  if (!fault.empty()) p.Fail(Cat("`", attribute, "`: ", fault));
  return regex;
}

/// How com.microsoft's Tokenizer divides a string.
class Divider {
 public:
  explicit Divider(const Params& p) : least_(static_cast<size_t>(std::max<int64_t>(p.Int("mincharnum"), 1))) {
    if (p.Find("tokenexp") && !p.Text("tokenexp").empty()) {
      tokens_.push_back(RegexOf(p, "tokenexp", p.Text("tokenexp")));
    } else if (p.Find("separators")) {
      for (const support::Json& s : p.At("separators").AsArray()) {
        letters_ |= s.AsString().empty();
        if (!s.AsString().empty()) separators_.push_back(RegexOf(p, "separators", s.AsString()));
      }
    }
    if (tokens_.empty() && separators_.empty() && !letters_) p.Fail("one of `separators` and `tokenexp` is wanted");
    if (letters_ && !separators_.empty()) p.Fail("an empty separator stands alone");
  }

  std::vector<std::string> operator()(const std::string& s) const {
    std::vector<std::string> parts;
    if (letters_) {
      for (size_t at = 0; at < s.size(); at += WidthAt(s, at)) parts.push_back(s.substr(at, WidthAt(s, at)));
    } else if (!tokens_.empty()) {
      EachMatch(tokens_[0], s, [&](size_t begin, size_t end) { parts.push_back(s.substr(begin, end - begin)); });
    } else {
      parts.push_back(s);
      for (const Regex& separator : separators_) parts = Between(separator, parts);
    }
    std::erase_if(parts, [&](const std::string& part) { return CharactersOf(part) < least_; });
    return parts;
  }

 private:
  static std::vector<std::string> Between(const Regex& separator, const std::vector<std::string>& parts) {
    std::vector<std::string> out;
    for (const std::string& s : parts) {
      size_t from = 0;
      EachMatch(separator, s, [&](size_t begin, size_t end) {
        out.push_back(s.substr(from, begin - from));
        from = end;
      });
      out.push_back(s.substr(from));
    }
    return out;
  }

  size_t least_;  // characters of a token
  bool letters_ = false;
  std::vector<Regex> tokens_, separators_;
};

/// com.microsoft's Tokenizer: tokens along a further dimension, filled up with `pad_value`.
ObjectRef Tokenize(const Params& p, const Values& in) {
  const Text text = ReadText(p, in, 0);
  if (text.shape.empty() || text.shape.size() > 2)
    p.Fail(Cat("strings of shape ", ShowInts(text.shape), ", where [C] or [N, C] is wanted"));
  const Divider divide(p);
  std::vector<std::vector<std::string>> rows;
  size_t width = 0;
  for (const std::string& s : text.strings) {
    rows.push_back(divide(s));
    width = std::max(width, rows.back().size());
  }
  const bool marked = p.Int("mark") != 0 && width > 0;  // nothing marks what holds no token at all
  if (marked) width += 2;
  Text out;
  out.shape = text.shape;
  out.shape.push_back(static_cast<int64_t>(width));
  for (std::vector<std::string>& row : rows) {
    if (marked) row.insert(row.begin(), "\x02"), row.emplace_back("\x03");
    row.resize(width, p.Text("pad_value"));
    out.strings.insert(out.strings.end(), row.begin(), row.end());
  }
  return WriteText(out);
}

ObjectRef FullMatch(const Params& p, const Values& in) {
  const Text text = ReadText(p, in, 0);
  const Regex regex = RegexOf(p, "pattern", TextOr(p, "pattern", ""));
  NDArray out = NDArray::Empty(text.shape, DataType::Bool());
  for (size_t k = 0; k < text.strings.size(); ++k) out.ptr<uint8_t>()[k] = regex.Matches(text.strings[k]);
  return out;
}

ObjectRef MakeText(const Params&, const Values& in) { return List(in.begin(), in.end()); }

const RegisterValues kTexts[] = {{"onnx.Text", MakeText},
                                 {"onnx.TextHash", HashTexts},
                                 {"onnx.EqualTexts", EqualTexts},
                                 {"onnx.StringConcat", ConcatTexts},
                                 {"onnx.StringNormalizer", Normalize},
                                 {"onnx.StringSplit", SplitTexts},
                                 {"onnx.RegexFullMatch", FullMatch},
                                 {"com.microsoft.Tokenizer", Tokenize}};

}  // namespace
}  // namespace baton::host

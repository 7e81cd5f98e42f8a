// SPDX-License-Identifier: Apache-2.0
#include <relay/text/literal.h>

#include <charconv>
#include <cmath>
#include <cstring>

namespace baton::relay {
namespace {

std::string FloatDigits(float v) {
  char buf[32];
  auto r = std::to_chars(buf, buf + sizeof buf, v);
  return std::string(buf, r.ptr);
}

}  // namespace

std::string DoubleText(double v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v > 0 ? "inf" : "-inf";
  char buf[32];
  auto r = std::to_chars(buf, buf + sizeof buf, v);
  return std::string(buf, r.ptr);
}

bool ScalarText(const NDArray& a, std::string* out) {
  if (!a.defined() || a->ndim != 0) return false;
  DataType t = a.dtype();
  if (t.lanes() != 1) return false;
  NDArray d = a.Contiguous();
  if (t.is_bool()) {
    const uint8_t v = *d.ptr<uint8_t>();
    if (v > 1) return false;
    *out += v ? "True" : "False";
    return true;
  }
  if (t.is_integral() && (t.bits() == 8 || t.bits() == 16 || t.bits() == 32 || t.bits() == 64)) {
    *out += t == DataType::UInt(64) ? std::to_string(*d.ptr<uint64_t>()) : std::to_string(d.GetInt(0));
    if (!(t == DataType::Int(32))) *out += (t.is_int() ? "i" : "u") + std::to_string(t.bits());
    return true;
  }
  if (t == DataType::Float(64)) {
    const double v = *d.ptr<double>();
    if (!std::isfinite(v)) return false;
    *out += DoubleText(v) + "f64";
    return true;
  }
  if (t == DataType::Float(32) || t == DataType::Float(16) || t == DataType::BFloat16()) {
    const double v = d.GetDouble(0);
    if (!std::isfinite(v)) return false;
    *out += FloatDigits(static_cast<float>(v));
    *out += t == DataType::Float(32) ? "f" : t == DataType::Float(16) ? "f16" : "bf16";
    return true;
  }
  return false;
}

NDArray ScalarFrom(std::string_view digits, std::string_view suffix) {
  const bool fraction = digits.find_first_of(".eE") != std::string_view::npos;
  const char *b = digits.data(), *e = b + digits.size();
  auto integer = [&](DataType t) -> NDArray {
    if (fraction) return NDArray();
    if (t == DataType::UInt(64)) {
      uint64_t v;
      auto r = std::from_chars(b, e, v);
      return r.ec == std::errc() && r.ptr == e ? NDArray::Scalar(v, t) : NDArray();
    }
    int64_t v;
    auto r = std::from_chars(b, e, v);
    if (r.ec != std::errc() || r.ptr != e) return NDArray();
    if (t.bits() < 64) {
      const int64_t lo = t.is_int() ? -(int64_t{1} << (t.bits() - 1)) : 0;
      const int64_t hi = t.is_int() ? (int64_t{1} << (t.bits() - 1)) - 1 : (int64_t{1} << t.bits()) - 1;
      if (v < lo || v > hi) return NDArray();
    }
    return NDArray::FromBytes(&v, {}, t);  // little-endian: the low bytes
  };
  if (suffix.empty() && !fraction) {
    NDArray narrow = integer(DataType::Int(32));
    return narrow.defined() ? narrow : integer(DataType::Int(64));
  }
  if (suffix[0] == 'i' || suffix[0] == 'u') {
    for (int bits : {8, 16, 32, 64}) {
      if (suffix.substr(1) == std::to_string(bits)) return integer(DataType(suffix[0] == 'i' ? kDLInt : kDLUInt, bits));
    }
    return NDArray();
  }
  if (suffix == "f64") {
    double v;
    auto r = std::from_chars(b, e, v);
    return r.ec == std::errc() && r.ptr == e ? NDArray::Scalar(v, DataType::Float(64)) : NDArray();
  }
  DataType t;
  if (suffix.empty() || suffix == "f" || suffix == "f32")
    t = DataType::Float(32);
  else if (suffix == "f16")
    t = DataType::Float(16);
  else if (suffix == "bf16")
    t = DataType::BFloat16();
  else
    return NDArray();
  float v;
  auto r = std::from_chars(b, e, v);
  if (r.ptr != e) return NDArray();
  // Underflow gives zero; overflow is an error.
  if (r.ec == std::errc::result_out_of_range) {
    double wide;
    if (std::from_chars(b, e, wide).ec != std::errc() || std::fabs(wide) > 1) return NDArray();
    v = static_cast<float>(wide);
  } else if (r.ec != std::errc()) {
    return NDArray();
  }
  if (t == DataType::Float(32)) return NDArray::Scalar(v, t);
  NDArray out = NDArray::Empty({}, t);
  out.SetDouble(0, v);
  return std::isfinite(out.GetDouble(0)) ? out : NDArray();
}

void QuoteText(std::string_view s, std::string* out) {
  *out += '"';
  for (char ch : s) {
    const auto c = static_cast<unsigned char>(ch);
    switch (ch) {
      case '"':
        *out += "\\\"";
        break;
      case '\\':
        *out += "\\\\";
        break;
      case '\n':
        *out += "\\n";
        break;
      case '\t':
        *out += "\\t";
        break;
      case '\r':
        *out += "\\r";
        break;
      default:
        if (c < 32 || c == 127) {
          static const char hex[] = "0123456789abcdef";
          *out += "\\x";
          *out += hex[c >> 4];
          *out += hex[c & 15];
        } else {
          *out += ch;
        }
    }
  }
  *out += '"';
}

bool IsName(std::string_view s) {
  if (s.empty() || (s[0] >= '0' && s[0] <= '9')) return false;
  for (char c : s) {
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_')) return false;
  }
  return true;
}

}  // namespace baton::relay

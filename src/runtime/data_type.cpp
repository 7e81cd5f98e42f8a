// SPDX-License-Identifier: Apache-2.0
#include <baton/runtime/data_type.h>
#include <baton/runtime/error.h>

#include <charconv>

namespace baton::runtime {
namespace {

struct Named {
  const char* name;
  DataType type;
};
// Types whose name is not a code followed by its bits. Longer names come before their prefixes.
constexpr Named kNamed[] = {
    {"bool", DataType::Bool()},
    {"float8_e4m3b11fnuz", DataType(kDLFloat8_e4m3b11fnuz, 8)},
    {"float8_e4m3fnuz", DataType(kDLFloat8_e4m3fnuz, 8)},
    {"float8_e4m3fn", DataType(kDLFloat8_e4m3fn, 8)},
    {"float8_e4m3", DataType(kDLFloat8_e4m3, 8)},
    {"float8_e5m2fnuz", DataType(kDLFloat8_e5m2fnuz, 8)},
    {"float8_e5m2", DataType(kDLFloat8_e5m2, 8)},
    {"float8_e3m4", DataType(kDLFloat8_e3m4, 8)},
    {"float8_e8m0fnu", DataType(kDLFloat8_e8m0fnu, 8)},
    {"float4_e2m1fn", DataType(kDLFloat4_e2m1fn, 4)},
    {"handle", DataType::Handle()},
    {"void", DataType::Void()},
};
struct Code {
  const char* name;
  int code;
};
constexpr Code kCodes[] = {
    {"int", kDLInt}, {"uint", kDLUInt}, {"float", kDLFloat}, {"bfloat", kDLBfloat}, {"complex", kDLComplex}};

}  // namespace

std::string DataType2String(DataType t) {
  std::string s;
  for (const Named& n : kNamed) {
    if (n.type == t.element_of() || (n.type.is_void() && t.is_void())) s = n.name;
    if (!s.empty()) break;
  }
  if (s.empty()) {
    for (const Code& c : kCodes) {
      if (c.code == t.code()) s = c.name + std::to_string(t.bits());
    }
    if (s.empty()) s = "custom" + std::to_string(t.code()) + "_" + std::to_string(t.bits());
  }
  if (t.lanes() > 1) s += "x" + std::to_string(t.lanes());
  return s;
}

bool TryString2DataType(std::string_view s, DataType* out) {
  auto number = [](std::string_view* s, int lo, int hi, int* out) {
    int v = 0;
    auto [p, ec] = std::from_chars(s->data(), s->data() + s->size(), v);
    if (ec != std::errc() || v < lo || v > hi) return false;
    s->remove_prefix(p - s->data());
    *out = v;
    return true;
  };
  DataType t;
  bool found = false;
  for (const Named& n : kNamed) {
    if (s.starts_with(n.name)) {
      t = n.type;
      s.remove_prefix(std::string_view(n.name).size());
      found = true;
      break;
    }
  }
  for (const Code& c : kCodes) {
    if (found || !s.starts_with(c.name)) continue;
    s.remove_prefix(std::string_view(c.name).size());
    int bits = 32;
    if (!s.empty() && s[0] != 'x' && !number(&s, 1, 128, &bits)) return false;
    t = DataType(c.code, bits);
    if (t == DataType::UInt(1)) t = DataType::Bool();  // as bools were written once
    found = true;
    break;
  }
  if (!found) return false;
  if (!s.empty()) {
    int lanes = 1;
    if (s[0] != 'x') return false;
    s.remove_prefix(1);
    if (!number(&s, 1, 65535, &lanes) || !s.empty()) return false;
    t = t.with_lanes(lanes);
  }
  *out = t;
  return true;
}

DataType String2DataType(std::string_view s) {
  DataType t;
  if (!TryString2DataType(s, &t)) {
    throw TypeError("unknown dtype \"" + std::string(s.substr(0, 60)) +
                    "\"; known are bool, int8..int64, uint8..uint64, float16, float32, float64, bfloat16, "
                    "float8_e4m3fn, float8_e5m2, complex64, each with lanes as in float32x4");
  }
  return t;
}

}  // namespace baton::runtime

// SPDX-License-Identifier: Apache-2.0
#include <ir/node/json.h>

#include <cstdint>
#include <cstring>

namespace baton::json {
namespace {
constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string Base64(const void* data, size_t n) {
  const auto* p = static_cast<const uint8_t*>(data);
  std::string out((n + 2) / 3 * 4, '=');
  size_t o = 0;
  for (size_t i = 0; i < n; i += 3) {
    uint32_t v = p[i] << 16 | (i + 1 < n ? p[i + 1] << 8 : 0) | (i + 2 < n ? p[i + 2] : 0);
    out[o] = kDigits[v >> 18];
    out[o + 1] = kDigits[v >> 12 & 63];
    if (i + 1 < n) out[o + 2] = kDigits[v >> 6 & 63];
    if (i + 2 < n) out[o + 3] = kDigits[v & 63];
    o += 4;
  }
  return out;
}

bool Unbase64(std::string_view s, std::string* out) {
  static const auto* table = [] {
    auto* t = new int8_t[256];
    std::memset(t, -1, 256);
    for (int i = 0; i < 64; ++i) t[static_cast<uint8_t>(kDigits[i])] = static_cast<int8_t>(i);
    return t;
  }();
  if (s.size() % 4) return false;
  out->clear();
  out->reserve(s.size() / 4 * 3);
  for (size_t i = 0; i < s.size(); i += 4) {
    int pad = i + 4 == s.size() ? (s[i + 3] == '=') + (s[i + 3] == '=' && s[i + 2] == '=') : 0;
    uint32_t v = 0;
    for (int j = 0; j < 4; ++j) {
      int d = j >= 4 - pad ? 0 : table[static_cast<uint8_t>(s[i + j])];
      if (d < 0) return false;
      v = v << 6 | static_cast<uint32_t>(d);
    }
    out->push_back(static_cast<char>(v >> 16));
    if (pad < 2) out->push_back(static_cast<char>(v >> 8 & 255));
    if (pad < 1) out->push_back(static_cast<char>(v & 255));
  }
  return true;
}

}  // namespace baton::json

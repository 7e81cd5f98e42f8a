// SPDX-License-Identifier: Apache-2.0
#include <baton/support/hash.h>

#include <bit>
#include <cstring>

namespace baton::support {
namespace {

constexpr uint64_t kA = 0xa0761d6478bd642fu, kB = 0xe7037ed1a0b428dbu, kC = 0x589965cc75374cc3u;

uint64_t Load64(const uint8_t* p) {
  uint64_t v;
  std::memcpy(&v, p, 8);
  if constexpr (std::endian::native == std::endian::big) v = __builtin_bswap64(v);
  return v;
}
/// Up to eight bytes, zero-extended.
uint64_t LoadTail(const uint8_t* p, size_t n) {
  uint64_t v = 0;
  for (size_t i = 0; i < n; ++i) v |= uint64_t(p[i]) << (8 * i);
  return v;
}

}  // namespace

uint64_t HashBytes(const void* data, size_t size, uint64_t seed) noexcept {
  const uint8_t* p = static_cast<const uint8_t*>(data);
  size_t n = size;
  uint64_t h = HashMix(seed ^ kA, kB);
  if (n > 32) {
    uint64_t g = h;
    for (; n > 32; n -= 32, p += 32) {
      h = HashMix(Load64(p) ^ kA, Load64(p + 8) ^ h);
      g = HashMix(Load64(p + 16) ^ kC, Load64(p + 24) ^ g);
    }
    h ^= g;
  }
  for (; n >= 16; n -= 16, p += 16) h = HashMix(Load64(p) ^ kB, Load64(p + 8) ^ h);
  const uint64_t lo = n >= 8 ? Load64(p) : LoadTail(p, n);
  const uint64_t hi = n > 8 ? LoadTail(p + 8, n - 8) : 0;
  // The size enters, so that trailing zeros count.
  return HashMix(HashMix(lo ^ kB, hi ^ h) ^ kC, size ^ kA);
}

}  // namespace baton::support

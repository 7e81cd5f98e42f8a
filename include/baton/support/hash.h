// SPDX-License-Identifier: Apache-2.0
// A 64-bit hash that is the same on every machine, in every process and in every release: it may be stored.
// Not for secrets: an adversary can make collisions (use sha256.h for what must not be forged).
#pragma once

#include <baton/support/export.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace baton::support {

/// Multiplies to 128 bits and folds the halves: the mixing step of all below.
inline constexpr uint64_t HashMix(uint64_t a, uint64_t b) {
#ifdef __SIZEOF_INT128__
  const unsigned __int128 p = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(p) ^ static_cast<uint64_t>(p >> 64);
#else
  const uint64_t a0 = static_cast<uint32_t>(a), a1 = a >> 32, b0 = static_cast<uint32_t>(b), b1 = b >> 32;
  const uint64_t low = a0 * b0, middle = a1 * b0 + (low >> 32), other = a0 * b1 + static_cast<uint32_t>(middle);
  return (other << 32 | static_cast<uint32_t>(low)) ^ (a1 * b1 + (middle >> 32) + (other >> 32));
#endif
}

/// Joins one more word to a hash; the order matters.
inline constexpr uint64_t HashCombine(uint64_t hash, uint64_t value) {
  // Both operands are offset by odd constants so that zero is not a fixed point.
  return HashMix(hash ^ 0x9e3779b97f4a7c15u, value ^ 0xd1b54a32d192ed03u) + 0x8bb84b93962eacc9u;
}

/// A hash of bytes: about 10 GB/s for long ones.
BATON_DLL uint64_t HashBytes(const void* data, size_t size, uint64_t seed = 0) noexcept;
inline uint64_t HashString(std::string_view s, uint64_t seed = 0) noexcept {
  return HashBytes(s.data(), s.size(), seed);
}

}  // namespace baton::support

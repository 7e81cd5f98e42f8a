// SPDX-License-Identifier: Apache-2.0
#include <baton/support/machine.h>
#include <baton/support/sha256.h>

#include <cstring>
#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace baton::support {
namespace {

alignas(64) constexpr uint32_t kRound[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint32_t Rotate(uint32_t x, int n) { return x >> n | x << (32 - n); }

void BlocksPortable(uint32_t* state, const uint8_t* p, size_t blocks) {
  for (; blocks; --blocks, p += 64) {
    uint32_t w[64];
    for (int i = 0; i < 16; ++i) {
      w[i] = uint32_t(p[4 * i]) << 24 | uint32_t(p[4 * i + 1]) << 16 | uint32_t(p[4 * i + 2]) << 8 | p[4 * i + 3];
    }
    for (int i = 16; i < 64; ++i) {
      const uint32_t s0 = Rotate(w[i - 15], 7) ^ Rotate(w[i - 15], 18) ^ w[i - 15] >> 3;
      const uint32_t s1 = Rotate(w[i - 2], 17) ^ Rotate(w[i - 2], 19) ^ w[i - 2] >> 10;
      w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    uint32_t v[8];
    std::memcpy(v, state, sizeof(v));
    for (int i = 0; i < 64; ++i) {
      const uint32_t s1 = Rotate(v[4], 6) ^ Rotate(v[4], 11) ^ Rotate(v[4], 25);
      const uint32_t t1 = v[7] + s1 + ((v[4] & v[5]) ^ (~v[4] & v[6])) + kRound[i] + w[i];
      const uint32_t s0 = Rotate(v[0], 2) ^ Rotate(v[0], 13) ^ Rotate(v[0], 22);
      const uint32_t t2 = s0 + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
      for (int j = 7; j > 0; --j) v[j] = v[j - 1];
      v[4] += t1;
      v[0] = t1 + t2;
    }
    for (int i = 0; i < 8; ++i) state[i] += v[i];
  }
}

#ifdef __x86_64__
/// The SHA extensions: two rounds an instruction; the state is stored as ABEF and CDGH.
[[gnu::target("sha,sse4.1,ssse3")]] void BlocksSha(uint32_t* state, const uint8_t* p, size_t blocks) {
  const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  __m128i t = _mm_shuffle_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(state)), 0xb1);       // CDAB
  __m128i s1 = _mm_shuffle_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(state + 4)), 0x1b);  // EFGH
  __m128i s0 = _mm_alignr_epi8(t, s1, 8);                                                              // ABEF
  s1 = _mm_blend_epi16(s1, t, 0xf0);                                                                   // CDGH
  for (; blocks; --blocks, p += 64) {
    const __m128i old0 = s0, old1 = s1;
    __m128i w[4];
    for (int i = 0; i < 4; ++i) {
      w[i] = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 16 * i)), swap);
    }
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
      __m128i& now = w[i & 3];
      const __m128i k = _mm_add_epi32(now, _mm_load_si128(reinterpret_cast<const __m128i*>(kRound + 4 * i)));
      s1 = _mm_sha256rnds2_epu32(s1, s0, k);
      s0 = _mm_sha256rnds2_epu32(s0, s1, _mm_shuffle_epi32(k, 0x0e));
      if (i < 12) {
        // Words 16 later: w[t-16] + sigma0(w[t-15]) + w[t-7], then sigma1 of the two words before.
        const __m128i &a = w[(i + 1) & 3], &b = w[(i + 2) & 3], &c = w[(i + 3) & 3];
        now = _mm_sha256msg2_epu32(_mm_add_epi32(_mm_sha256msg1_epu32(now, a), _mm_alignr_epi8(c, b, 4)), c);
      }
    }
    s0 = _mm_add_epi32(s0, old0);
    s1 = _mm_add_epi32(s1, old1);
  }
  t = _mm_shuffle_epi32(s0, 0x1b);                                                     // FEBA
  s1 = _mm_shuffle_epi32(s1, 0xb1);                                                    // DCHG
  _mm_storeu_si128(reinterpret_cast<__m128i*>(state), _mm_blend_epi16(t, s1, 0xf0));   // DCBA
  _mm_storeu_si128(reinterpret_cast<__m128i*>(state + 4), _mm_alignr_epi8(s1, t, 8));  // HGFE
}
#endif

void Blocks(uint32_t* state, const uint8_t* p, size_t blocks, bool portable) {
#ifdef __x86_64__
  static const bool fast = HasCpuFeature("sha") && HasCpuFeature("sse4.1");
  if (fast && !portable) return BlocksSha(state, p, blocks);
#endif
  (void)portable;
  BlocksPortable(state, p, blocks);
}

}  // namespace

Sha256::Sha256(bool portable)
    : state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19},
      portable_(portable) {}

void Sha256::Update(const void* data, size_t size) {
  if (size == 0) return;  // `data` may be null
  const uint8_t* p = static_cast<const uint8_t*>(data);
  const size_t held = total_ % 64;
  total_ += size;
  if (held) {
    const size_t take = size < 64 - held ? size : 64 - held;
    std::memcpy(block_ + held, p, take);
    if (held + take < 64) return;
    Blocks(state_, block_, 1, portable_);
    p += take, size -= take;
  }
  if (size >= 64) Blocks(state_, p, size / 64, portable_);
  if (size % 64) std::memcpy(block_, p + size / 64 * 64, size % 64);
}

Sha256::Digest Sha256::Finish() {
  const uint64_t bits = total_ * 8;
  const size_t held = total_ % 64;
  uint8_t tail[128] = {};
  std::memcpy(tail, block_, held);
  tail[held] = 0x80;
  const size_t blocks = held < 56 ? 1 : 2;
  for (int i = 0; i < 8; ++i) tail[blocks * 64 - 1 - i] = uint8_t(bits >> (8 * i));
  Blocks(state_, tail, blocks, portable_);
  Digest out;
  for (int i = 0; i < 32; ++i) out[i] = uint8_t(state_[i / 4] >> (24 - 8 * (i % 4)));
  return out;
}

Sha256::Digest Sha256Of(const void* data, size_t size) {
  Sha256 h;
  h.Update(data, size);
  return h.Finish();
}

std::string ToHex(const uint8_t* data, size_t size) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (size_t i = 0; i < size; ++i) {
    out.push_back(kDigits[data[i] >> 4]);
    out.push_back(kDigits[data[i] & 15]);
  }
  return out;
}

std::string Sha256Hex(std::string_view bytes) {
  const Sha256::Digest d = Sha256Of(bytes.data(), bytes.size());
  return ToHex(d.data(), d.size());
}

}  // namespace baton::support

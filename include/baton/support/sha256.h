// SPDX-License-Identifier: Apache-2.0
// SHA-256 (FIPS 180-4), for the digests of artifacts and packages. Uses the processor's instructions where it has them.
#pragma once

#include <baton/support/export.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace baton::support {

class BATON_DLL Sha256 {
 public:
  using Digest = std::array<uint8_t, 32>;

  /// `portable`: without the processor's instructions, for tests of the plain form.
  explicit Sha256(bool portable = false);
  void Update(const void* data, size_t size);
  void Update(std::string_view bytes) { Update(bytes.data(), bytes.size()); }
  /// The digest of all that was given; the object is spent then.
  Digest Finish();

 private:
  uint32_t state_[8];
  uint64_t total_ = 0;
  uint8_t block_[64];
  bool portable_;
};

BATON_DLL Sha256::Digest Sha256Of(const void* data, size_t size);
/// 64 lower-case hexadecimal digits.
BATON_DLL std::string Sha256Hex(std::string_view bytes);
BATON_DLL std::string ToHex(const uint8_t* data, size_t size);

}  // namespace baton::support

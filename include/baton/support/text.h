// SPDX-License-Identifier: Apache-2.0
// Text made of pieces, for messages: one call instead of a chain of temporaries, which keeps the code small.
#pragma once

#include <baton/support/export.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace baton::support {

/// A piece of text: characters, or an integer that is written in decimal.
struct TextPiece {
  const char* data;
  uint64_t value;
  enum Kind : uint8_t { kText, kSigned, kUnsigned } kind;

  TextPiece(std::string_view s) : data(s.data()), value(s.size()), kind(kText) {}  // NOLINT
  TextPiece(const std::string& s) : TextPiece(std::string_view(s)) {}              // NOLINT
  TextPiece(const char* s) : TextPiece(std::string_view(s)) {}                     // NOLINT
  template <class I,
            class = std::enable_if_t<std::is_integral_v<I> && !std::is_same_v<I, bool> && !std::is_same_v<I, char>>>
  TextPiece(I v)
      : data(nullptr), value(static_cast<uint64_t>(v)), kind(std::is_signed_v<I> ? kSigned : kUnsigned) {}  // NOLINT
};

BATON_DLL std::string JoinPieces(const TextPiece* pieces, size_t count);

/// Cat("a tensor of ", n, " elements")
template <class... A>
std::string Cat(const A&... a) {
  const TextPiece pieces[] = {TextPiece(a)...};
  return JoinPieces(pieces, sizeof...(A));
}

}  // namespace baton::support

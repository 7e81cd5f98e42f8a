// SPDX-License-Identifier: Apache-2.0
#include <baton/support/text.h>

#include <charconv>

namespace baton::support {

std::string JoinPieces(const TextPiece* pieces, size_t count) {
  std::string out;
  for (size_t i = 0; i < count; ++i) {
    const TextPiece& p = pieces[i];
    char buffer[24];
    if (p.kind == TextPiece::kText) {
      out.append(p.data, p.value);
    } else if (p.kind == TextPiece::kSigned) {
      out.append(buffer, std::to_chars(buffer, buffer + sizeof(buffer), static_cast<int64_t>(p.value)).ptr);
    } else {
      out.append(buffer, std::to_chars(buffer, buffer + sizeof(buffer), p.value).ptr);
    }
  }
  return out;
}

}  // namespace baton::support

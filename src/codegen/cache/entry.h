// SPDX-License-Identifier: Apache-2.0
// One entry of the kernel cache: object code, and what it was made of.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace baton::codegen::cache {

/// The inputs of the object code of one module of LLVM.
struct Unit {
  std::string functions;  ///< symbols of its functions, with spaces between: what people know it by
  std::string code;       ///< digest of the module before LLVM's passes, 64 hexadecimal digits
  std::string target;     ///< triple, processor, features, passes
  std::string build;      ///< of the compiler and of LLVM

  /// The file: a part for each field, so that names tell why an entry does not fit.
  std::string Name() const;
};

/// A name taken apart; each part is a digest of the unit's field.
struct NameParts {
  std::string_view functions, target, build, code;
};
/// Nothing for a file that is not an entry.
std::optional<NameParts> PartsOf(std::string_view name);

struct Entry {
  Unit unit;
  int64_t made = 0;  ///< seconds since 1970
  std::string object;
};

/// The bytes of a file, which end with their own digest.
std::string Pack(const Entry& entry);
/// Why bytes are not an entry.
struct Refusal {
  const char* reason;  ///< "corrupt", or "version" for another version of the format
  std::string why;
};
/// The entry, or nothing and why in `*refusal`: other bytes than those that were written never pass.
std::optional<Entry> Unpack(std::string_view bytes, Refusal* refusal);

/// The most bytes of a file that is read.
inline constexpr uint64_t kMostBytes = uint64_t{1} << 30;

}  // namespace baton::codegen::cache

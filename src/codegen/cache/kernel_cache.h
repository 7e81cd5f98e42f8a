// SPDX-License-Identifier: Apache-2.0
// Object code that LLVM made, kept on disk for other processes. The environment says where and whether: BATON_CACHE=0
// turns it off, BATON_CACHE_DIR (else XDG_CACHE_HOME/baton, else ~/.cache/baton) has the folder `kernels`,
// BATON_CACHE_SIZE is the most that it takes (1G).
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "codegen/cache/directory.h"
#include "codegen/cache/entry.h"

namespace baton::codegen::cache {

struct Settings {
  std::string folder;
  uint64_t most = uint64_t{1} << 30;  ///< bytes of all files
  std::string off;                    ///< why nothing is kept; "" where it is on
  /// Throws ValueError for a value of a variable that means nothing.
  static Settings FromEnvironment();
};

/// The most entries: each time something is kept, all are looked at.
inline constexpr size_t kMostEntries = 16384;

/// Finds and keeps object code. Threads and processes may do so at the same time. Neither throws for the disk's
/// sake: each look-up that finds nothing has a reason, which `Events` and the folder's log tell.
class KernelCache {
 public:
  /// By the environment and the PassContext (`codegen.cache`); null where it is off.
  static std::shared_ptr<const KernelCache> Current();
  explicit KernelCache(Settings settings) : settings_(std::move(settings)) {}

  /// The object code of a unit: the very bytes that were kept for it.
  std::optional<std::string> Find(const Unit& unit) const;
  void Keep(const Unit& unit, const std::string& object) const;
  /// Removes the entries that were not used for longest until what is left fits.
  void Trim(const Directory& folder) const;

 private:
  Settings settings_;
};

}  // namespace baton::codegen::cache

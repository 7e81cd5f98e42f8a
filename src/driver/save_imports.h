// SPDX-License-Identifier: Apache-2.0
// Modules of others that a compiled module imports, as its artifact carries them.
#pragma once

#include <baton/runtime/module.h>

#include <string>
#include <vector>

namespace baton::driver {

struct SavedImports {
  std::string data;  ///< as vm::LoadImports takes it; "" for none
  std::string rows;  ///< for the manifest, as JSON: key, bytes, SHA-256 and imports (by number) of each; "" for none
};

/// Saves what `imports` reach, each once. Throws UnsupportedError that names the kind of a module that cannot be saved.
SavedImports SaveImports(const std::vector<runtime::Module>& imports);

}  // namespace baton::driver

// SPDX-License-Identifier: Apache-2.0
// Modules that a compiled module calls and carries along: their bytes are data of its code, one symbol.
#pragma once

#include <baton/runtime/module.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace baton::vm {

/// The symbol of that data.
inline constexpr const char* kImportsSymbol = "baton_imports";
/// The key of modules that are compiled code, saved as separate artifacts.
inline constexpr const char* kLibraryKey = "library";

/// A module as it is saved.
struct SavedImport {
  std::string key;                ///< whose loader reads it: "runtime.module.loadbinary_KEY"
  std::string data;               ///< what that loader gets
  std::vector<uint32_t> imports;  ///< rows behind its own that it imports
};

/// "BATONIMP", u32 version, u64 number of modules; of each its key, u64 number of imports, u32 each, its data; u64
/// number of the modules that the module itself imports, u32 each; the SHA-256 of all before.
std::string BATON_DLL PackImports(const std::vector<SavedImport>& rows, const std::vector<uint32_t>& own);

/// The modules of such data, as PackImports got them in `own`, each with its imports. Throws RuntimeError for data that
/// is cut, changed or of another version, for a key without a loader, and for a loader that fails or gives no module.
std::vector<runtime::Module> BATON_DLL LoadImports(std::string_view data);

/// Imports the modules that the code of `code` carries; nothing where it carries none.
void ImportCarried(const runtime::Module& code);

}  // namespace baton::vm

// SPDX-License-Identifier: Apache-2.0
// The artifact file: [ELF][padding to 64][constants][padding to 64][manifest][trailer]. The trailer is
//   u64 offset of the constants, u64 their size, u64 offset of the manifest, u64 its size, u32 format version, u32
//   zero, 32 bytes SHA-256 of all before, 8 bytes "BATONART"
// and closes the file, so that a file cut anywhere has none. The system's loader passes over what follows an ELF. The
// runtime reads artifacts (artifact.cpp), the compiler writes them (driver/write_artifact.cpp).
#pragma once

#include <baton/runtime/executor.h>
#include <baton/support/json.h>
#include <baton/support/sha256.h>

#include <cstddef>
#include <cstdint>

namespace baton::runtime::artifact {

inline constexpr uint32_t kFormatVersion = 1;
inline constexpr char kMagic[] = "BATONART";
inline constexpr size_t kDigest = 32, kTrailer = 4 * 8 + 2 * 4 + kDigest + 8;
inline constexpr char kElfMagic[] =
    "\x7f"
    "ELF";

/// The SHA-256 of the manifest as the code has it, so that a manifest that was changed alone is not believed. Code that
/// is not written to a file yet has kNoManifest there, which is not a digest.
inline constexpr const char* kManifestSymbol = "baton_manifest_digest";
inline constexpr char kNoManifest[kDigest + 1] = "baton: this code has no manifest";

/// The SHA-256 of the numbers by which the entry is called (EntryNumbers), as the code has it: a manifest that was
/// written anew, with every digest of it, is not believed either. kNoNumbers before the code is written to a file.
inline constexpr const char* kNumbersSymbol = "baton_entry_numbers";
inline constexpr char kNoNumbers[kDigest + 1] = "baton: this code has no numbers.";

/// The digest of sizes, shapes, dtypes, words and programs.
BATON_DLL support::Sha256::Digest EntryNumbers(const ExecutableDesc& desc);

/// Returns the model that a manifest describes; throws ValueError for an invalid one.
BATON_DLL ExecutableDesc ReadDesc(const support::Json& j);

#if defined(__x86_64__)
inline constexpr const char* kArch = "x86_64";
#elif defined(__aarch64__)
inline constexpr const char* kArch = "aarch64";
#elif defined(__riscv) && __riscv_xlen == 64
inline constexpr const char* kArch = "riscv64";
#elif defined(__arm__)
inline constexpr const char* kArch = "arm";
#else
inline constexpr const char* kArch = "unknown";
#endif

}  // namespace baton::runtime::artifact

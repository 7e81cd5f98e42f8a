// SPDX-License-Identifier: Apache-2.0
// What makes code for a kind of target. A new device is a folder beside this one's implementations, which registers its
// backend: nothing above names it.
#pragma once

#include <baton/codegen/codegen.h>
#include <baton/ir/module.h>
#include <baton/ir/target.h>
#include <baton/ir/transform.h>

#include <string>
#include <vector>

namespace baton::codegen {

struct EmitOptions {
  int num_threads = 2;                    ///< that make object files; each makes one
  DebugLevel debug = DebugLevel::kNames;  ///< of object files
};

/// Code of PrimFuncs. Which of both it is follows from `TargetKind::on_host`.
struct Code {
  ObjectCode objects;  ///< of a processor: to be loaded or linked
  std::string text;    ///< of a device: its program, which the global function "NAME.CreateModule" of library
                       ///< libbaton_NAME loads
};

struct Backend {
  /// What passes and schedules ask (`Target::traits`).
  TargetKind kind;
  /// The passes from PrimFuncs as schedules leave them to those that `emit` and `print` take.
  transform::Pass (*tir_pipeline)();
  /// Throws UnsupportedError that names the function for what the device cannot do.
  Code (*emit)(const IRModule& mod, const Target& target, const EmitOptions& options);
  /// Names of its texts, for those that ask for a module's source; the first is the usual one.
  std::vector<std::string> formats;
  std::string (*print)(const IRModule& mod, const Target& target, const std::string& format, DebugLevel debug);

  BATON_DLL bool HasFormat(const std::string& format) const;
};

/// Adds a backend and its kind; throws InternalError for a name that is taken.
BATON_DLL void RegisterBackend(Backend backend);
/// The backend of a target. Throws UnsupportedError for a kind without one.
BATON_DLL const Backend& BackendOf(const Target& target);
/// The backend whose code runs on a device of this type; null if there is none.
BATON_DLL const Backend* BackendFor(int64_t device_type);
/// Whether `format` is a name of a device's text, of any backend but the host's.
BATON_DLL bool IsDeviceFormat(const std::string& format);

/// Registers a backend where a file says so.
struct RegisterBackendAs {
  explicit RegisterBackendAs(Backend backend) { RegisterBackend(std::move(backend)); }
};

}  // namespace baton::codegen

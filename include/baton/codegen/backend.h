// SPDX-License-Identifier: Apache-2.0
// What makes code for a kind of target. A new device is a folder beside this one's implementations, which registers its
// backend: nothing above names it.
#pragma once

#include <baton/codegen/codegen.h>
#include <baton/ir/module.h>
#include <baton/ir/target.h>
#include <baton/ir/transform.h>
#include <baton/runtime/executor.h>
#include <baton/runtime/ndarray.h>

#include <string>
#include <utility>
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

/// A model that is one function of known shapes.
struct StaticModel {
  std::string name;                                     ///< the caller's, a word of C
  IRModule mod;                                         ///< behind the backend's passes
  runtime::ExecutableDesc desc;                         ///< of its inputs, outputs and memory
  std::vector<std::pair<uint64_t, NDArray>> constants;  ///< by their place among constants, in order, in bytes
};
/// Files by their endings.
using SourceFiles = std::vector<std::pair<std::string, std::string>>;

struct Backend {
  /// Answers to passes and schedules (`Target::traits`).
  TargetKind kind;
  /// The passes from PrimFuncs as schedules leave them to those that `emit` and `print` take.
  transform::Pass (*tir_pipeline)();
  /// Throws UnsupportedError that names the function for what the device cannot do.
  Code (*emit)(const IRModule& mod, const Target& target, const EmitOptions& options);
  /// Names of its texts, for those that ask for a module's source; the first is the usual one.
  std::vector<std::string> formats;
  std::string (*print)(const IRModule& mod, const Target& target, const std::string& format, DebugLevel debug);

  /// Dtypes that its code has no values of: where such a device has the host beside it, their operators run there.
  std::vector<std::string> lacks = {};

  /// The object file of such a text, as "code.c" of a `.tar` holds it; null: it is not taken. Throws UnsupportedError
  /// where there is no compiler.
  std::string (*compile)(const std::string& text, const Target& target) = nullptr;
  /// The text that `compile` takes.
  std::string (*print_code)(const IRModule& mod) = nullptr;
  /// A model as source files that need no runtime; null: there are none. Throws UnsupportedError for a model that they
  /// cannot hold.
  SourceFiles (*print_model)(const StaticModel& model) = nullptr;

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

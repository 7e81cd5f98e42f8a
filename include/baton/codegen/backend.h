// SPDX-License-Identifier: Apache-2.0
// What makes code for a kind of target. A new device is a folder beside this one's implementations, which registers its
// backend: nothing above names it.
#pragma once

#include <baton/ir/module.h>
#include <baton/ir/target.h>

#include <string>
#include <vector>

namespace baton::codegen {

struct Backend {
  /// What passes and schedules ask (`Target::traits`).
  TargetKind kind;
  /// Names of its text for those that ask for a module's source; none: machine code (codegen.h).
  std::vector<std::string> formats;
  /// From PrimFuncs as schedules leave them to the text of a device's program, which the global function
  /// "NAME.CreateModule" of library libbaton_NAME loads. Throws UnsupportedError that names the function for what the
  /// device cannot do. Null: machine code.
  std::string (*device_code)(const IRModule& mod) = nullptr;
};

/// Adds a backend and its kind; throws InternalError for a name that is taken.
BATON_DLL void RegisterBackend(Backend backend);
/// The backend of a target. Throws UnsupportedError for a kind without one.
BATON_DLL const Backend& BackendOf(const Target& target);
/// The text of a device's program for these PrimFuncs; throws InternalError where `target` makes machine code.
BATON_DLL std::string DeviceCode(const IRModule& mod, const Target& target);
/// Whether `format` is a name of a device's text, of any backend.
BATON_DLL bool IsDeviceFormat(const std::string& format);

/// Registers a backend where a file says so.
struct RegisterBackendAs {
  explicit RegisterBackendAs(Backend backend) { RegisterBackend(std::move(backend)); }
};

}  // namespace baton::codegen

// SPDX-License-Identifier: Apache-2.0
// What compilation gives: the stages that it went through, and the code.
#pragma once

#include <string>
#include <vector>

#include "driver/lower_to_tir.h"

namespace baton::driver {

/// The results of compiling a module, stage by stage; null for a stage that was left out.
struct Stages {
  IRModule relay;                        ///< behind all passes over Relay
  IRModule loops;                        ///< PrimFuncs as they were given
  IRModule tir;                          ///< PrimFuncs of the host, as code generators take them
  Lowering lowering;                     ///< how they are called; null: each by its name
  codegen::ObjectCode objects;           ///< code of the host
  std::vector<std::string> device_code;  ///< of a program's devices, "" for those that run the host's
};

/// Makes the code of all PrimFuncs, each by its target's backend.
void Emit(const Target& host, Stages* stages);

/// A stage as text: "relay", "tir", "llvm", "llvm-raw", "asm"; of a program "vm", "json" and its devices' kinds, too.
std::string StageText(const Stages& stages, const Target& host, const std::string& format,
                      codegen::DebugLevel debug = codegen::DebugLevel::kNone);

/// Code that was emitted, loaded where it runs on this machine. The module's kind says what it holds: a model that is
/// one function ("aot"), a program ("vm"), or functions that are called by name ("llvm"). Each can be saved and
/// printed; saving does not compile.
runtime::Module MakeCompiledModule(Stages stages, const Target& host);

}  // namespace baton::driver

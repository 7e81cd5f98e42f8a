// SPDX-License-Identifier: Apache-2.0
// What compilation gives: the stages that it went through, and the code.
#pragma once

#include <string>
#include <vector>

#include "driver/lower_to_tir.h"

namespace baton::driver {

/// What a module became, stage by stage. A stage that there was not is null.
struct Stages {
  IRModule relay;     ///< behind all passes over Relay
  IRModule loops;     ///< PrimFuncs as they were given
  IRModule tir;       ///< PrimFuncs of the host, as code generators take them
  Lowering lowering;  ///< how they are called; null: each by its name
};

/// A stage as text: "relay", "tir", "llvm", "llvm-raw", "asm"; of a program "vm", "json" and its devices' kinds, too.
std::string StageText(const Stages& stages, const Target& host, const std::string& format,
                      codegen::DebugLevel debug = codegen::DebugLevel::kNone);

/// Machine code of the last stage, once: loaded where it runs on this machine. The module's kind says what it holds: a
/// model that is one function ("aot"), a program ("vm"), or functions that are called by name ("llvm"). Each can be
/// saved and printed; neither compiles.
runtime::Module MakeCompiledModule(Stages stages, const Target& host);

}  // namespace baton::driver

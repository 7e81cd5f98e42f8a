// SPDX-License-Identifier: Apache-2.0
// From loop programs to machine code.
#pragma once

#include <baton/ir/module.h>
#include <baton/ir/target.h>
#include <baton/runtime/module.h>

#include <string>
#include <vector>

namespace baton::codegen {

/// Native code of a module's PrimFuncs, as object files (one a compile thread).
struct ObjectCode {
  std::vector<std::string> objects;   ///< ELF files
  std::vector<std::string> features;  ///< processor features that the code needs, by LLVM's names
};

/// Compiles the PrimFuncs of `mod`, lowered to loops over buffers with int64 indices. A function's symbol is its
/// global_symbol attribute, else its name. Parameters: a pointer for each handle, a value for each scalar; the result
/// is an int32, 0 for success. Calls of GlobalVars are calls of functions of the module.
BATON_DLL ObjectCode CompileToObjects(const IRModule& mod, const Target& target, int num_threads = 2);
/// Text of one stage: "ll" (LLVM IR after optimisation), "ll-raw" (before), "asm".
BATON_DLL std::string CompileToText(const IRModule& mod, const Target& target, const std::string& format);
/// Loads objects into this process; the module answers GetSymbol.
BATON_DLL runtime::Module LoadObjects(const ObjectCode& code);
/// Links objects to a shared object, in this process if lld was built in, else with ld.lld or cc; returns the file's
/// bytes.
BATON_DLL std::string LinkShared(const ObjectCode& code, const Target& target);
/// LLVM's version, default target, and how artifacts are linked, for the doctor.
BATON_DLL Map<String, String> Describe();

}  // namespace baton::codegen

// SPDX-License-Identifier: Apache-2.0
// From PrimFuncs to machine code.
#pragma once

#include <baton/ir/module.h>
#include <baton/ir/target.h>
#include <baton/runtime/module.h>

#include <string>
#include <utility>
#include <vector>

namespace baton::codegen {

/// The debug information that code carries for debuggers and profilers.
enum class DebugLevel {
  kNone,   ///< nothing: linked code has the names of its entry points alone
  kNames,  ///< the symbol of each function
  kLines,  ///< and DWARF: names of the Relay operators, and of each instruction the place of its Relay expression
};
/// The level called "none", "names" or "lines"; throws ValueError for anything else.
BATON_DLL DebugLevel DebugLevelOf(const std::string& name);

/// Native code of a module's PrimFuncs, as object files (one a compile thread).
struct ObjectCode {
  std::vector<std::string> objects;   ///< ELF files
  std::vector<std::string> features;  ///< processor features that the code needs, by LLVM's names
  std::vector<std::pair<std::string, std::string>> display_names;  ///< of symbols: what a profiler is to show
  DebugLevel debug = DebugLevel::kNone;
  std::string missing;  ///< why there are none, for errors; "": there are
};

/// Compiles the PrimFuncs of `mod`, lowered to loops over buffers with int64 indices. A function's symbol is its
/// global_symbol attribute, else its name. Parameters: a pointer for each handle, a value for each scalar; the result
/// is an int32, 0 for success. Calls of GlobalVars are calls of functions of the module.
BATON_DLL ObjectCode CompileToObjects(const IRModule& mod, const Target& target, int num_threads = 2,
                                      DebugLevel debug = DebugLevel::kNames);
/// An object file with these bytes as a constant of this symbol, which others see.
BATON_DLL std::string DataObject(const std::string& symbol, std::string_view bytes, const Target& target);
/// Text of one stage: "ll" (LLVM IR after optimisation), "ll-raw" (before), "asm".
BATON_DLL std::string CompileToText(const IRModule& mod, const Target& target, const std::string& format,
                                    DebugLevel debug = DebugLevel::kNone);
/// Loads objects into this process; the module answers GetSymbol. The environment variable BATON_PERF says which tools
/// are told of the code: a list of "map" (/tmp/perf-PID.map, for `perf report`), "jitdump" (a jit-PID.dump, for `perf
/// inject --jit`, with lines) and "gdb".
BATON_DLL runtime::Module LoadObjects(const ObjectCode& code);
/// Links objects to a shared object, in this process if lld was built in, else with ld.lld or cc; returns the file's
/// bytes. For another machine nothing of it is needed here: functions of its libm and libc stay open.
BATON_DLL std::string LinkShared(const ObjectCode& code, const Target& target);
/// One object file of all of them, as another linker takes it; linked as LinkShared does where there are several.
BATON_DLL std::string LinkObject(const ObjectCode& code);
/// How often LLVM has made objects or text of a module in this process.
BATON_DLL int64_t NumCompilations();
/// Whether code for a target does not run on this machine: its triple names another processor.
BATON_DLL bool IsOtherProcessor(const Target& target);
/// LLVM's version, default target, and how artifacts are linked, for the doctor.
BATON_DLL Map<String, String> Describe();

}  // namespace baton::codegen

// SPDX-License-Identifier: Apache-2.0
// A lowered graph as code in this process.
#pragma once

#include <baton/codegen/codegen.h>
#include <baton/runtime/module.h>
#include <baton/runtime/ndarray.h>
#include <baton/runtime/packed_func.h>

#include <vector>

#include "driver/lower_graph.h"

namespace baton::driver {

/// Runs the TIR pipeline of the target's backend over each PrimFunc but the entries of models.
IRModule LowerTir(const IRModule& mod, const Target& target);

/// A constant that can be made again: its place among the constants, and the PackedFunc that gives it.
struct RemadeConstant {
  uint64_t offset;
  runtime::PackedFunc source;
};
/// Constants of lowered graphs, in one piece of memory as the code wants them. remade: takes those that have a source.
NDArray PackConstants(const ConstantTable& constants, std::vector<RemadeConstant>* remade = nullptr);

/// Debug information for debuggers and profilers: the options `llvm.debug_info` and `llvm.debug_source`.
struct DebugOptions {
  codegen::DebugLevel level = codegen::DebugLevel::kNames;
  std::string source;  ///< file that the Relay text of the model is written to; empty: none
  static DebugOptions FromContext(const char* default_value = "lines");
  LowerOptions Lowering() const { return {level, source.empty() ? std::string(kDebugFile) : source}; }
  /// Writes that text, if it was asked for.
  void WriteSource(const std::string& text) const;
};

/// Code in this process, with its constants. `entry` may be called from several threads, each with its own arena.
struct CompiledGraph {
  runtime::Module code;
  runtime::EntryFunction entry = nullptr;
  NDArray constants;
  runtime::ExecutableDesc desc;
};
/// The meaning of a model's inputs and outputs that are not numbers to a front end: JSON for bindings.
std::string FormsOf(const relay::Function& main);
CompiledGraph CompileGraph(const relay::Function& main, const Target& target, int num_threads,
                           const DebugOptions& debug = {});

}  // namespace baton::driver

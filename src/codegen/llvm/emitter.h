// SPDX-License-Identifier: Apache-2.0
// One PrimFunc to LLVM IR.
#pragma once

#include <baton/ir/module.h>
#include <baton/ir/target.h>
#include <baton/tir/stmt.h>
#include <llvm-c/Core.h>

#include <string>

#include "codegen/llvm/debug_info.h"

namespace baton::codegen {

/// Name of the exported variable through which code reaches the runtime.
inline constexpr const char* kBackendApiSymbol = "baton_backend_api";

/// Symbol of a function: its global_symbol attribute, else the variable's name.
std::string SymbolOf(const GlobalVar& var, const BaseFunc& func);
/// The name for people in place of the symbol: the Relay operators, else the symbol.
std::string DisplayName(const tir::PrimFunc& func, const std::string& symbol);
/// Adds `func` to `module`. Functions of `mod` that it calls are declared. `debug` may be null.
void EmitFunction(LLVMModuleRef module, const Target& target, const IRModule& mod, const std::string& symbol,
                  const tir::PrimFunc& func, const std::string& cpu, const std::string& features,
                  DebugInfo* debug = nullptr);

/// Adds the description by which the runtime calls what `caller` (of tir::MakePackedApi) calls.
void EmitFunctionSpec(LLVMModuleRef module, const std::string& symbol, const tir::PrimFunc& caller);

}  // namespace baton::codegen

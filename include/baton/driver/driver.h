// SPDX-License-Identifier: Apache-2.0
// From a Relay module to something that runs: the built-in pipeline, executors, artifacts.
#pragma once

#include <baton/ir/target.h>
#include <baton/ir/transform.h>
#include <baton/relay/expr.h>
#include <baton/runtime/module.h>

#include <string>

namespace baton::driver {

/// `main`'s parameters of these names become constants. Unknown names are an error.
BATON_DLL IRModule BindParams(const IRModule& mod, const Map<String, NDArray>& params);
/// `main`'s parameters of these names get these shapes: a number or the name of a dimension each, null for what the
/// type says. Dimensions of one name are equal. `name_unknown`: extents that are still unknown get names, `x_0` for the
/// first of input `x`.
BATON_DLL IRModule BindShapes(const IRModule& mod, const Map<String, Array<runtime::Any>>& shapes,
                              bool name_unknown = false);
/// The module with symbols of its types and attributes, by name, as lengths.
/// \throws ValueError for a name that no type has, and for lengths that contradict what the program assumes of them.
BATON_DLL IRModule BindDims(const IRModule& mod, const Map<String, int64_t>& dims);
/// The same with lengths as the arguments of `main` have them.
BATON_DLL IRModule BindArguments(const IRModule& mod, const Array<ObjectRef>& args);

/// The passes between import and lowering, in order.
BATON_DLL transform::Pass DefaultPipeline();
/// Runs them under the current PassContext.
BATON_DLL IRModule Optimize(const IRModule& mod, const Target& target);

/// Compiles `main`. A static graph becomes one native function ("aot"); a program with dynamic shapes, control flow or
/// host operators a module that interprets it over compiled kernels ("vm"). Both have the function "default".
BATON_DLL runtime::Module Compile(const IRModule& mod, const Target& target);
/// The part of Compile after Optimize.
BATON_DLL runtime::Module Generate(const IRModule& optimized, const Target& target);
/// The same for a program on several devices: a target by the name of each device ("cpu", "ext_dev"). Plans it first.
BATON_DLL runtime::Module CompileForDevices(const IRModule& mod, const Map<String, Target>& targets);
/// The part of CompileForDevices after planning and fusion.
BATON_DLL runtime::Module GenerateForDevices(const IRModule& planned, const Map<String, Target>& targets);
/// Compiles PrimFuncs. Each function of the result takes a tensor for each buffer and a number for each scalar; sizes
/// that occur in shapes need not be given. Nothing is returned: a PrimFunc writes into its buffers.
BATON_DLL runtime::Module BuildFunctions(const IRModule& mod, const Target& target);
/// The input of code generation: PrimFuncs after all passes.
BATON_DLL IRModule LowerFunctions(const IRModule& mod, const Target& target);
/// One stage as text: "relay", "tir", "llvm", "asm".
BATON_DLL std::string EmitText(const IRModule& mod, const Target& target, const std::string& stage);

}  // namespace baton::driver

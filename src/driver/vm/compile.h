// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <baton/ir/module.h>
#include <baton/ir/target.h>
#include <baton/relay/expr.h>
#include <baton/runtime/module.h>
#include <baton/vm/program.h>

#include <string>
#include <utility>
#include <vector>

#include "driver/compiled_graph.h"
#include "driver/devices.h"

namespace baton::driver {

/// A program without its code yet: `graphs` are the bodies of its kernels, by symbol.
struct VmProgram {
  vm::Program program;
  std::vector<std::pair<std::string, relay::Function>> graphs;
  std::vector<HostStep> host;  ///< where calls of host functions come from
};
/// A boundary of a region, or an expression outside of all regions.
struct RegionNote {
  std::string function;   ///< the function that it is in
  int32_t kernel = -1;    ///< the kernel of the region that ends; -1: the expression is outside of regions
  std::string operators;  ///< those of the region
  std::string at;         ///< the expression at the boundary
  std::string span;       ///< where it was written
  std::string why;        ///< why no region goes on behind it; "" at the end of a function or branch
};
/// Translates all Relay functions of an optimised, typed module. Throws CompileError for what cannot be translated.
/// `devices`: those that a planned module runs on, none for a module for the CPU. `fallback`: of what nothing decides.
/// `notes`: gets the boundaries of regions, if it is not null.
VmProgram TranslateToVm(const IRModule& mod, const std::vector<DeviceTarget>& devices = {}, int64_t fallback = kDLCPU,
                        std::vector<RegionNote>* notes = nullptr);

/// Kernels of a device that has code of its own.
struct DeviceKernels {
  size_t device = 0;  ///< its number in the program
  Target target;
  IRModule mod;  ///< PrimFuncs, as the target's backend takes them
};
/// What lowering makes: kernels as PrimFuncs, and how they are called.
struct LoweredProgram {
  vm::Program program;  ///< without code of its devices; without functions: a model that is one function
  /// Of a model that is one function; of a program what people are told of main.
  runtime::ExecutableDesc desc;
  std::vector<std::string> guards;  ///< what must hold of the dimensions of inputs
  LoweredGraphs host;               ///< kernels of the host; constants of all kernels
  std::vector<DeviceKernels> devices;
  std::vector<std::pair<std::string, relay::Function>> graphs;  ///< the bodies of a program's kernels, by symbol
  std::string why;                                              ///< what stands in the way of one function

  bool is_function() const { return program.functions.empty(); }
};
/// The program of a module. `host`: the target of the host's code. Else as TranslateToVm.
LoweredProgram LowerProgram(const IRModule& mod, const Target& host, const std::vector<DeviceTarget>& devices,
                            int64_t fallback, const DebugOptions& debug);

/// Notes which inputs of main give their memory to results. Throws CompileError for one that no kernel writes over.
void MarkDonations(const Array<runtime::String>& names, vm::Program* program);

/// The result type of a function: of its body, else as declared.
Type ResultType(const relay::Function& f);

/// Whether it is a fused group of operators.
bool IsPrimitive(const relay::Expr& e);

/// A module whose fused groups of operators stand where they are called, and nowhere else.
IRModule PlacePrimitives(const IRModule& mod);

/// Names of fused groups end with the operator that passes it.
inline constexpr size_t kNameChars = 80;

/// Gives each virtual register of `code` a place among few, and marks the last reads. The first `params` registers
/// stay. Returns how many there are.
int32_t AssignRegisters(std::vector<int32_t>* code, int32_t params);

}  // namespace baton::driver

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

#include "driver/lower_devices.h"

namespace baton::driver {

/// A program without its code yet: `graphs` are the bodies of its kernels, by symbol.
struct VmProgram {
  vm::Program program;
  std::vector<std::pair<std::string, relay::Function>> graphs;
};
/// Translates all Relay functions of an optimised, typed module. Throws CompileError for what cannot be translated.
/// `devices`: those that a planned module runs on, none for a module for the CPU. `fallback`: of what nothing decides.
VmProgram TranslateToVm(const IRModule& mod, const std::vector<DeviceTarget>& devices = {}, int64_t fallback = kDLCPU);

/// The result type of a function: of its body, else as declared.
Type ResultType(const relay::Function& f);

/// Whether it is a fused group of operators.
bool IsPrimitive(const relay::Expr& e);

/// A module whose fused groups of operators stand where they are called, and nowhere else.
IRModule PlacePrimitives(const IRModule& mod);

/// The module of a program that cannot be one static function, `why` says what stands in the way.
runtime::Module CompileVm(const IRModule& optimized, const Target& target, std::string why);
/// The same of a planned program for several devices, with control flow or dynamic shapes.
runtime::Module CompileVmForDevices(const IRModule& planned, const std::vector<DeviceTarget>& targets, int64_t fallback,
                                    std::string why);

/// Names of fused groups end with the operator that passes it.
inline constexpr size_t kNameChars = 80;

/// A function of the host for one call site: `f` is a primitive function whose shapes are not all known, or calls one
/// operator. It is saved as `vm.LoadPacked` reads it. One with the attribute kCodeFor, a target of a device, computes
/// where its arguments are, with code for the shapes that come.
inline constexpr const char* kCodeFor = "code_for";
/// Whether such code can be made of it: a group of operators, or one, that are loops, or a change of shape.
bool MakesDeviceCode(const relay::Function& f);
PackedFunc MakeHostFunction(const relay::Function& f);
std::string SaveHostFunction(const relay::Function& f);

/// Gives each virtual register of `code` a place among few, and marks the last reads. The first `params` registers
/// stay. Returns how many there are.
int32_t AssignRegisters(std::vector<int32_t>* code, int32_t params);

}  // namespace baton::driver

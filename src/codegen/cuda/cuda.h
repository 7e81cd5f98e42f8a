// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <baton/ir/target.h>
#include <baton/tir/intrin.h>

#include <map>
#include <string>

#include "codegen/cuda/float64_math.h"
#include "codegen/kernels/kernel.h"

namespace baton::codegen::cuda {

/// CUDA C++.
extern const kernels::Language kLanguage;
/// Null for intrinsics that all languages have. The column is in intrinsics.cpp.
const source::IntrinText* OwnText(const tir::IntrinDef* row);
const std::map<std::string, std::string>& Builtins();

/// The function of an intrinsic in float64 arithmetic; null where it is an instruction.
Float64Fn Float64Of(const tir::IntrinDef* row);
/// The remainder of floats, of the sign of `a`.
PrimExpr RemainderCall(const PrimExpr& a, const PrimExpr& b);
/// A kernel whose expressions have instructions: functions of mathematics are written out. Throws UnsupportedError that
/// names `function` for calls of the host.
kernels::KernelBody WithoutLibrary(const kernels::KernelBody& kernel, const std::string& function);

/// The PTX of a target, or LLVM's IR of it: "ptx", "nvvm". Its first line says, in a comment, how functions are
/// launched: it is the text that the global function "cuda.CreateModule" takes.
std::string EmitPtx(const IRModule& mod, const Target& target, const std::string& format);

}  // namespace baton::codegen::cuda

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <baton/ir/module.h>
#include <baton/tir/intrin.h>
#include <baton/tir/stmt.h>

#include <string>
#include <utility>
#include <vector>

#include "codegen/source/dialect.h"

namespace baton::codegen::opencl {

using source::Needs;

/// OpenCL C 1.2.
extern const source::Dialect kDialect;
inline constexpr const char* kHostFunction = "it calls functions of the host";
/// Null for intrinsics that all languages have. The column is in intrinsics.cpp.
const source::IntrinText* OwnText(const tir::IntrinDef* row);
const std::map<std::string, std::string>& Builtins();

/// A kernel to be: `body` for each value of `index` below `items`.
struct KernelBody {
  std::string name;
  PrimExpr items = PrimExpr(int64_t{1});            ///< of literals and `sizes`
  tir::Var index;                                   ///< null: one work-item
  std::vector<std::pair<tir::Var, PrimExpr>> lets;  ///< values around the body
  tir::Stmt body;
};

/// The text of a kernel. `*args` gets the data variables of the buffers that it takes, in order: two parameters each,
/// the buffer and the offset of the first byte. Behind them come all of `sizes`.
std::string EmitKernel(const KernelBody& kernel, const std::vector<tir::Var>& sizes, const std::string& function,
                       Needs* needs, std::vector<const Object*>* args);

/// OpenCL C 1.2 of PrimFuncs as the backend's pipeline leaves them; shapes follow from sizes that are parameters. A
/// function becomes a row of kernels: one for each parallel loop at its top, whose rounds are work-items, and one of a
/// single work-item for the code between them. The first line says, in a comment, how functions are launched: it is
/// the text that "opencl.CreateModule" takes. Throws UnsupportedError that names the function for what OpenCL cannot
/// do.
std::string EmitText(const IRModule& mod);

}  // namespace baton::codegen::opencl

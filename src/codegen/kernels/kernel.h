// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <baton/ir/module.h>
#include <baton/ir/transform.h>
#include <baton/tir/intrin.h>
#include <baton/tir/stmt.h>

#include <string>
#include <utility>
#include <vector>

#include "codegen/kernels/language.h"
#include "tir/thread_axes.h"

namespace baton::codegen::kernels {

using source::Needs;

/// A kernel to be: `body` for each value of `index` below `items`, or for each thread of `axes`.
struct KernelBody {
  std::string name;
  PrimExpr items = PrimExpr(int64_t{1});            ///< of literals and `sizes`
  tir::Var index;                                   ///< null: one work-item
  std::vector<std::pair<tir::Var, PrimExpr>> lets;  ///< values around the body
  tir::Stmt body;
  std::vector<tir::KernelAxis> axes = {};  ///< of marks "thread_extent"; `index` is null beside them
};

/// The text of a kernel. `*args` gets the data variables of the buffers that it takes, in order: two parameters each,
/// the buffer and the offset of the first byte. Behind them come all of `sizes`.
std::string EmitKernel(const Language& language, const KernelBody& kernel, const std::vector<tir::Var>& sizes,
                       const std::string& function, Needs* needs, std::vector<const Object*>* args);

/// The passes from PrimFuncs as schedules leave them to those that `EmitText` takes. The device's compiler unrolls and
/// vectorises. `strict`: its sums are computed as they are written, so that elementary functions may be polynomials.
transform::Pass Pipeline(const char* name, bool strict = true);

/// The program of PrimFuncs as the backend's pipeline leaves them; shapes follow from sizes that are parameters, or
/// that stand alone in a shape. A function becomes a row of kernels: one for each parallel loop at its top, whose
/// rounds are work-items, one for each mark "thread_extent" there, and one of a single work-item for the statements
/// between them. The first line says, in a comment, how functions are launched: it is the text that the global function
/// "DEVICE.CreateModule" takes. Throws UnsupportedError that names the function where the language has no text for it.
std::string EmitText(const Language& language, const IRModule& mod);

}  // namespace baton::codegen::kernels

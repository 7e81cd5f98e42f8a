// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <baton/ir/module.h>
#include <baton/ir/transform.h>
#include <baton/tir/intrin.h>
#include <baton/tir/stmt.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "codegen/kernels/language.h"
#include "tir/thread_axes.h"

namespace baton::codegen::kernels {

using source::Needs;

/// Bytes of an array that a work-item may keep to itself.
inline constexpr int64_t kMaxPrivateBytes = 16 << 10;

/// A kernel to be: `body` for each value of `index` below `items`, or for each thread of `axes`.
struct KernelBody {
  std::string name;
  PrimExpr items = PrimExpr(int64_t{1});            ///< of literals and `sizes`
  tir::Var index;                                   ///< null: one work-item
  std::vector<std::pair<tir::Var, PrimExpr>> lets;  ///< values around the body
  tir::Stmt body;
  std::vector<tir::KernelAxis> axes = {};  ///< of marks "thread_extent"; `index` is null beside them
};

/// The maker of each kernel's code.
struct KernelMaker {
  const char* language;  ///< in errors
  /// Returns a kernel's text, or "" where the maker keeps its code. `*args` gets the data variables of the buffers that
  /// it takes, in order; behind them it takes all of `sizes`.
  std::function<std::string(const KernelBody& kernel, const std::vector<tir::Var>& sizes, const std::string& function,
                            std::vector<const Object*>* args)>
      make;
  bool wide_truth = false;  ///< a bool takes four bytes of memory
};
/// The functions of a module as rows of kernels.
struct Program {
  std::string text;       ///< of all kernels
  std::string functions;  ///< how each function is launched, as JSON
};
/// Throws UnsupportedError that names the function that has no such row.
Program CutProgram(const KernelMaker& maker, const IRModule& mod);

/// The text of a kernel. `*args` gets the data variables of the buffers that it takes, in order: two parameters each,
/// the buffer and the offset of the first byte. Behind them come all of `sizes`.
std::string EmitKernel(const Language& language, const KernelBody& kernel, const std::vector<tir::Var>& sizes,
                       const std::string& function, Needs* needs, std::vector<const Object*>* args);

/// The passes from PrimFuncs as schedules leave them to those that `EmitText` takes. The device's compiler unrolls and
/// vectorises. `strict`: its sums are computed as they are written, so that elementary functions may be polynomials.
baton::transform::Pass Pipeline(const char* name, bool strict = true);

/// The program of PrimFuncs as the backend's pipeline leaves them; shapes follow from sizes that are parameters, or
/// that stand alone in a shape. A function becomes a row of kernels: one for each parallel loop at its top, whose
/// rounds are work-items, one for each mark "thread_extent" there, and one of a single work-item for the statements
/// between them. The first line says, in a comment, how functions are launched: it is the text that the global function
/// "DEVICE.CreateModule" takes. Throws UnsupportedError that names the function where the language has no text for it.
std::string EmitText(const Language& language, const IRModule& mod);

}  // namespace baton::codegen::kernels

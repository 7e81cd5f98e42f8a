// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <baton/ir/module.h>
#include <baton/tir/intrin.h>
#include <baton/tir/stmt.h>

#include <map>
#include <set>
#include <string>
#include <vector>

namespace baton::codegen::opencl {

/// What a text needs of the language beyond OpenCL C 1.2: extensions, and functions of `builtins.cpp` by name.
struct Needs {
  bool fp64 = false;
  std::set<std::string> builtins;
};

/// The definitions of functions, in an order in which each comes after what it calls.
std::string Definitions(const std::set<std::string>& names);

/// "float" for a scalar in a register; bool is a bool, a half float its bits.
std::string TypeName(DataType t, Needs* needs);
/// The same in memory, where bool is a byte.
std::string MemoryTypeName(DataType t, Needs* needs);

inline bool IsHalf(DataType t) { return t.is_floating() && t.bits() == 16; }
/// "i32", as in the names of builtins.cpp.
std::string SuffixOf(DataType t);

/// A call of an intrinsic whose arguments are texts already.
struct TextCall {
  const tir::CallNode* op;
  std::vector<std::string> args;
  Needs* needs;
  std::string Type() const { return TypeName(op->dtype, needs); }
  /// `function(arguments)`
  std::string Of(const std::string& function) const;
  /// The same of a function of builtins.cpp.
  std::string OfBuiltin(const std::string& name) const;
};
/// An intrinsic in OpenCL C: the text of a call, "" for dtypes that it does not take; or why there is none.
struct IntrinText {
  std::string (*text)(const TextCall& call) = nullptr;
  const char* refused = nullptr;
};
/// Null where there is none. The column is in intrinsics.cpp.
const IntrinText* TextOf(const tir::IntrinDef* row);
inline constexpr const char* kHostFunction = "it calls functions of the host";

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
/// single work-item for what stands between them. The first line says, in a comment, how functions are launched: it is
/// the text that "opencl.CreateModule" takes. Throws UnsupportedError that names the function for what OpenCL cannot
/// do.
std::string EmitText(const IRModule& mod);

}  // namespace baton::codegen::opencl

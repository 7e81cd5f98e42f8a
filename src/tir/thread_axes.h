// SPDX-License-Identifier: Apache-2.0
// Threads in PrimFuncs. The mark "thread_extent" of a variable (tir.Var, or the one of a tir.IterVar) called
// blockIdx.x to threadIdx.z says that its scope is run by so many blocks, or threads of a block, each with its index
// in the variable. The outermost such mark is a kernel: all axes within it span its blocks and threads, and each thread
// runs all of it. Names may end with _1, _2, as texts tell variables of one name apart. Memory of scope "shared" is a
// block's, other memory that is allocated within is a thread's.
#pragma once

#include <baton/tir/functor.h>
#include <baton/tir/intrin.h>

#include <utility>
#include <vector>

namespace baton::tir {

inline constexpr const char* kThreadExtent = "thread_extent";
inline constexpr const char* kReduceScope = "reduce_scope";
inline constexpr const char* kShared = "shared";

/// The variable that a mark binds, as thread axes and virtual threads do; null if it binds none.
const VarNode* BoundThreadVar(const AttrStmtNode* op);
/// An axis by a variable's name: 0 to 2 are blockIdx.x to blockIdx.z, 3 to 5 threadIdx.x to threadIdx.z; -1: none.
int ThreadAxis(const VarNode* var);
/// The axis of a mark; -1 for other marks. Throws CompileError for a "thread_extent" that names none.
int ThreadAxis(const AttrStmtNode* op);
const char* ThreadAxisName(int axis);
inline bool IsBlockAxis(int axis) { return axis >= 0 && axis < 3; }

/// The axes of a kernel, in the order of their marks: each with all its variables and its extent. Throws CompileError
/// where two marks of an axis have different extents.
struct KernelAxis {
  int axis = 0;
  PrimExpr extent;
  std::vector<const VarNode*> vars;
};
std::vector<KernelAxis> AxesOf(const Stmt& kernel);

Stmt StorageSync(const char* scope);
/// The call of tvm_storage_sync, or of tvm_thread_allreduce, in a statement that is just that call; null for others.
const CallNode* SyncOf(const Stmt& s);
const CallNode* AllreduceOf(const Stmt& s);
bool IsAllreduce(const CallNode* call);

/// tvm_thread_allreduce(n, values..., condition, places..., variables...): combines the `values` of the threads that
/// differ only in these variables and whose `condition` is true; each thread gets the result at `places`, which are
/// BufferLoads.
struct ThreadAllreduce {
  std::vector<PrimExpr> values;
  PrimExpr condition;
  std::vector<const BufferLoadNode*> places;
  std::vector<const VarNode*> vars;
  /// Throws CompileError for a call of other arguments.
  explicit ThreadAllreduce(const CallNode* call);
};
/// The call of these arguments within the mark that says how it combines values.
BATON_DLL Stmt Allreduce(const CommReducer& reducer, const Array<PrimExpr>& args);
/// How a mark "reduce_scope" combines values: its node is a CommReducer, or its value "add", "mul", "min" or "max".
/// Throws CompileError for another, and for null, where no mark is around.
CommReducer ReducerOf(const AttrStmtNode* mark, const ThreadAllreduce& call);
/// The combination of values a and b.
std::vector<PrimExpr> Combined(const CommReducer& reducer, const std::vector<PrimExpr>& a,
                               const std::vector<PrimExpr>& b);

}  // namespace baton::tir

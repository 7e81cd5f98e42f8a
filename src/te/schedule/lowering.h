// SPDX-License-Identifier: Apache-2.0
// From placed stages to loops.
#pragma once

#include <string>

#include "te/schedule/placed.h"

namespace baton::te {

/// One PrimFunc that computes as a schedule says. Its parameters are `args` (tensors, variables of sizes, buffers),
/// whose buffers are `buffers`, null where one is made.
tir::PrimFunc ScheduleToPrimFunc(const Schedule& schedule, const Array<ObjectRef>& args, const String& name,
                                 const Array<ObjectRef>& buffers);

/// The range of every loop of a schedule, also of those that became others.
Map<IterVar, Range> InferBound(const Schedule& schedule);
/// Which operations `AutoInline` computes where they are read: all that are no reductions; those that read elements at
/// their own indices alone; at some of these, in their order.
enum class Inlined : int32_t { kAll = 0, kOwnIndices = 1, kOwnInOrder = 2 };
void AutoInline(const Schedule& schedule, Inlined which);

/// Writes the loops of stages.
class LoopWriter {
 public:
  /// `given`: buffers of results and inputs, by operation and output.
  using Given = std::map<std::pair<const Object*, int64_t>, tir::Buffer>;
  LoopWriter(Placement* placement, const Given& given) : placement_(placement), given_(given) {}
  tir::Stmt Write();

 private:
  void MakeBuffers(Placed* p);
  void MakeThreads(Placed* p);
  tir::Stmt StageLoops(const Stage& stage);
  tir::Stmt Reduction(const Placed& p, const Array<PrimExpr>& at, const std::vector<PrimExpr>& own);
  tir::Stmt ThreadReduction(const Placed& p, const Array<PrimExpr>& at, const std::vector<PrimExpr>& own, size_t first);
  tir::Stmt Tensorized(const Placed& p, size_t place);
  tir::Stmt Statement(const Placed& p);
  tir::Stmt Stores(const Placed& p, const Array<PrimExpr>& values, const Array<PrimExpr>& at);
  /// Returns a loop of a stage around a body; `variable`, where it is given, replaces the loop's variable.
  tir::Stmt Loop(const Placed& p, const IterVar& iv, tir::Stmt body, const Var& variable = Var());
  /// The stages that are computed in a loop, then its own body.
  tir::Stmt Within(const IterVar& iv, tir::Stmt body);
  tir::Stmt Allocated(const Stage& stage, tir::Stmt body);
  /// An expression of a stage's body with the loops for the axes, and buffers for tensors.
  PrimExpr Expr(const Placed& p, const PrimExpr& e);
  PrimExpr Element(const Tensor& tensor, const Array<PrimExpr>& indices);
  tir::Buffer BufferOf(const Tensor& tensor);
  std::vector<PrimExpr> Inside(const Placed& p);
  PrimExpr StorePredicate(const Placed& p);

  Placement* placement_;
  const Given& given_;
  tir::VarMap threads_;  ///< variables of kernels' threads, by the variable of the axis that the program made
};

tir::Stmt IfAll(const std::vector<PrimExpr>& conditions, tir::Stmt body);
/// The loops of a script as its stage has them.
tir::Stmt ScheduledScript(const tir::Stmt& stmt, const Placed& p);
/// The statement that computes all rows of a scan, from and to these buffers.
tir::Stmt ScanRows(const Stage& scan, const Array<tir::Buffer>& ins, const Array<tir::Buffer>& outs);
tir::ForKind KindOfLoop(const IterVarAttr& attr);
Map<String, runtime::Any> AnnotationsOf(const IterVarAttr& attr);

}  // namespace baton::te

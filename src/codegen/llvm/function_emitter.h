// SPDX-License-Identifier: Apache-2.0
// The emitter of one PrimFunc: what its parts share. Each part has a file: memory, arithmetic, expressions, intrinsics,
// packed_calls, statements, parallel.
#pragma once

#include <baton/tir/functor.h>
#include <baton/tir/op.h>

#include <string>
#include <unordered_map>
#include <vector>

#include "codegen/llvm/emitter.h"
#include "codegen/llvm/value_builder.h"

namespace baton::codegen {

class Emitter : protected ValueBuilder,
                public tir::ExprFunctor<LLVMValueRef(const PrimExpr&)>,
                public tir::StmtFunctor<void(const tir::Stmt&)> {
 public:
  Emitter(LLVMModuleRef module, const Target& target, const IRModule& mod, std::string cpu, std::string features,
          DebugInfo* debug)
      : ValueBuilder(module, target), mod_(mod), cpu_(std::move(cpu)), features_(std::move(features)), debug_(debug) {}

  void Function(const std::string& symbol, const tir::PrimFunc& f);
  static std::vector<Op> IntrinsicsWithCode();

 protected:
  // ---- Debug information

  /// While it lives, instructions belong to the expression at `span`; without one, to the same as before.
  class At {
   public:
    At(Emitter* e, const Span& span) : e_(e->debug_ && span.defined() && !span.same_as(e->span_) ? e : nullptr) {
      if (!e_) return;
      outer_ = e_->span_;
      e_->Locate(span);
    }
    ~At() {
      if (e_) e_->Locate(outer_);
    }
    At(const At&) = delete;

   private:
    Emitter* e_;
    Span outer_;
  };
  void Locate(const Span& span);

  // ---- Set-up

  LLVMValueRef Declare(const std::string& symbol, const tir::PrimFunc& f);
  void SetAttributes(LLVMValueRef f);
  void AddAttr(LLVMValueRef f, LLVMAttributeIndex at, const char* name, uint64_t value);
  void AddParamAttr(LLVMValueRef f, unsigned i, const char* name, uint64_t value);
  void Start(LLVMValueRef f);
  /// A function of the runtime's table.
  LLVMValueRef CallBackend(size_t offset, LLVMTypeRef ret, std::vector<LLVMValueRef> args);
  /// Returns from the function when a call failed.
  void ReturnIfError(LLVMValueRef code);
  /// Leaves the function from inside of allocations.
  void Return(LLVMValueRef code);

  // ---- Memory

  LLVMValueRef Base(const tir::Buffer& b);
  /// Row-major position; the last index may be a vector.
  PrimExpr Flat(const tir::Buffer& b, const Array<PrimExpr>& indices);
  LLVMValueRef Address(const tir::Buffer& b, LLVMValueRef index);
  unsigned Align(const tir::Buffer& b);
  LLVMValueRef Load(const tir::Buffer& b, const PrimExpr& index);
  /// Elements at places that vectors of uint8 name.
  LLVMValueRef TableLoad(const tir::Buffer& b, const PrimExpr& bytes, DataType t);
  LLVMValueRef AlignedLoad(const tir::Buffer& b, LLVMTypeRef type, LLVMValueRef index);
  /// Elements at a literal distance: whole vectors and a shuffle where that touches nothing but the elements asked for
  /// and the elements between them, else one load a lane at a literal offset.
  LLVMValueRef StridedLoad(const tir::Buffer& b, const tir::RampNode* r, int64_t stride, DataType t);
  void Store(const tir::Buffer& b, const PrimExpr& index, LLVMValueRef value, DataType t);

  // ---- Expressions

  LLVMValueRef VisitExpr(const PrimExpr& e) override;
  LLVMValueRef VisitExprDefault_(const Object* op) override;
  LLVMValueRef VisitExpr_(const tir::VarNode* op) override;
  LLVMValueRef VisitExpr_(const IntImmNode* op) override;
  LLVMValueRef VisitExpr_(const FloatImmNode* op) override;
  LLVMValueRef VisitExpr_(const tir::StringImmNode* op) override;
  LLVMValueRef VisitExpr_(const tir::CastNode* op) override;
  LLVMValueRef VisitExpr_(const tir::AddNode* op) override;
  LLVMValueRef VisitExpr_(const tir::SubNode* op) override;
  LLVMValueRef VisitExpr_(const tir::MulNode* op) override;
  /// Integer division that never traps: by zero gives 0, and the smallest value by -1 wraps.
  LLVMValueRef IntDiv(const PrimExpr& ea, const PrimExpr& eb, bool remainder);
  LLVMValueRef IntDiv(LLVMValueRef a, LLVMValueRef b, DataType t, const PrimExpr& eb, bool remainder);
  LLVMValueRef VisitExpr_(const tir::DivNode* op) override;
  LLVMValueRef VisitExpr_(const tir::ModNode* op) override;
  /// log2 of a positive power of two, else -1.
  static int Log2(const PrimExpr& e);
  LLVMValueRef VisitExpr_(const tir::FloorDivNode* op) override;
  LLVMValueRef VisitExpr_(const tir::FloorModNode* op) override;
  /// Floor quotient and remainder; each operand is computed once, or nested divisions would double at each level.
  void FloorParts(const PrimExpr& ea, const PrimExpr& eb, LLVMValueRef* floor_q, LLVMValueRef* floor_r);
  /// NaN in either operand gives NaN. `keep_a`: predicate under which a is the result.
  LLVMValueRef MinMax(const PrimExpr& ea, const PrimExpr& eb, LLVMRealPredicate keep_a, LLVMIntPredicate s,
                      LLVMIntPredicate u);
  LLVMValueRef VisitExpr_(const tir::MinNode* op) override;
  LLVMValueRef VisitExpr_(const tir::MaxNode* op) override;
  LLVMValueRef Compare(const PrimExpr& ea, const PrimExpr& eb, LLVMRealPredicate f, LLVMIntPredicate s,
                       LLVMIntPredicate u);
  LLVMValueRef VisitExpr_(const tir::EQNode* op) override;
  LLVMValueRef VisitExpr_(const tir::NENode* op) override;
  LLVMValueRef VisitExpr_(const tir::LTNode* op) override;
  LLVMValueRef VisitExpr_(const tir::LENode* op) override;
  LLVMValueRef VisitExpr_(const tir::GTNode* op) override;
  LLVMValueRef VisitExpr_(const tir::GENode* op) override;
  LLVMValueRef VisitExpr_(const tir::AndNode* op) override;
  LLVMValueRef VisitExpr_(const tir::OrNode* op) override;
  LLVMValueRef VisitExpr_(const tir::NotNode* op) override;
  LLVMValueRef VisitExpr_(const tir::SelectNode* op) override;
  LLVMValueRef VisitExpr_(const tir::BufferLoadNode* op) override;
  LLVMValueRef VisitExpr_(const tir::RampNode* op) override;
  LLVMValueRef VisitExpr_(const tir::BroadcastNode* op) override;
  LLVMValueRef VisitExpr_(const tir::ShuffleNode* op) override;
  LLVMValueRef VisitExpr_(const tir::LetNode* op) override;
  LLVMValueRef IfThenElseExpr(const tir::CallNode* op);

  // ---- Calls

  LLVMValueRef VisitExpr_(const tir::CallNode* op) override;
  /// A C math function, lane by lane.
  virtual LLVMValueRef Libm(const std::string& base, const tir::CallNode* op);
  LLVMValueRef CallFunction(const tir::CallNode* op, const GlobalVar& var);
  /// The forms of intrinsics, a row each (intrinsics.cpp).
  struct Forms;
  /// A tensor on the stack, for the time of a call. Arguments: data, a literal of the dtype, the dimensions.
  LLVMValueRef StackTensor(const tir::CallNode* op);
  /// Calls a function by name. It is looked up at the first call from here and kept.
  LLVMValueRef CallPacked(const tir::CallNode* op);
  LLVMValueRef MaskedLoad(const tir::CallNode* op);
  LLVMValueRef MaskedStore(const tir::CallNode* op);

  // ---- Statements

  void VisitStmt(const tir::Stmt& s) override;
  void VisitStmtDefault_(const Object* op) override;
  void VisitStmt_(const tir::BufferStoreNode* op) override;
  void VisitStmt_(const tir::AllocateNode* op) override;
  void VisitStmt_(const tir::ForNode* op) override;
  void Loop(LLVMValueRef begin, LLVMValueRef end, const tir::Var& var, const tir::Stmt& body);
  /// The body becomes a function of (task, number of tasks, captured values); each task takes an equal run of rounds.
  void Parallel(const tir::ForNode* op);
  void VisitStmt_(const tir::WhileNode* op) override;
  void VisitStmt_(const tir::IfThenElseNode* op) override;
  void VisitStmt_(const tir::SeqStmtNode* op) override;
  void VisitStmt_(const tir::EvaluateNode* op) override;
  void VisitStmt_(const tir::LetStmtNode* op) override;
  void VisitStmt_(const tir::AttrStmtNode* op) override;
  void VisitStmt_(const tir::AssertStmtNode* op) override;

  IRModule mod_;
  std::string cpu_, features_, symbol_;
  DebugInfo* debug_;  // null: none is wanted
  DebugInfo::Scope scope_;
  Span span_;  // of what is emitted now
  /// Evaluates a value and gives it a name.
  void Bind(const tir::Var& var, const PrimExpr& value);
  std::unordered_map<const tir::VarNode*, LLVMValueRef> vars_;
  std::unordered_map<const tir::VarNode*, PrimExpr> bounded_;  ///< values of those that are a minimum or maximum
  std::vector<LLVMValueRef> heap_;  // allocations that are live here, to be freed before a return
  bool in_parallel_ = false;
  PrimExpr parallel_if_;  // of the parallel loop that comes next; null: whatever its work
};

}  // namespace baton::codegen

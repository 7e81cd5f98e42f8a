// SPDX-License-Identifier: Apache-2.0
// Statements but for allocations and parallel loops.
#include <baton/runtime/c_backend_api.h>
#include <baton/support/stack.h>
#include <baton/tir/lower.h>
#include <tir/index_error.h>
#include <tir/parallel_if.h>

#include "codegen/llvm/function_emitter.h"

namespace baton::codegen {

using namespace tir;  // NOLINT: every node kind is named below

void Emitter::VisitStmt(const Stmt& s) {
  At at(this, s->span);
  support::WithStack([&] { StmtFunctor::VisitStmt(s); });
}

void Emitter::VisitStmtDefault_(const Object* op) {
  throw InternalError("the code generator does not know " + op->GetTypeKey());
}

void Emitter::VisitStmt_(const ForNode* op) {
  if (op->kind == ForKind::kParallel && !in_parallel_) return Parallel(op);
  LLVMValueRef begin = VisitExpr(op->min);
  LLVMValueRef end = LLVMBuildAdd(builder_, begin, VisitExpr(op->extent), "");
  Loop(begin, end, op->loop_var, op->body);
}

void Emitter::Loop(LLVMValueRef begin, LLVMValueRef end, const Var& var, const Stmt& body) {
  LLVMBasicBlockRef from = LLVMGetInsertBlock(builder_), loop = Block("loop"), exit = Block("exit");
  LLVMBuildCondBr(builder_, LLVMBuildICmp(builder_, LLVMIntSLT, begin, end, ""), loop, exit);
  LLVMPositionBuilderAtEnd(builder_, loop);
  LLVMValueRef i = LLVMBuildPhi(builder_, LLVMTypeOf(begin), var->name_hint.c_str());
  vars_[var.get()] = i;
  VisitStmt(body);
  LLVMValueRef next = LLVMBuildNSWAdd(builder_, i, LLVMConstInt(LLVMTypeOf(begin), 1, 0), "");
  LLVMBasicBlockRef latch = LLVMGetInsertBlock(builder_);
  LLVMBuildCondBr(builder_, LLVMBuildICmp(builder_, LLVMIntSLT, next, end, ""), loop, exit);
  LLVMValueRef values[] = {begin, next};
  LLVMBasicBlockRef blocks[] = {from, latch};
  LLVMAddIncoming(i, values, blocks, 2);
  LLVMPositionBuilderAtEnd(builder_, exit);
}

void Emitter::VisitStmt_(const WhileNode* op) {
  LLVMBasicBlockRef head = Block("while"), body = Block("round"), exit = Block("done");
  LLVMBuildBr(builder_, head);
  LLVMPositionBuilderAtEnd(builder_, head);
  LLVMBuildCondBr(builder_, VisitExpr(op->condition), body, exit);
  LLVMPositionBuilderAtEnd(builder_, body);
  VisitStmt(op->body);
  LLVMBuildBr(builder_, head);
  LLVMPositionBuilderAtEnd(builder_, exit);
}

void Emitter::VisitStmt_(const IfThenElseNode* op) {
  LLVMValueRef c = VisitExpr(op->condition);
  LLVMBasicBlockRef yes = Block("then"), end = Block("endif"), no = op->else_case.defined() ? Block("else") : end;
  LLVMBuildCondBr(builder_, c, yes, no);
  LLVMPositionBuilderAtEnd(builder_, yes);
  VisitStmt(op->then_case);
  LLVMBuildBr(builder_, end);
  if (op->else_case.defined()) {
    LLVMPositionBuilderAtEnd(builder_, no);
    VisitStmt(op->else_case);
    LLVMBuildBr(builder_, end);
  }
  LLVMPositionBuilderAtEnd(builder_, end);
}

void Emitter::VisitStmt_(const SeqStmtNode* op) {
  for (const Stmt& s : op->seq) VisitStmt(s);
}

void Emitter::VisitStmt_(const EvaluateNode* op) { VisitExpr(op->value); }

void Emitter::VisitStmt_(const LetStmtNode* op) {
  Bind(op->var, op->value);
  VisitStmt(op->body);
}

void Emitter::VisitStmt_(const AttrStmtNode* op) {
  tir::CheckNoThreadAxes(op);
  const auto* loop = op->body.as<ForNode>();
  if (op->attr_key == tir::kParallelIf && loop && loop->kind == ForKind::kParallel && !in_parallel_) {
    parallel_if_ = op->value;
  }
  VisitStmt(op->body);
}

void Emitter::VisitStmt_(const AssertStmtNode* op) {
  LLVMBasicBlockRef fail = Block("assert"), ok = Block("holds");
  LLVMBuildCondBr(builder_, VisitExpr(op->condition), ok, fail);
  LLVMPositionBuilderAtEnd(builder_, fail);
  const auto* text = op->message.as<StringImmNode>();
  auto literal = [&](const StringImmNode* t) {
    return LLVMBuildGlobalStringPtr(builder_, t ? t->value.c_str() : "an assertion failed", "str");
  };
  if (const auto* index = tir::IndexErrorOf(op)) {
    LLVMValueRef at = VisitExpr(index->args[1]), extent = VisitExpr(index->args[2]);
    Return(CallBackend(offsetof(BatonBackendApi, set_index_error), i32_,
                       {literal(index->args[0].as<StringImmNode>()), at, extent}));
  } else {
    Return(CallBackend(offsetof(BatonBackendApi, set_error), i32_, {literal(text)}));
  }
  LLVMPositionBuilderAtEnd(builder_, ok);
  VisitStmt(op->body);
}

}  // namespace baton::codegen

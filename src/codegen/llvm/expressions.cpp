// SPDX-License-Identifier: Apache-2.0
// Variables, literals, choices and vectors.
#include <baton/support/stack.h>

#include "codegen/llvm/function_emitter.h"
#include "codegen/llvm/half_floats.h"

namespace baton::codegen {

using namespace tir;  // NOLINT: every node kind is named below

LLVMValueRef Emitter::VisitExpr(const PrimExpr& e) {
  At at(this, e->span);
  return support::WithStack([&] { return ExprFunctor::VisitExpr(e); });
}

LLVMValueRef Emitter::VisitExprDefault_(const Object* op) {
  throw InternalError("the code generator does not know " + op->GetTypeKey() + " (in `" + symbol_ + "`)");
}

LLVMValueRef Emitter::VisitExpr_(const VarNode* op) {
  auto it = vars_.find(op);
  if (it == vars_.end())
    throw InternalError("variable `" + op->name_hint.str() + "` has no value in `" + symbol_ + "`");
  return it->second;
}

LLVMValueRef Emitter::VisitExpr_(const IntImmNode* op) {
  return LLVMConstInt(TypeFor(ctx_, op->dtype), static_cast<uint64_t>(op->value), op->dtype.is_int());
}

LLVMValueRef Emitter::VisitExpr_(const FloatImmNode* op) {
  return IsHalf(op->dtype) ? HalfConstant(ctx_, op->value, op->dtype)
                           : LLVMConstReal(TypeFor(ctx_, op->dtype), op->value);
}

LLVMValueRef Emitter::VisitExpr_(const StringImmNode* op) {
  return LLVMBuildGlobalStringPtr(builder_, op->value.c_str(), "str");
}

LLVMValueRef Emitter::VisitExpr_(const SelectNode* op) {
  LLVMValueRef c = VisitExpr(op->condition), t = VisitExpr(op->true_value), f = VisitExpr(op->false_value);
  return LLVMBuildSelect(builder_, c, t, f, "");
}

LLVMValueRef Emitter::VisitExpr_(const RampNode* op) {
  DataType t = op->dtype;
  std::vector<LLVMValueRef> steps;
  for (int64_t i = 0; i < op->lanes; ++i)
    steps.push_back(LLVMConstInt(ElementType(ctx_, t), static_cast<uint64_t>(i), 1));
  LLVMValueRef iota = LLVMConstVector(steps.data(), static_cast<unsigned>(steps.size()));
  LLVMValueRef base = Splat(VisitExpr(op->base), static_cast<int>(op->lanes));
  LLVMValueRef stride = Splat(VisitExpr(op->stride), static_cast<int>(op->lanes));
  return LLVMBuildAdd(builder_, base, LLVMBuildMul(builder_, iota, stride, ""), "");
}

LLVMValueRef Emitter::VisitExpr_(const BroadcastNode* op) {
  return Splat(VisitExpr(op->value), static_cast<int>(op->lanes));
}

LLVMValueRef Emitter::VisitExpr_(const ShuffleNode* op) {
  std::vector<LLVMValueRef> mask;
  for (int64_t i : op->indices) mask.push_back(Int32(i));
  LLVMValueRef a = VisitExpr(op->vectors[0]);
  if (op->vectors[0].dtype().is_scalar()) {  // scalars side by side
    LLVMValueRef out = LLVMGetPoison(TypeFor(ctx_, op->dtype));
    for (size_t i = 0; i < mask.size(); ++i) {
      out = LLVMBuildInsertElement(builder_, out, VisitExpr(op->vectors[op->indices[static_cast<int64_t>(i)]]),
                                   Int32(static_cast<int64_t>(i)), "");
    }
    return out;
  }
  LLVMValueRef b = op->vectors.size() > 1 ? VisitExpr(op->vectors[1]) : LLVMGetPoison(LLVMTypeOf(a));
  if (op->vectors.size() > 2) throw InternalError("a shuffle of more than two vectors");
  if (mask.size() == 1) {
    int64_t i = op->indices[0], n = op->vectors[0].dtype().lanes();
    return LLVMBuildExtractElement(builder_, i < n ? a : b, Int32(i < n ? i : i - n), "");
  }
  return LLVMBuildShuffleVector(builder_, a, b, LLVMConstVector(mask.data(), static_cast<unsigned>(mask.size())), "");
}

void Emitter::Bind(const tir::Var& var, const PrimExpr& value) {
  vars_[var.get()] = VisitExpr(value);
  if (value.as<tir::MinNode>() || value.as<tir::MaxNode>()) bounded_[var.get()] = value;
}

LLVMValueRef Emitter::VisitExpr_(const tir::LetNode* op) {
  Bind(op->var, op->value);
  return VisitExpr(op->body);
}

LLVMValueRef Emitter::IfThenElseExpr(const tir::CallNode* op) {
  if (op->args[0].dtype().lanes() > 1)
    throw InternalError("a vector if_then_else must be masked before code generation (in `" + symbol_ + "`)");
  LLVMValueRef c = VisitExpr(op->args[0]);
  LLVMBasicBlockRef yes = Block("then"), no = Block("else"), end = Block("endif");
  LLVMBuildCondBr(builder_, c, yes, no);
  LLVMPositionBuilderAtEnd(builder_, yes);
  LLVMValueRef tv = VisitExpr(op->args[1]);
  LLVMBasicBlockRef yes_end = LLVMGetInsertBlock(builder_);
  LLVMBuildBr(builder_, end);
  LLVMPositionBuilderAtEnd(builder_, no);
  LLVMValueRef fv = VisitExpr(op->args[2]);
  LLVMBasicBlockRef no_end = LLVMGetInsertBlock(builder_);
  LLVMBuildBr(builder_, end);
  LLVMPositionBuilderAtEnd(builder_, end);
  LLVMValueRef phi = LLVMBuildPhi(builder_, LLVMTypeOf(tv), "");
  LLVMValueRef values[] = {tv, fv};
  LLVMBasicBlockRef blocks[] = {yes_end, no_end};
  LLVMAddIncoming(phi, values, blocks, 2);
  return phi;
}

}  // namespace baton::codegen

// SPDX-License-Identifier: Apache-2.0
// Calls of PackedFuncs by name.
#include <baton/runtime/c_backend_api.h>
#include <baton/runtime/module.h>
#include <baton/tir/intrin.h>

#include <algorithm>

#include "codegen/llvm/function_emitter.h"

namespace baton::codegen {

using namespace tir;  // NOLINT: every node kind is named below

LLVMValueRef Emitter::StackTensor(const tir::CallNode* op) {
  DataType t = op->args[1].dtype();
  int64_t ndim = static_cast<int64_t>(op->args.size()) - 2;
  LLVMTypeRef i8 = LLVMInt8TypeInContext(ctx_), i16 = LLVMInt16TypeInContext(ctx_);
  LLVMTypeRef fields[] = {ptr_, i32_, i32_, i32_, i8, i8, i16, ptr_, ptr_, i64_};  // DLTensor
  LLVMTypeRef type = LLVMStructTypeInContext(ctx_, fields, 10, 0);
  LLVMValueRef shape = Alloca(i64_, std::max<int64_t>(ndim, 1), 8), tensor = Alloca(type, 1, 8);
  for (int64_t d = 0; d < ndim; ++d) {
    LLVMValueRef at = Int64(d), size = Convert(VisitExpr(op->args[d + 2]), op->args[d + 2].dtype(), DataType::Int(64));
    LLVMBuildStore(builder_, size, LLVMBuildInBoundsGEP2(builder_, i64_, shape, &at, 1, ""));
  }
  LLVMValueRef values[] = {VisitExpr(op->args[0]),
                           Int32(kDLCPU),
                           Int32(0),
                           Int32(ndim),
                           LLVMConstInt(i8, t.code(), 0),
                           LLVMConstInt(i8, static_cast<uint64_t>(t.bits()), 0),
                           LLVMConstInt(i16, static_cast<uint64_t>(t.lanes()), 0),
                           shape,
                           LLVMConstNull(ptr_),
                           Int64(0)};
  for (unsigned i = 0; i < 10; ++i)
    LLVMBuildStore(builder_, values[i], LLVMBuildStructGEP2(builder_, type, tensor, i, ""));
  return tensor;
}

LLVMValueRef Emitter::CallPacked(const tir::CallNode* op) {
  const std::string callee = op->args[0].as<StringImmNode>()->value.str();
  LLVMTypeRef fields[] = {i32_, i32_, i64_};  // BatonValue
  LLVMTypeRef value_type = LLVMStructTypeInContext(ctx_, fields, 3, 0);
  int64_t n = static_cast<int64_t>(op->args.size()) - 1;
  LLVMValueRef values = Alloca(value_type, n + 1, 16);
  auto field = [&](int64_t i, unsigned k) {
    LLVMValueRef index = Int64(i);
    LLVMValueRef at = LLVMBuildInBoundsGEP2(builder_, value_type, values, &index, 1, "");
    return LLVMBuildStructGEP2(builder_, value_type, at, k, "");
  };
  for (int64_t i = 0; i < n; ++i) {
    const PrimExpr& a = op->args[i + 1];
    DataType t = a.dtype();
    const auto* call = a.as<tir::CallNode>();
    int64_t code = 0;
    LLVMValueRef payload = nullptr;
    if (call && call->op == intrin::tvm_stack_make_array) {
      code = kBatonTensor;
      payload = LLVMBuildPtrToInt(builder_, StackTensor(call), i64_, "");
    } else if (a.as<StringImmNode>() || t.is_handle()) {
      code = t.is_handle() && !a.as<StringImmNode>() ? kBatonHandle : kBatonStr;
      payload = LLVMBuildPtrToInt(builder_, VisitExpr(a), i64_, "");
    } else if (t.is_floating()) {
      code = kBatonFloat;
      payload = LLVMBuildBitCast(builder_, Convert(VisitExpr(a), t, DataType::Float(64)), i64_, "");
    } else {
      code = t.is_bool() ? kBatonBool : kBatonInt;
      payload = Convert(VisitExpr(a), t, DataType::Int(64));
    }
    LLVMBuildStore(builder_, Int32(code), field(i, 0));
    LLVMBuildStore(builder_, Int32(0), field(i, 1));
    LLVMBuildStore(builder_, payload, field(i, 2));
  }
  LLVMBuildStore(builder_, Int32(kBatonNull), field(n, 0));
  LLVMBuildStore(builder_, Int64(0), field(n, 2));
  // The first caller writes the slot; concurrent threads write the same value.
  const std::string slot_name = "baton_packed_slot." + callee;
  LLVMValueRef slot = LLVMGetNamedGlobal(module_, slot_name.c_str());
  if (!slot) {
    slot = LLVMAddGlobal(module_, ptr_, slot_name.c_str());
    LLVMSetInitializer(slot, LLVMConstNull(ptr_));
    LLVMSetAlignment(slot, 8);
    LLVMSetLinkage(slot, LLVMInternalLinkage);
  }
  auto load = [&] {
    LLVMValueRef v = LLVMBuildLoad2(builder_, ptr_, slot, "");
    LLVMSetAlignment(v, 8);
    LLVMSetOrdering(v, LLVMAtomicOrderingMonotonic);
    return v;
  };
  LLVMBasicBlockRef from = nullptr, look = Block("look_up"), ready = Block("found");
  LLVMValueRef known = load();
  from = LLVMGetInsertBlock(builder_);
  LLVMBuildCondBr(builder_, LLVMBuildIsNull(builder_, known, ""), look, ready);
  LLVMPositionBuilderAtEnd(builder_, look);
  LLVMValueRef out = Alloca(ptr_, 1, 8);
  LLVMValueRef self = LLVMGetNamedGlobal(module_, runtime::kModuleSymbol);
  if (!self) self = LLVMAddGlobal(module_, ptr_, runtime::kModuleSymbol);
  LLVMValueRef text = LLVMBuildGlobalStringPtr(builder_, callee.c_str(), "str");
  ReturnIfError(CallBackend(offsetof(BatonBackendApi, get_function), i32_,
                            {LLVMBuildLoad2(builder_, ptr_, self, ""), text, out}));
  LLVMValueRef found = LLVMBuildLoad2(builder_, ptr_, out, "");
  LLVMValueRef store = LLVMBuildStore(builder_, found, slot);
  LLVMSetAlignment(store, 8);
  LLVMSetOrdering(store, LLVMAtomicOrderingMonotonic);
  LLVMBasicBlockRef looked = LLVMGetInsertBlock(builder_);
  LLVMBuildBr(builder_, ready);
  LLVMPositionBuilderAtEnd(builder_, ready);
  LLVMValueRef function = LLVMBuildPhi(builder_, ptr_, "");
  LLVMValueRef incoming[] = {known, found};
  LLVMBasicBlockRef blocks[] = {from, looked};
  LLVMAddIncoming(function, incoming, blocks, 2);
  LLVMValueRef end = Int64(n), ret = LLVMBuildInBoundsGEP2(builder_, value_type, values, &end, 1, "");
  ReturnIfError(CallBackend(offsetof(BatonBackendApi, call_function), i32_, {function, values, Int32(n), ret}));
  DataType t = op->dtype;
  if (t.is_void()) return Int32(0);
  LLVMValueRef code = LLVMBuildLoad2(builder_, i32_, field(n, 0), "");
  LLVMValueRef bits = LLVMBuildLoad2(builder_, i64_, field(n, 2), "");
  if (op->op == intrin::tvm_call_trace_packed && n > 0) {  // where it gives nothing, the value is the last argument
    LLVMValueRef nothing = LLVMBuildICmp(builder_, LLVMIntEQ, code, Int32(kBatonNull), "");
    code = LLVMBuildSelect(builder_, nothing, LLVMBuildLoad2(builder_, i32_, field(n - 1, 0), ""), code, "");
    bits = LLVMBuildSelect(builder_, nothing, LLVMBuildLoad2(builder_, i64_, field(n - 1, 2), ""), bits, "");
  }
  if (t.is_handle()) return LLVMBuildIntToPtr(builder_, bits, ptr_, "");
  LLVMValueRef is_float = LLVMBuildICmp(builder_, LLVMIntEQ, code, Int32(kBatonFloat), "");
  LLVMValueRef real = LLVMBuildBitCast(builder_, bits, LLVMDoubleTypeInContext(ctx_), "");
  LLVMValueRef as_float = Convert(real, DataType::Float(64), t), as_int = Convert(bits, DataType::Int(64), t);
  return LLVMBuildSelect(builder_, is_float, as_float, as_int, "");
}

}  // namespace baton::codegen

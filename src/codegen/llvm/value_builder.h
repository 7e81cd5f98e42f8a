// SPDX-License-Identifier: Apache-2.0
// Values of LLVM IR: constants, conversions, vectors, masked rows. Knows LLVM and dtypes, not TIR.
#pragma once

#include <baton/ir/target.h>
#include <llvm-c/Core.h>
#include <llvm-c/Target.h>

#include <string>
#include <vector>

#include "codegen/llvm/processor.h"

namespace baton::codegen {

/// Type of an element, of a value, and of a value in memory, where a bool is a byte.
LLVMTypeRef ElementType(LLVMContextRef c, DataType t);
LLVMTypeRef TypeFor(LLVMContextRef c, DataType t);
LLVMTypeRef MemoryType(LLVMContextRef c, DataType t);

class ValueBuilder {
 public:
  ValueBuilder(LLVMModuleRef module, const Target& target)
      : module_(module),
        ctx_(LLVMGetModuleContext(module)),
        target_(target),
        builder_(LLVMCreateBuilderInContext(ctx_)) {
    const Processor& processor = ProcessorOf(LLVMGetTarget(module));
    has_float16_ = processor.float16.empty() || target->Has(processor.float16);
    has_fma_ = processor.has_fma || target->Has("fma") || target->Has("avx512f") || target->Has("vfp4");
    ptr_ = LLVMPointerTypeInContext(ctx_, 0);
    i32_ = LLVMInt32TypeInContext(ctx_);
    i64_ = LLVMInt64TypeInContext(ctx_);
  }
  ~ValueBuilder() { LLVMDisposeBuilder(builder_); }
  ValueBuilder(const ValueBuilder&) = delete;

 protected:
  LLVMBasicBlockRef Block(const char* name) { return LLVMAppendBasicBlockInContext(ctx_, func_, name); }
  LLVMValueRef Int32(int64_t v) { return LLVMConstInt(i32_, static_cast<uint64_t>(v), 1); }
  LLVMValueRef Int64(int64_t v) { return LLVMConstInt(i64_, static_cast<uint64_t>(v), 1); }
  /// A slot on the stack; in the entry block, so that it is one slot whatever loop it is in.
  LLVMValueRef Alloca(LLVMTypeRef type, int64_t count, unsigned align);

  LLVMValueRef Intrinsic(const char* name, std::vector<LLVMTypeRef> overload, std::vector<LLVMValueRef> args);
  LLVMValueRef CallExtern(const char* name, LLVMTypeRef ret, std::vector<LLVMValueRef> args);
  LLVMValueRef FromMemory(LLVMValueRef v, DataType t);
  LLVMValueRef ToMemory(LLVMValueRef v, DataType t);
  LLVMValueRef Splat(LLVMValueRef v, int lanes);
  LLVMValueRef Convert(LLVMValueRef v, DataType from, DataType to);
  LLVMValueRef ConstLike(int64_t v, DataType t);
  /// a * b + c in one rounding.
  LLVMValueRef MultiplyAdd(LLVMValueRef a, LLVMValueRef b, LLVMValueRef c, DataType t);
  /// sum[l] + the products of four neighbours of `a` (uint8) and `b` (int8), by one instruction where there is one.
  LLVMValueRef Dot4(LLVMValueRef a, LLVMValueRef b, LLVMValueRef sum, int lanes);
  /// sum[l] + the products of two neighbours of `a` and `b` (bfloat16), the odd one first, by one instruction where
  /// there is one. Products are exact in float32, so that both forms round alike; the instruction flushes denormal
  /// numbers.
  LLVMValueRef Dot2(LLVMValueRef a, LLVMValueRef b, LLVMValueRef sum, int lanes);
  /// A vector of floats between limits of int32 as integers of up to 32 bits: 0 for NaN.
  LLVMValueRef ClippedToInt(LLVMValueRef v, DataType to);
  /// The four products of each lane, even and odd bytes as 16 bits by pmaddwd: exact, where pmaddubsw saturates. Null
  /// where the target has no such instruction for the width.
  LLVMValueRef DotOfPairs(LLVMValueRef a, LLVMValueRef b, int lanes);
  /// A vector of floats as int32: out of range the nearest limit, 0 for NaN.
  LLVMValueRef FloatsToInt32(LLVMValueRef v, DataType from, LLVMTypeRef ints);
  /// x * 2^k for an integral float k in [-300, 300], rounded once.
  LLVMValueRef Ldexp(LLVMValueRef x, LLVMValueRef k, DataType t);
  /// Combines the halves of a vector until one lane is left.
  template <class F>
  LLVMValueRef Halves(LLVMValueRef v, int lanes, F combine) {
    while (lanes > 1) {
      int half = lanes / 2;
      std::vector<LLVMValueRef> lo, hi;
      for (int i = 0; i < half; ++i) lo.push_back(Int32(i)), hi.push_back(Int32(i + half));
      LLVMValueRef poison = LLVMGetPoison(LLVMTypeOf(v));
      LLVMValueRef a, b;
      if (half == 1) {
        a = LLVMBuildExtractElement(builder_, v, Int32(0), "");
        b = LLVMBuildExtractElement(builder_, v, Int32(1), "");
      } else {
        a = LLVMBuildShuffleVector(builder_, v, poison, LLVMConstVector(lo.data(), static_cast<unsigned>(half)), "");
        b = LLVMBuildShuffleVector(builder_, v, poison, LLVMConstVector(hi.data(), static_cast<unsigned>(half)), "");
      }
      LLVMValueRef r = combine(a, b);
      if (lanes % 2) {  // an odd lane joins at the end
        LLVMValueRef last = LLVMBuildExtractElement(builder_, v, Int32(lanes - 1), "");
        if (half == 1) return combine(r, last);
        throw InternalError("a vector reduction over " + std::to_string(lanes) + " lanes");
      }
      v = r;
      lanes = half;
    }
    return v;
  }
  // ---- Masked rows. Accesses wider than a register are split here. LLVM 19 splits them wrongly: for AVX2, where the
  // mask of the upper half is a constant 0, it loads that half without a mask (llc 19.1.7, nn.correlation on 9
  // columns).

  bool IsWiderThanRegister(LLVMTypeRef element, int lanes) const;
  LLVMValueRef LanesOf(LLVMValueRef v, int first, int count);
  LLVMValueRef After(LLVMValueRef at, LLVMTypeRef element, int lanes);
  /// `lanes` neighbours from `at` on; 0 where the mask is false.
  LLVMValueRef MaskedRow(LLVMValueRef at, LLVMValueRef mask, LLVMTypeRef element, int lanes, LLVMValueRef align);
  void StoreMaskedRow(LLVMValueRef value, LLVMValueRef at, LLVMValueRef mask, LLVMTypeRef element, int lanes,
                      LLVMValueRef align);

  LLVMModuleRef module_;
  LLVMContextRef ctx_;
  Target target_;
  bool has_float16_;  // whether the processor converts float16 by an instruction
  bool has_fma_;      // whether it multiplies and adds by one
  LLVMBuilderRef builder_;
  LLVMTypeRef ptr_, i32_, i64_;
  LLVMValueRef func_ = nullptr;  // the function that is built
  LLVMBasicBlockRef entry_ = nullptr;
};

}  // namespace baton::codegen

// SPDX-License-Identifier: Apache-2.0
// float16 and bfloat16 in generated code. Both are 16-bit integers to LLVM: on a processor without instructions for
// them LLVM would call library functions that artifacts do not carry.
#pragma once

#include <baton/runtime/data_type.h>
#include <llvm-c/Core.h>

namespace baton::codegen {

/// Whether `t` is float16 or bfloat16, in any number of lanes.
inline bool IsHalf(runtime::DataType t) { return t.bits() == 16 && t.is_floating(); }

/// The float32 value of `v`, whose 16-bit integers are the bits of `from`. Exact; a signalling NaN becomes quiet.
/// `has_float16`: the processor converts float16 by an instruction.
LLVMValueRef HalfToFloat32(LLVMBuilderRef builder, LLVMValueRef v, runtime::DataType from, bool has_float16);

/// The bits of `v`, a float32, as `to`: rounded to nearest, ties to even; overflow gives infinity; NaN stays NaN.
LLVMValueRef Float32ToHalf(LLVMBuilderRef builder, LLVMValueRef v, runtime::DataType to, bool has_float16);

/// The constant of a half type nearest to `value`, as its bits.
LLVMValueRef HalfConstant(LLVMContextRef context, double value, runtime::DataType t);

}  // namespace baton::codegen

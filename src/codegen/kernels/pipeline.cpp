// SPDX-License-Identifier: Apache-2.0
#include "codegen/kernels/kernel.h"

namespace baton::codegen::kernels {

transform::Pass Pipeline(const char* name) {
  using transform::GetPass;
  return transform::Sequential(
      Array<transform::Pass>{
          GetPass("tir.UnifyThreadBinding"),
          GetPass("tir.LowerThreadAllreduce"),
          GetPass("tir.ThreadSync"),
          GetPass("tir.InjectVirtualThread"),
          GetPass("tir.StorageFlatten"),  // one index from here on
          GetPass("tir.Simplify"),        // loop bounds are literals where they can be
          GetPass("tir.VectorizeLoop", {{"enable_vectorize", runtime::Any(false)}}),  // plain and parallel loops alone
          GetPass("tir.BF16Legalize"),  // no arithmetic on half floats from here on
          GetPass("tir.LowerIntrin"),   // what is left is a function of the language
          GetPass("tir.Simplify"),
      },
      name);
}

}  // namespace baton::codegen::kernels

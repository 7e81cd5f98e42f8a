// SPDX-License-Identifier: Apache-2.0
#include "codegen/kernels/kernel.h"

namespace baton::codegen::kernels {

transform::Pass Pipeline(const char* name, bool strict) {
  using transform::GetPass;
  Array<transform::Pass> passes = {
      GetPass("tir.UnifyThreadBinding"),
      GetPass("tir.LowerThreadAllreduce"),
      GetPass("tir.ThreadSync"),
      GetPass("tir.InjectVirtualThread"),
      GetPass("tir.StorageFlatten"),  // one index from here on
      GetPass("tir.Simplify"),        // loop bounds are literals where they can be
      GetPass("tir.VectorizeLoop", {{"enable_vectorize", runtime::Any(false)}}),  // plain and parallel loops alone
      GetPass("tir.BF16Legalize"),  // no arithmetic on half floats from here on
  };
  if (strict) passes.push_back(GetPass("tir.LowerIntrin"));  // what is left is a function of the language
  passes.push_back(GetPass("tir.Simplify"));
  return transform::Sequential(passes, name);
}

}  // namespace baton::codegen::kernels

// SPDX-License-Identifier: Apache-2.0
// NM-003: "Pass Infrastructure", Sequential Passes: how a sequence runs its passes (TR-04: names are strings).
#include <baton/compat/tvm.h>
#include <doctest/doctest.h>

namespace seed_sequential_call {
using namespace tvm::transform;
using tvm::Array;
using tvm::Object;
using tvm::String;

struct SequentialNode : Object {
  Array<Pass> passes;
  bool PassEnabled(const PassInfo& info) const { return PassContext::Current().PassEnabled(info); }
  Module operator()(const Module& module, const PassContext& pass_ctx) const;
};

Module SequentialNode::operator()(const Module& module, const PassContext& pass_ctx) const {
  Module mod = module;
  for (const Pass& pass : passes) {
    ICHECK(pass.defined()) << "Found undefined pass for optimization.";
    const PassInfo& pass_info = pass->Info();
    if (!PassEnabled(pass_info)) continue;
    for (const auto& it : pass_info->required) {
      mod = GetPass(it)(mod, pass_ctx);
    }
    mod = pass(mod, pass_ctx);
  }
  return mod;
}

}  // namespace seed_sequential_call

TEST_CASE("NM-003 TR-04 seed 000: a sequence runs what is enabled, prerequisites first") {
  using namespace tvm::transform;
  int ran = 0;
  auto count = [&ran](tvm::IRModule m, PassContext) {
    ++ran;
    return m;
  };
  seed_sequential_call::SequentialNode sequence;
  sequence.passes = {CreateModulePass(count, 0, "low", {"InferType"}), CreateModulePass(count, 4, "high", {})};
  tvm::IRModule mod(tvm::Map<tvm::GlobalVar, tvm::BaseFunc>{});
  sequence(mod, PassContext::Current());
  CHECK(ran == 1);
  sequence.passes.push_back(Pass());
  CHECK_THROWS_WITH_AS(sequence(mod, PassContext::Current()), doctest::Contains("Found undefined pass"), tvm::Error);
}

// SPDX-License-Identifier: Apache-2.0
// NM-003: "Adding a Compiler Pass to Relay" (later), Registering a Pass: FoldConstant of a function in its module.
#include <baton/compat/tvm.h>
#include <doctest/doctest.h>

namespace seed_fold_constant_003 {
using namespace tvm::relay;
using tvm::Downcast;
using tvm::IRModule;
namespace runtime = tvm::runtime;

Expr FoldConstant(const Expr& expr, const IRModule&) { return expr; }

namespace transform {
using tvm::transform::CreateFunctionPass;
using tvm::transform::Pass;
using tvm::transform::PassContext;

Pass FoldConstant() {
  runtime::TypedPackedFunc<Function(Function, IRModule, PassContext)> pass_func = [=](Function f, IRModule m,
                                                                                      PassContext pc) {
    return Downcast<Function>(seed_fold_constant_003::FoldConstant(f, m));
  };
  return CreateFunctionPass(pass_func, 2, "FoldConstant", {});
}

// The document's line, under a name of the test's own.
TVM_REGISTER_GLOBAL("relay._transform.SeedFoldConstant003").set_body_typed(FoldConstant);

}  // namespace transform
}  // namespace seed_fold_constant_003

TEST_CASE("NM-003 NM-007 seed 003: FoldConstant is registered as a pass, and usable in a sequence") {
  using namespace tvm::transform;
  Pass pass = (*tvm::runtime::Registry::Get("relay._transform.SeedFoldConstant003"))();
  tvm::IRModule mod(tvm::Map<tvm::GlobalVar, tvm::BaseFunc>{});
  CHECK(Sequential(tvm::Array<Pass>{pass})(mod).same_as(mod));
  CHECK(tvm::runtime::Registry::Get("relay._transform.FoldConstant") != nullptr);
}

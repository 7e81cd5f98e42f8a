// SPDX-License-Identifier: Apache-2.0
// NM-003: "Pass Infrastructure", Pass Registration: FoldConstant as a pass with an endpoint, and its declarations.
#include <baton/compat/tvm.h>
#include <doctest/doctest.h>

// Under a namespace and a name of the test's own: the real one is registered already.
namespace seed_fold_constant {
using namespace tvm::relay;
using tvm::Downcast;
using tvm::IRModule;
namespace runtime = tvm::runtime;

Expr FoldConstant(const Expr& expr);

Expr FoldConstant(const Expr& expr) { return expr; }

namespace transform {
using tvm::transform::CreateFunctionPass;
using tvm::transform::Pass;
using tvm::transform::PassContext;

TVM_DLL Pass FoldConstant();

Pass FoldConstant() {
  runtime::TypedPackedFunc<Function(Function, IRModule, PassContext)> pass_func =
      [=](Function f, IRModule m, PassContext pc) { return Downcast<Function>(seed_fold_constant::FoldConstant(f)); };
  return CreateFunctionPass(pass_func, 2, "FoldConstant", {});
}

TVM_REGISTER_GLOBAL("relay._transform.SeedFoldConstant").set_body_typed(FoldConstant);

}  // namespace transform
}  // namespace seed_fold_constant

TEST_CASE("NM-003 NM-006 PF-024 seed 000: a pass is registered and found by its name") {
  tvm::transform::Pass pass = (*tvm::runtime::Registry::Get("relay._transform.SeedFoldConstant"))();
  CHECK(pass->Info()->opt_level == 2);
  CHECK(pass->Info()->name == "FoldConstant");
  CHECK(tvm::relay::transform::FoldConstant()->Info()->opt_level == 2);
}

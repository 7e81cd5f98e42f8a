// SPDX-License-Identifier: Apache-2.0
// NM-003: "Pass Infrastructure": the functions that create passes.
#include <baton/compat/tvm.h>
#include <baton/tir/transform.h>
#include <doctest/doctest.h>

namespace seed_create_pass {
using namespace tvm;
namespace runtime = tvm::runtime;
using tvm::relay::Function;
using tvm::tir::PrimFunc;
using tvm::transform::Pass;
using tvm::transform::PassContext;
using tvm::transform::PassInfo;

Pass CreateFunctionPass(const runtime::TypedPackedFunc<Function(Function, IRModule, PassContext)>& pass_func,
                        int opt_level, String name, Array<String> required);

Pass CreatePrimFuncPass(const runtime::TypedPackedFunc<PrimFunc(PrimFunc, IRModule, PassContext)>& pass_func,
                        int opt_level, String name, Array<String> required);

Pass CreateModulePass(const runtime::TypedPackedFunc<IRModule(IRModule, PassContext)>& pass_func, int opt_level,
                      String name, Array<String> required);

Pass Sequential(tvm::Array<Pass> passes, PassInfo pass_info);

// They are declared as Baton's own are.
static_assert(std::is_same_v<decltype(&CreateFunctionPass), decltype(&tvm::relay::transform::CreateFunctionPass)>);
static_assert(std::is_same_v<decltype(&CreatePrimFuncPass), decltype(&tvm::tir::transform::CreatePrimFuncPass)>);
static_assert(std::is_same_v<decltype(&CreateModulePass), decltype(&tvm::transform::CreateModulePass)>);
static_assert(std::is_convertible_v<tvm::transform::Sequential, Pass>);

}  // namespace seed_create_pass

TEST_CASE("NM-003 seed 000: passes are created by these functions") {
  using namespace tvm::transform;
  auto same = [](auto f, tvm::IRModule, PassContext) { return f; };
  Pass f = tvm::relay::transform::CreateFunctionPass(
      [=](tvm::relay::Function f, tvm::IRModule m, PassContext c) { return same(f, m, c); }, 1, "f", {});
  Pass m = CreateModulePass([](tvm::IRModule m, PassContext) { return m; }, 2, "m", {});
  Pass s = Sequential(tvm::Array<Pass>{f, m}, PassInfo(3, "s", {}));
  CHECK(f->Info()->opt_level + m->Info()->opt_level + s->Info()->opt_level == 6);
}

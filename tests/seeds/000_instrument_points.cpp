// SPDX-License-Identifier: Apache-2.0
// NM-003: "Pass Infrastructure", Pass Instrument: the four points, and how a pass runs between them.
#include <baton/compat/tvm.h>
#include <doctest/doctest.h>

namespace seed_instrument_points {
using tvm::IRModule;
using tvm::transform::PassContext;
using tvm::transform::PassInfo;

struct Points {
  TVM_DLL void InstrumentEnterPassContext();
  TVM_DLL void InstrumentExitPassContext();
  TVM_DLL bool InstrumentBeforePass(const IRModule& mod, const PassInfo& info) const;
  TVM_DLL void InstrumentAfterPass(const IRModule& mod, const PassInfo& info) const;
};

// The real ones are declared so.
template <class A, class B>
constexpr bool kSame = false;
template <class R, class X, class Y, class... A>
constexpr bool kSame<R (X::*)(A...), R (Y::*)(A...)> = true;
template <class R, class X, class Y, class... A>
constexpr bool kSame<R (X::*)(A...) const, R (Y::*)(A...) const> = true;
static_assert(kSame<decltype(&Points::InstrumentEnterPassContext), decltype(&PassContext::InstrumentEnterPassContext)>);
static_assert(kSame<decltype(&Points::InstrumentExitPassContext), decltype(&PassContext::InstrumentExitPassContext)>);
static_assert(kSame<decltype(&Points::InstrumentBeforePass), decltype(&PassContext::InstrumentBeforePass)>);
static_assert(kSame<decltype(&Points::InstrumentAfterPass), decltype(&PassContext::InstrumentAfterPass)>);

IRModule Run(IRModule ir_module, PassContext pass_ctx, PassInfo pass_info, const tvm::transform::Pass& pass) {
  IRModule new_ir_module;
  auto run_pass = [&](IRModule mod, PassContext ctx) { return pass->operator()(mod, ctx); };
  if (pass_ctx.InstrumentBeforePass(ir_module, pass_info)) {
    new_ir_module = run_pass(ir_module, pass_ctx);
    pass_ctx.InstrumentAfterPass(new_ir_module, pass_info);
    return new_ir_module;
  }
  return ir_module;
}

}  // namespace seed_instrument_points

TEST_CASE("NM-003 seed 000: a pass runs between the instrument points, if the instruments let it") {
  using namespace tvm::transform;
  using tvm::PackedFunc;
  using tvm::runtime::Args;
  using tvm::runtime::RetValue;
  std::string log;
  bool let = true;
  auto say = [&](const char* what) { return PackedFunc([&log, what](Args, RetValue*) { log += what; }); };
  PackedFunc should([&let](Args, RetValue* rv) { *rv = let; });
  PassContext ctx = PassContext::Create();
  ctx->instruments = {
      tvm::instrument::MakePassInstrument("i", say("enter "), say("exit "), should, say("before "), say("after "))};
  Pass pass = CreateModulePass([&](tvm::IRModule m, PassContext) { return log += "run ", m; }, 0, "p", {});
  tvm::IRModule mod(tvm::Map<tvm::GlobalVar, tvm::BaseFunc>{});
  seed_instrument_points::Run(mod, ctx, pass->Info(), pass);
  CHECK(log == "before run after ");
  let = false;
  seed_instrument_points::Run(mod, ctx, pass->Info(), pass);
  CHECK(log == "before run after ");
}

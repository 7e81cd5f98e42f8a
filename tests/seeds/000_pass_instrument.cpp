// SPDX-License-Identifier: Apache-2.0
// NM-003: "Pass Infrastructure", Pass Instrument: PassInstrumentNode and PassInstrument.
#include <baton/compat/tvm.h>
#include <doctest/doctest.h>

namespace seed_pass_instrument {
using namespace tvm;
namespace transform = tvm::transform;

namespace instrument {

class PassInstrumentNode : public Object {
 public:
  String name;
  virtual void EnterPassContext() const = 0;
  virtual void ExitPassContext() const = 0;
  virtual bool ShouldRun(const IRModule& mod, const transform::PassInfo& info) const = 0;
  virtual void RunBeforePass(const IRModule& mod, const transform::PassInfo& info) const = 0;
  virtual void RunAfterPass(const IRModule& mod, const transform::PassInfo& info) const = 0;
  /* Other fields are omitted. */
};

class PassInstrument : public ObjectRef {
 public:
  TVM_DEFINE_OBJECT_REF_METHODS(PassInstrument, ObjectRef, PassInstrumentNode);
};

}  // namespace instrument

/// An instrument of one's own, over the real base.
struct Counter : tvm::instrument::PassInstrumentNode {
  mutable int runs = 0;
  void EnterPassContext() const override {}
  void ExitPassContext() const override {}
  bool ShouldRun(const IRModule&, const transform::PassInfo&) const override { return true; }
  void RunBeforePass(const IRModule&, const transform::PassInfo&) const override { ++runs; }
  void RunAfterPass(const IRModule&, const transform::PassInfo&) const override {}
};

}  // namespace seed_pass_instrument

TEST_CASE("NM-003 seed 000: an instrument written in C++ watches passes") {
  using namespace tvm::transform;
  auto counter = tvm::make_object<seed_pass_instrument::Counter>();
  CHECK_FALSE(seed_pass_instrument::instrument::PassInstrument().defined());
  PassContext ctx = PassContext::Create();
  ctx->instruments = {tvm::instrument::PassInstrument(tvm::ObjectPtr<tvm::Object>(counter))};
  tvm::With<PassContext> scope(ctx);
  CreateModulePass([](tvm::IRModule m, PassContext) { return m; }, 0, "p",
                   {})(tvm::IRModule(tvm::Map<tvm::GlobalVar, tvm::BaseFunc>{}));
  CHECK(counter->runs == 1);
}

// SPDX-License-Identifier: Apache-2.0
// NM-003: "Pass Infrastructure", Pass Constructs: PassNode (TR-03: a comma, and public inheritance).
#include <baton/compat/tvm.h>
#include <doctest/doctest.h>

namespace seed_pass_node {
using namespace tvm;
using tvm::Object;
using tvm::transform::Module;
using tvm::transform::PassContext;
using tvm::transform::PassInfo;

class PassNode : public Object {
 public:
  virtual PassInfo Info() const = 0;
  virtual Module operator()(const IRModule& mod, const PassContext& pass_ctx) const = 0;
  virtual ~PassNode() = default;
};

struct Nothing : PassNode {
  PassInfo Info() const override { return PassInfo(0, "Nothing", {}); }
  Module operator()(const IRModule& mod, const PassContext&) const override { return mod; }
};

}  // namespace seed_pass_node

TEST_CASE("NM-003 NM-008 TR-02 TR-03 seed 000: PassNode; `Module` of a pass is IRModule") {
  seed_pass_node::Nothing pass;
  tvm::IRModule mod(tvm::Map<tvm::GlobalVar, tvm::BaseFunc>{});
  CHECK(pass(mod, tvm::transform::PassContext::Current()).same_as(mod));
  CHECK(pass.Info()->name == "Nothing");
  static_assert(std::is_same_v<tvm::transform::Module, tvm::IRModule>);
  static_assert(!std::is_convertible_v<tvm::IRModule, tvm::runtime::Module>);
  static_assert(!std::is_convertible_v<tvm::runtime::Module, tvm::IRModule>);
}

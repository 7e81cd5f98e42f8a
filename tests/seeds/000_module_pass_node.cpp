// SPDX-License-Identifier: Apache-2.0
// NM-003: "Pass Infrastructure": ModulePassNode (TR-03: public inheritance).
#include <baton/compat/tvm.h>
#include <doctest/doctest.h>

namespace seed_module_pass_node {
using namespace tvm;
namespace runtime = tvm::runtime;
using tvm::relay::Function;
using tvm::transform::Module;
using tvm::transform::Pass;
using tvm::transform::PassContext;
using tvm::transform::PassInfo;
using PassNodeBase = tvm::Object;

struct PassNode : PassNodeBase {
  virtual Module operator()(const Module& mod, const PassContext& pass_ctx) const = 0;
  virtual ~PassNode() = default;
};

class ModulePassNode : public PassNode {
 public:
  PassInfo pass_info;
  runtime::TypedPackedFunc<Module(Module, PassContext)> pass_func;
  Module operator()(const Module& mod, const PassContext& pass_ctx) const final;
  // Other members/methods are omitted
};

Module ModulePassNode::operator()(const Module& mod, const PassContext&) const { return mod; }

}  // namespace seed_module_pass_node

TEST_CASE("NM-003 seed 000: ModulePassNode") {
  seed_module_pass_node::ModulePassNode node;
  tvm::IRModule mod(tvm::Map<tvm::GlobalVar, tvm::BaseFunc>{});
  CHECK(node(mod, tvm::transform::PassContext::Current()).same_as(mod));
  // The real class has the same members.
  tvm::transform::ModulePassNode real;
  real.pass_info = tvm::transform::PassInfo(1, "real", {});
  CHECK(real.Info()->opt_level == 1);
}

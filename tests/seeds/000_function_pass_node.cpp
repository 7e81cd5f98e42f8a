// SPDX-License-Identifier: Apache-2.0
// NM-003: "Pass Infrastructure": FunctionPassNode (TR-03: public inheritance).
#include <baton/compat/tvm.h>
#include <doctest/doctest.h>

namespace seed_function_pass_node {
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

class FunctionPassNode : public PassNode {
 public:
  PassInfo pass_info;
  runtime::TypedPackedFunc<Function(Function, Module, PassContext)> pass_func;
  Module operator()(const Module& mod, const PassContext& pass_ctx) const final;
  bool SkipFunction(const Function& func) const;
  // Other members/methods are omitted
};

Module FunctionPassNode::operator()(const Module& mod, const PassContext&) const { return mod; }

}  // namespace seed_function_pass_node

TEST_CASE("NM-003 TR-03 seed 000: FunctionPassNode") {
  seed_function_pass_node::FunctionPassNode node;
  tvm::IRModule mod(tvm::Map<tvm::GlobalVar, tvm::BaseFunc>{});
  CHECK(node(mod, tvm::transform::PassContext::Current()).same_as(mod));
  // The real class has the same members.
  tvm::transform::FunctionPassNode real;
  real.pass_info = tvm::transform::PassInfo(1, "real", {});
  CHECK(real.Info()->opt_level == 1);
}

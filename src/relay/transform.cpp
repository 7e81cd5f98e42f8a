// SPDX-License-Identifier: Apache-2.0
#include <baton/relay/functor.h>
#include <baton/relay/transform.h>
#include <baton/runtime/registry.h>

namespace baton::relay::transform {

Pass CreateFunctionPass(const TypedPackedFunc<Function(Function, IRModule, PassContext)>& pass_func, int opt_level,
                        String name, Array<String> required) {
  auto n = make_object<FunctionPassNode>();
  baton::transform::InitFunctionPass(n.get(), pass_func.packed(), opt_level, name, required,
                                     FunctionNode::RuntimeTypeIndex());
  return Pass(ObjectPtr<Object>(n));
}

namespace {
const RegisterNodes<FunctionPassNode> registered;
}

/// For measuring what the manager costs.
BATON_REGISTER_GLOBAL("relay.testing.EmptyFunctionPass").set_body_typed([] {
  return CreateFunctionPass(
      TypedPackedFunc<Function(Function, IRModule, PassContext)>([](Function f, IRModule, PassContext) { return f; }),
      0, "Empty", {});
});
BATON_REGISTER_GLOBAL("relay._transform.MakeFunctionPass")
    .set_body_typed([](TypedPackedFunc<Function(Function, IRModule, PassContext)> f, PassInfo info) {
      Pass pass = CreateFunctionPass(f, info->opt_level, info->name, info->required);
      const_cast<baton::transform::FunctionPassNode*>(pass.as<baton::transform::FunctionPassNode>())->pass_info = info;
      return pass;
    });

}  // namespace baton::relay::transform

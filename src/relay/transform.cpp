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

BATON_REGISTER_GLOBAL("relay._transform.MakeFunctionPass")
    .set_body_typed([](TypedPackedFunc<Function(Function, IRModule, PassContext)> f, PassInfo info) {
      return CreateFunctionPass(f, info->opt_level, info->name, info->required);
    });

}  // namespace baton::relay::transform

// SPDX-License-Identifier: Apache-2.0
#include <baton/runtime/registry.h>
#include <baton/tir/transform.h>

namespace baton::tir::transform {

Pass CreatePrimFuncPass(const TypedPackedFunc<PrimFunc(PrimFunc, IRModule, PassContext)>& pass_func, int opt_level,
                        String name, Array<String> required) {
  auto n = make_object<PrimFuncPassNode>();
  baton::transform::InitFunctionPass(n.get(), pass_func.packed(), opt_level, name, required,
                                     PrimFuncNode::RuntimeTypeIndex());
  return Pass(ObjectPtr<Object>(n));
}

namespace {
const RegisterNodes<PrimFuncPassNode> registered_prim_func_pass;
}

BATON_REGISTER_GLOBAL("tir.transform.CreatePrimFuncPass")
    .set_body_typed([](TypedPackedFunc<PrimFunc(PrimFunc, IRModule, PassContext)> f, PassInfo info) {
      Pass pass = CreatePrimFuncPass(f, info->opt_level, info->name, info->required);
      const_cast<baton::transform::FunctionPassNode*>(pass.as<baton::transform::FunctionPassNode>())->pass_info = info;
      return pass;
    });

}  // namespace baton::tir::transform

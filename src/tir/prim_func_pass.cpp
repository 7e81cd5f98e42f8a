// SPDX-License-Identifier: Apache-2.0
#include <baton/runtime/registry.h>
#include <baton/tir/transform.h>

#include "tir/canonical_form.h"

namespace baton::tir::transform {

using PassBody = TypedPackedFunc<PrimFunc(PrimFunc, IRModule, PassContext)>;

static Pass MakePrimFuncPass(const PassBody& pass_func, int opt_level, String name, Array<String> required) {
  auto n = make_object<PrimFuncPassNode>();
  baton::transform::InitFunctionPass(n.get(), pass_func.packed(), opt_level, name, required,
                                     PrimFuncNode::RuntimeTypeIndex());
  return Pass(ObjectPtr<Object>(n));
}

Pass CreatePrimFuncPass(const PassBody& pass_func, int opt_level, String name, Array<String> required) {
  // Passes of C++ reason about int64; those that programs write see functions as they are.
  auto run = [body = PackedFunc(pass_func.packed())](PrimFunc f, IRModule mod, PassContext ctx) {
    return OnCanonicalForm(f, [&](PrimFunc wide) { return body(wide, mod, ctx).As<PrimFunc>(); });
  };
  return MakePrimFuncPass(PassBody(run), opt_level, name, required);
}

namespace {
const RegisterNodes<PrimFuncPassNode> registered_prim_func_pass;
}

BATON_REGISTER_GLOBAL("tir.transform.CreatePrimFuncPass").set_body_typed([](PassBody f, PassInfo info) {
  Pass pass = MakePrimFuncPass(f, info->opt_level, info->name, info->required);
  const_cast<baton::transform::FunctionPassNode*>(pass.as<baton::transform::FunctionPassNode>())->pass_info = info;
  return pass;
});

}  // namespace baton::tir::transform

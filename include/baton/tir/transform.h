// SPDX-License-Identifier: Apache-2.0
// Passes over loop programs.
#pragma once

#include <baton/ir/transform.h>
#include <baton/tir/stmt.h>

namespace baton::tir::transform {

using baton::transform::MakePass;
using baton::transform::Pass;
using baton::transform::PassContext;
using baton::transform::PassInfo;
using baton::transform::RegisterPass;

/// A pass over the PrimFuncs of a module.
class BATON_DLL PrimFuncPassNode : public Node<PrimFuncPassNode, baton::transform::FunctionPassNode> {
 public:
  static constexpr const char* _type_key = "tir.PrimFuncPass";
  static constexpr void Describe(auto&) {}
};
class PrimFuncPass : public Pass {
 public:
  BATON_DEFINE_OBJECT_REF_METHODS(PrimFuncPass, Pass, PrimFuncPassNode)
};
BATON_DLL Pass CreatePrimFuncPass(const TypedPackedFunc<PrimFunc(PrimFunc, IRModule, PassContext)>& pass_func,
                                  int opt_level, String name, Array<String> required);

}  // namespace baton::tir::transform

namespace baton::transform {
template <>
struct PassCreator<tir::PrimFunc> {
  static Pass Create(PackedFunc f, int opt_level, String name, Array<String> required) {
    return tir::transform::CreatePrimFuncPass(TypedPackedFunc<tir::PrimFunc(tir::PrimFunc, IRModule, PassContext)>(f),
                                              opt_level, name, required);
  }
};
}  // namespace baton::transform

// SPDX-License-Identifier: Apache-2.0
#include <baton/relay/expr.h>
#include <baton/relay/functor.h>

namespace baton {

IRModule IRModule::FromExpr(const RelayExpr& expr, const Map<GlobalVar, BaseFunc>& more) {
  IRModule mod(more);
  BaseFunc func;
  if (expr.as<BaseFuncNode>()) {
    func = Downcast<BaseFunc>(expr);
  } else {
    func = relay::Function(relay::FreeVars(expr), expr);
  }
  mod.CopyOnWrite()->Add(GlobalVar("main"), func, true);
  return mod;
}

namespace relay {

TensorType ConstantNode::tensor_type() const {
  Array<PrimExpr> shape;
  for (int64_t d : data.shape()) shape.push_back(PrimExpr(d));
  return TensorType(shape, data.dtype());
}

namespace {
const RegisterNodes<ConstantNode, TupleNode, IdNode, VarNode, CallNode, LetNode, IfNode, TupleGetItemNode, FunctionNode,
                    RefCreateNode, RefReadNode, RefWriteNode, PatternNode, PatternWildcardNode, PatternVarNode,
                    PatternConstructorNode, PatternTupleNode, ClauseNode, MatchNode>
    registered_expr;
}  // namespace

}  // namespace relay
}  // namespace baton

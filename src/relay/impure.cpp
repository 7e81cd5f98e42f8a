// SPDX-License-Identifier: Apache-2.0
#include <baton/relay/functor.h>
#include <baton/relay/op.h>
#include <baton/runtime/interrupt.h>
#include <relay/children.h>
#include <relay/impure.h>

#include <vector>

namespace baton::relay {
namespace {

bool OwnEffect(const ExprNode* n, bool calls) {
  if (n->IsInstance<RefCreateNode>() || n->IsInstance<RefReadNode>() || n->IsInstance<RefWriteNode>()) return true;
  if (!n->IsInstance<CallNode>()) return false;
  const Expr& op = static_cast<const CallNode*>(n)->op;
  if (const OpDef* def = DefOf(op)) return def->stateful;
  const auto* f = op.as<FunctionNode>();
  return calls && !op.as<OpNode>() && !op.as<ConstructorNode>() && !(f && f->HasNonzeroAttr(attr::kPrimitive));
}

/// Whether a call may be of a function that this expression does not have: a parameter, or what another function gave.
bool CallsUnknown(const std::vector<const ExprNode*>& order) {
  PointerSet known;  // variables that stand for functions which are written down here
  std::vector<const VarNode*> called;
  for (const ExprNode* n : order) {
    baton::runtime::PollInterrupt();
    if (n->IsInstance<LetNode>()) {
      const auto* let = static_cast<const LetNode*>(n);
      if (let->value->IsInstance<FunctionNode>()) known.Add(let->var.get());
    } else if (n->IsInstance<CallNode>()) {
      // Of a function of functions, the first that is called.
      const Expr* op = &static_cast<const CallNode*>(n)->op;
      while (const auto* inner = op->as<CallNode>()) op = &inner->op;
      if (const auto* var = op->as<VarNode>()) {
        called.push_back(var);
      } else if (!op->as<OpNode>() && !op->as<ConstructorNode>() && !op->as<FunctionNode>()) {
        return true;
      }
    }
  }
  for (const VarNode* var : called) {
    if (!known.Has(var)) return true;
  }
  return false;
}

}  // namespace

PointerSet ImpureNodes(const Expr& expr) {
  std::vector<const ExprNode*> order = PostOrderNodes(expr);
  // Without references and state, no call of a function that is written down here can have an effect. Globals may hold
  // both, and so may functions that come from elsewhere.
  bool calls = false;
  for (const ExprNode* n : order) calls = calls || OwnEffect(n, false) || n->IsInstance<GlobalVarNode>();
  calls = calls || CallsUnknown(order);
  PointerSet impure;
  for (const ExprNode* n : order) {
    baton::runtime::PollInterrupt();
    bool found = OwnEffect(n, calls);
    if (!n->IsInstance<FunctionNode>()) ForEachPart(n, [&](const ExprNode* p) { found = found || impure.Has(p); });
    if (found) impure.Add(n);
  }
  return impure;
}

}  // namespace baton::relay

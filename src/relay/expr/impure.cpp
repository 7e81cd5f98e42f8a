// SPDX-License-Identifier: Apache-2.0
#include <baton/relay/functor.h>
#include <baton/relay/op.h>
#include <relay/expr/children.h>
#include <relay/expr/impure.h>

#include <vector>

namespace baton::relay {
namespace {

/// Effects of calls, by callee.
enum class Callee : uint8_t { kOther, kPure, kStateful };

Callee CalleeOf(const ExprNode* n) {
  if (n->IsInstance<ConstructorNode>()) return Callee::kPure;
  if (!n->IsInstance<OpNode>()) return Callee::kOther;
  const OpDef* def = DefOf(GetRef<Expr>(n));
  return def && def->stateful ? Callee::kStateful : Callee::kPure;
}
bool IsPrimitive(const ExprNode* n) {
  return n->IsInstance<FunctionNode>() && static_cast<const FunctionNode*>(n)->HasNonzeroAttr(attr::kPrimitive);
}

/// Whether the callee may be a function outside of this expression: a parameter, or the result of another function.
bool CallsUnknown(const NodeList& order) {
  PointerSet known;  // variables that stand for functions which are written down here
  std::vector<const VarNode*> called;
  for (const ExprNode* n : order) {
    if (n->IsInstance<LetNode>()) {
      const auto* let = static_cast<const LetNode*>(n);
      if (let->value->IsInstance<FunctionNode>()) known.Add(let->var.get());
    } else if (n->IsInstance<CallNode>()) {
      // The first function called, of a function of functions.
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

support::PageStack<uint8_t> ImpureIds(const ExprIndex& graph) {
  const size_t size = graph.size();
  support::PageStack<uint8_t> impure;
  support::PageStack<Callee> callees;
  impure.Fill(size, 0);
  callees.Fill(size, Callee::kOther);
  // Without references and state, no call of a function in this expression can have an effect. Globals may use both,
  // and so may functions from outside.
  bool any = false, unknown = false;
  for (uint32_t i : graph.ids()) {
    const std::span<const uint32_t> operands = graph.Operands(i);
    switch (graph.kind(i)) {
      case ExprIndex::kAtom:
        callees[i] = CalleeOf(graph[i]);
        any = any || graph[i]->IsInstance<GlobalVarNode>();
        break;
      case ExprIndex::kRef:
        impure[i] = any = true;
        break;
      case ExprIndex::kDataflow: {
        // For most nodes the operator decides, and the node is not read.
        const Callee callee = operands[0] == ExprIndex::kNone ? Callee::kOther : callees[operands[0]];
        if (callee == Callee::kStateful && graph[i]->IsInstance<CallNode>()) impure[i] = any = true;
        unknown = unknown || (callee == Callee::kOther && graph[i]->IsInstance<CallNode>());
        break;
      }
      default:
        break;
    }
  }
  const bool calls = unknown && (any || CallsUnknown(graph.nodes()));
  if (!any && !calls) return impure;
  for (uint32_t i : graph.ids()) {
    const ExprIndex::Kind kind = graph.kind(i);
    if (impure[i] || kind == ExprIndex::kFunction) continue;
    bool found = false;
    for (uint32_t operand : graph.Operands(i)) found = found || (operand != ExprIndex::kNone && impure[operand]);
    if (!found && calls && kind == ExprIndex::kDataflow) {
      const uint32_t callee = graph.Operands(i)[0];
      found = (callee == ExprIndex::kNone || callees[callee] == Callee::kOther) && graph[i]->IsInstance<CallNode>() &&
              !(callee != ExprIndex::kNone && IsPrimitive(graph[callee]));
    }
    impure[i] = found;
  }
  return impure;
}

PointerSet ImpureNodes(const Expr& expr) {
  const ExprIndex graph(expr);
  const support::PageStack<uint8_t> impure = ImpureIds(graph);
  PointerSet out;
  for (size_t i = 0; i < graph.size(); ++i) {
    if (impure[i]) out.Add(graph[i]);
  }
  return out;
}

}  // namespace baton::relay

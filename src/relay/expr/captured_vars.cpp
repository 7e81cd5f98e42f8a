// SPDX-License-Identifier: Apache-2.0
#include <baton/relay/functor.h>
#include <baton/runtime/interrupt.h>
#include <relay/expr/captured_vars.h>
#include <relay/expr/children.h>

#include <algorithm>

namespace baton::relay {

const std::vector<Var>& CapturedVars::Of(const FunctionNode* f) {
  if (!numbers_.Has(f)) {
    for (const ExprNode* n : PostOrderNodes(GetRef<Expr>(f))) {  // inner ones first
      if (n->IsInstance<FunctionNode>() && !numbers_.Has(n)) Find(static_cast<const FunctionNode*>(n));
    }
  }
  return vars_[*numbers_.Find(f)];
}

/// A walk that does not enter known functions: their captured variables are used instead.
void CapturedVars::Find(const FunctionNode* f) {
  std::vector<Var> used;
  PointerSet seen, bound;
  struct Entry {
    const ExprNode* n;
    bool open;
  };
  std::vector<Entry> stack{{f, false}};
  auto use = [&](const Var& v) {
    if (seen.Add(v.get())) used.push_back(v);
  };
  while (!stack.empty()) {
    runtime::PollInterrupt();
    const ExprNode* n = stack.back().n;
    if (n->IsInstance<VarNode>()) {
      stack.pop_back();
      use(GetRef<Var>(static_cast<const VarNode*>(n)));
      continue;
    }
    if (stack.back().open || !seen.Add(n)) {
      stack.pop_back();
      continue;
    }
    if (const uint32_t* known = n->IsInstance<FunctionNode>() ? numbers_.Find(n) : nullptr) {
      stack.pop_back();
      for (const Var& v : vars_[*known]) use(v);
      continue;
    }
    stack.back().open = true;
    ForEachBoundVar(n, [&](const Var& v) { bound.Add(v.get()); });
    const size_t base = stack.size();
    ForEachChild(n, [&](const ExprNode* child) {
      if (child) stack.push_back({child, false});
    });
    std::reverse(stack.begin() + static_cast<ptrdiff_t>(base), stack.end());
  }
  std::erase_if(used, [&](const Var& v) { return bound.Has(v.get()); });
  numbers_[f] = static_cast<uint32_t>(vars_.size());
  vars_.push_back(std::move(used));
}

}  // namespace baton::relay

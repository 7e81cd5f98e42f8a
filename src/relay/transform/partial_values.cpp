// SPDX-License-Identifier: Apache-2.0
#include <baton/relay/op.h>
#include <relay/expr/children.h>
#include <relay/transform/partial_values.h>

namespace baton::relay::transform::partial {

PValue Unknown(Expr left) {
  auto v = std::make_shared<PartialValue>();
  v->left = std::move(left);
  return v;
}

namespace {

/// Adds `by` to the uses of the variables that a residual value names itself. Blocks within it (branches, clauses,
/// bodies of functions) count their own.
void Count(const Expr& value, int64_t by, Uses* uses) {
  const auto one = [&](const ExprNode* e) {
    if (e->IsInstance<VarNode>()) (*uses)[e] += by;
  };
  if (const auto* i = value.as<IfNode>()) {
    one(i->cond.get());
  } else if (const auto* m = value.as<MatchNode>()) {
    one(m->data.get());
  } else if (value->IsInstance<VarNode>()) {
    one(value.get());
  } else if (!value->IsInstance<FunctionNode>() && !value->IsInstance<LetNode>()) {
    ForEachChild(value.get(), one);
  }
}

/// Whether the expression has no effects, so that it can be dropped when its value is unused.
bool WithoutEffect(const Expr& value) {
  if (const auto* c = value.as<CallNode>()) {
    if (c->op->IsInstance<ConstructorNode>()) return true;
    const OpDef* def = c->op->IsInstance<OpNode>() ? DefOf(c->op) : nullptr;
    return def && !def->stateful;
  }
  return value->IsInstance<TupleNode>() || value->IsInstance<TupleGetItemNode>() || value->IsInstance<FunctionNode>() ||
         value->IsInstance<RefCreateNode>() || value->IsInstance<RefReadNode>();
}

}  // namespace

Expr LetBlock::Bind(const Var& v, Expr value) {
  Count(value, 1, uses_);
  bindings_.emplace_back(v, std::move(value));
  return v;
}

Expr LetBlock::Close(Expr result) {
  Count(result, 1, uses_);
  for (size_t i = bindings_.size(); i-- > 0;) {
    baton::runtime::PollInterrupt();
    const auto [var, value] = std::move(bindings_[i]);
    const int64_t* used = uses_->Find(var.get());
    if ((!used || *used == 0) && WithoutEffect(value)) {
      Count(value, -1, uses_);
      continue;
    }
    result = Let(var, value, result);
    result->span = value->span;
  }
  bindings_.clear();
  return result;
}

}  // namespace baton::relay::transform::partial

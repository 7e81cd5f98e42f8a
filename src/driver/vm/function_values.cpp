// SPDX-License-Identifier: Apache-2.0
#include "driver/vm/function_values.h"

#include <baton/relay/device.h>
#include <baton/relay/functor.h>
#include <baton/relay/op/annotation.h>

#include "driver/vm/function_builder.h"

namespace baton::driver {

using relay::CallNode;
using relay::ConstantNode;
using relay::Expr;
using relay::ExprNode;
using relay::FunctionNode;
using relay::LetNode;
using relay::Var;
using relay::VarNode;

bool IsAnnotation(const CallNode* call) { return relay::AsOnDevice(call->op, call->attrs); }

const ExprNode* Bare(const ExprNode* n) {
  for (const auto* c = As<CallNode>(n); c && IsAnnotation(c) && c->args.size() == 1; c = As<CallNode>(n))
    n = c->args[0].get();
  return n;
}

FunctionValues::FunctionValues(const ProgramBuilder* program, const VmLambda& lambda)
    : program_(program), lambda_(lambda), index_(lambda.func->body) {
  for (const ExprNode* c : lambda.captured) given_.Add(c);
  for (const ExprNode* n : lambda.elsewhere) elsewhere_.Add(n);
  for (const Var& p : lambda.func->params) given_.Add(p.get());
  // The body of a let runs in the let's block.
  std::vector<int32_t> merged(index_.num_scopes());
  for (size_t b = 0; b < merged.size(); ++b) merged[b] = static_cast<int32_t>(b);
  const relay::NodeList& order = index_.nodes();
  for (size_t i = order.size(); i-- > 0;) {
    if (relay::IsAtom(order[i]) || !order[i]->IsInstance<LetNode>()) continue;
    const relay::ExprIndex::Placement& info = index_.placement(order[i]);
    merged[static_cast<size_t>(info.own_scope)] = merged[static_cast<size_t>(info.scope)];
  }
  result_ = Resolve(lambda_.func->body.get());
  FindNeeded();
  FindUsers();
  lists_.resize(index_.num_scopes());
  for (const ExprNode* n : order) {
    if (!relay::IsAtom(n) && IsComputed(n)) {
      lists_[static_cast<size_t>(merged[static_cast<size_t>(index_.placement(n).scope)])].push_back(n);
    }
  }
  if (!program_->several()) return;
  for (std::vector<Node*>& list : lists_) GatherDevices(&list);
}

const ConstantNode* FunctionValues::PlacedConstant(Node* n) const {
  const auto* c = As<CallNode>(n);
  if (!program_->several() || !c || c->args.size() != 1) return nullptr;
  auto moves = [](const CallNode* call) {
    return relay::AsOnDevice(call->op, call->attrs) || relay::AsDeviceCopy(call->op, call->attrs);
  };
  if (!moves(c)) return nullptr;
  Expr e = c->args[0];
  for (;;) {
    if (const auto* constant = e.as<ConstantNode>()) return constant;
    const Expr* alias = e.as<VarNode>() && !given_.Has(e.get()) ? lambda_.alias->Find(e.get()) : nullptr;
    const auto* call = e.as<CallNode>();
    if (alias) {
      e = *alias;
    } else if (call && call->args.size() == 1 && moves(call)) {
      e = call->args[0];
    } else {
      return nullptr;
    }
  }
}

Expr FunctionValues::Resolve(Expr e) const {
  for (;;) {
    if (given_.Has(e.get()) || PlacedConstant(e.get())) return e;
    if (const auto* v = e.as<VarNode>()) {
      const Expr* value = lambda_.alias->Find(v);
      if (!value) return e;
      e = *value;
    } else if (const auto* l = e.as<LetNode>()) {
      // A chain of lets may be as long as the function, and is asked for at each kernel and branch: it is walked once.
      if (const Expr* known = tails_.Find(l)) {
        e = *known;
        continue;
      }
      e = l->body;
      while (const auto* next = e.as<LetNode>()) e = next->body;
      tails_[l] = e;
    } else if (const auto* c = e.as<CallNode>(); c && IsAnnotation(c) && c->args.size() == 1) {
      e = c->args[0];
    } else {
      return e;
    }
  }
}

/// Finds the expressions that the function's value needs, except those behind captured values and in primitive
/// functions.
void FunctionValues::FindNeeded() {
  const relay::NodeList& order = index_.nodes();
  needed_.Add(lambda_.func->body.get());
  for (size_t i = order.size(); i-- > 0;) {
    const ExprNode* n = order[i];
    if (!needed_.Has(n) || given_.Has(n)) continue;
    const auto* call = As<CallNode>(n);
    if (call && (IsPrimitive(call->op) || relay::IsAtom(call->op.get()))) {
      for (const Expr& a : call->args) needed_.Add(a.get());
    } else if (const auto* let = As<LetNode>(n)) {
      if (!elsewhere_.Has(Resolve(Bare(let->value.get())))) needed_.Add(let->value.get());
      needed_.Add(let->body.get());
    } else if (!(n->IsInstance<FunctionNode>() && IsPrimitive(GetRef<Expr>(n)))) {
      relay::ForEachChild(n, [&](const ExprNode* p) { needed_.Add(p); });
    }
  }
}

/// Whether code is made at the node's place. A let is its value and its body; closures are made at their uses.
bool FunctionValues::IsComputed(Node* n) const {
  if (!needed_.Has(n) || given_.Has(n) || n->IsInstance<LetNode>() || n->IsInstance<FunctionNode>()) return false;
  const auto* call = As<CallNode>(n);
  return !(call && IsAnnotation(call)) && !PlacedConstant(n);
}

void FunctionValues::FindUsers() {
  for (const ExprNode* n : index_.nodes()) {
    if (!needed_.Has(n) || given_.Has(n) || n->IsInstance<LetNode>()) continue;
    if (const auto* call = As<CallNode>(n)) {
      if (IsAnnotation(call)) continue;
      for (const Expr& a : call->args) users_[Resolve(a).get()].push_back(n);
      if (!relay::IsAtom(call->op.get()) || call->op.as<VarNode>()) {
        if (!IsPrimitive(call->op)) users_[Resolve(call->op).get()].push_back(n);
      }
    } else {
      relay::ForEachChild(n, [&](const ExprNode* p) { users_[Resolve(p)].push_back(n); });
    }
  }
}

}  // namespace baton::driver

// SPDX-License-Identifier: Apache-2.0
#include <baton/relay/functor.h>
#include <baton/relay/op.h>
#include <baton/runtime/interrupt.h>
#include <relay/blocks.h>
#include <relay/transform/let_inserter.h>

#include <string>
#include <utility>
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

/// One step of evaluation, whose body is the business of whoever makes a kernel of it.
bool IsPrimitive(const ExprNode* n) {
  return n->IsInstance<FunctionNode>() && static_cast<const FunctionNode*>(n)->HasNonzeroAttr(attr::kPrimitive);
}

class LetInserter {
 public:
  LetInserter(const Expr& root, LetForm form) : root_(root), form_(form), blocks_(root) {
    items_.resize(blocks_.size());
    rep_.resize(blocks_.order().size());
    for (size_t b = 0; b < blocks_.size(); ++b) home_.push_back(static_cast<int32_t>(b));
  }
  Expr Run();

 private:
  struct Frame {
    const ExprNode* n;
    uint32_t phase;
  };
  void FindShared();
  void Visit(const ExprNode* root);
  void Done(const ExprNode* n);
  void EndLet(const LetNode* l);
  Expr Rebuild(const ExprNode* n);
  Expr Wrap(int32_t block, Expr tail) {
    auto& items = items_[block];
    for (; !items.empty(); items.pop_back()) tail = Let(items.back().first, items.back().second, tail);
    return tail;
  }
  Expr& Rep(const ExprNode* n) { return rep_[blocks_.NumberOf(n)]; }
  const Expr& Of(const Expr& part) { return Rep(part.get()); }
  Expr Body(const ExprNode* owner, int own, const Expr& part) { return Wrap(blocks_.Of(owner).first + own, Of(part)); }

  Expr root_;
  LetForm form_;
  Blocks blocks_;
  std::vector<std::vector<std::pair<Var, Expr>>> items_;  // bindings of each block, in order
  std::vector<int32_t> home_;                             // block that gets a block's bindings
  std::vector<Expr> rep_;                                 // by number: what stands for a node at its uses
  PointerSet bound_, let_values_;
  bool changed_ = false;
  int count_ = 0;
};

/// For kBlocks: what is to be bound.
void LetInserter::FindShared() {
  constexpr size_t kSoon = 12;
  size_t at = 0;
  for (const ExprNode* n : blocks_.order()) {
    baton::runtime::PollInterrupt();
    const Blocks::Info& info = blocks_.At(at++);
    if (at + kSoon < blocks_.order().size()) __builtin_prefetch(blocks_.order()[at + kSoon]);
    if (info.atom || IsPrimitive(n)) continue;
    ForEachEdge(n, [&](const ExprNode* part, int own, bool) {
      if (!part) return;
      const Blocks::Info& p = blocks_.Of(part);
      if (!p.atom && p.block != (own < 0 ? info.block : info.first + own)) changed_ |= bound_.Add(part);
    });
  }
  if (!changed_) return;
  // A binding is evaluated before the rest of its block, so what has effects is bound too, and stays in order.
  PointerSet impure = ImpureNodes(root_);
  for (const ExprNode* n : blocks_.order()) {
    baton::runtime::PollInterrupt();
    if (!IsAtom(n) && !n->IsInstance<FunctionNode>() && impure.Has(n) && !blocks_.Of(n).in_place) bound_.Add(n);
  }
}

void LetInserter::Visit(const ExprNode* root) {
  std::vector<Frame> stack{{root, 0}};
  std::vector<const ExprNode*> parts;
  while (!stack.empty()) {
    baton::runtime::PollInterrupt();
    const ExprNode* n = stack.back().n;
    const uint32_t phase = stack.back().phase++;
    if (phase == 0 && Rep(n).defined()) {
      stack.pop_back();
      continue;
    }
    if (IsAtom(n)) {
      Rep(n) = GetRef<Expr>(n);
      stack.pop_back();
      continue;
    }
    if (n->IsInstance<LetNode>()) {
      const auto* l = static_cast<const LetNode*>(n);
      if (phase == 0) {
        if (form_ == LetForm::kAll) {
          home_[blocks_.Of(n).first] = home_[blocks_.Of(n).block];
          const Blocks::Info* i = blocks_.Find(l->value.get());
          if (!IsAtom(l->value.get()) && i->uses == 1) let_values_.Add(l->value.get());
          if (!blocks_.Of(n).in_place || let_values_.Has(n)) changed_ = true;
        }
        stack.push_back({l->value.get(), 0});
      } else if (phase == 1) {
        if (form_ == LetForm::kAll) items_[home_[blocks_.Of(n).block]].push_back({l->var, Of(l->value)});
        stack.push_back({l->body.get(), 0});
      } else {
        stack.pop_back();
        EndLet(l);
      }
      continue;
    }
    if (phase == 0) {
      if (IsPrimitive(n)) continue;
      parts.clear();
      ForEachEdge(n, [&](const ExprNode* part, int, bool) { parts.push_back(part); });
      for (size_t i = parts.size(); i-- > 0;) {
        if (parts[i] && !Rep(parts[i]).defined()) stack.push_back({parts[i], 0});
      }
    } else {
      stack.pop_back();
      Done(n);
    }
  }
}

void LetInserter::EndLet(const LetNode* l) {
  if (form_ == LetForm::kAll) {
    Rep(l) = Of(l->body);
    return;
  }
  Expr value = Of(l->value), body = Body(l, 0, l->body);
  Expr made = value.same_as(l->value) && body.same_as(l->body) ? GetRef<Expr>(l) : Expr(Let(l->var, value, body));
  if (made.get() != l) made->span = l->span;
  Rep(l) = made;
  if (bound_.Has(l)) {
    Var v("b" + std::to_string(count_++));
    items_[blocks_.Of(l).block].push_back({v, made});
    Rep(l) = v;
  }
}

void LetInserter::Done(const ExprNode* n) {
  Expr made = Rebuild(n);
  const bool bind = form_ == LetForm::kAll ? !let_values_.Has(n) && n != root_.get() : bound_.Has(n);
  if (bind) {
    changed_ = true;
    Var v((form_ == LetForm::kAll ? "x" : "b") + std::to_string(count_++));
    items_[home_[blocks_.Of(n).block]].push_back({v, made});
    made = v;
  }
  Rep(n) = made;
}

Expr LetInserter::Rebuild(const ExprNode* n) {
  auto all = [&](const Array<Expr>& in) {
    Array<Expr> out = in;
    for (size_t i = 0; i < in.size(); ++i) {
      if (!Of(in[i]).same_as(in[i])) out.Set(i, Of(in[i]));
    }
    return out;
  };
  auto done = [&](auto node) { return Expr(ObjectPtr<Object>(node)); };
  if (n->IsInstance<CallNode>()) {
    const auto* c = static_cast<const CallNode*>(n);
    Array<Expr> args = all(c->args);
    if (args.same_as(c->args) && Of(c->op).same_as(c->op)) return GetRef<Expr>(n);
    auto node = make_object<CallNode>(*c);
    node->op = Of(c->op), node->args = args;
    return done(node);
  }
  if (n->IsInstance<TupleNode>()) {
    const auto* t = static_cast<const TupleNode*>(n);
    Array<Expr> fields = all(t->fields);
    if (fields.same_as(t->fields)) return GetRef<Expr>(n);
    auto node = make_object<TupleNode>(*t);
    node->fields = fields;
    return done(node);
  }
  if (n->IsInstance<TupleGetItemNode>()) {
    auto node = make_object<TupleGetItemNode>(*static_cast<const TupleGetItemNode*>(n));
    if (Of(node->tuple).same_as(node->tuple)) return GetRef<Expr>(n);
    node->tuple = Of(node->tuple);
    return done(node);
  }
  if (n->IsInstance<FunctionNode>()) {
    if (IsPrimitive(n)) return GetRef<Expr>(n);
    auto node = make_object<FunctionNode>(*static_cast<const FunctionNode*>(n));
    Expr body = Body(n, 0, node->body);
    if (body.same_as(node->body)) return GetRef<Expr>(n);
    node->body = body;
    return done(node);
  }
  if (n->IsInstance<IfNode>()) {
    auto node = make_object<IfNode>(*static_cast<const IfNode*>(n));
    Expr c = Of(node->cond), t = Body(n, 0, node->true_branch), f = Body(n, 1, node->false_branch);
    if (c.same_as(node->cond) && t.same_as(node->true_branch) && f.same_as(node->false_branch)) return GetRef<Expr>(n);
    node->cond = c, node->true_branch = t, node->false_branch = f;
    return done(node);
  }
  if (n->IsInstance<RefCreateNode>()) {
    auto node = make_object<RefCreateNode>(*static_cast<const RefCreateNode*>(n));
    node->value = Of(node->value);
    return node->value.same_as(static_cast<const RefCreateNode*>(n)->value) ? GetRef<Expr>(n) : done(node);
  }
  if (n->IsInstance<RefReadNode>()) {
    auto node = make_object<RefReadNode>(*static_cast<const RefReadNode*>(n));
    node->ref = Of(node->ref);
    return node->ref.same_as(static_cast<const RefReadNode*>(n)->ref) ? GetRef<Expr>(n) : done(node);
  }
  if (n->IsInstance<RefWriteNode>()) {
    const auto* w = static_cast<const RefWriteNode*>(n);
    auto node = make_object<RefWriteNode>(*w);
    node->ref = Of(w->ref), node->value = Of(w->value);
    return node->ref.same_as(w->ref) && node->value.same_as(w->value) ? GetRef<Expr>(n) : done(node);
  }
  ICHECK(n->IsInstance<MatchNode>()) << "a normal form of a " << n->GetTypeKey();
  const auto* m = static_cast<const MatchNode*>(n);
  auto node = make_object<MatchNode>(*m);
  bool same = Of(m->data).same_as(m->data);
  node->data = Of(m->data);
  for (size_t i = 0; i < m->clauses.size(); ++i) {
    Expr rhs = Body(n, static_cast<int>(i), m->clauses[i]->rhs);
    if (rhs.same_as(m->clauses[i]->rhs)) continue;
    same = false;
    node->clauses.Set(i, Clause(m->clauses[i]->lhs, rhs));
  }
  return same ? GetRef<Expr>(n) : done(node);
}

Expr LetInserter::Run() {
  if (form_ == LetForm::kBlocks) {
    FindShared();
    if (!changed_) return root_;
  }
  Visit(root_.get());
  if (!changed_) return root_;
  return Wrap(0, Of(root_));
}

}  // namespace

Expr InsertLets(const Expr& expr, LetForm form) {
  // Where there is one block, no value is shared by several.
  const auto opens_block = [&](const ExprNode* n) {
    return n->IsInstance<IfNode>() || n->IsInstance<MatchNode>() || n->IsInstance<LetNode>() ||
           (n->IsInstance<FunctionNode>() && n != expr.get());
  };
  if (form == LetForm::kBlocks && !AnyNode(expr, opens_block)) return expr;
  return LetInserter(expr, form).Run();
}
IRModule InsertLets(const IRModule& mod, LetForm form) {
  IRModule out = mod;
  for (const auto& [var, func] : mod->functions) {
    const auto* f = func.as<FunctionNode>();
    if (!f || f->HasNonzeroAttr(attr::kPrimitive)) continue;
    Expr made = InsertLets(func, form);
    if (!made.same_as(func)) out.CopyOnWrite()->Update(var, Downcast<Function>(made));
  }
  return out;
}

PointerSet ImpureNodes(const Expr& expr) {
  std::vector<const ExprNode*> order = PostOrderNodes(expr);
  // Without references and state, no call of a function can have an effect, whatever it calls: globals aside, which
  // may hold both.
  bool calls = false;
  for (const ExprNode* n : order) calls = calls || OwnEffect(n, false) || n->IsInstance<GlobalVarNode>();
  PointerSet impure;
  for (const ExprNode* n : order) {
    baton::runtime::PollInterrupt();
    bool found = OwnEffect(n, calls);
    if (!n->IsInstance<FunctionNode>()) ForEachPart(n, [&](const ExprNode* p) { found = found || impure.Has(p); });
    if (found) impure.Add(n);
  }
  return impure;
}

namespace {
class Renewer : public MixedModeMutator {
 public:
  explicit Renewer(const Expr& e) {
    for (const Var& v : BoundVars(e)) {
      Var fresh(v->vid, v->type_annotation);
      fresh->span = v->span;
      memo_[v] = fresh;
    }
  }
};
}  // namespace

Expr RenewVars(const Expr& expr) { return Renewer(expr).VisitExpr(expr); }

}  // namespace baton::relay

// SPDX-License-Identifier: Apache-2.0
#include <baton/relay/functor.h>
#include <baton/relay/op.h>
#include <baton/runtime/interrupt.h>
#include <relay/expr/expr_index.h>
#include <relay/transform/let_inserter.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace baton::relay {
namespace {

/// A primitive function is one step of evaluation; its body belongs to the kernel generator.
bool IsPrimitive(const ExprNode* n) {
  return n->IsInstance<FunctionNode>() && static_cast<const FunctionNode*>(n)->HasNonzeroAttr(attr::kPrimitive);
}

class LetInserter {
 public:
  LetInserter(const Expr& root, LetForm form) : root_(root), form_(form), graph_(root) {
    last_.resize(graph_.num_scopes(), -1);
    items_.reserve(graph_.size());
    rep_.resize(graph_.size());
    marks_.Fill(graph_.size(), 0);
    for (size_t b = 0; b < graph_.num_scopes(); ++b) home_.push_back(static_cast<int32_t>(b));
  }
  Expr Run();

 private:
  struct Frame {
    uint32_t n, phase;
  };
  enum Mark : uint8_t { kBound = 1, kLetValue = 2 };
  void FindShared();
  void Visit(uint32_t root);
  void Done(uint32_t n);
  void EndLet(uint32_t n);
  Expr Rebuild(uint32_t n);
  Expr Wrap(int32_t block, Expr tail) {
    for (int32_t& i = last_[block]; i >= 0; i = items_[i].before)
      tail = Let(std::move(items_[i].var), std::move(items_[i].value), std::move(tail));
    return tail;
  }
  void Add(int32_t block, const Var& var, const Expr& value) {
    items_.push_back({var, value, last_[block]});
    last_[block] = static_cast<int32_t>(items_.size()) - 1;
  }
  Var Bind(uint32_t n, char prefix, const Expr& value) {
    Var v(prefix + std::to_string(count_++));
    Add(home_[graph_.placement(n).scope], v, value);
    return v;
  }
  /// The replacement of the i-th operand.
  const Expr& Of(uint32_t n, size_t i) { return rep_[graph_.Operands(n)[i]]; }
  /// The same where the part is the value of the node's block `own`.
  Expr Body(uint32_t n, int own, uint32_t operand) { return Wrap(graph_.placement(n).own_scope + own, rep_[operand]); }

  Expr root_;
  LetForm form_;
  const ExprIndex graph_;
  struct Item {
    Var var;
    Expr value;
    int32_t before;  // in its block; -1: none
  };
  std::vector<Item> items_;            // bindings
  std::vector<int32_t> last_;          // binding of each block
  std::vector<int32_t> home_;          // block that gets a block's bindings
  std::vector<Expr> rep_;              // by number: what stands for a node at its uses
  support::PageStack<uint8_t> marks_;  // by number
  bool changed_ = false;
  int count_ = 0;
};

/// For kBlocks: the expressions to bind.
void LetInserter::FindShared() {
  for (uint32_t i : graph_.ids()) {
    const ExprIndex::Placement& info = graph_.placement(i);
    if (graph_.kind(i) == ExprIndex::kFunction && IsPrimitive(graph_[i])) continue;
    graph_.ForEachEdge(i, [&](uint32_t operand, int own, bool) {
      if (operand == ExprIndex::kNone || graph_.atom(operand)) return;
      if (graph_.placement(operand).scope == (own < 0 ? info.scope : info.own_scope + own)) return;
      marks_[operand] |= kBound;
      changed_ = true;
    });
  }
  if (!changed_) return;
  // A binding is evaluated before the rest of its block, so what has effects is bound too, and stays in order.
  const support::PageStack<uint8_t> impure = ImpureIds(graph_);
  for (uint32_t i : graph_.ids()) {
    const ExprIndex::Kind kind = graph_.kind(i);
    if (kind == ExprIndex::kAtom || kind == ExprIndex::kFunction || graph_.placement(i).in_place) continue;
    if (impure[i]) marks_[i] |= kBound;
  }
}

void LetInserter::Visit(uint32_t root) {
  support::PageStack<Frame> stack;
  stack.push_back({root, 0});
  while (!stack.empty()) {
    baton::runtime::PollInterrupt();
    const uint32_t n = stack.back().n, phase = stack.back().phase++;
    if (phase == 0 && rep_[n].defined()) {
      stack.pop_back();
      continue;
    }
    const ExprIndex::Kind kind = graph_.kind(n);
    const std::span<const uint32_t> operands = graph_.Operands(n);
    if (kind == ExprIndex::kAtom) {
      rep_[n] = GetRef<Expr>(graph_[n]);
      stack.pop_back();
    } else if (kind == ExprIndex::kLet) {
      const uint32_t value = operands[0];
      if (phase == 0) {
        if (form_ == LetForm::kAll) {
          home_[graph_.placement(n).own_scope] = home_[graph_.placement(n).scope];
          if (!graph_.atom(value) && graph_.placement(value).uses == 1) marks_[value] |= kLetValue;
          if (!graph_.placement(n).in_place || (marks_[n] & kLetValue)) changed_ = true;
        }
        stack.push_back({value, 0});
      } else if (phase == 1) {
        if (form_ == LetForm::kAll) {
          Add(home_[graph_.placement(n).scope], static_cast<const LetNode*>(graph_[n])->var, rep_[value]);
        }
        stack.push_back({operands[2], 0});
      } else {
        stack.pop_back();
        EndLet(n);
      }
    } else if (phase == 0) {
      if (kind == ExprIndex::kFunction && IsPrimitive(graph_[n])) continue;
      const size_t base = stack.size();
      graph_.ForEachEdge(n, [&](uint32_t operand, int, bool) {
        if (operand != ExprIndex::kNone && !rep_[operand].defined()) stack.push_back({operand, 0});
      });
      std::reverse(stack.begin() + base, stack.end());
    } else {
      stack.pop_back();
      Done(n);
    }
  }
}

void LetInserter::EndLet(uint32_t n) {
  const uint32_t tail = graph_.Operands(n)[2];
  if (form_ == LetForm::kAll) {
    rep_[n] = rep_[tail];
    return;
  }
  const auto* l = static_cast<const LetNode*>(graph_[n]);
  Expr value = Of(n, 0), body = Body(n, 0, tail);
  Expr made = value.same_as(l->value) && body.same_as(l->body) ? GetRef<Expr>(l) : Expr(Let(l->var, value, body));
  if (made.get() != l) made->span = l->span;
  rep_[n] = marks_[n] & kBound ? Expr(Bind(n, 'b', made)) : made;
}

void LetInserter::Done(uint32_t n) {
  Expr made = Rebuild(n);
  const bool all = form_ == LetForm::kAll;
  const bool bind = all ? !(marks_[n] & kLetValue) && n + 1 != graph_.size() : (marks_[n] & kBound) != 0;
  changed_ |= bind;
  rep_[n] = bind ? Expr(Bind(n, all ? 'x' : 'b', made)) : made;
}

Expr LetInserter::Rebuild(uint32_t id) {
  const ExprNode* n = graph_.Visit(id);
  const std::span<const uint32_t> operands = graph_.Operands(id);
  auto done = [&](auto node) { return Expr(ObjectPtr<Object>(node)); };
  Expr out{ObjectPtr<Object>(nullptr)};
  const auto in_place = [&](const auto* node) {
    const bool kept =
        std::ranges::all_of(operands, [&](uint32_t operand) { return rep_[operand].get() == graph_[operand]; });
    out = kept
              ? GetRef<Expr>(n)
              : Expr(WithChildren<Family<Expr>>(node, [this, at = operands.begin()]() mutable { return rep_[*at++]; }));
  };
  if (DispatchKind<CallNode, TupleNode, TupleGetItemNode, RefCreateNode, RefReadNode, RefWriteNode>(n, in_place)) {
    return out;
  }
  if (n->IsInstance<FunctionNode>()) {
    if (IsPrimitive(n)) return GetRef<Expr>(n);
    auto node = make_object<FunctionNode>(*static_cast<const FunctionNode*>(n));
    Expr body = Body(id, 0, operands.back());
    if (body.same_as(node->body)) return GetRef<Expr>(n);
    node->body = body;
    return done(node);
  }
  if (n->IsInstance<IfNode>()) {
    auto node = make_object<IfNode>(*static_cast<const IfNode*>(n));
    Expr c = Of(id, 0), t = Body(id, 0, operands[1]), f = Body(id, 1, operands[2]);
    if (c.same_as(node->cond) && t.same_as(node->true_branch) && f.same_as(node->false_branch)) return GetRef<Expr>(n);
    node->cond = c, node->true_branch = t, node->false_branch = f;
    return done(node);
  }
  ICHECK(n->IsInstance<MatchNode>()) << "a normal form of a " << n->GetTypeKey();
  const auto* m = static_cast<const MatchNode*>(n);
  auto node = make_object<MatchNode>(*m);
  bool same = Of(id, 0).same_as(m->data);
  node->data = Of(id, 0);
  int i = 0;
  for (const Clause& c : m->clauses) {
    const int own = i++;
    Expr rhs = Body(id, own, graph_.IdOf(c->rhs.get()));
    if (rhs.same_as(c->rhs)) continue;
    same = false;
    node->clauses.Set(own, Clause(c->lhs, rhs));
  }
  return same ? GetRef<Expr>(n) : done(node);
}

Expr LetInserter::Run() {
  if (form_ == LetForm::kBlocks) {
    FindShared();
    if (!changed_) return root_;
  }
  Visit(static_cast<uint32_t>(graph_.size() - 1));
  if (!changed_) return root_;
  return Wrap(0, rep_.back());
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

namespace {
class Renewer : public MixedModeMutator {
 public:
  explicit Renewer(const Expr& e) {
    for (const Var& v : BoundVars(e)) {
      Var fresh(v->vid, v->type_annotation);
      fresh->span = v->span;
      Put(v, fresh);
    }
  }
};
}  // namespace

Expr RenewVars(const Expr& expr) { return Renewer(expr).VisitExpr(expr); }

}  // namespace baton::relay

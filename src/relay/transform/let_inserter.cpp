// SPDX-License-Identifier: Apache-2.0
#include <baton/relay/functor.h>
#include <baton/relay/op.h>
#include <baton/runtime/interrupt.h>
#include <relay/expr/blocks.h>
#include <relay/transform/let_inserter.h>
#include <relay/expr/with_parts.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace baton::relay {
namespace {

/// One step of evaluation, whose body is the business of whoever makes a kernel of it.
bool IsPrimitive(const ExprNode* n) {
  return n->IsInstance<FunctionNode>() && static_cast<const FunctionNode*>(n)->HasNonzeroAttr(attr::kPrimitive);
}

class LetInserter {
 public:
  LetInserter(const Expr& root, LetForm form) : root_(root), form_(form), blocks_(root), graph_(blocks_.graph()) {
    last_.resize(blocks_.size(), -1);
    items_.reserve(graph_.size());
    rep_.resize(graph_.size());
    marks_.Fill(graph_.size(), 0);
    for (size_t b = 0; b < blocks_.size(); ++b) home_.push_back(static_cast<int32_t>(b));
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
    Add(home_[blocks_.At(n).block], v, value);
    return v;
  }
  /// What stands for the i-th part, as its value.
  const Expr& Of(uint32_t n, size_t i) { return rep_[graph_.Parts(n)[i]]; }
  /// The same where the part is the value of the node's block `own`.
  Expr Body(uint32_t n, int own, uint32_t part) { return Wrap(blocks_.At(n).first + own, rep_[part]); }

  Expr root_;
  LetForm form_;
  Blocks blocks_;
  const NodeGraph& graph_;
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

/// For kBlocks: what is to be bound.
void LetInserter::FindShared() {
  for (uint32_t i = 0; i < graph_.size(); ++i) {
    baton::runtime::PollInterrupt();
    const Blocks::Info& info = blocks_.At(i);
    if (graph_.kind(i) == NodeGraph::kFunction && IsPrimitive(graph_[i])) continue;
    graph_.ForEachEdge(i, [&](uint32_t part, int own, bool) {
      if (part == NodeGraph::kNone || graph_.atom(part)) return;
      if (blocks_.At(part).block == (own < 0 ? info.block : info.first + own)) return;
      marks_[part] |= kBound;
      changed_ = true;
    });
  }
  if (!changed_) return;
  // A binding is evaluated before the rest of its block, so what has effects is bound too, and stays in order.
  const support::PageStack<uint8_t> impure = ImpureNumbers(graph_);
  for (uint32_t i = 0; i < graph_.size(); ++i) {
    baton::runtime::PollInterrupt();
    const NodeGraph::Kind kind = graph_.kind(i);
    if (kind == NodeGraph::kAtom || kind == NodeGraph::kFunction || blocks_.At(i).in_place) continue;
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
    const NodeGraph::Kind kind = graph_.kind(n);
    const std::span<const uint32_t> parts = graph_.Parts(n);
    if (kind == NodeGraph::kAtom) {
      rep_[n] = GetRef<Expr>(graph_[n]);
      stack.pop_back();
    } else if (kind == NodeGraph::kLet) {
      const uint32_t value = parts[0];
      if (phase == 0) {
        if (form_ == LetForm::kAll) {
          home_[blocks_.At(n).first] = home_[blocks_.At(n).block];
          if (!graph_.atom(value) && blocks_.At(value).uses == 1) marks_[value] |= kLetValue;
          if (!blocks_.At(n).in_place || (marks_[n] & kLetValue)) changed_ = true;
        }
        stack.push_back({value, 0});
      } else if (phase == 1) {
        if (form_ == LetForm::kAll) {
          Add(home_[blocks_.At(n).block], static_cast<const LetNode*>(graph_[n])->var, rep_[value]);
        }
        stack.push_back({parts[2], 0});
      } else {
        stack.pop_back();
        EndLet(n);
      }
    } else if (phase == 0) {
      if (kind == NodeGraph::kFunction && IsPrimitive(graph_[n])) continue;
      const size_t base = stack.size();
      graph_.ForEachEdge(n, [&](uint32_t part, int, bool) {
        if (part != NodeGraph::kNone && !rep_[part].defined()) stack.push_back({part, 0});
      });
      std::reverse(stack.begin() + base, stack.end());
    } else {
      stack.pop_back();
      Done(n);
    }
  }
}

void LetInserter::EndLet(uint32_t n) {
  const uint32_t tail = graph_.Parts(n)[2];
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

Expr LetInserter::Rebuild(uint32_t number) {
  const ExprNode* n = graph_[number];
  const std::span<const uint32_t> parts = graph_.Parts(number);
  // Numbers are in the order of visits, so who comes next is known.
  constexpr uint32_t kSoon = 16;
  if (number + kSoon < graph_.size()) {
    Ahead::Soon(graph_[number + kSoon]);
    Ahead::PartsSoon(graph_[number + kSoon / 2]);
    Ahead::Soon(graph_[number + kSoon / 2]->span.get());
  }
  auto all_same = [&](const Array<Expr>& in, size_t at) {
    for (size_t i = 0; i < in.size(); ++i) {
      if (!rep_[parts[at + i]].same_as(in[i])) return false;
    }
    return true;
  };
  auto done = [&](auto node) { return Expr(ObjectPtr<Object>(node)); };
  auto part = [&](size_t i) -> const Expr& { return rep_[parts[i]]; };
  if (n->IsInstance<CallNode>()) {
    const auto* c = static_cast<const CallNode*>(n);
    const bool kept = part(0).same_as(c->op) && all_same(c->args, 1);
    return kept ? GetRef<Expr>(n) : WithParts(c, c->type_args, part);
  }
  if (n->IsInstance<TupleNode>()) {
    const auto* t = static_cast<const TupleNode*>(n);
    return all_same(t->fields, 0) ? GetRef<Expr>(n) : WithParts(t, part);
  }
  if (n->IsInstance<TupleGetItemNode>()) {
    const auto* g = static_cast<const TupleGetItemNode*>(n);
    return part(0).same_as(g->tuple) ? GetRef<Expr>(n) : WithParts(g, part);
  }
  if (n->IsInstance<FunctionNode>()) {
    if (IsPrimitive(n)) return GetRef<Expr>(n);
    auto node = make_object<FunctionNode>(*static_cast<const FunctionNode*>(n));
    Expr body = Body(number, 0, parts.back());
    if (body.same_as(node->body)) return GetRef<Expr>(n);
    node->body = body;
    return done(node);
  }
  if (n->IsInstance<IfNode>()) {
    auto node = make_object<IfNode>(*static_cast<const IfNode*>(n));
    Expr c = Of(number, 0), t = Body(number, 0, parts[1]), f = Body(number, 1, parts[2]);
    if (c.same_as(node->cond) && t.same_as(node->true_branch) && f.same_as(node->false_branch)) return GetRef<Expr>(n);
    node->cond = c, node->true_branch = t, node->false_branch = f;
    return done(node);
  }
  if (n->IsInstance<RefCreateNode>()) {
    auto node = make_object<RefCreateNode>(*static_cast<const RefCreateNode*>(n));
    node->value = Of(number, 0);
    return node->value.same_as(static_cast<const RefCreateNode*>(n)->value) ? GetRef<Expr>(n) : done(node);
  }
  if (n->IsInstance<RefReadNode>()) {
    auto node = make_object<RefReadNode>(*static_cast<const RefReadNode*>(n));
    node->ref = Of(number, 0);
    return node->ref.same_as(static_cast<const RefReadNode*>(n)->ref) ? GetRef<Expr>(n) : done(node);
  }
  if (n->IsInstance<RefWriteNode>()) {
    const auto* w = static_cast<const RefWriteNode*>(n);
    auto node = make_object<RefWriteNode>(*w);
    node->ref = Of(number, 0), node->value = Of(number, 1);
    return node->ref.same_as(w->ref) && node->value.same_as(w->value) ? GetRef<Expr>(n) : done(node);
  }
  ICHECK(n->IsInstance<MatchNode>()) << "a normal form of a " << n->GetTypeKey();
  const auto* m = static_cast<const MatchNode*>(n);
  auto node = make_object<MatchNode>(*m);
  bool same = Of(number, 0).same_as(m->data);
  node->data = Of(number, 0);
  int i = 0;
  ForEachClause(m, [&](const Clause& c) {
    const int own = i++;
    Expr rhs = Body(number, own, graph_.NumberOf(c->rhs.get()));
    if (rhs.same_as(c->rhs)) return;
    same = false;
    node->clauses.Set(own, Clause(c->lhs, rhs));
  });
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

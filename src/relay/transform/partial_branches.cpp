// SPDX-License-Identifier: Apache-2.0
// Branches and matches: a known branch is taken, else each branch is evaluated with the knowledge before it.
#include <baton/support/stack.h>
#include <relay/transform/partial_evaluation.h>

#include <algorithm>

namespace baton::relay::transform::partial {

Expr Evaluation::Branch(const Expr& body, EvalFrame* frame, const Store& before, std::vector<Store>* after) {
  store_ = before;
  LetBlock inner(&uses_, name_);
  PValue v = Eval(body, frame, &inner);
  after->push_back(std::move(store_));
  return inner.Close(v->left);
}

void Evaluation::Join(const Store& before, const std::vector<Store>& after) {
  store_.clear();
  for (const auto& [ref, value] : before) {
    bool same = true;
    for (const Store& s : after) {
      auto it = s.find(ref);
      same = same && it != s.end() && it->second == value;
    }
    if (same) store_[ref] = value;
  }
}

PValue Evaluation::EvalIf(const IfNode* i, EvalFrame* frame, LetBlock* block) {
  PValue cond = Atom(i->cond, frame);
  if (cond->kind == PartialValue::kTensor) {
    NDArray c = Downcast<NDArray>(cond->tensor);
    if (c.numel() == 1) return Eval(c.GetInt(0) ? i->true_branch : i->false_branch, frame, block);
  }
  const Store before = std::move(store_);
  std::vector<Store> after;
  Expr t = Branch(i->true_branch, frame, before, &after);
  Expr f = Branch(i->false_branch, frame, before, &after);
  Join(before, after);
  return Unknown(Push(i, If(cond->left, t, f), frame, block));
}

Evaluation::Answer Evaluation::Matches(const Pattern& pattern, const PValue& value, Bindings* bound) {
  std::vector<std::pair<Pattern, PValue>> work{{pattern, value}};
  Answer answer = kYes;
  while (!work.empty()) {
    baton::runtime::PollInterrupt();
    auto [p, v] = work.back();
    work.pop_back();
    if (p.as<PatternWildcardNode>()) continue;
    if (const auto* var = p.as<PatternVarNode>()) {
      bound->emplace_back(var->var.get(), v);
    } else if (const auto* t = p.as<PatternTupleNode>()) {
      if (v->kind != PartialValue::kTuple) {
        answer = kMaybe;
        continue;
      }
      for (size_t i = 0; i < t->patterns.size(); ++i)
        work.push_back({t->patterns[static_cast<int64_t>(i)], v->fields[i]});
    } else if (const auto* k = p.as<PatternConstructorNode>()) {
      if (v->kind != PartialValue::kData) {
        answer = kMaybe;
        continue;
      }
      if (!v->constructor.same_as(k->constructor) && !(v->constructor->name_hint == k->constructor->name_hint))
        return kNo;
      for (size_t i = 0; i < k->patterns.size(); ++i)
        work.push_back({k->patterns[static_cast<int64_t>(i)], v->fields[i]});
    }
  }
  return answer;
}

Pattern Evaluation::Fresh(const Pattern& p, EvalFrame* frame) {
  return support::WithStack([&]() -> Pattern {
    if (const auto* var = p.as<PatternVarNode>()) {
      Var own(var->var->name_hint(), In(var->var->type_annotation, frame));
      own->span = var->var->span;
      frame->env.Set(var->var.get(), Unknown(own));
      PatternVarNode n;
      n.span = p->span, n.var = own;
      return PatternVar(std::move(n));
    }
    if (const auto* t = p.as<PatternTupleNode>()) {
      PatternTupleNode n;
      n.span = p->span;
      for (const Pattern& part : t->patterns) n.patterns.push_back(Fresh(part, frame));
      return PatternTuple(std::move(n));
    }
    if (const auto* k = p.as<PatternConstructorNode>()) {
      PatternConstructorNode n;
      n.span = p->span, n.constructor = k->constructor;
      for (const Pattern& part : k->patterns) n.patterns.push_back(Fresh(part, frame));
      return PatternConstructor(std::move(n));
    }
    return p;
  });
}

PValue Evaluation::EvalMatch(const MatchNode* m, EvalFrame* frame, LetBlock* block) {
  PValue data = Atom(m->data, frame);
  for (const Clause& c : m->clauses) {
    Bindings bound;
    const Answer answer = Matches(c->lhs, data, &bound);
    if (answer == kNo) continue;
    if (answer == kMaybe) break;
    for (const auto& [var, value] : bound) frame->env.Set(var, value);
    return Eval(c->rhs, frame, block);
  }
  auto fits = [&](const Clause& c) {
    Bindings bound;
    return Matches(c->lhs, data, &bound) != kNo;
  };
  // Where none fits all stay: the program says so when it runs.
  const bool some = std::any_of(m->clauses.begin(), m->clauses.end(), fits);
  const Store before = std::move(store_);
  std::vector<Store> after;
  MatchNode n;
  n.data = data->left, n.complete = m->complete;
  for (const Clause& c : m->clauses) {
    if (some && !fits(c)) continue;
    Pattern own = Fresh(c->lhs, frame);
    n.clauses.push_back(Clause(own, Branch(c->rhs, frame, before, &after)));
  }
  // Impossible clauses are removed, so the remaining ones need not be exhaustive.
  if (n.clauses.size() != m->clauses.size()) n.complete = false;
  Join(before, after);
  return Unknown(Push(m, Match(std::move(n)), frame, block));
}

}  // namespace baton::relay::transform::partial

// SPDX-License-Identifier: Apache-2.0
// Whether the clauses of a match cover all values. A candidate is a pattern of values not covered yet, with the clauses
// that may cover some of them; the first of these either covers it all, or splits it by the constructors at the first
// place where it looks deeper. Each part goes on with the clauses that fit it: one that names another constructor there
// is never looked at again, so the time is linear in the number of cases, wherever in the pattern they differ.
#include <baton/ir/diagnostic.h>
#include <baton/relay/analysis.h>
#include <baton/runtime/interrupt.h>
#include <baton/runtime/registry.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace baton::relay {
namespace {

constexpr size_t kMaxCandidates = 100'000;

bool IsAny(const PatternNode* p) { return p->IsInstance<PatternWildcardNode>() || p->IsInstance<PatternVarNode>(); }
bool IsAny(const Pattern& p) { return IsAny(p.get()); }
const Array<Pattern>& ChildrenOf(const PatternNode* p) {
  if (p->IsInstance<PatternConstructorNode>()) return static_cast<const PatternConstructorNode*>(p)->patterns;
  return static_cast<const PatternTupleNode*>(p)->patterns;
}

class Cases {
 public:
  explicit Cases(const IRModule& mod) : mod_(mod), any_(PatternWildcard(PatternWildcardNode())) {}

  Array<Pattern> Unmatched(const Match& match) {
    bool covers_rest = false;
    Candidate all{any_, {}};
    for (const Clause& c : match->clauses) {
      // A wildcard clause covers all that the clauses before it leave; later clauses are unreachable.
      if (IsAny(c->lhs)) {
        covers_rest = true;
        break;
      }
      all.clauses.push_back(static_cast<ClauseIndex>(clauses_.size()));
      clauses_.push_back(c->lhs.get());
    }
    Array<Pattern> out;
    std::vector<Candidate> work;
    work.push_back(std::move(all));
    size_t count = 0;
    while (!work.empty()) {
      runtime::PollInterrupt();
      Candidate candidate = std::move(work.back());
      work.pop_back();
      if (++count > kMaxCandidates) {
        throw CompileError(
            "the match has too many cases to check that it covers all; `match?` takes it as it is and fails when it "
            "runs");
      }
      if (candidate.clauses.empty()) {
        if (!covers_rest) out.push_back(candidate.pattern);
        continue;
      }
      PatternPath place;
      if (const PatternNode* looks = FirstOpen(clauses_[candidate.clauses[0]], candidate.pattern.get(), &place)) {
        Split(candidate, place, looks, &work);
      }
    }
    return out;
  }

 private:
  using ClauseIndex = uint32_t;
  using PatternPath = std::vector<size_t>;  ///< which part of which part ...
  struct Candidate {
    Pattern pattern;
    std::vector<ClauseIndex> clauses;  ///< none excludes it; in their order
  };

  /// Returns the clause's pattern at the first place that it looks into and the candidate leaves open, or null.
  static const PatternNode* FirstOpen(const PatternNode* clause, const PatternNode* candidate, PatternPath* place) {
    struct Level {
      const PatternNode *clause, *candidate;
      size_t next = 0;
    };
    if (IsAny(clause)) return nullptr;
    if (IsAny(candidate)) return clause;
    std::vector<Level> stack{{clause, candidate}};
    while (!stack.empty()) {
      Level& l = stack.back();
      const Array<Pattern>&c = ChildrenOf(l.clause), &d = ChildrenOf(l.candidate);
      if (l.next == d.size()) {
        stack.pop_back();
        continue;
      }
      const size_t i = l.next++;
      if (IsAny(c[i])) continue;
      if (!IsAny(d[i])) {
        stack.push_back({c[i].get(), d[i].get()});
        continue;
      }
      for (const Level& at : stack) place->push_back(at.next - 1);
      return c[i].get();
    }
    return nullptr;
  }
  /// The pattern at a place of a clause that does not exclude a candidate; null: anything.
  static const PatternNode* At(const PatternNode* clause, const PatternPath& place) {
    for (size_t i : place) {
      if (IsAny(clause)) return nullptr;
      clause = ChildrenOf(clause)[i].get();
    }
    return IsAny(clause) ? nullptr : clause;
  }
  /// The candidate with `what` at a place.
  static Pattern With(const Pattern& candidate, const PatternPath& place, Pattern what) {
    std::vector<const PatternNode*> way;
    const PatternNode* p = candidate.get();
    for (size_t i : place) {
      way.push_back(p);
      p = ChildrenOf(p)[i].get();
    }
    for (size_t k = way.size(); k-- > 0;) {
      Array<Pattern> children = ChildrenOf(way[k]);
      children.Set(place[k], what);
      const bool tuple = way[k]->IsInstance<PatternTupleNode>();
      what =
          tuple
              ? Pattern(PatternTuple(children))
              : Pattern(PatternConstructor(static_cast<const PatternConstructorNode*>(way[k])->constructor, children));
    }
    return what;
  }
  Array<Pattern> Anything(size_t n) { return Array<Pattern>(std::vector<Pattern>(n, any_)); }

  /// The candidate as several, by the patterns of a place where a clause has `looks`; the first is to come next.
  void Split(const Candidate& candidate, const PatternPath& place, const PatternNode* looks,
             std::vector<Candidate>* work) {
    std::vector<std::pair<Pattern, size_t>> kinds;  // with their numbers of fields
    std::unordered_map<std::string_view, size_t> by_name;
    GlobalTypeVar type;
    if (looks->IsInstance<PatternTupleNode>()) {
      const size_t n = ChildrenOf(looks).size();
      kinds.push_back({PatternTuple(Anything(n)), n});
    } else {
      type = static_cast<const PatternConstructorNode*>(looks)->constructor->belong_to;
      for (const Constructor& k : mod_->LookupTypeDef(type)->constructors) {
        by_name.emplace(k->name_hint.view(), kinds.size());
        kinds.push_back({PatternConstructor(k, Anything(k->inputs.size())), k->inputs.size()});
      }
    }
    std::vector<std::vector<ClauseIndex>> fit(kinds.size());
    std::vector<ClauseIndex> fit_all;
    for (ClauseIndex c : candidate.clauses) {
      const PatternNode* p = At(clauses_[c], place);
      if (!p) {
        fit_all.push_back(c);
        continue;
      }
      size_t kind = 0;
      const auto* k = p->IsInstance<PatternConstructorNode>() ? static_cast<const PatternConstructorNode*>(p) : nullptr;
      if ((k != nullptr) != type.defined()) continue;
      if (k) {
        auto it = by_name.find(k->constructor->name_hint.view());
        if (it == by_name.end() || !(k->constructor->belong_to->name_hint == type->name_hint)) continue;
        kind = it->second;
      }
      if (ChildrenOf(p).size() == kinds[kind].second) fit[kind].push_back(c);
    }
    for (size_t i = kinds.size(); i-- > 0;) {
      Candidate refined{With(candidate.pattern, place, kinds[i].first), {}};
      std::merge(fit[i].begin(), fit[i].end(), fit_all.begin(), fit_all.end(), std::back_inserter(refined.clauses));
      work->push_back(std::move(refined));
    }
  }

  IRModule mod_;
  Pattern any_;
  std::vector<const PatternNode*> clauses_;
};

}  // namespace

Array<Pattern> UnmatchedCases(const Match& match, const IRModule& mod) { return Cases(mod).Unmatched(match); }

BATON_REGISTER_GLOBAL("relay.analysis.unmatched_cases").set_body_typed([](Match match, IRModule mod) {
  return UnmatchedCases(match, mod);
});

}  // namespace baton::relay

// SPDX-License-Identifier: Apache-2.0
// Whether the clauses of a match cover all values. A candidate is a pattern of values not covered yet; a clause that
// neither covers nor excludes all of it splits it by the constructors at the first place where the clause looks deeper.
#include <baton/ir/diagnostic.h>
#include <baton/relay/analysis.h>
#include <baton/runtime/registry.h>
#include <baton/support/stack.h>

#include <string_view>
#include <unordered_map>
#include <vector>

namespace baton::relay {
namespace {

constexpr size_t kMostCandidates = 100'000;
enum class Fit { kCovers, kExcludes, kPartly };

bool IsAny(const Pattern& p) { return p.as<PatternWildcardNode>() || p.as<PatternVarNode>(); }
Pattern Anything() { return PatternWildcard(PatternWildcardNode()); }

class Cases {
 public:
  explicit Cases(const IRModule& mod) : mod_(mod) {}

  Array<Pattern> Unmatched(const Match& match) {
    Sort(match);
    Array<Pattern> out;
    std::vector<Pattern> work{Anything()};
    size_t count = 0;
    while (!work.empty()) {
      Pattern candidate = work.back();
      work.pop_back();
      if (++count > kMostCandidates) {
        throw CompileError(
            "the match has too many cases to check that it covers all; `match?` takes it as it is and fails when it "
            "runs");
      }
      bool done = false;
      for (const Pattern& clause : ClausesFor(candidate)) {
        Fit fit = Check(clause, candidate);
        if (fit == Fit::kExcludes) continue;
        if (fit == Fit::kPartly) {
          std::vector<Pattern> parts = Split(clause, candidate);
          work.insert(work.end(), parts.rbegin(), parts.rend());
        }
        done = true;
        break;
      }
      if (!done && !covers_rest_) out.push_back(candidate);
    }
    return out;
  }

 private:
  /// Puts clauses by what they begin with, so that a data type of many constructors is not compared with all clauses. A
  /// clause that takes anything covers what those before it leave; those behind it are never reached.
  void Sort(const Match& match) {
    for (const Clause& c : match->clauses) {
      if (IsAny(c->lhs)) {
        covers_rest_ = true;
        break;
      }
      if (first_.empty()) first_.push_back(c->lhs);
      by_root_[Root(c->lhs)].push_back(c->lhs);
    }
  }
  /// Those that may cover a candidate, in their order.
  const std::vector<Pattern>& ClausesFor(const Pattern& candidate) {
    return IsAny(candidate) ? first_ : by_root_[Root(candidate)];
  }
  static std::string_view Root(const Pattern& p) {
    const auto* c = p.as<PatternConstructorNode>();
    return c ? c->constructor->name_hint.view() : std::string_view();  // a tuple
  }
  static bool Same(const Constructor& a, const Constructor& b) {
    return a.same_as(b) || (a->name_hint == b->name_hint && a->belong_to->name_hint == b->belong_to->name_hint);
  }
  Fit All(const Array<Pattern>& clause, const Array<Pattern>& candidate) {
    if (clause.size() != candidate.size()) return Fit::kExcludes;
    Fit out = Fit::kCovers;
    for (size_t i = 0; i < clause.size(); ++i) {
      Fit f = Check(clause[i], candidate[i]);
      if (f == Fit::kExcludes) return f;
      if (f == Fit::kPartly) out = f;
    }
    return out;
  }
  Fit Check(const Pattern& clause, const Pattern& candidate) {
    return support::WithStack([&] {
      if (IsAny(clause)) return Fit::kCovers;
      if (IsAny(candidate)) return Fit::kPartly;
      if (const auto* c = clause.as<PatternConstructorNode>()) {
        const auto* d = candidate.as<PatternConstructorNode>();
        return d && Same(c->constructor, d->constructor) ? All(c->patterns, d->patterns) : Fit::kExcludes;
      }
      const auto *c = clause.as<PatternTupleNode>(), *d = candidate.as<PatternTupleNode>();
      return c && d ? All(c->patterns, d->patterns) : Fit::kExcludes;
    });
  }

  /// The candidate as several, by what can stand at the first place that `clause` looks into and it leaves open.
  std::vector<Pattern> Split(const Pattern& clause, const Pattern& candidate) {
    return support::WithStack([&]() -> std::vector<Pattern> {
      std::vector<Pattern> out;
      const auto* c = clause.as<PatternConstructorNode>();
      if (IsAny(candidate)) {
        if (!c) {
          Array<Pattern> parts;
          for (size_t i = 0; i < clause.as<PatternTupleNode>()->patterns.size(); ++i) parts.push_back(Anything());
          return {PatternTuple(parts)};
        }
        for (const Constructor& k : mod_->LookupTypeDef(c->constructor->belong_to)->constructors) {
          Array<Pattern> parts;
          for (size_t i = 0; i < k->inputs.size(); ++i) parts.push_back(Anything());
          out.push_back(PatternConstructor(k, parts));
        }
        return out;
      }
      const auto* d = candidate.as<PatternConstructorNode>();
      const Array<Pattern>& looks = c ? c->patterns : clause.as<PatternTupleNode>()->patterns;
      const Array<Pattern>& has = d ? d->patterns : candidate.as<PatternTupleNode>()->patterns;
      for (size_t i = 0; i < has.size(); ++i) {
        if (Check(looks[i], has[i]) != Fit::kPartly) continue;
        for (const Pattern& p : Split(looks[i], has[i])) {
          Array<Pattern> parts = has;
          parts.Set(i, p);
          out.push_back(d ? Pattern(PatternConstructor(d->constructor, parts)) : Pattern(PatternTuple(parts)));
        }
        break;
      }
      return out;
    });
  }

  IRModule mod_;
  std::vector<Pattern> first_;
  std::unordered_map<std::string_view, std::vector<Pattern>> by_root_;
  bool covers_rest_ = false;
};

}  // namespace

Array<Pattern> UnmatchedCases(const Match& match, const IRModule& mod) { return Cases(mod).Unmatched(match); }

BATON_REGISTER_GLOBAL("relay.analysis.unmatched_cases").set_body_typed([](Match match, IRModule mod) {
  return UnmatchedCases(match, mod);
});

}  // namespace baton::relay

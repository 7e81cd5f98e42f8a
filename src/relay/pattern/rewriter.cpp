// SPDX-License-Identifier: Apache-2.0
// Rewriting matches of patterns until nothing changes.
#include <baton/ir/rewrite_limit.h>
#include <baton/ir/structural.h>
#include <baton/relay/functor.h>
#include <baton/relay/transform.h>
#include <relay/pattern/match_groups.h>

#include <memory>
#include <unordered_set>

namespace baton::relay {
namespace {

// Rounds are linear, so this bounds the work. Independent rewrites are done in one round; only rewrites that enable
// each other take more.
constexpr int kMaxRounds = 100;

class PatternRewriter : public MixedModeMutator {
 public:
  PatternRewriter(const DFPatternCallback& callback, const PatternTable& table, const ExprIndex& graph,
                  const std::vector<MatchGroup>& groups, const std::vector<int32_t>& of_root)
      : callback_(callback), table_(table), graph_(graph), groups_(groups), of_root_(of_root) {}

 private:
  using MixedModeMutator::VisitExpr_;
  Expr Rewrite_(const CallNode* pre, const Expr& post) final { return Replace(pre, post); }
  Expr Rewrite_(const TupleNode* pre, const Expr& post) final { return Replace(pre, post); }
  Expr Rewrite_(const TupleGetItemNode* pre, const Expr& post) final { return Replace(pre, post); }
  Expr PostVisitLet_(const LetNode* pre, const Expr& value, const Expr& body) final {
    return Counted(pre, MixedModeMutator::PostVisitLet_(pre, value, body));
  }
#define BATON_REPLACE(N) \
  Expr VisitExpr_(const N* pre) final { return Counted(pre, MixedModeMutator::VisitExpr_(pre)); }
  BATON_REPLACE(ConstantNode)
  BATON_REPLACE(VarNode)
  BATON_REPLACE(GlobalVarNode)
  BATON_REPLACE(FunctionNode)
  BATON_REPLACE(IfNode)
  BATON_REPLACE(OpNode)
  BATON_REPLACE(RefCreateNode)
  BATON_REPLACE(RefReadNode)
  BATON_REPLACE(RefWriteNode)
  BATON_REPLACE(ConstructorNode)
  BATON_REPLACE(MatchNode)
#undef BATON_REPLACE

  Expr Rewritten(const ExprNode* e) {
    const Expr out = Known(GetRef<Expr>(e));
    return out.defined() ? out : GetRef<Expr>(e);
  }

  /// Where the base class does not ask whether the rewrite is to be made.
  Expr Counted(const ExprNode* pre, const Expr& post) {
    Expr out = Replace(pre, post);
    return out.same_as(post) || baton::transform::RewriteAllowed() ? out : post;
  }

  Expr Replace(const ExprNode* pre, const Expr& post) {
    const int32_t i = graph_.IdOf(pre);
    if (i < 0 || of_root_[i] < 0) return post;
    const MatchGroup& g = groups_[of_root_[i]];
    Map<DFPattern, Array<Expr>> node_map;
    for (const auto& [p, e] : g.bound) node_map.Set(table_.pattern(p), {e == pre ? post : Rewritten(e)});
    for (const auto& [p, path] : g.paths) {
      Array<Expr> on;
      for (const ExprNode* e : path) on.push_back(Rewritten(e));
      node_map.Set(table_.pattern(p), on);
    }
    Expr out = callback_->function(GetRef<Expr>(pre), post, node_map).As<Expr>();
    if (!out.defined()) throw CompileError("the rewrite of the pattern " + Name(callback_) + " gave no expression");
    return out;
  }

 public:
  static std::string Name(const DFPatternCallback& c) {
    std::string text = AsText(c->pattern, false);
    return text.size() > 200 ? text.substr(0, 200) + "..." : text;
  }

 private:
  const DFPatternCallback& callback_;
  const PatternTable& table_;
  const ExprIndex& graph_;
  const std::vector<MatchGroup>& groups_;
  const std::vector<int32_t>& of_root_;
};

std::string Names(const Array<DFPatternCallback>& callbacks) {
  std::string out;
  for (size_t i = 0; i < callbacks.size() && i < 8; ++i) {
    out += (i ? ", " : "") + PatternRewriter::Name(callbacks[i]);
  }
  return out;
}

}  // namespace

Expr RewritePatterns(const Array<DFPatternCallback>& callbacks, const Expr& expr, const IRModule& mod) {
  if (!expr.defined()) throw CompileError("a null expression cannot be rewritten");
  std::vector<std::unique_ptr<PatternTable>> tables;
  for (const DFPatternCallback& c : callbacks) {
    if (!c.defined() || !c->function.defined()) throw CompileError("a rewrite has no function");
    tables.push_back(std::make_unique<PatternTable>(c->pattern));
  }
  std::unordered_set<uint64_t> seen;
  Expr post = expr;
  int64_t first_size = -1;
  for (int round = 0;; ++round) {
    const Expr before = post;
    for (size_t i = 0; i < callbacks.size(); ++i) {
      const DFPatternCallback& c = callbacks[i];
      if (round > 0 && c->rewrite_once) continue;
      if (c->require_type) transform::InferTypeOf(post, mod);
      ExprIndex graph(post);
      const auto size = static_cast<int64_t>(graph.size());
      if (first_size < 0) first_size = size;
      if (size > 64 * first_size + 100000) {
        throw CompileError("rewriting grows the expression from " + std::to_string(first_size) + " to " +
                           std::to_string(size) + " nodes without an end; the patterns are " + Names(callbacks) +
                           "; let the result not match, or set rewrite_once");
      }
      std::vector<int32_t> of_root;
      std::vector<MatchGroup> groups = FindGroups(*tables[i], &graph, post, mod, &of_root);
      if (!groups.empty()) post = PatternRewriter(c, *tables[i], graph, groups, of_root).Mutate(post);
    }
    if (post.same_as(before)) return post;
    bool again = false;
    for (const DFPatternCallback& c : callbacks) again |= !c->rewrite_once;
    if (!again) return post;
    if (round == 0) seen.insert(StructuralHash(before));
    if (StructuralEqual(before, post)) return before;
    if (!seen.insert(StructuralHash(post)).second || round + 1 >= kMaxRounds) {
      throw CompileError("rewriting does not end: " +
                         (round + 1 >= kMaxRounds
                              ? "it still changes after " + std::to_string(round + 1) + " rounds"
                              : "round " + std::to_string(round + 1) + " gives an earlier expression") +
                         "; the patterns are " + Names(callbacks) +
                         "; let the results not match each other's patterns, or set rewrite_once");
    }
  }
}

}  // namespace baton::relay

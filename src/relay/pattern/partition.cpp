// SPDX-License-Identifier: Apache-2.0
// Putting matches of a pattern into functions.
#include <baton/ir/rewrite_limit.h>
#include <baton/relay/functor.h>
#include <relay/expr/children.h>
#include <relay/expr/impure.h>
#include <relay/pattern/match_groups.h>

#include <algorithm>
#include <optional>

namespace baton::relay {
namespace {

using Kind = PatternTable::Kind;

struct Partition {
  Array<Var> params;
  std::vector<const ExprNode*> args;
  Expr body;
};

/// The body of a match, with variables in place of what it takes from outside.
class Extractor : public MixedModeMutator {
 public:
  using MixedModeMutator::Put;
};

bool IsCallee(const ExprNode* e) {
  return e->IsInstance<OpNode>() || e->IsInstance<FunctionNode>() || e->IsInstance<GlobalVarNode>() ||
         e->IsInstance<ConstructorNode>();
}

/// False where the match cannot be a separate function: what it takes uses a variable that it binds.
bool Extract(const MatchGroup& g, const PatternTable& table, const ExprIndex& graph, size_t id, Partition* out) {
  PointerSet inner, kept, given;
  for (const ExprNode* e : g.inner) inner.Add(e);
  bool binds = false;
  for (const ExprNode* e : g.inner) {
    ForEachBoundVar(e, [&](const Var& v) {
      binds = true;
      kept.Add(v.get());
    });
  }
  // Constants that the pattern asks for belong to the function.
  for (const auto& [p, e] : g.bound) {
    const Kind kind = table.row(p).kind;
    if (e->IsInstance<ConstantNode>() && (kind == Kind::kConstant || kind == Kind::kExpr)) kept.Add(e);
  }
  Extractor extract;
  auto param = [&](const ExprNode* e) {
    if (!e || inner.Has(e) || kept.Has(e) || IsCallee(e) || !given.Add(e)) return;
    Var v("FunctionVar_" + std::to_string(id) + "_" + std::to_string(out->args.size()));
    out->params.push_back(v);
    out->args.push_back(e);
    extract.Put(GetRef<Expr>(e), v);
  };
  // In the order of the pattern, so that parameter i is the same part of each match; then what only paths use.
  for (const auto& [p, e] : g.bound) {
    const PatternTable::Row& row = table.row(p);
    if (row.any_children && row.kind == Kind::kCall) {
      for (const Expr& a : static_cast<const CallNode*>(e)->args) param(a.get());
    } else if (row.any_children && row.kind == Kind::kTuple) {
      for (const Expr& f : static_cast<const TupleNode*>(e)->fields) param(f.get());
    } else if (row.children.empty()) {
      param(e);
    }
  }
  if (!g.paths.empty()) {
    std::vector<int32_t> order;
    for (const ExprNode* e : g.inner) order.push_back(graph.IdOf(e));
    std::sort(order.begin(), order.end());
    for (int32_t i : order) {
      if (!graph[i]->IsInstance<FunctionNode>()) ForEachChild(graph[i], param);
    }
  }
  if (binds) {
    for (const ExprNode* a : out->args) {
      for (const ExprNode* e : PostOrderNodes(GetRef<Expr>(a))) {
        if (e->IsInstance<VarNode>() && kept.Has(e)) return false;
      }
    }
  }
  out->body = extract.VisitExpr(GetRef<Expr>(graph[g.root]));
  return true;
}

/// "nn.conv2d_add_nn.relu_": what is called, inputs first. Calls in functions that are called are not listed.
std::string NameOf(const Expr& body) {
  std::vector<const ExprNode*> nodes = PostOrderNodes(body);
  PointerSet nested;
  for (const ExprNode* n : nodes) {
    if (!n->IsInstance<FunctionNode>() || nested.Has(n)) continue;
    for (const ExprNode* x : PostOrderNodes(static_cast<const FunctionNode*>(n)->body)) nested.Add(x);
  }
  std::string name;
  for (const ExprNode* n : nodes) {
    if (nested.Has(n)) continue;
    if (n->IsInstance<CallNode>()) {
      const Expr& op = static_cast<const CallNode*>(n)->op;
      const auto* o = op.as<OpNode>();
      name += o ? o->name.str() + "_" : op.as<FunctionNode>() ? "FunctionCall_" : "Call_";
    } else if (n->IsInstance<TupleNode>()) {
      name += "Tuple_";
    } else if (n->IsInstance<TupleGetItemNode>()) {
      name += "TupleGetItem" + std::to_string(static_cast<const TupleGetItemNode*>(n)->index) + "_";
    } else if (n->IsInstance<IfNode>()) {
      name += "If_";
    } else if (n->IsInstance<LetNode>()) {
      name += "Let_";
    }
  }
  return name;
}

class PatternPartitioner : public MixedModeMutator {
 public:
  PatternPartitioner(const Expr& root, const PatternTable& table, const ExprIndex& graph,
                     const std::vector<MatchGroup>& groups, const std::vector<int32_t>& of_root,
                     const Map<String, Any>& attrs, const PackedFunc& check)
      : root_(root), table_(table), graph_(graph), groups_(groups), of_root_(of_root), attrs_(attrs), check_(check) {}

 private:
  using MixedModeMutator::VisitExpr_;
  Expr Rewrite_(const CallNode* pre, const Expr& post) final { return Replace(pre, post); }
  Expr Rewrite_(const TupleNode* pre, const Expr& post) final { return Replace(pre, post); }
  Expr Rewrite_(const TupleGetItemNode* pre, const Expr& post) final { return Replace(pre, post); }
  Expr PostVisitLet_(const LetNode* pre, const Expr& value, const Expr& body) final {
    return Counted(pre, MixedModeMutator::PostVisitLet_(pre, value, body));
  }
  Expr VisitExpr_(const IfNode* pre) final { return Counted(pre, MixedModeMutator::VisitExpr_(pre)); }

  /// Where the base class does not ask whether the match is to be taken out.
  Expr Counted(const ExprNode* pre, const Expr& post) {
    Expr out = Replace(pre, post);
    return out.same_as(post) || baton::transform::RewriteAllowed() ? out : post;
  }

  Expr Replace(const ExprNode* pre, const Expr& post) {
    const int32_t i = graph_.IdOf(pre);
    if (i < 0 || of_root_[i] < 0) return post;
    if (check_.defined() && !check_(GetRef<Expr>(pre)).As<bool>()) return post;
    Partition partition;
    if (!Extract(groups_[of_root_[i]], table_, graph_, id_, &partition) || !InOrder(partition.args)) return post;
    ++id_;
    Map<String, Any> attrs = attrs_;
    attrs.Set(kPartitionedFromPattern, Any(String(NameOf(partition.body))));
    Array<Expr> args;
    for (const ExprNode* a : partition.args) {
      args.push_back(VisitExpr(GetRef<Expr>(a)));
    }
    Function f(partition.params, partition.body, Type(), {}, DictAttrs(attrs));
    f->span = pre->span;
    CallNode call;
    call.op = f;
    call.args = args;
    call.span = pre->span;
    return Call(std::move(call));
  }

  /// Whether what has effects among the arguments, which are in the order of the pattern, is evaluated in the order
  /// of the program.
  bool InOrder(const std::vector<const ExprNode*>& args) {
    int32_t last = -1;
    for (size_t i = 0; i < args.size() && args.size() > 1; ++i) {
      if (!impure_) impure_ = ImpureNodes(root_);
      if (!impure_->Has(args[i])) continue;
      const int32_t now = graph_.IdOf(args[i]);
      if (now < last) return false;
      last = now;
    }
    return true;
  }

  const Expr& root_;
  const PatternTable& table_;
  const ExprIndex& graph_;
  const std::vector<MatchGroup>& groups_;
  const std::vector<int32_t>& of_root_;
  const Map<String, Any>& attrs_;
  const PackedFunc& check_;
  std::optional<PointerSet> impure_;
  size_t id_ = 0;
};

}  // namespace

Expr PartitionPattern(const DFPattern& pattern, const Expr& expr, const Map<String, Any>& attrs,
                      const PackedFunc& check) {
  if (!expr.defined()) throw CompileError("a null expression cannot be partitioned");
  PatternTable table(pattern);
  ExprIndex graph(expr);
  std::vector<int32_t> of_root;
  std::vector<MatchGroup> groups = FindGroups(table, &graph, expr, IRModule(), &of_root);
  if (groups.empty()) return expr;
  return PatternPartitioner(expr, table, graph, groups, of_root, attrs, check).Mutate(expr);
}

}  // namespace baton::relay

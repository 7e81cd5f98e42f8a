// SPDX-License-Identifier: Apache-2.0
#include "relay/transform/combine_parallel.h"

#include <baton/ir/structural.h>
#include <baton/relay/functor.h>
#include <baton/relay/op/make.h>
#include <baton/relay/op/nn.h>
#include <baton/relay/op/transform.h>

#include <algorithm>
#include <span>
#include <unordered_map>

namespace baton::relay::transform {

bool KnownShape(const Expr& e, Ints* shape) {
  shape->clear();
  const auto* t = e->checked_type_.as<TensorTypeNode>();
  return t && StaticShape(t->shape, shape);
}

Expr ConcatenateOf(const Array<Expr>& parts, int64_t axis) {
  static const Op op = Op::Get("concatenate");
  return MakeCall<ConcatenateAttrs>(op, {Tuple(parts)}, [&](ConcatenateAttrs* a) { a->axis = axis; });
}

void CheckMinBranches(int64_t min_branches, const char* pass) {
  if (min_branches >= 2) return;
  throw runtime::ValueError(std::string(pass) + ": min_num_branches is " + std::to_string(min_branches) +
                            ", must be at least 2");
}

namespace {

/// One operator behind each branch: calls of it, which argument is the branch's result, how the others are joined.
struct Level {
  std::vector<const CallNode*> calls;
  int64_t place = 0;
  /// For each argument: the dimension along which those of the branches are joined; -1: all are the same one.
  Ints axes;
};

struct Group {
  std::vector<const CallNode*> calls;
  std::vector<Level> levels;
  Expr combined;  ///< made when its first branch is rewritten
  Ints begins;    ///< where each branch's results begin along the joined dimension, and the end
  std::vector<const CallNode*> last() const { return levels.empty() ? calls : levels.back().calls; }
};

DataType ElementType(const Expr& e) { return e->checked_type_.as<TensorTypeNode>()->dtype; }

Ints Dims(const Expr& e) {
  Ints s;
  KnownShape(e, &s);
  return s;
}

/// Finds groups. How many calls of the operator lie on the longest way to an expression is its depth: what a group
/// needs beside its data is less deep than the group, so no group can need another that needs it.
class Finder {
 public:
  Finder(const Function& f, const ParallelRule& rule, size_t min_branches)
      : rule_(rule), min_(min_branches), graph_(f) {
    depth_.Fill(graph_.size(), 0);
    user_.Fill(graph_.size(), ExprIndex::kNone);
    size_t i = 0;
    for (const ExprNode* n : graph_.nodes()) {
      const std::span<const uint32_t> parts = graph_.Operands(i);
      for (uint32_t operand : parts) {
        if (operand != ExprIndex::kNone) depth_[i] = std::max(depth_[i], depth_[operand]);
      }
      if (n->IsInstance<CallNode>()) {
        const auto* call = static_cast<const CallNode*>(n);
        for (uint32_t operand : parts.subspan(1)) {
          if (operand != ExprIndex::kNone) user_[operand] = static_cast<uint32_t>(i);
        }
        if (Start(call, i)) ++depth_[i];
      }
      ++i;
    }
    for (auto& candidates : found_) Take(candidates);
  }
  std::vector<std::unique_ptr<Group>> groups;

 private:
  struct Candidates {
    uint32_t source;  // the argument that they share
    Ints key;
    Attrs attrs;
    std::vector<const CallNode*> calls;
  };

  int32_t DepthOf(const ExprNode* n) const {
    const uint32_t i = graph_.IdOf(n);
    return i == ExprIndex::kNone ? 0 : depth_[i];
  }
  int32_t DepthOf(const Expr& e) const { return DepthOf(e.get()); }

  bool Start(const CallNode* call, size_t id) {
    if (call->args.size() != 2 || !call->op->IsInstance<OpNode>()) return false;
    Ints key;
    Attrs attrs;
    if (!call->checked_type_.defined() || !rule_.Match(call, &key, &attrs)) return false;
    key.push_back(graph_.placement(id).scope);
    const uint32_t source = graph_.Operands(id)[1];
    uint64_t h = source + (attrs.defined() ? StructuralHash(attrs) : 0);
    for (int64_t k : key) h = h * 0x9e3779b97f4a7c15ull + static_cast<uint64_t>(k);
    std::vector<size_t>& same = index_[h];
    for (size_t i : same) {
      Candidates& c = found_[i];
      if (c.source != source || c.key != key || !StructuralEqual(c.attrs, attrs)) continue;
      c.calls.push_back(call);
      return true;
    }
    same.push_back(found_.size());
    found_.push_back({source, std::move(key), attrs, {call}});
    return true;
  }

  void Take(const Candidates& candidates) {
    if (candidates.calls.size() < min_) return;
    auto group = std::make_unique<Group>();
    int32_t depth = DepthOf(candidates.calls[0]);
    for (const CallNode* c : candidates.calls) depth = std::min(depth, DepthOf(c));
    for (const CallNode* c : candidates.calls) {
      if (DepthOf(c->args[1]) < depth) group->calls.push_back(c);
    }
    if (group->calls.size() < min_) return;
    const int64_t axis = rule_.Axis(group->calls[0]);
    group->begins.push_back(0);
    for (const CallNode* c : group->calls) group->begins.push_back(group->begins.back() + Dims(GetRef<Expr>(c))[axis]);
    std::vector<const CallNode*> at = group->calls;
    for (;;) {
      Level level;
      if (!Next(at, group->calls, depth, &level)) break;
      at = level.calls;
      group->levels.push_back(std::move(level));
    }
    groups.push_back(std::move(group));
  }

  /// The elementwise operator that follows each of the calls and nothing else does, if it is the same behind all.
  bool Next(const std::vector<const CallNode*>& at, const std::vector<const CallNode*>& starts, int32_t depth,
            Level* level) {
    for (const CallNode* c : at) {
      const ExprIndex::Placement& info = graph_.placement(c);
      if (info.uses != 1) return false;
      const uint32_t user_number = user_[graph_.IdOf(c)];
      if (user_number == ExprIndex::kNone) return false;
      const auto* user = static_cast<const CallNode*>(graph_[user_number]);
      if (graph_.placement(user_number).scope != info.scope || !user->checked_type_.defined()) return false;
      level->calls.push_back(user);
    }
    const CallNode* first = level->calls[0];
    const OpDef* def = DefOf(first->op);
    if (!def || def->stateful || def->pattern > OpPattern::kBroadcast) return false;
    const bool bias_add = first->op.as<OpNode>()->name == "nn.bias_add";
    if (first->args.size() > 1 && first->attrs.defined() && !bias_add) return false;
    for (level->place = 0; !first->args[level->place].same_as(GetRef<Expr>(at[0]));) ++level->place;
    PointerSet seen;
    for (size_t i = 0; i < at.size(); ++i) {
      const CallNode* c = level->calls[i];
      if (!seen.Add(c)) return false;  // one operator on two branches
      if (!c->op.same_as(first->op) || c->args.size() != first->args.size()) return false;
      if (!c->attrs.same_as(first->attrs) && !StructuralEqual(c->attrs, first->attrs)) return false;
      if (!c->args[level->place].same_as(GetRef<Expr>(at[i]))) return false;
      Ints result, was;
      // The result has the branch's shape: no broadcasting.
      if (!KnownShape(GetRef<Expr>(c), &result) || !KnownShape(GetRef<Expr>(at[i]), &was) || result != was)
        return false;
    }
    for (int64_t a = 0; a < static_cast<int64_t>(first->args.size()); ++a) {
      int64_t axis = -1;
      if (a != level->place && !Joint(*level, a, starts, depth, bias_add, &axis)) return false;
      level->axes.push_back(axis);
    }
    return true;
  }

  /// How the branches' arguments `a` become one.
  bool Joint(const Level& level, int64_t a, const std::vector<const CallNode*>& starts, int32_t depth, bool bias_add,
             int64_t* axis) {
    bool same = true;
    const Expr& first = level.calls[0]->args[a];
    Ints shape;
    for (const CallNode* c : level.calls) {
      const Expr& e = c->args[a];
      if (DepthOf(e) >= depth || !KnownShape(e, &shape) || ElementType(e) != ElementType(first)) return false;
      const auto *one = e.as<ConstantNode>(), *other = first.as<ConstantNode>();
      same = same && (e.same_as(first) || (one && other && one->is_scalar() && StructuralEqual(e, first)));
    }
    const Ints out = Dims(GetRef<Expr>(level.calls[0]));
    const Ints want = Dims(first);
    const int64_t rank = static_cast<int64_t>(out.size()), own = static_cast<int64_t>(want.size());
    int64_t joined = rule_.Axis(starts[0]);
    if (bias_add) {
      int64_t at = AttrsAs<BiasAddAttrs>(level.calls[0]->attrs).axis;
      if (at < 0) at += rank;
      if (!rule_.stacks() && at != joined) return *axis = -1, same;
      if (rule_.stacks() && at != rank - 1) return false;  // it would have to be laid out anew
    }
    if (rule_.stacks()) {
      // Values for all branches stay as they are, since the new dimension comes first.
      if (same) return true;
      for (const CallNode* c : level.calls) {
        if (Dims(c->args[a]) != want) return false;
      }
      return *axis = 0, true;
    }
    int64_t place = bias_add ? 0 : joined - (rank - own);
    if (same && (place < 0 || want[place] == 1)) return true;
    // A value for all of a branch is repeated, where results are joined along the last dimension.
    const bool repeats = joined == rank - 1 && !bias_add;
    if (place < 0 && !(own == 0 && repeats)) return false;
    place = std::max<int64_t>(place, 0);
    for (size_t i = 0; i < level.calls.size(); ++i) {
      Ints s = Dims(level.calls[i]->args[a]);
      if (s.size() != want.size()) return false;
      if (s.empty()) continue;
      if (s[place] != Dims(GetRef<Expr>(level.calls[i]))[joined] && !(repeats && s[place] == 1)) return false;
      s[place] = want[place];
      if (s != want) return false;
    }
    return *axis = place, true;
  }

  const ParallelRule& rule_;
  size_t min_;
  ExprIndex graph_;
  support::PageStack<int32_t> depth_;                        // by number
  support::PageStack<uint32_t> user_;                        // by number: the last call that it is an argument of
  std::unordered_map<uint64_t, std::vector<size_t>> index_;  // candidates, by a hash of what they have in common
  std::vector<Candidates> found_;
};

class Combiner : public MixedModeMutator {
 public:
  Combiner(const ParallelRule& rule, std::vector<std::unique_ptr<Group>> groups)
      : rule_(rule), groups_(std::move(groups)) {
    for (auto& g : groups_) {
      std::vector<const CallNode*> last = g->last();
      for (size_t i = 0; i < last.size(); ++i) place_[last[i]] = {g.get(), i};
    }
  }

 private:
  using MixedModeMutator::VisitExpr_;
  Expr VisitExpr_(const FunctionNode* f) final {
    return f->HasNonzeroAttr(attr::kPrimitive) ? GetRef<Expr>(f) : MixedModeMutator::VisitExpr_(f);
  }

  Expr Rewrite_(const CallNode* pre, const Expr& post) final {
    auto it = place_.find(pre);
    if (it == place_.end()) return post;
    auto [group, i] = it->second;
    if (!group->combined.defined()) group->combined = Make(*group);
    Expr out = rule_.stacks() ? Unstack(*group, static_cast<int64_t>(i)) : Slice(*group, i);
    out->span = pre->span;
    return out;
  }

  Expr Make(const Group& group) {
    const CallNode* first = group.calls[0];
    Array<Expr> weights;
    for (const CallNode* c : group.calls) weights.push_back(VisitExpr(c->args[1]));
    Expr out = rule_.Combine(group.calls, VisitExpr(first->args[0]), weights);
    out->span = first->span;
    for (const Level& level : group.levels) {
      Array<Expr> args;
      for (int64_t a = 0; a < static_cast<int64_t>(level.axes.size()); ++a)
        args.push_back(a == level.place ? out : Argument(level, a, first));
      const CallNode* call = level.calls[0];
      Attrs attrs = call->attrs;
      if (rule_.stacks() && call->op.as<OpNode>()->name == "nn.bias_add") {
        // A bias a branch: it is spread over rows by an addition.
        out = Add(out, args[1]);
      } else {
        out = MakeCall(Downcast<Op>(call->op), args, attrs);
      }
      out->span = call->span;
    }
    return out;
  }

  Expr Argument(const Level& level, int64_t a, const CallNode* start) {
    const int64_t axis = level.axes[a], joined = rule_.Axis(start);
    Expr first = VisitExpr(level.calls[0]->args[a]);
    if (axis < 0) return first;
    const int64_t rank = static_cast<int64_t>(Dims(GetRef<Expr>(start)).size());
    Array<Expr> parts;
    for (const CallNode* c : level.calls) {
      const Ints own = Dims(c->args[a]);
      Expr part = VisitExpr(c->args[a]);
      if (!rule_.stacks()) {
        parts.push_back(Repeated(part, own, axis, Dims(GetRef<Expr>(c))[joined]));
      } else {
        // The new dimension comes before those that it lacks.
        const int64_t lacks = rank - static_cast<int64_t>(own.size());
        parts.push_back(lacks > 0 ? ExpandDims(part, 0, lacks) : part);
      }
    }
    return rule_.stacks() ? StackOf(parts) : ConcatenateOf(parts, axis);
  }

  /// A value with `extent` elements along an axis, of one that has them or one alone.
  static Expr Repeated(const Expr& value, const Ints& shape, int64_t axis, int64_t extent) {
    if (!shape.empty() && shape[axis] == extent) return value;
    static const Op repeat = Op::Get("repeat");
    return MakeCall<RepeatAttrs>(repeat, {shape.empty() ? ExpandDims(value, -1, 1) : value}, [&](RepeatAttrs* r) {
      r->repeats = extent;
      r->axis = PrimExpr(axis);
    });
  }

  static Expr StackOf(const Array<Expr>& parts) {
    static const Op op = Op::Get("stack");
    return MakeCall<StackAttrs>(op, {Tuple(parts)}, [](StackAttrs* a) { a->axis = 0; });
  }

  Expr Slice(const Group& group, size_t i) {
    const auto axis = static_cast<size_t>(rule_.Axis(group.calls[0]));
    static const Op op = Op::Get("strided_slice");
    // A size of -1 is all that there is.
    Array<int64_t> begin(axis, 0), size(axis, -1);
    begin.push_back(group.begins[i]);
    size.push_back(group.begins[i + 1] - group.begins[i]);
    return MakeCall<StridedSliceAttrs>(op, {group.combined}, [&](StridedSliceAttrs* a) {
      a->begin = begin, a->end = size, a->strides = Array<int64_t>(axis + 1, 1), a->slice_mode = "size";
    });
  }

  Expr Unstack(const Group& group, int64_t i) {
    static const Op split = Op::Get("split");
    Expr& parts = parts_[&group];
    if (!parts.defined()) {
      parts = MakeCall<SplitAttrs>(split, {group.combined}, [&](SplitAttrs* a) {
        a->indices_or_sections = IntOrInts(PrimExpr(static_cast<int64_t>(group.calls.size())));
        a->axis = 0;
      });
    }
    return Squeeze(TupleGetItem(parts, i), {0});
  }

  const ParallelRule& rule_;
  std::vector<std::unique_ptr<Group>> groups_;
  std::unordered_map<const Object*, std::pair<Group*, size_t>> place_;
  std::unordered_map<const Group*, Expr> parts_;
};

}  // namespace

Function CombineParallel(const Function& f, const ParallelRule& rule, int64_t min_branches) {
  // The first operator of the branches must be there more than once; most programs have no such operator at all.
  int64_t starts = 0;
  const bool enough = AnyNode(f, [&](const ExprNode* n) {
    const auto* call = n->IsInstance<CallNode>() ? static_cast<const CallNode*>(n) : nullptr;
    Ints key;
    Attrs attrs;
    return call && call->checked_type_.defined() && rule.Match(call, &key, &attrs) && ++starts >= min_branches;
  });
  if (!enough) return f;
  Finder finder(f, rule, static_cast<size_t>(min_branches));
  if (finder.groups.empty()) return f;
  return Combiner(rule, std::move(finder.groups)).Mutate(f);
}

}  // namespace baton::relay::transform

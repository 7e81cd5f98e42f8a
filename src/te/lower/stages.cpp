// SPDX-License-Identifier: Apache-2.0
#include "te/lower/stages.h"

#include <baton/tir/functor.h>
#include <baton/tir/intrin.h>

#include <unordered_set>
#include <utility>

namespace baton::te::lower {

namespace {

/// Rough cost of evaluating an expression once: 1 is an addition of a vector.
double CostOf(const PrimExpr& e) {
  double cost = 0;
  tir::PostOrderVisitExpr(e, [&](const PrimExpr& x) {
    if (x.dtype() == DataType::Int(64)) return;  // index arithmetic
    if (const auto* c = x.as<tir::CallNode>()) {
      cost += tir::CostOfCall(c);
    } else if (x.as<tir::DivNode>() || x.as<tir::ModNode>() || x.as<tir::FloorDivNode>() || x.as<tir::FloorModNode>()) {
      cost += x.dtype().is_floating() ? 4 : 16;
    } else if (!(x.as<tir::ProducerLoadNode>() || x.as<tir::VarNode>() || x.as<IntImmNode>() || x.as<FloatImmNode>() ||
                 x.as<tir::LetNode>() || x.as<tir::BufferLoadNode>())) {
      cost += 1;
    }
  });
  return cost;
}

template <class F>
void ForReads(const ComputeOpNode* op, F f) {
  auto visit = [&](const PrimExpr& e) {
    tir::PostOrderVisitExpr(e, [&](const PrimExpr& x) {
      if (const auto* l = x.as<tir::ProducerLoadNode>()) f(l);
    });
  };
  for (const PrimExpr& b : op->body) {
    if (const auto* r = b.as<tir::ReduceNode>()) {
      for (const PrimExpr& s : r->source) visit(s);
      if (r->condition.defined()) visit(r->condition);
      if (r->value_index == 0 && op->body.size() > 1) break;  // the bodies share one reduction
    } else {
      visit(b);
    }
  }
}

/// Rewrites reads: inlined producers become their bodies, each used value once by a Let; the rest becomes loads.
class Inliner : public tir::ExprMutator {
 public:
  explicit Inliner(const StageGraph& graph) : graph_(graph) {}
  using tir::ExprMutator::VisitExpr_;

  PrimExpr Scope(const PrimExpr& e) {
    scopes_.emplace_back();
    PrimExpr r = VisitExpr(e);
    return Close(r);
  }
  PrimExpr VisitExpr_(const tir::ProducerLoadNode* op) final {
    Tensor t = Downcast<Tensor>(op->producer);
    Array<PrimExpr> indices = VisitExprs(op->indices);
    auto it = graph_.by_op.find(t->op.get());
    if (it == graph_.by_op.end() || !it->second->inlined)
      return t(indices);  // symbolic until it is known where it is stored
    OpInfo* info = it->second;
    tir::VarMap map;
    for (size_t i = 0; i < indices.size(); ++i) map[info->compute->axis[i]->var.get()] = indices[i];
    const PrimExpr& body = info->compute->body[t->value_index];
    if (info->cost == 0) return VisitExpr(tir::Substitute(body, map));
    // The same element again?
    tir::ProducerLoadNode key = *op;
    key.indices = indices;
    PrimExpr k = tir::ProducerLoad(std::move(key));
    size_t h = tir::ExprHash(k);
    for (size_t s = scopes_.size(); s-- > 0;) {
      auto [lo, hi] = scopes_[s].seen.equal_range(h);
      for (auto e = lo; e != hi; ++e) {
        if (tir::ExprDeepEqual(e->second.first, k)) return e->second.second;
      }
    }
    PrimExpr value = VisitExpr(tir::Substitute(body, map));
    if (value.as<tir::VarNode>() || value.as<IntImmNode>() || value.as<FloatImmNode>()) return value;
    Var v(String(t->op->name.str()), value.dtype());
    scopes_.back().lets.push_back({v, value});
    scopes_.back().seen.emplace(h, std::make_pair(k, PrimExpr(v)));
    return v;
  }
  PrimExpr VisitExpr_(const tir::CallNode* op) final {
    if (tir::IsChoice(op)) {
      // What a branch computes must not move out of it: it may read outside of a buffer.
      PrimExpr c = VisitExpr(op->args[0]);
      return tir::Call(op->dtype, op->op, {c, Scope(op->args[1]), Scope(op->args[2])});
    }
    return tir::ExprMutator::VisitExpr_(op);
  }
  PrimExpr VisitExpr_(const tir::LetNode* op) final {
    // A value inside may use the variable, so it stays inside.
    PrimExpr v = VisitExpr(op->value);
    return tir::Let(op->var, v, Scope(op->body));
  }

 private:
  struct ScopeData {
    std::vector<std::pair<Var, PrimExpr>> lets;
    std::unordered_multimap<size_t, std::pair<PrimExpr, PrimExpr>> seen;
  };
  PrimExpr Close(PrimExpr r) {
    ScopeData s = std::move(scopes_.back());
    scopes_.pop_back();
    // A value used once goes to its use.
    std::unordered_map<const Object*, int> uses;
    auto count = [&](const PrimExpr& e) {
      tir::PostOrderVisitExpr(e, [&](const PrimExpr& x) {
        if (x.as<tir::VarNode>()) ++uses[x.get()];
      });
    };
    count(r);
    for (const auto& [v, x] : s.lets) count(x);
    tir::VarMap once;
    std::vector<std::pair<Var, PrimExpr>> keep;
    for (auto& [v, x] : s.lets) {
      PrimExpr value = once.empty() ? x : tir::Substitute(x, once);
      if (uses[v.get()] == 1) {
        once[v.get()] = value;
      } else if (uses[v.get()] > 1) {
        keep.push_back({v, value});
      }
    }
    if (!once.empty()) r = tir::Substitute(r, once);
    for (size_t i = keep.size(); i-- > 0;) r = tir::Let(keep[i].first, keep[i].second, r);
    return r;
  }
  const StageGraph& graph_;
  std::vector<ScopeData> scopes_;
};

class StageBuilder {
 public:
  StageBuilder(const Array<Tensor>& outputs, GroupBuffers* buffers) : outputs_(outputs), buffers_(buffers) {}

  StageGraph Run() {
    Collect();
    Decide();
    BuildStages();
    return std::move(graph_);
  }

 private:
  /// Operations in topological order, producers first.
  void Collect() {
    std::vector<std::pair<Tensor, bool>> stack;
    std::unordered_map<const Object*, int> state;
    auto push = [&](const Tensor& t) {
      if (t->op.as<PlaceholderOpNode>()) {
        if (!buffers_->HoldsInput(t)) {
          throw InternalError("tensor `" + t->op->name.str() + "` is read but is no input of the group");
        }
        return;
      }
      if (state[t->op.get()] == 0) stack.push_back({t, false});
    };
    for (size_t i = outputs_.size(); i-- > 0;) push(outputs_[i]);
    while (!stack.empty()) {
      auto [t, done] = stack.back();
      stack.pop_back();
      int& st = state[t->op.get()];
      if (done) {
        auto info = std::make_unique<OpInfo>();
        info->op = t->op;
        info->compute = t->op.as<ComputeOpNode>();
        info->external = t->op.as<ExternOpNode>();
        if (!info->compute && !info->external)
          throw InternalError("operation of unknown kind " + t->op.get()->GetTypeKey());
        graph_.by_op[t->op.get()] = info.get();
        graph_.order.push_back(std::move(info));
        continue;
      }
      if (st != 0) continue;
      st = 1;
      stack.push_back({t, true});
      if (const auto* c = t->op.as<ComputeOpNode>()) {
        ForReads(c, [&](const tir::ProducerLoadNode* l) { push(Downcast<Tensor>(l->producer)); });
      } else if (const auto* e = t->op.as<ExternOpNode>()) {
        for (const Tensor& in : e->inputs) push(in);
      }
    }
  }

  void NoteOut(OpInfo* info, const Tensor& t) {
    for (const Tensor& o : info->outs) {
      if (o.same_as(t)) return;
    }
    info->outs.push_back(t);
  }

  /// What is computed where it is read.
  void Decide() {
    for (const Tensor& t : outputs_) {
      auto it = graph_.by_op.find(t->op.get());
      if (it == graph_.by_op.end()) continue;
      it->second->is_output = true;
      NoteOut(it->second, t);
    }
    for (auto& info : graph_.order) {
      if (info->compute) {
        for (const PrimExpr& b : info->compute->body) {
          const auto* r = b.as<tir::ReduceNode>();
          info->has_reduce |= r != nullptr;
          if (r) {
            for (const PrimExpr& s : r->source) info->own_cost += CostOf(s) + 1;
            break;
          }
          info->own_cost += CostOf(b);
        }
        ForReads(info->compute, [&](const tir::ProducerLoadNode* l) {
          Tensor t = Downcast<Tensor>(l->producer);
          if (auto it = graph_.by_op.find(t->op.get()); it != graph_.by_op.end()) NoteOut(it->second, t);
        });
      } else {
        for (const Tensor& t : info->external->inputs) {
          if (auto it = graph_.by_op.find(t->op.get()); it != graph_.by_op.end()) {
            NoteOut(it->second, t);
            ++it->second->read_by_extern;
          }
        }
      }
    }
    // Costs of elements as if everything cheap were inlined: producers first.
    for (auto& info : graph_.order) {
      info->cost = info->own_cost;
      if (!info->compute) continue;
      std::unordered_set<const Object*> seen;
      ForReads(info->compute, [&](const tir::ProducerLoadNode* l) {
        Tensor t = Downcast<Tensor>(l->producer);
        auto it = graph_.by_op.find(t->op.get());
        if (it == graph_.by_op.end() || it->second->has_reduce || it->second->external) return;
        if (seen.insert(t->op.get()).second) info->cost += it->second->cost;
      });
      if (info->cost > 1e6) info->cost = 1e6;
    }
    // Readers first: how often is each element asked for.
    for (size_t i = graph_.order.size(); i-- > 0;) {
      OpInfo* info = graph_.order[i].get();
      if (!info->compute) continue;
      double elements = static_cast<double>(NumElements(ShapeOf(info)));
      bool can = !info->has_reduce && !info->is_output && info->read_by_extern == 0 && info->outs.size() == 1;
      if (can) {
        double extra = (info->evals - elements) * info->cost;
        info->inlined = info->cost == 0 || extra <= 4 * elements;
      }
      double iterations = info->inlined ? info->evals : elements;
      for (const PrimExpr& b : info->compute->body) {
        if (const auto* r = b.as<tir::ReduceNode>()) {
          for (const IterVar& v : r->axis) iterations *= static_cast<double>(SizeOf(v->dom->extent));
          break;
        }
      }
      std::vector<PrimExpr> sites;
      ForReads(info->compute, [&](const tir::ProducerLoadNode* l) {
        Tensor t = Downcast<Tensor>(l->producer);
        auto it = graph_.by_op.find(t->op.get());
        if (it == graph_.by_op.end()) return;
        PrimExpr site = GetRef<PrimExpr>(l);
        for (const PrimExpr& s : sites) {
          if (tir::ExprDeepEqual(s, site)) return;
        }
        sites.push_back(site);
        it->second->evals += iterations;
      });
    }
  }

  void BuildStages() {
    for (auto& info : graph_.order) {
      if (info->inlined) continue;
      if (info->outs.empty()) continue;
      auto stage = std::make_unique<Stage>();
      stage->info = info.get();
      if (info->compute) {
        const ComputeOpNode* op = info->compute;
        tir::VarMap rename;
        for (const IterVar& v : op->axis) {
          Axis a{Var(v->var->name_hint), v->dom->extent, false};
          rename[v->var.get()] = a.var;
          stage->axes.push_back(a);
        }
        stage->reduce = op->body[0].as<tir::ReduceNode>();
        stage->span = op->body[0]->span;
        double cost = info->cost + 1;
        Array<PrimExpr> extents = ShapeOf(info.get());
        if (stage->reduce) {
          stage->combiner = stage->reduce->combiner;
          for (const IterVar& v : stage->reduce->axis) {
            Axis a{Var(v->var->name_hint), v->dom->extent, true};
            rename[v->var.get()] = tir::is_zero(v->dom->min) ? PrimExpr(a.var) : a.var + v->dom->min;
            stage->raxes.push_back(a);
            extents.push_back(a.extent);
          }
          for (const PrimExpr& s : stage->reduce->source)
            stage->values.push_back(Inliner(graph_).Scope(tir::Substitute(s, rename)));
          if (stage->reduce->condition.defined() && !tir::is_const_int(stage->reduce->condition, 1)) {
            stage->condition = Inliner(graph_).Scope(tir::Substitute(stage->reduce->condition, rename));
          }
        } else {
          for (const PrimExpr& b : op->body) stage->values.push_back(Inliner(graph_).Scope(tir::Substitute(b, rename)));
        }
        stage->work = Work::Of(cost, extents);
      } else {
        stage->work = kParallelWork;
      }
      graph_.stages.push_back(std::move(stage));
    }
  }

  const Array<Tensor>& outputs_;
  GroupBuffers* buffers_;
  StageGraph graph_;
};

}  // namespace

StageGraph BuildStages(const Array<Tensor>& outputs, GroupBuffers* buffers) {
  return StageBuilder(outputs, buffers).Run();
}

}  // namespace baton::te::lower

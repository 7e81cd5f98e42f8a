// SPDX-License-Identifier: Apache-2.0
// The general schedule. A group of tensors becomes stages (what is stored), injective producers go into their readers;
// stages that agree on their outer axes share those loops (a softmax is one loop over rows), and the innermost loop of
// each stage is a vector of 64 bytes, whatever the machine, so that results do not depend on it.
#include <baton/arith/analyzer.h>
#include <baton/te/lower.h>
#include <baton/tir/functor.h>
#include <baton/tir/lower.h>
#include <baton/tir/verify.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "te/lower/buffers.h"
#include "te/lower/nests.h"
#include "te/lower/stages.h"

namespace baton::te {
namespace lower {
namespace {

/// Bytes of a row's intermediate values that may lie on the stack of a task.
constexpr int64_t kStackBytes = 64 << 10;

/// What the stages of a group share: loops, and the homes of their results.
struct GroupContext {
  size_t prefix = 0;
  std::vector<Var> vars;                                       // of the shared loops
  std::unordered_map<const Object*, std::vector<Home>> homes;  // operation -> home of each output
};

/// Reads of tensors become loads from where the tensors lie.
class LoadReplacer : public tir::ExprMutator {
 public:
  LoadReplacer(GroupBuffers* buffers, const GroupContext* ctx, const tir::VarMap* vars)
      : buffers_(buffers), ctx_(ctx), vars_(vars) {}
  using tir::ExprMutator::VisitExpr_;
  PrimExpr VisitExpr_(const tir::VarNode* op) final {
    auto it = vars_->find(op);
    return it == vars_->end() ? GetRef<PrimExpr>(op) : it->second;
  }
  PrimExpr VisitExpr_(const tir::ProducerLoadNode* op) final {
    Tensor t = Downcast<Tensor>(op->producer);
    Array<PrimExpr> indices = VisitExprs(op->indices);
    auto it = ctx_->homes.find(t->op.get());
    if (it != ctx_->homes.end()) {
      const Home& h = it->second[t->value_index];
      Array<PrimExpr> rest(indices.begin() + h.drop, indices.end());
      return tir::BufferLoad(h.buffer, {FlatIndex(h.shape, rest)});
    }
    return tir::BufferLoad(buffers_->StoredBuffer(t), {FlatIndex(t.shape(), indices)});
  }

 private:
  GroupBuffers* buffers_;
  const GroupContext* ctx_;
  const tir::VarMap* vars_;
};

/// Marks the stores of a stage with its span; other statements have that of what they hold.
struct Marker : tir::StmtVisitor {
  const Span& span;
  explicit Marker(const Span& s) : span(s) {}
  using tir::StmtVisitor::VisitStmt_;
  void VisitStmt_(const tir::BufferStoreNode* op) final {
    if (!op->span.defined()) op->span = span;
  }
};

class Lowerer {
 public:
  Lowerer(const Array<Tensor>& inputs, const Array<Tensor>& outputs, const Target& target)
      : outputs_(outputs),
        buffers_(inputs, outputs),
        nests_(buffers_.names(), target.defined() && target->traits().work_items,
               target.defined() && target->traits().plain_loops),
        graph_(BuildStages(outputs, &buffers_)) {}

  tir::PrimFunc Run(const String& name) {
    std::vector<Stmt> nests = EmitGroups();
    Array<Stmt> seq(nests.begin(), nests.end());
    CopyOutputs(&seq);
    return buffers_.Function(name, tir::SeqStmt::Flatten(seq));
  }

 private:
  /// How many outer axes `s` can share with the group, at most `p`.
  size_t SharedPrefix(const std::vector<Stage*>& group, const Stage& s, size_t p) {
    if (!s.info->compute) return 0;
    p = std::min(p, s.axes.size());
    const Stage& first = *group[0];
    Analyzer an;
    for (size_t i = 0; i < p; ++i) {
      if (!an.CanProveEqual(first.axes[i].extent, s.axes[i].extent)) p = i;
    }
    std::unordered_set<const Object*> ops;
    for (Stage* g : group) ops.insert(g->info->op.get());
    for (const Axis& a : s.axes) an.Bind(a.var, 0, a.extent);
    graph_.ForStoredReads(s, [&](const Tensor& t, const Array<PrimExpr>& indices) {
      if (!ops.count(t->op.get())) return;
      for (size_t i = 0; i < p; ++i) {
        if (i >= indices.size() || !an.CanProveEqual(indices[i], s.axes[i].var)) p = i;
      }
    });
    return p;
  }

  static double PrefixSize(const Stage& s, size_t p) {
    double n = 1;
    for (size_t i = 0; i < p; ++i) n *= static_cast<double>(SizeOf(s.axes[i].extent));
    return n;
  }

  std::vector<Stmt> EmitGroups() {
    std::vector<Stmt> nests;
    size_t at = 0;
    while (at < graph_.stages.size()) {
      Stage* first = graph_.stages[at].get();
      if (first->info->external) {
        nests.push_back(EmitExtern(first));
        ++at;
        continue;
      }
      std::vector<Stage*> group = {first};
      size_t prefix = first->axes.size();
      size_t next = at + 1;
      double work = first->work.guess;
      for (; next < graph_.stages.size() && !nests_.work_items(); ++next) {
        Stage* s = graph_.stages[next].get();
        if (s->info->external) break;
        size_t p = SharedPrefix(group, *s, prefix);
        if (p == 0) break;
        // Sharing few iterations would leave the rest to one core and put whole tensors into a row's buffer.
        double n = PrefixSize(*s, p);
        if (n < 8 && work + s->work.guess > kParallelWork) break;
        double row = 0;
        for (Stage* g : group)
          row +=
              static_cast<double>(NumElements(ShapeOf(g->info))) / PrefixSize(*g, p) * g->info->outs[0].dtype().bytes();
        if (row > 256 << 10) break;
        // A stage that reads nothing of the group and shares fewer axes than the group has would only hurt it.
        bool related = false;
        graph_.ForStoredReads(*s, [&](const Tensor& t, const Array<PrimExpr>&) {
          for (Stage* g : group) related |= g->info->op.same_as(t->op);
        });
        if (!related && p < prefix) break;
        prefix = p;
        group.push_back(s);
        work += s->work.guess;
      }
      nests.push_back(EmitGroup(group, prefix, at, next));
      at = next;
    }
    return nests;
  }

  Stmt EmitExtern(Stage* s) {
    const ExternOpNode* op = s->info->external;
    tir::BufferMap map;
    tir::VarMap vars;
    auto bind = [&](const Buffer& formal, const Buffer& actual) {
      tir::BufferNode n = *formal.get();
      n.data = actual->data, n.name = actual->name;
      map[formal.get()] = Buffer(std::move(n));
      vars[formal->data.get()] = actual->data;
    };
    for (size_t i = 0; i < op->inputs.size(); ++i) bind(op->input_buffers[i], buffers_.StoredBuffer(op->inputs[i]));
    for (size_t i = 0; i < op->output_buffers.size(); ++i) {
      Buffer actual;
      for (const Tensor& t : s->info->outs) {
        if (t->value_index == static_cast<int64_t>(i)) actual = buffers_.StoredBuffer(t);
      }
      if (!actual.defined())
        actual = buffers_.Workspace(op->output_buffers[i]->shape, op->output_buffers[i]->dtype, op->name.str());
      bind(op->output_buffers[i], actual);
    }
    Stmt body = tir::SubstituteBuffers(tir::RenewBindings(Downcast<Stmt>(op->body)), map, vars);  // with its span
    body = tir::CanonicalForm(body);
    if (nests_.work_items()) return body;
    Array<Stmt> parts = body.as<tir::SeqStmtNode>() ? body.as<tir::SeqStmtNode>()->seq : Array<Stmt>{body};
    bool changed = false;
    for (int64_t i = 0; i < static_cast<int64_t>(parts.size()); ++i) {
      std::vector<Axis> axes;
      Store store;
      if (!AsStore(parts[i], &axes, &store)) continue;
      Array<PrimExpr> extents;
      for (const Axis& a : axes) extents.push_back(a.extent);
      const Stmt nest = nests_.EmitStores(axes, {store}, Work::Of(1, extents), true);
      if (body->span.defined()) Marker(body->span)(nest);
      parts.Set(i, nest);
      changed = true;
    }
    if (!changed) return body;
    const Span span = body->span;
    body = tir::SeqStmt::Flatten(parts);
    if (!body->span.defined()) body->span = span;
    return body;
  }

  bool ReadLater(const Stage* s, size_t end) {
    for (size_t i = end; i < graph_.stages.size(); ++i) {
      bool found = false;
      if (graph_.stages[i]->info->external) {
        for (const Tensor& t : graph_.stages[i]->info->external->inputs) found |= t->op.same_as(s->info->op);
      } else {
        graph_.ForStoredReads(*graph_.stages[i],
                              [&](const Tensor& t, const Array<PrimExpr>&) { found |= t->op.same_as(s->info->op); });
      }
      if (found) return true;
    }
    return false;
  }

  /// An output whose elements are the last to read those of `s` at their own places, of rows whose length is not known:
  /// the values of `s` may lie there until they are overwritten, without memory of their own. Null if there is none.
  Tensor OverwrittenBy(const std::vector<Stage*>& group, const Stage* s, size_t prefix) {
    if (nests_.work_items() || s->info->compute->body.size() != 1) return Tensor();
    bool literal = true;
    for (size_t i = prefix; i < s->axes.size(); ++i) literal = literal && tir::as_const_int(s->axes[i].extent);
    Stage* reader = nullptr;
    for (Stage* g : group) {
      graph_.ForStoredReads(*g, [&](const Tensor& t, const Array<PrimExpr>&) {
        if (t->op.same_as(s->info->op)) reader = g;
      });
    }
    if (literal || !reader || reader->reduce || !reader->info->is_output || reader->info->outs.size() != 1 ||
        reader->info->compute->body.size() != 1 || reader->axes.size() != s->axes.size() ||
        reader->values[0].dtype() != s->info->compute->body[0].dtype())
      return Tensor();
    Analyzer an;
    bool same = true;
    for (size_t i = 0; i < s->axes.size(); ++i) {
      same = same && an.CanProveEqual(s->axes[i].extent, reader->axes[i].extent);
    }
    graph_.ForStoredReads(*reader, [&](const Tensor& t, const Array<PrimExpr>& indices) {
      if (!t->op.same_as(s->info->op)) return;
      for (size_t i = 0; i < reader->axes.size(); ++i) {
        same = same && indices[static_cast<int64_t>(i)].same_as(reader->axes[i].var);
      }
    });
    // Nor may another stage have taken the place, or read the output before it is there.
    for (const Stage* g : group) same = same && (g == s || g == reader || !shares_.count(g->info->op.get()));
    if (!same) return Tensor();
    shares_.insert(s->info->op.get());
    return reader->info->outs[0];
  }

  Stmt EmitGroup(const std::vector<Stage*>& group, size_t prefix, size_t, size_t end) {
    GroupContext ctx;
    bool single = group.size() == 1;
    // All axes shared by all: one nest whose innermost loop is a vector over all stages.
    bool full = true;
    for (Stage* s : group) full &= s->axes.size() == prefix;
    ctx.prefix = single ? 0 : prefix;
    std::vector<Axis> shared;
    if (!single) {
      for (size_t i = 0; i < prefix; ++i)
        shared.push_back({Var(group[0]->axes[i].var->name_hint), group[0]->axes[i].extent, false});
      for (const Axis& a : shared) ctx.vars.push_back(a.var);
    }
    // Homes of the results.
    std::vector<Buffer> locals;
    int64_t local_bytes = 0;
    for (Stage* s : group) {
      const ComputeOpNode* op = s->info->compute;
      std::vector<Home> homes;
      for (size_t i = 0; i < op->body.size(); ++i) {
        Home h;
        Tensor tensor;
        for (const Tensor& t : s->info->outs) {
          if (t->value_index == static_cast<int64_t>(i)) tensor = t;
        }
        bool whole = s->info->is_output || single || ReadLater(s, end);
        Array<PrimExpr> shape;
        for (const Axis& a : s->axes) shape.push_back(a.extent);
        DataType dtype = op->body[i].dtype();
        const Tensor later = whole ? Tensor() : OverwrittenBy(group, s, prefix);
        if (later.defined()) {
          h.buffer = buffers_.StoredBuffer(later);
          h.shape = later.shape();
        } else if (tensor.defined() && whole) {
          h.buffer = buffers_.StoredBuffer(tensor);
          h.shape = tensor.shape();
        } else {
          h.drop = ctx.prefix;
          h.shape = Array<PrimExpr>(shape.begin() + ctx.prefix, shape.end());
          PrimExpr size = Product(h.shape);
          const int64_t* n = tir::as_const_int(size);
          bool stack = n && local_bytes + *n * dtype.bytes() <= kStackBytes;
          if (stack) local_bytes += *n * dtype.bytes();
          h.buffer = Buffer::Make({size}, dtype, buffers_.names()->Unique(op->name.str()), stack ? "local" : "");
          locals.push_back(h.buffer);
        }
        homes.push_back(h);
      }
      ctx.homes[s->info->op.get()] = homes;
    }

    Work work;
    for (Stage* s : group) work = work + s->work;
    Array<Stmt> seq;
    Stmt body;
    if (single) {
      body = EmitStage(*group[0], ctx, {}, group[0]->axes, work, true);
    } else if (full) {
      return EmitFull(group, ctx, shared, work);  // the locals lie inside the loops
    } else {
      for (Stage* s : group) {
        std::vector<Axis> inner(s->axes.begin() + static_cast<std::ptrdiff_t>(prefix), s->axes.end());
        seq.push_back(EmitStage(*s, ctx, shared, inner, Work(), false));
      }
      body = tir::SeqStmt::Flatten(seq);
    }
    std::vector<Buffer> scratch;  // rows whose length is not known are allocated once a task
    for (size_t i = locals.size(); i-- > 0;) {
      if (tir::as_const_int(locals[i]->shape[0]) || nests_.work_items()) {
        body = AllocateStmt(locals[i], body);
      } else {
        scratch.push_back(locals[i]);
      }
    }
    return single ? body : nests_.OuterLoops(shared, body, work, scratch);
  }

  /// One stage: `inner` are its loops here, the axes before them are the shared loops.
  Stmt EmitStage(const Stage& s, const GroupContext& ctx, const std::vector<Axis>& shared,
                 const std::vector<Axis>& inner, const Work& work, bool outermost) {
    Stmt out = EmitStageImpl(s, ctx, shared, inner, work, outermost);
    if (s.span.defined()) Marker(s.span)(out);
    return out;
  }

  Stmt EmitStageImpl(const Stage& s, const GroupContext& ctx, const std::vector<Axis>& shared,
                     const std::vector<Axis>& inner, const Work& work, bool outermost) {
    tir::VarMap rename;
    std::vector<PrimExpr> index;
    for (size_t i = 0; i < shared.size(); ++i) {
      rename[s.axes[i].var.get()] = shared[i].var;
      index.push_back(shared[i].var);
    }
    for (const Axis& a : inner) index.push_back(a.var);
    const std::vector<Home>& homes = ctx.homes.at(s.info->op.get());
    LoadReplacer loads(&buffers_, &ctx, &rename);
    std::vector<PrimExpr> values;
    for (const PrimExpr& v : s.values) values.push_back(loads(v));
    if (!s.reduce) {
      std::vector<Store> stores;
      for (size_t i = 0; i < values.size(); ++i)
        stores.push_back({homes[i].buffer, HomeIndex(homes[i], index), values[i]});
      return nests_.EmitStores(inner, stores, work, outermost);
    }
    PrimExpr condition = s.condition.defined() ? loads(s.condition) : PrimExpr();
    return nests_.EmitReduce(s, homes, index, inner, values, condition, work, outermost);
  }

  /// All stages share all axes: values go from stage to stage through one-element buffers, that is, registers.
  Stmt EmitFull(const std::vector<Stage*>& group, const GroupContext& ctx, const std::vector<Axis>& shared,
                const Work& work) {
    bool reduces = false;
    for (Stage* s : group) reduces |= s->reduce != nullptr;
    std::vector<Buffer> locals;
    for (Stage* s : group) {
      for (const Home& h : ctx.homes.at(s->info->op.get())) {
        if (h.drop == ctx.prefix && h.shape.empty()) locals.push_back(h.buffer);
      }
    }
    // The body for one point of the shared loops, the last index given.
    auto point = [&](const PrimExpr& last) {
      Array<Stmt> seq;
      for (Stage* s : group) {
        Stmt st = EmitStage(*s, ctx, shared, {}, 0, false);
        seq.push_back(st);
      }
      Stmt body = tir::SeqStmt::Flatten(seq);
      for (size_t i = locals.size(); i-- > 0;) body = AllocateStmt(locals[i], body);
      return tir::RenewBindings(tir::Substitute(body, tir::VarMap{{shared.back().var.get(), last}}));
    };
    if (shared.empty()) return point(PrimExpr());
    // A vector over the last shared axis, unless the reductions inside are better vectors themselves.
    Analyzer an;
    for (const Axis& a : shared) an.Bind(a.var, 0, a.extent);
    bool vector = !nests_.plain();
    int64_t widest = 1;
    for (Stage* s : group) {
      tir::VarMap rename;
      for (size_t i = 0; i < shared.size(); ++i) rename[s->axes[i].var.get()] = shared[i].var;
      LoadReplacer loads(&buffers_, &ctx, &rename);
      std::vector<PrimExpr> values;
      for (const PrimExpr& v : s->values) values.push_back(loads(v));
      for (const Axis& a : s->raxes) an.Bind(a.var, 0, a.extent);
      widest = std::max(widest, WidestBytes(values));
      Strides st = StridesOf(values, shared.back().var, &an);
      if (s->reduce &&
          (st.bad > 0 || (s->condition.defined() && tir::UsesVar(loads(s->condition), shared.back().var.get()))))
        vector = false;
      const int64_t* n = tir::as_const_int(shared.back().extent);
      if (n && *n < 4) vector = false;
    }
    // Reductions inside a vector must not be vectors of their own: their body is scalar per lane.
    std::vector<Axis> outer(shared.begin(), shared.end() - 1);
    if (!vector) {
      Stmt body = point(shared.back().var);
      std::vector<Axis> all = shared;
      Var fresh(shared.back().var->name_hint);
      body = tir::Substitute(body, tir::VarMap{{shared.back().var.get(), fresh}});
      all.back().var = fresh;
      return nests_.OuterLoops(all, body, work);
    }
    nests_.set_scalar_reduce(reduces);
    Stmt body = VectorLoop(
        shared.back(), std::max<int64_t>(1, kVectorBytes / widest), [&](const PrimExpr& i) { return point(i); },
        outer.empty() ? work : Work());
    nests_.set_scalar_reduce(false);
    return nests_.OuterLoops(outer, body, work);
  }

  /// Outputs that are inputs, or that stand twice in the list.
  void CopyOutputs(Array<Stmt>* seq) {
    for (size_t i = 0; i < outputs_.size(); ++i) {
      Buffer to = buffers_.output(i), from = buffers_.StoredBuffer(outputs_[i]);
      if (to.same_as(from)) continue;
      if (from->data.same_as(to->data)) continue;
      Axis a{Var("i"), to->shape[0], false};
      seq->push_back(nests_.EmitStores({a}, {{to, a.var, tir::BufferLoad(from, {a.var})}},
                                       Work::Of(1, outputs_[i].shape()), true));
    }
  }

  const Array<Tensor>& outputs_;
  GroupBuffers buffers_;
  NestEmitter nests_;
  StageGraph graph_;
  std::unordered_set<const Object*> shares_;  // operations whose values lie in an output for a time
};

}  // namespace
}  // namespace lower

tir::PrimFunc LowerToPrimFunc(const Array<Tensor>& inputs, const Array<Tensor>& outputs, const String& name,
                              const Target& target) {
  tir::PrimFunc f = lower::Lowerer(inputs, outputs, target).Run(name);
  f.CopyOnWrite()->body = arith::SimplifyStmt(f->body);
  tir::VerifyWellFormed(f);
  return f;
}

}  // namespace baton::te

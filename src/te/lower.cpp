// SPDX-License-Identifier: Apache-2.0
// The general schedule. A group of tensors becomes stages (what is stored), injective producers go into their readers;
// stages that agree on their outer axes share those loops (a softmax is one loop over rows), and the innermost loop of
// each stage is a vector of 64 bytes, whatever the machine, so that results do not depend on it.
#include <baton/arith/analyzer.h>
#include <baton/te/lower.h>
#include <baton/tir/functor.h>
#include <baton/tir/op.h>
#include <baton/tir/verify.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <unordered_set>

namespace baton::te {
namespace {

using arith::Analyzer;
using arith::LinearForm;
using tir::Buffer;
using tir::ForKind;
using tir::Stmt;

constexpr int64_t kVectorBytes = 64;
/// Size that stands for a dimension which is not known.
constexpr int64_t kGuess = 64;
/// Work below which a parallel launch does not pay: about six microseconds of one core, in additions of one element.
constexpr double kParallelWork = 400000;
/// Bytes of a row's intermediate values that may lie on the stack of a task.
constexpr int64_t kStackBytes = 64 << 10;

int64_t SizeOf(const PrimExpr& e) {
  const int64_t* v = tir::as_const_int(e);
  return v ? *v : kGuess;
}
int64_t NumElements(const Array<PrimExpr>& shape) {
  double n = 1;
  for (const PrimExpr& d : shape) n *= static_cast<double>(SizeOf(d));
  return n > 1e15 ? static_cast<int64_t>(1e15) : static_cast<int64_t>(n);
}
PrimExpr Product(const Array<PrimExpr>& shape, size_t begin = 0) {
  PrimExpr n = 1;
  for (size_t i = begin; i < shape.size(); ++i) n = n * shape[i];
  return n;
}
/// Index into the flat buffer.
PrimExpr FlatIndex(const Array<PrimExpr>& shape, const Array<PrimExpr>& indices) {
  PrimExpr flat = 0;
  for (size_t i = 0; i < indices.size(); ++i) flat = flat * shape[i] + indices[i];
  return flat;
}

/// Rough cost of evaluating an expression once: 1 is an addition of a vector.
double CostOf(const PrimExpr& e) {
  double cost = 0;
  tir::PostOrderVisitExpr(e, [&](const PrimExpr& x) {
    if (x.dtype() == DataType::Int(64)) return;  // index arithmetic
    if (const auto* c = x.as<tir::CallNode>()) {
      std::string_view n = tir::IntrinName(c);
      if (n == "tir.if_then_else" || n == "tir.fma" || n == "tir.reinterpret")
        cost += n == "tir.fma" ? 1 : 0;
      else if (n == "tir.pow" || n == "tir.fmod" || n == "tir.atan2")
        cost += 40;
      else if (n == "tir.sqrt" || n == "tir.rsqrt" || n == "tir.floor" || n == "tir.ceil" || n == "tir.fabs")
        cost += 4;
      else
        cost += 16;
    } else if (x.as<tir::DivNode>() || x.as<tir::ModNode>() || x.as<tir::FloorDivNode>() || x.as<tir::FloorModNode>()) {
      cost += x.dtype().is_floating() ? 4 : 16;
    } else if (!(x.as<tir::ProducerLoadNode>() || x.as<tir::VarNode>() || x.as<IntImmNode>() || x.as<FloatImmNode>() ||
                 x.as<tir::LetNode>() || x.as<tir::BufferLoadNode>())) {
      cost += 1;
    }
  });
  return cost;
}

struct OpInfo {
  Operation op;
  const ComputeOpNode* compute = nullptr;
  const ExternOpNode* external = nullptr;
  std::vector<Tensor> outs;  // tensors of it that somebody reads or that are outputs
  bool is_output = false;
  bool has_reduce = false;
  bool inlined = false;
  double own_cost = 0;  // of one element, without inlined producers
  double cost = 0;      // with them
  double evals = 0;     // elements that its readers ask for
  int read_by_extern = 0;
};

/// A loop variable of a stage.
struct Axis {
  Var var;
  PrimExpr extent;
  bool reduce = false;
};

struct Stage {
  OpInfo* info = nullptr;
  std::vector<Buffer> buffers;  // one for each output of the operation, flat
  std::vector<Array<PrimExpr>> shapes;
  std::vector<Axis> axes;   // data axes
  std::vector<Axis> raxes;  // reduction axes, min 0
  Array<PrimExpr> values;   // injective: the values; reduction: the sources
  const tir::ReduceNode* reduce = nullptr;
  tir::CommReducer combiner;
  PrimExpr condition;
  Span span;  // of the Relay expression it belongs to
  double work = 0;
};

class Lowerer {
 public:
  Lowerer(const Array<Tensor>& inputs, const Array<Tensor>& outputs, const Target& target)
      : inputs_(inputs), outputs_(outputs), target_(target), work_items_(target.defined() && target->kind == "opencl") {
    scalar_reduce_ = work_items_;
  }

  tir::PrimFunc Run(const String& name) {
    Parameters();
    Collect();
    Decide();
    BuildStages();
    std::vector<Stmt> nests = EmitGroups();
    Array<Stmt> seq(nests.begin(), nests.end());
    CopyOutputs(&seq);
    Stmt body = tir::SeqStmt::Flatten(seq);
    for (size_t i = workspace_.size(); i-- > 0;) body = AllocateStmt(workspace_[i], body);
    tir::PrimFunc f(params_, body, buffer_map_);
    f = WithAttr(f, attr::kGlobalSymbol, name);
    f = WithAttr(f, attr::kNoAlias, true);
    return f;
  }

 private:
  // ---------------------------------------------------------------- the group
  static Stmt AllocateStmt(const Buffer& b, Stmt body) {
    tir::AllocateNode n;
    n.buffer = b, n.body = std::move(body);
    return tir::Allocate(std::move(n));
  }
  static Buffer FlatView(const Buffer& b, const Array<PrimExpr>& shape) {
    tir::BufferNode n = *b.get();
    n.shape = {Product(shape)};
    return Buffer(std::move(n));
  }
  static std::string Unique(std::unordered_map<std::string, int>* seen, std::string base) {
    int n = (*seen)[base]++;
    return n ? base + "_" + std::to_string(n) : base;
  }

  void Parameters() {
    std::unordered_set<const Object*> bound;
    Array<Var> sizes;
    auto add = [&](const Tensor& t, std::string base, bool input) {
      Buffer b = Buffer::Make(t.shape(), t.dtype(), Unique(&names_, base));
      Var p(b->name, DataType::Handle());
      params_.push_back(p);
      buffer_map_.Set(p, b);
      if (input) {
        flat_[t.get()] = FlatView(b, t.shape());
      } else {
        out_buffers_.push_back(FlatView(b, t.shape()));
      }
      for (const PrimExpr& d : t.shape()) {
        tir::PostOrderVisitExpr(d, [&](const PrimExpr& x) {
          if (x.as<tir::AnyNode>())
            throw CompileError(
                fmt::format("tensor `{}` has an unknown dimension; give it a variable", t->op->name.str()));
          if (const auto* v = x.as<tir::VarNode>(); v && bound.insert(v).second) sizes.push_back(GetRef<Var>(v));
        });
      }
    };
    for (const Tensor& t : inputs_) {
      if (!t->op.as<PlaceholderOpNode>())
        throw InternalError("an input of LowerToPrimFunc is no placeholder: " + t->op->name.str());
      add(t, t->op->name.str(), true);
    }
    for (const Tensor& t : outputs_) add(t, "T_" + t->op->name.str(), false);
    for (const Var& v : sizes) params_.push_back(v);
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (!flat_.count(outputs_[i].get())) flat_[outputs_[i].get()] = out_buffers_[i];
    }
  }

  template <class F>
  static void ForReads(const ComputeOpNode* op, F f) {
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

  /// Operations in topological order, producers first.
  void Collect() {
    std::unordered_set<const Object*> input_set;
    for (const Tensor& t : inputs_) input_set.insert(t.get());
    std::vector<std::pair<Tensor, bool>> stack;
    std::unordered_map<const Object*, int> state;
    auto push = [&](const Tensor& t) {
      if (t->op.as<PlaceholderOpNode>()) {
        if (!input_set.count(t.get()) && !ByPlaceholder(t)) {
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
        by_op_[t->op.get()] = info.get();
        order_.push_back(std::move(info));
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
  /// A placeholder may be met through another Tensor object of the same operation.
  bool ByPlaceholder(const Tensor& t) {
    for (const Tensor& in : inputs_) {
      if (in->op.same_as(t->op) && in->value_index == t->value_index) {
        flat_[t.get()] = flat_[in.get()];
        return true;
      }
    }
    return false;
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
      auto it = by_op_.find(t->op.get());
      if (it == by_op_.end()) continue;
      it->second->is_output = true;
      NoteOut(it->second, t);
    }
    for (auto& info : order_) {
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
          if (auto it = by_op_.find(t->op.get()); it != by_op_.end()) NoteOut(it->second, t);
        });
      } else {
        for (const Tensor& t : info->external->inputs) {
          if (auto it = by_op_.find(t->op.get()); it != by_op_.end()) {
            NoteOut(it->second, t);
            ++it->second->read_by_extern;
          }
        }
      }
    }
    // Costs of elements as if everything cheap were inlined: producers first.
    for (auto& info : order_) {
      info->cost = info->own_cost;
      if (!info->compute) continue;
      std::unordered_set<const Object*> seen;
      ForReads(info->compute, [&](const tir::ProducerLoadNode* l) {
        Tensor t = Downcast<Tensor>(l->producer);
        auto it = by_op_.find(t->op.get());
        if (it == by_op_.end() || it->second->has_reduce || it->second->external) return;
        if (seen.insert(t->op.get()).second) info->cost += it->second->cost;
      });
      if (info->cost > 1e6) info->cost = 1e6;
    }
    // Readers first: how often is each element asked for.
    for (size_t i = order_.size(); i-- > 0;) {
      OpInfo* info = order_[i].get();
      if (!info->compute) continue;
      double elements = static_cast<double>(NumElements(Shape(info)));
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
        auto it = by_op_.find(t->op.get());
        if (it == by_op_.end()) return;
        PrimExpr site = GetRef<PrimExpr>(l);
        for (const PrimExpr& s : sites) {
          if (tir::ExprDeepEqual(s, site)) return;
        }
        sites.push_back(site);
        it->second->evals += iterations;
      });
    }
  }
  static const Array<PrimExpr>& Shape(const OpInfo* info) { return info->outs.at(0).shape(); }

  // ---------------------------------------------------------------- stages
  /// Rewrites reads: inlined producers become their bodies, each used value once by a Let; the rest becomes loads.
  class Inliner : public tir::ExprMutator {
   public:
    explicit Inliner(Lowerer* l) : l_(l) {}
    using tir::ExprMutator::VisitExpr_;

    PrimExpr Scope(const PrimExpr& e) {
      scopes_.emplace_back();
      PrimExpr r = VisitExpr(e);
      return Close(r);
    }
    PrimExpr VisitExpr_(const tir::ProducerLoadNode* op) final {
      Tensor t = Downcast<Tensor>(op->producer);
      Array<PrimExpr> indices = VisitExprs(op->indices);
      auto it = l_->by_op_.find(t->op.get());
      if (it == l_->by_op_.end() || !it->second->inlined) return l_->Load(t, indices);
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
      if (op->args.size() == 3 && tir::IntrinName(op) == "tir.if_then_else") {
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
    Lowerer* l_;
    std::vector<ScopeData> scopes_;
  };

  /// Reads of stored tensors stay symbolic (ProducerLoad) until it is known where they are stored.
  PrimExpr Load(const Tensor& t, const Array<PrimExpr>& indices) { return t(indices); }

  void BuildStages() {
    for (auto& info : order_) {
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
        if (stage->reduce) {
          stage->combiner = stage->reduce->combiner;
          for (const IterVar& v : stage->reduce->axis) {
            Axis a{Var(v->var->name_hint), v->dom->extent, true};
            rename[v->var.get()] = tir::is_zero(v->dom->min) ? PrimExpr(a.var) : a.var + v->dom->min;
            stage->raxes.push_back(a);
            cost *= static_cast<double>(SizeOf(a.extent));
          }
          for (const PrimExpr& s : stage->reduce->source)
            stage->values.push_back(Inliner(this).Scope(tir::Substitute(s, rename)));
          if (stage->reduce->condition.defined() && !tir::is_const_int(stage->reduce->condition, 1)) {
            stage->condition = Inliner(this).Scope(tir::Substitute(stage->reduce->condition, rename));
          }
        } else {
          for (const PrimExpr& b : op->body) stage->values.push_back(Inliner(this).Scope(tir::Substitute(b, rename)));
        }
        stage->work = cost * static_cast<double>(NumElements(Shape(info.get())));
      } else {
        stage->work = kParallelWork;
      }
      stages_.push_back(std::move(stage));
    }
  }

  // ---------------------------------------------------------------- groups of stages
  /// Calls f for each read of a stored tensor of this function (not of an input).
  template <class F>
  void ForStoredReads(const Stage& s, F f) {
    auto visit = [&](const PrimExpr& e) {
      if (!e.defined()) return;
      tir::PostOrderVisitExpr(e, [&](const PrimExpr& x) {
        if (const auto* l = x.as<tir::ProducerLoadNode>()) {
          Tensor t = Downcast<Tensor>(l->producer);
          if (by_op_.count(t->op.get())) f(t, l->indices);
        }
      });
    };
    for (const PrimExpr& v : s.values) visit(v);
    visit(s.condition);
  }

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
    ForStoredReads(s, [&](const Tensor& t, const Array<PrimExpr>& indices) {
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
    while (at < stages_.size()) {
      Stage* first = stages_[at].get();
      if (first->info->external) {
        nests.push_back(EmitExtern(first));
        ++at;
        continue;
      }
      std::vector<Stage*> group = {first};
      size_t prefix = first->axes.size();
      size_t next = at + 1;
      double work = first->work;
      for (; next < stages_.size() && !work_items_; ++next) {
        Stage* s = stages_[next].get();
        if (s->info->external) break;
        size_t p = SharedPrefix(group, *s, prefix);
        if (p == 0) break;
        // Sharing few iterations would leave the rest to one core and put whole tensors into a row's buffer.
        double n = PrefixSize(*s, p);
        if (n < 8 && work + s->work > kParallelWork) break;
        double row = 0;
        for (Stage* g : group)
          row +=
              static_cast<double>(NumElements(Shape(g->info))) / PrefixSize(*g, p) * g->info->outs[0].dtype().bytes();
        if (row > 256 << 10) break;
        // A stage that reads nothing of the group and shares fewer axes than the group has would only hurt it.
        bool related = false;
        ForStoredReads(*s, [&](const Tensor& t, const Array<PrimExpr>&) {
          for (Stage* g : group) related |= g->info->op.same_as(t->op);
        });
        if (!related && p < prefix) break;
        prefix = p;
        group.push_back(s);
        work += s->work;
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
    for (size_t i = 0; i < op->inputs.size(); ++i) bind(op->input_buffers[i], StoredBuffer(op->inputs[i]));
    for (size_t i = 0; i < op->output_buffers.size(); ++i) {
      Buffer actual;
      for (const Tensor& t : s->info->outs) {
        if (t->value_index == static_cast<int64_t>(i)) actual = StoredBuffer(t);
      }
      if (!actual.defined())
        actual = Workspace(op->output_buffers[i]->shape, op->output_buffers[i]->dtype, op->name.str());
      bind(op->output_buffers[i], actual);
    }
    return tir::SubstituteBuffers(tir::RenewBindings(Downcast<Stmt>(op->body)), map, vars);  // keeps the body's span
  }
  Buffer Workspace(const Array<PrimExpr>& shape, DataType dtype, const std::string& name) {
    Buffer b = Buffer::Make({Product(shape)}, dtype, Unique(&names_, name));
    workspace_.push_back(b);
    return b;
  }
  /// The flat buffer that holds the whole tensor, made when there is none.
  Buffer StoredBuffer(const Tensor& t) {
    auto it = flat_.find(t.get());
    if (it != flat_.end()) return it->second;
    // Outputs that were met through another Tensor object.
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (outputs_[i]->op.same_as(t->op) && outputs_[i]->value_index == t->value_index)
        return flat_[t.get()] = flat_[outputs_[i].get()];
    }
    for (const auto& [key, b] : stored_) {
      if (key.first == t->op.get() && key.second == t->value_index) return flat_[t.get()] = b;
    }
    Buffer b = Workspace(t.shape(), t.dtype(), t->op->name.str());
    stored_.push_back({{t->op.get(), t->value_index}, b});
    return flat_[t.get()] = b;
  }

  /// Where a tensor lies, seen from inside a group's shared loops.
  struct Home {
    Buffer buffer;
    size_t drop = 0;  // leading indices that the buffer does not have
    Array<PrimExpr> shape;
  };
  struct GroupContext {
    size_t prefix = 0;
    std::vector<Var> vars;                                       // of the shared loops
    std::unordered_map<const Object*, std::vector<Home>> homes;  // operation -> home of each output
  };

  class LoadReplacer : public tir::ExprMutator {
   public:
    LoadReplacer(Lowerer* l, const GroupContext* ctx, const tir::VarMap* vars) : l_(l), ctx_(ctx), vars_(vars) {}
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
      return tir::BufferLoad(l_->StoredBuffer(t), {FlatIndex(t.shape(), indices)});
    }

   private:
    Lowerer* l_;
    const GroupContext* ctx_;
    const tir::VarMap* vars_;
  };

  bool ReadLater(const Stage* s, size_t end) {
    for (size_t i = end; i < stages_.size(); ++i) {
      bool found = false;
      if (stages_[i]->info->external) {
        for (const Tensor& t : stages_[i]->info->external->inputs) found |= t->op.same_as(s->info->op);
      } else {
        ForStoredReads(*stages_[i],
                       [&](const Tensor& t, const Array<PrimExpr>&) { found |= t->op.same_as(s->info->op); });
      }
      if (found) return true;
    }
    return false;
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
        if (tensor.defined() && whole) {
          h.buffer = StoredBuffer(tensor);
          h.shape = tensor.shape();
        } else {
          h.drop = ctx.prefix;
          h.shape = Array<PrimExpr>(shape.begin() + ctx.prefix, shape.end());
          PrimExpr size = Product(h.shape);
          const int64_t* n = tir::as_const_int(size);
          bool stack = n && local_bytes + *n * dtype.bytes() <= kStackBytes;
          if (stack) local_bytes += *n * dtype.bytes();
          h.buffer = Buffer::Make({size}, dtype, Unique(&names_, op->name.str()), stack ? "local" : "");
          locals.push_back(h.buffer);
        }
        homes.push_back(h);
      }
      ctx.homes[s->info->op.get()] = homes;
    }

    double work = 0;
    for (Stage* s : group) work += s->work;
    Array<Stmt> seq;
    Stmt body;
    if (single) {
      body = EmitStage(*group[0], ctx, {}, group[0]->axes, work, true);
    } else if (full) {
      return EmitFull(group, ctx, shared, work);  // the locals lie inside the loops
    } else {
      for (Stage* s : group) {
        std::vector<Axis> inner(s->axes.begin() + static_cast<std::ptrdiff_t>(prefix), s->axes.end());
        seq.push_back(EmitStage(*s, ctx, shared, inner, s->work / PrefixSize(*s, prefix), false));
      }
      body = tir::SeqStmt::Flatten(seq);
    }
    for (size_t i = locals.size(); i-- > 0;) body = AllocateStmt(locals[i], body);
    return single ? body : OuterLoops(shared, body, work);
  }
  // ---------------------------------------------------------------- loops
  static Stmt MakeFor(const Var& v, const PrimExpr& extent, ForKind kind, Stmt body) {
    tir::ForNode n;
    n.loop_var = v, n.min = PrimExpr(0), n.extent = extent, n.kind = kind, n.body = std::move(body);
    return tir::For(std::move(n));
  }
  /// Loops over the axes around `body`; the outermost are joined and parallel if the work is worth it.
  Stmt OuterLoops(const std::vector<Axis>& axes, Stmt body, double work) {
    bool parallel = work >= kParallelWork && !work_items_;
    double n = 1;
    size_t fuse = work_items_ ? axes.size() : 0;
    if (parallel) {
      while (fuse < axes.size() && n < 16) n *= static_cast<double>(SizeOf(axes[fuse++].extent));
      if (n < 2) fuse = 0;
    }
    for (size_t i = axes.size(); i-- > fuse;) {
      if (!tir::is_const_int(axes[i].extent, 1)) {
        body = MakeFor(axes[i].var, axes[i].extent, ForKind::kSerial, body);
      } else {
        body = tir::Substitute(body, tir::VarMap{{axes[i].var.get(), PrimExpr(0)}});
      }
    }
    if (fuse == 0) return body;
    // Axes of one round need no variable.
    std::vector<Axis> outer;
    for (size_t i = 0; i < fuse; ++i) {
      if (tir::is_const_int(axes[i].extent, 1)) {
        body = tir::Substitute(body, tir::VarMap{{axes[i].var.get(), PrimExpr(0)}});
      } else {
        outer.push_back(axes[i]);
      }
    }
    if (outer.empty()) return body;
    if (outer.size() == 1) return MakeFor(outer[0].var, outer[0].extent, ForKind::kParallel, body);
    Var f("fused");
    PrimExpr total = 1, rest = f;
    for (const Axis& a : outer) total = total * a.extent;
    for (size_t i = outer.size(); i-- > 0;) {
      PrimExpr value = i == 0 ? rest : floormod(rest, outer[i].extent);
      if (i > 0) rest = floordiv(rest, outer[i].extent);
      tir::LetStmtNode let;
      let.var = outer[i].var, let.value = value, let.body = body;
      body = tir::LetStmt(std::move(let));
    }
    return MakeFor(f, total, ForKind::kParallel, body);
  }

  /// Bytes of the widest type that a vector of this computation holds; index arithmetic does not count.
  static int64_t WidestBytes(const std::vector<PrimExpr>& values) {
    int64_t w = 1;
    for (const PrimExpr& v : values) {
      tir::PostOrderVisitExpr(v, [&](const PrimExpr& x) {
        DataType t = x.dtype();
        if (t.is_handle() || t.is_void()) return;
        bool index = t == DataType::Int(64) && !x.as<tir::BufferLoadNode>() && !x.as<tir::CastNode>();
        if (!index) w = std::max<int64_t>(w, t.element_of().bytes());
        // Half floats are computed in float32.
        if (t.is_floating() && t.bits() < 32 && !x.as<tir::BufferLoadNode>()) w = std::max<int64_t>(w, 4);
      });
    }
    for (const PrimExpr& v : values) w = std::max<int64_t>(w, v.dtype().element_of().bytes());
    return w;
  }

  /// How an expression's loads move with a variable: loads that are neither constant nor contiguous in it.
  struct Strides {
    int bad = 0;  // loads with another stride, or one that is not linear
    int contiguous = 0;
  };
  static Strides StridesOf(const std::vector<PrimExpr>& values, const Var& v, Analyzer* an) {
    Strides s;
    for (const PrimExpr& e : values) {
      tir::PostOrderVisitExpr(e, [&](const PrimExpr& x) {
        const auto* l = x.as<tir::BufferLoadNode>();
        if (!l || !tir::UsesVar(l->indices[0], v.get())) return;
        LinearForm f = an->Linear(l->indices[0]);
        int64_t c = f.CoeffOf(v.get());
        bool linear = true;
        for (const auto& t : f.terms) {
          if (t.atom.get() != static_cast<const Object*>(v.get()) && tir::UsesVar(t.atom, v.get())) linear = false;
        }
        if (linear && c == 1)
          ++s.contiguous;
        else
          ++s.bad;
      });
    }
    return s;
  }

  /// A store with its place, values still over axis variables.
  struct Store {
    Buffer buffer;
    PrimExpr index;
    PrimExpr value;
  };

  /// Joins neighbouring axes where every access moves through them as through one.
  void Collapse(std::vector<Axis>* axes, std::vector<Store>* stores) {
    if (axes->size() < 2) return;
    Analyzer an;
    for (const Axis& a : *axes) an.Bind(a.var, 0, a.extent);
    for (Store& s : *stores) {
      s.index = an.Simplify(s.index);
      s.value = an.Simplify(s.value);
    }
    for (size_t i = axes->size() - 1; i-- > 0;) {
      Axis outer = (*axes)[i], inner = (*axes)[i + 1];
      const int64_t* extent = tir::as_const_int(inner.extent);
      if (tir::is_const_int(inner.extent, 1) || tir::is_const_int(outer.extent, 1)) {
        // One of them does not move: any access will do.
        bool drop_inner = tir::is_const_int(inner.extent, 1);
        tir::VarMap map{{(drop_inner ? inner : outer).var.get(), PrimExpr(0)}};
        for (Store& s : *stores) s.index = tir::Substitute(s.index, map), s.value = tir::Substitute(s.value, map);
        axes->erase(axes->begin() + static_cast<std::ptrdiff_t>(drop_inner ? i + 1 : i));
        continue;
      }
      bool ok = true;
      auto check = [&](const PrimExpr& index) {
        LinearForm f = an.Linear(index);
        int64_t co = 0, ci = f.CoeffOf(inner.var.get());
        // With a dynamic inner extent the outer coefficient is a product of its own.
        PrimExpr product;
        for (const auto& t : f.terms) {
          if (t.atom.get() == static_cast<const Object*>(inner.var.get())) continue;
          if (t.atom.get() == static_cast<const Object*>(outer.var.get())) {
            co = t.coeff;
          } else if (!extent && tir::ExprDeepEqual(t.atom, an.Simplify(outer.var * inner.extent)) && t.coeff == ci) {
            product = t.atom;
          } else if (tir::UsesVar(t.atom, inner.var.get()) || tir::UsesVar(t.atom, outer.var.get())) {
            return false;
          }
        }
        if (extent) return co == ci * *extent;
        return co == 0 && (ci == 0) == !product.defined();
      };
      struct Scan : tir::ExprVisitor {
        using tir::ExprVisitor::VisitExpr_;
        const std::vector<const tir::VarNode*> vars;
        bool* ok;
        decltype(check)& fn;
        Scan(std::vector<const tir::VarNode*> v, bool* o, decltype(check)& f) : vars(std::move(v)), ok(o), fn(f) {}
        void VisitExpr_(const tir::BufferLoadNode* op) final {
          if (*ok && !fn(op->indices[0])) *ok = false;
        }
        void VisitExpr_(const tir::VarNode* op) final {
          for (const auto* v : vars) {
            if (op == v) *ok = false;  // the value itself depends on the position
          }
        }
      } scan({outer.var.get(), inner.var.get()}, &ok, check);
      for (const Store& s : *stores) {
        if (!ok) break;
        ok = check(s.index);
        if (ok) scan.VisitExpr(s.value);
      }
      if (!ok) continue;
      Axis joined{Var(outer.var->name_hint.str() + "_" + inner.var->name_hint.str()),
                  an.Simplify(outer.extent * inner.extent), false};
      tir::VarMap map{{outer.var.get(), PrimExpr(0)}, {inner.var.get(), joined.var}};
      for (Store& s : *stores) {
        s.index = tir::Substitute(s.index, map);
        s.value = tir::Substitute(s.value, map);
      }
      (*axes)[i] = joined;
      axes->erase(axes->begin() + static_cast<std::ptrdiff_t>(i) + 1);
      an.Bind(joined.var, 0, joined.extent);
    }
  }

  static Stmt MakeStore(const Buffer& b, const PrimExpr& index, const PrimExpr& value) {
    tir::BufferStoreNode n;
    n.buffer = b, n.indices = {index}, n.value = value;
    return tir::BufferStore(std::move(n));
  }

  /// The loop over `axis` with `lanes` rounds at a time, and what is left under a mask. `body` takes the index.
  template <class F>
  Stmt VectorLoop(const Axis& axis, int64_t lanes, F body, ForKind outer_kind = ForKind::kSerial) {
    const int64_t* n = tir::as_const_int(axis.extent);
    Var vo(axis.var->name_hint.str() + "_o"), vi(axis.var->name_hint.str() + "_v"),
        vt(axis.var->name_hint.str() + "_t");
    if (n && *n < lanes) {
      // Not one whole vector: lanes that are a power of two need no mask.
      if ((*n & (*n - 1)) == 0) return MakeFor(vi, *n, ForKind::kVectorized, body(vi));
      int64_t narrow = 1;
      while (narrow < *n) narrow *= 2;
      return MakeFor(vi, narrow, ForKind::kVectorized, Guard(vi < axis.extent, body(vi)));
    }
    PrimExpr rounds = floordiv(axis.extent, PrimExpr(lanes)), rest = floormod(axis.extent, PrimExpr(lanes));
    Stmt main = MakeFor(vi, lanes, ForKind::kVectorized, body(vo * lanes + vi));
    main = MakeFor(vo, rounds, outer_kind, main);
    if (n && *n % lanes == 0) return main;
    int64_t tail_lanes = lanes;
    if (n) {
      int64_t r = *n % lanes;
      tail_lanes = 1;
      while (tail_lanes < r) tail_lanes *= 2;
      PrimExpr base = *n - r;
      Stmt tail = body(base + vt);
      if (tail_lanes != r) tail = Guard(vt < r, tail);
      tail = tir::RenewBindings(MakeFor(vt, tail_lanes, ForKind::kVectorized, tail));
      return tir::SeqStmt::Flatten({main, tail});
    }
    PrimExpr base = rounds * lanes;
    Stmt tail = tir::RenewBindings(MakeFor(vt, tail_lanes, ForKind::kVectorized, Guard(vt < rest, body(base + vt))));
    return tir::SeqStmt::Flatten({main, Guard(rest > 0, tail)});
  }
  static Stmt Guard(PrimExpr cond, Stmt body) {
    if (tir::is_const_int(cond, 1)) return body;
    tir::IfThenElseNode n;
    n.condition = std::move(cond), n.then_case = std::move(body);
    return tir::IfThenElse(std::move(n));
  }

  /// Places where conditions of the values begin or end to hold for certain along an axis; `an` knows the other
  /// variables.
  static std::vector<int64_t> CutPoints(const std::vector<PrimExpr>& values, const Axis& axis, Analyzer* an) {
    std::vector<int64_t> cuts;
    const int64_t* n = tir::as_const_int(axis.extent);
    if (!n) return cuts;
    auto floor_div = [](int64_t a, int64_t b) { return a / b - (a % b != 0 && a < 0 ? 1 : 0); };
    auto consider = [&](const PrimExpr& c) {
      tir::PostOrderVisitExpr(c, [&](const PrimExpr& x) {
        tir::NodeKind k = tir::KindOf(x.get());
        if (k < tir::NodeKind::kLT || k > tir::NodeKind::kGE) return;
        const auto* cmp = static_cast<const tir::LTNode*>(x.get());
        if (!(cmp->a.dtype() == DataType::Int(64))) return;
        LinearForm f = an->Linear(cmp->a - cmp->b);
        int64_t coeff = f.CoeffOf(axis.var.get());
        if (coeff == 0) return;
        PrimExpr rest = f.constant;
        for (const auto& t : f.terms) {
          if (t.atom.get() == static_cast<const Object*>(axis.var.get())) continue;
          if (tir::UsesVar(t.atom, axis.var.get())) return;
          rest = rest + t.atom * t.coeff;
        }
        arith::ConstIntBound b = an->Bound(rest);
        if (b.min == arith::ConstIntBound::kNegInf || b.max == arith::ConstIntBound::kPosInf) return;
        bool flipped = coeff < 0;
        int64_t step = flipped ? -coeff : coeff;
        // step * x + d compared with 0: below -d / step one answer, above the other; on it what the comparison says.
        bool below = (k == tir::NodeKind::kLT || k == tir::NodeKind::kGE) != flipped;
        for (int64_t d : {b.min, b.max}) {
          if (flipped) d = -d;
          int64_t cut = below ? -floor_div(d, step) : floor_div(-d, step) + 1;
          if (cut > 0 && cut < *n) cuts.push_back(cut);
        }
      });
    };
    for (const PrimExpr& v : values) {
      tir::PostOrderVisitExpr(v, [&](const PrimExpr& x) {
        if (const auto* call = x.as<tir::CallNode>();
            call && call->args.size() == 3 && tir::IntrinName(call) == "tir.if_then_else") {
          consider(call->args[0]);
        }
        if (const auto* sel = x.as<tir::SelectNode>()) consider(sel->condition);
      });
    }
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    return cuts;
  }
  /// The parts of `axes` when axis `i` is cut, each with the map from the old variables to the new ones.
  template <class F>
  static Stmt EmitParts(const std::vector<Axis>& axes, size_t i, std::vector<int64_t> cuts, F emit) {
    int64_t n = *tir::as_const_int(axes[i].extent);
    cuts.insert(cuts.begin(), 0);
    cuts.push_back(n);
    Array<Stmt> parts;
    for (size_t c = 0; c + 1 < cuts.size(); ++c) {
      std::vector<Axis> part;
      tir::VarMap map;
      for (size_t j = 0; j < axes.size(); ++j) {
        Axis a{Var(axes[j].var->name_hint), axes[j].extent, false};
        map[axes[j].var.get()] = a.var;
        if (j == i) {
          a.extent = PrimExpr(cuts[c + 1] - cuts[c]);
          map[axes[j].var.get()] = a.var + cuts[c];
        }
        part.push_back(a);
      }
      parts.push_back(
          tir::RenewBindings(emit(part, map, static_cast<double>(cuts[c + 1] - cuts[c]) / static_cast<double>(n))));
    }
    return tir::SeqStmt::Flatten(parts);
  }

  /// An axis that is only read as x // c and x % c is two axes: packed layouts, and reshapes.
  static void SplitAxes(std::vector<Axis>* axes, std::vector<Store>* stores, Analyzer* an) {
    for (size_t i = 0; i < axes->size() && axes->size() < 12; ++i) {
      const Axis x = (*axes)[i];
      const int64_t* n = tir::as_const_int(x.extent);
      if (!n) continue;
      int64_t c = 0;
      bool ok = true;
      for (const Store& s : *stores) {
        for (const PrimExpr* e : {&s.index, &s.value}) {
          tir::PostOrderVisitExpr(*e, [&](const PrimExpr& sub) {
            const auto* d = sub.as<tir::FloorDivNode>();
            const auto* m = sub.as<tir::FloorModNode>();
            if (!d && !m) return;
            const PrimExpr& a = d ? d->a : m->a;
            if (a.get() != static_cast<const Object*>(x.var.get())) return;
            const int64_t* k = tir::as_const_int(d ? d->b : m->b);
            ok = ok && k && (c == 0 || c == *k);
            if (k) c = *k;
          });
        }
      }
      if (!ok || c <= 1 || *n % c != 0 || *n == c) continue;
      Axis outer{Var(x.var->name_hint.str() + "_o"), PrimExpr(*n / c), false},
          inner{Var(x.var->name_hint.str() + "_i"), PrimExpr(c), false};
      an->Bind(outer.var, 0, outer.extent);
      an->Bind(inner.var, 0, inner.extent);
      tir::VarMap map{{x.var.get(), outer.var * c + inner.var}};
      for (Store& s : *stores)
        s.index = an->Simplify(tir::Substitute(s.index, map)), s.value = an->Simplify(tir::Substitute(s.value, map));
      (*axes)[i] = outer;
      axes->insert(axes->begin() + static_cast<std::ptrdiff_t>(i) + 1, inner);
    }
  }

  /// Loops over `axes` of pure stores.
  Stmt EmitStores(std::vector<Axis> axes, std::vector<Store> stores, double work, bool outer, int depth = 0) {
    Analyzer an;
    for (const Axis& a : axes) an.Bind(a.var, 0, a.extent);
    for (Store& s : stores) s.index = an.Simplify(s.index), s.value = an.Simplify(s.value);
    if (work_items_) {
      Array<Stmt> all;
      for (const Store& s : stores) all.push_back(MakeStore(s.buffer, s.index, s.value));
      return OuterLoops(axes, tir::SeqStmt::Flatten(all), work);
    }
    SplitAxes(&axes, &stores, &an);
    // Split axes where guarded reads begin and end, so that the parts have no guards.
    if (depth < 3) {
      for (size_t i = axes.size(); i-- > 0;) {
        std::vector<int64_t> cuts = CutPoints(ValuesOf(stores), axes[i], &an);
        if (cuts.empty() || cuts.size() > 16) continue;
        return EmitParts(axes, i, cuts, [&](const std::vector<Axis>& part_axes, const tir::VarMap& map, double share) {
          std::vector<Store> part = stores;
          for (Store& s : part) s.index = tir::Substitute(s.index, map), s.value = tir::Substitute(s.value, map);
          return EmitStores(part_axes, part, work * share, outer, depth + 1);
        });
      }
    }
    Collapse(&axes, &stores);
    std::vector<PrimExpr> values = ValuesOf(stores);
    auto store_all = [&](const std::vector<Axis>& all, const PrimExpr& last) {
      Array<Stmt> seq;
      tir::VarMap map;
      if (!all.empty()) map[all.back().var.get()] = last;
      for (const Store& s : stores)
        seq.push_back(MakeStore(s.buffer, tir::Substitute(s.index, map), tir::Substitute(s.value, map)));
      return tir::SeqStmt::Flatten(seq);
    };
    if (axes.empty()) return store_all(axes, PrimExpr());
    int64_t lanes = std::max<int64_t>(1, kVectorBytes / WidestBytes(values));
    Axis last = axes.back();
    std::vector<Axis> outer_axes(axes.begin(), axes.end() - 1);
    if (Stmt tiled; EmitTiled(axes, stores, work, outer, &tiled)) return tiled;
    bool vector = Vectorizable(stores, last, &an);
    const int64_t* n = tir::as_const_int(last.extent);
    if (!vector || (n && *n == 1)) {
      Stmt body = MakeFor(last.var, last.extent, ForKind::kSerial, store_all(axes, last.var));
      return outer ? OuterLoops(outer_axes, body, work) : OuterLoops(outer_axes, body, 0);
    }
    bool flat = outer && outer_axes.empty() && work >= kParallelWork;
    Stmt body = VectorLoop(
        last, lanes, [&](const PrimExpr& i) { return store_all(axes, i); },
        flat ? ForKind::kParallel : ForKind::kSerial);
    return OuterLoops(outer_axes, body, outer ? work : 0);
  }

  static std::vector<PrimExpr> ValuesOf(const std::vector<Store>& stores) {
    std::vector<PrimExpr> v;
    for (const Store& s : stores) v.push_back(s.value);
    return v;
  }

  /// Reads that run along another axis than the store: both sides in whole vectors by way of square tiles that are
  /// transposed in registers. False where that is not the case at hand.
  bool EmitTiled(const std::vector<Axis>& axes, const std::vector<Store>& stores, double work, bool outer, Stmt* out) {
    if (axes.size() < 2 || stores.size() != 1) return false;
    const Axis& b = axes.back();
    Analyzer an;
    for (const Axis& x : axes) an.Bind(x.var, 0, x.extent);
    int64_t lanes = kVectorBytes / WidestBytes(ValuesOf(stores));
    int64_t tile = lanes < 16 ? lanes : 16;
    const int64_t* nb = tir::as_const_int(b.extent);
    if (tile < 8 || !nb || *nb < tile) return false;
    auto moves = [&](const LinearForm& f, const Axis& x) {  // by a literal step
      for (const auto& t : f.terms) {
        if (t.atom.get() != static_cast<const Object*>(x.var.get()) && tir::UsesVar(t.atom, x.var.get())) return false;
      }
      return true;
    };
    LinearForm target = an.Linear(stores[0].index);
    if (!moves(target, b) || target.CoeffOf(b.var.get()) != 1) return false;
    std::vector<PrimExpr> bad;
    bool plain = true;
    tir::PostOrderVisitExpr(stores[0].value, [&](const PrimExpr& x) {
      if (const auto* c = x.as<tir::CallNode>(); c && tir::IntrinName(c) == "tir.if_then_else") plain = false;
      const auto* l = x.as<tir::BufferLoadNode>();
      if (!l || !tir::UsesVar(l->indices[0], b.var.get())) return;
      LinearForm f = an.Linear(l->indices[0]);
      if (!moves(f, b)) plain = false;
      if (f.CoeffOf(b.var.get()) == 1) return;
      for (const PrimExpr& known : bad) {
        if (tir::ExprDeepEqual(known, x)) return;
      }
      bad.push_back(x);
    });
    if (!plain || bad.empty() || bad.size() > 2) return false;
    for (size_t ai = 0; ai + 1 < axes.size(); ++ai) {
      const Axis& a = axes[ai];
      const int64_t* na = tir::as_const_int(a.extent);
      bool ok = na && *na >= tile && moves(target, a);
      for (const PrimExpr& x : bad) {
        LinearForm f = an.Linear(x.as<tir::BufferLoadNode>()->indices[0]);
        ok = ok && moves(f, a) && f.CoeffOf(a.var.get()) == 1;
      }
      if (!ok) continue;
      // Whole tiles, and what is left by single elements.
      if (*na % tile != 0) {
        *out = EmitParts(
            axes, ai, {*na / tile * tile}, [&](const std::vector<Axis>& part, const tir::VarMap& map, double share) {
              std::vector<Store> st = {
                  {stores[0].buffer, tir::Substitute(stores[0].index, map), tir::Substitute(stores[0].value, map)}};
              return EmitStores(part, st, work * share, outer, 3);
            });
        return true;
      }
      if (*nb % tile != 0) {
        *out = EmitParts(axes, axes.size() - 1, {*nb / tile * tile},
                         [&](const std::vector<Axis>& part, const tir::VarMap& map, double share) {
                           std::vector<Store> st = {{stores[0].buffer, tir::Substitute(stores[0].index, map),
                                                     tir::Substitute(stores[0].value, map)}};
                           return EmitStores(part, st, work * share, outer, 3);
                         });
        return true;
      }
      *out = EmitTiles(axes, ai, stores[0], bad, tile, outer ? work : 0);
      return true;
    }
    return false;
  }
  Stmt EmitTiles(const std::vector<Axis>& axes, size_t ai, const Store& store, const std::vector<PrimExpr>& bad,
                 int64_t tile, double work) {
    const Axis &a = axes[ai], &b = axes.back();
    Axis ao{Var(a.var->name_hint.str() + "_o"), PrimExpr(*tir::as_const_int(a.extent) / tile), false};
    Axis bo{Var(b.var->name_hint.str() + "_o"), PrimExpr(*tir::as_const_int(b.extent) / tile), false};
    Var c("c"), v("v");
    // A transposed tile is hundreds of expressions: what they have in common is one object.
    const PrimExpr a0 = ao.var * tile, b0 = bo.var * tile, one(1);
    const String row("t");
    auto at = [&](const PrimExpr& e, const PrimExpr& ia, const PrimExpr& ib) {
      return tir::Substitute(e, tir::VarMap{{a.var.get(), a0 + ia}, {b.var.get(), b0 + ib}});
    };
    std::vector<Buffer> tiles;
    std::vector<Stmt> fills;
    struct Replace : tir::ExprMutator {
      const std::vector<PrimExpr>& bad;
      const std::vector<Buffer>& tiles;
      PrimExpr index;
      Replace(const std::vector<PrimExpr>& b, const std::vector<Buffer>& t, PrimExpr i)
          : bad(b), tiles(t), index(std::move(i)) {}
      using tir::ExprMutator::VisitExpr_;
      PrimExpr VisitExpr_(const tir::BufferLoadNode* op) final {
        for (size_t k = 0; k < bad.size(); ++k) {
          if (tir::ExprDeepEqual(bad[k], GetRef<PrimExpr>(op))) return tir::BufferLoad(tiles[k], {index});
        }
        return tir::ExprMutator::VisitExpr_(op);
      }
    };
    for (const PrimExpr& x : bad) {
      const auto* load = x.as<tir::BufferLoadNode>();
      Buffer t = Buffer::Make({PrimExpr(tile * tile)}, load->dtype, Unique(&names_, "tile"), "local");
      tiles.push_back(t);
      DataType vt = load->dtype.with_lanes(static_cast<int>(tile));
      std::vector<std::pair<Var, PrimExpr>> lets;
      auto let = [&](const PrimExpr& e) {
        Var n(row, vt);
        lets.push_back({n, e});
        return n;
      };
      std::vector<PrimExpr> rows;
      for (int64_t r = 0; r < tile; ++r) {
        rows.push_back(
            let(tir::BufferLoad(load->buffer, {tir::Ramp(at(load->indices[0], PrimExpr(0), PrimExpr(r)), one, tile)})));
      }
      // Blocks of 1, 2, 4, ... lanes change sides between rows at that distance.
      for (int64_t s = 1; s < tile; s *= 2) {
        Array<int64_t> low, high;
        for (int64_t l = 0; l < tile; ++l) {
          low.push_back(l & s ? tile + l - s : l);
          high.push_back(l & s ? tile + l : l + s);
        }
        for (int64_t i = 0; i < tile; ++i) {
          if (i & s) continue;
          PrimExpr x0 = rows[static_cast<size_t>(i)], x1 = rows[static_cast<size_t>(i + s)];
          const Array<PrimExpr> both = {x0, x1};
          rows[static_cast<size_t>(i)] = let(tir::Shuffle(both, low));
          rows[static_cast<size_t>(i + s)] = let(tir::Shuffle(both, high));
        }
      }
      Array<Stmt> st;
      for (int64_t r = 0; r < tile; ++r) {
        tir::BufferStoreNode n;
        n.buffer = t, n.indices = {tir::Ramp(PrimExpr(r * tile), one, tile)}, n.value = rows[static_cast<size_t>(r)];
        st.push_back(tir::BufferStore(std::move(n)));
      }
      Stmt fill = tir::SeqStmt::Flatten(st);
      for (size_t k = lets.size(); k-- > 0;) {
        tir::LetStmtNode n;
        n.var = lets[k].first, n.value = lets[k].second, n.body = fill;
        fill = tir::LetStmt(std::move(n));
      }
      fills.push_back(fill);
    }
    PrimExpr value = at(Replace(bad, tiles, c * tile + v)(store.value), c, v);
    Stmt write = MakeFor(v, tile, ForKind::kVectorized, MakeStore(store.buffer, at(store.index, c, v), value));
    fills.push_back(MakeFor(c, tile, ForKind::kUnrolled, write));
    Array<Stmt> seq(fills.begin(), fills.end());
    Stmt body = tir::SeqStmt::Flatten(seq);
    for (size_t k = tiles.size(); k-- > 0;) body = AllocateStmt(tiles[k], body);
    std::vector<Axis> loops;
    for (size_t i = 0; i + 1 < axes.size(); ++i) {
      if (i != ai) loops.push_back(axes[i]);
    }
    loops.push_back(ao);
    loops.push_back(bo);
    return OuterLoops(loops, body, work);
  }

  /// False where a vector would only be taken apart again: stores that do not move by one, types without vectors.
  static bool Vectorizable(const std::vector<Store>& stores, const Axis& axis, Analyzer* an) {
    std::vector<PrimExpr> values;
    for (const Store& s : stores) {
      LinearForm f = an->Linear(s.index);
      if (f.CoeffOf(axis.var.get()) != 1) return false;
      for (const auto& t : f.terms) {
        if (t.atom.get() != static_cast<const Object*>(axis.var.get()) && tir::UsesVar(t.atom, axis.var.get()))
          return false;
      }
      values.push_back(s.value);
    }
    bool ok = true;
    for (const PrimExpr& v : values) {
      tir::PostOrderVisitExpr(v, [&](const PrimExpr& x) {
        if (const auto* c = x.as<tir::CallNode>()) {
          std::string_view n = tir::IntrinName(c);
          if (n.empty() || n.substr(0, 9) == "tir.call_") ok = false;
        }
      });
    }
    // Gathers alone do not pay: a transposition is faster by scalars.
    Strides st = StridesOf(values, axis.var, an);
    return ok && !(st.bad > 0 && st.contiguous == 0 && values.size() == 1 && values[0].as<tir::BufferLoadNode>());
  }

  /// Index of a stage's element in its home.
  PrimExpr HomeIndex(const Home& h, const std::vector<PrimExpr>& index) {
    Array<PrimExpr> rest(index.begin() + static_cast<std::ptrdiff_t>(h.drop), index.end());
    return FlatIndex(h.shape, rest);
  }

  /// Marks the stores of a stage with its span; other statements have that of what they hold.
  struct Marker : tir::StmtVisitor {
    const Span& span;
    explicit Marker(const Span& s) : span(s) {}
    using tir::StmtVisitor::VisitStmt_;
    void VisitStmt_(const tir::BufferStoreNode* op) final {
      if (!op->span.defined()) op->span = span;
    }
  };

  /// One stage: `inner` are its loops here, the axes before them are the shared loops.
  Stmt EmitStage(const Stage& s, const GroupContext& ctx, const std::vector<Axis>& shared,
                 const std::vector<Axis>& inner, double work, bool outermost) {
    Stmt out = EmitStageImpl(s, ctx, shared, inner, work, outermost);
    if (s.span.defined()) Marker(s.span)(out);
    return out;
  }
  Stmt EmitStageImpl(const Stage& s, const GroupContext& ctx, const std::vector<Axis>& shared,
                     const std::vector<Axis>& inner, double work, bool outermost) {
    tir::VarMap rename;
    std::vector<PrimExpr> index;
    for (size_t i = 0; i < shared.size(); ++i) {
      rename[s.axes[i].var.get()] = shared[i].var;
      index.push_back(shared[i].var);
    }
    for (const Axis& a : inner) index.push_back(a.var);
    const std::vector<Home>& homes = ctx.homes.at(s.info->op.get());
    LoadReplacer loads(this, &ctx, &rename);
    std::vector<PrimExpr> values;
    for (const PrimExpr& v : s.values) values.push_back(loads(v));
    if (!s.reduce) {
      std::vector<Store> stores;
      for (size_t i = 0; i < values.size(); ++i)
        stores.push_back({homes[i].buffer, HomeIndex(homes[i], index), values[i]});
      return EmitStores(inner, stores, work, outermost);
    }
    PrimExpr condition = s.condition.defined() ? loads(s.condition) : PrimExpr();
    return EmitReduce(s, homes, index, inner, values, condition, work, outermost);
  }

  enum class Combine { kOther, kSum, kProd, kMin, kMax, kAnd, kOr };
  static Combine KindOfCombiner(const tir::CommReducer& c) {
    if (c->result.size() != 1) return Combine::kOther;
    const PrimExpr& r = c->result[0];
    auto is = [&](const auto* n) {
      return n && ((n->a.same_as(c->lhs[0]) && n->b.same_as(c->rhs[0])) ||
                   (n->a.same_as(c->rhs[0]) && n->b.same_as(c->lhs[0])));
    };
    if (is(r.as<tir::AddNode>())) return Combine::kSum;
    if (is(r.as<tir::MulNode>())) return Combine::kProd;
    if (is(r.as<tir::MinNode>())) return Combine::kMin;
    if (is(r.as<tir::MaxNode>())) return Combine::kMax;
    if (is(r.as<tir::AndNode>())) return Combine::kAnd;
    if (is(r.as<tir::OrNode>())) return Combine::kOr;
    return Combine::kOther;
  }
  /// acc op value for each output of the reduction.
  static std::vector<PrimExpr> Apply(const tir::CommReducer& c, const std::vector<PrimExpr>& acc,
                                     const std::vector<PrimExpr>& value) {
    std::vector<PrimExpr> out;
    // a * b + acc in one rounding: as exact as can be, and one instruction.
    if (KindOfCombiner(c) == Combine::kSum && value[0].dtype().is_float() && value[0].dtype().bits() >= 32) {
      if (const auto* m = value[0].as<tir::MulNode>()) return {fma(m->a, m->b, acc[0])};
    }
    tir::VarMap map;
    for (size_t i = 0; i < acc.size(); ++i) map[c->lhs[i].get()] = acc[i], map[c->rhs[i].get()] = value[i];
    for (const PrimExpr& r : c->result) out.push_back(tir::Substitute(r, map));
    return out;
  }
  static Stmt StoreAll(const std::vector<Buffer>& buffers, const PrimExpr& index, const std::vector<PrimExpr>& values) {
    if (buffers.size() == 1) return MakeStore(buffers[0], index, values[0]);
    // All values are computed from the old ones before the first is stored.
    Array<Stmt> seq;
    std::vector<Var> vars;
    for (size_t i = 0; i < values.size(); ++i) {
      vars.push_back(Var("r" + std::to_string(i), values[i].dtype()));
      seq.push_back(MakeStore(buffers[i], index, vars[i]));
    }
    Stmt body = tir::SeqStmt::Flatten(seq);
    for (size_t i = values.size(); i-- > 0;) {
      tir::LetStmtNode let;
      let.var = vars[i], let.value = values[i], let.body = body;
      body = tir::LetStmt(std::move(let));
    }
    return body;
  }

  Stmt EmitReduce(const Stage& s, const std::vector<Home>& homes, const std::vector<PrimExpr>& index,
                  std::vector<Axis> axes, std::vector<PrimExpr> values, PrimExpr condition, double work, bool outermost,
                  int depth = 0) {
    Analyzer an;
    for (const Axis& a : axes) an.Bind(a.var, 0, a.extent);
    for (const Axis& a : s.raxes) an.Bind(a.var, 0, a.extent);
    size_t num = values.size();
    // A window that leaves the input does so at the borders: the inside is computed without asking.
    if (outermost && depth < 2 && !work_items_) {
      for (size_t i = axes.size(); i-- > 0;) {
        std::vector<int64_t> cuts = CutPoints(values, axes[i], &an);
        if (cuts.empty() || cuts.size() > 4) continue;
        int64_t widest = cuts[0];
        for (size_t c = 0; c < cuts.size(); ++c) {
          widest = std::max(widest, (c + 1 < cuts.size() ? cuts[c + 1] : *tir::as_const_int(axes[i].extent)) - cuts[c]);
        }
        if (widest * 2 < *tir::as_const_int(axes[i].extent)) continue;
        return EmitParts(axes, i, cuts, [&](const std::vector<Axis>& part, const tir::VarMap& map, double share) {
          std::vector<PrimExpr> at, vals;
          for (const PrimExpr& x : index) at.push_back(tir::Substitute(x, map));
          Analyzer inner;
          for (const Axis& a : part) inner.Bind(a.var, 0, a.extent);
          for (const Axis& a : s.raxes) inner.Bind(a.var, 0, a.extent);
          for (const PrimExpr& v : values) vals.push_back(inner.Simplify(tir::Substitute(v, map)));
          PrimExpr cond = condition.defined() ? tir::Substitute(condition, map) : condition;
          return EmitReduce(s, homes, at, part, vals, cond, work * share, true, depth + 1);
        });
      }
    }
    std::vector<PrimExpr> identity(s.combiner->identity_element.begin(), s.combiner->identity_element.end());
    if (condition.defined()) {
      for (size_t i = 0; i < num; ++i) values[i] = if_then_else(condition, values[i], identity[i]);
    }
    for (PrimExpr& v : values) v = an.Simplify(v);
    // Join the reduction axes where all reads move through them as through one.
    std::vector<Axis> raxes = s.raxes;
    if (num == 1) {
      std::vector<Store> fake = {{homes[0].buffer, PrimExpr(0), values[0]}};
      Collapse(&raxes, &fake);
      values[0] = fake[0].value;
      for (const Axis& a : raxes) an.Bind(a.var, 0, a.extent);
    }
    Combine kind = KindOfCombiner(s.combiner);
    int64_t lanes = std::max<int64_t>(1, kVectorBytes / std::max(WidestBytes(values), WidestBytes(identity)));
    // Which axis is the vector?
    enum { kScalar, kData, kReduction } mode = kScalar;
    const Axis* data = axes.empty() ? nullptr : &axes.back();
    const Axis* red = raxes.empty() ? nullptr : &raxes.back();
    auto known = [](const Axis* a) { return SizeOf(a->extent); };
    bool same_type = true;
    for (const PrimExpr& v : values) same_type &= !v.dtype().is_handle();
    if (same_type && !scalar_reduce_) {
      Strides sd = data ? StridesOf(values, data->var, &an) : Strides{};
      Strides sr = red ? StridesOf(values, red->var, &an) : Strides{};
      bool can_r = red && kind != Combine::kOther && num == 1 && known(red) >= 4;
      bool can_d = data && known(data) >= 4;
      if (can_d && sd.bad == 0 && (known(data) >= lanes || !can_r || sr.bad > 0))
        mode = kData;
      else if (can_r && sr.bad == 0)
        mode = kReduction;
      else if (can_d && sd.bad <= sr.bad)
        mode = kData;
      else if (can_r && known(red) >= lanes)
        mode = kReduction;
      else if (can_d)
        mode = kData;
    }
    auto acc_buffers = [&](int64_t size) {
      std::vector<Buffer> acc;
      for (size_t i = 0; i < num; ++i)
        acc.push_back(Buffer::Make({PrimExpr(size)}, identity[i].dtype(), Unique(&names_, "acc"), "local"));
      return acc;
    };
    auto with_acc = [&](const std::vector<Buffer>& acc, Stmt body) {
      for (size_t i = acc.size(); i-- > 0;) body = AllocateStmt(acc[i], body);
      return body;
    };
    auto load_acc = [&](const std::vector<Buffer>& acc, const PrimExpr& i) {
      std::vector<PrimExpr> v;
      for (const Buffer& b : acc) v.push_back(tir::BufferLoad(b, {i}));
      return v;
    };
    auto finish = [&](const std::vector<PrimExpr>& results, const tir::VarMap& map) {
      Array<Stmt> seq;
      for (size_t i = 0; i < homes.size(); ++i) {
        std::vector<PrimExpr> at;
        for (const PrimExpr& x : index) at.push_back(tir::Substitute(x, map));
        int64_t which = s.info->compute->body[static_cast<int64_t>(i)].as<tir::ReduceNode>()->value_index;
        seq.push_back(MakeStore(homes[i].buffer, HomeIndex(homes[i], at), results.at(static_cast<size_t>(which))));
      }
      return tir::SeqStmt::Flatten(seq);
    };
    auto loops = [&](Stmt body, size_t count) {
      for (size_t i = count; i-- > 0;) body = MakeFor(raxes[i].var, raxes[i].extent, ForKind::kSerial, body);
      return body;
    };

    if (mode == kReduction) {
      // Fixed partial sums, whatever the machine and the threads: `parts` vectors of 64 bytes, joined pairwise.
      int64_t n = known(red), parts = n >= 4 * lanes ? 4 : 1;
      while (lanes > n && tir::as_const_int(red->extent)) lanes /= 2;
      std::vector<Buffer> acc = acc_buffers(parts * lanes);
      const Buffer& a = acc[0];
      auto update = [&](int64_t part, const PrimExpr& at, const Var& lane) {
        tir::VarMap map{{red->var.get(), at}};
        PrimExpr slot = PrimExpr(part * lanes) + lane;
        PrimExpr next = Apply(s.combiner, {tir::BufferLoad(a, {slot})}, {tir::Substitute(values[0], map)})[0];
        return MakeStore(a, slot, next);
      };
      Array<Stmt> init, step;
      for (int64_t p = 0; p < parts; ++p) {
        Var li("l"), lu("l");
        init.push_back(MakeFor(li, lanes, ForKind::kVectorized, MakeStore(a, PrimExpr(p * lanes) + li, identity[0])));
      }
      Var ro(red->var->name_hint.str() + "_o");
      PrimExpr rounds = floordiv(red->extent, PrimExpr(parts * lanes));
      for (int64_t p = 0; p < parts; ++p) {
        Var l("l");
        step.push_back(MakeFor(l, lanes, ForKind::kVectorized, update(p, ro * (parts * lanes) + p * lanes + l, l)));
      }
      Array<Stmt> inner;
      inner.push_back(MakeFor(ro, rounds, ForKind::kSerial, tir::SeqStmt::Flatten(step)));
      PrimExpr done = rounds * (parts * lanes), rest = red->extent - done;
      const int64_t* fixed = tir::as_const_int(rest);
      if (!(fixed && *fixed == 0)) {
        if (parts > 1) {
          Var rv(red->var->name_hint.str() + "_r"), l("l");
          PrimExpr vectors = floordiv(rest, PrimExpr(lanes));
          inner.push_back(MakeFor(rv, vectors, ForKind::kSerial,
                                  MakeFor(l, lanes, ForKind::kVectorized, update(0, done + rv * lanes + l, l))));
          done = done + vectors * lanes;
          rest = red->extent - done;
        }
        fixed = tir::as_const_int(an.Simplify(rest));
        if (!(fixed && *fixed == 0)) {
          Var l("l");
          Stmt tail = MakeFor(l, lanes, ForKind::kVectorized, Guard(l < rest, update(0, done + l, l)));
          inner.push_back(fixed ? tail : Guard(rest > 0, tail));
        }
      }
      Stmt body = loops(tir::SeqStmt::Flatten(inner), raxes.size() - 1);
      // Join: parts pairwise, then the lanes by halves.
      auto vec = [&](int64_t p) { return tir::BufferLoad(a, {tir::Ramp(PrimExpr(p * lanes), PrimExpr(1), lanes)}); };
      std::vector<PrimExpr> sums;
      for (int64_t p = 0; p < parts; ++p) sums.push_back(vec(p));
      auto join = [&](const PrimExpr& x, const PrimExpr& y) -> PrimExpr {
        switch (kind) {
          case Combine::kSum:
            return x + y;
          case Combine::kProd:
            return x * y;
          case Combine::kMin:
            return min(x, y);
          case Combine::kMax:
            return max(x, y);
          case Combine::kAnd:
            return x && y;
          default:
            return x || y;
        }
      };
      while (sums.size() > 1) {
        std::vector<PrimExpr> half;
        for (size_t i = 0; i < sums.size() / 2; ++i) half.push_back(join(sums[i], sums[i + sums.size() / 2]));
        sums = half;
      }
      PrimExpr v = sums[0], result;
      switch (kind) {
        case Combine::kSum:
          result = tir::vector_sum(v);
          break;
        case Combine::kProd:
          result = tir::vector_prod(v);
          break;
        case Combine::kMin:
        case Combine::kAnd:
          result = tir::vector_min(v);
          break;
        default:
          result = tir::vector_max(v);
          break;
      }
      Stmt whole = tir::SeqStmt::Flatten({tir::SeqStmt::Flatten(init), body, finish({result}, {})});
      return OuterLoops(axes, with_acc(acc, whole), outermost ? work : 0);
    }

    if (mode == kData) {
      Axis d = *data;
      std::vector<Axis> outer_axes(axes.begin(), axes.end() - 1);
      Stmt body = VectorLoop(
          d, lanes,
          [&](const PrimExpr& i) {
            std::vector<Buffer> acc = acc_buffers(1);
            tir::VarMap map{{d.var.get(), i}};
            std::vector<PrimExpr> vals;
            for (const PrimExpr& v : values) vals.push_back(tir::Substitute(v, map));
            Array<Stmt> seq;
            for (size_t k = 0; k < num; ++k) seq.push_back(MakeStore(acc[k], 0, identity[k]));
            seq.push_back(loops(StoreAll(acc, 0, Apply(s.combiner, load_acc(acc, 0), vals)), raxes.size()));
            seq.push_back(finish(load_acc(acc, 0), map));
            return tir::RenewBindings(with_acc(acc, tir::SeqStmt::Flatten(seq)));
          },
          outermost && outer_axes.empty() && work >= kParallelWork ? ForKind::kParallel : ForKind::kSerial);
      return OuterLoops(outer_axes, body, outermost ? work : 0);
    }

    std::vector<Buffer> acc = acc_buffers(1);
    Array<Stmt> seq;
    for (size_t k = 0; k < num; ++k) seq.push_back(MakeStore(acc[k], 0, identity[k]));
    seq.push_back(loops(StoreAll(acc, 0, Apply(s.combiner, load_acc(acc, 0), values)), raxes.size()));
    seq.push_back(finish(load_acc(acc, 0), {}));
    return OuterLoops(axes, with_acc(acc, tir::SeqStmt::Flatten(seq)), outermost ? work : 0);
  }

  /// All stages share all axes: values go from stage to stage through one-element buffers, that is, registers.
  Stmt EmitFull(const std::vector<Stage*>& group, const GroupContext& ctx, const std::vector<Axis>& shared,
                double work) {
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
    bool vector = true;
    int64_t widest = 1;
    for (Stage* s : group) {
      tir::VarMap rename;
      for (size_t i = 0; i < shared.size(); ++i) rename[s->axes[i].var.get()] = shared[i].var;
      LoadReplacer loads(this, &ctx, &rename);
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
      return OuterLoops(all, body, work);
    }
    scalar_reduce_ = reduces;
    Stmt body = VectorLoop(
        shared.back(), std::max<int64_t>(1, kVectorBytes / widest), [&](const PrimExpr& i) { return point(i); },
        outer.empty() && work >= kParallelWork ? ForKind::kParallel : ForKind::kSerial);
    scalar_reduce_ = false;
    return OuterLoops(outer, body, work);
  }

  /// Outputs that are inputs, or that stand twice in the list.
  void CopyOutputs(Array<Stmt>* seq) {
    for (size_t i = 0; i < outputs_.size(); ++i) {
      Buffer to = out_buffers_[i], from = flat_[outputs_[i].get()];
      if (to.same_as(from)) continue;
      if (from->data.same_as(to->data)) continue;
      Axis a{Var("i"), to->shape[0], false};
      seq->push_back(EmitStores({a}, {{to, a.var, tir::BufferLoad(from, {a.var})}},
                                static_cast<double>(NumElements(outputs_[i].shape())), true));
    }
  }

  const Array<Tensor>& inputs_;
  const Array<Tensor>& outputs_;
  Target target_;
  Array<Var> params_;
  Map<Var, Buffer> buffer_map_;
  std::vector<Buffer> out_buffers_;
  std::unordered_map<std::string, int> names_;
  std::unordered_map<const Object*, Buffer> flat_;  // tensor -> flat buffer of all of it
  std::vector<std::pair<std::pair<const Object*, int64_t>, Buffer>> stored_;
  std::vector<std::unique_ptr<OpInfo>> order_;
  std::unordered_map<const Object*, OpInfo*> by_op_;
  std::vector<std::unique_ptr<Stage>> stages_;
  std::vector<Buffer> workspace_;
  bool scalar_reduce_ = false;
  bool work_items_;  // a device of many threads: each stage a nest whose data axes are one parallel loop, no vectors
};

}  // namespace

tir::PrimFunc LowerToPrimFunc(const Array<Tensor>& inputs, const Array<Tensor>& outputs, const String& name,
                              const Target& target) {
  tir::PrimFunc f = Lowerer(inputs, outputs, target).Run(name);
  f.CopyOnWrite()->body = arith::SimplifyStmt(f->body);
  tir::VerifyWellFormed(f);
  return f;
}

}  // namespace baton::te

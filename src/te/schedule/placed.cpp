// SPDX-License-Identifier: Apache-2.0
#include "te/schedule/placed.h"

#include <baton/arith/int_set.h>
#include <baton/tir/op.h>
#include <baton/tir/printer.h>
#include <fmt/format.h>

#include <algorithm>

#include "te/schedule/reads.h"
#include "te/schedule/stage.h"

namespace baton::te {
namespace {

bool IsLimit(const PrimExpr& e) { return e.same_as(arith::PosInf()) || e.same_as(arith::NegInf()); }

}  // namespace

/// The least and the largest index of a dimension that is read; unknown where one of them is.
struct Placement::Bounds {
  PrimExpr low, high;
  bool unknown = false;

  void Add(const PrimExpr& lo, const PrimExpr& hi, arith::Analyzer* analyzer) {
    if (unknown || IsLimit(lo) || IsLimit(hi)) {
      unknown = true;
    } else if (!low.defined()) {
      low = lo, high = hi;
    } else {
      const PrimExpr below = analyzer->Simplify(low - lo), above = analyzer->Simplify(high - hi);
      const int64_t *b = tir::as_const_int(below), *a = tir::as_const_int(above);
      if (!a || !b) {
        unknown = true;
      } else {
        low = *b <= 0 ? low : lo, high = *a >= 0 ? high : hi;
      }
    }
  }
};

Placement::Placement(const Schedule& schedule, const std::unordered_set<const Object*>& given) : schedule_(schedule) {
  Inline(given);
  std::unordered_map<const Object*, std::vector<Read>> readers;
  for (const Stage& stage : live_) {
    for (const tir::ProducerLoad& load : Loads(of(stage).body))
      readers[schedule_[Downcast<Tensor>(load->producer)->op].get()].push_back({stage, load});
    if (!stage.is_statement()) continue;
    for (const Tensor& t : InputTensors(stage->op)) {
      if (schedule_[t->op]->attach_type != AttachType::kRoot) {
        Fail(fmt::format("`{}` is a statement, which reads the whole of `{}`: that is computed at its root",
                         NameOf(stage), NameOf(t->op)));
      }
    }
  }
  Map<Var, PrimExpr> leaves;  // every loop's variable and its extent, as stages are placed
  for (size_t i = live_.size(); i-- > 0;) {
    Placed& p = of(live_[i]);
    const Stage& stage = p.stage;
    const auto* c = stage->op.as<ComputeOpNode>();
    const Array<IterVar> axes = AxesOf(stage->op);
    Map<Var, PrimExpr> extents;
    for (const IterVar& a : axes) extents.Set(a->var, a->dom->extent);
    for (const IterVar& a : c ? c->axis : axes) p.first.push_back(Int(0)), p.extents.push_back(a->dom->extent);
    Chain(&p);
    if (!p.chain.empty()) {
      Region(&p, readers[stage.get()], leaves);
      auto& children = children_[stage->attach_ivar->var.get()];
      children.insert(children.begin(), stage);
      for (size_t d = 0; c && d < c->axis.size(); ++d) extents.Set(c->axis[d]->var, p.extents[d]);
    }
    p.loops = LoopsOf(stage, extents);
    for (const IterVar& iv : stage->leaf_iter_vars) leaves.Set(iv->var, p.extent(iv));
    CheckKinds(p);
  }
}

void Placement::Inline(const std::unordered_set<const Object*>& given) {
  std::unordered_set<const Object*> read;
  for (const Stage& s : schedule_->stages) {
    for (const tir::ProducerLoad& load : Loads(s->body)) read.insert(Downcast<Tensor>(load->producer)->op.get());
    if (s.is_statement())
      for (const Tensor& t : InputTensors(s->op)) read.insert(t->op.get());
  }
  const LoadFn element = [&](const Tensor& t, const Array<PrimExpr>& indices) -> PrimExpr {
    const Stage stage = schedule_[t->op];
    if (stage->attach_type != AttachType::kInline) return t(indices);
    Map<Var, PrimExpr> at;
    const Array<IterVar>& axis = stage->op.as<ComputeOpNode>()->axis;
    for (size_t i = 0; i < axis.size(); ++i) at.Set(axis[i]->var, indices[i]);
    return tir::Substitute(of(stage).body[t->value_index], at);
  };
  for (const Stage& stage : schedule_->stages) {
    Placed& p = placed_[stage.get()];
    p.stage = stage;
    for (const PrimExpr& e : stage->body) p.body.push_back(ReplaceLoads(e, element));
    if (stage->is_input) {
      if (!given.count(stage->origin_op.get()) && read.count(stage->op.get()))
        Fail(fmt::format("`{}` is read and is no argument", NameOf(stage)));
    } else if (stage->attach_type != AttachType::kInline) {
      live_.push_back(stage);
    }
  }
}

void Placement::Chain(Placed* p) {
  std::unordered_set<const Object*> seen = {p->stage.get()};
  const bool shared = p->stage->scope == "shared";
  Stage stage = p->stage;
  while (stage->attach_type == AttachType::kScope) {
    const Stage parent = Downcast<Stage>(stage->attach_stage);
    const IterVar iv = stage->attach_ivar;
    if (seen.count(parent.get()))
      Fail(fmt::format("`{}` and `{}` are computed within each other", NameOf(stage), NameOf(parent)));
    if (parent->attach_type == AttachType::kInline || parent->is_input) {
      Fail(fmt::format("`{}` is computed at a loop of `{}`, which has none: it is {}", NameOf(stage), NameOf(parent),
                       parent->attach_type == AttachType::kInline ? "inline" : "an input"));
    }
    seen.insert(parent.get());
    const size_t at = PlaceOf(parent, iv);
    for (size_t i = 0; i <= at; ++i) {
      // Shared memory has the elements that all threads of the block need.
      const IterVar& loop = parent->leaf_iter_vars[i];
      if (!shared || !ThreadOf(parent, loop).starts_with("threadIdx.")) p->around.insert(loop->var.get());
    }
    p->chain.push_back({parent, at});
    stage = parent;
  }
}

void Placement::Region(Placed* p, const std::vector<Read>& reads, const Map<Var, PrimExpr>& leaves) {
  const Stage& stage = p->stage;
  const auto& [parent, place] = p->chain[0];
  if (reads.empty()) {
    Fail(fmt::format("`{}` is computed within a loop of `{}`, where nothing reads it", NameOf(stage), NameOf(parent)));
  }
  arith::Domains running;
  for (const auto& [var, extent] : leaves)
    if (!p->around.count(var.get())) running.Set(var, arith::IntervalSet(Int(0), Simplify(extent - 1)));
  std::vector<Bounds> whole(p->extents.size());
  for (const Read& read : reads) {
    const Placed& r = of(read.reader);
    const bool inside =
        read.reader.same_as(parent) || std::any_of(r.chain.begin(), r.chain.end(), [&](const auto& link) {
          return link.first.same_as(parent) && link.second >= place;
        });
    if (!inside) {
      Fail(fmt::format("`{}` is computed within loop `{}` of `{}`, and read outside of it, by `{}`", NameOf(stage),
                       NameOf(stage->attach_ivar), NameOf(parent), NameOf(read.reader)));
    }
    arith::Domains ranges = running;
    const Array<IterVar> axes = AxesOf(read.reader->op);
    for (size_t i = 0; i < axes.size(); ++i) {
      const bool own = i < r.first.size();
      const PrimExpr first = own ? r.first[i] : axes[i]->dom->min, size = own ? r.extents[i] : axes[i]->dom->extent;
      const arith::IntervalSet v = arith::EvalSet(r.value(axes[i]), running, &analyzer_);
      const arith::IntervalSet f = arith::EvalSet(first, running, &analyzer_);
      PrimExpr low = v->min_value, high = v->max_value;
      if (IsLimit(low) || IsLimit(high)) low = Int(0), high = Simplify(size - 1);
      if (IsLimit(f->min_value) || IsLimit(f->max_value)) {
        ranges.Set(axes[i]->var, arith::IntervalSet::Everything());
        continue;
      }
      const int64_t *most = tir::as_const_int(size), *last = tir::as_const_int(high);
      if (last && most && !low.same_as(high)) high = Int(std::min(*last, *most - 1));
      ranges.Set(axes[i]->var, arith::IntervalSet(Simplify(f->min_value + low), Simplify(f->max_value + high)));
    }
    for (size_t d = 0; d < read.load->indices.size(); ++d) {
      const arith::IntervalSet found = arith::EvalSet(read.load->indices[d], ranges, &analyzer_);
      whole[d].Add(found->min_value, found->max_value, &analyzer_);
    }
  }
  for (size_t d = 0; d < whole.size(); ++d) {
    if (whole[d].unknown) continue;
    const PrimExpr number = Simplify(whole[d].high - whole[d].low + 1);
    const int64_t *size = tir::as_const_int(number), *full = tir::as_const_int(p->extents[d]);
    if (!size || *size <= 0 || (full && *size >= *full)) continue;
    p->first.Set(static_cast<int64_t>(d), Simplify(whole[d].low));
    p->extents.Set(static_cast<int64_t>(d), Int(*size));
  }
}

void Placement::CheckKinds(const Placed& p) {
  const auto in_kernel = [&](const std::pair<Stage, size_t>& link) {
    const Array<IterVar>& loops = link.first->leaf_iter_vars;
    for (size_t i = 0; i <= link.second; ++i)
      if (!ThreadOf(link.first, loops[i]).empty()) return true;
    return false;
  };
  const bool of_thread = p.stage->scope != "shared" && std::any_of(p.chain.begin(), p.chain.end(), in_kernel);
  for (const IterVar& iv : p.stage->leaf_iter_vars) {
    if (const std::string tag = ThreadOf(p.stage, iv); of_thread && !tag.empty()) {
      Fail(
          fmt::format("`{}` of `{}` is bound to {} within a kernel, where each thread keeps a copy of `{}`: it would "
                      "compute a part of it alone; keep it in \"shared\" memory, or do not bind the loop",
                      NameOf(iv), NameOf(p.stage), tag, NameOf(p.stage)));
    }
    const IterVarAttr attr = AskedOf(p.stage, iv);
    if (!attr.defined()) continue;
    const bool vectorized = attr->iter_type == tir::IterVarType::kVectorized;
    if ((vectorized || attr->iter_type == tir::IterVarType::kUnrolled) && !tir::as_const_int(p.extent(iv))) {
      Fail(fmt::format("`{}` of `{}` has {} rounds, which is not known: it cannot be {}; split it by a number",
                       NameOf(iv), NameOf(p.stage), tir::AsText(p.extent(iv)), vectorized ? "vectorized" : "unrolled"));
    }
  }
}

PrimExpr Placement::ThreadExtent(const Placed& p, const IterVar& iv) {
  const std::string tag = ThreadOf(p.stage, iv);
  PrimExpr most = p.extent(iv);
  for (const Stage& s : live_) {
    const Placed& other = of(s);
    if (!other.root().same_as(p.root())) continue;
    for (const IterVar& loop : s->leaf_iter_vars) {
      if (ThreadOf(s, loop) != tag) continue;
      const IterVar thread = AskedOf(s, loop)->bind_thread;
      for (const PrimExpr& e : {other.extent(loop), thread->dom.defined() ? thread->dom->extent : PrimExpr()}) {
        const int64_t *a = e.defined() ? tir::as_const_int(e) : nullptr, *b = tir::as_const_int(most);
        if (a && b && *a > *b) most = Int(*a);
      }
    }
  }
  return most;
}

}  // namespace baton::te

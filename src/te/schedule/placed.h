// SPDX-License-Identifier: Apache-2.0
// Placed stages: which elements of each tensor are computed where.
#pragma once

#include <baton/arith/analyzer.h>
#include <baton/te/schedule.h>
#include <baton/tir/functor.h>
#include <baton/tir/op.h>

#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace baton::te {

/// A stage, the loops that it has, and for each dimension of its tensor the first element that is computed and their
/// number.
struct Placed {
  Stage stage;
  Array<PrimExpr> body;  ///< with what is inline put in its place
  Array<PrimExpr> first;
  Array<PrimExpr> extents;
  StageLoops loops;
  Array<tir::Buffer> buffers;
  /// Variables of the loops around it that its elements depend on, and the stages and loops that it is computed in,
  /// outermost last.
  std::unordered_set<const Object*> around;
  std::vector<std::pair<Stage, size_t>> chain;
  /// Variables of threads, by the variables of the loops that they run.
  tir::VarMap threads;

  PrimExpr extent(const IterVar& iv) const { return loops->extents.at(iv->var); }
  PrimExpr value(const IterVar& iv) const { return loops->values.at(iv->var); }
  const Stage& root() const { return chain.empty() ? stage : chain.back().first; }
};

inline PrimExpr Int(int64_t v) { return tir::make_int(DataType::Int(64), v); }
inline IterVarAttr AskedOf(const Stage& stage, const IterVar& iv) {
  return stage->iter_var_attrs.Get(iv, IterVarAttr());
}
/// The tag of the axis of threads that runs a loop, as "threadIdx.x"; "" for none, and for virtual threads.
inline std::string ThreadOf(const Stage& stage, const IterVar& iv) {
  const IterVarAttr attr = AskedOf(stage, iv);
  const std::string tag = attr.defined() ? attr->thread_tag.str() : std::string();
  return tag.starts_with("blockIdx.") || tag.starts_with("threadIdx.") ? tag : std::string();
}

/// The placed stages of a schedule that are stored, producers first. `given`: whether the schedule's caller has buffers
/// of an operation's tensors. Throws ValueError where a stage is placed where it cannot be computed.
class Placement {
 public:
  Placement(const Schedule& schedule, const std::unordered_set<const Object*>& given);

  Placed& of(const Stage& stage) { return placed_.at(stage.get()); }
  const std::vector<Stage>& live() const { return live_; }
  /// The stages that are computed in a loop.
  const std::vector<Stage>& within(const IterVar& iv) { return children_[iv->var.get()]; }
  PrimExpr Simplify(const PrimExpr& e) { return analyzer_.Simplify(e); }
  const Schedule& schedule() const { return schedule_; }
  /// Rounds that an axis of threads has in the kernel of a stage, where its loops there differ; else the loop's own.
  PrimExpr ThreadExtent(const Placed& p, const IterVar& iv);

 private:
  struct Read {
    Stage reader;
    tir::ProducerLoad load;
  };
  struct Bounds;
  void Inline(const std::unordered_set<const Object*>& given);
  void Chain(Placed* p);
  void Region(Placed* p, const std::vector<Read>& reads, const Map<Var, PrimExpr>& leaves);
  void CheckKinds(const Placed& p);

  Schedule schedule_;
  arith::Analyzer analyzer_;
  std::unordered_map<const Object*, Placed> placed_;
  std::vector<Stage> live_;
  std::unordered_map<const Object*, std::vector<Stage>> children_;
};

}  // namespace baton::te

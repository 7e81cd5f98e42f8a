// SPDX-License-Identifier: Apache-2.0
// Questions about, and changes of, a whole schedule.
#include <baton/tir/op.h>

#include <algorithm>

#include "te/schedule/lowering.h"
#include "te/schedule/reads.h"
#include "te/schedule/stage.h"

namespace baton::te {

Map<IterVar, Range> InferBound(const Schedule& schedule) {
  std::unordered_set<const Object*> given;
  for (const Stage& s : schedule->stages)
    if (s->is_input) given.insert(s->origin_op.get());
  Placement placement(schedule, given);
  Map<IterVar, Range> out;
  for (const Stage& stage : placement.live()) {
    const Placed& p = placement.of(stage);
    const Array<IterVar> axes = AxesOf(stage->op);
    for (const IterVar& iv : stage->all_iter_vars) {
      PrimExpr first = tir::make_int(DataType::Int(64), 0);
      for (size_t i = 0; i < axes.size(); ++i)
        if (axes[i]->var.same_as(iv->var)) first = i < p.first.size() ? p.first[i] : axes[i]->dom->min;
      RangeNode r;
      r.min = first, r.extent = p.extent(iv);
      out.Set(iv, Range(std::move(r)));
    }
  }
  return out;
}

void AutoInline(const Schedule& schedule, Inlined which) {
  for (const Stage& stage : schedule->stages) {
    if (stage->body.empty() || stage->is_output || stage.is_reduction() || stage->attach_type != AttachType::kRoot)
      continue;
    const Array<IterVar>& own = stage->op.as<ComputeOpNode>()->axis;
    const std::vector<tir::ProducerLoad> loads = Loads(stage->body);
    const bool fits = std::all_of(loads.begin(), loads.end(), [&](const tir::ProducerLoad& load) {
      if (which == Inlined::kOwnIndices && load->indices.size() != own.size()) return false;
      size_t next = 0;
      for (size_t d = 0; which != Inlined::kAll && d < load->indices.size(); ++d) {
        const PrimExpr& index = load->indices[d];
        if (which == Inlined::kOwnInOrder && tir::as_const_int(index)) continue;
        while (next < own.size() && !own[next]->var.same_as(index) && which == Inlined::kOwnInOrder) ++next;
        if (next == own.size() || !own[next]->var.same_as(index)) return false;
        if (which == Inlined::kOwnIndices) ++next;
      }
      return true;
    });
    if (fits) ComputeInline(stage);
  }
}

}  // namespace baton::te

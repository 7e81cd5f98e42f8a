// SPDX-License-Identifier: Apache-2.0
// Schedules, for front ends.
#include <baton/runtime/registry.h>
#include <fmt/format.h>

#include "te/schedule/lowering.h"
#include "te/schedule/schedule.h"
#include "te/schedule/stage.h"

namespace baton::te {
namespace {

BATON_REGISTER_GLOBAL("te.CreateSchedule").set_body_typed([](Array<Operation> outputs, Array<Operation> given) {
  return CreateSchedule(outputs, given);
});
BATON_REGISTER_GLOBAL("te.ScheduleFind").set_body_typed([](Schedule s, Operation op) { return s.Find(op); });
BATON_REGISTER_GLOBAL("te.ScheduleGet").set_body_typed([](Schedule s, Operation op) { return s[op]; });
BATON_REGISTER_GLOBAL("te.ScheduleCacheWrite").set_body_typed([](Schedule s, Array<Tensor> tensors, String scope) {
  return CacheWrite(s, tensors, scope);
});
BATON_REGISTER_GLOBAL("te.ScheduleCacheRead")
    .set_body_typed([](Schedule s, Tensor tensor, String scope, Array<Operation> readers) {
      return CacheRead(s, tensor, scope, readers);
    });
BATON_REGISTER_GLOBAL("te.ScheduleRfactor").set_body_typed([](Schedule s, Tensor tensor, IterVar axis, int64_t at) {
  return Rfactor(s, tensor, axis, at);
});
BATON_REGISTER_GLOBAL("te.ScheduleGroup")
    .set_body_typed([](Schedule s, Array<Operation> outputs, Array<Operation> inputs, bool include_inputs) {
      return CreateGroup(s, outputs, inputs, include_inputs);
    });
BATON_REGISTER_GLOBAL("te.PostOrder").set_body_typed([](Array<Operation> outputs, Array<Operation> given) {
  return PostOrder(outputs, given);
});

BATON_REGISTER_GLOBAL("te.StageSplit")
    .set_body_typed([](Stage stage, IterVar parent, PrimExpr factor, PrimExpr nparts) {
      const auto [outer, inner] = SplitLoop(stage, parent, factor, nparts);
      return Array<IterVar>{outer, inner};
    });
BATON_REGISTER_GLOBAL("te.StageFuse").set_body_typed([](Stage stage, Array<IterVar> loops) {
  return FuseLoops(stage, loops);
});
BATON_REGISTER_GLOBAL("te.StageReorder").set_body_typed([](Stage stage, Array<IterVar> loops) {
  Reorder(stage, loops);
});
BATON_REGISTER_GLOBAL("te.StagePlace").set_body_typed([](Stage stage, IterVar iv) {
  return static_cast<int64_t>(PlaceOf(stage, iv));
});
BATON_REGISTER_GLOBAL("te.StageMark").set_body_typed([](Stage stage, IterVar iv, int64_t type) {
  MarkLoop(stage, iv, static_cast<tir::IterVarType>(type));
});
BATON_REGISTER_GLOBAL("te.StageBind").set_body_typed([](Stage stage, IterVar iv, IterVar thread, String tag) {
  Bind(stage, iv, thread, tag);
});
BATON_REGISTER_GLOBAL("te.StageTensorize").set_body_typed([](Stage stage, IterVar iv, TensorIntrin intrin) {
  Tensorize(stage, iv, intrin);
});
BATON_REGISTER_GLOBAL("te.StageComputeAt").set_body_typed([](Stage stage, Stage parent, IterVar scope) {
  ComputeAt(stage, parent, scope);
});
BATON_REGISTER_GLOBAL("te.StageComputeInline").set_body_typed([](Stage stage) { ComputeInline(stage); });
BATON_REGISTER_GLOBAL("te.StageComputeRoot").set_body_typed([](Stage stage) { ComputeRoot(stage); });
BATON_REGISTER_GLOBAL("te.StageSetScope").set_body_typed([](Stage stage, String scope) { stage.mut()->scope = scope; });
BATON_REGISTER_GLOBAL("te.StagePragma").set_body_typed([](Stage stage, IterVar iv, PrimExpr key, PrimExpr value) {
  IterVarAttrNode* attr = AttrsOf(stage, iv);
  for (size_t i = 0; i < attr->pragma_keys.size(); ++i) {
    const auto *a = attr->pragma_keys[i].as<tir::StringImmNode>(), *b = key.as<tir::StringImmNode>();
    if (a && b && a->value == b->value) {
      attr->pragma_values.Set(static_cast<int64_t>(i), value);
      return;
    }
  }
  attr->pragma_keys.push_back(key), attr->pragma_values.push_back(value);
});
BATON_REGISTER_GLOBAL("te.StagePrefetch").set_body_typed([](Stage stage, Tensor t, IterVar iv, PrimExpr offset) {
  IterVarAttrNode* attr = AttrsOf(stage, iv);
  attr->prefetch_data.push_back(t), attr->prefetch_offset.push_back(offset);
});
BATON_REGISTER_GLOBAL("te.StageStorageAlign")
    .set_body_typed([](Stage stage, IterVar axis, int64_t factor, int64_t offset) {
      if (factor < 1)
        throw runtime::ValueError(
            fmt::format("storage_align of `{}`: factor is {}, it is 1 or more", NameOf(axis), factor));
      IterVarAttrNode* attr = AttrsOf(stage, axis);
      attr->dim_align_factor = factor, attr->dim_align_offset = offset;
    });
BATON_REGISTER_GLOBAL("te.StageDoubleBuffer").set_body_typed([](Stage stage) { stage.mut()->double_buffer = true; });
BATON_REGISTER_GLOBAL("te.StageEnvThreads").set_body_typed([](Stage stage, Array<IterVar> threads) {
  stage.mut()->env_threads = threads;
});
BATON_REGISTER_GLOBAL("te.StageStorePredicate").set_body_typed([](Stage stage, PrimExpr predicate) {
  stage.mut()->store_predicate = predicate;
});
BATON_REGISTER_GLOBAL("te.ScheduleToPrimFunc")
    .set_body_typed([](Schedule s, Array<ObjectRef> args, String name, Array<ObjectRef> buffers) {
      return ScheduleToPrimFunc(s, args, name, buffers);
    });
BATON_REGISTER_GLOBAL("te.InferBound").set_body_typed([](Schedule s) { return InferBound(s); });
BATON_REGISTER_GLOBAL("te.AutoInline").set_body_typed([](Schedule s, int64_t which) {
  AutoInline(s, static_cast<Inlined>(which));
});
BATON_REGISTER_GLOBAL("te.ScanRows").set_body_typed([](Operation op, Array<tir::Buffer> ins, Array<tir::Buffer> outs) {
  StageNode n;
  n.op = n.origin_op = op;
  for (const Schedule& s : CellsOf(op)) n.cells.push_back(s);
  return ScanRows(Stage(std::move(n)), ins, outs);
});
BATON_REGISTER_GLOBAL("te.ScanCells").set_body_typed([](Operation op) { return CellsOf(op); });
BATON_REGISTER_GLOBAL("te.StageText").set_body_typed([](Stage stage) { return StageText(stage); });
BATON_REGISTER_GLOBAL("te.StageLoops").set_body_typed([](Stage stage, Map<Var, PrimExpr> extents) {
  return extents.defined() && !extents.empty() ? LoopsOf(stage, extents) : LoopsOf(stage);
});

}  // namespace
}  // namespace baton::te

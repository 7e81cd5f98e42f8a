// SPDX-License-Identifier: Apache-2.0
// Schedules, for front ends.
#include <baton/runtime/registry.h>
#include <fmt/format.h>

#include "te/schedule/lowering.h"
#include "te/schedule/schedule.h"
#include "te/schedule/stage.h"
#include "te/schedule/trace.h"

namespace baton::te {
namespace {

BATON_REGISTER_GLOBAL("te.CreateSchedule").set_body_typed([](Array<Operation> outputs, Array<Operation> given) {
  return CreateSchedule(outputs, given);
});
BATON_REGISTER_GLOBAL("te.ScheduleFind").set_body_typed([](Schedule s, Operation op) { return s.Find(op); });
BATON_REGISTER_GLOBAL("te.ScheduleGet").set_body_typed([](Schedule s, Operation op) { return s[op]; });
BATON_REGISTER_GLOBAL("te.ScheduleCacheWrite").set_body_typed([](Schedule s, Array<Tensor> tensors, String scope) {
  const Stage stage = s[tensors[0]->op];
  const Array<Tensor> made = CacheWrite(s, tensors, scope);
  Note(stage, "cache_write", "\"" + scope.str() + "\"");
  return made;
});
BATON_REGISTER_GLOBAL("te.ScheduleCacheRead")
    .set_body_typed([](Schedule s, Tensor tensor, String scope, Array<Operation> readers) {
      const Tensor made = CacheRead(s, tensor, scope, readers);
      std::string rest = std::to_string(tensor->value_index) + " \"" + scope.str() + "\"";
      for (const Operation& r : readers) rest += " " + s[r]->label.str();
      Note(s[tensor->op], "cache_read", rest);
      return made;
    });
BATON_REGISTER_GLOBAL("te.ScheduleRfactor").set_body_typed([](Schedule s, Tensor tensor, IterVar axis, int64_t at) {
  const Stage stage = s[tensor->op];
  const std::string rest = axis.defined() ? LoopLabel(stage, axis) + " " + std::to_string(at) : std::string();
  const Array<Tensor> made = Rfactor(s, tensor, axis, at);
  Note(stage, "rfactor", rest);
  return made;
});
BATON_REGISTER_GLOBAL("te.ScheduleGroup")
    .set_body_typed([](Schedule s, Array<Operation> outputs, Array<Operation> inputs, bool include_inputs) {
      return CreateGroup(s, outputs, inputs, include_inputs);
    });
BATON_REGISTER_GLOBAL("te.ScheduleReplay")
    .set_body_typed([](Schedule s, String text, Map<String, TensorIntrin> intrins) {
      ReplaySchedule(s, text, intrins);
    });
BATON_REGISTER_GLOBAL("te.PostOrder").set_body_typed([](Array<Operation> outputs, Array<Operation> given) {
  return PostOrder(outputs, given);
});

BATON_REGISTER_GLOBAL("te.StageSplit")
    .set_body_typed([](Stage stage, IterVar parent, PrimExpr factor, PrimExpr nparts) {
      const auto [outer, inner] = SplitLoop(stage, parent, factor, nparts);
      Note(stage, "split",
           LoopLabel(stage, parent) +
               (factor.defined() ? " factor " + StepText(factor) : " nparts " + StepText(nparts)));
      return Array<IterVar>{outer, inner};
    });
BATON_REGISTER_GLOBAL("te.StageFuse").set_body_typed([](Stage stage, Array<IterVar> loops) {
  const IterVar made = FuseLoops(stage, loops);
  Note(stage, "fuse", LoopLabels(stage, loops));
  return made;
});
BATON_REGISTER_GLOBAL("te.StageReorder").set_body_typed([](Stage stage, Array<IterVar> loops) {
  Reorder(stage, loops);
  Note(stage, "reorder", LoopLabels(stage, loops));
});
BATON_REGISTER_GLOBAL("te.StagePlace").set_body_typed([](Stage stage, IterVar iv) {
  return static_cast<int64_t>(PlaceOf(stage, iv));
});
BATON_REGISTER_GLOBAL("te.StageMark").set_body_typed([](Stage stage, IterVar iv, int64_t type) {
  MarkLoop(stage, iv, static_cast<tir::IterVarType>(type));
  Note(stage, type == 6 ? "vectorize" : type == 5 ? "unroll" : "parallel", LoopLabel(stage, iv));
});
BATON_REGISTER_GLOBAL("te.StageBind").set_body_typed([](Stage stage, IterVar iv, IterVar thread, String tag) {
  Bind(stage, iv, thread, tag);
  Note(stage, "bind",
       LoopLabel(stage, iv) + " " + tag.str() + (thread->dom.defined() ? " " + StepText(thread->dom->extent) : ""));
});
BATON_REGISTER_GLOBAL("te.StageTensorize").set_body_typed([](Stage stage, IterVar iv, TensorIntrin intrin) {
  Tensorize(stage, iv, intrin);
  Note(stage, "tensorize", LoopLabel(stage, iv) + " " + intrin->name.str());
});
BATON_REGISTER_GLOBAL("te.StageComputeAt").set_body_typed([](Stage stage, Stage parent, IterVar scope) {
  ComputeAt(stage, parent, scope);
  Note(stage, "compute_at", parent->label.str() + " " + LoopLabel(parent, scope));
});
BATON_REGISTER_GLOBAL("te.StageComputeInline").set_body_typed([](Stage stage) {
  ComputeInline(stage);
  Note(stage, "compute_inline");
});
BATON_REGISTER_GLOBAL("te.StageComputeRoot").set_body_typed([](Stage stage) {
  ComputeRoot(stage);
  Note(stage, "compute_root");
});
BATON_REGISTER_GLOBAL("te.StageSetScope").set_body_typed([](Stage stage, String scope) {
  stage.mut()->scope = scope;
  Note(stage, "set_scope", "\"" + scope.str() + "\"");
});
BATON_REGISTER_GLOBAL("te.StagePragma").set_body_typed([](Stage stage, IterVar iv, PrimExpr key, PrimExpr value) {
  SetPragma(stage, iv, key, value);
  Note(stage, "pragma", LoopLabel(stage, iv) + " " + StepText(key) + " " + StepText(value));
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
BATON_REGISTER_GLOBAL("te.StageDoubleBuffer").set_body_typed([](Stage stage) {
  stage.mut()->double_buffer = true;
  Note(stage, "double_buffer");
});
BATON_REGISTER_GLOBAL("te.StageEnvThreads").set_body_typed([](Stage stage, Array<IterVar> threads) {
  for (const IterVar& t : threads) {
    if (!t.defined() || t->iter_type != kThreadIndex || !t->dom.defined()) {
      throw runtime::TypeError(fmt::format(
          "env_threads of `{}` takes axes of threads of known extents, as te.thread_axis((0, 4), \"blockIdx.x\")",
          NameOf(stage)));
    }
  }
  stage.mut()->env_threads = threads;
  Note(stage, "env_threads");
});
BATON_REGISTER_GLOBAL("te.StageStorePredicate").set_body_typed([](Stage stage, PrimExpr predicate) {
  stage.mut()->store_predicate = predicate;
  Note(stage, "set_store_predicate", StepText(predicate));
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

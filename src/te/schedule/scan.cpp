// SPDX-License-Identifier: Apache-2.0
// Rows of scans.
#include <algorithm>
#include <unordered_map>

#include "te/schedule/schedule.h"
#include "te/schedule/stage.h"

namespace baton::te {
namespace {

/// Whether operations compute of the states of a scan, each asked once.
class Follows {
 public:
  explicit Follows(const Array<Tensor>& states) : states_(states) {}
  bool operator()(const Operation& op) {
    for (const Operation& o : PostOrder({op})) {
      bool follows = false;
      for (const Tensor& t : o.as<ComputeOpNode>() ? InputTensors(o) : Array<Tensor>()) {
        follows |= known_[t->op.get()] ||
                   std::any_of(states_.begin(), states_.end(), [&](const Tensor& s) { return SameTensor(s, t); });
      }
      known_[o.get()] = follows;
    }
    return known_[op.get()];
  }

 private:
  Array<Tensor> states_;
  std::unordered_map<const Object*, bool> known_;
};

Array<Operation> OpsOf(const Array<Tensor>& tensors) {
  Array<Operation> out;
  for (const Tensor& t : tensors) out.push_back(t->op);
  return out;
}

struct Scan {
  Array<Tensor> first, further, states, inputs;
  explicit Scan(const Operation& op)
      : first(Part(op, "scan_init")),
        further(Part(op, "scan_update")),
        states(Part(op, "scan_state")),
        inputs(op.as<ExternOpNode>()->inputs) {}
  static Array<Tensor> Part(const Operation& op, const char* name) { return op->attrs.at(name).As<Array<Tensor>>(); }
};

/// The statement that computes results by a schedule of rows.
tir::Stmt Rows(const Schedule& schedule, const Array<Tensor>& given, const Array<tir::Buffer>& of_given,
               const Array<Tensor>& results, const Array<tir::Buffer>& outs) {
  Array<ObjectRef> args, buffers;
  for (const Tensor& t : given) args.push_back(t);
  for (const Tensor& t : results) args.push_back(t);
  for (const tir::Buffer& b : of_given) buffers.push_back(b);
  for (const tir::Buffer& b : outs) buffers.push_back(b);
  return ScheduleToPrimFunc(schedule, args, "rows", buffers)->body;
}

}  // namespace

tir::Stmt ScanRows(const Stage& stage, const Array<tir::Buffer>& ins, const Array<tir::Buffer>& outs) {
  const Scan scan(stage->op);
  const auto cell = [&](int i) { return Downcast<Schedule>(stage->cells[i]); };
  Array<tir::Stmt> all = {Rows(cell(0), scan.inputs, ins, scan.first, outs)};
  Array<Tensor> given = scan.inputs;
  Array<tir::Buffer> of_given = ins;
  for (size_t i = 0; i < scan.states.size(); ++i) given.push_back(scan.states[i]), of_given.push_back(outs[i]);
  const tir::Stmt further = Rows(cell(1), given, of_given, scan.further, outs);
  const auto* seq = further.as<tir::SeqStmtNode>();
  // Row by row, all results.
  const Var row("t");
  Array<tir::Stmt> rows;
  PrimExpr extent;
  for (const tir::Stmt& s : seq ? seq->seq : Array<tir::Stmt>{further}) {
    const auto* loop = s.as<tir::ForNode>();
    const bool over_rows = loop && std::any_of(scan.further.begin(), scan.further.end(), [&](const Tensor& t) {
                             return t->op.as<ComputeOpNode>()->axis[0]->var.same_as(loop->loop_var);
                           });
    if (!over_rows) {
      rows = {};
      break;
    }
    extent = loop->extent;
    rows.push_back(tir::Substitute(loop->body, tir::VarMap{{loop->loop_var.get(), row}}));
  }
  if (rows.size() != scan.further.size()) {
    throw runtime::UnsupportedError(
        "scan: the loop over rows stays the outermost, and what is computed of the state stands within it");
  }
  const PrimExpr first = scan.first[0]->shape[0];
  tir::ForNode n;
  n.loop_var = row, n.min = cast(DataType::Int(64), first), n.extent = extent - first;
  n.body = rows.size() == 1 ? rows[0] : tir::SeqStmt(tir::SeqStmtNode{{}, rows});
  all.push_back(tir::For(std::move(n)));
  return tir::SeqStmt(tir::SeqStmtNode{{}, all});
}

Array<Schedule> CellsOf(const Operation& scan) {
  const Scan parts(scan);
  const Array<Tensor>&states = parts.states, &further = parts.further;
  Array<Operation> given = OpsOf(states);
  for (const Tensor& t : parts.inputs) given.push_back(t->op);
  const Schedule first = CreateSchedule(OpsOf(parts.first), given), rest = CreateSchedule(OpsOf(further), given);
  if (further.size() == 1) {  // what is computed of the state is computed row by row
    Follows follows(states);
    const Stage last = rest[further[0]->op];
    for (const Stage& stage : rest->stages) {
      if (!stage->body.empty() && !stage->is_output && follows(stage->op))
        ComputeAt(stage, last, last->leaf_iter_vars[0]);
    }
  }
  return {first, rest};
}

}  // namespace baton::te

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

}  // namespace

Array<Schedule> CellsOf(const Operation& scan) {
  const auto part = [&](const char* name) { return scan->attrs.at(name).As<Array<Tensor>>(); };
  const Array<Tensor> states = part("scan_state");
  Array<Operation> given = OpsOf(states);
  for (const Tensor& t : scan.as<ExternOpNode>()->inputs) given.push_back(t->op);
  const Array<Tensor> further = part("scan_update");
  const Schedule first = CreateSchedule(OpsOf(part("scan_init")), given), rest = CreateSchedule(OpsOf(further), given);
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

// SPDX-License-Identifier: Apache-2.0
// Operations of a group become stages: what is computed where it is read, and what is stored.
#pragma once

#include <baton/arith/analyzer.h>
#include <baton/te/tensor.h>

#include <memory>
#include <unordered_map>
#include <vector>

#include "te/lower/buffers.h"
#include "te/lower/loops.h"

namespace baton::te::lower {

struct OpInfo {
  Operation op;
  const ComputeOpNode* compute = nullptr;
  const ExternOpNode* external = nullptr;
  std::vector<Tensor> outs;  // its tensors that are read or that are outputs
  bool is_output = false;
  bool has_reduce = false;
  bool inlined = false;
  double own_cost = 0;  // of one element, without inlined producers
  double cost = 0;      // with them
  double evals = 0;     // elements that its readers ask for
  int read_by_extern = 0;
};

/// A loop nest that stores the results of one operation.
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
  Work work;
};

/// The operations of a group and the stages that they become, producers first.
struct StageGraph {
  std::vector<std::unique_ptr<OpInfo>> order;
  std::unordered_map<const Object*, OpInfo*> by_op;
  std::vector<std::unique_ptr<Stage>> stages;

  /// Calls f(tensor, indices) for each read of a stored tensor of the group (not of an input).
  template <class F>
  void ForStoredReads(const Stage& s, F f) const {
    auto visit = [&](const PrimExpr& e) {
      if (!e.defined()) return;
      tir::PostOrderVisitExpr(e, [&](const PrimExpr& x) {
        if (const auto* l = x.as<tir::ProducerLoadNode>()) {
          Tensor t = Downcast<Tensor>(l->producer);
          if (by_op.count(t->op.get())) f(t, l->indices);
        }
      });
    };
    for (const PrimExpr& v : s.values) visit(v);
    visit(s.condition);
  }
};

/// Shape of what the operation stores.
inline const Array<PrimExpr>& ShapeOf(const OpInfo* info) { return info->outs.at(0).shape(); }

StageGraph BuildStages(const Array<Tensor>& outputs, GroupBuffers* buffers);

}  // namespace baton::te::lower

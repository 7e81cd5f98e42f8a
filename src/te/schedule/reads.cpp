// SPDX-License-Identifier: Apache-2.0
#include "te/schedule/reads.h"

#include <baton/tir/functor.h>
#include <baton/tir/op.h>

#include <unordered_set>

namespace baton::te {
namespace {

class LoadReplacer : public tir::ExprMutator {
 public:
  explicit LoadReplacer(const LoadFn& f) : f_(f) {}

 private:
  using ExprMutator::VisitExpr_;
  PrimExpr VisitExpr_(const tir::ProducerLoadNode* op) final {
    return f_(Downcast<Tensor>(op->producer), VisitExprs(op->indices));
  }
  const LoadFn& f_;
};

/// Loops of a statement, those outside first.
class LoopFinder : public tir::StmtVisitor {
 public:
  std::vector<const tir::ForNode*> found;

 private:
  using StmtVisitor::VisitStmt_;
  void VisitStmt_(const tir::ForNode* op) final {
    found.push_back(op);
    StmtVisitor::VisitStmt_(op);
  }
};

PrimExpr Wide(const PrimExpr& e) { return e.dtype() == DataType::Int(64) ? e : cast(DataType::Int(64), e); }

}  // namespace

std::vector<PrimExpr> Parts(const Array<PrimExpr>& body) {
  std::vector<PrimExpr> out;
  for (const PrimExpr& e : body) {
    if (const auto* r = e.as<tir::ReduceNode>()) {
      for (const PrimExpr& s : r->source) out.push_back(s);
      if (r->condition.defined()) out.push_back(r->condition);
    } else {
      out.push_back(e);
    }
  }
  return out;
}

std::vector<tir::ProducerLoad> Loads(const Array<PrimExpr>& body) {
  std::vector<tir::ProducerLoad> found;
  for (const PrimExpr& e : Parts(body)) {
    std::unordered_set<const Object*> seen;
    tir::PostOrderVisitExpr(e, [&](const PrimExpr& x) {
      if (x.as<tir::ProducerLoadNode>() && seen.insert(x.get()).second) found.push_back(Downcast<tir::ProducerLoad>(x));
    });
  }
  return found;
}

PrimExpr MakeReduce(const tir::CommReducer& combiner, const Array<PrimExpr>& source, const Array<IterVar>& axis,
                    const PrimExpr& condition, int64_t value_index) {
  tir::ReduceNode r;
  r.dtype = source[value_index].dtype();
  r.combiner = combiner, r.axis = axis, r.source = source, r.condition = condition, r.value_index = value_index;
  return tir::Reduce(std::move(r));
}

PrimExpr ReplaceLoads(const PrimExpr& e, const LoadFn& f) {
  LoadReplacer replaced(f);
  const auto* r = e.as<tir::ReduceNode>();
  if (!r) return replaced(e);
  Array<PrimExpr> source;
  for (const PrimExpr& s : r->source) source.push_back(replaced(s));
  return MakeReduce(r->combiner, source, r->axis, r->condition.defined() ? replaced(r->condition) : r->condition,
                    r->value_index);
}

bool SameTensor(const Tensor& a, const Tensor& b) { return a->op.same_as(b->op) && a->value_index == b->value_index; }

Array<Tensor> TensorsRead(const Array<PrimExpr>& body) {
  Array<Tensor> out;
  for (const tir::ProducerLoad& load : Loads(body)) {
    const Tensor t = Downcast<Tensor>(load->producer);
    bool known = false;
    for (const Tensor& o : out) known |= SameTensor(o, t);
    if (!known) out.push_back(t);
  }
  return out;
}

Array<Tensor> InputTensors(const Operation& op) {
  if (const auto* c = op.as<ComputeOpNode>()) return TensorsRead(c->body);
  if (const auto* e = op.as<ExternOpNode>()) return e->inputs;
  return {};
}

Array<IterVar> AxesOf(const Operation& op) {
  Array<IterVar> axes;
  if (const auto* c = op.as<ComputeOpNode>()) {
    axes = c->axis;
    if (const auto* r = c->body[0].as<tir::ReduceNode>())
      for (const IterVar& k : r->axis) axes.push_back(k);
  } else if (const auto* e = op.as<ExternOpNode>(); e && e->attrs.count("script")) {
    LoopFinder loops;
    loops.VisitStmt(Downcast<tir::Stmt>(e->body));
    for (const tir::ForNode* f : loops.found) {
      RangeNode r;
      r.min = Wide(f->min), r.extent = Wide(f->extent);
      axes.push_back(IterVar(tir::IterVarNode{{}, Range(std::move(r)), f->loop_var, tir::IterVarType::kDataPar}));
    }
  }
  return axes;
}

Array<Operation> PostOrder(const Array<Operation>& outputs, const Array<Operation>& given) {
  std::unordered_set<const Object*> boundary, done;
  for (const Operation& op : given) boundary.insert(op.get());
  Array<Operation> order;
  struct Entry {
    Operation op;
    bool ready;
  };
  std::vector<Entry> stack;
  for (size_t i = outputs.size(); i-- > 0;) stack.push_back({outputs[i], false});
  while (!stack.empty()) {
    const Entry top = stack.back();
    stack.pop_back();
    if (top.ready) {
      order.push_back(top.op);
    } else if (done.insert(top.op.get()).second) {
      stack.push_back({top.op, true});
      if (boundary.count(top.op.get())) continue;
      const Array<Tensor> read = InputTensors(top.op);
      for (size_t i = read.size(); i-- > 0;)
        if (!done.count(read[i]->op.get())) stack.push_back({read[i]->op, false});
    }
  }
  return order;
}

}  // namespace baton::te

// SPDX-License-Identifier: Apache-2.0
#include "te/schedule/lowering.h"

#include <baton/tir/op.h>
#include <baton/tir/stmt.h>
#include <fmt/format.h>

#include <algorithm>

#include "te/schedule/reads.h"
#include "te/schedule/stage.h"
#include "tir/thread_axes.h"

namespace baton::te {
namespace {

constexpr int64_t kStack = 16 << 10;  // bytes of a buffer within loops that may be on a task's stack

PrimExpr Zero() { return tir::make_int(DataType::Int(64), 0); }
tir::Stmt For(const Var& var, const PrimExpr& extent, tir::ForKind kind, tir::Stmt body,
              const Map<String, runtime::Any>& notes = {}) {
  tir::ForNode n;
  n.loop_var = var, n.min = Zero(), n.extent = extent, n.kind = kind, n.body = std::move(body), n.annotations = notes;
  return tir::For(std::move(n));
}
tir::Stmt Store(const tir::Buffer& buffer, const PrimExpr& value, const Array<PrimExpr>& at) {
  tir::BufferStoreNode n;
  n.buffer = buffer, n.value = value, n.indices = at;
  return tir::BufferStore(std::move(n));
}
tir::Stmt Sequence(const Array<tir::Stmt>& seq) {
  return seq.size() == 1 ? seq[0] : tir::SeqStmt(tir::SeqStmtNode{{}, seq});
}
tir::Stmt Mark(const ObjectRef& node, const char* key, const PrimExpr& value, tir::Stmt body) {
  tir::AttrStmtNode n;
  n.node = node, n.attr_key = key, n.value = value, n.body = std::move(body);
  return tir::AttrStmt(std::move(n));
}
tir::Stmt AllocateAround(const tir::Buffer& buffer, tir::Stmt body) {
  tir::AllocateNode n;
  n.buffer = buffer, n.body = std::move(body);
  return tir::Allocate(std::move(n));
}

tir::Stmt Update(const tir::ReduceNode* reduce, const Array<PrimExpr>& sources, const std::vector<tir::Buffer>& to,
                 const Array<PrimExpr>& at) {
  const tir::CommReducer& combiner = reduce->combiner;
  Map<Var, PrimExpr> mapping;
  for (size_t k = 0; k < to.size(); ++k) {
    mapping.Set(combiner->lhs[k], tir::BufferLoad(to[k], at));
    mapping.Set(combiner->rhs[k], sources[k]);
  }
  Array<PrimExpr> results;
  for (const PrimExpr& e : combiner->result) results.push_back(tir::Substitute(e, mapping));
  if (results.size() == 1) return Store(to[0], results[0], at);
  // All are read before any is written.
  Array<Var> vars;
  Array<tir::Stmt> stores;
  for (size_t k = 0; k < results.size(); ++k) {
    vars.push_back(Var(String("v" + std::to_string(k)), results[k].dtype()));
    stores.push_back(Store(to[k], vars[k], at));
  }
  tir::Stmt body = tir::SeqStmt(tir::SeqStmtNode{{}, stores});
  for (size_t k = results.size(); k-- > 0;) {
    tir::LetStmtNode n;
    n.var = vars[k], n.value = results[k], n.body = std::move(body);
    body = tir::LetStmt(std::move(n));
  }
  return body;
}

}  // namespace

tir::ForKind KindOfLoop(const IterVarAttr& attr) {
  if (!attr.defined()) return tir::ForKind::kSerial;
  switch (attr->iter_type) {
    case tir::IterVarType::kParallelized:
      return tir::ForKind::kParallel;
    case tir::IterVarType::kVectorized:
      return tir::ForKind::kVectorized;
    case tir::IterVarType::kUnrolled:
      return tir::ForKind::kUnrolled;
    default:
      return tir::ForKind::kSerial;
  }
}

Map<String, runtime::Any> AnnotationsOf(const IterVarAttr& attr) {
  Map<String, runtime::Any> notes;
  for (size_t i = 0; attr.defined() && i < attr->pragma_keys.size(); ++i) {
    notes.Set("pragma_" + attr->pragma_keys[i].as<tir::StringImmNode>()->value.str(),
              runtime::Any(attr->pragma_values[i]));
  }
  return notes;
}

tir::Stmt IfAll(const std::vector<PrimExpr>& conditions, tir::Stmt body) {
  PrimExpr all;
  for (const PrimExpr& c : conditions) all = all.defined() ? all && c : c;
  if (!all.defined()) return body;
  tir::IfThenElseNode n;
  n.condition = all, n.then_case = std::move(body);
  return tir::IfThenElse(std::move(n));
}

tir::Stmt LoopWriter::Write() {
  std::vector<Stage> roots;
  for (const Stage& stage : placement_->live()) {
    Placed& p = placement_->of(stage);
    if (p.chain.empty()) roots.push_back(stage);
    MakeBuffers(&p);
    MakeThreads(&p);
  }
  Array<tir::Stmt> all;
  for (const Stage& stage : roots) {
    tir::Stmt loops = StageLoops(stage);
    for (size_t i = stage->env_threads.size(); i-- > 0;) {
      const IterVar& thread = stage->env_threads[i];
      loops = Mark(Var(thread->var->name_hint, DataType::Int(32)), tir::kThreadExtent,
                   cast(DataType::Int(32), thread->dom->extent), std::move(loops));
    }
    all.push_back(loops);
  }
  tir::Stmt body = Sequence(all);
  for (size_t i = roots.size(); i-- > 0;) body = Allocated(roots[i], std::move(body));
  return body;
}

void LoopWriter::MakeBuffers(Placed* p) {
  const Stage& stage = p->stage;
  const auto known = [&](size_t k) {
    const auto it = given_.find({stage->origin_op.get(), static_cast<int64_t>(k)});
    return it == given_.end() ? tir::Buffer() : it->second;
  };
  if (stage.is_statement()) {
    const Array<tir::Buffer> outs = stage->op.as<ExternOpNode>()->output_buffers;
    for (size_t k = 0; k < outs.size(); ++k) {
      const tir::Buffer b = known(k);
      p->buffers.push_back(b.defined() ? b : tir::Buffer::Make(outs[k]->shape, outs[k]->dtype, stage->op->name));
    }
    return;
  }
  for (size_t k = 0; k < stage->body.size(); ++k) {
    const DataType t = stage->body[k].dtype();
    String scope = stage->scope == "shared" ? "shared" : "";
    int64_t size = std::max(1, t.bits() / 8);
    bool is_known = true;
    for (const PrimExpr& e : p->extents) {
      const int64_t* n = tir::as_const_int(e);
      is_known &= n != nullptr;
      if (n) size *= *n;
    }
    if (scope.empty() && !p->chain.empty() && is_known && size <= kStack) scope = "local";
    const tir::Buffer b = known(k);
    p->buffers.push_back(b.defined() ? b : tir::Buffer::Make(p->extents, t, stage->op->name, scope));
  }
}

void LoopWriter::MakeThreads(Placed* p) {
  for (const IterVar& iv : p->stage->leaf_iter_vars) {
    const std::string tag = ThreadOf(p->stage, iv);
    if (tag.empty()) continue;
    const Var thread(String(tag), DataType::Int(32));
    p->threads[iv->var.get()] = thread;
    const Var& of_program = AskedOf(p->stage, iv)->bind_thread->var;
    if (!threads_.count(of_program.get()) || p->chain.empty()) threads_[of_program.get()] = thread;
  }
}

tir::Stmt LoopWriter::Allocated(const Stage& stage, tir::Stmt body) {
  const Placed& p = placement_->of(stage);
  for (size_t k = 0; k < p.buffers.size(); ++k)
    if (!given_.count({stage->origin_op.get(), static_cast<int64_t>(k)}))
      body = AllocateAround(p.buffers[k], std::move(body));
  return body;
}

tir::Stmt LoopWriter::Within(const IterVar& iv, tir::Stmt body) {
  const std::vector<Stage> children = placement_->within(iv);
  Array<tir::Stmt> all;
  for (const Stage& child : children) all.push_back(StageLoops(child));
  all.push_back(std::move(body));
  body = Sequence(all);
  for (size_t i = children.size(); i-- > 0;) body = Allocated(children[i], std::move(body));
  return body;
}

tir::Stmt LoopWriter::Loop(const Placed& p, const IterVar& iv, tir::Stmt body, const Var& variable) {
  const IterVarAttr attr = AskedOf(p.stage, iv);
  const Var var = variable.defined() ? variable : iv->var;
  if (const auto it = p.threads.find(iv->var.get()); it != p.threads.end()) {
    const Var thread =
        variable.defined() ? Var(Downcast<Var>(it->second)->name_hint, DataType::Int(32)) : Downcast<Var>(it->second);
    const PrimExpr all = placement_->ThreadExtent(p, iv), own = p.extent(iv);
    body = tir::Substitute(body, tir::VarMap{{var.get(), cast(DataType::Int(64), thread)}});
    if (!tir::is_const_int(placement_->Simplify(all - own), 0))
      body = IfAll({thread < cast(DataType::Int(32), own)}, std::move(body));
    return Mark(thread, tir::kThreadExtent, cast(DataType::Int(32), all), std::move(body));
  }
  return For(var, p.extent(iv), KindOfLoop(attr), std::move(body), AnnotationsOf(attr));
}

tir::Buffer LoopWriter::BufferOf(const Tensor& tensor) {
  const Stage stage = placement_->schedule()[tensor->op];
  return stage->is_input ? given_.at({stage->origin_op.get(), tensor->value_index})
                         : placement_->of(stage).buffers[tensor->value_index];
}

PrimExpr LoopWriter::Element(const Tensor& tensor, const Array<PrimExpr>& indices) {
  const Stage stage = placement_->schedule()[tensor->op];
  if (stage->is_input || stage.is_statement()) return tir::BufferLoad(BufferOf(tensor), indices);
  const Placed& p = placement_->of(stage);
  Array<PrimExpr> at;
  for (size_t i = 0; i < indices.size(); ++i) at.push_back(placement_->Simplify(indices[i] - p.first[i]));
  return tir::BufferLoad(p.buffers[tensor->value_index], at);
}

PrimExpr LoopWriter::Expr(const Placed& p, const PrimExpr& e) {
  Map<Var, PrimExpr> values;
  const Array<IterVar> axes = AxesOf(p.stage->op);
  for (size_t i = 0; i < axes.size(); ++i) {
    const PrimExpr first = i < p.first.size() ? p.first[i] : axes[i]->dom->min;
    values.Set(axes[i]->var, placement_->Simplify(first + p.value(axes[i])));
  }
  return ReplaceLoads(tir::Substitute(e, values),
                      [&](const Tensor& t, const Array<PrimExpr>& indices) { return Element(t, indices); });
}

tir::Stmt LoopWriter::Stores(const Placed& p, const Array<PrimExpr>& values, const Array<PrimExpr>& at) {
  Array<tir::Stmt> all;
  for (size_t k = 0; k < p.buffers.size(); ++k) all.push_back(Store(p.buffers[k], values[k], at));
  return Sequence(all);
}

PrimExpr LoopWriter::StorePredicate(const Placed& p) {
  tir::VarMap known = threads_;
  for (const IterVar& iv : p.stage->leaf_iter_vars) {
    if (const auto it = p.threads.find(iv->var.get()); it != p.threads.end())
      known[AskedOf(p.stage, iv)->bind_thread->var.get()] = it->second;
  }
  return tir::Substitute(p.stage->store_predicate, known);
}

tir::Stmt LoopWriter::StageLoops(const Stage& stage) {
  const Placed& p = placement_->of(stage);
  if (stage.is_statement()) return Statement(p);
  Array<PrimExpr> at;
  for (const IterVar& a : stage->op.as<ComputeOpNode>()->axis) at.push_back(p.value(a));
  std::vector<PrimExpr> own;
  for (const PrimExpr& c : p.loops.Conditions(false)) own.push_back(c);
  for (const PrimExpr& c : Inside(p)) own.push_back(c);
  if (stage->store_predicate.defined()) own.push_back(StorePredicate(p));
  const Array<IterVar>& leaves = stage->leaf_iter_vars;
  for (size_t i = 0; i < leaves.size(); ++i) {
    const IterVarAttr attr = AskedOf(stage, leaves[i]);
    if (attr.defined() && attr->tensor_intrin.defined()) return Tensorized(p, i);
  }
  if (stage.is_reduction()) return Reduction(p, at, own);
  Array<PrimExpr> values;
  for (const PrimExpr& e : p.body) values.push_back(Expr(p, e));
  tir::Stmt body = IfAll(own, Stores(p, values, at));
  for (size_t i = leaves.size(); i-- > 0;) body = Loop(p, leaves[i], Within(leaves[i], std::move(body)));
  return body;
}

tir::Stmt LoopWriter::Reduction(const Placed& p, const Array<PrimExpr>& at, const std::vector<PrimExpr>& own) {
  const Array<IterVar>& leaves = p.stage->leaf_iter_vars;
  size_t first = 0;
  while (!IsReduce(leaves[first])) ++first;
  for (size_t i = first; i < leaves.size(); ++i)
    if (IsReduce(leaves[i]) && p.threads.count(leaves[i]->var.get())) return ThreadReduction(p, at, own, first);
  const auto* reduce = p.body[0].as<tir::ReduceNode>();
  std::vector<PrimExpr> conditions = own;
  for (const PrimExpr& c : p.loops.Conditions(true)) conditions.push_back(c);
  if (reduce->condition.defined()) {
    const PrimExpr c = Expr(p, reduce->condition);
    if (!tir::is_const_int(c, 1)) conditions.push_back(c);
  }
  Array<PrimExpr> sources;
  for (const PrimExpr& e : reduce->source) sources.push_back(Expr(p, e));
  const std::vector<tir::Buffer> to(p.buffers.begin(), p.buffers.end());
  tir::Stmt update = IfAll(conditions, Update(reduce, sources, to, at));
  for (size_t i = leaves.size(); i-- > first;) update = Loop(p, leaves[i], Within(leaves[i], std::move(update)));
  tir::Stmt begin = IfAll(own, Stores(p, reduce->combiner->identity_element, at));
  for (size_t i = leaves.size(); i-- > first;) {
    if (IsReduce(leaves[i])) continue;
    const Var fresh(String(std::string(NameOf(leaves[i])) + ".init"), leaves[i]->var.dtype());
    begin = Loop(p, leaves[i], tir::Substitute(begin, tir::VarMap{{leaves[i]->var.get(), fresh}}), fresh);
  }
  tir::Stmt body = Sequence({begin, update});
  for (size_t i = first; i-- > 0;) body = Loop(p, leaves[i], Within(leaves[i], std::move(body)));
  return body;
}

/// A reduction whose loops are run by threads: each reduces its part, then all parts are combined.
tir::Stmt LoopWriter::ThreadReduction(const Placed& p, const Array<PrimExpr>& at, const std::vector<PrimExpr>& own,
                                      size_t first) {
  const Array<IterVar>& leaves = p.stage->leaf_iter_vars;
  const auto* reduce = p.body[0].as<tir::ReduceNode>();
  for (size_t i = first; i < leaves.size(); ++i) {
    if (!IsReduce(leaves[i])) {
      Fail(fmt::format("`{}` of `{}` is within a loop of the reduction that threads run; reorder it to the outside",
                       NameOf(leaves[i]), NameOf(p.stage)));
    }
  }
  std::vector<tir::Buffer> parts, results;
  const Array<PrimExpr> one = {Zero()};
  Array<PrimExpr> args = {tir::make_int(DataType::UInt(32), static_cast<int64_t>(reduce->source.size()))};
  Array<tir::Stmt> begin, stores;
  for (size_t k = 0; k < reduce->source.size(); ++k) {
    const DataType t = reduce->source[k].dtype();
    const Array<PrimExpr> shape = {tir::make_int(DataType::Int(64), 1)};
    parts.push_back(tir::Buffer::Make(shape, t, p.stage->op->name.str() + ".part", "local"));
    results.push_back(tir::Buffer::Make(shape, t, p.stage->op->name.str() + ".all", "local"));
    begin.push_back(Store(parts[k], reduce->combiner->identity_element[k], one));
    stores.push_back(Store(p.buffers[k], tir::BufferLoad(results[k], one), at));
    args.push_back(tir::BufferLoad(parts[k], one));
  }
  std::vector<PrimExpr> conditions;
  for (const PrimExpr& c : p.loops.Conditions(false)) conditions.push_back(c);
  for (const PrimExpr& c : p.loops.Conditions(true)) conditions.push_back(c);
  if (reduce->condition.defined() && !tir::is_const_int(reduce->condition, 1))
    conditions.push_back(Expr(p, reduce->condition));
  Array<PrimExpr> sources;
  for (const PrimExpr& e : reduce->source) sources.push_back(Expr(p, e));
  tir::Stmt update = IfAll(conditions, Update(reduce, sources, parts, one));
  args.push_back(tir::make_int(DataType::Bool(), 1));
  for (const tir::Buffer& b : results) args.push_back(tir::BufferLoad(b, one));
  std::vector<IterVar> bound;
  for (size_t i = leaves.size(); i-- > first;) {
    if (p.threads.count(leaves[i]->var.get())) {
      bound.push_back(leaves[i]);
      update = Within(leaves[i], std::move(update));
    } else {
      update = Loop(p, leaves[i], Within(leaves[i], std::move(update)));
    }
  }
  for (const IterVar& iv : bound) args.push_back(p.threads.at(iv->var.get()));
  const tir::Stmt combine = tir::Allreduce(reduce->combiner, args);
  tir::Stmt body = Sequence({Sequence(begin), update, combine, IfAll(own, Sequence(stores))});
  for (size_t k = parts.size(); k-- > 0;) body = AllocateAround(parts[k], AllocateAround(results[k], std::move(body)));
  for (const IterVar& iv : bound) body = Loop(p, iv, std::move(body));
  for (size_t i = first; i-- > 0;) body = Loop(p, leaves[i], Within(leaves[i], std::move(body)));
  return body;
}

/// Conditions that keep a loop's stores within the tensor, where they are not implied.
std::vector<PrimExpr> LoopWriter::Inside(const Placed& p) {
  std::vector<PrimExpr> out;
  if (p.chain.empty()) return out;
  const Array<IterVar>& axis = p.stage->op.as<ComputeOpNode>()->axis;
  for (size_t d = 0; d < axis.size(); ++d) {
    if (tir::is_zero(p.first[d])) continue;
    arith::Analyzer analyzer;
    const Var some("some");
    analyzer.Bind(some, Zero(), p.extents[d]);
    for (const Stage& reader : placement_->live()) {
      const Placed& r = placement_->of(reader);
      for (const IterVar& iv : reader->leaf_iter_vars)
        if (p.around.count(iv->var.get())) analyzer.Bind(iv->var, Zero(), r.extent(iv));
    }
    const PrimExpr index = p.first[d] + p.value(axis[d]);
    if (!analyzer.CanProve(p.first[d] + some < axis[d]->dom->extent)) out.push_back(index < axis[d]->dom->extent);
    if (!analyzer.CanProve(p.first[d] + some >= 0)) out.push_back(index >= 0);
  }
  return out;
}

/// The statement of an operation that is one, over the buffers of its inputs and results.
tir::Stmt LoopWriter::Statement(const Placed& p) {
  const auto* op = p.stage->op.as<ExternOpNode>();
  Array<tir::Buffer> ins;
  for (const Tensor& t : op->inputs) ins.push_back(BufferOf(t));
  if (!p.stage->cells.empty()) return ScanRows(p.stage, ins, p.buffers);
  tir::BufferMap buffers;
  tir::VarMap vars;
  const auto replace = [&](const tir::Buffer& formal, const tir::Buffer& to) {
    buffers[formal.get()] = to;
    vars[formal->data.get()] = to->data;
    for (size_t i = 0; i < formal->shape.size(); ++i) {
      const PrimExpr &a = formal->shape[i], &b = to->shape[i];
      if (a.as<tir::VarNode>() && !a.same_as(b)) vars[a.get()] = b.dtype() == a.dtype() ? b : cast(a.dtype(), b);
    }
  };
  for (size_t i = 0; i < ins.size(); ++i) replace(op->input_buffers[i], ins[i]);
  for (size_t i = 0; i < p.buffers.size(); ++i) replace(op->output_buffers[i], p.buffers[i]);
  return ScheduledScript(tir::SubstituteBuffers(Downcast<tir::Stmt>(op->body), buffers, vars), p);
}

tir::PrimFunc ScheduleToPrimFunc(const Schedule& schedule, const Array<ObjectRef>& args, const String& name,
                                 const Array<ObjectRef>& buffers) {
  LoopWriter::Given given;
  std::unordered_set<const Object*> ops;
  Array<Var> params;
  Map<Var, tir::Buffer> buffer_map;
  const auto add = [&](const String& called, const tir::Buffer& buffer) {
    const Var var(called, DataType::Handle());
    params.push_back(var);
    buffer_map.Set(var, buffer);
  };
  for (size_t i = 0; i < args.size(); ++i) {
    if (const auto* t = args[i].as<TensorNode>()) {
      const tir::Buffer own = i < buffers.size() ? Downcast<tir::Buffer>(buffers[i]) : tir::Buffer();
      const tir::Buffer buffer = own.defined() ? own : tir::Buffer::Make(t->shape, t->dtype, t->op->name);
      Stage stage = schedule.Find(t->op);
      const bool is_given = std::any_of(schedule->given.begin(), schedule->given.end(),
                                        [&](const Operation& g) { return g.same_as(t->op); });
      if (!stage.defined() && (t->op.as<PlaceholderOpNode>() || is_given)) {  // nothing reads it
        add(t->op->name, buffer);
        continue;
      }
      if (!stage.defined()) stage = schedule[t->op];
      if (!given.emplace(std::pair{stage->origin_op.get(), t->value_index}, buffer).second)
        Fail(fmt::format("`{}` is given twice", t->op->name.str()));
      if (!stage->is_input && stage->attach_type != AttachType::kRoot) {
        Fail(fmt::format("`{}` is an argument, which is computed as a whole, and has no place in other loops",
                         t->op->name.str()));
      }
      ops.insert(stage->origin_op.get());
      add(t->op->name, buffer);
    } else if (args[i].as<tir::VarNode>()) {
      params.push_back(Downcast<Var>(args[i]));
    } else if (const auto* b = args[i].as<tir::BufferNode>()) {
      add(b->name, Downcast<tir::Buffer>(args[i]));
    } else {
      throw runtime::TypeError(fmt::format("an argument is a tensor, a variable or a buffer, not {}",
                                           args[i].defined() ? args[i]->GetTypeKey() : "None"));
    }
  }
  Placement placement(schedule, ops);
  Map<String, runtime::Any> attrs;
  attrs.Set("global_symbol", runtime::Any(name));
  attrs.Set("tir.noalias", runtime::Any(true));
  return tir::PrimFunc(params, LoopWriter(&placement, given).Write(), buffer_map, DictAttrs(attrs));
}

}  // namespace baton::te

// SPDX-License-Identifier: Apache-2.0
// Schedules: making them, and stages that are added to one.
#include "te/schedule/schedule.h"

#include <baton/tir/functor.h>
#include <baton/tir/op.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "te/schedule/reads.h"
#include "te/schedule/stage.h"

namespace baton::te {
namespace {
const RegisterNodes<IterVarRelationNode, SplitNode, FuseNode, SingletonNode, TensorIntrinNode, IterVarAttrNode,
                    TraceNode, StageNode, GroupNode, ScheduleNode, StageLoopsNode>
    registered_schedule;

Stage NewStage(const Operation& op, bool is_input) {
  StageNode n;
  n.origin_op = op;
  Stage stage(std::move(n));
  Become(stage, op, is_input);
  if (stage.is_statement() && op->attrs.count("scan_update"))
    for (const Schedule& s : CellsOf(op)) stage.mut()->cells.push_back(s);
  return stage;
}

/// Gives a stage, and those of a scan's rows, a name that no other has in the trace.
void Enter(const Trace& trace, const Stage& stage, const std::string& prefix) {
  const Array<String>& labels = trace->labels;
  const std::string name = prefix + stage->op->name.str();
  std::string label = name;
  for (int k = 2; std::any_of(labels.begin(), labels.end(), [&](const String& l) { return l == label; }); ++k)
    label = fmt::format("{}#{}", name, k);
  trace.mut()->labels.push_back(label);
  stage.mut()->label = label, stage.mut()->trace = trace;
  for (size_t i = 0; i < stage->cells.size(); ++i) {
    const Schedule cell = Downcast<Schedule>(stage->cells[i]);
    cell.mut()->trace = trace;
    for (const Stage& row : cell->stages) Enter(trace, row, label + (i == 0 ? "/init/" : "/update/"));
  }
}

void Add(const Schedule& s, const Stage& stage, const Stage& before = Stage()) {
  ScheduleNode* n = s.mut();
  int64_t at = static_cast<int64_t>(n->stages.size());
  for (int64_t i = 0; before.defined() && i < at; ++i)
    if (n->stages[i].same_as(before)) at = i;
  Enter(n->trace, stage, "");
  n->stages.insert(at, stage);
  n->stage_map.Set(stage->origin_op, stage);
  n->stage_map.Set(stage->op, stage);
}

/// A stage computes another operation; the schedule finds it by that one too.
void Replace(const Schedule& s, const Stage& stage, const Operation& op) {
  Become(stage, op, false);
  s.mut()->stage_map.Set(op, stage);
}

Array<PrimExpr> ExtentsOf(const Array<IterVar>& axes) {
  Array<PrimExpr> out;
  for (const IterVar& a : axes) out.push_back(a->dom->extent);
  return out;
}
Array<Var> VarsOf(const Array<IterVar>& axes) {
  Array<Var> out;
  for (const IterVar& a : axes) out.push_back(a->var);
  return out;
}
Array<PrimExpr> Exprs(const Array<Var>& vars) { return Array<PrimExpr>(vars.begin(), vars.end()); }

Array<Tensor> Made(const Array<PrimExpr>& shape, const Array<Var>& vars, const Array<PrimExpr>& bodies,
                   const std::string& name, const String& tag) {
  if (bodies.size() == 1) return {ComputeImpl(shape, vars, bodies[0], name, tag)};
  return ComputeMany(shape, vars, bodies, name, tag);
}
std::string CacheName(const Operation& op, const String& scope) {
  return op->name.str() + "." + (scope.empty() ? "global" : scope.str());
}

PrimExpr Conjunction(const std::vector<PrimExpr>& conditions) {
  PrimExpr all;
  for (const PrimExpr& c : conditions) all = all.defined() ? all && c : c;
  return all;
}

}  // namespace

Schedule CreateSchedule(const Array<Operation>& outputs, const Array<Operation>& given) {
  ScheduleNode n;
  n.outputs = outputs, n.given = given, n.trace = Trace(TraceNode());
  Schedule s(std::move(n));
  for (const Operation& op : PostOrder(outputs, given)) {
    const bool is_given = std::any_of(given.begin(), given.end(), [&](const Operation& g) { return g.same_as(op); });
    Add(s, NewStage(op, is_given || op.as<PlaceholderOpNode>()));
  }
  for (const Operation& op : outputs) s[op].mut()->is_output = true;
  return s;
}

Stage Schedule::Find(const Operation& op) const {
  if ((*this)->stage_map.count(op)) return (*this)->stage_map.at(op);
  for (const Stage& stage : (*this)->stages) {
    for (const ObjectRef& cell : stage->cells)
      if (Stage found = Downcast<Schedule>(cell).Find(op); found.defined()) return found;
  }
  return Stage();
}

Stage Schedule::operator[](const Operation& op) const {
  if (!op.defined()) throw runtime::TypeError("a stage is found by a tensor or its operation, not by None");
  if (Stage found = Find(op); found.defined()) return found;
  std::string names;
  for (const Stage& s : (*this)->stages) names += (names.empty() ? "" : ", ") + s->op->name.str();
  Fail(fmt::format("`{}` is no part of this schedule; it has {}", NameOf(op), names));
}

Array<Tensor> CacheWrite(const Schedule& s, const Array<Tensor>& tensors, const String& scope) {
  const Stage stage = s[tensors[0]->op];
  const auto* c = stage->op.as<ComputeOpNode>();
  if (!c || stage->is_input || !stage->relations.empty()) {
    Fail(fmt::format("cache_write of `{}` comes before its loops are changed, and it is no placeholder",
                     NameOf(stage->op)));
  }
  if (tensors.size() != c->body.size()) {
    Fail(fmt::format("`{}` has {} outputs: cache_write takes them together", NameOf(stage->op), c->body.size()));
  }
  const Array<Var> fresh = MakeIndexVars(c->axis.size());
  Map<Var, PrimExpr> mapping;
  for (size_t i = 0; i < fresh.size(); ++i) mapping.Set(c->axis[i]->var, fresh[i]);
  // Axes of a reduction are the cache's own from here on.
  Array<PrimExpr> bodies, copies;
  for (const PrimExpr& e : stage->body) bodies.push_back(tir::Substitute(e, mapping));
  const Array<PrimExpr> shape = ExtentsOf(c->axis);
  const Array<Var> own = VarsOf(c->axis);
  const Array<Tensor> made = Made(shape, fresh, bodies, CacheName(stage->op, scope), c->tag);
  for (const Tensor& t : made) copies.push_back(t(Exprs(own)));
  const Operation copy = Made(shape, own, copies, c->name.str(), c->tag)[0]->op;
  const Stage cache = NewStage(made[0]->op, false);
  cache.mut()->scope = scope;
  Replace(s, stage, copy);
  Add(s, cache, stage);
  return made;
}

Tensor CacheRead(const Schedule& s, const Tensor& tensor, const String& scope, const Array<Operation>& readers) {
  const Stage source = s[tensor->op];
  if (readers.empty())
    Fail(fmt::format("cache_read of `{}` needs the operations that read from the copy", NameOf(source->op)));
  const Array<Var> vars = MakeIndexVars(tensor->shape.size());
  const Tensor made = ComputeImpl(tensor->shape, vars, tensor(Exprs(vars)), CacheName(tensor->op, scope), "");
  const Stage cache = NewStage(made->op, false);
  cache.mut()->scope = scope;
  std::vector<Stage> found;
  for (const Operation& r : readers) found.push_back(s[r]);
  for (const Stage& reader : found) {
    if (reader.is_statement()) {
      throw runtime::UnsupportedError(
          fmt::format("`{}` is a statement, which reads whole tensors: it has no cache", NameOf(reader->op)));
    }
    const auto loads = Loads(reader->body);
    if (std::none_of(loads.begin(), loads.end(),
                     [&](const tir::ProducerLoad& l) { return SameTensor(Downcast<Tensor>(l->producer), tensor); })) {
      Fail(fmt::format("`{}` does not read `{}`", NameOf(reader->op), NameOf(source->op)));
    }
    Array<PrimExpr> body;
    for (const PrimExpr& e : reader->body) {
      body.push_back(ReplaceLoads(
          e, [&](const Tensor& t, const Array<PrimExpr>& at) { return SameTensor(t, tensor) ? made(at) : t(at); }));
    }
    reader.mut()->body = body;
  }
  for (const Stage& stage : s->stages) {
    const bool reads = std::any_of(found.begin(), found.end(), [&](const Stage& r) { return r.same_as(stage); });
    if (!reads) continue;
    Add(s, cache, stage);
    break;
  }
  return made;
}

Array<Tensor> Rfactor(const Schedule& s, const Tensor& tensor, const IterVar& axis, int64_t factor_axis) {
  const Stage stage = s[tensor->op];
  const auto* reduce = stage->body.empty() ? nullptr : stage->body[0].as<tir::ReduceNode>();
  if (!reduce) Fail(fmt::format("`{}` has no reduction to split", NameOf(stage->op)));
  if (!axis.defined()) throw runtime::TypeError("rfactor takes a loop of the reduction, not None");
  std::vector<IterVar> reducing;
  for (const IterVar& iv : stage->leaf_iter_vars)
    if (IsReduce(iv)) reducing.push_back(iv);
  if (std::none_of(reducing.begin(), reducing.end(), [&](const IterVar& iv) { return iv->var.same_as(axis->var); })) {
    Fail(fmt::format("`{}` is no loop of the reduction of `{}`", NameOf(axis), NameOf(stage->op)));
  }
  const StageLoops loops = LoopsOf(stage);
  const Array<IterVar> own = stage->op.as<ComputeOpNode>()->axis;
  const auto rank = static_cast<int64_t>(own.size());
  const int64_t position = factor_axis < 0 ? factor_axis + rank + 1 : factor_axis;
  if (position < 0 || position > rank)
    Fail(fmt::format("factor_axis {} of a tensor of rank {}", factor_axis, rank + 1));
  const Array<Var> index = MakeIndexVars(own.size() + 1);
  const Var part = index[position];
  // The loops of the reduction that stay, as axes of their own.
  Map<Var, PrimExpr> values, mapping;
  Array<IterVar> stay;
  values.Set(axis->var, part);
  for (const IterVar& iv : reducing) {
    if (iv->var.same_as(axis->var)) continue;
    stay.push_back(ReduceAxis(PrimExpr(0), loops->extents.at(iv->var), iv->var->name_hint));
    values.Set(iv->var, stay[static_cast<int64_t>(stay.size()) - 1]->var);
  }
  for (int64_t i = 0; i < rank; ++i) mapping.Set(own[i]->var, index[i < position ? i : i + 1]);
  for (const IterVar& root : reduce->axis)
    mapping.Set(root->var, tir::Substitute(loops->values.at(root->var), values) + root->dom->min);
  Array<PrimExpr> source, bodies;
  for (const PrimExpr& e : reduce->source) source.push_back(tir::Substitute(e, mapping));
  std::vector<PrimExpr> conditions;
  if (reduce->condition.defined()) conditions.push_back(tir::Substitute(reduce->condition, mapping));
  for (const PrimExpr& c : loops.Conditions(true)) conditions.push_back(tir::Substitute(c, values));
  Array<PrimExpr> shape = ExtentsOf(own);
  shape.insert(position, loops->extents.at(axis->var));
  for (size_t k = 0; k < source.size(); ++k) {
    if (!stay.empty()) {
      bodies.push_back(MakeReduce(reduce->combiner, source, stay, Conjunction(conditions), static_cast<int64_t>(k)));
      continue;
    }
    PrimExpr body = source[k];
    for (const PrimExpr& c : conditions)
      if (!tir::is_const_int(c, 1)) body = if_then_else(c, body, reduce->combiner->identity_element[k]);
    bodies.push_back(body);
  }
  const Array<Tensor> made = Made(shape, index, bodies, stage->op->name.str() + ".rf", stage->op->tag);
  const IterVar again = ReduceAxis(PrimExpr(0), loops->extents.at(axis->var), axis->var->name_hint);
  Array<PrimExpr> at = Exprs(VarsOf(own)), parts, totals;
  at.insert(position, again->var);
  for (const Tensor& t : made) parts.push_back(t(at));
  for (size_t k = 0; k < parts.size(); ++k)
    totals.push_back(MakeReduce(reduce->combiner, parts, {again}, PrimExpr(), static_cast<int64_t>(k)));
  Replace(s, stage, Made(ExtentsOf(own), VarsOf(own), totals, stage->op->name.str(), stage->op->tag)[0]->op);
  Add(s, NewStage(made[0]->op, false), stage);
  return made;
}

Group CreateGroup(const Schedule& s, const Array<Operation>& outputs, const Array<Operation>& inputs,
                  bool include_inputs) {
  std::unordered_set<const Object*> begins, chosen;
  for (const Operation& op : inputs) begins.insert(s[op].get());
  std::unordered_map<const Object*, bool> reads;  // whether a stage reads, by way of others, one of the inputs
  // Stages are in the order of their reads.
  for (const Stage& stage : s->stages) {
    bool found = begins.count(stage.get()) > 0;
    for (const Tensor& t : stage.is_statement() ? InputTensors(stage->op) : TensorsRead(stage->body)) {
      const Stage from = s.Find(t->op);
      found |= from.defined() && reads[from.get()];
    }
    reads[stage.get()] = found;
  }
  std::vector<Stage> open;
  for (const Operation& op : outputs) open.push_back(s[op]);
  while (!open.empty()) {
    const Stage stage = open.back();
    open.pop_back();
    if (!reads[stage.get()] || chosen.count(stage.get())) continue;
    const bool begin = begins.count(stage.get()) > 0;
    if (begin && !include_inputs) continue;
    if (!stage->is_input) chosen.insert(stage.get());
    if (begin) continue;
    for (const Tensor& t : stage.is_statement() ? InputTensors(stage->op) : TensorsRead(stage->body))
      open.push_back(s[t->op]);
  }
  GroupNode group;
  for (const Stage& stage : s->stages) {
    if (!chosen.count(stage.get())) continue;
    group.stages.push_back(stage), group.operations.push_back(stage->op);
  }
  for (const Stage& stage : group.stages) stage.mut()->group = Group(GroupNode{{}, group.operations, {}});
  const Group made(std::move(group));
  s.mut()->groups.push_back(made);
  return made;
}

}  // namespace baton::te

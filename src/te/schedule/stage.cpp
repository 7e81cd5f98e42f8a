// SPDX-License-Identifier: Apache-2.0
#include "te/schedule/stage.h"

#include <baton/tir/op.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "te/schedule/reads.h"

namespace baton::te {
namespace {

IterVar NewLoop(const Stage& stage, const std::string& name, tir::IterVarType type) {
  IterVar iv(tir::IterVarNode{{}, Range(), Var(String(name)), type});
  stage.mut()->all_iter_vars.push_back(iv);
  return iv;
}

/// Puts loops in the place of `count` loops.
void ReplaceLeaves(const Stage& stage, size_t at, size_t count, const std::vector<IterVar>& by) {
  Array<IterVar> leaves;
  for (size_t i = 0; i < stage->leaf_iter_vars.size(); ++i) {
    if (i == at)
      for (const IterVar& iv : by) leaves.push_back(iv);
    if (i < at || i >= at + count) leaves.push_back(stage->leaf_iter_vars[i]);
  }
  stage.mut()->leaf_iter_vars = leaves;
}

}  // namespace

bool Stage::is_reduction() const {
  return std::any_of((*this)->body.begin(), (*this)->body.end(),
                     [](const PrimExpr& e) { return e.as<tir::ReduceNode>(); });
}

void Become(const Stage& stage, const Operation& op, bool is_input) {
  StageNode* n = stage.mut();
  n->op = op;
  n->is_input = is_input;
  n->body = {};
  if (const auto* c = op.as<ComputeOpNode>(); c && !is_input) n->body = c->body;
  n->all_iter_vars = is_input ? Array<IterVar>() : AxesOf(op);
  n->leaf_iter_vars = n->all_iter_vars;
  n->relations = {};
  n->iter_var_attrs = {};
}

size_t PlaceOf(const Stage& stage, const IterVar& iv) {
  if (!iv.defined()) throw runtime::TypeError(fmt::format("a loop of `{}` is an IterVar, not None", NameOf(stage)));
  const Array<IterVar>& leaves = stage->leaf_iter_vars;
  for (size_t i = 0; i < leaves.size(); ++i)
    if (leaves[i]->var.same_as(iv->var)) return i;
  const bool was = std::any_of(stage->all_iter_vars.begin(), stage->all_iter_vars.end(),
                               [&](const IterVar& v) { return v->var.same_as(iv->var); });
  std::string names;
  for (const IterVar& v : leaves) names += (names.empty() ? "" : ", ") + std::string(NameOf(v));
  Fail(fmt::format("`{}` of `{}` {}; its loops are {}", NameOf(iv), NameOf(stage),
                   was ? "was split or fused" : "is no loop of it", names));
}

IterVarAttrNode* AttrsOf(const Stage& stage, const IterVar& iv) {
  const IterVar leaf = stage->leaf_iter_vars[PlaceOf(stage, iv)];
  auto& all = stage.mut()->iter_var_attrs;
  if (!all.count(leaf)) {
    IterVarAttrNode made;
    made.iter_type = leaf->iter_type;
    all.Set(leaf, IterVarAttr(std::move(made)));
  }
  return const_cast<IterVarAttrNode*>(all.at(leaf).get());
}

std::pair<IterVar, IterVar> SplitLoop(const Stage& stage, const IterVar& parent, const PrimExpr& factor,
                                      const PrimExpr& nparts) {
  const size_t at = PlaceOf(stage, parent);
  if (factor.defined() == nparts.defined()) Fail("split takes factor or nparts, one of them");
  for (const auto& [word, value] : {std::pair{"factor", factor}, {"nparts", nparts}}) {
    const int64_t* n = value.defined() ? tir::as_const_int(value) : nullptr;
    if (n && *n < 1) Fail(fmt::format("split of `{}`: {} is {}, it is 1 or more", NameOf(parent), word, *n));
  }
  const IterVar leaf = stage->leaf_iter_vars[at];
  const std::string name(NameOf(leaf));
  const IterVar outer = NewLoop(stage, name + ".outer", leaf->iter_type);
  const IterVar inner = NewLoop(stage, name + ".inner", leaf->iter_type);
  stage.mut()->relations.push_back(Split(SplitNode{{}, leaf, outer, inner, factor, nparts}));
  ReplaceLeaves(stage, at, 1, {outer, inner});
  return {outer, inner};
}

IterVar FuseLoops(const Stage& stage, const Array<IterVar>& loops) {
  if (loops.empty()) {
    if (!stage->leaf_iter_vars.empty()) Fail(fmt::format("fuse of `{}` needs a loop", NameOf(stage)));
    const IterVar fused = NewLoop(stage, "singleton", tir::IterVarType::kDataPar);
    stage.mut()->leaf_iter_vars.push_back(fused);
    stage.mut()->relations.push_back(Singleton(SingletonNode{{}, fused}));
    return fused;
  }
  IterVar fused = loops[0];
  PlaceOf(stage, fused);
  for (size_t i = 1; i < loops.size(); ++i) {
    const IterVar& inner = loops[i];
    const size_t at = PlaceOf(stage, fused), behind = PlaceOf(stage, inner);
    if (behind != at + 1)
      Fail(fmt::format("`{}` does not stand behind `{}`; reorder them first", NameOf(inner), NameOf(fused)));
    if (IsReduce(fused) != IsReduce(inner)) {
      Fail(
          fmt::format("`{}` and `{}`: one belongs to the reduction, the other does not", NameOf(fused), NameOf(inner)));
    }
    const IterVar made = NewLoop(stage, fmt::format("{}.{}.fused", NameOf(fused), NameOf(inner)), fused->iter_type);
    stage.mut()->relations.push_back(
        Fuse(FuseNode{{}, stage->leaf_iter_vars[at], stage->leaf_iter_vars[behind], made}));
    ReplaceLeaves(stage, at, 2, {made});
    fused = made;
  }
  return fused;
}

void Reorder(const Stage& stage, const Array<IterVar>& loops) {
  std::vector<size_t> places;
  for (const IterVar& iv : loops) places.push_back(PlaceOf(stage, iv));
  std::vector<size_t> sorted = places;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) Fail("reorder got a loop twice");
  const Array<IterVar> before = stage->leaf_iter_vars;
  Array<IterVar> leaves(before.begin(), before.end());
  for (size_t i = 0; i < places.size(); ++i) leaves.Set(static_cast<int64_t>(sorted[i]), before[places[i]]);
  stage.mut()->leaf_iter_vars = leaves;
}

void MarkLoop(const Stage& stage, const IterVar& iv, tir::IterVarType type) {
  PlaceOf(stage, iv);
  if (IsReduce(iv) && type == tir::IterVarType::kVectorized) {
    Fail(fmt::format(
        "`{}` belongs to the reduction of `{}`, whose rounds follow each other; vectorize a loop over its result",
        NameOf(iv), NameOf(stage)));
  }
  if (IsReduce(iv) && type == tir::IterVarType::kParallelized) {
    Fail(fmt::format("`{}` belongs to the reduction of `{}`, whose rounds follow each other; see Schedule.rfactor",
                     NameOf(iv), NameOf(stage)));
  }
  AttrsOf(stage, iv)->iter_type = type;
}

void Bind(const Stage& stage, const IterVar& iv, const IterVar& thread, const String& tag) {
  PlaceOf(stage, iv);
  if (!thread.defined() || thread->iter_type != kThreadIndex || tag.empty()) {
    throw runtime::TypeError(
        fmt::format("bind of `{}` of `{}` takes an axis of threads, as te.thread_axis(\"threadIdx.x\")", NameOf(iv),
                    NameOf(stage)));
  }
  for (const auto& [leaf, attr] : stage->iter_var_attrs) {
    if (!leaf->var.same_as(iv->var) && attr->bind_thread.same_as(thread)) {
      Fail(fmt::format("`{}` and `{}` of `{}` cannot both be run by `{}`", NameOf(leaf), NameOf(iv), NameOf(stage),
                       tag.str()));
    }
  }
  IterVarAttrNode* attr = AttrsOf(stage, iv);
  attr->bind_thread = thread, attr->thread_tag = tag;
}

void Tensorize(const Stage& stage, const IterVar& iv, const TensorIntrin& intrin) {
  PlaceOf(stage, iv);
  if (!intrin.defined()) {
    throw runtime::TypeError(
        fmt::format("tensorize of `{}` takes what te.decl_tensor_intrin gave, not None", NameOf(stage)));
  }
  IterVarAttrNode* attr = AttrsOf(stage, iv);
  attr->iter_type = kTensorized, attr->tensor_intrin = intrin;
}

void SetPragma(const Stage& stage, const IterVar& iv, const PrimExpr& key, const PrimExpr& value) {
  IterVarAttrNode* attr = AttrsOf(stage, iv);
  for (size_t i = 0; i < attr->pragma_keys.size(); ++i) {
    const auto *a = attr->pragma_keys[i].as<tir::StringImmNode>(), *b = key.as<tir::StringImmNode>();
    if (a && b && a->value == b->value) {
      attr->pragma_values.Set(static_cast<int64_t>(i), value);
      return;
    }
  }
  attr->pragma_keys.push_back(key), attr->pragma_values.push_back(value);
}

void ComputeAt(const Stage& stage, const Stage& parent, const IterVar& scope) {
  if (parent.same_as(stage)) Fail(fmt::format("`{}` cannot be computed within itself", NameOf(stage)));
  if (stage->is_output) {
    Fail(fmt::format("`{}` is a result, all of which is computed; cache_write makes a tensor that can stand in a loop",
                     NameOf(stage)));
  }
  PlaceOf(parent, scope);
  StageNode* n = stage.mut();
  n->attach_type = AttachType::kScope, n->attach_stage = parent, n->attach_ivar = scope;
}

void ComputeInline(const Stage& stage) {
  if (stage->is_output) Fail(fmt::format("`{}` is a result, which is stored", NameOf(stage)));
  if (stage.is_reduction()) {
    Fail(fmt::format("`{}` is a reduction, which cannot stand in another expression; use compute_at", NameOf(stage)));
  }
  if (stage.is_statement())
    Fail(fmt::format("`{}` is a statement, which cannot stand in an expression", NameOf(stage)));
  if (stage->body.empty()) Fail(fmt::format("`{}` is an input, which is not computed", NameOf(stage)));
  StageNode* n = stage.mut();
  n->attach_type = AttachType::kInline, n->attach_stage = ObjectRef(), n->attach_ivar = IterVar();
}

void ComputeRoot(const Stage& stage) {
  StageNode* n = stage.mut();
  n->attach_type = AttachType::kRoot, n->attach_stage = ObjectRef(), n->attach_ivar = IterVar();
}

}  // namespace baton::te

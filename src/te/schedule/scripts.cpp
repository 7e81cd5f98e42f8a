// SPDX-License-Identifier: Apache-2.0
// Loops of a script in a schedule: those that are right within each other are a nest, which is split, fused and put in
// order as those of a computation are.
#include <baton/tir/op.h>
#include <fmt/format.h>

#include <algorithm>

#include "te/schedule/lowering.h"
#include "te/schedule/stage.h"

namespace baton::te {
namespace {

class ScriptWriter : public tir::StmtMutator {
 public:
  explicit ScriptWriter(const Placed& p) : p_(p), axes_(AxesOf(p.stage->op)) {
    for (const IterVar& a : axes_) roots_[a->var.get()] = {a};
    for (const IterVarRelation& r : p.stage->relations) {
      if (const auto* s = r.as<SplitNode>()) {
        roots_[s->outer->var.get()] = roots_[s->inner->var.get()] = roots_[s->parent->var.get()];
      } else if (const auto* f = r.as<FuseNode>()) {
        std::vector<IterVar> both = roots_[f->outer->var.get()];
        for (const IterVar& a : roots_[f->inner->var.get()]) both.push_back(a);
        roots_[f->fused->var.get()] = both;
      }
    }
  }

 private:
  using StmtMutator::VisitStmt_;
  tir::Stmt VisitStmt_(const tir::ForNode* op) final {
    std::vector<const tir::ForNode*> nest = {op};
    while (const auto* next = nest.back()->body.as<tir::ForNode>()) nest.push_back(next);
    std::unordered_map<const Object*, const tir::ForNode*> own;
    for (const tir::ForNode* f : nest) own[f->loop_var.get()] = f;
    const auto is_own = [&](const IterVar& a) { return own.count(a->var.get()) > 0; };
    std::vector<IterVar> leaves;
    for (const IterVar& iv : p_.stage->leaf_iter_vars) {
      const std::vector<IterVar>& roots = roots_[iv->var.get()];
      if (std::none_of(roots.begin(), roots.end(), is_own)) continue;
      if (!std::all_of(roots.begin(), roots.end(), is_own)) {
        throw runtime::UnsupportedError(fmt::format(
            "`{}` of `{}` joins loops that do not stand right within each other", NameOf(iv), NameOf(p_.stage)));
      }
      leaves.push_back(iv);
    }
    tir::Stmt body = VisitStmt(nest.back()->body);
    const bool same = leaves.size() == nest.size() &&
                      std::equal(leaves.begin(), leaves.end(), nest.begin(),
                                 [](const IterVar& iv, const tir::ForNode* f) { return iv->var.same_as(f->loop_var); });
    if (!same) CheckExtents(nest);
    tir::VarMap values;
    for (const tir::ForNode* f : nest) {
      const bool is_leaf =
          std::any_of(leaves.begin(), leaves.end(), [&](const IterVar& iv) { return iv->var.same_as(f->loop_var); });
      for (const IterVar& a : axes_) {
        if (!is_leaf && a->var.same_as(f->loop_var)) {
          const PrimExpr value = f->min + p_.value(a);
          values[f->loop_var.get()] = value.dtype() == f->loop_var.dtype() ? value : cast(f->loop_var.dtype(), value);
        }
      }
    }
    std::vector<PrimExpr> conditions;
    for (const IterVar& iv : p_.loops->inexact) {
      const std::vector<IterVar>& roots = roots_[iv->var.get()];
      if (std::all_of(roots.begin(), roots.end(), is_own)) conditions.push_back(p_.value(iv) < p_.extent(iv));
    }
    if (!values.empty()) body = tir::Substitute(body, values);
    body = IfAll(conditions, std::move(body));
    for (size_t i = leaves.size(); i-- > 0;) {
      const auto it = own.find(leaves[i]->var.get());
      body = Loop(leaves[i], it == own.end() ? nullptr : it->second, std::move(body));
    }
    return body;
  }

  void CheckExtents(const std::vector<const tir::ForNode*>& nest) {
    for (const tir::ForNode* outer : nest) {
      for (const tir::ForNode* inner : nest) {
        if (tir::UsesVar(inner->extent, outer->loop_var.get()) || tir::UsesVar(inner->min, outer->loop_var.get())) {
          throw runtime::UnsupportedError(
              fmt::format("the loop `{}` of `{}` runs as far as `{}` says: these stay as they are",
                          inner->loop_var->name_hint.view(), NameOf(p_.stage), outer->loop_var->name_hint.view()));
        }
      }
    }
  }

  tir::Stmt Loop(const IterVar& iv, const tir::ForNode* given, tir::Stmt body) {
    const IterVarAttr attr = AskedOf(p_.stage, iv);
    if (!ThreadOf(p_.stage, iv).empty()) {
      throw runtime::UnsupportedError(fmt::format(
          "`{}` of the script `{}` is bound to threads: only loops of te.compute are", NameOf(iv), NameOf(p_.stage)));
    }
    tir::ForNode n;
    n.loop_var = iv->var, n.body = std::move(body), n.kind = KindOfLoop(attr);
    n.min = given ? given->min : tir::make_int(DataType::Int(64), 0);
    n.extent = given ? given->extent : p_.extent(iv);
    if (given) n.annotations = given->annotations;
    if (given && n.kind == tir::ForKind::kSerial) n.kind = given->kind;
    for (const auto& [k, v] : AnnotationsOf(attr)) n.annotations.Set(k, v);
    return tir::For(std::move(n));
  }

  const Placed& p_;
  Array<IterVar> axes_;
  std::unordered_map<const Object*, std::vector<IterVar>> roots_;  ///< of a loop, the axes that it is made of
};

}  // namespace

tir::Stmt ScheduledScript(const tir::Stmt& stmt, const Placed& p) {
  const Array<IterVar> axes = AxesOf(p.stage->op);
  const Array<IterVar>& leaves = p.stage->leaf_iter_vars;
  const bool as_it_is = p.stage->relations.empty() && p.stage->iter_var_attrs.empty() && axes.size() == leaves.size() &&
                        std::equal(axes.begin(), axes.end(), leaves.begin(),
                                   [](const IterVar& a, const IterVar& b) { return a->var.same_as(b->var); });
  return as_it_is ? stmt : ScriptWriter(p)(stmt);
}

}  // namespace baton::te

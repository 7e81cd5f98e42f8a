// SPDX-License-Identifier: Apache-2.0
// Schedules as text, for people.
#include <baton/tir/op.h>
#include <baton/tir/printer.h>
#include <fmt/format.h>

#include <string>

#include "te/schedule/schedule.h"
#include "te/schedule/stage.h"
#include "te/schedule/trace.h"

namespace baton::te {
namespace {

std::string Names(const Array<IterVar>& loops) {
  std::string out;
  for (const IterVar& iv : loops) out += (out.empty() ? "" : ", ") + std::string(NameOf(iv));
  return out;
}

std::string Head(const Stage& stage) {
  std::string out = fmt::format("stage {}", NameOf(stage));
  if (!stage->scope.empty()) out += fmt::format(" in \"{}\"", stage->scope.str());
  if (stage->is_input) return out + ": an input";
  if (stage->attach_type == AttachType::kInline) return out + ": inline";
  if (stage->attach_type == AttachType::kScope) {
    out += fmt::format(", at {} of {}", NameOf(stage->attach_ivar), NameOf(Downcast<Stage>(stage->attach_stage)));
  }
  return out + (stage->leaf_iter_vars.empty() ? "" : ": loops " + Names(stage->leaf_iter_vars));
}

std::string RelationText(const IterVarRelation& r) {
  if (const auto* s = r.as<SplitNode>()) {
    const bool by_factor = s->factor.defined();
    return fmt::format("split {} into {}, {}, {}={}", NameOf(s->parent), NameOf(s->outer), NameOf(s->inner),
                       by_factor ? "factor" : "nparts", StepText(by_factor ? s->factor : s->nparts));
  }
  if (const auto* f = r.as<FuseNode>())
    return fmt::format("fuse {}, {} into {}", NameOf(f->outer), NameOf(f->inner), NameOf(f->fused));
  return fmt::format("one round, {}", NameOf(r.as<SingletonNode>()->iter));
}

std::string AskedText(const IterVar& iv, const IterVarAttr& attr) {
  std::string out;
  const auto add = [&](const std::string& line) { out += "\n  " + line; };
  switch (attr->iter_type) {
    case tir::IterVarType::kUnrolled:
      add(fmt::format("unroll {}", NameOf(iv)));
      break;
    case tir::IterVarType::kVectorized:
      add(fmt::format("vectorize {}", NameOf(iv)));
      break;
    case tir::IterVarType::kParallelized:
      add(fmt::format("parallel {}", NameOf(iv)));
      break;
    default:
      break;
  }
  if (attr->tensor_intrin.defined())
    add(fmt::format("tensorize {} by {}", NameOf(iv), attr->tensor_intrin->name.str()));
  if (attr->bind_thread.defined()) add(fmt::format("bind {} to {}", NameOf(iv), attr->thread_tag.str()));
  for (size_t i = 0; i < attr->pragma_keys.size(); ++i) {
    add(fmt::format("pragma {} {}={}", NameOf(iv), tir::AsText(attr->pragma_keys[i]),
                    StepText(attr->pragma_values[i])));
  }
  return out;
}

}  // namespace

String StageText(const Stage& stage) {
  std::string out = Head(stage);
  for (const IterVarRelation& r : stage->relations) out += "\n  " + RelationText(r);
  for (const auto& [iv, attr] : stage->iter_var_attrs) out += AskedText(iv, attr);
  return out;
}

}  // namespace baton::te

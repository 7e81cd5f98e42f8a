// SPDX-License-Identifier: Apache-2.0
// Transformations of a stage's loops. Each throws ValueError, naming operation and loop, where it cannot be done.
#pragma once

#include <baton/te/schedule.h>

#include <string>
#include <string_view>
#include <utility>

namespace baton::te {

inline bool IsReduce(const IterVar& iv) { return iv->iter_type == tir::IterVarType::kCommReduce; }
inline std::string_view NameOf(const IterVar& iv) { return iv->var->name_hint.view(); }
inline std::string_view NameOf(const Operation& op) { return op->name.view(); }
inline std::string_view NameOf(const Stage& stage) { return NameOf(stage->op); }
[[noreturn]] inline void Fail(const std::string& message) { throw runtime::ValueError(message); }

/// Makes a stage compute this operation from here on; its loops are those of its axes.
void Become(const Stage& stage, const Operation& op, bool is_input);
/// Where a loop is among the loops of a stage. Throws ValueError if it is not.
size_t PlaceOf(const Stage& stage, const IterVar& iv);
/// Returns the requests for a loop, to be changed.
IterVarAttrNode* AttrsOf(const Stage& stage, const IterVar& iv);

std::pair<IterVar, IterVar> SplitLoop(const Stage& stage, const IterVar& parent, const PrimExpr& factor,
                                      const PrimExpr& nparts);
IterVar FuseLoops(const Stage& stage, const Array<IterVar>& loops);
void Reorder(const Stage& stage, const Array<IterVar>& loops);
void MarkLoop(const Stage& stage, const IterVar& iv, tir::IterVarType type);
void Bind(const Stage& stage, const IterVar& iv, const IterVar& thread, const String& tag);
void Tensorize(const Stage& stage, const IterVar& iv, const TensorIntrin& intrin);
void SetPragma(const Stage& stage, const IterVar& iv, const PrimExpr& key, const PrimExpr& value);
void ComputeAt(const Stage& stage, const Stage& parent, const IterVar& scope);
void ComputeInline(const Stage& stage);
void ComputeRoot(const Stage& stage);

}  // namespace baton::te

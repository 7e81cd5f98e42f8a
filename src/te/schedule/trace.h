// SPDX-License-Identifier: Apache-2.0
// The steps of a schedule as text: recorded, and done again.
#pragma once

#include <baton/te/schedule.h>

#include <string>

namespace baton::te {

/// The name of a loop among all that its stage ever had: its variable's, with #2 and so on where others have the same.
std::string LoopLabel(const Stage& stage, const IterVar& iv);
/// Adds a step to the trace of a stage: `verb LABEL rest`.
void Note(const Stage& stage, const std::string& verb, const std::string& rest = "");
std::string LoopLabels(const Stage& stage, const Array<IterVar>& loops);
/// The text of a number or of a name in a step.
std::string StepText(const PrimExpr& e);

/// Does the steps of a trace, a line each, to a schedule of the same operations. `intrins`: those of `tensorize`, by
/// name. Throws ValueError, naming the line, for one that cannot be read or done.
void ReplaySchedule(const Schedule& s, const String& text, const Map<String, TensorIntrin>& intrins);

}  // namespace baton::te

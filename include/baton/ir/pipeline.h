// SPDX-License-Identifier: Apache-2.0
// Pipelines beyond a plain sequence: by contract (Scheduled), as text, and why each pass ran.
#pragma once

#include <baton/ir/transform.h>

namespace baton::transform {

// ---- Properties

/// A property of modules that passes may need, establish, keep or destroy.
struct PropertyDef {
  const char* doc;
  const char* establisher;                    ///< the pass that is inserted where the property is missing; null: none
  std::string (*check)(const IRModule& mod);  ///< "" where it holds, else what is wrong; cheap
};
BATON_DLL void RegisterProperty(const char* name, PropertyDef def);
/// Throws ValueError with the nearest names where there is no such property.
BATON_DLL const PropertyDef& GetProperty(const String& name);
BATON_DLL Array<String> ListProperties();

/// Runs passes by their contracts: before a pass, each property that it needs and that does not hold is established by
/// the property's own pass. A pass all of whose `establishes` hold is skipped. A destroyed property is restored only
/// when a pass needs it, or at the end if it is in `ends_with`. Names in `required` still work; such a pass is skipped
/// too if its properties hold.
class BATON_DLL ScheduledNode : public Node<ScheduledNode, PassNode> {
 public:
  static constexpr const char* _type_key = "transform.Scheduled";
  PassInfo pass_info;
  Array<Pass> passes;
  Array<String> ends_with;
  static constexpr void Describe(auto& d) {
    d(F<&ScheduledNode::pass_info>, "Name, level, prerequisites.");
    d(F<&ScheduledNode::passes>, "Run in this order.");
    d(F<&ScheduledNode::ends_with>, "Properties that hold at the end.");
  }
  PassInfo Info() const final { return pass_info; }
  IRModule operator()(IRModule mod, const PassContext& ctx) const final;
};
class BATON_DLL Scheduled : public Pass {
 public:
  BATON_DEFINE_OBJECT_REF_METHODS(Scheduled, Pass, ScheduledNode)
  Scheduled(Array<Pass> passes, String name, Array<String> ends_with = {});
};

// ---- Passes called by themselves

/// Type inference for built-in Relay passes that a front end calls outside of a sequence. The Relay layer registers it.
BATON_DLL void SetTypeInference(IRModule (*infer)(const IRModule& mod));
/// Applied to the results of function passes: annotates parameters whose types can no longer be inferred.
BATON_DLL void SetParamStatement(BaseFunc (*state)(const BaseFunc& made, const IRModule& mod));

// ---- Joining built-in pipelines

/// From now on the pipeline of this name ("DefaultPipeline", "LowerPipeline") has the pass that GetPass makes of
/// `pass`: before the first pass called `before`, or after the last called `after`, or, where both are empty, at its
/// end. Passes that join at the same place run in the order in which they joined. A pass that joins again moves.
BATON_DLL void JoinPipeline(const String& pipeline, const String& pass, const String& before, const String& after);
BATON_DLL void LeavePipeline(const String& pipeline, const String& pass);
/// The passes of a pipeline, including those that joined it. Throws ValueError if one joined at a place that does not
/// exist.
BATON_DLL Array<Pass> WithJoined(const String& pipeline, const Array<Pass>& passes);

// ---- Why each pass ran

namespace schedule {

/// The decision of a sequence about a pass.
struct Decision {
  int depth = 0;       ///< of sequences within sequences
  std::string pass;    ///< its name
  std::string action;  ///< "ran", "inserted" or "skipped"
  std::string why;
  bool changed = false;
  std::vector<std::string> holds;  ///< properties that hold afterwards; only of Scheduled
};
/// While it lives, collects the decisions of all sequences that run in the current context; nested contexts, such as
/// that of constant folding, are left out. It is an instrument of that context.
class BATON_DLL Log {
 public:
  Log();
  ~Log();
  Log(const Log&) = delete;
  std::vector<Decision> decisions;

 private:
  PassContext context_;
  instrument::PassInstrument instrument_;
};
/// A table with one row for each pass, or JSON.
BATON_DLL std::string Render(const std::vector<Decision>& decisions, bool json);

}  // namespace schedule

// ---- As text

/// The sequence that a text describes: `InferType,FuseOps(max_depth=64),tir.UnrollLoop(auto_max_step=16)`. Names are
/// those of GetPass, `tir.` or `relay.` before them choose the layer. Options are the arguments of the pass, or the
/// last component of its keys in the PassContext's config (`relay.FuseOps.max_depth`; the fields of `tir.UnrollLoop`).
/// Values: 3, 2.5, true, false, none, "text", [lists], {"key": value}. `Sequential(A,B)` nests. Throws ValueError with
/// the position and the nearest names.
BATON_DLL Pass ParsePipeline(const String& text);
/// The text of a pass; ParsePipeline reads it back. A pass that cannot be made by name is a ValueError.
BATON_DLL String PipelineText(const Pass& pass);

}  // namespace baton::transform

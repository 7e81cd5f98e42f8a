// SPDX-License-Identifier: Apache-2.0
// Pipelines beyond a plain sequence: by contract (Scheduled), as text, and why each pass ran.
#pragma once

#include <baton/ir/transform.h>

namespace baton::transform {

// ---- Properties

/// A property of modules that passes may need, establish, keep or destroy.
struct PropertyDef {
  const char* doc;
  const char* establisher;                    ///< the pass that is inserted where it is missing; null: none is
  std::string (*check)(const IRModule& mod);  ///< "" where it holds, else what is wrong; cheap
};
BATON_DLL void RegisterProperty(const char* name, PropertyDef def);
/// Throws ValueError with the nearest names where there is no such property.
BATON_DLL const PropertyDef& GetProperty(const String& name);
BATON_DLL Array<String> ListProperties();

/// Runs passes by their contracts: before each what it needs and does not hold is established by the property's own
/// pass, a pass all of whose `establishes` hold is left out, and what was destroyed is restored only when a pass needs
/// it (or `ends_with` asks for it at the end). Names in `required` go on working; one whose properties hold is left
/// out.
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

/// What a built-in pass over Relay finds types with when a front end calls it outside of a sequence: the layer that has
/// types says it.
BATON_DLL void SetTypeInference(IRModule (*infer)(const IRModule& mod));
/// What function passes give their results to: it writes down types of parameters that do not follow any more.
BATON_DLL void SetParamStatement(BaseFunc (*state)(const BaseFunc& made, const IRModule& mod));

// ---- Joining built-in pipelines

/// From now on the pipeline of this name ("DefaultPipeline", "LowerPipeline") has the pass that GetPass makes of
/// `pass`: before the first pass called `before`, or after the last called `after`, or, where both are empty, at its
/// end. Those that join at one place stand in the order in which they joined. A pass that joins again moves.
BATON_DLL void JoinPipeline(const String& pipeline, const String& pass, const String& before, const String& after);
BATON_DLL void LeavePipeline(const String& pipeline, const String& pass);
/// The passes of a pipeline with those that joined it. Throws ValueError where one names a place that is not there.
BATON_DLL Array<Pass> WithJoined(const String& pipeline, const Array<Pass>& passes);

// ---- Why each pass ran

namespace schedule {

/// What a sequence decided about a pass.
struct Decision {
  int depth = 0;       ///< of sequences within sequences
  std::string pass;    ///< its name
  std::string action;  ///< "ran", "inserted" or "skipped"
  std::string why;
  bool changed = false;
  std::vector<std::string> holds;  ///< properties that hold afterwards; only of Scheduled
};
/// Collects the decisions of all sequences that run while it lives, in the context that is current now: what constant
/// folding compiles in a context of its own is its own business. An instrument of that context.
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
/// Rows, a pass each, or JSON.
BATON_DLL std::string Render(const std::vector<Decision>& decisions, bool json);

}  // namespace schedule

// ---- As text

/// The sequence that a text says: `InferType,FuseOps(max_depth=64),tir.UnrollLoop(auto_max_step=16)`. Names are those
/// of GetPass, `tir.` or `relay.` before them choose the layer. Options are the arguments that the pass is made with,
/// or the last part of keys of the PassContext's config that belong to the pass (`relay.FuseOps.max_depth`; the fields
/// of `tir.UnrollLoop`). Values: 3, 2.5, true, false, none, "text", [lists], {"key": value}. `Sequential(A,B)` nests.
/// Throws ValueError that shows the place and the nearest names.
BATON_DLL Pass ParsePipeline(const String& text);
/// The text of a pass; ParsePipeline reads it back. Passes that no name makes are a ValueError.
BATON_DLL String PipelineText(const Pass& pass);

}  // namespace baton::transform

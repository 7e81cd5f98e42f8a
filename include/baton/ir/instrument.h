// SPDX-License-Identifier: Apache-2.0
// Instruments: code that runs around passes. PassContext (transform.h) documents when each hook is called and what an
// exception does.
#pragma once

#include <baton/ir/module.h>
#include <baton/runtime/packed_func.h>

namespace baton::transform {
class PassInfo;
struct PassRun;
}  // namespace baton::transform

namespace baton::instrument {

/// Observes passes. Hooks may throw. One instrument may be used by contexts of several threads at once; its hooks then
/// run on these threads and must guard shared state.
class BATON_DLL PassInstrumentNode : public Node<PassInstrumentNode, Object> {
 public:
  static constexpr const char* _type_key = "instrument.PassInstrument";
  static constexpr bool _type_final = false;
  static constexpr bool _type_abstract = true;
  static constexpr uint32_t _type_child_slots = 16;
  String name;
  bool observes = false;
  static constexpr void Describe(auto& d) {
    d(F<&PassInstrumentNode::name>, "Name of the instrument.");
    d(F<&PassInstrumentNode::observes>,
      "It only watches: contexts nested in its own inherit it (its enter, exit and should_run are not called there).");
  }
  virtual ~PassInstrumentNode() = default;
  virtual void EnterPassContext() const = 0;
  virtual void ExitPassContext() const = 0;
  virtual bool ShouldRun(const IRModule& mod, const transform::PassInfo& info) const = 0;
  virtual void RunBeforePass(const IRModule& mod, const transform::PassInfo& info) const = 0;
  virtual void RunAfterPass(const IRModule& mod, const transform::PassInfo& info) const = 0;
  /// The pass threw: `mod` is its input, `error` is "Kind: message". The exception propagates afterwards.
  virtual void OnPassFailed(const IRModule& mod, const transform::PassInfo& info, const String& error) const;
  /// The pass does not run. Reasons: disabled, above the level, blocked by `should_run`, or unnecessary.
  virtual void OnPassSkipped(const IRModule& mod, const transform::PassInfo& info, const String& reason) const;

  /// The same with the record of the run (pass_run.h). Passes call these; the defaults call those above.
  virtual void BeforeRun(const transform::PassRun& run) const;
  virtual void AfterRun(const transform::PassRun& run) const;
  virtual void RunFailed(const transform::PassRun& run, const String& error) const;
  virtual void RunSkipped(const transform::PassRun& run, const String& reason) const;
};
class PassInstrument : public ObjectRef {
 public:
  BATON_DEFINE_OBJECT_REF_METHODS(PassInstrument, ObjectRef, PassInstrumentNode)
};

/// A C++ instrument that uses the records of runs. It cannot block passes.
class BATON_DLL RunInstrumentNode : public PassInstrumentNode {
 public:
  void EnterPassContext() const override {}
  void ExitPassContext() const override {}
  bool ShouldRun(const IRModule&, const transform::PassInfo&) const final { return true; }
  void RunBeforePass(const IRModule&, const transform::PassInfo&) const final {}
  void RunAfterPass(const IRModule&, const transform::PassInfo&) const final {}
  void BeforeRun(const transform::PassRun&) const override {}
  void AfterRun(const transform::PassRun&) const override {}
  void RunFailed(const transform::PassRun&, const String&) const override {}
  void RunSkipped(const transform::PassRun&, const String&) const override {}
};

/// The hooks of an instrument made of functions. A null hook does nothing; a null should_run means true.
struct Hooks {
  PackedFunc enter, exit, should_run, run_before, run_after, on_failed, on_skipped;
};
BATON_DLL PassInstrument MakePassInstrument(String name, Hooks hooks, bool observes = false);
BATON_DLL PassInstrument MakePassInstrument(String name, PackedFunc enter, PackedFunc exit, PackedFunc should_run,
                                            PackedFunc run_before, PackedFunc run_after);

}  // namespace baton::instrument

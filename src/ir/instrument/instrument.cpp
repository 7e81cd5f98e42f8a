// SPDX-License-Identifier: Apache-2.0
// Instruments made of functions.
#include <baton/ir/pass_run.h>
#include <baton/ir/transform.h>
#include <baton/runtime/registry.h>

namespace baton::instrument {

using transform::PassInfo;
using transform::PassRun;

class FunctionInstrumentNode : public Node<FunctionInstrumentNode, PassInstrumentNode> {
 public:
  static constexpr const char* _type_key = "instrument.FunctionInstrument";
  static constexpr const char* _doc = "An instrument made of functions, one for each point; a null one does nothing.";
  PackedFunc enter, exit, should_run, run_before, run_after, on_failed, on_skipped;
  String origin;
  static constexpr void Describe(auto& d) {
    d(F<&FunctionInstrumentNode::enter>, "Called with nothing when the context is entered; may be null.", kNullable);
    d(F<&FunctionInstrumentNode::exit>, "Called when it is left.", kNullable);
    d(F<&FunctionInstrumentNode::should_run>, "(module, info) -> bool.", kNullable);
    d(F<&FunctionInstrumentNode::run_before>, "(module, info).", kNullable);
    d(F<&FunctionInstrumentNode::run_after>, "(module, info).", kNullable);
    d(F<&FunctionInstrumentNode::on_failed>, "(module, info, error).", kNullable);
    d(F<&FunctionInstrumentNode::on_skipped>, "(module, info, reason).", kNullable);
    d(F<&FunctionInstrumentNode::origin>, "How a front end makes it again, as a text; \"\" where it cannot.");
  }
  void EnterPassContext() const final {
    if (enter.defined()) enter();
  }
  void ExitPassContext() const final {
    if (exit.defined()) exit();
  }
  bool ShouldRun(const IRModule& mod, const PassInfo& info) const final {
    if (!should_run.defined()) return true;
    Any yes = should_run(mod, info);
    if (!yes.Is<bool>()) {
      throw runtime::TypeError("should_run of instrument `" + name.str() + "` must return a bool, it returned " +
                               runtime::ValueKindName(yes.raw()) + " for pass `" + info->name.str() + "`");
    }
    return yes.As<bool>();
  }
  void RunBeforePass(const IRModule& mod, const PassInfo& info) const final {
    if (run_before.defined()) run_before(mod, info);
  }
  void RunAfterPass(const IRModule& mod, const PassInfo& info) const final {
    if (run_after.defined()) run_after(mod, info);
  }
  void OnPassFailed(const IRModule& mod, const PassInfo& info, const String& error) const final {
    if (on_failed.defined()) on_failed(mod, info, error);
  }
  void OnPassSkipped(const IRModule& mod, const PassInfo& info, const String& reason) const final {
    if (on_skipped.defined()) on_skipped(mod, info, reason);
  }
};

void PassInstrumentNode::OnPassFailed(const IRModule&, const PassInfo&, const String&) const {}
void PassInstrumentNode::OnPassSkipped(const IRModule&, const PassInfo&, const String&) const {}

void PassInstrumentNode::BeforeRun(const PassRun& run) const { RunBeforePass(run.module, run.info); }
void PassInstrumentNode::AfterRun(const PassRun& run) const { RunAfterPass(run.result, run.info); }
void PassInstrumentNode::RunFailed(const PassRun& run, const String& error) const {
  OnPassFailed(run.module, run.info, error);
}
void PassInstrumentNode::RunSkipped(const PassRun& run, const String& reason) const {
  OnPassSkipped(run.module, run.info, reason);
}

PassInstrument MakePassInstrument(String name, Hooks hooks, bool observes) {
  auto n = make_object<FunctionInstrumentNode>();
  n->name = name;
  n->observes = observes;
  n->enter = hooks.enter;
  n->exit = hooks.exit;
  n->should_run = hooks.should_run;
  n->run_before = hooks.run_before;
  n->run_after = hooks.run_after;
  n->on_failed = hooks.on_failed;
  n->on_skipped = hooks.on_skipped;
  return PassInstrument(ObjectPtr<Object>(n));
}
PassInstrument MakePassInstrument(String name, PackedFunc enter, PackedFunc exit, PackedFunc should_run,
                                  PackedFunc run_before, PackedFunc run_after) {
  return MakePassInstrument(name, Hooks{enter, exit, should_run, run_before, run_after, nullptr, nullptr});
}

namespace {
const RegisterNodes<FunctionInstrumentNode> registered_instrument;
}  // namespace

BATON_REGISTER_GLOBAL("instrument.PassInstrument")
    .set_body_typed([](String name, bool observes, PackedFunc enter, PackedFunc exit, PackedFunc should_run,
                       PackedFunc before, PackedFunc after, PackedFunc failed, PackedFunc skipped) {
      return MakePassInstrument(name, {enter, exit, should_run, before, after, failed, skipped}, observes);
    });

BATON_REGISTER_GLOBAL("instrument.SetOrigin").set_body_typed([](PassInstrument i, String origin) {
  if (auto* n = const_cast<FunctionInstrumentNode*>(i.as<FunctionInstrumentNode>())) n->origin = origin;
});

}  // namespace baton::instrument

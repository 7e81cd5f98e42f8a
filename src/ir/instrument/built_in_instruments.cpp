// SPDX-License-Identifier: Apache-2.0
// Instruments of every pass: the journal of running passes, and the verification that tests enable.
#include <baton/ir/failure.h>
#include <baton/ir/pipeline.h>
#include <baton/ir/rewrite_limit.h>
#include <baton/runtime/registry.h>

#include <cstdlib>

#include "ir/pass/pass_internals.h"

namespace baton::instrument {

using transform::GetProperty;
using transform::PassInfo;
using transform::PassRun;

namespace {

/// An entry of the journal stays open if the process dies or the pass throws.
class JournalNode : public Node<JournalNode, RunInstrumentNode> {
 public:
  static constexpr const char* _type_key = "instrument.Journal";
  static constexpr const char* _doc = "Writes passes to the journal of a capsule as they begin and end.";
  static constexpr void Describe(auto&) {}

  void BeforeRun(const PassRun& run) const final {
    if (transform::failure::journaling.load(std::memory_order_relaxed) == 0) return;
    transform::failure::Begin("pass", run.info->name.view());
    run.journaled = true;
  }
  void AfterRun(const PassRun& run) const final {
    if (run.journaled) transform::failure::End();
  }
  void RunFailed(const PassRun& run, const String&) const final {
    if (run.journaled) transform::failure::LeaveOpen();
  }
};

/// Checks the result of each pass; `types`: also the types after built-in passes.
class VerifyPassesNode : public Node<VerifyPassesNode, RunInstrumentNode> {
 public:
  static constexpr const char* _type_key = "instrument.VerifyPasses";
  static constexpr const char* _doc = "Checks every module that a pass makes, where BATON_VERIFY_PASSES asks for it.";
  bool types = false;
  static constexpr void Describe(auto& d) {
    d(F<&VerifyPassesNode::types>, "Checks types after built-in passes, not the form alone.");
  }

  void AfterRun(const PassRun& run) const final {
    if (run.result.same_as(run.module) || transform::RewriteScope::Active()) return;
    CheckForm(run);
    // Results of user passes are not checked here: tests inject faults by them. VerifyIR checks those as well.
    if (types && transform::IsBuiltIn(run.info->name.view())) CheckTypes(run);
  }

 private:
  static void CheckForm(const PassRun& run) {
    const std::string wrong = GetProperty("WellFormed").check(run.result);
    if (wrong.empty()) return;
    // A module from a file may already have been ill-formed: not a fault of the pass.
    const std::string was = GetProperty("WellFormed").check(run.module);
    const std::string pass = "pass `" + run.info->name.str() + "`";
    if (!was.empty()) throw runtime::ValueError(pass + " was given a module that is not well formed:\n" + was);
    throw InternalError(pass + " left a module that is not well formed:\n" + wrong);
  }
  static void CheckTypes(const PassRun& run) {
    // Some programs can be typed only after a certain pass, or never: not a fault of this pass.
    const transform::PropertyDef& typed = GetProperty("WellTyped");
    const std::string wrong = typed.check(run.result);
    if (wrong.empty() || !typed.check(run.module).empty()) return;
    throw InternalError("pass `" + run.info->name.str() + "` left a module whose types do not follow:\n" + wrong);
  }
};

const RegisterNodes<JournalNode, VerifyPassesNode> registered_built_in;

}  // namespace
}  // namespace baton::instrument

namespace baton::transform {

const std::vector<instrument::PassInstrument>& BuiltInInstruments() {
  static const auto* all = [] {
    auto* list = new std::vector<instrument::PassInstrument>;
    list->push_back(instrument::PassInstrument(ObjectPtr<Object>(make_object<instrument::JournalNode>())));
    const char* asked = getenv("BATON_VERIFY_PASSES");
    const std::string_view verify = asked ? asked : "";
    if (verify.empty() || verify == "0") return list;
    auto n = make_object<instrument::VerifyPassesNode>();
    n->types = verify != "form";
    list->push_back(instrument::PassInstrument(ObjectPtr<Object>(n)));
    return list;
  }();
  return *all;
}

}  // namespace baton::transform

// SPDX-License-Identifier: Apache-2.0
// Instruments that see every pass: the journal of what runs, and the verification that tests ask for.
#include <baton/ir/failure.h>
#include <baton/ir/pipeline.h>
#include <baton/ir/rewrite_limit.h>
#include <baton/runtime/registry.h>

#include <cstdlib>

#include "ir/pass/internal.h"

namespace baton::instrument {

using transform::GetProperty;
using transform::PassInfo;
using transform::PassRun;

namespace {

/// In the journal a pass stands open if the process dies or the pass throws.
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

/// Checks what each pass made; `types` also those of built-in passes.
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
    // Of passes of others, tests of faults want the program that they leave; VerifyIR looks at those, too.
    if (types && transform::IsBuiltIn(run.info->name.view())) CheckTypes(run);
  }

 private:
  static void CheckForm(const PassRun& run) {
    const std::string wrong = GetProperty("WellFormed").check(run.result);
    if (wrong.empty()) return;
    // A module that was read from a file may have come so: that is no fault of the pass.
    const std::string was = GetProperty("WellFormed").check(run.module);
    const std::string pass = "pass `" + run.info->name.str() + "`";
    if (!was.empty()) throw runtime::ValueError(pass + " was given a module that is not well formed:\n" + was);
    throw InternalError(pass + " left a module that is not well formed:\n" + wrong);
  }
  static void CheckTypes(const PassRun& run) {
    // Programs exist whose types follow only after some pass, or do not follow at all: that is no fault of this one.
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

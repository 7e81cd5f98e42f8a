// SPDX-License-Identifier: Apache-2.0
// The verifying instrument. Checks that the result of a pass is well formed, that the pass keeps its contract, that an
// unchanged result is reported as such, and that a second run gives the same result.
#include <baton/ir/pass_run.h>
#include <baton/ir/pipeline.h>
#include <baton/ir/structural.h>
#include <baton/ir/transform.h>
#include <baton/runtime/registry.h>

#include <memory>
#include <mutex>
#include <unordered_map>

#include "ir/pass/pass_internals.h"

namespace baton::instrument {

using transform::PassContext;
using transform::PassInfo;
using transform::PassRun;

namespace {

class VerifyNode : public Node<VerifyNode, RunInstrumentNode> {
 public:
  static constexpr const char* _type_key = "instrument.VerifyIR";
  static constexpr bool _type_has_hidden_members = true;  // the hashes
  Array<String> properties;
  bool contracts = true, unchanged = true, determinism = false;
  static constexpr void Describe(auto& d) {
    d(F<&VerifyNode::properties>, "Properties that every pass must leave.");
    d(F<&VerifyNode::contracts>, "Checks what passes say they establish.");
    d(F<&VerifyNode::unchanged>,
      "Checks that a module returned as it is was not changed in place, nor the input ever.");
    d(F<&VerifyNode::determinism>, "Runs each pass twice and compares.");
  }

  void BeforeRun(const PassRun& run) const final {
    if (!unchanged) return;
    const uint64_t hash = StructuralHash(run.module, true);
    std::lock_guard lock(inputs->mutex);
    inputs->hashes[&run] = hash;
  }
  void AfterRun(const PassRun& run) const final {
    uint64_t was = 0;
    if (TakeHash(run, &was) && StructuralHash(run.module, true) != was) {
      Fail(run.info, run.module.same_as(run.result)
                         ? "returned the module that it got, but changed it in place"
                         : "changed the module that it was given; a pass makes a new one (IRModule.Copy, CopyOnWrite)");
    }
    for (const String& p : properties) Check(p, run, true);
    if (contracts) {
      for (const String& p : run.info->establishes) Check(p, run, false);
    }
    if (determinism && run.pass) RunAgain(run);
  }
  void RunFailed(const PassRun& run, const String&) const final {
    uint64_t was;
    TakeHash(run, &was);
  }

 private:
  /// Hashes of the inputs of the active runs, of all threads.
  struct Inputs {
    std::mutex mutex;
    std::unordered_map<const PassRun*, uint64_t> hashes;
  };
  bool TakeHash(const PassRun& run, uint64_t* hash) const {
    std::lock_guard lock(inputs->mutex);
    auto it = inputs->hashes.find(&run);
    if (it == inputs->hashes.end()) return false;
    *hash = it->second;
    inputs->hashes.erase(it);
    return true;
  }
  [[noreturn]] static void Fail(const PassInfo& info, const std::string& what) {
    throw InternalError("verification after pass `" + info->name.str() + "`: it " + what);
  }
  /// Some programs can be typed only after a certain pass, or never: then this pass did not break them.
  static void Check(const String& property, const PassRun& run, bool may_be_so_before) {
    const transform::PropertyDef& def = transform::GetProperty(property);
    std::string wrong = def.check(run.result);
    if (wrong.empty()) return;
    if (property == "WellTyped" && may_be_so_before && !def.check(run.module).empty()) return;
    Fail(run.info, "left a module that is not " + property.str() + ":\n" + wrong);
  }
  static void RunAgain(const PassRun& run) {
    // Without instruments: the second run must not be observed.
    PassContext plain = PassContext::Current().WithConfig({});
    plain->instruments = Array<PassInstrument>();
    plain->inherit_instruments = false;
    transform::AdoptPassContext current(plain);
    IRModule second = (*run.pass)(run.module, plain);
    std::string where;
    if (StructuralEqual(run.result, second, false, &where)) return;
    Fail(run.info, "is not deterministic: a second run on the same module gave another result, at " + where);
  }

  std::shared_ptr<Inputs> inputs = std::make_shared<Inputs>();
};

const RegisterNodes<VerifyNode> registered_verify;

}  // namespace

BATON_REGISTER_GLOBAL("instrument.VerifyIR")
    .set_body_typed([](Array<String> properties, bool contracts, bool unchanged, bool determinism) {
      auto n = make_object<VerifyNode>();
      n->name = "VerifyIR";
      n->observes = true;
      for (const String& p : properties) transform::GetProperty(p);
      n->properties = properties;
      n->contracts = contracts, n->unchanged = unchanged, n->determinism = determinism;
      return PassInstrument(ObjectPtr<Object>(n));
    });

}  // namespace baton::instrument

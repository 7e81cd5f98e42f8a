// SPDX-License-Identifier: Apache-2.0
// The verifying instrument: what a pass made is well formed and keeps its contract, says truly whether it changed
// something, and is the same on a second run.
#include <baton/ir/pipeline.h>
#include <baton/ir/progress.h>
#include <baton/ir/structural.h>
#include <baton/ir/transform.h>
#include <baton/runtime/registry.h>

#include <vector>

#include "ir/pass/internal.h"

namespace baton::instrument {

using transform::PassContext;
using transform::PassInfo;
namespace progress = transform::progress;

namespace {

class VerifyNode : public Node<VerifyNode, PassInstrumentNode> {
 public:
  static constexpr const char* _type_key = "instrument.VerifyIR";
  Array<String> properties;
  bool contracts = true, unchanged = true, determinism = false;
  static constexpr void Describe(auto& d) {
    d(F<&VerifyNode::properties>, "Properties that every pass must leave.");
    d(F<&VerifyNode::contracts>, "Checks what passes say they establish.");
    d(F<&VerifyNode::unchanged>,
      "Checks that a module returned as it is was not changed in place, nor the input ever.");
    d(F<&VerifyNode::determinism>, "Runs each pass twice and compares.");
  }

  void EnterPassContext() const final {}
  void ExitPassContext() const final {}
  bool ShouldRun(const IRModule&, const PassInfo&) const final { return true; }

  void RunBeforePass(const IRModule& mod, const PassInfo&) const final {
    if (busy || !unchanged) return;
    const progress::Frame* frame = progress::Current();
    if (frame) inputs.push_back({frame, StructuralHash(mod, true)});
  }
  void RunAfterPass(const IRModule& mod, const PassInfo& info) const final {
    if (busy) return;
    const progress::Frame* frame = progress::Current();
    if (unchanged && frame) {
      uint64_t was = 0;
      if (TakeHash(frame, &was) && StructuralHash(frame->input, true) != was) {
        Fail(info, frame->input.same_as(mod)
                       ? "returned the module that it got, but changed it in place"
                       : "changed the module that it was given; a pass makes a new one (IRModule.Copy, CopyOnWrite)");
      }
    }
    for (const String& p : properties) Check(p, mod, info, frame);
    if (contracts) {
      for (const String& p : info->establishes) Check(p, mod, info, nullptr);
    }
    if (determinism && frame) RunAgain(*frame, mod, info);
  }
  void OnPassFailed(const IRModule&, const PassInfo&, const String&) const final {
    uint64_t was;
    if (const progress::Frame* frame = progress::Current(); frame && !busy) TakeHash(frame, &was);
  }

 private:
  struct Input {
    const progress::Frame* frame;
    uint64_t hash;
  };
  [[noreturn]] static void Fail(const PassInfo& info, const std::string& what) {
    throw InternalError("verification after pass `" + info->name.str() + "`: it " + what);
  }
  static bool TakeHash(const progress::Frame* frame, uint64_t* hash) {
    for (size_t i = inputs.size(); i-- > 0;) {
      if (inputs[i].frame != frame) continue;
      *hash = inputs[i].hash;
      inputs.resize(i);
      return true;
    }
    return false;
  }
  static void Check(const String& property, const IRModule& mod, const PassInfo& info, const progress::Frame* frame) {
    const transform::PropertyDef& def = transform::GetProperty(property);
    std::string wrong = def.check(mod);
    if (wrong.empty()) return;
    // Of some programs types follow only after a pass, or never: then it is not this pass that broke them.
    if (property == "WellTyped" && frame && !def.check(frame->input).empty()) return;
    Fail(info, "left a module that is not " + property.str() + ":\n" + wrong);
  }
  static void RunAgain(const progress::Frame& frame, const IRModule& first, const PassInfo& info) {
    struct Busy {
      Busy() { busy = true; }
      ~Busy() { busy = false; }
    } running;
    // Without instruments: nobody sees the second run.
    PassContext plain = PassContext::Current().WithConfig({});
    plain->instruments = Array<PassInstrument>();
    plain->inherit_instruments = false;
    transform::AdoptPassContext current(plain);
    IRModule second = (*frame.pass)(frame.input, plain);
    std::string where;
    if (StructuralEqual(first, second, false, &where)) return;
    Fail(info, "is not deterministic: a second run on the same module gave another result, at " + where);
  }

  static thread_local bool busy;
  static thread_local std::vector<Input> inputs;
};
thread_local bool VerifyNode::busy = false;
thread_local std::vector<VerifyNode::Input> VerifyNode::inputs;

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

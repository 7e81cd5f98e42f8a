// SPDX-License-Identifier: Apache-2.0
#include "driver/lower_to_tir.h"

#include <baton/relay/transform.h>
#include <baton/runtime/registry.h>
#include <baton/support/json.h>
#include <baton/support/with.h>

#include <utility>

#include "driver/donations.h"
#include "driver/size_words.h"
#include "driver/write_artifact.h"
#include "relay/transform/whole_states.h"
#include "runtime/artifact_format.h"

namespace baton::driver {

using relay::Function;

Lowering::Lowering(LoweredProgram made) {
  auto n = make_object<LoweringNode>();
  if (made.is_function()) {
    n->description = String(runtime::ManifestOf(made.desc, made.guards));
    for (const auto& [at, value] : made.host.constants.list) {
      n->constants.push_back(value);
      n->offsets.push_back(static_cast<int64_t>(at));
    }
  }
  for (const std::string& text : made.guards) n->guards.push_back(String(text));
  n->made = std::make_shared<const LoweredProgram>(std::move(made));
  data_ = n;
}

Lowering Lowering::Of(const IRModule& mod) {
  if (mod->attrs.defined() && mod->attrs->dict.count(kLowering)) {
    return mod->attrs->dict.at(kLowering).As<Lowering>();
  }
  throw CompileError(
      "the module is not lowered: the pass LowerToTIR makes its PrimFuncs and the entry that calls them");
}

std::shared_ptr<const LoweredProgram> Lowering::Made() const {
  if ((*this)->made) return (*this)->made;
  if ((*this)->description.size() == 0) {
    throw UnsupportedError("the bytecode of a lowered program is not kept in files; start from its Relay text");
  }
  auto out = std::make_shared<LoweredProgram>();
  const support::Json description = support::Json::Parse((*this)->description.view());
  out->desc = runtime::artifact::ReadDesc(description);
  if (const support::Json* forms = description.Find("forms")) out->desc.forms = forms->AsString();
  if ((*this)->constants.size() != (*this)->offsets.size()) throw CompileError("a lowering is damaged");
  for (size_t i = 0; i < (*this)->constants.size(); ++i) {
    const NDArray value = (*this)->constants[static_cast<int64_t>(i)];
    const int64_t at = (*this)->offsets[static_cast<int64_t>(i)];
    const uint64_t end = out->host.constants.bytes;
    if (at < 0 || static_cast<uint64_t>(at) < end) throw CompileError("a lowering is damaged: constants overlap");
    out->host.constants.list.push_back({static_cast<uint64_t>(at), value});
    out->host.constants.bytes = static_cast<uint64_t>(at) + value.nbytes();
  }
  if (out->host.constants.bytes > out->desc.constants_bytes)
    throw CompileError("a lowering is damaged: constants end late");
  out->host.constants.bytes = out->desc.constants_bytes;
  for (const String& text : (*this)->guards) out->guards.push_back(text.str());
  return out;
}

namespace {

/// Main as one function.
LoweredProgram OneFunction(const Function& main, const Target& target, const DebugOptions& debug) {
  LoweredProgram out;
  out.host = LowerGraphs({{runtime::ExecutableDesc().entry, main}}, target, debug.Lowering());
  debug.WriteSource(out.host.debug_source);
  out.desc = out.host.graphs[0];
  out.desc.forms = FormsOf(main);
  out.desc.steps = StepsText(out.host.steps, {});
  out.guards = GuardTexts(main);
  return out;
}

/// One function where main can be one, else a program.
LoweredProgram LowerForHost(const IRModule& mod, const Target& target, const DebugOptions& debug) {
  const Function main = MainOf(mod);
  std::string why;
  const bool state = !main->GetAttr<Array<int64_t>>(relay::transform::kStateInputs, Array<int64_t>()).empty() ||
                     !main->GetAttr<Array<int64_t>>(relay::transform::kWholeStates, Array<int64_t>()).empty();
  if (CanLowerGraph(main, &why)) return OneFunction(main, target, debug);
  if (state) throw UnsupportedError("states are for models that become one function: " + why);
  LoweredProgram out = LowerProgram(mod, target, {}, kDLCPU, debug);
  out.why = why;
  return out;
}

LoweredProgram Lower(const IRModule& mod, const LowerToTIROptions& options) {
  const DebugOptions debug = DebugOptions::FromContext();
  const Target target = options.target.size() ? Target::Make(options.target.view()) : Target::Current();
  Map<String, Target> given;
  for (const auto& [device, text] : options.devices) given.Set(device, Target::Make(text.view()));
  if (given.empty() && !target->traits().on_host) given = OfItsDevice(target);
  if (!given.empty()) {
    const std::vector<DeviceTarget> targets = CheckDeviceTargets(given);
    LoweredProgram out = LowerProgram(mod, HostOf(targets), targets, FallbackDevice(targets), debug);
    out.why = "it runs on devices";
    return out;
  }
  With<Target> scope(target);
  if (!options.program) return LowerForHost(mod, target, debug);
  LoweredProgram out = LowerProgram(mod, target, {}, kDLCPU, debug);
  out.why = "its functions are called by name";
  return out;
}

}  // namespace

transform::Pass LowerToTIR(const LowerToTIROptions& options) {
  return transform::MakePass<LowerToTIR>(
      options,
      {
          .doc = "From Relay behind fusion to TIR: a PrimFunc for each distinct group of operators, with the passes of "
                 "LowerPipeline behind it, and the entry that calls them over one planned arena. Code is made of what "
                 "it gives. A module without Relay functions is left as it is.",
          .opt_level = 0,
          .required = {"InferType"},
          .run = [options](IRModule mod, transform::PassContext) -> IRModule {
            bool relay = false;
            for (const auto& [var, func] : mod->functions) {
              const BaseFunc& each = func;
              relay = relay || each.as<relay::FunctionNode>();
            }
            if (!relay) return mod;
            LoweredProgram made = Lower(mod, options);
            IRModule out = std::exchange(made.host.mod, IRModule());
            out.CopyOnWrite()->attrs =
                DictAttrs(Map<String, runtime::Any>{{String(kLowering), Lowering(std::move(made))}});
            return out;
          },
      });
}

namespace {
const transform::RegisterPass<LowerToTIR> registered_lower_to_tir;
const RegisterNodes<LoweringNode> registered_lowering;
}  // namespace

}  // namespace baton::driver

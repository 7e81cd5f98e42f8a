// SPDX-License-Identifier: Apache-2.0
// The road from a model to something that runs, a line a step.
#include <baton/driver/driver.h>
#include <baton/ir/failure.h>
#include <baton/ir/structural.h>
#include <baton/relay/transform.h>
#include <baton/runtime/registry.h>
#include <baton/support/with.h>

#include <utility>

#include "driver/compiled_module.h"
#include "driver/devices.h"

namespace baton::driver {
namespace {

Map<String, String> Texts(const Map<String, Target>& targets) {
  Map<String, String> out;
  for (const auto& [device, target] : targets) out.Set(device, String(target.str()));
  return out;
}

/// Behind fusion: kernels and what calls them, then their code.
runtime::Module Finish(const IRModule& optimized, const Target& host, const LowerToTIROptions& options) {
  With<Target> scope(host);
  const IRModule lowered = LowerToTIR(options)(optimized);
  Stages stages{.tir = lowered, .lowering = Lowering::Of(lowered)};
  if (!lowered.same_as(optimized)) stages.relay = optimized;
  return MakeCompiledModule(std::move(stages), host);
}

}  // namespace

IRModule Optimize(const IRModule& mod, const Target& target) {
  With<Target> scope(target);
  const IRModule here = ForOneDevice(mod, target->device_type());
  return DefaultPipeline()(here);
}

runtime::Module Generate(const IRModule& optimized, const Target& target) {
  transform::failure::Entry entry("driver.Generate", optimized, target);
  return Finish(optimized, target, {});
}

runtime::Module Compile(const IRModule& mod, const Target& target) {
  if (!target->traits().on_host) return CompileForDevices(mod, OfItsDevice(target));
  transform::failure::Entry entry("driver.Compile", mod, target);
  const IRModule optimized = Optimize(mod, target);
  return Generate(optimized, target);
}

runtime::Module GenerateForDevices(const IRModule& planned, const Map<String, Target>& given) {
  transform::failure::Entry entry("driver.GenerateForDevices", planned, given);
  LowerToTIROptions options;
  options.devices = Texts(given);
  return Finish(planned, HostOf(CheckDeviceTargets(given)), options);
}

runtime::Module CompileForDevices(const IRModule& mod, const Map<String, Target>& given) {
  transform::failure::Entry entry("driver.CompileForDevices", mod, given);
  const std::vector<DeviceTarget> targets = CheckDeviceTargets(given);
  const IRModule planned = OptimizeForDevices(mod, targets, FallbackDevice(targets));
  return GenerateForDevices(planned, given);
}

std::string EmitText(const IRModule& mod, const Target& target, const std::string& stage) {
  transform::failure::Entry entry("driver.EmitText", mod, target, stage);
  const DebugOptions debug = DebugOptions::FromContext("none");
  LowerToTIROptions options;
  Stages stages;
  Target host = target;
  if (target->traits().on_host) {
    stages.relay = Optimize(mod, target);
    if (stage == "relay") return AsText(stages.relay);
  } else {
    const Map<String, Target> given = OfItsDevice(target);
    const std::vector<DeviceTarget> targets = CheckDeviceTargets(given);
    stages.relay = OptimizeForDevices(mod, targets, FallbackDevice(targets));
    options.devices = Texts(given);
    host = HostOf(targets);
  }
  With<Target> scope(host);
  stages.tir = LowerToTIR(options)(stages.relay);
  stages.lowering = Lowering::Of(stages.tir);
  return StageText(stages, host, stage, debug.level);
}

namespace {
/// Null: the current target, else this machine.
Target Given(const Target& t) { return t.defined() ? t : Target::Current(); }

/// The executable of a model with dynamic shapes; null for targets without code for them.
BATON_REGISTER_GLOBAL("driver.CompileDynamic").set_body_typed([](IRModule m, Target t) {
  return Given(t)->traits().on_host ? Generate(Optimize(m, Given(t)), Given(t)) : runtime::Module();
});
BATON_REGISTER_GLOBAL("driver.Optimize").set_body_typed([](IRModule m, Target t) { return Optimize(m, Given(t)); });
BATON_REGISTER_GLOBAL("driver.IsOtherProcessor").set_body_typed([](Target t) { return codegen::IsOtherProcessor(t); });
BATON_REGISTER_GLOBAL("driver.Compile").set_body_typed([](IRModule m, Target t) { return Compile(m, Given(t)); });
BATON_REGISTER_GLOBAL("driver.CompileForDevices").set_body_typed([](IRModule m, Map<String, Target> t) {
  return CompileForDevices(m, t);
});
/// For programs whose functions are all called by name.
BATON_REGISTER_GLOBAL("driver.CompileVm").set_body_typed([](IRModule m, Target t) {
  t = Given(t);
  if (!t->traits().on_host) {
    throw UnsupportedError("driver.CompileVm makes code for the host alone, the target is \"" + t.str() +
                           "\"; use driver.CompileForDevices with a map from device to target");
  }
  transform::failure::Entry entry("driver.CompileVm", m, t);
  LowerToTIROptions options;
  options.program = true;
  return Finish(Optimize(m, t), t, options);
});
BATON_REGISTER_GLOBAL("driver.Generate").set_body_typed([](IRModule m, Target t) { return Generate(m, Given(t)); });
BATON_REGISTER_GLOBAL("driver.GenerateForDevices").set_body_typed([](IRModule m, Map<String, Target> t) {
  return GenerateForDevices(m, t);
});
BATON_REGISTER_GLOBAL("driver.EmitText").set_body_typed([](IRModule m, Target t, String stage) {
  return String(EmitText(m, Given(t), stage.str()));
});
BATON_REGISTER_GLOBAL("driver.SaveModule").set_body_typed([](runtime::Module m, String path, String format) {
  m->SaveToFile(path.str(), format.view());
});
BATON_REGISTER_GLOBAL("driver.ModuleKind").set_body_typed([](runtime::Module m) { return String(m->type_key()); });
BATON_REGISTER_GLOBAL("driver.VersionText").set_body_typed([] {
  return String("Baton 0.1.0, LLVM " + codegen::Describe().at("llvm").str());
});
BATON_REGISTER_GLOBAL("driver.HasLinker").set_body_typed([] {
  return codegen::Describe().at("linker").view().starts_with("lld");
});
BATON_REGISTER_GLOBAL("driver.Describe").set_body_typed([] { return codegen::Describe(); });
BATON_REGISTER_GLOBAL("driver.CanLower").set_body_typed([](IRModule m) {
  std::string why;
  return String(CanLowerGraph(MainOf(m), &why) ? std::string() : why);
});
}  // namespace

}  // namespace baton::driver

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
#include "driver/pipelines.h"

namespace baton::driver {
namespace {

/// The steps of a model's compilation, a line each.
IRModule ToGroups(const IRModule& mod, const Targets& targets) {
  With<Target> scope(targets.first());
  const IRModule checked = ForTheseTargets(mod, targets);
  const relay::transform::FoldingBudget budget(checked);
  return RelayPipeline(targets)(checked);
}

Stages ToTIR(const IRModule& optimized, const Targets& targets, bool by_name = false) {
  With<Target> scope(targets.host);
  Stages stages;
  stages.tir = TIRPipeline(targets, by_name)(optimized);
  stages.lowering = Lowering::Of(stages.tir);
  if (!stages.tir.same_as(optimized)) stages.relay = optimized;
  return stages;
}

runtime::Module ToCode(Stages stages, const Targets& targets) {
  With<Target> scope(targets.host);
  Emit(targets.host, &stages);
  return MakeCompiledModule(std::move(stages), targets.host);
}

}  // namespace

IRModule Optimize(const IRModule& mod, const Target& target) { return ToGroups(mod, {target, {}}); }

runtime::Module Generate(const IRModule& optimized, const Target& target) {
  transform::failure::Entry entry("driver.Generate", optimized, target);
  const Targets targets = Targets::Of(target);
  return ToCode(ToTIR(optimized, targets), targets);
}

runtime::Module Compile(const IRModule& mod, const Target& target) {
  if (!target->traits().on_host) return CompileForDevices(mod, OfItsDevice(target));
  transform::failure::Entry entry("driver.Compile", mod, target);
  return Generate(Optimize(mod, target), target);
}

runtime::Module GenerateForDevices(const IRModule& planned, const Map<String, Target>& given) {
  transform::failure::Entry entry("driver.GenerateForDevices", planned, given);
  const Targets targets = Targets::Of(given);
  return ToCode(ToTIR(planned, targets), targets);
}

runtime::Module CompileForDevices(const IRModule& mod, const Map<String, Target>& given) {
  transform::failure::Entry entry("driver.CompileForDevices", mod, given);
  return GenerateForDevices(ToGroups(mod, Targets::Of(given)), given);
}

std::string EmitText(const IRModule& mod, const Target& target, const std::string& stage) {
  transform::failure::Entry entry("driver.EmitText", mod, target, stage);
  const codegen::DebugLevel debug = DebugOptions::FromContext("none").level;
  const Targets targets = Targets::Of(target);
  const IRModule optimized = ToGroups(mod, targets);
  if (stage == "relay" && !targets.planned()) return AsText(optimized);
  Stages stages = ToTIR(optimized, targets);
  With<Target> scope(targets.host);
  return StageText(stages, targets.host, stage, debug);
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
/// Whether a function of a module is for a compiler that the program brings along.
BATON_REGISTER_GLOBAL("driver.IsPartitioned").set_body_typed([](IRModule m) {
  for (const auto& [var, func] : m->functions) {
    const BaseFunc& each = func;
    if (each->attrs.defined() && each->attrs->dict.count(String("Compiler"))) return true;
  }
  return false;
});
/// For programs whose functions are all called by name.
BATON_REGISTER_GLOBAL("driver.CompileVm").set_body_typed([](IRModule m, Target t) {
  t = Given(t);
  if (!t->traits().on_host) {
    throw UnsupportedError("driver.CompileVm makes code for the host alone, the target is \"" + t.str() +
                           "\"; use driver.CompileForDevices with a map from device to target");
  }
  transform::failure::Entry entry("driver.CompileVm", m, t);
  const Targets targets{t, {}};
  return ToCode(ToTIR(ToGroups(m, targets), targets, true), targets);
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

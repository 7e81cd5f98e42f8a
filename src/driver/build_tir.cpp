// SPDX-License-Identifier: Apache-2.0
// PrimFuncs to a module of functions that take tensors and numbers.
#include <baton/codegen/backend.h>
#include <baton/driver/driver.h>
#include <baton/ir/failure.h>
#include <baton/runtime/registry.h>
#include <baton/tir/lower.h>
#include <baton/tir/op.h>
#include <baton/tir/verify.h>
#include <baton/vm/devices.h>

#include "driver/compiled_module.h"
#include "tir/any_stmt.h"

namespace baton::driver {
namespace {

/// Throws UnsupportedError where `f` calls a function that gives a value: its caller reads it from the slots of a call.
void CheckCallsGiveNoValue(const IRModule& mod, const GlobalVar& var, const tir::PrimFunc& f) {
  tir::AnyStmtOf<tir::EvaluateNode>(f->body, [&](const tir::EvaluateNode* e) {
    const auto* call = e->value.as<tir::CallNode>();
    const auto* callee = call ? call->op.as<GlobalVarNode>() : nullptr;
    if (!callee || !mod->ContainGlobalVar(callee->name_hint.str())) return false;
    const BaseFunc called = mod->Lookup(callee->name_hint.str());
    if (!called.as<tir::PrimFuncNode>() || !tir::GivesValue(Downcast<tir::PrimFunc>(called))) return false;
    throw UnsupportedError("@" + var->name_hint.str() + " calls @" + callee->name_hint.str() +
                           ", which gives a value by tir.ret; let it write to a buffer, which is a parameter");
  });
}

/// Adds to each function that others may call its caller.
IRModule WithCallers(const IRModule& mod) {
  Map<GlobalVar, BaseFunc> functions;
  for (const auto& [var, func] : mod->functions) {
    if (!func.as<tir::PrimFuncNode>()) {
      throw runtime::TypeError("@" + var->name_hint.str() + " is no PrimFunc; a model of Relay is for relay.build");
    }
    tir::PrimFunc f = Downcast<tir::PrimFunc>(func);
    if (f->GetAttr<tir::PrimFunc>(tir::attr::kPackedOf).defined()) continue;  // of MakePackedAPI: made anew here
    tir::VerifyWellFormed(f);
    f = tir::CanonicalForm(f);
    CheckCallsGiveNoValue(mod, var, f);
    tir::PackedApi api = tir::MakePackedApi(var, f);
    // The name that the user gives is that of the description; the code itself is called otherwise, or a function
    // called `free` would take the place of the system's.
    std::string name = f->GetAttr<String>(attr::kGlobalSymbol, var->name_hint).str();
    api.func = WithAttr(api.func, attr::kGlobalSymbol, Any(String("baton_code_" + name)));
    api.func = WithAttr(api.func, tir::attr::kDisplayName, Any(String(name)));
    GlobalVar caller(String(std::string(tir::kPackedCallPrefix) + name));
    if (functions.count(caller)) throw CompileError("two functions are called `" + name + "`");
    functions.Set(var, api.func);
    functions.Set(caller, WithAttr(api.caller, "model_entry", Any(1)));
  }
  return IRModule(functions);
}

/// The host's side of functions of a device, which a module of kernels launches: that module is its import.
class HostModule final : public runtime::ModuleNode {
 public:
  HostModule(runtime::Module device, IRModule functions, Target target)
      : functions_(std::move(functions)), target_(std::move(target)) {
    Import(std::move(device));
  }
  const char* type_key() const override { return "host"; }
  runtime::PackedFunc GetFunction(std::string_view name, const runtime::ObjectPtr<Object>&) override {
    return imports_[0].GetFunction(name);
  }
  /// The text that is launched, or another of the backend's, which is made when it is asked for.
  std::string GetSource(std::string_view format) override {
    const codegen::Backend& backend = codegen::BackendOf(target_);
    const std::string name(format);
    if (name.empty() || name == backend.formats[0] || !backend.HasFormat(name)) return imports_[0]->GetSource(format);
    return backend.print(functions_, target_, name, codegen::DebugLevel::kNone);
  }
  void SaveToFile(const std::string& path, std::string_view format) override { imports_[0]->SaveToFile(path, format); }

 private:
  IRModule functions_;
  Target target_;
};

IRModule Canonical(const IRModule& mod) {
  IRModule out = mod;
  for (const auto& [var, func] : mod->functions) {
    if (!func.as<tir::PrimFuncNode>()) continue;
    const tir::PrimFunc wide = tir::CanonicalForm(Downcast<tir::PrimFunc>(func));
    if (!wide.same_as(func)) out.CopyOnWrite()->functions.Set(var, wide);
  }
  return out;
}

}  // namespace

IRModule LowerFunctions(const IRModule& mod, const Target& target) { return LowerTir(Canonical(mod), target); }

runtime::Module BuildFunctions(const IRModule& mod, const Target& target) {
  transform::failure::Entry entry("driver.BuildFunctions", mod, target);
  With<Target> scope(target);
  if (!target->traits().on_host) {
    for (const auto& [var, func] : mod->functions) {
      if (func.as<tir::PrimFuncNode>()) tir::VerifyWellFormed(Downcast<tir::PrimFunc>(func));
    }
    IRModule functions = LowerTir(Canonical(mod), target);
    runtime::Module device =
        vm::CreateDeviceModule(target->device_type(), codegen::BackendOf(target).emit(functions, target, {}).text);
    return runtime::MakeModule<HostModule>(std::move(device), std::move(functions), target);
  }
  Stages stages{.loops = mod, .tir = LowerTir(WithCallers(mod), target)};
  Emit(target, &stages);
  return MakeCompiledModule(std::move(stages), target);
}

namespace {
/// The target that was given, else the one in scope, else this machine.
Target Chosen(Target t) {
  if (!t.defined()) t = Target::Current();
  return t.defined() ? t : Target::Host();
}
BATON_REGISTER_GLOBAL("driver.LowerFunctions").set_body_typed([](IRModule m, Target t) {
  return LowerFunctions(m, Chosen(t));
});
BATON_REGISTER_GLOBAL("driver.BuildFunctions").set_body_typed([](IRModule m, Target t) {
  return BuildFunctions(m, Chosen(t));
});
}  // namespace

}  // namespace baton::driver

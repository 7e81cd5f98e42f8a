// SPDX-License-Identifier: Apache-2.0
// PrimFuncs to a module of functions that take tensors and numbers.
#include <baton/codegen/backend.h>
#include <baton/driver/driver.h>
#include <baton/ir/failure.h>
#include <baton/runtime/registry.h>
#include <baton/support/file.h>
#include <baton/tir/lower.h>
#include <baton/tir/printer.h>
#include <baton/tir/verify.h>
#include <baton/vm/devices.h>

#include "driver/compiled_graph.h"

namespace baton::driver {
namespace {

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

class TirModule : public runtime::ModuleNode {
 public:
  TirModule(IRModule mod, Target target, DebugOptions debug)
      : source_(std::move(mod)), target_(std::move(target)), debug_(std::move(debug)) {
    lowered_ = LowerTir(WithCallers(source_), target_);
    objects_ = codegen::CompileToObjects(lowered_, target_, 2, debug_.level);
    if (!target_->mtriple.empty()) return;  // code for another kind of machine is for saving
    code_ = codegen::LoadObjects(objects_);
    if (void* self = code_->GetSymbol(runtime::kModuleSymbol)) *static_cast<runtime::ModuleNode**>(self) = this;
  }
  const char* type_key() const override { return "llvm"; }
  PackedFunc GetFunction(std::string_view name, const ObjectPtr<Object>& self) override {
    if (!code_.defined()) return nullptr;
    void* spec = code_->GetSymbol((runtime::kFunctionSpecPrefix + std::string(name)).c_str());
    // A single function is what calling the module means, whatever its name.
    if (!spec && name == "main" && source_.defined() && source_->functions.size() == 1) {
      const auto [var, func] = *source_->functions.begin();
      const std::string own = func->GetAttr<String>(attr::kGlobalSymbol, var->name_hint).str();
      if (own != name) return GetFunction(own, self);
    }
    if (!spec) return nullptr;
    runtime::CheckFeatures(objects_.features, "`" + std::string(name) + "`");
    return runtime::MakeNativeFunction(spec, self);
  }
  void* GetSymbol(const char* name) override { return code_.defined() ? code_->GetSymbol(name) : nullptr; }
  std::string GetSource(std::string_view format) override {
    if (format == "tir") {
      std::string text;
      for (const auto& [var, func] : source_->functions) text += tir::AsText(func) + "\n";
      return text;
    }
    if (format.empty() || format == "llvm" || format == "ll") return codegen::CompileToText(lowered_, target_, "ll");
    if (format == "asm") return codegen::CompileToText(lowered_, target_, "asm");
    throw UnsupportedError("no source in format \"" + std::string(format) + "\"; there are tir, llvm, asm");
  }
  void SaveToFile(const std::string& path, std::string_view format) override {
    if (!imports().empty()) {
      throw UnsupportedError(
          "modules that this one imports are not saved with it; save each, load each, and import again");
    }
    if (format == "obj" || format == "o") {
      support::WriteFileAtomic(path, codegen::CompileToObjects(lowered_, target_, 1, debug_.level).objects[0]);
      return;
    }
    if (format == "ll" || format == "llvm" || format == "asm" || format == "s" || format == "tir") {
      support::WriteFileAtomic(path, GetSource(format == "s" ? "asm" : format));
      return;
    }
    if (!format.empty() && format != "lib" && format != "so") {
      throw UnsupportedError("no file format \"" + std::string(format) + "\"; there are lib, obj, llvm, asm, tir");
    }
    std::string elf = codegen::LinkShared(objects_, target_);
    static const uint8_t nothing = 0;
    runtime::ExecutableDesc desc;
    desc.entry = "";  // functions, no model
    desc.features = objects_.features;
    desc.target = target_.str();
    desc.constants = &nothing;
    runtime::WriteArtifact(path, elf.data(), elf.size(), desc);
  }

 private:
  IRModule source_, lowered_;
  Target target_;
  DebugOptions debug_;
  codegen::ObjectCode objects_;
  runtime::Module code_;
};

}  // namespace

IRModule LowerFunctions(const IRModule& mod, const Target& target) { return LowerTir(mod, target); }

runtime::Module BuildFunctions(const IRModule& mod, const Target& target) {
  transform::failure::Entry entry("driver.BuildFunctions", mod, target);
  With<Target> scope(target);
  if (!target->traits().on_host) {
    for (const auto& [var, func] : mod->functions) {
      if (func.as<tir::PrimFuncNode>()) tir::VerifyWellFormed(Downcast<tir::PrimFunc>(func));
    }
    return vm::CreateDeviceModule(target->device_type(), codegen::DeviceCode(mod, target));
  }
  return runtime::MakeModule<TirModule>(mod, target, DebugOptions::FromContext());
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

// SPDX-License-Identifier: Apache-2.0
#include <baton/codegen/codegen.h>
#include <baton/ir/structural.h>
#include <baton/support/with.h>
#include <baton/tir/printer.h>

#include "driver/compiled_graph.h"
#include "driver/vm/compile.h"

namespace baton::driver {

namespace {

class VmModule : public runtime::ModuleNode {
 public:
  VmModule(IRModule mod, Target target, std::string why)
      : mod_(std::move(mod)), target_(std::move(target)), why_(std::move(why)) {
    With<Target> scope(target_);
    VmProgram translated = TranslateToVm(mod_);
    debug_ = DebugOptions::FromContext();
    lowered_ = LowerGraphs(translated.graphs, target_, debug_.Lowering());
    debug_.WriteSource(lowered_.debug_source);
    auto exe = std::make_shared<vm::Executable>();
    exe->program = std::move(translated.program);
    for (size_t i = 0; i < lowered_.graphs.size(); ++i)
      exe->program.kernels[i].arena_bytes = lowered_.graphs[i].arena_bytes;
    exe->program.Validate();
    if (!lowered_.graphs.empty() && target_->mtriple.empty()) {
      objects_ = codegen::CompileToObjects(LowerTir(lowered_.mod, target_), target_, 2, debug_.level);
      exe->code = codegen::LoadObjects(objects_);
    }
    NDArray constants = PackConstants(lowered_.constants, lowered_.constants_bytes);
    exe->constants = constants.ptr<uint8_t>();
    exe->constants_owner = constants;
    exe_ = exe;
  }
  const char* type_key() const override { return "vm"; }

  PackedFunc GetFunction(std::string_view name, const ObjectPtr<Object>& self) override {
    if (name == "default") {
      return PackedFunc([self, this](runtime::Args args, runtime::RetValue* rv) {
        if (!exe_->program.kernels.empty() && !exe_->code.defined()) {
          throw RuntimeError("the program was compiled for " + target_.str() + ", which is not this machine");
        }
        runtime::CheckFeatures(objects_.features, "the program");
        *rv = vm::CreateExecutor(exe_, args.size() ? args[0].As<Device>() : runtime::Cpu());
      });
    }
    if (name == "why") return PackedFunc([self, this](runtime::Args, runtime::RetValue* rv) { *rv = why_; });
    return nullptr;
  }

  std::string GetSource(std::string_view format) override {
    if (format == "relay") return AsText(mod_);
    if (format == "vm") return exe_->program.Disassemble();
    if (format == "tir") {
      std::string out;
      for (const auto& [var, func] : lowered_.mod->functions) out += tir::AsText(func) + "\n";
      return out;
    }
    if (format == "llvm" || format == "ll" || format == "asm") {
      if (lowered_.graphs.empty()) return "";
      return codegen::CompileToText(LowerTir(lowered_.mod, target_), target_, format == "asm" ? "asm" : "ll");
    }
    throw UnsupportedError("no source in format \"" + std::string(format) + "\"; there are relay, vm, tir, llvm, asm");
  }

  void SaveToFile(const std::string& path, std::string_view format) override {
    if (format == "obj" || format == "o") {
      throw UnsupportedError(
          "a program with control flow or open shapes is saved as a shared library (.so), not as an "
          "object file: its bytecode would be lost");
    }
    codegen::ObjectCode code = objects_;
    if (code.objects.empty()) {
      code = codegen::CompileToObjects(LowerTir(lowered_.mod, target_), target_, 2, debug_.level);
    }
    const std::string elf = codegen::LinkShared(code, target_);
    std::string data(reinterpret_cast<const char*>(exe_->constants), lowered_.constants_bytes);
    runtime::ExecutableDesc desc;
    desc.program = exe_->program.Save(&data);
    desc.constants = reinterpret_cast<const uint8_t*>(data.data());
    desc.constants_bytes = data.size();
    desc.features = code.features;
    desc.target = target_.str();
    if (const vm::Entry* main = exe_->program.Find("main")) {
      // For people: what an executor says is in the program.
      for (const runtime::TensorInfo& t : main->inputs) desc.inputs.push_back({t.name, {}, t.dtype});
      for (const runtime::TensorInfo& t : main->outputs) desc.outputs.push_back({t.name, {}, t.dtype});
    }
    runtime::WriteArtifact(path, elf.data(), elf.size(), desc);
  }

 private:
  IRModule mod_;
  Target target_;
  std::string why_;
  DebugOptions debug_;
  LoweredGraphs lowered_;
  codegen::ObjectCode objects_;
  std::shared_ptr<const vm::Executable> exe_;
};

}  // namespace

runtime::Module CompileVm(const IRModule& optimized, const Target& target, std::string why) {
  return runtime::MakeModule<VmModule>(optimized, target, std::move(why));
}

}  // namespace baton::driver

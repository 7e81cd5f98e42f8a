// SPDX-License-Identifier: Apache-2.0
#include <baton/codegen/backend.h>
#include <baton/codegen/codegen.h>
#include <baton/ir/structural.h>
#include <baton/relay/device.h>
#include <baton/support/with.h>
#include <baton/tir/printer.h>

#include "driver/compiled_graph.h"
#include "driver/device_module.h"
#include "driver/size_words.h"
#include "driver/vm/compile.h"

namespace baton::driver {

namespace {

class VmModule : public runtime::ModuleNode {
 public:
  VmModule(IRModule mod, Target target, std::string why, std::vector<DeviceTarget> devices, int64_t fallback)
      : mod_(std::move(mod)), target_(std::move(target)), why_(std::move(why)), devices_(std::move(devices)) {
    With<Target> scope(target_);
    VmProgram translated = TranslateToVm(mod_, devices_, fallback);
    auto exe = std::make_shared<vm::Executable>();
    exe->program = std::move(translated.program);
    // Kernels of the host are one module; those of each other device another.
    std::vector<std::pair<std::string, relay::Function>> host;
    std::vector<size_t> host_kernels;
    std::vector<std::vector<size_t>> others(exe->program.NumDevices());
    for (size_t i = 0; i < translated.graphs.size(); ++i) {
      const auto d = static_cast<size_t>(exe->program.kernels[i].device);
      if (TargetOf(exe->program, d)->traits().on_host) {
        host.push_back(translated.graphs[i]);
        host_kernels.push_back(i);
      } else {
        others[d].push_back(i);
      }
    }
    debug_ = DebugOptions::FromContext();
    lowered_ = LowerGraphs(host, target_, debug_.Lowering());
    debug_.WriteSource(lowered_.debug_source);
    for (size_t i = 0; i < host_kernels.size(); ++i) {
      vm::Kernel& k = exe->program.kernels[host_kernels[i]];
      k.arena_bytes = lowered_.graphs[i].arena_bytes;
      if (!lowered_.graphs[i].dynamic.defined()) continue;
      k.dynamic = lowered_.graphs[i].dynamic;
      k.inputs = lowered_.graphs[i].inputs;
      k.outputs = lowered_.graphs[i].outputs;
    }
    if (devices_.empty()) NameDimsOfMain(&exe->program);
    for (size_t d = 0; d < others.size(); ++d) {
      if (others[d].empty()) continue;
      std::vector<relay::Function> graphs;
      for (size_t i : others[d]) graphs.push_back(translated.graphs[i].second);
      const DeviceTarget on{exe->program.devices[d].type, TargetOf(exe->program, d)};
      LoweredStretches stretches = [&] {
        With<Target> there(on.target);
        return LowerStretches(graphs, on);
      }();
      vm::GraphDevice& device = exe->program.devices[d];
      device = stretches.device;
      device.constants_begin = (lowered_.constants_bytes + 63) / 64 * 64;
      device.constants_bytes = (device.constants_bytes + 63) / 64 * 64;
      for (const auto& [at, value] : stretches.constants)
        lowered_.constants.push_back({device.constants_begin + at, value});
      lowered_.constants_bytes = device.constants_begin + device.constants_bytes;
      device_kernels_ = stretches.kernels;
      for (size_t k = 0; k < others[d].size(); ++k) {
        vm::Kernel& kernel = exe->program.kernels[others[d][k]];
        kernel.arena_bytes = stretches.stretches[k].arena_bytes;
        kernel.steps = std::move(stretches.stretches[k].steps);
        for (vm::GraphStep& s : kernel.steps) {
          s.device = kernel.device;
          for (vm::DevicePlace& p : s.args) p.device = kernel.device;
        }
      }
    }
    exe->program.Validate();
    for (const vm::GraphDevice& d : exe->program.devices)
      exe->device_code.push_back(d.code.empty() ? runtime::Module() : vm::CreateDeviceModule(d.type, d.code));
    if (HasCode() && target_->mtriple.empty()) {
      objects_ = codegen::CompileToObjects(LowerTir(lowered_.mod, target_), target_, 2, debug_.level);
      exe->code = codegen::LoadObjects(objects_);
    }
    NDArray constants = PackConstants(lowered_.constants, lowered_.constants_bytes);
    exe->constants = constants.ptr<uint8_t>();
    exe->constants_bytes = lowered_.constants_bytes;
    exe->constants_owner = constants;
    exe_ = exe;
  }
  const char* type_key() const override { return "vm"; }

  PackedFunc GetFunction(std::string_view name, const ObjectPtr<Object>& self) override {
    if (name == "default") {
      return PackedFunc([self, this](runtime::Args args, runtime::RetValue* rv) {
        if (HasCode() && !exe_->code.defined()) {
          throw RuntimeError("the program was compiled for " + target_.str() + ", which is not this machine");
        }
        runtime::CheckFeatures(objects_.features, "the program");
        std::vector<Device> devices;
        for (int i = 0; i < args.size(); ++i) devices.push_back(args[i].As<Device>());
        *rv = vm::CreateExecutor(exe_, devices);
      });
    }
    if (name == "called_back") {  // what runs where the compiler is: names of operators
      return PackedFunc([self, this](runtime::Args, runtime::RetValue* rv) {
        Array<String> names;
        for (const vm::PackedSlot& s : exe_->program.packed) {
          if (s.NeedsCompiler()) names.push_back(String(s.name));
        }
        *rv = names;
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
      for (const IRModule& mod : {lowered_.mod, device_kernels_}) {
        if (!mod.defined()) continue;
        for (const auto& [var, func] : mod->functions) out += tir::AsText(func) + "\n";
      }
      return out;
    }
    if (codegen::IsDeviceFormat(std::string(format))) {
      return CodeOfDevice(exe_->program.devices, std::string(format));
    }
    if (format == "llvm" || format == "ll" || format == "asm") {
      if (!HasCode()) return "";
      return codegen::CompileToText(LowerTir(lowered_.mod, target_), target_, format == "asm" ? "asm" : "ll");
    }
    throw UnsupportedError("no source in format \"" + std::string(format) + "\"; there are relay, vm, tir, llvm, asm");
  }

  void SaveToFile(const std::string& path, std::string_view format) override {
    if (format == "obj" || format == "o") {
      throw UnsupportedError(
          "a program with control flow or dynamic shapes is saved as a shared library (.so), not as an "
          "object file: its bytecode would be lost");
    }
    if (!format.empty() && format != "lib" && format != "so") {
      throw UnsupportedError("no file format \"" + std::string(format) + "\"; there is lib");
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
    for (size_t i = 0; i < devices_.size(); ++i) {
      const std::string one = relay::DeviceTypeName(devices_[i].type) + ": " + devices_[i].target.str();
      desc.target = i ? desc.target + ", " + one : one;
    }
    if (const vm::Entry* main = exe_->program.Find("main")) {
      // For people: what an executor says is in the program.
      for (const runtime::TensorInfo& t : main->inputs) desc.inputs.push_back({t.name, {}, t.dtype});
      for (const runtime::TensorInfo& t : main->outputs) desc.outputs.push_back({t.name, {}, t.dtype});
      const auto function = Downcast<relay::Function>(mod_->Lookup("main"));
      desc.result_tree = ResultTree(ResultType(function));
      desc.forms = FormsOf(function);
    }
    runtime::WriteArtifact(path, elf.data(), elf.size(), desc);
  }

  const std::vector<runtime::Module>& device_code() const { return exe_->device_code; }

 private:
  Target TargetOf(const vm::Program& program, size_t d) const {
    for (const DeviceTarget& t : devices_) {
      if (t.type == program.devices[d].type) return t.target;
    }
    return target_;
  }

  bool HasCode() const { return lowered_.mod.defined() && !lowered_.mod->functions.empty(); }

  /// What the dimensions of main's inputs are called, and the function that compares them.
  void NameDimsOfMain(vm::Program* program) {
    for (vm::Entry& e : program->entries) {
      if (e.name != "main") continue;
      std::vector<std::string> outputs;
      for (const runtime::TensorInfo& t : e.outputs) outputs.push_back(t.name);
      EntryShapes entry = ShapesOfEntry(Downcast<relay::Function>(mod_->Lookup("main")), outputs, "baton_main.sizes");
      if (!entry.sizes.defined()) continue;
      e.dynamic = entry.shapes;
      e.inputs = entry.inputs;
      if (!entry.outputs.empty()) e.outputs = entry.outputs;
      lowered_.mod.CopyOnWrite()->Update(GlobalVar(String(entry.shapes.sizes)), entry.sizes);
    }
  }

  IRModule mod_, device_kernels_;
  Target target_;
  std::string why_;
  std::vector<DeviceTarget> devices_;
  DebugOptions debug_;
  LoweredGraphs lowered_;
  codegen::ObjectCode objects_;
  std::shared_ptr<const vm::Executable> exe_;
};

}  // namespace

runtime::Module CompileVm(const IRModule& optimized, const Target& target, std::string why) {
  return runtime::MakeModule<VmModule>(optimized, target, std::move(why), std::vector<DeviceTarget>(), kDLCPU);
}

runtime::Module CompileVmForDevices(const IRModule& planned, const std::vector<DeviceTarget>& targets, int64_t fallback,
                                    std::string why) {
  Target host = Target::Host();
  for (const DeviceTarget& t : targets) {
    if (t.target->traits().on_host) host = t.target;
  }
  runtime::Module m = runtime::MakeModule<VmModule>(planned, host, std::move(why), targets, fallback);
  for (const runtime::Module& code : static_cast<const VmModule*>(m.get())->device_code()) {
    if (code.defined()) m->Import(code);
  }
  return m;
}

}  // namespace baton::driver

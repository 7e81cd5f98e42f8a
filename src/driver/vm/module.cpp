// SPDX-License-Identifier: Apache-2.0
#include <baton/codegen/codegen.h>
#include <baton/relay/device.h>

#include <algorithm>

#include "driver/vm/compile.h"

namespace baton::driver {

namespace {

class VmModule : public runtime::ModuleNode {
 public:
  VmModule(IRModule mod, Target target, std::string why, std::vector<DeviceTarget> devices, int64_t fallback)
      : mod_(std::move(mod)), target_(std::move(target)), why_(std::move(why)), devices_(std::move(devices)) {
    debug_ = DebugOptions::FromContext();
    lowered_ = LowerProgram(mod_, target_, devices_, fallback, debug_);
    auto exe = std::make_shared<vm::Executable>();
    exe->program = lowered_.program;
    objects_ = codegen::CompileToObjects(LowerTir(lowered_.host.mod, target_), target_, 2, debug_.level);
    // Code for another kind of machine is for saving.
    if (HasCode() && target_->mtriple.empty()) exe->code = codegen::LoadObjects(objects_);
    NDArray constants = PackConstants(lowered_.host.constants);
    exe->constants = constants.ptr<uint8_t>();
    exe->constants_bytes = lowered_.host.constants.bytes;
    exe->constants_owner = constants;
    exe_ = exe;
  }
  /// Imports the code of other devices.
  static runtime::Module Make(IRModule mod, Target target, std::string why, std::vector<DeviceTarget> devices,
                              int64_t fallback) {
    runtime::Module m =
        runtime::MakeModule<VmModule>(std::move(mod), std::move(target), std::move(why), std::move(devices), fallback);
    auto* self = static_cast<VmModule*>(m.get());
    auto exe = std::make_shared<vm::Executable>(*self->exe_);
    exe->device_code = vm::DeviceModulesOf(m, exe->program.devices);
    self->exe_ = exe;
    return m;
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
    return ProgramText(lowered_, mod_, target_, std::string(format));
  }

  void SaveToFile(const std::string& path, std::string_view format) override {
    if (format == "obj" || format == "o") {
      throw UnsupportedError(
          "a program with control flow, dynamic shapes or several devices is saved as a shared library (.so), not as "
          "an object file: its bytecode would be lost");
    }
    if (!format.empty() && format != "lib" && format != "so") {
      throw UnsupportedError("no file format \"" + std::string(format) + "\"; there is lib");
    }
    const std::string elf = codegen::LinkShared(objects_, target_);
    std::string data(reinterpret_cast<const char*>(exe_->constants), exe_->constants_bytes);
    runtime::ExecutableDesc desc;
    desc.program = exe_->program.Save(&data);
    desc.constants = reinterpret_cast<const uint8_t*>(data.data());
    desc.constants_bytes = data.size();
    desc.features = objects_.features;
    desc.target = target_.str();
    for (size_t i = 0; i < devices_.size(); ++i) {
      const std::string one = relay::DeviceTypeName(devices_[i].type) + ": " + devices_[i].target.str();
      desc.target = i ? desc.target + ", " + one : one;
    }
    if (const vm::Entry* main = exe_->program.Find("main")) {
      // For people: what an executor says is in the program, with extents that are open.
      auto known = [](runtime::TensorInfo t) {
        if (std::any_of(t.shape.begin(), t.shape.end(), [](int64_t d) { return d < 0; })) t.shape.clear();
        t.extents.clear();
        return t;
      };
      for (const runtime::TensorInfo& t : main->inputs) desc.inputs.push_back(known(t));
      for (const runtime::TensorInfo& t : main->outputs) desc.outputs.push_back(known(t));
      const auto function = Downcast<relay::Function>(mod_->Lookup("main"));
      desc.result_tree = ResultTree(ResultType(function));
      desc.forms = FormsOf(function);
    }
    runtime::WriteArtifact(path, elf.data(), elf.size(), desc);
  }

 private:
  bool HasCode() const { return !lowered_.host.mod->functions.empty(); }

  IRModule mod_;
  Target target_;
  std::string why_;
  std::vector<DeviceTarget> devices_;
  DebugOptions debug_;
  LoweredProgram lowered_;
  codegen::ObjectCode objects_;
  std::shared_ptr<const vm::Executable> exe_;
};

}  // namespace

runtime::Module CompileVm(const IRModule& optimized, const Target& target, std::string why) {
  return VmModule::Make(optimized, target, std::move(why), {}, kDLCPU);
}

runtime::Module CompileVmForDevices(const IRModule& planned, const std::vector<DeviceTarget>& targets,
                                    int64_t fallback) {
  return VmModule::Make(planned, HostOf(targets), "it runs on devices", targets, fallback);
}

}  // namespace baton::driver

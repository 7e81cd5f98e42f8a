// SPDX-License-Identifier: Apache-2.0
#include "driver/device_module.h"

#include <baton/codegen/backend.h>
#include <baton/codegen/codegen.h>
#include <baton/ir/structural.h>
#include <baton/ir/transform.h>
#include <baton/tir/printer.h>

#include <algorithm>

#include "driver/compiled_graph.h"

namespace baton::driver {
namespace {

Target HostOf(const std::vector<DeviceTarget>& targets) {
  for (const DeviceTarget& t : targets) {
    if (t.target->traits().on_host) return t.target;
  }
  return Target::Host();
}

class DeviceModule final : public runtime::ModuleNode {
 public:
  DeviceModule(IRModule mod, std::vector<DeviceTarget> targets, int64_t fallback)
      : mod_(std::move(mod)),
        targets_(std::move(targets)),
        host_(HostOf(targets_)),
        lowered_(LowerDevices(MainOf(mod_), targets_, fallback)) {
    objects_ = codegen::CompileToObjects(LowerTir(lowered_.host, host_), host_, 2, codegen::DebugLevel::kNames);
    constants_ = PackConstants(lowered_.constants, lowered_.desc.constants_bytes);
    desc_ = lowered_.desc;
    desc_.constants = constants_.ptr<uint8_t>();
    desc_.features = objects_.features;
    if (host_->mtriple.empty()) code_ = codegen::LoadObjects(objects_);
  }
  const char* type_key() const override { return "devices"; }
  PackedFunc GetFunction(std::string_view, const ObjectPtr<Object>&) override { return PackedFunc(); }
  void* GetSymbol(const char* name) override { return code_.defined() ? code_->GetSymbol(name) : nullptr; }
  const runtime::ExecutableDesc* GetExecutable() const override { return &desc_; }
  std::string GetSource(std::string_view format) override {
    return format == "relay" ? AsText(mod_) : DeviceText(lowered_, host_, std::string(format));
  }
  void SaveToFile(const std::string& path, std::string_view format) override {
    if (!format.empty() && format != "lib" && format != "so") {
      throw UnsupportedError("a model for several devices is saved as lib, not as \"" + std::string(format) + "\"");
    }
    const std::string elf = codegen::LinkShared(objects_, host_);
    runtime::WriteArtifact(path, elf.data(), elf.size(), desc_);
  }

 private:
  IRModule mod_;
  std::vector<DeviceTarget> targets_;
  Target host_;
  LoweredDevices lowered_;
  codegen::ObjectCode objects_;
  runtime::Module code_;
  NDArray constants_;
  runtime::ExecutableDesc desc_;
};

}  // namespace

std::string CodeOfDevice(const std::vector<vm::GraphDevice>& devices, const std::string& format) {
  for (const vm::GraphDevice& d : devices) {
    if (!d.code.empty()) return d.code;
  }
  throw UnsupportedError("the program has no part that runs on " + format);
}

std::string DeviceText(const LoweredDevices& lowered, const Target& host, const std::string& stage) {
  if (codegen::IsDeviceFormat(stage)) return CodeOfDevice(lowered.graph.devices, stage);
  if (stage == "json") return lowered.graph.Save();
  if (stage == "llvm" || stage == "ll" || stage == "asm") {
    return codegen::CompileToText(LowerTir(lowered.host, host), host, stage == "asm" ? "asm" : "ll");
  }
  if (stage != "tir")
    throw UnsupportedError("no source in format \"" + stage +
                           "\"; there are relay, tir, json, llvm, asm, and the kind of a device's target");
  std::string text;
  for (const IRModule& mod : {lowered.host, lowered.kernels}) {
    if (!mod.defined()) continue;
    for (const auto& [var, func] : mod->functions) {
      text += (text.empty() ? "" : "\n") + tir::AsText(func);
      if (text.back() != '\n') text += "\n";
    }
  }
  return text;
}

runtime::Module MakeDeviceModule(const IRModule& mod, const std::vector<DeviceTarget>& targets, int64_t fallback) {
  With<Target> scope(HostOf(targets));
  runtime::Module m = runtime::MakeModule<DeviceModule>(mod, targets, fallback);
  vm::ImportDeviceCode(m);
  return m;
}

}  // namespace baton::driver

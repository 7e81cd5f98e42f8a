// SPDX-License-Identifier: Apache-2.0
// Compiled code that is linked into the program: its functions, and its model, are found by their symbols.
#include <baton/runtime/c_backend_api.h>
#include <baton/runtime/executor.h>
#include <baton/runtime/module.h>
#include <baton/runtime/registry.h>
#include <baton/support/json.h>
#include <baton/support/text.h>
#include <baton/vm/imports.h>
#include <dlfcn.h>

#include <cstdint>
#include <string>

#include "runtime/artifact_format.h"

namespace baton::vm {
namespace {

// Symbols of an archive's data.s: the manifest, which ends with a zero, and the constants.
constexpr const char* kManifestText = "baton_manifest";
constexpr const char* kConstants = "baton_constants";

class SystemLibrary final : public runtime::ModuleNode {
 public:
  explicit SystemLibrary(std::string prefix) : prefix_(std::move(prefix)) {
    desc_.entry.clear();  // no model
    if (void* api = GetSymbol("baton_backend_api")) *static_cast<const BatonBackendApi**>(api) = BatonBackendGetApi();
    if (void* self = GetSymbol(runtime::kModuleSymbol)) *static_cast<runtime::ModuleNode**>(self) = this;
    if (const void* manifest = GetSymbol(kManifestText)) ReadManifest(static_cast<const char*>(manifest));
  }
  const char* type_key() const override { return "system_lib"; }
  void* GetSymbol(const char* name) override { return dlsym(RTLD_DEFAULT, name); }
  runtime::PackedFunc GetFunction(std::string_view name, const runtime::ObjectPtr<runtime::Object>& self) override {
    const void* spec = GetSymbol((runtime::kFunctionSpecPrefix + prefix_ + std::string(name)).c_str());
    return spec ? runtime::MakeNativeFunction(spec, self) : runtime::PackedFunc();
  }
  const runtime::ExecutableDesc* GetExecutable() const override { return desc_.entry.empty() ? nullptr : &desc_; }
  std::string GetSource(std::string_view format) override {
    if (manifest_.empty() || (!format.empty() && format != "json")) return ModuleNode::GetSource(format);
    return manifest_;
  }

 private:
  void ReadManifest(const char* text) {
    manifest_ = text;
    try {
      const support::Json manifest = support::Json::Parse(manifest_, "manifest");
      if (const std::string& arch = manifest.At("arch").AsString(); arch != runtime::artifact::kArch) {
        throw runtime::ValueError(support::Cat("compiled for ", arch, ", this machine is ", runtime::artifact::kArch));
      }
      desc_ = runtime::artifact::ReadDesc(manifest);
    } catch (const std::exception& e) {
      throw runtime::RuntimeError(support::Cat("the model that is linked into the program: ", e.what()));
    }
    const void* constants = GetSymbol(kConstants);
    if (!constants)
      throw runtime::RuntimeError(
          support::Cat("the program has `", kManifestText, "` and no `", kConstants, "`: link all of data.s"));
    desc_.constants = static_cast<const uint8_t*>(constants);
    runtime::CheckFeatures(desc_.features, "the model that is linked into the program");
  }

  std::string prefix_, manifest_;
  runtime::ExecutableDesc desc_;
};

/// The functions of the program whose names begin with a prefix, by what follows it, and its model.
BATON_REGISTER_GLOBAL("vm.SystemLib").set_body_typed([](std::string prefix) {
  const runtime::Module made = runtime::MakeModule<SystemLibrary>(std::move(prefix));
  (*runtime::Registry::Get("vm.ImportDeviceCode"))(made);
  return made;
});

}  // namespace
}  // namespace baton::vm

// SPDX-License-Identifier: Apache-2.0
// The functions of compiled code that is linked into the program: found by their symbols.
#include <baton/runtime/c_backend_api.h>
#include <baton/runtime/module.h>
#include <baton/runtime/registry.h>
#include <dlfcn.h>

#include <string>

namespace baton::vm {
namespace {

class SystemLibrary final : public runtime::ModuleNode {
 public:
  explicit SystemLibrary(std::string prefix) : prefix_(std::move(prefix)) {
    if (void* api = GetSymbol("baton_backend_api")) *static_cast<const BatonBackendApi**>(api) = BatonBackendGetApi();
    if (void* self = GetSymbol(runtime::kModuleSymbol)) *static_cast<runtime::ModuleNode**>(self) = this;
  }
  const char* type_key() const override { return "system_lib"; }
  void* GetSymbol(const char* name) override { return dlsym(RTLD_DEFAULT, name); }
  runtime::PackedFunc GetFunction(std::string_view name, const runtime::ObjectPtr<runtime::Object>& self) override {
    const void* spec = GetSymbol((runtime::kFunctionSpecPrefix + prefix_ + std::string(name)).c_str());
    return spec ? runtime::MakeNativeFunction(spec, self) : runtime::PackedFunc();
  }

 private:
  std::string prefix_;
};

/// The functions of the program whose names begin with a prefix, by what follows it.
BATON_REGISTER_GLOBAL("vm.SystemLib").set_body_typed([](std::string prefix) {
  return runtime::MakeModule<SystemLibrary>(std::move(prefix));
});

}  // namespace
}  // namespace baton::vm

// SPDX-License-Identifier: Apache-2.0
#include <baton/runtime/registry.h>
#include <baton/support/file.h>
#include <baton/support/text.h>
#include <baton/vm/imports.h>
#include <baton/vm/program.h>

#include <map>
#include <mutex>
#include <utility>

namespace baton::vm {

using runtime::Device;
using runtime::Device2String;
using runtime::DeviceAPI;
using runtime::RuntimeError;
using support::Cat;

namespace {

/// "opencl"
std::string DeviceTypeName(int64_t type) {
  const std::string text = Device2String({static_cast<DLDeviceType>(type), 0});
  return text.substr(0, text.find('('));
}

}  // namespace

std::vector<Device> ChooseDevices(const std::vector<int64_t>& types, const std::vector<Device>& given,
                                  const char* what) {
  std::vector<Device> out;
  std::string wanted;
  for (int64_t type : types) {
    out.push_back({static_cast<DLDeviceType>(type), 0});
    wanted += Cat(wanted.empty() ? "" : " and ", DeviceTypeName(type));
  }
  std::vector<bool> taken(out.size());
  for (const Device& g : given) {
    size_t at = 0;
    while (at < out.size() && (out[at].device_type != g.device_type || taken[at])) ++at;
    // The host is there anyway.
    if (at == out.size() && g.device_type == kDLCPU) continue;
    if (at == out.size()) {
      throw RuntimeError(Cat(what, " was compiled for ", wanted, ", it cannot run on ", Device2String(g)));
    }
    out[at] = g;
    taken[at] = true;
  }
  for (const Device& d : out) {
    try {
      DeviceAPI::Get(d);
    } catch (const runtime::Error& e) {
      if (types.size() == 1) throw;
      throw RuntimeError(Cat(what, " was compiled for ", wanted, ": ", e.what()));
    }
  }
  return out;
}

std::shared_ptr<NDArray> UploadConstants(const ObjectRef& owner, const uint8_t* data, uint64_t bytes, Device device) {
  static std::mutex mutex;
  static std::map<std::pair<const Object*, std::pair<int, int>>, std::weak_ptr<NDArray>> all;
  std::lock_guard lock(mutex);
  // An executor keeps the owner, so an address that is found belongs to the one that is asked for.
  std::weak_ptr<NDArray>& slot = all[{owner.get(), {device.device_type, device.device_id}}];
  if (std::shared_ptr<NDArray> there = slot.lock()) return there;
  auto made = std::make_shared<NDArray>(NDArray::Empty({static_cast<int64_t>(bytes)}, DataType::UInt(8), device));
  if (bytes) DeviceAPI::Get(device)->Copy(data, runtime::Cpu(), made->data(), device, bytes);
  slot = made;
  return made;
}

namespace {
/// The function that makes a module of a device's program; null if its library is missing.
const PackedFunc* CreatorOf(int64_t device_type) {
  const std::string name = DeviceTypeName(device_type) + ".CreateModule";
  if (const PackedFunc* create = Registry::Get(name)) return create;
  // Asking for the device loads the library that knows it.
  const DLDevice device{static_cast<DLDeviceType>(device_type), 0};
  if (const PackedFunc* exists = Registry::Get("runtime.DeviceExists")) (*exists)(device);
  return Registry::Get(name);
}

/// The text of a device's functions where no library of the device is there to launch them: for reading, and for the
/// maker's compiler.
class TextModule final : public runtime::ModuleNode {
 public:
  TextModule(std::string device, std::string text) : device_(std::move(device)), text_(std::move(text)) {}
  const char* type_key() const override { return device_.c_str(); }
  std::string GetSource(std::string_view) override { return text_; }
  void SaveToFile(const std::string& path, std::string_view) override { support::WriteFileAtomic(path, text_); }
  runtime::PackedFunc GetFunction(std::string_view name, const runtime::ObjectPtr<runtime::Object>&) override {
    const std::string what = Cat("`", name, "` cannot be called: it is code for ", device_,
                                 " as text (get_source), and there is no library libbaton_", device_,
                                 ".so beside libbaton_vm.so that launches it");
    return PackedFunc([what](runtime::Args, runtime::RetValue*) { throw RuntimeError(what); });
  }

 private:
  std::string device_, text_;
};
}  // namespace

runtime::Module CreateDeviceModule(int64_t device_type, const std::string& text) {
  const PackedFunc* create = CreatorOf(device_type);
  if (!create) return runtime::MakeModule<TextModule>(DeviceTypeName(device_type), text);
  return (*create)(text).As<runtime::Module>();
}

std::vector<runtime::Module> DeviceModulesOf(const runtime::Module& code, const std::vector<ProgramDevice>& devices) {
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  std::vector<runtime::Module> imports(code->imports().begin(), code->imports().end()), out;
  for (const ProgramDevice& d : devices) {
    out.emplace_back();
    if (d.code.empty()) continue;
    for (runtime::Module& m : imports) {
      if (!m.defined() || DeviceTypeName(d.type) != m->type_key()) continue;
      out.back() = std::exchange(m, runtime::Module());
      break;
    }
    if (out.back().defined()) continue;
    out.back() = CreateDeviceModule(d.type, d.code);
    code->Import(out.back());
  }
  return out;
}

/// Imports the modules that an artifact carries: those of others, and of kernels of the program in it, if its module
/// has not got them.
BATON_REGISTER_GLOBAL("vm.ImportDeviceCode").set_body_typed([](runtime::Module code) {
  ImportCarried(code);
  const runtime::ExecutableDesc* desc = code->GetExecutable();
  if (!desc || desc->program.empty()) return;
  DeviceModulesOf(code, Program::Load(desc->program, desc->constants, desc->constants_bytes, code).devices);
});

}  // namespace baton::vm

// SPDX-License-Identifier: Apache-2.0
// The module of a device's program: a text whose first line says what functions it has. A class for each kind of
// device calls its driver.
#pragma once

#include <baton/runtime/module.h>
#include <baton/runtime/ndarray.h>
#include <baton/support/file.h>
#include <baton/support/text.h>

#include <charconv>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "device/functions.h"

namespace baton::device {

struct ModuleKind {
  const char* key;             ///< of the type: "opencl"
  const char* language;        ///< in errors: "OpenCL"
  std::string_view head;       ///< the first word of a text: "// baton-opencl "
  DLDeviceType type;           ///< of its devices
  const char* device;          ///< in errors: "an OpenCL device"
  std::string_view format;     ///< of its text, and of files: "cl"
  std::string_view same_as{};  ///< another name of that format
};

/// `Built` is the program on one device.
template <class Built>
class KernelModule : public runtime::ModuleNode {
 public:
  /// Throws ValueError for a text whose head is damaged.
  KernelModule(const ModuleKind& kind, std::string text)
      : kind_(kind), text_(std::move(text)), program_(text_, kind.head, kind.language) {}
  const char* type_key() const override { return kind_.key; }
  std::string GetSource(std::string_view format) override {
    return IsText(format) ? text_ : ModuleNode::GetSource(format);
  }
  void SaveToFile(const std::string& path, std::string_view format) override {
    if (!IsText(format)) {
      throw runtime::UnsupportedError(
          support::Cat("no file format \"", format, "\" for ", kind_.language, " programs; there is ", kind_.format));
    }
    support::WriteFileAtomic(path, text_);
  }
  /// "name": a function of tensors, which say the device. "name@1": the same on that device, of addresses.
  runtime::PackedFunc GetFunction(std::string_view name, const runtime::ObjectPtr<runtime::Object>& self) override {
    const size_t at = name.find('@');
    int number = -1;
    if (at != name.npos) std::from_chars(name.data() + at + 1, name.data() + name.size(), number);
    const Function* f = program_.Find(name.substr(0, at));
    if (!f) return runtime::PackedFunc();
    if (number < 0) {
      return runtime::PackedFunc([self, this, f](runtime::Args args, runtime::RetValue*) {
        const CallPlaces call = PlacesOf(*f, args, kind_.type, kind_.device);
        Launch(*f, &On(call.number < 0 ? 0 : call.number), call.places.data(), call.sizes.data());
      });
    }
    Built* built = &On(number);
    return runtime::PackedFunc([self, this, f, built](runtime::Args args, runtime::RetValue*) {
      const CallPlaces call = AddressesOf(*f, args);
      Launch(*f, built, call.places.data(), call.sizes.data());
    });
  }

 protected:
  const std::string& text() const { return text_; }
  const Program& program() const { return program_; }

 private:
  /// The program, built for a device. Throws RuntimeError where that cannot be done.
  virtual std::unique_ptr<Built> Build(int number) = 0;
  /// Enqueues the kernels of a function: `places` of its parameters, then all sizes.
  virtual void Launch(const Function& f, Built* b, void* const* places, const int64_t* sizes) = 0;

  bool IsText(std::string_view format) const {
    return format.empty() || format == kind_.format || format == kind_.same_as;
  }
  /// The program on a device; built there once.
  Built& On(int number) {
    std::lock_guard lock(mutex_);
    std::unique_ptr<Built>& b = built_[number];
    if (!b) b = Build(number);
    return *b;
  }

  const ModuleKind& kind_;
  std::string text_;
  Program program_;
  std::mutex mutex_;
  std::unordered_map<int, std::unique_ptr<Built>> built_;
};

/// The module of a file that such a module wrote. Throws RuntimeError that names the file.
template <class M>
runtime::Module LoadText(const std::string& path) {
  std::string text;
  try {
    text = std::string(support::MappedFile(path).text());
  } catch (const std::runtime_error& e) {
    throw runtime::RuntimeError(e.what());
  }
  try {
    return runtime::MakeModule<M>(std::move(text));
  } catch (const runtime::Error& e) {
    throw runtime::RuntimeError(support::Cat("cannot load `", path, "`: ", e.message()));
  }
}

}  // namespace baton::device

// SPDX-License-Identifier: Apache-2.0
// Constants of a module of others, which takes them by its function `__init_SYMBOL` before its function SYMBOL runs.
#include <baton/runtime/array.h>
#include <baton/runtime/bytes.h>
#include <baton/runtime/error.h>
#include <baton/runtime/module.h>
#include <baton/runtime/ndarray.h>
#include <baton/runtime/registry.h>
#include <baton/support/bytes.h>
#include <baton/support/file.h>
#include <baton/support/text.h>

#include <mutex>
#include <utility>
#include <vector>

#include "vm/saved_arrays.h"

namespace baton::vm {
namespace {

using runtime::Array;
using runtime::Module;
using runtime::NDArray;
using runtime::PackedFunc;
using runtime::RuntimeError;
using support::Cat;

constexpr std::string_view kMagic = "BATONCST";
constexpr uint32_t kVersion = 1;
constexpr const char* kKey = "const_loader";

/// Imports the module that takes the constants.
class ConstantsModule final : public runtime::ModuleNode {
 public:
  ConstantsModule(std::string symbol, std::vector<NDArray> constants)
      : symbol_(std::move(symbol)), constants_(std::move(constants)) {}
  const char* type_key() const override { return kKey; }
  PackedFunc GetFunction(std::string_view name, const ObjectPtr<runtime::Object>& self) override {
    if (name != symbol_) return PackedFunc();
    const PackedFunc run = Of(symbol_);
    if (!run.defined()) return PackedFunc();
    return PackedFunc([self, this, run](runtime::Args args, runtime::RetValue* rv) {
      Initialize();
      *rv = run.CallPacked(args.values, args.num_args);
    });
  }
  void SaveToFile(const std::string& path, std::string_view) override {
    support::ByteWriter w;
    w.WriteBytes(kMagic.data(), kMagic.size());
    w.Write<uint32_t>(kVersion);
    w.WriteString(symbol_);
    WriteArrays(&w, constants_);
    support::WriteFileAtomic(path, w.Take());
  }

 private:
  PackedFunc Of(const std::string& name) const {
    for (const Module& m : imports()) {
      if (PackedFunc f = m.GetFunction(name, true); f.defined()) return f;
    }
    return PackedFunc();
  }
  void Initialize() {
    std::lock_guard lock(mutex_);
    if (initialized_) return;
    const PackedFunc take = Of("__init_" + symbol_);
    if (!take.defined()) {
      throw RuntimeError(
          Cat("the module of `", symbol_, "` has no function `__init_", symbol_, "` that takes its constants"));
    }
    const runtime::Any given = take(Array<NDArray>(constants_.begin(), constants_.end()));
    if (given.Is<int64_t>() && given.As<int64_t>() != 0) {
      throw RuntimeError(Cat("`__init_", symbol_, "` does not take the constants: it gave ", given.As<int64_t>()));
    }
    initialized_ = true;
  }

  std::string symbol_;
  std::vector<NDArray> constants_;
  std::mutex mutex_;
  bool initialized_ = false;
};

Module Load(std::string_view data) {
  support::ByteReader r(data.data(), data.size(), "the constants of a module");
  try {
    if (data.substr(0, kMagic.size()) != kMagic) r.Fail("they do not begin as they should");
    r.Skip(kMagic.size(), "magic");
    if (const auto version = r.Read<uint32_t>("version"); version != kVersion) {
      r.Fail(Cat("version ", version, ", this runtime reads version ", kVersion));
    }
    const std::string symbol(r.ReadString("symbol"));
    std::vector<NDArray> constants = ReadArrays(&r);
    r.ExpectEnd();
    return runtime::MakeModule<ConstantsModule>(symbol, std::move(constants));
  } catch (const runtime::Error&) {
    throw;
  } catch (const std::exception& e) {
    throw RuntimeError(e.what());
  }
}

BATON_REGISTER_GLOBAL("runtime.module.loadbinary_const_loader").set_body_typed([](runtime::Bytes data) {
  return Load(data.view());
});
/// (symbol, constants, the module that takes them).
BATON_REGISTER_GLOBAL("vm.CreateConstantsModule")
    .set_body_typed([](std::string symbol, Array<NDArray> constants, Module of) {
      std::vector<NDArray> dense;
      for (const NDArray& a : constants) dense.push_back(a.Contiguous());
      Module made = runtime::MakeModule<ConstantsModule>(std::move(symbol), std::move(dense));
      made->Import(std::move(of));
      return made;
    });

}  // namespace
}  // namespace baton::vm

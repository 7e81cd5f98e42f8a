// SPDX-License-Identifier: Apache-2.0
// A device that Baton does not know: memory that the host cannot touch, a driver wrapped once as packed functions, a
// kind of module for its kernels. Host code calls them as it calls all functions.
#include <baton/driver/driver.h>
#include <baton/runtime/device_api.h>
#include <baton/runtime/registry.h>
#include <baton/tir/op.h>
#include <baton/tir/stmt.h>
#include <doctest/doctest.h>

#include <cstring>
#include <map>
#include <memory>
#include <vector>

using namespace baton;  // NOLINT
using runtime::Args;
using runtime::MakeModule;
using runtime::PackedFunc;
using runtime::RetValue;

namespace {

constexpr int kToy = kDLHexagon;  // a type of device that this build has nothing for
constexpr Device kDevice{static_cast<DLDeviceType>(kToy), 0};

/// Memory of the toy device: addresses that are none of the host's, so that touching one outside of it is a crash.
class ToyMemory final : public runtime::DeviceAPI {
 public:
  bool Exists(Device d) override { return d.device_id == 0; }
  void* Alloc(Device, size_t bytes, size_t) override {
    ++live;
    return Outside(new char[bytes ? bytes : 1]);
  }
  void Free(Device, void* data) noexcept override {
    --live;
    delete[] Inside(data);
  }
  void Copy(const void* from, Device from_device, void* to, Device to_device, size_t bytes) override {
    ++copies;
    const void* f = from_device.device_type == kToy ? Inside(const_cast<void*>(from)) : from;
    void* t = to_device.device_type == kToy ? Inside(to) : to;
    std::memcpy(t, f, bytes);
  }
  void Sync(Device) override { ++syncs; }
  static constexpr uintptr_t kMask = uintptr_t(1) << 62;
  static void* Outside(char* p) { return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(p) ^ kMask); }
  static char* Inside(void* p) { return reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(p) ^ kMask); }
  int live = 0, copies = 0, syncs = 0;
};

ToyMemory& Memory() {
  static ToyMemory* memory = [] {
    auto* m = new ToyMemory;  // lives as long as the process
    runtime::DeviceAPI::Register(kToy, m);
    return m;
  }();
  return *memory;
}

/// What the maker of the device ships: "scale F" multiplies n floats. Kernels take an array of pointers to arguments.
struct ToyDriver {
  std::vector<double> kernels;
  int loads = 0, launches = 0;
  int64_t Load(const std::string& source) {
    ++loads;
    if (source.rfind("scale ", 0) != 0) throw runtime::ValueError("toy: cannot load `" + source + "`");
    kernels.push_back(std::stod(source.substr(6)));
    return static_cast<int64_t>(kernels.size()) - 1;
  }
  void Launch(int64_t kernel, void** args) {
    ++launches;
    auto* in = reinterpret_cast<float*>(ToyMemory::Inside(*static_cast<void**>(args[0])));
    auto* out = reinterpret_cast<float*>(ToyMemory::Inside(*static_cast<void**>(args[1])));
    const int64_t n = *static_cast<int64_t*>(args[2]);
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<float>(in[i] * kernels.at(static_cast<size_t>(kernel)));
  }
};
ToyDriver toy_driver;

// The driver, wrapped once.
BATON_REGISTER_GLOBAL("test.toy.load").set_body_typed([](std::string source) { return toy_driver.Load(source); });
BATON_REGISTER_GLOBAL("test.toy.launch").set_body_typed([](int64_t kernel, void* args) {
  toy_driver.Launch(kernel, static_cast<void**>(args));
});

/// Kernels for the toy device. One is loaded when it is called for the first time.
class ToyModule final : public ModuleNode {
 public:
  explicit ToyModule(std::map<std::string, std::string> sources) : sources_(std::move(sources)) {}
  const char* type_key() const override { return "toy"; }
  PackedFunc GetFunction(std::string_view name, const ObjectPtr<Object>& self) override {
    auto it = sources_.find(std::string(name));
    if (it == sources_.end()) return PackedFunc();
    auto kernel = std::make_shared<int64_t>(-1);
    return PackedFunc([self, kernel, source = it->second](Args args, RetValue*) {
      if (*kernel < 0) *kernel = (*runtime::Registry::Get("test.toy.load"))(source).As<int64_t>();
      // Tensors of the host are brought to the device and back; those of the device go as they are.
      std::vector<NDArray> here, there;
      std::vector<void*> addresses, packed;
      for (int i = 0; i < 2; ++i) {
        const auto* t = args[i].As<DLTensor*>();
        if (t->device.device_type == kToy) {
          addresses.push_back(t->data);
          continue;
        }
        there.push_back(NDArray::Empty({t->shape, t->shape + t->ndim}, t->dtype, kDevice));
        there.back().CopyFrom(t);
        addresses.push_back(there.back().data());
      }
      int64_t n = args[0].As<DLTensor*>()->shape[0];
      for (void*& a : addresses) packed.push_back(&a);
      packed.push_back(&n);
      (*runtime::Registry::Get("test.toy.launch"))(*kernel, static_cast<void*>(packed.data()));
      runtime::DeviceAPI::Get(kDevice)->Sync(kDevice);
      if (!there.empty()) there.back().CopyTo(args[1].As<DLTensor*>());
    });
  }
  std::string GetSource(std::string_view) override { return sources_.begin()->second; }

 private:
  std::map<std::string, std::string> sources_;
};

/// A host program that calls a function by its name with its two buffers.
Module HostModule(const char* callee) {
  auto buffer = [](const char* name) { return tir::Buffer::Make({PrimExpr(4)}, DataType::Float(32), name); };
  auto argument = [](const tir::Buffer& b) {
    return tir::call_intrin(DataType::Handle(), "tir.tvm_stack_make_array",
                            {b->data, tir::make_const(b->dtype, 0), PrimExpr(4)});
  };
  tir::Buffer a = buffer("A"), b = buffer("B");
  tir::Var pa("a", DataType::Handle()), pb("b", DataType::Handle());
  PrimExpr call =
      tir::call_intrin(DataType::Int(32), "tir.call_packed", {tir::StringImm(callee), argument(a), argument(b)});
  tir::PrimFunc f({pa, pb}, tir::Evaluate(call), {{pa, a}, {pb, b}});
  return driver::BuildFunctions(IRModule(Map<GlobalVar, BaseFunc>{{GlobalVar("main"), f}}), Target::Make("llvm"));
}

NDArray Floats(std::vector<float> v) {
  return NDArray::FromBytes(v.data(), {static_cast<int64_t>(v.size())}, DataType::Float(32));
}
std::vector<float> Values(const NDArray& a) {
  std::vector<float> v(static_cast<size_t>(a.numel()));
  a.CopyToBytes(v.data(), v.size() * sizeof(float));
  return v;
}

}  // namespace

TEST_CASE("MO-014 a device's memory stands behind the arrays on it") {
  ToyMemory& memory = Memory();
  const int before = memory.live;
  {
    NDArray on = NDArray::Empty({4}, DataType::Float(32), kDevice);
    CHECK((runtime::operator==(on.device(), kDevice)));
    CHECK(memory.live == before + 1);
    const int copies = memory.copies;
    on.CopyFrom(Floats({1, 2, 3, 4}));
    NDArray twin = on.Copy(kDevice);
    CHECK(Values(twin.Copy(Cpu())) == std::vector<float>{1, 2, 3, 4});
    CHECK(memory.copies == copies + 3);
    CHECK_THROWS_WITH(NDArray::Empty({4}, DataType::Float(32), {kDevice.device_type, 1}),
                      doctest::Contains("does not exist"));
  }
  CHECK(memory.live == before);
  ToyMemory second;
  CHECK_THROWS_WITH(runtime::DeviceAPI::Register(kToy, &second), doctest::Contains("registered already"));
}

TEST_CASE("MO-005 MO-007 a kind of module for a new device; host code is made as before and calls its kernels") {
  CHECK(std::is_abstract_v<ModuleNode>);
  Memory();
  Module kernels = MakeModule<ToyModule>(std::map<std::string, std::string>{{"twice", "scale 2"}});
  CHECK(std::string(kernels->type_key()) == "toy");
  CHECK(kernels->GetSource("") == "scale 2");
  CHECK_FALSE(kernels.GetFunction("thrice").defined());

  Module host = HostModule("twice");
  NDArray a = Floats({1, 2, 3, 4}), b = Floats({0, 0, 0, 0});
  CHECK_THROWS_WITH(host.GetFunction("main")(a, b), doctest::Contains("`twice`"));
  host->Import(kernels);
  host.GetFunction("main")(a, b);
  CHECK(Values(b) == std::vector<float>{2, 4, 6, 8});
}

TEST_CASE("MO-008 a kernel is loaded once by the driver's functions, its arguments are packed, and it is launched") {
  ToyMemory& memory = Memory();
  Module kernels = MakeModule<ToyModule>(std::map<std::string, std::string>{{"half", "scale 0.5"}, {"bad", "sing"}});
  PackedFunc half = kernels.GetFunction("half");
  kernels = Module();  // the function keeps it
  const int loads = toy_driver.loads, launches = toy_driver.launches, syncs = memory.syncs;
  NDArray a = Floats({2, 4}).Copy(kDevice), b = Floats({0, 0}).Copy(kDevice);
  const int copies = memory.copies;
  for (int i = 0; i < 10; ++i) half(a, b);
  CHECK(toy_driver.loads == loads + 1);
  CHECK(toy_driver.launches == launches + 10);
  CHECK(memory.syncs == syncs + 10);
  CHECK(memory.copies == copies);
  CHECK(Values(b.Copy(Cpu())) == std::vector<float>{1, 2});
  Module wrong = MakeModule<ToyModule>(std::map<std::string, std::string>{{"bad", "sing"}});
  CHECK_THROWS_WITH(wrong.GetFunction("bad")(a, b), doctest::Contains("cannot load `sing`"));
}

TEST_CASE("MO-009 PF-019 a compiled function is called from C++ as any other") {
  Memory();
  Module host = HostModule("once");
  host->Import(MakeModule<ToyModule>(std::map<std::string, std::string>{{"once", "scale 1"}}));
  runtime::TypedPackedFunc<void(NDArray, NDArray)> f(host.GetFunction("main"));
  NDArray a = Floats({1, 2, 3, 4}), b = Floats({0, 0, 0, 0});
  f(a, b);
  CHECK(Values(b) == std::vector<float>{1, 2, 3, 4});
  CHECK_THROWS_WITH(host.GetFunction("main")(a), doctest::Contains("argument"));
}

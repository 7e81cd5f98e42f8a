// SPDX-License-Identifier: Apache-2.0
// What the runtime adds to a model, in nanoseconds: fork-join of the pool, calls of the executor, arrays.
// Build and run: cmake --build build --target baton_runtime_bench && build/baton_runtime_bench
#include <baton/runtime/array.h>
#include <baton/runtime/module.h>
#include <baton/runtime/ndarray.h>
#include <baton/runtime/threading.h>

#include <chrono>
#include <cstdio>

using namespace baton::runtime;

namespace {

int32_t Nothing(void**, const uint8_t*, uint8_t*) { return 0; }

class Empty final : public ModuleNode {
 public:
  Empty() {
    desc_.inputs = {{"a", {8}, DataType::Float(32)}, {"b", {8}, DataType::Float(32)}};
    desc_.outputs = {{"out", {8}, DataType::Float(32)}};
    desc_.arena_bytes = 64;
  }
  const char* type_key() const override { return "empty"; }
  PackedFunc GetFunction(std::string_view, const ObjectPtr<Object>&) override { return PackedFunc(); }
  void* GetSymbol(const char*) override { return reinterpret_cast<void*>(&Nothing); }
  const ExecutableDesc* GetExecutable() const override { return &desc_; }

 private:
  ExecutableDesc desc_;
};

template <class F>
void Time(const char* name, F f) {
  double best = 1e30;
  for (int round = 0; round < 30; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < 5000; ++i) f();
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    if (took.count() / 5000 < best) best = took.count() / 5000;
  }
  std::printf("%-32s %8.0f ns\n", name, best);
}

}  // namespace

int main() {
  Module e = CreateExecutor(MakeModule<Empty>());
  NDArray a = NDArray::Zeros({8}, DataType::Float(32)), b = NDArray::Zeros({8}, DataType::Float(32));
  PackedFunc run = e.GetFunction("run"), run_with = e.GetFunction("run_with"), set_input = e.GetFunction("set_input");
  set_input(0, a);
  set_input(1, b);
  Time("run", [&] { run(); });
  Time("run_with, two arrays", [&] { run_with(a, b); });
  Time("run_with, two borrowed tensors", [&] { run_with(a.tensor(), b.tensor()); });
  Time("set_input by index", [&] { set_input(0, a); });
  Time("set_input by name", [&] { set_input("b", a); });
  Time("NDArray::Empty, 32 bytes", [&] { NDArray::Empty({8}, DataType::Float(32)); });
  char name[40];
  for (int threads : {1, 2, 4}) {
    threading::SetNumThreads(threads);
    std::snprintf(name, sizeof(name), "fork-join, %d threads", threads);
    Time(name, [] { BatonBackendParallelLaunch([](int, int, void*) { return 0; }, nullptr, 0); });
  }
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
#include "driver/profile.h"

#include <baton/codegen/backend.h>
#include <baton/runtime/error.h>
#include <baton/runtime/threading.h>
#include <baton/support/json.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <vector>

#include "driver/compiled_graph.h"
#include "driver/roofline.h"

namespace baton::driver {
namespace {

struct FreeMemory {
  void operator()(uint8_t* p) const { free(p); }
};
using Memory = std::unique_ptr<uint8_t, FreeMemory>;
Memory Aligned(uint64_t bytes) {
  void* p = nullptr;
  if (posix_memalign(&p, 64, std::max<uint64_t>(bytes, 1))) throw RuntimeError("no memory to profile the model with");
  return Memory(static_cast<uint8_t*>(p));
}

double Median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v.empty() ? 0 : (v[(v.size() - 1) / 2] + v[v.size() / 2]) / 2;
}
double Least(const std::vector<double>& v) { return v.empty() ? 0 : *std::min_element(v.begin(), v.end()); }

void CheckProfile(const relay::Function& main, int rounds) {
  if (rounds < 1) throw runtime::ValueError("a profile takes at least one round");
  for (const relay::Var& p : main->params) {
    std::vector<TensorType> types;
    if (FlattenType(p->checked_type(), &types)) continue;
    throw runtime::UnsupportedError("a model with dynamic shapes is profiled for shapes that are given: specialize it");
  }
}

}  // namespace

std::string ProfileModel(const relay::Function& main, const Target& target, const Array<NDArray>& inputs, int rounds) {
  CheckProfile(main, rounds);
  LoweredModel model = LowerGraph(main, target, {.steps = true});
  const auto& desc = model.desc;
  if (inputs.size() != desc.inputs.size()) {
    throw runtime::ValueError("the model has " + std::to_string(desc.inputs.size()) + " inputs, got " +
                              std::to_string(inputs.size()));
  }
  const codegen::ObjectCode objects = codegen::BackendOf(target).emit(model.mod, target, {}).objects;
  runtime::CheckFeatures(objects.features, "the profiled code");
  runtime::Module code = codegen::LoadObjects(objects);
  auto function = [&](const std::string& symbol) {
    auto f = reinterpret_cast<runtime::EntryFunction>(code->GetSymbol(symbol.c_str()));
    if (!f) throw InternalError("the profiled code has no symbol " + symbol);
    return f;
  };
  runtime::EntryFunction entry = function(desc.entry);
  std::vector<runtime::EntryFunction> steps;
  for (const ModelStep& s : model.steps) steps.push_back(function(s.symbol));

  std::vector<NDArray> dense;
  std::vector<Memory> outputs;
  std::vector<void*> io;
  for (size_t i = 0; i < desc.inputs.size(); ++i) {
    const runtime::TensorInfo& want = desc.inputs[i];
    NDArray a = inputs[static_cast<int64_t>(i)];
    if (!a.defined() || a.dtype() != want.dtype || a.shape() != want.shape) {
      throw runtime::ValueError("input `" + want.name + "` has another shape or dtype than the model wants");
    }
    NDArray own = NDArray::Empty(want.shape, want.dtype);  // dense, aligned and not shared
    own.CopyFrom(a);
    dense.push_back(own);
    io.push_back(own.data());
  }
  for (const runtime::TensorInfo& t : desc.outputs) {
    uint64_t bytes = static_cast<uint64_t>(t.dtype.bytes());
    for (int64_t d : t.shape) bytes *= static_cast<uint64_t>(d);
    outputs.push_back(Aligned(bytes));
    io.push_back(outputs.back().get());
  }
  NDArray constants = PackConstants(model.constants);
  Memory arena = Aligned(desc.arena_bytes);
  auto call = [&](runtime::EntryFunction f) {
    double begin = Seconds();
    if (f(io.data(), constants.ptr<uint8_t>(), arena.get(), nullptr) != 0) runtime::ThrowFromSlot();
    return (Seconds() - begin) * 1e6;
  };

  const Roofline& roof = MeasuredRoofline();
  call(entry);  // pages of the arena come into being
  std::vector<double> total;
  std::vector<std::vector<double>> times(steps.size());
  for (int r = 0; r < rounds; ++r) {
    total.push_back(call(entry));
    for (size_t i = 0; i < steps.size(); ++i) times[i].push_back(call(steps[i]));
  }
  double sum = 0;
  for (const std::vector<double>& t : times) sum += Least(t);

  std::string out;
  support::JsonWriter w(&out);
  auto number = [&](const char* key, double value) {
    w.Key(key);
    w.Double(value);
  };
  auto text = [&](const char* key, const std::string& value) {
    w.Key(key);
    w.String(value);
  };
  w.BeginObject();
  w.Key("threads");
  w.Int(runtime::threading::NumThreads());
  w.Key("rounds");
  w.Int(rounds);
  number("peak_gflops", roof.flops_per_second / 1e9);
  number("bandwidth_gb", roof.bytes_per_second / 1e9);
  number("total_us", Least(total));
  number("steps_us", sum);
  w.Key("steps");
  w.BeginArray();
  for (size_t i = 0; i < steps.size(); ++i) {
    const ModelStep& s = model.steps[i];
    double least = Least(times[i]);
    w.BeginObject();
    text("kernel", s.kernel);
    text("operators", s.operators);
    text("source", s.source);
    number("min_us", least);
    number("median_us", Median(times[i]));
    number("share", sum > 0 ? least / sum : 0);
    number("gflop", s.work.flops / 1e9);
    number("mb", s.work.bytes / 1e6);
    number("gflops", least > 0 ? s.work.flops / least / 1e3 : 0);
    number("roofline", least > 0 ? roof.SecondsFor(s.work) * 1e6 / least : 0);
    w.EndObject();
  }
  w.EndArray();
  w.EndObject();
  return out;
}

}  // namespace baton::driver

// SPDX-License-Identifier: Apache-2.0
// From a program to its bytecode and kernels.
#include <baton/ir/structural.h>
#include <baton/relay/device.h>
#include <baton/support/json.h>
#include <baton/support/with.h>

#include <algorithm>
#include <iterator>

#include "driver/debug_source.h"
#include "driver/donations.h"
#include "driver/kernel_table.h"
#include "driver/size_words.h"
#include "driver/vm/compile.h"

namespace baton::driver {
namespace {

using Graphs = std::vector<std::pair<std::string, relay::Function>>;

void Describe(const runtime::ExecutableDesc& graph, vm::Kernel* kernel) {
  kernel->arena_bytes = graph.arena_bytes;
  if (!graph.state.empty()) {
    const support::Json pairs = support::Json::Parse(graph.state, "donations");
    for (const support::Json& pair : pairs.AsArray()) {
      for (const support::Json& i : pair.AsArray()) kernel->over.push_back(static_cast<int32_t>(i.AsInt()));
    }
  }
  if (!graph.dynamic.defined()) return;
  kernel->dynamic = graph.dynamic;
  kernel->inputs = graph.inputs;
  kernel->outputs = graph.outputs;
}

/// What the dimensions of main's inputs are called, and the function that compares them.
void NameDimsOfMain(const IRModule& mod, LoweredProgram* out) {
  for (vm::Entry& e : out->program.entries) {
    if (e.name != "main") continue;
    std::vector<std::string> outputs;
    for (const runtime::TensorInfo& t : e.outputs) outputs.push_back(t.name);
    EntryShapes entry = ShapesOfEntry(Downcast<relay::Function>(mod->Lookup("main")), outputs, "baton_main.sizes");
    if (!entry.sizes.defined()) continue;
    e.dynamic = entry.shapes;
    e.inputs = entry.inputs;
    if (!entry.outputs.empty()) e.outputs = entry.outputs;
    out->host.mod.CopyOnWrite()->Update(GlobalVar(String(entry.shapes.sizes)), entry.sizes);
  }
}

/// What an artifact tells people of main. What an executor says of it is in the program, with extents that are open.
void DescribeMain(const IRModule& mod, const std::vector<DeviceTarget>& devices, LoweredProgram* out) {
  for (size_t i = 0; i < devices.size(); ++i) {
    const std::string one = relay::DeviceTypeName(devices[i].type) + ": " + devices[i].target.str();
    out->desc.target = i ? out->desc.target + ", " + one : one;
  }
  const vm::Entry* main = out->program.Find("main");
  if (!main) return;
  auto known = [](runtime::TensorInfo t) {
    if (std::any_of(t.shape.begin(), t.shape.end(), [](int64_t d) { return d < 0; })) t.shape.clear();
    t.extents.clear();
    return t;
  };
  for (const runtime::TensorInfo& t : main->inputs) out->desc.inputs.push_back(known(t));
  for (const runtime::TensorInfo& t : main->outputs) out->desc.outputs.push_back(known(t));
  const auto function = Downcast<relay::Function>(mod->Lookup("main"));
  out->desc.result_tree = ResultTree(ResultType(function));
  out->desc.forms = FormsOf(function);
}

/// Regions of a device that has code of its own become its kernels and rows of steps.
void LowerKernelsOf(size_t d, const Target& target, const Graphs& graphs, const std::vector<size_t>& numbers,
                    LoweredProgram* out) {
  LoweredRows rows = LowerRows(graphs, target);
  out->devices.push_back({d, target, rows.kernels});
  std::move(rows.steps.begin(), rows.steps.end(), std::back_inserter(out->host.steps));
  for (const auto& [var, func] : rows.sizes->functions) out->host.mod.CopyOnWrite()->Update(var, func);
  vm::ProgramDevice& device = out->program.devices[d];
  // Behind the constants of others.
  ConstantTable& all = out->host.constants;
  device.constants_begin = (all.bytes + 63) / 64 * 64;
  device.constants_bytes = (rows.constants.bytes + 63) / 64 * 64;
  for (const auto& [at, value] : rows.constants.list) all.list.push_back({device.constants_begin + at, value});
  all.bytes = device.constants_begin + device.constants_bytes;
  for (size_t i = 0; i < numbers.size(); ++i) {
    vm::Kernel& kernel = out->program.kernels[numbers[i]];
    Describe(rows.graphs[i], &kernel);
    kernel.steps = std::move(rows.rows[i]);
  }
}

/// "nn.conv2d, add, nn.relu": the operators of a kernel, in order.
std::string OperatorsOfKernel(const relay::Function& graph) {
  constexpr size_t kTold = 300;
  std::string out;
  for (const relay::Expr& e : DataflowOrder(graph->body)) {
    const auto* call = e.as<relay::CallNode>();
    if (!call || !IsPrimitive(call->op)) continue;
    if (out.size() > kTold) return out + ", ...";
    out += (out.empty() ? "" : ", ") + OperatorsOf(Downcast<relay::Function>(call->op));
  }
  return out;
}

}  // namespace

LoweredProgram LowerProgram(const IRModule& mod, const Target& host, const std::vector<DeviceTarget>& devices,
                            int64_t fallback, const DebugOptions& debug) {
  With<Target> scope(host);
  LoweredProgram out;
  Array<runtime::String> donated;
  if (mod->ContainGlobalVar("main"))
    donated = Downcast<relay::Function>(mod->Lookup("main"))->GetAttr<Array<runtime::String>>(kDonated, donated);
  VmProgram translated = TranslateToVm(mod, devices, fallback);
  out.program = std::move(translated.program);
  out.graphs = std::move(translated.graphs);
  auto target_of = [&](size_t d) {
    for (const DeviceTarget& t : devices) {
      if (t.type == out.program.devices[d].type) return t.target;
    }
    return host;
  };
  // Kernels of the host's devices are one module; those of each other device another.
  std::vector<Graphs> graphs(out.program.NumDevices());
  std::vector<std::vector<size_t>> numbers(graphs.size());
  for (size_t i = 0; i < out.graphs.size(); ++i) {
    auto d = static_cast<size_t>(out.program.kernels[i].device);
    if (d && target_of(d)->traits().on_host) d = 0;
    graphs[d].push_back(out.graphs[i]);
    if (!donated.empty()) graphs[d].back().second = WithAttr(out.graphs[i].second, kOverwrites, Any(int64_t{1}));
    numbers[d].push_back(i);
    if (!devices.empty()) out.program.kernels[i].operators = OperatorsOfKernel(out.graphs[i].second);
  }
  out.host = LowerGraphs(graphs[0], host, debug.Lowering());
  debug.WriteSource(out.host.debug_source);
  for (size_t i = 0; i < numbers[0].size(); ++i) Describe(out.host.graphs[i], &out.program.kernels[numbers[0][i]]);
  for (size_t d = 1; d < graphs.size(); ++d) {
    if (!graphs[d].empty()) LowerKernelsOf(d, target_of(d), graphs[d], numbers[d], &out);
  }
  if (debug.level != codegen::DebugLevel::kNone) out.desc.steps = StepsText(out.host.steps, translated.host);
  NameDimsOfMain(mod, &out);
  DescribeMain(mod, devices, &out);
  if (!donated.empty()) MarkDonations(donated, &out.program);
  out.program.Validate();
  return out;
}

}  // namespace baton::driver

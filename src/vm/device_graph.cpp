// SPDX-License-Identifier: Apache-2.0
#include <baton/runtime/registry.h>
#include <baton/support/json.h>
#include <baton/support/text.h>
#include <baton/vm/device_graph.h>

namespace baton::vm {

using runtime::RuntimeError;
using support::Cat;
using support::Json;

namespace {

uint64_t SizeOf(const Json& v) {
  if (v.AsInt() < 0 || v.AsInt() > (int64_t{1} << 62)) throw RuntimeError("a size that is not possible");
  return static_cast<uint64_t>(v.AsInt());
}

}  // namespace

void SaveSteps(const std::vector<GraphStep>& steps, support::JsonWriter* to) {
  support::JsonWriter& w = *to;
  w.BeginArray();
  for (const GraphStep& s : steps) {
    w.BeginObject();
    w.Key("symbol");
    w.String(s.symbol);
    w.Key("device");
    w.Int(s.device);
    w.Key("bytes");
    w.Int(static_cast<int64_t>(s.bytes));
    w.Key("reads");
    w.Int(s.reads);
    w.Key("args");
    w.BeginArray();
    for (const DevicePlace& p : s.args) {
      w.BeginArray();
      w.Int(p.kind);
      w.Int(p.device);
      w.Int(p.at);
      w.EndArray();
    }
    w.EndArray();
    w.EndObject();
  }
  w.EndArray();
}

std::vector<GraphStep> LoadSteps(const Json& steps, const DeviceGraph& frame) {
  const size_t num_inputs = frame.inputs.size(), num_outputs = frame.outputs.size();
  auto device = [&](const Json& v) {
    const int64_t d = v.AsInt();
    if (d < 0 || d >= static_cast<int64_t>(frame.devices.size())) throw RuntimeError("a device that is not there");
    return d;
  };
  std::vector<GraphStep> all;
  for (const Json& s : steps.AsArray()) {
    GraphStep out;
    out.symbol = s.At("symbol").AsString();
    out.device = device(s.At("device"));
    out.bytes = SizeOf(s.At("bytes"));
    out.reads = s.At("reads").AsInt();  // for people
    for (const Json& a : s.At("args").AsArray()) {
      DevicePlace p{a[0].AsInt(), device(a[1]), static_cast<int64_t>(SizeOf(a[2]))};
      const GraphDevice& on = frame.devices[static_cast<size_t>(p.device)];
      const auto at = static_cast<uint64_t>(p.at);
      const bool copy = out.symbol.empty();
      bool good = p.kind == DevicePlace::kIo && at < num_inputs + num_outputs &&
                  p.device == (at < num_inputs ? frame.inputs[at] : frame.outputs[at - num_inputs]);
      if (p.kind == DevicePlace::kConstant || p.kind == DevicePlace::kArena) {
        const uint64_t most = p.kind == DevicePlace::kArena ? on.arena_bytes : on.constants_bytes;
        good = at <= most && (!copy || out.bytes <= most - at);
      }
      if (!good || (!copy && p.device != out.device)) throw RuntimeError("a place that is not there");
      out.args.push_back(p);
    }
    if (out.symbol.empty() && out.args.size() != 2) throw RuntimeError("a copy of other than two places");
    all.push_back(std::move(out));
  }
  return all;
}

std::string DeviceGraph::Save() const {
  std::string out;
  support::JsonWriter w(&out);
  auto integers = [&](const char* key, const std::vector<int64_t>& values) {
    w.Key(key);
    w.BeginArray();
    for (int64_t v : values) w.Int(v);
    w.EndArray();
  };
  w.BeginObject();
  w.Key("devices");
  w.BeginArray();
  for (const GraphDevice& d : devices) {
    w.BeginObject();
    w.Key("type");
    w.Int(d.type);
    w.Key("arena_bytes");
    w.Int(static_cast<int64_t>(d.arena_bytes));
    w.Key("constants");
    w.BeginArray();
    w.Int(static_cast<int64_t>(d.constants_begin));
    w.Int(static_cast<int64_t>(d.constants_bytes));
    w.EndArray();
    w.Key("code");
    w.String(d.code);
    w.EndObject();
  }
  w.EndArray();
  integers("inputs", inputs);
  integers("outputs", outputs);
  w.Key("steps");
  SaveSteps(steps, &w);
  w.EndObject();
  return out;
}

DeviceGraph DeviceGraph::Load(std::string_view text, size_t num_inputs, size_t num_outputs, uint64_t constants_bytes) {
  DeviceGraph g;
  try {
    const Json j = Json::Parse(text, "program");
    for (const Json& d : j.At("devices").AsArray()) {
      GraphDevice out;
      out.type = d.At("type").AsInt();
      out.arena_bytes = SizeOf(d.At("arena_bytes"));
      out.constants_begin = SizeOf(d.At("constants")[0]);
      out.constants_bytes = SizeOf(d.At("constants")[1]);
      out.code = d.At("code").AsString();
      if (out.type < 1 || out.type > 63) throw RuntimeError("a device of no type");
      if (out.constants_begin % 64 || out.constants_begin > constants_bytes ||
          out.constants_bytes > constants_bytes - out.constants_begin) {
        throw RuntimeError("constants outside of the file");
      }
      g.devices.push_back(std::move(out));
    }
    auto device = [&](const Json& v) {
      const int64_t d = v.AsInt();
      if (d < 0 || d >= static_cast<int64_t>(g.devices.size())) throw RuntimeError("a device that is not there");
      return d;
    };
    for (const Json& d : j.At("inputs").AsArray()) g.inputs.push_back(device(d));
    for (const Json& d : j.At("outputs").AsArray()) g.outputs.push_back(device(d));
    if (g.inputs.size() != num_inputs || g.outputs.size() != num_outputs) {
      throw RuntimeError("another number of inputs or outputs");
    }
    g.steps = LoadSteps(j.At("steps"), g);
    return g;
  } catch (const runtime::Error&) {
    throw;
  } catch (const std::exception& e) {
    throw RuntimeError(e.what());
  }
}

namespace {
/// "opencl"
std::string DeviceTypeName(int64_t type) {
  const std::string text = runtime::Device2String({static_cast<DLDeviceType>(type), 0});
  return text.substr(0, text.find('('));
}
}  // namespace

runtime::Module CreateDeviceModule(int64_t device_type, const std::string& text) {
  const std::string name = DeviceTypeName(device_type);
  const PackedFunc* create = Registry::Get(name + ".CreateModule");
  if (!create) {
    // Asking for the device loads the library that knows it.
    const DLDevice device{static_cast<DLDeviceType>(device_type), 0};
    if (const PackedFunc* exists = Registry::Get("runtime.DeviceExists")) (*exists)(device);
    create = Registry::Get(name + ".CreateModule");
  }
  if (!create) {
    throw RuntimeError("the program has code for " + name + ", which needs the library libbaton_" + name +
                       ".so beside libbaton_vm.so");
  }
  return (*create)(text).As<runtime::Module>();
}

bool IsDeviceModule(const runtime::Module& m, int64_t device_type) {
  return DeviceTypeName(device_type) == m->type_key();
}

void ImportDeviceCode(const runtime::Module& code) {
  const runtime::ExecutableDesc* desc = code->GetExecutable();
  if (!desc) return;
  const DeviceGraph graph =
      DeviceGraph::Load(desc->program, desc->inputs.size(), desc->outputs.size(), desc->constants_bytes);
  for (const GraphDevice& d : graph.devices) {
    for (const runtime::Module& m : code->imports()) {
      if (IsDeviceModule(m, d.type)) return;
    }
  }
  for (const GraphDevice& d : graph.devices) {
    if (!d.code.empty()) code->Import(CreateDeviceModule(d.type, d.code));
  }
}

namespace {
BATON_REGISTER_GLOBAL("vm.ImportDeviceCode").set_body_typed([](runtime::Module code) { ImportDeviceCode(code); });
}  // namespace

}  // namespace baton::vm

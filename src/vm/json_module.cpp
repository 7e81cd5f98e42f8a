// SPDX-License-Identifier: Apache-2.0
// Modules of accelerators that are plug-ins in C: a graph in Relay's JSON schema, with its constants.
#include <baton/runtime/array.h>
#include <baton/runtime/bytes.h>
#include <baton/runtime/error.h>
#include <baton/runtime/json_module.h>
#include <baton/runtime/module.h>
#include <baton/runtime/ndarray.h>
#include <baton/runtime/registry.h>
#include <baton/support/bytes.h>
#include <baton/support/file.h>
#include <baton/support/json.h>
#include <baton/support/text.h>
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

#include "vm/json_plugin.h"
#include "vm/saved_arrays.h"

namespace baton::vm {
namespace {

using runtime::Array;
using runtime::DataType;
using runtime::Module;
using runtime::ModuleNode;
using runtime::NDArray;
using runtime::PackedFunc;
using runtime::RuntimeError;
using runtime::String;
using support::Cat;
using support::Json;

constexpr std::string_view kMagic = "BATONJSN";
constexpr uint32_t kVersion = 1;

/// A graph as plug-ins see it, and what it points to.
class Graph {
 public:
  /// Throws RuntimeError for a text that is not such a graph.
  Graph(std::string symbol, std::string json, std::vector<NDArray> constants)
      : symbol_(std::move(symbol)), json_(std::move(json)), constants_(std::move(constants)) {
    try {
      Read(Json::Parse(json_, "graph"));
    } catch (const runtime::Error&) {
      throw;
    } catch (const std::exception& e) {
      Fail(e.what());
    }
    graph_.size = sizeof graph_;
    graph_.symbol = symbol_.c_str();
    graph_.json = json_.c_str();
    graph_.num_nodes = Size(nodes_);
    graph_.nodes = nodes_.data();
    graph_.num_inputs = Size(inputs_);
    graph_.inputs = inputs_.data();
    graph_.num_results = Size(results_);
    graph_.results = results_.data();
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  const BatonJsonGraph& plain() const { return graph_; }
  const std::string& symbol() const { return symbol_; }
  const std::string& json() const { return json_; }
  const std::vector<NDArray>& constants() const { return constants_; }
  /// The tensor that argument i of a call is.
  const BatonJsonTensor& Argument(int i) const {
    if (i < graph_.num_inputs) return nodes_[static_cast<size_t>(inputs_[static_cast<size_t>(i)])].outputs[0];
    return TensorOf(results_[static_cast<size_t>(i - graph_.num_inputs)]);
  }

 private:
  template <class T>
  static int32_t Size(const std::vector<T>& list) {
    return static_cast<int32_t>(list.size());
  }
  [[noreturn]] void Fail(const std::string& what) const {
    throw RuntimeError(Cat("the graph of `", symbol_, "` is damaged: ", what));
  }
  const BatonJsonTensor& TensorOf(const BatonJsonEntry& e) const {
    return nodes_[static_cast<size_t>(e.node)].outputs[e.output];
  }
  const char* Keep(const std::string& text) { return texts_.emplace_back(text).c_str(); }
  const Json& Only(const Json& list) const {
    if (list.size() != 1) Fail("an attribute is no list of one list");
    return list[0];
  }
  BatonJsonEntry Entry(const Json& j, size_t end) const {
    const int64_t node = j[0].AsInt(), output = j[1].AsInt();
    if (node < 0 || static_cast<size_t>(node) >= end) Fail("a node reads one that is not before it");
    if (output < 0 || output >= nodes_[static_cast<size_t>(node)].num_outputs)
      Fail("a node reads an output that is not there");
    return {static_cast<int32_t>(node), static_cast<int32_t>(output)};
  }
  std::vector<BatonJsonTensor> Outputs(const Json& attrs) {
    const Json &dtypes = Only(attrs.At("dtype")), &shapes = Only(attrs.At("shape"));
    if (dtypes.size() != shapes.size() || dtypes.size() == 0) Fail("dtypes and shapes of a node differ in number");
    std::vector<BatonJsonTensor> out;
    for (size_t i = 0; i < dtypes.size(); ++i) {
      std::vector<int64_t>& shape = shapes_.emplace_back();
      int64_t count = 1;
      for (const Json& d : shapes[i].AsArray()) {
        shape.push_back(d.AsInt());
        if (shape.back() < 0 || __builtin_mul_overflow(count, std::max<int64_t>(shape.back(), 1), &count) ||
            count > (int64_t{1} << 56)) {
          Fail("a shape that no tensor has");
        }
      }
      out.push_back({runtime::String2DataType(dtypes[i].AsString()), static_cast<int32_t>(shape.size()), shape.data()});
    }
    return out;
  }
  std::vector<BatonJsonAttr> Attrs(const Json& attrs) {
    std::vector<BatonJsonAttr> out;
    for (const auto& [key, value] : attrs.AsObject()) {
      if (key == "dtype" || key == "shape" || key == "num_inputs" || key == "num_outputs") continue;
      std::vector<const char*>& values = values_.emplace_back();
      for (const Json& v : Only(value).AsArray()) values.push_back(Keep(v.AsString()));
      out.push_back({Keep(key), Size(values), values.data()});
    }
    return out;
  }
  void Read(const Json& j) {
    const std::vector<Json>& nodes = j.At("nodes").AsArray();
    if (nodes.size() > 1u << 24) Fail("it has too many nodes");
    nodes_.reserve(nodes.size());
    size_t constant = 0;
    for (const Json& n : nodes) {
      const std::string& op = n.At("op").AsString();
      BatonJsonNode node{};
      node.kind = op == "input" ? kBatonJsonInput : op == "const" ? kBatonJsonConst : kBatonJsonKernel;
      if (node.kind == kBatonJsonKernel && op != "kernel") Fail("a node is neither input, const nor kernel");
      node.name = Keep(n.At("name").AsString());
      const auto& outputs = tensors_.emplace_back(Outputs(n.At("attrs")));
      node.num_outputs = Size(outputs), node.outputs = outputs.data();
      if (node.kind == kBatonJsonConst) {
        if (constant == constants_.size()) Fail("it has more constants than came with it");
        Check(constants_[constant], outputs[0]);
        node.constant = constants_[constant++].tensor();
      } else if (node.kind == kBatonJsonInput) {
        inputs_.push_back(Size(nodes_));
      } else {
        auto& inputs = entries_.emplace_back();
        for (const Json& e : n.At("inputs").AsArray()) inputs.push_back(Entry(e, nodes_.size()));
        const auto& attrs = attrs_.emplace_back(Attrs(n.At("attrs")));
        node.num_inputs = Size(inputs), node.inputs = inputs.data();
        node.num_attrs = Size(attrs), node.attrs = attrs.data();
      }
      nodes_.push_back(node);
    }
    for (const Json& e : j.At("heads").AsArray()) results_.push_back(Entry(e, nodes_.size()));
  }
  void Check(const NDArray& value, const BatonJsonTensor& t) const {
    if (value.dtype() != DataType(t.dtype) || value.shape() != std::vector<int64_t>(t.shape, t.shape + t.ndim)) {
      Fail("a constant has another dtype or shape than its node");
    }
  }

  std::string symbol_, json_;
  std::vector<NDArray> constants_;
  std::vector<BatonJsonNode> nodes_;
  std::vector<int32_t> inputs_;
  std::vector<BatonJsonEntry> results_;
  // Nodes point to these: their elements do not move.
  std::deque<std::string> texts_;
  std::deque<std::vector<int64_t>> shapes_;
  std::deque<std::vector<BatonJsonTensor>> tensors_;
  std::deque<std::vector<BatonJsonEntry>> entries_;
  std::deque<std::vector<BatonJsonAttr>> attrs_;
  std::deque<std::vector<const char*>> values_;
  BatonJsonGraph graph_{};
};

class JsonModule final : public ModuleNode {
 public:
  JsonModule(const BatonJsonPlugin* plugin, std::string symbol, std::string json, std::vector<NDArray> constants)
      : plugin_(plugin), graph_(std::move(symbol), std::move(json), std::move(constants)) {
    const char* error = nullptr;
    if (plugin_->init(&graph_.plain(), &state_, &error) != 0) Failed("init", error);
  }
  ~JsonModule() override { plugin_->free(state_); }
  const char* type_key() const override { return plugin_->key; }
  PackedFunc GetFunction(std::string_view name, const ObjectPtr<runtime::Object>& self) override {
    if (name != graph_.symbol()) return PackedFunc();
    return PackedFunc([self, this](runtime::Args args, runtime::RetValue*) { Run(args); });
  }
  std::string GetSource(std::string_view format) override {
    return format.empty() || format == "json" ? graph_.json() : ModuleNode::GetSource(format);
  }
  void SaveToFile(const std::string& path, std::string_view) override {
    support::ByteWriter w;
    w.WriteBytes(kMagic.data(), kMagic.size());
    w.Write<uint32_t>(kVersion);
    w.WriteString(graph_.symbol());
    w.WriteString(graph_.json());
    WriteArrays(&w, graph_.constants());
    support::WriteFileAtomic(path, w.Take());
  }

 private:
  [[noreturn]] void Failed(const char* what, const char* error) const {
    throw RuntimeError(Cat("`", plugin_->key, "` failed at ", what, " of `", graph_.symbol(),
                           "`: ", error && *error ? error : "it says no more"));
  }
  /// Throws ValueError for a tensor that is not what argument i is.
  void Check(const DLTensor& t, int i) const {
    const BatonJsonTensor& want = graph_.Argument(i);
    if (DataType(t.dtype) != DataType(want.dtype) || t.ndim != want.ndim ||
        !std::equal(t.shape, t.shape + t.ndim, want.shape)) {
      throw runtime::ValueError(Cat("argument ", i, " of `", graph_.symbol(), "` has another dtype or shape"));
    }
    if (t.device.device_type != kDLCPU || !runtime::IsContiguous(&t)) {
      throw runtime::ValueError(Cat("argument ", i, " of `", graph_.symbol(), "` is not dense on the CPU"));
    }
  }
  void Run(const runtime::Args& args) {
    const int due = graph_.plain().num_inputs + graph_.plain().num_results;
    if (args.size() != due)
      throw runtime::TypeError(Cat("`", graph_.symbol(), "` takes ", due, " tensors, got ", args.size()));
    // Calls are short: nothing is allocated for a few tensors.
    constexpr int kFew = 16;
    DLTensor* few[kFew];
    std::vector<DLTensor*> many(due > kFew ? static_cast<size_t>(due) : 0);
    DLTensor** tensors = due > kFew ? many.data() : few;
    for (int i = 0; i < due; ++i) {
      tensors[i] = args[i].As<DLTensor*>();
      Check(*tensors[i], i);
    }
    const char* error = nullptr;
    std::lock_guard lock(mutex_);
    if (plugin_->run(state_, tensors, due, &error) != 0) Failed("run", error);
  }

  const BatonJsonPlugin* plugin_;
  Graph graph_;
  void* state_ = nullptr;
  std::mutex mutex_;
};

Module Load(const BatonJsonPlugin* plugin, std::string_view data) {
  support::ByteReader r(data.data(), data.size(), plugin->key);
  try {
    if (data.substr(0, kMagic.size()) != kMagic) r.Fail("it does not begin as a graph does");
    r.Skip(kMagic.size(), "magic");
    if (const auto version = r.Read<uint32_t>("version"); version != kVersion) {
      r.Fail(Cat("version ", version, ", this runtime reads version ", kVersion));
    }
    const std::string symbol(r.ReadString("symbol")), json(r.ReadString("graph"));
    std::vector<NDArray> constants = ReadArrays(&r);
    r.ExpectEnd();
    return runtime::MakeModule<JsonModule>(plugin, symbol, json, std::move(constants));
  } catch (const runtime::Error&) {
    throw;
  } catch (const std::exception& e) {
    throw RuntimeError(e.what());
  }
}

bool IsName(const char* key) {
  if (!key || !*key) return false;
  for (const char* c = key; *c; ++c) {
    if (!isalnum(static_cast<unsigned char>(*c)) && *c != '_') return false;
  }
  return true;
}

const BatonJsonPlugin* PluginOf(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);  // stays: modules hold its functions
  if (!library) throw RuntimeError(Cat("the plug-in `", path, "` cannot be loaded: ", dlerror()));
  auto* entry = reinterpret_cast<const BatonJsonPlugin* (*)()>(dlsym(library, "baton_json_plugin"));
  if (!entry) {
    throw RuntimeError(
        Cat("`", path, "` is no plug-in: it exports no function `baton_json_plugin` (baton/runtime/json_module.h)"));
  }
  const BatonJsonPlugin* plugin = entry();
  constexpr size_t kLeast = offsetof(BatonJsonPlugin, takes);
  if (!plugin || plugin->size < kLeast || plugin->version != kBatonJsonPluginVersion) {
    throw RuntimeError(
        Cat("the plug-in `", path, "` was made for another version of baton/runtime/json_module.h; build it again"));
  }
  if (!IsName(plugin->key) || !plugin->init || !plugin->run || !plugin->free) {
    throw RuntimeError(
        Cat("the plug-in `", path, "` lacks a name of letters, digits and `_`, or one of init, run and free"));
  }
  return plugin;
}

/// Whether a plug-in takes an operator, by the graph of one call of it.
bool Takes(const BatonJsonPlugin* plugin, const std::string& json, std::vector<NDArray> constants) {
  if (plugin->size < sizeof(BatonJsonPlugin) || !plugin->takes) return true;
  const Graph graph("takes", json, std::move(constants));
  const BatonJsonGraph& g = graph.plain();
  const BatonJsonNode& last = g.nodes[g.num_nodes - 1];
  std::vector<BatonJsonTensor> inputs;
  for (int32_t i = 0; i < last.num_inputs; ++i) {
    inputs.push_back(g.nodes[last.inputs[i].node].outputs[last.inputs[i].output]);
  }
  return plugin->takes(&last, inputs.data(), last.num_inputs) != 0;
}

std::vector<NDArray> Dense(const Array<NDArray>& arrays) {
  std::vector<NDArray> out;
  for (const NDArray& a : arrays) out.push_back(a.Contiguous());
  return out;
}

/// The path of libbaton_plugin_KEY.so beside this library; "" where there is none.
std::string ShippedPlugin(const std::string& key) {
  Dl_info self{};
  if (!IsName(key.c_str()) || !dladdr(reinterpret_cast<const void*>(&IsName), &self) || !self.dli_fname) return "";
  const std::string own = self.dli_fname, path = own.substr(0, own.rfind('/') + 1) + "libbaton_plugin_" + key + ".so";
  return access(path.c_str(), R_OK) == 0 ? path : "";
}

/// Loads a plug-in and registers what makes its modules. Returns its key.
String LoadPlugin(const std::string& path) {
  const BatonJsonPlugin* plugin = PluginOf(path);
  const std::string key = plugin->key;
  runtime::Registry::Register("runtime.module.loadbinary_" + key, true).set_body_typed([plugin](runtime::Bytes data) {
    return Load(plugin, data.view());
  });
  // (symbol, graph, constants in the order of their nodes): a module
  runtime::Registry::Register("runtime.json_module." + key, true)
      .set_body_typed([plugin](std::string symbol, std::string json, Array<NDArray> constants) {
        return runtime::MakeModule<JsonModule>(plugin, std::move(symbol), std::move(json), Dense(constants));
      });
  runtime::Registry::Register("runtime.json_takes." + key, true)
      .set_body_typed(
          [plugin](std::string json, Array<NDArray> constants) { return Takes(plugin, json, Dense(constants)); });
  return String(key);
}
BATON_REGISTER_GLOBAL("vm.LoadJsonPlugin").set_body_typed([](std::string path) { return LoadPlugin(path); });
/// (key): the path of the library of a plug-in that comes with Baton, or "".
BATON_REGISTER_GLOBAL("vm.ShippedPlugin").set_body_typed([](std::string key) { return String(ShippedPlugin(key)); });

}  // namespace

bool LoadShippedPlugin(const std::string& key) {
  const std::string path = ShippedPlugin(key);
  if (!path.empty()) LoadPlugin(path);
  return !path.empty();
}

}  // namespace baton::vm

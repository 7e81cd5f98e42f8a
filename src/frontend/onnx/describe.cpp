// SPDX-License-Identifier: Apache-2.0
// The contents of an ONNX file, for people and for tools that choose shapes: read and checked, not imported.
#include <baton/runtime/registry.h>
#include <baton/support/json.h>

#include <map>
#include <set>

#include "frontend/onnx/reader/bytes.h"
#include "frontend/onnx/reader/model_error.h"
#include "frontend/onnx/reader/reader.h"

namespace baton::onnx {
namespace {

using support::JsonWriter;

/// Names in a file are bytes; what is not UTF-8 is shown with replacement characters.
std::string Text(std::string_view s) {
  std::string out;
  while (!s.empty()) {
    size_t n = support::Utf8Sequence(s);
    out += n == 0 ? std::string_view("\xef\xbf\xbd") : s.substr(0, n);
    s.remove_prefix(n == 0 ? 1 : n);
  }
  return out;
}

std::string LowerDtype(int32_t type) {
  switch (type) {  // dtypes with other names in NumPy
    case kFloat:
      return "float32";
    case kDouble:
      return "float64";
    case kFloat8E4M3FN:
      return "float8_e4m3fn";
    case kFloat8E4M3FNUZ:
      return "float8_e4m3fnuz";
    case kFloat8E5M2:
      return "float8_e5m2";
    case kFloat8E5M2FNUZ:
      return "float8_e5m2fnuz";
    case kFloat8E8M0:
      return "float8_e8m0fnu";
    case kFloat6E2M3:
      return "float6_e2m3fn";
    case kFloat6E3M2:
      return "float6_e3m2fn";
    case kFloat4E2M1:
      return "float4_e2m1fn";
    default:
      break;
  }
  std::string name = DataTypeName(type);
  for (char& c : name) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  return name.empty() ? "unknown" : name;
}

const char* KindName(Type::Kind kind) {
  static const char* const names[] = {"none", "tensor", "sequence", "map", "optional", "sparse_tensor", "opaque"};
  return names[kind];
}

void WriteValues(JsonWriter* w, const std::vector<ValueInfo>& values, const std::set<std::string_view>& skip) {
  w->BeginArray();
  for (const ValueInfo& v : values) {
    if (skip.count(v.name)) continue;
    w->BeginObject();
    w->Key("name");
    w->String(Text(v.name));
    w->Key("dtype");
    w->String(v.type.kind == Type::kTensor ? LowerDtype(v.type.elem_type) : KindName(v.type.kind));
    w->Key("shape");
    if (v.type.kind == Type::kTensor && v.type.has_shape) {
      w->BeginArray();
      for (const Dim& d : v.type.shape) {
        if (d.value >= 0) {
          w->Int(d.value);
        } else if (!d.param.empty()) {
          w->String(Text(d.param));
        } else {
          w->Null();
        }
      }
      w->EndArray();
    } else {
      w->Null();
    }
    w->EndObject();
  }
  w->EndArray();
}

/// The facts as a JSON object: opsets, producer, inputs (without initializers) and outputs with `shape` a list of
/// lengths, names and nulls (null itself where the rank is open), weights, and how often each operator occurs,
/// subgraphs and functions' bodies included.
std::string Describe(const Model& model) {
  std::string out;
  JsonWriter w(&out);
  w.BeginObject();
  w.Key("ir_version");
  w.Int(model.ir_version);
  w.Key("opsets");
  w.BeginObject();
  std::set<std::string_view> domains;
  for (const OpsetId& id : model.opset_imports) {
    std::string_view domain = id.domain.empty() ? std::string_view("ai.onnx") : id.domain;
    if (!domains.insert(domain).second) continue;
    w.Key(Text(domain));
    w.Int(id.version);
  }
  w.EndObject();
  w.Key("producer");
  w.String(Text(model.producer_name));
  std::set<std::string_view> weights;
  int64_t bytes = 0, count = 0;
  for (const Tensor& t : model.graph.initializers) {
    weights.insert(t.name);
    bytes += (NumElements(t) * DataTypeBits(t.data_type) + 7) / 8;
    ++count;
  }
  for (const SparseTensor& t : model.graph.sparse_initializers) {
    weights.insert(t.values.name);
    bytes += (NumElements(t.values) * DataTypeBits(t.values.data_type) + 7) / 8;
    ++count;
  }
  w.Key("inputs");
  WriteValues(&w, model.graph.inputs, weights);
  w.Key("outputs");
  WriteValues(&w, model.graph.outputs, {});
  w.Key("weights");
  w.Int(count);
  w.Key("weight_bytes");
  w.Int(bytes);

  std::map<std::string, int64_t> kinds;
  std::vector<const std::vector<Node>*> open{&model.graph.nodes};
  for (const FunctionDef& f : model.functions) open.push_back(&f.nodes);
  while (!open.empty()) {
    const std::vector<Node>& nodes = *open.back();
    open.pop_back();
    for (const Node& node : nodes) {
      std::string name(node.op_type);
      if (!node.domain.empty() && node.domain != "ai.onnx") name = std::string(node.domain) + "." + name;
      ++kinds[Text(name)];
      for (const Attribute& a : node.attributes) {
        for (const Graph& g : a.graphs) open.push_back(&g.nodes);
      }
    }
  }
  w.Key("operators");
  w.BeginObject();
  for (const auto& [name, n] : kinds) {
    w.Key(name);
    w.Int(n);
  }
  w.EndObject();
  w.EndObject();
  return out;
}

/// Refuses a model whose weights lie in a file that is missing or too short.
void CheckExternalData(const Model& model) {
  auto check = [&](const Tensor& t) {
    if (!t.external) return;
    if (model.external == nullptr) Throw("external data is refused: the model has no folder");
    std::shared_ptr<const Bytes> keep;
    model.external->Read(t.location, t.external_offset, t.external_length, &keep);
  };
  for (const Tensor& t : model.graph.initializers) check(t);
  for (const SparseTensor& t : model.graph.sparse_initializers) check(t.values), check(t.indices);
}

BATON_REGISTER_GLOBAL("relay.frontend.check_onnx_data_file").set_body_typed([](std::string path) {
  CheckExternalData(*LoadModel(path));
});
BATON_REGISTER_GLOBAL("relay.frontend.check_onnx_data_bytes").set_body_typed([](std::string model, std::string folder) {
  CheckExternalData(*ParseModel(model, folder));
});
BATON_REGISTER_GLOBAL("relay.frontend.describe_onnx_file").set_body_typed([](std::string path) {
  return Describe(*LoadModel(path));
});
BATON_REGISTER_GLOBAL("relay.frontend.describe_onnx_bytes").set_body_typed([](std::string model, std::string folder) {
  return Describe(*ParseModel(model, folder));
});

}  // namespace
}  // namespace baton::onnx

// SPDX-License-Identifier: Apache-2.0
#include <baton/frontend/onnx.h>
#include <baton/ir/failure.h>
#include <baton/runtime/ndarray.h>
#include <baton/runtime/registry.h>
#include <baton/support/json.h>

#include <algorithm>

#include "frontend/onnx/import/importer_impl.h"
#include "frontend/onnx/reader/reader.h"

namespace baton::frontend {
namespace {

OnnxModule Finish(const std::shared_ptr<onnx::Model>& model, const OnnxOptions& options) {
  if (options.opset != 0) {
    for (onnx::OpsetId& id : model->opset_imports) {
      if (id.domain.empty()) id.version = options.opset;
    }
  }
  onnx::Imported imported = onnx::Import(model, options);
  return {imported.mod, imported.params};
}

/// Inputs as Python gives them: by name a shape, a list of shapes (a sequence) or None (an optional without a value).
OnnxOptions OptionsOf(const Map<String, Any>& inputs, bool freeze, const std::string& folder, int64_t opset,
                      bool symbolic = false) {
  OnnxOptions options;
  options.symbolic = symbolic;
  options.freeze_params = freeze;
  options.folder = folder;
  options.opset = opset;
  auto lengths = [](const Array<Any>& shape, std::vector<std::string>* names = nullptr) {
    std::vector<int64_t> out;
    for (const Any& d : shape) {
      const bool named = names != nullptr && d.Is<std::string>();
      out.push_back(named ? -1 : d.As<int64_t>());
      if (names != nullptr) names->push_back(named ? d.As<std::string>() : "");
    }
    return out;
  };
  for (const auto& [name, value] : inputs) {
    OnnxInput in;
    in.name = std::string(name);
    if (value.is_null()) {
      in.kind = OnnxInput::kNothing;
    } else {
      auto list = value.As<Array<Any>>();
      bool nested = !list.empty() && list[0].object() != nullptr && !options.symbolic;
      // ["sequence", shape, shape...]: so that an empty sequence can be told from a scalar.
      if (nested && list[0].Is<std::string>()) {
        in.kind = OnnxInput::kSequence;
        for (size_t i = 1; i < list.size(); ++i)
          in.shapes.push_back(lengths(list[static_cast<int64_t>(i)].As<Array<Any>>()));
      } else {
        in.shapes.push_back(lengths(list, &in.names));
      }
    }
    options.inputs.push_back(in);
  }
  return options;
}

Array<ObjectRef> AsArray(const OnnxModule& m) { return Array<ObjectRef>({m.mod, m.params}); }

runtime::NDArray BytesOf(const std::string& text) {
  auto out = runtime::NDArray::Empty({static_cast<int64_t>(text.size())}, DataType::UInt(8));
  std::copy(text.begin(), text.end(), out.ptr<char>());
  return out;
}

/// Runs an import; what it was given is kept where it fails.
template <class Arguments, class F>
Array<ObjectRef> Recorded(const char* function, Arguments arguments, F import) {
  try {
    return AsArray(import());
  } catch (...) {
    transform::failure::NoteImport(function, arguments());
    throw;
  }
}

std::string JsonOf(const std::vector<OnnxNode>& nodes) {
  std::string out;
  support::JsonWriter w(&out);
  const auto values = [&w](const char* key, const std::vector<OnnxValue>& list) {
    w.Key(key);
    w.BeginArray();
    for (const OnnxValue& v : list) {
      w.BeginObject();
      w.Key("name"), w.String(v.name);
      w.Key("dtype"), w.String(v.dtype);
      if (v.ranked) {
        w.Key("shape"), w.BeginArray();
        for (int64_t d : v.shape) w.Int(d);
        w.EndArray();
      }
      w.EndObject();
    }
    w.EndArray();
  };
  w.BeginArray();
  for (const OnnxNode& n : nodes) {
    w.BeginObject();
    w.Key("label"), w.String(n.label);
    w.Key("domain"), w.String(n.domain);
    w.Key("op"), w.String(n.op);
    w.Key("version"), w.Int(n.version);
    w.Key("depth"), w.Int(n.depth);
    w.Key("why"), w.String(n.why);
    w.Key("after_unsupported"), w.Bool(n.after_unsupported);
    w.Key("calls"), w.BeginArray();
    for (const std::string& c : n.calls) w.String(c);
    w.EndArray();
    values("inputs", n.inputs), values("outputs", n.outputs);
    w.EndObject();
  }
  w.EndArray();
  return out;
}

/// `later`: large weights are in the file until a pass reads them.
BATON_REGISTER_GLOBAL("relay.frontend.from_onnx_file")
    .set_body_typed([](std::string path, Map<String, Any> inputs, bool freeze, int64_t opset, bool later) {
      auto given = [&] { return Array<Any>{Any(String(path)), Any(inputs), Any(freeze), Any(opset)}; };
      return Recorded("relay.frontend.from_onnx_file", given, [&] {
        OnnxOptions options = OptionsOf(inputs, freeze, "", opset);
        options.weights_later = later;
        return FromOnnxFile(path, options);
      });
    });
BATON_REGISTER_GLOBAL("relay.frontend.from_onnx_bytes")
    .set_body_typed([](std::string model, Map<String, Any> inputs, bool freeze, int64_t opset, std::string folder) {
      auto given = [&] { return Array<Any>{Any(BytesOf(model)), Any(inputs), Any(freeze), Any(opset)}; };
      return Recorded("relay.frontend.from_onnx_bytes", given,
                      [&] { return FromOnnxBytes(model, OptionsOf(inputs, freeze, folder, opset)); });
    });

/// The same with weights in the module and open lengths as symbols: a length that is a text is named so.
BATON_REGISTER_GLOBAL("relay.frontend.open_onnx_file")
    .set_body_typed([](std::string path, Map<String, Any> inputs, bool later) {
      OnnxOptions options = OptionsOf(inputs, true, "", 0, true);
      options.weights_later = later;
      return FromOnnxFile(path, options).mod;
    });
BATON_REGISTER_GLOBAL("relay.frontend.open_onnx_bytes")
    .set_body_typed([](std::string model, Map<String, Any> inputs, std::string folder) {
      return FromOnnxBytes(model, OptionsOf(inputs, true, folder, 0, true)).mod;
    });

/// The nodes of a model as JSON, and the module, or null where something is not supported. symbolic: as open_onnx_file.
BATON_REGISTER_GLOBAL("relay.frontend.xray_onnx")
    .set_body_typed([](std::string path, Map<String, Any> inputs, bool symbolic) {
      std::vector<OnnxNode> nodes;
      OnnxOptions options = OptionsOf(inputs, true, "", 0, symbolic);
      options.weights_later = true, options.nodes = &nodes;
      const OnnxModule made = FromOnnxFile(path, options);
      return Array<Any>{Any(String(JsonOf(nodes))), Any(made.mod)};
    });

BATON_REGISTER_GLOBAL("relay.frontend.onnx_supports").set_body_typed([](std::string domain, std::string op) {
  return onnx::FindOperator(domain, op) != nullptr;
});

}  // namespace

OnnxModule FromOnnxFile(const std::string& path, const OnnxOptions& options) {
  return Finish(onnx::LoadModel(path), options);
}

OnnxModule FromOnnxBytes(std::string_view model, const OnnxOptions& options) {
  return Finish(onnx::ParseModel(model, options.folder), options);
}

}  // namespace baton::frontend

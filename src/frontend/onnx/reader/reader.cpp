// SPDX-License-Identifier: Apache-2.0
#include "reader.h"

#include <map>
#include <utility>

#include "check.h"
#include "file_kind.h"
#include "wire.h"

namespace baton::onnx {
namespace {

int64_t ParseDecimal(std::string_view text) {
  if (text.empty() || text.size() > 18) return -1;
  int64_t value = 0;
  for (char c : text) {
    if (c < '0' || c > '9') return -1;
    value = value * 10 + (c - '0');
  }
  return value;
}

/// A method for each message of the schema.
class Reader : public WireReader {
 public:
  using WireReader::WireReader;

  void ReadModel(Model* m);
  void ReadTensorMessage(Tensor* t) { TensorMsg({base_, base_ + size_}, t, "tensor", -1); }
  void ReadNodeMessage(Node* n) { NodeMsg({base_, base_ + size_}, n, "node", -1); }

 private:
  void TensorMsg(In in, Tensor* t, const char* field, int64_t index);
  void ExternalEntry(In in, Tensor* t);
  void SparseMsg(In in, SparseTensor* t, const char* field, int64_t index);
  void TypeMsg(In in, Type* t, const char* field, int64_t index);
  void ShapeMsg(In in, Type* t);
  void ValueInfoMsg(In in, ValueInfo* v, const char* field, int64_t index);
  void AttributeMsg(In in, Attribute* a, const char* field, int64_t index);
  /// Sets the kind, which is what the file says or else the field that is filled; `mixed`: several are filled.
  void CheckAttribute(const uint8_t* at, int64_t kind, int32_t filled, bool mixed, Attribute* a);
  void NodeMsg(In in, Node* n, const char* field, int64_t index);
  void GraphMsg(In in, Graph* g, const char* field, int64_t index);
  void OpsetMsg(In in, OpsetId* o, int64_t index);
  void FunctionMsg(In in, FunctionDef* f, int64_t index);
};

void Reader::ExternalEntry(In in, Tensor* t) {
  std::string_view key, value;
  const uint8_t* at = in.at;
  Message(in, "external_data", -1, &t->name, [&](int number, int wire, In* in) {
    if (number == 1) return key = Str(in, wire), true;
    if (number == 2) return value = Str(in, wire), true;
    return false;
  });
  if (key == "location") t->location = value;
  int64_t* to = key == "offset" ? &t->external_offset : key == "length" ? &t->external_length : nullptr;
  if (to != nullptr && (*to = ParseDecimal(value)) < 0) {
    Fail(at,
         "external data has " + std::string(key) + " `" + Printable(value, 40) + "`, which is not a number of bytes");
  }
}

void Reader::TensorMsg(In in, Tensor* t, const char* field, int64_t index) {
  t->offset = static_cast<size_t>(in.at - base_);
  Message(in, field, index, &t->name, [&](int number, int wire, In* in) {
    switch (number) {
      case 1:
        Ints(in, wire, &t->dims);
        return true;
      case 2:
        t->data_type = Int32(in, wire);
        return true;
      case 3:
        Fail(in->at, "tensors in segments are not supported; save the model with whole tensors");
      case 4:
      case 5:
      case 6:
      case 7:
      case 9:
      case 10:
      case 11: {
        std::string_view chunk;
        Wire single = number == 4 ? kFixed32 : number == 10 ? kFixed64 : kVarint;
        if (number == 6) {
          chunk = Str(in, wire);
        } else if (wire == single && number != 9) {
          const uint8_t* begin = in->at;
          Skip(in, wire);
          chunk = {reinterpret_cast<const char*>(begin), static_cast<size_t>(in->at - begin)};
        } else {
          chunk = Raw(in, wire);
        }
        if (t->field != 0 && t->field != number && !t->chunks.empty()) {
          if (chunk.empty() && number != 6) return true;
          Fail(in->at, "the tensor has its data in two fields (" + std::to_string(t->field) + " and " +
                           std::to_string(number) + "); the file is damaged");
        }
        t->field = number;
        if (number == 9) t->chunks.clear();
        if (!chunk.empty() || number == 6) Append(*in, &t->chunks) = chunk;
        return true;
      }
      case 8:
        t->name = Str(in, wire);
        return true;
      case 13:
        Expect(*in, wire, kBytes);
        ExternalEntry(Sized(in), t);
        return true;
      case 14:
        t->external = Int(in, wire) == 1;
        return true;
      default:
        return false;
    }
  });
}

void Reader::SparseMsg(In in, SparseTensor* t, const char* field, int64_t index) {
  Message(in, field, index, &t->values.name, [&](int number, int wire, In* in) {
    if (number == 1 || number == 2) {
      Expect(*in, wire, kBytes);
      TensorMsg(Sized(in), number == 1 ? &t->values : &t->indices, number == 1 ? "values" : "indices", -1);
      return true;
    }
    if (number == 3) return Ints(in, wire, &t->dims), true;
    return false;
  });
}

void Reader::ShapeMsg(In in, Type* t) {
  t->has_shape = true;
  Message(in, "shape", -1, nullptr, [&](int number, int wire, In* in) {
    if (number != 1) return false;
    Repeat(in, wire, &t->shape, [&](In sub, Dim* dim, int64_t index) {
      Message(sub, "dim", index, nullptr, [&](int number, int wire, In* in) {
        if (number == 1) {
          const uint8_t* at = in->at;
          int64_t value = Int(in, wire);
          // Exporters write -1 for a length they do not know.
          if (value < -1) Fail(at, "a dimension of length " + std::to_string(value) + " is impossible");
          dim->value = value;
          return true;
        }
        if (number == 2) return dim->param = Str(in, wire), true;
        return false;
      });
    });
    return true;
  });
}

void Reader::TypeMsg(In in, Type* t, const char* field, int64_t index) {
  Message(in, field, index, nullptr, [&](int number, int wire, In* in) {
    static constexpr struct {
      int number;
      Type::Kind kind;
      const char* name;
    } kKinds[] = {{1, Type::kTensor, "tensor_type"},
                  {4, Type::kSequence, "sequence_type"},
                  {5, Type::kMap, "map_type"},
                  {7, Type::kOpaque, "opaque_type"},
                  {8, Type::kSparseTensor, "sparse_tensor_type"},
                  {9, Type::kOptional, "optional_type"}};
    for (const auto& k : kKinds) {
      if (k.number != number) continue;
      Expect(*in, wire, kBytes);
      if (t->kind != k.kind) *t = Type();
      t->kind = k.kind;
      Message(Sized(in), k.name, -1, nullptr, [&](int number, int wire, In* in) {
        bool tensor = t->kind == Type::kTensor || t->kind == Type::kSparseTensor;
        if (tensor && number == 1) return t->elem_type = Int32(in, wire), true;
        if (tensor && number == 2) {
          Expect(*in, wire, kBytes);
          t->shape.clear();
          ShapeMsg(Sized(in), t);
          return true;
        }
        if (t->kind == Type::kMap && number == 1) return t->elem_type = Int32(in, wire), true;
        bool nests = (t->kind == Type::kMap && number == 2) ||
                     ((t->kind == Type::kSequence || t->kind == Type::kOptional) && number == 1);
        if (!nests) return false;
        Expect(*in, wire, kBytes);
        Charge(in->at, sizeof(Type));
        t->elem = std::make_unique<Type>();
        TypeMsg(Sized(in), t->elem.get(), "elem_type", -1);
        return true;
      });
      return true;
    }
    return false;
  });
}

void Reader::ValueInfoMsg(In in, ValueInfo* v, const char* field, int64_t index) {
  Message(in, field, index, &v->name, [&](int number, int wire, In* in) {
    if (number == 1) return v->name = Str(in, wire), true;
    if (number != 2) return false;
    Expect(*in, wire, kBytes);
    TypeMsg(Sized(in), &v->type, "type", -1);
    return true;
  });
}

void Reader::AttributeMsg(In in, Attribute* a, const char* field, int64_t index) {
  const uint8_t* at = in.at;
  a->source = {reinterpret_cast<const char*>(in.at), in.left()};
  // Models older than IR version 2 have no `type`: the field that is filled tells it.
  int32_t filled = Attribute::kUndefined;
  bool mixed = false;
  auto seen = [&](int32_t kind) {
    mixed = mixed || (filled != Attribute::kUndefined && filled != kind);
    filled = kind;
  };
  int64_t kind = Attribute::kUndefined;
  Message(in, field, index, &a->name, [&](int number, int wire, In* in) {
    switch (number) {
      case 1:
        a->name = Str(in, wire);
        return true;
      case 2:
        Expect(*in, wire, kFixed32);
        a->f = Fixed<float>(in);
        seen(Attribute::kFloat);
        return true;
      case 3:
        a->i = Int(in, wire);
        seen(Attribute::kInt);
        return true;
      case 4:
        a->s = Raw(in, wire);
        seen(Attribute::kString);
        return true;
      case 5:
      case 10:
        seen(number == 5 ? Attribute::kTensor : Attribute::kTensors);
        Repeat(in, wire, &a->tensors,
               [&](In sub, Tensor* t, int64_t i) { TensorMsg(sub, t, number == 5 ? "t" : "tensors", i); });
        return true;
      case 6:
      case 11:
        seen(number == 6 ? Attribute::kGraph : Attribute::kGraphs);
        Repeat(in, wire, &a->graphs,
               [&](In sub, Graph* g, int64_t i) { GraphMsg(sub, g, number == 6 ? "g" : "graphs", i); });
        return true;
      case 7:
        Floats(in, wire, &a->floats);
        seen(Attribute::kFloats);
        return true;
      case 8:
        Ints(in, wire, &a->ints);
        seen(Attribute::kInts);
        return true;
      case 9: {
        std::string_view s = Raw(in, wire);
        Append(*in, &a->strings) = s;
        seen(Attribute::kStrings);
        return true;
      }
      case 14:
      case 15:
        seen(number == 14 ? Attribute::kTypeProto : Attribute::kTypeProtos);
        Repeat(in, wire, &a->types,
               [&](In sub, Type* t, int64_t i) { TypeMsg(sub, t, number == 14 ? "tp" : "type_protos", i); });
        return true;
      case 20:
        kind = Int(in, wire);
        return true;
      case 21:
        a->ref_attr_name = Str(in, wire);
        return true;
      case 22:
      case 23:
        seen(number == 22 ? Attribute::kSparseTensor : Attribute::kSparseTensors);
        Repeat(in, wire, &a->sparse_tensors, [&](In sub, SparseTensor* t, int64_t i) {
          SparseMsg(sub, t, number == 22 ? "sparse_tensor" : "sparse_tensors", i);
        });
        return true;
      default:
        return false;
    }
  });
  Frame frame{field, index, &a->name, top_};
  top_ = &frame;
  CheckAttribute(at, kind, filled, mixed, a);
  top_ = frame.parent;
}

void Reader::CheckAttribute(const uint8_t* at, int64_t kind, int32_t filled, bool mixed, Attribute* a) {
  if (a->name.empty()) Fail(at, "the attribute has no name");
  if (kind < 0 || kind > Attribute::kTypeProtos) {
    Fail(at, "the attribute has type " + std::to_string(kind) + ", which ONNX does not define");
  }
  if (kind == Attribute::kUndefined) kind = filled;
  if (a->ref_attr_name.empty()) {
    if (kind == Attribute::kUndefined) Fail(at, "the attribute has neither a type nor a value");
    // An empty list, a zero number or an empty string may be left out of the bytes.
    if (mixed || (filled != Attribute::kUndefined && filled != kind)) {
      Fail(at, std::string("the attribute has type ") + AttributeKindName(static_cast<int32_t>(kind)) +
                   " but holds a value of type " + AttributeKindName(filled));
    }
    size_t single = kind == Attribute::kTensor         ? a->tensors.size()
                    : kind == Attribute::kGraph        ? a->graphs.size()
                    : kind == Attribute::kSparseTensor ? a->sparse_tensors.size()
                    : kind == Attribute::kTypeProto    ? a->types.size()
                                                       : 1;
    if (single != 1) {
      Fail(at, std::string("the attribute has type ") + AttributeKindName(static_cast<int32_t>(kind)) + " and " +
                   std::to_string(single) + " values");
    }
  }
  a->kind = static_cast<Attribute::Kind>(kind);
}

void Reader::NodeMsg(In in, Node* n, const char* field, int64_t index) {
  n->offset = static_cast<size_t>(in.at - base_);
  n->source = {reinterpret_cast<const char*>(in.at), in.left()};
  const uint8_t* at = in.at;
  Message(in, field, index, &n->name, [&](int number, int wire, In* in) {
    switch (number) {
      case 1:
        Strs(in, wire, &n->inputs);
        return true;
      case 2:
        Strs(in, wire, &n->outputs);
        return true;
      case 3:
        n->name = Str(in, wire);
        return true;
      case 4:
        n->op_type = Str(in, wire);
        return true;
      case 5:
        Repeat(in, wire, &n->attributes,
               [&](In sub, Attribute* a, int64_t i) { AttributeMsg(sub, a, "attribute", i); });
        return true;
      case 7:
        n->domain = Str(in, wire);
        if (n->domain == "ai.onnx") n->domain = {};
        return true;
      case 8:
        n->overload = Str(in, wire);
        return true;
      default:
        return false;
    }
  });
  if (n->op_type.empty()) {
    Frame frame{field, index, &n->name, top_};
    top_ = &frame;
    Fail(at, "the node has no operator (`op_type`)");
  }
}

void Reader::GraphMsg(In in, Graph* g, const char* field, int64_t index) {
  Message(in, field, index, &g->name, [&](int number, int wire, In* in) {
    switch (number) {
      case 1:
        Repeat(in, wire, &g->nodes, [&](In sub, Node* n, int64_t i) { NodeMsg(sub, n, "node", i); });
        return true;
      case 2:
        g->name = Str(in, wire);
        return true;
      case 5:
        Repeat(in, wire, &g->initializers, [&](In sub, Tensor* t, int64_t i) { TensorMsg(sub, t, "initializer", i); });
        return true;
      case 11:
        Repeat(in, wire, &g->inputs, [&](In sub, ValueInfo* v, int64_t i) { ValueInfoMsg(sub, v, "input", i); });
        return true;
      case 12:
        Repeat(in, wire, &g->outputs, [&](In sub, ValueInfo* v, int64_t i) { ValueInfoMsg(sub, v, "output", i); });
        return true;
      case 13:
        Repeat(in, wire, &g->value_info,
               [&](In sub, ValueInfo* v, int64_t i) { ValueInfoMsg(sub, v, "value_info", i); });
        return true;
      case 15:
        Repeat(in, wire, &g->sparse_initializers,
               [&](In sub, SparseTensor* t, int64_t i) { SparseMsg(sub, t, "sparse_initializer", i); });
        return true;
      default:
        return false;
    }
  });
}

void Reader::OpsetMsg(In in, OpsetId* o, int64_t index) {
  Message(in, "opset_import", index, &o->domain, [&](int number, int wire, In* in) {
    if (number == 1) {
      o->domain = Str(in, wire);
      if (o->domain == "ai.onnx") o->domain = {};
      return true;
    }
    if (number == 2) return o->version = Int(in, wire), true;
    return false;
  });
}

void Reader::FunctionMsg(In in, FunctionDef* f, int64_t index) {
  Message(in, "functions", index, &f->name, [&](int number, int wire, In* in) {
    switch (number) {
      case 1:
        f->name = Str(in, wire);
        return true;
      case 4:
        Strs(in, wire, &f->inputs);
        return true;
      case 5:
        Strs(in, wire, &f->outputs);
        return true;
      case 6:
        Strs(in, wire, &f->attributes);
        return true;
      case 7:
        Repeat(in, wire, &f->nodes, [&](In sub, Node* n, int64_t i) { NodeMsg(sub, n, "node", i); });
        return true;
      case 9:
        Repeat(in, wire, &f->opset_imports, [&](In sub, OpsetId* o, int64_t i) { OpsetMsg(sub, o, i); });
        return true;
      case 10:
        f->domain = Str(in, wire);
        if (f->domain == "ai.onnx") f->domain = {};
        return true;
      case 11:
        Repeat(in, wire, &f->attribute_defaults,
               [&](In sub, Attribute* a, int64_t i) { AttributeMsg(sub, a, "attribute_proto", i); });
        return true;
      case 13:
        f->overload = Str(in, wire);
        return true;
      default:
        return false;
    }
  });
}

void Reader::ReadModel(Model* m) {
  In in{base_, base_ + size_};
  Frame* outer = top_;
  bool has_graph = false;
  // The fields of the model itself are not shown as `model.graph`: Message would add a frame.
  while (!in.empty()) {
    const uint8_t* at = in.at;
    uint64_t tag = Varint(&in);
    int wire = static_cast<int>(tag & 7);
    uint64_t number = tag >> 3;
    switch (number) {
      case 0:
        Fail(at, "field number 0 is impossible; the file is damaged or no ONNX model");
      case 1:
        m->ir_version = Int(&in, wire);
        break;
      case 2:
        m->producer_name = Str(&in, wire);
        break;
      case 3:
        m->producer_version = Str(&in, wire);
        break;
      case 7:
        Expect(in, wire, kBytes);
        GraphMsg(Sized(&in), &m->graph, "graph", -1);
        has_graph = true;
        break;
      case 8:
        Repeat(&in, wire, &m->opset_imports, [&](In sub, OpsetId* o, int64_t i) { OpsetMsg(sub, o, i); });
        break;
      case 25:
        Repeat(&in, wire, &m->functions, [&](In sub, FunctionDef* f, int64_t i) { FunctionMsg(sub, f, i); });
        break;
      default:
        Skip(&in, wire);
    }
  }
  top_ = outer;
  if (m->ir_version == 0) Fail(base_, "the model has no `ir_version`; it is no ONNX model");
  if (!has_graph) Fail(base_, "the model has no graph; it is no ONNX model or was cut off");
}

template <typename Parse>
void ParseOrExplain(const Bytes& bytes, const std::string& label, Parse&& parse) {
  if (bytes.size() == 0) {
    Throw("`" + Printable(label, 400) + "` is empty (0 bytes); download or export the model again");
  }
  try {
    parse();
  } catch (const CompileError& error) {
    std::string looks = LooksLike(bytes.view());
    if (looks.empty()) throw;
    Throw("`" + Printable(label, 400) + "` is not an ONNX model: it looks like " + looks + " (" + error.what() + ")");
  }
}

/// "unk__7": what converters from TensorFlow call a length of which they know nothing.
bool IsUnknownOfTool(std::string_view name) {
  constexpr std::string_view kHead = "unk__";
  return name.size() > kHead.size() && name.substr(0, kHead.size()) == kHead &&
         name.find_first_not_of("0123456789", kHead.size()) == std::string_view::npos;
}

/// Drops names of lengths that name nothing: placeholders of exporters, each of which stands for a length of its own.
void DropPlaceholders(Graph* graph) {
  std::map<std::string_view, int> uses;
  for (const ValueInfo& v : graph->inputs) {
    for (const Dim& d : v.type.shape) ++uses[d.param];
  }
  for (std::vector<ValueInfo>* values : {&graph->inputs, &graph->outputs}) {
    for (ValueInfo& v : *values) {
      for (Dim& d : v.type.shape) {
        if (d.param == "?" || d.param == "-1" || (IsUnknownOfTool(d.param) && uses[d.param] > 1)) d.param = {};
      }
    }
  }
}

}  // namespace

std::shared_ptr<Model> ReadModel(std::shared_ptr<const Bytes> bytes, const std::string& label) {
  auto model = std::make_shared<Model>();
  model->label = label;
  model->storage = bytes;
  ParseOrExplain(*bytes, label, [&] { Reader(bytes->view(), label).ReadModel(model.get()); });
  DropPlaceholders(&model->graph);
  return model;
}

std::shared_ptr<Model> ReadTensorFile(std::shared_ptr<const Bytes> bytes, const std::string& label) {
  auto model = std::make_shared<Model>();
  model->label = label;
  model->storage = bytes;
  Tensor& t = model->graph.initializers.emplace_back();
  ParseOrExplain(*bytes, label, [&] { Reader(bytes->view(), label).ReadTensorMessage(&t); });
  return model;
}

std::shared_ptr<Model> ReadNode(std::shared_ptr<const Bytes> bytes, const std::string& label) {
  auto model = std::make_shared<Model>();
  model->label = label;
  model->storage = bytes;
  Reader(bytes->view(), label).ReadNodeMessage(&model->graph.nodes.emplace_back());
  return model;
}

std::shared_ptr<Model> LoadModel(const std::string& path) {
  std::shared_ptr<Model> model = ReadModel(Bytes::FromFile(path), path);
  size_t slash = path.rfind('/');
  std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  model->external = std::make_shared<ExternalData>(folder);
  CheckModel(model.get());
  return model;
}

std::shared_ptr<Model> ParseModel(std::string_view text, const std::string& folder) {
  std::shared_ptr<Model> model = ReadModel(Bytes::Copy(text), "<model>");
  if (!folder.empty()) model->external = std::make_shared<ExternalData>(folder);
  CheckModel(model.get());
  return model;
}

}  // namespace baton::onnx

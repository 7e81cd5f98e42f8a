// SPDX-License-Identifier: Apache-2.0
#include "reader.h"

#include <cstring>
#include <utility>

#include "check.h"

namespace baton::onnx {
namespace {

enum Wire : int { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

/// A run of bytes still to be read; always within the input.
struct In {
  const uint8_t* at;
  const uint8_t* end;
  size_t left() const { return static_cast<size_t>(end - at); }
  bool empty() const { return at == end; }
};

bool ValidUtf8(std::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    auto byte = [&](size_t k) { return static_cast<unsigned char>(text[k]); };
    unsigned char c = byte(i);
    if (c < 0x80) {
      ++i;
      continue;
    }
    size_t n = c >= 0xf0 && c <= 0xf4 ? 3 : c >= 0xe0 ? 2 : c >= 0xc2 ? 1 : 0;
    if (n == 0 || c > 0xf4 || text.size() - i <= n) return false;
    uint32_t code = c & (0x3f >> n);
    for (size_t k = 1; k <= n; ++k) {
      if ((byte(i + k) & 0xc0) != 0x80) return false;
      code = code << 6 | (byte(i + k) & 0x3f);
    }
    static constexpr uint32_t kLeast[] = {0, 0x80, 0x800, 0x10000};
    if (code < kLeast[n] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return false;
    i += n + 1;
  }
  return true;
}

class Reader {
 public:
  Reader(std::string_view text, std::string label)
      : base_(reinterpret_cast<const uint8_t*>(text.data())),
        size_(text.size()),
        label_(std::move(label)),
        budget_(64 * static_cast<uint64_t>(text.size()) + (uint64_t{64} << 20)) {}

  void ReadModel(Model* m);
  void ReadTensorMessage(Tensor* t) { TensorMsg({base_, base_ + size_}, t, "tensor", -1); }
  void ReadNodeMessage(Node* n) { NodeMsg({base_, base_ + size_}, n, "node", -1); }

 private:
  struct Frame {
    const char* field;
    int64_t index;
    const std::string_view* name;
    Frame* parent;
  };

  [[noreturn]] void Fail(const uint8_t* at, const std::string& what) const {
    std::string path;
    for (const Frame* f = top_; f != nullptr; f = f->parent) {
      std::string part = f->field;
      if (f->index >= 0) part += "[" + std::to_string(f->index) + "]";
      if (f->name != nullptr && !f->name->empty()) part += " (" + Printable(*f->name, 60) + ")";
      path = path.empty() ? part : part + "." + path;
    }
    Refuse("`" + Printable(label_, 400) + "`: byte " + std::to_string(at - base_) +
           (path.empty() ? "" : ", in " + path) + ": " + what);
  }

  void Charge(const uint8_t* at, uint64_t bytes) {
    if (bytes > budget_) Fail(at, "the model asks for more memory than 64 times its size; it is damaged or hostile");
    budget_ -= bytes;
  }

  uint64_t Varint(In* in) {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (in->empty()) Fail(in->at, "the data ends within a number; the file is truncated");
      uint8_t byte = *in->at++;
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    Fail(in->at, "a number is longer than ten bytes; the file is damaged");
  }

  In Sized(In* in) {
    const uint8_t* at = in->at;
    uint64_t n = Varint(in);
    if (n > in->left()) {
      Fail(at, "a field of " + std::to_string(n) + " bytes begins where " + std::to_string(in->left()) +
                   " remain; the file is truncated or damaged");
    }
    In sub{in->at, in->at + n};
    in->at += n;
    return sub;
  }

  template <typename T>
  T Fixed(In* in) {
    if (in->left() < sizeof(T)) Fail(in->at, "the data ends within a number; the file is truncated");
    T value;
    std::memcpy(&value, in->at, sizeof(T));
    in->at += sizeof(T);
    return value;
  }

  void Expect(const In& in, int wire, Wire expected) const {
    if (wire != expected) {
      Fail(in.at, "a field has wire type " + std::to_string(wire) + " where the schema has " +
                      std::to_string(expected) + "; the file is damaged or no ONNX model");
    }
  }

  std::string_view Raw(In* in, int wire) {
    Expect(*in, wire, kBytes);
    In sub = Sized(in);
    return {reinterpret_cast<const char*>(sub.at), sub.left()};
  }
  std::string_view Str(In* in, int wire) {
    const uint8_t* at = in->at;
    std::string_view s = Raw(in, wire);
    if (!ValidUtf8(s)) Fail(at, "the name `" + Printable(s, 60) + "` is not UTF-8");
    return s;
  }
  int64_t Int(In* in, int wire) {
    Expect(*in, wire, kVarint);
    return static_cast<int64_t>(Varint(in));
  }
  int32_t Int32(In* in, int wire) { return static_cast<int32_t>(Int(in, wire)); }

  template <typename T>
  T& Append(const In& in, std::vector<T>* to) {
    Charge(in.at, 2 * sizeof(T));
    return to->emplace_back();
  }

  void Strs(In* in, int wire, std::vector<std::string_view>* to) {
    std::string_view s = Str(in, wire);
    Append(*in, to) = s;
  }
  void Ints(In* in, int wire, std::vector<int64_t>* to) {
    if (wire == kVarint) {
      Append(*in, to) = Int(in, wire);
      return;
    }
    Expect(*in, wire, kBytes);
    In sub = Sized(in);
    while (!sub.empty()) {
      Append(sub, to);
      to->back() = static_cast<int64_t>(Varint(&sub));
    }
  }
  void Floats(In* in, int wire, std::vector<float>* to) {
    if (wire == kFixed32) {
      Append(*in, to) = Fixed<float>(in);
      return;
    }
    Expect(*in, wire, kBytes);
    In sub = Sized(in);
    if (sub.left() % 4 != 0) Fail(sub.at, "packed floats do not fill whole numbers; the file is damaged");
    while (!sub.empty()) Append(sub, to) = Fixed<float>(&sub);
  }

  void Skip(In* in, int wire) {
    switch (wire) {
      case kVarint:
        Varint(in);
        return;
      case kFixed64:
        Fixed<uint64_t>(in);
        return;
      case kBytes:
        Sized(in);
        return;
      case kFixed32:
        Fixed<uint32_t>(in);
        return;
      default:
        Fail(in->at, "wire type " + std::to_string(wire) + " occurs in no ONNX model; the file is damaged or foreign");
    }
  }

  /// Reads the fields of one message: `on_field(number, wire, in)` consumes a field and returns true, or returns false
  /// to have it skipped (protobuf's rule for fields unknown).
  template <typename OnField>
  void Message(In in, const char* field, int64_t index, const std::string_view* name, OnField&& on_field) {
    Frame frame{field, index, name, top_};
    if (++depth_ > kMaxNesting) {
      top_ = &frame;
      Fail(in.at, "messages nest deeper than " + std::to_string(kMaxNesting) + "; the file is damaged or hostile");
    }
    top_ = &frame;
    while (!in.empty()) {
      const uint8_t* at = in.at;
      uint64_t tag = Varint(&in);
      int wire = static_cast<int>(tag & 7);
      uint64_t number = tag >> 3;
      if (number == 0 || number > 0x1fffffff) {
        Fail(at, "field number " + std::to_string(number) + " is impossible; the file is damaged or no ONNX model");
      }
      if (!on_field(static_cast<int>(number), wire, &in)) Skip(&in, wire);
    }
    top_ = frame.parent;
    --depth_;
  }

  template <typename T, typename Read>
  void Repeat(In* in, int wire, std::vector<T>* to, Read&& read) {
    Expect(*in, wire, kBytes);
    In sub = Sized(in);
    Append(*in, to);
    read(sub, &to->back(), static_cast<int64_t>(to->size()) - 1);
  }

  void TensorMsg(In in, Tensor* t, const char* field, int64_t index);
  void ExternalEntry(In in, Tensor* t);
  void SparseMsg(In in, SparseTensor* t, const char* field, int64_t index);
  void TypeMsg(In in, Type* t, const char* field, int64_t index);
  void ShapeMsg(In in, Type* t);
  void ValueInfoMsg(In in, ValueInfo* v, const char* field, int64_t index);
  void AttributeMsg(In in, Attribute* a, const char* field, int64_t index);
  void NodeMsg(In in, Node* n, const char* field, int64_t index);
  void GraphMsg(In in, Graph* g, const char* field, int64_t index);
  void OpsetMsg(In in, OpsetId* o, int64_t index);
  void FunctionMsg(In in, FunctionDef* f, int64_t index);

  const uint8_t* base_;
  size_t size_;
  std::string label_;
  uint64_t budget_;
  Frame* top_ = nullptr;
  int depth_ = 0;
};

int64_t ParseDecimal(std::string_view text) {
  if (text.empty() || text.size() > 18) return -1;
  int64_t value = 0;
  for (char c : text) {
    if (c < '0' || c > '9') return -1;
    value = value * 10 + (c - '0');
  }
  return value;
}

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
  top_ = frame.parent;
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

/// What bytes that are no ONNX model look like, or "".
std::string LooksLike(std::string_view text) {
  static constexpr struct {
    size_t at;
    std::string_view magic;
    const char* what;
  } kMagic[] = {
      {0, "PK\x03\x04", "a zip archive (a PyTorch checkpoint, .npz or downloaded archive); unpack or export it first"},
      {0,
       "\x7f"
       "ELF",
       "a compiled program or library (ELF); run a compiled model with `baton run model.so`"},
      {0, "\x1f\x8b", "gzip-compressed data; unpack it first"},
      {0, "\x28\xb5\x2f\xfd", "zstd-compressed data; unpack it first"},
      {0, "BZh", "bzip2-compressed data; unpack it first"},
      {0,
       "\xfd"
       "7zXZ",
       "xz-compressed data; unpack it first"},
      {0, "\x89PNG", "a PNG image"},
      {0, "\xff\xd8\xff", "a JPEG image"},
      {0, "%PDF", "a PDF document"},
      {0, "\x93NUMPY", "a NumPy array (.npy)"},
      {0, "\x89HDF", "an HDF5 file (Keras weights); export the model to ONNX first"},
      {0, "version https://git-lfs", "a Git LFS pointer, not the file itself; fetch it with `git lfs pull`"},
      {0, "MZ", "a Windows program"},
      {0, "\xca\xfe\xba\xbe", "a Java class or macOS program"},
      {0, "GGUF", "a GGUF model; export the model to ONNX first"},
      {0, "\x80\x02", "a Python pickle (a PyTorch checkpoint); export the model to ONNX first"},
      {0, "\x80\x04", "a Python pickle; export the model to ONNX first"},
      {4, "TFL3", "a TensorFlow Lite model; export the model to ONNX first"},
      {4, "ORTM", "an ONNX Runtime (.ort) model; use the .onnx file it was made from"},
      {8, "{\"", "a safetensors file: weights without a graph; export the model to ONNX first"},
      {257, "ustar", "a tar archive; unpack it first"},
  };
  for (const auto& m : kMagic) {
    if (text.size() >= m.at + m.magic.size() && text.substr(m.at, m.magic.size()) == m.magic) return m.what;
  }
  std::string_view head = text.substr(0, 512);
  size_t plain = 0, zero = 0;
  for (char c : head) {
    unsigned char b = static_cast<unsigned char>(c);
    plain += (b >= 0x20 && b < 0x7f) || b == '\n' || b == '\r' || b == '\t';
    zero += b == 0;
  }
  if (zero == head.size()) return "a file of zeros (an interrupted download or copy?)";
  if (plain + head.size() / 50 < head.size()) return "";
  size_t first = head.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && head[first] == '<') return "an HTML or XML page (a failed download?)";
  if (first != std::string_view::npos && head[first] == '{') return "JSON text";
  if (head.find("#[version") != std::string_view::npos || head.find("def @") != std::string_view::npos) {
    return "Relay text; use it with `baton opt` or give it the suffix .relay";
  }
  if (head.find("ir_version:") != std::string_view::npos) {
    return "ONNX in protobuf's text form; convert it to the binary form with the `onnx` package";
  }
  return "text";
}

template <typename Parse>
void ParseOrExplain(const Bytes& bytes, const std::string& label, Parse&& parse) {
  if (bytes.size() == 0) {
    Refuse("`" + Printable(label, 400) + "` is empty (0 bytes); download or export the model again");
  }
  try {
    parse();
  } catch (const CompileError& error) {
    std::string looks = LooksLike(bytes.view());
    if (looks.empty()) throw;
    Refuse("`" + Printable(label, 400) + "` is not an ONNX model: it looks like " + looks + " (" + error.what() + ")");
  }
}

uint64_t ReadVarintUnchecked(const uint8_t** at) {
  uint64_t value = 0;
  int shift = 0;
  uint8_t byte;
  do {
    byte = *(*at)++;
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    shift += 7;
  } while (byte >= 0x80);
  return value;
}

/// Every value of a varint field. A chunk was checked only for its length, so each value is checked here.
template <typename Each>
void ForEachVarint(const Tensor& t, Each&& each) {
  for (std::string_view chunk : t.chunks) {
    const auto* at = reinterpret_cast<const uint8_t*>(chunk.data());
    const uint8_t* end = at + chunk.size();
    while (at != end) {
      const uint8_t* last = at;
      while (last != end && *last >= 0x80 && last - at < 9) ++last;
      if (last == end || *last >= 0x80) {
        Refuse("tensor `" + Printable(t.name) + "`: a number in its data is damaged");
      }
      each(ReadVarintUnchecked(&at));
    }
  }
}

size_t CountVarints(const Tensor& t) {
  size_t n = 0;
  for (std::string_view chunk : t.chunks) {
    for (char c : chunk) n += static_cast<unsigned char>(c) < 0x80;
  }
  return n;
}

std::string Describe(const Tensor& t) {
  std::string text = "tensor `" + Printable(t.name) + "` of type ";
  const char* name = DataTypeName(t.data_type);
  text += *name != '\0' ? name : std::to_string(t.data_type).c_str();
  text += " and shape (";
  for (size_t i = 0; i < t.dims.size() && i < 16; ++i) text += (i == 0 ? "" : ", ") + std::to_string(t.dims[i]);
  return text + ")";
}

/// Splits packed elements of `bits` < 8 into a byte each.
void Unpack(std::string_view packed, int bits, bool is_signed, size_t n, std::string* out) {
  out->resize(n);
  uint32_t hold = 0;
  int have = 0;
  size_t at = 0;
  for (size_t i = 0; i < n; ++i) {
    if (have < bits) {
      hold |= static_cast<uint32_t>(static_cast<uint8_t>(packed[at++])) << have;
      have += 8;
    }
    uint32_t value = hold & ((1u << bits) - 1);
    hold >>= bits;
    have -= bits;
    if (is_signed && (value >> (bits - 1)) != 0) value |= ~((1u << bits) - 1);
    (*out)[i] = static_cast<char>(value);
  }
}

template <typename T>
void Put(std::string* out, size_t* at, uint64_t value) {
  T narrow = static_cast<T>(value);
  std::memcpy(out->data() + *at, &narrow, sizeof(T));
  *at += sizeof(T);
}

int DataField(int32_t type) {
  switch (type) {
    case kFloat:
    case kComplex64:
      return 4;
    case kString:
      return 6;
    case kInt64:
      return 7;
    case kDouble:
    case kComplex128:
      return 10;
    case kUInt32:
    case kUInt64:
      return 11;
    default:
      return 5;
  }
}

}  // namespace

std::shared_ptr<Model> ReadModel(std::shared_ptr<const Bytes> bytes, const std::string& label) {
  auto model = std::make_shared<Model>();
  model->label = label;
  model->storage = bytes;
  ParseOrExplain(*bytes, label, [&] { Reader(bytes->view(), label).ReadModel(model.get()); });
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

int64_t NumElements(const Tensor& t) {
  // 2^56 elements of 16 bytes are below 2^62 bytes, so sizes in bytes cannot overflow either.
  constexpr int64_t kMost = int64_t{1} << 56;
  int64_t n = 1;
  bool zero = false;
  for (int64_t dim : t.dims) {
    if (dim < 0) Refuse(Describe(t) + ": a negative length is impossible");
    if (dim == 0) {
      zero = true;
    } else if (n > kMost / dim) {
      Refuse(Describe(t) + " has more elements than any memory");
    } else {
      n *= dim;
    }
  }
  return zero ? 0 : n;
}

std::string_view TensorBytes(const Model& model, const Tensor& t, std::string* scratch,
                             std::shared_ptr<const Bytes>* keep) {
  int bits = DataTypeBits(t.data_type);
  if (bits == 0) {
    Refuse(Describe(t) + (t.data_type == kString ? " has no numbers" : " has a type that ONNX does not define"));
  }
  size_t n = static_cast<size_t>(NumElements(t));
  size_t packed = bits < 8 ? n / 8 * static_cast<size_t>(bits) + (n % 8 * static_cast<size_t>(bits) + 7) / 8
                           : n * static_cast<size_t>(bits / 8);
  bool is_signed = t.data_type == kInt4 || t.data_type == kInt2;
  auto wrong = [&](size_t have, const char* unit) {
    Refuse("`" + Printable(model.label, 400) + "`: byte " + std::to_string(t.offset) + ": " + Describe(t) + " needs " +
           std::to_string(packed) + " bytes of data but has " + std::to_string(have) + " " + unit +
           "; the model is damaged");
  };
  std::string_view raw;
  if (t.external) {
    if (model.external == nullptr) {
      Refuse(Describe(t) + " lies in the file `" + Printable(t.location) +
             "`, but a model given as bytes has no folder; give the path of the model file instead");
    }
    std::shared_ptr<const Bytes> file;
    raw = model.external->Read(t.location, t.external_offset, t.external_length, &file);
    if (raw.size() < packed || (t.external_length >= 0 && raw.size() != packed)) {
      wrong(raw.size(), ("bytes in `" + Printable(t.location) + "`").c_str());
    }
    raw = raw.substr(0, packed);
    *keep = std::move(file);
  } else if (t.field == 9 || (t.field == 0 && n == 0)) {
    if (!t.chunks.empty()) raw = t.chunks[0];
    *keep = model.storage;
    if (raw.size() != packed) wrong(raw.size(), "bytes");
  } else if (t.field == 0) {
    wrong(0, "bytes");
  } else if (t.field != DataField(t.data_type)) {
    Refuse("`" + Printable(model.label, 400) + "`: byte " + std::to_string(t.offset) + ": " + Describe(t) +
           " has its data in field " + std::to_string(t.field) + ", which is for other types");
  } else if (t.field == 4 || t.field == 10) {
    size_t total = 0;
    for (std::string_view chunk : t.chunks) total += chunk.size();
    if (total != packed) wrong(total, "bytes");
    if (t.chunks.size() == 1) {
      *keep = model.storage;
      return t.chunks[0];
    }
    scratch->clear();
    scratch->reserve(total);
    for (std::string_view chunk : t.chunks) scratch->append(chunk);
    return *scratch;
  } else {
    size_t have = CountVarints(t);
    bool six = t.data_type == kFloat6E2M3 || t.data_type == kFloat6E3M2;
    size_t want = bits < 8 && !six ? packed : n;
    if (have != want) wrong(have, "numbers");
    int width = bits < 8 ? 1 : bits / 8;
    std::string numbers(want * static_cast<size_t>(width), '\0');
    size_t at = 0;
    ForEachVarint(t, [&](uint64_t v) {
      if (width == 1) Put<uint8_t>(&numbers, &at, six ? v & 0x3f : v);
      if (width == 2) Put<uint16_t>(&numbers, &at, v);
      if (width == 4) Put<uint32_t>(&numbers, &at, v);
      if (width == 8) Put<uint64_t>(&numbers, &at, v);
    });
    if (bits < 8 && !six) {
      Unpack(numbers, bits, is_signed, n, scratch);
    } else {
      *scratch = std::move(numbers);
    }
    if (t.data_type == kBool) {
      for (char c : *scratch) {
        if (static_cast<unsigned char>(c) > 1) Refuse(Describe(t) + " holds a byte other than 0 and 1");
      }
    }
    return *scratch;
  }
  if (t.data_type == kBool) {
    for (char c : raw) {
      if (static_cast<unsigned char>(c) > 1) Refuse(Describe(t) + " holds a byte other than 0 and 1");
    }
  }
  if (bits >= 8) return raw;
  Unpack(raw, bits, is_signed, n, scratch);
  return *scratch;
}

std::vector<std::string_view> TensorStrings(const Tensor& t) {
  if (t.data_type != kString) Refuse(Describe(t) + " does not hold strings");
  if (t.external || (t.field != 6 && t.field != 0)) Refuse(Describe(t) + " has its strings outside `string_data`");
  if (static_cast<uint64_t>(NumElements(t)) != t.chunks.size()) {
    Refuse(Describe(t) + " has " + std::to_string(t.chunks.size()) + " strings; the model is damaged");
  }
  return t.chunks;
}

std::vector<int64_t> TensorInts(const Model& model, const Tensor& t) {
  if (t.data_type != kInt64 && t.data_type != kInt32) Refuse(Describe(t) + " should be INT64 or INT32");
  std::string scratch;
  std::shared_ptr<const Bytes> keep;
  std::string_view bytes = TensorBytes(model, t, &scratch, &keep);
  size_t width = t.data_type == kInt64 ? 8 : 4;
  std::vector<int64_t> out(bytes.size() / width);
  for (size_t i = 0; i < out.size(); ++i) {
    if (width == 8) {
      std::memcpy(&out[i], bytes.data() + i * 8, 8);
    } else {
      int32_t v;
      std::memcpy(&v, bytes.data() + i * 4, 4);
      out[i] = v;
    }
  }
  return out;
}

const char* DataTypeName(int32_t type) {
  static constexpr const char* kNames[] = {"UNDEFINED",      "FLOAT",    "UINT8",        "INT8",           "UINT16",
                                           "INT16",          "INT32",    "INT64",        "STRING",         "BOOL",
                                           "FLOAT16",        "DOUBLE",   "UINT32",       "UINT64",         "COMPLEX64",
                                           "COMPLEX128",     "BFLOAT16", "FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2",
                                           "FLOAT8E5M2FNUZ", "UINT4",    "INT4",         "FLOAT4E2M1",     "FLOAT8E8M0",
                                           "UINT2",          "INT2",     "FLOAT6E2M3",   "FLOAT6E3M2"};
  return type >= 0 && type <= 28 ? kNames[type] : "";
}

int DataTypeBits(int32_t type) {
  static constexpr int kBits[] = {0,   32, 8, 8, 16, 16, 32, 64, 0, 8, 16, 64, 32, 64, 64,
                                  128, 16, 8, 8, 8,  8,  4,  4,  4, 8, 2,  2,  6,  6};
  return type >= 0 && type <= 28 ? kBits[type] : 0;
}

const char* AttributeKindName(int32_t kind) {
  static constexpr const char* kNames[] = {
      "UNDEFINED", "FLOAT",   "INT",    "STRING",        "TENSOR",         "GRAPH",      "FLOATS",     "INTS",
      "STRINGS",   "TENSORS", "GRAPHS", "SPARSE_TENSOR", "SPARSE_TENSORS", "TYPE_PROTO", "TYPE_PROTOS"};
  return kind >= 0 && kind <= 14 ? kNames[kind] : "";
}

}  // namespace baton::onnx

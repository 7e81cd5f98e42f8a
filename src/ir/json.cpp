// SPDX-License-Identifier: Apache-2.0
// JSON of any object graph, over field tables.
//
//   {"format": "baton", "version": 1, "nodes": [
//     {"type": "relay.Id", "name_hint": "x"},
//     {"type": "relay.Var", "vid": [0]},
//     {"type": "runtime.NDArray", "dtype": "float32", "shape": [2], "data": "AACAPwAAAEA="}], "root": [1]}
//
// A node names only nodes before it, by number in brackets, so the file is read in one pass, and can say no cycle.
#include <baton/ir/attrs.h>
#include <baton/ir/op.h>
#include <baton/ir/structural.h>
#include <baton/ir/type.h>
#include <baton/runtime/ndarray.h>
#include <baton/runtime/registry.h>
#include <baton/support/bytes.h>
#include <baton/support/json.h>
#include <ir/pointer_map.h>

#include <cstring>
#include <stdexcept>

namespace baton {
namespace {

using runtime::ArrayObj;
using runtime::FieldInfo;
using runtime::FieldKind;
using runtime::MapObj;
using runtime::NDArrayObj;
using runtime::ObjectAccess;
using runtime::StringObj;
using runtime::TypeIndex;
using runtime::TypeInfo;
using support::JsonReader;
using support::JsonWriter;

constexpr int64_t kVersion = 1;
constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::string Base64(const void* data, size_t n) {
  const auto* p = static_cast<const uint8_t*>(data);
  std::string out((n + 2) / 3 * 4, '=');
  size_t o = 0;
  for (size_t i = 0; i < n; i += 3) {
    uint32_t v = p[i] << 16 | (i + 1 < n ? p[i + 1] << 8 : 0) | (i + 2 < n ? p[i + 2] : 0);
    out[o] = kDigits[v >> 18];
    out[o + 1] = kDigits[v >> 12 & 63];
    if (i + 1 < n) out[o + 2] = kDigits[v >> 6 & 63];
    if (i + 2 < n) out[o + 3] = kDigits[v & 63];
    o += 4;
  }
  return out;
}

bool Unbase64(std::string_view s, std::string* out) {
  static const auto* table = [] {
    auto* t = new int8_t[256];
    std::memset(t, -1, 256);
    for (int i = 0; i < 64; ++i) t[static_cast<uint8_t>(kDigits[i])] = static_cast<int8_t>(i);
    return t;
  }();
  if (s.size() % 4) return false;
  out->clear();
  out->reserve(s.size() / 4 * 3);
  for (size_t i = 0; i < s.size(); i += 4) {
    int pad = i + 4 == s.size() ? (s[i + 3] == '=') + (s[i + 3] == '=' && s[i + 2] == '=') : 0;
    uint32_t v = 0;
    for (int j = 0; j < 4; ++j) {
      int d = j >= 4 - pad ? 0 : table[static_cast<uint8_t>(s[i + j])];
      if (d < 0) return false;
      v = v << 6 | static_cast<uint32_t>(d);
    }
    out->push_back(static_cast<char>(v >> 16));
    if (pad < 2) out->push_back(static_cast<char>(v >> 8 & 255));
    if (pad < 1) out->push_back(static_cast<char>(v & 255));
  }
  return true;
}

bool IsUtf8(std::string_view s) {
  while (!s.empty()) {
    size_t n = support::Utf8Sequence(s);
    if (n == 0) return false;
    s.remove_prefix(n);
  }
  return true;
}

class Saver {
 public:
  std::string Save(const ObjectRef& root) {
    w_.BeginObject();
    w_.Key("format"), w_.String("baton");
    w_.Key("version"), w_.Int(kVersion);
    w_.Key("nodes");
    w_.BeginArray();
    if (root.defined() && !IsString(root.get())) Nodes(root.get());
    w_.EndArray();
    w_.Key("root");
    Value(Any(root));
    w_.EndObject();
    out_ += '\n';
    return std::move(out_);
  }

 private:
  static bool IsString(const Object* o) { return o->type_index() == TypeIndex::kRuntimeString; }

  template <class F>
  static void ForEachPart(const Object* o, F f) {
    switch (o->type_index()) {
      case TypeIndex::kRuntimeArray:
        for (const Any& a : static_cast<const ArrayObj*>(o)->items) f(a.object());
        return;
      case TypeIndex::kRuntimeMap:
        for (const auto& e : static_cast<const MapObj*>(o)->entries) f(e.key.object()), f(e.value.object());
        return;
      case TypeIndex::kRuntimeNDArray:
        return;
      default:
        break;
    }
    if (o->IsInstance<OpNode>()) return;
    if (const TypeInfo* info = TypeInfo::Get(o->type_index())) {
      for (const FieldInfo& field : info->fields) {
        if (field.kind == FieldKind::kObject) f(field.Ref(o).get());
      }
    }
  }

  void Nodes(const Object* root) {
    std::vector<const Object*> stack{root}, parts;
    while (!stack.empty()) {
      const Object* o = stack.back();
      bool fresh = false;
      int64_t& number = numbers_.Insert(o, &fresh);
      if (!fresh) {
        stack.pop_back();
        if (number < 0) {
          number = count_++;
          Node(o);
        }
        continue;
      }
      number = -1;
      parts.clear();
      ForEachPart(o, [&](const Object* p) {
        if (p && !IsString(p)) parts.push_back(p);
      });
      for (size_t i = parts.size(); i-- > 0;) {
        if (!numbers_.Has(parts[i])) stack.push_back(parts[i]);
      }
    }
  }

  void Str(std::string_view s) {
    if (IsUtf8(s)) {
      w_.String(s);
    } else {
      w_.BeginObject(), w_.Key("bytes"), w_.String(Base64(s.data(), s.size())), w_.EndObject();
    }
  }

  void Value(const Any& v) {
    switch (v.type_code()) {
      case kBatonNull:
        w_.Null();
        return;
      case kBatonInt:
        w_.Int(v.raw().v_int64);
        return;
      case kBatonBool:
        w_.Bool(v.raw().v_int64 != 0);
        return;
      case kBatonFloat:
        w_.Double(v.raw().v_float64);
        return;
      case kBatonDType:
        w_.BeginObject(), w_.Key("dtype"), w_.String(runtime::DataType2String(v.raw().v_dtype)), w_.EndObject();
        return;
      case kBatonDevice:
        w_.BeginObject(), w_.Key("device"), w_.BeginArray();
        w_.Int(v.raw().v_device.device_type), w_.Int(v.raw().v_device.device_id), w_.EndArray(), w_.EndObject();
        return;
      case kBatonObject:
        if (IsString(v.object())) {
          const auto* s = static_cast<const StringObj*>(v.object());
          Str({s->data, s->size});
        } else {
          w_.BeginArray(), w_.Int(*numbers_.Find(v.object())), w_.EndArray();
        }
        return;
      default:
        throw runtime::ValueError("a value of kind `" + runtime::ValueKindName(v.raw()) + "` cannot be saved as JSON");
    }
  }

  void Node(const Object* o) {
    out_ += '\n';  // white space, so that a line is a node
    w_.BeginObject();
    w_.Key("type"), w_.String(o->GetTypeKey());
    switch (o->type_index()) {
      case TypeIndex::kRuntimeArray:
        w_.Key("data"), w_.BeginArray();
        for (const Any& a : static_cast<const ArrayObj*>(o)->items) Value(a);
        w_.EndArray();
        break;
      case TypeIndex::kRuntimeMap:
        w_.Key("data"), w_.BeginArray();
        for (const auto& e : static_cast<const MapObj*>(o)->entries) Value(e.key), Value(e.value);
        w_.EndArray();
        break;
      case TypeIndex::kRuntimeNDArray: {
        NDArray a = GetRef<NDArray>(static_cast<const NDArrayObj*>(o)).Contiguous();
        w_.Key("dtype"), w_.String(runtime::DataType2String(a.dtype()));
        w_.Key("shape"), w_.BeginArray();
        for (int i = 0; i < a->ndim; ++i) w_.Int(a->shape[i]);
        w_.EndArray();
        w_.Key("data"), w_.String(Base64(a.data(), a.nbytes()));
        break;
      }
      default:
        Fields(o);
    }
    w_.EndObject();
  }

  void Fields(const Object* o) {
    if (o->IsInstance<OpNode>()) {
      w_.Key("name"), w_.String(static_cast<const OpNode*>(o)->name.view());
      return;
    }
    const TypeInfo* info = TypeInfo::Get(o->type_index());
    if (!info || !info->create) {
      throw runtime::ValueError("an object of type `" + o->GetTypeKey() +
                                "` cannot be saved as JSON: its fields are not described");
    }
    for (const FieldInfo& f : info->fields) {
      const char* p = reinterpret_cast<const char*>(o) + f.offset;
      if (f.kind == FieldKind::kObject && !f.Ref(o).defined()) continue;
      w_.Key(f.name);
      switch (f.kind) {
        case FieldKind::kDataType:
          w_.String(runtime::DataType2String(*reinterpret_cast<const DataType*>(p)));
          break;
        // Kept exact beyond the integers of JSON readers.
        case FieldKind::kUInt64:
          w_.Int(static_cast<int64_t>(*reinterpret_cast<const uint64_t*>(p)));
          break;
        case FieldKind::kStdString:
          Str(*reinterpret_cast<const std::string*>(p));
          break;
        default:
          Value(f.Get(o));
      }
    }
  }

  std::string out_;
  JsonWriter w_{&out_, 0, true};
  PointerMap<int64_t> numbers_;
  int64_t count_ = 0;
};

/// Whether null is one of the values that the field's description allows.
bool MayBeNull(const FieldInfo& f) {
  return (f.flags & runtime::kIgnored) || f.default_value.object() != nullptr || std::strstr(f.doc, "null");
}

class Loader {
 public:
  explicit Loader(std::string_view text) : r_(text, "JSON", {.depth = 16, .allow_nonfinite = true}) {}

  ObjectRef Load() {
    Expect(r_.Next(), JsonReader::kBeginObject, "an object");
    ExpectKey("format");
    if (r_.Next() != JsonReader::kString || r_.text() != "baton")
      r_.Fail("not a Baton file: `format` must be \"baton\"");
    ExpectKey("version");
    if (r_.Next() != JsonReader::kInt || r_.int_value() < 1) r_.Fail("`version` must be a number from 1");
    if (r_.int_value() > kVersion) {
      r_.Fail("format version " + std::to_string(r_.int_value()) + " is newer than this Baton, which reads up to " +
              std::to_string(kVersion));
    }
    ExpectKey("nodes");
    Expect(r_.Next(), JsonReader::kBeginArray, "an array of nodes");
    for (auto e = r_.Next(); e != JsonReader::kEndArray; e = r_.Next()) {
      Expect(e, JsonReader::kBeginObject, "a node");
      nodes_.push_back(Node());
    }
    ExpectKey("root");
    Any root = Value(r_.Next());
    if (!root.is_null() && !root.object()) r_.Fail("`root` must be a node");
    Expect(r_.Next(), JsonReader::kEndObject, "the end of the object");
    Expect(r_.Next(), JsonReader::kEnd, "the end of the text");
    return root.As<ObjectRef>();
  }

 private:
  void Expect(JsonReader::Event got, JsonReader::Event want, const char* what) {
    if (got != want) r_.Fail(std::string("expected ") + what);
  }
  void ExpectKey(const char* key) {
    if (r_.Next() != JsonReader::kKey || r_.text() != key) r_.Fail(std::string("expected the member \"") + key + "\"");
  }

  Any Value(JsonReader::Event e) {
    switch (e) {
      case JsonReader::kNull:
        return Any();
      case JsonReader::kInt:
        return Any(r_.int_value());
      case JsonReader::kDouble:
        return Any(r_.double_value());
      case JsonReader::kBool:
        return Any(r_.bool_value());
      case JsonReader::kString:
        return Any(String(r_.text()));
      case JsonReader::kBeginArray: {
        if (r_.Next() != JsonReader::kInt) r_.Fail("expected the number of a node");
        const int64_t i = r_.int_value();
        if (i < 0 || i >= static_cast<int64_t>(nodes_.size())) {
          r_.Fail("node " + std::to_string(i) + " is not among the " + std::to_string(nodes_.size()) + " nodes before");
        }
        Expect(r_.Next(), JsonReader::kEndArray, "`]`");
        return Any(nodes_[i]);
      }
      case JsonReader::kBeginObject: {
        if (r_.Next() != JsonReader::kKey) r_.Fail("expected \"dtype\", \"device\" or \"bytes\"");
        const std::string key(r_.text());
        Any out;
        if (key == "dtype") {
          Expect(r_.Next(), JsonReader::kString, "the name of a dtype");
          out = Any(DType());
        } else if (key == "bytes") {
          Expect(r_.Next(), JsonReader::kString, "text");
          out = Any(String(Bytes()));
        } else if (key == "device") {
          Expect(r_.Next(), JsonReader::kBeginArray, "`[`");
          Expect(r_.Next(), JsonReader::kInt, "a number");
          int64_t type = r_.int_value();
          Expect(r_.Next(), JsonReader::kInt, "a number");
          out = Any(DLDevice{static_cast<DLDeviceType>(type), static_cast<int32_t>(r_.int_value())});
          Expect(r_.Next(), JsonReader::kEndArray, "`]`");
        } else {
          r_.Fail("expected \"dtype\", \"device\" or \"bytes\"");
        }
        Expect(r_.Next(), JsonReader::kEndObject, "`}`");
        return out;
      }
      default:
        r_.Fail("expected a value");
    }
  }

  DataType DType() {
    DataType t;
    if (!runtime::TryString2DataType(r_.text(), &t)) r_.Fail("`" + std::string(r_.text()) + "` is not a dtype");
    return t;
  }
  std::string Bytes() {
    std::string out;
    if (!Unbase64(r_.text(), &out)) r_.Fail("not base64");
    return out;
  }

  ObjectRef Node() {
    ExpectKey("type");
    Expect(r_.Next(), JsonReader::kString, "a type key");
    const std::string key(r_.text());
    if (key == ArrayObj::_type_key) {
      ExpectKey("data");
      Expect(r_.Next(), JsonReader::kBeginArray, "`[`");
      auto n = make_object<ArrayObj>();
      for (auto e = r_.Next(); e != JsonReader::kEndArray; e = r_.Next()) n->items.push_back(Value(e));
      EndNode();
      return ObjectRef(n);
    }
    if (key == MapObj::_type_key) {
      ExpectKey("data");
      Expect(r_.Next(), JsonReader::kBeginArray, "`[`");
      auto n = make_object<MapObj>();
      for (auto e = r_.Next(); e != JsonReader::kEndArray; e = r_.Next()) {
        Any k = Value(e);
        if (k.is_null()) r_.Fail("null is no key");
        if (n->Find(k)) r_.Fail("a key occurs twice");
        e = r_.Next();
        if (e == JsonReader::kEndArray) r_.Fail("the last key has no value");
        n->Set(k, Value(e));
      }
      EndNode();
      return ObjectRef(n);
    }
    if (key == NDArrayObj::_type_key) return Tensor();
    if (key == OpNode::_type_key) {
      ExpectKey("name");
      Expect(r_.Next(), JsonReader::kString, "the name of an operator");
      const Op* op = Op::Find(r_.text());
      if (!op) r_.Fail("no operator `" + std::string(r_.text()) + "` is registered");
      EndNode();
      return *op;
    }
    const TypeInfo* info = TypeInfo::FindKey(key);
    if (!info || !info->create) r_.Fail("no type `" + key + "` is known");
    ObjectRef obj(info->create());
    Object* o = ObjectAccess::Get(obj);
    std::vector<bool> given(info->fields.size());
    for (auto e = r_.Next(); e != JsonReader::kEndObject; e = r_.Next()) {
      Expect(e, JsonReader::kKey, "a field or `}`");
      const FieldInfo* f = info->Find(r_.text());
      if (!f) r_.Fail("`" + key + "` has no field `" + std::string(r_.text()) + "`");
      if (given[f - info->fields.data()]) r_.Fail("the field `" + std::string(f->name) + "` occurs twice");
      Any v = Value(r_.Next());
      if (f->kind != FieldKind::kObject && v.is_null()) r_.Fail(std::string("`") + f->name + "` must not be null");
      if (f->kind == FieldKind::kObject && v.object() && !o->IsInstance<BaseAttrsNode>() &&
          v.object()->IsInstance<ArrayObj>()) {
        // Arrays in attributes may hold anything; those of nodes hold nodes.
        for (const Any& a : static_cast<const ArrayObj*>(v.object())->items) {
          if (a.is_null()) r_.Fail("`" + key + "." + f->name + "` holds a null");
        }
      }
      try {
        f->Set(o, v.raw());
      } catch (const Error& err) {
        r_.Fail("`" + key + "`: " + err.message());
      }
      given[f - info->fields.data()] = !v.is_null();
    }
    for (size_t i = 0; i < given.size(); ++i) {
      const FieldInfo& f = info->fields[i];
      if (given[i]) continue;
      // Attributes that need not be given may be null; parts of nodes must be there unless their description allows
      // null.
      if ((f.flags & kRequired) || (f.kind == FieldKind::kObject && !o->IsInstance<BaseAttrsNode>() && !MayBeNull(f))) {
        r_.Fail("`" + key + "` needs the field `" + f.name + "`");
      }
    }
    return obj;
  }

  ObjectRef Tensor() {
    ExpectKey("dtype");
    Expect(r_.Next(), JsonReader::kString, "the name of a dtype");
    DataType dtype = DType();
    ExpectKey("shape");
    Expect(r_.Next(), JsonReader::kBeginArray, "`[`");
    std::vector<int64_t> shape;
    int64_t n = 1;
    for (auto e = r_.Next(); e != JsonReader::kEndArray; e = r_.Next()) {
      Expect(e, JsonReader::kInt, "a dimension");
      if (!support::CheckedMul(n, r_.int_value(), &n)) r_.Fail("a dimension is negative, or the shape is too large");
      shape.push_back(r_.int_value());
      if (shape.size() > 64) r_.Fail("more than 64 dimensions");
    }
    if (dtype.bits() == 0 || dtype.is_handle()) r_.Fail("a tensor cannot have this dtype");
    ExpectKey("data");
    Expect(r_.Next(), JsonReader::kString, "base64 text");
    std::string bytes = Bytes();
    // Before anything of that size is allocated: the text must hold as many bytes as the shape says.
    const size_t bits = static_cast<size_t>(dtype.bits()) * dtype.lanes();
    const int64_t per = static_cast<int64_t>(bits);
    int64_t total;
    if (!support::CheckedMul(n, per, &total) || total / 8 > static_cast<int64_t>(bytes.size()) + 8) {
      r_.Fail("the shape wants more than the " + std::to_string(bytes.size()) + " bytes that follow");
    }
    NDArray a = NDArray::Empty(shape, dtype);
    if (a.nbytes() != bytes.size()) {
      r_.Fail("the shape wants " + std::to_string(a.nbytes()) + " bytes, there are " + std::to_string(bytes.size()));
    }
    if (!bytes.empty()) std::memcpy(a.data(), bytes.data(), bytes.size());
    EndNode();
    return a;
  }

  void EndNode() { Expect(r_.Next(), JsonReader::kEndObject, "`}`"); }

  JsonReader r_;
  std::vector<ObjectRef> nodes_;
};

}  // namespace

std::string SaveJSON(const ObjectRef& obj) { return Saver().Save(obj); }

ObjectRef LoadJSON(const std::string& text) {
  try {
    return Loader(text).Load();
  } catch (const Error&) {
    throw;
  } catch (const std::runtime_error& e) {
    throw runtime::ValueError(e.what());
  }
}

}  // namespace baton

namespace {
using namespace baton;  // NOLINT
BATON_REGISTER_GLOBAL("node.SaveJSON").set_body_typed([](ObjectRef obj) { return SaveJSON(obj); });
BATON_REGISTER_GLOBAL("node.LoadJSON").set_body_typed([](std::string text) { return LoadJSON(text); });
}  // namespace

// SPDX-License-Identifier: Apache-2.0
// JSON of any object graph, over field tables.
//
//   {"format": "baton", "version": 1, "nodes": [
//     {"type": "relay.Id", "name_hint": "x"},
//     {"type": "relay.Var", "vid": [0]},
//     {"type": "runtime.NDArray", "dtype": "float32", "shape": [2], "data": "AACAPwAAAEA="}], "root": [1]}
//
// A node refers only to earlier nodes, by index in brackets. So the file is read in one pass and cannot contain a
// cycle.
#include <baton/ir/attrs.h>
#include <baton/ir/op.h>
#include <baton/ir/structural.h>
#include <baton/ir/transform.h>
#include <baton/ir/type.h>
#include <baton/runtime/interrupt.h>
#include <baton/runtime/ndarray.h>
#include <baton/runtime/registry.h>
#include <baton/support/bytes.h>
#include <baton/support/json.h>
#include <baton/support/pointer_map.h>
#include <ir/node/json.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <unordered_map>

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
bool IsUtf8(std::string_view s) {
  while (!s.empty()) {
    size_t n = support::Utf8Sequence(s);
    if (n == 0) return false;
    s.remove_prefix(n);
  }
  return true;
}

/// The written form of a field.
struct FieldText {
  const FieldInfo* field;
  std::string key;  ///< `,"name":`
  bool source;      ///< of a text: a file's name goes without its folders
};
/// The written form of a type, read once off its table.
struct Form {
  std::string head;  ///< `{"type":"relay.Call"`
  std::vector<FieldText> fields;
  bool known = false;
  bool op = false;
};

/// A text that is built in pages and becomes a String in place.
class PagedString : public runtime::StringObj {
 public:
  support::PageStack<char> pages;
  static String Finish(std::unique_ptr<PagedString> text) {
    text->pages.push_back(0);
    text->data = text->pages.begin();
    text->size = text->pages.size() - 1;
    ObjectAccess::Init(text.get(), RuntimeTypeIndex(), [](Object* o) { delete static_cast<PagedString*>(o); });
    return String(runtime::ObjectPtr<Object>(text.release()));
  }
};

class Saver {
 public:
  explicit Saver(bool sources) : sources_(sources) {}

  std::string Save(const ObjectRef& root) {
    Write(root);
    return std::move(out_);
  }
  /// Avoids the copy at the end, which takes long for a large text.
  String SaveString(const ObjectRef& root) {
    text_ = std::make_unique<PagedString>();
    Write(root);
    if (text_->pages.empty()) return String(out_);
    Flush();
    return PagedString::Finish(std::move(text_));
  }

 private:
  void Write(const ObjectRef& root) {
    out_ = "{\"format\":\"baton\",\"version\":" + std::to_string(kVersion) + ",\"nodes\":[";
    if (root.defined() && !IsString(root.get())) Nodes(root.get());
    out_ += "],\"root\":";
    if (root.defined())
      Reference(root.get());
    else
      out_ += "null";
    out_ += "}\n";
  }

  static bool IsString(const Object* o) { return o->type_index() == TypeIndex::kRuntimeString; }
  /// All empty arrays become one node. Each thread has its own shared instance, and the output must not depend on the
  /// thread.
  const Object* Written(const Object* o) {
    if (o->type_index() != TypeIndex::kRuntimeArray || !static_cast<const ArrayObj*>(o)->items.empty()) return o;
    if (!empty_array_) empty_array_ = o;
    return empty_array_;
  }

  const Form& FormOf(const Object* o) {
    const uint32_t i = o->type_index();
    if (i >= forms_.size()) forms_.resize(i + 1);
    if (!forms_[i]) forms_[i] = std::make_unique<Form>(MakeForm(o));
    return *forms_[i];
  }
  Form MakeForm(const Object* o) const {
    Form f;
    f.head = "{\"type\":\"" + o->GetTypeKey() + "\"";
    f.op = o->IsInstance<OpNode>();
    if (o->IsInstance<transform::ModulePassNode>() || o->IsInstance<transform::FunctionPassNode>()) {
      throw runtime::ValueError("the pass `" + static_cast<const transform::PassNode*>(o)->Info()->name.str() +
                                "` cannot be saved as JSON: its body is code; the text of a pass makes it again");
    }
    const TypeInfo* info = TypeInfo::Get(o->type_index());
    f.known = info && info->create;
    if (!f.known || f.op) return f;
    for (const FieldInfo& field : info->fields) {
      if (field.flags & kTransient) continue;
      const bool text = field.type_name == String::ContainerType::_type_key;
      if ((field.flags & kSource) && !sources_ && !text) continue;
      f.fields.push_back({&field, ",\"" + std::string(field.name) + "\":", (field.flags & kSource) && text});
    }
    return f;
  }

  /// Puts the objects that `o` refers to on the stack, the first on top.
  void Push(const Object* o) {
    const size_t base = stack_.size();
    auto push = [&](const Object* p) {
      if (p && !IsString(p)) stack_.push_back(Written(p));
    };
    switch (o->type_index()) {
      case TypeIndex::kRuntimeArray:
        for (const Any& a : static_cast<const ArrayObj*>(o)->items) push(a.object());
        break;
      case TypeIndex::kRuntimeMap:
        for (const auto& e : static_cast<const MapObj*>(o)->entries) push(e.key.object()), push(e.value.object());
        break;
      case TypeIndex::kRuntimeNDArray:
        break;
      default:
        for (const FieldText& p : FormOf(o).fields) {
          if (p.field->kind == FieldKind::kObject) push(p.field->Ref(o).get());
        }
    }
    std::reverse(stack_.begin() + base, stack_.end());
  }

  void Nodes(const Object* root) {
    stack_.push_back(root);
    while (!stack_.empty()) {
      runtime::PollInterrupt();
      const Object* o = stack_.back();
      bool fresh = false;
      int64_t& number = numbers_.Insert(o, &fresh);
      if (fresh) {
        number = -1;
        Push(o);
        continue;
      }
      stack_.pop_back();
      if (number < 0) {
        number = count_++;
        Node(o);
        if (text_ && out_.size() >= kFlush) Flush();
      }
    }
  }

  void Flush() {
    text_->pages.append(out_.data(), out_.size());
    out_.clear();
  }
  void Int(int64_t v) {
    char buffer[24];
    out_.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, v).ptr);
  }
  void Quoted(std::string_view s) { JsonWriter(&out_).String(s); }
  void Str(std::string_view s) {
    if (IsUtf8(s)) {
      Quoted(s);
    } else {
      out_ += "{\"bytes\":\"" + json::Base64(s.data(), s.size()) + "\"}";
    }
  }
  void Reference(const Object* o) {
    if (IsString(o)) {
      const auto* s = static_cast<const StringObj*>(o);
      Str({s->data, s->size});
    } else {
      out_ += '[';
      Int(*numbers_.Find(Written(o)));
      out_ += ']';
    }
  }

  void Value(const Any& v) {
    switch (v.type_code()) {
      case kBatonNull:
        out_ += "null";
        return;
      case kBatonInt:
        Int(v.raw().v_int64);
        return;
      case kBatonBool:
        out_ += v.raw().v_int64 ? "true" : "false";
        return;
      case kBatonFloat:
        JsonWriter(&out_, 0, true).Double(v.raw().v_float64);
        return;
      case kBatonDType:
        out_ += "{\"dtype\":";
        Quoted(runtime::DataType2String(v.raw().v_dtype));
        out_ += '}';
        return;
      case kBatonDevice:
        out_ += "{\"device\":[" + std::to_string(v.raw().v_device.device_type) + "," +
                std::to_string(v.raw().v_device.device_id) + "]}";
        return;
      case kBatonObject:
        Reference(v.object());
        return;
      default:
        throw runtime::ValueError("a value of kind `" + runtime::ValueKindName(v.raw()) + "` cannot be saved as JSON");
    }
  }

  void Node(const Object* o) {
    // White space between, so that a line is a node.
    out_ += count_ > 1 ? ",\n" : "\n";
    bool first = true;
    auto item = [&](const Any& a) {
      if (!first) out_ += ',';
      first = false;
      Value(a);
    };
    const Form& form = FormOf(o);
    out_ += form.head;
    switch (o->type_index()) {
      case TypeIndex::kRuntimeArray:
        out_ += ",\"data\":[";
        for (const Any& a : static_cast<const ArrayObj*>(o)->items) item(a);
        out_ += ']';
        break;
      case TypeIndex::kRuntimeMap:
        out_ += ",\"data\":[";
        for (const auto& e : static_cast<const MapObj*>(o)->entries) item(e.key), item(e.value);
        out_ += ']';
        break;
      case TypeIndex::kRuntimeNDArray: {
        NDArray a = GetRef<NDArray>(static_cast<const NDArrayObj*>(o)).Contiguous();
        out_ += ",\"dtype\":";
        Quoted(runtime::DataType2String(a.dtype()));
        out_ += ",\"shape\":[";
        for (int i = 0; i < a->ndim; ++i) item(Any(a->shape[i]));
        out_ += "],\"data\":\"" + json::Base64(a.data(), a.nbytes()) + "\"";
        break;
      }
      default:
        Fields(o, form);
    }
    out_ += '}';
  }

  void Fields(const Object* o, const Form& form) {
    if (form.op) {
      out_ += ",\"name\":";
      Quoted(static_cast<const OpNode*>(o)->name.view());
      return;
    }
    if (!form.known) {
      throw runtime::ValueError("an object of type `" + o->GetTypeKey() +
                                "` cannot be saved as JSON: its fields are not described");
    }
    for (const FieldText& field_text : form.fields) {
      const FieldInfo& f = *field_text.field;
      const char* p = reinterpret_cast<const char*>(o) + f.offset;
      const Object* ref = f.kind == FieldKind::kObject ? f.Ref(o).get() : nullptr;
      if (f.kind == FieldKind::kObject && !ref) continue;
      out_ += field_text.key;
      switch (f.kind) {
        case FieldKind::kObject:
          if (field_text.source) {
            // Folders of one machine are meaningless on another.
            const auto* text = static_cast<const StringObj*>(ref);
            std::string_view s(text->data, text->size);
            Str(s.substr(0, 1) == "/" ? s.substr(s.rfind('/') + 1) : s);
          } else {
            Reference(ref);
          }
          break;
        case FieldKind::kDataType:
          Quoted(runtime::DataType2String(*reinterpret_cast<const DataType*>(p)));
          break;
        // Exact, beyond the integers that JSON readers support.
        case FieldKind::kUInt64:
          Int(static_cast<int64_t>(*reinterpret_cast<const uint64_t*>(p)));
          break;
        case FieldKind::kInt64:
          Int(*reinterpret_cast<const int64_t*>(p));
          break;
        case FieldKind::kStdString:
          Str(*reinterpret_cast<const std::string*>(p));
          break;
        default:
          Value(f.Get(o));
      }
    }
  }

  static constexpr size_t kFlush = 64 << 10;
  bool sources_;
  std::string out_;                    ///< the last chunk, which stays in the cache
  std::unique_ptr<PagedString> text_;  ///< those before; null where all is one piece
  PointerMap<int64_t> numbers_;
  std::vector<std::unique_ptr<Form>> forms_;
  support::PageStack<const Object*> stack_;
  const Object* empty_array_ = nullptr;
  int64_t count_ = 0;
};

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
    runtime::PollInterrupt();
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
    if (!json::Unbase64(r_.text(), &out)) r_.Fail("not base64");
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
    if (key != last_key_) {
      const TypeInfo*& found = types_[key];
      if (!found) found = TypeInfo::FindKey(key);
      last_ = found;
      last_key_ = key;
    }
    const TypeInfo* info = last_;
    if (!info || !info->create) r_.Fail("no type `" + key + "` is known");
    ObjectRef obj(info->create());
    Object* o = ObjectAccess::Get(obj);
    const bool is_attrs = o->IsInstance<BaseAttrsNode>();
    const FieldInfo* const fields = info->fields.data();
    const size_t count = info->fields.size();
    given_.assign(count, false);
    size_t next = 0;  // our own files have the fields in their order
    for (auto e = r_.Next(); e != JsonReader::kEndObject; e = r_.Next()) {
      Expect(e, JsonReader::kKey, "a field or `}`");
      while (next < count && r_.text() != fields[next].name) ++next;
      const FieldInfo* f = next < count ? &fields[next] : info->Find(r_.text());
      if (!f) r_.Fail("`" + key + "` has no field `" + std::string(r_.text()) + "`");
      next = static_cast<size_t>(f - fields) + 1;
      if (given_[f - fields]) r_.Fail("the field `" + std::string(f->name) + "` occurs twice");
      Any v = Value(r_.Next());
      if (f->kind != FieldKind::kObject && v.is_null()) r_.Fail(std::string("`") + f->name + "` must not be null");
      if (f->kind == FieldKind::kObject && v.object() && !is_attrs && v.object()->IsInstance<ArrayObj>()) {
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
      given_[f - fields] = !v.is_null();
    }
    for (size_t i = 0; i < count; ++i) {
      const FieldInfo& f = fields[i];
      if (given_[i]) continue;
      if (!f.MayBeMissing()) {
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
    // Checked before the allocation: the text must hold as many bytes as the shape requires.
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
  std::unordered_map<std::string, const TypeInfo*> types_;
  const TypeInfo* last_ = nullptr;
  std::string last_key_;
  std::vector<bool> given_;
};

}  // namespace

std::string SaveJSON(const ObjectRef& obj, bool sources) { return Saver(sources).Save(obj); }

ObjectRef LoadJSON(const std::string& text) {
  try {
    return json::IsGraph(text) ? json::LoadGraph(text) : Loader(text).Load();
  } catch (const Error&) {
    throw;
  } catch (const std::runtime_error& e) {
    throw runtime::ValueError(e.what());
  }
}

}  // namespace baton

namespace {
using namespace baton;  // NOLINT
BATON_REGISTER_GLOBAL("node.SaveJSON").set_body([](runtime::Args args, runtime::RetValue* rv) {
  *rv = Any(Saver(args.size() < 2 || args[1].As<bool>()).SaveString(args[0].As<ObjectRef>()));
});
BATON_REGISTER_GLOBAL("node.LoadJSON").set_body_typed([](std::string text) { return LoadJSON(text); });
}  // namespace

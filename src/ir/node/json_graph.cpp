// SPDX-License-Identifier: Apache-2.0
// Reads Relay's JSON format: a graph of nodes, each with its type key and its fields as text.
//
//   {"root": 1,
//    "nodes": [{"type_key": ""},
//              {"type_key": "relay.Var", "attrs": {"_checked_type_": "0", "type_annotation": "3", "vid": "2"}},
//              {"type_key": "Array", "data": [4, 5]},
//              {"type_key": "Map", "keys": ["a"], "data": [6]},
//              {"type_key": "runtime.String", "repr_str": "x"}, ...],
//    "b64ndarrays": ["P6G0lvBAXt0AAAAA..."],
//    "attrs": {"tvm_version": "0.8.0"}}
//
// A reference is the index of a node. Node 0 is null, and references may point forwards and backwards. The format does
// not distinguish references from numbers: the kind of our field decides, and the table below does so where Relay has a
// literal node and Baton a number. Unknown fields are skipped if they are empty, else they are an error.
#include <baton/ir/attrs.h>
#include <baton/ir/module.h>
#include <baton/ir/op.h>
#include <baton/runtime/interrupt.h>
#include <baton/runtime/params.h>
#include <baton/support/bytes.h>
#include <baton/support/json.h>
#include <ir/node/json.h>

#include <charconv>
#include <cstring>

namespace baton {
namespace {

using runtime::FieldInfo;
using runtime::FieldKind;
using runtime::ObjectAccess;
using runtime::TypeInfo;
using runtime::ValueError;
using support::Json;

struct Name {
  const char* type;
  const char* field;
};
/// Number fields that are literal nodes in Relay.
constexpr Name kBoxed[] = {
    {"relay.attrs.StackAttrs", "axis"},         {"relay.attrs.RepeatAttrs", "repeats"},
    {"relay.attrs.RepeatAttrs", "axis"},        {"relay.attrs.ReverseAttrs", "axis"},
    {"relay.attrs.TakeAttrs", "batch_dims"},    {"relay.attrs.GatherNDAttrs", "batch_dims"},
    {"relay.attrs.GatherAttrs", "axis"},        {"relay.attrs.ReverseSequenceAttrs", "seq_axis"},
    {"relay.attrs.ThreefryAttrs", "out_shape"}, {"relay.attrs.ReverseSequenceAttrs", "batch_axis"},
};
/// Fields of Relay that can be derived from others.
constexpr Name kDerived[] = {
    {"IRModule", "global_var_map_"},
    {"IRModule", "global_type_var_map_"},
    {"IRModule", "source_map"},
    {"IRModule", "imported_files"},
};

/// The inferred type; it is not trusted but inferred again.
constexpr const char* kInferred = "_checked_type_";

template <size_t N>
bool In(const Name (&table)[N], std::string_view type, std::string_view field) {
  for (const Name& n : table) {
    if (type == n.type && field == n.field) return true;
  }
  return false;
}

class GraphLoader {
 public:
  ObjectRef Load(const Json& file) {
    nodes_ = &file.At("nodes").AsArray();
    made_.resize(nodes_->size());
    state_.resize(nodes_->size());
    if (const Json* arrays = file.Find("b64ndarrays")) {
      for (const Json& a : arrays->AsArray()) arrays_.push_back(&a.AsString());
    }
    return Make(Index(file.At("root").AsInt()));
  }

 private:
  [[noreturn]] void Fail(const std::string& text) const {
    throw ValueError("node " + std::to_string(at_) + " of the saved graph: " + text);
  }
  size_t Index(int64_t i) const {
    if (i < 0 || static_cast<size_t>(i) >= nodes_->size()) {
      Fail("there is no node " + std::to_string(i) + " among the " + std::to_string(nodes_->size()));
    }
    return static_cast<size_t>(i);
  }
  static bool ParseInt(std::string_view s, int64_t* out) {
    auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), *out);
    return error == std::errc() && end == s.data() + s.size() && !s.empty();
  }
  const std::string& KeyOf(size_t i) const { return (*nodes_)[i].At("type_key").AsString(); }
  static const char* OurKey(std::string_view key) {
    if (key == "Array") return "runtime.Array";
    if (key == "Map" || key == "StrMap") return "runtime.Map";
    return nullptr;
  }

  /// Makes a node after the nodes that it refers to, without recursion: graphs may be a million nodes deep.
  ObjectRef Make(size_t root) {
    enum : char { kNew, kOpen, kDone };
    std::vector<size_t> stack{root}, refs;
    while (!stack.empty()) {
      runtime::PollInterrupt();
      at_ = stack.back();
      if (state_[at_] == kDone) {
        stack.pop_back();
        continue;
      }
      if (state_[at_] == kOpen) {
        made_[at_] = Node();
        state_[at_] = kDone;
        stack.pop_back();
        continue;
      }
      state_[at_] = kOpen;
      refs.clear();
      References(&refs);
      for (size_t k = refs.size(); k-- > 0;) {
        if (state_[refs[k]] == kOpen) Fail("it contains itself, by way of node " + std::to_string(refs[k]));
        if (state_[refs[k]] == kNew) stack.push_back(refs[k]);
      }
    }
    return made_[root];
  }

  /// The nodes that the node at_ needs.
  void References(std::vector<size_t>* out) {
    const Json& n = (*nodes_)[at_];
    if (const Json* data = n.Find("data")) {
      for (const Json& d : data->AsArray()) out->push_back(Index(d.AsInt()));
    }
    const Json* attrs = n.Find("attrs");
    const TypeInfo* info = attrs ? TypeInfo::FindKey(KeyOf(at_)) : nullptr;
    if (!info) return;
    for (const auto& [name, text] : attrs->AsObject()) {
      const FieldInfo* f = Field(*info, name);
      size_t i;
      if (f && IsReference(*info, *f, text.AsString(), &i)) out->push_back(i);
    }
  }

  static const FieldInfo* Field(const TypeInfo& info, std::string_view name) {
    if (name == "__dict__") name = "dict";
    return info.Find(name);
  }
  bool IsReference(const TypeInfo& info, const FieldInfo& f, const std::string& text, size_t* index) const {
    if (f.kind != FieldKind::kObject && !In(kBoxed, info.key, f.name)) return false;
    if (f.type_name == "runtime.NDArray") return false;
    int64_t i;
    if (!ParseInt(text, &i)) {
      if (f.type_name == "runtime.String" || f.type_name == "any" || f.type_name == "runtime.Object") return false;
      Fail("the field `" + std::string(f.name) + "` is \"" + text + "\", must be the number of a node");
    }
    // Text that happens to be a number: where a string is wanted, only a node that holds one is meant.
    if (f.type_name == "runtime.String" &&
        (i < 0 || static_cast<size_t>(i) >= nodes_->size() ||
         (KeyOf(static_cast<size_t>(i)) != "runtime.String" && !KeyOf(static_cast<size_t>(i)).empty()))) {
      return false;
    }
    *index = Index(i);
    return true;
  }

  ObjectRef Node() {
    const Json& n = (*nodes_)[at_];
    const std::string& key = KeyOf(at_);
    if (key.empty()) return ObjectRef();
    if (const char* ours = OurKey(key)) return Container(n, !std::strcmp(ours, "runtime.Map"));
    const Json* repr = n.Find("repr_str");
    if (key == "runtime.String") return String(n.At("repr_str").AsString());
    if (key == "Op") {
      const Op* op = Op::Find(repr ? repr->AsString() : n.At("attrs").At("name").AsString());
      if (!op) Fail("no operator `" + repr->AsString() + "` is registered");
      return *op;
    }
    const TypeInfo* info = TypeInfo::FindKey(key);
    if (!info || !info->create) Fail("no type `" + key + "` is known");
    if (repr) Fail("a `" + key + "` that is saved as text (\"" + repr->AsString() + "\") cannot be read");
    ObjectRef obj(info->create());
    std::vector<bool> given(info->fields.size());
    if (const Json* attrs = n.Find("attrs")) {
      for (const auto& [name, text] : attrs->AsObject()) {
        const FieldInfo* f = Field(*info, name);
        if (!f) {
          const std::string& s = text.AsString();
          if (In(kDerived, key, name) || name == kInferred || s.empty() || (s == "0" && KeyOf(0).empty()) ||
              name == "virtual_device_")
            continue;
          Fail("`" + key + "` has no field `" + name + "` here, and it is set: \"" + s + "\"");
        }
        given[f - info->fields.data()] = Set(*info, *f, ObjectAccess::Get(obj), text.AsString());
      }
    }
    for (size_t i = 0; i < given.size(); ++i) {
      if (!given[i] && !info->fields[i].MayBeMissing())
        Fail("`" + key + "` needs the field `" + info->fields[i].name + "`");
    }
    return obj;
  }

  ObjectRef Container(const Json& n, bool map) {
    const Json* data = n.Find("data");
    const size_t size = data ? data->size() : 0;
    auto item = [&](size_t i) { return Any(made_[Index((*data)[i].AsInt())]); };
    if (!map) {
      auto a = make_object<runtime::ArrayObj>();
      a->items.reserve(size);
      for (size_t i = 0; i < size; ++i) a->items.push_back(item(i));
      return ObjectRef(a);
    }
    auto m = make_object<runtime::MapObj>();
    if (const Json* keys = n.Find("keys")) {
      if (keys->size() != size)
        Fail("a map of " + std::to_string(keys->size()) + " keys and " + std::to_string(size) + " values");
      for (size_t i = 0; i < size; ++i) m->Set(Any(String((*keys)[i].AsString())), Unboxed(item(i)));
    } else {
      if (size % 2) Fail("the last key of a map has no value");
      for (size_t i = 0; i < size; i += 2) {
        Any k = item(i);
        if (k.is_null()) Fail("null is no key of a map");
        m->Set(k, item(i + 1));
      }
    }
    return ObjectRef(m);
  }

  /// A literal as a plain number, as attributes hold it.
  static Any Unboxed(const Any& a) {
    if (!a.object()) return a;
    if (a.object()->IsInstance<IntImmNode>()) {
      const auto* n = static_cast<const IntImmNode*>(a.object());
      return n->dtype == DataType::Bool() ? Any(n->value != 0) : Any(n->value);
    }
    if (a.object()->IsInstance<FloatImmNode>()) return Any(static_cast<const FloatImmNode*>(a.object())->value);
    if (!a.object()->IsInstance<runtime::ArrayObj>()) return a;
    // Arrays of arrays of numbers are two deep at most (padding).
    auto out = make_object<runtime::ArrayObj>();
    for (const Any& x : static_cast<const runtime::ArrayObj*>(a.object())->items) {
      out->items.push_back(x.object() && x.object()->IsInstance<runtime::ArrayObj>() ? UnboxedRow(x) : Unboxed(x));
    }
    return Any(ObjectRef(out));
  }
  static Any UnboxedRow(const Any& row) {
    auto out = make_object<runtime::ArrayObj>();
    for (const Any& x : static_cast<const runtime::ArrayObj*>(row.object())->items) {
      out->items.push_back(x.object() && x.object()->IsInstance<runtime::ArrayObj>() ? x : Unboxed(x));
    }
    return Any(ObjectRef(out));
  }
  /// Dimensions were 32 bits wide; ours are int64.
  static Any WideDimensions(const Any& shape) {
    if (!shape.object() || !shape.object()->IsInstance<runtime::ArrayObj>()) return shape;
    auto out = make_object<runtime::ArrayObj>();
    for (const Any& d : static_cast<const runtime::ArrayObj*>(shape.object())->items) {
      const Object* o = d.object();
      if (o && o->IsInstance<IntImmNode>()) {
        out->items.push_back(Any(IntImm(DataType::Int(64), static_cast<const IntImmNode*>(o)->value)));
      } else if (o && o->GetTypeKey() == "tir.Any") {
        ObjectPtr<Object> copy = TypeInfo::Get(o->type_index())->copy(o);
        static_cast<PrimExprNode*>(copy.get())->dtype = DataType::Int(64);
        out->items.push_back(Any(ObjectRef(copy)));
      } else {
        out->items.push_back(d);
      }
    }
    return Any(ObjectRef(out));
  }

  runtime::NDArray Array(const std::string& text) {
    int64_t i;
    if (!ParseInt(text, &i) || i < 0 || static_cast<size_t>(i) >= arrays_.size()) {
      Fail("there is no array " + text + " among the " + std::to_string(arrays_.size()) + " of `b64ndarrays`");
    }
    std::string blob;
    if (!json::Unbase64(*arrays_[static_cast<size_t>(i)], &blob)) Fail("array " + text + " is not base64");
    // The bytes are those of one array in a file of parameters.
    support::ByteWriter w;
    w.Write<uint64_t>(0xF7E58D4F05049CB7u);
    w.Write<uint64_t>(0);
    w.Write<uint64_t>(1);
    w.WriteString("data");
    w.Write<uint64_t>(1);
    w.WriteBytes(blob.data(), blob.size());
    const std::string file = w.Take();
    return runtime::LoadParams(file, "b64ndarrays").at("data");
  }

  /// Whether something was given.
  bool Set(const TypeInfo& info, const FieldInfo& f, Object* obj, const std::string& text) {
    Any v;
    size_t ref;
    const bool is_attrs = obj->IsInstance<BaseAttrsNode>();
    if (f.type_name == "runtime.NDArray") {
      v = Any(Array(text));
    } else if (IsReference(info, f, text, &ref)) {
      v = Any(made_[ref]);
      if (is_attrs) v = Unboxed(v);
      if (f.name == std::string_view("shape") && info.key == "relay.TensorType") v = WideDimensions(v);
      if (v.is_null()) return false;
    } else {
      int64_t i;
      switch (f.kind) {
        case FieldKind::kBool:
        case FieldKind::kInt32:
        case FieldKind::kInt64:
        case FieldKind::kUInt64:
          if (!ParseInt(text, &i))
            Fail("the field `" + std::string(f.name) + "` is \"" + text + "\", must be an integer");
          v = f.kind == FieldKind::kBool ? Any(i != 0) : Any(i);
          break;
        case FieldKind::kDouble: {
          char* end = nullptr;
          const double d = std::strtod(text.c_str(), &end);
          if (text.empty() || *end)
            Fail("the field `" + std::string(f.name) + "` is \"" + text + "\", must be a number");
          v = Any(d);
          break;
        }
        case FieldKind::kDataType: {
          DataType t;
          if (!text.empty() && !runtime::TryString2DataType(text, &t)) Fail("`" + text + "` is not a dtype");
          v = Any(t);
          break;
        }
        case FieldKind::kHandle:
          Fail("the field `" + std::string(f.name) + "` is an address");
        default:
          v = Any(String(text));
      }
    }
    try {
      f.Set(obj, v.raw());
    } catch (const Error& e) {
      Fail("`" + info.key + "`: " + e.message());
    }
    return true;
  }

  const std::vector<Json>* nodes_ = nullptr;
  std::vector<const std::string*> arrays_;
  std::vector<ObjectRef> made_;
  std::vector<char> state_;
  size_t at_ = 0;
};

}  // namespace

namespace json {

bool IsGraph(std::string_view text) {
  // Our own form begins with its name; this one is any other object.
  for (char c : text) {
    if (c == ' ' || c == '\n' || c == '\r' || c == '\t') continue;
    return c == '{' && text.substr(0, 4096).find("\"format\"") == std::string_view::npos &&
           text.find("\"type_key\"") != std::string_view::npos;
  }
  return false;
}

ObjectRef LoadGraph(const std::string& text) {
  const Json file = Json::Parse(text, "JSON", {.depth = 8, .allow_nonfinite = true});
  return GraphLoader().Load(file);
}

}  // namespace json
}  // namespace baton

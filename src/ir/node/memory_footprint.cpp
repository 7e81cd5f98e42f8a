// SPDX-License-Identifier: Apache-2.0
// Memory footprint of object graphs: each object is counted once, and duplicates (objects with the content of another)
// are counted apart.
#include <baton/ir/expr.h>
#include <baton/runtime/ndarray.h>
#include <baton/runtime/registry.h>

#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

namespace baton {
namespace {

using runtime::FieldKind;
using runtime::TypeIndex;
using runtime::TypeInfo;

struct Sum {
  int64_t objects = 0, bytes = 0;
  void Add(int64_t size) { ++objects, bytes += size; }
};

class Holding {
 public:
  void Add(const ObjectRef& root) {
    Push(root.get());
    while (!todo_.empty()) {
      auto& [object, entered] = todo_.back();
      const Object* o = object;
      if (!entered) {
        entered = true;
        ForEachChildObject(o, [this](const Object* child) { Push(child); });
        continue;
      }
      todo_.pop_back();
      if (!ids_.emplace(o, 0).second) continue;  // a child of two children of one object
      Count(o);
    }
  }
  Array<int64_t> Row() const { return {all.objects, all.bytes, data, copies.objects, copies.bytes}; }
  Sum all;
  int64_t data = 0;                    ///< bytes of tensors
  Sum copies;                          ///< content that another object has, too
  std::map<std::string, Sum> by_type;  ///< copies

 private:
  void Push(const Object* o) {
    if (o && !ids_.count(o)) todo_.push_back({o, false});
  }
  /// Operators are shared by all programs.
  static const TypeInfo* Described(const Object* o) {
    const TypeInfo* info = TypeInfo::Get(o->type_index());
    return info && !info->identity ? info : nullptr;
  }
  template <class F>
  static void ForEachChildObject(const Object* o, F f) {
    switch (o->type_index()) {
      case TypeIndex::kRuntimeString:
      case TypeIndex::kRuntimeNDArray:
        return;
      case TypeIndex::kRuntimeArray:
        for (const Any& v : static_cast<const runtime::ArrayObj*>(o)->items) f(v.object());
        return;
      case TypeIndex::kRuntimeMap:
        for (const auto& e : static_cast<const runtime::MapObj*>(o)->entries) f(e.key.object()), f(e.value.object());
        return;
      default:
        break;
    }
    const TypeInfo* info = Described(o);
    if (!info) return;
    for (const runtime::FieldInfo& field : info->fields) {
      if (field.kind == FieldKind::kObject) f(field.Ref(o).get());
    }
  }

  // The content of an object as text, its children by their ids: equal texts, equal contents.
  void Say(const void* data, size_t size) { said_.append(static_cast<const char*>(data), size); }
  void SayId(int64_t n) { Say(&n, sizeof n); }
  void SayChild(const Object* o) { SayId(o ? ids_.at(o) : 0); }
  void SayValue(const Any& v) {
    SayId(v.raw().type_code);
    if (v.object()) {
      SayChild(v.object());
    } else {
      SayId(v.raw().v_int64);
    }
  }

  void Count(const Object* o) {
    int64_t size = 0;
    bool own = false;  // compared by identity
    said_.clear();
    SayId(o->type_index());
    switch (o->type_index()) {
      case TypeIndex::kRuntimeString: {
        const auto* s = static_cast<const runtime::StringObj*>(o);
        size = static_cast<int64_t>(sizeof(runtime::StringObj) + s->size);
        Say(s->data, s->size);
        break;
      }
      case TypeIndex::kRuntimeArray: {
        const auto* a = static_cast<const runtime::ArrayObj*>(o);
        size = static_cast<int64_t>(sizeof(runtime::ArrayObj) + a->items.size() * sizeof(BatonValue));
        for (const Any& v : a->items) SayValue(v);
        break;
      }
      case TypeIndex::kRuntimeMap: {
        const auto* m = static_cast<const runtime::MapObj*>(o);
        size = static_cast<int64_t>(sizeof(runtime::MapObj) + m->entries.size() * (2 * sizeof(BatonValue) + 16));
        for (const auto& e : m->entries) SayValue(e.key), SayValue(e.value);
        break;
      }
      case TypeIndex::kRuntimeNDArray:
        size = 128;
        data += static_cast<int64_t>(GetRef<runtime::NDArray>(o).nbytes());
        own = true;
        break;
      default: {
        const TypeInfo* info = Described(o);
        if (!info) {
          all.Add(0);
          ids_[o] = ++last_;
          return;
        }
        size = info->fields.empty() ? 32 : info->fields.back().offset + 8;
        own = info->is_var;
        for (const runtime::FieldInfo& field : info->fields) own = SayField(field, o) && own;
      }
    }
    all.Add(size);
    if (own) {
      ids_[o] = ++last_;
      return;
    }
    auto [at, fresh] = contents_.try_emplace(said_, last_ + 1);
    if (fresh) {
      ++last_;
    } else {
      copies.Add(size);
      by_type[o->GetTypeKey()].Add(size);
    }
    ids_[o] = at->second;
  }
  /// False for a field that identifies a variable.
  bool SayField(const runtime::FieldInfo& field, const Object* o) {
    const char* at = reinterpret_cast<const char*>(o) + field.offset;
    switch (field.kind) {
      case FieldKind::kBool:
        Say(at, sizeof(bool));
        return true;
      case FieldKind::kInt32:
        Say(at, 4);
        return true;
      case FieldKind::kDataType:
        Say(at, sizeof(DataType));
        return true;
      case FieldKind::kStdString: {
        const auto& text = *reinterpret_cast<const std::string*>(at);
        SayId(static_cast<int64_t>(text.size()));
        Say(text.data(), text.size());
        return true;
      }
      case FieldKind::kObject: {
        const Object* child = field.Ref(o).get();
        SayChild(child);
        const TypeInfo* info = child ? TypeInfo::Get(child->type_index()) : nullptr;
        return !(info && info->is_var);
      }
      default:
        Say(at, 8);
        return true;
    }
  }

  std::unordered_map<const Object*, int64_t> ids_;  ///< of contents; 0: not known yet
  std::unordered_map<std::string, int64_t> contents_;
  std::vector<std::pair<const Object*, bool>> todo_;
  std::string said_;
  int64_t last_ = 0;
};

}  // namespace

/// Memory footprint of objects: (number of objects, their bytes, bytes of the tensors in them, number of duplicates,
/// bytes of the duplicates). Spans and types belong to the content; variables and tensors are compared by identity.
BATON_REGISTER_GLOBAL("ir.MemoryFootprint").set_body_typed([](Array<ObjectRef> roots) {
  Holding h;
  for (const ObjectRef& r : roots) h.Add(r);
  return h.Row();
});
/// The same of the first root, of the first two, and so on.
BATON_REGISTER_GLOBAL("ir.MemoryFootprintUpTo").set_body_typed([](Array<ObjectRef> roots) {
  Holding h;
  Array<Array<int64_t>> out;
  for (const ObjectRef& r : roots) {
    h.Add(r);
    out.push_back(h.Row());
  }
  return out;
});
/// Duplicates by type: type -> (number of objects, bytes), most bytes first.
BATON_REGISTER_GLOBAL("ir.Copies").set_body_typed([](Array<ObjectRef> roots) {
  Holding h;
  for (const ObjectRef& r : roots) h.Add(r);
  std::vector<std::pair<std::string, Sum>> rows(h.by_type.begin(), h.by_type.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second.bytes > b.second.bytes; });
  Map<String, Array<int64_t>> out;
  for (const auto& [type, sum] : rows) out.Set(type, Array<int64_t>{sum.objects, sum.bytes});
  return out;
});

}  // namespace baton

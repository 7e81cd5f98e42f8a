// SPDX-License-Identifier: Apache-2.0
#include <baton/runtime/reflection.h>
#include <baton/runtime/registry.h>

#include <atomic>
#include <cstdio>
#include <mutex>

namespace baton::runtime {
namespace {

/// Tables by index, in pieces that never move: reading one takes no lock. (It is asked for at each node of a
/// traversal.)
struct InfoTable {
  static constexpr uint32_t kPiece = 256, kPieces = 256;
  struct Piece {
    std::atomic<const TypeInfo*> info[kPiece] = {};
  };
  std::atomic<Piece*> pieces[kPieces] = {};
  std::mutex mutex;
  static InfoTable& Get() {
    static auto* t = new InfoTable;
    return *t;
  }
};

std::string Number(double v) {
  char buf[32];
  snprintf(buf, sizeof buf, "%.10g", v);
  return buf;
}

}  // namespace

const FieldInfo* TypeInfo::Find(std::string_view name) const {
  for (const FieldInfo& f : fields) {
    if (name == f.name) return &f;
  }
  return nullptr;
}

const TypeInfo* TypeInfo::Get(uint32_t index) {
  if (index >= InfoTable::kPiece * InfoTable::kPieces) return nullptr;
  const InfoTable::Piece* p = InfoTable::Get().pieces[index / InfoTable::kPiece].load(std::memory_order_acquire);
  return p ? p->info[index % InfoTable::kPiece].load(std::memory_order_acquire) : nullptr;
}

const TypeInfo* TypeInfo::FindKey(std::string_view key) {
  const int64_t index = Object::FindTypeKey(key);
  return index < 0 ? nullptr : Get(static_cast<uint32_t>(index));
}

std::vector<const TypeInfo*> TypeInfo::List() {
  std::vector<const TypeInfo*> out;
  for (const auto& slot : InfoTable::Get().pieces) {
    const InfoTable::Piece* p = slot.load(std::memory_order_acquire);
    for (uint32_t i = 0; p && i < InfoTable::kPiece; ++i) {
      if (const TypeInfo* info = p->info[i].load(std::memory_order_acquire)) out.push_back(info);
    }
  }
  return out;
}

void TypeInfo::Put(TypeInfo info) {
  InfoTable& t = InfoTable::Get();
  std::lock_guard lock(t.mutex);
  const uint32_t index = info.index;
  if (index >= InfoTable::kPiece * InfoTable::kPieces) throw InternalError("too many types: `" + info.key + "`");
  auto& slot = t.pieces[index / InfoTable::kPiece];
  if (!slot.load(std::memory_order_relaxed)) slot.store(new InfoTable::Piece, std::memory_order_release);
  auto& at = slot.load(std::memory_order_relaxed)->info[index % InfoTable::kPiece];
  // Tables live as long as the process.
  if (!at.load(std::memory_order_relaxed)) at.store(new TypeInfo(std::move(info)), std::memory_order_release);
}

Any FieldInfo::Get(const Object* obj) const {
  const char* p = reinterpret_cast<const char*>(obj) + offset;
  switch (kind) {
    case FieldKind::kBool:
      return Any(*reinterpret_cast<const bool*>(p));
    case FieldKind::kInt32:
      return Any(*reinterpret_cast<const int32_t*>(p));
    case FieldKind::kInt64:
      return Any(*reinterpret_cast<const int64_t*>(p));
    case FieldKind::kUInt64:
      return Any(*reinterpret_cast<const uint64_t*>(p));
    case FieldKind::kDouble:
      return Any(*reinterpret_cast<const double*>(p));
    case FieldKind::kDataType:
      return Any(*reinterpret_cast<const DataType*>(p));
    case FieldKind::kStdString:
      return Any(*reinterpret_cast<const std::string*>(p));
    case FieldKind::kObject:
      return Any(*reinterpret_cast<const ObjectRef*>(p));
    case FieldKind::kHandle:
      return Any(*reinterpret_cast<void* const*>(p));
  }
  return Any();
}

void FieldInfo::Set(Object* obj, const BatonValue& v) const {
  char* p = reinterpret_cast<char*>(obj) + offset;
  auto check = [&](double x) {
    if ((has_lower && !(x >= lower)) || (has_upper && !(x <= upper))) {
      throw ValueError(std::string("`") + name + "` is " + Number(x) + ", must be " +
                       (has_lower ? "at least " + Number(lower) : "") + (has_lower && has_upper ? " and " : "") +
                       (has_upper ? "at most " + Number(upper) : ""));
    }
  };
  try {
    switch (kind) {
      case FieldKind::kBool:
        *reinterpret_cast<bool*>(p) = ValueTraits<bool>::From(v);
        return;
      case FieldKind::kInt32: {
        int32_t x = ValueTraits<int32_t>::From(v);
        check(x);
        *reinterpret_cast<int32_t*>(p) = x;
        return;
      }
      case FieldKind::kInt64: {
        int64_t x = ValueTraits<int64_t>::From(v);
        check(static_cast<double>(x));
        *reinterpret_cast<int64_t*>(p) = x;
        return;
      }
      case FieldKind::kUInt64:
        *reinterpret_cast<uint64_t*>(p) = ValueTraits<uint64_t>::From(v);
        return;
      case FieldKind::kDouble: {
        double x = ValueTraits<double>::From(v);
        check(x);
        *reinterpret_cast<double*>(p) = x;
        return;
      }
      case FieldKind::kDataType:
        *reinterpret_cast<DataType*>(p) = ValueTraits<DataType>::From(v);
        return;
      case FieldKind::kStdString:
        *reinterpret_cast<std::string*>(p) = ValueTraits<std::string>::From(v);
        return;
      case FieldKind::kHandle:
        *reinterpret_cast<void**>(p) = ValueTraits<void*>::From(v);
        return;
      case FieldKind::kObject: {
        Any out;
        convert(v, &out);
        if (!out.object() && !(flags & kNullable) && default_value.is_null()) {
          throw TypeError(std::string("expected ") + type_name + ", got None");
        }
        if ((has_lower || has_upper) && out.object() && out.object()->IsInstance<ArrayObj>()) {
          for (const Any& a : static_cast<ArrayObj*>(out.object())->items) {
            if (a.type_code() == kBatonInt || a.type_code() == kBatonFloat) check(a.As<double>());
          }
        }
        ObjectRef r = out.object() ? ObjectRef(ObjectPtr<Object>(out.object())) : ObjectRef();
        *reinterpret_cast<ObjectRef*>(p) = r;
        return;
      }
    }
  } catch (const Error& e) {
    if (e.kind() != "TypeError") throw;
    throw TypeError(std::string("`") + name + "`: " + e.message());
  }
}

void CheckFieldCoverage(const TypeInfo& info, size_t begin, size_t size) {
  // Each byte of the object belongs to a field of its class, to the parent, or to padding of at most 7 bytes.
  std::vector<std::pair<size_t, size_t>> spans;
  for (const FieldInfo& f : info.fields) {
    static constexpr size_t kSizes[] = {1, 4, 8, 8, 8, 4, 8, sizeof(std::string), 8};
    spans.push_back({f.offset, f.offset + kSizes[static_cast<int>(f.kind)]});
  }
  // The parent may end in padding that this class's fields fill.
  size_t at = begin > 8 ? begin - 8 : begin;
  bool progress = true;
  while (progress) {
    progress = false;
    for (auto& [b, e] : spans) {
      if (e > at && b <= at + 8) at = e, progress = true;
    }
  }
  if (size > at + 8) {
    throw InternalError("type `" + info.key + "`: a field at byte " + std::to_string(at) + " is not in Describe");
  }
}

Any GetField(const Object* obj, std::string_view name) {
  const TypeInfo* info = TypeInfo::Get(obj->type_index());
  const FieldInfo* f = info ? info->Find(name) : nullptr;
  if (!f) throw Error("AttributeError", "`" + obj->GetTypeKey() + "` has no attribute `" + std::string(name) + "`");
  return f->Get(obj);
}

Array<String> ListFields(const Object* obj) {
  Array<String> out;
  if (const TypeInfo* info = TypeInfo::Get(obj->type_index())) {
    for (const FieldInfo& f : info->fields) out.push_back(f.name);
  }
  return out;
}

ObjectRef MakeNode(std::string_view key, const BatonValue* kv, int n) {
  const TypeInfo* info = TypeInfo::FindKey(key);
  if (!info || !info->create) throw TypeError("no type with key `" + std::string(key) + "` can be made by fields");
  ObjectRef obj(info->create());
  std::vector<bool> given(info->fields.size());
  for (int i = 0; i + 1 < n; i += 2) {
    std::string name = ValueTraits<std::string>::From(kv[i]);
    const FieldInfo* f = info->Find(name);
    if (!f) {
      std::string known;
      for (const FieldInfo& k : info->fields) known += (known.empty() ? "" : ", ") + std::string(k.name);
      throw Error("AttributeError", "`" + std::string(key) + "` has no field `" + name + "`; it has " + known);
    }
    f->Set(ObjectAccess::Get(obj), kv[i + 1]);
    given[f - info->fields.data()] = true;
  }
  for (size_t i = 0; i < given.size(); ++i) {
    if (!given[i] && !info->fields[i].MayBeMissing()) {
      throw TypeError("`" + std::string(key) + "` needs the field `" + info->fields[i].name + "`");
    }
  }
  return obj;
}

}  // namespace baton::runtime

using namespace baton::runtime;  // NOLINT: the C functions below

extern "C" {
int BatonObjectGetField(const BatonObject* obj, const char* name, BatonValue* ret) {
  try {
    *ret = GetField(reinterpret_cast<const Object*>(obj), name).Release();
    return 0;
  } catch (...) {
    return CatchToSlot();
  }
}
int BatonObjectListFields(const BatonObject* obj, BatonValue* ret) {
  try {
    *ret = Any(ListFields(reinterpret_cast<const Object*>(obj))).Release();
    return 0;
  } catch (...) {
    return CatchToSlot();
  }
}
}

BATON_REGISTER_GLOBAL("node.MakeNode").set_body([](Args args, RetValue* rv) {
  *rv = MakeNode(args[0].As<std::string>(), args.values + 1, args.size() - 1);
});
// Table of all types for front ends: [key, parent key, doc, abstract, [[field, type, doc, flags, default]...]] each.
BATON_REGISTER_GLOBAL("node.ListTypes").set_body_typed([] {
  Array<Any> out;
  for (const TypeInfo* info : TypeInfo::List()) {
    Array<Any> fields;
    for (const FieldInfo& f : info->fields) {
      fields.push_back(
          Array<Any>{Any(f.name), Any(f.type_name), Any(f.doc), Any(static_cast<int>(f.flags)), f.default_value});
    }
    out.push_back(Array<Any>{Any(info->key), Any(Object::TypeIndex2Key(info->parent)), Any(info->doc),
                             Any(info->create == nullptr), Any(fields)});
  }
  return out;
});

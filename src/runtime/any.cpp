// SPDX-License-Identifier: Apache-2.0
#include <baton/runtime/any.h>
#include <baton/runtime/array.h>
#include <baton/runtime/bytes.h>
#include <baton/runtime/map.h>
#include <baton/runtime/named.h>
#include <baton/runtime/string.h>
#include <baton/support/pages.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <new>

namespace baton::runtime {

std::string ValueKindName(const BatonValue& v) {
  switch (v.type_code) {
    case kBatonNull:
      return "None";
    case kBatonInt:
      return "int";
    case kBatonBool:
      return "bool";
    case kBatonFloat:
      return "float";
    case kBatonHandle:
      return "handle";
    case kBatonDType:
      return "dtype";
    case kBatonDevice:
      return "Device";
    case kBatonStr:
      return "str";
    case kBatonBytes:
      return "bytes";
    case kBatonTensor:
      return "DLTensor";
    case kBatonObject:
      return reinterpret_cast<Object*>(v.v_obj)->GetTypeKey();
    default:
      return "value of unknown type code " + std::to_string(v.type_code);
  }
}

void ThrowValueMismatch(const char* want, const BatonValue& got) {
  std::string text = std::string("expected ") + want + ", got " + ValueKindName(got);
  if (got.type_code == kBatonInt) text += " " + std::to_string(got.v_int64);
  if (got.type_code == kBatonStr && got.v_str) text += " \"" + std::string(got.v_str).substr(0, 60) + "\"";
  throw TypeError(text);
}

constexpr size_t kLargeText = 4 << 20;

Object* NewStringObj(const char* data, size_t size) {
  // One allocation: the characters lie behind the object.
  void* mem = AllocBlock(sizeof(StringObj) + size + 1);
  if (size >= kLargeText) support::AdviseLarge(mem, size);
  auto* s = new (mem) StringObj;
  char* chars = reinterpret_cast<char*>(s + 1);
  if (size) memcpy(chars, data, size);
  chars[size] = 0;
  s->data = chars;
  s->size = size;
  ObjectAccess::Init(s, StringObj::RuntimeTypeIndex(), [](Object* o) {
    const size_t bytes = sizeof(StringObj) + static_cast<StringObj*>(o)->size + 1;
    static_cast<StringObj*>(o)->~StringObj();
    FreeBlock(o, bytes);
  });
  return s;
}

namespace {
const BytesObj* AsBytes(const BatonValue& v) {
  if (v.type_code != kBatonObject) return nullptr;
  auto* o = reinterpret_cast<const Object*>(v.v_obj);
  return o->IsInstance<BytesObj>() ? static_cast<const BytesObj*>(o) : nullptr;
}
}  // namespace

Object* OwnRawString(const BatonValue& v) {
  Object* o = nullptr;
  if (v.type_code == kBatonStr) o = NewStringObj(v.v_str, strlen(v.v_str));
  if (v.type_code == kBatonBytes) o = NewStringObj(v.v_bytes->data, v.v_bytes->size);
  if (v.type_code == kBatonDType) {
    std::string s = DataType2String(v.v_dtype);
    o = NewStringObj(s.data(), s.size());
  }
  if (const BytesObj* b = AsBytes(v)) o = NewStringObj(b->data.data(), b->data.size());
  if (o) ObjectAccess::IncRef(o);
  return o;
}

Object* OwnRaw(const BatonValue& v) {
  if (v.type_code == kBatonBytes) {
    Bytes b(std::string(v.v_bytes->data, v.v_bytes->size));
    return ObjectAccess::Steal(b);
  }
  Object* o = NewStringObj(v.v_str, strlen(v.v_str));
  ObjectAccess::IncRef(o);
  return o;
}

namespace {
const StringObj* AsString(const BatonValue& v) {
  if (v.type_code != kBatonObject) return nullptr;
  auto* o = reinterpret_cast<const Object*>(v.v_obj);
  return o->IsInstance<StringObj>() ? static_cast<const StringObj*>(o) : nullptr;
}
uint64_t Mix(uint64_t x) {
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93ull;
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93ull;
  return x ^ (x >> 32);
}
}  // namespace

bool ValueTraits<std::string>::Is(const BatonValue& v) {
  return v.type_code == kBatonStr || v.type_code == kBatonBytes || AsString(v) || AsBytes(v);
}
std::string ValueTraits<std::string>::From(const BatonValue& v) {
  if (v.type_code == kBatonStr) return v.v_str;
  if (v.type_code == kBatonBytes) return std::string(v.v_bytes->data, v.v_bytes->size);
  if (const StringObj* s = AsString(v)) return std::string(s->data, s->size);
  if (const BytesObj* b = AsBytes(v)) return b->data;
  if (v.type_code == kBatonDType) return DataType2String(v.v_dtype);
  ThrowValueMismatch("str", v);
}

DataType ValueTraits<DataType>::From(const BatonValue& v) {
  if (v.type_code == kBatonDType) return v.v_dtype;
  if (ValueTraits<std::string>::Is(v)) return String2DataType(ValueTraits<std::string>::From(v));
  ThrowValueMismatch("dtype", v);
}

namespace {
/// The types that are declared to have names. Few, so that a look through them costs less than a table.
struct Names {
  static constexpr size_t kTypes = 4;
  struct {
    uint32_t type;
    NameOfObject name;
  } row[kTypes];
  std::atomic<size_t> size{0};  ///< rows below it do not change any more
  std::mutex mutex;
};
Names names;

/// The name that a key is hashed by; null if it has none.
const StringObj* NameOf(const BatonValue& v) {
  if (v.type_code != kBatonObject) return nullptr;
  auto* o = reinterpret_cast<const Object*>(v.v_obj);
  for (size_t i = 0, n = names.size.load(std::memory_order_acquire); i < n; ++i) {
    if (names.row[i].type == o->type_index()) return static_cast<const StringObj*>(names.row[i].name(o).get());
  }
  return nullptr;
}
}  // namespace

void DeclareNamed(uint32_t type_index, NameOfObject name) {
  std::lock_guard lock(names.mutex);
  const size_t n = names.size.load(std::memory_order_relaxed);
  if (n == Names::kTypes) throw InternalError("more than " + std::to_string(n) + " types of objects with names");
  names.row[n] = {type_index, name};
  names.size.store(n + 1, std::memory_order_release);
}

const MapObj::Entry* FindNamed(const MapObj* map, std::string_view name) {
  if (!map) return nullptr;
  // Maps have no keys of borrowed characters: these ask for a key of this name.
  const BatonByteArray chars{name.data(), name.size()};
  BatonValue v{kBatonBytes, 0, {.v_bytes = &chars}};
  return map->Find(Any::Adopt(v));
}

namespace {
/// The payload as a number. The upper half of a 32-bit address is ignored.
int64_t PayloadOf(const BatonValue& v) {
  if (sizeof(void*) < 8 && (v.type_code == kBatonHandle || v.type_code >= kBatonStr)) {
    return reinterpret_cast<intptr_t>(v.v_handle);
  }
  return v.v_int64;
}
}  // namespace

bool Any::Same(const Any& o) const {
  if (o.v_.type_code == kBatonBytes) {
    const StringObj* a = NameOf(v_);
    return a && std::string_view(a->data, a->size) == std::string_view(o.v_.v_bytes->data, o.v_.v_bytes->size);
  }
  if (const StringObj* a = AsString(v_)) {
    const StringObj* b = AsString(o.v_);
    return b && (a == b || std::string_view(a->data, a->size) == std::string_view(b->data, b->size));
  }
  if (const BytesObj* a = AsBytes(v_)) {
    const BytesObj* b = AsBytes(o.v_);
    return b && a->data == b->data;
  }
  return v_.type_code == o.v_.type_code && PayloadOf(v_) == PayloadOf(o.v_);
}

uint64_t Any::Hash() const {
  auto chars = [](const char* s, uint64_t n) {
    uint64_t h = 0x9e3779b97f4a7c15ull ^ n;
    for (uint64_t i = 0; i < n; ++i) h = (h ^ static_cast<unsigned char>(s[i])) * 0x100000001b3ull;
    return Mix(h);
  };
  if (const StringObj* a = AsString(v_)) return chars(a->data, a->size);
  if (const BytesObj* a = AsBytes(v_)) return chars(a->data.data(), a->data.size());
  if (const StringObj* a = NameOf(v_)) return chars(a->data, a->size);
  if (v_.type_code == kBatonBytes) return chars(v_.v_bytes->data, v_.v_bytes->size);
  return Mix(static_cast<uint64_t>(PayloadOf(v_)) + v_.type_code);
}

void ThrowIndex(int64_t index, size_t size) {
  throw Error("IndexError", "index " + std::to_string(index) + " is outside an array of " + std::to_string(size));
}

void ThrowKey(const Any& key) {
  std::string text =
      ValueTraits<std::string>::Is(key.raw()) ? "\"" + key.As<std::string>() + "\"" : ValueKindName(key.raw());
  throw Error("KeyError", "no such key: " + text);
}

const MapObj::Entry* MapObj::Find(const Any& key) const {
  if (table_.empty()) return nullptr;
  uint64_t h = key.Hash(), mask = table_.size() - 1;
  for (uint64_t i = h & mask; table_[i] != 0; i = (i + 1) & mask) {
    const Entry& e = entries[table_[i] - 1];
    if (e.hash == h && e.key.Same(key)) return &e;
  }
  return nullptr;
}

void MapObj::Rehash() {
  size_t n = 8;
  while (n < entries.size() * 2 + 2) n *= 2;
  table_.assign(n, 0);
  for (size_t k = 0; k < entries.size(); ++k) {
    uint64_t i = entries[k].hash & (n - 1);
    while (table_[i] != 0) i = (i + 1) & (n - 1);
    table_[i] = static_cast<int32_t>(k + 1);
  }
}

void MapObj::Set(Any key, Any value) {
  if (const Entry* e = Find(key)) {
    const_cast<Entry*>(e)->value = std::move(value);
    return;
  }
  uint64_t h = key.Hash();
  entries.push_back({std::move(key), std::move(value), h});
  if (entries.size() * 2 > table_.size()) {
    Rehash();
  } else {
    uint64_t i = h & (table_.size() - 1);
    while (table_[i] != 0) i = (i + 1) & (table_.size() - 1);
    table_[i] = static_cast<int32_t>(entries.size());
  }
}

bool MapObj::Erase(const Any& key) {
  const Entry* e = Find(key);
  if (!e) return false;
  entries.erase(entries.begin() + (e - entries.data()));
  Rehash();
  return true;
}

}  // namespace baton::runtime

namespace {
// Containers have no field table, but their keys must be known to look-ups by key.
const bool registered_any = [] {
  baton::runtime::StringObj::RuntimeTypeIndex();
  baton::runtime::BytesObj::RuntimeTypeIndex();
  baton::runtime::ArrayObj::RuntimeTypeIndex();
  baton::runtime::MapObj::RuntimeTypeIndex();
  baton::runtime::ErrorObj::RuntimeTypeIndex();
  return true;
}();
}  // namespace

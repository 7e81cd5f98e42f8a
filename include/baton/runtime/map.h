// SPDX-License-Identifier: Apache-2.0
// Map<K, V>: a hash map object that iterates in the order of insertion, so that nothing depends on addresses.
// Keys compare as Any::Same does: strings by content, numbers by value, other objects by identity.
#pragma once

#include <baton/runtime/array.h>

#include <utility>
#include <vector>

namespace baton::runtime {

class BATON_DLL MapObj : public Object {
 public:
  static constexpr const char* _type_key = "runtime.Map";
  static constexpr uint32_t _type_index = TypeIndex::kRuntimeMap;
  struct Entry {
    Any key;
    Any value;
    uint64_t hash;
  };
  std::vector<Entry> entries;  ///< in order of insertion
  const Entry* Find(const Any& key) const;
  void Set(Any key, Any value);
  bool Erase(const Any& key);
  BATON_DECLARE_FINAL_OBJECT_INFO(MapObj, Object)

 private:
  void Rehash();
  std::vector<int32_t> table_;  ///< open addressing; index + 1 into entries, 0 is free
};

[[noreturn]] BATON_DLL void ThrowKey(const Any& key);

template <class K = Any, class V = Any>
class Map : public ObjectRef {
 public:
  using ContainerType = MapObj;
  Map() : ObjectRef(make_object<MapObj>()) {}
  Map(std::initializer_list<std::pair<K, V>> init) : Map() {
    for (const auto& [k, v] : init) Set(k, v);
  }
  explicit Map(ObjectPtr<Object> n) : ObjectRef(std::move(n)) {}
  const MapObj* get() const { return static_cast<const MapObj*>(data_.get()); }
  const MapObj* operator->() const { return get(); }
  size_t size() const { return get() ? get()->entries.size() : 0; }
  bool empty() const { return size() == 0; }
  bool count(const K& k) const { return get() && get()->Find(Any(k)) != nullptr; }
  decltype(auto) at(const K& k) const {
    const MapObj::Entry* e = get() ? get()->Find(Any(k)) : nullptr;
    if (!e) ThrowKey(Any(k));
    return SlotAs<V>(e->value);
  }
  decltype(auto) operator[](const K& k) const { return at(k); }
  V Get(const K& k, const V& default_value) const {
    const MapObj::Entry* e = get() ? get()->Find(Any(k)) : nullptr;
    return e ? V(SlotAs<V>(e->value)) : default_value;
  }
  void Set(const K& k, const V& v) { CopyOnWrite()->Set(Any(k), Any(v)); }
  void erase(const K& k) { CopyOnWrite()->Erase(Any(k)); }
  struct iterator {
    const MapObj::Entry* p;
    std::pair<K, V> operator*() const { return {K(SlotAs<K>(p->key)), V(SlotAs<V>(p->value))}; }
    iterator& operator++() {
      ++p;
      return *this;
    }
    bool operator!=(const iterator& o) const { return p != o.p; }
    bool operator==(const iterator& o) const { return p == o.p; }
  };
  iterator begin() const { return {get() ? get()->entries.data() : nullptr}; }
  iterator end() const { return {get() ? get()->entries.data() + get()->entries.size() : nullptr}; }
  MapObj* CopyOnWrite() {
    if (!get()) {
      data_ = make_object<MapObj>();
    } else if (!data_.unique()) {
      auto n = make_object<MapObj>(*get());
      data_ = std::move(n);
    }
    return static_cast<MapObj*>(data_.get());
  }
};

template <class K, class V>
struct HasOwnTraits<Map<K, V>> : std::true_type {};

template <class K, class V>
struct ValueTraits<Map<K, V>> {
  static std::string Name() { return "Map"; }
  static bool Is(const BatonValue& v) {
    if (v.type_code == kBatonNull) return true;
    if (v.type_code != kBatonObject || !reinterpret_cast<Object*>(v.v_obj)->IsInstance<MapObj>()) return false;
    for (const auto& e : reinterpret_cast<MapObj*>(v.v_obj)->entries) {
      if (!ValueTraits<K>::Is(e.key.raw()) || !ValueTraits<V>::Is(e.value.raw())) return false;
    }
    return true;
  }
  static Map<K, V> From(const BatonValue& v) {
    if (v.type_code == kBatonNull) return Map<K, V>(ObjectPtr<Object>());
    if (v.type_code != kBatonObject || !reinterpret_cast<Object*>(v.v_obj)->IsInstance<MapObj>()) {
      ThrowValueMismatch("Map", v);
    }
    auto* obj = reinterpret_cast<MapObj*>(reinterpret_cast<Object*>(v.v_obj));
    for (const auto& e : obj->entries) {
      if (!ValueTraits<K>::Is(e.key.raw())) ThrowValueMismatch("Map key", e.key.raw());
      if (!ValueTraits<V>::Is(e.value.raw())) {
        Map<K, V> out;
        for (const auto& x : obj->entries) {
          out.Set(ValueTraits<K>::From(x.key.raw()), ValueTraits<V>::From(x.value.raw()));
        }
        return out;
      }
    }
    return Map<K, V>(ObjectPtr<Object>(obj));
  }
  static void To(const Map<K, V>& x, BatonValue* v) { ValueTraits<ObjectRef>::To(x, v); }
};

}  // namespace baton::runtime

namespace baton {
using runtime::Map;
}

// SPDX-License-Identifier: Apache-2.0
// A hash map from object addresses, for marks during one traversal. Open addressing: one cache miss a look-up.
// Never iterated: the order of addresses must not decide anything.
#pragma once

#include <baton/runtime/object.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace baton {

template <class V>
class PointerMap {
 public:
  /// The value of `key`, or null. Valid until the next insertion.
  V* Find(const void* key) {
    if (slots_.empty()) return nullptr;
    Slot& s = slots_[Probe(key)];
    return s.key ? &s.value : nullptr;
  }
  const V* Find(const void* key) const { return const_cast<PointerMap*>(this)->Find(key); }
  bool Has(const void* key) const { return Find(key) != nullptr; }
  /// The value of `key`, made if there is none; `*fresh` says which.
  V& Insert(const void* key, bool* fresh = nullptr) {
    if ((size_ + 1) * 2 > slots_.size()) Grow();
    Slot& s = slots_[Probe(key)];
    if (fresh) *fresh = !s.key;
    if (!s.key) {
      s.key = key;
      ++size_;
    }
    return s.value;
  }
  V& operator[](const void* key) { return Insert(key); }
  size_t size() const { return size_; }
  void Clear() {
    if (size_) {
      slots_.clear();
      size_ = 0;
    }
  }

 private:
  struct Slot {
    const void* key = nullptr;
    V value{};
  };
  size_t Probe(const void* key) const {
    const size_t mask = slots_.size() - 1;
    size_t i = (reinterpret_cast<uintptr_t>(key) * 0x9e3779b97f4a7c15u) >> shift_;
    while (slots_[i].key && slots_[i].key != key) i = (i + 1) & mask;
    return i;
  }
  void Grow() {
    std::vector<Slot> old = std::move(slots_);
    const size_t n = old.empty() ? 16 : old.size() * 2;
    slots_ = std::vector<Slot>(n);
    shift_ = 64 - __builtin_ctzll(n);
    for (Slot& s : old) {
      if (s.key) slots_[Probe(s.key)] = std::move(s);
    }
  }
  std::vector<Slot> slots_;
  size_t size_ = 0;
  int shift_ = 60;
};

struct Mark {};
/// A set of addresses.
class PointerSet {
 public:
  /// True if `p` was not in it.
  bool Add(const void* p) {
    bool fresh = false;
    map_.Insert(p, &fresh);
    return fresh;
  }
  bool Has(const void* p) const { return map_.Has(p); }
  size_t size() const { return map_.size(); }
  void Clear() { map_.Clear(); }

 private:
  PointerMap<Mark> map_;
};

}  // namespace baton

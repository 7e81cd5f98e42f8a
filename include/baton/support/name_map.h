// SPDX-License-Identifier: Apache-2.0
// A hash map from names, for text that is read or written. Open addressing: two cache misses a look-up, the slot and
// the name. Names are not copied: their characters must outlive the map. Nothing is taken out but all at once.
#pragma once

#include <baton/support/hash.h>

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace baton::support {

template <class V>
class NameMap {
 public:
  /// The value of `name`, or null. Valid until the next insertion.
  V* Find(std::string_view name) {
    if (slots_.empty()) return nullptr;
    Slot& s = slots_[Probe(name, Hash(name))];
    return s.used ? &s.value : nullptr;
  }
  /// The value of `name`, made if there is none; `*fresh` says which.
  V& Insert(std::string_view name, bool* fresh = nullptr) {
    if ((size_ + 1) * 2 > slots_.size()) Grow();
    const uint32_t hash = Hash(name);
    Slot& s = slots_[Probe(name, hash)];
    if (fresh) *fresh = !s.used;
    if (!s.used) {
      s.text = name.data(), s.size = name.size(), s.hash = hash, s.used = true;
      ++size_;
    }
    return s.value;
  }
  V& operator[](std::string_view name) { return Insert(name); }
  size_t size() const { return size_; }
  void Clear() {
    slots_.clear();
    size_ = 0;
  }

 private:
  struct Slot {
    const char* text = nullptr;
    size_t size = 0;
    uint32_t hash = 0;
    bool used = false;
    V value{};
  };
  static uint32_t Hash(std::string_view name) { return static_cast<uint32_t>(HashString(name)); }
  size_t Probe(std::string_view name, uint32_t hash) const {
    const size_t mask = slots_.size() - 1;
    size_t i = hash & mask;
    while (slots_[i].used && !(slots_[i].hash == hash && std::string_view(slots_[i].text, slots_[i].size) == name)) {
      i = (i + 1) & mask;
    }
    return i;
  }
  void Grow() {
    std::vector<Slot> old(slots_.empty() ? 16 : slots_.size() * 2);
    old.swap(slots_);
    const size_t mask = slots_.size() - 1;
    for (Slot& s : old) {
      if (!s.used) continue;
      size_t i = s.hash & mask;
      while (slots_[i].used) i = (i + 1) & mask;
      slots_[i] = std::move(s);
    }
  }
  std::vector<Slot> slots_;  ///< a power of two, at most half of them used
  size_t size_ = 0;
};

}  // namespace baton::support

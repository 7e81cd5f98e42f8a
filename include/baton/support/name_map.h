// SPDX-License-Identifier: Apache-2.0
// A hash map from names, for text that is read or written. Names are not copied: their characters must outlive the map.
// Nothing is taken out but all at once. Names that count up, as most of a large program do, lie side by side: entries
// in the order in which they came, their places by what is before the last two digits, with these digits added. In a
// plain hash table each look-up missed the cache, a fifth of the time that a million lets took to print and read.
#pragma once

#include <baton/support/hash.h>

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace baton::support {

template <class V>
class NameMap {
 public:
  /// The value of `name`, or null. Valid until the map is cleared.
  V* Find(std::string_view name) {
    Entry* e = heads_.empty() ? nullptr : Look(name, Hash(name));
    return e ? &e->value : nullptr;
  }
  /// The value of `name`, made if there is none; `*fresh` says which.
  V& Insert(std::string_view name, bool* fresh = nullptr) {
    if (size_ == heads_.size()) Grow();
    const uint32_t hash = Hash(name);
    Entry* e = Look(name, hash);
    if (fresh) *fresh = !e;
    if (!e) {
      if (size_ == chunks_.size() * kChunk) chunks_.push_back(std::make_unique<Entry[]>(kChunk));
      e = &At(size_);
      uint32_t& head = heads_[hash & (heads_.size() - 1)];
      e->text = name.data(), e->size = name.size(), e->hash = hash, e->next = head;
      head = static_cast<uint32_t>(++size_);
    }
    return e->value;
  }
  V& operator[](std::string_view name) { return Insert(name); }
  size_t size() const { return size_; }
  void Clear() {
    heads_.clear();
    chunks_.clear();
    size_ = 0;
  }

 private:
  static constexpr size_t kChunk = 16;
  struct Entry {
    const char* text = nullptr;
    size_t size = 0;
    uint32_t hash = 0;
    uint32_t next = 0;  ///< number of the one before it in its place, from 1; 0: none
    V value{};
  };
  static uint32_t Hash(std::string_view name) {
    uint32_t last = 0, weight = 1;
    for (; weight < 100 && !name.empty() && name.back() >= '0' && name.back() <= '9'; weight *= 10) {
      last += weight * static_cast<uint32_t>(name.back() - '0');
      name.remove_suffix(1);
    }
    return static_cast<uint32_t>(HashString(name)) + last;
  }
  Entry& At(size_t i) { return chunks_[i / kChunk][i % kChunk]; }
  Entry* Look(std::string_view name, uint32_t hash) {
    for (uint32_t i = heads_[hash & (heads_.size() - 1)]; i;) {
      Entry& e = At(i - 1);
      if (e.hash == hash && std::string_view(e.text, e.size) == name) return &e;
      i = e.next;
    }
    return nullptr;
  }
  void Grow() {
    heads_.assign(heads_.empty() ? 16 : heads_.size() * 2, 0);
    for (size_t i = 0; i < size_; ++i) {
      uint32_t& head = heads_[At(i).hash & (heads_.size() - 1)];
      At(i).next = head;
      head = static_cast<uint32_t>(i + 1);
    }
  }
  std::vector<uint32_t> heads_;  ///< the latest of each place; a power of two of them, as many as entries or more
  std::vector<std::unique_ptr<Entry[]>> chunks_;
  size_t size_ = 0;
};

}  // namespace baton::support

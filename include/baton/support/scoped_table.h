// SPDX-License-Identifier: Apache-2.0
// A hash table with scopes: what is added within a scope is forgotten at its end. The table for value numbering.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace baton::support {

/// Values found by a hash and a comparison that the caller gives.
template <class V>
class ScopedTable {
 public:
  /// The latest value with this hash for which `same(value)` holds; null if there is none.
  template <class Same>
  const V* Find(uint64_t hash, Same same) const {
    if (heads_.empty()) return nullptr;
    for (uint32_t i = heads_[Home(hash)]; i; i = entries_[i - 1].next) {
      const Entry& e = entries_[i - 1];
      if (e.hash == hash && same(e.value)) return &e.value;
    }
    return nullptr;
  }
  void Add(uint64_t hash, V value) {
    if (entries_.size() >= heads_.size()) Widen();
    entries_.push_back({std::move(value), hash, 0});
    Link(entries_.size());
  }
  size_t size() const { return entries_.size(); }

  /// Forgets at its end what has been added since its begin.
  class Scope {
   public:
    explicit Scope(ScopedTable* table) : table_(table), outside_(table->size()) {}
    ~Scope() { table_->Forget(outside_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    ScopedTable* table_;
    size_t outside_;
  };

 private:
  struct Entry {
    V value;
    uint64_t hash;
    uint32_t next;  // place of the one before it with the same home, from 1; 0: none
  };
  size_t Home(uint64_t hash) const { return (hash * 0x9e3779b97f4a7c15u) >> (64 - bits_); }
  void Link(size_t place) {
    uint32_t& head = heads_[Home(entries_[place - 1].hash)];
    entries_[place - 1].next = head;
    head = static_cast<uint32_t>(place);
  }
  void Widen() {
    bits_ = bits_ ? bits_ + 1 : 6;
    heads_.assign(size_t{1} << bits_, 0);
    for (size_t place = 1; place <= entries_.size(); ++place) Link(place);
  }
  void Forget(size_t outside) {
    // The latest entry of all is the latest of its home.
    for (; entries_.size() > outside; entries_.pop_back()) {
      heads_[Home(entries_.back().hash)] = entries_.back().next;
    }
  }

  std::vector<Entry> entries_;
  std::vector<uint32_t> heads_;  // as many as a power of two: the latest entry of each home
  int bits_ = 0;
};

}  // namespace baton::support

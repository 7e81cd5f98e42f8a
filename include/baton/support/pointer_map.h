// SPDX-License-Identifier: Apache-2.0
// A hash map from addresses of objects, for marks during one traversal. Open addressing: one cache miss a look-up.
// Never iterated: the order of addresses must not decide anything.
#pragma once

#include <baton/support/pages.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>
#include <utility>

namespace baton {

/// Whether a default V is all bytes zero, and a V may be moved by copying its bytes and forgetting the old place:
/// numbers and pointers, and what says so by a member type `ZeroIsDefault`.
template <class V>
concept ZeroDefault = (std::is_trivially_default_constructible_v<V> && std::is_trivially_copyable_v<V>) ||
                      requires { typename V::ZeroIsDefault; };

template <class V>
class PointerMap {
 public:
  PointerMap() = default;
  PointerMap(const PointerMap& other) { CopyFrom(other); }
  PointerMap(PointerMap&& other) noexcept { Swap(&other); }
  PointerMap& operator=(PointerMap other) noexcept {
    Swap(&other);
    return *this;
  }
  ~PointerMap() { Release(slots_, slots_ ? mask_ + 1 : 0); }

  /// The value of `key`, or null. Valid until the next insertion.
  V* Find(const void* key) {
    if (!slots_) return nullptr;
    Slot& s = slots_[Probe(key)];
    return s.key ? &s.value : nullptr;
  }
  const V* Find(const void* key) const { return const_cast<PointerMap*>(this)->Find(key); }
  bool Has(const void* key) const { return Find(key) != nullptr; }
  /// The value of `key`, made if there is none; `*fresh` says which.
  V& Insert(const void* key, bool* fresh = nullptr) {
    if ((size_ + 1) * 2 > mask_) [[unlikely]]
      Grow();
    Slot& s = slots_[Probe(key)];
    if (fresh) *fresh = !s.key;
    if (!s.key) {
      s.key = key;
      ++size_;
    }
    return s.value;
  }
  V& operator[](const void* key) { return Insert(key); }
  /// Brings the place of `key` into the cache, for a look-up soon.
  void Prefetch(const void* key) const {
    if (slots_) __builtin_prefetch(&slots_[Home(key)], 1);
  }
  /// False if there was none.
  bool Erase(const void* key) {
    if (!slots_) return false;
    size_t hole = Probe(key);
    if (!slots_[hole].key) return false;
    // What was pushed past the hole by it moves back, so that no look-up stops short.
    for (size_t i = (hole + 1) & mask_; slots_[i].key; i = (i + 1) & mask_) {
      if (((i - Home(slots_[i].key)) & mask_) < ((i - hole) & mask_)) continue;
      slots_[hole] = std::move(slots_[i]);
      hole = i;
    }
    if constexpr (kZero) {
      slots_[hole].~Slot();  // a value made anew would not be destroyed with the table
      __builtin_memset(static_cast<void*>(&slots_[hole]), 0, sizeof(Slot));
    } else {
      slots_[hole] = Slot();
    }
    --size_;
    return true;
  }
  size_t size() const { return size_; }
  void Clear() {
    if (size_) PointerMap().Swap(this);
  }

 private:
  struct Slot {
    const void* key = nullptr;
    V value{};
  };
  // Zeroed memory is a table of empty slots, as it is.
  static constexpr bool kZero = ZeroDefault<V>;

  /// Neighbours in memory are neighbours here, since they are visited one after the other: addresses are scattered by
  /// kilobytes, and keep their order within one.
  size_t Home(const void* key) const {
    const auto a = reinterpret_cast<uintptr_t>(key);
    return ((((a >> kBlockBits) * 0x9e3779b97f4a7c15u) >> shift_) + ((a >> kGrainBits) & kInBlock)) & mask_;
  }
  size_t Probe(const void* key) const {
    size_t i = Home(key);
    while (slots_[i].key && slots_[i].key != key) i = (i + 1) & mask_;
    return i;
  }
  void Swap(PointerMap* other) noexcept {
    std::swap(slots_, other->slots_);
    std::swap(mask_, other->mask_);
    std::swap(size_, other->size_);
    std::swap(shift_, other->shift_);
  }
  static Slot* Make(size_t n) {
    auto* slots = static_cast<Slot*>(support::NewPages(n * sizeof(Slot)));
    if constexpr (!kZero) {
      for (size_t i = 0; i < n; ++i) new (&slots[i]) Slot();
    }
    return slots;
  }
  static void Release(Slot* slots, size_t n) noexcept {
    if constexpr (!std::is_trivially_destructible_v<V>) {
      for (size_t i = 0; i < n; ++i) {
        if (!kZero || slots[i].key) slots[i].~Slot();
      }
    }
    if (slots) support::DeletePages(slots, n * sizeof(Slot));
  }
  void CopyFrom(const PointerMap& other) {
    if (!other.size_) return;
    slots_ = Make(other.mask_ + 1);
    mask_ = other.mask_, size_ = other.size_, shift_ = other.shift_;
    for (size_t i = 0; i <= mask_; ++i) slots_[i] = other.slots_[i];
  }
  [[gnu::noinline]] void Grow() {
    Slot* const old = slots_;
    const size_t had = old ? mask_ + 1 : 0, n = old ? had * (had < 4096 ? 4 : 2) : 16;
    slots_ = Make(n);
    mask_ = n - 1;
    shift_ = 64 - __builtin_ctzll(n);
    for (size_t i = 0; i < had; ++i) {
      if (!old[i].key) continue;
      Slot& to = slots_[Probe(old[i].key)];
      if constexpr (kZero) {
        __builtin_memcpy(static_cast<void*>(&to), static_cast<const void*>(&old[i]), sizeof(Slot));
      } else {
        to = std::move(old[i]);
      }
    }
    if constexpr (kZero) {
      if (old) support::DeletePages(old, had * sizeof(Slot));
    } else {
      Release(old, had);
    }
  }
  static constexpr int kBlockBits = 10, kGrainBits = 5;
  static constexpr size_t kInBlock = (1 << (kBlockBits - kGrainBits)) - 1;
  Slot* slots_ = nullptr;
  size_t mask_ = 0, size_ = 0;
  int shift_ = 60;
};

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
  struct Mark {};
  PointerMap<Mark> map_;
};

}  // namespace baton

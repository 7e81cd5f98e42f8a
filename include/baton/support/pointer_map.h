// SPDX-License-Identifier: Apache-2.0
// A map from addresses of objects, for marks during one traversal. Never iterated: the order of addresses must not
// decide anything.
//
// Few keys lie in a hash table. From some hundred on, those that are cells of cell pages (cells.h), as objects are,
// have their values in the order of the cells, and a bit each that says whether there is one: the bits of a million
// objects fit the second cache, and objects that were made one after the other are visited so, mostly. A hash table of
// a large program costs a cache miss a look-up; that was most of the time that passes over a million nodes took.
#pragma once

#include <baton/support/cells.h>
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

/// A key with its value. A V that holds its key itself (`Key()`, null by default, and `SetKey`) is not given it twice.
template <class V>
struct PointerSlot {
  const void* Key() const { return key; }
  void SetKey(const void* k) { key = k; }
  const void* key = nullptr;
  [[no_unique_address]] V value{};
};
template <class V>
  requires requires(V v, const void* k) { v.SetKey(k); }
struct PointerSlot<V> {
  const void* Key() const { return value.Key(); }
  void SetKey(const void* k) { value.SetKey(k); }
  V value{};
};

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
  ~PointerMap() {
    Release(slots_, slots_ ? mask_ + 1 : 0);
    delete pages_;
  }

  /// The value of `key`, or null. Valid until another key is inserted.
  V* Find(const void* key) {
    if (pages_) {
      const Span* s = pages_->Find(PageOf(key));
      if (!s) return nullptr;
      uint32_t cell;
      if (s->Cell(key, &cell)) return s->Has(cell) ? &s->values[cell] : nullptr;
    }
    if (!slots_) return nullptr;
    Slot& s = slots_[Probe(key)];
    return s.Key() ? &s.value : nullptr;
  }
  const V* Find(const void* key) const { return const_cast<PointerMap*>(this)->Find(key); }
  bool Has(const void* key) const { return Find(key) != nullptr; }
  /// The value of `key`, made if there is none; `*fresh` says which.
  V& Insert(const void* key, bool* fresh = nullptr) {
    if (pages_) [[likely]] {
      if (V* v = InPages(key, fresh)) return *v;
    }
    if ((hashed_ + 1) * 2 > mask_) [[unlikely]] {
      if (slots_) {  // a key that is there moves no values
        Slot& s = slots_[Probe(key)];
        if (fresh) *fresh = !s.Key();
        if (s.Key()) return s.value;
      }
      if (!pages_ && kPaged && hashed_ >= kFew) {
        Spread();
        return Insert(key, fresh);
      }
      Grow();
    }
    Slot& s = slots_[Probe(key)];
    const bool is_fresh = !s.Key();
    if (fresh) *fresh = is_fresh;
    if (is_fresh) {
      s.SetKey(key);
      ++hashed_;
    }
    return s.value;
  }
  V& operator[](const void* key) { return Insert(key); }
  /// Brings the place of `key` into the cache, for a look-up soon.
  void Prefetch(const void* key) const {
    if (pages_) {
      const Span* s = pages_->Find(PageOf(key));
      uint32_t cell;
      if (s && s->Cell(key, &cell)) __builtin_prefetch(&s->values[cell], 1);
    } else if (slots_) {
      __builtin_prefetch(&slots_[Home(key)], 1);
    }
  }
  /// False if there was none.
  bool Erase(const void* key) {
    if (pages_) {
      const Span* s = pages_->Find(PageOf(key));
      if (!s) return false;
      uint32_t cell;
      if (s->Cell(key, &cell)) {
        if (!s->Has(cell)) return false;
        s->bits[cell / 64] ^= uint64_t{1} << cell % 64;
        s->values[cell].~V();
        if constexpr (kZero) __builtin_memset(static_cast<void*>(&s->values[cell]), 0, sizeof(V));
        --pages_->size;
        return true;
      }
    }
    if (!slots_) return false;
    size_t gap = Probe(key);
    if (!slots_[gap].Key()) return false;
    // Entries that it pushed past the gap move back, so that no look-up stops short.
    for (size_t i = (gap + 1) & mask_; slots_[i].Key(); i = (i + 1) & mask_) {
      if (((i - Home(slots_[i].Key())) & mask_) < ((i - gap) & mask_)) continue;
      slots_[gap] = std::move(slots_[i]);
      gap = i;
    }
    if constexpr (kZero) {
      slots_[gap].~Slot();  // a value made anew would not be destroyed with the table
      __builtin_memset(static_cast<void*>(&slots_[gap]), 0, sizeof(Slot));
    } else {
      slots_[gap] = Slot();
    }
    --hashed_;
    return true;
  }
  size_t size() const { return hashed_ + (pages_ ? pages_->size : 0); }
  void Clear() {
    if (size()) PointerMap().Swap(this);
  }

 private:
  using Slot = PointerSlot<V>;
  static constexpr bool kHeld = requires(V v, const void* k) { v.SetKey(k); };
  // Zeroed memory is a table of empty slots, as it is.
  static constexpr bool kZero = ZeroDefault<V>;
  // A page has room for a value of each of its cells, be they keys or not.
  static constexpr bool kPaged = sizeof(V) <= 64;
  static constexpr size_t kFew = 384;

  static uintptr_t PageOf(const void* key) { return reinterpret_cast<uintptr_t>(key) >> support::kCellPageBits; }

  /// The values of a page's cells; none for other pages.
  struct Span {
    uintptr_t page;
    V* values;  ///< those whose bit is set; the others are zeros, or nothing where zeros are not the default
    uint64_t* bits;
    uint32_t bytes;       ///< of a cell
    uint32_t reciprocal;  ///< of them, times 2^32
    /// False if `key` is not the begin of a cell: then it is in the hash table.
    bool Cell(const void* key, uint32_t* cell) const {
      const uint64_t at = (reinterpret_cast<uintptr_t>(key) & (support::kCellPage - 1)) -
                          support::kCellPageHead;  // wraps before the first
      *cell = static_cast<uint32_t>((at * reciprocal) >> 32);
      return uint64_t{*cell} * bytes == at && values;
    }
    bool Has(uint32_t cell) const { return bits[cell / 64] >> cell % 64 & 1; }
    template <class F>
    void ForEach(F f) const {
      for (uint32_t w = 0; values && w < Words(bytes); ++w) {
        for (uint64_t left = bits[w]; left; left &= left - 1) f(w * 64 + static_cast<uint32_t>(__builtin_ctzll(left)));
      }
    }
    static uint32_t Words(uint32_t bytes) { return static_cast<uint32_t>(support::kCellPage / bytes + 63) / 64; }
  };
  /// Spans by page, and their memory.
  struct Pages {
    Span* spans = nullptr;
    size_t mask = 0, count = 0, size = 0;
    int shift = 60;
    struct Chunk {
      Chunk* next;
      size_t bytes;
    };
    Chunk* chunks = nullptr;
    char *at = nullptr, *end = nullptr;
    size_t next_chunk = 64 << 10;

    Pages() = default;
    Pages(const Pages&) = delete;
    Pages& operator=(const Pages&) = delete;
    ~Pages() {
      if constexpr (!std::is_trivially_destructible_v<V>) {
        for (size_t i = 0; spans && i <= mask; ++i) spans[i].ForEach([&](uint32_t c) { spans[i].values[c].~V(); });
      }
      while (Chunk* c = chunks) {
        chunks = c->next;
        support::DeletePages(c, c->bytes);
      }
      if (spans) support::DeletePages(spans, (mask + 1) * sizeof(Span));
    }
    Span* Probe(uintptr_t page) const {
      size_t i = (page * 0x9e3779b97f4a7c15u) >> shift;
      while (spans[i].page && spans[i].page != page) i = (i + 1) & mask;
      return &spans[i];
    }
    Span* Find(uintptr_t page) const {
      Span* s = Probe(page);
      return s->page ? s : nullptr;
    }
    /// The span of the page of `key`, made if there is none. Throws std::bad_alloc, with nothing changed.
    [[gnu::noinline]] Span* Add(const void* key) {
      if ((count + 1) * 2 > mask) Grow();
      Span* s = Probe(PageOf(key));
      if (s->page) return s;
      Span made{PageOf(key), nullptr, nullptr, 0, 0};
      if (const uint32_t bytes = support::CellBytes(key)) {
        const size_t cells = support::kCellPage / bytes;
        made.bytes = bytes;
        made.reciprocal = static_cast<uint32_t>((uint64_t{1} << 32) / bytes + 1);
        made.values = static_cast<V*>(Take(cells * sizeof(V) + Span::Words(bytes) * 8 + 8));
        const auto end = reinterpret_cast<uintptr_t>(made.values + cells);
        made.bits = reinterpret_cast<uint64_t*>((end + 7) & ~uintptr_t{7});
      }
      *s = made;
      ++count;
      return s;
    }
    void Grow() {
      const size_t n = spans ? (mask + 1) * 4 : 64;
      auto* wider = static_cast<Span*>(support::NewPages(n * sizeof(Span)));
      Span* const old = spans;
      const size_t had = old ? mask + 1 : 0;
      spans = wider;
      mask = n - 1;
      shift = 64 - __builtin_ctzll(n);
      for (size_t i = 0; i < had; ++i) {
        if (old[i].page) *Probe(old[i].page) = old[i];
      }
      if (old) support::DeletePages(old, had * sizeof(Span));
    }
    /// Zeroed.
    void* Take(size_t bytes) {
      bytes = (bytes + 15) & ~size_t{15};
      if (static_cast<size_t>(end - at) < bytes) {
        size_t n = next_chunk;
        while (n < bytes + sizeof(Chunk)) n *= 2;
        auto* c = static_cast<Chunk*>(support::NewPages(n));
        *c = {chunks, n};
        chunks = c;
        at = reinterpret_cast<char*>(c + 1);
        end = reinterpret_cast<char*>(c) + n;
        if (next_chunk < (4 << 20)) next_chunk *= 4;
      }
      void* p = at;
      at += bytes;
      return p;
    }
  };

  /// Into a slot without a key. The old place is forgotten where zeros are the default, else its key stays.
  static void Move(Slot* to, Slot* from) {
    if constexpr (kZero) {
      __builtin_memcpy(static_cast<void*>(to), static_cast<const void*>(from), sizeof(Slot));
    } else {
      *to = std::move(*from);
    }
  }
  /// The value of `key`, null if it belongs into the hash table.
  V* InPages(const void* key, bool* fresh) {
    Span* s = pages_->Probe(PageOf(key));
    if (!s->page) [[unlikely]]
      s = pages_->Add(key);
    uint32_t cell;
    if (!s->Cell(key, &cell)) return nullptr;
    uint64_t& word = s->bits[cell / 64];
    const uint64_t bit = uint64_t{1} << cell % 64;
    V* const v = &s->values[cell];
    const bool is_fresh = !(word & bit);
    if (fresh) *fresh = is_fresh;
    if (is_fresh) {
      if constexpr (!kZero) new (v) V();
      if constexpr (kHeld) v->SetKey(key);
      word |= bit;
      ++pages_->size;
    }
    return v;
  }
  /// From the hash table into pages, as far as its keys are cells of such.
  [[gnu::noinline]] void Spread() {
    PointerMap to;
    to.pages_ = new Pages();
    for (size_t i = 0; slots_ && i <= mask_; ++i) {
      if (slots_[i].Key()) to.pages_->Add(slots_[i].Key());
    }
    while ((hashed_ + 1) * 2 > to.mask_) to.Grow();
    // Nothing throws from here on.
    for (size_t i = 0; slots_ && i <= mask_; ++i) {
      const void* key = slots_[i].Key();
      if (!key) continue;
      if (V* v = to.InPages(key, nullptr)) {
        *v = std::move(slots_[i].value);
      } else {
        Move(&to.slots_[to.Probe(key)], &slots_[i]);
        if constexpr (kZero) __builtin_memset(static_cast<void*>(&slots_[i]), 0, sizeof(Slot));
        ++to.hashed_;
      }
    }
    Swap(&to);
  }

  /// Neighbours in memory are neighbours here, since they are visited one after the other: addresses are scattered by
  /// kilobytes, and keep their order within one.
  size_t Home(const void* key) const {
    const auto a = reinterpret_cast<uintptr_t>(key);
    return ((((a >> kBlockBits) * 0x9e3779b97f4a7c15u) >> shift_) + ((a >> kGrainBits) & kInBlock)) & mask_;
  }
  size_t Probe(const void* key) const {
    size_t i = Home(key);
    while (slots_[i].Key() && slots_[i].Key() != key) i = (i + 1) & mask_;
    return i;
  }
  void Swap(PointerMap* other) noexcept {
    std::swap(slots_, other->slots_);
    std::swap(mask_, other->mask_);
    std::swap(hashed_, other->hashed_);
    std::swap(shift_, other->shift_);
    std::swap(pages_, other->pages_);
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
        if (!kZero || slots[i].Key()) slots[i].~Slot();
      }
    }
    if (slots) support::DeletePages(slots, n * sizeof(Slot));
  }
  void CopyFrom(const PointerMap& other) {
    for (size_t i = 0; other.slots_ && i <= other.mask_; ++i) {
      if (const void* key = other.slots_[i].Key()) Insert(key) = other.slots_[i].value;
    }
    for (size_t i = 0; other.pages_ && other.pages_->spans && i <= other.pages_->mask; ++i) {
      const Span& s = other.pages_->spans[i];
      s.ForEach([&](uint32_t c) {
        Insert(reinterpret_cast<const void*>((s.page << support::kCellPageBits) + support::kCellPageHead +
                                             c * s.bytes)) = s.values[c];
      });
    }
  }
  [[gnu::noinline]] void Grow() {
    Slot* const old = slots_;
    const size_t had = old ? mask_ + 1 : 0, n = old ? had * (had < 4096 ? 4 : 2) : 16;
    slots_ = Make(n);
    mask_ = n - 1;
    shift_ = 64 - __builtin_ctzll(n);
    for (size_t i = 0; i < had; ++i) {
      if (old[i].Key()) Move(&slots_[Probe(old[i].Key())], &old[i]);
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
  size_t mask_ = 0, hashed_ = 0;
  int shift_ = 60;
  Pages* pages_ = nullptr;  ///< where there are many keys
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

// SPDX-License-Identifier: Apache-2.0
// Memory for tables and stacks that may grow to the size of a program. Large ones are mapped by themselves, in large
// pages where the system has them: a table that is read in no order then misses the cache, not the page tables as well,
// and growing moves pages and not bytes.
#pragma once

#include <baton/support/export.h>

#include <cstddef>
#include <type_traits>
#include <utility>

namespace baton::support {

/// `bytes` zeroed bytes, aligned for any scalar; throws std::bad_alloc.
BATON_DLL void* NewPages(size_t bytes);
/// Gives them back; `bytes` as at their making.
BATON_DLL void DeletePages(void* p, size_t bytes) noexcept;
/// The same content with room for `bytes`, more than the `old_bytes` before; what is new has any content. Throws
/// std::bad_alloc, with the old memory as it was.
BATON_DLL void* EnlargePages(void* p, size_t old_bytes, size_t bytes);

/// Memory of malloc's, about to be filled from end to end: large pages where it is large.
BATON_DLL void AdviseLarge(void* p, size_t bytes) noexcept;

/// A stack of plain values that grows without copying once it is large.
template <class T>
class PageStack {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  PageStack() = default;
  PageStack(PageStack&& other) noexcept { Swap(&other); }
  PageStack& operator=(PageStack&& other) noexcept {
    Swap(&other);
    return *this;
  }
  ~PageStack() { DeletePages(data_, room_ * sizeof(T)); }

  void push_back(const T& v) {
    if (size_ == room_) [[unlikely]] {
      const T copy = v;  // it may lie in here
      Grow();
      data_[size_++] = copy;
      return;
    }
    data_[size_++] = v;
  }
  void append(const T* from, size_t n) {
    while (room_ - size_ < n) Grow();
    __builtin_memcpy(data_ + size_, from, n * sizeof(T));
    size_ += n;
  }
  /// More of them, each `v`.
  void Fill(size_t n, const T& v) {
    while (room_ - size_ < n) Grow();
    for (size_t i = 0; i < n; ++i) data_[size_++] = v;
  }
  void pop_back() { --size_; }
  T& back() { return data_[size_ - 1]; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }

 private:
  void Swap(PageStack* other) noexcept {
    std::swap(data_, other->data_);
    std::swap(size_, other->size_);
    std::swap(room_, other->room_);
  }
  [[gnu::noinline]] void Grow() {
    const size_t room = room_ ? room_ * 2 : 64;
    data_ = static_cast<T*>(EnlargePages(data_, room_ * sizeof(T), room * sizeof(T)));
    room_ = room;
  }
  T* data_ = nullptr;
  size_t size_ = 0, room_ = 0;
};

}  // namespace baton::support

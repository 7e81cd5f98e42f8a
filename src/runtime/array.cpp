// SPDX-License-Identifier: Apache-2.0
#include <baton/runtime/array.h>

#include <cstring>

namespace baton::runtime {

// A value is its 16 bytes, wherever they are: moving one is copying them and forgetting the old place.
static void Relocate(Any* to, const Any* from, size_t n) {
  if (n) std::memmove(static_cast<void*>(to), static_cast<const void*>(from), n * sizeof(Any));
}

namespace {
/// Ends with its thread; arrays that are made after that are their own.
struct Empty {
  ObjectPtr<ArrayObj> array = make_object<ArrayObj>();
  ~Empty();
};
thread_local bool tls_ended = false;
Empty::~Empty() { tls_ended = true; }
}  // namespace

ObjectPtr<ArrayObj> EmptyArray() {
  if (tls_ended) return make_object<ArrayObj>();
  static thread_local Empty empty;
  return empty.array;
}

void AnyVector::Grow(size_t at_least) {
  size_t n = size_t{capacity_} * 2;
  if (n < at_least) n = at_least;
  if (n > UINT32_MAX) throw ValueError("an array holds at most 4294967295 elements");
  Any* room = static_cast<Any*>(AllocBlock(n * sizeof(Any)));
  Relocate(room, begin_, size_);
  if (capacity_ > kInline) FreeBlock(begin_, capacity_ * sizeof(Any));
  begin_ = room;
  capacity_ = static_cast<uint32_t>(n);
}

void AnyVector::Append(const Any* from, size_t n) {
  reserve(size_ + n);
  for (size_t i = 0; i < n; ++i) ::new (begin_ + size_++) Any(from[i]);
}

void AnyVector::Take(AnyVector& o) noexcept {
  size_ = o.size_;
  capacity_ = o.capacity_;
  if (capacity_ > kInline) {
    begin_ = o.begin_;
  } else {
    begin_ = Inline();
    Relocate(begin_, o.begin_, size_);
  }
  o.begin_ = o.Inline();
  o.size_ = 0;
  o.capacity_ = kInline;
}

void AnyVector::resize(size_t n) {
  reserve(n);
  while (size_ > n) pop_back();
  while (size_ < n) ::new (begin_ + size_++) Any();
}

void AnyVector::assign(size_t n, const Any& x) {
  const Any copy = x;
  clear();
  reserve(n);
  while (size_ < n) ::new (begin_ + size_++) Any(copy);
}

Any* AnyVector::insert(const Any* at, Any x) {
  const size_t i = static_cast<size_t>(at - begin_);
  if (size_ == capacity_) Grow(size_t{size_} + 1);
  Relocate(begin_ + i + 1, begin_ + i, size_ - i);
  ::new (begin_ + i) Any(std::move(x));
  ++size_;
  return begin_ + i;
}

Any* AnyVector::erase(const Any* from, const Any* to) {
  Any* at = begin_ + (from - begin_);
  const size_t n = static_cast<size_t>(to - from);
  for (size_t i = 0; i < n; ++i) at[i].~Any();
  Relocate(at, at + n, static_cast<size_t>(end() - (at + n)));
  size_ -= static_cast<uint32_t>(n);
  return at;
}

}  // namespace baton::runtime

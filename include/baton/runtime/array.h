// SPDX-License-Identifier: Apache-2.0
// Array<T>: an immutable-by-convention sequence object, copied on write. Elements are 16-byte values of any kind.
#pragma once

#include <baton/runtime/any.h>

#include <initializer_list>
#include <vector>

namespace baton::runtime {

/// The elements of an array: as std::vector<Any> does, but two need no memory besides the object. (Most arrays hold the
/// arguments of a call.)
class BATON_DLL AnyVector {
 public:
  using value_type = Any;
  using iterator = Any*;
  using const_iterator = const Any*;

  AnyVector() = default;
  AnyVector(const AnyVector& o) { Append(o.begin_, o.size_); }
  AnyVector(AnyVector&& o) noexcept { Take(o); }
  ~AnyVector() { Destroy(); }
  AnyVector& operator=(const AnyVector& o) {
    if (this != &o) {
      clear();
      Append(o.begin_, o.size_);
    }
    return *this;
  }
  AnyVector& operator=(AnyVector&& o) noexcept {
    if (this != &o) {
      Destroy();
      Take(o);
    }
    return *this;
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  size_t capacity() const { return capacity_; }
  Any* data() { return begin_; }
  const Any* data() const { return begin_; }
  Any* begin() { return begin_; }
  Any* end() { return begin_ + size_; }
  const Any* begin() const { return begin_; }
  const Any* end() const { return begin_ + size_; }
  Any& operator[](size_t i) { return begin_[i]; }
  const Any& operator[](size_t i) const { return begin_[i]; }
  Any& front() { return begin_[0]; }
  const Any& front() const { return begin_[0]; }
  Any& back() { return begin_[size_ - 1]; }
  const Any& back() const { return begin_[size_ - 1]; }

  template <class... A>
  Any& emplace_back(A&&... a) {
    if (size_ < capacity_) return *::new (begin_ + size_++) Any(std::forward<A>(a)...);
    Any x(std::forward<A>(a)...);  // `a` may lie among the elements that are about to move
    Grow(size_t{size_} + 1);
    return *::new (begin_ + size_++) Any(std::move(x));
  }
  void push_back(Any x) { emplace_back(std::move(x)); }
  void pop_back() { begin_[--size_].~Any(); }
  void clear() {
    while (size_) pop_back();
  }
  void reserve(size_t n) {
    if (n > capacity_) Grow(n);
  }
  void resize(size_t n);
  void assign(size_t n, const Any& x);
  Any* insert(const Any* at, Any x);
  Any* erase(const Any* from, const Any* to);
  Any* erase(const Any* at) { return erase(at, at + 1); }

 private:
  static constexpr uint32_t kInline = 2;
  Any* Inline() { return reinterpret_cast<Any*>(room_); }
  void Append(const Any* from, size_t n);
  void Take(AnyVector& o) noexcept;
  void Destroy() noexcept {
    clear();
    if (capacity_ > kInline) FreeBlock(begin_, capacity_ * sizeof(Any));
  }
  void Grow(size_t at_least);

  Any* begin_ = Inline();
  uint32_t size_ = 0;
  uint32_t capacity_ = kInline;
  alignas(Any) unsigned char room_[kInline * sizeof(Any)];
};

class ArrayObj : public Object {
 public:
  static constexpr const char* _type_key = "runtime.Array";
  static constexpr uint32_t _type_index = TypeIndex::kRuntimeArray;
  AnyVector items;
  BATON_DECLARE_FINAL_OBJECT_INFO(ArrayObj, Object)
};

/// The empty array, one shared instance per thread. Adding an element makes a copy.
BATON_DLL ObjectPtr<ArrayObj> EmptyArray();
[[noreturn]] BATON_DLL void ThrowIndex(int64_t index, size_t size);

/// A value of type T out of an owned slot; references to objects cost no count.
template <class T>
inline decltype(auto) SlotAs(const Any& a) {
  if constexpr (std::is_base_of_v<ObjectRef, T>) {
    // A reference is one pointer, and so is the payload of an object or null value.
    static_assert(sizeof(T) == sizeof(void*));
    return reinterpret_cast<const T&>(a.raw().v_obj);
  } else {
    return a.As<T>();
  }
}

template <class T = Any>
class Array : public ObjectRef {
 public:
  using ContainerType = ArrayObj;
  using value_type = T;
  Array() : ObjectRef(EmptyArray()) {}
  Array(std::initializer_list<T> init) : Array(init.begin(), init.end()) {}
  Array(const std::vector<T>& v) : Array(v.begin(), v.end()) {}  // NOLINT
  explicit Array(size_t n, const T& x) : ObjectRef(make_object<ArrayObj>()) { items().assign(n, Any(x)); }
  template <class It>
  Array(It begin, It end) : ObjectRef(make_object<ArrayObj>()) {
    if constexpr (requires { size_t(end - begin); }) items().reserve(static_cast<size_t>(end - begin));
    for (; begin != end; ++begin) items().emplace_back(T(*begin));
  }
  explicit Array(ObjectPtr<Object> n) : ObjectRef(std::move(n)) {}
  /// An array of a derived kind serves where one of its base is wanted.
  template <class U, class = std::enable_if_t<std::is_base_of_v<T, U> && !std::is_same_v<T, U>>>
  Array(const Array<U>& o) : ObjectRef(o) {}  // NOLINT

  size_t size() const { return get() ? vec().size() : 0; }
  bool empty() const { return size() == 0; }
  decltype(auto) operator[](int64_t i) const {
    if (static_cast<uint64_t>(i) >= size()) ThrowIndex(i, size());
    return SlotAs<T>(vec()[i]);
  }
  decltype(auto) front() const { return (*this)[0]; }
  decltype(auto) back() const { return (*this)[static_cast<int64_t>(size()) - 1]; }
  struct iterator {
    using difference_type = std::ptrdiff_t;
    using value_type = T;
    using pointer = const T*;
    using reference = decltype(SlotAs<T>(std::declval<const Any&>()));
    using iterator_category = std::random_access_iterator_tag;
    const Any* p;
    reference operator*() const { return SlotAs<T>(*p); }
    iterator& operator++() {
      ++p;
      return *this;
    }
    iterator operator++(int) { return {p++}; }
    iterator& operator--() {
      --p;
      return *this;
    }
    iterator& operator+=(difference_type n) {
      p += n;
      return *this;
    }
    iterator& operator-=(difference_type n) {
      p -= n;
      return *this;
    }
    reference operator[](difference_type n) const { return SlotAs<T>(p[n]); }
    iterator operator+(difference_type n) const { return {p + n}; }
    iterator operator-(difference_type n) const { return {p - n}; }
    difference_type operator-(const iterator& o) const { return p - o.p; }
    bool operator==(const iterator& o) const { return p == o.p; }
    bool operator!=(const iterator& o) const { return p != o.p; }
    bool operator<(const iterator& o) const { return p < o.p; }
  };
  iterator begin() const { return {get() ? vec().data() : nullptr}; }
  iterator end() const { return {get() ? vec().data() + vec().size() : nullptr}; }
  std::vector<T> ToVector() const { return std::vector<T>(begin(), end()); }

  void push_back(const T& x) { CopyOnWrite()->items.emplace_back(x); }
  void pop_back() { CopyOnWrite()->items.pop_back(); }
  void Set(int64_t i, const T& x) {
    if (static_cast<uint64_t>(i) >= size()) ThrowIndex(i, size());
    CopyOnWrite()->items[i] = Any(x);
  }
  void resize(size_t n) { CopyOnWrite()->items.resize(n); }
  void reserve(size_t n) { CopyOnWrite()->items.reserve(n); }
  void insert(int64_t at, const T& x) {
    auto* n = CopyOnWrite();
    n->items.insert(n->items.begin() + at, Any(x));
  }
  ArrayObj* CopyOnWrite() {
    if (!get()) {
      data_ = make_object<ArrayObj>();
    } else if (!data_.unique()) {
      auto n = make_object<ArrayObj>();
      n->items = vec();
      data_ = std::move(n);
    }
    return static_cast<ArrayObj*>(data_.get());
  }
  const ArrayObj* get() const { return static_cast<const ArrayObj*>(data_.get()); }
  const ArrayObj* operator->() const { return get(); }
  const AnyVector& vec() const { return get()->items; }

 private:
  AnyVector& items() { return static_cast<ArrayObj*>(data_.get())->items; }
};

template <class T>
struct HasOwnTraits<Array<T>> : std::true_type {};

template <class T>
struct ValueTraits<Array<T>> {
  static std::string Name() { return "Array"; }
  static bool Is(const BatonValue& v) {
    if (v.type_code == kBatonNull) return true;
    if (v.type_code != kBatonObject || !reinterpret_cast<Object*>(v.v_obj)->IsInstance<ArrayObj>()) return false;
    if constexpr (!std::is_same_v<T, Any> && !std::is_same_v<T, ObjectRef>) {
      for (const Any& a : reinterpret_cast<ArrayObj*>(v.v_obj)->items) {
        if (!ValueTraits<T>::Is(a.raw())) return false;
      }
    }
    return true;
  }
  static Array<T> From(const BatonValue& v) {
    if (v.type_code == kBatonNull) return Array<T>(ObjectPtr<Object>());
    if (v.type_code != kBatonObject || !reinterpret_cast<Object*>(v.v_obj)->IsInstance<ArrayObj>()) {
      ThrowValueMismatch("Array", v);
    }
    auto* obj = reinterpret_cast<ArrayObj*>(reinterpret_cast<Object*>(v.v_obj));
    if constexpr (!std::is_same_v<T, Any>) {
      bool exact = true;
      for (const Any& a : obj->items) exact = exact && ValueTraits<T>::Is(a.raw());
      if (!exact || std::is_same_v<T, std::string>) {  // elements that convert: numbers to PrimExpr and the like
        Array<T> out;
        for (const Any& a : obj->items) out.push_back(ValueTraits<T>::From(a.raw()));
        return out;
      }
    }
    return Array<T>(ObjectPtr<Object>(obj));
  }
  static void To(const Array<T>& x, BatonValue* v) { ValueTraits<ObjectRef>::To(x, v); }
};

}  // namespace baton::runtime

namespace baton {
using runtime::Array;
}

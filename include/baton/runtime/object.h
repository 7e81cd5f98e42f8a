// SPDX-License-Identifier: Apache-2.0
// The base of every object, its counted reference, and type indices. Start reading here.
#pragma once

#include <baton/runtime/block.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace baton::runtime {

template <class T>
class ObjectPtr;
class ObjectRef;
class AttrVisitor;

/// Ids below kDynamic are fixed; others are assigned in the order of registration.
struct TypeIndex {
  enum : uint32_t {
    kRoot = 0,
    kRuntimeString = 1,
    kRuntimeArray = 2,
    kRuntimeMap = 3,
    kRuntimePackedFunc = 4,
    kRuntimeNDArray = 5,
    kRuntimeModule = 6,
    kRuntimeError = 7,
    kRuntimeBytes = 8,
    kStaticEnd = 32,
    kDynamic = 32,
  };
};

/// Base of all objects: a type index, an intrusive count and a deleter. Not polymorphic; a subclass may be.
class BATON_DLL Object {
 public:
  using FDeleter = void (*)(Object*);
  using RefCounterType = std::atomic<int32_t>;

  static constexpr const char* _type_key = "runtime.Object";
  static constexpr bool _type_final = false;
  static constexpr uint32_t _type_child_slots = 0;
  static constexpr bool _type_child_slots_can_overflow = true;
  static constexpr bool _type_has_method_visit_attrs = true;
  static constexpr bool _type_has_method_sequal_reduce = false;
  static constexpr bool _type_has_method_shash_reduce = false;
  static constexpr uint32_t _type_index = TypeIndex::kDynamic;
  static constexpr bool _type_abstract = false;
  static constexpr bool _type_identity = false;
  static constexpr bool _type_is_var = false;
  static constexpr bool _type_is_value = true;

  Object() noexcept : type_index_(0), ref_counter_(0), deleter_(nullptr) {}
  // Count, deleter and type belong to the allocation, not to the value: a copy starts anew.
  Object(const Object&) noexcept : Object() {}
  Object(Object&&) noexcept : Object() {}
  Object& operator=(const Object&) noexcept { return *this; }
  Object& operator=(Object&&) noexcept { return *this; }

  /// Visits each member; a bare object has none.
  void VisitAttrs(AttrVisitor*) {}
  uint32_t type_index() const { return type_index_; }
  std::string GetTypeKey() const { return TypeIndex2Key(type_index_); }
  size_t GetTypeKeyHash() const { return TypeIndex2KeyHash(type_index_); }
  /// True iff the object's type is T or derives from T.
  template <class T>
  bool IsInstance() const;
  /// True iff there is exactly one reference.
  bool unique() const { return ref_counter_.load(std::memory_order_acquire) == 1; }
  int32_t use_count() const { return ref_counter_.load(std::memory_order_relaxed); }

  static std::string TypeIndex2Key(uint32_t tindex);
  static size_t TypeIndex2KeyHash(uint32_t tindex);
  static uint32_t TypeKey2Index(const std::string& key);
  /// The same, -1 for an unknown key.
  static int64_t FindTypeKey(std::string_view key);
  /// Index of the parent type; the root is its own parent.
  static uint32_t TypeIndex2Parent(uint32_t tindex);
  static uint32_t _GetOrAllocRuntimeTypeIndex() { return TypeIndex::kRoot; }
  static uint32_t RuntimeTypeIndex() { return TypeIndex::kRoot; }
  static uint32_t GetOrAllocRuntimeTypeIndex(const std::string& key, uint32_t static_tindex, uint32_t parent_tindex,
                                             uint32_t type_child_slots, bool type_child_slots_can_overflow);
  bool DerivedFrom(uint32_t parent_tindex) const;

 protected:
  void IncRef() noexcept { ref_counter_.fetch_add(1, std::memory_order_relaxed); }
  void DecRef() noexcept {
    // This is the only reference, so no other thread counts: most objects are freed without a locked instruction.
    if (ref_counter_.load(std::memory_order_acquire) == 1) {
      ref_counter_.store(0, std::memory_order_relaxed);
      if (deleter_ != nullptr) Release(this);
    } else if (ref_counter_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      if (deleter_ != nullptr) Release(this);
    }
  }
  /// Runs the deleter; chains of any length are released without recursion.
  static void Release(Object* obj) noexcept;

  uint32_t type_index_;
  RefCounterType ref_counter_;
  FDeleter deleter_;

  template <class>
  friend class ObjectPtr;
  friend class ObjectRef;
  friend struct ObjectAccess;
};
static_assert(sizeof(Object) == 8 + sizeof(void*));

/// Counted pointer to an object. Stores an `Object*`, whatever T is.
template <class T>
class ObjectPtr {
 public:
  ObjectPtr() = default;
  ObjectPtr(std::nullptr_t) {}  // NOLINT
  explicit ObjectPtr(Object* data) : data_(data) {
    if (data_) data_->IncRef();
  }
  ObjectPtr(const ObjectPtr& o) : ObjectPtr(o.data_) {}
  ObjectPtr(ObjectPtr&& o) noexcept : data_(o.data_) { o.data_ = nullptr; }
  template <class U, class = std::enable_if_t<std::is_base_of_v<T, U>>>
  ObjectPtr(const ObjectPtr<U>& o) : ObjectPtr(o.data_) {}  // NOLINT
  template <class U, class = std::enable_if_t<std::is_base_of_v<T, U>>>
  ObjectPtr(ObjectPtr<U>&& o) noexcept : data_(o.data_) {  // NOLINT
    o.data_ = nullptr;
  }
  ~ObjectPtr() { reset(); }
  ObjectPtr& operator=(ObjectPtr o) noexcept {
    std::swap(data_, o.data_);
    return *this;
  }
  void reset() {
    if (data_) {
      Object* d = data_;
      data_ = nullptr;
      d->DecRef();
    }
  }
  T* get() const { return static_cast<T*>(data_); }
  T* operator->() const { return get(); }
  T& operator*() const { return *get(); }
  explicit operator bool() const { return data_ != nullptr; }
  bool operator==(const ObjectPtr& o) const { return data_ == o.data_; }
  bool operator==(std::nullptr_t) const { return data_ == nullptr; }
  bool unique() const { return data_ && data_->unique(); }

 private:
  Object* data_ = nullptr;
  template <class>
  friend class ObjectPtr;
  friend class ObjectRef;
  friend struct ObjectAccess;
};

/// Base of all references: a nullable counted pointer. Subclasses name the node that they refer to.
class ObjectRef {
 public:
  using ContainerType = Object;
  using ZeroIsDefault = void;  ///< for tables: a pointer, null by default, that its count does not know the place of
  ObjectRef() = default;
  explicit ObjectRef(ObjectPtr<Object> data) : data_(std::move(data)) {}
  bool defined() const { return data_.data_ != nullptr; }
  explicit operator bool() const { return defined(); }
  bool same_as(const ObjectRef& o) const { return data_.data_ == o.data_.data_; }
  bool operator==(const ObjectRef& o) const { return same_as(o); }
  bool operator!=(const ObjectRef& o) const { return !same_as(o); }
  bool unique() const { return data_.unique(); }
  const Object* get() const { return data_.data_; }
  const Object* operator->() const { return get(); }
  /// The object as a `T`, or null when it is of another kind.
  template <class T, class = std::enable_if_t<std::is_base_of_v<Object, T>>>
  const T* as() const {
    return defined() && data_->IsInstance<T>() ? static_cast<const T*>(data_.data_) : nullptr;
  }
  /// The object as a reference `R`, null when it is of another kind.
  template <class R, class = std::enable_if_t<std::is_base_of_v<ObjectRef, R>>, class = void>
  R as() const;
  uint32_t type_index() const { return data_.data_ ? data_.data_->type_index() : 0; }

 protected:
  ObjectPtr<Object> data_;
  friend struct ObjectAccess;
};

/// Access to protected members of objects and references, for the library's own use.
struct ObjectAccess {
  static void Init(Object* o, uint32_t index, Object::FDeleter deleter) {
    o->type_index_ = index;
    o->deleter_ = deleter;
  }
  /// The first reference to a new object. No other code knows the object, so its count is set without atomics.
  template <class T>
  static ObjectPtr<T> Begin(T* o, Object::FDeleter deleter) {
    Init(o, T::RuntimeTypeIndex(), deleter);
    static_cast<Object*>(o)->ref_counter_.store(1, std::memory_order_relaxed);
    return AdoptPtr<T>(o);
  }
  static void IncRef(Object* o) { o->IncRef(); }
  static void DecRef(Object* o) { o->DecRef(); }
  static void Delete(Object* o) { o->deleter_(o); }
  static Object* Get(const ObjectRef& r) { return r.data_.data_; }
  /// Gives up the reference without counting down.
  static Object* Steal(ObjectRef& r) {
    Object* o = r.data_.data_;
    r.data_.data_ = nullptr;
    return o;
  }
  /// A reference that takes over one count of `o`.
  template <class R>
  static R Adopt(Object* o) {
    ObjectPtr<Object> p;
    p.data_ = o;
    return R(std::move(p));
  }
  template <class N>
  static ObjectPtr<N> AdoptPtr(Object* o) {
    ObjectPtr<N> p;
    p.data_ = o;
    return p;
  }
};

/// Casts without a check. Use `Downcast` unless the kind is known.
template <class R>
inline R RefCast(const ObjectRef& r) {
  return R(ObjectPtr<Object>(ObjectAccess::Get(r)));
}

template <class T>
inline bool Object::IsInstance() const {
  if constexpr (std::is_same_v<T, Object>) {
    return true;
  } else {
    // Static, so that the common check is one load and one compare.
    static const uint32_t begin = T::RuntimeTypeIndex();
    if constexpr (T::_type_final) {
      return type_index_ == begin;
    } else {
      if (type_index_ - begin <= T::_type_child_slots) return true;
      if constexpr (!T::_type_child_slots_can_overflow) return false;
      // Indices grow from parent to child, so a smaller one cannot be a child.
      return type_index_ > begin && DerivedFrom(begin);
    }
  }
}

template <class R, class, class>
inline R ObjectRef::as() const {
  return as<typename R::ContainerType>() ? RefCast<R>(*this) : R(ObjectPtr<Object>());
}

/// Memory for a T while it is constructed: given back if the constructor throws.
template <class T>
struct ObjectMemory {
  static constexpr bool kAligned = alignof(T) > 16;
  void* p = kAligned ? ::operator new(sizeof(T), std::align_val_t{alignof(T)}) : AllocBlock(sizeof(T));
  ~ObjectMemory() {
    if (p) Free(p);
  }
  static void Free(void* p) noexcept {
    if constexpr (kAligned)
      ::operator delete(p, std::align_val_t{alignof(T)});
    else
      FreeBlock(p, sizeof(T));
  }
};

/// Allocates an object of type T; arguments as for its constructor.
template <class T, class... Args>
inline ObjectPtr<T> make_object(Args&&... args) {
  ObjectMemory<T> mem;
  T* p;
  if constexpr (std::is_aggregate_v<T> && !(sizeof...(Args) == 1 && (std::is_same_v<std::decay_t<Args>, T> && ...))) {
    p = ::new (mem.p) T{{}, std::forward<Args>(args)...};
  } else {
    p = ::new (mem.p) T(std::forward<Args>(args)...);
  }
  mem.p = nullptr;
  return ObjectAccess::Begin(p, [](Object* o) {
    T* t = static_cast<T*>(o);
    t->~T();
    ObjectMemory<T>::Free(t);
  });
}

/// A reference from a raw node pointer; the node must be counted (not on the stack).
template <class R, class N>
inline R GetRef(const N* ptr) {
  return R(ObjectPtr<Object>(const_cast<Object*>(static_cast<const Object*>(ptr))));
}
template <class B, class D>
inline ObjectPtr<B> GetObjectPtr(D* ptr) {
  return ObjectPtr<B>(static_cast<Object*>(ptr));
}

[[noreturn]] BATON_DLL void ThrowDowncast(const char* want, const Object* got);

/// Checked cast; the error names both types. Null passes through.
template <class R>
inline R Downcast(const ObjectRef& r) {
  if (r.defined() && !r.get()->IsInstance<typename R::ContainerType>()) {
    ThrowDowncast(R::ContainerType::_type_key, r.get());
  }
  return RefCast<R>(r);
}

/// Identity of the object, for maps keyed by references.
struct ObjectHash {
  size_t operator()(const ObjectRef& r) const { return reinterpret_cast<uintptr_t>(r.get()) >> 4; }
};
struct ObjectEqual {
  bool operator()(const ObjectRef& a, const ObjectRef& b) const { return a.same_as(b); }
};

#define BATON_DECLARE_BASE_OBJECT_INFO(TypeName, Parent)                                              \
  using ParentType = Parent;                                                                          \
  static uint32_t RuntimeTypeIndex() {                                                                \
    static const uint32_t index = _GetOrAllocRuntimeTypeIndex();                                      \
    return index;                                                                                     \
  }                                                                                                   \
  static uint32_t _GetOrAllocRuntimeTypeIndex() {                                                     \
    static_assert(!ParentType::_type_final, "the parent is final");                                   \
    return ::baton::runtime::Object::GetOrAllocRuntimeTypeIndex(                                      \
        TypeName::_type_key,                                                                          \
        TypeName::_type_index == ParentType::_type_index ? TypeIndexDynamic_ : TypeName::_type_index, \
        ParentType::_GetOrAllocRuntimeTypeIndex(), TypeName::_type_child_slots,                       \
        TypeName::_type_child_slots_can_overflow);                                                    \
  }                                                                                                   \
  static constexpr uint32_t TypeIndexDynamic_ = ::baton::runtime::TypeIndex::kDynamic;

#define BATON_DECLARE_FINAL_OBJECT_INFO(TypeName, Parent) \
  static constexpr bool _type_final = true;               \
  static constexpr uint32_t _type_child_slots = 0;        \
  BATON_DECLARE_BASE_OBJECT_INFO(TypeName, Parent)

#define BATON_DEFINE_OBJECT_REF_METHODS(TypeName, ParentType, ObjectName)                                  \
  TypeName() = default;                                                                                    \
  explicit TypeName(::baton::runtime::ObjectPtr<::baton::runtime::Object> n) : ParentType(std::move(n)) {} \
  const ObjectName* operator->() const { return static_cast<const ObjectName*>(data_.get()); }             \
  const ObjectName* get() const { return operator->(); }                                                   \
  using ContainerType = ObjectName;

}  // namespace baton::runtime

namespace std {
template <>
struct hash<::baton::runtime::ObjectRef> : ::baton::runtime::ObjectHash {};
}  // namespace std

namespace baton {
using runtime::Downcast;
using runtime::GetObjectPtr;
using runtime::GetRef;
using runtime::make_object;
using runtime::Object;
using runtime::ObjectEqual;
using runtime::ObjectHash;
using runtime::ObjectPtr;
using runtime::ObjectRef;
}  // namespace baton

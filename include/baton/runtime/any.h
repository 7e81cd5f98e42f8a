// SPDX-License-Identifier: Apache-2.0
// Values of any kind: conversion between C++ types and the 16-byte BatonValue, borrowed (ArgValue) and owned (Any).
#pragma once

#include <baton/runtime/data_type.h>
#include <baton/runtime/error.h>
#include <baton/runtime/object.h>

#include <cstring>
#include <limits>
#include <string>
#include <type_traits>

namespace baton::runtime {

/// Description of a value for error texts: "int", "str", or the type key of an object.
BATON_DLL std::string ValueKindName(const BatonValue& v);
[[noreturn]] BATON_DLL void ThrowValueMismatch(const char* want, const BatonValue& got);
/// Makes an owned String of characters; used by conversions, declared here to keep string.h apart.
BATON_DLL Object* NewStringObj(const char* data, size_t size);

/// How T is stored in a BatonValue. `Is` tests without conversion, `From` converts or throws TypeError,
/// `To` writes a value whose object, if any, is borrowed from the argument.
template <class T, class = void>
struct ValueTraits;

template <class T>
struct ValueTraits<T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>>> {
  static std::string Name() { return "int"; }
  static bool Is(const BatonValue& v) { return v.type_code == kBatonInt || v.type_code == kBatonBool; }
  static T From(const BatonValue& v) {
    if (!Is(v)) ThrowValueMismatch("int", v);
    if constexpr (sizeof(T) < 8) {
      if (v.v_int64 < static_cast<int64_t>(std::numeric_limits<T>::min()) ||
          v.v_int64 > static_cast<int64_t>(std::numeric_limits<T>::max())) {
        ThrowValueMismatch(sizeof(T) == 4 ? "int that fits 32 bits" : "int that fits 16 bits", v);
      }
    }
    return static_cast<T>(v.v_int64);
  }
  static void To(T x, BatonValue* v) { *v = BatonValue{kBatonInt, 0, {.v_int64 = static_cast<int64_t>(x)}}; }
};
template <>
struct ValueTraits<bool> {
  static std::string Name() { return "bool"; }
  static bool Is(const BatonValue& v) { return v.type_code == kBatonBool || v.type_code == kBatonInt; }
  static bool From(const BatonValue& v) {
    if (!Is(v)) ThrowValueMismatch("bool", v);
    return v.v_int64 != 0;
  }
  static void To(bool x, BatonValue* v) { *v = BatonValue{kBatonBool, 0, {.v_int64 = x}}; }
};
template <class T>
struct ValueTraits<T, std::enable_if_t<std::is_enum_v<T>>> {
  static std::string Name() { return "int"; }
  static bool Is(const BatonValue& v) { return v.type_code == kBatonInt; }
  static T From(const BatonValue& v) { return static_cast<T>(ValueTraits<int>::From(v)); }
  static void To(T x, BatonValue* v) { ValueTraits<int64_t>::To(static_cast<int64_t>(x), v); }
};
template <class T>
struct ValueTraits<T, std::enable_if_t<std::is_floating_point_v<T>>> {
  static std::string Name() { return "float"; }
  static bool Is(const BatonValue& v) {
    return v.type_code == kBatonFloat || v.type_code == kBatonInt || v.type_code == kBatonBool;
  }
  static T From(const BatonValue& v) {
    if (v.type_code == kBatonFloat) return static_cast<T>(v.v_float64);
    if (!Is(v)) ThrowValueMismatch("float", v);
    return static_cast<T>(v.v_int64);
  }
  static void To(T x, BatonValue* v) { *v = BatonValue{kBatonFloat, 0, {.v_float64 = static_cast<double>(x)}}; }
};
template <>
struct ValueTraits<void*> {
  static std::string Name() { return "handle"; }
  static bool Is(const BatonValue& v) { return v.type_code == kBatonHandle || v.type_code == kBatonNull; }
  static void* From(const BatonValue& v) {
    if (!Is(v)) ThrowValueMismatch("handle", v);
    return v.type_code == kBatonNull ? nullptr : v.v_handle;
  }
  static void To(void* x, BatonValue* v) { *v = BatonValue{kBatonHandle, 0, {.v_handle = x}}; }
};
template <>
struct ValueTraits<std::nullptr_t> {
  static std::string Name() { return "None"; }
  static bool Is(const BatonValue& v) { return v.type_code == kBatonNull; }
  static std::nullptr_t From(const BatonValue& v) {
    if (!Is(v)) ThrowValueMismatch("None", v);
    return nullptr;
  }
  static void To(std::nullptr_t, BatonValue* v) { *v = BatonValue{kBatonNull, 0, {.v_int64 = 0}}; }
};
template <>
struct BATON_DLL ValueTraits<DataType> {
  static std::string Name() { return "dtype"; }
  static bool Is(const BatonValue& v) { return v.type_code == kBatonDType; }
  static DataType From(const BatonValue& v);  // a name in a string will do
  static void To(DataType x, BatonValue* v) { *v = BatonValue{kBatonDType, 0, {.v_dtype = x}}; }
};
template <>
struct ValueTraits<DLDataType> : ValueTraits<DataType> {};
template <>
struct ValueTraits<DLDevice> {
  static std::string Name() { return "Device"; }
  static bool Is(const BatonValue& v) { return v.type_code == kBatonDevice; }
  static DLDevice From(const BatonValue& v) {
    if (!Is(v)) ThrowValueMismatch("Device", v);
    return v.v_device;
  }
  static void To(DLDevice x, BatonValue* v) { *v = BatonValue{kBatonDevice, 0, {.v_device = x}}; }
};
template <>
struct BATON_DLL ValueTraits<std::string> {
  static std::string Name() { return "str"; }
  static bool Is(const BatonValue& v);
  static std::string From(const BatonValue& v);
};
template <>
struct ValueTraits<const char*> {
  static void To(const char* x, BatonValue* v) { *v = BatonValue{kBatonStr, 0, {.v_str = x}}; }
};
template <>
struct BATON_DLL ValueTraits<DLTensor*> {
  static std::string Name() { return "DLTensor"; }
  static bool Is(const BatonValue& v);
  static DLTensor* From(const BatonValue& v);  // an NDArray will do
  static void To(DLTensor* x, BatonValue* v) { *v = BatonValue{kBatonTensor, 0, {.v_tensor = x}}; }
};

/// A value that converts to a string (raw string or bytes, dtype, Bytes) as an owned String; null otherwise.
BATON_DLL Object* OwnRawString(const BatonValue& v);
/// A raw string as an owned String, raw bytes as owned Bytes.
BATON_DLL Object* OwnRaw(const BatonValue& v);

/// True for references with their own specialisation (containers).
template <class T>
struct HasOwnTraits : std::false_type {};

template <class T>
struct ValueTraits<T, std::enable_if_t<std::is_base_of_v<ObjectRef, T> && !HasOwnTraits<T>::value>> {
  using N = typename T::ContainerType;
  static std::string Name() { return N::_type_key; }
  static bool Is(const BatonValue& v) {
    return v.type_code == kBatonNull ||
           (v.type_code == kBatonObject && reinterpret_cast<Object*>(v.v_obj)->IsInstance<N>());
  }
  static T From(const BatonValue& v) {
    if (v.type_code == kBatonObject) {
      auto* o = reinterpret_cast<Object*>(v.v_obj);
      if (o->IsInstance<N>()) return T(ObjectPtr<Object>(o));
    } else if (v.type_code == kBatonNull) {
      return T(ObjectPtr<Object>());
    }
    if (Object* s = OwnRawString(v)) {
      auto ref = ObjectAccess::Adopt<ObjectRef>(s);
      if (s->IsInstance<N>()) return T(ObjectPtr<Object>(s));
    }
    ThrowValueMismatch(N::_type_key, v);
  }
  static void To(const T& x, BatonValue* v) {
    Object* o = ObjectAccess::Get(x);
    *v = o ? BatonValue{kBatonObject, 0, {.v_obj = reinterpret_cast<BatonObject*>(o)}}
           : BatonValue{kBatonNull, 0, {.v_int64 = 0}};
  }
};

/// True for types that are held in a box, a separate object (extension types): `ValueTraits<T>::New` makes one.
template <class T, class = void>
struct IsBoxed : std::false_type {};

class Any;

/// A borrowed value, as an argument is.
class ArgValue {
 public:
  explicit ArgValue(const BatonValue& v) : v_(v) {}
  const BatonValue& raw() const { return v_; }
  int type_code() const { return v_.type_code; }
  bool is_null() const { return v_.type_code == kBatonNull; }
  template <class T>
  bool Is() const {
    return ValueTraits<T>::Is(v_);
  }
  template <class T>
  T As() const {
    return ValueTraits<T>::From(v_);
  }
  template <class T, class = decltype(&ValueTraits<T>::From)>
  operator T() const {  // NOLINT
    return As<T>();
  }
  template <class T>
  bool IsObjectRef() const {
    return v_.type_code == kBatonObject && Is<T>();
  }

 private:
  BatonValue v_;
};

/// An owned value of any kind. 16 bytes; a string is kept as a String object.
class Any {
 public:
  Any() : v_{kBatonNull, 0, {.v_int64 = 0}} {}
  Any(const Any& o) : v_(o.v_) { Retain(); }
  Any(Any&& o) noexcept : v_(o.v_) { o.v_ = BatonValue{kBatonNull, 0, {.v_int64 = 0}}; }
  Any(const ArgValue& a) : Any(FromRaw(a.raw())) {}  // NOLINT
  template <class T, class D = std::decay_t<T>,
            class = std::enable_if_t<!std::is_base_of_v<Any, D> && !std::is_same_v<D, ArgValue>>>
  Any(T&& x) {  // NOLINT
    if constexpr (std::is_same_v<D, std::string>) {
      v_ = BatonValue{kBatonObject, 0, {.v_obj = reinterpret_cast<BatonObject*>(NewStringObj(x.data(), x.size()))}};
      Retain();
    } else if constexpr (std::is_convertible_v<T, const char*> && !std::is_same_v<D, std::nullptr_t>) {
      const char* s = x;
      v_ = BatonValue{kBatonObject, 0, {.v_obj = reinterpret_cast<BatonObject*>(NewStringObj(s, strlen(s)))}};
      Retain();
    } else if constexpr (IsBoxed<D>::value) {
      Object* box = ValueTraits<D>::New(std::forward<T>(x));
      v_ = BatonValue{kBatonObject, 0, {.v_obj = reinterpret_cast<BatonObject*>(box)}};
      Retain();
    } else {
      ValueTraits<D>::To(x, &v_);
      Retain();
    }
  }
  ~Any() { Drop(); }
  Any& operator=(Any o) noexcept {
    std::swap(v_, o.v_);
    return *this;
  }
  /// Owns what `v` borrows.
  static Any FromRaw(const BatonValue& v) {
    Any a;
    if (v.type_code == kBatonStr || v.type_code == kBatonBytes) {
      a.v_ = BatonValue{kBatonObject, 0, {.v_obj = reinterpret_cast<BatonObject*>(OwnRaw(v))}};
    } else {
      a.v_ = v;
      a.Retain();
    }
    return a;
  }
  /// Takes over the count that `v` holds.
  static Any Adopt(const BatonValue& v) {
    Any a;
    a.v_ = v;
    return a;
  }
  /// Releases the value together with its count.
  BatonValue Release() {
    BatonValue v = v_;
    v_ = BatonValue{kBatonNull, 0, {.v_int64 = 0}};
    return v;
  }
  const BatonValue& raw() const { return v_; }
  /// Where a call puts its result; only of a null one. (A result that is written here is not copied, and a copy of 16
  /// bytes just after two writes of 8 costs more than the call.)
  BatonValue* Slot() { return &v_; }
  int type_code() const { return v_.type_code; }
  bool is_null() const { return v_.type_code == kBatonNull; }
  template <class T>
  bool Is() const {
    return ValueTraits<T>::Is(v_);
  }
  template <class T>
  T As() const {
    return ValueTraits<T>::From(v_);
  }
  template <class T, class = decltype(&ValueTraits<T>::From)>
  operator T() const {  // NOLINT
    return As<T>();
  }
  Object* object() const { return v_.type_code == kBatonObject ? reinterpret_cast<Object*>(v_.v_obj) : nullptr; }
  /// Same tag and payload; strings by content, other objects by identity.
  BATON_DLL bool Same(const Any& o) const;
  BATON_DLL uint64_t Hash() const;

 private:
  void Retain() {
    if (v_.type_code == kBatonObject) ObjectAccess::IncRef(reinterpret_cast<Object*>(v_.v_obj));
  }
  void Drop() {
    if (v_.type_code == kBatonObject) ObjectAccess::DecRef(reinterpret_cast<Object*>(v_.v_obj));
  }
  BatonValue v_;
};
static_assert(sizeof(Any) == 16);

template <>
struct ValueTraits<Any> {
  static std::string Name() { return "any"; }
  static bool Is(const BatonValue&) { return true; }
  static Any From(const BatonValue& v) { return Any::FromRaw(v); }
  static void To(const Any& x, BatonValue* v) { *v = x.raw(); }
};

}  // namespace baton::runtime

namespace baton {
using runtime::Any;
}

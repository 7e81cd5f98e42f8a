// SPDX-License-Identifier: Apache-2.0
// Extension types: C++ values that are not objects, passed through functions and containers in a box of this type.
//
//   struct Image { std::vector<uint8_t> pixels; };
//   BATON_EXTENSION_TYPE(Image, "my.Image")          // at global scope, in a header that all users share
//   BATON_REGISTER_GLOBAL("my.blur").set_body_typed([](Image x) { ...; return x; });
#pragma once

#include <baton/runtime/any.h>
#include <baton/runtime/signature.h>

#include <utility>

namespace baton::runtime {

/// The box: a pointer and how to free it. Its type index tells the type of what it points to.
class OpaqueObj : public Object {
 public:
  static constexpr const char* _type_key = "runtime.Opaque";
  void* data = nullptr;
  void (*free_data)(void*) = nullptr;
  BATON_DECLARE_BASE_OBJECT_INFO(OpaqueObj, Object)

  /// Index of the type of boxes with this key; the same key is the same type in all libraries.
  BATON_DLL static uint32_t IndexOf(const char* type_key);
  /// A new box, not counted yet.
  BATON_DLL static Object* New(uint32_t index, void* data, void (*free_data)(void*));
};

/// Properties of a type, set by BATON_EXTENSION_TYPE.
template <class T>
struct ExtensionType {};
template <class T>
concept Extension = requires { ExtensionType<T>::key; };

template <class T>
struct IsBoxed<T, std::enable_if_t<Extension<T>>> : std::true_type {};
template <class T>
  requires Extension<T>
struct SignatureName<T> {
  static constexpr const char* value = ExtensionType<T>::key;
};

template <class T>
struct ValueTraits<T, std::enable_if_t<Extension<T>>> {
  static uint32_t Index() {
    static const uint32_t index = OpaqueObj::IndexOf(ExtensionType<T>::key);
    return index;
  }
  static std::string Name() { return ExtensionType<T>::key; }
  static bool Is(const BatonValue& v) {
    return v.type_code == kBatonObject && reinterpret_cast<const Object*>(v.v_obj)->type_index() == Index();
  }
  /// The value in the box, as long as the box lives.
  static const T& Ref(const BatonValue& v) {
    if (!Is(v)) ThrowValueMismatch(ExtensionType<T>::key, v);
    return *static_cast<const T*>(static_cast<const OpaqueObj*>(reinterpret_cast<const Object*>(v.v_obj))->data);
  }
  static T From(const BatonValue& v) { return Ref(v); }
  /// A box with a copy, or with the value itself if it is given away.
  static Object* New(const T& x) { return Box(new T(x)); }
  static Object* New(T&& x) { return Box(new T(std::move(x))); }

 private:
  static Object* Box(T* x) {
    return OpaqueObj::New(Index(), x, [](void* p) { delete static_cast<T*>(p); });
  }
};

}  // namespace baton::runtime

/// Lets values of a C++ type pass as arguments, results and elements, copied in and out, under a type key that all
/// languages see. Asking for another type is a TypeError with both keys. Costs an allocation on the way in.
#define BATON_EXTENSION_TYPE(Type, Key)        \
  template <>                                  \
  struct baton::runtime::ExtensionType<Type> { \
    static constexpr const char* key = Key;    \
  };

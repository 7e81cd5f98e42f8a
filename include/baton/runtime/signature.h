// SPDX-License-Identifier: Apache-2.0
// The signature of a typed function as text, made when it is compiled: "(int, Array<str>) -> float".
#pragma once

#include <baton/runtime/data_type.h>
#include <baton/runtime/object.h>

#include <string>
#include <string_view>
#include <type_traits>

namespace baton::runtime {

/// Specialise it to name your type in signatures: `static constexpr const char* value = "my.Type";`.
template <class T>
struct SignatureName {};
template <>
struct SignatureName<DataType> {
  static constexpr const char* value = "dtype";
};

namespace detail {

/// Counts characters, or writes them.
struct TextSink {
  char* out = nullptr;
  int size = 0;
  constexpr void Put(const char* s) {
    for (; *s; ++s) {
      if (out) out[size] = *s;
      ++size;
    }
  }
  /// The last part of a type key: "runtime.Array" is "Array".
  constexpr void PutLast(const char* key) {
    const char* last = key;
    for (const char* s = key; *s; ++s) {
      if (*s == '.') last = s + 1;
    }
    Put(last);
  }
};

template <class T>
struct TypeWords {
  static constexpr void Put(TextSink& s) {
    if constexpr (requires { SignatureName<T>::value; }) {
      s.Put(SignatureName<T>::value);
    } else if constexpr (std::is_void_v<T> || std::is_null_pointer_v<T>) {
      s.Put("None");
    } else if constexpr (std::is_same_v<T, bool>) {
      s.Put("bool");
    } else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
      s.Put("int");
    } else if constexpr (std::is_floating_point_v<T>) {
      s.Put("float");
    } else if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, const char*>) {
      s.Put("str");
    } else if constexpr (std::is_same_v<T, void*>) {
      s.Put("handle");
    } else if constexpr (std::is_same_v<T, DLTensor*>) {
      s.Put("DLTensor");
    } else if constexpr (std::is_same_v<T, DLDevice>) {
      s.Put("Device");
    } else if constexpr (std::is_same_v<T, DLDataType>) {
      s.Put("dtype");
    } else if constexpr (requires { T::ContainerType::_type_key; }) {
      if constexpr (std::is_same_v<typename T::ContainerType, Object>) {
        s.Put("Object");
      } else if (std::string_view(T::ContainerType::_type_key) == "runtime.String") {
        s.Put("str");
      } else if (std::string_view(T::ContainerType::_type_key) == "runtime.PackedFunc") {
        s.Put("PackedFunc");
      } else {
        s.Put(T::ContainerType::_type_key);
      }
    } else {
      s.Put("any");
    }
  }
};
/// Containers with their elements.
template <template <class...> class C, class... A>
  requires requires { C<A...>::ContainerType::_type_key; }
struct TypeWords<C<A...>> {
  static constexpr void Put(TextSink& s) {
    s.PutLast(C<A...>::ContainerType::_type_key);
    s.Put("<");
    bool first = true;
    ((first ? void() : s.Put(", "), first = false, TypeWords<A>::Put(s)), ...);
    s.Put(">");
  }
};

template <class R, class... P>
constexpr void PutSignature(TextSink& s) {
  s.Put("(");
  [[maybe_unused]] bool first = true;
  ((first ? void() : s.Put(", "), first = false, TypeWords<P>::Put(s)), ...);
  s.Put(") -> ");
  TypeWords<R>::Put(s);
}

template <int N>
struct Characters {
  char text[N + 1];
};

template <class R, class... P>
consteval int SignatureLength() {
  TextSink s;
  PutSignature<R, P...>(s);
  return s.size;
}
template <class R, class... P>
consteval auto MakeSignature() {
  Characters<SignatureLength<R, P...>()> c{};
  TextSink s{c.text};
  PutSignature<R, P...>(s);
  return c;
}
template <class R, class... P>
inline constexpr auto kSignature = MakeSignature<R, P...>();

/// The words for one type.
template <class T>
consteval auto MakeTypeText() {
  constexpr int size = [] {
    TextSink s;
    TypeWords<T>::Put(s);
    return s.size;
  }();
  Characters<size> c{};
  TextSink s{c.text};
  TypeWords<T>::Put(s);
  return c;
}
template <class T>
inline constexpr auto kTypeText = MakeTypeText<T>();
template <class T>
constexpr const char* TypeText() {
  return kTypeText<T>.text;
}

}  // namespace detail

/// The text for a function of these types.
template <class R, class... P>
constexpr const char* SignatureText() {
  return detail::kSignature<R, P...>.text;
}

}  // namespace baton::runtime

// SPDX-License-Identifier: Apache-2.0
// String: an immutable string object. Keeps embedded zero bytes.
#pragma once

#include <baton/runtime/any.h>

#include <string>
#include <string_view>

namespace baton::runtime {

class StringObj : public Object {
 public:
  static constexpr const char* _type_key = "runtime.String";
  static constexpr uint32_t _type_index = TypeIndex::kRuntimeString;
  const char* data;  ///< zero-terminated; behind the object
  uint64_t size;     ///< bytes without the final zero
  BATON_DECLARE_FINAL_OBJECT_INFO(StringObj, Object)
};

class String : public ObjectRef {
 public:
  String() : String("", 0) {}
  String(const char* s) : String(s, strlen(s)) {}               // NOLINT
  String(const std::string& s) : String(s.data(), s.size()) {}  // NOLINT
  String(std::string_view s) : String(s.data(), s.size()) {}    // NOLINT
  String(const char* s, size_t n) : ObjectRef(ObjectPtr<Object>(NewStringObj(s, n))) {}
  explicit String(ObjectPtr<Object> n) : ObjectRef(std::move(n)) {}
  using ContainerType = StringObj;
  const StringObj* operator->() const { return static_cast<const StringObj*>(data_.get()); }
  const char* c_str() const { return defined() ? (*this)->data : ""; }
  const char* data() const { return c_str(); }
  size_t size() const { return defined() ? (*this)->size : 0; }
  size_t length() const { return size(); }
  bool empty() const { return size() == 0; }
  std::string_view view() const { return {c_str(), size()}; }
  operator std::string() const { return std::string(view()); }  // NOLINT
  operator std::string_view() const { return view(); }          // NOLINT
  std::string str() const { return std::string(view()); }
  char at(size_t i) const { return view().at(i); }
};
inline std::string_view ToView(const String& s) { return s.view(); }
inline std::string_view ToView(const std::string& s) { return s; }
inline std::string_view ToView(std::string_view s) { return s; }
inline std::string_view ToView(const char* s) { return s; }
// Templates, so that no conversion is tried: a String compares by content with anything string-like.
template <class T>
concept StringLike = std::is_same_v<std::decay_t<T>, String> || std::is_same_v<std::decay_t<T>, std::string> ||
                     std::is_same_v<std::decay_t<T>, std::string_view> ||
                     std::is_same_v<std::decay_t<T>, const char*> || std::is_same_v<std::decay_t<T>, char*>;
template <class A, class B>
concept StringPair = StringLike<A> && StringLike<B> && (std::is_same_v<A, String> || std::is_same_v<B, String>);
template <class A, class B>
  requires StringPair<A, B>
inline bool operator==(const A& a, const B& b) {
  return ToView(a) == ToView(b);
}
template <class A, class B>
  requires StringPair<A, B>
inline bool operator<(const A& a, const B& b) {
  return ToView(a) < ToView(b);
}
template <class A, class B>
  requires StringPair<A, B>
inline std::string operator+(const A& a, const B& b) {
  return std::string(ToView(a)).append(ToView(b));
}
struct StringHash {
  size_t operator()(const String& s) const { return std::hash<std::string_view>()(s.view()); }
};

template <>
struct ValueTraits<std::string_view> {
  static void To(std::string_view, BatonValue*) = delete;  // a view has no owner: make a String
};

}  // namespace baton::runtime

namespace std {
template <>
struct hash<::baton::runtime::String> {
  size_t operator()(const ::baton::runtime::String& s) const { return std::hash<std::string_view>()(s.view()); }
};
}  // namespace std

namespace baton {
using runtime::String;
}

// SPDX-License-Identifier: Apache-2.0
// Bytes: an immutable object of bytes, `bytes` in Python, where String is `str`.
#pragma once

#include <baton/runtime/any.h>

#include <string>
#include <string_view>

namespace baton::runtime {

class BytesObj : public Object {
 public:
  static constexpr const char* _type_key = "runtime.Bytes";
  static constexpr uint32_t _type_index = TypeIndex::kRuntimeBytes;
  std::string data;
  BATON_DECLARE_FINAL_OBJECT_INFO(BytesObj, Object)
};

class Bytes : public ObjectRef {
 public:
  BATON_DEFINE_OBJECT_REF_METHODS(Bytes, ObjectRef, BytesObj)
  explicit Bytes(std::string data) {
    auto n = make_object<BytesObj>();
    n->data = std::move(data);
    data_ = std::move(n);
  }
  std::string_view view() const { return defined() ? std::string_view(get()->data) : std::string_view(); }
  size_t size() const { return view().size(); }
};

/// Arguments may be raw bytes or a string, too.
template <>
struct HasOwnTraits<Bytes> : std::true_type {};
template <>
struct BATON_DLL ValueTraits<Bytes> {
  static std::string Name() { return "bytes"; }
  static bool Is(const BatonValue& v);
  static Bytes From(const BatonValue& v);
  static void To(const Bytes& x, BatonValue* v) { ValueTraits<ObjectRef>::To(x, v); }
};

}  // namespace baton::runtime

namespace baton {
using runtime::Bytes;
}

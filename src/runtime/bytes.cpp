// SPDX-License-Identifier: Apache-2.0
#include <baton/runtime/bytes.h>
#include <baton/runtime/string.h>

namespace baton::runtime {

bool ValueTraits<Bytes>::Is(const BatonValue& v) {
  if (v.type_code == kBatonNull || v.type_code == kBatonBytes) return true;
  return v.type_code == kBatonObject && reinterpret_cast<Object*>(v.v_obj)->IsInstance<BytesObj>();
}

Bytes ValueTraits<Bytes>::From(const BatonValue& v) {
  if (v.type_code == kBatonNull) return Bytes();
  if (v.type_code == kBatonObject && reinterpret_cast<Object*>(v.v_obj)->IsInstance<BytesObj>()) {
    return Bytes(ObjectPtr<Object>(reinterpret_cast<Object*>(v.v_obj)));
  }
  if (ValueTraits<std::string>::Is(v)) return Bytes(ValueTraits<std::string>::From(v));
  ThrowValueMismatch("bytes", v);
}

}  // namespace baton::runtime

using namespace baton::runtime;  // NOLINT: the C function below

extern "C" int BatonBytesCreate(const char* data, size_t size, BatonObject** out) {
  try {
    Bytes b(std::string(data, size));
    *out = reinterpret_cast<BatonObject*>(ObjectAccess::Steal(b));
    return 0;
  } catch (...) {
    return CatchToSlot();
  }
}

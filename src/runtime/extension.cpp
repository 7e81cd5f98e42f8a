// SPDX-License-Identifier: Apache-2.0
#include <baton/runtime/extension.h>

namespace baton::runtime {

uint32_t OpaqueObj::IndexOf(const char* type_key) {
  if (!type_key || !*type_key) throw ValueError("an extension type needs a type key");
  const uint32_t parent = RuntimeTypeIndex();
  const uint32_t index = GetOrAllocRuntimeTypeIndex(type_key, TypeIndex::kDynamic, parent, 0, true);
  if (TypeIndex2Parent(index) != parent) {
    throw ValueError(std::string("`") + type_key + "` is the key of a type that is no extension type");
  }
  return index;
}

Object* OpaqueObj::New(uint32_t index, void* data, void (*free_data)(void*)) {
  auto* o = new OpaqueObj;
  o->data = data;
  o->free_data = free_data;
  ObjectAccess::Init(o, index, [](Object* obj) {
    auto* box = static_cast<OpaqueObj*>(obj);
    if (box->free_data) box->free_data(box->data);
    delete box;
  });
  return o;
}

}  // namespace baton::runtime

using namespace baton::runtime;  // NOLINT: the C functions below

extern "C" {

int BatonOpaqueCreate(const char* type_key, void* data, void (*free_data)(void*), BatonObject** out) {
  try {
    Object* o = OpaqueObj::New(OpaqueObj::IndexOf(type_key), data, free_data);
    ObjectAccess::IncRef(o);
    *out = reinterpret_cast<BatonObject*>(o);
    return 0;
  } catch (...) {
    return CatchToSlot();
  }
}

int BatonOpaqueView(const BatonObject* obj, const char* type_key, void** data) {
  try {
    auto* o = reinterpret_cast<const Object*>(obj);
    if (!o || o->type_index() != OpaqueObj::IndexOf(type_key)) {
      throw TypeError(std::string("expected ") + type_key + ", got " + (o ? o->GetTypeKey() : "null"));
    }
    *data = static_cast<const OpaqueObj*>(o)->data;
    return 0;
  } catch (...) {
    return CatchToSlot();
  }
}
}

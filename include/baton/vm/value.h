// SPDX-License-Identifier: Apache-2.0
// Values of the virtual machine beside NDArray and tuples (Arrays of values): data, closures, cells.
#pragma once

#include <baton/runtime/device_api.h>
#include <baton/runtime/object.h>

namespace baton::vm {

/// A value of an algebraic data type: the constructor's number and the fields, which lie behind the object.
class BATON_DLL ADTObj : public Object {
 public:
  static constexpr const char* _type_key = "runtime.ADT";
  int32_t tag = 0;
  uint32_t size = 0;
  ObjectRef* fields() { return reinterpret_cast<ObjectRef*>(this + 1); }
  const ObjectRef* fields() const { return reinterpret_cast<const ObjectRef*>(this + 1); }
  BATON_DECLARE_FINAL_OBJECT_INFO(ADTObj, Object)
};
class BATON_DLL ADT : public ObjectRef {
 public:
  BATON_DEFINE_OBJECT_REF_METHODS(ADT, ObjectRef, ADTObj)
  /// Fields are null.
  ADT(int32_t tag, uint32_t size);
};

/// A function with its first arguments.
class BATON_DLL ClosureObj : public Object {
 public:
  static constexpr const char* _type_key = "vm.Closure";
  int32_t function = 0;
  uint32_t size = 0;
  ObjectRef* captured() { return reinterpret_cast<ObjectRef*>(this + 1); }
  const ObjectRef* captured() const { return reinterpret_cast<const ObjectRef*>(this + 1); }
  BATON_DECLARE_FINAL_OBJECT_INFO(ClosureObj, Object)
};
class BATON_DLL Closure : public ObjectRef {
 public:
  BATON_DEFINE_OBJECT_REF_METHODS(Closure, ObjectRef, ClosureObj)
  Closure(int32_t function, uint32_t size);
};

/// A cell that can be read and written.
class BATON_DLL RefObj : public Object {
 public:
  static constexpr const char* _type_key = "vm.Ref";
  mutable ObjectRef value{};
  BATON_DECLARE_FINAL_OBJECT_INFO(RefObj, Object)
};

/// The value with all tensors in tuples and data on a device, copied if they are elsewhere; itself if none is. Closures
/// and cells stay as they are. Linear, and without recursion: lists are long.
BATON_DLL ObjectRef MoveTo(const ObjectRef& value, runtime::Device device);

}  // namespace baton::vm

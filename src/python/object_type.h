// SPDX-License-Identifier: Apache-2.0
// What object.cpp, field.cpp and classes.cpp share: descriptors of fields, and the classes of objects.
#pragma once

#include <baton/runtime/reflection.h>

#include "core.h"

namespace baton::python {

/// A field as a descriptor: an instance of `baton.runtime.Field`.
struct PyField {
  PyObject_HEAD uint32_t owner;
  uint32_t offset;
  runtime::FieldKind kind;
  const runtime::FieldInfo* info;
  PyObject* name;
  PyObject* cls;  // borrowed: the class outlives its attributes
};
extern PyType_Spec field_spec;
PyObject* ReadField(const Object* o, uint32_t offset, runtime::FieldKind kind);

/// `Object.__init_subclass__`.
PyObject* InitSubclass(PyObject* cls, PyObject* args, PyObject* kwargs);
/// Adds the functions that register and describe classes, and Object as the class of all that has no other.
void InitClasses(PyObject* module);

}  // namespace baton::python

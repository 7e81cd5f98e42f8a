// SPDX-License-Identifier: Apache-2.0
// Fields of objects as descriptors, from the reflection tables.
#include <string>

#include "object_type.h"

namespace baton::python {

using namespace runtime;  // NOLINT

PyObject* ReadField(const Object* o, uint32_t offset, FieldKind kind) {
  const char* p = reinterpret_cast<const char*>(o) + offset;
  switch (kind) {
    case FieldKind::kObject: {
      Object* x = ObjectAccess::Get(*reinterpret_cast<const ObjectRef*>(p));
      if (!x) Py_RETURN_NONE;
      return WrapBorrowed(x);
    }
    case FieldKind::kInt64:
      return PyLong_FromLongLong(*reinterpret_cast<const int64_t*>(p));
    case FieldKind::kInt32:
      return PyLong_FromLong(*reinterpret_cast<const int32_t*>(p));
    case FieldKind::kUInt64:
      return PyLong_FromUnsignedLongLong(*reinterpret_cast<const uint64_t*>(p));
    case FieldKind::kBool:
      return PyBool_FromLong(*reinterpret_cast<const bool*>(p));
    case FieldKind::kDouble:
      return PyFloat_FromDouble(*reinterpret_cast<const double*>(p));
    case FieldKind::kDataType:
      return FromDType(*reinterpret_cast<const DataType*>(p));
    case FieldKind::kStdString: {
      auto* s = reinterpret_cast<const std::string*>(p);
      return PyUnicode_DecodeUTF8(s->data(), s->size(), "surrogateescape");
    }
    case FieldKind::kHandle:
      return PyLong_FromVoidPtr(*reinterpret_cast<void* const*>(p));
  }
  Py_UNREACHABLE();
}

namespace {

PyObject* FieldGet(PyObject* self, PyObject* obj, PyObject*) {
  if (!obj) return Py_NewRef(self);
  auto* f = reinterpret_cast<PyField*>(self);
  if (!IsObject(obj)) {
    PyErr_Format(PyExc_TypeError, "field `%U` was asked of a %s", f->name, Py_TYPE(obj)->tp_name);
    return nullptr;
  }
  Object* o = CheckedObjectOf(obj);
  if (!o) return nullptr;
  if (o->type_index() != f->owner && !o->DerivedFrom(f->owner)) {
    PyErr_Format(PyExc_TypeError, "field `%U` of `%s` was asked of a `%s`", f->name, BatonTypeIndex2Key(f->owner),
                 BatonTypeIndex2Key(o->type_index()));
    return nullptr;
  }
  return ReadField(o, f->offset, f->kind);
}

int FieldSet(PyObject* self, PyObject* obj, PyObject*) {
  auto* f = reinterpret_cast<PyField*>(self);
  PyErr_Format(
      PyExc_AttributeError, "`%U` of `%s` cannot be set: objects are immutable; make a new one", f->name,
      IsObject(obj) && ObjectOf(obj) ? BatonTypeIndex2Key(ObjectOf(obj)->type_index()) : Py_TYPE(obj)->tp_name);
  return -1;
}

void FieldDealloc(PyObject* self) {
  PyTypeObject* t = Py_TYPE(self);
  Py_XDECREF(reinterpret_cast<PyField*>(self)->name);
  t->tp_free(self);
  Py_DECREF(t);
}
PyObject* FieldName(PyObject* self, void*) { return Py_NewRef(reinterpret_cast<PyField*>(self)->name); }
PyObject* FieldDoc(PyObject* self, void*) {
  const FieldInfo* i = reinterpret_cast<PyField*>(self)->info;
  return PyUnicode_FromFormat("%s: %s", i->type_name.c_str(), i->doc);
}
PyObject* FieldClass(PyObject* self, void*) { return Py_NewRef(reinterpret_cast<PyField*>(self)->cls); }
PyObject* FieldType(PyObject* self, void*) {
  return PyUnicode_FromString(reinterpret_cast<PyField*>(self)->info->type_name.c_str());
}
PyObject* FieldRepr(PyObject* self) {
  auto* f = reinterpret_cast<PyField*>(self);
  return PyUnicode_FromFormat("<field '%U' of '%s'>", f->name, BatonTypeIndex2Key(f->owner));
}

PyGetSetDef field_getset[] = {
    {"__name__", FieldName, nullptr, nullptr, nullptr},
    {"__doc__", FieldDoc, nullptr, nullptr, nullptr},
    {"__objclass__", FieldClass, nullptr, nullptr, nullptr},
    {"type_name", FieldType, nullptr, "Type of the field, in words.", nullptr},
    {},
};
PyType_Slot field_slots[] = {
    {Py_tp_descr_get, reinterpret_cast<void*>(FieldGet)},   {Py_tp_descr_set, reinterpret_cast<void*>(FieldSet)},
    {Py_tp_dealloc, reinterpret_cast<void*>(FieldDealloc)}, {Py_tp_getset, field_getset},
    {Py_tp_repr, reinterpret_cast<void*>(FieldRepr)},       {0, nullptr},
};

}  // namespace

PyType_Spec field_spec = {"baton.runtime.Field", sizeof(PyField), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, field_slots};

}  // namespace baton::python

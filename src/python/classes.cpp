// SPDX-License-Identifier: Apache-2.0
// Which class an object arrives as; registration of classes, with a descriptor for each field.
#include <baton/runtime/registry.h>

#include <unordered_map>
#include <vector>

#include "object_type.h"

namespace baton::python {

using namespace runtime;  // NOLINT

namespace {

/// Classes by type index.
struct ClassTable {
  std::vector<PyTypeObject*> by_index;  // owned; what objects arrive as
  std::vector<char> registered;         // as against found through a parent
  std::unordered_map<PyTypeObject*, uint32_t> index_of;
  PyObject* resolver = nullptr;  // Python: makes the class of a key from reflection, or gives None
  static ClassTable& Get() {
    static auto* t = new ClassTable;
    return *t;
  }
  void Grow(uint32_t index) {
    if (by_index.size() > index) return;
    by_index.resize(index + 1);
    registered.resize(index + 1);
  }
  void Put(uint32_t index, PyTypeObject* cls) {
    Grow(index);
    // A class that was found through a parent may now have a nearer one.
    for (size_t i = 0; i < by_index.size(); ++i) {
      if (!registered[i] && by_index[i]) {
        Py_DECREF(by_index[i]);
        by_index[i] = nullptr;
      }
    }
    PyTypeObject* old = by_index[index];
    by_index[index] = reinterpret_cast<PyTypeObject*>(Py_NewRef(reinterpret_cast<PyObject*>(cls)));
    registered[index] = 1;
    Py_XDECREF(old);
    if (!index_of.count(cls)) Py_INCREF(cls);
    index_of[cls] = index;
  }
};

}  // namespace

PyTypeObject* ClassOf(uint32_t index) {
  ClassTable& t = ClassTable::Get();
  if (index < t.by_index.size() && t.by_index[index]) return t.by_index[index];
  const char* key = BatonTypeIndex2Key(index);
  if (t.resolver && key) {
    PyObject* cls = PyObject_CallFunction(t.resolver, "s", key);
    if (!cls) return nullptr;
    Py_DECREF(cls);  // registration, if there was one, keeps it
    if (index < t.by_index.size() && t.by_index[index]) return t.by_index[index];
  }
  uint32_t up = index;
  PyTypeObject* found = nullptr;
  while (!found) {
    if (up < t.by_index.size() && t.registered[up]) found = t.by_index[up];
    if (up == 0) break;
    up = Object::TypeIndex2Parent(up);
  }
  if (!found) found = object_type;
  t.Grow(index);
  t.by_index[index] = reinterpret_cast<PyTypeObject*>(Py_NewRef(reinterpret_cast<PyObject*>(found)));
  return found;
}

uint32_t TypeIndexOf(PyTypeObject* cls) {
  ClassTable& t = ClassTable::Get();
  auto it = t.index_of.find(cls);
  if (it != t.index_of.end()) return it->second;
  PyObject* mro = cls->tp_mro;
  for (Py_ssize_t i = 0; mro && i < PyTuple_GET_SIZE(mro); ++i) {
    it = t.index_of.find(reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(mro, i)));
    if (it != t.index_of.end()) return it->second;
  }
  return 0;
}

namespace {

/// A class that adds nothing to Object's storage (`__slots__ = ()`) is allocated and freed as Object is. Python makes
/// every class one that the collector of cycles watches, at 16 bytes an instance and a third of the time to make one;
/// these have nothing in which a cycle could lie. May be called while no instance exists, that is, as the class is
/// made.
void MakePlain(PyTypeObject* t) {
#if !defined(Py_GIL_DISABLED)
  if (t->tp_basicsize != sizeof(PyObj) || t->tp_dictoffset || t->tp_weaklistoffset || t->tp_del || !t->tp_base ||
      !IsPlain(t->tp_base)) {
    return;
  }
#if PY_VERSION_HEX >= 0x030C0000
  if (PyType_HasFeature(t, Py_TPFLAGS_MANAGED_DICT) || PyType_HasFeature(t, Py_TPFLAGS_MANAGED_WEAKREF)) return;
#endif
  t->tp_flags &= ~Py_TPFLAGS_HAVE_GC;
  t->tp_traverse = nullptr;
  t->tp_clear = nullptr;
  t->tp_alloc = PyType_GenericAlloc;
  t->tp_free = PyObject_Free;
  t->tp_dealloc = ObjDealloc;
#endif
}

/// `class X(Object, key="relay.Let")` registers X, by the function that Python set.
PyObject* subclass_hook;
}  // namespace

PyObject* InitSubclass(PyObject* cls, PyObject* args, PyObject* kwargs) {
  PyObject* key = nullptr;
  static const char* names[] = {"key", nullptr};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$O:__init_subclass__", const_cast<char**>(names), &key))
    return nullptr;
  MakePlain(reinterpret_cast<PyTypeObject*>(cls));
  if (key && subclass_hook) return PyObject_CallFunctionObjArgs(subclass_hook, cls, key, nullptr);
  Py_RETURN_NONE;
}

namespace {

PyObject* SetSubclassHook(PyObject*, PyObject* f) {
  Py_XDECREF(subclass_hook);
  subclass_hook = Py_NewRef(f);
  Py_RETURN_NONE;
}

PyObject* RegisterClass(PyObject*, PyObject* args) {
  const char* key;
  PyObject* cls;
  if (!PyArg_ParseTuple(args, "sO:register_class", &key, &cls)) return nullptr;
  if (!PyType_Check(cls) || !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(cls), object_type)) {
    PyErr_Format(PyExc_TypeError, "register_object takes a class derived from baton.runtime.Object, got %R", cls);
    return nullptr;
  }
  uint32_t index;
  try {
    index = Object::TypeKey2Index(key);
  } catch (const Error&) {
    Py_RETURN_FALSE;  // not registered in C++ (yet)
  }
  // The class's instances are laid out as its base is; a class over PyObj must not wrap what needs more, and so on.
  auto* t = reinterpret_cast<PyTypeObject*>(cls);
  if ((index == TypeIndex::kRuntimePackedFunc) != (PyType_IsSubtype(t, func_type) != 0) ||
      (index == TypeIndex::kRuntimeArray) != (PyType_IsSubtype(t, array_type) != 0)) {
    PyErr_Format(PyExc_TypeError, "%s cannot stand for `%s`", t->tp_name, key);
    return nullptr;
  }
  ClassTable::Get().Put(index, t);
  const TypeInfo* info = TypeInfo::Get(index);
  for (size_t i = 0; info && i < info->fields.size(); ++i) {
    const FieldInfo& f = info->fields[i];
    PyObject* name = PyUnicode_InternFromString(f.name);
    if (!name) return nullptr;
    // A hand-written attribute wins over the field; what every object has does not.
    // Inherited fields are stated again: finding the type equal is faster than finding it derived.
    PyObject* known = _PyType_Lookup(t, name);
    bool own = PyDict_Contains(t->tp_dict, name) == 1;
    if (known && !Py_IS_TYPE(known, field_type) && (own || _PyType_Lookup(object_type, name) != known)) {
      Py_DECREF(name);
      continue;
    }
    auto* d = reinterpret_cast<PyField*>(field_type->tp_alloc(field_type, 0));
    if (!d) return nullptr;
    d->owner = index, d->offset = f.offset, d->kind = f.kind, d->info = &f, d->name = name, d->cls = cls;
    int rc = PyObject_SetAttr(cls, name, reinterpret_cast<PyObject*>(d));
    Py_DECREF(d);
    if (rc) return nullptr;
  }
  Py_RETURN_TRUE;
}

PyObject* RegisteredClass(PyObject*, PyObject* arg) {
  const char* key = PyUnicode_AsUTF8(arg);
  if (!key) return nullptr;
  try {
    uint32_t index = Object::TypeKey2Index(key);
    ClassTable& t = ClassTable::Get();
    if (index < t.by_index.size() && t.registered[index])
      return Py_NewRef(reinterpret_cast<PyObject*>(t.by_index[index]));
  } catch (const Error&) {
  }
  Py_RETURN_NONE;
}

PyObject* SetResolver(PyObject*, PyObject* f) {
  Py_XDECREF(ClassTable::Get().resolver);
  ClassTable::Get().resolver = Py_NewRef(f);
  Py_RETURN_NONE;
}

PyObject* ParentKey(PyObject*, PyObject* arg) {
  const char* key = PyUnicode_AsUTF8(arg);
  if (!key) return nullptr;
  return Guard([&]() -> PyObject* {
    uint32_t index = Object::TypeKey2Index(key);
    if (index == 0) Py_RETURN_NONE;
    return PyUnicode_FromString(BatonTypeIndex2Key(Object::TypeIndex2Parent(index)));
  });
}

PyObject* TypeKnown(PyObject*, PyObject* arg) {
  const char* key = PyUnicode_AsUTF8(arg);
  if (!key) return nullptr;
  try {
    Object::TypeKey2Index(key);
    Py_RETURN_TRUE;
  } catch (const Error&) {
    Py_RETURN_FALSE;
  }
}

/// (doc, abstract, [(name, type, doc, flags, default)...]) of a described type, or None.
PyObject* DescribeType(PyObject*, PyObject* arg) {
  const char* key = PyUnicode_AsUTF8(arg);
  if (!key) return nullptr;
  return Guard([&]() -> PyObject* {
    const TypeInfo* info = TypeInfo::FindKey(key);
    if (!info) Py_RETURN_NONE;
    PyObject* fields = PyList_New(0);
    for (const FieldInfo& f : info->fields) {
      PyObject* d = FromBorrowed(f.default_value.raw());
      PyObject* t =
          d ? Py_BuildValue("(sssiN)", f.name, f.type_name.c_str(), f.doc, static_cast<int>(f.flags), d) : nullptr;
      if (!t || PyList_Append(fields, t)) {
        Py_XDECREF(t);
        Py_DECREF(fields);
        return nullptr;
      }
      Py_DECREF(t);
    }
    return Py_BuildValue("(sON)", info->doc, info->create ? Py_False : Py_True, fields);
  });
}

PyMethodDef classes_methods[] = {
    {"register_class", RegisterClass, METH_VARARGS,
     "register_class(key, cls) -> bool: objects of `key` arrive as `cls`; False for an unknown key."},
    {"registered_class", RegisteredClass, METH_O,
     "registered_class(key): the class registered for exactly this key, or None."},
    {"set_class_resolver", SetResolver, METH_O,
     "set_class_resolver(f): `f(key)` may register a class for a key seen for the first time."},
    {"set_subclass_hook", SetSubclassHook, METH_O,
     "set_subclass_hook(f): `f(cls, key)` runs for `class X(Object, key=...)`."},
    {"parent_key", ParentKey, METH_O, "parent_key(key): key of the parent type; None for the root."},
    {"type_known", TypeKnown, METH_O, "type_known(key): whether C++ has a type of this key."},
    {"describe_type", DescribeType, METH_O, "describe_type(key): (doc, abstract, fields) or None."},
    {},
};

}  // namespace

void InitClasses(PyObject* module) {
  PyModule_AddFunctions(module, classes_methods);
  ClassTable::Get().Put(TypeIndex::kRoot, object_type);
}

}  // namespace baton::python

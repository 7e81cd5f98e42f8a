// SPDX-License-Identifier: Apache-2.0
// `Object`: the base class of every object in Python; construction from the reflection tables.
#include <baton/runtime/array.h>
#include <baton/runtime/bytes.h>
#include <baton/runtime/registry.h>
#include <baton/runtime/string.h>

#include <string>
#include <vector>

#include "object_type.h"

namespace baton::python {

using namespace runtime;  // NOLINT

PyTypeObject* object_type;
PyTypeObject* field_type;

// Instances that were freed, kept for the next ones: most live for a statement.
namespace {
constexpr int kMaxFree = 256;
PyObj* free_list = nullptr;  // linked through `obj`
int free_count = 0;
}  // namespace

BATON_HOT PyObject* AllocPlain(PyTypeObject* t) {
#if !defined(Py_TRACE_REFS) && !defined(Py_GIL_DISABLED)
  if (PyObj* p = free_list) {
    free_list = reinterpret_cast<PyObj*>(p->obj);
    --free_count;
    auto* self = reinterpret_cast<PyObject*>(p);
    Py_INCREF(t);
    Py_SET_TYPE(self, t);
    Py_SET_REFCNT(self, 1);
    return self;
  }
#endif
  return t->tp_alloc(t, 0);
}

BATON_HOT void ObjDealloc(PyObject* self) {
  PyTypeObject* t = Py_TYPE(self);
  // A class may have got a __del__.
  if (__builtin_expect(t->tp_finalize != nullptr, 0) && t->tp_dealloc == ObjDealloc) {
    if (PyObject_CallFinalizerFromDealloc(self) < 0) return;
  }
  Object* o = ObjectOf(self);
#if !defined(Py_TRACE_REFS) && !defined(Py_GIL_DISABLED)
  if (free_count < kMaxFree && IsPlain(t)) {
    auto* p = reinterpret_cast<PyObj*>(self);
    p->obj = reinterpret_cast<Object*>(free_list);
    free_list = p;
    ++free_count;
    Py_DECREF(t);
    if (o) ObjectAccess::DecRef(o);
    return;
  }
#endif
  t->tp_free(self);
  Py_DECREF(t);
  if (o) ObjectAccess::DecRef(o);
}

namespace {

std::string KeyOf(const Object* o) { return o->GetTypeKey(); }

PyObject* ObjGetAttr(PyObject* self, PyObject* name) {
  PyObject* r = PyObject_GenericGetAttr(self, name);
  if (r || !PyErr_ExceptionMatches(PyExc_AttributeError)) return r;
  // A property of the class that raised has said why itself.
  if (_PyType_Lookup(Py_TYPE(self), name)) return nullptr;
  Object* o = ObjectOf(self);
  const char* s = PyUnicode_AsUTF8(name);
  if (!o || !s) return nullptr;
  PyErr_Clear();
  // A class that is a parent's does not have all fields.
  const TypeInfo* info = TypeInfo::Get(o->type_index());
  if (info) {
    if (const FieldInfo* f = info->Find(s)) return ReadField(o, f->offset, f->kind);
  }
  std::string known;
  if (s[0] != '_' && info) {
    for (const FieldInfo& f : info->fields) known += (known.empty() ? "; it has " : ", ") + std::string(f.name);
  }
  PyErr_Format(PyExc_AttributeError, "`%s` has no attribute `%s`%s", KeyOf(o).c_str(), s, known.c_str());
  return nullptr;
}

PyObject* ObjCompare(PyObject* a, PyObject* b, int op) {
  if ((op != Py_EQ && op != Py_NE) || !IsObject(b)) Py_RETURN_NOTIMPLEMENTED;
  bool same = ObjectOf(a) == ObjectOf(b);
  return PyBool_FromLong(same == (op == Py_EQ));
}
Py_hash_t ObjHash(PyObject* self) {
  auto h = static_cast<Py_hash_t>(reinterpret_cast<uintptr_t>(ObjectOf(self)) >> 4);
  return h == -1 ? -2 : h;
}

/// `value`'s field in `obj`, found by name or place. Sets a Python error on failure.
bool SetField(const TypeInfo& info, const FieldInfo& f, Object* obj, PyObject* value) {
  Any a;
  if (!ToAny(value, &a)) return false;
  try {
    f.Set(obj, a.raw());
    return true;
  } catch (const Error& e) {
    Error named(e.kind(), info.key + ": " + e.message());
    RaiseError(named.get());
    return false;
  } catch (...) {
    CatchToSlot();
    RaiseFromSlot();
    return false;
  }
}

/// Makes the object of a described type: positional arguments are the fields in described order, those that are not
/// part of the value (spans, inferred types) last.
Object* Construct(const TypeInfo* info, PyObject* args, PyObject* kwargs) {
  std::vector<const FieldInfo*> order;
  for (const FieldInfo& f : info->fields) {
    if (!(f.flags & kIgnored)) order.push_back(&f);
  }
  for (const FieldInfo& f : info->fields) {
    if (f.flags & kIgnored) order.push_back(&f);
  }
  if (PyTuple_GET_SIZE(args) > static_cast<Py_ssize_t>(order.size())) {
    PyErr_Format(PyExc_TypeError, "%s takes at most %zd arguments, got %zd", info->key.c_str(), order.size(),
                 PyTuple_GET_SIZE(args));
    return nullptr;
  }
  ObjectRef made(info->create());
  Object* obj = ObjectAccess::Get(made);
  std::vector<bool> given(info->fields.size());
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) {
    if (!SetField(*info, *order[i], obj, PyTuple_GET_ITEM(args, i))) return nullptr;
    given[order[i] - info->fields.data()] = true;
  }
  PyObject *key, *value;
  Py_ssize_t pos = 0;
  while (kwargs && PyDict_Next(kwargs, &pos, &key, &value)) {
    const char* s = PyUnicode_AsUTF8(key);
    if (!s) return nullptr;
    const FieldInfo* f = info->Find(s);
    if (!f) {
      std::string known;
      for (const FieldInfo* k : order) known += (known.empty() ? "" : ", ") + std::string(k->name);
      PyErr_Format(PyExc_TypeError, "%s has no field `%s`; it has %s", info->key.c_str(), s, known.c_str());
      return nullptr;
    }
    if (given[f - info->fields.data()]) {
      PyErr_Format(PyExc_TypeError, "%s got `%s` twice", info->key.c_str(), s);
      return nullptr;
    }
    if (!SetField(*info, *f, obj, value)) return nullptr;
    given[f - info->fields.data()] = true;
  }
  for (size_t i = 0; i < given.size(); ++i) {
    const FieldInfo& f = info->fields[i];
    if (!given[i] && !f.MayBeMissing()) {
      PyErr_Format(PyExc_TypeError, "%s needs the field `%s` (%s)", info->key.c_str(), f.name, f.doc);
      return nullptr;
    }
  }
  return ObjectAccess::Steal(made);
}

int ObjInit(PyObject* self, PyObject* args, PyObject* kwargs) {
  uint32_t index = TypeIndexOf(Py_TYPE(self));
  const TypeInfo* info = TypeInfo::Get(index);
  if (!info || !info->create) {
    PyErr_Format(PyExc_TypeError, "a %s cannot be made by its fields: `%s` is %s", Py_TYPE(self)->tp_name,
                 BatonTypeIndex2Key(index), info ? "abstract" : "not described");
    return -1;
  }
  return Guard([&]() -> int {
    Object* o = Construct(info, args, kwargs);
    if (!o) return -1;
    Object* old = ObjectOf(self);
    reinterpret_cast<PyObj*>(self)->obj = o;
    if (old) ObjectAccess::DecRef(old);
    return 0;
  });
}

void AppendText(const Any& v, int depth, std::string* out);
void AppendObject(const Object* o, int depth, std::string* out) {
  if (o->IsInstance<ArrayObj>()) {
    *out += '[';
    const auto& items = static_cast<const ArrayObj*>(o)->items;
    for (size_t i = 0; i < items.size(); ++i) {
      if (i) *out += ", ";
      if (depth <= 0 || i == 16) {
        *out += "...";
        break;
      }
      AppendText(items[i], depth - 1, out);
    }
    *out += ']';
    return;
  }
  *out += KeyOf(o);
  const TypeInfo* info = TypeInfo::Get(o->type_index());
  if (!info) return;
  *out += '(';
  bool first = true;
  for (const FieldInfo& f : info->fields) {
    Any v = f.Get(o);
    if (v.is_null()) continue;
    if (!first) *out += ", ";
    first = false;
    *out += f.name;
    *out += '=';
    if (depth <= 0)
      *out += "...";
    else
      AppendText(v, depth - 1, out);
  }
  *out += ')';
}
void AppendText(const Any& v, int depth, std::string* out) {
  if (Object* o = v.object(); o && !o->IsInstance<StringObj>() && !o->IsInstance<BytesObj>()) {
    AppendObject(o, depth, out);
    return;
  }
  PyObject* x = FromBorrowed(v.raw());
  PyObject* r = x ? PyObject_Repr(x) : nullptr;
  const char* s = r ? PyUnicode_AsUTF8(r) : nullptr;
  *out += s ? s : "?";
  PyErr_Clear();
  Py_XDECREF(r);
  Py_XDECREF(x);
}

PyObject* ObjRepr(PyObject* self) {
  Object* o = ObjectOf(self);
  if (!o) return PyUnicode_FromFormat("<%s, not initialised>", Py_TYPE(self)->tp_name);
  return Guard([&]() -> PyObject* {
    if (const PackedFunc* f = TypeInfo::Get(o->type_index()) ? Registry::Get("ir.AsText") : nullptr) {
      PackedFunc keep = *f;
      return FromOwned(keep(GetRef<ObjectRef>(o)).Release());
    }
    if (!TypeInfo::Get(o->type_index())) return PyUnicode_FromFormat("<%s at %p>", KeyOf(o).c_str(), o);
    std::string s;
    AppendObject(o, 3, &s);
    return PyUnicode_DecodeUTF8(s.data(), s.size(), "replace");
  });
}

PyObject* ObjDir(PyObject* self, PyObject*) {
  PyObject* names = PyObject_CallMethod(reinterpret_cast<PyObject*>(&PyBaseObject_Type), "__dir__", "O", self);
  PyObject* list = names ? PySequence_List(names) : nullptr;
  Py_XDECREF(names);
  Object* o = ObjectOf(self);
  const TypeInfo* info = o ? TypeInfo::Get(o->type_index()) : nullptr;
  if (!list || !info) return list;
  for (const FieldInfo& f : info->fields) {
    PyObject* s = PyUnicode_FromString(f.name);
    int known = s ? PySequence_Contains(list, s) : -1;
    if (known < 0 || (!known && PyList_Append(list, s))) {
      Py_XDECREF(s);
      Py_DECREF(list);
      return nullptr;
    }
    Py_DECREF(s);
  }
  return list;
}

PyObject* SameAs(PyObject* self, PyObject* other) {
  return PyBool_FromLong(IsObject(other) && ObjectOf(self) == ObjectOf(other));
}

/// Functions hold what they hold for good: calls that run rely on it.
bool MayChange(PyObject* self) {
  if (!Py_IS_TYPE(self, func_type)) return true;
  PyErr_SetString(PyExc_TypeError, "what a PackedFunc holds cannot be changed");
  return false;
}

PyObject* InitByCall(PyObject* self, PyObject* const* args, Py_ssize_t n) {
  if (!MayChange(self)) return nullptr;
  if (n < 1) {
    PyErr_SetString(PyExc_TypeError, "__init_handle_by_constructor__ takes a function and its arguments");
    return nullptr;
  }
  PyObject* made = PyObject_Vectorcall(args[0], args + 1, n - 1, nullptr);
  if (!made) return nullptr;
  if (PyObject_TypeCheck(self, array_type)) ClearItems(reinterpret_cast<PyArray*>(self));
  if (!IsObject(made) || !MayChange(made)) {
    PyErr_Format(PyExc_TypeError, "the constructor of %s gave a %s", Py_TYPE(self)->tp_name, Py_TYPE(made)->tp_name);
    Py_DECREF(made);
    return nullptr;
  }
  std::swap(reinterpret_cast<PyObj*>(self)->obj, reinterpret_cast<PyObj*>(made)->obj);
  Py_DECREF(made);
  Py_RETURN_NONE;
}

PyObject* GetHandle(PyObject* self, void*) { return PyLong_FromVoidPtr(ObjectOf(self)); }
PyObject* GetTypeKey(PyObject* self, void*) {
  Object* o = ObjectOf(self);
  return PyUnicode_FromString(BatonTypeIndex2Key(o ? o->type_index() : TypeIndexOf(Py_TYPE(self))));
}
PyObject* GetTypeIndex(PyObject* self, void*) {
  Object* o = ObjectOf(self);
  return PyLong_FromUnsignedLong(o ? o->type_index() : TypeIndexOf(Py_TYPE(self)));
}
PyObject* RawField(PyObject* self, PyObject* name) {
  const char* s = PyUnicode_AsUTF8(name);
  Object* o = s ? CheckedObjectOf(self) : nullptr;
  if (!o) return nullptr;
  return Guard([&] { return FromOwned(GetField(o, s).Release()); });
}
PyObject* UseCount(PyObject* self, PyObject*) {
  return PyLong_FromLong(ObjectOf(self) ? ObjectOf(self)->use_count() : 0);
}
PyObject* MoveOut(PyObject* self, PyObject*) {
  // The object moves to a new Python object; this one is empty afterwards.
  Object* o = MayChange(self) ? CheckedObjectOf(self) : nullptr;
  if (!o) return nullptr;
  if (PyObject_TypeCheck(self, array_type)) ClearItems(reinterpret_cast<PyArray*>(self));
  reinterpret_cast<PyObj*>(self)->obj = nullptr;
  return WrapOwned(o);
}
PyObject* TakeBack(PyObject* self, PyObject* other) {
  Object* o = Py_TYPE(other) == Py_TYPE(self) && MayChange(other) ? CheckedObjectOf(other) : nullptr;
  if (!o || !MayChange(self) || ObjectOf(self)) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "an empty object takes back one of its own type");
    return nullptr;
  }
  if (PyObject_TypeCheck(other, array_type)) ClearItems(reinterpret_cast<PyArray*>(other));
  reinterpret_cast<PyObj*>(other)->obj = nullptr;
  reinterpret_cast<PyObj*>(self)->obj = o;
  Py_RETURN_NONE;
}
PyObject* Again(PyObject* self, PyObject*) {
  Object* o = CheckedObjectOf(self);
  return o ? FromOwned(Any(GetRef<ObjectRef>(o)).Release()) : nullptr;
}
PyObject* ObjSetState(PyObject* self, PyObject* text) {
  if (!MayChange(self)) return nullptr;
  if (PyObject_TypeCheck(self, array_type)) ClearItems(reinterpret_cast<PyArray*>(self));
  return Guard([&]() -> PyObject* {
    const PackedFunc* f = Registry::Get("node.LoadJSON");
    const char* s = PyUnicode_AsUTF8(text);
    if (!s) return nullptr;
    if (!f) throw Error("RuntimeError", "objects can be unpickled only where the compiler library is loaded");
    Any made = (*f)(s);
    Object* o = made.object();
    if (!o) throw TypeError("the pickled text holds no object");
    ObjectAccess::IncRef(o);
    Object* old = ObjectOf(self);
    reinterpret_cast<PyObj*>(self)->obj = o;
    if (old) ObjectAccess::DecRef(old);
    Py_RETURN_NONE;
  });
}
PyObject* ObjGetState(PyObject* self, PyObject*) {
  return Guard([&]() -> PyObject* {
    Object* o = CheckedObjectOf(self);
    if (!o) return nullptr;
    const PackedFunc* f = Registry::Get("node.SaveJSON");
    if (!f) throw Error("TypeError", "`" + KeyOf(o) + "` cannot be pickled without the compiler library");
    return FromOwned((*f)(GetRef<ObjectRef>(o)).Release());
  });
}

PyMethodDef obj_methods[] = {
    {"__init_subclass__", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(InitSubclass)),
     METH_CLASS | METH_VARARGS | METH_KEYWORDS, "Registers the class where `key=` was given."},
    {"same_as", SameAs, METH_O, "same_as(other)\n--\n\nWhether both are the same object of C++."},
    {"__init_handle_by_constructor__", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(InitByCall)),
     METH_FASTCALL,
     "__init_handle_by_constructor__(function, *args)\n--\n\nMakes this the object that `function(*args)` gives."},
    {"__dir__", ObjDir, METH_NOARGS, nullptr},
    {"_field", RawField, METH_O, "_field(name): a field as C++ has it, whatever the class made of the name."},
    {"_use_count", UseCount, METH_NOARGS, "References to the object of C++, this one included."},
    {"_move", MoveOut, METH_NOARGS, "Gives the reference to a new Python object; this one is empty afterwards."},
    {"_take_back", TakeBack, METH_O,
     "_take_back(other): what `other` refers to, which is empty afterwards, as this one was."},
    {"_again", Again, METH_NOARGS, "Another Python object of the same object of C++, with a reference of its own."},
    {"__getstate__", ObjGetState, METH_NOARGS, nullptr},
    {"__setstate__", ObjSetState, METH_O, nullptr},
    {},
};
PyGetSetDef obj_getset[] = {
    {"handle", GetHandle, nullptr, "Address of the object of C++.", nullptr},
    {"type_key", GetTypeKey, nullptr, "Type key, as \"relay.Let\".", nullptr},
    {"type_index", GetTypeIndex, nullptr, "Number of the type in this process.", nullptr},
    {},
};
PyType_Slot obj_slots[] = {
    {Py_tp_doc, const_cast<char*>("An object of C++, counted. Its fields read as attributes; it is immutable.")},
    {Py_tp_new, reinterpret_cast<void*>(PyType_GenericNew)},
    {Py_tp_init, reinterpret_cast<void*>(ObjInit)},
    {Py_tp_dealloc, reinterpret_cast<void*>(ObjDealloc)},
    {Py_tp_getattro, reinterpret_cast<void*>(ObjGetAttr)},
    {Py_tp_richcompare, reinterpret_cast<void*>(ObjCompare)},
    {Py_tp_hash, reinterpret_cast<void*>(ObjHash)},
    {Py_tp_repr, reinterpret_cast<void*>(ObjRepr)},
    {Py_tp_methods, obj_methods},
    {Py_tp_getset, obj_getset},
    {0, nullptr},
};
PyType_Spec obj_spec = {"baton.runtime.Object", sizeof(PyObj), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, obj_slots};

}  // namespace

PyTypeObject* AddType(PyObject* module, const char* name, PyType_Spec* spec, PyTypeObject* base) {
  PyObject* t = PyType_FromSpecWithBases(spec, reinterpret_cast<PyObject*>(base));
  if (!t || PyModule_AddObjectRef(module, name, t)) Py_FatalError("baton._core: a type could not be made");
  return reinterpret_cast<PyTypeObject*>(t);
}

void InitObject(PyObject* module) {
  object_type = AddType(module, "Object", &obj_spec, nullptr);
  field_type = AddType(module, "Field", &field_spec, nullptr);
  InitClasses(module);
}

}  // namespace baton::python

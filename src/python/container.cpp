// SPDX-License-Identifier: Apache-2.0
// Array as a sequence and Map as a mapping.
#include <baton/runtime/array.h>
#include <baton/runtime/map.h>

#include "core.h"

namespace baton::python {

using namespace runtime;  // NOLINT

PyTypeObject* array_type;
PyTypeObject* map_type;

void ClearItems(PyArray* a) {
  PyObject** seen = a->seen;
  a->seen = nullptr;
  Py_CLEAR(a->items);
  for (size_t i = 0; seen && i < a->room; ++i) Py_XDECREF(seen[i]);
  PyMem_Free(seen);
}

namespace {

ArrayObj* ArrayOf(PyObject* x) { return static_cast<ArrayObj*>(CheckedObjectOf(x)); }
MapObj* MapOf(PyObject* x) { return static_cast<MapObj*>(CheckedObjectOf(x)); }

// ---- Array
int ArrayInit(PyObject* self, PyObject* args, PyObject* kwargs) {
  PyObject* items = nullptr;
  static const char* names[] = {"items", nullptr};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O", const_cast<char**>(names), &items)) return -1;
  PyObject* list = items ? PySequence_List(items) : PyList_New(0);
  if (!list) return -1;
  Any a;
  bool ok = ToAny(list, &a);
  Py_DECREF(list);
  if (!ok) return -1;
  Object* old = ObjectOf(self);
  reinterpret_cast<PyObj*>(self)->obj = reinterpret_cast<Object*>(a.Release().v_obj);
  ClearItems(reinterpret_cast<PyArray*>(self));
  if (old) ObjectAccess::DecRef(old);
  return 0;
}

void ArrayDealloc(PyObject* self) {
  ClearItems(reinterpret_cast<PyArray*>(self));
  ObjDealloc(self);
}

/// The element if Python has it already, else null; borrowed.
PyObject* Seen(PyArray* p, size_t i, size_t n) {
  if (p->items && PyTuple_GET_SIZE(p->items) == static_cast<Py_ssize_t>(n)) return PyTuple_GET_ITEM(p->items, i);
  return p->seen && p->room == n ? p->seen[i] : nullptr;
}

/// The elements as a tuple; a new reference. It is kept, so that the next loop is one over a tuple, unless an element
/// could refer back to the array, a cycle that could not be collected.
PyObject* ArrayItems(PyObject* self) {
  ArrayObj* a = ArrayOf(self);
  if (!a) return nullptr;
  auto* p = reinterpret_cast<PyArray*>(self);
  const size_t n = a->items.size();
  if (p->items && PyTuple_GET_SIZE(p->items) == static_cast<Py_ssize_t>(n)) return Py_NewRef(p->items);
  PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(n));
  bool keep = true;
  for (size_t i = 0; tuple && i < n; ++i) {
    PyObject* x = Seen(p, i, n);
    x = x ? Py_NewRef(x) : FromElement(a->items[i].raw());
    if (!x) {
      Py_DECREF(tuple);
      return nullptr;
    }
    keep = keep && !PyObject_IS_GC(x);
    PyTuple_SET_ITEM(tuple, i, x);
  }
  if (tuple && keep) {
    ClearItems(p);
    p->items = Py_NewRef(tuple);
  }
  return tuple;
}

Py_ssize_t ArrayLen(PyObject* self) {
  ArrayObj* a = ArrayOf(self);
  return a ? static_cast<Py_ssize_t>(a->items.size()) : -1;
}
PyObject* ArrayItem(PyObject* self, Py_ssize_t i) {
  ArrayObj* a = ArrayOf(self);
  if (!a) return nullptr;
  if (i < 0 || static_cast<size_t>(i) >= a->items.size()) {
    PyErr_Format(PyExc_IndexError, "index %zd is outside an Array of %zu", i, a->items.size());
    return nullptr;
  }
  return FromElement(a->items[i].raw());
}
/// Items [start, start + step, ...) as a new Array.
PyObject* ArraySubscript(PyObject* self, PyObject* key) {
  ArrayObj* a = ArrayOf(self);
  if (!a) return nullptr;
  auto n = static_cast<Py_ssize_t>(a->items.size());
  if (PyIndex_Check(key)) {
    Py_ssize_t i = PyNumber_AsSsize_t(key, PyExc_IndexError);
    if (i == -1 && PyErr_Occurred()) return nullptr;
    if (i < -n || i >= n) {
      PyErr_Format(PyExc_IndexError, "index %zd is outside an Array of %zd", i, n);
      return nullptr;
    }
    i = i < 0 ? i + n : i;
    PyObject* seen = Seen(reinterpret_cast<PyArray*>(self), static_cast<size_t>(i), static_cast<size_t>(n));
    return seen ? Py_NewRef(seen) : FromElement(a->items[i].raw());
  }
  if (PySlice_Check(key)) {
    Py_ssize_t start, stop, step;
    if (PySlice_Unpack(key, &start, &stop, &step)) return nullptr;
    Py_ssize_t count = PySlice_AdjustIndices(n, &start, &stop, step);
    return Guard([&]() -> PyObject* {
      auto out = make_object<ArrayObj>();
      out->items.reserve(count);
      for (Py_ssize_t k = 0; k < count; ++k) out->items.push_back(a->items[start + k * step]);
      return FromOwned(Any(ObjectRef(std::move(out))).Release());
    });
  }
  PyErr_Format(PyExc_TypeError, "an Array is indexed by int or slice, not %s", Py_TYPE(key)->tp_name);
  return nullptr;
}
PyObject* ArrayToList(PyObject* self) {
  PyObject* items = ArrayItems(self);
  PyObject* list = items ? PySequence_List(items) : nullptr;
  Py_XDECREF(items);
  return list;
}

// ---- The first loop over an Array, whose elements Python has not seen. To make an object for each and keep them costs
// nine times what a list's step does, and most arrays are looped over once. So the object of the last step but one is
// pointed at the next element when it has no other references (`x` of `for x in a` still holds the last); an object
// with other references stays that of its element. Later loops are over a tuple.
struct PyArrayIter {
  PyObject_HEAD PyObject* array;  ///< null at the end
  size_t next;
};
PyTypeObject* array_iter_type;

void IterDealloc(PyObject* self) {
  PyTypeObject* t = Py_TYPE(self);
  Py_CLEAR(reinterpret_cast<PyArrayIter*>(self)->array);
  t->tp_free(self);
  Py_DECREF(t);
}
/// Points `x`, which `seen` alone holds, at `v`; false if it is none that can.
bool Repoint(PyObject* x, const BatonValue& v) {
#if !defined(Py_GIL_DISABLED)
  if (Py_REFCNT(x) != 1 || v.type_code != kBatonObject || !IsPlain(Py_TYPE(x)) || Py_TYPE(x)->tp_finalize) return false;
  Object *old = ObjectOf(x), *o = reinterpret_cast<Object*>(v.v_obj);
  if (!old || old->type_index() != o->type_index()) return false;
  ObjectAccess::IncRef(o);
  reinterpret_cast<PyObj*>(x)->obj = o;
  ObjectAccess::DecRef(old);
  return true;
#else
  return false;
#endif
}
BATON_HOT PyObject* IterNext(PyObject* self) {
  auto* it = reinterpret_cast<PyArrayIter*>(self);
  if (!it->array) return nullptr;
  auto* p = reinterpret_cast<PyArray*>(it->array);
  const auto& items = static_cast<const ArrayObj*>(p->obj)->items;
  const size_t i = it->next, n = items.size();
  if (i >= n) {
    p->looped = 1;
    Py_CLEAR(it->array);
    return nullptr;
  }
  it->next = i + 1;
  if (PyObject* x = Seen(p, i, n)) return Py_NewRef(x);
  if (!p->seen || p->room != n) {
    ClearItems(p);
    p->seen = static_cast<PyObject**>(PyMem_Calloc(n, sizeof(PyObject*)));
    if (!p->seen) return PyErr_NoMemory();
    p->room = n;
  }
  if (i >= 2 && p->seen[i - 2] && Repoint(p->seen[i - 2], items[i].raw())) {
    p->seen[i] = p->seen[i - 2];
    p->seen[i - 2] = nullptr;
    return Py_NewRef(p->seen[i]);
  }
  PyObject* x = FromElement(items[i].raw());
  // That may have run Python, and anything.
  if (x && !PyObject_IS_GC(x) && p->seen && i < p->room && !p->seen[i]) p->seen[i] = Py_NewRef(x);
  return x;
}
PyObject* IterLengthHint(PyObject* self, PyObject*) {
  auto* it = reinterpret_cast<PyArrayIter*>(self);
  if (!it->array) return PyLong_FromLong(0);
  return PyLong_FromSize_t(static_cast<const ArrayObj*>(ObjectOf(it->array))->items.size() - it->next);
}
PyMethodDef iter_methods[] = {{"__length_hint__", IterLengthHint, METH_NOARGS, nullptr}, {}};
PyType_Slot iter_slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(IterDealloc)},
    {Py_tp_iter, reinterpret_cast<void*>(PyObject_SelfIter)},
    {Py_tp_iternext, reinterpret_cast<void*>(IterNext)},
    {Py_tp_methods, iter_methods},
    {0, nullptr},
};
PyType_Spec iter_spec = {"baton.runtime.container.ArrayIterator", sizeof(PyArrayIter), 0,
                         Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, iter_slots};

PyObject* ArrayIter(PyObject* self) {
  const ArrayObj* a = ArrayOf(self);
  if (!a) return nullptr;
  const auto* p = reinterpret_cast<PyArray*>(self);
  if (p->items || p->looped) {
    PyObject* items = ArrayItems(self);
    PyObject* it = items ? PyObject_GetIter(items) : nullptr;
    Py_XDECREF(items);
    return it;
  }
  auto* it = PyObject_New(PyArrayIter, array_iter_type);
  if (!it) return nullptr;
  it->array = Py_NewRef(self);
  it->next = 0;
  return reinterpret_cast<PyObject*>(it);
}
PyObject* ArrayConcat(PyObject* a, PyObject* b) {
  PyObject* x = PySequence_List(a);
  PyObject* y = x ? PySequence_List(b) : nullptr;
  PyObject* both = y ? PySequence_Concat(x, y) : nullptr;
  Py_XDECREF(x);
  Py_XDECREF(y);
  Any out;
  bool ok = both && ToAny(both, &out);
  Py_XDECREF(both);
  return ok ? FromOwned(out.Release()) : nullptr;
}
PyObject* ArrayCompare(PyObject* a, PyObject* b, int op) {
  bool array = PyObject_TypeCheck(b, array_type);
  if ((op != Py_EQ && op != Py_NE) || !(array || PyList_Check(b) || PyTuple_Check(b))) Py_RETURN_NOTIMPLEMENTED;
  if (array && ObjectOf(a) == ObjectOf(b)) return PyBool_FromLong(op == Py_EQ);
  PyObject* x = ArrayToList(a);
  PyObject* y = x ? PySequence_List(b) : nullptr;
  PyObject* r = y ? PyObject_RichCompare(x, y, op) : nullptr;
  Py_XDECREF(x);
  Py_XDECREF(y);
  return r;
}
Py_hash_t ArrayHash(PyObject* self) {
  PyObject* tuple = ArrayItems(self);
  Py_hash_t h = tuple ? PyObject_Hash(tuple) : -1;
  Py_XDECREF(tuple);
  return h;
}
PyObject* ArrayRepr(PyObject* self) {
  if (!ObjectOf(self)) return PyUnicode_FromString("<Array, not initialised>");
  if (Py_EnterRecursiveCall(" in the repr of an Array")) return nullptr;
  PyObject* list = ArrayToList(self);
  PyObject* r = list ? PyObject_Repr(list) : nullptr;
  Py_XDECREF(list);
  Py_LeaveRecursiveCall();
  return r;
}
PyObject* ViaList(PyObject* self, const char* method, PyObject* arg) {
  PyObject* list = ArrayToList(self);
  PyObject* r = list ? PyObject_CallMethod(list, method, "O", arg) : nullptr;
  Py_XDECREF(list);
  return r;
}
PyObject* ArrayIndex(PyObject* self, PyObject* x) { return ViaList(self, "index", x); }
PyObject* ArrayCount(PyObject* self, PyObject* x) { return ViaList(self, "count", x); }
PyObject* DirPlain(PyObject* self, PyObject*) {
  return PyObject_CallMethod(reinterpret_cast<PyObject*>(&PyBaseObject_Type), "__dir__", "O", self);
}

PyMethodDef array_methods[] = {
    {"index", ArrayIndex, METH_O, "index(x): place of the first item equal to x."},
    {"count", ArrayCount, METH_O, "count(x): how many items equal x."},
    {"__dir__", DirPlain, METH_NOARGS, nullptr},
    {},
};
PyType_Slot array_slots[] = {
    {Py_tp_doc,
     const_cast<char*>(
         "Array(items=())\n--\n\nA sequence object of C++. Reads as a list; equal to any list of equal items.")},
    {Py_tp_init, reinterpret_cast<void*>(ArrayInit)},
    {Py_tp_dealloc, reinterpret_cast<void*>(ArrayDealloc)},
    {Py_sq_length, reinterpret_cast<void*>(ArrayLen)},
    {Py_sq_item, reinterpret_cast<void*>(ArrayItem)},
    {Py_sq_concat, reinterpret_cast<void*>(ArrayConcat)},
    {Py_mp_length, reinterpret_cast<void*>(ArrayLen)},
    {Py_mp_subscript, reinterpret_cast<void*>(ArraySubscript)},
    {Py_tp_iter, reinterpret_cast<void*>(ArrayIter)},
    {Py_tp_richcompare, reinterpret_cast<void*>(ArrayCompare)},
    {Py_tp_hash, reinterpret_cast<void*>(ArrayHash)},
    {Py_tp_repr, reinterpret_cast<void*>(ArrayRepr)},
    {Py_tp_methods, array_methods},
    {0, nullptr},
};
PyType_Spec array_spec = {"baton.runtime.container.Array", sizeof(PyArray), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_SEQUENCE, array_slots};

// ---- Map
int MapInit(PyObject* self, PyObject* args, PyObject* kwargs) {
  PyObject* dict = PyObject_Call(reinterpret_cast<PyObject*>(&PyDict_Type), args, kwargs);
  if (!dict) return -1;
  Any a;
  bool ok = ToAny(dict, &a);
  Py_DECREF(dict);
  if (!ok) return -1;
  Object* old = ObjectOf(self);
  reinterpret_cast<PyObj*>(self)->obj = reinterpret_cast<Object*>(a.Release().v_obj);
  if (old) ObjectAccess::DecRef(old);
  return 0;
}
Py_ssize_t MapLen(PyObject* self) {
  MapObj* m = MapOf(self);
  return m ? static_cast<Py_ssize_t>(m->entries.size()) : -1;
}
/// 1 found, 0 not, -1 error. A key that cannot be a value of C++ is in no map.
int MapFind(PyObject* self, PyObject* key, const MapObj::Entry** out) {
  MapObj* m = MapOf(self);
  if (!m) return -1;
  Any k;
  if (!ToAny(key, &k)) {
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) return -1;
    PyErr_Clear();
    return 0;
  }
  *out = m->Find(k);
  return *out != nullptr;
}
PyObject* MapSubscript(PyObject* self, PyObject* key) {
  const MapObj::Entry* e;
  int r = MapFind(self, key, &e);
  if (r > 0) return FromElement(e->value.raw());
  if (r == 0) PyErr_SetObject(PyExc_KeyError, key);
  return nullptr;
}
int MapContains(PyObject* self, PyObject* key) {
  const MapObj::Entry* e;
  return MapFind(self, key, &e);
}
PyObject* MapGet(PyObject* self, PyObject* const* args, Py_ssize_t n) {
  if (n < 1 || n > 2) {
    PyErr_SetString(PyExc_TypeError, "get takes a key and, if wished, a default");
    return nullptr;
  }
  const MapObj::Entry* e;
  int r = MapFind(self, args[0], &e);
  if (r < 0) return nullptr;
  if (r > 0) return FromElement(e->value.raw());
  return Py_NewRef(n == 2 ? args[1] : Py_None);
}
enum Part { kKeys, kValues, kItems };
PyObject* MapList(PyObject* self, Part part) {
  MapObj* m = MapOf(self);
  PyObject* list = m ? PyList_New(m->entries.size()) : nullptr;
  if (!list) return nullptr;
  for (size_t i = 0; i < m->entries.size(); ++i) {
    const MapObj::Entry& e = m->entries[i];
    PyObject* x;
    if (part == kItems) {
      PyObject* k = FromBorrowed(e.key.raw());
      PyObject* v = k ? FromElement(e.value.raw()) : nullptr;
      x = v ? PyTuple_Pack(2, k, v) : nullptr;
      Py_XDECREF(k);
      Py_XDECREF(v);
    } else {
      x = part == kKeys ? FromBorrowed(e.key.raw()) : FromElement(e.value.raw());
    }
    if (!x) {
      Py_DECREF(list);
      return nullptr;
    }
    PyList_SET_ITEM(list, i, x);
  }
  return list;
}
PyObject* MapKeys(PyObject* self, PyObject*) { return MapList(self, kKeys); }
PyObject* MapValues(PyObject* self, PyObject*) { return MapList(self, kValues); }
PyObject* MapItems(PyObject* self, PyObject*) { return MapList(self, kItems); }
PyObject* MapIter(PyObject* self) {
  PyObject* list = MapList(self, kKeys);
  PyObject* it = list ? PyObject_GetIter(list) : nullptr;
  Py_XDECREF(list);
  return it;
}
PyObject* MapToDict(PyObject* self) {
  PyObject* items = MapList(self, kItems);
  PyObject* dict = items ? PyDict_New() : nullptr;
  if (dict && PyDict_MergeFromSeq2(dict, items, 1)) Py_CLEAR(dict);
  Py_XDECREF(items);
  return dict;
}
PyObject* MapCompare(PyObject* a, PyObject* b, int op) {
  bool map = PyObject_TypeCheck(b, map_type);
  if ((op != Py_EQ && op != Py_NE) || !(map || PyDict_Check(b))) Py_RETURN_NOTIMPLEMENTED;
  if (map && ObjectOf(a) == ObjectOf(b)) return PyBool_FromLong(op == Py_EQ);
  PyObject* x = MapToDict(a);
  PyObject* y = !x ? nullptr : map ? MapToDict(b) : Py_NewRef(b);
  PyObject* r = y ? PyObject_RichCompare(x, y, op) : nullptr;
  Py_XDECREF(x);
  Py_XDECREF(y);
  return r;
}
// Maps of equal content are equal, so the hash may not tell them apart.
Py_hash_t MapHash(PyObject* self) { return MapLen(self) < 0 ? -1 : 0x4d6170 + MapLen(self); }
PyObject* MapRepr(PyObject* self) {
  if (!ObjectOf(self)) return PyUnicode_FromString("<Map, not initialised>");
  if (Py_EnterRecursiveCall(" in the repr of a Map")) return nullptr;
  PyObject* items = MapList(self, kItems);
  PyObject* parts = items ? PyList_New(0) : nullptr;
  bool ok = parts != nullptr;
  for (Py_ssize_t i = 0; ok && i < PyList_GET_SIZE(items); ++i) {
    PyObject* kv = PyList_GET_ITEM(items, i);
    PyObject* s = PyUnicode_FromFormat("%R: %R", PyTuple_GET_ITEM(kv, 0), PyTuple_GET_ITEM(kv, 1));
    ok = s && !PyList_Append(parts, s);
    Py_XDECREF(s);
  }
  PyObject* comma = ok ? PyUnicode_FromString(", ") : nullptr;
  PyObject* inner = comma ? PyUnicode_Join(comma, parts) : nullptr;
  PyObject* r = inner ? PyUnicode_FromFormat("{%U}", inner) : nullptr;
  Py_XDECREF(inner);
  Py_XDECREF(comma);
  Py_XDECREF(parts);
  Py_XDECREF(items);
  Py_LeaveRecursiveCall();
  return r;
}

PyMethodDef map_methods[] = {
    {"get", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(MapGet)), METH_FASTCALL,
     "get(key, default=None): value of the key."},
    {"keys", MapKeys, METH_NOARGS, "keys(): list of the keys, in order of insertion."},
    {"values", MapValues, METH_NOARGS, "values(): list of the values."},
    {"items", MapItems, METH_NOARGS, "items(): list of (key, value)."},
    {"__dir__", DirPlain, METH_NOARGS, nullptr},
    {},
};
PyType_Slot map_slots[] = {
    {Py_tp_doc,
     const_cast<char*>(
         "Map(dict=())\n--\n\nA mapping object of C++, in order of insertion. Objects as keys go by identity.")},
    {Py_tp_init, reinterpret_cast<void*>(MapInit)},
    {Py_tp_dealloc, reinterpret_cast<void*>(ObjDealloc)},
    {Py_mp_length, reinterpret_cast<void*>(MapLen)},
    {Py_mp_subscript, reinterpret_cast<void*>(MapSubscript)},
    {Py_sq_contains, reinterpret_cast<void*>(MapContains)},
    {Py_tp_iter, reinterpret_cast<void*>(MapIter)},
    {Py_tp_richcompare, reinterpret_cast<void*>(MapCompare)},
    {Py_tp_hash, reinterpret_cast<void*>(MapHash)},
    {Py_tp_repr, reinterpret_cast<void*>(MapRepr)},
    {Py_tp_methods, map_methods},
    {0, nullptr},
};
PyType_Spec map_spec = {"baton.runtime.container.Map", sizeof(PyObj), 0,
                        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_MAPPING, map_slots};

}  // namespace

void InitContainer(PyObject* module) {
  array_type = AddType(module, "Array", &array_spec, object_type);
  array_iter_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&iter_spec));
  map_type = AddType(module, "Map", &map_spec, object_type);
}

}  // namespace baton::python

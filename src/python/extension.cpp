// SPDX-License-Identifier: Apache-2.0
// Classes of Python as extension types: their instances go into C++ in a box that names their type, and come out as the
// very same objects.
#include <baton/runtime/extension.h>

#include <unordered_map>

#include "core.h"

namespace baton::python {

using namespace runtime;  // NOLINT

uint32_t first_box = UINT32_MAX;

namespace {

void FreeBox(void* x) { DropReference(static_cast<PyObject*>(x)); }

/// Classes that were registered, each owned by its entry.
std::unordered_map<PyTypeObject*, uint32_t>& Boxes() {
  static auto* boxes = new std::unordered_map<PyTypeObject*, uint32_t>;
  return *boxes;
}

/// Index for instances of `t`, its own or that of the nearest base; 0 if there is none.
uint32_t BoxIndex(PyTypeObject* t) {
  auto& boxes = Boxes();
  if (boxes.empty() || !t->tp_mro) return 0;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(t->tp_mro); ++i) {
    auto it = boxes.find(reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(t->tp_mro, i)));
    if (it != boxes.end()) return it->second;
  }
  return 0;
}

PyObject* RegisterExtension(PyObject*, PyObject* args) {
  const char* key;
  PyObject* cls;
  if (!PyArg_ParseTuple(args, "sO:register_extension", &key, &cls)) return nullptr;
  if (!PyType_Check(cls) || PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(cls), object_type)) {
    PyErr_Format(PyExc_TypeError,
                 "register_extension takes a plain class, got %R; a class of Objects is registered by register_object",
                 cls);
    return nullptr;
  }
  return Guard([&]() -> PyObject* {
    const uint32_t index = OpaqueObj::IndexOf(key);
    auto* t = reinterpret_cast<PyTypeObject*>(cls);
    if (Boxes().emplace(t, index).second) Py_INCREF(cls);
    if (index < first_box) first_box = index;
    Py_RETURN_NONE;
  });
}

PyMethodDef extension_methods[] = {
    {"register_extension", RegisterExtension, METH_VARARGS,
     "register_extension(key, cls): instances of `cls` pass through C++ as they are, under this type key."},
    {},
};

}  // namespace

bool BoxToValue(PyObject* x, BatonValue* v, Temps& temps) {
  const uint32_t index = BoxIndex(Py_TYPE(x));
  if (!index) return false;
  Object* box = OpaqueObj::New(index, Py_NewRef(x), FreeBox);
  ObjectAccess::IncRef(box);
  temps.Keep(box);
  *v = BatonValue{kBatonObject, 0, {.v_obj = reinterpret_cast<BatonObject*>(box)}};
  return true;
}

PyObject* Unbox(Object* o) {
  if (!o->IsInstance<OpaqueObj>()) return nullptr;
  auto* box = static_cast<OpaqueObj*>(o);
  if (box->free_data != FreeBox) return nullptr;
  PyObject* x = Py_NewRef(static_cast<PyObject*>(box->data));
  ObjectAccess::DecRef(o);
  return x;
}

void InitExtension(PyObject* module) {
  OpaqueObj::RuntimeTypeIndex();
  PyModule_AddFunctions(module, extension_methods);
}

}  // namespace baton::python

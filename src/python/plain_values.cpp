// SPDX-License-Identifier: Apache-2.0
// Device and opaque pointers: values other than objects.
#include <baton/runtime/device_types.h>

#include <string_view>

#include "core.h"

namespace baton::python {

PyTypeObject* device_type;
PyTypeObject* handle_type;
PyTypeObject* dtype_type;

namespace {

struct Named {
  const char* name;
  int type;
};
// The first name of a number is the one that is printed.
constexpr Named kDevices[] = {
    {"cpu", kDLCPU},
    {"llvm", kDLCPU},
    {"c", kDLCPU},
    {"cuda", kDLCUDA},
    {"gpu", kDLCUDA},
    {"nvptx", kDLCUDA},
    {"cuda_host", kDLCUDAHost},
    {"opencl", kDLOpenCL},
    {"cl", kDLOpenCL},
    {"vulkan", kDLVulkan},
    {"metal", kDLMetal},
    {"vpi", kDLVPI},
    {"rocm", kDLROCM},
    {"rocm_host", kDLROCMHost},
    {"ext_dev", kDLExtDev},
    {"cuda_managed", kDLCUDAManaged},
    {"oneapi", kDLOneAPI},
    {"webgpu", kDLWebGPU},
    {"hexagon", kDLHexagon},
};

const char* NameOf(int type) {
  for (const Named& d : kDevices) {
    if (d.type == type) return d.name;
  }
  return "unknown";
}

PyObject* DeviceNew(PyTypeObject* t, PyObject* args, PyObject* kwargs) {
  PyObject* type;
  int id = 0;
  static const char* names[] = {"device_type", "device_id", nullptr};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|i:Device", const_cast<char**>(names), &type, &id)) return nullptr;
  int number = -1;
  if (PyUnicode_Check(type)) {
    const char* text = PyUnicode_AsUTF8(type);
    if (!text) return nullptr;
    std::string_view s(text);
    s = s.substr(0, s.find_first_of(" \t"));  // "llvm -mcpu=native" is a CPU
    if (size_t colon = s.find(':'); colon != s.npos) {
      id = atoi(s.data() + colon + 1);
      s = s.substr(0, colon);
    }
    for (const Named& d : kDevices) {
      if (s == d.name) number = d.type;
    }
    if (number < 0) {
      PyErr_Format(PyExc_ValueError,
                   "no device is called `%s`; there are cpu, cuda, opencl, metal, vulkan, rocm and others", text);
      return nullptr;
    }
  } else {
    number = static_cast<int>(PyLong_AsLong(type));
    if (PyErr_Occurred()) return nullptr;
  }
  auto* d = reinterpret_cast<PyDevice*>(t->tp_alloc(t, 0));
  if (d) d->device = {static_cast<DLDeviceType>(number), id};
  return reinterpret_cast<PyObject*>(d);
}
void FreeWithType(PyObject* self) {
  PyTypeObject* t = Py_TYPE(self);
  t->tp_free(self);
  Py_DECREF(t);
}
DLDevice Of(PyObject* x) { return reinterpret_cast<PyDevice*>(x)->device; }
PyObject* DeviceRepr(PyObject* self) {
  if (Of(self).device_type >= runtime::kRemoteDevice) {
    return PyUnicode_FromString(runtime::Device2String(Of(self)).c_str());
  }
  return PyUnicode_FromFormat("%s(%d)", NameOf(Of(self).device_type), Of(self).device_id);
}
PyObject* DeviceCompare(PyObject* a, PyObject* b, int op) {
  if ((op != Py_EQ && op != Py_NE) || !Py_IS_TYPE(b, device_type)) Py_RETURN_NOTIMPLEMENTED;
  bool same = Of(a).device_type == Of(b).device_type && Of(a).device_id == Of(b).device_id;
  return PyBool_FromLong(same == (op == Py_EQ));
}
Py_hash_t DeviceHash(PyObject* self) { return Of(self).device_type * 1009 + Of(self).device_id + 2; }
PyObject* DeviceType(PyObject* self, void*) { return PyLong_FromLong(Of(self).device_type); }
PyObject* DeviceId(PyObject* self, void*) { return PyLong_FromLong(Of(self).device_id); }
PyObject* DeviceName(PyObject* self, void*) { return PyUnicode_FromString(NameOf(Of(self).device_type)); }
PyObject* DeviceReduce(PyObject* self, PyObject*) {
  return Py_BuildValue("(O(ii))", Py_TYPE(self), Of(self).device_type, Of(self).device_id);
}

PyGetSetDef device_getset[] = {
    {"device_type", DeviceType, nullptr, "Number of the kind, as DLPack has it.", nullptr},
    {"device_id", DeviceId, nullptr, "Which one of the kind, from 0.", nullptr},
    {"device_name", DeviceName, nullptr, "Name of the kind, as \"cpu\".", nullptr},
    {},
};
PyMethodDef device_methods[] = {{"__reduce__", DeviceReduce, METH_NOARGS, nullptr}, {}};
PyType_Slot device_slots[] = {
    {Py_tp_doc,
     const_cast<char*>(
         "Device(device_type, device_id=0)\n--\n\nA device: its kind by name or DLPack number, and which one.")},
    {Py_tp_new, reinterpret_cast<void*>(DeviceNew)},
    {Py_tp_dealloc, reinterpret_cast<void*>(FreeWithType)},
    {Py_tp_repr, reinterpret_cast<void*>(DeviceRepr)},
    {Py_tp_richcompare, reinterpret_cast<void*>(DeviceCompare)},
    {Py_tp_hash, reinterpret_cast<void*>(DeviceHash)},
    {Py_tp_getset, device_getset},
    {Py_tp_methods, device_methods},
    {0, nullptr},
};
PyType_Spec device_spec = {"baton.runtime.Device", sizeof(PyDevice), 0, Py_TPFLAGS_DEFAULT, device_slots};

PyObject* HandleNew(PyTypeObject* t, PyObject* args, PyObject*) {
  PyObject* value;
  if (!PyArg_ParseTuple(args, "O:Handle", &value)) return nullptr;
  void* p = PyLong_AsVoidPtr(value);
  if (!p && PyErr_Occurred()) return nullptr;
  auto* h = reinterpret_cast<PyHandle*>(t->tp_alloc(t, 0));
  if (h) h->pointer = p;
  return reinterpret_cast<PyObject*>(h);
}
PyObject* HandleValue(PyObject* self, void*) { return PyLong_FromVoidPtr(reinterpret_cast<PyHandle*>(self)->pointer); }
PyObject* HandleRepr(PyObject* self) {
  return PyUnicode_FromFormat("Handle(%p)", reinterpret_cast<PyHandle*>(self)->pointer);
}
PyObject* HandleCompare(PyObject* a, PyObject* b, int op) {
  if ((op != Py_EQ && op != Py_NE) || !Py_IS_TYPE(b, handle_type)) Py_RETURN_NOTIMPLEMENTED;
  bool same = reinterpret_cast<PyHandle*>(a)->pointer == reinterpret_cast<PyHandle*>(b)->pointer;
  return PyBool_FromLong(same == (op == Py_EQ));
}
Py_hash_t HandleHash(PyObject* self) {
  return static_cast<Py_hash_t>(reinterpret_cast<uintptr_t>(reinterpret_cast<PyHandle*>(self)->pointer) >> 1);
}
PyGetSetDef handle_getset[] = {{"value", HandleValue, nullptr, "The address.", nullptr}, {}};
PyType_Slot handle_slots[] = {
    {Py_tp_doc, const_cast<char*>("Handle(address)\n--\n\nAn opaque pointer of C++.")},
    {Py_tp_new, reinterpret_cast<void*>(HandleNew)},
    {Py_tp_dealloc, reinterpret_cast<void*>(FreeWithType)},
    {Py_tp_repr, reinterpret_cast<void*>(HandleRepr)},
    {Py_tp_richcompare, reinterpret_cast<void*>(HandleCompare)},
    {Py_tp_hash, reinterpret_cast<void*>(HandleHash)},
    {Py_tp_getset, handle_getset},
    {0, nullptr},
};
PyType_Spec handle_spec = {"baton.runtime.Handle", sizeof(PyHandle), 0, Py_TPFLAGS_DEFAULT, handle_slots};

PyObject* SetDTypeClass(PyObject*, PyObject* cls) {
  if (!PyType_Check(cls) || !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(cls), &PyUnicode_Type)) {
    PyErr_SetString(PyExc_TypeError, "the dtype class derives from str");
    return nullptr;
  }
  Py_XDECREF(dtype_type);
  dtype_type = reinterpret_cast<PyTypeObject*>(Py_NewRef(cls));
  Py_RETURN_NONE;
}
PyObject *int_class, *float_class;  // of numbers in containers; null: Python's own

PyObject* SetNumberClasses(PyObject*, PyObject* args) {
  PyObject *ints, *floats;
  if (!PyArg_ParseTuple(args, "O!O!", &PyType_Type, &ints, &PyType_Type, &floats)) return nullptr;
  Py_XSETREF(int_class, Py_NewRef(ints));
  Py_XSETREF(float_class, Py_NewRef(floats));
  Py_RETURN_NONE;
}

PyMethodDef plain_values_methods[] = {
    {"set_number_classes", SetNumberClasses, METH_VARARGS,
     "set_number_classes(int_class, float_class): numbers in containers arrive as these."},
    {"set_dtype_class", SetDTypeClass, METH_O, "set_dtype_class(cls): dtypes arrive as `cls(name)`."},
    {}};

}  // namespace

PyObject* FromElement(const BatonValue& v) {
  PyObject* number = FromBorrowed(v);
  PyObject* cls = v.type_code == kBatonInt ? int_class : v.type_code == kBatonFloat ? float_class : nullptr;
  if (!cls || !number) return number;
  constexpr int kKept = 1024;
  static PyObject* kept[kKept];  // of small numbers, as those of shapes and axes
  const bool small = v.type_code == kBatonInt && v.v_int64 >= 0 && v.v_int64 < kKept;
  if (small && kept[v.v_int64]) {
    Py_DECREF(number);
    return Py_NewRef(kept[v.v_int64]);
  }
  PyObject* made = PyObject_CallOneArg(cls, number);
  Py_DECREF(number);
  if (small && made) kept[v.v_int64] = Py_NewRef(made);
  return made;
}

void InitSmall(PyObject* module) {
  device_type = AddType(module, "Device", &device_spec, nullptr);
  handle_type = AddType(module, "Handle", &handle_spec, nullptr);
  PyModule_AddFunctions(module, plain_values_methods);
}

}  // namespace baton::python

// SPDX-License-Identifier: Apache-2.0
// Tensors both ways: NumPy arrays and DLPack exporters as borrowed DLTensors, and NDArray.
#include <string>
#include <unordered_map>
#include <vector>

#include "core.h"
#include "dlpack_exchange.h"

namespace baton::python {

using namespace runtime;  // NOLINT

PyTypeObject* ndarray_type;

namespace {

// ---- NumPy. Its array structure is public and fixed by its ABI (1.x and 2.x); reading it takes no NumPy at build
// time.
struct NumpyArray {
  PyObject_HEAD char* data;
  int nd;
  Py_ssize_t* dimensions;
  Py_ssize_t* strides;
  PyObject* base;
  PyObject* descr;
  int flags;
};
constexpr int kContiguous = 0x1, kAligned = 0x100;
static_assert(sizeof(Py_ssize_t) == 8);

PyTypeObject* numpy_array;

bool FindNumpy() {
  if (numpy_array) return true;
  PyObject* m = PyDict_GetItemString(PyImport_GetModuleDict(), "numpy");
  PyObject* t = m ? PyObject_GetAttrString(m, "ndarray") : nullptr;
  PyErr_Clear();
  if (!t || !PyType_Check(t)) return false;
  numpy_array = reinterpret_cast<PyTypeObject*>(t);
  return true;
}

/// Type of the elements by descriptor; false with an error set.
bool TypeOfDescr(PyObject* descr, DLDataType* out) {
  static PyObject* last;
  static DLDataType last_type;
  static auto* cache = new std::unordered_map<PyObject*, DLDataType>;
  if (descr == last) {
    *out = last_type;
    return true;
  }
  auto it = cache->find(descr);
  if (it != cache->end()) {
    last = descr;
    *out = last_type = it->second;
    return true;
  }
  PyObject* name = PyObject_GetAttrString(descr, "name");
  PyObject* order = name ? PyObject_GetAttrString(descr, "byteorder") : nullptr;
  const char* s = order ? PyUnicode_AsUTF8(name) : nullptr;
  const char* o = s ? PyUnicode_AsUTF8(order) : nullptr;
  DataType t;
  bool ok = o && TryString2DataType(s, &t) && o[0] != '>' && !t.is_void() && !t.is_handle();
  if (o && !ok) {
    PyErr_Format(PyExc_TypeError, "a NumPy array of %R has no counterpart here%s", descr,
                 o[0] == '>' ? ": its byte order is swapped; use a.astype(a.dtype.newbyteorder('='))" : "");
  }
  Py_XDECREF(name);
  Py_XDECREF(order);
  if (!ok) return false;
  if (cache->size() < 64) {
    (*cache)[Py_NewRef(descr)] = t;
    last = descr, last_type = t;
  }
  *out = t;
  return true;
}

int FromNumpy(PyObject* x, BatonValue* v, Temps& temps) {
  auto* a = reinterpret_cast<NumpyArray*>(x);
  Temps::Tensor* t = temps.NewTensor();
  DLDataType type;
  if (!TypeOfDescr(a->descr, &type)) return -1;
  int64_t itemsize = (type.bits * type.lanes + 7) / 8;
  int64_t* strides = t->strides;
  if (a->nd > 8) {
    t->capsule = PyBytes_FromStringAndSize(nullptr, a->nd * 8);
    if (!t->capsule) return -1;
    strides = reinterpret_cast<int64_t*>(PyBytes_AS_STRING(t->capsule));
  }
  bool whole = (a->flags & kAligned) != 0;
  for (int i = 0; i < a->nd; ++i) {
    whole = whole && a->strides[i] % itemsize == 0;
    strides[i] = a->strides[i] / itemsize;
  }
  if (!whole) {
    PyObject* np = PyImport_ImportModule("numpy");
    PyObject* dense = np ? PyObject_CallMethod(np, "array", "O", x) : nullptr;
    Py_XDECREF(np);
    if (!dense) return -1;
    if (!(reinterpret_cast<NumpyArray*>(dense)->flags & kAligned)) {
      Py_DECREF(dense);
      PyErr_SetString(PyExc_ValueError, "a NumPy array could not be aligned");
      return -1;
    }
    // The copy is kept in another slot, so that this array's own view may need one too.
    temps.NewTensor()->capsule = dense;
    return FromNumpy(dense, v, temps);
  }
  t->view = DLTensor{a->data, {kDLCPU, 0}, a->nd, type, reinterpret_cast<int64_t*>(a->dimensions), strides, 0};
  *v = BatonValue{kBatonTensor, 0, {.v_tensor = &t->view}};
  return 1;
}

// ---- DLPack.
constexpr const char* kPlain = "dltensor";
constexpr const char* kVersioned = "dltensor_versioned";

/// The capsule of an exporter; null with an error set.
PyObject* ExportCapsule(PyObject* x) {
  PyObject* method = PyObject_GetAttrString(x, "__dlpack__");
  if (!method) return nullptr;
  PyObject* args = PyTuple_New(0);
  PyObject* kwargs =
      args ? Py_BuildValue("{s:(ii)}", "max_version", DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION) : nullptr;
  PyObject* capsule = kwargs ? PyObject_Call(method, args, kwargs) : nullptr;
  if (!capsule && PyErr_ExceptionMatches(PyExc_TypeError)) {  // from before versions
    PyErr_Clear();
    capsule = PyObject_CallNoArgs(method);
  }
  Py_XDECREF(args);
  Py_XDECREF(kwargs);
  Py_DECREF(method);
  if (capsule && !PyCapsule_IsValid(capsule, kPlain) && !PyCapsule_IsValid(capsule, kVersioned)) {
    PyErr_Format(PyExc_TypeError, "__dlpack__ of %s gave no DLPack capsule", Py_TYPE(x)->tp_name);
    Py_CLEAR(capsule);
  }
  return capsule;
}

int FromExporter(PyObject* x, BatonValue* v, Temps& temps) {
  PyObject* capsule = ExportCapsule(x);
  if (!capsule) return -1;
  Temps::Tensor* t = temps.NewTensor();
  t->capsule = capsule;
  if (PyCapsule_IsValid(capsule, kVersioned)) {
    auto* m = static_cast<DLManagedTensorVersioned*>(PyCapsule_GetPointer(capsule, kVersioned));
    if (m->version.major > DLPACK_MAJOR_VERSION) {
      PyErr_Format(PyExc_BufferError, "DLPack version %u is newer than this library knows", m->version.major);
      return -1;
    }
    t->view = m->dl_tensor;
  } else {
    t->view = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, kPlain))->dl_tensor;
  }
  *v = BatonValue{kBatonTensor, 0, {.v_tensor = &t->view}};
  return 1;
}

// ---- Types that lend a table of C functions. Few in a process, so they are searched one after the other.
struct Lender {
  PyTypeObject* type;  // owned
  const DLPackExchangeAPI* api;
};
constexpr int kMaxLenders = 8;
Lender lenders[kMaxLenders];
int lender_count = 0;

BATON_HOT int FromLender(const DLPackExchangeAPI* api, PyObject* x, BatonValue* v, Temps& temps) {
  Temps::Tensor* t = temps.NewTensor();
  if (api->dltensor_from_py_object_no_sync(x, &t->view)) return -1;
  *v = BatonValue{kBatonTensor, 0, {.v_tensor = &t->view}};
  return 1;
}

/// The table of a type, or null. A subclass that changes how its tensors are exported is not taken at its parent's
/// word.
const DLPackExchangeAPI* TableOf(PyTypeObject* t) {
  static PyObject* attribute = PyUnicode_InternFromString(kExchangeAttribute);
  static PyObject* method = PyUnicode_InternFromString("__dlpack__");
  PyObject* mro = t->tp_mro;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(mro); ++i) {
    auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(mro, i));
    PyObject* dict = base->tp_dict;
    if (!dict) continue;
    PyObject* capsule = PyDict_GetItemWithError(dict, attribute);
    if (capsule && PyCapsule_IsValid(capsule, kExchangeCapsule)) {
      auto* api = static_cast<const DLPackExchangeAPI*>(PyCapsule_GetPointer(capsule, kExchangeCapsule));
      return api->header.version.major == DLPACK_MAJOR_VERSION && api->dltensor_from_py_object_no_sync ? api : nullptr;
    }
    if (PyDict_GetItemWithError(dict, method)) return nullptr;
  }
  return nullptr;
}

// ---- The table that our own arrays lend.
int LendAllocator(DLTensor* like, DLManagedTensorVersioned** out, void* ctx,
                  void (*set_error)(void*, const char*, const char*)) {
  try {
    NDArray a = NDArray::Empty({like->shape, like->shape + like->ndim}, like->dtype, like->device);
    *out = a.ToDLPackVersioned();
    return 0;
  } catch (...) {
    CatchToSlot();
    set_error(ctx, BatonErrorKind(), BatonErrorMessage());
    BatonErrorPut(nullptr);
    return -1;
  }
}
NDArray Lent(void* x) {
  Object* o = ObjectOf(static_cast<PyObject*>(x));
  if (!o) throw ValueError("this NDArray holds nothing");
  return NDArray(ObjectPtr<Object>(o));
}
int LendManaged(void* x, DLManagedTensorVersioned** out) {
  return Guard([&] {
    *out = Lent(x).ToDLPackVersioned();
    return 0;
  });
}
int LendView(void* x, DLTensor* out) {
  return Guard([&] {
    *out = *Lent(x).tensor();
    return 0;
  });
}
int LendToPython(DLManagedTensorVersioned* t, void** out) {
  return Guard([&] {
    NDArray a = NDArray::FromDLPackVersioned(t);
    *out = FromOwned(Any(a).Release());
    return *out ? 0 : -1;
  });
}
int LendStream(int32_t, int32_t, void** out) {
  *out = nullptr;
  return 0;
}
const DLPackExchangeAPI our_table = {{{DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION}, nullptr},
                                     LendAllocator,
                                     LendManaged,
                                     LendToPython,
                                     LendView,
                                     LendStream};

void FreePlain(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, kPlain)) return;  // its consumer renamed it
  auto* m = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, kPlain));
  if (m->deleter) m->deleter(m);
}
void FreeVersioned(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, kVersioned)) return;
  auto* m = static_cast<DLManagedTensorVersioned*>(PyCapsule_GetPointer(capsule, kVersioned));
  if (m->deleter) m->deleter(m);
}

NDArray NDArrayOf(PyObject* self) {
  Object* o = ObjectOf(self);
  if (!o) throw ValueError("this NDArray holds nothing");
  return NDArray(ObjectPtr<Object>(o));
}

PyObject* ToDLPack(PyObject* self, PyObject* args, PyObject* kwargs) {
  PyObject *stream = Py_None, *max_version = Py_None, *dl_device = Py_None, *copy = Py_None;
  static const char* names[] = {"stream", "max_version", "dl_device", "copy", nullptr};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO:__dlpack__", const_cast<char**>(names), &stream, &max_version,
                                   &dl_device, &copy)) {
    return nullptr;
  }
  int major = 0, minor = 0;
  if (max_version != Py_None && !PyArg_ParseTuple(max_version, "ii", &major, &minor)) return nullptr;
  return Guard([&]() -> PyObject* {
    NDArray a = NDArrayOf(self);
    bool must_copy = copy == Py_True;
    if (dl_device != Py_None) {
      int type, id;
      if (!PyArg_ParseTuple(dl_device, "ii", &type, &id)) return nullptr;
      if (type != a.device().device_type || id != a.device().device_id) {
        if (copy == Py_False) {
          PyErr_SetString(PyExc_BufferError, "the array lies on another device, and copying was forbidden");
          return nullptr;
        }
        a = a.Copy({static_cast<decltype(DLDevice::device_type)>(type), id});
        must_copy = false;
      }
    }
    if (must_copy) a = a.Copy(a.device());
    if (major >= 1) return PyCapsule_New(a.ToDLPackVersioned(), kVersioned, FreeVersioned);
    return PyCapsule_New(a.ToDLPack(), kPlain, FreePlain);
  });
}

PyObject* DLPackDevice(PyObject* self, PyObject*) {
  return Guard([&]() -> PyObject* {
    DLDevice d = NDArrayOf(self).device();
    return Py_BuildValue("(ii)", static_cast<int>(d.device_type), d.device_id);
  });
}

PyObject* IntTuple(const int64_t* p, int n) {
  PyObject* t = PyTuple_New(n);
  for (int i = 0; t && i < n; ++i) PyTuple_SET_ITEM(t, i, PyLong_FromLongLong(p[i]));
  return t;
}
template <class F>
PyObject* OfArray(PyObject* self, F f) {
  return Guard([&]() -> PyObject* { return f(NDArrayOf(self)); });
}
PyObject* Shape(PyObject* self, void*) {
  return OfArray(self, [](const NDArray& a) { return IntTuple(a->shape, a->ndim); });
}
PyObject* Strides(PyObject* self, void*) {
  return OfArray(self, [](const NDArray& a) { return IntTuple(a->strides, a->ndim); });
}
PyObject* Dtype(PyObject* self, void*) {
  return OfArray(self, [](const NDArray& a) { return FromDType(a->dtype); });
}
PyObject* DeviceOf(PyObject* self, void*) {
  return OfArray(self, [](const NDArray& a) { return FromDevice(a.device()); });
}
PyObject* Ndim(PyObject* self, void*) {
  return OfArray(self, [](const NDArray& a) { return PyLong_FromLong(a->ndim); });
}
PyObject* Size(PyObject* self, void*) {
  return OfArray(self, [](const NDArray& a) { return PyLong_FromLongLong(a.numel()); });
}
PyObject* Nbytes(PyObject* self, void*) {
  return OfArray(self, [](const NDArray& a) { return PyLong_FromSize_t(a.nbytes()); });
}
PyObject* Data(PyObject* self, void*) {
  return OfArray(self, [](const NDArray& a) { return PyLong_FromVoidPtr(a.data()); });
}
PyObject* ReadOnly(PyObject* self, void*) {
  return OfArray(self, [](const NDArray& a) { return PyBool_FromLong(a.obj()->read_only); });
}

PyGetSetDef getset[] = {
    {"shape", Shape, nullptr, "Extents, as a tuple.", nullptr},
    {"strides", Strides, nullptr, "Strides in elements, as a tuple.", nullptr},
    {"dtype", Dtype, nullptr, "Type of an element, as \"float32\".", nullptr},
    {"device", DeviceOf, nullptr, "Where the elements lie.", nullptr},
    {"ctx", DeviceOf, nullptr, "Older name of `device`.", nullptr},
    {"ndim", Ndim, nullptr, "Number of dimensions.", nullptr},
    {"size", Size, nullptr, "Number of elements.", nullptr},
    {"nbytes", Nbytes, nullptr, "Bytes of the elements without gaps.", nullptr},
    {"data_ptr", Data, nullptr, "Address of the first element.", nullptr},
    {"read_only", ReadOnly, nullptr, "Whether the elements may not be written.", nullptr},
    {},
};
PyMethodDef ndarray_methods[] = {
    {"__dlpack__", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(ToDLPack)), METH_VARARGS | METH_KEYWORDS,
     "__dlpack__(*, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\nA DLPack capsule over the same "
     "memory."},
    {"__dlpack_device__", DLPackDevice, METH_NOARGS, "__dlpack_device__(): (device type, device id)."},
    {},
};
PyType_Slot slots[] = {
    {Py_tp_doc, const_cast<char*>("A tensor of C++.")},
    {Py_tp_dealloc, reinterpret_cast<void*>(ObjDealloc)},
    {Py_tp_getset, getset},
    {Py_tp_methods, ndarray_methods},
    {0, nullptr},
};
PyType_Spec spec = {"baton.runtime.NDArrayBase", sizeof(PyObj), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};

// ---- Functions of the module.
PyObject* TensorCopy(PyObject*, PyObject* x) {
  return Guard([&]() -> PyObject* {
    Temps temps;
    BatonValue v;
    if (IsObject(x)) {
      if (!PyObject_TypeCheck(x, ndarray_type))
        throw TypeError("expected an array, got " + std::string(Py_TYPE(x)->tp_name));
      NDArray a = NDArrayOf(x);
      return FromOwned(Any(CopyTensor(a.tensor())).Release());
    }
    int r = ToTensor(x, &v, temps);
    if (r == 0) PyErr_Format(PyExc_TypeError, "expected an array, got %s", Py_TYPE(x)->tp_name);
    if (r <= 0) return nullptr;
    return FromOwned(Any(CopyTensor(v.v_tensor)).Release());
  });
}

PyObject* FromDLPack(PyObject*, PyObject* x) {
  PyObject* capsule = PyCapsule_CheckExact(x) ? Py_NewRef(x) : ExportCapsule(x);
  if (!capsule) return nullptr;
  PyObject* result = Guard([&]() -> PyObject* {
    NDArray a;
    const char* used;
    if (PyCapsule_IsValid(capsule, kVersioned)) {
      a = NDArray::FromDLPackVersioned(
          static_cast<DLManagedTensorVersioned*>(PyCapsule_GetPointer(capsule, kVersioned)));
      used = "used_dltensor_versioned";
    } else if (PyCapsule_IsValid(capsule, kPlain)) {
      a = NDArray::FromDLPack(static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, kPlain)));
      used = "used_dltensor";
    } else {
      PyErr_SetString(PyExc_TypeError, "not a DLPack capsule, or one that was used already");
      return nullptr;
    }
    // From here on the array owns the tensor.
    if (PyCapsule_SetName(capsule, used)) return nullptr;
    return FromOwned(Any(a).Release());
  });
  Py_DECREF(capsule);
  return result;
}

PyMethodDef tensor_methods[] = {
    {"tensor_copy", TensorCopy, METH_O, "tensor_copy(x): an NDArray with a dense copy of an array's elements."},
    {"from_dlpack", FromDLPack, METH_O, "from_dlpack(x): an NDArray over the memory of a DLPack exporter or capsule."},
    {},
};

}  // namespace

BATON_HOT int KnownTensor(PyObject* x, BatonValue* v, Temps& temps) {
  PyTypeObject* t = Py_TYPE(x);
  for (int i = 0; i < lender_count; ++i) {
    if (lenders[i].type == t) return FromLender(lenders[i].api, x, v, temps);
  }
  return t == numpy_array ? FromNumpy(x, v, temps) : 0;
}

int ToTensor(PyObject* x, BatonValue* v, Temps& temps) {
  PyTypeObject* t = Py_TYPE(x);
  if (const DLPackExchangeAPI* api = TableOf(t)) {
    if (lender_count < kMaxLenders) {
      Py_INCREF(t);
      lenders[lender_count++] = {t, api};
    }
    return FromLender(api, x, v, temps);
  }
  if (FindNumpy() && PyType_IsSubtype(t, numpy_array)) return FromNumpy(x, v, temps);
  // Asked of the type: instances may answer any attribute.
  static PyObject* name = PyUnicode_InternFromString("__dlpack__");
  return _PyType_Lookup(t, name) ? FromExporter(x, v, temps) : 0;
}

NDArray CopyTensor(const DLTensor* t) {
  NDArray a = NDArray::Empty({t->shape, t->shape + t->ndim}, t->dtype);
  a.CopyFrom(t);
  return a;
}

void InitTensor(PyObject* module) {
  ndarray_type = AddType(module, "NDArrayBase", &spec, object_type);
  NDArrayObj::RuntimeTypeIndex();
  PyObject* table = PyCapsule_New(const_cast<DLPackExchangeAPI*>(&our_table), kExchangeCapsule, nullptr);
  if (!table || PyObject_SetAttrString(reinterpret_cast<PyObject*>(ndarray_type), kExchangeAttribute, table)) {
    Py_FatalError("baton._core: the DLPack table could not be lent");
  }
  Py_DECREF(table);
  PyModule_AddFunctions(module, tensor_methods);
}

}  // namespace baton::python

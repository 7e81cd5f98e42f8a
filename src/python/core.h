// SPDX-License-Identifier: Apache-2.0
// What the files of the extension share. Python's own C interface is used for what is called often; nanobind hosts the
// module and its plain functions.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#if PY_VERSION_HEX < 0x030B0000
#include <longintrepr.h>
#endif
// Behind Python.h, which it needs.
#include <baton/runtime/any.h>
#include <baton/runtime/error.h>
#include <baton/runtime/ndarray.h>
#include <baton/runtime/packed_func.h>
#include <cxxabi.h>
#include <structmember.h>

#include <atomic>
#include <string_view>

namespace baton::python {

using runtime::Any;
using runtime::Object;
using runtime::ObjectAccess;
using runtime::ObjectPtr;
using runtime::ObjectRef;

/// An instance of `baton.runtime.Object` or a class derived from it. `obj` is null before `__init__`.
struct PyObj {
  PyObject_HEAD Object* obj;
};
/// An instance of `baton.runtime.container.Array`. `items` is a tuple of its elements once they were asked for, or
/// null.
struct PyArray {
  PyObject_HEAD Object* obj;
  PyObject* items;
  PyObject** seen;  ///< till then, those of its elements that Python has seen in a loop; null: none
  size_t room;      ///< of `seen`
  char looped;      ///< a loop has run to its end: from the next one on, `items` pays
};
/// Forgets the elements.
void ClearItems(PyArray* a);
/// An instance of `baton.runtime.PackedFunc`. Its function is set once and never changes: a running call relies on it.
struct PyFunc {
  PyObject_HEAD Object* obj;
  vectorcallfunc vectorcall;
  char release_gil;  ///< run the call without the lock: for calls that take long
};
/// An instance of `baton.runtime.Device`.
struct PyDevice {
  PyObject_HEAD DLDevice device;
};
/// An instance of `baton.runtime.Handle`: an opaque pointer.
struct PyHandle {
  PyObject_HEAD void* pointer;
};

extern PyTypeObject* object_type;
extern PyTypeObject* func_type;
extern PyTypeObject* array_type;
extern PyTypeObject* map_type;
extern PyTypeObject* ndarray_type;
extern PyTypeObject* device_type;
extern PyTypeObject* handle_type;
extern PyTypeObject* field_type;
extern PyTypeObject* dtype_type;  ///< set from Python: a subclass of str

/// Frees instances of Object and of classes that add nothing to it.
void ObjDealloc(PyObject* self);
/// Whether instances are plain PyObj: no dictionary, no slots, not seen by the collector of cycles.
inline bool IsPlain(PyTypeObject* t) {
  return t->tp_dealloc == ObjDealloc && t->tp_basicsize == sizeof(PyObj) && !PyType_HasFeature(t, Py_TPFLAGS_HAVE_GC);
}
inline bool IsObject(PyObject* x) { return Py_TYPE(x)->tp_dealloc == ObjDealloc || PyObject_TypeCheck(x, object_type); }
inline Object* ObjectOf(PyObject* x) { return reinterpret_cast<PyObj*>(x)->obj; }
/// The object behind `x`; sets an error and gives null if there is none (`__init__` did not run).
Object* CheckedObjectOf(PyObject* x);

/// Owned by an argument besides its value for the time of a call: converted objects, tensors, views of bytes.
/// Plain storage: making and dropping an unused one costs two stores and a compare.
class Temps {
 public:
  Temps() : n_objects_(0), n_tensors_(0), n_bytes_(0), more_(nullptr) {}
  Temps(const Temps&) = delete;
  ~Temps() {
    if (n_objects_ | n_tensors_ | n_bytes_) Drop();
  }
  /// Keeps one count of `o` until the end.
  void Keep(Object* o);
  struct Tensor {
    DLTensor view;
    int64_t strides[8];
    PyObject* capsule;  ///< owned, or null
  };
  Tensor* NewTensor();
  BatonByteArray* NewBytes(PyObject* buffer_owner, Py_buffer** view);

 private:
  void Drop();
  struct Bytes {
    BatonByteArray span;
    Py_buffer view;
  };
  struct More;
  int n_objects_, n_tensors_, n_bytes_;
  More* more_;
  Object* objects_[4];
  Tensor tensors_[4];
  Bytes bytes_[1];
};

/// Python to value, borrowed from `x` and `temps`. False with a Python error set.
bool ToValueSlow(PyObject* x, BatonValue* v, Temps& temps);
bool ToValue(PyObject* x, BatonValue* v, Temps& temps);
/// Python to an owned value.
bool ToAny(PyObject* x, Any* out);
/// Takes over the count in `v`. A new reference, or null with an error set.
PyObject* FromOwned(const BatonValue& v);
/// The same for a borrowed value.
PyObject* FromBorrowed(const BatonValue& v);
/// The same for an element of a container: numbers are of the classes that `set_number_classes` gave.
PyObject* FromElement(const BatonValue& v);
/// A Python object over `o`; takes over one count.
PyObject* WrapOwned(Object* o);
PyObject* WrapBorrowed(Object* o);
PyObject* FromDType(DLDataType t);
PyObject* FromDevice(DLDevice d);

/// An object of the embedding language that C++ holds in a box; the very object comes back.
bool BoxToValue(PyObject* x, BatonValue* v, Temps& temps);
/// The object in such a box, with one count of the box given up; null, and nothing done, for any other object.
PyObject* Unbox(Object* o);
extern uint32_t first_box;  ///< no type index below this is a box of ours

/// Raises the Python error that the thread's error slot holds; its trace ends in the function that was called, if that
/// has a name. Always gives null.
PyObject* RaiseFromSlot(const char* function = nullptr);
PyObject* RaiseError(const runtime::ErrorObj* e);
/// Moves the pending Python error to the thread's error slot, as an error whose payload is the exception itself.
void StorePythonError();
/// Runs f, and turns C++ exceptions into Python ones.
template <class F>
auto Guard(F f) -> decltype(f()) {
  try {
    return f();
  } catch (...) {
    runtime::CatchToSlot();
    RaiseFromSlot();
    if constexpr (std::is_pointer_v<decltype(f())>)
      return nullptr;
    else
      return static_cast<decltype(f())>(-1);
  }
}
/// Gives a reference up, from any thread; without the lock it is put off to when some thread holds it.
void DropReference(PyObject* x);
void FlushDropped();
extern std::atomic<void*> dropped_head;

/// Functions on the path of every call: a canary would cost a tenth of it, and they have no arrays of characters.
#if defined(__GNUC__) && !defined(__clang__)
#define BATON_HOT __attribute__((hot, no_stack_protector))
#else
#define BATON_HOT __attribute__((hot))
#endif

/// An int of Python that fits one of its digits, which most do.
inline bool SmallInt(PyObject* x, int64_t* out) {
#if PY_VERSION_HEX >= 0x030C0000
  if (!PyUnstable_Long_IsCompact(reinterpret_cast<PyLongObject*>(x))) return false;
  *out = PyUnstable_Long_CompactValue(reinterpret_cast<PyLongObject*>(x));
  return true;
#else
  Py_ssize_t n = Py_SIZE(x);
  if (n < -1 || n > 1) return false;
  *out = n * static_cast<int64_t>(reinterpret_cast<PyLongObject*>(x)->ob_digit[0]);
  return true;
#endif
}

/// The values that take neither a conversion nor an owner.
inline bool PlainToValue(PyObject* x, BatonValue* v) {
  PyTypeObject* t = Py_TYPE(x);
  if (t == &PyLong_Type) {
    int64_t i;
    if (!SmallInt(x, &i)) return false;
    *v = BatonValue{kBatonInt, 0, {.v_int64 = i}};
    return true;
  }
  if (t->tp_dealloc == ObjDealloc) {
    Object* o = ObjectOf(x);
    *v = BatonValue{kBatonObject, 0, {.v_obj = reinterpret_cast<BatonObject*>(o)}};
    return o != nullptr;
  }
  if (t == &PyFloat_Type) {
    *v = BatonValue{kBatonFloat, 0, {.v_float64 = PyFloat_AS_DOUBLE(x)}};
    return true;
  }
  if (x == Py_None) {
    *v = BatonValue{kBatonNull, 0, {.v_int64 = 0}};
    return true;
  }
  return false;
}

/// A function object that calls `callable`. A new count.
Object* NewCallback(PyObject* callable);
/// The tensor of a type that was seen before and is fast to read. 1: done, 0: not of these, -1: error set.
int KnownTensor(PyObject* x, BatonValue* v, Temps& temps);
/// An instance of a plain class, empty.
PyObject* AllocPlain(PyTypeObject* t);
/// DLTensor view of a NumPy array or a DLPack exporter. 1: done, 0: not a tensor, -1: error set.
int ToTensor(PyObject* x, BatonValue* v, Temps& temps);
/// An array that owns a dense copy of `t`.
runtime::NDArray CopyTensor(const DLTensor* t);

PyTypeObject* ClassOf(uint32_t type_index);
/// Type index that the class or the nearest of its bases is registered for.
uint32_t TypeIndexOf(PyTypeObject* cls);

void InitObject(PyObject* module);
void InitFunction(PyObject* module);
void InitContainer(PyObject* module);
void InitTensor(PyObject* module);
void InitSmall(PyObject* module);
void InitError(PyObject* module);
void InitExtension(PyObject* module);
/// Adds a type made from `spec`; the reference that is kept is the module's and the pointer's.
PyTypeObject* AddType(PyObject* module, const char* name, PyType_Spec* spec, PyTypeObject* base);

/// Stops this thread for good. While Python shuts down it ends other threads that ask for its lock by unwinding them,
/// which C++ frames between do not survive; a thread that waits does no harm.
[[noreturn]] void Park();
/// A forced unwinding has no exception object, so a reference to it is null: for functions that catch one.
#define BATON_CATCHES_FORCED_UNWIND __attribute__((no_sanitize("undefined")))
/// Takes the lock back after PyEval_SaveThread.
BATON_CATCHES_FORCED_UNWIND inline void RestoreThread(PyThreadState* state) {
  try {
    PyEval_RestoreThread(state);
  } catch (abi::__forced_unwind&) {
    Park();
  }
}
/// Calls under way on threads that gave the lock away for them.
extern std::atomic<int> calls_without_lock;
/// The lock, for the time of a scope.
struct GilGuard {
  PyGILState_STATE state;
  BATON_CATCHES_FORCED_UNWIND GilGuard() {
    try {
      state = PyGILState_Ensure();
    } catch (abi::__forced_unwind&) {
      Park();
    }
  }
  ~GilGuard() { PyGILState_Release(state); }
};
/// False once Python is going away and this thread may not enter it any more.
bool MayEnterPython();

}  // namespace baton::python

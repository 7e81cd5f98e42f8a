// SPDX-License-Identifier: Apache-2.0
// Calls both ways: PackedFunc called from Python, and Python callables as functions that C++ calls.
#include <baton/runtime/array.h>
#include <baton/runtime/string.h>

#include <cstring>
#include <memory>
#include <new>

#include "core.h"

namespace baton::python {

using namespace runtime;  // NOLINT

PyTypeObject* func_type;

namespace {

constexpr int kInline = 8;

PyObject* CallFunction(PyFunc* self, PyObject* const* args, Py_ssize_t n) {
  auto* f = static_cast<PackedFuncObj*>(self->obj);
  BatonValue inline_values[kInline];
  std::unique_ptr<BatonValue[]> more;
  BatonValue* values = inline_values;
  if (n > kInline) {
    more.reset(new (std::nothrow) BatonValue[n]);
    if (!more) return PyErr_NoMemory();
    values = more.get();
  }
  Temps temps;
  for (Py_ssize_t i = 0; i < n; ++i) {
    if (!ToValue(args[i], &values[i], temps)) return nullptr;
  }
  BatonValue ret{kBatonNull, 0, {.v_int64 = 0}};
  int rc;
  // The function may drop the last reference to itself while it runs (it may replace its own registration).
  ObjectAccess::IncRef(f);
  if (self->release_gil) {
    PyThreadState* state = PyEval_SaveThread();
    rc = f->call(f->self, values, static_cast<int>(n), &ret);
    RestoreThread(state);
  } else {
    rc = f->call(f->self, values, static_cast<int>(n), &ret);
  }
  PyObject* result = rc == 0 ? FromOwned(ret) : RaiseFromSlot();
  ObjectAccess::DecRef(f);
  return result;
}

PyObject* Vectorcall(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  if (kwnames && PyTuple_GET_SIZE(kwnames)) {
    PyErr_SetString(PyExc_TypeError, "a PackedFunc takes no keyword arguments");
    return nullptr;
  }
  auto* f = reinterpret_cast<PyFunc*>(self);
  if (!f->obj) {
    PyErr_SetString(PyExc_ValueError, "this PackedFunc holds no function");
    return nullptr;
  }
  if (dropped_head.load(std::memory_order_relaxed)) FlushDropped();
  try {
    return CallFunction(f, args, PyVectorcall_NARGS(nargsf));
  } catch (...) {
    CatchToSlot();
    return RaiseFromSlot();
  }
}

PyObject* FuncAlloc(PyTypeObject* t, Py_ssize_t n) {
  PyObject* self = PyType_GenericAlloc(t, n);
  if (self) reinterpret_cast<PyFunc*>(self)->vectorcall = Vectorcall;
  return self;
}

/// PackedFunc(callable) is `convert(callable)`.
int FuncInit(PyObject* self, PyObject* args, PyObject* kwargs) {
  PyObject* fn;
  static const char* names[] = {"function", nullptr};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O", const_cast<char**>(names), &fn)) return -1;
  if (!PyCallable_Check(fn)) {
    PyErr_Format(PyExc_TypeError, "PackedFunc takes a callable, got %s", Py_TYPE(fn)->tp_name);
    return -1;
  }
  auto* f = reinterpret_cast<PyFunc*>(self);
  Object* old = f->obj;
  if (Py_IS_TYPE(fn, func_type)) {
    f->obj = ObjectOf(fn);
    if (f->obj) ObjectAccess::IncRef(f->obj);
    f->release_gil = reinterpret_cast<PyFunc*>(fn)->release_gil;
  } else {
    f->obj = NewCallback(fn);
  }
  if (old) ObjectAccess::DecRef(old);
  return 0;
}

/// A Python callable as a function object.
struct Callback : PackedFuncObj {
  PyObject* callable;
  ~Callback() { DropReference(callable); }
};

/// A tensor that C++ lends for the time of the call. Python may keep what it gets, so it gets a copy; what it wrote is
/// copied back.
struct Lent {
  const DLTensor* outside;
  NDArray copy;
};

int RunCallback(Callback* c, const BatonValue* args, int n, BatonValue* ret) {
  PyObject* inline_stack[1 + kInline];
  std::unique_ptr<PyObject*[]> more;
  PyObject** stack = inline_stack;
  if (n > kInline) {
    more.reset(new PyObject*[n + 1]);
    stack = more.get();
  }
  std::vector<Lent> lent;
  int done = 0;
  bool ok = true;
  for (; done < n && ok; ++done) {
    const BatonValue& a = args[done];
    PyObject* x;
    if (a.type_code == kBatonTensor) {
      const Lent* same = nullptr;
      for (const Lent& l : lent) {
        if (l.outside->data == a.v_tensor->data && l.outside->byte_offset == a.v_tensor->byte_offset) same = &l;
      }
      if (!same) {
        lent.push_back({a.v_tensor, CopyTensor(a.v_tensor)});
        same = &lent.back();
      }
      x = FromBorrowed(Any(same->copy).raw());
    } else {
      x = FromBorrowed(a);
    }
    stack[done + 1] = x;
    ok = x != nullptr;
  }
  PyObject* result =
      ok ? PyObject_Vectorcall(c->callable, stack + 1, n | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr) : nullptr;
  for (int i = 0; i < done; ++i) Py_XDECREF(stack[i + 1]);
  if (result) {
    for (const Lent& l : lent) {
      // Written back only where something changed: the tensor may lie in memory that is not writable.
      NDArray now = CopyTensor(l.outside);
      if (memcmp(now.data(), l.copy.data(), now.nbytes()) != 0) l.copy.CopyTo(l.outside);
    }
    PyTypeObject* t = Py_TYPE(result);
    if (result == Py_None) {
      *ret = BatonValue{kBatonNull, 0, {.v_int64 = 0}};
      Py_DECREF(result);
      return 0;
    }
    if (t == &PyLong_Type || t == &PyFloat_Type || t == &PyBool_Type) {
      Temps temps;
      ok = ToValue(result, ret, temps);
    } else {
      Any a;
      ok = ToAny(result, &a);
      if (ok) *ret = a.Release();
    }
    Py_DECREF(result);
    if (ok) return 0;
  }
  StorePythonError();
  return -1;
}

BATON_CATCHES_FORCED_UNWIND int Trampoline(void* self, const BatonValue* args, int n, BatonValue* ret) {
  if (!MayEnterPython()) {
    BatonErrorSet("RuntimeError", "a Python function was called while Python shuts down");
    return -1;
  }
  GilGuard gil;
  try {
    return RunCallback(static_cast<Callback*>(self), args, n, ret);
  } catch (abi::__forced_unwind&) {
    Park();
  } catch (...) {
    return CatchToSlot();
  }
}

PyObject* GetRelease(PyObject* self, void*) { return PyBool_FromLong(reinterpret_cast<PyFunc*>(self)->release_gil); }
int SetRelease(PyObject* self, PyObject* value, void*) {
  int t = value ? PyObject_IsTrue(value) : -1;
  if (t < 0) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_AttributeError, "release_gil cannot be deleted");
    return -1;
  }
  reinterpret_cast<PyFunc*>(self)->release_gil = static_cast<char>(t);
  return 0;
}
PyObject* IsGlobal(PyObject*, void*) { Py_RETURN_FALSE; }

PyObject* FuncRepr(PyObject* self) {
  Object* o = ObjectOf(self);
  if (o && static_cast<PackedFuncObj*>(o)->call == Trampoline) {
    return PyUnicode_FromFormat("<baton.runtime.PackedFunc of %R>", static_cast<Callback*>(o)->callable);
  }
  return PyUnicode_FromFormat("<baton.runtime.PackedFunc at %p>", o);
}

PyGetSetDef func_getset[] = {
    {"release_gil", GetRelease, SetRelease, "Whether calls run without Python's lock; for calls that take long.",
     nullptr},
    {"is_global", IsGlobal, nullptr, "Kept for old programs; always False.", nullptr},
    {},
};
PyMemberDef func_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(PyFunc, vectorcall), READONLY, nullptr},
    {},
};
PyType_Slot func_slots[] = {
    {Py_tp_doc,
     const_cast<char*>("PackedFunc(callable)\n--\n\nA function that any language can call: positional arguments of any "
                       "kind, one result.")},
    {Py_tp_alloc, reinterpret_cast<void*>(FuncAlloc)},
    {Py_tp_init, reinterpret_cast<void*>(FuncInit)},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_repr, reinterpret_cast<void*>(FuncRepr)},
    {Py_tp_getset, func_getset},
    {Py_tp_members, func_members},
    {0, nullptr},
};
PyType_Spec func_spec = {"baton.runtime.PackedFunc", sizeof(PyFunc), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
                         func_slots};

}  // namespace

Object* NewCallback(PyObject* callable) {
  auto* c = new Callback;
  c->callable = Py_NewRef(callable);
  c->call = Trampoline;
  c->self = c;
  ObjectAccess::Init(c, PackedFuncObj::RuntimeTypeIndex(), [](Object* o) { delete static_cast<Callback*>(o); });
  ObjectAccess::IncRef(c);
  return c;
}

void InitFunction(PyObject* module) { func_type = AddType(module, "PackedFunc", &func_spec, object_type); }

}  // namespace baton::python

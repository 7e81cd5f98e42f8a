// SPDX-License-Identifier: Apache-2.0
// Calls both ways: PackedFunc called from Python, and Python callables as functions that C++ calls.
#include <baton/runtime/array.h>
#include <baton/runtime/string.h>

#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "core.h"

namespace baton::python {

using namespace runtime;  // NOLINT

PyTypeObject* func_type;

namespace {

constexpr int kInline = 8;

int Trampoline(void* self, const BatonValue* args, int n, BatonValue* ret);

/// The call itself. The function outlives it: the caller holds `self`, and `self` never lets go of what it holds.
BATON_HOT inline PyObject* Call(PyFunc* self, const BatonValue* values, int n) {
  auto* f = static_cast<PackedFuncObj*>(self->obj);
  BatonValue ret{kBatonNull, 0, {.v_int64 = 0}};
  int rc;
  if (__builtin_expect(self->release_gil, 0)) {
    PyThreadState* state = PyEval_SaveThread();
    calls_without_lock.fetch_add(1, std::memory_order_relaxed);
    rc = f->call(f->self, values, n, &ret);
    calls_without_lock.fetch_sub(1, std::memory_order_relaxed);
    RestoreThread(state);
  } else {
    rc = f->call(f->self, values, n, &ret);
  }
  if (__builtin_expect(rc != 0, 0)) return RaiseFromSlot(f->call == Trampoline ? nullptr : f->name);
  if (ret.type_code == kBatonNull) Py_RETURN_NONE;
  return FromOwned(ret);
}

/// Arguments of any kind, from the `done`-th on: those before are values already.
__attribute__((noinline)) PyObject* CallAny(PyFunc* self, PyObject* const* args, Py_ssize_t n, BatonValue* values,
                                            Py_ssize_t done) {
  try {
    std::unique_ptr<BatonValue[]> more;
    if (n > kInline) {
      more.reset(new BatonValue[n]);
      values = more.get();
      done = 0;
    }
    Temps temps;
    for (Py_ssize_t i = done; i < n; ++i) {
      if (!ToValue(args[i], &values[i], temps)) return nullptr;
    }
    return Call(self, values, static_cast<int>(n));
  } catch (...) {
    CatchToSlot();
    return RaiseFromSlot();
  }
}

BATON_HOT PyObject* Vectorcall(PyObject* callable, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  auto* self = reinterpret_cast<PyFunc*>(callable);
  const Py_ssize_t n = PyVectorcall_NARGS(nargsf);
  if (__builtin_expect((kwnames && PyTuple_GET_SIZE(kwnames)) || !self->obj, 0)) {
    if (self->obj) {
      PyErr_SetString(PyExc_TypeError, "a PackedFunc takes no keyword arguments");
    } else {
      PyErr_SetString(PyExc_ValueError, "this PackedFunc holds no function");
    }
    return nullptr;
  }
  if (__builtin_expect(dropped_head.load(std::memory_order_relaxed) != nullptr, 0)) FlushDropped();
  BatonValue values[kInline];
  Py_ssize_t i = 0;
  if (__builtin_expect(n <= kInline, 1)) {
    while (i < n && PlainToValue(args[i], &values[i])) ++i;
    if (i == n) return Call(self, values, static_cast<int>(n));
  }
  return CallAny(self, args, n, values, i);
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
  if (f->obj) {
    PyErr_SetString(PyExc_TypeError, "this PackedFunc holds a function already, and it cannot be changed");
    return -1;
  }
  if (Py_IS_TYPE(fn, func_type)) {
    f->obj = ObjectOf(fn);
    if (f->obj) ObjectAccess::IncRef(f->obj);
    f->release_gil = reinterpret_cast<PyFunc*>(fn)->release_gil;
  } else {
    f->obj = NewCallback(fn);
  }
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

/// Converts a callable's value to a result; takes the reference. False with a Python error set.
BATON_HOT inline bool TakeResult(PyObject* result, BatonValue* ret) {
  bool ok = true;
  if (result == Py_None) {
    *ret = BatonValue{kBatonNull, 0, {.v_int64 = 0}};
  } else if (int64_t i; Py_IS_TYPE(result, &PyLong_Type) && SmallInt(result, &i)) {
    *ret = BatonValue{kBatonInt, 0, {.v_int64 = i}};
  } else {
    Any a;
    ok = ToAny(result, &a);
    if (ok) *ret = a.Release();
  }
  Py_DECREF(result);
  return ok;
}

/// With tensors, or many arguments.
__attribute__((noinline)) bool RunSlow(PyObject* callable, const BatonValue* args, int n, BatonValue* ret) {
  std::unique_ptr<PyObject*[]> stack(new PyObject*[n + 1]);
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
      ok ? PyObject_Vectorcall(callable, &stack[1], n | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr) : nullptr;
  for (int i = 0; i < done; ++i) Py_XDECREF(stack[i + 1]);
  if (!result) return false;
  for (const Lent& l : lent) {
    // Written back only where something changed: the tensor may lie in memory that is not writable.
    NDArray now = CopyTensor(l.outside);
    if (memcmp(now.data(), l.copy.data(), now.nbytes()) != 0) l.copy.CopyTo(l.outside);
  }
  return TakeResult(result, ret);
}

BATON_HOT inline bool Run(PyObject* callable, const BatonValue* args, int n, BatonValue* ret) {
  PyObject* stack[1 + kInline];
  int done = 0;
  if (n > kInline) return RunSlow(callable, args, n, ret);
  for (; done < n; ++done) {
    const BatonValue& a = args[done];
    PyObject* x = nullptr;
    if (a.type_code == kBatonInt) {
      x = PyLong_FromLongLong(a.v_int64);
    } else if (a.type_code != kBatonTensor) {
      x = FromBorrowed(a);
    }
    if (!x) break;
    stack[done + 1] = x;
  }
  PyObject* result = nullptr;
  if (done == n) result = PyObject_Vectorcall(callable, stack + 1, n | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr);
  for (int i = 1; i <= done; ++i) Py_DECREF(stack[i]);
  if (result) return TakeResult(result, ret);
  return done < n && !PyErr_Occurred() && RunSlow(callable, args, n, ret);
}

/// With the lock held. The guard that holds it must lie outside: an unwinding thread may not give the lock back.
BATON_CATCHES_FORCED_UNWIND BATON_HOT inline int RunCallback(Callback* c, const BatonValue* args, int n,
                                                             BatonValue* ret) {
  try {
    if (Run(c->callable, args, n, ret)) return 0;
    StorePythonError();
    return -1;
  } catch (abi::__forced_unwind&) {
    Park();
  } catch (...) {
    return CatchToSlot();
  }
}

/// Whether this thread holds the lock.
inline bool HoldsLock() {
  PyThreadState* mine = PyGILState_GetThisThreadState();
#if PY_VERSION_HEX >= 0x030D0000
  return mine && mine == PyThreadState_GetUnchecked();
#else
  return mine && mine == _PyThreadState_UncheckedGet();
#endif
}

BATON_HOT int Trampoline(void* self, const BatonValue* args, int n, BatonValue* ret) {
  auto* c = static_cast<Callback*>(self);
  if (HoldsLock()) return RunCallback(c, args, n, ret);
  if (!MayEnterPython()) {
    BatonErrorSet("RuntimeError", "a Python function was called while Python shuts down");
    return -1;
  }
  GilGuard gil;
  return RunCallback(c, args, n, ret);
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
PyObject* Text(const char* s) {
  if (!s || !*s) Py_RETURN_NONE;
  return PyUnicode_FromString(s);
}
PyObject* GetName(PyObject* self, void*) {
  Object* o = ObjectOf(self);
  return Text(o ? static_cast<PackedFuncObj*>(o)->name : nullptr);
}
PyObject* GetSignature(PyObject* self, void*) {
  Object* o = ObjectOf(self);
  return Text(o ? static_cast<PackedFuncObj*>(o)->signature : nullptr);
}
PyObject* IsGlobal(PyObject*, void*) { Py_RETURN_FALSE; }

PyObject* FuncRepr(PyObject* self) {
  Object* o = ObjectOf(self);
  auto* f = static_cast<PackedFuncObj*>(o);
  if (f && f->call == Trampoline) {
    return PyUnicode_FromFormat("<baton.runtime.PackedFunc of %R>", static_cast<Callback*>(o)->callable);
  }
  if (f && f->signature) {
    return PyUnicode_FromFormat("<baton.runtime.PackedFunc %s%s>", f->name ? f->name : "", f->signature);
  }
  return PyUnicode_FromFormat("<baton.runtime.PackedFunc at %p>", o);
}

PyGetSetDef func_getset[] = {
    {"release_gil", GetRelease, SetRelease, "Whether calls run without Python's lock; for calls that take long.",
     nullptr},
    {"name", GetName, nullptr, "What a typed function was registered as, or None.", nullptr},
    {"signature", GetSignature, nullptr, "\"(int, str) -> float\" of a typed function; None: it takes anything.",
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
    {Py_tp_dealloc, reinterpret_cast<void*>(ObjDealloc)},
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

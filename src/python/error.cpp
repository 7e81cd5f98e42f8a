// SPDX-License-Identifier: Apache-2.0
// Errors both ways. A Python exception goes into C++ as the payload of an ErrorObj and comes out as the same object;
// an error of C++ becomes the Python class that is registered for its kind.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <unordered_map>
#include <vector>

#include "core.h"
// Behind Python.h, which it needs.
#include <frameobject.h>

namespace baton::python {

using namespace runtime;  // NOLINT

std::atomic<void*> dropped_head{nullptr};
std::atomic<int> calls_without_lock{0};

namespace {

/// Carries a Python exception through C++.
class PyExceptionObj : public Object {
 public:
  static constexpr const char* _type_key = "python.Exception";
  PyObject* exception = nullptr;
  ~PyExceptionObj() { DropReference(exception); }
  BATON_DECLARE_FINAL_OBJECT_INFO(PyExceptionObj, Object)
};

std::unordered_map<std::string, PyObject*>& Kinds() {
  static auto* kinds = new std::unordered_map<std::string, PyObject*>;
  return *kinds;
}

std::atomic<bool> closing{false};

PyObject* NewPythonError(const ErrorObj* e) {
  auto it = Kinds().find(e->kind);
  if (it == Kinds().end()) it = Kinds().find("Error");
  PyObject* cls = it == Kinds().end() ? PyExc_RuntimeError : it->second;
  PyObject* text = PyUnicode_DecodeUTF8(e->message.data(), e->message.size(), "replace");
  PyObject* exc = text ? PyObject_CallOneArg(cls, text) : nullptr;
  Py_XDECREF(text);
  if (!exc) return nullptr;
  auto set = [&](const char* name, PyObject* value) {
    if (!value || PyObject_SetAttrString(exc, name, value)) PyErr_Clear();
    Py_XDECREF(value);
  };
  set("kind", PyUnicode_DecodeUTF8(e->kind.data(), e->kind.size(), "replace"));
  if (!e->trace.empty()) set("trace", PyUnicode_DecodeUTF8(e->trace.data(), e->trace.size(), "replace"));
  if (e->payload.defined()) set("payload", WrapBorrowed(ObjectAccess::Get(e->payload)));
  return exc;
}

/// Makes the class that an exception of a program gets; see `error.also_error`. Null until Python has set it.
PyObject* also_error = nullptr;

/// Lets an exception that a callback raised be caught as Baton's too. It stays the object that it is: its class becomes
/// one derived from its own and from `Error`, of the same layout. Python's assignment to `__class__` does the same, but
/// not for its own classes such as ValueError.
void AlsoCatchAsError(PyObject* exc) {
  PyTypeObject* own = Py_TYPE(exc);
  auto error = Kinds().find("Error");
  if (!also_error || error == Kinds().end() || PyErr_GivenExceptionMatches(exc, error->second)) return;
  // Python keeps instances of the last two for later.
  if (!PyErr_GivenExceptionMatches(exc, PyExc_Exception) || PyErr_GivenExceptionMatches(exc, PyExc_MemoryError) ||
      PyErr_GivenExceptionMatches(exc, PyExc_RecursionError)) {
    return;
  }
  PyObject* made = PyObject_CallOneArg(also_error, reinterpret_cast<PyObject*>(own));
  auto* cls = reinterpret_cast<PyTypeObject*>(made);
  if (made && PyType_Check(made) && cls->tp_basicsize == own->tp_basicsize && cls->tp_itemsize == own->tp_itemsize &&
      cls->tp_dictoffset == own->tp_dictoffset && cls->tp_weaklistoffset == own->tp_weaklistoffset) {
    Py_INCREF(made);
    Py_SET_TYPE(exc, cls);
    if (own->tp_flags & Py_TPFLAGS_HEAPTYPE) Py_DECREF(reinterpret_cast<PyObject*>(own));
  }
  Py_XDECREF(made);
  PyErr_Clear();
}

void Restore(PyObject* exc) {
#if PY_VERSION_HEX >= 0x030C0000
  PyErr_SetRaisedException(exc);
#else
  PyErr_Restore(Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(exc))), exc, PyException_GetTraceback(exc));
#endif
}

/// The pending exception, normalised and with its traceback; owned.
PyObject* Take() {
#if PY_VERSION_HEX >= 0x030C0000
  return PyErr_GetRaisedException();
#else
  PyObject *type, *value, *tb;
  PyErr_Fetch(&type, &value, &tb);
  if (!type) return nullptr;
  PyErr_NormalizeException(&type, &value, &tb);
  if (tb) PyException_SetTraceback(value, tb);
  Py_XDECREF(type);
  Py_XDECREF(tb);
  return value;
#endif
}

std::string TextOf(PyObject* x) {
  PyObject* s = x ? PyObject_Str(x) : nullptr;
  Py_ssize_t n = 0;
  const char* p = s ? PyUnicode_AsUTF8AndSize(s, &n) : nullptr;
  std::string out = p ? std::string(p, n) : std::string();
  Py_XDECREF(s);
  PyErr_Clear();
  return out;
}

/// Frames of Python's traceback for the functions of C++ that an error passed, innermost first.
void AddFrames(const std::string& trace) {
  static PyObject* globals = PyDict_New();
  size_t begin = 0;
  while (begin < trace.size()) {
    size_t end = trace.find('\n', begin);
    if (end == std::string::npos) end = trace.size();
    if (trace.compare(begin, 4, "C++ ") == 0) {
      const std::string name = trace.substr(begin + 4, end - begin - 4);
      PyObject *type, *value, *tb;
      PyErr_Fetch(&type, &value, &tb);
      PyCodeObject* code = PyCode_NewEmpty("<C++>", name.c_str(), 1);
      PyFrameObject* frame = code && globals ? PyFrame_New(PyThreadState_Get(), code, globals, nullptr) : nullptr;
      PyErr_Clear();
      PyErr_Restore(type, value, tb);
      if (frame) PyTraceBack_Here(frame);
      Py_XDECREF(frame);
      Py_XDECREF(code);
    }
    begin = end + 1;
  }
}

/// The frames that an exception passed, innermost first, a line each.
std::string FramesOf(PyObject* exc) {
  std::vector<std::string> lines;
  PyObject* tb = PyException_GetTraceback(exc);
  while (tb && tb != Py_None && lines.size() < 64) {
    auto* t = reinterpret_cast<PyTracebackObject*>(tb);
    PyCodeObject* code = PyFrame_GetCode(t->tb_frame);
    PyObject* number = PyObject_GetAttrString(tb, "tb_lineno");
    lines.push_back(TextOf(code->co_filename) + ":" + TextOf(number) + " " + TextOf(code->co_name) + "\n");
    Py_XDECREF(number);
    Py_DECREF(code);
    PyObject* next = reinterpret_cast<PyObject*>(t->tb_next);
    Py_XINCREF(next);
    Py_DECREF(tb);
    tb = next;
  }
  Py_XDECREF(tb);
  PyErr_Clear();
  std::string out;
  for (size_t i = lines.size(); i-- > 0;) out += lines[i];
  return out;
}

struct Dropped {
  PyObject* x;
  Dropped* next;
};

int FlushPending(void*) {
  FlushDropped();
  return 0;
}

}  // namespace

void Park() {
  for (;;) pause();
}

bool MayEnterPython() { return Py_IsInitialized() && (!closing.load(std::memory_order_relaxed) || PyGILState_Check()); }

void DropReference(PyObject* x) {
  if (!x || !Py_IsInitialized()) return;
  if (PyGILState_Check()) {
    // The pending error, if any, is not the business of what is freed here.
    PyObject *type, *value, *tb;
    PyErr_Fetch(&type, &value, &tb);
    Py_DECREF(x);
    PyErr_Restore(type, value, tb);
    return;
  }
  if (closing.load(std::memory_order_relaxed)) return;
  // Taking the lock here could wait for a thread that waits for a lock that this one holds.
  auto* d = new (std::nothrow) Dropped{x, nullptr};
  if (!d) return;
  void* head = dropped_head.load(std::memory_order_relaxed);
  do {
    d->next = static_cast<Dropped*>(head);
  } while (!dropped_head.compare_exchange_weak(head, d, std::memory_order_release, std::memory_order_relaxed));
  if (!head) Py_AddPendingCall(FlushPending, nullptr);
}

void FlushDropped() {
  auto* d = static_cast<Dropped*>(dropped_head.exchange(nullptr, std::memory_order_acquire));
  while (d) {
    Dropped* next = d->next;
    Py_DECREF(d->x);
    delete d;
    d = next;
  }
}

PyObject* RaiseError(const ErrorObj* e) {
  PyObject* exc;
  if (e->payload.defined() && e->payload.get()->IsInstance<PyExceptionObj>()) {
    exc = Py_NewRef(static_cast<const PyExceptionObj*>(e->payload.get())->exception);
    AlsoCatchAsError(exc);
  } else {
    exc = NewPythonError(e);
  }
  if (exc) Restore(exc);
  if (exc && !e->trace.empty()) AddFrames(e->trace);
  return nullptr;
}

PyObject* RaiseFromSlot(const char* function) {
  BatonObject* raw = nullptr;
  BatonErrorTake(&raw);
  if (!raw) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_SystemError, "a call failed without saying why");
    return nullptr;
  }
  auto* e = reinterpret_cast<Object*>(raw);
  auto* error = static_cast<ErrorObj*>(e);
  if (function && *function && error->unique()) {
    // Typed functions have said so themselves.
    const std::string line = std::string("C++ ") + function + "\n";
    std::string& t = error->trace;
    if (t.size() < line.size() || t.compare(t.size() - line.size(), line.size(), line) != 0) t += line;
  }
  RaiseError(error);
  ObjectAccess::DecRef(e);
  return nullptr;
}

void StorePythonError() {
  PyObject* exc = Take();
  if (!exc) {
    BatonErrorSet("InternalError", "a Python function failed without an exception");
    return;
  }
  try {
    auto payload = make_object<PyExceptionObj>();
    payload->exception = exc;
    auto e = make_object<ErrorObj>();
    e->message = TextOf(exc);
    e->trace = FramesOf(exc);
    e->payload = ObjectRef(payload);
    e->ends_work = !PyErr_GivenExceptionMatches(exc, PyExc_Exception);
    // Errors that came from C++ say their kind; others go by their class.
    PyObject* kind = PyObject_GetAttrString(exc, "kind");
    if (kind && PyUnicode_Check(kind)) e->kind = TextOf(kind);
    Py_XDECREF(kind);
    PyErr_Clear();
    if (e->kind.empty()) {
      const char* name = Py_TYPE(exc)->tp_name;
      const char* dot = strrchr(name, '.');
      e->kind = dot ? dot + 1 : name;
    }
    BatonErrorPut(reinterpret_cast<BatonObject*>(static_cast<Object*>(e.get())));
  } catch (...) {
    CatchToSlot();
  }
}

namespace {

PyObject* RegisterError(PyObject*, PyObject* args) {
  const char* kind;
  PyObject* cls;
  if (!PyArg_ParseTuple(args, "sO:register_error", &kind, &cls)) return nullptr;
  if (!PyExceptionClass_Check(cls)) {
    PyErr_Format(PyExc_TypeError, "register_error takes an exception class, got %R", cls);
    return nullptr;
  }
  PyObject*& slot = Kinds()[kind];
  Py_XDECREF(slot);
  slot = Py_NewRef(cls);
  Py_RETURN_NONE;
}

PyObject* SetAlsoError(PyObject*, PyObject* f) {
  Py_XDECREF(also_error);
  also_error = Py_NewRef(f);
  Py_RETURN_NONE;
}

PyObject* Closing(PyObject*, PyObject*) {
  closing = true;
#ifdef __GLIBC__
  // A daemon thread may be within a call of ours: it must not see statics destroyed under it.
  on_exit(
      [](int status, void*) {
        if (calls_without_lock.load() == 0) return;
        fflush(nullptr);
        _exit(status);
      },
      nullptr);
#endif
  Py_RETURN_NONE;
}

PyMethodDef error_methods[] = {
    {"register_error", RegisterError, METH_VARARGS,
     "register_error(kind, cls): errors of C++ of this kind become `cls`."},
    {"set_also_error", SetAlsoError, METH_O,
     "set_also_error(f): `f(cls)` gives the class that exceptions of `cls` get when they come back from C++."},
    {"_closing", Closing, METH_NOARGS,
     "Says that the interpreter is about to go: other threads may not enter it any more."},
    {},
};

}  // namespace

void InitError(PyObject* module) {
  PyExceptionObj::RuntimeTypeIndex();
  PyModule_AddFunctions(module, error_methods);
}

}  // namespace baton::python

// SPDX-License-Identifier: Apache-2.0
// The module `baton._core`.
#include <baton/runtime/array.h>
#include <baton/runtime/interrupt.h>
#include <baton/runtime/map.h>
#include <baton/runtime/registry.h>
#include <baton/runtime/string.h>
#include <dlfcn.h>
#include <nanobind/nanobind.h>

#include <algorithm>
#include <chrono>

#include "core.h"

namespace nb = nanobind;

namespace baton::python {
namespace {

using namespace runtime;  // NOLINT

nb::object Owned(PyObject* x) {
  if (!x) throw nb::python_error();
  return nb::steal(x);
}

/// A global function as a PackedFunc, or None.
nb::object GetGlobal(const char* name) {
  // By the C interface, which gives a reference and not an address: the function can be freed once it is replaced.
  BatonObject* f = nullptr;
  if (BatonFuncGetGlobal(name, &f)) ThrowFromSlot();
  return f ? Owned(WrapOwned(reinterpret_cast<Object*>(f))) : nb::none();
}

void RegisterGlobal(const char* name, nb::handle f, bool override_existing) {
  if (!PyCallable_Check(f.ptr())) throw nb::type_error("register_global takes a callable");
  PackedFunc func;
  if (IsObject(f.ptr())) {
    func = PackedFunc(ObjectPtr<Object>(ObjectOf(f.ptr())));
  } else {
    func = ObjectAccess::Adopt<PackedFunc>(NewCallback(f.ptr()));
  }
  Registry::Register(name, override_existing).set_body(func);
}

/// Names of all global functions that begin with `prefix`.
nb::list ListGlobals(const char* prefix) {
  nb::list out;
  std::string p = prefix;
  for (const std::string& n : Registry::ListNames()) {
    if (n.compare(0, p.size(), p) == 0) out.append(nb::str(n.data(), n.size()));
  }
  return out;
}

nb::object Convert(nb::handle x) {
  Any a;
  if (!ToAny(x.ptr(), &a)) throw nb::python_error();
  return Owned(FromOwned(a.Release()));
}

nb::object MakeByKey(const char* key, nb::args, nb::kwargs kwargs) {
  std::vector<Any> values;
  std::vector<BatonValue> raw;
  for (auto [k, v] : kwargs) {
    Any name, value;
    if (!ToAny(k.ptr(), &name) || !ToAny(v.ptr(), &value)) throw nb::python_error();
    values.push_back(std::move(name));
    values.push_back(std::move(value));
  }
  for (const Any& a : values) raw.push_back(a.raw());
  const PackedFunc* make = Registry::Get("node.MakeNode");
  if (!make) throw InternalError("node.MakeNode is not registered");
  std::vector<BatonValue> all(1);
  String name(key);
  ValueTraits<String>::To(name, &all[0]);
  all.insert(all.end(), raw.begin(), raw.end());
  return Owned(FromOwned(make->CallPacked(all.data(), static_cast<int>(all.size())).Release()));
}

/// Loads a library for the time of the process.
void LoadLibrary(const char* path) {
  void* handle;
  {
    nb::gil_scoped_release release;
    handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  }
  if (!handle) throw RuntimeError(std::string("cannot load ") + path + ": " + dlerror());
}

/// Python's, where signal handlers run.
unsigned long main_thread = 0;  // NOLINT(google-runtime-int): Python's type
void FindMainThread() {
  nb::object ident = nb::module_::import_("threading").attr("main_thread")().attr("ident");
  main_thread = nb::cast<unsigned long>(ident);  // NOLINT(google-runtime-int)
}

/// For loops of C++ that take long: raises KeyboardInterrupt and runs signal handlers if there are any.
void CheckSignals() {
  // Python handles signals on its main thread alone; others need not wait for its lock.
  if (PyThread_get_thread_ident() != main_thread || !MayEnterPython()) return;
  GilGuard gil;
  if (PyErr_CheckSignals()) {
    StorePythonError();
    ThrowFromSlot();
  }
}

/// Bounds what this thread runs from now on: seconds, bytes of arrays, calls of a program. Negative: no bound.
void SetLimits(double seconds, int64_t bytes, int64_t rounds) {
  using Clock = std::chrono::steady_clock;
  baton::runtime::detail::InterruptPolls& polls = baton::runtime::detail::interrupt_polls;
  polls.deadline = 0;
  if (seconds >= 0 && seconds < 1e9) {
    const auto time = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    polls.deadline = (Clock::now() + time).time_since_epoch().count();
  }
  polls.max_bytes = 0;
  if (bytes >= 0 && bytes < INT64_MAX / 2) polls.max_bytes = std::max<int64_t>(polls.bytes, 0) + bytes + 1;
  polls.rounds = rounds < 0 || rounds == INT64_MAX ? 0 : rounds + 1;
}

}  // namespace
}  // namespace baton::python

NB_MODULE(_core, m) {
  using namespace baton::python;  // NOLINT
  m.doc() = "Objects, functions, containers, arrays and errors of Baton's runtime.";
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const baton::runtime::Error& e) {
      RaiseError(e.get());
    }
  });
  InitObject(m.ptr());
  InitFunction(m.ptr());
  InitContainer(m.ptr());
  InitSmall(m.ptr());
  InitTensor(m.ptr());
  InitError(m.ptr());
  InitExtension(m.ptr());
  m.def("get_global", GetGlobal, nb::arg("name"), "The global function, or None.");
  m.def("register_global", RegisterGlobal, nb::arg("name"), nb::arg("function"), nb::arg("override") = false,
        "Registers a callable under a name that every language sees.");
  m.def("remove_global", [](const char* name) { return baton::Registry::Remove(name); }, nb::arg("name"));
  m.def("list_globals", ListGlobals, nb::arg("prefix") = "", "Names of the global functions.");
  m.def("convert", Convert, nb::arg("value").none(), "What the value becomes when it goes to C++ and comes back.");
  m.def("make_node", MakeByKey, "make_node(key, **fields): an object of a type key.");
  m.def("set_limits", SetLimits, nb::arg("seconds"), nb::arg("bytes"), nb::arg("rounds"),
        "Bounds what this thread runs from now on; negative numbers: no bound.");
  m.def("load_library", LoadLibrary, nb::arg("path"));
  m.def("flush_dropped", FlushDropped, "Frees Python objects that C++ dropped without the lock.");
  FindMainThread();
  baton::Registry::Register("runtime.CheckSignals", true).set_body_typed(CheckSignals);
}

// SPDX-License-Identifier: Apache-2.0
// The timed functions over pybind11.
#include <pybind11/pybind11.h>

#include <cstdint>
#include <string>

namespace py = pybind11;
struct Thing {};

PYBIND11_MODULE(peer_pybind11, m) {
  py::class_<Thing>(m, "Thing").def(py::init<>());
  m.def("nop0", [] {});
  m.def("nop1", [](int64_t) {});
  m.def("nop3", [](int64_t, int64_t, int64_t) {});
  m.def("nop8", [](int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t) {});
  m.def("text", [](const char*) {});
  m.def("object", [](const Thing&) {});
}

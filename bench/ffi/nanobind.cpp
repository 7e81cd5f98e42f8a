// SPDX-License-Identifier: Apache-2.0
// The timed functions over nanobind: types known when compiled.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <cstdint>

namespace nb = nanobind;
struct Thing {};

NB_MODULE(peer_nanobind, m) {
  nb::class_<Thing>(m, "Thing").def(nb::init<>());
  m.def("nop0", [] {});
  m.def("nop1", [](int64_t) {});
  m.def("nop3", [](int64_t, int64_t, int64_t) {});
  m.def("nop8", [](int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t) {});
  m.def("text", [](const char*) {});
  m.def("object", [](const Thing&) {});
  m.def("tensors", [](nb::ndarray<>, nb::ndarray<>, nb::ndarray<>) {});
}

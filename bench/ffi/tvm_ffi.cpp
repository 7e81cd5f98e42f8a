// SPDX-License-Identifier: Apache-2.0
// The timed functions over apache-tvm-ffi.
#include <tvm/ffi/tvm_ffi.h>

#include <chrono>

namespace ffi = tvm::ffi;

namespace {

double Now() {
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class PairObj : public ffi::Object {
 public:
  ffi::Array<ffi::Any> args;
  explicit PairObj(ffi::Array<ffi::Any> a) : args(std::move(a)) {}
  PairObj() = default;
  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO("bench.Pair", PairObj, ffi::Object);
};
class Pair : public ffi::ObjectRef {
 public:
  explicit Pair(ffi::Array<ffi::Any> a) { data_ = ffi::make_object<PairObj>(std::move(a)); }
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Pair, ffi::ObjectRef, PairObj);
};

}  // namespace

TVM_FFI_STATIC_INIT_BLOCK() {
  namespace refl = tvm::ffi::reflection;
  refl::ObjectDef<PairObj>().def_ro("args", &PairObj::args);
  refl::GlobalDef()
      .def_packed("bench.nop", [](ffi::PackedArgs, ffi::Any*) {})
      .def("bench.nop0", [] {})
      .def("bench.nop1", [](int64_t) {})
      .def("bench.nop3", [](int64_t, int64_t, int64_t) {})
      .def("bench.nop8", [](int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t) {})
      .def("bench.add_one", [](int64_t x) { return x + 1; })
      .def("bench.pair", [](ffi::Array<ffi::Any> a) { return Pair(a); })
      .def("bench.cpp_to_cpp",
           [](ffi::Function f, int64_t n) {
             const double begin = Now();
             int64_t x = 0;
             for (int64_t i = 0; i < n; ++i) x = f(x).cast<int64_t>();
             const double took = Now() - begin;
             return x == n ? took : -1.0;
           })
      .def("bench.cpp_to_python", [](ffi::Function f, int64_t n) {
        const double begin = Now();
        for (int64_t i = 0; i < n; ++i) f(i);
        return Now() - begin;
      });
}

// SPDX-License-Identifier: Apache-2.0
// The timed functions over Baton.
#include <baton/runtime/array.h>
#include <baton/runtime/registry.h>

#include <chrono>

using namespace baton::runtime;

namespace {

double Now() {
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

BATON_REGISTER_GLOBAL("bench.nop").set_body([](Args, RetValue*) {});
BATON_REGISTER_GLOBAL("bench.nop0").set_body_typed([] {});
BATON_REGISTER_GLOBAL("bench.nop1").set_body_typed([](int64_t) {});
BATON_REGISTER_GLOBAL("bench.nop3").set_body_typed([](int64_t, int64_t, int64_t) {});
BATON_REGISTER_GLOBAL("bench.nop8")
    .set_body_typed([](int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t) {});
BATON_REGISTER_GLOBAL("bench.add_one").set_body_typed([](int64_t x) { return x + 1; });

/// Nanoseconds of `n` calls from C++ of a function that adds one.
BATON_REGISTER_GLOBAL("bench.cpp_to_cpp").set_body_typed([](PackedFunc f, int64_t n) {
  const double begin = Now();
  int64_t x = 0;
  for (int64_t i = 0; i < n; ++i) x = f(x);
  const double took = Now() - begin;
  return x == n ? took : -1.0;
});
BATON_REGISTER_GLOBAL("bench.cpp_to_python").set_body_typed([](PackedFunc f, int64_t n) {
  const double begin = Now();
  for (int64_t i = 0; i < n; ++i) f(i);
  return Now() - begin;
});

}  // namespace

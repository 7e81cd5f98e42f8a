// SPDX-License-Identifier: Apache-2.0
// NM-003: "TVM Runtime System", PackedFunc: a function that takes a function.
#include <baton/compat/tvm.h>
#include <doctest/doctest.h>

namespace seed_callhello {
using namespace tvm::runtime;

TVM_REGISTER_GLOBAL("callhello").set_body([](TVMArgs args, TVMRetValue* rv) {
  PackedFunc f = args[0];
  f("hello world");
});

}  // namespace seed_callhello

TEST_CASE("NM-002 NM-003 PF-011 PF-012 seed 002: callhello") {
  std::string heard;
  tvm::PackedFunc f([&](tvm::runtime::TVMArgs args, tvm::runtime::TVMRetValue*) { heard = args[0].As<std::string>(); });
  (*tvm::runtime::Registry::Get("callhello"))(f);
  CHECK(heard == "hello world");
}

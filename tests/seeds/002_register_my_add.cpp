// SPDX-License-Identifier: Apache-2.0
// NM-003: "TVM Runtime System", PackedFunc: a function registered in C++.
#include <baton/compat/tvm.h>
#include <doctest/doctest.h>

namespace seed_register_my_add {
using namespace tvm::runtime;

void MyAdd(TVMArgs args, TVMRetValue* rv) {
  int a = args[0];
  int b = args[1];
  *rv = a + b;
}

// register a global packed function in c++
TVM_REGISTER_GLOBAL("myadd").set_body(MyAdd);

}  // namespace seed_register_my_add

TEST_CASE("NM-002 NM-003 PF-007 seed 002: myadd, registered") {
  CHECK((*tvm::runtime::Registry::Get("myadd"))(1, 2).As<int>() == 3);
}

// SPDX-License-Identifier: Apache-2.0
// NM-003: "TVM Runtime System", PackedFunc: MyAdd, and its registration.
#include <baton/compat/tvm.h>
#include <doctest/doctest.h>

namespace seed_my_add {
using namespace tvm::runtime;

void MyAdd(TVMArgs args, TVMRetValue* rv) {
  // automatically convert arguments to desired type.
  int a = args[0];
  int b = args[1];
  // automatically assign value return to rv
  *rv = a + b;
}

void CallPacked() {
  PackedFunc myadd = PackedFunc(MyAdd);
  // get back 3
  int c = myadd(1, 2);
  CHECK(c == 3);
}

}  // namespace seed_my_add

TEST_CASE("NM-003 PF-001 PF-003 seed 002: MyAdd") { seed_my_add::CallPacked(); }

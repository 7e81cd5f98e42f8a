// SPDX-License-Identifier: Apache-2.0
// NM-003: "Adding a Compiler Pass to Relay", Registering an API Endpoint.
#include <baton/compat/tvm.h>
#include <doctest/doctest.h>

namespace seed_register_api {
using tvm::relay::Expr;
using tvm::runtime::TVMArgs;
using tvm::runtime::TVMRetValue;

Expr FoldConstant(const Expr& expr) { return expr; }

// The document's line, under a name of the test's own.
TVM_REGISTER_API("relay._ir_pass.SeedFoldConstant").set_body([](TVMArgs args, TVMRetValue* ret) {
  *ret = FoldConstant(args[0]);
});

}  // namespace seed_register_api

TEST_CASE("NM-003 NM-006 PF-028 seed 002: an endpoint whose argument converts to Expr by itself") {
  using namespace tvm::relay;
  Var x("x");
  const auto* f = tvm::runtime::Registry::Get("relay._ir_pass.SeedFoldConstant");
  REQUIRE(f != nullptr);
  Expr out = (*f)(x);
  CHECK(out.same_as(x));
  CHECK_THROWS_WITH_AS((*f)(1), doctest::Contains("expected"), tvm::Error);
}

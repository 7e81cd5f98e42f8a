// SPDX-License-Identifier: Apache-2.0
#include <baton/ir/env_func.h>
#include <baton/ir/structural.h>
#include <baton/runtime/registry.h>
#include <doctest/doctest.h>

using namespace baton;  // NOLINT

BATON_REGISTER_GLOBAL("test.env_func.add_one").set_body_typed([](int64_t x) { return x + 1; });

TEST_CASE("a global function as a node: by name, called, equal by name, saved and loaded") {
  EnvFunc f = EnvFunc::Get("test.env_func.add_one");
  CHECK(f(41).As<int64_t>() == 42);
  TypedEnvFunc<int64_t(int64_t)> typed = f;
  CHECK(typed(1) == 2);
  EnvFunc back = Downcast<EnvFunc>(LoadJSON(SaveJSON(f)));
  CHECK(back->name == "test.env_func.add_one");
  CHECK(back(1).As<int64_t>() == 2);
  CHECK(StructuralEqual(f, back));
  CHECK(StructuralHash(f) == StructuralHash(back));
}

TEST_CASE("a name that no function has is an error, whenever it is asked") {
  CHECK_THROWS_WITH(EnvFunc::Get("test.env_func.nobody"), doctest::Contains("`test.env_func.nobody`"));
  // Loaded where it is not registered, it can still be inspected.
  EnvFunc f(String("test.env_func.nobody"));
  CHECK(Downcast<EnvFunc>(LoadJSON(SaveJSON(f)))->name == "test.env_func.nobody");
  CHECK_THROWS_WITH(f(1), doctest::Contains("load the library"));
  CHECK_THROWS_WITH(EnvFunc()(1), doctest::Contains("null"));
}

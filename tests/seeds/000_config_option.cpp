// SPDX-License-Identifier: Apache-2.0
// NM-003: "Pass Infrastructure", PassContext: an option is registered with its type.
#include <baton/compat/tvm.h>
#include <baton/tir/transform.h>
#include <doctest/doctest.h>

namespace {
// The document's line, under a key of the test's own: `tir.UnrollLoop` is registered already.
TVM_REGISTER_PASS_CONFIG_OPTION("seed.UnrollLoop", tvm::tir::transform::UnrollLoopConfig);
}  // namespace

TEST_CASE("NM-003 seed 000: registered options are known, with their type; others are refused") {
  using tvm::Any;
  using tvm::String;
  using tvm::transform::PassContext;
  CHECK(PassContext::ListConfigOptions().count("tir.UnrollLoop"));
  tvm::Map<String, Any> config;
  config.Set("seed.UnrollLoop", Any(tvm::Map<String, Any>{{"auto_max_step", Any(7)}}));
  CHECK_NOTHROW(PassContext::Make(2, {}, {}, {}, config));
  config.Set("seed.Other", Any(1));
  CHECK_THROWS_WITH_AS(PassContext::Make(2, {}, {}, {}, config), doctest::Contains("seed.Other"), tvm::Error);
}

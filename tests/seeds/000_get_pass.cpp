// SPDX-License-Identifier: Apache-2.0
// NM-003: "Pass Infrastructure": GetPass looks a pass up in the registry (TR-18: a space before "to create").
#include <baton/compat/tvm.h>
#include <doctest/doctest.h>

namespace seed_get_pass {
using tvm::transform::Pass;

Pass GetPass(const std::string& pass_name) {
  using tvm::runtime::Registry;
  std::string fpass_name = "relay._transform." + pass_name;
  const auto* f = Registry::Get(fpass_name);
  ICHECK(f != nullptr) << "Cannot find " << fpass_name << " to create the pass " << pass_name;
  return (*f)();
}

}  // namespace seed_get_pass

TEST_CASE("NM-003 PF-025 TR-18 seed 000: GetPass") {
  CHECK(seed_get_pass::GetPass("FoldConstant")->Info()->name == "FoldConstant");
  CHECK_THROWS_WITH_AS(seed_get_pass::GetPass("Nothing"),
                       doctest::Contains("Cannot find relay._transform.Nothing to create the pass Nothing"),
                       tvm::Error);
}

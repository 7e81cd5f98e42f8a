// SPDX-License-Identifier: Apache-2.0
// NM-003: "Pass Infrastructure", C++ Backend: PassInfoNode.
#include <baton/compat/tvm.h>
#include <doctest/doctest.h>

namespace seed_pass_info {
using namespace tvm;
using tvm::Object;
using tvm::runtime::Array;

class PassInfoNode : public Object {
  String name;
  int opt_level;
  Array<String> required;

  // Not in the document: something that uses them.
 public:
  PassInfoNode() : name("p"), opt_level(2), required({"InferType"}) {}
  bool Check() const { return name == "p" && opt_level == 2 && required.size() == 1; }
};

}  // namespace seed_pass_info

TEST_CASE("NM-003 seed 000: PassInfoNode") { CHECK(seed_pass_info::PassInfoNode().Check()); }

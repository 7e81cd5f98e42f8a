// SPDX-License-Identifier: Apache-2.0
// Attributes without an operator, for tests of attributes: a default with bounds, a required name, numbers, a function
// by name.
#include <baton/ir/env_func.h>

namespace baton {

struct TestAttrs : AttrsNode<TestAttrs> {
  static constexpr auto _type_key = "attrs.TestAttrs";
  static constexpr const char* _doc = "Attributes of no operator, for tests of attributes.";
  int64_t axis = 10;
  String name;
  Array<PrimExpr> padding = {PrimExpr(0), PrimExpr(0)};
  EnvFunc func;
  static constexpr void Describe(auto& d) {
    d(F<&TestAttrs::axis>, "A number with bounds.", AtLeast(1), AtMost(10));
    d(F<&TestAttrs::name>, "A text that has to be given.", kRequired);
    d(F<&TestAttrs::padding>, "Numbers or expressions.");
    d(F<&TestAttrs::func>, "A global function by name, or null.", kNullable);
  }
};

namespace {
const RegisterNodes<TestAttrs> registered_test_attrs;
}  // namespace

}  // namespace baton

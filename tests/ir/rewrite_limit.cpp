// SPDX-License-Identifier: Apache-2.0
#include <baton/ir/rewrite_limit.h>
#include <doctest/doctest.h>

using namespace baton;             // NOLINT
using namespace baton::transform;  // NOLINT

TEST_CASE("a limit on rewrites counts what asks, in the context it was made in") {
  CHECK(RewriteAllowed());
  RewriteScope scope(2);
  CHECK(RewriteAllowed());
  {
    PassContext inner = PassContext::Create();
    AdoptPassContext adopt(inner);
    for (int i = 0; i < 5; ++i) CHECK(RewriteAllowed());  // what a pass compiles for itself
    RewriteScope nested(1);
    CHECK(RewriteAllowed());
    CHECK_FALSE(RewriteAllowed());
    CHECK(nested.seen() == 2);
  }
  CHECK(RewriteAllowed());
  CHECK_FALSE(RewriteAllowed());
  CHECK(scope.seen() == 3);
  RewriteScope unlimited(-1);
  for (int i = 0; i < 5; ++i) CHECK(RewriteAllowed());
  CHECK(unlimited.seen() == 5);
}

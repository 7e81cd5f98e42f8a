// SPDX-License-Identifier: Apache-2.0
#include <baton/runtime/checked.h>
#include <doctest/doctest.h>

#include <climits>

namespace baton::runtime {
namespace {

TEST_CASE("checked arithmetic is exact or an error") {
  Checked a = 6;
  CHECK(a + 1 == 7);
  CHECK(1 - a == -5);
  CHECK(a * size_t{7} == 42);
  CHECK(a / 4 == 1);
  CHECK(-a == -6);
  a += 4, a -= 1, a *= 2;
  CHECK(a == 18);
  CHECK(Checked(INT64_MAX) + 0 == INT64_MAX);
  CHECK(Checked(INT64_MIN) - 0 == INT64_MIN);
  CHECK_THROWS_AS(Checked(INT64_MAX) + 1, SizeOverflow);
  CHECK_THROWS_AS(INT64_MIN - Checked(1), SizeOverflow);
  CHECK_THROWS_AS(Checked(int64_t{1} << 32) * (int64_t{1} << 31), SizeOverflow);
  CHECK_THROWS_AS(-Checked(INT64_MIN), SizeOverflow);
  CHECK_THROWS_AS(Checked(INT64_MIN) / -1, SizeOverflow);
  CHECK_THROWS_AS(Checked(1) / 0, SizeOverflow);
  // To whoever calls it is a wrong program, not a mistake of ours.
  CHECK_THROWS_AS(Checked(INT64_MAX) * 2, CompileError);
}

}  // namespace
}  // namespace baton::runtime

// SPDX-License-Identifier: Apache-2.0
#include <baton/support/name_map.h>
#include <doctest/doctest.h>

#include <deque>
#include <string>

TEST_CASE("a map from names finds what was put in, whatever its size") {
  baton::support::NameMap<int> map;
  CHECK(map.Find("a") == nullptr);
  std::deque<std::string> names{""};
  for (int i = 0; i < 5000; ++i) names.push_back("name" + std::to_string(i * 7));
  for (size_t i = 0; i < names.size(); ++i) {
    bool fresh = false;
    map.Insert(names[i], &fresh) = static_cast<int>(i);
    CHECK(fresh);
  }
  CHECK(map.size() == names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string other = names[i];  // other characters, the same name
    bool fresh = true;
    REQUIRE(map.Find(other));
    CHECK(*map.Find(other) == static_cast<int>(i));
    CHECK(map.Insert(other, &fresh) == static_cast<int>(i));
    CHECK(!fresh);
    CHECK(map.Find(other + "_") == nullptr);
  }
  map["name0"] = 42;
  CHECK(*map.Find(names[1]) == 42);
  map.Clear();
  CHECK(map.size() == 0);
  CHECK(map.Find("name0") == nullptr);
  CHECK(map["name0"] == 0);
}

// SPDX-License-Identifier: Apache-2.0
#include <baton/support/scoped_table.h>
#include <doctest/doctest.h>

#include <string>

using baton::support::ScopedTable;

namespace {
const std::string* Find(const ScopedTable<std::string>& table, uint64_t hash, const std::string& value) {
  return table.Find(hash, [&](const std::string& s) { return s == value; });
}
}  // namespace

TEST_CASE("a scoped table finds by hash and comparison, and forgets what a scope added") {
  ScopedTable<std::string> table;
  CHECK(!Find(table, 1, "a"));
  table.Add(1, "a");
  table.Add(1, "b");  // another value of the same hash
  REQUIRE(Find(table, 1, "a"));
  CHECK(*Find(table, 1, "b") == "b");
  CHECK(!Find(table, 2, "a"));
  {
    ScopedTable<std::string>::Scope scope(&table);
    table.Add(1, "c");
    {
      ScopedTable<std::string>::Scope inner(&table);
      table.Add(3, "d");
      CHECK(Find(table, 3, "d"));
    }
    CHECK(!Find(table, 3, "d"));
    CHECK(Find(table, 1, "c"));
    CHECK(Find(table, 1, "a"));
  }
  CHECK(!Find(table, 1, "c"));
  CHECK(Find(table, 1, "a"));
  CHECK(table.size() == 2);
}

TEST_CASE("a scoped table that grows within a scope forgets the same entries") {
  ScopedTable<int> table;
  const auto has = [&](int value) { return table.Find(value % 7, [&](int v) { return v == value; }) != nullptr; };
  for (int i = 0; i < 50; ++i) table.Add(i % 7, i);
  {
    ScopedTable<int>::Scope scope(&table);
    for (int i = 50; i < 5000; ++i) table.Add(i % 7, i);
    for (int i = 0; i < 5000; i += 611) CHECK(has(i));
  }
  for (int i = 0; i < 50; ++i) CHECK(has(i));
  CHECK(!has(50));
  CHECK(!has(4999));
}

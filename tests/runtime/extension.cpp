// SPDX-License-Identifier: Apache-2.0
#include <baton/runtime/array.h>
#include <baton/runtime/extension.h>
#include <baton/runtime/map.h>
#include <baton/runtime/registry.h>
#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace {

/// Counts its instances, to show that copies are made and destroyed right.
struct IntVector {
  std::vector<int> data;
  static inline int alive = 0;
  explicit IntVector(std::vector<int> d) : data(std::move(d)) { ++alive; }
  IntVector(const IntVector& o) : data(o.data) { ++alive; }
  IntVector(IntVector&& o) noexcept : data(std::move(o.data)) { ++alive; }
  ~IntVector() { --alive; }
};
struct Other {
  int x;
};

}  // namespace

BATON_EXTENSION_TYPE(IntVector, "test.IntVector")
BATON_EXTENSION_TYPE(Other, "test.Other")

using namespace baton::runtime;

TEST_CASE("EX-001 EX-002 a C++ class is an argument and a result, copied and destroyed right, with a type of its own") {
  {
    PackedFunc append = MakeTyped(
        [](IntVector v, int x) {
          v.data.push_back(x);
          return v;
        },
        "test.append");
    CHECK(std::string(append.get()->signature) == "(test.IntVector, int) -> test.IntVector");
    IntVector one({1});
    IntVector two = append(one, 2);
    CHECK(one.data == std::vector<int>{1});
    CHECK(two.data == std::vector<int>{1, 2});
    Any held = append(two, 3);
    Any same = held;
    CHECK(held.object() == same.object());
    CHECK(held.object()->GetTypeKey() == "test.IntVector");
    CHECK(held.object()->IsInstance<OpaqueObj>());
    CHECK(held.object()->type_index() != Any(Other{1}).object()->type_index());
    CHECK(ValueTraits<IntVector>::Ref(held.raw()).data.size() == 3);
    PackedFunc untyped([](Args args, RetValue* rv) { *rv = static_cast<int>(args[0].As<IntVector>().data.size()); });
    CHECK(untyped(two).As<int>() == 2);
    CHECK(untyped(held).As<int>() == 3);
  }
  CHECK(IntVector::alive == 0);
}

TEST_CASE("EX-002 in and out of containers") {
  {
    Array<IntVector> array{IntVector({1}), IntVector({2, 3})};
    CHECK(array[1].data == std::vector<int>{2, 3});
    array.push_back(IntVector({4}));
    CHECK(array.size() == 3);
    Map<String, IntVector> map;
    map.Set("a", array[2]);
    CHECK(map["a"].data == std::vector<int>{4});
    PackedFunc first = MakeTyped([](Array<IntVector> a) { return a[0]; }, "test.first");
    CHECK(first(array).As<IntVector>().data == std::vector<int>{1});
    PackedFunc echo([](Args args, RetValue* rv) { *rv = args[0]; });
    CHECK(echo(array).As<Array<IntVector>>()[1].data.size() == 2);
  }
  CHECK(IntVector::alive == 0);
}

TEST_CASE("EX-004 another type is an error with both names") {
  PackedFunc wants = MakeTyped([](IntVector) {}, "test.wants");
  auto text = [&](auto x) -> std::string {
    try {
      wants(x);
    } catch (const Error& e) {
      return e.message();
    }
    return "";
  };
  CHECK(text(Other{1}) == "argument 0 of `test.wants`: expected test.IntVector, got test.Other");
  CHECK(text(1) == "argument 0 of `test.wants`: expected test.IntVector, got int 1");
  CHECK(text(nullptr) == "argument 0 of `test.wants`: expected test.IntVector, got None");
}

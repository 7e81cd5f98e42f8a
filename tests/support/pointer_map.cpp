// SPDX-License-Identifier: Apache-2.0
#include <baton/runtime/array.h>
#include <baton/runtime/string.h>
#include <baton/support/pointer_map.h>
#include <doctest/doctest.h>

#include <memory>
#include <random>
#include <unordered_map>
#include <vector>

namespace baton {
namespace {

using Keys = const void* (*)(size_t i);

/// Any address does; each a block's distance from the next, as objects are.
const void* Key(size_t i) { return reinterpret_cast<const void*>(uintptr_t{0x7f0000000000} + 48 * i); }

/// Objects of several sizes, of which the last share their cells: two addresses within one object.
const void* ObjectKey(size_t i) {
  static const auto objects = [] {
    std::vector<ObjectRef> made;
    for (size_t k = 0; k < 3'000; ++k) {
      if (k % 3 == 0)
        made.push_back(String(std::string(k % 200, 'x')));
      else
        made.push_back(Array<String>({String("a")}));
    }
    return made;
  }();
  if (i < 2'900) return objects[i].get();
  return reinterpret_cast<const char*>(objects[i - 1'000].get()) + 8;
}

/// Some are objects, others are not.
const void* MixedKey(size_t i) { return i % 2 ? Key(i) : ObjectKey(i); }

/// The same random steps on a PointerMap and a std::unordered_map; `make(i)` is a value, `number` takes it back.
template <class V, class Make, class Number>
void Compare(Keys Key, Make make, Number number, uint32_t seed) {
  PointerMap<V> map;
  std::unordered_map<size_t, size_t> model;
  std::mt19937 rng(seed);
  for (size_t step = 0; step < 20'000; ++step) {
    const size_t k = rng() % 3'000, v = rng() % 1'000;
    switch (rng() % 8) {
      case 0:
        CHECK(map.Erase(Key(k)) == (model.erase(k) == 1));
        break;
      case 1:
        CHECK(map.Has(Key(k)) == model.contains(k));
        break;
      case 2:
        if (step % 4'001 == 0) map.Clear(), model.clear();
        break;
      case 3:
        if (step % 97 == 0) {
          PointerMap<V> copy = map;
          copy[Key(k)] = make(v);  // the original does not see it
          map = PointerMap<V>(std::move(map));
        }
        break;
      default:
        bool fresh = false;
        map.Insert(Key(k), &fresh) = make(v);
        CHECK(fresh == !model.contains(k));
        model[k] = v;
    }
  }
  REQUIRE(map.size() == model.size());
  for (size_t k = 0; k < 3'000; ++k) {
    const V* v = map.Find(Key(k));
    REQUIRE((v != nullptr) == model.contains(k));
    if (v) CHECK(number(*v) == model.at(k));
  }
}

}  // namespace

TEST_CASE("Keys that are there move no values") {
  for (Keys Key : {Keys(Key), Keys(ObjectKey), Keys(MixedKey)}) {
    for (size_t n = 1; n <= 600; ++n) {
      PointerMap<size_t> map;
      for (size_t i = 0; i < n; ++i) map[Key(i)] = i;
      const size_t* first = map.Find(Key(0));
      for (size_t i = 0; i < n; ++i) REQUIRE(map[Key(i)] == i);
      REQUIRE(map.Find(Key(0)) == first);
    }
  }
}

TEST_CASE("PointerMap does what std::unordered_map does, for numbers, references and other values") {
  for (uint32_t seed = 0; seed < 4; ++seed) {
    for (Keys keys : {&Key, &ObjectKey, &MixedKey}) {
      Compare<size_t>(keys, [](size_t i) { return i; }, [](size_t v) { return v; }, seed);
      Compare<String>(
          keys, [](size_t i) { return String(std::to_string(i)); }, [](const String& s) { return std::stoul(s.str()); },
          seed);
      Compare<std::vector<size_t>>(
          keys, [](size_t i) { return std::vector<size_t>{i}; }, [](const auto& v) { return v[0]; }, seed);
    }
  }
}

TEST_CASE("PointerMap counts the references that it holds, through growth, erasing and its end") {
  String s("held");
  {
    PointerMap<ObjectRef> map;
    for (size_t i = 0; i < 10'000; ++i) map[Key(i)] = s;
    CHECK(s.get()->use_count() == 10'001);
    for (size_t i = 0; i < 5'000; ++i) map.Erase(Key(2 * i));
    CHECK(s.get()->use_count() == 5'001);
    PointerMap<ObjectRef> copy = map;
    CHECK(s.get()->use_count() == 10'001);
  }
  CHECK(s.get()->use_count() == 1);
}

TEST_CASE("PointerMap counts the references that it holds for objects, their cells shared or not") {
  String s("held");
  std::vector<ObjectRef> objects;
  for (size_t i = 0; i < 10'000; ++i) objects.push_back(Array<String>({s}));
  const int32_t before = s.get()->use_count();
  {
    PointerMap<ObjectRef> map;
    for (const ObjectRef& o : objects) map[o.get()] = s;
    CHECK(s.get()->use_count() == before + 10'000);
    // A second key in a cell sends its page into the hash table.
    for (size_t i = 0; i < 5'000; ++i) map[reinterpret_cast<const char*>(objects[i].get()) + 16] = s;
    CHECK(map.size() == 15'000);
    CHECK(s.get()->use_count() == before + 15'000);
    for (size_t i = 0; i < 10'000; i += 2) CHECK(map.Erase(objects[i].get()));
    PointerMap<ObjectRef> copy = map;
    CHECK(copy.size() == 10'000);
    CHECK(s.get()->use_count() == before + 20'000);
    map.Clear();
    CHECK(s.get()->use_count() == before + 10'000);
    for (size_t i = 0; i < 10'000; ++i) CHECK(copy.Has(objects[i].get()) == (i % 2 == 1));
  }
  CHECK(s.get()->use_count() == before);
}

}  // namespace baton

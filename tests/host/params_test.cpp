// SPDX-License-Identifier: Apache-2.0
#include <baton/host/function.h>
#include <baton/relay/op.h>
#include <baton/runtime/registry.h>
#include <doctest/doctest.h>
#include <relay/op/host_params.h>

#include <random>

using namespace baton;        // NOLINT
using namespace baton::host;  // NOLINT

namespace {

Params Read(const char* json) { return Params::Parse("op", json); }

PackedFunc Make(const std::string& name, const std::string& json) {
  const PackedFunc* maker = Registry::Get("host." + name);
  REQUIRE(maker);
  return (*maker)(json).As<PackedFunc>();
}

}  // namespace

TEST_CASE("host: parameters are read by name and kind") {
  const Params p =
      Read(R"({"i":3,"d":0.5,"n":NaN,"b":true,"s":"x","t":"float16","l":[1,2],"e":[],"r":[1,2.5],"none":null})");
  CHECK(p.Int("i") == 3);
  CHECK(p.Double("i") == 3);
  CHECK(p.Double("d") == 0.5);
  CHECK(p.Double("n") != p.Double("n"));
  CHECK(p.Bool("b"));
  CHECK(p.Text("s") == "x");
  CHECK(p.Dtype("t") == DataType::Float(16));
  CHECK(p.Ints("l") == std::vector<int64_t>{1, 2});
  CHECK(p.Ints("e").empty());
  CHECK(p.Doubles("r") == std::vector<double>{1, 2.5});
  CHECK_FALSE(p.Has("none"));
  CHECK(p.Has("i"));
  CHECK(Params::Parse("op", p.Dump()).Dump() == p.Dump());
}

TEST_CASE("host: wrong parameters are errors that name function and parameter") {
  const Params p = Read(R"({"i":3,"s":"x","r":[1,2.5]})");
  CHECK_THROWS_WITH_AS(p.Int("k"), "op: parameter `k` is missing", RuntimeError);
  CHECK_THROWS_WITH_AS(p.Has("k"), "op: parameter `k` is missing", RuntimeError);
  CHECK_THROWS_WITH_AS(p.Int("s"), "op: parameter `s` is \"x\", where an integer is wanted", RuntimeError);
  CHECK_THROWS_WITH_AS(p.Bool("i"), "op: parameter `i` is 3, where true or false is wanted", RuntimeError);
  CHECK_THROWS_WITH_AS(p.Dtype("s"), "op: parameter `s` is \"x\", where a data type is wanted", RuntimeError);
  CHECK_THROWS_WITH_AS(p.Ints("r"), "op: parameter `r` is [1,2.5], where a list of integers is wanted", RuntimeError);
  CHECK_THROWS_AS(Read("[1]"), RuntimeError);
  CHECK_THROWS_AS(Read("{\"a\":"), RuntimeError);
  CHECK_THROWS_AS(Read("{\"a\":[[[[[[[[[1]]]]]]]]]}"), RuntimeError);
}

TEST_CASE("host: every operator that is a function over arrays is registered under its name") {
  int found = 0;
  for (const std::string& name : Op::ListNames()) {
    const relay::OpDef* def = relay::DefOf(Op::Get(name));
    if (!def || !def->host.function) continue;
    ++found;
    CAPTURE(name);
    CHECK(Registry::Get("host." + name));
  }
  CHECK(found >= 17);
}

TEST_CASE("host: arrays that do not fit are errors") {
  const auto zeros = [](const std::vector<int64_t>& shape, DataType t) { return NDArray::Zeros(shape, t); };
  const DataType f = DataType::Float(32);
  const PackedFunc pool = Make("vision.roi_pool", R"({"pooled_size":[1,1],"spatial_scale":1.0,"layout":"NCHW"})");
  CHECK(pool(zeros({1, 2, 3, 3}, f), zeros({2, 5}, f)).As<NDArray>().shape() == std::vector<int64_t>{2, 2, 1, 1});
  CHECK_THROWS_WITH_AS(pool(zeros({1, 2, 3, 3}, f)), "vision.roi_pool: it takes 2 tensors, got 1", runtime::Error);
  CHECK_THROWS_WITH_AS(pool(zeros({1, 2, 3, 3}, f), zeros({2, 4}, f)),
                       "vision.roi_pool: argument 1 is float32[2, 4], where (number, 5) is wanted", runtime::Error);
  CHECK_THROWS_WITH_AS(pool(zeros({2, 3, 3}, f), zeros({2, 5}, f)),
                       "vision.roi_pool: argument 0 is float32[2, 3, 3], where rank 4 is wanted", runtime::Error);
  CHECK_THROWS_AS(pool(3, 4), runtime::Error);
  const PackedFunc split = Make("random.threefry_split", "{}");
  CHECK_THROWS_WITH_AS(split(zeros({9}, DataType::UInt(64))),
                       "random.threefry_split: argument 0 is uint64[9], where a key, uint64[10], is wanted",
                       runtime::Error);
}

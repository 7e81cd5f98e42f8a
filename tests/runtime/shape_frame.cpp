// SPDX-License-Identifier: Apache-2.0
#include <baton/runtime/c_backend_api.h>
#include <baton/runtime/error.h>
#include <baton/runtime/executor.h>
#include <doctest/doctest.h>

#include <random>
#include <string>

using namespace baton::runtime;

namespace {

// Inputs x (n, 4), y (n, m), z (n + m). Words: n, m, n + m, bytes of two buffers, their offsets.
int32_t Sizes(const int64_t* dims, void* const*, int64_t, int64_t* s) {
  const int64_t n = dims[0], m = dims[1];
  if (n == 13) return BatonBackendSetError("thirteen rows are refused");
  s[0] = n, s[1] = m, s[2] = n + m, s[3] = n * 16, s[4] = n * m * 4;
  return 0;
}

struct Model {
  DynamicShapes shapes;
  std::vector<TensorInfo> inputs, outputs;
  Model() {
    shapes.dims = {{"n", 0, 1000, 1}, {"m", 1, kMaxExtent, 1}};
    shapes.sizes = "sizes";
    shapes.words = 7;
    shapes.extents = {{0, -1}, {0, 1}, {2}, {2}};
    shapes.buffers = {{0, 1, 3, 5}, {1, 2, 4, 6}};
    inputs = {{"x", {-1, 4}, DataType::Float(32), {"n", ""}},
              {"y", {-1, -1}, DataType::Float(32), {"n", "m"}},
              {"z", {-1}, DataType::Float(32), {"n + m"}}};
    outputs = {{"out", {-1}, DataType::Float(32), {"n + m"}}};
  }
  ShapeFrame Frame() const { return ShapeFrame(&shapes, &inputs, &Sizes); }
};

void Set(ShapeFrame* f, int64_t n, int64_t m, int64_t z, int64_t n_of_y = -1) {
  const int64_t x[] = {n, 4}, y[] = {n_of_y < 0 ? n : n_of_y, m};
  f->SetInput(0, x);
  f->SetInput(1, y);
  f->SetInput(2, &z);
}

std::string Message(ShapeFrame* f) {
  try {
    f->Update(nullptr);
  } catch (const ValueError& e) {
    return e.what();
  }
  return "";
}

bool Contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("shape frame: sizes follow the shapes of the inputs") {
  const Model model;
  CheckDynamicShapes(model.shapes, model.inputs, model.outputs);
  ShapeFrame f = model.Frame();
  Set(&f, 5, 7, 12);
  CHECK(f.Update(nullptr));
  CHECK_FALSE(f.Update(nullptr));  // nothing changed
  std::vector<int64_t> shape{-1};
  f.FillShape(3, &shape);
  CHECK(shape[0] == 12);
  // The buffers live at the same step: they do not overlap.
  const int64_t *s = f.words(), a = s[5], b = s[6];
  CHECK((a + s[3] <= b || b + s[4] <= a));
  CHECK(f.arena_bytes() >= static_cast<uint64_t>(s[3] + s[4]));
}

TEST_CASE("shape frame: what does not fit is refused, and the next call works") {
  const Model model;
  ShapeFrame f = model.Frame();
  Set(&f, 1001, 1, 1002);
  CHECK(Contains(Message(&f), "input `x` has shape (1001, 4): n is 0 to 1000"));
  Set(&f, 5, 0, 5);
  CHECK(Contains(Message(&f), "input `y` has shape (5, 0): m is 1 to"));
  Set(&f, 5, 2, 7, 6);
  CHECK(Contains(Message(&f), "input `y` has shape (6, 2): n is 6, input `x` has n = 5"));
  Set(&f, 5, 2, 8);
  CHECK(Contains(Message(&f), "input `z` has shape (8,), where the other inputs ask for n + m = 7 in dimension 0"));
  Set(&f, 13, 2, 15);
  CHECK(Contains(Message(&f), "thirteen rows are refused (n = 13, m = 2)"));
  Set(&f, 5, 2, 7);
  CHECK(Message(&f).empty());
  CHECK(f.words()[4] == 40);
}

TEST_CASE("shape frame: a length that grows plans a few times an octave, and few plans are kept") {
  const Model model;
  ShapeFrame f = model.Frame();
  size_t plans = 0;
  uint64_t arena = 0;
  for (int64_t n = 64; n < 128; ++n) {
    if (n == 13) continue;
    Set(&f, n, 3, n + 3);
    f.Update(nullptr);
    if (f.arena_bytes() > arena) ++plans, arena = f.arena_bytes();
    CHECK(f.num_plans() <= 4);
  }
  CHECK(plans <= 9);
  f.Trim();
  CHECK(f.arena_bytes() == 0);
  f.Reserve({900, 4});
  const uint64_t reserved = f.arena_bytes();
  for (int64_t n : {900, 2, 64, 899}) {
    Set(&f, n, 4, n + 4);
    f.Update(nullptr);
  }
  CHECK(f.arena_bytes() == reserved);
  CHECK_THROWS_AS(f.Reserve({5000, 4}), ValueError);
}

TEST_CASE("shape frame: buffers that live together never overlap, whatever came before") {
  const Model model;
  ShapeFrame f = model.Frame();
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    int64_t n = random() % 1000, m = 1 + random() % 50;
    if (n == 13) ++n;
    Set(&f, n, m, n + m);
    f.Update(nullptr);
    const int64_t* s = f.words();
    REQUIRE((s[5] + s[3] <= s[6] || s[6] + s[4] <= s[5]));
    REQUIRE(static_cast<uint64_t>(s[5] + s[3]) <= f.arena_bytes());
    REQUIRE(static_cast<uint64_t>(s[6] + s[4]) <= f.arena_bytes());
  }
}

TEST_CASE("shape frame: a description that lies is refused") {
  const auto refused = [](auto change) {
    Model m;
    change(&m);
    CHECK_THROWS_AS(CheckDynamicShapes(m.shapes, m.inputs, m.outputs), RuntimeError);
  };
  refused([](Model* m) { m->shapes.words = 6; });
  refused([](Model* m) { m->shapes.words = 1; });
  refused([](Model* m) { m->shapes.extents[0][0] = 7; });
  refused([](Model* m) { m->shapes.extents[0][0] = -1; });
  refused([](Model* m) { m->shapes.extents[0].pop_back(); });
  refused([](Model* m) { m->shapes.extents.pop_back(); });
  refused([](Model* m) { m->shapes.buffers[0].offset = 1; });
  refused([](Model* m) { m->shapes.buffers[0].bytes = -1; });
  refused([](Model* m) { m->shapes.buffers[0].last = -1; });
  refused([](Model* m) { m->shapes.dims[0].multiple = 0; });
  refused([](Model* m) { m->shapes.dims[0].min = 2000; });
  refused([](Model* m) { m->shapes.extents[1][1] = 2; });  // nothing binds m
}

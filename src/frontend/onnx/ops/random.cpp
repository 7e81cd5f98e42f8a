// SPDX-License-Identifier: Apache-2.0
// Random numbers.
#include <cmath>

#include "common.h"

namespace baton::onnx {
namespace {

std::vector<std::pair<const char*, Any>> Seed(Ctx& c) {
  std::vector<std::pair<const char*, Any>> attrs;
  if (c.HasAttr("seed")) {
    double seed = c.Float("seed", 0);
    if (!(std::fabs(seed) < 9e18)) c.Fail("`seed` is " + std::to_string(seed));
    attrs.emplace_back("seed", static_cast<int64_t>(seed));
  }
  return attrs;
}

DataType TypeOr(Ctx& c, DataType default_value) {
  if (!c.HasAttr("dtype")) return default_value;
  DataType t = FromOnnxType(static_cast<int32_t>(c.Int("dtype")));
  if (t.is_void()) c.Unsupported("`dtype`");
  return t;
}

Values Draw(Ctx& c, bool like, bool normal) {
  auto attrs = Seed(c);
  DataType t = TypeOr(c, like ? c.T(0).dtype : DataType::Float(32));
  attrs.emplace_back("dtype", t);
  if (normal) {
    attrs.emplace_back("mean", c.Float("mean", 0));
    attrs.emplace_back("scale", c.Float("scale", 1));
  } else {
    attrs.emplace_back("low", c.Float("low", 0));
    attrs.emplace_back("high", c.Float("high", 1));
  }
  // Nothing is read of a shape that is known.
  if (like && !c.T(0).fixed()) {
    return {c.CallWith(normal ? "random.normal_like" : "random.uniform_like", {c.T(0)}, attrs)};
  }
  attrs.emplace_back("shape", IntsAny(like ? c.T(0).dims : c.Ints("shape")));
  return {c.CallWith(normal ? "random.normal" : "random.uniform", {}, attrs)};
}
Values RandomUniform(Ctx& c) { return Draw(c, false, false); }
Values RandomNormal(Ctx& c) { return Draw(c, false, true); }
Values RandomUniformLike(Ctx& c) { return Draw(c, true, false); }
Values RandomNormalLike(Ctx& c) { return Draw(c, true, true); }

Values Bernoulli(Ctx& c) {
  auto attrs = Seed(c);
  attrs.emplace_back("dtype", TypeOr(c, c.T(0).dtype));
  return {c.CallWith("random.bernoulli", {c.T(0)}, attrs)};
}

Values Multinomial(Ctx& c) {
  auto attrs = Seed(c);
  attrs.emplace_back("sample_size", c.Int("sample_size", 1));
  attrs.emplace_back("dtype", TypeOr(c, DataType::Int(32)));
  return {c.CallWith("random.multinomial", {c.T(0)}, attrs)};
}

}  // namespace

void AddRandom(OpTable* table) {
  for (const OpRow& row : {OpRow{"", "RandomUniform", RandomUniform},
                           {"", "RandomNormal", RandomNormal},
                           {"", "RandomUniformLike", RandomUniformLike},
                           {"", "RandomNormalLike", RandomNormalLike},
                           {"", "Bernoulli", Bernoulli},
                           {"", "Multinomial", Multinomial}}) {
    table->push_back(row);
  }
}

}  // namespace baton::onnx

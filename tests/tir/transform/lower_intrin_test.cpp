// SPDX-License-Identifier: Apache-2.0
// Elementary functions of float32 against the same in double: largest error in units of the last place, and special
// values.
#include <baton/codegen/codegen.h>
#include <baton/runtime/ndarray.h>
#include <baton/tir/interpreter.h>
#include <baton/tir/lower.h>
#include <baton/tir/op.h>
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

using namespace baton;
using namespace baton::tir;

namespace {
constexpr int kN = 4096;
const float kInf = std::numeric_limits<float>::infinity();

/// y[i] = fn(x[i]) in vectors of 16.
PrimFunc Elementwise(PrimExpr (*fn)(PrimExpr)) {
  Buffer x = Buffer::Make({kN}, DataType::Float(32), "x"), y = Buffer::Make({kN}, DataType::Float(32), "y");
  Var px("x", DataType::Handle()), py("y", DataType::Handle()), o("o"), v("v");
  PrimExpr i = o * 16 + v;
  Stmt body = BufferStore(BufferStoreNode{.buffer = y, .value = fn(BufferLoad(x, {i})), .indices = {i}});
  body = For(ForNode{.loop_var = v, .min = 0, .extent = 16, .kind = ForKind::kVectorized, .body = body});
  body = For(ForNode{.loop_var = o, .min = 0, .extent = kN / 16, .kind = ForKind::kSerial, .body = body});
  return PrimFunc({px, py}, body, {{px, x}, {py, y}});
}
/// Distance in float32 values, subnormal ones counted.
double Ulp(float got, double want) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got) ? 0 : 1e9;
  float w = static_cast<float>(want);
  if (std::isinf(w) || std::isinf(got)) return w == got ? 0 : 1e9;
  int e;
  std::frexp(want, &e);
  double ulp = std::ldexp(1.0, std::max(e - 24, -149));
  return std::fabs(static_cast<double>(got) - want) / ulp;
}
struct Case {
  const char* name;
  PrimExpr (*fn)(PrimExpr);
  double (*ref)(double);
  float lo, hi;
  double ulp;
};
}  // namespace

TEST_CASE("tir.LowerIntrin: error of float32 functions, compiled") {
  const std::vector<Case> cases = {
      {"exp", exp, std::exp, -105, 90, 1.5},
      {"exp2", exp2, std::exp2, -150, 129, 1.5},
      {"log", log, std::log, 0, 3e38f, 1.5},
      {"log", log, std::log, 0.5f, 2.0f, 1.5},
      {"log2", log2, std::log2, 0, 1e30f, 2},
      {"log10", log10, std::log10, 0, 1e30f, 2},
      {"log1p", log1p, std::log1p, -1, 1, 2.5},
      {"log1p", log1p, std::log1p, 0, 1e30f, 2.5},
      {"tanh", tanh, std::tanh, -10, 10, 2.5},
      {"tanh", tanh, std::tanh, -0.01f, 0.01f, 1.5},
      {"sigmoid", sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, -100, 100, 2.5},
      {"erf", erf, std::erf, -4.5f, 4.5f, 2},
      {"erf", erf, std::erf, -0.001f, 0.001f, 1.5},
      {"rsqrt", rsqrt, [](double x) { return 1 / std::sqrt(x); }, 1e-30f, 1e30f, 1.5},
  };
  const std::vector<float> special = {0.0f,    -0.0f,    1.0f,   -1.0f,   kInf,    -kInf,    std::nanf(""), 1e-45f,
                                      -1e-45f, 1.2e-38f, 1e38f,  -1e38f,  3.4e38f, -3.4e38f, 88.72f,        88.73f,
                                      89.0f,   -87.3f,   -88.0f, -103.9f, -104.0f, -105.0f,  0.92f,         0.625f};
  Target host = Target::Host();
  for (const Case& c : cases) {
    INFO(std::string(c.name));
    PrimFunc f = LowerPipeline(Elementwise(c.fn), host);
    IRModule mod(Map<GlobalVar, BaseFunc>{{GlobalVar("f"), f}});
    runtime::Module code = codegen::LoadObjects(codegen::CompileToObjects(mod, host, 1));
    auto* fn = reinterpret_cast<int32_t (*)(void*, void*)>(code->GetSymbol("f"));
    REQUIRE(static_cast<bool>(fn));
    NDArray x = NDArray::Empty({kN}, DataType::Float(32)), y = NDArray::Empty({kN}, DataType::Float(32)),
            z = NDArray::Empty({kN}, DataType::Float(32));
    double worst = 0;
    float worst_at = 0;
    uint64_t seed = 7;
    for (int round = 0; round < 8; ++round) {
      for (int i = 0; i < kN; ++i) {
        seed = seed * 6364136223846793005ull + 1442695040888963407ull;
        double u = static_cast<double>(seed >> 11) * 0x1p-53;
        double v = c.lo + u * (c.hi - c.lo);
        // Half of the points spread over the magnitudes.
        if (round % 2 && c.lo >= 0) v = std::ldexp(1 + u, static_cast<int>(seed % 250) - 140);
        if (v < c.lo || v > c.hi) v = c.lo;
        x.SetDouble(i, v);
      }
      if (round == 0) {
        for (size_t i = 0; i < special.size(); ++i)
          x.SetDouble(static_cast<int64_t>(i), static_cast<double>(special[i]));
      }
      CHECK(fn(x.data(), y.data()) == 0);
      for (int i = 0; i < kN; ++i) {
        float in = static_cast<float>(x.GetDouble(i)), got = static_cast<float>(y.GetDouble(i));
        double err = Ulp(got, c.ref(static_cast<double>(in)));
        if (err > worst) worst = err, worst_at = in;
      }
      if (round == 0) {
        // The interpreter computes the same operations.
        Interpret(f, {x, z});
        for (int i = 0; i < kN; ++i) {
          double a = y.GetDouble(i), b = z.GetDouble(i);
          bool same = a == b || (std::isnan(a) && std::isnan(b));
          CHECK_MESSAGE(same, c.name, "(", x.GetDouble(i), "): compiled ", a, ", interpreted ", b);
        }
      }
    }
    CHECK_MESSAGE(worst <= c.ulp, c.name, " is ", worst, " ulp off at ", worst_at);
    // Signed zeros where the function keeps them.
    if (std::string(c.name) == "erf" || std::string(c.name) == "tanh" || std::string(c.name) == "log1p") {
      x.SetDouble(0, -0.0);
      fn(x.data(), y.data());
      CHECK(std::signbit(y.GetDouble(0)));
    }
  }
}

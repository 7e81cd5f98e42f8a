// SPDX-License-Identifier: Apache-2.0
#include "driver/roofline.h"

#include <baton/relay/functor.h>
#include <baton/relay/op.h>
#include <baton/runtime/registry.h>
#include <baton/runtime/threading.h>
#include <baton/tir/op.h>

#include <algorithm>
#include <chrono>
#include <memory>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace baton::driver {

using relay::CallNode;
using relay::Expr;
using relay::Function;

double Seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

namespace {

std::vector<TensorType> TensorsOf(const Type& type) {
  std::vector<TensorType> out;
  std::vector<Type> work{type};
  while (!work.empty()) {
    Type t = work.back();
    work.pop_back();
    if (const auto* tensor = t.as<TensorTypeNode>()) {
      out.push_back(GetRef<TensorType>(tensor));
    } else if (const auto* tuple = t.as<TupleTypeNode>()) {
      for (const Type& f : tuple->fields) work.push_back(f);
    }
  }
  return out;
}
PrimExpr Number(double value) { return FloatImm(DataType::Float(64), value); }
PrimExpr Bytes(const Expr& e) {
  PrimExpr n = Number(0);
  for (const TensorType& t : TensorsOf(e->checked_type())) n = n + relay::ElementsFormula(t) * Number(t->dtype.bytes());
  return n;
}

// ---- The peak: twelve chains of multiply-adds cover a latency of four cycles on two units, and more.

#define BATON_EACH_CHAIN(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
constexpr double kChains = 12;
#if defined(__x86_64__)
__attribute__((target("avx512f"))) double Chains512(int64_t rounds) {
  __m512 x = _mm512_set1_ps(0.999f), y = _mm512_set1_ps(0.001f);
#define BATON_START(i) __m512 a##i = _mm512_set1_ps(i);
  BATON_EACH_CHAIN(BATON_START)
#undef BATON_START
  for (int64_t r = 0; r < rounds; ++r) {
#define BATON_STEP(i)                 \
  a##i = _mm512_fmadd_ps(a##i, x, y); \
  asm volatile("" : "+v"(a##i));
    BATON_EACH_CHAIN(BATON_STEP)
#undef BATON_STEP
  }
  return 2 * kChains * 16 * static_cast<double>(rounds);
}
__attribute__((target("avx2,fma"))) double Chains256(int64_t rounds) {
  __m256 x = _mm256_set1_ps(0.999f), y = _mm256_set1_ps(0.001f);
#define BATON_START(i) __m256 a##i = _mm256_set1_ps(i);
  BATON_EACH_CHAIN(BATON_START)
#undef BATON_START
  for (int64_t r = 0; r < rounds; ++r) {
#define BATON_STEP(i)                 \
  a##i = _mm256_fmadd_ps(a##i, x, y); \
  asm volatile("" : "+x"(a##i));
    BATON_EACH_CHAIN(BATON_STEP)
#undef BATON_STEP
  }
  return 2 * kChains * 8 * static_cast<double>(rounds);
}
#endif
double ChainsPlain(int64_t rounds) {
  typedef float Vec __attribute__((vector_size(16)));
  Vec x = {0.999f, 0.999f, 0.999f, 0.999f}, y = {0.001f, 0.001f, 0.001f, 0.001f};
#if defined(__x86_64__)
#define BATON_KEEP(v) asm volatile("" : "+x"(v))
#elif defined(__aarch64__)
#define BATON_KEEP(v) asm volatile("" : "+w"(v))
#else
#define BATON_KEEP(v) asm volatile("" : "+m"(v))
#endif
#define BATON_START(i) Vec a##i = x * static_cast<float>(i);
  BATON_EACH_CHAIN(BATON_START)
#undef BATON_START
  for (int64_t r = 0; r < rounds; ++r) {
#define BATON_STEP(i)  \
  a##i = a##i * x + y; \
  BATON_KEEP(a##i);
    BATON_EACH_CHAIN(BATON_STEP)
#undef BATON_STEP
  }
#undef BATON_KEEP
  return 2 * kChains * 4 * static_cast<double>(rounds);
}
#undef BATON_EACH_CHAIN
double Chains(int64_t rounds) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return Chains512(rounds);
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return Chains256(rounds);
#endif
  return ChainsPlain(rounds);
}

/// The best of some tries of `body(task)` on all threads; the sum of what it returns, by the second.
template <class F>
double BestRate(const F& body) {
  struct Closure {
    const F* body;
    std::vector<double> done;
  };
  double best = 0;
  for (int round = 0; round < 6; ++round) {
    Closure c{&body, std::vector<double>(static_cast<size_t>(runtime::threading::NumThreads()))};
    double begin = Seconds();
    runtime::threading::Launch(
        [](int task, int, void* p) {
          auto* c = static_cast<Closure*>(p);
          c->done[static_cast<size_t>(task)] = (*c->body)(task);
          return 0;
        },
        &c, static_cast<int>(c.done.size()));
    double took = Seconds() - begin, sum = 0;
    for (double d : c.done) sum += d;
    best = std::max(best, sum / std::max(took, 1e-9));
  }
  return best;
}

Roofline Measure() {
  Roofline r;
  double begin = Seconds();
  Chains(20000);
  auto rounds = static_cast<int64_t>(20000 * 0.015 / std::max(Seconds() - begin, 1e-7));
  r.flops_per_second = BestRate([&](int) { return Chains(std::max<int64_t>(rounds, 1)); });
  // Larger than the caches of most machines, for each thread its own.
  constexpr size_t kWords = (32 << 20) / sizeof(uint64_t);
  size_t threads = static_cast<size_t>(runtime::threading::NumThreads());
  std::unique_ptr<uint64_t[]> memory(new uint64_t[kWords * threads]);
  r.bytes_per_second = BestRate([&](int task) {
    uint64_t* p = memory.get() + static_cast<size_t>(task) * kWords;
    if (p[0] != 1) std::fill(p, p + kWords, uint64_t{1});  // the first time: pages come into being
    uint64_t sum[8] = {};
    for (size_t i = 0; i < kWords; i += 8) {
      for (size_t k = 0; k < 8; ++k) sum[k] += p[i + k];
    }
    uint64_t total = 0;
    for (uint64_t s : sum) total += s;
    asm volatile("" : : "r"(total));
    return static_cast<double>(kWords * sizeof(uint64_t));
  });
  return r;
}

}  // namespace

FlopsAndBytes FlopsAndBytesOf(const Function& func) {
  FlopsAndBytes w{Number(0), Number(0)};
  for (const relay::Var& p : func->params) w.bytes = w.bytes + Bytes(p);
  w.bytes = w.bytes + Bytes(func->body);
  relay::PostOrder(func->body, [&](const Expr& e) {
    if (const auto* call = e.as<CallNode>()) w.flops = w.flops + relay::FlopsFormula(call);
  });
  return w;
}

const Roofline& MeasuredRoofline() {
  static const Roofline r = Measure();
  return r;
}

/// [operations a second, bytes a second, threads]
BATON_REGISTER_GLOBAL("driver.Roofline").set_body_typed([] {
  const Roofline& r = MeasuredRoofline();
  return Array<double>{r.flops_per_second, r.bytes_per_second, static_cast<double>(runtime::threading::NumThreads())};
});

/// Threads that compiled code of this process uses; 0: as many as the environment says.
BATON_REGISTER_GLOBAL("driver.SetNumThreads").set_body_typed([](int64_t n) {
  runtime::threading::SetNumThreads(static_cast<int>(n));
});
BATON_REGISTER_GLOBAL("driver.NumThreads").set_body_typed([] {
  return static_cast<int64_t>(runtime::threading::NumThreads());
});

}  // namespace baton::driver

// SPDX-License-Identifier: Apache-2.0
// Random numbers. A seed makes a call repeatable; without one all calls share a generator that starts anew in each
// process with the same numbers, so that runs can be repeated.
#include <cmath>
#include <mutex>

#include "host/arrays.h"
#include "host/functions.h"

namespace baton::host {
namespace {

/// SplitMix64: small, and good enough for samples.
struct Generator {
  uint64_t state;
  uint64_t Next() {
    uint64_t z = (state += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  /// In [0, 1).
  double Unit() { return static_cast<double>(Next() >> 11) * 0x1p-53; }
  /// Standard normal, by Box and Muller.
  double Normal() {
    double u = 1 - Unit(), v = Unit();
    return std::sqrt(-2 * std::log(u)) * std::cos(6.283185307179586 * v);
  }
};
/// With the generator of the parameter `seed`; without one, with that of all calls.
template <class Fn>
void With(const Params& p, Fn fn) {
  if (p.Has("seed")) {
    uint64_t bits;
    if (p.At("seed").is_int()) {
      bits = static_cast<uint64_t>(p.Int("seed"));
    } else {  // ONNX gives seeds as floats
      bits = __builtin_bit_cast(uint64_t, p.Double("seed"));
    }
    Generator g{bits};
    fn(&g);
    return;
  }
  static std::mutex mutex;
  static Generator shared{0};
  std::lock_guard lock(mutex);
  fn(&shared);
}

}  // namespace

namespace {
/// Room for what is drawn: of the shape that a call says, or of that of its argument.
NDArray Drawn(const Params& p, const Arrays& in) {
  if (in.empty()) return NDArray::Empty(p.Ints("shape"), NumberType(p, "dtype"));
  return NDArray::Empty(in[0].shape(), p.Has("dtype") ? NumberType(p, "dtype") : in[0].dtype());
}
}  // namespace

Arrays RandomUniform(const Params& p, const Arrays& in) {
  NDArray out = Drawn(p, in);
  const double low = p.Double("low"), high = p.Double("high");
  With(p, [&](Generator* g) {
    for (int64_t i = 0, n = out.numel(); i < n; ++i) out.SetDouble(i, low + (high - low) * g->Unit());
  });
  return {out};
}
Arrays RandomNormal(const Params& p, const Arrays& in) {
  NDArray out = Drawn(p, in);
  const double mean = p.Double("mean"), scale = p.Double("scale");
  With(p, [&](Generator* g) {
    for (int64_t i = 0, n = out.numel(); i < n; ++i) out.SetDouble(i, mean + scale * g->Normal());
  });
  return {out};
}
Arrays Bernoulli(const Params& p, const Arrays& in) {
  NDArray x = in[0], out = Drawn(p, in);
  With(p, [&](Generator* g) {
    for (int64_t i = 0, n = out.numel(); i < n; ++i) out.SetDouble(i, g->Unit() < x.GetDouble(i) ? 1 : 0);
  });
  return {out};
}
Arrays Multinomial(const Params& p, const Arrays& in) {
  NDArray x = in[0];
  WantRank(p, in, 0, 2);
  Want(p, in, 0, x.shape()[1] > 0, "a class to choose");
  const int64_t samples = p.Int("sample_size");
  int64_t rows = x.shape()[0], classes = x.shape()[1];
  NDArray out = NDArray::Empty({rows, samples}, NumberType(p, "dtype"));
  std::vector<double> logits = ToDoubles(x), sums(classes);
  With(p, [&](Generator* g) {
    for (int64_t r = 0; r < rows; ++r) {
      double top = -INFINITY, sum = 0;  // unnormalised logarithms of probabilities
      for (int64_t c = 0; c < classes; ++c) top = std::fmax(top, logits[r * classes + c]);
      for (int64_t c = 0; c < classes; ++c) sums[c] = sum += std::exp(logits[r * classes + c] - top);
      for (int64_t s = 0; s < samples; ++s) {
        double u = g->Unit() * sum;
        int64_t c = 0;
        while (c + 1 < classes && !(u < sums[c])) ++c;
        out.SetDouble(r * samples + s, static_cast<double>(c));
      }
    }
  });
  return {out};
}

namespace {
const Register kRandom[] = {{"random.uniform", 0, RandomUniform},      {"random.normal", 0, RandomNormal},
                            {"random.uniform_like", 1, RandomUniform}, {"random.normal_like", 1, RandomNormal},
                            {"random.bernoulli", 1, Bernoulli},        {"random.multinomial", 1, Multinomial}};
}
}  // namespace baton::host

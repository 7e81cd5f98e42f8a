// SPDX-License-Identifier: Apache-2.0
// ONNX's nodes about signals whose lengths come as values.
#include <algorithm>
#include <cmath>
#include <complex>

#include "host/onnx_node.h"

namespace baton::host {
namespace {

using Complex = std::complex<double>;

/// Fourier transforms of one length, by its prime factors: n * (sum of the factors) steps.
class Fourier {
 public:
  Fourier(int64_t n, bool inverse) : n_(n), roots_(static_cast<size_t>(n)) {
    const double turn = (inverse ? 2 : -2) * 3.14159265358979323846 / static_cast<double>(n);
    for (int64_t i = 0; i < n; ++i) roots_[static_cast<size_t>(i)] = std::polar(1.0, turn * static_cast<double>(i));
    int64_t rest = n;
    for (int64_t p = 2; p * p <= rest; ++p) {
      for (; rest % p == 0; rest /= p) factors_.push_back(p);
    }
    if (rest > 1) factors_.push_back(rest);
    if (!factors_.empty()) terms_.resize(static_cast<size_t>(factors_.back()));
  }
  void operator()(const Complex* in, Complex* out) { Step(in, 1, out, n_, 0); }

 private:
  /// Elements of `in` that are `stride` apart: n of them, whose factors begin at `level`.
  void Step(const Complex* in, int64_t stride, Complex* out, int64_t n, size_t level) {
    if (n == 1) {
      *out = *in;
      return;
    }
    const int64_t p = factors_[level], m = n / p;
    for (int64_t r = 0; r < p; ++r) Step(in + r * stride, stride * p, out + r * m, m, level + 1);
    for (int64_t k = 0; k < m; ++k) {
      for (int64_t r = 0; r < p; ++r) terms_[static_cast<size_t>(r)] = out[r * m + k] * Root(r * k * stride);
      for (int64_t q = 0; q < p; ++q) {
        Complex sum = terms_[0];
        for (int64_t r = 1; r < p; ++r) sum += terms_[static_cast<size_t>(r)] * Root(r * q % p * m * stride);
        out[q * m + k] = sum;
      }
    }
  }
  const Complex& Root(int64_t i) const { return roots_[static_cast<size_t>(i % n_)]; }

  int64_t n_;
  std::vector<Complex> roots_, terms_;
  std::vector<int64_t> factors_;
};

constexpr int64_t kLongest = int64_t{1} << 24;

/// A shape without the dimension of the parts.
Ints Signals(Ints shape) {
  shape.pop_back();
  return shape;
}

/// Real and imaginary parts of element k in row (o, i) of x, whose last dimension has `parts`.
struct Parts {
  Rows rows;
  int64_t parts;
  std::vector<double> values;
  Parts(const NDArray& x, int64_t axis)
      : rows(Signals(x.shape()), axis), parts(x.shape().back()), values(ToDoubles(x)) {}
  Complex At(int64_t o, int64_t k, int64_t i) const {
    const double* at = values.data() + rows.At(o, k, i) * parts;
    return {at[0], parts == 2 ? at[1] : 0};
  }
};

void WantSignal(const OnnxNode& node, const NDArray& x) {
  if (x->ndim < 2 || !x.dtype().is_floating() || x.shape().back() < 1 || x.shape().back() > 2) {
    node.Fail(Cat(Show(x), " is no signal: its last dimension holds the real part, or both"));
  }
}

Arrays OnnxDFT(const Params& p, const Arrays& in) {
  const OnnxNode node(p, in);
  const NDArray& x = node.Get(0);
  WantSignal(node, x);
  const bool inverse = node.Int("inverse", 0) != 0, onesided = node.Int("onesided", 0) != 0;
  const bool old = node.Int("opset", 20) < 20;
  const int64_t axis = node.Axis(node.Has(2) ? node.IntOf(2)
                                 : old       ? node.Int("axis", 1)
                                             : -2,
                                 x->ndim);  // -2: the last but the parts
  if (axis == x->ndim - 1) node.Fail("`axis` is that of real and imaginary parts");
  const Parts data(x, axis);
  const bool half = inverse && onesided;  // of a spectrum that is symmetric, where the result is real
  const int64_t length = node.Has(1) ? node.IntOf(1) : half ? 2 * (data.rows.n - 1) : data.rows.n;
  if (length < 1 || length > kLongest) node.Fail(Cat("`dft_length` is ", length, ", it is 1 to 2 ** 24"));
  if (onesided && !inverse && data.parts != 1) node.Fail("`onesided` is for real signals, with one part");
  const int64_t wanted = onesided && !inverse ? length / 2 + 1 : length, parts = half ? 1 : 2;
  Ints shape = x.shape();
  shape[static_cast<size_t>(axis)] = wanted;
  shape.back() = parts;
  NDArray out = NDArray::Empty(shape, x.dtype());
  Fourier transform(length, inverse);
  std::vector<Complex> row(static_cast<size_t>(length)), result(row);
  const Rows to(Signals(shape), axis);
  const int64_t given = std::min(data.rows.n, half ? length / 2 + 1 : length);
  for (int64_t o = 0; out.numel() && o < to.outer; ++o) {
    for (int64_t i = 0; i < to.inner; ++i) {
      std::fill(row.begin(), row.end(), Complex());
      for (int64_t k = 0; k < given; ++k) row[static_cast<size_t>(k)] = data.At(o, k, i);
      for (int64_t k = 1; half && k < given; ++k) {
        if (2 * k != length) row[static_cast<size_t>(length - k)] = std::conj(row[static_cast<size_t>(k)]);
      }
      transform(row.data(), result.data());
      for (int64_t k = 0; k < wanted; ++k) {
        const Complex v = result[static_cast<size_t>(k)] / (inverse ? static_cast<double>(length) : 1.0);
        out.SetDouble(to.At(o, k, i) * parts, v.real());
        if (parts == 2) out.SetDouble(to.At(o, k, i) * parts + 1, v.imag());
      }
    }
  }
  return {out};
}

Arrays OnnxSTFT(const Params& p, const Arrays& in) {
  const OnnxNode node(p, in);
  NDArray x = node.Get(0);
  if (x->ndim == 2) x = x.View({x.shape()[0], x.shape()[1], 1}, x.dtype());
  WantSignal(node, x);
  if (x->ndim != 3) node.Fail(Cat(Show(x), " is no batch of signals"));
  const int64_t n = x.shape()[1], step = node.IntOf(1);
  std::vector<double> window;
  if (node.Has(2)) {
    if (node.Get(2)->ndim != 1) node.Fail(Cat("the window is ", Show(node.Get(2))));
    window = ToDoubles(node.Get(2));
  }
  const int64_t length = node.Has(3) ? node.IntOf(3) : node.Has(2) ? static_cast<int64_t>(window.size()) : n;
  if (step < 1 || length < 1 || length > n || length > kLongest) {
    node.Fail(Cat("`frame_step` is ", step, " and a frame has ", length, " elements, for a signal of ", n));
  }
  if (node.Has(2) && static_cast<int64_t>(window.size()) != length) {
    node.Fail(Cat("the window has ", window.size(), " elements, a frame has ", length));
  }
  const bool onesided = node.Int("onesided", 1) != 0;
  const Parts data(x, 1);
  if (onesided && data.parts != 1) node.Fail("`onesided` is for real signals, with one part");
  const int64_t frames = (n - length) / step + 1, wanted = onesided ? length / 2 + 1 : length;
  NDArray out = NDArray::Empty({data.rows.outer, frames, wanted, 2}, x.dtype());
  Fourier transform(length, false);
  std::vector<Complex> row(static_cast<size_t>(length)), result(row);
  int64_t next = 0;
  for (int64_t o = 0; o < data.rows.outer; ++o) {
    for (int64_t f = 0; f < frames; ++f) {
      for (int64_t k = 0; k < length; ++k) {
        const auto at = static_cast<size_t>(k);
        row[at] = data.At(o, f * step + k, 0) * (window.empty() ? 1.0 : window[at]);
      }
      transform(row.data(), result.data());
      for (int64_t k = 0; k < wanted; ++k) {
        out.SetDouble(next++, result[static_cast<size_t>(k)].real());
        out.SetDouble(next++, result[static_cast<size_t>(k)].imag());
      }
    }
  }
  return {out};
}

Arrays OnnxMelWeightMatrix(const Params& p, const Arrays& in) {
  const OnnxNode node(p, in);
  const int64_t bins = node.IntOf(0), length = node.IntOf(1);
  const double rate = node.NumberOf(2), low = node.NumberOf(3), high = node.NumberOf(4);
  if (bins < 1 || bins > 65536 || length < 1 || length > kLongest || !(rate > 0)) {
    node.Fail(Cat("its operands describe no filter bank: ", bins, " bands, ", length, " elements"));
  }
  const int64_t rows = length / 2 + 1;
  auto mel = [](double f) { return 2595 * std::log10(1 + f / 700); };
  const double step = (mel(high) - mel(low)) / static_cast<double>(bins + 2);
  Ints edges;
  for (int64_t i = 0; i < bins + 2; ++i) {
    const double f = 700 * (std::pow(10.0, (static_cast<double>(i) * step + mel(low)) / 2595) - 1);
    const double place = std::floor(static_cast<double>(length + 1) * f / rate);
    if (!(place >= 0 && place < static_cast<double>(rows))) node.Fail("a band edge lies outside the spectrum");
    edges.push_back(static_cast<int64_t>(place));
  }
  NDArray out = NDArray::Zeros({rows, bins}, node.ResultType(0));
  for (int64_t i = 0; i < bins; ++i) {
    const int64_t *e = edges.data() + i, rise = e[1] - e[0], fall = e[2] - e[1];
    if (rise == 0) out.SetDouble(e[1] * bins + i, 1);
    for (int64_t j = e[0]; rise > 0 && j <= e[1]; ++j)
      out.SetDouble(j * bins + i, static_cast<double>(j - e[0]) / static_cast<double>(rise));
    for (int64_t j = e[1]; j < e[2]; ++j)
      out.SetDouble(j * bins + i, static_cast<double>(e[2] - j) / static_cast<double>(fall));
  }
  return {out};
}

const Register kSignals[] = {
    {"onnx.DFT", -1, OnnxDFT}, {"onnx.STFT", -1, OnnxSTFT}, {"onnx.MelWeightMatrix", -1, OnnxMelWeightMatrix}};

}  // namespace
}  // namespace baton::host

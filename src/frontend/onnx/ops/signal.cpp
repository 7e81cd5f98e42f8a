// SPDX-License-Identifier: Apache-2.0
// Fourier transforms and windows.
#include <algorithm>
#include <cmath>

#include "common.h"

namespace baton::onnx {
namespace {

constexpr double kPi = 3.14159265358979323846;

/// Transforms of real signals up to this length are products with a matrix, which cost less there than butterflies.
constexpr int64_t kDense = 2048;

bool DenseTransform(const Value& x, int64_t length) {
  return length >= 1 && length <= kDense && (x.dtype == DataType::Float(32) || x.dtype == DataType::Float(64));
}

/// Rows 2k and 2k + 1 are the real and the imaginary part of frequency k's wave: (2 * frequencies, terms).
Value Waves(Ctx& c, DataType dtype, int64_t length, int64_t terms, int64_t frequencies) {
  c.Reserve(2 * frequencies * terms, 8);
  std::vector<double> all;
  for (int64_t k = 0; k < frequencies; ++k) {
    for (int part = 0; part < 2; ++part) {
      for (int64_t i = 0; i < terms; ++i) {
        const double angle = 2 * kPi * static_cast<double>(k * i % length) / static_cast<double>(length);
        all.push_back(part == 0 ? std::cos(angle) : -std::sin(angle));
      }
    }
  }
  return c.Constant(HostFromFloats(dtype, {2 * frequencies, terms}, all));
}

/// (..., 2 * frequencies) as (..., frequencies, 2).
Value SplitParts(Ctx& c, const Value& x, int64_t frequencies) {
  Dims shape = x.dims;
  for (int64_t& d : shape) d = d == -1 ? 0 : d;
  shape.back() = frequencies;
  shape.push_back(2);
  return c.Reshape(x, shape);
}

/// The transform of real signals of a known length as a product; nothing for others.
Value ProductDFT(Ctx& c, Value x, int axis, bool onesided, int64_t length) {
  const int rank = c.Rank(x);
  const int64_t have = x.dims[static_cast<size_t>(axis)];
  if (have < 1 || x.dims.back() != 1 || !DenseTransform(x, length < 0 ? have : length)) return Value();
  if (length < 0) length = have;
  const int64_t terms = std::min(have, length), frequencies = onesided ? length / 2 + 1 : length;
  if (terms < have) x = c.Slice(x, axis, 0, terms);
  x = c.Squeeze(x, {rank - 1});
  Dims there, back;  // the axis of the signal last, and at its place again before the parts
  for (int i = 0; i < rank - 1; ++i) {
    if (i != axis) there.push_back(i);
  }
  there.push_back(axis);
  for (int i = 0; i < rank - 1; ++i) back.push_back(i < axis ? i : i == axis ? rank - 2 : i - 1);
  back.push_back(rank - 1);
  const Value waves = c.Transpose(Waves(c, x.dtype, length, terms, frequencies), {1, 0});
  return c.Transpose(SplitParts(c, c.MatMul(c.Transpose(x, there), waves), frequencies), back);
}

Values DFT(Ctx& c) {
  Value x = c.T(0);
  bool inverse = c.Int("inverse", 0) != 0, onesided = c.Int("onesided", 0) != 0;
  int rank = c.Rank(x);
  int64_t given = c.since() < 20 ? c.Int("axis", 1) : -2;
  if (c.since() >= 20 && c.Has(2)) {
    Dims at = c.KnownInts(c.T(2));
    if (at.size() != 1) c.Fail("`axis` must be one number");
    given = at[0];
  }
  int axis = c.Axis(given, rank);
  if (axis == rank - 1) c.Fail("`axis` is the axis of real and imaginary parts");
  const auto product = [&](int64_t length) { return inverse ? Value() : ProductDFT(c, x, axis, onesided, length); };
  if (!c.Has(1)) {
    if (Value made = product(-1)) return {made};
    return {c.Call("dft", {x}, {{"axis", axis}, {"inverse", inverse}, {"onesided", onesided}})};
  }
  Dims length = c.KnownInts(c.T(1));
  if (length.size() != 1) c.Fail("`dft_length` must be one number");
  if (Value made = product(length[0])) return {made};
  return {c.Call("dft", {x}, {{"axis", axis}, {"inverse", inverse}, {"onesided", onesided}, {"length", length[0]}})};
}

/// The length of a frame where neither its operand nor the signal decides it.
int64_t FrameLength(Ctx& c, const Value& window) {
  if (c.Has(3)) {
    const Dims given = c.KnownInts(c.T(3));
    return given.size() == 1 ? given[0] : -1;
  }
  return window && window.rank() == 1 ? window.dims[0] : -1;
}

/// Transforms of frames as a convolution over the signal, whose batch and length may be open; nothing for complex
/// signals and long frames.
Value ConvolutionSTFT(Ctx& c, Value x, const Value& window, int64_t size, int64_t step, bool onesided) {
  const int rank = c.Rank(x);
  if (!DenseTransform(x, size) || step < 1 || (rank != 2 && !(rank == 3 && x.dims[2] == 1))) return Value();
  if (x.dims[1] >= 0 && !Ctx::IsSymbol(x.dims[1]) && x.dims[1] < size) return Value();
  if (window && (window.rank() != 1 || window.dims[0] != size)) return Value();
  const int64_t frequencies = onesided ? size / 2 + 1 : size;
  Value waves = Waves(c, x.dtype, size, size, frequencies);
  if (window) waves = c.Mul(waves, window);
  if (rank == 3) x = c.Squeeze(x, {2});
  const Value all = c.Call("nn.conv1d", {c.Unsqueeze(x, {1}), c.Unsqueeze(waves, {1})},
                           {{"strides", IntsAny({step})},
                            {"padding", IntsAny({0, 0})},
                            {"dilation", IntsAny({1})},
                            {"groups", 1},
                            {"channels", 2 * frequencies},
                            {"kernel_size", IntsAny({size})},
                            {"data_layout", "NCW"},
                            {"kernel_layout", "OIW"}});
  return SplitParts(c, c.Transpose(all, {0, 2, 1}), frequencies);
}

Values STFT(Ctx& c) {
  Value x = c.T(0), window = c.Opt(2);
  bool onesided = c.Int("onesided", 1) != 0;
  Dims step = c.KnownInts(c.T(1));
  if (step.size() == 1) {
    if (Value made = ConvolutionSTFT(c, x, window, FrameLength(c, window), step[0], onesided)) return {made};
  }
  const Dims s = c.Fixed(x);
  int64_t size = 0;
  if (c.Has(3)) {
    Dims given = c.KnownInts(c.T(3));
    if (given.size() != 1) c.Fail("`frame_length` must be one number");
    size = given[0];
  } else if (window) {
    size = c.Dim(window, 0);
  } else {
    size = s.size() > 1 ? s[1] : 0;
  }
  if (s.size() == 2) x = c.Unsqueeze(x, {2});
  if (step.size() != 1 || step[0] < 1 || size < 1 || s.size() < 2 || s.size() > 3 || size > s[1]) {
    c.Fail("`frame_step` or `frame_length` does not fit the signal");
  }
  int64_t frames = (s[1] - size) / step[0] + 1;
  c.Reserve(Checked(frames) * size, 16);
  Dims index;
  for (int64_t f = 0; f < frames; ++f) {
    for (int64_t i = 0; i < size; ++i) index.push_back(f * step[0] + i);
  }
  Value at = c.Constant(HostFromInts(DataType::Int(64), {frames, size}, index));
  Value cut = Take(c, x, at, 1);
  if (window) cut = c.Mul(cut, c.Unsqueeze(window, {1}));
  return {c.Call("dft", {cut}, {{"axis", 2}, {"inverse", false}, {"onesided", onesided}})};
}

/// (batch, frames, frequencies, real and imaginary part).
Values STFTTypes(Ctx& c) { return {c.Unknown(c.T(0).dtype, {-1, -1, -1, -1})}; }

Values Window(Ctx& c, double a0, double a1, double a2) {
  Dims size = c.KnownInts(c.T(0));
  if (size.size() != 1 || size[0] < 0) c.Fail("`size` must be one number");
  c.Reserve(size[0], 16);
  bool periodic = c.Int("periodic", 1) != 0;
  int64_t code = c.Int("output_datatype", kFloat);
  DataType t = FromOnnxType(static_cast<int32_t>(code));
  if (t.is_void()) c.Unsupported("`output_datatype` " + std::to_string(code));
  double n = static_cast<double>(periodic ? size[0] : size[0] - 1);
  std::vector<double> w;
  for (int64_t i = 0; i < size[0]; ++i) {
    double x = 2 * kPi * static_cast<double>(i) / n;
    w.push_back(n == 0 ? 1.0 : a0 - a1 * std::cos(x) + a2 * std::cos(2 * x));
  }
  HostPtr host = HostFromFloats(t, size, w);
  if (host == nullptr) c.Unsupported("`output_datatype` " + std::to_string(code));
  return {c.Constant(host)};
}
Values HannWindow(Ctx& c) { return Window(c, 0.5, 0.5, 0); }
Values HammingWindow(Ctx& c) { return Window(c, 25.0 / 46, 21.0 / 46, 0); }
Values BlackmanWindow(Ctx& c) { return Window(c, 0.42, 0.5, 0.08); }

Values MelWeightMatrix(Ctx& c) {
  auto number = [&](size_t i) { return c.KnownScalar(c.T(i)); };
  // Integers of a possible size; anything else becomes 0, which is an error.
  auto count = [&](size_t i) {
    double v = number(i);
    return v >= 1 && v <= (1 << 24) ? static_cast<int64_t>(v) : 0;
  };
  int64_t bins = count(0), length = count(1);
  double rate = number(2), low = number(3), high = number(4);
  DataType t = FromOnnxType(static_cast<int32_t>(c.Int("output_datatype", kFloat)));
  if (t.is_void()) c.Unsupported("`output_datatype`");
  if (bins < 1 || length < 1 || bins > 65536 || !(rate > 0)) c.Fail("its operands describe no filter bank");
  int64_t rows = length / 2 + 1;
  auto mel = [](double f) { return 2595 * std::log10(1 + f / 700); };
  double step = (mel(high) - mel(low)) / static_cast<double>(bins + 2);
  std::vector<int64_t> edge;
  for (int64_t i = 0; i < bins + 2; ++i) {
    double f = 700 * (std::pow(10.0, (static_cast<double>(i) * step + mel(low)) / 2595) - 1);
    double place = std::floor(static_cast<double>(length + 1) * f / rate);
    if (!(place >= 0 && place < static_cast<double>(rows))) c.Fail("a band edge lies outside the spectrum");
    edge.push_back(static_cast<int64_t>(place));
  }
  c.Reserve(rows * bins, 16);
  std::vector<double> out(static_cast<size_t>(rows * bins), 0);
  auto at = [&](int64_t r, int64_t b) -> double& { return out[static_cast<size_t>(r * bins + b)]; };
  for (int64_t i = 0; i < bins; ++i) {
    size_t e = static_cast<size_t>(i);
    int64_t lower = edge[e], center = edge[e + 1], upper = edge[e + 2];
    if (center == lower) {
      at(center, i) = 1;
    } else {
      for (int64_t j = lower; j <= center; ++j)
        at(j, i) = static_cast<double>(j - lower) / static_cast<double>(center - lower);
    }
    for (int64_t j = center; j < upper; ++j)
      at(j, i) = static_cast<double>(upper - j) / static_cast<double>(upper - center);
  }
  return {c.Constant(HostFromFloats(t, {rows, bins}, out))};
}

}  // namespace

void AddSignal(OpTable* table) {
  for (const OpRow& row : {OpRow{"", "DFT", DFT, RankOfFirst},
                           {"", "STFT", STFT, STFTTypes},
                           {"", "HannWindow", HannWindow},
                           {"", "HammingWindow", HammingWindow},
                           {"", "BlackmanWindow", BlackmanWindow},
                           {"", "MelWeightMatrix", MelWeightMatrix}}) {
    table->push_back(row);
  }
}

}  // namespace baton::onnx

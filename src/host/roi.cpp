// SPDX-License-Identifier: Apache-2.0
// Boxes: pooling their contents.
#include <baton/runtime/threading.h>

#include <algorithm>
#include <cmath>

#include "host/arrays.h"
#include "host/functions.h"

namespace baton::host {
namespace {

struct Image {
  int64_t n, c, h, w;
  std::vector<double> data;
  explicit Image(const NDArray& x)
      : n(x.shape()[0]), c(x.shape()[1]), h(x.shape()[2]), w(x.shape()[3]), data(ToDoubles(x)) {}
  const double* Plane(int64_t b, int64_t ch) const { return data.data() + (b * c + ch) * h * w; }
};
int64_t BatchOf(double b, int64_t images, const Params& p) {
  if (!(b >= 0 && b < static_cast<double>(images)))
    p.Fail(Cat("a box is of image ", std::to_string(b), " and there are ", images));
  return static_cast<int64_t>(b);
}
/// Up to four elements around a place, with their weights.
struct Corners {
  int64_t at[4];
  double weight[4];
};
Corners CornersAt(double y, double x, int64_t h, int64_t w) {
  Corners c{};
  if (!(y >= -1 && y <= static_cast<double>(h) && x >= -1 && x <= static_cast<double>(w))) return c;  // NaN too
  y = std::max(y, 0.0), x = std::max(x, 0.0);
  int64_t y0 = static_cast<int64_t>(y), x0 = static_cast<int64_t>(x), y1 = y0 + 1, x1 = x0 + 1;
  if (y0 >= h - 1) y0 = y1 = h - 1, y = static_cast<double>(y0);
  if (x0 >= w - 1) x0 = x1 = w - 1, x = static_cast<double>(x0);
  double fy = y - static_cast<double>(y0), fx = x - static_cast<double>(x0);
  c.at[0] = y0 * w + x0, c.at[1] = y0 * w + x1, c.at[2] = y1 * w + x0, c.at[3] = y1 * w + x1;
  c.weight[0] = (1 - fy) * (1 - fx), c.weight[1] = (1 - fy) * fx, c.weight[2] = fy * (1 - fx), c.weight[3] = fy * fx;
  return c;
}
struct AlignSettings {
  Ints pooled;
  double scale;
  int64_t sample_ratio;
  bool aligned;
};
/// How a box is sampled: each bin by as many places.
struct RoiSamples {
  std::vector<Corners> at;
  int64_t per_bin = 0;
};
RoiSamples SamplesOf(const Params& params, const AlignSettings& a, const double* roi, int64_t height, int64_t width) {
  const int64_t ph = a.pooled[0], pw = a.pooled[1];
  const double offset = a.aligned ? 0.5 : 0;
  double x1 = roi[1] * a.scale - offset, y1 = roi[2] * a.scale - offset;
  double w = roi[3] * a.scale - offset - x1, h = roi[4] * a.scale - offset - y1;
  if (!a.aligned) w = std::max(w, 1.0), h = std::max(h, 1.0);
  double bin_h = h / static_cast<double>(ph), bin_w = w / static_cast<double>(pw);
  auto grid = [&](double bin) {
    double n = a.sample_ratio > 0 ? static_cast<double>(a.sample_ratio) : std::ceil(bin);
    if (!(n < 1e6)) params.Fail("a box is too large to sample");
    return static_cast<int64_t>(std::max(n, 0.0));
  };
  int64_t gh = grid(bin_h), gw = grid(bin_w);
  RoiSamples out;
  out.per_bin = gh * gw;
  for (int64_t p = 0; p < ph * pw; ++p) {
    double top = y1 + static_cast<double>(p / pw) * bin_h, left = x1 + static_cast<double>(p % pw) * bin_w;
    for (int64_t iy = 0; iy < gh; ++iy) {
      for (int64_t ix = 0; ix < gw; ++ix) {
        out.at.push_back(CornersAt(top + (static_cast<double>(iy) + 0.5) * bin_h / static_cast<double>(gh),
                                   left + (static_cast<double>(ix) + 0.5) * bin_w / static_cast<double>(gw), height,
                                   width));
      }
    }
  }
  return out;
}
/// One bin of one channel, whose elements are `step` apart.
template <class T>
double SampleBin(const Corners* samples, int64_t n, const T* plane, int64_t step, bool mean) {
  double v = 0;
  if (mean) {
    for (int64_t s = 0; s < n; ++s) {
      for (int k = 0; k < 4; ++k) v += samples[s].weight[k] * static_cast<double>(plane[samples[s].at[k] * step]);
    }
    return v / static_cast<double>(std::max<int64_t>(n, 1));
  }
  // ONNX takes the largest weighted corner, not the largest interpolated value.
  bool first = true;
  for (int64_t s = 0; s < n; ++s) {
    for (int k = 0; k < 4; ++k) {
      double u = samples[s].weight[k] * static_cast<double>(plane[samples[s].at[k] * step]);
      v = first ? u : std::max(v, u);
      first = false;
    }
  }
  return v;
}
/// Channels that are sampled together.
constexpr int64_t kTile = 16;

/// How far apart the elements of an image are.
struct Steps {
  int64_t channel, pixel;
};
/// Images with kTile channels of a pixel side by side, behind one another for all tiles; 0 where there is no channel.
template <class T>
std::vector<T> InTiles(const T* data, int64_t images, int64_t channels, int64_t pixels, Steps step) {
  const int64_t tiles = (channels + kTile - 1) / kTile;
  std::vector<T> out(static_cast<size_t>(images * tiles * pixels * kTile));
  runtime::threading::ParallelFor(images * tiles, 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t first = t % tiles * kTile, count = std::min(kTile, channels - first);
      const T* from = data + t / tiles * channels * pixels + first * step.channel;
      T* to = out.data() + t * pixels * kTile;
      for (int64_t p = 0; p < pixels; ++p, to += kTile) {
        for (int64_t c = 0; c < count; ++c) to[c] = from[c * step.channel + p * step.pixel];
      }
    }
  });
  return out;
}
/// One bin of the channels of a tile: of each, what SampleBin gives.
template <class T>
void SampleTile(const Corners* samples, int64_t n, const T* tile, bool mean, double* out) {
  double v[kTile] = {};
  for (int64_t s = 0; s < n; ++s) {
    for (int k = 0; k < 4; ++k) {
      const T* from = tile + samples[s].at[k] * kTile;
      const double weight = samples[s].weight[k];
      if (mean) {
        for (int64_t c = 0; c < kTile; ++c) v[c] += weight * static_cast<double>(from[c]);
        continue;
      }
      for (int64_t c = 0; c < kTile; ++c) {
        const double u = weight * static_cast<double>(from[c]);
        v[c] = s + k == 0 ? u : std::max(v[c], u);
      }
    }
  }
  const auto count = static_cast<double>(mean ? std::max<int64_t>(n, 1) : 1);
  for (int64_t c = 0; c < kTile; ++c) out[c] = v[c] / count;
}
void CheckRois(const Params& p, const Arrays& in) {
  WantRank(p, in, 0, 4);
  Want(p, in, 1, in[1]->ndim == 2 && in[1].shape()[1] == 5, "(number, 5)");
}

}  // namespace

Arrays RoiAlign(const Params& p, const Arrays& in) {
  CheckRois(p, in);
  const AlignSettings a{Extents(p, "pooled_size", 2, 1), p.Double("spatial_scale"), p.Int("sample_ratio"),
                        p.Bool("aligned")};
  const bool average = p.Text("mode") == "avg";
  if (!average && p.Text("mode") != "max") p.Fail(Cat("mode is \"", p.Text("mode"), "\"; it is \"avg\" or \"max\""));
  const NDArray& x = in[0];
  const Ints shape = x.shape();
  const bool last = p.Text("layout") == "NHWC";  // channels come last
  const int64_t images = shape[0], channels = shape[last ? 3 : 1], h = shape[last ? 1 : 2], w = shape[last ? 2 : 3];
  const std::vector<double> rois = ToDoubles(in[1]);
  const int64_t count = in[1].shape()[0], bins = a.pooled[0] * a.pooled[1];
  NDArray out = NDArray::Empty(
      last ? Ints{count, a.pooled[0], a.pooled[1], channels} : Ints{count, channels, a.pooled[0], a.pooled[1]},
      x.dtype());
  // Images are rearranged where the boxes read more than that.
  const double per_bin = 4 * std::pow(std::max<double>(1, static_cast<double>(a.sample_ratio)), 2);
  const bool rearrange = static_cast<double>(count * bins) * per_bin >= static_cast<double>(images * h * w);
  const int64_t tiles = rearrange ? (channels + kTile - 1) / kTile : 0;
  const Steps step = last ? Steps{1, channels} : Steps{h * w, 1};
  auto run = [&]<class T>(const T* data, auto put) {
    const std::vector<T> tiled = tiles ? InTiles(data, images, channels, h * w, step) : std::vector<T>();
    runtime::threading::ParallelFor(count, 1, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const double* roi = rois.data() + r * 5;
        const int64_t b = BatchOf(roi[0], images, p);
        const RoiSamples samples = SamplesOf(p, a, roi, h, w);
        const int64_t n = h > 0 && w > 0 ? samples.per_bin : 0;
        auto of_bin = [&](int64_t bin) { return samples.at.data() + bin * samples.per_bin; };
        auto place = [&](int64_t channel, int64_t bin) {
          return r * channels * bins + (last ? bin * channels + channel : channel * bins + bin);
        };
        for (int64_t e = 0; e < tiles * bins; ++e) {
          double v[kTile];
          const int64_t tile = e / bins, bin = e % bins;
          SampleTile(of_bin(bin), n, tiled.data() + (b * tiles + tile) * h * w * kTile, average, v);
          for (int64_t c = tile * kTile; c < std::min(channels, (tile + 1) * kTile); ++c)
            put(place(c, bin), v[c % kTile]);
        }
        for (int64_t e = 0; !tiles && e < channels * bins; ++e) {
          const T* plane = data + b * channels * h * w + e / bins * step.channel;
          put(place(e / bins, e % bins), SampleBin(of_bin(e % bins), n, plane, step.pixel, average));
        }
      }
    });
  };
  if (x.dtype() == DataType::Float(32)) {
    float* to = out.ptr<float>();
    run(static_cast<const float*>(x.ptr<float>()), [to](int64_t i, double v) { to[i] = static_cast<float>(v); });
  } else {
    const std::vector<double> all = ToDoubles(x);
    run(all.data(), [&out](int64_t i, double v) { out.SetDouble(i, v); });
  }
  return {out};
}

Arrays RoiPool(const Params& p, const Arrays& in) {
  CheckRois(p, in);
  const Ints pooled = Extents(p, "pooled_size", 2, 1);
  const double scale = p.Double("spatial_scale");
  Image x(in[0]);
  std::vector<double> rois = ToDoubles(in[1]);
  int64_t count = in[1].shape()[0], ph = pooled[0], pw = pooled[1];
  NDArray out = NDArray::Empty({count, x.c, ph, pw}, in[0].dtype());
  for (int64_t r = 0; r < count; ++r) {
    const double* roi = rois.data() + r * 5;
    int64_t b = BatchOf(roi[0], x.n, p);
    auto rounded = [&](double v) {
      v = std::round(v * scale);
      if (!(std::fabs(v) < 1e9)) p.Fail("a box has the coordinate " + std::to_string(v));
      return static_cast<int64_t>(v);
    };
    int64_t x1 = rounded(roi[1]), y1 = rounded(roi[2]), x2 = rounded(roi[3]), y2 = rounded(roi[4]);
    double bin_h = static_cast<double>(std::max<int64_t>(y2 - y1 + 1, 1)) / static_cast<double>(ph);
    double bin_w = static_cast<double>(std::max<int64_t>(x2 - x1 + 1, 1)) / static_cast<double>(pw);
    auto clip = [](double v, int64_t from, int64_t n) {
      return std::clamp<int64_t>(static_cast<int64_t>(v) + from, 0, n);
    };
    for (int64_t at = 0; at < ph * pw; ++at) {
      double py = static_cast<double>(at / pw), px = static_cast<double>(at % pw);
      int64_t h0 = clip(std::floor(py * bin_h), y1, x.h), h1 = clip(std::ceil((py + 1) * bin_h), y1, x.h);
      int64_t w0 = clip(std::floor(px * bin_w), x1, x.w), w1 = clip(std::ceil((px + 1) * bin_w), x1, x.w);
      for (int64_t ch = 0; ch < x.c; ++ch) {
        const double* plane = x.Plane(b, ch);
        bool empty = h1 <= h0 || w1 <= w0;
        double v = empty ? 0 : -INFINITY;
        for (int64_t h = h0; h < h1; ++h) {
          for (int64_t w = w0; w < w1; ++w) v = std::max(v, plane[h * x.w + w]);
        }
        out.SetDouble((r * x.c + ch) * ph * pw + at, v);
      }
    }
  }
  return {out};
}

namespace {
const Register kRois[] = {{"vision.roi_align", 2, RoiAlign}, {"vision.roi_pool", 2, RoiPool}};
}
}  // namespace baton::host

// SPDX-License-Identifier: Apache-2.0
// Gradients of pools where extents are open: a window's adjoint goes to its first largest element, or is shared by its
// elements.
#include <algorithm>
#include <cctype>
#include <cmath>

#include "host/arrays.h"

namespace baton::host {
namespace {

struct Windows {
  Ints size, strides, dilation, begin, end;
  Ints space;  ///< dimensions of the data that windows run over
  Ints other;  ///< the rest: batch and channels, which a layout may hold in blocks

  explicit Windows(const Params& p) {
    const std::string& layout = p.Text("layout");
    int64_t rank = 0;
    bool known = true;
    for (char c : layout) {
      if (std::isdigit(static_cast<unsigned char>(c))) continue;
      known = known && std::string_view("NCDHWnc").find(c) != std::string_view::npos;
      (std::string_view("DHW").find(c) == std::string_view::npos ? other : space).push_back(rank++);
    }
    const size_t n = space.size();
    if (!known || n < 1 || n > 3 || layout.find('N') == std::string::npos || layout.find('C') == std::string::npos) {
      p.Fail(Cat("layout is \"", layout, "\""));
    }
    auto per_dim = [&](const char* name) {
      Ints v = p.Has(name) ? p.Ints(name) : Ints{1};
      if (v.size() == 1) v.resize(n, v[0]);
      if (v.size() != n || *std::min_element(v.begin(), v.end()) < 1) p.Fail(Cat(name, " is ", ShowInts(v)));
      return v;
    };
    size = per_dim("pool_size"), strides = per_dim("strides"), dilation = per_dim("dilation");
    Ints pads = p.Has("padding") ? p.Ints("padding") : Ints{0};
    if (pads.size() == 1) pads.resize(2 * n, pads[0]);
    if (pads.size() == n) pads.insert(pads.end(), pads.begin(), pads.begin() + static_cast<int64_t>(n));
    if (pads.size() != 2 * n) p.Fail(Cat("padding is ", ShowInts(pads)));
    begin.assign(pads.begin(), pads.begin() + static_cast<int64_t>(n));
    end.assign(pads.begin() + static_cast<int64_t>(n), pads.end());
  }
};

Ints StridesOf(const Ints& shape) {
  Ints out(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) out[d - 1] = out[d] * shape[d];
  return out;
}

/// Calls `use(window's element in out_grad, places in data that it covers, how many count)`.
template <class Use>
void ForWindows(const Params& p, const NDArray& grad, const NDArray& data, bool padded, Use use) {
  const Windows w(p);
  const size_t n = w.space.size();
  const Ints x = data.shape(), y = grad.shape();
  bool same = x.size() == n + w.other.size() && y.size() == x.size();
  for (size_t d = 0; same && d < w.other.size(); ++d)
    same = x[static_cast<size_t>(w.other[d])] == y[static_cast<size_t>(w.other[d])];
  if (!same) p.Fail(Cat(Show(grad), " is no adjoint for ", Show(data)));
  const Ints from = StridesOf(x);
  int64_t taps = 1;
  for (int64_t s : w.size) taps *= s;
  Ints at(y.size()), covered;
  for (int64_t i = 0; i < grad.numel(); ++i) {
    int64_t rest = i;
    for (size_t d = y.size(); d-- > 0; rest /= y[d]) at[d] = rest % y[d];
    int64_t base = 0;
    for (int64_t d : w.other) base += at[static_cast<size_t>(d)] * from[static_cast<size_t>(d)];
    covered.clear();
    int64_t count = 0;
    for (int64_t t = 0; t < taps; ++t) {
      int64_t place = base, in_window = t;
      bool inside = true, counts = true;
      for (size_t d = n; d-- > 0; in_window /= w.size[d]) {
        const auto axis = static_cast<size_t>(w.space[d]);
        const int64_t q = at[axis] * w.strides[d] + in_window % w.size[d] * w.dilation[d] - w.begin[d];
        inside = inside && q >= 0 && q < x[axis];
        counts = counts && q < x[axis] + w.end[d];
        place += q * from[axis];
      }
      if (inside) covered.push_back(place);
      count += padded ? counts : inside;
    }
    use(i, covered, count);
  }
}

NDArray FromSums(const NDArray& like, const std::vector<double>& sums) {
  NDArray out = NDArray::Empty(like.shape(), like.dtype());
  for (size_t i = 0; i < sums.size(); ++i) out.SetDouble(static_cast<int64_t>(i), sums[i]);
  return out;
}

Arrays MaxPoolGrad(const Params& p, const Arrays& in) {
  const std::vector<double> g = ToDoubles(in[0]), x = ToDoubles(in[1]);
  std::vector<double> sums(x.size());
  ForWindows(p, in[0], in[1], false, [&](int64_t i, const Ints& covered, int64_t) {
    int64_t best = -1;
    for (int64_t place : covered) {
      const double v = x[static_cast<size_t>(place)], top = best < 0 ? 0 : x[static_cast<size_t>(best)];
      if (best < 0 || v > top || (std::isnan(v) && !std::isnan(top))) best = place;
    }
    if (best >= 0) sums[static_cast<size_t>(best)] += g[static_cast<size_t>(i)];
  });
  return {FromSums(in[1], sums)};
}

Arrays AvgPoolGrad(const Params& p, const Arrays& in) {
  const std::vector<double> g = ToDoubles(in[0]);
  std::vector<double> sums(static_cast<size_t>(in[1].numel()));
  ForWindows(p, in[0], in[1], p.Bool("count_include_pad"), [&](int64_t i, const Ints& covered, int64_t count) {
    for (int64_t place : covered)
      sums[static_cast<size_t>(place)] += g[static_cast<size_t>(i)] / static_cast<double>(count);
  });
  return {FromSums(in[1], sums)};
}

const Register kPoolGrads[] = {{"nn.max_pool1d_grad", 2, MaxPoolGrad}, {"nn.max_pool2d_grad", 2, MaxPoolGrad},
                               {"nn.max_pool3d_grad", 2, MaxPoolGrad}, {"nn.avg_pool1d_grad", 2, AvgPoolGrad},
                               {"nn.avg_pool2d_grad", 2, AvgPoolGrad}, {"nn.avg_pool3d_grad", 2, AvgPoolGrad}};

}  // namespace
}  // namespace baton::host

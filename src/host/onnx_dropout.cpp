// SPDX-License-Identifier: Apache-2.0
// ONNX's Dropout where training may be on.
#include <algorithm>
#include <mutex>
#include <random>

#include "host/onnx_node.h"

namespace baton::host {
namespace {

/// In [0, 1): the numbers that numpy.random.uniform gives for a seed, which are those of ONNX's own tests.
double Unit(std::mt19937* g) {
  const double high = static_cast<double>((*g)() >> 5), low = static_cast<double>((*g)() >> 6);
  return (high * 67108864.0 + low) / 9007199254740992.0;
}

Arrays OnnxDropout(const Params& p, const Arrays& in) {
  const OnnxNode node(p, in);
  const NDArray& x = node.Get(0);
  const bool training = node.Has(2) && node.NumberOf(2) != 0;
  const double ratio = node.Has(1) ? node.NumberOf(1) : 0.5;
  NDArray mask = NDArray::Empty(x.shape(), DataType::Bool());
  auto* keep = mask.ptr<uint8_t>();
  NDArray out = x.Copy();
  if (!training || ratio == 0) {
    std::fill_n(keep, mask.numel(), 1);
  } else {
    if (!(ratio > 0 && ratio < 1))
      node.Fail(Cat("`ratio` is ", std::to_string(ratio), ", it is at least 0 and below 1"));
    auto draw = [&](std::mt19937* g) {
      for (int64_t i = 0, n = x.numel(); i < n; ++i) {
        keep[i] = Unit(g) >= ratio;
        out.SetDouble(i, keep[i] ? x.GetDouble(i) / (1 - ratio) : 0);
      }
    };
    if (p.Find("seed")) {
      std::mt19937 g(static_cast<uint32_t>(p.Int("seed")));
      draw(&g);
    } else {  // one for all calls, which starts anew in each process with the same numbers
      static std::mutex mutex;
      static std::mt19937 shared(0);
      std::lock_guard lock(mutex);
      draw(&shared);
    }
  }
  if (node.NumResults() > 1) return {out, mask};
  return {out};
}

const Register kDropout("onnx.Dropout", -1, OnnxDropout);

}  // namespace
}  // namespace baton::host

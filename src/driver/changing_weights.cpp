// SPDX-License-Identifier: Apache-2.0
#include "driver/changing_weights.h"

#include <baton/ir/transform.h>
#include <baton/runtime/ndarray.h>
#include <baton/runtime/packed_func.h>
#include <baton/runtime/registry.h>

#include <algorithm>
#include <cstring>

namespace baton::driver {

BATON_REGISTER_PASS_CONFIG_OPTION("driver.weights_change", bool,
                                  "Whether constants that have a source can be made again after compilation.");

bool WeightsChange() { return transform::PassContext::Current()->GetConfig<bool>("driver.weights_change", false); }

namespace {

/// A number of a few elements of each array: another one where (nearly) all elements of one changed.
int64_t SampleOf(const Array<NDArray>& arrays) {
  constexpr size_t kSamples = 4, kWidth = 4;
  uint64_t h = 0;
  for (const NDArray& a : arrays) {
    const size_t bytes = a.nbytes();
    const auto* data = static_cast<const char*>(a.data());
    for (size_t i = 0; bytes >= kWidth && i < kSamples; ++i) {
      uint32_t v;
      std::memcpy(&v, data + (bytes - kWidth) / (kSamples - 1) * i / kWidth * kWidth, kWidth);
      h = (h ^ v) * 0x9e3779b97f4a7c15ULL;
      h ^= h >> 29;
    }
  }
  return static_cast<int64_t>(h);
}

}  // namespace

/// An array whose elements a function gives when they are asked for.
BATON_REGISTER_GLOBAL("driver.LaterArray").set_body_typed([](Array<int64_t> shape, String dtype, PackedFunc source) {
  return NDArray::Later({shape.begin(), shape.end()}, String2DataType(dtype.view()), source);
});
BATON_REGISTER_GLOBAL("driver.SampleOf").set_body_typed([](Array<NDArray> arrays) { return SampleOf(arrays); });

}  // namespace baton::driver

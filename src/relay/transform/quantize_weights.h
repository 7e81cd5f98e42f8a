// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <baton/relay/transform.h>

namespace baton::relay::transform {

struct QuantizeWeightsOptions : PassOptions<QuantizeWeightsOptions> {
  static constexpr auto _type_key = "relay.transform.QuantizeWeightsOptions";
  int64_t bits = 4;
  int64_t block = 32;
  int64_t activations = 0;
  static constexpr void Describe(auto& d) {
    d(F<&QuantizeWeightsOptions::bits>, "Bits of a weight: 2, 4 or 8.", AtLeast(2));
    d(F<&QuantizeWeightsOptions::block>,
      "Weights of an output with one scale and zero point: 16 to 256, a power of two.", AtLeast(16));
    d(F<&QuantizeWeightsOptions::activations>,
      "Bits that these products round their data to: 8, a scale for each block of a row, or 0 for none.", AtLeast(0));
  }
};
/// Stores constant weights of products in few bits: see nn.contrib_matmul_nbits.
BATON_DLL Pass QuantizeWeights(const QuantizeWeightsOptions& options = {});

}  // namespace baton::relay::transform

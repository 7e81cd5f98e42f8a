// SPDX-License-Identifier: Apache-2.0
// Options of the current PassContext that let a program's numbers be narrower than its types.
#pragma once

#include <baton/runtime/data_type.h>

#include <optional>

#include "relay/transform/quantize_weights.h"

namespace baton::driver {

/// Returns the narrow type that products are computed in, or nothing for "exact". Throws ValueError for other words.
std::optional<DataType> AskedPrecision();
/// Returns the bits and the block that weights are stored in, or nothing for "exact". Throws ValueError for other
/// words.
std::optional<relay::transform::QuantizeWeightsOptions> AskedWeights();

}  // namespace baton::driver

// SPDX-License-Identifier: Apache-2.0
// What a program's user asks of its numbers: options of the current PassContext.
#pragma once

#include <baton/runtime/data_type.h>

#include <optional>

#include "relay/transform/quantize_weights.h"

namespace baton::driver {

/// The narrow type that products are computed in; nothing where none was asked for. Throws ValueError for other words.
std::optional<DataType> AskedPrecision();
/// The bits and the block that weights are stored in; nothing where none were asked for. Throws ValueError for other
/// words.
std::optional<relay::transform::QuantizeWeightsOptions> AskedWeights();

}  // namespace baton::driver

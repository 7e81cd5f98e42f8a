// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../host.h"

namespace baton::relay {

/// The first `k` elements of each row along `axis`, in order; of equal ones the one that comes first, NaN counts as
/// largest. `values` (dtype of x) and `places` (int64) have x's shape with k on the axis; either may be null.
void FirstInOrder(const NDArray& x, int64_t axis, bool ascend, int64_t k, const NDArray* values, const NDArray* places);

}  // namespace baton::relay

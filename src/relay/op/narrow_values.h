// SPDX-License-Identifier: Apache-2.0
// Constants of one dtype in another that holds them exactly.
#pragma once

#include <baton/runtime/ndarray.h>

namespace baton::relay {

/// Fewer elements are not worth their own narrow form.
inline constexpr int64_t kFewestNarrow = 1024;

/// Whether int8 holds all values of a float32 tensor exactly.
bool FitsInt8(const NDArray& wide);

/// int8, float16 or bfloat16 as float32; float32 as it is.
NDArray Widened(const NDArray& narrow);

/// The values of a float32 tensor in `narrow` (int8, bfloat16 or float16); null where one of them would change.
NDArray ExactlyAs(const NDArray& wide, DataType narrow);

}  // namespace baton::relay

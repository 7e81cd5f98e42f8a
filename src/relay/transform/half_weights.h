// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace baton::relay::transform {

/// An attribute of functions whose weights were half floats: passes leave them such that half floats hold them.
inline constexpr const char* kHalfWeights = "half_weights";

}  // namespace baton::relay::transform

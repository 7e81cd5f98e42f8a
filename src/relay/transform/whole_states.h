// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace baton::relay::transform {

/// Attribute of main: numbers of the inputs that become what an output is, as a whole. Their outputs come behind those
/// that callers get, in this order.
inline constexpr const char* kWholeStates = "whole_states";

}  // namespace baton::relay::transform

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <baton/relay/expr.h>

#include <functional>

namespace baton::driver {

/// Computes a primitive function on values.
using StaticKernel = std::function<ObjectRef(const Array<ObjectRef>&)>;
/// The kernel of a primitive function whose shapes are all known: interpreted while it is small and rare, then
/// compiled. Equal functions share one. May be called from several threads.
StaticKernel FindKernel(const relay::Function& func);

}  // namespace baton::driver

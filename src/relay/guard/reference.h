// SPDX-License-Identifier: Apache-2.0
// Operators in plain loops, which share nothing with the compiler's.
#pragma once

#include <baton/relay/expr.h>
#include <baton/runtime/ndarray.h>

namespace baton::relay {

/// Returns the result of an operator by its reference; null without one, and for operands that it does not take.
NDArray RunReference(const Op& op, const Attrs& attrs, const Array<ObjectRef>& args);

}  // namespace baton::relay

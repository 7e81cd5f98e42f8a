// SPDX-License-Identifier: Apache-2.0
// The commonest operators over float32 in plain loops, which share nothing with the compiler's.
#pragma once

#include <baton/relay/expr.h>
#include <baton/runtime/ndarray.h>

namespace baton::relay {

/// What an operator gives; null for operators, types and devices that are not among these. Sums are made in double.
NDArray RunReference(const Op& op, const Attrs& attrs, const Array<ObjectRef>& args);

}  // namespace baton::relay

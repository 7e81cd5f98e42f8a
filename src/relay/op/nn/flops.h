// SPDX-License-Identifier: Apache-2.0
// Floating-point operations of calls whose types are known; a multiplication and an addition count as two.
#pragma once

#include <baton/relay/op.h>

namespace baton::relay {

/// Each element of the result takes a product with a row of the first operand.
PrimExpr MatmulFlops(const CallNode* call);
/// Each element of the result takes a product with the weights of one output channel.
PrimExpr ConvFlops(const CallNode* call);
/// Each element of the data takes a product with the weights of one input channel.
PrimExpr ConvTransposeFlops(const CallNode* call);

}  // namespace baton::relay

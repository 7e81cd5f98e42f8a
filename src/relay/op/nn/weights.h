// SPDX-License-Identifier: Apache-2.0
// Weights of attention: scores normalised along their last dimension.
#pragma once

#include <baton/relay/expr.h>
#include <baton/relay/op/tensor.h>

namespace baton::relay {

/// The weights of `scores`: exponentials that sum to 1 along the last dimension.
Expr MakeWeights(const Expr& scores);

/// Whether calls of `op` are such exponentials, along any dimension; false for null.
bool MakesWeights(const OpNode* op);

/// Whether `call` gives the weights of its operand, which has `rank` dimensions.
bool IsWeights(const CallNode* call, int64_t rank);

/// Whether `call` tells which elements of its operand are NaN.
inline bool FindsNan(const CallNode* call) { return call->op.same_as(op::isnan); }

}  // namespace baton::relay

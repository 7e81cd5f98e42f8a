// SPDX-License-Identifier: Apache-2.0
// Products of integers that processors add four at a time.
#pragma once

#include <baton/ir/target.h>
#include <baton/relay/expr.h>

namespace baton::relay::kernel {

/// Whether sums of four products of bytes (tir::dot4) take the target less time than those of floats: by one
/// instruction (VNNI), or by two that add pairs of products of 16 bits (pmaddwd).
bool AddsFourProducts(const Target& target);

/// Whether a product or convolution of uint8 `data` by constant int8 `weight`, in plain layouts, has a kernel of the
/// target that sums in int32.
bool HasDotKernel(const Op& op, const Attrs& attrs, const TensorTypeNode* data, const TensorTypeNode* weight,
                  const Target& target);
/// The same of a typed call with int32 as its result; false where its weight is not constant.
bool HasDotKernel(const CallNode* call, const Target& target);

/// Channels of one block: as many as a vector has lanes, or the half or quarter of it; 0 if none divides them.
int64_t BlockOf(int64_t channels, int64_t lanes);

}  // namespace baton::relay::kernel

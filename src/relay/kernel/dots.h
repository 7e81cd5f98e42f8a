// SPDX-License-Identifier: Apache-2.0
// Products of narrow numbers that processors add several at a time.
#pragma once

#include <baton/ir/target.h>
#include <baton/relay/expr.h>

namespace baton::relay::kernel {

/// Whether sums of four products of bytes (tir::dot4) take the target less time than those of floats: by one
/// instruction (VNNI), or by two that add pairs of products of 16 bits (pmaddwd).
bool AddsFourProducts(const Target& target);

/// Whether one instruction of the target adds two products of bfloat16 to a float32 (tir::dot2).
bool AddsTwoProducts(const Target& target);

/// A row of the table of formats: products of `data` by `weight` are added `terms` at a time in `sum`. Panels and
/// blocks of weights have that many terms side by side.
struct DotFormat {
  DataType data, weight, sum;
  int64_t terms;
  bool depthwise;                ///< has a kernel for channels that are each its own sum
  bool (*taken)(const Target&);  ///< whether it takes the target less time than floats
};
/// The format in which the target adds products of these types; null where there is none.
const DotFormat* DotFormatOf(DataType data, DataType weight, const Target& target);

/// Whether a product or convolution of `data` by constant `weight`, in plain layouts, has a kernel of the target in one
/// of the formats.
bool HasDotKernel(const Op& op, const Attrs& attrs, const TensorTypeNode* data, const TensorTypeNode* weight,
                  const Target& target);
/// The same of a typed call whose result is the format's sum; false where its weight is not constant.
bool HasDotKernel(const CallNode* call, const Target& target);

/// Channels of one block: as many as a vector has lanes, or the half or quarter of it; 0 if none divides them.
int64_t BlockOf(int64_t channels, int64_t lanes);

}  // namespace baton::relay::kernel

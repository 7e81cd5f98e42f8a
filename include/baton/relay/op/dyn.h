// SPDX-License-Identifier: Apache-2.0
// Operators whose shape-like operands are tensors.
#pragma once

#include <baton/relay/op/algorithm.h>
#include <baton/relay/op/image.h>
#include <baton/relay/op/transform.h>

namespace baton::relay {

namespace op {
extern BATON_DLL const Op dyn_reshape, dyn_broadcast_to, dyn_tile, dyn_expand_dims, dyn_squeeze, dyn_full, dyn_zeros,
    dyn_ones;
extern BATON_DLL const Op dyn_strided_slice, dyn_topk, dyn_one_hot, dyn_sparse_to_dense, dyn_pad;
extern BATON_DLL const Op dyn_upsampling, dyn_resize2d;
}  // namespace op

}  // namespace baton::relay

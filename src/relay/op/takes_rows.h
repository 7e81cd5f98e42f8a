// SPDX-License-Identifier: Apache-2.0
// Tables of which rows are taken: embeddings, whose table may be the weight of a product too.
#pragma once

#include <baton/relay/op/nn.h>
#include <baton/relay/op/transform.h>

namespace baton::relay {

/// Whether a call takes rows of a constant.
inline bool TakesRows(const CallNode* call) {
  if (call->op != op::take || !call->args[0].as<ConstantNode>()) return false;
  const auto& attrs = AttrsAs<TakeAttrs>(call->attrs);
  return attrs.axis.defined() && DimOf(attrs.axis) == 0 && attrs.batch_dims == 0;
}

}  // namespace baton::relay

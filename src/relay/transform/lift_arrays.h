// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <baton/relay/expr.h>

namespace baton::relay::transform {

/// A primitive function with its arrays as parameters behind its own, and these arrays. A function without arrays is
/// given back as it is.
struct LiftedArrays {
  Function func;
  Array<Constant> arrays;
};
LiftedArrays LiftArrays(const Function& primitive);

}  // namespace baton::relay::transform

// SPDX-License-Identifier: Apache-2.0
// Shared by approximations.
#pragma once

#include "../common.h"

namespace baton::relay {

/// exp(x) of float32, within 3e-7 of it relatively.
PrimExpr FastExp(const PrimExpr& x);
/// The operator's requirement R1 of argument 0: a floating dtype of up to 32 bits.
void AtMost32Bits(const TypeArgs& in);

}  // namespace baton::relay

// SPDX-License-Identifier: Apache-2.0
// The two ways to write a convolution, over N spatial dimensions; each null where it does not fit.
#pragma once

#include <baton/ir/target.h>

#include "group.h"

namespace baton::relay::kernel {

/// Images in blocks of channels: a vector is a block of output channels.
template <int N>
tir::PrimFunc GenerateBlockedConv(const Function& func, const Call& anchor, const Target& target);
/// Plain images: a vector is neighbouring pixels of one channel.
template <int N>
tir::PrimFunc GeneratePlainConv(const Function& func, const Call& anchor, const Target& target);

}  // namespace baton::relay::kernel

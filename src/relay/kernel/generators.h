// SPDX-License-Identifier: Apache-2.0
// Kernel generators, which operators name in their definitions; each gives null for cases it does not take.
#pragma once

#include <baton/relay/op.h>
#include <baton/tir/stmt.h>

namespace baton::relay::kernel {

tir::PrimFunc GenerateDense(const Function& func, const Call& anchor, const String& name, const Target& target);
tir::PrimFunc GenerateDensePack(const Function& func, const Call& anchor, const String& name, const Target& target);
tir::PrimFunc GenerateMatmul(const Function& func, const Call& anchor, const String& name, const Target& target);
tir::PrimFunc GenerateBatchMatmul(const Function& func, const Call& anchor, const String& name, const Target& target);
/// A product whose second operand has its dimensions in another order.
tir::PrimFunc GenerateMatmulPermuted(const Function& func, const Call& anchor, const String& name,
                                     const Target& target);
tir::PrimFunc GenerateAttention(const Function& func, const Call& anchor, const String& name, const Target& target);
/// nn.conv1d, nn.conv2d and nn.conv3d.
template <int N>
tir::PrimFunc GenerateConv(const Function& func, const Call& anchor, const String& name, const Target& target);
/// Convolutions over two dimensions whose channels are split into blocks.
tir::PrimFunc GenerateBlockedConv2D(const Function& func, const Call& anchor, const String& name, const Target& target);

/// Pools over two spatial dimensions, in blocks of channels or plain.
tir::PrimFunc GenerateMaxPool2D(const Function& func, const Call& anchor, const String& name, const Target& target);
tir::PrimFunc GenerateAvgPool2D(const Function& func, const Call& anchor, const String& name, const Target& target);

}  // namespace baton::relay::kernel

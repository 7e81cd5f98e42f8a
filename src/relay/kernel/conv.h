// SPDX-License-Identifier: Apache-2.0
// The two ways to write a convolution, over N spatial dimensions; each null where it does not fit.
#pragma once

#include <baton/ir/target.h>
#include <baton/relay/op/nn.h>
#include <tir/parallel_if.h>

#include <algorithm>

#include "group.h"
#include "machine.h"
#include "plan.h"
#include "windows.h"

namespace baton::relay::kernel {

/// Images in blocks of channels: a vector is a block of output channels.
template <int N>
tir::PrimFunc GenerateBlockedConv(const Function& func, const Call& anchor, const Target& target);
/// Plain images: a vector is neighbouring pixels of one channel.
template <int N>
tir::PrimFunc GeneratePlainConv(const Function& func, const Call& anchor, const Target& target);

/// Shapes of data, weight and result. An open number of images goes to `images`, and counts as 1 in the
/// shapes; false where another extent is none.
bool ShapesOfImages(const Group& g, std::vector<int64_t>* data, std::vector<int64_t>* weight,
                    std::vector<int64_t>* result, PrimExpr* images);

/// A convolution over images in blocks of channels in which each channel stands alone.
Stmt WriteDepthwise(const Group& g, const Windows& c, const Machine& mc);

/// A convolution over blocked images, or lines (N is 1), whose sides are not literals; null where it does not fit.
template <int N>
Stmt WriteOpenConv(const Group& g, const ConvAttrs<N>& attrs, const Machine& mc);

/// Images one after the other, each by the kernel that `run(image)` writes for one. Many images of little work each are
/// shared out among the cores, instead of the parts of each. `flops`: of an image; negative where it is not known.
template <class F>
Stmt EachImage(const PrimExpr& images, const Machine& mc, double flops, F run) {
  constexpr double kLittle = 16e6;
  if (mc.cores < 2 || flops < 0 || flops > kLittle) return Loop("image", images, run);
  const auto least = static_cast<int64_t>(kParallelFlops / std::max(flops, 1.0)) + 1;
  const PrimExpr even = equal(floormod(images, I(mc.cores)), I(0)), many = I(4 * mc.cores) <= images;
  return tir::ParallelIf(I(std::max(least, mc.cores)) <= images && (even || many),
                         Loop("image", images, run, ForKind::kParallel));
}

}  // namespace baton::relay::kernel

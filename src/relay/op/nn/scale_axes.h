// SPDX-License-Identifier: Apache-2.0
// Where per-channel factors meet the weights of a convolution.
#pragma once

#include <baton/relay/op.h>
#include <baton/topi/layout.h>

#include <string_view>
#include <vector>

namespace baton::relay {

/// Where a layout has the channels of a letter; nowhere where they are split more than once, or a block precedes.
inline ChannelDims ChannelDimsOf(const std::vector<topi::LayoutDim>& layout, char letter) {
  ChannelDims dims;
  for (size_t i = 0; i < layout.size(); ++i) {
    if (layout[i].axis != letter) continue;
    if (layout[i].factor == 0) {
      dims.at = static_cast<int64_t>(i);
    } else if (dims.at < 0 || dims.block >= 0) {
      return {};
    } else {
      dims.block = static_cast<int64_t>(i);
    }
  }
  return dims;
}

/// Weights have all channels of one side and those of a group of the other.
template <class A, bool kTransposed>
ScaleAxes ConvScaleAxes(const Attrs& attrs, int64_t, const std::vector<int64_t>& weight) {
  const A& a = AttrsAs<A>(attrs);
  if (!a.out_layout.empty() && a.out_layout != a.data_layout) return {};
  const std::vector<topi::LayoutDim> data = topi::ParseLayout(a.data_layout.view(), "FoldScaleAxis"),
                                     kernel = topi::ParseLayout(a.kernel_layout.view(), "FoldScaleAxis");
  // Only channels come in blocks.
  auto whole = [](const std::vector<topi::LayoutDim>& layout, std::string_view channels) {
    for (const topi::LayoutDim& d : layout) {
      if (d.factor != 0 && channels.find(d.axis) == channels.npos) return false;
    }
    return true;
  };
  if (!whole(data, "C") || !whole(kernel, "IO") || kernel.size() != weight.size()) return {};
  const ChannelDims in = ChannelDimsOf(kernel, 'I'), out = ChannelDimsOf(kernel, 'O'),
                    channel = ChannelDimsOf(data, 'C');
  if (in.at < 0 || out.at < 0 || channel.at < 0) return {};
  auto count = [&](const ChannelDims& d) {
    return weight[static_cast<size_t>(d.at)] * (d.block < 0 ? 1 : weight[static_cast<size_t>(d.block)]);
  };
  // Weights (C, multiplier, window): no dimension of theirs is one of the result's.
  if (!kTransposed && a.groups > 1 && count(in) > 1 && count(out) == a.groups) return {};
  ScaleAxes axes{.channel = channel};
  if (a.groups == 1 || !kTransposed) axes.output = out;
  if (a.groups == 1 || kTransposed) axes.input = in;
  // Each channel for itself: the two sides are one.
  if (!kTransposed && a.groups > 1 && count(in) == 1 && count(out) == a.groups) axes.input = out;
  return axes;
}

}  // namespace baton::relay

// SPDX-License-Identifier: Apache-2.0
// Where per-channel factors meet the weights of a convolution.
#pragma once

#include <baton/relay/op.h>

#include <string_view>
#include <vector>

namespace baton::relay {

/// Weights have all channels of one side and those of a group of the other.
template <class A, bool kTransposed>
ScaleAxes ConvScaleAxes(const Attrs& attrs, int64_t, const std::vector<int64_t>& weight) {
  const A& a = AttrsAs<A>(attrs);
  const std::string_view data = a.data_layout.view(), kernel = a.kernel_layout.view();
  auto whole = [](std::string_view layout) { return layout.find_first_of("0123456789") == layout.npos; };
  if (!whole(data) || !whole(kernel) || (!a.out_layout.empty() && a.out_layout != a.data_layout)) return {};
  const auto in = static_cast<int64_t>(kernel.find('I')), out = static_cast<int64_t>(kernel.find('O'));
  // Weights (C, multiplier, window): no dimension of theirs is one of the result's.
  if (!kTransposed && a.groups > 1 && weight[static_cast<size_t>(in)] > 1 &&
      weight[static_cast<size_t>(out)] == a.groups)
    return {};
  ScaleAxes axes{.channel = static_cast<int64_t>(data.find('C'))};
  if (a.groups == 1 || !kTransposed) axes.output = out;
  if (a.groups == 1 || kTransposed) axes.input = in;
  // Each channel for itself: the two sides are one.
  if (!kTransposed && a.groups > 1 && weight[static_cast<size_t>(in)] == 1 &&
      weight[static_cast<size_t>(out)] == a.groups)
    axes.input = out;
  return axes;
}

}  // namespace baton::relay

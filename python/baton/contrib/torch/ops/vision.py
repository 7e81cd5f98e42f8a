# SPDX-License-Identifier: Apache-2.0
"""Operators of torchvision on boxes. torchvision itself is not needed: rules are found by names."""

from __future__ import annotations

import math

from ..registry import aten


@aten("torchvision.roi_align.default")
def roi_align(c, x, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned):
    size = c.known(pooled_height, pooled_width)
    return c("vision.roi_align", x, rois, pooled_size=size, spatial_scale=spatial_scale, sample_ratio=sampling_ratio, aligned=aligned)


@aten("torchvision.nms.default")
def nms(c, boxes, scores, iou_threshold):
    """Places of the boxes that stay, by falling score."""
    many, kind = c.const([2**62], "int64"), scores.dtype
    limits = [c.const([iou_threshold], kind), c.const([-math.inf], kind)]
    found = c("vision.all_class_non_max_suppression", c.expand_dims(boxes, 0), c.expand_dims(scores, 0, 2), many, *limits)
    return c.squeeze(c.slice(found, 1, 2, 3), [1])

# SPDX-License-Identifier: Apache-2.0
"""Operators of vision under the names of `topi.vision.ssd` and `topi.vision.rcnn`."""

from .. import relay
from .topi.functions import apply


def multibox_prior(data, sizes=(1,), ratios=(1,), steps=(-1, -1), offsets=(0.5, 0.5), clip=False):
    """Boxes of some sizes and ratios around each place of an image."""
    return apply(relay.vision.multibox_prior, data, sizes, ratios, steps, offsets, clip)


def multibox_transform_loc(cls_prob, loc_pred, anchor, clip=True, threshold=0.01, variances=(0.1, 0.1, 0.2, 0.2)):
    """Boxes with their class and score, from scores, moves and anchors; and how many of them count."""
    return apply(relay.vision.multibox_transform_loc, cls_prob, loc_pred, anchor, clip, threshold, variances)


def multibox_detection(
    cls_prob, loc_pred, anchor, clip=True, threshold=0.01, nms_threshold=0.5, force_suppress=False, variances=(0.1, 0.1, 0.2, 0.2), nms_topk=-1
):
    """`multibox_transform_loc`, then suppression of boxes that overlap better ones."""

    def detect(prob, moves, anchors):
        boxes = relay.vision.multibox_transform_loc(prob, moves, anchors, clip, threshold, variances)
        every = relay.arange(relay.const(0), relay.const(int(anchor.shape[1])), dtype="int32")
        every = relay.broadcast_to(every, (int(cls_prob.shape[0]), int(anchor.shape[1])))
        return relay.vision.non_max_suppression(
            boxes[0], boxes[1], every, relay.const(-1), relay.const(float(nms_threshold)), force_suppress, nms_topk, return_indices=False
        )

    return apply(detect, cls_prob, loc_pred, anchor)


def roi_align_nchw(data, rois, pooled_size, spatial_scale, mode, sample_ratio=-1):
    """Parts of (N, C, H, W) in boxes, sampled between elements."""
    return apply(relay.vision.roi_align, data, rois, _both(pooled_size), spatial_scale, sample_ratio, "NCHW", _mode(mode))


def roi_align_nhwc(data, rois, pooled_size, spatial_scale, mode, sample_ratio=-1):
    """Parts of (N, H, W, C) in boxes, sampled between elements."""
    return apply(relay.vision.roi_align, data, rois, _both(pooled_size), spatial_scale, sample_ratio, "NHWC", _mode(mode))


def roi_pool_nchw(data, rois, pooled_size, spatial_scale):
    """The largest elements of parts of (N, C, H, W) in boxes."""
    return apply(relay.vision.roi_pool, data, rois, _both(pooled_size), spatial_scale)


def reorg(data, stride):
    """Elements of an image by their place within blocks, as channels."""
    return apply(relay.vision.yolo_reorg, data, stride)


def _both(size):
    return (size, size) if isinstance(size, int) else size


def _mode(mode):
    return mode.decode() if isinstance(mode, bytes) else mode


__all__ = [
    "multibox_detection",
    "multibox_prior",
    "multibox_transform_loc",
    "reorg",
    "roi_align_nchw",
    "roi_align_nhwc",
    "roi_pool_nchw",
]

# SPDX-License-Identifier: Apache-2.0
"""Operators on detections that are composed of others."""

import math

from ... import error as errors
from ..expr import Tuple, TupleGetItem, const, infer_type
from .make import input_expr, operator

DETECTION = {}


def _named(name):
    def register(f):
        DETECTION[name] = f
        return f

    return register


def _anchors(stride, scales, ratios):
    """Boxes (x1, y1, x2, y2) around the first place, for each ratio and within it each scale; corners count as part of a box."""
    center, boxes = 0.5 * (stride - 1), []
    for ratio in ratios:
        width = math.floor(math.sqrt(math.floor(stride * stride / ratio)) + 0.5)
        height = math.floor(width * ratio + 0.5)
        for scale in scales:
            half = (0.5 * (width * scale - 1), 0.5 * (height * scale - 1))
            boxes.append([center - half[0], center - half[1], center + half[0], center + half[1]])
    return boxes


def _parts(data, count, axis):
    """`data` cut into equal parts."""
    parts = operator("split")(data, indices_or_sections=count, axis=axis)
    return [TupleGetItem(parts, i) for i in range(count)]


@_named("vision.proposal")
def proposal(cls_prob, bbox_pred, im_info, scales, ratios, feature_stride, threshold, rpn_pre_nms_top_n, rpn_post_nms_top_n, rpn_min_size, iou_loss):
    """Regions (batch, x1, y1, x2, y2) that a region proposal network proposes, `rpn_post_nms_top_n` an image: boxes around the anchors of all
    places that the network moved, those of less than `rpn_min_size` behind all others, the best `rpn_pre_nms_top_n` of them without those
    that overlap a better one by more than `threshold`. Where too few are left they are repeated.

    cls_prob: (batch, 2 * anchors, height, width), the second half tells objects. bbox_pred: (batch, 4 * anchors, height, width). im_info:
    (batch, 3): height, width and scale of the images. `iou_loss`: boxes are moved by their corners.
    """
    import numpy as np

    cls_prob, bbox_pred, im_info = map(input_expr, (cls_prob, bbox_pred, im_info))
    op, (batch, _, height, width) = operator, (int(d) for d in infer_type(cls_prob).shape)
    base = np.array(_anchors(feature_stride, [float(s) for s in scales], [float(r) for r in ratios]), "float32")
    kinds = len(base)
    if int(infer_type(cls_prob).shape[1]) != 2 * kinds or int(infer_type(bbox_pred).shape[1]) != 4 * kinds:
        raise errors.TypeError(f"vision.proposal: {kinds} anchors need {2 * kinds} channels of cls_prob and {4 * kinds} of bbox_pred")
    y, x = np.meshgrid(np.arange(height), np.arange(width), indexing="ij")
    places = np.stack([x, y, x, y], -1).astype("float32")[:, :, None] * feature_stride
    anchors = (places + base).reshape(1, -1, 4)
    count = anchors.shape[1]

    def column(values):
        return const(values.astype("float32"))

    def per_anchor(data, fields):
        apart = op("reshape")(data, newshape=[batch, kinds, fields, height, width])
        return op("reshape")(op("transpose")(apart, axes=[0, 3, 4, 1, 2]), newshape=[batch, count, fields])

    moves = [op("squeeze")(part, axis=[2]) for part in _parts(per_anchor(bbox_pred, 4), 4, 2)]
    left, top, right, bottom = (anchors[:, :, i] for i in range(4))
    if iou_loss:
        corners = [op("add")(m, column(a)) for m, a in zip(moves, (left, top, right, bottom), strict=True)]
    else:
        corners = [None] * 4
        for d, (low, high) in enumerate(((left, right), (top, bottom))):
            size = high - low + 1
            middle = op("add")(op("multiply")(moves[d], column(size)), column(low + 0.5 * (size - 1)))
            half = op("multiply")(op("subtract")(op("multiply")(op("exp")(moves[2 + d]), column(size)), const(1.0)), const(0.5))
            corners[d], corners[2 + d] = op("subtract")(middle, half), op("add")(middle, half)
    info = _parts(im_info, 3, 1)
    edge = [op("subtract")(info[1 - i % 2], const(1.0)) for i in range(4)]
    corners = [op("maximum")(op("minimum")(c, e), const(0.0)) for c, e in zip(corners, edge, strict=True)]
    least = op("multiply")(info[2], const(float(rpn_min_size)))
    small = op("logical_or")(*(op("less")(op("add")(op("subtract")(corners[2 + d], corners[d]), const(1.0)), least) for d in range(2)))
    margin = op("multiply")(least, const(0.5))
    corners = [op("where")(small, op("add" if i > 1 else "subtract")(c, margin), c) for i, c in enumerate(corners)]
    scores = op("strided_slice")(cls_prob, begin=[kinds], end=[2 * kinds], strides=[1], axes=[1])
    scores = op("squeeze")(per_anchor(scores, 1), axis=[2])
    # Scores begin at 1, so that 0 and below is what was suppressed; corners end behind the last pixel, as areas are counted.
    scores = op("add")(op("where")(small, op("full_like")(scores, const(-1.0)), scores), const(2.0))
    corners = [*corners[:2], *(op("add")(c, const(1.0)) for c in corners[2:])]
    boxes = op("stack")(Tuple([scores, *corners]), axis=2)

    most = count if rpn_pre_nms_top_n <= 0 else min(rpn_pre_nms_top_n, count)
    order = op("argsort")(scores, axis=1, is_ascend=False, dtype="int32")
    order = op("strided_slice")(order, begin=[0], end=[most], strides=[1], axes=[1])
    results = []
    for i in range(batch):
        own = op("take")(op("take")(boxes, const(i, "int32"), axis=0), op("take")(order, const(i, "int32"), axis=0), axis=0)
        kept = op("vision.non_max_suppression")(
            op("expand_dims")(own, axis=0),
            const(np.array([most], "int32")),
            const(np.arange(most, dtype="int32")[None]),
            const(-1, "int32"),
            const(float(threshold), "float32"),
            force_suppress=True,
            top_k=-1,
            coord_start=1,
            score_index=0,
            id_index=-1,
            return_indices=False,
            invalid_to_bottom=True,
        )
        kept = op("squeeze")(kept, axis=[0])
        alive = op("greater")(op("take")(kept, const(0, "int32"), axis=1), const(0.0))
        number = op("maximum")(op("sum")(op("cast")(alive, dtype="int32")), const(1, "int32"))
        chosen = op("floor_mod")(const(np.arange(rpn_post_nms_top_n, dtype="int32")), number)
        rows = op("strided_slice")(op("take")(kept, chosen, axis=0), begin=[1], end=[5], strides=[1], axes=[1])
        rows = op("subtract")(rows, const(np.array([0, 0, 1, 1], "float32")))
        results.append(op("concatenate")(Tuple([const(np.full((rpn_post_nms_top_n, 1), i, "float32")), rows]), axis=1))
    return results[0] if batch == 1 else op("concatenate")(Tuple(results), axis=0)


__all__ = ["DETECTION"]

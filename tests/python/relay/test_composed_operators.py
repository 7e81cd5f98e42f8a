# SPDX-License-Identifier: Apache-2.0
"""Operators that are composed of others, as users of Relay call them, beside NumPy."""

import math

import numpy as np
import pytest

import baton as tvm
import baton.topi.testing
from baton import relay
from baton.relay.testing import run_infer_type


def evaluate(body, *values, params=None):
    func = relay.Function(params or relay.analysis.free_vars(body), body)
    return relay.create_executor("graph", device=tvm.cpu(), target="llvm").evaluate(func)(*values).numpy()


def f32(*shape, seed=0):
    return np.random.default_rng(seed).random(shape).astype("float32")


@pytest.mark.parametrize(("tile", "taps"), [(2, 3), (4, 3), (6, 3), (2, 5), (4, 5)])
def test_winograd(tile, taps):
    data, weight = f32(1, 4, 10, 10), f32(8, 4, taps, taps, seed=1)
    x, w = relay.var("x", shape=data.shape), relay.var("w", shape=weight.shape)
    moved = relay.nn.contrib_conv2d_winograd_weight_transform(w, tile)
    assert run_infer_type(moved).checked_type == relay.TensorType((tile + taps - 1, tile + taps - 1, 8, 4))
    y = relay.nn.contrib_conv2d_winograd_without_weight_transform(x, moved, tile_size=tile, kernel_size=(taps, taps), padding=(1, 1), channels=8)
    want = tvm.topi.testing.conv2d_nchw_python(data, weight, 1, (1, 1))
    np.testing.assert_allclose(evaluate(y, data, weight, params=[x, w]), want, rtol=1e-3, atol=1e-3)


def test_winograds_matrices():
    a, b, g = (m.astype("float64") for m in relay.op.winograd.matrices(4, 3))
    data, weight = f32(6), f32(3, seed=1)
    np.testing.assert_allclose(a.T @ ((g @ weight) * (b.T @ data)), np.correlate(data, weight, "valid"), rtol=1e-5)
    moved = evaluate(relay.nn.contrib_conv2d_winograd_weight_transform(relay.var("w", shape=(2, 3, 3, 3)), 4), f32(2, 3, 3, 3))
    np.testing.assert_allclose(moved, np.einsum("ea,nb,oiab->enoi", g, g, f32(2, 3, 3, 3)), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("window", "transformed"), [((3, 3, 3), (4, 4, 4, 6, 4)), ((1, 3, 3), (1, 4, 4, 6, 4))])
def test_winograd_3d(window, transformed):
    data, weight = f32(1, 4, 5, 6, 7), f32(6, 4, *window, seed=1)
    x, w = relay.var("x", shape=data.shape), relay.var("w", shape=weight.shape)
    moved = relay.nn.contrib_conv3d_winograd_weight_transform(w, 2)
    assert run_infer_type(moved).checked_type == relay.TensorType(transformed)
    y = relay.nn.contrib_conv3d_winograd_without_weight_transform(x, moved, tile_size=2, kernel_size=window, padding=(1, 1, 1), channels=6)
    want = tvm.topi.testing.conv3d_ncdhw_python(data, weight, 1, (1, 1, 1))
    np.testing.assert_allclose(evaluate(y, data, weight, params=[x, w]), want, rtol=1e-3, atol=1e-3)


def proposed(scores, moves, info, scales, ratios, stride, threshold, before, after, least, iou_loss):
    """One image, box by box."""
    anchors = []
    for ratio in ratios:
        width = math.floor(math.sqrt(math.floor(stride * stride / ratio)) + 0.5)
        for scale in scales:
            size, middle = np.array([width * scale, math.floor(width * ratio + 0.5) * scale]), 0.5 * (stride - 1)
            anchors.append([*(middle - 0.5 * (size - 1)), *(middle + 0.5 * (size - 1))])
    boxes, (_, height, width) = [], scores.shape
    for row in range(height):
        for column in range(width):
            for k, anchor in enumerate(anchors):
                box = np.array(anchor) + np.array([column, row, column, row]) * stride
                move = moves[4 * k : 4 * k + 4, row, column]
                if iou_loss:
                    box = box + move
                else:
                    size = box[2:] - box[:2] + 1
                    middle, half = move[:2] * size + box[:2] + 0.5 * (size - 1), 0.5 * (np.exp(move[2:]) * size - 1)
                    box = np.concatenate([middle - half, middle + half])
                box = np.maximum(np.minimum(box, [info[1] - 1, info[0] - 1] * 2), 0)
                score, small = scores[len(anchors) + k, row, column], least * info[2]
                if (box[2:] - box[:2] + 1 < small).any():
                    box, score = box + np.array([-small, -small, small, small]) / 2, -1
                boxes.append([score, *box])
    boxes, kept = sorted(boxes, key=lambda b: -b[0])[:before], []
    for box in boxes:
        corners = np.array(box[1:])
        for other in kept:
            common = np.maximum(np.minimum(corners[2:], other[2:]) - np.maximum(corners[:2], other[:2]) + 1, 0).prod()
            if common / ((corners[2:] - corners[:2] + 1).prod() + (other[2:] - other[:2] + 1).prod() - common) > threshold:
                break
        else:
            kept.append(corners)
    return np.array([[0, *kept[i % len(kept)]] for i in range(after)])


@pytest.mark.parametrize("iou_loss", [False, True])
@pytest.mark.parametrize("after", [4, 60])
def test_proposal(iou_loss, after):
    given = {"scales": [1.0, 2.0], "ratios": [0.5, 1.0, 2.0], "feature_stride": 16, "threshold": 0.5, "rpn_min_size": 12, "iou_loss": iou_loss}
    scores, moves, info = f32(1, 12, 4, 5), f32(1, 24, 4, 5, seed=1) - 0.5, np.array([[64, 80, 1.0]], "float32")
    ins = [relay.var(n, shape=v.shape) for n, v in zip("cbi", (scores, moves, info), strict=True)]
    y = relay.vision.proposal(*ins, rpn_pre_nms_top_n=60, rpn_post_nms_top_n=after, **given)
    assert run_infer_type(y).checked_type == relay.TensorType((after, 5))
    want = proposed(scores[0], moves[0], info[0], *(given[k] for k in ("scales", "ratios", "feature_stride", "threshold")), 60, after, 12, iou_loss)
    np.testing.assert_allclose(evaluate(y, scores, moves, info, params=ins), want, rtol=1e-4, atol=1e-3)


def test_proposal_of_several_images():
    scores, moves, info = f32(2, 2, 3, 3), f32(2, 4, 3, 3, seed=1), np.array([[48, 48, 1.0]] * 2, "float32")
    ins = [relay.var(n, shape=v.shape) for n, v in zip("cbi", (scores, moves, info), strict=True)]
    given = {"scales": [1.0], "ratios": [1.0], "feature_stride": 16, "threshold": 0.7, "rpn_min_size": 2, "iou_loss": False}
    y = evaluate(relay.vision.proposal(*ins, rpn_pre_nms_top_n=9, rpn_post_nms_top_n=3, **given), scores, moves, info, params=ins)
    for i in range(2):
        want = proposed(scores[i], moves[i], info[i], [1.0], [1.0], 16, 0.7, 9, 3, 2, False)
        np.testing.assert_allclose(y[3 * i : 3 * i + 3, 1:], want[:, 1:], rtol=1e-4, atol=1e-3)
        assert (y[3 * i : 3 * i + 3, 0] == i).all()


def test_upsampling_takes_asymmetric_places():
    data = f32(1, 3, 4, 5)
    x = relay.var("x", shape=data.shape)
    for aligned in (False, True):
        y = relay.nn.upsampling(x, scale_h=2.0, scale_w=2.0, method="bilinear", align_corners=aligned)
        want = tvm.topi.testing.resize2d_python(data, (2.0, 2.0), "NCHW", "linear", "align_corners" if aligned else "asymmetric")
        np.testing.assert_allclose(evaluate(y, data), want, rtol=1e-4, atol=1e-5)


def test_reshape_like_with_sizes_that_are_known_later():
    n, w = tvm.te.size_var("n"), tvm.te.size_var("w")
    y = relay.reshape_like(relay.var("x", shape=(n, 2, 3, w)), relay.var("y", shape=(1, 8, 8)))
    assert run_infer_type(y).checked_type == relay.TensorType((1, 8, 8))
    with pytest.raises(tvm.TVMError):
        run_infer_type(relay.reshape_like(relay.var("x", shape=(2, 3)), relay.var("y", shape=(5,))))


def test_text_names_windows():
    x = relay.var("x", shape=(1, 2, 8, 8))
    for y in (relay.nn.max_pool2d(x, pool_size=(1, 1)), relay.nn.avg_pool2d(x, pool_size=(1, 1))):
        assert "pool_size=[1, 1]" in y.astext()
    text = relay.nn.lrn(x, size=5, axis=1, bias=2, alpha=1e-5, beta=0.75).astext()
    assert "alpha=" in text and "beta=" not in text
    tvm.ir.assert_structural_equal(
        tvm.parser.fromtext(relay.Function([x], relay.nn.max_pool2d(x)).astext())["main"], relay.Function([x], relay.nn.max_pool2d(x))
    )

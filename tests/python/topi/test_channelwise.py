# SPDX-License-Identifier: Apache-2.0
"""Gradients of depthwise convolutions, convolutions in blocks and groups, and the plain convolutions that transposed ones are, beside NumPy."""

import numpy as np
import pytest

import baton as tvm
from baton import te, topi

rng = np.random.default_rng(0)


def some(*shape, dtype="float32"):
    if dtype == "float32":
        return rng.standard_normal(shape).astype(dtype)
    return rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, shape).astype(dtype)


def run(make, *arrays):
    """The value of `make(tensors)` for arrays."""
    given = [te.placeholder(a.shape, str(a.dtype)) for a in arrays]
    out = make(*given)
    built = tvm.build(te.create_schedule(out.op), [*given, out], "llvm")
    result = tvm.nd.array(np.zeros([int(d) for d in out.shape], str(out.dtype)))
    built(*[tvm.nd.array(a) for a in arrays], result)
    return result.numpy()


@pytest.mark.parametrize("stride, padding", [(1, 1), (2, 1), (2, 0), ((1, 2), (0, 1)), (1, "SAME"), (2, "VALID")])
def test_gradients_of_depthwise_convolutions(stride, padding):
    x, w = some(2, 7, 8, 3), some(3, 3, 3, 2)

    def forward(x, w):
        return run(lambda a, b: topi.nn.depthwise_conv2d_nhwc(a, b, stride, padding, 1), x, w)

    g = some(*forward(x, w).shape)
    by_input = run(lambda f, o: topi.nn.depthwise_conv2d_backward_input_nhwc(f, o, g.shape, x.shape, stride, padding), w, g)
    by_weight = run(lambda i, o: topi.nn.depthwise_conv2d_backward_weight_nhwc(i, o, g.shape, w.shape, stride, padding), x, g)
    # The convolution is linear in each operand: <f(d), g> = <d, gradient(g)> for any d.
    d, e = some(*x.shape), some(*w.shape)
    np.testing.assert_allclose((forward(d, w) * g).sum(), (d * by_input).sum(), rtol=1e-3)
    np.testing.assert_allclose((forward(x, e) * g).sum(), (e * by_weight).sum(), rtol=1e-3)


@pytest.mark.parametrize("stride, padding, more", [(2, 1, 1), (1, 0, 0), ((2, 1), (1, 0), (1, 0)), (2, (1, 0, 0, 1), 0)])
def test_a_transposed_convolution_is_a_plain_one_of_what_was_prepared(stride, padding, more):
    x, w = some(1, 3, 5, 6), some(3, 4, 3, 2)

    def plain(a, b):
        return topi.nn.conv2d_nchw(*topi.nn.conv2d_transpose_nchw_preprocess(a, b, stride, padding, "float32", more), 1, 0, 1)

    want = run(lambda a, b: topi.nn.conv2d_transpose_nchw(a, b, stride, padding, "float32", more), x, w)
    np.testing.assert_allclose(run(plain, x, w), want, rtol=1e-4, atol=1e-4)


def test_output_padding_is_below_the_stride():
    a, b = te.placeholder((1, 3, 5, 6)), te.placeholder((3, 4, 3, 2))
    with pytest.raises(ValueError, match="below the stride of 2"):
        topi.nn.conv2d_transpose_nchw_preprocess(a, b, 2, 0, "float32", 2)


def test_bytes_in_blocks_with_weights_by_fours():
    x, w = some(1, 2, 5, 5, 4, dtype="uint8"), some(4, 2, 3, 3, 1, 8, 4, dtype="int8")
    got = run(lambda a, b: topi.nn.conv2d_NCHWc_int8(a, b, 1, 0, 1, "NCHW4c", "NCHW8c"), x, w)
    image = x.transpose(0, 1, 4, 2, 3).reshape(1, 8, 5, 5).astype("int64")
    weight = w.transpose(0, 5, 1, 4, 6, 2, 3).reshape(32, 8, 3, 3).astype("int64")
    windows = np.lib.stride_tricks.sliding_window_view(image, (3, 3), (2, 3))
    np.testing.assert_array_equal(got.transpose(0, 1, 4, 2, 3).reshape(1, 32, 3, 3), np.einsum("nihwkl,oikl->nohw", windows, weight))
    assert got.dtype == "int32"


def test_depthwise_in_blocks():
    x, w = some(1, 2, 6, 6, 4), some(2, 1, 3, 3, 1, 4)
    got = run(lambda a, b: topi.nn.depthwise_conv2d_NCHWc(a, b, 1, 1, 1, "NCHW4c", "NCHW4c"), x, w)
    image, weight = x.transpose(0, 1, 4, 2, 3).reshape(1, 8, 6, 6), w.transpose(0, 5, 1, 4, 2, 3).reshape(8, 1, 3, 3)
    want = run(lambda a, b: topi.nn.depthwise_conv2d_nchw(a, b, 1, 1, 1), image, weight)
    np.testing.assert_allclose(got.transpose(0, 1, 4, 2, 3).reshape(want.shape), want, rtol=1e-4, atol=1e-5)


def test_a_transposed_line_of_groups():
    x, w = some(1, 4, 6), some(4, 3, 3)
    got = run(lambda a, b: topi.nn.group_conv1d_transpose_ncw(a, b, 2, 0, "float32", 0, 2), x, w)
    halves = [run(lambda a, b: topi.nn.conv1d_transpose_ncw(a, b, 2, 0, "float32", 0), x[:, i : i + 2], w[i : i + 2]) for i in (0, 2)]
    np.testing.assert_allclose(got, np.concatenate(halves, 1), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("order, shape, weight", [("NCW", (1, 4, 9), (6, 4, 3)), ("NWC", (1, 9, 4), (3, 4, 6)), ("NHWC", (1, 5, 6, 4), (3, 3, 4, 6))])
def test_a_convolution_by_the_order_of_its_image(order, shape, weight):
    x, w = some(*shape), some(*weight)
    named = {"NCW": topi.nn.conv1d_ncw, "NWC": topi.nn.conv1d_nwc, "NHWC": topi.nn.conv2d_nhwc}[order]
    got = run(lambda a, b: topi.nn.conv(a, b, 1, 1, 1, 1, order), x, w)
    np.testing.assert_allclose(got, run(lambda a, b: named(a, b, 1, 1, 1), x, w), rtol=1e-4, atol=1e-5)


def test_an_order_that_is_none():
    with pytest.raises(ValueError, match='order is "NHW"'):
        topi.nn.conv(te.placeholder((1, 2, 3)), te.placeholder((1, 2, 3)), 1, 0, 1, 1, "NHW")

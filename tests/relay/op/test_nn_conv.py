# SPDX-License-Identifier: Apache-2.0
"""Convolutions, transposed and deformable ones."""

import inspect

import numpy as np
import reference_nn as ref
from cases import Case, Reject, each, f16, f32, f64, i8, i32, rejects, table, u8

from baton import relay

TOL = dict(rtol=2e-5, atol=2e-5)


def conv(op, x, w, **kw):
    return Case(op, ref.conv, x, w, **{**TOL, **kw})


test_conv = table(
    # Strides, paddings and dilations, each as one number, one a dimension, or begins and ends.
    conv("nn.conv1d", f32(2, 3, 11), f32(4, 3, 3), strides=each(1, 2, 3), padding=each(0, 1, [2, 0]), dilation=each(1, 2)),
    conv("nn.conv2d", f32(2, 3, 9, 8), f32(4, 3, 3, 2), strides=each(1, [2, 1], [3, 2]), padding=each(0, [1, 2], [0, 1, 2, 0]), dilation=each(1, [1, 2], 2)),
    conv(
        "nn.conv3d",
        f32(1, 2, 5, 6, 7),
        f32(3, 2, 2, 3, 1),
        strides=each(1, [1, 2, 3]),
        padding=each(0, [1, 0, 2], [0, 1, 0, 1, 0, 2]),
        dilation=each(1, [2, 1, 3]),
    ),
    # The pieces that kernels are made for: whole and broken tiles, constant weights.
    conv("nn.conv2d", f32(1, 16, 14, 14), f32(32, 16, 3, 3), padding=1),
    conv("nn.conv2d", f32(1, 16, 14, 14), f32(32, 16, 3, 3), padding=1, constant=(1,), strides=each(1, 2), name="fixed weight"),
    conv("nn.conv2d", f32(1, 5, 7, 9), f32(19, 5, 1, 1), constant=(1,), strides=each(1, 2), name="fixed weight"),
    conv("nn.conv2d", f32(1, 3, 1, 1), f32(7, 3, 1, 1)),
    conv("nn.conv1d", f32(1, 8, 50), f32(24, 8, 5), padding=2, constant=(1,), name="fixed weight"),
    conv("nn.conv3d", f32(1, 4, 5, 6, 7), f32(16, 4, 3, 3, 3), padding=1, constant=(1,), name="fixed weight"),
    # Groups: one channel each, several, more outputs than inputs.
    conv("nn.conv1d", f32(2, 6, 9), f32(6, 2, 3), groups=3),
    conv("nn.conv2d", f32(1, 8, 6, 6), f32(8, 1, 3, 3), groups=8, padding=1, strides=each(1, 2)),
    conv("nn.conv2d", f32(1, 4, 6, 6), f32(12, 1, 3, 3), groups=4),
    conv("nn.conv2d", f32(2, 12, 6, 7), f32(8, 6, 3, 3), groups=2, padding=1, dilation=each(1, 2)),
    conv("nn.conv2d", f32(1, 32, 9, 9), f32(48, 16, 3, 3), groups=2, padding=1, constant=(1,), name="fixed weight"),
    conv("nn.conv2d", f32(1, 24, 5, 5), f32(36, 8, 1, 1), groups=3, constant=(1,), name="fixed weight"),
    conv("nn.conv3d", f32(1, 4, 4, 5, 4), f32(6, 2, 2, 2, 2), groups=2, padding=1),
    # Layouts.
    conv("nn.conv1d", f32(1, 9, 4), f32(3, 4, 6), data_layout="NWC", kernel_layout="WIO"),
    conv("nn.conv2d", f32(1, 7, 6, 4), f32(3, 2, 4, 5), data_layout="NHWC", kernel_layout="HWIO", padding=1),
    conv("nn.conv2d", f32(1, 7, 6, 4), f32(6, 3, 2, 2), data_layout="NHWC", kernel_layout="OHWI", groups=2, channels=6, kernel_size=[3, 2]),
    conv("nn.conv2d", f32(1, 4, 7, 6), f32(5, 4, 3, 2), out_layout="NHWC"),
    conv("nn.conv3d", f32(1, 4, 5, 4, 3), f32(2, 2, 2, 3, 5), data_layout="NDHWC", kernel_layout="DHWIO"),
    conv("nn.contrib_conv2d_NCHWc", f32(1, 2, 6, 7, 4), f32(3, 2, 3, 3, 4, 8), data_layout="NCHW4c", kernel_layout="OIHW4i8o", out_layout="NCHW8c", padding=1),
    conv("nn.contrib_conv2d_NCHWc", f32(1, 3, 6, 7), f32(2, 1, 3, 3, 3, 8), kernel_layout="OIHW3i8o", out_layout="NCHW8c", strides=2),
    conv(
        "nn.contrib_depthwise_conv2d_NCHWc",
        f32(1, 2, 6, 7, 4),
        f32(2, 1, 3, 3, 1, 4),
        data_layout="NCHW4c",
        kernel_layout="OIHW1i4o",
        out_layout="NCHW4c",
        groups=8,
        padding=1,
    ),
    # Dtypes: floats sum in float32 at least, integers wrap.
    conv("nn.conv2d", f64(1, 3, 5, 5), f64(4, 3, 3, 3), rtol=1e-12, atol=1e-12),
    conv("nn.conv2d", f16(1, 3, 5, 5), f16(4, 3, 3, 3), rtol=2e-3, atol=1e-3),
    conv("nn.conv2d", f16(1, 3, 5, 5), f16(4, 3, 3, 3), out_dtype="float32"),
    conv("nn.conv2d", i8(1, 3, 5, 5), i8(4, 3, 3, 3), rtol=0, atol=0),
    conv("nn.conv2d", i8(1, 3, 5, 5), i8(4, 3, 3, 3), out_dtype="int32", groups=1),
    conv("nn.conv2d", u8(1, 4, 5, 5), i8(4, 2, 3, 3), out_dtype="int32", groups=2),
    conv("nn.conv1d", i8(1, 3, 7), i8(4, 3, 3), out_dtype="int32"),
    conv("nn.conv3d", i32(1, 2, 3, 3, 3), i32(2, 2, 2, 2, 2)),
    # No batch, no channels, a window as large as data.
    conv("nn.conv2d", f32(0, 3, 5, 5), f32(4, 3, 3, 3)),
    conv("nn.conv1d", f32(0, 3, 5), f32(4, 3, 3)),
    conv("nn.conv2d", f32(1, 0, 5, 5), f32(4, 0, 3, 3)),
    conv("nn.conv2d", f32(1, 3, 5, 5), f32(0, 3, 3, 3)),
    conv("nn.conv2d", f32(1, 3, 5, 4), f32(4, 3, 5, 4)),
    conv("nn.conv2d", f32(1, 2, 1, 1), f32(4, 2, 3, 3), padding=1),
)


def transpose(op, x, w, **kw):
    return Case(op, ref.conv_transpose, x, w, **{**TOL, **kw})


test_transpose = table(
    transpose("nn.conv1d_transpose", f32(2, 3, 5), f32(3, 4, 3), strides=each(1, 2, 3), padding=each(0, 1, [2, 0]), dilation=each(1, 2)),
    transpose(
        "nn.conv2d_transpose",
        f32(2, 3, 4, 5),
        f32(3, 4, 3, 2),
        strides=each(1, [2, 1], [3, 2]),
        padding=each(0, [1, 0], [0, 1, 1, 0]),
        dilation=each(1, [1, 2]),
    ),
    transpose("nn.conv3d_transpose", f32(1, 2, 3, 4, 2), f32(2, 3, 2, 3, 1), strides=each(1, [1, 2, 3]), padding=each(0, [1, 0, 0, 0, 1, 0])),
    transpose("nn.conv2d_transpose", f32(1, 3, 4, 5), f32(3, 2, 3, 3), strides=2, output_padding=each(0, 1, [0, 1]), padding=each(0, 1)),
    transpose("nn.conv1d_transpose", f32(1, 3, 4), f32(3, 2, 3), strides=3, output_padding=2),
    transpose("nn.conv1d_transpose", f32(1, 3, 4), f32(3, 2, 3), padding=[-1], name="grown"),
    transpose("nn.conv2d_transpose", f32(1, 6, 4, 5), f32(6, 2, 3, 2), groups=each(2, 3, 6), strides=each(1, 2)),
    transpose("nn.conv2d_transpose", f32(1, 6, 3, 3), f32(6, 1, 2, 2), groups=6, channels=6, kernel_size=[2, 2]),
    transpose("nn.conv2d_transpose", f32(1, 4, 5, 3), f32(3, 2, 4, 3), data_layout="NHWC", kernel_layout="HWOI", strides=2),
    transpose("nn.conv1d_transpose", f32(1, 4, 5), f32(3, 2, 5), data_layout="NWC", kernel_layout="WOI"),
    transpose("nn.conv2d_transpose", f16(1, 3, 4, 5), f16(3, 2, 3, 3), rtol=2e-3, atol=1e-3),
    transpose("nn.conv2d_transpose", f64(1, 3, 4, 5), f64(3, 2, 3, 3), rtol=1e-12, atol=1e-12),
    transpose("nn.conv2d_transpose", i8(1, 3, 4, 5), i8(3, 2, 3, 3), out_dtype="int32", strides=2),
    transpose("nn.conv1d_transpose", i32(1, 3, 4), i32(3, 2, 3)),
    transpose("nn.conv2d_transpose", f32(0, 3, 4, 5), f32(3, 2, 3, 3)),
    transpose("nn.conv3d_transpose", f32(0, 3, 4, 5, 2), f32(3, 2, 3, 3, 1)),
    # By phases: windows that the stride divides or not, in one convolution or several, results that no input reaches.
    transpose("nn.conv1d_transpose", f32(2, 3, 40), f32(3, 4, 16), strides=8, padding=each(0, 3, 4, [1, 6]), output_padding=each(0, 5)),
    transpose("nn.conv1d_transpose", f32(1, 3, 5), f32(3, 2, 4), strides=each(2, 4, 6, 7), dilation=each(1, 2, 3, 4, 6)),
    transpose("nn.conv2d_transpose", f32(1, 16, 5, 4), f32(16, 32, 2, 2), strides=2, constant=(1,), name="fixed weight"),
    transpose("nn.conv2d_transpose", f32(2, 16, 4, 4), f32(16, 32, 4, 4), strides=2, padding=1, constant=(1,), name="fixed weight"),
    transpose("nn.conv2d_transpose", f32(1, 16, 20, 17), f32(16, 3, 4, 4), strides=2, padding=each(1, [1, 0, 0, 1]), constant=(1,), name="fixed weight"),
    transpose("nn.conv2d_transpose", f32(1, 16, 6, 6), f32(16, 8, 3, 3), strides=2, padding=1, output_padding=each(0, 1), constant=(1,), name="fixed weight"),
    transpose("nn.conv2d_transpose", f32(1, 16, 1, 1), f32(16, 8, 4, 3), strides=each(1, 2, 5), padding=each(0, 1), constant=(1,), name="fixed weight"),
    transpose("nn.conv2d_transpose", f32(2, 12, 5, 4), f32(12, 2, 3, 4), groups=each(2, 3, 12), strides=each(2, [3, 2]), padding=each(0, 1)),
    transpose("nn.conv2d_transpose", f32(1, 5, 4, 3), f32(3, 2, 4, 3), data_layout="NHWC", kernel_layout="HWOI", out_layout="NCHW", strides=2, padding=1),
    transpose("nn.conv3d_transpose", f32(1, 4, 3, 4, 2), f32(4, 3, 3, 2, 4), strides=2, padding=each(0, 1), output_padding=each(0, 1)),
    transpose("nn.conv2d_transpose", i8(1, 3, 4, 5), i8(3, 2, 3, 3), out_dtype="int32", strides=[2, 3], padding=1),
)

test_deformable = table(
    Case("nn.deformable_conv2d", ref.deformable_conv2d, f32(1, 2, 5, 5), f32(1, 8, 4, 4), f32(3, 2, 2, 2), **TOL),
    Case(
        "nn.deformable_conv2d",
        ref.deformable_conv2d,
        f32(2, 4, 5, 4),
        f32(2, 36, 3, 2),
        f32(4, 2, 3, 3),
        f32(2, 18, 3, 2),
        strides=2,
        padding=[1, 1],
        groups=2,
        deformable_groups=2,
        **TOL,
    ),
    Case("nn.deformable_conv2d", ref.deformable_conv2d, f32(1, 5, 4, 2), f32(1, 4, 3, 8), f32(2, 2, 2, 3), data_layout="NHWC", kernel_layout="HWIO", **TOL),
    Case(
        "nn.deformable_conv2d",
        ref.deformable_conv2d,
        f32(1, 5, 4, 2),
        f32(1, 4, 3, 8),
        f32(2, 2, 2, 3),
        f32(1, 4, 3, 4),
        data_layout="NHWC",
        kernel_layout="HWIO",
        out_layout="NCHW",
        **TOL,
    ),
    Case("nn.deformable_conv2d", ref.deformable_conv2d, f32(1, 2, 6, 6), f32(1, 8, 4, 4).within(-9, 9), f32(2, 2, 2, 2), dilation=[2, 2], name="far", **TOL),
)


def conv_rejects(op, n):
    x, w = (1, 4) + (5,) * n, (6, 4) + (3,) * n
    return [
        Reject(op, "R1", ((1, 4), "float32"), (w, "float32")),
        Reject(op, "R1", (x, "float32"), ((6, 4), "float32")),
        Reject(op, "R1", (x, "float32"), (w, "float32"), data_layout="NCQ", says="data_layout"),
        Reject(op, "R1", (x, "float32"), (w, "float32"), kernel_layout="OIQ", says="kernel_layout"),
        Reject(op, "R1", (x, "float32"), (w, "float32"), padding=[1] * 7, says="7 numbers"),
        Reject(op, "R1", (x, "float32"), (w, "float32"), strides=[1] * 7, says="strides"),
        Reject(op, "R2", (x, "bool"), (w, "bool")),
        Reject(op, "R2", (x, "float32"), (w, "float64")),
        Reject(op, "R3", (x, "float32"), ((6, 3) + (3,) * n, "float32"), says="input channels"),
        Reject(op, "R3", (x, "float32"), ((6, 2) + (3,) * n, "float32"), says="groups = 2 satisfies"),
        Reject(op, "R3", (x, "float32"), ((6, 1) + (3,) * n, "float32"), groups=4, says="6 output channels"),
        Reject(op, "R4", (x, "float32"), (w, "float32"), channels=7, says="channels = 7"),
        Reject(op, "R4", (x, "float32"), (w, "float32"), kernel_size=[2] * n, says="kernel_size"),
        Reject(op, "R4", (x, "float32"), ((6, 4) + (0,) * n, "float32"), says="empty"),
        Reject(op, "R5", (x, "float32"), (w, "float32"), dilation=4, says="spans 9"),
    ]


def transpose_rejects(op, n):
    x, w = (1, 4) + (5,) * n, (4, 6) + (3,) * n
    return [
        Reject(op, "R1", ((1, 4), "float32"), (w, "float32")),
        Reject(op, "R1", (x, "float32"), (w, "float32"), output_padding=[1] * 7, says="output_padding"),
        Reject(op, "R2", (x, "bool"), (w, "bool")),
        Reject(op, "R2", (x, "float32"), (w, "float16")),
        Reject(op, "R3", (x, "float32"), ((3, 6) + (3,) * n, "float32"), says="input channels"),
        Reject(op, "R3", (x, "float32"), (w, "float32"), groups=3, says="does not divide"),
        Reject(op, "R4", (x, "float32"), (w, "float32"), groups=2, channels=6, says="channels = 6"),
        Reject(op, "R4", (x, "float32"), (w, "float32"), kernel_size=[2] * n, says="kernel_size"),
        Reject(op, "R5", (x, "float32"), (w, "float32"), padding=9, says="cuts more"),
    ]


CONV_C = dict(data_layout="NCHW4c", kernel_layout="OIHW4i8o", out_layout="NCHW8c")
DEPTHWISE_C = dict(data_layout="NCHW4c", kernel_layout="OIHW1i4o", out_layout="NCHW4c")
X, OFFSET, W, MASK = ((1, 4, 5, 5), "float32"), ((1, 18, 3, 3), "float32"), ((2, 4, 3, 3), "float32"), ((1, 9, 3, 3), "float32")
test_rejects = rejects(
    *[r for n in (1, 2, 3) for r in conv_rejects(f"nn.conv{n}d", n)],
    *[r for n in (1, 2, 3) for r in transpose_rejects(f"nn.conv{n}d_transpose", n)],
    Reject(
        "nn.contrib_conv2d_NCHWc",
        "R1",
        ((1, 2, 5, 5, 3), "float32"),
        ((1, 2, 3, 3, 4, 8), "float32"),
        data_layout="NCHW4c",
        kernel_layout="OIHW4i8o",
        out_layout="NCHW8c",
        says="data_layout",
    ),
    Reject(
        "nn.contrib_conv2d_NCHWc",
        "R1",
        ((1, 2, 5, 5, 4), "float32"),
        ((1, 2, 3, 3, 4, 7), "float32"),
        data_layout="NCHW4c",
        kernel_layout="OIHW4i8o",
        out_layout="NCHW8c",
        says="kernel_layout",
    ),
    *[
        Reject(op, rule, (x, t), (w, t2), **{**kw, "groups": g})
        for op, w, kw, g in (
            ("nn.contrib_conv2d_NCHWc", (1, 2, 3, 3, 4, 8), CONV_C, 1),
            ("nn.contrib_depthwise_conv2d_NCHWc", (2, 1, 3, 3, 1, 4), DEPTHWISE_C, 8),
        )
        for rule, x, t, t2, kw in (
            ("R1", (1, 2, 5, 5), "float32", "float32", kw),
            ("R2", (1, 2, 5, 5, 4), "bool", "bool", kw),
            ("R2", (1, 2, 5, 5, 4), "float32", "int8", kw),
            ("R3", (1, 3, 5, 5, 4), "float32", "float32", kw),
            ("R4", (1, 2, 5, 5, 4), "float32", "float32", {**kw, "channels": 5}),
            ("R5", (1, 2, 2, 5, 4), "float32", "float32", kw),
        )
    ],
    Reject("nn.deformable_conv2d", "R1", X, OFFSET, W, data_layout="NHCW4c"),
    Reject("nn.deformable_conv2d", "R1", X, ((1, 18, 3), "float32"), W),
    Reject("nn.deformable_conv2d", "R2", ((1, 4, 5, 5), "int32"), OFFSET, W),
    Reject("nn.deformable_conv2d", "R2", X, ((1, 18, 3, 3), "float64"), W),
    Reject("nn.deformable_conv2d", "R3", X, OFFSET, ((2, 3, 3, 3), "float32")),
    Reject("nn.deformable_conv2d", "R4", X, ((1, 17, 3, 3), "float32"), W),
    Reject("nn.deformable_conv2d", "R4", X, OFFSET, W, ((1, 8, 3, 3), "float32")),
)


def test_reference():
    """The reference itself: a window of ones sums what lies under it."""
    x = np.arange(6.0).reshape(1, 1, 6)
    assert ref.conv(x, np.ones((1, 1, 3))).tolist() == [[[3, 6, 9, 12]]]
    assert ref.conv_transpose(x[:, :, :2], np.ones((1, 1, 2)), strides=2).tolist() == [[[0, 0, 1, 1]]]


def test_order_of_attributes():
    """Attributes by position, in Relay's order: first those of the window."""
    plain = "strides padding dilation groups channels kernel_size data_layout kernel_layout out_layout out_dtype"
    transposed = "strides padding dilation channels kernel_size groups data_layout kernel_layout out_layout output_padding out_dtype"
    for n in (1, 2, 3):
        for name, want in ((f"conv{n}d", plain), (f"conv{n}d_transpose", transposed)):
            assert " ".join(inspect.signature(getattr(relay.nn, name)).parameters) == "data weight " + want
    x, w = relay.var("x", shape=(1, 3, 4, 4)), relay.var("w", shape=(3, 2, 3, 3))
    assert list(relay.nn.conv2d_transpose(x, w, (2, 2), (1, 1)).attrs.strides) == [2, 2]

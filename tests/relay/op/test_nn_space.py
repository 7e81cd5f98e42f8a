# SPDX-License-Identifier: Apache-2.0
"""Padding, blocks of space, spreading apart, enlarging."""

import numpy as np
import reference_nn as ref
from cases import Case, Reject, each, f16, f32, i8, i32, i64, rejects, table

WIDTHS = each([[1, 2], [0, 3]], [[0, 0], [0, 0]], [[-1, 2], [3, -2]], [[-2, 0], [0, -4]])


def cut(x, widths):
    """x without what negative widths cut, and the widths that remain."""
    return x[tuple(slice(max(-b, 0), n - max(-e, 0)) for n, (b, e) in zip(x.shape, widths, strict=True))], [(max(b, 0), max(e, 0)) for b, e in widths]


def pad(x, value, pad_width, pad_mode="constant"):
    x, widths = cut(x, pad_width)
    return np.pad(x, widths, constant_values=value.reshape(-1)[0]) if x.ndim else x


def border(x, pad_width, pad_mode):
    return np.pad(x, pad_width, mode=pad_mode)


test_pad = table(
    Case("nn.pad", pad, f32(3, 5), f32(), pad_width=WIDTHS),
    Case("nn.pad", pad, i8(3, 5), i8(1), pad_width=WIDTHS),
    Case("nn.pad", pad, f16(3, 5), f16(1, 1), pad_width=WIDTHS),
    Case("nn.pad", pad, f32(), f32(), pad_width=[]),
    Case("nn.pad", pad, f32(0, 2), f32(), pad_width=[[1, 2], [0, 1]]),
    Case("nn.pad", pad, i64(4), i64(), pad_width=[[0, 7]]),
    Case("nn.pad", pad, f32(3), f32(), pad_width=[[-3, 2]], name="nothing left"),
    *[
        Case("nn.pad", border, f32(3, 5), pad_width=each([[1, 2], [0, 3]], [[2, 2], [4, 0]], [[7, 9], [11, 6]]), pad_mode=mode)
        for mode in ("edge", "reflect", "wrap")
    ],
    *[Case("nn.pad", border, i32(1, 5), pad_width=[[2, 3], [0, 0]], pad_mode=mode) for mode in ("edge", "reflect", "wrap")],
    *[
        Case(
            "nn.mirror_pad",
            lambda x, pad_width, mode: np.pad(x, pad_width, mode=mode.lower()),
            m(3, 5),
            pad_width=each([[1, 2], [0, 3]], [[0, 0], [0, 0]], [[2, 2], [4, 4]]),
            mode=mode,
        )
        for mode in ("SYMMETRIC", "REFLECT")
        for m in (f32, i32)
    ],
    Case("nn.mirror_pad", lambda x, pad_width: np.pad(x, pad_width, mode="symmetric"), f32(3, 5), pad_width=[[3, 3], [5, 5]]),
)

test_blocks = table(
    *[Case("nn.space_to_depth", ref.space_to_depth, m(2, 3, 4, 6), block_size=each(1, 2), mode=each("DCR", "CRD")) for m in (f32, i8)],
    Case("nn.space_to_depth", ref.space_to_depth, f32(1, 6, 9, 2), block_size=3, layout="NHWC", mode=each("DCR", "CRD")),
    Case("nn.space_to_depth", ref.space_to_depth, f32(0, 3, 4, 6), block_size=2),
    *[Case("nn.depth_to_space", ref.depth_to_space, m(2, 12, 2, 3), block_size=each(1, 2), mode=each("DCR", "CRD")) for m in (f32, i8)],
    Case("nn.depth_to_space", ref.depth_to_space, f32(1, 2, 3, 18), block_size=3, layout="NHWC", mode=each("DCR", "CRD")),
    Case("nn.depth_to_space", ref.depth_to_space, f32(0, 8, 2, 3), block_size=2),
    Case("nn.space_to_batch_nd", ref.space_to_batch_nd, f32(2, 4, 6, 3), block_shape=[2, 3], paddings=each([[0, 0], [0, 0]], [[2, 0], [1, 2]])),
    Case("nn.space_to_batch_nd", ref.space_to_batch_nd, i32(2, 5), block_shape=[3], paddings=[[0, 1]], pad_value=7.0),
    Case("nn.space_to_batch_nd", ref.space_to_batch_nd, f32(1, 2, 2, 2), block_shape=[1, 2, 1], paddings=[[0, 0], [1, 1], [0, 0]], pad_value=-1.5),
    Case("nn.batch_to_space_nd", ref.batch_to_space_nd, f32(12, 2, 3, 3), block_shape=[2, 3], crops=each([[0, 0], [0, 0]], [[1, 0], [2, 1]])),
    Case("nn.batch_to_space_nd", ref.batch_to_space_nd, i32(6, 5), block_shape=[3], crops=[[0, 1]]),
    Case("nn.batch_flatten", lambda x: x.reshape(x.shape[0], int(np.prod(x.shape[1:]))), f32(2, 3, 4)),
    *[
        Case("nn.batch_flatten", lambda x: x.reshape(x.shape[0], int(np.prod(x.shape[1:]))), m)
        for m in (f32(3), i8(2, 5), f32(0, 3, 2), f32(2, 0, 3), f16(2, 3, 4, 5))
    ],
    Case("nn.dilate", ref.dilate, f32(3, 4), strides=each([1, 1], [2, 1], [3, 2]), dilation_value=each(0.0, -1.5)),
    Case("nn.dilate", ref.dilate, i32(5), strides=[4], dilation_value=7.0),
    Case("nn.dilate", ref.dilate, f32(0, 3), strides=[2, 2]),
    Case("nn.dilate", ref.dilate, f32(), strides=[]),
)


def cubic(s):
    """Keys' kernel with a = -0.5."""
    s = np.abs(s)
    return np.where(s <= 1, 1.5 * s**3 - 2.5 * s**2 + 1, -0.5 * s**3 + 2.5 * s**2 - 4 * s + 2)


def upsampling(x, scale_h=1, scale_w=1, layout="NCHW", method="nearest_neighbor", align_corners=False):
    v = ref.to_plain(x, layout, "NCHW").astype("float64")
    for axis, scale in ((2, scale_h), (3, scale_w)):
        n = v.shape[axis]
        m = int(np.floor(n * scale + 0.5))
        at = np.arange(m) * ((n - 1) / (m - 1)) if align_corners else np.arange(m) * n / m
        if method == "nearest_neighbor":
            v = np.take(v, np.arange(m) * n // m, axis)
            continue
        weights = np.zeros((n, m))
        for o, p in enumerate(at):
            for k in range(int(np.floor(p)) - 1, int(np.floor(p)) + 3):
                weights[min(max(k, 0), n - 1), o] += max(0, 1 - abs(p - k)) if method == "bilinear" else cubic(p - k)
        v = np.moveaxis(np.tensordot(v, weights, (axis, 0)), -1, axis)
    return ref.from_plain(v.astype(x.dtype), layout, "NCHW")


TOL = dict(rtol=1e-5, atol=2e-6)
test_upsampling = table(
    Case("nn.upsampling", upsampling, f32(1, 2, 3, 4), scale_h=each(1.0, 2.0, 3.0), scale_w=each(2.0, 1.5)),
    Case("nn.upsampling", upsampling, f32(1, 2, 3, 4), scale_h=2.0, scale_w=2.0, method=each("bilinear", "bicubic"), align_corners=each(False, True), **TOL),
    Case("nn.upsampling", upsampling, f32(1, 3, 4, 2), scale_h=2.0, scale_w=3.0, layout="NHWC", method=each("nearest_neighbor", "bilinear"), **TOL),
    Case("nn.upsampling", upsampling, i32(1, 2, 3, 4), scale_h=2.0, scale_w=2.0),
    Case("nn.upsampling", upsampling, f16(1, 2, 3, 4), scale_h=2.0, scale_w=2.0),
    Case("nn.upsampling", upsampling, f32(0, 2, 3, 4), scale_h=2.0, scale_w=2.0),
    Case("nn.upsampling", upsampling, f32(1, 2, 0, 4), scale_h=2.0, scale_w=2.0),
)

M = ((3, 5), "float32")
ONE = ((), "float32")
IMAGE = ((1, 4, 4, 4), "float32")
test_rejects = rejects(
    Reject("nn.pad", "R1", M, ONE, pad_width=[[1, 1], [1, 1]], pad_mode="mirror"),
    *[Reject("nn.pad", "R2", M, ONE, pad_width=w) for w in ([[1, 1]], [[1], [1]], [[1, 1, 1], [1, 1, 1]], [[2**50, 0], [0, 0]])],
    Reject("nn.pad", "R3", M, ONE, pad_width=[[-2, -2], [0, 0]], says="cuts more"),
    Reject("nn.pad", "R4", M, ((), "int32"), pad_width=[[1, 1], [1, 1]]),
    Reject("nn.pad", "R4", M, ((2,), "float32"), pad_width=[[1, 1], [1, 1]]),
    Reject("nn.pad", "R4", M, ((0,), "float32"), pad_width=[[1, 1], [1, 1]]),
    Reject("nn.pad", "R4", M, pad_width=[[1, 1], [1, 1]], says="missing"),
    *[Reject("nn.pad", "R5", ((0, 5), "float32"), pad_width=[[1, 1], [1, 1]], pad_mode=m) for m in ("edge", "reflect", "wrap")],
    Reject("nn.mirror_pad", "R1", M, pad_width=[[1, 1], [1, 1]], mode="EDGE"),
    Reject("nn.mirror_pad", "R2", M, pad_width=[[1, 1]]),
    Reject("nn.mirror_pad", "R2", M, pad_width=[[-1, 1], [0, 0]]),
    Reject("nn.mirror_pad", "R3", M, pad_width=[[4, 0], [0, 0]]),
    Reject("nn.mirror_pad", "R3", M, pad_width=[[3, 0], [0, 0]], mode="REFLECT"),
    *[
        Reject(op, rule, t, block_size=2, **kw)
        for op in ("nn.space_to_depth", "nn.depth_to_space")
        for rule, t, kw in (("R1", M, {}), ("R2", IMAGE, {"layout": "NCWH"}), ("R2", IMAGE, {"mode": "RCD"}), ("R3", ((1, 3, 3, 3), "float32"), {}))
    ],
    *[
        Reject("nn.space_to_batch_nd", "R1", IMAGE, block_shape=b, paddings=p)
        for b, p in (([2], [[0, 0], [0, 0]]), ([2] * 4, [[0, 0]] * 4), ([2], [[0]]), ([2], [[-2, 0]]))
    ],
    Reject("nn.space_to_batch_nd", "R2", IMAGE, block_shape=[3], paddings=[[0, 0]]),
    *[Reject("nn.batch_to_space_nd", "R1", IMAGE, block_shape=b, crops=p) for b, p in (([1], [[0, 0], [0, 0]]), ([1], [[0]]), ([1], [[-1, 0]]))],
    Reject("nn.batch_to_space_nd", "R2", IMAGE, block_shape=[3], crops=[[0, 0]]),
    Reject("nn.batch_to_space_nd", "R2", IMAGE, block_shape=[1], crops=[[3, 2]], says="crops"),
    Reject("nn.batch_flatten", "R1", ((), "float32")),
    Reject("nn.dilate", "R1", M, strides=[2]),
    Reject("nn.dilate", "R1", M, strides=[2**60, 1], says="too many"),
    Reject("nn.upsampling", "R1", ((1, 1, 2, 2), "bool"), scale_h=2.0),
    Reject("nn.upsampling", "R2", IMAGE, method="trilinear"),
    Reject("nn.upsampling", "R4", M, scale_h=2.0),
    Reject("nn.upsampling", "R5", IMAGE, layout="NCWH"),
    Reject("nn.upsampling", "R5", IMAGE, scale_h=0.0),
    Reject("nn.upsampling", "R5", IMAGE, scale_w=1e30),
)

# SPDX-License-Identifier: Apache-2.0
"""Operators that move elements by blocks: layouts, space and depth, space and batch."""

import re

import numpy as np
from cases import Case, Reject, bf16, boolean, each, f16, f32, f64, i8, i64, rejects, table, u8


def parse(layout):
    return [(m[2], int(m[1]) if m[1] else 0) for m in re.finditer(r"(\d*)([A-Za-z])", layout)]


def layout_transform(x, src_layout, dst_layout):
    """By way of the whole dimensions: an element's place in one layout gives its place along each letter, and from that the other's."""
    src, dst = parse(src_layout), parse(dst_layout)
    letters = [a for a, f in src if not f]
    part = {a: {f for b, f in src if f and b.upper() == a} for a in letters}
    extent = {a: x.shape[[b for b, _ in src].index(a)] * (next(iter(part[a])) if part[a] else 1) for a in letters}

    def shape(dims):
        return [f or -(-extent[a] // next((g for b, g in dims if g and b.upper() == a), 1)) for a, f in dims]

    def where(dims, at):
        return tuple(at[a.upper()] % f if f else at[a] // next((g for b, g in dims if g and b.upper() == a), 1) for a, f in dims)

    out = np.zeros(shape(dst), x.dtype)
    for at in np.ndindex(*(extent[a] for a in letters)):
        at = dict(zip(letters, at, strict=True))
        out[where(dst, at)] = x[where(src, at)]
    return out


def space_to_depth(x, block_size, layout="NCHW", mode="DCR"):
    if layout == "NHWC":
        return space_to_depth(x.transpose(0, 3, 1, 2), block_size, "NCHW", mode).transpose(0, 2, 3, 1)
    n, c, h, w = x.shape
    b = block_size
    x = x.reshape(n, c, h // b, b, w // b, b)
    return x.transpose(*((0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4))).reshape(n, c * b * b, h // b, w // b)


def depth_to_space(x, block_size, layout="NCHW", mode="DCR"):
    if layout == "NHWC":
        return depth_to_space(x.transpose(0, 3, 1, 2), block_size, "NCHW", mode).transpose(0, 2, 3, 1)
    n, c, h, w = x.shape
    b = block_size
    if mode == "DCR":
        return x.reshape(n, b, b, c // (b * b), h, w).transpose(0, 3, 4, 1, 5, 2).reshape(n, c // (b * b), h * b, w * b)
    return x.reshape(n, c // (b * b), b, b, h, w).transpose(0, 1, 4, 2, 5, 3).reshape(n, c // (b * b), h * b, w * b)


def space_to_batch(x, block_shape, paddings, pad_value=0):
    k = len(block_shape)
    x = np.pad(x, [(0, 0), *paddings, *[(0, 0)] * (x.ndim - 1 - k)], constant_values=pad_value)
    shape = [x.shape[0]]
    for n, b in zip(x.shape[1:], block_shape, strict=False):
        shape += [n // b, b]
    rest = list(x.shape[1 + k :])
    y = x.reshape(shape + rest)
    blocks, spaces = [2 + 2 * d for d in range(k)], [1 + 2 * d for d in range(k)]
    y = y.transpose(*blocks, 0, *spaces, *range(1 + 2 * k, y.ndim))
    return y.reshape([x.shape[0] * int(np.prod(block_shape)), *[n // b for n, b in zip(x.shape[1:], block_shape, strict=False)], *rest])


def batch_to_space(x, block_shape, crops):
    k, n = len(block_shape), x.shape[0] // int(np.prod(block_shape))
    y = x.reshape([*block_shape, n, *x.shape[1:]])
    order = [k]
    for d in range(k):
        order += [k + 1 + d, d]
    y = y.transpose(*order, *range(2 * k + 1, y.ndim)).reshape([n, *[m * b for m, b in zip(x.shape[1:], block_shape, strict=False)], *x.shape[1 + k :]])
    return y[(slice(None), *(slice(b, m - e) for m, (b, e) in zip(y.shape[1:], crops, strict=False)))]


test_layouts = table(
    Case(
        "layout_transform",
        layout_transform,
        f32(2, 5, 3, 4),
        src_layout="NCHW",
        dst_layout=each("NHWC", "NCHW", "CHWN", "NCHW4c", "NCHW2c", "NHWC5c", "NCHW16c", "HWNC3c"),
    ),
    Case("layout_transform", layout_transform, i8(2, 3, 4, 6), src_layout="NHWC", dst_layout=each("NCHW", "NCHW3c")),
    Case("layout_transform", layout_transform, f16(2, 2, 3, 4, 4), src_layout="NCHW4c", dst_layout=each("NCHW", "NHWC", "NCHW4c", "NCHW2c", "NCHW8c")),
    Case("layout_transform", layout_transform, f64(6, 5, 2, 2), src_layout="OIHW", dst_layout=each("OIHW4i2o", "HWIO", "OIHW8o")),
    Case("layout_transform", layout_transform, f32(3, 4), src_layout="NC", dst_layout=each("CN", "NC2c")),
    Case("layout_transform", layout_transform, boolean(0, 3), src_layout="NC", dst_layout=each("CN", "NC2c")),
    Case("layout_transform", layout_transform, bf16(3, 5, 2), src_layout="NCW", dst_layout=each("NWC", "NCW8c")),
    dynamic=True,
)
# Some extents tell others: with none known the channels of a split layout are not, either.
test_blocks = table(
    Case("nn.space_to_depth", space_to_depth, f32(2, 3, 4, 6), block_size=each(1, 2), mode=each("DCR", "CRD")),
    Case("nn.space_to_depth", space_to_depth, u8(2, 6, 3, 4), block_size=each(1, 3), layout="NHWC", mode=each("DCR", "CRD")),
    Case("nn.space_to_depth", space_to_depth, f16(0, 3, 4, 6), block_size=2),
    Case("nn.depth_to_space", depth_to_space, f32(2, 8, 2, 3), block_size=each(1, 2), mode=each("DCR", "CRD")),
    Case("nn.depth_to_space", depth_to_space, i64(1, 2, 3, 18), block_size=each(1, 3), layout="NHWC", mode=each("DCR", "CRD")),
    Case("nn.depth_to_space", depth_to_space, boolean(1, 4, 0, 3), block_size=2),
    Case("nn.space_to_batch_nd", space_to_batch, f32(2, 4, 6, 3), block_shape=[2, 3], paddings=each([[0, 0], [0, 0]], [[1, 1], [2, 1]]), pad_value=each(0, 2)),
    Case("nn.space_to_batch_nd", space_to_batch, i8(1, 3), block_shape=[2], paddings=[[0, 1]], pad_value=-1),
    Case("nn.space_to_batch_nd", space_to_batch, f64(2, 3), block_shape=[], paddings=[]),
    Case("nn.space_to_batch_nd", space_to_batch, f16(0, 4), block_shape=[2], paddings=[[0, 0]]),
    Case("nn.space_to_batch_nd", space_to_batch, f32(2, 0), block_shape=[2], paddings=[[1, 1]], pad_value=3),
    Case("nn.batch_to_space_nd", batch_to_space, f32(12, 2, 3, 2), block_shape=[2, 3], crops=each([[0, 0], [0, 0]], [[1, 0], [2, 3]], [[2, 2], [0, 0]])),
    Case("nn.batch_to_space_nd", batch_to_space, u8(4, 3), block_shape=[4], crops=[[1, 2]]),
    Case("nn.batch_to_space_nd", batch_to_space, bf16(2, 3), block_shape=[], crops=[]),
    Case("nn.batch_to_space_nd", batch_to_space, f32(0, 3), block_shape=[2], crops=[[0, 1]]),
    dynamic=True,
)

A, B = ((2, 5, 3, 4), "float32"), ((12, 2, 3), "float32")
test_rejects = rejects(
    Reject("layout_transform", "R1", ((2, 3), "float32"), src_layout="NCHW", dst_layout="NHWC"),
    Reject("layout_transform", "R2", A, src_layout="NCHW", dst_layout="NCHD"),
    Reject("layout_transform", "R2", A, src_layout="NCHW", dst_layout="NHW"),
    Reject("layout_transform", "R3", ((2, 5, 3, 4, 8), "float32"), src_layout="NCHW4c", dst_layout="NCHW"),
    *[
        r
        for op, bad in (("nn.space_to_depth", (1, 4, 3, 4)), ("nn.depth_to_space", (1, 6, 2, 2)))
        for r in (
            Reject(op, "R1", ((2, 4, 4), "float32"), block_size=2),
            Reject(op, "R2", ((1, 4, 2, 2), "float32"), block_size=2, layout="CNHW"),
            Reject(op, "R2", ((1, 4, 2, 2), "float32"), block_size=2, mode="DRC"),
            Reject(op, "R3", (bad, "float32"), block_size=2),
        )
    ],
    Reject("nn.space_to_batch_nd", "R1", B, block_shape=[2], paddings=[[0, 0], [0, 0]]),
    Reject("nn.space_to_batch_nd", "R1", B, block_shape=[2], paddings=[[0, -1]]),
    Reject("nn.space_to_batch_nd", "R1", B, block_shape=[1, 1, 1], paddings=[[0, 0]] * 3),
    Reject("nn.space_to_batch_nd", "R2", B, block_shape=[2], paddings=[[0, 1]]),
    Reject("nn.batch_to_space_nd", "R1", B, block_shape=[2], crops=[[0]]),
    Reject("nn.batch_to_space_nd", "R2", B, block_shape=[5], crops=[[0, 0]]),
    Reject("nn.batch_to_space_nd", "R2", B, block_shape=[2], crops=[[3, 2]]),
)

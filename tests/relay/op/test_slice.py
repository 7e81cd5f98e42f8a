# SPDX-License-Identifier: Apache-2.0
"""Cutting and padding: slices, pads, crops, triangles, diagonals, masks."""

import itertools

import numpy as np
from cases import Case, Reject, Value, bf16, boolean, each, f16, f32, f64, i8, i32, i64, rejects, table, u8

from baton import relay

BIG = 2**63 - 1


def sliced(x, begin, end, strides=(1,), slice_mode="end", axes=None):
    at = [slice(None)] * x.ndim
    for k, (b, e) in enumerate(zip(begin, end, strict=True)):
        s = strides[k if len(strides) > 1 else 0]
        d = axes[k] if axes is not None else k
        if slice_mode == "size":
            first = b + x.shape[d] if b < 0 else b
            at[d] = slice(b, None if e == -1 else first + e)
        elif s < 0:  # an end in front of the first element
            n = x.shape[d]
            at[d] = slice(b, None if (e + n if e < 0 else e) < 0 else e, s)
        else:
            at[d] = slice(b, e, s)
    return x[tuple(at)]


test_strided_slice = table(
    Case("strided_slice", sliced, f32(5, 6), begin=each([0], [1], [-2], [7], [-9]), end=each([5], [3], [-1], [9], [BIG])),
    Case("strided_slice", sliced, i64(5, 6), begin=[4, 1], end=[0, 5], strides=each([-1, 2], [-2, 3], [-1, 1])),
    Case("strided_slice", sliced, f16(5, 6), begin=each([-1], [4], [9], [2]), end=each([-9], [0], [-BIG]), strides=each([-1], [-3], [-BIG])),
    Case("strided_slice", sliced, bf16(5, 6), begin=[0, 0], end=[BIG, BIG], strides=each([2, BIG], [3])),
    Case("strided_slice", sliced, boolean(5, 6), begin=[1, 2], end=[2, 3], slice_mode="size"),
    Case("strided_slice", sliced, u8(5, 6), begin=each([1, 2], [-3, -2]), end=each([-1, -1], [2, 1], [0, 1], [BIG, -1]), slice_mode="size"),
    Case("strided_slice", sliced, f32(5, 6, 7), begin=[1, 2], end=[3, 9], axes=each([0, 2], [2, 1], [-1, 0])),
    Case("strided_slice", sliced, f32(5, 6), begin=[], end=[]),
    Case("strided_slice", sliced, f32(), begin=[], end=[]),
    Case("strided_slice", sliced, f64(0, 6), begin=[0, 1], end=[4, 5], strides=each([1], [-1, 1], [2, 2])),
    Case("strided_slice", sliced, i8(5), begin=[3], end=[2]),
    dynamic=True,
)


def strided_set(x, v, begin, end, strides):
    out, at = x.copy(), [np.arange(n) for n in x.shape]
    for d in range(len(begin)):
        n, s = x.shape[d], int(strides[d])
        b = int(begin[d]) + n if begin[d] < 0 else int(begin[d])
        b = min(b, n - 1) if s < 0 else min(max(b, 0), n)
        at[d] = b + s * np.arange(v.shape[d])
    for k in itertools.product(*(range(m) for m in v.shape)):
        to = tuple(int(a[j]) if j < len(a) else -1 for a, j in zip(at, k, strict=True))
        if all(0 <= j < n for j, n in zip(to, x.shape, strict=True)):
            out[to] = v[k]
    return out


def like(x, y, axes=None):
    return x[tuple(slice(0, y.shape[d]) if d in ([a % x.ndim for a in axes] if axes else range(y.ndim)) else slice(None) for d in range(x.ndim))]


def ints(*v):
    return Value(list(v), "int64")


test_set = table(
    Case("strided_set", strided_set, f32(5, 6), f32(2, 3), ints(1, 0), ints(3, 6), ints(1, 2)),
    Case("strided_set", strided_set, i32(5, 6), i32(3, 6), ints(-1, 5), ints(0, 0), ints(-2, -1)),
    Case("strided_set", strided_set, f16(5, 2), f16(2, 2), ints(1), ints(3), ints(2)),
    Case("strided_set", strided_set, f32(2), f32(2), ints(), ints(), ints()),
    Case("strided_set", strided_set, bf16(5), bf16(2), Value([-3], "int32"), Value([9], "int32"), Value([1], "int32")),
    Case("strided_set", strided_set, boolean(5), boolean(0), ints(1), ints(1), ints(1)),
    Case("strided_set", strided_set, u8(0, 2), u8(0, 2), ints(0, 0), ints(0, 2), ints(1, 1)),
    Case("slice_like", like, f32(5, 6, 7), i8(2, 3, 4), axes=each(None, [], [0], [-1, 1], [0, 2])),
    Case("slice_like", like, f16(5, 6, 7), boolean(2, 3)),
    Case("slice_like", like, i64(5, 6), f32()),
    Case("slice_like", like, u8(5, 6), f32(0, 6)),
    dynamic=True,
)

MODES = {"constant": "constant", "edge": "edge", "reflect": "reflect", "wrap": "wrap"}


def pad(x, value=None, pad_width=(), pad_mode="constant"):
    x = x[tuple(slice(max(-b, 0), n - max(-e, 0)) for n, (b, e) in zip(x.shape, pad_width, strict=True))]
    width = [(max(b, 0), max(e, 0)) for b, e in pad_width]
    if not width:
        return x
    if pad_mode == "constant":
        return np.pad(x, width, constant_values=np.asarray(value).reshape(()))
    return np.pad(x, width, mode=MODES[pad_mode])


def mirror_pad(x, pad_width, mode="SYMMETRIC"):
    return np.pad(x, pad_width, mode=mode.lower()) if pad_width else x


test_pad = table(
    Case("nn.pad", pad, f32(3, 4), f32(), pad_width=each([[1, 2], [0, 3]], [[0, 0], [0, 0]], [[-1, 2], [1, -3]], [[-3, 0], [0, 1]])),
    Case("nn.pad", pad, i8(3, 4), i8(1), pad_width=[[1, 0], [0, 1]]),
    Case("nn.pad", pad, bf16(3), bf16(), pad_width=[[2, 1]]),
    Case("nn.pad", pad, boolean(0, 2), boolean(), pad_width=each([[1, 1], [0, 1]], [[0, 0], [1, 0]])),
    Case("nn.pad", pad, f64(), f64(), pad_width=[]),
    Case("nn.pad", pad, f32(4, 5), f32(), pad_width=[[2, 3], [1, 0]], pad_mode=each("edge", "reflect", "wrap")),
    Case("nn.pad", pad, u8(4, 5), pad_width=each([[3, 3], [0, 4]], [[6, 9], [0, 0]]), pad_mode=each("edge", "reflect", "wrap")),
    Case("nn.pad", pad, f16(1, 5), pad_width=[[2, 3], [0, 0]], pad_mode=each("edge", "reflect", "wrap")),
    Case("nn.pad", pad, i64(0, 5), pad_width=[[0, 0], [1, 1]], pad_mode=each("edge", "wrap")),
    Case("nn.mirror_pad", mirror_pad, f32(4, 5), pad_width=each([[3, 3], [0, 4]], [[0, 0], [0, 0]]), mode=each("SYMMETRIC", "REFLECT")),
    Case("nn.mirror_pad", mirror_pad, u8(4), pad_width=[[4, 4]]),
    Case("nn.mirror_pad", mirror_pad, f16(2, 0), pad_width=[[1, 1], [0, 0]], mode=each("SYMMETRIC", "REFLECT")),
    Case("nn.mirror_pad", mirror_pad, f64(), pad_width=[]),
    dynamic=True,
)


def center(x, shape, axes=None):
    for k, m in enumerate(shape):
        d = axes[k] % x.ndim if axes is not None else k
        n = x.shape[d]
        if n > m:
            x = np.take(x, np.arange((n - m) // 2, (n - m) // 2 + m), d)
        else:
            x = np.pad(x, [((m - n) // 2, m - n - (m - n) // 2) if a == d else (0, 0) for a in range(x.ndim)])
    return x


test_center = table(
    Case("center_crop_pad", center, f32(5, 6), shape=each([3, 9], [5, 6], [8, 2], [0, 1]), dynamic="R2"),
    Case("center_crop_pad", center, i64(5, 6, 7), shape=[4, 8], axes=each([0, 2], [-1, 1]), dynamic="R2"),
    Case("center_crop_pad", center, u8(0, 6), shape=[2, 3]),
    Case("center_crop_pad", center, bf16(4), shape=each([7], [1])),
    Case("center_crop_pad", center, boolean(), shape=[], dynamic=True),
)


def trilu(x, upper=True, k=0):
    return (np.triu if upper else np.tril)(x, k).astype(x.dtype)


def set_diag(x, v, k1=0, k2=0, super_diag_right_align=True, sub_diag_right_align=False):
    out = x.copy()
    rows, cols = x.shape[-2:]
    for k in range(k1, k2 + 1):
        n = min(rows, cols - k) if k >= 0 else min(rows + k, cols)
        for j in range(n):
            shift = 0 if k1 == k2 or not (super_diag_right_align if k >= 0 else sub_diag_right_align) else v.shape[-1] - n
            out[..., j - min(k, 0), j + max(k, 0)] = v[..., j] if k1 == k2 else v[..., k2 - k, j + shift]
    return out


ALIGN = {"super_diag_right_align": each(True, False), "sub_diag_right_align": each(True, False)}
test_matrices = table(
    Case("trilu", trilu, f32(4, 5), upper=each(True, False), k=each(0, 1, -2, 9, -9)),
    Case("trilu", trilu, i8(2, 5, 3), upper=each(True, False), k=each(0, 2)),
    Case("trilu", trilu, boolean(0, 3), upper=each(True, False)),
    Case("trilu", trilu, bf16(3, 3)),
    Case("matrix_set_diag", set_diag, f32(4, 5), f32(4)),
    Case("matrix_set_diag", set_diag, i32(2, 4, 5), i32(2, 3), k1=2, k2=2),
    Case("matrix_set_diag", set_diag, f16(4, 3), f16(3), k1=-1, k2=-1),
    Case("matrix_set_diag", set_diag, f64(3, 4), f64(4, 3), k1=-1, k2=2, **ALIGN),
    Case("matrix_set_diag", set_diag, u8(2, 4, 4), u8(2, 2, 3), k1=-2, k2=-1, **ALIGN),
    dynamic=True,
)


def sequence_mask(x, n, mask_value=0.0, axis=0):
    t = np.arange(x.shape[axis]).reshape([-1 if d == axis else 1 for d in range(x.ndim)])
    n = np.trunc(n).astype("int64").reshape([-1 if d == 1 - axis else 1 for d in range(x.ndim)])
    return np.where(t < n, x, np.asarray(mask_value).astype(x.dtype))


test_mask = table(
    Case("sequence_mask", sequence_mask, f32(5, 3), Value([0, 2, 9], "int64"), mask_value=each(0.0, -1.5), axis=0),
    Case("sequence_mask", sequence_mask, i8(3, 5, 2), Value([0, 2, -1], "int32"), mask_value=7.0, axis=1),
    Case("sequence_mask", sequence_mask, f16(5, 3), Value([0.0, 2.9, 4.0], "float32"), mask_value=1.0),
    Case("sequence_mask", sequence_mask, bf16(0, 3), Value([0, 2, 1], "int64")),
    Case("sequence_mask", sequence_mask, boolean(5, 0), Value([], "int64"), mask_value=1.0),
    dynamic=True,
)

A, AT = ((3, 4), "float32"), ((2,), "int64")
S = ((), "float32")
test_rejects = rejects(
    Reject("strided_slice", "R1", A, begin=[0], end=[1, 1]),
    Reject("strided_slice", "R1", A, begin=[0], end=[1], strides=[1, 1]),
    Reject("strided_slice", "R2", A, begin=[0], end=[1], slice_mode="begin"),
    Reject("strided_slice", "R3", A, begin=[0, 0, 0], end=[1, 1, 1]),
    Reject("strided_slice", "R3", A, begin=[0, 0], end=[1, 1], axes=[0]),
    Reject("strided_slice", "R3", A, begin=[0, 0], end=[1, 1], axes=[0, -2]),
    Reject("strided_slice", "R4", A, begin=[0], end=[1], strides=[0]),
    Reject("strided_slice", "R5", A, begin=[0], end=[-2], slice_mode="size"),
    Reject("strided_set", "R1", A, ((1, 4), "int32"), AT, AT, AT),
    Reject("strided_set", "R2", A, ((1, 4), "float32"), ((2,), "float32"), AT, AT),
    Reject("strided_set", "R2", A, ((1, 4), "float32"), AT, ((2, 1), "int64"), AT),
    Reject("strided_set", "R3", A, ((4,), "float32"), AT, AT, AT),
    Reject("strided_set", "R4", A, ((1, 4), "float32"), ((3,), "int64"), ((3,), "int64"), ((3,), "int64")),
    Reject("strided_set", "R4", A, ((1, 4), "float32"), AT, AT, ((1,), "int64")),
    Reject("strided_set", "R5", A, ((1, 3), "float32"), ((1,), "int64"), ((1,), "int64"), ((1,), "int64")),
    Reject("slice_like", "R1", A, ((2,), "float32"), axes=[1]),
    Reject("slice_like", "R2", A, ((3, 5), "float32")),
    Reject("nn.pad", "R1", A, S, pad_width=[[0, 0], [0, 0]], pad_mode="mirror"),
    Reject("nn.pad", "R2", A, S, pad_width=[[0, 0]]),
    Reject("nn.pad", "R2", A, S, pad_width=[[0, 0], [0]]),
    Reject("nn.pad", "R3", A, S, pad_width=[[0, 0], [-3, -2]]),
    Reject("nn.pad", "R2", A, S, pad_width=[[0, 0], [2**62, 2**62]]),
    Reject("nn.pad", "R4", A, ((2,), "float32"), pad_width=[[0, 0], [0, 0]]),
    Reject("nn.pad", "R4", A, ((0,), "float32"), pad_width=[[0, 0], [0, 1]]),
    Reject("nn.pad", "R4", A, ((), "int32"), pad_width=[[0, 0], [0, 0]]),
    Reject("nn.pad", "R4", A, pad_width=[[0, 0], [0, 0]]),
    Reject("nn.pad", "R5", ((0, 4), "float32"), pad_width=[[1, 0], [0, 0]], pad_mode="edge"),
    Reject("nn.mirror_pad", "R1", A, pad_width=[[0, 0], [0, 0]], mode="edge"),
    Reject("nn.mirror_pad", "R2", A, pad_width=[[0, 0]]),
    Reject("nn.mirror_pad", "R2", A, pad_width=[[0, 0], [-1, 0]]),
    Reject("nn.mirror_pad", "R3", A, pad_width=[[0, 4], [0, 0]]),
    Reject("nn.mirror_pad", "R3", A, pad_width=[[0, 3], [0, 0]], mode="REFLECT"),
    Reject("center_crop_pad", "R1", A, shape=[1]),
    Reject("center_crop_pad", "R1", A, shape=[1, 2], axes=[0]),
    Reject("center_crop_pad", "R1", A, shape=[1, 2], axes=[0, -2]),
    Reject("center_crop_pad", "R2", ((relay.Any(),), "float32"), shape=[2]),
    Reject("trilu", "R1", ((3,), "float32")),
    Reject("matrix_set_diag", "R1", ((3,), "float32"), ((), "float32")),
    Reject("matrix_set_diag", "R2", A, ((3,), "int32")),
    Reject("matrix_set_diag", "R3", A, ((1, 3), "float32"), k1=1, k2=0),
    Reject("matrix_set_diag", "R3", A, ((3,), "float32"), k1=4, k2=4),
    Reject("matrix_set_diag", "R3", A, ((3,), "float32"), k1=-3, k2=-3),
    Reject("matrix_set_diag", "R4", A, ((2,), "float32")),
    Reject("matrix_set_diag", "R4", A, ((3,), "float32"), k2=1),
    Reject("matrix_set_diag", "R4", A, ((3, 3), "float32"), k2=1),
    Reject("matrix_set_diag", "R4", ((2, 3, 4), "float32"), ((3, 3), "float32")),
    Reject("sequence_mask", "R1", ((3,), "float32"), ((3,), "int64")),
    Reject("sequence_mask", "R2", A, ((4, 1), "int64")),
    Reject("sequence_mask", "R2", A, ((4,), "bool")),
    Reject("sequence_mask", "R3", A, ((4,), "int64"), axis=2),
    Reject("sequence_mask", "R4", A, ((3,), "int64")),
)

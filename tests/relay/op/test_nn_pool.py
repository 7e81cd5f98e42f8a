# SPDX-License-Identifier: Apache-2.0
"""Pools over windows, over all of space, and over equal parts of it."""

import numpy as np
import reference_nn as ref
from cases import Case, Reject, Value, each, f16, f32, f64, i8, i32, rejects, table, u8

TOL = dict(rtol=1e-5, atol=1e-6)
EXTENTS = {1: (11,), 2: (9, 8), 3: (5, 6, 4)}
POOLS = {"max": ref.max_pool, "avg": ref.avg_pool, "lp": ref.lp_pool}


def pools(make, kinds=("max", "avg", "lp"), dims=(1, 2, 3), shape=None, **kw):
    for n in dims:
        for kind in kinds:
            yield Case(f"nn.{kind}_pool{n}d", POOLS[kind], make(*(shape or (2, 3, *EXTENTS[n]))), **{**TOL, **kw})


test_window = table(
    *pools(f32, pool_size=each(1, 2, 3), strides=each(1, 2), padding=each(0, 1)),
    *pools(f32, dims=[2], pool_size=[2, 3], strides=[2, 1], padding=each([1, 0], [0, 1, 2, 0]), dilation=each(1, [2, 1])),
    *pools(f32, dims=[3], pool_size=[2, 3, 1], strides=[1, 2, 3], padding=[0, 1, 0, 1, 0, 0]),
    *pools(f32, pool_size=3, strides=2, padding=each(0, 1), ceil_mode=True),
    *pools(f32, dims=[2], pool_size=2, strides=3, ceil_mode=True, dilation=each(1, 2), padding=1),
    *pools(f32, kinds=["avg"], pool_size=3, strides=2, padding=1, ceil_mode=each(False, True), count_include_pad=each(False, True)),
    *pools(
        f32, kinds=["avg"], dims=[2], pool_size=[3, 2], strides=2, padding=[1, 0, 2, 1], ceil_mode=True, dilation=[1, 2], count_include_pad=each(False, True)
    ),
    *pools(f32, kinds=["lp"], pool_size=2, p=each(1, 2, 3)),
    # More in the last window than data and padding have; a stride longer than the window.
    *pools(f32, kinds=["max", "avg"], dims=[1], shape=(1, 2, 5), pool_size=2, strides=4, ceil_mode=each(False, True)),
    *pools(f32, kinds=["max", "avg"], dims=[1], shape=(1, 1, 7), pool_size=4, strides=5, padding=[3, 2], ceil_mode=True, name="edges"),
    *pools(f32, dims=[1], shape=(1, 9, 3), layout="NWC", pool_size=3, padding=1),
    *pools(f32, dims=[2], shape=(1, 9, 7, 3), layout="NHWC", pool_size=[3, 2], strides=2, padding=1),
    *pools(f32, dims=[2], shape=(1, 2, 9, 7, 4), layout="NCHW4c", pool_size=[3, 2], strides=2, padding=1),
    *pools(f32, dims=[3], shape=(1, 5, 4, 6, 3), layout="NDHWC", pool_size=2),
    *pools(f16, dims=[2], pool_size=2, rtol=2e-3, atol=1e-3),
    *pools(f64, dims=[2], pool_size=2, padding=1, rtol=1e-12, atol=1e-12),
    *[c for m in (i8, u8, i32) for c in pools(m, kinds=["max", "avg"], pool_size=3, padding=1, rtol=0, atol=0)],
    *pools(f32, shape=None, dims=[2], pool_size=[9, 8]),
    *pools(f32, dims=[1], shape=(0, 3, 5), pool_size=2),
    *pools(f32, dims=[2], shape=(2, 0, 5, 5), pool_size=2),
    Case(
        "nn.max_pool1d",
        lambda x, pool_size: np.array([[[np.nan, np.nan, -np.inf]]], "float32"),
        Value(np.array([[[1, np.nan, -np.inf, -np.inf]]], "float32")),
        pool_size=2,
    ),
    Case("nn.max_pool2d", ref.max_pool, i8(1, 1, 3, 3).within(-128, -120), pool_size=2, padding=1),
    # Pools whose window lies in the padding alone.
    Case("nn.max_pool1d", ref.max_pool, f32(1, 1, 3), pool_size=1, strides=2, padding=[2, 0]),
    Case("nn.lp_pool1d", ref.lp_pool, f32(1, 1, 3), pool_size=1, strides=2, padding=[2, 0], atol=1e-6),
)


def largest(x, axes):
    return np.max(x, axis=axes, keepdims=True)


WHOLE = {"max": largest, "avg": ref.mean}
test_global = table(
    *[Case(f"nn.global_{k}_pool{n}d", ref.global_pool(f), f32(2, 3, *EXTENTS[n]), **TOL) for k, f in WHOLE.items() for n in (1, 2, 3)],
    *[
        Case(f"nn.global_{k}_pool{n}d", ref.global_pool(f), f32(2, *EXTENTS[n], 3), layout=lay, **TOL)
        for k, f in WHOLE.items()
        for n, lay in {1: "NWC", 2: "NHWC", 3: "NDHWC"}.items()
    ],
    *[Case(f"nn.global_{k}_pool2d", ref.global_pool(f), f32(1, 2, 5, 3, 4), layout="NCHW4c", **TOL) for k, f in WHOLE.items()],
    *[Case(f"nn.global_{k}_pool2d", ref.global_pool(f), m(1, 2, 5, 3), **TOL) for k, f in WHOLE.items() for m in (i8, i32, u8)],
    *[Case(f"nn.global_{k}_pool2d", ref.global_pool(f), f16(1, 2, 9, 9), rtol=2e-3, atol=1e-3) for k, f in WHOLE.items()],
    *[Case(f"nn.global_{k}_pool1d", ref.global_pool(f), f32(0, 2, 9)) for k, f in WHOLE.items()],
)
test_adaptive = table(
    *[
        Case(f"nn.adaptive_{k}_pool{n}d", ref.adaptive_pool(f), f32(2, 3, *EXTENTS[n]), output_size=each(1, 2, 3, None), **TOL)
        for k, f in WHOLE.items()
        for n in (1, 2, 3)
    ],
    *[Case(f"nn.adaptive_{k}_pool2d", ref.adaptive_pool(f), f32(1, 2, 9, 8), output_size=each([3, 5], [9, 8], [4, 11]), **TOL) for k, f in WHOLE.items()],
    *[Case(f"nn.adaptive_{k}_pool2d", ref.adaptive_pool(f), f32(1, 7, 5, 3), output_size=[3, 2], layout="NHWC", **TOL) for k, f in WHOLE.items()],
    *[Case(f"nn.adaptive_{k}_pool1d", ref.adaptive_pool(f), i32(1, 2, 7), output_size=3) for k, f in WHOLE.items()],
    *[Case(f"nn.adaptive_{k}_pool1d", ref.adaptive_pool(f), f16(1, 2, 7), output_size=3, rtol=2e-3, atol=1e-3) for k, f in WHOLE.items()],
    *[Case(f"nn.adaptive_{k}_pool3d", ref.adaptive_pool(f), f32(0, 2, 7, 3, 3), output_size=3) for k, f in WHOLE.items()],
)
test_indexed = table(
    Case("nn.max_pool_with_indices", ref.max_pool_with_indices, f32(2, 3, 7), pool_size=[3], strides=each([1], [2]), padding=each([0], [1])),
    Case(
        "nn.max_pool_with_indices",
        ref.max_pool_with_indices,
        f32(2, 3, 6, 5),
        pool_size=[3, 2],
        strides=[2, 1],
        dilation=each([1, 1], [1, 2]),
        padding=[1, 0, 0, 1],
        ceil_mode=each(False, True),
        storage_order=each(0, 1),
    ),
    Case("nn.max_pool_with_indices", ref.max_pool_with_indices, f32(1, 2, 4, 5, 3), pool_size=[2, 2, 2], storage_order=each(0, 1)),
    Case("nn.max_pool_with_indices", ref.max_pool_with_indices, i8(2, 3, 7).within(-3, 3), pool_size=[3], name="ties"),
    Case("nn.max_pool_with_indices", ref.max_pool_with_indices, Value(np.zeros((1, 1, 5), "float32")), pool_size=[2]),
    Case(
        "nn.max_unpool", ref.max_unpool, f32(1, 1, 2, 2), Value(np.array([[[[5, 7], [13, 15]]]])), output_shape=each([1, 1, 4, 4], [1, 1, 5, 5], [1, 1, 2, 7])
    ),
    Case("nn.max_unpool", ref.max_unpool, i32(1, 1, 3), Value(np.array([[[0, 5, -1]]], "int32")), output_shape=[1, 1, 6]),
)


def pool_rejects(op, n, floating=False):
    x = ((1, 2) + (5,) * n, "float32")
    return [
        Reject(op, "R1", ((1, 2), "float32")),
        Reject(op, "R1", x, layout="NCQ", says="layout"),
        Reject(op, "R1", x, out_layout={1: "NWC", 2: "NHWC", 3: "NDHWC"}[n], says="out_layout"),
        Reject(op, "R1", x, pool_size=[1] * 7, says="pool_size"),
        Reject(op, "R2", ((1, 2) + (5,) * n, "int32" if floating else "bool")),
        Reject(op, "R3", x, pool_size=6, says="spans 6"),
        Reject(op, "R3", x, pool_size=2, dilation=5, says="spans 6"),
    ]


test_rejects = rejects(
    *[r for k in ("max", "avg", "lp") for n in (1, 2, 3) for r in pool_rejects(f"nn.{k}_pool{n}d", n, k == "lp")],
    *[Reject(f"nn.global_{k}_pool{n}d", "R1", ((1, 2), "float32")) for k in WHOLE for n in (1, 2, 3)],
    *[Reject(f"nn.global_{k}_pool{n}d", "R2", ((1, 2) + (5,) * n, "bool")) for k in WHOLE for n in (1, 2, 3)],
    *[Reject(f"nn.adaptive_{k}_pool{n}d", "R1", ((1, 2), "float32")) for k in WHOLE for n in (1, 2, 3)],
    *[Reject(f"nn.adaptive_{k}_pool{n}d", "R2", ((1, 2) + (5,) * n, "bool")) for k in WHOLE for n in (1, 2, 3)],
    *[Reject(f"nn.adaptive_{k}_pool{n}d", "R3", ((1, 2) + (0,) * n, "float32"), output_size=2) for k in WHOLE for n in (1, 2, 3)],
    Reject("nn.max_pool_with_indices", "R1", ((1, 2), "float32"), pool_size=[2]),
    Reject("nn.max_pool_with_indices", "R1", ((1, 2, 5, 5), "float32"), pool_size=[2], says="pool_size"),
    Reject("nn.max_pool_with_indices", "R2", ((1, 2, 5), "bool"), pool_size=[2]),
    Reject("nn.max_unpool", "R1", ((1, 1, 2), "float32"), ((1, 1, 2), "int64"), output_shape=[1, 4]),
    Reject("nn.max_unpool", "R2", ((1, 1, 2), "float32"), ((1, 1, 2), "float32"), output_shape=[1, 1, 4]),
    Reject("nn.max_unpool", "R2", ((1, 1, 2), "float32"), ((1, 1, 3), "int64"), output_shape=[1, 1, 4], says="differ"),
)

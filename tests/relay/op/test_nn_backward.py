# SPDX-License-Identifier: Apache-2.0
"""Operators that only gradients need: adjoints of weights of convolutions and of pools, as plain loops."""

import itertools

import numpy as np
import reference_nn as ref
from cases import Case, Reject, each, f16, f32, f64, rejects, table

TOL = dict(rtol=2e-5, atol=1e-5)


def backward_weight(grad, data, kernel_size, strides=1, padding=0, dilation=1, groups=1):
    n = data.ndim - 2
    s, d, (b, e) = ref.numbers(strides, n), ref.numbers(dilation, n), ref.margins(padding, n)
    x = np.pad(data.astype("float64"), [(0, 0), (0, 0), *zip(b, e, strict=True)])
    out, c = grad.shape[1], data.shape[1] // groups
    w = np.zeros((out, c, *kernel_size))
    for k in itertools.product(*map(range, kernel_size)):
        at = tuple(slice(k[i] * d[i], k[i] * d[i] + (grad.shape[2 + i] - 1) * s[i] + 1, s[i]) for i in range(n))
        for o in range(out):
            group = o // (out // groups)
            seen = x[(slice(None), slice(group * c, (group + 1) * c), *at)]
            w[(o, slice(None), *k)] = np.sum(grad[:, o : o + 1].astype("float64") * seen, axis=(0, *range(2, n + 2)))
    return w.astype(data.dtype)


def pool_grad(kind):
    def f(grad, data, pool_size=1, strides=1, dilation=1, padding=0, layout="", ceil_mode=False, count_include_pad=False):
        n = grad.ndim - 2 if not layout or layout[-1] not in "cC" or not layout[-2].isdigit() else grad.ndim - 3
        plain = "NC" + ref.SPACE[n]
        layout = layout or plain
        g, x = ref.to_plain(grad, layout, plain).astype("float64"), ref.to_plain(data, layout, plain).astype("float64")
        size, s, d, (b, e) = ref.numbers(pool_size, n), ref.numbers(strides, n), ref.numbers(dilation, n), ref.margins(padding, n)
        out = np.zeros_like(x)
        for o in itertools.product(*map(range, g.shape[2:])):
            places, around = [], 0
            for k in itertools.product(*map(range, size)):
                p = [o[i] * s[i] + k[i] * d[i] - b[i] for i in range(n)]
                around += all(q < x.shape[2 + i] + e[i] for i, q in enumerate(p))
                if all(0 <= q < x.shape[2 + i] for i, q in enumerate(p)):
                    places.append(tuple(p))
            if not places:
                continue
            if kind == "avg":
                for p in places:
                    out[(slice(None), slice(None), *p)] += g[(slice(None), slice(None), *o)] / (around if count_include_pad else len(places))
                continue
            for i, j in np.ndindex(x.shape[:2]):
                best = max(places, key=lambda p: x[(i, j, *p)])  # the first of equal ones
                out[(i, j, *best)] += g[(i, j, *o)]
        return ref.from_plain(out, layout, plain).astype(data.dtype)

    return f


test_weights = table(
    Case("nn.conv1d_backward_weight", backward_weight, f32(2, 4, 5), f32(2, 3, 7), kernel_size=[3], **TOL),
    Case("nn.conv1d_backward_weight", backward_weight, f32(2, 4, 4), f32(2, 6, 8), kernel_size=[2], strides=2, groups=2, **TOL),
    Case("nn.conv2d_backward_weight", backward_weight, f32(2, 4, 5, 6), f32(2, 3, 5, 6), kernel_size=[3, 3], padding=1, **TOL),
    Case("nn.conv2d_backward_weight", backward_weight, f32(2, 4, 3, 4), f32(2, 3, 6, 7), kernel_size=[2, 1], strides=2, **TOL),
    Case("nn.conv2d_backward_weight", backward_weight, f32(2, 4, 3, 4), f32(2, 4, 7, 8), kernel_size=[3, 3], dilation=2, groups=each(1, 2, 4), **TOL),
    Case(
        "nn.conv2d_backward_weight",
        backward_weight,
        f64(3, 6, 3, 2),
        f64(3, 3, 6, 5),
        kernel_size=[3, 2],
        strides=[2, 3],
        padding=[1, 0, 0, 1],
        groups=3,
        rtol=1e-12,
        atol=1e-12,
    ),
    Case("nn.conv3d_backward_weight", backward_weight, f32(1, 2, 2, 3, 2), f32(1, 3, 3, 4, 4), kernel_size=[2, 2, 3], **TOL),
    Case("nn.conv2d_backward_weight", backward_weight, f32(0, 2, 3, 3), f32(0, 3, 4, 4), kernel_size=[2, 2]),
)
test_pools = table(
    *[Case(f"nn.{k}_pool1d_grad", pool_grad(k), f32(2, 3, 4), f32(2, 3, 8), pool_size=2, strides=2, **TOL) for k in ("max", "avg")],
    *[Case(f"nn.{k}_pool2d_grad", pool_grad(k), f32(2, 3, 4, 3), f32(2, 3, 8, 6), pool_size=2, strides=2, **TOL) for k in ("max", "avg")],
    *[Case(f"nn.{k}_pool2d_grad", pool_grad(k), f32(1, 2, 6, 5), f32(1, 2, 6, 5), pool_size=3, padding=1, **TOL) for k in ("max", "avg")],
    *[Case(f"nn.{k}_pool2d_grad", pool_grad(k), f32(1, 2, 4, 3), f32(1, 2, 7, 6), pool_size=[2, 3], strides=2, ceil_mode=True, **TOL) for k in ("max", "avg")],
    *[Case(f"nn.{k}_pool2d_grad", pool_grad(k), f32(1, 2, 5, 1), f32(1, 2, 7, 7), pool_size=[3, 3], dilation=[1, 3], name="far", **TOL) for k in ("avg",)],
    *[Case(f"nn.{k}_pool2d_grad", pool_grad(k), f32(1, 3, 3, 2), f32(1, 6, 6, 2), pool_size=2, strides=2, layout="NHWC", **TOL) for k in ("max", "avg")],
    *[Case(f"nn.{k}_pool3d_grad", pool_grad(k), f32(1, 2, 2, 2, 3), f32(1, 2, 4, 4, 6), pool_size=2, strides=2, **TOL) for k in ("max", "avg")],
    Case(
        "nn.avg_pool2d_grad",
        pool_grad("avg"),
        f32(1, 2, 4, 4),
        f32(1, 2, 6, 6),
        pool_size=3,
        strides=2,
        padding=[1, 1, 2, 2],
        count_include_pad=each(False, True),
        **TOL,
    ),
    Case("nn.avg_pool1d_grad", pool_grad("avg"), f16(1, 2, 3), f16(1, 2, 6), pool_size=2, strides=2, rtol=2e-3, atol=1e-3),
)
IMAGE = ((2, 4, 6, 6), "float32")
CONVS = {1: "NCW", 2: "NCHW", 3: "NCDHW"}


def image(n, batch=2, channels=4, dtype="float32"):
    return ((batch, channels, *[6] * n), dtype)


test_rejects = rejects(
    *[
        r
        for n in CONVS
        for r in (
            Reject(f"nn.conv{n}d_backward_weight", "R1", image(n), image(n, dtype="float64"), kernel_size=[1] * n),
            Reject(f"nn.conv{n}d_backward_weight", "R2", ((2, 4), "float32"), image(n), kernel_size=[1] * n),
            Reject(f"nn.conv{n}d_backward_weight", "R3", image(n), image(n)),
            Reject(f"nn.conv{n}d_backward_weight", "R4", image(n), image(n), kernel_size=[1] * n, kernel_layout="".join(reversed("OI" + ref.SPACE[n]))),
            Reject(f"nn.conv{n}d_backward_weight", "R5", image(n, batch=3), image(n), kernel_size=[1] * n),
        )
    ],
    *[
        r
        for n in CONVS
        for k in ("max", "avg")
        for r in (
            Reject(f"nn.{k}_pool{n}d_grad", "R1", image(n), image(n, dtype="int32")),
            Reject(f"nn.{k}_pool{n}d_grad", "R2", ((2, 4), "float32"), image(n)),
        )
    ],
)

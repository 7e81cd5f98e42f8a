# SPDX-License-Identifier: Apache-2.0
"""Normalisations, softmax and its like, dropout."""

import numpy as np
import reference_nn as ref
from cases import Case, Reject, Value, each, f16, f32, f64, rejects, table

TOL = dict(rtol=2e-5, atol=2e-6)
HALF = dict(rtol=3e-3, atol=1e-3)
BOTH = each(True, False)


def batch(x, c, **kw):
    make = {"float32": f32, "float16": f16, "float64": f64}[x.dtype]
    return Case("nn.batch_norm", ref.batch_norm, x, make(c), make(c), make(c), make(c).within(0.1, 2), **{**TOL, **kw})


test_moments = table(
    batch(f32(2, 3, 4, 5), 3, center=BOTH, scale=BOTH),
    batch(f32(2, 3, 4, 5), 5, axis=each(3, -1), epsilon=0.1),
    batch(f32(2, 3), 3),
    batch(f32(3), 3, axis=0),
    batch(f32(0, 3, 4), 3),
    batch(f16(2, 3, 4), 3, **HALF),
    batch(f64(2, 3, 4), 3, rtol=1e-12, atol=1e-12),
    Case("nn.batch_norm", ref.batch_norm, f16(2, 3, 4), f32(3), f32(3), f32(3), f32(3).within(0.1, 2), name="wide statistics", **HALF),
    Case("nn.instance_norm", ref.instance_norm, f32(2, 3, 4, 5), f32(3), f32(3), center=BOTH, scale=BOTH, epsilon=each(1e-5, 0.1), **TOL),
    Case("nn.instance_norm", ref.instance_norm, f32(2, 4, 5, 3), f32(3), f32(3), axis=each(3, -1), **TOL),
    Case("nn.instance_norm", ref.instance_norm, f32(2, 3, 7), f32(3), f32(3), **TOL),
    Case("nn.instance_norm", ref.instance_norm, f16(2, 3, 7), f16(3), f16(3), **HALF),
    Case("nn.instance_norm", ref.instance_norm, f32(0, 3, 7), f32(3), f32(3)),
    Case("nn.group_norm", ref.group_norm, f32(2, 6, 4, 5), f32(6), f32(6), num_groups=each(1, 2, 3, 6), **TOL),
    Case("nn.group_norm", ref.group_norm, f32(2, 6, 4), f32(6), f32(6), num_groups=2, center=BOTH, scale=BOTH, epsilon=0.01, **TOL),
    Case("nn.group_norm", ref.group_norm, f32(2, 4, 5, 6), f32(6), f32(6), num_groups=3, axis=each(3, -1), **TOL),
    Case("nn.group_norm", ref.group_norm, f32(2, 6), f32(6), f32(6), num_groups=3, **TOL),
    Case("nn.group_norm", ref.group_norm, f16(2, 6, 4), f16(6), f16(6), num_groups=2, **HALF),
    Case("nn.layer_norm", ref.layer_norm, f32(2, 3, 5), f32(5), f32(5), center=BOTH, scale=BOTH, epsilon=each(1e-5, 0.1), **TOL),
    Case("nn.layer_norm", ref.layer_norm, f32(2, 3, 5), f32(3), f32(3), axis=1, **TOL),
    Case("nn.layer_norm", ref.layer_norm, f32(2, 3, 5), f32(3, 5), f32(3, 5), axis=1, num_axes=2, **TOL),
    Case("nn.layer_norm", ref.layer_norm, f32(2, 3, 5), f32(5), f32(1), axis=each(1, -2), num_axes=2, **TOL),
    Case("nn.layer_norm", ref.layer_norm, f32(7, 768), f32(768), f32(768), name="long rows", **TOL),
    Case(
        "nn.layer_norm",
        ref.layer_norm,
        Value(1e4 + np.random.default_rng(1).uniform(-1, 1, (3, 64)).astype("float32")),
        f32(64),
        f32(64),
        name="far from 0",
        rtol=2e-2,
        atol=2e-2,
    ),
    Case("nn.layer_norm", ref.layer_norm, f16(2, 3, 5), f16(5), f16(5), **HALF),
    Case("nn.layer_norm", ref.layer_norm, f64(2, 3, 5), f64(5), f64(5), rtol=1e-11, atol=1e-11),
    Case("nn.layer_norm", ref.layer_norm, f32(0, 5), f32(5), f32(5)),
    Case("nn.rms_norm", ref.rms_norm, f32(2, 3, 5), f32(5), epsilon=each(1e-5, 0.1), **TOL),
    Case("nn.rms_norm", ref.rms_norm, f32(2, 3, 5), f32(3, 5), axis=1, num_axes=2, **TOL),
    Case("nn.rms_norm", ref.rms_norm, f16(2, 3, 5), f16(5), **HALF),
)
test_vectors = table(
    Case("nn.l2_normalize", ref.l2_normalize, f32(2, 3, 5), eps=each(1e-6, 10.0), axis=each(None, [1], [-1], [0, 2]), **TOL),
    Case("nn.l2_normalize", ref.l2_normalize, f16(2, 9), eps=1e-3, axis=[1], **HALF),
    Case("nn.l2_normalize", ref.l2_normalize, Value(np.zeros((2, 3), "float32")), eps=1e-6, axis=[1]),
    Case("nn.lp_normalize", ref.lp_normalize, f32(2, 3, 5), p=each(1, 2), axis=each(0, 1, -1), **TOL),
    Case("nn.lp_normalize", ref.lp_normalize, Value(np.array([[0, 0], [3, -4]], "float32")), p=each(1, 2), **TOL),
    Case("nn.lp_normalize", ref.lp_normalize, f16(2, 9), **HALF),
    Case("nn.lrn", ref.lrn, f32(2, 7, 3, 4), size=each(1, 2, 3, 5, 9, 30, 2**40), bias=1.0, alpha=0.5, beta=0.75, **TOL),
    Case("nn.lrn", ref.lrn, f32(2, 3, 7), axis=each(2, -1), size=3, alpha=0.3, **TOL),
    Case("nn.lrn", ref.lrn, f16(1, 7, 3), size=3, alpha=0.1, **HALF),
)
HUGE = Value(np.array([[1e4, 1e4 - 1, -1e4], [-1e30, -1e30, -1e30], [0, -np.inf, 0]], "float32"))
test_softmax = table(
    Case("nn.softmax", ref.softmax, f32(2, 3, 5), axis=each(0, 1, 2, -1), **TOL),
    Case("nn.softmax", ref.softmax, HUGE, **TOL),
    Case("nn.softmax", ref.softmax, f32(3, 1)),
    Case("nn.softmax", ref.softmax, f32(7), **TOL),
    Case("nn.softmax", ref.softmax, f16(2, 40), **HALF),
    Case("nn.softmax", ref.softmax, f64(2, 5), rtol=1e-12),
    Case("nn.softmax", ref.softmax, f32(0, 5)),
    Case("nn.softmax", ref.softmax, f32(5, 0)),
    Case("nn.softmax", ref.softmax, Value(np.array([[np.nan, 1], [1, 2]], "float32")), **TOL),
    Case("nn.log_softmax", ref.log_softmax, f32(2, 3, 5), axis=each(0, 1, 2, -1), **TOL),
    Case("nn.log_softmax", ref.log_softmax, HUGE, rtol=2e-5, atol=1e-3),
    Case("nn.log_softmax", ref.log_softmax, f32(5, 0)),
    Case("nn.log_softmax", ref.log_softmax, f16(2, 40), **HALF),
    Case("nn.log_softmax", ref.log_softmax, f64(2, 5), rtol=1e-12),
    Case("nn.hardmax", ref.hardmax, f32(2, 3, 5), axis=each(0, 1, 2, -1)),
    Case("nn.hardmax", ref.hardmax, Value(np.array([[1, 3, 3], [2, 2, 2], [np.nan, 5, 1], [-np.inf] * 3], "float32"))),
    Case("nn.hardmax", ref.hardmax, f16(2, 9)),
    Case("nn.hardmax", ref.hardmax, f32(0, 5)),
)
test_dropout = table(
    Case("nn.dropout", lambda x, rate: (x, np.ones_like(x)), f32(2, 3), rate=each(0.0, 0.5, 1.0)),
    Case("nn.dropout", lambda x: (x, np.ones_like(x)), f16(0, 3)),
)

X, C = ((2, 6, 4), "float32"), ((6,), "float32")
WHOLE, LONG = ((2, 6, 4), "int32"), ((7,), "float32")
ROW = ((4,), "float32")
test_rejects = rejects(
    Reject("nn.batch_norm", "R1", WHOLE, C, C, C, C),
    Reject("nn.batch_norm", "R2", ((), "float32"), C, C, C, C),
    *[Reject("nn.batch_norm", "R3", X, *[LONG if i == k else C for i in range(4)], says="6 elements") for k in range(4)],
    Reject("nn.batch_norm", "R3", X, ((6, 1), "float32"), C, C, C),
    Reject("nn.batch_norm", "R3", X, ((6,), "int32"), C, C, C),
    *[Reject(op, "R1", WHOLE, C, C, **kw) for op, kw in (("nn.instance_norm", {}), ("nn.group_norm", {"num_groups": 2}))],
    *[Reject(op, "R2", ((6,), "float32"), C, C, axis=0, **kw) for op, kw in (("nn.instance_norm", {}), ("nn.group_norm", {"num_groups": 2}))],
    *[
        Reject(op, "R2", X, ((2,), "float32"), ((2,), "float32"), axis=0, says="batch", **kw)
        for op, kw in (("nn.instance_norm", {}), ("nn.group_norm", {"num_groups": 2}))
    ],
    *[Reject(op, "R3", X, LONG, C, **kw) for op, kw in (("nn.instance_norm", {}), ("nn.group_norm", {"num_groups": 2}))],
    *[Reject(op, "R3", X, C, ((6,), "float64"), **kw) for op, kw in (("nn.instance_norm", {}), ("nn.group_norm", {"num_groups": 2}))],
    Reject("nn.group_norm", "R4", X, C, C, num_groups=4, says="does not divide"),
    Reject("nn.layer_norm", "R1", WHOLE, ROW, ROW),
    Reject("nn.rms_norm", "R1", WHOLE, ROW),
    Reject("nn.layer_norm", "R2", X, ROW, ROW, num_axes=2, says="num_axes"),
    Reject("nn.rms_norm", "R2", X, ROW, num_axes=2, says="num_axes"),
    Reject("nn.layer_norm", "R2", ((), "float32"), ROW, ROW),
    Reject("nn.rms_norm", "R2", ((), "float32"), ROW),
    Reject("nn.layer_norm", "R3", X, C, ROW),
    Reject("nn.layer_norm", "R3", X, ROW, C),
    Reject("nn.rms_norm", "R3", X, C),
    Reject("nn.layer_norm", "R3", X, ((4,), "float16"), ROW),
    Reject("nn.rms_norm", "R3", X, ((4,), "float16")),
    Reject("nn.l2_normalize", "R1", WHOLE, eps=1.0),
    *[Reject(op, "R1", WHOLE) for op in ("nn.lp_normalize", "nn.lrn", "nn.softmax", "nn.log_softmax", "nn.hardmax", "nn.dropout")],
    *[Reject(op, "R2", ((), "float32")) for op in ("nn.lp_normalize", "nn.lrn", "nn.softmax", "nn.log_softmax", "nn.hardmax")],
)

# SPDX-License-Identifier: Apache-2.0
"""Reductions over axes, and running sums."""

import numpy as np
from cases import Case, Reject, Value, boolean, each, f16, f32, f64, i8, i32, i64, rejects, table, u8

AXES = each(None, [0], [-1], [0, 2], [1, 0], [])


def over(f):
    def g(x, axis=None, keepdims=False, exclude=False, **kw):
        dims = tuple(range(x.ndim)) if axis is None else tuple(a % x.ndim for a in axis)
        if exclude:
            dims = tuple(d for d in range(x.ndim) if d not in dims)
        return np.asarray(f(x, axis=dims, keepdims=keepdims, **kw)).astype(x.dtype)

    return g


def logsumexp(x, axis, keepdims):
    x = x.astype("float64")
    return np.log(np.sum(np.exp(x), axis=axis, keepdims=keepdims))


def mean(x, axis, keepdims):
    if x.dtype.kind == "f":
        return np.mean(x.astype("float64"), axis=axis, keepdims=keepdims)
    n = int(np.prod([x.shape[a] for a in axis]))
    return np.trunc(np.sum(x.astype("int64"), axis=axis, keepdims=keepdims) / n)


SUMS = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min}
FLOAT = {
    "mean": mean,
    "logsumexp": logsumexp,
    "sum_squares": lambda x, **k: np.sum(x * x, **k),
    "norm_l1": lambda x, **k: np.sum(np.abs(x), **k),
    "norm_l2": lambda x, **k: np.sqrt(np.sum(x * x, **k)),
}

test_reduce = table(
    *[Case(op, over(f), f32(2, 3, 4), axis=AXES, keepdims=each(False, True), rtol=1e-5, atol=1e-6) for op, f in {**SUMS, **FLOAT}.items()],
    *[Case(op, over(f), m(2, 3, 4), axis=each(None, [1])) for op, f in SUMS.items() for m in (i32, i64, i8, u8)],
    Case("sum", over(np.sum), f32(2, 3, 4), axis=[1], exclude=True, rtol=1e-5, atol=1e-6),
    Case("mean", over(mean), i32(3, 5), axis=each(None, [1])),
    Case("sum", lambda x: np.asarray(x.astype("float32").sum()).astype("float16"), f16(300)),
    Case("sum", over(np.sum), f64(7, 40), axis=[1], rtol=1e-12, atol=1e-12),
    Case("sum", over(np.sum), f32()),
    Case("max", over(np.max), f32()),
    Case("sum", lambda x, axis: np.zeros((2,), "float32"), f32(2, 0), axis=[1]),
    Case("prod", lambda x, axis: np.ones((2,), "float32"), f32(2, 0), axis=[1]),
    Case("max", lambda x, axis: np.full((2,), -np.inf, "float32"), f32(2, 0), axis=[1]),
    Case("min", lambda x, axis: np.full((2,), np.inf, "float32"), f32(2, 0), axis=[1]),
    Case("max", lambda x, axis: np.full((2,), -128, "int8"), i8(2, 0), axis=[1]),
    Case("mean", lambda x, axis: np.full((2,), np.nan, "float32"), f32(2, 0), axis=[1]),
    Case("max", over(np.max), Value(np.array([[1, np.nan, 3], [1, 2, 3]], "float32")), axis=[1]),
    Case("min", over(np.min), Value(np.array([[1, np.nan, 3], [1, 2, 3]], "float32")), axis=[1]),
    Case(
        "logsumexp",
        lambda x, axis: np.array([1000 + np.log(2), np.inf, -np.inf], "float32"),
        Value(np.array([[1000, 1000], [np.inf, 0], [-np.inf, -np.inf]], "float32")),
        axis=[1],
    ),
    Case("log_sum", over(lambda x, **k: np.log(np.sum(x, **k))), f32(2, 3, 4).within(0.5, 2), axis=each(None, [1]), rtol=1e-5, atol=1e-6),
    Case("all", over(np.all), boolean(2, 3, 4), axis=each(None, [1], [0, 2])),
    Case("any", over(np.any), boolean(2, 3, 4), axis=each(None, [1], [0, 2])),
    Case("all", lambda x: np.array(True), boolean(0)),
    Case("any", lambda x: np.array(False), boolean(0)),
    Case("variance", over(lambda x, **k: np.var(x.astype("float64"), **k)), f32(2, 3, 4), axis=each(None, [1], [0, 2]), keepdims=each(False, True), rtol=1e-5),
    Case("std", over(lambda x, **k: np.std(x.astype("float64"), **k)), f32(2, 3, 4), axis=each(None, [1]), rtol=1e-5),
    Case("variance", over(lambda x, unbiased, **k: np.var(x.astype("float64"), ddof=1, **k)), f32(5, 4), axis=[0], unbiased=True, rtol=1e-5),
)


def arg(f):
    def g(x, axis=None, keepdims=False, select_last_index=False, dtype="int32"):
        a = None if axis is None else axis[0]
        if select_last_index:
            n = x.size if a is None else x.shape[a]
            out = n - 1 - f(np.flip(x, a) if a is not None else x.reshape(-1)[::-1], axis=a)
        else:
            out = f(x, axis=a)
        out = np.asarray(out)
        if keepdims:
            out = np.expand_dims(out, a) if a is not None else out.reshape([1] * x.ndim)
        return out.astype(dtype)

    return g


test_arg = table(
    *[
        Case(op, arg(f), m, axis=each(None, [0], [1], [-1]), keepdims=each(False, True), select_last_index=each(False, True))
        for op, f in (("argmax", np.argmax), ("argmin", np.argmin))
        for m in (f32(3, 4, 5), i32(3, 4, 5).within(0, 3))
    ],
    Case("argmax", arg(np.argmax), f32(9), axis=[0], dtype="int64"),
    Case("argmax", arg(np.argmax), Value(np.array([[1, np.nan, 3, np.nan], [-np.inf] * 4], "float32")), axis=[1]),
    Case("argmin", arg(np.argmin), Value(np.array([[1, np.nan, 3, np.nan], [np.inf] * 4], "float32")), axis=[1]),
)


def scan(f, start):
    def g(x, axis=None, exclusive=False, reverse=False, dtype=None):
        t = np.dtype(dtype) if dtype else x.dtype
        x = x.astype(t)
        if axis is None:
            x, axis = x.reshape(-1), 0
        if reverse:
            x = np.flip(x, axis)
        out = f(x, axis=axis, dtype=t)
        if exclusive:
            out = np.roll(out, 1, axis)
            at = [slice(None)] * x.ndim
            at[axis] = slice(0, 1)
            out[tuple(at)] = start
        return (np.flip(out, axis) if reverse else out).astype(t)

    return g


test_scan = table(
    *[
        Case(op, scan(f, s), m(2, 3, 4), axis=each(None, 0, 1, -1), exclusive=each(False, True), reverse=each(False, True), rtol=1e-5, atol=1e-6)
        for op, f, s in (("cumsum", np.cumsum, 0), ("cumprod", np.cumprod, 1))
        for m in (f32, i32)
    ],
    Case("cumsum", scan(np.cumsum, 0), i8(40), axis=0, dtype=each("int32", "float32")),
    Case("cumsum", scan(np.cumsum, 0), f32(0, 3), axis=1),
    # Columns side by side: in one vector, in several, in parallel.
    *[
        Case("cumsum", scan(np.cumsum, 0), x, axis=each(0, 1), exclusive=each(False, True), reverse=each(False, True), rtol=1e-4, atol=1e-4)
        for x in (f32(3, 5, 16), i32(5, 2, 64), f32(2, 40, 1024))
    ],
    Case("cumprod", scan(np.cumprod, 1), f16(3, 4, 32), axis=1, dtype=each("float16", "float32"), rtol=2e-3, atol=1e-3),
)
test_rejects_families = rejects(
    *[Reject(op, "R1", ((2,), "bool")) for op in ("sum", "prod", "mean", "sum_squares", "norm_l1", "norm_l2", "cumsum", "cumprod")],
    *[Reject(op, "R1", ((2,), "int32")) for op in ("all", "any", "variance", "std", "logsumexp", "log_sum")],
    *[
        r
        for op in ("argmax", "argmin")
        for r in (Reject(op, "R1", ((2,), "bool")), Reject(op, "R2", ((2,), "float32"), dtype="float32"), Reject(op, "R3", ((0,), "float32")))
    ],
)
test_rejects = rejects(
    Reject("sum", "R1", ((2,), "bool")),
    Reject("all", "R1", ((2,), "int32")),
    Reject("logsumexp", "R1", ((2,), "int32")),
    Reject("argmax", "R1", ((2,), "bool")),
    Reject("argmax", "R2", ((2,), "float32"), dtype="float32"),
    Reject("argmax", "R3", ((0,), "float32")),
    Reject("variance", "R1", ((2,), "int32")),
    Reject("std", "R1", ((2,), "int32")),
    Reject("cumsum", "R1", ((2,), "bool")),
)

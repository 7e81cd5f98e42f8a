# SPDX-License-Identifier: Apache-2.0
"""Operators on quantized tensors: q stands for scale * (q - zero_point)."""

import math

import numpy as np
import reference_nn as ref
from cases import Case, Reject, Value, each, f32, f64, i8, i16, i32, rejects, table, u8

HALF, QUARTER, TWO, THREE = Value(0.5, "float32"), Value(0.25, "float32"), Value(2, "float32"), Value(3, "int32")
ZERO, SEVEN = Value(0, "int32"), Value(-7, "int32")


def sat(x, dtype):
    """Saturated whole numbers of a dtype."""
    info = np.iinfo(dtype)
    return np.clip(x, info.min, info.max).astype(dtype)


def along(p, x, axis):
    """A parameter that broadcasts along an axis of x."""
    return p if p.ndim == 0 else p.reshape([-1 if i == axis % x.ndim else 1 for i in range(x.ndim)])


def up(x):
    return np.floor(x + 0.5)


def quantize(x, s, z, axis=-1, out_dtype="int8"):
    return sat(np.rint(x / along(s, x, axis).astype(x.dtype)) + along(z, x, axis), out_dtype)


def dequantize(x, s, z, axis=-1):
    return ((x.astype("int32") - along(z, x, axis)) * along(s, x, axis)).astype("float32")


def requantize(x, s, z, t, y, axis=-1, rounding="UPWARD", compute_dtype="None", out_dtype="int8"):
    exact = (x.astype("int64") - along(z, x, axis)) * (along(s, x, axis).astype("float64") / t)
    return sat((np.sign(exact) * up(abs(exact)) if rounding == "TONEAREST" else up(exact)) + y, out_dtype)


def product(f):
    def value(x, w, xz, wz, xs, ws, out_dtype="int32", **attrs):
        return f(x.astype("float64") - xz, w.astype("float64") - along(wz, w, 0), **attrs).astype(out_dtype)

    return value


def both(f):
    def value(x, y, s, z, t, u, o, p, lhs_axis=-1, rhs_axis=-1):
        if f is np.multiply:
            exact = f(x.astype("int64") - along(z, x, lhs_axis), y.astype("int64") - along(u, y, rhs_axis))
            return sat(up(exact * (along(s, x, lhs_axis).astype("float64") * along(t, y, rhs_axis) / o)) + p, x.dtype)
        parts = [requantize(a, b, c, o, 0, axis, out_dtype="int32").astype("int64") for a, b, c, axis in ((x, s, z, lhs_axis), (y, t, u, rhs_axis))]
        return sat(f(*parts) + p, x.dtype)

    return value


def concatenate(data, scales, zeros, o, p, axis=0):
    return np.concatenate([requantize(x, s, z, o, p, out_dtype=x.dtype) for x, s, z in zip(data, scales, zeros, strict=True)], axis)


def unary(f):
    def value(x, s, z, o, p):
        return sat(np.rint(f(dequantize(x, s, z)).astype("float32") / o) + p, x.dtype)

    return value


SCALES, ZEROS = Value([0.5, 0.25, 2.0], "float32"), Value([1, -2, 3], "int32")
test_scales = table(
    Case("qnn.quantize", quantize, f32(2, 3), HALF, THREE, out_dtype=each("int8", "uint8", "int32"), fold=False),
    Case("qnn.quantize", quantize, f64(3, 4), SCALES, ZEROS, axis=each(0, -2), fold=False),
    Case("qnn.quantize", quantize, Value([-1e30, -64.25, -0.75, -0.25, 0.25, 0.75, 1e30], "float32"), HALF, ZERO, fold=False),
    Case("qnn.dequantize", dequantize, i8(2, 3), HALF, THREE, fold=False),
    Case("qnn.dequantize", dequantize, u8(2, 3), SCALES, ZEROS, fold=False),
    Case(
        "qnn.requantize",
        requantize,
        i32(3, 4).within(-999, 999),
        HALF,
        SEVEN,
        TWO,
        THREE,
        rounding=each("UPWARD", "TONEAREST"),
        out_dtype=each("int8", "uint8", "int16"),
        fold=False,
    ),
    Case("qnn.requantize", requantize, i32(3, 4).within(-999, 999), SCALES, ZEROS, QUARTER, ZERO, axis=0, out_dtype="int32", fold=False),
    Case(
        "qnn.simulated_quantize",
        lambda x, s, z, **a: quantize(x, s, z, **a).astype(x.dtype),
        f32(2, 3),
        HALF,
        THREE,
        out_dtype=each("int8", "uint8"),
        fold=False,
    ),
    Case(
        "qnn.simulated_dequantize",
        lambda x, s, z, axis=-1, in_dtype="int8": ((x - along(z, x, axis)) * along(s, x, axis)).astype(x.dtype),
        f32(2, 3),
        SCALES,
        ZEROS,
        in_dtype=each("int8", "int32"),
        fold=False,
    ),
    dynamic=True,
)


def simulated(x, scale, low, high, kind=1, sign=True, rounding="round"):
    return x if kind == 0 else (np.clip(np.rint(x / scale.astype(x.dtype)), low, high) * scale).astype(x.dtype)


SIMULATED, BOUNDS = "relay.op.annotation.simulated_quantize", (Value(-3, "float32"), Value(5, "float32"))
test_simulated = table(
    Case(SIMULATED, simulated, f32(2, 3), QUARTER, *BOUNDS, kind=each(0, 1, 2, 3), fold=False),
    Case(SIMULATED, simulated, f64(3), HALF, *BOUNDS, kind=2, sign=each(True, False), fold=False),
    Case(SIMULATED, simulated, Value([-1e30, -0.75, -0.25, 0.25, 0.75, 1e30], "float32"), HALF, *BOUNDS, fold=False),
    dynamic=True,
)
test_products = table(
    Case(
        "qnn.conv2d",
        product(ref.conv),
        u8(1, 3, 6, 6),
        i8(4, 3, 3, 3),
        THREE,
        SEVEN,
        HALF,
        TWO,
        strides=each([1, 1], [2, 2]),
        padding=[1, 1],
        out_dtype="int32",
        fold=False,
    ),
    Case("qnn.conv2d", product(ref.conv), i16(1, 2, 5, 5), i8(3, 2, 3, 3), THREE, ZEROS, HALF, SCALES, out_dtype="int64", fold=False),
    Case(
        "qnn.conv2d_transpose",
        product(ref.conv_transpose),
        u8(1, 2, 4, 4),
        i8(2, 3, 3, 3),
        THREE,
        SEVEN,
        HALF,
        TWO,
        strides=[2, 2],
        padding=[1, 1],
        out_dtype="int32",
        fold=False,
    ),
    Case("qnn.dense", product(lambda x, w: x @ w.T), i8(2, 5), i8(3, 5), THREE, ZEROS, HALF, SCALES, fold=False),
    Case("qnn.batch_matmul", product(lambda x, y: x @ y.transpose(0, 2, 1)), i8(2, 4, 5), u8(2, 3, 5), THREE, SEVEN, HALF, TWO, fold=False),
)
test_arithmetic = table(
    *(
        Case(f"qnn.{n}", both(f), u8(2, 3), u8(1, 3), HALF, THREE, QUARTER, SEVEN, TWO, THREE, fold=False)
        for n, f in (("add", np.add), ("subtract", np.subtract), ("mul", np.multiply))
    ),
    *(
        Case(f"qnn.{n}", both(f), i8(3, 4), i8(4), SCALES, ZEROS, HALF, SEVEN, TWO, THREE, lhs_axis=0, fold=False)
        for n, f in (("add", np.add), ("mul", np.multiply))
    ),
    Case("qnn.concatenate", concatenate, [u8(2, 3), u8(2, 1)], [HALF, TWO], [THREE, ZERO], HALF, THREE, axis=each(1, -1), fold=False),
    *(
        Case(f"qnn.{n}", unary(f), u8(4, 5).within(1, 20), Value(0.1, "float32"), ZERO, Value(0.013, "float32"), THREE, fold=False)
        for n, f in (
            ("tanh", np.tanh),
            ("exp", np.exp),
            ("sqrt", np.sqrt),
            ("rsqrt", lambda v: 1 / np.sqrt(v)),
            ("erf", np.vectorize(math.erf)),
            ("sigmoid", lambda v: 1 / (1 + np.exp(-v))),
        )
    ),
    dynamic=True,
)

RESULTS = np.random.default_rng(3).permutation(256)
test_tables = table(
    Case("qnn.table", lambda x, t: t[x], u8(3, 7), Value(RESULTS, "uint8"), fold=False),
    Case("qnn.table", lambda x, t: t[x.astype("uint8")], i8(2, 3, 5), Value(RESULTS - 128, "int8"), fold=False),
    Case("qnn.table", lambda x, t: t[x], u8(4, 5), Value(RESULTS / 7, "float32"), fold=False),
    dynamic=True,
)

F, I, S, Z = ((2, 3), "float32"), ((2, 3), "int8"), ((), "float32"), ((), "int32")  # noqa: E741
VS, VZ = ((3,), "float32"), ((2,), "int32")
_SCALED = [
    r
    for op, x, bad in (("quantize", F, I), ("dequantize", I, F), ("simulated_quantize", F, I), ("simulated_dequantize", F, I))
    for r in (
        Reject(f"qnn.{op}", "R1", bad, S, Z),
        Reject(f"qnn.{op}", "R2", x, Z, Z),
        Reject(f"qnn.{op}", "R2", x, ((2,), "float32"), Z, says="3 elements"),
        Reject(f"qnn.{op}", "R2", x, ((1, 3), "float32"), Z, says="scalar or a vector"),
        Reject(f"qnn.{op}", "R3", x, S, S),
        Reject(f"qnn.{op}", "R3", x, S, VZ),
        Reject(f"qnn.{op}", "R4", x, VS, Z, axis=2, says="axis 2"),
    )
]
_PRODUCTS = [
    r
    for op, x, w, attrs in (
        ("conv2d", (1, 3, 6, 6), (4, 3, 3, 3), {}),
        ("conv2d_transpose", (1, 3, 6, 6), (3, 4, 3, 3), {}),
        ("dense", (2, 3), (4, 3), {}),
        ("batch_matmul", (1, 2, 3), (1, 4, 3), {}),
    )
    for r in (
        Reject(f"qnn.{op}", "R1", (x, "float32"), (w, "int8"), Z, Z, S, S),
        Reject(f"qnn.{op}", "R1", (x, "int8"), (w, "float32"), Z, Z, S, S),
        Reject(f"qnn.{op}", "R2", (x, "int8"), (w, "int8"), Z, Z, Z, S),
        Reject(f"qnn.{op}", "R2", (x, "int8"), (w, "int8"), Z, Z, S, ((5,), "float32")),
        Reject(f"qnn.{op}", "R3", (x, "int8"), (w, "int8"), S, Z, S, S),
        Reject(f"qnn.{op}", "R3", (x, "int8"), (w, "int8"), ((3,), "int32"), Z, S, S),
        Reject(f"qnn.{op}", "R5", (x, "int8"), (w, "int8"), Z, Z, S, S, out_dtype="float32"),
    )
]
_BOTH = [
    r
    for op in ("add", "subtract", "mul")
    for r in (
        Reject(f"qnn.{op}", "R1", I, ((2, 3), "uint8"), S, Z, S, Z, S, Z),
        Reject(f"qnn.{op}", "R1", F, F, S, Z, S, Z, S, Z),
        Reject(f"qnn.{op}", "R2", I, I, Z, Z, S, Z, S, Z),
        Reject(f"qnn.{op}", "R2", I, I, S, Z, S, Z, VS, Z),
        Reject(f"qnn.{op}", "R3", I, I, S, Z, S, S, S, Z),
        Reject(f"qnn.{op}", "R4", I, I, VS, Z, S, Z, S, Z, lhs_axis=-3),
        Reject(f"qnn.{op}", "R5", I, ((2, 2), "int8"), S, Z, S, Z, S, Z),
    )
]
_UNARY = [
    r
    for op in ("tanh", "exp", "sqrt", "rsqrt", "erf", "sigmoid")
    for r in (Reject(f"qnn.{op}", "R1", F, S, Z, S, Z), Reject(f"qnn.{op}", "R2", I, VS, Z, S, Z), Reject(f"qnn.{op}", "R3", I, S, Z, S, S))
]
test_rejects = rejects(
    *_SCALED,
    *_PRODUCTS,
    *_BOTH,
    *_UNARY,
    *(
        Reject(f"qnn.{op}", "R5", F, S, Z, **{key: "float32"})
        for op, key in (("quantize", "out_dtype"), ("simulated_quantize", "out_dtype"), ("simulated_dequantize", "in_dtype"))
    ),
    Reject(SIMULATED, "R1", I, S, S, S),
    Reject(SIMULATED, "R2", F, VS, S, S),
    Reject(SIMULATED, "R2", F, S, S, Z),
    Reject(SIMULATED, "R3", F, S, S, S, kind=4, says="kind is 4"),
    Reject(SIMULATED, "R4", F, S, S, S, rounding="floor", says='rounding is "floor"'),
    Reject("qnn.requantize", "R1", F, S, Z, S, Z),
    Reject("qnn.requantize", "R2", I, S, Z, VS, Z),
    Reject("qnn.requantize", "R3", I, S, Z, S, S),
    Reject("qnn.requantize", "R4", I, VS, Z, S, Z, axis=5),
    Reject("qnn.requantize", "R5", I, S, Z, S, Z, out_dtype="float32"),
    Reject("qnn.requantize", "R6", I, S, Z, S, Z, rounding="DOWN"),
    Reject("qnn.table", "R1", F, ((256,), "uint8")),
    Reject("qnn.table", "R1", ((2, 3), "int32"), ((256,), "uint8"), says="int8 or uint8"),
    Reject("qnn.table", "R2", I, ((255,), "uint8"), says="256 elements"),
    Reject("qnn.table", "R2", I, ((2, 128), "uint8")),
    Reject("qnn.concatenate", "R1", [F], [S], [Z], S, Z),
    Reject("qnn.concatenate", "R1", [I, ((2, 3), "uint8")], [S, S], [Z, Z], S, Z),
    Reject("qnn.concatenate", "R2", [I], [VS], [Z], S, Z),
    Reject("qnn.concatenate", "R3", [I], [S], [S], S, Z),
    Reject("qnn.concatenate", "R4", [I, I], [S], [Z, Z], S, Z),
    Reject("qnn.concatenate", "R5", [I, ((3, 3), "int8")], [S, S], [Z, Z], S, Z, axis=1),
)

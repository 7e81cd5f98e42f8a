# SPDX-License-Identifier: Apache-2.0
"""Elementwise operators with one input."""

import math

import numpy as np
from cases import Case, Reject, Value, boolean, each, f16, f32, f64, i8, i32, i64, rejects, table, u8

erf = np.vectorize(math.erf, otypes=[np.float64])


def wide(f):
    """f in float64, rounded once."""
    return lambda x, **kw: np.asarray(f(np.asarray(x).astype(np.float64), **kw)).astype(x.dtype)


def sigmoid(x):
    return np.where(x >= 0, 1 / (1 + np.exp(-np.abs(x))), np.exp(-np.abs(x)) / (1 + np.exp(-np.abs(x)))) + 0 * np.where(np.isnan(x), x, 0)


def softplus(x):
    return np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0)


SHAPE = (3, 17)
FLOAT = {
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": sigmoid,
    "tanh": np.tanh,
    "erf": erf,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "reciprocal": lambda x: 1 / x,
    "nn.softplus": softplus,
    "nn.softsign": lambda x: np.where(np.isinf(x), np.nan, x / (1 + np.abs(x))),
    "nn.silu": lambda x: x * sigmoid(x),
    "nn.mish": lambda x: x * np.tanh(softplus(x)),
    "nn.hard_swish": lambda x: x * np.maximum(0, np.minimum(1, x / 6 + 0.5)),
}
LOOSE = {
    "nn.mish": 1e-5,
    "nn.silu": 1e-5,
    "tan": 1e-5,
    "nn.hard_swish": 1e-5,
    "asinh": 1e-5,
    "acosh": 2e-5,
    "atanh": 1e-5,
    "sinh": 1e-5,
    "log10": 5e-6,
    "expm1": 1e-5,
    "rsqrt": 5e-6,
}

ANGLES = np.concatenate([(np.arange(4096) - 2048) * np.float32(np.pi / 2), np.linspace(-1e6, 1e6, 904)]).astype("float32")

test_float = table(
    *[Case(op, wide(f), f32(*SHAPE), special=True, rtol=LOOSE.get(op, 4e-6), atol=1e-37) for op, f in FLOAT.items()],
    *[Case(op, wide(f), f16(*SHAPE), rtol=1.1e-3, atol=6e-8) for op, f in FLOAT.items()],
    *[Case(op, wide(f), f64(4), rtol=1e-9, atol=1e-300) for op, f in FLOAT.items()],
    # Angles near multiples of a quarter turn, and beyond what is reduced in float32, alone and among others.
    *[Case(op, wide(f), Value(ANGLES[:n]), rtol=4e-7, atol=1e-7) for op, f in (("sin", np.sin), ("cos", np.cos)) for n in (5, 4096, 5000)],
)

test_number = table(
    *[
        Case(op, f, m, special=True)
        for m in (f32(*SHAPE), i32(*SHAPE), i64(5), i8(7), f16(9))
        for op, f in {
            "abs": np.abs,
            "negative": np.negative,
            "floor": lambda x: np.floor(x).astype(x.dtype),
            "ceil": lambda x: np.ceil(x).astype(x.dtype),
            "trunc": lambda x: np.trunc(x).astype(x.dtype),
            "nn.relu": lambda x: np.where(x <= 0, 0, x).astype(x.dtype),
        }.items()
    ],
    Case("sign", lambda x: np.sign(x) + x.dtype.type(0), f32(*SHAPE), special=True),
    Case("sign", np.sign, i32(9), special=True),
    Case("sign", np.sign, u8(9), special=True),
    Case("abs", np.abs, u8(9), special=True),
    Case("round", np.round, Value(np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.4999, 7.0, np.nan, np.inf], "float32"))),
    Case("round", lambda x: x, i32(5)),
    Case("isnan", np.isnan, f32(*SHAPE), special=True),
    Case("isfinite", np.isfinite, f32(*SHAPE), special=True),
    Case("isnan", lambda x: np.zeros(x.shape, bool), i32(4)),
    Case(
        "isinf",
        lambda x, detect_negative, detect_positive: (np.isposinf(x) & detect_positive) | (np.isneginf(x) & detect_negative),
        f32(5),
        special=True,
        detect_negative=each(True, False),
        detect_positive=each(True, False),
    ),
    Case("copy", lambda x: x, f32(*SHAPE), special=True),
    Case("identity", lambda x: x, boolean(4), special=True),
)

test_bits = table(
    Case("logical_not", np.logical_not, boolean(3, 4), special=True),
    Case("bitwise_not", np.invert, i32(9), special=True),
    Case("bitwise_not", np.invert, u8(9), special=True),
    Case("bitwise_not", np.logical_not, boolean(9)),
    Case("popcount", lambda x: np.array([bin(int(v) & 0xFFFFFFFF).count("1") for v in x], x.dtype), i32(9)),
    Case("popcount", lambda x: np.array([bin(int(v)).count("1") for v in x], x.dtype), u8(9)),
)

test_parameters = table(
    Case("nn.leaky_relu", lambda x, alpha: np.where(x > 0, x, np.float32(alpha) * x), f32(2, 3), alpha=each(0.0, 0.2), special=True),
    Case("nn.elu", wide(lambda x, alpha: np.where(x > 0, x, alpha * np.expm1(x))), f32(2, 9), alpha=each(1.0, 0.3), special=True, rtol=1e-5),
    Case("nn.celu", wide(lambda x, alpha: np.where(x > 0, x, alpha * np.expm1(x / alpha))), f32(2, 9), alpha=each(1.0, 2.0), special=True, rtol=1e-5),
    Case(
        "nn.selu", wide(lambda x: 1.05070102214813232421875 * np.where(x > 0, x, 1.67326319217681884765625 * np.expm1(x))), f32(2, 9), special=True, rtol=1e-5
    ),
    Case(
        "nn.hard_sigmoid",
        wide(lambda x, alpha, beta: np.maximum(0, np.minimum(1, alpha * x + beta))),
        f32(2, 9),
        alpha=0.2,
        beta=each(0.5, 0.6),
        special=True,
        atol=1e-7,
    ),
    Case("nn.thresholded_relu", lambda x, alpha: np.where(x <= np.float32(alpha), np.float32(0), x), f32(2, 9), alpha=each(1.0, -0.5), special=True),
    Case("nn.swish", wide(lambda x, alpha: x * sigmoid(alpha * x)), f32(2, 9), alpha=each(1.0, 1.7), special=True, rtol=1e-5),
    Case(
        "nn.shrink",
        lambda x, lambd, bias: np.where(x < -lambd, x + bias, np.where(x > lambd, x - bias, 0)).astype(x.dtype),
        f32(2, 9),
        lambd=1.5,
        bias=each(0.0, 0.5),
    ),
    Case("nn.shrink", lambda x, lambd, bias: np.where(x < -lambd, x + bias, np.where(x > lambd, x - bias, 0)).astype(x.dtype), i32(9), lambd=1.5, bias=1.5),
    Case("nn.gelu", wide(lambda x, approximate: x * 0.5 * (1 + erf(x / math.sqrt(2)))), f32(2, 9), approximate="none", rtol=1e-5, atol=1e-7),
    Case(
        "nn.gelu",
        wide(lambda x, approximate: x * 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))),
        f32(2, 9),
        approximate="tanh",
        rtol=1e-5,
        atol=1e-7,
    ),
    Case("clip", lambda x, a_min, a_max: np.clip(x, np.float32(a_min), np.float32(a_max)), f32(2, 9), a_min=-1.0, a_max=each(1.0, -2.0), special=True),
    Case("clip", lambda x, a_min, a_max: np.clip(x, -1, 3), i32(9), a_min=-1.5, a_max=3.5),
    Case("clip", lambda x, a_min, a_max: np.clip(x, 0, 200), u8(9), a_min=-7.0, a_max=200.0),
    Case("clip", lambda x, a_min, a_max: x, i64(9), a_min=-1e30, a_max=1e30),
    Case("cast", lambda x, dtype: x.astype(dtype), f32(2, 9), dtype=each("float64", "float16", "int32", "int8", "bool")),
    Case("cast", lambda x, dtype: x.astype(dtype), boolean(9), dtype=each("float32", "int64", "uint8", "float16")),
    Case("cast", lambda x, dtype: x.astype(dtype), i64(9).within(0, 100), dtype=each("float32", "uint8", "bool", "int32", "float16")),
    Case("cast", lambda x, dtype: x.astype(dtype), i32(9).within(-1000, 1000), dtype=each("uint8", "int8", "int64")),
    Case("cast_like", lambda x, y: x.astype(y.dtype), f32(2, 9), i32(1)),
    Case("reinterpret", lambda x, dtype: x.view(dtype), f32(2, 9), dtype=each("int32", "uint32", "float32")),
    Case("nn.prelu", lambda x, a: np.where(x < 0, a[:, None] * x, x), f32(2, 3, 4), f32(3)),
    Case("nn.prelu", lambda x, a, axis: np.where(x < 0, a * x, x), f32(2, 3, 4), f32(1), axis=1),
    Case("nn.prelu", lambda x, a: np.where(x < 0, a * x, x), f32(2, 3, 4), f32(3, 1)),
)

test_fixed_point = table(
    Case(
        "fixed_point_multiply",
        lambda x, multiplier, shift: np.floor(x * (multiplier / 2**31 * 2.0**shift) + 0.5).astype("int32"),
        i32(3, 4).within(-(10**6), 10**6),
        multiplier=each(2**30, -(2**30), 1288490189, 2**31 - 1),
        shift=each(0, 1, 3, -2),
    ),
    Case("fixed_point_multiply", lambda x, multiplier, shift: x, i32(0, 2), multiplier=5, shift=each(30, -31)),
)
test_rejects_families = rejects(
    Reject("fixed_point_multiply", "R1", ((2,), "int64"), multiplier=1, shift=0),
    Reject("fixed_point_multiply", "R2", ((2,), "int32"), multiplier=2**31, shift=0),
    Reject("fixed_point_multiply", "R2", ((2,), "int32"), multiplier=1, shift=31),
    *[
        Reject(op, "R1", ((2,), "int32"))
        for op in (*FLOAT, "nn.elu", "nn.celu", "nn.selu", "nn.hard_sigmoid", "nn.thresholded_relu", "nn.swish", "nn.leaky_relu")
    ],
    *[Reject(op, "R1", ((2,), "bool")) for op in ("abs", "negative", "floor", "ceil", "trunc", "nn.relu", "sign", "round", "isnan", "isfinite")],
    Reject("clip", "R1", ((2,), "bool"), a_min=0.0, a_max=1.0),
    Reject("clip", "R2", ((2,), "float32"), a_min=math.nan, a_max=1.0),
    Reject("clip", "R2", ((2,), "int32"), a_min=0.0, a_max=math.nan),
    Reject("nn.shrink", "R1", ((2,), "bool")),
    Reject("popcount", "R1", ((2,), "float32")),
)
test_rejects = rejects(
    Reject("exp", "R1", ((2,), "int32"), says="int32"),
    Reject("abs", "R1", ((2,), "bool")),
    Reject("logical_not", "R1", ((2,), "int32")),
    Reject("bitwise_not", "R1", ((2,), "float32")),
    *[
        Reject(f"nn.{op}", "R1", ((2,), "int32"), says="int32")
        for op in ("leaky_relu", "celu", "elu", "selu", "hard_sigmoid", "hard_swish", "mish", "silu", "swish", "softplus", "softsign", "thresholded_relu")
    ],
    Reject("nn.relu", "R1", ((2,), "bool")),
    Reject("nn.shrink", "R1", ((2,), "bool")),
    Reject("nn.gelu", "R1", ((2,), "int32")),
    Reject("nn.gelu", "R2", ((2,), "float32"), approximate="sigmoid"),
    Reject("isinf", "R1", ((2,), "bool")),
    Reject("cast", "R1", ((2,), "float32"), dtype="handle"),
    Reject("reinterpret", "R1", ((2,), "float32"), dtype="int64"),
    Reject("nn.prelu", "R1", ((2, 3), "bool"), ((3,), "bool")),
    Reject("nn.prelu", "R2", ((2, 3), "float32"), ((3,), "float64")),
    Reject("nn.prelu", "R3", ((2, 3), "float32"), ((4,), "float32")),
    Reject("nn.prelu", "R3", ((2, 3), "float32"), ((4, 2, 3), "float32")),
)

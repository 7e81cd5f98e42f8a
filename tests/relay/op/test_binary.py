# SPDX-License-Identifier: Apache-2.0
"""Elementwise operators with two inputs, and where."""

import numpy as np
from cases import Case, Reject, Value, boolean, f16, f32, f64, i8, i32, i64, rejects, table, u8, u32, u64

SHAPES = [((3, 17), (3, 17)), ((2, 3, 4), (3, 1)), ((5,), ()), ((4, 1), (1, 6)), ((0, 3), (1, 3))]


def trunc_div(a, b):
    q = np.where(b == 0, 0, np.abs(a.astype(object)) // np.where(b == 0, 1, np.abs(b.astype(object))))
    q = np.where((a < 0) != (b < 0), -q, q)
    return wrap(q, a.dtype)


def wrap(x, dtype):
    """Python's integers as the dtype has them."""
    bits = np.dtype(dtype).itemsize * 8
    return np.array([int(v) & ((1 << bits) - 1) for v in np.asarray(x, object).reshape(-1)], f"uint{bits}").reshape(np.shape(x)).view(dtype)


def guarded(f):
    def g(a, b):
        out = f(a.astype(object), np.where(b == 0, 1, b).astype(object))
        return wrap(np.where(b == 0, 0, out), a.dtype)

    return g


def trunc_mod(a, b):
    return (a - trunc_div(a, b) * b).astype(a.dtype) * (b != 0)


def power(a, b):
    def one(x, y):
        if y >= 0:
            return pow(int(x), int(y), 1 << 64)
        return {1: 1, -1: -1 if y % 2 else 1}.get(x, 0)

    return wrap(np.vectorize(one, otypes=[object])(a.astype(object), b.astype(object)), a.dtype)


FLOAT = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "mod": np.fmod,
    "floor_mod": np.mod,
}

test_float = table(
    *[Case(op, f, f32(*a), f32(*b)) for op, f in FLOAT.items() for a, b in SHAPES],
    *[Case(op, FLOAT[op], f32(3), f32(3), special=True) for op in ("add", "subtract", "multiply", "divide")],
    *[Case(op, lambda a, b, f=f: f(a.astype("float32"), b.astype("float32")).astype("float16"), f16(3, 9), f16(9)) for op, f in FLOAT.items()],
    *[Case(op, f, f64(3, 9), f64(9)) for op, f in FLOAT.items()],
    Case("maximum", np.maximum, Value(np.array([np.nan, 1, np.nan, 2, -np.inf], "float32")), Value(np.array([1, np.nan, np.nan, 3, np.inf], "float32"))),
    Case("minimum", np.minimum, Value(np.array([np.nan, 1, np.nan, 2, -np.inf], "float32")), Value(np.array([1, np.nan, np.nan, 3, np.inf], "float32"))),
    Case("floor_divide", np.floor_divide, Value(np.array([1.0, 7.5, -7.5, 7.5, 0.0, 3.0], "float32")), Value(np.array([0.1, 2, 2, -2, 2, 0], "float32"))),
    Case("atan2", np.arctan2, f32(3, 9), f32(9), rtol=4e-6),
    Case("power", np.power, f32(3, 9).within(0.1, 3), f32(9), rtol=1e-5),
    Case(
        "power",
        np.power,
        Value(np.array([2, -2, -2, 0, 0, np.inf, np.nan, 1], "float32")),
        Value(np.array([3, 3, 0.5, 0, -1, 2, 0, np.nan], "float32")),
        rtol=1e-5,
    ),
    Case("power", lambda a, b: np.power(a, b.astype("float32")), f32(9), i32(9).within(-3, 3), rtol=1e-5),
    Case("power", lambda a, b: np.power(a.astype("float64"), b.astype("float64")).astype("int32"), i32(9).within(0, 6), f32(9).within(0, 3)),
)

test_whole = table(
    *[
        Case(op, f, m, n, special=True)
        for m, n in ((i32(3, 17), i32(17)), (i64(9), i64(9)), (i8(9), i8(9)), (u8(9), u8(9)), (u32(7), u32(7)))
        for op, f in {
            "add": np.add,
            "subtract": np.subtract,
            "multiply": np.multiply,
            "divide": trunc_div,
            "maximum": np.maximum,
            "minimum": np.minimum,
            "floor_divide": guarded(lambda a, b: a // b),
            "floor_mod": guarded(lambda a, b: a % b),
            "mod": trunc_mod,
        }.items()
    ],
    Case("power", power, i32(9), i32(9).within(-3, 9), special=True),
    Case("power", power, i64(9), i64(9).within(0, 70)),
    Case("power", power, u8(9), u8(9)),
)
COMPARE = {"equal": np.equal, "not_equal": np.not_equal, "less": np.less, "less_equal": np.less_equal, "greater": np.greater, "greater_equal": np.greater_equal}
test_compare = table(
    *[Case(op, f, f32(3), f32(3), special=True) for op, f in COMPARE.items()],
    *[Case(op, f, i32(2, 9).within(-2, 2), i32(9).within(-2, 2), special=True) for op, f in COMPARE.items()],
    *[Case(op, f, u64(9), u64(9), special=True) for op, f in COMPARE.items()],
    Case("equal", np.equal, boolean(9), boolean(9)),
    Case("not_equal", np.not_equal, boolean(9), boolean(9)),
)
test_bits = table(
    *[
        Case(op, f, boolean(2, 9), boolean(9), special=True)
        for op, f in {
            "logical_and": np.logical_and,
            "logical_or": np.logical_or,
            "logical_xor": np.logical_xor,
            "bitwise_and": np.logical_and,
            "bitwise_or": np.logical_or,
            "bitwise_xor": np.logical_xor,
        }.items()
    ],
    *[
        Case(op, f, m(2, 9), m(9), special=True)
        for m in (i32, u8)
        for op, f in {"bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor}.items()
    ],
    Case("left_shift", np.left_shift, u32(9), u32(9).within(0, 31)),
    Case("right_shift", np.right_shift, u8(9), u8(9).within(0, 7)),
    Case("right_shift", np.right_shift, i32(9), i32(9).within(0, 31)),
    Case("left_shift", lambda a, b: np.zeros_like(a), u8(9), u8(9).within(8, 20)),
    Case("right_shift", lambda a, b: np.where(a < 0, -1, 0).astype(a.dtype), i32(9), i32(9).within(32, 99)),
)
test_where = table(
    Case("where", np.where, boolean(3, 1), f32(4), f32(2, 1, 4)),
    Case("where", np.where, boolean(3), i64(3), i64()),
    Case("where", np.where, boolean(0, 3), f32(3), f32(3)),
    *[
        Case("where", np.where, Value(np.array(c, t)), f32(5), f32(5))
        for c, t in (([0, 1, -2, 0, 5], "int32"), ([0, -0.0, np.nan, 1e-40, 2], "float32"), ([0, 255, 0, 1, 3], "uint8"), ([0, 0.5, -1, 0, 6e-8], "float16"))
    ],
    Case("where", np.where, boolean(4), boolean(4), boolean(4)),
    Case("nn.bias_add", lambda x, b: x + b[:, None], f32(2, 3, 4), f32(3)),
    Case("nn.bias_add", lambda x, b, axis: x + b, f32(2, 3, 4), f32(4), axis=-1),
)
# What each family wants of both operands, by a dtype that it does not take.
FAMILIES = {
    "bool": (
        "add",
        "subtract",
        "multiply",
        "divide",
        "floor_divide",
        "floor_mod",
        "mod",
        "maximum",
        "minimum",
        "power",
        "less",
        "less_equal",
        "greater",
        "greater_equal",
    ),
    "float32": ("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"),
    "int32": ("logical_and", "logical_or", "logical_xor", "atan2"),
    None: ("equal", "not_equal"),
}
OF = {"bool": "int32", "float32": "int32", "int32": "bool", None: "int32"}
test_rejects_families = rejects(
    *[
        r
        for bad, ops in FAMILIES.items()
        for op in ops
        for good in ["float32" if op == "atan2" else OF[bad]]
        for r in (
            *([Reject(op, "R1", ((2,), bad), ((2,), bad))] if bad else []),
            Reject(op, "R3", ((2, 3), good), ((4,), good)),
            *([Reject(op, "R2", ((2,), good), ((2,), "float64" if op == "atan2" else "int64"))] if op != "power" and "logical" not in op else []),
        )
    ],
)
test_rejects = rejects(
    Reject("add", "R1", ((2,), "bool"), ((2,), "bool")),
    Reject("add", "R2", ((2,), "float32"), ((2,), "int32"), says="cast one of them"),
    Reject("add", "R3", ((2, 3), "float32"), ((4,), "float32"), says="(2, 3) and (4,)"),
    Reject("left_shift", "R1", ((2,), "float32"), ((2,), "float32")),
    Reject("logical_and", "R1", ((2,), "int32"), ((2,), "int32")),
    Reject("where", "R2", ((2,), "bool"), ((2,), "int32"), ((2,), "int64")),
    Reject("where", "R3", ((2,), "bool"), ((3,), "int32"), ((3,), "int32")),
    Reject("nn.bias_add", "R1", ((2, 3), "bool"), ((3,), "bool")),
    Reject("nn.bias_add", "R2", ((2, 3), "float32"), ((3,), "float64")),
    Reject("nn.bias_add", "R3", ((2, 3), "float32"), ((3, 1), "float32")),
    Reject("nn.bias_add", "R4", ((2, 3), "float32"), ((4,), "float32")),
)

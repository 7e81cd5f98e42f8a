# SPDX-License-Identifier: Apache-2.0
"""Sorting, searching and selecting; determinants; special functions of two variables."""

import math

import numpy as np
import pytest
from cases import Case, Reject, Value, bf16, boolean, each, evaluate, f16, f32, f64, i8, i32, i64, rejects, table, u8

import baton
from baton import relay

NAN = Value(np.array([[3, np.nan, -np.inf, 0.0, -0.0, np.inf, 1], [np.nan] * 7], "float32"))
TIES = Value(np.array([[2, 1, 2, 1, 2, 2, 1]], "int32"))
_random = np.random.default_rng(0)
MANY = Value(np.where(_random.random((2, 1000)) < 0.01, np.nan, _random.standard_normal((2, 1000))).astype("float32"))
MANY_TIES = Value(_random.integers(-3, 3, (3, 1000)).astype("float32") * np.float32(0.5) * np.float32(-1))
MANY_TIES_BY_COLUMN = Value(_random.integers(-3, 3, (1000, 3)).astype("int32"))
SPARSE = Value((_random.random(20000) < 0.1).astype("float32"))
SPARSE_ROWS = Value(_random.random((300, 5, 70)) < 0.3)
HOLES = Value(
    np.where(_random.random((3, 600)) < 0.3, np.inf, np.where(_random.random((3, 600)) < 0.3, np.nan, _random.standard_normal((3, 600)))).astype("float32")
)
RISING, FALLING = Value(np.arange(2000, dtype="float64")), Value(np.arange(2000, 0, -1, "int16"))
ENDS = Value(_random.choice(np.array([-(2**31), 0, 2**31 - 1], "int32"), (2, 800)))
EXTREME = Value(np.array([2**64 - 1, 0, 2**63, 2**63 - 1, 1], "uint64"))


def order(x, axis, is_ascend):
    """Stable in both directions; NaN counts as largest."""
    if is_ascend:
        return np.argsort(x, axis=axis, kind="stable")
    flipped = np.argsort(np.flip(x, axis), axis=axis, kind="stable")
    return np.flip(x.shape[axis] - 1 - flipped, axis)


def sort(x, axis=-1, is_ascend=True):
    return np.take_along_axis(x, order(x, axis, is_ascend), axis)


def argsort(x, axis=-1, is_ascend=True, dtype="int32"):
    return order(x, axis, is_ascend).astype(dtype)


def topk(x, k=1, axis=-1, ret_type="both", is_ascend=False, dtype="int32"):
    k = x.shape[axis] if k < 1 else k
    at = np.take(order(x, axis, is_ascend), np.arange(k), axis)
    values = np.take_along_axis(x, at, axis)
    return {"both": (values, at.astype(dtype)), "values": values, "indices": at.astype(dtype)}[ret_type]


def searchsorted(s, v, right=False, dtype="int32"):
    side = "right" if right else "left"
    if s.ndim == 1:
        return np.searchsorted(s, v, side).astype(dtype)
    out = np.zeros(v.shape, dtype)
    for at in np.ndindex(s.shape[:-1]):
        out[at] = np.searchsorted(s[at], v[at], side)
    return out


BOTH = {"is_ascend": each(True, False)}
test_sort = table(
    *[
        Case(op, f, x, **BOTH)
        for op, f in (("sort", sort), ("argsort", argsort))
        for x in (f32(3, 4), i64(9), u8(2, 5), boolean(7), f16(9), bf16(9), f64(0), i8(0, 3), f32(3, 0), f32(1), NAN, TIES, EXTREME)
    ],
    *[Case(op, f, f32(3, 4, 2), axis=each(0, 1, -2, -1), **BOTH) for op, f in (("sort", sort), ("argsort", argsort))],
    Case("argsort", argsort, i32(7), dtype=each("int32", "float32", "uint8", "int64")),
    Case("topk", topk, f32(3, 7), k=each(1, 3, 7, 0, -1), ret_type=each("both", "values", "indices"), **BOTH),
    Case("topk", topk, i64(4, 3, 2), k=2, axis=each(0, 1, -1), **BOTH),
    Case("topk", topk, i32(7), k=2, dtype=each("int32", "int64", "float32")),
    *[Case("topk", topk, x, k=1, **BOTH) for x in (NAN, TIES, EXTREME, boolean(3, 2), u8(5), f16(9), bf16(9))],
    Case("topk", topk, f32(0, 3), k=2, axis=1),
    # Long rows: selection in blocks, sorting by digits; few different values, so that places decide.
    *[Case("topk", topk, x, k=each(1, 7, 200, 900), **BOTH) for x in (MANY, MANY_TIES, i64(2, 1000), u8(1000))],
    Case("topk", topk, MANY_TIES_BY_COLUMN, k=each(5, 300), axis=0, **BOTH),
    # What bounds the selection: infinities and NaN among numbers, rows in order, the ends of a type.
    *[Case("topk", topk, x, k=each(1, 16, 60), **BOTH) for x in (HOLES, RISING, FALLING, ENDS, i8(2, 900), f32(64, 512), i32(40, 200), f16(3, 700))],
    Case("topk", topk, f64(400, 3), k=16, axis=0, **BOTH),
    *[Case(op, f, x, **BOTH) for op, f in (("sort", sort), ("argsort", argsort)) for x in (MANY, MANY_TIES, f64(700), f16(2000))],
    dynamic=True,
)
test_search = table(
    Case(
        "searchsorted",
        searchsorted,
        Value([1.0, 2.0, 2.0, 5.0], "float32"),
        Value([[0, 1, 2], [3, 5, 9]], "float32"),
        right=each(False, True),
        dtype=each("int64", "int32"),
    ),
    Case("searchsorted", searchsorted, Value([[1, 2, 3], [4, 4, 6]], "int64"), Value([[2, 9], [4, 0]], "int64"), right=each(False, True)),
    Case("searchsorted", searchsorted, Value([0, 2**63, 2**64 - 1], "uint64"), Value([2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1, 0], "uint64")),
    Case("searchsorted", searchsorted, Value([], "float16"), f16(3)),
    Case("searchsorted", searchsorted, Value([1, 2], "uint8"), u8(0)),
    Case("searchsorted", searchsorted, Value([False, True]), boolean(), right=each(False, True)),
    Case("searchsorted", searchsorted, Value([0.0, 1.0, np.nan], "float64"), Value([0.5, np.nan, np.inf], "float64")),
    dynamic=True,
)


def unique(x, is_sorted=True, axis=None):
    values, first, inverse, count = np.unique(x, return_index=True, return_inverse=True, return_counts=True, axis=axis)
    inverse = inverse.reshape(-1)
    if not is_sorted:
        rank = np.argsort(first, kind="stable")
        values, first, count = np.take(values, rank, axis or 0), first[rank], count[rank]
        inverse = np.argsort(rank)[inverse]
    return values, first.astype("int64"), inverse.astype("int64"), count.astype("int64")


test_select = table(
    *[
        Case("unique", unique, x, is_sorted=each(True, False))
        for x in (i64(9).within(0, 4), u8(3, 4).within(0, 3), boolean(5), f16(4), i8(), f32(0), EXTREME, TIES)
    ],
    Case("unique", unique, i32(6, 2).within(0, 1), is_sorted=each(True, False), axis=each(0, 1, -1)),
    Case("unique", unique, Value(np.array([1, np.nan, 0.0, np.nan, -0.0, 1], "float32"))),
    *[Case("argwhere", lambda x: np.argwhere(x).astype("int64"), x) for x in (boolean(3, 4), i32(5).within(-1, 1), f32(2, 2, 2), u8(0, 3), boolean())],
    Case("argwhere", lambda x: np.argwhere(x).astype("int64"), Value(np.array([0.0, -0.0, np.nan, 1e-40], "float32"))),
    *[
        Case(op, f, x)
        for op, f in (("nonzero", lambda x: np.stack(np.atleast_1d(x).nonzero()).astype("int64")), ("argwhere", lambda x: np.argwhere(x).astype("int64")))
        for x in (
            boolean(3, 4),
            i32(5).within(-1, 1),
            f64(2, 2, 2),
            f16(9),
            bf16(9),
            u8(0, 3),
            Value(np.array([0.0, -0.0, np.nan, 1e-40], "float32")),
            SPARSE,
            SPARSE_ROWS,
        )
    ],
    Case("nonzero", lambda x: np.empty((0, int(x)), "int64"), boolean()),
    Case("compress", lambda x, c, axis=None: np.compress(c, x, axis), f32(3, 4), boolean(3), axis=each(None, 0, -2)),
    Case("compress", lambda x, c, axis=None: np.compress(c, x, axis), i8(3, 4), Value([False, True]), axis=each(1, -1)),
    Case("compress", lambda x, c, axis=None: np.compress(c, x, axis), bf16(5), boolean(0), axis=each(None, 0)),
    Case("compress", lambda x, c, axis=None: np.compress(c, x.reshape(-1)), f64(), Value([True]), axis=None),
    Case("compress", lambda x, c, axis=None: np.compress(c, x, axis), f32(40, 500, 30), boolean(500), axis=1),
    Case("compress", lambda x, c, axis=None: np.compress(c[:0], x, axis), boolean(2, 0), Value([True]), axis=1),
    dynamic=True,
)

test_det = table(
    Case("linalg.det", lambda x: np.linalg.det(x.astype("float64")).astype(x.dtype), f32(3, 3), rtol=1e-5),
    Case("linalg.det", lambda x: np.linalg.det(x.astype("float64")).astype(x.dtype), f64(2, 5, 4, 4), rtol=1e-9),
    Case("linalg.det", lambda x: np.linalg.det(x.astype("float64")).astype(x.dtype), f16(2, 2)),
    Case("linalg.det", lambda x: np.ones(2, "float32"), f32(2, 0, 0)),
    Case("linalg.det", lambda x: np.zeros(0, "float32"), f32(0, 2, 2)),
    Case("linalg.det", lambda x: np.float32(0), Value(np.array([[1, 2], [2, 4]], "float32")), atol=1e-30),  # 0 of either sign
    Case("linalg.det", lambda x: np.float32(-1), Value(np.array([[0, 1], [1, 0]], "float32"))),
    dynamic=True,
)


def incomplete_gamma(a, x, upper):
    """Of whole numbers by the sum, of halves by recurrence from the error function; at the ends as documented."""
    out = np.empty(a.shape, "float64")
    for at in np.ndindex(a.shape):
        b, y = float(a[at]), float(x[at])
        start = 1.0 if b == int(b) else 0.5
        over = math.exp(-y) if start == 1 else math.erfc(math.sqrt(y))
        for k in range(round(b - start)):
            over += math.exp((start + k) * math.log(y) - y - math.lgamma(start + k + 1)) if y else 0.0
        out[at] = over if upper else 1 - over
    return out.astype(a.dtype)


def orthogonal(x, n, family):
    """By NumPy's sums of polynomials."""
    of = {"legendre": "legendre.legval", "laguerre": "laguerre.lagval", "hermite": "hermite.hermval", "hermite_e": "hermite_e.hermeval"}[family]
    module, name = of.split(".")
    value = getattr(getattr(np.polynomial, module), name)
    return np.vectorize(lambda y, k: value(float(y), [0.0] * int(k) + [1.0]) if k >= 0 else 0.0, otypes=[x.dtype])(x, n)


A_OF_GAMMA = [0.5, 1, 2.5, 3, 20, 20, 60, 60, 3, 0.5, 1, 500]
X_OF_GAMMA = [0.2, 5, 1, 9, 18, 30, 30, 90, 0, 30, 1e-3, 490]
NO_GAMMA = [np.array([-1, 1, 0, 0, np.inf, 2, np.inf, np.nan, 1], "float32"), np.array([1, -1, 1, 0, 2, np.inf, np.inf, 1, np.nan], "float32")]
FAMILIES = each("legendre", "laguerre", "hermite", "hermite_e")
test_special = table(
    *[
        Case("incomplete_gamma", incomplete_gamma, Value(A_OF_GAMMA, d), Value(X_OF_GAMMA, d), upper=each(False, True), rtol=tol, atol=1e-12)
        for d, tol in (("float64", 1e-8), ("float32", 2e-6), ("float16", 2e-3))
    ],
    Case("incomplete_gamma", lambda a, x: np.array([np.nan, np.nan, 1, np.nan, 0, 1, np.nan, np.nan, np.nan], "float32"), *map(Value, NO_GAMMA)),
    Case("incomplete_gamma", lambda a, x, upper: np.array([np.nan] * 2 + [0, np.nan, 1, 0] + [np.nan] * 3, "float32"), *map(Value, NO_GAMMA), upper=True),
    # Far from the middle, and around it, of a large a: the normal distribution with the skewness's correction.
    Case(
        "incomplete_gamma",
        lambda a, x: np.array([0, 0.5 + 1 / (3 * math.sqrt(2e6 * math.pi)), 1]),
        Value([1e6] * 3, "float64"),
        Value([5e5, 1e6, 2e6]),
        atol=1e-9,
    ),
    Case("orthogonal_polynomial", orthogonal, f64(4, 5), Value(np.arange(20.0).reshape(4, 5)), family=FAMILIES, rtol=1e-8, atol=1e-9),
    Case(
        "orthogonal_polynomial",
        orthogonal,
        f32(2, 6).within(-1, 1),
        Value([[0, 1, 2, 3, 4, 9], [-1, -2, 7, 5, 2.9, 3.1]], "float32"),
        family=FAMILIES,
        rtol=1e-4,
    ),
    Case("orthogonal_polynomial", orthogonal, Value([1, -1, -1, 0, 1, 0.5], "float32"), Value([9, 3, 4, 30, 1, 40], "float32"), family="legendre", rtol=1e-4),
    Case(
        "orthogonal_polynomial",
        lambda x, n, family: np.array([np.nan] * 3, "float32"),
        f32(3),
        Value([129, 3e8, 500], "float32"),
        family=each("hermite", "hermite_e"),
    ),
    Case("orthogonal_polynomial", lambda x, n: np.array([np.nan, 0, 0, 1], "float32"), f32(4), Value([3e8, np.nan, np.inf, 0.5], "float32")),
    Case("orthogonal_polynomial", lambda x, n: np.zeros((0, 2), "float32"), f32(0, 2), f32(0, 2)),
    dynamic=True,
)


def cofactor(x):
    """By the definition: a determinant of what is left without row i and column j."""
    out, m = np.zeros(x.shape, "float64"), x.astype("float64")
    for at in np.ndindex(*x.shape[:-2]):
        for i, j in np.ndindex(*x.shape[-2:]):
            out[(*at, i, j)] = (-1) ** (i + j) * np.linalg.det(np.delete(np.delete(m[at], i, 0), j, 1))
    return out.astype(x.dtype)


test_cofactor = table(
    Case("linalg.cofactor", cofactor, f32(3, 3), rtol=1e-5, atol=1e-6),
    Case("linalg.cofactor", cofactor, f64(2, 5, 4, 4), rtol=1e-9, atol=1e-9),
    Case("linalg.cofactor", cofactor, f64(3, 7, 7), rtol=1e-8, atol=1e-8),
    Case("linalg.cofactor", cofactor, f16(2, 2)),
    Case("linalg.cofactor", lambda x: np.ones((2, 1, 1), "float32"), f32(2, 1, 1)),
    Case("linalg.cofactor", lambda x: x, f32(2, 0, 0)),
    Case("linalg.cofactor", lambda x: x, f32(0, 2, 2)),
    *[
        Case("linalg.cofactor", cofactor, Value(np.array(m, "float64")), rtol=1e-12, atol=1e-12, name=name)
        for name, m in (
            ("rank two of three", [[1, 2, 3], [4, 5, 6], [5, 7, 9]]),
            ("rank one of three", [[1, 2, 3], [2, 4, 6], [3, 6, 9]]),
            ("nothing", np.zeros((3, 3))),
        )
    ],
    dynamic=True,
)

A, S = ((2, 3), "float32"), ((), "float32")
test_rejects = rejects(
    Reject("sort", "R1", S),
    Reject("argsort", "R1", S),
    Reject("argsort", "R2", A, dtype="bool"),
    Reject("topk", "R1", S),
    Reject("topk", "R2", A, dtype="bool"),
    Reject("topk", "R3", A, ret_type="value"),
    Reject("topk", "R4", A, k=4),
    Reject("searchsorted", "R1", S, S),
    Reject("searchsorted", "R2", ((2,), "int32"), A),
    Reject("searchsorted", "R3", A, ((3, 3), "float32")),
    Reject("searchsorted", "R3", A, ((2,), "float32")),
    Reject("searchsorted", "R4", A, A, dtype="bool"),
    Reject("unique", "R1", S, axis=0),
    Reject("compress", "R1", A, ((2,), "int32")),
    Reject("compress", "R1", A, ((2, 1), "bool")),
    Reject("compress", "R2", S, ((1,), "bool"), axis=0),
    Reject("incomplete_gamma", "R1", ((2,), "int32"), ((2,), "int32")),
    Reject("incomplete_gamma", "R2", A, ((2,), "float32")),
    Reject("incomplete_gamma", "R2", ((2,), "float32"), ((2,), "float64")),
    Reject("orthogonal_polynomial", "R1", ((2,), "int32"), ((2,), "int32")),
    Reject("orthogonal_polynomial", "R2", ((2,), "float32"), ((3,), "float32")),
    Reject("orthogonal_polynomial", "R3", ((2,), "float32"), ((2,), "float32"), family="bernoulli"),
    Reject("linalg.det", "R1", ((2, 2), "int32")),
    Reject("linalg.det", "R2", ((2,), "float32")),
    Reject("linalg.det", "R2", A),
    Reject("linalg.cofactor", "R1", ((2, 2), "int32")),
    Reject("linalg.cofactor", "R2", ((2,), "float32")),
    Reject("linalg.cofactor", "R2", A),
)


@pytest.mark.parametrize("return_counts", [False, True])
def test_unique_as_relay_has_it(return_counts):
    x = relay.var("x", shape=(8,), dtype="int32")
    out = relay.unique(x, is_sorted=False, return_counts=return_counts)
    got = evaluate(relay.Function([x], out.astuple()), [np.array([4, 5, 1, 2, 3, 3, 4, 5], "int32")])
    want = [[4, 5, 1, 2, 3], [0, 1, 2, 3, 4], [0, 1, 2, 3, 4, 4, 0, 1], [5], [2, 2, 1, 1, 2]][: 5 if return_counts else 4]
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        assert g.dtype == "int32" and g.tolist() == w


def test_defaults_are_those_of_relay():
    x = relay.var("x", shape=(5,))
    mod = relay.transform.InferType()(
        baton.IRModule.from_expr(
            relay.Function([x], relay.Tuple([relay.argsort(x), relay.topk(x, 2)[1], relay.searchsorted(x, x), relay.argmax(x), relay.argmin(x)]))
        )
    )
    assert [str(t.dtype) for t in mod["main"].body.checked_type.fields] == ["int32"] * 5


def test_defaults_in_text_are_those_of_relay():
    text = '#[version = "0.0.5"]\ndef @main(%x: Tensor[(5), float32]) { (argsort(%x), topk(%x, k=2).1, searchsorted(%x, %x), argmax(%x), argmin(%x)) }'
    mod = relay.transform.InferType()(relay.parse(text))
    assert [str(t.dtype) for t in mod["main"].body.checked_type.fields] == ["int32"] * 5

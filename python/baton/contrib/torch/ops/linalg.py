# SPDX-License-Identifier: Apache-2.0
"""Factorisations and solutions of small matrices: a step a column, each over the whole batch. Larger ones stay with PyTorch."""

from __future__ import annotations

import numpy as np

from ..context import Value
from ..dtypes import relay_dtype
from ..registry import aten

LARGEST = 16  # columns; a step is some ten operators
_I = "int64"


class Matrices:
    """A batch of matrices (..., rows, columns) as an expression, with what the steps of an elimination need."""

    def __init__(self, c, x):
        self.c, self.dtype, self.expr = c, x.dtype, x.expr
        c.need(x.dtype in ("float32", "float64"), "it is for float32 and float64")
        self.rows, self.columns = c.known(*x.shape[-2:])
        c.need(max(self.rows, self.columns) <= LARGEST, f"matrices of more than {LARGEST} rows or columns")
        self.batch = list(x.shape[:-2])
        self.n = len(self.batch)

    def const(self, value):
        """A constant of the matrices' dtype."""
        return self.c.const(value, self.dtype)

    def column(self, expr, j):
        """Column j, (..., rows, 1)."""
        return self.c.slice(expr, self.n + 1, j, j + 1)

    def row(self, expr, i):
        """Row i, (..., 1, columns)."""
        return self.c.slice(expr, self.n, i, i + 1)

    def below(self, i, rows=None):
        """1 for rows behind i, (rows, 1)."""
        return self.const((np.arange(self.rows if rows is None else rows) > i)[:, None])

    def step(self, expr):
        """The state behind a step, which is computed once: kernels end here."""
        return self.c("annotation.stop_fusion", expr)

    def turned(self, expr):
        """The transpose."""
        return self.c.transpose(expr, [*range(self.n), self.n + 1, self.n])

    def product(self, a, b):
        """a @ b."""
        return self.c("nn.matmul", a, b)


def _lu(m, pivot=True):
    """(L and U in one matrix, the order of the rows as int64 (..., rows), the pivot of each step, whether an even number of rows moved)"""
    c, steps = m.c, min(m.rows, m.columns)
    a = m.expr
    order = c.broadcast(c.const(np.arange(m.rows), _I), [*m.batch, m.rows])
    pivots, swaps = [], c.full(0, m.batch, _I)
    places = c.const(np.arange(m.rows), _I)
    for k in range(steps):
        if pivot:
            size = c.where(c.const((np.arange(m.rows) >= k)[:, None], "bool"), c("abs", m.column(a, k)), m.const(-1.0))
            best = c("argmax", size, axis=[m.n], dtype=_I)  # (..., 1)
            pivots.append(best)
            swaps = c.add(swaps, c.convert(c("not_equal", c.squeeze(best, [m.n]), c.const(k, _I)), "bool", _I))
            # Rows k and `best` change places.
            index = c.where(c("equal", places, c.const(k, _I)), best, c.where(c("equal", places, best), c.const(k, _I), places))
            index = m.step(index)
            order = m.step(c("gather", order, index, axis=m.n))
            a = c("gather", a, c.broadcast(c.expand_dims(index, m.n + 1), [*m.batch, m.rows, m.columns]), axis=m.n)
        if k + 1 < m.rows:
            top = c.slice(m.row(a, k), m.n + 1, k, k + 1)
            safe = c.where(c("equal", top, m.const(0.0)), m.const(1.0), top)
            factor = c.mul(c.div(m.column(a, k), safe), m.below(k))
            right = c.mul(m.row(a, k), m.const(np.arange(m.columns) > k))
            a = c.sub(a, c.mul(factor, right))
            keep = m.const((np.arange(m.columns) == k)[None, :] & (np.arange(m.rows) > k)[:, None])
            a = m.step(c.add(c.mul(a, c.sub(m.const(1.0), keep)), c.mul(factor, keep)))
    return a, order, pivots, swaps


def _triangular(m, a, b, upper, unit, columns):
    """x with a @ x = b, for a triangular matrix; b has `columns` columns."""
    c, n = m.c, m.rows
    solved = [None] * n
    for i in range(n - 1, -1, -1) if upper else range(n):
        line = m.row(b, i)
        solved[i] = line if unit else c.div(line, c.slice(m.row(a, i), m.n + 1, i, i + 1))
        rest = np.arange(n) < i if upper else np.arange(n) > i
        if rest.any():
            b = m.step(c.sub(b, c.mul(c.mul(m.column(a, i), m.const(rest[:, None])), solved[i])))
    return solved[0] if n == 1 else c("concatenate", c.tuple(solved), axis=m.n)


def _same_batch(c, a, b):
    c.need([*map(str, a.shape[:-2])] == [*map(str, b.shape[:-2])], "systems whose batches broadcast")


class _NoElements(Exception):
    """The matrices have none."""


def _empty(m):
    if not (m.rows and m.columns and all(not isinstance(b, int) or b for b in m.batch)):
        raise _NoElements


def matrices(*names, of_nothing=0):
    """A rule of matrices. Where these have no elements, results are constants: `of_nothing`, one value or one for each result."""

    def register(rule):
        def whole(c, *args, **kwargs):
            try:
                return rule(c, *args, **kwargs)
            except _NoElements:
                values = of_nothing if isinstance(of_nothing, tuple) else (of_nothing,) * len(c.results)
                shapes = [tuple(r.shape) for r in c.results]
                c.need(of_nothing or all(len(s) < 2 or 0 in s for s in shapes), "a matrix without elements")
                out = [c.full(v, s, relay_dtype(r.dtype)) for v, s, r in zip(values, shapes, c.results, strict=True)]
                return out if isinstance(c.fake, (list, tuple)) else out[0]

        aten(*names)(whole)
        return rule

    return register


def _solved(c, x, b, vector, left=True):
    """(the solution, LU, the order of rows) of a @ x = b."""
    m = Matrices(c, x)
    _empty(m)
    lu, order, pivots, _ = _lu(m)
    right = c.expand_dims(b, b.ndim) if vector else b.expr
    shape = [*b.shape, 1] if vector else list(b.shape)
    batch = list(c.results[0].shape[: len(c.results[0].shape) - (1 if vector else 2)])
    c.need(len(shape) == m.n + 2 and [*map(str, batch)] == [*map(str, m.batch)] == [*map(str, shape[:-2])], "systems whose batches broadcast")
    if not left:
        right, shape = m.turned(right), [*shape[:-2], shape[-1], shape[-2]]
    index = c.broadcast(c.expand_dims(order, m.n + 1), [*m.batch, m.rows, shape[-1]])
    y = _triangular(m, lu, c("gather", right, index, axis=m.n), False, True, shape[-1])
    out = _triangular(m, lu, y, True, False, shape[-1])
    return (c.squeeze(out, [m.n + 1]) if vector else out), lu, pivots, m


@matrices("_linalg_solve_ex.default")
def solve(c, a, b, left=True, check_errors=False):
    c.need(left, "a system with the unknown on the left")
    vector = b.ndim == 1 or b.ndim == a.ndim - 1 and list(map(str, b.shape)) == list(map(str, a.shape[:-1]))
    out, lu, pivots, m = _solved(c, a, b, vector)
    return [out, lu, _pivots(c, m, pivots), _singular(c, m, lu)]


def _pivots(c, m, pivots):
    """LAPACK's pivots: from 1, int32."""
    found = pivots[0] if len(pivots) == 1 else c("concatenate", c.tuple(pivots), axis=m.n)
    return c.convert(c.add(found, c.const(1, _I)), _I, "int32")


@matrices("linalg_inv_ex.default", of_nothing=(0, 0))
def inverse(c, a, check_errors=False):
    m = Matrices(c, a)
    _empty(m)
    lu, order, _, _ = _lu(m)
    eye = c.broadcast(m.const(np.eye(m.rows)), [*m.batch, m.rows, m.rows])
    index = c.broadcast(c.expand_dims(order, m.n + 1), [*m.batch, m.rows, m.rows])
    y = _triangular(m, lu, c("gather", eye, index, axis=m.n), False, True, m.rows)
    return [_triangular(m, lu, y, True, False, m.rows), _singular(c, m, lu)]


@matrices("linalg_lu_factor_ex.default")
def lu_factor(c, a, pivot=True, check_errors=False):
    m = Matrices(c, a)
    _empty(m)
    c.need(pivot, "a factorisation without pivots")
    lu, _, pivots, _ = _lu(m)
    return [lu, _pivots(c, m, pivots), _singular(c, m, lu)]


def _diagonal(m, lu):
    parts = [m.c.slice(m.row(lu, i), m.n + 1, i, i + 1) for i in range(min(m.rows, m.columns))]
    line = parts[0] if len(parts) == 1 else m.c("concatenate", m.c.tuple(parts), axis=m.n + 1)
    return m.c.squeeze(line, [m.n])


def _first(c, m, bad):
    """LAPACK's info: the number, from 1, of the first step (..., steps) that is bad; 0 if none is."""
    steps = min(m.rows, m.columns)
    number = c.where(bad, c.const(np.arange(1, steps + 1), _I), c.const(steps + 1, _I))
    first = c("min", number, axis=[m.n])
    return c.convert(c.where(c("greater", first, c.const(steps, _I)), c.const(0, _I), first), _I, "int32")


def _singular(c, m, lu):
    """The info of a factorisation: the first pivot that is 0."""
    return _first(c, m, c("equal", _diagonal(m, lu), m.const(0.0)))


def _sign(c, m, swaps):
    return m.c.sub(m.const(1.0), c.mul(m.const(2.0), c.convert(c("floor_mod", swaps, c.const(2, _I)), _I, m.dtype)))


@matrices("_linalg_det.default", of_nothing=(1, 0, 0))
def determinant(c, a):
    m = Matrices(c, a)
    _empty(m)
    lu, _, pivots, swaps = _lu(m)
    return [c.mul(c("prod", _diagonal(m, lu), axis=[m.n]), _sign(c, m, swaps)), lu, _pivots(c, m, pivots)]


@matrices("_linalg_slogdet.default", of_nothing=(1, 0, 0, 0))
def log_determinant(c, a):
    m = Matrices(c, a)
    _empty(m)
    lu, _, pivots, swaps = _lu(m)
    line = _diagonal(m, lu)
    signs = c("prod", c("sign", line), axis=[m.n])
    return [c.mul(signs, _sign(c, m, swaps)), c("sum", c("log", c("abs", line)), axis=[m.n]), lu, _pivots(c, m, pivots)]


@matrices("linalg_lu.default")
def lu(c, a, pivot=True):
    m = Matrices(c, a)
    _empty(m)
    c.need(pivot, "a factorisation without pivots")
    packed, order, _, _ = _lu(m)
    lower, upper = _unpacked(c, m, packed)
    return [_permutation(c, m, order), lower, upper]


def _unpacked(c, m, packed):
    steps = min(m.rows, m.columns)
    left, right = c.slice(packed, m.n + 1, 0, steps), c.slice(packed, m.n, 0, steps)
    lower = c.add(c.mul(left, m.const(np.tri(m.rows, steps, -1))), m.const(np.eye(m.rows, steps)))
    return lower, c.mul(right, m.const(np.triu(np.ones((steps, m.columns)))))


def _permutation(c, m, order):
    """P with P @ L @ U = A: row order[i] of it has its 1 in column i."""
    columns = c.expand_dims(order, m.n)
    rows = c.const(np.arange(m.rows)[:, None], _I)
    return c.convert(c("equal", rows, columns), "bool", m.dtype)


@matrices("lu_unpack.default")
def lu_unpack(c, packed, pivots, unpack_data=True, unpack_pivots=True):
    m = Matrices(c, packed)
    _empty(m)
    c.need(unpack_data and unpack_pivots, "a part of the factors")
    lower, upper = _unpacked(c, m, packed.expr)
    return [_permutation(c, m, _order_of(c, m, pivots)), lower, upper]


def _order_of(c, m, pivots):
    order = c.broadcast(c.const(np.arange(m.rows), _I), [*m.batch, m.rows])
    places = c.const(np.arange(m.rows), _I)
    found = c.sub(c.cast(pivots, _I), c.const(1, _I))
    for k in range(min(m.rows, m.columns)):
        best = c.slice(found, m.n, k, k + 1)
        index = c.where(c("equal", places, c.const(k, _I)), best, c.where(c("equal", places, best), c.const(k, _I), places))
        order = c("gather", order, index, axis=m.n)
    return order


@matrices("linalg_cholesky_ex.default", "cholesky.default")
def cholesky(c, a, upper=False, check_errors=False):
    m = Matrices(c, a)
    _empty(m)
    rest = m.turned(a.expr) if upper else a.expr
    columns, heads = [], []
    for k in range(m.rows):
        line = m.column(rest, k)
        heads.append(c.squeeze(c.slice(line, m.n, k, k + 1), [m.n]))
        root = c("sqrt", c.slice(line, m.n, k, k + 1))
        column = c.mul(c.div(line, root), m.const((np.arange(m.rows) >= k)[:, None]))
        columns.append(column)
        if k + 1 < m.rows:
            rest = m.step(c.sub(rest, c.mul(column, m.turned(column))))
    out = columns[0] if len(columns) == 1 else c("concatenate", c.tuple(columns), axis=m.n + 1)
    out = m.turned(out) if upper else out
    if not isinstance(c.fake, (list, tuple)):
        return out
    line = heads[0] if len(heads) == 1 else c("concatenate", c.tuple(heads), axis=m.n)
    return [out, _first(c, m, c("logical_not", c("greater", line, m.const(0.0))))]


@matrices("linalg_solve_triangular.default")
def solve_triangular(c, a, b, upper, left=True, unitriangular=False):
    m = Matrices(c, a)
    _empty(m)
    _same_batch(c, a, b)
    if left:
        return _triangular(m, a.expr, b.expr, upper, unitriangular, b.shape[-1])
    # x @ a = b is a^T @ x^T = b^T.
    return m.turned(_triangular(m, m.turned(a.expr), m.turned(b.expr), not upper, unitriangular, b.shape[-2]))


@matrices("triangular_solve.default")
def old_solve_triangular(c, b, a, upper=True, transpose=False, unitriangular=False):
    m = Matrices(c, a)
    _empty(m)
    _same_batch(c, a, b)
    matrix = m.turned(a.expr) if transpose else a.expr
    return [_triangular(m, matrix, b.expr, upper != transpose, unitriangular, b.shape[-1]), c.broadcast(a, c.results[1].shape)]


@matrices("cholesky_solve.default")
def cholesky_solve(c, b, factor, upper=False):
    m = Matrices(c, factor)
    _empty(m)
    _same_batch(c, factor, b)
    lower, higher = (m.turned(factor.expr), factor.expr) if upper else (factor.expr, m.turned(factor.expr))
    y = _triangular(m, lower, b.expr, False, False, b.shape[-1])
    return _triangular(m, higher, y, True, False, b.shape[-1])


@matrices("cholesky_inverse.default")
def cholesky_inverse(c, factor, upper=False):
    m = Matrices(c, factor)
    _empty(m)
    eye = Value(c.broadcast(m.const(np.eye(m.rows)), factor.shape), factor.fake)
    return cholesky_solve(c, eye, factor, upper)


@matrices("linalg_lu_solve.default")
def lu_solve(c, packed, pivots, b, left=True, adjoint=False):
    m = Matrices(c, packed)
    _empty(m)
    batch = list(c.shape[:-2])
    right = c.broadcast(b, [*batch, *b.shape[-2:]])
    order, factors = _order_of(c, m, pivots), packed.expr
    if [*map(str, batch)] != [*map(str, m.batch)]:
        order, factors = c.broadcast(order, [*batch, m.rows]), c.broadcast(packed, [*batch, m.rows, m.columns])
        m.batch, m.n = batch, len(batch)
    if not left:  # x @ a = b is a^T @ x^T = b^T.
        right, adjoint = m.turned(right), not adjoint
    columns = b.shape[-1] if left else b.shape[-2]
    if adjoint:
        turned = m.turned(factors)
        y = _triangular(m, turned, right, False, False, columns)
        out = m.product(_permutation(c, m, order), _triangular(m, turned, y, True, True, columns))
    else:
        index = c.broadcast(c.expand_dims(order, m.n + 1), [*batch, m.rows, columns])
        y = _triangular(m, factors, c("gather", right, index, axis=m.n), False, True, columns)
        out = _triangular(m, factors, y, True, False, columns)
    return out if left else m.turned(out)


@matrices("linalg_matrix_exp.default")
def matrix_exp(c, a):
    """Scaling and squaring: the series of a / 2^k, whose norm is below 1/2, squared k times."""
    kind = a.dtype
    m = Matrices(c, Value(c.cast(a, "float64"), a.fake.double()))  # squarings double the rounding
    _empty(m)
    norm = c("max", c("sum", c("abs", m.expr), axis=[m.n + 1], keepdims=True), axis=[m.n], keepdims=True)
    half = c.mul(norm, m.const(2.0))
    times = c("maximum", c("ceil", c("log2", c("maximum", half, m.const(1e-30)))), m.const(0.0))
    small = m.step(c.mul(m.expr, c("exp2", c("negative", times))))
    eye = c.broadcast(m.const(np.eye(m.rows)), [*m.batch, m.rows, m.rows])
    out = eye
    for k in range(14, 0, -1):  # Horner's rule
        out = c.add(eye, c.mul(m.product(small, out), m.const(1.0 / k)))
    for k in range(_SQUARES):
        out = m.step(c.where(c("greater", times, m.const(float(k))), m.product(out, out), out))
    # Beyond so many squarings values overflow, unless the matrix is nilpotent: say so by NaN rather than by a wrong number.
    return c.convert(c.where(c("greater", times, m.const(float(_SQUARES))), m.const(np.nan), out), "float64", kind)


_SQUARES = 24


def _reflectors(m):
    """(the reduced matrix, vectors (..., rows, 1), factors (..., 1, 1)) of Householder's reduction, with LAPACK's signs."""
    c, a = m.c, m.expr
    vectors, taus = [], []
    for k in range(min(m.rows, m.columns)):
        x = c.mul(m.column(a, k), m.const((np.arange(m.rows) >= k)[:, None]))
        alpha = c.slice(x, m.n, k, k + 1)
        tail = c("sum", c.mul(c.mul(x, x), m.below(k)), axis=[m.n], keepdims=True)
        norm = c("sqrt", c.add(c.mul(alpha, alpha), tail))
        beta = c.where(c("less", alpha, m.const(0.0)), norm, c("negative", norm))
        none = c("equal", tail, m.const(0.0))  # nothing below: no reflection
        tau = c.where(none, m.const(0.0), c.div(c.sub(beta, alpha), c.where(none, m.const(1.0), beta)))
        lead = c.where(none, m.const(1.0), c.sub(alpha, beta))
        vector = c.add(c.mul(c.div(x, lead), m.below(k)), m.const((np.arange(m.rows) == k)[:, None]))
        a = m.step(c.sub(a, c.mul(tau, m.product(vector, m.product(m.turned(vector), a)))))
        vectors.append(vector)
        taus.append(tau)
    return a, vectors, taus


def _orthogonal(m, vectors, taus, columns):
    """The first columns of the product of the reflections."""
    c = m.c
    q = c.broadcast(m.const(np.eye(m.rows, columns)), [*m.batch, m.rows, columns])
    for vector, tau in zip(vectors[::-1], taus[::-1], strict=True):
        q = c.sub(q, c.mul(tau, m.product(vector, m.product(m.turned(vector), q))))
    return q


@matrices("linalg_qr.default")
def qr(c, a, mode="reduced"):
    m = Matrices(c, a)
    _empty(m)
    reduced, vectors, taus = _reflectors(m)
    steps = min(m.rows, m.columns)
    rows = m.rows if mode == "complete" else steps
    r = c.mul(c.slice(reduced, m.n, 0, rows), m.const(np.triu(np.ones((rows, m.columns)))))
    if mode == "r":
        return [c.full(0, [0], m.dtype), r]
    return [_orthogonal(m, vectors, taus, rows), r]


@matrices("geqrf.default")
def geqrf(c, a):
    m = Matrices(c, a)
    _empty(m)
    reduced, vectors, taus = _reflectors(m)
    steps = min(m.rows, m.columns)
    packed = c.mul(reduced, m.const(np.triu(np.ones((m.rows, m.columns)))))
    below = vectors[0] if steps == 1 else c("concatenate", c.tuple(vectors), axis=m.n + 1)
    below = c.mul(below, m.const(np.tri(m.rows, steps, -1)))
    if m.columns > steps:
        below = c("nn.pad", below, m.const(0.0), pad_width=[[0, 0]] * (m.n + 1) + [[0, m.columns - steps]])
    line = taus[0] if steps == 1 else c("concatenate", c.tuple(taus), axis=m.n + 1)
    return [c.add(packed, below), c.squeeze(line, [m.n])]


@matrices("linalg_householder_product.default")
def householder_product(c, a, tau):
    m = Matrices(c, a)
    _empty(m)
    (count,) = c.known(tau.shape[-1])
    vectors, taus = [], []
    for k in range(count):
        vectors.append(c.add(c.mul(m.column(a, k), m.below(k)), m.const((np.arange(m.rows) == k)[:, None])))
        taus.append(c.expand_dims(c.slice(tau, m.n, k, k + 1), m.n))
    return _orthogonal(m, vectors, taus, m.columns)


@matrices("ormqr.default")
def ormqr(c, a, tau, b, left=True, transpose=False):
    """Q @ b, Q^T @ b, b @ Q or b @ Q^T with Q the product of reflections, which is not formed."""
    m = Matrices(c, a)
    _empty(m)
    _same_batch(c, a, b)
    (count,) = c.known(tau.shape[-1])
    out, steps = b.expr if left else m.turned(b.expr), range(count)
    for k in steps if transpose == left else steps[::-1]:
        vector = c.add(c.mul(m.column(a.expr, k), m.below(k)), m.const((np.arange(m.rows) == k)[:, None]))
        factor = c.expand_dims(c.slice(tau, m.n, k, k + 1), m.n)
        out = m.step(c.sub(out, c.mul(factor, m.product(vector, m.product(m.turned(vector), out)))))
    return out if left else m.turned(out)

# SPDX-License-Identifier: Apache-2.0
"""Singular values, eigenvalues of symmetric matrices, and pseudo-inverses of small matrices by Jacobi's one-sided method, in float64.
Singular vectors and eigenvectors are PyTorch's: their signs are LAPACK's choice."""

from __future__ import annotations

import numpy as np

from ..context import Value
from .linalg import Matrices, _empty, matrices

_F = "float64"
_SWEEPS = 9


def _wide(c, a):
    m = Matrices(c, Value(c.cast(a, _F), a.fake.double()))
    _empty(m)
    return m


def _turned_by_pairs(m, x, rows, columns):
    """(the columns of x @ V, V) with V orthogonal and the columns of x @ V orthogonal, x (..., rows, columns).

    Each round rotates all pairs of a round of a tournament, first half against second; behind a sweep the columns are where they began."""
    c, even = m.c, columns + columns % 2
    half, axis = even // 2, m.n + 1
    eye = c.broadcast(m.const(np.eye(columns)), [*m.batch, columns, columns])
    both = c("concatenate", c.tuple([x, eye]), axis=m.n)
    if even > columns:
        both = c("nn.pad", both, m.const(0.0), pad_width=[[0, 0]] * axis + [[0, 1]])
    first, second = c.slice(both, axis, 0, half), c.slice(both, axis, half, even)
    for _ in range(_SWEEPS):
        for _ in range(even - 1):
            a, b = (c.slice(p, m.n, 0, rows) for p in (first, second))
            total = lambda p, q: c("sum", c.mul(p, q), axis=[m.n], keepdims=True)  # noqa: E731
            aa, bb, ab = total(a, a), total(b, b), total(a, b)
            none = c("less_equal", c("abs", ab), c.add(c.mul(m.const(1e-17), c("sqrt", c.mul(aa, bb))), m.const(1e-290)))
            slope = c.div(c.sub(bb, aa), c.where(none, m.const(1.0), c.mul(ab, m.const(2.0))))
            size = c.add(c("abs", slope), c("sqrt", c.add(m.const(1.0), c.mul(slope, slope))))
            tangent = c.div(c.where(c("less", slope, m.const(0.0)), m.const(-1.0), m.const(1.0)), size)
            tangent = m.step(c.where(none, m.const(0.0), tangent))
            cosine = c.div(m.const(1.0), c("sqrt", c.add(m.const(1.0), c.mul(tangent, tangent))))
            sine = c.mul(cosine, tangent)
            one, other = c.sub(c.mul(cosine, first), c.mul(sine, second)), c.add(c.mul(sine, first), c.mul(cosine, second))
            one, other = m.step(one), m.step(other)
            if half > 1:
                # The first column stays; the others go round.
                part = lambda p, begin, end: c.slice(p, axis, begin, end)  # noqa: E731
                first = c("concatenate", c.tuple([part(one, 0, 1), part(other, 0, 1), *([part(one, 1, half - 1)] if half > 2 else [])]), axis=axis)
                second = c("concatenate", c.tuple([part(other, 1, half), part(one, half - 1, half)]), axis=axis)
            else:
                first, second = one, other
    both = c.slice(c("concatenate", c.tuple([first, second]), axis=axis), axis, 0, columns)
    return c.slice(both, m.n, 0, rows), c.slice(both, m.n, rows, rows + columns)


def _lengths(m, columns):
    """The lengths of columns, (..., 1, columns)."""
    return m.c("sqrt", m.c("sum", m.c.mul(columns, columns), axis=[m.n], keepdims=True))


def _tall(m):
    """(the matrix, or its transpose where it is wide, rows, columns)"""
    return (m.expr, m.rows, m.columns) if m.rows >= m.columns else (m.turned(m.expr), m.columns, m.rows)


def _symmetric(m, lower):
    c, mask = m.c, np.tri(m.rows) if lower else np.triu(np.ones((m.rows, m.rows)))
    half = c.mul(m.expr, m.const(mask))
    return c.add(half, c.mul(m.turned(half), m.const(1.0 - np.eye(m.rows))))


@matrices("_linalg_svd.default")
def svd(c, a, full_matrices=False, compute_uv=True, driver=None):
    c.need(not c.used(0) and not c.used(2), "singular vectors: their signs are LAPACK's choice")
    m = _wide(c, a)
    turned, _ = _turned_by_pairs(m, *_tall(m))
    values = c("sort", c.squeeze(_lengths(m, turned), [m.n]), axis=m.n, is_ascend=False)
    return [None, c.convert(values, _F, a.dtype), None]


@matrices("_linalg_eigh.default")
def eigh(c, a, uplo="L", compute_v=True):
    c.need(not c.used(1), "eigenvectors: their signs are LAPACK's choice")
    m = _wide(c, a)
    x = _symmetric(m, uplo.upper() == "L")
    # Shifted by its norm the matrix has no negative eigenvalue, and singular values are eigenvalues.
    shift = c("max", c("sum", c("abs", x), axis=[m.n + 1], keepdims=True), axis=[m.n], keepdims=True)
    x = m.step(c.add(x, c.mul(shift, m.const(np.eye(m.rows)))))
    turned, _ = _turned_by_pairs(m, x, m.rows, m.rows)
    values = c.squeeze(c.sub(_lengths(m, turned), shift), [m.n])
    return [c.convert(c("sort", values, axis=m.n, is_ascend=True), _F, a.dtype), None]


@matrices("linalg_pinv.atol_rtol_tensor")
def pinv(c, a, atol=None, rtol=None, hermitian=False):
    """V / s^2 @ (A V)^T for the singular values s above max(atol, rtol * the largest)."""
    m = _wide(c, a)
    if hermitian:
        m.expr = m.step(_symmetric(m, True))
    x, rows, columns = _tall(m)
    turned, vectors = _turned_by_pairs(m, x, rows, columns)
    lengths = m.step(_lengths(m, turned))
    tall = lambda v: c.reshape(c.cast(v, _F), [*v.shape, 1, 1])  # noqa: E731
    default = m.const(float(np.finfo(a.dtype).eps) * max(m.rows, m.columns))
    relative = tall(rtol) if rtol is not None else default
    if rtol is None and atol is not None:
        relative = c.where(c("greater", tall(atol), m.const(0.0)), m.const(0.0), default)
    bound = c.mul(relative, c("max", lengths, axis=[m.n + 1], keepdims=True))
    if atol is not None:
        bound = c("maximum", bound, tall(atol))
    large = c("greater", lengths, bound)
    inverse = c.where(large, c.div(m.const(1.0), c.where(large, c.mul(lengths, lengths), m.const(1.0))), m.const(0.0))
    out = m.product(c.mul(vectors, inverse), m.turned(turned))
    return c.convert(out if m.rows >= m.columns else m.turned(out), _F, a.dtype)

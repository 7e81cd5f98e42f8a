# SPDX-License-Identifier: Apache-2.0
"""Special functions: by closed forms and series in float64, and by functions of the host where the number of steps depends on values."""

from __future__ import annotations

import math

from ..registry import aten
from .unary import digamma

_F = "float64"


def _wide(c, x):
    return c.convert(c.cast(x, c.dtype), c.dtype, _F)


def _narrow(c, x):
    return c.convert(x, _F, c.dtype)


def zeta(c, s, q):
    """Hurwitz's zeta for s > 1 and q > 0: nine terms and the Euler-Maclaurin sum behind them (Abramowitz and Stegun 23.2)."""
    k = lambda value: c.const(value, _F)  # noqa: E731
    total, at = k(0.0), q
    for _ in range(9):
        total = c.add(total, c("power", at, c("negative", s)))
        at = c.add(at, k(1.0))
    power = c("power", at, c("negative", s))
    total = c.add(total, c.div(c.mul(power, at), c.sub(s, k(1.0))))
    total = c.add(total, c.mul(k(0.5), power))
    factor, term = s, c.div(power, at)
    # Bernoulli's numbers B(2j) over (2j)!.
    for j, b in enumerate((1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510), 1):
        total = c.add(total, c.mul(c.mul(k(b / math.factorial(2 * j)), factor), term))
        factor = c.mul(c.mul(factor, c.add(s, k(2.0 * j - 1))), c.add(s, k(2.0 * j)))
        term = c.div(term, c.mul(at, at))
    return total


@aten("special_zeta.default", "special_zeta.self_scalar", "special_zeta.other_scalar")
def hurwitz(c, s, q):
    """For q < 0, where s has to be whole: with q = f - m, 0 < f <= 1, the terms before f are those of 1 - f to m - f, which two sums behind 0 hold."""
    s, q = (c.broadcast(c.convert(c.cast(x, c.dtype), c.dtype, _F), c.shape) for x in (s, q))
    k = lambda value: c.const(value, _F)  # noqa: E731
    below = c("less", q, k(0.0))
    first = c.where(below, c.sub(q, c.sub(c("ceil", q), k(1.0))), q)
    odd = c("not_equal", s, c.mul(k(2.0), c("floor", c.mul(s, k(0.5)))))
    before = c.sub(zeta(c, s, c.sub(k(1.0), first)), zeta(c, s, c.sub(k(1.0), q)))
    out = c.add(zeta(c, s, first), c.where(below, c.where(odd, c("negative", before), before), k(0.0)))
    whole = lambda x: c("equal", x, c("floor", x))  # noqa: E731
    right = c("greater", q, k(0.0))
    left = c.where(whole(q), k(math.inf), c.where(whole(s), out, k(math.nan)))
    out = c.where(right, out, left)
    out = c.where(c("equal", s, k(1.0)), k(math.inf), c.where(c("greater", s, k(1.0)), out, k(math.nan)))
    return _narrow(c, c.where(c("isnan", q), k(math.nan), out))


def _pair(c, a, b):
    """Both as tensors of the result's shape and dtype."""
    return [c.broadcast(c.cast(x, c.dtype), c.shape) for x in (a, b)]


@aten("igamma.default")
def igamma(c, a, x):
    return c("incomplete_gamma", *_pair(c, a, x))


@aten("igammac.default")
def igammac(c, a, x):
    return c("incomplete_gamma", *_pair(c, a, x), upper=True)


def _polynomial(name, family):
    @aten(*(f"special_{name}.{overload}" for overload in ("default", "x_scalar", "n_scalar")))
    def rule(c, x, n):
        return c("orthogonal_polynomial", *_pair(c, x, n), family=family)


_polynomial("legendre_polynomial_p", "legendre")
_polynomial("laguerre_polynomial_l", "laguerre")
_polynomial("hermite_polynomial_h", "hermite")
_polynomial("hermite_polynomial_he", "hermite_e")


@aten("polygamma.default")
def polygamma(c, n, x):
    if n == 0:
        return digamma(c, x)
    wide = _wide(c, x)
    k = lambda value: c.const(value, _F)  # noqa: E731
    low = c("less", wide, k(0.5))
    # The reflection formula, A&S 6.4.7: derivatives of the cotangent are polynomials of it.
    value = c.mul(zeta(c, k(float(n + 1)), c.where(low, c.sub(k(1.0), wide), wide)), k(float(math.factorial(n))))
    turn = c.mul(c.sub(wide, c("round", wide)), k(math.pi))
    cotangent = c.div(c("cos", turn), c("sin", turn))
    terms = _cotangent(n)
    derivative = k(terms[-1])
    for a in terms[-2::-1]:
        derivative = c.add(c.mul(derivative, cotangent), k(a))
    derivative = c.mul(derivative, k(-(math.pi ** (n + 1))))
    sign = 1.0 if n % 2 else -1.0
    above = c.mul(value, k(sign))
    below = c.add(derivative, c.mul(k(1.0), c("negative", value)))
    out = c.where(low, below, above)
    # A pole: every term of an even power is positive there.
    pole = c("logical_and", c("less_equal", wide, k(0.0)), c("equal", wide, c("floor", wide)))
    return _narrow(c, c.where(pole, k(sign * math.inf), out))


def _cotangent(n):
    """Coefficients p with d^n cot(x) / dx^n = sum of p[i] cot(x)^i."""
    p = [0.0, 1.0]
    for _ in range(n):
        slope = [i * a for i, a in enumerate(p)][1:]
        p = [0.0] * (len(slope) + 2)
        for i, a in enumerate(slope):
            p[i] -= a
            p[i + 2] -= a
    return p


@aten("special_spherical_bessel_j0.default")
def spherical_bessel_j0(c, x):
    wide = _wide(c, x)
    k = lambda value: c.const(value, _F)  # noqa: E731
    zero = c("equal", wide, k(0.0))
    out = c.where(zero, k(1.0), c.div(c("sin", wide), c.where(zero, k(1.0), wide)))
    return _narrow(c, c.where(c("isinf", wide), k(0.0), out))


@aten("special_ndtri.default")
def ndtri(c, x):
    """The inverse of the normal distribution: Acklam's rational guess and two steps of Halley's method with erfc."""
    from .unary import _erfc

    p = _wide(c, x)
    k = lambda value: c.const(value, _F)  # noqa: E731
    low = c("minimum", p, c.sub(k(1.0), p))  # both halves by the lower one
    safe = c("maximum", low, k(1e-300))
    t = c("sqrt", c.mul(k(-2.0), c("log", safe)))
    top = c.add(k(2.515517), c.mul(t, c.add(k(0.802853), c.mul(t, k(0.010328)))))
    bottom = c.add(k(1.0), c.mul(t, c.add(k(1.432788), c.mul(t, c.add(k(0.189269), c.mul(t, k(0.001308)))))))
    y = c.sub(c.div(top, bottom), t)  # the quantile of the lower half, Abramowitz and Stegun 26.2.23
    for _ in range(3):
        error = c.sub(c.mul(k(0.5), _erfc(c, c.mul(y, k(-math.sqrt(0.5))), _F)), safe)
        u = c.div(c.mul(error, k(math.sqrt(2 * math.pi))), c("exp", c.mul(k(-0.5), c.mul(y, y))))
        y = c.sub(y, c.div(u, c.add(k(1.0), c.mul(k(0.5), c.mul(y, u)))))
    out = c.where(c("greater", p, k(0.5)), c("negative", y), y)
    out = c.where(c("equal", p, k(0.0)), k(-math.inf), c.where(c("equal", p, k(1.0)), k(math.inf), out))
    outside = c("logical_or", c("less", p, k(0.0)), c("greater", p, k(1.0)))
    return _narrow(c, c.where(c("logical_or", outside, c("isnan", p)), k(math.nan), out))

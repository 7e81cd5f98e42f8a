# SPDX-License-Identifier: Apache-2.0
"""Bessel's, Airy's and Chebyshev's functions, in float64. Numbers A&S are formulas of Abramowitz and Stegun."""

from __future__ import annotations

import math

from ..registry import aten
from .special import _narrow, _wide

_F = "float64"
_EULER = 0.57721566490153286
_NEAR = 14.0  # J and Y: series up to here, Hankel's expansion beyond
_NEAR_I = 20.0  # I and K likewise


def _k(c, value):
    return c.const(float(value), _F)


def _horner(c, t, coefficients):
    """coefficients[0] + coefficients[1] * t + ..."""
    out = _k(c, coefficients[-1])
    for a in coefficients[-2::-1]:
        out = c.add(c.mul(out, t), _k(c, a))
    return out


def _psi(n):
    """Digamma at a natural number."""
    return -_EULER + sum(1 / j for j in range(1, n))


def _series(order, sign, count, weight=lambda k: 1.0):
    """Coefficients of sum over k of weight(k) (sign t)^k / (k! (k + order)!)."""
    return [weight(k) * sign**k / (math.factorial(k) * math.factorial(k + order)) for k in range(count)]


def _hankel(order, count):
    """a_k(order) of A&S 9.2.5 to 9.2.10 and 9.7.1."""
    out = [1.0]
    for k in range(1, count):
        out.append(out[-1] * (4 * order**2 - (2 * k - 1) ** 2) / (8 * k))
    return out


def _halves(c, x):
    """(x limited to where series hold, (x / 2)^2 of that)"""
    half = c.mul(x, _k(c, 0.5))
    return c.mul(half, half)


def _waves(c, order, x):
    """(P, Q, cos and sin of the phase, sqrt(2 / (pi x))) of A&S 9.2.5, for x >= _NEAR."""
    a = _hankel(order, 24)
    inverse = c.div(_k(c, 1), x)
    square = c.mul(inverse, inverse)
    p = _horner(c, square, [v * (-1) ** i for i, v in enumerate(a[0::2])])
    q = c.mul(inverse, _horner(c, square, [v * (-1) ** i for i, v in enumerate(a[1::2])]))
    phase = c.sub(x, _k(c, (order / 2 + 0.25) * math.pi))
    return p, q, c("cos", phase), c("sin", phase), c("sqrt", c.mul(_k(c, 2 / math.pi), inverse))


def _first_kind(c, order, a):
    """J of a >= 0."""
    near = c("minimum", a, _k(c, _NEAR))
    small = _horner(c, _halves(c, near), _series(order, -1, 44))
    small = c.mul(small, c.mul(near, _k(c, 0.5))) if order else small
    far = c("maximum", a, _k(c, _NEAR))
    p, q, cosine, sine, scale = _waves(c, order, far)
    large = c.mul(scale, c.sub(c.mul(p, cosine), c.mul(q, sine)))
    return c.where(c("less", a, _k(c, _NEAR)), small, large)  # NaN at infinity, as eager


def _second_kind(c, order, x):
    """Y of x > 0 (A&S 9.1.11); -inf at 0, NaN below."""
    near = c("maximum", c("minimum", x, _k(c, _NEAR)), _k(c, 1e-300))
    t, half = _halves(c, near), c.mul(near, _k(c, 0.5))
    first = _horner(c, t, _series(order, -1, 44))
    rest = _horner(c, t, _series(order, -1, 44, lambda k: (_psi(k + 1) + _psi(k + 1 + order)) / math.pi))
    small = c.sub(c.mul(c.mul(_k(c, 2 / math.pi), c("log", half)), first), rest)
    if order:
        small = c.sub(c.mul(half, small), c.div(_k(c, 2 / math.pi), near))
    p, q, cosine, sine, scale = _waves(c, order, c("maximum", x, _k(c, _NEAR)))
    large = c.mul(scale, c.add(c.mul(p, sine), c.mul(q, cosine)))
    out = c.where(c("less", x, _k(c, _NEAR)), small, large)
    return _on_the_right(c, x, out, -math.inf)


def _on_the_right(c, x, value, at_zero):
    """`value` where x > 0, `at_zero` at 0, NaN below and for NaN."""
    out = c.where(c("equal", x, _k(c, 0)), _k(c, at_zero), value)
    return c.where(c("greater_equal", x, _k(c, 0)), out, _k(c, math.nan))


def _modified_first(c, order, a, scaled):
    """I of a >= 0, times exp(-a) where `scaled` (A&S 9.6.10, 9.7.1)."""
    near = c("minimum", a, _k(c, _NEAR_I))
    small = _horner(c, _halves(c, near), _series(order, 1, 52))
    small = c.mul(small, c.mul(near, _k(c, 0.5))) if order else small
    far = c("maximum", a, _k(c, _NEAR_I))
    inverse = c.div(_k(c, 1), far)
    large = c.mul(_horner(c, inverse, [v * (-1) ** i for i, v in enumerate(_hankel(order, 24))]), c("sqrt", c.mul(_k(c, 0.5 / math.pi), inverse)))
    if scaled:
        small = c.mul(small, c("exp", c("negative", near)))
    else:
        large = c.mul(large, c("exp", far))
    out = c.where(c("less", a, _k(c, _NEAR_I)), small, large)
    return c.where(c("isinf", a), _k(c, 0 if scaled else math.nan), out)  # eager's


def _modified_second(c, order, x, scaled):
    """K of x > 0, times exp(x) where `scaled`: the series (A&S 9.6.11) below 5, the integral 9.6.24 by the trapezoidal rule up to 20,
    the expansion 9.7.2 beyond; inf at 0, NaN below."""
    near = c("maximum", c("minimum", x, _k(c, 5)), _k(c, 1e-300))
    t, half = _halves(c, near), c.mul(near, _k(c, 0.5))
    first = _horner(c, t, _series(order, 1, 28))
    rest = _horner(c, t, _series(order, 1, 28, lambda k: (_psi(k + 1) + _psi(k + 1 + order)) / 2))
    small = c.sub(rest, c.mul(c("log", half), first))
    if order:
        small = c.sub(c.div(_k(c, 1), near), c.mul(half, small))
    middle_x, step = c("minimum", c("maximum", x, _k(c, 5)), _k(c, _NEAR_I)), 0.125
    middle = _k(c, step / 2)
    for j in range(1, 25):
        at = j * step
        middle = c.add(middle, c.mul(_k(c, step * math.cosh(order * at)), c("exp", c.mul(middle_x, _k(c, 1 - math.cosh(at))))))
    far = c("maximum", x, _k(c, _NEAR_I))
    inverse = c.div(_k(c, 1), far)
    large = c.mul(_horner(c, inverse, _hankel(order, 24)), c("sqrt", c.mul(_k(c, math.pi / 2), inverse)))
    beyond = c.where(c("less", x, _k(c, _NEAR_I)), middle, large)
    if scaled:
        small = c.mul(small, c("exp", near))
    else:
        beyond = c.mul(beyond, c("exp", c("negative", x)))
    out = c.where(c("less", x, _k(c, 5)), small, beyond)
    return _on_the_right(c, x, c.where(c("isinf", x), _k(c, 0), out), math.inf)


def _rules():
    def bessel(names, of):
        @aten(*names)
        def rule(c, x):
            return _narrow(c, of(c, _wide(c, x)))

    def odd(c, x, value):
        return c.where(c("less", x, _k(c, 0)), c("negative", value), value)

    for order in (0, 1):

        def first(c, x, order=order):
            value = _first_kind(c, order, c("abs", x))
            return odd(c, x, value) if order else value

        def modified(c, x, scaled, order=order):
            value = _modified_first(c, order, c("abs", x), scaled)
            return odd(c, x, value) if order else value

        bessel([f"special_bessel_j{order}.default"], first)
        bessel([f"special_bessel_y{order}.default"], lambda c, x, order=order: _second_kind(c, order, x))
        plain = ["i0.default"] if not order else ["special_i1.default"]
        bessel([*plain, f"special_modified_bessel_i{order}.default"], lambda c, x, of=modified: of(c, x, False))
        bessel([f"special_i{order}e.default"], lambda c, x, of=modified: of(c, x, True))
        bessel([f"special_modified_bessel_k{order}.default"], lambda c, x, order=order: _modified_second(c, order, x, False))
        bessel([f"special_scaled_modified_bessel_k{order}.default"], lambda c, x, order=order: _modified_second(c, order, x, True))


_rules()


@aten("special_airy_ai.default")
def airy(c, x):
    """Airy's Ai: the series 10.4.2 of A&S up to 6, the expansions 10.4.59 and 10.4.60 beyond. NaN at the infinities, as eager."""
    wide = _wide(c, x)
    near = c("minimum", c("maximum", wide, _k(c, -6)), _k(c, 6))
    cube = c.mul(near, c.mul(near, near))
    one, two = [1.0], [1.0]
    for k in range(36):
        one.append(one[-1] / ((3 * k + 2) * (3 * k + 3)))
        two.append(two[-1] / ((3 * k + 3) * (3 * k + 4)))
    small = c.sub(c.mul(_k(c, 0.355028053887817239), _horner(c, cube, one)), c.mul(c.mul(_k(c, 0.258819403792806798), near), _horner(c, cube, two)))
    far = c("maximum", c("abs", wide), _k(c, 6))
    root = c("sqrt", far)
    zeta = c.mul(_k(c, 2 / 3), c.mul(far, root))
    u = [1.0]
    for k in range(1, 20):
        u.append(u[-1] * (6 * k - 5) * (6 * k - 3) * (6 * k - 1) / (216 * k * (2 * k - 1)))
    inverse = c.div(_k(c, 1), zeta)
    square, scale = c.mul(inverse, inverse), c.div(_k(c, 1 / math.sqrt(math.pi)), c("sqrt", root))
    right = c.mul(c.mul(scale, _k(c, 0.5)), c.mul(c("exp", c("negative", zeta)), _horner(c, c("negative", inverse), u)))
    phase = c.sub(zeta, _k(c, math.pi / 4))
    even, odd = (_horner(c, square, [v * (-1) ** i for i, v in enumerate(u[start::2])]) for start in (0, 1))
    left = c.mul(scale, c.add(c.mul(c("cos", phase), even), c.mul(c("sin", phase), c.mul(inverse, odd))))
    out = c.where(c("less", c("abs", wide), _k(c, 6)), small, c.where(c("less", wide, _k(c, 0)), left, right))
    return _narrow(c, c.where(c("logical_or", c("isinf", wide), c("isnan", wide)), _k(c, math.nan), out))


# For the kinds T, U, V, W: (what is added to n, whether sines, the divisor's factor of the angle or None), A&S 22.3.15 and 22.3.16.
_CHEBYSHEV = {"t": (0.0, False, None), "u": (1.0, True, 1.0), "v": (0.5, False, 0.5), "w": (0.5, True, 0.5)}


def _chebyshev(kind, shifted):
    more, sines, divisor = _CHEBYSHEV[kind]

    @aten(f"special_{'shifted_' if shifted else ''}chebyshev_polynomial_{kind}.default")
    def rule(c, x, n):
        import numpy as np

        wide = c.convert(c.cast(x, c.dtype), c.dtype, _F)
        if shifted:
            wide = c.sub(c.mul(wide, _k(c, 2)), _k(c, 1))
        degree = c("trunc", c.convert(c.cast(n, c.dtype), c.dtype, _F))
        odd = c("not_equal", c.sub(degree, c.mul(_k(c, 2), c("floor", c.mul(degree, _k(c, 0.5))))), _k(c, 0))
        flip = c.where(odd, _k(c, -1), _k(c, 1))
        below = c("less", wide, _k(c, 0))
        # By the angle within [-1, 1]; outside by hyperbolic functions of |x|, with the kind that V and W change into for -x.
        inside = c("less_equal", c("abs", wide), _k(c, 1))
        angle = c("acos", c("minimum", c("maximum", wide, _k(c, -1)), _k(c, 1)))
        times = c.add(degree, _k(c, more))
        within = c("sin" if sines else "cos", c.mul(times, angle))
        if divisor is not None:
            bottom = c("sin" if sines else "cos", c.mul(_k(c, divisor), angle))
            none = c("less", c("abs", bottom), _k(c, 1e-12))
            at_end = c.add(degree, _k(c, 1)) if kind == "u" else c.add(c.mul(_k(c, 2), degree), _k(c, 1))
            sign = flip if kind == "v" else c.where(below, flip, _k(c, 1)) if kind == "u" else _k(c, 1)
            within = c.where(none, c.mul(sign, at_end), c.div(within, c.where(none, _k(c, 1), bottom)))
        large = c("acosh", c("maximum", c("abs", wide), _k(c, 1 + float(np.finfo(np.float64).eps))))

        def ratio(hyperbolic):
            top = c(hyperbolic, c.mul(times, large))
            return top if divisor is None else c.div(top, c(hyperbolic, c.mul(_k(c, divisor), large)))

        above = ratio("sinh" if sines else "cosh")
        mirrored = ratio("cosh" if sines else "sinh") if kind in "vw" else above
        outside = c.where(below, c.mul(flip, mirrored), above)
        out = c.where(inside, within, outside)
        return _narrow(c, c.where(c("less", degree, _k(c, 0)), _k(c, 0), c.where(c("isnan", wide), _k(c, math.nan), out)))


for _kind in _CHEBYSHEV:
    for _shifted in (False, True):
        _chebyshev(_kind, _shifted)

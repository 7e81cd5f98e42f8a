# SPDX-License-Identifier: Apache-2.0
"""Functions of one tensor, element by element."""

from __future__ import annotations

import math

from ..dtypes import is_float
from ..registry import aten


def _floating(name, relay):
    @aten(f"{name}.default")
    def rule(c, x):
        return c(relay, c.cast(x, c.dtype))


for _name, _relay in {
    **{n: n for n in ("acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "erf", "exp", "exp2", "expm1", "log", "log10")},
    **{n: n for n in ("log1p", "log2", "reciprocal", "rsqrt", "sigmoid", "sin", "sinh", "sqrt", "tan", "tanh")},
    "silu": "nn.silu",
    "hardswish": "nn.hard_swish",
    "mish": "nn.mish",
}.items():
    _floating(_name, _relay)


def _kept(name, relay):
    """An operator that leaves integers as they are."""

    @aten(f"{name}.default")
    def rule(c, x):
        return c(relay, x) if is_float(x.dtype) else x.expr


for _name in ("ceil", "floor", "round", "trunc"):
    _kept(_name, _name)


@aten("abs.default")
def absolute(c, x):
    return x.expr if x.is_bool or x.dtype[0] == "u" else c("abs", x)


@aten("neg.default")
def negative(c, x):
    return c.sub(c.const(0, x.dtype), x) if x.dtype[0] == "u" else c("negative", x)


@aten("sign.default", "sgn.default")
def sign(c, x):
    if x.is_bool:
        return x.expr
    above, below = (c.convert(c(op, x, c.const(0, x.dtype)), "bool", x.dtype) for op in ("greater", "less"))
    return above if x.dtype[0] == "u" else c.sub(above, below)


@aten("signbit.default")
def signbit(c, x):
    if not is_float(x.dtype):
        return c("less", x, c.const(0, x.dtype)) if x.dtype[0] != "u" and not x.is_bool else c.full(False, x.shape, "bool")
    bits = {"float64": "int64", "float32": "int32", "float16": "int16", "bfloat16": "int16"}[x.dtype]
    return c("less", c("reinterpret", x, dtype=bits), c.const(0, bits))


@aten("relu.default")
def relu(c, x):
    return c("nn.relu", x) if is_float(x.dtype) else c("maximum", x, c.const(0, x.dtype))


@aten("isnan.default")
def isnan(c, x):
    return c("isnan", x) if is_float(x.dtype) else c.full(False, x.shape, "bool")


@aten("isinf.default")
def isinf(c, x):
    return c("isinf", x) if is_float(x.dtype) else c.full(False, x.shape, "bool")


@aten("logical_not.default")
def logical_not(c, x):
    return c("logical_not", c.truth(x))


@aten("bitwise_not.default")
def bitwise_not(c, x):
    return c("logical_not" if x.is_bool else "bitwise_not", x)


@aten("alias.default", "clone.default", "lift_fresh_copy.default", "lift_fresh.default", "detach.default", "contiguous.default", "alias_copy.default")
def alias(c, x, memory_format=None):
    return x.expr


@aten("_to_copy.default", "prims.convert_element_type.default")
def to_copy(c, x, dtype=None, layout=None, device=None, pin_memory=None, non_blocking=False, memory_format=None):
    return c.cast(x, c.dtype)


@aten("copy.default")
def copy(c, x, source, non_blocking=False):
    return c.broadcast(c.cast(source, x.dtype), x.shape)


@aten("gelu.default")
def gelu(c, x, approximate="none"):
    return c("nn.gelu", x, approximate=approximate)


@aten("rrelu_with_noise_functional.default")
def rrelu(c, x, noise, lower=1 / 8, upper=1 / 3, training=False, generator=None):
    c.need(not training, "random numbers are PyTorch's, so that they are the ones of an eager run")
    return [leaky_relu(c, x, (lower + upper) / 2), noise.expr]


@aten("leaky_relu.default")
def leaky_relu(c, x, negative_slope=0.01):
    return c("nn.leaky_relu", x, alpha=float(negative_slope))


@aten("elu.default")
def elu(c, x, alpha=1, scale=1, input_scale=1):
    if (scale, input_scale) == (1, 1):
        return c("nn.elu", x, alpha=float(alpha))
    # elu(x) = max(x, 0) + min(alpha * (exp(input_scale * x) - 1), 0) for the signs of PyTorch's modules; written by cases for all.
    low = c.mul(c("expm1", c.mul(x, c.const(input_scale, x.dtype))), c.const(alpha * scale, x.dtype))
    return c.where(c("greater", x, c.const(0, x.dtype)), c.mul(x, c.const(scale, x.dtype)), low)


@aten("hardtanh.default")
def hardtanh(c, x, min_val=-1, max_val=1):
    return c("minimum", c("maximum", x, c.const(min_val, x.dtype)), c.const(max_val, x.dtype))


@aten("hardsigmoid.default")
def hardsigmoid(c, x):
    return c("nn.hard_sigmoid", x, alpha=1 / 6, beta=0.5)


@aten("softplus.default")
def softplus(c, x, beta=1, threshold=20):
    scaled = c.mul(x, c.const(beta, x.dtype))
    # log(1 + exp(v)) without overflow, as PyTorch's beyond the threshold is v itself.
    soft = c.div(c("nn.softplus", scaled), c.const(beta, x.dtype))
    return c.where(c("greater", scaled, c.const(threshold, x.dtype)), x, soft)


@aten("erfc.default")
def erfc(c, x):
    return _erfc(c, c.cast(x, c.dtype), c.dtype)


def _erfc(c, x, dtype):
    """1 - erf(x), without cancellation: for |x| > 1/2 by the expansion of Numerical Recipes (3rd edition, 6.2.2), in float64."""
    wide = c.convert(x, dtype, "float64")
    z = c("abs", wide)
    tail = c.mul(_erfcx_of(c, z), c("exp", c("negative", c.mul(z, z))))
    tail = c.where(c("less", wide, c.const(0.0, "float64")), c.sub(c.const(2.0, "float64"), tail), tail)
    near = c.sub(c.const(1.0, "float64"), c("erf", wide))
    return c.convert(c.where(c("less", z, c.const(0.5, "float64")), near, tail), "float64", dtype)


def _erfcx_of(c, z):
    """exp(z^2) erfc(z) for z >= 0 in float64, by a Chebyshev series in 2 / (2 + z)."""
    t = c.div(c.const(2.0, "float64"), c.add(z, c.const(2.0, "float64")))
    ty = c.sub(c.mul(t, c.const(4.0, "float64")), c.const(2.0, "float64"))
    d = dd = c.const(0.0, "float64")
    for coefficient in reversed(_ERFC[1:]):
        d, dd = c.add(c.sub(c.mul(ty, d), dd), c.const(coefficient, "float64")), d
    half = c.const(0.5, "float64")
    inner = c.sub(c.mul(half, c.add(c.const(_ERFC[0], "float64"), c.mul(ty, d))), dd)
    return c.mul(t, c("exp", inner))


_ERFC = (
    -1.3026537197817094, 6.4196979235649026e-1, 1.9476473204185836e-2, -9.561514786808631e-3, -9.46595344482036e-4, 3.66839497852761e-4,
    4.2523324806907e-5, -2.0278578112534e-5, -1.624290004647e-6, 1.303655835580e-6, 1.5626441722e-8, -8.5238095915e-8, 6.529054439e-9,
    5.059343495e-9, -9.91364156e-10, -2.27365122e-10, 9.6467911e-11, 2.394038e-12, -6.886027e-12, 8.94487e-13, 3.13092e-13,
    -1.12708e-13, 3.81e-16, 7.106e-15, -1.523e-15, -9.4e-17, 1.21e-16, -2.8e-17,
)  # fmt: skip


@aten("round.decimals")
def round_decimals(c, x, decimals=0):
    if not is_float(x.dtype):
        return x.expr
    scale = c.const(float(10 ** abs(decimals)), x.dtype)
    up, down = ("multiply", "divide") if decimals >= 0 else ("divide", "multiply")
    return c(down, c("round", c(up, x, scale)), scale)


@aten("logit.default")
def logit(c, x, eps=None):
    x = c.cast(x, c.dtype)
    if eps is not None:
        x = c("minimum", c("maximum", x, c.const(eps, c.dtype)), c.const(1 - eps, c.dtype))
    return c("log", c.div(x, c.sub(c.const(1, c.dtype), x)))


# Lanczos's approximation with g = 7 and 9 terms (Godfrey, 2001), in float64: about 15 digits.
_LANCZOS = (
    0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059, 12.507343278686905,
    -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
)  # fmt: skip


@aten("lgamma.default")
def lgamma(c, x):
    """log |gamma(x)|: Lanczos's series for x >= 1/2, the reflection formula below it."""
    wide = c.convert(c.cast(x, c.dtype), c.dtype, "float64")

    def k(value):
        return c.const(value, "float64")

    low = c("less", wide, k(0.5))
    z = c.sub(c.where(low, c.sub(k(1.0), wide), wide), k(1.0))
    total = k(_LANCZOS[0])
    for i, term in enumerate(_LANCZOS[1:], 1):
        total = c.add(total, c.div(k(term), c.add(z, k(float(i)))))
    t = c.add(z, k(7.5))
    high = c.add(c.sub(c.mul(c.add(z, k(0.5)), c("log", t)), t), c("log", c.mul(total, k(math.sqrt(2 * math.pi)))))
    # The sine of the distance from the nearest integer: exact zero at the poles.
    away = c.sub(wide, c("round", wide))
    sine = c("abs", c("sin", c.mul(away, k(math.pi))))
    mirrored = c.sub(c.sub(k(math.log(math.pi)), c("log", sine)), high)
    infinite = c("isinf", wide)
    return c.convert(c.where(infinite, k(math.inf), c.where(low, mirrored, high)), "float64", c.dtype)


@aten("digamma.default")
def digamma(c, x):
    """The derivative of log gamma: shifted beyond 6 by its recurrence, then its asymptotic series (Abramowitz and Stegun 6.3.18)."""
    wide = c.convert(c.cast(x, c.dtype), c.dtype, "float64")

    def k(value):
        return c.const(value, "float64")

    low = c("less", wide, k(0.0))
    z = c.where(low, c.sub(k(1.0), wide), wide)
    shift = k(0.0)
    for _ in range(8):
        small = c("less", z, k(8.0))
        shift = c.where(small, c.sub(shift, c.div(k(1.0), z)), shift)
        z = c.where(small, c.add(z, k(1.0)), z)
    square = c.div(k(1.0), c.mul(z, z))
    series = k(0.0)
    for term in (-691 / 32760, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12):
        series = c.mul(square, c.add(k(term), series))
    high = c.add(shift, c.sub(c.sub(c("log", z), c.div(k(0.5), z)), series))
    away = c.sub(wide, c("round", wide))
    mirrored = c.sub(high, c.div(k(math.pi), c("tan", c.mul(away, k(math.pi)))))
    out = c.where(low, c.where(c("equal", away, k(0.0)), k(math.nan), mirrored), high)
    # At 0 the sign of the zero decides between the infinities.
    out = c.where(c("equal", wide, k(0.0)), c("negative", c.div(k(1.0), wide)), out)
    return c.convert(out, "float64", c.dtype)


@aten("erfinv.default")
def erfinv(c, x):
    """The inverse of erf: Giles's first guess (2012) and two steps of Newton's method, in float64."""
    wide = c.convert(c.cast(x, c.dtype), c.dtype, "float64")

    def k(value):
        return c.const(value, "float64")

    def polynomial(w, coefficients):
        out = k(coefficients[0])
        for coefficient in coefficients[1:]:
            out = c.add(c.mul(out, w), k(coefficient))
        return out

    w = c("negative", c("log", c.mul(c.sub(k(1.0), wide), c.add(k(1.0), wide))))
    near = polynomial(
        c.sub(w, k(2.5)),
        (2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503, -0.00417768164, 0.246640727, 1.50140941),
    )
    far = polynomial(
        c.sub(c("sqrt", w), k(3.0)),
        (-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613, 0.00943887047, 1.00167406, 2.83297682),
    )
    y = c.mul(wide, c.where(c("less", w, k(5.0)), near, far))
    for _ in range(2):
        slope = c.mul(k(2 / math.sqrt(math.pi)), c("exp", c("negative", c.mul(y, y))))
        y = c.sub(y, c.div(c.sub(c("erf", y), wide), slope))
    edge = c("equal", c("abs", wide), k(1.0))
    return c.convert(c.where(edge, c.mul(wide, k(math.inf)), y), "float64", c.dtype)


@aten("frexp.Tensor")
def frexp(c, x):
    """(mantissa in [1/2, 1), exponent) by the bits of a number."""
    c.need(x.dtype == "float32", "it is for float32")
    tiny = c("less", c("abs", x), c.const(2.0**-126, "float32"))
    scaled = c.where(tiny, c.mul(x, c.const(2.0**24, "float32")), x)
    bits = c("reinterpret", scaled, dtype="int32")
    exponent = c("bitwise_and", c("right_shift", bits, c.const(23, "int32")), c.const(255, "int32"))
    exponent = c.sub(c.sub(exponent, c.const(126, "int32")), c.where(tiny, c.const(24, "int32"), c.const(0, "int32")))
    kept = c("bitwise_and", bits, c.const(-(255 << 23) - 1, "int32"))
    mantissa = c("reinterpret", c("bitwise_or", kept, c.const(126 << 23, "int32")), dtype="float32")
    plain = c("logical_or", c("equal", x, c.const(0.0, "float32")), c("logical_not", c("isfinite", x)))
    return [c.where(plain, x, mantissa), c.where(plain, c.const(0, "int32"), exponent)]


@aten("angle.default")
def angle(c, x):
    value = c.cast(x, c.dtype)
    turned = c.where(c("less", value, c.const(0, c.dtype)), c.const(math.pi, c.dtype), c.const(0, c.dtype))
    return c.where(c("isnan", value), value, turned)


@aten("special_erfcx.default")
def erfcx(c, x):
    """exp(x^2) erfc(x): by the expansion of `erfc` without its last factor."""
    wide = c.convert(c.cast(x, c.dtype), c.dtype, "float64")
    z = c("abs", wide)
    scaled = _erfcx_of(c, z)
    grown = c("exp", c.mul(wide, wide))
    mirrored = c.sub(c.mul(c.const(2.0, "float64"), grown), scaled)
    return c.convert(c.where(c("less", wide, c.const(0.0, "float64")), mirrored, scaled), "float64", c.dtype)

# SPDX-License-Identifier: Apache-2.0
"""Functions of two tensors, or of a tensor and a number, with PyTorch's promotion of dtypes."""

from __future__ import annotations

from ..context import Value
from ..dtypes import is_float
from ..registry import aten


def _operands(c, x, y):
    return c.cast(x, c.dtype), c.cast(y, c.dtype)


@aten("add.Tensor", "add.Scalar")
def add(c, x, y, alpha=1):
    x, y = _operands(c, x, y)
    if c.dtype == "bool":
        return c("logical_or", x, y if alpha else c.const(False, "bool"))
    return c.add(x, y if alpha == 1 else c.mul(y, c.const(alpha, c.dtype)))


@aten("sub.Tensor", "sub.Scalar")
def sub(c, x, y, alpha=1):
    x, y = _operands(c, x, y)
    return c.sub(x, y if alpha == 1 else c.mul(y, c.const(alpha, c.dtype)))


@aten("rsub.Tensor", "rsub.Scalar")
def rsub(c, x, y, alpha=1):
    return sub(c, y, x, alpha)


@aten("mul.Tensor", "mul.Scalar")
def mul(c, x, y):
    return c("logical_and" if c.dtype == "bool" else "multiply", *_operands(c, x, y))


@aten("true_divide.Tensor", "true_divide.Scalar", "div.Tensor", "div.Scalar")
def div(c, x, y):
    return c.div(*_operands(c, x, y))


@aten("div.Tensor_mode", "div.Scalar_mode")
def div_mode(c, x, y, rounding_mode=None):
    x, y = _operands(c, x, y)
    if rounding_mode is None:
        return c.div(x, y)
    if rounding_mode == "floor":
        return _floor_divide(c, x, y)
    return c("trunc", c.div(x, y)) if is_float(c.dtype) else c.div(x, y)


@aten("floor_divide.default", "floor_divide.Scalar")
def floor_divide(c, x, y):
    return _floor_divide(c, *_operands(c, x, y))


def _floor_divide(c, x, y):
    """Of floats (x - fmod(x, y)) / y, less 1 where the signs of remainder and divisor differ, rounded: what Python's `//` gives."""
    if not is_float(c.dtype):
        return c("floor_divide", x, y)
    zero = c.const(0, c.dtype)
    rest = c("mod", x, y)
    quotient = c.div(c.sub(x, rest), y)
    differ = c("not_equal", c("less", rest, zero), c("less", y, zero))
    quotient = c.where(c("logical_and", c("not_equal", rest, zero), differ), c.sub(quotient, c.const(1, c.dtype)), quotient)
    low = c("floor", quotient)
    low = c.where(c("greater", c.sub(quotient, low), c.const(0.5, c.dtype)), c.add(low, c.const(1, c.dtype)), low)
    whole = c.div(x, y)
    low = c.where(c("equal", quotient, zero), c.mul(whole, zero), low)  # a zero with the sign of the quotient
    return c.where(c("equal", y, zero), whole, low)


@aten("remainder.Tensor", "remainder.Scalar", "remainder.Scalar_Tensor")
def remainder(c, x, y):
    x, y = _operands(c, x, y)
    if not is_float(c.dtype):
        return c("floor_mod", x, y)
    zero = c.const(0, c.dtype)
    rest = c("mod", x, y)
    differ = c("not_equal", c("less", rest, zero), c("less", y, zero))
    return c.where(c("logical_and", c("not_equal", rest, zero), differ), c.add(rest, y), rest)


@aten("fmod.Tensor", "fmod.Scalar")
def fmod(c, x, y):
    return c("mod", *_operands(c, x, y))


@aten("maximum.default")
def maximum(c, x, y):
    return c("logical_or" if c.dtype == "bool" else "maximum", *_operands(c, x, y))


@aten("minimum.default")
def minimum(c, x, y):
    return c("logical_and" if c.dtype == "bool" else "minimum", *_operands(c, x, y))


def _without_nan(name, relay):
    @aten(f"{name}.default")
    def rule(c, x, y):
        x, y = _operands(c, x, y)
        if c.dtype == "bool":
            return c("logical_or" if relay == "maximum" else "logical_and", x, y)
        if not is_float(c.dtype):
            return c(relay, x, y)
        return c.where(c("isnan", x), y, c.where(c("isnan", y), x, c(relay, x, y)))


_without_nan("fmax", "maximum")
_without_nan("fmin", "minimum")


@aten("atan2.default")
def atan2(c, x, y):
    return c("atan2", *_operands(c, x, y))


@aten("hypot.default")
def hypot(c, x, y):
    x, y = (c("abs", v) for v in _operands(c, x, y))
    high, low = c("maximum", x, y), c("minimum", x, y)
    ratio = c.div(low, c.where(c("equal", high, c.const(0, c.dtype)), c.const(1, c.dtype), high))
    out = c.mul(high, c("sqrt", c.add(c.const(1, c.dtype), c.mul(ratio, ratio))))
    inf = c("logical_or", c("isinf", x), c("isinf", y))
    return c.where(inf, c.const(float("inf"), c.dtype), out)


@aten("copysign.Tensor", "copysign.Scalar")
def copysign(c, x, y):
    x, y = _operands(c, x, y)
    bits = {"float64": "int64", "float32": "int32", "float16": "int16", "bfloat16": "int16"}[c.dtype]
    minus = c("less", c("reinterpret", y, dtype=bits), c.const(0, bits))
    size = c("abs", x)
    return c.where(minus, c("negative", size), size)


@aten("ldexp.Tensor")
def ldexp(c, x, y):
    return c.mul(c.cast(x, c.dtype), c("exp2", c.cast(y, c.dtype)))


@aten("pow.Tensor_Tensor", "pow.Scalar")
def power(c, x, y):
    x, y = _operands(c, x, y)
    if c.dtype == "bool":
        return c("logical_or", x, c("logical_not", y))
    return c("power", x, y)


@aten("pow.Tensor_Scalar")
def power_scalar(c, x, exponent):
    x = c.cast(x, c.dtype)
    if c.dtype == "bool":
        return x if exponent else c("logical_or", x, c("logical_not", x))
    simple = {1: lambda: x, 2: lambda: c.mul(x, x), 3: lambda: c.mul(c.mul(x, x), x), 0.5: lambda: c("sqrt", x)}
    if is_float(c.dtype):
        simple |= {-1: lambda: c("reciprocal", x), -0.5: lambda: c("rsqrt", x)}
    make = simple.get(exponent) if isinstance(exponent, (int, float)) else None
    return make() if make else c("power", x, c.const(exponent, c.dtype))


def _compare(name, relay):
    @aten(f"{name}.Tensor", f"{name}.Scalar")
    def rule(c, x, y):
        dtype = c.promoted(x, y)
        if dtype == "bool" and relay not in ("equal", "not_equal"):
            x, y = (c.convert(c.cast(v, "bool"), "bool", "uint8") for v in (x, y))
        else:
            x, y = c.cast(x, dtype), c.cast(y, dtype)
        return c(relay, x, y)


for _name, _relay in {"eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}.items():
    _compare(_name, _relay)


def _logical(name):
    @aten(f"{name}.default")
    def rule(c, x, y):
        return c(name, c.truth(x), c.truth(y))


for _name in ("logical_and", "logical_or", "logical_xor"):
    _logical(_name)


def _bitwise(name):
    @aten(f"bitwise_{name}.Tensor", f"bitwise_{name}.Scalar")
    def rule(c, x, y):
        return c(f"logical_{name}" if c.dtype == "bool" else f"bitwise_{name}", *_operands(c, x, y))


for _name in ("and", "or", "xor"):
    _bitwise(_name)


@aten("bitwise_left_shift.Tensor", "__lshift__.Scalar", "__lshift__.Tensor", "bitwise_left_shift.Tensor_Scalar")
def left_shift(c, x, y):
    x, y = _operands(c, x, y)
    return c("left_shift", x, y)


@aten("bitwise_right_shift.Tensor", "__rshift__.Scalar", "__rshift__.Tensor", "bitwise_right_shift.Tensor_Scalar")
def right_shift(c, x, y):
    return c("right_shift", *_operands(c, x, y))


@aten("where.self", "where.ScalarOther", "where.ScalarSelf", "where.Scalar")
def where(c, condition, x, y):
    return c.where(c.truth(condition), *_operands(c, x, y))


@aten("clamp.default", "clamp.Tensor")
def clamp(c, x, min=None, max=None):  # noqa: A002 - the schema's names
    out = c.cast(x, c.dtype)
    for bound, name, of_bools in ((min, "maximum", "logical_or"), (max, "minimum", "logical_and")):
        if bound is not None:
            out = c(of_bools if c.dtype == "bool" else name, out, c.cast(bound, c.dtype))
    return out


@aten("clamp_min.default", "clamp_min.Tensor")
def clamp_min(c, x, min):  # noqa: A002
    return clamp(c, x, min)


@aten("clamp_max.default", "clamp_max.Tensor")
def clamp_max(c, x, max):  # noqa: A002
    return clamp(c, x, None, max)


@aten("prelu.default", "_prelu_kernel.default")
def prelu(c, x, weight):
    slope = weight
    if isinstance(weight, Value) and weight.ndim == 1 and x.ndim > 1 and c.node.target.__name__ == "prelu.default":
        slope = c.reshape(weight, [1, weight.shape[0], *[1] * (x.ndim - 2)])
    return c.where(c("greater", x, c.const(0, x.dtype)), x, c.mul(slope, x))


@aten("nextafter.default")
def nextafter(c, x, y):
    c.need(c.dtype in ("float32", "float64"), "it is for float32 and float64")
    bits = "int" + c.dtype[5:]
    x, y = _operands(c, x, y)
    zero = c.const(0, c.dtype)
    raw = c("reinterpret", x, dtype=bits)
    # Away from zero one more in the bits, towards it one less; from zero itself the smallest number with y's sign.
    away = c("equal", c("greater", y, x), c("greater", x, zero))
    moved = c("reinterpret", c.where(away, c.add(raw, c.const(1, bits)), c.sub(raw, c.const(1, bits))), dtype=c.dtype)
    least = c("reinterpret", c.const(1, bits), dtype=c.dtype)
    first = c.where(c("greater", y, zero), least, c("negative", least))
    out = c.where(c("equal", x, zero), first, moved)
    nan = c("logical_or", c("isnan", x), c("isnan", y))
    return c.where(nan, c.add(x, y), c.where(c("equal", x, y), y, out))

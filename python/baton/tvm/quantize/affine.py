# SPDX-License-Identifier: Apache-2.0
"""Integers that stand for numbers: q for scale * q. At most `peak` in magnitude, so that sums never leave 32 bits."""

import dataclasses
import math

import numpy as np

from ...relay import op as _op
from ...relay.expr import Call, const

# Sums stay below half of what int32 holds: there is room for rounding before a shift.
ROOM = 2**30


@dataclasses.dataclass(frozen=True)
class Affine:
    """The numbers that integers stand for."""

    scale: float  # step between neighbours
    peak: int  # largest magnitude of an integer
    dtype: str  # of the integers
    stands_for: str  # dtype of the numbers

    @property
    def narrow(self):
        """Whether the integers are operands of products, in few bits."""
        return self.dtype != "int32"

    @property
    def reach(self):
        """The largest number that they stand for."""
        return self.scale * self.peak


def call(name, *args, **attrs):
    """A call of an operator by name."""
    return _op.find(name)(*args, **attrs)


def wide(expr, affine):
    """The integers in 32 bits."""
    return call("cast", expr, "int32") if affine.narrow else expr


def _shifted_right(expr, bits, config):
    if config.round_for_shift:
        half = const(1 << (bits - 1), "int32")
        if config.rounding == "TONEAREST":  # halves of negative numbers go down
            half = call("add", call("right_shift", expr, const(31, "int32")), half)
        expr = call("add", expr, half)
    return call("right_shift", expr, const(bits, "int32"))


def scaled(expr, ratio, config):
    """Integers in 32 bits times a ratio, rounded: by shifts where it is a power of two."""
    if ratio == 1:
        return expr
    mantissa, exponent = math.frexp(ratio)
    if mantissa == 0.5 and 0 < exponent - 1 < 31:
        return call("left_shift", expr, const(exponent - 1, "int32"))
    if mantissa == 0.5 and 0 < 1 - exponent < 30:
        return _shifted_right(expr, 1 - exponent, config)
    multiplier = round(mantissa * 2**31)
    if multiplier == 2**31:
        multiplier, exponent = 2**30, exponent + 1
    if config.rounding == "TONEAREST":
        parts = call("fixed_point_multiply", call("abs", expr), multiplier=multiplier, shift=exponent)
        return call("multiply", call("sign", expr), parts)
    return call("fixed_point_multiply", expr, multiplier=multiplier, shift=exponent)


def _clip(expr, low, high):
    return call("clip", expr, float(low), float(high))


def narrowed(expr, affine, scale, low, high, dtype, config):
    """Integers as ones of another scale from low to high, in few bits."""
    ratio = affine.scale / scale
    most = min(high, -low)
    if ratio == 1 and affine.dtype == dtype and affine.peak <= most:
        return expr
    expr, peak = wide(expr, affine), affine.peak
    if peak * ratio >= ROOM:  # what would leave 32 bits is clipped before, too
        peak = math.ceil(max(high, -low) / ratio) + 1
        expr = _clip(expr, -peak, peak)
    expr = scaled(expr, ratio, config)
    if peak * ratio > most:
        expr = _clip(expr, low, high)
    return call("cast", expr, dtype)


def of_floats(expr, typed, scale, low, high, dtype):
    """Floats of the dtype `typed` as integers from low to high; halves go to the even number."""
    # A power of two is divided by without rounding either way, and multiplying is faster.
    steps = call("multiply", expr, const(1 / scale, typed)) if math.frexp(scale)[0] == 0.5 else call("divide", expr, const(scale, typed))
    return call("cast", _clip(call("round", steps), low, high), dtype)


def of_array(array, scale, low, high, dtype):
    """A constant of floats as one of integers."""
    return const(np.clip(np.rint(array.astype("float64") / scale), low, high).astype(dtype), dtype)


def floats(expr, affine):
    """The numbers that integers stand for."""
    return call("multiply", call("cast", expr, affine.stands_for), const(affine.scale, affine.stands_for))


def with_args(old, args, **attrs):
    """A call with other arguments and some other attributes."""
    from ...ir import make_node

    new = old.attrs
    if attrs:
        new = make_node(new.type_key, **{**{k: new[k] for k in new.keys()}, **attrs})  # noqa: SIM118
    return Call(old.op, args, new, None, old.span)


__all__ = ["ROOM", "Affine", "call", "floats", "narrowed", "of_array", "of_floats", "scaled", "wide", "with_args"]

# SPDX-License-Identifier: Apache-2.0
"""Operators of PyTorch's quantised programs (PT2E), which Relay's `qnn` says."""

from __future__ import annotations

import numpy as np

from ..context import Value
from ..dtypes import relay_dtype
from ..registry import aten

_NAME = "quantized_decomposed."


def _numbers(c, value, dtype, axis):
    """Scales or zero points as Relay takes them: a scalar, or a vector along an axis."""
    if not isinstance(value, Value):
        return c.const(value, dtype)
    made = c.cast(value, dtype)
    return made if axis is not None and value.ndim == 1 else c.reshape(made, [] if axis is None else [-1])


def _quantized(c, x, scale, zero_point, low, high, dtype, axis=None):
    kind = relay_dtype(dtype)
    given = _numbers(c, scale, "float32", axis), _numbers(c, zero_point, "int32", axis)
    out = c("qnn.quantize", c.cast(x, "float32"), *given, axis=-1 if axis is None else x.axis(axis), out_dtype=kind)
    bounds = np.iinfo(kind)
    whole = int(low) <= bounds.min and int(high) >= bounds.max
    return out if whole else c("clip", out, a_min=float(low), a_max=float(high))


def _restored(c, x, scale, zero_point, axis=None):
    zero_point = c.const(0, "int32") if zero_point is None else _numbers(c, zero_point, "int32", axis)
    out = c("qnn.dequantize", x, _numbers(c, scale, "float32", axis), zero_point, axis=-1 if axis is None else x.axis(axis))
    return c.convert(out, "float32", c.dtype)


@aten(f"{_NAME}quantize_per_tensor.default", f"{_NAME}quantize_per_tensor.tensor")
def quantize_per_tensor(c, x, scale, zero_point, quant_min, quant_max, dtype):
    return _quantized(c, x, scale, zero_point, quant_min, quant_max, dtype)


@aten(f"{_NAME}quantize_per_channel.default")
def quantize_per_channel(c, x, scales, zero_points, axis, quant_min, quant_max, dtype):
    return _quantized(c, x, scales, zero_points, quant_min, quant_max, dtype, axis)


@aten(f"{_NAME}dequantize_per_tensor.default", f"{_NAME}dequantize_per_tensor.tensor")
def dequantize_per_tensor(c, x, scale, zero_point, quant_min, quant_max, dtype, *, out_dtype=None):
    return _restored(c, x, scale, zero_point)


@aten(f"{_NAME}dequantize_per_channel.default")
def dequantize_per_channel(c, x, scales, zero_points, axis, quant_min, quant_max, dtype, *, out_dtype=None):
    return _restored(c, x, scales, zero_points, axis)


@aten(f"{_NAME}choose_qparams.tensor", f"{_NAME}choose_qparams_symmetric.tensor")
def choose_qparams(c, x, quant_min, quant_max, eps, dtype):
    symmetric = "symmetric" in str(c.node.target)
    low, high, zero = int(quant_min), int(quant_max), c.const(0, "float32")
    x = c.cast(x, "float32")
    least, most = c("minimum", c("min", x), zero), c("maximum", c("max", x), zero)
    if symmetric:
        most, steps = c("maximum", c("negative", least), most), (high - low) / 2
        middle = 0 if relay_dtype(dtype)[0] == "i" else (low + high + 1) // 2
        scale, zero_point = c("maximum", c.div(most, c.const(steps, "float32")), c.const(eps, "float32")), c.const(middle, "int64")
    else:
        scale = c("maximum", c.div(c.sub(most, least), c.const(float(high - low), "float32")), c.const(eps, "float32"))
        zero_point = c("clip", c.sub(c.const(float(low), "float32"), c("round", c.div(least, scale))), a_min=float(low), a_max=float(high))
        zero_point = c.convert(zero_point, "float32", "int64")
    return [c.reshape(c.convert(scale, "float32", "float64"), [1]), c.reshape(zero_point, [1])]

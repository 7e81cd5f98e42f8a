# SPDX-License-Identifier: Apache-2.0
"""Operators on quantized tensors: what a quantized value q stands for is `scale * (q - zero_point)`.

Scales and zero points are expressions (or numbers): float32 and int32 scalars, or vectors with an element for each index of an axis.
Results saturate at the ends of their dtype. Each call is a node of text name `qnn.NAME`; `relay.qnn.transform.CanonicalizeOps` says it in
plain operators, which executors and `relay.build` do by themselves.
"""

import numpy as np

from ... import error as errors
from ...ir import RelayExpr, register_op_attr
from ..expr import Tuple, TupleWrapper, const
from ..op.make import input_expr, margins, operator
from ..op.sugar import _SWAPPED

SQNN_FP32, SQNN_INT8, SQNN_UINT8, SQNN_INT32 = range(4)
# Numbers that stand for dtypes where a program knows them at run time alone.
SQNN_DTYPE_TO_CODE = {"float32": SQNN_FP32, "int8": SQNN_INT8, "uint8": SQNN_UINT8, "int32": SQNN_INT32}
SQNN_CODE_TO_DTYPE = {code: dtype for dtype, code in SQNN_DTYPE_TO_CODE.items()}
_ROUNDINGS = ("UPWARD", "TONEAREST")


def _parameter(value, dtype):
    """A scale or zero point as an expression."""
    if isinstance(value, (int, float, np.generic)):
        return const(value, dtype)
    return input_expr(value)


def _scale(value):
    return _parameter(value, "float32")


def _zero(value):
    return _parameter(value, "int32")


def _integers(dtype):
    if not str(dtype).startswith(("int", "uint")):
        raise errors.ValueError(f"a quantized dtype is one of integers, not {dtype}")
    return str(dtype)


def quantize(data, output_scale, output_zero_point, axis=-1, out_dtype="int8"):
    """round(data / output_scale) + output_zero_point, where halves go to the even number. `axis`: of vectors."""
    return operator("qnn.quantize")(data, _scale(output_scale), _zero(output_zero_point), axis=axis, out_dtype=_integers(out_dtype))


def dequantize(data, input_scale, input_zero_point, axis=-1):
    """input_scale * (data - input_zero_point), float32."""
    return operator("qnn.dequantize")(data, _scale(input_scale), _zero(input_zero_point), axis=axis)


def requantize(data, input_scale, input_zero_point, output_scale, output_zero_point, axis=-1, rounding="UPWARD", out_dtype="int8", compute_dtype=None):
    """A quantized tensor as one of another scale and zero point. `rounding`: halves go up ("UPWARD"), or away from zero ("TONEAREST").
    `compute_dtype` is accepted for older programs; ratios are taken exactly."""
    if str(compute_dtype) in ("int8", "uint8", "int16"):
        out_dtype, compute_dtype = compute_dtype, out_dtype  # (..., rounding, compute_dtype, out_dtype)
    rounding = "UPWARD" if rounding in (None, "None") else rounding
    if rounding not in _ROUNDINGS:
        raise errors.ValueError(f'requantize: rounding is "{rounding}"; it is "UPWARD" or "TONEAREST"')
    return operator("qnn.requantize")(
        data,
        _scale(input_scale),
        _zero(input_zero_point),
        _scale(output_scale),
        _zero(output_zero_point),
        axis=axis,
        rounding=rounding,
        compute_dtype=str(compute_dtype),
        out_dtype=_integers(out_dtype),
    )


def conv2d(
    data,
    kernel,
    input_zero_point,
    kernel_zero_point,
    input_scale,
    kernel_scale,
    kernel_size,
    channels,
    strides=(1, 1),
    padding=(0, 0),
    dilation=(1, 1),
    groups=1,
    data_layout="NCHW",
    kernel_layout="OIHW",
    out_layout="",
    out_dtype="int32",
):
    """A convolution of quantized tensors; the result has the scale input_scale * kernel_scale and the zero point 0. Padding stands for 0.
    `kernel_zero_point` may have an element for each output channel."""
    return operator("qnn.conv2d")(
        data,
        kernel,
        _zero(input_zero_point),
        _zero(kernel_zero_point),
        _scale(input_scale),
        _scale(kernel_scale),
        strides=strides,
        padding=margins(padding, 2),
        dilation=dilation,
        groups=groups,
        channels=channels,
        kernel_size=kernel_size,
        data_layout=data_layout,
        kernel_layout=kernel_layout,
        out_layout=out_layout,
        out_dtype=_integers(out_dtype),
    )


def conv2d_transpose(
    data,
    weight,
    input_zero_point,
    kernel_zero_point,
    input_scale,
    kernel_scale,
    strides=(1, 1),
    padding=(0, 0),
    dilation=(1, 1),
    groups=1,
    channels=None,
    kernel_size=None,
    data_layout="NCHW",
    kernel_layout="IOHW",
    out_layout="",
    output_padding=(0, 0),
    out_dtype="int32",
):
    """A transposed convolution of quantized tensors, as `conv2d`; `kernel_layout` is read as by `relay.nn.conv2d_transpose`."""
    return operator("qnn.conv2d_transpose")(
        data,
        weight,
        _zero(input_zero_point),
        _zero(kernel_zero_point),
        _scale(input_scale),
        _scale(kernel_scale),
        strides=strides,
        padding=margins(padding, 2),
        dilation=dilation,
        groups=groups,
        channels=channels,
        kernel_size=kernel_size,
        data_layout=data_layout,
        kernel_layout=_SWAPPED.get(kernel_layout, kernel_layout),
        out_layout=out_layout,
        output_padding=output_padding,
        out_dtype=_integers(out_dtype),
    )


def dense(data, weight, input_zero_point, kernel_zero_point, input_scale, kernel_scale, units, out_dtype="int32"):
    """`data` times the transpose of `weight`; the result has the scale input_scale * kernel_scale and the zero point 0.
    `kernel_zero_point` may have an element for each unit."""
    return operator("qnn.dense")(
        data, weight, _zero(input_zero_point), _zero(kernel_zero_point), _scale(input_scale), _scale(kernel_scale), units=units, out_dtype=_integers(out_dtype)
    )


def batch_matmul(x, y, x_zero_point, y_zero_point, x_scale, y_scale, out_dtype="int32"):
    """The products of the matrices of `x` and the transposes of those of `y`; the result has the scale x_scale * y_scale and the zero
    point 0."""
    return operator("qnn.batch_matmul")(x, y, _zero(x_zero_point), _zero(y_zero_point), _scale(x_scale), _scale(y_scale), out_dtype=_integers(out_dtype))


def _both(name, what):
    def call(lhs, rhs, lhs_scale, lhs_zero_point, rhs_scale, rhs_zero_point, output_scale, output_zero_point, lhs_axis=-1, rhs_axis=-1):
        return operator("qnn." + name)(
            lhs,
            rhs,
            _scale(lhs_scale),
            _zero(lhs_zero_point),
            _scale(rhs_scale),
            _zero(rhs_zero_point),
            _scale(output_scale),
            _zero(output_zero_point),
            lhs_axis=lhs_axis,
            rhs_axis=rhs_axis,
        )

    call.__name__ = call.__qualname__ = name
    call.__doc__ = (
        f"The {what} of quantized tensors at the scale of the result, which has the dtype of `lhs`.\n    `lhs_axis` and `rhs_axis`: of scales that are vectors."
    )
    return call


add, subtract, mul = _both("add", "sum"), _both("subtract", "difference"), _both("mul", "product")


def concatenate(data, input_scales, input_zero_points, output_scale, output_zero_point, axis):
    """Quantized tensors one after the other along an axis, each brought to the scale and zero point of the result first."""
    data = data.astuple() if isinstance(data, TupleWrapper) else data
    fields = data if isinstance(data, Tuple) else Tuple([input_expr(x) for x in data])
    scales, zeros = (x if isinstance(x, Tuple) else Tuple([f(v) for v in x]) for x, f in ((input_scales, _scale), (input_zero_points, _zero)))
    if not len(fields) or len(scales) != len(fields) or len(zeros) != len(fields):
        raise errors.ValueError(f"concatenate has {len(fields)} tensors, {len(scales)} scales and {len(zeros)} zero points")
    return operator("qnn.concatenate")(fields, scales, zeros, _scale(output_scale), _zero(output_zero_point), axis=axis)


def _by_code(code, data, make):
    """Returns the result of `make` for the dtype of a number, which is known at run time; `data` for float32."""
    chosen = input_expr(data)
    for dtype, number in SQNN_DTYPE_TO_CODE.items():
        if number != SQNN_FP32:
            chosen = operator("where")(operator("equal")(code, operator("cast_like")(const(number, "int32"), code)), make(dtype), chosen)
    return chosen


def simulated_quantize(data, output_scale, output_zero_point, axis=-1, out_dtype="int8"):
    """`quantize` whose result stays floating; `out_dtype` "disable" gives `data` itself. An expression as `out_dtype` is a number of
    `SQNN_DTYPE_TO_CODE`."""
    if isinstance(out_dtype, RelayExpr):
        return _by_code(out_dtype, data, lambda t: simulated_quantize(data, output_scale, output_zero_point, axis, t))
    if out_dtype == "disable":
        return input_expr(data)
    return operator("qnn.simulated_quantize")(data, _scale(output_scale), _zero(output_zero_point), axis=axis, out_dtype=_integers(out_dtype))


def simulated_dequantize(data, input_scale, input_zero_point, axis=-1, in_dtype="int8"):
    """`dequantize` of what `simulated_quantize` gives; `in_dtype` "disable" gives `data` itself, an expression is as `out_dtype` there."""
    if isinstance(in_dtype, RelayExpr):
        return _by_code(in_dtype, data, lambda t: simulated_dequantize(data, input_scale, input_zero_point, axis, t))
    if in_dtype == "disable":
        return input_expr(data)
    return operator("qnn.simulated_dequantize")(data, _scale(input_scale), _zero(input_zero_point), axis=axis, in_dtype=_integers(in_dtype))


def _unary(name):
    def call(x, scale, zero_point, output_scale, output_zero_point):
        return operator("qnn." + name)(x, _scale(scale), _zero(zero_point), _scale(output_scale), _zero(output_zero_point))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"`{name}` of a quantized tensor, as one of the same dtype."
    return call


tanh, exp, sqrt, rsqrt, erf, sigmoid = map(_unary, ("tanh", "exp", "sqrt", "rsqrt", "erf", "sigmoid"))


def table(data, table):
    """`table[data]` for bytes: any function of a byte, by its 256 results. A negative number n selects row n + 256."""
    return operator("qnn.table")(data, table)


def register_qnn_legalize(op_name, legal_op=None, level=10):
    """Sets what `relay.qnn.transform.Legalize` makes of a call: `f(attrs, inputs, types) -> expression or None`."""
    return register_op_attr(op_name, "FTVMQnnLegalize", legal_op, level)


__all__ = [
    "add",
    "batch_matmul",
    "concatenate",
    "conv2d",
    "conv2d_transpose",
    "dense",
    "dequantize",
    "erf",
    "exp",
    "mul",
    "quantize",
    "register_qnn_legalize",
    "requantize",
    "rsqrt",
    "sigmoid",
    "simulated_dequantize",
    "simulated_quantize",
    "sqrt",
    "subtract",
    "table",
    "tanh",
]

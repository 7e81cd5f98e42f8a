# SPDX-License-Identifier: Apache-2.0
"""Operators on quantized tensors, said in terms of plain ones: what a quantized value q stands for is `scale * (q - zero_point)`.

Scales and zero points are expressions (or numbers): float32 and int32 scalars, or vectors with an element for each index of an axis.
Results saturate at the ends of their dtype.
"""

import numpy as np

from ...ir import TensorType
from ..expr import Constant, Tuple, TupleWrapper, const
from ..op.make import input_expr, operator

_ROUNDINGS = ("UPWARD", "TONEAREST")


def _type(expr):
    from ..transform import InferTypeLocal
    found = expr.checked_type_ if expr.checked_type_ is not None else InferTypeLocal(expr)
    if not isinstance(found, TensorType):
        raise TypeError(f"a quantized operand is a tensor, not {found}")
    return found


def _parameter(value, dtype):
    """A scale or zero point as an expression."""
    if isinstance(value, (int, float, np.generic)):
        return const(value, dtype)
    return input_expr(value)


def _along(value, data, axis):
    """A vector with an element for each index of an axis of `data`, so that it broadcasts; scalars as they are."""
    shape = _type(value).shape
    if len(shape) == 0:
        return value
    if len(shape) > 1:
        raise ValueError(f"a scale or zero point is a scalar or a vector, not of shape {tuple(shape)}")
    extents = _type(data).shape
    rank = len(extents)
    if not -rank <= axis < rank:
        raise ValueError(f"axis {axis} of a tensor of rank {rank}")
    found, wanted = shape[0], extents[axis]
    if getattr(found, "value", 1) != 1 and hasattr(found, "value") and hasattr(wanted, "value") and found.value != wanted.value:
        raise ValueError(f"a scale or zero point has {found} elements, axis {axis} has {wanted}")
    return operator("reshape")(value, newshape=[-1 if i == axis % rank else 1 for i in range(rank)])


def _saturate(value, dtype):
    """Whole numbers in any dtype as a narrower one."""
    if not str(dtype).startswith(("int", "uint")):
        raise ValueError(f"a quantized dtype is one of integers, not {dtype}")
    ends = np.iinfo(str(dtype))
    return operator("cast")(operator("clip")(value, a_min=float(ends.min), a_max=float(ends.max)), dtype=dtype)


def _centred(data, zero_point, axis, dtype="int32"):
    """data - zero_point, wide enough."""
    data, zero_point = operator("cast")(data, dtype=dtype), operator("cast")(zero_point, dtype=dtype)
    return operator("subtract")(data, zero_point)


def quantize(data, output_scale, output_zero_point, axis=-1, out_dtype="int8"):
    """round(data / output_scale) + output_zero_point, where halves go to the even number. `axis`: of vectors."""
    data = input_expr(data)
    scale, zero = _along(_parameter(output_scale, "float32"), data, axis), _along(_parameter(output_zero_point, "int32"), data, axis)
    steps = operator("round")(operator("divide")(data, operator("cast")(scale, dtype=_type(data).dtype)))
    return _saturate(operator("add")(steps, operator("cast")(zero, dtype=_type(data).dtype)), out_dtype)


def dequantize(data, input_scale, input_zero_point, axis=-1):
    """input_scale * (data - input_zero_point), float32."""
    data = input_expr(data)
    scale, zero = _along(_parameter(input_scale, "float32"), data, axis), _along(_parameter(input_zero_point, "int32"), data, axis)
    return operator("multiply")(operator("cast")(_centred(data, zero, axis), dtype="float32"), operator("cast")(scale, dtype="float32"))


def _is_zero(value):
    return isinstance(value, Constant) and not value.data.numpy().any()


def requantize(data, input_scale, input_zero_point, output_scale, output_zero_point, axis=-1, rounding="UPWARD", out_dtype="int8", compute_dtype=None):
    """A quantized tensor as one of another scale and zero point. `rounding`: halves go up ("UPWARD"), or away from zero ("TONEAREST").
    `compute_dtype` is accepted for older programs; ratios are taken exactly."""
    rounding = "UPWARD" if rounding in (None, "None") else rounding
    if rounding not in _ROUNDINGS:
        raise ValueError(f'requantize: rounding is "{rounding}"; it is "UPWARD" or "TONEAREST"')
    data = input_expr(data)
    scale, zero = _along(_parameter(input_scale, "float32"), data, axis), _along(_parameter(input_zero_point, "int32"), data, axis)
    out_scale, out_zero = _parameter(output_scale, "float32"), _parameter(output_zero_point, "int32")
    ratio = operator("divide")(operator("cast")(scale, dtype="float64"), operator("cast")(out_scale, dtype="float64"))
    exact = operator("multiply")(operator("cast")(_centred(data, zero, axis, "int64"), dtype="float64"), ratio)
    half = const(0.5, "float64")
    if rounding == "UPWARD":
        steps = operator("floor")(operator("add")(exact, half))
    else:
        steps = operator("multiply")(operator("sign")(exact), operator("floor")(operator("add")(operator("abs")(exact), half)))
    if not _is_zero(out_zero):
        steps = operator("add")(steps, operator("cast")(out_zero, dtype="float64"))
    return _saturate(steps, out_dtype)


def _axis_of(layout, letter):
    plain = [c for c in layout if c.isalpha()]
    if letter not in plain:
        raise ValueError(f'the layout "{layout}" has no `{letter}`')
    return plain.index(letter)


def conv2d(data, kernel, input_zero_point, kernel_zero_point, input_scale, kernel_scale, kernel_size, channels, strides=(1, 1), padding=(0, 0),
           dilation=(1, 1), groups=1, data_layout="NCHW", kernel_layout="OIHW", out_layout="", out_dtype="int32"):
    """A convolution of quantized tensors; the result has the scale input_scale * kernel_scale and the zero point 0. Padding stands for 0.
    `kernel_zero_point` may have an element for each output channel."""
    data, kernel = input_expr(data), input_expr(kernel)
    zero = _along(_parameter(kernel_zero_point, "int32"), kernel, _axis_of(kernel_layout, "O"))
    return operator("nn.conv2d")(_centred(data, _parameter(input_zero_point, "int32"), 0, out_dtype), _centred(kernel, zero, 0, out_dtype),
                                 strides=strides, padding=padding, dilation=dilation, groups=groups, channels=channels,
                                 kernel_size=kernel_size, data_layout=data_layout, kernel_layout=kernel_layout, out_layout=out_layout)


def conv2d_transpose(data, weight, input_zero_point, kernel_zero_point, input_scale, kernel_scale, strides=(1, 1), padding=(0, 0), dilation=(1, 1),
                     groups=1, channels=None, kernel_size=None, data_layout="NCHW", kernel_layout="IOHW", out_layout="", output_padding=(0, 0),
                     out_dtype="int32"):
    """A transposed convolution of quantized tensors, as `conv2d`."""
    from ..op.sugar import SUGAR
    data, weight = input_expr(data), input_expr(weight)
    zero = _parameter(kernel_zero_point, "int32")
    return SUGAR["nn.conv2d_transpose"](_centred(data, _parameter(input_zero_point, "int32"), 0, out_dtype), _centred(weight, zero, 0, out_dtype),
                                        strides=strides, padding=padding, dilation=dilation, groups=groups, channels=channels,
                                        kernel_size=kernel_size, data_layout=data_layout, kernel_layout=kernel_layout,
                                        out_layout=out_layout, output_padding=output_padding)


def dense(data, weight, input_zero_point, kernel_zero_point, input_scale, kernel_scale, units, out_dtype="int32"):
    """`data` times the transpose of `weight`; the result has the scale input_scale * kernel_scale and the zero point 0.
    `kernel_zero_point` may have an element for each unit."""
    data, weight = input_expr(data), input_expr(weight)
    zero = _along(_parameter(kernel_zero_point, "int32"), weight, 0)
    return operator("nn.dense")(_centred(data, _parameter(input_zero_point, "int32"), 0, out_dtype), _centred(weight, zero, 0, out_dtype), units=units)


def batch_matmul(x, y, x_zero_point, y_zero_point, x_scale, y_scale, out_dtype="int32"):
    """The products of the matrices of `x` and the transposes of those of `y`; the result has the scale x_scale * y_scale and the zero
    point 0."""
    x, y = input_expr(x), input_expr(y)
    return operator("nn.batch_matmul")(_centred(x, _parameter(x_zero_point, "int32"), 0, out_dtype),
                                       _centred(y, _parameter(y_zero_point, "int32"), 0, out_dtype))


def _both(name):
    def call(lhs, rhs, lhs_scale, lhs_zero_point, rhs_scale, rhs_zero_point, output_scale, output_zero_point, lhs_axis=-1, rhs_axis=-1):
        lhs, rhs = input_expr(lhs), input_expr(rhs)
        zero = _parameter(output_zero_point, "int32")
        parts = [requantize(x, scale, start, output_scale, 0, axis, out_dtype="int32") for x, scale, start, axis in
                 ((lhs, lhs_scale, lhs_zero_point, lhs_axis), (rhs, rhs_scale, rhs_zero_point, rhs_axis))]
        return _saturate(operator("add")(operator(name)(*parts), operator("cast")(zero, dtype="int32")), _type(lhs).dtype)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = (f"The {'sum' if name == 'add' else 'difference'} of quantized tensors, each brought to the scale of the result first, which has the\n"
                    "    dtype of `lhs`. `lhs_axis` and `rhs_axis`: of scales that are vectors.")
    return call


add, subtract = _both("add"), _both("subtract")


def mul(lhs, rhs, lhs_scale, lhs_zero_point, rhs_scale, rhs_zero_point, output_scale, output_zero_point, lhs_axis=-1, rhs_axis=-1):
    """The product of quantized tensors, with the dtype of `lhs`. `lhs_axis` and `rhs_axis`: of scales that are vectors."""
    lhs, rhs = input_expr(lhs), input_expr(rhs)
    values, scales = [], []
    for x, scale, zero, axis in ((lhs, lhs_scale, lhs_zero_point, lhs_axis), (rhs, rhs_scale, rhs_zero_point, rhs_axis)):
        values.append(_centred(x, _along(_parameter(zero, "int32"), x, axis), axis))
        scales.append(_along(_parameter(scale, "float32"), x, axis))
    ratio = operator("divide")(operator("multiply")(*(operator("cast")(s, dtype="float64") for s in scales)),
                               operator("cast")(_parameter(output_scale, "float32"), dtype="float64"))
    exact = operator("multiply")(operator("cast")(operator("multiply")(*values), dtype="float64"), ratio)
    steps = operator("floor")(operator("add")(exact, const(0.5, "float64")))
    return _saturate(operator("add")(steps, operator("cast")(_parameter(output_zero_point, "int32"), dtype="float64")), _type(lhs).dtype)


def concatenate(data, input_scales, input_zero_points, output_scale, output_zero_point, axis):
    """Quantized tensors one after the other along an axis, each brought to the scale and zero point of the result first."""
    fields = [input_expr(x) for x in (data.astuple() if isinstance(data, TupleWrapper) else data)]
    scales, zeros = list(input_scales), list(input_zero_points)
    if not fields or len(scales) != len(fields) or len(zeros) != len(fields):
        raise ValueError(f"concatenate has {len(fields)} tensors, {len(scales)} scales and {len(zeros)} zero points")
    parts = [requantize(x, s, z, output_scale, output_zero_point, out_dtype=_type(x).dtype) for x, s, z in zip(fields, scales, zeros, strict=True)]
    return operator("concatenate")(Tuple(parts), axis=axis)


def simulated_quantize(data, output_scale, output_zero_point, axis=-1, out_dtype="int8"):
    """`quantize` whose result stays floating; `out_dtype` "disable" gives `data` itself."""
    data = input_expr(data)
    return data if out_dtype == "disable" else operator("cast")(quantize(data, output_scale, output_zero_point, axis, out_dtype), dtype=_type(data).dtype)


def simulated_dequantize(data, input_scale, input_zero_point, axis=-1, in_dtype="int8"):
    """`dequantize` of what `simulated_quantize` gives; `in_dtype` "disable" gives `data` itself."""
    data = input_expr(data)
    if in_dtype == "disable":
        return data
    scale, zero = _along(_parameter(input_scale, "float32"), data, axis), _along(_parameter(input_zero_point, "int32"), data, axis)
    dtype = _type(data).dtype
    return operator("multiply")(operator("subtract")(data, operator("cast")(zero, dtype=dtype)), operator("cast")(scale, dtype=dtype))


def _unary(name):
    def call(x, scale, zero_point, output_scale, output_zero_point):
        x = input_expr(x)
        value = operator(name)(dequantize(x, scale, zero_point))
        return quantize(value, output_scale, output_zero_point, out_dtype=_type(x).dtype)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"`{name}` of a quantized tensor, as one of the same dtype."
    return call


tanh, exp, sqrt, rsqrt, erf, sigmoid = map(_unary, ("tanh", "exp", "sqrt", "rsqrt", "erf", "sigmoid"))


__all__ = ["add", "batch_matmul", "concatenate", "conv2d", "conv2d_transpose", "dense", "dequantize", "erf", "exp", "mul", "quantize", "requantize",
           "rsqrt", "sigmoid", "simulated_dequantize", "simulated_quantize", "sqrt", "subtract", "tanh"]

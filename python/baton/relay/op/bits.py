# SPDX-License-Identifier: Apache-2.0
"""Operators on numbers of few bits, composed of others: what they compute is what bit by bit products sum to."""

from ... import error as errors
from ..expr import const, infer_type
from .make import convolution, operator

BITS = {}


def _bits(name):
    def register(f):
        BITS[name] = f
        return f

    return register


def _weights(weight, bits, unipolar):
    """The values of a weight's bits: each is -1 or 1 where `unipolar`, else 0 or 1."""
    if not unipolar:
        return operator("cast")(weight, dtype="int32")
    low = operator("bitwise_and")(operator("cast")(weight, dtype="int32"), const((1 << bits) - 1, "int32"))
    return operator("subtract")(operator("multiply")(low, const(2, "int32")), const((1 << bits) - 1, "int32"))


@_bits("nn.bitserial_dense")
def bitserial_dense(data, weight, units=None, data_bits=1, weight_bits=1, pack_dtype="uint32", out_dtype="int16", unipolar=True):
    """`nn.dense` of numbers of few bits; with `unipolar` a bit of a weight is -1 or 1."""
    product = operator("nn.dense")(operator("cast")(data, dtype="int32"), _weights(weight, weight_bits, unipolar), units=units)
    return operator("cast")(product, dtype=out_dtype)


@_bits("nn.bitserial_conv2d")
def bitserial_conv2d(
    data,
    weight,
    strides=(1, 1),
    padding=(0, 0),
    channels=None,
    kernel_size=(3, 3),
    activation_bits=1,
    weight_bits=1,
    data_layout="NCHW",
    kernel_layout="OIHW",
    pack_dtype="uint32",
    out_dtype="int16",
    unipolar=True,
):
    """`nn.conv2d` of numbers of few bits; with `unipolar` a bit of a weight is -1 or 1."""
    made = convolution(2)(
        operator("cast")(data, dtype="int32"),
        _weights(weight, weight_bits, unipolar),
        strides=strides,
        padding=padding,
        channels=channels,
        kernel_size=kernel_size,
        data_layout=data_layout,
        kernel_layout=kernel_layout,
    )
    return operator("cast")(made, dtype=out_dtype)


@_bits("nn.bitpack")
def bitpack(data, bits=1, pack_axis=1, bit_axis=2, pack_type="uint32", name="BitPack"):
    """The bits of integers, those of neighbours along `pack_axis` in one number, the first in its highest bit; `bit_axis` has the bits."""
    shape = [int(d) for d in infer_type(data).shape]
    width = int("".join(c for c in pack_type if c.isdigit()))
    if shape[pack_axis] % width:
        raise errors.ValueError(f"bitpack: axis {pack_axis} has {shape[pack_axis]} elements, which {pack_type} does not divide")
    apart = operator("reshape")(data, newshape=[*shape[:pack_axis], shape[pack_axis] // width, width, *shape[pack_axis + 1 :]])
    apart = operator("cast")(apart, dtype="uint64")
    last = operator("arange")(const(width - 1, "int64"), const(-1, "int64"), const(-1, "int64"), dtype="int64")
    places = operator("left_shift")(const(1, "uint64"), operator("cast")(last, dtype="uint64"))
    places = operator("reshape")(places, newshape=[width] + [1] * (len(shape) - pack_axis - 1))
    packed = []
    for bit in range(bits):
        one = operator("bitwise_and")(operator("right_shift")(apart, const(bit, "uint64")), const(1, "uint64"))
        total = operator("sum")(operator("multiply")(one, places), axis=[pack_axis + 1])
        packed.append(operator("cast")(total, dtype=pack_type))
    return operator("stack")(packed, axis=bit_axis)


__all__ = ["BITS"]

# SPDX-License-Identifier: Apache-2.0
"""Tensors that are made of numbers alone."""

from __future__ import annotations

import math

import numpy as np

from ..context import Value
from ..dtypes import is_float
from ..registry import aten
from ..sizes import known


@aten("full.default")
def full(c, size, fill_value, **_):
    return c.full(_scalar(c, fill_value), c.shape, c.dtype)


@aten("full_like.default", "new_full.default")
def full_like(c, x, *args, **_):
    return c.full(_scalar(c, args[-1] if "fill_value" not in _ else _["fill_value"]), c.shape, c.dtype)


def _scalar(c, value):
    return c.cast(value, c.dtype) if isinstance(value, Value) else value


@aten("fill.Scalar", "fill.Tensor")
def fill(c, x, value):
    return c.full(_scalar(c, value), c.shape, c.dtype)


@aten("scalar_tensor.default")
def scalar_tensor(c, value, **_):
    return c.const(value, c.dtype)


@aten("zeros.default", "zeros_like.default", "new_zeros.default", "ones.default", "ones_like.default", "new_ones.default")
def filled(c, *_, **__):
    return c.full(1 if "ones" in c.node.target.__name__ else 0, c.shape, c.dtype)


# Memory that PyTorch leaves as it is: any values are right, and zeros are the same at each run.
@aten("empty.memory_format", "empty_strided.default", "empty_permuted.default", "empty_like.default", "new_empty.default", "new_empty_strided.default")
def empty(c, *_, **__):
    return c.full(0, c.shape, c.dtype)


@aten("arange.start_step", "arange.start", "arange.default")
def arange(c, *args, **_):
    start, end, step = (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
    integral = not is_float(c.dtype)
    if all(map(_number, (start, end, step))):
        (count,) = c.known(c.shape[0])
        kind = "int64" if integral else "float64"
        first, by = (int(start), int(step)) if integral else (float(start), float(step))
        return c.const(np.arange(count, dtype=kind) * by + first, c.dtype)
    c.need(integral, "a range of floats between open numbers")
    length = {"length": c.extent(c.shape[0])} if c.is_given(c.shape[0]) else {}
    wide = [c.const(v, "int64") for v in (start, end, step)]
    return c.convert(c("arange", *wide, dtype="int64", **length), "int64", c.dtype)


def _number(value):
    return not hasattr(value, "node") or known(value)


@aten("linspace.default")
def linspace(c, start, end, steps, **_):
    (n,) = c.known(steps)
    c.need(_number(start) and _number(end), "a range between open numbers")
    return c.const(np.linspace(start, end, n), c.dtype)


@aten("eye.default", "eye.m")
def eye(c, *_, **__):
    rows, columns = c.known(*c.shape)
    return c.const(np.eye(rows, columns), c.dtype)


@aten("one_hot.default")
def one_hot(c, x, num_classes=-1):
    c.need(num_classes >= 0, "one_hot without the number of classes: the shape depends on values")
    return c("one_hot", x, c.const(1, "int64"), c.const(0, "int64"), depth=int(num_classes), axis=-1)


@aten("isneginf.default")
def isneginf(c, x):
    return c("equal", x, c.const(-math.inf, x.dtype)) if is_float(x.dtype) else c.full(False, x.shape, "bool")


@aten("tril_indices.default")
def tril_indices(c, row, col, offset=0, **_):
    return c.const(np.stack(np.tril_indices(row, offset, col)), c.dtype)


@aten("triu_indices.default")
def triu_indices(c, row, col, offset=0, **_):
    return c.const(np.stack(np.triu_indices(row, offset, col)), c.dtype)


@aten("sym_size.int", "sym_numel.default", "sym_stride.int", "sym_storage_offset.default", "sym_is_contiguous.default")
def number_of_sizes(c, *_):
    """A formula of sizes: what uses it reads it from the node, and no code is made."""
    c.need(False, "a number of sizes as a tensor")

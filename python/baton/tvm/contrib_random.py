# SPDX-License-Identifier: Apache-2.0
"""Tensors of random numbers, other ones each time that a program runs; NumPy makes them."""

import numpy as np

from .. import te
from .._ffi import register_func
from ..tir import call_packed

_generator = np.random.default_rng()


def _fill(f):
    def call(*args):
        *given, out = args
        out.copyfrom(f(*given, tuple(out.shape)).astype(str(out.dtype)))

    return call


register_func("tvm.contrib.random.randint", _fill(lambda low, high, shape: _generator.integers(low, high, shape)), override=True)
register_func("tvm.contrib.random.uniform", _fill(lambda low, high, shape: _generator.uniform(low, high, shape)), override=True)
register_func("tvm.contrib.random.normal", _fill(lambda loc, scale, shape: _generator.normal(loc, scale, shape)), override=True)


@register_func("tvm.contrib.random.random_fill", override=True)
def random_fill(out):
    """Fills an array with numbers that are safe to compute with: 1 to 10, and of bool both."""
    boolean = str(out.dtype) == "bool"
    out.copyfrom((_generator.integers(0, 2, tuple(out.shape)) if boolean else _generator.uniform(1, 10, tuple(out.shape))).astype(str(out.dtype)))


@register_func("tvm.contrib.random.seed", override=True)
def seed(value):
    """Makes the numbers that follow the same in each run."""
    global _generator
    _generator = np.random.default_rng(value)


def _made(name, a, b, size, dtype):
    return te.extern(size, [], lambda ins, outs: call_packed(f"tvm.contrib.random.{name}", a, b, outs[0]), name=name, dtype=dtype)


def randint(low, high, size, dtype="int32"):
    """Ints of [low, high)."""
    if dtype not in ("int32", "uint32"):
        raise ValueError(f"randint gives int32 or uint32, not {dtype}")
    return _made("randint", int(low), int(high), size, dtype)


def uniform(low, high, size):
    """Numbers spread evenly over [low, high), in float32."""
    return _made("uniform", float(low), float(high), size, "float32")


def normal(loc, scale, size):
    """Numbers of a normal distribution, in float32."""
    return _made("normal", float(loc), float(scale), size, "float32")


__all__ = ["normal", "randint", "seed", "uniform"]

# SPDX-License-Identifier: Apache-2.0
"""Each row of SimplifyExpr's tables against the reference interpreter, on special and random values, by its label.

`exact` rows give the same bits (any NaN for NaN); `but NaN or zero` rows the same where neither side is NaN, whatever the sign of
zeros; rows that `reassociate` nearly the same on values of ordinary size. Integers and bools are always exact.
"""

import zlib

import numpy as np
import pytest

import baton
from baton import relay
from baton._ffi import get_global_func
from baton.relay import op

FLOATS, INTS, BOOLS = 1, 2, 4
LEVEL = {"exact": "strict", "but NaN or zero": "contract", "reassociates": "fast"}
INEXACT = ("exp", "sigmoid", "softmax")
SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, 1e-45, -1e-40, 3e38, -3e38, 2.5, -2.5, 1e-30, 7.0]


class V:
    """Variables and constants of the dtype that a row is tried with."""

    def __init__(self, dtype):
        self.dtype, self.made = dtype, []

    def __call__(self, shape=(16, 16), dtype=None):
        self.made.append(relay.var(f"x{len(self.made)}", shape=shape, dtype=dtype or self.dtype))
        return self.made[-1]

    def const(self, value, dtype=None):
        return relay.const(np.asarray(value, dtype or self.dtype))


def _call(name, *args):
    return relay.Call(op.get(name), list(args))


def unary(*names):
    """`a(b(x))` for names a, b."""

    def make(v):
        e = v()
        for n in reversed(names):
            e = _call(n, e)
        return e

    return make


def binary(name, f):
    return lambda v: _call(name, *f(v))


def same(name):
    def make(v):
        x = v()
        return _call(name, x, x)

    return make


def with_const(name, value, swapped=False):
    def make(v):
        x, c = v(), v.const(value)
        return _call(name, c, x) if swapped else _call(name, x, c)

    return make


def with_tensor(name, value, shape=(16, 16)):
    return lambda v: _call(name, v(), v.const(np.full(shape, value)))


def negated(name, dtype=None):
    return lambda v: _call("logical_not", _call(name, v(dtype=dtype), v(dtype=dtype)))


def choice(f):
    return lambda v: _call("where", *f(v))


def clip(x, low, high):
    return relay.clip(x, low, high)


def lt(x, a, b):
    return relay.layout_transform(x, a, b)


def parts_of(v, sections=2, axis=0):
    x = v((4, 6))
    s = relay.split(x, sections, axis)
    return [s[i] for i in range(len(s))]


def _matmul(f):
    """On numbers that products of are exact, so that the order of the sum does not matter."""
    f.small = True
    return f


EXAMPLES = {
    "x + -0 -> x": [with_const("add", -0.0), with_const("add", -0.0, True)],
    "x + 0 -> x": [with_const("add", 0), with_const("add", 0, True), with_tensor("add", 0), lambda v: v((3, 4)) + relay.zeros((4,), v.dtype)],
    "x - 0 -> x": [with_const("subtract", 0), with_tensor("subtract", 0, (16,))],
    "x - -0 -> x": [with_const("subtract", -0.0)],
    "0 - x -> -x": [with_const("subtract", 0, True)],
    "x * 1 -> x": [with_const("multiply", 1), with_const("multiply", 1, True), with_tensor("multiply", 1, (1, 16))],
    "x * -1 -> -x": [with_const("multiply", -1)],
    "x * 0 -> 0": [with_const("multiply", 0), lambda v: v(()) * v.const(0)],
    "x / 1 -> x": [with_const("divide", 1)],
    "x / -1 -> -x": [with_const("divide", -1)],
    "x / 2**n -> x * 2**-n": [with_const("divide", 8.0), with_const("divide", -0.25)],
    "x / c -> x * (1 / c)": [with_const("divide", 3.0)],
    "floor_divide(x, 1) -> x": [with_const("floor_divide", 1)],
    "x - x -> 0": [same("subtract")],
    "x / x -> 1": [same("divide")],
    "power(x, 1) -> x": [with_const("power", 1)],
    "power(x, 0) -> 1": [with_const("power", 0)],
    "power(x, 2) -> x * x": [with_const("power", 2.0)],
    "power(x, 2) -> x * x (integers)": [with_const("power", 2)],
    "power(x, 0.5) -> sqrt(x)": [with_const("power", 0.5)],
    "power(x, -0.5) -> rsqrt(x)": [with_const("power", -0.5)],
    "power(x, -1) -> reciprocal(x)": [with_const("power", -1.0)],
    "-(-x) -> x": [unary("negative", "negative")],
    "x + -y -> x - y": [lambda v: v() + relay.negative(v()), lambda v: relay.negative(v()) + v()],
    "x - -y -> x + y": [lambda v: v() - relay.negative(v())],
    "-(x - y) -> y - x": [lambda v: relay.negative(v() - v())],
    "-x * -y -> x * y": [lambda v: relay.negative(v()) * relay.negative(v())],
    "-x / -y -> x / y": [lambda v: relay.negative(v()) / relay.negative(v())],
    "abs(-x) -> abs(x)": [unary("abs", "negative")],
    "abs(abs(x)) -> abs(x)": [unary("abs", "abs")],
    "abs(y) -> y where y >= 0": [unary("abs", "exp"), unary("abs", "sigmoid")],
    "abs(sqrt(x)) -> sqrt(x)": [unary("abs", "sqrt")],
    "relu(relu(x)) -> relu(x)": [unary("nn.relu", "nn.relu")],
    "relu(y) -> y where y >= 0": [
        unary("nn.relu", "exp"),
        unary("nn.relu", "abs"),
        unary("nn.relu", "sqrt"),
        lambda v: relay.nn.relu(relay.nn.softmax(v((2, 5)))),
    ],
    "sign(sign(x)) -> sign(x)": [unary("sign", "sign")],
    "round of a whole number -> it": [unary("floor", "ceil"), unary("round", "trunc"), unary("ceil", "round"), unary("trunc", "floor")],
    "round of an integer that was cast -> it": [
        lambda v: relay.floor(relay.cast(v(dtype="int32"), v.dtype)),
        lambda v: relay.round(relay.cast(v(dtype="bool"), v.dtype)),
    ],
    "abs(x * x) -> x * x": [lambda v: (lambda x: relay.abs(x * x))(v())],
    "abs(x) * abs(x) -> x * x": [lambda v: (lambda x: relay.abs(x) * relay.abs(x))(v())],
    "mod(x, 1) -> 0": [with_const("mod", 1), with_const("floor_mod", 1)],
    "bias_add(x, 0) -> x": [lambda v: relay.nn.bias_add(v((2, 3, 4)), v.const(np.zeros(3)))],
    "maximum(maximum(x, c), d) -> maximum(x, maximum(c, d))": [
        lambda v: relay.maximum(v.const(2), relay.maximum(v(), v.const(3))),
        lambda v: relay.maximum(relay.maximum(v.const(4), v()), v.const(3)),
    ],
    "minimum(minimum(x, c), d) -> minimum(x, minimum(c, d))": [lambda v: relay.minimum(v.const(2), relay.minimum(v(), v.const(3)))],
    "clip(x) -> x where all values are within": [lambda v: clip(v(), -(2.0**31), 2.0**31 - 1), lambda v: clip(v(dtype="int8"), -128.0, 127.0)],
    "exp(x) / exp(y) -> exp(x - y)": [lambda v: relay.exp(v()) / relay.exp(v())],
    "log(x) + log(y) -> log(x * y)": [lambda v: relay.log(v()) + relay.log(v())],
    "(x + c) * d -> x * d + c * d": [lambda v: (v() + v.const(3)) * v.const(0.5)],
    "round of an integer -> it": [unary("floor"), unary("round")],
    "bitwise_not(bitwise_not(x)) -> x": [unary("bitwise_not", "bitwise_not")],
    "maximum(x, x) -> x": [same("maximum")],
    "minimum(x, x) -> x": [same("minimum")],
    "clip(clip(x)) -> clip(x)": [
        lambda v: clip(clip(v(), 0.0, 6.0), 1.0, 4.0),
        lambda v: clip(clip(v(), 1.0, 2.0), 3.0, 4.0),
        lambda v: clip(clip(v(), 1.0, 9.0), 0.0, 2.0),
        lambda v: clip(clip(v(), 5.0, 9.0), 0.0, 2.0),
    ],
    "relu(clip(x)) -> clip(x)": [lambda v: relay.nn.relu(clip(v(), 1.0, 6.0)), lambda v: relay.nn.relu(clip(v(), 0.0, 6.0))],
    "clip(relu(x)) -> clip(x)": [lambda v: clip(relay.nn.relu(v()), 0.0, 6.0), lambda v: clip(relay.nn.relu(v()), 1.0, 2.0)],
    "exp(log(x)) -> x": [unary("exp", "log")],
    "log(exp(x)) -> x": [unary("log", "exp")],
    "exp(x) * exp(y) -> exp(x + y)": [lambda v: relay.exp(v()) * relay.exp(v())],
    "sqrt(x) * sqrt(x) -> x": [lambda v: (lambda s: s * s)(relay.sqrt(v()))],
    "1 / sqrt(x) -> rsqrt(x)": [lambda v: v.const(1.0) / relay.sqrt(v())],
    "1 / x -> reciprocal(x)": [lambda v: v.const(1.0) / v()],
    "reciprocal(reciprocal(x)) -> x": [unary("reciprocal", "reciprocal")],
    "x / sqrt(y) -> x * rsqrt(y)": [lambda v: v() / relay.sqrt(v())],
    "c / sqrt(x) -> c * rsqrt(x)": [lambda v: v.const(2.5) / relay.sqrt(v())],
    "log(softmax(x)) -> log_softmax(x)": [lambda v: relay.log(relay.nn.softmax(v((3, 5)), axis=0))],
    "(x + c) + d -> x + (c + d)": [lambda v: (v() + v.const(3)) + v.const(2), lambda v: v.const(2) + (v.const(3) + v())],
    "(x * c) * d -> x * (c * d)": [lambda v: (v() * v.const(3)) * v.const(2)],
    "cast(x) -> x": [lambda v: relay.cast(v(), v.dtype)],
    "cast(cast(x)) -> cast(x)": [
        lambda v: relay.cast(
            relay.cast(v(), {"float32": "float64", "float16": "float32", "int32": "int64", "uint8": "int32", "bool": "float32"}.get(v.dtype, v.dtype)),
            "float32",
        ),
        lambda v: relay.cast(relay.cast(v(dtype="uint8"), "float32"), "int32"),
        lambda v: relay.cast(relay.cast(v(dtype="int64"), "int32"), "uint8"),
    ],
    "cast_like(x, y) -> cast(x)": [lambda v: relay.cast_like(v(), v((1,), "float64"))],
    "reinterpret(x) -> x": [lambda v: relay.reinterpret(v(), v.dtype)],
    "copy(x) -> x": [unary("copy"), unary("identity")],
    # Logic
    "not not x -> x": [unary("logical_not", "logical_not")],
    "x and x -> x": [same("logical_and")],
    "x or x -> x": [same("logical_or")],
    "x xor x -> false": [same("logical_xor")],
    "x and true -> x": [with_const("logical_and", True), with_const("logical_and", True, True)],
    "x and false -> false": [with_const("logical_and", False)],
    "x or false -> x": [with_const("logical_or", False, True)],
    "x or true -> true": [with_const("logical_or", True)],
    "x xor false -> x": [with_const("logical_xor", False)],
    "x and not x -> false": [lambda v: (lambda x: relay.logical_and(relay.logical_not(x), x))(v())],
    "x or not x -> true": [lambda v: (lambda x: relay.logical_or(x, relay.logical_not(x)))(v())],
    "x == true -> x": [with_const("equal", True), with_const("equal", True, True)],
    "x == false -> not x": [with_const("equal", False)],
    "x != false -> x": [with_const("not_equal", False)],
    "x != true -> not x": [with_const("not_equal", True, True)],
    "x & x -> x": [same("bitwise_and")],
    "x | x -> x": [same("bitwise_or")],
    "x ^ x -> 0": [same("bitwise_xor")],
    "x & 0 -> 0": [with_const("bitwise_and", 0)],
    "x | 0 -> x": [with_const("bitwise_or", 0, True)],
    "x ^ 0 -> x": [with_const("bitwise_xor", 0)],
    "x << 0 -> x": [with_const("left_shift", 0)],
    "x >> 0 -> x": [with_const("right_shift", 0)],
    "x == x -> true": [same("equal")],
    "x <= x -> true": [same("less_equal")],
    "x >= x -> true": [same("greater_equal")],
    "x != x -> false": [same("not_equal")],
    "x < x -> false": [same("less")],
    "x > x -> false": [same("greater")],
    "not x == y -> x != y": [negated("equal"), negated("equal", "float32"), negated("equal", "int32")],
    "not x != y -> x == y": [negated("not_equal"), negated("not_equal", "float32")],
    "not x < y -> x >= y": [negated("less", "int32")],
    "not x <= y -> x > y": [negated("less_equal", "int8")],
    "not x > y -> x <= y": [negated("greater", "uint8")],
    "not x >= y -> x < y": [negated("greater_equal", "int32")],
    "where(c, x, x) -> x": [choice(lambda v: (v(dtype="bool"), *([v()] * 2)))],
    "where(true, x, y) -> x": [choice(lambda v: (relay.const(True), v(), v())), choice(lambda v: (relay.const(np.ones((16, 1), bool)), v(), v((16,))))],
    "where(false, x, y) -> y": [choice(lambda v: (relay.const(False), v(), v()))],
    "where(c, where(c, x, z), y) -> where(c, x, y)": [lambda v: (lambda c: _call("where", c, _call("where", c, v(), v()), v()))(v(dtype="bool"))],
    "where(c, x, where(c, z, y)) -> where(c, x, y)": [lambda v: (lambda c: _call("where", c, v(), _call("where", c, v(), v())))(v(dtype="bool"))],
    "where(not c, x, y) -> where(c, y, x)": [choice(lambda v: (relay.logical_not(v(dtype="bool")), v(), v()))],
    # Moves
    "reshape(reshape(x)) -> reshape(x)": [
        lambda v: relay.reshape(relay.reshape(v((4, 6)), (2, 12)), (8, 3)),
        lambda v: relay.squeeze(relay.expand_dims(v((4, 6)), 1), [1]),
        lambda v: relay.nn.batch_flatten(relay.reshape(v((4, 6)), (2, 3, 4))),
        lambda v: relay.expand_dims(relay.expand_dims(v((0, 6)), 0), 2),
    ],
    "reshape(reshape(x)) -> reshape(x) (any shape)": [lambda v: relay.reshape(relay.reshape(v((relay.Any(), 6)), (-1, 2)), (-1, 3))],
    "reshape(x) -> x": [lambda v: relay.reshape(v((4, 6)), (4, 6)), lambda v: relay.squeeze(v((4, 6)), []), lambda v: relay.nn.batch_flatten(v((4, 6)))],
    "transpose(transpose(x)) -> transpose(x)": [
        lambda v: relay.transpose(relay.transpose(v((2, 3, 4)), (1, 2, 0)), (1, 0, 2)),
        lambda v: relay.transpose(relay.transpose(v((2, 3, 4)))),
        lambda v: relay.swapaxes(relay.transpose(v((2, 3, 4)), (0, 2, 1)), 1, 2),
        lambda v: relay.transpose(lt(v((2, 3, 4, 5)), "NCHW", "NHWC"), (0, 3, 1, 2)),
        lambda v: lt(relay.transpose(v((2, 3, 4, 5)), (0, 2, 3, 1)), "NHWC", "NCHW"),
    ],
    "transpose(x) -> x": [lambda v: relay.transpose(v((2, 3)), (0, 1)), lambda v: relay.swapaxes(v((2, 3)), 1, -1)],
    "transpose(x) -> reshape(x) where only extents of 1 move": [
        lambda v: relay.transpose(v((2, 1, 3, 1)), (0, 2, 1, 3)),
        lambda v: lt(v((2, 5, 1, 1)), "NCHW", "NHWC"),
        lambda v: relay.transpose(v((1, 1))),
    ],
    "layout_transform(layout_transform(x)) -> layout_transform(x)": [
        lambda v: lt(lt(v((1, 8, 2, 2)), "NCHW", "NCHW4c"), "NCHW4c", "NCHW"),
        lambda v: lt(lt(v((1, 8, 2, 2)), "NCHW", "NHWC"), "NHWC", "NCHW4c"),
    ],
    "layout_transform(x) -> x": [lambda v: lt(v((1, 2, 3, 4, 4)), "NCHW4c", "NCHW4c")],
    "reverse(reverse(x)) -> x": [lambda v: relay.reverse(relay.reverse(v((2, 3)), 1), -1)],
    "batch_matmul(transpose(x), y) -> batch_matmul(x, y)": [_matmul(lambda v: relay.nn.batch_matmul(relay.transpose(v((2, 4, 3)), (0, 2, 1)), v((2, 5, 4))))],
    "batch_matmul(x, transpose(y)) -> batch_matmul(x, y)": [_matmul(lambda v: relay.nn.batch_matmul(v((2, 3, 4)), relay.transpose(v((2, 4, 5)), (0, 2, 1))))],
    "matmul(transpose(x), y) -> matmul(x, y)": [_matmul(lambda v: relay.nn.matmul(relay.transpose(v((4, 3))), v((4, 5))))],
    "matmul(x, transpose(y)) -> matmul(x, y)": [_matmul(lambda v: relay.nn.matmul(v((3, 4)), relay.swapaxes(v((5, 4)), 0, 1)))],
    "broadcast_to(x) -> x": [lambda v: relay.broadcast_to(v((2, 3)), (2, 3))],
    "broadcast_to(broadcast_to(x)) -> broadcast_to(x)": [lambda v: relay.broadcast_to(relay.broadcast_to(v((1, 3)), (2, 3)), (4, 2, 3))],
    "broadcast_to(x) op y -> x op y": [binary("equal", lambda v: (relay.broadcast_to(v((1, 3)), (2, 3)), v((2, 3))))],
    "x op broadcast_to(y) -> x op y": [binary("not_equal", lambda v: (v((2, 3)), relay.broadcast_to(v((3,)), (2, 3))))],
    "full(c) op y -> c op y": [
        binary("equal", lambda v: (relay.full(v.const(1), (2, 3), v.dtype), v((2, 3)))),
        binary("not_equal", lambda v: (relay.ones((2, 3), v.dtype), v((2, 3)))),
    ],
    "x op full(c) -> x op c": [binary("equal", lambda v: (v((2, 3)), relay.zeros((2, 3), v.dtype)))],
    "tile(x, 1) -> x": [lambda v: relay.tile(v((2, 3)), (1, 1))],
    "repeat(x, 1) -> x": [lambda v: relay.repeat(v((2, 3)), 1, 0)],
    "zeros_like(x) -> zeros": [unary("zeros_like")],
    "ones_like(x) -> ones": [unary("ones_like")],
    "full_like(x, c) -> full(c)": [lambda v: relay.full_like(v((2, 3)), v(()))],
    "reshape_like(x, y) -> reshape(x)": [lambda v: relay.reshape_like(v((4, 6)), v((8, 3))), lambda v: relay.reshape_like(v((0, 6)), v((3, 0)))],
    "broadcast_to_like(x, y) -> broadcast_to(x)": [lambda v: relay.broadcast_to_like(v((1, 6)), v((4, 6)))],
    "collapse_sum_like(x, y) -> collapse_sum_to(x)": [lambda v: relay.collapse_sum_like(v((4, 6)), v((1, 6)))],
    "collapse_sum_like(x, y) -> x": [lambda v: relay.collapse_sum_like(v((4, 6)), v((4, 6)))],
    "slice_like(x, y) -> strided_slice(x)": [lambda v: relay.slice_like(v((4, 6)), v((2, 3)))],
    # Cuts
    "strided_slice(x) -> x": [lambda v: relay.strided_slice(v((4, 6)), [0, 0], [4, 100]), lambda v: relay.strided_slice(v((4, 6)), [-4], [4])],
    "strided_slice(strided_slice(x)) -> strided_slice(x)": [
        lambda v: relay.strided_slice(relay.strided_slice(v((9, 12)), [1, 2], [9, 12], [2, 3]), [1, 0], [4, 3], [2, 2]),
        lambda v: relay.strided_slice(relay.strided_slice(v((9, 12)), [2], [8]), [-3, 1], [-1, 5]),
        lambda v: relay.strided_slice(relay.strided_slice(v((9, 12)), [3], [9]), [4], [4]),
        lambda v: relay.strided_slice(relay.strided_slice(v((9, 12)), [1], [5], [1], [1], "size"), [0, 2], [3, 2], slice_mode="size"),
    ],
    "pad(x, 0) -> x": [lambda v: relay.nn.pad(v((2, 3)), ((0, 0), (0, 0)))],
    "pad(pad(x)) -> pad(x)": [lambda v: relay.nn.pad(relay.nn.pad(v((2, 3)), ((1, 0), (0, 2)), 1), ((0, 2), (1, 0)), 1)],
    "concatenate((x)) -> x": [lambda v: relay.concatenate([v((2, 3))], 1)],
    "stack((x)) -> expand_dims(x)": [lambda v: relay.stack([v((2, 3))], 1), lambda v: relay.stack([v((0, 3))], 0)],
    "concatenate(split(x)) -> x": [
        lambda v: relay.Call(op.get("concatenate"), [relay.split(v((4, 6)), 2, 1).astuple()], relay.concatenate([v((1, 1))], 1).attrs)
    ],
    "concatenate((split(x).0, split(x).1, ...)) -> x": [
        lambda v: relay.concatenate(parts_of(v, 3, 1), 1),
        lambda v: relay.concatenate(parts_of(v, (1, 3), 0), 0),
    ],
    # Reductions
    "max(x) over one element -> x": [lambda v: relay.max(v((4, 1)), 1), lambda v: relay.max(v((1, 4)), 0, keepdims=True)],
    "min(x) over one element -> x": [lambda v: relay.min(v((4, 1)), 1)],
    "sum(x) over one element -> x": [lambda v: relay.sum(v((4, 1)), 1)],
    "mean(x) over one element -> x": [lambda v: relay.mean(v((4, 1)), 1)],
    "prod(x) over one element -> x": [lambda v: relay.prod(v((4, 1)), 1)],
    "max(max(x)) -> max(x)": [
        lambda v: relay.max(relay.max(v((2, 3, 4)), 0), 1),
        lambda v: relay.max(relay.max(v((2, 3, 4)), 2, keepdims=True), [0, 2]),
        lambda v: relay.max(relay.max(v((2, 3, 4)), 1, keepdims=True), 0, keepdims=True),
    ],
    "min(min(x)) -> min(x)": [lambda v: relay.min(relay.min(v((2, 3, 4)), 1, exclude=True))],
    "all(all(x)) -> all(x)": [lambda v: relay.all(relay.all(v((2, 3, 4)), 0), 0)],
    "any(any(x)) -> any(x)": [lambda v: relay.any(relay.any(v((2, 3, 4)), 0), 0)],
    **{
        f"{name}(dequantize(x)) -> {name}(x)": [
            lambda v, f=f: f(relay.qnn.op.dequantize(v((3, 5), "int8"), relay.const(0.5), relay.const(3)), axis=1),
        ]
        for name, f in {"argmax": relay.argmax, "argmin": relay.argmin, "argsort": relay.argsort}.items()
    },
    "sum(sum(x)) -> sum(x)": [lambda v: relay.sum(relay.sum(v((2, 3, 4)), 0), 1)],
    "prod(prod(x)) -> prod(x)": [lambda v: relay.prod(relay.prod(v((2, 3, 4)), 0), 1)],
    "mean(mean(x)) -> mean(x)": [lambda v: relay.mean(relay.mean(v((2, 3, 4)), 0), 1)],
}


def rows():
    return [(str(text), str(label), int(domain)) for text, label, domain in get_global_func("relay.testing.simplify_rows")()]


def dtypes(domain):
    return (
        (["float32", "float64", "float16"] if domain & FLOATS else [])
        + (["int32", "uint8", "int64"] if domain & INTS else [])
        + (["bool"] if domain & BOOLS else [])
    )


def values(var, k, rng, kind):
    shape = [getattr(d, "value", 5) for d in var.type_annotation.shape]
    dtype = np.dtype(str(var.type_annotation.dtype))
    n = int(np.prod(shape))
    if dtype.kind == "b":
        flat = rng.integers(0, 2, n).astype(bool)
    elif dtype.kind in "iu":
        info = np.iinfo(dtype)
        if kind == "small":
            flat = rng.integers(0, 4, n).astype(dtype)
        else:
            edge = np.array([info.min, info.max, 0, 1, 2, info.max // 2], dtype)
            flat = np.where(rng.integers(0, 2, n) == 0, rng.choice(edge, n), rng.integers(info.min // 2, info.max // 2, n).astype(dtype))
    elif kind == "special":
        flat = np.array([SPECIAL[(i // len(SPECIAL) ** k) % len(SPECIAL)] for i in range(n)])
    elif kind == "mixed":
        flat = np.where(rng.integers(0, 2, n) == 0, rng.choice(SPECIAL, n), rng.normal(0, 3, n))
    elif kind == "small":
        flat = rng.integers(-4, 5, n).astype("float64")
    else:
        flat = rng.uniform(0.5, 2.0, n)
    with np.errstate(all="ignore"):
        return np.asarray(flat).astype(dtype).reshape(shape)


def run(*funcs, args):
    """What each function gives. The evaluator interprets an operator at first and compiles what comes back often, and the two may
    differ in the last bit of a function such as exp: so it is asked until all is compiled, and then once more."""
    run = [relay.create_executor("debug", baton.IRModule.from_expr(f)).evaluate() for f in funcs]
    for _ in range(9 if any(n in str(f) for f in funcs for n in INEXACT) else 0):
        for f in run:
            f(*args)
    return [f(*args).numpy() for f in run]


def agree(label, got, want, what):
    assert got.shape == want.shape and got.dtype == want.dtype, what
    if want.dtype.kind != "f":
        np.testing.assert_array_equal(got, want, err_msg=what)
    elif label == "exact":
        nan = np.isnan(want)
        np.testing.assert_array_equal(np.isnan(got), nan, err_msg=what)
        np.testing.assert_array_equal(got[~nan], want[~nan], err_msg=what)
        np.testing.assert_array_equal(np.signbit(got[~nan]), np.signbit(want[~nan]), err_msg=what + ": signs of zeros")
    elif label == "but NaN or zero":
        known = ~(np.isnan(want) | np.isnan(got))
        np.testing.assert_array_equal(got[known], want[known], err_msg=what)
    else:
        np.testing.assert_allclose(
            got, want, rtol={2: 4e-2, 4: 3e-6, 8: 1e-13}[want.dtype.itemsize], atol=1e-7 if want.dtype.itemsize > 2 else 1e-3, err_msg=what
        )


def without_nan(arrays):
    return [np.where(np.isnan(a), np.asarray(1, a.dtype), a) if a.dtype.kind == "f" else a for a in arrays]


def test_every_row_has_an_example():
    found = [text for text, _, _ in rows()]
    assert len(found) == len(set(found)) and len(found) > 100
    assert set(found) == set(EXAMPLES)


@pytest.mark.parametrize("text, label, domain", [pytest.param(*r, id=r[0]) for r in rows()])
def test_row(text, label, domain):
    """A row of SimplifyExpr changes nothing beyond what its label says."""
    applied = set()
    for i, example in enumerate(EXAMPLES[text]):
        for dtype in dtypes(domain):
            v = V(dtype)
            try:
                with np.errstate(all="ignore"):
                    body = example(v)
                func = relay.transform.InferType()(baton.IRModule.from_expr(relay.Function(v.made, body)))["main"]
            except (baton.error.CompileError, OverflowError, ValueError):
                continue  # the operators of this example do not take the dtype
            own = label if dtype.startswith("float") else "exact"
            level = LEVEL[own]
            out, trace = get_global_func("relay.testing.simplify_trace")(func, level)
            if text not in {str(t) for t in trace}:
                continue
            applied.add((i, dtype))
            if level != "strict":
                lower = "strict" if level == "contract" else "contract"
                assert text not in {str(t) for t in get_global_func("relay.testing.simplify_trace")(func, lower)[1]}
            out = relay.transform.InferType()(baton.IRModule.from_expr(out))["main"]
            assert baton.ir.structural_equal(out.ret_type, func.ret_type) or not func.ret_type
            assert baton.ir.structural_equal(out.body.checked_type, func.body.checked_type)
            assert relay.analysis.well_formed(out)
            rng = np.random.default_rng(zlib.crc32(text.encode()))
            kinds = ["small"] if getattr(example, "small", False) else ["plain"] * 3 if own == "reassociates" else ["special", "mixed", "mixed", "plain"]
            for kind in kinds:
                args = [values(x, k, rng, kind) for k, x in enumerate(v.made)]
                if own == "but NaN or zero" and str(func.body.checked_type.dtype) == "bool":
                    args = without_nan(args)
                agree(own, *run(out, func, args=args), f"{text}, example {i}, {dtype}, {kind}")
    assert {i for i, _ in applied} == set(range(len(EXAMPLES[text]))), f"only these examples were rewritten: {sorted(applied)}"
    if domain & INTS and domain != 7:
        assert any(a[1] in ("int32", "uint8", "int64") for a in applied), f"no integers were tried: {sorted(applied)}"


def test_unknown_extents_in_known_results():
    """The result's shape is known, an operand's is not."""
    x, y = relay.var("x", shape=(relay.Any(), 3)), relay.var("y", shape=(1, 3))
    func = relay.transform.InferType()(baton.IRModule.from_expr(relay.Function([x, y], relay.collapse_sum_like(x, y))))["main"]
    out, trace = get_global_func("relay.testing.simplify_trace")(func, "fast")
    assert out.same_as(func) and not len(trace)


def test_unknown_level():
    x = relay.var("x", shape=(2,))
    mod = baton.IRModule.from_expr(relay.Function([x], x + relay.const(0.0)))
    for fp, same in (("strict", True), ("contract", False), ("fast", False)):
        with baton.transform.PassContext(config={"fp": fp}):
            out = relay.transform.SimplifyExpr()(relay.transform.InferType()(mod))["main"].body
        assert isinstance(out, relay.Call) is same
    with pytest.raises(ValueError, match='"quick"; it is "strict", "relay", "contract" or "fast"'), baton.transform.PassContext(config={"fp": "quick"}):
        relay.transform.SimplifyExpr()(mod)

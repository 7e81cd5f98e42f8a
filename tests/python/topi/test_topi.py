# SPDX-License-Identifier: Apache-2.0
"""topi: operators on tensors of tensor expressions, compiled and compared with NumPy."""

import numpy as np
import pytest

import baton as tvm
from baton import te, topi
from baton.topi import testing

RNG = np.random.default_rng(0)


def f32(*shape):
    return RNG.standard_normal(shape).astype("float32")


def pads(x, before, after):
    return np.pad(x, list(zip(before, after, strict=True)))


CASES = {
    "add": (topi.add, [f32(2, 3), f32(3)], np.add),
    "a number": (lambda a: topi.multiply(a, 2.0), [f32(2, 3)], lambda a: a * 2),
    "subtract": (topi.subtract, [f32(2, 3), f32(2, 1)], np.subtract),
    "divide": (topi.divide, [f32(4), f32(4)], np.divide),
    "power": (topi.power, [np.abs(f32(4)), f32(4)], np.power),
    "maximum": (topi.maximum, [f32(4), f32(4)], np.maximum),
    "less": (topi.less, [f32(4), f32(4)], np.less),
    "equal": (topi.equal, [f32(4), f32(4)], np.equal),
    "logical_or": (lambda a, b: topi.logical_or(topi.greater(a, 0.0), topi.greater(b, 0.0)), [f32(4), f32(4)], lambda a, b: (a > 0) | (b > 0)),
    **{
        name: (getattr(topi, name), [np.abs(f32(5)) + 0.1], want)
        for name, want in {
            "exp": np.exp,
            "tanh": np.tanh,
            "log": np.log,
            "sqrt": np.sqrt,
            "abs": np.abs,
            "floor": np.floor,
            "negative": np.negative,
            "identity": lambda x: x,
            "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
        }.items()
    },
    "cast": (lambda a: topi.cast(a, "int32"), [f32(5) * 10], lambda a: a.astype("int32")),
    "clip": (lambda a: topi.clip(a, -0.5, 0.5), [f32(9)], lambda a: a.clip(-0.5, 0.5)),
    "reshape": (lambda a: topi.reshape(a, (3, 2)), [f32(2, 3)], lambda a: a.reshape(3, 2)),
    "transpose": (lambda a: topi.transpose(a, (1, 0)), [f32(2, 3)], np.transpose),
    "expand_dims": (lambda a: topi.expand_dims(a, 1), [f32(2, 3)], lambda a: a[:, None]),
    "squeeze": (lambda a: topi.squeeze(a, 0), [f32(1, 3)], lambda a: a[0]),
    "concatenate": (lambda a, b: topi.concatenate((a, b), axis=1), [f32(2, 3), f32(2, 1)], lambda a, b: np.concatenate([a, b], 1)),
    "stack": (lambda a, b: topi.stack([a, b], 0), [f32(2), f32(2)], lambda a, b: np.stack([a, b])),
    "split": (lambda a: topi.split(a, 3, axis=1)[1], [f32(2, 3)], lambda a: a[:, 1:2]),
    "strided_slice": (lambda a: topi.strided_slice(a, [0, 1], [2, 3]), [f32(2, 3)], lambda a: a[0:2, 1:3]),
    "flip": (lambda a: topi.flip(a, 1), [f32(2, 3)], lambda a: a[:, ::-1]),
    "take": (lambda a, i: topi.take(a, i, axis=0), [f32(4, 2), np.array([2, 0], "int32")], lambda a, i: a[i]),
    "where": (topi.where, [np.array([True, False]), f32(2), f32(2)], np.where),
    "tile": (lambda a: topi.tile(a, (2, 1)), [f32(2, 3)], lambda a: np.tile(a, (2, 1))),
    "repeat": (lambda a: topi.repeat(a, 2, 1), [f32(2, 3)], lambda a: a.repeat(2, 1)),
    "full_like": (lambda a: topi.full_like(a, 3.0), [f32(2)], lambda a: np.full_like(a, 3)),
    "full": (lambda a: topi.add(a, topi.full((2,), "float32", 3.0)), [f32(2)], lambda a: a + 3),
    "arange": (lambda a: topi.add(a, topi.arange(0.0, 4.0, 1.0)), [f32(4)], lambda a: a + np.arange(4, dtype="float32")),
    "broadcast_to": (lambda a: topi.broadcast_to(a, (4, 2)), [f32(2)], lambda a: np.broadcast_to(a, (4, 2))),
    "layout_transform": (lambda a: topi.layout_transform(a, "NCHW", "NHWC"), [f32(1, 2, 3, 4)], lambda a: a.transpose(0, 2, 3, 1)),
    "one_hot": (lambda i: topi.one_hot(i, 1.0, 0.0, 3, -1, "float32"), [np.array([0, 2], "int32")], lambda i: np.eye(3, dtype="float32")[i]),
    **{
        name: (lambda a, n=name: getattr(topi, n)(a, axis=1, keepdims=True), [f32(3, 4)], lambda a, f=want: f(a, axis=1, keepdims=True))
        for name, want in {"sum": np.sum, "max": np.max, "min": np.min, "prod": np.prod}.items()
    },
    "argmax": (lambda a: topi.argmax(a, axis=1), [f32(3, 4)], lambda a: a.argmax(1).astype("int32")),
    "matmul": (topi.matmul, [f32(2, 3), f32(3, 4)], np.matmul),
    "matmul transposed": (lambda a, b: topi.matmul(a, b, True, True), [f32(3, 2), f32(4, 3)], lambda a, b: a.T @ b.T),
    "tensordot": (lambda a, b: topi.tensordot(a, b, 1), [f32(2, 3), f32(3, 4)], lambda a, b: np.tensordot(a, b, 1)),
    "tensordot of axes": (lambda a, b: topi.tensordot(a, b, ((0, 1), (2, 0))), [f32(2, 3, 4), f32(3, 5, 2)], lambda a, b: np.tensordot(a, b, ((0, 1), (2, 0)))),
    "einsum": (lambda a, b: topi.einsum("ij,ij->i", a, b), [f32(2, 3), f32(2, 3)], lambda a, b: np.einsum("ij,ij->i", a, b)),
    "the same tensor twice": (lambda a: topi.multiply(a, a), [f32(3)], lambda a: a * a),
    "one after the other": (lambda a: topi.nn.relu(topi.add(topi.exp(a), a)), [f32(3)], lambda a: np.maximum(np.exp(a) + a, 0)),
    "nn.relu": (topi.nn.relu, [f32(5)], lambda a: np.maximum(a, 0)),
    "nn.leaky_relu": (lambda a: topi.nn.leaky_relu(a, 0.1), [f32(5)], lambda a: np.where(a > 0, a, a * np.float32(0.1))),
    "nn.softmax": (topi.nn.softmax, [f32(2, 5)], testing.softmax_python),
    "nn.log_softmax": (topi.nn.log_softmax, [f32(2, 5)], testing.log_softmax_python),
    "nn.dense": (lambda a, w, b: topi.nn.dense(a, w, b), [f32(2, 3), f32(4, 3), f32(4)], lambda a, w, b: a @ w.T + b),
    "nn.batch_matmul": (topi.nn.batch_matmul, [f32(2, 3, 4), f32(2, 5, 4)], lambda a, b: a @ b.transpose(0, 2, 1)),
    "nn.flatten": (topi.nn.flatten, [f32(2, 3, 4)], lambda a: a.reshape(2, 12)),
    "nn.bias_add": (lambda a, b: topi.nn.bias_add(a, b, 1), [f32(2, 3, 4), f32(3)], lambda a, b: a + b[:, None]),
    "nn.pad": (lambda a: topi.nn.pad(a, (1, 0), (2, 1)), [f32(2, 3)], lambda a: pads(a, (1, 0), (2, 1))),
    "nn.pad of one": (lambda a: topi.nn.pad(a, (1, 1)), [f32(2, 3)], lambda a: pads(a, (1, 1), (1, 1))),
    "nn.conv2d": (lambda a, w: topi.nn.conv2d(a, w, 2, 1, 1), [f32(1, 3, 8, 8), f32(4, 3, 3, 3)], lambda a, w: testing.conv2d_nchw_python(a, w, 2, 1)),
    "nn.conv2d_nchw": (
        lambda a, w: topi.nn.conv2d_nchw(a, w, 1, 0, 1),
        [f32(1, 3, 8, 8), f32(4, 3, 3, 3)],
        lambda a, w: testing.conv2d_nchw_python(a, w, 1, 0),
    ),
    "nn.conv2d_nhwc": (
        lambda a, w: topi.nn.conv2d_nhwc(a, w, 1, 0, 1),
        [f32(1, 8, 8, 3), f32(3, 3, 3, 4)],
        lambda a, w: testing.conv2d_nchw_python(a.transpose(0, 3, 1, 2), w.transpose(3, 2, 0, 1), 1, 0).transpose(0, 2, 3, 1),
    ),
    "nn.group_conv2d_nchw": (
        lambda a, w: topi.nn.group_conv2d_nchw(a, w, 1, 1, 1, 2),
        [f32(1, 4, 6, 6), f32(4, 2, 3, 3)],
        lambda a, w: testing.conv2d_nchw_python(a, w, 1, 1, groups=2),
    ),
    "nn.depthwise_conv2d_nchw": (
        lambda a, w: topi.nn.depthwise_conv2d_nchw(a, w, 1, 1, 1),
        [f32(1, 2, 6, 6), f32(2, 3, 3, 3)],
        lambda a, w: testing.conv2d_nchw_python(a, w.reshape(6, 1, 3, 3), 1, 1, groups=2),
    ),
    "nn.conv2d_transpose_nchw": (
        lambda a, w: topi.nn.conv2d_transpose_nchw(a, w, (2, 2), (1, 1), "float32"),
        [f32(1, 3, 4, 4), f32(3, 2, 3, 3)],
        lambda a, w: testing.conv2d_transpose_nchw_python(a, w, (2, 2), (1, 1), (0, 0)),
    ),
    "nn.conv1d": (lambda a, w: topi.nn.conv1d(a, w), [f32(1, 2, 8), f32(3, 2, 3)], lambda a, w: testing.conv1d_ncw_python(a, w, 1, 0, 1)),
    "nn.conv3d_ncdhw": (
        lambda a, w: topi.nn.conv3d_ncdhw(a, w, 1, 0, 1),
        [f32(1, 2, 4, 4, 4), f32(3, 2, 2, 2, 2)],
        lambda a, w: testing.conv3d_ncdhw_python(a, w, 1, 0),
    ),
    **{
        f"nn.pool2d {kind}": (
            lambda a, k=kind: topi.nn.pool2d(a, (2, 2), (2, 2), (1, 1), (0, 0, 0, 0), k),
            [f32(1, 2, 4, 4)],
            lambda a, f=want: f(a.reshape(1, 2, 2, 2, 2, 2), axis=(3, 5)),
        )
        for kind, want in {"max": np.max, "avg": np.mean}.items()
    },
    "nn.global_pool": (lambda a: topi.nn.global_pool(a, "avg"), [f32(1, 2, 4, 4)], lambda a: a.mean((2, 3), keepdims=True)),
    "nn.adaptive_pool": (lambda a: topi.nn.adaptive_pool(a, (1, 1), "max"), [f32(1, 2, 4, 4)], lambda a: a.max((2, 3), keepdims=True)),
    "nn.scale_shift_nchw": (topi.nn.scale_shift_nchw, [f32(1, 2, 3, 3), f32(2), f32(2)], lambda a, s, b: a * s[:, None, None] + b[:, None, None]),
    "nn.scale_shift_nhwc": (topi.nn.scale_shift_nhwc, [f32(1, 3, 3, 2), f32(2), f32(2)], lambda a, s, b: a * s + b),
    "nn.lrn": (lambda a: topi.nn.lrn(a, 3), [f32(1, 4, 3, 3)], lambda a: testing.lrn_python(a, 3, 1, 2, 0.0001, 0.75)),
    "nn.mirror_pad": (lambda a: topi.nn.mirror_pad(a, (1, 1), None, "REFLECT"), [f32(3, 3)], lambda a: np.pad(a, 1, "reflect")),
    "nn.upsampling": (lambda a: topi.nn.upsampling(a, 2, 2), [f32(1, 1, 2, 2)], lambda a: a.repeat(2, 2).repeat(2, 3)),
}


@pytest.mark.parametrize("name", list(CASES))
def test_computes(name):
    make, args, want = CASES[name]
    tensors = [te.placeholder(a.shape, str(a.dtype), f"arg{i}") for i, a in enumerate(args)]
    result = make(*tensors)
    right = np.asarray(want(*args))
    assert isinstance(result, te.Tensor) and tuple(int(d) for d in result.shape) == right.shape and result.dtype == right.dtype
    if result in tensors:  # nothing was computed
        assert (right == args[tensors.index(result)]).all()
        return
    out = tvm.nd.empty(right.shape, str(right.dtype))
    tvm.build([*tensors, result], target="llvm")(*map(tvm.nd.array, args), out)
    tvm.testing.assert_allclose(out.numpy(), right, rtol=1e-4, atol=1e-5)


def test_several_results_and_their_order():
    a = te.placeholder((2, 6), name="A")
    first, second, third = topi.split(a, 3, axis=1)
    assert [tuple(int(d) for d in t.shape) for t in (first, second, third)] == [(2, 2)] * 3 and first.op.same_as(second.op) or first.op is not None
    data = f32(2, 6)
    out = tvm.nd.empty((2, 2))
    tvm.build([a, topi.subtract(third, first)], target="llvm")(tvm.nd.array(data), out)
    assert (out.numpy() == data[:, 4:] - data[:, :2]).all()


def test_computations_go_on_in_tensor_expressions():
    a = te.placeholder((4,), name="A")
    b = topi.exp(a)
    c = te.compute((4,), lambda i: b[3 - i] + a[i], name="C")
    data = f32(4)
    out = tvm.nd.empty((4,))
    tvm.build([a, topi.nn.relu(c)], target="llvm")(tvm.nd.array(data), out)
    tvm.testing.assert_allclose(out.numpy(), np.maximum(np.exp(data)[::-1] + data, 0), rtol=1e-5)


def test_sizes_that_are_variables():
    n = te.size_var("n")
    a, b = te.placeholder((n, 3), name="A"), te.placeholder((n, 3), name="B")
    f = tvm.build([a, b, topi.add(a, b)], target="llvm")
    for rows in (1, 5):
        x, out = f32(rows, 3), tvm.nd.empty((rows, 3))
        f(tvm.nd.array(x), tvm.nd.array(x), out)
        assert (out.numpy() == x + x).all()


def test_what_has_no_loops_and_what_is_not_there():
    a = te.placeholder((4,), name="A")
    with pytest.raises(tvm.error.UnsupportedError, match="`unique` has no loops"):
        topi.unique(a)
    with pytest.raises(tvm.error.UnsupportedError, match="make it a te.placeholder"):
        topi.add(a, np.ones(4, "float32"))
    for module, name in ((topi, "no_such_thing"), (topi.nn, "no_such_thing")):
        with pytest.raises(AttributeError, match="no_such_thing"):
            getattr(module, name)
    with pytest.raises(tvm.TVMError):
        topi.add(a, te.placeholder((5,), name="B"))
    with pytest.raises(ValueError, match="pool_type"):
        topi.nn.pool2d(te.placeholder((1, 1, 4, 4)), (2, 2), (1, 1), (1, 1), (0, 0, 0, 0), "sum")
    assert {"add", "nn", "exp"} <= set(dir(topi)) and {"relu", "conv2d", "softmax"} <= set(dir(topi.nn)) and topi.exp.__doc__
    assert topi.utils.prod((2, 3)) == 6 and topi.utils.prod(()) == 1

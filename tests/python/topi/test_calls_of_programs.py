# SPDX-License-Identifier: Apache-2.0
"""Functions of topi by the arguments that programs of Relay 0.8 give, beside NumPy."""

import numpy as np
import pytest

import baton as tvm
import baton.topi.testing
from baton import te, topi


def test_simulated_quantization_of_tensors():
    A = te.placeholder((4,), name="A")
    s, z = te.placeholder((), name="s"), te.placeholder((), name="z", dtype="int32")
    Q = topi.nn.qnn.simulated_quantize(A, "int8", s, z)
    D = topi.nn.qnn.simulated_dequantize(Q, "int8", s, z)
    f = tvm.build([A, s, z, D], target="llvm")
    out = tvm.nd.empty((4,), "float32")
    f(tvm.nd.array(np.array([0.1, 0.26, -3, 1000], "float32")), tvm.nd.array(np.float32(0.5)), tvm.nd.array(np.int32(0)), out)
    np.testing.assert_allclose(out.numpy(), [0, 0.5, -3, 63.5])


def test_helpers_of_topi():
    u = topi.utils
    assert u.get_max_power2_factor(24) == 8 and u.get_max_power2_factor(24, 8) == 4 and u.equal_const_int(tvm.tir.IntImm("int32", 3), 3)
    assert u.is_empty_shape((2, 0)) and u.get_shape((1, 2, 3, 4), "NCHW", "NHWC") == (1, 3, 4, 2)
    assert u.ravel_index((1, 2), (3, 4)) == 6 and u.unravel_index(6, (3, 4)) == [1, 2] and int(u.simplify(tvm.tir.IntImm("int32", 2) + 3)) == 5
    assert topi.nn.utils.get_pad_tuple(1, (3, 3)) == (1, 1, 1, 1) and topi.nn.utils.get_pad_tuple("SAME", (3, 5)) == (1, 2, 1, 2)
    A = te.placeholder((4,), name="A")
    B = topi.add(topi.exp(A), u.const_vector(np.arange(4, dtype="float32")))
    s = topi.generic.schedule_injective([B])
    f = tvm.build(s, [A, B], "llvm")
    out = tvm.nd.empty((4,), "float32")
    f(tvm.nd.array(np.zeros(4, "float32")), out)
    assert out.numpy().tolist() == [1, 2, 3, 4]
    assert topi.image.resize2d(te.placeholder((1, 1, 2, 2)), (4, 4)).shape[2] == 4 and topi.x86.schedule_softmax(topi.nn.softmax(te.placeholder((2, 3))))
    want = topi.testing.dense(np.ones((2, 3), "float32"), -np.ones((4, 3), "float32"), np.ones(4, "float32"), use_bias=True, use_relu=True)
    assert want.shape == (2, 4) and (want == 0).all()


def computed(out, *inputs):
    """The value of a tensor of te for arrays, one for each placeholder."""
    places = [te.placeholder(x.shape, str(x.dtype), name=f"p{i}") for i, x in enumerate(inputs)]
    made = out(*places)
    got = tvm.nd.empty(tuple(int(d) for d in made.shape), made.dtype)
    tvm.build(topi.testing.get_injective_schedule("llvm")([made]), [*places, made], "llvm")(*map(tvm.nd.array, inputs), got)
    return got.numpy()


def test_convolutions_by_layout():
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((1, 4, 6, 6)).astype("float32"), rng.standard_normal((8, 4, 3, 3)).astype("float32")
    want, p = topi.testing.conv2d_nchw_python(x, w, 1, 1), topi.nn
    np.testing.assert_allclose(
        computed(lambda a, b: p.conv2d_hwcn(a, b, 1, 1, 1), x.transpose(2, 3, 1, 0).copy(), w.transpose(2, 3, 1, 0).copy()),
        want.transpose(2, 3, 1, 0),
        rtol=1e-4,
        atol=1e-5,
    )
    one = rng.standard_normal((4, 1, 3, 3)).astype("float32")
    want = topi.testing.depthwise_conv2d_python_nchw(x, one, 1, (1, 1))
    np.testing.assert_allclose(
        computed(lambda a, b: p.depthwise_conv2d_nhwc(a, b, 1, 1, 1), x.transpose(0, 2, 3, 1).copy(), one.transpose(2, 3, 0, 1).copy()),
        want.transpose(0, 2, 3, 1),
        rtol=1e-4,
        atol=1e-5,
    )
    x1, w1 = rng.standard_normal((1, 4, 9)).astype("float32"), rng.standard_normal((3, 4, 3)).astype("float32")
    want = topi.testing.conv1d_ncw_python(x1, w1, 1, 0, 1)
    np.testing.assert_allclose(computed(lambda a, b: p.conv1d_ncw(a, b), x1, w1), want, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(
        computed(lambda a, b: p.conv1d_nwc(a, b), x1.transpose(0, 2, 1).copy(), w1.transpose(2, 1, 0).copy()), want.transpose(0, 2, 1), rtol=1e-4, atol=1e-5
    )
    compute, schedule = topi.testing.get_conv2d_nchw_implement("llvm")
    assert compute is p.conv2d_nchw and callable(schedule)


def test_more_of_topi():
    x = np.arange(6, dtype="int32").reshape(2, 3) - 3
    two = np.full((1,), 2, "int32")
    assert (computed(topi.floordiv, x, two) == x // 2).all() and (computed(topi.floormod, x, two) == x % 2).all()
    assert (computed(lambda a: topi.collapse_sum(a, (1, 3)), x) == x.sum(0, keepdims=True)).all()
    assert [int(d) for d in topi.expand_like(te.placeholder((3,)), te.placeholder((2, 3)), 0).shape] == [2, 3]
    assert topi.testing.dispatch("llvm", {"generic": 1, "cpu": 2}) == 2 and topi.testing.dispatch("cuda", {"generic": 1, "cpu": 2}) == 1


def f32(*shape, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype("float32")


def test_convolutions_of_topi_take_padding_by_name():
    data, kernel = f32(1, 3, 8, 8), f32(4, 3, 3, 3, seed=1)
    x, k = te.placeholder(data.shape, name="x"), te.placeholder(kernel.shape, name="k")
    for made, padding in [
        (topi.nn.conv2d_nchw(x, k, 1, "SAME", 1), 1),
        (topi.nn.conv2d(x, k, 1, "VALID", 1, "NCHW", "float32"), 0),
        (topi.nn.conv2d(x, k, 1, 1, 1, "NCHW", "OIHW", "float32"), 1),
    ]:
        out = tvm.nd.empty([int(d) for d in made.shape])
        tvm.build(te.create_schedule(made.op), [x, k, made], "llvm")(tvm.nd.array(data), tvm.nd.array(kernel), out)
        np.testing.assert_allclose(out.numpy(), tvm.topi.testing.conv2d_nchw_python(data, kernel, 1, padding), rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match='"FULL"'):
        topi.nn.conv2d_nchw(x, k, 1, "FULL", 1)


def test_indices_side_by_side_in_topi():
    data, rows, columns = f32(4, 5), np.array([[0, 1], [3, 2]]), np.array([1, 4])
    x, i, j = (te.placeholder(v.shape, dtype=str(v.dtype), name=n) for n, v in zip("xij", (data, rows, columns), strict=True))
    made, out = topi.adv_index(x, [i, j]), tvm.nd.empty((2, 2))
    tvm.build(te.create_schedule(made.op), [x, i, j, made], "llvm")(tvm.nd.array(data), tvm.nd.array(rows), tvm.nd.array(columns), out)
    assert (out.numpy() == data[rows, columns]).all()


def test_quotient_as_a_size():
    n, block = 64, 32
    a = te.placeholder((n / 2, n), name="A")
    packed = te.compute((n / block, n / 2, block), lambda x, y, z: a[y, x * block + z], name="packed")
    assert [int(d) for d in packed.shape] == [2, 32, 32]
    data = np.random.default_rng(0).standard_normal((32, 64), "float32")
    out = tvm.nd.empty((2, 32, 32))
    tvm.build(te.create_schedule(packed.op), [a, packed], "llvm")(tvm.nd.array(data), out)
    np.testing.assert_array_equal(out.numpy(), data.reshape(32, 2, 32).transpose(1, 0, 2))


def test_pure_extern_call():
    a = te.placeholder((8,), name="A")
    b = te.compute(a.shape, lambda i: tvm.tir.call_pure_extern("float32", "expf", a[i]), name="B")
    data, out = np.linspace(-1, 1, 8, dtype="float32"), tvm.nd.empty((8,))
    tvm.build(te.create_schedule(b.op), [a, b], "llvm")(tvm.nd.array(data), out)
    np.testing.assert_allclose(out.numpy(), np.exp(data), rtol=1e-6)

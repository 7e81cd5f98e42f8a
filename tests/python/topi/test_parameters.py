# SPDX-License-Identifier: Apache-2.0
"""Names, orders and defaults of parameters of topi, and functions beyond Relay's own; compared with NumPy."""

import inspect

import numpy as np
import pytest

import baton as tvm
from baton import relay, te, topi
from baton.topi.vision import rcnn, ssd

RNG = np.random.default_rng(0)


def f32(*shape):
    return RNG.standard_normal(shape).astype("float32")


def ints(high, *shape, dtype="int32"):
    return RNG.integers(0, high, shape).astype(dtype)


def computed(f, *arrays):
    """The results of a function of tensors, by a schedule."""
    inputs = [te.placeholder(a.shape, str(a.dtype), f"in{i}") for i, a in enumerate(arrays)]
    results = f(*inputs)
    several = list(results) if isinstance(results, (list, tuple)) else [results]
    outs = [tvm.nd.empty([int(d) for d in t.shape], str(t.dtype)) for t in several]
    tvm.build(te.create_schedule([t.op for t in several]), [*inputs, *several], "llvm")(*map(tvm.nd.array, arrays), *outs)
    return [o.numpy() for o in outs] if isinstance(results, (list, tuple)) else outs[0].numpy()


def packed(x):
    """Signs of the last axis, 32 in a number."""
    bits = (x >= 0).astype("uint8").reshape(*x.shape[:-1], -1, 32)
    return np.packbits(bits, axis=-1).view(">u4").astype("uint32")[..., 0]


X, Y, D = f32(4, 6), f32(4, 6), f32(2, 64)
NARROW, WEIGHT = ints(4, 1, 3, 6, 6), ints(2, 2, 3, 3, 3)


def conv(x, w):
    return tvm.topi.testing.conv2d_nchw_python(x.astype("float32"), w.astype("float32"), 1, 0).astype("int16")


# fmt: off
CASES = {
    "argmax": (lambda a: topi.argmax(a, axis=1), lambda a: a.argmax(1).astype("int32"), [X]),
    "argsort": (lambda a: topi.argsort(a, axis=1), lambda a: a.argsort(1).astype("float32"), [X]),
    "argsort, downwards": (lambda a: topi.argsort(data=a, axis=0, is_ascend=0, dtype="int32"), lambda a: (-a).argsort(0).astype("int32"), [X]),
    "sort": (lambda a: topi.sort(a, axis=1), lambda a: np.sort(a, 1), [X]),
    "sort, then more": (lambda a: topi.add(topi.sort(topi.multiply(a, -1.0), axis=1), 1.0), lambda a: np.sort(-a, 1) + 1, [X]),
    "topk": (lambda a: topi.topk(a, k=2)[1], lambda a: (-a).argsort(1)[:, :2].astype("int64"), [X]),
    "topk, values": (lambda a: topi.topk(a, 3, axis=1, ret_type="values"), lambda a: -np.sort(-a, 1)[:, :3], [X]),
    "searchsorted": (lambda a, b: topi.searchsorted(a, b), lambda a, b: np.searchsorted(a, b).astype("int64"), [np.sort(f32(9)), f32(5)]),
    "transpose": (lambda a: topi.transpose(a=a, axes=(1, 0)), np.transpose, [X]),
    "reshape": (lambda a: topi.reshape(a=a, newshape=(3, 8)), lambda a: a.reshape(3, 8), [X]),
    "concatenate": (lambda a, b: topi.concatenate(a_tuple=(a, b), axis=1), lambda a, b: np.concatenate([a, b], 1), [X, Y]),
    "take": (lambda a, i: topi.take(a=a, indices=i, axis=1), lambda a, i: a.take(i, 1), [X, ints(6, 3)]),
    "split": (lambda a: topi.split(ary=a, indices_or_sections=2, axis=1), lambda a: np.split(a, 2, 1), [X]),
    "strided_slice": (lambda a: topi.strided_slice(a=a, begin=[1, 0], end=[4, 5], strides=[1, 2]), lambda a: a[1:4, 0:5:2], [X]),
    "cast": (lambda a: topi.cast(x=a, dtype="int32"), lambda a: a.astype("int32"), [X]),
    "clip": (lambda a: topi.clip(x=a, a_min=-0.5, a_max=0.5), lambda a: a.clip(-0.5, 0.5), [X]),
    "cumsum": (lambda a: topi.cumsum(a, axis=0), lambda a: a.cumsum(0), [X]),
    "sum": (lambda a: topi.sum(data=a, axis=-1, keepdims=True), lambda a: a.sum(-1, keepdims=True), [X]),
    "trunc_divide": (lambda a, b: topi.trunc_divide(a, b), lambda a, b: np.trunc(a / b), [X, Y]),
    "trunc_mod": (lambda a, b: topi.trunc_mod(lhs=a, rhs=b), np.fmod, [ints(50, 6) - 25, ints(6, 6) + 1]),
    "broadcast_add": (lambda a, b: topi.broadcast_add(a, b), np.add, [X, f32(6)]),
    "broadcast_mul": (lambda a, b: topi.broadcast_mul(a, b), np.multiply, [X, f32(6)]),
    "relu": (lambda a: topi.nn.relu(x=a), lambda a: a.clip(0), [X]),
    "leaky_relu": (lambda a: topi.nn.leaky_relu(x=a, alpha=0.25), lambda a: np.where(a > 0, a, a / 4), [X]),
    "softmax": (lambda a: topi.nn.softmax(x=a, axis=0), lambda a: np.exp(a) / np.exp(a).sum(0), [X]),
    "dilate": (lambda a: topi.nn.dilate(a, (2, 1), name="d"), lambda a: tvm.topi.testing.dilate_python(a, (2, 1)), [X]),
    "batch_to_space_nd": (lambda a: topi.nn.batch_to_space_nd(a, [2, 2], [0, 0], [0, 1]), lambda a: tvm.topi.testing.batch_to_space_nd_python(a, [2, 2], [0, 0], [0, 1]), [f32(4, 2, 3)]),
    "space_to_batch_nd": (lambda a: topi.nn.space_to_batch_nd(a, [2, 2], [0, 0], [0, 1]), lambda a: tvm.topi.testing.space_to_batch_nd_python(a, [2, 2], [0, 0], [0, 1]), [f32(1, 4, 3)]),
    "adaptive_pool1d": (lambda a: topi.nn.adaptive_pool1d(a, (3,), "max"), lambda a: a.reshape(1, 2, 3, 2).max(-1), [f32(1, 2, 6)]),
    "adaptive_pool3d": (lambda a: topi.nn.adaptive_pool3d(a, (1, 1, 1), "avg"), lambda a: a.mean((2, 3, 4), keepdims=True), [f32(1, 2, 2, 3, 4)]),
    "scale_shift_nchwc": (lambda a, b, c: topi.nn.scale_shift_nchwc(a, b, c), lambda a, b, c: a * b[:, None, None] + c[:, None, None], [f32(1, 2, 3, 3, 4), f32(2, 4), f32(2, 4)]),
    "binarize_pack": (topi.nn.binarize_pack, packed, [D]),
    "binary_dense": (lambda a, b: topi.nn.binary_dense(topi.nn.binarize_pack(a), topi.nn.binarize_pack(b)), lambda a, b: (np.sign(a) @ np.sign(b).T).astype("int32"), [D, f32(3, 64)]),
    "bitpack": (lambda a: topi.nn.bitpack(a, 2, 1, 2, "uint8"), lambda a: np.stack([np.packbits((a >> b & 1).astype("uint8"), axis=1) for b in range(2)], 2), [ints(4, 2, 16)]),
    "bitserial_conv2d_nchw": (lambda a, b: topi.nn.bitserial_conv2d_nchw(a, b, 1, 0, 2, 1, unipolar=False), conv, [NARROW, WEIGHT]),
    "bitserial_conv2d, unipolar": (lambda a, b: topi.nn.bitserial_conv2d_nchw(a, b, (1, 1), (0, 0), 2, 1), lambda a, b: conv(a, 2 * b - 1), [NARROW, WEIGHT]),
    "bitserial_conv2d_nhwc": (lambda a, b: topi.nn.bitserial_conv2d_nhwc(a, b, 1, 0, 2, 1, unipolar=False),
                              lambda a, b: conv(a.transpose(0, 3, 1, 2), b.transpose(3, 2, 0, 1)).transpose(0, 2, 3, 1), [NARROW.transpose(0, 2, 3, 1), WEIGHT.transpose(2, 3, 1, 0)]),
    "bitserial_dense": (lambda a, b: topi.nn.bitserial_dense(a, b, 2, 2, unipolar=True), lambda a, b: (a @ (2 * b - 3).T).astype("int16"), [ints(4, 2, 8), ints(4, 3, 8)]),
    "dilation2d": (lambda a, w: topi.image.dilation2d_nchw(a, w, 1, 0, (1, 1)), lambda a, w: np.array([[[[(a[0, 0, i : i + 2, j : j + 2] + w[0]).max() for j in range(3)] for i in range(3)]]]), [f32(1, 1, 4, 4), f32(1, 2, 2)]),
    "deformable_conv2d_nhwc": (lambda a, o, w: topi.nn.deformable_conv2d_nhwc(a, o, w, 1, 1, 1, 1, 1, "float32"),
                               lambda a, o, w: tvm.topi.testing.deformable_conv2d_nhwc_python(a, o, w, 1, 1, 1, 1, 1), [f32(1, 5, 5, 2), f32(1, 5, 5, 18), f32(3, 3, 2, 4)]),
    "sparse_dense_sp_rhs": (topi.nn.sparse_dense_sp_rhs, lambda x, *_: x @ np.array([[0, 2.0, 0], [1, 0, 3]], "float32").T,
                            [f32(4, 3), np.array([2, 1, 3], "float32"), np.array([1, 0, 2], "int32"), np.array([0, 1, 3], "int32")]),
    "reorg": (lambda a: topi.vision.reorg(a, 2), lambda a: tvm.topi.testing.reorg_python(a, 2), [f32(1, 4, 4, 4)]),
    "roi_pool": (lambda a, r: rcnn.roi_pool_nchw(a, r, 2, 1.0), lambda a, r: tvm.topi.testing.roi_pool_nchw_python(a, r, 2, 1.0), [f32(1, 2, 8, 8), np.array([[0, 1, 1, 6, 6]], "float32")]),
    "roi_align": (lambda a, r: rcnn.roi_align_nchw(a, r, (2, 2), 1.0, "avg", 2), lambda a, r: tvm.topi.testing.roi_align_nchw_python(a, r, (2, 2), 1.0, 2, b"avg"), [f32(1, 2, 8, 8), np.array([[0, 1, 1, 6, 6]], "float32")]),
}
# fmt: on


@pytest.mark.parametrize("name", CASES)
def test_function(name):
    f, reference, arrays = CASES[name]
    got, want = computed(f, *arrays), reference(*arrays)
    for g, w in zip(got, want, strict=True) if isinstance(got, list) else [(got, want)]:
        assert g.dtype == w.dtype
        np.testing.assert_allclose(g, w, rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("add", "(lhs, rhs)"),
        ("transpose", "(a, axes=None)"),
        ("argsort", "(data, valid_count=None, axis=-1, is_ascend=1, dtype='float32')"),
        ("topk", "(data, k=1, axis=-1, ret_type='both', is_ascend=False, dtype='int64')"),
        ("nn.prelu", "(x, slope, axis=1)"),
    ],
)
def test_parameters(name, parameters):
    found = topi
    for part in name.split("."):
        found = getattr(found, part)
    assert str(inspect.signature(found)) == parameters


def test_expressions_that_are_no_tensors():
    x = te.var("x", "float32")
    assert tvm.ir.structural_equal(topi.add(x, 2.0), x + 2.0) and tvm.ir.structural_equal(topi.exp(x), tvm.tir.exp(x))
    assert isinstance(topi.floor_mod(te.var("n"), 4), tvm.tir.PrimExpr)


def test_random_numbers_of_a_key():
    key = relay.create_executor("debug").evaluate(relay.random.threefry_key(7)).numpy()
    after, numbers = computed(lambda k: topi.random.uniform(k, 2.0, 4.0, (40, 50), "float32"), key)
    assert (after != key).any() and 2 <= numbers.min() < 2.1 and 3.9 < numbers.max() < 4 and abs(numbers.mean() - 3) < 0.05
    _, normal = computed(lambda k: topi.random.normal(k, 5.0, 2.0, (40, 50), "float32"), key)
    assert abs(normal.mean() - 5) < 0.2 and abs(normal.std() - 2) < 0.1
    left, right = computed(topi.random.threefry_split, key)
    assert (left != right).any()
    assert computed(lambda k: topi.random.threefry_generate(k, (4,)), key)[1].dtype == "uint64"


def test_normal_numbers_of_relay():
    key = relay.random.threefry_key(1)
    made = relay.create_executor("graph").evaluate(relay.random.normal(key, (64, 64), "float64", 1.0, 3.0)[1]).numpy()
    assert made.shape == (64, 64) and made.dtype == "float64" and abs(made.mean() - 1) < 0.2 and abs(made.std() - 3) < 0.2
    plain = relay.create_executor("graph").evaluate(relay.random.normal((64, 64), seed=3.0, mean=2.0)).numpy()
    assert abs(plain.mean() - 2) < 0.1


def test_boxes():
    boxes = computed(lambda a: ssd.multibox_prior(a, sizes=(0.5, 0.25), ratios=(1, 2)), f32(1, 3, 4, 4))
    want = relay.create_executor("debug").evaluate(relay.vision.multibox_prior(relay.const(f32(1, 3, 4, 4)), (0.5, 0.25), (1, 2))).numpy()
    np.testing.assert_allclose(boxes, want, rtol=1e-6)
    scores, moves = np.array([[[0.1, 0.2], [0.8, 0.1], [0.1, 0.7]]], "float32"), np.zeros((1, 8), "float32")
    anchors = np.array([[[0.1, 0.1, 0.4, 0.4], [0.5, 0.5, 0.9, 0.9]]], "float32")
    found = computed(ssd.multibox_detection, scores, moves, anchors)
    assert found.shape == (1, 2, 6) and sorted(found[0, :, 0]) == [0, 1]


def test_helpers():
    utils = topi.utils
    assert utils.get_float_tuple([1, tvm.tir.const(2.5)]) == (1.0, 2.5) and utils.ceil_div(7, 2) == 4
    assert utils.is_dynamic_shape((1, te.var("n"))) and not utils.is_dynamic_shape((1, tvm.tir.const(3)))
    assert utils.nchw_xc_layout("NCHW16c") and not utils.nchw_xc_layout("NCHW") and utils.nchw_pack_layout("NCHW1n16c")
    assert utils.swap([1, 2, 3], 0) == [2, 1, 0] and issubclass(topi.InvalidShapeError, ValueError)
    assert topi.nn.get_pad_tuple((1, 2), (3, 3)) == (1, 2, 1, 2) and topi.nn.get_pad_tuple3d("SAME", (3, 3, 3)) == (1,) * 6
    with pytest.raises(tvm.error.UnsupportedError, match="valid_count"):
        topi.argsort(te.placeholder((2, 3)), te.placeholder((2,), "int32"))


def test_winograds_matrices():
    from baton.topi.nn.winograd_util import winograd_transform_matrices

    a, b, g = winograd_transform_matrices(6, 3, "float32")
    assert [tuple(map(int, m.shape)) for m in (a, b, g)] == [(8, 6), (8, 8), (8, 3)]
    found = [computed(lambda m=m: m) for m in (a, b, g)]
    data, weight = RNG.standard_normal(8), RNG.standard_normal(3)
    np.testing.assert_allclose(found[0].T @ ((found[2] @ weight) * (found[1].T @ data)), np.correlate(data, weight, "valid"), rtol=1e-3, atol=1e-4)


def test_an_argument_that_nothing_reads():
    x = te.placeholder((2, 3), name="x")
    y = topi.full_like(x, 3.0)
    run, out = tvm.build(topi.generic.schedule_injective(y), [x, y], "llvm"), tvm.nd.empty((2, 3))
    run(tvm.nd.array(f32(2, 3)), out)
    assert (out.numpy() == 3).all()


def test_layouts_of_convolutions_by_both_names():
    x, w = f32(1, 5, 5, 2), f32(3, 3, 2, 4)
    both = [computed(lambda a, b, name=name: topi.nn.conv2d(a, b, 1, 1, 1, **{name: "NHWC"}), x, w) for name in ("layout", "data_layout")]
    np.testing.assert_array_equal(*both)
    np.testing.assert_allclose(both[0], topi.testing.conv2d_nhwc_python(x, w, 1, 1), rtol=1e-4, atol=1e-4)

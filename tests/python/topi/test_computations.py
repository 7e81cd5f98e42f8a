# SPDX-License-Identifier: Apache-2.0
"""Computations of topi beside NumPy."""

import numpy as np
import pytest

import baton as tvm
import baton.contrib.utils
import baton.testing
from baton import te, tir, topi


def test_topi_symbolic():
    n = te.var('n')
    m = te.var('m')
    A = te.placeholder((n, m), name='A')
    B = topi.transpose(A, (1, 0))
    assert B.shape[0] == m and B.shape[1] == n
    s = te.create_schedule(B.op)
    f = tvm.build(s, [A, B], 'llvm')
    a = tvm.nd.array(np.arange(6, dtype='float32').reshape(2, 3))
    b = tvm.nd.empty((3, 2))
    f(a, b)
    assert (b.numpy() == a.numpy().T).all()


def test_topi_symbolic_broadcast():
    n = te.var('n')
    A = te.placeholder((n, 4))
    B = te.placeholder((n, 4))
    C = topi.add(A, B)
    assert C.shape[0] == n
    f = tvm.build(te.create_schedule(C.op), [A, B, C], 'llvm')
    a = tvm.nd.array(np.ones((3, 4), 'float32'))
    c = tvm.nd.empty((3, 4))
    f(a, a, c)
    assert (c.numpy() == 2).all()


def test_topi_symbolic_sum():
    n = te.var('n')
    A = te.placeholder((n, 4))
    B = topi.sum(A, axis=0)
    C = topi.max(A, axis=1)
    assert C.shape[0] == n
    f = tvm.build(te.create_schedule(B.op), [A, B], 'llvm')
    b = tvm.nd.empty((4,))
    f(tvm.nd.array(np.ones((7, 4), 'float32')), b)
    assert (b.numpy() == 7).all()


def test_topi_expand_squeeze_concat():
    n = te.var('n')
    A = te.placeholder((n, 4))
    assert topi.expand_dims(A, 1).shape[1] == 1
    assert topi.squeeze(te.placeholder((1, n))).shape[0] == n
    topi.concatenate([A, A], 0)
    S = topi.split(te.placeholder((8, 4)), 2, 0)
    assert len(S) == 2


def test_topi_strided_slice():
    A = te.placeholder((6, 7))
    B = topi.strided_slice(A, [1, 2], [5, 7], [2, 1])
    assert tuple(int(x) for x in B.shape) == (2, 5)


def test_topi_scalars():
    x = te.var('x', 'float32')
    y = topi.add(x, 1.0)
    assert isinstance(y, tir.PrimExpr)
    assert topi.add(1, 2) is not None
    A = te.placeholder((4,))
    assert isinstance(topi.add(A, 1), te.Tensor)
    assert isinstance(topi.multiply(2, A), te.Tensor)
    assert topi.maximum(A, x).shape[0] == 4


def test_topi_pad():
    n = te.var('n')
    A = te.placeholder((n, 4))
    B = topi.nn.pad(A, (1, 1), (0, 2))
    assert int(B.shape[1]) == 7


def test_topi_pad_run():
    A = te.placeholder((2, 3))
    B = topi.nn.pad(A, [1, 0], [0, 1], pad_value=2.0)
    f = tvm.build(te.create_schedule(B.op), [A, B], 'llvm')
    b = tvm.nd.empty((3, 4))
    f(tvm.nd.array(np.zeros((2, 3), 'float32')), b)
    assert b.numpy()[0].tolist() == [2] * 4


def test_topi_tag():
    from baton.topi import tag

    assert tag.is_broadcast(tag.ELEMWISE) and tag.is_injective('injective') and tag.COMM_REDUCE == 'comm_reduce'
    A = te.placeholder((3,))
    assert topi.exp(A).op.tag == 'elemwise'
    assert topi.add(A, A).op.tag in ('broadcast', 'elemwise')
    assert topi.sum(A, axis=0).op.tag == 'comm_reduce'
    assert topi.transpose(te.placeholder((3, 4))).op.tag == 'injective'


def test_topi_argmax():
    A = te.placeholder((3, 4))
    B = topi.argmax(A, axis=1)
    assert B.dtype == 'int32'
    topi.argsort(te.placeholder((4,)), axis=0)
    D = topi.topk(te.placeholder((4,)), 2, axis=0, ret_type='both')
    assert len(D) == 2


def test_topi_take_gather_where():
    A = te.placeholder((4, 5))
    image = te.placeholder((3,), dtype='int32')
    assert tuple(int(x) for x in topi.take(A, image, axis=0).shape) == (3, 5)
    assert tuple(int(x) for x in topi.where(te.placeholder((4, 5), dtype='bool'), A, A).shape) == (4, 5)
    topi.gather_nd(A, te.placeholder((2, 3), dtype='int32'))
    topi.one_hot(image, tir.const(1), tir.const(0), 5, -1, 'int32')
    topi.arange(0, 10, 1, 'int32')
    topi.full((2, 3), 'float32', 1.0)
    topi.full_like(A, 0)
    topi.cast(A, 'int32')
    topi.clip(A, 0.0, 1.0)
    topi.tile(A, (2, 1))
    topi.repeat(A, 2, 0)
    topi.flip(A, 0)
    topi.stack([A, A], 0)
    topi.cumsum(A, 0)
    topi.layout_transform(te.placeholder((1, 16, 2, 2)), 'NCHW', 'NCHW4c')
    topi.sequence_mask(te.placeholder((4, 5)), te.placeholder((5,), dtype='int32'))
    topi.reverse_sequence(A, te.placeholder((4,), dtype='int32'), 1, 0)
    topi.matmul(A, te.placeholder((5, 4)))
    topi.tensordot(A, te.placeholder((5, 4)), 1)
    topi.meshgrid([te.placeholder((2,)), te.placeholder((3,))], 'ij')
    topi.unravel_index(image, te.placeholder((2,), dtype='int32'))
    topi.ndarray_size(A)
    topi.shape(A)
    topi.elemwise_sum([A, A])
    topi.broadcast_to(te.placeholder((1, 5)), (4, 5))
    topi.adv_index(A, [image])
    topi.sparse_to_dense(image, [4], te.placeholder((3,)), 0.0)
    topi.matrix_set_diag(A, te.placeholder((4,)))


# ---- Convolutions by words


_P = te.placeholder
_CONVOLUTIONS = {
    "conv1d": (lambda p, d: topi.nn.conv1d(_P((1, 4, 9)), _P((6, 4, 3)), 1, p, d), (2,)),
    "conv1d_ncw": (lambda p, d: topi.nn.conv1d_ncw(_P((1, 4, 9)), _P((6, 4, 3)), 1, p, d), (2,)),
    "conv1d_nwc": (lambda p, d: topi.nn.conv1d_nwc(_P((1, 9, 4)), _P((3, 4, 6)), 1, p, d), (1,)),
    "conv2d_nchw": (lambda p, d: topi.nn.conv2d_nchw(_P((1, 4, 8, 9)), _P((6, 4, 3, 3)), 1, p, d), (2, 3)),
    "conv2d_nhwc": (lambda p, d: topi.nn.conv2d_nhwc(_P((1, 8, 9, 4)), _P((3, 3, 4, 6)), 1, p, d), (1, 2)),
    "conv2d_hwcn": (lambda p, d: topi.nn.conv2d_hwcn(_P((8, 9, 4, 1)), _P((3, 3, 4, 6)), 1, p, d), (0, 1)),
    "conv2d_NCHWc": (lambda p, d: topi.nn.conv2d_NCHWc(_P((1, 1, 8, 9, 4)), _P((1, 1, 3, 3, 4, 4)), (1, 1), p, (d, d), "NCHW4c", "NCHW4c"), (2, 3)),
    "group_conv2d_nchw": (lambda p, d: topi.nn.group_conv2d_nchw(_P((1, 4, 8, 9)), _P((6, 2, 3, 3)), 1, p, d, 2), (2, 3)),
    "group_conv2d_nhwc": (lambda p, d: topi.nn.group_conv2d_nhwc(_P((1, 8, 9, 4)), _P((3, 3, 2, 6)), 1, p, d, 2), (1, 2)),
    "depthwise_conv2d_nchw": (lambda p, d: topi.nn.depthwise_conv2d_nchw(_P((1, 4, 8, 9)), _P((4, 2, 3, 3)), 1, p, d), (2, 3)),
    "depthwise_conv2d_nhwc": (lambda p, d: topi.nn.depthwise_conv2d_nhwc(_P((1, 8, 9, 4)), _P((3, 3, 4, 2)), 1, p, d), (1, 2)),
    "conv3d_ncdhw": (lambda p, d: topi.nn.conv3d_ncdhw(_P((1, 4, 7, 8, 9)), _P((6, 4, 3, 3, 3)), 1, p, d), (2, 3, 4)),
    "conv3d_ndhwc": (lambda p, d: topi.nn.conv3d_ndhwc(_P((1, 7, 8, 9, 4)), _P((3, 3, 3, 4, 6)), 1, p, d), (1, 2, 3)),
    "bitserial_conv2d_nchw": (
        lambda p, d: topi.nn.bitserial_conv2d_nchw(_P((1, 32, 8, 9), "uint32"), _P((6, 32, 3, 3), "uint32"), 1, p, 1, 1) if d == 1 else None,
        (2, 3),
    ),
    "dilation2d_nchw": (lambda p, d: topi.image.dilation2d_nchw(_P((1, 4, 8, 9)), _P((4, 3, 3)), 1, p, d), (2, 3)),
}


@pytest.mark.parametrize("name", sorted(_CONVOLUTIONS))
def test_paddings_by_word(name):
    """ "SAME" leaves the extents of space as they are, "VALID" takes the window away; other words are errors."""
    make, axes = _CONVOLUTIONS[name]
    whole = (7, 8, 9)[-len(axes) :]
    for dilation in (1, 2):
        if (same := make("SAME", dilation)) is not None:
            assert [int(same.shape[i]) for i in axes] == list(whole)
            assert [int(make("VALID", dilation).shape[i]) for i in axes] == [n - 2 * dilation for n in whole]
    with pytest.raises(ValueError, match='it is numbers, "VALID" or "SAME"'):
        make("HALF", 1)


def test_transposed_convolutions_by_word():
    for word, taken in (("SAME", 2), ("VALID", 0)):
        assert int(topi.nn.conv1d_transpose_ncw(_P((1, 4, 9)), _P((4, 6, 3)), 2, word, "float32").shape[2]) == 19 - taken
        made = topi.nn.conv2d_transpose_nchw(_P((1, 4, 8, 9)), _P((4, 6, 3, 3)), (2, 2), word, "float32")
        assert [int(d) for d in made.shape[2:]] == [17 - taken, 19 - taken]


# ---- Names of targets' packages


def _value(tensors, args, *arrays):
    tensors = list(tensors) if isinstance(tensors, (list, tuple)) or type(tensors).__name__ == "Array" else [tensors]
    outs = [tvm.nd.empty([int(d) for d in t.shape], str(t.dtype)) for t in tensors]
    tvm.build(te.create_schedule([t.op for t in tensors]), [*args, *tensors], "llvm")(*map(tvm.nd.array, arrays), *outs)
    return [o.numpy() for o in outs]


def test_sorting_by_keys():
    keys, values = np.array([3, 1, 3, 0, 1], "int32"), np.arange(5, dtype="float32")
    a, b = _P((5,), "int32"), _P((5,))
    for name in ("sort_by_key", "stable_sort_by_key_thrust"):
        got = _value(getattr(topi.cuda, name)(a, b), [a, b], keys, values)
        assert got[0].tolist() == [0, 1, 1, 3, 3] and got[1].tolist() == [3, 1, 4, 0, 2]
    with pytest.raises(ValueError, match="one dimension"):
        topi.cuda.sort_by_key(_P((2, 3)), _P((2, 3)))
    flat = topi.cuda.stable_sort_by_key_thrust(_P((2, 3), "int32"), _P((2, 3)), for_scatter=True)
    assert [int(flat[0].shape[0]), int(flat[1].shape[0])] == [6, 6]


def test_scans():
    x, a = np.random.default_rng(0).integers(0, 9, (3, 4)).astype("int32"), _P((3, 4), "int32")
    np.testing.assert_array_equal(_value(topi.cuda.inclusive_scan(a), [a], x)[0], np.cumsum(x, -1))
    before, whole = _value(topi.cuda.exclusive_scan(a, axis=0, return_reduction=True), [a], x)
    np.testing.assert_array_equal(before, np.cumsum(x, 0) - x)
    np.testing.assert_array_equal(whole, x.sum(0))
    np.testing.assert_array_equal(_value(topi.cuda.inclusive_scan(a, binop=tvm.tir.generic.multiply), [a], x)[0], np.cumprod(x, -1))
    with pytest.raises(tvm.error.UnsupportedError, match="te.scan takes any function"):
        topi.cuda.inclusive_scan(a, binop=tvm.tir.max)


def test_names_that_all_targets_share():
    a = _P((7,), "int32")
    assert _value(topi.ceil_log2(a), [a], np.array([1, 2, 3, 4, 5, 8, 9], "int32"))[0].tolist() == [0, 1, 2, 2, 3, 3, 4]
    with tvm.target.Target("llvm"):
        assert topi.utils.is_target("llvm") and topi.utils.is_target(["cuda", "llvm"]) and not topi.utils.is_target("cuda")
    weight, kernel = np.random.default_rng(2).standard_normal((6, 4, 3, 3)).astype("float32"), _P((6, 4, 3, 3))
    want = tvm.relay.nn.contrib_conv2d_winograd_weight_transform(tvm.relay.const(weight), 4)
    want = tvm.relay.create_executor("graph", mod=tvm.IRModule.from_expr(want), device=tvm.cpu(), target="llvm").evaluate()().numpy()
    np.testing.assert_allclose(_value(topi.nn.conv2d_winograd_weight_transform(kernel, 4), [kernel], weight)[0], want, rtol=1e-4, atol=1e-5)
    for depth, wanted in ((3, [6, 6, 6, 5, 4]), (2, [6, 6, 2, 5, 4])):
        assert [int(d) for d in topi.nn.conv3d_winograd_weight_transform(_P((5, 4, depth, 3, 3)), 4).shape] == wanted
    x = np.random.default_rng(1).standard_normal((2, 3)).astype("float32")
    topi.testing.compare_numpy_tvm([x], np.maximum(x, 0), "llvm", tvm.cpu(), topi.nn.relu, topi.generic.schedule_injective)
    with pytest.raises(AssertionError, match="Mismatched"):
        topi.testing.compare_numpy_tvm([x], x + 1, "llvm", tvm.cpu(), topi.nn.relu, topi.generic.schedule_injective)

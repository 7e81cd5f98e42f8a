# SPDX-License-Identifier: Apache-2.0
"""Programs of 0.8 about topi."""

import numpy as np

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

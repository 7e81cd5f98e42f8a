# SPDX-License-Identifier: Apache-2.0
"""Schedules of tensor expressions: loops, caches, reductions, intrinsics."""

import numpy as np

import baton as tvm
from baton import te, tir, topi


def run(s, args, *a):
    f = tvm.build(s, args, 'llvm')
    vs = [tvm.nd.array(v) for v in a]
    f(*vs)
    return [v.numpy() for v in vs]


def F(*s):
    return np.random.rand(*s).astype('float32')


def test_matmul_opt():
    M = K = N = 64
    A, B = (te.placeholder((M, K), name='A'), te.placeholder((K, N), name='B'))
    k = te.reduce_axis((0, K), 'k')
    P = te.compute((N // 16, K, 16), lambda bn, k_, v: B[k_, bn * 16 + v], name='P')
    C = te.compute((M, N), lambda m, n: te.sum(A[m, k] * P[n // 16, k, tir.indexmod(n, 16)], axis=k), name='C')
    s = te.create_schedule(C.op)
    CC = s.cache_write(C, 'global')
    mo, no, mi, ni = s[C].tile(C.op.axis[0], C.op.axis[1], 16, 16)
    s[CC].compute_at(s[C], no)
    mc, nc = s[CC].op.axis
    ko, ki = s[CC].split(s[CC].op.reduce_axis[0], factor=4)
    s[CC].reorder(ko, mc, ki, nc)
    s[CC].unroll(ki)
    s[CC].vectorize(nc)
    s[C].parallel(mo)
    bn, kk, v = s[P].op.axis
    s[P].vectorize(v)
    s[P].parallel(bn)
    a, b = (F(M, K), F(K, N))
    r = run(s, [A, B, C], a, b, np.zeros((M, N), 'float32'))
    np.testing.assert_allclose(r[2], a @ b, rtol=0.0001)


def test_double_buffer():
    A = te.placeholder((64,), name='A')
    B = te.compute((64,), lambda i: A[i] + 1, name='B')
    C = te.compute((64,), lambda i: B[i] * 2, name='C')
    s = te.create_schedule(C.op)
    o, i = s[C].split(C.op.axis[0], 8)
    s[B].compute_at(s[C], o)
    s[B].double_buffer()
    s[B].set_scope('local')
    a = F(64)
    np.testing.assert_allclose(run(s, [A, C], a, np.zeros(64, 'float32'))[1], (a + 1) * 2, rtol=1e-05)


def test_stages():
    A = te.placeholder((8,), name='A')
    B = te.compute((8,), lambda i: A[i] + 1, name='B')
    C = te.compute((8,), lambda i: B[i] * 2, name='C')
    s = te.create_schedule(C.op)
    assert len(s.stages) == 3
    assert s[B].op.name == 'B'
    assert s[C].is_output
    assert len(s[C].leaf_iter_vars) == 1
    assert len(s[C].all_iter_vars) == 1
    assert s.outputs[0].same_as(C.op)
    assert s[B].group is None
    o, i = s[C].split(C.op.axis[0], nparts=2)
    assert len(s[C].leaf_iter_vars) == 2
    assert len(s[C].relations) == 1
    r = s[C].relations[0]
    assert isinstance(r, te.schedule.Split)
    assert r.parent.same_as(C.op.axis[0])
    assert r.outer.same_as(o)
    s[C].fuse(o, i)
    assert isinstance(s[C].relations[1], te.schedule.Fuse)
    s.normalize()
    s[B].compute_inline()
    tvm.lower(s, [A, C])


def test_tensor_api():
    A = te.placeholder((4, 5), name='A')
    B = te.compute((4, 5), lambda i, j: A[i, j] + 1, name='B', tag='t', attrs={'k': 1})
    assert A.ndim == 2
    assert B.op.tag == 't'
    assert B.op.attrs['k'] == 1
    assert B.op.num_outputs == 1
    assert B.value_index == 0
    assert len(B.op.axis) == 2
    assert B.op.input_tensors[0] == A
    assert isinstance(A.op, te.PlaceholderOp)
    assert isinstance(B.op, te.ComputeOp)
    assert B.op.body[0] is not None
    assert B.op.output(0) == B
    assert A.name == 'A'
    assert A.dtype == 'float32'
    assert isinstance(A[0, 1], tir.ProducerLoad)
    assert isinstance(A[0], te.TensorSlice)
    assert hash(A) == hash(A)
    assert len(B.op.reduce_axis) == 0


def test_tag_scope():
    with te.tag_scope(tag='conv'):
        A = te.placeholder((4,), name='A')
        B = te.compute((4,), lambda i: A[i] + 1)
    assert B.op.tag == 'conv'

    @tvm.te.tag_scope(tag='x')
    def f():
        return te.compute((4,), lambda i: A[i] * 2)

    assert f().op.tag == 'x'


def test_create_prim():
    A = te.placeholder((8,), name='A')
    B = te.compute((8,), lambda i: A[i] + 1, name='B')
    f = te.create_prim_func([A, B])
    assert isinstance(f, tir.PrimFunc)
    m = tvm.IRModule({'main': f})
    g = tvm.build(m, 'llvm')
    a, b = (tvm.nd.array(np.ones(8, 'float32')), tvm.nd.empty((8,)))
    g(a, b)
    assert (b.numpy() == 2).all()


def test_argmax():
    def fc(found, r):
        return (tir.Select(found[1] >= r[1], found[0], r[0]), tir.Select(found[1] >= r[1], found[1], r[1]))

    def fi(a, b):
        return (tir.const(-1, a), tvm.te.min_value(b))

    am = te.comm_reducer(fc, fi, name='argmax')
    n, m = (4, 6)
    Index = te.placeholder((n, m), name='I', dtype='int32')
    V = te.placeholder((n, m), name='V')
    k = te.reduce_axis((0, m), 'k')
    T0, T1 = te.compute((n,), lambda i: am((Index[i, k], V[i, k]), axis=k), name='T')
    s = te.create_schedule(T0.op)
    v = F(n, m)
    ix = np.tile(np.arange(m, dtype='int32'), (n, 1))
    r = run(s, [Index, V, T0, T1], ix, v, np.zeros(n, 'int32'), np.zeros(n, 'float32'))
    assert (r[2] == v.argmax(1)).all()


def test_sum_init():
    A = te.placeholder((4, 5), name='A')
    k = te.reduce_axis((0, 5), 'k')
    Index = te.placeholder((4,), name='I')
    B = te.compute((4,), lambda i: te.sum(A[i, k], axis=k, init=Index[i]), name='B')
    s = te.create_schedule(B.op)
    a, i = (F(4, 5), F(4))
    np.testing.assert_allclose(run(s, [A, Index, B], a, i, np.zeros(4, 'float32'))[2], a.sum(1) + i, rtol=1e-05)


def test_sum_init_const():
    A = te.placeholder((4, 5), name='A')
    k = te.reduce_axis((0, 5), 'k')
    B = te.compute((4,), lambda i: te.sum(A[i, k], axis=k, init=10.0), name='B')
    a = F(4, 5)
    np.testing.assert_allclose(run(te.create_schedule(B.op), [A, B], a, np.zeros(4, 'float32'))[1], a.sum(1) + 10, rtol=1e-05)


def test_where_axis():
    A = te.placeholder((10,), name='A')
    k = te.reduce_axis((0, 10), 'k')
    B = te.compute((1,), lambda i: te.sum(A[k], axis=k, where=k < 5), name='B')
    a = F(10)
    np.testing.assert_allclose(run(te.create_schedule(B.op), [A, B], a, np.zeros(1, 'float32'))[1], [a[:5].sum()], rtol=1e-05)


def test_prod_grad():
    A = te.placeholder((5,), name='A')
    k = te.reduce_axis((0, 5), 'k')
    pr = te.comm_reducer(lambda x, y: x * y, lambda t: tir.const(1, t))
    B = te.compute((1,), lambda i: pr(A[k], axis=k))
    [g] = te.gradient(B, [A], None)
    a = np.array([1, 0, 2, 3, 4], 'float32')
    r = run(te.create_schedule(g.op), [A, g], a, np.zeros(tuple((int(d) for d in g.shape)), 'float32'))[1]
    np.testing.assert_allclose(r.ravel(), [0, 24, 0, 0, 0], atol=1e-05)


def test_var_build():
    n = te.var('n')
    m = te.var('m')
    A = te.placeholder((n, m), name='A')
    B = te.compute((m, n), lambda i, j: A[j, i], name='B')
    s = te.create_schedule(B.op)
    a = F(3, 4)
    r = run(s, [A, B], a, np.zeros((4, 3), 'float32'))
    assert (r[1] == a.T).all()
    f = tvm.build(s, [n, m, A, B], 'llvm')
    b = tvm.nd.empty((4, 3))
    f(3, 4, tvm.nd.array(a), b)


def test_scalar_arg():
    A = te.placeholder((4,), name='A')
    c = te.var('c', 'float32')
    B = te.compute((4,), lambda i: A[i] * c)
    f = tvm.build(te.create_schedule(B.op), [A, c, B], 'llvm')
    b = tvm.nd.empty((4,))
    f(tvm.nd.array(np.ones(4, 'float32')), 3.0, b)
    assert (b.numpy() == 3).all()


def test_lower_names():
    A = te.placeholder((4,), name='A')
    B = te.compute((4,), lambda i: A[i] * 2)
    m = tvm.lower(te.create_schedule(B.op), [A, B], name='f')
    assert 'f' in m.get_global_vars()[0].name_hint
    assert m['f'].attrs['global_symbol'] == 'f'
    r = tvm.build(m, target='llvm')
    assert r['f']


def test_multi_output():
    A = te.placeholder((4,), name='A')
    B, C = te.compute((4,), lambda i: (A[i] + 1, A[i] * 2), name='B')
    s = te.create_schedule(B.op)
    a = F(4)
    r = run(s, [A, B, C], a, np.zeros(4, 'float32'), np.zeros(4, 'float32'))
    np.testing.assert_allclose(r[2], a * 2)


def test_rfactor():
    A = te.placeholder((128,), name='A')
    k = te.reduce_axis((0, 128), 'k')
    B = te.compute((1,), lambda i: te.sum(A[k], axis=k), name='B')
    s = te.create_schedule(B.op)
    ko, ki = s[B].split(B.op.reduce_axis[0], 16)
    s.rfactor(B, ki)
    a = F(128)
    np.testing.assert_allclose(run(s, [A, B], a, np.zeros(1, 'float32'))[1], [a.sum()], rtol=0.0001)


def test_scan():
    m, n = (5, 3)
    X = te.placeholder((m, n), name='X')
    st = te.placeholder((m, n), name='s')
    i = te.compute((1, n), lambda _, i: X[0, i])
    u = te.compute((m, n), lambda t, i: st[t - 1, i] + X[t, i])
    sc = te.scan(i, u, st, inputs=[X])
    s = te.create_schedule(sc.op)
    x = F(m, n)
    np.testing.assert_allclose(run(s, [X, sc], x, np.zeros((m, n), 'float32'))[1], np.cumsum(x, 0), rtol=1e-05)


def test_extern_packed():
    @tvm.register_func('p6.add1', override=True)
    def f(a, b):
        b.copyfrom(a.numpy() + 1) if hasattr(b, 'copyfrom') else tvm.nd.array(a.numpy() + 1).copyto(b)

    A = te.placeholder((4,), name='A')
    C = te.extern(A.shape, [A], lambda i, o: tir.call_packed('p6.add1', i[0], o[0]), name='C')
    a = F(4)
    np.testing.assert_allclose(run(te.create_schedule(C.op), [A, C], a, np.zeros(4, 'float32'))[1], a + 1)


def test_topi_misc():
    A = te.placeholder((2, 3), name='A')
    a = F(2, 3)
    for f, n in (
        (topi.exp, np.exp),
        (topi.tanh, np.tanh),
        (lambda t: topi.sum(t, 1), lambda v: v.sum(1)),
        (lambda t: topi.transpose(t), np.transpose),
        (lambda t: topi.reshape(t, (3, 2)), lambda v: v.reshape(3, 2)),
        (lambda t: topi.nn.softmax(t), lambda v: np.exp(v) / np.exp(v).sum(1, keepdims=True)),
        (lambda t: topi.expand_dims(t, 0), lambda v: v[None]),
        (lambda t: topi.concatenate([t, t], 1), lambda v: np.concatenate([v, v], 1)),
        (lambda t: topi.argmax(t, 1), lambda v: v.argmax(1)),
        (lambda t: topi.cast(t, 'int32'), lambda v: v.astype('int32')),
        (lambda t: topi.tile(t, (2, 1)), lambda v: np.tile(v, (2, 1))),
        (lambda t: topi.strided_slice(t, [0, 1], [2, 3]), lambda v: v[0:2, 1:3]),
        (lambda t: topi.squeeze(topi.expand_dims(t, 0), 0), lambda v: v),
        (lambda t: topi.repeat(t, 2, 1), lambda v: np.repeat(v, 2, 1)),
        (lambda t: topi.flip(t, 1), lambda v: v[:, ::-1]),
        (lambda t: topi.nn.relu(t), lambda v: np.maximum(v, 0)),
        (lambda t: topi.clip(t, 0.2, 0.5), lambda v: v.clip(0.2, 0.5)),
        (lambda t: topi.cumsum(t, 1), lambda v: v.cumsum(1)),
    ):
        B = f(A)
        w = n(a)
        r = run(te.create_schedule(B.op), [A, B], a, np.zeros(w.shape, str(B.dtype)))[1]
        np.testing.assert_allclose(r, w, rtol=1e-05)


def test_edit_dist():
    from baton.te import hybrid

    @hybrid.script
    def outer(a, b):
        c = output_tensor((a.shape[0], b.shape[0]), 'float32')  # noqa: F821
        for i in range(a.shape[0]):
            for j in range(b.shape[0]):
                c[i, j] = a[i] * b[j]
        return c

    a, b = (te.placeholder((3,), name='a'), te.placeholder((4,), name='b'))
    c = outer(a, b)
    A, B = (F(3), F(4))
    np.testing.assert_allclose(run(te.create_schedule(c.op), [a, b, c], A, B, np.zeros((3, 4), 'float32'))[2], np.outer(A, B), rtol=1e-05)

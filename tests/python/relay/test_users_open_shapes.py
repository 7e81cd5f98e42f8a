# SPDX-License-Identifier: Apache-2.0
"""Programs whose shapes are known when they run, operator by operator, as programs of 0.8 write them."""

import numpy as np
import pytest

import baton as tvm
from baton import relay, tir
from baton.relay.loops import while_loop

A = relay.Any


def F(*s):
    return np.random.rand(*s).astype('float32')


def Index(*s, d='int64', hi=3):
    return np.random.randint(0, hi, s).astype(d)


def V(n, *s, d='float32'):
    return relay.var(n, shape=s, dtype=d)


def ck(args, mod_or_expr, ref, shape_only=False, kinds=('vm', 'debug')):
    e = mod_or_expr
    m = e if isinstance(e, tvm.IRModule) else tvm.IRModule.from_expr(e if isinstance(e, relay.Function) else relay.Function(relay.analysis.free_vars(e), e))
    for k in kinds:
        r = relay.create_executor(k, mod=m, device=tvm.cpu(), target='llvm').evaluate()(*args)
        rs = [r] if hasattr(r, 'numpy') else list(r)
        ws = ref if isinstance(ref, (list, tuple)) and (not shape_only) else [ref]
        for a, b in zip(rs, ws, strict=False):
            if shape_only:
                assert a.shape == tuple(b)
            else:
                np.testing.assert_allclose(a.numpy(), b, rtol=0.0001, atol=1e-05)


def test_broadcast():
    x, y = (V('x', A(), 4), V('y', A(), 4))
    a, b = (F(3, 4), F(1, 4))
    ck([a, b], relay.Function([x, y], relay.add(x, y)), a + b)
    ck([b, a], relay.Function([x, y], x < y), b < a)


def test_broadcast_fail():
    x, y = (V('x', A()), V('y', A()))
    with pytest.raises(tvm.TVMError):
        relay.create_executor('vm', mod=tvm.IRModule.from_expr(relay.Function([x, y], x + y))).evaluate()(F(3), F(4))


def test_elemwise():
    x = V('x', A(), A())
    a = F(2, 3) + 1
    ck([a], relay.Function([x], relay.sqrt(relay.log(x) + relay.const(1.0))), np.sqrt(np.log(a) + 1))
    ck([a], relay.Function([x], relay.nn.relu(x)), a)


def test_full_zeros():
    x = V('x', A(), 3)
    ck([F(2, 3)], relay.Function([x], relay.zeros_like(x)), np.zeros((2, 3)))
    ck([F(2, 3)], relay.Function([x], relay.full_like(x, relay.const(2.0))), np.full((2, 3), 2))


def test_concat():
    x, y = (V('x', A(), 2), V('y', 1, 2))
    a, b = (F(3, 2), F(1, 2))
    ck([a, b], relay.Function([x, y], relay.concatenate([x, y], 0)), np.concatenate([a, b]))
    xs = [V(f'x{i}', 2, A()) for i in range(4)]
    vs = [F(2, i + 1) for i in range(4)]
    ck(vs, relay.Function(xs, relay.concatenate(xs, 1)), np.concatenate(vs, 1))


def test_reshape():
    x = V('x', A(), A(), A())
    a = F(2, 3, 4)
    ck([a], relay.Function([x], relay.reshape(x, (-1,))), a.ravel())
    ck([a], relay.Function([x], relay.reshape(x, (0, -1))), a.reshape(2, -1))
    ck([a], relay.Function([x], relay.reshape(x, (0, -2))), a)
    ck([a], relay.Function([x], relay.reshape(x, (-3, 0))), a.reshape(6, 4))


def test_one_hot():
    i = V('i', A(), d='int32')
    a = Index(3, d='int32')
    ck([a], relay.Function([i], relay.one_hot(i, relay.const(1.0), relay.const(0.0), 4, -1, 'float32')), np.eye(4)[a])


def test_argwhere():
    for n in (1, 2, 3):
        x = V('x', *[A()] * n, d='bool')
        a = np.random.rand(*[3] * n) > 0.5
        ck([a], relay.Function([x], relay.argwhere(x)), np.argwhere(a))


def test_argwhere_dyn_size():
    x = V('x', A(), d='int32')
    r = relay.take(relay.argwhere(x), relay.const(0), 0)
    ck([np.array([0, 1, 0], 'int32')], relay.Function([x], r), [np.array([1])])


def test_take():
    x, i = (V('x', A(), 3), V('i', 2, d='int64'))
    a = F(4, 3)
    ii = np.array([1, 3])
    ck([a, ii], relay.Function([x, i], relay.take(x, i, 0)), a[ii])
    ck([a, np.array([5, 2])], relay.Function([x, i], relay.take(x, i)), a.ravel()[[5, 2]])


def test_tile_repeat():
    x = V('x', A())
    a = F(3)
    ck([a], relay.Function([x], relay.tile(x, (3, 2))), np.tile(a, (3, 2)))
    y = V('x', A(), 2)
    b = F(2, 2)
    ck([b], relay.Function([y], relay.repeat(y, 2, 0)), np.repeat(b, 2, 0))


def test_shape_of():
    x = V('x', A(), A(), d='int64')
    ck([Index(3, 4)], relay.Function([x], relay.shape_of(x, 'int32')), [3, 4] and np.array([3, 4]))
    ck([Index(3, 4)], relay.Function([x], relay.take(relay.shape_of(x, 'int64'), relay.const(1, 'int64'))), 4)
    ck([Index(3, 4)], relay.Function([x], relay.ndarray_size(x)), 12)


def test_reduce():
    x = V('x', A(), A(), A())
    a = F(2, 3, 4)
    for f, g in ((relay.sum, np.sum), (relay.mean, np.mean), (relay.max, np.max), (relay.argmax, np.argmax), (relay.variance, np.var), (relay.prod, np.prod)):
        ck([a], relay.Function([x], f(x, axis=1)), g(a, axis=1))
    ck([a], relay.Function([x], relay.sum(x, axis=[0, 1], keepdims=True)), a.sum((0, 1), keepdims=True))
    ck([a], relay.Function([x], relay.max(x)), a.max())


def test_layout():
    x = V('x', A(), 3, A(), A())
    a = F(2, 3, 4, 5)
    ck([a], relay.Function([x], relay.layout_transform(x, 'NCHW', 'NHWC')), a.transpose(0, 2, 3, 1))
    y = V('x', A(), 4, A(), A())
    b = F(1, 4, 2, 2)
    ck([b], relay.Function([y], relay.layout_transform(y, 'NCHW', 'NCHW2c')), b.reshape(1, 2, 2, 2, 2).transpose(0, 1, 3, 4, 2))


def test_dims():
    x = V('x', A(), 1, A())
    a = F(2, 1, 3)
    ck([a], relay.Function([x], relay.squeeze(x, [1])), a[:, 0])
    ck([a], relay.Function([x], relay.expand_dims(x, 1, 2)), a[:, None, None])
    ck([a], relay.Function([x], relay.transpose(x)), a.T)
    ck([a], relay.Function([x], relay.transpose(x, (2, 0, 1))), a.transpose(2, 0, 1))
    y = V('y', A(), A())
    ck([a, F(2, 3)], relay.Function([x, y], relay.reshape_like(x, y)), a.reshape(2, 3))


def test_conv():
    x, w = (V('x', A(), 3, A(), A()), V('w', 4, 3, 3, 3))
    ck([F(1, 3, 8, 8), F(4, 3, 3, 3)], relay.Function([x, w], relay.nn.conv2d(x, w, kernel_size=(3, 3), channels=4, padding=(1, 1))), (1, 4, 8, 8), True)
    y, v = (V('x', A(), 8, 8, 3), V('w', 3, 3, 3, 4))
    ck(
        [F(2, 8, 8, 3), F(3, 3, 3, 4)],
        relay.Function([y, v], relay.nn.conv2d(y, v, kernel_size=(3, 3), channels=4, data_layout='NHWC', kernel_layout='HWIO')),
        (2, 6, 6, 4),
        True,
    )
    z, u = (V('x', A(), 3, 8), V('w', 4, 3, 3))
    ck([F(2, 3, 8), F(4, 3, 3)], relay.Function([z, u], relay.nn.conv1d(z, u, kernel_size=3, channels=4)), (2, 4, 6), True)


def test_conv_transpose():
    x, w = (V('x', A(), 3, 8, 8), V('w', 3, 4, 3, 3))
    ck(
        [F(2, 3, 8, 8), F(3, 4, 3, 3)],
        relay.Function([x, w], relay.nn.conv2d_transpose(x, w, kernel_size=(3, 3), channels=4, strides=(2, 2), padding=(1, 1), output_padding=(1, 1))),
        (2, 4, 16, 16),
        True,
    )
    z, u = (V('x', A(), 3, 8), V('w', 3, 4, 3))
    ck([F(2, 3, 8), F(3, 4, 3)], relay.Function([z, u], relay.nn.conv1d_transpose(z, u, kernel_size=3, channels=4)), (2, 4, 10), True)


def test_pool():
    x = V('x', A(), 3, A(), A())
    a = F(1, 3, 8, 8)
    for f in (relay.nn.max_pool2d, relay.nn.avg_pool2d):
        ck([a], relay.Function([x], f(x, (2, 2), (2, 2))), (1, 3, 4, 4), True)
    for f in (relay.nn.global_max_pool2d, relay.nn.global_avg_pool2d):
        ck([a], relay.Function([x], f(x)), (1, 3, 1, 1), True)


def test_split():
    x = V('x', A(), 4)
    a = F(3, 4)
    ck([a], relay.Function([x], relay.split(x, 2, 1).astuple()), np.split(a, 2, 1))
    ck([a], relay.Function([x], relay.split(x, (1, 3), 1)[1]), a[:, 1:3])
    y = V('x', A(), A())
    ck([F(4, 2)], relay.Function([y], relay.split(y, 2, 0)[0]), (2, 2), True)


def test_dense():
    x, w = (V('x', A(), 4), V('w', A(), 4))
    a, b = (F(3, 4), F(5, 4))
    ck([a, b], relay.Function([x, w], relay.nn.dense(x, w)), a @ b.T)
    u = V('w', 5, 4)
    ck([a, b], relay.Function([x, u], relay.nn.dense(x, u, units=5)), a @ b.T)
    p, q = (V('p', A(), A(), A()), V('q', A(), A(), A()))
    c, d = (F(2, 3, 4), F(2, 5, 4))
    ck([c, d], relay.Function([p, q], relay.nn.batch_matmul(p, q)), c @ d.transpose(0, 2, 1))
    ck([c, c.transpose(0, 2, 1).copy()], relay.Function([p, q], relay.nn.batch_matmul(p, q, transpose_b=False)), c @ c.transpose(0, 2, 1))


def test_pad():
    x = V('x', A(), A())
    a = F(2, 3)
    ck([a], relay.Function([x], relay.nn.pad(x, ((1, 1), (2, 2)), 3.0)), np.pad(a, ((1, 1), (2, 2)), constant_values=3))
    ck([a], relay.Function([x], relay.nn.mirror_pad(x, ((1, 1), (1, 1)), 'REFLECT')), np.pad(a, 1, mode='reflect'))


def test_flatten_softmax():
    x = V('x', A(), A(), A())
    a = F(2, 3, 4)
    ck([a], relay.Function([x], relay.nn.batch_flatten(x)), a.reshape(2, 12))
    ck([a], relay.Function([x], relay.nn.softmax(x, 1)), np.exp(a) / np.exp(a).sum(1, keepdims=True))
    ck([a], relay.Function([x], relay.nn.log_softmax(x)), np.log(np.exp(a) / np.exp(a).sum(-1, keepdims=True)))


def test_topk():
    x = V('x', A(), A())
    a = F(2, 5)
    ck([a], relay.Function([x], relay.topk(x, 2, ret_type='indices')), np.argsort(-a)[:, :2])
    k = V('k', d='int32')
    ck([a, np.int32(3)], relay.Function([x, k], relay.topk(x, k, ret_type='values')), -np.sort(-a)[:, :3])
    ck([a], relay.Function([x], relay.argsort(x, 1)), np.argsort(a, 1))
    ck([a], relay.Function([x], relay.sort(x, 1)), np.sort(a, 1))


def test_slice():
    x = V('x', A(), A())
    a = F(4, 5)
    ck([a], relay.Function([x], relay.strided_slice(x, [1, 0], [3, 4], [1, 2])), a[1:3, 0:4:2])
    ck([a], relay.Function([x], relay.strided_slice(x, [1], [100], axes=[1])), a[:, 1:])
    b, e = (V('b', 2, d='int64'), V('e', 2, d='int64'))
    ck([a, np.array([0, 1]), np.array([4, 3])], relay.Function([x, b, e], relay.strided_slice(x, b, e)), a[0:4, 1:3])
    ck([a], relay.Function([x], relay.strided_slice(x, [-2, 0], [-1, 3], slice_mode='end')), a[-2:-1, 0:3])
    y = V('y', A(), A())
    ck([a, F(2, 3)], relay.Function([x, y], relay.slice_like(x, y)), a[:2, :3])


def test_where():
    c, x, y = (V('c', A(), d='bool'), V('x', A()), V('y', 1))
    a, b = (F(3), F(1))
    ck([np.array([True, False, True]), a, b], relay.Function([c, x, y], relay.where(c, x, y)), np.where([True, False, True], a, b))


def test_gather_scatter():
    x, i = (V('x', A(), 4), V('i', 1, A(), d='int64'))
    a = F(3, 4)
    ck([a, np.array([[0, 2]])], relay.Function([x, i], relay.gather_nd(x, i)), a[[0, 2]])
    j = V('j', A(), A(), d='int64')
    ck([a, Index(3, 2)], relay.Function([x, j], relay.gather(x, 1, j)), (3, 2), True)
    d, ii, u = (V('d', A(), A()), V('ii', A(), A(), d='int64'), V('u', A(), A()))
    ck([np.zeros((3, 3), 'float32'), np.array([[0, 1, 2]]), F(1, 3)], relay.Function([d, ii, u], relay.scatter(d, ii, u, 0)), (3, 3), True)


def test_adv():
    x, i = (V('x', A(), A()), V('i', A(), d='int64'))
    a = F(3, 4)
    ck([a, np.array([0, 2])], relay.Function([x, i], relay.adv_index([x, i])), a[[0, 2]])


def test_stack_roi():
    x, y = (V('x', A(), 2), V('y', A(), 2))
    a, b = (F(3, 2), F(3, 2))
    ck([a, b], relay.Function([x, y], relay.stack([x, y], 0)), np.stack([a, b]))
    r = V('r', A(), 5)
    d = V('d', 1, 4, 16, 16)
    rv = np.array([[0, 1, 1, 8, 8], [0, 2, 2, 9, 9], [0, 0, 0, 4, 4]], 'float32')
    ck([F(1, 4, 16, 16), rv], relay.Function([d, r], relay.vision.roi_align(d, r, (3, 3), 1.0, 2)), (3, 4, 3, 3), True)


def test_loop_concat():
    i, st = (V('i', d='int32'), V('st', A(), 1, d='int32'))

    def body(i, st):
        return (i + relay.const(1), relay.concatenate([st, relay.reshape(i, (1, 1))], 0))

    loop = while_loop(lambda i, st: relay.less(i, relay.const(5)), [i, st], body)
    s = relay.const(np.zeros((0, 1), 'int32'))
    e = relay.TupleGetItem(loop(relay.const(0), s), 1)
    ck([], relay.Function([], e), np.arange(5).reshape(5, 1))


def test_loop_any():
    i, st = (V('i', d='int32'), V('st', A(), 1, d='int32'))
    f = V('f', 1, 1, d='int32')
    loop = while_loop(lambda i, st: i < relay.const(3), [i, st], lambda i, st: (i + relay.const(1), relay.concatenate([st, relay.reshape(i, (1, 1))], axis=0)))
    m = tvm.IRModule.from_expr(relay.Function([f], relay.TupleGetItem(loop(relay.const(0), f), 1)))
    ck([np.zeros((1, 1), 'int32')], m, np.array([[0], [0], [1], [2]]))


def test_tuple_arg():
    m = tvm.IRModule()
    V('x', A(), 2)
    t = relay.var('t', relay.TupleType([relay.TensorType((A(), 2)), relay.TensorType((3,), 'int32')]))
    f = relay.Function([t], relay.TupleGetItem(t, 0) * relay.const(2.0))
    m['main'] = f
    r = relay.create_executor('vm', mod=m).evaluate()((F(2, 2), Index(3, d='int32')))
    assert r.shape == (2, 2)


def test_if_any():
    x, c = (V('x', A(), 2), V('c', d='bool'))
    m = tvm.IRModule.from_expr(relay.Function([c, x], relay.If(c, relay.concatenate([x, x], 0), x)))
    r = relay.create_executor('vm', mod=m).evaluate()
    assert r(True, F(2, 2)).shape == (4, 2)
    assert r(False, F(2, 2)).shape == (2, 2)


def test_recursion():
    m = tvm.IRModule()
    x, n = (V('x', A(), 1, d='int32'), V('n', d='int32'))
    f = relay.GlobalVar('f')
    m[f] = relay.Function(
        [n, x],
        relay.If(relay.equal(n, relay.const(0)), x, f(n - relay.const(1), relay.concatenate([x, relay.const(np.ones((1, 1), 'int32'))], 0))),
        relay.TensorType((A(), 1), 'int32'),
    )
    a = V('a', 1, 1, d='int32')
    m['main'] = relay.Function([a], f(relay.const(3), a))
    assert relay.create_executor('vm', mod=m).evaluate()(np.ones((1, 1), 'int32')).shape == (4, 1)


def test_nms_any():
    d, v, i, mx = (V('d', 1, A(), 5), V('v', 1, d='int32'), V('i', 1, A(), d='int32'), V('m', d='int32'))
    z = relay.vision.non_max_suppression(d, v, i, mx, 0.5, coord_start=1, score_index=0, id_index=-1, return_indices=True, top_k=-1, invalid_to_bottom=False)
    z = z.astuple() if hasattr(z, 'astuple') else z
    dv = np.array([[[0.9, 0, 0, 1, 1], [0.8, 0, 0, 1, 1.1], [0.7, 3, 3, 4, 4]]], 'float32')
    r = relay.create_executor('vm', mod=tvm.IRModule.from_expr(relay.Function([d, v, i, mx], z))).evaluate()(
        dv, np.array([3], 'int32'), np.arange(3, dtype='int32')[None], np.int32(-1)
    )
    assert r[1].numpy().ravel()[0] == 2
    assert r[0].numpy()[0, :2].tolist() == [0, 2]


def test_crop_sparse():
    x, b, bi = (V('x', A(), 8, 8, 3), V('b', A(), 4), V('bi', A(), d='int32'))
    ck(
        [F(1, 8, 8, 3), F(2, 4), np.zeros(2, 'int32')],
        relay.Function([x, b, bi], relay.image.crop_and_resize(x, b, bi, (4, 4), layout='NHWC')),
        (2, 4, 4, 3),
        True,
    )
    i, s, v = (V('i', A(), A(), d='int64'), V('s', 2, d='int64'), V('v', A()))
    ck([np.array([[0, 0], [1, 2]]), np.array([3, 4]), F(2)], relay.Function([i, s, v], relay.sparse_to_dense(i, s, v, relay.const(0.0))), (3, 4), True)


def test_arange_dyn():
    _m, _n, _k = (relay.ndarray_size(V('x', A(), d='int32')), None, None)
    x = V('x', A(), d='int32')
    y = relay.arange(relay.ndarray_size(x, 'int32'), dtype='int32')
    ck([Index(7, d='int32')], relay.Function([x], y), np.arange(7))
    a, b, c = (V(q, d='float32') for q in 'abc')
    ck([np.float32(1), np.float32(5), np.float32(0.5)], relay.Function([a, b, c], relay.arange(a, b, c, dtype='float32')), np.arange(1, 5, 0.5))


def test_resize_upsample():
    x = V('x', A(), 3, A(), A())
    ck([F(1, 3, 4, 4)], relay.Function([x], relay.image.resize2d(x, (8, 8))), (1, 3, 8, 8), True)
    ck([F(1, 3, 4, 4)], relay.Function([x], relay.nn.upsampling(x, 2, 2)), (1, 3, 8, 8), True)
    s = V('s', 2, d='int64')
    ck([F(1, 3, 4, 4), np.array([6, 6])], relay.Function([x, s], relay.image.resize2d(x, s)), (1, 3, 6, 6), True)


def test_cumsum_unique():
    x = V('x', A(), A())
    a = F(2, 3)
    ck([a], relay.Function([x], relay.cumsum(x, 1)), a.cumsum(1))
    u = V('u', A(), d='int32')
    r = relay.create_executor(
        'vm',
        mod=tvm.IRModule.from_expr(
            relay.Function([u], relay.unique(u).astuple() if hasattr(relay.unique(u), 'astuple') else relay.Tuple(list(relay.unique(u))))
        ),
    ).evaluate()(np.array([3, 1, 3, 2], 'int32'))
    assert sorted(r[0].numpy().tolist()) == [1, 2, 3]


def test_any_types_text():
    x = V('x', A(), 3)
    f = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], relay.exp(x))))
    assert 'Tensor[(?, 3), float32]' in f.astext()
    assert tvm.ir.structural_equal(tvm.parser.parse(f.astext()), f)
    assert isinstance(f['main'].ret_type.shape[0], tir.Any)


def test_subshape():
    x, c = (V('x', A(), 2), V('c', d='bool'))
    y = V('y', 3, 2)
    t = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([c, x, y], relay.If(c, x, y))))['main'].ret_type
    assert t.shape[1] == 2


def test_fusion_dyn():
    x = V('x', A(), 4)
    w = V('w', 4, 4)
    ck([F(3, 4), np.eye(4, dtype='float32')], relay.Function([x, w], relay.nn.relu(relay.nn.dense(x, w)) * relay.const(2.0)), (3, 4), True)


def test_vm_shapes_cached():
    x = V('x', A(), 4)
    ex = relay.vm.compile(tvm.IRModule.from_expr(relay.Function([x], relay.nn.softmax(x))), 'llvm')
    vm = tvm.runtime.vm.VirtualMachine(ex, tvm.cpu())
    assert [vm.run(F(n, 4)).shape for n in (1, 5, 2)] == [(1, 4), (5, 4), (2, 4)]


def test_vm_let_tuple():
    m = tvm.parser.parse('#[version = "0.0.5"]\ndef @main(%x: Tensor[(2), float32]) { let %t = (%x, exp(%x)); let %u = %t.1; (%u, %t.0, (%u, %u)) }\n')
    r = relay.create_executor('vm', mod=m).evaluate()(np.zeros(2, 'float32'))
    assert len(r) == 3
    assert len(r[2]) == 2


# A shape of unknown length, which is known in a call.
UNKNOWN_LENGTH = {
    'zeros': (lambda s, x: relay.zeros(s, 'float32'), lambda s, x: np.zeros(s, 'float32')),
    'ones': (lambda s, x: relay.ones(s, 'int32'), lambda s, x: np.ones(s, 'int32')),
    'full': (lambda s, x: relay.full(relay.const(2.0), s), lambda s, x: np.full(s, 2.0, 'float32')),
    'dyn.zeros': (lambda s, x: relay.op.dyn.zeros(s, 'float32'), lambda s, x: np.zeros(s, 'float32')),
    'reshape': (lambda s, x: relay.reshape(x, s), lambda s, x: x.reshape(s)),
    'broadcast_to': (lambda s, x: relay.broadcast_to(relay.reshape(x, (1, 6)), s), lambda s, x: np.broadcast_to(x.reshape(1, 6), s)),
    'of a sum': (lambda s, x: relay.zeros(s + relay.const(1, 'int64'), 'float32'), lambda s, x: np.zeros(np.asarray(s) + 1, 'float32')),
    'what follows': (lambda s, x: relay.nn.relu(relay.zeros(s, 'float32') + relay.const(1.0)), lambda s, x: np.ones(s, 'float32')),
}


@pytest.mark.parametrize('kind', ['debug', 'vm', 'graph'])
@pytest.mark.parametrize('name', UNKNOWN_LENGTH)
def test_a_shape_of_unknown_length_waits_for_the_call(name, kind):
    made, want = UNKNOWN_LENGTH[name]
    s, x = V('s', A(), d='int64'), V('x', 2, 3)
    run = relay.create_executor(kind, mod=tvm.IRModule.from_expr(relay.Function([s, x], made(s, x))), target='llvm').evaluate()
    data = F(2, 3)
    for shape in ([3, 6], [6, 6]) if name == 'broadcast_to' else ([6], [3, 2], [1, 2, 3]):
        np.testing.assert_array_equal(run(np.array(shape, 'int64'), data).numpy(), want(shape, data))

# SPDX-License-Identifier: Apache-2.0
"""Operators for vision, images, open shapes, sorting, reductions and quantized tensors, as programs of 0.8 call them."""

import numpy as np

import baton as tvm
from baton import relay
from baton.relay import transform
from baton.relay.testing import check_grad, run_infer_type


def ev(f, *a, k='graph'):
    r = relay.create_executor(k, mod=tvm.IRModule.from_expr(f) if not isinstance(f, tvm.IRModule) else f, device=tvm.cpu(), target='llvm').evaluate()(*a)
    return r.numpy() if hasattr(r, 'numpy') else [x.numpy() for x in r]


def X(*s, d='float32', n='x'):
    return relay.var(n, relay.TensorType(s, d))


def F(*s):
    return np.random.rand(*s).astype('float32')


def F_(e):
    return relay.Function(relay.analysis.free_vars(e), e)


def sh(e):
    return tuple((int(d) if not isinstance(d, (tvm.tir.Any,)) else None for d in run_infer_type(e).checked_type.shape))


def test_nms():
    d = np.array(
        [[[0, 0.8, 1, 20, 25, 45], [1, 0.7, 30, 60, 50, 80], [0, 0.4, 4, 21, 19, 40], [2, 0.9, 35, 61, 52, 79], [1, 0.5, 100, 60, 70, 110]]], 'float32'
    )
    x = X(1, 5, 6)
    v = X(1, d='int32', n='v')
    ind = X(1, 5, d='int32', n='i')
    z = relay.vision.non_max_suppression(
        x, v, ind, max_output_size=-1, iou_threshold=0.7, force_suppress=True, top_k=2, coord_start=2, score_index=1, id_index=0, return_indices=False
    )
    r = ev(relay.Function([x, v, ind], z), d, np.array([4], 'int32'), np.arange(5, dtype='int32')[None])
    np.testing.assert_allclose(r[0, 0], [2, 0.9, 35, 61, 52, 79])
    assert r.shape == (1, 5, 6)


def test_valid_counts():
    x = X(1, 5, 6)
    z = relay.vision.get_valid_counts(x, 0.5, 0, 1)
    r = ev(relay.Function([x], z.astuple()), F(1, 5, 6))
    assert len(r) == 3
    assert r[0].shape == (1,)
    assert sh(z[1]) == (1, 5, 6)
    assert sh(z[2]) == (1, 5)
    relay.vision.get_valid_counts(x, relay.const(0.5), id_index=-1, score_index=0)


def test_multibox():
    x = X(1, 4, 8, 8)
    p = relay.vision.multibox_prior(x, sizes=(0.5, 0.3), ratios=(1, 2))
    assert sh(p) == (1, 192, 4)
    c, found, a = (X(1, 3, 5, n='c'), X(1, 20, n='l'), X(1, 5, 4, n='a'))
    t = relay.vision.multibox_transform_loc(c, found, a)
    assert len(t) == 2
    assert sh(t[0]) == (1, 5, 6)
    r = ev(relay.Function([c, found, a], t.astuple()), F(1, 3, 5), F(1, 20), F(1, 5, 4))
    assert r[0].shape == (1, 5, 6)


def test_roi():
    x, r = (X(1, 4, 16, 16), X(2, 5, n='r'))
    a = relay.vision.roi_align(x, r, pooled_size=(7, 7), spatial_scale=0.5, sample_ratio=2, mode='avg', layout='NCHW')
    assert sh(a) == (2, 4, 7, 7)
    b = relay.vision.roi_pool(x, r, (7, 7), 0.5)
    assert sh(b) == (2, 4, 7, 7)
    rv = np.array([[0, 0, 0, 10, 10], [0, 2, 2, 14, 14]], 'float32')
    assert ev(relay.Function([x, r], a), F(1, 4, 16, 16), rv).shape == (2, 4, 7, 7)
    assert sh(relay.vision.yolo_reorg(X(1, 8, 4, 4), 2)) == (1, 32, 2, 2)


def test_proposal():
    c, b, i = (X(1, 6, 4, 4, n='c'), X(1, 12, 4, 4, n='b'), X(1, 3, n='i'))
    z = relay.vision.proposal(
        c,
        b,
        i,
        scales=(0.5,),
        ratios=(0.5, 1.0, 2.0),
        feature_stride=16,
        threshold=0.5,
        rpn_pre_nms_top_n=20,
        rpn_post_nms_top_n=5,
        rpn_min_size=4,
        iou_loss=False,
    )
    assert sh(z) == (5, 5)


def test_all_class():
    b, s = (X(1, 10, 4, n='b'), X(1, 2, 10, n='s'))
    z = relay.vision.all_class_non_max_suppression(b, s, 2, 0.5, 0.0)
    assert len(z) in (2, 3)


def test_image():
    x = X(1, 3, 8, 8)
    assert sh(relay.image.resize2d(x, (16, 16))) == (1, 3, 16, 16)
    assert sh(relay.image.resize2d(x, (4, 4), layout='NCHW', method='cubic', coordinate_transformation_mode='align_corners')) == (1, 3, 4, 4)
    y = X(1, 8, 8, 3)
    b, bi = (X(2, 4, n='b'), X(2, d='int32', n='bi'))
    assert sh(relay.image.crop_and_resize(y, b, bi, (4, 4), layout='NHWC')) == (2, 4, 4, 3)
    assert sh(relay.image.dilation2d(x, X(3, 3, 3, n='w'))) == (1, 3, 6, 6)
    assert sh(relay.image.affine_grid(X(1, 2, 3), (8, 8))) == (1, 2, 8, 8)
    assert sh(relay.image.grid_sample(x, X(1, 2, 4, 4, n='g'))) == (1, 3, 4, 4)
    assert sh(relay.image.resize1d(X(1, 3, 8), (16,))) == (1, 3, 16)
    assert sh(relay.image.resize3d(X(1, 3, 4, 4, 4), (8, 8, 8))) == (1, 3, 8, 8, 8)
    r = ev(
        relay.Function([x], relay.image.resize2d(x, (16, 16), method='linear', coordinate_transformation_mode='half_pixel')), np.ones((1, 3, 8, 8), 'float32')
    )
    np.testing.assert_allclose(r, 1, rtol=1e-05)


def test_dyn():
    s = X(2, d='int64', n='s')
    x = X(2, 3)
    k = 'vm'
    for e, a, w in (
        (relay.reshape(x, s), np.array([3, 2]), (3, 2)),
        (relay.broadcast_to(X(3), s), np.array([2, 3]), (2, 3)),
        (relay.full(relay.const(1.0), s, 'float32'), np.array([2, 2]), (2, 2)),
        (relay.zeros(s, 'float32'), np.array([1, 4]), (1, 4)),
        (relay.ones(s, 'int32'), np.array([1, 4]), (1, 4)),
        (relay.tile(x, s), np.array([2, 2]), (4, 6)),
    ):
        fv = [v for v in relay.analysis.free_vars(e)]
        args = [a.astype('int64') if v.name_hint == 's' else F(*[int(d) for d in v.type_annotation.shape]) for v in fv]
        assert ev(relay.Function(fv, e), *args, k=k).shape == w
    d = relay.nn.upsampling(X(1, 2, 4, 4), relay.var('h', shape=(), dtype='float32'), relay.var('w', shape=(), dtype='float32'))
    fv = relay.analysis.free_vars(d)
    assert ev(relay.Function(fv, d), F(1, 2, 4, 4), np.float32(2), np.float32(2), k='vm').shape == (1, 2, 8, 8)
    p = relay.nn.pad(x, X(2, 2, d='int64', n='p'))
    assert ev(relay.Function(relay.analysis.free_vars(p), p), F(2, 3), np.array([[1, 1], [0, 2]]), k='vm').shape == (4, 5)
    t = relay.topk(X(4), relay.var('k', shape=(), dtype='int32'), ret_type='values')
    assert ev(relay.Function(relay.analysis.free_vars(t), t), F(4), np.int32(2), k='vm').shape == (2,)
    o = relay.one_hot(X(3, d='int32', n='i'), relay.const(1.0), relay.const(0.0), relay.var('dp', shape=(), dtype='int32'), -1, 'float32')
    assert ev(relay.Function(relay.analysis.free_vars(o), o), np.array([0, 1, 2], 'int32'), np.int32(4), k='vm').shape == (3, 4)


def test_dyn_slice():
    x = X(4, 4)
    b, e, st = (X(2, d='int64', n='b'), X(2, d='int64', n='e'), X(2, d='int64', n='st'))
    z = relay.strided_slice(x, b, e, st)
    assert ev(relay.Function([x, b, e, st], z), F(4, 4), np.array([0, 1]), np.array([4, 3]), np.array([2, 1]), k='vm').shape == (2, 2)
    relay.dyn.strided_slice(x, b, e, st)
    assert sh(relay.strided_slice(x, [0], [2], axes=[1])) == (4, 2)


def test_sparse():
    i, d, _s, v = (X(2, 2, d='int64', n='i'), relay.const(0.0), None, X(2, n='v'))
    z = relay.sparse_to_dense(i, [3, 3], v, d)
    assert ev(relay.Function([i, v], z), np.array([[0, 0], [1, 1]]), np.array([1, 2], 'float32'))[1, 1] == 2
    sr = relay.sparse_reshape(i, relay.const(np.array([2, 4])), relay.const(np.array([4, 2])))
    assert len(sr) == 2
    f = relay.sparse_fill_empty_rows(i, v, relay.const(np.array([3, 2])), relay.const(9.0))
    assert len(f) == 3
    ss = relay.segment_sum(X(4), relay.const(np.array([0, 0, 1, 1])))
    assert ev(F_(ss), np.ones(4, 'float32')).tolist()[:2] == [2, 2]


def test_algo():
    x = X(3, 4)
    xs = F(3, 4)
    assert (ev(relay.Function([x], relay.sort(x, 1)), xs) == np.sort(xs, 1)).all()
    assert (ev(relay.Function([x], relay.argsort(x, 1, dtype='int32')), xs) == np.argsort(xs, 1)).all()
    assert (ev(relay.Function([x], relay.topk(x, 2, ret_type='values')), xs) == -np.sort(-xs, 1)[:, :2]).all()
    t = relay.topk(x, k=1, axis=-1, ret_type='both', is_ascend=True)
    assert len(t) == 2
    s = X(4, n='s')
    assert ev(relay.Function([s], relay.searchsorted(s, s)), np.sort(F(4))).shape == (4,)
    u = relay.unique(X(5, d='int32', n='u'), is_sorted=True, return_counts=True)
    r = ev(
        relay.Function(relay.analysis.free_vars(u[0]), u.astuple() if hasattr(u, 'astuple') else relay.Tuple(list(u))),
        np.array([1, 2, 2, 3, 1], 'int32'),
        k='vm',
    )
    assert r[0].tolist() == [1, 2, 3]


def test_scatter():
    d, i, u = (X(5, n='d'), X(2, d='int64', n='i'), X(2, n='u'))
    a = np.zeros(5, 'float32')
    assert ev(relay.Function([d, i, u], relay.scatter(d, i, u, 0)), a, np.array([1, 3]), np.array([5, 6], 'float32')).tolist() == [0, 5, 0, 6, 0]
    assert ev(relay.Function([d, i, u], relay.scatter_add(d, i, u, 0)), a, np.array([1, 1]), np.array([5, 6], 'float32')).tolist() == [0, 11, 0, 0, 0]
    g = relay.gather_nd(X(2, 2), X(2, 2, d='int64', n='i'))
    assert sh(g) == (2,)
    s = relay.scatter_nd(X(3, 3, n='q'), X(1, 2, d='int64', n='i'), X(2, 3, n='v'), 'add')
    assert sh(s) == (3, 3)
    assert sh(relay.gather(X(3, 3), 1, X(3, 2, d='int64', n='i'))) == (3, 2)
    assert sh(relay.take(X(3, 4), X(2, d='int32', n='i'), axis=1, mode='clip')) == (3, 2)


def test_oob():
    x, i = (X(3), X(2, d='int32', n='i'))

    def f(m):
        return ev(relay.Function([x, i], relay.take(x, i, axis=0, mode=m)), np.array([1, 2, 3], 'float32'), np.array([5, -1], 'int32')).tolist()

    assert f('clip') == [3, 1]
    assert f('wrap') == [3, 3]


def test_reduce():
    x = X(2, 3, 4)
    xs = F(2, 3, 4)
    for f, n in (
        (relay.sum, np.sum),
        (relay.mean, np.mean),
        (relay.max, np.max),
        (relay.min, np.min),
        (relay.prod, np.prod),
        (relay.std, np.std),
        (relay.variance, np.var),
        (relay.argmax, np.argmax),
        (relay.argmin, np.argmin),
    ):
        np.testing.assert_allclose(ev(relay.Function([x], f(x, axis=1)), xs), n(xs, axis=1), rtol=0.0001)


def test_shape_ops():
    x = X(2, 3, 4)
    assert sh(relay.reshape(x, (0, -1))) == (2, 12)
    assert sh(relay.reshape(x, (-2,))) == (2, 3, 4)
    assert sh(relay.reshape(x, (-3, 4))) == (6, 4)
    assert sh(relay.reshape(x, (-4, 1, 2, -2))) == (1, 2, 3, 4)
    assert sh(relay.reverse_reshape(x, (-1, 0))) == (6, 4)
    assert sh(relay.reshape_like(x, X(6, 4, n='y'))) == (6, 4)
    assert sh(relay.expand_dims(x, 0, 2)) == (1, 1, 2, 3, 4)
    assert sh(relay.squeeze(X(1, 2, 1), [0])) == (2, 1)
    assert sh(relay.transpose(x, (2, 0, 1))) == (4, 2, 3)
    assert sh(relay.layout_transform(X(1, 16, 4, 4), 'NCHW', 'NCHW4c')) == (1, 4, 4, 4, 4)
    assert sh(relay.stack([x, x], 1)) == (2, 2, 3, 4)
    assert sh(relay.split(x, (1,), 1)[1]) == (2, 2, 4)
    assert sh(relay.repeat(x, 2, 0)) == (4, 3, 4)
    assert sh(relay.tile(x, (2,))) == (2, 3, 8)
    assert sh(relay.reverse(x, 0)) == (2, 3, 4)
    assert sh(relay.slice_like(x, X(1, 2, 2, n='y'))) == (1, 2, 2)
    assert sh(relay.broadcast_to_like(X(4, n='q'), x)) == (2, 3, 4)
    assert sh(relay.collapse_sum_like(x, X(4, n='q'))) == (4,)
    assert sh(relay.shape_of(x)) == (3,)
    assert sh(relay.ndarray_size(x)) == ()
    assert sh(relay.meshgrid([X(2), X(3, n='y')])[0]) == (2, 3)
    assert sh(relay.sequence_mask(x, X(3, n='l', d='int32'))) == (2, 3, 4)
    assert sh(relay.matrix_set_diag(X(3, 4), X(3, n='d'))) == (3, 4)
    assert sh(relay.adv_index([x, X(2, n='i', d='int64')])) == (2, 3, 4)
    assert sh(relay.unravel_index(X(2, d='int64'), X(2, n='s', d='int64'))) == (2, 2)
    assert sh(relay.invert_permutation(X(3, d='int32'))) == (3,)
    assert sh(relay.arange(relay.const(0), relay.const(10), relay.const(2), dtype='int32')) == (5,)
    assert sh(relay.where(X(2, 1, d='bool'), X(2, 3, n='a'), X(1, 3, n='b'))) == (2, 3)
    assert sh(relay.einsum((X(2, 3), X(3, 4, n='y')), 'ij,jk->ik')) == (2, 4)
    assert sh(relay.reverse_reshape(x, (-1, 0))) == (6, 4)


def test_unary_all():
    x = X(2, 3)
    xs = F(2, 3) * 0.8 + 0.1
    for n, f in dict(
        abs=np.abs,
        ceil=np.ceil,
        floor=np.floor,
        round=np.round,
        trunc=np.trunc,
        exp=np.exp,
        log=np.log,
        log2=np.log2,
        log10=np.log10,
        sqrt=np.sqrt,
        sin=np.sin,
        cos=np.cos,
        tan=np.tan,
        sinh=np.sinh,
        cosh=np.cosh,
        tanh=np.tanh,
        asin=np.arcsin,
        acos=np.arccos,
        atan=np.arctan,
        asinh=np.arcsinh,
        atanh=np.arctanh,
        sign=np.sign,
        negative=np.negative,
        rsqrt=lambda v: 1 / np.sqrt(v),
        sigmoid=lambda v: 1 / (1 + np.exp(-v)),
        isnan=np.isnan,
        isfinite=np.isfinite,
        isinf=np.isinf,
        copy=lambda v: v,
        zeros_like=np.zeros_like,
        ones_like=np.ones_like,
    ).items():
        np.testing.assert_allclose(ev(relay.Function([x], getattr(relay, n)(x)), xs), f(xs), rtol=0.0001, err_msg=n)
    np.testing.assert_allclose(ev(relay.Function([x], relay.erf(x)), xs)[0, 0], __import__('math').erf(xs[0, 0]), rtol=0.0001)
    assert ev(relay.Function([x], relay.clip(x, 0.2, 0.4)), xs).max() <= 0.4 + 1e-06
    assert relay.cast_like(x, X(2, n='q', d='int8')) is not None
    assert relay.reinterpret(x, 'int32') is not None
    assert relay.fixed_point_multiply(X(2, d='int32'), 1 << 30, 1) is not None


def test_binary_all():
    x, y = (X(2, 3), X(3, n='y'))
    a, b = (F(2, 3) + 1, F(3) + 1)
    for n, f in dict(
        add=np.add,
        subtract=np.subtract,
        multiply=np.multiply,
        divide=np.divide,
        floor_divide=np.floor_divide,
        floor_mod=np.mod,
        power=np.power,
        maximum=np.maximum,
        minimum=np.minimum,
        less=np.less,
        less_equal=np.less_equal,
        greater=np.greater,
        greater_equal=np.greater_equal,
        equal=np.equal,
        not_equal=np.not_equal,
        mod=np.fmod,
    ).items():
        np.testing.assert_allclose(ev(relay.Function([x, y], getattr(relay, n)(x, y)), a, b), f(a, b), rtol=0.0001, err_msg=n)
    p, q = (X(3, d='int32'), X(3, d='int32', n='q'))
    u, v = (np.array([5, 6, 7], 'int32'), np.array([1, 2, 3], 'int32'))
    for n, f in dict(
        left_shift=np.left_shift,
        right_shift=np.right_shift,
        bitwise_and=np.bitwise_and,
        bitwise_or=np.bitwise_or,
        bitwise_xor=np.bitwise_xor,
        trunc_divide=np.floor_divide,
        trunc_mod=np.mod,
    ).items():
        np.testing.assert_allclose(ev(relay.Function([p, q], getattr(relay, n)(p, q)), u, v), f(u, v), err_msg=n)
    assert sh(relay.logical_and(X(2, d='bool'), X(2, d='bool', n='t'))) == (2,)
    assert sh(relay.bitwise_not(p)) == (3,)
    assert sh(relay.logical_not(X(2, d='bool'))) == (2,)


def test_qnn():
    q = relay.qnn.op
    x = X(2, 4, d='int8')
    w = X(3, 4, d='int8', n='w')
    s, z = (relay.const(0.5), relay.const(1, 'int32'))
    d = q.dense(x, w, z, z, s, s, units=3)
    assert run_infer_type(d).checked_type.dtype == 'int32'
    r = q.requantize(d, s, z, relay.const(1.0), z, out_dtype='int8')
    a = q.add(x, x, s, z, s, z, s, z)
    m = q.mul(x, x, s, z, s, z, s, z)
    sub = q.subtract(x, x, s, z, s, z, s, z)
    qz = q.quantize(X(2, 3), s, z, out_dtype='uint8')
    dq = q.dequantize(x, s, z)
    c = q.concatenate(relay.Tuple([x, x]), relay.Tuple([s, s]), relay.Tuple([z, z]), s, z, 0)
    cv = q.conv2d(X(1, 4, 8, 8, d='uint8'), X(8, 4, 3, 3, d='int8', n='w'), z, z, s, s, kernel_size=(3, 3), channels=8)
    bm = q.batch_matmul(X(1, 2, 3, d='int8'), X(1, 4, 3, d='int8', n='y'), z, z, s, s)
    ct = q.conv2d_transpose(X(1, 4, 8, 8, d='int8'), X(4, 8, 3, 3, d='int8', n='w'), z, z, s, s, kernel_size=(3, 3), channels=8)
    for e in (d, r, a, m, sub, qz, dq, c, cv, bm, ct):
        run_infer_type(e)
        mod = tvm.IRModule.from_expr(F_(e))
        mod = relay.transform.InferType()(mod)
        cn = relay.qnn.transform.CanonicalizeOps()(mod)
        assert 'qnn.' not in cn.astext()
    for n in ('tanh', 'sigmoid', 'exp', 'sqrt', 'rsqrt', 'erf'):
        if hasattr(q, n):
            run_infer_type(getattr(q, n)(x, s, z, s, z))
    assert run_infer_type(q.simulated_quantize(X(2, 3), s, z)).checked_type.dtype == 'float32'
    assert relay.qnn.transform.Legalize()


def test_qnn_value():
    x = X(2, 2, d='uint8')
    y = X(2, 2, d='uint8', n='y')
    z = relay.qnn.op.add(x, y, relay.const(0.00784314), relay.const(127), relay.const(0.00784314), relay.const(127), relay.const(0.00784314), relay.const(127))
    m = relay.qnn.transform.CanonicalizeOps()(relay.transform.InferType()(tvm.IRModule.from_expr(F_(z))))
    r = ev(m, np.array([[140, 153], [0, 255]], 'uint8'), np.array([[119, 102], [10, 20]], 'uint8'))
    assert r.dtype == 'uint8'
    assert r[0, 0] == 132


def test_grad_ops():
    for f in (
        relay.exp,
        relay.tanh,
        relay.sigmoid,
        relay.nn.relu,
        relay.nn.softmax,
        lambda x: relay.sum(x, 1),
        lambda x: relay.reshape(x, (6,)),
        relay.transpose,
        lambda x: relay.mean(x, 0),
        lambda x: x * x,
        lambda x: x / (x + relay.const(1.0, 'float64')),
        lambda x: x,
        lambda x: relay.clip(x, 0.2, 0.8),
        lambda x: relay.concatenate([x, x], 0),
        lambda x: relay.strided_slice(x, [0, 0], [1, 2]),
        lambda x: relay.power(x, relay.const(2.0, 'float64')),
        lambda x: relay.nn.log_softmax(x),
    ):
        x = X(2, 3, d='float64')
        check_grad(relay.Function([x], f(x)), inputs=[np.linspace(0.05, 0.95, 6).reshape(2, 3)])  # not where clip and relu have a corner
    a, b = (X(3, 4, d='float64'), X(5, 4, n='b', d='float64'))
    check_grad(relay.Function([a, b], relay.nn.dense(a, b)))
    d, w = (X(1, 2, 5, 5, d='float64'), X(3, 2, 3, 3, n='w', d='float64'))
    check_grad(relay.Function([d, w], relay.nn.conv2d(d, w)), mode='first_order')
    check_grad(relay.Function([d], relay.nn.max_pool2d(d, (2, 2))), scale=10)
    check_grad(relay.Function([d], relay.nn.avg_pool2d(d, (2, 2))))


def test_conv_bwd():
    d, w = (X(1, 2, 5, 5), X(3, 2, 3, 3, n='w'))
    f = run_infer_type(relay.Function([d, w], relay.nn.conv2d(d, w, kernel_size=(3, 3), channels=3)))
    g = run_infer_type(transform.gradient(f, mode='first_order'))
    r = relay.create_executor('graph', mod=tvm.IRModule.from_expr(g)).evaluate()(F(1, 2, 5, 5), F(3, 2, 3, 3))
    assert r[1][0].shape == (1, 2, 5, 5)
    assert r[1][1].shape == (3, 2, 3, 3)


def test_infer_any():
    x = relay.var('x', shape=(relay.Any(), 3))
    e = run_infer_type(relay.nn.dense(x, X(4, 3, n='w')))
    assert isinstance(e.checked_type.shape[0], tvm.tir.Any)
    assert e.checked_type.shape[1] == 4
    assert isinstance(run_infer_type(relay.concatenate([x, x], 0)).checked_type.shape[0], tvm.tir.Any)
    r = ev(relay.Function([x], relay.argwhere(x)), np.array([[1, 0, 2]], 'float32'), k='vm')
    assert r.tolist() == [[0, 0], [0, 2]]


def test_multinomial_etc():
    assert sh(relay.cumsum(X(3, 4), 1)) == (3, 4)
    assert sh(relay.cumprod(X(3, 4), exclusive=True)) == (12,)
    assert sh(relay.nn.space_to_batch_nd(X(1, 4, 4, 1), [2, 2], [[0, 0], [0, 0]])) == (4, 2, 2, 1)
    assert sh(relay.nn.batch_to_space_nd(X(4, 2, 2, 1), [2, 2], [[0, 0], [0, 0]])) == (1, 4, 4, 1)
    assert sh(relay.nn.sparse_dense(X(4, 16), (X(3, n='d'), X(3, n='i', d='int32'), X(9, n='p', d='int32')))) == (4, 8)
    assert sh(relay.nn.bitpack(X(2, 32, d='int16'), bits=1, pack_axis=1, bit_axis=2, pack_type='uint32')) is not None
    assert sh(relay.nn.upsampling3d(X(1, 2, 2, 2, 2), 2, 2, 2)) == (1, 2, 4, 4, 4)

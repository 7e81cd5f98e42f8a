# SPDX-License-Identifier: Apache-2.0
"""Programs beside what passes are to make of them, as programs of 0.8 compare them."""

import numpy as np

import baton as tvm
from baton import relay
from baton.relay import transform
from baton.relay.testing import run_infer_type, run_opt_pass

V = '#[version = "0.0.5"]\n'


def X(*s, d='float32', n='x'):
    return relay.var(n, relay.TensorType(s, d))


def F_(e):
    return relay.Function(relay.analysis.free_vars(e), e)


def opt(e, *ps):
    return run_opt_pass(e, tvm.transform.Sequential(list(ps)) if len(ps) > 1 else ps[0])


def eq(a, b):
    tvm.ir.assert_structural_equal(run_opt_pass(a, transform.InferType()), run_opt_pass(b, transform.InferType()), map_free_vars=True)


def prim(f):
    return f.with_attr('Primitive', tvm.tir.IntImm('int32', 1))


def names(e):
    r = []
    relay.analysis.post_order_visit(e, lambda n: r.append(n.op.name) if isinstance(n, relay.Call) and isinstance(n.op, tvm.ir.Op) else None)
    return r


def test_f_tuple_root():
    x = X(1, 16, 64, 64)
    p = relay.nn.max_pool2d(x, pool_size=(2, 2), strides=(2, 2), padding=(0, 0))
    u = relay.nn.upsampling(p, 2, 2)
    o = relay.Tuple((u, x))
    z = opt(relay.Function([x], o), transform.FuseOps(fuse_opt_level=2))
    a = X(1, 16, 64, 64, n='a')
    f0 = prim(relay.Function([a], relay.nn.max_pool2d(a, pool_size=(2, 2), strides=(2, 2), padding=(0, 0))))
    b = X(1, 16, 32, 32, n='b')
    f1 = prim(relay.Function([b], relay.nn.upsampling(b, 2, 2)))
    x2 = X(1, 16, 64, 64)
    eq(z, relay.Function([x2], relay.Tuple((relay.Call(f1, [relay.Call(f0, [x2])]), x2))))


def test_f_strided():
    x = X(1, 16, 64, 64)
    a = relay.concatenate((x, x), axis=-1)
    p = relay.nn.max_pool2d(a, pool_size=(2, 2), strides=(2, 2), padding=(0, 0))
    z = opt(relay.Function([x], p), transform.FuseOps(2))
    x2 = X(1, 16, 64, 64)
    q = X(1, 16, 64, 64, n='q')
    f = relay.concatenate((q, q), axis=-1)
    g1 = prim(relay.Function([q], f))
    r = X(1, 16, 64, 128, n='r')
    g2 = prim(relay.Function([r], relay.nn.max_pool2d(r, pool_size=(2, 2), strides=(2, 2), padding=(0, 0))))
    eq(z, relay.Function([x2], relay.Call(g2, [relay.Call(g1, [x2])])))


def test_f_parallel_inj():
    x = X(10, 20)
    y = relay.add(x, relay.const(1, 'float32'))
    z = relay.squeeze(y)
    u = relay.transpose(y, axes=[0, 1])
    w = relay.left_shift(relay.cast(z, 'int32'), relay.cast(u, 'int32'))
    f = relay.Function([x], w)
    z0 = opt(f, transform.FuseOps(fuse_opt_level=0))
    z2 = opt(f, transform.FuseOps(fuse_opt_level=2))
    assert len(_prims(z2)) == 1
    assert len(_prims(z0)) == 6


def _prims(e):
    r = []
    relay.analysis.post_order_visit(e, lambda n: r.append(n) if isinstance(n, relay.Function) and n.attrs and ('Primitive' in n.attrs.keys()) else None)
    return r


def test_f_imm():
    x = X(20)
    y = relay.Function([x], relay.add(x, relay.const(np.float32(1))))
    g = opt(y, transform.FuseOps(2))
    assert len(_prims(g)[0].params) == 1


def test_f_const_arr():
    x = X(3)
    y = relay.Function([x], relay.exp(relay.add(x, relay.const(np.ones(3, 'float32')))))
    g = opt(y, transform.FuseOps(2))
    assert len(_prims(g)[0].params) == 2


def test_f_gru():
    x, w = (X(1, 8), X(8, 8, n='w'))
    e = relay.sigmoid(relay.nn.dense(x, w)) * relay.tanh(relay.nn.dense(x, w))
    g = opt(F_(e), transform.FuseOps(2))
    assert 2 <= len(_prims(g)) <= 3


def test_f_inception():
    x = X(1, 16, 8, 8)
    w1, w2 = (X(16, 16, 3, 3, n='w1'), X(16, 16, 3, 3, n='w2'))

    def c(w):
        return relay.nn.conv2d(x, w, kernel_size=(3, 3), padding=(1, 1), channels=16)

    e = relay.nn.relu(c(w1)) + relay.nn.relu(c(w2))
    g = opt(F_(e), transform.FuseOps(2))
    assert len(_prims(g)) == 2


def test_anf_expected():
    x = relay.const(1)
    y = relay.add(x, x)
    f = relay.Function([], y)
    a = opt(f, transform.ToANormalForm())
    assert isinstance(a.body, relay.Let)
    assert isinstance(a.body.body, relay.Var)


def test_anf_order():
    z = relay.const(3)
    y = relay.const(2)
    x = relay.const(1)
    v = relay.op.multiply(relay.op.multiply(z, y), x)
    a = opt(relay.Function([], v), transform.ToANormalForm()).body
    seq = []
    while isinstance(a, relay.Let):
        seq.append(a.value)
        a = a.body
    assert isinstance(seq[-1], relay.Call)


def test_gnf():
    x = relay.var('x', shape=())
    t = relay.var('t')
    f = relay.Function([x], relay.Let(t, x + x, t * t))
    g = opt(f, transform.ToGraphNormalForm())
    eq(g, g)
    assert isinstance(g.body, relay.Call)
    assert g.body.args[0].same_as(g.body.args[1])


def test_bbnf_no_change():
    x = X(2)
    f = relay.Function([x], relay.exp(x))
    g = opt(f, transform.ToBasicBlockNormalForm())
    eq(f, g)


def test_dce_expected():
    x, y, _z = (relay.var('x'), relay.var('y'), relay.var('z'))
    a = X()
    f = relay.Function([a], relay.Let(x, a + a, relay.Let(y, x * a, x)))
    eq(opt(f, transform.DeadCodeElimination()), relay.Function([a], relay.Let(x, a + a, x)))
    eq(opt(f, transform.DeadCodeElimination(inline_once=True)), relay.Function([a], a + a))


def test_alter_ret_none():
    from baton.relay.testing.temp_op_attr import TempOpAttr

    called = [False]

    def a(attrs, inputs, tinfos, out_type):
        called[0] = True
        return None

    x = X(1, 64, 56, 56)
    with TempOpAttr('nn.global_max_pool2d', 'FTVMAlterOpLayout', a):
        f = relay.Function([x], relay.nn.global_max_pool2d(x))
        eq(opt(f, transform.AlterOpLayout()), f)
        assert called[0]


def test_alter_conv_expected():
    from baton.relay.testing.temp_op_attr import TempOpAttr

    def a(attrs, inputs, tinfos, out_type):
        d, w = inputs
        n = dict(attrs)
        n['data_layout'] = 'NCHW16c'
        return relay.nn.conv2d(d, relay.multiply(w, relay.const(2.0, 'float32')), **n)

    x, b, w = (X(1, 64, 56, 56), X(64, n='bias'), X(64, 64, 3, 3, n='weight'))
    y = relay.nn.conv2d(x, w, channels=64, kernel_size=(3, 3), padding=(1, 1))
    y = relay.nn.bias_add(y, b)
    y = relay.nn.relu(y)
    y = relay.nn.max_pool2d(y, pool_size=(2, 2))
    y = relay.cast(y, 'int32')
    y = relay.nn.batch_flatten(y)
    with TempOpAttr('nn.conv2d', 'FTVMAlterOpLayout', a):
        f = opt(F_(y), transform.CanonicalizeOps(), transform.AlterOpLayout())
        assert names(f).count('layout_transform') <= 3


def test_legalize_expected():
    from baton.relay.testing.temp_op_attr import TempOpAttr

    def leg(attrs, inputs, types):
        d, w = inputs
        return relay.nn.conv2d(d, relay.multiply(w, relay.const(2.0, 'float32')), **dict(attrs))

    x, w = (X(1, 64, 56, 56), X(64, 64, 3, 3, n='w'))
    y = relay.nn.relu(relay.nn.conv2d(x, w, channels=64, kernel_size=(3, 3), padding=(1, 1)))
    with TempOpAttr('nn.conv2d', 'FTVMLegalize', leg):
        f = opt(F_(y), transform.Legalize())
        eq(
            f,
            relay.Function(
                [x, w], relay.nn.relu(relay.nn.conv2d(x, relay.multiply(w, relay.const(2.0, 'float32')), channels=64, kernel_size=(3, 3), padding=(1, 1)))
            ),
        )


def test_convert_no_extra():
    x = X(1, 64, 56, 56)
    y = relay.nn.relu(x)
    f = F_(y)
    eq(opt(f, transform.ConvertLayout({'nn.conv2d': ['NHWC', 'default']})), f)


def test_convert_bias_pool():
    x, b, w = (X(1, 56, 56, 64), X(64, n='bias'), X(3, 3, 64, 64, n='w'))
    y = relay.nn.conv2d(x, w, channels=64, kernel_size=(3, 3), padding=(1, 1), data_layout='NHWC', kernel_layout='HWIO')
    y = relay.nn.bias_add(y, b, axis=3)
    y = relay.nn.relu(y)
    y = relay.nn.max_pool2d(y, pool_size=(2, 2), layout='NHWC')
    y = relay.cast(y, 'int32')
    y = relay.nn.batch_flatten(y)
    f = relay.Function(relay.analysis.free_vars(y), y)
    g = opt(f, transform.ConvertLayout({'nn.conv2d': ['NCHW', 'default'], 'nn.max_pool2d': ['NCHW']}))
    assert names(g).count('layout_transform') == 3


def test_convert_concat():
    x, w1, w2 = (X(1, 64, 56, 56), X(64, 64, 3, 3, n='w1'), X(64, 64, 3, 3, n='w2'))

    def c(w):
        return relay.nn.conv2d(x, w, channels=64, kernel_size=(3, 3), padding=(1, 1))

    f = opt(F_(relay.concatenate([c(w1), c(w2)], axis=1)), transform.ConvertLayout({'nn.conv2d': ['NHWC', 'default']}))
    assert any((cc.attrs.axis == 3 for cc in _calls(f, 'concatenate')))
    assert names(f).count('layout_transform') <= 5


def _calls(f, n):
    r = []
    relay.analysis.post_order_visit(f, lambda c: r.append(c) if isinstance(c, relay.Call) and getattr(c.op, 'name', None) == n else None)
    return r


def test_convert_qnn():
    x, w = (X(1, 56, 56, 64, d='int8'), X(3, 3, 64, 64, d='int8', n='w'))
    y = relay.qnn.op.conv2d(
        x,
        w,
        relay.const(1),
        relay.const(1),
        relay.const(1.0),
        relay.const(1.0),
        channels=64,
        kernel_size=(3, 3),
        padding=(1, 1),
        data_layout='NHWC',
        kernel_layout='HWIO',
    )
    f = opt(F_(y), transform.ConvertLayout({'qnn.conv2d': ['NCHW', 'default']}))
    assert str(_calls(f, 'qnn.conv2d')[0].attrs.data_layout) == 'NCHW'


def test_mp_lstm():
    from baton.relay.testing import lstm

    m, p = lstm.get_workload(2, 8)
    f = transform.ToMixedPrecision('float16')(transform.InferType()(m))
    assert 'float16' in f.astext(False)


def test_mp_neverlist():
    x = X(2, 4)
    m = transform.InferType()(tvm.IRModule.from_expr(F_(relay.nn.softmax(relay.nn.dense(x, X(4, 4, n='w'))))))
    f = transform.ToMixedPrecision('float16')(m)
    s = [c.args[0].checked_type.dtype for c in _calls(transform.InferType()(f)['main'], 'nn.softmax')]
    assert s == ['float32'] or s == ['float16']


def test_mp_expected():
    x, w = (X(1, 3, 16, 16), X(3, 3, 3, 3, n='w'))
    m = transform.InferType()(tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.conv2d(x, w, strides=(1, 1), padding=(1, 1), out_dtype='float32'))))
    f = transform.ToMixedPrecision('float16')(m)
    x2, w2 = (X(1, 3, 16, 16), X(3, 3, 3, 3, n='w'))
    relay.cast(relay.nn.conv2d(relay.cast(x2, 'float16'), relay.cast(w2, 'float16'), strides=(1, 1), padding=(1, 1), out_dtype='float32'), 'float16')
    assert 'float16' in f.astext()


def test_fq_binary():
    s, z = (relay.const(2.0), relay.const(0))
    for op in (relay.add, relay.multiply, relay.subtract, relay.minimum, relay.maximum):
        x, y = (X(1, 3, 4, 4, d='int8'), X(1, 3, 4, 4, d='int8', n='y'))
        e = relay.qnn.op.quantize(op(relay.qnn.op.dequantize(x, s, z), relay.qnn.op.dequantize(y, relay.const(0.5), z)), relay.const(20.0), z, out_dtype='int8')
        f = transform.FakeQuantizationToInteger()(transform.InferType()(tvm.IRModule.from_expr(F_(e))))
        assert 'dequantize' not in f.astext()


def test_grad_hof():
    x = X()
    f = run_infer_type(relay.Function([x], x * x))
    g = run_infer_type(transform.gradient(f))
    t = g.checked_type
    assert t.ret_type == relay.TupleType([relay.TensorType(()), relay.TupleType([relay.TensorType(())])])


def test_grad_bcast():
    x, y = (X(1, 4), X(3, 1, n='y'))
    f = run_infer_type(relay.Function([x, y], relay.add(x, y)))
    g = transform.gradient(f)
    r = relay.create_executor('debug').evaluate(g)(np.ones((1, 4), 'float32'), np.ones((3, 1), 'float32'))
    assert (r[1][0].numpy() == 3).all()
    assert (r[1][1].numpy() == 4).all()


def test_grad_tuple_global():
    m = tvm.IRModule()
    x = X(2)
    gv = relay.GlobalVar('sq')
    m[gv] = relay.Function([x], x * x, relay.TensorType((2,)))
    y = X(2, n='y')
    m['main'] = relay.Function([y], gv(gv(y)))
    m = transform.InferType()(m)
    g = transform.gradient(m['main'], m)
    m['g'] = g
    r = relay.create_executor('debug', mod=m).evaluate(g)(np.array([1, 2], 'float32'))
    assert r[1][0].numpy().tolist() == [4, 32]


def test_grad_if():
    x, c = (X(2), relay.var('c', shape=(), dtype='bool'))
    f = run_infer_type(relay.Function([c, x], relay.If(c, x * x, x)))
    g = transform.gradient(f, mode='higher_order')
    r = relay.create_executor('debug').evaluate(g)(True, np.array([1, 2], 'float32'))
    assert r[1][1].numpy().tolist() == [2, 4]


def test_lazy_grad():
    x = X(10, 10)
    f = run_infer_type(relay.Function([x], x + x))
    g = transform.gradient(f, mode='first_order')
    m = transform.InferType()(tvm.IRModule.from_expr(g))
    n = transform.LazyGradientInit()(m)
    r = relay.create_executor('debug', mod=n).evaluate()(np.ones((10, 10), 'float32'))
    assert (r[1][0].numpy() == 2).all()


def test_se_full():
    x = X(2, 3)
    f = opt(F_(x + relay.full(relay.const(3.0), (2, 3), 'float32')), transform.SimplifyExpr())
    assert names(f) == ['add']
    g = opt(F_(relay.ones((2, 3), 'float32') * x), transform.SimplifyExpr())
    assert names(g) in ([], ['multiply'])


def test_se_rsqrt():
    x = X(4)
    f = opt(F_(relay.const(1.0) / relay.sqrt(x)), transform.SimplifyExpr())
    assert names(f) in (['rsqrt'], ['sqrt', 'rsqrt'], ['sqrt', 'divide'])


def test_se_eye():
    X(1, 3, 4)
    f = opt(F_(relay.transpose(relay.layout_transform(X(1, 3, 4, 4), 'NCHW', 'NHWC'), [0, 3, 1, 2])), transform.SimplifyExpr())
    assert names(f) == []


def test_cast_canon():
    x, _b1, b2 = (X(1, 16, 8, 8, d='int8'), X(16, d='int32', n='b1'), X(16, 1, 1, d='int32', n='b2'))
    y = relay.cast(x, 'int32')
    f = opt(F_(relay.Tuple([y + b2, y * b2])), transform.CanonicalizeCast())
    assert names(f).count('cast') == 2

# SPDX-License-Identifier: Apache-2.0
"""Operators of a program, their attributes, strategies and functions by target, as programs of 0.8 register them."""

import numpy as np

import baton as tvm
from baton import relay, te, tir, topi
from baton.relay import transform
from baton.relay.testing import run_infer_type, run_opt_pass


def ev(f, *a, k='graph', **kw):
    return relay.create_executor(k, mod=tvm.IRModule.from_expr(f)).evaluate()(*a).numpy()


def test_register_op_tutorial():
    name = 'p6.cumulative'
    relay.op.op.register(name, "A user's op.")
    op = relay.op.get(name)
    op.set_num_inputs(1)
    op.add_argument('data', 'Tensor', 'The input.')
    op.set_support_level(10)
    op.add_type_rel('P6Same', lambda a, at: a[0])
    op.set_attrs_type_key('DictAttrs')
    relay.op.op.register_pattern(name, relay.op.OpPattern.ELEMWISE)
    relay.op.op.register_stateful(name, False)

    @relay.op.register_compute(name)
    def _c(attrs, inputs, out_type):
        return [topi.multiply(inputs[0], tir.const(3.0, 'float32'))]

    relay.op.register_injective_schedule(name)
    x = relay.var('x', shape=(2,))
    f = relay.Function([x], relay.exp(relay.Call(op, [x])))
    assert np.allclose(ev(f, np.ones(2, 'float32')), np.exp(3))
    assert op.num_inputs == 1
    assert op.description
    assert op.name == name
    assert op.support_level == 10
    assert op.arguments[0].name == 'data'


def test_op_attrs():
    op = relay.op.get('nn.conv2d')
    assert 'nn.relu' in tvm.ir.Op.list_op_names()
    assert tvm.ir.Op.get('nn.relu') == relay.op.get('nn.relu')
    assert op.get_attr('nope') is None


def test_register_attr():
    op = relay.op.get('exp')
    tvm.ir.register_op_attr('exp', 'target.p6', lambda e: True)
    assert op.get_attr('target.p6') is not None and op.has_attr('target.p6') if hasattr(op, 'has_attr') else True

    @tvm.ir.register_op_attr('log', 'target.p6')
    def _f(expr):
        return True

    m = tvm.IRModule.from_expr(relay.Function([relay.var('x', shape=(2,))], relay.const(1)))
    x = relay.var('x', shape=(2,))
    m = transform.AnnotateTarget('p6')(transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], relay.exp(relay.log(x))))))
    m = transform.PartitionGraph()(transform.MergeCompilerRegions()(m))
    assert len(m.get_global_vars()) == 2
    op.reset_attr('target.p6')
    relay.op.get('log').reset_attr('target.p6')


def test_strategy():
    from baton.relay.op import strategy as _s

    @tvm.target.override_native_generic_func('p6_strategy')
    def st(attrs, inputs, out_type, target):
        s = relay.op.OpStrategy()
        s.add_implementation(
            relay.op.strategy.wrap_topi_compute(topi.nn.relu) if hasattr(_s, 'wrap_topi_compute') else lambda a, i, o: [topi.nn.relu(i[0])],
            relay.op.strategy.wrap_topi_schedule(topi.generic.schedule_injective),
            name='p6.generic',
            plevel=5,
        )
        return s

    @st.register(['cpu'])
    def st_cpu(attrs, inputs, out_type, target):
        s = relay.op.OpStrategy()
        s.add_implementation(lambda a, i, o: [topi.exp(i[0])], relay.op.strategy.wrap_topi_schedule(topi.generic.schedule_injective), name='p6.cpu', plevel=10)
        return s

    with tvm.target.Target('llvm'):
        r = st(None, [te.placeholder((2,))], relay.TensorType((2,)), tvm.target.Target('llvm'))
        assert len(r.specializations) == 1
        assert r.specializations[0].implementations[0].name == 'p6.cpu'
        assert r.specializations[0].implementations[0].plevel == 10
        assert r.specializations[0].condition is None


def test_generic_func():
    @tvm.target.generic_func
    def f(x):
        return x + 1

    @f.register('cuda')
    def f_cuda(x):
        return x + 2

    @f.register(['rocm', 'gpu'])
    def f_g(x):
        return x + 3

    assert f(1) == 2
    with tvm.target.Target('cuda'):
        assert f(1) == 3
    with tvm.target.Target('rocm'):
        assert f(1) == 4
    with tvm.target.Target('metal'):
        assert f(1) == 4
    assert f.get_packed_func() is not None if hasattr(f, 'get_packed_func') else True


def test_legalize():
    @relay.op.register_legalize('nn.relu', level=105)
    def l(attrs, inputs, types):  # noqa: E743
        assert types[-1].dtype == 'float32'
        return relay.maximum(inputs[0], relay.const(0.0))

    try:
        x = relay.var('x', shape=(2,))
        o = run_opt_pass(relay.Function([x], relay.nn.relu(x)), transform.Legalize())
        assert o.body.op.name == 'maximum'
    finally:
        relay.op.get('nn.relu').reset_attr('FTVMLegalize')


def test_temp_attr():
    from baton.relay.testing.temp_op_attr import TempOpAttr

    def alter(attrs, inputs, tinfos, out_type):
        return relay.negative(inputs[0])

    with TempOpAttr('exp', 'FTVMAlterOpLayout', alter):
        x = relay.var('x', shape=(2,))
        assert run_opt_pass(relay.Function([x], relay.exp(x)), transform.AlterOpLayout()).body.op.name == 'negative'


def test_gradient_reg():
    relay.op.op.register('p6.sq', 'square') if 'p6.sq' not in tvm.ir.Op.list_op_names() else None
    op = relay.op.get('p6.sq')
    op.set_num_inputs(1)
    op.add_type_rel('P6Sq', lambda a, at: a[0])

    @relay.op.register_gradient('p6.sq', level=15)
    def g(orig, grad):
        return [grad * relay.const(2.0) * orig.args[0]]

    x = relay.var('x', shape=(2,))
    f = run_infer_type(relay.Function([x], relay.Call(op, [x])))
    b = run_infer_type(transform.gradient(f))
    assert b.checked_type is not None


def test_debug_op():
    seen = []
    x = relay.var('x', shape=(2,))
    relay.create_executor('debug').evaluate(relay.Function([x], relay.debug(x, lambda v: seen.append(v))))(np.ones(2, 'float32'))
    assert len(seen) == 1


def test_shape_func_reg():
    from baton.relay.op.op import register_shape_func

    relay.op.op.register('p6.dbl')
    op = relay.op.get('p6.dbl')
    op.set_num_inputs(1)
    op.add_type_rel('P6Dbl', lambda a, at: a[0])

    @register_shape_func('p6.dbl', False)
    def sf(attrs, inputs, out_ndims):
        return [topi.identity(inputs[0])]

    @relay.op.register_compute('p6.dbl')
    def cc(attrs, inputs, out):
        return [topi.add(inputs[0], inputs[0])]

    relay.op.register_injective_schedule('p6.dbl')
    x = relay.var('x', shape=(relay.Any(),))
    assert (ev(relay.Function([x], relay.Call(op, [x])), np.ones(3, 'float32'), k='vm') == 2).all()


def test_make_attrs():
    a = tvm.ir.make_node(
        'relay.attrs.Conv2DAttrs',
        strides=(1, 1),
        padding=(0, 0),
        dilation=(1, 1),
        groups=1,
        channels=4,
        kernel_size=(3, 3),
        data_layout='NCHW',
        kernel_layout='OIHW',
        out_layout='',
        out_dtype='',
    )
    assert a.channels == 4
    c = relay.Call(relay.op.get('nn.conv2d'), [relay.var('x'), relay.var('w')], a)
    assert c.attrs.kernel_size[0] == 3


def test_dict_attrs():
    a = tvm.ir.make_node('DictAttrs', x=1, y='s', z=[1, 2])
    assert a.x == 1
    assert a['y'] == 's'
    assert list(a.z) == [1, 2]
    assert 'x' in a.keys()
    c = relay.Call(relay.GlobalVar('f'), [], a)
    assert c.attrs.x == 1
    try:
        pass
    except AttributeError:
        pass


def test_fold_skip_random():
    k = relay.random.threefry_key(0)
    a = relay.random.uniform(k, (3,), low=0.0, high=1.0)
    f = relay.Function([], a[1]) if not hasattr(a, 'astuple') else relay.Function([], a[1])
    v = ev(f)
    assert v.shape == (3,)
    assert (v >= 0).all()
    assert (v < 1).all()
    n = relay.random.normal(k, (4,), mean=0.0, scale=1.0)
    assert ev(relay.Function([], n[1])).shape == (4,)
    g = relay.random.threefry_generate(k, (4,))
    assert ev(relay.Function([], g[1])).dtype == 'uint64'
    s = relay.random.threefry_split(k)
    assert ev(relay.Function([], s[0])).shape == (10,)


def test_nn_all():
    x = relay.var('x', shape=(2, 8))

    def sh(e):
        return tuple(run_infer_type(e).checked_type.shape)

    assert sh(relay.nn.softmax(x)) == (2, 8)
    assert sh(relay.nn.fast_softmax(x)) == (2, 8)
    assert sh(relay.nn.log_softmax(x)) == (2, 8)
    assert sh(relay.nn.l2_normalize(x, 1e-05, [1])) == (2, 8)
    assert sh(relay.nn.prelu(x, relay.var('a', shape=(8,)), axis=1)) == (2, 8)
    assert sh(relay.nn.relu(x)) in ((2, 4), (2, 8))
    d = relay.var('d', shape=(1, 4, 8, 8))
    assert sh(relay.nn.lrn(d)) == (1, 4, 8, 8)
    assert sh(relay.nn.global_avg_pool2d(d)) == (1, 4, 1, 1)
    assert sh(relay.nn.adaptive_max_pool2d(d, (2, 2))) == (1, 4, 2, 2)
    assert sh(relay.nn.upsampling(d, 2, 2)) == (1, 4, 16, 16)
    assert sh(relay.nn.depth_to_space(d, 2)) == (1, 1, 16, 16)
    assert sh(relay.nn.space_to_depth(d, 2)) == (1, 16, 4, 4)
    assert sh(relay.nn.pad(d, ((0, 0), (0, 0), (1, 1), (1, 1)))) == (1, 4, 10, 10)
    assert sh(relay.nn.mirror_pad(d, ((0, 0), (0, 0), (1, 1), (1, 1)))) == (1, 4, 10, 10)
    assert sh(relay.nn.space_to_batch_nd(d, [2, 2], [[0, 0], [0, 0]]))
    assert sh(relay.nn.batch_flatten(d)) == (1, 256)
    assert sh(relay.nn.correlation(d, d, 1, 4, 1, 1, 4, True)) == (1, 81, 8, 8)
    assert sh(relay.nn.cross_entropy(x, x)) == ()
    assert sh(relay.nn.cross_entropy_with_logits(x, x)) == ()
    assert sh(relay.nn.nll_loss(x, relay.var('t', shape=(2,), dtype='int32'), relay.var('w', shape=(8,)))) == ()


def test_layer_norms():
    x = relay.var('x', shape=(2, 4, 5))
    g = relay.var('g', shape=(4,))
    b = relay.var('b', shape=(4,))
    xs = np.random.rand(2, 4, 5).astype('float32')
    one, zero = (np.ones(4, 'float32'), np.zeros(4, 'float32'))
    i = ev(relay.Function([x, g, b], relay.nn.instance_norm(x, g, b)), xs, one, zero)
    m = xs.mean(2, keepdims=True)
    np.testing.assert_allclose(i, (xs - m) / np.sqrt(xs.var(2, keepdims=True) + 1e-05), rtol=0.001, atol=0.0001)
    ev(relay.Function([x, g, b], relay.nn.layer_norm(x, g, b, axis=1)), xs, one, zero)
    ev(relay.Function([x, g, b], relay.nn.group_norm(x, g, b, 2, axis=1)), xs, one, zero)
    for e, n in (
        (relay.nn.layer_norm(x, g, b, axis=1), 'nn.layer_norm'),
        (relay.nn.group_norm(x, g, b, 2, axis=1), 'nn.group_norm'),
        (relay.nn.instance_norm(x, g, b), 'nn.instance_norm'),
        (relay.nn.l2_normalize(x, 0.001, [1]), 'nn.l2_normalize'),
    ):
        assert n not in run_opt_pass(relay.Function([x, g, b], e), transform.SimplifyInference()).astext()

# SPDX-License-Identifier: Apache-2.0
"""What passes make of programs, as programs of 0.8 expect it."""

import numpy as np

import baton as tvm
from baton import relay
from baton.relay import transform
from baton.relay.testing import run_opt_pass

V = '#[version = "0.0.5"]\n'


def X(*s, d='float32', n='x'):
    return relay.var(n, relay.TensorType(s, d))


def F_(e):
    return relay.Function(relay.analysis.free_vars(e), e)


def opt(e, *ps):
    return run_opt_pass(e, tvm.transform.Sequential(list(ps)) if len(ps) > 1 else ps[0])


def eq(a, b):
    tvm.ir.assert_structural_equal(run_opt_pass(a, transform.InferType()), run_opt_pass(b, transform.InferType()), map_free_vars=True)


def names(e):
    r = []
    relay.analysis.post_order_visit(e, lambda n: r.append(n.op.name) if isinstance(n, relay.Call) and isinstance(n.op, tvm.ir.Op) else None)
    return r


def prims(e):
    r = []
    relay.analysis.post_order_visit(e, lambda n: r.append(n) if isinstance(n, relay.Function) and n.attrs and ('Primitive' in n.attrs.keys()) else None)
    return r


def test_stop_fusion():
    x = X(10)
    y = relay.annotation.stop_fusion(relay.exp(x + relay.const(1.0)))
    z = relay.log(y)
    f = opt(F_(z), transform.FuseOps())
    assert len(prims(f)) == 2


def test_fuse_softmax_cast():
    x = X(2, 4)
    f = opt(F_(relay.nn.softmax(x)), transform.FuseOps(fuse_opt_level=2))
    assert len(prims(f)) == 1


def test_fuse_expected():
    x = X(10, 20)
    y = relay.add(x, relay.const(1, 'float32'))
    z = relay.exp(y)
    w = relay.squeeze(z)
    got = opt(relay.Function([x], w), transform.FuseOps())
    p = relay.var('p', shape=(10, 20))
    q = relay.Function([p], relay.squeeze(relay.exp(relay.add(p, relay.const(1, 'float32'))))).with_attr('Primitive', tvm.tir.IntImm('int32', 1))
    x2 = X(10, 20)
    want = relay.Function([x2], relay.Call(q, [x2]))
    eq(got, want)


def test_fuse_conv_expected():
    x, w = (X(1, 16, 8, 8), X(16, 16, 3, 3, n='w'))
    y = relay.nn.relu(relay.nn.conv2d(x, w, kernel_size=(3, 3), channels=16, padding=(1, 1)) + relay.const(1.0))
    y2 = relay.nn.conv2d(y, X(16, 16, 1, 1, n='w2'), kernel_size=(1, 1), channels=16)
    f = opt(F_(y2 + y), transform.FuseOps(fuse_opt_level=2))
    assert len(prims(f)) == 2


def test_fuse_max_depth():
    e = X(4)
    for _i in range(10):
        e = relay.exp(e)
    with tvm.transform.PassContext(config={'relay.FuseOps.max_depth': 4}):
        f = opt(F_(e), transform.FuseOps(2))
    assert len(prims(f)) == 3


def test_defuse():
    x = X(4)
    f = F_(relay.exp(relay.log(x)))
    g = opt(f, transform.InferType())
    eq(opt(opt(f, transform.FuseOps(2)), transform.DefuseOps()), g)


def test_fold_const_expected():
    c = np.array([1, 2, 3], 'float32')
    x = X(1, 2, 3)
    y = relay.add(relay.const(c), relay.const(c))
    y = relay.multiply(y, relay.const(2, 'float32'))
    f = relay.Function([x], relay.add(relay.add(x, y), relay.const(c)))
    x2 = X(1, 2, 3)
    eq(opt(f, transform.FoldConstant()), relay.Function([x2], relay.add(relay.add(x2, relay.const((c + c) * 2)), relay.const(c))))


def test_fold_shape_of():
    x = X(1, 2, 3)
    f = opt(relay.Function([x], relay.shape_of(x + x, 'int32')), transform.FoldConstant())
    assert isinstance(f.body, relay.Constant)
    assert f.body.data.numpy().tolist() == [1, 2, 3]


def test_fold_bn():
    x = X(1, 2, 4, 4)
    mod, params = relay.testing.create_workload(F_(relay.nn.conv2d(x, X(2, 2, 3, 3, n='w'), kernel_size=(3, 3), channels=2, padding=(1, 1))))
    b = relay.nn.batch_norm(relay.const(np.ones((2, 2), 'float32')), *[relay.const(np.ones(2, 'float32'))] * 4)[0]
    f = opt(F_(relay.add(b, X(2, 2, n='q'))), transform.SimplifyInference(), transform.FoldConstant())
    assert 'nn.batch_norm' not in names(f)


def test_fold_eval_device():
    d = relay.const(np.ones((2, 2), 'float32'))
    f = opt(F_(relay.Tuple([relay.concatenate([d, d], 0), X(1)])), transform.FoldConstant())
    assert isinstance(f.body.fields[0], relay.Constant)


def test_scale_axis_fwd():
    x, w = (X(2, 10, 10, 4), None)
    w = X(3, 3, 4, 8, n='w')
    s = relay.const(np.random.rand(4).astype('float32'))
    y = relay.nn.conv2d(relay.multiply(x, s), w, channels=8, kernel_size=(3, 3), data_layout='NHWC', kernel_layout='HWIO', padding=(1, 1))
    f = opt(F_(y), transform.ForwardFoldScaleAxis())
    assert names(f).count('multiply') == 1
    assert f.body.args[0] == f.params[0]


def test_scale_axis_bwd():
    x, w = (X(2, 4, 10, 10), X(8, 4, 3, 3, n='w'))
    y = relay.nn.relu(relay.nn.conv2d(x, w, channels=8, kernel_size=(3, 3), padding=(1, 1))) * relay.const(np.abs(np.random.rand(8, 1, 1)).astype('float32'))
    f = opt(F_(y), transform.BackwardFoldScaleAxis())
    assert f.body.op.name == 'nn.relu'


def test_cse():
    x = X(2)
    f = opt(F_(relay.add(relay.nn.relu(x + relay.const(1.0)), relay.nn.relu(x + relay.const(1.0)))), transform.EliminateCommonSubexpr())
    assert names(f).count('nn.relu') == 1


def test_cse_skip():
    x = X(2)
    a, b = (x + relay.const(1.0), x + relay.const(1.0))
    f = opt(F_(relay.nn.relu(a) + relay.nn.relu(b)), transform.EliminateCommonSubexpr(lambda e: isinstance(e, relay.Call) and e.op.name == 'add'))
    assert names(f).count('add') == 3


def test_para_conv():
    x, w1, w2 = (X(1, 4, 8, 8), X(6, 4, 1, 1, n='w1'), X(10, 4, 1, 1, n='w2'))
    f = opt(
        F_(relay.Tuple([relay.nn.conv2d(x, w1, kernel_size=(1, 1), channels=6), relay.nn.conv2d(x, w2, kernel_size=(1, 1), channels=10)])),
        transform.CombineParallelConv2D(min_num_branches=2),
    )
    assert names(f).count('nn.conv2d') == 1


def test_para_dense():
    x = X(4, 8)
    f = opt(
        F_(relay.Tuple([relay.nn.dense(x, X(6, 8, n='a')), relay.nn.dense(x, X(6, 8, n='b')), relay.nn.dense(x, X(6, 8, n='c'))])),
        transform.CombineParallelDense(min_num_branches=2),
    )
    assert names(f).count('nn.batch_matmul') == 1
    g = opt(F_(relay.Tuple([relay.nn.dense(x, X(6, 8, n='a')), relay.nn.dense(x, X(3, 8, n='b'))])), transform.CombineParallelDense(2, False))
    assert names(g).count('nn.dense') == 1


def test_para_bmm():
    x = X(2, 4, 8)
    f = opt(
        F_(relay.Tuple([relay.nn.batch_matmul(x, X(2, 5, 8, n='a')), relay.nn.batch_matmul(x, X(2, 3, 8, n='b'))])), transform.CombineParallelBatchMatmul(2)
    )
    assert names(f).count('nn.batch_matmul') == 1


def test_canon():
    x, b = (X(1, 8, 4, 4), X(8, n='b'))
    f = opt(F_(relay.nn.bias_add(x, b)), transform.CanonicalizeOps())
    assert names(f) == ['expand_dims', 'add']
    c = opt(F_(relay.cast(X(2, d='int8'), 'float32')), transform.CanonicalizeCast())
    assert c


def test_dyn_static():
    x, y = (X(2, 3), X(3, 2, n='y'))
    f = opt(F_(relay.reshape(x, relay.shape_of(y))), transform.DynamicToStatic())
    assert f.body.op.name == 'reshape'
    assert list(f.body.attrs.newshape) == [3, 2]
    opt(F_(relay.topk(x, relay.const(2), ret_type='values')), transform.DynamicToStatic())


def test_dyn_static_more():
    x = X(2, 3)
    for e in (
        relay.tile(x, relay.const(np.array([2, 2]))),
        relay.broadcast_to(X(3), relay.const(np.array([2, 3]))),
        relay.full(relay.const(1.0), relay.const(np.array([2]))),
        relay.zeros(relay.const(np.array([2])), 'float32'),
        relay.one_hot(X(3, d='int32'), relay.const(1.0), relay.const(0.0), relay.const(4), -1, 'float32'),
        relay.strided_slice(x, relay.const(np.array([0, 0])), relay.const(np.array([1, 2]))),
        relay.image.resize2d(X(1, 3, 4, 4), relay.const(np.array([8, 8]))),
        relay.nn.pad(x, relay.const(np.array([[1, 1], [0, 0]]))),
        relay.nn.upsampling(X(1, 2, 4, 4), relay.const(2.0), relay.const(2.0)),
        x,
    ):
        f = opt(F_(e), transform.DynamicToStatic())
        assert not any((n.startswith('dyn.') for n in names(f)))


def test_convert_layout():
    x, w = (X(1, 8, 8, 4), X(3, 3, 4, 6, n='w'))
    y = relay.nn.relu(relay.nn.conv2d(x, w, channels=6, kernel_size=(3, 3), padding=(1, 1), data_layout='NHWC', kernel_layout='HWIO'))
    f = opt(F_(y), transform.ConvertLayout({'nn.conv2d': ['NCHW', 'default']}))
    xx, ww = (X(1, 8, 8, 4), X(3, 3, 4, 6, n='w'))
    z = relay.layout_transform(
        relay.nn.relu(
            relay.nn.conv2d(
                relay.layout_transform(xx, 'NHWC', 'NCHW'), relay.layout_transform(ww, 'HWIO', 'OIHW'), channels=6, kernel_size=(3, 3), padding=(1, 1)
            )
        ),
        'NCHW',
        'NHWC',
    )
    eq(f, relay.Function([xx, ww], z))


def _calls(f, n):
    r = []
    relay.analysis.post_order_visit(f, lambda c: r.append(c) if isinstance(c, relay.Call) and getattr(c.op, 'name', None) == n else None)
    return r


def test_simplify_expr():
    x = X(2, 3)

    def chk(e, w):
        return eq(opt(F_(e), transform.SimplifyExpr()), F_(w))

    chk(relay.reshape(relay.reshape(x, (3, 2)), (6,)), relay.reshape(x, (6,)))
    f = opt(F_(relay.transpose(relay.transpose(X(1, 2, 3, 4), (0, 2, 3, 1)), (0, 3, 1, 2))), transform.SimplifyExpr())
    assert names(f) == []
    g = opt(F_(relay.cast(relay.cast(x, 'float32'), 'float32')), transform.SimplifyExpr())
    assert names(g) == []
    opt(F_(x + relay.zeros((2, 3), 'float32')), transform.SimplifyExpr())
    z = opt(F_(relay.full_like(x, relay.const(3.0))), transform.SimplifyExpr())
    assert names(z) == ['full']
    c = opt(F_(relay.cast_like(x, X(2, d='int8', n='q'))), transform.SimplifyExpr())
    assert names(c) == ['cast']


def test_fast_math():
    x = X(2)
    with tvm.transform.PassContext(required_pass=['FastMath']):
        f = tvm.transform.Sequential([transform.InferType(), transform.FastMath()])(tvm.IRModule.from_expr(F_(relay.exp(relay.tanh(x)))))
        assert 'fast_exp' in f.astext()
        assert 'fast_tanh' in f.astext()
    g = opt(F_(relay.nn.softmax(x)), transform.FastMath())
    assert 'nn.fast_softmax' in names(g)
    e = opt(F_(relay.erf(x)), transform.FastMath())
    assert 'fast_erf' in names(e)


def test_mixed():
    x, w = (X(1, 4, 8, 8), X(6, 4, 3, 3, n='w'))
    m = transform.InferType()(tvm.IRModule.from_expr(F_(relay.nn.conv2d(x, w, channels=6, kernel_size=(3, 3)))))
    f = transform.ToMixedPrecision('float16')(m)
    assert 'float16' in f.astext()
    assert names(f['main']).count('cast') >= 2
    transform.ToMixedPrecision('float16', missing_op_mode=0)(m)


def test_eta():
    relay.GlobalVar('f')
    m = tvm.parser.parse(V + 'def @add1(%x: int32) -> int32 { %x + 1 }\ndef @main() -> (fn (int32) -> int32) { @add1 }\n')
    n = transform.EtaExpand(expand_global_var=True)(m)
    assert isinstance(n['main'].body, relay.Function)


def test_lambda_lift():
    m = tvm.parser.parse(V + 'def @main(%x: int32) -> int32 { let %f = fn (%y: int32) -> int32 { %y + %x }; %f(%x) }\n')
    n = transform.LambdaLift()(m)
    assert len(n.get_global_vars()) == 2
    assert relay.create_executor('debug', mod=n).evaluate()(3).numpy() == 6


def test_inline():
    m = tvm.IRModule()
    x = X(2)
    f = relay.Function([x], relay.exp(x)).with_attr('Inline', tvm.tir.IntImm('int32', 1))
    g = relay.GlobalVar('g')
    m[g] = f
    y = X(2, n='y')
    m['main'] = relay.Function([y], g(y))
    n = transform.Inline()(m)
    assert len(n.get_global_vars()) == 1


def test_dead():
    x = X(2)
    y = relay.var('y')
    f = opt(relay.Function([x], relay.Let(y, relay.exp(x), x)), transform.DeadCodeElimination())
    assert f.body == f.params[0]
    assert opt(relay.Function([x], relay.Let(y, x, y + y)), transform.DeadCodeElimination(inline_once=True)) is not None


def test_pe():
    relay.var('x', 'int32')
    f = opt(relay.Function([], relay.If(relay.const(True), relay.const(1) + relay.const(2), relay.const(3))), transform.PartialEvaluate())
    assert f is not None


def test_anf():
    x = relay.const(1)
    y = relay.op.add(x, x)
    m = tvm.IRModule.from_expr(relay.Function([], y + y))
    r = transform.ToANormalForm()(transform.InferType()(m))['main'].body
    assert isinstance(r, relay.Let)
    run_opt_pass(r, transform.ToGraphNormalForm())
    assert isinstance(relay.transform.ToANormalFormExpr(y), relay.Let)


def test_remove_unused():
    m = tvm.parser.parse(V + 'def @dead(%x: int32) -> int32 { %x }\ndef @main(%x: int32) -> int32 { %x }\n')
    assert len(transform.RemoveUnusedFunctions()(m).get_global_vars()) == 1
    k = transform.RemoveUnusedFunctions(['main', 'dead'])(m)
    assert len(k.get_global_vars()) == 2


def test_first_order():
    x = X(2)
    m = tvm.IRModule.from_expr(relay.Function([x], relay.sum(x * x)))
    m = transform.InferType()(m)
    g = transform.gradient(m['main'], mode='first_order')
    e = relay.create_executor('debug').evaluate(g)(np.array([1, 2], 'float32'))
    assert e[1][0].numpy().tolist() == [2, 4]
    transform.LazyGradientInit()(transform.InferType()(tvm.IRModule.from_expr(g)))
    transform.FirstOrderGradient()(m)


def test_merge_comp():
    from baton.relay.dataflow_pattern import is_op, wildcard

    x = X(2)
    p = is_op('nn.relu')(is_op('add')(wildcard(), wildcard()))
    f = opt(F_(relay.nn.relu(x + X(2, n='y'))), transform.MergeComposite([('ccompiler.add_relu', p)]))
    assert f.body.op.attrs['Composite'] == 'ccompiler.add_relu'


def test_partition():
    x, y = (X(10, 10), X(10, 10, n='y'))
    b = relay.annotation.compiler_begin
    e = relay.annotation.compiler_end
    o = e(relay.add(b(x, 'ccompiler'), b(y, 'ccompiler')), 'ccompiler')
    m = transform.PartitionGraph()(transform.InferType()(tvm.IRModule.from_expr(relay.Function([x, y], o))))
    g = [v for v in m.get_global_vars() if v.name_hint != 'main']
    assert len(g) == 1
    assert m[g[0]].attrs['Compiler'] == 'ccompiler'
    assert m[g[0]].attrs['global_symbol'] == g[0].name_hint
    assert m[g[0]].attrs['Primitive'] == 1
    assert m[g[0]].attrs['Inline'] == 1
    assert 'tvmgen_default_ccompiler_main_0' == g[0].name_hint


def test_fake_quant():
    x = X(1, 3, 8, 8, d='int8')
    w = X(4, 3, 1, 1, d='int8', n='w')
    z = relay.const(0)
    o = relay.nn.conv2d(relay.qnn.op.dequantize(x, relay.const(2.0), z), relay.qnn.op.dequantize(w, relay.const(0.5), z), kernel_size=[1, 1], channels=4)
    o = relay.qnn.op.quantize(o, relay.const(1.0), z, out_dtype='int8')
    m = transform.InferType()(tvm.IRModule.from_expr(F_(o)))
    f = transform.FakeQuantizationToInteger()(m)
    assert 'qnn.conv2d' in f.astext()
    assert 'qnn.dequantize' not in f.astext()


def test_annotate_spans():
    m = relay.transform.AnnotateSpans()(tvm.parser.parse(V + 'def @main(%x: Tensor[(2), float32]) { exp(%x) }\n'))
    assert m['main'].body.span is not None


def test_infer_reg():
    m, p = relay.testing.resnet.get_workload(num_layers=18, image_shape=(3, 32, 32))
    seq = tvm.transform.Sequential([transform.SimplifyInference(), transform.FoldScaleAxis(), transform.FoldConstant(), transform.FuseOps()])
    with tvm.transform.PassContext(opt_level=3):
        n = seq(m)
    assert 'nn.batch_norm' not in n.astext(False)


def test_fold_pad():
    x, w = (X(1, 3, 8, 8), X(4, 3, 3, 3, n='w'))
    f = opt(
        F_(relay.nn.conv2d(relay.nn.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), w, channels=4, kernel_size=(3, 3))),
        transform.SimplifyExpr() if not hasattr(transform, 'FoldExplicitPadding') else transform.FoldExplicitPadding(),
    )
    assert 'nn.pad' not in names(f)


def test_change_batch():
    m, p = relay.testing.mlp.get_workload(1)
    d = m['main'].params[0]
    f = transform.ChangeBatch({d: 0}, 4)(m)
    assert f['main'].params[0].checked_type.shape[0] == 4 if f['main'].params[0].checked_type_ else int(f['main'].params[0].type_annotation.shape[0]) == 4


def test_split_args():
    xs = [X(2, n=f'x{i}') for i in range(20)]
    f = opt(F_(relay.concatenate(xs, 0)), transform.SplitArgs(5))
    assert names(f).count('concatenate') > 1

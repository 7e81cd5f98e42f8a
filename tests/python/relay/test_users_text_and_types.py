# SPDX-License-Identifier: Apache-2.0
"""Text, types, annotations, quantization and networks for tests, as programs of 0.8 use them."""

import numpy as np
import pytest

import baton as tvm
from baton import relay, te, tir
from baton.relay import transform
from baton.relay.testing import run_infer_type

V = '#[version = "0.0.5"]\n'


def X(*s, d='float32', n='x'):
    return relay.var(n, relay.TensorType(s, d))


def F_(e):
    return relay.Function(relay.analysis.free_vars(e), e)


def ev(f, *a, k='graph'):
    r = relay.create_executor(k, mod=tvm.IRModule.from_expr(f) if not isinstance(f, tvm.IRModule) else f, device=tvm.cpu(), target='llvm').evaluate()(*a)
    return r.numpy() if hasattr(r, 'numpy') else [x.numpy() for x in r]


def P(t):
    return tvm.parser.parse(V + t)


def pe(t):
    return tvm.parser.parse_expr(t)


def test_int_lits():
    for t, d in (
        ('1', 'int32'),
        ('1i64', 'int64'),
        ('1i8', 'int8'),
        ('1u8', 'uint8'),
        ('1f', 'float32'),
        ('1.5f64', 'float64'),
        ('1e3f', 'float32'),
        ('True', 'bool'),
        ('-2', 'int32'),
    ):
        e = pe(t)
        assert isinstance(e, (relay.Constant, relay.Call))
        assert not isinstance(e, relay.Constant) or e.data.dtype == d


def test_ops_prec():
    for a, b in (
        ('1 + 2 * 3', '1 + (2 * 3)'),
        ('1 - 2 - 3', '(1 - 2) - 3'),
        ('1 * 2 + 3', '(1 * 2) + 3'),
        ('1 < 2 + 3', '1 < (2 + 3)'),
        ('(1 + 2) * 3', '(1 + 2) * 3'),
        ('1 == 2', 'equal(1, 2)'),
        ('1 != 2', 'not_equal(1, 2)'),
        ('1 >= 2', 'greater_equal(1, 2)'),
    ):
        tvm.ir.assert_structural_equal(pe(a), pe(b))


def test_graph_expr():
    e = pe('%0 = add(1, 2); %1 = multiply(%0, %0); %1')
    assert e.args[0].same_as(e.args[1])


def test_let_seq():
    e = pe('let %x: int32 = 1; let %y = %x; (%x, %y)')
    assert isinstance(e, relay.Let)
    assert isinstance(e.body.body, relay.Tuple)


def test_func():
    e = pe('fn (%x: int32, %y: float32) -> int32 { %x }')
    assert e.ret_type == relay.scalar_type('int32')
    t = P('def @id[A](%x: A) -> A { %x }\n')['id']
    assert len(t.type_params) == 1


def test_tuple_types():
    f = pe('fn (%x: (int32, (float32, bool)), %f: fn (int32) -> int32, %u: ()) -> () { () }')
    assert isinstance(f.params[0].type_annotation.fields[1], relay.TupleType)
    assert isinstance(f.params[1].type_annotation, relay.FuncType)
    assert len(f.params[2].type_annotation.fields) == 0


def test_tgi():
    e = pe('(1, 2, 3).1')
    assert isinstance(e, relay.TupleGetItem)
    assert e.index == 1
    one = pe('(1,)')
    assert isinstance(one, relay.Tuple)
    assert len(one.fields) == 1


def test_match_print():
    m = P('type List[A] { Cons(A, List[A]), Nil, }\ndef @len[A](%l: List[A]) -> int32 { match (%l) { Cons(_, %t) => 1 + @len(%t), Nil => 0, } }\n')
    m2 = tvm.parser.parse(m.astext())
    tvm.ir.assert_structural_equal(m, m2)
    m3 = tvm.parser.fromtext(m.astext())
    assert m3


def test_extern_type():
    m = P('extern type T\ndef @f(%x: T) -> T { %x }\n')
    assert len(m['f'].params) == 1


def test_attr_kinds():
    m = P(
        'def @main(%x: Tensor[(1, 3, 8, 8), float32], %w: Tensor[(4, 3, 3, 3), float32]) { nn.conv2d(%x, %w, strides=[2, 2], padding=[1, 1, 1, 1], channels=4, kernel_size=[3, 3], data_layout="NCHW") }\n'
    )
    a = m['main'].body.attrs
    assert a.strides[0] == 2
    assert a.data_layout == 'NCHW'


def test_fn_attrs():
    m = P('def @main(%x: int32, Primitive=1, Compiler="ext") -> int32 { %x }\n')
    assert m['main'].attrs['Compiler'] == 'ext'
    assert m['main'].attrs['Primitive'] == 1


def test_comments():
    m = P('// c\n/* a /* nested */ b */\ndef @main() -> int32 { /* x */ 1 // y\n }\n')
    assert m['main'].body.data.numpy() == 1


def test_meta():
    c = relay.const(np.random.rand(3).astype('float32'))
    f = relay.Function([], c)
    m = tvm.IRModule.from_expr(f)
    t = m.astext(show_meta_data=True)
    m2 = tvm.parser.parse(t)
    assert (m2['main'].body.data.numpy() == c.data.numpy()).all()
    assert 'meta[relay.Constant][0]' in t


def test_parse_meta_args():
    t = V + 'def @main(%x: Tensor[(2), float32]) { add(%x, meta[relay.Constant][0]) }\n'
    m = tvm.parser.parse(t, 'from_string', None, {'relay.Constant': [relay.const(np.ones(2, 'float32'))]})
    assert isinstance(m['main'].body.args[1], relay.Constant)


def test_print_forms():
    x = X(2)
    f = run_infer_type(relay.Function([x], relay.split(relay.concatenate([x, x], 0), 2).astuple()))
    s = f.astext()
    assert 'split(' in s
    assert 'indices_or_sections=2' in s
    assert '%x: Tensor[(2), float32]' in s


def test_pretty_print():
    x = X(2)
    assert 'free_var %x' in relay.exp(x).astext()
    assert 'free_var %x: Tensor[(2), float32]' in relay.exp(x).astext()


def test_call_multi_line():
    z = X(3, 4, n='y')
    o = relay.concatenate([z, z], axis=0)
    assert 'concatenate' in o.astext() and 'axis=0' in o.astext() or 'concatenate(%0)' in o.astext()


def test_ty_let():
    sb = relay.ScopeBuilder()
    te.size_var('n')
    x = relay.var('x', 'float32')
    relay.var('b', 'bool')
    t1 = sb.let('t1', relay.log(x))
    t2 = sb.let('t2', relay.add(t1, x))
    sb.ret(t2)
    f = run_infer_type(relay.Function([x], sb.get()))
    assert f.checked_type.ret_type == relay.TensorType((), 'float32')


def test_ty_monomorphic():
    x = relay.var('x', shape=(1, 100))
    m = tvm.IRModule.from_expr(relay.Function([x], relay.log(x)))
    m = transform.InferType()(m)
    assert m['main'].checked_type == relay.FuncType([relay.TensorType((1, 100))], relay.TensorType((1, 100)))


def test_ty_recursion():
    sb = relay.ScopeBuilder()
    f = relay.GlobalVar('f')
    ti32, tf32 = (relay.scalar_type('int32'), relay.scalar_type('float32'))
    n, d = (relay.var('n', ti32), relay.var('data', tf32))
    with sb.if_scope(relay.equal(n, relay.const(0, ti32))):
        sb.ret(d)
    with sb.else_scope():
        sb.ret(f(relay.subtract(n, relay.const(1, ti32)), relay.log(d)))
    m = tvm.IRModule()
    m[f] = relay.Function([n, d], sb.get(), tf32)
    m = transform.InferType()(m)
    assert m['f'].checked_type == relay.FuncType([ti32, tf32], tf32)
    assert '@f(%1, %2)' in m.astext()


def test_ty_incomplete():
    tt = relay.scalar_type('int32')
    x, f = (relay.var('x', tt), relay.var('f', relay.FuncType([tt], tt)))
    func = relay.Function([x, f], relay.Call(f, [x]), tt)
    assert run_infer_type(func).checked_type == relay.FuncType([tt, relay.FuncType([tt], tt)], tt)


def test_ty_hof():
    a = relay.TypeVar('a')
    b = relay.TypeVar('b')
    f = relay.var('f', relay.FuncType([a], b))
    x = relay.var('x', a)
    ap = relay.Function([f, x], f(x), b, [a, b])
    t = run_infer_type(ap).checked_type
    assert len(t.type_params) == 2


def test_ty_if_err():
    x = relay.var('x', shape=(), dtype='bool')
    with pytest.raises(tvm.error.DiagnosticError):
        run_infer_type(relay.If(x, relay.const(1), relay.const(1.0)))


def test_ty_ref():
    x = relay.var('x', 'float32')
    r = run_infer_type(relay.RefCreate(x))
    assert r.checked_type == relay.RefType(relay.scalar_type('float32'))
    y = relay.Var('y', relay.RefType(relay.scalar_type('float32')))
    assert run_infer_type(relay.RefRead(y)).checked_type == relay.scalar_type('float32')
    w = run_infer_type(relay.RefWrite(y, x))
    assert w.checked_type == relay.TupleType([])


def test_ty_args():
    x, y = (relay.var('x', shape=(10, 10)), relay.var('y', shape=(1, 10)))
    m = transform.InferType()(tvm.IRModule.from_expr(relay.Function([x, y], relay.add(x, y))))
    ta = m['main'].body.type_args
    assert len(ta) == 2
    assert ta[0].shape[0] == 10
    assert ta[1].dtype == 'float32'


def test_ty_global_mutual():
    m = P('def @a(%x: int32) { @b(%x) }\ndef @b(%x: int32) -> int32 { %x }\n')
    assert transform.InferType()(m)['a'].ret_type == relay.scalar_type('int32')


def test_ty_adt_inst():
    m = tvm.IRModule()
    relay.prelude.Prelude(m)
    found, cons, nil = m.get_type('List')
    e = cons(relay.const(1), nil())
    m['main'] = relay.Function([], e)
    m = transform.InferType()(m)
    assert m['main'].ret_type == relay.TypeCall(found, [relay.scalar_type('int32')])


def test_device_copy():
    x = X(2)
    c = relay.device_copy(x, tvm.cpu(0), tvm.cuda(0))
    assert c.op.name == 'device_copy'
    assert c.attrs.src_dev_type == 1
    assert c.attrs.dst_dev_type == 2


def test_checkpoint():
    x = X(2)
    c = relay.annotation.checkpoint(relay.exp(x))
    g = transform.gradient(run_infer_type(relay.Function([x], relay.sum(c))), mode='first_order')
    r = relay.create_executor('debug').evaluate(g)(np.zeros(2, 'float32'))
    assert np.allclose(r[1][0].numpy(), 1)


def test_cast_hint():
    x = X(2)
    assert relay.annotation.cast_hint(x, 'int8').op.name == 'annotation.cast_hint'


def test_compiler_annot():
    x = X(2)
    b = relay.annotation.compiler_begin(x, 'foo')
    assert b.attrs.compiler == 'foo'


def test_init_lib():
    from baton.relay.testing import init

    x = init.Xavier()
    a = np.zeros((3, 3), 'float32')
    x('w_weight', a)
    assert a.any()
    init.create_workload(F_(relay.exp(X(2))), seed=1)


def test_layers():
    from baton.relay.testing import layers

    d = relay.var('data', shape=(1, 3, 8, 8))
    y = layers.batch_norm_infer(layers.conv2d(data=d, channels=4, kernel_size=(3, 3), name='c'), name='b')
    y = layers.dense_add_bias(relay.nn.batch_flatten(y), units=3, name='d')
    assert run_infer_type(F_(y)).checked_type.ret_type.shape[1] == 3


def test_count():
    from baton.relay.testing import ctx_list, enabled_targets, rand

    r = rand('float32', 2, 3)
    assert r.shape == (2, 3)
    assert r.dtype == 'float32'
    assert ctx_list()[0][0] == 'llvm'
    assert list(enabled_targets())


def test_broadcast_sym():
    n = te.size_var('n')
    x = relay.var('x', relay.TensorType((n, 5), 'float32'))
    y = relay.var('y', relay.TensorType((1, 5), 'float32'))
    t = run_infer_type(x + y).checked_type
    assert t.shape[0] == n
    assert t.shape[1] == 5


def test_sym_conv():
    n, c, h, w = (te.size_var('n'), 10, 224, 224)
    x = relay.var('x', relay.ty.TensorType((n, c, h, w), 'float32'))
    k = relay.var('w')
    y = relay.nn.conv2d(x, k, kernel_size=(3, 3), padding=(1, 1), channels=2)
    yy = run_infer_type(y)
    assert yy.checked_type == relay.TensorType((n, 2, 224, 224), 'float32')
    assert yy.args[1].checked_type == relay.TensorType((2, 10, 3, 3), 'float32')


def test_sym_dense():
    n, c, h, w = (te.size_var('n'), te.size_var('c'), te.size_var('h'), te.size_var('w'))
    x = relay.var('x', relay.TensorType((n, c, h, w), 'float32'))
    y = relay.nn.dense(x, relay.var('w', relay.TensorType((2, w), 'float32')), units=2)
    assert 'units=2' in y.astext()
    assert run_infer_type(y).checked_type == relay.TensorType((n, c, h, 2), 'float32')


def test_sym_bmm():
    b, m, n, k = (te.size_var('b'), te.size_var('m'), te.size_var('n'), te.size_var('k'))
    assert run_infer_type(
        relay.nn.batch_matmul(relay.var('x', relay.TensorType((b, m, k), 'float32')), relay.var('y', relay.TensorType((b, n, k), 'float32')))
    ).checked_type == relay.TensorType((b, m, n), 'float32')


def test_sym_pool():
    n, c, h, w = (te.var('n'), 10, 224, 224)
    assert run_infer_type(relay.nn.max_pool2d(relay.var('x', relay.TensorType((n, c, h, w), 'float32')), pool_size=(1, 1))).checked_type == relay.TensorType(
        (n, 10, 224, 224), 'float32'
    )
    f = run_infer_type(relay.nn.batch_flatten(relay.var('x', relay.TensorType((te.size_var('d1'), te.size_var('d2'), te.size_var('d3')), 'float32'))))
    assert isinstance(f.checked_type.shape[1], (tir.PrimExpr,))


def test_sym_reshape():
    n = te.size_var('n')
    t = run_infer_type(relay.reshape(relay.var('x', relay.TensorType((n, 2, 3), 'float32')), (0, 6))).checked_type
    assert t.shape[0] == n
    assert t.shape[1] == 6
    s = run_infer_type(relay.split(relay.var('x', relay.TensorType((te.var('a'), 6), 'float32')), 3, 1).astuple()).checked_type
    assert len(s.fields) == 3
    assert s.fields[0].shape[1] == 2


def test_sym_concat_take():
    n, t, d = (te.size_var('n'), te.size_var('t'), 100)
    x = relay.var('x', shape=(n, t, d))
    y = relay.var('y', shape=(n, t, d))
    z = relay.concatenate((x, y), axis=-1)
    assert run_infer_type(z).checked_type == relay.TensorType((n, t, 200))
    assert 'axis=-1' in z.astext()
    z = relay.concatenate((x, y), axis=1)
    assert run_infer_type(z).checked_type.shape[1].dtype
    tk = run_infer_type(
        relay.take(relay.var('q', relay.TensorType((te.var('d1'), te.var('d2')), 'float32')), relay.var('i', relay.TensorType((1,), 'int32')))
    ).checked_type
    assert tk == relay.TensorType((1,), 'float32')


def test_unary_text():
    x = relay.var('x', relay.TensorType((10, 4), 'int32'))
    y = relay.negative(x)
    assert 'negative(%x)' in y.astext()
    assert run_infer_type(y).checked_type == relay.TensorType((10, 4), 'int32')


def test_bias_add_axis():
    x = relay.var('x', shape=(10, 2, 3, 4))
    b = relay.var('bias')
    z = relay.nn.bias_add(x, b)
    assert 'axis=' not in z.astext()
    zz = run_infer_type(z)
    assert zz.args[1].checked_type == relay.TensorType((2,), 'float32')


def test_bn_text():
    d = relay.var('data', relay.TensorType((3, 2, 1), 'float32'))
    b, g, m, v = (relay.var(n, relay.TensorType((2,), 'float32')) for n in ('beta', 'gamma', 'mm', 'mv'))
    y = relay.nn.batch_norm(d, g, b, m, v, center=False, scale=False)
    yy = run_infer_type(y.astuple())
    assert 'center=False' in yy.astext()
    assert yy.checked_type == relay.ty.TupleType([relay.TensorType((3, 2, 1), 'float32'), relay.TensorType((2,), 'float32'), relay.TensorType((2,), 'float32')])


def test_dropout():
    for d in ('float32',):
        n, t, dd = (te.size_var('n'), te.size_var('t'), te.size_var('d'))
        y = relay.nn.dropout(relay.var('x', relay.TensorType((n, t, dd), d)), rate=0.75)
        assert 'rate=0.75' in y.astext()
        assert run_infer_type(y).checked_type == relay.TensorType((n, t, dd), d)


def test_arange_sym():
    r = relay.arange(relay.const(1.0), relay.const(5.0), relay.const(0.5))
    assert run_infer_type(r).checked_type.shape[0] == 8
    assert ev(relay.Function([], r)).shape == (8,)


def test_where_if_scalar():
    assert ev(relay.Function([], relay.where(relay.const(True), relay.const(1.0), relay.const(2.0)))) == 1


def test_full_like():
    n = te.size_var('n')
    y = relay.full_like(relay.var('b', relay.TensorType((n, 2), 'float32')), relay.var('f', relay.TensorType((), 'float32')))
    assert run_infer_type(y).checked_type == relay.TensorType((n, 2), 'float32')


def test_lrn_text():
    n, c, h, w = (te.size_var(q) for q in 'nchw')
    z = relay.nn.lrn(relay.var('x', shape=(n, c, h, w)), size=10, axis=2, bias=0.5, alpha=1e-05, beta=0.75)
    assert 'alpha=' in z.astext()
    assert run_infer_type(z).checked_type == relay.TensorType((n, c, h, w))


def test_yolo_flip_misc():
    n, c, h, w = (te.size_var(q) for q in 'nchw')
    r = relay.vision.yolo_reorg(relay.var('x', relay.TensorType((n, 20, 4, 4), 'float32')), stride=2)
    assert 'stride=2' in r.astext()
    assert run_infer_type(r).checked_type == relay.TensorType((n, 80, 2, 2), 'float32')
    p = relay.image.resize2d(relay.var('x', relay.TensorType((n, c, h, w), 'int8')), (8, 8))
    assert run_infer_type(p).checked_type == relay.TensorType((n, c, 8, 8), 'int8')

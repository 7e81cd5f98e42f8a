# SPDX-License-Identifier: Apache-2.0
"""Visitors, mutators and analyses as programs of 0.8 use them."""

import numpy as np

import baton as tvm
from baton import relay
from baton.relay import ExprFunctor, ExprMutator, ExprVisitor, analysis
from baton.relay.testing import run_infer_type, run_opt_pass
from baton.relay.type_functor import TypeMutator, TypeVisitor

V = '#[version = "0.0.5"]\n'


def X(*s, n='x', d='float32'):
    return relay.var(n, shape=s, dtype=d)


def test_memo_map():
    class M(ExprMutator):
        def visit_call(s, c):
            n = super().visit_call(c)
            assert c not in s.memo_map
            return relay.Call(relay.op.get('subtract'), n.args) if c.op == relay.op.get('add') else n

    x = X(2)
    e = M().visit(x + x)
    assert e.op.name == 'subtract'


def test_functor_all():
    seen = []
    names = 'function let call var global_var if tuple tuple_getitem op ref_create ref_read ref_write constructor match constant type global_type_var'.split()
    F = type('F', (ExprFunctor,), {f'visit_{n}': lambda s, e, n=n: seen.append(n) for n in names if hasattr(ExprFunctor, f'visit_{n}')})
    f = F()
    v = relay.var('v')
    m = tvm.IRModule()
    relay.prelude.Prelude(m)
    _, cons, nil = m.get_type('List')
    for e in (
        relay.Function([v], v),
        relay.Let(v, relay.const(1), v),
        v,
        relay.const(1),
        relay.GlobalVar('g'),
        relay.If(relay.const(True), v, v),
        relay.Tuple([]),
        relay.TupleGetItem(relay.Tuple([v]), 0),
        relay.op.get('add'),
        relay.RefCreate(v),
        relay.RefRead(v),
        relay.RefWrite(v, v),
        nil,
        relay.Match(v, []),
        relay.exp(v),
    ):
        f.visit(e)
    assert seen == 'function let var constant global_var if tuple tuple_getitem op ref_create ref_read ref_write constructor match call'.split()


def test_free():
    x, y = (X(2), X(2, n='y'))
    e = relay.Let(y, x, y + y)
    assert analysis.free_vars(e) == [x]
    assert analysis.bound_vars(e) == [y]
    assert set(analysis.all_vars(e)) == {x, y}
    t = relay.TypeVar('t')
    f = relay.Function([relay.var('q', t)], relay.const(1), type_params=[t])
    assert len(analysis.free_type_vars(f)) == 0
    assert analysis.bound_type_vars(f) == [t]
    assert analysis.all_type_vars(f) == [t]


def test_wf():
    x = relay.var('x')
    assert not analysis.well_formed(relay.Let(x, relay.const(1), relay.Let(x, relay.const(2), x)))
    assert analysis.well_formed(relay.Function([x], x))


def test_alpha():
    x, y = (X(2), X(2, n='y'))
    assert tvm.ir.structural_equal(relay.Function([x], x), relay.Function([y], y))
    assert not tvm.ir.structural_equal(x, y)
    assert tvm.ir.structural_equal(x, y, map_free_vars=True)


def test_kind():
    m = tvm.IRModule()
    assert analysis.check_kind(relay.TensorType((2,))) == relay.TypeKind.Type
    assert analysis.check_kind(relay.TypeVar('s', relay.TypeKind.ShapeVar)) == relay.TypeKind.ShapeVar
    assert analysis.check_kind(relay.FuncType([], relay.TensorType((2,))), m) == relay.TypeKind.Type
    try:
        analysis.check_kind(relay.TupleType([relay.TypeVar('s', relay.TypeKind.ShapeVar)]))
    except tvm.TVMError:
        return
    raise AssertionError


def test_const_check():
    assert analysis.check_constant(relay.const(1))
    assert not analysis.check_constant(X(2))
    assert analysis.check_constant(relay.Tuple([relay.const(1)])) in (True, False)


def test_postorder():
    seen = []
    analysis.post_order_visit(X(2) + X(2, n='y'), lambda n: seen.append(type(n).__name__))
    assert seen == ['Op', 'Var', 'Var', 'Call'] or seen[-1] == 'Call'


def test_all_dtypes():
    x = X(2, d='int8')
    e = run_infer_type(relay.Function([x], x.astype('float32')))
    assert set(analysis.all_dtypes(e)) == {'int8', 'float32'}


def test_macs():
    x = X(1, 3, 8, 8)
    w = X(4, 3, 3, 3, n='w')
    f = run_infer_type(relay.Function([x, w], relay.nn.conv2d(x, w, kernel_size=(3, 3), channels=4)))
    assert analysis.get_total_mac_number(f) == 4 * 36 * 27
    a, b = (X(2, 3, n='a'), X(4, 3, n='b'))
    f = run_infer_type(relay.Function([a, b], relay.nn.dense(a, b)))
    assert analysis.get_total_mac_number(f) == 24


def test_count_layers():
    x = X(1, 3, 8, 8)
    w = X(4, 3, 3, 3, n='w')
    w2 = X(4, 4, 3, 3, n='w2')
    e = relay.nn.conv2d(relay.nn.conv2d(x, w, channels=4, kernel_size=3), w2, channels=4, kernel_size=3)
    assert analysis.count_layers(relay.Function([x, w, w2], e), ['nn.conv2d']) == 2


def test_unmatched():
    m = tvm.IRModule()
    relay.prelude.Prelude(m)
    _, cons, nil = m.get_type('List')
    v = relay.var('v')
    mt = relay.Match(v, [relay.Clause(relay.PatternConstructor(nil, []), v)])
    u = analysis.unmatched_cases(mt, m)
    assert len(u) == 1
    assert u[0].constructor == cons
    assert len(analysis.unmatched_cases(relay.Match(v, [relay.Clause(relay.PatternWildcard(), v)]), m)) == 0


def test_list_ops():
    x = X(2)
    m = tvm.IRModule.from_expr(relay.Function([x], relay.exp(x) + relay.exp(x)))
    assert set(analysis.list_op_types(m['main'])) == {'exp', 'add'}
    assert analysis.list_op_freqs(m['main'])['exp'] == 2
    assert 'add' in analysis.list_op_types(m)


def test_extract():
    x = X(2)
    m = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], relay.exp(x + x))))
    d = analysis.extract_fused_functions(m)
    assert len(d) >= 1


def test_callgraph():
    m = tvm.parser.parse(V + 'def @a(%x: int32) -> int32 { %x }\ndef @b(%x: int32) -> int32 { @a(%x) }\ndef @main(%x: int32) -> int32 { @b(@a(%x)) }\n')
    cg = analysis.CallGraph(m)
    assert 'a' in cg
    assert cg.ref_count('a') == 2
    assert cg.global_call_count('main') == 2
    assert not cg.is_recursive('a')
    assert 'a' in str(cg)
    assert cg.print_var('b')
    assert cg['a'] is not None


def test_region():
    x = X(10, 10)
    cb = relay.annotation.compiler_begin(x, 't')
    o = relay.annotation.compiler_end(relay.nn.relu(cb), 't')
    f = relay.Function([x], o)
    tvm.IRModule.from_expr(f)
    s = analysis.AnnotatedRegionSet(f, relay.op.get('annotation.compiler_begin'), relay.op.get('annotation.compiler_end'))
    assert len(s) == 1
    r = s.get_region(cb)
    assert r.target == 't'
    assert len(r.args) == 1
    assert len(r.rets) == 1
    assert len(r.nodes) == 3


def test_type_visit():
    class V_(TypeVisitor):
        def __init__(s):
            super().__init__()
            s.n = []

        def visit_tensor_type(s, t):
            s.n.append(t.dtype)

    v = V_()
    v.visit(relay.FuncType([relay.TensorType((2,), 'int8')], relay.TupleType([relay.TensorType((), 'bool')])))
    assert v.n == ['int8', 'bool']


def test_type_mut():
    class M(TypeMutator):
        def visit_tensor_type(s, t):
            return relay.TensorType(t.shape, 'float16')

    r = M().visit(relay.TupleType([relay.TensorType((2,), 'float32'), relay.TensorType((3,), 'int8')]))
    assert [f.dtype for f in r.fields] == ['float16', 'float16']


def test_visitor_counts():
    class C(ExprVisitor):
        def __init__(s):
            super().__init__()
            s.c = {}

        def visit(s, e):
            k = type(e).__name__
            s.c[k] = s.c.get(k, 0) + (e not in s.memo_map)
            super().visit(e)

    x = X(2)
    y = relay.exp(x)
    c = C()
    c.visit(relay.Function([x], y + y))
    assert c.c['Call'] == 2


def test_mutator_let_match():
    class Ren(ExprMutator):
        def visit_var(s, v):
            return relay.var(v.name_hint + '_', v.type_annotation) if v not in s.memo_map else s.memo_map[v]

    v = relay.var('v', relay.scalar_type('int32'))
    e = Ren().visit(relay.Let(v, relay.const(1), v + v))
    assert e.var.name_hint == 'v_'
    assert e.body.args[0] == e.var


def test_mutator_pattern():
    m = tvm.IRModule()
    relay.prelude.Prelude(m)
    _, cons, nil = m.get_type('List')
    a, b = (relay.var('a'), relay.var('b'))
    e = relay.Match(
        nil(), [relay.Clause(relay.PatternConstructor(cons, [relay.PatternVar(a), relay.PatternVar(b)]), b), relay.Clause(relay.PatternWildcard(), nil())]
    )

    class M(ExprMutator):
        pass

    assert tvm.ir.structural_equal(M().visit(e), e)


def test_bind():
    x, y = (X(2), X(2, n='y'))
    f = relay.Function([x, y], x + y)
    g = relay.bind(f, {y: relay.const(np.ones(2, 'float32'))})
    assert len(g.params) == 1
    assert isinstance(g.body.args[1], relay.Constant)
    assert relay.bind(x + y, {x: y}) is None or tvm.ir.structural_equal(relay.bind(x + y, {x: y}), y + y)


def test_bind_params():
    x, y = (X(2), X(2, n='y'))
    f = relay.build_module.bind_params_by_name(relay.Function([x, y], x + y), {'y': np.ones(2, 'float32')})
    assert len(f.params) == 1


def test_callnode_fields():
    c = relay.nn.dense(X(2, 3), X(4, 3, n='w'), units=4)
    assert c.op.name == 'nn.dense'
    assert c.attrs.units == 4
    assert c.attrs.out_dtype in ('', 'float32')
    assert c.span is None


def test_expr_methods():
    x = X(2)
    t = [
        x.astype('int8').op.name,
        (x < x).op.name,
        (x > x).op.name,
        (x >= x).op.name,
        (x <= x).op.name,
        (-x).op.name,
        (1 - x).op.name,
        (2 / x).op.name,
        (2.0 * x).op.name,
        (x // x).op.name,
        (x % x).op.name if hasattr(x, '__mod__') else 'mod',
    ]
    assert t[:6] == ['cast', 'less', 'greater', 'greater_equal', 'less_equal', 'negative']
    try:
        pass
    except AttributeError:
        pass


def test_tuplewrapper():
    t = relay.split(X(4, 2), 2)
    assert len(t) == 2
    assert t[0].index == 0
    assert t.astuple().op.name == 'split'
    a, b = t
    try:
        t[2]
    except IndexError:
        pass
    else:
        raise AssertionError
    assert t.astext()
    assert isinstance(t.tuple_value, relay.Call)
    assert relay.Function([], t.astuple())


def test_func_call():
    f = relay.Function([X(2)], X(2))
    c = f(X(2, n='q'))
    assert isinstance(c, relay.Call)
    assert c.op == f


def test_func_attrs():
    f = relay.Function([X(2)], X(2))
    f = f.with_attr('a', 1).with_attr({'b': 's', 'c': [1, 2]})
    assert f.attrs['a'] == 1
    assert f.attrs['b'] == 's'
    assert list(f.attrs['c']) == [1, 2]
    assert 'zz' not in f.attrs
    assert set(f.attrs.keys()) == {'a', 'b', 'c'} and f.attrs.get_int('a') == 1 if hasattr(f.attrs, 'get_int') else True
    f.without_attr('a') if hasattr(f, 'without_attr') else None


def test_span():
    from baton.relay import SourceName, Span

    s = Span(SourceName('f.py'), 1, 2, 3, 4)
    assert s.line == 1
    assert s.end_line == 2
    assert s.column == 3
    assert s.end_column == 4
    assert s.source_name.name == 'f.py'
    v = relay.Var('x', relay.TensorType((2,)), s)
    assert v.span.line == 1
    c = relay.Call(relay.op.get('exp'), [v], span=s)
    assert c.span == s


def test_bbnf():
    x = X()
    e = relay.If(relay.const(True), x, relay.const(1.0))
    f = relay.Function([x], e + e)
    assert analysis.check_basic_block_normal_form(run_opt_pass(f, relay.transform.ToBasicBlockNormalForm()))


def test_mutator_if_ref():
    x = relay.var('x', shape=(), dtype='bool')
    r = relay.RefCreate(relay.const(1))
    e = relay.If(x, relay.RefRead(r), relay.const(2))
    assert tvm.ir.structural_equal(ExprMutator().visit(e), e)
    assert ExprMutator().visit(relay.RefWrite(r, relay.const(1))).value.data.numpy() == 1


def test_infer_local():
    x = X(2, 3)
    tvm.IRModule.from_expr(x)
    from baton.relay.frontend.common import infer_shape, infer_type, infer_value

    assert tuple(infer_shape(relay.transpose(x))) == (3, 2)
    assert infer_type(x + x).checked_type.dtype == 'float32'
    assert (infer_value(relay.const(2.0) * relay.const(3.0), {}).numpy() == 6).all()


def test_astext_annot():
    x = X(2)
    f = run_infer_type(relay.Function([x], relay.exp(x)))
    assert '/*' in f.astext(annotate=lambda e: 'hello' if isinstance(e, relay.Call) else '')
    assert 'hello' in f.astext(annotate=lambda e: 'hello' if isinstance(e, relay.Call) else '')
    assert relay.astext(f)
    assert f.astext(show_meta_data=False)
    assert str(f)

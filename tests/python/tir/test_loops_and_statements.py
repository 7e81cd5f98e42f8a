# SPDX-License-Identifier: Apache-2.0
"""Loops by ir_builder, statements, expressions and passes over them."""

import numpy as np
import pytest

import baton as tvm
from baton import te, tir
from baton.tir import ir_builder


def test_ib_basic():
    ib = ir_builder.create()
    n = te.size_var('n')
    A = ib.pointer('float32', name='A')
    with ib.for_range(0, n, name='i') as i:
        with ib.if_scope(i % 2 == 0):
            A[i] = A[i] + 1
        with ib.else_scope():
            A[0] = A[i] + 2
    b = ib.get()
    assert isinstance(b, tir.For)
    assert isinstance(b.body, tir.IfThenElse)
    assert isinstance(b.body.condition, tir.EQ)
    assert b.loop_var.name == 'i'


def test_ib_kinds():
    ib = ir_builder.create()
    A = ib.pointer('float32', name='A')
    with ib.for_range(0, 8, name='i', kind='parallel') as i:
        with ib.for_range(0, 4, kind='vectorize', name='j') as j:
            A[i * 4 + j] = tir.const(1.0, 'float32')
        with ib.for_range(0, 2, kind='unroll') as k:
            A[k] = 0.0
    b = ib.get()
    assert b.kind == tir.ForKind.PARALLEL


def test_ib_allocate():
    ib = ir_builder.create()
    A = ib.pointer('int32', name='A')
    t = ib.allocate('int32', 16, name='t', scope='global')
    with ib.for_range(0, 16, 'i') as i:
        t[i] = i.astype('int32') if hasattr(i, 'astype') else i
    with ib.for_range(0, 16, 'i') as i:
        A[i] = t[i] * 2
    s = ib.get()
    assert 'allocate' in str(s) or 't' in str(s)


def test_ib_extern_build():
    n = te.size_var('n')
    A = te.placeholder((n,), name='A')

    def gen(ins, outs):
        ib = ir_builder.create()
        a, c = (ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0]))
        with ib.for_range(0, n, name='i') as i:
            with ib.if_scope(tir.any(i < 2, i > 5)):
                c[i] = a[i] * 2.0
            with ib.else_scope():
                c[i] = a[i]
        return ib.get()

    C = te.extern(A.shape, [A], gen, name='C', dtype='float32')
    s = te.create_schedule(C.op)
    f = tvm.build(s, [A, C], 'llvm')
    a = tvm.nd.array(np.arange(8, dtype='float32'))
    c = tvm.nd.empty((8,))
    f(a, c)
    assert c.numpy().tolist() == [0, 2, 2, 3, 4, 5, 12, 14]


def test_ib_let_assert():
    ib = ir_builder.create()
    A = ib.pointer('float32', name='A')
    v = ib.let('v', tir.const(1.0, 'float32') + 2.0)
    A[0] = v
    ib.emit(tir.Evaluate(0))
    s = ib.get()
    assert isinstance(s, (tir.LetStmt, tir.SeqStmt))
    ib2 = ir_builder.create()
    ib2.scope_attr(tir.const(1), 'pragma_x', 1)
    ib2.emit(tir.Evaluate(1))
    assert isinstance(ib2.get(), tir.AttrStmt)


def test_ib_multi_dim():
    ib = ir_builder.create()
    B = tir.decl_buffer((4, 5), 'float32', name='B')
    p = ib.buffer_ptr(B)
    with ib.for_range(0, 4, 'i') as i:
        with ib.for_range(0, 5, 'j') as j:
            p[i, j] = p[i, j] + 1.0
    assert isinstance(ib.get(), tir.For)


def test_ib_likely():
    ib = ir_builder.create()
    A = ib.pointer('float32', name='A')
    i = te.var('i')
    with ib.if_scope(ib.likely(i < 3)):
        A[i] = 1.0
    assert isinstance(ib.get(), tir.IfThenElse)


def test_stmt_functor():
    n = te.var('n')
    A = te.placeholder((n,), name='A')
    B = te.compute((n,), lambda i: A[i] + 1.0, name='B')
    m = tvm.lower(te.create_schedule(B.op), [A, B])
    b = m['main'].body
    names = []
    tir.stmt_functor.post_order_visit(b, lambda x: names.append(type(x).__name__))
    assert 'For' in names
    assert 'Add' in names
    tir.stmt_functor.ir_transform(b, None, lambda o: tir.Evaluate(0) if isinstance(o, tir.For) else None, ['tir.For'])
    r2 = tir.stmt_functor.ir_transform(b, lambda o: None, lambda o: None, None)
    assert tvm.ir.structural_equal(r2, b)
    s = tir.stmt_functor.substitute(b, {m['main'].params[0]: m['main'].params[0]})
    assert s is not None


def test_apply_filter():
    f = tir.PrimFunc([], tir.Evaluate(0))
    m = tvm.IRModule({'a': f.with_attr('keep', 1), 'b': f})
    r = tir.transform.Filter(lambda f: f.attrs is not None and 'keep' in f.attrs)(m)
    assert len(r.get_global_vars()) == 1


def test_primfunc_pass():
    @tir.transform.prim_func_pass(opt_level=1)
    class R:
        def __init__(s, k):
            s.k = k

        def transform_function(s, f, m, c):
            return f.with_attr('k', s.k)

    m = R(3)(tvm.IRModule({'main': tir.PrimFunc([], tir.Evaluate(0))}))
    assert m['main'].attrs['k'] == 3

    @tir.transform.prim_func_pass(opt_level=2, name='q')
    def q(f, m, c):
        return f

    assert isinstance(q, tir.transform.PrimFuncPass)
    assert q.info.name == 'q'
    assert q.info.opt_level == 2


def test_expr_nodes():
    x = te.var('x', 'int32')
    y = te.var('y', 'int32')
    for c in (tir.Add, tir.Sub, tir.Mul, tir.Div, tir.Mod, tir.FloorDiv, tir.FloorMod, tir.Min, tir.Max, tir.EQ, tir.NE, tir.LT, tir.LE, tir.GT, tir.GE):
        n = c(x, y)
        assert n.a == x
        assert n.b == y
        assert str(n)
    assert isinstance(tir.And(x < y, x < y).a, tir.LT)
    assert isinstance(tir.Not(x < y).a, tir.LT)
    assert tir.Select(x < y, x, y).true_value == x
    assert tir.Ramp(x, 1, 4).lanes == 4
    assert tir.Broadcast(x, 4).dtype == 'int32x4'
    assert tir.Cast('float32', x).dtype == 'float32'
    assert tir.StringImm('s').value == 's'
    assert tir.IntImm('int32', 3).value == 3
    assert tir.FloatImm('float32', 1.5).value == 1.5
    assert isinstance(tir.Let(x, y, x + y).body, tir.Add)
    assert tir.Shuffle([x, y], [0, 1]).dtype == 'int32x2'


def test_expr_ops():
    x = te.var('x', 'int32')
    assert isinstance(x // 2, tir.FloorDiv)
    assert isinstance(x % 2, tir.FloorMod)
    assert isinstance(tir.truncdiv(x, 2), tir.Div)
    assert isinstance(tir.truncmod(x, 2), tir.Mod)
    assert isinstance(tir.indexdiv(x, 2), tir.FloorDiv)
    assert isinstance(tir.indexmod(x, 2), tir.FloorMod)
    assert (x << 1).op.name == 'tir.shift_left'
    assert (x >> 1).op.name == 'tir.shift_right'
    assert (x & 1).op.name == 'tir.bitwise_and'
    assert (x | 1).op.name == 'tir.bitwise_or'
    assert (x ^ 1).op.name == 'tir.bitwise_xor'
    assert (~x).op.name == 'tir.bitwise_not'
    f = te.var('f', 'float32')
    assert isinstance(f / 2.0, tir.Div)
    assert tir.exp(f).op.name == 'tir.exp'
    assert tir.power(f, 2.0).op.name == 'tir.pow'
    assert tir.abs(x).dtype == 'int32'
    assert tir.if_then_else(x > 0, x, 1).op.name == 'tir.if_then_else'
    assert tir.isnan(f).dtype == 'bool'
    assert tir.floor(f).op.name == 'tir.floor'
    assert tir.max_value('int8').value == 127
    assert tir.min_value('int8').value == -128
    assert tir.infinity('float32').dtype == 'float32'
    assert tir.reinterpret('int32', f).dtype == 'int32'
    try:
        x / 2
    except (RuntimeError, TypeError, tvm.TVMError):
        pass
    else:
        raise AssertionError('int / int must raise')
    try:
        bool(x > 1)
    except (ValueError, tvm.TVMError):
        pass
    else:
        raise AssertionError('bool of expr')


def test_consts_fold():
    assert (tir.const(3) + 4).value == 7
    assert tir.const(1, 'bool').dtype == 'bool'
    assert isinstance(tir.const(2.0, 'float32'), tir.FloatImm)
    assert tir.const(3, 'int32').dtype == 'int32'
    assert tir.all(tir.const(True), te.var('x') < 1) is not None
    assert isinstance(tir.const(3, 'int64') * te.var('q', 'int64'), tir.Mul)
    assert tir.const(np.int8(3)).value == 3


def test_dtype_mix():
    x = te.var('x', 'int32')
    f = te.var('f', 'float32')
    assert (
        (x + f).dtype == 'float32'
        and (f + 1).dtype == 'float32'
        and ((x + 1).dtype == 'int32')
        and ((x * 2.0).dtype == 'float32')
        and ((x == 1).dtype == 'bool')
        if hasattr(x == 1, 'dtype')
        else True
    )


def test_eq_defer():
    x = te.var('x')
    y = te.var('y')
    assert not x == y
    assert x != y
    assert bool(x.same_as(x))
    e = (x == 1).asobject() if hasattr(x == 1, 'asobject') else x == 1
    assert isinstance(e, tir.EQ)


def test_buffer():
    b = tir.decl_buffer((4, 5), 'float32', name='b')
    found = b.vload((0, 1), 'float32')
    assert (
        found is not None and b.name == 'b' and (len(b.shape) == 2) and (b.dtype == 'float32') and (b.scope() == 'global')
        if callable(getattr(b, 'scope', None))
        else True
    )
    s = b.vstore((0, 0), tir.const(1.0, 'float32'))
    assert s is not None


def test_printing():
    n = te.var('n')
    A = te.placeholder((n,), name='A')
    B = te.compute((n,), lambda i: A[i] + 1.0, name='B')
    m = tvm.lower(te.create_schedule(B.op), [A, B], simple_mode=True)
    s = str(m)
    assert 'for' in s
    assert 'B' in s
    assert 'A' in s
    assert tir.Evaluate(0) is not None
    assert str(tir.Add(te.var('x'), te.var('y'))) in ('(x: int32 + y: int32)', '(x + y)', 'x + y')


def test_layout():
    found = tir.layout('NCHW16c')
    assert str(found) == 'NCHW16c' or found.name == 'NCHW16c'
    assert len(found) == 5
    assert 'C' in found
    assert 'c' in found
    assert found.index_of('C') == 1
    assert found.factor_of('c') == 16
    assert found[1] == 'C'
    assert 'D' not in found
    b = tir.bijective_layout('NCHW', 'NCHW16c')
    assert [int(v) for v in b.forward_shape((1, 32, 7, 7))] == [1, 2, 7, 7, 16]
    assert [int(v) for v in b.backward_shape((1, 2, 7, 7, 16))] == [1, 32, 7, 7]
    i = b.forward_index([0, 17, 1, 1])
    assert [int(v) for v in i] == [0, 1, 1, 1, 1]


def test_narrow():
    m = te.var('m', 'int64')
    n = te.var('n', 'int64')
    f = tir.PrimFunc([m, n], tir.Evaluate(m + n))
    r = tir.transform.NarrowDataType(32)(tvm.IRModule.from_expr(f.with_attr('global_symbol', 'main')))
    assert r is not None


def test_functions_in_which_each_variable_is_bound_once():
    i = te.var("i")
    mod = tvm.IRModule({"main": tir.PrimFunc([i], tir.Evaluate(i))})
    assert tvm.ir.structural_equal(tir.transform.ConvertSSA()(mod), mod)
    j = te.var("j")
    twice = tir.SeqStmt([tir.LetStmt(j, tir.const(1), tir.Evaluate(j)), tir.LetStmt(j, tir.const(2), tir.Evaluate(j))])
    with pytest.raises(tvm.error.UnsupportedError, match="bound at two places"):
        tir.transform.ConvertSSA()(tvm.IRModule({"main": tir.PrimFunc([], twice)}))


def test_a_function_for_some_of_its_parameters():
    m, n = te.var("m"), te.var("n")
    a = te.placeholder((m, n), name="A")
    func = te.create_prim_func([a, te.compute((m, n), lambda i, j: a[i, j] * 2.0, name="B")])
    known = func.specialize({func.params[0]: tvm.tir.decl_buffer((4, 8), "float32")})
    assert len(known.params) == 2 and [int(d) for b in known.buffer_map.values() for d in b.shape] == [4, 8, 4, 8]
    given, out = np.random.rand(4, 8).astype("float32"), tvm.nd.empty((4, 8))
    tvm.build(known, target="llvm")(tvm.nd.array(given), out)
    np.testing.assert_array_equal(out.numpy(), given * 2)
    x, y = te.var("x"), te.var("y")
    assert [p.name for p in tvm.tir.PrimFunc([x, y], tvm.tir.Evaluate(x + y)).specialize({x: 1}).params] == ["y"]
    for param, value, error in [
        (te.var("q"), 1, "none of the parameters"),
        (func.params[0], tvm.tir.decl_buffer((4,), "float32"), "rank 2, given by one of float32 and rank 1"),
        (func.params[0], 3, "given by a buffer"),
        (func.params[2], tvm.tir.decl_buffer((4,), "float32"), "is a scalar"),
    ]:
        with pytest.raises(ValueError, match=error):
            func.specialize({param: value})
    with pytest.raises(ValueError, match="has an extent 4, given by 5"):
        known.specialize({known.params[0]: tvm.tir.decl_buffer((5, 8), "float32")})


def test_the_text_of_a_factored_sum():
    a, k = te.placeholder((4, 32), name="A"), te.reduce_axis((0, 32), "k")
    b = te.compute((4,), lambda i: te.sum(a[i, k], axis=k), name="B")
    s = te.create_schedule(b.op)
    _, inner = s[b].split(b.op.reduce_axis[0], factor=16)
    s.rfactor(b, inner)
    assert "where=(bool)1, value_index=0)" in str(s[b].op.body)

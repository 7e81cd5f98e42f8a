# SPDX-License-Identifier: Apache-2.0
"""Nodes of TIR; variables and numbers of int32."""

import pytest

import baton as tvm
import baton.contrib.utils
import baton.testing
from baton import te, tir
from baton.ir import load_json, save_json, structural_equal


def test_var_fields():
    x = te.var("x")
    assert x.name == "x" and x.dtype == "int32"


def test_var_handle():
    x = tir.Var("p", "handle")
    assert x.dtype == "handle"


def test_var_type_annotation():
    x = te.var("x")
    assert isinstance(x.type_annotation, tvm.ir.PrimType) and x.type_annotation.dtype == "int32"


def test_var_pointer():
    p = tir.Var("p", tvm.ir.PointerType(tvm.ir.PrimType("float32")))
    assert p.dtype == "handle" and p.type_annotation.element_type.dtype == "float32"


def test_pointer_scope():
    p = tvm.ir.PointerType(tvm.ir.PrimType("float32"), "shared")
    assert p.storage_scope == "shared"


def test_sizevar():
    n = te.size_var("n")
    assert isinstance(n, tir.SizeVar) and isinstance(n, tir.Var)


def test_const():
    x = tir.const(1, "int32")
    assert x.dtype == "int32" and isinstance(x, tir.IntImm)


def test_const_float():
    x = tir.const(1.5)
    assert x.dtype == "float32" and isinstance(x, tir.FloatImm) and x.value == 1.5


def test_const_saveload():
    x = tir.const(1, "int32")
    y = tir.const(10, "int32")
    z = x + y
    zz = load_json(save_json(z))
    assert structural_equal(zz, z, map_free_vars=True)


def test_const_fold():
    x = tir.const(3, 'int32') + 4
    assert isinstance(x, tir.IntImm) and x.value == 7


def test_const_fold_bool():
    x = tir.const(3, 'int32') < tir.const(4, 'int32')
    assert bool(x)
    y = tir.all(tir.const(1, 'bool'), tir.const(0, 'bool'))
    assert isinstance(y, tir.IntImm) and y.value == 0


def test_const_fold_float():
    x = tir.const(3, 'float32')
    y = x * 2.0
    assert y.value == 6.0


def test_add_zero():
    x = te.var('x')
    assert (x + 0).same_as(x)
    assert (0 + x).same_as(x)
    assert (x * 1).same_as(x)
    assert (x - 0).same_as(x)
    assert (x * 0).value == 0
    assert tir.floordiv(x, 1).same_as(x)
    assert tir.indexdiv(x, 1).same_as(x)


def test_make_basic():
    a = te.var('a')
    b = tir.const(1)
    c = a + b
    assert str(c) == "(a: int32 + 1)"


def test_printing_ops():
    x = te.var('x')
    y = te.var('y')
    assert str(x + y) == "(x: int32 + y: int32)" and repr(x + y) == "(x + y)"
    assert str(x - y) == "(x: int32 - y: int32)" and repr(x - y) == "(x - y)"
    assert str(x * y) == "(x: int32*y: int32)"
    assert str(tir.max(x, y)) == "max(x: int32, y: int32)"
    assert str(tir.min(x, y)) == "min(x: int32, y: int32)"


def test_printing_divisions():
    x = te.var('x')
    y = te.var('y')
    assert str(tir.floordiv(x, y)) == "floordiv(x: int32, y: int32)"
    assert str(tir.floormod(x, y)) == "floormod(x: int32, y: int32)"
    assert str(tir.truncdiv(x, y)) == "(x: int32/y: int32)"
    assert str(tir.truncmod(x, y)) == "(x: int32 % y: int32)"


def test_printing_cmp():
    x = te.var('x')
    y = te.var('y')
    assert str(x < y) == "(x: int32 < y: int32)" and repr(x < y) == "(x < y)"
    assert str(x <= y) == "(x: int32 <= y: int32)" and repr(x <= y) == "(x <= y)"
    assert str(x > y) == "(x: int32 > y: int32)" and repr(x > y) == "(x > y)"
    assert str(x >= y) == "(x: int32 >= y: int32)" and repr(x >= y) == "(x >= y)"
    assert str(x == y) == "(x == y)"
    assert str(x != y) == "(x != y)"


def test_printing_logic():
    x = te.var('x')
    y = te.var('y')
    a = x < 3
    b = y < 3
    assert str(tir.all(a, b)) == "((x: int32 < 3) && (y: int32 < 3))"
    assert str(tir.any(a, b)) == "((x: int32 < 3) || (y: int32 < 3))"
    assert str(tir.Not(a)) == "!(x: int32 < 3)"


def test_printing_cast_select():
    x = te.var('x')
    assert str(x.astype('float32')) == "float32(x)"
    assert str(tir.Select(x < 1, x, 2)) == "select((x: int32 < 1), x, 2)"


def test_printing_ramp():
    x = te.var('x')
    assert str(tir.Ramp(x, 1, 4)) == "ramp(x: int32, 1, 4)"
    assert str(tir.Broadcast(x, 4)) == "x4(x)"


def test_printing_let():
    x = te.var('x')
    assert str(tir.Let(x, 1, x + 1)) == "(let x = 1 in (x + 1))"


def test_neg():
    x = te.var('x')
    assert repr(-x) == "(x*-1)" or repr(-x) == "(0 - x)"


def test_bitops():
    x = te.var('x')
    assert (x << 1).dtype == 'int32'
    assert isinstance(x << 1, tir.Call)
    assert str(x & 1)
    assert str(~x) and isinstance(~x, tir.Call)


def test_cast():
    z = tir.const(1, 'int32').astype('float32')
    assert z.dtype == 'float32' and z.value == 1.0
    x = te.var('x')
    y = x.astype('float32')
    assert isinstance(y, tir.Cast) and y.value.same_as(x)
    z = tir.const(1, 'float32').astype('float32x4')
    assert z.dtype == 'float32x4' and isinstance(z, tir.Broadcast) and z.lanes == 4


def test_call_fields():
    x = te.var('x', 'float32')
    c = tir.exp(x)
    assert isinstance(c, tir.Call) and c.op.name == 'tir.exp' and c.args[0].same_as(x) and c.dtype == 'float32'


def test_call_extern():
    c = tir.call_extern('float32', 'myf', 1.0, 2)
    assert c.op.name == 'tir.call_extern' and c.args[0].value == 'myf' and len(c.args) == 3


def test_call_op_get():
    c = tir.Call('float32', tvm.ir.Op.get('tir.exp'), [tir.const(1.0)])
    assert c.op.name == 'tir.exp'


def test_tvm_struct_get():
    h = te.var('h', 'handle')
    c = tir.call_intrin('handle', 'tir.tvm_struct_get', h, 0, 1)
    assert c.dtype == 'handle'


def test_for():
    i = te.var('i')
    f = tir.For(i, 0, 10, tir.ForKind.SERIAL, tir.Evaluate(0))
    assert f.loop_var.same_as(i) and f.min.value == 0 and f.extent.value == 10 and f.kind == tir.ForKind.SERIAL and isinstance(f.body, tir.Evaluate)
    assert f.kind == 0


def test_for_annotations():
    i = te.var('i')
    f = tir.For(i, 0, 10, tir.ForKind.SERIAL, tir.Evaluate(0), None, {"a": 1})
    assert f.annotations["a"] == 1 and f.thread_binding is None


def test_store_load():
    p = tir.Var('p', tvm.ir.PointerType(tvm.ir.PrimType('float32')))
    found = tir.Load('float32', p, 1)
    assert found.buffer_var.same_as(p) and found.index.value == 1 and found.dtype == 'float32' and bool(found.predicate)
    s = tir.Store(p, tir.const(1.0), 3)
    assert s.buffer_var.same_as(p) and s.index.value == 3 and s.value.value == 1.0


def test_load_handle():
    p = te.var('p', 'handle')
    found = tir.Load('float32', p, 1)
    assert found.index.value == 1


def test_store_handle():
    p = te.var('p', 'handle')
    s = tir.Store(p, 1, 10, tir.const(1, 'uint1'))
    assert isinstance(s, tir.Store) and s.index.value == 10 and s.predicate.dtype in ('uint1', 'bool')


def test_bufferload():
    b = tir.decl_buffer((4, 5))
    found = tir.BufferLoad(b, [1, 2])
    assert found.buffer.same_as(b) and len(found.indices) == 2 and found.dtype == 'float32'
    s = tir.BufferStore(b, tir.const(1.0), [0, 1])
    assert s.buffer.same_as(b) and s.indices[1].value == 1


def test_attrstmt():
    x = te.var('x')
    s = tir.AttrStmt(x, 'stride', 10, tir.Evaluate(1))
    assert s.node.same_as(x) and s.attr_key == 'stride' and s.value.value == 10 and isinstance(s.body, tir.Evaluate)


def test_attrstmt_str():
    s = tir.AttrStmt(tir.StringImm('a'), 'k', 1, tir.Evaluate(1))
    assert s.node.value == 'a'


def test_assert2():
    s = tir.AssertStmt(te.var('x') < 3, tir.StringImm("msg"), tir.Evaluate(0))
    assert s.message.value == "msg"


def test_allocate():
    p = tir.Var('p', tvm.ir.PointerType(tvm.ir.PrimType('float32')))
    s = tir.Allocate(p, 'float32', [10], tir.const(1, 'uint1'), tir.Evaluate(1))
    assert s.buffer_var.same_as(p) and s.extents[0].value == 10 and s.dtype == 'float32'


def test_allocate_handle():
    p = te.var('buf', 'handle')
    s = tir.Allocate(p, 'float32', [10], tir.const(1, 'uint1'), tir.Evaluate(1))
    assert s.buffer_var.same_as(p)


def test_evaluate():
    s = tir.Evaluate(tir.const(1))
    assert s.value.value == 1


def test_ifthenelse():
    x = te.var('x')
    s = tir.IfThenElse(x < 1, tir.Evaluate(1), tir.Evaluate(2))
    assert s.then_case.value.value == 1 and s.else_case.value.value == 2
    s = tir.IfThenElse(x < 1, tir.Evaluate(11), None)
    assert s.else_case is None


def test_seq():
    s = tir.SeqStmt([tir.Evaluate(1), tir.Evaluate(2)])
    assert len(s) == 2 and s[0].value.value == 1 and [x.value.value for x in s.seq] == [1, 2]
    assert s[-1].value.value == 2


def test_stmt_seq():
    s = tir.stmt_seq(tir.Evaluate(1), tir.Evaluate(2))
    assert isinstance(s, tir.SeqStmt)
    assert isinstance(tir.stmt_seq(1), tir.Evaluate)
    assert len(tir.stmt_list(s)) == 2


def test_let_stmt():
    x = te.var('x')
    s = tir.LetStmt(x, 1, tir.Evaluate(x))
    assert s.var.same_as(x) and s.value.value == 1


def test_buffer():
    m = te.size_var('m')
    n = te.size_var('n')
    te.size_var('l')
    A = tir.decl_buffer((m, n), 'float32', 'Ab')
    assert A.name == 'Ab' and A.dtype == 'float32' and A.shape[0] == m and tuple(A.shape) == (m, n)
    assert A.scope() == 'global'
    assert isinstance(A.data, tir.Var) and len(A.strides) == 0


def test_buffer_scope():
    A = tir.decl_buffer((4,), scope='shared')
    assert A.scope() == 'shared'


def test_buffer_strides():
    A = tir.decl_buffer((4, 5), strides=[10, 1])
    assert A.strides[0].value == 10


def test_buffer_elem_offset():
    o = te.var('o')
    A = tir.decl_buffer((4,), elem_offset=o, offset_factor=4, data_alignment=64)
    assert A.elem_offset.same_as(o) and A.offset_factor == 4 and A.data_alignment == 64


def test_access_ptr():
    m = te.size_var('m')
    n = te.size_var('n')
    A = tir.decl_buffer((m, n))
    p = A.access_ptr('rw')
    assert p.args[0].dtype == 'float32' and p.args[-1].value == 3
    assert p.op.name == 'tir.tvm_access_ptr'
    p = A.access_ptr('w')
    assert p.args[-1].value == 2


def test_access_ptr_offset():
    A = tir.decl_buffer((10, 10))
    v = te.var('int32')
    p = A.access_ptr('r', offset=100 + v)
    assert str(p.args[2])


def test_vload():
    m = te.size_var('m')
    n = te.size_var('n')
    A = tir.decl_buffer((m, n), elem_offset=100)
    found = A.vload([2, 3])
    assert found.dtype == 'float32'


def test_vload_idx():
    n = te.size_var('n')
    m = te.size_var('m')
    A = tir.decl_buffer((m, n), 'float32', elem_offset=100)
    load = A.vload([2, 3])
    tvm.testing.assert_prim_expr_equal(load.index, n * 2 + 103)


def test_vstore():
    A = tir.decl_buffer((4, 5))
    s = A.vstore([1, 2], 1.0)
    assert isinstance(s, (tir.Store, tir.BufferStore))


def test_vload_vector():
    A = tir.decl_buffer((16,))
    found = A.vload(0, 'float32x4')
    assert found.dtype == 'float32x4'


def test_buffer_auto_broadcast():
    m, n = te.size_var('m'), te.size_var('n')
    A = tir.decl_buffer((m, n), buffer_type='auto_broadcast')
    assert A.buffer_type == 2


def test_primfunc():
    b = tir.decl_buffer((4,))
    f = tir.PrimFunc([b], tir.Evaluate(0))
    assert len(f.params) == 1 and f.buffer_map[f.params[0]].same_as(b) and f.ret_type is not None


def test_primfunc_attrs():
    x = te.var('x')
    f = tir.PrimFunc([x], tir.Evaluate(x))
    g = f.with_attr('global_symbol', 'main')
    assert g.attrs['global_symbol'] == 'main' and (f.attrs is None or 'global_symbol' not in f.attrs)
    assert structural_equal(f, load_json(save_json(f)))


def test_with_body():
    x = te.var('x')
    f = tir.PrimFunc([x], tir.Evaluate(x))
    g = f.with_body(tir.Evaluate(1))
    assert g.body.value.value == 1 and g.params[0].same_as(x)


def test_primfunc_module():
    x = te.var('x')
    f = tir.PrimFunc([x], tir.Evaluate(x))
    m = tvm.IRModule({'main': f})
    assert isinstance(m['main'], tir.PrimFunc)
    m2 = load_json(save_json(m))
    assert structural_equal(m, m2)


def test_primfunc_call():
    x = te.var('x')
    f = tir.PrimFunc([x], tir.Evaluate(x))
    c = tvm.IRModule({'main': f}).get_global_var('main')
    assert c.name_hint == 'main'
    y = c(1)
    assert isinstance(y, tir.Call)


def test_itervar():
    iv = tir.IterVar((0, 10), 'i', tir.IterVar.DataPar)
    assert iv.var.name == 'i' and iv.dom.extent.value == 10 and iv.iter_type == 0
    iv = te.reduce_axis((0, 4), 'k')
    assert iv.iter_type == tir.IterVar.CommReduce == 2


def test_itervar_none():
    iv = tir.IterVar(None, 'i', 0)
    assert iv.dom is None


def test_itervar_expr():
    k = te.reduce_axis((0, 4), 'k')
    e = k + 1
    assert isinstance(e, tir.Add)


def test_thread_axis():
    t = te.thread_axis((0, 32), 'threadIdx.x')
    assert t.dom.extent.value == 32 and t.iter_type == tir.IterVar.ThreadIndex


def test_range():
    r = tvm.ir.Range(0, 10)
    assert r.min.value == 0 and r.extent.value == 10
    r = tvm.ir.Range(2, 10)
    assert r.extent.value == 8
    r = tvm.ir.Range(10)
    assert r.min.value == 0 and r.extent.value == 10
    r = tvm.ir.Range.from_min_extent(1, te.var('n'))
    assert str(r) == "range(min=1, ext=n)"


def test_comm_reducer():
    r = te.comm_reducer(lambda x, y: x + y, lambda t: tir.const(0, dtype=t), name='s')
    k = te.reduce_axis((0, 4))
    A = te.placeholder((4,))
    e = r(A[k], axis=k)
    assert isinstance(e, tir.Reduce) and e.value_index == 0 and len(e.axis) == 1 and e.combiner.identity_element[0].value == 0.0


def test_reduce_where():
    n = te.var('n')
    A = te.placeholder((n,))
    k = te.reduce_axis((0, n))
    e = te.sum(A[k], axis=k, where=k < 3)
    assert isinstance(e.condition, tir.LT)


def test_reduce_fields():
    n = te.var('n')
    A = te.placeholder((n,))
    k = te.reduce_axis((0, n))
    e = te.max(A[k], axis=[k])
    assert e.source[0].same_as(e.source[0]) and len(e.combiner.lhs) == 1 and e.combiner.result is not None and len(e.init) == 0


def test_comm_reducer_call():
    te.comm_reducer(lambda x, y: x + y, lambda t: tir.const(0, t))
    x = te.var('x', 'float32')
    y = te.var('y', 'float32')
    red = te.sum(te.placeholder((3,))[te.reduce_axis((0, 3))], axis=te.reduce_axis((0, 3))).combiner
    res = red([x], [y])
    assert structural_equal(res[0], x + y)


def test_shuffle():
    s = tir.Shuffle([te.var('x', 'float32'), te.var('y', 'float32')], [0, 1])
    assert s.dtype == 'float32x2'


def test_any():
    a = tir.Any()
    assert isinstance(a, tir.Any)
    assert str(a) == '?'


def test_min_max_value():
    assert tir.min_value('int32').value == -(2**31) and tir.max_value('int32').value == 2**31 - 1
    assert te.min_value('float32').value < -3e38
    assert te.max_value('float16').value == 65504.0


def test_infinity():
    assert te.var and tir.infinity('float32').dtype == 'float32'


def test_if_then_else():
    x = te.var('x')
    e = tir.if_then_else(x < 1, 1, 2)
    assert e.op.name == 'tir.if_then_else'
    assert isinstance(tir.if_then_else(True, 1, 2), tir.IntImm)


def test_power():
    x = te.var('x', 'float32')
    assert tir.power(x, 2.0).op.name == 'tir.pow'


def test_popcount_clz():
    x = te.var('x')
    assert tir.popcount(x).op.name == 'tir.popcount'
    assert tir.clz(x).dtype == 'int32'


def test_isnan_int():
    x = te.var('x')
    r = tir.isnan(x)
    assert isinstance(r, tir.IntImm) and r.value == 0


def test_abs_int():
    x = te.var('x')
    r = tir.abs(x)
    assert r.dtype == 'int32'


def test_reinterpret():
    assert tir.reinterpret('int32', te.var('x', 'float32')).dtype == 'int32'


def test_comparison_class():
    x = te.var('x')
    e = x == 1
    assert isinstance(e, tir.EqualOp) and e.a.same_as(x) and e.asobject().dtype in ('bool', 'uint1')


def test_ne_class():
    x = te.var('x')
    e = x != 1
    assert isinstance(e, tir.NotEqualOp)


def test_equal_method():
    x = te.var('x')
    e = x.equal(1)
    assert isinstance(e, tir.EQ)


def test_class_constructors():
    x = te.var('x')
    y = te.var('y')
    for c in 'Add Sub Mul Div Mod FloorDiv FloorMod Min Max EQ NE LT LE GT GE'.split():
        e = getattr(tir, c)(x, y)
        assert e.a.same_as(x) and e.b.same_as(y), c


def test_and_or():
    a = te.var('a', 'bool')
    b = te.var('b', 'bool')
    e = tir.And(a, b)
    assert e.a.same_as(a)
    e = tir.Or(a, b)
    assert e.b.same_as(b)
    e = tir.Not(a)
    assert e.a.same_as(a)


def test_mixed_dtypes():
    x = te.var('x', 'int32')
    y = te.var('y', 'int64')
    assert (x + y).dtype == 'int64'
    z = te.var('z', 'float32')
    assert (x + z).dtype == 'float32'
    assert (z + 1).dtype == 'float32'
    assert (x + 1.0).dtype == 'float32'


def test_int8_uint8():
    a = te.var('a', 'uint8')
    b = te.var('b', 'int8')
    assert (a + b).dtype


def test_uint_mixed():
    a = te.var('a', 'uint32')
    assert (a + 1).dtype == 'uint32'


def test_divmod_ops():
    x = te.var('x')
    assert isinstance(x // 2, tir.FloorDiv)
    assert isinstance(x % 2, tir.FloorMod)
    assert isinstance(tir.indexmod(x, 2), tir.FloorMod)
    assert isinstance(tir.truncmod(x, 2), tir.Mod)
    assert isinstance(tir.truncdiv(x, 2), tir.Div)


def test_rdiv():
    x = te.var('x')
    assert isinstance(10 // x, tir.FloorDiv)
    assert isinstance(10 % x, tir.FloorMod)
    assert isinstance(10 - x, tir.Sub)


def test_float_div():
    x = te.var('x', 'float32')
    assert isinstance(x / 2.0, tir.Div)
    assert isinstance(tir.div(x, 2.0), tir.Div)


def test_logical_python():
    x = te.var('x')
    assert isinstance(tir.all(x < 1, x < 2, x < 3), tir.And)


def test_hash_var():
    x = te.var('x')
    d = {x: 1}
    assert d[x] == 1


def test_bool_const():
    assert tir.const(True).dtype in ('bool',)
    assert tir.const(True).value == 1


def test_intimm_bool():
    assert bool(tir.IntImm('int32', 1))
    assert not bool(tir.IntImm('int32', 0))


def test_nonzero():
    assert tir.IntImm('int32', 3) == tir.const(3)


def test_float_bool():
    assert float(tir.FloatImm('float32', 2.5)) == 2.5


def test_stringimm_eq():
    s = tir.StringImm('abc')
    assert s == 'abc' and s != 'abd' and s.value == 'abc'
    assert s == tir.StringImm('abc')


def test_as_array_map():
    a = tvm.runtime.convert([1, 2, 3])
    assert len(a) == 3 and a[-1].value == 3 and [x.value for x in a[0:2]] == [1, 2]


def test_map():
    x = te.var('x')
    m = tvm.runtime.convert({x: 2, 'y': 3}) if False else tvm.runtime.convert({x: 2})
    assert x in m and m[x].value == 2 and len(m) == 1 and dict(m.items())


def test_map2():
    m = tvm.runtime.convert({'a': 2, 'b': 3})
    assert m['a'].value == 2 and 'c' not in m and m.get('c', 5) == 5 and sorted(m.keys()) == ['a', 'b'] and len(list(m.values())) == 2


def test_getitem_error():
    a = tvm.runtime.convert([1, 2, 3])
    with pytest.raises(IndexError):
        assert a[4] is not None


def test_map_error():
    m = tvm.runtime.convert({'a': 1})
    with pytest.raises(KeyError):
        assert m['z'] is not None

# SPDX-License-Identifier: Apache-2.0
"""Numbers, loops and sizes of int32 below Relay, and passes over them."""

import numpy as np
import pytest

import baton as tvm
import baton.contrib.utils
import baton.testing
from baton import arith, relay, te, tir, topi
from baton.ir import load_json, save_json, structural_equal


def test_te_gradient():
    x = te.placeholder((3,))
    y = te.compute((3,), lambda i: x[i] * x[i])
    (g,) = te.gradient(y, [x])
    f = tvm.build(te.create_schedule(g.op), [x, g], 'llvm')
    d = tvm.nd.empty((3, 3))
    f(tvm.nd.array(np.array([1, 2, 3], 'float32')), d)
    assert d.numpy().tolist() == [[2, 0, 0], [0, 4, 0], [0, 0, 6]]


def test_gemm_sym():
    n = te.var('n')
    m = te.var('m')
    found = te.var('l')
    A = te.placeholder((n, found))
    B = te.placeholder((found, m))
    k = te.reduce_axis((0, found))
    C = te.compute((n, m), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k))
    s = te.create_schedule(C.op)
    xo, yo, xi, yi = s[C].tile(C.op.axis[0], C.op.axis[1], 4, 4)
    ko, ki = s[C].split(k, factor=2)
    s[C].reorder(xo, yo, ko, xi, ki, yi)
    s[C].unroll(ki)
    f = tvm.build(s, [A, B, C], 'llvm')
    a = np.random.rand(5, 7).astype('float32')
    b = np.random.rand(7, 9).astype('float32')
    c = tvm.nd.empty((5, 9))
    f(tvm.nd.array(a), tvm.nd.array(b), c)
    np.testing.assert_allclose(c.numpy(), a @ b, rtol=1e-5)


def test_cache_write_read():
    A = te.placeholder((16,))
    B = te.compute((16,), lambda i: A[i] * 2.0)
    s = te.create_schedule(B.op)
    s.cache_read(A, 'local', [B])
    s.cache_write(B, 'local')
    f = tvm.build(s, [A, B], 'llvm')
    b = tvm.nd.empty((16,))
    f(tvm.nd.array(np.ones(16, 'float32')), b)
    assert (b.numpy() == 2).all()


def test_scan_sym():
    m = te.var('m')
    n = te.var('n')
    X = te.placeholder((m, n))
    st = te.placeholder((m, n))
    i0 = te.compute((1, n), lambda _, i: X[0, i])
    up = te.compute((m, n), lambda t, i: st[t - 1, i] + X[t, i])
    r = te.scan(i0, up, st, inputs=[X])
    f = tvm.build(te.create_schedule(r.op), [X, r], 'llvm')
    a = np.random.rand(4, 3).astype('float32')
    c = tvm.nd.empty((4, 3))
    f(tvm.nd.array(a), c)
    np.testing.assert_allclose(c.numpy(), np.cumsum(a, 0), rtol=1e-5)


def test_compute_int_idx_math():
    n = te.var('n')
    C = te.compute((n,), lambda i: (i * 3 + 1) % 4)
    f = tvm.build(te.create_schedule(C.op), [C], 'llvm')
    c = tvm.nd.empty((6,), 'int32')
    f(c)
    assert c.numpy().tolist() == [(i * 3 + 1) % 4 for i in range(6)]


def test_select_idx():
    A = te.placeholder((8,))
    C = te.compute((8,), lambda i: tir.if_then_else(tir.all(i >= 1, i < 7), A[i - 1] + A[i + 1], 0.0))
    f = tvm.build(te.create_schedule(C.op), [A, C], 'llvm')
    c = tvm.nd.empty((8,))
    f(tvm.nd.array(np.arange(8, dtype='float32')), c)
    assert c.numpy().tolist() == [0, 2, 4, 6, 8, 10, 12, 0]


def test_indirect_index():
    A = te.placeholder((8,))
    image = te.placeholder((4,), dtype='int32')
    C = te.compute((4,), lambda i: A[image[i]])
    f = tvm.build(te.create_schedule(C.op), [A, image, C], 'llvm')
    c = tvm.nd.empty((4,))
    f(tvm.nd.array(np.arange(8, dtype='float32')), tvm.nd.array(np.array([3, 1, 0, 7], 'int32')), c)
    assert c.numpy().tolist() == [3, 1, 0, 7]


def test_scalar_params():
    n = te.var('n')
    a = te.var('a', 'float32')
    A = te.placeholder((n,))
    C = te.compute((n,), lambda i: A[i] * a + n.astype('float32'))
    f = tvm.build(te.create_schedule(C.op), [A, a, C, n], 'llvm')
    c = tvm.nd.empty((3,))
    f(tvm.nd.array(np.ones(3, 'float32')), 2.0, c, 3)
    assert c.numpy().tolist() == [5, 5, 5]


def test_int_arith_semantics():
    A = te.placeholder((6,), dtype='int32')
    B = te.compute((6,), lambda i: tir.floordiv(A[i], 3) * 10 + tir.truncmod(A[i], 3))
    f = tvm.build(te.create_schedule(B.op), [A, B], 'llvm')
    b = tvm.nd.empty((6,), 'int32')
    x = np.array([-4, -3, -1, 1, 4, 5], 'int32')
    f(tvm.nd.array(x), b)
    assert b.numpy().tolist() == [int(np.floor(v / 3)) * 10 + int(np.fmod(v, 3)) for v in x]


def test_te_var_default():
    assert te.var('n').dtype == 'int32'
    assert te.size_var('m').dtype == 'int32'
    assert te.var('n', 'int64').dtype == 'int64'
    assert te.var().name == 'tindex'
    assert te.size_var().name == 'size'


def test_for_ranges_of_ints():
    i = te.var('i')
    f = tir.For(i, 0, 10, 0, tir.Evaluate(i))
    assert f.min.dtype == 'int32' and f.extent.dtype == 'int32'


def test_ib_index_dtype():
    ib = tir.ir_builder.create()
    A = ib.pointer('float32', name='A')
    with ib.for_range(0, 10) as i:
        A[i] = 1.0
    s = ib.get()
    assert s.loop_var.dtype == 'int32' and s.body.index.same_as(s.loop_var)


def test_ib_for_dtype():
    ib = tir.ir_builder.create()
    with ib.for_range(0, 10, dtype='int64') as i:
        ib.emit(tir.Evaluate(i))
    assert ib.get().loop_var.dtype == 'int64'


def test_comparison_int64_int32():
    x = te.var('x', 'int32')
    y = te.var('y', 'int64')
    e = x < y
    assert e.a.dtype == 'int64' and isinstance(e.a, tir.Cast)


def test_literal_takes_dtype():
    y = te.var('y', 'int64')
    assert (y + 1).b.dtype == 'int64'
    z = te.var('z', 'int8')
    assert (z * 2).dtype == 'int8'


def test_unroll_writes_literals():
    A = tir.decl_buffer((4,), 'int32', 'A')
    i = te.var('i')
    f = tir.PrimFunc([A], tir.For(i, 0, 4, tir.ForKind.UNROLLED, tir.BufferStore(A, i, [i])))
    s = tir.transform.UnrollLoop()(tvm.IRModule({'main': f}))['main'].body
    assert len(s) == 4 and [int(x.value) for x in s.seq] == [0, 1, 2, 3] and s[2].value.dtype == 'int32' and s[2].indices[0] == 2


def test_vectorize_ramp_of_int32():
    A = tir.decl_buffer((16,), 'float32', 'A')
    i = te.var('i')
    f = tir.PrimFunc([A], tir.For(i, 0, 16, tir.ForKind.VECTORIZED, tir.BufferStore(A, tir.BufferLoad(A, [i]) + 1.0, [i])))
    s = tir.transform.VectorizeLoop()(tvm.IRModule({'main': f}))['main'].body
    assert s.index.lanes == 16 and s.index.dtype == 'int32x16' and s.value.dtype == 'float32x16'


def test_partition():
    n = te.var('n')
    A = tir.decl_buffer((n,), 'float32', 'A')
    i = te.var('i')
    f = tir.PrimFunc([A, n], tir.For(i, 0, 20, 0, tir.IfThenElse(tir.likely(i < n), tir.BufferStore(A, tir.const(1.0), [i]))))
    m = tir.transform.LoopPartition()(tvm.IRModule({'main': f}))
    assert tir.analysis.verify_well_formed(m['main'])


def test_cse():
    x, y = te.var('x'), te.var('y')
    A = tir.decl_buffer((100,), 'int32', 'A')
    f = tir.PrimFunc([A, x, y], tir.SeqStmt([tir.BufferStore(A, x * y + 1, [x * y]), tir.BufferStore(A, x * y + 2, [x * y + 3])]))
    b = tir.transform.CommonSubexprElimTIR()(tvm.IRModule({'main': f}))['main'].body
    assert isinstance(b, tir.LetStmt) and structural_equal(b.value, x * y) and b.var.name.startswith('cse_var')
    assert b.body[0].indices[0].same_as(b.var)


def test_cse_off_and_none():
    x = te.var('x')
    A = tir.decl_buffer((100,), 'int32', 'A')
    f = tir.PrimFunc([A, x], tir.BufferStore(A, x + 1, [x]))
    m = tvm.IRModule({'main': f})
    assert structural_equal(tir.transform.CommonSubexprElimTIR()(m), m)
    g = tir.PrimFunc([A, x], tir.BufferStore(A, x * 2 + 1, [x * 2]))
    m = tvm.IRModule({'main': g})
    assert structural_equal(tir.transform.CommonSubexprElimTIR(enable_cse_tir=False)(m), m)


def test_cse_within_loops():
    x = te.var('x')
    i = te.var('i')
    A = tir.decl_buffer((100,), 'int32', 'A')
    f = tir.PrimFunc([A, x], tir.For(i, 0, 4, 0, tir.BufferStore(A, (i * x) + (i * x) * 2, [i * x])))
    b = tir.transform.CommonSubexprElimTIR()(tvm.IRModule({'main': f}))['main']
    assert isinstance(b.body, tir.For) and isinstance(b.body.body, tir.LetStmt)
    a = tvm.nd.array(np.zeros(100, 'int32'))
    tvm.build(b, target='llvm')(a, 3)
    assert a.numpy()[:10].tolist() == [0, 0, 0, 9, 0, 0, 18, 0, 0, 27]


def test_workspace():
    p = tir.Var('p', tvm.ir.PointerType(tvm.ir.PrimType('float32')))
    f = tir.PrimFunc([], tir.Allocate(p, 'float32', [10], tir.const(1, 'uint1'), tir.Evaluate(0)))
    assert tir.analysis.calculate_workspace_bytes(f, 1) == 40 and tir.analysis.calculate_workspace_bytes(f, 64) == 64


def test_lca_of_loops():
    A = tir.decl_buffer((4, 4))
    B = tir.decl_buffer((4,))
    i, j = te.var('i'), te.var('j')
    inner = tir.For(j, 0, 4, 0, tir.BufferStore(A, tir.const(1.0), [i, j]))
    outer = tir.For(i, 0, 4, 0, tir.SeqStmt([inner, tir.BufferStore(B, tir.const(1.0), [i])]))
    found = tir.analysis.detect_buffer_access_lca(tir.PrimFunc([A, B], outer))
    assert found[A].same_as(inner) and found[B].same_as(outer)


def test_domain_touched_of_stores():
    n = te.var('n')
    i = te.var('i')
    A = tir.decl_buffer((n,))
    B = tir.decl_buffer((n,))
    f = tir.For(i, 0, 10, 0, tir.BufferStore(A, tir.BufferLoad(B, [i + 2]), [i]))
    r = tvm.arith._ffi_api.DomainTouched(f, A, False, True)
    assert r[0].min == 0 and r[0].extent == 10
    r = tvm.arith._ffi_api.DomainTouched(f, B, True, False)
    assert r[0].min == 2 and r[0].extent == 10
    assert len(tvm.arith._ffi_api.DomainTouched(f, B, False, True)) == 0


def test_strided_parameter_is_refused():
    A = tir.decl_buffer((3, 4), 'float32', 'A', strides=[8, 1])
    f = tir.PrimFunc([A], tir.BufferStore(A, tir.const(1.0), [0, 0]))
    with pytest.raises(tvm.error.UnsupportedError, match='strides'):
        tvm.build(f, target='llvm')


def test_predicate_of_store_is_refused():
    p = tir.Var('p', tvm.ir.PointerType(tvm.ir.PrimType('float32')))
    with pytest.raises(tvm.error.UnsupportedError):
        tir.Store(p, 1.0, 0, te.var('b', 'bool'))


def test_relation_of_none():
    t = relay.TensorType((2,))
    r = relay.ty.TypeRelation(None, [t, t], 1, None)
    assert r.func is None and r.num_inputs == 1 and list(r.args) == [t, t]
    assert structural_equal(load_json(save_json(r)), r)


def test_relay_dims_of_vars():
    n = te.var('n')
    x = relay.var('x', shape=(n, 3))
    y = relay.var('y', shape=(n, 3))
    f = relay.Function([x, y], x + y)
    m = relay.transform.InferType()(tvm.IRModule.from_expr(f))
    assert m['main'].ret_type.shape[0] == n and m['main'].params[0].checked_type == m['main'].params[1].checked_type


def test_relay_dims_run():
    n = te.size_var('n')
    x = relay.var('x', shape=(n, 3))
    f = relay.Function([x], relay.nn.relu(x))
    m = tvm.IRModule.from_expr(f)
    r = relay.create_executor('vm', mod=m, device=tvm.cpu(), target='llvm').evaluate()(np.array([[-1, 2, 3]], 'float32'))
    assert r.numpy().tolist() == [[0, 2, 3]]


def test_relay_dims_arithmetic():
    n = te.var('n')
    t = relay.TensorType((n * 2, n + 1))
    u = relay.TensorType((n * 2, n + 1))
    assert t == u and structural_equal(t, u)


def test_global_var_call():
    g = tvm.ir.GlobalVar('f')
    c = g(1, te.var('x'))
    assert isinstance(c, tir.Call) and c.op.same_as(g) and c.args[0].value == 1
    r = g(relay.var('x'))
    assert isinstance(r, relay.Call)


def test_generic_func_by_function_first():
    gf = tvm.target.get_native_generic_func('users.first')
    gf.set_default(lambda x: x)
    gf.register(lambda x: x + 1, ['llvm'])
    assert gf(1) == 1
    with tvm.target.Target('llvm'):
        assert gf(1) == 2


def test_csource_kinds():
    m = tvm.get_global_func('runtime.CSourceModuleCreate')('int f() { return 0; }', 'c', ['f'], [])
    assert m.type_key == 'c' and m.get_source() == 'int f() { return 0; }'
    d = baton.contrib.utils.tempdir() if False else tvm.contrib.utils.tempdir()
    m.save(d.relpath('a.c'), 'c')
    assert open(d.relpath('a.c')).read() == m.get_source()


def test_csource_cc_built():
    import ctypes

    from baton.contrib import cc

    m = tvm.get_global_func('runtime.CSourceModuleCreate')('extern "C" int f(int x) { return x + 1; }', 'cc', ['f'], [])
    d = tvm.contrib.utils.tempdir()
    m.save(d.relpath('a.cc'), 'cc')
    cc.create_shared(d.relpath('a.so'), [d.relpath('a.cc')])
    assert ctypes.CDLL(d.relpath('a.so')).f(1) == 2


def test_config_names():
    names = tvm.transform.PassContext.list_configs()
    assert {'tir.noalias', 'tir.disable_vectorize', 'tir.UnrollLoop', 'relay.FuseOps.max_depth'} <= set(names)


def test_disabled_by_tir_name():
    f = tir.PrimFunc([], tir.For(te.var('i'), 0, 4, tir.ForKind.UNROLLED, tir.Evaluate(tir.call_extern('int32', 'f', 1))))
    with tvm.transform.PassContext(disabled_pass=['tir.UnrollLoop']):
        left = tvm.transform.Sequential([tir.transform.UnrollLoop()])(tvm.IRModule({'main': f}))
    assert isinstance(left['main'].body, tir.For)


def test_intset_text():
    x = te.var('x')
    s = arith.Analyzer().int_set(x + 1, {x: arith.IntervalSet(0, 9)})
    assert str(s) == 'IntervalSet[1, 10]'
    assert str(tvm.ir.Range(0, 4)) == 'range(min=0, ext=4)'


def test_itervar_text():
    assert str(te.reduce_axis((0, 4), 'k')) == 'iter_var(k, range(min=0, ext=4))'
    assert 'threadIdx.x' in str(te.thread_axis((0, 32), 'threadIdx.x'))


def test_numbers_beside_tensors():
    A = te.placeholder((4,))
    C = topi.add(topi.multiply(2, A), 1)
    f = tvm.build(te.create_schedule(C.op), [A, C], 'llvm')
    c = tvm.nd.empty((4,))
    f(tvm.nd.array(np.arange(4, dtype='float32')), c)
    assert c.numpy().tolist() == [1, 3, 5, 7]
    assert topi.greater(A, 0).dtype == 'bool'
    assert topi.add(te.placeholder((2,), 'int32'), 3).dtype == 'int32'


def test_one_hot_of_literals():
    image = te.placeholder((3,), dtype='int32')
    result = topi.one_hot(image, tir.const(1, 'int32'), tir.const(0, 'int32'), 5, -1, 'int32')
    assert tuple(int(d) for d in result.shape) == (3, 5)

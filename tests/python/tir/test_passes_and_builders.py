# SPDX-License-Identifier: Apache-2.0
"""Passes, analyses and builders of TIR."""

import numpy as np
import pytest

import baton as tvm
import baton.contrib.utils
import baton.testing
from baton import te, tir
from baton.ir import structural_equal


def test_simplify_stmt():
    n = te.var('n')
    i = te.var('i')
    b = tir.decl_buffer((n,), 'int32', 'A')
    f = tir.PrimFunc([b, n], tir.For(i, 0, n, tir.ForKind.SERIAL, tir.IfThenElse(i < 12345678 * 0 + n, tir.BufferStore(b, i, [i]))))
    r = tir.transform.Simplify()(tvm.IRModule({'main': f}))['main'].body
    assert isinstance(r.body, tir.BufferStore), str(r)


def test_simplify_let():
    te.var('n')
    x = te.var('x')
    A = tir.decl_buffer((10,), 'int32')
    body = tir.LetStmt(x, 10, tir.IfThenElse(x < 20, tir.BufferStore(A, x, [x])))
    assert tir.transform.Simplify()(tvm.IRModule({'main': tir.PrimFunc([A], body)}))['main'].body is not None


def test_unroll():
    n = te.size_var('n')
    ib = tir.ir_builder.create()
    Ab = tir.decl_buffer((n,), 'int64')
    Aptr = ib.buffer_ptr(Ab)
    with ib.for_range(n, n + 2, name='i') as i:
        with ib.for_range(0, 8, name='i', kind='unroll') as j:
            Aptr[j + 1] = Aptr[i] + 1
    stmt = ib.get()
    mod = tvm.IRModule.from_expr(tir.PrimFunc([Ab], stmt))
    assert isinstance(stmt, tir.For)
    with tvm.transform.PassContext(config={"tir.UnrollLoop": {"auto_max_step": 16}}):
        ret = tir.transform.UnrollLoop()(mod)['main'].body
        assert not isinstance(ret, tir.For)
    with tvm.transform.PassContext(config={"tir.UnrollLoop": {"auto_max_step": 15}}):
        ret = tir.transform.UnrollLoop()(mod)['main'].body
        assert isinstance(ret, tir.For)
    with tvm.transform.PassContext(config={"tir.UnrollLoop": {"auto_max_step": 16, "explicit_unroll": False}}):
        ret = tir.transform.UnrollLoop()(mod)['main'].body


def test_vectorize():
    n = te.var('n')
    ib = tir.ir_builder.create()
    A = ib.pointer('float32', name='A')
    with ib.for_range(0, n):
        with ib.for_range(0, 4, kind='vectorize') as j:
            A[j] = tir.const(1, A.dtype)
    stmt = ib.get()
    assert isinstance(stmt.body, tir.For)
    mod = tvm.IRModule.from_expr(tir.PrimFunc([A, n], stmt))
    s = tir.transform.VectorizeLoop()(mod)['main'].body
    assert isinstance(s, tir.For) and not isinstance(s.body, tir.For)
    assert isinstance(s.body.index, tir.Ramp) and isinstance(s.body.value, tir.Broadcast)


def test_vectorize_if():
    n = te.var('n')
    x = te.var('x')
    ib = tir.ir_builder.create()
    A = ib.pointer('float32', name='A')
    with ib.for_range(0, 4, kind='vectorize') as i:
        with ib.if_scope(x < n):
            A[i] = A[i] + 1
        with ib.else_scope():
            with ib.if_scope(i < n):
                A[i] = 2.0
    stmt = ib.get()
    mod = tvm.IRModule.from_expr(tir.PrimFunc([A, n, x], stmt))
    s = tir.transform.VectorizeLoop()(mod)['main'].body
    assert isinstance(s, tir.IfThenElse)


def test_vectorize_disable():
    te.var('n')
    ib = tir.ir_builder.create()
    A = ib.pointer('float32', name='A')
    with ib.for_range(0, 4, kind='vectorize') as i:
        A[i] = 1.0
    mod = tvm.IRModule.from_expr(tir.PrimFunc([A], ib.get()))
    s = tir.transform.VectorizeLoop(False)(mod)['main'].body
    assert isinstance(s, tir.For) and s.kind == tir.ForKind.SERIAL


def test_loop_partition():
    ib = tir.ir_builder.create()
    m = te.size_var('m')
    n = te.size_var('n')
    with ib.for_range(0, 4, 'i') as i:
        with ib.for_range(0, n, 'j') as j:
            with ib.for_range(0, m, 'k') as k:
                with ib.if_scope(ib.likely(i * m + j + k < n)):
                    ib.emit(tir.Evaluate(m))
                with ib.else_scope():
                    ib.emit(tir.Evaluate(n))
    mod = tvm.IRModule.from_expr(tir.PrimFunc([n, m], ib.get()))
    mod = tir.transform.LoopPartition()(mod)
    assert tir.transform.Simplify()(mod)['main'].body is not None


def test_hoist():
    ib = tir.ir_builder.create()
    found = te.var('l')
    m = te.var('m')
    n = te.var('n')
    with ib.for_range(0, found, 'i') as i:
        with ib.for_range(0, m, 'j'):
            with ib.if_scope(ib.likely(i < 2)):
                ib.emit(tir.Evaluate(m))
            with ib.else_scope():
                ib.emit(tir.Evaluate(n))
    mod = tvm.IRModule.from_expr(tir.PrimFunc([found, m, n], ib.get()))
    assert tir.transform.HoistIfThenElse()(mod)['main'].body is not None


def test_storage_rewrite():
    ib = tir.ir_builder.create()
    n = te.var('n')
    with ib.for_range(0, n, name='i'):
        with ib.for_range(0, 10, name='j') as j:
            A = ib.allocate('float32', 200, name='A', scope='global')
            A[j] = tir.const(1.2, 'float32')
    body = ib.get()
    mod = tvm.IRModule.from_expr(tir.PrimFunc([n], body))
    found = []
    tir.stmt_functor.post_order_visit(tir.transform.StorageRewrite()(mod)['main'].body, found.append)
    assert sum(isinstance(x, tir.Allocate) for x in found) == 1


def test_storage_flatten():
    m = te.size_var('m')
    found = te.size_var('l')
    A = te.placeholder((m, found), name='A')
    A1 = te.compute((m, found), lambda i, j: A[i, j], name='A1')
    A2 = te.compute((m, found), lambda i, j: A1[i, j] + 3, name='A2')
    s = te.create_schedule(A2.op)
    xo, xi = s[A2].split(A2.op.axis[0], 8)
    s[A1].compute_at(s[A2], xo)
    bounds = te.schedule.InferBound(s)
    assert isinstance(bounds, tvm.container.Map)
    stmt = te.schedule.ScheduleOps(s, bounds)
    func = te.schedule.SchedulePostProcToPrimFunc([A, A2], stmt, None)
    mod = tvm.IRModule.from_expr(func)
    mod = tir.transform.StorageFlatten(64)(mod)


def test_apply():
    func = tir.PrimFunc([te.var('x')], tir.Evaluate(0))
    mod = tvm.IRModule({'main': func})
    mod = tir.transform.Apply(lambda f: f.with_attr('a', 1))(mod)
    assert mod['main'].attrs['a'] == 1


def test_prim_func_pass():
    @tir.transform.prim_func_pass(opt_level=1)
    class TestReplaceFunc:
        def __init__(self, new_func):
            self.new_func = new_func

        def transform_function(self, func, mod, ctx):
            return self.new_func

    x = te.var('x')
    y = te.var('y')
    b = tir.decl_buffer((x,))
    stmt = tir.LetStmt(x, 10, tir.Evaluate(x + 1))
    func = tir.PrimFunc([x, y, b], stmt)
    new_func = tir.PrimFunc([x, y, b], tir.Evaluate(0))
    mod = tvm.IRModule({'main': func})
    mod = TestReplaceFunc(new_func)(mod)
    assert structural_equal(mod['main'].body, new_func.body)


def test_passes_w_args():
    tir.transform.ThreadSync('shared')
    tir.transform.NarrowDataType(32)
    tir.transform.StorageFlatten(64)
    tir.transform.StorageFlatten(64, True)
    tir.transform.VerifyGPUCode({'max_threads_per_block': 1})
    assert tir.transform.InjectCopyIntrin is not None
    tir.transform.Filter(lambda f: True)
    tir.transform.MakePackedAPI(0)
    tir.transform.MakePackedAPI()


def test_hoist_variant():
    assert tir.transform.HoistIfThenElse('basic').info.name == tir.transform.HoistIfThenElse().info.name


def test_substitute():
    x = te.var('x')
    y = te.var('y')
    r = tir.stmt_functor.substitute(x + y, {x: y})
    assert structural_equal(r, y + y)


def test_substitute_stmt():
    x = te.var('x')
    s = tir.stmt_functor.substitute(tir.Evaluate(x + 1), {x: tir.const(1)})
    assert s.value.value == 2


def test_ir_transform():
    x = te.var('x')
    body = tir.Evaluate(tir.call_extern('int32', 'TestA', x + 1, x * x))
    seq = tir.SeqStmt([body, body])
    builtin = tvm.ir.Op.get('tir.call_extern')

    def preorder(op):
        if op.op.same_as(builtin) and op.args[0].value == 'TestC':
            return tir.const(0, 'int32')

    def postorder(op):
        assert isinstance(op, tir.Call)
        if op.op.same_as(builtin) and op.args[0].value == 'TestA':
            return tir.call_extern('int32', 'TestB', op.args[1] + 1)
        return op

    r = tir.stmt_functor.ir_transform(seq, preorder, postorder, ['tir.Call'])
    rl = tir.stmt_list(r)
    assert rl[0].value.args[0].value == 'TestB'


def test_expr_deep_equal():
    x = te.var('x')
    assert tir.analysis.expr_deep_equal(x + 1, x + 1)
    assert not tir.analysis.expr_deep_equal(x + 1, x + 2)
    y = te.var('x')
    assert not tir.analysis.expr_deep_equal(x, y)


def test_verify_ssa():
    x = te.var('x')
    y = te.var('y')
    assert tir.analysis.verify_ssa(tir.PrimFunc([x], tir.LetStmt(y, x + 1, tir.Evaluate(y))))


def test_verify_memory():
    n = te.var('n')
    A = te.placeholder((n,), name='A')
    B = te.compute(A.shape, lambda i: A[i] + 1.0, name='B')
    s = te.create_schedule(B.op)
    mod = tvm.lower(s, [A, B])
    f = mod['main'].with_attr('target', tvm.target.Target('llvm'))
    assert tir.analysis.verify_memory(f)
    with pytest.raises(tvm.TVMError):
        tir.transform.VerifyMemory()(tvm.IRModule.from_expr(mod['main'].with_attr('target', tvm.target.Target('cuda'))))


def test_calculate_workspace_bytes():
    ib = tir.ir_builder.create()
    a = ib.allocate('float32', 10, name='a')
    a[0] = 1.0
    f = tir.PrimFunc([], ib.get())
    assert tir.analysis.calculate_workspace_bytes(f, 16) >= 40


def test_lca():
    b = tir.decl_buffer((4,))
    i = te.var('i')
    st = tir.BufferStore(b, tir.const(1.0), [i])
    loop = tir.For(i, 0, 4, tir.ForKind.SERIAL, st)
    f = tir.PrimFunc([b], loop)
    found = tir.analysis.detect_buffer_access_lca(f)
    assert b in found or len(found) == 1


def test_get_block():
    with pytest.raises(tvm.TVMError):
        tir.analysis.get_block_access_region(None, {})
    with pytest.raises(tvm.TVMError):
        tir.analysis.get_block_read_write_region(None, {})


def test_make_packed():
    n = te.size_var('n')
    A = te.placeholder((n,), name='A')
    B = te.compute((n,), lambda i: A[i], name='B')
    s = te.create_schedule(B.op)
    mod = tvm.lower(s, [A, B], name='main')
    mod = tir.transform.Apply(lambda f: f.with_attr({'target': tvm.target.Target('llvm'), 'global_symbol': 'main'}))(mod)
    f = tir.transform.MakePackedAPI(0)(mod)['main']
    assert f is not None


def test_layout_undefined():
    assert tir.layout('__undef__').name == '__undef__' and len(tir.layout('__undef__')) == 0


def test_bijective():
    b = tir.bijective_layout('NCHW', 'NCHW16c')
    s = b.forward_shape((1, 32, 7, 7))
    assert [int(x) for x in s] == [1, 2, 7, 7, 16]
    s = b.backward_shape(s)
    assert [int(x) for x in s] == [1, 32, 7, 7]
    i = b.forward_index([0, 18, 6, 6])
    assert [int(x) for x in i] == [0, 1, 6, 6, 2]
    b = tir.bijective_layout('NCHW', 'NHWC')
    assert b.backward_index(b.forward_index([0, 1, 2, 3]))[1].value == 1


def test_ib_basics():
    ib = tir.ir_builder.create()
    n = te.size_var('n')
    A = ib.pointer('float32', name='A')
    with ib.for_range(0, n, name='i') as i:
        with ib.if_scope((i % 2) == 0):
            A[i] = A[i] + 1
        with ib.else_scope():
            A[0] = A[i] + 2
    body = ib.get()
    assert isinstance(body, tir.For)
    body = body.body
    assert isinstance(body, tir.IfThenElse)
    assert isinstance(body.condition, tir.EQ)
    assert isinstance(body.then_case.index, tir.Var)
    assert list(body.else_case.index.value for _ in [0]) == [0] and isinstance(body.then_case, tir.Store)


def test_ib_extern():
    ib = tir.ir_builder.create()
    ib.emit(tir.call_extern('int32', 'f', 1))
    assert isinstance(ib.get(), tir.Evaluate)


def test_ib_scope_attr():
    ib = tir.ir_builder.create()
    tx = te.thread_axis('threadIdx.x')
    ib.scope_attr(tx, 'thread_extent', 32)
    ib.emit(tir.Evaluate(0))
    s = ib.get()
    assert isinstance(s, tir.AttrStmt) and s.attr_key == 'thread_extent' and s.value.value == 32 and s.node.var.name == 'threadIdx.x'


def test_ib_thread_binding():
    ib = tir.ir_builder.create()
    with ib.new_scope():
        bx = te.thread_axis('blockIdx.x')
        ib.scope_attr(bx, 'thread_extent', 4)
        A = ib.allocate('float32', 4, name='A', scope='local')
        A[0] = 1.0
    s = ib.get()
    assert s.attr_key == 'thread_extent'


def test_ib_let():
    ib = tir.ir_builder.create()
    v = ib.let('v', tir.const(1))
    ib.emit(tir.Evaluate(v))
    s = ib.get()
    assert isinstance(s, tir.LetStmt) and s.var.same_as(v)


def test_ib_allocate_fields():
    ib = tir.ir_builder.create()
    a = ib.allocate('float32', (10,), name='a', scope='shared')
    a[0] = 0.0
    s = ib.get()
    assert isinstance(s, tir.Allocate) and s.buffer_var.type_annotation.storage_scope == 'shared' and s.extents[0] == 10


def test_te_extern_ib():
    n = 10
    A = te.placeholder((n,), name='A')

    def gen(ins, outs):
        ib = tir.ir_builder.create()
        a = ib.buffer_ptr(ins[0])
        o = ib.buffer_ptr(outs[0])
        with ib.for_range(0, n, 'i') as i:
            o[i] = a[i] + 1.0
        return ib.get()

    C = te.extern((n,), [A], gen, dtype='float32')
    f = tvm.build(te.create_schedule(C.op), [A, C], 'llvm')
    a = tvm.nd.array(np.zeros(10, 'float32'))
    c = tvm.nd.empty((10,))
    f(a, c)
    assert (c.numpy() == 1).all()


def test_custom_int32_loops_run():
    n = te.var('n')
    A = tir.decl_buffer((n,), 'float32', 'A')
    i = te.var('i')
    f = tir.PrimFunc([A, n], tir.For(i, 0, n, tir.ForKind.SERIAL, tir.BufferStore(A, (i * 2).astype('float32'), [n - 1 - i])))
    a = tvm.nd.empty((5,))
    tvm.build(f, target='llvm')(a, 5)
    assert a.numpy().tolist() == [8, 6, 4, 2, 0]


def test_ssa():
    A = te.placeholder((3,))
    f = te.create_prim_func([A, te.compute((3,), lambda i: A[i] * 2.0)])
    assert isinstance(f, tir.PrimFunc) and len(f.params) == 2


def test_vload_build():
    A = tir.decl_buffer((16,), 'float32', 'A')
    B = tir.decl_buffer((16,), 'float32', 'B')
    i = te.var('i')
    f = tir.PrimFunc([A, B], tir.For(i, 0, 4, tir.ForKind.SERIAL, B.vstore([i * 4], A.vload([i * 4], 'float32x4') + tir.const(1.0, 'float32x4'))))
    a = tvm.nd.array(np.arange(16, dtype='float32'))
    b = tvm.nd.empty((16,))
    tvm.build(f, target='llvm')(a, b)
    assert (b.numpy() == a.numpy() + 1).all()


def test_load_store_build():
    A = tir.decl_buffer((8,), 'float32', 'A')
    B = tir.decl_buffer((8,), 'float32', 'B')
    i = te.var('i')
    f = tir.PrimFunc([A, B], tir.For(i, 0, 8, tir.ForKind.SERIAL, tir.Store(B.data, tir.Load('float32', A.data, i) * 2.0, i)))
    a = tvm.nd.array(np.arange(8, dtype='float32'))
    b = tvm.nd.empty((8,))
    tvm.build(f, target='llvm')(a, b)
    assert (b.numpy() == a.numpy() * 2).all()


def test_access_ptr_build():
    A = tir.decl_buffer((4,), 'float32', 'A')

    @tvm.register_func('scr.zero', override=True)
    def z(a):
        pass

    f = tir.PrimFunc([A], tir.Evaluate(tir.call_extern('int32', 'bzero', A.access_ptr('w', offset=2), 8)))
    a = tvm.nd.array(np.ones(4, 'float32'))
    tvm.build(f, target='llvm')(a)
    assert a.numpy().tolist() == [1, 1, 0, 0]


def test_strided_local():
    A = tir.decl_buffer((4,), 'float32', 'A')
    i = te.var('i')
    V = tir.decl_buffer((2,), 'float32', 'V', data=A.data, strides=[2], elem_offset=1)
    f = tir.PrimFunc([A], tir.For(i, 0, 2, 0, tir.BufferStore(V, tir.const(5.0), [i])))
    a = tvm.nd.array(np.zeros(4, 'float32'))
    tvm.build(f, target='llvm')(a)
    assert a.numpy().tolist() == [0, 5, 0, 5]


def test_compute_dtype():
    C = te.compute((10,), lambda i: i * 2)
    assert C.dtype == 'int32'
    f = tvm.build(te.create_schedule(C.op), [C], 'llvm')
    c = tvm.nd.empty((10,), 'int32')
    f(c)
    assert c.numpy().tolist() == list(range(0, 20, 2))


def test_compute_cond():
    C = te.compute((4, 4), lambda i, j: tir.Select(i < j, 1.0, tir.const(0.0)))
    assert C.dtype == 'float32'


def test_size_var_binding():
    n = te.var('n')
    m = te.var('m')
    A = te.placeholder((n, m))
    B = te.compute((m, n), lambda i, j: A[j, i])
    f = tvm.build(te.create_schedule(B.op), [A, B, n, m], 'llvm')
    a = tvm.nd.array(np.arange(6, dtype='float32').reshape(2, 3))
    b = tvm.nd.empty((3, 2))
    f(a, b, 2, 3)
    assert (b.numpy() == a.numpy().T).all()


def test_a_let_of_a_parameter_s_variable_hides_the_parameter():
    n, k = te.var("n"), te.var("k")
    called = tvm.tir.Evaluate(tvm.tir.call_extern("int32", "f", n))
    for params in ([n, k], [k]):
        func = tvm.tir.PrimFunc(params, tvm.tir.LetStmt(n, 10, called))
        simple = tvm.tir.transform.Simplify()(tvm.IRModule.from_expr(func))
        (made,) = simple.functions.values()
        assert int(made.body.value.args[1]) == 10

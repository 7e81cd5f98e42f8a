# SPDX-License-Identifier: Apache-2.0
"""Tensors, objects, functions and modules below Relay."""

import numpy as np
import pytest

import baton as tvm
import baton.contrib.utils
import baton.testing
from baton import relay, te, tir
from baton.ir import assert_structural_equal, load_json, save_json, structural_equal, structural_hash


def test_var_text():
    x, y = te.var('x'), te.var('y')
    assert str(x * 2 + y) == "((x: int32*2) + y: int32)"
    assert str([x, y + 1]) == "[x, (y + 1)]"
    assert str(tir.exp(te.var('z', 'float32'))) == "tir.exp(z)"


def test_call_str():
    assert str(tir.call_extern('int32', 'f', 1, te.var('x'))) == 'tir.call_extern("f", 1, x)'


def test_placeholder_shape_str():
    A = te.placeholder((4, 5), name='A')
    assert str(A.shape) == "[4, 5]"


def test_shape_compare():
    A = te.placeholder((4, 5))
    assert A.shape[0] == 4 and A.shape[1].value == 5 and tuple(int(x) for x in A.shape) == (4, 5) and list(A.shape) == [4, 5]


def test_tensor_basics():
    m = te.size_var('m')
    n = te.size_var('n')
    found = te.size_var('l')
    A = te.placeholder((m, found), name='A')
    B = te.placeholder((n, found), name='B')
    T = te.compute((m, n, found), lambda i, j, k: A[i, k] * B[j, k])
    assert T.op.axis is not None
    assert tuple(T.shape) == (m, n, found)
    assert isinstance(A.op, te.PlaceholderOp)
    same = A
    assert same == A and A != B
    assert T.op.output(0) == T
    assert T.op.output(0).__hash__() == T.__hash__()
    d = {T.op.output(0): 1}
    assert d[T] == 1
    assert T[0][0][0].astype('float16').dtype == 'float16'


def test_rank_zero():
    m = te.size_var('m')
    A = te.placeholder((m,), name='A')
    k = te.reduce_axis((0, m), 'k')
    T = te.compute((), lambda: te.sum(A[k] * 2.0, axis=k))
    assert tuple(T.shape) == ()


def test_tensor_slice():
    n = te.size_var('n')
    A = te.compute((n, n), lambda i, j: 1)
    B = te.compute((n,), lambda i: A[0][i] + A[0][i])
    assert tuple(B.shape) == (n,) and B.op.input_tensors[0] == A


def test_reduce_combiner_simplify():
    k = te.reduce_axis((0, 10))
    A = te.placeholder((10,))
    e = te.sum(A[k], axis=k)
    assert isinstance(e.combiner, tir.CommReducer) and e.axis[0].same_as(k) or e.axis[0].var.same_as(k.var)


def test_extern_fields():
    m = te.size_var('m')
    A = te.placeholder((m,), name='A')

    def ext(ins, outs):
        assert isinstance(ins[0], tir.Buffer)
        return tir.call_packed('myadd', ins[0].data, outs[0].data, m)

    B = te.extern((m,), [A], ext)
    assert tuple(B.shape) == (m,)
    assert isinstance(B.op, te.ExternOp)
    assert len(B.op.input_tensors) == 1


def test_compute_attrs():
    A = te.placeholder((4,))
    B = te.compute((4,), lambda i: A[i], attrs={'a': 1, 'b': 'c'})
    assert B.op.attrs['a'] == 1 and B.op.attrs['b'] == 'c'


def test_tag():
    A = te.placeholder((4,))
    with tvm.te.tag_scope(tag='conv'):
        B = te.compute((4,), lambda i: A[i])
    assert B.op.tag == 'conv'
    assert 'conv' in B.op.tag


def test_reduce_axis_fields():
    k = te.reduce_axis((0, 5), name='k')
    assert k.var.name == 'k' and k.dom.extent == 5 and k.iter_type == 2


def test_te_create_schedule():
    A = te.placeholder((4,))
    B = te.compute((4,), lambda i: A[i])
    s = te.create_schedule(B.op)
    assert s[B].op.same_as(B.op) and len(s.stages) == 2 and s.outputs[0].same_as(B.op)
    assert str(s)


def test_schedule_split_fields():
    A = te.placeholder((16,))
    B = te.compute((16,), lambda i: A[i])
    s = te.create_schedule(B.op)
    xo, xi = s[B].split(B.op.axis[0], factor=4)
    assert tuple(s[B].leaf_iter_vars) == (xo, xi)


def test_lower_returns_irmodule():
    A = te.placeholder((16,), name='A')
    B = te.compute((16,), lambda i: A[i])
    s = te.create_schedule(B.op)
    m = tvm.lower(s, [A, B], name='f')
    assert isinstance(m, tvm.IRModule) and 'f' in [g.name_hint for g in m.get_global_vars()] and m['f'].attrs['global_symbol'] == 'f'
    str(m)


def test_lower_primfunc():
    f = tir.PrimFunc([], tir.Evaluate(0)).with_attr('global_symbol', 'main')
    m = tvm.lower(f)
    assert isinstance(m, tvm.IRModule)


def test_get_source():
    A = te.placeholder((16,), name='A')
    B = te.compute((16,), lambda i: A[i] * 2.0)
    s = te.create_schedule(B.op)
    f = tvm.build(s, [A, B], 'llvm', name='myadd')
    assert 'myadd' in f.get_source()
    assert f.get_source('asm')


def test_time_evaluator():
    A = te.placeholder((16,), name='A')
    B = te.compute((16,), lambda i: A[i] * 2.0)
    s = te.create_schedule(B.op)
    f = tvm.build(s, [A, B], 'llvm')
    a = tvm.nd.array(np.zeros(16, 'float32'))
    e = f.time_evaluator(f.entry_name, tvm.cpu(), number=2, repeat=2)
    r = e(a, a)
    assert len(r.results) == 2 and r.mean > 0 and r.min <= r.max and r.std >= 0 and r.median > 0


def test_export_load():
    A = te.placeholder((16,), name='A')
    B = te.compute((16,), lambda i: A[i] * 2.0)
    s = te.create_schedule(B.op)
    f = tvm.build(s, [A, B], 'llvm', name='a1')
    d = tvm.contrib.utils.tempdir()
    p = d.relpath('a.so')
    f.export_library(p)
    g = tvm.runtime.load_module(p)
    a = tvm.nd.array(np.ones(16, 'float32'))
    b = tvm.nd.empty((16,))
    g['a1'](a, b)
    assert (b.numpy() == 2).all()


def test_llvm_bc():
    A = te.placeholder((16,), name='A')
    B = te.compute((16,), lambda i: A[i] * 2.0)
    s = te.create_schedule(B.op)
    f = tvm.build(s, [A, B], 'llvm', name='a1')
    d = tvm.contrib.utils.tempdir()
    f.save(d.relpath('a.o'))
    f.save(d.relpath('a.ll'))
    f.save(d.relpath('a.s'))
    assert 'define' in open(d.relpath('a.ll')).read() and 'a1' in open(d.relpath('a.s')).read()


def test_packed_func():
    f = tvm.runtime.convert(lambda *a: a[0])
    assert isinstance(f, tvm.runtime.PackedFunc)
    assert f(3) == 3


def test_register_get():
    @tvm.register_func('scr.f1')
    def f1(x):
        return x + 1

    assert tvm.get_global_func('scr.f1')(1) == 2
    with pytest.raises(tvm.TVMError):
        tvm.register_func('scr.f1', f1)
    tvm.register_func('scr.f1', f1, override=True)
    assert tvm.get_global_func('nope', allow_missing=True) is None
    with pytest.raises(ValueError):
        tvm.get_global_func('nope')


def test_list_names():
    from baton._ffi import registry

    assert 'scr.f1' in registry.list_global_func_names() if tvm.get_global_func('scr.f1', True) else True
    from baton._ffi.registry import remove_global_func

    tvm.register_func('scr.rm', lambda: 1)
    remove_global_func('scr.rm')
    assert tvm.get_global_func('scr.rm', True) is None


def test_return_func():
    def addy(y):
        def add(x):
            return tvm.runtime.convert(x + y)

        return add

    f = tvm.runtime.convert(addy)
    assert f(10)(11) == 21


def test_device():
    d = tvm.device('cpu', 0)
    assert d.device_type == 1 and d.device_id == 0 and str(d) == 'cpu(0)' and d == tvm.cpu(0) and d.exist
    assert tvm.device('cuda', 1).device_type == 2
    assert tvm.device('llvm').device_type == 1


def test_device_attrs():
    d = tvm.cpu()
    assert d.max_threads_per_block is None
    assert d.warp_size is None
    assert d.compute_version is None
    d.sync()


def test_ndarray():
    a = tvm.nd.array(np.arange(6).reshape(2, 3).astype('float32'))
    assert a.shape == (2, 3) and a.dtype == 'float32' and a.device == tvm.cpu(0)
    b = tvm.nd.empty((2, 3))
    a.copyto(b)
    np.testing.assert_equal(a.numpy(), b.numpy())
    a[:] = np.ones((2, 3))
    assert a.asnumpy().sum() == 6
    assert str(a.dtype) == 'float32'
    assert a.handle is not None
    assert a.same_as(a)


def test_ndarray_fp16():
    a = tvm.nd.array(np.ones((2,), 'float16'))
    assert a.dtype == 'float16' and a.numpy().dtype == np.float16


def test_ndarray_dlpack():
    a = tvm.nd.array(np.ones((2,), 'float32'))
    b = tvm.nd.from_dlpack(a.to_dlpack())
    assert (b.numpy() == 1).all()


def test_ndarray_list():
    a = tvm.nd.array([1, 2, 3])
    assert a.shape == (3,)


def test_ndarray_numpyasarray():
    from baton.runtime.ndarray import numpyasarray

    np.testing.assert_array_equal(numpyasarray(np.ones(3, 'float32')).numpy(), np.ones(3, 'float32'))


def test_string():
    s = tvm.runtime.String('a')
    assert s == 'a' and isinstance(s, str)
    assert tvm.runtime.convert('b') == 'b'
    s = tvm.runtime.container.String('xy')
    assert len(s) == 2 and s.startswith('x')


def test_string_echo():
    f = tvm.get_global_func('testing.echo')
    assert f('s') == 's' and f(1) == 1 and f(None) is None


def test_array_containers():
    a = tvm.runtime.convert([1, 2, 3])
    assert isinstance(a, tvm.container.Array)
    assert tvm.ir.Array is not None and tvm.ir.container.Array is not None
    assert str(a) == '[1, 2, 3]'
    assert a == [1, 2, 3] and a != [1, 2]
    b = load_json(save_json(a))
    assert b[1].value == 2


def test_map_str():
    m = tvm.runtime.convert({'a': 1})
    assert isinstance(m, tvm.container.Map) and m['a'] == 1
    b = load_json(save_json(m))
    assert b['a'].value == 1
    assert list(iter(m)) == ['a']


def test_make_node_str():
    x = tvm.ir.make_node('tir.StringImm', value='xyz')
    assert x.value == 'xyz'


def test_attrs_str():
    d = tvm.ir.make_node('DictAttrs', x=1)
    assert 'x' in str(d)


def test_env_func():
    @tvm.register_func('scr.env')
    def t(x):
        return x + 1

    f = tvm.ir.EnvFunc.get('scr.env')
    assert f.name == 'scr.env' and f(1) == 2
    g = load_json(save_json(f))
    assert g.name == 'scr.env' and g(1) == 2 and f.func is not None


def test_structural_hash():
    x = te.var('x')
    y = te.var('y')
    assert structural_hash(x + 1) == structural_hash(x + 1)
    assert structural_equal(x + 1, y + 1, map_free_vars=True) and not structural_equal(x + 1, y + 1)
    assert structural_hash(tir.Evaluate(x), map_free_vars=True) == structural_hash(tir.Evaluate(y), map_free_vars=True)


def test_assert_structural_equal():
    x = te.var('x')
    with pytest.raises(ValueError):
        assert_structural_equal(x + 1, x + 2)


def test_structural_primfunc():
    x = te.var('x')
    y = te.var('y')
    f0 = tir.PrimFunc([x, y], tir.Evaluate(x + y))
    f1 = tir.PrimFunc([y, x], tir.Evaluate(y + x))
    assert structural_equal(f0, f1)
    f2 = tir.PrimFunc([x, y], tir.Evaluate(y + x))
    assert not structural_equal(f0, f2)
    assert structural_hash(f0) == structural_hash(f1)
    assert not structural_equal(f0, f0.with_attr('a', 1))


def test_structural_buffer_store():
    b = tir.decl_buffer((10,))
    te.var('i')
    c = tir.decl_buffer((10,))
    f = tir.PrimFunc([b], tir.BufferStore(b, tir.const(1.0), [0]))
    g = tir.PrimFunc([c], tir.BufferStore(c, tir.const(1.0), [0]))
    assert structural_equal(f, g)


def test_const_node_json():
    for v in (tir.const(3), tir.const(2.5), tir.StringImm('q')):
        assert structural_equal(load_json(save_json(v)), v)


def test_types_symbolic():
    n = te.size_var('n')
    t = tvm.ir.TensorType((n, 3), 'float32')
    assert t.shape[0] == n
    assert t.shape[1] == 3
    u = tvm.ir.TensorType((n, 3), 'float32')
    assert t == u and structural_equal(t, u)
    str(t)


def test_relay_symbolic():
    n = te.size_var('n')
    x = relay.var('x', relay.TensorType((n, 4)))
    f = relay.Function([x], relay.add(x, x))
    m = tvm.IRModule.from_expr(f)
    m = relay.transform.InferType()(m)
    assert m['main'].ret_type == relay.TensorType((n, 4))
    assert m['main'].checked_type.ret_type.shape[0] == n


def test_relay_symbolic_mul():
    n = te.var('n')
    c, h, w = te.var('c'), 10, te.var('w')
    x = relay.var('x', relay.TensorType((n, c, h, w), 'float32'))
    y = relay.nn.max_pool2d(x, pool_size=(2, 2), strides=(2, 2))
    m = relay.transform.InferType()(tvm.IRModule.from_expr(y))
    assert m['main'].ret_type.shape[0] == n


def test_type_relation():
    tvm.ir.EnvFunc.get('tvm.relay.type_relation.Broadcast') if tvm.get_global_func('tvm.relay.type_relation.Broadcast', True) else None
    tv = tvm.ir.TypeVar('a')
    r = tvm.ir.TypeRelation(None, [tv], 1, None)
    assert r.num_inputs == 1


def test_irmodule():
    x = relay.var('x', shape=(2,))
    f = relay.Function([x], x)
    m = tvm.IRModule()
    m['main'] = f
    g = m.get_global_var('main')
    assert m[g] == m['main'] or structural_equal(m[g], m['main'])
    m.update({g: f})
    assert len(m.functions) == 1
    m2 = tvm.IRModule({'f': f})
    m.update(m2)
    assert 'f' in m.astext()


def test_get_global_vars_error():
    m = tvm.IRModule({})
    with pytest.raises(tvm.TVMError):
        m.get_global_var('nope')
    with pytest.raises(tvm.TVMError):
        assert m['nope'] is not None


def test_op():
    o = tvm.ir.Op.get('add')
    assert o.name == 'add'
    o.get_attr('FTVMStrategy')
    with pytest.raises(tvm.TVMError):
        tvm.ir.Op.get('nope.nope')


def test_register_op_attr():
    @tvm.ir.register_op_attr('tir.exp', 'scr.attr')
    def fa(x):
        return x + 1

    assert tvm.ir.Op.get('tir.exp').get_attr('scr.attr')(1) == 2


def test_span():
    s = tvm.ir.Span(tvm.ir.SourceName('a'), 1, 2, 3, 4)
    assert s.line == 1 and s.end_line == 2 and s.column == 3 and s.end_column == 4 and s.source_name.name == 'a'


def test_passcontext_errors():
    with pytest.raises(AttributeError):
        tvm.transform.PassContext(config={'nope.nope': 1})
    with pytest.raises(tvm.error.TVMError):
        tvm.transform.PassContext(config={'tir.UnrollLoop': 1})
    with pytest.raises(TypeError):
        tvm.transform.PassContext(required_pass=1)


def test_operations_have_a_text():
    a = te.placeholder((3,), name="A")
    b = te.compute((3,), lambda i: a[i], name="B", tag="mine")
    assert str(b.op) == "compute(B, body=[A[i]], axis=[iter_var(i, range(min=0, ext=3))], reduce_axis=[], tag=mine, attrs={})"
    assert str(a.op).startswith("placeholder(A, 0x")
    k = te.reduce_axis((0, 3), "k")
    c = te.compute((1,), lambda i: te.sum(a[k], axis=k))
    assert "combiner=comm_reducer(result=[(x + y)], lhs=[x], rhs=[y], identity_element=[0f]), source=[A[k]]" in repr(c.op)


def test_the_body_of_a_function_may_be_an_expression():
    assert isinstance(tir.PrimFunc([], tir.ret(0)).body, tir.Evaluate)

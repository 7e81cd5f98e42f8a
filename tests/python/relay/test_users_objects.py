# SPDX-License-Identifier: Apache-2.0
"""Containers, objects, functions, devices, targets, contexts and instruments, as programs of 0.8 use them."""

import pickle

import numpy as np

import baton as tvm
from baton import relay, te, tir

V = '#[version = "0.0.5"]\n'


def M():
    x = relay.var('x', shape=(2,))
    return tvm.IRModule.from_expr(relay.Function([x], relay.exp(x) + relay.const(np.ones(2, 'float32'))))


def raises(f, *e):
    try:
        f()
    except e or (tvm.TVMError,) as x:  # noqa: B030
        return x
    raise AssertionError('no error')


def test_array():
    a = tvm.runtime.convert([1, 2, 3])
    assert len(a) == 3
    assert a[0] == 1
    assert a[-1] == 3
    assert list(a[1:]) == [2, 3]
    assert isinstance(a, tvm.ir.Array)
    assert isinstance(a, tvm.ir.container.Array)
    raises(lambda: a[3], IndexError)
    raises(lambda: a[-4], IndexError)
    assert isinstance(a[0].value if hasattr(a[0], 'value') else a[0], int)
    assert [x for x in a] == [1, 2, 3]
    b = tvm.ir.load_json(tvm.ir.save_json(a))
    assert len(b) == 3
    assert b[1] == 2


def test_map():
    a, b = (te.var('a'), te.var('b'))
    m = tvm.runtime.convert({a: 2, b: 3})
    assert len(list(m.keys())) == 2
    raises(lambda: m[te.var('z')], KeyError)
    assert m.get(te.var('q'), 5) == 5
    assert isinstance(m, tvm.ir.Map)
    s = tvm.runtime.convert({'x': 1, 'y': [1, 2]})
    assert s['x'] == 1
    assert list(s['y']) == [1, 2]
    assert 'z' not in s
    j = tvm.ir.load_json(tvm.ir.save_json(s))
    assert j['x'] == 1
    assert str(s)


def test_string():
    s = tvm.runtime.String('hello')
    assert s == 'hello'
    assert isinstance(s, str)
    assert s.startswith('h')
    assert len(s) == 5
    assert hash(s) == hash('hello')
    assert {s: 1}['hello'] == 1
    t = tvm.testing.echo(s)
    assert t == 'hello'
    assert isinstance(tvm.runtime.convert('x'), str)
    p = pickle.loads(pickle.dumps(s))
    assert p == s


def test_adt_tuple():
    a = tvm.runtime.container.ADT(3, [tvm.nd.array(np.ones(1)), tvm.nd.array(np.zeros(1))])
    assert a.tag == 3
    assert len(a) == 2
    assert a[0].numpy()[0] == 1
    t = tvm.runtime.container.tuple_object([tvm.nd.array(np.ones(2)), tvm.runtime.container.ADT(1, [])])
    assert t.tag == 0
    assert len(t) == 2
    assert t[1].tag == 1
    assert isinstance(t, tvm.runtime.container.ADT)


def test_shape_tuple():
    s = tvm.runtime.ShapeTuple([1, 2, 3])
    assert len(s) == 3
    assert s[1] == 2
    assert s[-1] == 3
    assert tuple(s) == (1, 2, 3)
    raises(lambda: s[3], IndexError)


def test_make_node():
    x = tvm.ir.make_node('IntImm', dtype='int32', value=10, span=None)
    assert isinstance(x, tir.IntImm)
    assert x.value == 10
    A = te.placeholder((10,), name='A')
    t = tvm.ir.make_node('Tensor', shape=A.shape, dtype=A.dtype, op=A.op, value_index=0)
    assert t.op == A.op
    assert t.value_index == 0


def test_make_attrs():
    e = raises(lambda: tvm.ir.make_node('attrs.TestAttrs', unknown_key=1, name='xx'), AttributeError, tvm.error.TVMError)
    assert 'unknown' in str(e)
    raises(lambda: tvm.ir.make_node('attrs.TestAttrs', axis=100, name='xx'), AttributeError, tvm.error.TVMError)
    x = tvm.ir.make_node('attrs.TestAttrs', name='xx', padding=(3, 4))
    assert x.name == 'xx'
    assert x.padding[0].value == 3
    assert x.padding[1].value == 4
    assert x.axis == 10


def test_dict_attrs():
    d = tvm.ir.make_node('DictAttrs', x=1, y=10, name='xyz', padding=(0, 0))
    assert d.x.value == 1
    assert d['x'].value == 1
    assert d.y.value == 10
    assert d.name == 'xyz'
    assert d.padding[0].value == 0
    d2 = tvm.ir.load_json(tvm.ir.save_json(d))
    assert d2.name == 'xyz'
    assert 'x' in d.keys()


def test_attrs_equal():
    def m(**k):
        return tvm.ir.make_node('attrs.TestAttrs', **k)

    x, y = (m(name='xx', padding=(3, 4)), m(name='xx', padding=(3, 4)))
    z = m(name='xx', padding=(3, 4, 1))
    assert tvm.ir.structural_equal(x, y)
    assert not tvm.ir.structural_equal(x, z)

    def D(**k):
        return tvm.ir.make_node('DictAttrs', **k)

    assert tvm.ir.structural_equal(D(x=1, y=[10, 20]), D(y=[10, 20], x=1))
    assert not tvm.ir.structural_equal(D(x=1, y=20), D(y=10, x=1))
    assert tvm.ir.structural_hash(D(x=1, y=10)) == tvm.ir.structural_hash(D(y=10, x=1))


def test_const_saveload():
    x = te.var('x')
    y = tir.const(10) + x
    tir.const(1.5, 'float32')
    j = tvm.ir.save_json(tvm.runtime.convert([x, y, x * y]))
    found = tvm.ir.load_json(j)
    assert found[0].same_as(found[2].a)
    assert isinstance(found[1], tir.Add)
    tvm.ir.assert_structural_equal(found[1], tvm.ir.load_json(tvm.ir.save_json(y)), map_free_vars=True)


def test_pickle():
    x = te.var('x')
    s = pickle.loads(pickle.dumps(x + 1))
    assert isinstance(s, tir.Add)
    assert s.b.value == 1


def test_env_func():
    @tvm.register_func('p6.env', override=True)
    def test(x):
        return x + 1

    f = tvm.ir.EnvFunc.get('p6.env')
    g = tvm.ir.load_json(tvm.ir.save_json(f))
    assert g.name == 'p6.env'
    assert g(3) == 4
    assert f.same_as(f)
    a = tvm.ir.make_node('attrs.TestAttrs', name='xx', padding=(3, 4), func=f)
    b = tvm.ir.load_json(tvm.ir.save_json(a))
    assert b.func(10) == 11


def test_object_dir():
    x = te.var('x', 'int32')
    assert 'name' in dir(x)
    assert 'dtype' in dir(x)
    assert x.name == 'x'
    raises(lambda: x.nope, AttributeError)
    assert x.same_as(x)
    assert x.handle is not None
    assert repr(x)
    assert hash(x) == hash(x)
    raises(lambda: setattr(x, 'name', 'y'), AttributeError, TypeError)


def test_packed():
    f = tvm.runtime.convert(lambda *a: len(a))
    assert f(1, 'x', None) == 3
    assert isinstance(f, tvm.runtime.PackedFunc)
    g = tvm.runtime.convert(lambda x: x)
    assert g(10) == 10
    assert g('s') == 's'
    assert g(None) is None
    assert g(2.5) == 2.5
    assert g(tvm.cpu(0)) == tvm.cpu(0)
    assert isinstance(g(tvm.nd.array(np.ones(1))), tvm.nd.NDArray)
    assert isinstance(g(lambda x: x), tvm.runtime.PackedFunc)
    assert g(b'bb') == b'bb'
    assert g(True)
    raises(lambda: f(a=1), TypeError)


def test_global_func():
    @tvm.register_func('p6.gf', override=True)
    def f(x):
        return x * 2

    assert tvm.get_global_func('p6.gf')(4) == 8
    assert 'p6.gf' in tvm._ffi.registry.list_global_func_names()
    assert tvm.get_global_func('p6.none', True) is None
    raises(lambda: tvm.get_global_func('p6.none'), ValueError)
    tvm._ffi.registry.remove_global_func('p6.gf')
    assert tvm.get_global_func('p6.gf', allow_missing=True) is None
    raises(lambda: (tvm.register_func('p6.dup', lambda: 1), tvm.register_func('p6.dup', lambda: 2)), ValueError, tvm.TVMError)
    tvm._ffi.registry.remove_global_func('p6.dup')


def test_error_reg():
    @tvm.error.register_error
    class MyErr(RuntimeError):
        pass

    f = tvm.runtime.convert(lambda: (_ for _ in ()).throw(ValueError('bad')))
    e = raises(f, ValueError)
    assert 'bad' in str(e)


def test_nd():
    x = np.random.rand(3, 4).astype('float32')
    a = tvm.nd.array(x)
    b = tvm.nd.empty((3, 4))
    a.copyto(b)
    assert (b.numpy() == x).all()
    b[:] = 0
    assert (b.numpy() == 0).all()
    b.copyfrom(x)
    c = a.copyto(tvm.cpu(0))
    assert c.same_as(a) is False
    assert tvm.nd.array(np.arange(3)).dtype == 'int64'
    raises(lambda: a.copyfrom(np.zeros((2, 2), 'float32')), ValueError)
    assert (
        tvm.nd.cpu(0) == tvm.cpu() and tvm.nd.numpyasarray(x)[0] is not None and (a.handle is not None) and (a.is_view is False)
        if hasattr(a, 'is_view')
        else True
    )
    v = a._create_view((4, 3))
    assert v.shape == (4, 3)


def test_dlpack():
    x = tvm.nd.array(np.arange(4, dtype='float32'))
    y = tvm.nd.from_dlpack(x.to_dlpack())
    assert (y.numpy() == x.numpy()).all()
    np.from_dlpack(x) if hasattr(x, '__dlpack__') else None
    assert (tvm.nd.from_dlpack(x).numpy() == x.numpy()).all()


def test_target():
    t = tvm.target.Target('llvm -mcpu=skylake -keys=cpu,fast')
    assert t.kind.name == 'llvm'
    assert t.mcpu == 'skylake'
    assert 'fast' in t.keys
    assert t.attrs['mcpu'] == 'skylake'
    assert tvm.target.Target.current() is None
    with t:
        assert tvm.target.Target.current() == t or str(tvm.target.Target.current()) == str(t)
    raises(lambda: tvm.target.Target.current(False), ValueError, tvm.TVMError)
    j = t.export()
    assert j['kind'] == 'llvm'
    u = tvm.target.Target(j)
    assert str(u) == str(t)
    c = tvm.target.Target('cuda -model=v100 -libs=cudnn,cublas')
    assert c.model == 'v100'
    assert list(c.libs) == ['cudnn', 'cublas']
    assert c.thread_warp_size == 32
    assert c.max_num_threads == 1024
    assert 'gpu' in c.keys
    assert 'cuda' in c.keys
    h = tvm.target.Target('cuda', host='llvm')
    assert h.host.kind.name == 'llvm'
    d = tvm.target.Target({'kind': 'llvm', 'mtriple': 'x86_64-linux-gnu', 'keys': ['cpu'], 'mattr': ['+avx2']})
    assert d.mtriple == 'x86_64-linux-gnu' if hasattr(d, 'mtriple') else d.attrs['mtriple']
    raises(lambda: tvm.target.Target('nope'), ValueError, tvm.TVMError)
    raises(lambda: tvm.target.Target('llvm -nope=1'), ValueError, tvm.TVMError)
    assert 'llvm' in tvm.target.Target.list_kinds()
    b = tvm.target.arm_cpu('rasp3b')
    assert b.device_name == 'arm_cpu'
    assert b.model == 'bcm2837'
    assert tvm.target.mali().device_name == 'mali'
    assert tvm.target.intel_graphics().device_name == 'intel_graphics'
    assert tvm.target.cuda().kind.name == 'cuda'
    assert tvm.target.rocm().kind.name == 'rocm'
    assert tvm.target.bifrost()
    assert tvm.target.riscv_cpu()
    assert tvm.target.hexagon()
    assert tvm.target.vta
    assert tvm.target.create('llvm').kind.name == 'llvm'
    p, q = tvm.target.Target.check_and_update_host_consist('cuda', 'llvm')
    assert p.host.kind.name == 'llvm'
    assert tvm.target.Target('llvm').supports_integer_dot_product in (True, False)


def test_span():
    s = tvm.ir.Span(tvm.ir.SourceName('a'), 1, 2, 3, 4)
    assert tvm.ir.structural_equal(s, tvm.ir.Span(tvm.ir.SourceName('a'), 1, 2, 3, 4))
    assert tvm.ir.SourceName('a').name == 'a'


def test_range():
    r = tvm.ir.Range(1, 5)
    assert r.min.value == 1
    assert r.extent.value == 4
    q = tvm.ir.Range(10)
    assert q.extent.value == 10
    f = tvm.ir.Range.from_min_extent(2, 3)
    assert f.extent.value == 3


def test_capi_ext():
    assert (
        tvm.runtime.enabled('llvm') and (not tvm.runtime.enabled('cuda')) and isinstance(tvm.support.libinfo(), dict) and tvm.support.libinfo()['LLVM_VERSION']
        if 'LLVM_VERSION' in tvm.support.libinfo()
        else True
    )
    assert tvm.runtime.system_lib
    assert tvm.__version__


def test_time_eval():
    tvm.runtime.convert(lambda: 1)
    A = te.placeholder((4,))
    B = te.compute((4,), lambda i: A[i])
    g = tvm.build(te.create_schedule(B.op), [A, B], 'llvm')
    ev = g.time_evaluator(g.entry_name, tvm.cpu(), number=2, repeat=2, min_repeat_ms=0)
    r = ev(tvm.nd.empty((4,)), tvm.nd.empty((4,)))
    assert len(r.results) == 2
    assert isinstance(r, tvm.runtime.module.BenchmarkResult)
    assert 'mean' in str(r)

# SPDX-License-Identifier: Apache-2.0
"""Passes, contexts, instruments, containers, functions and errors across the border, as programs of 0.8 use them."""

import numpy as np

import baton as tvm
from baton import relay, te
from baton.ir.instrument import pass_instrument
from baton.relay import transform


def raises(f, *e):
    try:
        f()
    except e or (tvm.TVMError,) as x:  # noqa: B030
        return x
    raise AssertionError('no error')


def M(n=1):
    x = relay.var('x', shape=(2,))
    e = x
    for _ in range(n):
        e = relay.exp(e)
    return tvm.IRModule.from_expr(relay.Function([x], e))


def test_func_pass_class_kw():
    @relay.transform.function_pass(opt_level=1)
    class T:
        def __init__(self, new):
            self.new = new

        def transform_function(self, func, mod, ctx):
            return self.new

    y = relay.Function([], relay.const(1.0))
    p = T(new=y)
    assert isinstance(p, relay.transform.FunctionPass)
    assert p.info.name == 'T'
    assert p.info.opt_level == 1
    assert p.new is not None
    m = p(M())
    tvm.ir.assert_structural_equal(m['main'], transform.InferType()(tvm.IRModule.from_expr(y))['main'])


def test_pass_registration():
    @tvm.transform.module_pass(opt_level=3, name='my', required=['a', 'b'])
    def f(mod, ctx):
        return mod

    assert f.info.name == 'my'
    assert f.info.opt_level == 3
    assert [str(r) for r in f.info.required] == ['a', 'b']


def test_decor_no_parens():
    def g(mod, ctx):
        return mod

    p = tvm.transform.module_pass(g, opt_level=1, name='g')
    assert isinstance(p, tvm.transform.ModulePass)
    assert p.info.name == 'g'
    q = relay.transform.function_pass(lambda f, m, c: f, opt_level=0, name='q')
    assert q(M()) is not None


def test_seq_nested_required():
    log = []

    def mk(n, **k):
        @tvm.transform.module_pass(opt_level=k.pop('opt_level', 0), name=n, **k)
        def f(mod, ctx):
            log.append(n)
            return mod

        return f

    a, b, c = (mk('a1'), mk('b1'), mk('c1', opt_level=3))
    s = tvm.transform.Sequential([a, tvm.transform.Sequential([b, c])])
    s(M())
    assert log == ['a1', 'b1']
    log.clear()
    with tvm.transform.PassContext(opt_level=3):
        s(M())
    assert log == ['a1', 'b1', 'c1']
    log.clear()
    with tvm.transform.PassContext(opt_level=3, disabled_pass=['b1']):
        s(M())
    assert log == ['a1', 'c1']
    log.clear()
    with tvm.transform.PassContext(opt_level=0, required_pass=['c1']):
        s(M())
    assert log == ['a1', 'b1', 'c1']


def test_seq_opt_level():
    s = tvm.transform.Sequential([transform.InferType()], opt_level=4)
    assert s.info.opt_level == 4
    assert s(M()) is not None


def test_ctx_nested_restore():
    P = tvm.transform.PassContext
    with P(opt_level=1) as a:
        with P(opt_level=4):
            assert P.current().opt_level == 4
        assert P.current().opt_level == 1
        assert P.current().same_as(a)
    try:
        with P(opt_level=0):
            raise KeyError
    except KeyError:
        pass
    assert P.current().opt_level == 2


def test_ctx_reuse():
    c = tvm.transform.PassContext(opt_level=3)
    for _ in range(2):
        with c:
            assert tvm.transform.PassContext.current().opt_level == 3


def test_print_ir_header(capfd):
    tvm.transform.Sequential([transform.InferType(), tvm.transform.PrintIR('HDR', True)])(M())
    assert 'HDR' in ''.join(capfd.readouterr())


def test_instr_order():
    log = []

    def mk(i):
        @pass_instrument
        class Index:
            def enter_pass_ctx(s):
                log.append(f'en{i}')

            def exit_pass_ctx(s):
                log.append(f'ex{i}')

            def should_run(s, m, p):
                log.append(f'sr{i}')
                return True

            def run_before_pass(s, m, p):
                log.append(f'b{i}')

            def run_after_pass(s, m, p):
                log.append(f'a{i}')

        return Index()

    with tvm.transform.PassContext(instruments=[mk(0), mk(1)]):
        transform.InferType()(M())
    assert log == ['en0', 'en1', 'sr0', 'sr1', 'b0', 'b1', 'a0', 'a1', 'ex0', 'ex1']


def test_instr_disabled_stop():
    log = []

    @pass_instrument
    class S:
        def should_run(s, m, p):
            return p.name != 'FoldConstant'

    @pass_instrument
    class L:
        def run_before_pass(s, m, p):
            log.append(p.name)

    with tvm.transform.PassContext(instruments=[S(), L()]):
        tvm.transform.Sequential([transform.FoldConstant(), transform.ToANormalForm()])(M())
    assert 'FoldConstant' not in log
    assert 'ToANormalForm' in log


def test_instr_modifies():
    m = M()
    seen = []

    @pass_instrument
    class Index:
        def run_after_pass(s, m, p):
            seen.append(len(m.functions))

    with tvm.transform.PassContext(instruments=[Index()]):
        transform.FuseOps()(m)
    assert seen


def test_instr_subclass():
    class C(tvm.instrument.PassInstrument):
        def __init__(self):
            super().__init__()
            self.n = 0

        def run_before_pass(self, mod, info):
            self.n += 1

    c = C()
    with tvm.transform.PassContext(instruments=[c]):
        transform.InferType()(M())
    assert c.n == 1


def test_override_mid():
    log = []

    @pass_instrument
    class Index:
        def enter_pass_ctx(s):
            log.append('in')

        def exit_pass_ctx(s):
            log.append('out')

    with tvm.transform.PassContext(instruments=[Index()]) as c:
        c.override_instruments([Index()])
        c.override_instruments([])
        assert len(c.instruments) == 0
    assert log == ['in', 'out', 'in', 'out']


def test_instr_attr_access():
    @pass_instrument
    class Index:
        def __init__(s, a, b=2):
            s.a, s.b = (a, b)

        def get(s):
            return s.a + s.b

    i = Index(1)
    assert i.a == 1
    assert i.get() == 3
    assert isinstance(i, tvm.instrument.PassInstrument)
    raises(lambda: i.zz, AttributeError)


def test_array_ops():
    a = tvm.runtime.convert([1, 2, 3, 4])
    assert list(a[::2]) == [1, 3] and list(a[::-1]) == [4, 3, 2, 1] and (2 in a) and (a.index(3) == 2) if hasattr(a, 'index') else True
    assert tvm.ir.structural_equal(a, tvm.runtime.convert([1, 2, 3, 4]))
    assert str(a) == '[1, 2, 3, 4]'
    n = tvm.runtime.convert([[1, 2], [3]])
    assert n[0][1] == 2
    assert isinstance(n[0], tvm.ir.Array)
    t = tvm.runtime.convert((1, 'a', None))
    assert t[1] == 'a'
    assert t[2] is None


def test_map_ops():
    m = tvm.runtime.convert({'a': 1, 'b': 2})
    assert sorted(m.keys()) == ['a', 'b']
    assert sorted((int(v) for v in m.values())) == [1, 2]
    assert dict(m.items())['a'] == 1
    assert len(m) == 2
    assert m.get('c') is None
    assert [k for k in m]
    assert 'a' in m
    assert isinstance(m, tvm.ir.container.Map)


def test_convert_fn():
    c = tvm.runtime.convert
    assert c(True)
    assert c(1.5) == 1.5
    assert c('a') == 'a'
    assert c(None) is None
    assert isinstance(c([1]), tvm.ir.Array)
    assert isinstance(c({'a': 1}), tvm.ir.Map)
    assert isinstance(c(lambda: 1), tvm.runtime.PackedFunc)
    assert c(tvm.cpu(0)) == tvm.cpu(0)
    raises(lambda: c(object()), ValueError, TypeError)


def test_nested_cb():
    f = tvm.runtime.convert(lambda g, x: g(x) + 1)
    assert f(lambda x: x * 2, 3) == 7
    h = tvm.runtime.convert(lambda: tvm.runtime.convert(lambda y: y + 1))
    assert h()(1) == 2
    k = tvm.runtime.convert(lambda *xs: [x for x in xs])
    assert list(k(1, 2)) == [1, 2]


def test_callback_err_cross():
    def a():
        raise KeyError('k')

    f = tvm.runtime.convert(lambda: tvm.runtime.convert(a)())
    e = raises(f, KeyError, tvm.TVMError)
    assert 'k' in str(e)


def test_reg_override():
    tvm.register_func('p6.o1', lambda: 1, override=True)
    tvm.register_func('p6.o1', lambda: 2, override=True)
    assert tvm.get_global_func('p6.o1')() == 2
    f = tvm._ffi.get_global_func('p6.o1')
    assert isinstance(f, tvm.runtime.PackedFunc)

    @tvm.register_func
    def p6_bare(x):
        return x

    assert tvm.get_global_func('p6_bare')(3) == 3


def test_nd_args():
    seen = []
    f = tvm.runtime.convert(lambda x: seen.append((type(x).__name__, x.shape)))
    f(tvm.nd.array(np.zeros((2, 3))))
    assert seen == [('NDArray', (2, 3))]
    g = tvm.runtime.convert(lambda x: x)
    a = tvm.nd.array(np.ones(2))
    assert g(a).same_as(a) or (g(a).numpy() == 1).all()


def test_obj_args():
    f = tvm.runtime.convert(lambda x: x)
    v = te.var('v')
    assert f(v).same_as(v)
    assert f([v])[0].same_as(v)
    assert f({'a': v})['a'].same_as(v)
    assert f((1, 2))[1] == 2
    assert f(tvm.runtime.String('x')) == 'x'
    assert f(tvm.ir.Range(0, 3)).extent == 3


def test_bytes():
    f = tvm.runtime.convert(lambda x: x)
    assert f(bytearray(b'ab')) == bytearray(b'ab')
    assert bytes(f(bytearray(b'ab'))) == b'ab'


def test_object_protocol():
    class MyObj(tvm.runtime.Object):
        pass

    x = relay.var('x')
    assert isinstance(x, tvm.runtime.Object)
    assert isinstance(x, tvm.Object)
    assert x.same_as(x)
    assert not x != x
    assert hash(x)
    assert repr(x)
    d = {x: 1}
    assert d[x] == 1
    y = relay.var('x')
    assert x != y

    @lambda c: c
    class Q(tvm.Object):
        pass


def test_mod_hash_copy():
    import copy

    m = M()
    assert tvm.ir.structural_hash(m) == tvm.ir.structural_hash(M())
    assert tvm.ir.structural_equal(copy.copy(m), m)
    assert tvm.ir.structural_equal(copy.deepcopy(m), m)
    e = m['main']
    assert copy.deepcopy(e) is not None


def test_save_load_attrs():
    x = relay.var('x', shape=(1, 3, 8, 8))
    c = relay.nn.conv2d(x, relay.var('w'), kernel_size=(3, 3), padding=(1, 1))
    a = tvm.ir.load_json(tvm.ir.save_json(c.attrs))
    assert (
        tvm.ir.structural_equal(a, c.attrs) and a.kernel_size[0] == 3 and ('padding' in a.keys()) and (a['padding'][0] == 1) and (a.get_int('groups') == 1)
        if hasattr(a, 'get_int')
        else True
    )
    assert c.attrs.get_int_tuple('padding')[0] == 1
    assert c.attrs.get_str('data_layout') == 'NCHW'
    assert [f.name for f in c.attrs.list_field_info()]


def test_list_field():
    i = [f for f in relay.nn.softmax(relay.var('x')).attrs.list_field_info()]
    assert i[0].name == 'axis'
    assert i[0].type_info
    assert i[0].description


def test_module_type_err():
    raises(lambda: transform.InferType()(relay.const(1)), Exception)
    raises(lambda: transform.InferType()(None), Exception)
    raises(lambda: tvm.IRModule({'f': 3}), Exception)


def test_ir_module_views():
    m = M()
    f = m.functions
    assert len(list(f.keys())) == 1
    assert f[m.get_global_var('main')].same_as(m['main'])
    m['g'] = relay.Function([], relay.const(1))
    assert len(m.functions) == 2
    assert m.get_global_var('g').name_hint == 'g'
    hasattr(m, '__delitem__')
    m2 = tvm.IRModule.from_expr(m['main'])
    assert m2['main'].same_as(m['main']) or tvm.ir.structural_equal(m2['main'], m['main'])
    raises(lambda: m.get_global_vars()[9], IndexError)
    a = m.with_attr('k', 'v')
    assert a.get_attr('k') == 'v'
    assert a.attrs['k'] == 'v'


def test_diag_span():
    m = tvm.parser.parse('#[version = "0.0.5"]\ndef @main(%x: Tensor[(2), float32], %y: Tensor[(3), float32]) { add(%x, %y) }\n')
    raises(lambda: transform.InferType()(m), tvm.error.DiagnosticError, tvm.TVMError)


def test_env_global():
    e = tvm.ir.EnvFunc.get('p6.o1') if tvm.get_global_func('p6.o1', True) else None
    assert e is None or e() == 2


def test_nd_more():
    a = tvm.nd.empty((2, 2), 'float16', tvm.cpu(0))
    assert a.dtype == 'float16'
    b = tvm.nd.array([[1, 2], [3, 4]], tvm.cpu())
    assert b.shape == (2, 2)
    c = tvm.nd.array(np.array(1.0))
    assert c.shape == ()
    assert c.numpy() == 1
    d = tvm.nd.array(np.zeros((0, 3), 'float32'))
    assert d.shape == (0, 3)
    e = tvm.nd.array(np.arange(6).reshape(2, 3)[:, ::2])
    assert e.numpy().tolist() == [[0, 2], [3, 5]]
    raises(lambda: tvm.nd.empty((2,), 'nope'), ValueError, tvm.TVMError)
    assert str(b)
    assert b.copyto(tvm.nd.empty((2, 2), b.dtype)) is not None
    raises(lambda: tvm.nd.array(np.array(['a'])), Exception)
    assert tvm.nd.array(np.ones(2, bool)).dtype in ('bool', 'uint1')
    b[:] = np.zeros((2, 2), b.dtype)
    assert (b.asnumpy() == 0).all()

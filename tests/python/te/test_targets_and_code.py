# SPDX-License-Identifier: Apache-2.0
"""Targets, helpers, and code that is built, saved and loaded."""

import numpy as np
import pytest

import baton as tvm
import baton.contrib.utils
import baton.testing
from baton import arith, te, tir
from baton.ir import load_json, save_json, structural_equal


def test_target_basics():
    t = tvm.target.Target('llvm')
    assert t.kind.name == 'llvm' and str(t).startswith('llvm') and 'cpu' in t.keys
    t = tvm.target.Target('llvm -mcpu=skylake')
    assert t.mcpu == 'skylake' and t.attrs['mcpu'] == 'skylake'


def test_target_attrs():
    t = tvm.target.Target('llvm -device=arm_cpu -keys=a,b -libs=cblas')
    assert t.device_name == 'arm_cpu' and 'cblas' in t.libs and 'a' in t.keys


def test_target_dict():
    t = tvm.target.Target({'kind': 'llvm', 'mcpu': 'skylake', 'keys': ['cpu']})
    assert t.kind.name == 'llvm' and t.mcpu == 'skylake'
    assert t.export()['kind'] == 'llvm'


def test_target_scope():
    with tvm.target.Target('llvm'):
        assert tvm.target.Target.current().kind.name == 'llvm'
    assert tvm.target.Target.current(allow_none=True) is None
    with pytest.raises(tvm.TVMError):
        tvm.target.Target.current(allow_none=False)


def test_target_host():
    t = tvm.target.Target('cuda', host='llvm')
    assert t.host.kind.name == 'llvm'
    t = tvm.target.Target({'kind': 'cuda', 'host': {'kind': 'llvm'}})
    assert t.host.kind.name == 'llvm'


def test_target_errors():
    for bad in ('nope', 'llvm -nope=1', {'kind': 'nope'}):
        with pytest.raises((ValueError, tvm.TVMError)):
            tvm.target.Target(bad)


def test_target_tags():
    assert len(tvm.target.list_tags() or {}) >= 1


def test_target_equality():
    assert str(tvm.target.Target('llvm')) == str(tvm.target.Target('llvm'))
    assert structural_equal(tvm.target.Target('llvm'), tvm.target.Target('llvm'))
    t = load_json(save_json(tvm.target.Target('llvm -mcpu=skylake')))
    assert t.mcpu == 'skylake'


def test_target_pickle():
    import pickle

    t = pickle.loads(pickle.dumps(tvm.target.Target('llvm')))
    assert t.kind.name == 'llvm'


def test_generic_func():
    @tvm.target.generic_func
    def f(x):
        return x + 1

    @f.register('cuda')
    def _c(x):
        return x + 2

    @f.register(['llvm', 'cpu'])
    def _l(x):
        return x + 3

    assert f(1) == 2
    with tvm.target.Target('llvm'):
        assert f(1) == 4
    with tvm.target.Target('cuda'):
        assert f(1) == 3


def test_override_native():
    @tvm.target.override_native_generic_func('scr.gf')
    def g(x):
        return x

    @g.register('llvm')
    def _(x):
        return x * 10

    with tvm.target.Target('llvm'):
        assert g(2) == 20


def test_genericfunc():
    gf = tvm.target.get_native_generic_func('scr.gf2')
    gf.set_default(lambda x: x)
    gf.register(lambda x: x + 1, ['llvm'])
    with tvm.target.Target('llvm'):
        assert gf(1) == 2


def test_intrin_rule():
    from baton.ir import register_intrin_lowering

    register_intrin_lowering('tir.scr_mylog', 'llvm', f=lambda op: tir.log(op.args[0]))
    A = te.placeholder((4,))
    B = te.compute((4,), lambda i: tir.call_intrin('float32', 'tir.scr_mylog', A[i]))
    f = tvm.build(te.create_schedule(B.op), [A, B], 'llvm')
    b = tvm.nd.empty((4,))
    f(tvm.nd.array(np.ones(4, 'float32')), b)
    assert (b.numpy() == 0).all()


def test_testing_allclose():
    tvm.testing.assert_allclose(np.ones(3), np.ones(3) + 1e-9)
    with pytest.raises(AssertionError):
        tvm.testing.assert_allclose(np.ones(3), np.zeros(3))


def test_testing_grads():
    tvm.testing.check_numerical_grads(lambda x: float((x**2).sum()), [np.array([1.0, 2.0])], [np.array([2.0, 4.0])])


def test_testing_targets():
    ts = tvm.testing.enabled_targets()
    assert any(t == 'llvm' for t, _ in ts)
    assert tvm.testing.device_enabled('llvm')


def test_testing_bool():
    x = te.var('x')
    y = te.var('y')
    tvm.testing.check_bool_expr_is_true(x + y < x + y + 1, {x: tvm.ir.Range(0, 5), y: tvm.ir.Range(0, 5)})


def test_testing_constraints():
    x = te.var('x')
    y = te.var('y')
    s = arith.solve_linear_equations([tir.EQ(x + y, 10)], [x, y], {x: tvm.ir.Range(0, 11), y: tvm.ir.Range(0, 11)})
    tvm.testing.check_int_constraints_trans_consistency(s)


def test_support():
    i = tvm.support.libinfo()
    assert 'LLVM_VERSION' in i or 'USE_LLVM' in i
    assert tvm.support.FrontendTestModule is not None
    m = tvm.support.FrontendTestModule()
    m.add_function('f', lambda x: x + 1)
    assert m['f'](1) == 2


def test_contrib_clang():
    from baton.contrib import clang

    assert all('clang' in path for path in clang.find_clang(required=False))


def test_contrib_tar():
    from baton.contrib import tar

    d = tvm.contrib.utils.tempdir()
    open(d.relpath('a.o'), 'w').write('1')
    tar.tar(d.relpath('a.tar'), [d.relpath('a.o')])
    t = d.relpath('out')
    tar.untar(d.relpath('a.tar'), t)
    import os

    assert os.listdir(t)


def test_contrib_pickle():
    from baton.contrib.pickle_memoize import memoize

    @memoize('scr.memo', save_at_exit=False)
    def g():
        return 3

    assert g() == 3


def test_contrib_sparse():
    from baton.contrib import sparse

    a = np.array([[0, 1.0], [2.0, 0]], 'float32')
    s = sparse.array(a, device=tvm.cpu())
    assert (s.numpy() == a).all()
    n = te.var('n')
    p = sparse.placeholder((n, 3), name='p')
    assert p.stype == 'csr'


def test_contrib_random():
    from baton.contrib import random

    r = random.uniform(0, 1, (4,))
    f = tvm.build(te.create_schedule(r.op), [r], 'llvm')
    b = tvm.nd.empty((4,))
    f(b)
    assert (b.numpy() <= 1).all()


def test_contrib_cblas():
    from baton.contrib import cblas

    A = te.placeholder((3, 4))
    B = te.placeholder((4, 5))
    C = cblas.matmul(A, B)
    f = tvm.build(te.create_schedule(C.op), [A, B, C], 'llvm')
    c = tvm.nd.empty((3, 5))
    f(tvm.nd.array(np.ones((3, 4), 'float32')), tvm.nd.array(np.ones((4, 5), 'float32')), c)
    assert (c.numpy() == 4).all()


def test_contrib_rpc_names():
    from baton.contrib import graph_executor

    assert graph_executor.create is not None
    assert graph_executor.GraphModule is not None


def test_vm_names():
    from baton.runtime import vm

    assert vm.VirtualMachine is not None


def test_csource():
    m = tvm.get_global_func('runtime.CSourceModuleCreate')('int f(){return 0;}', 'c', ['f'], [])
    assert m.type_key == 'c' and 'int f' in m.get_source()
    assert isinstance(m, tvm.runtime.Module)


def test_csource_api():
    m = tvm.runtime._ffi_api.CSourceModuleCreate('int f(int x){return x;}', 'cc', ['f'], [])
    assert m.type_key == 'c'
    d = tvm.contrib.utils.tempdir()
    m.save(d.relpath('m.cc'), 'cc')
    assert 'int f' in open(d.relpath('m.cc')).read()


def test_enabled():
    assert tvm.runtime.enabled('llvm') and tvm.runtime.enabled('cpu')
    assert not tvm.runtime.enabled('nope')


def test_driver_build_dict():
    A = te.placeholder((4,), name='A')
    B = te.compute((4,), lambda i: A[i] + 1.0)
    s = te.create_schedule(B.op)
    m = tvm.lower(s, [A, B], name='f')
    lib = tvm.build({'llvm': m})
    assert lib['f']
    lib = tvm.build(m, target='llvm')
    lib = tvm.driver.build(m, target='llvm')
    tvm.driver.lower(s, [A, B])


def test_build_target_obj_host():
    A = te.placeholder((4,), name='A')
    B = te.compute((4,), lambda i: A[i] + 1.0)
    s = te.create_schedule(B.op)
    for f in (tvm.build(s, [A, B], tvm.target.Target('llvm'), 'llvm'), tvm.build(s, [A, B], target='llvm', target_host='llvm')):
        b = tvm.nd.empty((4,))
        f(tvm.nd.array(np.ones(4, 'float32')), b)
        np.testing.assert_array_equal(b.numpy(), 2)


def test_build_errors():
    A = te.placeholder((4,), name='A')
    B = te.compute((4,), lambda i: A[i] + 1.0)
    s = te.create_schedule(B.op)
    f = tvm.build(s, [A, B], 'llvm')
    with pytest.raises(tvm.TVMError):
        f(tvm.nd.empty((5,)), tvm.nd.empty((4,)))
    with pytest.raises(tvm.TVMError):
        f(tvm.nd.empty((4,), 'int32'), tvm.nd.empty((4,)))
    with pytest.raises(tvm.TVMError):
        f(tvm.nd.empty((4,)))
    with pytest.raises(AttributeError):
        assert f['nope'] is not None


def test_binds():
    A = te.placeholder((4,), name='A')
    B = te.compute((4,), lambda i: A[i] + 1.0)
    s = te.create_schedule(B.op)
    Ab = tir.decl_buffer(A.shape, A.dtype, name='Ab')
    m = tvm.lower(s, [A, B], binds={A: Ab})
    assert m

# SPDX-License-Identifier: Apache-2.0
"""Containers, objects, functions, devices, targets, contexts and instruments, as programs of 0.8 use them."""


import numpy as np

import baton as tvm
from baton import relay

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

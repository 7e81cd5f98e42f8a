# SPDX-License-Identifier: Apache-2.0
"""The prelude, data types of a program, references, closures and the virtual machine, as programs of 0.8 use them."""

import numpy as np

import baton as tvm
from baton import relay
from baton.relay.prelude import Prelude
from baton.relay.testing import count, make_nat_expr

V = '#[version = "0.0.5"]\n'


class E:
    def __init__(s):
        s.m = tvm.IRModule()
        s.p = Prelude(s.m)
        s.p.mod.import_from_std('nat.rly')
        s.nat, s.z, s.s = s.m.get_type('nat')
        s.list, s.cons, s.nil = s.m.get_type('List')
        s.tree, s.rose = s.m.get_type('Tree') if len(s.m.get_type('Tree')) == 2 else (None, None)
        s.opt, s.some, s.none = s.m.get_type('Option')
        g = s.m.get_global_var
        s.double, s.add = (g('nat_double'), g('nat_add'))
        (
            s.map,
            s.foldl,
            s.foldr,
            s.sum,
            s.length,
            s.nth,
            s.tl,
            s.hd,
            s.rev,
            s.filter,
            s.zip,
            s.concat,
            s.iterate,
            s.compose,
            s.update,
            s.foldr1,
            s.unfoldr,
            s.unfoldl,
            s.map_accuml,
            s.map_accumr,
            s.tmap,
            s.size,
            s.id,
        ) = map(
            g,
            'map foldl foldr sum length nth tl hd rev filter zip concat iterate compose update foldr1 unfoldr unfoldl map_accuml map_accumr tmap size id'.split(),
        )

    def ev(s, e):
        return relay.create_executor('debug', mod=s.m).evaluate(e)

    def l(s, v):  # noqa: E743
        r = []
        while v.tag == s.cons.tag:
            r.append(v.fields[0])
            v = v.fields[1]
        return r

    def cl(s, *xs):
        r = s.nil()
        for x in reversed(xs):
            r = s.cons(x, r)
        return r


def i(v):
    return relay.const(v)


def test_nat():
    e = E()
    n = make_nat_expr(e.p, 5)
    assert count(e.p, e.ev(n)) == 5
    assert count(e.p, e.ev(e.double(n))) == 10
    assert count(e.p, e.ev(e.add(n, n))) == 10
    assert e.m[e.double].checked_type == relay.FuncType([e.nat()], e.nat())


def test_lists():
    e = E()
    found = e.cl(i(1), i(2), i(3))

    def g(x):
        return [int(v.numpy()) for v in e.l(e.ev(x))]

    assert g(e.rev(found)) == [3, 2, 1]
    assert g(e.concat(found, found)) == [1, 2, 3] * 2
    assert g(e.tl(found)) == [2, 3]
    assert e.ev(e.hd(found)).numpy() == 1
    assert e.ev(e.nth(found, i(1))).numpy() == 2
    assert e.ev(e.length(found)).numpy() == 3
    assert e.ev(e.sum(found)).numpy() == 6
    x = relay.var('x', 'int32')
    f = relay.Function([x], x + i(1))
    assert g(e.map(f, found)) == [2, 3, 4]
    y = relay.var('y', 'int32')
    assert g(e.filter(relay.Function([y], relay.greater(y, i(1))), found)) == [2, 3]
    assert g(e.update(found, i(1), i(9))) == [1, 9, 3]


def test_folds():
    e = E()
    found = e.cl(i(1), i(2), i(3))
    a, b = (relay.var('a', 'int32'), relay.var('b', 'int32'))
    f = relay.Function([a, b], a - b)
    assert e.ev(e.foldl(f, i(0), found)).numpy() == -6
    assert e.ev(e.foldr(f, i(0), found)).numpy() == 2
    assert e.ev(e.foldr1(f, found)).numpy() == 2
    x = relay.var('x')
    y = relay.var('y')
    assert [int(v.numpy()) for v in e.l(e.ev(e.foldl(relay.Function([x, y], e.cons(y, x)), e.nil(), found)))] == [3, 2, 1]


def test_zip_iter():
    e = E()
    found = e.cl(i(1), i(2))
    z = e.l(e.ev(e.zip(found, e.rev(found))))
    assert [(int(a[0].numpy()), int(a[1].numpy())) for a in z] == [(1, 2), (2, 1)]
    x = relay.var('x', 'int32')
    f = relay.Function([x], x * i(2))
    assert e.ev(relay.Call(e.iterate(f, i(4)), [i(1)])).numpy() == 16
    assert e.ev(relay.Call(e.compose(f, f), [i(3)])).numpy() == 12


def test_unfold():
    e = E()
    x = relay.var('x', 'int32')
    f = relay.Function([x], relay.If(relay.equal(x, i(0)), e.none(), e.some(relay.Tuple([x - i(1), x]))))
    assert [int(v.numpy()) for v in e.l(e.ev(e.unfoldr(f, i(3))))] == [3, 2, 1]
    assert [int(v.numpy()) for v in e.l(e.ev(e.unfoldl(f, i(3))))] == [1, 2, 3]


def test_accum():
    e = E()
    a, b = (relay.var('a', 'int32'), relay.var('b', 'int32'))
    f = relay.Function([a, b], relay.Tuple([a + b, a * b]))
    r = e.ev(e.map_accuml(f, i(1), e.cl(i(2), i(3))))
    assert r[0].numpy() == 6
    assert [int(v.numpy()) for v in e.l(r[1])] == [9, 2]


def test_tree():
    e = E()
    t = e.rose

    def leaf(v):
        return t(v, e.nil())

    tr = t(i(1), e.cl(leaf(i(2)), leaf(i(3))))
    assert e.ev(e.size(tr)).numpy() == 3
    x = relay.var('x', 'int32')
    r = e.ev(e.tmap(relay.Function([x], x + i(1)), tr))
    assert r.fields[0].numpy() == 2
    assert len(e.l(r.fields[1])) == 2


def test_option_match():
    e = E()
    v = relay.var('v')
    mt = relay.Match(
        e.some(i(3)), [relay.Clause(relay.PatternConstructor(e.some, [relay.PatternVar(v)]), v), relay.Clause(relay.PatternConstructor(e.none, []), i(0))]
    )
    assert e.ev(mt).numpy() == 3


def test_value_types():
    e = E()
    r = e.ev(e.some(i(1)))
    assert r.constructor == e.some
    assert isinstance(r, relay.backend.interpreter.ConstructorValue)
    assert r.tag == e.some.tag


def test_make_cons_value():
    from baton.relay.backend.interpreter import ConstructorValue, RefValue

    e = E()
    v = ConstructorValue(e.some.tag, [tvm.nd.array(np.int32(4))], e.some)
    x = relay.var('x', e.opt(relay.scalar_type('int32')))
    y = relay.var('y')
    f = relay.Function(
        [x], relay.Match(x, [relay.Clause(relay.PatternConstructor(e.some, [relay.PatternVar(y)]), y), relay.Clause(relay.PatternWildcard(), i(0))])
    )
    assert relay.create_executor('debug', mod=e.m).evaluate(f)(v).numpy() == 4
    r = RefValue(tvm.nd.array(np.int32(1)))
    assert r.value.numpy() == 1


def test_own_adt_api():
    m = tvm.IRModule()
    gv = relay.GlobalTypeVar('box')
    tv = relay.TypeVar('a')
    c = relay.Constructor('Box', [tv], gv)
    m[gv] = relay.TypeData(gv, [tv], [c])
    assert m.get_constructor(c.tag) == c
    assert m[gv].constructors[0] == c
    assert m.get_global_type_var('box') == gv
    assert m.get_global_type_vars() == [gv]
    assert m.get_type('box')[1] == c
    assert c.name_hint == 'Box'
    assert c.belong_to == gv
    assert len(c.inputs) == 1
    t = gv(relay.TensorType((), 'int32'))
    assert isinstance(t, relay.TypeCall)
    assert t.func == gv
    assert len(t.args) == 1
    m['main'] = relay.Function([], c(i(1)))
    m = relay.transform.InferType()(m)
    assert m['main'].ret_type == gv(relay.scalar_type('int32')) or m['main'].ret_type.func == gv


def test_vm_adt():
    e = E()
    x = relay.var('x', 'int32')
    f = relay.Function([x], x + i(1))
    e.m['main'] = relay.Function([], e.map(f, e.cl(i(1), i(2))))
    r = relay.create_executor('vm', mod=e.m).evaluate()()
    assert r.tag == e.cons.tag and r[0].numpy() == 2 and (r.fields[0].numpy() == 2) if hasattr(r, 'fields') else len(r) == 2


def test_dyn_ta():
    m = tvm.IRModule()
    p = Prelude(m)
    ta, rd, wr = (p.get_global_var('tensor_array', 'int32'), p.get_global_var('tensor_array_read', 'int32'), p.get_global_var('tensor_array_write', 'int32'))
    t1 = (
        p.get_tensor_ctor('tensor1', 'int32')
        if hasattr(p, 'get_tensor_ctor')
        else p.get_type('tensor_t', 'int32') and p.get_ctor(p.get_type('tensor_t', 'int32').name_hint, 'tensor1', 'int32')
    )
    m['main'] = relay.Function([], rd(wr(ta(i(2)), i(1), t1(relay.const(np.array([5, 6], 'int32')))), i(1)))
    assert relay.create_executor('debug', mod=m).evaluate()().fields[0].numpy().tolist() == [5, 6]


def test_fib():
    m = tvm.IRModule()
    fib = relay.GlobalVar('fib')
    n = relay.var('n', shape=(), dtype='int32')
    m[fib] = relay.Function([n], relay.If(relay.less(n, i(2)), n, fib(n - i(1)) + fib(n - i(2))), relay.scalar_type('int32'))
    x = relay.var('x', shape=(), dtype='int32')
    m['main'] = relay.Function([x], fib(x))
    for k in ('debug', 'vm'):
        assert relay.create_executor(k, mod=m).evaluate()(np.int32(10)).numpy() == 55


def test_closure_vm():
    x, y = (relay.var('x', 'int32'), relay.var('y', 'int32'))
    f = relay.Function([x], relay.Function([y], x + y))
    assert relay.create_executor('debug').evaluate(f(i(1))(i(2))).numpy() == 3
    m = tvm.IRModule.from_expr(relay.Function([], f(i(1))(i(2))))
    assert relay.create_executor('vm', mod=m).evaluate()().numpy() == 3


def test_mutual():
    m = tvm.parser.parse(
        V
        + 'def @even(%n: int32) -> bool { if (%n == 0) { True } else { @odd(%n - 1) } }\ndef @odd(%n: int32) -> bool { if (%n == 0) { False } else { @even(%n - 1) } }\ndef @main(%n: int32) -> bool { @even(%n) }\n'
    )
    assert bool(relay.create_executor('vm', mod=m).evaluate()(np.int32(10)).numpy())


def test_adt_text():
    m = tvm.parser.parse(
        V
        + 'type Shape { Circle(float32), Square(float32), Dot }\ndef @area(%s: Shape) -> float32 { match (%s) { Circle(%r) => %r * %r * 3f, Square(%a) => %a * %a, Dot => 0f } }\ndef @main() -> float32 { @area(Circle(2f)) }\n'
    )
    assert relay.create_executor('debug', mod=m).evaluate()().numpy() == 12
    assert 'match' in m.astext()
    assert tvm.ir.structural_equal(tvm.parser.parse(m.astext()), m)


def test_nested_pat_text():
    m = tvm.parser.parse(
        V
        + 'type L[A] { C(A, L[A]), N }\ndef @second(%l: L[int32]) -> int32 { match? (%l) { C(_, C(%x, _)) => %x } }\ndef @main() -> int32 { @second(C(1, C(2, N))) }\n'
    )
    assert relay.create_executor('debug', mod=m).evaluate()().numpy() == 2


def test_refs():
    r = relay.var('r')
    u = relay.var('u')
    e = relay.Let(r, relay.RefCreate(i(1)), relay.Let(u, relay.RefWrite(r, i(2)), relay.RefRead(r)))
    assert relay.create_executor('debug').evaluate(e).numpy() == 2


def test_scope():
    sb = relay.ScopeBuilder()
    c = relay.var('c', 'bool')
    x = relay.var('x', 'int32')
    with sb.if_scope(c):
        y = sb.let('y', x + i(1))
        sb.ret(y)
    with sb.else_scope():
        sb.ret(x)
    f = relay.Function([c, x], sb.get())
    ex = relay.create_executor('debug').evaluate(f)
    assert ex(True, np.int32(1)).numpy() == 2
    assert ex(False, np.int32(1)).numpy() == 1


def test_vm_api():
    x = relay.var('x', shape=(relay.Any(), 2))
    m = tvm.IRModule.from_expr(relay.Function([x], relay.exp(x)))
    ex = relay.vm.compile(m, 'llvm')
    assert (
        'main' in ex.bytecode and ex.stats and ex.globals and (ex.primitive_ops is not None) and (ex.constants is not None)
        if hasattr(ex, 'constants')
        else True
    )
    assert ex.get_function_params('main') == ['x'] and ex.get_function_arity('main') == 1 if hasattr(ex, 'get_function_arity') else True
    vm = tvm.runtime.vm.VirtualMachine(ex, tvm.cpu())
    vm.set_input('main', np.zeros((3, 2), 'float32'))
    assert vm.run().shape == (3, 2)
    assert vm.invoke('main', x=np.zeros((1, 2), 'float32')).shape == (1, 2)
    assert vm.run(np.zeros((2, 2), 'float32')).shape == (2, 2)
    vm.invoke_stateful('main')
    assert 'mean' in str(vm.benchmark(tvm.cpu(), np.zeros((3, 2), 'float32'), repeat=1, number=1)).lower()


def test_vm_save():
    x = relay.var('x', shape=(2,))
    m = tvm.IRModule.from_expr(relay.Function([x], relay.exp(x)))
    ex = relay.vm.compile(m, 'llvm')
    code, lib = ex.save()
    assert isinstance(code, bytearray)
    d = tvm.contrib.utils.tempdir()
    p = d.relpath('lib.so')
    lib.export_library(p)
    ex2 = tvm.runtime.vm.Executable.load_exec(code, tvm.runtime.load_module(p))
    assert np.allclose(tvm.runtime.vm.VirtualMachine(ex2, tvm.cpu()).run(np.zeros(2, 'float32')).numpy(), 1)


def test_vm_prof():
    from baton.runtime import profiler_vm

    x = relay.var('x', shape=(2,))
    m = tvm.IRModule.from_expr(relay.Function([x], relay.exp(x)))
    ex = relay.vm.compile(m, 'llvm')
    v = profiler_vm.VirtualMachineProfiler(ex, tvm.cpu())
    r = v.profile(np.zeros(2, 'float32'), func_name='main')
    s = str(r)
    assert 'Duration' in s
    assert 'Total' in s
    assert r.csv()
    assert r.json()
    assert r.table()
    assert profiler_vm.enabled()


def test_vm_compiler():
    x = relay.var('x', shape=(2,))
    w = relay.var('w', shape=(2,))
    m = tvm.IRModule.from_expr(relay.Function([x, w], x + w))
    c = relay.vm.VMCompiler()
    c.set_params({'w': np.ones(2, 'float32')})
    c.lower(m, 'llvm')
    c.codegen()
    ex = c.get_exec()
    assert (tvm.runtime.vm.VirtualMachine(ex, tvm.cpu()).run(np.zeros(2, 'float32')).numpy() == 1).all()
    o, p = relay.vm.VMCompiler().optimize(m, target='llvm', params={'w': tvm.nd.array(np.ones(2, 'float32'))})
    assert isinstance(o, tvm.IRModule)


def test_interp_values():
    e = E()
    r = relay.create_executor('debug', mod=e.m).evaluate(relay.Tuple([i(1), relay.Function([], i(1))]))
    assert len(r) == 2
    c = relay.create_executor('debug').evaluate(relay.Function([relay.var('x', 'int32')], i(1)))
    assert c(1).numpy() == 1


def test_while_gradient():
    i_ = relay.var('i', shape=(), dtype='int32')
    a = relay.var('a', shape=(2,))
    found = relay.loops.while_loop(lambda i, a: relay.less(i, relay.const(3)), [i_, a], lambda i, a: (i + relay.const(1), a * relay.const(2.0)))
    x = relay.var('x', shape=(2,))
    f = relay.Function([x], relay.TupleGetItem(found(i(0), x), 1))
    assert relay.create_executor('vm', mod=tvm.IRModule.from_expr(f)).evaluate()(np.ones(2, 'float32')).numpy().tolist() == [8, 8]

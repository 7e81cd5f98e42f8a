# SPDX-License-Identifier: Apache-2.0
"""Memory, names, JSON of old versions, saved machines, random numbers, partial evaluation, gradients, quantized operators, as programs of 0.8 use them."""

import json

import numpy as np
import pytest

import baton as tvm
from baton import relay, tir
from baton.relay import transform
from baton.relay.testing import run_infer_type, run_opt_pass

V = '#[version = "0.0.5"]\n'


def X(*s, d='float32', n='x'):
    return relay.var(n, relay.TensorType(s, d))


def F_(e):
    return relay.Function(relay.analysis.free_vars(e), e)


def check_mem(inputs, params, m):
    _ex, _p = (None, None)
    comp = relay.vm.VMCompiler()
    comp.lower(m, 'llvm')
    comp.codegen()
    exe = comp.get_exec()
    vm = tvm.runtime.vm.VirtualMachine(exe, tvm.cpu(), 'naive')
    r = vm.invoke('main', *inputs)
    v2 = tvm.runtime.vm.VirtualMachine(exe, tvm.cpu(), 'pooled')
    np.testing.assert_allclose(r.numpy(), v2.invoke('main', *inputs).numpy())


def test_name_mangle():
    from baton.relay.backend.utils import mangle_module_name as mm

    assert mm(None) == 'tvmgen'
    assert mm('default') == 'tvmgen_default'
    with pytest.raises(ValueError):
        mm('Ǝ')
    with pytest.raises(ValueError):
        mm('ñ')


def test_typecall_dup():
    m = tvm.IRModule()
    gv = relay.GlobalTypeVar('id')
    tv = relay.TypeVar('a')
    m[gv] = relay.TypeData(gv, [tv], [])
    a = gv(relay.TensorType([]))
    b = gv(relay.TensorType([]))
    m['x'] = relay.Function([relay.Var('v', a)], relay.Tuple([]))
    assert a == b
    i = relay.TypeCall(gv, [relay.TensorType([])])
    assert i == a
    assert i.func == gv
    tvm.ir.TypeCall(gv, [])


def test_tuple_eval():
    sb = relay.ScopeBuilder()
    y = sb.let('y', relay.Tuple([relay.const(1), relay.const(np.array([3, 4], 'float32'))]))
    sb.ret(relay.TupleGetItem(y, 1))
    e = sb.get()
    assert relay.create_executor('debug').evaluate(e).numpy().tolist() == [3, 4]


def test_eval_tyck_list():
    m = tvm.IRModule()
    relay.prelude.Prelude(m)
    found, cons, nil = m.get_type('List')
    e = relay.create_executor('debug', mod=m).evaluate(cons(relay.Tuple([]), nil()))
    assert e.constructor == cons


def test_err_op():
    x, y = (X(10, 10), X(11, 10, n='y'))
    with pytest.raises(tvm.error.DiagnosticError):
        transform.InferType()(tvm.IRModule.from_expr(relay.Function([x, y], x + y)))

    def f():
        tvm.IRModule.from_expr(relay.Function([x], relay.Call(relay.op.get('add'), [x])))

    with pytest.raises(tvm.TVMError):
        transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], relay.Call(relay.op.get('add'), [x]))))


def test_err_attrs():
    with pytest.raises((tvm.TVMError, TypeError, ValueError)):
        relay.nn.conv2d(X(1, 3, 8, 8), X(4, 3, 3, 3, n='w'), nope=3)
    with pytest.raises((tvm.TVMError, TypeError)):
        relay.concatenate(3, 0)
    with pytest.raises((tvm.TVMError, ValueError, AttributeError)):
        relay.op.get('nope')


def test_free_in_fn():
    y = X(2, n='y')
    f = relay.Function([], y)
    assert relay.analysis.free_vars(f) == [y]
    assert relay.analysis.well_formed(f)


def test_json_06():
    nodes = [
        {'type_key': ''},
        {'type_key': 'relay.TypeVar', 'attrs': {'kind': '0', 'span': '0', 'var': '2'}},
        {'type_key': 'Variable', 'attrs': {'dtype': 'int32', 'name': 'in0'}},
    ]
    j = json.dumps({'root': 1, 'nodes': nodes, 'attrs': {'tvm_version': '0.6.0'}, 'b64ndarrays': []})
    t = tvm.ir.load_json(j)
    assert isinstance(t, tvm.ir.TypeVar)
    assert t.name_hint == 'in0'
    nodes = [
        {'type_key': ''},
        {'type_key': 'relay.GlobalTypeVar', 'attrs': {'kind': '0', 'span': '0', 'var': '2'}},
        {'type_key': 'Variable', 'attrs': {'dtype': 'int32', 'name': 'in0'}},
    ]
    assert isinstance(tvm.ir.load_json(json.dumps({'root': 1, 'nodes': nodes, 'attrs': {'tvm_version': '0.6.0'}, 'b64ndarrays': []})), tvm.ir.GlobalTypeVar)


def test_json_var():
    nodes = [
        {'type_key': ''},
        {'type_key': 'relay.Var', 'attrs': {'_checked_type_': '0', 'span': '0', 'type_annotation': '0', 'vid': '2'}},
        {'type_key': 'relay.Id', 'attrs': {'name_hint': 'a3'}},
        {'type_key': 'relay.TensorType', 'attrs': {'dtype': 'float32', 'shape': '4', 'span': '0'}},
        {'type_key': 'Array', 'data': [5, 6]},
        {'type_key': 'IntImm', 'attrs': {'dtype': 'int32', 'value': '16'}},
        {'type_key': 'IntImm', 'attrs': {'dtype': 'int32', 'value': '8'}},
    ]
    v = tvm.ir.load_json(json.dumps({'root': 1, 'nodes': nodes, 'attrs': {'tvm_version': '0.6.0'}, 'b64ndarrays': []}))
    assert isinstance(v, relay.Var)
    assert v.name_hint == 'a3'
    t = tvm.ir.load_json(json.dumps({'root': 3, 'nodes': nodes, 'attrs': {'tvm_version': '0.6.0'}, 'b64ndarrays': []}))
    assert t == relay.TensorType((16, 8), 'float32')


def test_json_misc():
    def ld(*nodes):
        return tvm.ir.load_json(json.dumps({'root': 1, 'nodes': [{'type_key': ''}, *nodes], 'attrs': {'tvm_version': '0.6.0'}, 'b64ndarrays': []}))

    assert isinstance(ld({'type_key': 'relay.IncompleteType', 'attrs': {'kind': '0', 'span': '0'}}), tvm.ir.IncompleteType)
    f = ld(
        {'type_key': 'relay.FuncType', 'attrs': {'arg_types': '2', 'ret_type': '3', 'span': '0', 'type_constraints': '6', 'type_params': '5'}},
        {'type_key': 'Array'},
        {'type_key': 'relay.TupleType', 'attrs': {'fields': '4', 'span': '0'}},
        {'type_key': 'Array'},
        {'type_key': 'Array'},
        {'type_key': 'Array'},
    )
    assert isinstance(f, tvm.ir.FuncType)
    g = ld({'type_key': 'relay.GlobalVar', 'attrs': {'_checked_type_': '0', 'name_hint': 'x', 'span': '0'}})
    assert isinstance(g, tvm.ir.GlobalVar)
    o = ld({'type_key': 'relay.Op', 'global_key': 'nn.conv2d'})
    assert o == relay.op.get('nn.conv2d')
    v = ld({'type_key': 'Variable', 'attrs': {'dtype': 'int32', 'name': 'x', 'span': '0'}})
    assert isinstance(v, tir.Var)
    assert v.name == 'x'
    s = ld(
        {'type_key': 'StrMap', 'keys': ['z', 'x'], 'data': [2, 3]},
        {'type_key': 'IntImm', 'attrs': {'dtype': 'int32', 'value': '2'}},
        {'type_key': 'Max', 'attrs': {'a': '4', 'b': '2', 'dtype': 'int32'}},
        {'type_key': 'Variable', 'attrs': {'dtype': 'int32', 'name': 'x'}},
    )
    assert 'z' in s
    assert isinstance(s['x'], tir.Max)
    t = ld({'type_key': 'relay.TupleType', 'attrs': {'fields': '2', 'span': '0'}}, {'type_key': 'Array', 'data': []})
    assert isinstance(t, tvm.ir.TupleType)


def test_vm_ser_all():
    d = tvm.contrib.utils.tempdir()

    def rt(m, *args):
        ex = relay.vm.compile(m, 'llvm')
        code, lib = ex.save()
        p = d.relpath('l.so')
        lib.export_library(p)
        open(d.relpath('c.ro'), 'wb').write(code)
        found = tvm.runtime.load_module(p)
        e2 = tvm.runtime.vm.Executable.load_exec(bytearray(open(d.relpath('c.ro'), 'rb').read()), found)
        vm = tvm.runtime.vm.VirtualMachine(e2, tvm.cpu())
        return (vm.run(*args), e2)

    x = X(2)
    m = tvm.IRModule.from_expr(relay.Function([x], relay.exp(x)))
    r, e = rt(m, np.zeros(2, 'float32'))
    assert (r.numpy() == 1).all() and e.primitive_ops is not None and (e.globals == ['main']) or 'main' in list(e.globals)
    c = X(d='bool', n='c')
    r, _ = rt(tvm.IRModule.from_expr(relay.Function([c], relay.If(c, relay.const(1), relay.const(2)))), True)
    assert r.numpy() == 1
    mm = tvm.IRModule()
    relay.prelude.Prelude(mm)
    found, cons, nil = mm.get_type('List')
    mm['main'] = relay.Function([], cons(relay.const(1), nil()))
    r, _ = rt(mm)
    assert len(r) == 2


def test_fc_transpose():
    from baton.relay import data_dep_optimization as ddo

    x = X(1, 32)
    w = X(32, 64, n='weight')
    y = relay.nn.dense(x, relay.transpose(w, axes=[1, 0]))
    f = F_(relay.nn.relu(y))
    names = relay.analysis.search_fc_transpose(f)
    assert len(names) == 1
    f2, p2 = ddo.simplify_fc_transpose.convert(f, {'weight': tvm.nd.array(np.random.rand(32, 64).astype('float32'))})
    assert 'transpose' not in f2.astext()


def test_prng():
    k = relay.random.threefry_key(1)
    g = relay.random.threefry_generate(k, (16,))
    out = relay.create_executor('vm').evaluate(relay.Function([], g.astuple() if hasattr(g, 'astuple') else g))()
    assert len(out) == 2
    assert out[0].shape == (10,)
    assert out[1].shape == (16,)
    found, r = relay.random.threefry_split(k)
    t = run_infer_type(relay.random.uniform(k, (2, 2)).astuple() if hasattr(relay.random.uniform(k, (2, 2)), 'astuple') else relay.random.uniform(k, (2, 2)))
    assert t.checked_type.fields[0] == relay.TensorType((10,), 'uint64')
    with pytest.raises(tvm.TVMError):
        run_infer_type(relay.random.threefry_generate(relay.const(np.zeros(3, 'uint64')), (4,)))


def test_cps():
    m = tvm.parser.parse(V + 'def @main(%x: int32) -> int32 { if (%x == 0) { 1 } else { %x + 2 } }\n')
    m = transform.InferType()(m)
    c = transform.to_cps(m['main'], mod=m)
    un = transform.un_cps(c)
    m2 = tvm.IRModule.from_expr(un)
    assert relay.create_executor('debug', mod=m2).evaluate()(np.int32(3)).numpy() == 5


def test_pe_grad():
    x = X()
    f = run_infer_type(relay.Function([x], x * x))
    g = transform.gradient(f)
    tvm.IRModule.from_expr(g)
    p = run_opt_pass(g, tvm.transform.Sequential([transform.PartialEvaluate(), transform.DeadCodeElimination(inline_once=True)]))
    assert relay.create_executor('debug').evaluate(p)(np.float32(3))[1][0].numpy() == 6


def test_pe_list():
    m = tvm.IRModule()
    relay.prelude.Prelude(m)
    found, cons, nil = m.get_type('List')
    hd = m.get_global_var('hd')
    m['main'] = relay.Function([], hd(cons(relay.const(3), nil())))
    m = transform.InferType()(m)
    r = transform.PartialEvaluate()(m)
    assert relay.create_executor('debug', mod=r).evaluate()().numpy() == 3


def test_defunc():
    m = tvm.parser.parse(
        V + 'def @apply[A, B](%f: fn(A) -> B, %xs: A) -> B { %f(%xs) }\ndef @main() -> int32 { @apply(fn (%x: int32) -> int32 { %x + 1 }, 3) }\n'
    )
    m = transform.InferType()(m)
    d = transform.Defunctionalization(m['main'], m)
    assert d


def test_call_graph_more():
    m = tvm.parser.parse(V + 'def @r(%x: int32) -> int32 { @r(%x) }\ndef @main(%x: int32) -> int32 { @r(%x) }\n')
    c = relay.analysis.CallGraph(m)
    assert c.is_recursive('r')
    assert not c.is_recursive('main')
    assert c.ref_count('r') == 2
    assert str(c)


def test_auto_quant_partition():
    from baton.relay.quantize import qconfig
    from baton.relay.quantize import quantize as q

    x = X(1, 16, 8, 8, n='data')
    w = X(16, 16, 3, 3, n='w')
    f = relay.nn.relu(relay.nn.conv2d(x, w, kernel_size=(3, 3), padding=(1, 1), channels=16))
    m = tvm.IRModule.from_expr(F_(f))
    p = {'w': tvm.nd.array(np.random.rand(16, 16, 3, 3).astype('float32'))}
    with qconfig(skip_conv_layers=[], global_scale=8.0):
        r = q(m, p)
        assert 'int8' in r.astext(False)
    with qconfig(calibrate_mode='kl_divergence', weight_scale='max'):
        r = q(m, p, dataset=[{'data': np.random.rand(1, 16, 8, 8).astype('float32')}])
        assert relay.build(r, 'llvm')


def test_ir_nodes():
    r = tvm.runtime.convert(10)
    assert r.value == 10
    tt = relay.TensorType(tvm.runtime.convert([1, 2, 3]), 'float32')
    assert tt.dtype == 'float32'
    assert tt.span is None
    assert str(tt)
    tp = relay.TypeVar('foo', relay.TypeKind.ShapeVar)
    assert tp.kind == relay.TypeKind.ShapeVar
    f = relay.FuncType([], relay.TensorType((1,)), [tp], [])
    assert f.type_constraints is not None
    assert f.type_params[0] == tp
    assert str(f)
    tr = relay.TypeRelation(
        tvm.ir.EnvFunc.get('tvm.relay.type_relation.Broadcast'), [tt, tt], 1, tvm.ir.make_node('attrs.TestAttrs', name='attr', padding=(3, 4))
    )
    assert tr.args[0] == tt
    assert tr.num_inputs == 1
    with pytest.raises(tvm.error.TVMError):
        tvm.ir.make_node('nope.node')


def test_bind_type_vars():
    a = relay.TypeVar('a')
    f = relay.Function([relay.Var('x', a)], relay.const(1), type_params=[a])
    t = run_infer_type(f).checked_type
    assert len(t.type_params) == 1


def test_struct_hash():
    x = X(2)
    f = relay.Function([x], relay.exp(x))
    relay.Function([X(2, n='z')], relay.exp(X(2, n='z')))
    assert tvm.ir.structural_hash(f) == tvm.ir.structural_hash(relay.Function([x], relay.exp(x)))
    assert tvm.ir.structural_hash(relay.const(1)) == tvm.ir.structural_hash(relay.const(1))
    assert tvm.ir.structural_hash(relay.const(1)) != tvm.ir.structural_hash(relay.const(2))
    h = tvm.ir.structural_hash(relay.TensorType((1, 2)))
    assert h == tvm.ir.structural_hash(relay.TensorType((1, 2)))


def test_se_more():
    v = relay.var('v')
    t = relay.TypeVar('t')
    se = tvm.ir.structural_equal
    assert not se(relay.TupleType([relay.TensorType((1,))]), relay.TupleType([]))
    assert se(relay.FuncType([t], t, [t]), relay.FuncType([relay.TypeVar('q')] * 1, relay.TypeVar('q'), [])) is False
    assert not se(relay.Let(v, relay.const(1), v), relay.Let(v, relay.const(2), v))
    assert se(relay.If(v, v, v), relay.If(v, v, v))
    assert not se(relay.TupleGetItem(v, 0), relay.TupleGetItem(v, 1))
    assert se(relay.RefCreate(v), relay.RefCreate(v))
    assert not se(relay.op.get('add'), relay.op.get('subtract'))
    assert not se(relay.nn.conv2d(v, v, padding=(1, 1)), relay.nn.conv2d(v, v))
    assert se(relay.nn.conv2d(v, v, padding=(1, 1)), relay.nn.conv2d(v, v, padding=(1, 1)))


def test_op_grad_conv_pool():
    from baton.relay.testing import check_grad

    x = X(1, 4, 8, 8, d='float64')
    check_grad(relay.Function([x], relay.nn.global_avg_pool2d(x)))
    check_grad(relay.Function([x], relay.nn.batch_flatten(x)))
    y, b = (X(2, 3, d='float64'), X(3, d='float64', n='b'))
    check_grad(relay.Function([y, b], relay.nn.bias_add(y, b)))
    i = relay.const(np.array([0, 1]))
    check_grad(relay.Function([y], relay.take(y, i, axis=0)))
    check_grad(relay.Function([y], relay.nn.pad(y, ((1, 1), (0, 0)))))
    check_grad(relay.Function([y], relay.where(relay.const(np.array([[True, False, True]] * 2)), y, y * relay.const(2.0, 'float64'))))
    check_grad(relay.Function([y], relay.stack([y, y], 0)))
    check_grad(relay.Function([y], relay.split(y, 3, 1)[1]))
    check_grad(relay.Function([y], relay.tile(y, (2, 1))))
    check_grad(relay.Function([y], relay.repeat(y, 2, 1)))
    check_grad(relay.Function([y], relay.squeeze(relay.expand_dims(y, 0))))
    check_grad(relay.Function([y], relay.cast(y, 'float64')))
    check_grad(relay.Function([y], relay.variance(y, 1)))
    g = X(2, 3, 4, d='float64', n='g')
    h = X(2, 5, 4, d='float64', n='h')
    check_grad(relay.Function([g, h], relay.nn.batch_matmul(g, h)))
    check_grad(relay.Function([y], relay.layout_transform(relay.reshape(y, (1, 6, 1, 1)), 'NCHW', 'NHWC')))
    check_grad(relay.Function([y], relay.broadcast_to(y, (4, 2, 3))))
    check_grad(relay.Function([y], relay.atan(y)))
    check_grad(relay.Function([y], relay.gather_nd(y, relay.const(np.array([[0, 1], [1, 2]])))))


def test_qnn_suite():
    q = relay.qnn.op
    s, z = (relay.const(1.0), relay.const(0))

    def run(e, *a):
        m = transform.InferType()(tvm.IRModule.from_expr(F_(e)))
        g = relay.create_executor('graph', mod=m).evaluate()(*a).numpy()
        return g

    x = X(4)
    assert run(q.quantize(x, relay.const(0.5), relay.const(3), out_dtype='uint8'), np.array([0, 1, -10, 200], 'float32')).tolist() == [3, 5, 0, 255]
    y = X(4, d='uint8')
    assert run(q.dequantize(y, relay.const(0.5), relay.const(3)), np.array([3, 5, 0, 255], 'uint8')).tolist() == [0, 1, -1.5, 126]
    r = X(4, d='int32')
    assert run(
        q.requantize(r, relay.const(1.0), relay.const(0), relay.const(2.0), relay.const(0), out_dtype='int8', rounding='UPWARD'),
        np.array([3, 5, -3, 1000], 'int32'),
    ).tolist() == [2, 3, -1, 127]
    p = X(2, 2, d='int32')
    assert run(
        q.requantize(p, relay.const(np.array([1.0, 2.0], 'float32')), relay.const(0), relay.const(1.0), relay.const(0), axis=1, out_dtype='int8'),
        np.array([[1, 2], [3, 4]], 'int32'),
    ).tolist() == [[1, 4], [3, 8]]
    a, b = (X(2, 2, d='int8'), X(2, 2, d='int8', n='b'))
    assert run(q.dense(a, b, z, z, s, s, 2), np.array([[1, 2], [3, 4]], 'int8'), np.array([[1, 0], [0, 1]], 'int8')).tolist() == [[1, 2], [3, 4]]
    assert run(q.leaky_relu(X(4, d='int8'), 0.5, s, z, s, z), np.array([-4, 4, 0, -2], 'int8')).tolist() == [-2, 4, 0, -1] if hasattr(q, 'leaky_relu') else True
    dq = q.dequantize(X(2, 2, d='int8'), relay.const(np.array([1.0, 2.0], 'float32')), relay.const(np.array([0, 0])), axis=1)
    assert run(dq, np.array([[1, 1], [2, 2]], 'int8')).tolist() == [[1, 2], [2, 4]]
    cc = q.concatenate(
        (X(1, 2, d='uint8'), X(1, 2, d='uint8', n='y2')),
        (relay.const(0.1), relay.const(0.2)),
        (relay.const(1), relay.const(2)),
        relay.const(0.1),
        relay.const(1),
        axis=0,
    )
    assert run(cc, np.array([[1, 2]], 'uint8'), np.array([[2, 3]], 'uint8')).tolist() == [[1, 2], [1, 3]]

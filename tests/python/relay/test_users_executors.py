# SPDX-License-Identifier: Apache-2.0
"""The graph executor, its debugger, parameters and what building gives, as programs of 0.8 use them."""

import json
import os

import numpy as np
import pytest

import baton as tvm
from baton import relay
from baton.contrib import graph_executor, utils
from baton.contrib.debugger import debug_executor


def mlp():
    x = relay.var('x', shape=(2, 4))
    w = relay.var('w', shape=(3, 4))
    b = relay.var('b', shape=(3,))
    return (
        tvm.IRModule.from_expr(relay.Function([x, w, b], relay.nn.relu(relay.nn.bias_add(relay.nn.dense(x, w), b)))),
        {'w': np.ones((3, 4), 'float32'), 'b': np.zeros(3, 'float32')},
    )


def built():
    m, p = mlp()
    return relay.build(m, 'llvm', params=p)


def test_ge_api():
    found = built()
    g = graph_executor.GraphModule(found['default'](tvm.cpu(0)))
    assert g.get_num_inputs() >= 1
    assert g.get_num_outputs() == 1
    g.set_input('x', np.ones((2, 4), 'float32'))
    g.run()
    assert (g.get_output(0).numpy() == 4).all()
    assert (g.get_input('x').numpy() == 1).all()
    assert (g.get_input(0).numpy() == 1).all()
    o = tvm.nd.empty((2, 3))
    g.get_output(0, out=o)
    assert (o.numpy() == 4).all()
    s, d = g.get_input_info()
    assert tuple(s['x']) == (2, 4)
    assert d['x'] == 'float32'
    assert g.get_input_index('x') == 0
    assert g.get_input_index('nope') == -1


def test_ge_lib_fn():
    found = built()
    gm = found['default'](tvm.cpu())
    gm['set_input']('x', tvm.nd.array(np.ones((2, 4), 'float32')))
    gm['run']()
    assert gm['get_output'](0).shape == (2, 3)
    assert gm['get_num_outputs']() == 1
    assert gm['get_num_inputs']() >= 1


def test_ge_triple():
    m, p = mlp()
    graph, lib, params = relay.build(m, 'llvm', params=p)
    g = graph_executor.create(graph, lib, tvm.cpu())
    g.set_input(**params)
    g.set_input('x', np.ones((2, 4), 'float32'))
    g.run()
    assert (g.get_output(0).numpy() == 4).all()
    g.load_params(relay.save_param_dict(params))
    j = json.loads(graph)
    assert 'nodes' in j
    assert 'arg_nodes' in j
    assert 'heads' in j
    assert 'attrs' in j
    assert 'node_row_ptr' in j


def test_ge_nodes():
    j = json.loads(built().get_graph_json())
    assert [n['name'] for n in j['nodes'] if n['op'] == 'null'][:1] == ['x']
    assert any((n['op'] == 'tvm_op' for n in j['nodes']))
    assert len(j['arg_nodes']) >= 1


def test_share():
    found = built()
    a = graph_executor.GraphModule(found['default'](tvm.cpu()))
    b = graph_executor.GraphModule(found['default'](tvm.cpu()))
    b.share_params(a, relay.save_param_dict({'w': tvm.nd.array(np.ones((3, 4), 'float32'))}))
    b.set_input('x', np.ones((2, 4), 'float32'))
    b.run()
    assert (b.get_output(0).numpy() == 4).all()


def test_set_many():
    found = built()
    g = graph_executor.GraphModule(found['default'](tvm.cpu()))
    g.set_input(x=np.ones((2, 4), 'float32'))
    g.run(x=np.zeros((2, 4), 'float32'))
    assert (g.get_output(0).numpy() == 0).all()
    assert g.benchmark(tvm.cpu(), repeat=1, number=1).mean > 0
    assert 'x' in str(g.get_input_info())


def test_bench():
    found = built()
    g = graph_executor.GraphModule(found['default'](tvm.cpu()))
    e = g.module.time_evaluator('run', tvm.cpu(), number=1, repeat=3)
    r = e()
    assert len(r.results) == 3
    assert r.mean
    assert r.median
    assert r.std is not None
    assert r.min <= r.max
    b = g.benchmark(tvm.cpu(), end_to_end=True, x=np.ones((2, 4), 'float32'), repeat=1, number=1)
    assert b.mean > 0


def test_debug():
    m, p = mlp()
    with tvm.transform.PassContext(opt_level=0):
        found = relay.build(m, 'llvm', params=p)
    d = utils.tempdir()
    g = debug_executor.create(found.get_graph_json(), found.get_lib(), tvm.cpu(), dump_root=d.temp_dir)
    g.set_input(**found.get_params())
    g.set_input('x', np.ones((2, 4), 'float32'))
    g.run()
    assert (g.get_output(0).numpy() == 4).all()
    assert any((f.endswith('.json') for _, _, fs in os.walk(d.temp_dir) for f in fs))
    assert any((f == 'output_tensors.params' for _, _, fs in os.walk(d.temp_dir) for f in fs))
    t = g.run_individual(1, 1)
    assert len(t) >= 1
    tvm.nd.empty((2, 3))
    g.exit()


def test_debug_nodes():
    m, p = relay.testing.mlp.get_workload(1)
    found = relay.build(m, 'llvm', params=p)
    g = debug_executor.create(found.get_graph_json(), found.get_lib(), tvm.cpu())
    g.set_input(**found.get_params())
    g.set_input('data', np.ones((1, 1, 28, 28), 'float32'))
    r = g.profile()
    assert len(r.calls) >= 3
    assert g.debug_datum.get_graph_nodes()
    assert g.debug_datum.get_graph_node_shapes() is not None


def test_factory():
    found = built()
    assert found.get_params() is not None
    assert found.get_lib() is not None
    assert found.module is not None
    assert found.libmod_name == 'default'
    assert found.function_metadata is not None
    assert found.ir_mod is not None
    assert str(found.target)
    x = found.get_graph_json()
    assert isinstance(x, str)
    found.get_executor_config() if hasattr(found, 'get_executor_config') else x


def test_factory_name():
    m, p = mlp()
    found = relay.build(m, 'llvm', params=p, mod_name='net')
    g = graph_executor.GraphModule(found['net'](tvm.cpu()))
    g.run(x=np.ones((2, 4), 'float32'))
    assert found.libmod_name == 'net'


def test_export_all():
    found = built()
    d = utils.tempdir()
    for n in ('a.so', 'a.tar'):
        p = d.relpath(n)
        found.export_library(p)
        k = tvm.runtime.load_module(p)
        g = graph_executor.GraphModule(k['default'](tvm.cpu()))
        g.run(x=np.ones((2, 4), 'float32'))
        assert (g.get_output(0).numpy() == 4).all()
    m, p_ = mlp()
    gr, lib, ps = relay.build(m, 'llvm', params=p_)
    open(d.relpath('g.json'), 'w').write(gr)
    open(d.relpath('p.params'), 'wb').write(relay.save_param_dict(ps))
    lib.export_library(d.relpath('l.tar'))
    g = graph_executor.create(open(d.relpath('g.json')).read(), tvm.runtime.load_module(d.relpath('l.tar')), tvm.cpu())
    g.load_params(bytearray(open(d.relpath('p.params'), 'rb').read()))
    g.run(x=np.ones((2, 4), 'float32'))
    assert (g.get_output(0).numpy() == 4).all()


def test_optimize():
    m, p = mlp()
    o, q = relay.optimize(m, target='llvm', params=p)
    assert isinstance(o, tvm.IRModule)
    assert isinstance(q, dict)
    assert 'Primitive' in o.astext() or 'fn' in o.astext()


def test_build_module():
    m, p = mlp()
    b = relay.build_module.BuildModule()
    g, found, q = b.build(m, 'llvm', params=p)[:3]
    assert b.get_params() is not None
    assert b.get_module() is not None
    assert b.get_graph_json() is not None
    f, ps = relay.build_module.BuildModule().optimize(m, target='llvm', params=p)


def test_graph_codegen2():
    from baton.relay.backend.graph_executor_codegen import GraphExecutorCodegen

    x = relay.var('x', shape=(2,))
    f = relay.Function([x], relay.exp(x))
    m = relay.transform.FuseOps()(relay.transform.InferType()(tvm.IRModule.from_expr(f)))
    g, found, p = GraphExecutorCodegen(None, tvm.target.Target('llvm')).codegen(m, m['main'])
    assert 'nodes' in json.loads(g)


def test_executor_kinds():
    m, p = mlp()
    for k in ('graph', 'vm', 'debug', 'aot'):
        assert (relay.create_executor(k, mod=m, device=tvm.cpu(), target='llvm', params=p).evaluate()(np.ones((2, 4), 'float32')).numpy() == 4).all()
    assert (relay.create_executor('graph', mod=m, device=tvm.cpu(), target='llvm').evaluate()(np.ones((2, 4), 'float32'), **p).numpy() == 4).all()


def test_params_const():
    m, p = mlp()
    f = relay.build_module.bind_params_by_name(m['main'], p)
    assert [v.name_hint for v in f.params] == ['x']


def test_executor_opts():
    m, p = mlp()
    found = relay.build(m, 'llvm', params=p, executor=relay.backend.Executor('graph', {'link-params': True}), runtime=relay.backend.Runtime('cpp'))
    g = graph_executor.GraphModule(found['default'](tvm.cpu()))
    g.run(x=np.ones((2, 4), 'float32'))
    assert (g.get_output(0).numpy() == 4).all()


def test_metadata():
    found = built()
    f = found.function_metadata
    assert f is not None
    for k in f:
        f[k]


def test_get_source():
    found = built()
    s = found.get_lib().get_source()
    assert isinstance(s, str)
    assert found.lib.format if hasattr(found.lib, 'format') else True


def test_multi_out():
    x = relay.var('x', shape=(4, 2))
    t = relay.split(x, 2)
    m = tvm.IRModule.from_expr(relay.Function([x], relay.Tuple([t[0], t[1], x])))
    g = graph_executor.GraphModule(relay.build(m, 'llvm')['default'](tvm.cpu()))
    g.run(x=np.arange(8, dtype='float32').reshape(4, 2))
    assert g.get_num_outputs() == 3
    assert g.get_output(1).shape == (2, 2)
    assert (g.get_output(2).numpy().ravel() == np.arange(8)).all()


def test_zero_copy():
    found = built()
    g = graph_executor.GraphModule(found['default'](tvm.cpu()))
    a = tvm.nd.array(np.ones((2, 4), 'float32'))
    g.set_input_zero_copy('x', a)
    g.run()
    assert (g.get_output(0).numpy() == 4).all()


def test_profile_report():
    m, p = mlp()
    found = relay.build(m, 'llvm', params=p)
    g = debug_executor.GraphModuleDebug(found['debug_create']('default', tvm.cpu()), [tvm.cpu()], found.get_graph_json(), None)
    r = g.profile(x=np.ones((2, 4), 'float32'))
    assert 'Name' in str(r)
    assert r.csv()
    assert json.loads(r.json())
    assert isinstance(r, tvm.runtime.profiling.Report)


def test_empty_input():
    m = tvm.IRModule.from_expr(relay.Function([], relay.const(np.ones(2, 'float32'))))
    g = graph_executor.GraphModule(relay.build(m, 'llvm')['default'](tvm.cpu()))
    g.run()
    assert (g.get_output(0).numpy() == 1).all()


def test_reshape_nodes():
    x = relay.var('x', shape=(2, 4))
    m = tvm.IRModule.from_expr(relay.Function([x], relay.reshape(relay.exp(x), (8,))))
    g = graph_executor.GraphModule(relay.build(m, 'llvm')['default'](tvm.cpu()))
    g.run(x=np.zeros((2, 4), 'float32'))
    assert g.get_output(0).shape == (8,)


def test_values_of_a_report():
    profiling = tvm.runtime.profiling
    report = profiling.Report([{"Name": "k", "Duration (us)": 2.5, "Count": 3, "Percent": 100.0}], {"cpu": {"Duration (us)": 2.5, "Count": 3}})
    (call,) = report.calls
    assert call["Duration (us)"].microseconds == 2.5 and call["Count"].value == 3 and call["Percent"].percent == 100
    assert profiling.Report.from_json(report.json()).device_metrics["cpu"]["Duration (us)"].microseconds == 2.5
    assert "Total on cpu" in str(report) and "2.5" in report.csv()


@pytest.mark.parametrize("kind", ["debug", "graph", "vm"])
@pytest.mark.parametrize("dtype", ["bool", "int8", "int32", "int64", "uint8"])
def test_an_integer_is_a_condition(kind, dtype):
    c, x = relay.var("c", shape=(), dtype=dtype), relay.var("x", shape=(3,))
    mod = tvm.IRModule.from_expr(relay.Function([c, x], relay.If(c, relay.exp(x), relay.negative(x))))
    run = relay.create_executor(kind, mod=mod, target="llvm").evaluate()
    data = np.array([1, 2, 3], "float32")
    for value in (0, 1) if dtype == "bool" else (0, 1, 64) if dtype == "uint8" else (0, 1, -2, 64):
        want = np.exp(data) if value else -data
        np.testing.assert_allclose(run(np.array(value, dtype), data).numpy(), want, rtol=1e-6)


def test_too_many_arguments_are_an_error_of_both_kinds():
    x = relay.var("x", shape=(2,))
    run = relay.create_executor("debug", mod=tvm.IRModule.from_expr(relay.Function([x], x))).evaluate()
    for kind in (TypeError, ValueError):
        with pytest.raises(kind, match="takes 1 arguments, got 2"):
            run(np.zeros(2, "float32"), np.zeros(2, "float32"))


def test_a_machine_s_kernels_are_named():
    x = relay.var("x", shape=(relay.Any(), 3))
    exe = relay.vm.compile(tvm.IRModule.from_expr(relay.Function([x], relay.nn.softmax(relay.exp(x)))), target="llvm")
    assert exe.primitive_ops and f"Primitive ops (#{len(exe.primitive_ops)})" in exe.stats
    machine = tvm.runtime.vm.VirtualMachine(exe, tvm.cpu())
    assert machine.module["invoke"] is not None


def test_what_an_executor_is_made_by():
    x = relay.var("x", shape=(2,))
    lib = relay.build(tvm.IRModule.from_expr(relay.Function([x], x + x)), "llvm")
    assert lib.get_executor_config() == lib.get_graph_json()


def test_functions_of_a_virtual_machine():
    mod = tvm.parser.fromtext('#[version = "0.0.5"]\ndef @f1(%x: Tensor[(3), float32]) { %x + %x }\ndef @f2(%x: Tensor[(3), float32]) { %x * %x }')
    machine = tvm.runtime.vm.VirtualMachine(relay.vm.compile(mod, "llvm"), tvm.cpu())
    given = np.array([1, 2, 3], "float32")
    assert machine.invoke("f1", given).numpy().tolist() == [2, 4, 6] and machine.invoke("f2", given).numpy().tolist() == [1, 4, 9]
    assert "main" not in mod


@pytest.mark.parametrize("kind", ["debug", "graph", "vm"])
def test_a_tuple_as_an_argument(kind):
    pair = relay.var("pair", relay.TupleType([relay.TensorType((1,)), relay.TensorType((2,))]))
    run = relay.create_executor(kind, device=tvm.cpu(), target="llvm").evaluate(relay.Function([pair], relay.TupleGetItem(pair, 1)))
    assert run((np.ones(1, "float32"), np.array([3, 4], "float32"))).numpy().tolist() == [3, 4]

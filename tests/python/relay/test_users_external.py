# SPDX-License-Identifier: Apache-2.0
"""Compilers that a program brings along, `relay.ext.NAME`; `relay.debug`; graphs that a program writes by hand; the debug executor."""

import json
import os

import numpy as np
import pytest

import baton as tvm
from baton import relay, te
from baton.contrib import graph_executor
from baton.contrib.debugger import debug_executor

COMPILED = []


@pytest.fixture(scope="module", autouse=True)
def compiler():
    @tvm.register_func("relay.ext.hundred", override=True)
    def hundred(func):
        """Code that adds 100 to each argument, whatever the function says: so that it shows who computed."""
        COMPILED.append(str(func.attrs["global_symbol"]))
        ins = [te.placeholder([int(d) for d in p.checked_type.shape], name=p.name_hint) for p in func.params]
        outs = [te.compute(x.shape, lambda *i, x=x: x(*i) + 100.0, name=f"o{k}") for k, x in enumerate(ins)]
        return tvm.build(te.create_schedule([o.op for o in outs]), [*ins, *outs], "llvm", name=COMPILED[-1])

    yield
    tvm._ffi.registry.remove_global_func("relay.ext.hundred")


def partitioned(expr):
    mod = tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(expr), expr))
    return relay.transform.PartitionGraph()(relay.transform.InferType()(mod))


def region(*results):
    """Results of a region that begins at one variable of each."""
    begun = [relay.annotation.compiler_begin(r, "hundred") for r in results]
    return [relay.annotation.compiler_end(relay.nn.relu(b), "hundred") for b in begun]


@pytest.mark.parametrize("kind", ["debug", "graph", "vm"])
def test_code_of_another_compiler_runs(kind):
    x = relay.var("x", shape=(2, 3))
    mod = partitioned(relay.add(region(relay.exp(x))[0], relay.const(1.0)))
    before = len(COMPILED)
    got = relay.create_executor(kind, mod, tvm.cpu(), "llvm").evaluate()(np.zeros((2, 3), "float32"))
    assert (got.numpy() == 102).all() and len(COMPILED) == before + 1


def test_build_and_several_results():
    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(3,))
    f = relay.Function([x, y], relay.Tuple([x, y])).with_attr("Compiler", "hundred").with_attr("global_symbol", "both").with_attr("Primitive", 1)
    a, b = relay.var("a", shape=(2,)), relay.var("b", shape=(3,))
    mod = tvm.IRModule({"both": f})
    made = mod.get_global_var("both")(a, b)
    mod["main"] = relay.Function([a, b], relay.concatenate([relay.TupleGetItem(made, 0), relay.TupleGetItem(made, 1)], 0))
    model = graph_executor.GraphModule(relay.build(mod, "llvm")["default"](tvm.cpu()))
    model.run(a=np.array([1, 2], "float32"), b=np.array([3, 4, 5], "float32"))
    assert model.get_output(0).numpy().tolist() == [101, 102, 103, 104, 105]


def test_what_is_no_code_is_an_error():
    tvm.register_func("relay.ext.nothing", lambda func: 3, override=True)
    x = relay.var("x", shape=(2,))
    f = relay.Function([x], relay.nn.relu(x)).with_attr("Compiler", "nothing").with_attr("global_symbol", "n0")
    mod = tvm.IRModule({"n0": f})
    y = relay.var("y", shape=(2,))
    mod["main"] = relay.Function([y], mod.get_global_var("n0")(y))
    with pytest.raises(TypeError, match=r"relay\.ext\.nothing gave int for `n0`"):
        relay.build(mod, "llvm")
    tvm._ffi.registry.remove_global_func("relay.ext.nothing")
    relay.build(mod, "llvm")


@pytest.mark.parametrize("kind", ["debug", "graph", "vm"])
def test_debug_sees_values(kind):
    seen = []
    x = relay.var("x", shape=(), dtype="int32")
    body = relay.debug(x, debug_func=lambda value: seen.append(int(value.numpy()))) + relay.const(1)
    got = relay.create_executor(kind, device=tvm.cpu(), target="llvm").evaluate(relay.Function([x], body))(np.array(3, "int32"))
    assert got.numpy() == 4 and seen == [3]


def by_hand():
    a = te.placeholder((4,), name="A")
    b = te.compute(a.shape, lambda *i: a(*i) + 1.0, name="B")
    attrs = {"func_name": "myadd", "flatten_data": "1", "num_inputs": "1", "num_outputs": "1"}
    nodes = [{"op": "null", "name": "x", "inputs": []}, {"op": "tvm_op", "name": "add", "inputs": [[0, 0, 0]], "attrs": attrs}]
    shapes = {"shape": ["list_shape", [[4], [4]]], "dltype": ["list_str", ["float32", "float32"]], "storage_id": ["list_int", [0, 1]]}
    graph = {"nodes": nodes, "arg_nodes": [0], "node_row_ptr": [0, 1, 2], "heads": [[1, 0, 0]], "attrs": shapes}
    return json.dumps(graph), tvm.build(te.create_schedule(b.op), [a, b], "llvm", name="myadd")


def test_a_graph_by_hand():
    graph, lib = by_hand()
    model = graph_executor.create(graph, lib, tvm.cpu(0))
    x = np.array([1, 2, 3, 4], "float32")
    model.run(x=x)
    out = model.get_output(0, tvm.nd.empty((4,)))
    assert out.numpy().tolist() == [2, 3, 4, 5] and model.get_num_inputs() == model.get_num_outputs() == 1
    assert model.get_input_index("x") == 0 and model.get_input_index("y") == -1 and model.get_input_info() == ({"x": (4,)}, {"x": "float32"})
    with pytest.raises(RuntimeError, match="Could not find 'y'"):
        model.set_input("y", x)
    model.load_params(tvm.runtime.save_param_dict({"x": tvm.nd.array(x * 2)}))
    model.run()
    assert model.get_output(0).numpy().tolist() == [3, 5, 7, 9]


def test_debug_of_a_graph_by_hand(tmp_path):
    graph, lib = by_hand()
    model = debug_executor.create(graph, lib, tvm.cpu(0), dump_root=str(tmp_path))
    x = np.array([1, 2, 3, 4], "float32")
    model.run(x=x)
    assert sorted(os.listdir(model._dump_path)) == ["_tvmdbg_execution_trace.json", "_tvmdbg_graph_dump.json", "output_tensors.params"]
    times = model.run_individual(5, 2, 1)
    assert len(times) == 2 and times[0] == 0 < times[1]
    assert model.execute_node("add").numpy().tolist() == [2, 3, 4, 5] and model.get_node_output(0, 0).numpy().tolist() == x.tolist()
    assert "myadd" in str(model.profile(x=x)) and model.run_individual_node(1, number=2).mean > 0
    with pytest.raises(AttributeError, match="no"):
        model.execute_node("no")
    model.exit()
    assert not os.path.exists(model._dump_path)


def test_debug_of_a_program():
    x, y = relay.var("x", shape=(1, 5)), relay.var("y", shape=(1, 5))
    lib = relay.build(relay.Function([x, y], relay.nn.relu(relay.add(relay.exp(x), y))), "llvm", mod_name="net")
    assert lib.libmod_name == "net" and lib.ir_mod["main"].params[0].name_hint == "x" and lib["get_graph_json"]() == lib.get_graph_json()
    model = debug_executor.create(lib["get_graph_json"](), lib.lib, tvm.cpu())
    a = np.linspace(-1, 1, 5, dtype="float32")[None]
    model.run(x=a, y=a)
    np.testing.assert_allclose(model.execute_node("exp").numpy(), np.exp(a), rtol=1e-5)
    assert [n["name"] for n in model.debug_datum.get_graph_nodes()] == ["x", "exp", "y", "add", "nn.relu"]
    model.set_input("x", a * 0)
    assert (model.debug_get_output("exp").numpy() == 1).all() and model.get_node_output(3).shape == (1, 5)
    made = debug_executor.GraphModuleDebug(lib["debug_create"]("net", tvm.cpu()), [tvm.cpu()], lib.get_graph_json(), None)
    made.run(x=a, y=a)
    np.testing.assert_allclose(made.get_output(0).numpy(), np.maximum(np.exp(a) + a, 0), rtol=1e-5)
    assert graph_executor.GraphModule(lib["net"](tvm.cpu())).get_num_inputs() == 2

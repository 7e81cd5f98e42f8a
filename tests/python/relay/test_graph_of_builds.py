# SPDX-License-Identifier: Apache-2.0
"""The graph of a built program, where its values lie, and the steps that make them, as programs of the graph executor read them."""

import json

import numpy as np
import pytest

import baton as tvm
from baton import relay
from baton.contrib import graph_executor
from baton.relay import transform
from baton.relay.backend.graph_executor_codegen import GraphExecutorCodegen

plan_of = relay.backend._backend.GraphPlanMemory


def read(mod, params=None, **options):
    return json.loads(relay.build(mod, "llvm", params=params, **options).get_graph_json())


def test_nodes_are_the_fused_operators():
    mod, params = relay.testing.mlp.get_workload(1)
    graph = read(mod, params, mod_name="net")
    nodes, rows = graph["nodes"], graph["node_row_ptr"]
    calls = [n for n in nodes if n["op"] == "tvm_op"]
    assert [n["name"] for n in nodes if n["op"] == "null"][:2] == ["data", "p0"]
    assert [n["attrs"]["func_name"] for n in calls][:2] == ["__nop", "tvmgen_net_fused_nn_contrib_dense_pack_nn_bias_add_nn_relu"]
    assert all(int(n["attrs"]["num_inputs"]) == len(n["inputs"]) and n["attrs"]["flatten_data"] == "0" for n in calls)
    names = [n["attrs"]["func_name"] for n in calls if n["attrs"]["func_name"] != "__nop"]
    assert len(set(names)) == len(names) >= 3
    attrs = graph["attrs"]
    assert attrs["dltype"][0] == "list_str" and attrs["shape"][1][0] == [1, 1, 28, 28] and attrs["shape"][1][-1] == [1, 10]
    assert len(attrs["storage_id"][1]) == len(attrs["shape"][1]) == len(attrs["dltype"][1]) == rows[-1] and len(rows) == len(nodes) + 1
    assert graph["heads"] == [[len(nodes) - 1, 0, 0]] and graph["arg_nodes"] == [i for i, n in enumerate(nodes) if n["op"] == "null"]


def test_several_results_of_a_node():
    x = relay.var("x", shape=(4, 2))
    a, b = relay.split(x, 2)
    graph = read(tvm.IRModule.from_expr(relay.Function([x], relay.Tuple([b, relay.nn.softmax(a), x]))))
    split = next(i for i, n in enumerate(graph["nodes"]) if "split" in n["name"])
    assert graph["nodes"][split]["attrs"]["num_outputs"] == "2" and graph["node_row_ptr"][split + 1] - graph["node_row_ptr"][split] == 2
    assert graph["heads"][0] == [split, 1, 0] and graph["heads"][2] == [0, 0, 0]


@pytest.mark.parametrize("loaded", [False, True])
def test_what_is_no_graph_is_one_operator(tmp_path, loaded):
    x, c = relay.var("x", shape=(2,)), relay.var("c", shape=(), dtype="bool")
    body = relay.exp(x) if loaded else relay.If(c, relay.exp(x), x)
    lib = relay.build(tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(body), body)), "llvm")
    if loaded:
        lib.export_library(str(tmp_path / "net.so"))
        lib = tvm.runtime.load_module(str(tmp_path / "net.so"))
    assert [n["name"] for n in json.loads(lib.get_graph_json())["nodes"] if n["op"] == "tvm_op"] == ["main"]


def test_the_graph_is_handed_to_the_executor():
    mod, params = relay.testing.mlp.get_workload(1)
    graph, lib, params = relay.build(mod, "llvm", params=params)
    model = graph_executor.create(graph, lib, tvm.cpu())
    model.set_input(**params)
    model.run(data=np.ones((1, 1, 28, 28), "float32"))
    assert model.get_output(0).shape == (1, 10)


def test_codegen_of_a_fused_function():
    x = relay.var("x", shape=(2, 3))
    body = relay.exp(relay.add(x, relay.const(np.ones((2, 3), "float32"))))
    mod = transform.FuseOps(2)(transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], body))))
    graph, lowered, params = GraphExecutorCodegen(None, tvm.target.Target("llvm")).codegen(mod, mod["main"])
    assert [n["name"] for n in json.loads(graph)["nodes"]] == ["x", "p0", "tvmgen_default_fused_add_exp"] and (params["p0"].numpy() == 1).all()
    (functions,) = lowered.values()
    assert any(isinstance(f, tvm.tir.PrimFunc) for f in functions.functions.values())


def test_codegen_of_what_is_no_graph():
    c, x = relay.var("c", shape=(), dtype="bool"), relay.var("x", shape=(2,))
    mod = transform.InferType()(tvm.IRModule.from_expr(relay.Function([c, x], relay.If(c, x, relay.exp(x)))))
    with pytest.raises(tvm.error.UnsupportedError, match="a If is no node of a graph; relay.vm.compile"):
        GraphExecutorCodegen(None, {tvm.tir.IntImm("int32", 1): "llvm"}).codegen(mod, mod["main"])


def storage(func):
    found = plan_of(transform.InferType()(tvm.IRModule.from_expr(func))["main"]).expr_to_storage_info
    ids = [i for info in found.values() for i in info.storage_ids]
    return len(set(ids)), found


def test_memory_is_given_back():
    x, y = relay.var("x", shape=(1,)), relay.var("y", shape=(10,))
    z = relay.add(x, relay.exp(y))
    for _ in range(4):
        z = relay.exp(z)
    count, found = storage(relay.Function([x, y], z))
    assert count == 4, "two arguments, and two blocks that take turns"
    assert {t for info in found.values() for t in info.device_types} == {1}
    assert {s for info in found.values() for s in info.storage_sizes_in_bytes} == {4, 40}


def test_a_block_that_is_too_small_or_far_too_large_serves_no_other_value():
    x = relay.var("x", shape=(1000,))
    small = relay.sum(relay.exp(x))  # 4 bytes: a block of 4000 is too large for it
    count, _ = storage(relay.Function([x], relay.exp(relay.exp(small))))
    assert count == 4


def test_results_and_views_keep_their_memory():
    x = relay.var("x", shape=(4,))
    first = relay.exp(x)
    view = relay.reshape(first, (2, 2))
    _, found = storage(relay.Function([x], relay.Tuple([view, relay.exp(relay.exp(view))])))
    ids = {type(e).__name__ + str(i): info.storage_ids for i, (e, info) in enumerate(found.items())}
    of = {e.op.name: info.storage_ids[0] for e, info in found.items() if isinstance(e, relay.Call) and e.op.name != "exp"}
    result = next(info.storage_ids for e, info in found.items() if isinstance(e, relay.Tuple))
    assert result[0] == of["reshape"] != result[1] and len(ids) == 6

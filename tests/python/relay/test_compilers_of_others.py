# SPDX-License-Identifier: Apache-2.0
"""Functions for other compilers: tables of patterns, annotators, regions, code that a program brings along; graphs that a program writes by hand."""

import json
import os

import numpy as np
import pytest

import baton as tvm
import baton.testing
import baton.topi.testing
from baton import relay, te
from baton.contrib import graph_executor
from baton.contrib.debugger import debug_executor
from baton.relay import transform
from baton.relay.dataflow_pattern import is_op, wildcard

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


def run(expr, *args):
    params = relay.analysis.free_vars(expr)
    return relay.create_executor("debug").evaluate(relay.Function(params, expr))(*args).numpy()


def _supported(kind):
    return lambda call: call.args[0].checked_type.dtype == kind


def _partitioned(body, compilers, **options):
    """The module after the three passes, with `nn.relu` and `add` of float32 for "users", `exp` for "others"."""
    from contextlib import ExitStack

    from baton.relay.testing.temp_op_attr import TempOpAttr

    with ExitStack() as stack:
        for op, compiler in (("nn.relu", "users"), ("add", "users"), ("exp", "others"), ("add", "others")):
            stack.enter_context(TempOpAttr(op, f"target.{compiler}", _supported("float32")))
        mod = relay.transform.AnnotateTarget(compilers)(tvm.IRModule.from_expr(body))
        return relay.transform.PartitionGraph(**options)(relay.transform.MergeCompilerRegions()(mod))


def _body(dtype="float32"):
    x, y = relay.var("x", shape=(2, 3), dtype=dtype), relay.var("y", shape=(2, 3), dtype=dtype)
    relu = relay.nn.relu(x)
    both = relay.add(relu, y)
    return relay.Tuple([relay.nn.relu(relay.add(relay.exp(both) if dtype == "float32" else both, relu)), both])


@pytest.mark.parametrize(
    ("compilers", "counts"),
    [("users", {"users": 2}), (["users", "others"], {"users": 2, "others": 1}), (["others", "users"], {"users": 2, "others": 1}), ([], {})],
    ids=str,
)
def test_operators_that_other_compilers_take(compilers, counts):
    plain = tvm.IRModule.from_expr(_body())
    mod = _partitioned(_body(), compilers)
    found = {}
    for var, func in mod.functions.items():
        if func.attrs is not None and "Compiler" in func.attrs:
            found[func.attrs["Compiler"]] = found.get(func.attrs["Compiler"], 0) + 1
            assert func.attrs["global_symbol"] == var.name_hint and func.attrs["Primitive"] == 1
    assert found == counts
    args = [np.linspace(-1, 1, 6, dtype="float32").reshape(2, 3), np.ones((2, 3), "float32")]
    want = relay.create_executor("debug", plain).evaluate()(*args)
    for kind in ("debug", "graph", "vm"):
        for got, right in zip(relay.create_executor(kind, mod).evaluate()(*args), want, strict=True):
            tvm.testing.assert_allclose(got.numpy(), right.numpy(), rtol=1e-6)
    back = relay.transform.InlineCompilerFunctionsBoundTo([v for v in mod.get_global_vars() if v.name_hint != "main"])(mod)
    assert [v.name_hint for v in back.get_global_vars()] == ["main"]


def test_operators_that_other_compilers_refuse():
    mod = _partitioned(_body("int32"), "users")
    assert len(mod.functions) == 1 and not any(n.startswith("annotation") for n in relay.analysis.list_op_freqs(mod))


def test_composites_for_another_compiler():
    x, w = relay.var("x", shape=(1, 3, 8, 8)), relay.const(np.ones((4, 3, 3, 3), "float32"))
    conv = relay.nn.relu(relay.nn.conv2d(x, w))
    pattern = relay.dataflow_pattern.is_op("nn.relu")(relay.dataflow_pattern.is_op("nn.conv2d")(wildcard(), wildcard()))
    mod = relay.transform.MergeComposite([("users.conv_relu", pattern)])(tvm.IRModule.from_expr(conv))
    mod = relay.transform.PartitionGraph("net")(relay.transform.MergeCompilerRegions()(relay.transform.AnnotateTarget("users")(mod)))
    func = mod["tvmgen_net_users_main_0"]
    assert func.attrs["Compiler"] == "users" and func.body.op.attrs["Composite"] == "users.conv_relu" and len(func.params) == 1
    lib = relay.build(mod, "llvm")
    data = np.ones((1, 3, 8, 8), "float32")
    run = tvm.contrib.graph_executor.GraphModule(lib["default"](tvm.cpu()))
    run.run(x=data)
    assert (run.get_output(0).numpy() == 27).all()


def test_a_deep_program_for_another_compiler():
    """Alternating regions, 5,000 of them, and a region of 10,000 calls."""
    from baton.relay.testing.temp_op_attr import TempOpAttr

    for ops, functions in ((("nn.relu", "exp"), 5001), (("nn.relu", "nn.relu"), 2)):
        e = relay.var("x", shape=(2,))
        for _ in range(5000):
            for op in ops:
                e = relay.Call(relay.op.get(op), [e])
        with TempOpAttr("nn.relu", "target.users", lambda call: True):
            mod = relay.transform.AnnotateTarget("users")(tvm.IRModule.from_expr(e))
        mod = relay.transform.PartitionGraph()(relay.transform.MergeCompilerRegions()(mod))
        assert len(mod.functions) == functions
        back = relay.transform.InferType()(relay.transform.InlineCompilerFunctionsBoundTo([v for v in mod.get_global_vars() if v.name_hint != "main"])(mod))
        tvm.ir.assert_structural_equal(back, relay.transform.InferType()(tvm.IRModule.from_expr(e)))


def test_calibration_data():
    x, w = relay.var("x", shape=(2, 3)), relay.var("w", shape=(4, 3))
    body = relay.exp(relay.nn.relu(relay.nn.dense(x, w)))
    pattern = is_op("nn.relu")(is_op("nn.dense")(wildcard(), wildcard()))
    mod = relay.transform.MergeComposite([("ext.dense_relu", pattern)])(tvm.IRModule.from_expr(body))
    mod = relay.transform.InferType()(relay.transform.PartitionGraph()(relay.transform.MergeCompilerRegions()(relay.transform.AnnotateTarget("ext")(mod))))
    given = {p.name_hint: np.random.default_rng(0).standard_normal([int(d) for d in p.type_annotation.shape]).astype("float32") for p in mod["main"].params}
    data = relay.analysis.get_calibration_data(mod, given)
    (var,) = data
    assert "Compiler" in mod[var].attrs
    np.testing.assert_allclose(data[var]["outputs"][0].numpy(), np.maximum(given["x"] @ given["w"].T, 0), rtol=1e-5)
    assert {v.numpy().shape for v in data[var]["inputs"]} == {(2, 3), (4, 3)}


def test_regions_between_annotations():
    begin, end = (relay.op.get(f"annotation.compiler_{word}") for word in ("begin", "end"))
    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
    b0, b1 = relay.annotation.compiler_begin(x, "t"), relay.annotation.compiler_begin(y, "t")
    total = relay.add(b0, b1)
    e0 = relay.annotation.compiler_end(total, "t")
    b2 = relay.annotation.compiler_begin(e0, "t")
    relu = relay.nn.relu(b2)
    e1 = relay.annotation.compiler_end(relu, "t")
    regions = relay.analysis.AnnotatedRegionSet(relay.Function([x, y], e1), begin, end)
    first, second = regions.get_region(total), regions.get_region(relu)
    assert len(regions) == 2 and regions.get_region(x) is None and first is not second
    assert {n.handle for n in first.nodes} == {n.handle for n in (b0, b1, total, e0)} and second.nodes == [b2, relu, e1]
    assert regions.get_region(b2) is second and [r.handle for r in first.rets] == [e0.handle] and len(first.args) == 2


def test_annotators_for_another_compiler():
    from baton.relay.testing import byoc

    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
    mod = tvm.IRModule.from_expr(relay.Function([x, y], relay.exp(relay.nn.relu(relay.add(x, y)))))
    mod["main"] = byoc.WhiteListAnnotator(["add", "nn.relu"], "ccompiler").visit(mod["main"])
    parts = relay.transform.PartitionGraph()(mod)
    assert sum("Compiler" in f.attrs for f in parts.functions.values() if f.attrs is not None) == 2
    u = [relay.var(n, shape=(2,)) for n in "abcd"]
    chain = relay.Function(u, relay.multiply(relay.subtract(relay.add(u[0], u[1]), u[2]), u[3]))
    mod = tvm.IRModule.from_expr(byoc.CcompilerAnnotator().visit(chain))
    parts = relay.transform.PartitionGraph()(mod)
    assert len(parts.functions) == 2
    values = [np.array([i + 1, i + 2], "float32") for i in range(4)]
    got = relay.create_executor("graph", parts).evaluate()(*values).numpy()
    np.testing.assert_allclose(got, (values[0] + values[1] - values[2]) * values[3])


def test_own_table():
    from baton.relay.dataflow_pattern import is_op, wildcard
    from baton.relay.op.contrib import get_pattern_table, register_pattern_table

    @register_pattern_table('p6t')
    def tbl():
        return [('p6t.add_relu', is_op('nn.relu')(is_op('add')(wildcard(), wildcard())))]

    assert get_pattern_table('p6t')[0][0] == 'p6t.add_relu'


def test_annot_merge():
    x, w = (relay.var('x', shape=(1, 3, 8, 8)), relay.var('w', shape=(4, 3, 3, 3)))
    f = relay.nn.relu(relay.nn.conv2d(x, w, kernel_size=(3, 3), channels=4))
    m = tvm.IRModule.from_expr(relay.Function([x, w], f))
    m = transform.MergeComposite(relay.op.contrib.get_pattern_table('dnnl'))(transform.InferType()(m))
    m = transform.PartitionGraph()(transform.MergeCompilerRegions()(transform.AnnotateTarget(['dnnl'])(m)))
    assert any(('dnnl' in v.name_hint for v in m.get_global_vars()))
    relay.build(m, 'llvm')


def test_a_program_for_tensorrt():
    from baton.relay.op.contrib.tensorrt import is_tensorrt_runtime_enabled, partition_for_tensorrt

    x, w = relay.var("x", shape=(1, 3, 8, 8)), relay.var("w", shape=(4, 3, 3, 3))
    mod = tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.relu(relay.nn.conv2d(x, w, kernel_size=(3, 3), channels=4))))
    made, settings = partition_for_tensorrt(mod, {"w": np.ones((4, 3, 3, 3), "float32")})
    assert not is_tensorrt_runtime_enabled() and [v.name_hint for v in made.get_global_vars() if "tensorrt" in v.name_hint]
    with tvm.transform.PassContext(opt_level=3, config={"relay.ext.tensorrt.options": settings}) as ctx:
        assert ctx.config["relay.ext.tensorrt.options"]["use_implicit_batch"]
        lib = relay.build(made, "llvm")
    run = tvm.contrib.graph_executor.GraphModule(lib["default"](tvm.cpu()))
    run.run(x=np.ones((1, 3, 8, 8), "float32"))
    assert (run.get_output(0).numpy() == 27).all()


def test_a_program_for_arm_compute_lib():
    from baton.relay.op.contrib.arm_compute_lib import arm_compute_lib_pattern_table, is_arm_compute_runtime_enabled, partition_for_arm_compute_lib

    x, w = relay.var("x", shape=(1, 8, 8, 3)), relay.var("w", shape=(3, 3, 3, 4))
    conv = relay.nn.conv2d(x, w, kernel_size=(3, 3), channels=4, data_layout="NHWC", kernel_layout="HWIO")
    mod = tvm.IRModule.from_expr(relay.Function([x, w], relay.tanh(relay.nn.relu(conv))))
    made = partition_for_arm_compute_lib(mod, {"w": np.ones((3, 3, 3, 4), "float32")})
    (region,) = [made[v] for v in made.get_global_vars() if v.name_hint != "main"]
    assert not is_arm_compute_runtime_enabled() and region.attrs["Compiler"] == "arm_compute_lib"
    assert region.body.op.attrs["Composite"] == arm_compute_lib_pattern_table()[0][0] == "arm_compute_lib.conv2d"
    got = relay.create_executor("graph", mod=made).evaluate()(np.ones((1, 8, 8, 3), "float32"))
    assert np.allclose(got.numpy(), np.tanh(27))


def test_libraries_that_are_not_there_say_so():
    with pytest.warns(UserWarning, match="gives False"):
        from baton.relay.op.contrib import tensorrt

        assert tensorrt.is_tensorrt_runtime_enabled() is False

# SPDX-License-Identifier: Apache-2.0
"""What building gives, and the graph executor, its debugger and the virtual machine, as programs of Relay 0.8 use them."""

import json
import os
import warnings

import numpy as np
import pytest
from building import evaluated, parsed, program, var

import baton as tvm
from baton import relay, rpc
from baton.contrib import graph_executor
from baton.contrib.debugger import debug_executor
from baton.runtime import profiler_vm
from baton.runtime.vm import Executable, VirtualMachine

ONES, ZEROS = np.ones((2, 4), "float32"), np.zeros((2, 4), "float32")
PARAMS = {"w": np.ones((3, 4), "float32"), "b": np.zeros(3, "float32")}
EXP = "exp(%x)"


def layer():
    return tvm.IRModule.from_expr(program("x[2,4] w[3,4] b[3]", "nn.relu(nn.bias_add(nn.dense(%x, %w), %b))"))


def built(**options):
    return relay.build(layer(), "llvm", params=PARAMS, **options)


def module(body=EXP, params="x[2]"):
    return tvm.IRModule.from_expr(program(params, body))


def check(model, **given):
    """Runs a model of `layer` on ones; its result is the number of columns."""
    model.run(**(given or {"x": ONES}))
    assert (model.get_output(0).numpy() == 4).all()


# ---- What building gives


def test_a_factory(tmp_path):
    lib = built()
    assert (
        lib.libmod_name == "default" and str(lib.target) and lib.ir_mod is not None and lib.module is not None and isinstance(lib.get_lib().get_source(), str)
    )
    assert lib.get_executor_config() == lib.get_graph_json() == lib.graph_json and isinstance(lib.get_params(), dict) and lib.lib.same_as(lib.get_lib())
    assert [lib.function_metadata[k] is not None for k in lib.function_metadata] == [True] * len(lib.function_metadata)
    assert isinstance(lib, relay.backend.executor_factory.GraphExecutorFactoryModule)
    named = built(mod_name="net")
    assert named.libmod_name == "net"
    check(graph_executor.GraphModule(named["net"](tvm.cpu())))
    for name in ("a.so", "a.tar"):
        lib.export_library(str(tmp_path / name))
        check(graph_executor.GraphModule(tvm.runtime.load_module(str(tmp_path / name))["default"](tvm.cpu())))


def test_graph_library_and_parameters(tmp_path):
    graph, lib, params = built()
    read = json.loads(graph)
    assert set(read) >= {"nodes", "arg_nodes", "heads", "attrs", "node_row_ptr"} and read["arg_nodes"][0] == 0
    assert [n["name"] for n in read["nodes"] if n["op"] == "null"][0] == "x" and any(n["op"] == "tvm_op" for n in read["nodes"])
    (tmp_path / "g.json").write_text(graph)
    (tmp_path / "p.params").write_bytes(relay.save_param_dict(params))
    lib.export_library(str(tmp_path / "l.tar"))
    loaded = tvm.runtime.load_module(str(tmp_path / "l.tar"))
    for code in (lib, loaded):
        model = graph_executor.create((tmp_path / "g.json").read_text(), code, tvm.cpu())
        model.set_input(**params)
        model.load_params(bytearray((tmp_path / "p.params").read_bytes()))
        check(model)


def test_options_of_a_build():
    executor = relay.backend.Executor("graph", {"link-params": True})
    check(graph_executor.GraphModule(built(executor=executor, runtime=relay.backend.Runtime("cpp"))["default"](tvm.cpu())))
    positional = relay.build(layer(), "llvm", None, PARAMS)
    check(graph_executor.GraphModule(positional["default"](tvm.cpu())))


def test_a_function_is_built():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lib = relay.build(program("x[2]", EXP), "llvm")
    model = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    model.run(x=np.zeros(2, "float32"))
    assert model.get_output(0).numpy().tolist() == [1, 1]
    with pytest.raises((ValueError, TypeError, tvm.TVMError)):
        relay.build(3, "llvm")


def test_optimize_and_the_build_module():
    for optimized, params in (relay.optimize(layer(), target="llvm", params=PARAMS),
                              relay.build_module.BuildModule().optimize(layer(), target="llvm", params=PARAMS)):  # fmt: skip
        assert isinstance(params, dict) and [p.name_hint for p in optimized["main"].params] == ["x"]
    build = relay.build_module.BuildModule()
    graph, lib, params = build.build(layer(), "llvm", params=PARAMS)[:3]
    assert build.get_graph_json() == graph and build.get_module().same_as(lib) and list(build.get_params()) == list(params)


def test_parameters_are_bound():
    bound = relay.build_module.bind_params_by_name(layer()["main"], PARAMS)
    assert [p.name_hint for p in bound.params] == ["x"]
    assert len(relay.build_module.bind_params_by_name(layer()["main"], {"other": np.ones(2)}).params) == 3
    saved = relay.save_param_dict({"x": tvm.nd.array(np.arange(4, dtype="float32")), "y": tvm.nd.array(np.ones((2, 2), "int8"))})
    assert isinstance(saved, (bytes, bytearray))
    for load in (relay.load_param_dict, tvm.runtime.load_param_dict, relay.param_dict.load_param_dict):
        found = load(bytearray(saved))
        assert set(found) == {"x", "y"} and str(found["y"].dtype) == "int8" and found["x"].numpy().tolist() == [0, 1, 2, 3]
    assert tvm.runtime.save_param_dict({}) == relay.param_dict.save_param_dict({})


# ---- The graph executor


def test_inputs_and_outputs():
    model = graph_executor.GraphModule(built()["default"](tvm.cpu(0)))
    assert (model.get_num_outputs(), model.get_input_index("x"), model.get_input_index("nope")) == (1, 0, -1) and model.get_num_inputs() >= 1
    model.set_input("x", ONES)
    check(model, x=ONES)
    assert (model.get_input("x").numpy() == 1).all() and (model.get_input(0).numpy() == 1).all()
    out = tvm.nd.empty((2, 3))
    model.get_output(0, out=out)
    assert (out.numpy() == 4).all()
    shapes, dtypes = model.get_input_info()
    assert tuple(shapes["x"]) == (2, 4) and dtypes["x"] == "float32"
    model.set_input(x=ONES)
    model.run(x=ZEROS)
    assert (model.get_output(0).numpy() == 0).all()
    model.set_input_zero_copy("x", tvm.nd.array(ONES))
    model.run()
    assert (model.get_output(0).numpy() == 4).all()


def test_functions_of_the_module():
    made = built()["default"](tvm.cpu())
    made["set_input"]("x", tvm.nd.array(ONES))
    made["run"]()
    assert made["get_output"](0).shape == (2, 3) and made["get_num_outputs"]() == 1 and made["get_num_inputs"]() >= 1


def test_shared_parameters():
    lib = built()
    one, other = (graph_executor.GraphModule(lib["default"](tvm.cpu())) for _ in range(2))
    other.share_params(one, relay.save_param_dict({"w": tvm.nd.array(PARAMS["w"])}))
    check(other)


def test_times():
    model = graph_executor.GraphModule(built()["default"](tvm.cpu()))
    result = model.module.time_evaluator("run", tvm.cpu(), number=1, repeat=3, min_repeat_ms=1)()
    assert len(result.results) == 3 and result.min <= result.median <= result.max and result.min <= result.mean <= result.max and result.std >= 0
    for more in ({}, {"end_to_end": True, "x": ONES}):
        assert model.benchmark(tvm.cpu(), repeat=1, number=1, **more).mean > 0


RESULTS = {
    "several": ("x[4,2]", "%0 = split(%x, indices_or_sections=2); (%0.0, %0.1, %x)", [(2, 2), (2, 2), (4, 2)]),
    "a view": ("x[4,2]", "reshape(exp(%x), newshape=[8])", [(8,)]),
    "a constant": ("x[4,2]", "(2f, %x)", [(), (4, 2)]),
}


@pytest.mark.parametrize("params, body, shapes", RESULTS.values(), ids=RESULTS)
def test_results(params, body, shapes):
    model, data = graph_executor.GraphModule(relay.build(module(body, params), "llvm")["default"](tvm.cpu())), np.arange(8, dtype="float32").reshape(4, 2)
    model.run(x=data)
    want = evaluated(module(body, params), data)
    for i, (shape, value) in enumerate(zip(shapes, want if isinstance(want, list) else [want], strict=True)):
        assert model.get_output(i).shape == shape
        np.testing.assert_allclose(model.get_output(i).numpy(), value, rtol=1e-6)
    assert model.get_num_outputs() == len(shapes)


def test_a_program_without_inputs():
    model = graph_executor.GraphModule(
        relay.build(tvm.IRModule.from_expr(relay.Function([], relay.const(np.ones(2, "float32")))), "llvm")["default"](tvm.cpu())
    )
    model.run()
    assert (model.get_output(0).numpy() == 1).all()


# ---- The debugger and reports


def test_the_debugger(tmp_path):
    with tvm.transform.PassContext(opt_level=0):
        lib = built()
    model = debug_executor.create(lib.get_graph_json(), lib.get_lib(), tvm.cpu(), dump_root=str(tmp_path))
    model.set_input(**lib.get_params())
    check(model)
    files = [f for _, _, names in os.walk(tmp_path) for f in names]
    assert "output_tensors.params" in files and any(f.endswith(".json") for f in files)
    assert len(model.run_individual(1, 1)) >= 1
    assert model.debug_datum.get_graph_nodes() and model.debug_datum.get_graph_node_shapes() is not None
    model.exit()


def test_a_profile():
    lib = built()
    for model in (debug_executor.create(lib.get_graph_json(), lib.lib, tvm.cpu()),
                  debug_executor.GraphModuleDebug(lib["debug_create"]("default", tvm.cpu()), [tvm.cpu()], lib.get_graph_json(), None)):  # fmt: skip
        report = model.profile(x=ONES)
        assert isinstance(report, tvm.runtime.profiling.Report) and "Name" in str(report) and "Total" in str(report)
        assert report.csv() and json.loads(report.json()) and report.device_metrics is not None and len(report.calls) >= 1
    mod, params = relay.testing.mlp.get_workload(1)
    lib = relay.build(mod, "llvm", params=params)
    model = debug_executor.create(lib.get_graph_json(), lib.get_lib(), tvm.cpu())
    model.set_input("data", np.ones((1, 1, 28, 28), "float32"))
    assert len(model.profile().calls) >= 3


def test_values_of_a_report():
    profiling = tvm.runtime.profiling
    report = profiling.Report([{"Name": "k", "Duration (us)": 2.5, "Count": 3, "Percent": 100.0}], {"cpu": {"Duration (us)": 2.5, "Count": 3}})
    (call,) = report.calls
    assert call["Duration (us)"].microseconds == 2.5 and call["Count"].value == 3 and call["Percent"].percent == 100
    assert profiling.Report.from_json(report.json()).device_metrics["cpu"]["Duration (us)"].microseconds == 2.5
    assert "Total on cpu" in str(report) and "2.5" in report.csv()


# ---- The virtual machine


def test_functions_of_a_machine():
    mod = parsed("def @f1(%x: T[3]) { %x + %x } def @f2(%x: T[3]) { %x * %x }")
    machine = VirtualMachine(relay.vm.compile(mod, "llvm"), tvm.cpu())
    given = np.array([1, 2, 3], "float32")
    assert machine.invoke("f1", given).numpy().tolist() == [2, 4, 6] and machine.invoke("f2", given).numpy().tolist() == [1, 4, 9]
    assert "main" not in mod
    nested = parsed("def @f(%x: int32) -> int32 { add(%x, 1) } def @main(%x: int32) -> int32 { @f(@f(%x)) }")
    machine = VirtualMachine(relay.vm.compile(nested, "llvm"), tvm.cpu())
    assert machine.invoke("main", np.int32(1)).numpy() == 3 and machine.invoke("f", np.int32(1)).numpy() == 2


def test_a_machine_of_open_shapes():
    exe = relay.vm.compile(module("nn.softmax(exp(%x))", "x[?,3]"), "llvm")
    assert "main" in exe.bytecode and "main" in list(exe.globals) and exe.get_function_params("main") == ["x"]
    assert exe.primitive_ops and f"Primitive ops (#{len(exe.primitive_ops)})" in exe.stats
    machine = VirtualMachine(exe, tvm.cpu())
    machine.set_input("main", np.zeros((3, 3), "float32"))
    assert machine.run().shape == (3, 3) and machine.module["invoke"] is not None
    for rows in (1, 4):
        data = np.zeros((rows, 3), "float32")
        assert machine.invoke("main", x=data).shape == machine.run(data).shape == (rows, 3)
    machine.invoke_stateful("main")
    assert "mean" in str(machine.benchmark(tvm.cpu(), np.zeros((3, 3), "float32"), repeat=1, number=1)).lower()


SAVED = {
    "one kernel": (module(), [np.zeros(2, "float32")], [1, 1]),
    "a branch": (parsed("def @main(%c: bool) { if (%c) { 1 } else { 2 } }"), [True], 1),
    "a list": (parsed("type List[A] { Cons(A, List[A]), Nil } def @main() -> List[int32] { Cons(1, Nil) }"), [], None),
}


@pytest.mark.parametrize("mod, args, want", SAVED.values(), ids=SAVED)
def test_a_machine_is_saved(tmp_path, mod, args, want):
    code, lib = relay.vm.compile(mod, "llvm").save()
    assert isinstance(code, bytearray)
    lib.export_library(str(tmp_path / "l.so"))
    exe = Executable.load_exec(code, tvm.runtime.load_module(str(tmp_path / "l.so")))
    result = VirtualMachine(exe, tvm.cpu()).run(*args)
    assert "main" in list(exe.globals)
    assert result.numpy().tolist() == want if want else (len(result), result[0].numpy()) == (2, 1)


@pytest.mark.parametrize("memory", ["naive", "pooled"])
def test_memory_of_a_machine(memory):
    compiler = relay.vm.VMCompiler()
    compiler.set_params({"w": np.ones(2, "float32")})
    compiler.lower(module("add(%x, %w)", "x[2] w[2]"), "llvm")
    compiler.codegen()
    assert VirtualMachine(compiler.get_exec(), tvm.cpu(), memory).invoke("main", np.zeros(2, "float32")).numpy().tolist() == [1, 1]
    optimized, params = relay.vm.VMCompiler().optimize(module("add(%x, %w)", "x[2] w[2]"), target="llvm", params={"w": tvm.nd.array(np.ones(2, "float32"))})
    assert [p.name_hint for p in optimized["main"].params] == ["x"]


def test_a_machine_that_profiles():
    report = profiler_vm.VirtualMachineProfiler(relay.vm.compile(module(), "llvm"), tvm.cpu()).profile(np.zeros(2, "float32"), func_name="main")
    assert profiler_vm.enabled() and "Duration" in str(report) and "Total" in str(report) and report.csv() and json.loads(report.json()) and report.table()


# ---- create_executor


@pytest.mark.parametrize("kind", ["graph", "vm", "debug", "aot"])
def test_executors_of_a_layer(kind):
    run = relay.create_executor(kind, mod=layer(), device=tvm.cpu(), target="llvm", params=PARAMS).evaluate()
    assert (run(ONES).numpy() == 4).all()
    assert (evaluated(layer(), ONES, kind=kind, **PARAMS) == 4).all()


@pytest.mark.parametrize("kind", ["debug", "graph", "vm"])
def test_a_tuple_as_an_argument(kind):
    pair = relay.var("pair", relay.TupleType([relay.TensorType((2,))] * 2))
    func = relay.Function([pair], relay.Tuple([relay.TupleGetItem(pair, 1), relay.TupleGetItem(pair, 0) + relay.TupleGetItem(pair, 1)]))
    assert [v.tolist() for v in evaluated(func, (np.ones(2, "float32"), np.array([3, 4], "float32")), kind=kind)] == [[3, 4], [4, 5]]


@pytest.mark.parametrize("kind", ["debug", "graph", "vm"])
@pytest.mark.parametrize("dtype", ["bool", "int8", "int32", "int64", "uint8"])
def test_an_integer_is_a_condition(kind, dtype):
    run = relay.create_executor(kind, mod=module("if (%c) { exp(%x) } else { negative(%x) }", f"c[]:{dtype} x[3]"), target="llvm").evaluate()
    data = np.array([1, 2, 3], "float32")
    for value in (0, 1) if dtype == "bool" else (0, 1, 64) if dtype == "uint8" else (0, 1, -2, 64):
        np.testing.assert_allclose(run(np.array(value, dtype), data).numpy(), np.exp(data) if value else -data, rtol=1e-6)


@pytest.mark.parametrize("error", [TypeError, ValueError])
@pytest.mark.parametrize("kind", ["debug", "vm"])
def test_too_many_arguments(kind, error):
    run = relay.create_executor(kind, mod=module("%x")).evaluate()
    with pytest.raises((error, tvm.TVMError) if kind == "vm" else error, match="2" if kind == "vm" else "takes 1 arguments, got 2"):
        run(np.zeros(2, "float32"), np.zeros(2, "float32"))


def test_a_global_function_is_evaluated():
    mod = parsed("def @f(%x: int32) { add(%x, 1) } def @main() { 0 }")
    assert relay.create_executor("debug", mod=mod).evaluate(mod.get_global_var("f"))(np.int32(4)).numpy() == 5
    with pytest.raises((tvm.TVMError, ValueError, TypeError)):
        relay.create_executor("debug").evaluate(relay.Function([var(2)], relay.var("q")))(np.zeros(2, "float32"))


# ---- What is made step by step


def _model():
    x, y = relay.var("x", shape=(2, 3)), relay.var("y", shape=(1, 3))
    return tvm.IRModule.from_expr(relay.Function([x, y], relay.add(x, y)))


def test_what_build_gives_unpacks():
    graph, lib, params = relay.build(_model(), target="llvm", params={"y": np.ones((1, 3), "float32")})
    read = json.loads(graph)
    assert [n["name"] for n in read["nodes"]] == ["x", "p0", "tvmgen_default_fused_add"] and read["attrs"]["shape"] == ["list_shape", [[2, 3], [1, 3], [2, 3]]]
    run = graph_executor.create(graph, lib, tvm.cpu())
    run.set_input(**params)
    run.set_input("x", np.ones((2, 3), "float32"))
    run.run()
    assert (run.get_output(0).numpy() == 2).all()
    assert lib.get_lib().same_as(lib) and list(lib.get_params()) == ["p0"] and json.loads(lib.get_graph_json()) == read


def test_build_module_step_by_step():
    build = relay.build_module.BuildModule()
    build.set_params({"y": tvm.nd.array(np.ones((1, 3), "float32"))})
    optimized, params = build.optimize(_model(), target="llvm")
    assert isinstance(optimized, tvm.IRModule) and dict(params) == {}
    graph, lib, params = build.build(_model(), target="llvm")
    assert json.loads(build.get_json()) == json.loads(graph) and build.get_module().same_as(lib) and list(build.get_params()) == list(params) == ["p0"]
    with pytest.raises(ValueError, match="nothing was compiled"):
        relay.build_module.BuildModule().get_module()


@pytest.mark.parametrize("shape", [(2, 3), (relay.Any(), 3)], ids=["fixed", "open"])
def test_an_executable_is_saved_and_loaded(shape):
    x = relay.var("x", shape=shape)
    compiler = relay.vm.VMCompiler()
    compiler.lower(tvm.IRModule.from_expr(relay.Function([x], relay.exp(x))), target="llvm")
    compiler.codegen()
    exe = compiler.get_exec()
    code, lib = exe.save()
    assert exe.globals == ["main"] and "main" in exe.stats and str(exe.bytecode)
    given = np.ones((2, 3), "float32")
    for loaded in (tvm.runtime.vm.Executable.load_exec(code, lib), tvm.runtime.vm.Executable.load_exec(bytes(code))):
        machine = tvm.runtime.vm.VirtualMachine(loaded, tvm.cpu())
        machine.set_input("main", given)
        tvm.testing.assert_allclose(machine.invoke("main").numpy(), np.exp(given), rtol=1e-5)


def test_a_virtual_machine_that_profiles():
    from baton.runtime import profiler_vm

    assert profiler_vm.enabled()
    for shape in ((2, 3), (relay.Any(), 3)):
        x = relay.var("x", shape=shape)
        exe = relay.vm.compile(tvm.IRModule.from_expr(relay.Function([x], relay.exp(x))), "llvm")
        report = profiler_vm.VirtualMachineProfiler(exe, tvm.cpu()).profile(np.ones((2, 3), "float32"), func_name="main")
        assert "Duration (us)" in str(report) and "Total on cpu(0)" in str(report) and report.csv().startswith("Count,")
        again = tvm.runtime.profiling.Report.from_json(report.json())
        assert again.calls == report.calls and str(again) == str(report)


# ---- Other processes


def test_a_model_on_a_remote_device(tmp_path):
    built().export_library(str(tmp_path / "n.tar"))
    session = rpc.LocalSession()
    session.upload(str(tmp_path / "n.tar"))
    check(graph_executor.GraphModule(session.load_module("n.tar")["default"](session.cpu())))


def test_a_function_of_a_server():
    tvm.register_func("house.rpc.addone", lambda x: x + 1, override=True)
    server = rpc.Server(key="x1")
    assert rpc.connect("127.0.0.1", server.port, key="x1").get_function("house.rpc.addone")(10) == 11
    server.terminate()

# SPDX-License-Identifier: Apache-2.0
"""Programs as users of Relay write them after `import baton as tvm`: what they read off nodes, modules, operators, what they build and
run. One test for each thing that is relied on."""

import json
import pickle

import numpy as np
import pytest

import baton as tvm
from baton import relay, te
from baton.contrib import graph_executor, utils


def infer(expr):
    return relay.testing.run_infer_type(expr)


# ---- Values and containers


def test_a_tuple_of_results_passes_for_an_adt():
    adt = tvm.runtime.container.ADT(43, [tvm.nd.array([1]), [2, 3]])
    assert (adt.tag, len(adt), adt[-1].numpy().tolist()) == (43, 2, [2, 3])
    both = tvm.runtime.container.tuple_object([adt, tvm.nd.array([1])])
    assert isinstance(both, tvm.runtime.container.ADT) and both.tag == 0 and isinstance(both[0], tvm.runtime.container.ADT)
    assert not isinstance(tvm.nd.array([1]), tvm.runtime.container.ADT)
    result = relay.create_executor("vm").evaluate(relay.Function([], relay.Tuple([relay.const(1), relay.const(2)])))()
    assert isinstance(result, tvm.runtime.container.ADT) and [int(x.numpy()) for x in result] == [1, 2]


def test_dlpack_both_ways():
    x = tvm.nd.array(np.arange(3))
    assert tvm.nd.from_dlpack(x.to_dlpack()).numpy().tolist() == [0, 1, 2]


@pytest.mark.parametrize(("name", "number"), [("vpi", 9), ("ext_dev", 12), ("webgpu", 15), ("hexagon", 16), ("mtl", 8)])
def test_devices_by_name(name, number):
    assert getattr(tvm, name)(1).device_type == number and getattr(tvm.nd, name)().device_id == 0
    assert getattr(tvm.runtime, name)().device_type == number


def test_a_dtype_that_is_not_given():
    """Layout functions ask whether `out_dtype` is one of ("same", "")."""
    x, w = relay.var("x", shape=(1, 3, 8, 8)), relay.var("w", shape=(4, 3, 3, 3))
    attrs = relay.nn.conv2d(x, w).attrs
    assert attrs.out_dtype in ("same", "") and attrs.out_dtype == "void" and not attrs.out_dtype and attrs.out_dtype != "float32"
    assert relay.nn.conv2d(x, w, out_dtype="int32").attrs.out_dtype not in ("same", "")
    assert tvm.DataType("float32") and hash(tvm.DataType("int8")) == hash("int8") and pickle.loads(pickle.dumps(attrs.out_dtype)) == ""


# ---- Nodes and attributes


def test_source_names_are_equal_by_name():
    span = relay.Span(relay.SourceName("model"), 1, 1, 2, 3)
    back = tvm.ir.load_json(tvm.ir.save_json(span))
    assert back.source_name == span.source_name and (back.line, back.column, back.end_column) == (1, 2, 3)
    assert relay.SourceName("other") != span.source_name and len({back.source_name, span.source_name}) == 1


@pytest.mark.parametrize(
    ("make", "given", "want"),
    [
        (relay.nn.conv1d, 1, [1, 1]),
        (relay.nn.conv1d, (1, 2), [1, 2]),
        *[(relay.nn.conv2d, p, [1, 1, 1, 1]) for p in (1, (1,), (1, 1), [1, 1, 1, 1])],
        (relay.nn.conv2d, (1, 2), [1, 2, 1, 2]),
        (relay.nn.conv2d, (1, 2, 3, 4), [1, 2, 3, 4]),
        (relay.nn.conv2d, None, [0, 0, 0, 0]),
        (relay.nn.conv3d, (1, 2, 3), [1, 2, 3, 1, 2, 3]),
        (relay.nn.conv2d_transpose, 2, [2, 2, 2, 2]),
    ],
)
def test_padding_of_both_ends(make, given, want):
    attrs = make(relay.var("x"), relay.var("w"), **({} if given is None else {"padding": given})).attrs
    assert [int(x) for x in attrs.padding] == want and attrs.get_int_tuple("padding") == tuple(want)


def test_padding_of_pools():
    assert list(relay.nn.max_pool2d(relay.var("x"), 2, padding=1).attrs.padding) == [1, 1, 1, 1]
    assert list(relay.nn.avg_pool1d(relay.var("x"), 2).attrs.padding) == [0, 0]
    assert list(relay.nn.max_pool3d(relay.var("x"), 2, padding=(0, 1, 2)).attrs.padding) == [0, 1, 2, 0, 1, 2]


def test_attributes_for_tests():
    @tvm.register_func("users.add_one", override=True)
    def add_one(x):
        return x + 1

    func = tvm.ir.load_json(tvm.ir.save_json(tvm.ir.EnvFunc.get("users.add_one")))
    attrs = tvm.ir.load_json(tvm.ir.save_json(tvm.ir.make_node("attrs.TestAttrs", name="xx", padding=(3, 4), func=func)))
    assert attrs.name == "xx" and attrs.axis == 10 and [p.value for p in attrs.padding] == [3, 4] and attrs.func(10) == 11
    with pytest.raises(tvm.TVMError, match="name"):
        tvm.ir.make_node("attrs.TestAttrs")
    with pytest.raises(tvm.TVMError, match="axis"):
        tvm.ir.make_node("attrs.TestAttrs", name="xx", axis=100)
    with pytest.raises(tvm.TVMError, match="stride"):
        tvm.ir.make_node("attrs.TestAttrs", name="xx", stride=1)


def test_make_node_of_a_tensor():
    a = te.placeholder((10,), name="A")
    again = tvm.ir.make_node("Tensor", shape=a.shape, dtype=a.dtype, op=a.op, value_index=a.value_index)
    assert again == a and again.op.same_as(a.op)


def test_names_of_operators_in_modules_by_family():
    from baton.relay.op.nn import nn
    from baton.relay.op.reduce import sum as total
    from baton.relay.op.tensor import add
    from baton.relay.op.transform import take

    assert relay.op.const is relay.const and take is relay.take and add is relay.add and total is relay.sum
    assert nn.conv2d is relay.nn.conv2d and relay.op._make.concatenate is relay.concatenate
    with pytest.raises(AttributeError, match="no operator `no_such_thing`"):
        _ = relay.op.transform.no_such_thing


# ---- Modules and text


def test_data_types_of_a_module():
    mod = tvm.IRModule()
    mod.import_from_std("prelude.rly")
    data, cons, nil = mod.get_type("List")
    assert data in mod.get_global_type_vars() and mod.get_constructor(cons.tag) in (cons, *[c for t in mod.type_definitions.values() for c in t.constructors])
    with pytest.raises(ValueError, match="tag 12345"):
        mod.get_constructor(12345)


def test_gradient_cells():
    mod = tvm.IRModule()
    mod.import_from_std("gradient.rly")
    cell, raw, one, zero = mod.get_type("GradCell")
    assert [c.name_hint for c in (raw, one, zero)] == ["Raw", "One", "Zero"]
    f32 = relay.TensorType((2,), "float32")
    zeros = zero(relay.Function([], relay.zeros((2,), "float32"), f32))
    x = relay.var("x", f32)
    multiply = relay.Function([a := relay.var("a", f32), b := relay.var("b", f32)], a * b)
    times, plus, value = (mod.get_global_var(n) for n in ("MultiplyGradCells", "AddGradCells", "FromGradCell"))
    mod["main"] = relay.Function([x], value(plus(multiply, times(multiply, raw(x), zeros), raw(x))))
    found = relay.create_executor("debug", mod=mod).evaluate()(np.array([3, 4], "float32"))
    assert found.numpy().tolist() == [9.0, 16.0] or found.numpy().tolist() == [3.0, 4.0]
    assert cell.name_hint == "GradCell"


def test_parse_with_a_table_and_a_module():
    table = {"relay.Constant": [relay.const(2.0), relay.const(3)]}
    mod = tvm.parser.parse('#[version = "0.0.5"]\ndef @main() { meta[relay.Constant][1] }', "x", None, table)
    assert mod["main"].body.data.numpy() == 3
    base = tvm.IRModule({"f": relay.Function([], relay.const(1))})
    both = tvm.parser.parse('#[version = "0.0.5"]\ndef @main() { @f() }', "x", init_module=base)
    assert {v.name_hint for v in both.get_global_vars()} == {"f", "main"} and "main" not in base
    assert relay.create_executor("debug", mod=both).evaluate()().numpy() == 1
    with pytest.raises(ValueError, match="metadata of its own"):
        tvm.parser.parse(tvm.IRModule.from_expr(relay.const(np.zeros((9, 9)))).astext(), "x", None, table)


# ---- Operators of programs


def test_an_operator_of_a_program():
    op = relay.op.op.register("users.twice", "x + x")
    assert op == relay.op.get("users.twice") and op.description == "x + x"
    op.set_num_inputs(1)
    op.add_argument("x", "Tensor", "What is doubled.")
    op.set_support_level(3)
    op.add_type_rel("Identity")
    relay.op.op.register_pattern("users.twice", relay.op.OpPattern.ELEMWISE)
    x = relay.var("x", shape=(2,))
    assert infer(relay.Call(op, [x])).checked_type == x.type_annotation and infer(op(x)).checked_type == x.type_annotation
    assert (op.num_inputs, op.support_level, op.arguments[0].name) == (1, 3, "x") and op.get_attr("TOpPattern") == 0
    with pytest.raises(tvm.TVMError, match="takes 1 argument"):
        infer(op(x, x))
    with pytest.raises(ValueError, match="already"):
        relay.op.op.register("users.twice")
    with pytest.raises(ValueError, match="built in"):
        relay.op.get("add").set_num_inputs(3)
    # A pass makes something of it that runs.
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(op(x)))
    with relay.testing.TempOpAttr("users.twice", "FTVMLegalize", lambda attrs, inputs, types: inputs[0] + inputs[0]):
        mod = relay.transform.Legalize()(mod)
    assert relay.create_executor("graph", mod=mod).evaluate()(np.ones(2, "float32")).numpy().tolist() == [2, 2]


def test_an_operator_with_a_relation_of_its_own():
    op = relay.op.op.register("users.rows")
    op.add_type_rel("Rows", lambda args, attrs: relay.TensorType([args[0].shape[0]], "int32"))
    assert infer(op(relay.var("x", shape=(4, 5)))).checked_type == relay.TensorType((4,), "int32")
    wrong = relay.op.op.register("users.wrong")
    wrong.add_type_rel("Wrong", lambda args, attrs: 3)
    with pytest.raises(tvm.TVMError):
        infer(wrong(relay.var("x", shape=(4, 5))))
    none = relay.op.op.register("users.none")
    with pytest.raises(tvm.TVMError, match="without a type relation"):
        infer(none(relay.var("x", shape=(4, 5))))
    with pytest.raises(ValueError, match="there are Identity, Broadcast"):
        none.add_type_rel("Identities")


# ---- Building and running


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


# ---- Targets


@pytest.mark.parametrize(
    "text",
    [
        "cuda",
        "cuda -arch=sm_70 -max_num_threads=1024",
        "rocm",
        "vulkan",
        "metal",
        "nvptx",
        "hexagon",
        "webgpu",
        "llvm -keys=arm_cpu -device=arm_cpu -mtriple=aarch64-linux-gnu -mattr=+neon",
        "llvm -libs=cblas",
        "c",
        "opencl",
    ],
)
def test_targets_that_programs_name(text):
    target = tvm.target.Target(text)
    assert tvm.target.Target(str(target)) == target and str(target).split()[0] == text.split()[0]
    assert tvm.target.Target(target.export()) == target
    with target:
        assert tvm.target.Target.current() == target


def test_what_a_target_says():
    target = tvm.target.Target("cuda -arch=sm_70")
    assert list(target.keys) == ["cuda", "gpu"] and target.attrs["arch"] == "sm_70" and target.device_type == 2
    assert list(tvm.target.Target("llvm -keys=arm_cpu,cpu").keys) == ["arm_cpu", "cpu"] and list(tvm.target.Target("llvm").keys) == ["cpu"]
    assert tvm.target.Target('{"kind": "llvm", "mcpu": "skylake"}').mcpu == "skylake"
    with pytest.raises(tvm.error.UnsupportedError, match="no code is made for the target `vulkan`"):
        relay.build(_model(), target="vulkan")
    with pytest.raises(ValueError, match="unknown target kind"):
        tvm.target.Target("lvm")


# ---- Folders, names


def test_temporary_folders():
    folder = utils.tempdir()
    path = folder.temp_dir
    assert path in utils.TempDirectory.TEMPDIRS and folder.relpath("a").startswith(path)
    folder.remove()
    assert path not in utils.TempDirectory.TEMPDIRS
    with utils.TempDirectory.set_keep_for_debug():
        kept = utils.tempdir()
        gone = utils.TempDirectory(keep_for_debug=False)
    kept.remove(), gone.remove()
    assert kept.temp_dir in utils.TempDirectory.TEMPDIRS and gone.temp_dir not in utils.TempDirectory.TEMPDIRS
    utils.TempDirectory.remove_tempdirs()
    assert not utils.TempDirectory.TEMPDIRS and tvm.contrib.utils is utils


def test_names_in_the_styles_of_c():
    from baton.relay.backend import name_transforms as names
    from baton.relay.backend.utils import mangle_module_name

    assert names.to_c_function_style("TVM_woof_Moo") == "TVMWoofMoo" and names.to_c_variable_style("TVMGen_Woof_woof") == "tvmgen_woof_woof"
    assert names.to_c_constant_style("TVM_Woof") == "TVM_WOOF" and names.prefix_name(["Woof", "Moo"]) == "TVM_Woof_Moo"
    assert names.prefix_generated_name("Woof") == "TVMGen_Woof" and names.sanitize_name("input+1:2") == "input_1_2"
    assert mangle_module_name("default") == "tvmgen_default" and mangle_module_name(None) == "tvmgen"
    for wrong in (
        lambda: names.to_c_function_style("woof"),
        lambda: names.to_c_variable_style(""),
        lambda: names.prefix_name([]),
        lambda: names.prefix_name(["a", ""]),
        lambda: names.sanitize_name(""),
        lambda: mangle_module_name("a-b"),
    ):
        with pytest.raises(ValueError):
            wrong()


@pytest.mark.parametrize("make", ["mobilenet", "resnet"])
def test_networks_in_both_layouts(make):
    network = getattr(relay.testing, make)
    shape = (32, 32, 3) if make == "resnet" else (3, 32, 32)  # mobilenet turns it itself
    mod, params = network.get_workload(batch_size=2, num_classes=7, image_shape=shape, layout="NHWC")
    assert mod["main"].params[0].type_annotation == relay.TensorType((2, 32, 32, 3)) and mod["main"].ret_type == relay.TensorType((2, 7))
    other, _ = network.get_workload(batch_size=2, num_classes=7, image_shape=(3, 32, 32))
    assert other["main"].params[0].type_annotation == relay.TensorType((2, 3, 32, 32)) and "data" not in params
    macs = [relay.analysis.get_total_mac_number(m["main"]) for m in (mod, other)]
    assert macs[0] == macs[1]


def test_attributes_of_functions_are_values():
    """Programs give literals of PrimFuncs, and compare what they read with numbers."""
    x = relay.var("x", shape=(2,))
    func = relay.Function([x], x).with_attr("Primitive", tvm.tir.IntImm("int32", 1)).with_attr({"name": tvm.tir.StringImm("f"), "flag": True})
    assert func.attrs["Primitive"] == func.attrs.Primitive == 1 and func.attrs["name"] == "f" and set(func.attrs.keys()) == {"Primitive", "name", "flag"}
    tvm.ir.assert_structural_equal(func, relay.Function([x], x).with_attr({"Primitive": 1, "name": "f", "flag": True}))
    without = func.without_attr("Primitive")
    assert "Primitive" not in without.attrs and without.attrs["name"] == "f" and without.params == func.params and func.without_attr("none").same_as(func)
    made = relay.Function([x], x, attrs=tvm.ir.make_node("DictAttrs", Primitive=tvm.tir.IntImm("int32", 1)))
    assert made.attrs["Primitive"] == 1 and tvm.IRModule.from_expr(func).with_attr("k", tvm.tir.const(3, "int32")).get_attr("k") == 3


def test_a_class_that_stands_for_an_object():
    class Three(tvm.runtime.ObjectGeneric):
        def asobject(self):
            return relay.const(3)

    assert relay.Tuple([Three()]).fields[0].data.numpy() == 3
    with pytest.raises(NotImplementedError, match="ObjectGeneric"):
        tvm.runtime.ObjectGeneric().asobject()


@pytest.mark.parametrize(("layout", "shape"), [("OIHW", (3, 10, 3, 3)), ("IOHW", (3, 10, 3, 3)), ("HWIO", (3, 3, 10, 3)), ("HWOI", (3, 3, 10, 3))])
def test_layouts_of_transposed_weights(layout, shape):
    """Older programs call the weight (in, out, H, W) of a transposed convolution OIHW."""
    from baton.topi.testing import conv2d_transpose_nhwc_python

    x, w = relay.var("x", shape=(1, 4, 5, 3)), relay.var("w", shape=shape)
    call = relay.nn.conv2d_transpose(x, w, (2, 2), (1, 1), output_padding=(1, 1), channels=10, kernel_size=(3, 3), data_layout="NHWC", kernel_layout=layout)
    rng = np.random.default_rng(0)
    data, weight = rng.standard_normal((1, 4, 5, 3)).astype("float32"), rng.standard_normal(shape).astype("float32")
    found = relay.create_executor("debug").evaluate(relay.Function([x, w], call))(data, weight).numpy()
    want = conv2d_transpose_nhwc_python(data, weight, "IOHW" if layout[-1] == "W" else "HWOI", (2, 2), (1, 1), (1, 1))
    tvm.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-5)

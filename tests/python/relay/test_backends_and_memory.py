# SPDX-License-Identifier: Apache-2.0
"""The compiler of kernels, executors and runtimes by their options, memory and operators of the virtual machine, weights that passes change."""

import numpy as np
import pytest

import baton as tvm
import baton.topi.testing
from baton import relay
from baton.relay.testing import run_infer_type


def run(expr_or_func, *args, kind="graph"):
    func = expr_or_func if isinstance(expr_or_func, relay.Function) else relay.Function(relay.analysis.free_vars(expr_or_func), expr_or_func)
    return relay.create_executor(kind, target="llvm").evaluate(func)(*args)


def test_the_te_compiler():
    engine = relay.backend.te_compiler.get()
    engine.clear()
    x = relay.var("x", shape=(10,))

    def make():
        y = relay.add(x, x)
        return relay.Function([x], relay.add(y, relay.exp(x)))

    first = engine.lower(make(), "llvm")
    assert engine.lower(make(), "llvm") is first and len(engine.items()) == 1
    assert engine.lower(make(), "llvm -mcpu=x86-64") is not first
    assert [t.shape[0] for t in first.inputs] == [10] and first.outputs[0].dtype == "float32" and first.prim_fn_var.name_hint in first.prim_funcs
    code = engine.jit(make(), "llvm")
    a, b = tvm.nd.array(np.arange(10, dtype="float32")), tvm.nd.empty((10,), "float32")
    code(a, b)
    np.testing.assert_allclose(b.numpy(), 2 * a.numpy() + np.exp(a.numpy()), rtol=1e-5)
    assert engine.jit(make(), "llvm") is code
    engine.clear()
    assert not engine.items() and relay.backend.compile_engine.get() is engine


def test_helpers_of_passes():
    from baton.relay.transform import infer_layout_utils, mixed_precision

    out = infer_layout_utils.InferCorrectLayoutOutput(["NCHW", tvm.tir.layout("OIHW")], ["NCHW"], None)
    assert out.input_layouts == ["NCHW", "OIHW"] and out.output_layouts == ["NCHW"] and out.new_attrs is None and list(out) == [["NCHW", "OIHW"], ["NCHW"]]
    call = relay.nn.conv2d(relay.var("x", shape=(1, 1, 3, 3)), relay.var("w", shape=(1, 1, 1, 1)))
    assert mixed_precision.generic_always_op(call, "float16") == [mixed_precision.MIXED_PRECISION_ALWAYS, "float32", "float16"]
    assert mixed_precision.get_generic_out_dtypes(relay.exp(relay.var("x")), "float16") == ["float16", "float16"]
    x = relay.var("x", shape=(1, 8))
    three = [relay.nn.dense(x, relay.var(f"w{i}", shape=(4, 8))) for i in range(3)]
    with tvm.transform.PassContext(opt_level=4):
        mod = relay.transform.BatchingOps()(relay.transform.InferType()(tvm.IRModule.from_expr(relay.Tuple(three))))
    assert "nn.batch_matmul" in relay.analysis.list_op_freqs(mod)


def test_transposed_weights():
    x, w = relay.var("x", shape=(2, 3)), relay.var("w", shape=(3, 4))
    func = relay.Function([x, w], relay.nn.dense(x, relay.transpose(w, [1, 0])))
    rng = np.random.default_rng(0)
    data, weight = rng.standard_normal((2, 3)).astype("float32"), rng.standard_normal((3, 4)).astype("float32")
    made, params = relay.data_dep_optimization.simplify_fc_transpose.convert(func, {"w": tvm.nd.array(weight)})
    assert set(params) == {"w.T"} and [p.name_hint for p in made.params] == ["x", "w.T"] and "transpose" not in relay.analysis.list_op_freqs(made)
    np.testing.assert_allclose(run(made, data, params["w.T"]).numpy(), data @ weight, rtol=1e-5)


@pytest.mark.parametrize("blocks", [(1, 1), (2, 3)], ids=str)
def test_sparse_weights(blocks):
    x, w = relay.var("x", shape=(5, 6)), relay.var("w", shape=(4, 6))
    func = relay.Function([x, w], relay.nn.relu(relay.nn.dense(x, w)))
    rng = np.random.default_rng(0)
    weight, data = np.zeros((4, 6), "float32"), rng.standard_normal((5, 6)).astype("float32")
    weight[0:2, 3:6] = rng.standard_normal((2, 3))
    made, params = relay.data_dep_optimization.bsr_dense.convert(func, {"w": tvm.nd.array(weight)}, blocks, 0.5)
    assert set(params) == {"w.data", "w.indices", "w.indptr"} and params["w.data"].shape[1:] == (blocks if blocks != (1, 1) else ())
    got = run(made, *[data if p.name_hint == "x" else params[p.name_hint] for p in made.params]).numpy()
    np.testing.assert_allclose(got, np.maximum(data @ weight.T, 0), rtol=1e-5, atol=1e-6)
    same, kept = relay.data_dep_optimization.bsr_dense.convert(func, {"w": tvm.nd.array(weight)}, blocks, 0.9)
    assert set(kept) == {"w"} and "nn.dense" in relay.analysis.list_op_freqs(same)


@pytest.mark.parametrize(
    ("cls", "name", "option", "options"),
    [
        (
            "Executor",
            "aot",
            "unpacked-api",
            {
                "unpacked-api": "Bool",
                "link-params": "Bool",
                "interface-api": "String",
                "workspace-byte-alignment": "IntImm",
                "constant-byte-alignment": "IntImm",
            },
        ),
        ("Executor", "graph", "link-params", {"link-params": "Bool"}),
        ("Runtime", "cpp", "system-lib", {"system-lib": "Bool"}),
        ("Runtime", "crt", "system-lib", {"system-lib": "Bool"}),
        ("Runtime", "c", "system-lib", {"system-lib": "Bool"}),
    ],
)
def test_executors_and_runtimes(cls, name, option, options):
    make = getattr(relay.backend, cls)
    one = make(name, {option: True})
    assert one.name == name and option in one and "woof" not in one and one[option] and dict(one.attrs) == {option: True}
    assert one == make(name, {option: 1}) != make(name) and hash(one) == hash(make(name, {option: True})) and name in repr(one)
    assert name in make.list_registered() and make.list_registered_options(name) == options == make.list_registered_options(one)
    for other, kind in options.items():
        if other != option:
            assert one[other] is (False if kind == "Bool" else None)
    with pytest.raises(tvm.error.TVMError, match='"woof" is not available'):
        one["woof"]
    for call, message in (
        (lambda: make("woof"), f'{cls} "woof" is not defined'),
        (lambda: make.list_registered_options("woof"), "woof"),
        (lambda: make(name, {"woof": 1}), f'Attribute "woof" is not available on this {cls}'),
        (lambda: make(name, {option: "text"}), f'Attribute "{option}" should have type "IntImm" but instead found "runtime.String"'),
    ):
        for kind in (tvm.TVMError, ValueError):
            with pytest.raises(kind, match=message):
                call()


def test_building_with_an_executor_and_a_runtime():
    mod = tvm.IRModule.from_expr(relay.exp(relay.var("x", shape=(2,))))
    lib = relay.build(mod, "llvm", executor=relay.backend.Executor("graph", {"link-params": True}), runtime=relay.backend.Runtime("cpp", {"system-lib": True}))
    run = tvm.contrib.graph_executor.GraphModule(lib["default"](tvm.cpu()))
    run.run(x=np.zeros(2, "float32"))
    assert run.get_output(0).numpy().tolist() == [1, 1]


def test_helpers_of_importers():
    from baton.relay.frontend.common import AttrCvt, ExprTable, Renamer, StrAttrsDict, get_relay_op, infer_value

    x = relay.var("x", shape=(2, 3))
    assert get_relay_op("relu") is relay.nn.relu and get_relay_op("exp") is relay.exp
    with pytest.raises(tvm.error.OpNotImplemented):
        get_relay_op("no_such")
    assert Renamer("relu")([x], {}).op.name == "nn.relu"
    leaky = AttrCvt("leaky_relu", transforms={"slope": ("alpha", 0.01)}, ignores=["verbose"], excludes=["bad"])
    assert leaky([x], {"slope": 0.5, "verbose": 1}).attrs.alpha == 0.5 and leaky([x], {}).attrs.alpha == 0.01
    with pytest.raises(NotImplementedError, match="bad"):
        leaky([x], {"bad": 1})
    attrs = StrAttrsDict({"a": "1", "b": "(2, 3)", "c": "True", "d": "1.5"})
    assert (attrs.get_int("a"), attrs.get_int_tuple("b"), attrs.get_bool("c"), attrs.get_float("d"), attrs.get_int("e", 7)) == (1, (2, 3), True, 1.5, 7)
    with pytest.raises(AttributeError, match="`z`"):
        attrs.get_str("z")
    table = ExprTable()
    made = table.new_const(np.ones((2, 3), "float32"))
    table.set_expr("y", x)
    assert table.has_expr("y") and table.get_expr(made.name_hint) is made
    value = infer_value(relay.add(x, made), {"x": np.ones((2, 3), "float32"), **table.params})
    assert (value.numpy() == 2).all()


def f32(*shape, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype("float32")


def evaluate(expr, *values, kind="vm"):
    func = expr if isinstance(expr, relay.Function) else relay.Function(relay.analysis.free_vars(expr), expr)
    return relay.create_executor(kind, device=tvm.cpu(), target="llvm").evaluate(func)(*values)


def test_storage_on_a_device():
    size, alignment = relay.const(40, "int64"), relay.const(64, "int64")
    made = relay.op.memory.alloc_storage(size, alignment, tvm.cpu(0))
    assert made.attrs.device_type == 1 and str(made.attrs.dtype) == "float32"
    assert str(relay.op.memory.alloc_storage(size=size, alignment=alignment, device=tvm.cpu(), dtype_hint="int8").attrs.dtype) == "int8"
    var = relay.var("s")
    tensor = relay.op.memory.alloc_tensor(var, relay.const(0, "int64"), relay.const([10], "int64"), "float32", assert_shape=[10])
    assert run_infer_type(relay.Let(var, made, tensor)).checked_type == relay.TensorType((10,))


def test_tuples_as_lists_of_tensors():
    from baton.relay.op.memory import flatten_tuple_type, from_tuple_type, to_tuple_type

    kind = relay.TupleType([relay.TensorType((1,)), relay.TupleType([relay.TensorType((2,)), relay.TensorType((3,))])])
    assert [int(t.shape[0]) for t in flatten_tuple_type(kind)] == [1, 2, 3]
    var = relay.var("v", kind)
    tensors = from_tuple_type(kind, var)
    assert [int(run_infer_type(t).checked_type.shape[0]) for t in tensors] == [1, 2, 3]
    assert run_infer_type(to_tuple_type(kind, tensors)).checked_type == kind


def test_operators_of_the_virtual_machine():
    x = relay.var("x", shape=(3, 4))
    assert run_infer_type(relay.op.vm.shape_of(expr=x)).checked_type == relay.TensorType((2,), "int64")
    assert evaluate(relay.op.vm.shape_of(x), f32(3, 4)).numpy().tolist() == [3, 4]
    a = relay.var("a", shape=(3,))
    relay.op.vm.shape_func(relay.Function([a], relay.exp(a)), relay.Tuple([x]), relay.Tuple([x]), is_inputs=[False])


def test_on_device_by_newer_names():
    x = relay.var("x", shape=(3,))
    assert relay.annotation.on_device(body=x, device=tvm.cpu()).attrs.is_fixed == 0
    assert relay.annotation.on_device(x, tvm.cpu(), constrain_result=True).attrs.is_fixed == 1
    assert relay.annotation.on_device(x, tvm.cpu(), constrain_body=False) is x
    with pytest.raises(tvm.error.UnsupportedError, match="device_copy"):
        relay.annotation.on_device(x, tvm.cpu(), constrain_result=True, constrain_body=False)


def test_values_with_inputs_that_are_not_there():
    from baton.relay.frontend.common import infer_value_simulated

    x = relay.var("x", shape=(2, 3))
    assert infer_value_simulated(relay.shape_of(relay.transpose(x)), {}).numpy().tolist() == [3, 2]


def test_weights_that_are_transposed():
    x, w, v = relay.var("x", shape=(2, 3)), relay.var("w", shape=(3, 4)), relay.var("v", shape=(4, 4))
    body = relay.nn.dense(relay.nn.dense(x, relay.transpose(w, [1, 0])), v)
    assert relay.analysis.search_fc_transpose(body) == ["w"]
    assert relay.analysis.search_fc_transpose(relay.nn.dense(x, relay.transpose(relay.var("u", shape=(4, 3)), [0, 1]))) == []


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

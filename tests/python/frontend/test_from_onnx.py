# SPDX-License-Identifier: Apache-2.0
"""from_onnx: what it takes, what it keeps, what it says."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import baton
from baton import relay
from baton.contrib import onnx_backend
from baton.relay.frontend import from_onnx


def f32(*shape):
    return (np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape) % 11 - 5) / 4


def value(name, shape, elem=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, elem, shape)


def model(nodes, inputs, outputs, init=(), opset=21, **more):
    graph = helper.make_graph(nodes, "g", inputs, outputs, [numpy_helper.from_array(v, k) for k, v in dict(init).items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10, **more)


def node(op, inputs, outputs, **attrs):
    return helper.make_node(op, inputs.split(" "), outputs.split(" "), **attrs)


def agrees(m, *inputs, rtol=1e-5, atol=1e-6):
    """The model gives what onnx.reference does."""
    names = [v.name for v in m.graph.input if v.name not in {t.name for t in m.graph.initializer}]
    want = ReferenceEvaluator(m).run(None, dict(zip(names, inputs, strict=True)))
    have = onnx_backend.prepare(m).run(list(inputs))
    assert len(have) == len(want)
    for h, w in zip(have, want, strict=True):
        assert np.shape(h) == np.shape(w)
        np.testing.assert_allclose(h, w, rtol=rtol, atol=atol)


@pytest.fixture
def add():
    return model([node("Add", "x w", "y")], [value("x", [2, 3])], [value("y", [2, 3])], {"w": f32(3)})


@pytest.mark.parametrize("kind", ["proto", "bytes", "path", "pathlib"])
def test_every_kind_of_source(add, kind, tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(add.SerializeToString())
    source = {"proto": add, "bytes": add.SerializeToString(), "path": str(path), "pathlib": path}[kind]
    mod, params = from_onnx(source)
    assert list(params) == ["w"]
    np.testing.assert_array_equal(params["w"].numpy(), f32(3))
    mod, params = from_onnx(source, freeze_params=True)
    assert params == {}


def test_an_operator_set_may_be_imported_twice_with_one_version(add):
    for domain, version in (("ai.onnx", 21), ("ai.onnx.ml", 3), ("ai.onnx.ml", 3)):
        add.opset_import.append(helper.make_opsetid(domain, version))
    agrees(add, f32(2, 3))
    add.opset_import.append(helper.make_opsetid("ai.onnx.ml", 4))
    with pytest.raises(baton.error.CompileError, match="twice, as versions 3 and 4"):
        from_onnx(add)


def test_a_scan_over_elements_without_numbers():
    body = helper.make_graph([node("Add", "s x", "t"), node("Identity", "t", "y")], "b", [value("s", [0]), value("x", [0])], [value("t", [0]), value("y", [0])])
    m = model([node("Scan", "s0 xs", "sf ys", body=body, num_scan_inputs=1)], [value("s0", [0]), value("xs", [3, 0])], [value("sf", [0]), value("ys", [3, 0])])
    agrees(m, f32(0), f32(3, 0))


@pytest.mark.parametrize("op, indices, more", [
    ("Gather", [0, 3], []), ("Gather", [0, -4], []), ("GatherElements", [[0, 3]], []), ("GatherND", [[0, 2]], []), ("ScatterND", [[0, -3]], [f32(1)]),
    ("ScatterElements", [[0, 3]], [f32(1, 2)]),
])  # fmt: skip
def test_known_indices_that_lie_outside(op, indices, more):
    init = {"i": np.array(indices, "int64"), **dict(zip("u", more, strict=False))}
    m = model([node(op, "x i u" if more else "x i", "y")], [value("x", [3, 2])], [value("y", None)], init)
    with pytest.raises(baton.error.CompileError, match="lies outside axis"):
        from_onnx(m)


@pytest.mark.parametrize("width", [2, 0])
def test_a_scan_of_no_steps(width):
    body = helper.make_graph(
        [node("Add", "s x", "t"), node("Exp", "t", "y")], "b", [value("s", [width]), value("x", [width])], [value("t", [width]), value("y", [width])]
    )
    m = model(
        [node("Scan", "s0 xs", "sf ys", body=body, num_scan_inputs=1)],
        [value("s0", [width]), value("xs", [0, width])],
        [value("sf", [width]), value("ys", [0, width])],
    )
    state, collected = onnx_backend.prepare(m).run([f32(width), f32(0, width)])
    np.testing.assert_array_equal(state, f32(width))
    assert collected.shape == (0, width) and collected.dtype == np.float32


def test_shapes_of_inputs():
    m = model([node("Relu", "x", "y")], [value("x", ["n", 3])], [value("y", ["n", 3])])
    from_onnx(m, shape={"x": (4, 3)})
    from_onnx(m, shape={"x": (None, 3)})
    from_onnx(m, shape=(4, 3))
    with pytest.raises(baton.error.CompileError, match="`z`, which is no input"):
        from_onnx(m, shape={"z": (4, 3)})
    with pytest.raises(baton.error.CompileError, match="has 2 axes; the shape given has 3"):
        from_onnx(m, shape={"x": (4, 3, 1)})


def test_shapes_that_are_given_win_over_sizes_in_the_file():
    stated = [value("x", [1, 3]), value("y", [1, 3]), value("m", [1, 3])]
    m = model([node("Relu", "x", "m"), node("Neg", "m", "y")], [stated[0]], [stated[1]])
    m.graph.value_info.append(stated[2])
    mod, _ = from_onnx(m, shape={"x": (4, 5)})
    typed = relay.transform.InferType()(mod)["main"]
    assert typed.params[0].type_annotation == typed.ret_type == relay.TensorType((4, 5), "float32")


def test_all_that_is_not_supported_at_once():
    m = model(
        [
            helper.make_node("Mystery", ["x"], ["a"], name="first"),
            helper.make_node("Upsample", ["a", "x"], ["b"], name="second"),  # no longer in this version
            helper.make_node("Relu", ["b"], ["y"], name="fine"),
        ],
        [value("x", [2])],
        [value("y", [2])],
    )
    with pytest.raises(baton.error.UnsupportedError) as error:
        from_onnx(m)
    text = str(error.value)
    assert "2 parts of the model are not supported" in text
    assert "node `first` (Mystery) of `ai.onnx` 21" in text
    assert "node `second` (Upsample)" in text
    assert "fine" not in text
    assert not onnx_backend.is_compatible(m)


def test_other_dtypes_and_options_are_refused(add):
    with pytest.raises(baton.error.UnsupportedError, match="states the types"):
        from_onnx(add, dtype="float16")
    with pytest.raises(baton.error.UnsupportedError, match="no option 'fast'"):
        from_onnx(add, convert_config={"fast": True})


def test_operand_that_is_known_at_run_time_only():
    m = model(
        [node("ReduceSum", "x axes", "y", keepdims=1), node("Reshape", "y shape", "z")],
        [value("x", [2, 3, 4]), value("axes", [1], TensorProto.INT64), value("shape", [2], TensorProto.INT64)],
        [value("z", [None, None])],
    )
    x = f32(2, 3, 4)
    agrees(m, x, np.array([1], np.int64), np.array([4, 2], np.int64))
    agrees(m, x, np.array([2], np.int64), np.array([-1, 3], np.int64))


def test_shapes_are_computed_while_importing():
    """Shape, Gather, Concat and Reshape leave nothing behind but the reshape."""
    m = model(
        [
            node("Shape", "x", "s"),
            node("Gather", "s zero", "n"),
            node("Unsqueeze", "n axis", "u"),
            node("Concat", "u rest", "t", axis=0),
            node("Reshape", "x t", "y"),
        ],
        [value("x", [2, 3, 4])],
        [value("y", [2, 12])],
        {"zero": np.array(0), "axis": np.array([0]), "rest": np.array([-1])},
    )
    mod, _ = from_onnx(m)
    text = str(mod)
    assert "reshape" in text
    for gone in ("shape_of", "take", "concatenate", "dyn."):
        assert gone not in text
    agrees(m, f32(2, 3, 4))


def test_functions_of_the_model():
    function = helper.make_function(
        "custom",
        "Scaled",
        ["a"],
        ["b"],
        [helper.make_node("LeakyRelu", ["a"], ["b"])],
        [helper.make_opsetid("", 21)],
        ["slope"],
    )
    attribute = helper.make_attribute("alpha", 0.5)
    attribute.ClearField("f")
    attribute.ref_attr_name = "slope"
    function.node[0].attribute.append(attribute)
    m = model([], [value("x", [4])], [value("y", [4])], functions=[function])
    m.graph.node.append(helper.make_node("Scaled", ["x"], ["y"], domain="custom", slope=0.125))
    m.opset_import.append(helper.make_opsetid("custom", 1))
    x = f32(4)
    (y,) = onnx_backend.prepare(m).run([x])
    np.testing.assert_array_equal(y, np.where(x < 0, x * np.float32(0.125), x))


def test_loop_with_a_count_known_at_run_time_only():
    body = helper.make_graph(
        [node("Add", "v v", "w"), node("Identity", "c", "d"), node("Identity", "w", "s")],
        "body",
        [value("i", [], TensorProto.INT64), value("c", [], TensorProto.BOOL), value("v", [2])],
        [value("d", [], TensorProto.BOOL), value("w", [2]), value("s", [2])],
    )
    m = model(
        [node("Loop", "n c x", "y z", body=body)],
        [value("n", [], TensorProto.INT64), value("c", [], TensorProto.BOOL), value("x", [2])],
        [value("y", [2]), value("z", [None, 2])],
    )
    for count in (1, 3, 5):
        agrees(m, np.array(count, np.int64), np.array(True), f32(2))


@pytest.mark.parametrize("condition", [True, False])
def test_branch_on_a_value(condition):
    then, otherwise = (helper.make_graph([node(op, "x", "r")], op, [], [value("r", [2])]) for op in ("Neg", "Abs"))
    m = model(
        [node("If", "c", "y", then_branch=then, else_branch=otherwise)],
        [value("c", [], TensorProto.BOOL), value("x", [2])],
        [value("y", [2])],
    )
    agrees(m, np.array(condition), f32(2))


def test_run_node():
    x = f32(2, 3)
    (y,) = onnx_backend.run_node(helper.make_node("Relu", ["x"], ["y"]), [x])
    np.testing.assert_array_equal(y, np.maximum(x, 0))
    assert onnx_backend.supports_device("CPU")
    assert not onnx_backend.supports_device("CUDA")


def test_dtypes_of_inputs_by_name():
    one = model([helper.make_node("Abs", ["a"], ["b"])], [value("a", [2])], [value("b", [2])])
    mod, _ = from_onnx(one, dtype={"a": "float32"})
    assert mod["main"].params[0].type_annotation.dtype == "float32"
    with pytest.raises(baton.error.UnsupportedError, match="`a` is 'int8' and the model states float32"):
        from_onnx(one, dtype={"a": "int8"})
    with pytest.raises(ValueError, match="the model has a"):
        from_onnx(one, dtype={"b": "float32"})

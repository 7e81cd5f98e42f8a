# SPDX-License-Identifier: Apache-2.0
"""Weights are stored once, and in the bits that the file has."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import baton

ort = pytest.importorskip("onnxruntime", reason="answers are compared with ONNX Runtime's")

DEPTH, WIDTH = 512, 512
CODE = 150_000  # bytes of an artifact beside its weights


def info(name, dtype, shape):
    return helper.make_tensor_value_info(name, dtype, shape)


def saved(path, nodes, inputs, output, weights, opset=21):
    graph = helper.make_graph(nodes, "g", inputs, [output], [numpy_helper.from_array(v, k) for k, v in weights.items()])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    onnx.save_model(made, str(path))
    return path


def check(path, feeds, bytes_of_weights, tolerance=1e-4):
    """The artifact has so many bytes of weights at most, and its answer is ONNX Runtime's."""
    baton.compile(str(path)).save(str(path) + ".so")
    size = (path.parent / (path.name + ".so")).stat().st_size
    assert size < bytes_of_weights + CODE
    plain = ort.SessionOptions()  # its optimiser quantizes the other operand too
    plain.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    (expected,) = ort.InferenceSession(str(path), plain, providers=["CPUExecutionProvider"]).run(None, feeds)
    got = np.asarray(baton.load(str(path) + ".so")(*feeds.values()).numpy())
    assert np.abs(got.astype("float64") - expected).max() <= tolerance * np.abs(expected).max()


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def tied(rng, form):
    table = rng.standard_normal((4000, 128)).astype("f4")
    weights = {"table": table}
    nodes = [helper.make_node("Gather", ["table", "ids"], ["h0"]), helper.make_node("Tanh", ["h0"], ["h"])]
    if form == "transposed":
        nodes.append(helper.make_node("Transpose", ["table"], ["head"], perm=[1, 0]))
    elif form == "twice":
        weights["again"] = table.copy()
        nodes.append(helper.make_node("Transpose", ["again"], ["head"], perm=[1, 0]))
    else:
        weights["head"] = np.ascontiguousarray(table.T)
    nodes.append(helper.make_node("MatMul", ["h", "head"], ["y"]))
    return nodes, weights, table.nbytes


@pytest.mark.parametrize("rows", [1, 8, "n"])
@pytest.mark.parametrize("form", ["transposed", "twice", "stored transposed"])
def test_a_table_that_is_the_last_products_weight_too_is_stored_once(tmp_path, rng, form, rows):
    nodes, weights, size = tied(rng, form)
    path = saved(tmp_path / "m.onnx", nodes, [info("ids", TensorProto.INT64, [1, rows])], info("y", TensorProto.FLOAT, None), weights)
    n = rows if rows != "n" else 5
    check(path, {"ids": rng.integers(-4000, 4000, (1, n))}, size)


def test_equal_weights_of_layers_are_stored_once(tmp_path, rng):
    w = rng.standard_normal((DEPTH, DEPTH)).astype("f4") / 16
    nodes, weights, last = [], {}, "x"
    for i in range(3):
        weights[f"w{i}"] = w.copy()
        nodes += [helper.make_node("MatMul", [last, f"w{i}"], [f"m{i}"]), helper.make_node("Tanh", [f"m{i}"], [f"t{i}"])]
        last = f"t{i}"
    path = saved(tmp_path / "m.onnx", nodes, [info("x", TensorProto.FLOAT, [4, DEPTH])], info(last, TensorProto.FLOAT, None), weights)
    check(path, {"x": rng.standard_normal((4, DEPTH)).astype("f4")}, w.nbytes)


def integers(rng, shape, dtype):
    low, high = (-128, 128) if dtype == "int8" else (0, 256)
    return rng.integers(low, high, shape).astype(dtype)


@pytest.mark.parametrize("channels", [False, True], ids=["one scale", "a scale a channel"])
@pytest.mark.parametrize(("dtype", "zero"), [("int8", None), ("int8", 0), ("uint8", 128)])
def test_dequantized_weights_of_products_stay_in_a_byte(tmp_path, rng, dtype, zero, channels):
    weights = {"q": integers(rng, (DEPTH, WIDTH), dtype)}
    weights["s"] = rng.uniform(0.01, 0.1, WIDTH if channels else ()).astype("f4")
    names = ["q", "s"]
    if zero is not None:
        weights["z"] = np.full(weights["s"].shape, zero, dtype)
        names.append("z")
    nodes = [helper.make_node("DequantizeLinear", names, ["w"], axis=1), helper.make_node("MatMul", ["x", "w"], ["y"])]
    path = saved(tmp_path / "m.onnx", nodes, [info("x", TensorProto.FLOAT, [3, DEPTH])], info("y", TensorProto.FLOAT, None), weights)
    check(path, {"x": rng.standard_normal((3, DEPTH)).astype("f4")}, DEPTH * WIDTH)


@pytest.mark.parametrize("channels", [False, True], ids=["one scale", "a scale a channel"])
def test_dequantized_weights_of_convolutions_stay_in_a_byte(tmp_path, rng, channels):
    weights = {"q": integers(rng, (256, 128, 3, 3), "int8"), "s": rng.uniform(0.01, 0.1, 256 if channels else ()).astype("f4")}
    nodes = [helper.make_node("DequantizeLinear", ["q", "s"], ["w"], axis=0), helper.make_node("Conv", ["x", "w"], ["y"])]
    path = saved(tmp_path / "m.onnx", nodes, [info("x", TensorProto.FLOAT, [1, 128, 9, 9])], info("y", TensorProto.FLOAT, None), weights)
    check(path, {"x": rng.standard_normal((1, 128, 9, 9)).astype("f4")}, weights["q"].nbytes)


def test_a_batch_norm_behind_a_quantized_convolution_does_not_widen_it(tmp_path, rng):
    weights = {"q": integers(rng, (256, 128, 3, 3), "int8"), "s": rng.uniform(0.01, 0.1, 256).astype("f4")}
    weights |= {k: rng.uniform(0.5, 1.5, 256).astype("f4") for k in ("scale", "bias", "mean", "var")}
    nodes = [
        helper.make_node("DequantizeLinear", ["q", "s"], ["w"], axis=0),
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("BatchNormalization", ["c", "scale", "bias", "mean", "var"], ["n"]),
        helper.make_node("Relu", ["n"], ["y"]),
    ]
    path = saved(tmp_path / "m.onnx", nodes, [info("x", TensorProto.FLOAT, [1, 128, 9, 9])], info("y", TensorProto.FLOAT, None), weights)
    check(path, {"x": rng.standard_normal((1, 128, 9, 9)).astype("f4")}, weights["q"].nbytes)


@pytest.mark.parametrize("zero", [None, 3])
def test_rows_of_a_dequantized_table_are_taken_of_the_integers(tmp_path, rng, zero):
    weights = {"q": integers(rng, (8000, 64), "int8"), "s": np.float32(0.02)}
    names = ["q", "s"]
    if zero is not None:
        weights["z"] = np.int8(zero)
        names.append("z")
    nodes = [helper.make_node("DequantizeLinear", names, ["w"]), helper.make_node("Gather", ["w", "ids"], ["y"])]
    path = saved(tmp_path / "m.onnx", nodes, [info("ids", TensorProto.INT64, [7])], info("y", TensorProto.FLOAT, None), weights)
    check(path, {"ids": rng.integers(0, 8000, 7)}, weights["q"].nbytes)


@pytest.mark.parametrize("layers", [1, 12])
def test_weights_of_integer_products_stay_in_a_byte(tmp_path, rng, layers):
    """However many layers a model has: each is folded."""
    depth = 1024
    weights, nodes, last = {}, [], "x"
    for i in range(layers):
        weights[f"q{i}"] = integers(rng, (depth, depth), "int8")
        nodes += [
            helper.make_node("DynamicQuantizeLinear", [last], [f"a{i}", f"s{i}", f"z{i}"]),
            helper.make_node("MatMulInteger", [f"a{i}", f"q{i}", f"z{i}"], [f"m{i}"]),
            helper.make_node("Cast", [f"m{i}"], [f"f{i}"], to=TensorProto.FLOAT),
            helper.make_node("Mul", [f"f{i}", f"s{i}"], [f"p{i}"]),
            helper.make_node("Tanh", [f"p{i}"], [f"y{i}"]),
        ]
        last = f"y{i}"
    path = saved(tmp_path / "m.onnx", nodes, [info("x", TensorProto.FLOAT, [2, depth])], info(last, TensorProto.FLOAT, None), weights)
    check(path, {"x": rng.standard_normal((2, depth)).astype("f4")}, layers * depth * depth, tolerance=0.05)


def test_weights_of_a_quantized_product_stay_in_a_byte(tmp_path, rng):
    weights = {"b": integers(rng, (DEPTH, WIDTH), "int8"), "as": np.float32(0.02), "bs": np.float32(0.01), "ys": np.float32(0.5)}
    weights |= {"az": np.uint8(7), "bz": np.int8(0), "yz": np.uint8(120)}
    node = helper.make_node("QLinearMatMul", ["a", "as", "az", "b", "bs", "bz", "ys", "yz"], ["y"])
    path = saved(tmp_path / "m.onnx", [node], [info("a", TensorProto.UINT8, [3, DEPTH])], info("y", TensorProto.UINT8, None), weights)
    check(path, {"a": integers(rng, (3, DEPTH), "uint8")}, DEPTH * WIDTH, tolerance=0.01)


@pytest.mark.parametrize("rows", [1, 9, "n"])
@pytest.mark.parametrize("zero", [False, True])
@pytest.mark.parametrize("form", ["blocks", "a scale a channel", "one scale"])
@pytest.mark.parametrize("dtype", [TensorProto.INT4, TensorProto.UINT4])
def test_dequantized_weights_of_four_bits_stay_in_four(tmp_path, rng, dtype, form, zero, rows):
    low, high = (-8, 8) if dtype == TensorProto.INT4 else (0, 16)
    q = rng.integers(low, high, (DEPTH, WIDTH))
    shape = {"blocks": (DEPTH // 32, WIDTH), "a scale a channel": (WIDTH,), "one scale": ()}[form]
    scale, point = rng.uniform(0.01, 0.1, shape).astype("f4"), rng.integers(low, high, shape)
    tensors = [helper.make_tensor("q", dtype, q.shape, q.ravel()), numpy_helper.from_array(scale, "s")]
    tensors += [helper.make_tensor("z", dtype, shape, point.ravel())] * zero
    block = {"block_size": 32, "axis": 0} if form == "blocks" else {"axis": 1}
    nodes = [helper.make_node("DequantizeLinear", [t.name for t in tensors], ["w"], **block), helper.make_node("MatMul", ["x", "w"], ["y"])]
    graph = helper.make_graph(nodes, "g", [info("x", TensorProto.FLOAT, [rows, DEPTH])], [info("y", TensorProto.FLOAT, None)], tensors)
    exe = baton.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10))
    exe.save(tmp_path / "m.so")
    assert (tmp_path / "m.so").stat().st_size < DEPTH * WIDTH // 2 + (2 if form == "blocks" else 1) * scale.nbytes + 8 * WIDTH + CODE
    x = rng.standard_normal((5 if rows == "n" else rows, DEPTH)).astype("f4")
    wide = lambda v: np.repeat(v, 32, 0) if form == "blocks" else v  # noqa: E731
    weight = (q - (wide(point) if zero else 0)) * wide(scale).astype("float64")
    want = x.astype("float64") @ weight
    got = baton.load(tmp_path / "m.so")(x).numpy()
    assert np.abs(got - want).max() < 1e-4 * np.abs(want).max()

# SPDX-License-Identifier: Apache-2.0
"""ONNX's nodes whose operands decide shapes or axes, as functions of the host: upstream's cases, called as a program calls them, and
saved models run where no compiler is."""

import importlib.util
import json
import os
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import baton
from baton import relay  # noqa: F401 - loads the compiler, and with it libbaton_host

# How many of upstream's cases each function has, with onnx 1.23.2.
CASES = {
    "AffineGrid": 4, "CenterCropPad": 6, "Col2Im": 5, "CumProd": 9, "CumSum": 9, "DFT": 10, "Expand": 2, "MaxUnpool": 2, "MelWeightMatrix": 1, "OneHot": 6, "Pad": 6, "Range": 4, "ReduceL1": 9, "ReduceL2": 9,
    "ReduceLogSum": 5, "ReduceLogSumExp": 9, "ReduceMax": 11, "ReduceMean": 8, "ReduceMin": 10, "ReduceProd": 9, "ReduceSum": 12,
    "ReduceSumSquare": 9, "Reshape": 10, "Resize": 39, "Slice": 8, "STFT": 2, "Split": 16, "Squeeze": 2, "Tile": 2, "TopK": 7, "Trilu": 18,
    "Unsqueeze": 7,
}  # fmt: skip


def suite():
    path = Path(__file__).parents[1] / "frontend" / "test_onnx_suite.py"
    spec = importlib.util.spec_from_file_location("onnx_suite", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def parameters(node, opset, outputs):
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    plain = {k: v.decode() if isinstance(v, bytes) else v for k, v in attributes.items() if isinstance(v, int | float | bytes | list)}
    return json.dumps({**plain, "present": [bool(i) for i in node.input], "dtypes": [str(y.dtype) for y in outputs], "opset": opset})


@pytest.mark.skipif(onnx.__version__ != "1.23.2", reason="the counts are those of onnx 1.23.2")
def test_upstreams_cases():
    from onnx.backend.test import loader

    module, seen, wrong = suite(), dict.fromkeys(CASES, 0), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = loader.load_model_tests(kind="node")
    for case in cases:
        model = case.model if case.model is not None else onnx.load(os.path.join(case.model_dir, "model.onnx"))
        node = model.graph.node[0]
        if len(model.graph.node) != 1 or node.op_type not in CASES:
            continue
        for inputs, outputs in module.data_sets(case, model):
            make = baton.get_global_func("host.onnx." + node.op_type)
            got = make(parameters(node, model.opset_import[0].version, outputs))(*[baton.nd.array(np.asarray(x)) for x in inputs])
            got = [got] if hasattr(got, "numpy") else list(got)
            seen[node.op_type] += 1
            try:
                for g, y in zip(got, outputs, strict=True):
                    assert (g.shape, g.dtype) == (y.shape, y.dtype)
                    np.testing.assert_allclose(np.asarray(g.numpy(), "float64"), np.asarray(y, "float64"), rtol=1e-3, atol=1e-6)
            except AssertionError as error:
                wrong.append((case.name, str(error)))
    assert wrong == []
    assert seen == CASES


def tensor(name, shape, dtype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


I64 = TensorProto.INT64
X = np.arange(24, dtype="float32").reshape(2, 3, 4) - 7
# Operator, attributes, operands behind the data and the extents of the result.
NODES = {
    "ReduceSum": ({"keepdims": 1}, [np.array([1, -1])], [None, None, None]),
    "ReduceMax": ({"keepdims": 1}, [np.array([0])], [None, None, None]),
    "CumSum": ({"reverse": 1}, [np.array(1)], [2, 3, 4]),
    "Slice": ({}, [np.array([1, -1]), np.array([9, -9]), np.array([1, 2]), np.array([1, -2])], [2, None, None]),
    "Pad": ({"mode": "edge"}, [np.array([0, 1, 0, 0, 0, 2])], [None, None, None]),
    "Tile": ({}, [np.array([2, 1, 1])], [None, None, None]),
    "Reshape": ({}, [np.array([4, -1])], [None, None]),
    "Trilu": ({"upper": 0}, [np.array(-1)], [2, 3, 4]),
    "Resize": ({"mode": "linear"}, ["", np.array([1, 1.5, 2], "float32")], [None, None, None]),
}


def one_node(op):
    attributes, operands, extents = NODES[op]
    names = ["x"] + ["" if isinstance(v, str) else f"p{i}" for i, v in enumerate(operands)]
    kinds = {"int64": I64, "float32": TensorProto.FLOAT}
    inputs = [tensor("x", X.shape)] + [tensor(n, list(v.shape), kinds[str(v.dtype)]) for n, v in zip(names[1:], operands, strict=True) if n]
    graph = helper.make_graph([helper.make_node(op, names, ["y"], **attributes)], "g", inputs, [tensor("y", extents)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)


def test_saved_and_run_by_the_runtime_alone(tmp_path):
    """Operands that come as values need no compiler: the model calls functions by name."""
    from onnx.reference import ReferenceEvaluator

    for op, (_, operands, _) in NODES.items():
        model = one_node(op)
        given = [X, *[v for v in operands if not isinstance(v, str)]]
        names = [i.name for i in model.graph.input]
        (want,) = ReferenceEvaluator(model).run(None, dict(zip(names, given, strict=True)))
        compiled = baton.compile(model)
        np.testing.assert_allclose(compiled(*given).numpy(), want, rtol=1e-5, atol=1e-5)
        compiled.save(tmp_path / f"{op}.so")
        np.savez(tmp_path / f"{op}.npz", want, *given)
    code = f"""
        import numpy as np, baton, pathlib
        for path in sorted(pathlib.Path({str(tmp_path)!r}).glob("*.so")):
            data = np.load(path.with_suffix(".npz"))
            want, *given = [data[f"arr_{{i}}"] for i in range(len(data.files))]
            np.testing.assert_allclose(baton.load(str(path))(*given).numpy(), want, rtol=1e-5, atol=1e-5)
        maps = open("/proc/self/maps").read()
        assert "libbaton_host.so" in maps and "libbaton.so" not in maps and "libLLVM" not in maps
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def call(op, *arrays, **attributes):
    node = {"present": [a is not None for a in arrays], "dtypes": ["float32"], **attributes}
    return baton.get_global_func("host.onnx." + op)(json.dumps(node))(*[baton.nd.array(a) for a in arrays if a is not None])


@pytest.mark.parametrize("op, arrays, attributes, why", [
    ("ReduceSum", [X, np.array([3])], {}, "onnx.ReduceSum: axis 3 for a tensor of rank 3"),
    ("ReduceSum", [X, np.array([0, -3])], {}, "names an axis twice"),
    ("ReduceSum", [X, np.array([0.5])], {}, r"argument 1 is float64\[1\], where a list of integers is wanted"),
    ("Slice", [X, np.array([0]), np.array([1]), np.array([0]), np.array([0])], {}, "`steps` holds 0"),
    ("Slice", [X, np.array([0, 1]), np.array([1])], {}, "differ in length"),
    ("Pad", [X, np.array([0, 0, 0])], {}, "`pads` needs two numbers for each axis"),
    ("Pad", [X, np.array([0, 0, 0, -5, 0, 0])], {}, "`pads` cuts more than there is"),
    ("Pad", [X, np.array([0, 0, 2**62, 0, 0, 2**62])], {}, "an extent overflows"),
    ("Tile", [X, np.array([2, -1, 1])], {}, r"`repeats` is \[2, -1, 1\]"),
    ("Expand", [X, np.array([5, 4])], {}, "does not broadcast to"),
    ("Reshape", [X, np.array([5, -1])], {}, r"cannot have the shape \[5, 4\]"),
    ("Reshape", [X, np.array([-1, -1])], {}, "leaves two extents open"),
    ("Squeeze", [X, np.array([0])], {}, "is not 1"),
    ("Split", [X, np.array([1, 2])], {}, r"`split` is \[1, 2\]"),
    ("Range", [np.array(0), np.array(5), np.array(0)], {}, "`delta` is 0"),
    ("OneHot", [np.array([1]), np.array(0), np.array([0.0, 1.0])], {}, "`depth` is 0"),
    ("TopK", [X, np.array([9])], {}, "`K` is 9, but the axis has 4 elements"),
    ("Resize", [X, None, np.array([1, 1, -2], "float32")], {"opset": 19}, "not positive"),
    ("Resize", [X, None, None, np.array([2, 3])], {"opset": 19}, "`sizes` needs a number for each axis"),
    ("Dropout", [X, np.array(1.5), np.array(True)], {}, "`ratio` is 1.5"),
])  # fmt: skip
def test_bad_values(op, arrays, attributes, why):
    with pytest.raises(baton.Error, match=why):
        call(op, *arrays, **attributes)

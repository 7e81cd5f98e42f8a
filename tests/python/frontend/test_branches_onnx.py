# SPDX-License-Identifier: Apache-2.0
"""Ifs whose branches differ in rank or type, beside ONNX Runtime: ranks decide, or either way is followed."""

import numpy as np
import pytest

import baton

onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def graph(nodes, outputs, inputs=(), weights=(), name="g"):
    made = [helper.make_node(op, ins, outs, **attrs) for op, ins, outs, attrs in ((*node, {})[:4] for node in nodes)]
    info = helper.make_tensor_value_info
    return helper.make_graph(
        made,
        name,
        [info(n, t, s) for n, t, s in inputs],
        [info(n, t, None) for n, t in outputs],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in dict(weights).items()],
    )


def branch(nodes, *outputs):
    return graph(nodes, [(name, FLOAT) for name in outputs], name="branch")


def model(*args, **kwargs):
    return helper.make_model(graph(*args, **kwargs), opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


def squeeze_if_one(x, y, axis):
    """Nodes of `y = x.squeeze(axis)` as PyTorch writes them, which squeezes what is 1 long."""
    return [
        ("Shape", [x], [f"{y}_shape"]),
        ("Gather", [f"{y}_shape", axis], [f"{y}_length"]),
        ("Equal", [f"{y}_length", "one"], [f"{y}_is_one"]),
        (
            "If",
            [f"{y}_is_one"],
            [y],
            {"then_branch": branch([("Squeeze", [x, axis], [f"{y}_a"])], f"{y}_a"), "else_branch": branch([("Identity", [x], [f"{y}_b"])], f"{y}_b")},
        ),
    ]


NUMBERS = {"one": np.array([1]), "minus_one": np.array([-1]), "first": np.array([0]), "w": np.arange(12, dtype=np.float32).reshape(4, 3)}


def agrees(data, *feeds):
    compiled = baton.compile(data)
    peer = ort.InferenceSession(data)
    for feed in feeds:
        got = compiled(feed)
        want = peer.run(None, feed)
        got = [np.asarray(out) for out in (got if isinstance(got, tuple) else [got])]
        assert [g.shape for g in got] == [w.shape for w in want]
        for g, w in zip(got, want, strict=True):
            np.testing.assert_allclose(g, w, rtol=1e-5, atol=1e-6)
    return compiled


def floats(*shape):
    return np.random.default_rng(0).standard_normal(shape, np.float32)


def test_ranks_decide():
    data = model(
        [*squeeze_if_one("x", "y", "minus_one"), ("Gemm", ["y", "w"], ["z"])],  # Gemm takes a matrix alone
        [("z", FLOAT)],
        [("x", FLOAT, ["batch", 4, "time"])],
        NUMBERS,
    )
    compiled = agrees(data, {"x": floats(2, 4, 1)}, {"x": floats(5, 4, 1)})
    assert compiled.called_back == () and any("time" in guard for guard in compiled.guards)
    with pytest.raises(ValueError, match="time"):
        compiled(floats(2, 4, 3))


def test_ranks_decide_for_the_other_branch():
    data = model(
        [*squeeze_if_one("x", "y", "minus_one"), ("Conv", ["y", "k"], ["z"])],  # Conv needs the axis
        [("z", FLOAT)],
        [("x", FLOAT, [1, 4, "time", "more"])],
        {**NUMBERS, "k": floats(2, 4, 1, 1)},
    )
    compiled = agrees(data, {"x": floats(1, 4, 3, 7)}, {"x": floats(1, 4, 1, 2)})
    with pytest.raises(ValueError, match="else branch"):
        compiled(floats(1, 4, 3, 1))


def test_ranks_decide_within_branches():
    inner = [*squeeze_if_one("x", "y", "minus_one"), ("Gemm", ["y", "w"], ["z0"])]
    data = model(
        [
            (
                "If",
                ["flag"],
                ["z"],
                {
                    "then_branch": branch(inner, "z0"),
                    "else_branch": branch([("ReduceSum", ["x", "minus_one"], ["s"], {"keepdims": 0}), ("Gemm", ["s", "w"], ["z1"])], "z1"),
                },
            )
        ],
        [("z", FLOAT)],
        [("x", FLOAT, ["batch", 4, "time"]), ("flag", BOOL, [])],
        NUMBERS,
    )
    feeds = [{"x": floats(2, 4, 1), "flag": np.array(True)}, {"x": floats(2, 4, 1), "flag": np.array(False)}, {"x": floats(2, 4, 3), "flag": np.array(False)}]
    compiled = agrees(data, *feeds)
    with pytest.raises(baton.BatonError, match="then branch"):
        compiled(floats(2, 4, 3), np.array(True))


def test_either_rank_is_followed():
    data = model(
        [*squeeze_if_one("x", "y", "first"), ("ReduceSum", ["y"], ["z"], {"keepdims": 0}), ("Relu", ["x"], ["u"])],
        [("z", FLOAT), ("u", FLOAT)],
        [("x", FLOAT, ["n", 4])],
        NUMBERS,
    )
    agrees(data, {"x": floats(1, 4)}, {"x": floats(3, 4)})


def test_two_of_them():
    data = model(
        [
            *squeeze_if_one("x", "y", "first"),
            *squeeze_if_one("v", "q", "first"),
            ("ReduceSum", ["y"], ["z"], {"keepdims": 0}),
            ("ReduceMax", ["q"], ["m"], {"keepdims": 0}),
            ("Add", ["z", "m"], ["r"]),
        ],
        [("r", FLOAT)],
        [("x", FLOAT, ["n", 4]), ("v", FLOAT, ["m", 2])],
        NUMBERS,
    )
    agrees(data, *({"x": floats(n, 4), "v": floats(m, 2)} for n in (1, 3) for m in (1, 2)))


def test_a_result_of_either_rank():
    data = model(squeeze_if_one("x", "y", "first"), [("y", FLOAT)], [("x", FLOAT, ["n", 4])], NUMBERS)
    agrees(data, {"x": floats(1, 4)}, {"x": floats(3, 4)})


def test_values_decide_between_types():
    data = model(
        [
            (
                "If",
                ["flag"],
                ["y"],
                {"then_branch": branch([("Cast", ["x"], ["i"], {"to": INT64})], "i"), "else_branch": branch([("Identity", ["x"], ["f"])], "f")},
            ),
            ("Cast", ["y"], ["z"], {"to": FLOAT}),
        ],
        [("z", FLOAT)],
        [("x", FLOAT, ["n"]), ("flag", BOOL, [])],
    )
    compiled = baton.compile(data)
    x = np.array([1.5, -2.25], np.float32)
    np.testing.assert_array_equal(compiled(x, np.array(True)).numpy(), [1, -2])
    np.testing.assert_array_equal(compiled(x, np.array(False)).numpy(), x)


def test_no_branch_fits():
    data = model([*squeeze_if_one("x", "y", "minus_one"), ("Gemm", ["y", "w"], ["z"])], [("z", FLOAT)], [("x", FLOAT, ["batch", "n", 4, "time"])], NUMBERS)
    with pytest.raises(baton.BatonError, match="Gemm"):
        baton.compile(data)


def test_a_branch_that_is_wrong_for_a_shape_is_an_error_where_it_is_taken():
    then, other = branch([("Gemm", ["x", "w"], ["a"])], "a"), branch([("Gemm", ["x", "v"], ["b"])], "b")
    nodes = [("If", ["flag"], ["y"], {"then_branch": then, "else_branch": other})]
    data = model(nodes, [("y", FLOAT)], [("x", FLOAT, [2, 4]), ("flag", BOOL, [])], {**NUMBERS, "v": floats(5, 3)})
    compiled = baton.compile(data)
    np.testing.assert_allclose(compiled(floats(2, 4), np.array(True)).numpy(), floats(2, 4) @ NUMBERS["w"], rtol=1e-5)
    with pytest.raises(baton.BatonError, match="else branch cannot run"):
        compiled(floats(2, 4), np.array(False))

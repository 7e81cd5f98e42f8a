# SPDX-License-Identifier: Apache-2.0
"""Operators of ONNX Runtime over open dimensions: one program for every length, beside ONNX Runtime."""

import numpy as np
import pytest
from onnx import TensorProto, ValueInfoProto, helper, numpy_helper

import baton

ort = pytest.importorskip("onnxruntime")
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def rng(*shape, seed=0, scale=1.0):
    return (np.random.default_rng((seed, *shape)).standard_normal(shape) * scale).astype(np.float32)


def model(nodes, inputs, outputs, weights):
    made = [helper.make_node(op, ins, outs, domain="" if op in ONNX else "com.microsoft", **attrs) for op, ins, outs, attrs in nodes]
    graph = helper.make_graph(
        made, "g", [helper.make_tensor_value_info(n, k, s) for n, (k, s) in inputs.items()], [ValueInfoProto(name=o) for o in outputs],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in weights.items()],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)], ir_version=8)


ONNX = {"Shape", "Gather", "Cast", "ReduceSum", "Sub", "MatMul"}


def check(made, feeds, tol=3e-5):
    options = ort.SessionOptions()
    options.log_severity_level = 4
    peer = ort.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])
    program = baton.compile(made)
    for feed in feeds:
        got = program(**feed)
        for g, w in zip(got if isinstance(got, (tuple, list)) else [got], peer.run(None, feed), strict=True):
            assert np.asarray(g).shape == w.shape
            np.testing.assert_allclose(np.asarray(g), w, rtol=tol, atol=tol)
    return program


SIZES = [(1, 1), (2, 7), (3, 16)]


def decoder(total, **attrs):
    """A layer as ONNX Runtime's model builder writes it: lengths of keys come from the attention mask."""
    nodes = [
        ("ReduceSum", ["mask", "one"], ["count"], {"keepdims": 0}),
        ("Sub", ["count", "one"], ["less"], {}),
        ("Cast", ["less"], ["seqlens"], {"to": TensorProto.INT32}),
        ("Shape", ["mask"], ["shape"], {}),
        ("Gather", ["shape", "at"], ["length"], {"axis": 0}),
        ("Cast", ["length"], ["total"], {"to": TensorProto.INT32}),
        ("MatMul", ["x", "w"], ["qkv"], {}),
        ("GroupQueryAttention", ["qkv", "", "", "past_k", "past_v", "seqlens", "total", "cos", "sin"], ["y", "present_k", "present_v"],
         {"num_heads": 4, "kv_num_heads": 2, "do_rotary": 1, **attrs}),
    ]  # fmt: skip
    inputs = {
        "x": (FLOAT, ["batch", "seq", 32]), "mask": (INT64, ["batch", total]),
        "past_k": (FLOAT, ["batch", 2, "past", 16]), "past_v": (FLOAT, ["batch", 2, "past", 16]),
    }  # fmt: skip
    weights = {"one": np.array([1]), "at": np.array(1), "w": rng(32, 128, scale=0.2), "cos": rng(40, 8), "sin": rng(40, 8, seed=2)}
    return model(nodes, inputs, ["y", "present_k", "present_v"], weights)


def step(batch, seq, past):
    return {
        "x": rng(batch, seq, 32), "mask": np.ones((batch, seq + past), np.int64),
        "past_k": rng(batch, 2, past, 16), "past_v": rng(batch, 2, past, 16, seed=3),
    }  # fmt: skip


@pytest.mark.parametrize("total", ["total", "past + seq"])
def test_group_query(total):
    check(decoder(total), [step(1, 5, 0), step(1, 1, 5), step(1, 1, 9), step(2, 1, 6), step(2, 4, 0)])


def test_group_query_of_a_window():
    check(decoder("total", local_window_size=3), [step(1, 5, 0), step(1, 1, 9)])


def test_attention():
    made = model(
        [("Attention", ["x", "w", "b", "mask"], ["y"], {"num_heads": 2, "unidirectional": 1})],
        {"x": (FLOAT, ["batch", "seq", 16]), "mask": (TensorProto.INT32, ["batch", "seq"])}, ["y"], {"w": rng(16, 24, scale=0.3), "b": rng(24)},
    )  # fmt: skip
    check(made, [{"x": rng(b, s, 16), "mask": (np.arange(s)[None] <= s // 2 + np.arange(b)[:, None]).astype(np.int32)} for b, s in SIZES])


def test_attention_with_a_past():
    made = model(
        [("Attention", ["x", "w", "b", "", "past"], ["y", "present"], {"num_heads": 2, "unidirectional": 1})],
        {"x": (FLOAT, ["batch", "seq", 16]), "past": (FLOAT, [2, "batch", 2, "past", 4])}, ["y", "present"], {"w": rng(16, 24, scale=0.3), "b": rng(24)},
    )  # fmt: skip
    check(made, [{"x": rng(b, s, 16), "past": rng(2, b, 2, p, 4)} for b, s, p in ((1, 4, 0), (1, 1, 4), (2, 3, 7))])


def test_multi_head_attention_and_rotation():
    made = model(
        [("RotaryEmbedding", ["q", "ids", "cos", "sin"], ["t"], {"num_heads": 2}),
         ("MultiHeadAttention", ["t", "k", "v", "", "", "bias"], ["y"], {"num_heads": 2})],
        {"q": (FLOAT, ["batch", "seq", 16]), "k": (FLOAT, ["batch", "keys", 16]), "v": (FLOAT, ["batch", "keys", 16]),
         "ids": (INT64, ["batch", "seq"]), "bias": (FLOAT, [1, 2, "seq", "keys"])},
        ["y"], {"cos": rng(20, 4), "sin": rng(20, 4, seed=2)},
    )  # fmt: skip
    check(made, [{"q": rng(b, s, 16), "k": rng(b, n, 16), "v": rng(b, n, 16, seed=2), "ids": np.arange(b * s).reshape(b, s) % 20,
                  "bias": rng(1, 2, s, n)} for b, s, n in ((1, 1, 3), (2, 7, 5))])  # fmt: skip


def test_norms_and_products():
    made = model(
        [("SkipLayerNormalization", ["x", "k", "g", "g"], ["a"], {}), ("FusedMatMul", ["a", "a"], ["s"], {"transB": 1, "alpha": 0.25}),
         ("FusedMatMul", ["s", "a"], ["b"], {}), ("BiasGelu", ["b", "g"], ["c"], {}), ("MatMulNBits", ["c", "q", "d"], ["y"], NBITS)],
        {"x": (FLOAT, ["batch", "seq", 16]), "k": (FLOAT, ["batch", "seq", 16])}, ["y"],
        {"g": rng(16), "q": np.random.default_rng(0).integers(0, 256, (8, 1, 8)).astype(np.uint8), "d": np.abs(rng(8, 1)) * 0.1},
    )  # fmt: skip
    check(made, [{"x": rng(b, s, 16), "k": rng(b, s, 16, seed=2)} for b, s in SIZES], tol=2e-4)


NBITS = {"K": 16, "N": 8, "bits": 4, "block_size": 16}

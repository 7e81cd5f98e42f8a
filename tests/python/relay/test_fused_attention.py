# SPDX-License-Identifier: Apache-2.0
"""Attention of whole models as one kernel: what FuseAttention finds in imported graphs, and that results stay."""

import sys
from pathlib import Path

import numpy as np
import pytest

import baton

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper  # noqa: E402

BENCH = Path(__file__).resolve().parents[3] / "bench"
sys.path.insert(0, str(BENCH))

import attention  # noqa: E402
import decode  # noqa: E402


def after(source, **options):
    """The compiled model, and the program behind FuseAttention."""
    seen = []

    @baton.instrument.pass_instrument
    class Keep:
        def run_after_pass(self, mod, info):
            if info.name == "FuseAttention":
                seen.append(mod.astext().split("#[metadata]")[0])

    model = baton.compile(source, instruments=[Keep()], **options)
    return model, "\n".join(seen)


def results(model, feeds):
    out = model(feeds)
    return [x.numpy() for x in (out if isinstance(out, (list, tuple)) else [out])]


def same(source, feeds, calls, **options):
    """Compiles with and without the pass: as many calls, and the same results within what sums of another order leave. The program."""
    model, text = after(source, **options)
    assert text.count("nn.attention(") == calls, text
    plain = baton.compile(source, disabled_pass=["FuseAttention"], **options)
    for got, want in zip(results(model, feeds), results(plain, feeds), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    return text


@pytest.mark.parametrize("is_open", [False, True], ids=["static", "open"])
@pytest.mark.parametrize(("queries", "keys"), [(1, 16), (1, 200), (70, 70), (5, 130)])
def test_spelled_out(queries, keys, is_open):
    for heads, groups in ((6, 2), (3, 3)):
        source, feeds = attention.spelled(attention.Row("spelled", queries, keys, heads, groups, is_open), np.random.default_rng(0))
        text = same(source, feeds, 1)
        assert "nn.softmax" not in text
        assert "broadcast_to" not in text  # heads that share keys read them where they are
        assert "scale=0.125" in text


@pytest.mark.parametrize(("queries", "keys"), [(1, 70), (70, 70)])
def test_group_query_attention(queries, keys):
    source, feeds = attention.group(attention.Row("group", queries, keys, 6, 2, False), np.random.default_rng(0))
    text = same(source, feeds, 1)
    assert ("causal=True" in text) == (queries > 1)
    assert "nn.softmax" not in text
    if queries > 1:
        assert 'query_layout="BSHD"' in text
        assert 'out_layout="BSHD"' in text  # nothing is transposed but what the model gives


def test_a_decoder_over_open_lengths_and_states():
    source = decode.decoder(*decode.SIZES["tiny"])
    layers = decode.SIZES["tiny"][0]
    model, text = after(source)
    assert text.count("nn.attention(") == layers
    assert text.count("causal=True") == layers
    plain = baton.compile(source, disabled_pass=["FuseAttention"])
    rng = np.random.default_rng(0)
    heads, width = decode.SIZES["tiny"][1:3]
    for seq, past in ((1, 0), (1, 70), (66, 3), (5, 130)):
        feeds = {"input_ids": rng.integers(0, 97, (2, seq))}
        for n in range(layers):
            for part in ("key", "value"):
                feeds[f"past_key_values.{n}.{part}"] = rng.standard_normal((2, heads, past, width // heads), np.float32)
        for got, want in zip(results(model, feeds), results(plain, feeds), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)


def test_steps_of_a_session_have_the_bits_of_one_call():
    model = baton.compile(decode.decoder(*decode.SIZES["tiny"]), state=True)
    ids = np.random.default_rng(0).integers(0, 97, (1, 150))
    whole = model.session()(ids).numpy()
    session = model.session()
    np.testing.assert_array_equal(session(ids[:, :70]).numpy(), whole[:, :70])
    for n in range(70, 150):
        np.testing.assert_array_equal(session(ids[:, n : n + 1]).numpy(), whole[:, n : n + 1])


def onnx_attention(shapes, **attrs):
    names = list(shapes)
    nodes = [helper.make_node("Attention", names, ["out"], **attrs)]
    inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in shapes.items()]
    graph = helper.make_graph(nodes, "attention", inputs, [helper.make_empty_tensor_value_info("out")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10).SerializeToString()


@pytest.mark.parametrize("causal", [0, 1])
def test_the_operator_of_onnx(causal):
    shapes = {"q": (2, 20, 6 * 8), "k": (2, 20, 2 * 8), "v": (2, 20, 2 * 8)}
    source = onnx_attention(shapes, is_causal=causal, q_num_heads=6, kv_num_heads=2)
    feeds = {n: np.random.default_rng(0).standard_normal(s, np.float32) for n, s in shapes.items()}
    text = same(source, feeds, 1)
    assert ("causal=True" in text) == bool(causal)


def test_strict_programs_keep_their_sums():
    source, _ = attention.spelled(attention.Row("spelled", 5, 9, 6, 2, False), np.random.default_rng(0))
    assert "nn.attention(" not in after(source, config={"fp": "strict"})[1]
    assert "nn.attention(" in after(source)[1]


@pytest.mark.parametrize("causal", [True, False])
def test_weights_of_rows_without_a_key(causal):
    """PyTorch's operator gives them zeros, which a mask that leaves each row a key makes needless."""
    from baton import relay

    q, k, v = (relay.var(n, shape=(1, 2, 20, 16)) for n in "qkv")
    low = relay.const(np.float32(-np.inf))
    seen = np.tri(20, dtype=bool)
    if not causal:
        seen[3] = False
    scores = relay.where(relay.const(seen), relay.nn.matmul(q, k, transpose_b=True), low)
    none = relay.equal(relay.max(scores, axis=[3], keepdims=True), low)
    weights = relay.where(none, relay.const(np.float32(0)), relay.nn.softmax(scores))
    source = baton.IRModule.from_expr(relay.Function([q, k, v], relay.nn.matmul(weights, v)))
    feeds = {n: np.random.default_rng(0).standard_normal((1, 2, 20, 16), np.float32) for n in "qkv"}
    text = same(source, feeds, 1)
    assert ("causal=True" in text) == causal
    assert ("guard=1" in text) != causal


@pytest.mark.parametrize("is_open", [False, True], ids=["static", "open"])
@pytest.mark.parametrize("kind", ["seen", "added", "one row"])
def test_masks_as_pytorch_exports_them(kind, is_open):
    """scaled_dot_product_attention with attn_mask: a condition becomes numbers, is added, and weights that are NaN become 0."""
    n = 20 if kind != "one row" else 1
    shapes = {"q": [1, 4, n, 64], "k": [1, 4, 40, 64], "v": [1, 4, 40, 64], "m": [1, 1, n, 40]}
    feeds = {name: np.random.default_rng(0).standard_normal(s, np.float32) for name, s in shapes.items()}
    consts = {"root": np.float32(64**-0.25), "zero": np.float32(0), "never": np.float32(-np.inf)}
    nodes = [("Transpose", "k", "kt", {"perm": [0, 1, 3, 2]}), ("Mul", "q root", "qs"), ("Mul", "kt root", "ks"), ("MatMul", "qs ks", "s0")]
    if kind == "added":
        nodes += [("Add", "s0 m", "s"), ("Softmax", "s", "w", {"axis": -1})]
    else:
        feeds["m"] = feeds["m"] > 0
        feeds["m"][..., -1, :] = False
        nodes += [("Where", "m zero never", "n"), ("Add", "s0 n", "s"), ("Softmax", "s", "w0", {"axis": -1})]
        nodes += [("IsNaN", "w0", "no"), ("Where", "no zero w0", "w")]
    nodes = [helper.make_node(op, i.split(), [o], **(more[0] if more else {})) for op, i, o, *more in [*nodes, ("MatMul", "w v", "y")]]
    shown = {name: [*s[:2], f"{name}_rows", *s[3:]] if is_open and name != "m" else s for name, s in shapes.items()}
    if is_open:
        shown["m"], shown["v"] = [1, 1, "q_rows", "k_rows"], [1, 4, "k_rows", 64]
    types = {name: TensorProto.BOOL if x.dtype == bool else TensorProto.FLOAT for name, x in feeds.items()}
    inputs = [helper.make_tensor_value_info(name, types[name], s) for name, s in shown.items()]
    weights = [onnx.numpy_helper.from_array(np.asarray(x), name) for name, x in consts.items()]
    graph = helper.make_graph(nodes, "attention", inputs, [helper.make_empty_tensor_value_info("y")], weights)
    source = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9).SerializeToString()
    text = same(source, feeds, 1)
    assert ("guard=2" in text) == (kind != "added")
    assert "nn.softmax" not in text

# SPDX-License-Identifier: Apache-2.0
"""Weights of products in few bits, where they are asked for: `weights=` of `baton.compile`."""

import numpy as np
import pytest

import baton
from baton import relay

RNG = np.random.default_rng(0)


def weight(n, k):
    return RNG.standard_normal((n, k), "float32") * np.float32(k**-0.5)


def layers(*widths, rows=3):
    """Products with a bias and a function between, and their weights."""
    x = relay.var("x", shape=(rows, widths[0]), dtype="float32")
    y, weights = x, []
    for k, n in zip(widths, widths[1:], strict=False):
        weights.append(weight(n, k))
        y = relay.tanh(relay.nn.bias_add(relay.nn.dense(y, relay.const(weights[-1])), relay.const(np.full(n, 0.1, "float32")), axis=-1))
    return relay.Function([x], y), weights


def run_layers(x, weights):
    for w in weights:
        x = np.tanh(x @ w.T + np.float32(0.1))
    return x


def cosine(a, b):
    a, b = a.astype("float64").ravel(), b.astype("float64").ravel()
    return a @ b / np.sqrt((a @ a) * (b @ b))


def compiled(function, weights, **more):
    return baton.compile(baton.IRModule.from_expr(function), weights=weights, **more)


@pytest.mark.parametrize("weights, least", [("int8", 0.9999), ("int8:256", 0.9999), ("int4", 0.98), ("int4:128", 0.975), ("exact", 0.9999999)])
def test_results_follow_float32(weights, least):
    function, w = layers(256, 512, 100, rows=5)
    x = RNG.standard_normal((5, 256), "float32")
    assert cosine(compiled(function, weights)(x).numpy(), run_layers(x, w)) >= least


def test_numbers_are_those_of_the_formula():
    """A block's numbers are whole steps of a scale that float16 holds, from a zero point: NumPy says the same."""
    w = weight(96, 64)
    x = RNG.standard_normal((2, 64), "float32")
    blocks = w.reshape(96, 2, 32)
    low, high = np.minimum(blocks.min(2), 0), np.maximum(blocks.max(2), 0)
    scale = ((high - low) / np.float32(15)).astype("float16").astype("float32")
    zero = np.clip(np.rint(-low / scale), 0, 15)
    numbers = np.clip(np.rint(blocks / scale[..., None]) + zero[..., None], 0, 15)
    want = ((numbers - zero[..., None]) * scale[..., None]).reshape(96, 64)
    v = relay.var("x", shape=(2, 64), dtype="float32")
    made = compiled(relay.Function([v], relay.nn.dense(v, relay.const(w))), "int4")
    np.testing.assert_allclose(made(x).numpy(), x @ want.T, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("columns", [1, 31, 32, 33, 100])
@pytest.mark.parametrize("weights", ["int4", "int8"])
def test_any_number_of_outputs(columns, weights):
    k = 4096 // columns // 32 * 32 + 4096
    w, x = weight(columns, k), RNG.standard_normal((2, k), "float32")
    v = relay.var("x", shape=(2, k), dtype="float32")
    got = compiled(relay.Function([v], relay.nn.dense(v, relay.const(w))), weights)(x).numpy()
    assert cosine(got, x @ w.T) > 0.98


@pytest.mark.parametrize("k", [64, 72, 136])
def test_a_last_block_may_be_short(k):
    w, x = weight(96, k), RNG.standard_normal((3, k), "float32")
    v = relay.var("x", shape=(3, k), dtype="float32")
    assert cosine(compiled(relay.Function([v], relay.nn.dense(v, relay.const(w))), "int8")(x).numpy(), x @ w.T) > 0.9999


def test_a_row_is_the_same_in_any_batch():
    w = weight(200, 128)
    v = relay.var("x", relay.TensorType((relay.Any(), 128), "float32"))
    model = compiled(relay.Function([v], relay.nn.dense(v, relay.const(w))), "int4")
    x = RNG.standard_normal((70, 128), "float32")
    whole = model(x).numpy()
    for n in (1, 2, 3, 7, 8, 9, 33):
        np.testing.assert_array_equal(model(x[:n]).numpy(), whole[:n])


def test_artifacts_hold_few_bits(tmp_path):
    function, w = layers(1024, 1024, 1024)
    x = RNG.standard_normal((3, 1024), "float32")
    floats = sum(v.nbytes for v in w)
    for weights, share in (("int8", 0.28), ("int4", 0.16)):
        model = compiled(function, weights)
        model.save(tmp_path / "m.so")
        assert (tmp_path / "m.so").stat().st_size < share * floats + (64 << 10)
        np.testing.assert_array_equal(baton.load(tmp_path / "m.so")(x).numpy(), model(x).numpy())


def test_a_table_that_is_a_weight_too_is_stored_once(tmp_path):
    table = weight(2000, 256)
    ids = relay.var("ids", shape=(4,), dtype="int64")
    rows = relay.take(relay.const(table), ids, axis=0)
    function = relay.Function([ids], relay.Tuple([rows, relay.nn.dense(relay.tanh(rows), relay.const(table))]))
    model = compiled(function, "int8")
    at = np.array([0, 7, 1999, 7])
    rows, y = model(at)
    assert cosine(rows.numpy(), table[at]) > 0.9999
    assert cosine(y.numpy(), np.tanh(table[at]) @ table.T) > 0.9999
    model.save(tmp_path / "m.so")
    assert (tmp_path / "m.so").stat().st_size < 0.28 * table.nbytes + (64 << 10)


def test_what_is_not_finite_and_what_is_small_stays_as_it_is():
    w = weight(128, 64)
    w[3, 5] = np.inf
    tiny = weight(8, 16)
    v, u = relay.var("x", shape=(2, 64), dtype="float32"), relay.var("u", shape=(2, 16), dtype="float32")
    function = relay.Function([v, u], relay.Tuple([relay.nn.dense(v, relay.const(w)), relay.nn.dense(u, relay.const(tiny))]))
    x, y = np.abs(RNG.standard_normal((2, 64), "float32")), RNG.standard_normal((2, 16), "float32")
    for a, b in zip(compiled(function, "int4")(x, y), compiled(function, "exact")(x, y), strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_scales_beyond_float16_are_float32():
    for factor in (1e-9, 1e9):
        w, x = weight(128, 64) * np.float32(factor), RNG.standard_normal((2, 64), "float32")
        v = relay.var("x", shape=(2, 64), dtype="float32")
        assert cosine(compiled(relay.Function([v], relay.nn.dense(v, relay.const(w))), "int8")(x).numpy(), x @ w.T) > 0.9999


@pytest.mark.parametrize("weights", ["int3", "int4:48", "int8:", "", "int4:512", "INT8"])
def test_words_that_mean_nothing(weights):
    function, _ = layers(64, 64)
    with pytest.raises(ValueError, match='weights is .*"exact", "int8" or "int4"'):
        compiled(function, weights)


@pytest.mark.parametrize("options, says", [({"bits": 3}, "bits is 3; it is 2, 4 or 8"), ({"block": 48}, "block is 48; it is 16, 32")])
def test_options_of_the_pass(options, says):
    with pytest.raises(ValueError, match=says):
        relay.transform.QuantizeWeights(**options)


def rounded(x, block):
    """Rows whose blocks are whole numbers, at most 127, of a step each: what products of bytes see."""
    parts = [x[:, i : i + block] for i in range(0, x.shape[1], block)]
    steps = [np.abs(p).max(1, keepdims=True) / np.float32(127) for p in parts]
    return np.concatenate([np.rint(p / s) * s for p, s in zip(parts, steps, strict=True)], 1)


@pytest.mark.parametrize("cpu", ["x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4", None])
@pytest.mark.parametrize("weights, k", [("int8", 128), ("int4", 128), ("int4:128", 136), ("int8:16", 84), ("int4", 66)])
def test_bytes_by_bytes_are_the_product_of_rounded_data(weights, k, cpu):
    """Where the data is on its steps already, rounding it changes nothing: the result is that of the same weights and floats."""
    block = int((weights + ":32").split(":")[1])
    w, x = weight(100, k), rounded(RNG.standard_normal((7, k), "float32"), block)
    v = relay.var("x", relay.TensorType((relay.Any(), k), "float32"))
    function, target = relay.Function([v], relay.nn.dense(v, relay.const(w))), f"llvm -mcpu={cpu}" if cpu else None
    exact, bytes_ = (compiled(function, weights, target=target, activations=a) for a in ("exact", "int8"))
    for rows in (1, 4, 7):
        np.testing.assert_allclose(bytes_(x[:rows]).numpy(), exact(x[:rows]).numpy(), rtol=2e-5, atol=2e-5)
        np.testing.assert_array_equal(bytes_(x[:rows]).numpy(), bytes_(x).numpy()[:rows])
    x = RNG.standard_normal((3, k), "float32")
    assert cosine(bytes_(x).numpy(), exact(x).numpy()) > 0.9999


def test_bytes_by_bytes_keep_what_is_not_finite():
    w, x = weight(64, 128), RNG.standard_normal((4, 128), "float32")
    x[1, 70], x[2, 3], x[3] = np.nan, np.inf, 0
    v = relay.var("x", shape=(4, 128), dtype="float32")
    y = compiled(relay.Function([v], relay.nn.dense(v, relay.const(w))), "int4", activations="int8")(x).numpy()
    assert np.isfinite(y[0]).all() and np.isnan(y[1:3]).all() and (y[3] == 0).all()


def test_a_table_that_is_multiplied_as_bytes_is_stored_once(tmp_path):
    table = weight(2000, 256)
    ids = relay.var("ids", shape=(4,), dtype="int64")
    rows = relay.take(relay.const(table), ids, axis=0)
    function = relay.Function([ids], relay.Tuple([rows, relay.nn.dense(relay.tanh(rows), relay.const(table))]))
    at = np.array([0, 7, 1999, 7])
    for weights, share, least in (("int8", 0.28, 0.9999), ("int4", 0.16, 0.99)):
        model = compiled(function, weights, activations="int8")
        rows, y = model(at)
        np.testing.assert_array_equal(rows.numpy(), compiled(function, weights)(at)[0].numpy())
        assert cosine(rows.numpy(), table[at]) > least and cosine(y.numpy(), np.tanh(table[at]) @ table.T) > least
        model.save(tmp_path / "m.so")
        assert (tmp_path / "m.so").stat().st_size < share * table.nbytes + (64 << 10)


def test_activations_are_for_weights_of_few_bits():
    function, _ = layers(64, 64)
    with pytest.raises(ValueError, match='activations is "int4"; it is "exact" or "int8"'):
        compiled(function, "int8", activations="int4")
    with pytest.raises(ValueError, match='activations is "int8", .* say weights'):
        compiled(function, "exact", activations="int8")
    with pytest.raises(ValueError, match="say it once"):
        compiled(function, "int8", activations="int8", config={"activations": "exact"})

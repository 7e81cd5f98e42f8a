# SPDX-License-Identifier: Apache-2.0
"""RNN, GRU and LSTM of ONNX beside their definition in NumPy: sizes that no vector divides, directions, lengths,
peepholes, clipping, activations; weights are kept once, however long the sequence.
"""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import baton

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(x, r, h, c, peep, clip, after, rb):
    i, o, f, g = np.split(x + h @ r.T, 4, axis=1)
    pi, po, pf = np.split(peep, 3) if peep is not None else (0, 0, 0)
    bound = (lambda v: np.clip(v, -clip, clip)) if clip else (lambda v: v)
    i, f, g = sigmoid(bound(i + pi * c)), sigmoid(bound(f + pf * c)), np.tanh(bound(g))
    c = f * c + i * g
    return sigmoid(bound(o + po * c)) * np.tanh(c), c


def gru(x, r, h, c, peep, clip, after, rb):
    n = h.shape[1]
    z, reset = np.split(sigmoid(x[:, : 2 * n] + h @ r[: 2 * n].T), 2, axis=1)
    inner = reset * (h @ r[2 * n :].T + rb) if after else (reset * h) @ r[2 * n :].T
    return (1 - z) * np.tanh(x[:, 2 * n :] + inner) + z * h, c


def rnn(x, r, h, c, peep, clip, after, rb):
    return np.tanh(x + h @ r.T), c


CELLS = {"LSTM": lstm, "GRU": gru, "RNN": rnn}


def reference(kind, x, w, r, b, h0, c0, peep, lengths, clip, after, direction):
    """Y, Y_h, Y_c as ONNX has them, in float64."""
    steps, batch, _ = x.shape
    gates, hidden, ys, hs, cs = GATES[kind], r.shape[2], [], [], []
    for d in range(w.shape[0]):
        h, c = h0[d].astype(np.float64), c0[d].astype(np.float64)
        y = np.zeros((steps, batch, hidden))
        wb, rb = b[d, : gates * hidden].astype(np.float64), b[d, gates * hidden :].astype(np.float64).copy()
        inner = np.zeros(hidden)
        if kind == "GRU" and after:
            inner, rb[2 * hidden :] = rb[2 * hidden :].copy(), 0
        backward = direction == "reverse" or d == 1
        for t in reversed(range(steps)) if backward else range(steps):
            nh, nc = CELLS[kind](x[t] @ w[d].T + wb + rb, r[d], h, c, None if peep is None else peep[d], clip, after, inner)
            inside = (t < lengths)[:, None]
            y[t] = np.where(inside, nh, 0)
            h, c = np.where(inside, nh, h), np.where(inside, nc, c)
        ys.append(y), hs.append(h), cs.append(c)
    return [np.stack(ys, 1), np.stack(hs), np.stack(cs)]


def model(kind, steps, batch, size, hidden, direction="forward", *, seed=0, peep=False, lengths=False, clip=0.0, after=False, dtype=np.float32, **attrs):
    """(ONNX model, inputs, what it gives)."""
    rng = np.random.default_rng(seed)
    count, gates = 2 if direction == "bidirectional" else 1, GATES[kind]

    def some(*shape):
        return rng.normal(0, 0.5 / np.sqrt(shape[-1]) if len(shape) > 2 else 0.3, shape).astype(dtype)

    x, h0 = rng.standard_normal((steps, batch, size)).astype(dtype), some(count, batch, hidden)
    w, r, b = some(count, gates * hidden, size), some(count, gates * hidden, hidden), some(count, 2 * gates * hidden)
    weights, inputs = {"w": w, "r": r, "b": b, "h0": h0}, ["x", "w", "r", "b", "", "h0"]
    c0, p, given = np.zeros_like(h0), None, np.full(batch, steps)
    if lengths:
        given = rng.integers(1, steps + 1, batch)
        weights["lengths"], inputs[4] = given.astype(np.int32), "lengths"
    if kind == "LSTM":
        c0 = weights["c0"] = some(count, batch, hidden)
        inputs.append("c0")
        if peep:
            p = weights["p"] = some(count, 3 * hidden)
            inputs.append("p")
    if clip:
        attrs["clip"] = clip
    if after:
        attrs["linear_before_reset"] = 1
    outputs = ["y", "yh", "yc"][: 3 if kind == "LSTM" else 2]
    kinds = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.float16): TensorProto.FLOAT16, np.dtype(np.float64): TensorProto.DOUBLE}[np.dtype(dtype)]
    graph = helper.make_graph(
        [helper.make_node(kind, inputs, outputs, hidden_size=hidden, direction=direction, **attrs)],
        "layer",
        [helper.make_tensor_value_info("x", kinds, [steps, batch, size])],
        [helper.make_tensor_value_info(name, kinds, None) for name in outputs],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    wide = [v.astype(np.float64) for v in (x, w, r, b, h0, c0)]
    want = reference(kind, *wide, None if p is None else p.astype(np.float64), given, clip, after, direction)
    return made, x, want[: len(outputs)]


def check(made, x, want, tolerance=2e-5):
    got = baton.compile(made)(x)
    for g, w in zip(got, want, strict=True):
        assert g.shape == w.shape
        np.testing.assert_allclose(g.numpy().astype(np.float64), w, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_directions(kind, direction):
    check(*model(kind, 7, 3, 5, 13, direction))


@pytest.mark.parametrize("hidden", [1, 4, 16, 31, 33, 64, 100])
@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_sizes_that_no_vector_divides(kind, hidden):
    for batch in (1, 2, 8, 9):
        check(*model(kind, 3, batch, 6, hidden, seed=hidden))


def test_large_enough_for_threads():
    check(*model("LSTM", 5, 4, 32, 300))
    check(*model("GRU", 5, 4, 32, 300))


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_lengths(kind, direction):
    check(*model(kind, 9, 5, 4, 20, direction, lengths=True))


def test_peepholes_and_clip():
    check(*model("LSTM", 6, 2, 4, 19, peep=True))
    check(*model("LSTM", 6, 2, 4, 19, "bidirectional", peep=True, lengths=True))
    check(*model("LSTM", 6, 2, 4, 19, clip=0.2))


def test_linear_before_reset():
    check(*model("GRU", 6, 2, 4, 19, after=True))
    check(*model("GRU", 6, 2, 4, 40, "bidirectional", after=True, lengths=True))


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_other_dtypes(kind):
    check(*model(kind, 6, 2, 4, 19, dtype=np.float64), 1e-12)
    check(*model(kind, 6, 2, 4, 19, dtype=np.float16), 4e-3)


def test_other_processors():
    made, x, want = model("LSTM", 4, 3, 5, 21, "bidirectional")
    for cpu in ("x86-64-v2", "x86-64-v3"):
        got = baton.compile(made, target=f"llvm -mcpu={cpu}")(x)
        np.testing.assert_allclose(got[0].numpy(), want[0], rtol=2e-5, atol=2e-5)


ACTIVATIONS = {
    "Relu": lambda x: np.maximum(x, 0),
    "HardSigmoid": lambda x: np.clip(0.2 * x + 0.5, 0, 1),
    "Softsign": lambda x: x / (1 + abs(x)),
    "LeakyRelu": lambda x: np.where(x < 0, 0.01 * x, x),
    "Elu": lambda x: np.where(x < 0, np.exp(x) - 1, x),
    "Softplus": lambda x: np.log(np.exp(x) + 1),
    "ThresholdedRelu": lambda x: np.where(x > 1, x, 0),
    "Sigmoid": sigmoid,
}


@pytest.mark.parametrize("name", list(ACTIVATIONS))
def test_activations(name, monkeypatch):
    f = ACTIVATIONS[name]
    monkeypatch.setitem(CELLS, "RNN", lambda x, r, h, c, *rest: (f(x + h @ r.T), c))
    check(*model("RNN", 5, 2, 4, 17, activations=[name]))


def test_weights_are_kept_once(tmp_path):
    made, _, _ = model("LSTM", 200, 1, 64, 128, "bidirectional")
    weights = sum(numpy_helper.to_array(t).nbytes for t in made.graph.initializer)
    path = tmp_path / "layer.so"
    baton.compile(made).save(path)
    assert path.stat().st_size < 1.05 * weights + (256 << 10)


def test_unknown_activations_are_refused():
    made, _, _ = model("RNN", 2, 1, 2, 2, activations=["Mish"])
    with pytest.raises(baton.UnsupportedError, match="activation `mish`"):
        baton.compile(made)


def test_the_relay_operator_checks_its_operands():
    from baton import relay

    x, r, h = (relay.var(n, shape=s) for n, s in (("x", (5, 2, 12)), ("r", (12, 3)), ("h", (2, 3))))
    attrs = {"cell": "lstm", "functions": ["sigmoid", "tanh", "tanh"], "alpha": [0.0] * 3, "beta": [0.0] * 3}
    good = relay.nn.contrib_recurrence(x, r, h, h, **attrs)
    text = str(relay.transform.InferType()(baton.IRModule.from_expr(relay.Function([x, r, h], good))))
    assert "(Tensor[(5, 2, 3), float32], Tensor[(2, 3), float32], Tensor[(2, 3), float32])" in text
    with pytest.raises(baton.TVMError, match="R2"):
        relay.transform.InferType()(baton.IRModule.from_expr(relay.Function([x, r, h], relay.nn.contrib_recurrence(x, r, h, **attrs))))

# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers as operators; layers of ONNX are in tests/python/frontend/test_recurrent_onnx.py."""

import numpy as np
from cases import Case, Reject, Value, each, f16, f32, f64, i8, i32, i64, rejects, table

TOL = dict(rtol=2e-5, atol=2e-5)
FUNCTIONS = {"sigmoid": lambda v: 1 / (1 + np.exp(-v)), "tanh": np.tanh, "relu": lambda v: np.maximum(v, 0)}
LSTM = dict(cell="lstm", functions=["sigmoid", "tanh", "tanh"], alpha=[0.0] * 3, beta=[0.0] * 3)
GRU = dict(cell="gru", functions=["sigmoid", "tanh"], alpha=[0.0] * 2, beta=[0.0] * 2)
RNN = dict(cell="rnn", functions=["tanh"], alpha=[0.0], beta=[0.0])


def whole(h):
    """(Whole numbers from -127 to 127 of each row, their scale), as a step makes them of float32."""
    h = h.astype(np.float32)
    scale = np.abs(h).max(1, keepdims=True) * np.float32(1 / 127)
    return np.rint(h * (np.float32(127) / np.abs(h).max(1, keepdims=True))).astype(np.int64), scale.astype(np.float64)


def recurrence(
    x, weight, *rest, cell, functions, alpha, beta, clip=0, linear_before_reset=False, backward=False, peepholes=False, lengths=False, bytes=False, zeros=False
):
    """By the definition, in float64."""
    rest = list(rest)
    scale, zero = (rest.pop(0) if bytes else None), (rest.pop(0) if zeros else np.zeros(len(weight), "int64"))

    def product(state, rows):
        if not bytes:
            return state @ w[rows].T
        q, of_row = whole(state)
        return q @ (weight[rows].astype(np.int64) - zero[rows, None]).T * of_row * scale[rows].astype(np.float64)

    dtype, rest = x.dtype, [r.astype(np.float64) for r in rest]
    x, w, h = x.astype(np.float64), weight.astype(np.float64), rest.pop(0)
    c = rest.pop(0) if cell == "lstm" else None
    bias = rest.pop(0) if cell == "gru" and linear_before_reset else 0
    peep = np.split(rest.pop(0), 3) if peepholes else (0, 0, 0)
    steps, hidden, f = x.shape[0], h.shape[1], [FUNCTIONS[name] for name in functions]
    ends = rest.pop(0) if lengths else np.full(h.shape[0], steps)

    def gate(i, v):
        return f[i](np.clip(v, -clip, clip) if clip else v)

    y = np.zeros((steps, *h.shape))
    for t in reversed(range(steps)) if backward else range(steps):
        parts = [x[t][:, i : i + hidden] for i in range(0, x.shape[2], hidden)]
        sums = [product(h, slice(i, i + hidden)) for i in range(0, x.shape[2], hidden)]
        cell_next = c
        if cell == "rnn":
            following = gate(0, parts[0] + sums[0])
        elif cell == "gru":
            z, r = gate(0, parts[0] + sums[0]), gate(0, parts[1] + sums[1])
            inner = r * (sums[2] + bias) if linear_before_reset else product(r * h, slice(2 * hidden, None))
            following = (1 - z) * gate(1, parts[2] + inner) + z * h
        else:
            i, o, forget, g = (p + s for p, s in zip(parts, sums, strict=True))
            cell_next = gate(0, forget + peep[2] * c) * c + gate(0, i + peep[0] * c) * gate(1, g)
            following = gate(0, o + peep[1] * cell_next) * f[2](cell_next)
        inside = (t < ends)[:, None]
        y[t] = np.where(inside, following, 0)
        h = np.where(inside, following, h)
        c = np.where(inside, cell_next, c) if cell == "lstm" else None
    return tuple(v.astype(dtype) for v in ((y, h) if c is None else (y, h, c)))


def unpacked(x, *operands, **attrs):
    """Of panels (hidden / units, hidden, gates, units)."""

    def rows(panels):
        if panels.ndim == 5:  # four terms of a sum side by side
            return panels.transpose(2, 0, 3, 1, 4).reshape(panels.shape[2], -1, panels.shape[1] * 4)[:, :HIDDEN, :HIDDEN].reshape(-1, HIDDEN)
        hidden = panels.shape[1]
        return panels.transpose(2, 0, 3, 1).reshape(panels.shape[2], -1, hidden)[:, :hidden].reshape(-1, hidden)

    if attrs.get("bytes"):
        scale, offset, *rest = operands[1:]
        weight = rows(operands[0])
        np.testing.assert_array_equal(offset, 128 * weight.astype(np.int32).sum(1))
        return recurrence(x, weight, scale, *rest, **attrs)
    if attrs["cell"] == "gru" and not attrs.get("linear_before_reset"):
        return recurrence(x, np.concatenate([rows(operands[0]), rows(operands[1])]), *operands[2:], **attrs)
    return recurrence(x, rows(operands[0]), *operands[1:], **attrs)


ENDS = i64(3).within(0, 4)
HIDDEN = 10
BYTES = dict(bytes=True, rtol=1e-4, atol=1e-4)
STEP = f32(40).within(0.001, 0.003)
POINTS = i32(40).within(-128, 128)


def of_bytes():
    """A weight of bytes (40, 10), in panels of 16 units and 12 terms, and 128 times the sums of its rows."""
    weight = np.random.default_rng(5).integers(-128, 128, (4, HIDDEN, HIDDEN))
    panels = np.pad(weight, ((0, 0), (0, 6), (0, 2))).reshape(4, 1, 16, 3, 4).transpose(1, 3, 0, 2, 4)
    return Value(panels, "int8"), Value(128 * weight.reshape(40, HIDDEN).sum(1), "int32")


test_recurrence = table(
    Case(
        "nn.contrib_recurrence", recurrence, f32(4, 3, 40), f32(40, 10), f32(3, 10), f32(3, 10), backward=each(False, True), clip=each(0.0, 0.5), **LSTM, **TOL
    ),
    Case("nn.contrib_recurrence", recurrence, f32(4, 3, 40), f32(40, 10), f32(3, 10), f32(3, 10), f32(30), peepholes=True, **LSTM, **TOL),
    Case("nn.contrib_recurrence", recurrence, f32(4, 3, 40), f32(40, 10), f32(3, 10), f32(3, 10), f32(30), ENDS, peepholes=True, lengths=True, **LSTM, **TOL),
    Case("nn.contrib_recurrence", recurrence, f32(4, 3, 30), f32(30, 10), f32(3, 10), backward=each(False, True), **GRU, **TOL),
    Case("nn.contrib_recurrence", recurrence, f32(4, 3, 30), f32(30, 10), f32(3, 10), f32(10), ENDS, linear_before_reset=True, lengths=True, **GRU, **TOL),
    Case("nn.contrib_recurrence", recurrence, f32(4, 3, 10), f32(10, 10), f32(3, 10), **RNN, **TOL),
    Case("nn.contrib_recurrence", recurrence, f32(4, 1, 64), f32(64, 64), f32(1, 64), **RNN, **TOL),
    Case("nn.contrib_recurrence", recurrence, f64(4, 3, 10), f64(10, 10), f64(3, 10), **RNN, rtol=1e-12, atol=1e-12),
    Case("nn.contrib_recurrence", recurrence, f16(4, 3, 10), f16(10, 10), f16(3, 10), **RNN, rtol=5e-3, atol=5e-3),
    Case("nn.contrib_recurrence", recurrence, f32(4, 3, 40), i8(40, 10), STEP, f32(3, 10), f32(3, 10), backward=each(False, True), **LSTM, **BYTES),
    Case("nn.contrib_recurrence", recurrence, f32(4, 3, 40), i8(40, 10), STEP, POINTS, f32(3, 10), f32(3, 10), zeros=True, **LSTM, **BYTES),
    Case("nn.contrib_recurrence", recurrence, f32(4, 1, 160), i8(160, 40), f32(160).within(0.001, 0.003), f32(1, 40), f32(1, 40), **LSTM, **BYTES),
    Case("nn.contrib_recurrence", recurrence, f32(4, 3, 30), i8(30, 10), f32(30).within(0.001, 0.003), f32(3, 10), **GRU, **BYTES),
    Case("nn.contrib_recurrence", recurrence, f32(4, 3, 10), i8(10, 10), f32(10).within(0.001, 0.003), f32(3, 10), **RNN, **BYTES),
    Case("nn.contrib_recurrence_pack", unpacked, f32(4, 3, 40), *of_bytes()[:1], STEP, *of_bytes()[1:], f32(3, 10), f32(3, 10), **LSTM, **BYTES),
    Case("nn.contrib_recurrence_pack", unpacked, f32(4, 3, 40), f32(1, 10, 4, 16), f32(3, 10), f32(3, 10), **LSTM, **TOL),
    Case("nn.contrib_recurrence_pack", unpacked, f32(4, 3, 30), f32(1, 10, 2, 16), f32(1, 10, 1, 16), f32(3, 10), **GRU, **TOL),
)


def f(*shape):
    return shape, "float32"


REJECTED = {"nn.contrib_recurrence": [f(8, 2)], "nn.contrib_recurrence_pack": [f(1, 2, 4, 8)]}
test_rejects = rejects(
    *[
        row
        for name, weight in REJECTED.items()
        for row in (
            Reject(name, "R1", f(4, 3, 8), *weight, f(3, 2), f(3, 2), says='cell is "lru"', **{**LSTM, "cell": "lru"}),
            Reject(name, "R1", f(4, 3, 8), *weight, f(3, 2), f(3, 2), zeros=True, **LSTM),
            Reject(name, "R3", f(4, 3, 8), *weight, f(8), *[f(8)] * (len(weight[0][0]) == 4), f(3, 2), f(3, 2), bytes=True, **LSTM),
            Reject(name, "R1", f(4, 3, 8), *weight, f(3, 2), f(3, 2), **{**LSTM, "functions": ["tanh"]}),
            Reject(name, "R2", f(4, 3, 8), *weight, f(3, 2), **LSTM),
            Reject(name, "R3", ((4, 3, 8), "int32"), *weight, f(3, 2), f(3, 2), **LSTM),
            Reject(name, "R3", f(4, 8), *weight, f(3, 2), f(3, 2), **LSTM),
            Reject(name, "R3", f(4, 3, 8), *weight, f(3, 2), f(3, 2), f(3), lengths=True, **LSTM),
            Reject(name, "R4", f(4, 3, 8), *weight, f(2, 2), f(2, 2), **LSTM),
            Reject(name, "R4", f(4, 3, 9), *weight, f(3, 2), f(3, 2), **LSTM),
            Reject(name, "R4", f(4, 3, 8), f(*(9 for _ in weight[0][0])), f(3, 2), f(3, 2), **LSTM),
        )
    ]
)

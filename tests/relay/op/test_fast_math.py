# SPDX-License-Identifier: Apache-2.0
"""Approximations: how far from the functions they are, on all floats of a step, and what they do beyond their range."""

import math

import numpy as np
from cases import Case, Reject, Value, evaluate, f16, f32, rejects, table

import baton
from baton import relay

erf = np.vectorize(math.erf, otypes=[np.float64])


def wide(f):
    return lambda x, **kw: np.asarray(f(np.asarray(x).astype(np.float64), **kw)).astype(x.dtype)


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


test_values = table(
    Case("fast_exp", wide(np.exp), f32(3, 17), rtol=3e-7),
    Case("fast_exp", wide(np.exp), f16(9), rtol=1.1e-3),
    Case("fast_tanh", wide(np.tanh), f32(3, 17), rtol=1e-6),
    Case("fast_erf", wide(erf), f32(3, 17), rtol=0, atol=1e-6),
    Case("nn.fast_softmax", wide(softmax), f32(3, 17), rtol=2e-6),
    Case("nn.fast_softmax", wide(softmax), f32(3, 5, 2), rtol=2e-6, axis=1),
    Case(
        "fast_exp",
        lambda x: np.where(np.isnan(x), x, np.exp(np.clip(x, -87.3, 88.3))).astype("float32"),
        Value(np.array([np.nan, np.inf, -np.inf, 1000, -1000, 0.0, -0.0, 88.3, -87.3], "float32")),
        rtol=1e-5,
    ),
    Case("fast_tanh", wide(np.tanh), Value(np.array([np.nan, np.inf, -np.inf, 20, 0.0, -0.0], "float32")), rtol=1e-6),
    Case("fast_erf", wide(erf), Value(np.array([np.nan, np.inf, -np.inf, 20, 0.0, -0.0], "float32")), rtol=1e-6),
)
test_rejects = rejects(
    *[Reject(op, "R1", ((2,), "int32")) for op in ("fast_exp", "fast_tanh", "fast_erf", "nn.fast_softmax")],
    Reject("fast_exp", "R1", ((2,), "float64"), says="32 bits"),
    Reject("nn.fast_softmax", "R2", ((), "float32")),
)


def _errors(op, exact, x):
    v = relay.var("x", shape=x.shape)
    got = evaluate(relay.Function([v], relay.Call(relay.op.get(op), [v])), [baton.nd.array(x)], "graph")[0].astype(np.float64)
    want = exact(x.astype(np.float64))
    return np.abs(got - want), np.abs(want)


def test_documented_bounds():
    """The errors that the operators' documentation promises, at 200,000 places."""
    x = np.linspace(-87.3, 88.3, 200001, dtype="float32")
    absolute, size = _errors("fast_exp", np.exp, x)
    assert (absolute / size).max() < 3e-7
    x = np.concatenate([np.linspace(-8.99, 8.99, 200001, dtype="float32"), np.geomspace(1e-30, 1, 1000, dtype="float32")])
    absolute, size = _errors("fast_tanh", np.tanh, x)
    assert (absolute[size > 0] / size[size > 0]).max() < 5e-7
    absolute, _ = _errors("fast_tanh", np.tanh, np.linspace(-50, 50, 10001, dtype="float32"))
    assert absolute.max() < 1e-6
    absolute, _ = _errors("fast_erf", erf, np.linspace(-6, 6, 200001, dtype="float32"))
    assert absolute.max() < 1e-6

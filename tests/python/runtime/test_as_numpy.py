# SPDX-License-Identifier: Apache-2.0
"""An NDArray in NumPy's expressions: what a program does with a model's result."""

import numpy as np
import pytest

import baton

DATA = np.arange(-3.0, 3.0, dtype="float32").reshape(2, 3)
Y = baton.nd.array(DATA)


@pytest.mark.parametrize("text", [
    "y + 1", "1 - y", "y - y", "y * [1, 2, 3]", "2 / (y + 0.5)", "y // 2", "y % 2", "y ** 2", "2 ** y", "y @ y.T", "np.ones((2, 2)) @ y", "-y", "+y",
    "abs(y)", "y > 0", "0 >= y", "y == 0", "y != 0", "y == np.zeros((2, 3))", "(y > 0) & (y < 2)", "divmod(y, 2)[1]", "np.sin(y)", "np.where(y > 0, y, 0)",
    "y.max()", "y.min(axis=0)", "y.sum(1, keepdims=True)", "y.mean()", "y.std()", "y.argmax(-1)", "y.astype('int64')", "y.clip(0, 1)", "y.T",
    "y.transpose(1, 0)", "y.flatten()", "y.ravel()", "y.round(1)", "y.squeeze()", "y.cumsum()", "(y > 9).any()", "np.linalg.norm(y)", "np.argsort(y)",
    "np.concatenate([y, y])", "np.float64(2) * y", "y[0] + y[1]", "y.astype('int32') << 1",
])  # fmt: skip
def test_an_expression_gives_what_numpy_gives(text):
    got, want = eval(text, {"np": np, "y": Y}), eval(text, {"np": np, "y": DATA})
    assert type(got) is type(want)
    np.testing.assert_array_equal(got, want)


def test_an_expression_leaves_the_array_alone():
    y = baton.nd.array(DATA)
    z = y
    z += 1
    np.testing.assert_array_equal(y.numpy(), DATA)
    np.testing.assert_array_equal(z, DATA + 1)


def test_an_expression_of_relay_takes_the_array_as_a_constant():
    x = baton.relay.var("x", shape=(2, 3))
    assert isinstance(Y + x, baton.relay.Call) and isinstance(x + Y, baton.relay.Call)


def test_two_ndarrays_are_equal_where_they_are_one():
    assert Y == Y and not (Y == baton.nd.array(DATA)) and Y != baton.nd.array(DATA)
    assert Y != None and not (Y == "text") and Y in [Y] and hash(Y) == hash(Y)  # noqa: E711

# SPDX-License-Identifier: Apache-2.0
"""nn.attention against its definition in NumPy, and that a row's bits depend on nothing but itself and the keys that it sees."""

import numpy as np
import pytest
from cases import LEVELS, Case, Reject, Value, each, evaluate, f16, f32, f64, rejects, table
from reference_nn import wide

from baton import relay

TOL = dict(rtol=2e-5, atol=2e-5)


def attention(q, k, v, mask=None, scale=1.0, causal=False, window=0, guard=0, query_layout="BHSD", key_layout="BHSD", value_layout="BHSD", out_layout="BHSD"):
    a, b, c = (np.transpose(wide(x), [layout.index(n) for n in "BHSD"]) for x, layout in ((q, query_layout), (k, key_layout), (v, value_layout)))
    b, c = (np.repeat(x, a.shape[1] // x.shape[1], 1) for x in (b, c))
    rows, keys = a.shape[2], b.shape[2]
    s = a @ np.swapaxes(b, 2, 3) * scale
    if mask is not None:
        s = s + wide(mask)
    if causal:
        place, key = np.arange(rows)[:, None] + keys - rows, np.arange(keys)
        s = np.where((key <= place) & ((place - key < window) | (window == 0)), s, -np.inf)
    with np.errstate(invalid="ignore"):
        e = np.exp(s - s.max(-1, keepdims=True)) if keys else s
    y = (e @ c) / (e.sum(-1, keepdims=True) if keys else 1)
    if guard:
        y = np.where(np.isnan(e.sum(-1, keepdims=True)) if guard == 2 else s.max(-1, keepdims=True) == -np.inf, 0, y)
    return np.transpose(y, ["BHSD".index(n) for n in out_layout]).astype(q.dtype)


def hidden(*shape):
    """A mask that hides about a third of the keys, and never the first."""
    m = np.where(np.random.default_rng(1).random(shape) < 0.3, -np.inf, 0).astype("float32")
    m[..., 0] = 0
    return Value(m)


def blind(*shape):
    """A mask that hides all keys from the second query, and a third of them from others."""
    m = hidden(*shape).array.copy()
    m[..., 1, :] = -np.inf
    return Value(m)


BSHD = dict(query_layout="BSHD", key_layout="BSHD", value_layout="BSHD", out_layout="BSHD")

test_attention = table(
    Case("nn.attention", attention, f32(2, 3, 5, 16), f32(2, 3, 7, 16), f32(2, 3, 7, 16), scale=0.25, **TOL),
    Case("nn.attention", attention, f32(1, 2, 70, 32), f32(1, 2, 130, 32), f32(1, 2, 130, 32), scale=0.2, **TOL),
    Case("nn.attention", attention, f32(1, 2, 200, 8), f32(1, 1, 64, 8), f32(1, 1, 64, 8), name="chunks", **TOL),
    Case("nn.attention", attention, f32(1, 6, 1, 64), f32(1, 2, 65, 64), f32(1, 2, 65, 64), scale=0.125, name="groups", **TOL),
    Case("nn.attention", attention, f32(2, 6, 5, 20), f32(2, 2, 9, 20), f32(2, 2, 9, 11), scale=0.3, name="odd sizes", **TOL),
    Case("nn.attention", attention, f32(1, 1, 3, 80), f32(1, 1, 9, 80), f32(1, 1, 9, 130), scale=0.3, name="wide values", **TOL),
    Case("nn.attention", attention, f32(2, 5, 6, 16), f32(2, 7, 3, 16), f32(2, 7, 3, 16), **BSHD, **TOL),
    Case("nn.attention", attention, f32(2, 6, 5, 16), f32(2, 3, 16, 70), f32(70, 2, 3, 16), key_layout="BHDS", value_layout="SBHD", **TOL),
    Case("nn.attention", attention, f32(2, 6, 16, 5), f32(16, 2, 3, 6), f32(2, 3, 16, 6), query_layout="BHDS", key_layout="DBHS", value_layout="BHDS", out_layout="DSBH", **TOL),
    Case("nn.attention", attention, f32(2, 4, 9, 16), f32(2, 2, 9, 16), f32(2, 2, 9, 16), causal=True, **TOL),
    Case("nn.attention", attention, f32(1, 4, 70, 16), f32(1, 2, 150, 16), f32(1, 2, 150, 16), causal=True, window=each(0, 1, 40, 100), **TOL),
    Case("nn.attention", attention, f32(1, 4, 3, 16), f32(1, 2, 150, 16), f32(1, 2, 150, 16), causal=True, window=70, name="few rows", **TOL),
    Case("nn.attention", attention, f32(2, 4, 9, 16), f32(2, 2, 70, 16), f32(2, 2, 70, 16), hidden(2, 1, 1, 70), **TOL),
    Case("nn.attention", attention, f32(2, 4, 9, 16), f32(2, 2, 70, 16), f32(2, 2, 70, 16), hidden(1, 4, 9, 70), causal=True, **TOL),
    Case("nn.attention", attention, f32(2, 4, 9, 16), f32(2, 2, 70, 16), f32(2, 2, 70, 16), blind(1, 4, 9, 70), guard=each(0, 1, 2), **TOL),
    Case("nn.attention", attention, f32(2, 4, 9, 16), f32(2, 2, 70, 16), f32(2, 2, 70, 16), blind(2, 1, 9, 1), guard=each(1, 2), causal=True, **TOL),
    Case("nn.attention", attention, f32(2, 4, 9, 16), f32(2, 2, 70, 16), f32(2, 2, 70, 16), f32(2, 4, 9, 1), name="one number a row", **TOL),
    Case("nn.attention", attention, f64(2, 4, 5, 16), f64(2, 2, 7, 16), f64(2, 2, 7, 16), f64(1, 1, 5, 7), rtol=1e-12, atol=1e-12),
    Case("nn.attention", attention, f16(2, 4, 5, 16), f16(2, 2, 7, 16), f16(2, 2, 7, 16), rtol=2e-3, atol=1e-3),
    Case("nn.attention", attention, f32(2, 4, 5, 16), f32(2, 2, 0, 16), f32(2, 2, 0, 16), name="no keys"),
    Case("nn.attention", attention, f32(2, 4, 0, 16), f32(2, 2, 3, 16), f32(2, 2, 3, 16), name="no queries"),
    Case("nn.attention", attention, f32(0, 4, 3, 16), f32(0, 2, 3, 16), f32(0, 2, 3, 16), name="no batch"),
    dynamic=True,
)  # fmt: skip

HEADS = [((2, 4, 3, 8), "float32"), ((2, 2, 5, 8), "float32"), ((2, 2, 5, 8), "float32")]

test_rejects = rejects(
    Reject("nn.attention", "R1", *[((2, 4, 3, 8), "int32")] * 3),
    Reject("nn.attention", "R1", *HEADS[:2], ((2, 2, 5, 8), "float64")),
    Reject("nn.attention", "R2", ((4, 3, 8), "float32"), *HEADS[1:]),
    Reject("nn.attention", "R3", *HEADS, key_layout="BHSS", says="BHSS"),
    Reject("nn.attention", "R3", *HEADS, out_layout="BHS"),
    Reject("nn.attention", "R4", HEADS[0], ((2, 2, 5, 9), "float32"), HEADS[2]),
    Reject("nn.attention", "R4", *HEADS[:2], ((2, 2, 6, 8), "float32")),
    Reject("nn.attention", "R5", ((2, 3, 3, 8), "float32"), *HEADS[1:]),
    Reject("nn.attention", "R6", *HEADS, ((2, 4, 3, 4), "float32")),
    Reject("nn.attention", "R7", *HEADS, window=3),
    Reject("nn.attention", "R8", *HEADS, guard=3),
)


def run(q, k, v, target, mask=None, **attrs):
    args = [q, k, v] if mask is None else [q, k, v, mask]
    variables = [relay.var(f"x{i}", shape=a.shape, dtype=str(a.dtype)) for i, a in enumerate(args)]
    return evaluate(relay.Function(variables, relay.nn.attention(*variables, **attrs)), args, "graph", target)[0]


@pytest.mark.parametrize("target", LEVELS, ids=str)
def test_bits_of_a_row_depend_on_itself_and_the_keys_it_sees(target):
    """Rows alone and together, one head of a group and all, a batch, later keys that are hidden: the same bits."""
    rng = np.random.default_rng(0)
    q = rng.standard_normal((2, 6, 150, 24), np.float32)
    k, v = (rng.standard_normal((2, 2, 150, 24), np.float32) for _ in range(2))
    whole = run(q, k, v, target, causal=True, scale=0.3)
    for n in (1, 2, 63, 64, 65, 129, 150):
        np.testing.assert_array_equal(run(q[:, :, n - 1 : n], k[:, :, :n], v[:, :, :n], target, causal=True, scale=0.3), whole[:, :, n - 1 : n])
    np.testing.assert_array_equal(run(q[:, :, 7:100], k[:, :, :100], v[:, :, :100], target, causal=True, scale=0.3), whole[:, :, 7:100])
    np.testing.assert_array_equal(run(q[1:, 3:4], k[1:, 1:], v[1:, 1:], target, causal=True, scale=0.3), whole[1:, 3:4])
    hides = np.where(np.arange(150) <= np.arange(150)[:, None], 0, -np.inf).astype("float32")[None, None]
    np.testing.assert_array_equal(run(q, k, v, target, hides, scale=0.3), whole)
    swapped = {name: "BSHD" for name in ("query_layout", "key_layout", "value_layout", "out_layout")}
    turned = run(*(np.ascontiguousarray(x.transpose(0, 2, 1, 3)) for x in (q, k, v)), target, causal=True, scale=0.3, **swapped)
    np.testing.assert_array_equal(turned.transpose(0, 2, 1, 3), whole)


@pytest.mark.parametrize("target", LEVELS, ids=str)
def test_a_guard_knows_what_is_hidden_from_what_is_not_a_number(target):
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((1, 1, n, 16), np.float32) for n in (4, 100, 100))
    mask = np.zeros((1, 1, 4, 100), np.float32)
    mask[0, 0, 1] = -np.inf
    mask[0, 0, 2, 70] = np.nan
    mask[0, 0, 3, 5] = np.inf
    plain, one, two = (run(q, k, v, target, mask, guard=g)[0, 0] for g in (0, 1, 2))
    assert np.isnan(plain[1:]).all() and (one[1] == 0).all() and np.isnan(one[2:]).all() and (two[1:] == 0).all()
    for guarded in (one, two):
        np.testing.assert_array_equal(guarded[0], plain[0])


@pytest.mark.parametrize("target", LEVELS, ids=str)
def test_special_values_are_those_of_softmax(target):
    """Rows that see nothing are NaN, lowest numbers as masks weigh all keys equally, NaN and infinities stay within their row."""
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((1, 1, n, 16), np.float32) for n in (8, 100, 100))
    mask = np.zeros((1, 1, 8, 100), np.float32)
    mask[0, 0, 1] = -np.inf
    mask[0, 0, 2] = np.finfo(np.float32).min
    mask[0, 0, 3, :70] = -np.inf
    mask[0, 0, 4, 90] = np.nan
    mask[0, 0, 5, 3] = np.inf
    mask[0, 0, 6, :99] = -1e9
    got = run(q, k, v, target, mask)
    with np.errstate(all="ignore"):
        want = attention(q, k, v, mask)
    want[0, 0, 2] = v[0, 0].mean(0)
    assert np.isnan(got[0, 0, [1, 4, 5]]).all()
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    large = run(q * 1e3, k, v, target)
    assert np.isfinite(large).all()
    np.testing.assert_allclose(large, attention((q * 1e3), k, v), rtol=1e-2, atol=1e-3)

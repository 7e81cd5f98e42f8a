# SPDX-License-Identifier: Apache-2.0
"""MergeComposite: tables of patterns, what they may not be, and that merged programs compute the same."""

import numpy as np
import pytest

import baton as tvm
from baton import relay
from baton.relay.dataflow_pattern import is_op, wildcard
from baton.relay.op.contrib import get_pattern_table, register_pattern_table


def _module():
    x, w, b = relay.var("x", shape=(2, 4)), relay.var("w", shape=(3, 4)), relay.var("b", shape=(3,))
    body = relay.nn.relu(relay.nn.dense(x, w) + b) * relay.nn.relu(relay.nn.dense(x, w) - b)
    return relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x, w, b], body)))


def _pattern():
    return is_op("nn.relu")(is_op("nn.dense")(wildcard(), wildcard()) + wildcard())


@pytest.mark.parametrize("kind", ["debug", "graph", "vm"])
def test_computes_the_same(kind):
    mod = _module()
    merged = relay.transform.MergeComposite([("mine", _pattern())])(mod)
    assert "Composite=\"mine\"" in merged.astext() and not merged.same_as(mod)
    rng = np.random.default_rng(0)
    args = [rng.normal(size=s).astype("float32") for s in ((2, 4), (3, 4), (3,))]
    want, got = (relay.create_executor(kind, m).evaluate()(*args).numpy() for m in (mod, merged))
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_tables():
    @register_pattern_table("test_tables")
    def table():
        return [("mine", _pattern(), lambda extract: False), ("yours", _pattern())]

    register_pattern_table("test_tables_plain", [("mine", _pattern())])
    assert [row[0] for row in get_pattern_table("test_tables")] == ["mine", "yours"] and get_pattern_table("nobody") is None
    text = relay.transform.MergeComposite(get_pattern_table("test_tables"))(_module()).astext()
    assert "yours" in text and "mine" not in text
    assert "mine" in relay.transform.MergeComposite("test_tables_plain")(_module()).astext()
    mod = _module()
    assert relay.transform.MergeComposite()(mod).same_as(mod)


def test_wrong_tables():
    with pytest.raises(ValueError, match="no pattern table `nobody`"):
        relay.transform.MergeComposite("nobody")
    with pytest.raises(ValueError, match="got 1 values"):
        relay.transform.MergeComposite([("mine",)])
    with pytest.raises(TypeError):
        relay.transform.MergeComposite([("mine", 3)])


def test_a_check_that_raises():
    def check(extract):
        raise RuntimeError("from the check")

    with pytest.raises(RuntimeError, match="from the check"):
        relay.transform.MergeComposite([("mine", _pattern(), check)])(_module())


@pytest.mark.parametrize(
    ("body", "merged"), [("add(multiply(%next(), 3f), %next())", 1), ("add(%next(), multiply(%next(), 3f))", 0), ("add(%x, multiply(%next(), 3f))", 1)]
)
def test_arguments_with_effects_keep_their_order(body, merged):
    """A function's parameters stand in the order of the pattern: a match that would evaluate operands in another order stays."""
    mod = relay.transform.InferType()(
        relay.fromtext(f"""
        def @main(%x: float32) {{ let %r = ref(%x); let %next = fn () -> float32 {{
            let %v = ref_read(%r); let %u = ref_write(%r, add(%v, 1f)); %v }}; {body} }}""")
    )
    out = relay.transform.MergeComposite([("mine", is_op("add")(is_op("multiply")(wildcard(), wildcard()), wildcard()))])(mod)
    assert out.astext().count("Composite") == merged
    want, got = (relay.create_executor("debug", m).evaluate()(np.float32(0.5)).numpy() for m in (mod, out))
    np.testing.assert_allclose(got, want)

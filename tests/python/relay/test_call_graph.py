# SPDX-License-Identifier: Apache-2.0
"""`relay.analysis.CallGraph` and `extract_fused_functions`."""

import pytest

import baton as tvm
from baton import relay


@pytest.fixture
def module():
    return relay.parse("""#[version = "0.0.5"]
def @leaf(%x: int32) -> int32 { %x }
def @twice(%x: int32) -> int32 { add(@leaf(%x), @leaf(%x)) }
def @loop(%x: int32) -> int32 { if (less(%x, 0)) { %x } else { @loop(subtract(%x, 1)) } }
def @even(%x: int32) -> int32 { @odd(%x) }
def @odd(%x: int32) -> int32 { @even(%x) }
def @main(%x: int32) -> int32 { let %f = @twice; %f(@loop(%x)) }
""")


def test_counts(module):
    graph = relay.analysis.CallGraph(module)
    assert graph.module.same_as(module) and len(graph.functions) == 6
    assert graph.calls("twice") == {"leaf": 2} and graph.global_call_count("twice") == 2 and graph.ref_count("leaf") == 2
    assert graph.calls("main") == {"twice": 1, "loop": 1}
    assert graph.ref_count(graph["loop"]) == 2 and graph.ref_count("main") == 0
    assert [n for n in ("leaf", "twice", "loop", "even", "odd", "main") if graph.is_recursive(n)] == ["loop", "even", "odd"]
    assert "@twice (referred to 1 times): @leaf x2" in str(graph).splitlines()
    with pytest.raises(ValueError, match="no function `nobody`; it has leaf"):
        graph.ref_count("nobody")


def test_fused_functions():
    x = relay.var("x", shape=(2, 3))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(relay.add(x, relay.const(1.0)))))
    found = relay.analysis.extract_fused_functions(mod)
    assert len(found) == 1
    [(key, func)] = found.items()
    assert key == tvm.ir.structural_hash(func) and func.attrs["Primitive"] == 1
    ops = relay.analysis.list_op_freqs(func)
    assert set(ops) == {"add", "nn.relu"}

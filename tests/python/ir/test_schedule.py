# SPDX-License-Identifier: Apache-2.0
"""Contracts: what passes need, establish, keep and destroy; what a schedule inserts and leaves out."""

import json

import pytest

import baton as tvm
from baton import relay
from baton._ffi import get_global_func
from baton.transform import PassContext, Scheduled, Sequential, explain, list_properties, module_pass


def _module():
    return relay.fromtext("""#[version = "0.0.5"]
def @main(%x: Tensor[(4), float32]) { add(exp(%x), multiply(2f, 3f)) }""")


def _remade(mod):
    """An equal module that is another object."""
    return relay.fromtext(mod.astext())


def _pass(name, change=True, **contract):
    return module_pass(lambda mod, ctx: _remade(mod) if change else mod, opt_level=contract.pop("opt_level", 0), name=name, **contract)


def _actions(pass_, mod=None, **context):
    with PassContext(opt_level=3, **context):
        out, text = explain(pass_, mod or _module(), json=True)
    return out, [(row["pass"], row["action"]) for row in json.loads(text) if row["depth"] == 0], json.loads(text)


def test_what_a_pass_needs_is_inserted_once():
    schedule = Scheduled([_pass("A", needs=["Typed"], keeps=["Typed"]), _pass("B", needs=["Typed"]), _pass("C"), _pass("D", needs=["Typed"])])
    _, actions, rows = _actions(schedule)
    assert actions == [("InferType", "inserted"), ("A", "ran"), ("B", "ran"), ("C", "ran"), ("InferType", "inserted"), ("D", "ran")]
    assert rows[0]["why"] == "`A` needs `Typed`" and "Typed" in rows[0]["holds"] and "Typed" not in rows[2]["holds"]


def test_a_pass_that_changes_nothing_keeps_everything():
    _, actions, _ = _actions(Scheduled([_pass("A", needs=["Typed"]), _pass("B", change=False), _pass("C", change=False, needs=["Typed"])]))
    assert actions.count(("InferType", "inserted")) == 1 + 0 or actions == [
        ("InferType", "inserted"),
        ("A", "ran"),
        ("B", "ran"),
        ("InferType", "inserted"),
        ("C", "ran"),
    ]
    _, actions, _ = _actions(Scheduled([_pass("A", change=False, needs=["Typed"]), _pass("B", change=False, needs=["Typed"])]))
    assert actions == [("InferType", "inserted"), ("A", "ran"), ("B", "ran")]


def test_destroys_keeps_all_else():
    _, actions, rows = _actions(
        Scheduled([relay.transform.InferType(), _pass("A", destroys=["ANF"]), _pass("B", destroys=["Typed"]), _pass("C", needs=["Typed"], keeps=["*"])])
    )
    assert actions == [("InferType", "ran"), ("A", "ran"), ("B", "ran"), ("InferType", "inserted"), ("C", "ran")]
    assert rows[1]["holds"] == ["Typed"] and rows[2]["holds"] == []


def test_what_holds_is_left_out_also_when_required():
    infer = relay.transform.InferType()
    skipped = []

    @tvm.instrument.pass_instrument
    class Skips:
        def on_pass_skipped(self, mod, info, reason):
            skipped.append((info.name, reason))

    schedule = Scheduled([infer, infer, _pass("A", required=["InferType"])])
    _, actions, _ = _actions(schedule, instruments=[Skips()])
    assert actions == [("InferType", "ran"), ("InferType", "skipped"), ("InferType", "skipped"), ("A", "ran")]
    assert skipped == [("InferType", "holds already: Typed")] * 2


def test_required_passes_without_a_contract_run_each_time():  # PI-050
    tvm.register_func("relay._transform.TestPlain", lambda: _pass("TestPlain", change=False), override=True)
    _, actions, _ = _actions(Scheduled([_pass("A", required=["TestPlain"]), _pass("B", required=["TestPlain"])]))
    assert actions == [("TestPlain", "inserted"), ("A", "ran"), ("TestPlain", "inserted"), ("B", "ran")]


def test_the_end_is_established():
    out, actions, rows = _actions(Scheduled([_pass("A")], ends_with=["Typed"], name="S"))
    assert actions == [("A", "ran"), ("InferType", "inserted")] and rows[1]["why"] == "the end of `S` needs `Typed`"
    assert str(get_global_func("transform.CheckProperty")("Typed", out)) == ""


def test_gating_is_the_same_as_in_a_sequence():
    schedule = Scheduled([_pass("High", opt_level=4), _pass("Off"), _pass("On")])
    _, actions, rows = _actions(schedule, disabled_pass=["Off"])
    assert actions == [("High", "skipped"), ("Off", "skipped"), ("On", "ran")]
    assert [r["why"] for r in rows[:2]] == ["needs opt_level 4, the context has 3", "disabled by the context"]


def test_needs_that_nobody_establishes_are_checked():
    tvm.register_func("relay._transform.TestNeedy", lambda: _pass("TestNeedy", needs=["WellFormed"]), override=True)
    _, actions, _ = _actions(Scheduled([_pass("A", needs=["WellFormed"])]))
    assert actions == [("A", "ran")]
    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
    bad = tvm.IRModule({"main": relay.Function([x], y)})
    with pytest.raises(ValueError, match="`A` needs `WellFormed`, which does not hold"):
        Scheduled([_pass("A", needs=["WellFormed"])])(bad)


def test_unknown_properties_and_cycles_are_errors():
    with pytest.raises(ValueError, match="there is no property `Typd`; did you mean `Typed`"):
        Scheduled([_pass("A", needs=["Typd"])])(_module())
    with pytest.raises(ValueError, match="there is no property `Typd`"):
        Scheduled([], ends_with=["Typd"])
    tvm.register_func("relay._transform.TestRingA", lambda: _pass("TestRingA", required=["TestRingB"]), override=True)
    tvm.register_func("relay._transform.TestRingB", lambda: _pass("TestRingB", required=["TestRingA"]), override=True)
    with pytest.raises(ValueError, match="TestRingA -> TestRingB -> TestRingA"):
        Scheduled([_pass("User", required=["TestRingA"])])(_module())
    assert PassContext.current().opt_level == 2


def test_properties_are_described():
    known = list_properties()
    assert {"Typed", "WellFormed", "ANF"} <= set(known) and all(known.values())


@pytest.mark.parametrize(
    ("prop", "good", "bad"),
    [
        ("Typed", "InferType", None),
        ("ANF", "def @main(%x: Tensor[(2), float32]) { let %a = exp(%x); %a }", "def @main(%x: Tensor[(2), float32]) { exp(exp(%x)) }"),
    ],
)
def test_checkers(prop, good, bad):
    check = get_global_func("transform.CheckProperty")
    if bad is None:
        assert "has no type" in str(check(prop, _module()))
        assert str(check(prop, relay.transform.InferType()(_module()))) == ""
    else:
        head = '#[version = "0.0.5"]\n'
        assert str(check(prop, relay.fromtext(head + good))) == "" and "call of exp" in str(check(prop, relay.fromtext(head + bad)))


def test_sequences_explain_too():
    seq = Sequential([relay.transform.FoldConstant(), Sequential([relay.transform.FuseOps()], name="inner")])
    with PassContext(opt_level=1):
        _, text = explain(seq, relay.transform.InferType()(_module()))
    lines = [line.split()[:2] for line in text.splitlines()]
    assert lines == [["FoldConstant", "skipped"], ["inner", "ran"], ["InferType", "inserted"], ["FuseOps", "ran"]]
    assert text.splitlines()[2].startswith("  InferType")


def test_what_folding_compiles_is_not_explained():
    import numpy as np

    x, ones = relay.var("x", shape=(4,)), relay.const(np.ones((64, 512), "float32"))
    mod = tvm.IRModule({"main": relay.Function([x], relay.add(x, relay.sum(relay.nn.dense(ones, relay.add(ones, ones)))))})
    with PassContext(opt_level=3):
        _, text = explain(Sequential([relay.transform.InferType(), relay.transform.FoldConstant()]), mod)
    assert [line.split()[0] for line in text.splitlines()] == ["InferType", "FoldConstant"]


def test_passes_join_built_in_pipelines():  # GE-007, GE-003
    made = []

    def make(name):
        @relay.transform.function_pass(opt_level=0, name=name, keeps=["*"])
        def body(func, mod, ctx):
            made.append(name)
            return func

        tvm.register_func("relay._transform." + name, lambda: body, override=True)

    def order():
        with PassContext(opt_level=3):
            _, text = explain(get_global_func("driver.DefaultPipeline")(), _module())
        return [line.split()[0] for line in text.splitlines() if not line.startswith(" ") and line.split()[0] != "InferType"]

    plain = order()
    for name in ("TestJoinA", "TestJoinB", "TestJoinC", "TestJoinD"):
        make(name)
    try:
        tvm.transform.join_pipeline("TestJoinA", before="FuseOps")
        tvm.transform.join_pipeline("TestJoinB", before="FuseOps")
        tvm.transform.join_pipeline("TestJoinC", after="FoldConstant")
        tvm.transform.join_pipeline("TestJoinD")
        joined = order()
        assert [n for n in joined if not n.startswith("TestJoin")] == plain
        at = joined.index("FuseOps")
        assert joined[at - 5 : at + 2] == ["FoldConstant", "TestJoinC", "NarrowWeights", "TestJoinA", "TestJoinB", "FuseOps", "TestJoinD"]
        relay.build(_module(), target="llvm")
        assert made.count("TestJoinA") >= 2
        tvm.transform.leave_pipeline("TestJoinA")
        assert "TestJoinA" not in order()
        tvm.transform.join_pipeline("TestJoinA", before="FuseOp")
        with pytest.raises(ValueError, match="`TestJoinA` joined `DefaultPipeline` beside the pass `FuseOp`.*did you mean `FuseOps`"):
            order()
    finally:
        for name in ("TestJoinA", "TestJoinB", "TestJoinC", "TestJoinD"):
            tvm.transform.leave_pipeline(name)
    assert order() == plain
    with pytest.raises(ValueError, match="Cannot find relay._transform.TestNobody"):
        tvm.transform.join_pipeline("TestNobody")
    with pytest.raises(ValueError, match="not both"):
        tvm.transform.join_pipeline("TestJoinA", before="FuseOps", after="FuseOps")


def _work():
    return int(get_global_func("relay.analysis.infer_type_work")())


@pytest.mark.parametrize("layers", [1, 12])
def test_the_default_pipeline_infers_little(layers):
    """At most 40% of the inference that inferring everything after every pass would do, counted in expressions."""
    body = "%x"
    lines = []
    for i in range(layers):
        lines += [
            f"  %{4 * i} = nn.dense({body}, %w, units=8);",
            f"  %{4 * i + 1} = nn.bias_add(%{4 * i}, %b);",
            f"  %{4 * i + 2} = nn.relu(%{4 * i + 1});",
            f"  %{4 * i + 3} = add(%{4 * i + 2}, multiply(2f, 3f));",
        ]
        body = f"%{4 * i + 3}"
    mod = relay.fromtext(
        '#[version = "0.0.5"]\ndef @main(%x: Tensor[(4, 8), float32], %w: Tensor[(8, 8), float32], '
        "%b: Tensor[(8), float32]) {\n" + "\n".join(lines) + f"\n  nn.softmax({body})\n}}"
    )
    every = []

    @tvm.instrument.pass_instrument
    class After:
        def run_after_pass(self, mod, info):
            if info.name not in ("InferType", "DefaultPipeline", "DecomposeAll", "FoldScaleAxis"):
                every.append(sum(int(relay.analysis.count_nodes(f)) for f in mod.functions.values()))

    with PassContext(opt_level=3, instruments=[After()]):
        pipeline = get_global_func("driver.DefaultPipeline")()
        before = _work()
        pipeline(mod)
        done = _work() - before
    assert 0 < done <= 0.4 * sum(every), (done, sum(every))

# SPDX-License-Identifier: Apache-2.0
"""`baton.History`: every step is kept, comparable, and can be run again."""

import json

import numpy as np
import pytest

import baton as tvm
from baton import relay
from baton._ffi import get_global_func
from baton.transform import PassContext, Scheduled, Sequential, module_pass, parse_pipeline

TEXT = """#[version = "0.0.5"]
def @main(%x: Tensor[(4, 8), float32]) {
  %0 = add(%x, multiply(2f, 3f));
  %1 = nn.relu(%0);
  add(%1, multiply(2f, 3f))
}
"""
PIPELINE = "InferType,FoldConstant,EliminateCommonSubexpr,FuseOps"


def _module():
    return relay.fromtext(TEXT)


def _run(text=PIPELINE, level=3, **options):
    with tvm.History() as h, PassContext(opt_level=level, **options):
        out = parse_pipeline(text)(_module())
    return h, out


def _noop(name):
    return module_pass(lambda mod, ctx: mod, opt_level=0, name=name)


def test_steps_name_what_ran():
    h, out = _run()
    assert h[0].name == "pipeline" and h[0].scope == "sequence" and h[0].parent is None and h[0].depth == 0
    listed = [s for s in h if s.parent is not None and s.parent.index == 0]
    assert [s.name for s in listed if s.action == "ran"] == PIPELINE.split(",")
    fold = h["FoldConstant"]
    assert fold.changed and fold.scope == "function" and fold.depth == 1 and fold.status == "ok" and fold.why == "in the list"
    assert fold.nodes_after < fold.nodes_before and fold.time > 0
    inserted = [s for s in listed if s.action == "inserted"]
    assert inserted and all("requires it" in s.why for s in inserted)
    assert h.module.same_as(out) and h[-1].index == len(h) - 1 and [s.index for s in h] == list(range(len(h)))
    assert h.failed is None


def test_before_and_after_share_what_did_not_change():
    h, out = _run()
    listed = h[0].children
    for one, following in zip(listed, listed[1:], strict=False):
        assert following.before.same_as(one.after)
    unchanged = [s for s in h if not s.changed]
    assert unchanged and all(s.after.same_as(s.before) for s in unchanged)


def test_a_pass_that_runs_several_times_is_named_by_number():
    h, _ = _run("InferType,InferType,FoldConstant,InferType")
    runs = h.runs("InferType")
    assert len(runs) >= 3
    for i, step in enumerate(runs):
        assert h["InferType", i].index == step.index
    assert h["InferType"].index == runs[0].index and h["InferType", -1].index == runs[-1].index
    with pytest.raises(KeyError, match=f"`InferType` ran {len(runs)} times, there is no run 99"):
        h["InferType", 99]
    with pytest.raises(KeyError, match="no step of `FuseOp`"):
        h["FuseOp"]
    with pytest.raises(KeyError, match="did you mean `InferType`"):
        h["InferTyp"]
    with pytest.raises(IndexError, match="there is no step 1000"):
        h[1000]
    with pytest.raises(TypeError, match="a step is named by"):
        h[1.5]
    assert [s.name for s in h[:2]] == [h[0].name, h[1].name] and "InferType" in h and "Nothing" not in h


def test_skipped_passes_say_why():
    h, _ = _run("InferType,FoldConstant,FuseOps", level=1, disabled_pass=["FuseOps"])
    assert h["FoldConstant"].action == "skipped" and "opt_level 2" in h["FoldConstant"].why
    assert h["FuseOps"].why == "disabled by the context" and h["FuseOps"].status == "skipped" and not h["FuseOps"].changed

    @tvm.instrument.pass_instrument
    class No:
        def should_run(self, mod, info):
            return info.name != "FoldConstant"

    h, _ = _run("InferType,FoldConstant", instruments=[No()])
    assert h["FoldConstant"].why == "blocked by should_run of No" and h["FoldConstant"].parent.index == 0


def test_a_schedule_says_what_it_inserted_and_left_out():
    with tvm.History() as h, PassContext(opt_level=3):
        Scheduled([relay.transform.FoldConstant(), relay.transform.InferType()], ends_with=["Typed"])(_module())
    runs = h.runs("InferType")
    assert runs[0].action == "inserted" and runs[0].why == "`FoldConstant` needs `Typed`"
    assert [s.action for s in h[0].children][-1] in ("skipped", "ran")
    assert any(s.action == "skipped" and s.why.startswith("holds already") for s in runs) or len(runs) > 1


def test_nested_contexts_are_seen_and_nest():
    def body(mod, ctx):
        with PassContext(opt_level=0):
            return _noop("Within")(mod)

    with tvm.History() as h:
        module_pass(body, opt_level=0, name="Around")(_module())
    assert [(s.name, s.depth) for s in h] == [("Around", 0), ("Within", 1)]
    assert h["Within"].why == "called by `Around`" and h["Within"].context.opt_level == 0 and h["Around"].why == "called"
    # Constant folding evaluates in a context of its own.
    h, _ = _run("InferType,FoldConstant")
    assert all(s.parent is not None for s in h if s.depth)


def test_a_failed_step_is_kept_with_its_error():
    def body(mod, ctx):
        raise KeyError("lost")

    bad = module_pass(body, opt_level=0, name="Bad")
    with tvm.History() as h, pytest.raises(KeyError):
        Sequential([_noop("First"), bad, _noop("Never")])(_module())
    assert [(s.name, s.status) for s in h] == [("sequential", "failed"), ("First", "ok"), ("Bad", "failed")]
    assert "lost" in h["Bad"].error and h["Bad"].after is None and not h["Bad"].changed and h["Bad"].nodes_after is None
    assert h.failed.name == "Bad" and h.module.same_as(h["Bad"].before)
    with pytest.raises(ValueError, match="`Bad` failed, there is no module after it"):
        h.diff("First", "Bad")
    assert "failed" in h.table() and "lost" in h.table()
    # In C++ too.
    with tvm.History() as h, pytest.raises(tvm.Error):
        relay.transform.InferType()(relay.fromtext('#[version = "0.0.5"]\ndef @main(%x: Tensor[(2), int32], %y: Tensor[(3), int32]) { add(%x, %y) }'))
    assert h.failed.name == "InferType" and h.failed.error


def test_another_instruments_throw_leaves_no_step_open():
    @tvm.instrument.pass_instrument
    class Throws:
        def run_before_pass(self, mod, info):
            if info.name == "Bad":
                raise RuntimeError("no")

    with tvm.History() as h, pytest.raises(RuntimeError), PassContext(instruments=[Throws()]):
        Sequential([_noop("Good"), _noop("Bad")])(_module())
    assert [(s.name, s.status) for s in h] == [("sequential", "failed"), ("Good", "ok"), ("Bad", "failed")]


def test_parallel_function_passes_give_the_same_history():
    functions = {f"f{i}": relay.Function([x := relay.var("x", shape=(4,))], x + relay.const(1.0) * relay.const(float(i))) for i in range(8)}
    inner = relay.transform.InferType()

    @tvm.relay.transform.function_pass(opt_level=0)
    class Inner:
        def transform_function(self, func, mod, ctx):
            return inner(tvm.IRModule({"g": func}))["g"]

    rows = []
    for threads in (1, 4):
        with tvm.History() as h, PassContext(opt_level=3, num_threads=threads):
            Sequential([relay.transform.InferType(), relay.transform.FoldConstant(), Inner()])(tvm.IRModule(functions))
        assert all(s.status in ("ok", "skipped") for s in h)
        rows.append([(s.name, s.depth, s.function, s.action, s.why, s.changed) for s in h])
        assert [s.function for s in h["Inner"].children] == list(functions)
    assert rows[0] == rows[1] and "FoldConstant" in [r[0] for r in rows[0]]


def test_diff_shows_lines_in_one_column_or_two():
    h, _ = _run()
    text = h.diff("FoldConstant")
    assert "multiply" in text and text.startswith("@@") and any(line.startswith("-") for line in text.splitlines())
    assert text == h["FoldConstant"].diff()
    side = h.diff("FoldConstant", fmt="side")
    assert " | " in side or " < " in side
    assert h.diff("FoldConstant", "FoldConstant") == ""
    both = h.diff(h["FoldConstant"].before, h["FuseOps"].after)
    assert both == h.diff(h["FoldConstant"].before, "FuseOps") and both
    with pytest.raises(ValueError, match='fmt is "unified" or "side"'):
        h.diff(0, fmt="html")


def test_table_and_json_have_a_row_a_step():
    h, _ = _run()
    table = h.table().splitlines()
    assert len(table) == len(h) + 1 and table[0].split() == ["#", "pass", "ms", "nodes", "why"]
    assert any("FoldConstant" in row and " -> " in row and "changed" in row for row in table)
    rows = json.loads(h.to_json())
    assert [r["pass"] for r in rows] == [s.name for s in h] and rows[0]["parent"] == -1
    assert repr(h["FoldConstant"]).startswith("<step ")


def test_rerun_goes_on_from_a_step():
    h, out = _run()
    again = h.rerun(from_="FoldConstant")
    assert tvm.ir.structural_equal(again.module, out)
    assert [s.name for s in again if s.action == "ran" and s.depth == 1] == PIPELINE.split(",")[1:]
    again = h.rerun(from_="FoldConstant", skip=["EliminateCommonSubexpr"])
    assert again["EliminateCommonSubexpr"].action == "skipped"
    assert not tvm.ir.structural_equal(again.module, h["FuseOps"].before)
    assert "multiply" in str(h.rerun(from_="InferType", skip=["FoldConstant"]).module)
    with pytest.raises(ValueError, match="skip: `FuseOp` is not among the passes.*did you mean `FuseOps`"):
        h.rerun(from_="FoldConstant", skip=["FuseOp"])
    with pytest.raises(TypeError, match="skip takes a list"):
        h.rerun(from_="FoldConstant", skip="FuseOps")


def test_rerun_goes_on_in_the_sequences_around_and_in_what_followed():
    a, b, c, d = (_noop(n) for n in "ABCD")
    with tvm.History() as h:
        mod = Sequential([a, Sequential([b, relay.transform.FoldConstant(), c], name="inner"), d])(_module())
        mod = relay.transform.InferType()(mod)
        _noop("Other")(_module())  # on another module: not behind it
    again = h.rerun(from_="FoldConstant")
    assert [s.name for s in again if s.action == "ran" and s.scope != "sequence"][-3:] == ["C", "D", "InferType"]
    assert "B" not in again and "Other" not in again and tvm.ir.structural_equal(again.module, mod)
    assert [s.name for s in h.rerun(from_="D") if s.scope != "sequence"] == ["D", "InferType"]


def test_rerun_of_the_default_pipeline():
    mod = _module()
    with tvm.History() as h, PassContext(opt_level=3):
        out = get_global_func("driver.Optimize")(mod, tvm.target.Target("llvm"))
    assert h[0].name == "DefaultPipeline" and h.module.same_as(out)
    again = h.rerun(from_="FuseOps")
    assert tvm.ir.structural_equal(again.module, out)
    apart = h.rerun(from_="SimplifyInference", skip=["FuseOps"])
    assert apart["FuseOps"].action == "skipped" and "Primitive" not in str(apart.module)
    inner = next((s for s in h if s.parent is not None and s.parent.scope == "module"), None)
    if inner is not None:
        with pytest.raises(ValueError, match="which is not a sequence: rerun from step"):
            h.rerun(from_=inner)


def test_it_may_stand_among_instruments_and_ends_with_its_block():
    h = tvm.History("mine")
    with PassContext(instruments=[h]):
        _noop("A")(_module())
    _noop("B")(_module())
    with h:
        _noop("C")(_module())
        with tvm.History() as other:
            _noop("D")(_module())
    _noop("E")(_module())
    assert [s.name for s in h] == ["A", "C", "D"] and [s.name for s in other] == ["D"] and h.name == "mine"
    h.clear()
    assert len(h) == 0 and h
    with pytest.raises(ValueError, match="the history is empty"):
        _ = h.module


def test_prim_funcs_are_kept_as_passes_see_them():
    with tvm.History() as h:
        tvm.compile(_module())
    lowered = [s for s in h if s.name == "UnrollLoop"]
    assert any(len(list(s.before.functions)) for s in h) and "for" in str(get_global_func("ir.AsText")(lowered[0].before))


def test_what_is_kept_is_the_last_module_and_what_changed():
    """60 steps over a transformer: at most 1.5 times the last module and what steps made anew."""
    dim, layers = 16, 4
    x = relay.var("x", shape=(8, dim))
    body = x
    for i in range(layers):
        w = [relay.var(f"w{i}{j}", shape=(dim, dim)) for j in range(4)]
        q, k, v = (relay.nn.dense(body, w[j]) for j in range(3))
        attention = relay.nn.softmax(relay.nn.dense(q, k))
        body = relay.nn.relu(relay.nn.dense(relay.nn.dense(attention, relay.transpose(v)), w[3]) + body)
    mod = tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(body), body))
    names = "InferType,SimplifyInference,FoldConstant,EliminateCommonSubexpr,ToANormalForm,ToGraphNormalForm".split(",")
    h = tvm.History()
    with h, PassContext(opt_level=3):
        parse_pipeline(",".join((names * 12)[:60]))(mod)
    assert sum(s.depth == 1 for s in h) >= 60
    cost, measure = h.cost(), get_global_func("ir.MemoryFootprint")
    assert cost["last_bytes"] == int(measure([h.module])[1]) > 5_000
    for what, copies in (("objects", "copies"), ("bytes", "copied_bytes")):
        held, last, made = cost[what], cost["last_" + what], cost["made_" + what]
        assert 0 < made < held and held <= 1.5 * last + made
        # Nodes that are written anew and equal what was there are no change: each counts against the half.
        assert held <= 1.5 * last + made - cost["made_" + copies], h.copies()
    alone = sum(int(measure([m])[1]) for s in h for m in (s.before, s.after))
    assert cost["bytes"] < alone / 10


def test_what_steps_hold_over_a_model():
    """The default pipeline over an ONNX model: what is held beyond the last module is what steps changed."""
    onnx = pytest.importorskip("onnx")
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)
    dim, nodes, weights, x = 16, [], [], "x"
    for i in range(6):
        for name, shape in (("w", (dim, dim)), ("b", (dim,)), ("scale", (dim,)), ("bias", (dim,))):
            weights.append(numpy_helper.from_array(rng.standard_normal(shape).astype("float32"), f"{name}{i}"))
        nodes += [
            helper.make_node("Transpose", [f"w{i}"], [f"wt{i}"], perm=[1, 0]),
            helper.make_node("MatMul", [x, f"wt{i}"], [f"m{i}"]), helper.make_node("Add", [f"m{i}", f"b{i}"], [f"a{i}"]),
            helper.make_node("LayerNormalization", [f"a{i}", f"scale{i}", f"bias{i}"], [f"n{i}"]),
            helper.make_node("Relu", [f"n{i}"], [f"r{i}"]), helper.make_node("Add", [f"r{i}", x], [f"x{i}"]),
        ]  # fmt: skip
        x = f"x{i}"
    value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, (4, dim))  # noqa: E731
    graph = helper.make_graph(nodes, "g", [value("x")], [value(x)], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    mod = relay.frontend.from_onnx(onnx.load_from_string(model.SerializeToString()), freeze_params=True)
    mod = mod[0] if isinstance(mod, tuple) else mod
    with tvm.History() as h, PassContext(opt_level=3):
        get_global_func("driver.Optimize")(mod, tvm.target.Target("llvm"))
    cost = h.cost()
    assert len(h) > 30 and cost["made_objects"] > 100
    for what, copies in (("objects", "copies"), ("bytes", "copied_bytes")):
        held, last, made = cost[what], cost["last_" + what], cost["made_" + what]
        assert held <= 1.5 * last + made - cost["made_" + copies], h.copies()
    # Types are written once: a program has few that differ.
    functions = [f for f in h.module.functions.values() if type(f).__name__ == "Function"]
    assert functions and int(get_global_func("ir.Copies")(functions).get("relay.TensorType", [0])[0]) <= 4


def test_copies_are_objects_that_say_what_another_one_says():
    x, y = relay.var("x", shape=(2, 3)), relay.var("x", shape=(2, 3))
    one = tvm.IRModule({"main": relay.Function([x], x + x)})
    cost = [int(n) for n in get_global_func("ir.MemoryFootprint")([one])]
    assert [int(n) for n in get_global_func("ir.MemoryFootprint")([one, one])] == cost
    assert [[int(n) for n in row] for row in get_global_func("ir.MemoryFootprintUpTo")([one, one])] == [cost, cost]
    rows = get_global_func("ir.Copies")
    # Two calls with one argument are equal; two variables of one name are not.
    same, other = tvm.runtime.convert([relay.tanh(x), relay.tanh(x)]), tvm.runtime.convert([relay.tanh(x), relay.tanh(y)])
    assert [int(n) for n in rows(same)["relay.Call"]][0] == 1 and "relay.Call" not in rows(other)
    assert "relay.Var" not in rows(other) and int(rows(other)["relay.TensorType"][0]) == 1
    objects, _, _, copies, _ = map(int, get_global_func("ir.MemoryFootprint")(other))
    assert 0 < copies < objects and copies == sum(int(row[0]) for row in rows(other).values())
    h, _ = _run()
    found = h.copies()
    assert sum(n for n, _ in found.values()) == h.cost()["copies"] and sum(b for _, b in found.values()) == h.cost()["copied_bytes"]
    assert [b for _, b in found.values()] == sorted((b for _, b in found.values()), reverse=True)


def test_equal_types_are_one_object():
    mod = relay.transform.InferType()(_module())
    body = mod["main"].body
    assert body.checked_type.same_as(body.args[0].checked_type) and body.checked_type.same_as(mod["main"].params[0].checked_type)

    # What a pass adds later has the types that are there.
    @relay.transform.function_pass(opt_level=0)
    class Exp:
        def transform_function(self, func, mod, ctx):
            return relay.Function(func.params, relay.exp(func.body))

    again = relay.transform.InferType()(Exp()(mod))
    assert again["main"].body.checked_type.same_as(body.checked_type)
    # Dimensions that are not known are equal to themselves alone.
    text = '#[version = "0.0.5"]\ndef @main(%x: Tensor[(?, 2), float32], %y: Tensor[(?, 2), float32]) { (tanh(%x), tanh(%y)) }'
    pair = relay.transform.InferType()(relay.fromtext(text))["main"].body.fields
    assert not pair[0].checked_type.same_as(pair[1].checked_type)

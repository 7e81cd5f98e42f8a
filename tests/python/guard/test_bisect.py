# SPDX-License-Identifier: Apache-2.0
"""`baton.bisect`, `baton.testing.reduce` and the command: which pass, which rewrite, the smallest program."""

import json
import subprocess
import sys

import numpy as np
import pytest
from mutants import attrs, model

import baton
from baton import relay
from baton.guard import compare_modules, count_calls
from baton.transform import module_pass, rewrite_allowed

LONG = """#[version = "0.0.5"]
def @main(%x: Tensor[(4, 6), float32], %y: Tensor[(6), float32]) {
  %0 = add(%x, %y);
  %1 = sum(nn.relu(%0), axis=[0]);
  %2 = sum(multiply(%0, 2f), axis=[1]);
  %3 = sum(tanh(%0), axis=[0]);
  (%1, %2, %3, nn.softmax(%x))
}
"""


def third_sum(count=True):
    """Gets the axis wrong in the last of all sums."""

    @relay.transform.function_pass(opt_level=0, name="ThirdSum")
    class Wrong(relay.ExprMutator):
        def transform_function(self, func, mod, ctx):
            return relay.ExprMutator.visit(self, func)

        def visit_call(self, call):
            new = super().visit_call(call)
            if call.op != relay.op.get("sum") or count and not rewrite_allowed():
                return new
            wrong = getattr(call.args[0].op, "name", "") == "tanh" if isinstance(call.args[0], relay.Call) else True
            return attrs(new, axis=[1]) if wrong else relay.Call(new.op, new.args, new.attrs)

    return Wrong()


def test_pass_rewrite_and_smallest_program():
    result = baton.bisect(LONG, [relay.transform.InferType(), relay.transform.FoldConstant(), third_sum()])
    assert result and result.pass_name == "ThirdSum" and result.function == "main" and result.fault == "result"
    assert (result.rewrite, result.rewrites) == (3, 3) and "sum" in result.rewrite_diff
    assert result.calls <= 2 and "sum" in result.text and result.text.count("\n") < 12
    assert max(int(d) for p in result.module["main"].params for d in p.type_annotation.shape) <= 2, "shapes are small"
    assert compare_modules(result.module, third_sum()(relay.transform.InferType()(result.module)))[0] is not None
    told = str(result)
    assert "pass `ThirdSum`" in told and "rewrite 3 of 3" in told and "replay" not in told, "no name makes this pass"
    plain = json.loads(json.dumps(result.to_json()))
    assert plain["pass"] == "ThirdSum" and plain["program"] == result.text and plain["finding"]["difference"]["path"]


def test_a_pass_that_does_not_count():
    result = baton.bisect(LONG, [third_sum(count=False)])
    assert result.rewrite is None and result.no_rewrite == "the pass does not count its rewrites" and result.calls <= 2
    assert "which rewrite it is cannot be said" in str(result)


def test_nothing_is_wrong():
    result = baton.bisect(LONG)
    assert not result and result.checked > 0 and str(result).startswith("no pass changes results")
    assert result.to_json()["found"] is False


def test_built_in_mutators_count():
    """The rewrites of a pass in C++: with a limit, the first so many are made."""
    run = baton.get_global_func("transform.RunLimited")
    mod = relay.transform.InferType()(relay.fromtext('#[version = "0.0.5"]\ndef @main() { (add(1f, 2f), add(3f, 4f), add(5f, 6f)) }'))
    with baton.transform.PassContext(opt_level=3):
        whole, seen = run(relay.transform.FoldConstant(), mod, -1)
        calls = [count_calls(run(relay.transform.FoldConstant(), mod, n)[0]) for n in range(int(seen) + 1)]
    assert seen >= 3 and calls[0] == 3 and calls[-1] == 0 == count_calls(whole)
    assert all(a - b in (0, 1) for a, b in zip(calls, calls[1:], strict=False))


CONTROL = """#[version = "0.0.5"]
def @main(%x: Tensor[(4), float32], %c: bool) {
  %0 = add(%x, 1f);
  let %v = add(add(%0, 1f), 1f);
  let %w = if (%c) { exp(%v) } else { tanh(%v) };
  let %f = fn(%y: Tensor[(4), float32]) -> Tensor[(4), float32] { negative(%y) };
  (%f(%w), (%w, %v).1, if (%c) { %x } else { %v })
}
"""


def by_pattern(pattern, make, name="ByPattern"):
    """A pass that rewrites what a pattern matches: `make(post, node_map)`, or None to leave it."""
    from baton.relay.dataflow_pattern import DFPatternCallback, rewrite

    class Callback(DFPatternCallback):
        def __init__(self):
            super().__init__()
            self.pattern = pattern

        def callback(self, pre, post, node_map):
            made = make(post, node_map)
            return post if made is None else made

    @relay.transform.function_pass(opt_level=0, name=name)
    def run(func, mod, ctx):
        return rewrite(Callback(), func)

    return run


def _pattern_passes():
    from baton.relay import dataflow_pattern as p

    x, y = p.wildcard(), p.wildcard()
    return {
        "call": (p.is_op("add")(x, p.is_constant()), lambda post, m: relay.subtract(m[x][0], relay.const(1.0)), 3),
        "tuple": (p.is_tuple([x, y]), lambda post, m: relay.Tuple([m[y][0], m[y][0]]) if not m[x][0].same_as(m[y][0]) else None, 1),
        "projection": (p.is_tuple_get_item(p.is_tuple([x, y]), 1), lambda post, m: m[y][0], 1),
        "constant": (p.is_constant(), lambda post, m: relay.const(2.0) if float(post.data.numpy()) == 1 else None, 3),
        "if": (p.is_if(p.wildcard(), x, y), lambda post, m: m[x][0], 2),
        "let": (p.is_let(p.is_var("w"), x, y), lambda post, m: relay.Let(post.var, relay.tanh(post.value), post.body)
                if getattr(getattr(post.value, "op", None), "name", "") != "tanh" else None, 1),
        "function": (p.FunctionPattern([p.wildcard()], p.is_op("negative")(x)),
                     lambda post, m: relay.Function(list(post.params), relay.abs(post.body.args[0]), post.ret_type), 1),
    }  # fmt: skip


@pytest.mark.parametrize("kind", ["call", "tuple", "projection", "constant", "if", "let", "function"])
def test_rewrites_of_patterns_count(kind):
    """Whatever a pattern matches: with a limit of n, the first n rewrites are made, each of its own, in every round."""
    run = baton.get_global_func("transform.RunLimited")
    mod = relay.transform.InferType()(relay.fromtext(CONTROL))
    pattern, make, count = _pattern_passes()[kind]
    whole, seen = run(by_pattern(pattern, make), mod, -1)
    assert int(seen) == count and not same(whole, mod)
    steps = [run(by_pattern(pattern, make), mod, n)[0] for n in range(count + 1)]
    assert same(steps[0], mod) and same(steps[-1], whole)
    assert all(not same(a, b) for a, b in zip(steps, steps[1:], strict=False))
    assert all(relay.analysis.well_formed(step) for step in steps)


def same(a, b):
    return baton.ir.structural_equal(a, b, map_free_vars=True)


def test_partitions_count():
    from baton.relay import dataflow_pattern as p

    run = baton.get_global_func("transform.RunLimited")
    mod = relay.transform.InferType()(relay.fromtext(CONTROL))

    @relay.transform.function_pass(opt_level=0, name="Parts")
    def parts(func, m, ctx):
        return p.partition(p.is_if(p.wildcard(), p.wildcard(), p.wildcard()), func)

    whole, seen = run(parts, mod, -1)
    assert int(seen) == str(whole).count("PartitionedFromPattern") == 2
    assert [str(run(parts, mod, n)[0]).count("PartitionedFromPattern") for n in range(3)] == [0, 1, 2]


def test_the_rewrite_of_a_pattern_that_is_wrong_is_named():
    """The second of three: `x + 1` becomes `x - (-1)`, but for the one that is added to a sum."""
    from baton.relay import dataflow_pattern as p

    x = p.wildcard()

    def make(post, m):
        inner = m[x][0]
        wrong = isinstance(inner, relay.Call) and inner.op == relay.op.get("subtract") and isinstance(inner.args[0], relay.Var)
        return relay.subtract(inner, relay.const(1.0 if wrong else -1.0))

    result = baton.bisect(CONTROL, [relay.transform.InferType(), by_pattern(p.is_op("add")(x, p.is_constant()), make)])
    assert result and result.pass_name == "ByPattern" and (result.rewrite, result.rewrites) == (2, 3)
    assert "subtract" in result.rewrite_diff and result.calls <= 2


class Boom(LookupError):
    pass


def test_a_pass_that_throws():
    @module_pass(opt_level=0, name="Throws")
    def throws(mod, ctx):
        found = []
        relay.analysis.post_order_visit(mod["main"], lambda n: found.append(n) if getattr(n, "op", None) == relay.op.get("tanh") else None)
        if found:
            raise Boom("tanh is not for me")
        return mod

    result = baton.bisect(LONG, [relay.transform.InferType(), throws])
    assert (result.fault, result.pass_name, result.calls) == ("error", "Throws", 1) and "tanh is not for me" in result.error
    assert "tanh" in result.text and "fails" in str(result)


def test_a_pass_that_makes_no_program():
    @module_pass(opt_level=0, name="Loose")
    def loose(mod, ctx):
        main = mod["main"]
        if isinstance(main.body, relay.Tuple):
            mod["main"] = relay.Function([], main.body)
        return mod

    result = baton.bisect(LONG, [relay.transform.InferType(), loose])
    assert result.fault == "error" and result.pass_name == "Loose" and result.calls == 0


@pytest.mark.parametrize("name", ["cnn", "attention", "numbers", "control"])
def test_reduce_keeps_what_is_asked_for(name):
    """Reliability 34: at least tenfold where that is possible, and the predicate holds for every module it is true of."""
    wanted = {"cnn": "nn.max_pool2d", "attention": "erf", "numbers": "cumsum", "control": "multiply"}[name]
    asked = []

    def predicate(mod):
        asked.append(mod)
        return f"{wanted}(" in str(mod)

    mod = relay.transform.InferType()(model(name))
    small = baton.testing.reduce(mod, predicate)
    assert predicate(small) and count_calls(small) == 1 and count_calls(mod) >= 10
    assert len(small["main"].params) <= 2 and all(m["main"].checked_type is not None for m in asked)


def test_reduce_over_functions_state_and_data():
    mod = model("control")
    small = baton.testing.reduce(mod, lambda m: "ref_write(" in str(m))
    assert count_calls(small) == 0 and len(small.functions) == 1
    small = baton.testing.reduce(mod, lambda m: "@loop(" in str(m["loop"]))
    assert [v.name_hint for v in small.functions] in (["main"], ["loop", "main"], ["main", "loop"])


def test_reduce_refuses_what_is_not_so():
    with pytest.raises(ValueError, match="not true for the module"):
        baton.testing.reduce(model("numbers"), lambda m: False)


def test_reduce_stops_at_its_budget():
    asked = []
    baton.testing.reduce(model("numbers"), lambda m: asked.append(m) or True, budget=5)
    assert len(asked) == 5


PLUGIN = """
import baton
from baton import relay

@relay.transform.function_pass(opt_level=0)
class DropRelu(relay.ExprMutator):
    def transform_function(self, func, mod, ctx):
        return self.visit(func)

    def visit_call(self, call):
        new = super().visit_call(call)
        return new.args[0] if call.op == relay.op.get("nn.relu") and baton.transform.rewrite_allowed() else new

baton.register_func("relay._transform.DropRelu", DropRelu)
"""


def command(folder, *args, stdin=None):
    return subprocess.run([sys.executable, "-m", "baton", *args], cwd=folder, capture_output=True, text=True, input=stdin)


def test_the_command(tmp_path):
    (tmp_path / "in.relay").write_text(LONG)
    (tmp_path / "wrong.py").write_text(PLUGIN)
    done = command(tmp_path, "bisect", "in.relay", "--load", "wrong.py", "--passes", "FoldConstant,DropRelu", "-o", "bug.relay")
    assert done.returncode == 1 and done.stderr == ""
    assert "pass `DropRelu`" in done.stdout and "rewrite 1 of 1" in done.stdout
    replay = next(line for line in done.stdout.splitlines() if line.startswith("replay: baton "))
    words = replay.removeprefix("replay: baton ").replace("'", "").split()
    assert words[:4] == ["bisect", "bug.relay", "--passes", "DropRelu"]
    again = command(tmp_path, *words, "--json")
    found = json.loads(again.stdout)
    assert again.returncode == 1 and found["pass"] == "DropRelu" and found["calls"] == 1
    sound = command(tmp_path, "bisect", "-", "--json", stdin=LONG)
    assert sound.returncode == 0 and json.loads(sound.stdout)["found"] is False
    wrong = command(tmp_path, "bisect", "in.relay", "--passes", "FoldConstan")
    assert wrong.returncode == 2 and "did you mean `FoldConstant`" in wrong.stderr
    wrong = command(tmp_path, "bisect", "in.relay", "--kind", "odd")
    assert wrong.returncode == 2 and "ordinary" in wrong.stderr
    wrong = command(tmp_path, "bisect", "in.relay", "--load", "none.py")
    assert wrong.returncode == 1 and "none.py" in wrong.stderr


def test_opt_with_the_guard(tmp_path):
    (tmp_path / "in.relay").write_text(LONG)
    plain = command(tmp_path, "opt", "in.relay", "--passes", "InferType,FoldConstant,FuseOps")
    guarded = command(tmp_path, "opt", "in.relay", "--passes", "InferType,FoldConstant,FuseOps", "--guard")
    assert guarded.returncode == 0 and guarded.stdout == plain.stdout


def test_the_command_on_an_onnx_model(tmp_path):
    onnx = pytest.importorskip("onnx")
    from onnx import TensorProto, helper, numpy_helper

    weight = numpy_helper.from_array(np.random.default_rng(0).standard_normal((3, 5)).astype("float32"), "w")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Relu", ["h"], ["y"])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 5])], [weight])  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    (tmp_path / "wrong.py").write_text(PLUGIN + 'baton.transform.join_pipeline("DropRelu", before="FuseOps")\n')
    assert command(tmp_path, "bisect", "m.onnx").returncode == 0
    done = command(tmp_path, "bisect", "m.onnx", "--load", "wrong.py", "--json")
    found = json.loads(done.stdout)
    assert done.returncode == 1 and found["pass"] == "DropRelu" and found["calls"] == 1 and "nn.relu" in found["program"]

# SPDX-License-Identifier: Apache-2.0
"""The pass system as a whole (GE): one framework for every layer, pipelines of one's own, analysis and rewriting alike."""

from pathlib import Path

import pytest

import baton as tvm
from baton import relay, tir
from baton.instrument import pass_instrument
from baton.transform import PassContext, Sequential, module_pass


def _module():
    mod = relay.fromtext("""#[version = "0.0.5"]
def @main(%x: Tensor[(4), float32]) { let %unused = exp(%x); add(%x, multiply(2f, 3f)) }""")
    n = tir.Var("n", "int64")
    mod[relay.GlobalVar("loops")] = tir.PrimFunc([n], tir.For(tir.Var("i", "int64"), 0, 1, 0, tir.Evaluate(n)))
    return mod


def test_one_framework_serves_every_layer():  # GE-002, GE-003, GE-005
    seen = []

    @pass_instrument
    class Names:
        def run_after_pass(self, mod, info):
            seen.append(info.name)

    mine = module_pass(lambda mod, ctx: mod, opt_level=1, name="Mine", required=["FoldConstant"])
    with PassContext(opt_level=1, instruments=[Names()]):
        out = Sequential([tir.transform.Simplify(), mine, relay.transform.DeadCodeElimination(), relay.transform.FuseOps()])(_module())
    assert seen == ["Simplify", "FoldConstant", "Mine", "DeadCodeElimination", "InferType", "FuseOps", "sequential"]
    assert "6f" in out.astext() and "exp" not in out.astext() and not isinstance(out["loops"].body, tir.For)


def test_inference_and_folding_are_passes():  # GE-013
    out = relay.transform.FoldConstant()(relay.transform.InferType()(_module()))
    assert "6f" in out.astext()


def test_a_pass_may_collect_what_it_sees():  # GE-001, GE-014
    @relay.transform.function_pass(opt_level=0)
    class Operators:
        def __init__(self):
            self.names = []

        def transform_function(self, func, mod, ctx):
            relay.analysis.post_order_visit(func, lambda e: self.names.append(str(e.op.name)) if isinstance(e, relay.Call) else None)
            return func

    mod, collect = relay.transform.InferType()(_module()), Operators()
    assert collect(mod).same_as(mod) and sorted(collect.names) == ["add", "exp", "multiply"]


@pytest.mark.parametrize(
    "name", ["FoldConstant", "DeadCodeElimination", "AlterOpLayout", "FuseOps", "tir.StorageRewrite", "tir.UnrollLoop", "tir.VectorizeLoop"]
)
def test_the_standard_suite(name):  # GE-015
    assert tvm.transform.parse_pipeline(name).passes[0].info.name == name.removeprefix("tir.")


def test_python_has_no_gating_of_its_own():  # GE-009
    """Levels, lists and the order of instruments are decided in C++: the Python front end never reads them."""
    source = Path(tvm.ir.transform.__file__).read_text(encoding="utf-8")
    for word in ("PassEnabled", ".opt_level >=", ".opt_level <", "should_run(", "run_before_pass("):
        assert word not in source

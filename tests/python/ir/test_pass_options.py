# SPDX-License-Identifier: Apache-2.0
"""Options of passes: said once in C++, the same in Python, in texts of pipelines and in contexts."""

import inspect

import pytest

import baton as tvm
from baton import relay, tir
from baton._ffi import get_global_func
from baton.describe import model
from baton.transform import PassContext, parse_pipeline

_CHAIN = """#[version = "0.0.5"]
def @main(%x: Tensor[(4), float32]) { exp(tanh(sqrt(%x))) }"""


def _kernels(one, **config):
    count = []
    with PassContext(opt_level=3, config=config):
        mod = tvm.transform.Sequential([one])(relay.fromtext(_CHAIN))
    relay.analysis.post_order_visit(mod["main"], lambda e: isinstance(e, relay.Function) and e.attrs and "Primitive" in e.attrs and count.append(e))
    return len(count)


# ---- What texts and Python disagreed about

_VALUE = """#[version = "0.0.5"]
type Box[A] { B(A), }
def @use(%f: fn (int32) -> Box[int32]) -> Box[int32] { %f(1) }
def @main() -> Box[int32] { @use(B) }"""


def test_eta_expand_leaves_constructors_unless_asked():
    mod = relay.transform.InferType()(relay.fromtext(_VALUE))
    for one in (relay.transform.EtaExpand(), parse_pipeline("EtaExpand"), get_global_func("transform.GetPass")("EtaExpand")):
        assert one(mod)["main"].same_as(mod["main"])
    for one in (relay.transform.EtaExpand(True), parse_pipeline("EtaExpand(expand_constructor=true)")):
        assert not one(mod)["main"].same_as(mod["main"])


def test_the_text_of_plan_devices_keeps_its_argument():
    assert relay.transform.PlanDevices(1).text() == relay.transform.PlanDevices("cpu").text() == "PlanDevices(default_device=1)"
    mod = relay.transform.InferType()(relay.fromtext(_CHAIN))
    with PassContext(config={"relay.fallback_device_type": 2}):
        one = relay.transform.PlanDevices(1)
        assert parse_pipeline(one.text())(mod).astext() == one(mod).astext() != relay.transform.PlanDevices()(mod).astext()


@pytest.mark.parametrize(("text", "python"), [
    ("topk(%x, k=2)", lambda x: relay.topk(x, 2).astuple()),
    ("dyn.topk(%x, 2)", None),
    ("argsort(%x)", lambda x: relay.argsort(x)),
    ("searchsorted(%x, %x)", lambda x: relay.searchsorted(x, x)),
])  # fmt: skip
def test_indices_are_int32_unless_asked(text, python):
    infer = relay.transform.InferType()
    read = infer(relay.fromtext(f'#[version = "0.0.5"]\ndef @main(%x: Tensor[(4), float32]) {{ {text} }}'))["main"].body
    assert str(getattr(read.checked_type, "fields", [read.checked_type])[-1].dtype) == "int32"
    if python:
        x = relay.var("x", shape=(4,))
        made = infer(tvm.IRModule.from_expr(relay.Function([x], python(x))))["main"].body
        assert made.checked_type == read.checked_type
        for one in (made, read):
            assert "dtype" not in str(relay.Function([], one)), "what is the default stands in no short text"


# ---- One declaration

_WITH_OPTIONS = {name: options for name, (_, options, _) in model.passes().items() if options}


def _function(name):
    module, last = model.pass_function(name)
    return getattr(tir.transform if module == "baton.tir.transform" else relay.transform, last)


def test_passes_that_have_options():
    assert {"FuseOps", "ToMixedPrecision", "tir.UnrollLoop", "FoldWeights", "PrintIR"} <= set(_WITH_OPTIONS)


@pytest.mark.parametrize("name", _WITH_OPTIONS)
def test_an_option_is_described_and_a_key_of_contexts(name):
    keys = PassContext.list_configs()
    for option, kind, text, _, _ in _WITH_OPTIONS[name]:
        assert len(text) > 10, f"{option} says nothing of itself"
        if name == "PrintIR":
            continue
        key = name if name.startswith("tir.") else f"relay.{name}.{option}"
        assert key in keys and (name.startswith("tir.") or str(keys[key]) == kind)


@pytest.mark.parametrize("name", _WITH_OPTIONS)
def test_signature_and_docstring_come_from_the_options(name):
    function = _function(name)
    if not isinstance(function, tvm.ir.transform.PassFunction):
        assert name == "MergeComposite", "a pass with a function of its own"
        return
    assert list(inspect.signature(function).parameters) == [row[0] for row in _WITH_OPTIONS[name]]
    for row in _WITH_OPTIONS[name]:
        assert row[2] in function.__doc__
    assert str(function().info.doc) in function.__doc__


def test_calls_by_position_and_by_name():
    t = relay.transform
    assert t.FuseOps(0).text() == t.FuseOps(fuse_opt_level=0).text() == "FuseOps(fuse_opt_level=0)"
    assert t.FuseOps(fuse_opt_level=-1, max_depth=3).text() == "FuseOps(fuse_opt_level=-1, max_depth=3)"
    assert t.ToMixedPrecision("float16").text() == 'ToMixedPrecision(mixed_precision_type="float16")'
    assert t.FuseOps(None).text() == "FuseOps", "None asks for the default"
    assert t.AnnotateTarget("a").text() == 'AnnotateTarget(targets=["a"])'
    assert t.ConvertLayout({"nn.conv2d": ("NHWC", "default")}).text() == 'ConvertLayout(desired_layouts={"nn.conv2d": ["NHWC", "default"]})'
    assert t.CombineParallelDense(3, to_batch=False).text() == t.CombineParallelDense(3, False).text()


@pytest.mark.parametrize(("call", "words"), [
    (lambda t: t.FuseOps(1, 2, True, 3), "at most 3 options"),
    (lambda t: t.FuseOps(max_dept=3), "did you mean `max_depth`"),
    (lambda t: t.FuseOps(0, fuse_opt_level=1), "got `fuse_opt_level` twice"),
    (lambda t: t.InferType(x=1), "has no option `x`"),
    (lambda t: t.FuseOps("much"), r"relay\.FuseOps\.fuse_opt_level"),
    (lambda t: t.FuseOps(max_depth=0), r"relay\.FuseOps\.max_depth"),
    (lambda t: PassContext(config={"relay.FuseOps.max_depth": 0}), r"relay\.FuseOps\.max_depth"),
    (lambda t: get_global_func("relay._transform.FuseOps")(1, 2, True, 3), "takes 3 options, got 4"),
])  # fmt: skip
def test_wrong_options_are_errors_when_the_pass_is_made(call, words):
    with pytest.raises((TypeError, ValueError), match=words):
        call(relay.transform)


# ---- Options of the context


def test_what_the_pass_is_made_with_is_stronger_than_the_context():
    fuse = relay.transform.FuseOps
    assert _kernels(fuse()) == 1
    assert _kernels(fuse(max_depth=1)) == 3
    assert _kernels(fuse(), **{"relay.FuseOps.max_depth": 1}) == 3
    assert _kernels(fuse(max_depth=64), **{"relay.FuseOps.max_depth": 1}) == 1, "also where it is the default that is asked for"
    assert _kernels(fuse(), **{"relay.FuseOps.fuse_opt_level": 0}) == 3


def test_options_of_loop_passes_are_a_dict():
    text = """#[version = "0.0.5"]
def @main(%x: Tensor[(4), float32]) { exp(%x) }"""
    assert relay.fromtext(text)
    n = tir.Var("n", "int64")
    body = tir.For(tir.Var("i", "int64"), 0, 4, 0, tir.Evaluate(n))
    mod = tvm.IRModule({relay.GlobalVar("loops"): tir.PrimFunc([n], body)})
    unrolled = tir.transform.UnrollLoop(auto_max_step=16)(mod)
    assert not unrolled["loops"].same_as(mod["loops"])
    with PassContext(config={"tir.UnrollLoop": {"auto_max_step": 16}}):
        tvm.ir.assert_structural_equal(tir.transform.UnrollLoop()(mod), unrolled)
    tvm.ir.assert_structural_equal(parse_pipeline("tir.UnrollLoop(auto_max_step=16)")(mod), unrolled)


# ---- What PassInfo says


def test_what_a_pass_does_to_results():
    info = {name: row[2] for name, row in model.passes().items()}
    assert info["SimplifyInference"].reassociates and info["tir.LowerIntrin"].reassociates
    assert not info["InferType"].reassociates and not info["FuseOps"].changes_results
    assert info["ToMixedPrecision"].changes_results and info["Gradient"].changes_results
    assert "kernel" in info["FuseOps"].doc
    assert dict(relay.transform.FuseOps(0).info.options) == {"fuse_opt_level": 0}


def test_a_sequence_does_what_its_passes_do():
    seq = tvm.transform.Sequential([relay.transform.InferType(), relay.transform.SimplifyInference()])
    assert seq.info.reassociates and not seq.info.changes_results
    assert not tvm.transform.Sequential([relay.transform.InferType()]).info.reassociates
    assert relay.transform.FoldScaleAxis().info.reassociates and tir.transform.LowerPipeline().info.reassociates


def test_the_registry_holds_passes_alone():
    names = {n for n in map(str, get_global_func("transform.PassNames")()) if not n.startswith("Test")}  # other tests register some
    for name in names:
        assert isinstance(get_global_func("transform.GetPass")(name), tvm.transform.Pass), name
    for name in ("MakeFunctionPass", "InferTypeLocal", "FoldConstantExpr", "RunPass", "tir.CreatePrimFuncPass", "to_cps"):
        assert name not in names

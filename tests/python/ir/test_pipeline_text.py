# SPDX-License-Identifier: Apache-2.0
"""Pipelines as text: parsed, printed, round trips, errors that point at the place."""

import copy
import pickle

import hypothesis
import pytest
from hypothesis import strategies as st

import baton as tvm
from baton import relay, tir
from baton._ffi.registry import remove_global_func
from baton.transform import parse_pipeline, pipeline_text


def _module():
    return tvm.relay.fromtext("""#[version = "0.0.5"]
def @main(%x: Tensor[(4), float32]) { exp(tanh(sqrt(%x))) }""")


def _kernels(mod):
    count = []
    relay.analysis.post_order_visit(mod["main"], lambda e: count.append(e) if isinstance(e, relay.Function) and e.attrs and "Primitive" in e.attrs else None)
    return len(count)


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("", ""),
        ("InferType", "InferType"),
        (" InferType ,\n FoldConstant ", "InferType,FoldConstant"),
        ("InferType,FuseOps(max_depth=64),tir.UnrollLoop(auto_max_step=16)",) * 2,
        ("relay.FoldConstant,UnrollLoop", "FoldConstant,tir.UnrollLoop"),
        ("FuseOps()", "FuseOps"),
        ("RemoveUnusedFunctions(entry_functions=['a', \"b\"])", 'RemoveUnusedFunctions(entry_functions=["a", "b"])'),
        ("DeadCodeElimination(inline_once=True)", "DeadCodeElimination(inline_once=true)"),
        ("Sequential(InferType,Sequential(FoldConstant),name=\"x\",opt_level=2,required=[\"InferType\"])",) * 2,
        ("Scheduled(FoldConstant,FuseOps,ends_with=[\"Typed\"])",) * 2,
        ("FoldScaleAxis", "FoldScaleAxis"),
    ],
)
def test_round_trip(text, printed):
    one = parse_pipeline(text)
    assert isinstance(one, tvm.transform.Sequential)
    assert pipeline_text(one) == printed
    assert pipeline_text(parse_pipeline(printed)) == printed


def test_text_of_passes_made_in_python():
    assert tvm.transform.Sequential([relay.transform.InferType(), tir.transform.UnrollLoop()]).text() == "InferType,tir.UnrollLoop"
    nested = tvm.transform.Sequential([tvm.transform.Sequential([relay.transform.InferType()], name="in")])
    assert nested.text() == 'Sequential(InferType,name="in")'
    with pytest.raises(ValueError, match="the pass `mine` has no text.*register"):
        tvm.transform.module_pass(lambda m, c: m, opt_level=0, name="mine").text()


@pytest.mark.parametrize(("make", "text"), [
    (lambda: relay.transform.FuseOps(), "FuseOps"),
    (lambda: relay.transform.FuseOps(fuse_opt_level=0), "FuseOps(fuse_opt_level=0)"),
    (lambda: relay.transform.ConvertLayout({"nn.conv2d": ["NHWC", "default"]}),
     'ConvertLayout(desired_layouts={"nn.conv2d": ["NHWC", "default"]})'),
    (lambda: relay.transform.RemoveUnusedFunctions(["a", "b"]), 'RemoveUnusedFunctions(entry_functions=["a", "b"])'),
    (lambda: relay.transform.DeadCodeElimination(inline_once=True), "DeadCodeElimination(inline_once=true)"),
    (lambda: relay.transform.EliminateCommonSubexpr(), "EliminateCommonSubexpr"),
    (lambda: relay.transform.ToMixedPrecision("bfloat16"), 'ToMixedPrecision(mixed_precision_type="bfloat16")'),
    (lambda: tir.transform.VectorizeLoop(False), "tir.VectorizeLoop(enable_vectorize=false)"),
    (lambda: tvm.transform.PrintIR("here"), 'PrintIR(header="here")'),
    (lambda: tvm.transform.Sequential([relay.transform.FuseOps(1), relay.transform.SplitArgs(9)]),
     "FuseOps(fuse_opt_level=1),SplitArgs(max_function_args=9)"),
])  # fmt: skip
def test_the_text_of_a_pass_has_what_it_was_made_with(make, text):
    assert make().text() == text
    assert parse_pipeline(text).text() == text


def test_a_pass_made_with_what_no_text_says_has_none():
    @relay.transform.function_pass(opt_level=0)
    class TestTakesOne:
        def __init__(self, one=1):
            self.one = one

        def transform_function(self, func, mod, ctx):
            return func

    tvm.register_func("relay._transform.TestTakesOne", TestTakesOne, override=True)
    try:
        assert TestTakesOne().text() == "TestTakesOne"
        for made, why in (
            (TestTakesOne(3), "its argument 0 has no name"),
            (TestTakesOne(one=3), "its argument 0 has no name"),
            (relay.transform.EliminateCommonSubexpr(lambda e: False), "its option `fskip`"),
            (relay.transform.MergeComposite([("a", tvm.relay.dataflow_pattern.is_op("add"))]), "its option `patterns`"),
        ):
            with pytest.raises(ValueError, match="has no text that could be read back: " + why):
                made.text()
    finally:
        remove_global_func("relay._transform.TestTakesOne")


def test_the_text_of_sequences_too_deep_to_be_read_is_an_error():
    one = relay.transform.InferType()
    for _ in range(20_000):
        one = tvm.transform.Sequential([one])
    with pytest.raises(ValueError, match="nest deeper than 100"):
        one.text()


# ---- Saved passes


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda p: pickle.loads(pickle.dumps(p))], ids=["copy", "deepcopy", "pickle"])
def test_a_copy_of_a_pass_does_the_same(again):
    mod = relay.fromtext('#[version = "0.0.5"]\ndef @main(%x: float32) { add(%x, multiply(2f, 3f)) }')
    for one in (relay.transform.FoldConstant(), tvm.transform.Sequential([relay.transform.FoldConstant()], name="mine", opt_level=1)):
        other = again(one)
        assert "6f" in other(relay.transform.InferType()(mod)).astext()
        assert (other.info.name, other.info.opt_level, other.text()) == (one.info.name, one.info.opt_level, one.text())
    assert again(relay.transform.FuseOps(0)).text() == "FuseOps(fuse_opt_level=0)"


def test_a_pass_without_text_cannot_be_saved():
    mine = tvm.transform.module_pass(lambda m, c: m, opt_level=0, name="mine")
    with pytest.raises(ValueError, match="`mine` has no text"):
        pickle.dumps(mine)
    for one in (mine, relay.transform.FoldConstant(), tvm.transform.Sequential([mine])):
        with pytest.raises(ValueError, match="cannot be saved as JSON: its body is code"):
            tvm.ir.save_json(one)


def test_a_pass_without_a_body_is_an_error_and_does_not_do_nothing():
    text = """{"format":"baton","version":1,"nodes":[
{"type":"runtime.Array","data":[]},
{"type":"transform.PassInfo","opt_level":0,"name":"hollow","required":[0],"needs":[0],"establishes":[0],"keeps":[0],"destroys":[0]},
{"type":"KIND","pass_info":[1]}],"root":[2]}"""
    for kind in ("relay.FunctionPass", "tir.PrimFuncPass", "transform.ModulePass"):
        with pytest.raises(ValueError, match="pass `hollow` has no body"):
            tvm.ir.load_json(text.replace("KIND", kind))(_module())


def test_options_of_the_context_hold_while_the_pass_runs():
    def fused(text):
        with tvm.transform.PassContext(opt_level=3):
            return _kernels(parse_pipeline(text)(_module()))

    assert fused("FuseOps") == 1
    assert fused("FuseOps(max_depth=1)") == 3
    assert fused("FuseOps(fuse_opt_level=0)") == 3
    seen = []

    @tvm.transform.module_pass(opt_level=0)
    def look(mod, ctx):
        seen.append(dict(tvm.transform.PassContext.current().config))
        return mod

    tvm.register_func("relay._transform.TestLook", lambda: look, override=True)
    with tvm.transform.PassContext(config={"relay.FoldWeights.max_bytes": 7}):
        parse_pipeline("FuseOps(max_depth=1),TestLook")(_module())
        assert dict(tvm.transform.PassContext.current().config) == {"relay.FoldWeights.max_bytes": 7}
    assert seen == [{"relay.FoldWeights.max_bytes": 7}], "options end with their pass"


def test_a_configured_pass_is_one_pass_to_instruments():
    names = []

    @tvm.instrument.pass_instrument
    class Names:
        def run_before_pass(self, mod, info):
            names.append(info.name)

    with tvm.transform.PassContext(opt_level=3, instruments=[Names()]):
        parse_pipeline("FuseOps(max_depth=2)")(_module())
    assert names == ["pipeline", "InferType", "FuseOps"]


@pytest.mark.parametrize(
    ("text", "column", "words"),
    [
        ("InferType,FuseOp", 11, ["there is no pass `FuseOp`", "did you mean `FuseOps`"]),
        ("FuseOps(max_dept=3)", 9, ["`FuseOps` has no option `max_dept`", "did you mean `max_depth`"]),
        ("InferType(x=3)", 11, ["has no option `x`", "takes none"]),
        ("FuseOps(qqqqqqqq=3)", 9, ["it takes fuse_opt_level, max_depth"]),
        ("FuseOps(max_depth=)", 19, ["expected a value, got `)`"]),
        ("FuseOps(max_depth=64", 21, ["expected `)`, got the end"]),
        ("FuseOps(64)", 9, ["options are given by name"]),
        ("FuseOps(max_depth=deep)", 19, ["`deep` is no value", "quotes"]),
        ("FuseOps(max_depth=\"deep\")", 9, ["relay.FuseOps.max_depth", "int"]),
        ("FuseOps(max_depth=1, max_depth=2)", 22, ["given twice"]),
        ("InferType,,FuseOps", 11, ["expected the name of a pass, got `,`"]),
        ("InferType FuseOps", 11, ["expected `,` or the end, got `FuseOps`"]),
        ("InferType,", 11, ["got the end"]),
        ("tir.FuseOps", 1, ["there is no pass `tir.FuseOps`"]),
        ("tir.UnrollLoop(auto_max_stp=1)", 16, ["did you mean `auto_max_step`"]),
        ("tir.UnrollLoop(auto_max_step=-1)", 16, ["auto_max_step"]),
        ("FuseOps(max_depth=99999999999999999999999999)", 19, []),
        ("FuseOps(max_depth=1e999)", 19, ["no number"]),
        ('PrintIR(header="a)', 16, ["no closing quote"]),
        ("Scheduled(FuseOps,ends_with=[\"Typd\"])", 19, ["there is no property `Typd`", "did you mean `Typed`"]),
        ("Sequential(" * 200, None, ["nest deeper than 100"]),
        ("FuseOps(max_depth=" + "[" * 10_000, None, ["nest deeper than 100"]),
        ("FuseOps(max_depth=ä)", 19, ["expected a value, got `ä`"]),
    ],
)
def test_errors_point_at_the_place(text, column, words):
    with pytest.raises((ValueError, TypeError)) as caught:
        parse_pipeline(text)
    message = str(caught.value)
    for word in words:
        assert word in message, message
    if column is not None:
        assert message.startswith(f"pipeline:1:{column}: "), message
        line, caret = message.splitlines()[1:3]
        assert line == "  " + text and caret.index("^") == column - len(text.encode()[:0]) + 1


def test_the_place_in_a_text_of_several_lines():
    with pytest.raises(ValueError, match=r"^pipeline:2:3: there is no pass `Nope`(.|\n)*\n    Nope\n    \^~~~$"):
        parse_pipeline("InferType,\n  Nope")
    with pytest.raises(TypeError, match="a pipeline is a text"):
        parse_pipeline(["InferType"])


_NAMES = st.sampled_from(
    [
        "InferType",
        "FoldConstant",
        "FuseOps(max_depth=8)",
        "tir.UnrollLoop(auto_max_step=3, explicit_unroll=false)",
        "DeadCodeElimination(inline_once=true)",
        'PrintIR(header="a\\"\\\\\\n")',
        "FuseOps(fuse_opt_level=-1)",
    ]
)
_PIPELINES = st.recursive(
    st.lists(_NAMES, max_size=4).map(",".join), lambda inner: st.lists(inner.map(lambda t: f"Sequential({t})"), min_size=1, max_size=3).map(",".join)
)


@hypothesis.given(_PIPELINES)
@hypothesis.settings(max_examples=60, deadline=None)
def test_what_is_printed_is_read_back(text):
    assert parse_pipeline(text).text() == text


@hypothesis.given(st.text(alphabet="IFuseOps(),=[]{}\"'\\1.e-\n xé", max_size=40))
@hypothesis.settings(max_examples=200, deadline=None)
def test_any_text_is_a_pipeline_or_an_error_with_a_place(text):
    try:
        parse_pipeline(text)
    except (ValueError, TypeError) as error:
        assert str(error).startswith("pipeline:")

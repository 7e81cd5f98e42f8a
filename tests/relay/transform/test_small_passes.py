# SPDX-License-Identifier: Apache-2.0
"""SplitArgs, AnnotateSpans, recast and ChangeBatch."""

import numpy as np
import pytest
from meaning import evaluate

import baton as tvm
from baton import relay
from baton.relay import transform


def test_split_args():
    x = [relay.var(f"x{i}", shape=(1,)) for i in range(1000)]
    mod = transform.InferType()(tvm.IRModule.from_expr(relay.Function(x, relay.concatenate(x, 0))))
    out = transform.InferType()(transform.SplitArgs(10)(mod))
    values = [np.float32([i]) for i in range(1000)]
    np.testing.assert_array_equal(evaluate(out, values)[0], np.arange(1000, dtype="float32"))
    assert transform.SplitArgs()(mod)["main"].body.args[0].fields[0] is not None
    with pytest.raises(ValueError, match="max_function_args is 1, must be at least 2"):
        transform.SplitArgs(1)


def test_annotate_spans():
    x = relay.var("x", shape=(1,))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.exp(x)))
    assert mod["main"].body.span is None
    out = transform.AnnotateSpans()(mod)
    assert out["main"].body.span.line >= 2 and str(out["main"].body.span.source_name.name) == "GeneratedSource"
    assert tvm.ir.structural_equal(mod, out)


def test_annotating_spans_hands_constants_on():
    """They have no text; printing and reading the weights of a model would take seconds."""
    weights = relay.const(np.arange(6, dtype="float32").reshape(2, 3))
    x = relay.var("x", shape=(2, 3))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.add(relay.add(x, weights), weights)))
    out = transform.AnnotateSpans()(mod)
    outer = out["main"].body
    assert outer.args[1].same_as(weights) and outer.args[0].args[1].same_as(weights) and outer.span.line >= 2


def test_annotating_spans_hands_deep_types_on():
    """Text says the type of each function: of nested ones that would be the square of their number."""
    x, y = relay.var("x", shape=(1,)), relay.var("y", shape=(relay.Any(), 2))
    deep, pair, type_ = x, x, x.type_annotation
    for i in range(300):
        v = relay.var(f"v{i}", shape=(i + 1,))
        deep, pair, type_ = relay.Function([v], deep), relay.Tuple([pair, x]), relay.FuncType([v.type_annotation], type_)
    f = relay.var("f", relay.FuncType([type_], x.type_annotation))
    open_shape = y
    for _ in range(20):  # has no type that could be handed on: `?` is equal to itself alone
        open_shape = relay.Function([], open_shape)
    body = relay.Tuple([deep, relay.Call(f, [deep]), relay.Function([], pair), open_shape])
    mod = transform.InferType()(tvm.IRModule.from_expr(relay.Function([x, y, f], body)))
    out = transform.AnnotateSpans()(mod)
    tvm.ir.assert_structural_equal(out, mod)
    tvm.ir.assert_structural_equal(transform.InferType()(out), mod)
    inner = out["main"].body.fields[0]
    for _ in range(5):
        inner = inner.body
    assert inner.ret_type.same_as(mod["main"].body.fields[0].body.body.body.body.body.ret_type) and inner.span.line > 5
    assert out["main"].body.span.source_name.text == "" or len(str(out["main"].body.span.source_name.text)) < 100_000


def convolutions():
    x = relay.var("x", shape=(1, 4, 8, 8))
    w = relay.var("w", shape=(4, 4, 1, 1))
    return relay.Function([x, w], relay.nn.conv2d(relay.nn.relu(relay.nn.conv2d(x, w)), w))


def test_recast():
    def text(**options):
        return tvm.IRModule.from_expr(transform.recast(convolutions(), "int8", "int32", **options)).astext(show_meta_data=False)

    both = text()
    assert both.count('out_dtype="int32"') == 2 and both.count('dtype="int8"') >= 3 and both.count('cast(') >= 5
    assert text(skip_layers=[0]).count('out_dtype="int32"') == 1
    assert text(skip_layers=[-1]).count('out_dtype="int32"') == 1
    assert text(ops=["nn.dense"]).count("cast(") == 0
    mod = transform.InferType()(tvm.IRModule.from_expr(transform.recast(convolutions(), "int8", "int32")))
    assert str(mod["main"].ret_type.dtype) == "float32"
    x, w = np.full((1, 4, 8, 8), 2, "float32"), np.full((4, 4, 1, 1), 3, "float32")
    np.testing.assert_array_equal(evaluate(mod, [x, w])[0], np.full((1, 4, 8, 8), 288, "float32"))


def test_change_batch():
    func = convolutions()
    out = transform.InferType()(transform.ChangeBatch({func.params[0]: 0}, batch_size=5)(tvm.IRModule.from_expr(func)))
    assert [int(d) for d in out["main"].ret_type.shape] == [5, 4, 8, 8]
    assert transform.ChangeBatch({}).info.opt_level == 1


def test_simplify_expr_takes_what_may_change():
    """An argument wins over the context's option; a text names it too; an unknown one is refused when the pass is made."""
    x = relay.var("x", shape=())
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], x + relay.const(np.float32(0)))))
    assert relay.transform.SimplifyExpr("strict")(mod).same_as(mod)
    assert relay.transform.SimplifyExpr()(mod)["main"].body.same_as(mod["main"].params[0])  # as Relay 0.8 had it
    with tvm.transform.PassContext(config={"fp": "strict"}):
        assert relay.transform.SimplifyExpr()(mod).same_as(mod)
    assert relay.transform.SimplifyExpr("contract")(mod)["main"].body.same_as(mod["main"].params[0])
    with tvm.transform.PassContext(config={"fp": "fast"}):
        assert relay.transform.SimplifyExpr("strict")(mod).same_as(mod)
        assert relay.transform.SimplifyExpr()(mod)["main"].body.same_as(mod["main"].params[0])
    assert tvm.transform.parse_pipeline('SimplifyExpr(fp="contract")')(mod)["main"].body.same_as(mod["main"].params[0])
    with pytest.raises(ValueError, match='the option `fp` is "exact"; it is "strict"'):
        relay.transform.SimplifyExpr("exact")


def test_an_entry_that_is_not_there():
    mod = relay.fromtext('#[version = "0.0.5"]\ndef @f() { 1f }\ndef @g() { 2f }')
    assert [v.name_hint for v in relay.transform.RemoveUnusedFunctions(["g"])(mod).get_global_vars()] == ["g"]
    with pytest.raises(ValueError, match="the module has no function @nope; it has @f, @g"):
        relay.transform.RemoveUnusedFunctions(["g", "nope"])(mod)


@pytest.mark.parametrize("budget, folded", [(0, 0), (3_999_999, 0), (4_000_000, 1), (7_999_999, 1), (8_000_000, 2), (None, 2)])
def test_fold_weights_keeps_to_its_budget(budget, folded):
    """Two weights of 4 million bytes each, far more than what they are made of."""
    x = relay.var("x", shape=(1000, 1000))
    big = [relay.broadcast_to(relay.const(value), (1000, 1000)) for value in (2.0, 3.0)]
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], (x + big[0]) * big[1])))
    with tvm.transform.PassContext(config={} if budget is None else {"relay.FoldWeights.max_bytes": budget}):
        out = relay.transform.FoldWeights()(mod)
    constants = []
    relay.analysis.post_order_visit(out["main"], lambda e: constants.append(e.data) if isinstance(e, relay.Constant) and len(e.data.shape) else None)
    assert [(c.shape, c.numpy().min()) for c in constants] == [((1000, 1000), v) for v in (2.0, 3.0)][:folded]
    assert relay.transform.FoldConstant()(mod).same_as(mod), "which never makes a program so much larger"


@pytest.mark.parametrize("side, folded", [(64, True), (8000, False)])
def test_folding_has_a_budget_of_operations(side, folded):
    """A product of 10^12 operations stays in the program, however few bytes say what it multiplies."""
    x = relay.var("x", shape=(1,))
    filled = relay.broadcast_to(relay.const(0.5), (side, side))
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], x + relay.sum(relay.nn.matmul(filled, filled)))))
    for fold in (relay.transform.FoldConstant(), relay.transform.FoldWeights()):
        assert ("nn.matmul" in fold(mod).astext()) != folded

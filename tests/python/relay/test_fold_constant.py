# SPDX-License-Identifier: Apache-2.0
"""Constant folding, requirement by requirement (CF)."""

import numpy as np
import pytest

import baton as tvm
from baton import relay
from baton._ffi import get_global_func

_HEAD = '#[version = "0.0.5"]\n'


def _parse(body, params="%x: float32"):
    return relay.parse(_HEAD + f"def @main({params}) {{ {body} }}")


def _fold(body, params="%x: float32", typed=False):
    mod = _parse(body, params)
    if typed:
        mod = relay.transform.InferType()(mod)
    return relay.transform.FoldConstant()(mod)


def _same(body, want, params="%x: float32", typed=False):
    got, wanted = _fold(body, params, typed), _parse(want, params)
    if ":" in params:  # the types follow
        got, wanted = relay.transform.InferType()(got), relay.transform.InferType()(wanted)
    tvm.ir.assert_structural_equal(got["main"].body, wanted["main"].body, map_free_vars=True)


def _unchanged(body, params="%x: float32"):
    mod = _parse(body, params)
    assert relay.transform.FoldConstant()(mod).same_as(mod)


_FOLDS = {
    "CF-001 CF-021: operators of constants": ("add(2f, 3f)", "5f"),
    "CF-023: upwards": ("multiply(add(2f, 3f), add(1f, 1f))", "10f"),
    "CF-012: a call's parts": ("add(%x, multiply(2f, 3f))", "add(%x, 6f)"),
    "CF-007: a let of a constant": ("let %a = add(1f, 2f); add(%a, %x)", "add(3f, %x)"),
    "CF-009: a let of a tuple of constants stays": ("let %t = (1f, 2f); add(%t.0, %x)", "let %t = (1f, 2f); add(%t.0, %x)"),
    "CF-010: a field of a tuple": ("(%x, add(1f, 1f)).1", "2f"),
    "CF-010: a field that is no constant": ("(%x, 1f).0", "%x"),
    "CF-006: other kinds of nodes stay, their parts fold": ("if (True) { add(1f, 1f) } else { %x }", "if (True) { 2f } else { %x }"),
    "CF-014: calls of functions stay": ("let %f = fn (%y: float32) { add(%y, add(1f, 2f)) }; %f(1f)", "let %f = fn (%y: float32) { add(%y, 3f) }; %f(1f)"),
    "CF-008: a let around one that folds": ("let %a = negative(%x); let %b = add(1f, 1f); add(%a, %b)", "let %a = negative(%x); add(%a, 2f)"),
}


@pytest.mark.parametrize("case", _FOLDS)
def test_folds(case):
    _same(*_FOLDS[case])


_LEFT = {
    "CF-013: a call without arguments": ('ones(shape=[4, 5], dtype="float32")', ""),
    "CF-015: zeros_like": ("zeros_like(1f)", ""),
    "CF-015: ones_like": ("ones_like(1f)", ""),
    "CF-015: full_like": ("full_like(1f, 2f)", ""),
    "CF-015: full": ('full(1f, shape=[2], dtype="float32")', ""),
    "CF-014: a call of a global function": ("@main(1f)", "%x: float32"),
    "CF-025: nothing is constant": ("negative(%x)", "%x: float32"),
    "CF-011: a field of a call": ("split(%x, indices_or_sections=2).0", "%x: Tensor[(4), float32]"),
    "CF-011: a field of a variable": ("%x.0", "%x: (float32, float32)"),
    "CF-028: a copy between devices": ("device_copy(1f, src_dev_type=1, dst_dev_type=2)", ""),
    "CF-027: an annotation": ("let %c = on_device(1f, device_type=2, is_fixed=True); %c", ""),
    "CF-008 CF-025: a let of nothing constant": ("let %a = negative(%x); %a", "%x: float32"),
    "CF-019 CF-020: storage of the virtual machine": ('memory.alloc_storage(8, 64, dtype="float32")', ""),
}


@pytest.mark.parametrize("case", _LEFT)
def test_leaves_alone(case):
    _unchanged(*_LEFT[case])


def test_calls_of_constructors_are_left():  # CF-014
    mod = relay.parse(_HEAD + "type Box { Put(float32) }\ndef @main() { Put(1f) }")
    assert relay.transform.FoldConstant()(mod).same_as(mod)


def test_empty_tuple_is_constant():  # CF-003
    check = relay.analysis.check_constant
    assert check(relay.Tuple([])) and check(relay.Tuple([relay.const(1), relay.Tuple([])])) and not check(relay.var("x"))


def test_stateful_operators_are_left():  # CF-016
    names = [n for n in tvm.ir.Op.list_op_names() if tvm.ir.Op.get(n).get_attr("TOpIsStateful")]
    assert names  # random numbers
    _unchanged("random.uniform(0f, 1f, shape=[2])" if "random.uniform" in names else "negative(%x)")


def test_shape_of():  # CF-017, CF-018
    params = "%x: Tensor[(2, 3), float32]"
    got = _fold('shape_of(%x, dtype="int64")', params, typed=True)["main"].body
    assert isinstance(got, relay.Constant) and got.data.dtype == "int64"
    np.testing.assert_array_equal(got.data.numpy(), [2, 3])
    assert _fold('shape_of(%x, dtype="int32")', params, typed=True)["main"].body.data.dtype == "int32"
    dynamic = relay.transform.InferType()(_parse('shape_of(%x, dtype="int64")', "%x: Tensor[(?, 3), float32]"))
    assert relay.transform.FoldConstant()(dynamic).same_as(dynamic)


def test_untyped_programs():  # AN-006
    _unchanged('shape_of(%x, dtype="int64")', "%x: Tensor[(2, 3), float32]")
    _same("add(%y, add(1f, 2f))", "add(%y, 3f)", "%y")


def test_shared_constants_fold_once_and_scopes_hold():  # CF-026
    x = relay.var("x", shape=())
    shared = relay.add(relay.const(1.0), relay.const(2.0))
    got = relay.transform.FoldConstant()(tvm.IRModule.from_expr(relay.Function([x], relay.Tuple([shared, shared]))))["main"].body
    assert got.fields[0].same_as(got.fields[1])
    _same("let %a = 1f; let %b = { let %a = 2f; add(%a, %x) }; add(%a, %b)", "let %b = add(2f, %x); add(1f, %b)")


def test_results_are_the_same_bits():  # CF-024
    rng = np.random.default_rng(0)
    a, b = (relay.const(rng.standard_normal((8, 8)).astype("float32")) for _ in range(2))
    e = relay.exp(relay.nn.dense(a, b))
    mod = tvm.IRModule.from_expr(relay.Function([], e))
    folded = relay.transform.FoldConstant()(mod)["main"].body
    assert isinstance(folded, relay.Constant)
    want = relay.create_executor("debug", mod=mod).evaluate()().numpy()
    assert folded.data.numpy().tobytes() == want.tobytes()


def test_tuples_of_results():  # CF-022
    e = relay.split(relay.const(np.arange(4, dtype="float32")), 2)
    got = relay.transform.FoldConstant()(tvm.IRModule.from_expr(relay.Function([], e.astuple())))["main"].body
    assert isinstance(got, relay.Tuple) and [c.data.numpy().tolist() for c in got.fields] == [[0, 1], [2, 3]]


def test_evaluation_is_neither_seen_nor_blocked():  # CF-029
    seen = []

    @tvm.instrument.pass_instrument
    class Watch:
        def should_run(self, mod, info):
            return info.name == "FoldConstant"

        def run_before_pass(self, mod, info):
            seen.append(info.name)

    with tvm.transform.PassContext(opt_level=3, instruments=[Watch()]):
        got = relay.transform.FoldConstant()(_parse("add(1f, 2f)", ""))
    assert got["main"].body.data.numpy() == 3 and seen == ["FoldConstant"]


def test_interfaces():  # CF-030, CF-031, CF-032, CF-033
    e = relay.add(relay.const(1.0), relay.const(2.0))
    assert get_global_func("relay._ir_pass.FoldConstant")(e).data.numpy() == 3
    assert relay.transform.FoldConstantExpr(e, tvm.IRModule()).data.numpy() == 3
    info = relay.transform.FoldConstant().info
    assert (info.name, info.opt_level, list(info.required)) == ("FoldConstant", 2, [])


def test_large_results_stay_calls():
    body = relay.broadcast_to(relay.const(np.zeros(1, "float32")), (4096, 4096))
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([], body)))
    assert relay.transform.FoldConstant()(mod).same_as(mod)


def _tuples(leaf, depth):
    for _ in range(depth):
        leaf = relay.Tuple([leaf, leaf])
    return leaf


def test_the_checker_decides_and_the_folder_folds():  # CF-002
    x, two = relay.var("x", shape=()), relay.const(np.float32(2))
    assert isinstance(transform_expr(relay.stack(relay.Tuple([two, two]), axis=0)), relay.Constant)
    mixed = transform_expr(relay.stack(relay.Tuple([relay.add(two, two), x]), axis=0))
    # The part that is constant is folded, the call that is not stays.
    assert isinstance(mixed, relay.Call) and mixed.args[0].fields[0].data.numpy() == 4 and mixed.args[0].fields[1].same_as(x)


def transform_expr(expr):
    return relay.transform.FoldConstantExpr(expr)


def test_the_checker_keeps_its_answers():  # CF-004
    # Two to the power of 60 paths lead to the leaf; an answer a node makes it 60 steps. The last field is no constant.
    x, deep = relay.var("x", shape=()), _tuples(relay.const(np.float32(1)), 60)
    call = relay.Call(relay.op.get("concatenate"), [relay.Tuple([deep, x])], relay.concatenate([x, x], 0).attrs)
    assert transform_expr(call).same_as(call)


def test_a_constant_needs_no_answer_kept():  # CF-005
    one = relay.const(np.float32(1))
    assert transform_expr(one).same_as(one)
    many = one
    for _ in range(1000):
        many = relay.add(many, one)
    assert transform_expr(many).data.numpy() == 1001


def test_what_is_large_only_on_the_way_is_computed_with_what_it_is_for():
    """Whole sub-graphs fold: what is too large to keep in between does not stop it, and does not stay."""
    c = relay.const(np.arange(4, dtype="float32"))
    huge = relay.broadcast_to(c, (3_000_000, 4))
    x = relay.var("x", shape=(4,))
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], x + relay.max(relay.exp(huge) * huge, axis=0))))
    out = relay.transform.FoldConstant()(mod)["main"].body
    assert isinstance(out.args[1], relay.Constant)
    np.testing.assert_allclose(out.args[1].data.numpy(), np.exp(np.arange(4)) * np.arange(4), rtol=1e-5)
    bound = _fold("let %a = broadcast_to(1f, shape=[1000, 1000]); add(%x, max(%a))", typed=True)
    assert "1f)" in bound.astext(show_meta_data=False, show_types=False).split("let")[1]


def test_folding_does_not_make_the_program_much_larger():
    huge = relay.broadcast_to(relay.const(np.float32(1)), (4_000_000,))
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([], huge)))
    assert relay.transform.FoldConstant()(mod).same_as(mod)
    small = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([], relay.broadcast_to(relay.const(np.float32(1)), (4,)))))
    assert isinstance(relay.transform.FoldConstant()(small)["main"].body, relay.Constant)

# SPDX-License-Identifier: Apache-2.0
"""Why calls are in no region for another compiler: patterns that nearly matched, attributes, types, checks; and the command that says it."""

import json

import numpy as np
import pytest

import baton
from baton import relay
from baton.relay.dataflow_pattern import is_constant, is_expr, is_op, is_tuple, is_tuple_get_item, is_var, wildcard
from baton.relay.left_out import left_out, mismatch

CONV = is_op("nn.conv2d")(wildcard(), wildcard())


def typed(params, body):
    return relay.transform.InferType()(baton.IRModule.from_expr(relay.Function(params, body)))


def images():
    return relay.var("x", shape=(1, 3, 8, 8))


def weight():
    return relay.var("w", shape=(3, 3, 1, 1))


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        (CONV, "argument 0 of `nn.relu` is `add`, where `nn.conv2d` is wanted"),
        (is_op("add")(CONV, is_constant()), "argument 1 of `add` is the variable `%b`, where a constant is wanted"),
        (is_op("add")(is_constant(), CONV), "argument 1 of `add` is the variable `%b`, where a constant is wanted"),
        (is_op("add")(CONV.has_attr({"strides": [2, 2]}), wildcard()), "attribute `strides` of `nn.conv2d` is [1, 1], where [2, 2] is wanted"),
        (is_op("add")(CONV.has_attr({"axis": 3}), wildcard()), "attribute `axis` of `nn.conv2d` is not there, where 3 is wanted"),
        (is_op("add")(CONV.has_dtype("int8"), wildcard()), "argument 0 of `add` has type Tensor[(1, 3, 8, 8), float32], where int8 is wanted"),
        (
            is_op("add")(CONV.has_shape((1, 3, 8, 9)), wildcard()),
            "argument 0 of `add` has type Tensor[(1, 3, 8, 8), float32], where shape [1, 3, 8, 9] is wanted",
        ),
        (CONV | is_op("multiply")(wildcard(), wildcard()), "argument 0 of `nn.relu` is `add`, where `nn.conv2d` or `multiply` is wanted"),
        (CONV | is_op("add")(CONV, is_var("c")), "argument 1 of `add` is the variable `%b`, where the variable `%c` is wanted"),
        (is_op("add")(CONV, is_tuple([wildcard()])), "argument 1 of `add` is the variable `%b`, where a tuple is wanted"),
        (is_op("add")(CONV, is_tuple_get_item(wildcard(), 1)), "argument 1 of `add` is the variable `%b`, where a field of a tuple is wanted"),
        (is_op("add")(CONV, wildcard(), wildcard()), "`add` has 2 arguments, where 3 are wanted"),
        (is_op("add")(CONV, is_expr(relay.const(1.0))), "argument 1 of `add` is the variable `%b`, where `1f` is wanted"),
        (is_op("add")(*[wildcard()] * 2), "parts of `add` differ that are one value in the pattern"),
        (is_op("add")(CONV, wildcard()), None),
        (is_op("add")(wildcard(), CONV), None),
    ],
)
def test_the_part_that_does_not_match(pattern, said):
    x, w, b = images(), weight(), relay.var("b", shape=(3, 1, 1))
    body = typed([x, w, b], relay.nn.relu(relay.add(relay.nn.conv2d(x, w), b)))["main"].body
    score, text = mismatch(is_op("nn.relu")(pattern), body)
    assert score >= 1 and text == said
    assert (text is None) == is_op("nn.relu")(pattern).match(body)


def rows(mod, table, name="chip"):
    return {r["expression"]: r["because"] for r in left_out(mod, name, table)}


def test_each_call_that_is_left_out_has_a_reason():
    x, w, b = images(), weight(), relay.var("b", shape=(3, 1, 1))
    conv = relay.nn.conv2d(x, w)
    body = relay.exp(relay.tanh(relay.nn.relu(relay.add(conv, b))))
    said = rows(typed([x, w, b], body), [("chip.conv_bias_tanh", is_op("tanh")(is_op("add")(CONV, wildcard())))])
    assert list(said) == ["nn.conv2d", "add", "nn.relu", "tanh", "exp"]
    assert said["tanh"] == "pattern `chip.conv_bias_tanh`: argument 0 of `tanh` is `nn.relu`, where `add` is wanted"
    assert said["exp"] == "no pattern of `chip` ends in `exp`, and the operator has no attribute `target.chip`"


def test_checks_and_values_that_are_used_elsewhere():
    x, w = images(), weight()
    conv = relay.nn.conv2d(x, w)
    table = [("chip.relu", is_op("nn.relu")(CONV), lambda match: False)]
    assert rows(typed([x, w], relay.nn.relu(conv)), table)["nn.relu"] == "pattern `chip.relu` matches, and its check says no"
    table = [("chip.relu", is_op("nn.relu")(CONV))]
    said = rows(typed([x, w], relay.add(relay.nn.relu(conv), conv)), table)
    assert said["nn.relu"].startswith("pattern `chip.relu` matches, and a value inside of it is used outside of it")
    assert "nn.relu" not in rows(typed([x, w], relay.nn.relu(conv)), table), "it is taken"


def test_an_attribute_that_says_no():
    baton.ir.register_op_attr("sigmoid", "target.says_no_to_wide", lambda call: call.args[0].checked_type.shape[1] < 4)
    for width, want in ((3, {}), (5, {"sigmoid": "its attribute `target.says_no_to_wide` says no for (Tensor[(2, 5), float32])"})):
        x = relay.var("x", shape=(2, width))
        assert rows(typed([x], relay.sigmoid(x)), [], "says_no_to_wide") == want


CHIP = """
import baton
from baton.relay.dataflow_pattern import is_op, wildcard, is_constant
from baton.relay.op.contrib.register import register_pattern_table

dense = is_op("nn.dense")(wildcard(), is_constant())
register_pattern_table("chip_at_hand", [("chip_at_hand.dense_relu", is_op("nn.relu")(dense))])
baton.register_func("relay.ext.chip_at_hand", lambda func: None, override=True)
"""


@pytest.fixture
def files(tmp_path):
    x = relay.var("x", shape=(2, 3))
    first = relay.nn.relu(relay.nn.dense(x, relay.const(np.ones((4, 3), "float32"))))
    body = relay.nn.relu(relay.nn.dense(first, relay.var("w", shape=(5, 4))))
    params = relay.analysis.free_vars(body)
    (tmp_path / "m.relay").write_text(baton.IRModule.from_expr(relay.Function(params, body)).astext())
    (tmp_path / "chip.py").write_text(CHIP)
    return str(tmp_path / "m.relay"), str(tmp_path / "chip.py")


def test_the_command_divides_and_explains(files, capsys):
    from baton.cli import main

    model, chip = files
    assert main(["explain-placement", model, "--load", chip, "--compiler", "chip_at_hand"]) == 0
    said = capsys.readouterr().out
    assert "for chip_at_hand: `relay.ext.chip_at_hand` makes its code; it has nn.dense, nn.relu" in said
    assert (
        "nn.relu is not for chip_at_hand: pattern `chip_at_hand.dense_relu`: argument 1 of `nn.dense` is the variable `%w`, where a constant is wanted" in said
    )
    assert main(["explain-placement", model, "--load", chip, "--compiler", "chip_at_hand", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [r["operators"] for r in found["regions"]] == [["nn.dense", "nn.relu"]]
    assert [r["expression"] for r in found["left_out"]] == ["nn.dense", "nn.relu"] and all(".relay:" in r["place"] for r in found["left_out"])


def test_a_compiler_of_which_nothing_is_known(files, capsys):
    from baton.cli import main

    assert main(["explain-placement", files[0], "--compiler", "nothing_at_all"]) == 2
    assert "nothing says what `nothing_at_all` takes: it has no pattern table" in capsys.readouterr().err

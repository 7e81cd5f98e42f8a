# SPDX-License-Identifier: Apache-2.0
"""Text both ways from Python (IR-016, IR-017)."""

import numpy as np
import pytest

import baton as tvm
from baton import relay

TEXT = """#[version = "0.0.5"]
def @main(%x: Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32] {
  let %a = nn.relu(%x);
  %0 = clip(%a, a_min=0f, a_max=6f);
  add(%0, 1f)
}
"""


def test_text_to_module_and_back():
    mod = relay.parse(TEXT)
    body = mod["main"].body
    assert isinstance(body, relay.Let) and body.value.op.name == "nn.relu" and body.var.name_hint == "a"
    assert body.body.args[0].attrs.a_max == 6
    again = tvm.parser.fromtext(mod.astext())
    tvm.ir.assert_structural_equal(mod, again)
    assert str(mod) == mod.astext() and mod["main"].astext()


def test_constants_go_through_text():
    data = np.random.default_rng(0).random((3,)).astype("float32")
    x = relay.var("x", shape=(3,))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.add(x, relay.const(data))))
    again = relay.fromtext(mod.astext())
    assert (again["main"].body.args[1].data.numpy() == data).all()


def test_expression_and_parts():
    f = relay.parse_expr("fn (%x: float32) { abs(%x) }")
    assert isinstance(f, relay.Function) and f.body.op.name == "abs"
    base = tvm.IRModule({"other": f})
    both = relay.parse(TEXT, init_module=base)
    assert "other" in both and "main" in both and "main" not in base


@pytest.mark.parametrize("text", ["def @main( {", "def @main(%x: float32) { %y }", "def @main(%x: float32) { nn.rellu(%x) }", "\0", "def"])
def test_errors(text):
    with pytest.raises(tvm.ParseError) as caught:
        relay.parse(text, "model.relay")
    assert isinstance(caught.value, SyntaxError) and "model.relay:1" in str(caught.value)

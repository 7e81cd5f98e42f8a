# SPDX-License-Identifier: Apache-2.0
"""Passes in Python report what is wrong through their context."""

import pytest

import baton as tvm
from baton import relay
from baton.ir.diagnostics import Diagnostic, DiagnosticContext, DiagnosticLevel
from baton.transform import PassContext, Sequential, module_pass

TEXT = """#[version = "0.0.5"]
def @main(%x: float32) {
  add(exp(%x), 1f)
}
"""


@module_pass(opt_level=0)
def no_exp(mod, ctx):
    """Refuses programs with exp."""
    found = ctx.diag_ctx or DiagnosticContext()

    def look(expr):
        if isinstance(expr, relay.Call) and expr.op == relay.op.get("exp"):
            found.emit(Diagnostic.note(None, "exponentials are slow"))
            found.emit(Diagnostic.error(expr.span, "there is an `exp`", label="here", help="use tanh"))

    relay.analysis.post_order_visit(mod["main"], look)
    found.render()
    return mod


@pytest.mark.parametrize("own", [True, False])
def test_a_pass_says_why_it_fails_and_the_user_sees_it(own):  # PI-016
    mod = tvm.parser.parse(TEXT, "net.relay")
    ctx = PassContext(diag_ctx=DiagnosticContext()) if own else PassContext()
    with pytest.raises(tvm.error.DiagnosticError) as caught, ctx:
        Sequential([no_exp])(mod)
    text = str(caught.value)
    assert "note: exponentials are slow" in text and "net.relay:3:7: error: there is an `exp`" in text
    assert "3 |   add(exp(%x), 1f)" in text and "^~~~~~~ here" in text and "help: use tanh" in text
    if own:
        assert [d.level for d in ctx.diag_ctx.diagnostics] == [DiagnosticLevel.NOTE, DiagnosticLevel.ERROR]


def test_what_is_no_error_is_printed(capsys):
    found = DiagnosticContext()
    found.render()
    assert capsys.readouterr().err == ""
    found.emit(Diagnostic.warning(None, "this is slow"))
    found.render()
    assert capsys.readouterr().err == "warning: this is slow\n"
    found.emit(Diagnostic.bug(None, "this cannot be"))
    with pytest.raises(tvm.error.CompileError, match="bug: this cannot be"):
        found.render()


def test_only_findings_are_emitted():
    with pytest.raises(TypeError):
        DiagnosticContext().emit("wrong")

# SPDX-License-Identifier: Apache-2.0
"""Renderers of diagnostics that a program sets, and spans that are missing."""

import pytest

import baton as tvm
from baton import relay

V = '#[version = "0.0.5"]\n'


@pytest.fixture
def no_renderer():
    yield
    tvm.ir.diagnostics.override_renderer(None)


def test_a_programs_own_renderer(no_renderer):
    found = []

    def render(ctx):
        found.extend(ctx.diagnostics)

    tvm.ir.diagnostics.override_renderer(render)
    with pytest.raises(tvm.error.DiagnosticError):
        tvm.parser.parse(V + "def @main(%x: int32) -> int32 { %y }")
    (one,) = found
    assert one.level == tvm.ir.diagnostics.DiagnosticLevel.ERROR and "`%y` is not defined" in one.message and one.span.line == 2
    x = relay.var("x", shape=(2, 3))
    with pytest.raises(tvm.TVMError):
        relay.transform.InferType()(tvm.IRModule.from_expr(relay.nn.dense(x, relay.var("w", shape=(4, 5)))))
    assert len(found) == 2
    tvm.ir.diagnostics.get_renderer().render(tvm.ir.diagnostics.DiagnosticContext())
    tvm.ir.diagnostics.override_renderer(None)
    with pytest.raises(tvm.error.DiagnosticError):
        tvm.parser.parse(V + "def @main(%x: int32) -> int32 { %y }")
    assert len(found) == 2


def test_a_context_with_its_renderer(capsys):
    diagnostics = tvm.ir.diagnostics
    shown = []
    mod = tvm.IRModule()
    ctx = diagnostics.DiagnosticContext(mod, diagnostics.DiagnosticRenderer(lambda c: shown.extend(d.message for d in c.diagnostics)))
    span = relay.Span(relay.SourceName("file"), 1, 1, 2, 3)
    ctx.emit(diagnostics.Diagnostic(diagnostics.DiagnosticLevel.ERROR, span, "this is wrong"))
    with pytest.raises(tvm.error.DiagnosticError, match="this is wrong"):
        ctx.render()
    assert shown == ["this is wrong"] and ctx.module.same_as(mod)
    diagnostics.get_renderer().render(ctx)
    assert "this is wrong" in capsys.readouterr().err
    assert diagnostics.register_func is tvm.register_func


def test_missing_spans_are_reported(capsys):
    mod = tvm.parser.parse(V + "def @main(%x: Tensor[(2), float32]) { nn.relu(%x) }")
    assert tvm.parser.SpanCheck()(mod)["main"].body.op.name == "nn.relu" and capsys.readouterr().err == ""
    tvm.parser.SpanCheck()(tvm.IRModule.from_expr(relay.nn.relu(relay.var("x", shape=(2,)))))
    assert "this Call has no span" in capsys.readouterr().err

# SPDX-License-Identifier: Apache-2.0
"""Faults of a program, their places, and how to mend them."""

import enum
import sys

from .._core import Object
from .._ffi import get_global_func, register_func  # noqa: F401 - programs take it from here


class DiagnosticLevel(enum.IntEnum):
    """How bad it is."""

    BUG = 10
    ERROR = 20
    WARNING = 30
    NOTE = 40
    HELP = 50


class Diagnostic(Object, key="Diagnostic"):
    """One finding: level, span, message, label, help."""

    __slots__ = ()

    def __init__(self, level, span, message, label="", help=""):  # noqa: A002
        super().__init__(level=int(level), span=span, message=message, label=label, help=help)

    def render(self):
        """The text that a user sees."""
        return get_global_func("diagnostics.Render")(self)

    @staticmethod
    def bug(span, message, **more):
        """A fault of the compiler's own."""
        return Diagnostic(DiagnosticLevel.BUG, span, message, **more)

    @staticmethod
    def error(span, message, **more):
        """A fault of the program."""
        return Diagnostic(DiagnosticLevel.ERROR, span, message, **more)

    @staticmethod
    def warning(span, message, **more):
        """A possible fault."""
        return Diagnostic(DiagnosticLevel.WARNING, span, message, **more)

    @staticmethod
    def note(span, message, **more):
        """A useful fact."""
        return Diagnostic(DiagnosticLevel.NOTE, span, message, **more)


class DiagnosticRenderer:
    """Shows what a DiagnosticContext has found, by a function of it."""

    def __init__(self, render_func=None):
        self._render = _to_stderr if render_func is None else render_func

    def render(self, ctx):
        """Shows the findings of a context."""
        self._render(ctx)


def _to_stderr(ctx):
    for diagnostic in ctx.diagnostics:
        print(diagnostic.render(), file=sys.stderr)


_renderer = None


def get_renderer():
    """Returns the renderer of findings: the program's own renderer, or one that writes to standard error."""
    return _renderer or DiagnosticRenderer()


def override_renderer(render_func):
    """Lets a function show what is wrong with a program, before the error is raised that says it too; None for none.

    found = []
    baton.ir.diagnostics.override_renderer(lambda ctx: found.extend(d.message for d in ctx.diagnostics))
    """
    global _renderer
    _renderer = None if render_func is None else DiagnosticRenderer(render_func)
    get_global_func("diagnostics.SetRenderer")(render_func)


class DiagnosticContext(Object, key="DiagnosticContext"):
    """Collects findings over several passes; a PassContext's `diag_ctx`.

    @baton.transform.module_pass(opt_level=0)
    def no_tuples(mod, ctx):
        found = ctx.diag_ctx or DiagnosticContext()
        for expr in tuples_of(mod):
            found.emit(Diagnostic.error(expr.span, "there is a tuple", help="return its fields one by one"))
        found.render()   # a CompileError that shows them, if there are any
        return mod
    """

    __slots__ = ("module", "renderer")

    def __init__(self, module=None, renderer=None):
        super().__init__()
        self.module, self.renderer = module, renderer

    def emit(self, diagnostic):
        """Adds a finding; nothing is shown yet."""
        get_global_func("diagnostics.Emit")(self, diagnostic)

    def render(self):
        """Shows all findings: a CompileError that has their text where an error or a bug is among them; else they go to
        standard error. A renderer of the context's own shows them first."""
        if getattr(self, "renderer", None) is not None:
            self.renderer.render(self)
        text = str(get_global_func("diagnostics.RenderContext")(self, 0))
        if text:
            print(text, file=sys.stderr)

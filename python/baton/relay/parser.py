# SPDX-License-Identifier: Apache-2.0
"""Relay text to programs."""

from .._ffi import get_global_func
from ..error import CompileError, ParseError
from ..ir import IRModule, Op, save_json
from ..ir.base import astext
from .function import Function


def _call(name, *args):
    try:
        return get_global_func("parser." + name)(*args)
    except CompileError as error:
        if type(error) is not CompileError:
            raise
        raise ParseError(str(error)) from None


def _with_meta(source, table):
    if not table:
        return source
    if "#[metadata]" in source:
        raise ValueError("the text has its own metadata, and init_meta_table brings another")
    return f"{source}\n#[metadata]\n{save_json({k: list(v) for k, v in table.items()})}"


def parse(source, source_name="from_string", init_module=None, init_meta_table=None):
    """The module of a Relay text; its functions are added to `init_module`'s, if given, and may name them. `init_meta_table` has what
    the text refers to as `meta[relay.Constant][0]`, lists by type key. Raises ParseError that shows the place."""
    base = IRModule() if init_module is None else init_module
    mod = _call("ParseModule", source_name, _with_meta(source, init_meta_table), base)
    if init_module is None:
        return mod
    both = init_module.shallow_copy()
    both.update(mod)
    return both


def SpanCheck():
    """A pass that warns of expressions whose place in the source is not known, and changes nothing."""
    from ..ir.diagnostics import Diagnostic, DiagnosticContext
    from ..ir.transform import module_pass
    from .analysis import post_order_visit

    def warn(mod, ctx):
        found = DiagnosticContext()

        def look(expr):
            if expr.span is None and not isinstance(expr, Op):
                found.emit(Diagnostic.warning(None, f"this {type(expr).__name__} has no span: {str(astext(expr, False)).strip()[:200]}"))

        for func in mod.functions.values():
            if isinstance(func, Function):
                post_order_visit(func, look)
        found.render()
        return mod

    return module_pass(warn, opt_level=0, name="SpanCheck")


def fromtext(source, source_name="from_string"):
    """The module of a Relay text that begins with its version."""
    return parse(source, source_name)


def parse_expr(source):
    """The expression of a Relay text."""
    return _call("ParseExpr", "from_string", source)

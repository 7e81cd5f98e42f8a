# SPDX-License-Identifier: Apache-2.0
"""Relay text to programs."""

from .._ffi import get_global_func
from ..error import CompileError, ParseError


def _call(name, *args):
    try:
        return get_global_func("relay.parser." + name)(*args)
    except CompileError as error:
        if type(error) is not CompileError:
            raise
        raise ParseError(str(error)) from None


def parse(source, source_name="from_string", init_module=None, init_meta_table=None):
    """The module of a Relay text; its functions are added to `init_module`'s, if given. Raises ParseError that shows the
    place."""
    mod = _call("ParseModule", source, source_name)
    if init_module is None:
        return mod
    both = init_module.shallow_copy()
    both.update(mod)
    return both


def fromtext(source, source_name="from_string"):
    """The module of a Relay text that begins with its version."""
    return parse(source, source_name)


def parse_expr(source):
    """The expression of a Relay text."""
    return _call("ParseExpr", source, "from_string")

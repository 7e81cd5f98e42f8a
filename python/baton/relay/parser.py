# SPDX-License-Identifier: Apache-2.0
"""Relay text to programs."""

from .._ffi import get_global_func


def parse(source, source_name="from_string", init_module=None, init_meta_table=None):
    """The module of a Relay text. Raises ParseError that shows the place."""
    return get_global_func("relay.parser.ParseModule")(source_name, source, init_module, init_meta_table)


def fromtext(source, source_name="from_string"):
    """The module of a Relay text that begins with its version."""
    return parse(source, source_name)


def parse_expr(source):
    """The expression of a Relay text."""
    return get_global_func("relay.parser.ParseExpr")("from_string", source)

# SPDX-License-Identifier: Apache-2.0
"""Functions."""

from .._ffi import get_global_func
from ..ir import BaseFunc, FuncType, make_node
from ..ir.base import astext
from .expr import Call


class Function(BaseFunc, key="relay.Function"):
    """`fn<type_params>(params) -> ret_type { body }`."""

    __slots__ = ()

    def __init__(self, params, body, ret_type=None, type_params=None, attrs=None, span=None):
        if isinstance(attrs, dict):
            attrs = make_node("DictAttrs", dict=attrs)
        super().__init__(attrs=attrs, type_params=list(type_params or ()), params=list(params), body=body, ret_type=ret_type, span=span)

    @property
    def ret_type(self):
        """The result's type that is written down; where there is none, the one that was inferred, or None."""
        written = self._field("ret_type")
        known = self.checked_type_ if written is None else None
        return known.ret_type if isinstance(known, FuncType) else written

    def __call__(self, *args):
        """A call of the function."""
        return Call(self, args)

    def _repr_html_(self):
        """The text for notebooks, coloured."""
        from ..runtime import html

        return html.program(astext(self, False))


def function_of(expr):
    """The function of an expression's free variables, in order of first use."""
    return Function(list(get_global_func("relay.analysis.free_vars")(expr)), expr)


__all__ = ["BaseFunc", "Function", "function_of"]

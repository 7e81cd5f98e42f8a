# SPDX-License-Identifier: Apache-2.0
"""Functions."""

from .._ffi import get_global_func
from ..ir import BaseFunc, make_node
from .expr import Call


class Function(BaseFunc, key="relay.Function"):
    """`fn<type_params>(params) -> ret_type { body }`."""

    __slots__ = ()

    def __init__(self, params, body, ret_type=None, type_params=None, attrs=None, span=None):
        if isinstance(attrs, dict):
            attrs = make_node("DictAttrs", dict=attrs)
        super().__init__(attrs=attrs, type_params=list(type_params or ()), params=list(params), body=body, ret_type=ret_type, span=span)

    def __call__(self, *args):
        """A call of the function."""
        return Call(self, args)


def function_of(expr):
    """The function of an expression's free variables, in order of first use."""
    return Function(list(get_global_func("relay.analysis.free_vars")(expr)), expr)


__all__ = ["BaseFunc", "Function", "function_of"]

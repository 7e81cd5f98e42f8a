# SPDX-License-Identifier: Apache-2.0
"""Functions of loops."""

from .._ffi import get_global_func
from ..ir import BaseFunc, TupleType, make_node
from . import _ffi_api
from .buffer import Buffer
from .expr import PrimExpr, Var
from .stmt import Evaluate


class PrimFunc(BaseFunc, key="tir.PrimFunc"):
    """A function of loops. A parameter is a scalar variable, or a buffer, or the variable of one in `buffer_map`."""

    __slots__ = ()

    def __init__(self, params, body, ret_type=None, buffer_map=None, preflattened_buffer_map=None, attrs=None, span=None):
        variables, buffers = [], dict(buffer_map.items()) if buffer_map else {}
        for p in params:
            if isinstance(p, Buffer):
                var = Var(p.name, "handle")
                buffers[var] = p
                p = var
            variables.append(p)
        if isinstance(attrs, dict):
            attrs = make_node("DictAttrs", dict=attrs)
        body = Evaluate(body) if isinstance(body, PrimExpr) else body
        self.__init_handle_by_constructor__(_ffi_api.PrimFunc, variables, body, buffers, attrs)

    def _repr_html_(self):
        """The text for notebooks, coloured."""
        from ..runtime import html

        return html.program(str(self))

    @property
    def ret_type(self):
        """The empty tuple: results are written to buffers."""
        return TupleType([])

    def with_body(self, new_body, span=None):
        """The function with another body."""
        return PrimFunc(self.params, new_body, buffer_map=self.buffer_map, attrs=self.attrs)

    def script(self):
        """The text form."""
        return str(get_global_func("tir.AsText")(self))

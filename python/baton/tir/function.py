# SPDX-License-Identifier: Apache-2.0
"""Functions of loops."""

from .._ffi import get_global_func
from ..ir import BaseFunc, TupleType, make_node, structural_equal
from . import _ffi_api
from .buffer import Buffer, decl_buffer
from .expr import BufferLoad, PrimExpr, Var
from .stmt import BufferStore, Evaluate
from .stmt_functor import ir_transform, substitute


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

    def specialize(self, param_map):
        """Returns the function for given parameters: a scalar is replaced by its value and leaves the parameters, a buffer by one whose extents replace
        variables. Raises ValueError for an unknown parameter, and for a buffer of another dtype, rank or extent."""
        values, buffers = {}, dict(self.buffer_map.items())
        for param, value in dict(param_map.items()).items():
            if not any(param.same_as(p) for p in self.params):
                raise ValueError(f"`{param}` is none of the parameters {', '.join(str(p) for p in self.params)}")
            if isinstance(value, Buffer):
                values.update(_extents(buffers.get(param), value, param))
            elif param in buffers:
                raise ValueError(f"`{param}` is a buffer's, and is given by a buffer")
            else:
                values[param] = value if isinstance(value, PrimExpr) else _ffi_api.const(value, param.dtype)
        made = {b: _with_extents(b, values) for b in buffers.values()}
        made = {old: new for old, new in made.items() if new is not old}
        body = substitute(self.body, values)
        if made:
            body = ir_transform(body, None, lambda node: _on_buffers(node, made), ["tir.BufferLoad", "tir.BufferStore"])
        params = [p for p in self.params if p not in values]
        return PrimFunc(params, body, buffer_map={p: made.get(b, b) for p, b in buffers.items()}, attrs=self.attrs)

    def script(self):
        """The text form."""
        return str(get_global_func("tir.AsText")(self))


def _extents(buffer, given, param):
    """Variables of a buffer's shape and strides by what `given` has for them."""
    if buffer is None:
        raise ValueError(f"`{param}` is a scalar, and is given by a value, not by a buffer")
    if buffer.dtype != given.dtype or len(buffer.shape) != len(given.shape) or len(buffer.strides) != len(given.strides):
        raise ValueError(f"`{param}` is a buffer of {buffer.dtype} and rank {len(buffer.shape)}, given by one of {given.dtype} and rank {len(given.shape)}")
    found = {}
    for have, want in zip([*buffer.shape, *buffer.strides], [*given.shape, *given.strides], strict=True):
        if isinstance(have, Var) and not (have in found and not structural_equal(found[have], want)):
            found[have] = want
        elif not isinstance(have, Var) and structural_equal(have, want):
            continue
        else:
            raise ValueError(f"`{param}` has an extent {have}, given by {want}")
    return found


def _with_extents(buffer, values):
    """The buffer with variables of its shape and strides replaced; itself where it has none of them."""
    shape, strides = ([substitute(e, values) for e in part] for part in (buffer.shape, buffer.strides))
    if all(a.same_as(b) for a, b in zip([*shape, *strides], [*buffer.shape, *buffer.strides], strict=True)):
        return buffer
    return decl_buffer(shape, buffer.dtype, buffer.name, buffer.data, strides, scope=buffer.scope())


def _on_buffers(node, made):
    buffer = made.get(node.buffer)
    if buffer is None:
        return None
    indices = list(node.indices)
    return BufferLoad(buffer, indices) if isinstance(node, BufferLoad) else BufferStore(buffer, node.value, indices)

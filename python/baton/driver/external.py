# SPDX-License-Identifier: Apache-2.0
"""Functions for compilers that a program brings along: `PartitionGraph` marks them, `relay.ext.NAME` makes code of them."""

import itertools

from .. import error as errors
from .._ffi import get_global_func, register_func
from ..ir import TensorType, TupleType
from ..relay.expr import Call
from ..relay.function import Function
from ..relay.op.op import register, register_compute
from ..relay.transform import InferType
from ..runtime import Module
from ..te import extern
from ..tir import IntImm, call_packed

_numbers = itertools.count()


def compiled_outside(mod):
    """The module with calls of code in place of functions for compilers that the program registered; itself if there are none.

    `@register_func("relay.ext.NAME")` gets such a function and gives a module of code, whose function of the name `global_symbol`
    takes arrays: the arguments, then the results. Such a program runs in this process alone.
    """
    makers = {var: _maker(f) for var, f in mod.functions.items() if isinstance(f, Function)}
    if not any(makers.values()):
        return mod
    mod = InferType()(mod)
    out = mod.shallow_copy()
    for var, make in makers.items():
        if make is not None:
            out[var] = _called(mod[var.name_hint], make, var.name_hint)
    return out


def _maker(func):
    """The code generator of a function; None for one without."""
    if not func.attrs or "Compiler" not in func.attrs.keys():
        return None
    return get_global_func("relay.ext." + str(func.attrs["Compiler"]), True)


def _called(func, make, name):
    """The function that calls what the code generator makes of it."""
    symbol = str(func.attrs["global_symbol"]) if "global_symbol" in func.attrs.keys() else name
    code = make(func)
    if not isinstance(code, Module):
        raise errors.TypeError(f"relay.ext.{func.attrs['Compiler']} gave {type(code).__name__} for `{symbol}`, where a runtime.Module is wanted")
    result = func.ret_type if func.ret_type is not None else func.body.checked_type
    kinds = list(result.fields) if isinstance(result, TupleType) else [result]
    takes = [p.checked_type for p in func.params]
    for kind in (*takes, *kinds):
        if not isinstance(kind, TensorType) or not all(isinstance(d, (int, IntImm)) for d in kind.shape):
            raise errors.UnsupportedError(f"`{symbol}` is for `{func.attrs['Compiler']}`, which takes and gives tensors of known shapes, not {kind}")
    packed = f"baton.external.{next(_numbers)}.{symbol}"
    run = code[symbol]
    register_func(packed, lambda *arrays: run(*arrays) and None)

    def compute(attrs, inputs, out_type):
        made = extern(
            [list(t.shape) for t in kinds], inputs, lambda ins, outs: call_packed(packed, *ins, *outs), name=symbol, dtype=[str(t.dtype) for t in kinds]
        )
        return made if isinstance(made, list) else [made]

    op = register(packed, f"`{symbol}`, made by relay.ext.{func.attrs['Compiler']}.")
    op.set_num_inputs(len(func.params))
    op.add_type_rel(packed, lambda types, attrs: result)
    register_compute(packed, compute)
    return Function(func.params, Call(op, list(func.params)), func.ret_type)


__all__ = ["compiled_outside"]

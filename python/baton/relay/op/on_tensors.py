# SPDX-License-Identifier: Apache-2.0
"""Operators on tensors of tensor expressions, for `topi` and the arithmetic of `te.Tensor`."""

import numbers

from ..._ffi import get_global_func
from ...ir import PrimExpr, TensorType, TupleType
from ...te import Tensor, TensorSlice, compute
from ..expr import TupleWrapper, Var, const, infer_type
from ..function import Function
from . import find


def on_tensors(function, args, kwargs):
    """The result of a function of expressions for tensors anywhere among its arguments: a tensor, or a list of several."""
    found, params = [], []

    def lift(value):
        if isinstance(value, (list, tuple)):
            return type(value)(map(lift, value))
        if isinstance(value, TensorSlice):
            value = value.asobject()
        if isinstance(value, PrimExpr) and not hasattr(value, "value"):
            value = compute((), lambda scalar=value: scalar, "scalar")
        if not isinstance(value, Tensor):
            return value
        for tensor, var in zip(found, params, strict=True):
            if tensor.same_as(value):
                return var
        found.append(value)
        params.append(Var(value.op.name, TensorType(value.shape, value.dtype)))
        return params[-1]

    args, kwargs = lift(args), {k: lift(v) for k, v in kwargs.items()}
    expr = function(*args, **kwargs)
    if isinstance(expr, TupleWrapper):
        expr = expr.astuple()
    if expr in params:
        return found[params.index(expr)]
    several = isinstance(infer_type(expr), TupleType)
    results = list(get_global_func("relay.OnTensors")(Function(params, expr), found))
    return results if several else results[0]


def arithmetic(name, *operands):
    """An operator of tensors and numbers; a number has the dtype of the tensors."""
    dtype = next(str(x.dtype) for x in operands if isinstance(x, Tensor))
    return on_tensors(find(name), [const(x, dtype) if isinstance(x, numbers.Number) else x for x in operands], {})


__all__ = ["arithmetic", "on_tensors"]

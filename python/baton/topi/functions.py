# SPDX-License-Identifier: Apache-2.0
"""Operators on tensors of tensor expressions: `topi.add(A, B)` is what `relay.add` computes, as a te.Tensor."""

from .._ffi import get_global_func
from ..ir import PrimExpr, TensorType
from ..te import Tensor, TensorSlice, compute


def apply(function, *args, **kwargs):
    """What an operator of Relay gives for tensors, which stand anywhere among its arguments: a tensor, or a list of several."""
    from .. import relay
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
        params.append(relay.Var(value.op.name, TensorType(value.shape, value.dtype)))
        return params[-1]

    args, kwargs = lift(args), {k: lift(v) for k, v in kwargs.items()}
    expr = function(*args, **kwargs)
    if isinstance(expr, relay.expr.TupleWrapper):
        expr = expr.astuple()
    if expr in params:
        return found[params.index(expr)]
    several = isinstance(relay.transform.InferTypeLocal(expr), relay.TupleType)
    results = list(get_global_func("relay.OnTensors")(relay.Function(params, expr), found))
    return results if several else results[0]


def wrapped(function, name, module):
    """The function on tensors of a function of Relay."""

    def call(*args, **kwargs):
        return apply(function, *args, **kwargs)

    call.__name__ = call.__qualname__ = name
    call.__module__ = module
    call.__doc__ = f"{(function.__doc__ or '').splitlines()[0] if function.__doc__ else name}\n\nTakes and gives tensors of tensor expressions; parameters as of `baton.relay.{name}`."
    return call


def operators(prefix, module, own):
    """`__getattr__` and `__dir__` of a module of operators whose names begin with `prefix`."""

    def find(name):
        from ..relay.op import find as find_operator
        function = None if name.startswith("_") else find_operator(prefix + name)
        if not callable(function):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        value = own[name] = wrapped(function, name, module)
        return value

    def names():
        from ..relay.op import find as find_operator
        from ..relay.op import names_in
        return sorted({*own, *(n for n in names_in(prefix) if callable(find_operator(prefix + n)))})

    return find, names


__all__ = ["apply", "operators", "wrapped"]

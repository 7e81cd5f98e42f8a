# SPDX-License-Identifier: Apache-2.0
"""Operators on tensors of tensor expressions: `topi.add(A, B)` is what `relay.add` computes, as a te.Tensor."""

import inspect

from ... import tir
from ...error import UnsupportedError
from ...relay.op import find as find_operator
from ...relay.op import names_in as operator_names
from ...relay.op.on_tensors import on_tensors
from .signatures import SIGNATURES


def apply(function, *args, **kwargs):
    """The result of an operator of Relay for tensors anywhere among its arguments: a tensor, or a list of several."""
    return on_tensors(function, args, kwargs)


# Operators on expressions other than tensors: what they are in `tir`.
_SCALARS = {"divide": "div", "floor_divide": "floordiv", "floor_mod": "floormod", "maximum": "max", "minimum": "min", "mod": "truncmod"} | {
    name: name
    for name in "abs acos acosh asin asinh atan atanh add ceil cos cosh erf exp floor isfinite isinf isnan log log10 log2 multiply power round rsqrt sigmoid sin sinh sqrt subtract tan tanh trunc".split()
}


def _signature(parameters):
    return inspect.signature(eval(f"lambda {parameters}: None", {}))  # noqa: S307 - rows of signatures.py


def wrapped(function, name, module, prefix=""):
    """The function on tensors that corresponds to a function of Relay."""
    given, relay = SIGNATURES.get(prefix + name, (None, None))
    signature = _signature(given) if given else None

    def call(*args, **kwargs):
        if signature is not None:
            try:
                bound = signature.bind(*args, **kwargs)
            except TypeError:
                # As Relay's parameters are called.
                return apply(function, *args, **kwargs)
            bound.apply_defaults()
            values = bound.arguments
            if name in _SCALARS and not prefix and all(is_scalar(v) for v in values.values()):
                return getattr(tir, _SCALARS[name])(*map(tir.op.convert, values.values()))
            _refuse(name, values, relay)
            if name == "squeeze" and values["axis"] is None:  # what is not known to be 1 stays
                values["axis"] = [i for i, d in enumerate(values["a"].shape) if getattr(d, "value", None) == 1]
            pairs = [(to, v) for to, v in zip(relay, values.values(), strict=True) if to != "-" and v is not None]
            kwargs = dict(pairs[1:])
            args = [pairs[0][1]]
        return apply(function, *args, **kwargs)

    if signature is not None:
        call.__signature__ = signature
    call.__name__ = call.__qualname__ = name
    call.__module__ = module
    call.__doc__ = f"{(function.__doc__ or '').splitlines()[0] if function.__doc__ else name}\n\nTakes and gives tensors of tensor expressions; parameters as of `baton.relay.{name}`."
    return call


def is_scalar(value):
    """Whether a value is a number, or an expression other than a tensor."""
    return isinstance(value, (int, float, tir.PrimExpr, tir.IterVar))


def _refuse(name, values, relay):
    for (key, value), to in zip(values.items(), relay, strict=True):
        if to == "-" and value is not None and key == "valid_count":
            raise UnsupportedError(f"topi.{name}: {key} is not there; all elements count")


def operators(prefix, module, own):
    """`__getattr__` and `__dir__` of a module of operators whose names begin with `prefix`."""

    def find(name):
        function = None if name.startswith("_") else find_operator(prefix + name)
        if not callable(function):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        value = own[name] = wrapped(function, name, module, prefix)
        return value

    def names():
        return sorted({*own, *(n for n in operator_names(prefix) if callable(find_operator(prefix + n)))})

    return find, names


__all__ = ["apply", "operators", "wrapped"]

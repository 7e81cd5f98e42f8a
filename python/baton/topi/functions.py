# SPDX-License-Identifier: Apache-2.0
"""Operators on tensors of tensor expressions: `topi.add(A, B)` is what `relay.add` computes, as a te.Tensor."""

from .._ffi.hook import Hook

# Relay defines what operators compute: here are their names and forms on tensors.
find_operator = Hook("topi.find_operator")
operator_names = Hook("topi.operator_names")
_on_tensors = Hook("topi.on_tensors")


def apply(function, *args, **kwargs):
    """The result of an operator of Relay for tensors anywhere among its arguments: a tensor, or a list of several."""
    return _on_tensors(function, args, kwargs)


def wrapped(function, name, module):
    """The function on tensors that corresponds to a function of Relay."""

    def call(*args, **kwargs):
        return apply(function, *args, **kwargs)

    call.__name__ = call.__qualname__ = name
    call.__module__ = module
    call.__doc__ = f"{(function.__doc__ or '').splitlines()[0] if function.__doc__ else name}\n\nTakes and gives tensors of tensor expressions; parameters as of `baton.relay.{name}`."
    return call


def operators(prefix, module, own):
    """`__getattr__` and `__dir__` of a module of operators whose names begin with `prefix`."""

    def find(name):
        function = None if name.startswith("_") else find_operator(prefix + name)
        if not callable(function):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        value = own[name] = wrapped(function, name, module)
        return value

    def names():
        return sorted({*own, *(n for n in operator_names(prefix) if callable(find_operator(prefix + n)))})

    return find, names


__all__ = ["apply", "operators", "wrapped"]

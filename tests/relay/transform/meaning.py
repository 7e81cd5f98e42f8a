# SPDX-License-Identifier: Apache-2.0
"""Random arguments for a function, and what the interpreter makes of them: for tests that a pass keeps the meaning."""

from baton import relay
from baton.guard import Checker, Sampler
from baton.guard.sample import numpy_of


def arguments(func, seed=0, mod=None, size=3):
    """A value for each parameter, of any type: positive numbers, `size` for an unknown extent. New references in each call."""
    sampler = Sampler("positive", seed, list(mod.type_definitions.items()) if mod else (), size)
    return [sampler.value(p.checked_type) for p in func.params]


def flat(x, kind=None, mod=None):
    """Everything that a value consists of, in order: arrays of NumPy, and what its structure is in words. A function is called with
    arguments of its type `kind`, and stands for what it gives."""
    if hasattr(x, "numpy"):
        return [numpy_of(x)]
    if isinstance(x, relay.backend.interpreter.ConstructorValue):
        return [x.constructor.name_hint, *(leaf for field in x.fields for leaf in flat(field, None, mod))]
    if isinstance(x, relay.backend.interpreter.RefValue):
        return ["ref", *flat(x.value, getattr(kind, "value", None), mod)]
    if isinstance(x, relay.backend.interpreter.Closure) and kind is not None:
        given = Checker().evaluate(x, [Sampler("positive", 7, list(mod.type_definitions.items())).value(t) for t in kind.arg_types], mod)
        assert given.error is None, given.error
        return ["fn", *flat(given.value, kind.ret_type, mod)]
    if isinstance(x, (tuple, list)) or type(x).__name__ == "Array":
        kinds = kind.fields if isinstance(kind, relay.TupleType) else [None] * len(x)
        return [f"tuple of {len(x)}", *(leaf for part, k in zip(x, kinds, strict=True) for leaf in flat(part, k, mod))]
    raise TypeError(f"what a {type(x).__name__} means cannot be compared")


def results(mod, args):
    """What main gives, and what it leaves in references that it was given, in one row."""
    value = relay.create_executor("debug", mod).evaluate()(*args)
    return flat(value, mod["main"].ret_type, mod) + [leaf for a in args if isinstance(a, relay.backend.interpreter.RefValue) for leaf in flat(a)]


def evaluate(mod, args):
    """The arrays of what main gives, in a row."""
    return [leaf for leaf in results(mod, args) if not isinstance(leaf, str)]

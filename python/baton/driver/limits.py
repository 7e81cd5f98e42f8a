# SPDX-License-Identifier: Apache-2.0
"""Limits of a call of a model: seconds, bytes of arrays, rounds of loops."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import contextmanager
from typing import NamedTuple

from .. import _core


class Limits(NamedTuple):
    """Bounds of a call; None: no bound.

    seconds: a TimeoutError, between two steps of the model. bytes: of the arrays that the call holds at one time beside its inputs and
    weights, a MemoryError. rounds: of loops, and calls of functions, an Error that names the function.
    """

    seconds: float | None = None
    bytes: int | None = None
    rounds: int | None = None

    @staticmethod
    def of(value) -> Limits | None:
        """From a Limits, or a mapping with some of its names; None for no bounds."""
        if value is None:
            return None
        if not isinstance(value, Limits):
            if not isinstance(value, Mapping):
                raise TypeError(f"limits is a baton.Limits or a dict with some of {', '.join(Limits._fields)}, not {type(value).__name__}")
            unknown = [name for name in value if name not in Limits._fields]
            if unknown:
                raise ValueError(f"there is no limit `{unknown[0]}`; there are {', '.join(Limits._fields)}")
            value = Limits(**value)
        for name, bound in zip(Limits._fields, value, strict=True):
            if bound is not None and not bound >= 0:
                raise ValueError(f"the limit `{name}` is {bound}, must not be negative")
        return None if value == Limits() else value

    @contextmanager
    def hold(self):
        """While it lasts, what this thread runs keeps to them."""
        seconds, count, rounds = (-1 if bound is None else bound for bound in self)
        _core.set_limits(float(seconds), min(int(count), 1 << 62), min(int(rounds), 1 << 62))
        try:
            yield
        finally:
            _core.set_limits(-1.0, -1, -1)


__all__ = ["Limits"]

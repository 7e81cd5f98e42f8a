# SPDX-License-Identifier: Apache-2.0
"""Conditions under which an implementation of an operator is taken."""


class SpecializedCondition:
    """Conditions on the extents of a call; implementations that a strategy adds within its `with` are subject to all of them."""

    _entered = []

    def __init__(self, conditions):
        self.clauses = list(conditions) if isinstance(conditions, (list, tuple)) else [conditions]

    @classmethod
    def current(cls):
        """The condition of the innermost `with`; None outside."""
        return cls._entered[-1] if cls._entered else None

    def __enter__(self):
        self._entered.append(self)
        return self

    def __exit__(self, *_):
        self._entered.pop()


__all__ = ["SpecializedCondition"]

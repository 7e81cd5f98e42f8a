# SPDX-License-Identifier: Apache-2.0
"""Data types applied to arguments, and relations between types."""

from .._ffi.object import generated_class
from .type import Type


class TypeCall(Type, key="TypeCall"):
    """A data type applied to arguments, as `List[A]`."""

    __slots__ = ()

    def __init__(self, func, args, span=None):
        super().__init__(func=func, args=list(args), span=span)


def __getattr__(name):
    cls = generated_class(name) if name == "TypeRelation" else None
    if cls is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return cls

# SPDX-License-Identifier: Apache-2.0
"""Values that the interpreter gives."""

from ..._core import Object
from .executor import Executor, Interpreter


class ConstructorValue(Object, key="relay.ConstructorValue"):
    """A value of a data type: `tag`, `fields`, `constructor`."""

    __slots__ = ()


class RefValue(Object, key="relay.RefValue"):
    """A reference."""

    __slots__ = ()


class Closure(Object, key="relay.Closure"):
    """A function and what it closes over."""

    __slots__ = ()


__all__ = ["Closure", "ConstructorValue", "Executor", "Interpreter", "RefValue"]

# SPDX-License-Identifier: Apache-2.0
"""Values that the interpreter returns."""

from ..._core import Object
from ..._ffi import get_global_func


class ConstructorValue(Object, key="relay.ConstructorValue"):
    """A value of a data type: `tag`, `fields`, `constructor`."""

    __slots__ = ()


class RefValue(Object, key="relay.RefValue"):
    """A reference: `value` is what it holds."""

    __slots__ = ()

    def __init__(self, value):
        self.__init_handle_by_constructor__(get_global_func("relay.backend.MakeRefValue"), value)

    @property
    def value(self):
        """The value that it holds now."""
        return get_global_func("relay.backend.ReadRefValue")(self)


class Closure(Object, key="relay.Closure"):
    """A function with its captured variables."""

    __slots__ = ()


__all__ = ["Closure", "ConstructorValue", "RefValue"]

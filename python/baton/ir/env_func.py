# SPDX-License-Identifier: Apache-2.0
"""Global functions as parts of IR."""

from .._core import Object
from .._ffi import get_global_func


class EnvFunc(Object, key="EnvFunc"):
    """A global function, known by its name: it prints, compares, saves and loads, and can be called.

    add = baton.ir.EnvFunc.get("my.add")
    add(1, 2)
    """

    __slots__ = ()

    @staticmethod
    def get(name):
        """That of a name; ValueError for a name that no function has."""
        return get_global_func("ir.EnvFuncGet")(name)

    @property
    def func(self):
        """The PackedFunc that the name stands for now; ValueError if there is none any more."""
        return get_global_func("ir.EnvFuncGetPackedFunc")(self)

    def __call__(self, *args):
        return self.func(*args)

# SPDX-License-Identifier: Apache-2.0
"""Passes over loop programs: `tir.transform.Simplify()` and its like, and how to write one."""

from .._ffi import attach_classes, get_global_func, list_global_func_names
from ..ir.transform import Pass, make_pass_decorator, pass_doc

_PREFIX = "tir.transform."


class PrimFuncPass(Pass, key="tir.PrimFuncPass"):
    """A pass over the PrimFuncs of a module, one at a time; made by `prim_func_pass`."""

    __slots__ = ()


prim_func_pass = make_pass_decorator(lambda body, info: get_global_func(_PREFIX + "CreatePrimFuncPass")(body, info), PrimFuncPass,
                                     "transform_function")
prim_func_pass.__name__ = prim_func_pass.__qualname__ = "prim_func_pass"
prim_func_pass.__doc__ = """Makes a pass over PrimFuncs of a function `(func, mod, ctx) -> func` or of a class with
`transform_function(self, func, mod, ctx)`."""


def Apply(ftransform):
    """A pass that maps each PrimFunc by a function."""
    return prim_func_pass(lambda func, mod, ctx: ftransform(func), opt_level=0, name="Apply")


def _doc(name):
    return pass_doc(_PREFIX, name)


def __getattr__(name):
    if name.startswith("_") or get_global_func(_PREFIX + name, allow_missing=True) is None:
        raise AttributeError(f"there is no pass `{name}`")

    def make(*args):
        return get_global_func(_PREFIX + name)(*args)

    make.__name__ = make.__qualname__ = name
    make.__module__, make.__doc__ = __name__, _doc(name)
    globals()[name] = make
    return make


def __dir__():
    found = (n[len(_PREFIX):] for n in list_global_func_names() if n.startswith(_PREFIX))
    return sorted({*globals(), *(n for n in found if "." not in n)})


attach_classes(__name__, "tir.transform.")

# SPDX-License-Identifier: Apache-2.0
"""Passes over PrimFuncs: `tir.transform.Simplify()` and its like, and how to write one."""

from .._ffi import attach_classes, get_global_func
from ..ir.transform import Pass, make_pass_decorator, pass_functions
from .expr import Var

_PREFIX = "tir.transform."


class PrimFuncPass(Pass, key="tir.PrimFuncPass"):
    """A pass over the PrimFuncs of a module, one at a time; made by `prim_func_pass`."""

    __slots__ = ()


prim_func_pass = make_pass_decorator(lambda body, info: get_global_func(_PREFIX + "CreatePrimFuncPass")(body, info), PrimFuncPass, "transform_function")
prim_func_pass.__name__ = prim_func_pass.__qualname__ = "prim_func_pass"
prim_func_pass.__doc__ = """Makes a pass over PrimFuncs of a function `(func, mod, ctx) -> func` or of a class with
`transform_function(self, func, mod, ctx)`."""


def Apply(ftransform):
    """A pass that maps each PrimFunc by a function."""
    return prim_func_pass(lambda func, mod, ctx: ftransform(func), opt_level=0, name="Apply")


def ConvertSSA():
    """A pass that leaves functions in which each variable is bound at one place; raises UnsupportedError for others, which no builder here makes."""
    from ..error import UnsupportedError
    from .analysis import verify_ssa

    def check(func):
        if not verify_ssa(func):
            raise UnsupportedError("ConvertSSA: a variable is bound at two places of the function; give each binding its own variable")
        return func

    return prim_func_pass(lambda func, mod, ctx: check(func), opt_level=0, name="ConvertSSA")


def CommonSubexprElimTIR(enable_cse_tir=True):
    """A pass that binds what statements compute more than once, of variables and literals, to variables in front of them (`tir.LetStmt`)."""
    from .common_subexpressions import CommonSubexpressions

    def run(func):
        if not enable_cse_tir:
            return func
        sizes = [d for b in func.buffer_map.values() for d in b.shape if isinstance(d, Var)]
        body = CommonSubexpressions()(func.body, frozenset(v.handle for v in (*func.params, *sizes)))
        return func if body.same_as(func.body) else func.with_body(body)

    return prim_func_pass(lambda func, mod, ctx: run(func), opt_level=0, name="CommonSubexprElimTIR")


def InjectCopyIntrin(pragma_key, fintrin):
    """Not supported: copies have no intrinsics."""
    from ..error import UnsupportedError

    raise UnsupportedError(
        f"InjectCopyIntrin({pragma_key!r}, ...): copies are loops, which the code generators make vector code of; replace "
        "one by a call of your own (tir.call_extern) in a pass made by tir.transform.prim_func_pass"
    )


__getattr__, pass_names = pass_functions(_PREFIX, __name__)


def __dir__():
    return sorted({*globals(), *pass_names()})


attach_classes(__name__, "tir.transform.")

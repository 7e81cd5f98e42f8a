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


def Filter(fcond=None):
    """Keeps the PrimFuncs of which `fcond(func)` is true; without a condition all."""
    return get_global_func(_PREFIX + "Filter")(fcond)


def HoistIfThenElse(variant=None):
    """A condition that is the same in all rounds of a loop, and is all that the loop does, moves out of it.

    variant: "basic" wants the condition directly within its loops; otherwise bindings and allocations may stand between, and, with the
    option `{"tir.HoistIfThenElse": {"support_block_scope_hosting": True}}` of the context, marked scopes.
    """
    return get_global_func(_PREFIX + "HoistIfThenElse")(variant or "")


def LiftAttrScope(attr_key=""):
    """Marks (AttrStmt) called `attr_key`, all without one, move out of loops that they do not depend on; equal ones behind each other become one."""
    return get_global_func(_PREFIX + "LiftAttrScope")(attr_key)


def MakePackedAPI(num_unpacked_params=-1):
    """Adds to each function the one that is behind its PackedFunc, called `baton_call_` and the function's name: it takes pointers and
    numbers, reads sizes from the shapes, checks them and calls. `baton.build` does so by itself."""
    return get_global_func(_PREFIX + "MakePackedAPI")(num_unpacked_params)


def NarrowDataType(target_bits=32):
    """Integers of 64 bits are computed with `target_bits` (16, 32; 64 changes nothing) where the bounds of loops prove that nothing is
    lost. Variables of loops and indices stay int64; what is computed between them becomes narrow."""
    return get_global_func(_PREFIX + "NarrowDataType")(target_bits)


def StorageFlatten(cache_line_size=64, create_bound_attribute=False):
    """Every buffer becomes one-dimensional, in row-major order.

    cache_line_size: bytes that memory is aligned to, at most 64, to which all is aligned. create_bound_attribute: the mark "buffer_bound"
    around the body says of each parameter how many elements it has.
    """
    return get_global_func(_PREFIX + "StorageFlatten")(cache_line_size, create_bound_attribute)


def ThreadSync(storage_scope="shared"):
    """Barriers (`tvm_storage_sync`) between the threads of a block where one reads what another wrote, or writes what another read or wrote.

    storage_scope: the memory that they exchange values in, "shared" (a block's own) or "global". An element that its index keeps to one
    thread, as `S[threadIdx.x]`, needs no barrier. Run UnifyThreadBinding before. Raises CompileError where a barrier would stand in a branch
    or loop that not all threads take.
    """
    return get_global_func(_PREFIX + "ThreadSync")(storage_scope)


def VectorizeLoop(enable_vectorize=True):
    """Vectorized loops become vector expressions, conditions masks; without `enable_vectorize` they become plain loops."""
    return get_global_func(_PREFIX + "VectorizeLoop")(enable_vectorize)


def VerifyGPUCode(constraints=None):
    """Raises CompileError where a kernel asks for more than a device has. `constraints` are as those of `tir.analysis.verify_gpu_code`."""
    return get_global_func(_PREFIX + "VerifyGPUCode")(constraints or {})


def InjectCopyIntrin(pragma_key, fintrin):
    """Not there: copies have no intrinsics of their own."""
    from ..error import UnsupportedError
    raise UnsupportedError(f"InjectCopyIntrin({pragma_key!r}, ...): copies are loops, which the code generators make vector code of; replace "
                           "one by a call of your own (tir.call_extern) in a pass made by tir.transform.prim_func_pass")


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

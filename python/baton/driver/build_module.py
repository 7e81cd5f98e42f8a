# SPDX-License-Identifier: Apache-2.0
"""`baton.build` and `baton.lower`: PrimFuncs to functions that are called with arrays."""

from __future__ import annotations

from .._ffi import get_global_func
from ..error import UnsupportedError
from ..ir import IRModule
from ..target import Target
from ..tir import PrimFunc
from .options import capsule


def _module(inp, args, name: str) -> IRModule:
    from .. import te

    if isinstance(inp, te.Schedule):
        if args is None:
            raise TypeError("a schedule comes with its arguments, inputs and outputs: build(s, [A, B, C])")
        return schedule_to_module(inp, args, name)
    if isinstance(inp, (list, tuple)) or isinstance(inp, te.Tensor):
        if args is not None:
            raise TypeError("tensors are given once: build([A, B, C]), inputs before outputs")
        inp = te.create_prim_func([inp] if isinstance(inp, te.Tensor) else list(inp), name)
    elif args is not None:
        raise UnsupportedError(f"arguments belong to a schedule, as te.create_schedule makes it, not to a {type(inp).__name__}")
    if isinstance(inp, PrimFunc):
        symbol = inp.get_attr("global_symbol")
        return IRModule({str(symbol) if symbol and name == "main" else name: _named(inp, name, symbol)})
    if isinstance(inp, dict):
        raise UnsupportedError("one target at a time: build a module for each and import one into the other")
    if not isinstance(inp, IRModule):
        raise TypeError(f"build takes a PrimFunc, an IRModule of them, or tensors of te, not {type(inp).__name__}")
    return inp


def _named(func: PrimFunc, name: str, symbol):
    """A name that is asked for is stronger than the one the function has."""
    return func if name == "main" or symbol is None else func.with_attr("global_symbol", name)


def _target(target, host) -> Target:
    if host is not None:
        raise UnsupportedError("a host beside the target: there is code for CPUs alone, and the host is the target")
    return (Target.current() or Target("llvm")) if target is None else Target(target)


def schedule_to_module(sch, args, name="main", binds=None) -> IRModule:
    """A schedule of tensor expressions as one PrimFunc, before any pass. `args`: tensors, and variables of sizes."""
    from ..te.schedule import schedule_to_prim_func

    _no_binds(binds)
    return IRModule({name: schedule_to_prim_func(sch, args, name)})


def _no_binds(binds) -> None:
    if binds:
        raise UnsupportedError("binds: a buffer belongs to its parameter; write the PrimFunc with the buffers you want")


def lower(inp, args=None, name="main", binds=None, simple_mode=False) -> IRModule:
    """The PrimFuncs after all passes, as code is made of them. Parameters as of `build`."""
    _no_binds(binds)
    return get_global_func("driver.LowerFunctions")(_module(inp, args, name), _target(None, None))


def build(inp, args=None, target=None, target_host=None, runtime=None, name="main", binds=None):
    """Compiles PrimFuncs to a module of functions.

        A = te.placeholder((n,), name="A")
        B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
        add_one = baton.build([A, B], target="llvm")           # or a PrimFunc, or an IRModule of PrimFuncs
        add_one(a, b)                                          # NDArrays; b is written
        add_one.export_library("add_one.so")                   # baton.runtime.load_module reads it

    inp: a PrimFunc, an IRModule of PrimFuncs, or the tensors of a computation, inputs before outputs, which are computed by
    the built-in schedule. target: as "llvm -mcpu=skylake"; without one the current target, else this machine. name: of a
    single function that has none; `module(...)` calls the one called "main".

    A function takes an array for each buffer and a number for each scalar parameter, and checks dtypes and shapes. Sizes
    that stand alone in a shape are read from the arrays and need not be given.
    """
    if binds:
        raise UnsupportedError("binds: a buffer belongs to its parameter; write the PrimFunc with the buffers you want")
    module, target = _module(inp, args, name), _target(target, target_host)
    with capsule():
        return get_global_func("driver.BuildFunctions")(module, target)

# SPDX-License-Identifier: Apache-2.0
"""`baton.build` and `baton.lower`: PrimFuncs to functions that are called with arrays."""

from __future__ import annotations

from .._ffi import get_global_func
from ..error import UnsupportedError
from ..ir import IRModule
from ..ir.op import intrinsic_rules
from ..target import Target
from ..tir import PrimFunc
from ..tir.stmt_functor import ir_transform
from .options import capsule

_UNNAMED = "default_function"


def _module(inp, args, name: str, binds=None) -> IRModule:
    from .. import te

    if isinstance(inp, te.Schedule):
        if args is None:
            raise TypeError("a schedule comes with its arguments, inputs and outputs: build(s, [A, B, C])")
        return schedule_to_module(inp, args, name, binds)
    _no_binds(binds)
    name = "main" if name == _UNNAMED else name
    if isinstance(inp, (list, tuple)) or isinstance(inp, te.Tensor):
        if args is not None:
            raise TypeError("tensors are given once: build([A, B, C]), inputs before outputs")
        inp = te.create_prim_func([inp] if isinstance(inp, te.Tensor) else list(inp), name)
    elif args is not None:
        raise UnsupportedError(f"arguments belong to a schedule, as te.create_schedule makes it, not to a {type(inp).__name__}")
    if isinstance(inp, PrimFunc):
        symbol = inp.get_attr("global_symbol")
        unnamed = name == "main"
        return IRModule({str(symbol) if symbol and unnamed else name: inp if unnamed or symbol is None else inp.with_attr("global_symbol", name)})
    if not isinstance(inp, IRModule):
        raise TypeError(f"build takes a PrimFunc, an IRModule of them, or tensors of te, not {type(inp).__name__}")
    return inp


def _target(target, host) -> Target:
    target = (Target.current() or Target("llvm")) if target is None else Target(target)
    if host is not None and Target(host).device_type not in (target.device_type, Target("llvm").device_type):
        raise UnsupportedError(
            f"the host `{host}` beside the target `{target.kind}`: each has its own code; build a module for each and import one into the other"
        )
    return target


def schedule_to_module(sch, args=None, name="main", binds=None) -> IRModule:
    """A schedule of tensor expressions as one PrimFunc, before any pass. `args`: tensors, and variables of sizes; `binds`: the buffers
    that stand for some of the tensors."""
    from ..te import Tensor
    from ..te.schedule import schedule_to_prim_func

    args, binds = list(args or []), dict(binds or {})
    buffers = [binds.get(a) if isinstance(a, Tensor) else None for a in args]
    return IRModule({name: schedule_to_prim_func(sch, args, name, buffers)})


def get_binds(args, compact=False, binds=None):
    """(buffers by tensor, the arguments with a buffer in place of each tensor): of `binds`, else made here."""
    from ..te import Tensor
    from ..tir import decl_buffer

    binds, out = dict(binds or {}), []
    for a in args:
        if isinstance(a, Tensor) and a not in binds:
            binds[a] = decl_buffer(list(a.shape), str(a.dtype), a.op.name)
        out.append(binds[a] if isinstance(a, Tensor) else a)
    return binds, out


def _no_binds(binds) -> None:
    if binds:
        raise UnsupportedError("binds belong to a schedule: write the PrimFunc with the buffers you want")


def _with_rules(module: IRModule, target: Target) -> IRModule:
    """The module with calls of intrinsics replaced as `register_intrin_lowering` was told."""
    rules = intrinsic_rules(str(target.kind))
    if not rules:
        return module

    def lowered(call):
        for rule in rules.get(getattr(call.op, "name", ""), ()):
            made = rule(call)
            if made is not None and not call.same_as(made):
                return made
        return None

    def function(f):
        body = ir_transform(f.body, None, lowered, ["tir.Call"]) if isinstance(f, PrimFunc) else None
        return f if body is None or body.same_as(f.body) else f.with_body(body)

    return IRModule({var: function(f) for var, f in module.functions.items()})


def lower(inp, args=None, name="main", binds=None, simple_mode=False) -> IRModule:
    """The PrimFuncs after all passes, as code is made of them. Parameters as of `build`. For a target that no code is made for they are
    those of processors."""
    target = _target(None, None)
    if str(target.kind) not in map(str, get_global_func("target.KindsWithCode")()):
        target = Target("llvm")
    return get_global_func("driver.LowerFunctions")(_module(inp, args, name, binds), target)


def build(inputs, args=None, target=None, target_host=None, name=_UNNAMED, binds=None, runtime=None):
    """Compiles PrimFuncs to a module of functions.

        A = te.placeholder((n,), name="A")
        B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
        add_one = baton.build([A, B], target="llvm")           # or a PrimFunc, or an IRModule of PrimFuncs
        add_one(a, b)                                          # NDArrays; b is written
        add_one.export_library("add_one.so")                   # baton.runtime.load_module reads it

    inputs: a PrimFunc, an IRModule of PrimFuncs, a schedule with its `args`, or the tensors of a computation, inputs before outputs, which
    are computed by the built-in schedule; or modules by target, all for processors, which are built as one. target: as
    "llvm -mcpu=skylake"; without one the current target, else this machine. name: of a single function that has none; `module(...)`
    calls the one called "main", or the only one. binds: buffers for tensors of a schedule. target_host: the same kind of machine.

    A function takes an array for each buffer and a number for each scalar parameter, and checks dtypes and shapes. Sizes
    that stand alone in a shape are read from the arrays and need not be given.
    """
    if isinstance(args, (str, Target)) and isinstance(inputs, (IRModule, PrimFunc)):  # what is lowered has no arguments: it is the target
        args, target, target_host = None, args, target_host or target
    if isinstance(inputs, dict):
        inputs, target = _joined(inputs, target)
    target = _target(target, target_host)
    module = _with_rules(_module(inputs, args, name, binds), target)
    with capsule():
        return get_global_func("driver.BuildFunctions")(module, target)


def _joined(modules, target):
    """Modules by target as one, and its target."""
    targets = [Target(t) for t in modules]
    if len({t.device_type for t in targets}) != 1:
        raise UnsupportedError("modules for several devices: build a module for each and import one into the other")
    first, *others = (m if isinstance(m, IRModule) else IRModule({str(m.attrs["global_symbol"]): m}) for m in modules.values())
    whole = IRModule(dict(first.functions.items()))
    for other in others:
        whole.update(other)
    return whole, targets[0] if target is None else target

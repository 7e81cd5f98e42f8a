# SPDX-License-Identifier: Apache-2.0
"""Executors: they turn expressions into functions of Python."""

import numbers

from ..._ffi import get_global_func
from ...ir import GlobalVar, IRModule, RelayExpr
from ...runtime import NDArray
from ...runtime import ndarray as nd
from ...target import Target
from ..function import Function


def to_value(arg):
    """An argument as a value of Relay: an array, or for a list or tuple an array of values."""
    if isinstance(arg, (list, tuple)) and any(isinstance(a, (NDArray, list, tuple)) or hasattr(a, "__dlpack__") for a in arg):
        return [to_value(a) for a in arg]
    if isinstance(arg, NDArray):
        return arg
    if isinstance(arg, (numbers.Number, list, tuple)) or hasattr(arg, "__dlpack__") or hasattr(arg, "__array__"):
        from ..expr import const
        return const(arg).data
    return arg


class Executor:
    """Base of executors."""

    def __init__(self, mod, device, target):
        self.mod, self.device, self.target = mod, device, target

    def evaluate(self, expr=None, binds=None):
        """A function of Python for a function of Relay (`main` by default); for another expression its value."""
        from .. import analysis
        mod = self.mod
        if binds and expr is not None:
            expr = analysis.bind(expr, {k: _constant(v) for k, v in binds.items()})
        if expr is None:
            func = mod["main"]
        elif isinstance(expr, GlobalVar):
            func = mod[expr]
        elif isinstance(expr, Function):
            func = expr
        elif isinstance(expr, RelayExpr):
            free = analysis.free_vars(expr)
            if free:
                raise ValueError(f"the expression has free variables: {', '.join(v.name_hint for v in free)}")
            return self._function(Function([], expr))()
        else:
            raise TypeError(f"an executor evaluates expressions of Relay, not {type(expr).__name__}")
        run = self._function(func)
        names = [p.name_hint for p in func.params]

        def call(*args, **kwargs):
            return run(*(to_value(a) for a in _in_order(names, args, kwargs)))

        return call

    def _with_main(self, func):
        """The module with `func` as main."""
        mod = self.mod.shallow_copy()
        if "main" in mod:
            if mod["main"].same_as(func):
                return mod
            del mod["main"]
        mod["main"] = func
        return mod

    def _function(self, func):
        raise NotImplementedError


def _constant(value):
    from ..expr import const
    return value if isinstance(value, RelayExpr) else const(value)


def _in_order(names, args, kwargs):
    if len(args) > len(names):
        raise TypeError(f"the function takes {len(names)} arguments, got {len(args)}")
    values = dict(zip(names, args, strict=False))
    for key, value in kwargs.items():
        if key not in names or key in values:
            raise TypeError(f"the function has no parameter `{key}`, or got it twice; it has {', '.join(names)}")
        values[key] = value
    missing = [n for n in names if n not in values]
    if missing:
        raise TypeError(f"the function needs `{'`, `'.join(missing)}`")
    return [values[n] for n in names]


class Interpreter(Executor):
    """Evaluates operator by operator; all of Relay."""

    def _function(self, func):
        from ..transform import InferType, InlineCompilerFunctions
        mod = InferType()(InlineCompilerFunctions()(self._with_main(func)))
        call = get_global_func("relay.backend.InterpretCall")
        call.release_gil = True
        main = mod["main"]
        return lambda *args: call(main, list(args), mod)


class _Compiled(Executor):
    def _function(self, func):
        from ...runtime.vm import flat
        lib = get_global_func("driver.Compile")(self._with_main(func), Target(self.target))
        run = lib["default"](self.device)["call"]
        return lambda *args: run(*flat(args))


class GraphExecutor(_Compiled):
    """Compiles a program whose shapes are fixed."""


class AotExecutor(_Compiled):
    """The same engine as "graph"."""


class VMExecutor(_Compiled):
    """Compiles any program; a function may be any value."""

    def _function(self, func):
        from ...runtime.vm import VirtualMachine
        machine = VirtualMachine(get_global_func("driver.Compile")(self._with_main(func), Target(self.target)), self.device)
        return lambda *args: machine.invoke("main", *args)


__all__ = ["AotExecutor", "Executor", "GraphExecutor", "IRModule", "Interpreter", "VMExecutor", "nd", "to_value"]

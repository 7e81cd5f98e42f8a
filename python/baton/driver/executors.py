# SPDX-License-Identifier: Apache-2.0
"""Executors: they turn expressions into functions of Python."""

from .. import error as errors
from .._core import Array
from .._ffi import get_global_func
from ..ir import FuncType, GlobalVar, IRModule, Op, RelayExpr, RelayRefType, TensorType, TupleType, TypeCall
from ..relay import analysis
from ..relay.expr import Call, Var, const
from ..relay.function import Function
from ..relay.transform import InferType, InlineCompilerFunctions
from ..runtime import NDArray
from ..runtime import ndarray as nd
from ..runtime.values import to_value
from ..runtime.vm import VirtualMachine, flat
from ..target import Target
from ..tir import Any, IntImm
from .arguments import as_kind


class Executor:
    """Base of executors."""

    def __init__(self, mod, device, target):
        self.mod, self.device, self.target = mod, device, target

    def evaluate(self, expr=None, binds=None):
        """A function of Python for a function of Relay (`main` by default); for another expression its value."""
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
                raise errors.ValueError(f"the expression has free variables: {', '.join(v.name_hint for v in free)}")
            return self._function(Function([], expr))()
        else:
            raise errors.TypeError(f"an executor evaluates expressions of Relay, not {type(expr).__name__}")
        awaited = _awaited_lengths(func)
        run = self._for_lengths(func, awaited) if awaited else self._function(func)
        names = [p.name_hint for p in func.params]
        types = [p.type_annotation for p in func.params]

        def call(*args, **kwargs):
            given = zip(names, types, _in_order(names, args, kwargs), strict=True)
            values = [as_kind(mod, kind, value, name, i) for i, (name, kind, value) in enumerate(given)]
            for i, (name, kind, value) in enumerate(zip(names, types, values, strict=True)):
                if kind is not None and self._checks(kind) and not _fits(kind, value):
                    raise errors.ValueError(f"input {i} `{name}`: expected {kind}, got {_shown(value)}")
            return run(*values)

        return call

    def _for_lengths(self, func, awaited):
        """The function that evaluates `func` for the lengths that the parameters `awaited` have in a call; one program is made for each."""
        made = {}

        def run(*values):
            lengths = tuple(values[i].shape[0] for i in awaited)
            if lengths not in made:
                params = list(func.params)
                for i, length in zip(awaited, lengths, strict=True):
                    old = params[i]
                    params[i] = Var(old.name_hint, TensorType((length,), old.type_annotation.dtype))
                body = analysis.bind(func.body, dict(zip(func.params, params, strict=True)))
                made[lengths] = self._function(Function(params, body, None, func.type_params, func.attrs))
            return made[lengths](*values)

        return run

    def _checks(self, kind):
        """Whether arguments of a type are looked at here: tensors are by the call itself."""
        return not isinstance(kind, TensorType)

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
    return value if isinstance(value, RelayExpr) else const(value)


def _fits(kind, value):
    """Whether a value can be one of a type, as far as that is known without the program."""
    work = [(kind, value)]
    while work:
        kind, value = work.pop()
        if isinstance(kind, TensorType):
            if not isinstance(value, NDArray) or value.dtype != kind.dtype or len(value.shape) != len(kind.shape):
                return False
            if any(isinstance(want, IntImm) and want.value != got for want, got in zip(kind.shape, value.shape, strict=True)):
                return False
        elif isinstance(kind, TupleType):
            if not isinstance(value, (Array, list, tuple)) or len(value) != len(kind.fields):
                return False
            work.extend(zip(kind.fields, value, strict=True))
        elif isinstance(value, NDArray) and isinstance(kind, (FuncType, RelayRefType, TypeCall)):
            return False
    return True


def _awaited_lengths(func):
    """Parameters, by position, that are a shape of unknown length: the rank of what is made of them is not known before the call."""
    found = set()

    def look(expr):
        if isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.name.startswith("dyn."):
            for declared, arg in zip(expr.op.arguments, expr.args, strict=False):
                if declared.name in ("shape", "newshape"):
                    found.update(analysis.free_vars(arg))

    analysis.post_order_visit(func.body, look)
    return [i for i, p in enumerate(func.params) if p in found and _of_unknown_length(p.type_annotation)]


def _of_unknown_length(kind):
    return isinstance(kind, TensorType) and len(kind.shape) == 1 and isinstance(kind.shape[0], Any)


def _shown(value):
    """A value in an error: arrays by dtype and shape."""
    if isinstance(value, NDArray):
        return f"Tensor[({', '.join(map(str, value.shape))}), {value.dtype}]" if value.shape else str(value.dtype)
    if isinstance(value, (Array, list, tuple)):
        return f"a tuple of {len(value)}"
    return type(value).__name__


class WrongArguments(errors.TypeError, ValueError):
    """Another number of arguments than the function has parameters: a TypeError as of any call, and the ValueError that executors raised."""


def _in_order(names, args, kwargs):
    """The arguments in the order of the parameters, of which several may have one name: these are told apart by position alone. Keywords that are
    not parameters are ignored, so that one dict of values serves several functions."""
    if len(args) > len(names):
        raise WrongArguments(f"the function takes {len(names)} arguments, got {len(args)}")
    rest = names[len(args) :]
    for key in kwargs:
        if names.count(key) > 1:
            raise errors.TypeError(f"the function has {names.count(key)} parameters `{key}`; give them by position")
        if key in names and key not in rest:
            raise errors.TypeError(f"the function got its parameter `{key}` twice, by position and by name; it has {', '.join(names)}")
    missing = [n for n in rest if n not in kwargs]
    if missing:
        raise errors.TypeError(f"the function needs `{'`, `'.join(missing)}`")
    return [*args, *(kwargs[n] for n in rest)]


class Interpreter(Executor):
    """Evaluates operator by operator; all of Relay."""

    def _checks(self, kind):
        return True

    def _function(self, func):
        mod = InferType()(InlineCompilerFunctions()(self._with_main(func)))
        call = get_global_func("relay.backend.InterpretCall")
        call.release_gil = True
        bind = get_global_func("driver.BindArguments")

        def run(*args):
            bound = bind(mod, list(args))  # the same where no extent has a name
            return call(bound["main"], list(args), bound)

        return run


def _lists(value):
    """Tuples of a result as lists, as the graph executor of Relay gave them."""
    return [_lists(v) for v in value] if isinstance(value, Array) else value


class _Compiled(Executor):
    def _function(self, func):
        lib = get_global_func("driver.Compile")(self._with_main(func), Target(self.target))
        run = lib["default"](self.device)["call"]
        return lambda *args: _lists(run(*flat(args)))


class GraphExecutor(_Compiled):
    """Compiles a program whose shapes are fixed."""


class AotExecutor(_Compiled):
    """The same engine as "graph"."""


class VMExecutor(_Compiled):
    """Compiles any program; a function may be any value."""

    def _function(self, func):
        machine = VirtualMachine(get_global_func("driver.Compile")(self._with_main(func), Target(self.target)), self.device)
        return lambda *args: machine.invoke("main", *args)


__all__ = ["AotExecutor", "Executor", "GraphExecutor", "IRModule", "Interpreter", "VMExecutor", "nd", "to_value"]

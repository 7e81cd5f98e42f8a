# SPDX-License-Identifier: Apache-2.0
"""Primitive functions one by one: as tensor expressions, as loops, as compiled code."""

import typing

from .. import te
from .._ffi import get_global_func
from ..ir import GlobalVar, IRModule, TensorType, TupleType
from ..relay.op.implementations import valid_implementations
from ..relay.transform import InferType
from ..runtime import NDArray, ndarray
from ..target import Target
from .build_module import lower as _lower
from .relay_build import build
from .targets import target_of


class CachedFunc(typing.NamedTuple):
    """A primitive function that was lowered. `inputs` and `outputs` are tensors of te, `schedule` computes the outputs, `prim_funcs` is the
    module that has the loops under the name of `prim_fn_var`."""

    target: Target
    prim_fn_var: GlobalVar
    inputs: list
    outputs: list
    schedule: object
    prim_funcs: IRModule

    @property
    def funcs(self):
        """The module of the loops."""
        return self.prim_funcs

    cached_func = property(lambda self: self)
    func_name = property(lambda self: self.prim_fn_var.name_hint)


def _placeholders(kind, name):
    if isinstance(kind, TupleType):
        return [t for i, field in enumerate(kind.fields) for t in _placeholders(field, f"{name}_{i}")]
    if not isinstance(kind, TensorType):
        raise TypeError(f"a primitive function takes tensors, not {kind}")
    return [te.placeholder(kind.shape, dtype=str(kind.dtype), name=name)]


class TECompiler:
    """Lowers and compiles primitive functions of Relay, each once for a target.

    engine = relay.backend.te_compiler.get()
    cached = engine.lower(relay.Function([x], relay.exp(x)), "llvm")
    run = engine.jit(relay.Function([x], relay.exp(x)), "llvm")      # run(input, output)
    """

    def __init__(self):
        self._lowered, self._compiled = [], []

    @staticmethod
    def _key(rows, func, target):
        from ..ir import structural_equal

        return next((made for known, kind, made in rows if kind == str(target) and structural_equal(known, func)), None)

    def lower(self, source_func, target=None, mod_name="default"):
        """The function as tensor expressions and loops: a CachedFunc."""
        target = target_of(target)
        func = InferType()(IRModule.of_main(source_func))["main"]
        found = self._key(self._lowered, func, target)
        if found is None:
            inputs = [t for p in func.params for t in _placeholders(p.checked_type, p.name_hint)]
            outputs = list(get_global_func("relay.OnTensors")(func, inputs))
            schedule, name = te.create_schedule([t.op for t in outputs]), f"tvmgen_{mod_name}_fused_{outputs[0].op.name.replace('.', '_')}"
            with target:
                loops = _lower([*inputs, *outputs], name=name)
            found = CachedFunc(target, GlobalVar(name), inputs, outputs, schedule, loops)
            self._lowered.append((func, str(target), found))
        return found

    def jit(self, source_func, target=None, mod_name="default"):
        """Compiled code of the function, which is called with arrays for the inputs, then for the outputs."""
        target = target_of(target)
        func = InferType()(IRModule.of_main(source_func))["main"]
        found = self._key(self._compiled, func, target)
        if found is None:
            lib = build(func, target, mod_name=mod_name)
            run, count = lib["default"](ndarray.cpu())["call"], len(func.params)

            def found(*args):
                made = run(*args[:count])
                for array, value in zip(args[count:], [made] if isinstance(made, NDArray) else made, strict=True):
                    array.copyfrom(value)

            self._compiled.append((func, str(target), found))
        return found

    def items(self):
        """(function, what was made of it) of all that was lowered."""
        return [(func, made) for func, _, made in self._lowered]

    def shape_func_items(self):
        """Functions of shapes are made with the code that needs them: none."""
        return []

    def clear(self):
        """Forgets what was lowered and compiled."""
        self._lowered.clear()
        self._compiled.clear()

    def dump(self):
        """Prints what was lowered."""
        for func, made in self.items():
            print(func.astext(False), made.prim_funcs.astext(False), sep="\n")


_global = TECompiler()


def get():
    """The one TECompiler of the process."""
    return _global


def get_valid_implementations(op, attrs, inputs, out_type, target):
    """Implementations of a call on a target: those of its strategy, or the one that a built-in operator has."""
    return valid_implementations(op, attrs, inputs, out_type, target_of(target))


def select_implementation(op, attrs, inputs, out_type, target, use_autotvm=True):
    """(the implementation of a call that is taken, the tensors of its result). `use_autotvm` is accepted for older programs."""
    found = max(get_valid_implementations(op, attrs, inputs, out_type, target), key=lambda i: i.plevel)
    return found, found.compute(attrs, inputs, out_type)


def get_shape(shape):
    """A shape with its literals as ints."""
    return [int(d.value) if isinstance(getattr(d, "value", None), int) else d for d in shape]


def lower_to_primfunc(relay_func, target):
    """The loops of a primitive function, as a PrimFunc."""
    made = TECompiler().lower(relay_func, target)
    return made.prim_funcs[made.prim_fn_var.name_hint]


__all__ = ["CachedFunc", "TECompiler", "get", "get_shape", "get_valid_implementations", "lower_to_primfunc", "select_implementation"]

# SPDX-License-Identifier: Apache-2.0
"""Functions for compilers that a program brings along: `PartitionGraph` marks them, `relay.ext.NAME` makes code of them."""

import itertools
import warnings

from .. import error as errors
from .._ffi import get_global_func, register_func
from .._ffi.base import load_vm
from ..ir import IRModule, TensorType, TupleType
from ..relay.expr import Call, bind, var
from ..relay.function import Function
from ..relay.op.op import register, register_compute, register_stateful
from ..relay.transform import InferType
from ..runtime import Module
from ..target import Target
from ..te import extern
from ..tir import IntImm, call_packed
from .json_graph import graph_of

_numbers = itertools.count()


def maker_of(name):
    """Returns the code generator of regions for `name`: `relay.ext.NAME`, else the loaded plug-in of that key; None where there is neither."""
    made = get_global_func(f"relay.ext.{name}", True)
    if made is not None:
        return made
    plugin = get_global_func(f"runtime.json_module.{name}", True)
    if plugin is None:
        return None

    def of_graph(func):
        text, constants = graph_of(func)
        return plugin(str(func.attrs["global_symbol"]), text, constants)

    return of_graph


@register_func("relay.ext.ccompiler")
def ccompiler(func):
    """Regions as C99 (target "c"): a function of the region's name, which the system's compiler compiles."""
    symbol, target = str(func.attrs["global_symbol"]), Target("c")
    plain = InferType()(IRModule.from_expr(Function(func.params, func.body, func.ret_type)))
    for step in ("SimplifyInference", "FoldConstant", "DecomposeOps", "InferType"):
        plain = get_global_func(f"relay._transform.{step}")()(plain)
    with target:
        loops = get_global_func("relay.LowerPrimitive")(plain["main"], symbol, target)
    return get_global_func("driver.BuildFunctions")(IRModule({symbol: loops.with_attr("global_symbol", symbol)}), target)


def compiled_outside(mod):
    """The module with calls of code in place of functions for compilers that the program registered; itself if there are none.

    `@register_func("relay.ext.NAME")` gets such a function and gives a module of code, whose function of the name `global_symbol`
    takes arrays: the arguments, then the results. The program runs in this process alone: `made_outside` is for what is saved.
    """
    return _made(mod, _registered)[0]


def made_outside(mod):
    """(the module as `compiled_outside` gives it, the modules that code of it calls). Code compiled from it imports them, and finds
    their functions by name, here and where it is loaded."""
    return _made(mod, lambda symbol, run: symbol)


def _registered(symbol, run):
    """The name under which a function is registered in this process."""
    name = f"baton.external.{next(_numbers)}.{symbol}"
    register_func(name, lambda *arrays: run(*arrays) and None)
    return name


def regions_of(mod):
    """The functions of a module that are for other compilers, by their variables."""
    return {v: f for v, f in mod.functions.items() if isinstance(f, Function) and f.attrs and "Compiler" in f.attrs.keys()}


def _made(mod, name_of):
    if not regions_of(mod):
        return mod, []
    if any(maker_of(f.attrs["Compiler"]) for f in regions_of(mod).values()):
        mod = InferType()(mod)
    regions = regions_of(mod)
    reasons = {v: why_out(f) for v, f in regions.items()}
    _tell(regions, reasons)
    out, modules, symbols = mod.shallow_copy(), [], set()
    for v, func in regions.items():
        if reasons[v]:
            continue
        symbol = str(func.attrs["global_symbol"]) if "global_symbol" in func.attrs.keys() else v.name_hint
        if symbol in symbols:
            raise errors.CompileError(f"two functions for other compilers have the global_symbol `{symbol}`: give each a different one")
        symbols.add(symbol)
        out[v], code = _called(func, maker_of(func.attrs["Compiler"]), symbol, name_of)
        if all(code.handle != m.handle for m in modules):
            modules.append(code)
    return (out, modules) if symbols else (mod, [])


def _tell(regions, reasons):
    """Warns of functions for which no code is made: they are computed by the kernels of this compiler."""
    out = [(str(f.attrs["Compiler"]), reasons[v]) for v, f in regions.items() if reasons[v]]
    for name, why in dict.fromkeys(out):
        warnings.warn(f"{why}: Baton's own kernels compute {out.count((name, why))} function(s) that are for `{name}`", stacklevel=5)


def _tensors(kind):
    """The types of a value's tensors."""
    return list(kind.fields) if isinstance(kind, TupleType) else [kind]


def _is_known(kind):
    """Whether all is known of a type but numbers: tensors of known shapes."""
    return all(isinstance(t, TensorType) and all(isinstance(d, (int, IntImm)) for d in t.shape) for t in _tensors(kind))


def result_of(func, types):
    """The type of a function's result for arguments of these types."""
    if all(map(_is_known, [*types[: len(func.params)], func.ret_type])):
        return func.ret_type
    params = [var(p.name_hint, t) for p, t in zip(func.params, types, strict=False)]
    body = bind(func.body, dict(zip(func.params, params, strict=True)))
    return InferType()(IRModule.from_expr(Function(params, body)))["main"].ret_type


def why_out(func):
    """Why no code is made of a function for a compiler, and the kernels of this one compute it; "" where code is made of it. Types are inferred."""
    name = func.attrs["Compiler"]
    if maker_of(name) is None:
        return f"no `relay.ext.{name}` is registered"
    types = [*(p.checked_type for p in func.params), *_tensors(func.ret_type if func.ret_type is not None else func.body.checked_type)]
    if other := next((t for t in types if not isinstance(t, TensorType)), None):
        return f"a region takes and gives tensors, not {other}"
    unknown = next((t for t in types if not _is_known(t)), None)
    if unknown is None:
        return ""
    if not _takes_open(name, func):
        return f"`relay.ext.{name}` takes tensors of known shapes, not {unknown} (`relay.ext.{name}.open_shapes` may say that it takes others)"
    return "the shape of a result depends on values, which a region cannot give" if _depends_on_values(func) else ""


def _takes_open(name, func):
    """Returns the answer of `relay.ext.NAME.open_shapes`, a function of the region: whether code is made of it for all lengths."""
    takes = get_global_func(f"relay.ext.{name}.open_shapes", True)
    try:
        return takes is not None and bool(takes(func))
    except Exception as error:
        raise errors.CompileError(f"relay.ext.{name}.open_shapes failed: {type(error).__name__}: {error}") from error


def _depends_on_values(func):
    """Whether the result's shape is unknown where those of the arguments are known: tried with one length for all that are open."""
    types = [TensorType([d if isinstance(d, (int, IntImm)) else 64 for d in p.checked_type.shape], p.checked_type.dtype) for p in func.params]
    try:
        return not _is_known(result_of(func, types))
    except errors.BatonError:
        return False  # no length that it takes


def _code_of(func, make, symbol):
    """(the module that a code generator makes, its function of that name)."""
    maker = f"relay.ext.{func.attrs['Compiler']}"
    try:
        code = _with_constants(func, make(_with_compiler_attrs(func)), symbol)
    except (KeyboardInterrupt, MemoryError):
        raise
    except Exception as error:
        raise errors.CompileError(f"{maker} failed on `{symbol}`: {type(error).__name__}: {error}") from error
    if not isinstance(code, Module):
        raise errors.TypeError(f"{maker} gave {type(code).__name__} for `{symbol}`, where a runtime.Module is wanted")
    if not code.implements_function(symbol, True):
        raise errors.CompileError(f"{maker} gave a module of kind `{code.type_key}` without a function `{symbol}`: it is called by that name")
    return code, code.get_function(symbol, True)


def _with_compiler_attrs(func):
    """The function with the attributes that `relay.ext.NAME.get_compiler_attrs`, a function without arguments, gives."""
    attrs = get_global_func(f"relay.ext.{func.attrs['Compiler']}.get_compiler_attrs", True)
    for key, value in (attrs() or {}).items() if attrs is not None else ():
        func = func.with_attr(str(key), value)
    return func


def _with_constants(func, code, symbol):
    """A module that gives `code` its constants before it runs, where it asks for them: by a function `get_const_vars`, whose names are keys of
    what `relay.ext.NAME.constant_updater`, a function of the function and its name, gives. They go to its function `__init_SYMBOL` in that order."""
    update = get_global_func(f"relay.ext.{func.attrs['Compiler']}.constant_updater", True)
    if update is None or not isinstance(code, Module):
        return code
    given = {str(k): v for k, v in (update(func, symbol) or {}).items()}
    names = [str(n) for n in code.get_function("get_const_vars", True)()] if code.implements_function("get_const_vars", True) else list(given)
    if missing := [n for n in names if n not in given]:
        raise errors.CompileError(f"constant_updater gave no `{missing[0]}`, which the module of `{symbol}` asks for")
    if not names:
        return code
    load_vm()
    return get_global_func("vm.CreateConstantsModule")(symbol, [given[n] for n in names], code)


def _called(func, make, symbol, name_of):
    """(the function that calls what the code generator makes of it, the module of that code)."""
    code, run = _code_of(func, make, symbol)
    packed = name_of(symbol, run)

    def compute(attrs, inputs, out_type):
        kinds = _tensors(out_type)
        made = extern(
            [list(t.shape) for t in kinds], inputs, lambda ins, outs: call_packed(packed, *ins, *outs), name=symbol, dtype=[str(t.dtype) for t in kinds]
        )
        return made if isinstance(made, list) else [made]

    op = register(f"baton.external.op.{next(_numbers)}.{symbol}", f"`{symbol}`, made by relay.ext.{func.attrs['Compiler']}.")
    op.set_num_inputs(len(func.params))
    op.add_type_rel(op.name, lambda types, attrs: result_of(func, types))
    register_stateful(op.name, True)  # it runs where the program does, and never within the compiler
    register_compute(op.name, compute)
    return Function(func.params, Call(op, list(func.params)), func.ret_type), code


__all__ = ["ccompiler", "compiled_outside", "made_outside", "maker_of"]

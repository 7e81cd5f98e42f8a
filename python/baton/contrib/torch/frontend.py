# SPDX-License-Identifier: Apache-2.0
"""`relay.frontend.from_pytorch`, and what `baton.compile` makes of programs of `torch.export`."""

from __future__ import annotations

import os
import warnings
import zipfile

import torch

from ..._ffi import get_global_func
from ...driver.kept import kept_form, written_form
from ...error import CompileError, UnsupportedError
from ...ir import IRModule
from ...relay import Call, Constant, Function, Var, analysis, bind, create_executor, transform
from ...relay.op.make import operator
from ...relay.ty import TensorType
from .convert import convert_program
from .dtypes import TORCH_OF
from .places import lines_of


def _infos(input_infos, default_dtype):
    """(names, example tensors) of the inputs: (name, shape), (name, (shape, dtype)), a shape, or a tensor each."""
    names, examples = [], []
    for i, info in enumerate(input_infos or ()):
        name, rest = info if isinstance(info, (tuple, list)) and len(info) == 2 and isinstance(info[0], str) else (None, info)
        names.append(name or f"input{i}")
        if isinstance(rest, torch.Tensor):
            examples.append(rest)
            continue
        shape, dtype = rest, default_dtype
        if len(rest) == 2 and isinstance(rest[0], (tuple, list)) and isinstance(rest[1], (str, torch.dtype)):
            shape, dtype = rest
        kind = dtype if isinstance(dtype, torch.dtype) else TORCH_OF.get({"float": "float32", "int": "int32", "half": "float16"}.get(str(dtype), str(dtype)))
        if kind is None:
            raise UnsupportedError(f"input `{names[-1]}`: PyTorch has no dtype `{dtype}`")
        if not all(isinstance(d, int) and d >= 0 for d in shape):
            raise TypeError(f"input `{names[-1]}`: {shape} is no shape of numbers; for open dimensions give an ExportedProgram made with `dynamic_shapes`")
        examples.append(torch.zeros(tuple(shape), dtype=kind))
    return names, tuple(examples)


def exported_of(model, examples):
    """A model of any kind as an ExportedProgram; within a compilation of TorchDynamo too, whose tensors are none of this program."""
    with torch._guards.tracing(None):
        return _exported(model, examples)


def _exported(model, examples):
    if isinstance(model, torch.export.ExportedProgram):
        return model
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"a model of PyTorch is a TorchScript module, an ExportedProgram or a torch.nn.Module, not {type(model).__name__}")
    if not examples:
        raise TypeError("`input_infos` is needed for a module: (name, shape) or (name, (shape, dtype)) for each input, in order")
    from .quantized import is_quantized, restated

    if is_quantized(model):
        model = restated(model, examples)
    elif isinstance(model, torch.jit.ScriptModule):
        from torch._export.converter import TS2EPConverter

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # That program's extents are all open; Relay's convention is the extents that are given.
            model = TS2EPConverter(model, examples).convert().module()
    try:
        return torch.export.export(model, examples)
    except Exception as error:
        raise _no_program(model, error) from error


def _no_program(model, error):
    """The error about a module that torch.export makes no program of, in one line: its reason, and the user's line."""
    text = str(error)
    reason = next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)
    where = lines_of(text)
    hint = ""
    if type(error).__name__ == "GuardOnDataDependentSymNode" or "data-dependent" in text.lower():
        hint = "; control flow that depends on values of tensors is said by torch.cond or torch.where, or stays with PyTorch under torch.compile"
    return UnsupportedError(f"torch.export makes no program of {type(model).__name__}{f': {where}' if where else ''}: {reason}{hint}")


def from_pytorch(
    script_module,
    input_infos=None,
    custom_convert_map=None,
    default_dtype="float32",
    use_parser_friendly_name=False,
    keep_quantized_weight=False,
    export_renamed_c_graph_path=None,
):
    """What `baton.relay.frontend.from_pytorch` says."""
    if custom_convert_map:
        raise UnsupportedError("`custom_convert_map`: rules are functions of ATen overloads here; register them by baton.contrib.torch.aten")
    if export_renamed_c_graph_path:
        raise UnsupportedError("`export_renamed_c_graph_path`: graphs are those of torch.export here, which print themselves")
    names, examples = _infos(input_infos, default_dtype)
    exported = exported_of(script_module, examples)
    rename = (lambda name: name.replace(".", "_")) if use_parser_friendly_name else None
    program = convert_program(exported, names=names, rename=rename)
    return (program.mod, program.params) if keep_quantized_weight else with_real_weights(program.mod, program.params)


def with_real_weights(mod, params):
    """A module and its weights, with those that are quantised as numbers that the module quantises: Relay's convention."""
    main, of = mod["main"], {}

    def note(expr):
        if isinstance(expr, Call) and getattr(expr.op, "name", "") == "qnn.dequantize" and isinstance(expr.args[0], Var):
            of.setdefault(expr.args[0].name_hint, expr)

    analysis.post_order_visit(main, note)
    inputs, values, params = [], {}, dict(params)
    for var in main.params:
        call, value = of.get(var.name_hint), params.get(var.name_hint)
        if call is None or value is None:
            inputs.append(var)
            continue
        _, scale, zero_point = call.args
        params[var.name_hint] = create_executor(mod=IRModule()).evaluate(Call(call.op, [Constant(value), scale, zero_point], call.attrs))
        inputs.append(Var(var.name_hint, TensorType(value.shape, "float32")))
        values[var] = operator("qnn.quantize")(inputs[-1], scale, zero_point, axis=call.attrs.axis, out_dtype=str(value.dtype))
    if not values:
        return mod, params
    return transform.InferType()(IRModule.from_expr(Function(inputs, bind(main.body, values)))), params


def read_program(source):
    """The ExportedProgram itself, or of a file that `torch.export.save` wrote. Raises CompileError for a file that is none."""
    if isinstance(source, (str, os.PathLike)):
        path = os.fspath(source)
        with open(path, "rb") as file:  # PyTorch logs a page of its own about what is no archive
            is_archive = zipfile.is_zipfile(file)
        if not is_archive:
            raise CompileError(f"`{path}` is no program that torch.export.save wrote: it is no zip archive")
        try:
            source = torch.export.load(path)
        except Exception as error:  # noqa: BLE001 - PyTorch raises many kinds
            raise CompileError(f"`{path}` is no program that torch.export.save of PyTorch {torch.__version__} wrote: {error}") from None
    return source


def load_program(source):
    """The Relay module of an ExportedProgram, or of a file that `torch.export.save` wrote, with its weights in it."""
    program = convert_program(read_program(source), freeze=True)
    mod = with_forms(program)
    return get_global_func("driver.SetDims")(mod, program.bounds) if program.bounds else mod


def with_forms(program):
    """The module of a program, which says what calls keep of buffers and write into arguments."""
    if not program.mutations:
        return program.mod
    main = program.mod["main"]
    names = list(program.params)
    kept = [kept_form(name, str(value.dtype), value.shape, value.tobytes()) for name, value in program.params.items()]
    outputs = program.count - len(program.none)
    written = [written_form(target if kind == "input" else len(program.inputs) + names.index(target)) for kind, target in program.mutations]
    main = main.with_attr("input_forms", [""] * len(program.inputs) + kept).with_attr("output_forms", [""] * outputs + written)
    return IRModule.from_expr(main)

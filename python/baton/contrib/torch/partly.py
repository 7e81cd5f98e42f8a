# SPDX-License-Identifier: Apache-2.0
"""`baton.compile(program, fallback="eager")`: a program of `torch.export` whose operators without a rule stay with PyTorch."""

from __future__ import annotations

import json
import time

import torch
from torch.export.graph_signature import InputKind, OutputKind, TensorArgument

from ...driver.calls import explain_misfit, shape_of
from ...driver.dims import Dim
from ...driver.executable import Executable, TensorInfo
from ...driver.kept import kept_form, written_form
from ...error import UnsupportedError
from ...runtime import ndarray as nd
from .compiled import compile_graph
from .convert import CHANGES, array_of, bounds_of, convert_program, decomposed, tensor_of_weight
from .dtypes import relay_dtype
from .frontend import read_program
from .graph import is_tensor
from .islands import split
from .reports import GRAPHS, GraphReport
from .sizes import expression, known


def compile_parts(source, options, limits=None):
    """An executable of a program, or of its file, with parts that PyTorch runs; None where every operator has a rule.

    options: `opt_level`, `config` and their like, as `baton.compile` takes them.
    """
    exported = read_program(source)
    try:
        convert_program(exported, freeze=True)
    except UnsupportedError as error:
        if not getattr(error, "missing", None):
            raise
    else:
        return None
    parts = _Parts(decomposed(exported), options)
    return PartlyCompiled(parts, limits)


class _Parts:
    """A program cut into parts. Called with its inputs and then the buffers that it changes, it gives its results and then what is new of
    buffers and inputs."""

    def __init__(self, exported, options):
        signature, graph = exported.graph_signature, exported.graph_module.graph
        placeholders = [n for n in graph.nodes if n.op == "placeholder"]
        changed = {spec.target for spec in signature.output_specs if spec.kind in CHANGES}
        self.inputs, self.buffers, self._fixed, targets = [], [], {}, {}
        self._places = []  # of what a call gives, among the placeholders
        kept = []
        for place, (spec, node) in enumerate(zip(signature.input_specs, placeholders, strict=True)):
            if spec.kind is InputKind.USER_INPUT:
                if is_tensor(node.meta.get("val")):
                    targets[node.name] = len(self.inputs)
                    self._places.append(place)
                    self.inputs.append((_info(node.name, node), node.meta["val"]))
                else:
                    self._fixed[place] = getattr(spec.arg, "value", None)
            elif isinstance(spec.arg, TensorArgument):
                tensor = tensor_of_weight(exported, spec.target)
                if spec.target in changed:
                    kept.append((place, spec.target, tensor, node))
                else:
                    self._fixed[place] = tensor.detach()
        for place, target, tensor, node in kept:
            targets[target] = len(self.inputs) + len(self.buffers)
            self._places.append(place)
            array = array_of(tensor)
            self.buffers.append((_info(target, node), kept_form(target, str(array.dtype), array.shape, array.tobytes())))
        self._count = len(placeholders)
        self._read_outputs(graph, signature, targets)
        self.dims = self._open_dims(exported.range_constraints)
        self.report = GraphReport("program", sum(n.op == "call_function" for n in graph.nodes))
        weights = {place: tensor for place, tensor in self._fixed.items() if isinstance(tensor, torch.Tensor)}
        self._run = split(exported.graph_module, lambda part, held: compile_graph(part, held, options), weights, "eager", self.report)
        GRAPHS.append(self.report)

    def _read_outputs(self, graph, signature, targets):
        (output,) = (n for n in graph.nodes if n.op == "output")
        own, further = [], []
        for place, (spec, value) in enumerate(zip(signature.output_specs, output.args[0], strict=True)):
            if spec.kind in CHANGES:
                further.append((place, written_form(targets[spec.target]), value))
            elif spec.kind is OutputKind.USER_OUTPUT and isinstance(value, torch.fx.Node) and is_tensor(value.meta.get("val")):
                own.append((place, "", value))
        self._results = [place for place, _, _ in own + further]
        self.outputs = [_info(f"output{i}", value) for i, (_, _, value) in enumerate(own + further)]
        self.written = [form for _, form, _ in own + further]

    def _open_dims(self, ranges):
        """The open dimensions by PyTorch's symbol, each named after the input and the axis that has it first."""
        found = {}
        for info, fake in self.inputs:
            for axis, size in enumerate(fake.shape):
                if not known(size) and expression(size).is_Symbol and expression(size) not in found:
                    found[expression(size)] = Dim(f"{info.name}_{axis}", *bounds_of(ranges.get(expression(size))))
        named = {str(symbol): dim.name for symbol, dim in found.items()}
        self.inputs = [(info._replace(shape=tuple(named.get(d, d) for d in info.shape)), fake) for info, fake in self.inputs]
        self.outputs = [info._replace(shape=tuple(named.get(d, d) for d in info.shape)) for info in self.outputs]
        return tuple(found.values())

    @property
    def forms(self) -> str:
        """Which inputs are buffers and which outputs are written back, as executables say it."""
        if not any(self.written):
            return ""
        return json.dumps({"inputs": [""] * len(self.inputs) + [form for _, form in self.buffers], "outputs": self.written})

    def check(self, arrays) -> None:
        """Raises ValueError where lengths of open dimensions differ or lie outside of their bounds."""
        dims, have = {dim.name: dim for dim in self.dims}, {}
        for (info, _), array in zip(self.inputs, arrays, strict=True):
            for axis, (name, length) in enumerate(zip(info.shape, shape_of(array), strict=True)):
                if (dim := dims.get(name)) is None:
                    continue
                if not dim.min <= length <= dim.max:
                    raise ValueError(f"input `{info.name}` has shape {shape_of(array)}: {name} is {dim.min} to {dim.max}")
                if have.setdefault(name, length) != length:
                    raise ValueError(f"input `{info.name}` has shape {shape_of(array)}: dimension {axis} is {name}, which is {have[name]} elsewhere")

    def __call__(self, *arrays):
        begin = time.perf_counter()
        given = [self._fixed.get(place) for place in range(self._count)]
        tensors = [a if isinstance(a, torch.Tensor) else torch.from_dlpack(nd.from_dlpack(a) if hasattr(a, "__dlpack__") else nd.array(a)) for a in arrays]
        for place, tensor in zip(self._places, tensors, strict=True):
            given[place] = tensor.detach()
        with torch.no_grad():
            out = self._run(*given)
            memory = {t.untyped_storage().data_ptr() for t in given if isinstance(t, torch.Tensor)}
            results = [_result(out[place], memory) for place in self._results]
        self.report.seconds += time.perf_counter() - begin
        self.report.calls += 1
        return results


def _info(name, node):
    fake = node.meta["val"]
    return TensorInfo(name, relay_dtype(fake.dtype), tuple(int(d) if known(d) else str(expression(d)) for d in fake.shape))


def _result(tensor, memory):
    """A tensor as an array that shares no memory with inputs and weights."""
    tensor = tensor.detach().resolve_conj().resolve_neg()
    tensor = tensor.clone() if tensor.untyped_storage().data_ptr() in memory else tensor
    return nd.from_dlpack(tensor.contiguous())


class PartlyCompiled(Executable):
    """What `baton.compile` gives with fallback="eager" for a program with operators that stay with PyTorch: an `Executable` that is called as
    others are, in a process that has PyTorch. `save` is an UnsupportedError that names the operators; `report` says how it was cut."""

    def __init__(self, parts, limits=None):
        self._parts, self._module, self._specialize, self.artifact = parts, None, None, None
        self.limits = limits
        self._read((info for info, _ in (*parts.inputs, *parts.buffers)), parts.outputs, parts.forms)
        self._run_parts = self._kept.around(parts, self._order) if self._kept else self._shown

    def _shown(self, *arrays):
        out = self._parts(*arrays)
        return out[0] if len(out) == 1 else tuple(out)

    @property
    def report(self):
        """What was compiled and what was left to PyTorch: the row of `baton.torch.report()`."""
        return self._parts.report

    def __call__(self, *args, **kwargs):
        arrays = self._arguments(args, kwargs)
        explain_misfit(self.inputs, self._forms, arrays, None)
        self._parts.check(arrays)
        return self._run(self._run_parts, arrays, arrays)

    def _refuse(self, *args, **kwargs):
        names = ", ".join(dict.fromkeys(name for name, _, _ in self.report.left))
        raise UnsupportedError(f"PyTorch runs operators of this program: {names}. A model without them is saved and asked about itself")

    save = source = profile = shapes = specialize = session = _refuse
    guards = called_back = ()

    @property
    def dims(self):
        """The open dimensions with their bounds, in the order of the inputs."""
        return self._parts.dims

    def _raw_manifest(self):
        return {}

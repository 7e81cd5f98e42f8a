# SPDX-License-Identifier: Apache-2.0
"""ONNX's backend interface: what its test suite and scoreboard run.

from baton.contrib import onnx_backend
outputs = onnx_backend.prepare(model).run([x])
"""

from __future__ import annotations

import collections

import numpy as np

from .._ffi import get_global_func
from ..driver.forms import Forms, of_module
from ..error import UnsupportedError
from ..relay.frontend import from_onnx
from ..runtime.values import to_value


def _type_kind(type_proto):
    return type_proto.WhichOneof("value")


# What an import says that lacks a value or a length which comes with the inputs.
_NEEDS_INPUTS = ("at compile time", "give its shape", "branches whose outputs differ", "a loop whose state changes", "unknown length")
# Programs kept for other shapes and values.
_MOST_PROGRAMS = 16


def _decides(value):
    """Whether an input may decide shapes or branches: a few integers or truth values."""
    return value.dtype.kind in "iub" and value.size <= 64


def _tensors(model):
    """Whether all inputs and outputs are tensors."""
    return all(_type_kind(v.type) in ("tensor_type", None) for v in (*model.graph.input, *model.graph.output))


def _array(value):
    """A NumPy array, or a list of them, of a value of the runtime; what a form has decoded stays."""
    if hasattr(value, "numpy"):
        return value.numpy()
    if isinstance(value, (np.ndarray, dict)):
        return value
    return [_array(v) for v in value]


def _program(mod, compiled):
    """What runs `main` of `mod` on a list of inputs: native code, or the interpreter where values are no tensors."""
    said = of_module(mod)
    if compiled:
        from ..driver.executable import Executable
        from ..runtime.vm import flat

        executable = Executable(get_global_func("driver.Compile")(mod, get_global_func("target.Target")("llvm")), forms=said)

        def run(values):
            out = executable(*values)
            return [_array(v) for v in (out if said and isinstance(out, tuple) else [out] if said else flat([out]))]

        return run
    mod = get_global_func("transform.RunPass")(get_global_func("relay._transform.InferType")(), mod)
    interpret = get_global_func("relay.backend.InterpretCall")
    main = get_global_func("ir.Module_Lookup_str")(mod, "main")

    forms = Forms(said) if said else None

    def run_interpreted(values):
        if forms is None:
            return _array(interpret(main, values, mod))
        out = interpret(main, [to_value(v) for v in forms.encode(values)], mod)
        return _array(forms.decode(out if hasattr(out, "numpy") else tuple(out)))

    return run_interpreted


class BatonRep:
    """A prepared model. `run` takes the inputs in order (those without an initializer) or by name."""

    def __init__(self, model):
        weights = {t.name for t in model.graph.initializer} | {t.values.name for t in model.graph.sparse_initializer}
        self._model = model
        self._inputs = [v for v in model.graph.input if v.name not in weights]
        self._outputs = list(model.graph.output)
        self._programs = collections.OrderedDict()
        self._compiled = _tensors(model)
        self._bake = False
        # A sequence's length and an optional's presence are known with the inputs only: such a model is imported then.
        if all(_type_kind(v.type) == "tensor_type" for v in self._inputs):
            try:
                self._programs[()] = _program(from_onnx(model, freeze_params=True)[0], self._compiled)
            except UnsupportedError as error:
                # The same where control flow or a sequence hangs on values: they may be there with the inputs.
                parts = str(error).split("\n")[1:]
                if not parts or not all(any(word in part for word in _NEEDS_INPUTS) for part in parts):
                    raise
                self._bake = True
        else:
            self._bake = True

    def _specialize(self, values):
        """The program for inputs of these shapes."""
        shape = {}
        for info, value in zip(self._inputs, values, strict=True):
            if value is None:
                shape[info.name] = None
            elif isinstance(value, list):
                shape[info.name] = [np.asarray(v).shape for v in value]
            else:
                shape[info.name] = np.asarray(value).shape
        model, baked = self._model, {}
        if self._bake:
            baked = {
                info.name: np.asarray(value)
                for info, value in zip(self._inputs, values, strict=True)
                if not isinstance(value, list) and value is not None and _decides(np.asarray(value))
            }
        key = repr((shape, {name: (value.dtype.str, value.tobytes()) for name, value in baked.items()}))
        if key not in self._programs:
            if baked:
                from onnx import numpy_helper

                model = type(model)()
                model.CopyFrom(self._model)
                model.graph.initializer.extend(numpy_helper.from_array(v, k) for k, v in baked.items())
            program = _program(from_onnx(model, shape=shape, freeze_params=True)[0], self._compiled)
            keep = [info.name not in baked for info in self._inputs]
            self._programs[key] = lambda given: program([v for v, kept in zip(given, keep, strict=True) if kept and v is not None])
            if len(self._programs) > _MOST_PROGRAMS:
                self._programs.popitem(last=False)
        return self._programs[key]

    def run(self, inputs, **kwargs):
        """The outputs, in the order of the graph."""
        if isinstance(inputs, dict):
            inputs = [inputs[v.name] for v in self._inputs]
        elif not isinstance(inputs, (list, tuple)):
            inputs = [inputs]
        if len(inputs) > len(self._inputs):
            raise TypeError(f"the model has {len(self._inputs)} inputs, {len(inputs)} were given")
        values = list(inputs) + [None] * (len(self._inputs) - len(inputs))
        program = self._programs.get(())
        outputs = program(values) if program else self._specialize(values)(values)
        if not self._compiled and len(self._outputs) == 1:
            outputs = [outputs]
        return tuple(outputs)


def prepare(model, device="CPU", **kwargs):
    """Imports and compiles `model`.

    Raises UnsupportedError that lists everything not supported.
    """
    if not supports_device(device):
        raise UnsupportedError(f"device `{device}` is not supported")
    return BatonRep(model)


def run_model(model, inputs, device="CPU", **kwargs):
    """Prepares and runs a model once."""
    return prepare(model, device, **kwargs).run(inputs)


def run_node(node, inputs, device="CPU", outputs_info=None, opset_version=None, **kwargs):
    """Runs one node on `inputs`, in the order of its operands."""
    import onnx
    from onnx import helper

    names = list(dict.fromkeys(n for n in node.input if n))
    values = [np.asarray(v) for v in inputs]
    infos = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for n, v in zip(names, values, strict=True)]
    outputs = [onnx.ValueInfoProto(name=n) for n in node.output if n]
    graph = helper.make_graph([node], "node", infos, outputs)
    version = opset_version or onnx.defs.onnx_opset_version()
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(node.domain, version)])
    return prepare(model, device).run(values)


def supports_device(device):
    """Whether `device` is one: the CPU."""
    return device.split(":")[0].upper() == "CPU"


def is_compatible(model, device="CPU", **kwargs):
    """Whether `model` is supported as a whole."""
    if not supports_device(device):
        return False
    try:
        from_onnx(model, freeze_params=True)
    except UnsupportedError:
        return False
    return True


__all__ = ["BatonRep", "is_compatible", "prepare", "run_model", "run_node", "supports_device"]

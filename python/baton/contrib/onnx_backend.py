# SPDX-License-Identifier: Apache-2.0
"""ONNX's backend interface: what its test suite and scoreboard run.

from baton.contrib import onnx_backend
outputs = onnx_backend.prepare(model).run([x])
"""

from __future__ import annotations

from ..driver.compiler import compile as compile_model
from ..error import UnsupportedError


def _arrays(value):
    """A result as upstream compares it: NumPy arrays, and lists of them for sequences."""
    if isinstance(value, (tuple, list)):
        return [_arrays(v) for v in value]
    return value.numpy() if hasattr(value, "numpy") else value


class BatonRep:
    """A prepared model. `run` takes the inputs in order (those without an initializer) or by name."""

    def __init__(self, model):
        self._model, self._single = compile_model(model), len(model.graph.output) == 1

    def run(self, inputs, **kwargs):
        """The outputs, in the order of the graph."""
        given = inputs if isinstance(inputs, (dict, list, tuple)) else [inputs]
        out = self._model(given) if isinstance(given, dict) else self._model(*given)
        return tuple(map(_arrays, [out] if self._single else out))


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
    import numpy as np
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
    from ..relay.frontend import from_onnx

    if not supports_device(device):
        return False
    try:
        from_onnx(model, freeze_params=True)
    except UnsupportedError:
        return False
    return True


__all__ = ["BatonRep", "is_compatible", "prepare", "run_model", "run_node", "supports_device"]

# SPDX-License-Identifier: Apache-2.0
"""ONNX models as Relay modules."""

from __future__ import annotations

import os
from functools import partial

from ..._ffi import get_global_func
from ...error import UnsupportedError


def _shape(value):
    """The importer's form of one input: a list of lengths (-1 for an unknown one), "sequence" and lists, None."""
    if value is None:
        return None
    if isinstance(value, list) and (not value or isinstance(value[0], (tuple, list))):
        return ["sequence", *([_length(d) for d in shape] for shape in value)]
    return [_length(d) for d in value]


def _length(dim):
    # relay.Any() and None stand for an unknown length.
    return dim if isinstance(dim, int) else -1 if dim is None or not hasattr(dim, "__index__") else dim.__index__()


def _inputs(model, shape):
    if shape is None:
        return {}
    if isinstance(shape, dict):
        return {name: _shape(value) for name, value in shape.items()}
    if hasattr(model, "graph"):
        weights = {t.name for t in model.graph.initializer}
        names = [v.name for v in model.graph.input if v.name not in weights]
        if len(names) == 1:
            return {names[0]: _shape(tuple(shape))}
    raise TypeError("`shape` is a dict from input name to shape")


_CONFIGS = {"use_nt_batch_matmul"}


def with_bodies(model, opset):
    """The model with operators that the importer lacks replaced by the bodies that ONNX defines them by; None if none is."""
    try:
        import onnx
        from onnx import defs, inliner
    except ImportError:
        return None
    if not hasattr(model, "graph"):
        try:
            # Only the importer reads external data.
            read = onnx.ModelProto.FromString if isinstance(model, bytes) else partial(onnx.load, load_external_data=False)
            model = read(model)
        except Exception:  # noqa: BLE001 - what `onnx` cannot read is told by our own error
            return None
    supports = get_global_func("relay.frontend.onnx_supports")
    versions = {i.domain if i.domain != "ai.onnx" else "": i.version for i in model.opset_import}
    lacking = []

    def visit(nodes):
        for node in nodes:
            domain = "" if node.domain == "ai.onnx" else node.domain
            key = (domain, node.op_type)
            version = opset if opset and not domain else versions.get(domain, 1)
            if key not in lacking and not supports(domain, node.op_type):
                try:
                    schema = defs.get_schema(node.op_type, version, domain)
                except onnx.defs.SchemaError:
                    continue
                if schema.has_function or schema.has_context_dependent_function:
                    lacking.append(key)
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    visit(attribute.g.node)

    visit(model.graph.node)
    for function in model.functions:
        visit(function.node)
    if not lacking:
        return None
    try:
        return inliner.inline_selected_functions(model, lacking, exclude=False, inline_schema_functions=True)
    except Exception:  # noqa: BLE001 - a model that `onnx` cannot expand is told by our own error
        return None


def _check_dtypes(mod, wanted):
    """Checks that the dtypes given for inputs are those of the model."""
    stated = {p.name_hint: getattr(p.type_annotation, "dtype", None) for p in mod["main"].params}
    for name, dtype in wanted.items():
        if name not in stated:
            raise ValueError(f"`dtype` names the input `{name}`; the model has {', '.join(stated)}")
        if stated[name] != str(dtype):
            raise UnsupportedError(f"`dtype` of `{name}` is {str(dtype)!r} and the model states {stated[name]}; change it in the model")


def from_onnx(model, shape=None, dtype="float32", opset=None, freeze_params=False, convert_config=None):
    """Imports an ONNX model: operator sets 1 to 28.

        mod, params = baton.relay.frontend.from_onnx(onnx.load("model.onnx"), shape={"x": (1, 3, 224, 224)})

    model: a ModelProto, its bytes, or the path of a file. shape: shapes of inputs by name, over those the model states; an
    open length is -1, None or `relay.Any()`; a list of shapes for a sequence, None for an optional without a value.
    convert_config: "use_nt_batch_matmul" is accepted for Relay's sake; products need no transposed operands here.
    dtype: accepted for Relay's sake, for all inputs or by name; an ONNX model states its types, and others are refused. opset: read the model as of
    this version. freeze_params: weights become constants and `params` is empty.

    Gives `(mod, params)`: a module with the function `main` whose parameters bear the names of the model's inputs (and
    weights), and the weights by name.

    Raises CompileError where the model is wrong, and one UnsupportedError that lists every part that is not supported.
    """
    if dtype not in (None, "float32") and not isinstance(dtype, dict):
        raise UnsupportedError(f"`dtype` {dtype!r}: an ONNX model states the types of its inputs; change them in the model")
    unknown = sorted(set(convert_config or ()) - _CONFIGS)
    if unknown:
        raise UnsupportedError(f"`convert_config` has no option {', '.join(map(repr, unknown))}")
    if not isinstance(model, (str, os.PathLike, bytes)) and not hasattr(model, "SerializeToString"):
        raise TypeError(f"an ONNX model is a ModelProto, its bytes, or the path of a file, not {type(model).__name__}")
    inputs = _inputs(model, shape)

    def read(source, folder=""):
        if isinstance(source, (str, os.PathLike)):
            return get_global_func("relay.frontend.from_onnx_file")(os.fspath(source), inputs, freeze_params, opset or 0, False)
        data = source if isinstance(source, bytes) else source.SerializeToString()
        return get_global_func("relay.frontend.from_onnx_bytes")(data, inputs, freeze_params, opset or 0, folder)

    try:
        mod, params = read(model)
    except UnsupportedError:
        larger = with_bodies(model, opset)
        if larger is None:
            raise
        folder = os.path.dirname(os.path.abspath(model)) if isinstance(model, (str, os.PathLike)) else ""
        mod, params = read(larger, folder)
    if isinstance(dtype, dict):
        _check_dtypes(mod, dtype)
    return mod, dict(params.items())

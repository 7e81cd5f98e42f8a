# SPDX-License-Identifier: Apache-2.0
"""A model that could not be imported: in a capsule as its file in base64, or named by its hash where it is large."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import tempfile

from .._ffi import get_global_func
from .file import CapsuleError, CapsuleFile

_FILE, _BYTES = "relay.frontend.from_onnx_file", "relay.frontend.from_onnx_bytes"


def _plain(value):
    """Shapes by input name, as JSON has them."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if hasattr(value, "items"):
        return {str(key): _plain(one) for key, one in value.items()}
    if hasattr(value, "__iter__"):
        return str(value) if type(value).__name__ == "String" else [_plain(one) for one in value]
    return int(value)


def pack(what, mode: str, cap: int):
    """(entry, argument, context, body, facts, notes) of the header for what `failure.NoteImport` kept."""
    entry, arguments, context = what
    source, inputs, freeze, opset = arguments
    name, notes = None, []
    if str(entry) == _FILE:
        name = os.path.basename(str(source))
        try:
            with open(str(source), "rb") as file:
                model = file.read()
        except OSError as error:
            model = b""
            notes.append(f"the model is not in the capsule: {error.strerror}")
        notes.append("data that the model keeps in other files are not in the capsule")
    else:
        model = source.numpy().tobytes()
    argument = json.dumps({"name": name, "inputs": _plain(inputs), "freeze": bool(freeze), "opset": int(opset)})
    kept = bool(model) and (mode == "inline" or (mode == "auto" and len(model) <= cap))
    if model and not kept:
        notes.append("the model is named by its hash; `--weights MODEL.onnx` gives it to a replay")
    body = base64.encodebytes(model).decode() if kept else ""
    facts = {"model": {"sha256": hashlib.sha256(model).hexdigest(), "bytes": len(model), "kept": kept}}
    return str(entry), argument, context, body, facts, notes


def model_of(file: CapsuleFile, paths=()) -> bytes:
    """The model in a capsule, or the one of these files that it names. CapsuleError where there is none, or another."""
    try:
        wanted = file.weights["model"]["sha256"]
        if file.weights["model"]["kept"]:
            model = base64.b64decode(file.ir, validate=False)
            if hashlib.sha256(model).hexdigest() != wanted:
                raise CapsuleError(f"`{file.path}` is broken: its model is not the one that its hash names")
            return model
    except (KeyError, TypeError, ValueError) as error:
        raise error if isinstance(error, CapsuleError) else CapsuleError(f"`{file.path}` is broken: its model cannot be read") from None
    for path in paths:
        with open(path, "rb") as given:
            model = given.read()
        if hashlib.sha256(model).hexdigest() == wanted:
            return model
    raise CapsuleError(f"`{file.path}` names its model by a hash: give it by --weights MODEL.onnx")


def importer(file: CapsuleFile, paths=()):
    """A function that imports the model of a capsule again."""
    model = model_of(file, paths)
    try:
        said = json.loads(file.argument)
        name, inputs, freeze, opset = said["name"], dict(said["inputs"]), bool(said["freeze"]), int(said["opset"])
    except (KeyError, TypeError, ValueError):
        raise CapsuleError(f"`{file.path}` is broken: `argument` of the header is {str(file.argument)[:40]!r}") from None
    if name is None:
        return lambda: get_global_func(_BYTES)(model, inputs, freeze, opset, "")
    if not isinstance(name, str) or name in ("", ".", "..") or os.path.basename(name) != name or "\0" in name:
        raise CapsuleError(f"`{file.path}` is broken: `name` of its model is {str(name)[:40]!r}")

    def again():
        with tempfile.TemporaryDirectory(prefix="baton-") as folder:
            path = os.path.join(folder, name)
            with open(path, "wb") as out:
                out.write(model)
            return get_global_func(_FILE)(path, inputs, freeze, opset, False)

    return again

# SPDX-License-Identifier: Apache-2.0
"""The way back: what a capsule says, done again, and whether it fails in the same way."""

from __future__ import annotations

import contextlib
import importlib
import json
import re

from .._ffi import get_global_func
from .._ffi.base import load_compiler
from . import imports, isolate, weights
from . import signature as signatures
from .file import CapsuleError, CapsuleFile, load
from .record import Recorder


class Replay:
    """The result of a replay: `reproduced`, `signature` (None where nothing failed), `differences` in lines, `error`, `notes`."""

    def __init__(self, want, got, error, notes):
        self.signature, self.error, self.notes = got, error, notes
        self.differences = signatures.differences(want, got)
        self.reproduced = not self.differences

    def __repr__(self):
        return f"<replay: {'reproduced' if self.reproduced else '; '.join(self.differences)}>"


def module_of(file: CapsuleFile, given=None):
    """The module in a capsule, with types if it had them, and notes. CapsuleError where it says none."""
    from ..ir import IRModule

    if file.ir_format == "none":
        raise CapsuleError(f"`{file.path}` has no IR: {'; '.join(map(str, file.notes)) or 'nothing was running'}")
    if file.ir_format == "onnx":
        raise CapsuleError(f"`{file.path}` has no IR: the model was not imported")
    load_compiler()
    try:
        text, notes = weights.unpack(file.ir, given)
        if file.ir_format == "relay":
            module = get_global_func("parser.ParseModule")("<capsule>", text)
        else:
            module = get_global_func("node.LoadJSON")(text)
        if not isinstance(module, IRModule):
            raise CapsuleError(f"`{file.path}` is broken: its IR is a {type(module).__name__}, no module")
        if file.typed:
            module = get_global_func("transform.RunPass")(get_global_func("transform.GetPass")("InferType"), module)
    except CapsuleError:
        raise
    except Exception as error:
        raise CapsuleError(f"`{file.path}` is broken: its IR cannot be read: {error}") from error
    return module, notes


def _context(file: CapsuleFile, threads):
    from .. import ir
    from ..ir.transform import PassContext

    said = file.context
    try:
        config = {
            key: ir.load_json(value["$graph"]) if isinstance(value, dict) and set(value) == {"$graph"} else value for key, value in said["config"].items()
        }
        return PassContext(
            opt_level=said["opt_level"], required_pass=said["required_pass"], disabled_pass=said["disabled_pass"], config=config,
            num_threads=said["num_threads"] if threads is None else threads, instruments=_instruments(file),
        )  # fmt: skip
    except CapsuleError:
        raise
    except Exception as error:
        raise CapsuleError(f"`{file.path}`: its context cannot be made: {error}") from error


def _instruments(file):
    from ..ir.instrument import PassInstrument

    out = []
    for made in file.instruments:
        try:
            module, _, name = made["class"].rpartition(":")
            cls = importlib.import_module(module)
            for part in name.split("."):
                cls = getattr(cls, part)
            if not isinstance(cls, type) or not issubclass(cls, PassInstrument):
                raise TypeError("it is not a class of instruments")  # a file from elsewhere calls nothing else
            out.append(cls(*made["args"], **made["kwargs"]))
        except Exception as error:
            raise CapsuleError(f"`{file.path}`: the instrument {made!r} cannot be made: {error}") from error
    return out


class _Work:
    """The task of a capsule; reading it is over when this is made."""

    def __init__(self, file: CapsuleFile, threads=None, given=None, module=None, models=()):
        if not file.replayable:
            raise CapsuleError(f"`{file.path}` cannot be run again: {'; '.join(map(str, file.notes))}")
        self.file = file
        self.importer = None
        if file.stage == "import":
            self.importer, self.notes, self.context = imports.importer(file, models), [], _context(file, threads)
            return
        self.module, self.notes = module_of(file, given) if module is None else (module, [])
        self.context = _context(file, threads)
        try:
            self.target = None if file.target is None else _target(file.target)
            if file.stage == "pass":
                self.pass_ = get_global_func("transform.ParsePipeline")(file.pipeline)
                if len(self.pass_.passes) == 1:
                    self.pass_ = self.pass_.passes[0]
            else:
                self.pass_ = None
                if file.entry not in _ENTRIES:
                    raise ValueError(f"there is no entry `{file.entry}`; there are {', '.join(_ENTRIES)}")
        except Exception as error:
            raise CapsuleError(f"`{file.path}`: what it does cannot be made: {error}") from error

    def __call__(self):
        with self.context:
            if self.importer is not None:
                return self.importer()
            if self.pass_ is not None:
                with self.target if self.target is not None else contextlib.nullcontext():
                    return get_global_func("transform.RunPass")(self.pass_, self.module)
            arguments = [self.module, self.target] + ([] if self.file.argument is None else [self.file.argument])
            return get_global_func(self.file.entry)(*arguments)


def _target(text):
    """Reads the text of `record.target_text`."""
    from ..target import Target

    if not text.startswith("{"):
        return Target(text)
    return {device: Target(one) for device, one in json.loads(text).items()}


_ENTRIES = ("driver.Compile", "driver.Generate", "driver.CompileForDevices", "driver.GenerateForDevices", "driver.EmitText", "driver.BuildFunctions")


def _attempt(work, in_child=False):
    """(signature or None, message)"""
    recorder = Recorder()
    try:
        with recorder:
            work()
    except Exception as error:  # noqa: BLE001 - that is what is looked for
        if isinstance(error, MemoryError) and in_child:
            raise
        return recorder.signature(error), str(error)
    return None, ""


def _gist(message: str) -> str:
    """The first line of a message without names, types and lists, which change with the program."""
    line = message.split("\n", 1)[0]
    return re.sub(r"`[^`]*`|\([^()]*\)|\[[^\[\]]*\]|#", "", re.sub(r"\([^()]*\)", "", line))


def reproduces(file: CapsuleFile, module) -> bool:
    """Whether another module fails in the same pass in the same way; what messages say of the program itself does not count."""
    want, work = file.signature, _Work(file, module=module)
    if file.isolate is None:
        got = _attempt(work)[0]
    else:
        outcome = isolate.run(lambda: _attempt(work, True), timeout=file.isolate.get("timeout"), memory=file.isolate.get("memory"))
        got = signatures.of_death(outcome.kind, outcome.pass_name) if outcome.kind else outcome.value[0] if outcome.value else None
    return got is not None and all(got[key] == want[key] for key in ("kind", "pass", "frames")) and _gist(got["message"]) == _gist(want["message"])


def reduced(file: CapsuleFile, given=None):
    """A smaller module that fails in the same way; ValueError where its types cannot be inferred, as small ones are told by these."""
    from ..testing import reduce

    return reduce(module_of(file, given)[0], lambda module: reproduces(file, module))


def replay(capsule, *, threads: int | None = None, weights_from=(), timeout: float | None = None) -> Replay:
    """Does what a capsule says again, and tells whether it fails in the same way.

    capsule: a path or a CapsuleFile. threads: of function passes, instead of the capsule's. weights_from: .npy and .npz files with
    tensors that the capsule names by hash, or the model that it names so. timeout: seconds, instead of the capsule's, for one of a hang. A capsule of a crash is
    replayed in a child process. CapsuleError for a file that is broken, or cannot be run again.
    """
    file = capsule if isinstance(capsule, CapsuleFile) else load(capsule)
    load_compiler()
    models = [path for path in weights_from if not str(path).endswith((".npy", ".npz"))]
    work = _Work(file, threads, weights.read_given([path for path in weights_from if path not in models]), models=models)
    want = file.signature
    if file.isolate is None:
        got, message = _attempt(work)
        return Replay(want, got, message, work.notes)
    limit = timeout if timeout is not None else file.isolate.get("timeout")
    outcome = isolate.run(lambda: _attempt(work, True), timeout=limit, memory=file.isolate.get("memory"))
    if outcome.kind:
        return Replay(want, signatures.of_death(outcome.kind, outcome.pass_name), outcome.kind, work.notes)
    if outcome.raised is not None:
        return Replay(want, signatures.of_error(outcome.raised, "", False), str(outcome.raised), work.notes)
    return Replay(want, *outcome.value, work.notes)

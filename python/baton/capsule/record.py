# SPDX-License-Identifier: Apache-2.0
"""`baton.Capsule`: notices that something failed in its block, and writes down what it takes to make it fail again."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import sys
import threading

from .._ffi import get_global_func
from .._ffi.base import load_compiler
from . import imports
from . import signature as signatures
from . import weights as weight_modes
from .file import VERSION, CapsuleFile

DIRECTORY = "BATON_CAPSULE_DIR"
_JSON_ONLY_ABOVE = 64 << 20  # bytes of tensors: text would be read back to see that it says the same
_local = threading.local()
# How the process died that did this before; set in the child that looks for the place. See isolate.py.
died: dict | None = None


class Recorder:
    """Sees what fails in its block: a pass, an instrument around one, or an entry of the compiler. Of this thread."""

    def __enter__(self):
        load_compiler()
        from ..ir.transform import PassContext

        self._context = PassContext.current()
        self._instrument = get_global_func("instrument.History")("Capsule", False)
        get_global_func("transform.AddInstrument")(self._context, self._instrument)
        get_global_func("failure.Record")(True)
        self.steps, self.entries, self.imports, self.rejected = [], [], [], []
        return self

    def __exit__(self, kind, error, trace):
        get_global_func("transform.RemoveInstrument")(self._context, self._instrument)
        if error is not None:
            self.steps = list(get_global_func("instrument.HistorySteps")(self._instrument))
            for failure in get_global_func("failure.Take")():
                {"rejected": self.rejected, "import": self.imports}.get(str(failure[0]), self.entries).append(list(failure))
        get_global_func("failure.Record")(False)
        get_global_func("instrument.HistoryClear")(self._instrument)
        return False

    def locate(self, error: BaseException):
        """("pass", steps from the innermost that failed outwards, whether an instrument threw), ("import", what
        `failure.NoteImport` kept, False), ("entry", what `failure.Entry` kept, False) or ("nothing", None, False)."""
        chain, rejected = self._chain(error), False
        if chain:
            return "pass", chain[0], chain[1]
        for _, *one, text in self.imports:
            if _first_line(str(error)) in str(text):
                return "import", one, rejected
        if self.entries:
            return "entry", self.entries[0], rejected
        return "nothing", None, rejected

    def _chain(self, error):
        message = _first_line(str(error))
        for _, name, text in self.rejected:
            if message in str(text):
                for at in range(len(self.steps) - 1, -1, -1):
                    if str(self.steps[at].pass_name) == str(name) and self.steps[at].before is not None:
                        return self._outwards(at), True
        found = -1
        for at, step in enumerate(self.steps):
            failed = str(step.status) in ("failed", "open") and step.before is not None
            if int(step.depth) == 0:
                found = at if failed else -1
            elif found >= 0 and failed and int(step.parent) == found:
                found = at
        if found < 0:
            return None
        of_step = str(self.steps[found].error)
        if self.entries and message not in of_step and _first_line(of_step.partition(": ")[2]) not in str(error):
            return None  # that was dealt with; what came out is something else
        return self._outwards(found), False

    def _outwards(self, at):
        out = []
        while at >= 0:
            out.append(self.steps[at])
            at = int(self.steps[at].parent)
        return out

    def signature(self, error: BaseException) -> dict:
        """The signature of an exception that left the block."""
        stage, what, rejected = self.locate(error)
        name = str(what[0].pass_name if stage == "pass" else what[0]) if what else ""
        return signatures.of_error(error, name, stage == "pass" and not rejected)


class Capsule:
    """Writes a capsule when something fails in its block: one text file that `baton replay` makes fail again.

        with baton.Capsule("failure.capsule") as c:
            baton.compile("model.onnx")
        # the exception goes on; c.path is the file

    path: a file, or a directory, where the capsule is named by the pass and a hash; without one the directory that the environment
    variable BATON_CAPSULE_DIR names, else the current one. weights: "inline" keeps tensors, "hash" names them by SHA-256,
    "synthetic" replaces them by seeded ones of the same shape, dtype and range, "auto" keeps them up to `max_bytes` characters
    and makes them synthetic above; small tensors are always kept. seed: of the synthetic ones.
    """

    def __init__(self, path=None, *, weights: str = "auto", max_bytes: int = weight_modes.CAP, seed: int = 0):
        if weights not in weight_modes.MODES:
            raise ValueError(f"weights is one of {', '.join(weight_modes.MODES)}, not {weights!r}")
        self._target = os.fspath(path) if path is not None else os.path.join(os.environ.get(DIRECTORY) or ".", "")
        self._weights, self._cap, self._seed = weights, int(max_bytes), int(seed)
        self.path: str | None = None
        self.file: CapsuleFile | None = None

    def __enter__(self):
        _local.depth = getattr(_local, "depth", 0) + 1
        try:
            self._recorder = Recorder().__enter__()
        except BaseException:
            _local.depth -= 1
            raise
        return self

    def __exit__(self, kind, error, trace):
        _local.depth -= 1
        self._recorder.__exit__(kind, error, trace)
        if error is None or not isinstance(error, Exception):
            return False
        try:
            self._write(error)
        except Exception as problem:  # noqa: BLE001 - the failure that the user looks for goes on
            _add_note(error, f"no capsule was written: {type(problem).__name__}: {problem}")
        return False

    def write_death(self, died) -> str:
        """Writes the capsule of a process that died where no pass and no entry was running; gives its path."""
        load_compiler()
        isolate = {key: died.get(key) for key in ("timeout", "memory")}
        self.file = collect("nothing", None, False, signatures.of_death(died["kind"], ""), died["kind"], isolate, self._weights, self._cap, self._seed)
        self.path = place(self._target, self.file)
        self.file.save(self.path)
        return self.path

    def _write(self, error):
        stage, what, rejected = self._recorder.locate(error)
        if stage == "nothing" and died is None:
            _add_note(error, "no capsule was written: no pass and no entry of the compiler failed")
            return
        signature = self._recorder.signature(error)
        isolate = None
        if died is not None:
            signature = signatures.of_death(died["kind"], signature["pass"])
            isolate = {key: died.get(key) for key in ("timeout", "memory")}
        self.file = collect(stage, what, rejected, signature, str(error) if died is None else died["kind"], isolate, self._weights, self._cap, self._seed)
        self.path = place(self._target, self.file)
        self.file.save(self.path)
        _add_note(error, f"capsule: {self.path}")


def from_environment():
    """A Capsule where BATON_CAPSULE_DIR names a directory and none is active yet; else a block without effect."""
    if os.environ.get(DIRECTORY) and not getattr(_local, "depth", 0):
        return Capsule()
    return contextlib.nullcontext()


def _add_note(error, text):
    if hasattr(error, "add_note"):
        error.add_note(text)
    with contextlib.suppress(AttributeError, TypeError):
        error.capsule_note = text


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0] if text.strip() else ""


def place(target: str, file: CapsuleFile) -> str:
    """Where a capsule is written: the file that was asked for, or one in the directory, by pass and content."""
    if not (os.path.isdir(target) or target.endswith(os.sep)):
        return target
    os.makedirs(target, exist_ok=True)
    key = json.dumps([file.header["signature"], file.header["pipeline"], file.header["entry"]]) + file.ir
    digest = hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()[:10]
    name = "".join(c if c.isalnum() or c in "._-" else "_" for c in file.header["pass"] or "failure")[:60]
    return os.path.join(target, f"{name}-{digest}.capsule")


def collect(stage, what, rejected, signature, error, isolate, mode, cap, seed) -> CapsuleFile:
    """The capsule of a failure that a Recorder located."""
    notes, pipeline, entry, argument, module, replayable = [], "", "", None, None, True
    context, target, watchers = None, None, []
    if stage == "pass":
        step, pipeline, replayable = _nameable(what, notes)
        module, context, target = step.before, step.context, step.target
        if rejected:
            watchers = _describe_instruments(what[0].watchers, notes)
    elif stage == "entry":
        entry, module, target, argument, context = what
        entry, argument = str(entry), str(argument) or None
    elif stage != "import":
        replayable = False
        notes.append("the process died outside of passes: there is no IR to start from")
    ir_format, ir, typed = "none", "", False
    if stage == "import":
        entry, argument, context, ir, facts, more = imports.pack(what, mode, cap)
        ir_format = "onnx"
    else:
        if module is not None:
            ir_format, ir, typed = ir_text(module)
        ir, facts, more = weight_modes.pack(ir, mode, cap, seed)
    header = {
        "signature": signature,
        "error": error,
        "stage": stage,
        "pass": signature["pass"],
        "pipeline": pipeline,
        "entry": entry,
        "argument": argument,
        "context": describe_context(context, notes),
        "instruments": watchers,
        "target": None if target is None else target_text(target),
        "versions": versions(),
        "seeds": {"weights": seed, "PYTHONHASHSEED": os.environ.get("PYTHONHASHSEED", "")},
        "threads": _threads(),
        "verify_passes": os.environ.get("BATON_VERIFY_PASSES", "0") not in ("", "0"),
        "typed": typed,
        "isolate": isolate,
        "weights": facts,
        "replayable": replayable,
        "notes": notes + more,
        "format": VERSION,
    }
    return CapsuleFile(header, ir_format, ir)


def target_text(target) -> str:
    """A target as text; of a program on several devices an object of JSON, a target by the name of each."""
    if not hasattr(target, "items"):
        return str(target)
    return json.dumps({str(device): str(one) for device, one in sorted(target.items(), key=lambda row: str(row[0]))})


def _nameable(chain, notes):
    """(step to run again, its text, whether there is one): the innermost that a text names."""
    reasons = []
    for step in chain:
        if step.pass_object is None or step.before is None:
            continue
        try:
            text = str(step.pass_object.text())
        except ValueError as error:
            reasons.append(f"`{step.pass_name}` cannot be named: {_first_line(str(error))}")
            continue
        # Names that two layers have: what it is over says which.
        if "." not in text and type(step.pass_object).__name__ == "PrimFuncPass" and not text.startswith("python."):
            text = "tir." + text
        notes.extend(reasons)
        if reasons:
            notes.append(f"what is run again is `{step.pass_name}`, around it")
        return step, text, True
    notes.extend(reasons)
    notes.append("it cannot be run again: no pass around the failure has a name that makes it")
    return chain[0], "", False


def _describe_instruments(instruments, notes):
    from ..ir.instrument import made_with

    out = []
    for one in instruments:
        made = made_with(one)
        try:
            json.dumps(made)
        except (TypeError, ValueError):
            made = None
        if made is None:
            if str(one.name) not in ("PrintIR", "PassTimingInstrument", "PassWatchdog", "Capsule", "History"):
                notes.append(f"the instrument `{one.name}` is not in the capsule: how it was made is not known or has no text")
            continue
        out.append(made)
    return out


def describe_context(context, notes) -> dict:
    """A PassContext as JSON; options with their own class as the text of their graph."""
    if context is None:
        return {"opt_level": 2, "required_pass": [], "disabled_pass": [], "config": {}, "num_threads": 1}
    from .. import ir

    config = {}
    for key, value in context.config.items():
        plain = _plain(value)
        if plain is None and value is not None:
            try:
                plain = {"$graph": str(ir.save_json(value))}
            except Exception:  # noqa: BLE001 - an option that lives in the process alone
                notes.append(f"the option `{key}` is not in the capsule: it has no text")
                continue
        config[str(key)] = plain
    return {
        "opt_level": int(context.opt_level),
        "required_pass": [str(name) for name in context.required_pass],
        "disabled_pass": [str(name) for name in context.disabled_pass],
        "config": config,
        "num_threads": int(context.num_threads),
    }


def _plain(value):
    if isinstance(value, (bool, int, float, str)):
        return value
    if type(value).__name__ == "String":
        return str(value)
    if type(value).__name__ in ("Array", "list", "tuple"):
        out = [_plain(one) for one in value]
        return None if any(one is None for one in out) else out
    if type(value).__name__ in ("Map", "dict"):
        out = {str(key): _plain(one) for key, one in value.items()}
        return None if any(one is None for one in out.values()) else out
    return None


def ir_text(module) -> tuple[str, str, bool]:
    """(format, text, whether its expressions have types): Relay text where it says the same when read back, else JSON."""
    from .. import ir

    typed = str(get_global_func("transform.CheckProperty")("Typed", module)) == ""
    tensors = int(get_global_func("ir.MemoryFootprint")([module])[2])
    if tensors <= _JSON_ONLY_ABOVE:
        try:
            text = str(get_global_func("ir.AsText")(module, True))
            back = get_global_func("parser.ParseModule")("<capsule>", text)
            if ir.structural_equal(back, module) and not any(line.startswith("== ") for line in text.splitlines()):
                return "relay", text, typed
        except Exception:  # noqa: BLE001 - no Relay, or not well formed: the graph says all
            pass
    return "json", str(ir.save_json(module)), typed


def _threads() -> int:
    count = get_global_func("runtime.config_threadpool.num_threads", allow_missing=True)
    if count is not None:
        return int(count())
    given = os.environ.get("BATON_NUM_THREADS", "")
    return min(int(given), 1024) if given.isdecimal() and int(given) else os.cpu_count() or 1


def versions() -> dict[str, str]:
    """The versions that a failure was seen with."""
    from ..config import version

    cpu = platform.processor() or platform.machine()
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as file:
        cpu = next((line.partition(":")[2].strip() for line in file if line.startswith("model name")), cpu)
    described = get_global_func("driver.Describe", allow_missing=True)
    llvm = str(dict(described().items()).get("llvm", "")) if described is not None else ""
    return {"baton": version(), "llvm": llvm, "python": sys.version.split()[0], "cpu": cpu, "system": platform.platform()}

# SPDX-License-Identifier: Apache-2.0
"""A compiled model in Python: inputs by name or place in, arrays out. Needs the runtime library alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import NamedTuple

from .._core import Array, Device
from .._ffi import get_global_func
from ..error import RuntimeError as BatonRuntimeError
from ..error import UnsupportedError
from ..runtime import (
    Module,
    images,  # noqa: F401 - registers a function of the host
    load_module,
)
from ..runtime.runner import Runner, memory_of
from .calls import as_tensors, explain_misfit
from .dims import MAX_EXTENT, Dim
from .donation import put_all_back, taken, untake
from .limits import Limits
from .profile import Profile, take
from .session import Session


class TensorInfo(NamedTuple):
    """An input or output: `shape` has an int for each dimension, or where it is open a name (or None)."""

    name: str
    dtype: str
    shape: tuple[int | str | None, ...]

    def __str__(self) -> str:
        return f"{self.name} {self.dtype}[{', '.join('?' if d is None else str(d) for d in self.shape)}]"


def _as_array(value):
    from ..runtime import ndarray

    return ndarray.from_dlpack(value) if hasattr(value, "__dlpack__") else ndarray.array(value)


def _tuples(value: Array) -> tuple:
    """Nested arrays as nested tuples."""
    work = [(iter(value), [])]
    while True:
        fields, made = work[-1]
        for field in fields:
            if isinstance(field, Array):
                work.append((iter(field), []))
                break
            made.append(field)
        else:
            work.pop()
            if not work:
                return tuple(made)
            work[-1][1].append(tuple(made))


class Executable:
    """A model that is called with its inputs.

        y = model(x)                            # in the order of `model.inputs`
        y = model(input_ids=ids, mask=mask)     # by name
        y = model({"data:0": x})                # by name, where the name is not a Python identifier

    Inputs are NumPy arrays or anything with DLPack, of the dtype and shape that `inputs` says; no copy is made of those
    that are dense. The result is one NDArray, or where the model gives a tuple a tuple, nested ones too. It can be called
    from several threads at once.

    Attributes: `inputs`, `outputs` (TensorInfo each), `artifact` (the path it was loaded from, or None), `limits` (what a call may
    take: a `baton.Limits`, or a dict as {"seconds": 2, "bytes": 1 << 30, "rounds": 10**6}; None: no bounds). `device`: where it
    runs, or a list of devices for a model on several; without it on the first of each kind that it was compiled for. `donated`: inputs
    whose memory an output takes where they are given (`baton.give`), each with that output. `buffers`: what the model changes and keeps
    from call to call, by name (`baton.driver.kept.Buffers`).
    """

    def __init__(self, module: Module, artifact: str | None = None, device=None, specialize: Callable | None = None, forms: str = "", limits=None):
        self._module = module
        self._specialize = specialize
        self.artifact = artifact
        try:
            make = module["default"]
        except AttributeError:
            raise BatonRuntimeError("the module holds no model that can be run") from None
        self._make = make if device is None else lambda: make(*(device if isinstance(device, (list, tuple)) else [device]))
        self.limits = limits
        first = Runner(self._within(self._make))
        self._read(_infos(first, "input"), _infos(first, "output"), forms, first.donated)
        self._stateful = first.function("get_states") is not None
        # A runner has one call at a time; each thread that calls takes one from here, or makes one.
        self._runners = [self._ready(first)]
        self._idle = self._runners.copy()

    def _read(self, inputs, outputs, forms: str = "", donated: Mapping[str, str] | None = None) -> None:
        """Sets the inputs and outputs that callers see: without those of `forms` that calls do not show, with the dtypes of Python."""
        self.inputs, self.outputs, self.donated = tuple(inputs), tuple(outputs), donated or {}
        self._runners, self._stateful = [], False
        self._forms, self._kept = None, None
        self._read_forms(forms)
        self._order = tuple(info.name for info in self.inputs)
        if self._kept and self.donated:
            raise UnsupportedError("a program that changes buffers or arguments gives no input's memory away: compile it without donate=")
        self._given = tuple(self._order.index(name) for name in self.donated)

    def _read_forms(self, forms: str) -> None:
        """Reads which inputs and outputs are not numbers to Python, and which calls do not show."""
        if not forms:
            return
        from .forms import Forms
        from .kept import Kept

        self._kept = Kept.of(forms)
        if self._kept is None:
            self._forms = Forms(forms)
            self.inputs, self.outputs = self._forms.dtypes(self.inputs, self.outputs)
        else:
            self.inputs, self.outputs = self._kept.seen(self.inputs, "input"), self._kept.seen(self.outputs, "output")

    def _ready(self, runner: Runner) -> Runner:
        """Gives a runner the function that a call is, and the one that says whether the latest call was begun, where arrays are given away."""
        run = runner.executor["call_given" if self.donated else "call"]
        runner.run = self._kept.around(run, self._order) if self._kept else run
        runner.begun = runner.executor["begun"] if self.donated else None
        return runner

    @property
    def buffers(self) -> Mapping:
        """The buffers that the model changes, by name: they are kept from call to call, and may be read, set and reset."""
        return self._kept.buffers if self._kept else {}

    @property
    def limits(self) -> Limits | None:
        """The limits of a call."""
        return self._limits

    @limits.setter
    def limits(self, value) -> None:
        self._limits = Limits.of(value)

    def _within(self, function, *args):
        """The function's value, within the limits."""
        if self._limits is None:
            return function(*args)
        with self._limits.hold():
            return function(*args)

    @property
    def module(self) -> Module:
        """The runtime module with the code."""
        return self._module

    @property
    def dynamic(self) -> bool:
        """Whether shapes of inputs are open."""
        return any(not isinstance(size, int) for info in self.inputs for size in info.shape)

    @property
    def dims(self) -> tuple[Dim, ...]:
        """The open dimensions with their bounds, in the order of the inputs."""
        get = self._function("get_dims")
        flat = list(get()) if get else []
        return tuple(Dim(str(flat[i]), *map(int, flat[i + 1 : i + 4])) for i in range(0, len(flat), 4))

    @property
    def guards(self) -> tuple[str, ...]:
        """The conditions on the open dimensions beside their bounds, each with its place in the model: "/layer.3/Add: extents seq and
        past + 1 must be equal". A call whose shapes break one is a ValueError that quotes it.
        """
        try:
            return tuple(map(str, self._module["guards"]()))
        except AttributeError:
            return tuple(self._raw_manifest().get("guards", ()))

    def shapes(self, *args, **kwargs) -> tuple[tuple[int, ...], ...]:
        """Shapes of the outputs for inputs of these shapes, which are given as arrays are in a call: m.shapes(ids=(1, 7))."""
        infer = self._function("infer_shapes")
        if infer is None:
            raise UnsupportedError("the shapes of the results of this model are known only after a call")
        given = [list(shape) for shape in self._bind(args, kwargs)]
        flat = iter(infer(*(self._kept.fill(given, [list(v.shape) for v in self._kept.buffers.values]) if self._kept else given)))
        found = tuple(tuple(int(next(flat)) for _ in range(int(rank))) for rank in flat)
        return self._kept.seen(found, "output") if self._kept else found

    def reserve(self, **dims: int) -> None:
        """Plans and takes memory for dimensions up to these, so that later calls do not have to: m.reserve(seq=512). Others
        count with their largest length, or where that is not bounded with its least.
        """
        reserve, sizes = self._function("reserve"), self._sizes_of(dims)
        if sizes and reserve:
            reserve(sizes)

    def _sizes_of(self, dims: Mapping[str, int]) -> list[int]:
        """Lengths to reserve for all open dimensions, in order."""
        known = self.dims
        unknown = [name for name in dims if name not in [d.name for d in known]]
        if unknown:
            names = ", ".join(d.name for d in known) or "none"
            raise ValueError(f"the model has no open dimension `{unknown[0]}`; it has {names}")
        return [dims.get(d.name, d.max if d.max < MAX_EXTENT else max(d.min, d.multiple)) for d in known]

    def memory(self) -> dict[str, int]:
        """Bytes that this model holds: `constants` (weights, shared by all threads), `workspace` and `outputs` of all its executors,
        and how many `plans` of memory they keep. Also `donated` of a model with donated inputs: the part of `outputs` in their memory.
        """
        total = memory_of(self._runners)
        return {name: total.get(name, 0) for name in ("constants", "workspace", "outputs", "plans", *(["donated"] if self.donated else []))}

    def trim(self) -> None:
        """Gives back memory that grew with the shapes of past calls. Not while another thread calls the model."""
        for runner in self._runners:
            runner.trim()

    def _function(self, name: str):
        return self._runners[0].function(name) if self._runners else None

    @property
    def states(self) -> tuple[str, ...]:
        """Inputs that sessions keep (`compile(..., state=...)`); none for a model that is called as it is."""
        return tuple(self._runners[0].states[:-1]) if self._runners else ()

    def session(self) -> Session:
        """A run of a model with states: it keeps them from call to call, in its own memory. Sessions share code and weights; each
        is called by one thread at a time.

            s = model.session()
            logits = s(ids)
        """
        if not self._stateful:
            raise UnsupportedError("the model keeps no state; compile it with state=..., as state={'past_*': 'present_*'}")
        return self._ready(Session(self._make(), self))

    def __call__(self, *args, **kwargs):
        if self._stateful:
            raise BatonRuntimeError("the model keeps states between calls: make a session, s = model.session(), and call that")
        try:
            runner = self._idle.pop()
        except IndexError:
            runner = self._ready(Runner(self._within(self._make)))
            self._runners.append(runner)
        try:
            return self._call(runner, args, kwargs)
        finally:
            self._idle.append(runner)

    def _call(self, runner, args, kwargs):
        if self._given:
            return self._call_given(runner, args, kwargs)
        arrays = given = self._arguments(args, kwargs)
        if self._forms is not None:
            arrays = self._forms.encode(arrays, self._order)
        return self._run(runner.run, arrays, given)

    def _call_given(self, runner, args, kwargs):
        """A call of a model whose outputs may lie in the memory of arrays that are given. One that fails before it runs takes none."""
        began, said, mask, arrays = False, (), 0, ()
        try:
            said = self._arguments(args, kwargs)
            mask, arrays = taken(said if self._forms is None else self._forms.encode(said, self._order), self._given)
            began = True
            return self._run(runner.run, (mask, *arrays), arrays)
        except BaseException:
            if not began:
                put_all_back((*(args[0].values() if _is_mapping(args) else args), *kwargs.values()))
            elif not runner.begun():
                untake(said, arrays)
            raise

    def _arguments(self, args, kwargs):
        """Arguments in the order of the inputs."""
        return args if not kwargs and len(args) == len(self._order) and not _is_mapping(args) else self._bind(args, kwargs)

    def _tensors(self, args, kwargs):
        return as_tensors(self.inputs, given := self._arguments(args, kwargs)) or given

    def _run(self, run, arrays, given):
        try:
            out = run(*arrays) if self._limits is None else self._within(run, *arrays)
        except Exception as error:
            if arrays is given and (numbers := as_tensors(self.inputs, given)):
                return self._run(run, numbers, numbers)
            try:
                explain_misfit(self.inputs, self._forms, given, error)
            finally:
                put_all_back(given)
            raise
        out = _tuples(out) if isinstance(out, Array) else out
        return out if self._forms is None else self._forms.decode(out)

    def _bind(self, args, kwargs) -> list:
        """Arguments in the order of the inputs; says which are missing, unknown or given twice."""
        if _is_mapping(args):
            both = args[0].keys() & kwargs.keys()
            if both:
                raise TypeError(f"input `{min(both)}` is given twice")
            args, kwargs = (), {**args[0], **kwargs}
        if len(args) > len(self._order):
            raise TypeError(f"the model takes {len(self._order)} inputs ({', '.join(self._order)}), {len(args)} were given")
        values = dict(zip(self._order, args, strict=False))
        for name, value in kwargs.items():
            if name in values:
                raise TypeError(f"input `{name}` is given twice, by place and by name")
            if name not in self._order:
                raise TypeError(f"the model has no input `{name}`; its inputs are {', '.join(self._order) or 'none'}")
            values[name] = value
        missing = [name for name in self._order if name not in values]
        if missing:
            raise TypeError(f"input `{missing[0]}` is missing; the inputs are {', '.join(map(str, self.inputs))}")
        return [values[name] for name in self._order]

    def specialize(self, shapes: Mapping[str, tuple[int, ...]]) -> Executable:
        """This model compiled for inputs of these shapes alone; itself where its shapes are fixed, ValueError where they differ."""
        if self.dynamic:
            if self._specialize is None:
                raise UnsupportedError("a model that was loaded from a file serves all shapes as it is; compile it from its source")
            return self._specialize({name: tuple(shape) for name, shape in shapes.items()})
        for info in self.inputs:
            if info.name in shapes and tuple(shapes[info.name]) != info.shape:
                raise ValueError(f"input `{info.name}` has shape {info.shape}, {tuple(shapes[info.name])} was given")
        return self

    @property
    def called_back(self) -> tuple[str, ...]:
        """Operators of a program's own that are functions of this process alone: a file cannot name them."""
        try:
            return tuple(dict.fromkeys(map(str, self._module["called_back"]())))
        except AttributeError:
            return ()

    def save(self, path: str | os.PathLike, kind: str = "lib") -> None:
        """Writes the compiled model, whole or not at all. `kind` is lib (a shared object that `baton.load` reads), obj, or for
        target "c" c: C99 with the weights and a function `NAME_run`, and a header beside it, for models of known shapes. A model with functions of this process (`called_back`) is an UnsupportedError that names them.
        """
        if kind not in ("lib", "obj", "c"):
            raise UnsupportedError(f"a model is saved as `lib`, `obj` or `c`, not as `{kind}`")
        self._module.save(os.fsdecode(path), kind)

    def source(self, kind: str) -> str:
        """The code as text: relay, tir, llvm or asm. UnsupportedError where it was not kept."""
        return str(self._module.get_source(kind))

    def profile(self, *args, rounds: int = 20, **kwargs) -> Profile:
        """Where the time of a call goes: runs the model on these inputs, which are given as in a call, `rounds` times as it is and as often with
        a clock around each of its steps. The answer is a `Profile`: a dict with a row for each kernel and host function of this very model, a
        table for terminals and a plot for notebooks. Its `result` is the value of the call.

            print(model.profile(x))

        A model with states is profiled in a separate session; `Session.profile` takes one with what it holds.
        """
        if self._stateful:
            return self.session().profile(*args, rounds=rounds, **kwargs)
        return self._profile(Runner(self._within(self._make)), self._tensors(args, kwargs), rounds)

    _here = True  # whether it runs on this machine

    def _profile(self, runner: Runner, arrays, rounds: int) -> Profile:
        if runner.function("profile") is None:
            raise UnsupportedError("this model runs where no times of its steps can be taken; profile it on the machine that has it")
        given = arrays
        if self._forms is not None:
            arrays = self._forms.encode(arrays, self._order)
        if self._kept:
            arrays = self._kept.fill(arrays)
        try:
            taken = take(runner.executor, arrays, rounds, self._here)
        except Exception as error:
            explain_misfit(self.inputs, self._forms, given, error)
            raise
        value = _tuples(taken.result) if isinstance(taken.result, Array) else taken.result
        if self._kept:
            value = self._kept.shown(value if isinstance(value, tuple) else [value])
        taken.result = value if self._forms is None else self._forms.decode(value)
        return taken

    def describe(self) -> dict:
        """Facts for people: inputs, outputs, open dimensions with what must hold of them, and where it is known target and version."""
        tensors = {
            key: [{"name": i.name, "dtype": i.dtype, "shape": list(i.shape)} for i in infos]
            for key, infos in (("inputs", self.inputs), ("outputs", self.outputs))
        }
        open_ = {"dims": [dim._asdict() for dim in self.dims], "guards": list(self.guards)} if self.dynamic else {}
        states = {"states": list(self.states)} if self._stateful else {}
        return {**tensors, **open_, **states, **self._manifest()}

    def _raw_manifest(self) -> dict:
        import json

        try:
            return json.loads(str(self._module.get_source("json")))
        except (UnsupportedError, ValueError):
            return {}

    def _program(self) -> dict:
        import json

        return json.loads(self._raw_manifest().get("program", "") or "{}")

    def _manifest(self) -> dict:
        manifest = self._raw_manifest()
        if not manifest:
            return {}
        known = {key: manifest[key] for key in ("target", "version") if key in manifest}
        if "constants_bytes" in manifest:
            known["constant_bytes"] = manifest["constants_bytes"]
        if "arena_bytes" in manifest:
            known["workspace_bytes"] = manifest["arena_bytes"]
        program = self._program()
        needs = ["libbaton_runtime"] + ["libbaton_vm"] * bool(program or manifest.get("state") or manifest.get("imports"))
        needs += ["libbaton_host"] * any(isinstance(slot, dict) for slot in program.get("packed", []))
        needs += [f"libbaton_{str(Device(kind, 0)).partition('(')[0]}" for kind, _, _, code in program.get("devices", []) if code]
        known["needs"] = needs
        return known

    def _repr_html_(self) -> str:
        """The view of a notebook: inputs, outputs, open dimensions, facts."""
        return _html(self)

    def __repr__(self) -> str:
        sides = (", ".join(map(str, infos)) for infos in (self.inputs, self.outputs))
        return f"<baton.Executable {' -> '.join(sides)}>"


def _html(model: Executable) -> str:
    from ..runtime import html

    told = model.describe()
    rows = [("input", i.name, str(i).partition(" ")[2]) for i in model.inputs] + [("output", i.name, str(i).partition(" ")[2]) for i in model.outputs]
    dims = [("dimension", d.name, f"{d.min} to {d.max if d.max < MAX_EXTENT else 'any'}") for d in model.dims]
    known = ("target", "constant_bytes", "workspace_bytes", "version", "states", "needs")
    text = lambda value: f"{value:,}" if isinstance(value, int) else ", ".join(value) if isinstance(value, list) else str(value)  # noqa: E731
    facts = [(k.replace("_", " "), text(told[k])) for k in known if told.get(k) not in (None, "", [])]
    facts += [("holds", guard) for guard in model.guards[:20]] + [("file", model.artifact)] * bool(model.artifact)
    return html.facts("baton.Executable", facts, html.table(("", "name", "type"), rows + dims))


def _is_mapping(args) -> bool:
    return len(args) == 1 and isinstance(args[0], Mapping)


def _infos(runner: Runner, side: str) -> tuple[TensorInfo, ...]:
    return tuple(
        TensorInfo(name, dtype, tuple(d if d >= 0 else (extents[i] or None if i < len(extents) else None) for i, d in enumerate(shape)))
        for name, shape, dtype, extents in runner.rows(side)
    )


def load(
    path: str | os.PathLike, device=None, *, public_key=None, signature: str | os.PathLike | None = None, limits: Limits | Mapping[str, float] | None = None
) -> Executable:
    """A model that `Executable.save` or `baton compile` wrote. The compiler is neither needed nor loaded. `device`: where it
    runs, or a list of devices. `limits`: what a call of it may take (`baton.Limits`).

    A compiled model is code. Its digest finds damage, and is not a signature: who changes the file can change the digest. With
    `public_key` (a PEM file, its bytes, or a key of the package `cryptography`; Ed25519) nothing is loaded unless `baton sign` signed
    the file with the key's other half; `signature` is the signature's file, `path` + ".sig" by default.
    """
    if public_key is not None:
        from .signature import verify

        module = get_global_func("runtime.LoadArtifactOf")(os.fsdecode(path), verify(path, public_key, signature))
    elif signature is not None:
        raise TypeError("a signature is checked with a public_key, which is missing")
    else:
        module = load_module(os.fsdecode(path))
    return Executable(module, artifact=os.fsdecode(path), device=device, forms=_forms_of(module), limits=limits)


def _forms_of(module: Module) -> str:
    """Returns a file's text about inputs and outputs other than numbers."""
    try:
        manifest = str(module.get_source("json"))
    except (UnsupportedError, ValueError):
        return ""
    if '"forms"' not in manifest:
        return ""
    import json

    return json.loads(manifest).get("forms", "")

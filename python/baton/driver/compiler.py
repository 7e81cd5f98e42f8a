# SPDX-License-Identifier: Apache-2.0
"""`baton.compile`: a model from a file, bytes or memory to an executable. Loads the compiler."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence

from .._ffi import get_global_func
from .._ffi.base import load_compiler
from .._ffi.hook import Hook
from ..error import CompileError, RuntimeError, UnsupportedError
from . import forms, passes
from .dims import MAX_EXTENT, Dim, OpenShapes
from .donation import donated_names
from .executable import Executable, TensorInfo
from .kept import Kept
from .limits import Limits
from .options import Options, capsule
from .outside import import_all, made_outside
from .precision import offered, with_options
from .session import paired

load_compiler()
_torch_program = Hook("driver.torch_program")  # the Relay module of a program of torch.export, or of its file
_torch_parts = Hook("driver.torch_parts")  # such a program in parts, some of which PyTorch runs; None where no operator needs that


class Source:
    """A model before it is compiled: where it comes from, and how it is read again for other shapes.

    `kind` is onnx, relay or module; `label` is what messages call it.
    """

    def __init__(self, kind: str, what, label: str = "<text>", folder: str = ""):
        self.kind, self.what, self.label, self.folder = kind, what, label, folder
        self.donate: tuple[str, ...] = ()  # inputs that give their memory to an output
        self._facts: str | None = None
        self._no_tensors: set[str] = set()  # inputs that are sequences, optionals or data, which have no shapes

    @staticmethod
    def of(source) -> Source:
        """Tells by what it is: a path, bytes or a ModelProto of ONNX, Relay text, an IRModule, a Relay function, a program of torch.export."""
        if isinstance(source, bytes) and _is_file(source):
            source = os.fsdecode(source)
        if isinstance(source, (bytes, bytearray, memoryview)):
            return Source("onnx", bytes(source))
        if hasattr(source, "SerializeToString"):
            return Source("onnx", source.SerializeToString())
        if isinstance(source, str) and ("\n" in source or source.lstrip().startswith(("def @", "#[version"))) and not _is_file(source):
            return Source("relay", source)
        if isinstance(source, (str, os.PathLike)):
            path = os.fsdecode(source)
            if os.path.isdir(path):
                raise RuntimeError(f"`{path}` is a directory; a model file is needed")
            if os.path.splitext(path)[1] in (".relay", ".txt"):
                return Source("relay", _read_text(path), path)
            if os.path.splitext(path)[1] == ".pt2":
                return Source("module", _torch_program(path), path)
            return Source("onnx", path, path)
        from ..ir import IRModule
        from ..relay import Function

        if isinstance(source, IRModule):
            return Source("module", source)
        if isinstance(source, Function):
            return Source("module", IRModule.of_main(source))
        if type(source).__module__ == "torch.export.exported_program":
            return Source("module", _torch_program(source))
        if any(c.__module__.startswith("torch.nn.modules.module") for c in type(source).__mro__):
            raise TypeError(
                "a torch.nn.Module says nothing of its inputs: compile torch.export.export(module, (x,)), or torch.compile(module, backend=\"baton\")"
            )
        raise TypeError(
            f"a model is a path, bytes, an ONNX ModelProto, Relay text, an IRModule, a Relay function or an ExportedProgram, not {type(source).__name__}"
        )

    def read(self, shapes: Mapping[str, tuple[int, ...]]):
        """The Relay module with inputs of these shapes, weights in it."""
        given = {name: list(shape) for name, shape in shapes.items() if name not in self._no_tensors}
        if self.kind == "onnx":

            def read():
                if isinstance(self.what, bytes):
                    return get_global_func("relay.frontend.from_onnx_bytes")(self.what, given, True, 0, self.folder)[0]
                return get_global_func("relay.frontend.from_onnx_file")(self.what, given, True, 0, True)[0]

            return self._donating(self._with_bodies(read))
        return self._donating(get_global_func("driver.BindShapes")(self.module(), given, False))

    def read_open(self, shapes: OpenShapes):
        """The Relay module with symbols for dimensions that stay open, weights in it.

        Dimensions that `shapes` does not name have the model's name, or that of the input and the axis. Assumptions of types about
        symbols are in the attribute `extent_guards` of `main`.
        """
        given = {name: [self._name(name, axis, dim) for axis, dim in enumerate(dims)] for name, dims in shapes.shapes.items()}
        if self.kind == "onnx":

            def read():
                if isinstance(self.what, bytes):
                    return get_global_func("relay.frontend.open_onnx_bytes")(self.what, given, self.folder)
                return get_global_func("relay.frontend.open_onnx_file")(self.what, given, True)

            module = self._with_bodies(read)
        else:
            from ..relay import transform

            module = transform.NameDims()(get_global_func("driver.BindShapes")(self.module(), given, True))
            module = transform.DynamicToStatic(symbolic=True)(module)
        module = self._donating(module)
        bounds = {d.name: [d.min, d.max, d.multiple] for d in shapes.dims.values()}
        if bounds and self.kind == "module":
            bounds = {**_own_bounds(self.module()), **bounds}
        return get_global_func("driver.SetDims")(module, bounds) if bounds else module

    def read_named(self, inputs: Sequence[TensorInfo], shapes: Mapping[str, Sequence[int]]):
        """The module as `compile` takes it, with inputs of these shapes (-1: as the model has it): open dimensions keep their names, unless
        the import needs their lengths."""
        sizes = (d for info in inputs for d in _merged(info.shape, [None if d == -1 else d for d in shapes.get(info.name, info.shape)]))
        if not all(isinstance(d, int) for d in sizes):
            try:
                return self.read_open(OpenShapes({name: [None if d == -1 else d for d in dims] for name, dims in shapes.items()}))
            except (CompileError, UnsupportedError):
                pass
        return self.read(shapes)

    def _donating(self, module):
        return get_global_func("driver.SetDonated")(module, list(self.donate)) if self.donate else module

    def _with_bodies(self, read):
        """Returns the result of `read`; where the importer lacks operators that ONNX defines by a body, of the model with these bodies."""
        from ..relay.frontend.onnx import with_bodies

        try:
            return read()
        except UnsupportedError:
            larger = with_bodies(self.what, None)
            if larger is None:
                raise
            if not isinstance(self.what, bytes):
                self.folder = os.path.dirname(os.path.abspath(self.what))
            self.what = larger.SerializeToString()
            return read()

    def _name(self, name: str, axis: int, dim):
        """A dimension as an import takes it: where a caller leaves it to the model, the model's name or one of its place."""
        if dim is not None or self.kind != "onnx":
            return dim
        have = next(info for info in self.signature()[0] if info.name == name).shape[axis]
        return f"{name}_{axis}" if have is None else have

    def module(self):
        """The Relay module of a source that is one, or the text of one."""
        return passes.parse(self.what, self.label) if self.kind == "relay" else self.what

    def lowered(self):
        """The module of a source that LowerToTIR made, which code is made of as it is; None for another."""
        if self.kind == "onnx" or self.kind == "relay" and "driver.Lowering" not in self.what:
            return None
        module = self.module()
        return module if module.get_attr("lowering") is not None else None

    def check_data(self) -> None:
        """Raises CompileError where weights lie in a file that is missing or too short; reads no weights."""
        if self.kind != "onnx":
            return
        if isinstance(self.what, bytes):
            get_global_func("relay.frontend.check_onnx_data_bytes")(self.what, self.folder)
        else:
            get_global_func("relay.frontend.check_onnx_data_file")(self.what)

    def facts(self) -> dict:
        """Returns facts that need no import: for ONNX from the file, for Relay from the types of `main`."""
        if self.kind == "onnx":
            if self._facts is None:  # a large model takes a while to read, and a compilation asks often
                in_memory = isinstance(self.what, bytes)
                where = ("bytes", self.what, self.folder) if in_memory else ("file", self.what)
                self._facts = str(get_global_func(f"relay.frontend.describe_onnx_{where[0]}")(*where[1:]))
            return json.loads(self._facts)
        return passes.describe(self.module())

    def signature(self, shapes: Mapping[str, Sequence[int]] | None = None) -> tuple[tuple[TensorInfo, ...], tuple[TensorInfo, ...]]:
        """(inputs, outputs), with names or None for dynamic dimensions. An input without a rank has that of its shape in `shapes`."""
        facts = self.facts()

        def info(row):
            if row["shape"] is None and (self.kind != "onnx" or row["dtype"] in ("sequence", "optional")):
                self._no_tensors.add(row["name"])
                return TensorInfo(row["name"], row["dtype"], ())
            if row["shape"] is None and row["name"] in (shapes or {}):
                return TensorInfo(row["name"], row["dtype"], (None,) * len(shapes[row["name"]]))
            if row["shape"] is None:
                raise UnsupportedError(f"input `{row['name']}` has no rank; give its shape: shape={{{row['name']!r}: ...}}")
            return TensorInfo(row["name"], row["dtype"], tuple(row["shape"]))

        return tuple(map(info, facts["inputs"])), tuple(TensorInfo(row["name"], row["dtype"], tuple(row["shape"] or ())) for row in facts["outputs"])


def _own_bounds(module) -> dict[str, list[int]]:
    """[least, largest, multiple of] of open dimensions by name, as a module says them itself."""
    attrs = module["main"].attrs if "main" in module else None
    said = attrs.get("dynamic_dims", None) if attrs is not None else None
    return {str(name): list(map(int, bounds)) for name, bounds in said.items()} if said else {}


def _check_bounds(model: Source, shapes: OpenShapes) -> None:
    """Narrows the dimensions that a caller gives to the bounds of the program. ValueError where they contradict."""
    own = _own_bounds(model.what) if model.kind == "module" else {}
    for p in model.what["main"].params if own else ():
        given = shapes.shapes.get(str(p.name_hint))
        for axis, dim in enumerate(given or ()):
            low, high, multiple = own.get(str(getattr(p.type_annotation.shape[axis], "name", "")), (0, MAX_EXTENT, 1))
            if dim is None or (low, high, multiple) == (0, MAX_EXTENT, 1):
                continue
            have = shapes.dims[dim] if isinstance(dim, str) else Dim(f"{dim}", dim, dim)
            both = have._replace(min=max(low, have.min), max=min(high, have.max), multiple=math.lcm(multiple, have.multiple))
            if both.min > both.max:
                asked = dim if isinstance(dim, int) else f"{have.min} to {have.max}"
                raise ValueError(f"shape: dimension {axis} of input `{p.name_hint}` is {low} to {high} in the program, {asked} was asked for")
            if isinstance(dim, str):
                shapes.dims[dim] = both


def _is_file(path: str | bytes) -> bool:
    """Whether a text is the path of a file rather than a model itself."""
    try:
        return len(path) < 4096 and os.path.isfile(path)
    except ValueError:  # a zero byte
        return False


def _read_text(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except UnicodeDecodeError as error:
        raise CompileError(f"`{path}` is not text: byte {error.start} is not UTF-8") from None


def compile(  # noqa: A001 - the name users expect
    source,
    *,
    shape: Mapping[str, Sequence[int | str | Dim | None]] | None = None,
    target=None,
    opt_level: int = 3,
    config: Mapping[str, object] | None = None,
    disabled_pass: Sequence[str] = (),
    device=None,
    instruments: Sequence[object] = (),
    limits: Limits | Mapping[str, float] | None = None,
    state: bool | Mapping[str, str] | None = None,
    donate: str | Sequence[str] = (),
    fallback: str = "error",
    precision: str = "exact",
    weights: str = "exact",
    activations: str = "exact",
) -> Executable:
    """Compiles a model for this machine, or for `target`.

        model = baton.compile("model.onnx")
        y = model(x)

    source: a path of an ONNX file, of Relay text (.relay) or of a program that torch.export saved (.pt2), the bytes of an ONNX file, a
    ModelProto, Relay text, an IRModule, a Relay function, or a program of torch.export. shape: input name to shape, for inputs whose dimensions the model leaves open: an int,
    or for one that stays open a name or a `baton.Dim` with bounds, or None for the model's own. A model with open
    dimensions is compiled once for all shapes. target: as "llvm
    -mcpu=skylake" or "opencl"; a dict by device, or a list, for a program on several devices. device: where it runs, if not
    on the first of each kind. opt_level: 0 to 4. config, disabled_pass, instruments: as in
    `baton.transform.PassContext`. limits: what a call of the model may take (`baton.Limits`). state: inputs that outputs
    append to, as the keys and values of a decoder; they stay with a
    session from call to call, and calls neither take nor give them (`Executable.session`). A map of names, in which `*` stands for
    any text ({"past_*": "present_*"}), or True for the usual names. donate: inputs whose memory an output of as many bytes takes, where a
    call is given them by `baton.give` and nothing else refers to them. fallback: "eager" leaves operators of a program of torch.export that are
    not supported to PyTorch (`baton.torch.report()` says which); such a model is not saved. precision: what products and convolutions of
    float32 are computed in: "exact" leaves them as they are; "bf16" and "f16" keep their weights, and buffers for them, in that type
    where the processor adds products of it. Sums, softmax and norms are float32, inputs and outputs keep their types. weights: how constant
    weights of products are stored: "exact", or in few bits ("int8", "int4") with a scale and a zero point for each 32 weights of an output, or
    for 16 to 256 of them ("int4:128"); they are widened where they are multiplied, so that artifacts and memory hold the bits alone. activations:
    "int8" rounds what such weights are multiplied by to 8 bits, with a scale for each block of a row, so that bytes are multiplied.

    Raises UnsupportedError that lists every operator that is not supported, CompileError for a model that is wrong.
    """
    config = with_options(config, precision=precision, weights=weights, activations=activations)
    if fallback != "error":
        others = {"shape": shape, "target": target, "device": device, "state": state, "donate": donate}
        how = {"opt_level": opt_level, "config": config, "disabled_pass": disabled_pass, "instruments": instruments}
        if (parts := _in_parts(source, fallback, others, how, limits)) is not None:
            return parts
    model = Source.of(source)
    if disabled_pass:
        from ..ir.pass_names import chosen

        disabled_pass = chosen("disabled_pass", disabled_pass)
    options = Options(target, opt_level, config, disabled_pass, instruments)
    _check_target(options)
    given = OpenShapes(shape)
    inputs, outputs = model.signature(given.shapes)
    _check_shapes(inputs, given)
    _check_bounds(model, given)
    set_donated(model, donate, (info.name for info in inputs), options)
    if model.lowered() is not None:
        return Executable(_generated(model, options), device=device, limits=limits)

    def specialize(shapes: Mapping[str, tuple[int, ...]]) -> Executable:
        built, said = _built(model, shapes, options)
        return foreign(built) or Executable(built, device=device, forms=said, limits=limits)

    def foreign(built) -> Executable | None:
        if options.targets is not None or not get_global_func("driver.IsOtherProcessor")(options.target):
            return None
        from .foreign import ForeignExecutable

        return ForeignExecutable(built, options.target, merged, outputs)

    merged = tuple(info._replace(shape=_merged(info.shape, given.shapes.get(info.name))) for info in inputs)
    if state:
        built, said = build_stateful(model, given, options, state)
        return Executable(built, device=device, forms=said, limits=limits)
    if all(isinstance(size, int) for info in merged for size in info.shape):
        return specialize({info.name: info.shape for info in merged})
    built, said = build_open(model, merged, given, options)
    return foreign(built) or Executable(built, device=device, specialize=specialize, forms=said, limits=limits)


def _in_parts(source, fallback: str, others: Mapping[str, object], how: Mapping[str, object], limits) -> Executable | None:
    """A program of torch.export with parts that PyTorch runs; None where every operator is supported."""
    if fallback != "eager":
        raise ValueError(f"fallback is {fallback!r}; it is \"error\" or \"eager\"")
    is_file = isinstance(source, (str, os.PathLike)) and os.path.splitext(os.fsdecode(source))[1] == ".pt2"
    if not is_file and type(source).__module__ != "torch.export.exported_program":
        raise UnsupportedError("fallback=\"eager\" is for programs of torch.export: operators of other models have no PyTorch to run in")
    parts = _torch_parts(source, dict(how), limits)
    if parts is not None and (given := [name for name, value in others.items() if value]):
        raise UnsupportedError(f"a program of which PyTorch runs parts is compiled for this CPU as it is: leave out {', '.join(given)}")
    return parts


def set_donated(model: Source, donate: str | Sequence[str], inputs: Iterable[str], options: Options) -> None:
    """Notes in `model` which inputs give their memory to outputs."""
    model.donate = donated_names(donate, tuple(inputs))
    if model.donate and (options.targets or not get_global_func("target.OnHost")(options.target)):
        raise UnsupportedError("memory is given to outputs on the CPU alone; compile the model for it, or without donate=")
    if model.donate and model.lowered() is not None:
        raise UnsupportedError("a lowered module says itself which inputs give their memory; compile it without donate=")


def _merged(shape, given):
    """Returns the model's shape with the caller's facts."""
    if given is None:
        return shape
    return tuple(have if dim is None else dim for have, dim in zip(shape, given, strict=True))


def _extent_name(info: TensorInfo, axis: int, dim) -> str:
    """The name of an open dimension; empty for one that is known."""
    if isinstance(dim, int):
        return ""
    return f"{info.name}_{axis}" if dim is None else str(dim)


def build_open(model: Source, inputs, shapes: OpenShapes, options: Options):
    """(the runtime module of a model as one program for all shapes, what its inputs and outputs stand for)."""
    model.check_data()
    with capsule(), options.context():
        if not options.targets and get_global_func("target.OnHost")(options.target):
            try:
                module, outside = made_outside(model.read_open(shapes))
                made = get_global_func("driver.CompileDynamic")(module, options.target)
                return import_all(made, outside), forms.of_module(module)
            except (CompileError, UnsupportedError):
                pass  # an importer may need lengths, or branches differ in them: without names they are left to the program
        own = {info.name: info.shape for info in model.signature(shapes.shapes)[0]}
        fixed = {
            name: [d if isinstance(d, int) else -1 for d in dims]
            for name, dims in shapes.shapes.items()
            if any(isinstance(d, int) and not isinstance(have, int) for d, have in zip(dims, own[name], strict=True))
        }
        module, outside = made_outside(model.read(fixed))
        names = {info.name: [_extent_name(info, axis, d) for axis, d in enumerate(info.shape)] for info in inputs}
        module = get_global_func("driver.NameInputs")(module, names)
        module = get_global_func("driver.SetDims")(module, {d.name: [d.min, d.max, d.multiple] for d in shapes.dims.values()})
        return import_all(_compiled(module, options), outside), forms.of_module(module)


def read_stateful(model: Source, shapes: OpenShapes, options: Options, state: bool | Mapping[str, str]):
    """The Relay module of a model with states, as `compile` takes them."""
    inputs, outputs = model.signature(shapes.shapes)
    pairs = paired(state, (info.name for info in inputs), (info.name for info in outputs))
    if options.targets or not get_global_func("target.OnHost")(options.target):
        raise UnsupportedError("states are kept on the CPU alone; compile the model for it, or without state=")
    return get_global_func("driver.SetState")(model.read_open(shapes), pairs)


def build_stateful(model: Source, shapes: OpenShapes, options: Options, state: bool | Mapping[str, str]):
    """Returns the result of `build_open`, of a model with states."""
    model.check_data()
    with capsule(), options.context():
        module, outside = made_outside(read_stateful(model, shapes, options, state))
        if said := forms.of_module(module):
            if Kept.of(said):
                raise UnsupportedError("a program that changes its buffers keeps its buffers itself: compile it without state=")
            raise UnsupportedError("states are for models whose inputs and outputs are numbers")
        return import_all(get_global_func("driver.CompileDynamic")(module, options.target), outside), said


def _check_target(options: Options) -> None:
    """Raises UnsupportedError for a target that no code is made for."""
    kinds = list(map(str, get_global_func("target.KindsWithCode")()))
    if options.targets is None and str(options.target.kind) not in kinds:
        raise UnsupportedError(f"no code is made for the target `{options.target.kind}`; there is code for {', '.join(kinds[:-1])} and {kinds[-1]}")


def _check_shapes(inputs, shapes: OpenShapes) -> None:
    by_name = {info.name: info for info in inputs}
    for name, shape in shapes.shapes.items():
        if name not in by_name:
            raise ValueError(f"shape: the model has no input `{name}`; its inputs are {', '.join(by_name) or 'none'}")
        want = by_name[name].shape
        fits = (
            len(want) == len(shape)
            and all(not isinstance(dim, int) or size is None or dim == size for dim, size in zip(want, shape, strict=True))
            and all(not isinstance(size, int) or size >= 0 for size in shape)
        )
        if not fits:
            raise ValueError(f"shape: input `{by_name[name]}` does not take {shape}")


def build_model(model: Source, shapes: Mapping[str, Sequence[int | str | Dim | None]], options: Options, state=None):
    """The runtime module of a model with inputs of these shapes and these states, as `compile` takes them."""
    given = OpenShapes(shapes)
    if state:
        return build_stateful(model, given, options, state)[0]
    if model.lowered() is not None:
        return _generated(model, options)
    if given.static:
        return _built(model, shapes, options)[0]
    inputs = tuple(info._replace(shape=_merged(info.shape, given.shapes.get(info.name))) for info in model.signature(given.shapes)[0])
    return build_open(model, inputs, given, options)[0]


def _generated(model: Source, options: Options):
    """The runtime module of PrimFuncs that LowerToTIR made."""
    with capsule(), options.context():
        return get_global_func("driver.Generate")(model.lowered(), options.target)


def _built(model: Source, shapes: Mapping[str, tuple[int, ...]], options: Options):
    """(the runtime module, what its inputs and outputs stand for)"""
    with capsule(), options.context():
        module, outside = made_outside(model.read(shapes))
        return import_all(_compiled(module, options), outside), forms.of_module(module)


def _compiled(module, options: Options):
    """The runtime module of a Relay module."""
    if options.targets:
        return get_global_func("driver.CompileForDevices")(module, options.targets)
    return get_global_func("driver.Compile")(module, options.target)


def emit_text(model: Source, shapes: Mapping[str, Sequence[int | str | Dim | None]], options: Options, stage: str, state=None) -> str:
    """A stage on the way to code, as text: relay (after all passes), tir, llvm or asm."""
    given = OpenShapes(shapes)
    with capsule(), options.context():
        if state:
            module = read_stateful(model, given, options, state)
        else:
            module = model.read(shapes) if given.static else model.read_open(given)
        return str(get_global_func("driver.EmitText")(module, options.target, stage))


def describe(path: str, shapes: Mapping[str, tuple[int, ...]] | None = None) -> dict:
    """Returns the answer of `baton inspect` for a model file with inputs of these shapes (-1: open); `unsupported` names what an import refuses."""
    model = Source.of(path)
    facts = model.facts()
    for row in facts["inputs"]:
        if row["name"] in (shapes or {}):
            names = row["shape"] or [None] * len(shapes[row["name"]])
            row["shape"] = [name if size < 0 else size for name, size in zip(names, shapes[row["name"]], strict=True)]
    if model.kind == "onnx":
        facts["opset"] = facts.get("opsets", {}).get("ai.onnx")
        try:
            model.read_named(model.signature(shapes)[0], shapes or {})
            facts["unsupported"] = []
        except UnsupportedError as error:
            facts["unsupported"] = [line.strip() for line in str(error).splitlines()[1:]] or [str(error)]
    if (line := offered()) and _computes_float32(facts):
        facts["precision"] = line
    return facts


def _computes_float32(facts: dict) -> bool:
    """Whether there are float32 values, and weights enough for their products to take time."""
    return facts.get("weight_bytes", 0) >= 1 << 20 and any(row["dtype"] == "float32" for row in (*facts["inputs"], *facts["outputs"]))


def machine_facts() -> dict[str, str]:
    """LLVM's version, the default target, how artifacts are linked: for `baton doctor`."""
    return {str(name): str(value) for name, value in get_global_func("driver.Describe")().items()}

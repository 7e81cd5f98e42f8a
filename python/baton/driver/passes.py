# SPDX-License-Identifier: Apache-2.0
"""Relay text and passes by name: what `baton opt` and `baton inspect` need. Loads the compiler."""

from __future__ import annotations

import contextlib
from json import dumps, loads

from .._ffi import get_global_func
from .._ffi.base import load_compiler
from .options import Options

load_compiler()


def _instrument(name, *args):
    return get_global_func("instrument." + name)(*args)


def full_names() -> list[str]:
    """The names of all passes that can be made by name, sorted; those over PrimFuncs as tir.NAME."""
    return [str(name) for name in get_global_func("transform.PassNames")()]


def names() -> list[str]:
    """The names of all passes as contexts call them, sorted."""
    return sorted({name.removeprefix("tir.") for name in full_names()})


def unknown(wanted) -> list[str]:
    """Returns a note on names that no pass has."""
    import difflib

    known, out = names(), []
    for name in wanted:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            out.append(f"there is no pass `{name}`" + (f"; did you mean `{near[0]}`?" if near else ""))
    return out


def pipeline(text: str):
    """The sequence that a text says; "default", alone or before others, is the one between import and lowering. ValueError with the
    place."""
    first, _, rest = text.partition(",")
    if first.strip() == "default":
        default = get_global_func("driver.DefaultPipeline")()
        return get_global_func("transform.Sequential")([default, pipeline(rest)], 0, "sequential", []) if rest.strip() else default
    if "python." in text:
        from ..ir import transform  # noqa: F401 - it knows how to import passes
    return get_global_func("transform.ParsePipeline")(text)


def pipeline_lines(target=None) -> str:
    """The passes between import and code for a target, or for targets by the names of their devices: a line a pass, with its options."""
    options = Options(target)
    return str(get_global_func("driver.PipelineLines")(options.target, options.targets or {}))


@contextlib.contextmanager
def target(text: str | None):
    """A target, entered; none for an empty text."""
    if not text:
        yield
        return
    one = Options(text).target
    get_global_func("target.TargetEnterScope")(one)
    try:
        yield
    finally:
        get_global_func("target.TargetExitScope")(one)


def explain(pipeline_, module, json: bool) -> str:
    """Why each pass ran, was inserted or was skipped."""
    return str(_explain(pipeline_, module, json)[1])


def _explain(pipeline_, module, json: bool):
    return get_global_func("transform.ExplainPipeline")(pipeline_, module, json)


def explain_compilation(module, json: bool) -> str:
    """The same of the pipeline of a compilation, and why each region of tensor work ends: in JSON rows of LowerToTIR whose action is
    `region`."""
    made, told = _explain(pipeline("default"), module, json)
    first, *rows = [[str(field) for field in row] for row in get_global_func("driver.ExplainRegions")(made)] or [[""] * 6]
    why = first[-1]
    lines = [f"regions, since {why}" if why else "the program is one region"]
    lines += [_region_line(*row) for row in rows]
    if not json:
        return f"{told}\n" + "".join(f"{line}\n" for line in lines)
    row = {"pass": "LowerToTIR", "depth": 0, "action": "region", "changed": True, "holds": []}
    return dumps(loads(str(told)) + [row | {"why": line.strip()} for line in lines], indent=2) + "\n"


def _region_line(function, number, operators, at, span, why) -> str:
    boundary = (at if at.startswith(("a ", "an ", "the ")) else f"`{at}`") + (f" ({span})" if span else "") + (f": {why}" if why else "")
    return f"  @{function}: " + (f"region {number} ({operators}) ends at {boundary}" if number else f"no region has {boundary}")


def verifier():
    """The instrument that checks what each pass made, and that a second run makes the same."""
    return _instrument("VerifyIR", ["WellFormed", "WellTyped"], True, True, True)


def timing():
    """The instrument that measures passes."""
    return _instrument("MakePassTimingInstrument", True)


def timing_text(one) -> str:
    """Returns its measurements, in lines."""
    return str(_instrument("RenderTimePassProfiles", one))


def timing_trace(one) -> str:
    """Returns its measurements, as a Chrome trace."""
    return str(_instrument("TimingChromeTrace", one))


def printer(before, after, only_changed, diff, passes, directory, write):
    """The instrument that prints modules."""
    return _instrument("PrintIR", "PrintIR", before, after, True, only_changed, diff, False, passes, [], directory, write)


def make(name: str, options: dict):
    """A pass with options by name. TypeError where it does not take them."""
    if options:
        from .. import relay, tir

        maker = getattr(relay.transform, name, None) or getattr(tir.transform, name)
        return maker(**options)
    return get_global_func("transform.GetPass")(name)


def run(one, module):
    """The module after a pass."""
    return get_global_func("transform.RunPass")(one, module)


@contextlib.contextmanager
def context(opt_level: int, config: dict, disabled_pass: list[str], instruments=()):
    """A pass context, entered."""
    with Options(None, opt_level, config, disabled_pass, instruments).context():
        yield


def parse(text: str, label: str = "<text>"):
    """The module that a Relay text says. ParseError with the place where it says none."""
    return get_global_func("parser.ParseModule")(label, text)


def text(module) -> str:
    """Relay text, which `parse` reads."""
    return str(get_global_func("ir.AsText")(module))


def _row(name: str, type_) -> dict:
    shape = getattr(type_, "shape", None)
    if shape is None:
        return {"name": name, "dtype": str(type_), "shape": None}
    dims = [int(d.value) if hasattr(d, "value") else None for d in map(_prim, shape)]
    return {"name": name, "dtype": str(type_.dtype), "shape": dims}


def _prim(dim):
    class Plain:
        def __init__(self, value):
            self.value = value

    return Plain(dim) if isinstance(dim, int) else dim


def describe(module) -> dict:
    """Inputs, outputs and operators of a module's `main`, in the words of `baton inspect`."""
    from .. import relay

    lowering = module.get_attr("lowering")
    if lowering is not None:
        return _describe_lowered(module, lowering)
    module = run(get_global_func("transform.GetPass")("InferType"), module)
    main = module["main"]
    inputs = [_row(str(p.name_hint), p.checked_type) for p in main.params]
    result = main.body.checked_type
    fields = list(getattr(result, "fields", [])) or [result]
    kinds: dict[str, int] = {}

    def count(node):
        if isinstance(node, relay.Call):
            name = str(getattr(node.op, "name", type(node.op).__name__))
            kinds[name] = kinds.get(name, 0) + 1

    relay.analysis.post_order_visit(main, count)
    names = [str(name) for name in (main.attrs.get("output_names", []) if main.attrs is not None else [])]
    outputs = [_row(names[i] if i < len(names) else f"output{i}", field) for i, field in enumerate(fields)]
    return {"inputs": inputs, "outputs": outputs, "operators": kinds}


def _describe_lowered(module, lowering) -> dict:
    """The same of what LowerToTIR made of a model that is one function; its kernels are what it calls."""
    import json

    said = json.loads(str(lowering.description) or "{}")
    rows = [
        [{"name": t["name"], "dtype": t["dtype"], "shape": [d if d >= 0 else e for d, e in _dims(t)]} for t in said.get(side, [])]
        for side in ("inputs", "outputs")
    ]
    kernels = [var.name_hint for var, func in module.functions.items() if func.attrs is None or "model_entry" not in func.attrs.keys()]
    return {"inputs": rows[0], "outputs": rows[1], "operators": dict.fromkeys(kernels, 1)}


def _dims(tensor: dict):
    return zip(tensor["shape"], tensor.get("extents") or [None] * len(tensor["shape"]), strict=True)

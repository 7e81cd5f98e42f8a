# SPDX-License-Identifier: Apache-2.0
"""A report on each node of a model without compiling it: `baton inspect --xray`. Loads the compiler."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence

from .._ffi import get_global_func
from .._ffi.hook import Hook
from ..error import UnsupportedError
from . import passes
from .compiler import OpenShapes, Source
from .options import Options

_torch_nodes = Hook("driver.torch_nodes")  # (rows, module) of a program of torch.export, or of its file
_torch_alone = Hook("driver.torch_alone")  # writes a node of such a program as a separate program

PLACES = ("compiled", "host", "folded", "unsupported", "unknown")
_BYTES = {"bool": 1, "uint1": 1}


class Xray:
    """The nodes of a model in order, a dict each:

    node: what messages call it. operator, version: as the format names them. inputs, outputs: `name`, `dtype`, `shape` (None for an open length)
    each. where: "compiled", "host" (a function of Baton's host library runs it, or a part of it), "folded" (its values are known, or it became part of others),
    "unsupported" or "unknown" (it needs results of one that is not, whose types the file does not say). why: what is in the way, of those. relay: operators of Relay that it becomes. flop: of one run; None where lengths are open.
    bytes: of inputs and outputs, as far as they are known. copied: bytes of results that are elements of operands in another order. depth: how many
    subgraphs and functions are around it.

    `unsupported` of them make `baton.compile` fail, with the same reasons.
    """

    def __init__(self, file: str, kind: str, rows: Sequence[dict], problem: str = ""):
        self.file, self.kind, self.rows, self.problem = file, kind, list(rows), problem

    @property
    def unsupported(self) -> list[dict]:
        """The nodes that are not supported."""
        return [row for row in self.rows if row["where"] == "unsupported"]

    @property
    def counts(self) -> dict[str, int]:
        """How many nodes there are of each `where`."""
        found = {place: sum(row["where"] == place for row in self.rows) for place in PLACES}
        return {place: count for place, count in found.items() if count}

    def as_dict(self) -> dict:
        """All of it, for JSON."""
        problem = {"problem": self.problem} if self.problem else {}
        rows = [{key: value for key, value in row.items() if not key.startswith("_")} for row in self.rows]
        return {"file": self.file, "kind": self.kind, "counts": self.counts, **problem, "nodes": rows}

    def __str__(self) -> str:
        lines = [f"{self.file}   {self.kind}   {len(self.rows)} nodes: " + ", ".join(f"{n} {place}" for place, n in self.counts.items())]
        cells = [[row["where"], _operator(row), row["node"], _types(row), *_numbers(row)] for row in self.rows]
        head = ["where", "operator", "node", "types", "MFLOP", "KB", "KB copied"]
        widths = [min(48, max(len(c[i]) for c in [head, *cells])) for i in range(len(head))]
        for c in [head, *cells]:
            lines.append("  ".join(text.rjust(w) if i > 3 else text.ljust(w) for i, (text, w) in enumerate(zip(c, widths, strict=True))).rstrip())
        lines += [f"unsupported  {_operator(row)}  {row['node']}: {row['why']}" for row in self.unsupported]
        return "\n".join([*lines, self.problem] if self.problem else lines)

    def html(self) -> str:
        """A page that needs no other file."""
        from ..runtime import html

        rows = [(row["where"], _operator(row), row["node"], _types(row), *_numbers(row), row["why"], " ".join(row["relay"])) for row in self.rows]
        head = ("where", "operator", "node", "types", "MFLOP", "KB", "KB copied", "in the way", "Relay")
        facts = [("kind", self.kind), ("nodes", str(len(self.rows))), *((place, str(n)) for place, n in self.counts.items())]
        facts += [("problem", self.problem)] * bool(self.problem)
        return html.page(f"X-ray of {self.file}", html.facts(os.path.basename(self.file), facts, html.table(head, rows)))

    def write_missing(self, directory: str) -> list[str]:
        """Writes each node that is not supported as a separate model; returns their paths. Each fails to compile for the same reason."""
        os.makedirs(directory, exist_ok=True)
        write = {"onnx": _onnx_alone, "torch": lambda found, row, stem: _torch_alone(row["_missing"], stem)}.get(self.kind)
        paths = []
        for number, row in enumerate(self.unsupported):
            name = "".join(ch if ch.isalnum() else "_" for ch in row["operator"])
            paths += [] if write is None else write(self, row, os.path.join(directory, f"{number:02}_{name}"))
        return paths


def _operator(row) -> str:
    return f"{row['operator']}-{row['version']}" if row["version"] else row["operator"]


def _types(row) -> str:
    side = lambda values: ", ".join(_type(v) for v in values)  # noqa: E731
    return f"{side(row['inputs'])} -> {side(row['outputs'])}"


def _type(value) -> str:
    if not value["dtype"]:
        return "?"
    return f"{value['dtype']}[{'...' if value['shape'] is None else ', '.join('?' if d is None else str(d) for d in value['shape'])}]"


def _numbers(row) -> list[str]:
    flop = "?" if row["flop"] is None else f"{row['flop'] / 1e6:.3f}"
    return [flop, f"{row['bytes'] / 1e3:.1f}", f"{row['copied'] / 1e3:.1f}"]


def xray(path, shapes: Mapping[str, Sequence[int]] | None = None) -> Xray:
    """The X-ray of an ONNX file, of Relay text or of a program of torch.export (.pt2), with inputs of these shapes.

    Raises CompileError for a file that is wrong.
    """
    path = os.fspath(path)
    suffix = os.path.splitext(path)[1]
    if suffix == ".pt2":
        rows, module = _torch_nodes(path)
        return Xray(path, "torch", _placed(rows, module, not any(row["why"] for row in rows)))
    if suffix in (".relay", ".txt"):
        source = Source.of(path)
        module = source.read(shapes or {})
        rows = _rows_of(module)
        return Xray(path, "relay", _placed(rows, module, True))
    return _onnx(path, dict(shapes or {}))


# --- ONNX -----------------------------------------------------------------------------------------------------------


def _onnx(path: str, shapes: dict) -> Xray:
    source = Source("onnx", path, path)
    inputs, _ = source.signature(shapes)
    given = OpenShapes(shapes)
    sizes = [d for info in inputs for d in (given.shapes.get(info.name) or info.shape)]
    is_open = not all(isinstance(d, int) and d >= 0 for d in sizes)
    named = {n: [source._name(n, axis, d) for axis, d in enumerate(dims)] if is_open else list(dims) for n, dims in given.shapes.items()}
    read = get_global_func("relay.frontend.xray_onnx")
    problem = ""
    try:
        text, module = read(path, named, is_open)
    except UnsupportedError as error:
        if not is_open:
            return Xray(path, "onnx", [], str(error))
        text, module = read(path, {n: list(d) for n, d in shapes.items()}, False)
    found: dict = {}
    for node in json.loads(str(text)):
        found[(node["label"], tuple(v["name"] for v in node["outputs"]))] = node
    rows = [_onnx_row(node) for node in found.values()]
    return Xray(path, "onnx", _placed(rows, module, module is not None), problem)


def _onnx_row(node: dict) -> dict:
    def value(v):
        return {"name": v["name"], "dtype": v["dtype"], "shape": [None if d < 0 else d for d in v["shape"]] if "shape" in v else None}

    why = node["why"]
    operator = f"{node['domain']}.{node['op']}" if node["domain"] else node["op"]
    calls = [c for c in node["calls"] if not c.startswith("host.")]
    return _row(
        node["label"], operator, node["version"], [value(v) for v in node["inputs"]], [value(v) for v in node["outputs"]], calls, why,
        depth=node["depth"], _host=len(calls) < len(node["calls"]), _after=node["after_unsupported"],
    )  # fmt: skip


def _onnx_alone(found: Xray, row: dict, stem: str) -> list[str]:
    try:
        import onnx
        from onnx import helper
    except ImportError:
        raise ImportError("writing a node of an ONNX model needs the package onnx: pip install onnx") from None
    model = onnx.load(found.file, load_external_data=False)
    names = [v["name"] for v in row["outputs"]]
    graphs = [model.graph, *(f for f in model.functions)]
    node = None
    while graphs and node is None:
        graph = graphs.pop()
        for n in graph.node:
            if n.op_type == row["operator"].rpartition(".")[2] and [o for o in n.output if o] == names:
                node = n
            graphs += [a.g for a in n.attribute if a.HasField("g")]
    if node is None:
        return []
    weights = {t.name: t for t in model.graph.initializer}
    used = [weights[name] for name in node.input if name in weights and not weights[name].HasField("data_location")]
    known = {t.name for t in used}

    def info(value):
        kind = getattr(onnx.TensorProto, {"float32": "FLOAT", "float64": "DOUBLE"}.get(value["dtype"], value["dtype"].upper()), None)
        if kind is None:
            return helper.make_tensor_value_info(value["name"], onnx.TensorProto.FLOAT, None)
        return helper.make_tensor_value_info(value["name"], kind, value["shape"])

    inputs = [info(v) for v in row["inputs"] if v["name"] and v["name"] not in known]
    outputs = [info(v) if v["dtype"] else onnx.ValueInfoProto(name=v["name"]) for v in row["outputs"]]
    alone = helper.make_graph([node], "alone", inputs, outputs, used)
    made = helper.make_model(alone, opset_imports=list(model.opset_import), functions=list(model.functions), ir_version=model.ir_version)
    onnx.save(made, stem + ".onnx")
    return [stem + ".onnx"]


# --- The compiler's result ----------------------------------------------------------------------------------


def _row(node, operator, version, inputs, outputs, relay, why, depth=1, **more) -> dict:
    return {
        "node": node, "operator": operator, "version": version, "inputs": inputs, "outputs": outputs, "where": "", "why": why, "relay": relay,
        "flop": None, "bytes": 0, "copied": 0, "depth": depth, **more,
    }  # fmt: skip


def _label(call) -> str:
    span = call.span
    if span is None:
        return ""
    name = str(span.source_name.name)
    return f"{name}:{int(span.line)}:{int(span.column)}" if int(span.line) else name


def _calls(module):
    """(label, call) of each call of an operator in a module."""
    from .. import relay

    out = []
    for function in module.functions.values():
        if isinstance(function, relay.Function):
            relay.analysis.post_order_visit(
                function, lambda e: out.append((_label(e), e)) if isinstance(e, relay.Call) and isinstance(e.op, relay.Op) else None
            )
    return out


def _values(type_) -> list[dict]:
    fields = list(getattr(type_, "fields", [])) or [type_]
    out = []
    for t in fields:
        shape = getattr(t, "shape", None)
        dims = None if shape is None else [int(d) if isinstance(d, int) or hasattr(d, "value") else None for d in shape]
        out.append({"name": "", "dtype": str(getattr(t, "dtype", "")), "shape": dims})
    return out


def _rows_of(module) -> list[dict]:
    """A row for each call of a module that was read from text."""
    typed = get_global_func("transform.RunPass")(get_global_func("transform.GetPass")("InferType"), module)
    rows = []
    for label, call in _calls(typed):
        inputs = [v for a in call.args for v in _values(a.checked_type)]
        rows.append(_row(label, str(call.op.name), 0, inputs, _values(call.checked_type), [], ""))
    return rows


def _placed(rows: list[dict], module, whole: bool) -> list[dict]:
    """The rows with what a module says of them. whole: it is what `baton.compile` makes code of; else something in the model is not supported."""
    describe = get_global_func("relay.op.Describe")
    facts: dict[str, dict] = {}

    def said(name):
        from ..relay import op

        if name not in facts:
            facts[name] = dict(describe(op.get(name)).items())
        return facts[name]

    flop: dict[str, float | None] = {}
    names: dict[str, list[str]] = {}
    where: dict[str, str] = {}
    if module is not None:
        typed = get_global_func("transform.RunPass")(get_global_func("transform.GetPass")("InferType"), module)
        count = get_global_func("relay.FlopsOf")
        for label, call in _calls(typed):
            names.setdefault(label, []).append(str(call.op.name))
            flop[label] = flop.get(label, 0.0) + float(count(call))
        if whole:
            options = Options()
            with options.context(), passes.target("llvm"):
                lowered = get_global_func("driver.DefaultPipeline")()(module)
            for label, call in _calls(lowered):
                place = "host" if said(str(call.op.name))["host"] else "compiled"
                where[label] = "host" if "host" in (place, where.get(label)) else "compiled"
    for row in rows:
        label = row["node"]
        row["relay"] = names.get(label, row["relay"])
        row["bytes"] = sum(map(_bytes, row["inputs"] + row["outputs"]))
        is_open = any(v["shape"] is None or None in v["shape"] for v in row["inputs"] + row["outputs"])
        row["flop"] = None if is_open or row["why"] or module is None else flop.get(label, 0.0)
        host = row.get("_host", False) or any(said(name)["host"] for name in row["relay"])
        guess = "host" if host else "compiled" if row["relay"] else "unknown" if row.get("_after") else "folded"
        row["where"] = "unsupported" if row["why"] else where.get(label, "host" if row.get("_host") else "folded") if whole else guess
        if row["where"] == "compiled" and row["relay"] and all(said(n)["moves"] for n in row["relay"]) and not row["flop"]:
            row["copied"] = 0 if all(said(n)["view"] for n in row["relay"]) else sum(map(_bytes, row["outputs"]))
    return rows


def _bytes(value: dict) -> int:
    shape, dtype = value["shape"], value["dtype"]
    if shape is None or None in shape or not dtype:
        return 0
    bits = int("".join(ch for ch in dtype.partition("_")[0] if ch.isdigit()) or 8)
    return math.prod(shape) * _BYTES.get(dtype, max(1, bits // 8))

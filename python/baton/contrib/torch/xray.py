# SPDX-License-Identifier: Apache-2.0
"""The nodes of a program of `torch.export` for `baton inspect --xray`: what is known of each, and each alone."""

from __future__ import annotations

import operator

import torch

from ...error import UnsupportedError
from ...ir import IRModule, SourceName, Span
from ...relay import Function, RelayExpr, Tuple, Var, analysis
from .complexes import Pair
from .convert import convert_program
from .dtypes import RELAY_OF
from .frontend import read_program, with_forms
from .graph import GraphConverter, is_tensor
from .places import place_of
from .registry import name_of
from .sizes import known


class _Noting(GraphConverter):
    """A converter whose calls bear the names of their nodes."""

    def span_of(self, node):
        return Span(SourceName(node.name))


def nodes_of(source):
    """(rows of the nodes of a program or its file, in the words of `baton.driver.xray`; the module, or of one with operators that are not
    supported a module with the values of the others)."""
    made = []

    def make(graph):
        made.append(_Noting(graph))
        return made[0]

    program = None
    try:
        program = convert_program(read_program(source), freeze=True, make_converter=make)
    except UnsupportedError:
        if not made or not made[0].missing:
            raise
    (converter,) = made
    missing = {m.node: m for m in converter.missing}
    rows = [_row(node, missing.get(node)) for node in converter.graph.nodes if _is_row(node)]
    return rows, with_forms(program) if program is not None else _module_of(converter)


def _is_row(node) -> bool:
    fake = node.meta.get("val")
    return (
        node.op != "placeholder" and node.op.startswith("call") and node.target is not operator.getitem and (is_tensor(fake) or isinstance(fake, (list, tuple)))
    )


def _module_of(converter):
    """A module that gives all values of a converter."""
    results = []
    for value in converter.values.values():
        parts = [value.re, value.im] if isinstance(value, Pair) else value if isinstance(value, list) else [value]
        results += [part for part in parts if isinstance(part, RelayExpr) and not isinstance(part, Var)]
    if not results:
        return None
    body = Tuple(results)
    return IRModule.from_expr(Function(list(analysis.free_vars(body)), body))


def _value(fake, name=""):
    if not is_tensor(fake):
        return {"name": name, "dtype": "", "shape": None}
    dtype = RELAY_OF.get(fake.dtype, str(fake.dtype).removeprefix("torch."))
    return {"name": name, "dtype": dtype, "shape": [int(d) if known(d) else None for d in fake.shape]}


def _row(node, missing):
    fake = node.meta.get("val")
    line, path = place_of(node)
    return {
        "node": node.name,
        "operator": name_of(node.target),
        "version": 0,
        "inputs": [_value(n.meta.get("val"), n.name) for n in node.all_input_nodes if is_tensor(n.meta.get("val"))],
        "outputs": [_value(f) for f in (fake if isinstance(fake, (list, tuple)) else [fake])],
        "where": "",
        "why": missing.reason if missing else "",
        "relay": [],
        "flop": None,
        "bytes": 0,
        "copied": 0,
        "depth": 1,
        "place": line,
        "module": path,
        "_missing": missing,
    }


class _Alone(torch.nn.Module):
    """One call of an operator, of tensors; its other arguments are fixed."""

    def __init__(self, node, tensors):
        super().__init__()
        self.node, self.tensors = node, tensors

    def forward(self, *given):
        def argument(arg):
            if isinstance(arg, torch.fx.Node):
                return given[self.tensors.index(arg)] if arg in self.tensors else arg.meta["val"]
            if isinstance(arg, (list, tuple)):
                return [argument(a) for a in arg]
            return arg

        return self.node.target(*map(argument, self.node.args), **{k: argument(v) for k, v in self.node.kwargs.items()})


def write_alone(missing, stem: str) -> list[str]:
    """Writes a node without a rule as a separate program (`stem`.pt2) and as a script that shows it (`stem`.py). Returns the paths."""
    paths, node = [], missing.node
    if script := missing.script():
        with open(stem + ".py", "w", encoding="utf-8") as file:
            file.write(script + "\n")
        paths.append(stem + ".py")
    tensors = [n for n in node.all_input_nodes if is_tensor(n.meta.get("val"))]
    sizes = [[int(d) if known(d) else d.node.hint or 2 for d in n.meta["val"].shape] for n in tensors]
    examples = tuple(torch.zeros(size, dtype=n.meta["val"].dtype) for n, size in zip(tensors, sizes, strict=True))
    torch.export.save(torch.export.export(_Alone(node, tensors), examples), stem + ".pt2")
    return [*paths, stem + ".pt2"]

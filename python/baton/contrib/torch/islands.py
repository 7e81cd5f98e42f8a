# SPDX-License-Identifier: Apache-2.0
"""Operators without a rule stay with PyTorch: the rest of a graph is compiled in parts around them."""

from __future__ import annotations

import math
import operator
import time
import warnings

import torch
from torch._prims_common import is_contiguous_or_false
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

from .convert import missing_of
from .graph import is_check, is_symbolic, is_tensor
from .sizes import known
from .unsupported import error_of

# Calls that move no numbers: a part of these alone is not worth compiling.
_VIEWS = frozenset(
    ["view.default", "permute.default", "unsqueeze.default", "squeeze.dims", "squeeze.dim", "expand.default", "alias.default", "detach.default", "t.default"]
)


class _Compiled(OperatorSupportBase):
    """Which nodes are compiled: those that were not found missing."""

    def __init__(self, missing):
        self.missing = missing

    def is_node_supported(self, submodules, node):
        return node.op == "call_function" and node not in self.missing and not is_symbolic(node.meta.get("val"))


def _works(graph):
    return any(
        n.op == "call_function" and n.target is not operator.getitem and getattr(n.target, "__name__", "") not in _VIEWS and is_tensor_like(n)
        for n in graph.graph.nodes
    )


def is_tensor_like(node) -> bool:
    """Whether a node gives tensors."""
    fake = node.meta.get("val")
    return is_tensor(fake) or isinstance(fake, (list, tuple))


def split(graph, compile_part, constants, fallback, report):
    """A function of the graph's inputs. compile_part(part, constants) compiles a graph; what it has no rule for stays with PyTorch, unless
    `fallback` is "error"."""
    if not _works(graph):
        return graph.forward
    missing = missing_of(graph)
    if not missing:
        report.parts = 1
        report.copies = _copies(graph.graph.find_nodes(op="placeholder"), constants)
        compiled = compile_part(graph, constants)
        report.weights += [compiled.weights] if getattr(compiled, "weights", None) else []
        return compiled
    if fallback == "error":
        raise error_of(missing)
    report.left = [(m.name, m.place, m.reason) for m in missing]
    _warn(report)
    nodes = {m.node for m in missing}
    nodes |= {n for n in graph.graph.nodes if is_check(n)}  # it gives no value to a part
    # Fields of a result that stays belong to it.
    nodes |= {u for n in nodes for u in n.users if u.target is operator.getitem}
    left = {m.node.name: index for index, m in enumerate(missing)}  # fusing makes the nodes anew, with their names
    partitioner = CapabilityBasedPartitioner(graph, _Compiled(nodes), allows_single_node_partition=True)
    fused = partitioner.partition_and_fuse(prefix="baton_part")
    inputs = {node: i for i, node in enumerate(n for n in fused.graph.nodes if n.op == "placeholder")}
    calls = {node.target: node for node in fused.graph.nodes if node.op == "call_module"}
    for name, part in list(fused.named_children()):
        if name.startswith("baton_part") and isinstance(part, torch.fx.GraphModule) and _works(part):
            held = {i: constants[inputs[arg]] for i, arg in enumerate(calls[name].args) if inputs.get(arg) in constants}
            compiled = compile_part(part, held)
            report.weights += [compiled.weights] if getattr(compiled, "weights", None) else []
            setattr(fused, name, _Part(compiled))
            report.parts += 1
            report.copies += [copy for copy in _copies(calls[name].args, ()) if copy not in report.copies]
    report.left_seconds = [0.0] * len(report.left)
    for node in fused.graph.nodes:
        if node.op == "call_function" and node.name in left:
            node.target = _timed(node.target, report.left_seconds, left[node.name])
    fused.recompile()
    return fused.forward


def _timed(target, seconds, index):
    """An operator that adds the time of each call to seconds[index]."""
    clock = time.perf_counter

    def timed(*args, **kwargs):
        begin = clock()
        out = target(*args, **kwargs)
        seconds[index] += clock() - begin
        return out

    timed.__name__ = timed.__qualname__ = f"timed_{index}"
    return timed


def _copies(nodes, constants):
    """The inputs that compiled code copies: of other strides than arrays have, and complex ones, which are taken apart."""
    found = []
    for place, node in enumerate(nodes):
        fake = node.meta.get("val") if isinstance(node, torch.fx.Node) else None
        if not is_tensor(fake) or place in constants or fake.layout is not torch.strided or is_contiguous_or_false(fake) and not fake.is_complex():
            continue
        sizes = list(fake.shape)
        found.append((node.name, math.prod(map(int, sizes)) * fake.element_size() if all(map(known, sizes)) else None))
    return found


class _Part(torch.nn.Module):
    """A compiled part as a module, which gives what the part gave."""

    def __init__(self, compiled):
        super().__init__()
        self.compiled = compiled
        (output,) = (n for n in compiled.graph.graph.nodes if n.op == "output")
        self.single = not isinstance(output.args[0], (list, tuple))

    def forward(self, *inputs):
        out = self.compiled(*inputs)
        return out[0] if self.single else tuple(out)


def _warn(report):
    kinds = {}
    for name, place, reason in report.left:
        kinds.setdefault((name, reason), place)
    lines = [f"{name}{f' at {place}' if place else ''} ({reason})" for (name, reason), place in kinds.items()]
    warnings.warn(f"Baton leaves {len(report.left)} of {report.operators} operators of a graph to PyTorch: {'; '.join(lines)}", stacklevel=2)

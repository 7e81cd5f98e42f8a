# SPDX-License-Identifier: Apache-2.0
"""A graph as compiled code that takes and gives tensors of PyTorch."""

from __future__ import annotations

import torch

from ...driver.compiler import compile as compile_model
from .convert import convert_graph
from .graph import is_symbolic, is_tensor
from .sizes import expression


def array_like(tensor):
    """The tensor as compiled code takes it."""
    if tensor.requires_grad:
        tensor = tensor.detach()
    if tensor.is_conj() or tensor.is_neg():
        tensor = tensor.resolve_conj().resolve_neg()
    return tensor


class CompiledGraph:
    """A function of the graph's inputs, in order: tensors and numbers. Gives a list of what the graph gives."""

    def __init__(self, graph, model, places, outputs):
        self.graph, self.model, self._places, self._outputs = graph, model, places, outputs
        self.calls = 0

    def __call__(self, *inputs):
        self.calls += 1
        out = ()
        if self.model is not None:
            out = self.model(*[array_like(inputs[i]) for i in self._places])
            out = out if isinstance(out, tuple) else (out,)
        return [make(inputs, out) for make in self._outputs]


def _from_model(index):
    return lambda inputs, out: torch.from_dlpack(out[index])


def _from_input(index):
    return lambda inputs, out: inputs[index]


def _fixed(value):
    return lambda inputs, out: value


def _formula(expr, places):
    """The value of a formula of sizes: `places` has where each symbol is found, an input and an axis (None: the input is the number)."""
    import sympy

    symbols = sorted(expr.free_symbols, key=str)
    compute = sympy.lambdify(symbols, expr, modules=[{"FloorDiv": lambda a, b: a // b, "CleanDiv": lambda a, b: a // b, "Mod": lambda a, b: a % b}, "math"])
    found = [places[s] for s in symbols]
    return lambda inputs, out: int(compute(*(inputs[i] if axis is None else inputs[i].shape[axis] for i, axis in found)))


def _symbol_places(placeholders):
    places = {}
    for i, node in enumerate(placeholders):
        fake = node.meta.get("val")
        if is_symbolic(fake):
            places.setdefault(expression(fake), (i, None))
        elif is_tensor(fake):
            for axis, size in enumerate(fake.shape):
                if is_symbolic(size):
                    places.setdefault(expression(size), (i, axis))
    return places


def compile_graph(graph, constants=None, options=None) -> CompiledGraph:
    """Compiles a GraphModule of functional ATen calls. constants: tensors by the place of an input, which become part of the code.

    Raises UnsupportedError that names every operator without a rule.
    """
    constants = constants or {}
    program = convert_graph(graph, constants)
    placeholders = [n for n in graph.graph.nodes if n.op == "placeholder"]
    places = [i for i, n in enumerate(placeholders) if is_tensor(n.meta.get("val")) and i not in constants]
    symbols = _symbol_places(placeholders)
    outputs, next_result = [], 0
    for index in range(program.count):
        if index not in program.none:
            outputs.append(_from_model(next_result))
            next_result += 1
            continue
        value = program.none[index]
        if not isinstance(value, torch.fx.Node):
            outputs.append(_fixed(value))
        elif value.op == "placeholder":
            outputs.append(_from_input(placeholders.index(value)))
        else:
            outputs.append(_formula(expression(value.meta["val"]), symbols))
    model = None if program.mod is None else compile_model(program.mod, **(options or {}))
    return CompiledGraph(graph, model, places, outputs)

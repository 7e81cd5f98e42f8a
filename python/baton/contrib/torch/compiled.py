# SPDX-License-Identifier: Apache-2.0
"""A graph as compiled code that takes and gives tensors of PyTorch."""

from __future__ import annotations

import torch

from ...driver.compiler import compile as compile_model
from .complexes import is_complex
from .convert import convert_graph
from .graph import is_symbolic, is_tensor, is_token
from .sizes import expression


def array_like(tensor):
    """The tensor as compiled code takes it."""
    if tensor.requires_grad:
        tensor = tensor.detach()
    if tensor.is_conj() or tensor.is_neg():
        tensor = tensor.resolve_conj().resolve_neg()
    return tensor


def _parts(tensor):
    """The real and the imaginary part of a complex tensor, as compiled code takes them."""
    tensor = array_like(tensor)
    return [tensor.real.contiguous(), tensor.imag.contiguous()]


class CompiledGraph:
    """A function of the graph's inputs, in order: tensors and numbers. Gives a list of what the graph gives."""

    def __init__(self, graph, model, places, outputs, checks=(), complex_places=frozenset()):
        self.graph, self.model, self._places, self._outputs, self._checks = graph, model, places, outputs, checks
        self._complex = complex_places
        self.calls = 0

    def __call__(self, *inputs):
        self.calls += 1
        out = ()
        if self.model is not None:
            if self._complex:
                given = [part for i in self._places for part in (_parts(inputs[i]) if i in self._complex else [array_like(inputs[i])])]
            else:
                given = [array_like(inputs[i]) for i in self._places]
            out = self.model(*given)
            out = out if isinstance(out, tuple) else (out,)
        if self._checks:
            # A singular matrix raises PyTorch's own error.
            for info, args in zip(out[-len(self._checks) :], self._checks, strict=True):
                torch._linalg_check_errors(torch.from_dlpack(info), *args[:1], is_matrix=args[1])
        return [make(inputs, out) for make in self._outputs]


def _from_model(index):
    return lambda inputs, out: torch.from_dlpack(out[index])


def _from_parts(index):
    return lambda inputs, out: torch.complex(torch.from_dlpack(out[index]), torch.from_dlpack(out[index + 1]))


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
    complex_places = {i for i, n in enumerate(placeholders) if is_complex(n.meta.get("val"))}
    places = [i for i, n in enumerate(placeholders) if is_tensor(n.meta.get("val")) and i not in constants and not is_token(n)]
    symbols = _symbol_places(placeholders)
    outputs, next_result = [], 0
    for index in range(program.count):
        if index in program.pairs:
            outputs.append(_from_parts(next_result))
            next_result += 2
            continue
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
    return CompiledGraph(graph, model, places, outputs, program.checks, complex_places)

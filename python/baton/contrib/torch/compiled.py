# SPDX-License-Identifier: Apache-2.0
"""A graph as compiled code that takes and gives tensors of PyTorch."""

from __future__ import annotations

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily

from ...driver.compiler import compile as compile_model
from .complexes import is_complex
from .convert import convert_graph
from .graph import is_symbolic, is_tensor, is_token
from .sizes import expression
from .weights import Weights, packable


def array_like(tensor):
    """The tensor of real numbers as compiled code takes it."""
    if tensor.requires_grad:
        tensor = tensor.detach()
    return tensor.resolve_neg() if tensor.is_neg() else tensor


def tensor_of(array):
    """The array as a tensor of the same memory: `torch.from_dlpack` without its questions about devices and streams."""
    return _from_capsule(array.__dlpack__())


_from_capsule = torch._C._from_dlpack


def _number(value, is_extent):
    """A number as compiled code takes it: a scalar, or the extent of a tensor without elements."""
    if is_extent:
        return torch.empty((max(int(value), 0), 0), dtype=torch.bool)
    return torch.tensor(value, dtype=torch.float64 if isinstance(value, float) else torch.int64)


def _parts(tensor):
    """The real and the imaginary part of a complex tensor, as compiled code takes them."""
    tensor = tensor.detach().resolve_conj().resolve_neg()
    return [tensor.real.contiguous(), tensor.imag.contiguous()]


class CompiledGraph:
    """A function of the graph's inputs, in order: tensors and numbers. Gives a list of what the graph gives."""

    def __init__(self, graph, model, places, outputs, checks=(), complex_places=frozenset(), numbers=()):
        self.graph, self.model, self._places, self._outputs, self._checks = graph, model, places, outputs, checks
        self._complex, self._numbers = complex_places, numbers
        # Whether results are what the model gives, in order.
        self._plain = model is not None and not checks and [getattr(make, "index", None) for make in outputs] == list(range(len(model.outputs)))

    def __call__(self, *inputs):
        out = ()
        if self.model is not None:
            if self._complex:
                given = [part for i in self._places for part in (_parts(inputs[i]) if i in self._complex else [array_like(inputs[i])])]
            else:
                given = [array_like(inputs[i]) for i in self._places]
            if self._numbers:
                given += [_number(inputs[i], is_extent) for i, is_extent in self._numbers]
            out = self.model(*given)
            if not isinstance(out, tuple):
                if self._plain:
                    return [tensor_of(out)]
                out = (out,)
            if self._plain:
                return [tensor_of(array) for array in out]
        if self._checks:
            # A singular matrix raises PyTorch's own error.
            for info, args in zip(out[-len(self._checks) :], self._checks, strict=True):
                torch._linalg_check_errors(tensor_of(info), *args[:1], is_matrix=args[1])
        return [make(inputs, out) for make in self._outputs]


def _from_model(index):
    def make(inputs, out):
        return tensor_of(out[index])

    make.index = index
    return make


def _from_parts(index):
    return lambda inputs, out: torch.complex(tensor_of(out[index]), tensor_of(out[index + 1]))


def _from_scalar(index):
    return lambda inputs, out: tensor_of(out[index]).item()


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


class PackedGraph:
    """The same of a graph whose weights the code has packed (`weights`). `plain` compiles the graph with weights as arguments, for calls
    with weights that are not worth packing."""

    def __init__(self, graph, packed, weights, plain):
        self.graph, self.packed, self.weights, self._plain = graph, packed, weights, plain
        self._repack = packed.model.module["repack"]
        self._arguments = None

    def __call__(self, *inputs):
        if self.weights.fit(inputs, self._repack):
            return self.packed(*inputs)
        if self._arguments is None:
            self._arguments = self._plain()
        return self._arguments(*inputs)


def compile_packed(graph, weights, options=None):
    """As `compile_graph`, with weights (tensors by the place of an input) that are packed by the first call, and again when they change."""
    places = packable(graph, weights)
    while places:
        held = Weights(graph, places)
        changing = {**(options or {}), "config": {**(options or {}).get("config", {}), "driver.weights_change": True}}
        made = PackedGraph(graph, compile_graph(graph, held.arrays(), changing), held, lambda: compile_graph(graph, {}, options))
        with unset_fake_temporarily():
            held.fit([weights.get(i) for i in range(max(weights) + 1)], made._repack)
        if not (lost := held.lost()):
            return made
        places = [i for i in places if i not in lost]
    return compile_graph(graph, {}, options)


def compile_graph(graph, constants=None, options=None) -> CompiledGraph:
    """Compiles a GraphModule of functional ATen calls. constants: tensors (or arrays) by the place of an input, which become part of the code.

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
        if index in program.again:
            outputs.append(_from_model(program.again[index]))
            continue
        if index in program.scalars:
            outputs.append(_from_scalar(next_result))
            next_result += 1
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
    return CompiledGraph(graph, model, places, outputs, program.checks, complex_places, program.numbers)

# SPDX-License-Identifier: Apache-2.0
"""An exported program as a Relay module with parameters."""

from __future__ import annotations

import warnings

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind, TensorArgument

from ...driver.dims import MAX_EXTENT
from ...error import UnsupportedError
from ...ir import IRModule
from ...relay import Constant, Function, transform
from ...runtime import ndarray as nd
from .complexes import Pair, is_complex
from .decompose import house_table
from .graph import GraphConverter, body_of, is_symbolic, is_tensor, is_token
from .registry import name_of
from .sizes import expression

# Outputs that are new values of buffers, of parameters, and of arguments.
CHANGES = (OutputKind.BUFFER_MUTATION, OutputKind.PARAMETER_MUTATION, OutputKind.USER_INPUT_MUTATION)


class Program:
    """What is made of an exported program.

    mod: the module; `main` takes the inputs, then the weights (unless they are constants in it). params: the weights by name.
    inputs: names of the inputs. mutations: what further outputs, behind the program's own, are written back to: ("buffer", name of a weight) or
    ("input", place among the inputs) each. count: how many outputs the program has. none: places among them that hold no tensor, with what they hold.
    pairs: places of complex results, which two results are, the real and the imaginary part.
    scalars: places of results that are numbers, which values of the program give.
    again: places of results that share the memory of one before, with that one's place among the module's results.
    bounds: of open dimensions by their names, [least, largest, multiple of] each.
    numbers: further inputs behind the others, (place of a placeholder that is a number, whether it is an extent) each.
    checks: what PyTorch's `_linalg_check_errors` takes behind its first argument; the last results are those first ones.
    """

    def __init__(self, mod, params, inputs, mutations, none, count, checks=(), pairs=()):
        self.mod, self.params, self.inputs, self.mutations, self.none, self.count = mod, params, inputs, mutations, none, count
        self.checks, self.pairs, self.bounds, self.numbers, self.scalars, self.again = checks, pairs, {}, [], set(), {}


def array_of(tensor):
    """A copy of a tensor as an array of the runtime."""
    with unset_fake_temporarily(), torch.no_grad():
        return _array_of(tensor.detach())


def _array_of(tensor):
    if tensor.device.type != "cpu":
        raise UnsupportedError(f"a tensor on {tensor.device}: move the module to the CPU")
    if tensor.is_sparse or tensor.is_quantized:
        raise UnsupportedError("sparse and quantised tensors are no arrays of Baton")
    return nd.from_dlpack(tensor.clone(memory_format=torch.contiguous_format))


def decomposed(exported):
    """An ExportedProgram of any dialect in the operators that rules are written for."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=FutureWarning)  # PyTorch's about its own copies
        exported = exported.run_decompositions(house_table())
    exported.graph_module.graph.eliminate_dead_code()
    return exported


def tensor_of_weight(exported, target):
    """The tensor of a parameter, buffer or constant of a program."""
    tensor = exported.state_dict.get(target)
    return exported.constants[target] if tensor is None else tensor


def convert_program(exported, names=None, freeze=False, rename=None, make_converter=GraphConverter) -> Program:
    """Converts an ExportedProgram of any dialect. names: of the inputs, in order. freeze: weights become constants, but for those that the
    program changes. rename: gives weights other names. make_converter: makes the
    GraphConverter of a graph."""
    exported = decomposed(exported)
    graph, signature = exported.graph_module.graph, exported.graph_signature
    converter = make_converter(graph)
    placeholders = [n for n in graph.nodes if n.op == "placeholder"]
    rename = rename or (lambda name: name)
    names = list(names or ())
    changed = {spec.target for spec in signature.output_specs if spec.kind in CHANGES}
    inputs, weights, params, places = [], [], {}, {}
    for spec, node in zip(signature.input_specs, placeholders, strict=True):
        if spec.kind is InputKind.USER_INPUT:
            _name_symbols(converter, node, names[len(inputs)] if len(inputs) < len(names) else node.name)
    for spec, node in zip(signature.input_specs, placeholders, strict=True):
        if spec.kind is InputKind.USER_INPUT:
            if isinstance(spec.arg, ConstantArgument) or not is_tensor(node.meta.get("val")):
                continue
            if is_complex(node.meta["val"]):
                raise UnsupportedError(f"the input `{node.name}` is complex: Relay has no such dtype. Give its parts, and use torch.complex")
            places[node.name] = len(inputs)
            inputs.append(converter.parameter(node, names[len(inputs)] if len(inputs) < len(names) else node.name))
        elif spec.kind in (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR):
            if not isinstance(spec.arg, TensorArgument) or not node.users and spec.target not in changed:
                continue
            tensor = tensor_of_weight(exported, spec.target)
            if is_complex(tensor):
                converter.bind(node, _constant_pair(tensor))
                continue
            try:
                array = array_of(tensor)
            except UnsupportedError as error:
                raise UnsupportedError(f"weight `{spec.target}`: {error}") from None
            if (freeze or spec.kind is InputKind.CONSTANT_TENSOR or _is_scale(node)) and spec.target not in changed:
                converter.bind(node, Constant(array))
            else:
                name = rename(spec.target)
                places[spec.target] = name
                weights.append(converter.parameter(node, name))
                params[name] = array
        else:
            raise UnsupportedError(f"the program has an input of kind {spec.kind.name.lower()}, as scripted objects are")
    if len(names) > len(inputs):
        raise ValueError(f"there are names for {len(names)} inputs, and the program has {len(inputs)}")
    converter.convert()
    program = _finished(converter, signature, graph, inputs, weights, params, places)
    program.bounds = _bounds(converter.sizes, exported.range_constraints)
    return program


def _is_scale(node) -> bool:
    """Whether a weight is the scales, or zero points, of quantised ones, and nothing else."""
    return bool(node.users) and all(name_of(user.target).startswith("quantized_decomposed.") and user.args[0] is not node for user in node.users)


def bounds_of(interval) -> tuple[int, int]:
    """The least and the largest length that a range of PyTorch, or none, allows. Its default minimum of 2 is dropped: 0 and 1 are allowed."""
    if interval is None:
        return 0, MAX_EXTENT
    least = int(interval.lower) if interval.lower.is_Integer and int(interval.lower) > 2 else 0
    largest = int(interval.upper) if interval.upper.is_Integer else MAX_EXTENT
    return least, min(largest, MAX_EXTENT)


def _bounds(sizes, ranges):
    """Returns the ranges of the program's symbolic dimensions."""
    found = {}
    for symbol, interval in ranges.items():
        variable = sizes.variables.get(symbol)
        if variable is None:
            continue
        least, largest = bounds_of(interval)
        if least or largest < MAX_EXTENT:
            found[str(variable.name_hint if hasattr(variable, "name_hint") else variable.name)] = [least, largest, 1]
    return found


def _name_symbols(converter, node, name):
    """An open dimension is named after the input and the axis that has it first."""
    fake = node.meta.get("val")
    for axis, size in enumerate(fake.shape if is_tensor(fake) else ()):
        if is_symbolic(size) and expression(size).is_Symbol:
            converter.sizes.names.setdefault(str(expression(size)), f"{name}_{axis}")


def _finished(converter, signature, graph, inputs, weights, params, places):
    (output,) = (n for n in graph.nodes if n.op == "output")
    results, none, mutations = [], {}, []
    own, further = [], []
    for spec, value in zip(signature.output_specs, output.args[0], strict=True):
        if spec.kind is OutputKind.USER_OUTPUT:
            own.append(value)
        elif spec.kind in CHANGES:
            further.append((("input" if spec.kind is OutputKind.USER_INPUT_MUTATION else "buffer", places[spec.target]), value))
        elif spec.kind is not OutputKind.TOKEN:
            raise UnsupportedError(f"the program has an output of kind {spec.kind.name.lower()}")
    for index, value in enumerate(own):
        if isinstance(value, torch.fx.Node) and is_tensor(value.meta.get("val")):
            if isinstance(converter.values[value], Pair):
                raise UnsupportedError(f"the result {index} is complex: Relay has no such dtype. Give its parts, as torch.view_as_real does")
            results.append(converter.values[value])
        else:
            none[index] = value
    for target, value in further:
        mutations.append(target)
        results.append(converter.values[value])
    if not results:
        raise UnsupportedError("the program gives no tensor")
    function = Function([*inputs, *weights], body_of(results))
    mod = transform.InferType()(IRModule.from_expr(function))
    return Program(mod, params, [v.name_hint for v in inputs], mutations, none, len(own))


def _bound(module, constants):
    """(a converter of a GraphModule whose inputs and attributes are bound, the parameters)"""
    converter, inputs = GraphConverter(module.graph, checks=[]), []
    placeholders = [n for n in module.graph.nodes if n.op == "placeholder"]
    for fake in (n.meta.get("val") for n in placeholders):
        converter.sizes.readable |= {expression(size) for size in (fake.shape if is_tensor(fake) else [fake]) if is_symbolic(size)}
    for node in module.graph.nodes:
        fake = node.meta.get("val")
        if node.op == "placeholder" and is_tensor(fake) and not is_token(node):
            constant = constants.get(placeholders.index(node))
            try:
                if constant is None:
                    made = converter.parameter(node, node.name)
                    inputs += made if isinstance(made, list) else [made]
                elif isinstance(constant, nd.NDArray):
                    converter.bind(node, Constant(constant))
                elif is_complex(constant):
                    converter.bind(node, _constant_pair(constant))
                else:
                    converter.bind(node, Constant(array_of(constant)))
            except UnsupportedError:
                continue  # of a dtype that Relay lacks: what uses it says so
        elif node.op == "placeholder" and isinstance(fake, (torch.SymInt, torch.SymFloat)):
            converter.number(node)
        elif node.op == "get_attr":
            tensor = _attribute(module, node.target)
            if is_tensor(tensor):
                if not is_tensor(fake):
                    node.meta["val"] = tensor
                converter.bind(node, _constant_pair(tensor) if is_complex(tensor) else Constant(array_of(tensor)))
    return converter, inputs


def _constant_pair(tensor):
    with unset_fake_temporarily(), torch.no_grad():
        tensor = tensor.detach().resolve_conj()
        return Pair(*(Constant(array_of(part)) for part in (tensor.real, tensor.imag)))


_ALIASES = ("aten.alias.default", "aten.detach.default")


def _aliased(node):
    """The node whose memory a node shares, element for element."""
    while node.op == "call_function" and name_of(node.target) in _ALIASES:
        node = node.args[0]
    return node


def missing_of(module, constants=None) -> list:
    """The nodes of a GraphModule that have no rule; nothing is compiled."""
    converter, _ = _bound(module, constants or {})
    try:
        converter.convert()
    except UnsupportedError:
        return converter.missing
    return []


def convert_graph(module, constants=None) -> Program:
    """Converts a GraphModule of functional ATen calls whose nodes know their shapes, as AOTAutograd and `make_fx` give it. Its tensors
    are inputs, tensors that it holds constants, and so are the inputs at the places of `constants`. What it gives that is no tensor that
    it computes is in `none`: numbers, and inputs that it gives back; `mod` is None where nothing else is left."""
    converter, inputs = _bound(module, constants or {})
    results, none, pairs, scalars, again, firsts = [], {}, [], set(), {}, {}
    converter.convert()
    (output,) = (n for n in module.graph.nodes if n.op == "output")
    given = output.args[0] if isinstance(output.args[0], (list, tuple)) else [output.args[0]]
    for index, value in enumerate(given):
        if isinstance(value, torch.fx.Node) and is_token(value):
            none[index] = None
        elif isinstance(value, torch.fx.Node) and is_tensor(value.meta.get("val")) and value.op != "placeholder":
            made, source = converter.values[value], _aliased(value)
            if source in firsts:
                again[index] = firsts[source]
                continue
            if not isinstance(made, Pair):
                firsts[source] = len(results)
            results += [made.re, made.im] if isinstance(made, Pair) else [made]
            pairs += [index] if isinstance(made, Pair) else []
        elif isinstance(value, torch.fx.Node) and is_symbolic(value.meta.get("val")) and (made := converter.scalar_of(value.meta["val"])) is not None:
            results.append(made)
            scalars.add(index)
        else:
            none[index] = value
    results += [info for info, _ in converter.checks]
    numbers = converter.number_parameters() if results else []
    inputs += [var for _, var, _ in numbers]
    mod = transform.InferType()(IRModule.from_expr(Function(inputs, body_of(results)))) if results else None
    program = Program(mod, {}, [v.name_hint for v in inputs], [], none, len(given), [args for _, args in converter.checks], pairs)
    placeholders = [n for n in module.graph.nodes if n.op == "placeholder"]
    program.scalars, program.again = scalars, again
    program.numbers = [(placeholders.index(node), is_extent) for node, _, is_extent in numbers]
    return program


def _attribute(module, path):
    for name in path.split("."):
        module = getattr(module, name)
    return module

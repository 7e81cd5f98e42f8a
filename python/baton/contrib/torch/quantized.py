# SPDX-License-Identifier: Apache-2.0
"""Quantised modules of `torch.ao` (eager mode and FX) in the operators of PT2E: numbers, and integers with a scale and a zero point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.ao.quantization.fx._decomposed  # noqa: F401 - registers the operators of PT2E
import torch.nn.functional as F
from torch.fx.graph_module import _assign_attr

from ...error import UnsupportedError

_Q = torch.ops.quantized_decomposed
# The integers that quantised tensors hold. PyTorch's graphs have numbers for dtypes.
_INTEGERS = {torch.qint8: torch.int8, torch.quint8: torch.uint8, torch.qint32: torch.int32, 12: torch.int8, 13: torch.uint8, 14: torch.int32}


@dataclass
class Quantized:
    """Integers, and the numbers scale * (integer - zero_point) that they stand for."""

    integers: Any
    scale: float
    zero_point: int

    @property
    def dtype(self):
        """The dtype of the integers."""
        return self.integers.dtype

    @property
    def real(self):
        """The numbers."""
        return _Q.dequantize_per_tensor(self.integers, self.scale, self.zero_point, *_bounds(self.dtype), self.dtype)

    def of(self, integers, scale=None, zero_point=None) -> Quantized:
        """Other integers, of the same scale and zero point unless they are given."""
        return Quantized(integers, self.scale if scale is None else scale, self.zero_point if zero_point is None else zero_point)


def quantize(x, scale, zero_point, dtype) -> Quantized:
    """The nearest integers of numbers."""
    scale, zero_point = float(scale), int(zero_point)
    return Quantized(_Q.quantize_per_tensor(x, scale, zero_point, *_bounds(dtype), dtype), scale, zero_point)


def _bounds(dtype):
    return torch.iinfo(dtype).min, torch.iinfo(dtype).max


class Packed(torch.nn.Module):
    """Weights that PyTorch has packed: integers and scales, as buffers of the module that had them."""

    def __init__(self, packed, owner, path: str):
        super().__init__()
        self.packed = packed
        weight, bias = packed.unpack()
        self.integers = weight.int_repr().contiguous()
        self.axis = weight.q_per_channel_axis() if weight.qscheme() == torch.per_channel_affine else None
        prefix = ".".join(part for part in path.split(".") if part != "_packed_params")
        self.names = {"weight": self.integers, "bias": bias.detach() if bias is not None else None}
        if self.axis is None:
            self.scale, self.zero_point = weight.q_scale(), weight.q_zero_point()
        else:
            self.names["weight_scale"] = weight.q_per_channel_scales().float()
            self.names["weight_zero_point"] = weight.q_per_channel_zero_points().int()
        self.names = {name: tensor for name, tensor in self.names.items() if tensor is not None}
        self.paths = {name: f"{prefix}.{name}" if prefix else name for name in self.names}
        for name, tensor in self.names.items():
            _assign_attr(tensor, owner, self.paths[name])
        self.owner = [owner]  # a list: the owner must not become a submodule

    def tensor(self, name):
        """Returns a buffer by its name, or None without one of that name."""
        return self.owner[0].get_buffer(self.paths[name]) if name in self.paths else None

    @property
    def weight(self):
        """The numbers of the weight."""
        w = self.tensor("weight")
        if self.axis is None:
            return _Q.dequantize_per_tensor(w, self.scale, self.zero_point, *_bounds(w.dtype), w.dtype)
        scales, zeros = self.tensor("weight_scale"), self.tensor("weight_zero_point")
        return _Q.dequantize_per_channel(w, scales, zeros, self.axis, *_bounds(w.dtype), w.dtype)

    @property
    def bias(self):
        """The bias, or None."""
        return self.tensor("bias")


RULES = {}


def rule(*names):
    """Registers the computation of operators of PyTorch's library `quantized` on `Quantized` tensors and `Packed` weights."""

    def register(function):
        RULES.update({f"quantized.{name}": function for name in names})
        return function

    return register


def _activated(name, y):
    return torch.relu(y) if "_relu" in name else y


def _convolved(x, packed):
    given = packed.packed
    rank, stride, padding, dilation = x.dim() - 2, given.stride(), given.padding(), given.dilation()
    stride, padding, dilation = (list(v)[-rank:] for v in (stride, padding, dilation))
    weight = packed.weight
    while weight.dim() > x.dim():  # those of one dimension are stored as of two
        weight = weight.squeeze(2)
    if given.transpose():
        call = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[rank - 1]
        return call(x, weight, packed.bias, stride, padding, list(given.output_padding())[-rank:], given.groups(), dilation)
    return (F.conv1d, F.conv2d, F.conv3d)[rank - 1](x, weight, packed.bias, stride, padding, dilation, given.groups())


@rule(*(f"conv{t}{n}d{r}" for t in ("", "_transpose") for n in (1, 2, 3) for r in ("", "_relu")))
def _conv(name, x, packed, *rest):
    return quantize(_activated(name, _convolved(x.real, packed)), *rest[-2:], x.dtype)


@rule("conv2d_add", "conv2d_add_relu")
def _conv_add(name, x, other, packed, scale, zero_point):
    return quantize(_activated(name, _convolved(x.real, packed) + other.real), scale, zero_point, x.dtype)


@rule("linear", "linear_relu", "linear_leaky_relu", "linear_tanh")
def _linear(name, x, packed, scale, zero_point, slope=None):
    y = F.linear(x.real, packed.weight, packed.bias)
    y = F.leaky_relu(y, slope) if slope is not None else torch.tanh(y) if name.endswith("_tanh") else _activated(name, y)
    return quantize(y, scale, zero_point, x.dtype)


def _range(x, reduce_range):
    """The scale and the zero point that the range of numbers gives."""
    return _Q.choose_qparams(x, 0, 127 if reduce_range else 255, 1e-10, torch.uint8)


def _rounded(x, scale, zero_point):
    """The numbers that the nearest integers stand for."""
    return _Q.dequantize_per_tensor(_Q.quantize_per_tensor(x, scale, zero_point, 0, 255, torch.uint8), scale, zero_point, 0, 255, torch.uint8)


@rule("linear_dynamic", "linear_relu_dynamic")
def _linear_dynamic(name, x, packed, reduce_range=False):
    return _activated(name, F.linear(_rounded(x, *_range(x, reduce_range)), packed.weight, packed.bias))


@rule(*(f"conv{t}{n}d_dynamic" for t in ("", "_transpose") for n in (1, 2, 3)))
def _conv_dynamic(name, x, packed, reduce_range=False):
    found = _range(x, reduce_range)
    return _rounded(_convolved(_rounded(x, *found), packed), *found)  # PyTorch gives results the scale of the data


_BINARY = {"add": torch.add, "mul": torch.mul, "matmul": torch.matmul}


@rule("add", "add_relu", "mul", "mul_relu", "matmul")
def _binary(name, a, b, scale=None, zero_point=None):
    if scale is None:
        return scalar(name, *((b, a) if isinstance(b, Quantized) else (a, b)))
    return quantize(_activated(name, _BINARY[name.removesuffix("_relu")](a.real, b.real)), scale, zero_point, a.dtype)


@rule("add_scalar", "add_scalar_relu", "mul_scalar", "mul_scalar_relu")
def scalar(name, x, number):
    """The same integers, as those of another scale and zero point, where there are such ones."""
    least, most = _bounds(x.dtype)
    zero, scale = x.zero_point, x.scale
    if name.startswith("mul"):
        if number == 0:
            return x.of(torch.zeros_like(x.integers), 0.1, 0)
        y = x.of(x.integers, scale * abs(number))
        if number < 0:
            y = Quantized((most + least - x.integers.int()).to(x.dtype), y.scale, most + least - zero)
    else:
        moved = zero - round(number / scale)
        if least <= moved <= most:
            y = x.of(x.integers, zero_point=moved)
        else:
            span = most - moved if moved < least else moved - least
            y = quantize(x.real + number, span / (most - least) * scale, min(max(moved, least), most), x.dtype)
    return quantize(torch.relu(y.real), y.scale, y.zero_point, x.dtype) if "_relu" in name else y


@rule("cat", "cat_relu")
def _cat(name, tensors, dim, scale=None, zero_point=None):
    first = tensors[0]
    y = _activated(name, torch.cat([t.real for t in tensors], dim))
    return quantize(y, first.scale if scale is None else scale, first.zero_point if zero_point is None else zero_point, first.dtype)


_UNARY = {"hardswish": F.hardswish, "sigmoid": torch.sigmoid, "softmax": torch.softmax}


@rule(*_UNARY)
def _unary(name, x, *args):
    return quantize(_UNARY[name](x.real, *args[:-2]), *args[-2:], x.dtype)


@rule("leaky_relu")
def _leaky_relu(name, x, slope, inplace, scale, zero_point):
    return quantize(F.leaky_relu(x.real, slope), scale, zero_point, x.dtype)


@rule("elu")
def _elu(name, x, scale, zero_point, alpha=1, factor=1, input_scale=1):
    return quantize(torch.ops.aten.elu(x.real, alpha, factor, input_scale), scale, zero_point, x.dtype)


@rule("celu")
def _celu(name, x, scale, zero_point, alpha=1):
    return quantize(F.celu(x.real, alpha), scale, zero_point, x.dtype)


@rule("prelu")
def _prelu(name, x, weight, scale, zero_point):
    return quantize(F.prelu(x.real, _real(weight)), scale, zero_point, x.dtype)


@rule("relu6")
def _relu6(name, x, inplace=False):
    return quantize(F.relu6(x.real), x.scale, x.zero_point, x.dtype)


@rule("clamp")
def _clamp(name, x, least=None, most=None):
    return quantize(torch.clamp(x.real, least, most), x.scale, x.zero_point, x.dtype)


@rule("threshold")
def _threshold(name, x, limit, value):
    return quantize(F.threshold(x.real, limit, value), x.scale, x.zero_point, x.dtype)


@rule("max_pool1d", "max_pool2d")
def _max_pool(name, x, kernel, stride, padding, dilation, ceil_mode):
    return quantize(getattr(F, name)(x.real, kernel, stride, padding, dilation, bool(ceil_mode)), x.scale, x.zero_point, x.dtype)


@rule("dropout")
def _dropout(name, x, scale, zero_point, p=0.5, training=False):
    return x


@rule("layer_norm")
def _layer_norm(name, x, shape, weight, bias, eps, scale, zero_point):
    return quantize(F.layer_norm(x.real, shape, weight, bias, eps), scale, zero_point, x.dtype)


@rule("group_norm")
def _group_norm(name, x, groups, weight, bias, eps, scale, zero_point):
    return quantize(F.group_norm(x.real, groups, weight, bias, eps), scale, zero_point, x.dtype)


@rule("instance_norm")
def _instance_norm(name, x, weight, bias, eps, scale, zero_point):
    return quantize(F.instance_norm(x.real, weight=weight, bias=bias, eps=eps), scale, zero_point, x.dtype)


@rule(*(f"batch_norm{n}{r}" for n in ("", "1d", "2d", "3d") for r in ("", "_relu")))
def _batch_norm(name, x, weight, bias, mean, var, eps, scale, zero_point):
    return quantize(_activated(name, F.batch_norm(x.real, mean, var, weight, bias, False, 0.0, eps)), scale, zero_point, x.dtype)


# Operators of ATen that move elements: integers stay what they are.
_MOVES = frozenset(
    (
        "flatten view reshape permute transpose t slice select squeeze unsqueeze contiguous clone chunk split split_with_sizes unbind expand narrow flip detach"
    ).split()
    + "alias _unsafe_view movedim repeat index_select upsample_nearest1d upsample_nearest2d upsample_nearest3d pixel_shuffle channel_shuffle unfold".split()
)
# Operators of ATen whose results have a scale of their own: (steps, zero point among uint8).
_FIXED = {"sigmoid": (256, 0), "hardsigmoid": (256, 0), "tanh": (128, 128)}


def _real(value):
    return value.real if isinstance(value, Quantized) else value


def _mapped(value, function):
    if isinstance(value, (list, tuple)):
        return type(value)(_mapped(v, function) for v in value)
    if isinstance(value, dict):
        return {k: _mapped(v, function) for k, v in value.items()}
    return function(value)


def _aten(target, name, args, kwargs):
    """Returns the value of an operator of plain tensors for quantised ones: it moves integers, or computes with their numbers."""
    if name == "quantize_per_tensor":
        x, scale, zero_point, dtype = (*args, *kwargs.values())
        return quantize(x, scale, zero_point, _INTEGERS[dtype])
    if name == "dequantize":
        return _mapped(args[0], _real)
    found = []
    _mapped([args, kwargs], lambda v: found.append(v) if isinstance(v, Quantized) else None)
    if not found:
        return target(*args, **kwargs)
    first = found[0]
    if name in ("q_scale", "q_zero_point", "int_repr"):
        return {"q_scale": first.scale, "q_zero_point": first.zero_point, "int_repr": first.integers}[name]
    if name in _MOVES and len(found) == 1:
        out = target(*_mapped(args, lambda v: v.integers if v is first else v), **kwargs)
        return _mapped(out, lambda v: first.of(v) if isinstance(v, torch.Tensor) else v)
    out = target(*_mapped(args, _real), **_mapped(kwargs, _real))
    steps, zero_point = _FIXED.get(name, (None, first.zero_point))
    if steps and first.dtype is torch.int8:
        zero_point -= 128
    scale = 1 / steps if steps else first.scale
    return _mapped(out, lambda v: quantize(v, scale, zero_point, first.dtype) if isinstance(v, torch.Tensor) and v.is_floating_point() else v)


# Functions by which a graph makes numbers of tensors that modules hold.
_NUMBERS = ("to_float_tensor", "to_dtype", "_to_copy", "_local_scalar_dense", "item", "to")


class QuantizedGraph(torch.nn.Module):
    """A graph of quantised operators as a module of those of PT2E. Raises UnsupportedError that names every one without a rule."""

    def __init__(self, graph_module):
        super().__init__()
        graph_module.graph.eliminate_dead_code()
        self._nodes, self._fixed, self._paths = list(graph_module.graph.nodes), {}, {}
        missing = {}
        for node in self._nodes:
            if node.op == "call_function" and (name := _name(node)).startswith("quantized.") and name not in RULES:
                missing.setdefault(str(node.target), "there is no rule of it for quantised tensors")
        if missing:
            error = UnsupportedError("\n".join([f"{len(missing)} quantised operators that Baton does not support:", *(f"  {name}" for name in missing)]))
            error.missing = [(name, "", why) for name, why in missing.items()]
            raise error
        for node in self._nodes:
            if node.op == "get_attr":
                self._take(node, _attribute(graph_module, node.target))
            elif node.op == "call_function":
                self._fold(node, graph_module)
        self._paths = {node: path for node, path in self._paths.items() if not all(user in self._fixed for user in node.users)}
        for path in self._paths.values():
            _assign_attr(_attribute(graph_module, path), self, path)

    def _take(self, node, value):
        if isinstance(value, torch.ScriptObject):
            self._fixed[node] = Packed(value, self, node.target)
        elif isinstance(value, torch.Tensor) and value.is_quantized:
            self._fixed[node] = _of_tensor(value)
        elif isinstance(value, torch.Tensor):
            self._paths[node] = node.target
        else:
            self._fixed[node] = value

    def _fold(self, node, graph_module):
        """Computes numbers that come of attributes alone, as scales that modules keep in tensors."""
        inputs = node.all_input_nodes
        if inputs and all(n in self._fixed or n in self._paths for n in inputs) and _name(node).rpartition(".")[2] in _NUMBERS:
            values = {n: self._fixed[n] if n in self._fixed else _attribute(graph_module, self._paths[n]) for n in inputs}
            self._fixed[node] = node.target(*_mapped(node.args, lambda v: values.get(v, v)), **node.kwargs)

    def forward(self, *args):
        given, values = iter(args), {}

        def value(arg):
            if not isinstance(arg, torch.fx.Node):
                return arg
            return self._fixed[arg] if arg in self._fixed else values[arg]

        for node in self._nodes:
            if node.op == "placeholder":
                values[node] = next(given)
            elif node in self._paths:
                values[node] = _attribute(self, self._paths[node])
            elif node.op == "output":
                return _mapped(node.args[0], lambda v: _real(value(v)))
            elif node.op == "call_function" and node not in self._fixed:
                values[node] = _call(node, _mapped(node.args, value), _mapped(node.kwargs, value))
        raise AssertionError("a graph without results")


def _call(node, args, kwargs):
    name = _name(node)
    if name.startswith("quantized."):
        return RULES[name](name.removeprefix("quantized."), *args, **kwargs)
    if name.startswith("aten."):
        return _aten(node.target, name.removeprefix("aten."), args, kwargs)
    return node.target(*args, **kwargs)


def _name(node) -> str:
    target = node.target
    return f"{target.namespace}.{target._opname}" if isinstance(target, torch._ops.OpOverload) else getattr(target, "__name__", str(target))


def _attribute(module, path):
    for name in path.split("."):
        module = getattr(module, name)
    return module


def _of_tensor(tensor):
    if tensor.qscheme() == torch.per_tensor_affine:
        return Quantized(tensor.int_repr(), tensor.q_scale(), tensor.q_zero_point())
    return tensor.dequantize()


def is_quantized(model) -> bool:
    """Whether a module has quantised layers of `torch.ao`, or calls quantised operators as TorchScript."""
    if isinstance(model, torch.jit.ScriptModule):
        return any(node.kind().startswith(("quantized::", "aten::quantize_per")) for node in _nodes_of(model.inlined_graph))
    return any(".quantized" in type(m).__module__ and type(m).__module__.startswith("torch.ao.nn") for m in model.modules())


def _nodes_of(block):
    for node in block.nodes():
        yield node
        for inner in node.blocks():
            yield from _nodes_of(inner)


def restated(model, examples) -> QuantizedGraph:
    """A quantised module, or TorchScript of one, as a module that torch.export takes."""
    from torch._export.converter import TS2EPConverter, TS2FXGraphConverter, get_block_to_lifted_attrs

    if not isinstance(model, torch.jit.ScriptModule):
        model = torch.jit.trace(model, examples, check_trace=False)
    made = TS2EPConverter(model, examples)
    lifted, names = get_block_to_lifted_attrs(made.ts_graph)
    tables = made.name_to_non_tensor_attributes, made.name_to_constant, names
    return QuantizedGraph(TS2FXGraphConverter(made.ts_graph, made.name_to_param, made.name_to_buffer, lifted, *tables).convert())

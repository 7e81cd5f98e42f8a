# SPDX-License-Identifier: Apache-2.0
"""The models that the benchmarks run, each an ONNX file with inputs. `python bench/models.py` lists them.

`light_*` come from the onnx package with constant weights: shapes and arithmetic are the real networks', values are
not, and their weights are made by operators that ONNX Runtime runs anew each time, so times beside it mean little.
`resnet50` and the others without that prefix are the same networks with random weights of the size that training starts
from, so that no value is special. `conv1d` and `conv3d` are stacks of such convolutions, as audio and video models
have them.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import mobile
import numpy as np

os.environ.setdefault("BATON_CACHE", "0")  # what is measured is made anew
sys.path.append(str(Path(__file__).resolve().parent.parent / "python"))  # behind a package of PYTHONPATH
LIGHT = (
    "bvlc_alexnet",
    "densenet121",
    "inception_v1",
    "inception_v2",
    "resnet50",
    "shufflenet",
    "squeezenet",
    "vgg19",
    "zfnet512",
)
RANDOM = ("resnet50", "squeezenet", "shufflenet", "bvlc_alexnet", "densenet121", "inception_v2")
MOBILE = ("mobilenet_v2", "mobilenet_v3", "efficientnet", "detector")
HEADLINE = ("minilm", "resnet50", "squeezenet")  # the geometric mean that the project is held to
_FORMAT = 2  # raise it when a written model changes


@dataclass
class Model:
    """`inputs` are the arrays to run with; their shapes are the ones to compile for."""

    name: str
    path: Path
    inputs: dict[str, np.ndarray] = field(repr=False)

    @property
    def shape(self) -> dict[str, tuple[int, ...]]:
        return {name: array.shape for name, array in self.inputs.items()}


def _folder() -> Path:
    from baton.demo.minilm import cache_dir

    path = cache_dir() / "bench"
    path.mkdir(exist_ok=True)
    return path


def _write(name: str, build: Callable) -> Path:
    """The path of a model built by `build()`, written once."""
    from baton.demo.minilm import write_whole

    path = _folder() / f"{name}-v{_FORMAT}.onnx"
    if not path.exists():
        data = build().SerializeToString(deterministic=True)
        write_whole(path, lambda file: file.write(data))
    return path


def _light_file(name: str) -> Path:
    import onnx.backend.test

    path = Path(onnx.backend.test.__file__).parent / "data" / "light" / f"light_{name}.onnx"
    if not path.is_file():
        raise SystemExit(f"error: the installed onnx package has no `{path}`")
    return path


def _image_inputs(path: Path) -> dict[str, np.ndarray]:
    import onnx

    graph = onnx.load(path).graph
    weights = {tensor.name for tensor in graph.initializer}
    rng = np.random.default_rng(0)
    return {
        value.name: rng.standard_normal([d.dim_value for d in value.type.tensor_type.shape.dim], dtype=np.float32)
        for value in graph.input
        if value.name not in weights
    }


def _with_random_weights(name: str):
    """A light model whose ConstantOfShape weights are random initializers instead, scaled so that activations neither
    grow nor fade.
    """
    import onnx
    from onnx import numpy_helper

    proto = onnx.load(_light_file(name))
    graph = proto.graph
    shapes = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    used_as = {}
    for node in graph.node:
        for place, value in enumerate(node.input):
            used_as.setdefault(value, (node.op_type, place))
    rng = np.random.default_rng(0)
    nodes, gone = [], set()
    for node in graph.node:
        if node.op_type != "ConstantOfShape" or node.input[0] not in shapes:
            nodes.append(node)
            continue
        shape = shapes[node.input[0]].tolist()
        kind, place = used_as[node.output[0]]
        if place == 1 and kind in ("Conv", "Gemm", "MatMul"):
            # A last layer ten times smaller: else the softmax after it is 0 and 1, and any two engines agree on that.
            fan_in, gain = int(np.prod(shape[1:])), 0.1 if kind == "Gemm" or 1000 in shape else 1.0
            values = rng.normal(0, gain * np.sqrt(2 / fan_in), shape)
        elif kind == "BatchNormalization" and place == 1:  # scale; three in a row around which activations are added
            values = rng.uniform(0.3, 0.7, shape)
        elif kind == "BatchNormalization" and place == 4:  # variance
            values = rng.uniform(0.5, 1.0, shape)
        else:
            values = rng.normal(0, 0.05, shape)
        graph.initializer.append(numpy_helper.from_array(values.astype(np.float32), node.output[0]))
        gone.add(node.input[0])
    del graph.node[:]
    graph.node.extend(nodes)
    kept = [value for value in graph.initializer if value.name not in gone]
    del graph.initializer[:]
    graph.initializer.extend(kept)
    # A weight that is an input, too, may be overridden by the caller: ONNX Runtime would not fold it, and lose.
    constant = gone | {value.name for value in kept}
    kept = [value for value in graph.input if value.name not in constant]
    del graph.input[:]
    graph.input.extend(kept)
    proto.ir_version = max(proto.ir_version, 4)  # from 4 on an initializer need not be an input
    onnx.checker.check_model(proto)
    return proto


def _chain(steps: Callable, width: int):
    """A float32 model of 200 dependent operators over (1, width); steps(i) gives (operator, constant or None)."""
    from onnx import TensorProto, helper, numpy_helper

    nodes, weights, value = [], [], "x"
    for i in range(200):
        kind, constant = steps(i)
        inputs = [value]
        if constant is not None:
            weights.append(numpy_helper.from_array(constant.astype(np.float32), f"c{i}"))
            inputs.append(f"c{i}")
        value = f"v{i}" if i < 199 else "y"
        nodes.append(helper.make_node(kind, inputs, [value]))
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, width]) for name in "xy"]
    graph = helper.make_graph(nodes, "opchain", info[:1], info[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _opchain():
    """Elementwise operators, which a compiler may fuse."""
    rng = np.random.default_rng(0)

    def step(i):
        kind = ("Add", "Mul", "Sub", "Sigmoid", "Add", "Mul", "Max", "Tanh")[i % 8]
        return kind, None if kind in ("Sigmoid", "Tanh") else rng.uniform(0.5, 1.5, (1, 16))

    return _chain(step, 16)


def _opchain_dense():
    """Tiny matrix products, each followed by a softmax or a tanh: what is left of dispatch when little can be fused."""
    rng = np.random.default_rng(0)

    def step(i):
        return ("MatMul", rng.normal(0, 0.25, (16, 16))) if i % 2 == 0 else (("Softmax", "Tanh")[i // 2 % 2], None)

    return _chain(step, 16)


def _mlp():
    from onnx import TensorProto, helper, numpy_helper

    rng, sizes = np.random.default_rng(0), (784, 512, 512, 10)
    nodes, weights, value = [], [], "x"
    for i, (wide, out) in enumerate(zip(sizes[:-1], sizes[1:], strict=True)):
        weights.append(numpy_helper.from_array(rng.normal(0, np.sqrt(2 / wide), (wide, out)).astype(np.float32), f"w{i}"))
        weights.append(numpy_helper.from_array(rng.normal(0, 0.05, out).astype(np.float32), f"b{i}"))
        last = i == len(sizes) - 2
        nodes.append(helper.make_node("Gemm", [value, f"w{i}", f"b{i}"], ["y" if last else f"g{i}"]))
        if not last:
            nodes.append(helper.make_node("Relu", [f"g{i}"], [f"r{i}"]))
            value = f"r{i}"
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, s]) for n, s in (("x", 784), ("y", 10)))
    return helper.make_model(helper.make_graph(nodes, "mlp", [x], [y], weights), opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _minilm(seq: int) -> Model:
    from baton.demo import DemoError
    from baton.demo.minilm import find_minilm

    try:
        path = find_minilm().onnx_file()
    except DemoError as error:
        raise SystemExit(f"error: {error}\n  help: {error.help}") from None
    ids = np.random.default_rng(0).integers(1000, 30000, (1, seq))
    ids[0, 0], ids[0, -1] = 101, 102  # [CLS] and [SEP]
    return Model("minilm" if seq == 128 else f"minilm{seq}", path, {"input_ids": ids, "attention_mask": np.ones_like(ids)})


class _RandomBert:
    """BERT-base's sizes with seeded weights, for `write_onnx`: the time does not depend on values."""

    def __init__(self):
        from baton.demo.minilm import Config

        self.config = Config(768, 3072, 12, 12, 512, 30522, 1e-12)

    def weight(self, name: str) -> np.ndarray:
        c, kind = self.config, name.rsplit(".", 1)[1]
        inner = c.intermediate_size if ".intermediate." in name else c.hidden_size
        if "_embeddings." in name:
            rows = {"word": c.vocab_size, "position": c.max_position_embeddings, "token": 2}[name.split(".")[1].split("_")[0]]
            shape: tuple[int, ...] = (rows, c.hidden_size)
        elif kind == "bias" or ".LayerNorm." in name:
            shape = (inner,)
        else:
            wide = name.endswith(".output.dense.weight") and ".attention." not in name
            shape = (inner, c.intermediate_size if wide else c.hidden_size)
        values = np.random.default_rng(list(name.encode())).standard_normal(shape, np.float32) * np.float32(0.03)
        return values + 1 if ".LayerNorm.weight" in name else values


def _bert() -> Model:
    from baton.demo.minilm import write_onnx

    path = _folder() / f"bert-v{_FORMAT}.onnx"
    if not path.exists():
        write_onnx(_RandomBert(), path)
    ids = np.random.default_rng(0).integers(1000, 30000, (1, 128))
    return Model("bert", path, {"input_ids": ids, "attention_mask": np.ones_like(ids)})


def _light(name: str) -> Model:
    path = _light_file(name)
    return Model(f"light_{name}", path, _image_inputs(path))


def _random_light(name: str) -> Model:
    path = _write(name, functools.partial(_with_random_weights, name))
    return Model(name, path, _image_inputs(path))


def _small(name: str, build: Callable, width: int) -> Model:
    x = np.random.default_rng(1).uniform(-1, 1, (1, width)).astype(np.float32)
    return Model(name, _write(name, build), {"x": x})


def _conv_stack(shape: tuple[int, ...], layers: list[tuple[int, int, int]]):
    """Convolutions (output channels, edge of the window, stride), each with a bias and a ReLU."""
    from onnx import TensorProto, helper, numpy_helper

    rng, space = np.random.default_rng(0), len(shape) - 2
    nodes, weights, value, channels = [], [], "x", shape[1]
    for i, (out, edge, stride) in enumerate(layers):
        size = (out, channels, *[edge] * space)
        for name, array in ((f"w{i}", rng.normal(0, np.sqrt(2 / np.prod(size[1:])), size)), (f"b{i}", rng.normal(0, 0.05, out))):
            weights.append(numpy_helper.from_array(array.astype(np.float32), name))
        nodes.append(helper.make_node("Conv", [value, f"w{i}", f"b{i}"], [f"c{i}"], strides=[stride] * space, pads=[edge // 2] * (2 * space)))
        value, channels = f"v{i}" if i < len(layers) - 1 else "y", out
        nodes.append(helper.make_node("Relu", [f"c{i}"], [value]))
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "convs", [x], [y], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _convs(name: str, shape: tuple[int, ...], layers: list[tuple[int, int, int]]) -> Model:
    x = np.random.default_rng(1).standard_normal(shape, dtype=np.float32)
    return Model(name, _write(name, functools.partial(_conv_stack, shape, layers)), {"x": x})


def _image_net(name: str) -> Model:
    path = _write(name, getattr(mobile, name))
    return Model(name, path, _image_inputs(path))


def _with_open_sides(path: Path):
    """An image model with open batch, height and width; its last pool is over the whole image, whatever its size."""
    import onnx
    from onnx import helper

    proto = onnx.load(path)
    graph = proto.graph
    last = max((i for i, node in enumerate(graph.node) if node.op_type == "AveragePool"), default=-1)
    for i, node in enumerate(graph.node):
        if i == last:
            node.CopyFrom(helper.make_node("GlobalAveragePool", node.input, node.output))
        elif node.op_type == "Reshape":
            node.CopyFrom(helper.make_node("Flatten", node.input[:1], node.output))
    weights = {tensor.name for tensor in graph.initializer}
    for value in (*graph.input, *graph.output):
        names = ("batch", None, "height", "width") if value.name not in weights and value in graph.input else ("batch",)
        for dim, name in zip(value.type.tensor_type.shape.dim, names, strict=False):
            if name:
                dim.dim_param = name
    del graph.value_info[:]
    return proto


def open_file(model: Model) -> Path:
    """The network with open dimensions: `batch` and `seq` of an encoder, `batch`, `height` and `width` of an image model."""
    if "input_ids" in model.inputs:
        return model.path
    return _write(f"{model.name}-open", functools.partial(_with_open_sides, model.path))


_BUILDERS: dict[str, Callable[[], Model]] = {
    "minilm": functools.partial(_minilm, 128),
    "minilm16": functools.partial(_minilm, 16),
    "bert": _bert,
    **{name: functools.partial(_image_net, name) for name in MOBILE},
    **{name: functools.partial(_random_light, name) for name in RANDOM},
    "conv1d": functools.partial(_convs, "conv1d", (1, 64, 1000), [(128, 5, 1), (128, 5, 2), (256, 3, 1), (256, 3, 2)]),
    "conv3d": functools.partial(_convs, "conv3d", (1, 3, 8, 56, 56), [(32, 3, 1), (64, 3, 2), (64, 3, 1), (128, 3, 2)]),
    "opchain": functools.partial(_small, "opchain", _opchain, 16),
    "opchain_dense": functools.partial(_small, "opchain_dense", _opchain_dense, 16),
    "mlp": functools.partial(_small, "mlp", _mlp, 784),
    **{f"light_{name}": functools.partial(_light, name) for name in LIGHT},
}
NAMES = tuple(_BUILDERS)


def load(name: str) -> Model:
    """A model by name; a path of an ONNX file with static input shapes is taken too."""
    if name in _BUILDERS:
        return _BUILDERS[name]()
    if name.endswith(".onnx") and Path(name).is_file():
        return Model(Path(name).stem, Path(name), _image_inputs(Path(name)))
    raise SystemExit(f"error: no model `{name}`; there are {', '.join(NAMES)}, or give the path of an ONNX file")


def selection(text: str) -> list[str]:
    """The names in a comma-separated list; `headline`, `light` and `all` stand for several."""
    groups = {"headline": HEADLINE, "light": tuple(n for n in NAMES if n.startswith("light_")), "all": NAMES}
    out = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        out += [name for name in groups.get(part, (part,)) if name not in out]
    return out


if __name__ == "__main__":
    for each in NAMES:
        found = load(each)
        shapes = ", ".join(f"{name} {list(array.shape)}" for name, array in found.inputs.items())
        print(f"{each:<20} {shapes:<50} {found.path}")

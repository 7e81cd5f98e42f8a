# SPDX-License-Identifier: Apache-2.0
"""Networks for small devices as exporters write them: batch normalisation folded, weights random. Each function gives an ONNX model of one image
`x`. Values that a function reads twice (x * sigmoid(x), a gate of a block) are what these networks ask of quantized programs.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


class _Graph:
    def __init__(self):
        self.rng, self.nodes, self.weights = np.random.default_rng(0), [], []

    def const(self, array, dtype=np.float32) -> str:
        from onnx import numpy_helper

        self.weights.append(numpy_helper.from_array(np.asarray(array, dtype), f"w{len(self.weights)}"))
        return self.weights[-1].name

    def op(self, kind: str, *inputs: str, **attrs) -> str:
        from onnx import helper

        self.nodes.append(helper.make_node(kind, inputs, [f"v{len(self.nodes)}"], **attrs))
        return self.nodes[-1].output[0]

    def conv(self, x: str, channels: int, out: int, edge=1, stride=1, group=1) -> str:
        shape = (out, channels // group, edge, edge)
        w = self.const(self.rng.normal(0, np.sqrt(2 / np.prod(shape[1:])), shape))
        b = self.const(self.rng.normal(0, 0.05, out))
        return self.op("Conv", x, w, b, kernel_shape=[edge] * 2, strides=[stride] * 2, pads=[edge // 2] * 4, group=group)

    def dense(self, x: str, width: int, out: int) -> str:
        w = self.const(self.rng.normal(0, 0.1 * np.sqrt(2 / width), (out, width)))
        return self.op("Gemm", x, w, self.const(np.zeros(out)), transB=1)

    def silu(self, x: str) -> str:
        return self.op("Mul", x, self.op("Sigmoid", x))

    def gate(self, x: str, channels: int, inner: int, middle: Callable, last: str) -> str:
        """A factor for each channel (Hu et al., 2018)."""
        y = self.op("GlobalAveragePool", x)
        y = self.conv(middle(self.conv(y, channels, inner)), inner, channels)
        return self.op("Mul", x, self.op(last, y))

    def model(self, name: str, side: int, outputs: list[str]):
        from onnx import TensorProto, helper

        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 3, side, side))
        ys = [helper.make_tensor_value_info(y, TensorProto.FLOAT, None) for y in outputs]
        graph = helper.make_graph(self.nodes, name, [x], ys, self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def mobilenet_v2():
    """Sandler et al., 2018, table 2."""
    g = _Graph()
    zero, six = g.const(0), g.const(6)

    def clipped(*args) -> str:
        return g.op("Clip", g.conv(*args), zero, six)

    x, channels = clipped("x", 3, 32, 3, 2), 32
    for wider, out, count, stride in [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]:
        for i in range(count):
            step, inner = stride if i == 0 else 1, wider * channels
            y = clipped(x, channels, inner) if wider > 1 else x
            y = g.conv(clipped(y, inner, inner, 3, step, inner), inner, out)
            x, channels = g.op("Add", x, y) if step == 1 and channels == out else y, out
    x = g.op("Flatten", g.op("GlobalAveragePool", clipped(x, channels, 1280)))
    return g.model("mobilenet_v2", 224, [g.dense(x, 1280, 1000)])


def mobilenet_v3():
    """MobileNetV3-Large: Howard et al., 2019, table 1."""
    g = _Graph()

    def hard(x: str) -> str:
        return g.op("HardSwish", x)

    def relu(x: str) -> str:
        return g.op("Relu", x)

    x, channels = hard(g.conv("x", 3, 16, 3, 2)), 16
    for edge, inner, out, gated, act, stride in [
        (3, 16, 16, False, relu, 1),
        (3, 64, 24, False, relu, 2),
        (3, 72, 24, False, relu, 1),
        (5, 72, 40, True, relu, 2),
        (5, 120, 40, True, relu, 1),
        (5, 120, 40, True, relu, 1),
        (3, 240, 80, False, hard, 2),
        (3, 200, 80, False, hard, 1),
        (3, 184, 80, False, hard, 1),
        (3, 184, 80, False, hard, 1),
        (3, 480, 112, True, hard, 1),
        (3, 672, 112, True, hard, 1),
        (5, 672, 160, True, hard, 2),
        (5, 960, 160, True, hard, 1),
        (5, 960, 160, True, hard, 1),
    ]:
        y = act(g.conv(x, channels, inner)) if inner != channels else x
        y = act(g.conv(y, inner, inner, edge, stride, inner))
        if gated:
            y = g.gate(y, inner, (inner // 4 + 4) // 8 * 8, relu, "HardSigmoid")
        y = g.conv(y, inner, out)
        x, channels = g.op("Add", x, y) if stride == 1 and channels == out else y, out
    x = g.op("Flatten", g.op("GlobalAveragePool", hard(g.conv(x, channels, 960))))
    return g.model("mobilenet_v3", 224, [g.dense(hard(g.dense(x, 960, 1280)), 1280, 1000)])


def efficientnet():
    """EfficientNet-B0: Tan and Le, 2019, table 1."""
    g = _Graph()
    x, channels = g.silu(g.conv("x", 3, 32, 3, 2)), 32
    for wider, edge, out, count, stride in [
        (1, 3, 16, 1, 1),
        (6, 3, 24, 2, 2),
        (6, 5, 40, 2, 2),
        (6, 3, 80, 3, 2),
        (6, 5, 112, 3, 1),
        (6, 5, 192, 4, 2),
        (6, 3, 320, 1, 1),
    ]:
        for i in range(count):
            step, inner = stride if i == 0 else 1, wider * channels
            y = g.silu(g.conv(x, channels, inner)) if wider > 1 else x
            y = g.silu(g.conv(y, inner, inner, edge, step, inner))
            y = g.conv(g.gate(y, inner, channels // 4, g.silu, "Sigmoid"), inner, out)
            x, channels = g.op("Add", x, y) if step == 1 and channels == out else y, out
    x = g.op("Flatten", g.op("GlobalAveragePool", g.silu(g.conv(x, channels, 1280))))
    return g.model("efficientnet", 224, [g.dense(x, 1280, 1000)])


def detector():
    """A one-stage detector in the manner of YOLO: stages whose halves are joined, a pyramid of pools, features of three sizes."""
    g = _Graph()

    def block(x: str, channels: int, out: int, edge=1, stride=1) -> str:
        return g.silu(g.conv(x, channels, out, edge, stride))

    def stage(x: str, channels: int, out: int, count: int, adds: bool) -> str:
        half = out // 2
        halves = g.op("Split", block(x, channels, out), g.const([half, half], np.int64), axis=1)
        other = f"{halves}b"
        g.nodes[-1].output.append(other)
        parts = [halves, other]
        for _ in range(count):
            y = block(block(parts[-1], half, half, 3), half, half, 3)
            parts.append(g.op("Add", parts[-1], y) if adds else y)
        return block(g.op("Concat", *parts, axis=1), half * (count + 2), out)

    def wider(x: str) -> str:
        return g.op("Resize", x, "", g.const([1, 1, 2, 2]), mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")

    x = block(block("x", 3, 16, 3, 2), 16, 32, 3, 2)
    x = block(stage(x, 32, 32, 1, True), 32, 64, 3, 2)
    eighth = stage(x, 64, 64, 2, True)
    sixteenth = stage(block(eighth, 64, 128, 3, 2), 128, 128, 2, True)
    x = stage(block(sixteenth, 128, 256, 3, 2), 256, 256, 1, True)
    pools = [block(x, 256, 128)]
    for _ in range(3):
        pools.append(g.op("MaxPool", pools[-1], kernel_shape=[5, 5], strides=[1, 1], pads=[2] * 4))
    last = block(g.op("Concat", *pools, axis=1), 512, 256)
    middle = stage(g.op("Concat", wider(last), sixteenth, axis=1), 384, 128, 1, False)
    small = stage(g.op("Concat", wider(middle), eighth, axis=1), 192, 64, 1, False)
    middle = stage(g.op("Concat", block(small, 64, 64, 3, 2), middle, axis=1), 192, 128, 1, False)
    large = stage(g.op("Concat", block(middle, 128, 128, 3, 2), last, axis=1), 384, 256, 1, False)
    heads = [g.conv(block(block(y, c, 64, 3), 64, 64, 3), 64, 64) for y, c in ((small, 64), (middle, 128), (large, 256))]
    rows = [g.op("Reshape", y, g.const([1, 64, -1], np.int64)) for y in heads]
    return g.model("detector", 320, [g.op("Concat", *rows, axis=2)])

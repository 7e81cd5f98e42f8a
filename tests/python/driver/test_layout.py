# SPDX-License-Identifier: Apache-2.0
"""Convolutional networks with random weights: the layout of the whole graph, folded scales and fusion change no result."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

import baton  # noqa: E402


class Net:
    """Builds an ONNX graph node by node; weights are random but repeatable."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.weights, self.count = [], [], 0

    def weight(self, *shape, low=-0.5, high=0.5):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(self.rng.uniform(low, high, shape).astype(np.float32), name))
        return name

    def add(self, op, *inputs, **attrs):
        self.count += 1
        self.nodes.append(helper.make_node(op, list(inputs), [f"v{self.count}"], **attrs))
        return f"v{self.count}"

    def conv(self, x, cin, cout, k, group=1, bias=True, **attrs):
        weights = [self.weight(cout, cin // group, k, k)] + ([self.weight(cout)] if bias else [])
        return self.add("Conv", x, *weights, kernel_shape=[k, k], group=group, **attrs)

    def norm(self, x, c):
        return self.add("BatchNormalization", x, self.weight(c), self.weight(c), self.weight(c), self.weight(c, low=0.5, high=2))

    def model(self, shape, out):
        graph = helper.make_graph(
            self.nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info(out, TensorProto.FLOAT, None)], self.weights,
        )  # fmt: skip
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def residual(n):
    x = n.add("Relu", n.norm(n.conv("x", 3, 32, 7, strides=[2, 2], pads=[3, 3, 3, 3], bias=False), 32))
    x = n.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    y = n.add("Relu", n.norm(n.conv(x, 32, 32, 3, pads=[1, 1, 1, 1], bias=False), 32))
    y = n.norm(n.conv(y, 32, 48, 1), 48)
    x = n.add("Relu", n.add("Add", y, n.norm(n.conv(x, 32, 48, 1), 48)))
    x = n.add("GlobalAveragePool", n.conv(x, 48, 40, 1))
    return n.add("Gemm", n.add("Flatten", x), n.weight(10, 40), n.weight(10), transB=1)


def concatenated(n):
    x = n.conv("x", 3, 16, 3, pads=[1, 1, 1, 1])
    parts = [x]
    for _ in range(3):
        y = n.add("Concat", *parts, axis=1) if len(parts) > 1 else x
        y = n.add("Relu", n.norm(y, 16 * len(parts)))
        parts.append(n.conv(y, 16 * len(parts), 16, 3, pads=[1, 1, 1, 1]))
    return n.add("AveragePool", n.add("Concat", *parts, axis=1), kernel_shape=[2, 2], strides=[2, 2])


def separable(n):
    x = n.add(
        "Clip",
        n.conv("x", 3, 24, 3, strides=[2, 2], pads=[1, 1, 1, 1]),
        n.weight(1, low=0, high=0.01),
        n.weight(1, low=5, high=6),
    )
    x = n.conv(n.conv(x, 24, 24, 3, group=24, pads=[1, 1, 1, 1]), 24, 64, 1)
    x = n.add("Sigmoid", n.conv(x, 64, 64, 5, group=64, pads=[2, 2, 2, 2], strides=[2, 2]))
    return n.add("Mul", x, n.add("GlobalMaxPool", x))


def odd(n):
    x = n.add("Relu", n.conv("x", 3, 20, 3, dilations=[2, 2]))
    x = n.conv(x, 20, 7, 1)  # no block divides 7
    x = n.conv(x, 7, 32, 3, pads=[0, 1, 2, 1])
    return n.conv(n.add("LeakyRelu", x), 32, 36, 1, group=2, strides=[2, 1])


@pytest.mark.parametrize("build", [residual, concatenated, separable, odd], ids=lambda f: f.__name__)
@pytest.mark.parametrize("batch", [1, 2])
def test_levels_agree(build, batch):
    net = Net(batch)
    model = net.model([batch, 3, 37, 29], build(net))
    x = np.random.default_rng(7).uniform(-1, 1, (batch, 3, 37, 29)).astype(np.float32)
    from onnx.reference import ReferenceEvaluator

    want = ReferenceEvaluator(model).run(None, {"x": x})[0]
    for level in (0, 1, 3):
        got = baton.compile(model, opt_level=level)(x).numpy()
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4 * np.abs(want).max(), err_msg=f"opt_level {level}")

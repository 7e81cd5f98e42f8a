# SPDX-License-Identifier: Apache-2.0
"""Small ONNX files, good and bad."""

from onnx import TensorProto, helper, numpy_helper


def value(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def node(kind, inputs, outputs, **attrs):
    return helper.make_node(kind, inputs, outputs, name=f"node_{outputs[0]}", **attrs)


def write(path, nodes, weights=(), inputs=None, outputs=None, opset=17):
    graph = helper.make_graph(
        nodes, "g", inputs or [value("x", [1, 4])], outputs or [value("y", [1, 4])],
        [numpy_helper.from_array(array, name) for name, array in weights],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return path

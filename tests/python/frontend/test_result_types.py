# SPDX-License-Identifier: Apache-2.0
"""Types of results of nodes that wait for run time: from Relay's relations of operands that are known by their types alone."""

import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("baton._core", reason="the extension is not built")
from onnx import TensorProto as T  # noqa: E402
from onnx import helper  # noqa: E402

import baton  # noqa: E402
from baton import relay  # noqa: E402

F, INT, B = T.FLOAT, T.INT64, T.BOOL
X, S = (F, ["a", "b", 3]), (INT, [])


def L(n):
    """A list of n integers; a name is a length that is not known."""
    return (INT, [n])


def row(op, operands, want, nout=1, opset=21, **attrs):
    """`want`: the type; None: the node is refused, since nothing says the rank."""
    return pytest.param(op, operands, want, nout, opset, attrs, id=f"{op}-{len(operands)}-{want}")


ROWS = [
    row("Slice", [X, L(2), L(2)], "Tensor[(?, ?, ?), float32]"),
    row("Slice", [X, L(2), L(2), L(2), L(2)], "Tensor[(?, ?, ?), float32]"),
    row("Pad", [X, L(6)], "Tensor[(?, ?, ?), float32]"),
    row("Tile", [X, L(3)], "Tensor[(?, ?, ?), float32]"),
    row("Tile", [X, L("n")], "Tensor[(?, ?, ?), float32]"),
    row("Resize", [(F, ["n", 3, 8, 8]), None, (F, [4])], "Tensor[(?, ?, ?, ?), float32]", mode="nearest"),
    row("Resize", [(F, ["n", 3, 8, 8]), None, None, L(4)], "Tensor[(?, ?, ?, ?), float32]"),
    row("Upsample", [(F, [1, 3, 8, 8]), (F, [4])], "Tensor[(?, ?, ?, ?), float32]", opset=9),
    row("CenterCropPad", [X, L(3)], "Tensor[(?, ?, ?), float32]"),
    row("MaxUnpool", [(F, ["n", 1, 2, 2]), (INT, ["n", 1, 2, 2])], "Tensor[(?, ?, ?, ?), float32]", kernel_shape=[2, 2]),
    row("CumSum", [X, S], "Tensor[(?, ?, 3), float32]"),
    row("CumSum", [X, L(1)], "Tensor[(?, ?, 3), float32]"),
    row("Trilu", [X, S], "Tensor[(?, ?, 3), float32]"),
    row("Trilu", [X], "Tensor[(?, ?, 3), float32]"),
    row("Dropout", [X, (F, []), (B, [])], "Tensor[(?, ?, 3), float32]"),
    row("Dropout", [X, (F, []), (B, [])], None, nout=2),
    row("Softmax", [X], "Tensor[(?, ?, 3), float32]", opset=11),
    row("LogSoftmax", [X], "Tensor[(?, ?, 3), float32]", opset=11),
    row("Hardmax", [X], "Tensor[(?, ?, 3), float32]", opset=11),
    row("ScatterElements", [X, (INT, [1, 2, 3]), (F, [1, 2, 3])], "Tensor[(?, ?, 3), float32]"),
    row("ScatterND", [X, (INT, [4, 1]), (F, [4, "b", 3])], "Tensor[(?, ?, 3), float32]"),
    row("TensorScatter", [(F, ["b", 4, 8, 2]), (F, ["b", 4, 1, 2]), L("b")], "Tensor[(?, 4, 8, 2), float32]", opset=24),
    row("GroupNormalization", [(F, ["n", 4, "h"]), (F, [4]), (F, [4])], "Tensor[(?, 4, ?), float32]", num_groups=2),
    row("QuantizeLinear", [X, (F, [3]), (T.INT16, [3])], "Tensor[(?, ?, ?), int16]", axis=2),
    row("QuantizeLinear", [X, (F, [3])], "Tensor[(?, ?, ?), uint16]", axis=2, output_dtype=T.UINT16),
    row("QuantizeLinear", [X, (F, [3])], "Tensor[(?, ?, ?), int16]", axis=2, output_dtype=T.INT16),
    row("Reshape", [X, L(2)], "Tensor[(?, ?), float32]"),
    row("Reshape", [X, L("n")], None),
    row("Reshape", [X, S], "Tensor[(?), float32]"),
    row("Expand", [X, L(3)], "Tensor[(?, ?, 3), float32]"),
    row("Expand", [X, L(2)], "Tensor[(?, ?, 3), float32]"),
    row("Expand", [(F, [1, 3]), L(4)], "Tensor[(?, ?, ?, 3), float32]"),
    row("Expand", [X, L("n")], None),
    row("ConstantOfShape", [L(3)], "Tensor[(?, ?, ?), float32]"),
    row("ConstantOfShape", [L(2)], "Tensor[(?, ?), int32]", value=helper.make_tensor("v", T.INT32, [1], [7])),
    row("ConstantOfShape", [L("n")], None),
    row("Range", [S, S, S], "Tensor[(?), int64]"),
    row("Range", [(F, [])] * 3, "Tensor[(?), float32]"),
    row("Unsqueeze", [X, L(2)], "Tensor[(?, ?, ?, ?, ?), float32]"),
    row("Unsqueeze", [X, S], "Tensor[(?, ?, ?, ?), float32]"),
    row("Squeeze", [(F, ["a", 1, 3, 1]), L(2)], "Tensor[(?, ?), float32]"),
    row("Unsqueeze", [X, L("n")], None),
    row("Split", [X, L(2)], "(Tensor[(?, ?, ?), float32], Tensor[(?, ?, ?), float32])", nout=2, axis=0),
    row("Split", [X], "(Tensor[(?, ?, ?), float32], Tensor[(?, ?, ?), float32], Tensor[(?, ?, ?), float32])", nout=3, axis=1, num_outputs=3),
    row("TopK", [X, L(1)], "(Tensor[(?, ?, ?), float32], Tensor[(?, ?, ?), int64])", nout=2),
    row("TopK", [X, L(1)], "(Tensor[(?, ?, ?), float32], Tensor[(?, ?, ?), int64])", nout=2, axis=0),
    row("OneHot", [(INT, ["n", 2]), S, (F, [2])], "Tensor[(?, ?, ?), float32]"),
    row("OneHot", [(F, ["n", 2]), S, (INT, [2])], "Tensor[(?, ?, ?), int64]"),
    row("Flatten", [(F, ["a", "b", "c"])], "Tensor[(?, ?), float32]", axis=1),
    row("Conv", [(F, ["n", 3, "h", "w"]), (F, ["o", 3, 3, 3])], "Tensor[(?, ?, ?, ?), float32]"),
    row("Conv", [(F, ["n", 3, "w"]), (F, ["o", "i", "k"])], "Tensor[(?, ?, ?), float32]"),
    row("ConvTranspose", [(F, ["n", 3, "h", "w"]), (F, [3, 4, 2, 2])], "Tensor[(?, ?, ?, ?), float32]"),
    row("AveragePool", [(F, ["n", 3, "h", "w"])], "Tensor[(?, ?, ?, ?), float32]", kernel_shape=[2, 2], strides=[2, 2], auto_pad="SAME_LOWER"),
    row("DepthToSpace", [(F, ["n", 4, "h", "w"])], "Tensor[(?, ?, ?, ?), float32]", blocksize=2),
    row("SpaceToDepth", [(F, ["n", 4, "h", "w"])], "Tensor[(?, ?, ?, ?), float32]", blocksize=2),
    row("Col2Im", [(F, [1, "c", 16]), L(2), L(2)], "Tensor[(?, ?, ?, ?), float32]"),
    row("AffineGrid", [(F, ["n", 2, 3]), L(4)], "Tensor[(?, ?, ?, ?), float32]"),
    row("AffineGrid", [(F, ["n", 3, 4]), L(5)], "Tensor[(?, ?, ?, ?, ?), float32]"),
    row("DFT", [(F, ["n", "m", 1]), S, S], "Tensor[(?, ?, ?), float32]", opset=20),
    row("EyeLike", [(F, ["n", "m"])], "Tensor[(?, ?), float32]"),
    row("EyeLike", [(F, ["n", "m"])], "Tensor[(?, ?), int64]", dtype=T.INT64),
    row("STFT", [(F, ["n", "m", 1]), S, (F, ["w"])], "Tensor[(?, ?, ?, ?), float32]"),
    row("ReduceSum", [X, L(1)], "Tensor[(?, ?, ?), float32]"),
    row("ReduceSum", [X, L(2)], "Tensor[(?), float32]", keepdims=0),
    row("ReduceSum", [X, L("n")], None, keepdims=0),
    row("ReduceSum", [X, L("n")], "Tensor[(?, ?, ?), float32]"),
    row("ReduceMax", [X, L(1)], "Tensor[(?, ?, ?), float32]"),
    row("ReduceMax", [X, L(2)], "Tensor[(?), float32]", keepdims=0),
    row("ReduceMax", [X, L("n")], None, keepdims=0),
    row("ReduceMax", [X, L("n")], "Tensor[(?, ?, ?), float32]"),
    row("ReduceMean", [X, L(1)], "Tensor[(?, ?, ?), float32]"),
    row("ReduceMean", [X, L(2)], "Tensor[(?), float32]", keepdims=0),
    row("ReduceMean", [X, L("n")], None, keepdims=0),
    row("ReduceMean", [X, L("n")], "Tensor[(?, ?, ?), float32]"),
    row("ReduceProd", [X, L(1)], "Tensor[(?, ?, ?), float32]"),
    row("ReduceProd", [X, L(2)], "Tensor[(?), float32]", keepdims=0),
    row("ReduceProd", [X, L("n")], None, keepdims=0),
    row("ReduceProd", [X, L("n")], "Tensor[(?, ?, ?), float32]"),
    row("ReduceL2", [X, L(1)], "Tensor[(?, ?, ?), float32]"),
    row("ReduceL2", [X, L(2)], "Tensor[(?), float32]", keepdims=0),
    row("ReduceL2", [X, L("n")], None, keepdims=0),
    row("ReduceL2", [X, L("n")], "Tensor[(?, ?, ?), float32]"),
    row("ReduceLogSumExp", [X, L(1)], "Tensor[(?, ?, ?), float32]"),
    row("ReduceLogSumExp", [X, L(2)], "Tensor[(?), float32]", keepdims=0),
    row("ReduceLogSumExp", [X, L("n")], None, keepdims=0),
    row("ReduceLogSumExp", [X, L("n")], "Tensor[(?, ?, ?), float32]"),
    row("ReduceMax", [(B, ["a", 2]), L(1)], "Tensor[(?), bool]", keepdims=0, opset=20),
]


def model_of(op, operands, nout, opset, attrs):
    names = [f"i{k}" if o else "" for k, o in enumerate(operands)]
    inputs = [helper.make_tensor_value_info(n, *o) for n, o in zip(names, operands, strict=True) if o]
    outputs = [f"o{j}" for j in range(nout)]
    graph = helper.make_graph([helper.make_node(op, names, outputs, **attrs)], "g", inputs, [helper.make_empty_tensor_value_info(o) for o in outputs])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


@pytest.mark.parametrize("op, operands, want, nout, opset, attrs", ROWS)
def test_type_of_a_node_that_waits(op, operands, want, nout, opset, attrs):
    model = model_of(op, operands, nout, opset, attrs)
    if want is None:
        with pytest.raises(baton.error.UnsupportedError, match="at compile time"):
            relay.frontend.from_onnx(model, freeze_params=True)
        return
    mod, _ = relay.frontend.from_onnx(model, freeze_params=True)
    assert "dyn.onnx" in mod.astext(show_meta_data=False)
    assert str(relay.transform.InferType()(mod)["main"].ret_type) == want


SIDES = [(F, ["n", 3, "h", "w"])]
POOLED = "Tensor[(?, 3, ?, ?), float32]"
KNOWN = [
    row("Conv", [*SIDES, (F, [4, 3, 3, 3])], "Tensor[(?, 4, ?, ?), float32]", auto_pad="SAME_UPPER"),
    row("MaxPool", SIDES, POOLED, kernel_shape=[2, 2], ceil_mode=1, strides=[2, 2]),
    row("MaxPool", SIDES, f"({POOLED}, Tensor[(?, 3, ?, ?), int64])", nout=2, kernel_shape=[2, 2], ceil_mode=1, strides=[2, 2]),
    row("AveragePool", SIDES, POOLED, kernel_shape=[2, 2], auto_pad="SAME_LOWER"),
]


@pytest.mark.parametrize("op, operands, want, nout, opset, attrs", KNOWN)
def test_type_of_a_node_with_open_sides(op, operands, want, nout, opset, attrs):
    """Formulas of the sides say the extents of the result: nothing waits for lengths."""
    mod, _ = relay.frontend.from_onnx(model_of(op, operands, nout, opset, attrs), freeze_params=True)
    assert "dyn.onnx" not in mod.astext(show_meta_data=False)
    assert str(relay.transform.InferType()(mod)["main"].ret_type) == want

# SPDX-License-Identifier: Apache-2.0
"""Writes tests/fuzz/corpus/onnx: small models that between them use every part of the schema and many operators.

Run it with the `onnx` package installed: python tests/fuzz/make_corpus.py
"""

import pathlib

import numpy as np
from onnx import TensorProto as T
from onnx import helper, numpy_helper

OUT = pathlib.Path(__file__).parent / "corpus/onnx"


def value(name, shape, elem=T.FLOAT):
    return helper.make_tensor_value_info(name, elem, shape)


def const(name, array):
    return numpy_helper.from_array(np.asarray(array), name)


def f32(*shape):
    return (np.arange(np.prod(shape), dtype=np.float32).reshape(shape) % 7 - 3) / 8


def model(name, nodes, inputs, outputs, init=(), functions=(), opset=17, imports=(), sparse=()):
    graph = helper.make_graph(nodes, name, inputs, outputs, list(init), sparse_initializer=list(sparse))
    made = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", opset), *imports],
        functions=list(functions),
        ir_version=10,
        producer_name="corpus",
    )
    (OUT / f"{name}.onnx").write_bytes(made.SerializeToString(deterministic=True))


def node(op, inputs, outputs, **attrs):
    return helper.make_node(op, inputs.split(" "), outputs.split(" "), **attrs)


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    model(
        "conv",
        [
            node("Conv", "x w b", "c", kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2]),
            node("BatchNormalization", "c s b m v", "n", epsilon=1e-3),
            node("Relu", "n", "r"),
            node("MaxPool", "r", "p", kernel_shape=[2, 2]),
            node("GlobalAveragePool", "p", "g"),
            node("Flatten", "g", "f"),
            node("Gemm", "f d e", "y", transB=1),
        ],
        [value("x", [1, 3, 8, 8])],
        [value("y", [1, 5])],
        [const("w", f32(4, 3, 3, 3)), const("b", f32(4)), const("s", f32(4)), const("m", f32(4))]
        + [const("v", np.ones(4, np.float32)), const("d", f32(5, 4)), const("e", f32(5))],
    )
    model(
        "shapes",
        [
            node("Shape", "x", "s"),
            node("Gather", "s i", "n", axis=0),
            node("Unsqueeze", "n z", "u"),
            node("Concat", "u m", "t", axis=0),
            node("Reshape", "x t", "r"),
            node("Transpose", "r", "p", perm=[1, 0]),
            node("Slice", "p z o z", "l"),
            node("Split", "l sp", "a b", axis=0),
            node("Expand", "a e", "y"),
        ],
        [value("x", ["batch", 3, 4])],
        [value("y", None)],
        [const(k, np.array(v, np.int64)) for k, v in
         dict(i=0, z=[0], m=[-1], o=[6], sp=[2, 4], e=[3, 2, 1]).items()],
    )
    model(
        "attention",
        [
            node("MatMul", "x w", "q"),
            node("Transpose", "q", "k", perm=[0, 2, 1]),
            node("MatMul", "q k", "a"),
            node("Softmax", "a", "p", axis=-1),
            node("MatMul", "p q", "o"),
            node("LayerNormalization", "o g g", "y", axis=-1),
        ],
        [value("x", [1, 4, 6])],
        [value("y", [1, 4, 6])],
        [const("w", f32(6, 6)), const("g", f32(6))],
    )
    branch = [
        helper.make_graph([node(op, "x", "r")], op, [], [value("r", None)]) for op in ("Neg", "Abs")
    ]
    model(
        "branch",
        [node("If", "c", "y", then_branch=branch[0], else_branch=branch[1])],
        [value("c", [], T.BOOL), value("x", [2])],
        [value("y", None)],
    )
    body = helper.make_graph(
        [node("Add", "v x", "w"), node("Identity", "c", "d"), node("Identity", "w", "s")],
        "body",
        [value("i", [], T.INT64), value("c", [], T.BOOL), value("v", [2])],
        [value("d", [], T.BOOL), value("w", [2]), value("s", [2])],
    )
    model(
        "loop",
        [node("Loop", "n c x", "y z", body=body)],
        [value("n", [], T.INT64), value("c", [], T.BOOL), value("x", [2])],
        [value("y", [2]), value("z", [None, 2])],
    )
    scan = helper.make_graph(
        [node("Add", "h e", "k"), node("Mul", "k k", "q")], "scan", [value("h", [2]), value("e", [2])],
        [value("k", [2]), value("q", [2])],
    )
    model(
        "scan",
        [node("Scan", "h x", "y z", body=scan, num_scan_inputs=1)],
        [value("h", [2]), value("x", [3, 2])],
        [value("y", [2]), value("z", [3, 2])],
    )
    sequence = helper.make_tensor_sequence_value_info
    model(
        "sequence",
        [
            node("SequenceConstruct", "x x", "s"),
            node("SequenceAt", "s i", "a"),
            node("SequenceInsert", "t a", "u"),
            node("ConcatFromSequence", "u", "y", axis=0),
        ],
        [value("x", [2]), sequence("t", T.FLOAT, None)],
        [value("y", None)],
        [const("i", np.array(1, np.int64))],
    )
    model(
        "quantized",
        [
            node("QuantizeLinear", "x s z", "q"),
            node("QLinearMatMul", "q s z w s z s z", "m"),
            node("DequantizeLinear", "m s z", "y"),
        ],
        [value("x", [2, 3])],
        [value("y", [2, 2])],
        [const("s", np.float32(0.1)), const("z", np.uint8(128)), const("w", np.arange(6, dtype=np.uint8).reshape(3, 2))],
    )
    kinds = [T.FLOAT, T.FLOAT16, T.DOUBLE, T.INT8, T.INT64, T.UINT4, T.INT4, T.BFLOAT16, T.FLOAT8E4M3FN, T.BOOL, T.UINT32]
    init = [helper.make_tensor(f"w{k}", k, [2], [1, 0]) for k in kinds]
    init.append(helper.make_tensor("text", T.STRING, [2], [b"a", b"bc"]))
    model(
        "types",
        [node("Cast", f"w{k}", f"y{k}", to=T.FLOAT) for k in kinds],
        [value("x", [2])],
        [value(f"y{k}", [2]) for k in kinds],
        init,
        opset=21,
    )
    function = helper.make_function(
        "d", "Twice", ["x"], ["y"],
        [
            node("Add", "x x", "a"),
            helper.make_node("LeakyRelu", ["a"], ["y"]),
        ],
        [helper.make_opsetid("", 17)],
        ["slope"],
    )
    alpha = helper.make_attribute("alpha", 0.5)
    alpha.ClearField("f")
    alpha.ref_attr_name = "slope"
    function.node[1].attribute.append(alpha)
    model(
        "function",
        [helper.make_node("Twice", ["x"], ["y"], domain="d", slope=0.25)],
        [value("x", [3])],
        [value("y", None)],
        functions=[function],
        imports=[helper.make_opsetid("d", 1)],
    )
    sparse = helper.make_sparse_tensor(const("w", f32(2)), const("w_i", np.array([1, 3], np.int64)), [4])
    model("sparse", [node("Add", "x w", "y")], [value("x", [4])], [value("y", [4])], sparse=[sparse])
    model(
        "recurrent",
        [node("LSTM", "x w r", "y h c", hidden_size=2)],
        [value("x", [3, 1, 2])],
        [value("y", None), value("h", None), value("c", None)],
        [const("w", f32(1, 8, 2)), const("r", f32(1, 8, 2))],
    )
    model(
        "reduce",
        [
            node("ReduceSum", "x a", "s", keepdims=0),
            node("ReduceMax", "x", "m", axes=[1]),
            node("ArgMax", "x", "i", axis=1),
            node("TopK", "x k", "t u", axis=1),
            node("CumSum", "x z", "c"),
            node("Pad", "x p", "q", mode="reflect"),
            node("Where", "b x m", "y"),
            node("Resize", "w  g", "r", mode="linear"),
        ],
        [value("x", [2, 3]), value("b", [2, 3], T.BOOL), value("w", [1, 1, 2, 2])],
        [value(k, None, t) for k, t in
         dict(s=T.FLOAT, i=T.INT64, t=T.FLOAT, u=T.INT64, c=T.FLOAT, q=T.FLOAT, y=T.FLOAT, r=T.FLOAT).items()],
        [const("a", np.array([0], np.int64)), const("k", np.array([2], np.int64)), const("z", np.array(1, np.int64))]
        + [const("p", np.array([0, 1, 0, 1], np.int64)), const("g", np.array([1, 1, 2, 2], np.float32))],
    )
    for path in sorted(OUT.glob("*.onnx")):
        print(path.stat().st_size, path.name)


if __name__ == "__main__":
    main()

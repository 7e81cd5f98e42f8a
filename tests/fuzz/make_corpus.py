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
        [const(k, np.array(v, np.int64)) for k, v in dict(i=0, z=[0], m=[-1], o=[6], sp=[2, 4], e=[3, 2, 1]).items()],
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
    branch = [helper.make_graph([node(op, "x", "r")], op, [], [value("r", None)]) for op in ("Neg", "Abs")]
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
        [node("Add", "h e", "k"), node("Mul", "k k", "q")],
        "scan",
        [value("h", [2]), value("e", [2])],
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
        "d",
        "Twice",
        ["x"],
        ["y"],
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
        [value(k, None, t) for k, t in dict(s=T.FLOAT, i=T.INT64, t=T.FLOAT, u=T.INT64, c=T.FLOAT, q=T.FLOAT, y=T.FLOAT, r=T.FLOAT).items()],
        [const("a", np.array([0], np.int64)), const("k", np.array([2], np.int64)), const("z", np.array(1, np.int64))]
        + [const("p", np.array([0, 1, 0, 1], np.int64)), const("g", np.array([1, 1, 2, 2], np.float32))],
    )
    # Operators whose results are as large as numbers in the file say.
    ints = lambda **more: [const(k, np.array(v, np.int64)) for k, v in more.items()]  # noqa: E731
    image = [value("x", [1, 4, 6, 6])]

    def outputs(**types):
        return [value(name, None, elem) for name, elem in types.items()]

    model(
        "sizes",
        [
            node("Tile", "x t", "a"),
            node("Expand", "x e", "b"),
            node("ConstantOfShape", "s", "c"),
            node("Range", "r0 r1 r2", "d"),
            node("OneHot", "i n v", "e1", axis=1),
            node("CenterCropPad", "x k", "f", axes=[0, 1]),
            node("EyeLike", "x", "g", k=1, dtype=T.INT64),
            node("Trilu", "x k0", "h", upper=0),
            node("SplitToSequence", "x sp", "q", axis=1),
            node("SequenceAt", "q k0", "j"),
            node("GatherND", "x gi", "l", batch_dims=0),
            node("Einsum", "x x", "o", equation="ij,kj->ik"),
        ],
        [value("x", [2, 3])],
        outputs(a=T.FLOAT, b=T.FLOAT, c=T.FLOAT, d=T.INT64, e1=T.FLOAT, f=T.FLOAT, g=T.INT64, h=T.FLOAT, j=T.FLOAT, l=T.FLOAT, o=T.FLOAT),
        ints(t=[1, 2], e=[2, 2, 3], s=[2, 3], r0=0, r1=10, r2=3, i=[0, 2], n=4, k=[3, 2], k0=1, sp=2, gi=[[0, 1], [1, 2]])
        + [const("v", np.array([0, 1], np.float32))],
        opset=18,
    )
    model(
        "pools",
        [
            node("MaxPool", "x", "a ai", kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1, storage_order=1),
            node("MaxUnpool", "a ai", "b", kernel_shape=[2, 2], strides=[2, 2]),
            node("AveragePool", "x", "c", kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1, pads=[0, 1, 0, 1]),
            node("LpPool", "x", "d", kernel_shape=[2, 2], p=3, dilations=[2, 1], auto_pad="SAME_UPPER"),
            node("ConvTranspose", "x w", "e", strides=[2, 2], output_padding=[1, 1], output_shape=[12, 12]),
            node("Col2Im", "cols im bl", "f", pads=[0, 0, 0, 0], strides=[1, 1]),
            node("LRN", "x", "g", size=4),
            node("DepthToSpace", "x", "h", blocksize=2, mode="CRD"),
            node("SpaceToDepth", "x", "j", blocksize=2),
            node("Conv", "x w2", "k", group=2, dilations=[2, 2], auto_pad="SAME_LOWER"),
            node("DeformConv", "x w off", "l", kernel_shape=[2, 2]),
        ],
        image,
        outputs(**dict.fromkeys("bcdefghjkl", T.FLOAT)),
        [const("w", f32(4, 4, 2, 2)), const("w2", f32(4, 2, 2, 2)), const("cols", f32(1, 4, 4)), const("off", f32(1, 8, 5, 5))] + ints(im=[3, 3], bl=[2, 2]),
        opset=19,
    )
    model(
        "signal",
        [
            node("HannWindow", "n", "a"),
            node("HammingWindow", "n", "b", periodic=0),
            node("STFT", "x st a n", "c", onesided=1),
            node("DFT", "z n", "d", axis=1, inverse=1),
            node("MelWeightMatrix", "mb ml mr lo hi", "e"),
        ],
        [value("x", [1, 20, 1]), value("z", [1, 8, 2])],
        outputs(b=T.FLOAT, c=T.FLOAT, d=T.FLOAT, e=T.FLOAT),
        ints(n=8, st=4, mb=4, ml=16, mr=8000) + [const("lo", np.float32(0)), const("hi", np.float32(3000))],
    )
    model(
        "images",
        [
            node("Resize", "x  s", "a", mode="cubic", coordinate_transformation_mode="align_corners"),
            node("Resize", "x   z", "b", mode="linear", keep_aspect_ratio_policy="not_larger", axes=[2, 3]),
            node("Resize", "x r s", "c", mode="nearest", coordinate_transformation_mode="tf_crop_and_resize"),
            node("AffineGrid", "th sz", "g", align_corners=1),
            node("GridSample", "x g", "d", mode="linear", padding_mode="reflection"),
            node("RoiAlign", "x rois bi", "e", output_height=2, output_width=3, sampling_ratio=2),
            node("MaxRoiPool", "x r5", "f", pooled_shape=[2, 2]),
            node("Pad", "x p  ax", "h", mode="wrap"),
        ],
        image,
        outputs(**dict.fromkeys("abcdefh", T.FLOAT)),
        [const("s", np.array([1, 1, 1.5, 2], np.float32)), const("r", np.array([0, 0, 0, 0, 1, 1, 0.5, 1], np.float32))]
        + ints(z=[5, 7], sz=[1, 4, 3, 3], bi=[0], p=[1, 2], ax=[2])
        + [const("th", f32(1, 2, 3)), const("rois", f32(1, 4)), const("r5", np.array([[0, 0, 0, 3, 3]], np.float32))],
        opset=20,
    )
    model(
        "cache",
        [
            node("Attention", "q q q", "a", q_num_heads=2, kv_num_heads=2, is_causal=1, left_window_size=2),
            node("RotaryEmbedding", "q co si", "b", num_heads=2, rotary_embedding_dim=2),
            node("TensorScatter", "k u w", "c", axis=1, mode="circular"),
            node("ScatterND", "k si2 up", "d", reduction="add"),
            node(
                "TfIdfVectorizer",
                "t",
                "e",
                mode="TF",
                min_gram_length=1,
                max_gram_length=2,
                max_skip_count=1,
                ngram_counts=[0, 2],
                ngram_indexes=[0, 1, 2],
                pool_int64s=[1, 2, 1, 2],
            ),
            node("GroupNormalization", "n gs gs", "f", num_groups=2),
        ],
        [value("q", [1, 3, 8]), value("k", [1, 4, 2]), value("n", [1, 4, 3]), value("t", [2, 5], T.INT64)],
        outputs(**dict.fromkeys("abcdef", T.FLOAT)),
        [const("co", f32(1, 3, 1)), const("si", f32(1, 3, 1)), const("u", f32(1, 2, 2)), const("up", f32(1, 2)), const("gs", f32(4))]
        + ints(w=[1], si2=[[0, 1]]),
        opset=26,
    )
    for path in sorted(OUT.glob("*.onnx")):
        print(path.stat().st_size, path.name)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""ONNX nodes whose operands have open lengths: compiled once, without the compiler at run time, beside the same model for fixed shapes."""

import numpy as np
import pytest

import baton

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402


def f32(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype("float32")


def image(n, h, w, channels=3):
    return {"x": f32(n, channels, h, w)}


def window(kind, weights=(), **attrs):
    return (
        [(kind, ["x", *(name for name, _ in weights)], attrs)],
        weights,
        {"x": ["n", 3, "h", "w"]},
        [image(1, 8, 9), image(2, 7, 7), image(1, 3, 4), image(1, 5, 3)],
    )


def einsum(equation, *operands):
    """Operands as (lengths by name, sizes of each call)."""
    inputs = {f"x{i}": list(names) for i, (names, _) in enumerate(operands)}
    calls = [{f"x{i}": f32(*sizes[k], seed=i) for i, (_, sizes) in enumerate(operands)} for k in range(len(operands[0][1]))]
    return ([("Einsum", list(inputs), {"equation": equation})], (), inputs, calls)


def recurrent(kind, gates, **attrs):
    both = 2 if attrs.get("direction") == "bidirectional" else 1
    weights = [("w", f32(both, gates * 5, 4, seed=1)), ("r", f32(both, gates * 5, 5, seed=2)), ("b", f32(both, 2 * gates * 5, seed=3))]
    calls = [{"x": f32(t, n, 4)} for t, n in ((3, 1), (7, 2), (1, 4))]
    return ([(kind, ["x", "w", "r", "b"], {"hidden_size": 5, **attrs})], weights, {"x": ["t", "n", 4]}, calls)


def features_of(made):
    """The same with a name for the number of features, which the weight says."""
    nodes, weights, _, calls = made
    return (nodes, weights, {"x": ["t", "n", "f"]}, calls)


def images(weight, **attrs):
    """A convolution of as many small images as come: one, fewer and more than there are cores, and numbers that cores do not divide."""
    shape = (weight.shape[1] * attrs.get("group", 1), 8, 6)
    return ([("Conv", ["x", "w"], attrs)], [("w", weight)], {"x": ["n", *shape]}, [{"x": f32(n, *shape)} for n in (1, 2, 3, 9, 64)])


def line(channels, made, kernel=3, pads=(1, 2), group=1, **attrs):
    weights = [("w", f32(made, channels // group, kernel, seed=1) / 8), ("b", f32(made, seed=2))]
    nodes = [("Conv", ["x", "w", "b"], {"pads": list(pads), "group": group, **attrs}), ("Relu", ["v0"], {})]
    return (nodes, weights, {"x": ["n", channels, "l"]}, [{"x": f32(n, channels, length)} for n, length in ((1, 50), (2, 9), (1, 131), (3, 8))])


K3 = ("w", f32(4, 3, 3, 3))


def attention(past=False, **attrs):
    names = {"q": ["b", "s", 8], "k": ["b", "t", 4], "v": ["b", "t", 4]}
    if past:
        names |= {"pk": ["b", 2, "p", 2], "pv": ["b", 2, "p", 2]}
    sizes = [dict(b=1, s=3, t=3, p=2), dict(b=2, s=1, t=1, p=5), dict(b=1, s=4, t=4, p=0)]
    calls = [{name: f32(*(d if isinstance(d, int) else z[d] for d in shape), seed=len(name)) for name, shape in names.items()} for z in sizes]
    operands = ["q", "k", "v"] + ["", "pk", "pv"] * past
    return ([("Attention", operands, {"q_num_heads": 4, "kv_num_heads": 2, **attrs})], (), names, calls)


# Nodes (the last one gives `y`), weights, inputs, calls.
MODELS = {
    "conv, same upper, step 2": window("Conv", [K3], auto_pad="SAME_UPPER", strides=[2, 2]),
    "conv, same lower, step 2 and 3": window("Conv", [K3], auto_pad="SAME_LOWER", strides=[2, 3]),
    "conv, same upper, step 1": window("Conv", [K3], auto_pad="SAME_UPPER"),
    "conv, same upper, dilated": window("Conv", [K3], auto_pad="SAME_UPPER", strides=[2, 2], dilations=[2, 1]),
    "conv, same, step beyond the window": window("Conv", [("w", f32(4, 3, 1, 2))], auto_pad="SAME_UPPER", strides=[2, 3]),
    "conv, same, groups": window("Conv", [("w", f32(6, 1, 5, 4))], auto_pad="SAME_UPPER", strides=[2, 2], group=3),
    "max pool, ceil": window("MaxPool", kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1),
    "max pool, ceil, pads": window("MaxPool", kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1], ceil_mode=1),
    "max pool, same": window("MaxPool", kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_UPPER"),
    "einsum, scores": einsum("bhid,bhjd->bhij", (("b", 2, "i", 4), [(1, 2, 3, 4), (2, 2, 1, 4)]), (("b", 2, "j", 4), [(1, 2, 5, 4), (2, 2, 1, 4)])),
    "einsum, projection": einsum("bld,hde->bhle", (("b", "l", 4), [(1, 3, 4), (2, 1, 4)]), ((2, 4, 3), [(2, 4, 3), (2, 4, 3)])),
    "einsum, sum": einsum("ij->j", (("n", 4), [(3, 4), (1, 4)])),
    "einsum, ellipsis": einsum("...ij,...jk->...ik", (("b", "i", 4), [(2, 3, 4), (1, 1, 4)]), (("b", 4, "k"), [(2, 4, 5), (1, 4, 2)])),
    "einsum, outer": einsum("i,j->ij", (("n",), [(3,), (1,)]), (("m",), [(4,), (2,)])),
    "average pool, same, step 1": window("AveragePool", kernel_shape=[3, 2], auto_pad="SAME_LOWER"),
    "average pool, ceil": window("AveragePool", kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1),
    "average pool, ceil, pads": window("AveragePool", kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1], ceil_mode=1),
    "average pool, ceil, pads count": window("AveragePool", kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 1], ceil_mode=1, count_include_pad=1),
    "average pool, ceil, last window in the pads": window("AveragePool", kernel_shape=[2, 2], strides=[3, 2], pads=[0, 0, 1, 1], ceil_mode=1),
    "average pool, same upper": window("AveragePool", kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_UPPER"),
    "average pool, same lower, pads count": window("AveragePool", kernel_shape=[3, 2], strides=[2, 3], auto_pad="SAME_LOWER", count_include_pad=1),
    "lp pool": window("LpPool", kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1]),
    "lp pool, cubes": window("LpPool", kernel_shape=[2, 2], p=3),
    "lp pool, same": window("LpPool", kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_LOWER", p=1),
    "random normal like": ([("RandomNormalLike", ["x"], {"seed": 3.0, "mean": 1.0})], (), {"x": ["n", 3, "m"]}, [{"x": f32(2, 3, 4)}, {"x": f32(1, 3, 7)}]),
    "random uniform like": ([("RandomUniformLike", ["x"], {"seed": 3.0, "low": 2.0, "high": 5.0})], (), {"x": ["n", "m"]}, [{"x": f32(2, 3)}, {"x": f32(5, 1)}]),
    "eye like": ([("EyeLike", ["x"], {"k": 1})], (), {"x": ["n", "m"]}, [{"x": f32(3, 4)}, {"x": f32(2, 1)}]),
    "lstm": recurrent("LSTM", 4),
    "attention, shared heads": attention(),
    "attention, causal": attention(is_causal=1),
    "attention, past": attention(past=True, is_causal=1),
    "lstm, both ways": recurrent("LSTM", 4, direction="bidirectional"),
    "gru": recurrent("GRU", 3, linear_before_reset=1),
    "rnn, backward": recurrent("RNN", 1, direction="reverse"),
    "gru, features have a name": features_of(recurrent("GRU", 3)),
    "gemm of two inputs": (
        [("Gemm", ["x", "z", "c"], {"transB": 1, "alpha": 0.5, "beta": 2.0})], [("c", f32(1))], {"x": ["n", "k"], "z": ["m", "k"]},
        [{"x": f32(3, 4), "z": f32(5, 4)}, {"x": f32(1, 2), "z": f32(1, 2)}],
    ),
    "rows of a table, added up": (
        [("Shape", ["x"], {"start": 0, "end": 1}), ("Slice", ["table", "zero", "v0"], {}), ("ReduceSum", ["v1", "zero"], {})],
        [("table", f32(64, 5)), ("zero", np.array([0]))], {"x": ["n", 2]}, [{"x": f32(3, 2)}, {"x": f32(9, 2)}],
    ),
    "conv, a line": line(16, 32),
    "conv, a line, channels of no whole blocks": line(129, 34, strides=[2]),
    "conv, a line, few channels": line(3, 5, dilations=[2]),
    "conv, a line, one channel": line(1, 258, kernel=8, strides=[4], pads=[3, 1]),
    "conv, a line, channels alone": line(32, 32, group=32),
    "conv, a line, no pads": line(16, 16, kernel=1, pads=[0, 0]),
    "conv, an image of one row": (
        [("Conv", ["x", "w"], {"pads": [0, 1, 0, 1]})], [("w", f32(16, 16, 1, 3))], {"x": ["n", 16, 1, "l"]}, [{"x": f32(2, 16, 1, 40)}, {"x": f32(1, 16, 1, 3)}],
    ),
    "conv, an image, channels of no whole blocks": (
        [("Conv", ["x", "w"], {"pads": [1, 1, 1, 1]})], [("w", f32(15, 17, 3, 3))], {"x": ["n", 17, "h", "w"]}, [{"x": f32(2, 17, 9, 7)}, {"x": f32(1, 17, 1, 2)}],
    ),
    "conv, an image, three blocks": (
        [("Conv", ["x", "w"], {"pads": [1, 1, 1, 1]})], [("w", f32(24, 16, 3, 3))], {"x": ["n", 16, "h", "w"]},
        [{"x": f32(1, 16, 9, 11)}, {"x": f32(2, 16, 2, 3)}, {"x": f32(1, 16, 1, 1)}],
    ),
    "conv, many images": images(f32(32, 16, 3, 3), pads=[1, 1, 1, 1]),
    "conv, many images, pixel by pixel": images(f32(32, 16, 1, 1)),
    "conv, many images, channels of no whole blocks": images(f32(7, 5, 3, 3), pads=[1, 1, 1, 1], strides=[2, 2]),
    "conv, many images, groups": images(f32(6, 2, 3, 3), group=3),
    "resize, twice and three times": (
        [("Resize", ["x", "none", "s"], {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"})],
        [("none", f32(0)), ("s", np.array([1, 1, 2, 3], "float32"))], {"x": ["n", 3, "h", "w"]}, [{"x": f32(2, 3, 5, 4)}, {"x": f32(1, 3, 1, 1)}],
    ),
}  # fmt: skip


def source(nodes, weights, inputs):
    made = [helper.make_node(kind, names, [f"v{i}" if i + 1 < len(nodes) else "y"], **attrs) for i, (kind, names, attrs) in enumerate(nodes)]
    graph = helper.make_graph(
        made, "nodes", [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], [numpy_helper.from_array(array, name) for name, array in weights],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23 if nodes[0][0] == "Attention" else 17)], ir_version=9).SerializeToString()


@pytest.mark.parametrize("name", MODELS)
def test_values(name, tmp_path):
    nodes, weights, inputs, calls = MODELS[name]
    model = baton.compile(source(nodes, weights, inputs))
    assert model.called_back == ()
    model.save(tmp_path / "m.so")
    loaded = baton.load(tmp_path / "m.so")
    for feed in calls:
        want = model.specialize({key: array.shape for key, array in feed.items()})(**feed).numpy()
        for run in (model, loaded):
            got = run(**feed).numpy()
            assert got.shape == want.shape
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)

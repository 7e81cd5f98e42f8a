# SPDX-License-Identifier: Apache-2.0
"""Operators of ONNX Runtime (com.microsoft and what it adds to ONNX's own domain), a row a use, each beside ONNX Runtime, or beside NumPy
where its CPU provider has no kernel.
"""

import math

import numpy as np
import pytest
from onnx import ValueInfoProto, helper, numpy_helper

import baton

ort = pytest.importorskip("onnxruntime")
MSFT = "com.microsoft"


def rng(*shape, seed=0, scale=1.0):
    return (np.random.default_rng((seed, *shape)).standard_normal(shape) * scale).astype(np.float32)


def integers(low, high, *shape, dtype=np.int64, seed=1):
    return np.random.default_rng((seed, *shape)).integers(low, high, shape).astype(dtype)


class W:
    """An operand that is a weight of the file, not an input."""

    def __init__(self, value):
        self.value = np.asarray(value)


f32, u8, i8, i32 = np.float32, np.uint8, np.int8, np.int32


def s(value, dtype=np.float32):
    return W(np.array(value, dtype))


class Case:
    """`operands`: an array is an input, a W a weight, None is left out. `by`: what it means in NumPy, where ONNX
    Runtime has no kernel. `only`: results behind the first so many are unspecified in part."""

    def __init__(self, op, operands, *, outputs=1, domain=MSFT, by=None, tol=2e-5, off=0, name="", onnx=17, skip=(), only=None, **attrs):
        self.op, self.operands, self.outputs, self.domain, self.by, self.tol, self.off = op, operands, outputs, domain, by, tol, off
        self.onnx, self.skip, self.only, self.attrs = onnx, skip, only, attrs
        self.id = f"{domain.rsplit('.', 1)[-1] + '.' if domain not in (MSFT, '') else ''}{op}{'-' + name if name else ''}"

    def model(self):
        names, inputs, weights = [], [], []
        for i, v in enumerate(self.operands):
            names.append("" if v is None else f"x{i}")
            if isinstance(v, W):
                weights.append(numpy_helper.from_array(v.value, names[-1]))
            elif v is not None:
                inputs.append(helper.make_tensor_value_info(names[-1], helper.np_dtype_to_tensor_dtype(v.dtype), v.shape))
        outs = ["" if i in self.skip else f"y{i}" for i in range(self.outputs)]
        node = helper.make_node(self.op, names, outs, domain=self.domain, **self.attrs)
        shown = [o for o in outs if o]
        graph = helper.make_graph([node], "g", inputs, [ValueInfoProto(name=o) for o in shown], weights)
        ids = [helper.make_opsetid("", self.onnx)] + ([helper.make_opsetid(self.domain, 1)] if self.domain else [])
        return helper.make_model(graph, opset_imports=ids, ir_version=8)

    def feed(self):
        return {f"x{i}": v for i, v in enumerate(self.operands) if v is not None and not isinstance(v, W)}

    def want(self, model):
        if self.by is not None:
            found = self.by(*(v.value if isinstance(v, W) else v for v in self.operands))
            return found if isinstance(found, tuple) else (found,)
        options = ort.SessionOptions()
        options.log_severity_level = 4
        return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"]).run(None, self.feed())


def agree(got, want, tol, off=0):
    got = [np.asarray(g) for g in (got if isinstance(got, (tuple, list)) else [got])]
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        w = np.asarray(w)
        assert g.shape == w.shape and g.dtype == w.dtype
        if w.dtype.kind in "iub":
            assert np.abs(g.astype(np.int64) - w.astype(np.int64)).max(initial=0) <= off
        else:
            np.testing.assert_allclose(g.astype(np.float64), w.astype(np.float64), rtol=tol, atol=tol)


def erf(x):
    return np.vectorize(math.erf)(x)


def gelu(x):
    return (0.5 * x * (1 + erf(x / np.sqrt(2)))).astype(x.dtype)


def fast_gelu(x):
    return 0.5 * x * (1 + np.tanh(0.7978845608 * x + 0.0356774081 * x**3))


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


X = rng(2, 5, 16)
FUSED = [
    Case("Gelu", [X]),
    Case("BiasGelu", [X, W(rng(16))]),
    Case("FastGelu", [X]),
    Case("FastGelu", [X, W(rng(16))], name="bias"),
    Case("QuickGelu", [X]),
    Case("QuickGelu", [X], name="alpha", alpha=0.5),
    Case("ScaledSiLU", [X], alpha=0.5, by=lambda x: x * 0.5 / (1 + np.exp(-x * 0.5))),
    Case("GatedAdd", [X, rng(2, 5, 16, seed=2), rng(2, 5, 1)], by=lambda x, y, g: x + y * g),
    Case("BiasSplitGelu", [X, W(rng(16))], by=lambda x, b: (x + b)[..., :8] * gelu((x + b)[..., 8:])),
    Case("BiasAdd", [X, W(rng(16)), rng(2, 5, 16, seed=2)], by=lambda x, b, k: x + b + k),
    Case("BiasDropout", [X, W(rng(16)), rng(2, 5, 16, seed=2)], by=lambda x, b, r: x + b + r),
    Case("BiasSoftmax", [rng(2, 3, 4, 5), rng(2, 1, 1, 5)], axis=3, is_inner_broadcast=1, by=lambda x, b: softmax(x + b)),
    Case("BiasSoftmax", [rng(2, 3, 4, 5), rng(1, 1, 4, 5)], name="axes", axis=2, is_inner_broadcast=0,
         by=lambda x, b: softmax((x + b).reshape(6, 20)).reshape(x.shape)),
    Case("FusedMatMul", [rng(2, 3, 4), rng(2, 4, 5)], alpha=0.25),
    Case("FusedMatMul", [rng(2, 4, 3), W(rng(2, 5, 4))], name="turned", transA=1, transB=1),
    Case("FusedMatMul", [rng(3, 2, 6, 4), rng(4, 2, 6, 5)], name="batch", transBatchA=1, transBatchB=1),
    Case("TransposeMatMul", [rng(2, 3, 4), rng(2, 5, 4)], transB=1),
    Case("FusedMatMulActivation", [rng(2, 3, 4), rng(2, 4, 5)], activation="LeakyRelu", activation_alpha=0.5, alpha=2.0,
         by=lambda a, b: np.where(a @ b > 0, a @ b * 2, a @ b)),
    Case("GemmFastGelu", [X, W(rng(16, 6)), W(rng(6))], by=lambda x, w, b: fast_gelu(x @ w + b)),
    *[Case("FusedGemm", [rng(3, 4), W(rng(4, 5)), W(rng(5))], name=a, activation=a, **p) for a, p in {
        "Relu": {}, "Tanh": {}, "Sigmoid": {}, "LeakyRelu": {"activation_alpha": 0.3}, "Elu": {"activation_alpha": 0.7},
        "HardSigmoid": {"activation_alpha": 0.3, "activation_beta": 0.4}, "Softplus": {}, "Softsign": {},
        "ThresholdedRelu": {"activation_alpha": 0.3}}.items()],
    Case("FusedGemm", [rng(4, 3), W(rng(5, 4))], name="turned", activation="Relu", transA=1, transB=1, alpha=0.5),
    *[Case("FusedConv", [rng(1, 3, 7, 8), W(rng(4, 3, 3, 3)), W(rng(4))], name=a, activation=a, pads=[1, 1, 1, 1], **p) for a, p in {
        "Relu": {}, "Tanh": {}, "Sigmoid": {}, "LeakyRelu": {"activation_params": [0.3]}, "Clip": {"activation_params": [-0.5, 0.5]},
        "HardSigmoid": {"activation_params": [0.3, 0.4]}}.items()],
    Case("FusedConv", [rng(1, 3, 7, 8), W(rng(4, 3, 3, 3)), W(rng(4)), rng(1, 4, 4, 4)], name="sum", activation="Relu", strides=[2, 2],
         auto_pad="SAME_UPPER"),
    Case("NhwcFusedConv", [rng(1, 5, 5, 3), W(rng(4, 3, 1, 1)), W(rng(4)), rng(1, 5, 5, 4)], activation="Relu",
         by=lambda x, w, b, z: np.maximum(x @ w[:, :, 0, 0].T + b + z, 0)),
    Case("NhwcConv", [rng(1, 5, 5, 3), W(rng(4, 3, 1, 1)), W(rng(4))], by=lambda x, w, b: x @ w[:, :, 0, 0].T + b),
    Case("NhwcMaxPool", [integers(0, 255, 1, 9, 9, 3, dtype=u8)], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
]  # fmt: skip


def rms(x, scale, eps=1e-5):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * scale


def groups(x, gamma, beta, n):
    v = x.reshape(x.shape[0], -1, n, x.shape[3] // n)
    v = (v - v.mean((1, 3), keepdims=True)) / np.sqrt(v.var((1, 3), keepdims=True) + 1e-5)
    y = v.reshape(x.shape) * gamma + beta
    return y / (1 + np.exp(-y))


IDS = integers(0, 11, 2, 5, dtype=i32)
TABLES = [W(rng(11, 8)), W(rng(6, 8)), W(rng(2, 8, seed=3)), W(rng(8)), W(rng(8, seed=4))]
NORMS = [
    Case("SkipLayerNormalization", [X, rng(2, 5, 16, seed=2), W(rng(16)), W(rng(16, seed=3))]),
    Case("SkipLayerNormalization", [X, rng(1, 5, 16, seed=2), W(rng(16)), None, W(rng(16, seed=3))], name="sum", outputs=4, skip=(1, 2)),
    Case("SkipLayerNormalization", [X.astype("f2"), X.astype("f2"), W(rng(16).astype("f2")), W(rng(16).astype("f2"))], name="half", tol=5e-3),
    Case("SkipSimplifiedLayerNormalization", [X, rng(2, 5, 16, seed=2), W(rng(16)), W(rng(16, seed=3))], outputs=4, skip=(1, 2)),
    Case("SimplifiedLayerNormalization", [X, W(rng(16))], domain=""),
    Case("SimplifiedLayerNormalization", [X, W(rng(5, 16))], domain="", name="axis", axis=1, epsilon=1e-3),
    Case("LayerNormalization", [X, W(rng(16)), W(rng(16, seed=2))], domain="", onnx=12, name="opset12"),
    Case("GatedRMSNorm", [X, W(rng(8)), rng(2, 5, 16, seed=2)],
         by=lambda x, w, g: rms(x.reshape(2, 5, 2, 8), w).reshape(x.shape) * g / (1 + np.exp(-g))),
    Case("EmbedLayerNormalization", [IDS, IDS % 2, *TABLES, (IDS > 3).astype(i32)], outputs=3),
    Case("EmbedLayerNormalization", [IDS, None, *TABLES[:2], None, *TABLES[3:]], name="words", outputs=2),
    Case("EmbedLayerNormalization", [IDS, IDS % 2, *TABLES, None, integers(0, 6, 1, 5, dtype=i32)], name="positions", outputs=2),
    Case("QEmbedLayerNormalization", [IDS, IDS % 2, *[W(integers(0, 255, *t.value.shape, dtype=u8)) for t in TABLES], None,
                                      *[s(0.02 + 0.01 * k) for k in range(5)], *[s(120 + k, u8) for k in range(5)]], outputs=2),
    Case("GroupNorm", [rng(2, 4, 3, 8), W(rng(8)), W(rng(8, seed=2))], groups=4, activation=1, by=lambda x, g, b: groups(x, g, b, 4)),
    Case("SkipGroupNorm", [rng(2, 4, 3, 8), W(rng(8)), W(rng(8, seed=2)), rng(2, 8), W(rng(8, seed=3))], groups=4, activation=1,
         by=lambda x, g, b, k, a: groups(x + k[:, None, None] + a, g, b, 4)),
]  # fmt: skip

TENSORS = [
    Case("Trilu", [rng(2, 4, 5), W(np.array(1, np.int64))], upper=1),
    Case("Trilu", [rng(2, 4, 5)], name="lower", upper=0),
    Case("Pad", [rng(2, 3), W(np.array([0, 2, 1, 0])), s(7.0)]),
    Case("Pad", [rng(4, 3), W(np.array([1, 2, 1, 0]))], name="reflect", mode="reflect"),
    Case("GatherND", [rng(3, 4), W(np.array([[0, 1], [2, 3]]))]),
    Case("Range", [s(1.0), s(7.0), s(2.0)]),
    Case("ExpandDims", [rng(2, 3), s(-1, i32)]),
    Case("GridSample", [rng(1, 2, 5, 6), rng(1, 3, 4, 2, scale=0.5)], mode="bilinear", padding_mode="border"),
    Case("UnfoldTensor", [rng(2, 9, 3)], dim=1, size=4, step=2),
    Case("Inverse", [rng(3, 4, 4) + 3 * np.eye(4, dtype=f32)], tol=1e-4),
    Case("CDist", [rng(4, 6), rng(3, 6, seed=2)], metric="euclidean"),
    Case("CDist", [rng(4, 6), rng(3, 6, seed=2)], name="squared"),
    Case("ComplexMul", [rng(3, 4, 2), rng(3, 4, 2, seed=2)],
         by=lambda a, b: np.stack([a[..., 0] * b[..., 0] - a[..., 1] * b[..., 1], a[..., 0] * b[..., 1] + a[..., 1] * b[..., 0]], -1)),
    Case("ComplexMulConj", [rng(3, 4, 2), rng(3, 4, 2, seed=2)],
         by=lambda a, b: np.stack([a[..., 0] * b[..., 0] + a[..., 1] * b[..., 1], a[..., 1] * b[..., 0] - a[..., 0] * b[..., 1]], -1)),
    Case("IsAllFinite", [rng(3), np.array([1, np.inf], f32)], by=lambda a, b: np.array(False)),
    Case("RelativePositionBias", [W(rng(32, 2)), s(40, np.int64), s(40, np.int64)], max_distance=20, is_bidirectional=1,
         by=lambda t, q, k: t5(t, 40, 20, True)),
    Case("RelativePositionBias", [W(rng(32, 2)), s(60, np.int64), s(60, np.int64)], name="causal", max_distance=50,
         by=lambda t, q, k: t5(t, 60, 50, False)),
    Case("Affine", [rng(3)], domain="", onnx=9, alpha=2.0, beta=0.5, by=lambda x: 2 * x + f32(0.5)),
    Case("ScaledTanh", [rng(3, 4)], domain="", onnx=9, alpha=2.0, beta=0.5),
    Case("ParametricSoftplus", [rng(3, 4)], domain="", onnx=9, alpha=2.0, beta=0.5),
]  # fmt: skip


def t5(table, n, most, both):
    """T5's buckets, from its paper's code."""
    place = np.arange(n)[None, :] - np.arange(n)[:, None]
    count, at = len(table), np.zeros((n, n), int)
    if both:
        count //= 2
        at += (place > 0) * count
        place = np.abs(place)
    else:
        place = -np.minimum(place, 0)
    exact = count // 2
    far = exact + (np.log(np.maximum(place, 1).astype(f32) / exact) / math.log(most / exact) * (count - exact)).astype(int)
    return table[at + np.where(place < exact, place, np.minimum(far, count - 1))].transpose(2, 0, 1)[None]


def attention(q, k, v, past_k, past_v, heads):
    def cut(x):
        return x.reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3)

    q, k, v = cut(q), np.concatenate([past_k, cut(k)], 2), np.concatenate([past_v, cut(v)], 2)
    y = softmax(q @ k.transpose(0, 1, 3, 2) / np.sqrt(q.shape[-1])) @ v
    return y.transpose(0, 2, 1, 3).reshape(y.shape[0], y.shape[2], -1).astype(q.dtype)


H = [W(rng(16, 24, scale=0.3)), W(rng(24))]  # two heads of four
PAST = rng(2, 2, 2, 3, 4)
ATTENTION = [
    Case("Attention", [X, *H], num_heads=2),
    Case("Attention", [X, *H], name="causal", num_heads=2, unidirectional=1),
    Case("Attention", [X, *H, integers(0, 2, 2, 5, dtype=i32)], name="mask", num_heads=2),
    Case("Attention", [X, *H, integers(0, 2, 2, 5, 5, dtype=i32)], name="mask-rows", num_heads=2, mask_filter_value=-1.5),
    Case("Attention", [X, *H, np.array([3, 5], i32)], name="lengths", num_heads=2),
    Case("Attention", [X, *H, np.array([4, 5, 1, 0], i32)], name="ends", num_heads=2),
    Case("Attention", [X, *H, integers(0, 2, 2, 8, dtype=i32), PAST], name="past", num_heads=2, outputs=2, unidirectional=1),
    Case("Attention", [X, *H, None, None, rng(1, 2, 5, 5)], name="bias", num_heads=2, scale=0.2),
    Case("Attention", [X, W(rng(16, 28, scale=0.3)), W(rng(28))], name="sizes", num_heads=2, qkv_hidden_sizes=[8, 8, 12]),
    Case("QAttention", [integers(0, 255, 2, 5, 16, dtype=u8), W(integers(-127, 127, 16, 24, dtype=i8)), W(rng(24)), s(0.01), s(0.02),
                        np.array([3, 5], i32), s(120, u8), s(3, i8)], num_heads=2, tol=1e-4),
    Case("QAttention", [integers(0, 255, 2, 5, 16, dtype=u8), W(integers(0, 255, 16, 24, dtype=u8)), W(rng(24)), s(0.01), W(np.abs(rng(24)) * 0.01),
                        None, s(120, u8), W(integers(100, 150, 24, dtype=u8)), PAST], name="past", num_heads=2, unidirectional=1, outputs=2, tol=1e-4),
    Case("MultiHeadAttention", [rng(2, 5, 8), rng(2, 7, 8), rng(2, 7, 8, seed=2)], num_heads=2),
    Case("MultiHeadAttention", [rng(2, 5, 8), rng(2, 7, 8), rng(2, 7, 12), W(rng(28))], name="bias", num_heads=2),
    Case("MultiHeadAttention", [rng(2, 5, 8), rng(2, 7, 8), rng(2, 7, 8, seed=2), None, integers(0, 2, 2, 7, dtype=i32), rng(2, 1, 5, 7)],
         name="masks", num_heads=2),
    Case("MultiHeadAttention", [rng(2, 5, 8), rng(2, 5, 8), rng(2, 5, 8, seed=2), W(rng(24)), None, None, PAST[0], PAST[1]], name="past",
         num_heads=2, unidirectional=1, outputs=3),
    Case("MultiHeadAttention", [rng(2, 5, 8), rng(2, 2, 7, 4), rng(2, 2, 7, 4, seed=2)], name="cross", num_heads=2),
    Case("DecoderMaskedMultiHeadAttention", [rng(2, 1, 8), rng(2, 2, 7, 4), rng(2, 2, 7, 4, seed=2)], name="cross", num_heads=2),
    Case("DecoderMaskedMultiHeadAttention", [rng(2, 1, 8), rng(2, 1, 8, seed=2), rng(2, 1, 8, seed=3), None, None, PAST[0], PAST[1]], num_heads=2,
         by=lambda q, k, v, mask, bias, pk, pv: attention(q, k, v, pk, pv, 2)),
    Case("RotaryEmbedding", [rng(2, 5, 16), W(np.array([3])), W(rng(20, 4)), W(rng(20, 4, seed=2))]),
    Case("RotaryEmbedding", [rng(2, 3, 5, 8), integers(0, 20, 2, 5), W(rng(20, 4)), W(rng(20, 4, seed=2))], name="interleaved", interleaved=1),
    Case("RotaryEmbedding", [rng(2, 5, 24), integers(0, 20, 2, 5), W(rng(20, 3)), W(rng(20, 3, seed=2))], name="part", num_heads=2,
         rotary_embedding_dim=6),
    Case("GemmaRotaryEmbedding", [rng(2, 5, 4), *[rng(2, 3, 5, 4, seed=k) for k in range(4)]], outputs=2,
         by=lambda e, q, qr, k, kr: (q * np.cos(e)[:, None] + qr * np.sin(e)[:, None], k * np.cos(e)[:, None] + kr * np.sin(e)[:, None])),
]  # fmt: skip


def gqa(name, batch, rows, room, lengths, total=None, outputs=3, heads=4, groups_=2, size=16, packed=False, **attrs):
    """Sequences of `lengths` keys in all, `room` in the tensors of the past."""
    total = max(lengths) if total is None else total
    q, k, v = rng(batch, rows, heads * size), rng(batch, rows, groups_ * size, seed=2), rng(batch, rows, groups_ * size, seed=3)
    given = [np.concatenate([q, k, v], -1), None, None] if packed else [q, k, v]
    past = [rng(batch, groups_, room, size, seed=4 + i) for i in range(2)] if room else [None, None]
    operands = [*given, *past, np.array(lengths, i32) - 1, s(total, i32)]
    if attrs.get("do_rotary"):
        operands += [W(rng(32, size // 2)), W(rng(32, size // 2, seed=2))]
    return Case("GroupQueryAttention", operands, name=name, outputs=outputs, num_heads=heads, kv_num_heads=groups_, **attrs)


GROUP_QUERY = [
    gqa("prompt", 2, 5, 0, [5, 5]),
    gqa("prompt-rotary", 1, 5, 0, [5], do_rotary=1),
    gqa("step", 1, 1, 6, [7], do_rotary=1),
    gqa("step-interleaved", 1, 1, 6, [7], do_rotary=1, rotary_interleaved=1),
    gqa("packed", 1, 1, 6, [7], packed=True, do_rotary=1),
    gqa("steps", 1, 3, 6, [9]),
    gqa("ragged", 2, 1, 6, [4, 7], only=1, do_rotary=1),
    gqa("room", 2, 1, 12, [4, 7], only=1),
    gqa("window", 1, 1, 9, [10], local_window_size=4),
    gqa("window-prompt", 1, 8, 0, [8], local_window_size=3),
    gqa("softcap", 1, 1, 6, [7], softcap=2.0, scale=0.5),
    gqa("smooth", 1, 1, 6, [7], smooth_softmax=1),
    gqa("same-heads", 1, 4, 0, [4], heads=2),
]


def q(seed=0, *shape, dtype=u8):
    info = np.iinfo(dtype)
    return integers(info.min, info.max, *shape, dtype=dtype, seed=seed)


A, B, TO = [s(0.05), s(120, u8)], [s(0.03), s(100, u8)], [s(0.07), s(110, u8)]
SIGNED = [[s(0.05), s(-3, i8)], [s(0.03), s(5, i8)], [s(0.07), s(2, i8)]]
QUANTIZED = [
    Case("QLinearAdd", [q(1, 3, 4), *A, q(2, 4), *B, *TO], off=1),
    Case("QLinearAdd", [q(1, 3, 4, dtype=i8), *SIGNED[0], q(2, 3, 4, dtype=i8), *SIGNED[1], *SIGNED[2]], name="int8", off=1),
    Case("QLinearMul", [q(1, 3, 4), *A, q(2, 3, 1), *B, *TO], off=1),
    Case("QLinearSigmoid", [q(1, 3, 4), *A, s(1 / 256), s(0, u8)], off=1),
    Case("QLinearLeakyRelu", [q(1, 3, 4), *A, *TO], alpha=0.3, off=1),
    Case("QLinearAveragePool", [q(1, 1, 3, 8, 8), *A, *TO], kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2], off=1),
    Case("QLinearAveragePool", [q(1, 1, 8, 8, 3), *A, *TO], name="last", kernel_shape=[2, 2], channels_last=1, count_include_pad=1, off=1),
    Case("QLinearGlobalAveragePool", [q(1, 2, 3, 7, 7), *A, *TO], off=1),
    Case("QLinearGlobalAveragePool", [q(1, 2, 7, 7, 3), *A, *TO], name="last", channels_last=1, off=1),
    Case("QLinearReduceMean", [q(1, 2, 3, 4), *A, *TO], axes=[1], keepdims=0, off=1,
         by=lambda x, a, z, t, o: np.clip(np.rint((x.astype(f32) - z).mean(1) * a / t) + o, 0, 255).astype(u8)),
    Case("QLinearConcat", [*TO, q(1, 2, 3), *A, q(2, 2, 4), *B], axis=1, off=1),
    Case("QLinearSoftmax", [q(1, 3, 4), s(0.05), s(120, u8), s(1 / 256), s(0, u8)], axis=-1, opset=13, off=1, name="13"),
    Case("QLinearWhere", [integers(0, 2, 3, 4, dtype=np.bool_), q(1, 3, 4), *A, q(2, 4), *B, *TO], off=1),
    Case("QLinearConv", [q(1, 1, 6, 6, 3), *A, W(q(2, 4, 3, 3, 3)), *B, s(2.0), s(128, u8), W(integers(-99, 99, 4, dtype=i32))],
         channels_last=1, pads=[1, 1, 1, 1], off=1),
    Case("QuantizeLinear", [rng(3, 4), s(0.02), s(100, np.uint16)], name="16"),
    Case("QuantizeLinear", [rng(3, 4), W(np.abs(rng(4)) + 0.01), W(q(1, 4))], name="axis", axis=1),
    Case("DequantizeLinear", [q(1, 3, 4), *A]),
    Case("DequantizeLinear", [integers(-99999, 99999, 3, 4, dtype=i32), s(0.5)], name="int32"),
    Case("MulInteger", [q(1, 3, 4), s(3, u8), q(2, 4), s(5, u8)], by=lambda a, x, b, y: (a.astype(i32) - x) * (b.astype(i32) - y)),
    Case("ReduceSumInteger", [q(1, 3, 4, dtype=i8)], axes=[1], keepdims=1, by=lambda x: x.sum(1, keepdims=True, dtype=i32)),
    Case("MatMulIntegerToFloat", [q(1, 3, 16), W(q(2, 16, 5)), s(0.02), s(0.01), s(120, u8), s(100, u8), W(rng(5))]),
    Case("MatMulIntegerToFloat", [q(1, 2, 3, 16), W(q(2, 16, 5, dtype=i8)), s(0.02), W(np.abs(rng(5))), s(120, u8), W(q(3, 5, dtype=i8))],
         name="columns", tol=1e-4),
    Case("DynamicQuantizeMatMul", [rng(2, 3, 16), W(q(2, 16, 5, dtype=i8)), W(np.abs(rng(5)) * 0.01), W(q(3, 5, dtype=i8)), W(rng(5))], tol=1e-4),
    Case("DynamicQuantizeMatMul", [rng(2, 3, 16), W(q(2, 16, 5)), s(0.01), s(128, u8)], name="whole", tol=1e-4),
    Case("MatMulInteger16", [q(1, 3, 4, dtype=np.int16) // 64, q(2, 4, 5, dtype=np.int16) // 64]),
    Case("QGemm", [q(1, 3, 16), s(0.02), s(120, u8), W(q(2, 16, 5)), s(0.01), s(100, u8), W(integers(-999, 999, 5, dtype=i32)), s(0.3), s(99, u8)], off=1),
    Case("QGemm", [q(1, 3, 16), s(0.02), s(120, u8), W(q(2, 5, 16, dtype=i8)), W(np.abs(rng(5)) * 0.1), W(np.zeros(5, i8))], name="float",
         transB=1, alpha=0.5),
]  # fmt: skip


def lstm(name, channels, **attrs):
    """ONNX Runtime quantizes the data of each step as well: the tolerance is that of 8 bits."""
    shape = (1, 32) if channels else (1,)
    parameters = [
        W(np.full(shape, 0.004, f32)),
        W(np.full(shape, 0 if channels else 3, i8)),
        W(np.full(shape, 0.003, f32)),
        W(np.full(shape, 0 if channels else -2, i8)),
    ]
    weights = [W(q(2, 1, 16, 32, dtype=i8)), W(q(3, 1, 8, 32, dtype=i8)), W(rng(1, 64, scale=0.1))]
    return Case("DynamicQuantizeLSTM", [rng(5, 2, 16), *weights, None, None, None, None, *parameters], name=name, outputs=3, hidden_size=8, tol=3e-2, **attrs)


def packed(seed, n, k, bits, block):
    blocks = -(-k // block)
    return W(integers(0, 256, n, blocks, block * bits // 8, dtype=u8, seed=seed)), W(np.abs(rng(n, blocks, seed=seed)) * 0.05)


def nbits(name, bits, *, k=64, n=10, block=32, zero=None, bias=False, tol=2e-4, by=None, **attrs):
    weight, scale = packed(3, n, k, bits, block)
    blocks = -(-k // block)
    zeros = {None: None, "packed": W(integers(0, 256, n, -(-blocks * bits // 8), dtype=u8)), "float": W(rng(n, blocks) + 8)}[zero]
    operands = [rng(2, 3, k), weight, scale, zeros, None, W(rng(n)) if bias else None]
    while operands[-1] is None:
        operands.pop()
    return Case("MatMulNBits", operands, name=name, bits=bits, K=k, N=n, block_size=block, tol=tol, by=by, **attrs)


def bnb4(kind):
    return Case("MatMulBnb4", [rng(3, 32), W(integers(0, 256, 32 * 6 // 2, dtype=u8)), W(np.abs(rng(12)))], name=["fp4", "nf4"][kind], K=32, N=6,
                block_size=16, quant_type=kind, tol=1e-4)  # fmt: skip


NBITS = [
    nbits("4", 4),
    nbits("4-zero", 4, zero="packed"),
    nbits("4-odd", 4, k=80, zero="packed", bias=True),
    nbits("4-float-zero", 4, zero="float"),
    nbits("4-block16", 4, block=16, zero="packed"),
    nbits("8", 8),
    nbits("8-zero", 8, zero="packed", block=16),
    nbits("2", 2, zero="packed", k=128, block=64),
    bnb4(0),
    bnb4(1),
    Case("GatherBlockQuantized", [W(integers(0, 256, 20, 32, dtype=u8)), integers(0, 20, 2, 3), W(np.abs(rng(20, 4)))], bits=4, block_size=16),
    Case("GatherBlockQuantized", [W(integers(0, 256, 20, 64, dtype=u8)), integers(0, 20, 3), W(np.abs(rng(20, 2))), W(q(1, 20, 2))], name="8",
         bits=8, block_size=32),
]  # fmt: skip


def unsigned_lstm(name, hidden, both, zero, scale_of, zero_of):
    """Weights of unsigned bytes; scales and zero points of a direction ("whole") or of each column."""
    count, gates = 2 if both else 1, 4 * hidden
    shape = {"whole": (count,), "columns": (count, gates)}
    points = np.full(shape[zero_of], zero) + integers(-2, 3, *shape[zero_of])
    parameters = [W(0.002 + 0.001 * np.abs(rng(*shape[scale_of]))), W(points.astype(u8))] * 2
    weights = [W(integers(zero - 90, zero + 90, count, n, gates, dtype=u8, seed=n)) for n in (16, hidden)]
    states = [rng(count, 2, hidden, scale=0.5), rng(count, 2, hidden, scale=0.5)]
    rest, attrs = [W(rng(count, 2 * gates, scale=0.1)), np.array([5, 3], i32), *states], {"hidden_size": hidden, "outputs": 3}
    attrs["direction"] = "bidirectional" if both else "forward"

    def by(x, w, r, *_):
        """The layer of what the weights stand for."""
        line = (1,) if zero_of == "columns" else (1, 2)
        point, step = np.expand_dims(points, line), np.expand_dims(parameters[0].value, (1,) if scale_of == "columns" else (1, 2))
        stands_for = [W(((v.astype(f32) - point) * step).astype(f32).transpose(0, 2, 1)) for v in (w, r)]
        layer = Case("LSTM", [x, *stands_for, *rest], domain="", **attrs)
        return tuple(layer.want(layer.model()))

    return Case("DynamicQuantizeLSTM", [rng(5, 2, 16), *weights, *rest, None, *parameters], name=name, tol=3e-2, by=by, **attrs)


LSTMS = [
    lstm("whole", False),
    lstm("channels", True),
    lstm("reverse", True, direction="reverse"),
    unsigned_lstm("unsigned", 8, False, 128, "whole", "whole"),
    unsigned_lstm("unsigned-columns", 10, True, 100, "columns", "columns"),
    unsigned_lstm("unsigned-mixed", 37, True, 128, "columns", "whole"),
    unsigned_lstm("unsigned-mixed-too", 37, False, 130, "whole", "columns"),
]
CASES = FUSED + NORMS + LSTMS + TENSORS + ATTENTION + GROUP_QUERY + QUANTIZED + NBITS


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.id)
def test_operator(case):
    model = case.model()
    got = baton.compile(model)(*case.feed().values())
    got = got if isinstance(got, (tuple, list)) else [got]
    agree(got[: case.only], case.want(model)[: case.only], case.tol, case.off)


@pytest.mark.parametrize("case", LSTMS, ids=lambda c: c.id)
def test_recurrent_bytes_on_other_processors(case):
    """Bytes are multiplied exactly on each; what is between differs in the last bits alone, unless a state rounds to another byte."""
    model, feed = case.model(), case.feed().values()
    want = [x.numpy() for x in baton.compile(model)(*feed)]
    for cpu in ("x86-64-v2", "x86-64-v3", "x86-64-v4"):
        agree(baton.compile(model, target=f"llvm -mcpu={cpu}")(*feed), want, 2e-3, 0)


def test_a_state_that_is_not_finite():
    case = lstm("whole", False)
    case.operands[5:7] = rng(1, 2, 8), rng(1, 2, 8)
    x, h, c = case.feed().values()
    h = h.copy()
    h[0, 1, 3] = np.nan
    y = baton.compile(case.model())(x, h, c)[0].numpy()
    assert np.isfinite(y[:, 0, 0]).all() and np.isnan(y[:, 0, 1]).all()


ADVICE = {
    "com.microsoft": "it is of ONNX Runtime and not imported; .* ORT_ENABLE_BASIC",
    "com.microsoft.dml": "DirectML",
    "com.ms.internal.nhwc": "ORT_ENABLE_EXTENDED",
    "ai.onnx.contrib": "onnxruntime-extensions",
    "org.pytorch.aten": "exporter found no ONNX for",
    "pkg.onnxscript.torch_lib": "optimize=True",
    "trt.plugins": "TensorRT",
    "org.example.own": "export it as operators of ONNX, or as a function",
}


@pytest.mark.parametrize("domain", ADVICE)
def test_errors_say_whose_a_domain_is(domain):
    with pytest.raises(baton.error.UnsupportedError, match=f"`{domain}` 1: no such operator is known: .*{ADVICE[domain]}"):
        baton.compile(Case("Frob", [rng(2)], domain=domain).model())


REFUSED = {
    "shared buffers": (Case("Attention", [X, *H], num_heads=2, past_present_share_buffer=1), "a past that grows"),
    "packed masks": (Case("Attention", [X, *H, np.zeros(8, i32)], num_heads=2), r"a mask of \(batch, keys\)"),
    "a quantized cache": (gqa("q", 1, 1, 6, [7], k_quant_type="PER_TENSOR"), "a cache of floats"),
    "activations": (Case("FusedGemm", [rng(3, 4), W(rng(4, 5))], activation="Frob"), '`activation` "Frob"'),
    "layouts of a GPU": (nbits("gpu", 4, weight_prepacked=1), "one kind of GPU"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    case, words = REFUSED[name]
    with pytest.raises(baton.error.UnsupportedError, match=words):
        baton.compile(case.model())


@pytest.mark.parametrize("rows", [1, 64, "seq"])
@pytest.mark.parametrize("bits", [4, 8])
def test_weights_of_few_bits_stay_packed(bits, rows, tmp_path):
    case = nbits("packed", bits, k=1024, n=512, zero="packed")
    case.operands[0] = rng(1, 64 if rows == "seq" else rows, 1024)
    model = case.model()
    if rows == "seq":
        model.graph.input[0].type.tensor_type.shape.dim[1].dim_param = rows
    program = baton.compile(model)
    program.save(tmp_path / "a.bt")
    # Zero points are floats: a number for each block of 32.
    assert (tmp_path / "a.bt").stat().st_size < 1.2 * len(model.SerializeToString()) + (64 << 10)
    agree([baton.load(tmp_path / "a.bt")(*case.feed().values())], case.want(model), 2e-3)

# SPDX-License-Identifier: Apache-2.0
"""The decoder of a Llama as an ONNX graph: RMS norms, rotary positions, grouped heads, a gated layer behind each attention."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from .gguf import Blocks

_BLOCK = 32


def _floats(weight) -> np.ndarray:
    return weight.floats() if isinstance(weight, Blocks) else weight


class _Graph:
    """Nodes and weights as they come; each value has the name of its node."""

    def __init__(self, packed: bool):
        self.nodes, self.weights, self.packed = [], {}, packed

    def const(self, name: str, value, dtype="int64") -> str:
        if name not in self.weights:
            self.weights[name] = numpy_helper.from_array(np.asarray(value, dtype, order="C"), name)
        return name

    def op(self, kind: str, *inputs: str, name: str, domain: str = "", **attrs) -> str:
        self.nodes.append(helper.make_node(kind, inputs, [name], name=f"/{name}", domain=domain, **attrs))
        return name

    def linear(self, x: str, weight, name: str) -> str:
        """x (..., inputs) times a weight (outputs, inputs)."""
        if not isinstance(weight, Blocks) or not self.packed or weight.bits != 4:
            return self.op("MatMul", x, self.const(f"{name}.w", _floats(weight).T, "float32"), name=name)
        n, k = weight.q.shape
        codes = weight.q[:, 0::2] | weight.q[:, 1::2] << 4
        parts = [self.const(f"{name}.q", codes.reshape(n, k // _BLOCK, -1), "uint8"), self.const(f"{name}.scale", weight.scale, "float32")]
        parts.append(self.const(f"{name}.zero", weight.zero, "float32"))
        return self.op("MatMulNBits", x, *parts, name=name, domain="com.microsoft", N=n, K=k, bits=4, block_size=_BLOCK)

    def norm(self, x: str, weight, eps: float, name: str) -> str:
        mean = self.op("ReduceMean", self.op("Mul", x, x, name=f"{name}.squares"), self.const("last", [-1]), name=f"{name}.mean")
        root = self.op("Sqrt", self.op("Add", mean, self.const("eps", eps, "float32"), name=f"{name}.eps"), name=f"{name}.root")
        scaled = self.op("Div", x, root, name=f"{name}.scaled")
        return self.op("Mul", scaled, self.const(f"{name}.w", weight, "float32"), name=name)


def _positions(g: _Graph, lm) -> tuple[str, str, str]:
    """(cosines, sines, mask) of the tokens of a call behind those of the cache."""
    past = g.op("Gather", g.op("Shape", "past_key_values.0.key", name="past_shape"), g.const("two", 2), name="past_length")
    seq = g.op("Gather", g.op("Shape", "input_ids", name="ids_shape"), g.const("one", 1), name="seq_length")
    total = g.op("Add", past, seq, name="total_length")
    rows = g.op("Range", past, total, g.const("one", 1), name="positions")
    columns = g.op("Range", g.const("zero", 0), total, g.const("one", 1), name="columns")
    seen = g.op("LessOrEqual", columns, g.op("Unsqueeze", rows, g.const("last", [-1]), name="rows"), name="seen")
    mask = g.op("Where", seen, g.const("yes", 0, "float32"), g.const("no", -1e9, "float32"), name="mask")
    half = lm.theta ** (-np.arange(0, lm.depth, 2, dtype=np.float64) / lm.depth)
    turns = g.op("Cast", g.op("Unsqueeze", rows, g.const("last", [-1]), name="rows.turn"), name="rows.float", to=TensorProto.FLOAT)
    angle = g.op("Mul", turns, g.const("frequencies", np.concatenate([half, half])[None], "float32"), name="angle")
    return g.op("Cos", angle, name="cos"), g.op("Sin", angle, name="sin"), mask


def _heads(g: _Graph, x: str, heads: int, depth: int, name: str) -> str:
    split = g.op("Reshape", x, g.const(f"split{heads}", [0, 0, heads, depth]), name=f"{name}.split")
    return g.op("Transpose", split, name=f"{name}.heads", perm=[0, 2, 1, 3])


def _turned(g: _Graph, x: str, cos: str, sin: str, depth: int, name: str) -> str:
    """Rotary positions: each pair of the halves of a head is turned by its angle."""
    low = g.op("Slice", x, g.const("s0", [0]), g.const("sh", [depth // 2]), g.const("last", [-1]), name=f"{name}.low")
    high = g.op("Slice", x, g.const("sh", [depth // 2]), g.const("se", [depth]), g.const("last", [-1]), name=f"{name}.high")
    other = g.op("Concat", g.op("Neg", high, name=f"{name}.minus"), low, name=f"{name}.other", axis=-1)
    return g.op("Add", g.op("Mul", x, cos, name=f"{name}.cos"), g.op("Mul", other, sin, name=f"{name}.sin"), name=f"{name}.turned")


def _attention(g: _Graph, lm, h: str, n: int, cos: str, sin: str, mask: str) -> str:
    """Heads in groups share keys and values: the queries of a group are rows of one product."""
    b, d, group = f"blk.{n}", lm.depth, lm.heads // lm.kv_heads
    q, k, v = (g.linear(h, lm.matrix(f"{b}.attn_{part}"), f"{b}.{part}") for part in "qkv")
    q = _turned(g, _heads(g, q, lm.heads, d, f"{b}.q"), cos, sin, d, f"{b}.q")
    k = _turned(g, _heads(g, k, lm.kv_heads, d, f"{b}.k"), cos, sin, d, f"{b}.k")
    v = _heads(g, v, lm.kv_heads, d, f"{b}.v")
    for part, new in (("key", k), ("value", v)):
        g.op("Concat", f"past_key_values.{n}.{part}", new, name=f"present.{n}.{part}", axis=2)
    q = g.op("Mul", q, g.const("scale", d**-0.5, "float32"), name=f"{b}.scaled")
    q = g.op("Reshape", q, g.const("grouped", [0, lm.kv_heads, -1, d]), name=f"{b}.grouped")
    keys = g.op("Transpose", f"present.{n}.key", name=f"{b}.keys", perm=[0, 1, 3, 2])
    scores = g.op("MatMul", q, keys, name=f"{b}.scores")
    seq, total = (g.op("Unsqueeze", f"{x}_length", g.const("first", [0]), name=f"{b}.{x}") for x in ("seq", "total"))
    apart = g.op("Concat", g.const("lead", [-1, lm.kv_heads, group]), seq, total, name=f"{b}.apart", axis=0)
    weights = g.op("Softmax", g.op("Add", g.op("Reshape", scores, apart, name=f"{b}.by_head"), mask, name=f"{b}.masked"), name=f"{b}.softmax", axis=-1)
    rows = g.op("Concat", g.const("lead2", [-1, lm.kv_heads]), g.op("Mul", seq, g.const("group", [group]), name=f"{b}.count"), total, name=f"{b}.rows", axis=0)
    mixed = g.op("MatMul", g.op("Reshape", weights, rows, name=f"{b}.weights"), f"present.{n}.value", name=f"{b}.mixed")
    back = g.op("Concat", g.const("lead3", [-1, lm.heads]), seq, g.const("depth", [d]), name=f"{b}.back", axis=0)
    mixed = g.op("Transpose", g.op("Reshape", mixed, back, name=f"{b}.ungrouped"), name=f"{b}.rows_first", perm=[0, 2, 1, 3])
    mixed = g.op("Reshape", mixed, g.const("join", [0, 0, lm.heads * d]), name=f"{b}.joined")
    return g.linear(mixed, lm.matrix(f"{b}.attn_output"), f"{b}.out")


def decoder(lm, packed: bool) -> bytes:
    """The ONNX file of a `llama.Llama`."""
    g = _Graph(packed)
    table = g.const("embedding", _floats(lm.matrix("token_embd")), "float32")
    cos, sin, mask = _positions(g, lm)
    x = g.op("Gather", table, "input_ids", name="tokens")
    for n in range(lm.layers):
        b = f"blk.{n}"
        h = g.norm(x, lm.file.floats(f"{b}.attn_norm.weight"), lm.eps, f"{b}.norm1")
        x = g.op("Add", x, _attention(g, lm, h, n, cos, sin, mask), name=f"{b}.mid")
        h = g.norm(x, lm.file.floats(f"{b}.ffn_norm.weight"), lm.eps, f"{b}.norm2")
        gate, up = (g.linear(h, lm.matrix(f"{b}.ffn_{part}"), f"{b}.{part}") for part in ("gate", "up"))
        gate = g.op("Mul", gate, g.op("Sigmoid", gate, name=f"{b}.sigmoid"), name=f"{b}.silu")
        down = g.linear(g.op("Mul", gate, up, name=f"{b}.gated"), lm.matrix(f"{b}.ffn_down"), f"{b}.down")
        x = g.op("Add", x, down, name=f"{b}.end")
    x = g.norm(x, lm.file.floats("output_norm.weight"), lm.eps, "norm")
    if "output.weight" in lm.file.names:
        g.linear(x, lm.matrix("output"), "logits")
    else:  # the table, once
        g.op("MatMul", x, g.op("Transpose", table, name="embedding.t", perm=[1, 0]), name="logits")
    value = helper.make_tensor_value_info
    cache = ["batch", lm.kv_heads, "past", lm.depth]
    names = [f"{n}.{part}" for n in range(lm.layers) for part in ("key", "value")]
    inputs = [value("input_ids", TensorProto.INT64, ["batch", "seq"])]
    inputs += [value(f"past_key_values.{name}", TensorProto.FLOAT, cache) for name in names]
    outputs = [value("logits", TensorProto.FLOAT, ["batch", "seq", lm.vocabulary])]
    outputs += [value(f"present.{name}", TensorProto.FLOAT, [*cache[:2], "past + seq", lm.depth]) for name in names]
    graph = helper.make_graph(g.nodes, "decoder", inputs, outputs, list(g.weights.values()))
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()

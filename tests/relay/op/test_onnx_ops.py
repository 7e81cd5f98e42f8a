# SPDX-License-Identifier: Apache-2.0
"""Operators that the ONNX importer adds."""

import numpy as np
import pytest
from cases import Case, Reject, Typed, Value, each, f32, i32, i64, rejects, table, typed

onnx = pytest.importorskip("onnx")


def tfidf(x, mode="TF", min_gram_length=1, max_gram_length=1, max_skip_count=0, ngram_counts=(), ngram_indexes=(), pool=(), weights=()):
    """Counts of the n-grams of a pool in each row, words up to max_skip_count apart."""
    rows = x.reshape(1, -1) if x.ndim == 1 else x
    grams, ends = [], [*ngram_counts[1:], len(pool)]
    for length, (begin, end) in enumerate(zip(ngram_counts, ends, strict=True), 1):
        grams += [tuple(pool[k : k + length]) for k in range(begin, end, length)]
    out = np.zeros((len(rows), max(ngram_indexes) + 1), "float32")
    for r, row in enumerate(rows):
        for g, where in zip(grams, ngram_indexes, strict=True):
            n = len(g)
            if min_gram_length <= n <= max_gram_length:
                for skip in range(max_skip_count + 1) if n > 1 else (0,):
                    step = skip + 1
                    out[r, where] += sum(tuple(row[k : k + (n - 1) * step + 1 : step]) == g for k in range(len(row) - (n - 1) * step))
        for g, where in zip(grams, ngram_indexes, strict=True):
            w = weights[grams.index(g)] if weights else 1
            c = out[r, where]
            out[r, where] = c if mode == "TF" else (w if c > 0 else 0) if mode == "IDF" else c * w
    return out.reshape(-1) if x.ndim == 1 else out


POOL = {"ngram_counts": [0, 3], "ngram_indexes": [0, 2, 1, 3, 4], "pool": [1, 2, 5, 1, 2, 2, 5], "min_gram_length": each(1, 2), "max_gram_length": 2}
test_onnx = table(
    Case("onnx.cast", lambda x, dtype: x.astype(dtype), f32(3, 4), dtype=each("float16", "int32", "float64", "bool")),
    Case("onnx.cast", lambda x, dtype: x.astype(dtype), i32(5), dtype=each("float32", "uint8")),
    Case("onnx.tfidf", tfidf, i64(3, 9).within(1, 5), mode="TF", max_skip_count=each(0, 1, 3), **POOL),
    Case("onnx.tfidf", tfidf, i32(9).within(1, 5), mode=each("TF", "IDF", "TFIDF"), weights=[0.5, 2.0, 1.5, 3.0, 0.25], **POOL),
)


def node(op, inputs, outputs=1, **attrs):
    """Attributes of dyn.onnx for a node whose operands are all there."""
    made = onnx.helper.make_node(op, [f"x{k}" for k in range(inputs)], [f"y{k}" for k in range(outputs)], **attrs)
    return {"op_type": op, "node": made.SerializeToString().hex(), "opset": 21, "present": [1] * inputs}


test_host_values = typed(
    Typed("dyn.onnx_value", "HostValue", ((2,), "float32"), ((3, 1), "float32"), shapes=[[]], dtypes=["value"], **node("SequenceConstruct", 2)),
    Typed(
        "dyn.onnx_value", "(Tensor[(?, 2), float32], HostValue)", ((2,), "float32"), shapes=[[-1, 2], []], dtypes=["float32", "value"], **node("Split", 1, 2)
    ),
)
test_deferred = table(
    Case(
        "dyn.onnx",
        lambda x, s, **kw: x.reshape(s),
        f32(2, 3),
        Value([3, 2], "int64"),
        shapes=[[-1, -1]],
        dtypes=["float32"],
        compiled=False,
        **node("Reshape", 2),
    ),
    Case(
        "dyn.onnx",
        lambda x, s, **kw: np.broadcast_to(x, s),
        i32(3, 1),
        Value([2, 3, 4], "int64"),
        shapes=[[-1, 3, -1]],
        dtypes=["int32"],
        compiled=False,
        **node("Expand", 2),
    ),
    Case(
        "dyn.onnx",
        lambda x, s, **kw: (x[:, :1], x[:, 1:]),
        f32(2, 3),
        Value([1, 2], "int64"),
        shapes=[[2, -1], [2, -1]],
        dtypes=["float32"] * 2,
        compiled=False,
        **node("Split", 2, 2, axis=1),
    ),
)

C = {"ngram_counts": [0], "ngram_indexes": [0], "pool": [1]}
test_rejects = rejects(
    Reject("onnx.tfidf", "R1", ((3,), "float32"), **C),
    Reject("onnx.tfidf", "R1", ((3, 1, 1), "int64"), **C),
    Reject("onnx.tfidf", "R2", ((3,), "int64"), mode="IDFT", **C),
    Reject("onnx.tfidf", "R3", ((3,), "int64"), max_gram_length=2, **C),
    Reject("onnx.tfidf", "R3", ((3,), "int64"), max_skip_count=-1, **C),
    Reject("onnx.tfidf", "R4", ((3,), "int64"), **{**C, "ngram_counts": [-1]}),
    Reject("onnx.tfidf", "R4", ((3,), "int64"), **{**C, "ngram_indexes": [-2]}),
    Reject("onnx.cast", "R1", ((3,), "int64"), dtype="handle"),
    Reject("onnx.cast", "R2", ((3,), "float32"), dtype="float16", round_mode="away"),
    Reject("dyn.onnx", "R1", np.zeros(2, "float32"), np.array([2]), **{**node("Reshape", 2), "node": "0g"}, shapes=[[-1]], dtypes=["float32"]),
    Reject("dyn.onnx", "R3", np.zeros(2, "float32"), **node("Reshape", 2), shapes=[[-1]], dtypes=["float32"]),
    Reject("dyn.onnx", "R2", ((3,), "int64"), op_type="Range", node="", shapes=[[1]], dtypes=[]),
)

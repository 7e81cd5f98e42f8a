# SPDX-License-Identifier: Apache-2.0
"""Attention alone, beside ONNX Runtime: products and softmax spelled out, and its GroupQueryAttention; one query beside a cache, and prompts.

    python bench/attention.py                  # all rows: three minutes
    python bench/attention.py --only "1 x"     # rows whose name contains this (a regular expression)
    python bench/attention.py --plain          # beside Baton without FuseAttention
    python bench/attention.py --check          # exit code 1 where the bar is missed

A row has queries x keys, and heads of queries over heads of keys. `spelled`: softmax(scale * q k^T) v, keys repeated for each head that shares them.
`group`: com.microsoft's GroupQueryAttention, which hides later keys; a row of one query has the other keys in a cache that ONNX Runtime writes in
place (both engines get separate memory for it). `open`: all lengths are dimensions of the call, compiled once.

Engines take turns, after a pause in which the other's threads fall asleep; a time is the least of the rounds. Bar: each row at most 0.8 times ONNX
Runtime's.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

BAR = 0.8
PAUSE_S = 0.03
DEPTH = 64


class Row(NamedTuple):
    form: str
    queries: int
    keys: int
    heads: int
    groups: int
    open: bool

    def __str__(self) -> str:
        return f"{self.form:7} {self.queries:4} x {self.keys:<4} {self.heads:2}/{self.groups:<2} {'open' if self.open else ''}".rstrip()


def all_rows() -> list[Row]:
    sizes = [(1, 16), (1, 64), (1, 256), (1, 1024), (1, 4096), (128, 128), (512, 512)]
    heads = [(9, 3), (12, 12)]
    rows = [Row("spelled", m, n, h, g, is_open) for is_open in (False, True) for h, g in heads for m, n in sizes]
    return rows + [Row("group", m, n, h, g, False) for h, g in heads for m, n in sizes]


def spelled(row: Row, rng) -> tuple[bytes, dict]:
    """(the model, its inputs)."""
    from onnx import TensorProto, helper, numpy_helper

    f32, each = TensorProto.FLOAT, row.heads // row.groups
    rows, keys = ("rows", "keys") if row.open else (row.queries, row.keys)
    weights = [numpy_helper.from_array(np.array(DEPTH**-0.5, "float32"), "scale")]
    nodes = []

    def op(kind, *inputs, name, **attrs):
        nodes.append(helper.make_node(kind, inputs, [name], name=name, **attrs))
        return name

    k, v = "k", "v"
    if each > 1:
        weights.append(numpy_helper.from_array(np.array([2]), "two"))
        weights.append(numpy_helper.from_array(np.array([1, 1, each, 1, 1]), "times"))
        weights.append(numpy_helper.from_array(np.array([0, row.heads, -1, DEPTH]), "joined"))
        for one in ("k", "v"):
            wide = op("Expand", op("Unsqueeze", one, "two", name=f"{one}.unsqueezed"), "times", name=f"{one}.repeated")
            op("Reshape", wide, "joined", name=f"{one}.heads")
        k, v = "k.heads", "v.heads"
    scores = op("MatMul", "q", op("Transpose", k, name="k.t", perm=[0, 1, 3, 2]), name="products")
    weighted = op("Softmax", op("Mul", scores, "scale", name="scaled"), name="softmax", axis=-1)
    op("MatMul", weighted, v, name="out")
    shapes = {"q": (1, row.heads, rows, DEPTH), "k": (1, row.groups, keys, DEPTH), "v": (1, row.groups, keys, DEPTH)}
    inputs = [helper.make_tensor_value_info(name, f32, shape) for name, shape in shapes.items()]
    outputs = [helper.make_tensor_value_info("out", f32, shapes["q"])]
    model = helper.make_model(helper.make_graph(nodes, "attention", inputs, outputs, weights), opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    sizes = {"rows": row.queries, "keys": row.keys}
    feeds = {name: rng.standard_normal([sizes.get(d, d) for d in shape], np.float32) for name, shape in shapes.items()}
    return model.SerializeToString(), feeds


def group(row: Row, rng) -> tuple[bytes, dict]:
    """The same of GroupQueryAttention: one query has the other keys in the cache, a prompt has none there."""
    from onnx import TensorProto, helper, numpy_helper

    f32 = TensorProto.FLOAT
    past = row.keys - row.queries
    shapes = {
        "q": (1, row.queries, row.heads * DEPTH),
        "k": (1, row.queries, row.groups * DEPTH),
        "v": (1, row.queries, row.groups * DEPTH),
    }
    cache = (1, row.groups, past, DEPTH)
    names = ["q", "k", "v", "", ""]
    if past:
        shapes |= {"past_k": cache, "past_v": cache}
        names[3:] = ["past_k", "past_v"]
    weights = [numpy_helper.from_array(np.array([row.keys - 1], "int32"), "last"), numpy_helper.from_array(np.array(row.keys, "int32"), "total")]
    node = helper.make_node(
        "GroupQueryAttention", [*names, "last", "total"], ["out", "present_k", "present_v"], domain="com.microsoft", num_heads=row.heads,
        kv_num_heads=row.groups,
    )  # fmt: skip
    present = (1, row.groups, row.keys, DEPTH)
    inputs = [helper.make_tensor_value_info(name, f32, shape) for name, shape in shapes.items()]
    outputs = [helper.make_tensor_value_info(n, f32, s) for n, s in (("out", shapes["q"]), ("present_k", present), ("present_v", present))]
    model = helper.make_model(
        helper.make_graph([node], "group", inputs, outputs, weights),
        opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)],
        ir_version=9,
    )
    return model.SerializeToString(), {name: rng.standard_normal(shape, np.float32) for name, shape in shapes.items()}


def least(runs: dict, rounds: int) -> dict[str, float]:
    """The least seconds of each, in turns."""
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(rounds):
        for name, run in runs.items():
            time.sleep(PAUSE_S)
            run()  # wakes the threads
            for _ in range(3):
                start = time.perf_counter()
                run()
                best[name] = min(best[name], time.perf_counter() - start)
    return best


def compiled(source: bytes, feeds: dict, plain: bool):
    """A callable of no argument."""
    import baton

    with tempfile.TemporaryDirectory(prefix="baton-attention-") as folder:
        path = Path(folder, "row.onnx")
        path.write_bytes(source)
        executable = baton.compile(str(path), disabled_pass=["FuseAttention"] if plain else [])
    order = [feeds[info.name] for info in executable.inputs]
    return lambda: executable(*order)


def theirs(source: bytes, feeds: dict, threads: int):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 3
    session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, feeds)


def measure(row: Row, threads: int, rounds: int, plain: bool) -> dict:
    source, feeds = {"spelled": spelled, "group": group}[row.form](row, np.random.default_rng(0))
    runs = {"ours": compiled(source, feeds, False), "theirs": theirs(source, feeds, threads)}
    if plain:
        runs["plain"] = compiled(source, feeds, True)
    results = {name: run() for name, run in runs.items()}
    want = results.pop("theirs")
    for name, got in results.items():
        for a, b in zip(got if isinstance(got, (list, tuple)) else [got], want, strict=True):
            np.testing.assert_allclose(a.numpy(), b, rtol=2e-4, atol=2e-5, err_msg=f"{row}: {name}")
    best = least(runs, rounds)
    return {name: seconds * 1e6 for name, seconds in best.items()} | {"ratio": best["ours"] / best["theirs"]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="a regular expression that a row's name contains")
    parser.add_argument("--threads", type=int, default=1, help="(default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=15, help="(default: %(default)s)")
    parser.add_argument("--plain", action="store_true", help="beside Baton without FuseAttention")
    parser.add_argument("--check", action="store_true", help="exit code 1 where the bar is missed")
    args = parser.parse_args()
    os.environ["BATON_NUM_THREADS"] = str(args.threads)
    ratios, missed = [], []
    print(f"threads {args.threads}; microseconds")
    for row in all_rows():
        if not re.search(args.only, str(row)):
            continue
        f = measure(row, args.threads, args.rounds, args.plain)
        ratios.append(f["ratio"])
        if f["ratio"] > BAR:
            missed.append(f"{row}: {f['ratio']:.2f}")
        beside = f"  plain {f['plain']:9.1f}  over plain {f['ours'] / f['plain']:5.2f}" if args.plain else ""
        print(f"{row!s:32} ours {f['ours']:9.1f}  ONNX Runtime {f['theirs']:9.1f}  ratio {f['ratio']:5.2f}{beside}", flush=True)
    print(f"geometric mean {np.exp(np.mean(np.log(ratios))):.2f}; {len(missed)} rows above {BAR}")
    return int(args.check and bool(missed))


if __name__ == "__main__":
    sys.exit(main())

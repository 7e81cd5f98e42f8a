# SPDX-License-Identifier: Apache-2.0
"""Parts of models of others whose lengths are open: loops, trees, encoders of strings, weights of 4 bits. Beside their own static code and ONNX Runtime.

    python bench/open_parts.py                 # all rows
    python bench/open_parts.py trees bag       # rows whose names have these words
    python bench/open_parts.py --bars          # exit code 1 where a bar is missed

Engines take turns, and a ratio is of the least times. The bars are 1.10 over static code and 1.2 over ONNX Runtime.
"""

from __future__ import annotations

import argparse
import os
import sys
from functools import partial
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper
from shipped import distance, flat, turns

sys.path.append(str(Path(__file__).resolve().parent.parent / "python"))  # behind a package of PYTHONPATH

OPEN_BAR, PEER_BAR = 1.10, 1.2
RNG = np.random.default_rng(0)
ROWS = {}


def row(name):
    def add(function):
        ROWS[name] = function
        return function

    return add


def floats(*shape):
    return RNG.uniform(-1, 1, shape).astype("float32")


def model(nodes, feeds, dims, weights=(), outputs=("y",), domains=(("", 18),), kinds=None):
    """A model whose inputs have the names `dims` for their lengths."""
    element = {np.dtype("float32"): TensorProto.FLOAT, np.dtype("float64"): TensorProto.DOUBLE, np.dtype("int64"): TensorProto.INT64}
    infos = [helper.make_tensor_value_info(name, element.get(a.dtype, TensorProto.STRING), dims[name]) for name, a in feeds.items()]
    results = [helper.make_tensor_value_info(name, (kinds or {}).get(name, TensorProto.FLOAT), None) for name in outputs]
    held = [numpy_helper.from_array(np.asarray(array), name) for name, array in weights]
    graph = helper.make_graph(nodes, "part", infos, results, held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid(*d) for d in domains], ir_version=9), feeds


def body_of(nodes, carried, outputs):
    keep = helper.make_node("Identity", ["go"], ["go_on"])
    flags = [helper.make_tensor_value_info("i", TensorProto.INT64, []), helper.make_tensor_value_info("go", TensorProto.BOOL, [])]
    state = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in carried]
    results = [helper.make_tensor_value_info("go_on", TensorProto.BOOL, [])]
    results += [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    return helper.make_graph([keep, *nodes], "body", [*flags, *state], results)


@row("embedding bag, 64 bags of 1,000")
def embedding_bag():
    """The export of nn.EmbeddingBag by PyTorch: a Loop over the bags."""
    n, bags, width = 1000, 64, 64
    offsets = np.sort(RNG.integers(0, n, bags)).astype("int64")
    offsets[0] = 0
    feeds = {"ids": RNG.integers(0, 5000, n).astype("int64"), "offsets": offsets}
    body = body_of(
        [
            helper.make_node("Gather", ["offsets", "i"], ["b"], axis=0),
            helper.make_node("Gather", ["ends", "i"], ["e"], axis=0),
            helper.make_node("Unsqueeze", ["b", "zero"], ["b1"]),
            helper.make_node("Unsqueeze", ["e", "zero"], ["e1"]),
            helper.make_node("Slice", ["ids", "b1", "e1", "zero"], ["part"]),
            helper.make_node("Gather", ["table", "part"], ["found"], axis=0),
            helper.make_node("ReduceSum", ["found", "zero"], ["out"], keepdims=0),
        ],
        [],
        ["out"],
    )
    nodes = [
        helper.make_node("Slice", ["offsets", "one", "end", "zero"], ["late"]),
        helper.make_node("Shape", ["ids"], ["all"]),
        helper.make_node("Concat", ["late", "all"], ["ends"], axis=0),
        helper.make_node("Shape", ["offsets"], ["count"]),
        helper.make_node("Gather", ["count", "first"], ["trip"], axis=0),
        helper.make_node("Loop", ["trip", "true"], ["y"], body=body),
    ]
    numbers = {"zero": np.array([0]), "one": np.array([1]), "end": np.array([2**62]), "first": np.array(0), "true": np.array(True)}
    return model(nodes, feeds, {"ids": ["n"], "offsets": ["bags"]}, [*numbers.items(), ("table", floats(5000, width))])


def loop_over_rows(nodes, carried, outputs, weights, steps=100, width=64, starts=()):
    feeds = {"x": floats(steps, width)}
    around = [
        helper.make_node("Shape", ["x"], ["count"]),
        helper.make_node("Gather", ["count", "first"], ["trip"], axis=0),
        helper.make_node("Loop", ["trip", "true", *starts], [*(f"last_{c}" for c in carried), "y"], body=body_of(nodes, carried, outputs)),
    ]
    numbers = {"first": np.array(0), "true": np.array(True)}
    return model(around, feeds, {"x": ["n", width]}, [*numbers.items(), *weights])


@row("loop, a cell of 64 over 100 rows")
def loop_cell():
    """A hand-written recurrent cell."""
    nodes = [
        helper.make_node("Gather", ["x", "i"], ["r"], axis=0),
        helper.make_node("Unsqueeze", ["r", "first1"], ["r1"]),
        helper.make_node("MatMul", ["r1", "w"], ["a"]),
        helper.make_node("MatMul", ["h", "u"], ["b"]),
        helper.make_node("Add", ["a", "b"], ["c"]),
        helper.make_node("Tanh", ["c"], ["next"]),
        helper.make_node("Identity", ["next"], ["out"]),
    ]
    weights = [("w", floats(64, 64) / 8), ("u", floats(64, 64) / 8), ("h0", floats(1, 64)), ("first1", np.array([0]))]
    return loop_over_rows(nodes, ["h"], ["next", "out"], weights, starts=["h0"])


@row("loop, a map over 100 rows")
def loop_map():
    nodes = [helper.make_node("Gather", ["x", "i"], ["r"], axis=0), helper.make_node("Tanh", ["r"], ["out"])]
    return loop_over_rows(nodes, [], ["out"], [])


@row("scan, a running sum of 100 rows")
def scan():
    add = [helper.make_node("Add", ["s", "r"], ["next"]), helper.make_node("Tanh", ["next"], ["out"])]
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [64]) for name in ("s", "r", "next", "out")]
    body = helper.make_graph(add, "body", infos[:2], infos[2:])
    nodes = [helper.make_node("Scan", ["s0", "x"], ["last", "y"], body=body, num_scan_inputs=1)]
    return model(nodes, {"x": floats(100, 64)}, {"x": ["n", 64]}, [("s0", floats(64))])


def forest(rows, trees, leaves, dtype, features=64, classes=1, missing=0):
    """Trees that grow leaf by leaf, as LightGBM's do."""
    feature, split, yes, no, yes_leaf, no_leaf, roots, weights, targets = [], [], [], [], [], [], [], [], []
    for tree in range(trees):
        base, first = len(feature), len(weights)
        roots.append(base)
        open_ends = [None]  # places where a leaf is: (node, side)
        for node in range(leaves - 1):
            at = open_ends.pop(int(RNG.integers(max(0, len(open_ends) - 8), len(open_ends))))
            feature.append(int(RNG.integers(features)))
            split.append(float(RNG.uniform(-0.8, 0.8)))
            for side in (yes, no, yes_leaf, no_leaf):
                side.append(0)
            if at is not None:
                (yes if at[1] else no)[at[0]] = base + node
            open_ends += [(base + node, True), (base + node, False)]
        for k, (node, side) in enumerate(open_ends):
            (yes if side else no)[node], (yes_leaf if side else no_leaf)[node] = first + k, 1
        weights += RNG.uniform(-0.1, 0.1, leaves).tolist()
        targets += [tree % classes] * leaves
    kind = TensorProto.FLOAT if dtype == "float32" else TensorProto.DOUBLE
    tensor = lambda name, values, kind=kind: helper.make_tensor(name, kind, [len(values)], values)  # noqa: E731
    node = helper.make_node(
        "TreeEnsemble", ["x"], ["y"], domain="ai.onnx.ml", n_targets=classes, aggregate_function=1, post_transform=0, tree_roots=roots,
        nodes_featureids=feature, nodes_splits=tensor("s", split), nodes_modes=tensor("m", [0] * len(feature), TensorProto.UINT8),
        nodes_truenodeids=yes, nodes_falsenodeids=no, nodes_trueleafs=yes_leaf, nodes_falseleafs=no_leaf,
        nodes_missing_value_tracks_true=[missing * (k % 2) for k in range(len(feature))],
        leaf_targetids=targets, leaf_weights=tensor("w", weights),
    )  # fmt: skip
    feeds = {"x": RNG.uniform(-1, 1, (rows, features)).astype(dtype)}
    return model([node], feeds, {"x": ["n", features]}, domains=(("", 18), ("ai.onnx.ml", 5)), kinds={"y": kind})


ROWS["trees, 100 of 31 leaves, 1 row"] = lambda: forest(1, 100, 31, "float32")
ROWS["trees, 100 of 31 leaves, 7 rows"] = lambda: forest(7, 100, 31, "float32")
ROWS["trees, 100 of 31 leaves, 1,000 rows"] = lambda: forest(1000, 100, 31, "float32")
ROWS["trees, 500 of 31 leaves, 100 rows, NaN goes either way"] = lambda: forest(100, 500, 31, "float32", missing=1)
ROWS["trees, 300 of 63 leaves, 3 classes, 100 rows"] = lambda: forest(100, 300, 63, "float32", classes=3)
ROWS["trees, 500 of 31 leaves, float64, 100 rows"] = lambda: forest(100, 500, 31, "float64")


def texts(rows, columns, words):
    return np.array([[f"word{k}" for k in RNG.integers(0, words, columns)] for _ in range(rows)], dtype=object)


@row("strings, labels of 50 words, 1,000 x 3")
def label_encoder():
    words = [f"word{k}" for k in range(50)]
    node = helper.make_node("LabelEncoder", ["x"], ["y"], domain="ai.onnx.ml", keys_strings=words, values_int64s=list(range(50)), default_int64=-1)
    domains = (("", 18), ("ai.onnx.ml", 2))
    return model([node], {"x": texts(1000, 3, 60)}, {"x": ["n", 3]}, domains=domains, kinds={"y": TensorProto.INT64})


@row("strings, one hot of 50 words, 1,000 x 3")
def one_hot_encoder():
    words = [f"word{k}" for k in range(50)]
    node = helper.make_node("OneHotEncoder", ["x"], ["y"], domain="ai.onnx.ml", cats_strings=words, zeros=1)
    return model([node], {"x": texts(1000, 3, 60)}, {"x": ["n", 3]}, domains=(("", 18), ("ai.onnx.ml", 2)))


def nbits(rows, k=1024, n=1024):
    packed = RNG.integers(0, 255, (n, k // 32, 16)).astype("uint8")
    scales = RNG.uniform(0.01, 0.1, n * k // 32).astype("float32")
    node = helper.make_node("MatMulNBits", ["x", "w", "s"], ["y"], domain="com.microsoft", K=k, N=n, bits=4, block_size=32)
    domains = (("", 18), ("com.microsoft", 1))
    return model([node], {"x": floats(1, rows, k)}, {"x": ["b", "n", k]}, [("w", packed), ("s", scales)], domains=domains)


ROWS["4 bits, 1,024 x 1,024, 1 row"] = lambda: nbits(1)
ROWS["4 bits, 1,024 x 1,024, 128 rows"] = lambda: nbits(128)


def conv1d(n, channels, length, made, kernel, stride=1, dilation=1, group=1):
    weights = [("w", floats(made, channels // group, kernel) / np.float32(np.sqrt(channels * kernel))), ("b", floats(made))]
    pads = [dilation * (kernel // 2)] * 2
    node = helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=pads, strides=[stride], dilations=[dilation], group=group)
    nodes = [node, helper.make_node("Relu", ["c"], ["y"])]
    return model(nodes, {"x": floats(n, channels, length)}, {"x": ["n", channels, "l"]}, weights)


ROWS["conv over a line, 80 to 256, 3 of 3,000"] = lambda: conv1d(1, 80, 3000, 256, 3)
ROWS["conv over a line, 64 to 64, 3 of 150, dilated"] = lambda: conv1d(4, 64, 150, 64, 3, dilation=4)
ROWS["conv over a line, 129 to 128, 3 of 400"] = lambda: conv1d(1, 129, 400, 128, 3)
ROWS["conv over a line, 1 to 258, 256 of 16,000, step 64"] = lambda: conv1d(2, 1, 16000, 258, 256, 64)
ROWS["conv over a line, 128 alone, 5 of 600"] = lambda: conv1d(2, 128, 600, 128, 5, group=128)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*", metavar="WORD", help="words of rows (default: all)")
    parser.add_argument("--threads", type=int, default=2, help="of each engine (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=15, help="runs of each engine (default: %(default)s)")
    parser.add_argument("--bars", action="store_true", help="exit code 1 where a bar is missed")
    args = parser.parse_args()
    os.environ["BATON_NUM_THREADS"] = str(args.threads)
    import onnxruntime

    import baton

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = args.threads, 4
    missed = []
    for name, make in ROWS.items():
        if args.words and not any(word in name for word in args.words):
            continue
        made, feed = make()
        peer = onnxruntime.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])
        whole, fixed = baton.compile(made), baton.compile(made, shape={key: a.shape for key, a in feed.items()})
        want = peer.run(None, feed)
        for engine in (whole, fixed):
            apart = distance(flat(engine(feed)), want)
            if not apart <= 1e-4:
                missed.append(f"{name}: differs from ONNX Runtime by {apart:.2g}")
        runs = {"open": partial(whole, feed), "static": partial(fixed, feed), "onnxruntime": partial(peer.run, None, feed)}
        best = turns(runs, args.rounds)
        over_static, over_peer = best["open"] / best["static"], best["open"] / best["onnxruntime"]
        print(
            f"{name:56}"
            + "".join(f" {key} {ms:.3f}" for key, ms in best.items())
            + f" ms   open over static {over_static:.2f}, over ONNX Runtime {over_peer:.2f}",
            flush=True,
        )
        missed += [f"{name}: open over static {over_static:.2f}, the bar is {OPEN_BAR}"] if over_static > OPEN_BAR else []
        missed += [f"{name}: over ONNX Runtime {over_peer:.2f}, the bar is {PEER_BAR}"] if over_peer > PEER_BAR else []
    print(*missed, sep="\n" if missed else "")
    return 1 if missed and args.bars else 0


if __name__ == "__main__":
    sys.exit(main())

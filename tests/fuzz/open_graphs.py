# SPDX-License-Identifier: Apache-2.0
"""Generated ONNX graphs with open lengths, beside ONNX Runtime: each graph that it runs is compiled once and gives its results for two sizes.

    python tests/fuzz/open_graphs.py -n 1000
    python tests/fuzz/open_graphs.py --first 123 -n 1      # one graph again
    python tests/fuzz/open_graphs.py -n 200 --only Gemm,GRU

Graph K is the same on every machine. A graph that ONNX Runtime does not take is counted and left out. Exit code 1 where a graph is refused,
differs or ends the process.
"""

import argparse
import collections
import os
import pathlib
import random
import subprocess
import sys

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper
from open_graph_rows import ROWS, Value

ELEMENT = {np.dtype("float32"): TensorProto.FLOAT, np.dtype("int64"): TensorProto.INT64, np.dtype("bool"): TensorProto.BOOL}
CALLS = 2


class Graph:
    """A graph that grows: `values` can be read by the next node, `inputs` are those of the graph with an array for each call."""

    def __init__(self, seed):
        self.rng = random.Random(f"open graph {seed}")
        self.arrays = np.random.default_rng([seed, 29])
        self.nodes, self.weights, self.inputs, self.values = [], [], [], []
        self.lengths = {}  # name of a dimension -> its length in each call
        self.kinds = []
        self.opset = self.rng.choice((17, 18, 21))

    def length(self, *least):
        """A dimension's name: one that is there, or a new one."""
        low = least[0] if least else 1
        fitting = [name for name, sizes in self.lengths.items() if min(sizes) >= low]
        if fitting and self.rng.random() < 0.4:
            return self.rng.choice(fitting)
        name = f"d{len(self.lengths)}"
        self.lengths[name] = tuple(self.rng.randint(low, low + 6) for _ in range(CALLS))
        return name

    def name(self):
        return f"v{len(self.nodes)}_{len(self.values)}_{len(self.weights)}"

    def input(self, dims, dtype="float32", low=-1, high=1):
        """A new input: `dims` are names and numbers."""
        name = f"x{len(self.inputs)}"
        shapes = [tuple(self.lengths[d][call] if isinstance(d, str) else d for d in dims) for call in range(CALLS)]
        if dtype == "float32":
            arrays = [self.arrays.uniform(low, high, shape).astype(dtype) for shape in shapes]
        else:
            arrays = [self.arrays.integers(low, high, shape).astype(dtype) for shape in shapes]
        self.inputs.append((name, dims, arrays))
        return self.made(name, shapes, dtype, dims)

    def made(self, name, shapes, dtype="float32", dims=None):
        value = Value(name, tuple(map(tuple, shapes)), np.dtype(dtype), dims)
        self.values.append(value)
        return value

    def constant(self, array, dtype=None):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array, dtype), name))
        return name

    def weight(self, *shape):
        return self.constant(self.arrays.uniform(-0.5, 0.5, shape).astype("float32"))

    def ints(self, *numbers):
        return self.constant(np.array(numbers, "int64"))

    def node(self, kind, operands, results=1, domain="", **attrs):
        names = [f"{kind.lower()}{len(self.nodes)}_{k}" for k in range(results)]
        operands = [v.name if isinstance(v, Value) else v for v in operands]
        self.nodes.append(helper.make_node(kind, operands, names, name=f"node{len(self.nodes)}", domain=domain, **attrs))
        return names[0] if results == 1 else names

    def value(self, rank=None, dtype="float32", where=None):
        """A value of this rank that a node can read, mostly the newest; else a new input."""
        fitting = [
            v for v in self.values if v.dtype == dtype and (rank is None or len(v.shapes[0]) == rank) and (where is None or where(v)) and v.elements < 20000
        ]
        if fitting and self.rng.random() < 0.8:
            return fitting[-1] if self.rng.random() < 0.7 else self.rng.choice(fitting)
        return None

    def model(self):
        """The model; its outputs are what no node reads."""
        read = {name for node in self.nodes for name in node.input}
        given = {name for name, _, _ in self.inputs}
        outputs = [v for v in self.values if v.name not in read and v.name not in given]
        infos = [helper.make_tensor_value_info(name, ELEMENT[arrays[0].dtype], dims) for name, dims, arrays in self.inputs]
        results = [helper.make_tensor_value_info(v.name, ELEMENT[v.dtype], [None] * len(v.shapes[0])) for v in outputs]
        graph = helper.make_graph(self.nodes, "graph", infos, results, self.weights)
        domains = [helper.make_opsetid("", self.opset), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=domains, ir_version=9)

    def feeds(self):
        return [{name: arrays[call] for name, _, arrays in self.inputs} for call in range(CALLS)]


def graph_of(seed, only=()):
    graph = Graph(seed)
    names = [name for name in ROWS if not only or name in only]
    for _ in range(graph.rng.randint(1, 5)):
        name = graph.rng.choice(names)
        graph.kinds.append(name)
        ROWS[name](graph)
    return graph


def apart(got, want):
    if got.shape != want.shape:
        return f"shape {got.shape}, {want.shape} is wanted"
    if want.dtype.kind != "f":
        return "" if np.array_equal(got, want) else "other integers"
    close = np.allclose(got, want, rtol=2e-3, atol=2e-4 * max(1.0, float(np.nanmax(np.abs(want), initial=0.0))), equal_nan=True)
    return "" if close else f"differs by {np.nanmax(np.abs(got - want)):.3g}"


def outcome(seed, only=()):
    """(What became of graph `seed`: "ok", "peer", "refused" or "wrong"; a sentence)."""
    import onnxruntime

    import baton

    graph = graph_of(seed, only)
    model = graph.model()
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    try:
        checker.check_model(model, full_check=False)
        peer = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        wants = [peer.run(None, feed) for feed in graph.feeds()]
    except Exception as error:  # noqa: BLE001 - each reason of the peer's
        return "peer", f"{'+'.join(graph.kinds)}: {str(error).splitlines()[0][:200]}"
    try:
        compiled = baton.compile(model)
    except Exception as error:  # noqa: BLE001 - whatever it says
        return "refused", f"{'+'.join(graph.kinds)}: {type(error).__name__}: {str(error)[:600]}"
    for call, (feed, want) in enumerate(zip(graph.feeds(), wants, strict=True)):
        try:
            got = compiled(feed)
        except Exception as error:  # noqa: BLE001
            return "wrong", f"{'+'.join(graph.kinds)}: call {call}: {type(error).__name__}: {str(error)[:400]}"
        got = [np.asarray(v) for v in (got if isinstance(got, (list, tuple)) else [got])]
        for a, b in zip(got, want, strict=True):
            problem = apart(a, b)
            if problem:
                return "wrong", f"{'+'.join(graph.kinds)}: call {call}: {problem}"
    return "ok", ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-n", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", default="", help="rows of open_graph_rows.py, with commas")
    parser.add_argument("--save", help="write the (one) graph here")
    parser.add_argument("--peer", action="store_true", help="also print what ONNX Runtime does not take")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    only = tuple(filter(None, args.only.split(",")))
    if args.save:
        pathlib.Path(args.save).write_bytes(graph_of(args.first, only).model().SerializeToString())
        return 0
    if args.child:
        for seed in range(args.first, args.first + args.n):
            print(f"{seed}\t" + "\t".join(s.replace("\n", " | ") for s in outcome(seed, only)), flush=True)
        return 0
    counts = collections.Counter()
    at, end = args.first, args.first + args.n
    while at < end:  # a graph that ends the process is one fault, and the range goes on
        command = [sys.executable, __file__, "--child", "--first", str(at), "-n", str(end - at), "--only", args.only]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ) as child:
            for line in child.stdout:
                seed, kind, text = line.rstrip("\n").split("\t", 2)
                counts[kind] += 1
                at = int(seed) + 1
                if kind in ("refused", "wrong") or (kind == "peer" and args.peer):
                    print(f"graph {seed}: {kind}: {text}", flush=True)
        if child.returncode != 0:
            print(f"graph {at}: ended the process with {child.returncode}", flush=True)
            counts["ended"] += 1
            at += 1
    print(", ".join(f"{n} {kind}" for kind, n in sorted(counts.items())))
    return 1 if counts["refused"] or counts["wrong"] or counts["ended"] else 0


if __name__ == "__main__":
    sys.exit(main())

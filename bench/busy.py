# SPDX-License-Identifier: Apache-2.0
"""A model beside a busy neighbour: medians of latency while another process keeps one processor busy.

    python bench/busy.py            # a small decoder layer and a chain of small products
    python bench/busy.py --check    # exit code 1 where a bar is missed

Two threads on two processors, one of which is loaded. Bar: our median with two threads is at most 1.3 times the better of ours with one thread
and ONNX Runtime's with two. Each engine runs in a separate process, in turns, with the neighbour that the others had.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

BAR = 1.3


def decoder(path: Path, width: int = 256, heads: int = 4, layers: int = 4, past: int = 128) -> dict[str, np.ndarray]:
    """Layers of attention over `past` tokens and a feed-forward net, for one new token; its inputs."""
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)
    nodes, weights, head = [], [], width // heads

    def weight(name: str, *shape: int) -> str:
        weights.append(numpy_helper.from_array((rng.standard_normal(shape) * 0.05).astype(np.float32), name))
        return name

    def node(op: str, inputs: list[str], **attrs) -> str:
        nodes.append(helper.make_node(op, inputs, [f"v{len(nodes)}"], **attrs))
        return f"v{len(nodes) - 1}"

    weights.append(numpy_helper.from_array(np.array([1, 1, heads, head]), "split"))
    weights.append(numpy_helper.from_array(np.array([1, 1, width]), "join"))
    value = "x"
    for i in range(layers):
        normal = node("LayerNormalization", [value, weight(f"s{i}", width), weight(f"b{i}", width)])
        query = node("Transpose", [node("Reshape", [node("MatMul", [normal, weight(f"q{i}", width, width)]), "split"])], perm=[0, 2, 1, 3])
        scores = node("Softmax", [node("MatMul", [query, weight(f"k{i}", 1, heads, head, past)])])
        mixed = node("Transpose", [node("MatMul", [scores, weight(f"v{i}w", 1, heads, past, head)])], perm=[0, 2, 1, 3])
        value = node("Add", [value, node("MatMul", [node("Reshape", [mixed, "join"]), weight(f"o{i}", width, width)])])
        wide = node("Relu", [node("MatMul", [value, weight(f"u{i}", width, 4 * width)])])
        value = node("Add", [value, node("MatMul", [wide, weight(f"d{i}", 4 * width, width)])])
    graph = helper.make_graph(
        nodes,
        "decoder",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, width])],
        [helper.make_tensor_value_info(value, TensorProto.FLOAT, [1, 1, width])],
        weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return {"x": rng.standard_normal((1, 1, width)).astype(np.float32)}


def run_engine(engine: str, path: str, threads: int, seconds: float) -> float:
    """The median of milliseconds, in this process."""
    x = np.random.default_rng(0).standard_normal((1, 1, 256)).astype(np.float32)
    if engine == "baton":
        os.environ["BATON_NUM_THREADS"] = str(threads)
        import baton

        model = baton.compile(path)

        def call():
            return model(x)

    else:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = threads, 3
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

        def call():
            return session.run(None, {"x": x})

    for _ in range(20):
        call()
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return float(np.median(times)) * 1e3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3, help="(default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=1.5, help="of each run (default: %(default)s)")
    parser.add_argument("--check", action="store_true", help="exit code 1 where the bar is missed")
    parser.add_argument("--engine", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.engine:
        name, path, threads = args.engine.split(",")
        print(json.dumps(run_engine(name, path, int(threads), args.seconds)))
        return 0
    with tempfile.TemporaryDirectory(prefix="baton-busy-") as folder:
        path = Path(folder, "decoder.onnx")
        decoder(path)
        best: dict[tuple, list[float]] = {}
        processors = sorted(os.sched_getaffinity(0))[:2]
        if len(processors) < 2:
            print("two processors are needed")
            return 0
        os.sched_setaffinity(0, processors)
        for busy in (False, True):
            neighbour = None
            if busy:
                neighbour = subprocess.Popen([sys.executable, "-c", f"import os\nos.sched_setaffinity(0, {{{processors[1]}}})\nwhile True: pass"])
            try:
                for _ in range(args.rounds):
                    for engine, threads in (("baton", 2), ("baton", 1), ("onnxruntime", 2), ("onnxruntime", 1)):
                        command = [sys.executable, __file__, "--seconds", str(args.seconds), "--engine", f"{engine},{path},{threads}"]
                        done = subprocess.run(command, capture_output=True, text=True, check=True)
                        best.setdefault((busy, engine, threads), []).append(json.loads(done.stdout))
            finally:
                if neighbour:
                    neighbour.kill()
                    neighbour.wait()
    ms = {key: float(np.median(values)) for key, values in best.items()}
    for busy in (False, True):
        print("beside a busy neighbour:" if busy else "alone:")
        for (b, engine, threads), value in ms.items():
            if b == busy:
                print(f"  {engine:12} {threads} thread{'s' if threads > 1 else ' '}  median {value:7.3f} ms")
    ratio = ms[True, "baton", 2] / min(ms[True, "baton", 1], ms[True, "onnxruntime", 2])
    print(f"busy: two threads over the better of one thread and ONNX Runtime's two: {ratio:.2f} (bar {BAR})")
    return 1 if args.check and ratio > BAR else 0


if __name__ == "__main__":
    sys.exit(main())

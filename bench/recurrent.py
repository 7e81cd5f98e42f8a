# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers, and steps by Scan and Loop, beside ONNX Runtime: time, size of the artifact over the weights', seconds to compile.

    python bench/recurrent.py
    python bench/recurrent.py --only LSTM --check    # exit code 1 where a bar is missed

Engines take turns and sleep between runs; a ratio is of the least times. Bars: at most 1.2 times ONNX Runtime's time, an
artifact of at most 1.05 times the weights (and 256 KB of code), compiled in at most a second.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

TIME_BAR, SIZE_BAR, COMPILE_BAR, CODE_BYTES = 1.2, 1.05, 1.0, 256 << 10
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
# (kind, steps, sequences, hidden, direction)
ROWS = [
    ("LSTM", 16, 1, 128, "forward"),
    ("LSTM", 64, 1, 256, "forward"),
    ("LSTM", 128, 1, 512, "bidirectional"),
    ("LSTM", 512, 1, 128, "bidirectional"),
    ("LSTM", 32, 1, 1024, "forward"),
    ("LSTM", 32, 32, 256, "forward"),
    ("LSTM", 64, 8, 512, "bidirectional"),
    ("LSTM", 16, 32, 1024, "forward"),
    ("GRU", 64, 1, 256, "forward"),
    ("GRU", 128, 1, 512, "bidirectional"),
    ("GRU", 512, 8, 128, "forward"),
    ("GRU", 32, 32, 1024, "forward"),
    ("GRU after", 64, 1, 256, "forward"),
    ("GRU after", 64, 32, 512, "forward"),
    ("RNN", 128, 1, 256, "forward"),
    ("RNN", 128, 16, 512, "bidirectional"),
    ("Scan", 16, 1, 128, "forward"),
    ("Scan", 64, 1, 256, "forward"),
    ("Scan", 512, 8, 128, "reverse"),
    ("Scan", 32, 32, 512, "forward"),
    ("Loop", 16, 1, 128, "forward"),
    ("Loop", 128, 1, 256, "forward"),
    ("Loop", 2000, 1, 64, "forward"),
    ("Loop", 64, 16, 512, "forward"),
]


def layer(kind: str, steps: int, batch: int, hidden: int, direction: str):
    """(a model of one layer, its input, bytes of its weights)."""
    from onnx import TensorProto, helper, numpy_helper

    op, _, after = kind.partition(" ")
    gates, count = GATES[op] * hidden, 2 if direction == "bidirectional" else 1
    rng = np.random.default_rng(0)
    weights = {
        name: rng.normal(0, hidden**-0.5, shape).astype(np.float32)
        for name, shape in (("w", (count, gates, hidden)), ("r", (count, gates, hidden)), ("b", (count, 2 * gates)))
    }
    attrs = {"linear_before_reset": 1} if after else {}
    node = helper.make_node(op, ["x", "w", "r", "b"], ["y"], hidden_size=hidden, direction=direction, **attrs)
    shape = [steps, batch, hidden]
    graph = helper.make_graph(
        [node],
        "layer",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [steps, count, batch, hidden])],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return made, rng.standard_normal(shape, np.float32), sum(value.nbytes for value in weights.values())


def steps_of(kind: str, steps: int, batch: int, hidden: int, direction: str):
    """(a model whose step is a graph: a GRU by Scan, an RNN by Loop; its input, bytes of its weights)."""
    from onnx import TensorProto, helper, numpy_helper

    def floats(name, *shape):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    def nodes(*rows, **attrs):
        return [helper.make_node(op, given.split(), made.split(), **attrs.get(made.split()[0], {})) for op, given, made in rows]

    rng = np.random.default_rng(0)
    weights = {name: rng.normal(0, hidden**-0.5, (hidden, n * hidden)).astype(np.float32) for name, n in (("w", 2), ("u", 2), ("w2", 1), ("u2", 1))}
    values = {"h0": np.zeros((batch, hidden), np.float32), "one": np.float32(1), "n": np.int64(steps)}
    if kind == "Scan":
        step = nodes(("MatMul", "x w", "xw"), ("MatMul", "h u", "hu"), ("Add", "xw hu", "sums"), ("Sigmoid", "sums", "gates"), ("Split", "gates", "z r"),
                     ("Mul", "r h", "rh"), ("MatMul", "rh u2", "inner"), ("MatMul", "x w2", "outer"), ("Add", "inner outer", "sum"), ("Tanh", "sum", "new"),
                     ("Sub", "one z", "rest"), ("Mul", "rest new", "a"), ("Mul", "z h", "b"), ("Add", "a b", "h2"), ("Identity", "h2", "y"),
                     z={"axis": 1, "num_outputs": 2})  # fmt: skip
        body = helper.make_graph(
            step, "step", [floats("h", batch, hidden), floats("x", batch, hidden)], [floats("h2", batch, hidden), floats("y", batch, hidden)]
        )
        back = [int(direction == "reverse")]
        made = helper.make_node("Scan", ["h0", "x"], ["last", "y"], body=body, num_scan_inputs=1, scan_input_directions=back, scan_output_directions=back)
        del values["n"]
    else:
        weights, step = (
            {"w": weights["u2"]},
            nodes(
                ("Gather", "x i", "row"),
                ("MatMul", "h w", "hw"),
                ("Add", "hw row", "sum"),
                ("Tanh", "sum", "h2"),
                ("Identity", "h2", "y2"),
                ("Identity", "go", "on"),
            ),
        )
        ends = [helper.make_tensor_value_info("i", TensorProto.INT64, []), helper.make_tensor_value_info("go", TensorProto.BOOL, [])]
        on = helper.make_tensor_value_info("on", TensorProto.BOOL, [])
        body = helper.make_graph(step, "step", [*ends, floats("h", batch, hidden)], [on, floats("h2", batch, hidden), floats("y2", batch, hidden)])
        made = helper.make_node("Loop", ["n", "", "h0"], ["last", "y"], body=body)
        del values["one"]
    shape = [steps, batch, hidden]
    init = [numpy_helper.from_array(np.asarray(value), name) for name, value in {**weights, **values}.items()]
    graph = helper.make_graph([made], "layer", [floats("x", *shape)], [floats("y", *shape)], init)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    return model, rng.standard_normal(shape, np.float32), sum(value.nbytes for value in weights.values())


def measure(row, threads: int, rounds: int) -> list[str]:
    """Prints a row; what misses its bar, in words."""
    import onnx
    import onnxruntime

    import baton

    proto, x, weights = (steps_of if row[0] in ("Scan", "Loop") else layer)(*row)
    folder = Path(tempfile.mkdtemp(prefix="baton-recurrent-"))
    onnx.save(proto, folder / "layer.onnx")
    start = time.perf_counter()
    made = baton.compile(str(folder / "layer.onnx"))
    compiling = time.perf_counter() - start
    made.save(folder / "layer.so")
    size = ((folder / "layer.so").stat().st_size - CODE_BYTES) / weights
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 3
    session = onnxruntime.InferenceSession(str(folder / "layer.onnx"), options, providers=["CPUExecutionProvider"])
    runs = {"own": lambda: made(x), "peer": lambda: session.run(None, {"x": x})}
    np.testing.assert_allclose(runs["own"]().numpy(), runs["peer"]()[0], rtol=1e-3, atol=1e-4)
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(rounds):
        for which, run in runs.items():
            time.sleep(0.03)
            start = time.perf_counter()
            run()
            best[which] = min(best[which], (time.perf_counter() - start) * 1e3)
    ratio = best["own"] / best["peer"]
    name = f"{row[0]} {row[1]}x{row[2]}x{row[3]} {row[4]}"
    print(
        f"{name:36} {best['own']:8.3f}  ONNX Runtime {best['peer']:8.3f} ms   ratio {ratio:.2f}   size {size:.2f}   compiled in {compiling:.2f} s", flush=True
    )
    figures = [("times ONNX Runtime", ratio, TIME_BAR), ("times the weights' size", size, SIZE_BAR), ("seconds to compile", compiling, COMPILE_BAR)]
    return [f"{name}: {value:.2f} {what}, the bar is {bar}" for what, value, bar in figures if value > bar]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="rows of this kind: LSTM, GRU, GRU after, RNN, Scan or Loop")
    parser.add_argument("--threads", type=int, default=2, help="(default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=20, help="runs of each engine (default: %(default)s)")
    parser.add_argument("--check", action="store_true", help="exit code 1 where a bar is missed")
    args = parser.parse_args()
    os.environ["BATON_NUM_THREADS"] = str(args.threads)
    import baton  # noqa: F401  loads the compiler, which is not a layer's time

    missed = [line for row in ROWS if args.only in ("", row[0]) for line in measure(row, args.threads, args.rounds)]
    print(*missed, sep="\n")
    return 1 if missed and args.check else 0


if __name__ == "__main__":
    sys.exit(main())

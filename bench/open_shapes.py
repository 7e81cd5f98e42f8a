# SPDX-License-Identifier: Apache-2.0
"""Models with open dimensions: one program for all shapes, beside code for each shape alone and beside ONNX Runtime.

    python bench/open_shapes.py                       # MiniLM over lengths and batches
    python bench/open_shapes.py --models squeezenet   # an image model over batches
    python bench/open_shapes.py --check               # exit code 1 where a bar is missed

Engines take turns and sleep between runs; a ratio is of the least times. Bars: open over static at most 1.03 in the geometric mean and 1.10 at
worst, open over ONNX Runtime at most 0.95 in the geometric mean; the first result of a new shape at most 1 ms above the steady state once the
memory is reserved; open compile time at most twice the static one.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

import models
import numpy as np

MEAN_BAR, WORST_BAR, PEER_BAR, FIRST_BAR_MS, COMPILE_BAR = 1.03, 1.10, 0.95, 1.0, 2.0
TEXTS = [(1, 1), (1, 2), (1, 7), (1, 13), (1, 31), (1, 64), (1, 100), (1, 128), (1, 255), (1, 384), (1, 509), (2, 17), (4, 33), (8, 64), (16, 13)]
BATCHES = (1, 2, 3, 5, 8)


def opened(name: str) -> tuple[str, list[dict[str, np.ndarray]]]:
    """(a file with open dimensions, inputs of all shapes)."""
    import onnx

    model = models.load(name)
    proto = onnx.load(model.path)
    weights = {w.name for w in proto.graph.initializer}
    names = {"minilm": ("batch", "seq")}.get(name, ("batch",))
    for info in (*(i for i in proto.graph.input if i.name not in weights), *proto.graph.output):
        for dim, text in zip(info.type.tensor_type.shape.dim, names, strict=False):
            if info.name in model.inputs or text == "batch":
                dim.dim_param = text
    del proto.graph.value_info[:]
    path = Path(tempfile.mkdtemp(prefix="baton-open-")) / f"{name}.onnx"
    onnx.save(proto, path)
    rng = np.random.default_rng(0)
    if name == "minilm":
        ids = [rng.integers(1000, 30000, shape) for shape in TEXTS]
        return str(path), [{"input_ids": i, "attention_mask": np.ones_like(i)} for i in ids]
    ((key, one),) = model.inputs.items()
    return str(path), [{key: np.repeat(one, batch, 0)} for batch in BATCHES]


def least(runs: dict, rounds: int) -> dict[str, float]:
    """The least milliseconds of each, in turns."""
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(rounds):
        for name, run in runs.items():
            time.sleep(0.05)  # threads of the engine before spin for a while, then sleep
            start = time.perf_counter()
            run()
            best[name] = min(best[name], (time.perf_counter() - start) * 1e3)
    return best


def mean(ratios: list[float]) -> float:
    return float(np.exp(np.mean(np.log(ratios))))


def measure(name: str, threads: int, rounds: int) -> list[str]:
    """Prints a model's rows; what misses its bar, in words."""
    os.environ["BATON_NUM_THREADS"] = str(threads)
    import onnxruntime

    import baton

    path, inputs = opened(name)
    baton.compile(path)  # loads the compiler
    start = time.perf_counter()
    model = baton.compile(path)
    compile_open = time.perf_counter() - start
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    own, peer, compile_static = [], [], []
    for feed in inputs:
        start = time.perf_counter()
        static = model.specialize({key: array.shape for key, array in feed.items()})
        compile_static.append(time.perf_counter() - start)
        order = [feed[info.name] for info in model.inputs]
        got, want, theirs = model(*order).numpy(), static(*order).numpy(), session.run(None, feed)[0]
        np.testing.assert_allclose(got, theirs, rtol=1e-3, atol=1e-3)
        ms = least({"open": lambda m=model, a=order: m(*a), "static": lambda m=static, a=order: m(*a), "peer": lambda f=feed: session.run(None, f)}, rounds)
        own.append(ms["open"] / ms["static"])
        peer.append(ms["open"] / ms["peer"])
        shape = "x".join(map(str, order[0].shape[:2]))
        print(
            f"{name} {shape:>8}  open {ms['open']:8.2f}  static {ms['static']:8.2f}  ONNX Runtime {ms['peer']:8.2f} ms"
            f"   ratios {own[-1]:.2f} {peer[-1]:.2f}   {'same bits' if np.array_equal(got, want) else 'other bits'}",
            flush=True,
        )
    # A shape that never came, once the memory for it is there.
    model.reserve(**{d.name: 8 if d.name == "batch" else 128 for d in model.dims})
    fresh = [np.ones((1, 99), array.dtype) if name == "minilm" else array[:1] for array in inputs[-1].values()]
    time.sleep(0.05)
    start = time.perf_counter()
    model(*fresh)
    first = (time.perf_counter() - start) * 1e3 - least({"open": lambda: model(*fresh)}, rounds)["open"]
    compiling = compile_open / float(np.median(compile_static))
    print(
        f"{name}: open over static {mean(own):.3f}, at worst {max(own):.2f}; over ONNX Runtime {mean(peer):.3f}; first of a shape +{first:.2f} ms; "
        f"compiling {compiling:.2f} times a static one"
    )
    figures = [
        ("open over static", mean(own), MEAN_BAR),
        ("open over static, at worst", max(own), WORST_BAR),
        ("open over ONNX Runtime", mean(peer), PEER_BAR),
        ("milliseconds of a first result", first, FIRST_BAR_MS),
        ("compile time over static", compiling, COMPILE_BAR),
    ]
    return [f"{name}: {what} {value:.2f}, the bar is {bar}" for what, value, bar in figures if not value <= bar]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default="minilm", help="with commas between (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=2, help="(default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=15, help="runs of each engine a shape (default: %(default)s)")
    parser.add_argument("--check", action="store_true", help="exit code 1 where a bar is missed")
    args = parser.parse_args()
    missed = [line for name in args.models.split(",") for line in measure(name, args.threads, args.rounds)]
    print(*missed, sep="\n")
    return 1 if missed and args.check else 0


if __name__ == "__main__":
    sys.exit(main())

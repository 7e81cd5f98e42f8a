# SPDX-License-Identifier: Apache-2.0
"""A decoder token by token, its keys and values kept from step to step: sessions of Baton beside ONNX Runtime.

    python bench/decode.py                 # a small decoder, caches of 16 to 1,024 tokens
    python bench/decode.py --model gpt2    # the sizes of GPT-2 (124 M)
    python bench/decode.py --check         # exit code 1 where the bar is missed

ONNX Runtime gets the arrays that its last step gave as inputs of the next one, which is how its users do it (`OrtValue`s, no copies between steps).
Engines take turns; a ratio is of the least times of a step at one length. Bar: at most 1.0 times ONNX Runtime's time in the geometric mean.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

BAR = 1.0
#        layers, heads, width, vocabulary
SIZES = {"tiny": (2, 4, 64, 97), "small": (4, 8, 256, 2000), "gpt2": (12, 12, 768, 50257)}
LENGTHS = (16, 64, 256, 1024)


def decoder(layers: int, heads: int, width: int, vocabulary: int, longest: int = 2048, seed: int = 0) -> bytes:
    """A GPT as ONNX, random weights: `input_ids` (batch, seq) and `past_key_values.N.key/value` (batch, heads, past, d) to `logits` and
    `present.N.key/value` (batch, heads, past + seq, d), with the mask that lets a token see those before it.
    """
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(seed)
    depth, nodes, weights = width // heads, [], []

    def weight(name, shape, scale=0.02):
        weights.append(numpy_helper.from_array((rng.standard_normal(shape) * scale).astype("float32"), name))
        return name

    def const(name, value, dtype="int64"):
        if all(w.name != name for w in weights):
            weights.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def op(kind, *inputs, name, **attrs):
        nodes.append(helper.make_node(kind, inputs, [name], name=f"/{name}", **attrs))
        return name

    def norm(x, name):
        return op("LayerNormalization", x, weight(f"{name}.w", width, 1), weight(f"{name}.b", width), name=name, axis=-1)

    def linear(x, n, m, name):
        return op("Add", op("MatMul", x, weight(f"{name}.w", (n, m)), name=f"{name}.mm"), weight(f"{name}.b", m), name=name)

    def heads_of(x, name):
        split = op("Reshape", x, const("split", [0, 0, heads, depth]), name=f"{name}.split")
        return op("Transpose", split, name=f"{name}.heads", perm=[0, 2, 1, 3])

    one, zero = const("one", 1), const("zero", 0)
    past = op("Gather", op("Shape", "past_key_values.0.key", name="past_shape"), const("two", 2), name="past_length")
    seq = op("Gather", op("Shape", "input_ids", name="ids_shape"), one, name="seq_length")
    total = op("Add", past, seq, name="total_length")
    rows = op("Range", past, total, one, name="positions")
    columns = op("Range", zero, total, one, name="columns")
    seen = op("LessOrEqual", columns, op("Unsqueeze", rows, const("last", [1]), name="rows"), name="seen")
    bias = op("Where", seen, const("yes", 0, "float32"), const("no", -1e9, "float32"), name="bias")
    x = op("Gather", weight("embedding", (vocabulary, width), 1), "input_ids", name="tokens")
    x = op("Add", x, op("Gather", weight("places", (longest, width)), rows, name="place"), name="embedded")
    inputs, outputs, d = [], [], ["batch", heads, "past", depth]
    for n in range(layers):
        h = norm(x, f"h.{n}.ln_1")
        q, k, v = (linear(h, width, width, f"h.{n}.{part}") for part in "qkv")
        q, k, v = heads_of(q, f"h.{n}.q"), heads_of(k, f"h.{n}.k"), heads_of(v, f"h.{n}.v")
        for part, new in (("key", k), ("value", v)):
            inputs.append(helper.make_tensor_value_info(f"past_key_values.{n}.{part}", TensorProto.FLOAT, d))
            present = op("Concat", inputs[-1].name, new, name=f"present.{n}.{part}", axis=2)
            outputs.append(helper.make_tensor_value_info(present, TensorProto.FLOAT, ["batch", heads, "past + seq", depth]))
        keys = op("Transpose", f"present.{n}.key", name=f"h.{n}.keys", perm=[0, 1, 3, 2])
        scores = op("MatMul", op("Mul", q, const("scale", depth**-0.5, "float32"), name=f"h.{n}.scaled"), keys, name=f"h.{n}.scores")
        weighted = op("Softmax", op("Add", scores, bias, name=f"h.{n}.masked"), name=f"h.{n}.softmax", axis=-1)
        mixed = op("MatMul", weighted, f"present.{n}.value", name=f"h.{n}.mixed")
        mixed = op("Reshape", op("Transpose", mixed, name=f"h.{n}.back", perm=[0, 2, 1, 3]), const("join", [0, 0, width]), name=f"h.{n}.joined")
        x = op("Add", x, linear(mixed, width, width, f"h.{n}.proj"), name=f"h.{n}.mid")
        h = op("Relu", linear(norm(x, f"h.{n}.ln_2"), width, 4 * width, f"h.{n}.up"), name=f"h.{n}.act")
        x = op("Add", x, linear(h, 4 * width, width, f"h.{n}.down"), name=f"h.{n}.out")
    op("MatMul", norm(x, "ln_f"), weight("head", (width, vocabulary)), name="logits")
    ids = helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", "seq"])
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", "seq", vocabulary])
    graph = helper.make_graph(nodes, "decoder", [ids, *inputs], [logits, *outputs], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9).SerializeToString()


class Theirs:
    """ONNX Runtime, fed with the arrays that its last step gave."""

    def __init__(self, source: bytes, shape: tuple[int, int, int], layers: int, threads: int):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        self.value = onnxruntime.OrtValue.ortvalue_from_numpy
        self.session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
        self.outputs = [o.name for o in self.session.get_outputs()]
        heads, depth, batch = shape
        self.names = [f"past_key_values.{n}.{part}" for n in range(layers) for part in ("key", "value")]
        empty = np.zeros((batch, heads, 0, depth), "float32")
        self.past = {name: self.value(empty) for name in self.names}

    def __call__(self, ids: np.ndarray) -> np.ndarray:
        logits, *present = self.session.run_with_ort_values(self.outputs, {"input_ids": self.value(ids), **self.past})
        self.past = dict(zip(self.names, present, strict=True))
        return logits.numpy()


def steps(run, back, ids, count: int) -> float:
    """The least milliseconds of `count` steps from the length where the run is."""
    best = float("inf")
    for n in range(count):
        start = time.perf_counter()
        run(ids[:, n : n + 1])
        best = min(best, (time.perf_counter() - start) * 1e3)
    back()
    return best


def measure(name: str, lengths, rounds: int) -> float:
    """Prints a row a length; the geometric mean of the ratios. With as many threads as BATON_NUM_THREADS says."""
    import baton

    threads = int(os.environ["BATON_NUM_THREADS"])
    layers, heads, width, vocabulary = SIZES[name]
    source = decoder(*SIZES[name])
    fixed = {f"past_key_values.{n}.{part}": (1, None, None, None) for n in range(layers) for part in ("key", "value")}
    model = baton.compile(source, state=True, shape={"input_ids": (1, None), **fixed})
    path = Path(tempfile.mkdtemp(prefix="baton-decode-")) / "decoder.so"
    model.save(path)
    ours, theirs = baton.load(path).session(), Theirs(source, (heads, width // heads, 1), layers, threads)
    ids = np.random.default_rng(0).integers(0, vocabulary, (1, max(lengths) + 16))
    ratios, at = [], 0
    for length in lengths:
        a, b = ours(ids[:, at:length]).numpy(), theirs(ids[:, at:length])
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)
        at, kept = length, theirs.past
        best = {"baton": float("inf"), "onnxruntime": float("inf")}
        for _ in range(rounds):
            runs = {
                "baton": (ours, lambda length=length: ours.truncate(length)),
                "onnxruntime": (theirs, lambda kept=kept: setattr(theirs, "past", kept)),
            }
            for engine, (run, back) in runs.items():
                time.sleep(0.03)  # threads of the engine before spin for a while, then sleep
                best[engine] = min(best[engine], steps(run, back, ids[:, length:], 12))
        ratios.append(best["baton"] / best["onnxruntime"])
        moved = ours.memory()
        print(
            f"{name:6} threads {threads}  cache {length:5}  baton {best['baton']:8.3f} ms  onnxruntime {best['onnxruntime']:8.3f} ms"
            f"  ratio {ratios[-1]:.2f}  copied {moved['state_copied']} of {moved['state']} bytes, planned {moved['planned']} times",
            flush=True,
        )
    return float(np.exp(np.mean(np.log(ratios))))


def for_each_thread_count(counts, run) -> int:
    """`run` in a process for each number of threads, which is BATON_NUM_THREADS there; whether one of them gave an exit code."""
    if "BATON_DECODE" in os.environ:
        return run()
    failed = 0
    for threads in counts:
        own = {**os.environ, "BATON_DECODE": "1", "BATON_NUM_THREADS": str(threads)}
        failed |= subprocess.run([sys.executable, *sys.argv], env=own, check=False).returncode
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=SIZES, default="small")
    parser.add_argument("--lengths", type=int, nargs="*", default=LENGTHS)
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--check", action="store_true", help="exit code 1 where the bar is missed")
    args = parser.parse_args()

    def one() -> int:
        mean = measure(args.model, args.lengths, args.rounds)
        print(f"{args.model:6} threads {os.environ['BATON_NUM_THREADS']}  geometric mean {mean:.2f} (bar {BAR})", flush=True)
        return int(args.check and mean > BAR)

    return for_each_thread_count(args.threads, one)


if __name__ == "__main__":
    sys.exit(main())

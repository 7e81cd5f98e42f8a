# SPDX-License-Identifier: Apache-2.0
"""A decoder's token with weights stored in few bits, beside ONNX Runtime's, and how near that is to what memory gives.

    python bench/weights.py                  # the sizes of SmolLM2-135M, one and two threads
    python bench/weights.py --model small    # a small decoder
    python bench/weights.py --check          # exit code 1 where a bar is missed

ONNX Runtime has the same model in float32, and with 4 bits as its own quantizer writes them (`MatMulNBits`, blocks of 32, activations in
float32, and at accuracy level 4 in int8). Engines take turns; a time is the least of a step behind 16 tokens. "of memory" is the bytes of the
weights that a step reads (all but the embedding table) over the time, over what this machine reads in the same run. Bars: 0.8 of memory, 0.7
for 4 bits; 4 bits over ONNX Runtime's 1.0, with int8 data over its own with int8 data 1.0. "cosine" is that of the logits to those of ONNX
Runtime's float32 model, whose weights are random: at least 0.9999 for bf16 and int8, 0.97 for int4.
"""

from __future__ import annotations

import argparse
import importlib.util
import logging
import os
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from decode import Theirs, decoder, for_each_thread_count, steps

#        layers, heads, width, vocabulary
SIZES = {"small": (4, 8, 256, 2000), "smollm2": (30, 9, 576, 49152)}
FORMS = {"float32": {}, "bf16": {"precision": "bf16"}, "int8": {"weights": "int8"}, "int4": {"weights": "int4"}}
FORMS |= {f"{form}, int8 data": {"weights": form, "activations": "int8"} for form in ("int8", "int4")}
BARS = {"float32": 0.8, "bf16": 0.8, "int8": 0.8, "int4": 0.7, "int8, int8 data": 0.8, "int4, int8 data": 0.7}
COSINES = {"float32": 0.9999999, "bf16": 0.9999, "int8": 0.9999, "int4": 0.97, "int8, int8 data": 0.999, "int4, int8 data": 0.97}
CACHE = 16


def bandwidth(threads: int) -> float:
    """Bytes that this machine reads in a second, with so many threads."""
    arrays = [np.ones(32 << 20, "float32") for _ in range(threads)]
    best = float("inf")
    for _ in range(5):
        workers = [threading.Thread(target=np.max, args=(a,)) for a in arrays]
        start = time.perf_counter()
        for w in workers:
            w.start()
        for w in workers:
            w.join()
        best = min(best, time.perf_counter() - start)
    return sum(a.nbytes for a in arrays) / best


def four_bits(source: bytes, level: int) -> bytes:
    """The model as ONNX Runtime's quantizer writes it. The quantizer needs the package `onnx_ir`."""
    import onnx

    logging.disable(logging.INFO)
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    quantizer = MatMulNBitsQuantizer(onnx.load_from_string(source), block_size=32, is_symmetric=False, accuracy_level=level)
    quantizer.process()
    return quantizer.model.model.SerializeToString()


def cosine(ours, theirs) -> float:
    """Compares the last token's logits, which an engine gives alone or first."""
    a, b = (np.asarray(x[0] if isinstance(x, (tuple, list)) else x, "float64")[:, -1].ravel() for x in (ours, theirs))
    return float(a @ b / np.sqrt((a @ a) * (b @ b)))


def measure(name: str, rounds: int) -> int:
    """Prints a row an engine and form; how many bars were missed."""
    import baton

    threads = int(os.environ["BATON_NUM_THREADS"])
    layers, heads, width, vocabulary = SIZES[name]
    source = decoder(*SIZES[name], longest=64)
    fixed = {f"past_key_values.{n}.{part}": (1, None, None, None) for n in range(layers) for part in ("key", "value")}
    folder = Path(tempfile.mkdtemp(prefix="baton-weights-"))
    runs, sizes, logits = {}, {}, {}
    ids = np.random.default_rng(0).integers(0, vocabulary, (1, 2 * CACHE))
    for form, options in FORMS.items():
        model = baton.compile(source, state=True, shape={"input_ids": (1, None), **fixed}, **options)
        model.save(folder / f"{form}.so")
        sizes[form] = (folder / f"{form}.so").stat().st_size - 4 * vocabulary * width  # the embedding table is float32 in each
        session = baton.load(folder / f"{form}.so").session()
        logits[form] = session(ids[:, :CACHE])
        runs[form] = (session, lambda s=session: s.truncate(CACHE))
    shape = (heads, width // heads, 1)
    theirs = {"ort float32": lambda: source}
    if importlib.util.find_spec("onnx_ir"):
        theirs |= {"ort int4": lambda: four_bits(source, 0), "ort int4, int8 data": lambda: four_bits(source, 4)}
    else:
        print("without ONNX Runtime's int4: its quantizer needs the package onnx-ir", flush=True)
    for form, make in theirs.items():
        data = make()
        engine = Theirs(data, shape, layers, threads)
        logits[form] = engine(ids[:, :CACHE])
        kept = engine.past
        runs[form] = (engine, lambda e=engine, kept=kept: setattr(e, "past", kept))
    best, rate = dict.fromkeys(runs, float("inf")), 0.0
    for _ in range(rounds):
        rate = max(rate, bandwidth(threads))
        for form, (run, back) in runs.items():
            time.sleep(0.03)  # threads of the engine before spin for a while, then sleep
            best[form] = min(best[form], steps(run, back, ids[:, CACHE:], 6))
    missed = 0
    for form, ms in best.items():
        line = f"{name:8} threads {threads}  {form:20} {ms:8.3f} ms  of float32 {ms / best['float32']:.2f}"
        if form in sizes:
            share = sizes[form] / (ms / 1e3) / rate
            missed += share < BARS[form]
            missed += (agrees := cosine(logits[form], logits["ort float32"])) < COSINES[form]
            line += f"  cosine {agrees:.5f}  {sizes[form] / 1e6:6.1f} MB  of memory ({rate / 1e9:.1f} GB/s) {share:.2f}, the bar is {BARS[form]}"
        print(line, flush=True)
    if "ort int4" not in best:
        return missed
    ratio, data = best["int4"] / best["ort int4"], best["int4, int8 data"] / best["ort int4, int8 data"]
    print(f"{name:8} threads {threads}  int4 over ONNX Runtime's {ratio:.2f}, with int8 data over its own with int8 data {data:.2f}", flush=True)
    return missed + (ratio > 1) + (data > 1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=SIZES, default="smollm2")
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--check", action="store_true", help="exit code 1 where a bar is missed")
    args = parser.parse_args()
    return for_each_thread_count(args.threads, lambda: int(bool(measure(args.model, args.rounds)) and args.check))


if __name__ == "__main__":
    sys.exit(main())

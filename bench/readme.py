# SPDX-License-Identifier: Apache-2.0
"""The table of README.md: Baton beside the peers that are installed, in turns, in one run.

    python bench/readme.py                    # prints the table
    python bench/readme.py --write            # writes it into README.md, between its markers
    python bench/readme.py --models squeezenet --peers onnxruntime --rounds 2

A figure is a ratio of least times: above 1, the peer takes that many times as long as Baton. Engines take turns of 0.15 s (cli/measure.py), on the same
inputs and threads; their outputs are compared. `smollm2` is a token behind 64 others, with the keys and values kept: a session of Baton's, and ONNX
Runtime with its last step's arrays as inputs of the next.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.util
import os
import re
import sys
import time
from pathlib import Path

import models
import numpy as np

ROOT = Path(__file__).resolve().parents[1]
BEGIN, END = "<!-- measured: bench/readme.py -->", "<!-- measured: end -->"
NAMES = {
    "minilm": "MiniLM, 128 tokens",
    "resnet50": "ResNet-50, an image",
    "squeezenet": "SqueezeNet, an image",
    "shufflenet": "ShuffleNet, an image",
    "mlp": "three dense layers",
    "smollm2": "SmolLM2-135M, a token behind 64",
}
MODULES = {"onnxruntime": ("onnxruntime",), "openvino": ("openvino",), "torch": ("torch", "torchvision", "onnx2torch"), "tvm": ("tvm",)}
_ALARM = 1e-2


def version(peer: str) -> str:
    """The path of the installed package."""
    from importlib import metadata

    return metadata.version({"tvm": "apache-tvm"}.get(peer, peer))


def machine() -> str:
    """The processor, as the system calls it."""
    try:
        found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    except OSError:
        found = None
    return found[1].strip() if found else "this machine"


def network(name: str, peers: list[str], threads: int) -> dict:
    """Functions by engine."""
    import baton
    from baton.cli.peers import load
    from baton.runtime.vm import flat

    model = models.load(name)
    executable = baton.compile(str(model.path), shape=model.shape)
    runs = {"baton": lambda: executable(model.inputs)}
    ours = [a.numpy() for a in flat([runs["baton"]()])]
    for peer in peers:
        run = load(peer, str(model.path), model.inputs, threads)
        for got, want in zip(ours, run(), strict=True):
            want = np.asarray(want)
            apart = np.abs(got.astype(np.float64) - want).max(initial=0) / max(np.abs(want).max(initial=0), 1e-30)
            if not apart <= _ALARM:
                raise SystemExit(f"error: {name}: outputs of {peer} differ by {apart:.1e} of the largest value")
        runs[peer] = run
    return runs


def decoder(peers: list[str], threads: int) -> dict:
    """A step of SmolLM2, its caches kept: of the peers, ONNX Runtime does so through its public API."""
    from decode import Theirs

    import baton
    from baton.demo import llama

    lm = llama.smollm2()
    path = lm.onnx(packed=False)
    session = baton.compile(path, state=True, shape=lm.shapes(longest=2048)).session()
    ids, token = np.arange(100, 164)[None], np.array([[264]])
    session(ids)

    def ours():
        session.truncate(64)
        return session(token)

    runs = {"baton": ours}
    if "onnxruntime" in peers:
        theirs = Theirs(Path(path).read_bytes(), (lm.kv_heads, lm.depth, 1), lm.layers, threads)
        theirs(ids)
        past = dict(theirs.past)

        def again():
            theirs.past = dict(past)
            return theirs(token)

        if ours().numpy()[0, -1].argmax() != again()[0, -1].argmax():
            raise SystemExit("error: smollm2: ONNX Runtime says another token")
        runs["onnxruntime"] = again
    return runs


def measure(name: str, peers: list[str], threads: int, rounds: int, clock) -> dict[str, float]:
    """Least milliseconds by engine."""
    from baton.cli.measure import interleave

    runs = decoder(peers, threads) if name == "smollm2" else network(name, peers, threads)
    return {engine: timing.min for engine, timing in interleave(runs, rounds, clock=clock).items()}


def table(rows: dict[str, dict[str, float]], peers: list[str], threads: int, processor: bool = False) -> str:
    """Markdown. `processor`: times are the processor's."""
    from baton.cli.peers import PEERS

    out = ["| | Baton | " + " | ".join(PEERS[p].title for p in peers) + " |", "| --- |" + " --: |" * (len(peers) + 1)]
    for name, times in rows.items():
        cells = [f"{times[p] / times['baton']:.2f}" if p in times else "" for p in peers]
        out.append(f"| {NAMES.get(name, name)} | {times['baton']:.2f} ms | " + " | ".join(cells) + " |")
    versions = ", ".join(f"{PEERS[p].title} {version(p)}" for p in peers)
    notes = "".join(f" {PEERS[p].note}." for p in peers if PEERS[p].note)
    day = datetime.date.today().isoformat()
    out += [
        "",
        f"A figure behind Baton's is how many times as long the peer takes. Least {'processor time' if processor else 'time'} of a call in float32, "
        f"{threads} thread{'s' * (threads > 1)}, in turns in one run, {day}, {machine()}{', which had other work' * processor}; {versions}.{notes} "
        f"`python bench/readme.py{' --processor-time' * processor} --write` writes this table on your machine.",
    ]
    return "\n".join(out)


def write(text: str) -> None:
    """Puts the table between the markers of README.md."""
    path = ROOT / "README.md"
    page = path.read_text(encoding="utf-8")
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"error: README.md has no place between `{BEGIN}` and `{END}`")
    path.write_text(f"{head}{begin}\n{text}\n{end}{tail}", encoding="utf-8")


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    here = [peer for peer, needs in MODULES.items() if all(map(importlib.util.find_spec, needs))]
    parser.add_argument("--models", default=",".join(NAMES), help="which, of %(default)s")
    parser.add_argument("--peers", default=",".join(here), help="beside whom (default: those that are installed: %(default)s)")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--processor-time", action="store_true", help="on a machine that others use: the processor's time of one thread")
    parser.add_argument("--write", action="store_true", help="write the table into README.md")
    args = parser.parse_args(argv)
    args.threads = 1 if args.processor_time else args.threads
    os.environ["BATON_NUM_THREADS"] = os.environ["TVM_NUM_THREADS"] = str(args.threads)
    clock = time.process_time_ns if args.processor_time else time.perf_counter_ns
    peers, rows = list(filter(None, args.peers.split(","))), {}
    for name in args.models.split(","):
        rows[name] = measure(name, peers, args.threads, args.rounds, clock)
        print(name, {engine: round(ms, 3) for engine, ms in rows[name].items()}, file=sys.stderr, flush=True)
    text = table(rows, peers, args.threads, args.processor_time)
    print(text)
    if args.write:
        write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

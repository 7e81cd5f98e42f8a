# SPDX-License-Identifier: Apache-2.0
"""Compiling a second time: each model in fresh processes, the first with an empty kernel cache, the others with what it kept, in turns with
ONNX Runtime's creation of a session. `--check` makes a missed bar exit code 1.

`compile` is from the first line after the imports of NumPy and the package to something that can be called (so it loads the compiler), `process`
from the start of Python to its end with one run. Times are the least of the rounds.
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

import models

HERE = Path(__file__).resolve().parent
BAR = {"resnet50": 0.25}  # seconds of a second compilation


def fresh(name: str, engine: str, threads: int, cache: str, bytecode: str) -> dict:
    """The figures of one process."""
    path = os.pathsep.join(filter(None, [str(HERE.parent / "python"), os.environ.get("PYTHONPATH")]))
    env = {**os.environ, "BATON_CACHE": "1", "BATON_CACHE_DIR": cache, "BATON_NUM_THREADS": str(threads), "PYTHONPATH": path}
    # As installed: the bytecode of Python is on disk.
    env |= {"PYTHONPYCACHEPREFIX": bytecode, "PYTHONDONTWRITEBYTECODE": ""}
    command = [sys.executable, str(HERE / "compile_time.py"), "--child", name, "--engines", engine, "--threads", str(threads)]
    start = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=env)
    seconds = time.perf_counter() - start
    if done.returncode:
        raise SystemExit(f"error: {engine} on {name}: exit code {done.returncode}")
    return {**json.loads(done.stdout), "process_s": seconds}


def measure(name: str, threads: int, rounds: int) -> dict[str, dict]:
    """The least times by the kind of process: cold, warm, onnxruntime."""
    models.load(name)  # writes the file, if it must be written
    all_of: dict[str, list[dict]] = {"cold": [], "warm": [], "onnxruntime": []}
    with tempfile.TemporaryDirectory() as bytecode:
        fresh(name, "baton", threads, bytecode, bytecode)
        for _ in range(rounds):
            with tempfile.TemporaryDirectory() as cache:
                all_of["cold"].append(fresh(name, "baton", threads, cache, bytecode))
                for _ in range(2):
                    all_of["warm"].append(fresh(name, "baton", threads, cache, bytecode))
                    all_of["onnxruntime"].append(fresh(name, "onnxruntime", threads, cache, bytecode))
    return {kind: {key: min(row[key] for row in rows) for key in rows[0]} for kind, rows in all_of.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default="resnet50,bert,mobilenet_v2", help="(default: %(default)s)")
    parser.add_argument("--threads", type=int, default=min(2, len(os.sched_getaffinity(0))), help="(default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="(default: %(default)s)")
    parser.add_argument("--json", metavar="FILE", help="write the figures there too")
    parser.add_argument("--check", action="store_true", help="exit code 1 if a bar is missed")
    args = parser.parse_args()
    results, missed = {}, []
    for name in args.models.split(","):
        results[name] = found = measure(name, args.threads, args.rounds)
        for kind, row in found.items():
            print(
                f"{name:<14} {kind:<12} compile {row['compile_s']:.3f} s ({row['compile_processor_s']:.3f} s of processors), "
                f"process {row['process_s']:.3f} s, peak {row['peak_mb']:.0f} MB",
                flush=True,
            )
        if name in BAR and found["warm"]["compile_s"] > BAR[name]:
            missed.append(f"{name}: {found['warm']['compile_s']:.3f} s, the bar is {BAR[name]} s")
    for line in missed:
        print(f"missed: {line}")
    if args.json:
        Path(args.json).write_text(json.dumps({"threads": args.threads, "results": results, "missed": missed}, indent=1) + "\n")
    return 1 if args.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())

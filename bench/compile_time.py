# SPDX-License-Identifier: Apache-2.0
"""Cold compile time and peak memory: each model in a fresh process, with an empty cache folder.

The bars: ResNet-50 in at most 15 s and 1 GB on two threads. `--check` makes a missed bar exit code 1.
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

BARS = {"resnet50": (15.0, 1000.0), "light_resnet50": (15.0, 1000.0)}  # seconds, MB


def peak_mb() -> float:
    """The largest resident size of this process so far. getrusage would count what the parent held before the exec."""
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) * 1024 / 1e6


def child(name: str, engine: str, threads: int) -> int:
    """Runs in the fresh process: compiles and runs once, prints one line of JSON."""
    from engines import ENGINES, NotReady

    model = models.load(name)
    if engine == "baton":
        start = time.perf_counter()
        try:
            import baton  # noqa: F401
        except ImportError:
            pass  # the engine says it better
        import_seconds = time.perf_counter() - start
    else:
        start = time.perf_counter()
        __import__(engine)
        import_seconds = time.perf_counter() - start
    before = peak_mb()
    start, used = time.perf_counter(), time.process_time()
    try:
        run = ENGINES[engine](model, threads)
    except NotReady as error:
        print(f"error: {error}", file=sys.stderr)
        return 3
    compiled, used = time.perf_counter(), time.process_time() - used
    run()
    out = {
        "import_s": import_seconds,
        "compile_s": compiled - start,
        "compile_processor_s": used,
        "first_run_s": time.perf_counter() - compiled,
        "peak_mb": peak_mb(),
        "before_mb": before,
    }
    print(json.dumps(out))
    return 0


def measure(name: str, engine: str, threads: int) -> dict | None:
    """One cold compile in a separate process; None where it failed, with the reason on standard error."""
    models.load(name)  # writes the file, if it must be written, outside the measured process
    with tempfile.TemporaryDirectory() as cold:
        python = str(Path(__file__).resolve().parent.parent / "python")
        # The model's own file stays where it is; every cache of Baton's starts empty.
        env = {**os.environ, "BATON_CACHE": "1", "BATON_CACHE_DIR": cold, "BATON_NUM_THREADS": str(threads)}
        env["PYTHONPATH"] = os.pathsep.join(filter(None, [python, os.environ.get("PYTHONPATH")]))
        command = [sys.executable, __file__, "--child", name, "--engines", engine, "--threads", str(threads)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=env)
    if done.returncode:
        print(f"error: {engine} on {name}: exit code {done.returncode}", file=sys.stderr)
        return None
    return {"model": name, "engine": engine, **json.loads(done.stdout)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default="headline,mlp", help="names, or headline, light, all (default: %(default)s)")
    parser.add_argument("--engines", default="baton,onnxruntime", help="(default: %(default)s)")
    parser.add_argument("--threads", type=int, default=min(2, len(os.sched_getaffinity(0))), help="(default: %(default)s)")
    parser.add_argument("--json", metavar="FILE", help="write the figures there too")
    parser.add_argument("--check", action="store_true", help="exit code 1 if a bar is missed")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        return child(args.child, args.engines, args.threads)
    results, missed, failed = [], [], False
    for name in models.selection(args.models):
        for engine in args.engines.split(","):
            result = measure(name, engine, args.threads)
            if result is None:
                failed = True
                continue
            results.append(result)
            print(
                f"{name:<20} {engine:<12} compile {result['compile_s']:.2f} s, "
                f"first run {result['first_run_s'] * 1e3:.1f} ms, "
                f"import {result['import_s']:.2f} s, peak memory {result['peak_mb']:.0f} MB",
                flush=True,
            )
            if engine == "baton" and name in BARS:
                for what, value, bar in zip(("compile seconds", "peak MB"), (result["compile_s"], result["peak_mb"]), BARS[name], strict=True):
                    if not value <= bar:
                        missed.append(f"{name}: {what} {value:.1f}, the bar is {bar:.0f}")
    for line in missed:
        print(f"missed: {line}")
    if args.json:
        Path(args.json).write_text(json.dumps({"threads": args.threads, "results": results, "missed": missed}, indent=1) + "\n")
    return 1 if failed or (args.check and missed) else 0


if __name__ == "__main__":
    sys.exit(main())

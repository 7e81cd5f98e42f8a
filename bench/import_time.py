# SPDX-License-Identifier: Apache-2.0
"""The cost of `import baton` beside `import numpy`: fresh processes in turns. The bar is 150 ms more."""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

BAR_MS = 150.0


def one(statement: str) -> float:
    """Milliseconds of a fresh interpreter that runs the statement, start and exit included."""
    python = str(Path(__file__).resolve().parent.parent / "python")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [python, os.environ.get("PYTHONPATH")]))}
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", statement], env=env, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError((done.stderr.strip() or statement).splitlines()[-1])
    return (time.perf_counter() - start) * 1e3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--check", action="store_true", help="exit code 1 if the bar is missed")
    args = parser.parse_args()
    # `baton.compile` must be there: a folder of that name without the built libraries imports too.
    statements = {"pass": "pass", "numpy": "import numpy", "baton": "import baton; baton.compile"}
    times: dict[str, list[float]] = {name: [] for name in statements}
    try:
        for _ in range(args.rounds):
            for name, statement in statements.items():
                times[name].append(one(statement))
    except RuntimeError as error:
        print(f"error: Baton is not ready: {error}; build it first: ./dev build", file=sys.stderr)
        return 1
    for name, samples in times.items():
        print(f"{name:<6} min {min(samples):.0f} ms, median {statistics.median(samples):.0f} ms")
    more = min(times["baton"]) - min(times["numpy"])
    print(f"import baton takes {more:.0f} ms more than import numpy (bar {BAR_MS:.0f})")
    return 1 if args.check and not more <= BAR_MS else 0


if __name__ == "__main__":
    sys.exit(main())

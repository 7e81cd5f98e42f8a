# SPDX-License-Identifier: Apache-2.0
"""Speed of structural hash, structural equality, JSON, and of making and dropping nodes, in calls of a Relay function per
second; and how the time grows with the size, as the exponent of a fit (1 is linear). A figure is the best of the rounds, in which the sizes
take turns, by the processor's time: what else the machine does then counts little.

    python bench/objects.py [--largest 1000000] [--repeat 5] [--check]

Three shapes of one size: a chain of calls, a wide tuple of independent calls, and a chain that uses each value twice, which
as a tree would be exponential. `--check` fails where a bar is missed: 3 million calls a second for hash and equality, 500,000
for JSON, at 100,000 calls; exponents of at most 1.15 from there to the largest size."""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "python"))  # behind a package of PYTHONPATH

import baton  # noqa: E402
from baton import relay  # noqa: E402

BARS = {"hash": 3e6, "equal": 3e6, "save_json": 5e5, "load_json": 5e5}


def chain(n):
    x, y = relay.var("x", shape=(4,)), relay.var("y", shape=(4,))
    add, e = relay.op.get("add"), x
    for _ in range(n):
        e = relay.Call(add, [e, y])
    return relay.Function([x, y], e)


def wide(n):
    x, y = relay.var("x", shape=(4,)), relay.var("y", shape=(4,))
    add = relay.op.get("add")
    return relay.Function([x, y], relay.Tuple([relay.Call(add, [x, y]) for _ in range(n)]))


def shared(n):
    x = relay.var("x", shape=(4,))
    add, e = relay.op.get("add"), x
    for _ in range(n):
        e = relay.Call(add, [e, e])
    return relay.Function([x], e)


class Subject:
    """One function of `n` calls, and the least processor time in seconds that each thing took with it."""

    def __init__(self, make, n):
        self.n, self.times = n, {}
        self.a = self.timed("make (Python)", make, n)
        self.b = self.timed("make (Python)", make, n)
        self.text = baton.ir.save_json(self.a)

    def timed(self, what, run, *args):
        begin = time.process_time()
        result = run(*args)
        self.times[what] = min(self.times.get(what, math.inf), time.process_time() - begin)
        return result

    def round(self):
        self.timed("hash", baton.ir.structural_hash, self.a)
        if not self.timed("equal", baton.ir.structural_equal, self.a, self.b):
            raise AssertionError("two equal functions differ")
        self.timed("save_json", baton.ir.save_json, self.a)
        loaded = [self.timed("load_json", baton.ir.load_json, self.text)]
        self.timed("drop", loaded.clear)


def measure(make, sizes, repeat):
    """size -> what -> seconds. The sizes take turns, so that what else the machine does falls on all of them."""
    subjects = [Subject(make, n) for n in sizes]
    for _ in range(repeat):
        for s in subjects:
            s.round()
    return {s.n: s.times for s in subjects}


def exponent(points):
    """Slope of log(time) over log(n), by least squares."""
    xs, ys = [math.log(n) for n, _ in points], [math.log(max(t, 1e-9)) for _, t in points]
    mx, my = statistics.fmean(xs), statistics.fmean(ys)
    return sum((x - mx) * (y - my) for x, y in zip(xs, ys, strict=False)) / sum((x - mx) ** 2 for x in xs)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--largest", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    sizes = [n for n in (100_000, 200_000, 500_000, 1_000_000) if n <= args.largest]
    missed = []
    for make in (chain, wide, shared):
        rows = measure(make, sizes, args.repeat)
        print(f"{make.__name__:8}{'calls':>22}" + "".join(f"{n:>12,}" for n in sizes) + "   exponent")
        for what in rows[sizes[0]]:
            rates = [n / rows[n][what] for n in sizes]
            slope = exponent([(n, rows[n][what]) for n in sizes]) if len(sizes) > 1 else 1.0
            print(f"        {what:>14}, M/s  " + "".join(f"{r / 1e6:>12.2f}" for r in rates) + f"   {slope:8.2f}")
            at = rates[sizes.index(100_000)] if 100_000 in sizes else rates[-1]
            if what in BARS and (at < BARS[what] or slope > 1.15):
                missed.append(f"{make.__name__}: {what} {at / 1e6:.2f} million calls a second, exponent {slope:.2f}")
    for line in missed:
        print("missed:", line)
    return 1 if args.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())

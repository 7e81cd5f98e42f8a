# SPDX-License-Identifier: Apache-2.0
"""Fair timing of several ways to do one thing: in turns, in one process, with the same inputs.

Imports nothing outside the standard library, so that the command line stays quick.
"""

from __future__ import annotations

import gc
import math
import statistics
import time
from collections.abc import Callable, Iterable, Mapping


class Timing:
    """Samples of one contender, in milliseconds, in the order they were taken."""

    def __init__(self):
        self.samples: list[float] = []

    @property
    def min(self) -> float:
        return min(self.samples)

    @property
    def median(self) -> float:
        return statistics.median(self.samples)

    def percentile(self, share: float) -> float:
        """The smallest sample that is at least as large as `share` (0 to 1) of all."""
        ordered = sorted(self.samples)
        return ordered[max(0, math.ceil(share * len(ordered)) - 1)]

    def _repr_html_(self) -> str:
        from ..runtime import html

        return html.times(self.samples)


def interleave(
    runs: Mapping[str, Callable[[], object]],
    rounds: int = 10,
    block_seconds: float = 0.15,
    pause_seconds: float = 0.02,
    progress: Callable[[int, int], None] = lambda done, total: None,
    clock: Callable[[], int] = time.perf_counter_ns,
) -> dict[str, Timing]:
    """Times the runs in turns: rounds of A B A B, each turn about `block_seconds` long.

    A turn starts with a pause, in which the other's threads stop spinning, and with untimed calls, which wake its own
    and bring its weights back into the caches. The machine's clock and its other tenants change over seconds; turns
    this short let both sides see the same machine. `clock`: nanoseconds; that of the process (`time.process_time_ns`) does not count what others
    take from it, and adds up the threads.
    """
    calls = {}
    for name, run in runs.items():
        run()  # the first call may still compile or allocate
        start = time.perf_counter()
        run()
        calls[name] = max(1, min(1000, round(block_seconds / max(time.perf_counter() - start, 1e-7))))
    timings = {name: Timing() for name in runs}
    order = list(runs)
    collecting = gc.isenabled()
    gc.disable()
    try:
        for round_number in range(rounds):
            progress(round_number, rounds)
            for name in order:
                run, samples = runs[name], timings[name].samples
                time.sleep(pause_seconds)
                for _ in range(max(1, calls[name] // 20)):
                    run()
                for _ in range(calls[name]):
                    start = clock()
                    run()
                    samples.append((clock() - start) * 1e-6)
            order.reverse()  # A B B A: neither always follows the other
    finally:
        if collecting:
            gc.enable()
    return timings


def geometric_mean(values: Iterable[float]) -> float:
    return statistics.geometric_mean(values)

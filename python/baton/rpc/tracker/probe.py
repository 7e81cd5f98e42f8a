# SPDX-License-Identifier: Apache-2.0
"""Known-answer runs: before each lease a server computes on its device what the tracker knows already."""

from __future__ import annotations

import hashlib
import random
import struct

ELEMENTS = 64
MASK = 0xFFFFFFFF


def inputs(seed: int) -> list[int]:
    """The 32-bit numbers of a question."""
    state, found = seed & MASK, []
    for _ in range(ELEMENTS):
        state = (1664525 * state + 1013904223) & MASK
        found.append(state)
    return found


def compute(values: list[int]) -> list[int]:
    """y[i] = x[i] * x[n - 1 - i] + i, modulo 2**32: what a device computes, here on the processor that runs Python."""
    return [(x * y + i) & MASK for i, (x, y) in enumerate(zip(values, reversed(values), strict=True))]


def answer(seed: int, run=compute) -> str:
    """The answer to a question; `run` computes it on a device."""
    return hashlib.sha256(struct.pack(f"<{ELEMENTS}I", *run(inputs(seed)))).hexdigest()


class Questions:
    """Questions with their answers, of which one is drawn each time."""

    def __init__(self, rng=None, count: int = 256):
        rng = rng or random.SystemRandom()
        self._rng = rng
        self._known = [(seed, answer(seed)) for seed in (rng.getrandbits(32) for _ in range(count))]

    def draw(self) -> tuple[int, str]:
        return self._rng.choice(self._known)


__all__ = ["Questions", "answer", "compute", "inputs"]

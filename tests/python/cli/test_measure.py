# SPDX-License-Identifier: Apache-2.0
"""Interleaved timing gives each contender the same number of turns, and its arithmetic is right."""

import gc

import pytest

from baton.cli.measure import Timing, geometric_mean, interleave


def test_turns_alternate():
    seen = []
    progress = []
    out = interleave(
        {"a": lambda: seen.append("a"), "b": lambda: seen.append("b")}, rounds=4, block_seconds=0, pause_seconds=0,
        progress=lambda done, total: progress.append((done, total)),
    )  # fmt: skip
    # Two calls each to warm up and to see how long one takes; then each turn is an untimed and a timed call.
    assert seen[:4] == ["a", "a", "b", "b"] and "".join(seen[4:]) == "aabbbbaaaabbbbaa"
    assert len(out["a"].samples) == len(out["b"].samples) == 4
    assert progress == [(0, 4), (1, 4), (2, 4), (3, 4)] and gc.isenabled()


def test_collector_comes_back_after_an_error():
    calls = []

    def fails():
        calls.append(1)
        if len(calls) > 3:
            raise ValueError("late")

    with pytest.raises(ValueError):
        interleave({"a": fails}, rounds=3, block_seconds=0, pause_seconds=0)
    assert gc.isenabled()


def test_statistics():
    timing = Timing()
    timing.samples = [4.0, 1.0, 3.0, 2.0]
    assert timing.min == 1.0 and timing.median == 2.5
    assert timing.percentile(0.5) == 2.0 and timing.percentile(0.99) == 4.0 and timing.percentile(0) == 1.0
    assert geometric_mean([1.0, 4.0]) == pytest.approx(2.0)

# SPDX-License-Identifier: Apache-2.0
"""Reliability figure 23: Ctrl-C ends what takes long, and the process stays usable."""

import importlib.util
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[3] / "bench" / "interrupt.py"
spec = importlib.util.spec_from_file_location("bench_interrupt", BENCH)
bench = importlib.util.module_from_spec(spec)
spec.loader.exec_module(bench)


@pytest.fixture(scope="module")
def works():
    return bench.works(100_000)


@pytest.mark.parametrize("name", [
    "parse", "print", "structural_hash", "structural_equal", "save_json", "load_json", "virtual machine", "interpreter", "compile",
    "FuseOps", "ToANormalForm", "PartialEvaluate",
])
def test_an_alarm_ends_it(works, name):
    """The alarm comes soon after the start of work that goes on for long after it."""
    work = works[name]
    assert any(bench.latency(work, after) is not None for after in (0.03, 0.02, 0.01)), f"{name} went on to its end"
    assert bench.latency(work, 3600.0) is None  # nothing is left of it: the same work succeeds

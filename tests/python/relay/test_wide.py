# SPDX-License-Identifier: Apache-2.0
"""Wide programs through everything that takes a program; `bench/wide.py` runs them at full size and measures growth."""

import importlib.util
from pathlib import Path

import pytest

_spec = importlib.util.spec_from_file_location("bench_wide", Path(__file__).parents[3] / "bench" / "wide.py")
wide = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(wide)


@pytest.mark.parametrize(("shape", "size"), [("tuple", 20_000), ("functions", 1000), ("outputs", 700), ("inputs", 300), ("clauses", 200)])
def test_wide_programs(shape, size):
    done = [name for name, work in wide.steps(shape, size) if work() or True]
    assert {"InferType", "parse", "load", "FuseOps", "PlanDevices", "interpret", "compile and run"} <= set(done)


@pytest.mark.slow
@pytest.mark.parametrize("shape", wide.SIZES)
def test_wide_programs_of_a_tenth_of_the_size(shape):
    for _, work in wide.steps(shape, wide.SIZES[shape] // 10, full=False):
        work()


@pytest.mark.slow
def test_many_functions():
    """All 100,000, where a look through the module for each function would take minutes a pass."""
    for name, work in wide.steps("functions", wide.SIZES["functions"]):
        if name != "compile and run":
            work()


def test_what_is_made_is_wide():
    assert len(wide.wide_tuple(100)["main"].body.args[0].tuple_value.fields) == 100
    assert len(wide.many_functions(100).functions) == 101
    assert len(wide.many_outputs(100)["main"].body.fields) == 100

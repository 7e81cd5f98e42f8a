# SPDX-License-Identifier: Apache-2.0
"""Wide programs through everything that takes a program; `bench/wide.py` runs them at full size and measures growth."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import baton as tvm
from baton import relay

_spec = importlib.util.spec_from_file_location("bench_wide", Path(__file__).parents[3] / "bench" / "wide.py")
wide = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(wide)


@pytest.mark.parametrize(("shape", "size"), [("tuple", 20_000), ("functions", 1000), ("outputs", 700), ("inputs", 300), ("clauses", 200)])
def test_wide_programs(shape, size):
    """Every pass runs, and what it makes gives what the program gave. ("compile and run" compares for itself.)"""
    made = {name: work() for name, work in wide.steps(shape, size)}
    assert {"parse", "compare", "hash", "compare loaded", "compile and run"} <= set(made)
    names = wide.passes()
    assert {"InferType", "FuseOps", "PlanDevices", "ToCPS"} <= set(names) and len(names) > 40
    arguments, want = made["interpret"]
    want = wide.flat(want)
    for name in names:
        if name == "ToCPS":  # takes what comes after as one more argument
            assert len(made[name]["main"].params) == len(made["InferType"]["main"].params) + 1
            continue
        got = wide.flat(relay.create_executor("debug", made[name]).evaluate()(*arguments))
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("shape", wide.SIZES)
def test_wide_programs_of_a_tenth_of_the_size(shape):
    """Steps compare for themselves: texts, JSON, hashes, and what is compiled with what is interpreted."""
    typed = None
    for name, work in wide.steps(shape, wide.SIZES[shape] // 10, full=False):
        made = work()
        typed = made if name == "InferType" else typed
        if name in ("FuseOps", "PlanDevices", "ToANormalForm"):
            tvm.ir.assert_structural_equal(made["main"].checked_type, typed["main"].checked_type)


@pytest.mark.slow
def test_many_functions():
    """All 100,000, where a look through the module for each function would take minutes a pass."""
    n = wide.SIZES["functions"]
    for name, work in wide.steps("functions", n):
        made = work() if name != "compile and run" else None
        if name in ("InferType", "FoldConstant", "PlanDevices"):
            assert len(made.functions) >= n, name


def test_what_is_made_is_wide():
    assert len(wide.wide_tuple(100)["main"].body.args[0].tuple_value.fields) == 100
    assert len(wide.many_functions(100).functions) == 101
    assert len(wide.many_outputs(100)["main"].body.fields) == 100

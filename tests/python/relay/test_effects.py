# SPDX-License-Identifier: Apache-2.0
"""Operands with effects keep their order and are not dropped, wherever they stand: every pass, pipelines, the virtual machine (AN-018)."""

import random

import numpy as np
import pytest
from programs import effects

import baton as tvm
from baton import relay

# What prints, what gives another function, and what leaves no Relay behind.
_OTHER = {"PrintIR", "LowerToTIR", "Gradient", "FirstOrderGradient", "ToCPS"}
_PASSES = [n for n in map(str, tvm._ffi.get_global_func("transform.PassNames")()) if not n.startswith(("Test", "tir.")) and n not in _OTHER]


def _typed(text):
    return relay.transform.InferType()(relay.fromtext(text))


def _run(mod, kind="debug"):
    return np.array([v.numpy() for v in relay.create_executor(kind, mod=mod).evaluate()(np.float32(0.5))])


def _after(mod, name):
    with tvm.transform.PassContext(opt_level=4):
        return relay.transform.InferType()(tvm.transform.parse_pipeline(name)(mod))


@pytest.mark.parametrize("name", [*_PASSES, "DeadCodeElimination(inline_once=True)", 'SimplifyExpr(fp="contract")', "vm"])
def test_effects_stay(name):
    for seed in range(40):
        mod = _typed(effects(seed))
        got = _run(mod, "vm") if name == "vm" else _run(_after(mod, name))
        np.testing.assert_allclose(got, _run(mod), rtol=3e-2 if name == "ToMixedPrecision" else 1e-3, err_msg=f"program {seed}")


@pytest.mark.parametrize("first", range(100, 160, 20))
def test_effects_stay_in_pipelines(first):
    for seed in range(first, first + 20):
        mod = _typed(effects(seed))
        want, used = _run(mod), random.Random(seed).sample(sorted({*_PASSES} - {"ToMixedPrecision", "FastMath"}), 4)
        for name in used:
            mod = _after(mod, name)
        np.testing.assert_allclose(_run(mod), want, rtol=1e-3, err_msg=f"program {seed} after {used}")
        tvm.ir.assert_structural_equal(_typed(mod.astext()), mod, map_free_vars=True)


def test_programs_have_effects():
    """Where the counter is not raised, the properties above say less."""
    raised = [_run(_typed(effects(seed)))[2] != 0.5 for seed in range(40)]
    assert sum(raised) > 30

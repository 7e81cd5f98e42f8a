# SPDX-License-Identifier: Apache-2.0
"""Reliability figure 11: every registered pass takes programs of any depth, with little stack."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("deep_programs.py")
_spec = importlib.util.spec_from_file_location("deep_programs", SCRIPT)
deep_programs = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(deep_programs)
# What a pass may say to a program that is not for it; anything else is a pass that does not work on deep programs.
REFUSALS = {
    "FirstOrderGradient": "CompileError",
    "Gradient": "CompileError",
    "Defunctionalization": "CompileError",
    "AnnotateSpans": "CompileError: GeneratedSource",
    "tir.MakeUnpackedAPI": "CompileError: MakeUnpackedAPI: expect PrimFunc to have the global_symbol attribute",
    "LowerToTIR": "CompileError: functions within @main are nested more than 10000 deep",
}  # too nested for a text


def run(shape, depth, stack):
    done = subprocess.run(
        [sys.executable, SCRIPT, "--depth", str(depth), "--stack", str(stack), "--shapes", shape],
        capture_output=True,
        text=True,
        env={**os.environ, "BATON_VERIFY_PASSES": "1"},
    )
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"shape"')]  # PrintIR prints too
    assert done.returncode == 0, f"{rows[-1:]}: {done.returncode}\n{done.stderr[-2000:]}"
    started, ended = ([row[key] for row in rows if key in row] for key in ("start", "done"))
    assert started == ended == deep_programs.names(shape in deep_programs.LOOPS) and len(ended) >= 13
    for row in rows:
        if row.get("refused"):
            assert row["refused"].startswith(REFUSALS[row["done"]]), row


@pytest.mark.parametrize("shape", [*deep_programs.RELAY, *deep_programs.LOOPS])
def test_every_pass_takes_deep_programs(shape):
    """20,000 deep with 512 KiB, which is 26 bytes a level."""
    run(shape, 20_000, 512)


@pytest.mark.slow
@pytest.mark.parametrize("stack", [512, 8192])
@pytest.mark.parametrize("shape", [*deep_programs.RELAY, *deep_programs.LOOPS])
def test_every_pass_takes_very_deep_programs(shape, stack):
    """100,000 deep; 1,000,000: `python tests/python/ir/deep_programs.py`."""
    run(shape, 100_000, stack)

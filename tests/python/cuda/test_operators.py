# SPDX-License-Identifier: Apache-2.0
"""Rows of the tables of operators, as models on a CUDA device whose kernels an interpreter of PTX runs, equal NumPy."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("run_rows.py")


def run(fake_cuda, *numbers):
    env = {**os.environ, "BATON_CUDA_LIBRARY": str(fake_cuda)}
    done = subprocess.run([sys.executable, str(SCRIPT), *map(str, numbers)], capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def test_some_rows(fake_cuda):
    found = run(fake_cuda, 0, 60)
    assert not found["wrong"], "\n".join(found["wrong"])
    assert found["ran"] > 40 and found["launches"] > found["ran"]


@pytest.mark.slow
@pytest.mark.parametrize("part", range(12))
def test_all_rows(fake_cuda, part):
    found = run(fake_cuda, part, 12)
    assert not found["wrong"], "\n".join(found["wrong"])
    assert found["ran"] > 200

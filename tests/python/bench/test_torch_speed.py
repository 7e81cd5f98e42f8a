# SPDX-License-Identifier: Apache-2.0
"""`bench/torch_speed.py` says what is wrong with a choice before it runs anything."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch==2.13.0")
BENCH = Path(__file__).resolve().parents[3] / "bench/torch_speed.py"


def refused(*args):
    """The last line of a command that ends with 2."""
    done = subprocess.run([sys.executable, BENCH, *args], capture_output=True, text=True)
    assert done.returncode == 2 and "Traceback" not in done.stderr, done.stderr
    return done.stderr.splitlines()[-1]


def test_a_model_that_no_row_has():
    assert "--only: no model 'vgg' in models; there are resnet50," in refused("models", "--only", "vgg")
    assert refused("call", "--only", "encoder").endswith("--only: no model 'encoder' in these rows")
    assert "no row 'speed'; there are call, cold, sizes" in refused("speed")


@pytest.mark.skipif(importlib.util.find_spec("torchvision") is not None, reason="torchvision is installed")
def test_a_package_that_is_not_installed():
    assert "resnet50: torchvision is not installed: pip install --no-deps torchvision" in refused("models", "--only", "resnet50")

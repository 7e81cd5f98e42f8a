# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own backend "tvm", unmodified, with Baton under that name."""

import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch==2.13.0")

SCRIPT = """
import torch

import baton.compat

baton.compat.serve("tvm")
module = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 5)).eval()
x = torch.randn(2, 3, 8, 8)
with torch.no_grad():
    fast = torch.compile(module, backend="tvm")
    torch.testing.assert_close(fast(x), module(x), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(fast(x + 1), module(x + 1), rtol=1e-4, atol=1e-5)
from torch._dynamo.backends import tvm

assert tvm.has_tvm() and tvm.tvm.__module__ == "torch._dynamo.backends.tvm"
print("equal")
"""


def test_a_module_through_it():
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split() == ["equal"]

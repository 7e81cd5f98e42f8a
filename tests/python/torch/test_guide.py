# SPDX-License-Identifier: Apache-2.0
"""The guide's blocks run and print what it says."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch==2.13.0")

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.slow
def test_the_page_on_pytorch():
    done = subprocess.run([sys.executable, ROOT / "tools/run_page.py", ROOT / "docs/guides/pytorch.md"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr

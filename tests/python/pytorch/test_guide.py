# SPDX-License-Identifier: Apache-2.0
"""The guide's blocks run and print what it says."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch==2.13.0")

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.slow
@pytest.mark.parametrize("page", ["pytorch", "pytorch_gallery"])
def test_the_pages_on_pytorch(page):
    done = subprocess.run([sys.executable, ROOT / "tools/run_page.py", ROOT / f"docs/guides/{page}.md"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr

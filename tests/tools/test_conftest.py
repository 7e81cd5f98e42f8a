# SPDX-License-Identifier: Apache-2.0
"""The rules of tests/conftest.py."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    "built, reason, outcome", [("1", "the compiler is not built", "1 failed"), ("0", "the compiler is not built", "1 skipped"), ("1", "no g++", "1 skipped")]
)
def test_a_skip_cannot_hide_a_broken_build(tmp_path, built, reason, outcome):
    shutil.copytree(ROOT / "tests" / "golden", tmp_path / "golden", ignore=shutil.ignore_patterns("test_*"))
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path)
    (tmp_path / "test_x.py").write_text(f"import pytest\ndef test_x():\n    pytest.skip({reason!r})\n")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", tmp_path, tmp_path],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "BATON_BUILT": built},
    )
    assert run.stdout.splitlines()[-1].startswith(outcome), run.stdout

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the stubs of a build for the wheel: `make_stubs.py PACKAGE OUT`, where PACKAGE holds the libraries and the extension.

The package's Python files lie in the source tree, what is compiled in the build folder: links bring them together.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "python" / "baton"


def main(built, out):
    """Returns the exit code."""
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder, "baton")
        package.mkdir()
        for entry in sorted(SOURCE.iterdir()):
            if entry.name not in ("lib", "__pycache__") and not entry.name.startswith("_core"):
                (package / entry.name).symlink_to(entry)
        for entry in (Path(built) / "lib", *Path(built).glob("_core*.so")):
            (package / entry.name).symlink_to(entry.resolve())
        return subprocess.run([sys.executable, "-B", "-m", "baton.describe", "stubs", "--out", str(Path(out).resolve())], cwd=folder, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

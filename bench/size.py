# SPDX-License-Identifier: Apache-2.0
"""Size of the runtime library as it ships: stripped. The bar is 300 KB (300,000 bytes)."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

BAR = 300_000
LIBRARY = Path(__file__).resolve().parent.parent / "python" / "baton" / "lib" / "libbaton_runtime.so"


def stripped_size(library: Path) -> int:
    """Bytes of a stripped copy."""
    strip = shutil.which("strip") or shutil.which("llvm-strip-19")
    if not strip:
        raise RuntimeError("`strip` is not there; mend with: apt-get install binutils")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, library.name)
        done = subprocess.run([strip, "--strip-unneeded", "-o", str(out), str(library)], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr.strip())
        return out.stat().st_size


def main() -> int:
    library = Path(sys.argv[1]) if len(sys.argv) > 1 else LIBRARY
    if not library.is_file():
        print(f"error: `{library}` is not built; build it first: ./dev build", file=sys.stderr)
        return 1
    try:
        size = stripped_size(library)
    except RuntimeError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"{library.name}: {size} bytes stripped, {library.stat().st_size} as built (bar {BAR})")
    return 0 if size <= BAR else 1


if __name__ == "__main__":
    sys.exit(main())

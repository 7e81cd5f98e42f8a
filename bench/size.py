# SPDX-License-Identifier: Apache-2.0
"""Size of the runtime library as it ships, and of those that it loads for some models: stripped. The bar is 320 KB (320,000
bytes) for the first, and 120 KB of it for the core (objects, functions, registry, errors), counted in a checkout as the
sections of its object files."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

BAR = 320_000
CORE_BAR = 120_000
CORE = ("any", "bytes", "data_type", "error", "extension", "object", "reflection", "registry")
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


def core_size(folder: Path) -> int | None:
    """Bytes of code and data that the core's object files hold; None where they are not."""
    files = [folder / f"{name}.cpp.o" for name in CORE]
    if not all(f.is_file() for f in files) or not shutil.which("size"):
        return None
    done = subprocess.run(["size", *map(str, files)], capture_output=True, text=True, check=True)
    return sum(int(text) + int(data) for text, data, *_ in map(str.split, done.stdout.splitlines()[1:]))


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
    for other in ("libbaton_vm.so", "libbaton_host.so") if library == LIBRARY else ():
        beside = library.with_name(other)
        print(f"{other}: {stripped_size(beside)} bytes stripped" if beside.is_file() else f"{other}: not built")
    core = core_size(LIBRARY.parents[3] / "build" / "CMakeFiles" / "baton_runtime.dir" / "src" / "runtime")
    if core is not None and library == LIBRARY:
        print(f"core (objects, functions, registry, errors): {core} bytes (bar {CORE_BAR})")
    return 0 if size <= BAR and (core or 0) <= CORE_BAR else 1


if __name__ == "__main__":
    sys.exit(main())

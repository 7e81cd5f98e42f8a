# SPDX-License-Identifier: Apache-2.0
"""Size of the runtime library as it ships, and of those that it loads for some models: stripped. The bar is 320 KB (320,000
bytes) for the first, and 120 KB of it for the core (objects, functions, registry, errors), counted in a checkout as the
sections of its object files. Of remote sessions: their library (bar 120 KB), and what a board needs, the program with both libraries (bar 450
KB); a line each, which does not change the exit code."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

BAR = 320_000
CORE_BAR = 120_000
RPC_BAR, BOARD_BAR = 120_000, 450_000
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


def remote(runtime: int) -> None:
    """The library of remote sessions by its sections, and what a board needs."""
    library, program = LIBRARY.with_name("libbaton_rpc.so"), LIBRARY.with_name("baton-rpc-server")
    if not library.is_file():
        print("libbaton_rpc.so: not built")
        return
    size = stripped_size(library)
    print(f"libbaton_rpc.so: {size} bytes stripped (bar {RPC_BAR}: {'holds' if size <= RPC_BAR else 'missed'}){_sections(library)}")
    if program.is_file():
        board = runtime + size + stripped_size(program)
        print(f"baton-rpc-server with both libraries: {board} bytes (bar {BOARD_BAR}: {'holds' if board <= BOARD_BAR else 'missed'})")


def _sections(library: Path) -> str:
    """The largest sections, as text; nothing without binutils."""
    if not shutil.which("size"):
        return ""
    done = subprocess.run(["size", "-A", "-d", str(library)], capture_output=True, text=True, check=True)
    rows = [line.split() for line in done.stdout.splitlines()[2:] if line.count(" ") and line.split()[0] != "Total"]
    found = sorted(((int(row[1]), row[0]) for row in rows if len(row) >= 2), reverse=True)[:6]
    return ": " + ", ".join(f"{name} {size}" for size, name in found)


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
    if library == LIBRARY:
        remote(size)
    core = core_size(LIBRARY.parents[3] / "build" / "CMakeFiles" / "baton_runtime.dir" / "src" / "runtime")
    if core is not None and library == LIBRARY:
        print(f"core (objects, functions, registry, errors): {core} bytes (bar {CORE_BAR})")
    return 0 if size <= BAR and (core or 0) <= CORE_BAR else 1


if __name__ == "__main__":
    sys.exit(main())

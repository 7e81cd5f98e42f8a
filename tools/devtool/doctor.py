# SPDX-License-Identifier: Apache-2.0
"""`./dev doctor`: what this machine and checkout have and lack. Changes nothing."""

import os
import platform
import shutil
import sys
from pathlib import Path

from . import machine
from .build import build_dir
from .step import ROOT, digest, probe, shown, stamped


def first_line(argv):
    """First line that a program prints, or None."""
    out = probe(argv)
    return out.splitlines()[0] if out else None


def findings():
    """(what, state, how to mend it or None) in the order in which set-up needs them."""
    rows = []

    def row(what, state, mend=None):
        rows.append((what, state, mend))

    system = platform.freedesktop_os_release().get("PRETTY_NAME", "?") if Path("/etc/os-release").exists() else platform.system()
    row("system", f"{system}, {platform.machine()}, {machine.cpus()} processors, {machine.memory_gib():.1f} GiB memory")
    free = shutil.disk_usage(ROOT).free / 2**30
    row("disk", f"{free:.1f} GiB free", None if free > 4 else "a build and its environment need 4 GiB: free some")
    row("python", f"{sys.executable} {platform.python_version()}", None if machine.python_complete() else "apt-get install python3-venv python3-dev")
    must, nice = machine.missing_things()
    row(
        "system packages",
        "complete" if not must else "missing: " + " ".join(must),
        f"./dev setup as root, or: apt-get install --no-install-recommends {' '.join(must)}" if must else None,
    )
    if nice:
        row("optional packages", "not there: " + " ".join(nice), f"apt-get install {' '.join(nice)}")
    for name in ("g++", "cmake", "ninja", "mold", "ccache"):
        row(name, first_line([name, "--version"]) or "not there")
    row(
        "llvm 19",
        first_line(["/usr/lib/llvm-19/bin/llvm-config", "--version"]) or "llvm-config is not there",
        None if Path("/usr/lib/llvm-19").exists() else "apt-get install llvm-19-dev",
    )
    python = machine.venv_python()
    alive = probe([python, "-m", "pip", "--version"])
    row("environment", f"{shown(machine.venv_dir())}: {probe([python, '-V']) if alive else 'not there'}", None if alive else "./dev setup")
    if alive:
        value = digest(machine.REQUIREMENTS, machine.REQUIREMENTS_ALONE, probe([python, "-V"]))
        current = stamped(machine.venv_dir() / ".baton-requirements", value)
        row("python packages", "as pinned" if current else "not installed or of other versions", None if current else "./dev setup")
    configured = (build_dir() / "build.ninja").exists()
    row("build", "configured" if configured else "not yet", None if configured else "./dev build")
    package = ROOT / "python" / "baton"
    for name in (
        "lib/libbaton_runtime.so",
        "lib/libbaton_opencl.so",
        "lib/libbaton_cuda.so",
        "lib/libbaton_host.so",
        "lib/libbaton_vm.so",
        "lib/libbaton_rpc.so",
        "lib/libbaton.so",
    ):
        path = package / name
        row(name, f"{path.stat().st_size / 2**20:.1f} MiB" if path.exists() else "not built", None if path.exists() else "./dev build")
    if alive and any(package.glob("_core*.so")):
        out = probe(["env", f"PYTHONPATH={ROOT / 'python'}", python, "-c", "import baton; print('works')"])
        row("import baton", out or "fails", None if out else f"PYTHONPATH=python {shown(python)} -c 'import baton'")
    for name in ("BATON_VENV", "BATON_JOBS", "CC", "CXX", "CXXFLAGS", "LDFLAGS", "LD_LIBRARY_PATH", "PYTHONPATH"):
        if name in os.environ:
            row(name, f"is set: {os.environ[name]}")
    return rows


def main():
    """Prints the findings. Returns 1 where something that is needed is missing."""
    rows = findings()
    for what, state, mend in rows:
        print(f"{what:24} {state}")
        if mend:
            print(f"{'':24} mend: {mend}")
    needed = [w for w, _, mend in rows if mend and not w.startswith("optional")]
    print("\nall is well" if not needed else f"\nto mend: {', '.join(needed)}")
    return 1 if needed else 0

# SPDX-License-Identifier: Apache-2.0
"""Builds the runtime and baton-rpc-server for another machine, with Debian's cross compilers. The folder is complete: it is copied there."""

import shutil

from .build import ccache_environment
from .machine import jobs
from .step import ROOT, StepFailed, program, run, say, shown

# Machine -> (triple of its compiler, Debian's name of the package's architecture, QEMU's program).
MACHINES = {
    "aarch64": ("aarch64-linux-gnu", "aarch64-linux-gnu", "qemu-aarch64"),
    "riscv64": ("riscv64-linux-gnu", "riscv64-linux-gnu", "qemu-riscv64"),
    "armhf": ("arm-linux-gnueabihf", "arm-linux-gnueabihf", "qemu-arm"),
}
# baton_host, which computes what values decide (sorting, shapes of ONNX), needs integers of 128 bits.
WITHOUT = {"armhf": ("baton_host",)}
TARGETS = ("baton_runtime", "baton_host", "baton_vm", "baton_rpc", "baton_rpc_server")


def folder(machine):
    """Returns the folder of the build for a machine; what is copied there is `baton/lib` in it."""
    return ROOT / f"build-{machine}"


def packages(machine):
    """Debian's names of the compiler, and the emulator that runs what it makes."""
    return f"g++-{MACHINES[machine][1]}", "qemu-user"


def build(machine):
    """Steps: configure and build. Returns the folder of the libraries and the server."""
    triple = MACHINES[machine][0]
    if not shutil.which(f"{triple}-g++"):
        raise StepFailed(f"cross: there is no {triple}-g++ on this machine", None, f"apt-get install {' '.join(packages(machine))}, then run this again")
    out = folder(machine)
    if not (out / "build.ninja").exists():
        run(
            "configure",
            f"cmake prepares {shown(out)}",
            [
                program("cmake") or "cmake", "-S", ROOT, "-B", out, "-G", "Ninja", f"-DCMAKE_TOOLCHAIN_FILE={ROOT / 'cmake' / 'cross.cmake'}",
                f"-DBATON_TRIPLE={triple}", "-DCMAKE_BUILD_TYPE=Release", "-DBATON_COMPILER=OFF", "-DBATON_PYTHON=OFF", "-DBATON_TESTS=OFF",
            ],
            mend="the first `CMake Error` above says what is missing",
        )  # fmt: skip
    targets = [t for t in TARGETS if t not in WITHOUT.get(machine, ())]
    run(
        "cross",
        f"ninja builds {' '.join(targets)} in {shown(out)} with {jobs()} jobs",
        [program("ninja") or "ninja", "-C", out, f"-j{jobs()}", *targets],
        env=ccache_environment(),
        quiet=False,
        mend="the first `error:` above is the cause; out of memory (`Killed`): repeat with BATON_JOBS=1",
    )
    libraries = out / "baton" / "lib"
    say("cross", f"{shown(libraries)} holds what a {machine} machine needs; baton-rpc-server is in it")
    return libraries

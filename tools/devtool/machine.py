# SPDX-License-Identifier: Apache-2.0
"""Requirements of the machine: Debian packages, a virtual environment, pinned Python packages."""

import math
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from .step import ROOT, StepFailed, digest, probe, program, run, say, shown, stamp, stamped

# Debian package -> a program or file that shows on any distribution that the thing is there.
REQUIRED = {
    "g++": "g++",
    "cmake": "cmake",
    "ninja-build": "ninja",
    "python3-venv": None,
    "python3-dev": None,
    "llvm-19-dev": "/usr/lib/llvm-19/lib/cmake/llvm/LLVMConfig.cmake",
    "liblld-19-dev": "/usr/lib/llvm-19/lib/liblldELF.a",
    "libfmt-dev": "/usr/include/fmt/format.h",
    "doctest-dev": "/usr/include/doctest/doctest.h",
    "libzstd-dev": "/usr/include/zstd.h",
    "zlib1g-dev": "/usr/include/zlib.h",
}
# The build works without these, only slower.
FASTER = {"mold": "mold", "ccache": "ccache"}
# Artifacts are linked in process; lld is the fall-back and lets a developer link by hand. The explorer's page is tested in a
# browser, OpenCL devices on OpenCL for the CPU, WGSL on Vulkan for the CPU, regions for oneDNN with it; without them those tests are skipped.
USEFUL = {
    "lld-19": "ld.lld-19",
    "chromium": "chromium",
    "fonts-dejavu-core": "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf",
    "ocl-icd-libopencl1": None,
    "pocl-opencl-icd": "/etc/OpenCL/vendors/pocl.icd",
    "mesa-vulkan-drivers": "/usr/share/vulkan/icd.d/lvp_icd.x86_64.json",
    "libdnnl2": None,
}
# `./dev test` of everything asks for these: compilers for other machines, and emulators that run their code. Where one cannot be installed its
# tests are skipped.
FOR_TESTS = {
    "g++-aarch64-linux-gnu": "aarch64-linux-gnu-g++",
    "g++-riscv64-linux-gnu": "riscv64-linux-gnu-g++",
    "g++-arm-linux-gnueabihf": "arm-linux-gnueabihf-g++",
    "qemu-user": "qemu-aarch64",
    "gcc-arm-none-eabi": "arm-none-eabi-gcc",
    "libnewlib-arm-none-eabi": "/usr/lib/arm-none-eabi/newlib/nano.specs",
    "qemu-system-arm": "qemu-system-arm",
}

REQUIREMENTS = ROOT / "tools" / "requirements.txt"
REQUIREMENTS_ALONE = ROOT / "tools" / "requirements-alone.txt"
REQUIREMENTS_OPTIONAL = ROOT / "tools" / "requirements-optional.txt"
REQUIREMENTS_LINT = ROOT / "tools" / "requirements-lint.txt"
REQUIREMENTS_TIDY = ROOT / "tools" / "requirements-tidy.txt"


def venv_dir():
    """The virtual environment: `.venv`, or where BATON_VENV points (one environment for several checkouts)."""
    return Path(os.environ.get("BATON_VENV") or ROOT / ".venv").absolute()


def venv_python():
    """Python of the virtual environment; never what PATH happens to find."""
    return venv_dir() / "bin" / "python"


def cpus():
    """Processors this process may use: its affinity, cut by the control group's quota."""
    count = len(os.sched_getaffinity(0))
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        if quota != "max":
            count = min(count, max(1, math.ceil(int(quota) / int(period))))
    except (OSError, ValueError):
        pass
    return count


def memory_gib():
    """Memory in GiB that may be used: the machine's, cut by the control group's limit."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
        if limit != "max":
            total = min(total, int(limit))
    except (OSError, ValueError):
        pass
    return total / 2**30


def jobs():
    """How many compilers to run at once: BATON_JOBS, else one a processor and 1.2 GiB of memory each."""
    if os.environ.get("BATON_JOBS", "").isdigit():
        return max(1, int(os.environ["BATON_JOBS"]))
    return max(1, min(cpus(), int(memory_gib() / 1.2)))


def has_apt():
    """Whether Debian's package tools are here."""
    return bool(shutil.which("apt-get") and shutil.which("dpkg-query"))


def debian_missing(packages):
    """Those of `packages` that dpkg does not have installed."""
    listed = subprocess.run(
        ["dpkg-query", "-W", "-f", "${binary:Package} ${db:Status-Abbrev}\n"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False
    ).stdout
    installed = {line.split()[0].split(":")[0] for line in listed.splitlines() if line.split()[1:2] == ["ii"]}
    return [p for p in packages if p not in installed]


def seen(mark):
    """Whether a program (bare name) or a file (path) of REQUIRED is there."""
    return mark is None or (Path(mark).exists() if mark.startswith("/") else program(mark) is not None)


def missing_things():
    """Packages to install, as (must have, nice to have). Asks dpkg on Debian, looks for files elsewhere."""
    if has_apt():
        must = debian_missing(list(REQUIRED))
        # A machine may carry newer tools or its own Python outside dpkg's knowledge: what is seen need not be installed.
        must = [p for p in must if not (REQUIRED[p] and seen(REQUIRED[p])) and not (REQUIRED[p] is None and python_complete())]
        return must, debian_missing([*FASTER, *USEFUL])
    must = [p for p, mark in REQUIRED.items() if not seen(mark)]
    return must, [p for p, mark in {**FASTER, **USEFUL}.items() if not seen(mark)]


APT = ["apt-get", "-q", "-y", "-o", "DPkg::Lock::Timeout=600", "-o", "Acquire::Retries=3"]


def emulators():
    """Step: compilers for other machines and emulators, each by itself. One that cannot be installed is named, and its tests are skipped."""
    lacking = [p for p, mark in FOR_TESTS.items() if not seen(mark)]
    if lacking and has_apt() and os.geteuid() == 0:
        for package in list(lacking):
            try:
                get = [*APT, "install", "--no-install-recommends", package]
                run("packages", f"apt-get installs {package}", get, env={"DEBIAN_FRONTEND": "noninteractive"}, mend="the tests run without it")
                lacking.remove(package)
            except StepFailed:
                continue
    if lacking:
        say("packages", f"not there, tests of other machines are skipped: apt-get install --no-install-recommends {' '.join(lacking)}")


def packages():
    """Step: the Debian packages. Installs them as root, else says exactly what to install."""
    must, nice = missing_things()
    if not must and (not nice or os.geteuid() != 0 or not has_apt()):
        say("packages", "system packages are there" + (f" (optional, not there: {' '.join(nice)})" if nice else ""))
        return
    install = f"apt-get update && apt-get install --no-install-recommends {' '.join(must + nice)}"
    if not has_apt():
        raise StepFailed(
            f"packages: not found on this machine: {' '.join(must)}",
            None,
            f"install what your distribution calls these Debian 12 packages: {' '.join(must + nice)}; LLVM must be version 19",
        )
    if os.geteuid() != 0:
        raise StepFailed(
            f"packages: not installed, and only root may install them: {' '.join(must)}", None, f"sudo sh -c '{install}', then run this command again"
        )
    wanted = must + nice
    env = {"DEBIAN_FRONTEND": "noninteractive"}
    get = [*APT, "install", "--no-install-recommends", *wanted]
    mend = "see that the machine reaches a Debian mirror (`apt-get update` must end without errors), then repeat"
    if any(Path("/var/lib/apt/lists").glob("*_Packages*")):
        try:
            run("packages", f"apt-get installs {' '.join(wanted)}", get, env=env, mend=mend)
            return
        except StepFailed:
            say("packages", "not with the package lists as they are: fetching new ones")
    run("packages", "fetches Debian's package lists", [*APT, "update"], env=env, mend=mend)
    run("packages", f"apt-get installs {' '.join(wanted)}", get, env=env, mend=mend)


PYTHON_PROBE = """
import sys, sysconfig, os, importlib.util as u
ok = sys.version_info >= (3, 10) and u.find_spec("venv") and u.find_spec("ensurepip") \
    and os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h"))
sys.exit(0 if ok else 1)
"""


def base_python():
    """A Python that can make a virtual environment and has its headers: this one, else the system's; None if neither."""
    for candidate in (sys.executable, "/usr/bin/python3"):
        if candidate and Path(candidate).exists() and probe([candidate, "-c", PYTHON_PROBE]) is not None:
            return candidate
    return None


def python_complete():
    """Whether a complete Python is here without Debian's python3-venv and python3-dev."""
    return base_python() is not None


def environment():
    """Step: the virtual environment."""
    where = venv_dir()
    if probe([venv_python(), "-m", "pip", "--version"]) is not None:
        say("venv", f"{shown(where)} is there")
        return
    base = base_python()
    if base is None:
        raise StepFailed(
            "venv: no Python 3.10 or newer with `venv`, `ensurepip` and its headers",
            None,
            "on Debian: apt-get install python3-venv python3-dev; then run this command again",
        )
    run(
        "venv",
        f"makes the virtual environment {shown(where)}",
        [base, "-m", "venv", "--clear", where],
        mend=f"remove {shown(where)} and repeat; the disk may be full or {base} incomplete",
    )


def pip(step, message, arguments):
    """Runs pip of the virtual environment."""
    run(
        step,
        message,
        [venv_python(), "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--retries", "5", *arguments],
        mend="see that pip reaches its package index (`pip config list` shows which), then repeat",
    )


def python_packages():
    """Step: the pinned Python packages, once for each state of the requirements files."""
    value = digest(REQUIREMENTS, REQUIREMENTS_ALONE, probe([venv_python(), "-V"]))
    mark = venv_dir() / ".baton-requirements"
    if stamped(mark, value):
        say("pip", "pinned Python packages are there")
        return
    pip("pip", f"installs the packages of {shown(REQUIREMENTS)}", ["-r", REQUIREMENTS])
    # Their declared dependencies (PyTorch among them) are not needed for what we use.
    pip("pip alone", f"installs the packages of {shown(REQUIREMENTS_ALONE)}", ["--no-deps", "-r", REQUIREMENTS_ALONE])
    stamp(mark, value)


def optional_packages():
    """Step: packages that only further tests need, each by itself. One that the index lacks is named, and its tests are skipped."""
    value = digest(REQUIREMENTS_OPTIONAL, probe([venv_python(), "-V"]))
    mark = venv_dir() / ".baton-requirements-optional"
    if stamped(mark, value):
        return
    lines = REQUIREMENTS_OPTIONAL.read_text(encoding="utf-8").splitlines()
    wanted = [line for line in lines if line and not line.startswith("#")]
    lacking = []
    for package in wanted:
        try:
            pip("pip optional", f"installs {package}", [package])
        except StepFailed:
            lacking.append(package)
    if lacking:
        say("pip optional", f"not installed, their tests are skipped: {' '.join(lacking)}")
    else:
        stamp(mark, value)


def checkers(name, requirements):
    """Step: the packages of one requirements file, for the commands that check the sources."""
    value = digest(requirements)
    mark = venv_dir() / f".baton-requirements-{name}"
    if stamped(mark, value):
        return
    pip(f"pip {name}", f"installs the packages of {shown(requirements)}", ["-r", requirements])
    stamp(mark, value)


def lint_packages():
    """Step: the formatters, only for `./dev lint` and `./dev format`."""
    checkers("lint", REQUIREMENTS_LINT)


def tidy_packages():
    """Step: clang-tidy, only for `./dev tidy`."""
    checkers("tidy", REQUIREMENTS_TIDY)


COMMAND = """#!/bin/sh
# Written by ./dev: `baton` of the checkout named below, which must be built.
export PYTHONPATH={package}"${{PYTHONPATH:+:$PYTHONPATH}}"
exec {python} -c 'import sys; sys.path[:] = filter(None, sys.path); from baton.cli import main; sys.exit(main())' "$@"
"""


def command_path():
    """Returns the path of the command `baton` of this checkout."""
    return venv_dir() / "bin" / "baton"


def command():
    """Step: the command `baton` in the virtual environment. A `baton` that pip installed there stays."""
    path = command_path()
    text = COMMAND.format(package=shlex.quote(str(ROOT / "python")), python=shlex.quote(str(venv_python().absolute())))
    if path.exists():
        there = path.read_text(encoding="utf-8", errors="replace")
        if there == text or "Written by ./dev" not in there:
            return
    say("command", f"writes {shown(path)}")
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


def setup():
    """All set-up steps; seconds when everything is there."""
    packages()
    environment()
    python_packages()
    command()

# SPDX-License-Identifier: Apache-2.0
"""`baton doctor`: what this machine offers, what is missing, and the command that mends it.

It must work where Baton does not, so each finding is made on its own and nothing here imports the package's libraries
directly; whether they load is tried in a separate process.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from . import arguments

_PACKAGE = Path(__file__).resolve().parent.parent


@dataclass
class Finding:
    """`state` is ok, note (works, something more could be had) or missing (something does not work)."""

    what: str
    state: str
    text: str
    mend: str = ""


def add_parser(verbs, verb, text):
    parser = arguments.add_verb(verbs, verb, text, "  baton doctor\n  baton doctor --json")
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Exit code 1 where something is missing without which Baton does not work."""
    findings = [check() for check in CHECKS]
    if args.json:
        json.dump([asdict(finding) for finding in findings], sys.stdout, indent=1)
        print()
    else:
        for finding in findings:
            print(f"{finding.state:<8}{finding.what:<18}{finding.text}")
            if finding.mend:
                print(f"{'':<26}mend: {finding.mend}")
    return 1 if any(finding.state == "missing" for finding in findings) else 0


def _read(path: str) -> str:
    try:
        return Path(path).read_text("utf-8", "replace")
    except OSError:
        return ""


def _child(code: str) -> tuple[bool, str]:
    """Runs Python code in a separate process: a library that crashes when loaded must not take the doctor along."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(_PACKAGE.parent), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    if done.returncode < 0:
        return False, f"ended by signal {-done.returncode}"
    lines = (done.stdout if done.returncode == 0 else done.stderr).strip().splitlines()
    return done.returncode == 0, lines[-1] if lines else ""


def _python() -> Finding:
    text = f"{platform.python_version()} at {sys.executable}"
    if sys.version_info < (3, 10):
        return Finding("python", "missing", text, "install Python 3.10 or newer")
    return Finding("python", "ok", text)


def _runtime() -> Finding:
    good, text = _child("import baton; baton.NDArray; print(baton.__version__)")
    if good:
        return Finding("runtime", "ok", f"baton {text} at {_PACKAGE}")
    return Finding("runtime", "missing", text or "the runtime library does not load", _mend_build())


def _compiler() -> Finding:
    library = _PACKAGE / "lib" / "libbaton.so"
    if not library.is_file():
        return Finding("compiler", "missing", f"there is no {library}", _mend_build())
    good, text = _child("from baton.driver.compiler import machine_facts as f; print(', '.join(f'{k} {v}' for k, v in f().items()))")
    if good:
        return Finding("compiler", "ok", text)
    mend = "apt-get install libllvm19" if "libLLVM" in text else _mend_build()
    return Finding("compiler", "missing", text or "the compiler library does not load", mend)


def _mend_build() -> str:
    checkout = (_PACKAGE.parent.parent / "dev").is_file()
    return "./dev build" if checkout else "python -m pip install --force-reinstall baton-compiler"


def _processor() -> Finding:
    info = _read("/proc/cpuinfo")
    fields = dict(line.split(":", 1) for line in info.split("\n\n")[0].splitlines() if ":" in line)
    fields = {name.strip(): value.strip() for name, value in fields.items()}
    flags = set((fields.get("flags") or fields.get("Features") or "").split())
    wanted = ("avx2", "fma", "avx512f", "avx512_vnni", "avx512_bf16", "amx_tile", "amx_bf16", "asimd", "sve")
    have = [flag for flag in wanted if flag in flags]
    text = f"{fields.get('model name', platform.machine())}: {' '.join(have) or 'no vector extension that Baton knows'}"
    return Finding("processor", "ok" if have else "note", text)


def cpu_quota() -> float | None:
    """Processors' worth of time that the control group allows, or None."""
    text = _read("/sys/fs/cgroup/cpu.max").split()
    if len(text) == 2 and text[0].isdecimal() and int(text[1]):
        return int(text[0]) / int(text[1])
    quota, period = (
        _read("/sys/fs/cgroup/cpu/cpu.cfs_quota_us").strip(),
        _read("/sys/fs/cgroup/cpu/cpu.cfs_period_us").strip(),
    )
    if quota.isdecimal() and period.isdecimal() and int(period):
        return int(quota) / int(period)
    return None


def _threads() -> Finding:
    usable, quota = len(os.sched_getaffinity(0)), cpu_quota()
    text = f"{usable} processors for this process"
    value = os.environ.get("BATON_NUM_THREADS")
    if value is not None:
        if not value.isdecimal() or int(value) < 1:
            return Finding("threads", "missing", f"BATON_NUM_THREADS is `{value}`, which is not a number", "unset BATON_NUM_THREADS")
        text += f", BATON_NUM_THREADS={value}"
        if int(value) > usable:
            return Finding("threads", "note", text, f"more threads than processors are slower: BATON_NUM_THREADS={usable}")
    if quota is not None and quota < usable:
        mend = f"BATON_NUM_THREADS={max(1, int(quota))}"
        return Finding("threads", "note", f"{text}, but the control group allows the time of {quota:g}", mend)
    return Finding("threads", "ok", text)


def _memory() -> Finding:
    lines = dict(line.split(":", 1) for line in _read("/proc/meminfo").splitlines() if ":" in line)
    try:
        total, free = (int(lines[name].split()[0]) * 1024 / 1e9 for name in ("MemTotal", "MemAvailable"))
    except (KeyError, ValueError):
        return Finding("memory", "note", "cannot be read from /proc/meminfo")
    state = "ok" if free >= 1 else "note"
    return Finding(
        "memory",
        state,
        f"{free:.1f} of {total:.1f} GB free",
        "" if state == "ok" else "large models need 1 GB and more",
    )


def _cache() -> Finding:
    base, own = os.environ.get("XDG_CACHE_HOME", ""), os.environ.get("BATON_CACHE_DIR")
    path = Path(own) if own else (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "baton"
    place = next(parent for parent in (path, *path.parents) if parent.exists())
    if not place.is_dir() or not os.access(place, os.W_OK):
        mend = "set BATON_CACHE_DIR to a directory that you can write to"
        return Finding("cache", "note", f"{path} cannot be written to; nothing is kept between runs", mend)
    free = shutil.disk_usage(place).free / 1e9
    return Finding("cache", "ok" if free > 1 else "note", f"{path}, {free:.1f} GB free", "" if free > 1 else "make room")


def _linker() -> Finding:
    good, text = _child("from baton.driver.compiler import machine_facts; print(machine_facts().get('linker', ''))")
    if good and "lld" in text:
        return Finding("linker", "ok", text)
    found = next(filter(None, map(shutil.which, ("ld.lld-19", "ld.lld", "cc", "gcc", "clang", "ld"))), None)
    if found:
        return Finding("linker", "ok", found)
    return Finding("linker", "note", "none found; `baton compile -o model.so` needs one", "apt-get install lld-19")


def _devices(kind: str) -> tuple[bool, str]:
    """The devices there are. Drivers have crashed when they are loaded, so this too is tried in a separate process."""
    return _child(
        f"import baton; from baton._ffi import get_global_func as f; d = baton.{kind}(0); d.exist;"
        f"print(', '.join(f'{{baton.{kind}(i)!r}} {{baton.{kind}(i).device_name}}' for i in range(f('{kind}.NumDevices')()))"
        f" or f('{kind}.WhyNone')())"
    )


def _cuda() -> Finding:
    """Kernels are checked by NVIDIA's assembler and an interpreter of PTX, the driver's calls by a stand-in."""
    good, text = _devices("cuda")
    never = "Baton's code for CUDA has never met hardware"
    if good and text.startswith("cuda("):
        return Finding("cuda", "ok", f"{text}; {never}: compare results with those of cpu")
    why, _, mend = text.partition("; ")
    return Finding("cuda", "note", f"{why or 'not built'} ({never})", mend if "install" in mend else _mend_build())


def _opencl() -> Finding:
    good, text = _devices("opencl")
    if good and text.startswith("opencl("):
        return Finding("opencl", "ok", text)
    why, _, mend = text.partition("; ")
    return Finding("opencl", "note", why or "not built", mend[mend.find("apt-get") :] if "apt-get" in mend else _mend_build())


def _package(name: str, why: str, needed: bool = False):
    def check() -> Finding:
        from importlib import metadata

        try:
            return Finding(name, "ok", f"{metadata.version(name)}, for {why}")
        except metadata.PackageNotFoundError:
            state = "missing" if needed else "note"
            return Finding(name, state, f"not installed; {why}", f"python -m pip install {name}")

    return check


CHECKS = (
    _python,
    _runtime,
    _compiler,
    _linker,
    _processor,
    _threads,
    _opencl,
    _cuda,
    _memory,
    _cache,
    _package("numpy", "arrays in and out", needed=True),
    _package("onnx", "the demo's model file and ONNX's test suite"),
    _package("onnxruntime", "comparisons: baton bench --vs onnxruntime"),
    _package("ml_dtypes", "bfloat16, float8 and int4 in NumPy"),
)

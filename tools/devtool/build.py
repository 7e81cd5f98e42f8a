# SPDX-License-Identifier: Apache-2.0
"""Configures with CMake and builds with Ninja. Plain builds live in build/, each set of sanitizers in its own folder."""

import os
import re
import shutil
import subprocess

from .machine import jobs, venv_python
from .step import ROOT, StepFailed, as_typed, digest, probe, program, run, say, shown, stamp, stamped

SANITIZERS = {"address": "asan", "undefined": "ubsan", "thread": "tsan", "leak": "lsan"}


def build_dir(sanitize=""):
    """`build`, or for example `build-address-undefined`."""
    return ROOT / ("build-" + sanitize.replace(",", "-") if sanitize else "build")


def check_sanitizers(sanitize):
    """Raises StepFailed for names that g++ does not have or that exclude each other."""
    names = [n for n in sanitize.split(",") if n]
    wrong = [n for n in names if n not in SANITIZERS]
    if wrong or {"address", "thread"} <= set(names):
        raise StepFailed(
            f"build: cannot use --sanitize {sanitize}",
            None,
            f"a comma-separated choice of {', '.join(SANITIZERS)}; `thread` goes with neither address nor leak",
        )


def ccache_environment():
    """Makes compilations in different checkouts share ccache's entries."""
    return {
        "CCACHE_BASEDIR": str(ROOT),
        "CCACHE_NOHASHDIR": "1",
        "CCACHE_SLOPPINESS": "time_macros,include_file_mtime,include_file_ctime,pch_defines",
        "NINJA_STATUS": "[%f/%t %es] ",
    }


def configure(folder, sanitize, runtime_only, separate=False):
    """Step: CMake, once for each set of options. Ninja runs it again by itself when files come or go."""
    options = [
        f"-DPython_EXECUTABLE={venv_python()}",
        "-DCMAKE_BUILD_TYPE=Release",
        f"-DBATON_SANITIZE={sanitize}",
        f"-DBATON_COMPILER={'OFF' if runtime_only else 'ON'}",
        f"-DBATON_UNITY={'OFF' if separate else 'ON'}",
    ]
    mark, value = folder / ".dev-configured", digest(*options, str(ROOT))
    if (folder / "build.ninja").exists() and stamped(mark, value):
        say("configure", f"{shown(folder)} is configured")
        return
    # A cache from another place, compiler or Python misleads find_package; nothing in it is worth keeping.
    (folder / "CMakeCache.txt").unlink(missing_ok=True)
    shutil.rmtree(folder / "CMakeFiles", ignore_errors=True)
    run(
        "configure",
        f"cmake prepares {shown(folder)}",
        [program("cmake") or "cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", *options],
        mend="the first `CMake Error` above says what is missing; `./dev doctor` lists what the machine has",
    )
    stamp(mark, value)


def build(sanitize="", runtime_only=False, targets=(), separate=False):
    """Steps: configure and build. targets: Ninja targets, all by default; those that do not exist yet are left out. separate: each
    file is compiled on its own.

    Returns the build's folder."""
    folder = build_dir(sanitize)
    configure(folder, sanitize, runtime_only, separate)
    ninja = program("ninja") or "ninja"
    known = probe([ninja, "-C", folder, "-t", "targets", "all"]) or ""
    chosen = [t for t in targets if re.search(rf"(^|/){re.escape(t)}: ", known, re.MULTILINE)]
    run(
        "build",
        f"ninja builds {' '.join(chosen) or 'everything'} in {shown(folder)} with {jobs()} jobs",
        [ninja, "-C", folder, f"-j{jobs()}", *chosen],
        env=ccache_environment(),
        quiet=False,
        mend="the first `error:` above is the cause; out of memory (`Killed`): repeat with BATON_JOBS=1",
    )
    if sanitize:
        mirror_package(folder)
    return folder


def mirror_package(folder):
    """Makes `folder`/baton an importable package: its own libraries beside links to the Python files of the tree."""
    package = folder / "baton"
    package.mkdir(exist_ok=True)
    for entry in (ROOT / "python" / "baton").iterdir():
        if entry.name in ("lib", "__pycache__") or entry.name.startswith("_core"):
            continue
        link = package / entry.name
        if not link.is_symlink():
            link.symlink_to(os.path.relpath(entry, package))


def python_environment(sanitize=""):
    """Variables with which the virtual environment's Python imports the tree's `baton`, sanitized or not."""
    if not sanitize:
        return {"PYTHONPATH": str(ROOT / "python")}
    preload = [probe(["g++", f"-print-file-name=lib{SANITIZERS[n]}.so"]) for n in sanitize.split(",") if n]
    return {
        "PYTHONPATH": str(build_dir(sanitize)),
        "LD_PRELOAD": " ".join(p for p in preload if p),
        # The compiler's library comes late, and its thread-local variables with it.
        "GLIBC_TUNABLES": "glibc.rtld.optional_static_tls=65536",
        # Python keeps objects for good and its allocator hides overruns from the sanitizer.
        "PYTHONMALLOC": "malloc",
        "ASAN_OPTIONS": "detect_leaks=0",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }


def run_tests_of(folder, filters=()):
    """Runs the C++ tests that `folder` has. Returns the names of the programs that failed and the commands to repeat them."""
    failed = []
    for name in ("baton_runtime_tests", "baton_tests", "baton_fault_tests"):
        program = folder / name
        if not program.exists():
            continue
        argv = [str(program), "--no-version", *filters]
        say("c++ tests", f"runs {shown(program)}")
        code = subprocess.run(argv, cwd=ROOT, stdin=subprocess.DEVNULL, check=False).returncode
        if code != 0:
            failed.append((f"{name} ended with exit code {code}", as_typed(argv)))
    return failed

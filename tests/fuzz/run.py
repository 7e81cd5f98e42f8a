# SPDX-License-Identifier: Apache-2.0
"""Runs many mutants under AddressSanitizer and UndefinedBehaviorSanitizer.

    python tests/fuzz/run.py                     # 20,000 ONNX files and 20,000 Relay texts
    python tests/fuzz/run.py --only onnx -n 2000
    python tests/fuzz/run.py --first 1234 -n 1   # one mutant again

Builds into build-fuzz. A mutant that kills the process or hangs is kept in build-fuzz/failures, and the run goes on
behind it. Exit code 1 if there was any.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build-fuzz"
KINDS = {"onnx": "fuzz: onnx files", "relay": "fuzz: relay texts"}
CHUNK = 500


def build():
    if not (BUILD / "build.ninja").exists():
        configure = ["cmake", "-S", ROOT, "-B", BUILD, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release"]
        configure += ["-DBATON_SANITIZE=address,undefined", "-DBATON_PYTHON=OFF"]
        subprocess.run(configure, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["ninja", "-C", BUILD, "baton_tests"], check=True, stdout=subprocess.DEVNULL)


def read_text(path):
    return path.read_text(errors="replace") if path.exists() else ""


def run_chunk(kind, first, count, seconds):
    """Runs mutants first, ..., first + count - 1. -> (done, report or None)"""
    keep = BUILD / f"current.{kind}"
    progress = BUILD / f"current.{kind}.index"
    progress.unlink(missing_ok=True)
    env = dict(os.environ, BATON_FUZZ_FIRST=str(first), BATON_FUZZ_COUNT=str(count), BATON_FUZZ_KEEP=str(keep))
    # A failed allocation is an error to report, not a reason to stop.
    env["ASAN_OPTIONS"] = "allocator_may_return_null=1:max_allocation_size_mb=2048:detect_leaks=1:abort_on_error=0"
    env["UBSAN_OPTIONS"] = "print_stacktrace=1"
    command = [BUILD / "baton_tests", f"--test-case={KINDS[kind]}"]
    try:
        done = subprocess.run(command, env=env, capture_output=True, text=True, errors="replace", timeout=seconds * count)
    except subprocess.TimeoutExpired:
        index = int(read_text(progress) or first)
        return index - first + 1, f"hang: mutant {index} of {kind}"
    if done.returncode == 0:
        return count, None
    index = int(read_text(progress) or first)
    finished = "[doctest] Status" in done.stdout
    text = (done.stdout + done.stderr)[-6000:]
    return (count if finished else index - first + 1), f"mutant {index} of {kind}:\n{text}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", "--count", type=int, default=20000, help="mutants of each kind (default: %(default)s)")
    parser.add_argument("--first", type=int, default=0, help="number of the first mutant (default: %(default)s)")
    parser.add_argument("--only", choices=sorted(KINDS), help="one kind alone")
    parser.add_argument("--seconds", type=float, default=2, help="longest mean time of a mutant (default: %(default)s)")
    args = parser.parse_args()
    build()
    failures = BUILD / "failures"
    failures.mkdir(exist_ok=True)
    bad = 0
    for kind in [args.only] if args.only else sorted(KINDS):
        at, end = args.first, args.first + args.count
        while at < end:
            done, report = run_chunk(kind, at, min(CHUNK, end - at), args.seconds)
            at += max(done, 1)
            if report:
                bad += 1
                name = failures / f"{kind}-{at - 1}"
                name.with_suffix(".txt").write_text(report)
                if (BUILD / f"current.{kind}").exists():
                    shutil.copy(BUILD / f"current.{kind}", name.with_suffix(f".{kind}"))
                print(report[-2000:], f"\nkept: {name}.*", flush=True)
            if sys.stderr.isatty():
                print(f"\r{kind}: {at - args.first} of {args.count}, {bad} bad", end="", file=sys.stderr, flush=True)
        print(f"{kind}: {args.count} mutants, {bad} bad so far")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

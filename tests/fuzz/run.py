# SPDX-License-Identifier: Apache-2.0
"""Runs many mutants under AddressSanitizer and UndefinedBehaviorSanitizer.

    ./dev fuzz                                   # 20,000 of each kind
    ./dev fuzz --only onnx -n 2000
    ./dev fuzz --only onnx --first 12000 -n 8000 # a range: mutant K is the same on every machine
    ./dev fuzz --only onnx --first 1234 -n 1     # one mutant again

Builds into build-fuzz. A mutant that kills the process, hangs, leaks or takes too much memory is kept in
build-fuzz/failures with the report and the command that repeats it, and the run goes on behind it. Exit code 1 if there
was any.
"""

import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build-fuzz"
KINDS = {
    "onnx": "fuzz: onnx files",
    "relay": "fuzz: relay texts",
    "json": "fuzz: json texts",
    "graph": "fuzz: saved graphs",
    "pipeline": "fuzz: pipelines",
    "target": "fuzz: targets",
    "params": "fuzz: parameter files",
    "artifact": "fuzz: metadata of artifacts",
}
CHUNK = 500
# A failed allocation is an error to report, not a reason to stop; what takes more than this is a defect. Freed memory is
# held back for a while to find late uses; little of it, since it counts as memory taken.
MEMORY_MB = 2048
ASAN = f"detect_leaks=1:abort_on_error=0:max_allocation_size_mb=1024:hard_rss_limit_mb={MEMORY_MB}:quarantine_size_mb=64"


def build():
    if not (BUILD / "build.ninja").exists():
        configure = ["cmake", "-S", ROOT, "-B", BUILD, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release"]
        configure += ["-DBATON_SANITIZE=address,undefined", "-DBATON_PYTHON=OFF"]
        subprocess.run(configure, check=True, stdout=subprocess.DEVNULL)
    done = subprocess.run(["ninja", "-C", BUILD, "-j2", "baton_tests"], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"fuzz: the build failed:\n{done.stdout[-3000:]}\nrepeat: ninja -C {BUILD} baton_tests")


def read_text(path):
    return path.read_text(errors="replace") if path.exists() else ""


class Chunk:
    """Mutants first, ..., first + count - 1 of one kind, in processes of their own until all have run."""

    def __init__(self, kind, first, count, seconds):
        self.kind, self.first, self.count, self.seconds = kind, first, count, seconds
        self.counts = collections.Counter()
        self.failures = []

    def run(self):
        at, end = self.first, self.first + self.count
        while at < end:
            at += self.step(at, end - at)
        return self

    def step(self, first, count):
        """Runs one process. -> how many mutants are done with it"""
        keep = BUILD / f"current.{self.kind}.{threading.get_ident()}"
        progress = keep.with_name(keep.name + ".index")
        progress.unlink(missing_ok=True)
        env = dict(os.environ, BATON_FUZZ_FIRST=str(first), BATON_FUZZ_COUNT=str(count), BATON_FUZZ_KEEP=str(keep))
        env.update(BATON_FUZZ_SECONDS=str(self.seconds), ASAN_OPTIONS=ASAN, UBSAN_OPTIONS="print_stacktrace=1")
        env["BATON_NUM_THREADS"] = "1"
        command = ["nice", "-n", "10", BUILD / "baton_tests", f"--test-case={KINDS[self.kind]}"]
        try:
            run = subprocess.run(command, env=env, capture_output=True, text=True, errors="replace", timeout=60 + 20 * self.seconds * count)
        except subprocess.TimeoutExpired:
            run = None
        output = run.stdout + run.stderr if run else ""
        index = int(read_text(progress) or first)
        summary = re.search(r"fuzz: \w+: from \d+: (\d+) mutants, (\d+) accepted, (\d+) refused, (\d+) wrong", output)
        if run and run.returncode == 0 and summary:
            self.add(summary)
        elif summary:
            # It came to its end: errors that are none of ours, each with its number, or a leak of the whole.
            self.add(summary)
            for wrong in sorted({int(n) for n in re.findall(r"mutant (\d+) of", output)}) or [None]:
                self.fail(wrong if wrong is not None else index, output, None if wrong is not None else (first, count))
        else:
            why = "hang" if run is None or run.returncode == -27 else "memory" if "hard rss limit" in output else "killed"
            self.counts["mutants"] += index - first + 1
            self.fail(index, f"{why}\n{output}")
            kept = BUILD / "failures" / f"{self.kind}-{index}.bin"
            if keep.exists():
                shutil.copy(keep, kept)
            count = index - first + 1
        for file in (keep, progress):
            file.unlink(missing_ok=True)
        return count

    def add(self, summary):
        for name, number in zip(("mutants", "accepted", "refused", "wrong"), summary.groups(), strict=True):
            self.counts[name] += int(number)

    def fail(self, index, text, span=None):
        first, count = span or (index, 1)
        again = f"./dev fuzz --only {self.kind} --first {first} -n {count}"
        (BUILD / "failures" / f"{self.kind}-{index}.txt").write_text(f"{again}\n\n{text}")
        self.failures.append((index, again, text))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", "--count", type=int, default=20000, help="mutants of each kind (default: %(default)s)")
    parser.add_argument("--first", type=int, default=0, help="number of the first mutant (default: %(default)s)")
    parser.add_argument("--only", choices=sorted(KINDS), action="append", help="this kind alone; may come again")
    parser.add_argument("--seconds", type=int, default=10, help="most processor time of one mutant (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=2, choices=(1, 2), help="processes at a time (default: %(default)s)")
    parser.add_argument("--no-build", action="store_true", help="run what stands in build-fuzz")
    args = parser.parse_args()
    if args.count < 1 or args.first < 0 or args.seconds < 1:
        parser.error("-n and --seconds are 1 or more, --first is 0 or more")
    if not args.no_build:
        build()
    (BUILD / "failures").mkdir(exist_ok=True)
    bad = 0
    for kind in args.only or KINDS:
        chunks = [Chunk(kind, at, min(CHUNK, args.first + args.count - at), args.seconds) for at in range(args.first, args.first + args.count, CHUNK)]
        counts, failures = collections.Counter(), []
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            for chunk in pool.map(Chunk.run, chunks):
                counts += chunk.counts
                failures += chunk.failures
                for index, again, text in chunk.failures:
                    print(f"{kind} mutant {index}:\n{text[-2500:]}\nrepeat: {again}\n", flush=True)
                if sys.stderr.isatty():
                    print(f"\r{kind}: {counts['mutants']} of {args.count}, {len(failures)} bad", end="", file=sys.stderr)
        if sys.stderr.isatty():
            print(file=sys.stderr)
        print(
            f"{kind}: mutants {args.first} to {args.first + args.count - 1}: {counts['mutants']} run, "
            f"{counts['accepted']} accepted, {counts['refused']} refused with an error, {len(failures)} bad",
            flush=True,
        )
        for index, again, _ in failures:
            print(f"  bad: {kind} mutant {index}; repeat: {again}")
        bad += len(failures)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""Runs many mutants under AddressSanitizer and UndefinedBehaviorSanitizer.

    ./dev fuzz                                   # 20,000 of each kind
    ./dev fuzz --only onnx -n 2000
    ./dev fuzz --only onnx --first 12000 -n 8000 # a range: mutant K is the same on every machine
    ./dev fuzz --only onnx --first 1234 -n 1     # one mutant again
    ./dev fuzz rpc                               # 1,000,000 of each parser of remote sessions, and 2 minutes at most

Builds into build-fuzz (build-fuzz-rpc). A mutant that kills the process, hangs, leaks or takes too much memory is kept in
`failures` there with the report and the command that repeats it, and the run goes on behind it. Exit code 1 if there
was any.
"""

import argparse
import collections
import concurrent.futures
import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading
import time

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


@dataclasses.dataclass(frozen=True)
class Suite:
    """Kinds of mutants, and how they are built and run."""

    folder: pathlib.Path
    program: str
    kinds: dict  # kind -> the test of `program`; None: tests/fuzz/rpc.py has it
    chunk: int  # mutants of a process
    count: int  # of a kind, unless `-n` says it
    name: str = ""
    options: tuple = ()  # of CMake
    minutes: float = 0.0  # of a kind at most; 0: any

    def command(self, kind, first, count):
        if self.kinds[kind] is None:
            return [sys.executable, ROOT / "tests" / "fuzz" / "rpc.py", kind]
        if self.kinds[kind] == MICRO:
            return [self.folder / "micro_fuzz", str(count), str(first), *(["serial"] if kind == "micro-lines" else [])]
        return [self.folder / self.program, f"--test-case={self.kinds[kind]}"]


MICRO = "micro_fuzz"
RPC_KINDS = {
    "headers": "rpc fuzz: headers",
    "values": "rpc fuzz: values",
    "greetings": "rpc fuzz: greetings",
    "sessions": "rpc fuzz: sessions of a server",
    "modules": "rpc fuzz: modules on upload",
    "clients": "rpc fuzz: sessions of a client",
    "cuts": "rpc fuzz: connections that are cut",
    "tokens": "rpc fuzz: identities of tokens",
    "keys": "rpc fuzz: files of keys and policies",
    "signatures": "rpc fuzz: public keys and signatures",
    "addresses": "rpc fuzz: addresses",
    "doors": "rpc fuzz: the lease of a door",
    "lines": "rpc fuzz: serial lines",
    "messages": "rpc fuzz: messages on a connection",
    "handshakes": "rpc fuzz: handshakes",
    "micro": MICRO,
    "micro-lines": MICRO,
    "tracker-messages": None,
    "tracker": None,
    "records": None,
    "journal": None,
    "proxy": None,
    "proxy-addresses": None,
    "transport": None,
}


def suite_of(name):
    if not name:
        return Suite(BUILD, "baton_tests", KINDS, CHUNK, 20_000)
    options = ("-DBATON_COMPILER=OFF",)
    # Inputs are small: most of a short run would be the start of its process.
    return Suite(ROOT / "build-fuzz-rpc", "baton_runtime_tests", RPC_KINDS, 25_000, 1_000_000, "rpc", options, 2.0)


# A failed allocation is an error to report, not a reason to stop; what takes more than this is a defect. Freed memory is
# held back for a while to find late uses; little of it, since it counts as memory taken.
MEMORY_MB = 2048
ASAN = f"detect_leaks=1:abort_on_error=0:max_allocation_size_mb=1024:hard_rss_limit_mb={MEMORY_MB}:quarantine_size_mb=64"


def build(suite):
    if not (suite.folder / "build.ninja").exists():
        configure = ["cmake", "-S", ROOT, "-B", suite.folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", *suite.options]
        configure += ["-DBATON_SANITIZE=address,undefined", "-DBATON_PYTHON=OFF"]
        subprocess.run(configure, check=True, stdout=subprocess.DEVNULL)
    done = subprocess.run(["ninja", "-C", suite.folder, "-j2", suite.program], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"fuzz: the build failed:\n{done.stdout[-3000:]}\nrepeat: ninja -C {suite.folder} {suite.program}")
    if MICRO in suite.kinds.values():
        micro, tests = ROOT / "src" / "micro", ROOT / "tests" / "rpc"
        sources = [tests / "micro_fuzz.c", tests / "micro_functions.c", *(f for f in sorted(micro.glob("*.c")) if f.name != "host.c")]
        flags = ["-std=gnu11", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-DBATON_MICRO_MALLOC"]
        subprocess.run(["gcc", *flags, f"-I{micro}", f"-I{ROOT / 'include'}", *sources, "-o", suite.folder / "micro_fuzz"], check=True)


def read_text(path):
    return path.read_text(errors="replace") if path.exists() else ""


class Chunk:
    """Mutants first, ..., first + count - 1 of one kind, in processes of their own until all have run."""

    def __init__(self, suite, kind, first, count, seconds, end):
        self.suite, self.kind, self.first, self.count, self.seconds, self.end = suite, kind, first, count, seconds, end
        self.counts = collections.Counter()
        self.failures = []

    def run(self):
        at, end = self.first, self.first + self.count
        while at < end and time.monotonic() < self.end:
            at += self.step(at, end - at)
        return self

    def step(self, first, count):
        """Runs one process. -> how many mutants are done with it"""
        keep = self.suite.folder / f"current.{self.kind}.{threading.get_ident()}"
        progress = keep.with_name(keep.name + ".index")
        progress.unlink(missing_ok=True)
        env = dict(os.environ, BATON_FUZZ_FIRST=str(first), BATON_FUZZ_COUNT=str(count), BATON_FUZZ_KEEP=str(keep))
        env.update(BATON_FUZZ_SECONDS=str(self.seconds), ASAN_OPTIONS=ASAN, UBSAN_OPTIONS="print_stacktrace=1")
        env["BATON_NUM_THREADS"] = "1"
        command = ["nice", "-n", "10", *self.suite.command(self.kind, first, count)]
        try:
            run = subprocess.run(command, env=env, capture_output=True, text=True, errors="replace", timeout=min(60 + 20 * self.seconds * count, 1800))
        except subprocess.TimeoutExpired:
            run = None
        output = run.stdout + run.stderr if run else ""
        index = int(read_text(progress) or first)
        summary = re.search(r"fuzz: [\w-]+: from \d+: (\d+) mutants, (\d+) accepted, (\d+) refused, (\d+) wrong", output)
        if run and run.returncode == 0 and summary:
            self.add(summary)
        elif summary:
            # It came to its end: errors that are none of ours, each with its number, or a leak of the whole.
            self.add(summary)
            for wrong in sorted({int(n) for n in re.findall(r"mutant (\d+) of", output)}) or [None]:
                self.fail(wrong if wrong is not None else index, output, None if wrong is not None else (first, count))
        else:
            why = "hang" if run is None or run.returncode == -27 else "memory" if "hard rss limit" in output else "killed"
            if not read_text(progress):
                index = first + count - 1  # it does not say where it was: the whole is to repeat
            self.counts["mutants"] += index - first + 1
            self.fail(index, f"{why}\n{output}", None if read_text(progress) else (first, count))
            kept = self.suite.folder / "failures" / f"{self.kind}-{index}.bin"
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
        again = f"./dev fuzz {self.suite.name and self.suite.name + ' '}--only {self.kind} --first {first} -n {count}"
        (self.suite.folder / "failures" / f"{self.kind}-{index}.txt").write_text(f"{again}\n\n{text}")
        self.failures.append((index, again, text))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", nargs="?", choices=("rpc",), help="the parsers of remote sessions, in place of those of files and texts")
    parser.add_argument("-n", "--count", type=int, help="mutants of each kind (default: 20,000; 1,000,000 of rpc)")
    parser.add_argument("--first", type=int, default=0, help="number of the first mutant (default: %(default)s)")
    parser.add_argument("--only", choices=sorted({*KINDS, *RPC_KINDS}), action="append", help="this kind alone; may come again")
    parser.add_argument("--seconds", type=int, default=10, help="most processor time of one mutant (default: %(default)s)")
    parser.add_argument("--minutes", type=float, help="most time of a kind; 0: any (default: any; 2 of rpc)")
    parser.add_argument("--jobs", type=int, default=2, choices=(1, 2), help="processes at a time (default: %(default)s)")
    parser.add_argument("--no-build", action="store_true", help="run what stands in the folder of the build")
    args = parser.parse_args()
    suite = suite_of(args.suite)
    total = suite.count if args.count is None else args.count
    minutes = suite.minutes if args.minutes is None else args.minutes
    if total < 1 or args.first < 0 or args.seconds < 1 or minutes < 0:
        parser.error("-n and --seconds are 1 or more, --first and --minutes 0 or more")
    if wrong := [kind for kind in args.only or () if kind not in suite.kinds]:
        parser.error(f"--only {wrong[0]}: known here are {', '.join(suite.kinds)}")
    if not args.no_build:
        build(suite)
    (suite.folder / "failures").mkdir(exist_ok=True)
    bad = 0
    for kind in args.only or suite.kinds:
        end = time.monotonic() + 60 * minutes if minutes else float("inf")
        last = args.first + total
        chunks = [Chunk(suite, kind, at, min(suite.chunk, last - at), args.seconds, end) for at in range(args.first, last, suite.chunk)]
        counts, failures = collections.Counter(), []
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            for chunk in pool.map(Chunk.run, chunks):
                counts += chunk.counts
                failures += chunk.failures
                for index, again, text in chunk.failures:
                    print(f"{kind} mutant {index}:\n{text[-2500:]}\nrepeat: {again}\n", flush=True)
                if sys.stderr.isatty():
                    print(f"\r{kind}: {counts['mutants']} of {total}, {len(failures)} bad", end="", file=sys.stderr)
        if sys.stderr.isatty():
            print(file=sys.stderr)
        print(
            f"{kind}: mutants {args.first} to {last - 1}: {counts['mutants']} run, "
            f"{counts['accepted']} accepted, {counts['refused']} refused with an error, {len(failures)} bad",
            flush=True,
        )
        for index, again, _ in failures:
            print(f"  bad: {kind} mutant {index}; repeat: {again}")
        bad += len(failures)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

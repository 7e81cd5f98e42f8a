# SPDX-License-Identifier: Apache-2.0
"""Measures the machine's float32 peak: fused multiply-adds in registers, compiled here by the local C compiler."""

from __future__ import annotations

import argparse
import ctypes
import functools
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

_SOURCE = r"""
#if defined(__AVX512F__)
#define WIDTH 64
#elif defined(__AVX__)
#define WIDTH 32
#else
#define WIDTH 16
#endif
typedef float vec __attribute__((vector_size(WIDTH)));
#if defined(__x86_64__)
#define KEEP(v) __asm__ volatile("" : "+v"(v))
#elif defined(__aarch64__)
#define KEEP(v) __asm__ volatile("" : "+w"(v))
#else
#error "the peak is measured on x86-64 and AArch64 only"
#endif
#define EACH(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
/* Twelve chains cover latency 4 times two units and more. Returns the floating-point operations done. */
double fma_chains(long rounds) {
  vec x = {0}, y = {0};
  x += 0.999f; y += 0.001f;
#define START(i) vec a##i = x * (float)i;
  EACH(START)
  for (long r = 0; r < rounds; ++r) {
#define STEP(i) a##i = a##i * x + y; KEEP(a##i);
    EACH(STEP)
  }
  return 2.0 * 12 * (WIDTH / 4) * (double)rounds;
}
"""


@functools.cache
def _library() -> ctypes.CDLL:
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang", "clang-19"))), None)
    if compiler is None:
        raise RuntimeError("no C compiler found to measure the peak with; mend with: apt-get install gcc")
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "peak.c"), Path(folder, "peak.so")
        source.write_text(_SOURCE)
        command = [
            compiler,
            "-O2",
            "-march=native",
            "-ffp-contract=fast",
            "-shared",
            "-fPIC",
            str(source),
            "-o",
            str(library),
        ]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"the peak's loop does not compile: {done.stderr.strip()[:300]}")
        loaded = ctypes.CDLL(str(library))  # stays mapped when the folder goes
    loaded.fma_chains.restype, loaded.fma_chains.argtypes = ctypes.c_double, [ctypes.c_long]
    return loaded


def measure_peak(threads: int, tries: int = 7, seconds: float = 0.05) -> float:
    """GFLOP/s of `threads` threads together: the best of `tries` tries of about `seconds` each."""
    run = _library().fma_chains
    start = time.perf_counter()
    run(200_000)
    rounds = max(1, int(200_000 * seconds / (time.perf_counter() - start)))
    best = 0.0
    for _ in range(tries):
        barrier, done = threading.Barrier(threads + 1), []

        def work(barrier=barrier, done=done):
            barrier.wait()
            begin = time.perf_counter()
            operations = run(rounds)  # ctypes lets go of the interpreter's lock
            done.append((begin, time.perf_counter(), operations))

        workers = [threading.Thread(target=work) for _ in range(threads)]
        for worker in workers:
            worker.start()
        barrier.wait()
        for worker in workers:
            worker.join()
        elapsed = max(end for _, end, _ in done) - min(begin for begin, _, _ in done)
        best = max(best, sum(operations for *_, operations in done) / elapsed / 1e9)
    return best


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, nargs="*", default=[1, len(os.sched_getaffinity(0))])
    try:
        for threads in sorted(set(parser.parse_args().threads)):
            print(f"{threads} thread{'s' if threads > 1 else ''}: {measure_peak(threads):.0f} GFLOP/s float32")
    except RuntimeError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""Whether the comparison of secrets tells by its time where they differ: Welch's t between a secret that is equal, and those that differ in
the first byte, in the middle, in the last (the bar: below 4.5).

`python bench/rpc_constant_time.py` measures `SameSecret` in place in libbaton_rpc.so, and `hmac.compare_digest` with what a proxy
compares; of that the equal secret is left out, since True takes Python another time than False, which is the answer anyway. The classes alternate at random, the clock is the processor's counter, and t is taken at several crops of the slowest
measurements, as dudect does (Reparaz, Balasch, Verbauwhede: Dude, is my code constant time?, 2017). A comparison that stops at the first
difference is measured too: where its t is small the clock sees nothing. `--check` makes a miss exit code 1. It needs a C compiler, and a
library that is not stripped.
"""

from __future__ import annotations

import argparse
import ctypes
import hmac
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))

BAR = 4.5
SYMBOL = "_ZN5baton3rpc10SameSecretEPKvS2_m"
CLASSES = ("equal", "first byte", "middle", "last byte")
CROPS = (1.0, 0.999, 0.99, 0.97, 0.95, 0.9, 0.8, 0.7, 0.5)
CLOCK = r"""
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
typedef _Bool (*Same)(const void*, const void*, size_t);
static uint64_t Now(void) {
#if defined(__x86_64__)
  uint32_t low, high;
  __asm__ volatile("lfence\n\trdtsc\n\tlfence" : "=a"(low), "=d"(high)::"memory");
  return (uint64_t)high << 32 | low;
#elif defined(__aarch64__)
  uint64_t now;
  __asm__ volatile("isb\n\tmrs %0, cntvct_el0\n\tisb" : "=r"(now)::"memory");
  return now;
#else
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
#endif
}
/* Compares `given`, the secret of each measurement's class in one place, with `secret`. */
void Measure(Same same, const uint8_t* secret, const uint8_t* given_by_class, const uint8_t* classes, double* took, size_t count,
             size_t size) {
  uint8_t given[64];
  volatile _Bool out;
  for (size_t i = 0; i < count; ++i) {
    memcpy(given, given_by_class + classes[i] * size, size);
    const uint64_t begin = Now();
    out = same(secret, given, size);
    took[i] = (double)(Now() - begin);
  }
  (void)out;
}
_Bool StopsEarly(const void* a, const void* b, size_t size) {
  const volatile uint8_t *one = a, *other = b;
  for (size_t i = 0; i < size; ++i)
    if (one[i] != other[i]) return 0;
  return 1;
}
"""


def variants(secret: bytes) -> list[bytearray]:
    """A secret of each class."""
    given = [bytearray(secret) for _ in CLASSES]
    for one, place in zip(given[1:], (0, len(secret) // 2, len(secret) - 1), strict=True):
        one[place] ^= 1
    return given


def welch(a: np.ndarray, b: np.ndarray) -> float:
    spread = a.var(ddof=1) / len(a) + b.var(ddof=1) / len(b)
    return abs(a.mean() - b.mean()) / spread**0.5 if spread > 0 else 0.0


def largest_t(classes: np.ndarray, took: np.ndarray, first: int = 0) -> tuple[float, str]:
    """Over all pairs of classes from `first` on and all crops, and what it is of."""
    found = (0.0, "none")
    for crop in CROPS:
        kept = took <= np.quantile(took, crop)
        for i in range(first, len(CLASSES)):
            for k in range(first, i):
                a, b = took[kept & (classes == k)], took[kept & (classes == i)]
                if len(a) > 1000 and len(b) > 1000:
                    found = max(found, (welch(a, b), f"{CLASSES[k]} and {CLASSES[i]}, {crop:.1%} of the measurements"))
    return found


def address_of(library: Path) -> int:
    """Where SameSecret is in this process: the library's base and the symbol's place in it."""
    listed = subprocess.run(["nm", str(library)], capture_output=True, text=True, check=True).stdout
    places = [int(line.split()[0], 16) for line in listed.splitlines() if line.endswith(f" {SYMBOL}")]
    if not places:
        raise RuntimeError(f"`{library}` has no symbol {SYMBOL}: it is stripped; mend with: ./dev build")
    ctypes.CDLL(str(library))
    for line in Path("/proc/self/maps").read_text().splitlines():
        if line.endswith(library.name) and line.split()[2] == "00000000":
            return int(line.split("-")[0], 16) + places[0]
    raise RuntimeError(f"`{library}` was not loaded")


def native(same: int, clock: ctypes.CDLL, count: int) -> tuple[float, str]:
    secret = os.urandom(32)
    classes, took = np.random.default_rng(1).integers(0, len(CLASSES), count).astype("uint8"), np.zeros(count)
    pointer = lambda array, kind: array.ctypes.data_as(ctypes.POINTER(kind))  # noqa: E731
    clock.Measure(
        ctypes.c_void_p(same), secret, b"".join(variants(secret)), pointer(classes, ctypes.c_uint8), pointer(took, ctypes.c_double), ctypes.c_size_t(count),
        ctypes.c_size_t(len(secret)),
    )  # fmt: skip
    return largest_t(classes, took)


def of_python(same, secret: bytes, count: int) -> tuple[float, str]:
    given, classes, took, now = variants(secret), np.random.default_rng(2).integers(0, len(CLASSES), count), np.zeros(count), time.perf_counter_ns
    for i, chosen in enumerate(classes.tolist()):
        one = bytes(given[chosen])  # of each class in the same place
        begin = now()
        same(secret, one)
        took[i] = now() - begin
    return largest_t(classes, took, 1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the measurements")
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    from baton.rpc import library, proxy

    compiler = shutil.which("cc")
    if not compiler or not shutil.which("nm"):
        print("error: no C compiler; mend with: apt-get install gcc", file=sys.stderr)
        return 1
    count = 300_000 if args.quick else 3_000_000
    library.function("RuntimeDir")
    with tempfile.TemporaryDirectory() as folder:
        source, built = Path(folder, "clock.c"), Path(folder, "clock.so")
        source.write_text(CLOCK)
        subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", str(built), str(source)], check=True)
        clock = ctypes.CDLL(str(built))
    try:
        same = address_of(Path(library.path("libbaton_rpc.so")).resolve())
    except RuntimeError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    mac = proxy._mac(os.urandom(32), b"join", os.urandom(16), os.urandom(16), b"board")
    early = ctypes.cast(clock.StopsEarly, ctypes.c_void_p).value
    rows = [
        ("SameSecret of libbaton_rpc.so", native(same, clock, count), False),
        ("a loop that stops early", native(early, clock, count), True),
        ("hmac.compare_digest, as proxies call it", of_python(hmac.compare_digest, mac, count // 3), False),
        ("== of Python", of_python(lambda a, b: a == b, mac, count // 3), True),
    ]
    good = True
    for name, (t, of), control in rows:
        holds = (t >= BAR) if control else (t < BAR)
        good = good and holds
        verdict = ("seen, as it must be" if holds else "NOT SEEN: the clock is too coarse") if control else ("holds" if holds else "MISSED")
        print(f"{name}: t = {t:.1f} ({of}): {verdict}")
    return 0 if good or not args.check else 1


if __name__ == "__main__":
    sys.exit(main())

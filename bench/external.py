# SPDX-License-Identifier: Apache-2.0
"""The cost of a call of other people's code in a compiled model: a region of a plug-in in C, and one of `ccompiler`.

    python bench/external.py [--check]

A chain of 200 regions of four floats each, less a chain of one, over 200: once compiled, once loaded from a file, in turns; a figure
is the least of the rounds. Beside them a step of Baton's own (a fusion stopped after each `exp`) and the bare call of the plug-in's `run`, from C,
with the same tensors. The bar (`--check`): 0.3 us a call.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import baton
from baton import relay
from baton.config import include_dir

BAR, CALLS = 0.3, 200

PLUGIN = """
#include <baton/runtime/json_module.h>
#include <time.h>
static int init(const BatonJsonGraph* g, void** s, const char** e) { (void)g, (void)e; *s = NULL; return 0; }
static int run(void* s, DLTensor* const* a, int32_t n, const char** e) {
  const float* x = BatonJsonData(a[0]);
  float* y = BatonJsonData(a[1]);
  int i;
  (void)s, (void)n, (void)e;
  for (i = 0; i < 4; ++i) y[i] = x[i] + 1;
  return 0;
}
static void drop(void* s) { (void)s; }
const BatonJsonPlugin* baton_json_plugin(void) {
  static const BatonJsonPlugin plugin = {sizeof plugin, kBatonJsonPluginVersion, "bench_external", init, run, drop, 0};
  return &plugin;
}
/* Seconds of n bare calls through a pointer. */
double bare(long n) {
  float x[4] = {0}, y[4];
  int64_t shape[1] = {4};
  DLTensor in = {x, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, shape, NULL, 0}, out = in;
  DLTensor* args[2];
  const char* error = NULL;
  int (*volatile call)(void*, DLTensor* const*, int32_t, const char**) = run;
  struct timespec a, b;
  out.data = y, args[0] = &in, args[1] = &out;
  clock_gettime(CLOCK_MONOTONIC, &a);
  for (; n > 0; --n) call(NULL, args, 2, &error);
  clock_gettime(CLOCK_MONOTONIC, &b);
  return (double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec);
}
"""


def chain(calls, compiler):
    """A model of so many regions for a compiler, one after the other; "" for steps of Baton's own."""
    x = value = relay.var("x", shape=(4,))
    for _ in range(calls):
        if compiler:
            begun = relay.annotation.compiler_begin(value, compiler)
            value = relay.annotation.compiler_end(relay.nn.relu(begun), compiler)
        else:
            value = relay.annotation.stop_fusion(relay.nn.relu(value))
    return relay.transform.PartitionGraph()(relay.transform.InferType()(baton.IRModule.from_expr(relay.Function([x], value))))


def least(run, rounds=20):
    """Seconds of a call."""
    x = baton.nd.array(np.zeros(4, "float32"))
    for _ in range(50):
        run(x)
    best = float("inf")
    for _ in range(rounds):
        begin = time.perf_counter()
        for _ in range(20):
            run(x)
        best = min(best, (time.perf_counter() - begin) / 20)
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="exit code 1 where a call of a plug-in or of ccompiler takes more than the bar")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "plugin.c").write_text(PLUGIN)
        library = folder / "libbench_external.so"
        subprocess.run([os.environ.get("CC", "cc"), "-O2", "-fPIC", "-shared", f"-I{include_dir()}", folder / "plugin.c", "-o", library], check=True)
        baton.runtime.load_plugin(library)
        bare = ctypes.CDLL(str(library)).bare
        bare.restype, bare.argtypes = ctypes.c_double, [ctypes.c_long]
        runs = {}
        for kind, compiler in {"plug-in in C": "bench_external", "ccompiler": "ccompiler", "Baton's own step": ""}.items():
            for calls in (1, 1 + CALLS):
                model = baton.compile(chain(calls, compiler))
                model.save(folder / f"{compiler}{calls}.so")
                runs[kind, "compiled", calls], runs[kind, "loaded", calls] = model, baton.load(folder / f"{compiler}{calls}.so")
        best = {}
        for _ in range(3):
            for key, run in runs.items():
                best[key] = min(best.get(key, float("inf")), least(run))
        rows = {(kind, how): (best[kind, how, 1 + CALLS] - best[kind, how, 1]) / CALLS * 1e6 for kind, how, calls in best if calls == 1}
        print(f"{'':20} compiled  loaded   us a call")
        for kind in dict.fromkeys(k for k, _ in rows):
            print(f"{kind:20} {rows[kind, 'compiled']:8.3f} {rows[kind, 'loaded']:7.3f}")
        print(f"{'bare call from C':20} {min(bare(100_000) for _ in range(20)) * 10:8.3f}")
    missed = [f"{kind}, {how}: {us:.3f} us" for (kind, how), us in rows.items() if not kind.startswith("Baton") and us > BAR]
    print(f"bar {BAR} us: " + ("met" if not missed else "missed by " + "; ".join(missed)))
    return int(bool(missed and args.check))


if __name__ == "__main__":
    sys.exit(main())

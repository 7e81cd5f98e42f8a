# SPDX-License-Identifier: Apache-2.0
"""The cost of a call across the language border, beside apache-tvm-ffi, pybind11 and nanobind.

All in one process and in turns; a figure is the median over the rounds, a peer's its best form (typed or not). Peers that are not
installed are left out. `--check` makes a missed bar exit code 1. Bars (issue of the object system): calls with integers at most
0.4 of apache-tvm-ffi's time and 1.5 of nanobind's; one string, one object, three tensors at most 0.6 of apache-tvm-ffi's; C++ to
C++ at most 1.2, C++ to Python at most 0.5, a field read at most 1.0 of its time; iterating an Array at most 2 times a list's.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import os
import platform
import shlex
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
UNROLL = 8


def compile_library(source: Path, out: Path, flags: list[str]) -> None:
    """Compiles one shared library as its peer's documentation says, -O2."""
    command = [os.environ.get("CXX", "g++"), "-std=c++20", "-O2", "-shared", "-fPIC", "-fvisibility=hidden", str(source), *flags, "-o", str(out)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{source.name} does not compile:\n{done.stderr[:2000]}")


def has(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def load_baton(folder: Path):
    import baton
    from baton import _core

    package = Path(baton.__file__).resolve().parent
    include = package.parent.parent / "include"
    include = include if include.is_dir() else package / "include"
    out = folder / "bench_baton.so"
    compile_library(
        HERE / "ffi" / "baton.cpp", out, ["-fno-strict-aliasing", f"-I{include}", f"-L{package / 'lib'}", "-lbaton_runtime", f"-Wl,-rpath,{package / 'lib'}"]
    )
    _core.load_library(str(out))
    return baton


def load_tvm_ffi(folder: Path):
    import ctypes

    import tvm_ffi

    config = str(Path(sys.executable).with_name("tvm-ffi-config"))

    def ask(flag):
        return shlex.split(subprocess.run([config, flag], capture_output=True, text=True, check=True).stdout)

    out = folder / "bench_tvm_ffi.so"
    libdir = ask("--libdir")[0]
    compile_library(HERE / "ffi" / "tvm_ffi.cpp", out, [*ask("--cxxflags"), *ask("--ldflags"), *ask("--libs"), f"-Wl,-rpath,{libdir}"])
    ctypes.CDLL(str(out))
    return tvm_ffi


def load_nanobind(folder: Path):
    import nanobind

    root = Path(nanobind.include_dir()).parent
    out = folder / ("peer_nanobind" + sysconfig.get_config_var("EXT_SUFFIX"))
    robin = root / "ext" / "robin_map" / "include"
    compile_library(
        HERE / "ffi" / "nanobind.cpp",
        out,
        [
            "-DNDEBUG",
            "-fno-strict-aliasing",
            "-fno-stack-protector",
            f"-I{root / 'include'}",
            f"-I{robin}",
            f"-I{sysconfig.get_path('include')}",
            str(root / "src" / "nb_combined.cpp"),
        ],
    )
    return _import(out, "peer_nanobind")


def load_pybind11(folder: Path):
    import pybind11

    out = folder / ("peer_pybind11" + sysconfig.get_config_var("EXT_SUFFIX"))
    compile_library(HERE / "ffi" / "pybind11.cpp", out, [f"-I{pybind11.get_include()}", f"-I{sysconfig.get_path('include')}"])
    return _import(out, "peer_pybind11")


def _import(path: Path, name: str):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def timer(statement: str, **names):
    """A function of a count: nanoseconds that one run of the statement takes."""
    body = "; ".join([statement] * UNROLL)
    space = {**names, "_clock": time.perf_counter_ns, "_repeat": itertools.repeat}
    args = ", ".join(names)
    # Names are arguments, hence locals: as they are in a program's own loop.
    exec(f"def run(n, {args}):\n  it = _repeat(None, n)\n  t = _clock()\n  for _ in it: {body}\n  return (_clock() - t) / (n * {UNROLL})\n", space)
    run = space["run"]
    return lambda n: run(max(1, n // UNROLL), *names.values())


def inner(function, callee):
    """The same for a loop that runs inside C++."""
    return lambda n: function(callee, n) / n


def cases(peers: dict) -> dict[str, dict[str, list]]:
    """case -> contender -> timers, of which the best counts."""
    baton, tvm, nb, pb = (peers.get(name) for name in ("baton", "apache-tvm-ffi", "nanobind", "pybind11"))
    out: dict[str, dict[str, list]] = {}

    def add(case, contender, *timers):
        out.setdefault(case, {}).setdefault(contender, []).extend(timers)

    bf = baton.get_global_func
    tf = tvm.get_global_func if tvm else None
    for count in (0, 1, 3, 8):
        case, args = f"{count} ints", ", ".join(str(i + 1) for i in range(count))
        # Baton's is the untyped form, as the bar has it: any values, no signature.
        add(case, "baton", timer(f"f({args})", f=bf("bench.nop")))
        add(case, "baton typed", timer(f"f({args})", f=bf(f"bench.nop{count}")))
        if tvm:
            add(case, "apache-tvm-ffi", timer(f"f({args})", f=tf("bench.nop")), timer(f"f({args})", f=tf(f"bench.nop{count}")))
        for name, peer in (("nanobind", nb), ("pybind11", pb)):
            if peer:
                add(case, name, timer(f"f({args})", f=getattr(peer, f"nop{count}")))
    text = "hello world"
    add("string", "baton", timer("f(s)", f=bf("bench.nop"), s=text))
    if tvm:
        add("string", "apache-tvm-ffi", timer("f(s)", f=tf("bench.nop"), s=text))
    for name, peer in (("nanobind", nb), ("pybind11", pb)):
        if peer:
            add("string", name, timer("f(s)", f=peer.text, s=text))
            add("object", name, timer("f(o)", f=peer.object, o=peer.Thing()))
    x = baton.relay.var("x", shape=(2,), dtype="float32")
    call = baton.relay.add(x, x)
    add("object", "baton", timer("f(o)", f=bf("bench.nop"), o=call))
    add("field", "baton", timer("o.args", o=call))
    if tvm:
        pair = tf("bench.pair")([1, 2])
        add("object", "apache-tvm-ffi", timer("f(o)", f=tf("bench.nop"), o=pair))
        add("field", "apache-tvm-ffi", timer("o.args", o=pair))
    for label, tensors in tensor_sets():
        add(f"3 {label}", "baton", timer("f(a, b, c)", f=bf("bench.nop"), **tensors))
        if tvm:
            add(f"3 {label}", "apache-tvm-ffi", timer("f(a, b, c)", f=tf("bench.nop"), **tensors))
        if nb:
            add(f"3 {label}", "nanobind", timer("f(a, b, c)", f=nb.tensors, **tensors))
    add("C++ to C++", "baton", inner(bf("bench.cpp_to_cpp"), bf("bench.add_one")))
    if tvm:
        add("C++ to C++", "apache-tvm-ffi", inner(tf("bench.cpp_to_cpp"), tf("bench.add_one")))

    def callback(x):
        return x

    add("C++ to Python", "baton", inner(bf("bench.cpp_to_python"), baton.convert(callback)))
    if tvm:
        add("C++ to Python", "apache-tvm-ffi", inner(tf("bench.cpp_to_python"), tvm.convert(callback)))

    nodes = [baton.relay.var(f"x{i}") for i in range(10_000)]
    array = baton.convert(nodes)
    add("iterate 10,000", "baton", each("for x in a: pass", a=array))
    # An Array that Python has not looked into: what its objects would cost, made one by one, is beside it.
    add("iterate 10,000", "baton, first time", each("for x in fresh: pass", a=array, before="fresh = a[:]"))
    add("iterate 10,000", "baton, kept", each("[x for x in fresh]", a=array, before="fresh = a[:]"))
    add("iterate 10,000", "list", each("for x in a: pass", a=nodes))
    add("iterate 10,000", "list of 10,000 new object()", each("[make() for x in a]", a=nodes, make=object))
    if tvm:
        pairs = tvm.convert([tf("bench.pair")([1]) for _ in range(10_000)])
        add("iterate 10,000", "apache-tvm-ffi", each("for x in a: pass", a=pairs))
    return out


def each(loop: str, before: str = "pass", **names):
    """Nanoseconds a step of a loop over 10,000 things."""
    space = {**names, "_clock": time.perf_counter_ns}
    exec(f"def run({', '.join(names)}):\n  {before}\n  t = _clock()\n  {loop}\n  return (_clock() - t) / 10_000\n", space)
    return lambda n: statistics.median(space["run"](*names.values()) for _ in range(3))


def tensor_sets():
    import numpy as np

    if has("torch"):
        import torch

        yield "torch tensors", {name: torch.zeros(4) for name in "abc"}
    yield "numpy arrays", {name: np.zeros(4, "float32") for name in "abc"}


BARS = {  # case -> {peer: most that Baton may take of its time}
    **{f"{n} ints": {"apache-tvm-ffi": 0.4, "nanobind": 1.5} for n in (0, 1, 3, 8)},
    "string": {"apache-tvm-ffi": 0.6},
    "object": {"apache-tvm-ffi": 0.6},
    "3 torch tensors": {"apache-tvm-ffi": 0.6},
    "C++ to C++": {"apache-tvm-ffi": 1.2},
    "C++ to Python": {"apache-tvm-ffi": 0.5},
    "field": {"apache-tvm-ffi": 1.0},
    "iterate 10,000": {"list": 2.0},
}


def measure(all_cases, rounds: int, calls: int) -> dict:
    results = {}
    for case, contenders in all_cases.items():
        samples = {name: [[] for _ in timers] for name, timers in contenders.items()}
        for _ in range(rounds):
            for name, timers in contenders.items():
                for i, run in enumerate(timers):
                    samples[name][i].append(run(calls))
        results[case] = {name: min(statistics.median(s) for s in lists) for name, lists in samples.items()}
    return results


def judge(results: dict) -> list[str]:
    """Returns the values that miss their bars, in words."""
    missed = []
    for case, times in results.items():
        for peer, bar in BARS.get(case, {}).items():
            if peer in times and not times["baton"] <= bar * times[peer]:
                missed.append(f"{case}: {times['baton'] / times[peer]:.2f} of {peer}'s time, the bar is {bar}")
    return missed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=41)
    parser.add_argument("--calls", type=int, default=4000, help="calls a round")
    parser.add_argument("--only", default="", help="cases whose name has this text")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--check", action="store_true", help="exit code 1 if a bar is missed")
    args = parser.parse_args()
    loaders = {
        "baton": (load_baton, "baton"),
        "apache-tvm-ffi": (load_tvm_ffi, "tvm_ffi"),
        "nanobind": (load_nanobind, "nanobind"),
        "pybind11": (load_pybind11, "pybind11"),
    }
    sys.path.insert(0, str(HERE.parent / "python"))
    with tempfile.TemporaryDirectory() as folder:
        peers = {}
        for name, (load, module) in loaders.items():
            if has(module):
                peers[name] = load(Path(folder))
            else:
                print(f"{name} is not installed: left out")
        if "baton" not in peers:
            print("error: baton is not built; build it first: ./dev build", file=sys.stderr)
            return 1
        chosen = {case: c for case, c in cases(peers).items() if args.only in case}
        results = measure(chosen, args.rounds, args.calls)
    print(f"{platform.processor() or platform.machine()}, Python {platform.python_version()}; nanoseconds, medians of {args.rounds}")
    for case, times in results.items():
        text = "  ".join(f"{name} {t:.1f}" for name, t in times.items())
        ratios = "  ".join(f"{times['baton'] / times[p]:.2f} of {p} (bar {bar})" for p, bar in BARS.get(case, {}).items() if p in times)
        print(f"{case:<16} {text}" + (f"   -> {ratios}" if ratios else ""))
    missed = judge(results)
    for line in missed:
        print("missed: " + line)
    if args.json:
        args.json.write_text(json.dumps({"nanoseconds": results, "missed": missed}, indent=1) + "\n")
    return 1 if missed and args.check else 0


if __name__ == "__main__":
    sys.exit(main())

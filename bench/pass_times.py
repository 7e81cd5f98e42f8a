# SPDX-License-Identifier: Apache-2.0
"""How the time of every pass, of the printer and of the parser grows with the program, beside MLIR and apache-tvm.

    python bench/pass_times.py                        # chains and wide nets of 1,000 to 100,000 calls
    python bench/pass_times.py --million              # and of 1,000,000
    python bench/pass_times.py CSE parse --shapes chain
    python bench/pass_times.py --tvm-python /path/to/venv/bin/python   # beside the Relax passes of the wheel there

Times are the best of several runs, in seconds; the exponent is the slope of log(time) over log(calls), without times
below 20 microseconds. MLIR runs as `mlir-opt` (Debian's mlir-19-tools) on a function of as many operations; its times are those that
it reports itself. A pass that is slower than --most seconds at one size is not tried on larger ones.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

SIZES = (1_000, 10_000, 100_000)
EXPONENT = 1.1
# The bound of a pass at 100,000 calls, in seconds.
BARS = {
    "parse": 0.3, "print": 0.15, "InferType": 0.25, "EliminateCommonSubexpr": 0.1, "DeadCodeElimination": 0.1, "FuseOps": 0.3,
    "ToANormalForm": 0.3, "FoldConstant over scalars": 1.0,
}  # fmt: skip
# Ours -> what MLIR calls the same work.
MLIR = {"parse": "Parser", "print": "Output", "EliminateCommonSubexpr": "CSE", "DeadCodeElimination": "Canonicalizer"}
# Ours -> the Relax pass of apache-tvm.
TVM = {
    "EliminateCommonSubexpr": "EliminateCommonSubexpr", "DeadCodeElimination": "DeadCodeElimination", "FoldConstant": "FoldConstant",
    "CanonicalizeBindings": "CanonicalizeBindings", "ToNonDataflow": "ToNonDataflow",
}  # fmt: skip
# Passes that need parts which these programs lack: arguments, devices, gradients, other targets.
LEFT_OUT = {"PrintIR"}


def width_of(calls: int) -> int:
    """Places in a row of a wide net: as many as rows."""
    return max(int(math.isqrt(calls)), 2)


def edges(calls: int, shape: str) -> Iterator[tuple[int, int]]:
    """The operands of each call: numbers of calls before it, -1 for the input."""
    width = width_of(calls)
    for i in range(calls):
        if shape == "chain":
            yield i - 1, -1
        elif i < width:
            yield (-1, -1) if i == 0 else (i - 1, -1)
        else:
            above = i - width
            yield above, (above // width) * width + (above + above // width + 1) % width


def relay_text(calls: int, shape: str) -> str:
    """A Relay program of so many additions."""
    name = lambda n: "%x" if n < 0 else f"%{n}"  # noqa: E731
    lines = [f"  %{i} = add({name(a)}, {name(b)});" for i, (a, b) in enumerate(edges(calls - 1, shape))]
    return '#[version = "0.0.5"]\ndef @main(%x: Tensor[(4), float32]) -> Tensor[(4), float32] {\n' + "\n".join(lines) + f"\n  add(%{calls - 2}, %x)\n}}\n"


def mlir_text(calls: int, shape: str) -> str:
    """The same as a function of MLIR."""
    name = lambda n: "%x" if n < 0 else f"%{n}"  # noqa: E731
    lines = [f"  %{i} = arith.addf {name(a)}, {name(b)} : tensor<4xf32>" for i, (a, b) in enumerate(edges(calls - 1, shape))]
    return (
        "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
        + "\n".join(lines)
        + f"\n  %r = arith.addf %{calls - 2}, %x : tensor<4xf32>\n  return %r : tensor<4xf32>\n}}\n"
    )


def scalars_text(calls: int) -> str:
    """So many additions of constants, independent of each other, in a tuple of rows."""
    rows, at = [], 0
    while at < calls:
        n = min(100, calls - at)
        rows.append("(" + ", ".join(f"add({at + i}f, 2f)" for i in range(n)) + ("," if n == 1 else "") + ")")
        at += n
    return '#[version = "0.0.5"]\ndef @main() {\n  (' + ",\n   ".join(rows) + ("," if len(rows) == 1 else "") + ")\n}\n"


clock = time.perf_counter  # --cpu: of this process alone, for a machine that does other things too


def best(action, most: float) -> float:
    """Seconds of the fastest of five runs, more where they take next to nothing, fewer where one takes long."""
    out, spent = math.inf, 0.0
    for i in range(200):
        if i >= 5 and spent > 0.05:
            break
        start = clock()
        action()
        took = clock() - start
        out, spent = min(out, took), spent + took
        if spent > most:
            break
    return out


def exponent(times: dict[int, float]) -> float | None:
    """The slope of log(time) over log(calls), from the times that a clock can tell from none."""
    points = [(math.log(n), math.log(t)) for n, t in times.items() if t >= 2e-5]
    if len(points) < 2:
        return None
    mean_x, mean_y = (sum(p[i] for p in points) / len(points) for i in (0, 1))
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / sum((x - mean_x) ** 2 for x, _ in points)


def ours(shape: str, sizes, wanted, most: float) -> dict[str, dict[int, float]]:
    """Seconds by pass and size."""
    import baton as tvm
    from baton import relay
    from baton._ffi import get_global_func

    as_text, run = get_global_func("ir.AsText"), get_global_func("transform.RunPass")
    make = get_global_func("transform.GetPass")
    names = [str(n) for n in get_global_func("transform.PassNames")() if not str(n).startswith("tir.") and str(n) not in LEFT_OUT]
    out: dict[str, dict[int, float]] = {}
    slow = set()

    def take(name, calls, action):
        if wanted and name not in wanted or name in slow:
            return None
        try:
            seconds = best(action, most)
        except tvm.Error as error:
            slow.add(name)
            print(f"  {name}: left out: {str(error).splitlines()[0][:120]}", file=sys.stderr)
            return None
        out.setdefault(name, {})[calls] = seconds
        if seconds > most:
            slow.add(name)
        return seconds

    for calls in sizes:
        text = relay_text(calls, shape)
        take("parse", calls, lambda text=text: relay.fromtext(text))
        mod = relay.fromtext(text)
        take("print", calls, lambda mod=mod: as_text(mod))
        if not wanted or "InferType" in wanted:
            # Types are inferred once and kept: each run has a program without.
            fresh = [relay.fromtext(text) for _ in range(3)]
            infer = make("InferType")
            seconds = []
            for one in fresh:
                start = clock()
                run(infer, one)
                seconds.append(clock() - start)
            out.setdefault("InferType", {})[calls] = min(seconds)
            del fresh, one
        with tvm.transform.PassContext(opt_level=3):
            typed = run(make("InferType"), mod)
            for name in names:
                if name in ("InferType",) or wanted and name not in wanted:
                    continue
                try:
                    one = make(name)
                except tvm.Error:
                    continue  # it needs arguments
                take(name, calls, lambda one=one, typed=typed: run(one, typed))
            del typed
        if shape == "chain":
            constants = relay.fromtext(scalars_text(calls))
            fold = make("FoldConstant")
            constants = run(make("InferType"), constants)
            take("FoldConstant over scalars", calls, lambda fold=fold, constants=constants: run(fold, constants))
    return out


def mlir(tool: str, shape: str, sizes) -> dict[str, dict[int, float]]:
    """The times that mlir-opt reports, by our name of the work."""
    out: dict[str, dict[int, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for calls in sizes:
            path = os.path.join(folder, "in.mlir")
            with open(path, "w", encoding="utf-8") as file:
                file.write(mlir_text(calls, shape))
            for _ in range(3):
                done = subprocess.run(
                    [tool, path, "--cse", "--canonicalize", "--mlir-timing", "--mlir-timing-display=list", "-o", os.path.join(folder, "out.mlir")],
                    capture_output=True, text=True,
                )  # fmt: skip
                if done.returncode:
                    raise SystemExit(f"mlir-opt failed: {done.stderr.strip()[:300]}")
                report = dict((name.strip(), float(t)) for t, name in re.findall(r"^\s+([\d.]+) \([^)]*\)\s+(.+)$", done.stderr, re.M))
                for our, name in MLIR.items():
                    if name in report:
                        times = out.setdefault(our, {})
                        times[calls] = min(times.get(calls, math.inf), report[name])
    return out


# Runs in the other Python, which has apache-tvm; its public API alone is used.
_TVM = r"""
import json, sys, time
import tvm
from tvm import relax
calls, edges, names = json.load(sys.stdin)
bb = relax.BlockBuilder()
x = relax.Var("x", getattr(relax, "TensorStructInfo", getattr(relax, "TensorType", None))((4,), "float32"))
with bb.function("main", [x]):
    with bb.dataflow():
        made = []
        for a, b in edges:
            made.append(bb.emit(relax.op.add(x if a < 0 else made[a], x if b < 0 else made[b])))
        out = bb.emit_output(made[-1])
    bb.emit_func_output(out)
mod = bb.get()
for name in names:
    one = getattr(relax.transform, name)()
    start = time.perf_counter()
    one(mod)
    print(json.dumps([name, time.perf_counter() - start]), flush=True)
start = time.perf_counter()
mod.script()
print(json.dumps(["print", time.perf_counter() - start]), flush=True)
"""


def tvm_times(python: str, shape: str, sizes, most: float) -> dict[str, dict[int, float]]:
    """Seconds of Relax passes, by our names; what takes longer than `most` has no figure."""
    out: dict[str, dict[int, float]] = {}
    for calls in sizes:
        for our, name in TVM.items():  # a process each: one that does not end takes only itself along
            try:
                done = subprocess.run(
                    [python, "-c", _TVM], input=json.dumps([calls, list(edges(calls, shape)), [name]]), capture_output=True, text=True,
                    timeout=most + 60,
                )  # fmt: skip
                lines = done.stdout.splitlines()
                if done.returncode:
                    print(f"  apache-tvm: {name}: {(done.stderr.splitlines() or ['ended'])[-1][:160]}", file=sys.stderr)
            except subprocess.TimeoutExpired as late:
                lines = (late.stdout or b"").decode().splitlines()
            for line in lines:
                what, seconds = json.loads(line)
                if what in (name, "print"):
                    times = out.setdefault(our if what == name else "print", {})
                    times[calls] = min(times.get(calls, math.inf), seconds)
    return out


def show(shape, sizes, times, peers) -> int:
    """Prints the table; gives the number of bars that were missed."""
    head = [f"{shape}", *(f"{n:,}" for n in sizes), "exponent", "bar", *(f"{name} at {sizes[-1]:,}" for name in peers)]
    rows, missed = [head], 0
    for name in sorted(times, key=lambda n: (n not in BARS, n)):
        row, slope = times[name], exponent(times[name])
        bar = BARS.get(name)
        # Slopes of times of a few milliseconds are noise.
        steep = slope is not None and slope > EXPONENT and max(row.values()) > 0.02
        over = bar is not None and row.get(100_000, 0) > bar
        missed += bool(steep) + bool(over)
        cells = [name, *(f"{row[n]:.4f}" if n in row else "-" for n in sizes)]
        cells.append("-" if slope is None else f"{slope:.2f}" + ("!" if steep else ""))
        cells.append("-" if bar is None else f"{bar:g}" + ("!" if over else ""))
        for peer in peers.values():
            theirs, mine = peer.get(name, {}).get(sizes[-1]), row.get(sizes[-1])
            slope = exponent(peer.get(name, {}))
            steepness = "" if slope is None else f", exponent {slope:.2f}"
            cells.append("-" if not theirs or not mine else f"{theirs:.4f} ({mine / theirs:.2f}x{steepness})")
        rows.append(cells)
    width = [max(len(r[i]) for r in rows) for i in range(len(head))]
    for row in rows:
        print("  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(row, width, strict=True))))
    return missed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="PASS", help="which passes, `parse` and `print` among them (default: all)")
    parser.add_argument("--shapes", default="chain,wide", help="chain, wide, or both (default)")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="calls, smallest first")
    parser.add_argument("--million", action="store_true", help="1,000,000 calls too")
    parser.add_argument("--most", type=float, default=5.0, help="seconds above which larger sizes are not tried")
    parser.add_argument("--mlir-opt", default=shutil.which("mlir-opt-19") or "/usr/lib/llvm-19/bin/mlir-opt", help="where mlir-opt is")
    parser.add_argument("--tvm-python", metavar="PATH", help="a Python that has apache-tvm")
    parser.add_argument("--cpu", action="store_true", help="CPU time of our passes, on a machine that is busy; MLIR reports wall time")
    parser.add_argument("--json", metavar="FILE", help="write the figures")
    parser.add_argument("--check", action="store_true", help="exit code 1 if a bar is missed")
    args = parser.parse_args()
    global clock
    clock = time.process_time if args.cpu else clock
    sizes = [int(n) for n in args.sizes.split(",")] + ([1_000_000] if args.million else [])
    try:
        import baton

        _ = baton.relay
    except (ImportError, AttributeError) as error:
        print(f"error: Baton is not ready: {error}; build it first: ./dev build", file=sys.stderr)
        return 1
    missed, figures = 0, {}
    for shape in args.shapes.split(","):
        if shape not in ("chain", "wide"):
            parser.error(f"--shapes: there is no `{shape}`; there are chain, wide")
        peers = {}
        if os.path.exists(args.mlir_opt):
            peers["mlir-opt"] = mlir(args.mlir_opt, shape, sizes)
        if args.tvm_python:
            peers["apache-tvm"] = tvm_times(args.tvm_python, shape, sizes, args.most)
        times = ours(shape, sizes, args.names, args.most)
        missed += show(shape, sizes, times, peers)
        figures[shape] = {"baton": times, **peers}
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(figures, file, indent=1)
    return 1 if args.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())

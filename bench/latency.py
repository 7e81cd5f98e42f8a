# SPDX-License-Identifier: Apache-2.0
"""Latency of Baton beside ONNX Runtime: one process, in turns, the same inputs and threads.

`python bench/latency.py` runs the three headline models; the bars are a geometric mean of at most 1.2 times ONNX
Runtime's median, none above 1.6, and for `opchain` 60 microseconds. `--check` makes a missed bar, or outputs that
differ, exit code 1.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys

import models
from engines import ENGINES, NotReady, difference, to_numpy
from flops import count_flops
from peak import measure_peak

MEAN_BAR, WORST_BAR, CHAIN_BAR_MS, DIFFERENCE_BAR = 1.2, 1.6, 0.060, 1e-3


def measure(name: str, engines: list[str], threads: int, rounds: int) -> dict:
    """One model's figures, as they are printed and written to JSON."""
    from baton.cli.measure import interleave

    model = models.load(name)
    runs = {engine: ENGINES[engine](model, threads) for engine in engines}
    outputs = {engine: to_numpy(run()) for engine, run in runs.items()}
    timings = interleave(runs, rounds)
    flops = count_flops(model.path, model.shape)
    out = {"model": name, "gflop": flops / 1e9 if flops else None, "engines": {}}
    for engine, timing in timings.items():
        out["engines"][engine] = {"min_ms": timing.min, "median_ms": timing.median, "samples": len(timing.samples)}
    if len(engines) > 1:
        first, second = (timings[engine] for engine in engines[:2])
        out["ratio_median"], out["ratio_min"] = first.median / second.median, first.min / second.min
        out["difference"] = difference(*(outputs[engine] for engine in engines[:2]))
    return out


def describe(result: dict, peak: float | None) -> str:
    parts = [f"{result['model']:<20}"]
    for engine, times in result["engines"].items():
        text = f"{engine} {times['min_ms']:.3f} / {times['median_ms']:.3f} ms"
        if result["gflop"]:
            rate = result["gflop"] / times["median_ms"] * 1e3
            text += f" ({rate:.0f} GFLOP/s{f', {rate / peak:.0%} of peak' if peak else ''})"
        parts.append(text)
    if "ratio_median" in result:
        parts.append(f"ratio {result['ratio_median']:.2f} (of minima {result['ratio_min']:.2f})")
        parts.append(f"difference {result['difference']:.1e}")
    return "  ".join(parts)


def judge(results: list[dict]) -> list[str]:
    """Returns the values that miss their bars, in words. NaN misses every bar."""
    missed = []
    headline = [r for r in results if r["model"] in models.HEADLINE and "ratio_median" in r]
    if headline:
        from baton.cli.measure import geometric_mean

        mean = geometric_mean(r["ratio_median"] for r in headline)
        print(f"geometric mean of {', '.join(r['model'] for r in headline)}: {mean:.2f} times ONNX Runtime (bar {MEAN_BAR})")
        if not mean <= MEAN_BAR:
            missed.append(f"the geometric mean is {mean:.2f}, the bar {MEAN_BAR}")
        missed += [
            f"{r['model']} takes {r['ratio_median']:.2f} times ONNX Runtime's time, the bar is {WORST_BAR}"
            for r in headline
            if not r["ratio_median"] <= WORST_BAR
        ]
    for r in results:
        if "difference" in r and not r["difference"] <= DIFFERENCE_BAR:
            missed.append(f"{r['model']}: the outputs differ by {r['difference']:.1e} of the largest value, the bar is {DIFFERENCE_BAR:.0e}")
        if r["model"] == "opchain" and "baton" in r["engines"] and not r["engines"]["baton"]["median_ms"] <= CHAIN_BAR_MS:
            missed.append(f"opchain takes {r['engines']['baton']['median_ms'] * 1e3:.0f} us, the bar is {CHAIN_BAR_MS * 1e3:.0f} us")
    return missed


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default="headline", help="names, or headline, light, all (default: headline)")
    parser.add_argument("--engines", default="baton,onnxruntime", help="the first is set against the second (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=min(2, len(os.sched_getaffinity(0))), help="(default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=10, help="turns each engine has (default: %(default)s)")
    parser.add_argument("--json", metavar="FILE", help="write the figures there too; - for standard output, alone")
    parser.add_argument("--check", action="store_true", help="exit code 1 if a bar is missed")
    args = parser.parse_args(argv)
    engines = args.engines.split(",")
    if not set(engines) <= ENGINES.keys() or args.threads < 1 or args.rounds < 1:
        parser.error(f"--engines takes {', '.join(ENGINES)}; --threads and --rounds take numbers from 1 on")
    stdout = sys.stdout
    if args.json == "-":
        sys.stdout = sys.stderr
    try:
        peak = measure_peak(args.threads)
        print(f"{platform.machine()}, {args.threads} threads, peak {peak:.0f} GFLOP/s float32; minimum / median of calls in turns")
    except RuntimeError as error:
        peak = None
        print(f"note: {error}; shares of the peak are left out")
    results = []
    failed = []
    for name in models.selection(args.models):
        try:
            results.append(measure(name, engines, args.threads, args.rounds))
        except NotReady as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
        except Exception as error:  # one model that cannot be run must not hide the others
            failed.append(name)
            print(f"error: {name}: {type(error).__name__}: {str(error)[:500]}", file=sys.stderr)
            continue
        print(describe(results[-1], peak), flush=True)
    missed = judge(results)
    for line in missed:
        print(f"missed: {line}")
    if args.json:
        text = (
            json.dumps(
                {"threads": args.threads, "peak_gflops": peak, "results": results, "missed": missed, "failed": failed},
                indent=1,
            )
            + "\n"
        )
        if args.json == "-":
            stdout.write(text)
        else:
            with open(args.json, "w", encoding="utf-8") as file:
                file.write(text)
    return 1 if failed or (args.check and missed) else 0


if __name__ == "__main__":
    sys.exit(main())

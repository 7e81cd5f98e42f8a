# SPDX-License-Identifier: Apache-2.0
"""`baton bench`: latency, compile time and memory, alone or in turns with a peer."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time

from . import arguments, capsules
from .errors import Failure, UsageError
from .measure import interleave
from .profile import add_top_option, taken
from .profile import show as show_profile
from .run import obtain, outputs_of, prepare
from .terminal import Progress

PEERS = ("onnxruntime",)
_ALARM = 1e-2  # relative difference beyond which a comparison of times means nothing


def add_parser(verbs, verb, text):
    parser = arguments.add_verb(
        verbs, verb, text,
        "  baton bench model.onnx\n"
        "  baton bench model.onnx --vs onnxruntime --threads 2\n"
        "  baton bench model.onnx --profile\n"
        "  baton bench model.onnx --remote unix:/run/user/1000/board\n"
        "  baton bench model.onnx --dim batch=1 --dim seq=128 --json",
    )  # fmt: skip
    arguments.add_model(parser)
    parser.add_argument("--vs", choices=PEERS, help="a peer to run in turns with, on the same inputs and threads")
    parser.add_argument("--rounds", type=arguments.positive, default=10, help="turns each has (default: %(default)s)")
    parser.add_argument("--profile", action="store_true", help="time each step of a call too, as `baton profile` does")
    add_top_option(parser)
    arguments.add_run_options(parser)
    arguments.add_remote(parser)
    arguments.add_input_options(parser)
    arguments.add_compile_options(parser)
    arguments.add_output_options(parser)
    capsules.add_options(parser)
    parser.set_defaults(run=run)


def peak_memory() -> float | None:
    """The largest resident size of this process so far, in MB."""
    try:
        with open("/proc/self/status", encoding="ascii") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) * 1024 / 1e6
    except (OSError, StopIteration):
        return None


def peer_session(model: str, threads: int):
    try:
        import onnxruntime
    except ImportError:
        raise Failure("ONNX Runtime is not installed", "python -m pip install onnxruntime") from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise Failure(f"ONNX Runtime does not take `{model}`: {str(error).splitlines()[0]}") from None


def run(args: argparse.Namespace) -> int:
    threads = args.threads or len(os.sched_getaffinity(0))
    args.threads = threads
    if args.vs and arguments.kind_of_file(args.model) != "onnx":
        raise Failure(f"--vs {args.vs} needs the ONNX file, `{args.model}` is none")
    if args.remote and (args.vs or args.profile):
        raise UsageError(f"--{'vs' if args.vs else 'profile'} is about this machine, --remote about another")
    executable, seconds = obtain(args)
    executable, inputs, more = prepare(args, executable, args.quiet)
    seconds += more
    if args.remote:
        return bench_remote(args, executable, inputs, seconds)
    start = time.perf_counter()
    ours = outputs_of(executable, executable(**inputs))
    first = time.perf_counter() - start
    memory = peak_memory()  # before the peer adds its own
    runs = {"baton": lambda: executable(**inputs)}
    answer = {
        "model": args.model,
        "threads": threads,
        "compile_seconds": seconds,
        "first_run_ms": first * 1e3,
        "peak_mb": memory,
    }
    if args.vs:
        import numpy as np

        start = time.perf_counter()
        session = peer_session(args.model, threads)
        answer["peer_compile_seconds"] = time.perf_counter() - start
        theirs = session.run(None, inputs)  # in the order of the graph, as ours
        worst = 0.0
        if len(ours) != len(theirs):
            raise Failure(f"baton gives {len(ours)} outputs, {args.vs} {len(theirs)}")
        for got, want in zip(ours.values(), theirs, strict=True):
            if got.dtype.kind == "f":
                apart = np.abs(got.astype(np.float64) - want).max(initial=0)
                worst = float(np.maximum(worst, apart / max(np.abs(want).max(initial=0), 1e-30)))
        answer["difference"] = worst
        runs[args.vs] = lambda: session.run(None, inputs)
    with Progress("timing", args.quiet) as progress:
        timings = interleave(runs, args.rounds, progress=lambda done, total: progress.step(done, total, "rounds,"))
    for name, timing in timings.items():
        answer[name] = {
            "min_ms": timing.min,
            "median_ms": timing.median,
            "p99_ms": timing.percentile(0.99),
            "samples": len(timing.samples),
        }
    if args.vs:
        answer["ratio_median"] = timings["baton"].median / timings[args.vs].median
        answer["ratio_min"] = timings["baton"].min / timings[args.vs].min
    if args.profile:
        answer["profile"] = taken(executable, inputs, quiet=args.quiet)
    if args.json:
        json.dump(answer, sys.stdout, indent=1)
        print()
    else:
        show(answer, list(timings))
        if args.profile:
            print()
            show_profile(answer["profile"], args.top)
    if args.vs and not answer["difference"] <= _ALARM:
        raise Failure(f"the outputs differ from {args.vs}'s by {answer['difference']:.1e} of the largest value")
    return 0


def bench_remote(args: argparse.Namespace, executable, inputs, seconds: float) -> int:
    """Times the model on another machine, which takes the times itself."""
    from ..rpc.deployment import timed
    from .measure import Timing
    from .run import on_remote

    executable, session = on_remote(args.remote, executable)
    start = time.perf_counter()
    outputs_of(executable, executable(**inputs))
    first = time.perf_counter() - start
    timing = Timing()
    timing.samples.extend(s * 1e3 for s in timed(executable, session.cpu(), inputs, repeat=10 * args.rounds, min_repeat_ms=10).results)
    answer = {"model": args.model, "remote": args.remote, "threads": args.threads, "compile_seconds": seconds, "first_run_ms": first * 1e3, "peak_mb": None}
    answer["baton"] = {"min_ms": timing.min, "median_ms": timing.median, "p99_ms": timing.percentile(0.99), "samples": len(timing.samples)}
    if args.json:
        json.dump(answer, sys.stdout, indent=1)
        print()
    else:
        show(answer, ["baton"])
    return 0


def show(answer: dict, names: list[str]) -> None:
    memory = f", peak memory {answer['peak_mb']:.0f} MB" if answer["peak_mb"] else ""
    print(f"compiled in {answer['compile_seconds']:.2f} s, first run {answer['first_run_ms']:.2f} ms{memory}, {answer['threads']} threads")
    width = max(map(len, names))
    for name in names:
        times = answer[name]
        print(f"{name:<{width}}  min {times['min_ms']:.3f} ms  median {times['median_ms']:.3f} ms  99 % {times['p99_ms']:.3f} ms  ({times['samples']} runs)")
    if "ratio_median" in answer:
        peer = names[1]
        print(f"baton takes {answer['ratio_median']:.2f} times {peer}'s median, {answer['ratio_min']:.2f} times its minimum")
        print(f"largest difference of outputs {answer['difference']:.1e}, relative to the largest value")

# SPDX-License-Identifier: Apache-2.0
"""`baton bench`: latency, compile time and memory, alone or in turns with others."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time

from . import arguments, capsules
from .errors import Failure, UsageError
from .measure import interleave
from .peers import PEERS, load
from .profile import add_top_option, taken
from .profile import show as show_profile
from .run import obtain, outputs_of, prepare
from .terminal import Progress, painter

_ALARM = 1e-2  # relative difference beyond which a comparison of times means nothing


def add_parser(verbs, verb, text):
    parser = arguments.add_verb(
        verbs, verb, text,
        "  baton bench model.onnx\n"
        "  baton bench model.onnx --vs onnxruntime --threads 2\n"
        "  baton bench model.onnx --vs onnxruntime,openvino,torch,tvm\n"
        "  baton bench model.onnx --profile\n"
        "  baton bench model.onnx --remote unix:/run/user/1000/board\n"
        "  baton bench model.onnx --dim batch=1 --dim seq=128 --json",
    )  # fmt: skip
    arguments.add_model(parser)
    parser.add_argument(
        "--vs", type=named_peers, default=[], metavar="PEER,...",
        help=f"others to run in turns with, on the same inputs and threads: {', '.join(PEERS)}",
    )  # fmt: skip
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


def named_peers(text: str) -> list[str]:
    """The peers of `onnxruntime,openvino`, each once."""
    names = list(dict.fromkeys(filter(None, text.replace(" ", "").split(","))))
    unknown = [name for name in names if name not in PEERS]
    if unknown or not names:
        raise argparse.ArgumentTypeError(f"`{unknown[0] if unknown else text}` is not a peer; there are {', '.join(PEERS)}")
    return names


def beside(args, answer: dict, inputs: dict, ours: dict) -> dict:
    """Functions that run the peers of --vs, by name. Notes in the answer how long each took to load the model, and how far its outputs are."""
    runs = {}
    for name in args.vs:
        with Progress(f"loading into {PEERS[name].title}", args.quiet):
            start = time.perf_counter()
            run = load(name, args.model, inputs, args.threads)
            seconds = time.perf_counter() - start
        answer.setdefault("peers", {})[name] = {"compile_seconds": seconds, "difference": difference(name, ours, run())}
        runs[name] = run
    return runs


def difference(name: str, ours: dict, theirs: list) -> float:
    """The largest difference of outputs, relative to the largest value of each; inf where one side has a value other than a number."""
    import numpy as np

    if len(ours) != len(theirs):
        raise Failure(f"baton gives {len(ours)} outputs, {name} {len(theirs)}")
    worst = 0.0
    for got, want in zip(ours.values(), theirs, strict=True):
        if got.dtype.kind != "f":
            continue
        want = np.asarray(want)
        if got.shape != want.shape:
            raise Failure(f"baton gives an output of shape {got.shape}, {name} of {want.shape}")
        apart = np.abs(got.astype(np.float64) - want).max(initial=0)
        worst = float(np.maximum(worst, apart / max(np.abs(want).max(initial=0), 1e-30)))
    return worst


def run(args: argparse.Namespace) -> int:
    threads = args.threads or len(os.sched_getaffinity(0))
    args.threads = threads
    if args.vs and arguments.kind_of_file(args.model) != "onnx":
        raise Failure(f"--vs {','.join(args.vs)} needs the ONNX file, `{args.model}` is none")
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
        runs |= beside(args, answer, inputs, ours)
    with Progress("timing", args.quiet) as progress:
        timings = interleave(runs, args.rounds, progress=lambda done, total: progress.step(done, total, "rounds,"))
    for name, timing in timings.items():
        answer[name] = {
            "min_ms": timing.min,
            "median_ms": timing.median,
            "p99_ms": timing.percentile(0.99),
            "samples": len(timing.samples),
        }
    for name, peer in answer.get("peers", {}).items():
        peer["ratio_median"] = timings["baton"].median / timings[name].median
        peer["ratio_min"] = timings["baton"].min / timings[name].min
    if offered := narrower(args, inputs, ours):
        runs, answer["precision"] = {"baton": runs["baton"], "narrow": offered.pop("run")}, offered
        timings_of_both = interleave(runs, max(1, args.rounds // 2))
        offered["ratio_min"] = timings_of_both["narrow"].min / timings_of_both["baton"].min
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
    for name, peer in answer.get("peers", {}).items():
        if not peer["difference"] <= _ALARM:
            raise Failure(f"the outputs differ from {name}'s by {peer['difference']:.1e} of the largest value")
    return 0


def narrower(args: argparse.Namespace, inputs: dict, ours: dict) -> dict | None:
    """The model in the precision that this processor offers: a function that runs it, and how far its outputs are from `ours`. None where
    there is none, another target, or nothing that it changes.
    """
    from ..driver import precision

    config = args.pass_config
    if args.target or args.device or args.precision or "precision" in config or arguments.kind_of_file(args.model) == "artifact":
        return None
    offer = precision.offer()
    if not offer:
        return None
    asked = argparse.Namespace(**{**vars(args), "pass_config": {**config, "precision": offer[0]}})
    executable, _ = obtain(asked)
    executable, _, _ = prepare(asked, executable, args.quiet)
    apart = difference(f"--precision {offer[0]}", ours, list(outputs_of(executable, executable(**inputs)).values()))
    return {"precision": offer[0], "offer": precision.offered(), "difference": apart, "run": lambda: executable(**inputs)} if apart else None


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
    paint = painter(sys.stdout)
    if found := answer.get("precision"):
        print(f"{found['offer']} takes {found['ratio_min']:.2f} times the minimum; outputs differ by {found['difference']:.1e} of the largest value")
    for name, peer in answer.get("peers", {}).items():
        ratio = paint(f"{peer['ratio_median']:.2f}", "green" if peer["ratio_median"] <= 1 else "red")
        print(
            f"baton takes {ratio} times {name}'s median, {peer['ratio_min']:.2f} times its minimum; outputs differ by {peer['difference']:.1e} of the largest value"
        )
        if PEERS[name].note:
            print(paint(f"  {PEERS[name].note}", "dim"))

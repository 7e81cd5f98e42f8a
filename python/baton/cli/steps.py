# SPDX-License-Identifier: Apache-2.0
"""`baton run` of a model with states: several steps of one session."""

from __future__ import annotations

import argparse
import re
import time

from . import arguments
from .errors import Failure, UsageError


def add_options(parser: argparse.ArgumentParser) -> None:
    arguments.add_state_option(parser)
    parser.add_argument(
        "--steps", type=arguments.positive, default=1, metavar="N",
        help="call a model with states N times, each after what the calls before left; outputs are those of the last (default: 1)",
    )  # fmt: skip
    parser.add_argument(
        "--step-dim", type=arguments.named_dim, action="append", default=[], metavar="NAME=1",
        help="a dimension's size in all steps but the first, as --dim says it for the first",
    )  # fmt: skip


def check(args: argparse.Namespace, executable) -> None:
    """Wrong usage where the options for steps do not fit the model."""
    if not executable.states and (args.steps > 1 or args.step_dim):
        option = "--steps" if args.steps > 1 else "--step-dim"
        raise UsageError(f"{option} is for models with states, and `{args.model}` has none: each call would give the same", "--state auto, or `baton bench`")
    if executable.states and args.remote:
        raise UsageError("--remote makes one call; a model with states is run on this machine")
    if args.step_dim and args.steps == 1:
        raise UsageError("--step-dim says the sizes of the second step and those behind it; --steps says how many there are")


def run(args: argparse.Namespace, executable) -> tuple[object, list[dict]]:
    """(the result of the last step, for each step the rows that the session held before it, and the seconds it took)"""
    from .values import gather

    session, taken, result = executable.session(), [], None
    later = {**args.dim, **dict(args.step_dim)}
    for number in range(args.steps):
        dims = later if number else args.dim
        infos = _at_length(executable.inputs, {**dims, session.dim: session.length})
        inputs = gather(infos, args.input, args.shape, dims, args.seed + number)
        before, start = session.length, time.perf_counter()
        try:
            result = session(**inputs)
        except ValueError as error:  # of the length that the states have by now
            raise Failure(f"step {number + 1}: {error}") from None
        taken.append({"length": before, "run_seconds": time.perf_counter() - start})
    return result, taken


def _at_length(infos, sizes: dict[str, int]) -> list:
    """Inputs with the extents that follow from the rows which the session holds, as `past + seq`."""
    from .shapes import evaluate

    def size(dim):
        known = isinstance(dim, str) and not dim.isidentifier() and set(re.findall(r"[A-Za-z_]\w*", dim)) <= {*sizes, "min", "max", "floordiv"}
        value = evaluate(dim, sizes) if known else None
        return dim if value is None else value

    return [info._replace(shape=tuple(map(size, info.shape))) for info in infos]


def summary(taken: list[dict]) -> str:
    """ ", 8 steps, the last in 0.21 ms"; nothing for a single call."""
    return f", {len(taken)} steps, the last in {taken[-1]['run_seconds'] * 1e3:.2f} ms" if len(taken) > 1 else ""

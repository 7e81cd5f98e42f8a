# SPDX-License-Identifier: Apache-2.0
"""`baton profile`: where the time of a call goes, step by step, of the very model that runs."""

from __future__ import annotations

import argparse
import json
import os
import sys

from . import arguments, capsules
from .errors import UsageError
from .run import obtain, on_remote, prepare
from .terminal import Progress, note, painter


def add_parser(verbs, verb, text):
    parser = arguments.add_verb(
        verbs, verb, text,
        "  baton profile model.onnx\n"
        "  baton profile model.onnx --dim batch=1 --dim seq=128 --html profile.html\n"
        "  baton profile model.so --top 5\n"
        "  baton profile decoder.onnx --state auto --dim batch=1 --dim seq=16",
    )  # fmt: skip
    arguments.add_model(parser)
    parser.add_argument("--rounds", type=arguments.positive, metavar="N", help="calls that are timed (default: as many as take a second, 3 to 50)")
    add_top_option(parser)
    parser.add_argument("--html", metavar="FILE", help="write a page with a plot, too; it needs no other file").complete = "file"
    arguments.add_run_options(parser)
    arguments.add_remote(parser)
    arguments.add_input_options(parser)
    arguments.add_compile_options(parser)
    arguments.add_state_option(parser)
    arguments.add_output_options(parser)
    capsules.add_options(parser)
    parser.set_defaults(run=run)


def add_top_option(parser) -> None:
    parser.add_argument("--top", type=arguments.positive, default=25, metavar="N", help="rows of the profile (default: %(default)s)")


def taken(executable, inputs, rounds: int | None = None, quiet: bool = True):
    """The profile of a call; without `rounds`, of as many as take about a second."""
    with Progress("profiling", quiet):
        if rounds is None:
            once = executable.profile(**inputs, rounds=1)
            rounds = max(3, min(50, int(1e6 / max(once["call_us"] + once["total_us"], 1))))
        return executable.profile(**inputs, rounds=rounds)


def show(profile, top: int) -> None:
    """The table; on a terminal, steps that take a tenth of the time or more are in colour."""
    from ..driver.profile import table

    paint = painter(sys.stdout)
    print(table(profile, top, lambda text, share: paint(text, "red" if share >= 0.25 else "yellow" if share >= 0.1 else "")))


def run(args: argparse.Namespace) -> int:
    from .compile import check_output
    from .values import write_file

    args.threads = args.threads or len(os.sched_getaffinity(0))
    if args.html == "-":
        raise UsageError("--html: the page goes to a file", "baton profile MODEL --html profile.html")
    if args.html:
        check_output(args.html)
    executable, _ = obtain(args)
    executable, inputs, _ = prepare(args, executable, args.quiet)
    if args.remote:
        executable, session = on_remote(args.remote, executable)  # noqa: F841 - kept open
    profile = taken(executable, inputs, args.rounds, args.quiet)
    if args.json:
        json.dump(profile, sys.stdout, indent=1)
        print()
    else:
        show(profile, args.top)
    if args.html:
        page = profile.html(f"{os.path.basename(args.model)}: where a call's time goes")
        write_file(args.html, page.encode())
        note(f"wrote {args.html}, {len(page) / 1e3:.0f} kB; open it in a browser", args.quiet)
    return 0

# SPDX-License-Identifier: Apache-2.0
"""Options of verbs that compile: a capsule of what goes wrong, and the compiler in a child process."""

from __future__ import annotations

import argparse
import os

from . import arguments
from .errors import Failure, UsageError
from .terminal import note


def add_options(parser) -> None:
    group = parser.add_argument_group("when it fails")
    group.add_argument(
        "--capsule", metavar="FILE|DIR",
        help="write what `baton replay` needs to fail again (default: to the directory BATON_CAPSULE_DIR, if that is set)",
    ).complete = "file"  # fmt: skip
    group.add_argument(
        "--capsule-weights", choices=("auto", "inline", "hash", "synthetic"), default="auto",
        help="large tensors in the capsule: kept, named by hash, or replaced by others of the same range (default: kept up to 1 MiB)",
    )  # fmt: skip
    group.add_argument("--isolate", action="store_true", help="compile in a child process: a crash of the compiler is a capsule too")
    group.add_argument("--isolate-seconds", type=arguments.seconds, metavar="S", help="stop the child after that time")
    group.add_argument("--isolate-memory", type=arguments.positive, metavar="MIB", help="memory that the child may take")


def guarded(args: argparse.Namespace, run) -> int:
    """Runs a verb as its options want it."""
    for option, value in (("--isolate-seconds", args.isolate_seconds), ("--isolate-memory", args.isolate_memory)):
        if value is not None and not args.isolate:
            raise UsageError(f"{option} is for a compiler in a child process", "add --isolate")
    folder = os.environ.get("BATON_CAPSULE_DIR")
    where = args.capsule or (os.path.join(folder, "") if folder else None)
    if args.capsule:
        folder = os.path.dirname(os.path.abspath(args.capsule))
        if not os.path.isdir(folder):
            raise Failure(f"cannot write `{args.capsule}`: there is no directory `{folder}`", f"mkdir -p {folder}")
    if args.isolate:
        return _isolated(args, run, where)
    if not where or not _compiler_there(bool(args.capsule)):
        return run(args)
    from ..capsule import Capsule

    keeper = Capsule(where, weights=args.capsule_weights)
    try:
        with keeper:
            return run(args)
    finally:
        _say(keeper.path)


def _compiler_there(wanted: bool) -> bool:
    from .._ffi.base import load_compiler

    try:
        load_compiler()
    except RuntimeError:
        if wanted:
            raise
        return False
    return True


def _say(path) -> None:
    if path:
        note(f"capsule: {path}; `baton replay {path}` does it again")


def _isolated(args, run, where) -> int:
    import sys

    from ..capsule import isolated

    def work():
        try:
            return run(args)
        finally:  # the child ends without the interpreter's own flush
            sys.stdout.flush()
            sys.stderr.flush()

    memory = None if args.isolate_memory is None else args.isolate_memory << 20
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        code = isolated(work, capsule=where, weights=args.capsule_weights, timeout=args.isolate_seconds, memory=memory)
        return code or 0
    except Exception as error:
        _say(getattr(error, "capsule", None))
        raise

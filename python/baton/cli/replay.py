# SPDX-License-Identifier: Apache-2.0
"""`baton replay`: a capsule, done again."""

from __future__ import annotations

import argparse
import json
import os
import sys

from . import arguments
from .errors import Failure, UsageError, file_error
from .terminal import note


def add_parser(verbs, verb, text):
    parser = arguments.add_verb(
        verbs, verb, text,
        "  baton replay failure.capsule\n"
        "  baton replay failure.capsule --threads 1\n"
        "  baton replay failure.capsule --stop --ir before.relay    # the IR that the failing pass was given\n"
        "exit codes: 0 it fails in the same way, 1 it does not, or cannot be run again, 2 wrong usage",
    )  # fmt: skip
    parser.add_argument("capsule", metavar="FILE", help="what --capsule wrote").complete = "file"
    parser.add_argument("--threads", type=arguments.positive, metavar="N", help="threads, instead of the capsule's")
    parser.add_argument("--stop", action="store_true", help="stop before the failing pass")
    parser.add_argument(
        "--ir", metavar="FILE", help="write the IR that the failing pass is given, or the model that was not imported; - prints it"
    ).complete = "file"
    parser.add_argument(
        "--weights", dest="weights_from", action="append", default=[], metavar="FILE.npz", help="tensors, or a model, that the capsule names by hash"
    ).complete = "file"
    parser.add_argument("--seconds", type=arguments.seconds, metavar="S", help="time that a capsule of a hang may take, in place of the recorded one")
    parser.add_argument("--path", action="append", default=[], metavar="DIR", help="where Python passes are imported from")
    arguments.add_load_option(parser)
    parser.add_argument("--reduce", metavar="FILE", help="write a smaller program that fails in the same way").complete = "file"
    parser.add_argument("--json", action="store_true", help="print the answer as JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from ..capsule.file import CapsuleError, load

    try:
        file = load(args.capsule)
    except OSError as error:
        raise file_error(error, args.capsule) from None
    except CapsuleError as error:
        raise Failure(str(error)) from None
    sys.path[:0] = args.path
    arguments.use_threads(args.threads or file.threads)
    if file.verify_passes:
        os.environ["BATON_VERIFY_PASSES"] = "1"
    if args.stop and not args.ir:
        raise UsageError("--stop needs --ir FILE, else nothing is done", f"baton replay {args.capsule} --stop --ir before.relay")
    from ..capsule import replay

    try:
        if args.ir:
            _write_ir(file, args)
        if args.stop:
            return 0
        again = replay(file, threads=args.threads, weights_from=args.weights_from, timeout=args.seconds)
        if args.reduce and again.reproduced:
            _reduce(file, args)
    except CapsuleError as error:
        raise Failure(str(error)) from None
    return _answer(file, again, args)


def _answer(file, again, args) -> int:
    from ..capsule.record import versions

    now = versions()
    notes = list(again.notes)
    if not again.reproduced:
        notes += [f"{key}: {value} in the capsule, {now[key]} here" for key, value in file.versions.items() if now.get(key, value) != value]
    if args.json:
        print(json.dumps({
            "reproduced": again.reproduced, "signature": again.signature, "differences": again.differences, "notes": notes,
            "error": again.error,
        }, indent=1))  # fmt: skip
        return 0 if again.reproduced else 1
    for one in notes:
        note(one)
    want = file.signature
    if again.reproduced:
        print(f"reproduced: {want['kind']} in `{want['pass']}`" + (f": {again.error.splitlines()[0]}" if want["message"] else ""))
        return 0
    print("not reproduced: " + "\n  ".join(again.differences))
    return 1


def _write_ir(file, args) -> None:
    if file.ir_format == "onnx":
        from ..capsule.imports import model_of

        if args.ir == "-":
            raise UsageError("--ir: a model that was not imported is a binary file, and needs a name")
        from .values import write_file

        write_file(args.ir, model_of(file, args.weights_from))
        return
    from ..capsule.replay import module_of
    from ..capsule.weights import read_given

    _write(module_of(file, read_given(args.weights_from))[0], file, args.ir)


def _reduce(file, args) -> None:
    from ..capsule.replay import reduced
    from ..capsule.weights import read_given

    try:
        small = reduced(file, read_given(args.weights_from))
    except ValueError as error:
        raise Failure(f"--reduce: {error}") from None
    _write(small, file, args.reduce)


def _write(module, file, path) -> None:
    from .. import ir

    text = str(module.astext(show_meta_data=True) if file.ir_format == "relay" else ir.save_json(module))
    text = text if text.endswith("\n") else text + "\n"
    if path == "-":
        sys.stdout.write(text)
    else:
        from .values import write_file

        write_file(path, text.encode())

# SPDX-License-Identifier: Apache-2.0
"""`baton compile`: a model to a shared object, or to one of the stages on the way there."""

from __future__ import annotations

import argparse
import os
import sys
import time

from . import arguments, capsules
from .errors import Failure, UsageError
from .run import compile_options
from .terminal import Progress, note

KINDS = ("relay", "tir", "llvm", "asm", "opencl", "c", "obj", "lib")
DEBUG = ("none", "names", "lines", "source")
TEXT = ("relay", "tir", "llvm", "asm", "opencl")
_BY_SUFFIX = {".so": "lib", ".o": "obj", ".s": "asm", ".ll": "llvm", ".relay": "relay", ".tir": "tir", ".cl": "opencl", ".c": "c"}


def add_parser(verbs, verb, text):
    parser = arguments.add_verb(
        verbs, verb, text,
        "  baton compile model.onnx -o model.so\n"
        "  baton compile model.onnx --dim batch=1 --dim seq=1..512 -o model.so\n"
        "  baton compile model.onnx --emit=llvm | less\n"
        "  baton compile decoder.onnx --state auto -o decoder.so\n"
        '  baton compile model.onnx --target "llvm -mcpu=haswell" -o model.so',
    )  # fmt: skip
    arguments.add_model(parser, "ONNX file or Relay text (.relay)")
    parser.add_argument("-o", "--output", metavar="FILE", help="where to write; text goes to standard output without it").complete = "file"
    parser.add_argument("--emit", choices=KINDS, help="what to write (default: by the name of the output, else lib)")
    parser.add_argument(
        "--debug-info", choices=DEBUG, metavar="LEVEL",
        help="what the code tells debuggers and profilers: none, names (of kernels), lines (the Relay expression of each "
        "instruction; the default), or source (lines, and their text beside the output as OUTPUT.relay)",
    )  # fmt: skip
    parser.add_argument("--threads", type=arguments.positive, metavar="N", help="threads to compile with")
    arguments.add_state_option(parser)
    arguments.add_donate_option(parser)
    arguments.add_compile_options(parser, stay_open=True)
    parser.add_argument("-q", "--quiet", action="store_true", help="say nothing but errors")
    capsules.add_options(parser)
    parser.set_defaults(run=run)


def check_output(path: str | None) -> None:
    """Says before minutes of work what would fail after them."""
    if path is None or path == "-":
        return
    folder = os.path.dirname(os.path.abspath(path))
    if os.path.isdir(path):
        raise Failure(f"`{path}` is a directory; a file name is needed")
    if not os.path.isdir(folder):
        raise Failure(f"cannot write `{path}`: there is no directory `{folder}`", f"mkdir -p {folder}")
    if not os.access(folder, os.W_OK):
        raise Failure(f"cannot write `{path}`: the directory `{folder}` is read-only for you", "choose another place with -o")


def run(args: argparse.Namespace) -> int:
    suffix = os.path.splitext(args.output or "")[1]
    if not args.emit and suffix and suffix not in _BY_SUFFIX:
        raise UsageError(f"-o: the ending {suffix} of `{args.output}` does not say what to write; known are {', '.join(_BY_SUFFIX)}",
                         f"--emit KIND, as in: baton compile {args.model} --emit relay -o {args.output}")  # fmt: skip
    emit = args.emit or _BY_SUFFIX.get(suffix, "lib")
    if emit == "c" and not args.target:
        args.target = "c"
    shown = emit in TEXT or (emit == "c" and args.output in (None, "-"))  # a file of C has the weights, too, and a header beside it
    if not shown and args.output in (None, "-"):
        raise UsageError(f"--emit={emit} writes a binary file and needs -o FILE", "baton compile MODEL -o model.so")
    check_output(args.output)
    if arguments.kind_of_file(args.model) == "artifact":
        raise UsageError(f"`{args.model}` is compiled already", f"baton run {args.model}")
    if args.debug_info == "source":
        if args.output in (None, "-"):
            raise UsageError("--debug-info=source writes a text beside the output and needs -o FILE")
        args.pass_config["llvm.debug_source"] = args.output + ".relay"
    elif args.debug_info:
        args.pass_config["llvm.debug_info"] = args.debug_info
    arguments.use_threads(args.threads)
    from ..driver import compiler
    from .shapes import open_shapes

    start = time.perf_counter()
    with Progress("importing", args.quiet) as progress:
        model = compiler.Source.of(args.model)
        state = arguments.states_of(args, model)
        options = compiler.Options(**compile_options(args), instruments=progress.instruments())
        arguments.donate(args, model, options)
        shapes = open_shapes(model.signature(args.shape)[0], args.shape, args.dim)
        if shown:
            text = compiler.emit_text(model, shapes, options, emit, state)
        else:
            built = compiler.build_model(model, shapes, options, state)
            progress.stage("linking" if emit == "lib" else "writing")
            built.save(args.output, emit)
    if shown:
        text = text if text.endswith("\n") else text + "\n"
        if args.output in (None, "-"):
            sys.stdout.write(text)
            return 0
        from .values import write_file

        write_file(args.output, text.encode())
    size, seconds = os.path.getsize(args.output), time.perf_counter() - start
    note(f"wrote {args.output}, {size} bytes, in {seconds:.2f} s", args.quiet)
    return 0

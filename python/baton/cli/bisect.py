# SPDX-License-Identifier: Apache-2.0
"""`baton bisect`: which pass breaks a model, and the smallest program that shows it."""

from __future__ import annotations

import argparse
import json
import sys

from . import arguments
from .errors import Failure, UsageError
from .shapes import read_module


def add_parser(verbs, verb, text):
    parser = arguments.add_verb(
        verbs, verb, text,
        "  baton bisect model.onnx\n"
        '  baton bisect in.relay --passes "InferType,FoldConstant,FuseOps" -o bug.relay\n'
        "  baton bisect model.onnx --load my_passes.py --passes MyPass --json\n"
        "Exits with 0 if no pass changes results, with 1 if one does.",
    )  # fmt: skip
    parser.add_argument("model", metavar="MODEL", help="ONNX file or Relay text; - for Relay text on standard input").complete = "file"
    parser.add_argument("--passes", default="default", metavar="LIST", help="as of `baton opt` (default: those of a compilation)")
    arguments.add_load_option(parser)
    parser.add_argument("-o", "--output", metavar="FILE", help="also write the smallest program to a file").complete = "file"
    parser.add_argument("--json", action="store_true", help="print the answer as JSON")
    parser.add_argument("--seed", type=int, default=0, help="where sampled inputs start (default: 0)")
    parser.add_argument("--kind", action="append", default=[], metavar="KIND",
                        help="a kind of sampled inputs: ordinary, positive, wide, grid, special, extreme (default: all)")  # fmt: skip
    parser.add_argument("--skip", action="append", default=[], metavar="PASS", help="a pass that is there to change results")
    parser.add_argument("--no-reduce", action="store_true", help="name the pass alone")
    parser.add_argument("--budget", type=arguments.positive, default=600, metavar="N",
                        help="programs to try while making it small (default: 600)")  # fmt: skip
    parser.add_argument("--target", default="llvm", metavar="TARGET", help="what passes compile for (default: this machine)")
    parser.add_argument("-O", dest="opt_level", type=int, choices=range(5), default=3, help="level of the pass context (default: 3)")
    arguments.add_shape_options(parser)
    parser.add_argument("--pass-config", type=arguments.named_option, action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--disable-pass", action="append", default=[], metavar="PASS", help="leave a pass out")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    try:
        import numpy  # noqa: F401
    except ImportError:
        raise Failure("`baton bisect` needs NumPy", "pip install numpy") from None
    from ..driver import passes

    try:
        pipeline = passes.pipeline(args.passes)
    except ValueError as error:
        raise UsageError(f"--passes: {str(error).removeprefix('pipeline:')}") from None
    arguments.warn_of_passes(args.disable_pass, args.skip)
    source = args.model
    if args.model == "-" or args.dim:
        source = read_module(args.model, args.shape, args.dim)
    else:
        arguments.kind_of_file(args.model)
    from ..guard import KINDS, bisect

    for kind in args.kind:
        if kind not in KINDS:
            raise UsageError(f"--kind: there is no kind `{kind}`; there are {', '.join(KINDS)}")
    result = bisect(source, pipeline, target=args.target, opt_level=args.opt_level, config=args.pass_config, disabled_pass=args.disable_pass,
                    shape=args.shape, seed=args.seed, kinds=tuple(args.kind) or KINDS, skip=args.skip, reduce=not args.no_reduce,
                    budget=args.budget)  # fmt: skip
    result.options = "".join(f" --load {path}" for path in args.load)
    file = args.output or "bug.relay"
    if args.output and result.module is not None:
        from .values import write_file

        command = result.replay(file)
        head = f"// {command}\n" if command else ""
        write_file(args.output, (head + result.text.rstrip() + "\n").encode())
    sys.stdout.write(json.dumps(result.to_json(file), indent=1) + "\n" if args.json else result.show(file, bool(args.output)) + "\n")
    return 1 if result.found else 0

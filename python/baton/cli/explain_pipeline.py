# SPDX-License-Identifier: Apache-2.0
"""`baton explain-pipeline`: why each pass ran, was inserted or was skipped, and why each region of tensor work ends."""

from __future__ import annotations

import argparse
import sys

from . import arguments
from .errors import UsageError
from .shapes import read_module


def add_parser(verbs, verb, text):
    parser = arguments.add_verb(
        verbs, verb, text,
        "  baton explain-pipeline model.onnx\n"
        "  baton explain-pipeline in.relay -O 1 --json\n"
        '  baton explain-pipeline in.relay --passes "FoldConstant,FuseOps"\n'
        '  baton explain-pipeline in.relay --passes \'Scheduled(FoldConstant,FuseOps,ends_with=["Typed"])\'',
    )  # fmt: skip
    parser.add_argument("model", metavar="MODEL", help="ONNX file or Relay text; - for Relay text on standard input").complete = "file"
    parser.add_argument("--passes", default="default", metavar="LIST", help="as of `baton opt` (default: those of a compilation)")
    parser.add_argument("--json", action="store_true", help="print an array of objects: pass, depth, action, why, changed, holds")
    parser.add_argument("-O", dest="opt_level", type=int, choices=range(5), default=3, help="level of the pass context (default: 3)")
    arguments.add_shape_options(parser)
    parser.add_argument("--pass-config", type=arguments.named_option, action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--disable-pass", action="append", default=[], metavar="PASS", help="leave a pass out")
    arguments.add_load_option(parser)
    arguments.add_fp_option(parser)
    arguments.add_precision_option(parser)
    arguments.add_weights_option(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from ..driver import passes

    try:
        pipeline = passes.pipeline(args.passes)
    except ValueError as error:
        raise UsageError(f"--passes: {str(error).removeprefix('pipeline:')}") from None
    arguments.warn_of_passes(args.disable_pass)
    module = read_module(args.model, args.shape, args.dim)
    with passes.context(args.opt_level, args.pass_config, args.disable_pass):
        told = passes.explain_compilation(module, args.json) if args.passes == "default" else passes.explain(pipeline, module, args.json)
        sys.stdout.write(told)
    return 0

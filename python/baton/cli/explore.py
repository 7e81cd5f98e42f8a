# SPDX-License-Identifier: Apache-2.0
"""`baton explore`: a page that shows what each pass did to a model."""

from __future__ import annotations

import argparse

from . import arguments
from .compile import check_output
from .errors import UsageError
from .shapes import gather_shapes
from .terminal import Progress, note
from .values import write_file


def add_parser(verbs, verb, text):
    parser = arguments.add_verb(
        verbs, verb, text,
        "  baton explore model.onnx -o passes.html\n"
        "  baton explore in.relay -O 1 --disable-pass FuseOps -o passes.html",
    )  # fmt: skip
    parser.add_argument("model", metavar="MODEL", help="ONNX file or Relay text").complete = "file"
    parser.add_argument("-o", "--output", default="passes.html", metavar="FILE", help="the page, one file (default: passes.html)")
    parser.add_argument("-O", dest="opt_level", type=int, choices=range(5), default=3, help="level of the pass context (default: 3)")
    parser.add_argument("--target", metavar="TARGET", help='what to compile for, as "llvm -mcpu=skylake" (default: this machine)')
    arguments.add_shape_options(parser)
    parser.add_argument("--pass-config", type=arguments.named_option, action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--disable-pass", action="append", default=[], metavar="PASS", help="leave a pass out")
    arguments.add_load_option(parser)
    parser.add_argument("--no-profile", action="store_true", help="do not run the kernels for their times")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from ..driver.compiler import Source
    from ..explorer import explore

    if args.output == "-":
        raise UsageError("-o: the page goes to a file", "baton explore MODEL -o passes.html")
    check_output(args.output)
    if arguments.kind_of_file(args.model) == "artifact":
        raise UsageError(f"`{args.model}` is compiled already; its passes have run", "baton explore model.onnx -o passes.html")
    arguments.warn_of_passes(args.disable_pass)
    with Progress("compiling", False):
        shape = gather_shapes(Source.of(args.model).signature(args.shape)[0], args.shape, args.dim)
        page = explore(
            args.model, target=args.target, opt_level=args.opt_level, shape=shape,
            config=args.pass_config, disabled_pass=args.disable_pass, profile=not args.no_profile,
        )  # fmt: skip
    write_file(args.output, page.encode())
    note(f"wrote {args.output}, {len(page) / 1e3:.0f} kB; open it in a browser", False)
    return 0

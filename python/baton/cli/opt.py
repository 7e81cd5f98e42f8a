# SPDX-License-Identifier: Apache-2.0
"""`baton opt`: Relay text or an ONNX file in, passes, Relay text out."""

from __future__ import annotations

import argparse
import sys

from . import arguments, capsules
from .errors import UsageError
from .terminal import note


def add_parser(verbs, verb, text):
    parser = arguments.add_verb(
        verbs, verb, text,
        '  baton opt in.relay --passes "InferType,FoldConstant"\n'
        '  baton opt model.onnx --dim batch=1 --passes default\n'
        '  baton opt in.relay --passes "InferType,FuseOps(max_depth=64)" --timing -o out.relay\n'
        '  baton opt in.relay --passes "InferType,FoldConstant" --print-changed --print-diff\n'
        "  cat in.relay | baton opt --passes InferType -\n"
        "  baton opt --list\n"
        "  baton opt --print-pipeline --target opencl",
    )  # fmt: skip
    parser.add_argument("model", metavar="FILE", nargs="?", help="Relay text, - for standard input; or an ONNX file").complete = "file"
    parser.add_argument(
        "--passes",
        default="",
        metavar="LIST",
        help='passes in order, such as "InferType,FuseOps(max_depth=64),tir.UnrollLoop(auto_max_step=16)"',
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="where to write (default: standard output)").complete = "file"
    parser.add_argument("--list", action="store_true", help="print the names of all passes and stop")
    parser.add_argument("--print-pipeline", action="store_true", help="print the passes of `baton compile` in order, with their options, and stop")
    parser.add_argument("--target", metavar="TARGET", help="what passes choose kernels and layouts for (default: this machine)")
    parser.add_argument("--timing", action="store_true", help="print each pass's time on standard error")
    parser.add_argument("--trace", metavar="FILE", help="write times for chrome://tracing and Perfetto").complete = "file"
    parser.add_argument("--verify", action="store_true", help="check the module after each pass, and run each twice")
    parser.add_argument("--guard", action="store_true", help="evaluate before and after each pass, and stop where a result changes")
    group = parser.add_argument_group("printing, on standard error")
    group.add_argument("--print-after-all", action="store_true", help="print the module after each pass")
    for when in ("before", "after"):
        group.add_argument(
            f"--print-{when}", action="append", default=[], metavar="PASS",
            help=f"print the module {when} passes of this name or pattern (* and ?), or `all`",
        )  # fmt: skip
    group.add_argument("--print-changed", action="store_true", help="print only what a pass changed")
    group.add_argument("--print-diff", action="store_true", help="print the lines that differ")
    group.add_argument("--print-to", metavar="DIR", help="write a file a step instead").complete = "file"
    arguments.add_shape_options(parser)
    arguments.add_fp_option(parser)
    parser.add_argument("-O", dest="opt_level", type=int, choices=range(5), default=3, help="level of the pass context (default: 3)")
    parser.add_argument("--pass-config", type=arguments.named_option, action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--disable-pass", action="append", default=[], metavar="PASS", help="leave a pass out")
    arguments.add_load_option(parser)
    capsules.add_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    if args.list:
        from ..driver import passes

        print("\n".join(passes.full_names()))
        return 0
    if args.print_pipeline:
        from ..driver import passes

        with passes.context(args.opt_level, args.pass_config, args.disable_pass):
            sys.stdout.write(passes.pipeline_lines(args.target))
        return 0
    if args.model is None:
        raise UsageError("a file of Relay text is needed, or - for standard input")
    from ..driver import passes
    from .shapes import read_module

    try:
        pipeline = passes.pipeline(args.passes)
    except ValueError as error:
        raise UsageError(f"--passes: {str(error).removeprefix('pipeline:')}") from None
    if args.model != "-" and arguments.kind_of_file(args.model) == "artifact":
        raise UsageError(f"`{args.model}` is compiled already; its passes have run", "baton opt model.onnx --passes LIST")
    instruments, timing = watchers(args, passes)
    arguments.warn_of_passes(args.disable_pass, args.print_before, args.print_after)
    try:
        module = read_module(args.model, args.shape, args.dim)
        with passes.context(args.opt_level, args.pass_config, args.disable_pass, instruments), passes.target(args.target):
            module = passes.run(pipeline, module)
    finally:
        if timing is not None:
            if args.timing:
                note(passes.timing_text(timing).rstrip("\n"))
            if args.trace:
                from .values import write_file

                write_file(args.trace, passes.timing_trace(timing).encode())
    out = passes.text(module)
    out = out if out.endswith("\n") else out + "\n"
    if args.output in (None, "-"):
        sys.stdout.write(out)
    else:
        from .values import write_file

        write_file(args.output, out.encode())
    return 0


def watchers(args: argparse.Namespace, passes) -> tuple[list, object]:
    """The instruments that the options ask for, and the one that measures (or None)."""
    out = []
    if args.verify:
        out.append(passes.verifier())
    if args.guard:
        from ..guard import SemanticGuard

        out.append(SemanticGuard())
    timing = passes.timing() if args.timing or args.trace else None
    if timing is not None:
        out.append(timing)
    if args.print_before or args.print_after or args.print_after_all or args.print_changed or args.print_diff or args.print_to:
        chosen = [] if args.print_after_all else [*args.print_before, *args.print_after]
        out.append(
            passes.printer(
                before=bool(args.print_before),
                after=not args.print_before or bool(args.print_after) or args.print_after_all,
                only_changed=args.print_changed,
                diff=args.print_diff,
                passes=[] if "all" in chosen else chosen,
                directory=args.print_to or "",
                write=lambda text: note(str(text).rstrip("\n")),
            )
        )
    return out, timing

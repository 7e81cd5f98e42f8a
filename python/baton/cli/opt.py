# SPDX-License-Identifier: Apache-2.0
"""`baton opt`: Relay text in, passes, Relay text out."""

from __future__ import annotations

import argparse
import os
import sys
import time

from . import arguments
from .errors import Failure, UsageError, file_error
from .terminal import note


def add_parser(verbs, verb, text):
    parser = arguments.add_verb(
        verbs, verb, text,
        '  baton opt in.relay --passes "InferType,FoldConstant"\n'
        '  baton opt in.relay --passes "InferType,FuseOps(fuse_opt_level=2)" --timing -o out.relay\n'
        "  cat in.relay | baton opt --passes InferType -\n"
        "  baton opt --list",
    )  # fmt: skip
    parser.add_argument("model", metavar="FILE", nargs="?", help="Relay text; - for standard input").complete = "file"
    parser.add_argument(
        "--passes", default="", metavar="LIST", help='passes in order, such as "InferType,FoldConstant"'
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="where to write (default: standard output)"
    ).complete = "file"
    parser.add_argument("--list", action="store_true", help="print the names of all passes and stop")
    parser.add_argument("--timing", action="store_true", help="print each pass's time on standard error")
    parser.add_argument(
        "--print-after-all", action="store_true", help="print the module after each pass on standard error"
    )
    parser.add_argument(
        "-O", dest="opt_level", type=int, choices=range(4), default=3, help="level of the pass context (default: 3)"
    )
    parser.add_argument("--pass-config", type=arguments.named_option, action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--disable-pass", action="append", default=[], metavar="PASS", help="leave a pass out")
    parser.set_defaults(run=run)


def read_text(path: str) -> str:
    try:
        if path == "-":
            data = sys.stdin.buffer.read()
        elif os.path.isdir(path):
            raise Failure(f"`{path}` is a directory; a file of Relay text is needed")
        else:
            with open(path, "rb") as file:
                data = file.read()
    except OSError as error:
        raise file_error(error, path) from None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Failure(f"`{path}` is no text: byte {error.start} is not UTF-8") from None


def parse_passes(text: str) -> list[tuple[str, dict]]:
    """`A,B(x=1,y="z")` as [("A", {}), ("B", {"x": 1, "y": "z"})]; values are Python literals."""
    import ast

    if not text.strip():
        return []
    try:
        tree = ast.parse(f"[{text}]", mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise UsageError(
            f"--passes: `{text}` is no list of passes", 'write it as "InferType,FuseOps(fuse_opt_level=2)"'
        ) from None
    out = []
    for item in tree.body.elts:
        call = item if isinstance(item, ast.Call) else None
        name = call.func if call else item
        if not isinstance(name, ast.Name) or (call and (call.args or any(k.arg is None for k in call.keywords))):
            raise UsageError(
                f"--passes: `{ast.unparse(item)}` is no pass; options are given by name",
                "write it as Name(option=value)",
            )
        try:
            options = {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords} if call else {}
        except ValueError:
            raise UsageError(f"--passes: the options of `{name.id}` are no plain values") from None
        out.append((name.id, options))
    return out


def run(args: argparse.Namespace) -> int:
    wanted = parse_passes(args.passes)
    if not args.list:
        if args.model is None:
            raise UsageError("a file of Relay text is needed, or - for standard input")
        text = read_text(args.model)
        if not text.strip():
            what = "standard input" if args.model == "-" else f"`{args.model}`"
            raise Failure(f"{what} is empty; Relay text is needed")
    from ..driver import passes

    known = passes.names()
    if args.list:
        print("\n".join(known))
        return 0
    for name, _ in wanted:
        if name not in known:
            import difflib

            near = difflib.get_close_matches(name, known, 3)
            hint = f"did you mean {' or '.join(near)}?" if near else "`baton opt --list` prints all"
            raise UsageError(f"--passes: there is no pass `{name}`", hint)
    source = "<stdin>" if args.model == "-" else args.model
    config = args.pass_config
    with passes.context(args.opt_level, config, args.disable_pass):
        module = passes.parse(text, source)
        for name, options in wanted:
            try:
                one = passes.make(name, options)
            except TypeError as error:
                raise UsageError(f"--passes: {name}: {error}") from None
            start = time.perf_counter()
            module = passes.run(one, module)
            if args.timing:
                note(f"{(time.perf_counter() - start) * 1e3:9.2f} ms  {name}")
            if args.print_after_all:
                note(f"// --- after {name}\n{passes.text(module)}")
    out = passes.text(module)
    out = out if out.endswith("\n") else out + "\n"
    if args.output in (None, "-"):
        sys.stdout.write(out)
    else:
        from .values import write_file

        write_file(args.output, out.encode())
    return 0
